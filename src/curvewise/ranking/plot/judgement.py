"""Pictures of how well measures rank checkpoints: with intervals, measures × tasks, against cost and each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from curvewise.drawing.axes import is_narrow, log_sizes, rows_of, rows_that_fit, view
from curvewise.drawing.labels import clean, safe_names, safe_text, shorten
from curvewise.drawing.marks import bars, choose, ends_of, finish, note, plain, warned, zero_line
from curvewise.drawing.panels import signed
from curvewise.drawing.style import INK, NEUTRAL, OWN, new_axes, style
from curvewise.errors import InputError
from curvewise.ranking.agreement import NleepGrid, RankingAgreement, metric_title
from curvewise.ranking.judgement import AVERAGE, RankingComparisons, RankingJudgement
from curvewise.ranking.plot.scores import finish_panels, place_names
from curvewise.text import format_count
from curvewise.types.results import FloatArray

TASK = "curvewise-task"
KINDS = ("dots", "heat", "cost")


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """A metric by measure (rows, the best first) and task (columns), and its mean over tasks."""

    measures: list[str]
    baseline: list[bool]
    tasks: list[str]
    each: FloatArray
    mean: FloatArray
    low: FloatArray
    high: FloatArray
    gflops: FloatArray

    @property
    def shades(self) -> list[str]:
        """Dark, and grey for a baseline."""
        return [NEUTRAL if b else INK for b in self.baseline]


# Draws a table of a score with names of its rows, and gives a legend.
Draw = Callable[[Axes, ScoreTable, list[str], str], list[tuple[Any, str]]]


def plot_ranking_judgement(
    result: RankingJudgement,
    ax: Axes | None = None,
    *,
    kind: str = "dots",
    score: str = "kendall",
    group: str | Sequence[str] | None = None,
    most: int | None = None,
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw the agreement of measures with accuracies, the best on top.

    Parameters
    ----------
    result : RankingJudgement
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    kind : {"dots", "heat", "cost"}
        The mean over tasks with its interval, and small dots for the tasks; measures × tasks as a
        table in colours, the best of each task in bold; or the mean against what a measure costs.
    score : str
        "kendall", "weighted_kendall", "pearson", "recall_at_1", "rel_at_1", or another k.
    group : str or sequence of str, optional
        Group of the checkpoints; the last by default, which is the union where there are several.
        Several groups get a panel each: ``group=result.groups`` draws all.
    most : int, optional
        Only so many of the best measures; all by default, as many as fit on ``ax``.
    legend : bool
        Draw a legend.
    caption : bool, optional
        Write a caption under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or the new ones; the first of several panels.

    Examples
    --------
    >>> from curvewise.ranking.judgement import judge_rankings
    >>> from curvewise.ranking.load import CheckpointScores
    >>> accuracy = np.array([0.7, 0.75, 0.8, 0.85, 0.9])
    >>> scores = {"nleep": accuracy, "size": [3.0, 1.0, 2.0, 5.0, 4.0]}
    >>> table = CheckpointScores(list("abcde"), accuracy, scores)
    >>> ax = plot_ranking_judgement(judge_rankings(table))
    >>> [name.get_text() for name in ax.get_yticklabels()]
    ['nleep', 'size']
    """
    choose("kind", kind, KINDS)
    choose("score", score, result.values)
    if kind != "cost":
        most = most or (None if ax is None else rows_that_fit(ax))
    chosen = _groups(result, group, ax)
    tables = [score_table(result, score, one, most) for one in chosen]
    if kind == "cost" and not any(np.isfinite(table.gflops).any() for table in tables):
        raise InputError("no measure has a cost. Give gflops with the CheckpointScores.", argument="kind", value=kind)
    # One axis for all panels.
    known = [v for table in tables for v in table.each[np.isfinite(table.each)].tolist()]
    mean, low, high = (np.concatenate([getattr(table, end) for table in tables]) for end in ("mean", "low", "high"))
    dots = partial(_dots, limits=view(mean, low, high, *known))
    ways: dict[str, Draw] = {"dots": dots, "heat": _heat, "cost": draw_costs}
    draw = ways[kind]
    with style():
        if len(tables) > 1:
            axes = _panels([_size(table, kind) for table in tables])
            for panel, table, name in zip(axes, tables, chosen, strict=True):
                key = draw(panel, table, safe_names(table.measures, 30), score)
                panel.set_title(safe_text(name, 60), loc="left", fontsize=10.0)
            finish_panels(axes, True, key if legend else [], _caption(result, tables, kind), caption)
            return axes[0]
        own = ax is None
        ax = ax or new_axes(*_size(tables[0], kind))
        names = safe_names(tables[0].measures, 16 if is_narrow(ax) else 30)
        key = draw(ax, tables[0], names, score)
        indent = 0.0 if kind == "cost" else max(map(len, names)) / 14
        lines = _caption(result, tables, kind, chosen[0])
        options: dict[str, Any] = {"legend": legend, "caption": caption, "indent": indent}
        if not own and kind == "dots":
            options["loc"] = "lower left"
        finish(ax, own, key, lines, columns=3 if own else 2, **options)
    return ax


