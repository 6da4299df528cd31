"""Response curves: one with its cumulative accuracy (figure 1 of the paper), several at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from curvewise.errors import InputError
from curvewise.plot import response_parts as parts
from curvewise.plot.panels import new_panels, signed, told, write_below
from curvewise.plot.style import NEUTRAL, OWN, colour, make_legend, new_axes, style
from curvewise.plot.text import safe_text
from curvewise.plot.variance_axes import width_of
from curvewise.plot.variance_parts import choose, finish, note, warned
from curvewise.response import ResponseCurve
from curvewise.types import check_level

Curves: TypeAlias = ResponseCurve | Iterable[ResponseCurve] | Mapping[str, ResponseCurve]

Look: TypeAlias = tuple[str, Any]
"""Colour and dashes of a curve."""

Named: TypeAlias = tuple[ResponseCurve, str, str, Any]
"""A curve with its label, colour and dashes."""

IDEAL = "curvewise-ideal"
CLEAN = "curvewise-clean"
GI = "curvewise-gi"
CUMULATIVE = "curvewise-cumulative"

KINDS = ("response", "cumulative", "both")
MANY = {True: 20, False: 10}
"""Curves that can be told apart, in a figure of ours and in someone's Axes."""

NAMED_OF_MANY = 3
MOVED = 0.15
"""Share of the Axes that a name may stand off the end of its curve."""

NARROW_TITLE = 2.8


def plot_response(
    curve: ResponseCurve,
    ax: Axes | None = None,
    *,
    kind: str | None = None,
    intervals: bool = True,
    level: float = 0.95,
    caption: bool | None = None,
) -> Axes:
    """Draw accuracy against magnitude, and beside it the cumulative accuracy with the Gi-score.

    Parameters
    ----------
    curve : ResponseCurve
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    kind : {"both", "response", "cumulative"}, optional
        Both side by side by default; on ``ax`` the response.
    intervals : bool
        Shade the interval of each accuracy.
    level : float
        Coverage of all intervals.
    caption : bool, optional
        Say the scores under the picture; by default where there is room.

    Returns
    -------
    Axes
        Those of the response; those of the cumulative accuracy if that is drawn alone.

    Examples
    --------
    >>> curve = ResponseCurve.from_counts([0, 0.25, 0.5], [99, 95, 80], 100)
    >>> ax = plot_response(curve)
    >>> [a.get_title(loc="left") for a in ax.figure.axes]
    ['model, 99.0% clean', 'Gi 0.054 [0.0..., 0.0...]']
    """
    (curve,) = parts.check_curves([curve])
    check_level(level)
    kind = choose("kind", kind or ("both" if ax is None else "response"), KINDS)
    if kind == "both" and ax is not None:
        raise InputError("kind='both' needs two Axes: leave ax out, or draw one kind on each.")
    with style():
        if kind == "both":
            axes = new_panels(2, 2, 4.3, 4.2)
            _response(axes[0], curve, intervals, level, room=3.8)
            _cumulative(axes[1], curve, level)
            if caption is not False:
                write_below(axes[0], _caption(curve, intervals, level))
            return axes[0]
        own = ax is None
        ax = ax or new_axes()
        if kind == "response":
            _response(ax, curve, intervals, level)
        else:
            _cumulative(ax, curve, level)
        shaded = intervals and kind == "response"
        finish(ax, own, [], _caption(curve, shaded, level), caption=caption)
    return ax


def _response(
    ax: Axes, curve: ResponseCurve, intervals: bool, level: float, room: float | None = None
) -> None:
    clean = curve.clean_accuracy
    parts.reference(ax, 100.0, color="black", linestyle=":", linewidth=1.2, gid=IDEAL)
    if curve.clean_total:
        parts.reference(ax, 100 * clean, linestyle="--", gid=CLEAN)
    parts.draw_response(ax, curve, colour(1), level=level if intervals else None)
    parts.accuracy_axis(ax, whole=True)
    parts.magnitude_axis(ax, curve.magnitude)
    ax.set_xlabel(parts.magnitude_label(curve, ax, room))
    wide = room or width_of(ax)
    told = f", {parts.percent(clean)} clean" if wide > NARROW_TITLE and clean == clean else ""
    ax.set_title(f"{safe_text(curve.model, int(11 * wide) - len(told))}{told}", loc="left")


