"""Where an uncertain quantity comes down to zero, and between which points that may be."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import numpy as np

from curvewise.types import FloatArray

Evaluate: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray, FloatArray]]
"""From points x, shape (T,), to a quantity there: centre, low and high, shape (T,) each."""

Start: TypeAlias = Callable[[], float]
"""Finds a point inside, if it is needed."""


def crossing_interval(evaluate: Evaluate, grid: FloatArray) -> tuple[float, float]:
    """The points around the first crossing at which zero is not ruled out.

    The quantity is positive before the crossing and negative after it, as an error above its target
    is; its centre must lie inside its interval. Ends are found by Brent's method in log x.

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

    def outside_by(x: float) -> float:
        _, a, b = evaluate(np.array([x]))
        return float(max(a[0], -b[0]))

    def left_end(start: Start, index: int) -> float:
        outside = np.flatnonzero(~inside[:index])
        if len(outside) == 0:
            return 0.0
        j = int(outside[-1])
        return _boundary(outside_by, grid[j + 1] if j + 1 < index else start(), grid[j])

    def right_end(start: Start, index: int) -> float:
        outside = np.flatnonzero(~inside[index:])
        if len(outside) == 0:
            return float("inf")
        j = index + int(outside[0])
        return _boundary(outside_by, grid[j - 1] if j > index else start(), grid[j])

    if len(after) == 0:
        return (left_end(lambda: grid[last], last), np.inf) if inside[last] else (np.inf, np.inf)
    first = int(after[0])
    if first == 0:
        return (0.0, right_end(lambda: grid[0], 1)) if inside[0] else (0.0, 0.0)

    def root() -> float:
        return _boundary(lambda x: float(evaluate(np.array([x]))[0][0]), *grid[[first, first - 1]])

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


def _boundary(outside_by: Callable[[float], float], inside: float, outside: float) -> float:
    """Where a quantity passes zero between a point where it is not above it and one where it is.

    NaN counts as above.
    """
    from scipy.optimize import brentq

    @cache
    def of_log(x: float) -> float:
        found = outside_by(float(np.exp(x)))
        return float("inf") if np.isnan(found) else found

    a, b = float(np.log(inside)), float(np.log(outside))
    if of_log(a) > 0:  # by rounding, where the interval has no width
        return float(inside)
    if of_log(b) <= 0:
        return float(outside)
    return float(np.exp(brentq(of_log, a, b, xtol=1e-12, maxiter=1000)))