def _groups(result: RankingJudgement, group: str | Sequence[str] | None, ax: Axes | None) -> list[str]:
    """Return the groups to draw."""
    if group is None:
        return [result.groups[-1]]
    chosen = [group] if isinstance(group, str) else list(group)
    if not chosen:
        raise InputError(f"is empty: use some of {', '.join(map(repr, result.groups))}.", argument="group")
    if ax is not None and len(chosen) > 1:
        raise InputError(f"is one Axes, and group names {len(chosen)}: leave ax out.", argument="ax")
    return chosen


def _size(table: ScoreTable, kind: str) -> tuple[float, float]:
    """Return width and height of a picture in inches."""
    rows, columns = len(table.measures), len(table.tasks)
    if kind == "heat":
        return 3.2 + 0.75 * (columns + (columns > 1)), 2.0 + 0.27 * rows
    return (7.0, 4.6) if kind == "cost" else (7.0, 1.9 + 0.27 * rows)


def _panels(sizes: Sequence[tuple[float, float]]) -> list[Axes]:
    """Make the Axes of a new figure, one below the other."""
    import matplotlib.pyplot as plt

    heights = [height for _, height in sizes]
    _, grid = plt.subplots(
        len(sizes),
        figsize=(max(width for width, _ in sizes), sum(heights)),
        layout="constrained",
        gridspec_kw={"height_ratios": heights},
    )
    for ax in grid:
        ax.set_gid(OWN)
    return list(grid)


def _dots(
    ax: Axes, table: ScoreTable, names: list[str], score: str, limits: tuple[float, float]
) -> list[tuple[Any, str]]:
    """Draw a row for each measure: the mean with its interval among the tasks; return a legend."""
    if score in CORRELATIONS:
        zero_line(ax)
    place: FloatArray = np.arange(float(len(names)))
    several = len(table.tasks) > 1
    for column in table.each.T if several else ():
        points(ax, column, place, NEUTRAL, 3.2, TASK, alpha=0.75)
    for i, shade in enumerate(table.shades):
        at = place[i : i + 1]
        bars(ax, at, table.low[[i]], table.high[[i]], shade, limits=limits, horizontal=True)
        points(ax, table.mean[[i]], at, shade, 6.0, SCORE)
    key: list[tuple[Any, str]] = [(_handle(NEUTRAL, 6.0), "plain baseline")] if any(table.baseline) else []
    if several:
        key = [(_handle(INK, 6.0), "mean over tasks"), *key, (_handle(NEUTRAL, 3.2), "a task")]
    rows_of(ax, names, room=ax.get_gid() != OWN and bool(key))
    for i in np.flatnonzero(np.isnan(table.mean)).tolist():
        note(ax, "unknown", (0.02, float(i)), xycoords=ax.get_yaxis_transform(), va="center", color="#6E6E6E")
    ax.set_xlim(*limits)
    ax.set_xlabel(score_label(score))
    return key


def _handle(shade: str, size: float, line: Any = "none") -> Line2D:
    return Line2D([], [], color=shade, marker="o", linestyle=line, markersize=size)


def _heat(ax: Axes, table: ScoreTable, names: list[str], score: str) -> list[tuple[Any, str]]:
    """Draw measures × tasks, with their mean as a column of its own."""
    several = len(table.tasks) > 1
    values = np.column_stack([table.each, table.mean]) if several else table.mean[:, None]
    columns = safe_names(table.tasks, 10 if is_narrow(ax) else 18)
    marked = [f"{n} (baseline)" if b else n for n, b in zip(names, table.baseline, strict=True)]
    draw_cells(ax, values, marked, [*columns, AVERAGE] if several else columns, apart=several)
    ax.set_xlabel(score_label(score))
    return []


