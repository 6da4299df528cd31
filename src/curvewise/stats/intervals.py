"""Intervals of differences, and what a family of nested intervals says about probabilities."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr

from curvewise.types import FloatArray


def difference_interval(
    a: ArrayLike,
    a_interval: tuple[ArrayLike, ArrayLike],
    b: ArrayLike,
    b_interval: tuple[ArrayLike, ArrayLike],
) -> tuple[FloatArray, FloatArray]:
    """Interval of a − b from the intervals of two independent estimates (MOVER).

    Zou and Donner 2008: each side of the difference recovers its variance from the matching sides
    of the two intervals, so that skewed intervals stay skewed. Estimates must lie inside theirs.

    >>> low, high = difference_interval(5.0, (4.0, 6.0), 3.0, (2.0, 4.0))
    >>> round(float(low), 3), round(float(high), 3)
    (0.586, 3.414)
    """
    (a_low, a_high), (b_low, b_high) = a_interval, b_interval
    centre = np.subtract(a, b)
    below = np.hypot(np.subtract(a, a_low), np.subtract(b_high, b))
    above = np.hypot(np.subtract(a_high, a), np.subtract(b, b_low))
    return centre - below, centre + above


def excluded_level(
    interval: Callable[[float], tuple[float, float]], value: float, tolerance: float = 1e-4
) -> float:
    """The largest level at which the interval still leaves ``value`` out, by bisection.

    One minus it is a two-sided p-value.

    >>> from scipy.special import ndtri
    >>> z = lambda level: (2 - ndtri(0.5 + level / 2), 2 + ndtri(0.5 + level / 2))
    >>> round(1 - excluded_level(z, 0.0), 3)
    0.046
    """
    low, high = 0.0, 1.0 - 1e-9
    ends = interval(high)
    if not ends[0] <= value <= ends[1]:
        return high
    while high - low > tolerance * (1.0 - low):
        middle = 0.5 * (low + high)
        ends = interval(middle)
        if ends[0] <= value <= ends[1]:
            high = middle
        else:
            low = middle
    return low


def probability_lowest(quantiles: FloatArray, probabilities: FloatArray) -> FloatArray:
    """Chance that each of K independent quantities is the lowest.

    Parameters
    ----------
    quantiles : ndarray, shape (K, P)
        Quantiles of each quantity, not falling along the second axis.
    probabilities : ndarray, shape (P,)
        Their probabilities, increasing.

    Returns
    -------
    ndarray, shape (K,)
        Sums to 1; by integrating over equal slices of each quantity's own distribution.

    >>> q = np.array([[0., 1., 2.], [0., 1., 2.], [5., 6., 7.]])
    >>> probability_lowest(q, np.array([0.0, 0.5, 1.0])).round(3)
    array([0.5, 0.5, 0. ])
    """
    slices = (np.arange(400) + 0.5) / 400
    draws = np.array([np.interp(slices, probabilities, q) for q in quantiles])
    chance = np.empty(len(quantiles))
    for k, own in enumerate(draws):
        others = np.delete(draws, k, axis=0)
        # Half of a tie counts as a win, so that identical quantities share the chance.
        above = [
            1.0 - 0.5 * (np.searchsorted(o, own, "left") + np.searchsorted(o, own, "right")) / 400
            for o in others
        ]
        chance[k] = np.prod(above, axis=0).mean() if above else 1.0
    total = chance.sum()
    return chance / total if total > 0 else chance


def paired_t_test(a: FloatArray, b: FloatArray) -> float:
    """Two-sided p-value that a and b, paired, have the same mean; NaN with fewer than two pairs."""
    d = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
    if len(d) < 2:
        return float("nan")
    spread = d.std(ddof=1) / np.sqrt(len(d))
    if spread == 0:
        return 1.0 if d.mean() == 0 else 0.0
    return float(2.0 * stdtr(len(d) - 1, -abs(d.mean() / spread)))
