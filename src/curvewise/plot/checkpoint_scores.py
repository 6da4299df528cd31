"""Scores of checkpoints against what fine-tuning gave, task by task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.plot.checkpoint_kinds import (
    REFERENCE,
    Kinds,
    as_percent,
    choose_rows,
    find_kinds,
    legend_above,
)
from curvewise.plot.checkpoint_labels import place_names
from curvewise.plot.panels import new_panels, signed, write_below
from curvewise.plot.style import new_axes, style
from curvewise.plot.text import clean, safe_names, safe_text, shorten
from curvewise.plot.variance_axes import is_narrow
from curvewise.plot.variance_parts import finish, plain
from curvewise.stats.correlation import kendall, pearson
from curvewise.types.scores import ONE_TASK, CheckpointScores

DOTS = "curvewise-checkpoints"
CHOSEN = "curvewise-chosen"
SCRATCH = "curvewise-reference"
MOST_MEASURES = 6
MOST_COLUMNS = 5


def plot_checkpoint_scores(
    table: CheckpointScores,
    measures: str | Sequence[str] | None = None,
    ax: Axes | None = None,
    *,
    task: str | Sequence[str] | None = None,
    group: str | None = None,
    kinds: Mapping[str, str] | None = None,
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw the scores of checkpoints against their accuracies, a panel for each task.

    Over each panel stand the number of checkpoints, Kendall's τ-b and Pearson's correlation. A
    ring marks the checkpoint with the highest score, which the measure would choose; a line is
    what a reference (training from scratch) gave.

    Parameters
    ----------
    table : CheckpointScores
        Checkpoints with scores and accuracies.
    measures : str or sequence of str, optional
        Which; the first six by default. Several measures become rows, and tasks columns.
    ax : Axes, optional
        Where, for one measure on one task; a new figure by default.
    task : str or sequence of str, optional
        Only these.
    group : str, optional
        Only this one; all groups together by default, what they share taken once.
    kinds : mapping of str to str, optional
        What colours tell: the kind of each checkpoint. The groups by default.
    legend : bool
        Say what the colours are.
    caption : bool, optional
        Say what is shown under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or those of the first panel.

    Examples
    --------
    >>> table = CheckpointScores(["a", "b", "c"], [0.7, 0.8, 0.9], {"nleep": [-2.0, -1.5, -1.0]})
    >>> plot_checkpoint_scores(table).get_title(loc="left")
    'n = 3, τ = 1.00, r = 1.00'
    """
    table = choose_rows(table, task, group)
    names = _chosen(table, measures)
    tasks = table.task_names
    panels = [(name, where) for name in names for where in tasks]
    if ax is not None and len(panels) > 1:
        raise InputError(
            f"ax is one Axes, there are {len(names)} measure(s) and {len(tasks)} task(s): choose "
            "with measures= and task=, or leave ax out."
        )
    told, once = find_kinds(table, kinds), _once(table)
    left_out: list[int] = []
    with style():
        own = ax is None
        axes = [ax] if ax is not None else _panels(len(names), len(tasks))
        for k, (name, where) in enumerate(panels):
            panel = axes[k]
            rows = np.flatnonzero(once & (table.tasks == where))
            known = np.isfinite(table.scores[name][rows]) & np.isfinite(table.accuracy[rows])
            left_out.append(int((~known & table.ranked[rows]).sum()))
            said = _panel(panel, table, told, name, rows[known & table.ranked[rows]])
            _lines(panel, table, where)
            first = len(tasks) > 1 and (k < len(tasks) or len(names) == 1)
            title = f"{safe_text(where, 30)}\n" if first else ""
            panel.set_title(f"{title}{plain(said)}", loc="left", fontsize=9.0)
            if len(names) > 1 and len(tasks) > 1 and k % len(tasks):
                panel.set_ylabel("")
        lines = _caption(table, sum(left_out))
        _finish(axes, own, told.key() if legend else [], lines, caption)
    return axes[0]


def _chosen(table: CheckpointScores, measures: str | Sequence[str] | None) -> list[str]:
    known = list(table.measures)
    if not known:
        raise InputError("table has no scores: plot_fine_tuning draws accuracies alone.")
    if measures is None:
        return known[:MOST_MEASURES]
    wanted = [measures] if isinstance(measures, str) else list(measures)
    for name in wanted:
        if name not in known:
            there = ", ".join(map(repr, known))
            raise InputError(f"measures={name!r} is not in the table: use {there}.")
    return wanted


def _once(table: CheckpointScores) -> NDArray[np.bool_]:
    """The rows of the union: a checkpoint that several groups share is drawn once."""
    assert table.tasks is not None
    keys = list(zip(table.tasks.tolist(), table.checkpoints.tolist(), strict=True))
    first = {key: i for i, key in reversed(list(enumerate(keys)))}
    mask = np.zeros(len(table), dtype=bool)
    mask[list(first.values())] = True
    return mask