def _cumulative(ax: Axes, curve: ResponseCurve, level: float) -> None:
    u, density = curve.cumulative
    ax.plot([0, 1], [0, 1], color="black", linestyle=":", lw=1.2, gid=IDEAL, label="_ideal")
    ax.fill_between(u, u, density, color=colour(0), alpha=0.22, linewidth=0.0, gid=GI)
    ax.plot(u, density, color=colour(1), linewidth=1.8, gid=CUMULATIVE, label="_cumulative")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1.02)
    ax.grid(alpha=0.25, linewidth=0.6)
    low, high = _ends(curve)
    ax.set_xlabel(f"magnitude, {low} to {high} as 0 to 1")
    ax.set_ylabel("accuracy, integrated")
    ax.set_title(f"Gi {told(curve.gi_interval(level))}", loc="left")
    look: dict[str, Any] = {"textcoords": "offset points", "fontsize": 9.0}
    note(ax, "ideal", (0.62, 0.62), xytext=(-5, 4), ha="right", gid=IDEAL, **look)
    # The curve rises: below it there is room to its right, above it to its left.
    low_end = float(np.interp(0.55, u, density)) < 0.2
    at, side, va, down = (0.95, "right", "bottom", 5) if low_end else (0.58, "left", "top", -5)
    place = (at, float(np.interp(at, u, density)))
    note(ax, "measured", place, xytext=(0, down), ha=side, va=va, color=colour(1), **look)


def _ends(curve: ResponseCurve) -> tuple[str, str]:
    """The magnitudes that stand at 0 and at 1."""
    places, both = curve.magnitude, curve.magnitude[0] < 0 < curve.magnitude[-1]
    if curve.signs == "keep" or not (both or places[-1] <= 0):
        return f"{places[0]:g}", f"{places[-1]:g}"
    far, near = np.abs(places).max(), np.abs(places).min()
    return (f"±{near:g}" if near and both else f"{near:g}"), f"{'±' if both else '−'}{far:g}"


def _caption(curve: ResponseCurve, shaded: bool, level: float) -> list[str]:
    per = f"{100 * level:.4g}%"
    fold = " Both directions count as one." if _ends(curve)[1].startswith("±") else ""
    said = (
        f"Gi {told(curve.gi_interval(level))} ({signed(curve.gi_relative)} relative "
        f"to the clean accuracy); Pal {told(curve.pal_interval(level))}; accuracy "
        f"{parts.percent(curve.clean_accuracy)} clean, {parts.percent(curve.mean_accuracy)} on "
        f"average, on {int(curve.total.max()):,} examples.{fold}"
    )
    bands = "Dotted: an ideal network"
    bands += ", dashed: unperturbed. " if shaded and curve.clean_total else ". "
    bands += "Shaded band: the interval of each accuracy. " if shaded else ""
    return [said, f"{bands}Intervals at {per}, for other examples of the kind.", *warned(curve)]


def plot_responses(
    curves: Curves,
    ax: Axes | None = None,
    *,
    intervals: bool | None = None,
    level: float = 0.95,
    names: str | None = None,
    caption: bool | None = None,
) -> Axes:
    """Draw the response curves of several models, or of one to several perturbations.

    Parameters
    ----------
    curves : ResponseCurve, iterable of them, or dict of name to ResponseCurve
        What to draw. More than 20 (more than 10 on ``ax``) are grey but for the three with the
        lowest and the three with the highest Gi-score.
    ax : Axes, optional
        Where; a new figure by default.
    intervals : bool, optional
        Shade the interval of each accuracy; by default for up to ten curves.
    level : float
        Coverage of all intervals.
    names : {"ends", "legend", "none"}, optional
        Write names where curves end, or in a legend in the order of the Gi-score. By default at
        the ends in a new figure, where they fit.
    caption : bool, optional
        Say what is shaded under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or the new ones.
    """
    found = parts.check_curves(curves)
    check_level(level)
    if names is not None:
        choose("names", names, ("ends", "legend", "none"))
    own = ax is None or ax.get_gid() == OWN
    few = len(found) <= MANY[own]
    banded = intervals if intervals is not None else len(found) <= MANY[False]
    with style():
        ax = ax or new_axes(7.6, max(4.4, 1.3 + 0.165 * min(len(found), MANY[True])))
        scaled = not parts.share_unit(found)
        looks = _looks(found, few)
        for curve, look in zip(found, looks, strict=True):
            _line(ax, curve, look, len(found), level if banded else None, scaled)
        _axes_of(ax, found, scaled)
        texts = parts.names_of(curves, found, 26)
        labels = [f"{name}  Gi {c.gi:.3f}" for name, c in zip(texts, found, strict=True)]
        named = [i for i, (shade, _) in enumerate(looks) if shade != NEUTRAL]
        if names != "none":
            _name(ax, names, own, [(found[i], labels[i], *looks[i]) for i in named], scaled)
        lines = _several_caption(found, len(named), level if banded else None)
        finish(ax, own, [], lines, caption=caption)
    return ax


