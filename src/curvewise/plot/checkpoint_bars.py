"""What fine-tuning gave, checkpoint by checkpoint (figure 1 of the paper)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from curvewise.errors import InputError
from curvewise.plot.checkpoint_kinds import (
    REFERENCE,
    Kinds,
    as_percent,
    choose_rows,
    find_kinds,
    handle,
    legend_above,
)
from curvewise.plot.panels import write_below
from curvewise.plot.style import OWN, style
from curvewise.plot.text import clean, safe_names, safe_text
from curvewise.plot.variance_axes import is_narrow
from curvewise.plot.variance_parts import choose, finish, note, zero_line
from curvewise.tables import number
from curvewise.types import FloatArray
from curvewise.types.scores import CheckpointScores

BAR = "curvewise-bar"
FAILED = "curvewise-failed"
MOST_TASKS = 6
"""Panels beside each other."""


def plot_fine_tuning(
    table: CheckpointScores,
    ax: Axes | None = None,
    *,
    task: str | Sequence[str] | None = None,
    group: str | None = None,
    kinds: Mapping[str, str] | None = None,
    order: str = "accuracy",
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw the accuracy of each checkpoint after fine-tuning, less the mean of its group.

    Parameters
    ----------
    table : CheckpointScores
        Checkpoints with their accuracies.
    ax : Axes, optional
        Where, for one task and one group; a new figure with a panel for each by default.
    task : str or sequence of str, optional
        Only these.
    group : str, optional
        Only this one.
    kinds : mapping of str to str, optional
        What colours tell: the kind of each checkpoint, such as how it was trained. The groups by
        default. References (training from scratch) are black.
    order : {"accuracy", "table"}
        The best on top, by the mean over the tasks; or as in the table.
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
    >>> table = CheckpointScores(["a", "b", "scratch"], [0.8, 0.9, 0.6], reference=("scratch",))
    >>> ax = plot_fine_tuning(table)
    >>> [name.get_text() for name in ax.get_yticklabels()]
    ['b', 'a', 'scratch']
    """
    choose("order", order, ("accuracy", "table"))
    table = choose_rows(table, task, group)
    told = find_kinds(table, kinds)
    cells = [(g, t) for g in table.group_names for t in table.task_names]
    if ax is not None and len(cells) > 1:
        raise InputError(
            f"ax is one Axes, there are {len(table.group_names)} group(s) and "
            f"{len(table.task_names)} task(s): choose with group= and task=, or leave ax out."
        )
    names = {g: _names(part, order) for g, part in table.by_group().items()}
    with style():
        own = ax is None
        axes = [ax] if ax is not None else _panels(names, len(table.task_names))
        for panel, (g, t) in zip(axes, cells, strict=False):
            _panel(panel, table, told, g, t, names[g])
        _label(axes, table, names)
        # Rows of panels that are groups have their names beside them.
        key = [] if kinds is None and len(names) > 1 else told.key(marked=False)
        if not table.ranked.all():
            key.append((handle(REFERENCE, "s"), _references(table)))
        _finish(axes, own, key if legend else [], _caption(table), caption)
    return axes[0]


def _names(part: CheckpointScores, order: str) -> list[str]:
    """The checkpoints of a group from top to bottom, references last."""
    found = list(dict.fromkeys(part.checkpoints.tolist()))
    value = dict.fromkeys(found, 0.0)
    if order == "accuracy":
        offset = part.accuracy - _means(part)
        for name in found:
            known = offset[(part.checkpoints == name) & np.isfinite(offset)]
            value[name] = -float(known.mean()) if len(known) else np.inf
    return sorted(found, key=lambda name: (name in part.reference, value[name]))


def _means(part: CheckpointScores) -> FloatArray:
    """The mean accuracy of the ranked checkpoints of a row's task."""
    out = np.full(len(part), np.nan)
    for task in part.task_names:
        here = part.tasks == task
        among = part.accuracy[here & part.ranked & np.isfinite(part.accuracy)]
        among = among if len(among) else part.accuracy[here & np.isfinite(part.accuracy)]
        out[here] = among.mean() if len(among) else np.nan
    return out


