"""Pictures of how runs spread: histograms beside what independent errors would give."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from curvewise.plot.style import colour, new_axes, style
from curvewise.plot.variance_axes import is_narrow
from curvewise.plot.variance_histogram import LIKELY, count_axis, curve, edges_of, histogram, normal
from curvewise.plot.variance_measure import SERIES, Measure
from curvewise.plot.variance_parts import choose, finish, note, warned
from curvewise.tables import number
from curvewise.types import Interval
from curvewise.variance._error_counts import drawn_together
from curvewise.variance.decomposition import VarianceDecomposition
from curvewise.variance.poisson_binomial import poisson_binomial_pmf
from curvewise.variance.wording import said_pvalue

SPREAD = "curvewise-spread"


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
        cut = count_axis(ax, 0.22, result.runs)
        _spreads(ax, result, measure)
        lines = [_runs_caption(result), *cut, *warned(result)]
        # The bars on top say what the colours are; in someone's Axes there is no room to repeat it.
        finish(ax, own, key if own else [], lines, legend=legend, caption=caption, columns=2)
    return ax


def _runs(ax: Axes, result: VarianceDecomposition, measure: Measure) -> list[tuple[Any, str]]:
    errors, totals = measure.of(result.run_errors), result._totals
    exact = totals.binary and result.repeats == 1 and result.groups is None
    step = float(measure.of(1 / result.examples)) if exact else 0.0
    edges = edges_of(errors, step)
    bars = histogram(ax, errors, edges)
    scale = result.runs * (edges[1] - edges[0])
    if exact:
        pmf = poisson_binomial_pmf(drawn_together(result.example_errors, result.runs))
        likely = np.flatnonzero(pmf > LIKELY * pmf.max())
        x, y = step * likely.astype(np.float64), pmf[likely] * scale / step
    else:
        x, y = normal(float(errors.mean()), float(measure.of(result.independent_std)), scale)
    line = curve(ax, x, y, SERIES["independent"], "-")
    ax.set_xlabel(measure.label("test error of a run"))
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
    half = max(right - mean, mean - left, (3.0 if narrow else 2.5) * widest)
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


def _runs_caption(result: VarianceDecomposition) -> str:
    share = result.distribution_share
    real = "" if math.isnan(share) else f" {min(1.0, max(0.0, share)):.0%} of the variance is real."
    return (
        f"Bars on top: one standard deviation to each side, upper limits paler.{real} As much"
        f" variance by independent errors: {said_pvalue(result.independence_pvalue)}."
    )


def _examples(ax: Axes, result: VarianceDecomposition, measure: Measure) -> None:
    errors = measure.of(result.example_errors)
    many = min(50, result.runs * result.repeats)
    edges = np.linspace(0, 100, many + 1) if measure.bounded else np.histogram_bin_edges(errors, 50)
    histogram(ax, errors, edges, colour(0), 0.75)
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
