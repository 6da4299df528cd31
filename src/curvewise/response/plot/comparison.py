"""Pictures of two response curves compared: differences, scores, and pairs of models side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from scipy.special import ndtri

from curvewise.drawing.axes import is_narrow, view
from curvewise.drawing.labels import clean, safe_names, shorten
from curvewise.drawing.marks import MARK, choose, ends_of, finish, warned, zero_line
from curvewise.drawing.panels import interval_text, new_panels, write_below
from curvewise.drawing.rows import DIFFERENCE, draw_rows
from curvewise.drawing.style import INK, NEUTRAL, canvas, colour, colours_of, new_axes, style, write_caption
from curvewise.errors import InputError
from curvewise.response.comparison import ContrastingPairs, ResponseComparison, compare_responses, difference_variance
from curvewise.response.curve import ResponseCurve
from curvewise.response.plot.curves import (
    accuracy_axis,
    check_curves,
    draw_response,
    magnitude_axis,
    magnitude_label,
    make_room,
    percent,
    share_unit,
)
from curvewise.response.scores import accuracy_at
from curvewise.text import format_level, format_pvalue
from curvewise.types.results import check_level

Pair: TypeAlias = tuple[ResponseCurve, ResponseCurve]
Gaps: TypeAlias = tuple[float, float]

BAND, BETWEEN = "curvewise-band", "curvewise-between"

LABELS = {"gi": "Gi-score", "pal": "Pal-score", "mean_accuracy": "mean accuracy (%)"}


def plot_response_difference(
    a: ResponseCurve,
    b: ResponseCurve,
    ax: Axes | None = None,
    *,
    paired: bool | None = None,
    level: float = 0.95,
    caption: bool | None = None,
) -> Axes:
    """Draw by how much one model is more accurate than another at each magnitude.

    Parameters
    ----------
    a, b : ResponseCurve
        Of two models, at the same magnitudes of the same perturbation.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    paired : bool, optional
        As of :func:`compare_responses`.
    level : float
        Coverage of the intervals.
    caption : bool, optional
        Write the result under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or the new ones.
    """
    check_curves([a, b])
    if not share_unit([a, b]) or not np.array_equal(a.magnitude, b.magnitude):
        raise InputError("a and b must be measured at the same magnitudes of the same perturbation.")
    found = compare_responses(a, b, paired=paired, level=level)
    difference = 100 * (a.accuracy - b.accuracy)
    each = np.eye(len(a.magnitude))
    errors = np.sqrt([difference_variance(a, b, w, w, found.paired) for w in each])
    half = 100 * float(ndtri(0.5 + level / 2)) * errors
    with canvas(ax) as (ax, own):
        zero_line(ax, horizontal=True)
        low, high = difference - half, difference + half
        ax.fill_between(a.magnitude, low, high, color=INK, alpha=0.12, linewidth=0.0, gid=BAND)
        look: dict[str, Any] = {"color": INK, "lw": 1.8, "marker": "o", "ms": 3.2}
        ax.plot(a.magnitude, difference, gid=DIFFERENCE, label="_difference", **look)
        ax.set_ylim(*view(difference, low, high, 0.0))
        magnitude_axis(ax, a.magnitude)
        ax.grid(alpha=0.25, linewidth=0.6)
        ax.set_xlabel(magnitude_label(a, ax))
        ax.set_ylabel("difference of accuracy (%)" if not is_narrow(ax) else "difference (%)")
        ax.set_title(_title(found, 12 if is_narrow(ax) else 28), loc="left")
        finish(ax, own, [], _caption(found, shaded=True), caption=caption)
    return ax


def plot_response_comparison(
    result: ResponseComparison, ax: Axes | None = None, *, score: str | None = None, caption: bool | None = None
) -> Axes:
    """Draw the differences of two models' scores with their intervals.

    Parameters
    ----------
    result : ResponseComparison
        What to draw. For the difference at each magnitude see :func:`plot_response_difference`.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    score : {"gi", "pal", "mean_accuracy"}, optional
        All three by default, in panels of their own; on ``ax`` the Gi-score.
    caption : bool, optional
        Write the result under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or those of the first panel.
    """
    if score is not None:
        choose("score", score, tuple(LABELS))
    chosen = [score] if score else list(LABELS) if ax is None else ["gi"]
    lines = _caption(result, shaded=False)
    with style():
        own = ax is None
        axes = [ax] if ax is not None else new_panels(len(chosen), 1, 7.0, 0.95)
        # Each difference has a scale of its own; 0 is always in view.
        for panel, name in zip(axes, chosen, strict=True):
            ends = [(100.0 if name == "mean_accuracy" else 1.0) * end for end in ends_of([result.differences[name]])]
            draw_rows(panel, [LABELS[name]], ends, zero=0.0, gid=DIFFERENCE, size=6.0)
        axes[0].set_title(_title(result, 28 if own or not is_narrow(axes[0]) else 12), loc="left")
        if own and caption is not False:
            figure = axes[0].get_figure(root=True)
            assert figure is not None
            width, height = figure.get_size_inches()
            figure.set_size_inches(width, height + 1.3)  # room for title and caption
            write_below(axes[0], lines)
        elif not own:
            finish(axes[0], own, [], lines, caption=caption)
    return axes[0]


def _title(result: ResponseComparison, longest: int) -> str:
    a, b = safe_names((result.a, result.b), longest)
    return f"{a} − {b}"


def _caption(result: ResponseComparison, shaded: bool) -> list[str]:
    gi = result.differences["gi"]
    a, b = (shorten(clean(name), 40) for name in (result.a, result.b))
    verdict = {"a better": f"{a} is better", "b better": f"{b} is better"}
    how = "the same perturbed examples" if result.paired else "examples of their own"
    return [
        f"Gi-scores differ by {interval_text(gi).replace('-', '−')} "
        f"({format_pvalue(result.pvalues['gi'])}), lower is better: "
        f"{verdict.get(result.verdict, 'undecided')}.",
        f"{'Shaded' if shaded else 'Bars'}: {format_level(result.level)} intervals, on {how}.",
        *warned(result),
    ]


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
        Axes to draw on, for one pair; a new figure by default.
    gaps : (float, float), or sequence of such pairs, optional
        Generalization gaps of the models as fractions, to be written beside their scores.
    at : float, optional
        The magnitude at which accuracies are written; the largest that both were measured at by
        default.
    level : float
        Coverage of the intervals shaded.
    caption : bool, optional
        Write under the picture what is shown; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or those of the first panel.
    """
    every: list[Any] = [pairs] if _is_pair(pairs) else list(pairs)
    for pair in every:
        _check_pair(pair)
    known: list[Gaps | None] = [None] * len(every)
    if gaps is not None:
        given = np.atleast_2d(np.asarray(gaps, dtype=np.float64))
        if given.shape != (len(every), 2):
            problem = f"has shape {given.shape}: give two numbers for each of the {len(every)} pair(s)."
            raise InputError(problem, argument="gaps")
        known = [(float(a), float(b)) for a, b in given]
    check_level(level)
    if ax is not None and len(every) != 1:
        raise InputError(f"ax is one Axes, pairs holds {len(every)} pairs: leave ax out.")
    with style():
        own = ax is None
        axes = new_panels(len(every), min(3, len(every)), 4.6, 4.2) if len(every) > 1 else [ax or new_axes()]
        for panel, pair, gap in zip(axes, every, known, strict=True):
            room = 10 if not own and is_narrow(panel) else 20
            key = _draw_pair(panel, pair, gap, at, level, room)
            if not own:
                make_room(panel, 2)
            finish(panel, own, key, [], caption=False, loc=None if own else "upper left")
        lines = [f"Shaded in colour: {format_level(level)} intervals of the accuracies."]
        if len(axes) > 1 and caption is not False:
            write_below(axes[0], lines)
        elif len(axes) == 1:
            if not own:
                finish(axes[0], own, [], lines, caption=caption)
            elif caption is not False:
                write_caption(axes[0], lines, under=axes[0].get_legend())
    return axes[0]


