"""Means of vote statistics over examples, with the share that the choice of runs has in them.

A statistic is a table f(count, runs, true) of examples × classes that is a U-statistic in the runs.
Its mean varies with the examples sampled and with the runs trained. The first is read off the
examples; the second by leaving out one run at a time, which changes one count of each example.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.types import FloatArray, Predictions
from curvewise.variance._estimates import Test, mean_test
from curvewise.variance._votes import Votes
from curvewise.variance.anova import example_variance

Statistic: TypeAlias = Callable[[NDArray[Any], int, NDArray[np.bool_]], FloatArray]

CELLS_UP_TO = 10**8
"""Runs × examples up to which runs are left out one by one; with more, their share is nothing."""


@dataclass(frozen=True, eq=False)
class Means:
    """Of one statistic: the mean of all classes together and of each class.

    Attributes
    ----------
    examples : ndarray, shape (examples,)
        The statistic of each example, all classes together.
    together : Test
        Whether the mean of all classes together is 0.
    classes : tuple of Test
        The same for each class by itself.
    """

    examples: FloatArray
    together: Test
    classes: tuple[Test, ...]


def mean_statistics(
    predictions: Predictions, votes: Votes, statistics: Mapping[str, Statistic], level: float
) -> dict[str, Means]:
    """Means over examples with tests for which both examples and runs are sampled."""
    true = np.arange(votes.classes) == votes.truth[:, None]
    small = predictions.runs * predictions.examples <= CELLS_UP_TO and predictions.runs > 3
    removed = {name: _removed(f, votes, true) for name, f in statistics.items()} if small else {}
    left_out = _leave_one_out(predictions, votes, removed) if small else {}
    return {
        name: _means(
            f(votes.counts, votes.runs, true), votes, removed.get(name), left_out.get(name), level
        )
        for name, f in statistics.items()
    }


def _removed(f: Statistic, votes: Votes, true: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """Each cell without a run that did not say this class, and what changes if it did."""
    runs = votes.runs - 1
    without = f(np.minimum(votes.counts, runs), runs, true)
    change = f(np.maximum(votes.counts - 1, 0), runs, true) - without
    return without, change


def _leave_one_out(
    predictions: Predictions, votes: Votes, removed: Mapping[str, tuple[FloatArray, FloatArray]]
) -> dict[str, FloatArray]:
    """Means of each class (runs × classes) without one run."""
    n, k = votes.counts.shape
    sums = {name: np.empty((votes.runs, k)) for name in removed}
    for start, said in predictions.label_blocks():
        place = votes.column[said.astype(np.intp, copy=False)]
        cells = place + np.arange(n) * k
        bins = (place + np.arange(len(said))[:, None] * k).ravel()
        for name, (without, change) in removed.items():
            moved = change.ravel()[cells].ravel()
            added = np.bincount(bins, weights=moved, minlength=len(said) * k)
            sums[name][start : start + len(said)] = without.sum(axis=0) + added.reshape(-1, k)
    return {name: total / n for name, total in sums.items()}


def _means(
    table: FloatArray,
    votes: Votes,
    removed: tuple[FloatArray, FloatArray] | None,
    left_out: FloatArray | None,
    level: float,
) -> Means:
    values = table.sum(axis=1)
    tests = []
    for c in range(-1, votes.classes):  # −1: all classes together
        column = values if c < 0 else table[:, c]
        parts = {"examples": example_variance(column, votes.groups)}
        twice = 0.0
        if removed is not None and left_out is not None:
            by_run = left_out.sum(axis=1) if c < 0 else left_out[:, c]
            parts["runs"] = (_jackknife(by_run), votes.runs - 1)
            twice = _within(removed[1], votes, c)
        tests.append(mean_test(float(column.mean()), parts, twice, level))
    return Means(values, tests[0], tuple(tests[1:]))


def _jackknife(left_out: FloatArray) -> float:
    return float(np.var(left_out)) * (len(left_out) - 1)


def _within(change: FloatArray, votes: Votes, c: int) -> float:
    """What runs add to the variance by their votes on single examples: it is in both parts."""
    runs, counts = votes.runs, votes.counts
    if c < 0:
        mean = (counts * change).sum(axis=1) / runs
        spread = (counts * change**2).sum(axis=1) / runs - mean**2
    else:
        share = counts[:, c] / runs
        spread = share * (1 - share) * change[:, c] ** 2
    return float(spread.sum()) * (runs - 1) / votes.examples**2
