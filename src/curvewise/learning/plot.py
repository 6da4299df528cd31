"""Learning curves with their measurements, comparisons, rankings, plans and checks."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike
from scipy.special import chdtri

from curvewise.drawing.axes import SizeAxis, finish_values, log_sizes, tick_log_values
from curvewise.drawing.labels import safe_names, safe_text
from curvewise.drawing.marks import draw_estimates, finish, key_dot, mark_value, note, warned
from curvewise.drawing.panels import END, end_places, name_ends
from curvewise.drawing.rows import draw_rows
from curvewise.drawing.style import (
    INK,
    NEUTRAL,
    OWN,
    as_percent,
    canvas,
    colour,
    colours_of,
    dashes,
    make_legend,
    new_axes,
    place_of,
    style,
    unit_text,
    value_label,
    write_caption,
)
from curvewise.errors import InputError, neutral, quietly
from curvewise.learning.comparison import SEARCH, CurveComparison, LearnerComparison, LearnerRanking
from curvewise.learning.curve import (
    EXTRAPOLATION_LIMIT,
    INTERVALS,
    Curve,
    LearningCurve,
    SamplesToReach,
    check_curves,
    check_size,
    check_sizes_to_predict,
)
from curvewise.learning.design import SizePlan
from curvewise.learning.fit import LearningCurves, fit_learning_curves
from curvewise.learning.power import GroupedRuns, check_choice, group_runs
from curvewise.learning.validation import LeaveOneSizeOut, Stability, VarianceCheck
from curvewise.text import (
    format_chance,
    format_count,
    format_interval,
    format_level,
    format_number,
    format_target,
    format_value,
)
from curvewise.types.measurements import Measurements
from curvewise.types.results import FloatArray, Interval, check_level

Values: TypeAlias = tuple[ArrayLike, ArrayLike]


def plot_learning_curves(
    curves: Curve | Iterable[Curve] | LearningCurves | LearnerComparison,
    ax: Axes | None = None,
    *,
    x: str = "log",
    at: float | None = None,
    interval: str | None = None,
    level: float = 0.95,
    limit: bool = True,
    held_out: Values | Mapping[str, Values] | None = None,
    reach: float | None = None,
    legend: bool = True,
    to: float | None = None,
    predict: ArrayLike = (),
) -> Axes:
    r"""Draw fitted learning curves with their measurements and intervals.

    Parameters
    ----------
    curves : LearningCurve, EnsembleCurve, iterable of them, LearningCurves, or LearnerComparison
        In one unit. More than ten are drawn thin, with only the best and worst at N named.
    ax : Axes, optional
        Where to draw; a new pyplot figure by default. Curves already drawn there are kept.
    x : {"log", "linear", "log-log", "sqrt"}
        Scale of the training size, with more data to the right: logarithmic; as it is; logarithmic with errors on
        a log scale, too; or n^−½, on which the curves of the paper are straight, with infinite data at the right.
    at : float, optional
        The size whose error is written at each curve, marked by a line; by default the last of ``predict``, else the
        size at which the picture ends. The picture reaches at least as far.
    interval : {"confidence", "prediction", "conditional", "none"}, optional
        Kind of the band; each curve's default kind, and none for more than ten curves.
        Prediction bands are for the mean of many runs.
    level : float
        Coverage of the band.
    limit : bool
        Mark four times the largest size, beyond which the data do not support an extrapolation.
    held_out : (n, values) or dict of learner to (n, values), optional
        Measurements that the fit did not see, given as they would be to the fit: hollow circles.
    reach : float, optional
        A target in the unit of the fit: a line there, and the size at which each curve reaches it.
    legend : bool
        Name the curves: at their ends in a new figure, with the error there; else in a legend, with that at the
        largest size measured.
    to : float, optional
        Draw to this training size, which must not be below others that the picture shows; by default to four times
        the largest measured. The n^−½ scale has no end.
    predict : array_like, optional
        Training sizes to mark with squares and ticks; the error at the largest of them is written at each curve,
        unless ``at`` is given. The picture reaches at least as far.

    Returns
    -------
    Axes
        The Axes given, or the new ones.

    Examples
    --------
    >>> from curvewise.learning import fit_learning_curve
    >>> n, error = [100, 100, 200, 200, 400, 400], [.32, .30, .24, .25, .19, .18]
    >>> ax = plot_learning_curves(fit_learning_curve(n, error, learner="plain"))
    >>> [text.get_text() for text in ax.texts if text.get_gid() == "curvewise-end"]
    ['plain\n12% at 1,600']
    """
    chosen = check_curves(curves.values() if isinstance(curves, Mapping) else curves)
    failures = curves.failures if isinstance(curves, LearningCurves) else {}
    compared = curves.at if isinstance(curves, LearnerComparison) and at is None else None
    if isinstance(curves, LearningCurves) and at is None:
        at = curves.at
    _check_options(chosen, at, interval, level, reach)
    predicted = check_sizes_to_predict(predict) if np.size(predict) else np.zeros(0)
    outside = _held_out(held_out, chosen)
    axis = SizeAxis(x)
    if to is not None:
        _check_end(axis, to, np.concatenate([*(c.n for c in chosen), *(n for n, _ in outside.values()), predicted]), at)
    with style():
        found = warnings_of(chosen)
        warned = warning_lines(chosen, found, failures)
        # Room for the caption, which has two lines for each warning and for each answer to a target.
        lines = len(warned) + (0 if reach is None else min(len(chosen), MOST_ANSWERS))
        ax = ax or new_axes(7.4, 4.5 + 0.28 * lines)
        own = ax.get_gid() == OWN
        before = [str(line.get_color()) for line in lines_of(ax, NAMED, UNNAMED)]
        reached = [] if reach is None else [c.samples_to_reach(float(reach), level=level) for c in chosen]
        # N is always in the picture; the size that reaches a target only if it is not far out.
        farthest = FARTHEST_DRAWN * max(c.largest_n for c in chosen)
        near = [r.estimate for r in reached if 0 < r.estimate < farthest and to is None]
        picture = _curve_range(ax, axis, chosen, outside, [at, compared, *near, *predicted], to)
        written = float(predicted.max()) if at is None and len(predicted) else at
        looks = looks_of(chosen, compared if written is None else written, len(before), before)
        kind = "none" if interval is None and len(chosen) > CROWD else interval
        labels = labels_of(chosen, picture.high if own and written is None and len(chosen) <= CROWD else written, found)
        for i, (curve, look, label) in enumerate(zip(chosen, looks, labels, strict=True)):
            low = float(min(curve.n[0], outside[i][0].min() if i in outside else np.inf))
            draw_curve(picture, curve, look, label, low, kind, level)
            if look.named:
                draw_predictions(picture, curve, look, predicted)
            if i in outside:
                draw_measurements(picture, group_runs(*outside[i]), look, HELD_OUT)
        marked_at = compared if at is None else at
        limits = draw_limits(picture, chosen, marked_at) if limit else []
        if marked_at is not None and math.isfinite(marked_at) and marked_at not in limits:
            mark_size(picture, marked_at, f"n = {format_number(marked_at)}", gid=AT, ls=":")
        marked = [bool(limits), bool(len(predicted))]
        said = [caption_of(chosen, interval, level, held=bool(outside), limits=marked[0], predicted=marked[1])]
        if reach is not None:
            line = ax.axhline(float(reach), color=NEUTRAL, lw=0.9, zorder=0.5, label="_target")
            line.set_gid(REACH)
            for samples, look in zip(reached, looks, strict=True):
                if look.named:
                    draw_reach(picture, look, samples)
            said += [r.sentences() for r, look in zip(reached, looks, strict=True) if look.named][:MOST_ANSWERS]
        finish_axes(picture, chosen, [n for n in (marked_at, *np.sort(predicted)[::-1], to) if n is not None])
        box, key = name_curves(ax, own, len(chosen)) if legend else (None, "")
        said[0] = f"{said[0]} {key}".strip()
        write_caption(ax, [*said, *warned], under=box if own else None)
    return ax


def plot_measurements(measurements: Measurements, ax: Axes | None = None, **options: Any) -> Axes:
    """Fit a curve to each learner and draw it with the measured values.

    Parameters
    ----------
    measurements : Measurements
        With four sizes or more, as for :func:`curvewise.fit_learning_curves`.
    ax : Axes, optional
        Where to draw; a new pyplot figure by default.
    **options
        As of :func:`plot_learning_curves`.
    """
    with quietly():  # warnings stand below the picture
        curves = fit_learning_curves(measurements)
    return plot_learning_curves(curves, ax, **options)


def _check_options(
    curves: Sequence[Curve], at: float | None, interval: str | None, level: float, reach: float | None
) -> None:
    """Raise before a figure is made."""
    check_level(level)
    curves[0]._size(at)
    if reach is not None:
        curves[0].unit.errors(reach, "reach")
    check_choice("interval", interval or "none", (*INTERVALS, "none"))
    for curve in curves if interval not in (None, "none") else ():
        curve.band(curve.n[:1], interval, level=level)


def _held_out(
    held_out: Values | Mapping[str, Values] | None, curves: Sequence[Curve]
) -> dict[int, tuple[FloatArray, FloatArray]]:
    """Held-out sizes and errors, by the number of the curve they belong to."""
    if held_out is None:
        return {}
    if not isinstance(held_out, Mapping):
        if len(curves) > 1:
            raise InputError("needs a dict of learner to (n, values): there are several.", argument="held_out")
        held_out = {curves[0].learner: held_out}
    places = {c.learner: i for i, c in reversed(list(enumerate(curves)))}
    out = {}
    for learner, pair in held_out.items():
        if learner not in places:
            raise InputError(f"names {learner!r}, which is not among the curves.", argument="held_out")
        n = np.atleast_1d(np.asarray(pair[0], dtype=np.float64))
        values = np.atleast_1d(curves[places[learner]].unit.errors(pair[1], "held_out"))
        if n.shape != values.shape or n.ndim != 1 or not (np.isfinite(n) & (n > 0)).all():
            raise InputError("must be (n, values): positive sizes, one value for each.", argument="held_out")
        out[places[learner]] = (n, values)
    return {i: pair for i, pair in out.items() if len(pair[0])}


def _check_end(axis: SizeAxis, to: float, sizes: FloatArray, at: float | None) -> None:
    """Refuse an end that the picture cannot have: before a size that it shows, or on a scale without end."""
    if axis.name == "sqrt":
        raise InputError("is for scales that end: x='sqrt' reaches to infinite data.", argument="to", value=to)
    shown = float(max([*sizes[np.isfinite(sizes)], 0.0 if at is None or math.isinf(at) else at]))
    if not shown <= check_size(to, "to") < math.inf:
        problem = f"must be {format_number(shown)} or more, the largest size that the picture shows."
        raise InputError(problem, argument="to", value=to)


def _curve_range(
    ax: Axes,
    axis: SizeAxis,
    curves: Sequence[Curve],
    outside: Mapping[int, tuple[FloatArray, FloatArray]],
    asked_for: Sequence[float | None],
    to: float | None,
) -> Picture:
    """The range of sizes: that of the data, what is held out, sizes asked for, and what is there already."""
    there = axis.size(points_of(ax, MEASURED, HELD_OUT)[:, 0])
    asked = np.array([curves[0]._size(n) for n in asked_for if n is not None])
    sizes = np.concatenate([*(c.n for c in curves), *(n for n, _ in outside.values()), there, asked])
    limits = [EXTRAPOLATION_LIMIT * c.largest_n for c in curves]
    high = axis.reach(limits if to is None else [to], sizes if to is None else there)
    if len(there) and axis.name != "sqrt":
        high = max(high, ax.get_xlim()[1])
    return Picture(ax, axis, float(sizes.min()), high)


MOST_ANSWERS = 5
"""Learners for which a caption says when they reach a target."""

FARTHEST_DRAWN = EXTRAPOLATION_LIMIT**2
"""Multiple of the largest size up to which crossings and targets widen a picture."""

CROSSING = "curvewise-crossing"
EQUIVALENCE = "curvewise-equivalence"
AT = "curvewise-at"


def plot_comparison(result: CurveComparison, ax: Axes | None = None, *, x: str = "log", legend: bool = True) -> Axes:
    """Draw both curves, N, where they cross, and the data-equivalence factor as an arrow.

    Parameters
    ----------
    result : CurveComparison
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    x : {"log", "linear", "log-log", "sqrt"}
        Scale of the training size.
    legend : bool
        Name the curves.
    """
    curves = result._curves
    axis = SizeAxis(x)
    found = warnings_of(curves)
    warned = warning_lines(curves, found, {})
    with canvas(ax, 4.9 + 0.28 * len(warned), 7.4) as (ax, own):
        picture = _comparison_range(ax, axis, result)
        labels = labels_of(curves, picture.high if own else result.at, found)
        for curve, look, label in zip(curves, looks_of(curves, result.at, 0), labels, strict=True):
            draw_curve(picture, curve, look, label, float(curve.n[0]), None, result.level)
        limits = draw_limits(picture, curves, result.at)
        if result.at not in limits:
            mark_size(picture, result.at, f"n = {format_number(result.at)}", gid=AT, ls=":")
        finish_axes(picture, curves, [result.at])
        _mark_crossing(picture, result.crossing, curves)
        _mark_equivalence(picture, result)
        box, names = name_curves(ax, own, 2) if legend else (None, "")
        key = f"{caption_of(curves, None, result.level, limits=bool(limits))} {names}".strip()
        write_caption(ax, [result.sentences(), key, *warned], under=box if own else None)
    return ax


def _comparison_range(ax: Axes, axis: SizeAxis, result: CurveComparison) -> Picture:
    """A range that holds both curves, and the crossing and the arrow unless they are far out."""
    curves = result._curves
    farthest = FARTHEST_DRAWN * max(c.largest_n for c in curves)
    others = [result.at, result.crossing.estimate, result.at * result.worse_first[2].estimate]
    near = [n for n in others if math.isfinite(n) and 0 < n <= farthest]
    low = min(float(c.n[0]) for c in curves)
    high = axis.reach([EXTRAPOLATION_LIMIT * c.largest_n for c in curves], near)
    return Picture(ax, axis, min(low, *(max(n, 0.25 * low) for n in near)), high)


def _mark_crossing(at: Picture, crossing: Interval, curves: Sequence[Curve]) -> None:
    if not at.low <= crossing.estimate <= at.high:
        return
    x = float(at.axis.place(crossing.estimate))
    # Where the curves leave more of the height: above their crossing or below it.
    height = at.ax.transLimits.transform(at.ax.transScale.transform((x, curves[0].error_at(crossing.estimate))))[1]
    # The digits of the sentence, which its interval supports.
    text = f"curves cross (n = {format_interval(crossing).split(' [')[0]})"
    mark_value(at.ax, x, text, "--", bottom=height > 0.5, right=height <= 0.5, gid=CROSSING)
    if math.isfinite(crossing.high) and crossing.low > 0:
        ends = at.axis.place([crossing.low, crossing.high])
        strip = at.ax.axvspan(float(ends.min()), float(ends.max()), color=NEUTRAL, alpha=0.15, lw=0.0, zorder=0.3)
        strip.set_gid(CROSSING)


def _mark_equivalence(at: Picture, result: CurveComparison) -> None:
    """An arrow from the better learner's error at N to the size at which the other's curve gets there."""
    worse, _, needed = result.worse_first
    factor = needed.estimate
    if math.isnan(factor) or abs(factor - 1.0) < 0.02:
        return
    edges = np.sort(at.axis.size(at.ax.get_xlim()))
    target = float(np.clip(factor * result.at, edges[0], edges[1]))
    other, better = sorted(result._curves, key=lambda curve: curve.learner != worse)
    height = better.error_at(result.at)
    start, stop = at.axis.place([result.at, target]).tolist()
    look = {"arrowstyle": "-|>", "color": rcParams["text.color"], "shrinkA": 0.0, "shrinkB": 0.0, "linewidth": 1.3}
    at.ax.annotate("", (stop, height), (start, height), arrowprops=look, zorder=4.5, gid=EQUIVALENCE)
    # Between the two curves there is nothing to cover: on the side of the other one, towards the start of the arrow.
    near_start = at.axis.place(result.at**0.6 * max(target, 1e-9) ** 0.4)
    above = other.error_at(result.at) > height
    text = f"{format_number(factor, 2 if factor < 10 else 3)}×"
    if math.isinf(factor):  # in the words of the sentence
        known = 0 < needed.low < math.inf
        text = f"more than {format_number(needed.low, 2)}×" if known else f"not within {SEARCH:,.0f}×"
    place: dict[str, Any] = {"xytext": (0.0, 3.0 if above else -4.0), "textcoords": "offset points", "ha": "center"}
    side = "bottom" if above else "top"
    note(at.ax, text, (float(near_start), height), va=side, fontsize=9.5, gid=EQUIVALENCE, **place)


SHOWN = 40
"""Learners shown of a longer ranking."""

CHANCE = "curvewise-chance"


def plot_ranking(result: LearnerRanking, ax: Axes | None = None, *, most: int = SHOWN) -> Axes:
    """Draw the ranking as a forest plot, best prediction on top, with the chance of being best.

    Parameters
    ----------
    result : LearnerRanking
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    most : int
        Show only this many of the best.
    """
    shown = max(1, min(most, len(result.learners)))
    ends = [end[:shown] for end in (result.error, result.low, result.high)]
    with canvas(ax, 1.7 + 0.26 * shown) as (ax, _):
        few = len(result.learners) <= CROWD
        shades = colours_of(result.learners[:shown], result._places) if few else [INK] * shown
        indent = draw_rows(ax, safe_names(result.learners[:shown]), ends, shades, gid=PREDICTED)
        as_percent(ax.xaxis, result.unit)
        ax.set_xlabel(f"{value_label(result.unit)} at n = {format_number(result.at)}")
        column = ax.get_yaxis_transform()
        ax.text(1.03, -0.75, "chance of being best", transform=column, fontsize=8.5, va="bottom", gid=CHANCE)
        for i, p in enumerate(result.probability_best[:shown]):
            ax.text(1.03, i, format_chance(float(p)), transform=column, fontsize=9.0, va="center", gid=CHANCE)
        lines = [f"Bars: {format_level(result.level)} {result.kind} intervals of the fitted curves."]
        if shown < len(result.learners):
            lines.append(f"The best {shown} of {len(result.learners)} learners are shown.")
        write_caption(ax, [*lines, *warned(result)], indent=indent)
    return ax


def plot_reach(result: SamplesToReach, ax: Axes | None = None) -> Axes:
    """Draw the size that reaches a target, with its interval, on a log scale.

    Parameters
    ----------
    result : SamplesToReach
        What to draw.
    ax : Axes, optional
        Where; a new figure by default. To see it on the curve, use
        ``plot_learning_curves(curve, reach=target)``.
    """
    known = [n for n in (result.low, result.estimate, result.high) if np.isfinite(n) and n > 0] or [1.0, 10.0]
    room = 1.5 if max(known) > min(known) else 3.0
    # An interval without end gets an arrowhead, which needs room.
    limits = min(known) / room, max(known) * (room if np.isfinite(result.high) else 4.0)
    with canvas(ax, 2.3) as (ax, _):
        ax.set_xlim(*limits)
        log_sizes(ax)
        (shade,) = colours_of([result.learner], [result._place])
        ends = [result.estimate], [result.low], [result.high]
        draw_estimates(ax, [0.0], ends, shade, limits=limits, gid=REACH, marker="D", size=6.0)
        name = safe_text(result.learner)
        ax.set_ylim(-1.0, 1.0)
        ax.set_yticks([0.0], labels=[name])
        ax.tick_params(axis="y", length=0)
        target = format_target(result.error, result.unit.name)
        ax.set_xlabel(safe_text(f"number of training samples that reaches {result.unit.quantity} {target}", 80))
        write_caption(ax, [result.sentences(), *warned(result, 2)], indent=len(name) / 14)
    return ax


_MARKERS = "osD^v<>PX*"


def plot_plan(result: SizePlan, ax: Axes | None = None) -> Axes:
    """Draw the runs measured and the runs to add, size by size."""
    place = np.arange(len(result.n))
    unit = result.unit.name
    with canvas(ax, 4.2) as (ax, own):
        have = ax.bar(place, result.runs, width=0.65, color=NEUTRAL, label="_runs")
        extra = ax.bar(
            place, result.add, width=0.65, bottom=result.runs, color=colours_of([result.learner])[0], label="_to add"
        )
        for x, top, add in zip(place, result.runs + result.add, result.add, strict=True):
            if add > 0:
                ax.annotate(f"+{int(add)}", (x, top), (0, 2), textcoords="offset points", ha="center")
        ax.set_xticks(place, labels=[format_number(float(n)) for n in result.n])
        if len(place) > 12:
            ax.tick_params(axis="x", labelrotation=90)
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_ylim(0.0, max(1.0, 1.1 * float((result.runs + result.add).max())))
        ax.set_xlabel("number of training samples")
        ax.set_ylabel("runs")
        now, then = (format_value(width, unit) for width in (result.width_now, result.width_then))
        said = (
            f"{result.learner[:60]}: the interval of the {result.unit.quantity} at n = {format_number(result.at)} is"
            f" expected to narrow from {now} to {then}, for {format_number(result.samples)} training samples."
        )
        key = [(have, "runs measured"), (extra, "runs to add")]
        finish(ax, own, key, [said, *warned(result, 2)], caption=True, columns=2)
    return ax


def plot_left_out(result: LeaveOneSizeOut, ax: Axes | None = None) -> Axes:
    """Draw the error of predicting each size left out, one line per form and weighting."""
    with canvas(ax, 4.2 + 0.2 * len(result.forms)) as (ax, own):
        key = []
        for i, (form, weights) in enumerate(zip(result.forms, result.weights, strict=True)):
            look: dict[str, Any] = {"color": colour(i), "marker": _MARKERS[i % len(_MARKERS)], "ms": 5.0, "lw": 1.4}
            look["ls"] = "--" if form == "last" else "-"
            (line,) = ax.plot(result.sizes, result.rmse[i], label=f"{form}, {weights}", **look)
            name = "nearest size carried over" if form == "last" else f"{form}, weights {weights}"
            average = format_value(float(result.average[i]), result.unit.name)
            key.append((line, safe_text(f"{name}: average {average}", 80)))
        known = result.rmse[np.isfinite(result.rmse)]
        top = float(known.max(initial=1e-9))
        # A log scale where rows differ by much, so that the good ones can be distinguished.
        if len(known) and known.min() > 0 and top > 5.0 * float(known.min()):
            ax.set_yscale("log")
            ax.set_ylim(float(known.min()) / 1.15, 1.15 * top)
            tick_log_values(ax, result.unit)
        else:
            ax.set_ylim(0.0, 1.08 * top)
            as_percent(ax.yaxis, result.unit)
        SizeAxis("log").finish(ax, result.sizes, float(result.sizes[0]), 1.1 * float(result.sizes[-1]))
        ax.set_xlabel("number of training samples of the size left out")
        ax.set_ylabel(f"error of the prediction, RMSE {unit_text(result.unit)}")
        said = f"Root mean square over {format_count(result.curves, 'curve')} of predicted minus measured mean."
        finish(ax, own, key, [said, *warned(result, 2)], caption=True)
    return ax


STABILITY = ("bars", "curves")


def plot_stability(result: Stability, ax: Axes | None = None, *, kind: str = "bars", x: str = "log") -> Axes:
    """Draw how far estimates from one run at each of a few sizes move.

    Parameters
    ----------
    result : Stability
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    kind : {"bars", "curves"}
        Standard deviations of e_N, β_N and α by form, that of γ under its name; or the paper's Fig. 9: all sampled
        curves over the runs they stand for.
    x : {"log", "linear", "log-log", "sqrt"}
        Scale of the training size, of the curves.
    """
    check_choice("kind", kind, STABILITY)
    axis = SizeAxis(x)
    with canvas(ax, 4.4 if kind == "bars" else 5.4) as (ax, own):
        key = _stability_bars(result, ax) if kind == "bars" else _sampled_curves(result, ax, axis)
        said = f"Spread over {result.draws} draws of one run at each of a few sizes; N = {format_number(result.at)}."
        columns = 3 if kind == "bars" else 1
        finish(ax, own, key, [said, *warned(result, 2)], caption=True, columns=columns)
    return ax


SAMPLED = "curvewise-sampled"


def _sampled_curves(result: Stability, ax: Axes, axis: SizeAxis) -> list[tuple[Any, str]]:
    """Draw every sampled curve thinly, means ± one standard deviation that were drawn from, and all runs."""
    data, (sizes, values) = result._data, result._rows
    low = float(data.n[0])
    n = axis.grid(low, axis.reach([EXTRAPOLATION_LIMIT * data.n[-1]], sizes))
    sampled = result.sampled_at(n)
    # Draw by draw, the forms in turn: form by form the last one would hide the others.
    lines = [np.column_stack([axis.place(n), curve]) for draw in np.swapaxes(sampled, 0, 1) for curve in draw]
    faint: dict[str, Any] = {"linewidths": 0.6, "alpha": max(0.15, min(0.6, 15.0 / result.draws)), "zorder": 2.0}
    shades = [colour(i) for i in range(len(result.forms))]
    ax.add_collection(LineCollection(lines, colors=shades * result.draws, gid=SAMPLED, **faint))
    key: list[tuple[Any, str]] = []
    for i, form in enumerate(result.forms):
        spread = format_value(float(result.error_std[i]), result.unit.name)
        key.append((Line2D([], [], color=colour(i)), f"form {form}, error at N ± {spread}"))
    used = ~np.isin(data.n, result.held_out)
    dark, known = rcParams["text.color"], used & (data.freedom > 0)
    mean, std = data.mean[known], np.sqrt(data.variance[known])
    ax.errorbar(axis.place(data.n[known]), mean, std, fmt="none", ecolor=dark, capsize=5.0, zorder=4.4, gid=BARS)
    face: dict[str, Any] = {"facecolors": "white", "edgecolors": dark, "linewidths": 0.8, "s": 18.0}
    dots = ax.scatter(axis.place(sizes), values, zorder=4.2, gid=MEASURED, **face)
    key.append((dots, "runs measured; bars: mean ± 1 standard deviation of the sizes drawn from"))
    unit = result.unit
    log = axis.name == "log-log" and unit.name != "score" and bool((values > 0).all())
    floor = 0.0 if unit.name != "score" and bool((values >= 0).all()) else -math.inf
    finish_values(ax, values, sampled.ravel(), unit, floor, log)
    ax.set_ylabel(value_label(unit))
    axis.finish(ax, data.n, low, float(n[-1]))
    return key


def _stability_bars(result: Stability, ax: Axes) -> list[tuple[Any, str]]:
    groups = {
        "error e_N": result.error_std,
        "data-reliance β_N": result.data_reliance_std,
        "limit of infinite data α": result.alpha_std,
    }
    place = np.arange(len(result.forms))
    key: list[tuple[Any, str]] = []
    for i, (name, std) in enumerate(groups.items()):
        x = place + 0.27 * (i - 1)
        height = np.where(np.isfinite(std), std, 0.0)
        key.append((ax.bar(x, height, width=0.25, color=(INK, "#6e6e6e", "#b4b4b4")[i], label="_std"), name))
        for left, value, top in zip(x, std, height, strict=True):
            text = safe_text(format_value(float(value), result.unit.name))
            ax.annotate(text, (left, top), (0, 2), textcoords="offset points", ha="center", fontsize=8)
    gamma = [format_number(float(g), 2) for g in result.gamma_std]
    ax.set_xticks(place, labels=[f"{safe_text(f)}\n(γ: {g})" for f, g in zip(result.forms, gamma, strict=True)])
    ax.set_ylabel(f"standard deviation {unit_text(result.unit)}")
    as_percent(ax.yaxis, result.unit)
    ax.set_xlabel("form of the curve (in brackets: standard deviation of the exponent γ)")
    return key


def plot_variance_check(result: VarianceCheck, ax: Axes | None = None) -> Axes:
    """Draw the measured variance of runs against the model's, over training size, on log scales.

    Bars are 95% χ² intervals of a variance with the degrees of freedom at each size.
    """
    positive = result.measured > 0
    scale, square = result.shown_in
    n, measured, free = result.n[positive], scale * result.measured[positive], result.freedom[positive]
    modelled = scale * result.modelled
    with canvas(ax, 4.6) as (ax, own):
        low, high = free * measured / chdtri(free, 0.025), free * measured / chdtri(free, 0.975)
        # With a degree of freedom an interval has three decades: beyond one decade it ends in an arrowhead.
        values = np.concatenate([measured, modelled])
        bottom, top = min([*low, *values]), max([*high, *values])
        limits = float(max(0.7 * bottom, 0.1 * values.min())), float(min(1.4 * top, 10.0 * values.max()))
        look: dict[str, Any] = {"horizontal": False, "size": 6.0, "width": 1.1, "gid": MEASURED}
        draw_estimates(ax, n, (measured, low, high), INK, limits=limits, **look)
        (line,) = ax.plot(result.n, modelled, color=NEUTRAL, marker=".", label="_modelled")
        ax.set_yscale("log")
        ax.set_ylim(*limits)
        tick_log_values(ax)
        SizeAxis("log").finish(ax, result.n, float(result.n[0]) / 1.2, 1.3 * float(result.n[-1]))
        ax.set_ylabel(safe_text(f"variance of one run {square and f'({square})'}".strip()))
        key = [(key_dot(INK, size=6.0), "measured, with 95% interval"), (line, "model: constant + σ²/n")]
        finish(ax, own, key, [result.sentences(), *warned(result, 2)], caption=True)
    return ax


CROWD = 10
"""With more curves than this only the best and the worst are named and coloured."""

NAMED_IN_CROWD = 3
"""Number of the best and of the worst."""


def looks_of(curves: Sequence[Curve], at: float | None, start: int, taken: Collection[str] = ()) -> list[CurveLook]:
    """Colours and line styles by learner; in a crowd only for the best and the worst at N.

    Curves fitted together keep the colours they had there, unless others have ``taken`` one of them on the same Axes.
    """
    if len(curves) <= CROWD:
        own = [c._place for c in curves]
        known = [k for k in own if k is not None and colour(k) not in taken]
        kept = len(set(known)) == len(curves)
        places = [place_of(c.learner, known[i] if kept else start + i) for i, c in enumerate(curves)]
        return [CurveLook(colour(k), dashes(k)) for k in places]
    sign = -1.0 if curves[0].unit.name == "score" else 1.0
    order = np.argsort([sign * c.error_at(at) for c in curves], kind="stable")
    named = [*order[:NAMED_IN_CROWD].tolist(), *order[-NAMED_IN_CROWD:].tolist()]
    place = {i: colour(place_of(curves[i].learner, k)) for k, i in enumerate(named)}
    return [CurveLook(place.get(i, NEUTRAL), "-", True, i in place) for i in range(len(curves))]


def finish_axes(picture: Picture, curves: Sequence[Curve], ticks: Sequence[float] | FloatArray = ()) -> None:
    """Scales, limits and ticks, by all that is on the Axes; a log scale of errors only where all are above 0."""
    ax, unit = picture.ax, curves[0].unit
    points = points_of(ax, MEASURED, HELD_OUT)
    targets = heights_of(lines_of(ax, REACH))
    measured = np.concatenate([points[:, 1], targets])
    lines = lines_of(ax, NAMED, UNNAMED, BEYOND)
    log = picture.axis.name == "log-log" and unit.name != "score"
    log = log and bool((measured > 0).all())
    floor = 0.0 if unit.name != "score" and bool((measured >= 0).all()) else -math.inf
    drawn = [c for c in ax.collections if isinstance(c, LineCollection) and c.get_gid() == BARS]
    heights = np.concatenate([np.zeros(0), *(segment[:, 1] for c in drawn for segment in c.get_segments())])
    ends = np.clip(heights, floor, unit.top)
    measured = np.concatenate([measured, ends[ends > 0.5 * measured.min()] if log else ends])
    finish_values(ax, measured, heights_of(lines), unit, floor, log)
    ax.set_ylabel(value_label(unit))
    sizes = picture.axis.size(points[:, 0])
    marks = picture.axis.size([float(np.asarray(m.get_xdata())[0]) for m in lines_of(ax, LIMIT)])
    # Sizes asked for come before all others; of four times the largest size the line is enough.
    asked = [n for n in ticks if math.isfinite(n)]
    others = np.array([n for n in (*sizes, *marks) if all(abs(math.log(n / k)) > 0.2 or n == k for k in asked)])
    picture.axis.finish(ax, others, picture.low, picture.high, asked)


def name_curves(ax: Axes, own: bool, curves: int) -> tuple[Legend | None, str]:
    """Write names at the ends of the curves of our own figure; a legend in other Axes and for a crowd.

    Returns the legend, and what the caption must add on numbers beside the names.
    """
    named = lines_of(ax, NAMED)
    for text in [t for t in ax.texts if t.get_gid() == END]:
        text.remove()  # of an earlier call on the same Axes
    labels = [str(line.get_label()) for line in named]
    if own and curves <= CROWD:
        ends = [_end_of(ax, line) for line in named]
        key = ""
        if len(named) > MOST_NUMBERS:
            labels = [label.split("\n")[0] for label in labels]
        elif end_places(ax, [y for _, y in ends], 2, TALL)[1] > MOVED:
            # In one line, and the size in the caption.
            parts = [label.replace("\n", " at ").rsplit(" at ", 2) for label in labels]
            labels, sizes = [f"{name}, {value}" for name, value, _ in parts], {size for *_, size in parts}
            where = f"n = {sizes.pop()}" if len(sizes) == 1 else "its largest size"
            key = f"At the names: the value at {where}."
        name_ends(ax, ends, labels, [str(line.get_color()) for line in named], TALL)
        return None, key
    if curves > CROWD:  # best first
        order = sorted(range(len(named)), key=lambda i: labels[i].rpartition("\n")[2])
        order = sorted(order, key=lambda i: float(named[i].get_ydata()[-1]))  # type: ignore[index, arg-type]
        named, labels = [named[i] for i in order], [labels[i] for i in order]
    same = ("color", "linestyle", "linewidth")
    looks = [{k: getattr(line, f"get_{k}")() for k in same} for line in named]
    handles = [Line2D([], [], marker="o", markersize=4.5, **look) for look in looks]
    labels = [label.replace("\n", "  ") for label in labels]
    if curves > CROWD:
        handles.append(Line2D([], [], color=NEUTRAL, linewidth=0.8))
        labels.append(f"{curves - len(named)} more; the {NAMED_IN_CROWD} best and worst are named")
    return make_legend(ax, handles, labels, outside=own), ""


TALL = 3.0
"""Inches that labels and captions leave to the Axes of a figure of ours."""

MOST_NUMBERS = 6
"""Curves up to which their errors are written under their names."""

MOVED = 0.12
"""Share of the Axes that names of two lines may be moved apart; else they have one line."""


def _end_of(ax: Axes, line: Line2D) -> tuple[float, float]:
    """The last point of a curve in the picture, within the limits of the errors."""
    parts = [k for k in lines_of(ax, NAMED, BEYOND) if k.get_color() == line.get_color()]
    points = np.concatenate([np.column_stack(k.get_data()) for k in parts]).astype(np.float64)
    x, y = points[np.argmin(np.abs(points[:, 0] - ax.get_xlim()[1]))]
    return float(x), float(np.clip(y, *ax.get_ylim()))


NAMED = "curvewise-named-curve"
UNNAMED = "curvewise-curve"
BEYOND = "curvewise-beyond"
BAND = "curvewise-band"
MEASURED = "curvewise-measured"
HELD_OUT = "curvewise-held-out"
BARS = "curvewise-bars"
LIMIT = "curvewise-limit"
REACH = "curvewise-reach"
PREDICTED = "curvewise-predicted"
"""Group ids of the artists, by which a later call on the same Axes finds them."""

VERY_MUCH = 1e30


@dataclass(frozen=True)
class CurveLook:
    """Look of one curve: its colour and line style, and whether it is one of a crowd."""

    colour: str
    dashes: Any = "-"
    crowd: bool = False
    named: bool = True

    @property
    def width(self) -> float:
        """Line width in points."""
        return 1.8 if not self.crowd else 1.4 if self.named else 0.6

    @property
    def alpha(self) -> float:
        """Opacity of lines."""
        return 1.0 if self.named else 0.4

    @property
    def zorder(self) -> float:
        """Named curves lie on top."""
        return 3.0 if self.named else 2.0

    @property
    def line(self) -> dict[str, Any]:
        """Options of a line."""
        return {"color": self.colour, "linewidth": self.width, "zorder": self.zorder}


@dataclass(frozen=True)
class Picture:
    """Axes, the scale of sizes, and the sizes from low to high that curves are drawn over."""

    ax: Axes
    axis: SizeAxis
    low: float
    high: float


def draw_curve(
    at: Picture, curve: Curve, look: CurveLook, label: str, low: float, interval: str | None, level: float
) -> None:
    """Draw a curve from the size ``low`` on: its interval unless that is "none", its line, its measurements."""
    if interval != "none":
        draw_band(at, curve, look, interval, level, low)
    # The learner's own line style over the sizes measured, thin dashes where it is extrapolated.
    smallest, largest = float(curve.n[0]), float(curve.largest_n)
    inside = {"linestyle": look.dashes, "alpha": look.alpha, "label": label}
    inside["gid"] = NAMED if look.named else UNNAMED
    outside = {"linestyle": (0, (3, 2)), "alpha": look.alpha, "label": "_beyond", "gid": BEYOND}
    outside["linewidth"] = 0.75 * look.width
    for start, stop, measured in ((low, smallest, False), (smallest, largest, True), (largest, at.high, False)):
        # A single size has no stretch, but its point is drawn and gives the legend its line.
        if start < stop or measured:
            n = at.axis.grid(start, stop)
            options: dict[str, Any] = {**look.line, **(inside if measured else outside)}
            at.ax.plot(at.axis.place(n), curve.errors_at(n), **options)
    draw_measurements(at, curve, look)


def draw_band(at: Picture, curve: Curve, look: CurveLook, interval: str | None, level: float, low: float) -> None:
    """Draw the interval of the curve, shaded wherever it is finite."""
    n = at.axis.grid(low, at.high)
    # Only a power law knows a limit of infinite data; the others are asked for very much of it.
    sizes = n if isinstance(curve, LearningCurve) else np.minimum(n, VERY_MUCH)
    band = curve.band(sizes, interval, level=level, runs=np.inf)
    finite = np.isfinite(band["low"]) & np.isfinite(band["high"])
    if finite.any():
        bottom, top = (np.where(finite, band[end], 0.0) for end in ("low", "high"))
        shade: dict[str, Any] = {"color": look.colour, "alpha": 0.06 if look.crowd else 0.18, "linewidth": 0.0}
        at.ax.fill_between(at.axis.place(n), bottom, top, where=finite.tolist(), zorder=1.0, gid=BAND, **shade)


def draw_measurements(at: Picture, data: Curve | GroupedRuns, look: CurveLook, gid: str = MEASURED) -> None:
    """Draw size means as circles, larger for more runs, with ±1 standard deviation of one run; hollow if held out."""
    hollow, place = gid == HELD_OUT, at.axis.place(data.n)
    known = (data.runs > 1) & np.isfinite(data.variance)
    # In a crowd the bars would hide the curves.
    if known.any() and (hollow or not look.crowd):
        mean, std = data.mean[known], np.sqrt(data.variance[known])
        bar: dict[str, Any] = {**look.line, "linewidth": 0.9}
        at.ax.vlines(place[known], mean - std, mean + std, gid=BARS, **bar)
    # Areas grow with the root of the runs, as precision does; beyond 50 runs they would only hide each other.
    area = np.full_like(data.n, 4.0) if look.crowd else 16.0 + 3.0 * np.sqrt(np.minimum(data.runs, 50.0))
    face: dict[str, Any] = {"facecolors": look.colour, "linewidths": 0.0, "s": area}
    if hollow:
        face = {"facecolors": "none", "linewidths": 1.2, "s": 1.4 * area}
    face |= {"edgecolors": look.colour, "alpha": look.alpha, "zorder": look.zorder + 0.1}
    at.ax.scatter(place, data.mean, label="_circles", **face).set_gid(gid)


def draw_predictions(at: Picture, curve: Curve, look: CurveLook, n: FloatArray) -> None:
    """Draw hollow squares on the curve at sizes that were asked for."""
    known = n[np.isfinite(n)]
    square: dict[str, Any] = {"marker": "s", "markersize": 5.5, "markerfacecolor": "white", "label": "_predicted"}
    at.ax.plot(at.axis.place(known), curve.errors_at(known), linestyle="none", gid=PREDICTED, **square, **look.line)


def draw_limits(at: Picture, curves: Iterable[Curve], asked: float | None) -> list[float]:
    """Draw a line at four times the largest size, none where curves differ in it by much; return the sizes marked."""
    # More than three lines say nothing about any one curve; the dashes of each still do.
    limits = sorted({EXTRAPOLATION_LIMIT * c.largest_n for c in curves})
    limits = [n for n in limits if n <= at.high] if len(limits) <= 3 else []
    for limit in limits:
        also = f"n = {format_number(limit)}, " if limit == asked else ""
        mark_size(at, limit, f"{also}4 × largest size", gid=LIMIT)
    return limits


def mark_size(at: Picture, n: float, text: str, *, gid: str, ls: str = "-") -> None:
    """Draw a thin vertical line at a size, with its text along it, at the top."""
    x = float(at.axis.place(n))
    # A second picture on the same Axes marks the same size again.
    if x in [float(np.asarray(line.get_xdata())[0]) for line in lines_of(at.ax, gid)]:
        return
    mark_value(at.ax, x, text, ls, gid=gid)


def draw_reach(at: Picture, look: CurveLook, found: SamplesToReach) -> None:
    """Draw a diamond where the curve reaches a target, with the interval of that size."""
    same: dict[str, Any] = {"color": look.colour, "label": "_reach", "gid": REACH}
    low, high = (float(np.clip(n, at.low, at.high)) for n in (found.low, found.high))
    if high > low and not look.crowd:
        strip: dict[str, Any] = {"linewidth": 4.5, "alpha": 0.45, "solid_capstyle": "butt", "zorder": 3.4, **same}
        at.ax.plot(at.axis.place([low, high]), [found.error, found.error], **strip)
    if at.low <= found.estimate <= at.high and np.isfinite(found.estimate):
        diamond: dict[str, Any] = {"marker": "D", "markersize": 6.0, "markeredgecolor": "white", "zorder": 3.6, **same}
        at.ax.plot(at.axis.place([found.estimate]), [found.error], linestyle="none", **diamond)


def lines_of(ax: Axes, *gids: str) -> list[Line2D]:
    """Lines drawn here by an earlier layer."""
    return [line for line in ax.lines if line.get_gid() in gids]


def points_of(ax: Axes, *gids: str) -> FloatArray:
    """Positions of circles drawn here by an earlier layer, shape (P, 2)."""
    circles = [c for c in ax.collections if isinstance(c, PathCollection) and c.get_gid() in gids]
    return np.concatenate([np.zeros((0, 2)), *(np.asarray(c.get_offsets(), dtype=np.float64) for c in circles)])


def heights_of(lines: Sequence[Line2D]) -> FloatArray:
    """All y values of the lines."""
    parts: list[ArrayLike] = [np.asarray(line.get_ydata(), dtype=np.float64) for line in lines]
    return np.concatenate([np.zeros(0), *parts])


Warnings: TypeAlias = Sequence[tuple[str, ...]]
"""The warnings of each curve of a picture, in the order of the curves."""


def warnings_of(curves: Sequence[Curve]) -> Warnings:
    """All warnings of each curve; in a crowd only those of the fit, as the others are costly."""
    return [c.warnings if len(curves) > CROWD else c.all_warnings for c in curves]


def labels_of(curves: Sequence[Curve], at: float | None, found: Warnings) -> list[str]:
    """Write name and error at a size of each curve, in two lines, with a mark if it is flagged."""
    labels = []
    for name, curve, flags in zip(safe_names((c.learner for c in curves), 26), curves, found, strict=True):
        mark = f" {safe_text('⚠')}" if flags else ""
        # With its size: the line goes on to where the name stands, and is lower there.
        value = format_value(curve.error_at(at), curve.unit.name)
        if len(curves) <= CROWD:  # in the digits of the table, which its interval supports
            value = format_interval(curve.interval_at(at).error, curve.unit.name).split(" [")[0]
        text = f"{value} at {format_number(curve._size(at))}"
        labels.append(f"{name}{mark}\n{safe_text(text)}")
    return labels


def caption_of(
    curves: Sequence[Curve],
    interval: str | None,
    level: float,
    *,
    held: bool = False,
    limits: bool = False,
    predicted: bool = False,
) -> str:
    """Explain what is shaded, and what circles, bars and dashes mean."""
    parts = []
    crowd = len(curves) > CROWD
    kinds = dict.fromkeys(interval or c.default_interval for c in curves)
    if interval != "none" and not (crowd and interval is None):
        parts.append(f"Shaded: {format_level(level)} {' and '.join(_KINDS[k] for k in kinds)}.")
    spread = not crowd and any(bool((c.runs > 1).any()) for c in curves)
    parts.append(
        "Circles: mean of the runs at a size" + (", bars: ±1 standard deviation of one run." if spread else ".")
    )
    if held:
        parts.append("Hollow: not used for the fit.")
    parts.append("Dashed: extrapolated." if not predicted else "Dashed: extrapolated, squares: predictions.")
    if limits:
        parts.append("Beyond 4 × the largest size measured the data do not support the form of a curve.")
    return " ".join(parts)


_KINDS = {
    "confidence": "confidence interval of the curve",
    "prediction": "prediction interval of the mean of many runs",
    "conditional": "interval of the curve with its exponent taken as known",
}


def warning_lines(curves: Sequence[Curve], found: Warnings, failures: Mapping[str, str]) -> list[str]:
    """The first warning of the first few flagged curves, and how many more there are."""
    most = 3 if len(curves) <= CROWD else 1
    flagged = [(c.learner, neutral(flags[0])) for c, flags in zip(curves, found, strict=True) if flags]
    alike: dict[str, list[tuple[str, str]]] = {}
    for name, text in flagged:  # those that differ in numbers at most stand together
        alike.setdefault(re.sub(r"\d[\d.,]*", "", text), []).append((name[:60], text))
    shown = list(alike.values())[:most]
    lines = [f"⚠ {', '.join(name for name, _ in group)}: {group[0][1]}" for group in shown]
    lines = [textwrap.shorten(line, 260, placeholder=" …") for line in lines]
    if (more := len(flagged) - sum(map(len, shown))) > 0:
        lines.append(f"⚠ {more} more of the {len(curves)} curves are flagged.")
    if failures:
        count, verb = format_count(len(failures), "learner"), "is" if len(failures) == 1 else "are"
        lines.append(f"⚠ {count} could not be fitted and {verb} not drawn.")
    return lines
