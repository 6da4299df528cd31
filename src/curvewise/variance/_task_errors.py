"""Errors of runs on many two-class tasks at once, and how well formulas predict their variance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvewise.stats import cluster_degrees, cluster_variance
from curvewise.types import FloatArray, Predictions
from curvewise.variance._votes import Votes

CHUNK = 2**19
"""Entries of the tables that are held at once."""


@dataclass(frozen=True, eq=False)
class FitOfTasks:
    """Fit of predicted to measured variances over tasks: with all runs first, then without each.

    Attributes
    ----------
    unexplained, binomial_unexplained : ndarray, shape (1 + runs,)
        SSE/SST of standard deviations, by err/2n and by the binomial.
    uncorrelated : ndarray
        One minus the squared correlation.
    error_ratio : ndarray
        Squared errors of binomial variances over those of err/2n.
    """

    unexplained: FloatArray
    binomial_unexplained: FloatArray
    uncorrelated: FloatArray
    error_ratio: FloatArray


def task_errors(
    predictions: Predictions, votes: Votes, sides: NDArray[np.bool_]
) -> NDArray[np.float32]:
    """Number of errors (runs × tasks): confusions of each run times who is on which side.

    Only confusions that occur are counted, so that many classes cost no more than their errors.
    """
    k = votes.classes
    wrong = []
    for _, said in predictions.label_blocks():
        place = votes.column[said.astype(np.intp, copy=False)]
        run, example = np.nonzero(place != votes.truth)
        pair = votes.truth[example] * k + place[run, example]
        found = np.flatnonzero(np.bincount(pair, minlength=k * k))
        number = np.zeros(k * k, dtype=np.int64)
        number[found] = np.arange(len(found))
        cells = np.bincount(run * len(found) + number[pair], minlength=len(said) * len(found))
        apart = sides[:, found // k] != sides[:, found % k]
        counts = cells.reshape(len(said), len(found)).astype(np.float32)
        wrong.append(counts @ apart.T.astype(np.float32))
    return np.concatenate(wrong)


def task_calibration(
    votes: Votes, sides: NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray, float]:
    """Disagreement on each task, t of error minus disagreement, and its degrees of freedom."""
    runs, n = votes.runs, votes.examples
    sizes = np.ones(n, dtype=np.int64) if votes.groups is None else np.bincount(votes.groups)
    disagreement, statistic = np.empty(len(sides)), np.empty(len(sides))
    for part in _chunks(len(sides), n):
        second = votes.counts @ sides[part].T.astype(np.int64)
        wrong = np.where(sides[part][:, votes.truth].T, runs - second, second) / runs
        apart = 2 * second * (runs - second) / (runs * (runs - 1))
        gap = wrong - apart
        deviation = gap - gap.mean(axis=0)
        if votes.groups is not None:
            order = np.argsort(votes.groups, kind="stable")
            starts = np.cumsum(sizes) - sizes
            deviation = np.add.reduceat(deviation[order], starts, axis=0)
        variance = cluster_variance(deviation, sizes)
        disagreement[part] = apart.mean(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            statistic[part] = np.nan_to_num(gap.mean(axis=0) / np.sqrt(variance), posinf=np.inf)
    return disagreement, statistic, cluster_degrees(sizes)


def fit_tasks(wrong: NDArray[np.float32], n: int) -> FitOfTasks:
    """Sums over tasks, for all runs and with each run left out."""
    runs, tasks = wrong.shape
    sums = np.zeros((9, runs + 1))
    for part in _chunks(tasks, runs):
        error, variance = _left_out(wrong[:, part].astype(np.float64) / n)
        calibrated, binomial = error / (2 * n), error * (1 - error) / n
        x, y, z = np.sqrt(calibrated), np.sqrt(variance), np.sqrt(binomial)
        terms = [x, y, x * x, y * y, x * y, (x - y) ** 2, (z - y) ** 2]
        terms += [(calibrated - variance) ** 2, (binomial - variance) ** 2]
        sums += np.stack([term.sum(axis=1) for term in terms])
    sx, sy, sxx, syy, sxy, off, binomial_off, squared, binomial_squared = sums
    total = syy - sy**2 / tasks
    shared = (sxy - sx * sy / tasks) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        return FitOfTasks(
            unexplained=off / total,
            binomial_unexplained=binomial_off / total,
            uncorrelated=1 - shared / (total * (sxx - sx**2 / tasks)),
            error_ratio=binomial_squared / squared,
        )


def _left_out(errors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of each column: with all rows first, then without each."""
    rows = len(errors)
    mean = errors.mean(axis=0)
    deviation = errors - mean
    squares = (deviation**2).sum(axis=0)
    without = np.maximum(0.0, squares - deviation**2 * rows / (rows - 1)) / (rows - 2)
    means = np.concatenate([mean[None], mean - deviation / (rows - 1)])
    return means, np.concatenate([squares[None] / (rows - 1), without])


def _chunks(tasks: int, rows: int) -> Iterator[slice]:
    step = max(1, CHUNK // rows)
    for start in range(0, tasks, step):
        yield slice(start, min(start + step, tasks))
