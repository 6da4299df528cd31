"""Pictures of a measured transfer: one entrance, several kinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.ticker import MaxNLocator

from curvewise.drawing.axes import is_narrow, rows_of, rows_that_fit, view, width_of
from curvewise.drawing.marks import DIAGONAL, bars, ends_of, note
from curvewise.drawing.panels import signed, told
from curvewise.drawing.style import NEUTRAL, OWN, colour, style
from curvewise.errors import InputError
from curvewise.text import arg
from curvewise.transfer.plot.comparison import draw_ranks
from curvewise.transfer.plot.panels import (
    CONTROL,
    SCRATCH,
    X_LABEL,
    Y_LABEL,
    CurveEnd,
    DrawnMethods,
    MethodLook,
    by_improvement,
    caption_name,
    choose_drawn,
    compact,
    control_lines,
    draw_curve,
    end_at,
    has_room,
    interval_bars,
    name_tasks,
    one_of,
    outer_labels,
    panels_of,
    shifts,
    size_axis,
    size_limits,
    warned,
    write_names,
    write_words,
)
from curvewise.transfer.result import Improvement, RiskCurve, TransferResult
from curvewise.types.units import FloatArray

MOST_BANDS = 4  # coloured curves whose intervals are bands; those of more are bars
MOST_SHADED = 3  # methods whose areas can be distinguished
MOST_ROOM = 0.2  # how far intervals of CCI widen the axis, as a share of what the estimates and limits span
ROOM = 1.6  # factor between the sizes and the triangles that stand for values beyond them

GAIN = "curvewise-gain"
LOSS = "curvewise-loss"
WHOLE = "curvewise-whole"
PATH = "curvewise-path"
SIZE = "curvewise-size"
NAME = "curvewise-name"
CCI = "curvewise-cci"
LIMIT = "curvewise-limit"
VALUE = "curvewise-value"
EQUIVALENT = "curvewise-equivalent"
BEYOND = "curvewise-beyond"
MEASURED = "curvewise-measured"


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
    sizes = [np.unique(np.concatenate([c.n for c in curves])) if curves else np.array([]) for curves in groups]
    limits = size_limits(sizes)
    for panel, task, curves, n, span in zip(axes, chosen.tasks, groups, sizes, limits, strict=True):
        maximal = result.maximal.get(task)
        assumed = maximal is not None and maximal.assumed
        control_lines(panel, maximal="maximal supervision" + " (assumed)" * assumed)
        aside = shifts(chosen, [c.method for c in curves])
        for curve in curves:
            look, scratch = chosen.looks[curve.method], curve.method == result.scratch
            draw_curve(panel, curve, look, None if few else aside.get(curve.method), scratch)
        size_axis(panel, n, span)
    low, high = _risk_limits([curve for curves in groups for curve in curves], chosen)
    for panel in axes:
        panel.set_ylim(low, high)
    name_tasks(axes, chosen.tasks)
    outer_labels(axes, X_LABEL, Y_LABEL)
    write_words(axes, own, _curves_caption(result, chosen, groups, few, (low, high)), caption)
    if legend:
        named = [[c for c in curves if chosen.named(c.method)] for curves in groups]
        ends = [
            [end_at(c.n, c.calibrated, chosen.looks[c.method], c.method == result.scratch) for c in curves]
            for curves in named
        ]
        write_names(axes, ends)
    return axes[0]


def _risk_limits(curves: Sequence[RiskCurve], chosen: DrawnMethods) -> tuple[float, float]:
    """Return limits of calibrated risk: all means and both controls, and a little more for intervals."""
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


def _curves_caption(
    result: TransferResult,
    chosen: DrawnMethods,
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


def draw_area(
    result: TransferResult, ax: Axes | None, chosen: DrawnMethods, legend: bool, caption: bool | None
) -> Axes:
    """Draw a panel for each task: scratch is the diagonal, what lies under it is gained."""
    own = ax is None
    axes = panels_of(ax, chosen.tasks, alone=(5.6, 4.8))
    groups = [_shaded(result, task, chosen) for task in chosen.tasks]
    looks = _area_looks([row.method for rows in groups for row in rows], chosen)
    for panel, rows in zip(axes, groups, strict=True):
        _area_frame(panel, result, rows)
        shaded = len(rows) <= MOST_SHADED
        for k, row in enumerate(rows):
            x = _scratch_at(result, row)
            # The better, the lower: what a method gains beyond the others is seen.
            z = (1.0 - 0.1 * k) if shaded else None
            _area_path(panel, x, x - row.gain, looks[row.method], z)
        if rows and width_of(panel) > 2.0:
            _mark_sizes(panel, rows[-1].n, _scratch_at(result, rows[-1]), rows[-1].gain)
        if legend:
            _area_names(panel, rows[::-1], looks)
    # The same limits in all panels: both controls and every dot.
    dots = [(x, x - row.gain) for rows in groups for row in rows for x in [_scratch_at(result, row)]]
    xs, ys = (np.concatenate([[0.0, 1.0], *values]) for values in (zip(*dots, strict=True) if dots else ([], [])))
    for panel in axes:
        panel.set_xlim(np.nanmin(xs) - 0.03, np.nanmax(xs) + 0.07)
        panel.set_ylim(np.nanmin(ys) - 0.08, np.nanmax(ys) + 0.08)
    name_tasks(axes, chosen.tasks)
    scratch = chosen.looks[result.scratch].name
    outer_labels(axes, f"calibrated risk of {scratch}", "calibrated risk of the method")
    write_words(axes, own, _area_caption(result, groups), caption)
    return axes[0]


def _area_looks(methods: Sequence[str], chosen: DrawnMethods) -> dict[str, MethodLook]:
    """Colour the best methods of tasks, also where they are not among the best of all."""
    drawn = list(dict.fromkeys(methods))
    if chosen.picked or not any(chosen.looks[m].back for m in drawn):
        return {m: chosen.looks[m] for m in drawn}
    back = [m for m in drawn if chosen.looks[m].back]
    free = len(chosen.looks) - 1 - sum(look.back for look in chosen.looks.values())
    late = {m: MethodLook(colour(free + i), chosen.looks[m].name) for i, m in enumerate(back)}
    return {m: late.get(m, chosen.looks[m]) for m in drawn}


def _shaded(result: TransferResult, task: str, chosen: DrawnMethods) -> list[Improvement]:
    """Return the methods of a task to shade: those in colour, or the best if none was chosen."""
    found = {i.method: i for i in result.improvements if i.task == task and len(i.n)}
    there = [m for m in chosen.methods if m in found]
    if len(there) > MOST_SHADED:
        front = [m for m in there if not chosen.looks[m].back]
        best = by_improvement(result, there, [task])[:1]
        there = front if chosen.picked and front else best
    return [found[m] for m in by_improvement(result, there, [task])[::-1]]


def _scratch_at(result: TransferResult, row: Improvement) -> FloatArray:
    """Return the calibrated risk of scratch at the sizes of an improvement."""
    curve = next(c for c in result.curves if c.task == row.task and c.method == result.scratch)
    where = np.searchsorted(curve.n, row.n)
    risk: FloatArray = curve.calibrated[where]
    return risk


def _area_frame(ax: Axes, result: TransferResult, rows: Sequence[Improvement]) -> None:
    """Draw the diagonal that is scratch, both controls, and the whole area that could be gained."""
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


def _area_path(ax: Axes, x: FloatArray, y: FloatArray, look: MethodLook, z: float | None) -> None:
    """Draw a method from size to size, and the area between it and scratch at height z."""
    if z is not None:
        better, worse = pieces(x, y)
        # Opaque and pale: areas that mix would have the colour of no method.
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
    """Cut the area between a path and the diagonal into what the CCI counts as gain and as loss.

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
    """Return the corners of a path, with those where it crosses the diagonal."""
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
    """Write the sizes beside the dots of a path, where they do not touch."""
    last = np.inf
    for size, at, below in zip(n.tolist(), x.tolist(), gain.tolist(), strict=True):
        if not np.isfinite(at + below) or last - at < 0.075:
            continue
        last = at
        look: dict[str, Any] = {"ha": "left", "va": "top", "gid": SIZE}
        look |= {"xytext": (3.0, -2.5), "textcoords": "offset points", "path_effects": None}
        note(ax, compact(size), (at, at - below), fontsize=7.5, color="#555555", **look)


