"""Pictures of a measured transfer: one entrance, several kinds; ranks of methods and their differences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.ticker import MaxNLocator

from curvewise.drawing.axes import is_narrow, view, width_of
from curvewise.drawing.marks import DIAGONAL, bars, beside, choose, choose_some, ends_of, has_room, note, warned
from curvewise.drawing.panels import interval_text, signed
from curvewise.drawing.rows import clearest, draw_differences, pair_names, rows_of, rows_shown
from curvewise.drawing.style import NEUTRAL, OWN, colour, pale, place_of, style
from curvewise.errors import InputError, arg
from curvewise.text import format_level
from curvewise.transfer.plot.panels import (
    SCRATCH,
    X_LABEL,
    Y_LABEL,
    CurveEnd,
    DrawnMethods,
    MethodLook,
    by_improvement,
    caption_name,
    choose_drawn,
    choose_methods,
    compact,
    control_lines,
    draw_curve,
    end_at,
    finish_panels,
    interval_bars,
    name_ends,
    name_tasks,
    others_of,
    panels_of,
    paths_of,
    risk_limits,
    room_for_controls,
    settle,
    shifts,
    size_axis,
    size_limits,
    write_words,
)
from curvewise.transfer.result import Improvement, MethodRank, TransferComparison, TransferRanks, TransferResult
from curvewise.types.results import FloatArray

MOST_BANDS = 4  # coloured curves whose intervals are bands; those of more are bars
MOST_SHADED = 3  # methods whose areas can be distinguished
MOST_ROOM = 0.2  # how far intervals of CCI widen the axis, as a share of what the estimates and limits span
ROOM = 1.6  # factor between the sizes and the triangles that stand for values beyond them
MISSING = 0.2  # share of the methods that a size may lack, besides a single one: ranks of a few say little

CCI = "curvewise-cci"
LIMIT = "curvewise-limit"
EQUIVALENT = "curvewise-equivalent"


def plot_transfer(
    result: TransferResult,
    ax: Axes | None = None,
    *,
    kind: str = "curves",
    task: str | Sequence[str] | None = None,
    methods: str | Sequence[str] | None = None,
    highlight: str | Sequence[str] | None = None,
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw methods against training from scratch, a panel for each task.

    Parameters
    ----------
    result : TransferResult
        What to draw.
    ax : Axes, optional
        Where, for one task; a new figure by default.
    kind : {"curves", "area", "cci", "ranks", "equivalence"}
        Calibrated risk against training size, between the controls; calibrated risk against that
        of scratch, with the area that the CCI counts (of the best method, unless ``methods`` or
        ``highlight`` names some); the CCI of each method with its interval; how the ranking
        changes with the size; or how many samples scratch needs to match a method.
    task : str or sequence of str, optional
        Only these.
    methods : str or sequence of str, optional
        Only these; scratch is always there.
    highlight : str or sequence of str, optional
        Methods in colour; the others are grey. By default all are in colour, of more than eight the
        five of highest CCI.
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
    ...     "method": ["scratch"] * 4 + ["swav"] * 4,
    ...     "n": [100, 100, 1000, 1000] * 2,
    ...     "risk": [0.8, 0.82, 0.5, 0.49, 0.6, 0.61, 0.45, 0.44],
    ... }
    >>> ax = plot_transfer(measure_transfer(runs, blind=0.9, maximal=0.1))
    >>> ax.get_ylabel()
    'calibrated risk'
    """
    choose("kind", kind, tuple(KINDS))
    with style():
        chosen = choose_drawn(result, task, methods, highlight)
        if not chosen.methods and kind != "curves":
            raise InputError(
                f"has nothing to draw: there is no method beside {result.scratch!r}, which {arg('kind', 'curves')} "
                "shows.",
                argument="kind",
                value=kind,
            )
        return KINDS[kind](result, ax, chosen, legend, caption)


