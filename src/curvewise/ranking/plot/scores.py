"""Scores of checkpoints against accuracies after fine-tuning, and the accuracies themselves (figure 1 of the paper)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from curvewise.drawing.axes import is_narrow
from curvewise.drawing.labels import clean, safe_names, safe_text, shorten
from curvewise.drawing.marks import choose, choose_some, finish, key_dot, note, plain, zero_line
from curvewise.drawing.panels import legend_above, new_panels, signed, write_below
from curvewise.drawing.rows import rows_of
from curvewise.drawing.style import NEUTRAL, OWN, PALETTE, colour, new_axes, style
from curvewise.errors import InputError
from curvewise.ranking.load import ONE_TASK, CheckpointScores
from curvewise.stats.correlation import kendall, pearson
from curvewise.text import format_number
from curvewise.types.results import FloatArray

DOTS = "curvewise-checkpoints"
CHOSEN = "curvewise-chosen"
SCRATCH = "curvewise-reference"
MOST_MEASURES = 6
MOST_COLUMNS = 5
# Most panels of bars beside each other.
MOST_TASKS = 6
MARKERS = "osD^vPX<>p"
# Colour of checkpoints that are shown and never ranked.
REFERENCE = "black"
BAR, FAILED, NAME = "curvewise-bar", "curvewise-failed", "curvewise-name"
_SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))
_ALIGN: dict[int, tuple[str, str]] = {1: ("left", "bottom"), 0: ("center", "center"), -1: ("right", "top")}


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
        Meaning of colours: the kind of each checkpoint. The groups by default.
    legend : bool
        Draw a legend.
    caption : bool, optional
        Write a caption under the picture; by default where there is room.

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
            f"is one Axes, there are {len(names)} measure(s) and {len(tasks)} task(s): choose "
            "with measures= and task=, or leave ax out.",
            argument="ax",
        )
    kinds_of = find_kinds(table, kinds, len(MARKERS))
    once = table.first_rows() == np.arange(len(table))  # a checkpoint that several groups share is drawn once
    left_out: list[int] = []
    with style():
        own = ax is None
        axes = [ax] if ax is not None else _panels(len(names), len(tasks))
        for k, (name, where) in enumerate(panels):
            panel = axes[k]
            rows = np.flatnonzero(once & (table.tasks == where))
            known = np.isfinite(table.scores[name][rows]) & np.isfinite(table.accuracy[rows])
            left_out.append(int((~known & table.ranked[rows]).sum()))
            said = _panel(panel, table, kinds_of, name, rows[known & table.ranked[rows]])
            here = ~table.ranked & (table.tasks == where) & np.isfinite(table.accuracy)
            for value in np.unique(as_percent(table) * table.accuracy[here]):  # of references
                look: dict[str, Any] = {"color": REFERENCE, "lw": 1.0, "ls": "--", "zorder": 1.2}
                panel.axhline(value, gid=SCRATCH, label="_reference", **look)
            first = len(tasks) > 1 and (k < len(tasks) or len(names) == 1)
            title = f"{safe_text(where, 30)}\n" if first else ""
            panel.set_title(f"{title}{plain(said)}", loc="left", fontsize=9.0)
            if len(names) > 1 and len(tasks) > 1 and k % len(tasks):
                panel.set_ylabel("")
        lines = _caption(table, sum(left_out))
        key = kinds_of.key() if legend else []
        if key and any(line.get_gid() == SCRATCH for panel in axes for line in panel.lines):
            key.append((Line2D([], [], color=REFERENCE, ls="--", lw=1.0), "reference, not ranked"))
        finish_panels(axes, own, key, lines, caption, (3 if own else 1) if len(axes) == 1 else None)
    return axes[0]


def _chosen(table: CheckpointScores, measures: str | Sequence[str] | None) -> list[str]:
    known = list(table.measures)
    if not known:
        raise InputError("has no scores: plot_fine_tuning draws accuracies alone.", argument="table")
    return known[:MOST_MEASURES] if measures is None else list(choose_some("measures", measures, known))


def _panels(measures: int, tasks: int) -> list[Axes]:
    """Make a panel for each measure and task: measures are rows if there are several of both."""
    count = measures * tasks
    if count == 1:
        return [new_axes(5.6, 4.6)]
    if measures > 1 and tasks > 1:
        return new_panels(count, tasks, max(2.2, min(3.0, 15 / tasks)), 2.6)
    columns = min(count, MOST_COLUMNS if count > 8 else 4 if count != 6 else 3)
    return new_panels(count, columns, 3.1 if columns < 5 else 2.7, 3.1)


def _panel(ax: Axes, table: CheckpointScores, kinds_of: Kinds, name: str, rows: NDArray[np.int64]) -> str:
    """Draw one measure on one task, and return its title."""
    scale = as_percent(table)
    ax.set_xlabel(safe_text(name, 28))
    ax.set_ylabel("accuracy (%)" if scale == 100 else "accuracy")
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.xaxis.set_major_locator(MaxNLocator(4))
    if not len(rows):
        return "no checkpoint has both numbers"
    x, y = table.scores[name][rows], scale * table.accuracy[rows]
    index = np.array([kinds_of.index(row) for row in rows.tolist()])
    for i in np.unique(index).tolist():
        here = index == i
        look: dict[str, Any] = {"linewidths": 0.4, "edgecolors": "white", "zorder": 2.5}
        size = 30 if len(rows) <= 60 else 16
        dots = ax.scatter(x[here], y[here], s=size, color=kinds_of.shade(i), marker=MARKERS[i], **look)
        dots.set_gid(DOTS)
    _mark(ax, table, rows, x, y)
    tau = kendall(x[None], y)[0] if len(rows) > 1 else np.nan
    r = pearson(x[None], y)[0] if len(rows) > 2 else np.nan
    return f"n = {len(rows)}, τ = {_shown(tau)}, r = {_shown(r)}"


def _shown(value: float) -> str:
    """Return a correlation with two decimals."""
    return "?" if np.isnan(value) else signed(float(value), 2)


def _mark(
    ax: Axes, table: CheckpointScores, rows: NDArray[np.int64], x: NDArray[np.float64], y: NDArray[np.float64]
) -> None:
    """Draw a ring around the highest scores; name it and the best, where there is room."""
    top, best = np.flatnonzero(x == x.max()), int(np.argmax(y))
    ring: dict[str, Any] = {"facecolors": "none", "edgecolors": "black", "linewidths": 1.1}
    ax.scatter(x[top], y[top], s=95, zorder=3.0, gid=CHOSEN, **ring)
    if is_narrow(ax):
        return
    shown = dict.fromkeys([int(top[0]), best] if len(top) == 1 else [best])
    names = safe_names([str(table.checkpoints[rows[i]]) for i in shown], 28)
    place_names(ax, x, y, list(zip(shown, names, strict=True)))


def finish_panels(
    axes: Sequence[Axes],
    own: bool,
    key: list[tuple[Any, str]],
    lines: Sequence[str],
    caption: bool | None,
    columns: int | None = None,
) -> None:
    """Write legend and caption: inside of one Axes in so many columns, or around all panels of a new figure."""
    if columns is not None:
        finish(axes[0], own, key, lines, caption=caption, columns=columns)
        return
    legend_above(axes[0], key)
    if caption is not False:
        write_below(axes[0], lines)


def _caption(table: CheckpointScores, left_out: int) -> list[str]:
    """Return the lines under the picture."""
    where = table.task_names
    lines = ["A dot is a checkpoint; ring: the highest score. τ: Kendall's τ-b, r: Pearson's."]
    if len(where) == 1 and where[0] != ONE_TASK:
        lines[0] = f"{shorten(clean(where[0]), 40)}. {lines[0]}"
    there = [name for name in table.reference if name in table.checkpoints]
    if there:
        who = shorten(clean(there[0]), 30) if len(there) == 1 else "references"
        lines[0] += f" Dashed: {who}, not ranked."
    if left_out:
        lines.append(f"⚠ {left_out} dot(s) left out, where a score or an accuracy is not a number.")
    return lines


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
        Meaning of colours: the kind of each checkpoint, such as how it was trained. The groups by
        default. References (training from scratch) are black.
    order : {"accuracy", "table"}
        The best on top, by the mean over the tasks; or as in the table.
    legend : bool
        Draw a legend.
    caption : bool, optional
        Write a caption under the picture; by default where there is room.

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
    kinds_of = find_kinds(table, kinds, len(PALETTE))
    cells = [(g, t) for g in table.group_names for t in table.task_names]
    if ax is not None and len(cells) > 1:
        raise InputError(
            f"is one Axes, there are {len(table.group_names)} group(s) and "
            f"{len(table.task_names)} task(s): choose with group= and task=, or leave ax out.",
            argument="ax",
        )
    names = {g: _names(part, order) for g, part in table.by_group().items()}
    with style():
        own = ax is None
        axes = [ax] if ax is not None else _bar_panels(names, len(table.task_names))
        for panel, (g, t) in zip(axes, cells, strict=False):
            _bar_panel(panel, table, kinds_of, g, t, names[g])
        _label(axes, table, names)
        # Rows of panels that are groups have their names beside them.
        key = [] if kinds is None and len(names) > 1 else kinds_of.key(marked=False)
        if not table.ranked.all():
            there = [n for n in table.reference if n in table.checkpoints]
            text = clean(there[0])[:24] if len(there) == 1 else "reference, not ranked"
            key.append((key_dot(REFERENCE, "s", 6.0), text))
        several = " of its group" if len(table.group_names) > 1 else ""
        lines = [f"Accuracy after fine-tuning, less the mean of the ranked checkpoints{several}."]
        if failed := int(np.isnan(table.accuracy).sum()):
            lines.append(f"⚠ {failed} accuracies are not numbers.")
        finish_panels(axes, own, key if legend else [], lines, caption, None if own else 1)
    return axes[0]


def _names(part: CheckpointScores, order: str) -> list[str]:
    """Return the checkpoints of a group from top to bottom, references last."""
    found = list(dict.fromkeys(part.checkpoints.tolist()))
    value = dict.fromkeys(found, 0.0)
    if order == "accuracy":
        offset = part.accuracy - _means(part)
        for name in found:
            known = offset[(part.checkpoints == name) & np.isfinite(offset)]
            value[name] = -float(known.mean()) if len(known) else np.inf
    return sorted(found, key=lambda name: (name in part.reference, value[name]))


def _means(part: CheckpointScores) -> FloatArray:
    """Return the mean accuracy of the ranked checkpoints of each row's task."""
    out = np.full(len(part), np.nan)
    for task in part.task_names:
        here = part.tasks == task
        among = part.accuracy[here & part.ranked & np.isfinite(part.accuracy)]
        among = among if len(among) else part.accuracy[here & np.isfinite(part.accuracy)]
        out[here] = among.mean() if len(among) else np.nan
    return out


