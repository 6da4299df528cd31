"""How far runs of a method lie apart, beside how far methods do (figure 3 of the paper)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from curvewise.errors import InputError
from curvewise.plot.style import style
from curvewise.plot.text import safe_text
from curvewise.plot.transfer_axes import (
    control_lines,
    interval_bars,
    outer_labels,
    share_limits,
    size_axis,
    size_limits,
)
from curvewise.plot.transfer_curves import X_LABEL, write_names
from curvewise.plot.transfer_labels import End
from curvewise.plot.transfer_parts import (
    Chosen,
    choose_methods,
    name_tasks,
    panels_of,
    several_of,
    shifts,
    warned,
    write_words,
)
from curvewise.transfer.spread import MethodSpread, RunSpread
from curvewise.types import FloatArray

MEAN = "curvewise-mean"


def plot_spread(
    result: RunSpread,
    ax: Axes | None = None,
    *,
    task: str | Sequence[str] | None = None,
    methods: str | Sequence[str] | None = None,
    highlight: str | Sequence[str] | None = None,
    scratch: str | None = None,
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw the mean over runs with the standard deviation, a panel for each task.

    Parameters
    ----------
    result : RunSpread
        What to draw.
    ax : Axes, optional
        Where, for one task; a new figure with a panel for each by default.
    task : str or sequence of str, optional
        Only these.
    methods : str or sequence of str, optional
        Only these; by default all that were run twice at some size.
    highlight : str or sequence of str, optional
        Methods in colour; the others are grey.
    scratch : str, optional
        The method that is black; by default the one that starts from nothing.
    legend : bool
        Name the methods.
    caption : bool, optional
        Say what is shown under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or those of the first panel.

    Examples
    --------
    >>> from curvewise.transfer.measure import measure_transfer
    >>> runs = {
    ...     "method": ["scratch"] * 4 + ["swav"] * 4 + ["color"] * 4,
    ...     "n": [100, 100, 1000, 1000] * 3,
    ...     "risk": [0.8, 0.82, 0.5, 0.49, 0.6, 0.61, 0.45, 0.44, 0.7, 0.71, 0.48, 0.5],
    ... }
    >>> measured = measure_transfer(runs, blind=0.9, maximal=0.1)
    >>> from curvewise.transfer.spread import measure_spread
    >>> plot_spread(measure_spread(measured)).get_ylabel()
    'calibrated risk'
    """
    scratch = scratch or result.scratch
    every = tuple(dict.fromkeys(r.method for r in result.rows))
    again = tuple(dict.fromkeys(r.method for r in result.rows if r.runs > 1))
    if methods is None and not again:
        raise InputError(
            "result has no spread to draw: no method was run twice at one size of a task."
        )
    wanted = several_of("methods", again if methods is None else methods, every)
    drawn = [r for r in result.rows if r.method in wanted]
    tasks = several_of("task", task, tuple(dict.fromkeys(r.task for r in drawn)))
    known = tuple(m for m in every if m != scratch)
    order = [m for m in wanted if m != scratch]
    with style():
        chosen = choose_methods(known, scratch, tasks, wanted, highlight, order)
        own = ax is None
        axes = panels_of(ax, tasks)
        groups = [_curves(drawn, name, chosen, scratch) for name in tasks]
        ends = _panels(axes, groups, chosen, scratch, result)
        name_tasks(axes, tasks)
        what = "calibrated risk" if result.calibrated else safe_text(result.unit, 30)
        outer_labels(axes, X_LABEL, what)
        left = len(every) - len(wanted)
        why = "not chosen" if methods is not None else "run once at every size"
        said = f"{left} method{' is' if left == 1 else 's are'} left out: {why}." if left else ""
        write_words(axes, own, _caption(result, said, chosen), caption)
        if legend:
            write_names(axes, ends)
    return axes[0]


def _curves(
    rows: Sequence[MethodSpread], task: str, chosen: Chosen, scratch: str
) -> dict[str, list[MethodSpread]]:
    """The sizes of each method on a task, in the order of drawing."""
    here = [r for r in rows if r.task == task and np.isfinite(r.mean)]
    order = [*chosen.back_first, scratch]
    found = {m: sorted((r for r in here if r.method == m), key=lambda r: r.n) for m in order}
    return {m: path for m, path in found.items() if path}


def _panels(
    axes: Sequence[Axes],
    groups: Sequence[dict[str, list[MethodSpread]]],
    chosen: Chosen,
    scratch: str,
    result: RunSpread,
) -> list[list[End]]:
    """Draw all panels; where names belong."""
    sizes = [_column([r for path in group.values() for r in path], "n") for group in groups]
    ends: list[list[End]] = []
    for panel, group, n, span in zip(axes, groups, sizes, size_limits(sizes), strict=True):
        if result.calibrated:
            control_lines(panel)
        aside = shifts(chosen, list(group))
        for method, path in group.items():
            _path(panel, path, chosen, aside.get(method, 0.0), method == scratch)
        size_axis(panel, n, span)
        named = [path for method, path in group.items() if chosen.named(method)]
        ends.append([_end(path[-1], chosen, scratch) for path in named])
    share_limits(axes, *_limits(groups, result.calibrated))
    return ends


def _path(
    ax: Axes, path: Sequence[MethodSpread], chosen: Chosen, shift: float, scratch: bool
) -> None:
    """Means of a method, with a bar of one standard deviation to both sides."""
    look = chosen.looks[path[0].method]
    n, mean = _column(path, "n"), _column(path, "mean")
    std = np.array([r.std.estimate for r in path])
    z = 2.6 if scratch else (1.5 if look.back else 2.0)
    interval_bars(ax, n, mean - std, mean + std, look.shade, shift, z - 0.1, width=2.2)
    width = 2.0 if scratch else (0.9 if look.back else 1.3)
    dots: dict[str, Any] = {"marker": "o", "ms": 3.4, "mew": 0.0, "label": "_mean"}
    ax.plot(n, mean, color=look.shade, lw=width, zorder=z, gid=MEAN, **dots)


def _column(rows: Sequence[MethodSpread], name: str) -> FloatArray:
    return np.array([getattr(r, name) for r in rows], dtype=np.float64)


def _end(row: MethodSpread, chosen: Chosen, scratch: str) -> End:
    look = chosen.looks[row.method]
    return End(row.n, row.mean, look.name, look.ink, look.back, row.method == scratch)


def _limits(
    groups: Sequence[dict[str, list[MethodSpread]]], calibrated: bool
) -> tuple[float, float]:
    """All means with their spread, and the controls of calibrated risks."""
    rows = [r for group in groups for path in group.values() for r in path]
    mean, std = _column(rows, "mean"), np.nan_to_num([r.std.estimate for r in rows])
    values = [*(mean - std).tolist(), *(mean + std).tolist(), *([0.0, 1.0] if calibrated else [])]
    low, high = min(values), max(values)
    pad = 0.04 * (high - low) or 0.1
    return low - pad, max(high + pad, 1.0 + 0.07 * (high - low) if calibrated else high + pad)


def _caption(result: RunSpread, left_out: str, chosen: Chosen) -> list[str]:
    said = "Dots: means over runs; bars: one standard deviation over runs to both sides."
    said += f" {left_out}" if left_out else ""
    apart = [p for p in result.pairs if p.outside]
    if result.pairs:
        said += (
            f" In {len(apart)} of {len(result.pairs)} pairs of methods at a size each mean lies "
            "outside the other's bar."
        )
    return [said, chosen.note, *warned(result)]
