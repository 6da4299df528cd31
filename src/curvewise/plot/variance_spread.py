"""Pictures of how runs spread: histograms beside what independent errors would give."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator

from curvewise.plot.style import NEUTRAL, colour, new_axes, style
from curvewise.plot.variance_parts import SERIES, Measure, choose, finish, is_narrow, note, warned
from curvewise.tables import number
from curvewise.types import FloatArray, Interval
from curvewise.variance._error_counts import drawn_together
from curvewise.variance.accuracy import AccuracyDistribution
from curvewise.variance.decomposition import VarianceDecomposition
from curvewise.variance.poisson_binomial import poisson_binomial_pmf
from curvewise.variance.wording import said_pvalue

HISTOGRAM = "curvewise-histogram"
PREDICTED = "curvewise-predicted"
SPREAD = "curvewise-spread"

_FEW_POINTS = 25
_LIKELY = 3e-4


def plot_decomposition(
    result: VarianceDecomposition,
    ax: Axes | None = None,
    *,
    what: str = "runs",
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw run errors with what independent errors would give, and the standard deviations.

    Parameters
    ----------
    result : VarianceDecomposition
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    what : {"runs", "examples"}
        The errors of runs; or those of examples over runs, counted on a log scale.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    choose("what", what, ("runs", "examples"))
    with style():
        own = ax is None
        ax = ax or new_axes(height=4.2 if what == "runs" else 3.8)
        measure = Measure(result.unit)
        if what == "examples":
            _examples(ax, result, measure)
            finish(ax, own, [], _examples_caption(result), caption=caption)
            return ax
        key = _runs(ax, result, measure)
        _spreads(ax, result, measure)
        lines = _runs_caption(result)
        # The bars on top say what the colours are; in someone's Axes there is no room to repeat it.
        finish(ax, own, key if own else [], lines, legend=legend, caption=caption, columns=2)
    return ax


def _runs(ax: Axes, result: VarianceDecomposition, measure: Measure) -> list[tuple[Any, str]]:
    errors, totals = measure.of(result.run_errors), result._totals
    exact = totals.binary and result.repeats == 1 and result.groups is None
    step = float(measure.of(1 / result.examples)) if exact else 0.0
    edges = _edges(errors, step)
    bars = _histogram(ax, errors, edges)
    scale = result.runs * (edges[1] - edges[0])
    if exact:
        pmf = poisson_binomial_pmf(drawn_together(result.example_errors, result.runs))
        likely = np.flatnonzero(pmf > _LIKELY * pmf.max())
        x, y = likely * step, pmf[likely] * scale / step
    else:
        x, y = _normal(float(errors.mean()), float(measure.of(result.independent_std)), scale)
    line = _curve(ax, x, y, SERIES["independent"], "-")
    ax.set_xlabel(measure.label("test error of a run"))
    _count_axis(ax, 0.22, result.runs)
    how = "independent errors" if result.groups is None else "independent groups"
    how = how if exact else f"{how} (normal)"
    return [(bars[0], f"{result.runs:,} runs"), (line, how)]


def _spreads(ax: Axes, result: VarianceDecomposition, measure: Measure) -> None:
    """One standard deviation to each side, as bars above the histogram; the interval paler."""
    nothing = Interval(result.independent_std, math.nan, math.nan)
    rows = {
        "test set": result.test_set_interval,
        "independent": nothing,
        "distribution": result.distribution_interval,
    }
    words = {"distribution": "true error"}
    mean, narrow = float(measure.of(result.run_errors).mean()), is_narrow(ax)
    widest = 0.0
    for i, (name, std) in enumerate(rows.items()):
        value, _, high = measure.interval(std)
        height = 0.96 - 0.065 * i
        for reach, width, alpha in ((high, 5.0, 0.3), (value, 3.0, 1.0)):
            if math.isfinite(reach):
                widest = max(widest, reach)
                _bar(ax, mean, reach, height, color=SERIES[name], linewidth=width, alpha=alpha)
        told = measure.said(std.estimate) if narrow or math.isnan(high) else measure.told(std)
        for x, text, side in ((0.012, words.get(name, name), "left"), (0.988, told, "right")):
            note(
                ax,
                text if narrow or side == "right" else f"std {text}",
                (x, height),
                xycoords="axes fraction",
                ha=side,
                va="center",
                color=SERIES[name],
                fontsize=7.0 if narrow else 8.0,
                gid=SPREAD,
            )
    left, right = ax.get_xlim()
    half = max(right - mean, mean - left, (3.0 if narrow else 2.2) * widest)
    ax.set_xlim(mean - half, mean + half)


def _bar(ax: Axes, mean: float, reach: float, height: float, **look: Any) -> None:
    ax.plot(
        [mean - reach, mean + reach],
        [height, height],
        transform=ax.get_xaxis_transform(),
        solid_capstyle="butt",
        marker="|" if reach == 0 else "",
        gid=SPREAD,
        label="_std",
        **look,
    )


def _runs_caption(result: VarianceDecomposition) -> list[str]:
    share = result.distribution_share
    real = "" if math.isnan(share) else f" {min(1.0, max(0.0, share)):.0%} of the variance is real."
    return [
        f"Bars on top: one standard deviation to each side, upper limits paler.{real} As much"
        f" variance by independent errors: {said_pvalue(result.independence_pvalue)}.",
        *warned(result),
    ]


def _examples(ax: Axes, result: VarianceDecomposition, measure: Measure) -> None:
    errors = measure.of(result.example_errors)
    many = min(50, result.runs * result.repeats)
    edges = np.linspace(0, 100, many + 1) if measure.bounded else np.histogram_bin_edges(errors, 50)
    _histogram(ax, errors, edges, colour(0), 0.75)
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: number(y)))
    ax.set_ylim(bottom=0.7)
    if measure.bounded:
        ax.set_xlim(-1.5, 101.5)
    ax.set_xlabel(measure.label("error of an example, over runs"))
    ax.set_ylabel("examples")


def _examples_caption(result: VarianceDecomposition) -> list[str]:
    if result.unit == "loss":
        return [f"{result.examples:,} examples, mean loss over {result.runs:,} runs."]
    rates = result.example_errors
    never, always = int((rates == 0).sum()), int((rates == 1).sum())
    return [
        f"Of {result.examples:,} examples, {never:,} are right in all {result.runs:,} runs,"
        f" {always:,} wrong in all, {result.examples - never - always:,} in between."
    ]


def plot_accuracy_distribution(
    result: AccuracyDistribution,
    ax: Axes | None = None,
    *,
    binomial: bool = True,
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw the accuracy of runs beside independent errors and coins of the mean error.

    Parameters
    ----------
    result : AccuracyDistribution
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    binomial : bool
        Draw the binomial distribution, too.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    with style():
        own = ax is None
        ax = ax or new_axes(height=4.6)
        step, measure = 100 / result.examples, Measure("fraction")
        accuracy = measure.of(1 - result.run_errors)
        edges = _edges(accuracy, step)
        bars = _histogram(ax, accuracy, edges)
        narrow = is_narrow(ax)
        std = (
            measure.said(result.measured_std.estimate)
            if narrow
            else measure.told(result.measured_std)
        )
        key: list[tuple[Any, str]] = [(bars[0], f"{result.runs:,} runs, std {std}")]
        scale = result.runs * (edges[1] - edges[0]) / step
        shown = [
            (
                "independent errors" if not narrow else "independent",
                result.independent_pmf,
                result.independent_std,
            )
        ]
        shown += [("binomial", result.binomial_pmf, result.binomial_std)] if binomial else []
        for (name, pmf, value), shade, ls in zip(
            shown, (SERIES["independent"], colour(5)), ("-", "--"), strict=False
        ):
            likely = pmf > _LIKELY * pmf.max()
            x = 100 - result.errors[likely] * step
            line = _curve(ax, x, pmf[likely] * scale, shade, ls)
            key.append((line, f"{name}, std {measure.said(value)}"))
        ax.set_xlabel("test accuracy of a run (%)")
        inside = legend and not own
        _count_axis(ax, 0.05 + inside * len(key) * (0.11 if narrow else 0.07), result.runs)
        lines = [_accuracy_caption(result), *warned(result)]
        finish(ax, own, key, lines, legend=legend, caption=caption, loc="upper left")
    return ax


def _accuracy_caption(result: AccuracyDistribution) -> str:
    measure, ratio = Measure("fraction"), result.variance_ratio
    return (
        f"The luckiest run is {measure.said(result.run_range)} above the unluckiest; so many with"
        f" independent errors would span {measure.told(result.independent_range)}. Their variance"
        f" is {ratio.estimate:.2f} [{ratio.low:.2f}, {ratio.high:.2f}] times that of independent"
        f" errors (distance of the distributions: {said_pvalue(result.distance_pvalue)})."
    )


def _edges(values: FloatArray, step: float) -> FloatArray:
    """Edges of bins, by Freedman and Diaconis; whole numbers of errors where values come in steps.

    At least eight bins over the spread of the runs, where the steps allow it.
    """
    low, high = float(values.min()), float(values.max())
    if high - low < 1e-12:
        half = 5 * step or 0.05 * (abs(low) or 1.0)
        return np.linspace(low - half, low + half, 12)
    quarter = np.subtract(*np.percentile(values, [75, 25]))
    width = 2 * quarter / len(values) ** (1 / 3) or (high - low) / 10
    width = float(np.clip(width, (high - low) / 60, (high - low) / 8))
    if step:
        width = step * max(1, round(width / step))
    start = low - (step / 2 if step else 0.0)
    return start + width * np.arange(math.floor((high - start) / width) + 2)


def _normal(mean: float, std: float, scale: float) -> tuple[FloatArray, FloatArray]:
    if std == 0:
        return np.array([mean]), np.array([scale])
    z = np.linspace(-4, 4, 161)
    return mean + std * z, scale * np.exp(-(z**2) / 2) / (std * math.sqrt(2 * math.pi))


def _curve(ax: Axes, x: FloatArray, y: FloatArray, shade: str, ls: str) -> Any:
    (line,) = ax.plot(
        x,
        y,
        color=shade,
        linewidth=1.8,
        linestyle=ls,
        marker="o" if len(x) <= _FEW_POINTS else "",
        markersize=3.5,
        gid=PREDICTED,
        label="_predicted",
    )
    return line


def _histogram(
    ax: Axes, values: FloatArray, edges: FloatArray, shade: str = NEUTRAL, alpha: float = 0.45
) -> Any:
    bars = ax.hist(values, bins=edges.tolist(), color=shade, alpha=alpha, label="_values")[2]
    for bar in cast("Any", bars):
        bar.set_gid(HISTOGRAM)
    return bars


def _count_axis(ax: Axes, room: float, runs: int) -> None:
    """Counts of runs, with a share of the axis left free on top."""
    heights = [float(np.max(np.asarray(line.get_ydata()))) for line in ax.lines]
    heights += [float(b.get_height()) for b in ax.patches if isinstance(b, Rectangle)]
    ax.set_ylim(0.0, max([*heights, 1.0]) / (1 - room))
    ax.set_ylabel(f"runs (of {runs:,})")
    ax.yaxis.set_major_locator(MaxNLocator(6, integer=True))
