"""Axes of pictures of the variance: limits, rows, ticks, and how much room there is."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from numpy.typing import ArrayLike

from curvewise.plot.text import safe_text
from curvewise.tables import number

NARROW = 4.0
"""Inches of Axes below which type is set smaller, and less is said."""

_STEPS = ((1.0, 1.5, 2.0, 3.0, 5.0, 7.0), (1.0, 2.0, 5.0), (1.0, 3.0))


def width_of(ax: Axes) -> float:
    """Width of the Axes in inches."""
    figure = ax.get_figure(root=True)
    return 7.0 if figure is None else ax.get_position().width * float(figure.get_size_inches()[0])


def is_narrow(ax: Axes) -> bool:
    """Whether the Axes are one of several, or in a column of a paper."""
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


def rows_that_fit(ax: Axes) -> int:
    """Rows of small type that these Axes have room for."""
    figure = ax.get_figure(root=True)
    height = 4.8 if figure is None else float(figure.get_size_inches()[1])
    return max(3, int(ax.get_position().height * height / 0.15))


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
    """A log x axis in plain numbers; with ticks, at those that leave room for their labels.

    Without, the limits of the axis must be set before.
    """
    ax.set_xscale("log")
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: safe_text(_tick(x))))
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
    kept: list[int] = []
    order = np.argsort(-places, kind="stable").tolist()
    for i in [*order[:1], *order[-1:], *order[1:-1]]:
        if all(abs(places[i] - places[k]) * inch >= _room(ticks[i]) for k in kept):
            kept.append(i)
    return sorted(float(ticks[i]) for i in kept)


def _tick(x: float) -> str:
    return f"{x:.3g}" if 1e-4 <= abs(x) < 1000 else number(x, 3)


def _room(x: float) -> float:
    """Inches that the label of a tick takes up, with some space beside it."""
    return 0.085 * len(_tick(x)) + 0.12
