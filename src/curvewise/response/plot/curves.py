"""Pictures of response curves: one with its cumulative accuracy, several at once, and their sensitivity to batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from curvewise.drawing.axes import is_narrow, value_axis, width_of
from curvewise.drawing.labels import clean, escape, safe_names, safe_text, shorten
from curvewise.drawing.marks import choose, finish, mark_value, note, warned
from curvewise.drawing.panels import end_places, figure_size, interval_text, name_ends, new_panels, signed, write_below
from curvewise.drawing.style import (
    INK,
    NEUTRAL,
    OWN,
    canvas,
    colour,
    colours_of,
    dashes,
    make_legend,
    new_axes,
    place_of,
    style,
)
from curvewise.errors import InputError
from curvewise.response.curve import SCORES, CorpusSensitivity, ResponseCurve, ResponseSensitivity
from curvewise.text import format_level
from curvewise.types.results import FloatArray, check_level

Curves: TypeAlias = ResponseCurve | Iterable[ResponseCurve] | Mapping[str, ResponseCurve]

Look: TypeAlias = tuple[str, Any]
"""Colour and dashes of a curve."""

Named: TypeAlias = tuple[ResponseCurve, str, str, Any]
"""A curve with its label, colour and dashes."""

RESPONSE, BAND = "curvewise-response", "curvewise-band"
IDEAL, CLEAN, GI, CUMULATIVE = "curvewise-ideal", "curvewise-clean", "curvewise-gi", "curvewise-cumulative"
LINE, REPEAT, EXPECTED = "curvewise-line", "curvewise-repeat", "curvewise-expected"
"""Group ids of artists."""

# Curves that can be distinguished, in a figure of ours and in someone's Axes.
MANY = {True: 20, False: 10}
# Names of the lowest and of the highest Gi-scores where there are many curves.
NAMED_OF_MANY = 3
# Share of the Axes that a name may stand off the end of its curve.
MOVED = 0.15
# Panels side by side.
PANELS = 3
# Inches below which a title has no room for the clean accuracy.
NARROW_TITLE = 2.8
# Magnitudes up to which each gets a dot.
POINTS = 40
# Batches that the paper uses.
PAPER = 180


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
        Axes to draw on; a new figure by default.
    kind : {"both", "response", "cumulative"}, optional
        Both side by side by default; on ``ax`` the response.
    intervals : bool
        Shade the interval of each accuracy.
    level : float
        Coverage of all intervals.
    caption : bool, optional
        Write the scores under the picture; by default where there is room.

    Returns
    -------
    Axes
        Those of the response; those of the cumulative accuracy if that is drawn alone.

    Examples
    --------
    >>> curve = ResponseCurve.from_counts([0, 0.25, 0.5], [99, 95, 80], 100)
    >>> ax = plot_response(curve)
    >>> [a.get_title(loc="left") for a in ax.figure.axes]
    ['model, 99.0% clean', 'Gi-score 0.054 [0.0..., 0.0...], 0 is best']
    """
    (curve,) = check_curves([curve])
    check_level(level)
    kind = _choose_kind(kind, ax, ("response", "cumulative"))
    room = 3.8 if kind == "both" else None
    draw: dict[str, Callable[[Axes], None]] = {
        "response": lambda panel: _response(panel, curve, intervals, level, room),
        "cumulative": lambda panel: _cumulative(panel, curve, level),
    }
    lines = _response_caption(curve, intervals and kind != "cumulative", level)
    return _draw_kind(ax, kind, draw, lines, caption, 4.2)


def _choose_kind(kind: str | None, ax: Axes | None, known: tuple[str, str]) -> str:
    """Choose one of two pictures, the first by default, or in a new figure both."""
    chosen = choose("kind", kind or ("both" if ax is None else known[0]), (*known, "both"))
    if chosen == "both" and ax is not None:
        problem = "two Axes are needed: leave ax out, or draw one kind on each."
        raise InputError(problem, argument="kind", value="both")
    return chosen


