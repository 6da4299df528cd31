"""What a measure tells given each set of hyperparameters, and how much more than another."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes

from curvewise.plot.panels import signed
from curvewise.plot.style import NEUTRAL, colour, new_axes, style
from curvewise.plot.text import clean, safe_names, shorten
from curvewise.plot.variance_axes import is_narrow, rows_of, rows_that_fit, view
from curvewise.plot.variance_parts import bars, finish, mark_value, warned, zero_line
from curvewise.response.cmi import ConditionalInformation
from curvewise.response.judgement import MeasureComparison
from curvewise.types import Interval
from curvewise.variance.wording import said_pvalue

SET = "curvewise-set"
SCORE = "curvewise-score"
DIFFERENCE = "curvewise-difference"

LEAST = 25
"""Sets of hyperparameters shown of many."""


def plot_information(
    result: ConditionalInformation, ax: Axes | None = None, *, caption: bool | None = None
) -> Axes:
    """Draw what a measure tells of the gap given each set of hyperparameters, the least on top.

    Parameters
    ----------
    result : ConditionalInformation
        What to draw. Of many sets, those that leave the least are shown.
    ax : Axes, optional
        Where; a new figure by default.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or the new ones.
    """
    values = 100 * result.values
    most = LEAST if ax is None else min(LEAST, rows_that_fit(ax) - 1)
    known = [i for i in np.argsort(values, kind="stable").tolist() if math.isfinite(values[i])]
    sets = known[:most]
    names = ["score", *(" & ".join(result.sets[i]) or "nothing" for i in sets)]
    with style():
        own = ax is None
        ax = ax or new_axes(height=2.0 + 0.24 * len(names))
        estimate, low, high = (100 * v for v in (result.score, *result.value))
        limits = view([estimate, *values[sets]], [low], [high], 0.0)
        zero_line(ax)
        bars(ax, [0.0], [low], [high], colour(0), limits=limits, horizontal=True)
        ax.plot([estimate], [0.0], "o", color=colour(0), ms=6.0, gid=SCORE, label="_score")
        place = np.arange(1, len(names))
        ax.plot(values[sets], place, "o", color=NEUTRAL, ms=4.5, gid=SET, label="_set")
        if math.isfinite(result.null_mean):
            mark_value(ax, 100 * result.null_mean, "hyperparameters alone", bottom=True)
        texts = safe_names(names, 16 if is_narrow(ax) else 40)
        rows_of(ax, texts)
        ax.set_xlim(*limits)
        ax.set_xlabel("CMI given the hyperparameters (%)" if not is_narrow(ax) else "CMI (%)")
        lines = [_information(result, len(known) - len(sets)), *warned(result)]
        finish(ax, own, [], lines, caption=caption, indent=max(map(len, texts)) / 14)
    return ax


def _information(result: ConditionalInformation, more: int) -> str:
    said = f"{result.models:,} models. The score is the least of {len(result.sets)} set(s)"
    said += f", {more} of them not shown." if more > 0 else "."
    if math.isfinite(result.value.low):
        said += f" Bar: {100 * result.value.level:.4g}% interval."
    if math.isfinite(result.pvalue):
        said += f" As much by hyperparameters alone: {said_pvalue(result.pvalue)}."
    return said


def plot_measure_comparison(
    result: MeasureComparison, ax: Axes | None = None, *, caption: bool | None = None
) -> Axes:
    """Draw how much more one measure tells than another, task by task and on average.

    Parameters
    ----------
    result : MeasureComparison
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or the new ones.
    """
    each: list[Interval] = list(result.by_task)
    rows = list(result.tasks)
    if len(rows) > 1:
        each, rows = [*each, result.difference], [*rows, "average"]
    estimate, low, high = 100 * np.array([(p.estimate, p.low, p.high) for p in each]).T
    with style():
        own = ax is None
        ax = ax or new_axes(height=1.9 + 0.28 * len(rows))
        limits, place = view(estimate, low, high, 0.0), np.arange(len(rows))
        zero_line(ax)
        for here, shade in ((place, NEUTRAL), (place[-1:], colour(0))):  # the last one on top
            bars(ax, here, low[here], high[here], shade, limits=limits, horizontal=True)
            ax.plot(estimate[here], here, "o", color=shade, ms=5.5, gid=DIFFERENCE, label="_task")
        names = safe_names(rows, 16 if is_narrow(ax) else 30)
        rows_of(ax, names)
        ax.set_xlim(*limits)
        one, two = safe_names((result.one, result.two), 12 if is_narrow(ax) else 30)
        ax.set_xlabel(f"CMI of {one} − {two} (%)")
        lines = [_compared(result), *warned(result)]
        finish(ax, own, [], lines, caption=caption, indent=max(map(len, names)) / 14)
    return ax


def _compared(result: MeasureComparison) -> str:
    one, two = (shorten(clean(name), 40) for name in (result.one, result.two))
    d = result.difference
    points = [signed(100 * v, 1) for v in (d.estimate, d.low, d.high)]
    return (
        f"CMI of {one} less that of {two}: {points[0]} [{points[1]}, {points[2]}] points"
        f" ({said_pvalue(result.pvalue)}). Bars: {100 * d.level:.4g}% intervals."
    )
