"""Pairs of models side by side, as in figure 2 of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from curvewise.errors import InputError
from curvewise.plot import response_parts as parts
from curvewise.plot.panels import new_panels, write_below
from curvewise.plot.style import NEUTRAL, colour, new_axes, style, write_caption
from curvewise.plot.text import safe_names
from curvewise.plot.variance_axes import is_narrow
from curvewise.plot.variance_parts import MARK, finish
from curvewise.response import ResponseCurve, accuracy_at
from curvewise.types import check_level

Pair: TypeAlias = tuple[ResponseCurve, ResponseCurve]
Gaps: TypeAlias = tuple[float, float]

BETWEEN = "curvewise-between"


def plot_response_pairs(
    pairs: Pair | Sequence[Pair],
    ax: Axes | None = None,
    *,
    gaps: Gaps | Sequence[Gaps] | None = None,
    at: float | None = None,
    level: float = 0.95,
    caption: bool | None = None,
) -> Axes:
    """Draw pairs of models, to see what one magnitude alone would miss.

    Parameters
    ----------
    pairs : (ResponseCurve, ResponseCurve), or sequence of such pairs
        Each pair gets its own panel.
    ax : Axes, optional
        Where, for one pair; a new figure by default.
    gaps : (float, float), or sequence of such pairs, optional
        Generalization gaps of the models as fractions, to be written beside their scores.
    at : float, optional
        The magnitude at which accuracies are written; the largest that both were measured at by
        default.
    level : float
        Coverage of the intervals shaded.
    caption : bool, optional
        Say what is shown under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or those of the first panel.
    """
    every: list[Any] = [pairs] if _is_pair(pairs) else list(pairs)
    for pair in every:
        _check_pair(pair)
    known = _gaps(gaps, every)
    check_level(level)
    if ax is not None and len(every) != 1:
        raise InputError(f"ax is one Axes, pairs holds {len(every)} pairs: leave ax out.")
    with style():
        own = ax is None
        if len(every) > 1:
            axes = new_panels(len(every), min(3, len(every)), 4.6, 4.2)
        else:
            axes = [ax or new_axes()]
        for panel, pair, gap in zip(axes, every, known, strict=True):
            room = 10 if not own and is_narrow(panel) else 20
            key = _draw_pair(panel, pair, gap, at, level, room)
            if not own:
                parts.make_room(panel, 2)
            finish(panel, own, key, [], caption=False, loc=None if own else "upper left")
        lines = [f"Shaded in colour: {100 * level:.4g}% intervals of the accuracies."]
        if len(axes) > 1 and caption is not False:
            write_below(axes[0], lines)
        elif len(axes) == 1:
            _caption(axes[0], own, lines, caption)
    return axes[0]


def _is_pair(pairs: Any) -> bool:
    return len(pairs) == 2 and all(isinstance(c, ResponseCurve) for c in pairs)


def _check_pair(pair: Any) -> None:
    if not isinstance(pair, Sequence) or not _is_pair(pair):
        raise InputError("pairs must hold pairs of response curves: give (a, b) or [(a, b), …].")
    a, b = pair
    if not parts.share_unit([a, b]):
        raise InputError(
            f"pairs holds responses to {a.perturbation!r} and {b.perturbation!r}: pair those to "
            "the same perturbation."
        )
    if max(a.magnitude[0], b.magnitude[0]) > min(a.magnitude[-1], b.magnitude[-1]):
        raise InputError("pairs holds curves over magnitudes that do not meet.")


def _gaps(gaps: Any, pairs: Sequence[Any]) -> list[Gaps | None]:
    if gaps is None:
        return [None] * len(pairs)
    found = np.atleast_2d(np.asarray(gaps, dtype=np.float64))
    if found.shape != (len(pairs), 2):
        raise InputError(
            f"gaps has shape {found.shape}: give two numbers for each of the {len(pairs)} pair(s)."
        )
    return [(float(a), float(b)) for a, b in found]


def _draw_pair(
    ax: Axes, pair: Pair, gap: Gaps | None, at: float | None, level: float, room: int
) -> list[tuple[Any, str]]:
    """Two curves, the area between them, and a legend with the scores, names in that room."""
    a, b = pair
    place = float(min(a.magnitude[-1], b.magnitude[-1])) if at is None else float(at)
    right = [accuracy_at(c.magnitude, c.accuracy, place) for c in pair]
    x = np.unique(np.concatenate([a.magnitude, b.magnitude]))
    x = x[(x >= max(a.magnitude[0], b.magnitude[0])) & (x <= min(a.magnitude[-1], b.magnitude[-1]))]
    ends = [100 * np.interp(x, c.magnitude, c.accuracy) for c in pair]
    ax.fill_between(x, *ends, color=NEUTRAL, alpha=0.13, linewidth=0.0, gid=BETWEEN)
    lines = [
        parts.draw_response(ax, c, colour(i), level=level, ls=("-", (0, (5, 1.5)))[i])
        for i, c in enumerate(pair)
    ]
    parts.accuracy_axis(ax)
    parts.magnitude_axis(ax, np.concatenate([a.magnitude, b.magnitude]))
    ax.axvline(place, color=NEUTRAL, linewidth=0.9, linestyle=":", zorder=0.6, gid=MARK)
    ax.set_xlabel(parts.magnitude_label(a, ax, 3.8))
    told = []
    for i, (name, c) in enumerate(zip(_names(pair, room), pair, strict=True)):
        said = f"{name}: Gi {c.gi:.3f}, {parts.percent(right[i])} at {place:g}"
        told.append(said if gap is None else f"{said}, gap {parts.percent(gap[i])}")
    handles = [Line2D([], [], color=h.get_color(), linestyle=h.get_linestyle()) for h in lines]
    return list(zip(handles, told, strict=True))


def _names(pair: Pair, room: int) -> list[str]:
    """As they are drawn in a legend, which switches off mathematics itself."""
    names = safe_names([c.model for c in pair], room)
    return [name.replace(r"\$", "$") for name in names]


def _caption(ax: Axes, own: bool, lines: list[str], caption: bool | None) -> None:
    if not own:
        finish(ax, own, [], lines, caption=caption)
    elif caption is not False:
        write_caption(ax, lines, under=ax.get_legend())
