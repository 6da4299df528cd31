"""Fisher's exact test for many fourfold tables with one number of runs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.types import FloatArray
from curvewise.variance._bits import IntArray

TIE = 1e-7
"""Tables whose chance is larger by less than this count as no more likely than the one seen."""

SMALL = 1e-13
"""Terms below this part of a sum are left out."""


class FisherTest:
    """Two-sided p-values of co-occurrence, given how often each of two things occurs.

    Parameters
    ----------
    runs : int
        In how many runs both were watched.
    """

    def __init__(self, runs: int) -> None:
        self.runs = runs
        self._log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, runs + 1)))])

    def pvalues(self, a: IntArray, b: IntArray, both: IntArray) -> FloatArray:
        """P-values: the chance of all tables that are no more likely than the one seen.

        Parameters
        ----------
        a, b : ndarray of int64
            How often each of the two occurred.
        both : ndarray of int64
            How often both did, in the same run.
        """
        runs = self.runs
        mode = (a + 1) * (b + 1) // (runs + 2)
        below = both < mode
        b, k = np.where(below, runs - b, b), np.where(below, a - both, both)
        mode = (a + 1) * (b + 1) // (runs + 2)
        here = self._log_chance(a, b, k)
        near = self._tail(a, b, k)
        other = self._mirror(a, b, mode, here + TIE)
        inside = other >= np.maximum(0, a + b - runs)
        far = np.zeros(len(k))
        if inside.any():
            x, a1, b1 = other[inside], a[inside], b[inside]
            shift = self._log_chance(a1, b1, x) - here[inside]
            far[inside] = np.exp(shift) * self._tail(a1, runs - b1, a1 - x)
        p = np.exp(here + np.log(near + far))
        whole = (k <= mode) | (self._log_chance(a, b, mode) <= here + TIE)
        return np.where(whole, 1.0, np.minimum(1.0, p))

    def _log_chance(self, a: IntArray, b: IntArray, x: IntArray) -> FloatArray:
        f, runs = self._log_factorial, self.runs
        values: FloatArray = (
            f[a] + f[runs - a] + f[b] + f[runs - b] - f[runs]
            - f[x] - f[a - x] - f[b - x] - f[runs - a - b + x]
        )  # fmt: skip
        return values

    def _mirror(self, a: IntArray, b: IntArray, mode: IntArray, limit: FloatArray) -> IntArray:
        """The largest count up to the mode with a log chance of at most ``limit``."""
        low: IntArray = np.maximum(0, a + b - self.runs) - 1  # the chance there is 0
        high: IntArray = mode + 1
        while True:
            apart = high - low > 1
            if not apart.any():
                return low
            middle = np.where(apart, (low + high) // 2, mode)
            fits = self._log_chance(a, b, middle) <= limit
            low = np.where(apart & fits, middle, low)
            high = np.where(apart & ~fits, middle, high)

    def _tail(self, a: IntArray, b: IntArray, k: IntArray) -> FloatArray:
        """Chance of k or more over that of k alone."""
        total = np.ones(len(k))
        alive = np.arange(len(k))
        x, term = k.astype(np.float64), np.ones(len(k))
        u, v, w = (c.astype(np.float64) for c in (a, b, self.runs - a - b))
        while len(alive):
            for _ in range(16):
                term = term * (u - x) * (v - x) / ((x + 1) * (w + x + 1))
                x += 1
                total[alive] += term
            keep = term > SMALL * total[alive]
            alive = alive[keep]
            x, term, u, v, w = (c[keep] for c in (x, term, u, v, w))
        return total


def smallest_pvalue(runs: int) -> float:
    """The smallest p-value that any table with so many runs can have."""
    half = runs // 2
    test = FisherTest(runs)
    one = np.array([half])
    values: NDArray[Any] = test.pvalues(one, one, one)
    return float(values[0])
