"""Simulated experiments that are looked at several times."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, stdtr

from curvewise.types import FloatArray


@dataclass(frozen=True, eq=False)
class Looks:
    """Means and variances of simulated experiments at each look, without a true difference.

    Attributes
    ----------
    runs : tuple of int
        Runs of each training at each look.
    gap : ndarray, shape (looks, draws)
        Difference of the two means so far, in standard deviations of a run.
    error : ndarray, shape (looks, draws)
        Its estimated standard error.
    degrees : ndarray, shape (looks, draws)
        Degrees of freedom of that.
    """

    runs: tuple[int, ...]
    gap: FloatArray
    error: FloatArray
    degrees: FloatArray

    def pvalues(self, effect: float, most: float) -> FloatArray:
        """Two-sided p-values of the t tests if the true difference is ``effect``.

        Those above ``most`` are given as 1: a t that is not even extreme for a normal variable is
        not worth the time.
        """
        t = np.abs(self.gap + effect) / self.error
        values = np.ones_like(t)
        small = t >= -ndtri(most / 2)
        values[small] = 2 * stdtr(self.degrees[small], -t[small])
        return np.where(values > most, 1.0, values)


def simulate_looks(
    runs: tuple[int, ...], paired: bool, draws: int, rng: np.random.Generator
) -> Looks:
    """Simulate normal run errors, and compare by Welch's or the paired t test.

    Only sums and sums of squares of the runs between two looks are drawn. Unpaired trainings are
    compared by Welch's t test, paired ones by the t test of differences.
    """
    sides = [_running(runs, draws, rng) for _ in range(1 if paired else 2)]
    sizes = np.array(runs, dtype=np.float64)[:, None]
    parts = [variance / sizes for _, variance in sides]
    total = np.sum(parts, axis=0)
    degrees = (sizes - 1) * total**2 / np.sum([p**2 for p in parts], axis=0)
    gap = sides[0][0] if paired else sides[0][0] - sides[1][0]
    return Looks(runs, gap, np.sqrt(total), degrees)


def _running(
    runs: tuple[int, ...], draws: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance (ddof 1) of standard normal runs so far, at each look."""
    means, variances = np.empty((2, len(runs), draws))
    mean, squares, before = np.zeros(draws), np.zeros(draws), 0
    for look, now in enumerate(runs):
        new = now - before
        fresh = rng.standard_normal(draws) / math.sqrt(new)
        within = rng.chisquare(new - 1, draws) if new > 1 else 0.0
        squares += within + (fresh - mean) ** 2 * (before * new / now)
        mean += (fresh - mean) * (new / now)
        means[look], variances[look] = mean, squares / (now - 1)
        before = now
    return means, variances
