"""The spread of numbers made of mean risks, from that between runs of the same cell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from curvewise.stats.correlation import pearson
from curvewise.types import FloatArray, Interval

MANY = 1e9  # degrees of freedom beyond which Student's t is normal
STEADY = 0.5  # degrees of freedom that the spread of all methods has in that of a cell


@dataclass(frozen=True)
class Error:
    """A standard error with its degrees of freedom; NaN where there is nothing to go by."""

    std: float
    degrees: float

    def interval(self, estimate: float, level: float) -> Interval:
        """Student's t around an estimate."""
        half = self.half(level)
        return Interval(estimate, estimate - half, estimate + half, level)

    def half(self, level: float) -> float:
        """Half the width of an interval."""
        if math.isnan(self.std) or self.std == 0:
            return self.std
        return self.std * float(stdtrit(min(self.degrees, MANY), 0.5 + level / 2))

    def pvalue(self, estimate: float, value: float = 0.0) -> float:
        """Two-sided, that the truth is ``value``."""
        away = abs(estimate - value)
        if math.isnan(self.std) or math.isnan(away):
            return math.nan
        if self.std == 0:
            return 1.0 if away == 0 else 0.0
        return float(2 * stdtr(min(self.degrees, MANY), -away / self.std))


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of a task, each in the cell of a method and a size.

    Attributes
    ----------
    value : ndarray, shape (runs,)
        Risks; none is NaN.
    cell : ndarray of int, shape (runs,)
        Which cell each belongs to.
    size : ndarray of float, shape (cells,)
        Training size of each cell.
    fold : ndarray of int, optional
        Which runs of a size were trained on the same examples.
    line : ndarray of int, optional
        Which runs of different sizes are of the same method and seed, or may be.
    """

    value: FloatArray
    cell: NDArray[np.int64]
    size: FloatArray
    fold: NDArray[np.int64] | None = None
    line: NDArray[np.int64] | None = None

    @cached_property
    def count(self) -> NDArray[np.int64]:
        """Runs of each cell."""
        return np.bincount(self.cell, minlength=len(self.size))

    @cached_property
    def mean(self) -> FloatArray:
        """Mean risk of each cell."""
        return self._per_cell(self.value) / self.count

    @cached_property
    def variance(self) -> FloatArray:
        """Between the runs of each cell; NaN with one run."""
        squares = self._per_cell(self._residual**2)
        return np.where(self.count > 1, squares / np.maximum(self.count - 1, 1), np.nan)

    @cached_property
    def by_fold(self) -> bool:
        """Whether runs are told apart by training subset: some method has two at some size."""
        return self.fold is not None and bool((self._folds > 1).any())

    @cached_property
    def degrees(self) -> NDArray[np.int64]:
        """Of the variance of each cell: its runs, or its training subsets, less 1."""
        return (self._folds if self.by_fold else self.count) - 1

    @property
    def replicated(self) -> bool:
        """Whether any cell tells a spread."""
        return bool((self.degrees > 0).any())

    def of_mean(self, cell: int) -> FloatArray:
        """How much each run moves the mean of a cell."""
        return np.where(self.cell == cell, 1 / self.count[cell], 0.0)

    def of_means(self, cells: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
        """Variance of the mean of each cell, and its degrees of freedom; NaN and ∞ if unknown."""
        found = [self.error(self.of_mean(c), []) for c in cells]
        variance = np.array([e.std**2 for e in found])
        return variance, np.array([MANY if math.isnan(e.degrees) else e.degrees for e in found])

    def covariance(self, one: int, two: int) -> float:
        """Of the means of two cells; 0 unless they share training subsets."""
        a, b = self.of_mean(one), self.of_mean(two)
        if not self.by_fold or not self.replicated:
            return 0.0
        return (self.error(a + b, []).std ** 2 - self.error(a - b, []).std ** 2) / 4

    def error(self, influence: FloatArray, controls: list[tuple[float, float]]) -> Error:
        """Standard error of Σ influence × risk over runs, with that of controls.

        Parameters
        ----------
        influence : ndarray, shape (runs,)
            How much each run moves the number.
        controls : list of (float, float)
            Standard deviations that independent controls add, with their degrees of freedom.
        """
        if not self.replicated:
            return Error(math.nan, math.nan)
        lent = self._lent(influence)
        more = [std**2 for std, _ in controls]
        free = [degrees for _, degrees in controls]
        if self.by_fold:
            parts, degrees = self._by_subset(influence, lent)
            return together(np.array([*parts, *more]), np.array([*degrees, *free]))
        weight, along = self._per_cell(influence**2) + lent, self._along(influence)
        known = self.degrees > 0
        # Cells that move together tell less of their spread than as many independent ones: from
        # no fewer degrees of freedom (along = 1) to those of one cell for each method (all of them
        # move alike). The square root is a choice between these that simulation bears out
        # (benchmarks/transfer_coverage.py, "seeds over sizes").
        degrees = np.array([*self.degrees[known] / math.sqrt(along), *free])
        own, steady = (
            together(np.array([*(weight * spread)[known] * along, *more]), degrees)
            for spread in (self.variance, self._steadied)
        )
        return Error(own.std, min(own.degrees, steady.degrees))

    def _along(self, influence: FloatArray) -> float:
        """How much more than by chance the sums over sizes vary, of one method and seed each."""
        if self.line is None:
            return 1.0
        moved = influence * self._scaled
        apart = float((moved**2).sum())
        return max(1.0, float((np.bincount(self.line, moved) ** 2).sum()) / apart) if apart else 1.0

    def persistence(self) -> tuple[float, float]:
        """Mean correlation of runs over pairs of sizes of a method, by line; and its z-score.

        Each pair of cells with s lines in common has a correlation r, which under random orders of
        its runs has mean 0 and variance 1/(s − 1); pairs are uncorrelated then. NaN without pairs.
        """
        if self.line is None:
            return math.nan, math.nan
        lines = [dict(zip(self.line[self.cell == c], self.value[self.cell == c], strict=True))
                 for c in range(len(self.size))]  # fmt: skip
        total, weight = 0.0, 0
        for one, two in combinations(lines, 2):
            shared = sorted(one.keys() & two.keys())
            if len(shared) < 2:
                continue
            r = pearson(np.array([[one[k] for k in shared]]), np.array([two[k] for k in shared]))[0]
            if not math.isnan(r):
                total += (len(shared) - 1) * float(r)
                weight += len(shared) - 1
        return (total / weight, total / math.sqrt(weight)) if weight else (math.nan, math.nan)

    @cached_property
    def _steadied(self) -> FloatArray:
        """Variance of each cell, drawn a little to that of all cells of its size.

        Degrees of freedom rest on it where it makes them fewer: next to a mean of many runs, two
        runs that are near each other by chance would hide that most of the error is theirs.
        """
        _, size = np.unique(self.size, return_inverse=True)
        squares = np.nan_to_num(self.variance) * self.degrees
        pooled = np.bincount(size, squares) / np.maximum(np.bincount(size, self.degrees), 1)
        found: FloatArray = (squares + STEADY * pooled[size]) / (self.degrees + STEADY)
        return found

    def _by_subset(self, influence: FloatArray, lent: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Variances that sizes bring in: what moves with a training subset is summed first.

        A small subset may be part of a large one of the same name, so that sizes may not be
        independent: if sums over all sizes vary more than the sizes by themselves, that counts.
        """
        _, size = np.unique(self.size, return_inverse=True)
        moved = influence * self._scaled
        sums = np.zeros((size.max() + 1, self._fold_codes.max() + 1))
        np.add.at(sums, (size[self.cell], self._fold_codes), moved)
        apart = (sums**2).sum(axis=1)
        nested = float((sums.sum(axis=0) ** 2).sum())
        more = max(1.0, nested / float(apart.sum())) if apart.any() else 1.0
        borrowed = lent * self._fold_variance
        weight = np.where(self.degrees > 0, self._per_fold_squares(moved) + borrowed, 0.0)
        total = np.bincount(size, weight, len(sums))
        lost = np.bincount(size, weight / np.maximum(self.degrees, 1), len(sums))
        parts = more * apart + np.bincount(size, borrowed, len(sums))
        used = total > 0
        return parts[used], total[used] / lost[used]

    def _lent(self, influence: FloatArray) -> FloatArray:
        """What cells without a spread of their own make others count for.

        Such a cell takes the pooled variance of cells of its size, else of the nearest smaller
        size that has some (spread falls with size), else of the nearest larger one.
        """
        known, squares = self.degrees > 0, self._per_cell(influence**2)
        found = np.zeros(len(self.size))
        lending = np.unique(self.size[known])
        for i in np.flatnonzero(~known & (squares > 0)):
            below = lending[lending <= self.size[i]]
            pool = known & (self.size == (below[-1] if len(below) else lending[0]))
            found[pool] += squares[i] * self.degrees[pool] / self.degrees[pool].sum()
        return found

    def _per_cell(self, values: FloatArray) -> FloatArray:
        return np.bincount(self.cell, values, len(self.size)).astype(np.float64)

    @cached_property
    def _residual(self) -> FloatArray:
        found: FloatArray = self.value - self.mean[self.cell]
        return found

    @cached_property
    def _fold_codes(self) -> NDArray[np.int64]:
        return np.zeros(len(self.value), dtype=np.int64) if self.fold is None else self.fold

    @cached_property
    def _folds(self) -> NDArray[np.int64]:
        """Training subsets of each cell."""
        pairs = np.unique(np.stack([self.cell, self._fold_codes]), axis=1)
        return np.bincount(pairs[0], minlength=len(self.size))

    @cached_property
    def _scaled(self) -> FloatArray:
        """Residuals, larger by what the mean of a cell takes from them."""
        free = self.degrees[self.cell]
        return self._residual * np.sqrt((free + 1) / np.maximum(free, 1))

    @cached_property
    def _fold_variance(self) -> FloatArray:
        """Variance of a run of each cell as its training subsets tell it."""
        return self._per_fold_squares(self._scaled) / self.count

    def _per_fold_squares(self, values: FloatArray) -> FloatArray:
        """Sums of values over the runs of a cell and subset, squared and added up by cell."""
        sums = np.zeros((len(self.size), self._fold_codes.max() + 1))
        np.add.at(sums, (self.cell, self._fold_codes), values)
        found: FloatArray = (sums**2).sum(axis=1)
        return found


def together(parts: FloatArray, degrees: FloatArray) -> Error:
    """Independent variances added up, with Satterthwaite's degrees of freedom."""
    total = float(parts.sum())
    if total <= 0:
        return Error(0.0, math.inf)
    lost = float(((parts / total) ** 2 / degrees).sum())
    return Error(math.sqrt(total), 1 / lost if lost > 0 else math.inf)
