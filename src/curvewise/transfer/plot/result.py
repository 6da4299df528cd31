"""Pictures of a measured transfer: one entrance, several kinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.ticker import MaxNLocator

from curvewise.drawing.axes import is_narrow, rows_of, rows_that_fit, view, width_of
from curvewise.drawing.marks import DIAGONAL, bars, ends_of, note
from curvewise.drawing.panels import new_panels, signed, told
from curvewise.drawing.style import NEUTRAL, OWN, colour, new_axes, style
from curvewise.errors import InputError
from curvewise.transfer.plot.panels import (
    CONTROL,
    SCRATCH,
    Chosen,
    End,
    Look,
    by_improvement,
    choose_drawn,
    choose_methods,
    compact,
    control_lines,
    draws_caption,
    interval_bars,
    legend_inside,
    name_ends,
    name_tasks,
    names_fit,
    one_of,
    outer_labels,
    panels_of,
    settle,
    several_of,
    share_limits,
    shifts,
    size_axis,
    size_limits,
    spoken,
    warned,
    write_words,
)
from curvewise.transfer.result import Improvement, MethodRank, RiskCurve, TransferRanks, TransferResult
from curvewise.types.units import FloatArray


def draw_curves(result: TransferResult, ax: Axes | None, chosen: Chosen, legend: bool, caption: bool | None) -> Axes:
    """A panel for each task: all methods between a blind guess and maximal supervision."""
    own = ax is None
    axes = panels_of(ax, chosen.tasks)
    groups = [curves_of(result, task, chosen) for task in chosen.tasks]
    few = sum(not chosen.looks[m].back for m in chosen.methods) <= MOST_BANDS
    limits = size_limits([_sizes(curves) for curves in groups])
    for panel, task, curves, span in zip(axes, chosen.tasks, groups, limits, strict=True):
        maximal = result.maximal.get(task)
        assumed = maximal is not None and maximal.assumed
        control_lines(panel, maximal="maximal supervision" + " (assumed)" * assumed)
        aside = shifts(chosen, [c.method for c in curves])
        for curve in curves:
            look, scratch = chosen.looks[curve.method], curve.method == result.scratch
            draw_risk(panel, curve, look, None if few else aside.get(curve.method), scratch)
        size_axis(panel, _sizes(curves), span)
    low, high = _limits([curve for curves in groups for curve in curves], chosen)
    share_limits(axes, low, high)
    name_tasks(axes, chosen.tasks)
    outer_labels(axes, X_LABEL, Y_LABEL)
    write_words(axes, own, _caption(result, chosen, groups, few, (low, high)), caption)
    if legend:
        named = [[c for c in curves if chosen.named(c.method)] for curves in groups]
        ends = [[end_of(c, chosen.looks[c.method], result) for c in curves] for curves in named]
        write_names(axes, ends)
    return axes[0]


def draw_area(result: TransferResult, ax: Axes | None, chosen: Chosen, legend: bool, caption: bool | None) -> Axes:
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
    write_words(axes, own, _caption_transfer_area(result, groups), caption)
    return axes[0]


def draw_cci(result: TransferResult, ax: Axes | None, chosen: Chosen, legend: bool, caption: bool | None) -> Axes:
    """A row for each method, a panel for each task; the same order in all."""
    own = ax is None
    order = by_improvement(result, chosen.methods, chosen.tasks)
    total = len(order)
    if ax is not None:
        order = order[: rows_that_fit(ax)]
    axes = _panels(ax, chosen.tasks, len(order))
    found = {(i.task, i.method): i for i in result.improvements}
    limits = _limits_transfer_cci([i for i in found.values() if i.task in chosen.tasks and i.method in order])
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
    write_words(axes, own, _caption_transfer_cci(result, chosen, len(order), total), caption)
    return axes[0]


def draw_equivalence(
    result: TransferResult, ax: Axes | None, chosen: Chosen, legend: bool, caption: bool | None
) -> Axes:
    """A panel for each task; on the diagonal nothing is gained."""
    own = ax is None
    groups = [_drawn_transfer_equivalence(result, task, chosen) for task in chosen.tasks]
    if not any(groups):
        raise InputError(
            "kind='equivalence' has nothing to draw: no method has a data equivalence, which "
            "needs two sizes of scratch at which its risk differs."
        )
    axes = panels_of(ax, chosen.tasks)
    sizes = [_sizes_transfer_equivalence(result, task, rows) for task, rows in zip(chosen.tasks, groups, strict=True)]
    limits = size_limits(sizes)
    ends: list[list[End]] = []
    for panel, rows, n, span in zip(axes, groups, sizes, limits, strict=True):
        edges = _edges(n, rows, span)
        _frame_transfer_equivalence(panel, span, n)
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
    write_words(axes, own, _caption_transfer_equivalence(result, chosen, groups), caption)
    if legend:
        write_names(axes, ends)
    return axes[0]


def draw_ranks(result: TransferResult, ax: Axes | None, chosen: Chosen, legend: bool, caption: bool | None) -> Axes:
    """The same of a measured transfer."""
    return _draw(result.ranks(), ax, chosen, result.scratch, legend, caption)


KINDS: dict[str, Callable[..., Axes]] = {
    "curves": draw_curves,
    "area": draw_area,
    "cci": draw_cci,
    "ranks": draw_ranks,
    "equivalence": draw_equivalence,
}
"""What can be drawn of a measured transfer."""


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
        Methods in colour; the others are grey. By default all are in colour, of more than ten the
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
    one_of("kind", kind, tuple(KINDS))
    with style():
        chosen = choose_drawn(result, task, methods, highlight)
        if not chosen.methods and kind != "curves":
            raise InputError(
                f"kind={kind!r} has nothing to draw: there is no method beside {result.scratch!r}, "
                "which kind='curves' shows."
            )
        return KINDS[kind](result, ax, chosen, legend, caption)


# Calibrated risk against training size, between the controls.

RISK = "curvewise-risk"
BAND = "curvewise-band"
MOST_BANDS = 4
"""Coloured curves whose intervals are bands; those of more are bars."""

Y_LABEL = "calibrated risk"
X_LABEL = "training size $n$"


def curves_of(result: TransferResult, task: str, chosen: Chosen) -> list[RiskCurve]:
    """The curves of a task in the order of drawing, scratch on top."""
    found = {c.method: c for c in result.curves if c.task == task}
    order = [*chosen.back_first, result.scratch]
    return [found[m] for m in order if m in found]


def draw_risk(ax: Axes, curve: RiskCurve, look: Look, shift: float | None, scratch: bool) -> None:
    """One curve with dots at its sizes, and the intervals of its means.

    They are a band, or bars shifted by so many points. A method that stands back has none.
    """
    known = np.isfinite(curve.calibrated)
    n, risk, low, high = (v[known] for v in (curve.n, curve.calibrated, curve.low, curve.high))
    z = 2.6 if scratch else (1.5 if look.back else 2.0)
    if not look.back:
        if shift is None and np.isfinite(low + high).all() and len(n) > 1:
            band: dict[str, Any] = {"color": look.shade, "alpha": 0.16, "linewidth": 0.0}
            ax.fill_between(n, low, high, zorder=z - 0.5, gid=BAND, **band)
        else:
            interval_bars(ax, n, low, high, look.shade, shift or 0.0, z - 0.1)
    width = 2.4 if scratch else (1.0 if look.back else 1.6)
    dots: dict[str, Any] = {"marker": "o", "ms": 4.5 if scratch else 3.4, "mew": 0.0}
    ax.plot(n, risk, color=look.shade, lw=width, zorder=z, gid=RISK, label="_risk", **dots)


def end_of(curve: RiskCurve, look: Look, result: TransferResult) -> End:
    """Where the name of a curve belongs: at its largest size."""
    known = np.flatnonzero(np.isfinite(curve.calibrated))
    x, y = (curve.n[known[-1]], curve.calibrated[known[-1]]) if len(known) else (1.0, np.nan)
    scratch = curve.method == result.scratch
    return End(float(x), float(y), look.name, look.ink, look.back, scratch)


def write_names(axes: Sequence[Axes], ends: Sequence[Sequence[End]]) -> None:
    """Names beside the panels, or a legend where there is no room."""
    own = axes[0].get_gid() == OWN
    settle(axes[0], own)
    for ax, named in zip(axes, ends, strict=True):
        if names_fit(ax, own):
            name_ends(ax, named)
        else:
            legend_inside(ax, named[::-1])


def _sizes(curves: Sequence[RiskCurve]) -> FloatArray:
    return np.unique(np.concatenate([c.n for c in curves])) if curves else np.array([])


def _limits(curves: Sequence[RiskCurve], chosen: Chosen) -> tuple[float, float]:
    """Of calibrated risk: all means and both controls, and a little more for intervals."""
    front = [c for c in curves if not chosen.looks[c.method].back]
    means = [0.0, 1.0, *(v for c in curves for v in c.calibrated.tolist() if np.isfinite(v))]
    ends = np.array([v for c in front for v in (*c.low, *c.high) if np.isfinite(v)])
    low, high = min(means), max(means)
    room = 0.15 * (high - low)
    ends = np.clip(ends, low - room, high + room)
    low, high = min([low, *ends.tolist()]), max([high, *ends.tolist()])
    pad = 0.03 * (high - low)
    # The name of the blind guess stands above its line.
    return low - pad, max(high + pad, 1.0 + 0.07 * (high - low))


def _caption(
    result: TransferResult,
    chosen: Chosen,
    groups: Sequence[Sequence[RiskCurve]],
    bands: bool,
    limits: tuple[float, float],
) -> list[str]:
    said = "Calibrated risk: 1 is a blind guess, 0 maximal supervision."
    front = [c for curves in groups for c in curves if not chosen.looks[c.method].back]
    ends = [v for c in front for v in (*c.low, *c.high) if np.isfinite(v)]
    if ends:
        said += f" {'Bands' if bands else 'Bars'}: {100 * result.level:.4g}% intervals of the mean"
        cut = min(ends) < limits[0] or max(ends) > limits[1]
        said += "; some run out of the picture." if cut else "."
    return [said, chosen.note, *warned(result)]


# The paper's view: calibrated risk against that of scratch, with the area that the CCI counts.

GAIN = "curvewise-gain"
LOSS = "curvewise-loss"
WHOLE = "curvewise-whole"
PATH = "curvewise-path"
SIZE = "curvewise-size"
NAME = "curvewise-name"
MOST_SHADED = 3
"""Methods whose areas can be told apart."""


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
            ax.add_collection(PolyCollection(worse, hatch="////", zorder=1.0, gid=LOSS, lw=0.0, **hatched))
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
        ax.annotate(text, (0.03, 1.0), color=look.ink, fontsize=size, gid=NAME, linespacing=1.15, **place)
        down += 3.0


def _share(axes: Sequence[Axes], result: TransferResult, rows: Sequence[Improvement]) -> None:
    """The same limits in all panels: both controls and every dot."""
    xs = [v for row in rows for v in _scratch_at(result, row).tolist() if np.isfinite(v)]
    ys = [v for row in rows for v in (_scratch_at(result, row) - row.gain).tolist() if np.isfinite(v)]
    left, right = min([0.0, *xs]), max([1.0, *xs])
    low, high = min([0.0, *ys]), max([1.0, *ys])
    for ax in axes:
        ax.set_xlim(left - 0.03, right + 0.07)
        ax.set_ylim(low - 0.08, high + 0.08)


def _caption_transfer_area(result: TransferResult, groups: Sequence[Sequence[Improvement]]) -> list[str]:
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


def _with_scratch(result: TransferResult, rows: Sequence[Improvement]) -> list[tuple[Improvement, FloatArray]]:
    return [(row, _scratch_at(result, row)) for row in rows]


# How much each method improves on scratch: the CCI with its interval, task by task.

CCI = "curvewise-cci"
LIMIT = "curvewise-limit"
VALUE = "curvewise-value"
MOST_ROOM = 0.2
"""How far intervals widen the axis, as a share of what the estimates and limits span."""


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


def _limits_transfer_cci(rows: Sequence[Improvement]) -> tuple[float, float]:
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


def _caption_transfer_cci(result: TransferResult, chosen: Chosen, shown: int, total: int) -> list[str]:
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


# How many samples scratch needs to match a method, against how many the method had.

EQUIVALENT = "curvewise-equivalent"
BEYOND = "curvewise-beyond"
MEASURED = "curvewise-measured"
ROOM = 1.6
"""How far beyond the sizes measured the axis of equivalents goes, as a factor."""


def _drawn_transfer_equivalence(result: TransferResult, task: str, chosen: Chosen) -> list[Improvement]:
    found = {i.method: i for i in result.improvements if i.task == task and i.data_equivalence}
    return [found[m] for m in chosen.back_first if m in found]


def _sizes_transfer_equivalence(result: TransferResult, task: str, rows: Sequence[Improvement]) -> FloatArray:
    """Sizes of scratch, and of the methods."""
    scratch = [c.n for c in result.curves if c.task == task and c.method == result.scratch]
    mine = [np.array([e.n for e in row.data_equivalence]) for row in rows]
    return np.unique(np.concatenate([*scratch, *mine])) if scratch or mine else np.array([])


def _edges(sizes: FloatArray, rows: Sequence[Improvement], span: tuple[float, float]) -> tuple[float, float]:
    """Where arrows stand for what lies beyond: outside all sizes and all estimates."""
    if not len(sizes):
        return span
    known = np.concatenate([sizes, *(_values_transfer_equivalence(row)[0] for row in rows)])
    known = known[np.isfinite(known) & (known > 0)]
    return float(known.min()) / ROOM, float(known.max()) * ROOM


def _frame_transfer_equivalence(ax: Axes, span: tuple[float, float], sizes: FloatArray) -> None:
    """The diagonal of no gain, and where scratch was measured."""
    look: dict[str, Any] = {"color": SCRATCH, "lw": 2.0, "zorder": 1.2, "label": "_equal"}
    ax.plot(span, span, gid=DIAGONAL, **look)
    if len(sizes):
        fill: dict[str, Any] = {"color": "#8C8C8C", "alpha": 0.1, "linewidth": 0.0}
        top = float(sizes.max())
        ax.axhspan(top, top * 1e3, zorder=0.2, gid=MEASURED, **fill)
    ax.grid(alpha=0.25, linewidth=0.6)


def _row(ax: Axes, row: Improvement, look: Look, edges: tuple[float, float], shift: float | None) -> None:
    """Equivalents with intervals; triangles at the edge where they lie beyond the sizes."""
    n = np.array([e.n for e in row.data_equivalence])
    middle, low, high = _values_transfer_equivalence(row)
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


def _values_transfer_equivalence(row: Improvement) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Estimates and interval ends; infinite or 0 beyond the sizes of scratch."""
    return ends_of(e.equivalent for e in row.data_equivalence)


