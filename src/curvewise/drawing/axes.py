"""Axes: limits, ticks, the room there is, and scales of training sizes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator
from numpy.typing import ArrayLike

from curvewise.drawing.labels import safe_text
from curvewise.drawing.style import as_percent
from curvewise.errors import InputError, arg, list_names
from curvewise.text import format_number
from curvewise.types.results import FloatArray, Unit

NARROW = 4.0
"""Inches of Axes below which type is set smaller, and less is said."""

_STEPS = ((1.0, 1.5, 2.0, 3.0, 5.0, 7.0), (1.0, 2.0, 5.0), (1.0, 3.0))


def width_of(ax: Axes) -> float:
    """Width of the Axes in inches."""
    figure = ax.get_figure(root=True)
    return 7.0 if figure is None else ax.get_position().width * float(figure.get_size_inches()[0])


def is_narrow(ax: Axes) -> bool:
    """Return True for Axes that are one of several, or in a column of a paper."""
    return width_of(ax) < NARROW


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
    # One interval without end, or one hopeless run, must not shrink all others to a point.
    usual = float(np.median(widths[np.isfinite(widths)])) if np.isfinite(widths).any() else 0.0
    span = max(float(np.ptp(known)), 3.0 * usual, 1e-9 + 0.02 * float(np.abs(known).max()))
    ends = np.concatenate([lows, highs])
    ends = np.clip(ends[np.isfinite(ends)], known.min() - span, known.max() + span)
    left, right = min(known.min(), *ends, np.inf), max(known.max(), *ends, -np.inf)
    pad = 0.05 * max(right - left, 0.1 * span)
    return float(max(left - pad, floor)), float(right + pad)


def raise_top(ax: Axes, rows: int) -> None:
    """Leave room for a legend of so many rows above the data."""
    low, high = ax.get_ylim()
    share = 0.03 + rows * (0.1 if is_narrow(ax) else 0.065)
    ax.set_ylim(low, low + (high - low) / (1 - share))


def spans_decades(values: ArrayLike, ratio: float = 10.0) -> bool:
    """Return True if a log scale shows these values better."""
    array = np.asarray(values, dtype=np.float64)
    return bool(len(array) and (array > 0).all() and array.max() >= ratio * array.min())


def log_sizes(ax: Axes, ticks: Sequence[float] | None = None) -> None:
    """A log x axis in plain numbers; with ticks, at those that leave room for their labels.

    Without, the limits of the axis must be set before.
    """
    ax.set_xscale("log")
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: safe_text(short_number(x))))
    if ticks is not None:
        ax.set_xticks(thinned(ax, ticks))
        return
    low, high = ax.get_xlim()
    decade, room = width_of(ax) / math.log10(high / low), _room(high)
    fits = (subs for subs in _STEPS if decade / len(subs) >= room)
    most = max(2, int(0.9 * width_of(ax) / room))
    ax.xaxis.set_major_locator(LogLocator(subs=next(fits, (1.0,)), numticks=most))


def thinned(ax: Axes, ticks: Sequence[float]) -> list[float]:
    """Ticks that stand far enough apart for their labels: both ends first, then large ones."""
    places = ax.transScale.transform([(t, 1.0) for t in ticks])[:, 0]
    left, right = (float(ax.transScale.transform((x, 1.0))[0]) for x in (min(ticks), max(ticks)))
    inch = width_of(ax) / max(right - left, 1e-12)
    # Both ends tell the range; large values are further apart on most data than on the axis.
    kept: list[int] = []
    order = np.argsort(-places, kind="stable").tolist()
    for i in [*order[:1], *order[-1:], *order[1:-1]]:
        if all(abs(places[i] - places[k]) * inch >= _room(ticks[i]) for k in kept):
            kept.append(i)
    return sorted(float(ticks[i]) for i in kept)


def value_axis(ax: Axes, values: Sequence[float]) -> None:
    """Ticks at the values of a hyperparameter or of counts, on a log scale where they span a decade or more."""
    if spans_decades(values):
        log_sizes(ax, values)
    else:
        ax.set_xticks(thinned(ax, values))


def short_number(x: float) -> str:
    """Write a number in three digits, without zeros at the end."""
    return f"{x:.3g}" if 1e-4 <= abs(x) < 1000 else format_number(x, 3)


def _room(x: float) -> float:
    """Inches that the label of a tick takes up, with some space beside it."""
    return 0.085 * len(short_number(x)) + 0.12


X_SCALES = ("log", "linear", "log-log", "sqrt")


@dataclass(frozen=True)
class SizeAxis:
    """A scale of training sizes, with more data to the right.

    Attributes
    ----------
    name : {"log", "linear", "log-log", "sqrt"}
        "log-log" has errors on a log scale, too; "sqrt" is n^−½, with infinite data at the right.
    """

    name: str = "log"

    def __post_init__(self) -> None:
        if self.name not in X_SCALES:
            raise InputError(f"{arg('x', self.name)} is not known: use one of {list_names(X_SCALES)}.")

    @property
    def label(self) -> str:
        """Label of the axis."""
        if self.name == "sqrt":
            return r"$n^{-1/2}$  (number of training samples $n$ in brackets)"
        return "number of training samples"

    @property
    def is_log(self) -> bool:
        """True for a log scale of sizes."""
        return self.name in ("log", "log-log")

    def place(self, n: ArrayLike) -> FloatArray:
        """Return where size n stands; infinite n is 0 on the n^−½ scale."""
        sizes = np.asarray(n, dtype=np.float64)
        return sizes**-0.5 if self.name == "sqrt" else sizes

    def size(self, x: ArrayLike) -> FloatArray:
        """The size that stands at x: the inverse of :meth:`place`."""
        position = np.asarray(x, dtype=np.float64)
        if self.name != "sqrt":
            return position
        with np.errstate(divide="ignore"):
            return np.asarray(position**-2.0)

    def grid(self, low: float, high: float, points: int = 161) -> FloatArray:
        """Sizes from low to high, evenly spaced in the picture (in log n on the linear scale)."""
        if self.name == "sqrt":
            ends = self.place([low, high])
            sizes = self.size(np.linspace(ends[0], ends[1], points))
            sizes[0], sizes[-1] = low, high
            return sizes
        return np.geomspace(low, high, points)

    def reach(self, limits: Iterable[float], others: Iterable[float]) -> float:
        """The largest size in the picture: infinity, or the last of ``limits`` and a bit beyond all ``others``.

        ``limits`` are the sizes up to which curves are trusted, ``others`` those to be seen too.
        """
        if self.name == "sqrt":
            return float("inf")
        finite = [float(n) for n in others if np.isfinite(n)]
        return max([*limits, *(1.2 * n for n in finite), 0.0])

    def finish(
        self, ax: Axes, sizes: FloatArray, low: float, high: float, first: Sequence[float] | FloatArray = ()
    ) -> None:
        """Scale, limits, ticks at the sizes ``first`` and at those others that leave room for their labels, label."""
        if self.name == "sqrt":
            ax.set_xlim(1.04 * float(self.place(low)), 0.0)
        elif self.is_log:
            ax.set_xscale("log")
            ax.set_xlim(low / 1.1, high)
        else:
            ax.set_xlim(0.0, high)
        digits = 2
        if self.name != "linear":
            # A label needs about half an inch.
            gap = (0.5 if self.name == "sqrt" else 0.42) / width_of(ax)
            ticks = self._thinned(sizes, first, ax.get_xlim(), gap)
            ax.xaxis.set_major_locator(FixedLocator(ticks.tolist()))
            # The fewest significant digits, from 2, in which all ticks differ.
            digits = next((d for d in range(2, 8) if len({f"{x:.{d}g}" for x in ticks}) == len(ticks)), 8)
        # A size asked for has a mark even where there is no room for its label.
        ax.xaxis.set_minor_locator(FixedLocator(np.sort(self.place(first)).tolist()))
        ax.xaxis.set_minor_formatter(NullFormatter())

        def label(x: float, _: Any) -> str:
            # "0.05 (400)" on two lines, or "400".
            size = format_number(float(np.round(self.size(x), 6)))
            return f"{x:.{digits}g}\n({size})" if self.name == "sqrt" else format_number(x)

        ax.xaxis.set_major_formatter(FuncFormatter(label))
        ax.set_xlabel(self.label)

    def _thinned(
        self, sizes: FloatArray, first: Sequence[float] | FloatArray, limits: tuple[float, float], gap: float
    ) -> FloatArray:
        """Positions of ticks that leave room for their labels: those to come first, extremes, then large sizes."""

        def along(x: float) -> float:
            a, b, c = np.log([*limits, x]) if self.is_log else (*limits, x)
            return float((c - a) / (b - a))

        places = np.unique(self.place([*sizes, *first]))
        wanted = [*self.place(first), places[0], places[-1], *places[::-1]]
        if self.name == "sqrt":
            wanted = [*self.place(first), 0.0, places[0], places[-1], *places]
        kept: list[float] = []
        for x in wanted:
            if all(abs(along(x) - along(k)) >= gap for k in kept) and -0.01 <= along(x) <= 1.01:
                kept.append(float(x))
        return np.sort(kept)


def finish_values(ax: Axes, measured: FloatArray, drawn: FloatArray, unit: Unit, floor: float, log: bool) -> None:
    """Limits of the y axis by the data, and by curves where they stay near the data.

    Parameters
    ----------
    ax : Axes
        Where.
    measured, drawn : ndarray
        Values of measurements, which are always seen, and of curves, which may run away.
    unit : Unit
        Of the values; fractions are written as percentages.
    floor : float
        The lowest value that can be.
    log : bool
        Use a logarithmic scale.
    """
    change = np.log if log else np.asarray
    low, high = float(change(measured.min())), float(change(measured.max()))
    span = max(high - low, 0.05 * abs(high), 1e-9 if not log else 0.1)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = change(drawn[np.isfinite(drawn)])
    room = min(0.75 * span, 1.1) if log else 0.75 * span
    values = np.clip(values[~np.isnan(values)], low - room, high + room)
    low, high = float(values.min(initial=low)), float(values.max(initial=high))
    pad = 0.06 * max(high - low, 0.5 * span)
    if log:
        ax.set_yscale("log")
        ax.set_ylim(np.exp(low - pad), np.exp(high + pad))
        tick_log_values(ax, unit)
        return
    # The axis begins at 0 unless all values are far from it.
    bottom = floor if floor == 0.0 and low - pad < 0.4 * (high + pad) else max(low - pad, floor - 0.4 * pad)
    ax.set_ylim(bottom, min(high + pad, unit.top + 0.4 * pad))
    as_percent(ax.yaxis, unit)


def tick_log_values(ax: Axes, unit: Unit | None = None) -> None:
    """Ticks of a log y axis that are neither too few nor too many, in plain numbers."""
    low, high = ax.get_ylim()
    subs = (1.0, 2.0, 5.0) if high / low > 20 else (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
    ax.yaxis.set_major_locator(MaxNLocator(6) if high / low < 3.5 else LogLocator(subs=subs))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: format_number(y)))
    if unit is not None:
        as_percent(ax.yaxis, unit)