def _panels(names: Mapping[str, Sequence[str]], tasks: int) -> list[Axes]:
    """A row of panels for each group, as high as its checkpoints are many, and wrapped tasks."""
    import matplotlib.pyplot as plt

    columns = _columns(tasks)
    lines = [g for g in names for _ in range(-(-tasks // columns))]
    heights = [0.55 + 0.19 * len(names[g]) for g in lines]
    longest = max(len(text) for g in names for text in safe_names(names[g], 28))
    size = (max(0.3 + 0.075 * longest + 1.9 * columns, 4.6), 0.8 + sum(heights))
    figure, grid = plt.subplots(
        len(lines),
        columns,
        figsize=size,
        layout="constrained",
        squeeze=False,
        gridspec_kw={"height_ratios": heights},
    )
    axes: list[Axes] = []
    for k in range(len(names)):
        block = grid[k * len(lines) // len(names) : (k + 1) * len(lines) // len(names)].ravel()
        axes.extend(block[:tasks])
        for blank in block[tasks:]:
            figure.delaxes(blank)
    axes[0].set_gid(OWN)
    return axes


def _columns(tasks: int) -> int:
    """Panels beside each other, in lines of about the same length."""
    return -(-tasks // -(-tasks // MOST_TASKS))


def _panel(
    ax: Axes, table: CheckpointScores, told: Kinds, group: str, task: str, names: Sequence[str]
) -> None:
    """One group on one task."""
    rows = np.flatnonzero((table.groups == group) & (table.tasks == task))
    place = {name: float(i) for i, name in enumerate(names)}
    scale = as_percent(table)
    zero_line(ax)
    ax.set_yticks(np.arange(len(names)), labels=[""] * len(names))
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", alpha=0.25, linewidth=0.6)
    ax.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: _tick(x)))
    ax.margins(x=0.06)
    if not len(rows):
        ax.set_title(f"{safe_text(task, 26)}\nnot measured", loc="left", fontsize=9.0)
        return
    part = table.select(rows)
    mean = float(_means(part)[0])
    for i, row in enumerate(rows.tolist()):
        y = place[str(part.checkpoints[i])]
        offset = scale * (float(part.accuracy[i]) - mean)
        if np.isnan(offset):
            at: dict[str, Any] = {"xycoords": ax.get_yaxis_transform(), "va": "center"}
            note(ax, "failed", (0.02, y), fontsize=7.0, color="#6E6E6E", gid=FAILED, **at)
            continue
        shade = told.shade(row) if table.ranked[row] else REFERENCE
        ax.barh(y, offset, height=0.72, color=shade, gid=BAR)
    unit = "%" if scale == 100 else ""
    said = "none known" if np.isnan(mean) else f"mean {_mean(scale * mean)}{unit}"
    ax.set_title(f"{safe_text(task, 26)}\n{said}", loc="left", fontsize=9.0)


def _tick(x: float) -> str:
    """A difference with its sign."""
    return "0" if abs(x) < 1e-12 else f"{x:+.3g}".replace("-", "−")


def _mean(value: float) -> str:
    """One decimal, or three digits of what is small."""
    return f"{value:.1f}" if abs(value) >= 1 else number(value, 3)


def _label(
    axes: Sequence[Axes], table: CheckpointScores, names: Mapping[str, Sequence[str]]
) -> None:
    """Names at the first panel of each row, what is drawn under the last ones."""
    tasks = len(table.task_names)
    columns = _columns(tasks)
    what = "accuracy − mean" + (" (%)" if as_percent(table) == 100 else "")
    for k, group in enumerate(names):
        texts = safe_names(names[group], 18 if len(axes) == 1 and is_narrow(axes[0]) else 28)
        for j, ax in enumerate(axes[k * tasks : (k + 1) * tasks]):
            if j % columns == 0:
                ax.set_yticklabels(texts, fontsize=8.0)
                if len(names) > 1:
                    ax.set_ylabel(safe_text(group, 30), fontsize=9.5)
            if k == len(names) - 1 and j >= tasks - columns:
                ax.set_xlabel(what, fontsize=9.0)


def _references(table: CheckpointScores) -> str:
    there = [n for n in table.reference if n in table.checkpoints]
    return clean(there[0])[:24] if len(there) == 1 else "reference, not ranked"


def _finish(
    axes: Sequence[Axes],
    own: bool,
    key: Sequence[tuple[Any, str]],
    lines: Sequence[str],
    caption: bool | None,
) -> None:
    if not own:
        finish(axes[0], own, key, lines, caption=caption)
        return
    legend_above(axes[0], key)
    if caption is not False:
        write_below(axes[0], lines)


def _caption(table: CheckpointScores) -> list[str]:
    several = " of its group" if len(table.group_names) > 1 else ""
    lines = [f"Accuracy after fine-tuning, less the mean of the ranked checkpoints{several}."]
    failed = int(np.isnan(table.accuracy).sum())
    return lines + ([f"⚠ {failed} accuracies are no number."] if failed else [])
