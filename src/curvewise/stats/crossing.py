"""Where an uncertain quantity comes down to zero, and between which points that may be."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.types import FloatArray

Evaluate: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray, FloatArray]]
"""From points x, shape (T,), to a quantity there: centre, low and high, shape (T,) each."""


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
    x: list[float] = np.log(grid).tolist()
    centre, low, high = evaluate(grid)
    values = zip(centre.tolist(), low.tolist(), high.tolist(), strict=True)
    known = dict(zip(x, values, strict=True))
    inside = (low <= 0) & (high >= 0)
    after = np.flatnonzero(centre <= 0)

    def at(place: float) -> tuple[float, float, float]:
        if place not in known:
            a, b, c = (float(v[0]) for v in evaluate(np.exp([place])))
            known[place] = (a, b, c)
        return known[place]

    def outside_by(place: float) -> float:
        _, a, b = at(place)
        return float(np.maximum(a, -b))

    def end(along: NDArray[np.intp], start: Callable[[], float], without: float) -> float:
        """Where the stretch ends that leads from a start along grid points, or ``without``."""
        outside = np.flatnonzero(~inside[along])
        if len(outside) == 0:
            return without
        k = int(outside[0])
        return float(np.exp(_zero(outside_by, x[along[k - 1]] if k else start(), x[along[k]])))

    places = np.arange(len(grid))
    if len(after) == 0:
        return (end(places[::-1], lambda: x[-1], 0.0), np.inf) if inside[-1] else (np.inf, np.inf)
    first = int(after[0])
    if first == 0:
        return (0.0, end(places, lambda: x[0], np.inf)) if inside[0] else (0.0, 0.0)

    def root() -> float:
        return _zero(lambda place: at(place)[0], x[first], x[first - 1])

    return end(places[:first][::-1], root, 0.0), end(places[first:], root, np.inf)


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


def _zero(above_by: Callable[[float], float], below: float, above: float) -> float:
    """Where a quantity is zero between a point where it is not above and one where it is.

    NaN counts as above.
    """
    from scipy.optimize import brentq

    def value(place: float) -> float:
        found = float(above_by(place))
        return float("inf") if np.isnan(found) else found

    if value(below) > 0:  # by rounding, where an interval has no width
        return below
    if value(above) <= 0:
        return above
    return float(brentq(value, below, above, xtol=1e-10, maxiter=1000))
