"""Numbers of errors that independent examples would give: distributions, ranges, distances."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlog1py, xlogy

from curvewise.types import FloatArray, Interval

SIMULATIONS = 999
"""Samples of runs drawn to know how far from its own distribution a sample lies."""


def drawn_together(rates: FloatArray, runs: int) -> FloatArray:
    """Rates nearer to their mean, so that Σ p(1 − p) is R/(R − 1) of what it was."""
    mean = float(rates.mean())
    most = mean * (1 - mean)
    spread = float(np.mean((rates - mean) ** 2))
    if spread == 0:
        return rates
    keep = (runs * spread - most) / ((runs - 1) * spread)
    return np.clip(mean + math.sqrt(max(0.0, keep)) * (rates - mean), 0.0, 1.0)


def binomial_pmf(n: int, p: float) -> FloatArray:
    """Probabilities of 0, 1, …, n heads."""
    k = np.arange(n + 1)
    ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    pmf: FloatArray = np.exp(ways + xlogy(k, p) + xlog1py(n - k, -p))
    return pmf


def kolmogorov(counts: NDArray[Any], pmf: FloatArray) -> float:
    """Largest distance between the distribution functions of counts and of probabilities."""
    measured = np.cumsum(counts) / counts.sum()
    return float(np.abs(measured - np.cumsum(pmf)).max())


def sample_distances(pmf: FloatArray, runs: int, rng: np.random.Generator) -> FloatArray:
    """Distances of samples from their distribution, moved to each sample's mean.

    The rates come from the runs themselves, so that the mean of the prediction is theirs.
    """
    place = np.arange(len(pmf))
    counts = rng.multinomial(runs, pmf / pmf.sum(), size=SIMULATIONS)
    measured = np.cumsum(counts, axis=1) / runs
    shift = counts @ place / runs - pmf @ place
    cdf = np.concatenate([[0.0], np.cumsum(pmf)])
    moved = np.interp(place - shift[:, None], np.arange(-1, len(pmf)), cdf)
    distances: FloatArray = np.abs(measured - moved).max(axis=1)
    return distances


def expected_range(pmf: FloatArray, runs: int, n: int, level: float) -> Interval:
    """Largest minus smallest of independent draws, exactly: mean and limits, as a share of n."""
    cdf = np.minimum(np.cumsum(pmf), 1.0)
    before = np.concatenate([[0.0], cdf[:-1]])
    mean = float((1 - cdf**runs - (1 - cdf) ** runs).sum())
    tail, limits = (1 - level) / 2, []
    for goal in (tail, 1 - tail):
        low, high = 0, len(pmf) - 1
        while low < high:  # the smallest range that is not exceeded with this probability
            middle = (low + high) // 2
            inside = cdf[np.minimum(np.arange(len(pmf)) + middle, len(pmf) - 1)]
            chance = float(((inside - before) ** runs - (inside - cdf) ** runs).sum())
            low, high = (low, middle) if chance >= goal else (middle + 1, high)
        limits.append(low / n)
    return Interval(mean / n, limits[0], limits[1], level, "prediction")
