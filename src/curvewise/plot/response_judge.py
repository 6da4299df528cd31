"""Which measures predict the generalization gap: scores with intervals, and a table in colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from curvewise.plot.panels import signed
from curvewise.plot.style import NEUTRAL, OWN, colour, new_axes, style
from curvewise.plot.text import safe_names
from curvewise.plot.variance_axes import is_narrow, rows_of, rows_that_fit, view
from curvewise.plot.variance_parts import bars, choose, finish, note, warned, zero_line
from curvewise.response.judgement import HUNDREDFOLD, MeasureJudgement
from curvewise.types import FloatArray

SCORE = "curvewise-score"
NULL = "curvewise-null"
CELL = "curvewise-cell"
TASK = "curvewise-task"

FEW_TASKS = 4
"""Tasks up to which each has dots with intervals; of more, the mean has a dot among small ones."""

MARKERS = "sD^v"
LABELS = {
    "cmi": "CMI (%)",
    "pgdl": "CMI as the competition computes it (%)",
    "kendall": "Kendall's τ",
    "granulated": "granulated Kendall's τ",
    "pearson": "Pearson's r",
    "spearman": "Spearman's ρ",
}
"""What can be drawn, with its axis label."""


_BESIDE: dict[str, Any] = {"textcoords": "offset points", "va": "center", "color": "#6E6E6E"}


@dataclass(frozen=True, eq=False)
class _Table:
    """A score by measure (rows, the best first) and task (columns); NaN is unknown.

    With several tasks the last column is their average.
    """

    measures: list[str]
    tasks: list[str]
    estimate: FloatArray
    low: FloatArray
    high: FloatArray
    null: FloatArray

    @property
    def several(self) -> int:
        """How many tasks there are beside their average; 0 where there is one only."""
        return len(self.tasks) - 1


def plot_judgement(
    result: MeasureJudgement,
    ax: Axes | None = None,
    *,
    kind: str = "dots",
    score: str = "cmi",
    most: int | None = None,
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw how well measures predict the gap, the best on top.

    Parameters
    ----------
    result : MeasureJudgement
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    kind : {"dots", "heat"}
        Scores with their intervals and what chance gives; or measures × tasks as a table in
        colours, the best of each task in bold.
    score : {"cmi", "pgdl", "kendall", "granulated", "pearson", "spearman"}
        Which; only the first has intervals.
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
    """
    choose("kind", kind, ("dots", "heat"))
    choose("score", score, tuple(LABELS))
    table = _table(result, score, most or (None if ax is None else rows_that_fit(ax)))
    with style():
        own = ax is None
        ax = ax or _axes(table, kind)
        names = safe_names(table.measures, 16 if is_narrow(ax) else 30)
        key = (_dots if kind == "dots" else _heat)(ax, table, names, score)
        if is_narrow(ax) and len(LABELS[score]) > 20:
            ax.set_xlabel(f"{score} (%)")
        lines = _caption(result, table, kind, score)
        options: dict[str, Any] = {"legend": legend, "caption": caption}
        if not own:
            options["loc"] = "lower left"
        indent = max(map(len, names)) / 14
        finish(ax, own, key, lines, indent=indent, columns=4 if own else 2, **options)
    return ax


def _table(result: MeasureJudgement, score: str, most: int | None) -> _Table:
    """Scores in percent where the competition has them so; the best measures on top."""
    scale = 100.0 if score in HUNDREDFOLD else 1.0
    tasks = result.shown_tasks
    rows = [[result.row(name, task) for task in tasks] for name in result.measures]
    estimate = scale * np.array([[r.value(score) for r in row] for row in rows])
    ends = [[(r.cmi.low, r.cmi.high, r.null_mean) for r in row] for row in rows]
    spans = scale * np.array(ends) if score == "cmi" else np.full((*estimate.shape, 3), np.nan)
    last = np.where(np.isnan(estimate[:, -1]), -np.inf, estimate[:, -1])
    order = np.argsort(-last, kind="stable")[:most]
    low, high, null = np.moveaxis(spans[order], -1, 0)
    measures = [result.measures[i] for i in order]
    return _Table(measures, list(tasks), estimate[order], low, high, null)


def _axes(table: _Table, kind: str) -> Axes:
    rows, columns = table.estimate.shape
    if kind == "heat":
        return new_axes(3.2 + 0.75 * columns, 1.9 + 0.27 * rows)
    each = 0.1 + 0.13 * columns if 0 < table.several <= FEW_TASKS else 0.26
    return new_axes(height=1.9 + each * rows)


