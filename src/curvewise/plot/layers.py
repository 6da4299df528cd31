"""The layers of a learning-curve picture: line, band, measurements, limit, target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from numpy.typing import ArrayLike

from curvewise.learning import LearningCurve, SamplesToReach
from curvewise.learning.base import EXTRAPOLATION_LIMIT, Curve
from curvewise.plot.sizes import SizeAxis
from curvewise.plot.style import NEUTRAL
from curvewise.plot.text import safe_text
from curvewise.tables import number
from curvewise.types import FloatArray

NAMED = "curvewise-named-curve"
UNNAMED = "curvewise-curve"
BEYOND = "curvewise-beyond"
BAND = "curvewise-band"
MEASURED = "curvewise-measured"
HELD_OUT = "curvewise-held-out"
BARS = "curvewise-bars"
LIMIT = "curvewise-limit"
REACH = "curvewise-reach"
"""Group ids of the artists, by which a later call on the same Axes finds them."""

VERY_MUCH = 1e30


@dataclass(frozen=True)
class Look:
    """How one curve is drawn: its colour, whether it is flagged, whether it is one of a crowd."""

    colour: str
    flagged: bool = False
    crowd: bool = False
    named: bool = True

    @property
    def width(self) -> float:
        """Line width in points."""
        return 1.8 if not self.crowd else 1.4 if self.named else 0.6

    @property
    def alpha(self) -> float:
        """Opacity of lines."""
        return 1.0 if self.named else 0.4

    @property
    def zorder(self) -> float:
        """Named curves lie on top."""
        return 3.0 if self.named else 2.0


@dataclass(frozen=True)
class Picture:
    """Axes, the scale of sizes, and the sizes from low to high that curves are drawn over."""

    ax: Axes
    axis: SizeAxis
    low: float
    high: float


def values_at(curve: Curve, n: FloatArray) -> FloatArray:
    """The curve at sizes n in its unit, without the cost of an interval."""
    return curve.errors_at(n)


def draw_line(at: Picture, curve: Curve, look: Look, label: str, low: float) -> None:
    """The fitted curve: solid (dotted if flagged) where data support it, dashed outside."""
    limit = EXTRAPOLATION_LIMIT * curve.largest_n
    smallest = float(curve.n[0])
    for start, stop, supported in _stretches(low, smallest, min(limit, at.high), at.high):
        n = at.axis.grid(start, stop)
        at.ax.plot(
            at.axis.place(n),
            values_at(curve, n),
            color=look.colour,
            linewidth=look.width,
            linestyle=(":" if look.flagged else "-") if supported else (0, (4, 2.5)),
            alpha=look.alpha * (1.0 if supported else 0.8),
            zorder=look.zorder,
            label=label if supported else "_beyond",
            gid=(NAMED if look.named else UNNAMED) if supported else BEYOND,
        )


def _stretches(
    low: float, smallest: float, limit: float, high: float
) -> Iterator[tuple[float, float, bool]]:
    if low < smallest:
        yield low, smallest, False
    yield smallest, limit, True
    if limit < high:
        yield limit, high, False


def draw_band(
    at: Picture, curve: Curve, look: Look, interval: str | None, level: float, low: float
) -> None:
    """The interval of the curve, shaded wherever it is finite."""
    n = at.axis.grid(low, at.high)
    # Only a power law knows a limit of infinite data; the others are asked for very much of it.
    sizes = n if isinstance(curve, LearningCurve) else np.minimum(n, VERY_MUCH)
    band = curve.band(sizes, interval, level=level, runs=np.inf)
    finite = np.isfinite(band["low"]) & np.isfinite(band["high"])
    if not finite.any():
        return
    at.ax.fill_between(
        at.axis.place(n),
        np.where(finite, band["low"], 0.0),
        np.where(finite, band["high"], 0.0),
        where=finite.tolist(),
        color=look.colour,
        alpha=0.06 if look.crowd else 0.18,
        linewidth=0.0,
        zorder=1.0,
        gid=BAND,
    )


def draw_measurements(at: Picture, curve: Curve, look: Look) -> None:
    """Size means as circles, larger for more runs, with ±1 standard deviation of one run."""
    if not look.crowd:
        known = (curve.runs > 1) & np.isfinite(curve.variance)
        _bars(at, curve.n[known], curve.mean[known], np.sqrt(curve.variance[known]), look)
    _circles(at, curve.n, curve.mean, curve.runs, look, MEASURED)


def draw_held_out(at: Picture, curve: Curve, look: Look, n: FloatArray, values: FloatArray) -> None:
    """What the fit did not see: hollow circles at the means by size."""
    sizes, index, runs = np.unique(n, return_inverse=True, return_counts=True)
    mean = np.bincount(index, values) / runs
    many = runs > 1
    squares = np.bincount(index, (values - mean[index]) ** 2)
    std = np.sqrt(squares[many] / (runs[many] - 1))
    _bars(at, sizes[many], mean[many], std, look)
    _circles(at, sizes, mean, runs.astype(np.float64), look, HELD_OUT)


def _bars(at: Picture, n: FloatArray, mean: FloatArray, std: FloatArray, look: Look) -> None:
    if len(n):
        at.ax.vlines(
            at.axis.place(n),
            mean - std,
            mean + std,
            color=look.colour,
            linewidth=0.9,
            zorder=look.zorder,
            gid=BARS,
        )


def _circles(
    at: Picture, n: FloatArray, mean: FloatArray, runs: FloatArray, look: Look, gid: str
) -> None:
    area = np.full_like(n, 4.0) if look.crowd else 16.0 + 3.0 * np.sqrt(np.minimum(runs, 50.0))
    hollow = gid == HELD_OUT
    circles = at.ax.scatter(
        at.axis.place(n),
        mean,
        s=area * (1.4 if hollow else 1.0),
        facecolors="none" if hollow else look.colour,
        edgecolors=look.colour,
        linewidths=1.2 if hollow else 0.0,
        alpha=look.alpha,
        zorder=look.zorder + 0.1,
        label="_circles",
    )
    circles.set_gid(gid)


def draw_limits(at: Picture, curves: Iterable[Curve]) -> None:
    """A line at four times the largest size; none where curves differ in it by much."""
    limits = sorted({EXTRAPOLATION_LIMIT * c.largest_n for c in curves})
    for limit in limits if len(limits) <= 3 else ():
        mark_size(at, limit, f"4 × largest size ({number(limit)})", gid=LIMIT)


def mark_size(at: Picture, n: float, text: str, *, gid: str, ls: str = "-") -> None:
    """A thin vertical line at a size, with its text along it, at the end where curves are low."""
    x = float(at.axis.place(n))
    right = at.axis.name == "sqrt"
    if x in [float(np.asarray(line.get_xdata())[0]) for line in lines_of(at.ax, gid)]:
        return
    at.ax.axvline(x, color=NEUTRAL, linewidth=0.9, linestyle=ls, zorder=0.5, gid=gid, label="_line")
    at.ax.annotate(
        safe_text(text),
        xy=(x, 0.985),
        xycoords=at.ax.get_xaxis_transform(),
        xytext=(2.5 if right else -2.5, 0.0),
        textcoords="offset points",
        rotation=90,
        ha="left" if right else "right",
        va="top",
        fontsize=8.0,
        color="#6E6E6E",
        zorder=4.0,
        gid=gid,
        path_effects=[withStroke(linewidth=3.0, foreground=rcParams["axes.facecolor"])],
    )


def draw_reach(at: Picture, curve: Curve, look: Look, found: SamplesToReach) -> None:
    """A diamond where the curve reaches a target, with the interval of that size."""
    target = found.error
    low, high = (float(np.clip(n, at.low, at.high)) for n in (found.low, found.high))
    if high > low and not look.crowd:
        at.ax.plot(
            at.axis.place([low, high]),
            [target, target],
            color=look.colour,
            linewidth=4.5,
            alpha=0.45,
            solid_capstyle="butt",
            zorder=3.4,
            label="_reach",
            gid=REACH,
        )
    if at.low <= found.estimate <= at.high and np.isfinite(found.estimate):
        at.ax.plot(
            at.axis.place([found.estimate]),
            [target],
            linestyle="none",
            marker="D",
            markersize=6.0,
            color=look.colour,
            markeredgecolor="white",
            zorder=3.6,
            label="_reach",
            gid=REACH,
        )


def lines_of(ax: Axes, *gids: str) -> list[Line2D]:
    """Lines drawn here by an earlier layer."""
    return [line for line in ax.lines if line.get_gid() in gids]


def points_of(ax: Axes, *gids: str) -> FloatArray:
    """Positions of circles drawn here by an earlier layer, shape (P, 2)."""
    found = [
        np.asarray(c.get_offsets(), dtype=np.float64)
        for c in ax.collections
        if isinstance(c, PathCollection) and c.get_gid() in gids
    ]
    return np.concatenate(found) if found else np.zeros((0, 2))


def bar_ends(ax: Axes) -> FloatArray:
    """All y values of the error bars."""
    found = [
        segment[:, 1]
        for c in ax.collections
        if isinstance(c, LineCollection) and c.get_gid() == BARS
        for segment in c.get_segments()
    ]
    return np.concatenate([np.zeros(0), *found])


def heights_of(lines: Sequence[Line2D]) -> FloatArray:
    """All y values of the lines."""
    parts: list[ArrayLike] = [np.asarray(line.get_ydata(), dtype=np.float64) for line in lines]
    return np.concatenate([np.zeros(0), *parts])
