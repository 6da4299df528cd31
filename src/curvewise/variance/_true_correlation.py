"""The correlation of true errors, from test errors that hold noise of known variance."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit

from curvewise.types import FloatArray, Interval

NEAR_ONE = 1 - 1e-12
"""Correlations beyond this count as this: Fisher's scale has no end."""


def true_correlation(
    x: FloatArray, y: FloatArray, noise: Sequence[float], stable: bool, level: float
) -> Interval:
    """Correlation of what is left of x and y without their noise of known variance.

    The limits are those of the correlation of x and y (jackknife on Fisher's scale, where no
    value lies beyond 1) over how much smaller the noise makes it. Where that leaves nothing below
    1 the noise seems to be less than thought, and the limit of x and y themselves holds anyway.
    """
    smaller = math.sqrt(_real(x, noise[0]) * _real(y, noise[1]))
    if smaller == 0:
        return Interval(math.nan, -1.0, 1.0, level)
    r = _with_each_left_out(x, y)
    estimate = min(1.0, max(-1.0, float(r[0]) / smaller))
    if not stable or not np.isfinite(r).all():
        return Interval(estimate, -1.0, 1.0, level)
    runs = len(x)
    z = np.arctanh(np.clip(r, -NEAR_ONE, NEAR_ONE))
    half = float(stdtrit(runs - 1, (1 + level) / 2)) * math.sqrt(np.var(z[1:]) * (runs - 1))
    low, high = math.tanh(z[0] - half), math.tanh(z[0] + half)
    low = low if low >= smaller else max(-1.0, low / smaller)
    high = high if high <= -smaller else min(1.0, high / smaller)
    return Interval(estimate, low, high, level)


def _real(values: FloatArray, noise: float) -> float:
    """Share of the variance that is no noise."""
    variance = float(np.var(values, ddof=1))
    return max(0.0, 1 - noise / variance) if variance > 0 else 0.0


def _with_each_left_out(x: FloatArray, y: FloatArray) -> FloatArray:
    """Pearson's correlation of all runs, then without each of them in turn."""
    runs = len(x)
    a, b = x - x.mean(), y - y.mean()
    xx, yy, xy = (
        np.array([u @ v, *(u @ v - u * v * runs / (runs - 1))]) for u, v in ((a, a), (b, b), (a, b))
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        values: FloatArray = xy / np.sqrt(xx * yy)
    return values
