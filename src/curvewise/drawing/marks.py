"""Marks that pictures share: interval bars, reference lines, notes among the data, legends and captions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation
from matplotlib.ticker import AutoLocator, MaxNLocator
from numpy.typing import ArrayLike

from curvewise.drawing.axes import is_narrow
from curvewise.drawing.labels import clean, safe_text, shorten
from curvewise.drawing.style import NEUTRAL, make_legend, word_shade, write_caption
from curvewise.errors import InputError, arg, list_names, suggest
from curvewise.text import format_number
from curvewise.types.results import FloatArray, Interval

INTERVAL = "curvewise-interval"
CUT = "curvewise-cut"
DIAGONAL = "curvewise-diagonal"
ZERO = "curvewise-zero"
MARK = "curvewise-mark"
"""Group ids of the artists."""

LONGEST_WARNING = 240
"""Characters of a warning in a caption."""


def digits(value: float) -> str:
    """A number in three digits, zeros at the end included.

    >>> digits(0.2), digits(1.0), digits(12345.6), digits(0.0)
    ('0.200', '1.00', '12,350', '0')
    """
    if value == 0 or not 1e-4 <= abs(value) < 1000:
        return format_number(value)
    return f"{value:#.3g}".rstrip(".")


def choose(name: str, value: Any, known: Sequence[str]) -> str:
    """Return an option, or raise unless it is one of a few words."""
    if value not in known:
        problem = f"{arg(name, value)} is not known: use one of {list_names(known)}.{suggest(value, known)}"
        raise InputError(problem)
    return str(value)


def choose_some(name: str, value: str | Sequence[str] | None, known: Sequence[str]) -> tuple[str, ...]:
    """Return some of the words known, each once; all of them if None."""
    if value is None:
        return tuple(known)
    wanted = [value] if isinstance(value, str) else list(value)
    if not wanted:
        raise InputError(f"is empty: use some of {list_names(known)}.", argument=name)
    return tuple(dict.fromkeys(choose(name, each, known) for each in wanted))


def ends_of(intervals: Iterable[Interval]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return estimates, lows and highs as arrays."""
    rows = [(i.estimate, i.low, i.high) for i in intervals]
    table = np.array(rows, dtype=np.float64).reshape(len(rows), 3)
    return table[:, 0], table[:, 1], table[:, 2]


def finish(
    ax: Axes,
    own: bool,
    key: Sequence[tuple[Any, str]],
    lines: Sequence[str],
    *,
    legend: bool = True,
    caption: bool | None = None,
    columns: int = 1,
    loc: str | None = None,
    indent: float = 0.0,
) -> None:
    """Legend and caption: under the x label of our own figure, the legend inside other Axes.

    By default a caption is written only where there is room for it: in our own figure,
    and under Axes that are not narrow and that a layout engine moves out of the way.
    """
    if is_narrow(ax) and isinstance(ax.xaxis.get_major_locator(), AutoLocator):
        ax.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
    box = None
    if caption is None:
        caption = has_room(ax, own)
    if legend and key:
        handles, labels = zip(*key, strict=True)
        # Among the data: opaque, without a frame, smaller in narrow Axes.
        small = {"fontsize": 7.0, "handlelength": 1.6, "handletextpad": 0.5, "columnspacing": 0.9}
        look = small if is_narrow(ax) and not own else {}
        box = make_legend(ax, handles, map(plain, labels), outside=own, columns=columns, indent=indent, **look)
        if not own:
            if loc is not None:
                box.set_loc(cast("Any", loc))
            box.get_frame().set(alpha=1.0, linewidth=0.0)
            box.set_in_layout(False)  # a layout would shrink the Axes for a legend that is wider
    if caption:
        write_caption(ax, lines, under=box if own else None, indent=indent)


def has_room(ax: Axes, own: bool) -> bool:
    """Tell whether text may stand beside or below the Axes: in a figure of ours, or where a layout makes room."""
    figure = ax.get_figure(root=True)
    moved = figure is not None and figure.get_layout_engine() is not None
    return own or (moved and not is_narrow(ax))


def plain(text: str) -> str:
    """A line of a legend or a label of ours, in glyphs that the font has; never cut, and safe names in it stay."""
    return safe_text(text.replace(r"\$", "$"), 400)


def warned(result: Any, most: int = 1, but: tuple[str, ...] = ()) -> list[str]:
    """Return the first warnings of a result for a caption: whole sentences, or whole words at least.

    Warnings that begin with one of ``but``, such as the name of a task that is not drawn, are left out.
    """
    found = [clean(w) for w in result.warnings if not w.startswith(but)]
    notes = [f"⚠ {_first_sentences(text)}" for text in found[:most]]
    left = len(found) - most
    return notes if left <= 0 or not notes else [*notes[:-1], f"{notes[-1]} ({left} more)"]


def _first_sentences(text: str) -> str:
    """Cut a long text after a sentence, else after a word."""
    if len(text) <= LONGEST_WARNING:
        return text
    end = text.rfind(". ", 0, LONGEST_WARNING)
    words = text[: LONGEST_WARNING - 1].rsplit(" ", 1)[0]
    if end > 0:
        return text[: end + 1]
    # One endless word loses its middle.
    return f"{words.rstrip(' ,;:')} …" if len(words) < LONGEST_WARNING - 1 else shorten(text, LONGEST_WARNING)