def plot_contrasting_pairs(
    result: ContrastingPairs, ax: Axes | None = None, *, most: int = 2, caption: bool | None = None
) -> Axes:
    """Draw the two curves of the clearest pairs, with their gaps.

    Parameters
    ----------
    result : ContrastingPairs
        What to draw.
    ax : Axes, optional
        Axes to draw on, for the first pair; a new figure by default.
    most : int
        At most so many pairs, a panel for each.
    caption : bool, optional
        As of :func:`plot_response_pairs`.

    Returns
    -------
    Axes
        The Axes given, or those of the first panel.
    """
    shown = result.pairs[: 1 if ax is not None else most]
    if not shown:
        raise InputError(
            "has no pairs to draw: look again with a larger tolerance or a lower least.", argument="result"
        )
    # Curves carry the name of a network's class, which all models may share: the keys tell them apart.
    pairs = [tuple(replace(result.curves[name], model=name) for name in pair) for pair in shown]
    gaps = [(result.gap[a], result.gap[b]) for a, b in shown]
    return plot_response_pairs(pairs, ax, gaps=gaps, caption=caption)  # type: ignore[arg-type]


def _is_pair(pairs: Any) -> bool:
    return len(pairs) == 2 and all(isinstance(c, ResponseCurve) for c in pairs)


