"""Picture of the accuracy of runs beside independent errors and coins."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

from curvewise.plot.style import colour, new_axes, style
from curvewise.plot.variance_axes import is_narrow
from curvewise.plot.variance_histogram import LIKELY, count_axis, curve, edges_of, histogram
from curvewise.plot.variance_measure import SERIES, Measure
from curvewise.plot.variance_parts import finish, warned
from curvewise.variance.accuracy import AccuracyDistribution
from curvewise.variance.wording import said_pvalue


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
        key = _distributions(ax, result, binomial)
        ax.set_xlabel("test accuracy of a run (%)")
        room = len(key) * (0.11 if is_narrow(ax) else 0.07) if legend and not own else 0.0
        cut = count_axis(ax, 0.05 + room, result.runs)
        lines = [_accuracy_caption(result), *cut, *warned(result)]
        finish(ax, own, key, lines, legend=legend, caption=caption, loc="upper left")
    return ax


def _distributions(ax: Axes, result: AccuracyDistribution, binomial: bool) -> list[tuple[Any, str]]:
    """The histogram and the curves; what the legend says of them, in short if narrow."""
    step, measure, std = 100 / result.examples, Measure("fraction"), result.measured_std
    accuracy = measure.of(1 - result.run_errors)
    edges = edges_of(accuracy, step)
    bars, narrow = histogram(ax, accuracy, edges), is_narrow(ax)
    told = measure.said(std.estimate) if narrow else measure.told(std)
    key: list[tuple[Any, str]] = [(bars[0], f"{result.runs:,} runs, std {told}")]
    first = "independent" if narrow else "independent errors"
    shown = [(first, result.independent_pmf, result.independent_std, SERIES["independent"], "-")]
    if binomial:
        shown.append(("binomial", result.binomial_pmf, result.binomial_std, colour(5), "--"))
    for name, pmf, value, shade, ls in shown:
        likely = pmf > LIKELY * pmf.max()
        heights = pmf[likely] * result.runs * (edges[1] - edges[0]) / step
        line = curve(ax, 100 - result.errors[likely] * step, heights, shade, ls)
        key.append((line, f"{name}, std {measure.said(value)}"))
    return key


def _accuracy_caption(result: AccuracyDistribution) -> str:
    measure, ratio = Measure("fraction"), result.variance_ratio
    return (
        f"The luckiest run is {measure.said(result.run_range)} above the unluckiest; so many with"
        f" independent errors would span {measure.told(result.independent_range)}. Their variance"
        f" is {ratio.estimate:.2f} [{ratio.low:.2f}, {ratio.high:.2f}] times that of independent"
        f" errors (distance of the distributions: {said_pvalue(result.distance_pvalue)})."
    )
