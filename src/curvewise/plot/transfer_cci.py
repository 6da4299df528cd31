"""How much each method improves on scratch: the CCI with its interval, task by task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from curvewise.plot.panels import new_panels, signed
from curvewise.plot.style import NEUTRAL, OWN, new_axes
from curvewise.plot.transfer_parts import (
    Chosen,
    by_improvement,
    draws_caption,
    name_tasks,
    panels_of,
    spoken,
    warned,
    write_words,
)
from curvewise.plot.variance_axes import rows_of, rows_that_fit, view
from curvewise.plot.variance_parts import bars, ends_of, note
from curvewise.transfer.transfer_result import Improvement, TransferResult
from curvewise.types import FloatArray

CCI = "curvewise-cci"
LIMIT = "curvewise-limit"
VALUE = "curvewise-value"
MOST_ROOM = 0.2
"""How far intervals widen the axis, as a share of what the estimates and limits span."""


def draw_cci(
    result: TransferResult, ax: Axes | None, chosen: Chosen, legend: bool, caption: bool | None
) -> Axes:
    """A row for each method, a panel for each task; the same order in all."""
    own = ax is None
    order = by_improvement(result, chosen.methods, chosen.tasks)
    total = len(order)
    if ax is not None:
        order = order[: rows_that_fit(ax)]
    axes = _panels(ax, chosen.tasks, len(order))
    found = {(i.task, i.method): i for i in result.improvements}
    limits = _limits([i for i in found.values() if i.task in chosen.tasks and i.method in order])
    for k, (panel, task) in enumerate(zip(axes, chosen.tasks, strict=True)):
        _controls(panel, chosen.looks[result.scratch].name if legend else None)
        rows = [found.get((task, m)) for m in order]
        lacking = [_lacking(result, task, m) for m in order]
        _rows(panel, rows, [chosen.looks[m].shade for m in order], limits, lacking)
        texts = [chosen.looks[m].name for m in order]
        rows_of(panel, texts if _leftmost(panel, k) else [""] * len(order))
        panel.set_xlim(*limits)
        panel.set_xlabel("CCI")
        panel.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
        if own or draws_caption(panel, own, caption):
            _values(panel, rows)
    name_tasks(axes, chosen.tasks, pad=16.0 if legend else 6.0)
    write_words(axes, own, _caption(result, chosen, len(order), total), caption)
    return axes[0]


def _panels(ax: Axes | None, tasks: Sequence[str], rows: int) -> list[Axes]:
    if ax is not None:
        return panels_of(ax, tasks)
    height = 1.4 + 0.235 * rows
    if len(tasks) == 1:
        return [new_axes(7.0, height + 0.3)]
    columns = 2 if len(tasks) in (2, 4) else 3
    axes = new_panels(len(tasks), columns, 3.7 if columns == 3 else 4.4, height)
    for panel in axes:
        panel.set_gid(OWN)
    return axes


def _leftmost(ax: Axes, k: int) -> bool:
    spec = ax.get_subplotspec()
    return k == 0 or spec is None or spec.colspan.start == 0


def _limits(rows: Sequence[Improvement]) -> tuple[float, float]:
    """All estimates, 0 and 1, and intervals as far as they do not squeeze those."""
    middle, low, high = ends_of(i.cci for i in rows)
    known = [0.0, 1.0, *middle[np.isfinite(middle)].tolist()]
    room = MOST_ROOM * (max(known) - min(known))
    low, high = (np.clip(end, min(known) - room, max(known) + room) for end in (low, high))
    return view(middle, low, high, 0.0, 1.0)


def _lacking(result: TransferResult, task: str, method: str) -> str:
    """Why a method has no value on a task."""
    sizes = {c.method: c.n for c in result.curves if c.task == task}
    if method not in sizes or not len(sizes[method]):
        return "not measured"
    shared = np.intersect1d(sizes[method], sizes[result.scratch])
    return ("no shared size", "one shared size")[len(shared)] if len(shared) < 2 else "unknown"


def _controls(ax: Axes, scratch: str | None) -> None:
    """Scratch at 0 and maximal supervision at 1."""
    for at, text in ((0.0, scratch), (1.0, "maximal")):
        ax.axvline(at, color=NEUTRAL, lw=1.0, ls="--", zorder=0.8, gid=LIMIT, label="_limit")
        if scratch is not None and text is not None:
            place: dict[str, Any] = {"xycoords": ax.get_xaxis_transform(), "ha": "center"}
            place |= {"xytext": (0.0, 2.0), "textcoords": "offset points", "va": "bottom"}
            look: dict[str, Any] = {"fontsize": 7.5, "color": "#6E6E6E", "gid": LIMIT}
            ax.annotate(text, (at, 1.0), **look, **place)


def _rows(
    ax: Axes,
    rows: Sequence[Improvement | None],
    shades: Sequence[str],
    limits: tuple[float, float],
    lacking: Sequence[str],
) -> None:
    """A dot with its interval, dashed if that is borrowed; hollow if it may be no better."""
    for y, (row, shade, text) in enumerate(zip(rows, shades, lacking, strict=True)):
        value = np.nan if row is None else row.cci.estimate
        if row is None or np.isnan(value):
            at: dict[str, Any] = {"xycoords": ax.get_yaxis_transform(), "va": "center"}
            note(ax, text, (0.5, float(y)), fontsize=7.5, color="#8C8C8C", ha="center", **at)
            continue
        span: tuple[FloatArray, FloatArray] = (np.array([row.cci.low]), np.array([row.cci.high]))
        bars(ax, [float(y)], *span, shade, limits=limits, horizontal=True, width=1.8)
        if row.borrowed:
            ax.collections[-1].set_linestyle((0, (1.6, 0.8)))
        face: dict[str, Any] = {"mfc": shade if row.sure else "white", "mec": shade, "mew": 1.3}
        ax.plot([value], [float(y)], "o", ms=6.0, gid=CCI, label="_cci", zorder=2.5, **face)


def _values(ax: Axes, rows: Sequence[Improvement | None]) -> None:
    """The numbers in a column at the right."""
    place: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "gid": VALUE}
    for y, row in enumerate(rows):
        if row is not None and np.isfinite(row.cci.estimate):
            text = signed(round(row.cci.estimate, 2) + 0.0, 2)
            ax.text(1.015, y, text, fontsize=8.0, va="center", **place)


def _caption(result: TransferResult, chosen: Chosen, shown: int, total: int) -> list[str]:
    said = f"Calibrated cumulative improvement: 0 is no better than {spoken(result.scratch)}, 1 "
    said += "maximal supervision at every size."
    order = ["Ordered by how far above the mean of a task a method is, averaged over its tasks."]
    order = order if len(chosen.tasks) > 1 else []
    if shown < total:
        order.append(f"The best {shown} of {total} methods.")
    return [said, _bars_said(result), " ".join([*order, chosen.note]).strip(), *warned(result)]


def _bars_said(result: TransferResult) -> str:
    """What intervals, and filled dots, stand for."""
    known = [i for i in result.improvements if np.isfinite(i.cci.width)]
    if not known:
        return ""
    said = f"Bars: {100 * result.level:.4g}% intervals"
    if any(i.borrowed for i in known):
        said += ", dashed where half or more of the sizes have one run, with the spread of others"
    many = {task: sum(i.task == task for i in known) for task in result.tasks}
    most = max(many.values())
    each = " of a task" if sum(map(bool, many.values())) > 1 else ""
    after = f" after Holm's correction for the tests{each}" if most > 1 else ""
    return f"{said}. Filled: differs from {spoken(result.scratch)}{after}."
