"""The chance that a value drawn from one sample is below one drawn from another."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, logit, stdtrit

from curvewise.errors import InputError
from curvewise.types import FloatArray, Interval

FEW = 5
"""With fewer values in a sample, their variance may come out far too small by chance."""


def probability_below(
    a: FloatArray, b: FloatArray, level: float = 0.95, *, paired: bool = False
) -> Interval:
    """P(a < b) + P(a = b)/2 for a random value of each: the area under a ROC curve.

    The interval is Student's on the scale of log odds with the variance of the placements, each
    of which is known to half a step at best. Where every value of one sample is below every one of
    the other, it ends where a chance that large would still show this in the smaller sample; where
    all values are equal nothing is known.

    Parameters
    ----------
    a, b : ndarray
        The two samples.
    level : float
        Coverage of the interval.
    paired : bool
        Whether value i of a goes with value i of b (runs that share their seeds). The chance is
        still that of two values drawn apart; only its interval is that of pairs.

    Examples
    --------
    >>> probability_below(np.array([1.0, 2.0, 3.0]), np.array([2.0, 3.0, 4.0])).estimate
    0.7777777777777778
    """
    if paired and len(a) != len(b):
        raise InputError(f"paired=True, but a has {len(a)} values and b has {len(b)}.")
    above = _placements(a, np.sort(b))
    below = 1 - _placements(b, np.sort(a))
    p = float(above.mean())
    tail = (1 - level) / 2
    fewest = min(len(a), len(b))
    if p in (0.0, 1.0):
        edge = tail ** (1 / fewest)
        return Interval(p, edge if p else 0.0, 1.0 if p else 1 - edge, level)
    if fewest < 2 or np.ptp(above) == np.ptp(below) == 0:
        return Interval(p, 0.0, 1.0, level)
    variance, quantile = (_together if paired else _apart)(above, below, 1 - tail)
    half = quantile * math.sqrt(variance) / (p * (1 - p))
    low, high = expit(logit(p) - half), expit(logit(p) + half)
    return Interval(p, float(low), float(high), level)


def _apart(above: FloatArray, below: FloatArray, chance: float) -> tuple[float, float]:
    """Variance of the mean placement of two unrelated samples, and its quantile.

    Student's t with Satterthwaite's degrees of freedom; with few values, the mean of the two
    samples' own quantiles weighted by their variances (Cochran and Cox).
    """
    sizes = np.array([len(above), len(below)])
    spreads = np.array([np.var(above, ddof=1), np.var(below, ddof=1)])
    parts = np.maximum(spreads, _half_steps(sizes)) / sizes
    variance = float(parts.sum())
    if sizes.min() < FEW:
        return variance, float(parts @ stdtrit(sizes - 1, chance)) / variance
    degrees = variance**2 / float((parts**2 / (sizes - 1)).sum())
    return variance, float(stdtrit(degrees, chance))


def _together(above: FloatArray, below: FloatArray, chance: float) -> tuple[float, float]:
    """The same for pairs, whose placements vary together."""
    size = len(above)
    least = float(_half_steps(np.array([size, size])).sum())
    variance = max(float(np.var(above + below, ddof=1)), least) / size
    return variance, float(stdtrit(size - 1, chance))


def _half_steps(sizes: FloatArray) -> FloatArray:
    """Squares of half the step of a placement, which is that of the other sample."""
    steps: FloatArray = 1 / (2 * sizes[::-1]) ** 2
    return steps


def _placements(values: FloatArray, others: FloatArray) -> FloatArray:
    """For each value the share of the others above it, ties counting half."""
    right = np.searchsorted(others, values, side="right")
    left = np.searchsorted(others, values, side="left")
    return 1 - (left + right) / (2 * len(others))
