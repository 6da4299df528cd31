"""Parts that pictures of transfer share: colours of methods, panels for tasks, axes, controls, names of curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from matplotlib.transforms import ScaledTranslation

from curvewise.drawing.axes import is_narrow, width_of
from curvewise.drawing.labels import clean, safe_names, shorten
from curvewise.drawing.marks import INTERVAL, beside, choose, choose_some, has_room
from curvewise.drawing.panels import new_panels, spread_out, write_below, write_end
from curvewise.drawing.style import NEUTRAL, OWN, PALETTE, colour, make_legend, new_axes, place_of, write_caption
from curvewise.errors import InputError
from curvewise.text import format_number
from curvewise.transfer.result import RiskCurve, TransferResult
from curvewise.types.results import FloatArray

SCRATCH = "black"  # colour of training from scratch
GREY = "#B4B4B4"  # methods that stand back
QUIET = "#7A7A7A"  # names of what stands back: legible where the line is pale
CROWD = len(PALETTE)  # with more methods than this, only the best are coloured: no two have one colour
NAMED_IN_CROWD = 5
LONGEST = 24  # characters of a name that are shown
MOST_IN_LEGEND = 10  # names in a legend among the data
TYPE_SIZES = (8.5, 7.5, 6.5)  # of names beside curves in points: the first that fits

CONTROL = "curvewise-control"
RISK = "curvewise-risk"
BAND = "curvewise-band"
Y_LABEL = "calibrated risk"
X_LABEL = "number of training samples"


@dataclass(frozen=True)
class MethodLook:
    """Colour and name of a method in pictures."""

    shade: str
    name: str
    back: bool = False

    @property
    def ink(self) -> str:
        """Colour of its name: legible where the line is pale."""
        return QUIET if self.back else self.shade


@dataclass(frozen=True, eq=False)
class DrawnMethods:
    """Tasks and methods to draw, with the look of each method in every panel."""

    tasks: tuple[str, ...]
    methods: tuple[str, ...]
    looks: Mapping[str, MethodLook]
    note: str = ""
    picked: bool = False
    quiet: bool = False  # methods that stand back have no names, since some were named to stand out

    def named(self, method: str) -> bool:
        """Tell whether the name of a method is written beside its curve."""
        return not (self.quiet and self.looks[method].back)

    @property
    def back_first(self) -> list[str]:
        """The methods in the order of drawing: those that stand back first."""
        return sorted(self.methods, key=lambda m: not self.looks[m].back)


def choose_drawn(
    result: TransferResult,
    task: str | Sequence[str] | None,
    methods: str | Sequence[str] | None,
    highlight: str | Sequence[str] | None,
) -> DrawnMethods:
    """Choose tasks and methods, and their colours: the same in all panels and pictures."""
    tasks = choose_some("task", task, result.tasks)
    # The best of each task must be among the coloured, though it may be poor on others.
    ahead = {m for t in result.tasks for m in by_improvement(result, result.methods, [t])[:1]}
    order = sorted(by_improvement(result, result.methods), key=lambda m: m not in ahead)
    front = min(max(NAMED_IN_CROWD, len(ahead)), CROWD)
    own = (result.methods, result.scratch)
    chosen = choose_methods(*own, tasks, methods, highlight, order, front)
    if chosen.note and methods is None and len(result.tasks) > 1 and len(ahead) <= CROWD:
        return replace(chosen, note=f"{chosen.note[:-1]}, the best of each task among them.")
    return chosen


def choose_methods(
    known: Sequence[str],
    scratch: str,
    tasks: tuple[str, ...],
    methods: str | Sequence[str] | None,
    highlight: str | Sequence[str] | None,
    order: Sequence[str],
    front: int = NAMED_IN_CROWD,
) -> DrawnMethods:
    """Choose methods and their colours; of a crowd the first in ``order``, ``front`` of them, have one."""
    every = (*known, scratch)
    drawn = tuple(m for m in choose_some("methods", methods, every) if m != scratch)
    names = dict(zip(every, safe_names(every, LONGEST), strict=True))
    few, note, coloured = len(known) <= CROWD, "", list(drawn)
    if highlight is not None:
        wanted = [highlight] if isinstance(highlight, str) else list(highlight)
        named = [choose("highlight", name, every) for name in dict.fromkeys(wanted)]
        coloured = [m for m in named if m in drawn]
    elif len(drawn) > CROWD:
        coloured = [m for m in order if m in drawn][:front]
        note = f"In colour: the best {len(coloured)} of {len(drawn)} methods."
    # Of a few methods each has its colour, whichever are drawn.
    shades = {m: colour(place_of(m, list(known).index(m) if few else i)) for i, m in enumerate(coloured)}
    looks = {m: MethodLook(shades.get(m, GREY), names[m], m not in shades) for m in drawn}
    looks[scratch] = MethodLook(SCRATCH, names[scratch])
    picked = methods is not None or highlight is not None
    return DrawnMethods(tasks, drawn, looks, note, picked, highlight is not None)


def by_improvement(result: TransferResult, methods: Sequence[str], tasks: Sequence[str] | None = None) -> list[str]:
    """Sort methods from the highest CCI to the lowest, over tasks each less its mean."""
    kept = [i for i in result.improvements if tasks is None or i.task in tasks]
    score: dict[str, list[float]] = {m: [] for m in methods}
    for task in dict.fromkeys(i.task for i in kept):
        here = {i.method: i.cci.estimate for i in kept if i.task == task}
        known = [v for v in here.values() if math.isfinite(v)]
        for m in methods:
            if math.isfinite(here.get(m, math.nan)):
                score[m].append(here[m] - float(np.mean(known)))
    return sorted(methods, key=lambda m: -float(np.mean(score[m])) if score[m] else math.inf)


def panels_of(
    ax: Axes | None,
    tasks: Sequence[str],
    alone: tuple[float, float] = (7.0, 4.6),
    each: tuple[float, float] = (4.6, 4.4),
    columns: int | None = None,
) -> list[Axes]:
    """Return the Axes given, or new ones: one for each task, in lines of about the same length.

    Parameters
    ----------
    ax : Axes, optional
        Of the user, for one task.
    tasks : sequence of str
        A panel for each.
    alone, each : tuple of float
        Width and height in inches of a single panel, and of one of several in two columns; of three, narrower.
    columns : int, optional
        By default 2 or 3.
    """
    if ax is not None:
        if len(tasks) > 1:
            raise InputError(
                f"ax is one Axes, and there are {len(tasks)} tasks: choose one with task=, or leave ax out."
            )
        return [ax]
    if len(tasks) == 1:
        return [new_axes(*alone)]
    columns = columns or (2 if len(tasks) in (2, 4) else 3)
    return new_panels(len(tasks), columns, each[0] - 0.7 * (columns == 3), each[1])


def name_tasks(axes: Sequence[Axes], tasks: Sequence[str], pad: float = 6.0) -> None:
    """Write the task over each of several panels."""
    if len(axes) > 1:
        for ax, text in zip(axes, safe_names(tasks, 34), strict=True):
            ax.set_title(text, loc="left", fontsize=10.5, pad=pad)


def finish_panels(
    axes: Sequence[Axes],
    own: bool,
    tasks: Sequence[str],
    labels: tuple[str, str],
    lines: Sequence[str],
    caption: bool | None,
    ends: Sequence[Sequence[CurveEnd]] | None = None,
) -> Axes:
    """Write tasks over panels, labels of axes, the caption and the names of curves; return the first panel."""
    name_tasks(axes, tasks)
    lefts = [spec.colspan.start for ax in axes if (spec := ax.get_subplotspec())]
    for ax in axes:
        spec = ax.get_subplotspec()
        ax.set_xlabel(labels[0])
        if spec is None or spec.colspan.start == min(lefts):  # at the left of each line of panels
            ax.set_ylabel(labels[1])
    write_words(axes, own, lines, caption)
    if ends is not None:  # names beside the panels, or a legend where there is no room
        settle(axes[0])
        for ax, named in zip(axes, ends, strict=True):
            if has_room(ax, axes[0].get_gid() == OWN):
                name_ends(ax, named)
            elif kept := [end for end in named[::-1] if not end.back][:MOST_IN_LEGEND]:
                handles = [Line2D([], [], color=e.shade, lw=2.2 if e.bold else 1.6) for e in kept]
                size = 7.0 if is_narrow(ax) else 8.0
                box = make_legend(ax, handles, [e.text for e in kept], outside=False, fontsize=size)
                box.get_frame().set(alpha=0.85, linewidth=0.0)
    return axes[0]


def write_words(axes: Sequence[Axes], own: bool, lines: Sequence[str], caption: bool | None) -> None:
    """Write a caption under the only panel, or under all of them; by default where there is room."""
    kept = [line for line in lines if line]
    if not kept or not (has_room(axes[0], own) if caption is None else caption):
        return
    if len(axes) > 1 or own:
        write_below(axes[0], kept)
    else:
        write_caption(axes[0], kept)


def caption_name(name: str) -> str:
    """Shorten a name within a caption, which is made safe as a whole."""
    return shorten(clean(name), LONGEST)


def room_for_controls(low: float, high: float) -> tuple[float, float]:
    """Widen a range of calibrated risk so that the names of the controls fit outside their lines."""
    span = high - low
    return min(low - 0.03 * span, -0.07 * span), max(high + 0.03 * span, 1.0 + 0.07 * span)


def others_of(result: TransferResult, tasks: Sequence[str]) -> tuple[str, ...]:
    """Return the beginnings of warnings about tasks that are not drawn."""
    return tuple(f"{t}: " for t in result.tasks if t not in tasks)


def size_limits(groups: Sequence[FloatArray]) -> list[tuple[float, float]]:
    """Return limits of size axes: shared, unless a panel would fill less than half of its width."""
    ends = [(float(n.min()), float(n.max())) for n in groups]
    low, high = min(a for a, _ in ends), max(b for _, b in ends)
    whole = math.log(high / low)  # sizes are drawn on a log axis
    if all(math.log(b / a) >= 0.5 * whole for a, b in ends):
        ends = [(low, high)] * len(ends)
    pads = [(b / a) ** 0.04 if b > a else 2.0 for a, b in ends]
    return [(a / pad, b * pad) for (a, b), pad in zip(ends, pads, strict=True)]


def size_axis(ax: Axes, sizes: FloatArray, limits: tuple[float, float], which: str = "x") -> None:
    """Make a log axis of training sizes, with ticks at those measured that leave room for labels."""
    axis = ax.xaxis if which == "x" else ax.yaxis
    ax.set(**{f"{which}scale": "log", f"{which}lim": limits})
    inches = width_of(ax) / math.log(limits[1] / limits[0])
    ticks = np.unique(sizes[(sizes >= limits[0]) & (sizes <= limits[1])])
    axis.set_major_locator(FixedLocator(thin(ticks, inches if which == "x" else 1.6 * inches)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda n, _: compact(n)))


def thin(ticks: FloatArray, inches: float) -> list[float]:
    """Choose sizes whose labels do not touch: both ends, then powers of ten, then the largest."""
    if not len(ticks):
        return []
    decades = [t for t in ticks if math.isclose(math.log10(t) % 1, 0.0, abs_tol=1e-9)]
    kept: list[float] = []
    for t in [ticks[-1], ticks[0], *decades[::-1], *ticks[::-1]]:
        room = 0.08 * len(compact(float(t))) + 0.14
        if all(abs(math.log(t / k)) * inches >= room for k in kept):
            kept.append(float(t))
    return sorted(kept)


def compact(n: float) -> str:
    """Write a training size as texts do, and from a million on in three digits and a letter.

    >>> compact(100.0), compact(1024.0), compact(31250.0), compact(1e6), compact(0.5)
    ('100', '1,024', '31,250', '1M', '0.5')
    """
    for scale, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if n >= 0.9995 * scale:
            return f"{n / scale:.3g}{letter}"
    return format_number(n)


def risk_limits(curves: Sequence[RiskCurve], ends: Sequence[float]) -> tuple[float, float]:
    """Return a range of calibrated risk: all means and both controls, and a little more for ends of intervals."""
    means = [0.0, 1.0, *(v for c in curves for v in c.calibrated.tolist())]
    low, high = min(means), max(means)
    room = 0.15 * (high - low)
    seen = np.clip([low, high, *ends], low - room, high + room)
    return float(seen.min()), float(seen.max())


def control_lines(
    ax: Axes, maximal: str = "maximal supervision", swapped: bool = False, blind: str = "blind guess"
) -> None:
    """Draw the two controls as lines at 1 and 0 of calibrated risk, with their names; ``swapped`` to the other side."""
    for at, text, x in ((1.0, blind, 0.985), (0.0, maximal, 0.015)):
        ax.axhline(at, color=NEUTRAL, linewidth=1.0, linestyle="--", zorder=0.8, gid=CONTROL, label="_c")
        place = (1.0 - x if swapped else x, at)
        shift, va = (-2.5, "top") if at == 0 else (2.5, "bottom")  # outside, where hardly a curve is
        side = "right" if place[0] > 0.5 else "left"
        beside(ax, text, place, (0.0, shift), xycoords=ax.get_yaxis_transform(), ha=side, va=va, gid=CONTROL)


def draw_curve(ax: Axes, curve: RiskCurve, look: MethodLook, shift: float | None, scratch: bool) -> None:
    """Draw one curve with dots at its sizes, and the intervals of its means.

    They are a band, or bars shifted by so many points. A method that stands back has none.
    """
    n, low, high = curve.n, curve.low, curve.high
    z = 2.6 if scratch else (1.5 if look.back else 2.0)
    if not look.back:
        if shift is None and np.isfinite(low + high).all() and len(n) > 1:
            band: dict[str, Any] = {"color": look.shade, "alpha": 0.16, "linewidth": 0.0}
            ax.fill_between(n, low, high, zorder=z - 0.5, gid=BAND, **band)
        else:
            interval_bars(ax, n, low, high, look.shade, shift or 0.0, z - 0.1)
    width = 2.4 if scratch else (1.0 if look.back else 1.6)
    dots: dict[str, Any] = {"marker": "o", "ms": 4.5 if scratch else 3.4, "mew": 0.0}
    ax.plot(n, curve.calibrated, color=look.shade, lw=width, zorder=z, gid=RISK, label="_risk", **dots)


def interval_bars(
    ax: Axes, n: FloatArray, low: FloatArray, high: FloatArray, shade: str, shift: float, z: float, width: float = 1.1
) -> None:
    """Draw bars of intervals, shifted by points so that those of several methods stand side by side."""
    known = ~np.isnan(low) & ~np.isnan(high)
    figure = ax.get_figure(root=True)
    if figure is None or not known.any():
        return
    aside = ax.transData + ScaledTranslation(shift / 72, 0.0, figure.dpi_scale_trans)
    pairs = np.stack([np.column_stack([n, low]), np.column_stack([n, high])], axis=1)[known]
    lines = LineCollection(list(pairs), colors=shade, linewidths=width, alpha=0.75, zorder=z, transform=aside)
    lines.set_gid(INTERVAL)
    ax.add_collection(lines, autolim=False)


def shifts(chosen: DrawnMethods, methods: Sequence[str]) -> dict[str, float]:
    """Return the points by which intervals of methods in colour stand aside; those of scratch do not.

    ``methods`` may hold scratch, which is none of the methods chosen.
    """
    front = [m for m in methods if m in chosen.methods and not chosen.looks[m].back]
    step = min(2.2, 9.0 / max(len(front), 1))
    aside = {m: step * (i // 2 + 1) * (-1.0 if i % 2 == 0 else 1.0) for i, m in enumerate(front)}
    return aside | {m: 0.0 for m in methods if m not in chosen.methods}


def paths_of(rows: Sequence[Any], chosen: DrawnMethods, scratch: str) -> dict[str, list[Any]]:
    """Group rows with a method and a size by method, from small to large, in the order of drawing: scratch on top."""
    order = [*chosen.back_first, scratch]
    found = {m: sorted((r for r in rows if r.method == m), key=lambda r: r.n) for m in order}
    return {m: path for m, path in found.items() if path}


@dataclass(frozen=True)
class CurveEnd:
    """CurveEnd of a curve, and the name beside it in safe text."""

    x: float
    y: float
    text: str
    shade: str
    back: bool = False
    bold: bool = False


def end_at(n: FloatArray, y: FloatArray, look: MethodLook, bold: bool = False) -> CurveEnd:
    """Place the name of a curve at its largest size with a value; NaN where there is none."""
    known = np.flatnonzero(~np.isnan(y))
    at = (float(n[known[-1]]), float(y[known[-1]])) if len(known) else (1.0, math.nan)
    return CurveEnd(*at, look.name, look.ink, look.back, bold)


def settle(ax: Axes) -> None:
    """Lay out a figure of ours, so that heights are known."""
    figure = ax.get_figure(root=True)
    if ax.get_gid() == OWN and figure is not None:
        figure.draw_without_rendering()


def name_ends(ax: Axes, ends: Sequence[CurveEnd], side: str = "right") -> None:
    """Write names beside the Axes at the heights where curves end.

    Where not all fit, those that stand back have none. The limits of the Axes must be final.
    """
    kept = [end for end in ends if np.isfinite(end.y)]
    if not kept:
        return
    figure = ax.get_figure(root=True)
    tall = ax.get_window_extent().height * 72 / (100.0 if figure is None else float(figure.dpi))
    row = 1.28 * max(end.text.count("\n") + 1 for end in kept)
    size = next((s for s in TYPE_SIZES if len(kept) * row * s <= tall), TYPE_SIZES[-1])
    most = max(1, int(tall / (row * size)))
    if len(kept) > most:
        kept = sorted(kept, key=lambda end: (not end.bold, end.back))[:most]
    # Heights as shares of the Axes, in which names are moved apart.
    wanted = ax.transAxes.inverted().transform(ax.transData.transform([(end.x, end.y) for end in kept]))[:, 1]
    places = spread_out(np.clip(wanted, 0.0, 1.0), min(row * size / tall, 1.0))
    for end, place in zip(kept, places, strict=True):
        aside = (1.03 if side == "right" else -0.03, float(place))
        line = {"alpha": 0.4 if end.back else 0.7, "zorder": 1.0}
        weight = "bold" if end.bold else "normal"
        write_end(ax, (end.x, end.y), end.text, aside, end.shade, line, fontsize=size, fontweight=weight)
