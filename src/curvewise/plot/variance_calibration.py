"""Pictures of calibration: votes of an ensemble, predicted variance, disagreement, pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from curvewise.plot.style import colour, new_axes, style
from curvewise.plot.text import safe_names
from curvewise.plot.variance_axes import is_narrow, rows_of, view
from curvewise.plot.variance_measure import SERIES, Measure
from curvewise.plot.variance_parts import bars, choose, diagonal, ends_of, finish, warned, zero_line
from curvewise.types import FloatArray, Interval
from curvewise.variance.bipartitions import Bipartitions
from curvewise.variance.calibration import Calibration

BINS = "curvewise-bins"
TASKS = "curvewise-tasks"
POINTS = "curvewise-points"

_VIEWS = ("reliability", "std", "classes")
_SHOWN = 30
_VERDICTS = {
    "holds": "The formulas of class-wise calibration may be used here.",
    "close": "Not quite calibrated, but the formulas of calibration may be used here.",
    "fails": "Not class-wise calibrated: its formulas must not be used here.",
    "undecided": "Too few runs and examples to tell whether the formulas may be used.",
}


def plot_calibration(
    result: Calibration,
    ax: Axes | None = None,
    *,
    what: str = "reliability",
    caption: bool | None = None,
) -> Axes:
    """Draw how far the votes of the runs are calibrated, and the variance that follows from it.

    Parameters
    ----------
    result : Calibration
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    what : {"reliability", "std", "classes"}
        How often a class is true, by the share of runs that vote for it; the measured standard
        deviation beside those predicted; or what each class adds to error minus disagreement.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    choose("what", what, _VIEWS)
    with style():
        own = ax is None
        ax = ax or new_axes(height=_height(result, what))
        lines, indent = _DRAWN[what](ax, result)
        said = [*lines, _VERDICTS[result.verdict], *warned(result)]
        finish(ax, own, [], said, caption=caption, indent=indent)
    return ax


def _height(result: Calibration, what: str) -> float:
    if what == "reliability":
        return 5.0
    rows = len(result.predicted) + 2 if what == "std" else min(_SHOWN, len(result.class_checks))
    return 2.0 + 0.28 * rows


def _reliability(ax: Axes, result: Calibration) -> tuple[list[str], float]:
    table = result.reliability_columns()
    known = table["cells"] > 0
    x, y, low, high = (100 * table[k][known] for k in ("confidence", "frequency", "low", "high"))
    order = np.argsort(x)  # bins are by the votes of all runs, confidences leave one out
    x, y, low, high = x[order], y[order], low[order], high[order]
    diagonal(ax, 0.0, 100.0)
    bars(ax, x, low, high, colour(0), limits=(0.0, 100.0))
    ax.plot(x, y, color=colour(0), marker="o", ms=5, lw=1.2, gid=BINS, label="_bins")
    ax.set_xlim(-3, 103)
    ax.set_ylim(-3, 103)
    ax.set_xlabel("votes for a class (% of runs)")
    ax.set_ylabel("class is true (%)")
    gap = result.checks[0]
    text = (
        f"Bars: {100 * result.level:.4g}% intervals. Error minus disagreement:"
        f" {Measure('fraction').told(gap.difference)}."
    )
    return [text], 0.0


def _stds(ax: Axes, result: Calibration) -> tuple[list[str], float]:
    """The measured standard deviation and those predicted, true differences between runs added."""
    measure, nothing = Measure("fraction"), Interval(result.independent_std, math.nan, math.nan)
    rows = {"measured": result.measured, "independent errors": nothing, **result.total}
    shades = [SERIES["test set"], SERIES["independent"], *[colour(3)] * len(result.total)]
    estimate, low, high = map(measure.of, ends_of(rows.values()))
    limits = view(estimate, low, high)
    ax.axvspan(low[0], high[0], color=shades[0], alpha=0.12, lw=0.0, zorder=0.3, gid=POINTS)
    _forest(ax, estimate, low, high, shades, limits)
    words = {"two classes": "two classes, err/2n", "lower bound": "at least err/nk"}
    names = [words.get(name, name) for name in rows]
    rows_of(ax, names)
    ax.set_xlim(*limits)
    ax.set_xlabel("std between runs (%)")
    return ["Predictions have the variance of true error added; independent errors have not."], 1.3