def draw_curves(
    result: TransferResult, ax: Axes | None, chosen: DrawnMethods, legend: bool, caption: bool | None
) -> Axes:
    """Draw a panel for each task: all methods between a blind guess and maximal supervision."""
    own = ax is None
    axes = panels_of(ax, chosen.tasks)
    groups = []
    for task in chosen.tasks:
        found = {c.method: c for c in result.curves if c.task == task}
        groups.append([found[m] for m in (*chosen.back_first, result.scratch) if m in found])
    few = sum(not chosen.looks[m].back for m in chosen.methods) <= MOST_BANDS
    sizes = [np.unique(np.concatenate([c.n for c in curves])) for curves in groups]
    named: list[list[CurveEnd]] = []
    for panel, task, curves, n, span in zip(axes, chosen.tasks, groups, sizes, size_limits(sizes), strict=True):
        top = "largest risk" if result.blind[task].assumed else "blind guess"
        control_lines(panel, "maximal supervision" + " (assumed)" * result.maximal[task].assumed, blind=top)
        aside = shifts(chosen, [c.method for c in curves])
        named.append([])
        for curve in curves:
            look, scratch = chosen.looks[curve.method], curve.method == result.scratch
            draw_curve(panel, curve, look, None if few else aside.get(curve.method), scratch)
            if chosen.named(curve.method):
                named[-1].append(end_at(curve.n, curve.calibrated, look, scratch))
        size_axis(panel, n, span)
    drawn = [curve for curves in groups for curve in curves]
    ends = [v for c in drawn if not chosen.looks[c.method].back for v in (*c.low, *c.high) if np.isfinite(v)]
    low, high = room_for_controls(*risk_limits(drawn, ends))
    for panel in axes:
        panel.set_ylim(low, high)
    assumed_blind = {result.blind[t].assumed for t in chosen.tasks}
    one = "the largest risk" if assumed_blind == {True} else "a blind guess"
    one += " (the largest risk where none is known)" if len(assumed_blind) > 1 else ""
    said = f"Calibrated risk: 1 is {one}, 0 maximal supervision."
    if ends:
        said += f" {'Bands' if few else 'Bars'}: {format_level(result.level)} intervals of the mean"
        said += "; some end outside the picture." if min(ends) < low or max(ends) > high else "."
    lines = [said, chosen.note, *warned(result, but=others_of(result, chosen.tasks))]
    return finish_panels(axes, own, chosen.tasks, (X_LABEL, Y_LABEL), lines, caption, named if legend else None)


# The paper's view: calibrated risk against that of scratch, with the area that the CCI counts.


def draw_area(
    result: TransferResult, ax: Axes | None, chosen: DrawnMethods, legend: bool, caption: bool | None
) -> Axes:
    """Draw a panel for each task: scratch is the diagonal, what lies under it is gained."""
    own = ax is None
    axes = panels_of(ax, chosen.tasks, alone=(5.6, 4.8))
    groups = [_shaded(result, task, chosen) for task in chosen.tasks]
    drawn = list(dict.fromkeys(row.method for rows in groups for row in rows))
    looks = {m: chosen.looks[m] for m in drawn}
    if not chosen.picked:
        # Colour the best methods of tasks, also where they are not among the best of all.
        free = len(chosen.looks) - 1 - sum(look.back for look in chosen.looks.values())
        back = [m for m in drawn if looks[m].back]
        looks |= {m: MethodLook(colour(place_of(m, free + i)), looks[m].name) for i, m in enumerate(back)}
    dots: list[tuple[FloatArray, FloatArray]] = []
    for panel, rows in zip(axes, groups, strict=True):
        paths = []
        for row in rows:
            start = result.curve(row.task, result.scratch)
            x = start.calibrated[np.searchsorted(start.n, row.n)]
            paths.append((x, x - row.gain))
        if paths:  # the whole area that could be gained
            whole = np.sort(paths[-1][0])
            panel.fill_between(
                whole, 0.0, whole, color=NEUTRAL, alpha=0.13, linewidth=0.0, zorder=0.3, gid="curvewise-whole"
            )
        panel.axline((0.0, 0.0), slope=1.0, color=SCRATCH, lw=2.0, zorder=2.2, gid=DIAGONAL, label="_s")
        control_lines(panel, swapped=True)
        for k, (row, path) in enumerate(zip(rows, paths, strict=True)):
            # The better, the lower: what a method gains beyond the others is seen.
            _area_path(panel, *path, looks[row.method], (1.0 - 0.1 * k) if len(rows) <= MOST_SHADED else None)
        if rows and width_of(panel) > 2.0:
            last = np.inf
            for size, x, y in zip(rows[-1].n, *paths[-1], strict=True):
                if np.isfinite(x + y) and not last - x < 0.075:  # sizes beside the dots where they do not touch
                    last = x
                    look: dict[str, Any] = {"ha": "left", "va": "top", "color": "#555555", "path_effects": None}
                    beside(panel, compact(size), (x, y), (3.0, -2.5), fontsize=7.5, gid="curvewise-size", **look)
        if legend:
            _area_names(panel, rows[::-1], looks)
        dots += paths
    # The same limits in all panels: both controls and every dot.
    xs, ys = (np.concatenate([[0.0, 1.0], *values]) for values in (zip(*dots, strict=True) if dots else ([], [])))
    for panel in axes:
        panel.set_xlim(np.nanmin(xs) - 0.03, np.nanmax(xs) + 0.07)
        panel.set_ylim(np.nanmin(ys) - 0.08, np.nanmax(ys) + 0.08)
    labels = (f"calibrated risk of {chosen.looks[result.scratch].name}", "calibrated risk of the method")
    black = f"Diagonal: {caption_name(result.scratch)}."
    said = f"{black} Grey area: what could be gained; coloured: what is gained of it."
    said += " Areas lie over each other, the smallest on top." if any(len(rows) > 1 for rows in groups) else ""
    if result.weight == "scratch":
        said += " The CCI of a method is the area between its line and the diagonal over all that could be gained."
    else:
        said += f" The CCI written here is weighted otherwise ({result.weight})."
    if any(len(rows) > MOST_SHADED for rows in groups):
        said = f"{black} Areas are shaded for up to {MOST_SHADED} methods."
    said += " Hatched: lost." if any(pieces(x, y)[1] for x, y in dots) else ""
    return finish_panels(
        axes, own, chosen.tasks, labels, [said, *warned(result, but=others_of(result, chosen.tasks))], caption
    )