def _caption(result: RankingJudgement, tables: Sequence[ScoreTable], kind: str, group: str | None = None) -> list[str]:
    """Return the lines under the picture, with the group where panels do not name it."""
    count = max(len(table.tasks) for table in tables)
    said = format_count(count, "task")
    if group is not None and len(result.groups) > 1:
        said += f", checkpoints: {shorten(clean(group), 40)}"
    if kind == "heat":
        said += ". Bold: the best of a column."
    else:
        over = "" if count == 1 else " of the mean over tasks"
        said += f". Bars: {100 * result.level:.4g}% intervals{over}."
    lines = [said]
    if len(tables[0].measures) < len(result.measures):
        lines.append(f"The best {len(tables[0].measures)} of {len(result.measures)} measures.")
    if kind == "cost":
        lines += dict.fromkeys(text for table in tables for text in costless(table))
    return [*lines, *warned(result)]


BASELINE = "curvewise-baseline"
# Measures that have their names in a small picture.
NAMED = 8


def draw_costs(ax: Axes, table: ScoreTable, names: list[str], score: str) -> list[tuple[Any, str]]:
    """Draw the mean against the cost; a baseline without a cost is a line."""
    on = np.isfinite(table.gflops) & (table.gflops > 0) & np.isfinite(table.mean)
    known = np.isfinite(table.mean)
    limits = view(table.mean[known], table.low[known], table.high[known])
    x, y = table.gflops[on], table.mean[on]
    ax.set_ylim(*limits)
    if len(x):
        room = max(1.2, (x.max() / x.min()) ** 0.15) if x.max() > x.min() else 3.0
        ax.set_xlim(x.min() / room, x.max() * room)
        log_sizes(ax)
    shades = np.array(table.shades)[on]
    for i in range(len(x)):
        bars(ax, x[[i]], table.low[on][[i]], table.high[on][[i]], shades[i], limits=limits)
        points(ax, x[[i]], y[[i]], shades[i], 6.5, SCORE)
    free = np.flatnonzero(~on & known & np.array(table.baseline))
    for i in free.tolist():
        look: dict[str, Any] = {"color": NEUTRAL, "ls": "--", "lw": 1.0, "label": "_baseline"}
        ax.axhline(table.mean[i], gid=BASELINE, **look)
        # Beside our own Axes, or over the line in those of someone else.
        own = ax.get_gid() == OWN
        place: dict[str, Any] = {"ha": "left", "va": "center"} if own else {"ha": "right", "va": "bottom"}
        place |= {"xycoords": ax.get_yaxis_transform(), "annotation_clip": False}
        at = (1.01 if own else 0.995, float(table.mean[i]))
        note(ax, names[i].replace(r"\$", "$"), at, color="#6E6E6E", fontsize=7.5, **place)
    shown = list(enumerate(names[i] for i in np.flatnonzero(on)))
    small = is_narrow(ax)
    place_names(ax, x, y, shown[:NAMED] if small else shown, size=7.0 if small else 8.0)
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.set_xlabel("GFLOPs apart from the forward pass")
    ax.set_ylabel(score_label(score))
    return []


def costless(table: ScoreTable) -> list[str]:
    """Return remarks on the measures without a place on the axis of costs."""
    lost = ~(np.isfinite(table.gflops) & (table.gflops > 0))
    among = [
        name
        for name, gone, plain_one in zip(table.measures, lost, table.baseline, strict=True)
        if gone and not plain_one
    ]
    names = ", ".join(shorten(clean(name), 24) for name in among[:6])
    lines = [f"Cost unknown, not drawn: {names}{' …' if len(among) > 6 else ''}."] if among else []
    if any(gone and b for gone, b in zip(lost, table.baseline, strict=True)):
        lines.append("Dashed: plain baselines, which cost nothing.")
    return lines


SCORE = "curvewise-score"
# Scores from −1 to 1, in words; the others are shares.
CORRELATIONS = {"kendall": "Kendall's τ-b", "weighted_kendall": "weighted Kendall's τ", "pearson": "Pearson's r"}