def _draw_kind(
    ax: Axes | None,
    kind: str,
    draw: Mapping[str, Callable[[Axes], None]],
    lines: list[str],
    caption: bool | None,
    height: float,
) -> Axes:
    """Draw one of two pictures, or both side by side in a new figure; return the first Axes."""
    if kind == "both":
        with style():
            axes = new_panels(2, 2, 4.3, height)
            for panel, each in zip(axes, draw.values(), strict=True):
                each(panel)
            if caption is not False:
                write_below(axes[0], lines)
            return axes[0]
    with canvas(ax) as (ax, own):
        draw[kind](ax)
        finish(ax, own, [], lines, caption=caption)
    return ax


def _response(ax: Axes, curve: ResponseCurve, intervals: bool, level: float, room: float | None = None) -> None:
    clean = curve.clean_accuracy
    reference(ax, 100.0, color=INK, linestyle=":", linewidth=1.2, gid=IDEAL)
    if curve.clean_total:
        reference(ax, 100 * clean, linestyle="--", gid=CLEAN)
    draw_response(ax, curve, colours_of([curve.model])[0], level=level if intervals else None)
    accuracy_axis(ax, whole=True)
    magnitude_axis(ax, curve.magnitude)
    ax.set_xlabel(magnitude_label(curve, ax, room))
    wide = room or width_of(ax)
    accuracy = f", {percent(clean)} clean" if wide > NARROW_TITLE and clean == clean else ""
    ax.set_title(f"{safe_text(curve.model, int(11 * wide) - len(accuracy))}{accuracy}", loc="left")


def _cumulative(ax: Axes, curve: ResponseCurve, level: float) -> None:
    u, density = curve.cumulative
    ax.plot([0, 1], [0, 1], color=INK, linestyle=":", lw=1.2, gid=IDEAL, label="_ideal")
    (shade,) = colours_of([curve.model])
    ax.fill_between(u, u, density, color=NEUTRAL, alpha=0.22, linewidth=0.0, gid=GI)
    ax.plot(u, density, color=shade, linewidth=1.8, gid=CUMULATIVE, label="_cumulative")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1.02)
    ax.grid(alpha=0.25, linewidth=0.6)
    low, high = _ends(curve)
    ax.set_xlabel(f"magnitude, {low} to {high} as 0 to 1")
    ax.set_ylabel("accuracy, integrated")
    ax.set_title(f"Gi-score {interval_text(curve.gi_interval(level))}, 0 is best", loc="left")
    look: dict[str, Any] = {"textcoords": "offset points", "fontsize": 9.0}
    note(ax, "ideal", (0.62, 0.62), xytext=(-5, 4), ha="right", gid=IDEAL, **look)
    # The curve rises: below it there is room to its right, above it to its left.
    low_end = float(np.interp(0.55, u, density)) < 0.2
    at, side, va, down = (0.95, "right", "bottom", 5) if low_end else (0.58, "left", "top", -5)
    place = (at, float(np.interp(at, u, density)))
    note(ax, "measured", place, xytext=(0, down), ha=side, va=va, color=shade, **look)


def _ends(curve: ResponseCurve) -> tuple[str, str]:
    """Return the magnitudes that stand at 0 and at 1."""
    places, both = curve.magnitude, curve.magnitude[0] < 0 < curve.magnitude[-1]
    if curve.signs == "keep" or not (both or places[-1] <= 0):
        return f"{places[0]:g}", f"{places[-1]:g}"
    far, near = np.abs(places).max(), np.abs(places).min()
    return (f"±{near:g}" if near and both else f"{near:g}"), f"{'±' if both else '−'}{far:g}"


