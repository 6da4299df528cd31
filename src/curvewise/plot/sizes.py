"""Where training sizes stand on the x axis: by n^−½ as in the paper, by log n, or by n."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator
from numpy.typing import ArrayLike

from curvewise.errors import InputError
from curvewise.tables import number
from curvewise.types import FloatArray

X_SCALES = ("sqrt", "log", "linear")


@dataclass(frozen=True)
class SizeAxis:
    """A scale of training sizes.

    Attributes
    ----------
    name : {"sqrt", "log", "linear"}
        "sqrt" is n^−½, with infinite data at 0 on the left.
    """

    name: str = "sqrt"

    def __post_init__(self) -> None:
        if self.name not in X_SCALES:
            raise InputError(
                f"x={self.name!r} is not known: use one of {', '.join(map(repr, X_SCALES))}."
            )

    @property
    def label(self) -> str:
        """Label of the axis."""
        if self.name == "sqrt":
            return r"$n^{-1/2}$  (training size $n$ in brackets, infinite data at the left)"
        return "training size $n$"

    def place(self, n: ArrayLike) -> FloatArray:
        """Where size n stands; infinite n is 0 on the n^−½ scale."""
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
        """The largest size in the picture: infinity, or a bit beyond all that matters.

        ``limits`` are the sizes up to which curves are trusted, ``others`` those to be seen too.
        """
        if self.name == "sqrt":
            return float("inf")
        finite = [float(n) for n in others if np.isfinite(n)]
        return max(1.6 * max(limits), *(1.2 * n for n in finite), 0.0)

    def finish(self, ax: Axes, sizes: FloatArray, low: float, high: float) -> None:
        """Scale, limits, ticks at (some of) the sizes, label."""
        if self.name == "sqrt":
            ax.set_xlim(0.0, 1.04 * float(self.place(low)))
        elif self.name == "log":
            ax.set_xscale("log")
            ax.set_xlim(low / 1.1, high)
        else:
            ax.set_xlim(0.0, high)
        digits = 2
        if self.name != "linear":
            ticks = self._thinned(sizes, ax.get_xlim(), _gap(ax, self.name))
            ax.xaxis.set_major_locator(FixedLocator(ticks.tolist()))
            digits = _digits_apart(ticks)
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: self.tick_text(x, digits)))
        ax.set_xlabel(self.label)

    def tick_text(self, x: float, digits: int = 2) -> str:
        """What a tick says: "0.05 (400)" on two lines, or "400"."""
        if self.name != "sqrt":
            return number(x)
        return f"{x:.{digits}g}\n({number(float(np.round(self.size(x), 6)))})"

    def _thinned(self, sizes: FloatArray, limits: tuple[float, float], gap: float) -> FloatArray:
        """Positions of ticks that leave room for their labels: extremes first, then large sizes."""

        def along(x: float) -> float:
            a, b, c = np.log([*limits, x]) if self.name == "log" else (*limits, x)
            return float((c - a) / (b - a))

        places = np.unique(self.place(sizes))
        wanted = [places[0], places[-1], *places[::-1]]
        if self.name == "sqrt":
            wanted = [0.0, places[0], places[-1], *places]
        kept: list[float] = []
        for x in wanted:
            if all(abs(along(x) - along(k)) >= gap for k in kept) and -0.01 <= along(x) <= 1.01:
                kept.append(float(x))
        return np.sort(kept)


def _digits_apart(ticks: FloatArray) -> int:
    """The fewest significant digits, from 2, in which all ticks differ."""
    return next((d for d in range(2, 8) if len({f"{x:.{d}g}" for x in ticks}) == len(ticks)), 8)


def _gap(ax: Axes, scale: str) -> float:
    """Share of the axis that a tick label needs: about half an inch."""
    figure = ax.get_figure(root=True)
    inches = 7.0 if figure is None else float(figure.get_size_inches()[0])
    return (0.5 if scale == "sqrt" else 0.42) / (ax.get_position().width * inches)


def finish_values(
    ax: Axes, measured: FloatArray, drawn: FloatArray, top: float, floor: float, log: bool
) -> None:
    """Limits of the y axis by the data, and by curves where they stay near the data.

    Parameters
    ----------
    ax : Axes
        Where.
    measured, drawn : ndarray
        Values of measurements, which are always seen, and of curves, which may run away.
    top, floor : float
        The highest and lowest value that can be.
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
        tick_log_values(ax)
        return
    ax.set_ylim(max(low - pad, floor - 0.4 * pad), min(high + pad, top + 0.4 * pad))


def tick_log_values(ax: Axes) -> None:
    """Ticks of a log y axis that are neither too few nor too many, in plain numbers."""
    low, high = ax.get_ylim()
    subs = (1.0, 2.0, 5.0) if high / low > 20 else (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
    ax.yaxis.set_major_locator(MaxNLocator(6) if high / low < 3.5 else LogLocator(subs=subs))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: number(y)))
