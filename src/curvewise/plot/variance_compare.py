"""Picture of two trainings, run by run, with their difference."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import AutoLocator

from curvewise.plot.style import NEUTRAL, colour, new_axes, style
from curvewise.plot.text import clean, safe_names, shorten
from curvewise.plot.variance_axes import is_narrow, raise_top, width_of
from curvewise.plot.variance_measure import SERIES, Measure
from curvewise.plot.variance_parts import bars, finish, warned
from curvewise.types import FloatArray
from curvewise.variance.comparison import RunComparison
from curvewise.variance.wording import said_pvalue

RUNS = "curvewise-runs"
MEAN = "curvewise-mean"
PAIR = "curvewise-pair"
MARGIN = "curvewise-margin"
DIFFERENCE = "curvewise-difference"

_AT = 2.0
_JOINED = 60


def plot_run_comparison(
    result: RunComparison,
    ax: Axes | None = None,
    *,
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw the runs of both trainings, and their difference with its intervals at the right.

    The difference stands above the mean of b, so that it is read on the left scale as the mean of
    a, and on the right scale by itself.

    Parameters
    ----------
    result : RunComparison
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    measure = Measure(result.unit)
    a, b = measure.of(result._parts.a), measure.of(result._parts.b)
    with style():
        own = ax is None
        ax = ax or new_axes(height=4.6)
        limits = _difference_limits(result, measure, a, b)
        _strips(ax, a, b, result.paired)
        key = _differences(ax, result, measure, float(b.mean()), limits)
        narrow = is_narrow(ax)
        names = safe_names((result.a, result.b), max(6, int(2.9 * width_of(ax))))
        ax.set_xticks([0.0, 1.0, _AT], labels=[*names, "diff." if narrow else "difference"])
        ax.tick_params(axis="x", length=0, labelsize=8.0 if narrow else 9.0)
        ax.set_xlim(-0.5, 2.55)
        ax.set_ylim(*limits)
        ax.set_ylabel(measure.label("test error of a run"))
        if legend and not own:
            raise_top(ax, 1 if not narrow else 2)
        _second_scale(ax, measure, float(b.mean()))
        lines = [_comparison_caption(result), *warned(result)]
        finish(
            ax,
            own,
            key,
            lines,
            legend=legend,
            caption=caption,
            columns=2 if narrow else 3,
            loc="upper left",
        )
    return ax


def _difference_limits(
    result: RunComparison, measure: Measure, a: FloatArray, b: FloatArray
) -> tuple[float, float]:
    ends = [*measure.interval(result.difference), *measure.interval(result.test_set_difference)]
    ends += [float(measure.of(result.margin)) * s for s in (-1, 1)] if result.margin else []
    known = [float(b.mean()) + e for e in ends if math.isfinite(e)]
    low, high = min(*a, *b, *known), max(*a, *b, *known)
    pad = 0.06 * (high - low) or 0.05 * (abs(high) or 1.0)
    return low - pad, high + pad


def _strips(ax: Axes, a: FloatArray, b: FloatArray, paired: bool) -> None:
    """A dot per run, moved aside at random; lines between paired runs, if they are not many."""
    rng = np.random.default_rng(0)
    joined = paired and len(a) <= _JOINED
    if joined:
        ax.plot(
            [0.0, 1.0], np.stack([a, b]), color=NEUTRAL, lw=0.6, alpha=0.6, gid=PAIR, label="_pair"
        )
    for place, values in ((0.0, a), (1.0, b)):
        aside = np.zeros(len(values)) if joined else rng.uniform(-0.16, 0.16, len(values))
        dots = ax.scatter(
            place + aside,
            values,
            s=float(np.clip(1200 / len(values), 3.0, 18.0)),
            color=colour(9),
            alpha=0.6,
            linewidths=0.0,
            rasterized=len(values) > 2000,
            zorder=2.4,
        )
        dots.set_gid(RUNS)
        ends = [place - 0.26, place + 0.26]
        ax.plot(
            ends, [values.mean()] * 2, color="black", lw=2.0, zorder=3.0, gid=MEAN, label="_mean"
        )


def _differences(
    ax: Axes, result: RunComparison, measure: Measure, base: float, limits: tuple[float, float]
) -> list[tuple[Any, str]]:
    rows = [("test set", "test set", result.test_set_difference, "o", -0.13)]
    if result.scope == "distribution":
        rows.append(("distribution", "distribution", result.difference, "D", 0.13))
    key: list[tuple[Any, str]] = []
    for series, text, difference, marker, aside in rows:
        value, low, high = (base + v for v in measure.interval(difference))
        at, shade = _AT + aside * (len(rows) - 1), SERIES[series]
        bars(ax, [at], [low], [high], shade, limits=limits, width=2.0)
        ax.plot([at], [value], marker, color=shade, ms=6.5, gid=DIFFERENCE, label="_difference")
        key.append((Line2D([], [], color=shade, marker=marker, ms=5.5), text))
    look: dict[str, Any] = {"color": NEUTRAL, "lw": 1.0, "ls": "--", "zorder": 0.9}
    ax.plot([1.26, 2.55], [base, base], gid="curvewise-zero", label="_zero", **look)
    if result.margin:
        margin = float(measure.of(result.margin))
        box = ax.fill_between(
            [1.5, 2.55], base - margin, base + margin, color=NEUTRAL, alpha=0.18, lw=0.0, zorder=0.3
        )
        box.set_gid(MARGIN)
        key.append((Patch(color=NEUTRAL, alpha=0.25), "margin"))
    return key


def _second_scale(ax: Axes, measure: Measure, base: float) -> None:
    """The scale of differences, at the right; part of the Axes, not another one of the figure."""
    scale = ax.secondary_yaxis(
        "right", functions=(lambda y: np.asarray(y) - base, lambda d: np.asarray(d) + base)
    )
    scale.yaxis.set_major_locator(AutoLocator())
    scale.set_ylabel(f"difference{' (%)' if measure.bounded else ''}")
    scale.spines["right"].set_visible(True)


def _comparison_caption(result: RunComparison) -> str:
    measure = Measure(result.unit)
    a, b = (shorten(clean(n), 30) for n in (result.a, result.b))
    verdict = {
        "a better": f"{a} is better",
        "b better": f"{b} is better",
        "equivalent": "they are equivalent",
    }.get(result.verdict, "they cannot be told apart")
    here = f"{measure.told(result.test_set_difference)} on this test set"
    there = (
        f"{measure.told(result.difference)} on the distribution ({said_pvalue(result.pvalue)}), "
        if result.scope == "distribution"
        else ""
    )
    runs = " and ".join(f"{n:,}" for n in result.runs)
    return (
        f"{a} minus {b}, {runs}{' paired' if result.paired else ''} runs: {there}{here}. On the"
        f" {result.scope} {verdict}."
    )