def _response_caption(curve: ResponseCurve, shaded: bool, level: float) -> list[str]:
    per = f"{format_level(level)}"
    fold = " Both directions count as one." if _ends(curve)[1].startswith("±") else ""
    said = (
        f"Gi {interval_text(curve.gi_interval(level))} ({signed(curve.gi_relative)} relative "
        f"to the clean accuracy); Pal {interval_text(curve.pal_interval(level))}; accuracy "
        f"{percent(curve.clean_accuracy)} clean, {percent(curve.mean_accuracy)} on "
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
    """Draw the response curves of several models, or of one to several perturbations, with a panel for each of these.

    Parameters
    ----------
    curves : ResponseCurve, iterable of them, or dict of name to ResponseCurve
        What to draw. More than 20 (more than 10 on ``ax``) are grey but for the three with the
        lowest and the three with the highest Gi-score. On ``ax``, curves of several perturbations
        share the axis by the share of their range.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    intervals : bool, optional
        Shade the interval of each accuracy; by default for up to ten curves.
    level : float
        Coverage of all intervals.
    names : {"ends", "legend", "none"}, optional
        Write names where curves end, or in a legend in the order of the Gi-score. By default at
        the ends in a new figure, where they fit.
    caption : bool, optional
        Write under the picture what is shaded; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or the new ones.
    """
    found = check_curves(curves)
    check_level(level)
    if names is not None:
        choose("names", names, ("ends", "legend", "none"))
    if ax is None and not share_unit(found):
        titles = list(map(str, curves)) if isinstance(curves, Mapping) else None
        return _panels(found, titles, intervals, level, caption)
    own = ax is None or ax.get_gid() == OWN
    few = len(found) <= MANY[own]
    banded = intervals if intervals is not None else len(found) <= MANY[False]
    with style():
        ax = ax or new_axes(7.6, max(4.4, 1.3 + 0.165 * min(len(found), MANY[True])))
        # Curves of different perturbations share the axis by the share of their range.
        scaled = not share_unit(found)
        titles = list(map(str, curves)) if isinstance(curves, Mapping) else _titles(found)
        looks = _looks(found, titles, few)
        few_lines = len(found) <= 6  # thinner and paler the more there are
        for curve, (shade, dashes) in zip(found, looks, strict=True):
            named = shade != NEUTRAL
            look: dict[str, Any] = {"ls": dashes, "width": (1.8 if few_lines else 1.3) if named else 0.6}
            look |= {"alpha": 0.16 if few_lines else 0.08, "dots": named and len(found) <= MANY[False]}
            draw_response(ax, curve, shade, level=level if banded and named else None, scaled=scaled, **look)
        accuracy_axis(ax)
        magnitude_axis(ax, np.concatenate([scale(c.magnitude) if scaled else c.magnitude for c in found]))
        ax.set_xlabel("magnitude over the largest" if scaled else magnitude_label(found[0], ax))
        texts = safe_names(titles, 26)
        labels = [f"{name}  Gi {c.gi:.3f}" for name, c in zip(texts, found, strict=True)]
        chosen = [i for i, (shade, _) in enumerate(looks) if shade != NEUTRAL]
        if names != "none":
            _name(ax, names, own, [(found[i], labels[i], *looks[i]) for i in chosen], scaled)
        lines = _responses_caption(found, len(chosen), level if banded else None)
        finish(ax, own, [], lines, caption=caption)
    return ax


def _panels(
    curves: Sequence[ResponseCurve],
    titles: Sequence[str] | None,
    intervals: bool | None,
    level: float,
    caption: bool | None,
) -> Axes:
    """Draw a panel for each perturbation, with magnitudes in its own unit and one scale of accuracy."""
    changes = list(dict.fromkeys((c.perturbation, c.unit) for c in curves))
    banded = intervals if intervals is not None else len(curves) <= MANY[False] * len(changes)
    models = list(dict.fromkeys(c.model for c in curves)) if titles is None else list(titles)
    named = dict(zip(map(id, curves), titles or [c.model for c in curves], strict=True))
    with style():
        looks = dict(zip(models, _looks(curves[: len(models)], models, len(models) <= MANY[True]), strict=True))
        axes = new_panels(len(changes), 2 if len(changes) == 4 else min(len(changes), PANELS), 4.0, 3.8, sharey=True)
        for ax, change in zip(axes, changes, strict=True):
            here = [c for c in curves if (c.perturbation, c.unit) == change]
            for curve in here:
                shade, ls = looks[named[id(curve)]]
                draw_response(ax, curve, shade, level=level if banded else None, ls=ls)
            magnitude_axis(ax, np.concatenate([c.magnitude for c in here]))
            where = "" if here[0].layer == "input" else f" at {here[0].where}"
            ax.set_title(safe_text(f"{here[0].perturbation}{where}", 40), loc="left")
            ax.set_xlabel(escape(clean(here[0].unit)) or "magnitude")
            key = [(Line2D([], [], color=looks[named[id(c)]][0], linestyle=looks[named[id(c)]][1]), c) for c in here]
            texts = [f"{safe_text(named[id(c)], 22)}  Gi {c.gi:.3f}" for _, c in key]
            ax.legend([h for h, _ in key], texts, loc="best", fontsize=8.5, frameon=False)
        accuracy_axis(*axes)
        if caption is not False:
            write_below(axes[0], _responses_caption(curves, len(curves), level if banded else None))
    return axes[0]


def _looks(curves: Sequence[ResponseCurve], names: Sequence[str], few: bool) -> list[Look]:
    """Choose colour and dashes of each; grey for all but the best and worst of many."""
    if few:
        places = [place_of(name, i) for i, name in enumerate(names)]
        return [(colour(k), dashes(k)) for k in places]
    order = np.argsort([c.gi for c in curves], kind="stable").tolist()
    best = [*order[:NAMED_OF_MANY], *order[-NAMED_OF_MANY:]]
    place = {i: colour(place_of(names[i], k)) for k, i in enumerate(best)}
    return [(place.get(i, NEUTRAL), "-") for i in range(len(curves))]


def _titles(curves: Sequence[ResponseCurve]) -> list[str]:
    """Name curves by what distinguishes them: model, perturbation or layer."""
    parts = [(c.model, c.perturbation, c.layer) for c in curves]
    kept = [k for k in range(3) if len({p[k] for p in parts}) > 1] or [0]
    return [", ".join(p[k] for k in kept) for p in parts]


def _name(ax: Axes, how: str | None, own: bool, rows: Sequence[Named], scaled: bool) -> None:
    """Write names at the ends or in a legend, in the order of the Gi-score."""
    places = [scale(c.magnitude) if scaled else c.magnitude for c, *_ in rows]
    heights = [100 * float(c.accuracy[-1]) for c, *_ in rows]
    if how is None:
        how = "ends" if own and end_places(ax, heights)[1] <= MOVED else "legend"
    if how == "ends":
        ends = [(float(x[-1]), y) for x, y in zip(places, heights, strict=True)]
        name_ends(ax, ends, [row[1] for row in rows], [row[2] for row in rows])
        return
    order = sorted(rows, key=lambda row: row[0].gi)
    key = [(Line2D([], [], color=row[2], linestyle=row[3]), row[1]) for row in order]
    if own:
        box = make_legend(ax, [h for h, _ in key], [text for _, text in key], outside=True)
        box.set_bbox_to_anchor((1.02, 1.0), ax.transAxes)
    else:
        make_room(ax, len(key))
        key = [(handle, text.replace(r"\$", "$")) for handle, text in key]  # done by finish
        finish(ax, False, key, [], caption=False, loc="upper left")


def _responses_caption(curves: Sequence[ResponseCurve], named: int, level: float | None) -> list[str]:
    tried = {int(c.total.max()) for c in curves}
    many = f"{min(tried):,}" if len(tried) == 1 else f"{min(tried):,} to {max(tried):,}"
    band = "" if level is None else f" Shaded: {format_level(level)} intervals of the accuracies."
    said = [f"Gi: 0 is best. {many} examples.{band}"]
    if named < len(curves):
        said.append(f"Named: the {NAMED_OF_MANY} lowest and {NAMED_OF_MANY} highest Gi of {len(curves)}.")
    flagged = sum(bool(c.warnings) for c in curves)
    if flagged:
        first = next(c for c in curves if c.warnings)
        said.append(f"⚠ {flagged} of {len(curves)} curves: {first.warnings[0]}")
    return said


def plot_sensitivity(
    result: ResponseSensitivity,
    ax: Axes | None = None,
    *,
    kind: str | None = None,
    score: str = "gi",
    caption: bool | None = None,
) -> Axes:
    """Draw a score with its spread over repeats, and the time, against the number of batches.

    Parameters
    ----------
    result : ResponseSensitivity
        What to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    kind : {"both", "score", "time"}, optional
        Both side by side by default; on ``ax`` the score.
    score : {"gi", "pal", "mean_accuracy"}
        Which.
    caption : bool, optional
        Write under the picture what is shown; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or those of the first panel.
    """
    choose("score", score, tuple(SCORES))
    kind = _choose_kind(kind, ax, ("score", "time"))
    timed = bool(np.isfinite(result.seconds).any())
    if kind == "time" and not timed:
        raise InputError("the curves do not say how long they took.", argument="kind", value="time")
    if kind == "both" and not timed:
        kind = "score"
    draw: dict[str, Callable[[Axes], None]] = {
        "score": lambda panel: _score(panel, result, score),
        "time": lambda panel: _time(panel, result),
    }
    return _draw_kind(ax, kind, draw, _sensitivity_caption(result, kind != "time"), caption, 3.9)


def plot_corpus_sensitivity(
    result: CorpusSensitivity, ax: Axes | None = None, *, score: str = "gi", caption: bool | None = None
) -> Axes:
    """Draw the conditional mutual information of a score, with its spread over repeats, against the number of batches.

    Parameters
    ----------
    result : CorpusSensitivity
        What to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    score : {"gi", "pal", "mean_accuracy"}
        Which.
    caption : bool, optional
        Write under the picture what is shown; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or the new ones.
    """
    choose("score", score, tuple(SCORES))
    with canvas(ax) as (ax, own):
        _series(ax, result, 100 * result.values[score], INK)
        ax.set_ylabel(f"CMI × 100 of the {SCORES[score]}")
        said = (
            f"{shorten(clean(result.perturbation), 30)}, {result.models} models, {result.values[score].shape[1]} "
            "repeats on fresh examples (dots); shaded: ± their standard deviation."
        )
        finish(ax, own, [], [said, *warned(result)], caption=caption)
    return ax


def _score(ax: Axes, result: ResponseSensitivity, score: str) -> None:
    """Draw mean ± standard deviation, the repeats, and the standard error that a single curve reports."""
    _series(ax, result, result.values[score], INK)
    mean = result.mean(score)
    spread = np.sqrt((result.expected[score] ** 2).mean(axis=1))
    for sign in (-1, 1):
        look: dict[str, Any] = {"color": NEUTRAL, "ls": "--", "lw": 1.3, "label": "_expected"}
        ax.plot(result.batches, mean + sign * spread, gid=EXPECTED, **look)
    ax.set_ylabel(SCORES[score])
    ax.set_title(f"{SCORES[score]} ± standard deviation", loc="left")


def _time(ax: Axes, result: ResponseSensitivity) -> None:
    _series(ax, result, result.seconds, INK)
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel("seconds")
    ax.set_title("time of a curve", loc="left")


def _series(ax: Axes, result: ResponseSensitivity | CorpusSensitivity, values: FloatArray, shade: str) -> None:
    x, mean, spread = result.batches, values.mean(axis=1), values.std(axis=1, ddof=1)
    low, high = mean - spread, mean + spread
    ax.fill_between(x, low, high, color=shade, alpha=0.18, linewidth=0.0, gid=BAND)
    repeated = np.repeat(x, values.shape[1])
    look: dict[str, Any] = {"color": NEUTRAL, "alpha": 0.6, "mew": 0.0, "label": "_repeat"}
    ax.plot(repeated, values.ravel(), "o", ms=2.6, gid=REPEAT, **look)
    ax.plot(x, mean, color=shade, lw=1.8, marker="o", ms=4.5, gid=LINE, label="_mean")
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    value_axis(ax, x.tolist())
    if x[0] < PAPER <= x[-1]:
        mark_value(ax, PAPER, "as in the paper", bottom=True)
    ax.set_xlabel(f"batches of {result.batch}")


def _sensitivity_caption(result: ResponseSensitivity, scored: bool) -> list[str]:
    who, how = shorten(clean(result.model), 40), shorten(clean(result.perturbation), 30)
    where = "input" if result.layer == "input" else shorten(clean(result.layer), 30)
    said = (
        f"{who} under {how} at the {where}, {result.seconds.shape[1]} repeats on fresh examples "
        "(dots); shaded: ± their standard deviation."
    )
    dashes = ["Dashed: ± the standard error that a single curve tells of itself."]
    return [said, *(dashes if scored else []), *warned(result)]


def check_curves(curves: Any) -> list[ResponseCurve]:
    """Return curves as a list: from one, several, or a dict of them."""
    if isinstance(curves, Mapping):
        curves = list(curves.values())
    found = [curves] if isinstance(curves, ResponseCurve) else list(curves)
    for curve in found:
        if not isinstance(curve, ResponseCurve):
            raise InputError(f"holds a {type(curve).__name__}: give objects of ResponseCurve.", argument="curves")
    if not found:
        raise InputError("is empty: give at least one response curve.", argument="curves")
    return found


def share_unit(curves: Sequence[ResponseCurve]) -> bool:
    """Return True if the magnitudes of all curves mean the same."""
    return len({(c.perturbation, c.unit) for c in curves}) == 1


def magnitude_label(curve: ResponseCurve, ax: Axes, room: float | None = None) -> str:
    """Label of the axis of magnitudes: which perturbation, of what, in which unit.

    ``room`` is the width of the Axes in inches, where a layout will change it.
    """
    most = int(13 * (room or width_of(ax)))
    where = "" if curve.layer == "input" else f" at {curve.where}"
    name = safe_text(f"{curve.perturbation}{where}", min(most, 40))
    unit = f" ({clean(curve.unit)})" if curve.unit else ""
    return f"{name}{escape(unit)}" if len(name) + len(unit) <= most else name


def draw_response(
    ax: Axes,
    curve: ResponseCurve,
    shade: str,
    *,
    level: float | None = 0.95,
    ls: Any = "-",
    width: float = 1.8,
    alpha: float = 0.18,
    dots: bool = True,
    scaled: bool = False,
) -> Line2D:
    """Draw accuracy in percent at each magnitude, with its interval unless the level is None.

    ``scaled`` brings magnitudes to their share of the range.
    """
    x = scale(curve.magnitude) if scaled else curve.magnitude
    if level is not None:
        low, high = curve.accuracy_interval(level)
        ax.fill_between(x, 100 * low, 100 * high, color=shade, alpha=alpha, linewidth=0.0, gid=BAND)
    look: dict[str, Any] = {"color": shade, "linestyle": ls, "linewidth": width, "markersize": 3.2}
    marker = "o" if dots and len(x) <= POINTS else ""
    (line,) = ax.plot(x, 100 * curve.accuracy, marker=marker, gid=RESPONSE, label="_response", **look)
    return line


def scale(magnitude: FloatArray) -> FloatArray:
    """Divide magnitudes by the largest distance from 0: signs stay."""
    share: FloatArray = magnitude / np.abs(magnitude).max()
    return share


def accuracy_axis(*axes: Axes, whole: bool = False) -> None:
    """Show accuracies from 0 to 100%, or those that occur where all are high; several Axes share one scale."""
    drawn = [np.asarray(line.get_ydata()) for ax in axes for line in ax.lines if line.get_gid() == RESPONSE]
    # High accuracies are spread out; from 60% down the scale starts at 0, which exaggerates nothing.
    lowest = float(np.nanmin(np.concatenate(drawn)))
    bottom = 0.0 if whole or lowest < 60 else max(0.0, lowest - 0.12 * (100 - lowest) - 0.5)
    axes[0].set_ylim(bottom, 100 + 0.03 * (100 - bottom))
    axes[0].set_ylabel("accuracy (%)")
    for ax in axes:
        ax.grid(alpha=0.25, linewidth=0.6)


def magnitude_axis(ax: Axes, magnitude: FloatArray) -> None:
    """Show the measured range with a little room; degrees in steps of 45 or 90."""
    low, high = float(magnitude.min()), float(magnitude.max())
    pad = 0.02 * (high - low)
    ax.set_xlim(low - pad, high + pad)
    # Such a range is degrees, for which 45 and 90 are the usual ticks.
    if high - low >= 180 and high <= 360:
        step = 90 if is_narrow(ax) or high - low > 240 else 45
        ax.set_xticks(np.arange(math.ceil(low / step), math.floor(high / step) + 1) * step)


def percent(value: float) -> str:
    """Write a share in percent, to one decimal."""
    return "unknown" if math.isnan(value) else f"{100 * value:.1f}%"


def make_room(ax: Axes, rows: int) -> None:
    """Make room for a legend of so many small rows above 100%, without ticks there."""
    share = min(0.6, (0.15 * rows + 0.1) / (ax.get_position().height * figure_size(ax)[1]))
    low, high = ax.get_ylim()
    ticks = [t for t in ax.get_yticks() if low <= t <= high]
    ax.set_ylim(low, low + (high - low) / (1 - share))
    ax.set_yticks(ticks)


def reference(ax: Axes, value: float, **look: Any) -> Line2D:
    """Draw a thin horizontal line at a value in percent."""
    given: dict[str, Any] = {"color": NEUTRAL, "linewidth": 0.9, "zorder": 0.8} | look
    return ax.axhline(value, label="_reference", **given)