def score_label(score: str) -> str:
    """Return the name of a metric on an axis."""
    if score in CORRELATIONS:
        return CORRELATIONS[score]
    return f"{metric_title(score)} (%)" if "_at_" in score else score


def score_scale(score: str) -> float:
    """Return 100 for shares, 1 for correlations."""
    return 1.0 if score in CORRELATIONS else 100.0


def score_table(result: RankingJudgement, score: str, group: str | None, most: int | None) -> ScoreTable:
    """Arrange the numbers of a judgement, the best measures first."""
    scale = score_scale(score)
    averages = [result.row(name, group=group) for name in result.measures]
    tasks = [t for t in result.tasks if any(r.task == t and r.group == averages[0].group for r in result.rows)]
    found = {(r.measure, r.task): r for r in result.rows if r.group == averages[0].group}
    each = np.array([[found[m, t].value(score) if (m, t) in found else np.nan for t in tasks] for m in result.measures])
    spans = [r.intervals[score] for r in averages]
    mean, low, high = (
        scale * np.array([getattr(i, end) for i in spans], dtype=np.float64) for end in ("estimate", "low", "high")
    )
    low, high = (np.where(np.isnan(mean), np.nan, end) for end in (low, high))
    order = np.argsort(np.where(np.isnan(mean), np.inf, -mean), kind="stable")[:most]
    return ScoreTable(
        [result.measures[i] for i in order],
        [averages[i].baseline for i in order],
        tasks,
        scale * each.reshape(len(mean), len(tasks))[order],
        mean[order],
        low[order],
        high[order],
        np.array([averages[i].gflops for i in order]),
    )


def points(
    ax: Axes, x: FloatArray, y: FloatArray, shade: str, size: float, gid: str, *, alpha: float = 1.0, rim: float = 0.0
) -> None:
    """Draw dots without a line, with a white rim of so many points."""
    look: dict[str, Any] = {"linestyle": "none", "mec": "white", "mew": rim, "label": "_score", "alpha": alpha}
    ax.plot(x, y, marker="o", color=shade, ms=size, gid=gid, **look)


DIFFERENCE = "curvewise-difference"
NUMBER = "curvewise-number"
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
    >>> from curvewise.ranking.load import CheckpointScores
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
        key = [(_handle(INK, 5.0, "-"), "significant"), (_handle(NEUTRAL, 5.0, "-"), "not significant")]
        indent = max(map(len, names), default=0) / 14
        lines = _comparison_caption(result, len(shown))
        options: dict[str, Any] = {"legend": legend, "caption": caption, "indent": indent}
        finish(ax, own, key if own else [], lines, columns=2, **options)
    return ax


def _rows(ax: Axes, ends: FloatArray, found: NDArray[np.bool_]) -> None:
    """Draw estimates with their intervals, significant ones in blue."""
    estimate, low, high = ends
    limits, row = view(estimate, low, high, 0.0), np.arange(float(len(estimate)))
    zero_line(ax)
    for part, shade in ((found, INK), (~found, NEUTRAL)):
        bars(ax, row[part], low[part], high[part], shade, limits=limits, horizontal=True)
        points(ax, estimate[part], row[part], shade, 5.5, DIFFERENCE)
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


def _comparison_caption(result: RankingComparisons, shown: int) -> list[str]:
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
            points(ax, values, np.full(len(values), at), NEUTRAL, 3.2, TASK, alpha=0.75)
        bars(ax, place, low, high, INK, limits=limits, horizontal=True)
        points(ax, estimate, place, INK, 6.0, NUMBER)
        rows_of(ax, [plain(name) for name in names])
        ax.set_xlim(*limits)
        ax.set_xlabel("agreement × 100")
        key = [(_handle(INK, 5.0, "-"), "mean over tasks"), (_handle(NEUTRAL, 3.2), "a task")] if several else []
        sizes = "–".join(dict.fromkeys((str(min(result.n)), str(max(result.n)))))
        said = f"{sizes} checkpoints, {format_count(len(result.n), 'task')}."
        lines = [f"{said} Bars: {100 * result.level:.4g}% intervals over {result.over}.", *warned(result)]
        finish(ax, own, key, lines, legend=legend, caption=caption, columns=2, indent=1.2)
    return ax


