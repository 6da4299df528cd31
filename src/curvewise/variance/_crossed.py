"""Means over runs × examples with both sampled: several quantities measured in each cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.types import FloatArray, Interval
from curvewise.variance.anova import t_interval


class Crossed:
    """Means by run and by example of several quantities, and their products in the cells.

    Parameters
    ----------
    runs, examples : int
        The size of the table.
    count : int
        Quantities in each cell.
    """

    def __init__(self, runs: int, examples: int, count: int) -> None:
        self.runs, self.examples = runs, examples
        self.by_run = np.zeros((count, runs))
        self.by_example = np.zeros((count, examples))
        self._products = np.zeros((count, count))

    def add(self, start: int, blocks: Sequence[NDArray[Any]]) -> None:
        """Take in some runs from ``start`` on: one block per quantity."""
        for i, block in enumerate(blocks):
            self.by_run[i, start : start + len(block)] = block.mean(axis=1)
            self.by_example[i] += block.sum(axis=0) / self.runs
            for j, other in enumerate(blocks):
                self._products[i, j] += float(np.vdot(block, other))

    @property
    def means(self) -> FloatArray:
        """Mean of each quantity over all cells."""
        values: FloatArray = self.by_run.mean(axis=1)
        return values

    def residual(self) -> FloatArray:
        """Covariances in a cell beyond its run and its example."""
        runs, n, mean = self.runs, self.examples, self.means
        by_run, by_example = self.by_run - mean[:, None], self.by_example - mean[:, None]
        total = self._products - runs * n * np.outer(mean, mean)
        rest = total - n * by_run @ by_run.T - runs * by_example @ by_example.T
        values: FloatArray = rest / ((runs - 1) * (n - 1))
        return values


def crossed_interval(
    crossed: Crossed, weights: Sequence[float], run_weights: Sequence[float], level: float
) -> Interval:
    """A weighted sum of means, runs and examples both counted as sampled.

    ``run_weights`` say how far the mean moves with the mean of one run: the weights themselves,
    or twice as far where a quantity is a mean over pairs of the same runs.
    """
    w, u = np.asarray(weights), np.asarray(run_weights)
    runs, n = crossed.runs, crossed.examples
    by_run = float(np.var(u @ crossed.by_run, ddof=1)) / runs
    by_example = float(np.var(w @ crossed.by_example, ddof=1)) / n
    shared = max(0.0, float(u @ crossed.residual() @ u)) / (runs * n)
    variance = max(by_run, by_example, by_run + by_example - shared)
    parts, degrees = np.array([by_run, by_example]), np.array([runs - 1.0, n - 1.0])
    return t_interval(float(w @ crossed.means), variance, parts, degrees, level)
