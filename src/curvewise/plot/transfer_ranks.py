"""How the ranking of methods changes with the training size."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba

from curvewise.plot.panels import new_panels
from curvewise.plot.style import OWN, new_axes, style
from curvewise.plot.transfer_axes import compact
from curvewise.plot.transfer_labels import End, name_ends, names_fit, settle
from curvewise.plot.transfer_parts import (
    Chosen,
    Look,
    choose_methods,
    name_tasks,
    panels_of,
    several_of,
    warned,
    write_words,
)
from curvewise.transfer.ranks import MethodRank, TransferRanks
from curvewise.transfer.transfer_result import TransferResult

PLACE = "curvewise-place"
STEP = "curvewise-step"
OTHER = "curvewise-other"
MISSING = 0.2
"""Share of the methods that a size may lack, besides a single one: ranks of a few say little."""


def plot_transfer_ranks(
    ranks: TransferRanks,
    ax: Axes | None = None,
    *,
    task: str | Sequence[str] | None = None,
    methods: str | Sequence[str] | None = None,
    highlight: str | Sequence[str] | None = None,
    scratch: str | None = None,
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw the place of each method at each training size, the best on top.

    Parameters
    ----------
    ranks : TransferRanks
        What to draw.
    ax : Axes, optional
        Where, for one task; a new figure with a panel for each by default.
    task, methods : str or sequence of str, optional
        Only these. Places are those among all methods; the others are faint and without names.
    highlight : str or sequence of str, optional
        Methods in colour; the others are grey.
    scratch : str, optional
        The method that is black; by default the one that starts from nothing.
    legend : bool
        Name the methods at both ends.
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
    >>> ax = plot_transfer_ranks(measured.ranks())
    >>> [size.get_text() for size in ax.get_xticklabels()]
    ['100', '1K']
    """
    scratch = scratch or ranks.scratch
    with style():
        tasks = several_of("task", task, tuple(dict.fromkeys(r.task for r in ranks.rows)))
        every = tuple(dict.fromkeys(r.method for r in ranks.rows))
        mean = {m: np.mean([r.rank / r.among for r in ranks.rows if r.method == m]) for m in every}
        known = tuple(m for m in every if m != scratch)
        order = sorted(known, key=lambda m: float(mean[m]))
        chosen = choose_methods(known, scratch, tasks, methods, highlight, order)
        return _draw(ranks, ax, chosen, scratch, legend, caption)


def draw_ranks(
    result: TransferResult, ax: Axes | None, chosen: Chosen, legend: bool, caption: bool | None
) -> Axes:
    """The same of a measured transfer."""
    return _draw(result.ranks(), ax, chosen, result.scratch, legend, caption)


def _draw(
    ranks: TransferRanks,
    ax: Axes | None,
    chosen: Chosen,
    scratch: str,
    legend: bool,
    caption: bool | None,
) -> Axes:
    own = ax is None
    drawn = {*chosen.methods, scratch}
    groups = [[r for r in ranks.rows if r.task == t] for t in chosen.tasks]
    sizes = [_sizes(rows) for rows in groups]
    most = max((r.among for rows in groups for r in rows), default=1)
    longest = max((len(chosen.looks[m].name) for m in drawn), default=0)
    axes = _panels(ax, chosen.tasks, most, longest)
    ends: list[tuple[list[End], list[End]]] = []
    for panel, rows, n in zip(axes, groups, sizes, strict=True):
        kept = [r for r in rows if r.n in n]
        _others(panel, [r for r in kept if r.method not in drawn], n)
        paths = _paths([r for r in kept if r.method in drawn], chosen, scratch)
        for method, path in paths.items():
            _path(panel, path, n, chosen.looks[method], method == scratch)
        _finish(panel, n, max((r.among for r in rows), default=1))
        ends.append(_ends(paths, n, chosen, scratch))
    name_tasks(axes, chosen.tasks)
    write_words(axes, own, _caption(ranks, chosen, groups, sizes), caption)
    if legend:
        settle(axes[0], own)
        for panel, (first, last) in zip(axes, ends, strict=True):
            if names_fit(panel, own):
                name_ends(panel, first, "left")
                panel.tick_params(axis="y", labelleft=False)
            name_ends(panel, last)
    return axes[0]


def _panels(ax: Axes | None, tasks: Sequence[str], most: int, longest: int) -> list[Axes]:
    if ax is not None:
        return panels_of(ax, tasks)
    height, width = 1.3 + 0.23 * most, 3.6 + 0.15 * longest
    if len(tasks) == 1:
        return [new_axes(max(7.0, width + 1.0), height + 0.3)]
    axes = new_panels(len(tasks), 2, width, height)
    for panel in axes:
        panel.set_gid(OWN)
    return axes