def plot_nleep_grid(
    result: NleepGrid, ax: Axes | None = None, *, task: str | None = None, caption: bool | None = None
) -> Axes:
    """Draw Kendall's τ-b by PCA energy and number of components as a table in colours.

    Parameters
    ----------
    result : NleepGrid
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    task : str, optional
        One of them; their mean by default.
    caption : bool, optional
        Say what is shown under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or the new ones.

    Examples
    --------
    >>> import numpy as np
    >>> kendall = np.array([[[0.5, 0.6], [0.7, 0.4]]])
    >>> found = NleepGrid((0.7, 0.8), (1, 5), ("pets",), kendall, {})
    >>> [name.get_text() for name in plot_nleep_grid(found).get_yticklabels()]
    ['80%', '70%']
    """
    if task is not None and task not in result.tasks:
        there = ", ".join(map(repr, result.tasks))
        raise InputError(f"not in the grid: use {there}.", argument="task", value=task)
    values = result.mean if task is None else result.kendall[result.tasks.index(task)]
    rows = [f"{energy:.0%}" for energy in reversed(result.energies)]
    columns = [f"{count}×" for count in result.components]
    with style():
        own = ax is None
        ax = ax or new_axes(max(4.2, 1.5 + 0.6 * len(columns)), 1.7 + 0.36 * len(rows))
        draw_cells(ax, values[::-1], rows, columns, bold="all")
        ax.set_xlabel("Gaussians, times the number of classes")
        ax.set_ylabel("PCA energy")
        where = f"mean over {len(result.tasks)} tasks"
        if task is not None or len(result.tasks) == 1:
            where = shorten(clean(task or result.tasks[0]), 40)
        line = f"Kendall's τ-b of NLEEP with accuracy, {where}. Bold: the best."
        finish(ax, own, [], [line, *warned(result)], caption=caption, indent=0.6)
    return ax


CELL = "curvewise-cell"
# Columns from which numbers are set smaller.
CROWD = 9


def draw_cells(
    ax: Axes,
    values: FloatArray,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    apart: bool = False,
    bold: str = "column",
    unknown: str = "?",
) -> None:
    """Draw a cell for each value, from dark to bright.

    Parameters
    ----------
    ax : Axes
        Where.
    values : ndarray, shape (rows, columns)
        What to draw.
    rows, columns : sequence of str
        Names, in safe text.
    apart : bool
        Set the last column, an average, apart.
    bold : {"column", "all", "none"}
        Set the best of each column in bold, the best of all, or none.
    unknown : str
        What stands in the place of NaN.
    """
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    masked = np.ma.masked_invalid(values)
    ax.imshow(masked, cmap="cividis", vmin=low, vmax=high, aspect="auto", gid=CELL)
    best = _best(values, bold)
    decimals = 2 if max(abs(low), abs(high)) <= 1.5 else 1
    small = is_narrow(ax) or values.shape[1] >= CROWD
    for i, j in np.ndindex(*values.shape):
        value = float(values[i, j])
        share = (value - low) / max(high - low, 1e-12)
        ax.text(
            j,
            i,
            unknown if math.isnan(value) else signed(value, decimals),
            ha="center",
            va="center",
            color="black" if math.isnan(share) or share > 0.55 else "white",
            fontsize=7.0 if small else 8.5,
            fontweight="bold" if best[i, j] else "normal",
            gid=CELL,
        )
    if apart:
        ax.axvline(len(columns) - 1.5, color="white", linewidth=3.0, label="_line")
    ax.set_yticks(np.arange(len(rows)), labels=list(rows))
    slanted = max(map(len, columns)) > 4
    ax.set_xticks(
        np.arange(len(columns)),
        labels=list(columns),
        rotation=40 if slanted else 0,
        ha="right" if slanted else "center",
        rotation_mode="anchor",
    )
    ax.tick_params(length=0, labelsize=7.5 if is_narrow(ax) else 9.0)
    ax.spines[:].set_visible(False)


def _best(values: FloatArray, bold: str) -> NDArray[np.bool_]:
    """Return a mask of the cells that hold the highest value."""
    if bold == "none":
        return np.zeros(values.shape, dtype=bool)
    filled = np.where(np.isnan(values), -np.inf, values)
    top = filled.max(axis=0 if bold == "column" else None, keepdims=True)
    mask: NDArray[np.bool_] = np.isfinite(filled) & (filled >= top - 1e-9)
    return mask
