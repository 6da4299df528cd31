"""Which measures rank checkpoints well: with intervals, measures × tasks, and against cost."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from curvewise.errors import InputError
from curvewise.plot.checkpoint_cost import costless, draw_costs
from curvewise.plot.checkpoint_heat import draw_cells
from curvewise.plot.checkpoint_table import (
    CORRELATIONS,
    SCORE,
    ScoreTable,
    points,
    score_label,
    score_table,
)
from curvewise.plot.style import NEUTRAL, OWN, colour, new_axes, style
from curvewise.plot.text import clean, safe_names, shorten
from curvewise.plot.variance_axes import is_narrow, rows_of, rows_that_fit, view
from curvewise.plot.variance_parts import bars, choose, finish, note, warned, zero_line
from curvewise.ranking.judgement import AVERAGE, RankingJudgement
from curvewise.types import FloatArray

TASK = "curvewise-task"
KINDS = ("dots", "heat", "cost")


def plot_ranking_judgement(
    result: RankingJudgement,
    ax: Axes | None = None,
    *,
    kind: str = "dots",
    score: str = "kendall",
    group: str | None = None,
    most: int | None = None,
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw how well measures rank checkpoints, the best on top.

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
        "kendall", "weighted_kendall", "pearson", "recall@1", "rel@1", or another k.
    group : str, optional
        Whose checkpoints; the last group by default, which is the union where there are several.
    most : int, optional
        Only so many of the best measures; all by default, as many as fit on ``ax``.
    legend : bool
        Say what is what.
    caption : bool, optional
        Say what is shown under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or the new ones.

    Examples
    --------
    >>> from curvewise.ranking.judge import judge_rankings
    >>> from curvewise.types import CheckpointScores
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
    table = score_table(result, score, group, most)
    if kind == "cost" and not np.isfinite(table.gflops).any():
        raise InputError(
            "kind='cost': no measure has a cost. Give gflops with the CheckpointScores."
        )
    with style():
        own = ax is None
        ax = ax or _axes(table, kind)
        names = safe_names(table.measures, 16 if is_narrow(ax) else 30)
        draw = {"dots": _dots, "heat": _heat, "cost": draw_costs}[kind]
        key = draw(ax, table, names, score)
        indent = 0.0 if kind == "cost" else max(map(len, names)) / 14
        lines = _caption(result, table, kind, group)
        options: dict[str, Any] = {"legend": legend, "caption": caption, "indent": indent}
        if not own and kind == "dots":
            options["loc"] = "lower left"
        finish(ax, own, key, lines, columns=3 if own else 2, **options)
    return ax


def _axes(table: ScoreTable, kind: str) -> Axes:
    rows, columns = len(table.measures), len(table.tasks)
    if kind == "heat":
        return new_axes(3.2 + 0.75 * (columns + (columns > 1)), 2.0 + 0.27 * rows)
    return new_axes(7.0, 4.6) if kind == "cost" else new_axes(height=1.9 + 0.27 * rows)


def _dots(ax: Axes, table: ScoreTable, names: list[str], score: str) -> list[tuple[Any, str]]:
    """A row for each measure: the mean with its interval among the tasks."""
    if score in CORRELATIONS:
        zero_line(ax)
    known = table.each[np.isfinite(table.each)].tolist()
    limits = view(table.mean, table.low, table.high, *known)
    place: FloatArray = np.arange(float(len(names)))
    several = len(table.tasks) > 1
    for column in table.each.T if several else ():
        points(ax, column, place, NEUTRAL, 3.2, TASK, 0.75)
    for i, shade in enumerate(table.shades):
        at = place[i : i + 1]
        bars(ax, at, table.low[[i]], table.high[[i]], shade, limits=limits, horizontal=True)
        points(ax, table.mean[[i]], at, shade, 6.0, SCORE)
    key = _key(table)
    rows_of(ax, names, room=ax.get_gid() != OWN and bool(key))
    for i in np.flatnonzero(np.isnan(table.mean)).tolist():
        note(
            ax,
            "unknown",
            (0.02, float(i)),
            xycoords=ax.get_yaxis_transform(),
            va="center",
            color="#6E6E6E",
        )
    ax.set_xlim(*limits)
    ax.set_xlabel(score_label(score))
    return key


def _key(table: ScoreTable) -> list[tuple[Any, str]]:
    """A legend of dots."""
    plain = [(_handle(NEUTRAL, 6.0), "plain baseline")] if any(table.baseline) else []
    if len(table.tasks) < 2:
        return plain
    mean, task = _handle(colour(0), 6.0), _handle(NEUTRAL, 3.2)
    return [(mean, "mean over tasks"), *plain, (task, "a task")]


def _handle(shade: str, size: float) -> Line2D:
    return Line2D([], [], color=shade, marker="o", linestyle="none", markersize=size)


def _heat(ax: Axes, table: ScoreTable, names: list[str], score: str) -> list[tuple[Any, str]]:
    """Measures × tasks, with their mean as a column of its own."""
    several = len(table.tasks) > 1
    values = np.column_stack([table.each, table.mean]) if several else table.mean[:, None]
    columns = safe_names(table.tasks, 10 if is_narrow(ax) else 18)
    marked = [f"{n} (baseline)" if b else n for n, b in zip(names, table.baseline, strict=True)]
    draw_cells(ax, values, marked, [*columns, AVERAGE] if several else columns, apart=several)
    ax.set_xlabel(score_label(score))
    return []


def _caption(
    result: RankingJudgement, table: ScoreTable, kind: str, group: str | None
) -> list[str]:
    whose = group or result.groups[-1]
    count = len(table.tasks)
    said = f"{count} task{'' if count == 1 else 's'}"
    if len(result.groups) > 1:
        said += f", checkpoints: {shorten(clean(whose), 40)}"
    if kind == "heat":
        said += ". Bold: the best of a column."
    else:
        over = "" if count == 1 else " of the mean over tasks"
        said += f". Bars: {100 * result.level:.4g}% intervals{over}."
    lines = [said]
    if len(table.measures) < len(result.measures):
        lines.append(f"The best {len(table.measures)} of {len(result.measures)} measures.")
    if kind == "cost":
        lines += costless(table)
    return [*lines, *warned(result)]
