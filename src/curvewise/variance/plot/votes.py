"""Pictures of votes: disagreement, ensembles, calibration, and examples that err together."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from curvewise.drawing.axes import is_narrow, log_sizes, view, width_of
from curvewise.drawing.labels import clean, safe_names, shorten
from curvewise.drawing.marks import bars, beside, choose, diagonal, ends_of, finish, key_dot, note, warned
from curvewise.drawing.rows import draw_rows
from curvewise.drawing.style import INK, NEUTRAL, canvas, colour
from curvewise.text import format_interval, format_level, format_pvalue
from curvewise.types.results import FloatArray, Interval
from curvewise.variance.anova import decimals
from curvewise.variance.calibration import Bipartitions, Calibration
from curvewise.variance.pairs import DependentPairs
from curvewise.variance.plot.runs import DrawnUnit, series_colour
from curvewise.variance.votes import Disagreement, Ensemble

POINT = "curvewise-point"
BINS = "curvewise-bins"
LINE = "curvewise-line"
BAND = "curvewise-band"
PAIRS = "curvewise-pairs"
LABEL = "curvewise-label"
TASKS = "curvewise-tasks"
POINTS = "curvewise-points"
"""Group ids of the artists."""

_LABELLED = 5
_MANY_BARS = 60
_SHOWN = 30
_VERDICTS = {
    "holds": "The formulas of class-wise calibration may be used here.",
    "close": "Not quite calibrated, but the formulas of calibration may be used here.",
    "fails": "Not class-wise calibrated: its formulas must not be used here.",
    "undecided": "Too few runs and examples to tell whether the formulas may be used.",
}


def plot_disagreement(
    result: Disagreement,
    ax: Axes | None = None,
    *,
    what: str = "mean",
    name: str | None = None,
    caption: bool | None = None,
) -> Axes:
    """Draw how often two runs disagree against how often one errs.

    Drawn again on the same Axes, another training gets the next colour.

    Parameters
    ----------
    result : Disagreement
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    what : {"mean", "examples"}
        The means over all examples with their intervals; or means over examples on which runs
        disagree alike.
    name : str, optional
        Name to write beside it.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    choose("what", what, ("mean", "examples"))
    with canvas(ax, 4.8) as (ax, own):
        drawn = [line for line in ax.lines if line.get_gid() in (POINT, BINS)]
        shade = colour(len(drawn))
        if what == "mean":
            _mean(ax, result, name, shade)
        else:
            _like_examples(ax, result, shade)
        ax.set(xlabel="error of a run (%)", ylabel="disagreement of two runs (%)")
        measure = DrawnUnit("fraction")
        of = f" of {shorten(clean(name), 40)}" if name else ""
        lines = [
            "Dashed: equal, as for calibrated votes.",
            f"Error minus disagreement{of}: {measure.range(result.gap)} ({format_pvalue(result.pvalue)}).",
            *warned(result),
        ]
        finish(ax, own, [], lines, caption=caption)
    return ax


def _mean(ax: Axes, result: Disagreement, name: str | None, shade: str) -> None:
    measure = DrawnUnit("fraction")
    x, left, right = measure.of(tuple(result.error)).tolist()
    y, low, high = measure.of(tuple(result.disagreement)).tolist()
    bars(ax, [x], [low], [high], shade, limits=(0.0, 100.0))
    bars(ax, [y], [left], [right], shade, limits=(0.0, 100.0), horizontal=True)
    ax.plot([x], [y], "o", color=shade, ms=6.5, gid=POINT, label="_training")
    # Points of earlier calls must stay in view.
    points = [line for line in ax.lines if line.get_gid() == POINT]
    drawn = [float(v[0]) for p in points for v in (np.asarray(p.get_xdata()), np.asarray(p.get_ydata()))]
    ends = np.array([low, high, left, right, *drawn])
    # From 0 unless that would leave more than half of the picture empty.
    start = 0.0 if ends.min() < 0.5 * ends.max() else float(ends.min())
    pad = 0.08 * max(float(ends.max()) - start, 1.0)
    limits = max(0.0, start - pad), min(100.0, float(ends.max()) + pad)
    _square(ax, *limits)
    if name:
        right_half = x > sum(limits) / 2
        aside: dict[str, Any] = {"ha": "right" if right_half else "left", "va": "top", "color": shade}
        beside(ax, shorten(clean(name), 24), (x, y), (-6 if right_half else 6, -5), **aside)