def _classes(ax: Axes, result: Calibration) -> tuple[list[str], float]:
    measure = Measure("fraction")
    order = np.argsort([c.adjusted for c in result.class_checks], kind="stable")[:_SHOWN]
    checks = [result.class_checks[i] for i in np.sort(order)]
    estimate, low, high = map(measure.of, ends_of(c.difference for c in checks))
    shades = [colour(1) if c.adjusted < 1 - result.level else colour(0) for c in checks]
    limits = view(estimate, low, high, 0.0)
    zero_line(ax)
    _forest(ax, estimate, low, high, shades, limits)
    names = safe_names((str(c.name) for c in checks), 12 if is_narrow(ax) else 28)
    rows_of(ax, names)
    ax.set_xlim(*limits)
    ax.set_xlabel("part of error − disagreement (%)")
    said = "Orange-red: differs from 0 (Holm over the classes)."
    if len(checks) < len(result.class_checks):
        said += f" The {len(checks)} clearest of {len(result.class_checks)} classes are shown."
    return [said], max(map(len, names)) / 14


_DRAWN = {"reliability": _reliability, "std": _stds, "classes": _classes}


def _forest(
    ax: Axes,
    estimate: FloatArray,
    low: FloatArray,
    high: FloatArray,
    shades: Sequence[str],
    limits: tuple[float, float],
) -> None:
    for i, shade in enumerate(shades):
        part = slice(i, i + 1)
        bars(ax, [i], low[part], high[part], shade, limits=limits, horizontal=True)
        ax.plot(estimate[part], [i], "o", color=shade, ms=5.5, gid=POINTS, label="_estimate")


def plot_bipartitions(
    result: Bipartitions,
    ax: Axes | None = None,
    *,
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw predicted against measured standard deviations of all two-class tasks.

    Parameters
    ----------
    result : Bipartitions
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    measure = Measure("fraction")
    measured = measure.of(result.measured)
    series = (
        ("binomial", measure.of(result.binomial), result.binomial_r_squared, colour(4), "s"),
        ("calibrated, err/2n", measure.of(result.calibrated), result.r_squared, colour(0), "o"),
    )
    with style():
        own = ax is None
        ax = ax or new_axes(height=5.0)
        every = np.concatenate([measured, *(s[1] for s in series)])
        low, high = float(every.min()), float(every.max())
        pad = 0.05 * (high - low) or 0.05 * high
        limits = max(0.0, low - pad), high + pad
        line = diagonal(ax, *limits)
        key: list[tuple[Any, str]] = []
        for name, predicted, r, shade, marker in series:
            dots = ax.scatter(
                predicted, measured, s=14, color=shade, marker=marker, alpha=0.6, lw=0.0, zorder=2.2
            )
            dots.set_gid(TASKS)
            dot = Line2D([], [], color=shade, marker=marker, ms=5, linestyle="none")
            key.append((dot, f"{name}: R² = {r.estimate:.2f}"))
        key = [*key[::-1], *([] if is_narrow(ax) else [(line, "equal")])]
        ax.set_xlim(*limits)
        ax.set_ylim(*limits)
        ax.set_xlabel("predicted std (%)")
        ax.set_ylabel("measured std (%)")
        lines = [_tasks_caption(result), *warned(result)]
        columns = 1 if not own else 3
        finish(
            ax, own, key, lines, legend=legend, caption=caption, columns=columns, loc="upper left"
        )
    return ax


def _tasks_caption(result: Bipartitions) -> str:
    which = (
        f"All {result.tasks:,}"
        if result.tasks == result.possible
        else f"{result.tasks:,} of the possible"
    )
    r, b = result.r_squared, result.binomial_r_squared
    return (
        f"{which} two-class tasks from {result.classes} classes, {result.runs:,} runs."
        f" R² = 1 − SSE/SST: {r.estimate:.2f} [{r.low:.2f}, {r.high:.2f}], binomial"
        f" {b.estimate:.2f} [{b.low:.2f}, {b.high:.2f}]. Error and disagreement differ on"
        f" {result.rejected:,} tasks."
    )
