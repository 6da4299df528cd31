"""Where an uncertain quantity comes down to zero, and between which points that may be."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from curvewise.types import FloatArray

Evaluate: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray, FloatArray]]
"""From points x, shape (T,), to a quantity there: centre, low and high, shape (T,) each."""


def crossing_interval(evaluate: Evaluate, grid: FloatArray) -> tuple[float, float]:
    """The points around the first crossing at which zero is not ruled out.

    The quantity is positive before the crossing and negative after it, as an error above its target
    is; its centre must lie inside its interval. Ends are found by bisection in log x.

    Parameters
    ----------
    evaluate : callable
        The quantity with its interval.
    grid : ndarray, shape (G,)
        Positive, increasing points to look at.

    Returns
    -------
    low, high : float
        0 or infinity where the stretch runs out of the grid; both infinite (both 0) if the whole
        interval stays above (below) zero.

    >>> line = lambda x: (2 - x, 1.5 - x, 2.5 - x)
    >>> [round(v, 6) for v in crossing_interval(line, np.array([1.0, 2.0, 3.0, 4.0]))]
    [1.5, 2.5]
    """
    centre, low, high = evaluate(grid)
    inside = (low <= 0) & (high >= 0)
    after = np.flatnonzero(centre <= 0)
    last = len(grid) - 1

    def holds(x: float) -> bool:
        _, a, b = evaluate(np.array([x]))
        return bool(a[0] <= 0 <= b[0])

    def left_end(start: float, index: int) -> float:
        outside = np.flatnonzero(~inside[:index])
        if len(outside) == 0:
            return 0.0
        j = int(outside[-1])
        return _bisect(holds, grid[j + 1] if j + 1 < index else start, grid[j])

    def right_end(start: float, index: int) -> float:
        outside = np.flatnonzero(~inside[index:])
        if len(outside) == 0:
            return float("inf")
        j = index + int(outside[0])
        return _bisect(holds, grid[j - 1] if j > index else start, grid[j])

    if len(after) == 0:
        return (left_end(grid[last], last), np.inf) if inside[last] else (np.inf, np.inf)
    first = int(after[0])
    if first == 0:
        return (0.0, right_end(grid[0], 1)) if inside[0] else (0.0, 0.0)
    root = _bisect(lambda x: bool(evaluate(np.array([x]))[0][0] <= 0), grid[first], grid[first - 1])
    return left_end(root, first), right_end(root, first)


def first_crossing(grid: FloatArray, values: FloatArray) -> float:
    """Where values come down to zero first, by a line between grid points; inf if they never do.

    >>> first_crossing(np.array([1.0, 2.0, 4.0]), np.array([2.0, 1.0, -1.0]))
    3.0
    """
    after = np.flatnonzero(values <= 0)
    if len(after) == 0:
        return float("inf")
    i = int(after[0])
    if i == 0:
        return 0.0
    share = values[i - 1] / (values[i - 1] - values[i])
    return float(grid[i - 1] + share * (grid[i] - grid[i - 1]))


def _bisect(holds: Callable[[float], bool], inside: float, outside: float) -> float:
    """The outermost point that still holds, between one that does and one that does not."""
    a, b = np.log(inside), np.log(outside)
    for _ in range(40):
        middle = 0.5 * (a + b)
        a, b = (middle, b) if holds(float(np.exp(middle))) else (a, middle)
    return float(np.exp(a))
