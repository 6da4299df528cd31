"""Pictures of the variance between runs along a hyperparameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from curvewise.plot.sizes import tick_log_values
from curvewise.plot.style import colour, new_axes, style
from curvewise.plot.text import safe_text
from curvewise.plot.variance_axes import is_narrow, log_sizes, spans_decades, thinned, view
from curvewise.plot.variance_measure import SERIES, Measure
from curvewise.plot.variance_parts import CUT, bars, choose, ends_of, finish, mark_value, warned
from curvewise.tables import number
from curvewise.types import FloatArray
from curvewise.variance.sweep import VarianceSweep

LINE = "curvewise-line"
EXCESS = "curvewise-excess"
LEVEL = "curvewise-level"

_CALM = "largest without excess"


def plot_sweep(
    result: VarianceSweep,
    ax: Axes | None = None,
    *,
    what: str = "std",
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw the standard deviations between runs along a hyperparameter, or the mean error.

    Parameters
    ----------
    result : VarianceSweep
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    what : {"std", "error"}
        Standard deviations, with the excess over independent errors shaded; or the mean error.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    choose("what", what, ("std", "error"))
    measure, x = Measure(result.unit), np.array(result.values)
    with style():
        own = ax is None
        ax = ax or new_axes(height=4.6)
        if what == "std":
            key = _deviations(ax, result, measure, x)
            ax.set_ylabel(measure.label("std between runs"))
        else:
            estimate, low, high = map(measure.of, ends_of(result.error))
            limits = view(estimate, low, high)
            _series(ax, x, result.error, measure, colour(0), "o", limits)
            ax.set_ylim(*limits)
            ax.set_ylabel(measure.label("mean error"))
            key = []
        if spans_decades(x):
            log_sizes(ax, x.tolist())
        else:
            ax.set_xticks(thinned(ax, x.tolist()))
        ax.set_xlabel(safe_text(result.name, 24 if is_narrow(ax) else 50))
        _marks(ax, result)
        lines = [_sweep_caption(result), *warned(result)]
        narrow = is_narrow(ax)
        columns = 1 if narrow else 2
        key = key[:3] if narrow else key
        finish(ax, own, key, lines, legend=legend, caption=caption, columns=columns)
    return ax


def _deviations(
    ax: Axes, result: VarianceSweep, measure: Measure, x: FloatArray
) -> list[tuple[Any, str]]:
    seen = measure.of([i.estimate for i in result.test_set_std])
    alone = measure.of(result.independent_std)
    true = ends_of(result.distribution_std)
    limits = _std_limits(ax, seen, alone, measure.of([i.high for i in result.test_set_std]))
    ax.fill_between(
        x,
        alone,
        seen,
        where=(seen > alone).tolist(),
        interpolate=True,
        color=SERIES["test set"],
        alpha=0.15,
        linewidth=0.0,
        gid=EXCESS,
    )
    _series(ax, x, result.test_set_std, measure, SERIES["test set"], "o", limits)
    ax.plot(
        x, alone, color=SERIES["independent"], ls="--", marker="s", ms=4, gid=LINE, label="_alone"
    )
    _series(ax, x, result.distribution_std, measure, SERIES["distribution"], "D", limits)
    below = measure.of(true[0]) < limits[0]
    if below.any():
        edge = np.full(int(below.sum()), limits[0])
        ax.plot(x[below], edge, "v", color=SERIES["distribution"], clip_on=False, gid=CUT)
    ax.set_ylim(*limits)
    handles = [
        Line2D([], [], color=SERIES[name], marker=m, ms=4.5, ls=ls)
        for name, m, ls in (
            ("test set", "o", "-"),
            ("independent", "s", "--"),
            ("distribution", "D", "-"),
        )
    ]
    labels = ["test error", "independent errors", "true error", "excess"]
    return list(zip([*handles, Patch(color=SERIES["test set"], alpha=0.15)], labels, strict=True))


def _std_limits(
    ax: Axes, seen: FloatArray, alone: FloatArray, high: FloatArray
) -> tuple[float, float]:
    """From 0, unless the values span decades."""
    both = np.concatenate([seen, alone])
    if not spans_decades(both, 12.0):
        return 0.0, 1.06 * float(np.clip(high, None, 1.6 * seen.max()).max())
    ax.set_yscale("log")
    limits = float(both.min()) / 6, 1.3 * float(seen.max())
    ax.set_ylim(*limits)
    tick_log_values(ax)
    return limits


def _series(
    ax: Axes,
    x: FloatArray,
    intervals: Sequence[Any],
    measure: Measure,
    shade: str,
    marker: str,
    limits: tuple[float, float],
) -> None:
    estimate, low, high = map(measure.of, ends_of(intervals))
    bars(ax, x, low, high, shade, limits=limits, width=1.1)
    estimate = np.where(estimate < limits[0], np.nan, estimate)
    ax.plot(x, estimate, color=shade, linewidth=1.5, marker=marker, ms=4.5, gid=LINE, label="_std")


def _marks(ax: Axes, result: VarianceSweep) -> None:
    """Vertical lines at the best value and at the largest without excess; in short, if narrow."""
    largest = result.largest_without_excess
    best, calm = ("best", "no excess") if is_narrow(ax) else ("lowest error", _CALM)
    if largest == result.best:
        mark_value(ax, result.best, f"{best}, {calm}")
        return
    mark_value(ax, result.best, best)
    if largest is not None:
        mark_value(ax, largest, calm, "-.")


def _sweep_caption(result: VarianceSweep) -> str:
    found = [number(v) for v, has in zip(result.values, result.has_excess, strict=True) if has]
    said = f"shown at {', '.join(found)}" if found else "shown at no value"
    others = [number(v) for v in result.tied if v != result.best]
    tied = f" Its error is not told from that at {', '.join(others[:8])}." if others else ""
    return (
        f"Bars: {100 * result.level:.4g}% intervals. Excess over independent errors is {said}"
        f" (Holm over the values). The mean error is lowest at {number(result.best)}.{tied}"
    )