def _shaded(result: TransferResult, task: str, chosen: DrawnMethods) -> list[Improvement]:
    """Return the methods of a task to shade: those in colour, or the best if none was chosen."""
    found = {i.method: i for i in result.improvements if i.task == task and len(i.n)}
    there = [m for m in chosen.methods if m in found]
    if len(there) > MOST_SHADED:
        front = [m for m in there if not chosen.looks[m].back]
        best = by_improvement(result, there, [task])[:1]
        there = front if chosen.picked and front else best
    return [found[m] for m in by_improvement(result, there, [task])[::-1]]


def _area_path(ax: Axes, x: FloatArray, y: FloatArray, look: MethodLook, z: float | None) -> None:
    """Draw a method from size to size, and the area between it and scratch at height z."""
    if z is not None:
        better, worse = pieces(x, y)
        # Opaque and pale: areas that mix would have the colour of no method.
        fill: dict[str, Any] = {"facecolors": [pale(look.shade)], "zorder": z, "linewidths": 0.0}
        if better:
            ax.add_collection(PolyCollection(better, gid="curvewise-gain", **fill))
        if worse:
            hatched: dict[str, Any] = {"facecolors": "none", "edgecolors": look.shade}
            ax.add_collection(PolyCollection(worse, hatch="////", zorder=1.0, gid="curvewise-loss", lw=0.0, **hatched))
    line: dict[str, Any] = {"color": look.shade, "marker": "o", "ms": 4.0, "mew": 0.0}
    ax.plot(x, y, lw=1.7, zorder=2.5, gid="curvewise-path", label="_path", **line)