def _dots(ax: Axes, table: _Table, names: Sequence[str], score: str) -> list[tuple[Any, str]]:
    """A row for each measure; tasks side by side in it, or small around their average."""
    zero_line(ax)
    limits = view(table.estimate, table.low, table.high, 0.0)
    few = table.several <= FEW_TASKS
    key = []
    shown = [table.several, *range(table.several if few else 0)]
    if not few:
        for column in table.estimate[:, :-1].T:
            _points(ax, column, np.arange(float(len(names))), "o", NEUTRAL, 3.0, TASK)
    for place, j in enumerate(shown):
        average = j == table.several
        shade, marker = (colour(0), "o") if average else (colour(j + 1), MARKERS[j % len(MARKERS)])
        at: FloatArray = np.arange(float(len(names))) + 0.66 * ((place + 0.5) / len(shown) - 0.5)
        look: dict[str, Any] = {"limits": limits, "horizontal": True}
        bars(ax, at, table.low[:, j], table.high[:, j], shade, width=1.3, **look)
        _null(ax, table.null[:, j], at, 11.0 if len(shown) == 1 else 5.5)
        _points(ax, table.estimate[:, j], at, marker, shade, 6.0 if average else 4.5, SCORE)
        name = "average" if average else safe_names(table.tasks, 26)[j]
        key.append((_handle(marker, shade), name.replace(r"\$", "$")))
    if not few:
        key.append((_handle("o", NEUTRAL, 3.0), "a task"))
    if np.isfinite(table.null).any():
        key.append((_handle("|", "black", 9), "hyperparameters alone"))
    key = key if table.several else key[1:]
    rows_of(ax, names, room=ax.get_gid() != OWN and bool(key))
    for i in np.flatnonzero(np.isnan(table.estimate).all(axis=1)):
        note(ax, "unknown", (0.0, float(i)), xytext=(4, 0), **_BESIDE)
    ax.set_xlim(*limits)
    ax.set_xlabel(LABELS[score])
    return key


def _points(
    ax: Axes,
    x: FloatArray,
    y: FloatArray,
    marker: str,
    shade: str,
    size: float,
    gid: str,
) -> None:
    look: dict[str, Any] = {"linestyle": "none", "markeredgewidth": 0.0, "label": "_score"}
    ax.plot(x, y, marker=marker, color=shade, markersize=size, gid=gid, **look)


def _null(ax: Axes, values: FloatArray, place: FloatArray, size: float) -> None:
    ax.plot(
        values, place, "|", color="black", ms=size, mew=1.1, zorder=1.9, gid=NULL, label="_null"
    )


def _handle(marker: str, shade: str, size: float = 5.0) -> Line2D:
    return Line2D([], [], color=shade, marker=marker, linestyle="none", markersize=size)


def _heat(ax: Axes, table: _Table, names: Sequence[str], score: str) -> list[tuple[Any, str]]:
    """Cells with numbers, the average as a column of its own."""
    values, decimals = table.estimate, 1 if score in HUNDREDFOLD else 2
    low, high = _range(values)
    ax.imshow(
        np.ma.masked_invalid(values), cmap="cividis", vmin=low, vmax=high, aspect="auto", gid=CELL
    )
    best = [_best(column) for column in values.T]
    small = is_narrow(ax) or values.shape[1] > 8
    for i, j in np.ndindex(*values.shape):
        share = (values[i, j] - low) / max(high - low, 1e-12)
        ax.text(
            j,
            i,
            "?" if math.isnan(values[i, j]) else signed(float(values[i, j]), decimals),
            ha="center",
            va="center",
            color="black" if math.isnan(share) or share > 0.55 else "white",
            fontsize=7.0 if small else 8.5,
            fontweight="bold" if i in best[j] else "normal",
            gid=CELL,
        )
    columns = safe_names(table.tasks, 10 if is_narrow(ax) else 16)
    if table.several:
        columns[-1] = "average"
        ax.axvline(len(columns) - 1.5, color="white", linewidth=3.0, label="_line")
    ax.set_yticks(np.arange(len(names)), labels=list(names))
    ax.set_xticks(
        np.arange(len(columns)), labels=columns, rotation=40, ha="right", rotation_mode="anchor"
    )
    ax.tick_params(length=0, labelsize=7.5 if is_narrow(ax) else 9.0)
    ax.spines[:].set_visible(False)
    ax.set_xlabel(LABELS[score])
    return []


def _range(values: FloatArray) -> tuple[float, float]:
    known = values[np.isfinite(values)]
    return (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)


def _best(column: FloatArray) -> list[int]:
    """Rows with the highest value; none where none is known."""
    found: list[int] = []
    if np.isfinite(column).any():
        found = np.flatnonzero(column >= np.nanmax(column) - 1e-9).tolist()
    return found


def _caption(result: MeasureJudgement, table: _Table, kind: str, score: str) -> list[str]:
    said = f"{result.models:,} models."
    if kind == "heat":
        said += " Bold: the best of a column."
    elif score == "cmi":
        said += f" Bars: {100 * result.level:.4g}% intervals."
        if np.isfinite(table.null).any():
            said += " Ticks: the mean score with what hyperparameters leave of the gap dealt anew."
    left = len(result.measures) - len(table.measures)
    few = [f"The best {len(table.measures)} of {len(result.measures)} measures."] if left else []
    return [said, *few, *warned(result)]
