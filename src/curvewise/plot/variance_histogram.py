"""Histograms of runs, and curves of what was predicted for them."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from curvewise.plot.style import NEUTRAL
from curvewise.types import FloatArray

HISTOGRAM = "curvewise-histogram"
PREDICTED = "curvewise-predicted"
"""Group ids of the artists."""

LIKELY = 3e-4
"""Share of the highest probability below which a curve is not drawn."""

FEW_POINTS = 25
"""Up to here each number of errors is marked on the curve."""

TALLEST = 2.0
"""Curves more than so many times as high as the highest bar are cut off, to keep bars readable."""

CUT_OFF = "A curve that is too high for the picture is cut off."


def edges_of(values: FloatArray, step: float) -> FloatArray:
    """Edges of bins, by Freedman and Diaconis; whole numbers of errors where values come in steps.

    At least eight bins over the spread of the runs, where the steps allow it.
    """
    low, high = float(values.min()), float(values.max())
    if high - low < 1e-12:
        half = 5 * step or 0.05 * (abs(low) or 1.0)
        return np.linspace(low - half, low + half, 12)
    quarter = np.subtract(*np.percentile(values, [75, 25]))
    width = 2 * quarter / len(values) ** (1 / 3) or (high - low) / 10
    width = float(np.clip(width, (high - low) / 60, (high - low) / 8))
    if step:
        width = step * max(1, round(width / step))
    start = low - (step / 2 if step else 0.0)
    bins = math.floor((high - start) / width) + 1
    return np.asarray(start + width * np.arange(bins + 1), dtype=np.float64)


def normal(mean: float, std: float, scale: float) -> tuple[FloatArray, FloatArray]:
    """A normal density, four standard deviations to each side."""
    if std == 0:
        return np.array([mean]), np.array([scale])
    z = np.linspace(-4, 4, 161)
    return mean + std * z, scale * np.exp(-(z**2) / 2) / (std * math.sqrt(2 * math.pi))


def curve(ax: Axes, x: FloatArray, y: FloatArray, shade: str, ls: str) -> Any:
    """A predicted distribution, in runs per bin."""
    (line,) = ax.plot(
        x,
        y,
        color=shade,
        linewidth=1.8,
        linestyle=ls,
        marker="o" if len(x) <= FEW_POINTS else "",
        markersize=3.5,
        gid=PREDICTED,
        label="_predicted",
    )
    return line


def histogram(
    ax: Axes, values: FloatArray, edges: FloatArray, shade: str = NEUTRAL, alpha: float = 0.45
) -> Any:
    """Count values between edges."""
    bars = ax.hist(values, bins=edges.tolist(), color=shade, alpha=alpha, label="_values")[2]
    for bar in cast("Any", bars):
        bar.set_gid(HISTOGRAM)
    return bars


def count_axis(ax: Axes, room: float, runs: int) -> list[str]:
    """Counts of runs, with a share of the axis left free on top; says so if a curve is cut off."""
    curves = [line for line in ax.lines if line.get_gid() == PREDICTED]
    peak = max(float(np.max(np.asarray(line.get_ydata()))) for line in curves)
    bars = max(float(b.get_height()) for b in ax.patches if isinstance(b, Rectangle))
    top = max(bars, min(peak, TALLEST * bars), 1.0)
    ax.set_ylim(0.0, top / (1 - room))
    ax.set_ylabel(f"runs (of {runs:,})")
    ax.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    if peak <= top:
        return []
    for line in curves:
        line.set_clip_path(Rectangle((0.0, 0.0), 1.0, 1 - room, transform=ax.transAxes))
    return [CUT_OFF]
