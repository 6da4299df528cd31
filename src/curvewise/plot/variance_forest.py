"""Forest plots: differences between many trainings, and the ratio of two variances."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from curvewise.plot.style import NEUTRAL, colour, new_axes, style
from curvewise.plot.text import safe_names, safe_text
from curvewise.plot.variance_axes import is_narrow, log_sizes, rows_of, rows_that_fit, view
from curvewise.plot.variance_measure import SERIES, Measure
from curvewise.plot.variance_parts import bars, ends_of, finish, note, warned, zero_line
from curvewise.types import FloatArray, Interval
from curvewise.variance.many import TrainingComparison
from curvewise.variance.variances import VarianceComparison, said_ratio
from curvewise.variance.wording import said_pvalue

DIFFERENCE = "curvewise-difference"
FEW = "curvewise-few"
CLEAREST = 30
"""Differences shown of many."""


def plot_trainings(
    result: TrainingComparison,
    ax: Axes | None = None,
    *,
    most: int | None = None,
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw the differences between trainings as a forest plot.

    Parameters
    ----------
    result : TrainingComparison
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    most : int, optional
        Show only this many of the clearest differences: 30 by default, fewer in small Axes.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    measure = Measure(result.unit)
    estimate, low, high = map(measure.of, ends_of(result.differences))
    most = max(1, most or (CLEAREST if ax is None else min(CLEAREST, rows_that_fit(ax))))
    clear = np.lexsort((result.pvalues, result.adjusted))[:most]
    shown = clear[np.argsort(estimate[clear], kind="stable")]
    with style():
        own = ax is None
        ax = ax or new_axes(height=2.0 + 0.24 * len(shown))
        found = np.array([v != "undecided" for v in result.verdicts])[shown]
        _rows(ax, estimate[shown], low[shown], high[shown], found)
        names = _pair_names(result, shown, is_narrow(ax))
        rows_of(ax, names)
        if len(shown) > 15 and not own:
            ax.tick_params(axis="y", labelsize=7.0)
        ax.set_xlabel(_training_label(result, measure, is_narrow(ax)))
        if not own and len(shown) < len(result.pairs):
            _say_few(ax, f"the {len(shown)} clearest of {len(result.pairs):,}")
        key = [
            (Line2D([], [], color=s, marker="o", ms=5), text)
            for s, text in ((colour(0), "shown"), (NEUTRAL, "not shown"))
        ]
        lines = [_training_caption(result, len(shown)), *warned(result)]
        indent = max(map(len, names)) / 14
        key = key if own else []
        finish(ax, own, key, lines, legend=legend, caption=caption, columns=2, indent=indent)
    return ax


def _rows(
    ax: Axes, estimate: FloatArray, low: FloatArray, high: FloatArray, found: NDArray[np.bool_]
) -> None:
    limits, row = view(estimate, low, high, 0.0), np.arange(len(estimate))
    size = 5.5 if len(row) <= 20 else 4.5
    zero_line(ax)
    for part, shade in ((found, colour(0)), (~found, NEUTRAL)):
        bars(ax, row[part], low[part], high[part], shade, limits=limits, horizontal=True)
        ax.plot(
            estimate[part],
            row[part],
            "o",
            color=shade,
            ms=size,
            gid=DIFFERENCE,
            label="_difference",
        )
    ax.set_xlim(*limits)


def _say_few(ax: Axes, text: str) -> None:
    """A remark above the Axes, where there may be no caption."""
    place = {"xycoords": "axes fraction", "ha": "right", "va": "bottom", "fontsize": 7.0}
    note(ax, text, (1.0, 1.01), gid=FEW, annotation_clip=False, **place)


def _pair_names(result: TrainingComparison, shown: Any, narrow: bool) -> list[str]:
    """What was compared; two names share the room."""
    if result.baseline is not None:
        return safe_names((result.pairs[i][0] for i in shown), 14 if narrow else 32)
    every = safe_names(result.names, 11 if narrow else 20)
    short = dict(zip(result.names, every, strict=True))
    return [f"{short[result.pairs[i][0]]} − {short[result.pairs[i][1]]}" for i in shown]


def _training_label(result: TrainingComparison, measure: Measure, narrow: bool) -> str:
    if result.baseline is None or narrow:
        return measure.label("difference of error")
    return measure.label(f"error minus that of {safe_text(result.baseline, 20)}")


def _training_caption(result: TrainingComparison, shown: int) -> str:
    how = "Holm" if result.multiplicity == "holm" else "Benjamini and Hochberg"
    few = (
        f" The {shown} clearest of {len(result.pairs):,} differences."
        if shown < len(result.pairs)
        else ""
    )
    return (
        f"Blue: shown on the {result.scope} after {how}; below 0 the first is better."
        f" The intervals hold together at {100 * result.level:.4g}%.{few}"
    )


def plot_variance_comparison(
    result: VarianceComparison, ax: Axes | None = None, *, caption: bool | None = None
) -> Axes:
    """Draw the ratio of two trainings' standard deviations, on a log scale.

    Parameters
    ----------
    result : VarianceComparison
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    caption : bool, optional
        Say what was found under the picture; by default where there is room.
    """
    rows = {"test error": result.test_set_ratio, "true error": result.distribution_ratio}
    with style():
        own = ax is None
        ax = ax or new_axes(height=2.4)
        limits = _ratio_limits(list(rows.values()))
        ax.set_xlim(*limits)
        log_sizes(ax)
        zero_line(ax, 1.0)
        shades = SERIES["test set"], SERIES["distribution"]
        for i, (ratio, shade) in enumerate(zip(rows.values(), shades, strict=True)):
            bars(ax, [i], [ratio.low], [ratio.high], shade, limits=limits, horizontal=True)
            if limits[0] <= ratio.estimate <= limits[1]:
                ax.plot([ratio.estimate], [i], "o", color=shade, ms=6, gid=DIFFERENCE)
        rows_of(ax, list(rows))
        ax.set_xlim(*limits)
        a, b = safe_names(result.names, 9 if is_narrow(ax) else 20)
        ax.set_xlabel(f"std between runs, {a} / {b}")
        said = (
            f"Ratio {said_ratio(result.test_set_ratio)} ({said_pvalue(result.test_set_pvalue)}) for"
            f" test error, {said_ratio(result.distribution_ratio)}"
            f" ({said_pvalue(result.distribution_pvalue)}) for true error: {result.verdict}."
        )
        finish(ax, own, [], [said, *warned(result)], caption=caption, indent=0.7)
    return ax


def _ratio_limits(ratios: list[Interval]) -> tuple[float, float]:
    """Around 1 and all that is known, up to a factor of 30."""
    ends = [v for r in ratios for v in (r.estimate, r.low, r.high) if math.isfinite(v) and v > 0]
    low, high = min([*ends, 0.8]), max([*ends, 1.25])
    open_low, open_high = (any(f(r) for r in ratios) for f in (_falls_to_0, _has_no_end))
    return max(low / (2.0 if open_low else 1.1), 1 / 30), min(
        high * (2.0 if open_high else 1.1), 30.0
    )


def _falls_to_0(ratio: Interval) -> bool:
    return ratio.low == 0


def _has_no_end(ratio: Interval) -> bool:
    return math.isinf(ratio.high)