def pieces(x: FloatArray, y: FloatArray) -> tuple[list[FloatArray], list[FloatArray]]:
    """Cut the area between a path and the diagonal into what the CCI counts as gain and as loss.

    A step on which the risk of scratch rises counts backwards, unless it rises on the whole.

    >>> better, worse = pieces(np.array([1.0, 0.5]), np.array([0.5, 0.5]))
    >>> better[0].tolist(), worse
    ([[1.0, 0.5], [0.5, 0.5], [0.5, 0.5], [1.0, 1.0]], [])
    """
    found: dict[bool, list[FloatArray]] = {True: [], False: []}
    if not np.isfinite(x + y).all():
        return found[True], found[False]
    corners: list[tuple[float, float]] = []
    for k, (at, below) in enumerate(zip(x.tolist(), y.tolist(), strict=True)):
        if k and (gap := x[k - 1] - y[k - 1]) * (at - below) < 0:  # the path crosses the diagonal
            crossing = float(x[k - 1] + gap / (gap - (at - below)) * (at - x[k - 1]))
            corners.append((crossing, crossing))
        corners.append((at, below))
    steps = list(pairwise(corners))
    # All that could be gained, Σ (x0 − x1)(x0 + x1), has this sign, and the CCI is a share of it.
    way = float(np.sign(x[0] ** 2 - x[-1] ** 2)) or 1.0
    signs = [way * float(np.sign(((x0 - y0) + (x1 - y1)) * (x0 - x1))) for (x0, y0), (x1, y1) in steps]
    for sign, stretch in groupby(zip(signs, steps, strict=True), key=lambda pair: pair[0]):
        path = [step for _, step in stretch]
        line = np.array([path[0][0], *(end for _, end in path)])
        if sign:  # close the area along the diagonal
            found[sign > 0].append(np.concatenate([line, line[::-1, [0, 0]]]))
    return found[True], found[False]


def _area_names(ax: Axes, rows: Sequence[Improvement], looks: dict[str, MethodLook]) -> None:
    """Write methods with their CCI above the diagonal, where there is nothing else."""
    size = 7.0 if is_narrow(ax) and ax.get_gid() != OWN else 8.5
    place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "va": "top"}
    for k, row in enumerate(rows):
        look = looks[row.method]
        said = interval_text(row.cci).replace("-", "−") if np.isfinite(row.cci.estimate) else "unknown"
        place |= {"xytext": (0.0, -(1.5 + 3.0 * k) * size), "color": look.ink}
        ax.annotate(
            f"{look.name}\nCCI {said}", (0.03, 1.0), fontsize=size, gid="curvewise-name", linespacing=1.15, **place
        )


# The CCI of each method with its interval, task by task.


def draw_cci(result: TransferResult, ax: Axes | None, chosen: DrawnMethods, legend: bool, caption: bool | None) -> Axes:
    """Draw a row for each method, a panel for each task; the same order in all."""
    own = ax is None
    order = by_improvement(result, chosen.methods, chosen.tasks)
    total = len(order)
    order = order[: rows_shown(ax, None, total)]
    # A title and an axis around the rows, and a caption of about five lines under all panels.
    lines = math.ceil(len(chosen.tasks) / (2 if len(chosen.tasks) in (2, 4) else 3))
    height = 1.15 + 0.25 * max(len(order), 2) + 0.95 / lines
    axes = panels_of(ax, chosen.tasks, (7.0, height), (4.4, height))
    found = {(i.task, i.method): i for i in result.improvements}
    # Limits with all estimates, 0 and 1, and intervals as far as they do not squeeze those.
    middle, *ends = ends_of(i.cci for i in found.values() if i.task in chosen.tasks and i.method in order)
    known = [0.0, 1.0, *middle[np.isfinite(middle)].tolist()]
    room = MOST_ROOM * (max(known) - min(known))
    low, high = (np.clip(end, min(known) - room, max(known) + room) for end in ends)
    limits = view(middle, low, high, 0.0, 1.0)
    start = chosen.looks[result.scratch].name
    for k, (panel, task) in enumerate(zip(axes, chosen.tasks, strict=True)):
        for at, text in ((0.0, start), (1.0, "maximal")):
            panel.axvline(at, color=NEUTRAL, lw=1.0, ls="--", zorder=0.8, gid=LIMIT, label="_limit")
            if legend:
                place: dict[str, Any] = {"xycoords": panel.get_xaxis_transform(), "ha": "center", "va": "bottom"}
                place |= {"xytext": (0.0, 2.0), "textcoords": "offset points", "color": "#6E6E6E"}
                panel.annotate(text, (at, 1.0), fontsize=7.5, gid=LIMIT, **place)
        written = own or (has_room(panel, own) if caption is None else caption)
        for y, method in enumerate(order):
            row = found.get((task, method))
            if row is not None and np.isfinite(row.cci.estimate):
                _cci_row(panel, y, row, chosen.looks[method].shade, limits, written)
            else:
                middle_of: dict[str, Any] = {"xycoords": panel.get_yaxis_transform(), "va": "center", "ha": "center"}
                note(panel, _lacking(result, task, method), (0.5, y), fontsize=7.5, color="#8C8C8C", **middle_of)
        spec = panel.get_subplotspec()
        leftmost = k == 0 or spec is None or spec.colspan.start == 0
        rows_of(panel, [chosen.looks[m].name if leftmost else "" for m in order])
        panel.set_xlim(*limits)
        panel.set_xlabel("CCI")
        panel.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    name_tasks(axes, chosen.tasks, pad=16.0 if legend else 6.0)
    write_words(axes, own, _cci_caption(result, chosen, len(order), total), caption)
    return axes[0]


