"""Axes of pictures of transfer: training sizes, controls as lines, intervals side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from matplotlib.transforms import ScaledTranslation

from curvewise.plot.style import NEUTRAL
from curvewise.plot.variance_axes import width_of
from curvewise.plot.variance_parts import INTERVAL, note
from curvewise.types import FloatArray

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


def control_lines(
    ax: Axes, blind: str = "blind guess", maximal: str = "maximal supervision"
) -> None:
    """The two controls as lines at 1 and 0 of calibrated risk, with their names."""
    for at, text, x, side in ((1.0, blind, 0.985, "right"), (0.0, maximal, 0.015, "left")):
        ax.axhline(
            at, color=NEUTRAL, linewidth=1.0, linestyle="--", zorder=0.8, gid=CONTROL, label="_c"
        )
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
    ax: Axes,
    n: FloatArray,
    low: FloatArray,
    high: FloatArray,
    shade: str,
    shift: float,
    z: float,
    width: float = 1.1,
) -> None:
    """Bars of intervals, shifted by points so that those of several methods stand side by side."""
    known = ~np.isnan(low) & ~np.isnan(high)
    figure = ax.get_figure(root=True)
    if figure is None or not known.any():
        return
    aside = ax.transData + ScaledTranslation(shift / 72, 0.0, figure.dpi_scale_trans)
    pairs = np.stack([np.column_stack([n, low]), np.column_stack([n, high])], axis=1)[known]
    lines = LineCollection(
        list(pairs), colors=shade, linewidths=width, alpha=0.75, zorder=z, transform=aside
    )
    lines.set_gid(INTERVAL)
    ax.add_collection(lines, autolim=False)
