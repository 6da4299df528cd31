"""How many samples scratch needs to match a method, against how many the method had."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from curvewise.errors import InputError
from curvewise.plot.transfer_axes import (
    interval_bars,
    outer_labels,
    size_axis,
    size_limits,
)
from curvewise.plot.transfer_curves import write_names
from curvewise.plot.transfer_labels import End
from curvewise.plot.transfer_parts import (
    SCRATCH,
    Chosen,
    Look,
    name_tasks,
    panels_of,
    shifts,
    warned,
    write_words,
)
from curvewise.plot.variance_parts import DIAGONAL, ends_of
from curvewise.transfer.transfer_result import Improvement, TransferResult
from curvewise.types import FloatArray

EQUIVALENT = "curvewise-equivalent"
BEYOND = "curvewise-beyond"
MEASURED = "curvewise-measured"
ROOM = 1.6
"""How far beyond the sizes measured the axis of equivalents goes, as a factor."""


def draw_equivalence(
    result: TransferResult, ax: Axes | None, chosen: Chosen, legend: bool, caption: bool | None
) -> Axes:
    """A panel for each task; on the diagonal nothing is gained."""
    own = ax is None
    groups = [_drawn(result, task, chosen) for task in chosen.tasks]
    if not any(groups):
        raise InputError(
            "kind='equivalence' has nothing to draw: no method has a data equivalence, which "
            "needs two sizes of scratch at which its risk differs."
        )
    axes = panels_of(ax, chosen.tasks)
    sizes = [_sizes(result, task, rows) for task, rows in zip(chosen.tasks, groups, strict=True)]
    limits = size_limits(sizes)
    ends: list[list[End]] = []
    for panel, rows, n, span in zip(axes, groups, sizes, limits, strict=True):
        edges = _edges(n, rows, span)
        _frame(panel, span, n)
        aside = shifts(chosen, [row.method for row in rows])
        for row in rows:
            _row(panel, row, chosen.looks[row.method], edges, aside.get(row.method))
        size_axis(panel, n, span)
        size_axis(panel, n, (min(span[0], edges[0] / 1.15), max(span[1], edges[1] * 1.15)), "y")
        named = [row for row in rows if chosen.named(row.method)]
        ends.append([_end(row, chosen.looks[row.method], edges) for row in named])
    name_tasks(axes, chosen.tasks)
    scratch = chosen.looks[result.scratch].name
    outer_labels(axes, "training size $n$ of the method", f"training size that {scratch} needs")
    write_words(axes, own, _caption(result, chosen, groups), caption)
    if legend:
        write_names(axes, ends)
    return axes[0]


def _drawn(result: TransferResult, task: str, chosen: Chosen) -> list[Improvement]:
    found = {i.method: i for i in result.improvements if i.task == task and i.data_equivalence}
    return [found[m] for m in chosen.back_first if m in found]


def _sizes(result: TransferResult, task: str, rows: Sequence[Improvement]) -> FloatArray:
    """Sizes of scratch, and of the methods."""
    scratch = [c.n for c in result.curves if c.task == task and c.method == result.scratch]
    mine = [np.array([e.n for e in row.data_equivalence]) for row in rows]
    return np.unique(np.concatenate([*scratch, *mine])) if scratch or mine else np.array([])


def _edges(
    sizes: FloatArray, rows: Sequence[Improvement], span: tuple[float, float]
) -> tuple[float, float]:
    """Where arrows stand for what lies beyond: outside all sizes and all estimates."""
    if not len(sizes):
        return span
    known = np.concatenate([sizes, *(_values(row)[0] for row in rows)])
    known = known[np.isfinite(known) & (known > 0)]
    return float(known.min()) / ROOM, float(known.max()) * ROOM


def _frame(ax: Axes, span: tuple[float, float], sizes: FloatArray) -> None:
    """The diagonal of no gain, and where scratch was measured."""
    look: dict[str, Any] = {"color": SCRATCH, "lw": 2.0, "zorder": 1.2, "label": "_equal"}
    ax.plot(span, span, gid=DIAGONAL, **look)
    if len(sizes):
        fill: dict[str, Any] = {"color": "#8C8C8C", "alpha": 0.1, "linewidth": 0.0}
        top = float(sizes.max())
        ax.axhspan(top, top * 1e3, zorder=0.2, gid=MEASURED, **fill)
    ax.grid(alpha=0.25, linewidth=0.6)


def _row(
    ax: Axes, row: Improvement, look: Look, edges: tuple[float, float], shift: float | None
) -> None:
    """Equivalents with intervals; triangles at the edge where they lie beyond the sizes."""
    n = np.array([e.n for e in row.data_equivalence])
    middle, low, high = _values(row)
    inside = np.isfinite(middle) & (middle > edges[0]) & (middle < edges[1])
    z = 1.5 if look.back else 2.2
    if shift is not None:
        ends = np.clip(low, *edges), np.clip(high, *edges)
        interval_bars(ax, n, *ends, look.shade, shift, z - 0.1)
    at = np.clip(middle, *edges)
    line: dict[str, Any] = {"color": look.shade, "zorder": z, "label": "_equivalent"}
    ax.plot(n, at, lw=0.9, ls=":", gid=EQUIVALENT + "-path", **line)
    solid = np.where(inside, at, np.nan)
    ax.plot(n, solid, lw=1.0 if look.back else 1.6, gid=EQUIVALENT, **line)
    dots: dict[str, Any] = {"linestyle": "none", "mew": 0.0} | line
    ax.plot(n[inside], at[inside], marker="o", ms=3.6, gid=EQUIVALENT + "-dot", **dots)
    for beyond, marker in ((middle >= edges[1], "^"), (middle <= edges[0], "v")):
        if beyond.any():
            ax.plot(n[beyond], at[beyond], marker=marker, ms=6.5, gid=BEYOND, **dots)


def _values(row: Improvement) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Estimates and interval ends; infinite or 0 beyond the sizes of scratch."""
    return ends_of(e.equivalent for e in row.data_equivalence)


def _end(row: Improvement, look: Look, edges: tuple[float, float]) -> End:
    middle = np.clip(_values(row)[0], *edges)
    known = np.flatnonzero(~np.isnan(middle))
    if not len(known):
        return End(1.0, np.nan, look.name, look.ink, look.back)
    at = int(known[-1])
    n = row.data_equivalence[at].n
    return End(n, float(middle[at]), look.name, look.ink, look.back)


def _caption(
    result: TransferResult, chosen: Chosen, groups: Sequence[Sequence[Improvement]]
) -> list[str]:
    said = "Black: as many as the method had. Grey: more than was measured; triangles lie "
    said += "beyond."
    if any(np.isfinite(v).any() for rows in groups for r in rows for v in _values(r)[1:]):
        said += f" Bars: {100 * result.level:.4g}% intervals."
    return [said, chosen.note, *warned(result)]
