"""Measures that rank checkpoints against each other, and one measure's agreement."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from curvewise.drawing.axes import is_narrow, rows_of, rows_that_fit, view
from curvewise.drawing.labels import safe_names
from curvewise.drawing.marks import bars, ends_of, finish, plain, warned, zero_line
from curvewise.drawing.style import NEUTRAL, colour, new_axes, style
from curvewise.ranking.agreement import RankingAgreement
from curvewise.ranking.comparison import RankingComparisons
from curvewise.ranking.plot.judgement import score_label, score_scale
from curvewise.types.units import FloatArray

DIFFERENCE = "curvewise-difference"
NUMBER = "curvewise-number"
TASK = "curvewise-task"
# Differences shown of many.
CLEAREST = 30


def plot_ranking_comparisons(
    result: RankingComparisons,
    ax: Axes | None = None,
    *,
    most: int | None = None,
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw differences between measures, with intervals.

    Parameters
    ----------
    result : RankingComparisons
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    most : int, optional
        Show only this many of the clearest differences: 30 by default, fewer in small Axes.
    legend : bool
        Draw a legend.
    caption : bool, optional
        Write a caption under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or the new ones.

    Examples
    --------
    >>> from curvewise.ranking.judgement import judge_rankings
    >>> from curvewise.ranking.scores import CheckpointScores
    >>> accuracy = np.array([0.7, 0.75, 0.8, 0.85, 0.9])
    >>> scores = {"nleep": accuracy, "size": [3.0, 1.0, 2.0, 5.0, 4.0]}
    >>> found = judge_rankings(CheckpointScores(list("abcde"), accuracy, scores)).comparisons()
    >>> [name.get_text() for name in plot_ranking_comparisons(found).get_yticklabels()]
    ['nleep − size']
    """
    estimate, low, high = ends_of(row.difference for row in result.rows)
    values = list(dict.fromkeys(row.value for row in result.rows))
    scale = score_scale(values[0]) if len(values) == 1 else 1.0
    pvalues = np.array([row.pvalue for row in result.rows])
    most = max(1, most or (CLEAREST if ax is None else min(CLEAREST, rows_that_fit(ax))))
    clear = np.argsort(np.where(np.isnan(pvalues), 2.0, pvalues), kind="stable")[:most]
    shown = clear[np.argsort(-estimate[clear], kind="stable")]
    found = np.array([row.adjusted <= 1 - row.difference.level for row in result.rows])
    with style():
        own = ax is None
        ax = ax or new_axes(height=2.0 + 0.24 * len(shown))
        ends = np.stack([estimate, low, high])[:, shown]
        _rows(ax, scale * ends, found[shown])
        names = _names(result, shown, is_narrow(ax))
        rows_of(ax, names)
        what = score_label(values[0]) if len(values) == 1 else "value"
        ax.set_xlabel(what if is_narrow(ax) else f"difference of {what}")
        key = [(_handle(colour(0)), "shown"), (_handle(NEUTRAL), "not shown")]
        indent = max(map(len, names), default=0) / 14
        lines = _caption(result, len(shown))
        options: dict[str, Any] = {"legend": legend, "caption": caption, "indent": indent}
        finish(ax, own, key if own else [], lines, columns=2, **options)
    return ax


def _rows(ax: Axes, ends: FloatArray, found: NDArray[np.bool_]) -> None:
    """Draw estimates with their intervals, significant ones in blue."""
    estimate, low, high = ends
    limits, row = view(estimate, low, high, 0.0), np.arange(len(estimate))
    zero_line(ax)
    for part, shade in ((found, colour(0)), (~found, NEUTRAL)):
        bars(ax, row[part], low[part], high[part], shade, limits=limits, horizontal=True)
        look: dict[str, Any] = {"color": shade, "label": "_difference", "mew": 0.0}
        ax.plot(estimate[part], row[part], "o", ms=5.5, gid=DIFFERENCE, **look)
    ax.set_xlim(*limits)