def _end(row: Improvement, look: Look, edges: tuple[float, float]) -> End:
    middle = np.clip(_values_transfer_equivalence(row)[0], *edges)
    known = np.flatnonzero(~np.isnan(middle))
    if not len(known):
        return End(1.0, np.nan, look.name, look.ink, look.back)
    at = int(known[-1])
    n = row.data_equivalence[at].n
    return End(n, float(middle[at]), look.name, look.ink, look.back)


def _caption_transfer_equivalence(
    result: TransferResult, chosen: Chosen, groups: Sequence[Sequence[Improvement]]
) -> list[str]:
    said = "Black: as many as the method had. Grey: more than was measured; triangles lie "
    said += "beyond."
    if any(np.isfinite(v).any() for rows in groups for r in rows for v in _values_transfer_equivalence(r)[1:]):
        said += f" Bars: {100 * result.level:.4g}% intervals."
    return [said, chosen.note, *warned(result)]


# How the ranking of methods changes with the training size.

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


def _draw(
    ranks: TransferRanks, ax: Axes | None, chosen: Chosen, scratch: str, legend: bool, caption: bool | None
) -> Axes:
    own = ax is None
    drawn = {*chosen.methods, scratch}
    groups = [[r for r in ranks.rows if r.task == t] for t in chosen.tasks]
    sizes = [_sizes_transfer_ranks(rows) for rows in groups]
    most = max((r.among for rows in groups for r in rows), default=1)
    longest = max((len(chosen.looks[m].name) for m in drawn), default=0)
    axes = _panels_transfer_ranks(ax, chosen.tasks, most, longest)
    ends: list[tuple[list[End], list[End]]] = []
    for panel, rows, n in zip(axes, groups, sizes, strict=True):
        kept = [r for r in rows if r.n in n]
        _others(panel, [r for r in kept if r.method not in drawn], n)
        paths = _paths([r for r in kept if r.method in drawn], chosen, scratch)
        for method, path in paths.items():
            _path_transfer_ranks(panel, path, n, chosen.looks[method], method == scratch)
        _finish(panel, n, max((r.among for r in rows), default=1))
        ends.append(_ends(paths, n, chosen, scratch))
    name_tasks(axes, chosen.tasks)
    write_words(axes, own, _caption_transfer_ranks(ranks, chosen, groups, sizes), caption)
    if legend:
        settle(axes[0], own)
        for panel, (first, last) in zip(axes, ends, strict=True):
            if names_fit(panel, own):
                name_ends(panel, first, "left")
                panel.tick_params(axis="y", labelleft=False)
            name_ends(panel, last)
    return axes[0]


