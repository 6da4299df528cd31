"""The chance that a value drawn from one sample is below one drawn from another."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, logit, ndtri

from curvewise.types import FloatArray, Interval


def probability_below(a: FloatArray, b: FloatArray, level: float = 0.95) -> Interval:
    """P(a < b) + P(a = b)/2 for a random value of each: the area under a ROC curve.

    The interval is normal on the scale of log odds with the variance of the placements; where
    every value of one sample is below every one of the other, it ends where a chance that
    large would still show this in the smaller sample.

    >>> probability_below(np.array([1.0, 2.0, 3.0]), np.array([2.0, 3.0, 4.0])).estimate
    0.7777777777777778
    """
    ordered_a, ordered_b = np.sort(a), np.sort(b)
    above = _placements(a, ordered_b)
    below = 1 - _placements(b, ordered_a)
    p = float(above.mean())
    tail = (1 - level) / 2
    fewest = min(len(a), len(b))
    if p in (0.0, 1.0) or fewest < 2:
        edge = tail ** (1 / fewest)
        low, high = (0.0, 1.0) if p not in (0.0, 1.0) else (edge, 1.0) if p else (0.0, 1 - edge)
        return Interval(p, low, high, level)
    variance = above.var(ddof=1) / len(a) + below.var(ddof=1) / len(b)
    half = float(-ndtri(tail)) * math.sqrt(variance) / (p * (1 - p))
    low, high = expit(logit(p) - half), expit(logit(p) + half)
    return Interval(p, float(low), float(high), level)


def _placements(values: FloatArray, others: FloatArray) -> FloatArray:
    """For each value the share of the others above it, ties counting half."""
    right = np.searchsorted(others, values, side="right")
    left = np.searchsorted(others, values, side="left")
    return 1 - (left + right) / (2 * len(others))