def _sizes(rows: Sequence[MethodRank]) -> list[float]:
    """Sizes at which enough methods were measured."""
    most = max((r.among for r in rows), default=0)
    return sorted({r.n for r in rows if r.among >= most - max(1.0, MISSING * most)})


def _paths(rows: Sequence[MethodRank], chosen: Chosen, scratch: str) -> dict[str, list[MethodRank]]:
    """The places of each method by size, in the order of drawing."""
    order = [*chosen.back_first, scratch]
    found = {m: sorted((r for r in rows if r.method == m), key=lambda r: r.n) for m in order}
    return {m: path for m, path in found.items() if path}


def _others(ax: Axes, rows: Sequence[MethodRank], sizes: Sequence[float]) -> None:
    """Those who were not chosen, who have their places all the same."""
    for method in dict.fromkeys(r.method for r in rows):
        path = sorted((r for r in rows if r.method == method), key=lambda r: r.n)
        x, y = [sizes.index(r.n) for r in path], [r.rank for r in path]
        look: dict[str, Any] = {"color": "#E4E4E4", "lw": 1.0, "marker": "o", "ms": 3.0}
        ax.plot(x, y, zorder=1.0, gid=OTHER, label="_other", **look)


def _path(
    ax: Axes, path: Sequence[MethodRank], sizes: Sequence[float], look: Look, scratch: bool
) -> None:
    """One method from size to size, fainter where its place is less sure."""
    x = [sizes.index(r.n) for r in path]
    y = [r.rank for r in path]
    clear = [sureness(r) for r in path]
    z = 2.6 if scratch else (1.4 if look.back else 2.0)
    width = 2.8 if scratch else (1.4 if look.back else 2.2)
    fade = [to_rgba(look.shade, alpha) for alpha in clear]
    between = [to_rgba(look.shade, 0.5 * (a + b)) for a, b in pairwise(clear)]
    points = np.column_stack([x, y])
    pairs = np.stack([points[:-1], points[1:]], axis=1)
    lines = LineCollection(list(pairs), colors=between, linewidths=width, zorder=z)
    lines.set_gid(STEP)
    ax.add_collection(lines)
    # White under a faint dot, so that lines do not shine through.
    ax.scatter(x, y, s=49.0, color="white", linewidths=0.0, zorder=z + 0.05)
    dots: dict[str, Any] = {"linewidths": 0.0, "zorder": z + 0.1, "gid": PLACE}
    ax.scatter(x, y, s=49.0, facecolors=fade, **dots)


def sureness(row: MethodRank) -> float:
    """From 0.35, any place is possible, to 1, only this one."""
    spare = max(row.among - 1, 1)
    return 1.0 - 0.65 * min(1.0, (row.high - row.low) / spare)


def _finish(ax: Axes, sizes: Sequence[float], most: int) -> None:
    """Places from the top, sizes side by side."""
    ax.set_ylim(most + 0.6, 0.4)
    step = 1 if most <= 12 else 2 if most <= 24 else 5
    ax.set_yticks([1, *range(1 + step, most + 1, step)])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlim(-0.12, max(len(sizes) - 1, 0) + 0.12)
    ax.set_xticks(range(len(sizes)), labels=[compact(n) for n in sizes])
    ax.set_xlabel("training size $n$")


def _ends(
    paths: dict[str, list[MethodRank]], sizes: Sequence[float], chosen: Chosen, scratch: str
) -> tuple[list[End], list[End]]:
    """Names at the left for those who start there, at the right for all."""
    first, last = [], []
    for method, path in paths.items():
        if not chosen.named(method):
            continue
        look = chosen.looks[method]
        rest = (look.ink, look.back, method == scratch)
        if path[0].n == sizes[0]:
            text = f"{look.name}  {path[0].rank:g}"
            first.append(End(0.0, path[0].rank, text, *rest))
        text = f"{path[-1].rank:g}  {look.name}"
        last.append(End(float(sizes.index(path[-1].n)), path[-1].rank, text, *rest))
    return first, last


def _caption(
    ranks: TransferRanks,
    chosen: Chosen,
    groups: Sequence[Sequence[MethodRank]],
    sizes: Sequence[Sequence[float]],
) -> list[str]:
    said = "Place by mean risk, 1 is the best. The fainter, the more places are possible at "
    said += f"{100 * ranks.level:.4g}%."
    lost = [
        n
        for rows, kept in zip(groups, sizes, strict=True)
        for n in sorted({r.n for r in rows} - set(kept))
    ]
    if lost:
        many = sorted(set(lost))
        few = ", ".join(map(compact, many[:6])) + (" …" if len(many) > 6 else "")
        said += f" Left out: sizes that many methods lack ({few})."
    return [said, chosen.note, *warned(ranks)]