def _panels_transfer_ranks(ax: Axes | None, tasks: Sequence[str], most: int, longest: int) -> list[Axes]:
    if ax is not None:
        return panels_of(ax, tasks)
    height, width = 1.3 + 0.23 * most, 3.6 + 0.15 * longest
    if len(tasks) == 1:
        return [new_axes(max(7.0, width + 1.0), height + 0.3)]
    axes = new_panels(len(tasks), 2, width, height)
    for panel in axes:
        panel.set_gid(OWN)
    return axes


def _sizes_transfer_ranks(rows: Sequence[MethodRank]) -> list[float]:
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


def _path_transfer_ranks(
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


def _caption_transfer_ranks(
    ranks: TransferRanks, chosen: Chosen, groups: Sequence[Sequence[MethodRank]], sizes: Sequence[Sequence[float]]
) -> list[str]:
    said = "Place by mean risk, 1 is the best. The fainter, the more places are possible at "
    said += f"{100 * ranks.level:.4g}%."
    lost = [n for rows, kept in zip(groups, sizes, strict=True) for n in sorted({r.n for r in rows} - set(kept))]
    if lost:
        many = sorted(set(lost))
        few = ", ".join(map(compact, many[:6])) + (" …" if len(many) > 6 else "")
        said += f" Left out: sizes that many methods lack ({few})."
    return [said, chosen.note, *warned(ranks)]