def _area_names(ax: Axes, rows: Sequence[Improvement], looks: dict[str, MethodLook]) -> None:
    """Write methods with their CCI above the diagonal, where there is nothing else."""
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


def _area_caption(result: TransferResult, groups: Sequence[Sequence[Improvement]]) -> list[str]:
    black = f"Black: {caption_name(result.scratch)}."
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
    if any(pieces(x, x - r.gain)[1] for rows in groups for r in rows for x in [_scratch_at(result, r)]):
        lines[0] += " Hatched: lost."
    return [*lines, *warned(result)]


# The CCI of each method with its interval, task by task.


def draw_cci(result: TransferResult, ax: Axes | None, chosen: DrawnMethods, legend: bool, caption: bool | None) -> Axes:
    """Draw a row for each method, a panel for each task; the same order in all."""
    own = ax is None
    order = by_improvement(result, chosen.methods, chosen.tasks)
    total = len(order)
    if ax is not None:
        order = order[: rows_that_fit(ax)]
    height = 1.4 + 0.235 * len(order)
    axes = panels_of(ax, chosen.tasks, (7.0, height + 0.3), (4.4, height))
    found = {(i.task, i.method): i for i in result.improvements}
    limits = _cci_limits([i for i in found.values() if i.task in chosen.tasks and i.method in order])
    for k, (panel, task) in enumerate(zip(axes, chosen.tasks, strict=True)):
        _controls(panel, chosen.looks[result.scratch].name if legend else None)
        rows = [found.get((task, m)) for m in order]
        lacking = [_lacking(result, task, m) for m in order]
        _cci_rows(panel, rows, [chosen.looks[m].shade for m in order], limits, lacking)
        spec = panel.get_subplotspec()
        leftmost = k == 0 or spec is None or spec.colspan.start == 0
        texts = [chosen.looks[m].name for m in order]
        rows_of(panel, texts if leftmost else [""] * len(order))
        panel.set_xlim(*limits)
        panel.set_xlabel("CCI")
        panel.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
        if own or (has_room(panel, own) if caption is None else caption):
            _values(panel, rows)
    name_tasks(axes, chosen.tasks, pad=16.0 if legend else 6.0)
    write_words(axes, own, _cci_caption(result, chosen, len(order), total), caption)
    return axes[0]