def _square(ax: Axes, low: float, high: float) -> None:
    for line in [line for line in ax.lines if line.get_gid() == "curvewise-diagonal"]:
        line.remove()
    diagonal(ax, low, high)
    ax.set(xlim=(low, high), ylim=(low, high))


def _like_examples(ax: Axes, result: Disagreement, shade: str, count: int = 10) -> None:
    """Means over examples in equal ranges of disagreement; area by their number."""
    disagree, error = result.example_disagreement, result.example_errors
    top = float(disagree.max()) or 1.0
    # Equal ranges of disagreement, not equal numbers: most examples have none.
    place = np.minimum((disagree / top * count).astype(int), count - 1)
    size = np.bincount(place, minlength=count)
    some = size > 0
    x, y = (100 * np.bincount(place, v, count)[some] / size[some] for v in (error, disagree))
    ax.plot(x, y, color=shade, lw=1.0, alpha=0.7, gid=BINS, label="_bins")
    ax.scatter(x, y, s=12 + 120 * np.sqrt(size[some] / size.sum()), color=shade, zorder=2.5, lw=0.0)
    _square(ax, 0.0, 1.06 * float(max(x.max(), y.max())) or 1.0)


def plot_ensemble(result: Ensemble, ax: Axes | None = None, *, caption: bool | None = None) -> Axes:
    """Draw the error of ensembles against their size, on a log scale of sizes.

    Parameters
    ----------
    result : Ensemble
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    measure = DrawnUnit("fraction")
    estimate, low, high = map(measure.of, ends_of(result.errors))
    with canvas(ax, 4.0) as (ax, own):
        sizes = result.sizes.astype(np.float64)
        shade = colour(0)
        ax.fill_between(sizes, low, high, color=shade, alpha=0.18, lw=0.0, gid=BAND)
        ax.plot(sizes, estimate, color=shade, marker="o", ms=5, gid=LINE, label="_error")
        ax.axhline(estimate[0], color=NEUTRAL, ls="--", lw=0.9, zorder=0.6, label="_single")
        place: dict[str, Any] = {"xycoords": ax.get_yaxis_transform(), "ha": "right", "color": "#6E6E6E"}
        beside(ax, "a single run", (0.99, estimate[0]), (0, 2), **place)
        ax.set_ylim(*view(estimate, low, high, floor=0.0))
        log_sizes(ax, sizes.tolist())
        ax.set(xlabel="runs in the ensemble", ylabel="error (%)")
        how = {"vote": "vote by plurality", "average": "averaged scores"}[result.method]
        said = (
            f"All {result.runs:,} runs ({how}) gain {measure.range(result.gain)} over a single run."
            f" Shaded: {format_level(result.level)} intervals for new examples."
        )
        finish(ax, own, [], [said, *warned(result)], caption=caption)
    return ax


def plot_dependent_pairs(result: DependentPairs, ax: Axes | None = None, *, caption: bool | None = None) -> Axes:
    """Draw how often both examples of a pair are right against what independence would give.

    Parameters
    ----------
    result : DependentPairs
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    x, y = 100 * result.expected_correct, 100 * result.both_correct
    with canvas(ax, 5.0) as (ax, own):
        diagonal(ax, 0.0, 100.0)
        effect = 100 * result.min_effect
        edge = np.array([0.0, 100.0])
        ax.fill_between(edge, edge - effect, edge + effect, color=NEUTRAL, alpha=0.15, lw=0.0, gid=BAND)
        if 0 < len(x) <= _MANY_BARS:
            _, low, high = ends_of(result.differences)
            bars(ax, x, x + 100 * low, x + 100 * high, colour(0), limits=(0.0, 100.0), width=1.0)
        look: dict[str, Any] = {"s": 22 if len(x) <= _MANY_BARS else 10, "linewidths": 0.0}
        ax.scatter(x, y, color=colour(0), zorder=2.6, rasterized=len(x) > 2000, gid=PAIRS, **look)
        ax.set(xlim=(0.0, 100.0), ylim=(0.0, 100.0))
        _label_pairs(ax, result, x, y)
        ax.set(xlabel="both right if independent (%)", ylabel="both right (%)")
        listed = len(result.first)
        if result.named:
            finish(ax, own, [], [result.sentences(), *warned(result)], caption=caption)
            return ax
        text = (
            f"{result.dependent:,} of {result.pairs:,} pairs lie {DrawnUnit('fraction').text(result.min_effect)} or"
            f" more off the diagonal (outside the grey band) over {result.runs:,} runs, and not by chance"
            f"{f'; the {listed:,} largest are drawn' if listed < result.dependent else ''}."
            f"{' Numbers: the two examples.' if listed else ''}"
        )
        finish(ax, own, [], [text, *warned(result)], caption=caption)
    return ax


