"""Means over runs × examples with both sampled: several quantities measured in each cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri, stdtrit

from curvewise.stats import cluster_degrees, cluster_variance
from curvewise.types import FloatArray, Interval
from curvewise.variance.anova import satterthwaite


class Crossed:
    """Means by run and totals by example (or group) of several quantities, and their products.

    Parameters
    ----------
    runs, examples : int
        The size of the table.
    count : int
        Quantities in each cell.
    groups : ndarray of int, shape (examples,), optional
        Group of each example, numbered from 0; groups are sampled whole.
    """

    def __init__(
        self, runs: int, examples: int, count: int, groups: NDArray[np.int64] | None = None
    ) -> None:
        self.runs, self.examples = runs, examples
        self.sizes = np.ones(examples) if groups is None else np.bincount(groups).astype(np.float64)
        self.by_run = np.zeros((count, runs))
        self.by_unit = np.zeros((count, self.units))
        self._products = np.zeros((count, count))
        self._order = None if groups is None else np.argsort(groups, kind="stable")
        self._starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.intp)

    @property
    def units(self) -> int:
        """How many examples, or groups of them."""
        return len(self.sizes)

    @property
    def means(self) -> FloatArray:
        """Mean of each quantity over all cells."""
        values: FloatArray = self.by_run.mean(axis=1)
        return values

    def add(self, start: int, blocks: Sequence[NDArray[Any]]) -> None:
        """Take in some runs from ``start`` on: one block per quantity."""
        totals = [self._totals(block) for block in blocks]
        for i, total in enumerate(totals):
            self.by_run[i, start : start + len(total)] = total.sum(axis=1) / self.examples
            self.by_unit[i] += total.sum(axis=0) / self.runs
            for j, other in enumerate(totals):
                self._products[i, j] += float(np.vdot(total, other))

    def _totals(self, block: NDArray[Any]) -> NDArray[Any]:
        if self._order is None:
            return block
        totals: NDArray[Any] = np.add.reduceat(block[:, self._order], self._starts, axis=1)
        return totals

    def noise(self) -> FloatArray:
        """Covariances of the means of a run that come from its own answers to these examples."""
        runs, n = self.runs, self.examples
        apart = (self._products - runs * self.by_unit @ self.by_unit.T) / (runs - 1) / n**2
        weight = float((self.sizes**2).sum()) / n**2
        values: FloatArray = (apart - weight * np.atleast_2d(np.cov(self.by_run))) / (1 - weight)
        return values


class Spread:
    """How far a weighted sum of means may be off, runs and examples both counted as sampled.

    ``run_weights`` say how far the sum moves with the mean of one run: the weights themselves,
    or twice as far where a quantity is a mean over pairs of the same runs.
    """

    def __init__(
        self, crossed: Crossed, weights: Sequence[float], run_weights: Sequence[float]
    ) -> None:
        w, u = np.asarray(weights), np.asarray(run_weights)
        runs = crossed.runs
        self.runs, self.units = runs, crossed.units
        self.value = float(w @ crossed.means)
        away = w @ (crossed.by_unit - np.outer(crossed.means, crossed.sizes))
        by_run = float(np.var(u @ crossed.by_run, ddof=1)) / runs
        by_unit = float(cluster_variance(away, crossed.sizes))
        shared = max(0.0, float(u @ crossed.noise() @ u)) / runs
        self.variance = max(by_run, by_unit, by_run + by_unit - shared)
        degrees = np.array([runs - 1.0, cluster_degrees(crossed.sizes)])
        self.degrees = min(satterthwaite(self.variance, np.array([by_run, by_unit]), degrees), 1e9)

    def half_width(self, level: float) -> float:
        """Half of a t interval."""
        return float(stdtrit(self.degrees, (1 + level) / 2)) * math.sqrt(self.variance)

    def rate(self, level: float) -> Interval:
        """The interval of a rate: that of as many independent answers as have this variance.

        Clopper and Pearson's with an effective number of answers (Korn and Graubard 1998), fewer
        where the variance is known badly. An end is no nearer to 0 or 1 than :meth:`unseen`.
        """
        p = min(1.0, max(0.0, self.value))
        tail = (1 - level) / 2
        most = self.runs * self.units
        answers = min(most, p * (1 - p) / self.variance) if self.variance > 0 else most
        answers *= float(ndtri(tail) / stdtrit(self.degrees, tail)) ** 2
        ends = [_beta(p * answers, (1 - p) * answers + 1, tail)]
        ends.append(_beta(p * answers + 1, (1 - p) * answers, 1 - tail))
        unseen = self.unseen(level)
        return Interval(p, min(ends[0], 1 - unseen), max(ends[1], unseen), level)

    def unseen(self, level: float) -> float:
        """The largest share of examples (or groups) of which a sample may well hold none."""
        return -math.expm1(math.log((1 - level) / 2) / self.units)


def _beta(a: float, b: float, chance: float) -> float:
    """A quantile of the beta distribution, at its ends where that is all there is."""
    if a <= 0 or b <= 0:
        return 0.0 if a <= 0 else 1.0
    return float(betaincinv(a, b, chance))