def _names(result: RankingComparisons, shown: NDArray[np.int64], narrow: bool) -> list[str]:
    """Return the two measures of each row, and the group where there are several."""
    rows = [result.rows[i] for i in shown]
    every = list(dict.fromkeys(name for row in result.rows for name in (row.one, row.two)))
    short = dict(zip(every, safe_names(every, 11 if narrow else 20), strict=True))
    groups = list(dict.fromkeys(row.group for row in result.rows))
    where = dict(zip(groups, safe_names(groups, 10 if narrow else 16), strict=True))
    tails = [f", {where[row.group]}" if len(groups) > 1 else "" for row in rows]
    return [f"{short[r.one]} − {short[r.two]}{t}" for r, t in zip(rows, tails, strict=True)]


def _handle(shade: str) -> Line2D:
    return Line2D([], [], color=shade, marker="o", ms=5)


def _caption(result: RankingComparisons, shown: int) -> list[str]:
    """Return the lines under the picture."""
    if not result.rows:
        return ["There is nothing to compare."]
    level = result.rows[0].difference.level
    lines = [
        f"Bars: {100 * level:.4g}% intervals of the mean over tasks. Shown: p ≤ "
        f"{1 - level:.2g} for all comparisons together."
    ]
    if shown < len(result.rows):
        lines.append(f"The {shown} clearest of {len(result.rows)} differences.")
    return [*lines, *warned(result)]


def plot_ranking_agreement(
    result: RankingAgreement, ax: Axes | None = None, *, legend: bool = True, caption: bool | None = None
) -> Axes:
    """Draw the agreement of scores with accuracies: each number × 100 with its interval.

    Parameters
    ----------
    result : RankingAgreement
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    legend : bool
        Draw a legend.
    caption : bool, optional
        Write a caption under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or the new ones.

    Examples
    --------
    >>> from curvewise.ranking.agreement import ranking_agreement
    >>> found = ranking_agreement([1.0, 2.0, 3.0, 5.0, 4.0], [0.5, 0.6, 0.7, 0.8, 0.9], k=1)
    >>> [name.get_text() for name in plot_ranking_agreement(found).get_yticklabels()][:2]
    ['Recall@1', 'Rel@1']
    """
    estimate, low, high = (100 * end for end in ends_of(result.intervals.values()))
    names = [score_label(name).removesuffix(" (%)") for name in result.intervals]
    several = len(result.n) > 1
    with style():
        own = ax is None
        ax = ax or new_axes(height=2.0 + 0.3 * len(names))
        zero_line(ax)
        each = [100 * result.by_task[name] for name in result.intervals] if several else []
        every = [*each, np.clip(low, -100, 100), np.clip(high, -100, 100)]
        known = [v for values in every for v in values[np.isfinite(values)].tolist()]
        limits = view(estimate, low, high, *known)
        place: FloatArray = np.arange(float(len(names)))
        for at, values in zip(place, each, strict=False):
            look: dict[str, Any] = {"color": NEUTRAL, "alpha": 0.75, "mew": 0.0, "label": "_task"}
            ax.plot(values, np.full(len(values), at), "o", ms=3.2, gid=TASK, **look)
        bars(ax, place, low, high, colour(0), limits=limits, horizontal=True)
        ax.plot(estimate, place, "o", color=colour(0), ms=6.0, gid=NUMBER, label="_number")
        rows_of(ax, [plain(name) for name in names])
        ax.set_xlim(*limits)
        ax.set_xlabel("agreement × 100")
        task = Line2D([], [], color=NEUTRAL, marker="o", ms=3.2, ls="none")
        key = [(_handle(colour(0)), "mean over tasks"), (task, "a task")] if several else []
        sizes = "–".join(dict.fromkeys((str(min(result.n)), str(max(result.n)))))
        tasks = f"{len(result.n)} task{'' if len(result.n) == 1 else 's'}"
        bars_are = f"Bars: {100 * result.level:.4g}% intervals over {result.over}."
        lines = [f"{sizes} checkpoints, {tasks}. {bars_are}", *warned(result)]
        finish(ax, own, key, lines, legend=legend, caption=caption, columns=2, indent=1.2)
    return ax