def _cci_limits(rows: Sequence[Improvement]) -> tuple[float, float]:
    """Return limits with all estimates, 0 and 1, and intervals as far as they do not squeeze those."""
    middle, low, high = ends_of(i.cci for i in rows)
    known = [0.0, 1.0, *middle[np.isfinite(middle)].tolist()]
    room = MOST_ROOM * (max(known) - min(known))
    low, high = (np.clip(end, min(known) - room, max(known) + room) for end in (low, high))
    return view(middle, low, high, 0.0, 1.0)


def _lacking(result: TransferResult, task: str, method: str) -> str:
    """Say why a method has no value on a task."""
    sizes = {c.method: c.n for c in result.curves if c.task == task}
    if method not in sizes or not len(sizes[method]):
        return "not measured"
    shared = np.intersect1d(sizes[method], sizes[result.scratch])
    return ("no shared size", "one shared size")[len(shared)] if len(shared) < 2 else "unknown"


def _controls(ax: Axes, scratch: str | None) -> None:
    """Draw scratch at 0 and maximal supervision at 1."""
    for at, text in ((0.0, scratch), (1.0, "maximal")):
        ax.axvline(at, color=NEUTRAL, lw=1.0, ls="--", zorder=0.8, gid=LIMIT, label="_limit")
        if scratch is not None and text is not None:
            place: dict[str, Any] = {"xycoords": ax.get_xaxis_transform(), "ha": "center"}
            place |= {"xytext": (0.0, 2.0), "textcoords": "offset points", "va": "bottom"}
            look: dict[str, Any] = {"fontsize": 7.5, "color": "#6E6E6E", "gid": LIMIT}
            ax.annotate(text, (at, 1.0), **look, **place)


def _cci_rows(
    ax: Axes,
    rows: Sequence[Improvement | None],
    shades: Sequence[str],
    limits: tuple[float, float],
    lacking: Sequence[str],
) -> None:
    """Draw a dot with its interval, dashed if that is borrowed; hollow if it is not significant."""
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
        face: dict[str, Any] = {"mfc": shade if row.significant else "white", "mec": shade, "mew": 1.3}
        ax.plot([value], [float(y)], "o", ms=6.0, gid=CCI, label="_cci", zorder=2.5, **face)


def _values(ax: Axes, rows: Sequence[Improvement | None]) -> None:
    """Write the numbers in a column at the right."""
    place: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "gid": VALUE}
    for y, row in enumerate(rows):
        if row is not None and np.isfinite(row.cci.estimate):
            text = signed(round(row.cci.estimate, 2) + 0.0, 2)
            ax.text(1.015, y, text, fontsize=8.0, va="center", **place)


def _cci_caption(result: TransferResult, chosen: DrawnMethods, shown: int, total: int) -> list[str]:
    said = f"Calibrated cumulative improvement: 0 is no better than {caption_name(result.scratch)}, 1 "
    said += "maximal supervision at every size."
    order = ["Ordered by how far above the mean of a task a method is, averaged over its tasks."]
    order = order if len(chosen.tasks) > 1 else []
    if shown < total:
        order.append(f"The best {shown} of {total} methods.")
    return [said, _cci_bars(result), " ".join([*order, chosen.note]).strip(), *warned(result)]