def _bar_panels(names: Mapping[str, Sequence[str]], tasks: int) -> list[Axes]:
    """Make a row of panels for each group, as high as its checkpoints are many, and wrapped tasks."""
    import matplotlib.pyplot as plt

    columns = _columns(tasks)
    lines = [g for g in names for _ in range(-(-tasks // columns))]
    heights = [0.55 + 0.19 * len(names[g]) for g in lines]
    longest = max(len(text) for g in names for text in safe_names(names[g], 28))
    size = (max(0.3 + 0.075 * longest + 1.9 * columns, 4.6), 0.8 + sum(heights))
    figure, grid = plt.subplots(
        len(lines), columns, figsize=size, layout="constrained", squeeze=False, gridspec_kw={"height_ratios": heights}
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
    """Return the number of panels beside each other, in lines of about the same length."""
    return -(-tasks // -(-tasks // MOST_TASKS))


def _bar_panel(ax: Axes, table: CheckpointScores, kinds_of: Kinds, group: str, task: str, names: Sequence[str]) -> None:
    """Draw one group on one task."""
    rows = np.flatnonzero((table.groups == group) & (table.tasks == task))
    place = {name: float(i) for i, name in enumerate(names)}
    scale = as_percent(table)
    zero_line(ax)
    rows_of(ax, [""] * len(names))
    ax.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: "0" if abs(x) < 1e-12 else f"{x:+.3g}".replace("-", "−")))
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
        shade = kinds_of.shade(kinds_of.index(row)) if table.ranked[row] else REFERENCE
        ax.barh(y, offset, height=0.72, color=shade, gid=BAR)
    unit = "%" if scale == 100 else ""
    shown = f"{scale * mean:.1f}" if abs(scale * mean) >= 1 else format_number(scale * mean, 3)
    text = "none known" if np.isnan(mean) else f"mean {shown}{unit}"
    ax.set_title(f"{safe_text(task, 26)}\n{text}", loc="left", fontsize=9.0)


def _label(axes: Sequence[Axes], table: CheckpointScores, names: Mapping[str, Sequence[str]]) -> None:
    """Write names at the first panel of each row, and the axis label under the last ones."""
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


@dataclass(frozen=True, eq=False)
class Kinds:
    """Colours of the rows of a table: one for each kind, in order of first appearance."""

    names: tuple[str, ...]
    rows: tuple[str, ...]
    most: int

    def index(self, row: int) -> int:
        """Return the number of a row's kind; 0 where there are too many kinds to tell apart."""
        return 0 if len(self.names) > self.most else self.names.index(self.rows[row])

    def shade(self, index: int) -> str:
        """Return the colour of a kind."""
        return NEUTRAL if len(self.names) > self.most else colour(index)

    def key(self, marked: bool = True) -> list[tuple[Any, str]]:
        """Return a legend, in dots of several shapes or in squares; none where all are of one kind."""
        if not 1 < len(self.names) <= self.most:
            return []
        texts = [text.replace(r"\$", "$") for text in safe_names(self.names, 24)]
        shapes = MARKERS if marked else "s" * len(texts)
        return [(key_dot(self.shade(i), shapes[i], 6.0), text) for i, text in enumerate(texts)]


def find_kinds(table: CheckpointScores, kinds: Mapping[str, str] | None, most: int) -> Kinds:
    """Return kinds by checkpoint, where they are given; else the groups."""
    ranked = table.ranked
    if kinds is None:
        rows = table.groups.tolist()
    else:
        names = table.checkpoints.tolist()
        if lost := sorted({n for n, r in zip(names, ranked, strict=True) if r} - set(kinds)):
            raise InputError(
                f"kinds says nothing of {lost[0]!r}: give the kind of each checkpoint, a reference's apart."
            )
        rows = [str(kinds.get(name, "")) for name in names]
    known = dict.fromkeys(kind for kind, r in zip(rows, ranked, strict=True) if r)
    return Kinds(tuple(known), tuple(rows), most)


def choose_rows(table: CheckpointScores, tasks: str | Sequence[str] | None, group: str | None) -> CheckpointScores:
    """Select the rows of some tasks, and of a group."""
    if not isinstance(table, CheckpointScores):
        raise InputError(
            f"is a {type(table).__name__}: give CheckpointScores, as made by cw.load_checkpoint_scores.",
            argument="table",
        )
    keep = np.isin(table.tasks, choose_some("task", tasks, table.task_names))
    keep &= np.isin(table.groups, choose_some("group", group, table.group_names))
    return table.select(keep)


def as_percent(table: CheckpointScores) -> float:
    """Return 100 where accuracies are fractions, 1 where they are another score."""
    known = table.accuracy[np.isfinite(table.accuracy)]
    return 100.0 if not len(known) or (known.min() >= 0 and known.max() <= 1) else 1.0


def place_names(ax: Axes, x: FloatArray, y: FloatArray, names: Sequence[tuple[int, str]], *, size: float = 8.0) -> None:
    """Write names beside some of the dots; those that come first choose first.

    Parameters
    ----------
    ax : Axes
        With final limits.
    x, y : ndarray
        All dots, which names should not cover.
    names : sequence of (int, str)
        The number of a dot and its name, in safe text.
    size : float
        Of type, in points.
    """
    figure = ax.get_figure(root=True)
    assert figure is not None
    scale = 72.0 / figure.dpi
    dots = ax.transData.transform(np.column_stack([x, y])) * scale
    frame = np.array([ax.bbox.x0, ax.bbox.y0, ax.bbox.x1, ax.bbox.y1]) * scale
    taken: list[FloatArray] = []
    line = {"arrowstyle": "-", "lw": 0.5, "color": "#6E6E6E", "shrinkB": 3.0, "shrinkA": 0.0}
    for dot, text in names:
        if not np.isfinite(dots[dot]).all():
            continue
        # Places in points, the near ones first: offsets, and boxes of left, bottom, right and top.
        reach, sides = np.repeat([6.0, 15.0], len(_SIDES)), np.tile(_SIDES, (2, 1))
        shifts = sides * (np.where(sides.all(axis=1), 0.75, 1.0) * reach)[:, None]
        area = np.array([0.62 * size * len(text.replace(r"\$", "$")), 1.35 * size])
        corners = dots[dot] + shifts + area * (sides - 1) / 2
        boxes = np.column_stack([corners, corners + area])
        best = int(
            np.argmin([_cost(box, dots, taken, frame) + far / 40.0 for box, far in zip(boxes, reach, strict=True)])
        )
        taken.append(boxes[best])
        across, up = sides[best].tolist()
        note(
            ax,
            text.replace(r"\$", "$"),
            (float(x[dot]), float(y[dot])),
            xytext=tuple(shifts[best]),
            textcoords="offset points",
            ha=_ALIGN[across][0],
            va=_ALIGN[up][1],
            fontsize=size,
            gid=NAME,
            arrowprops=line if reach[best] > 10 else None,
        )


def _cost(box: FloatArray, dots: FloatArray, taken: Sequence[FloatArray], frame: FloatArray) -> float:
    """Return the cost of a place: dots and names that it covers, and its parts outside of the Axes."""
    inside = (dots >= box[:2] - 3.0).all(axis=1) & (dots <= box[2:] + 3.0).all(axis=1)
    overlaps = (np.minimum(box[2:], other[2:]) - np.maximum(box[:2], other[:2]) for other in taken)
    hidden = sum(float(np.prod(np.maximum(sides, 0.0))) for sides in overlaps)
    outside = np.maximum(frame[:2] - box[:2], 0).sum() + np.maximum(box[2:] - frame[2:], 0).sum()
    return float(inside.sum() + hidden / 20.0 + outside / 5.0)