def _panels(measures: int, tasks: int) -> list[Axes]:
    count = measures * tasks
    if count == 1:
        return [new_axes(5.6, 4.6)]
    if measures > 1 and tasks > 1:
        return new_panels(count, tasks, max(2.2, min(3.0, 15 / tasks)), 2.6)
    columns = min(count, MOST_COLUMNS if count > 8 else 4 if count != 6 else 3)
    return new_panels(count, columns, 3.1 if columns < 5 else 2.7, 3.1)


def _panel(
    ax: Axes, table: CheckpointScores, told: Kinds, name: str, rows: NDArray[np.int64]
) -> str:
    """One measure on one task, and what to say of it."""
    scale = as_percent(table)
    ax.set_xlabel(safe_text(name, 28))
    ax.set_ylabel("accuracy (%)" if scale == 100 else "accuracy")
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.xaxis.set_major_locator(MaxNLocator(4))
    if not len(rows):
        return "no checkpoint has both numbers"
    x, y = table.scores[name][rows], scale * table.accuracy[rows]
    index = np.array([told.index(row) for row in rows.tolist()])
    for i in np.unique(index):
        here, row = index == i, int(rows[np.argmax(index == i)])
        look: dict[str, Any] = {"linewidths": 0.4, "edgecolors": "white", "zorder": 2.5}
        size = 30 if len(rows) <= 60 else 16
        dots = ax.scatter(
            x[here], y[here], s=size, color=told.shade(row), marker=told.marker(row), **look
        )
        dots.set_gid(DOTS)
    _mark(ax, table, rows, x, y)
    tau = kendall(x[None], y)[0] if len(rows) > 1 else np.nan
    r = pearson(x[None], y)[0] if len(rows) > 2 else np.nan
    return f"n = {len(rows)}, τ = {_shown(tau)}, r = {_shown(r)}"


def _shown(value: float) -> str:
    return "?" if np.isnan(value) else signed(float(value), 2)


def _mark(
    ax: Axes,
    table: CheckpointScores,
    rows: NDArray[np.int64],
    x: NDArray[np.float64],
    y: NDArray[np.float64],
) -> None:
    """A ring around the highest scores; the names of it and of the best, where there is room."""
    top, best = np.flatnonzero(x == x.max()), int(np.argmax(y))
    ring: dict[str, Any] = {"facecolors": "none", "edgecolors": "black", "linewidths": 1.1}
    ax.scatter(x[top], y[top], s=95, zorder=3.0, gid=CHOSEN, **ring)
    if is_narrow(ax):
        return
    shown = dict.fromkeys([int(top[0]), best] if len(top) == 1 else [best])
    names = safe_names([str(table.checkpoints[rows[i]]) for i in shown], 28)
    place_names(ax, x, y, list(zip(shown, names, strict=True)))


def _lines(ax: Axes, table: CheckpointScores, task: str) -> None:
    """What references gave on a task."""
    here = ~table.ranked & (table.tasks == task) & np.isfinite(table.accuracy)
    for value in np.unique(as_percent(table) * table.accuracy[here]):
        look: dict[str, Any] = {"color": REFERENCE, "lw": 1.0, "ls": "--", "zorder": 1.2}
        ax.axhline(value, gid=SCRATCH, label="_reference", **look)


def _finish(
    axes: Sequence[Axes],
    own: bool,
    key: list[tuple[Any, str]],
    lines: Sequence[str],
    caption: bool | None,
) -> None:
    if key and any(line.get_gid() == SCRATCH for ax in axes for line in ax.lines):
        key = [*key, (Line2D([], [], color=REFERENCE, ls="--", lw=1.0), "reference, not ranked")]
    if len(axes) == 1:
        finish(axes[0], own, key, lines, caption=caption, columns=3 if own else 1)
        return
    legend_above(axes[0], key)
    if caption is not False:
        write_below(axes[0], lines)


def _caption(table: CheckpointScores, left_out: int) -> list[str]:
    where = table.task_names
    lines = ["A dot is a checkpoint; ring: the highest score. τ: Kendall's τ-b, r: Pearson's."]
    if len(where) == 1 and where[0] != ONE_TASK:
        lines[0] = f"{shorten(clean(where[0]), 40)}. {lines[0]}"
    there = [name for name in table.reference if name in table.checkpoints]
    if there:
        who = shorten(clean(there[0]), 30) if len(there) == 1 else "references"
        lines[0] += f" Dashed: {who}, not ranked."
    if left_out:
        lines.append(f"⚠ {left_out} dot(s) left out, where a score or an accuracy is no number.")
    return lines