def _cci_bars(result: TransferResult) -> str:
    """Explain intervals and filled dots for a caption."""
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
    return f"{said}. Filled: differs from {caption_name(result.scratch)}{after}."


# The samples that scratch needs to match a method, against those that the method had.


def draw_equivalence(
    result: TransferResult, ax: Axes | None, chosen: DrawnMethods, legend: bool, caption: bool | None
) -> Axes:
    """Draw a panel for each task; on the diagonal nothing is gained."""
    own = ax is None
    groups, sizes = [], []
    for task in chosen.tasks:
        found = {i.method: i for i in result.improvements if i.task == task and i.data_equivalence}
        groups.append([found[m] for m in chosen.back_first if m in found])
        scratch = [c.n for c in result.curves if c.task == task and c.method == result.scratch]
        sizes.append(np.unique(np.concatenate([*scratch, *([e.n for e in r.data_equivalence] for r in groups[-1])])))
    if not any(groups):
        raise InputError(
            "has nothing to draw: no method has a data equivalence, which needs two sizes of scratch at which its risk "
            "differs.",
            argument="kind",
            value="equivalence",
        )
    axes = panels_of(ax, chosen.tasks)
    limits = size_limits(sizes)
    ends: list[list[CurveEnd]] = []
    for panel, rows, n, span in zip(axes, groups, sizes, limits, strict=True):
        edges = _edges(n, rows, span)
        _equivalence_frame(panel, span, n)
        aside = shifts(chosen, [row.method for row in rows])
        for row in rows:
            _equivalence_row(panel, row, chosen.looks[row.method], edges, aside.get(row.method))
        size_axis(panel, n, span)
        size_axis(panel, n, (min(span[0], edges[0] / 1.15), max(span[1], edges[1] * 1.15)), "y")
        named = [row for row in rows if chosen.named(row.method)]
        ends.append([end_at(*_equivalents(row, edges), chosen.looks[row.method]) for row in named])
    name_tasks(axes, chosen.tasks)
    start = chosen.looks[result.scratch].name
    outer_labels(axes, "training size $n$ of the method", f"training size that {start} needs")
    write_words(axes, own, _equivalence_caption(result, chosen, groups), caption)
    if legend:
        write_names(axes, ends)
    return axes[0]


def _edges(sizes: FloatArray, rows: Sequence[Improvement], span: tuple[float, float]) -> tuple[float, float]:
    """Return where triangles stand for values beyond: outside all sizes and all estimates."""
    if not len(sizes):
        return span
    known = np.concatenate([sizes, *(ends_of(e.equivalent for e in row.data_equivalence)[0] for row in rows)])
    known = known[np.isfinite(known) & (known > 0)]
    return float(known.min()) / ROOM, float(known.max()) * ROOM


def _equivalence_frame(ax: Axes, span: tuple[float, float], sizes: FloatArray) -> None:
    """Draw the diagonal of no gain, and shade what lies beyond the sizes of scratch."""
    look: dict[str, Any] = {"color": SCRATCH, "lw": 2.0, "zorder": 1.2, "label": "_equal"}
    ax.plot(span, span, gid=DIAGONAL, **look)
    if len(sizes):
        fill: dict[str, Any] = {"color": "#8C8C8C", "alpha": 0.1, "linewidth": 0.0}
        top = float(sizes.max())
        ax.axhspan(top, top * 1e3, zorder=0.2, gid=MEASURED, **fill)
    ax.grid(alpha=0.25, linewidth=0.6)


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
            ax.plot(n[beyond], at[beyond], marker=marker, ms=6.5, gid=BEYOND, **dots)


def _equivalence_caption(
    result: TransferResult, chosen: DrawnMethods, groups: Sequence[Sequence[Improvement]]
) -> list[str]:
    said = "Black: as many as the method had. Grey: more than was measured; triangles lie "
    said += "beyond."
    intervals = [e.equivalent for rows in groups for row in rows for e in row.data_equivalence]
    if np.isfinite(ends_of(intervals)[1:]).any():
        said += f" Bars: {100 * result.level:.4g}% intervals."
    return [said, chosen.note, *warned(result)]


KINDS: dict[str, Callable[..., Axes]] = {
    "curves": draw_curves,
    "area": draw_area,
    "cci": draw_cci,
    "ranks": draw_ranks,
    "equivalence": draw_equivalence,
}