def _line(
    ax: Axes, curve: ResponseCurve, look: Look, count: int, level: float | None, scaled: bool
) -> None:
    """One of several curves: thinner and paler the more there are."""
    named = look[0] != NEUTRAL
    parts.draw_response(
        ax,
        curve,
        look[0],
        ls=look[1],
        level=level if named else None,
        width=(1.8 if count <= 6 else 1.3) if named else 0.6,
        alpha=0.16 if count <= 6 else 0.08,
        dots=named and count <= MANY[False],
        scaled=scaled,
    )


def _looks(curves: Sequence[ResponseCurve], few: bool) -> list[Look]:
    """Colour and dashes of each; grey for all but the best and worst of many."""
    if few:
        dashes = ("-", (0, (4, 1.6)))
        return [(colour(i), dashes[i // 10 % 2]) for i in range(len(curves))]
    order = np.argsort([c.gi for c in curves], kind="stable").tolist()
    best = [*order[:NAMED_OF_MANY], *order[-NAMED_OF_MANY:]]
    place = {i: colour(k) for k, i in enumerate(best)}
    return [(place.get(i, NEUTRAL), "-") for i in range(len(curves))]


def _axes_of(ax: Axes, curves: Sequence[ResponseCurve], scaled: bool) -> None:
    parts.accuracy_axis(ax)
    places = [parts.scale(c.magnitude) if scaled else c.magnitude for c in curves]
    parts.magnitude_axis(ax, np.concatenate(places))
    same = "magnitude over the largest" if scaled else parts.magnitude_label(curves[0], ax)
    ax.set_xlabel(same)


def _name(ax: Axes, how: str | None, own: bool, rows: Sequence[Named], scaled: bool) -> None:
    """Names at the ends or in a legend, in the order of the Gi-score."""
    places = [parts.scale(c.magnitude) if scaled else c.magnitude for c, *_ in rows]
    heights = [100 * float(c.accuracy[-1]) for c, *_ in rows]
    if how is None:
        how = "ends" if own and parts.end_places(ax, heights)[1] <= MOVED else "legend"
    if how == "ends":
        ends = [(float(x[-1]), y) for x, y in zip(places, heights, strict=True)]
        parts.name_ends(ax, ends, [row[1] for row in rows], [row[2] for row in rows])
        return
    order = sorted(rows, key=lambda row: row[0].gi)
    key = [(Line2D([], [], color=row[2], linestyle=row[3]), row[1]) for row in order]
    if own:
        box = make_legend(ax, [h for h, _ in key], [text for _, text in key], outside=True)
        box.set_bbox_to_anchor((1.02, 1.0), ax.transAxes)
    else:
        parts.make_room(ax, len(key))
        key = [(handle, text.replace(r"\$", "$")) for handle, text in key]  # done by finish
        finish(ax, False, key, [], caption=False, loc="upper left")


def _several_caption(curves: Sequence[ResponseCurve], named: int, level: float | None) -> list[str]:
    tried = {int(c.total.max()) for c in curves}
    many = f"{min(tried):,}" if len(tried) == 1 else f"{min(tried):,} to {max(tried):,}"
    band = "" if level is None else f" Shaded: {100 * level:.4g}% intervals of the accuracies."
    said = [f"Gi: 0 is best. {many} examples.{band}"]
    if named < len(curves):
        said.append(
            f"Named: the {NAMED_OF_MANY} lowest and {NAMED_OF_MANY} highest Gi of {len(curves)}."
        )
    flagged = sum(bool(c.warnings) for c in curves)
    if flagged:
        first = next(c for c in curves if c.warnings)
        said.append(f"⚠ {flagged} of {len(curves)} curves: {first.warnings[0]}")
    return said
