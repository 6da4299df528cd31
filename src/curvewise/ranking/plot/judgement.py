"""Pictures of how well measures rank checkpoints: with intervals, measures × tasks, and against cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from curvewise.drawing.axes import is_narrow, log_sizes, rows_of, rows_that_fit, view
from curvewise.drawing.labels import clean, safe_names, safe_text, shorten
from curvewise.drawing.marks import bars, choose, finish, note, warned, zero_line
from curvewise.drawing.panels import write_below
from curvewise.drawing.style import NEUTRAL, OWN, colour, new_axes, style
from curvewise.errors import InputError
from curvewise.ranking.agreement import metric_title
from curvewise.ranking.judgement import AVERAGE, RankingJudgement
from curvewise.ranking.plot.grid import draw_cells
from curvewise.ranking.plot.scores import legend_above, place_names
from curvewise.types.units import FloatArray

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
        """Blue, and grey for a baseline."""
        return [NEUTRAL if b else colour(0) for b in self.baseline]


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
    >>> from curvewise.ranking.scores import CheckpointScores
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
            legend_above(axes[0], key if legend else [])
            if caption is not False:
                write_below(axes[0], _caption(result, tables, kind))
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
        raise InputError(f"group is empty: use some of {', '.join(map(repr, result.groups))}.")
    if ax is not None and len(chosen) > 1:
        raise InputError(f"ax is one Axes, and group names {len(chosen)}: leave ax out.")
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
        points(ax, column, place, NEUTRAL, 3.2, TASK, 0.75)
    for i, shade in enumerate(table.shades):
        at = place[i : i + 1]
        bars(ax, at, table.low[[i]], table.high[[i]], shade, limits=limits, horizontal=True)
        points(ax, table.mean[[i]], at, shade, 6.0, SCORE)
    key: list[tuple[Any, str]] = [(_handle(NEUTRAL, 6.0), "plain baseline")] if any(table.baseline) else []
    if several:
        key = [(_handle(colour(0), 6.0), "mean over tasks"), *key, (_handle(NEUTRAL, 3.2), "a task")]
    rows_of(ax, names, room=ax.get_gid() != OWN and bool(key))
    for i in np.flatnonzero(np.isnan(table.mean)).tolist():
        note(ax, "unknown", (0.02, float(i)), xycoords=ax.get_yaxis_transform(), va="center", color="#6E6E6E")
    ax.set_xlim(*limits)
    ax.set_xlabel(score_label(score))
    return key


def _handle(shade: str, size: float) -> Line2D:
    return Line2D([], [], color=shade, marker="o", linestyle="none", markersize=size)


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
    said = f"{count} task{'' if count == 1 else 's'}"
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


def points(ax: Axes, x: FloatArray, y: FloatArray, shade: str, size: float, gid: str, alpha: float = 1.0) -> None:
    """Draw dots without a line."""
    look: dict[str, Any] = {"linestyle": "none", "mew": 0.0, "label": "_score", "alpha": alpha}
    ax.plot(x, y, marker="o", color=shade, ms=size, gid=gid, **look)
