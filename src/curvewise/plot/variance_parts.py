"""What pictures of the variance between runs share: units, intervals, legends, captions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation
from matplotlib.ticker import AutoLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator
from numpy.typing import ArrayLike

from curvewise.errors import InputError
from curvewise.plot.style import NEUTRAL, colour, make_legend, write_caption
from curvewise.plot.text import clean, safe_text, shorten
from curvewise.tables import number
from curvewise.types import FloatArray, Interval

INTERVAL = "curvewise-interval"
CUT = "curvewise-cut"
DIAGONAL = "curvewise-diagonal"
ZERO = "curvewise-zero"
MARK = "curvewise-mark"
"""Group ids of the artists."""

NARROW = 4.0
"""Inches of Axes below which a legend inside them is set smaller."""


@dataclass(frozen=True)
class Measure:
    """Errors as percentages; losses and scores as they are."""

    unit: str

    @property
    def bounded(self) -> bool:
        """Whether values are errors."""
        return self.unit in ("fraction", "percent")

    def of(self, values: ArrayLike) -> FloatArray:
        """Values as they are drawn."""
        return np.asarray(values, dtype=np.float64) * (100.0 if self.unit == "fraction" else 1.0)

    def interval(self, interval: Interval) -> tuple[float, float, float]:
        """Estimate, low and high as they are drawn."""
        estimate, low, high = self.of([interval.estimate, interval.low, interval.high]).tolist()
        return estimate, low, high

    def label(self, text: str) -> str:
        """Axis label: "test error" becomes "test error (%)", "test loss", "negative score"."""
        if self.bounded:
            return f"{text} (%)"
        if self.unit == "score":
            return text.replace("test error", "error").replace("error", "negative score")
        return text.replace("error", "loss")

    def said(self, value: float) -> str:
        """A value with its unit, in three digits."""
        return f"{digits(float(self.of(value)))}{'%' if self.bounded else ''}"

    def told(self, interval: Interval) -> str:
        """An estimate with its limits in brackets."""
        low, high = self.said(interval.low), self.said(interval.high)
        return f"{self.said(interval.estimate)} [{low}, {high}]"


def digits(value: float) -> str:
    """A number in three digits, zeros at the end included.

    >>> digits(0.2), digits(1.0), digits(12345.6), digits(0.0)
    ('0.200', '1.00', '12,350', '0')
    """
    if value == 0 or not 1e-4 <= abs(value) < 1000:
        return number(value)
    return f"{value:#.3g}".rstrip(".")


def choose(name: str, value: str, known: Sequence[str]) -> str:
    """An option that must be one of a few words."""
    if value not in known:
        raise InputError(
            f"{name}={value!r} is not known: use one of {', '.join(map(repr, known))}."
        )
    return value


def ends_of(intervals: Iterable[Interval]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Estimates, lows and highs."""
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

    Where nobody asked, a caption is written only where there is room for it: in our own figure,
    and under Axes that are not narrow and that a layout engine moves out of the way.
    """
    if is_narrow(ax) and isinstance(ax.xaxis.get_major_locator(), AutoLocator):
        ax.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
    box = None
    if caption is None:
        figure = ax.get_figure(root=True)
        caption = own or (
            figure is not None and figure.get_layout_engine() is not None and not is_narrow(ax)
        )
    if legend and key:
        handles, labels = zip(*key, strict=True)
        box = make_legend(ax, handles, map(plain, labels), outside=own, columns=columns)
        if not own:
            _fit(ax, box, loc)
    if caption:
        write_caption(ax, lines, under=box if own else None, indent=indent)


def _fit(ax: Axes, box: Any, loc: str | None) -> None:
    if loc is not None:
        box.set_loc(loc)
    frame = box.get_frame()
    frame.set_alpha(0.75)
    frame.set_linewidth(0.0)
    if is_narrow(ax):
        for text in box.get_texts():
            text.set_fontsize(7.0)
        for handle in box.legend_handles:
            if isinstance(handle, Line2D):
                handle.set_xdata(np.linspace(0, 18, len(np.asarray(handle.get_xdata()))))


def plain(text: str) -> str:
    """A line of a legend or a label of ours, in glyphs that the font has; never cut."""
    return safe_text(text, 400)


def width_of(ax: Axes) -> float:
    """Width of the Axes in inches."""
    figure = ax.get_figure(root=True)
    return 7.0 if figure is None else ax.get_position().width * float(figure.get_size_inches()[0])


def is_narrow(ax: Axes) -> bool:
    """Whether the Axes are one of several, or in a column of a paper."""
    return width_of(ax) < NARROW


def warned(result: Any, most: int = 1) -> list[str]:
    """The first warnings of a result, for a caption."""
    notes = [f"⚠ {shorten(clean(w), 200)}" for w in result.warnings[:most]]
    left = len(result.warnings) - most
    return notes if left <= 0 or not notes else [*notes[:-1], f"{notes[-1]} ({left} more)"]


def diagonal(ax: Axes, low: float, high: float) -> Any:
    """Where both axes say the same."""
    (line,) = ax.plot(
        [low, high],
        [low, high],
        color=NEUTRAL,
        linewidth=1.0,
        linestyle="--",
        zorder=1.2,
        gid=DIAGONAL,
        label="_equal",
    )
    return line


def zero_line(ax: Axes, at: float = 0.0, horizontal: bool = False) -> None:
    """A thin line where nothing differs."""
    draw = ax.axhline if horizontal else ax.axvline
    draw(at, color=NEUTRAL, linewidth=0.9, zorder=0.8, gid=ZERO, label="_zero")


def halo() -> list[Any]:
    """What keeps text among data legible."""
    return [withStroke(linewidth=3.0, foreground=rcParams["axes.facecolor"])]


def note(ax: Axes, text: str, xy: tuple[float, float], **options: Any) -> Annotation:
    """Small text among the data."""
    given = {"fontsize": 8.0, "zorder": 5.0, "path_effects": halo(), "gid": MARK} | options
    return ax.annotate(plain(text), xy, **given)


def mark_value(ax: Axes, x: float, text: str, ls: str = ":") -> None:
    """A thin vertical line with its text along it, at the top."""
    ax.axvline(x, color=NEUTRAL, linewidth=0.9, linestyle=ls, zorder=0.6, gid=MARK, label="_line")
    note(
        ax,
        text,
        (x, 0.985),
        xycoords=ax.get_xaxis_transform(),
        xytext=(-2.5, 0.0),
        textcoords="offset points",
        rotation=90,
        ha="right",
        va="top",
        color="#6E6E6E",
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
            style = {"linestyle": "none", "marker": marker, "markersize": 5.0, "color": shade}
            ax.plot(x, y, clip_on=False, gid=CUT, label="_cut", **style)


def view(
    estimate: ArrayLike, low: ArrayLike, high: ArrayLike, *also: float, floor: float = -np.inf
) -> tuple[float, float]:
    """Limits of an axis: all estimates, and interval ends within a few spreads of them."""
    middle, lows, highs = (np.ravel(np.asarray(v, dtype=np.float64)) for v in (estimate, low, high))
    known = np.concatenate([middle[np.isfinite(middle)], np.asarray(also, dtype=np.float64)])
    if len(known) == 0:
        return 0.0, 1.0
    with np.errstate(invalid="ignore"):
        widths = np.abs(np.concatenate([highs - middle, middle - lows]))
    usual = float(np.median(widths[np.isfinite(widths)])) if np.isfinite(widths).any() else 0.0
    span = max(float(np.ptp(known)), 3.0 * usual, 1e-9 + 0.02 * float(np.abs(known).max()))
    ends = np.concatenate([lows, highs])
    ends = np.clip(ends[np.isfinite(ends)], known.min() - span, known.max() + span)
    left, right = min(known.min(), *ends, np.inf), max(known.max(), *ends, -np.inf)
    pad = 0.05 * max(right - left, 0.1 * span)
    return float(max(left - pad, floor)), float(right + pad)


def rows_of(ax: Axes, names: Sequence[str], room: bool = False) -> None:
    """Names of rows at the left of a forest plot, the first on top; room for a legend below."""
    ax.set_yticks(np.arange(len(names)), labels=list(names))
    ax.set_ylim(len(names) - 0.4 + (0.18 * len(names) if room else 0.0), -0.6)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", alpha=0.25, linewidth=0.6)
    if is_narrow(ax):
        ax.tick_params(axis="y", labelsize=8.0)


def raise_top(ax: Axes, rows: int) -> None:
    """Leave room for a legend of so many rows above the data."""
    low, high = ax.get_ylim()
    share = 0.03 + rows * (0.1 if is_narrow(ax) else 0.065)
    ax.set_ylim(low, low + (high - low) / (1 - share))


def spans_decades(values: ArrayLike, ratio: float = 10.0) -> bool:
    """Whether a log scale shows these better."""
    array = np.asarray(values, dtype=np.float64)
    return bool(len(array) and (array > 0).all() and array.max() >= ratio * array.min())


def log_sizes(ax: Axes, ticks: Sequence[float] | None = None) -> None:
    """A log x axis in plain numbers; with ticks, at those that leave room for their labels."""
    ax.set_xscale("log")
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: safe_text(number(x, 3))))
    if ticks is None:
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=9))
    else:
        ax.set_xticks(thinned(ax, ticks))


def thinned(ax: Axes, ticks: Sequence[float]) -> list[float]:
    """Ticks that stand far enough apart for their labels: both ends first, then large ones."""
    places = ax.transScale.transform([(t, 1.0) for t in ticks])[:, 0]
    left, right = (float(ax.transScale.transform((x, 1.0))[0]) for x in (min(ticks), max(ticks)))
    inch = width_of(ax) / max(right - left, 1e-12)
    kept: list[int] = []
    order = np.argsort(-places, kind="stable").tolist()
    for i in [*order[:1], *order[-1:], *order[1:-1]]:
        size = 0.085 * len(number(ticks[i], 3)) + 0.12
        if all(abs(places[i] - places[k]) * inch >= size for k in kept):
            kept.append(i)
    return sorted(float(ticks[i]) for i in kept)


SERIES = {"test set": colour(0), "independent": colour(1), "distribution": colour(2)}
"""The three standard deviations have the same colours in every picture."""