def diagonal(ax: Axes, low: float, high: float) -> Any:
    """Draw the line on which both axes have the same value."""
    (line,) = ax.plot(
        [low, high], [low, high], color=NEUTRAL, linewidth=1.0, linestyle="--", zorder=1.2, gid=DIAGONAL, label="_equal"
    )
    return line


def zero_line(ax: Axes, at: float = 0.0, horizontal: bool = False) -> None:
    """A thin line where nothing differs."""
    draw = ax.axhline if horizontal else ax.axvline
    draw(at, color=NEUTRAL, linewidth=0.9, zorder=0.8, gid=ZERO, label="_zero")


def note(ax: Axes, text: str, xy: tuple[float, float], **options: Any) -> Annotation:
    """Write small text among the data."""
    # An outline in the colour of the background keeps it legible.
    outline = [withStroke(linewidth=3.0, foreground=rcParams["axes.facecolor"])]
    given: dict[str, Any] = {"fontsize": 8.0, "zorder": 5.0, "path_effects": outline, "gid": MARK} | options
    if isinstance(given.get("color"), str):
        given["color"] = word_shade(given["color"])
    return ax.annotate(plain(text), xy, **given)


def beside(ax: Axes, text: str, xy: tuple[float, float], away: tuple[float, float], **options: Any) -> None:
    """Write a quiet note so many points away from a place among the data."""
    note(ax, text, xy, **({"xytext": away, "textcoords": "offset points", "color": "#6E6E6E"} | options))


def mark_value(
    ax: Axes, x: float, text: str, ls: str = ":", *, bottom: bool = False, right: bool = False, gid: str = MARK
) -> None:
    """Draw a thin vertical line with its text along it, at the top or the bottom, left or right of the line."""
    ax.axvline(x, color=NEUTRAL, linewidth=0.9, linestyle=ls, zorder=0.6, gid=gid, label="_line")
    note(
        ax,
        text,
        (x, 0.015 if bottom else 0.985),
        xycoords=ax.get_xaxis_transform(),
        xytext=(2.5 if right else -2.5, 0.0),
        textcoords="offset points",
        rotation=90,
        ha="left" if right else "right",
        va="bottom" if bottom else "top",
        color="#6E6E6E",
        gid=gid,
    )


def bars(
    ax: Axes,
    place: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    shade: str,
    *,
    limits: tuple[float, float],
    horizontal: bool = False,
    width: float = 1.5,
) -> None:
    """Interval bars within limits, with arrowheads where an end lies outside; unknown ones not."""
    at, lows, highs = (np.asarray(v, dtype=np.float64) for v in (place, low, high))
    # An unknown interval is not drawn at all: a bar to the edge would say that it has no end.
    known = ~(np.isnan(lows) | np.isnan(highs))
    at, lows, highs = at[known], lows[known], highs[known]
    draw = ax.hlines if horizontal else ax.vlines
    draw(at, *np.clip([lows, highs], *limits), color=shade, linewidth=width, gid=INTERVAL)
    heads = ("<", ">") if horizontal else ("v", "^")
    outside = lows < limits[0], highs > limits[1]
    for cut, edge, marker in zip(outside, limits, heads, strict=True):
        if cut.any():
            edges = np.full(int(cut.sum()), edge)
            x, y = (edges, at[cut]) if horizontal else (at[cut], edges)
            style: dict[str, Any] = {"linestyle": "none", "marker": marker, "markersize": 5.0, "color": shade}
            ax.plot(x, y, clip_on=False, gid=CUT, label="_cut", **style)


def draw_estimates(
    ax: Axes,
    place: ArrayLike,
    ends: Sequence[ArrayLike],
    shades: str | Sequence[str],
    *,
    limits: tuple[float, float],
    gid: str,
    horizontal: bool = True,
    marker: str = "o",
    size: float = 5.5,
    width: float = 1.5,
) -> None:
    """Draw dots with their interval bars: estimate, low and high of each place, in one colour or one for each."""
    at, estimate, low, high = (np.asarray(values, dtype=np.float64) for values in (place, *ends))
    every = [shades] * len(at) if isinstance(shades, str) else list(shades)
    for shade in dict.fromkeys(every):
        part = np.flatnonzero([s == shade for s in every])
        bars(ax, at[part], low[part], high[part], shade, limits=limits, horizontal=horizontal, width=width)
        if np.isfinite(estimate[part]).any():
            x, y = (estimate[part], at[part]) if horizontal else (at[part], estimate[part])
            ax.plot(x, y, marker, color=shade, ms=size, gid=gid, label="_estimate", zorder=3.0)


def key_dot(shade: str, marker: str = "o", size: float = 5.0, line: Any = "none", **options: Any) -> Line2D:
    """Make a dot for a legend, on a line if one is given."""
    return Line2D([], [], color=shade, marker=marker, ms=size, ls=line, **options)
