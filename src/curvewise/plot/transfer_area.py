"""The paper's view: calibrated risk against that of scratch, with the area that the CCI counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb

from curvewise.plot.panels import told
from curvewise.plot.style import NEUTRAL, OWN, colour
from curvewise.plot.transfer_axes import CONTROL, compact, outer_labels
from curvewise.plot.transfer_parts import (
    SCRATCH,
    Chosen,
    Look,
    by_improvement,
    name_tasks,
    panels_of,
    spoken,
    warned,
    write_words,
)
from curvewise.plot.variance_axes import is_narrow, width_of
from curvewise.plot.variance_parts import DIAGONAL, note
from curvewise.transfer.transfer_result import Improvement, TransferResult
from curvewise.types import FloatArray

GAIN = "curvewise-gain"
LOSS = "curvewise-loss"
WHOLE = "curvewise-whole"
PATH = "curvewise-path"
SIZE = "curvewise-size"
NAME = "curvewise-name"
MOST_SHADED = 3
"""Methods whose areas can be told apart."""


def draw_area(
    result: TransferResult, ax: Axes | None, chosen: Chosen, legend: bool, caption: bool | None
) -> Axes:
    """A panel for each task: scratch is the diagonal, what lies under it is gained."""
    own = ax is None
    axes = panels_of(ax, chosen.tasks, alone=(5.6, 4.8))
    groups = [_drawn(result, task, chosen) for task in chosen.tasks]
    looks = _looks([row.method for rows in groups for row in rows], chosen)
    for panel, rows in zip(axes, groups, strict=True):
        _frame(panel, result, rows)
        shaded = len(rows) <= MOST_SHADED
        for k, row in enumerate(rows):
            x = _scratch_at(result, row)
            # The better, the lower: what a method gains beyond the others is seen.
            z = (1.0 - 0.1 * k) if shaded else None
            _path(panel, x, x - row.gain, looks[row.method], z)
        if rows and width_of(panel) > 2.0:
            _mark_sizes(panel, rows[-1].n, _scratch_at(result, rows[-1]), rows[-1].gain)
        if legend:
            _names(panel, rows[::-1], looks)
    _share(axes, result, [row for rows in groups for row in rows])
    name_tasks(axes, chosen.tasks)
    scratch = chosen.looks[result.scratch].name
    outer_labels(axes, f"calibrated risk of {scratch}", "calibrated risk of the method")
    write_words(axes, own, _caption(result, groups), caption)
    return axes[0]


def _looks(methods: Sequence[str], chosen: Chosen) -> dict[str, Look]:
    """The best methods of tasks have a colour, also where they are not among the best of all."""
    drawn = list(dict.fromkeys(methods))
    if chosen.picked or not any(chosen.looks[m].back for m in drawn):
        return {m: chosen.looks[m] for m in drawn}
    back = [m for m in drawn if chosen.looks[m].back]
    free = len(chosen.looks) - 1 - sum(look.back for look in chosen.looks.values())
    late = {m: Look(colour(free + i), chosen.looks[m].name) for i, m in enumerate(back)}
    return {m: late.get(m, chosen.looks[m]) for m in drawn}


def _drawn(result: TransferResult, task: str, chosen: Chosen) -> list[Improvement]:
    """What is known of a task: those in colour, or the best if nobody chose."""
    found = {i.method: i for i in result.improvements if i.task == task and len(i.n)}
    there = [m for m in chosen.methods if m in found]
    if len(there) > MOST_SHADED:
        front = [m for m in there if not chosen.looks[m].back]
        best = by_improvement(result, there, [task])[:1]
        there = front if chosen.picked and front else best
    return [found[m] for m in by_improvement(result, there, [task])[::-1]]


def _scratch_at(result: TransferResult, row: Improvement) -> FloatArray:
    """Calibrated risk of scratch at the sizes of an improvement."""
    curve = next(c for c in result.curves if c.task == row.task and c.method == result.scratch)
    where = np.searchsorted(curve.n, row.n)
    risk: FloatArray = curve.calibrated[where]
    return risk


def _frame(ax: Axes, result: TransferResult, rows: Sequence[Improvement]) -> None:
    """The diagonal that is scratch, both controls, and the whole area that could be gained."""
    for row in rows[-1:]:
        x = np.sort(_scratch_at(result, row))
        light: dict[str, Any] = {"color": NEUTRAL, "alpha": 0.13, "linewidth": 0.0, "zorder": 0.3}
        ax.fill_between(x, 0.0, x, gid=WHOLE, **light)
    ax.axline((0.0, 0.0), slope=1.0, color=SCRATCH, lw=2.0, zorder=2.2, gid=DIAGONAL, label="_s")
    for at in (0.0, 1.0):
        ax.axhline(at, color=NEUTRAL, lw=1.0, ls="--", zorder=0.8, gid=CONTROL, label="_c")
    words: dict[str, Any] = {"xycoords": ax.get_yaxis_transform(), "textcoords": "offset points"}
    words |= {"color": "#6E6E6E", "gid": CONTROL}
    note(ax, "maximal supervision", (0.985, 0.0), ha="right", va="top", xytext=(0, -2.5), **words)
    note(ax, "blind guess", (0.015, 1.0), ha="left", va="bottom", xytext=(0, 2.5), **words)


def _path(ax: Axes, x: FloatArray, y: FloatArray, look: Look, z: float | None) -> None:
    """A method from size to size, and the area between it and scratch at height z.

    Areas are opaque and pale, as those that mix have colours of nobody.
    """
    if z is not None:
        better, worse = pieces(x, y)
        pale = 0.36 * np.array(to_rgb(look.shade)) + 0.64
        fill: dict[str, Any] = {"facecolors": [tuple(pale)], "zorder": z, "linewidths": 0.0}
        if better:
            ax.add_collection(PolyCollection(better, gid=GAIN, **fill))
        if worse:
            hatched: dict[str, Any] = {"facecolors": "none", "edgecolors": look.shade}
            ax.add_collection(
                PolyCollection(worse, hatch="////", zorder=1.0, gid=LOSS, lw=0.0, **hatched)
            )
    line: dict[str, Any] = {"color": look.shade, "marker": "o", "ms": 4.0, "mew": 0.0}
    ax.plot(x, y, lw=1.7, zorder=2.5, gid=PATH, label="_path", **line)


def pieces(x: FloatArray, y: FloatArray) -> tuple[list[FloatArray], list[FloatArray]]:
    """Area between a path and the diagonal, cut into what the CCI counts as gain and as loss.

    A step on which the risk of scratch rises counts backwards.

    >>> better, worse = pieces(np.array([1.0, 0.5]), np.array([0.5, 0.5]))
    >>> better[0].tolist(), worse
    ([[1.0, 0.5], [0.5, 0.5], [0.5, 0.5], [1.0, 1.0]], [])
    """
    corners, known = _with_crossings(x, y), np.isfinite(x + y).all()
    found: dict[bool, list[FloatArray]] = {True: [], False: []}
    run: list[int] = []
    sign = 0.0
    for k in range(len(corners) - 1 if known else 0):
        (x0, y0), (x1, y1) = corners[k], corners[k + 1]
        here = float(np.sign(((x0 - y0) + (x1 - y1)) * (x0 - x1)))
        if here != sign:
            _close(found, corners[run], sign)
            run, sign = [k], here
        run.append(k + 1)
    _close(found, corners[run], sign)
    return found[True], found[False]


def _with_crossings(x: FloatArray, y: FloatArray) -> FloatArray:
    """The corners of a path, with those where it crosses the diagonal."""
    rows: list[tuple[float, float]] = []
    for k in range(len(x)):
        if k and (x[k - 1] - y[k - 1]) * (x[k] - y[k]) < 0:
            ga, gb = x[k - 1] - y[k - 1], x[k] - y[k]
            at = float(x[k - 1] + ga / (ga - gb) * (x[k] - x[k - 1]))
            rows.append((at, at))
        rows.append((float(x[k]), float(y[k])))
    return np.array(rows, dtype=np.float64).reshape(-1, 2)


def _close(found: dict[bool, list[FloatArray]], path: FloatArray, sign: float) -> None:
    """Keep the area between a stretch of a path and the diagonal."""
    if sign and len(path) > 1:
        back = np.column_stack([path[::-1, 0], path[::-1, 0]])
        found[sign > 0].append(np.concatenate([path, back]))


def _mark_sizes(ax: Axes, n: FloatArray, x: FloatArray, gain: FloatArray) -> None:
    """The sizes beside the dots of a path, where they do not touch."""
    last = np.inf
    for size, at, below in zip(n.tolist(), x.tolist(), gain.tolist(), strict=True):
        if not np.isfinite(at + below) or last - at < 0.075:
            continue
        last = at
        look: dict[str, Any] = {"ha": "left", "va": "top", "gid": SIZE}
        look |= {"xytext": (3.0, -2.5), "textcoords": "offset points", "path_effects": None}
        note(ax, compact(size), (at, at - below), fontsize=7.5, color="#555555", **look)


def _names(ax: Axes, rows: Sequence[Improvement], looks: dict[str, Look]) -> None:
    """Methods with their CCI above the diagonal, where there is nothing else."""
    size = 7.0 if is_narrow(ax) and ax.get_gid() != OWN else 8.5
    down = 1.5
    for row in rows:
        look = looks[row.method]
        said = told(row.cci).replace("-", "−") if np.isfinite(row.cci.estimate) else "unknown"
        place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "va": "top"}
        place |= {"xytext": (0.0, -down * size), "textcoords": "offset points"}
        text = f"{look.name}\nCCI {said}"
        ax.annotate(
            text, (0.03, 1.0), color=look.ink, fontsize=size, gid=NAME, linespacing=1.15, **place
        )
        down += 3.0


def _share(axes: Sequence[Axes], result: TransferResult, rows: Sequence[Improvement]) -> None:
    """The same limits in all panels: both controls and every dot."""
    xs = [v for row in rows for v in _scratch_at(result, row).tolist() if np.isfinite(v)]
    ys = [
        v for row in rows for v in (_scratch_at(result, row) - row.gain).tolist() if np.isfinite(v)
    ]
    left, right = min([0.0, *xs]), max([1.0, *xs])
    low, high = min([0.0, *ys]), max([1.0, *ys])
    for ax in axes:
        ax.set_xlim(left - 0.03, right + 0.07)
        ax.set_ylim(low - 0.08, high + 0.08)


def _caption(result: TransferResult, groups: Sequence[Sequence[Improvement]]) -> list[str]:
    black = f"Black: {spoken(result.scratch)}."
    lines = [f"{black} Grey area: what could be gained; coloured: what is gained of it."]
    if any(len(rows) > 1 for rows in groups):
        lines[0] += " Areas lie over each other, the smallest on top."
    if result.weight == "scratch":
        lines[0] += " The CCI of a method is the area between its line and the black one over all "
        lines[0] += "that could be gained."
    else:
        lines[0] += f" The CCI written here is weighted otherwise ({result.weight})."
    if any(len(rows) > MOST_SHADED for rows in groups):
        lines = [f"{black} Areas are shaded for up to {MOST_SHADED} methods."]
    if any(pieces(x, x - r.gain)[1] for rows in groups for r, x in _with_scratch(result, rows)):
        lines[0] += " Hatched: lost."
    return [*lines, *warned(result)]


def _with_scratch(
    result: TransferResult, rows: Sequence[Improvement]
) -> list[tuple[Improvement, FloatArray]]:
    return [(row, _scratch_at(result, row)) for row in rows]
