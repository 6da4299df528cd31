"""One pass over runs × examples: what every decomposition needs, and nothing of their size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.types import FloatArray, Predictions
from curvewise.variance._bits import packed_totals

TWINS_UP_TO = 2 * 10**7
"""Cells up to which runs are compared with each other, to find the same run given twice."""


@dataclass(frozen=True, eq=False)
class Totals:
    """What is kept of the errors of R runs on n examples.

    Attributes
    ----------
    run : ndarray, shape (runs,)
        Mean error of each run.
    example : ndarray, shape (examples,)
        Mean error of each example over runs.
    noise : float
        Σ over groups of the variance between runs of the group's total, divided by n²: the
        variance that the test error would have if groups varied independently. Without groups
        each example is its own.
    concentration : float
        Σ m² / n² over the sizes m of the groups: 1/n without groups.
    cell_variance : float
        Mean over examples of the variance between runs.
    repeat_variance : float
        Mean variance between repeats of one example in one run; NaN without repeats.
    repeats : int
        Samples of an example in a run.
    unit : {"fraction", "loss", "score"}
        Errors that are 0 or 1 (or means of such over repeats), losses, or negated scores.
    groups : ndarray of int, shape (examples,), optional
        Group of each example.
    twins : int
        Runs that repeat an earlier run on every example.
    assumed : bool
        Whether 0/1 values were read as errors though nothing says that 1 means wrong.
    """

    run: FloatArray
    example: FloatArray
    noise: float
    concentration: float
    cell_variance: float
    repeat_variance: float = float("nan")
    repeats: int = 1
    unit: str = "fraction"
    groups: NDArray[np.int64] | None = None
    twins: int = 0
    assumed: bool = False

    @property
    def binary(self) -> bool:
        """Whether each run was either right or wrong on an example."""
        return self.unit == "fraction" and self.repeats == 1

    @property
    def runs(self) -> int:
        """How many runs."""
        return len(self.run)

    @property
    def examples(self) -> int:
        """How many examples."""
        return len(self.example)

    @property
    def units(self) -> int:
        """How many groups of examples; the examples themselves without groups."""
        return self.examples if self.groups is None else int(self.groups.max()) + 1


class Moments:
    """Means and sums of squared deviations of columns, merged block by block."""

    def __init__(self, columns: int) -> None:
        self.count = 0
        self.mean = np.zeros(columns)
        self.squares = np.zeros(columns)

    def add(self, block: NDArray[Any]) -> None:
        """Take in some more rows."""
        rows = len(block)
        mean = block.mean(axis=0, dtype=np.float64)
        shift = mean - self.mean
        total = self.count + rows
        self.squares += ((block - mean) ** 2).sum(axis=0)
        self.squares += shift**2 * (self.count * rows / total)
        self.mean += shift * (rows / total)
        self.count = total

    @property
    def variance(self) -> FloatArray:
        """Variance of each column, ddof 1."""
        return self.squares / (self.count - 1)


def measure_totals(predictions: Predictions) -> Totals:
    """Read the predictions once and keep the totals."""
    if predictions.runs < 2:
        raise InputError(
            "predictions holds one run: the variance between runs needs at least two. One run of"
            " each training can be compared, with weaker evidence."
        )
    if predictions.examples < 2:
        raise InputError("predictions holds one example: a test set needs at least two.")
    if predictions.groups is not None and len(np.unique(predictions.groups)) < 2:
        raise InputError("groups puts all examples into one group: at least two are needed.")
    if predictions.packed is not None and predictions.groups is None:
        return _packed(predictions)
    if predictions.binary and predictions.groups is None:
        return _counted(predictions)
    return _averaged(predictions)


def totals_of_counts(
    run: FloatArray, wrong: NDArray[Any], runs: int | None = None, twins: int = 0
) -> Totals:
    """Totals of 0/1 errors from each run's mean and each example's number of wrong runs."""
    number = len(run) if runs is None else runs
    p = wrong / number
    v = number / (number - 1) * p * (1 - p)
    n = len(wrong)
    return Totals(
        run=run,
        example=p,
        noise=float(v.sum()) / n**2,
        concentration=1 / n,
        cell_variance=float(v.mean()),
        twins=twins,
    )


def _packed(predictions: Predictions) -> Totals:
    n = predictions.examples
    by_run, by_example = packed_totals((block for _, block in predictions.blocks()), n)
    if predictions.higher_is_better:
        by_run, by_example = n - by_run, predictions.runs - by_example
    return totals_of_counts(by_run / n, by_example)


def _counted(predictions: Predictions) -> Totals:
    n = predictions.examples
    wrong = np.zeros(n, dtype=np.int64)
    by_run: list[NDArray[Any]] = []
    seen = _Seen(predictions)
    for _, errors in predictions.error_blocks():
        seen.add(errors)
        by_run.append(np.count_nonzero(errors, axis=1))
        for part in _rows(errors, 255):  # so that sums of 0/1 bytes fit a byte
            wrong += np.add.reduce(part, axis=0, dtype=np.uint8)
    return totals_of_counts(np.concatenate(by_run) / n, wrong, twins=seen.twins)


def _averaged(predictions: Predictions) -> Totals:
    groups = predictions.groups
    n, repeats = predictions.examples, predictions.repeats
    codes = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1].ravel()
    order, sizes = np.argsort(codes, kind="stable"), np.bincount(codes)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    cells, together = Moments(n), Moments(len(sizes))
    by_run: list[FloatArray] = []
    within, seen = 0.0, _Seen(predictions)
    for _, errors in predictions.error_blocks(repeats=True):
        seen.add(errors)
        means = errors.mean(axis=2, dtype=np.float64)
        if repeats > 1:
            within += float(errors.var(axis=2, ddof=1).sum())
        by_run.append(means.mean(axis=1))
        cells.add(means)
        if groups is not None:
            together.add(np.add.reduceat(means[:, order], starts, axis=1))
    spread = cells.variance
    return Totals(
        run=np.concatenate(by_run),
        example=cells.mean,
        noise=float((spread if groups is None else together.variance).sum()) / n**2,
        concentration=float((sizes.astype(np.float64) ** 2).sum()) / n**2,
        cell_variance=float(spread.mean()),
        repeat_variance=within / (predictions.runs * n) if repeats > 1 else float("nan"),
        repeats=repeats,
        unit=predictions.unit,
        groups=None if groups is None else codes,
        twins=seen.twins,
    )


def _rows(block: NDArray[Any], size: int) -> Iterator[NDArray[Any]]:
    for start in range(0, len(block), size):
        yield block[start : start + size]


class _Seen:
    """Counts runs that repeat an earlier one exactly, where that is cheap to know."""

    def __init__(self, predictions: Predictions) -> None:
        self.rows: set[int] = set()
        self.twins = 0
        self.on = predictions.runs * predictions.examples * predictions.repeats <= TWINS_UP_TO

    def add(self, block: NDArray[Any]) -> None:
        if not self.on:
            return
        if block.dtype == np.uint8:  # a run with hardly any errors may repeat by chance
            wrong = np.count_nonzero(block.reshape(len(block), -1), axis=1)
            block = block[(wrong >= 20) & (wrong <= block[0].size - 20)]
        for row in block:
            mark = hash(row.tobytes())
            self.twins += mark in self.rows
            self.rows.add(mark)