def _lacking(result: TransferResult, task: str, method: str) -> str:
    """Say why a method has no value on a task."""
    sizes = {c.method: c.n for c in result.curves if c.task == task}
    if method not in sizes or not len(sizes[method]):
        return "not measured"
    shared = np.intersect1d(sizes[method], sizes[result.scratch])
    return ("no shared size", "one shared size")[len(shared)] if len(shared) < 2 else "unknown"


def _cci_row(ax: Axes, y: float, row: Improvement, shade: str, limits: tuple[float, float], written: bool) -> None:
    """Draw a dot with its interval, dashed if that is borrowed; hollow if it is not significant."""
    bars(ax, [y], [row.cci.low], [row.cci.high], shade, limits=limits, horizontal=True, width=1.8)
    if row.borrowed:
        ax.collections[-1].set_linestyle((0, (1.6, 0.8)))
    face = shade if row.significant else "white"
    ax.plot([row.cci.estimate], [y], "o", ms=6.0, mfc=face, mec=shade, mew=1.3, gid=CCI, label="_cci", zorder=2.5)
    if written:  # the number, in a column at the right
        text = signed(round(row.cci.estimate, 2) + 0.0, 2)
        ax.text(1.015, y, text, fontsize=8.0, va="center", transform=ax.get_yaxis_transform(), gid="curvewise-value")


def _cci_caption(result: TransferResult, chosen: DrawnMethods, shown: int, total: int) -> list[str]:
    scratch = caption_name(result.scratch)
    said = f"Calibrated cumulative improvement: 0 is no better than {scratch}, 1 maximal supervision at every size."
    explained = ""
    if known := [i for i in result.improvements if i.task in chosen.tasks and np.isfinite(i.cci.width)]:
        explained = f"Bars: {format_level(result.level)} intervals"
        if any(i.borrowed for i in known):
            explained += ", dashed where half or more of the sizes have one run, with the spread of others"
        many = Counter(i.task for i in known)
        each = " of a task" if len(many) > 1 else ""
        after = f" after Holm's correction for the tests{each}" if max(many.values()) > 1 else ""
        explained += f". Filled: differs from {scratch}{after}."
    order = []
    if len(chosen.tasks) > 1:
        order.append("Ordered by how far above the mean of a task a method is, averaged over its tasks.")
    if shown < total:
        order.append(f"The best {shown} of {total} methods.")
    return [
        said,
        explained,
        " ".join([*order, chosen.note]).strip(),
        *warned(result, but=others_of(result, chosen.tasks)),
    ]


# The samples that scratch needs to match a method, against those that the method had.


