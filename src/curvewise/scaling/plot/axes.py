"""Axes of compute, parameters and tokens, in the units that people write."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_hex, to_rgb
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from curvewise.drawing.axes import width_of
from curvewise.drawing.panels import figure_size
from curvewise.drawing.style import new_axes, style
from curvewise.text import format_number

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_LETTERS = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K"))


@contextmanager
def scaling_canvas(ax: Axes | None, height: float, width: float = 7.0) -> Iterator[tuple[Axes, bool]]:
    """Draw in our style on the Axes given, or on those of a new figure; tell if it is new."""
    with style():
        yield ax or new_axes(width, height), ax is None


def write_flops(value: float) -> str:
    """Write compute as a power of ten.

    >>> write_flops(1e21), write_flops(5.76e23), write_flops(2e18)
    ('10²¹', '5.76×10²³', '2×10¹⁸')
    """
    if not 0 < value < math.inf:
        return format_number(value)
    power = math.floor(math.log10(value) + 1e-12)
    factor = f"{value / 10.0**power:.3g}"
    raised = f"10{str(power).translate(_RAISED)}"
    return raised if factor == "1" else f"{factor}×{raised}"


def write_count(value: float) -> str:
    """Write a number of parameters or tokens on an axis.

    >>> write_count(1e9), write_count(3e11), write_count(5e4), write_count(20)
    ('1B', '300B', '50K', '20')
    """
    for size, letter in _LETTERS:
        if value >= 0.9995 * size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def log_axis(axis: Axis, low: float, high: float, *, flops: bool = False) -> None:
    """Make a log axis of compute or of counts between limits, with ticks that leave room for their labels."""
    ax = axis.axes
    if axis is ax.xaxis:
        ax.set(xscale="log", xlim=(low, high))
        most = width_of(ax) / (0.62 if flops else 0.5)
    else:
        ax.set(yscale="log", ylim=(low, high))
        most = 0.75 * figure_size(ax)[1] / 0.38
    axis.set_minor_locator(NullLocator())
    axis.set_major_locator(FixedLocator(_ticks(low, high, max(2, int(most)))))
    axis.set_major_formatter(FuncFormatter(lambda v, _: (write_flops if flops else write_count)(v)))


def _ticks(low: float, high: float, most: int) -> list[float]:
    """Return round numbers between limits: 1, 2, 5 of each decade, then 1, 3, then decades, then some of these."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors, step in (((1, 2, 5), 1), ((1, 3), 1), ((1,), 1), ((1,), 2), ((1,), 3), ((1,), 5)):
        found = [f * 10.0**d for d in decades if d % step == 0 for f in factors if low <= f * 10.0**d <= high]
        if len(found) <= most:
            return found
    return found[:: max(1, len(found) // most)]


def span_of(*values: Sequence[float] | np.ndarray, room: float = 1.25) -> tuple[float, float]:
    """Return limits of a log axis around positive numbers, with a factor of room at both ends."""
    every = np.concatenate([np.ravel(np.asarray(v, dtype=np.float64)) for v in values])
    every = every[np.isfinite(every) & (every > 0)]
    return float(every.min()) / room, float(every.max()) * room


_RAMP = ("#6a4fc4", "#2f6fd0", "#12879a", "#2f8f4a", "#86800f", "#c26c14")
"""Colours from violet by blue and green to orange: each has a contrast of 3 with white paper, and with black."""


def graded(count: int) -> list[str]:
    """Return colours in an order, such as those of growing budgets.

    >>> graded(2)
    ['#6a4fc4', '#c26c14']
    """
    known = np.array([to_rgb(shade) for shade in _RAMP])
    at = np.linspace(0.0, len(known) - 1.0, max(count, 1))
    red, green, blue = (np.interp(at, np.arange(len(known)), part).tolist() for part in known.T)
    return [to_hex(mixed) for mixed in zip(red, green, blue, strict=True)]
