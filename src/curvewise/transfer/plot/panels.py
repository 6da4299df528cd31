"""What pictures of transfer share: who gets which colour, panels for tasks, axes, controls."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from matplotlib.transforms import ScaledTranslation

from curvewise.drawing.axes import is_narrow, width_of
from curvewise.drawing.labels import clean, safe_names, shorten
from curvewise.drawing.marks import INTERVAL, note
from curvewise.drawing.panels import new_panels, spread_out, write_below
from curvewise.drawing.style import NEUTRAL, OWN, colour, make_legend, new_axes, write_caption
from curvewise.errors import InputError
from curvewise.transfer.result import TransferResult
from curvewise.types.units import FloatArray

SCRATCH = "black"
"""Colour of training from scratch."""

GREY = "#B4B4B4"
"""Methods that stand back."""

CROWD = 10
"""With more methods than this, only the best are coloured."""

NAMED_IN_CROWD = 5
LONGEST_WARNING = 240
"""Characters of a warning in a caption."""

LONGEST = 24
"""Characters of a name that are shown."""


@dataclass(frozen=True)
class Look:
    """How a method is drawn."""

    shade: str
    name: str
    back: bool = False

    @property
    def ink(self) -> str:
        """Colour of its name: legible where the line is pale."""
        return "#7A7A7A" if self.back else self.shade


@dataclass(frozen=True, eq=False)
class Chosen:
    """Tasks and methods to draw, and how each method looks in every panel."""

    tasks: tuple[str, ...]
    methods: tuple[str, ...]
    looks: Mapping[str, Look]
    note: str = ""
    picked: bool = False
    quiet: bool = False
    """Whether methods that stand back have no names: some were named to stand out."""

    def named(self, method: str) -> bool:
        """Whether the name of a method is written beside its curve."""
        return not (self.quiet and self.looks[method].back)

    @property
    def back_first(self) -> list[str]:
        """The methods in the order of drawing: those that stand back first."""
        return sorted(self.methods, key=lambda m: not self.looks[m].back)


def one_of(argument: str, value: Any, known: Sequence[str]) -> str:
    """A word that must be one of a few; a near miss is told which was meant.

    >>> one_of("kind", "cci", ("curves", "cci"))
    'cci'
    """
    if value in known:
        return str(value)
    near = get_close_matches(str(value), known, n=1)
    meant = f"did you mean {near[0]!r}? There are" if near else "use one of"
    few = ", ".join(map(repr, known[:20])) + (", …" if len(known) > 20 else "")
    raise InputError(f"{argument}={value!r} is not known: {meant} {few}.")


def several_of(argument: str, value: str | Sequence[str] | None, known: Sequence[str]) -> tuple[str, ...]:
    """Some names, each once; all of them if None."""
    if value is None:
        return tuple(known)
    wanted = [value] if isinstance(value, str) else list(value)
    found = tuple(dict.fromkeys(one_of(argument, name, known) for name in wanted))
    if not found:
        raise InputError(f"{argument} is empty: use some of {', '.join(map(repr, known))}.")
    return found


def choose_drawn(
    result: TransferResult,
    task: str | Sequence[str] | None,
    methods: str | Sequence[str] | None,
    highlight: str | Sequence[str] | None,
) -> Chosen:
    """Which tasks and methods, and their colours: the same in all panels and pictures."""
    tasks = several_of("task", task, result.tasks)
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
) -> Chosen:
    """Methods and their colours; of a crowd the first in ``order``, ``front`` of them, have one."""
    every = (*known, scratch)
    drawn = tuple(m for m in several_of("methods", methods, every) if m != scratch)
    names = dict(zip(every, safe_names(every, LONGEST), strict=True))
    shades, said = _shades(known, every, drawn, highlight, [m for m in order if m in drawn][:front])
    looks = {m: Look(shades.get(m, GREY), names[m], m not in shades) for m in drawn}
    looks[scratch] = Look(SCRATCH, names[scratch])
    picked = methods is not None or highlight is not None
    return Chosen(tasks, drawn, looks, said, picked, highlight is not None)


def _shades(
    known: Sequence[str],
    every: Sequence[str],
    drawn: Sequence[str],
    highlight: str | Sequence[str] | None,
    best: Sequence[str],
) -> tuple[dict[str, str], str]:
    """Colours of the methods that have one, and why only some do: of a crowd the best."""
    if highlight is not None:
        wanted = [highlight] if isinstance(highlight, str) else list(highlight)
        named = [one_of("highlight", name, every) for name in dict.fromkeys(wanted)]
        front = [m for m in named if m in drawn]
        few = len(known) <= CROWD
        return {m: colour(list(known).index(m) if few else i) for i, m in enumerate(front)}, ""
    if len(known) <= CROWD:
        return {m: colour(list(known).index(m)) for m in drawn}, ""
    if len(drawn) <= CROWD:
        return {m: colour(i) for i, m in enumerate(drawn)}, ""
    said = f"In colour: the best {len(best)} of {len(drawn)} methods."
    return {m: colour(i) for i, m in enumerate(best)}, said


def by_improvement(result: TransferResult, methods: Sequence[str], tasks: Sequence[str] | None = None) -> list[str]:
    """Methods from the highest CCI to the lowest, over tasks each less its mean."""
    kept = [i for i in result.improvements if tasks is None or i.task in tasks]
    score: dict[str, list[float]] = {m: [] for m in methods}
    for task in dict.fromkeys(i.task for i in kept):
        here = {i.method: i.cci.estimate for i in kept if i.task == task}
        known = [v for v in here.values() if math.isfinite(v)]
        for m in methods:
            if math.isfinite(here.get(m, math.nan)):
                score[m].append(here[m] - float(np.mean(known)))
    return sorted(methods, key=lambda m: -float(np.mean(score[m])) if score[m] else math.inf)


def panels_of(ax: Axes | None, tasks: Sequence[str], alone: tuple[float, float] = (7.0, 4.6)) -> list[Axes]:
    """The Axes given, or new ones: one for each task, in lines of about the same length."""
    if ax is not None:
        if len(tasks) > 1:
            raise InputError(
                f"ax is one Axes, and there are {len(tasks)} tasks: choose one with task=, or leave ax out."
            )
        return [ax]
    if len(tasks) == 1:
        return [new_axes(*alone)]
    columns = 2 if len(tasks) in (2, 4) else 3
    axes = new_panels(len(tasks), columns, 3.9 if columns == 3 else 4.6, 4.4)
    for panel in axes:
        panel.set_gid(OWN)
    return axes


def name_tasks(axes: Sequence[Axes], tasks: Sequence[str], pad: float = 6.0) -> None:
    """The task over each of several panels."""
    if len(axes) > 1:
        for ax, text in zip(axes, safe_names(tasks, 34), strict=True):
            ax.set_title(text, loc="left", fontsize=10.5, pad=pad)


def shifts(chosen: Chosen, methods: Sequence[str]) -> dict[str, float]:
    """Points by which intervals of methods in colour stand aside; those of scratch do not.

    ``methods`` may hold scratch, which is none of the methods chosen.
    """
    front = [m for m in methods if m in chosen.methods and not chosen.looks[m].back]
    step = min(2.2, 9.0 / max(len(front), 1))
    aside = {m: step * (i // 2 + 1) * (-1.0 if i % 2 == 0 else 1.0) for i, m in enumerate(front)}
    return aside | {m: 0.0 for m in methods if m not in chosen.methods}


def draws_caption(ax: Axes, own: bool, caption: bool | None) -> bool:
    """Whether to write a caption: in figures of ours, and where a layout makes room for it."""
    if caption is not None:
        return caption
    figure = ax.get_figure(root=True)
    moved = figure is not None and figure.get_layout_engine() is not None
    return own or (moved and not is_narrow(ax))


def write_words(axes: Sequence[Axes], own: bool, lines: Sequence[str], caption: bool | None) -> None:
    """A caption under the only panel, or under all of them."""
    kept = [line for line in lines if line]
    if not kept or not draws_caption(axes[0], own, caption):
        return
    if len(axes) > 1 or own:
        write_below(axes[0], kept)
    else:
        write_caption(axes[0], kept)


def warned(result: Any) -> list[str]:
    """The first warning of a result for a caption: whole sentences, or whole words at least."""
    if not result.warnings:
        return []
    left = len(result.warnings) - 1
    more = f" ({left} more)" if left else ""
    return [f"⚠ {in_words(clean(result.warnings[0]), LONGEST_WARNING)}{more}"]


def in_words(text: str, longest: int) -> str:
    """Text that ends after a sentence or, if the first is too long, after a word.

    >>> in_words("One is here. Two is not.", 16), in_words("one, two, three", 11)
    ('One is here.', 'one, two …')
    """
    if len(text) <= longest:
        return text
    at = text.rfind(". ", 0, longest)
    if at > 0:
        return text[: at + 1]
    kept = text[: longest - 1].rsplit(" ", 1)[0]
    return f"{kept.rstrip(' ,;:')} …" if len(kept) < longest - 1 else shorten(text, longest)


def spoken(name: str) -> str:
    """A name within a caption, which is made safe as a whole."""
    return shorten(clean(name), LONGEST)


# Axes of pictures of transfer: training sizes, controls as lines, intervals side by side.

CONTROL = "curvewise-control"


def outer_labels(axes: Sequence[Axes], x: str, y: str) -> None:
    """Labels at the left of each line of panels and under all."""
    lefts = {ax.get_subplotspec().colspan.start for ax in axes if ax.get_subplotspec()}  # type: ignore[union-attr]
    for ax in axes:
        spec = ax.get_subplotspec()
        ax.set_xlabel(x)
        if spec is None or spec.colspan.start == min(lefts):
            ax.set_ylabel(y)


def share_limits(axes: Sequence[Axes], low: float, high: float) -> None:
    """The same values on the y axis of all panels."""
    for ax in axes:
        ax.set_ylim(low, high)


def size_limits(groups: Sequence[FloatArray]) -> list[tuple[float, float]]:
    """Limits of size axes: shared, unless a panel would fill less than half of its width."""
    ends = [(float(n.min()), float(n.max())) if len(n) else (1.0, 10.0) for n in groups]
    low, high = min(a for a, _ in ends), max(b for _, b in ends)
    whole = math.log(high / low)
    if all(math.log(b / a) >= 0.5 * whole for a, b in ends):
        ends = [(low, high)] * len(ends)
    return [_padded(a, b) for a, b in ends]


def _padded(low: float, high: float) -> tuple[float, float]:
    pad = (high / low) ** 0.04 if high > low else 2.0
    return low / pad, high * pad


def size_axis(ax: Axes, sizes: FloatArray, limits: tuple[float, float], which: str = "x") -> None:
    """A log axis of training sizes, with ticks at those measured that leave room for labels."""
    axis = ax.xaxis if which == "x" else ax.yaxis
    (ax.set_xscale if which == "x" else ax.set_yscale)("log")
    (ax.set_xlim if which == "x" else ax.set_ylim)(*limits)
    inches = width_of(ax) / math.log(limits[1] / limits[0])
    ticks = np.unique(sizes[(sizes >= limits[0]) & (sizes <= limits[1])])
    axis.set_major_locator(FixedLocator(thin(ticks, inches if which == "x" else 1.6 * inches)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda n, _: compact(n)))


def thin(ticks: FloatArray, inches: float) -> list[float]:
    """Sizes whose labels do not touch: both ends, then powers of ten, then the largest."""
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
    """A training size in three digits, or four where it has no more: 100, 1024, 31.2K, 1M.

    >>> compact(100.0), compact(1024.0), compact(31250.0), compact(1e6), compact(0.5)
    ('100', '1024', '31.2K', '1M', '0.5')
    """
    if 1000 < n < 1e4 and n % 10 and float(n).is_integer():
        return f"{n:.0f}"
    for scale, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "K")):
        if n >= 0.9995 * scale:
            return f"{n / scale:.3g}{letter}"
    return f"{n:.3g}"


def control_lines(ax: Axes, blind: str = "blind guess", maximal: str = "maximal supervision") -> None:
    """The two controls as lines at 1 and 0 of calibrated risk, with their names."""
    for at, text, x, side in ((1.0, blind, 0.985, "right"), (0.0, maximal, 0.015, "left")):
        ax.axhline(at, color=NEUTRAL, linewidth=1.0, linestyle="--", zorder=0.8, gid=CONTROL, label="_c")
        note(
            ax,
            text,
            (x, at),
            xycoords=ax.get_yaxis_transform(),
            xytext=(0.0, 2.5),
            textcoords="offset points",
            ha=side,
            va="bottom",
            fontsize=8.0,
            color="#6E6E6E",
            gid=CONTROL,
        )


def interval_bars(
    ax: Axes, n: FloatArray, low: FloatArray, high: FloatArray, shade: str, shift: float, z: float, width: float = 1.1
) -> None:
    """Bars of intervals, shifted by points so that those of several methods stand side by side."""
    known = ~np.isnan(low) & ~np.isnan(high)
    figure = ax.get_figure(root=True)
    if figure is None or not known.any():
        return
    aside = ax.transData + ScaledTranslation(shift / 72, 0.0, figure.dpi_scale_trans)
    pairs = np.stack([np.column_stack([n, low]), np.column_stack([n, high])], axis=1)[known]
    lines = LineCollection(list(pairs), colors=shade, linewidths=width, alpha=0.75, zorder=z, transform=aside)
    lines.set_gid(INTERVAL)
    ax.add_collection(lines, autolim=False)


# Names at the ends of curves, moved apart where they would touch, or a legend.

END = "curvewise-end"
SIZES = (8.5, 7.5, 6.5)
"""Of type in points: the first that fits."""


@dataclass(frozen=True)
class End:
    """The end of a curve, and what is written beside it in safe text."""

    x: float
    y: float
    text: str
    shade: str
    back: bool = False
    bold: bool = False


def settle(ax: Axes, own: bool) -> None:
    """Lay out a figure of ours, so that heights are known."""
    figure = ax.get_figure(root=True)
    if own and figure is not None:
        figure.draw_without_rendering()


def name_ends(ax: Axes, ends: Sequence[End], side: str = "right") -> None:
    """Write names beside the Axes at the heights where curves end.

    Where not all fit, those that stand back have none. The limits of the Axes must be final.
    """
    kept = [end for end in ends if np.isfinite(end.y)]
    if not kept:
        return
    tall = ax.get_window_extent().height * 72 / _dpi(ax)
    row = 1.28 * max(end.text.count("\n") + 1 for end in kept)
    size = next((s for s in SIZES if len(kept) * row * s <= tall), SIZES[-1])
    most = max(1, int(tall / (row * size)))
    if len(kept) > most:
        kept = sorted(kept, key=lambda end: (not end.bold, end.back))[:most]
    wanted = ax.transAxes.inverted().transform(ax.transData.transform([(end.x, end.y) for end in kept]))[:, 1]
    places = spread_out(np.clip(wanted, 0.0, 1.0), min(row * size / tall, 1.0))
    for end, place in zip(kept, places, strict=True):
        _write(ax, end, float(place), size, side)


def _write(ax: Axes, end: End, place: float, size: float, side: str) -> None:
    """One name, with a thin line to the end of its curve."""
    right = side == "right"
    line: dict[str, Any] = {"arrowstyle": "-", "color": end.shade, "linewidth": 0.6}
    line["alpha"] = 0.4 if end.back else 0.7
    ax.annotate(
        end.text,
        xy=(end.x, end.y),
        xytext=(1.03 if right else -0.03, place),
        textcoords="axes fraction",
        va="center",
        ha="left" if right else "right",
        fontsize=size,
        fontweight="bold" if end.bold else "normal",
        color=end.shade,
        annotation_clip=False,
        gid=END,
        arrowprops=line | {"shrinkA": 1.0, "shrinkB": 2.0, "relpos": (0.0 if right else 1.0, 0.5), "zorder": 1.0},
    )


def _dpi(ax: Axes) -> float:
    figure = ax.get_figure(root=True)
    return 100.0 if figure is None else float(figure.dpi)


def names_fit(ax: Axes, own: bool) -> bool:
    """Whether names may stand beside the Axes: a layout makes room, and there is some."""
    figure = ax.get_figure(root=True)
    moved = figure is not None and figure.get_layout_engine() is not None
    return own or (moved and not is_narrow(ax))


def legend_inside(ax: Axes, ends: Sequence[End], most: int = 10) -> None:
    """A legend among the data, of those that do not stand back."""
    kept = [end for end in ends if not end.back][:most]
    if not kept:
        return
    handles = [Line2D([], [], color=e.shade, lw=2.2 if e.bold else 1.6) for e in kept]
    box = make_legend(ax, handles, [e.text for e in kept], outside=False)
    small = is_narrow(ax)
    for text in box.get_texts():
        text.set_fontsize(7.0 if small else 8.0)
    box.get_frame().set(alpha=0.85, linewidth=0.0)