def draw_equivalence(
    result: TransferResult, ax: Axes | None, chosen: DrawnMethods, legend: bool, caption: bool | None
) -> Axes:
    """Draw a panel for each task; on the diagonal nothing is gained."""
    own = ax is None
    groups, sizes, tops = [], [], []
    for task in chosen.tasks:
        found = {i.method: i for i in result.improvements if i.task == task and i.data_equivalence}
        groups.append([found[m] for m in chosen.back_first if m in found])
        scratch = result.curve(task, result.scratch).n
        tops.append(float(scratch[-1]))
        sizes.append(np.unique(np.concatenate([scratch, *([e.n for e in r.data_equivalence] for r in groups[-1])])))
    if not any(groups):
        raise InputError(
            "has nothing to draw: no method has a data equivalence, which needs two sizes of scratch at which its risk "
            "differs.",
            argument="kind",
            value="equivalence",
        )
    axes = panels_of(ax, chosen.tasks)
    ends: list[list[CurveEnd]] = []
    for panel, rows, n, span, top in zip(axes, groups, sizes, size_limits(sizes), tops, strict=True):
        # Triangles stand for values beyond: outside all sizes and all estimates.
        known = np.concatenate([n, *(ends_of(e.equivalent for e in row.data_equivalence)[0] for row in rows)])
        known = known[np.isfinite(known) & (known > 0)]
        edges = (float(known.min()) / ROOM, float(known.max()) * ROOM)
        # From the largest size of scratch on, which may be below that of a method.
        beyond = max(edges[1], top) * 1e3
        panel.axhspan(top, beyond, color="#8C8C8C", alpha=0.1, linewidth=0.0, zorder=0.2, gid="curvewise-measured")
        panel.plot(span, span, color=SCRATCH, lw=2.0, zorder=1.2, label="_equal", gid=DIAGONAL)  # nothing is gained
        panel.grid(alpha=0.25, linewidth=0.6)
        aside = shifts(chosen, [row.method for row in rows])
        for row in rows:
            _equivalence_row(panel, row, chosen.looks[row.method], edges, aside.get(row.method))
        size_axis(panel, n, span)
        size_axis(panel, n, (min(span[0], edges[0] / 1.15), max(span[1], edges[1] * 1.15)), "y")
        named = [row for row in rows if chosen.named(row.method)]
        ends.append([end_at(*_equivalents(row, edges), chosen.looks[row.method]) for row in named])
    labels = (
        "number of training samples of the method",
        f"training samples that {chosen.looks[result.scratch].name} needs",
    )
    said = "Diagonal: as many as the method had. Shaded: more than was measured; triangles lie beyond."
    intervals = [e.equivalent for rows in groups for row in rows for e in row.data_equivalence]
    said += f" Bars: {format_level(result.level)} intervals." if np.isfinite(ends_of(intervals)[1:]).any() else ""
    lines = [said, chosen.note, *warned(result, but=others_of(result, chosen.tasks))]
    return finish_panels(axes, own, chosen.tasks, labels, lines, caption, ends if legend else None)


def _equivalents(row: Improvement, edges: tuple[float, float]) -> tuple[FloatArray, FloatArray]:
    """Return the sizes of a method and what they are worth, within the edges of the picture."""
    n = np.array([e.n for e in row.data_equivalence])
    return n, np.clip([e.equivalent.estimate for e in row.data_equivalence], *edges)


def _equivalence_row(
    ax: Axes, row: Improvement, look: MethodLook, edges: tuple[float, float], shift: float | None
) -> None:
    """Draw equivalents with intervals; triangles at the edge where they lie beyond the sizes."""
    n, at = _equivalents(row, edges)
    middle, low, high = ends_of(e.equivalent for e in row.data_equivalence)
    inside = np.isfinite(middle) & (middle > edges[0]) & (middle < edges[1])
    z = 1.5 if look.back else 2.2
    if shift is not None:
        ends = np.clip(low, *edges), np.clip(high, *edges)
        interval_bars(ax, n, *ends, look.shade, shift, z - 0.1)
    line: dict[str, Any] = {"color": look.shade, "zorder": z, "label": "_equivalent"}
    ax.plot(n, at, lw=0.9, ls=":", gid=EQUIVALENT + "-path", **line)
    solid = np.where(inside, at, np.nan)
    ax.plot(n, solid, lw=1.0 if look.back else 1.6, gid=EQUIVALENT, **line)
    dots: dict[str, Any] = {"linestyle": "none", "mew": 0.0} | line
    ax.plot(n[inside], at[inside], marker="o", ms=3.6, gid=EQUIVALENT + "-dot", **dots)
    for beyond, marker in ((middle >= edges[1], "^"), (middle <= edges[0], "v")):
        if beyond.any():
            ax.plot(n[beyond], at[beyond], marker=marker, ms=6.5, gid="curvewise-beyond", **dots)