def _check_pair(pair: Any) -> None:
    if not isinstance(pair, Sequence) or not _is_pair(pair):
        raise InputError("must hold pairs of response curves: give (a, b) or [(a, b), …].", argument="pairs")
    a, b = pair
    if not share_unit([a, b]):
        problem = f"holds responses to {a.perturbation!r} and {b.perturbation!r}: pair those to the same perturbation."
        raise InputError(problem, argument="pairs")
    if max(a.magnitude[0], b.magnitude[0]) > min(a.magnitude[-1], b.magnitude[-1]):
        raise InputError("holds curves over magnitudes that do not meet.", argument="pairs")


def _draw_pair(
    ax: Axes, pair: Pair, gap: Gaps | None, at: float | None, level: float, room: int
) -> list[tuple[Any, str]]:
    """Draw two curves and the area between them; return a legend with the scores, names in that room."""
    a, b = pair
    place = float(min(a.magnitude[-1], b.magnitude[-1])) if at is None else float(at)
    right = [accuracy_at(c.magnitude, c.accuracy, place) for c in pair]
    x = np.unique(np.concatenate([a.magnitude, b.magnitude]))
    x = x[(x >= max(a.magnitude[0], b.magnitude[0])) & (x <= min(a.magnitude[-1], b.magnitude[-1]))]
    ends = [100 * np.interp(x, c.magnitude, c.accuracy) for c in pair]
    ax.fill_between(x, *ends, color=NEUTRAL, alpha=0.13, linewidth=0.0, gid=BETWEEN)
    shades = colours_of(c.model for c in pair)
    shades = shades if shades[0] != shades[1] else [colour(0), colour(1)]
    lines = [draw_response(ax, c, shade, level=level) for c, shade in zip(pair, shades, strict=True)]
    accuracy_axis(ax)
    magnitude_axis(ax, np.concatenate([a.magnitude, b.magnitude]))
    ax.axvline(place, color=NEUTRAL, linewidth=0.9, linestyle=":", zorder=0.6, gid=MARK)
    ax.set_xlabel(magnitude_label(a, ax, 3.8))
    # A legend switches off mathematics itself, so that dollar signs must not be escaped.
    names = [name.replace(r"\$", "$") for name in safe_names([c.model for c in pair], room)]
    texts = []
    for i, (name, c) in enumerate(zip(names, pair, strict=True)):
        said = f"{name}: Gi {c.gi:.3f}, {percent(right[i])} at {place:g}"
        texts.append(said if gap is None else f"{said}, gap {percent(gap[i])}")
    handles = [Line2D([], [], color=h.get_color(), linestyle=h.get_linestyle()) for h in lines]
    return list(zip(handles, texts, strict=True))
