"""Pictures of how well measures rank checkpoints: with intervals, measures × tasks, against cost and each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from curvewise.drawing.axes import is_narrow, log_sizes, view
from curvewise.drawing.labels import clean, safe_names, safe_text, shorten
from curvewise.drawing.marks import choose, choose_some, draw_estimates, ends_of, finish, key_dot, note, plain, warned
from curvewise.drawing.panels import new_panels
from curvewise.drawing.rows import clearest, draw_cells, draw_differences, draw_rows, highest, pair_names, rows_shown
from curvewise.drawing.style import INK, NEUTRAL, OWN, canvas, style
from curvewise.errors import InputError
from curvewise.ranking.agreement import NleepGrid, RankingAgreement, metric_title
from curvewise.ranking.judgement import AVERAGE, RankingComparisons, RankingJudgement
from curvewise.ranking.plot.scores import finish_panels, place_names
from curvewise.text import format_count, format_level
from curvewise.types.results import FloatArray

TASK = "curvewise-task"
Key = list[tuple[Any, str]]
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
Draw = Callable[[Axes, ScoreTable, list[str], str], Key]


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
        most = rows_shown(ax, most, len(result.measures))
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
    if len(tables) > 1:
        with style():
            sizes = [_size(table, kind) for table in tables]
            heights = [height for _, height in sizes]
            axes = new_panels(len(sizes), 1, max(width for width, _ in sizes), heights)
            for panel, table, name in zip(axes, tables, chosen, strict=True):
                key = draw(panel, table, safe_names(table.measures, 30), score)
                panel.set_title(safe_text(name, 60), loc="left", fontsize=10.0)
            finish_panels(axes, True, key if legend else [], _caption(result, tables, kind), caption)
            return axes[0]
    width, height = _size(tables[0], kind)
    with canvas(ax, height, width) as (ax, own):
        names = safe_names(tables[0].measures, 16 if is_narrow(ax) else 30)
        key = draw(ax, tables[0], names, score)
        options: dict[str, Any] = {"legend": legend, "caption": caption, "columns": 3 if own else 2}
        options["indent"] = 0.0 if kind == "cost" else max(map(len, names)) / 14
        loc = "lower left" if not own and kind == "dots" else None
        finish(ax, own, key, _caption(result, tables, kind, chosen[0]), loc=loc, **options)
    return ax


def _groups(result: RankingJudgement, group: str | Sequence[str] | None, ax: Axes | None) -> list[str]:
    """Return the groups to draw."""
    if group is None:
        return [result.groups[-1]]
    chosen = list(choose_some("group", group, result.groups))
    if ax is not None and len(chosen) > 1:
        raise InputError(f"is one Axes, and group names {len(chosen)}: leave ax out.", argument="ax")
    return chosen


def _size(table: ScoreTable, kind: str) -> tuple[float, float]:
    """Return width and height of a picture in inches."""
    rows, columns = len(table.measures), len(table.tasks)
    if kind == "heat":
        return 3.2 + 0.75 * (columns + (columns > 1)), 2.0 + 0.27 * rows
    return (7.0, 4.6) if kind == "cost" else (7.0, 1.9 + 0.27 * rows)


def _dots(ax: Axes, table: ScoreTable, names: list[str], score: str, limits: tuple[float, float]) -> Key:
    """Draw a row for each measure: the mean with its interval among the tasks; return a legend."""
    several = len(table.tasks) > 1
    for column in table.each.T if several else ():
        points(ax, column, np.arange(float(len(names))), NEUTRAL, 3.2, TASK, alpha=0.75)
    key: Key = [(key_dot(NEUTRAL, size=6.0), "plain baseline")] if any(table.baseline) else []
    if several:
        key = [(key_dot(INK, size=6.0), "mean over tasks"), *key, (key_dot(NEUTRAL, size=3.2), "a task")]
    zero, room = 0.0 if score in CORRELATIONS else None, ax.get_gid() != OWN and bool(key)
    ends = table.mean, table.low, table.high
    draw_rows(ax, names, ends, table.shades, zero=zero, limits=limits, gid=SCORE, room=room)
    for i in np.flatnonzero(np.isnan(table.mean)).tolist():
        note(ax, "unknown", (0.02, float(i)), xycoords=ax.get_yaxis_transform(), va="center", color="#6E6E6E")
    ax.set_xlabel(score_label(score))
    return key


def _heat(ax: Axes, table: ScoreTable, names: list[str], score: str) -> Key:
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
        said += f". Bars: {format_level(result.level)} intervals{over}."
    lines = [said]
    if len(tables[0].measures) < len(result.measures):
        lines.append(f"The best {len(tables[0].measures)} of {len(result.measures)} measures.")
    if kind == "cost":
        lines += dict.fromkeys(text for table in tables for text in costless(table))
    return [*lines, *warned(result)]


BASELINE = "curvewise-baseline"
# Measures that have their names in a small picture.
NAMED = 8


def draw_costs(ax: Axes, table: ScoreTable, names: list[str], score: str) -> Key:
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
    shades = np.array(table.shades)[on].tolist()
    draw_estimates(ax, x, (y, table.low[on], table.high[on]), shades, limits=limits, gid=SCORE, horizontal=False)
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
    lost = np.flatnonzero(~(table.gflops > 0) | np.isinf(table.gflops)).tolist()
    among = [table.measures[i] for i in lost if not table.baseline[i]]
    names = ", ".join(shorten(clean(name), 24) for name in among[:6])
    lines = [f"Cost unknown, not drawn: {names}{' …' if len(among) > 6 else ''}."] if among else []
    if len(lost) > len(among):
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


NUMBER = "curvewise-number"


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
    if not result.rows:
        lines = ["There is nothing to compare."]
    else:
        level = result.rows[0].difference.level
        said = f"Bars: {format_level(level)} intervals of the mean over tasks. Significant: p ≤ {1 - level:.2g} for all"
        lines = [f"{said} comparisons together.", *warned(result)]
    shown = clearest(ax, most, np.array([row.pvalue for row in result.rows]), order=-estimate)
    rows = [result.rows[i] for i in shown]
    what = score_label(values[0]) if len(values) == 1 else "value"
    return draw_differences(
        ax,
        pair_names(ax, [(row.one, row.two) for row in rows], [row.group for row in rows]),
        [scale * end[shown] for end in (estimate, low, high)],
        [bool(row.adjusted <= 1 - row.difference.level) for row in rows],
        total=len(result.rows),
        label=what if ax is not None and is_narrow(ax) else f"difference of {what}",
        lines=lines,
        legend=legend,
        caption=caption,
    )


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
    with canvas(ax, 2.0 + 0.3 * len(names)) as (ax, own):
        each = [100 * result.by_task[name] for name in result.intervals] if several else []
        every = [*each, np.clip(low, -100, 100), np.clip(high, -100, 100)]
        known = [v for values in every for v in values[np.isfinite(values)].tolist()]
        for at, values in enumerate(each):
            points(ax, values, np.full(len(values), float(at)), NEUTRAL, 3.2, TASK, alpha=0.75)
        limits = view(estimate, low, high, *known)
        texts = [plain(name) for name in names]
        draw_rows(ax, texts, (estimate, low, high), zero=0.0, limits=limits, gid=NUMBER)
        ax.set_xlabel("agreement × 100")
        key = [(key_dot(INK, line="-"), "mean over tasks"), (key_dot(NEUTRAL, size=3.2), "a task")] if several else []
        sizes = "–".join(dict.fromkeys((str(min(result.n)), str(max(result.n)))))
        said = f"{sizes} checkpoints, {format_count(len(result.n), 'task')}."
        lines = [f"{said} Bars: {format_level(result.level)} intervals over {result.over}.", *warned(result)]
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
    if task is not None:
        choose("task", task, result.tasks)
    values = result.mean if task is None else result.kendall[result.tasks.index(task)]
    rows = [f"{energy:.0%}" for energy in reversed(result.energies)]
    columns = [f"{count}×" for count in result.components]
    with canvas(ax, 1.7 + 0.36 * len(rows), max(4.2, 1.5 + 0.6 * len(columns))) as (ax, own):
        draw_cells(ax, values[::-1], rows, columns, best=highest(values[::-1]))
        ax.set_xlabel("Gaussians, times the number of classes")
        ax.set_ylabel("PCA energy")
        where = f"mean over {len(result.tasks)} tasks"
        if task is not None or len(result.tasks) == 1:
            where = shorten(clean(task or result.tasks[0]), 40)
        line = f"Kendall's τ-b of NLEEP with accuracy, {where}. Bold: the best."
        finish(ax, own, [], [line, *warned(result)], caption=caption, indent=0.6)
    return ax