# Ranks of methods by training size.


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
    ['100', '1,000']
    """
    scratch = scratch or ranks.scratch
    with style():
        tasks = choose_some("task", task, tuple(dict.fromkeys(r.task for r in ranks.rows)))
        every = tuple(dict.fromkeys(r.method for r in ranks.rows))
        if not every:
            raise InputError("result has no place to draw: no two methods were measured at one size of a task.")
        mean = {m: np.mean([r.rank / r.among for r in ranks.rows if r.method == m]) for m in every}
        known = tuple(m for m in every if m != scratch)
        order = sorted(known, key=lambda m: float(mean[m]))
        chosen = choose_methods(known, scratch, tasks, methods, highlight, order)
        return draw_places(ranks, ax, chosen, scratch, legend, caption)


def draw_places(
    ranks: TransferRanks, ax: Axes | None, chosen: DrawnMethods, scratch: str, legend: bool, caption: bool | None
) -> Axes:
    """Draw a panel for each task: the place of each method from size to size."""
    own = ax is None
    drawn = {*chosen.methods, scratch}
    groups = [[r for r in ranks.rows if r.task == t] for t in chosen.tasks]
    sizes = []
    for rows in groups:  # sizes at which enough methods were measured
        most = max((r.among for r in rows), default=0)
        sizes.append(sorted({r.n for r in rows if r.among >= most - max(1.0, MISSING * most)}))
    most = max((r.among for rows in groups for r in rows), default=1)
    longest = max((len(chosen.looks[m].name) for m in drawn), default=0)
    height, width = 1.3 + 0.23 * most, 3.6 + 0.15 * longest
    axes = panels_of(ax, chosen.tasks, (max(7.0, width + 1.0), height + 0.3), (width, height), columns=2)
    ends: list[tuple[list[CurveEnd], list[CurveEnd]]] = []
    for panel, rows, n in zip(axes, groups, sizes, strict=True):
        kept = [r for r in rows if r.n in n]
        # Methods that were not chosen have their places all the same.
        for method in dict.fromkeys(r.method for r in kept if r.method not in drawn):
            path = sorted((r for r in kept if r.method == method), key=lambda r: r.n)
            faint: dict[str, Any] = {"color": "#E4E4E4", "lw": 1.0, "marker": "o", "ms": 3.0, "zorder": 1.0}
            panel.plot(
                [n.index(r.n) for r in path], [r.rank for r in path], gid="curvewise-other", label="_other", **faint
            )
        first, last = [], []
        for method, path in paths_of([r for r in kept if r.method in drawn], chosen, scratch).items():
            look, bold = chosen.looks[method], method == scratch
            _rank_path(panel, path, n, look, bold)
            if not chosen.named(method):
                continue
            rest = (look.ink, look.back, bold)
            if path[0].n == n[0]:  # names at the left of methods that start there, at the right of all
                first.append(CurveEnd(0.0, path[0].rank, f"{look.name}  {path[0].rank:g}", *rest))
            last.append(CurveEnd(n.index(path[-1].n), path[-1].rank, f"{path[-1].rank:g}  {look.name}", *rest))
        ends.append((first, last))
        # Places from the top, sizes side by side.
        most = max((r.among for r in rows), default=1)
        step = 1 if most <= 12 else 2 if most <= 24 else 5
        panel.set(ylim=(most + 0.6, 0.4), yticks=[1, *range(1 + step, most + 1, step)], xlabel=X_LABEL)
        panel.tick_params(axis="y", length=0)
        panel.spines["left"].set_visible(False)
        panel.set_xlim(-0.12, max(len(n) - 1, 0) + 0.12)
        panel.set_xticks(range(len(n)), labels=[compact(size) for size in n])
    said = "Place by mean risk, 1 is the best. The fainter, the more places are possible at "
    said += f"{format_level(ranks.level)}."
    if lost := sorted({r.n for rows, kept in zip(groups, sizes, strict=True) for r in rows if r.n not in kept}):
        few = ", ".join(map(compact, lost[:6])) + (" …" if len(lost) > 6 else "")
        said += f" Left out: sizes that many methods lack ({few})."
    name_tasks(axes, chosen.tasks)
    write_words(axes, own, [said, chosen.note, *warned(ranks)], caption)
    if legend:
        settle(axes[0])
        for panel, (first, last) in zip(axes, ends, strict=True):
            if has_room(panel, own):
                name_ends(panel, first, "left")
                panel.tick_params(axis="y", labelleft=False)
            name_ends(panel, last)
    return axes[0]


def _rank_path(ax: Axes, path: Sequence[MethodRank], sizes: Sequence[float], look: MethodLook, scratch: bool) -> None:
    """Draw one method from size to size, fainter where more places are possible."""
    points = np.array([(sizes.index(r.n), r.rank) for r in path])
    x, y = points.T
    # From 0.35, any place is possible, to 1, only this one.
    clear = [1.0 - 0.65 * min(1.0, (r.high - r.low) / max(r.among - 1, 1)) for r in path]
    z, width = (2.6, 2.8) if scratch else (1.4, 1.4) if look.back else (2.0, 2.2)
    between = [to_rgba(look.shade, 0.5 * (a + b)) for a, b in pairwise(clear)]
    lines = LineCollection(list(pairwise(points)), colors=between, linewidths=width, zorder=z, gid="curvewise-step")
    ax.add_collection(lines)
    # White under a faint dot, so that lines do not shine through.
    ax.scatter(x, y, s=49.0, color="white", linewidths=0.0, zorder=z + 0.05)
    fade = [to_rgba(look.shade, alpha) for alpha in clear]
    ax.scatter(x, y, s=49.0, facecolors=fade, linewidths=0.0, zorder=z + 0.1, gid="curvewise-place")


KINDS: dict[str, Callable[..., Axes]] = {
    "curves": draw_curves,
    "area": draw_area,
    "cci": draw_cci,
    "ranks": lambda result, ax, chosen, *rest: draw_places(result.ranks(), ax, chosen, result.scratch, *rest),
    "equivalence": draw_equivalence,
}


# Differences of CCI between methods.


def plot_transfer_comparison(
    result: TransferComparison,
    ax: Axes | None = None,
    *,
    task: str | Sequence[str] | None = None,
    most: int | None = None,
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw how much more methods improve on scratch than others, with intervals.

    Parameters
    ----------
    result : TransferComparison
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    task : str or sequence of str, optional
        Only these.
    most : int, optional
        Show only this many of the clearest differences: 30 by default, fewer in small Axes.
    legend : bool
        Say what the colours are.
    caption : bool, optional
        Say what is shown under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or the new ones.

    Examples
    --------
    >>> from curvewise.transfer.measure import measure_transfer
    >>> runs = {
    ...     "method": ["scratch"] * 4 + ["swav"] * 4 + ["color"] * 4,
    ...     "n": [100, 100, 1000, 1000] * 3,
    ...     "risk": [0.8, 0.82, 0.5, 0.49, 0.6, 0.61, 0.45, 0.44, 0.7, 0.71, 0.48, 0.5],
    ... }
    >>> measured = measure_transfer(runs, blind=0.9, maximal=0.1)
    >>> ax = plot_transfer_comparison(measured.comparisons())
    >>> [name.get_text() for name in ax.get_yticklabels()]
    ['swav − color']
    """
    tasks = choose_some("task", task, tuple(dict.fromkeys(r.task for r in result.rows)))
    rows = [row for row in result.rows if row.task in tasks]
    if not rows:
        raise InputError("result has no comparison to draw: no two methods share a task.")
    # The better method first.
    for k, row in enumerate(rows):
        d = row.difference
        if d.estimate < 0:
            flipped = replace(d, estimate=-d.estimate, low=-d.high, high=-d.low)
            rows[k] = replace(row, one=row.two, two=row.one, difference=flipped)
    ends = ends_of(row.difference for row in rows)
    shown = clearest(ax, most, np.array([row.pvalue for row in rows]), order=-ends[0])
    kept, level = [rows[i] for i in shown], rows[0].difference.level
    said = f"Bars: {format_level(level)} intervals. Significant: p ≤ {1 - level:.2g} for all comparisons together."
    return draw_differences(
        ax,
        pair_names(ax, [(row.one, row.two) for row in kept], [row.task for row in kept]),
        [end[shown] for end in ends],
        [bool(row.adjusted <= 1 - row.difference.level) for row in kept],
        total=len(rows),
        label="difference of CCI",
        lines=[said, *warned(result)],
        legend=legend,
        caption=caption,
    )