def _label_pairs(ax: Axes, result: DependentPairs, x: FloatArray, y: FloatArray) -> None:
    """Names of the first few, unless another name or the edge is too near."""
    if len(x) == 0:
        at = {"xycoords": "axes fraction", "ha": "center", "gid": LABEL}
        note(ax, "no pair is shown to be dependent", (0.5, 0.06), **at)
        return
    far = (30.0, 8.0) if is_narrow(ax) else (18.0, 5.0)
    kept: list[int] = []
    for i in range(min(_LABELLED, len(x))):
        clear = all(abs(x[i] - x[k]) > far[0] or abs(y[i] - y[k]) > far[1] for k in kept)
        names = (shorten(clean(str(n)), 14) for n in (result.first_ids[i], result.second_ids[i]))
        text, above = ", ".join(names), y[i] > x[i]
        size = 8.5 * len(text) / width_of(ax)
        if not clear or not (size < x[i] if above else x[i] + size < 100):
            continue
        kept.append(i)
        aside = {"ha": "right" if above else "left", "va": "bottom" if above else "top", "gid": LABEL, "color": INK}
        beside(ax, text, (float(x[i]), float(y[i])), (-6, 3) if above else (6, -3), **aside)


def plot_calibration(
    result: Calibration, ax: Axes | None = None, *, what: str = "reliability", caption: bool | None = None
) -> Axes:
    """Draw how far the votes of the runs are calibrated, and the variance that follows from it.

    Parameters
    ----------
    result : Calibration
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    what : {"reliability", "std", "classes"}
        How often a class is true, by the share of runs that vote for it; the measured standard
        deviation beside those predicted; or what each class adds to error minus disagreement.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    choose("what", what, tuple(_DRAWN))
    rows = len(result.predicted) + 2 if what == "std" else min(_SHOWN, len(result.class_checks))
    with canvas(ax, 5.0 if what == "reliability" else 2.0 + 0.28 * rows) as (ax, own):
        lines, indent = _DRAWN[what](ax, result)
        said = [*lines, _VERDICTS[result.verdict], *warned(result)]
        finish(ax, own, [], said, caption=caption, indent=indent)
    return ax


def _reliability(ax: Axes, result: Calibration) -> tuple[list[str], float]:
    table = result.reliability_columns()
    known = table["cells"] > 0
    # Sorted: bins are by the votes of all runs, confidences leave one out.
    order = np.argsort(table["confidence"][known])
    x, y, low, high = (100 * table[k][known][order] for k in ("confidence", "frequency", "low", "high"))
    diagonal(ax, 0.0, 100.0)
    bars(ax, x, low, high, colour(0), limits=(0.0, 100.0))
    ax.plot(x, y, color=colour(0), marker="o", ms=5, lw=1.2, gid=BINS, label="_bins")
    ax.set(xlim=(-3, 103), ylim=(-3, 103), xlabel="votes for a class (% of runs)", ylabel="class is true (%)")
    gap = DrawnUnit("fraction").range(result.checks[0].difference)
    return [f"Bars: {format_level(result.level)} intervals. Error minus disagreement: {gap}."], 0.0


def _stds(ax: Axes, result: Calibration) -> tuple[list[str], float]:
    """The measured standard deviation and those predicted, true differences between runs added."""
    measure, nothing = DrawnUnit("fraction"), Interval(result.independent_std, math.nan, math.nan)
    rows = {"measured": result.measured, "independent errors": nothing, **result.total}
    shades = [series_colour("test set"), series_colour("independent"), *[colour(3)] * len(result.total)]
    estimate, low, high = map(measure.of, ends_of(rows.values()))
    ax.axvspan(low[0], high[0], color=shades[0], alpha=0.12, lw=0.0, zorder=0.3, gid=POINTS)
    words = {"two_classes": "two classes, err/2n", "lower_bound": "at least err/nk"}
    indent = draw_rows(ax, [words.get(name, name) for name in rows], (estimate, low, high), shades, gid=POINTS)
    ax.set_xlabel("std between runs (%)")
    return ["Predictions have the variance of true error added; independent errors have not."], indent


def _classes(ax: Axes, result: Calibration) -> tuple[list[str], float]:
    measure = DrawnUnit("fraction")
    order = np.argsort([c.adjusted for c in result.class_checks], kind="stable")[:_SHOWN]
    checks = [result.class_checks[i] for i in np.sort(order)]
    estimate, low, high = map(measure.of, ends_of(c.difference for c in checks))
    shades = [INK if c.adjusted < 1 - result.level else NEUTRAL for c in checks]
    names = safe_names((str(c.name) for c in checks), 12 if is_narrow(ax) else 28)
    indent = draw_rows(ax, names, (estimate, low, high), shades, zero=0.0, gid=POINTS)
    ax.set_xlabel("part of error − disagreement (%)")
    said = "Dark: differs significantly from 0 (Holm over the classes)."
    if len(checks) < len(result.class_checks):
        said += f" The {len(checks)} clearest of {len(result.class_checks)} classes are shown."
    return [said], indent


_DRAWN = {"reliability": _reliability, "std": _stds, "classes": _classes}


def plot_bipartitions(
    result: Bipartitions, ax: Axes | None = None, *, legend: bool = True, caption: bool | None = None
) -> Axes:
    """Draw predicted against measured standard deviations of all two-class tasks.

    Parameters
    ----------
    result : Bipartitions
        The result to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    measure = DrawnUnit("fraction")
    measured = measure.of(result.measured)
    series = (
        ("binomial", measure.of(result.binomial), result.binomial_r_squared, colour(4), "s"),
        ("calibrated, err/2n", measure.of(result.calibrated), result.r_squared, colour(0), "o"),
    )
    with canvas(ax, 5.0) as (ax, own):
        every = np.concatenate([measured, *(s[1] for s in series)])
        low, high = float(every.min()), float(every.max())
        pad = 0.05 * (high - low) or 0.05 * high
        limits = max(0.0, low - pad), high + pad
        line = diagonal(ax, *limits)
        key: list[tuple[Any, str]] = []
        for name, predicted, r, shade, marker in series:
            dots = ax.scatter(predicted, measured, s=14, color=shade, marker=marker, alpha=0.6, lw=0.0, zorder=2.2)
            dots.set_gid(TASKS)
            key.append((key_dot(shade, marker), f"{name}: R² = {r.estimate:.2f}"))
        key = [*key[::-1], *([] if is_narrow(ax) else [(line, "equal")])]
        ax.set(xlim=limits, ylim=limits, xlabel="predicted std (%)", ylabel="measured std (%)")
        which = f"All {result.tasks:,}" if result.tasks == result.possible else f"{result.tasks:,} of the possible"
        which = f"{which} two-class tasks from {result.classes} classes"
        which = f"{result.tasks:,} trainings for two classes" if result.trained else which
        ours, theirs = (format_interval(r, write=decimals(2)) for r in (result.r_squared, result.binomial_r_squared))
        text = (
            f"{which}, {result.runs:,} runs. R² = 1 − SSE/SST: {ours},"
            f" binomial {theirs}. Error and disagreement differ on {result.rejected:,} tasks."
        )
        place: dict[str, Any] = {"columns": 3 if own else 1, "loc": "upper left"}
        finish(ax, own, key, [text, *warned(result)], legend=legend, caption=caption, **place)
    return ax
