"""Differences between measures on the same checkpoints and tasks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from curvewise.errors import InputError
from curvewise.ranking.agreement import CORRELATIONS, FEWEST, MeanError, known_mean, metric_of_tasks, resampled, two_way
from curvewise.ranking.scores import UNION, CheckpointScores
from curvewise.stats.tests import holm, sign_flip_pvalue
from curvewise.text import arg, format_number
from curvewise.types.results import Interval, Result
from curvewise.types.units import FloatArray

# Tasks below which no arrangement of signs is rarer than 5%.
ENOUGH_TASKS = 6


@dataclass(frozen=True, eq=False)
class ComparisonRow:
    """Difference between two measures in how well they rank.

    Attributes
    ----------
    one, two : str
        The measures.
    group : str
        Group of the checkpoints.
    value : str
        Metric that is compared: "kendall", "pearson", …
    difference : Interval
        Mean over the tasks of the value of ``one`` less that of ``two``.
    pvalue : float
        Two-sided, of no difference for other checkpoints and tasks like these. NaN for Recall@k and
        Rel@k of one task.
    adjusted : float
        The same adjusted by Holm's method for all comparisons made together.
    task_pvalue : float
        Of no difference for these checkpoints and other tasks: the share of random signs with which
        differences are as large. NaN with fewer than six tasks.
    tasks, checkpoints : int
        Numbers of both.
    test : str
        Method behind ``pvalue``.
    """

    one: str
    two: str
    group: str
    value: str
    difference: Interval
    pvalue: float
    adjusted: float
    task_pvalue: float
    tasks: int
    checkpoints: int
    test: str


@dataclass(frozen=True, eq=False)
class RankingComparisons(Result):
    """Differences between pairs of measures.

    Attributes
    ----------
    rows : tuple of ComparisonRow
        A row for each pair and group.
    """

    rows: tuple[ComparisonRow, ...]
    warnings: tuple[str, ...] = ()

    def columns(self) -> dict[str, list[Any]]:
        """Return a row for each pair of measures and group."""
        names = ("group", "one", "two", "value", "difference", "low", "high", "pvalue", "adjusted", "task_pvalue")
        found = {name: [getattr(r, name, None) for r in self.rows] for name in (*names, "tasks", "checkpoints", "test")}
        ends = zip(("difference", "low", "high"), ("estimate", "low", "high"), strict=True)
        return found | {name: [getattr(r.difference, end) for r in self.rows] for name, end in ends}

    def sentences(self) -> str:
        """Return a sentence for each pair."""
        return "\n".join(
            f"{r.group}: {r.value} of {r.one} less that of {r.two}: {r.difference}, "
            f"p = {format_number(r.pvalue, 2)} ({format_number(r.adjusted, 2)} for all comparisons together)."
            for r in self.rows
        )


def compare_pairs(
    pool: Pool,
    pairs: Sequence[tuple[str, str]],
    value: str,
    level: float,
    permutations: int,
    rng: int | np.random.Generator,
) -> RankingComparisons:
    """Compare pairs of measures on the checkpoints of a pool that have both.

    Differences of correlations have Student's t with the variance over tasks and the jackknife's
    over checkpoints; those of Recall@k and Rel@k, for which there is no jackknife, with the
    variance of a bootstrap over tasks and checkpoints.
    """
    generator = np.random.default_rng(rng)
    rows = [_pair(pool, one, two, value, level, permutations, generator) for one, two in pairs]
    known = np.array([i for i, r in enumerate(rows) if not math.isnan(r.pvalue)], dtype=np.intp)
    adjusted = np.full(len(rows), np.nan)
    adjusted[known] = holm([rows[i].pvalue for i in known])
    found = tuple(replace(r, adjusted=float(p)) for r, p in zip(rows, adjusted, strict=True))
    return RankingComparisons(found)


def _pair(
    pool: Pool, one: str, two: str, value: str, level: float, permutations: int, rng: np.random.Generator
) -> ComparisonRow:
    # Only checkpoints that have both scores: otherwise the pools would differ, not the measures.
    both = ~np.isnan(pool.scores[one]) & ~np.isnan(pool.scores[two])
    scores = [np.where(both, pool.scores[m], np.nan) for m in (one, two)]
    (first, first_without), (second, second_without) = (metric_of_tasks(s, pool.accuracy, value) for s in scores)
    told = ~np.isnan(first) & ~np.isnan(second)
    difference = first[told] - second[told]
    usable = (both & ~np.isnan(pool.accuracy))[told]
    count = int(usable.any(axis=0).sum())
    most = int(usable.sum(axis=1).max(initial=0))
    flipped = math.nan
    if len(difference) >= ENOUGH_TASKS:
        flipped = sign_flip_pvalue(difference, draws=permutations, rng=rng)
    where = "checkpoints and tasks" if len(difference) > 1 else "checkpoints"
    test = f"{'jackknife' if value in CORRELATIONS else 'bootstrap'} over {where}"
    if value in CORRELATIONS:
        without = (first_without - second_without)[told]
        interval, pvalue = _jackknife_test(difference, without, most, level)
    else:
        interval, pvalue = _bootstrap_test(
            difference, [s[told] for s in scores], pool.accuracy[told], value, level, rng
        )
    return ComparisonRow(
        one=one,
        two=two,
        group=pool.group,
        value=value,
        difference=interval,
        pvalue=pvalue,
        adjusted=math.nan,
        task_pvalue=flipped,
        tasks=len(difference),
        checkpoints=count,
        test=test,
    )


def _jackknife_test(difference: FloatArray, without: FloatArray, most: int, level: float) -> tuple[Interval, float]:
    """Return the interval and p-value of a mean difference of correlations, over at most so many checkpoints."""
    if not len(difference):
        return Interval(math.nan, math.nan, math.nan, level), math.nan
    mean = float(difference.mean())
    spread = two_way(difference, without)
    if most < FEWEST:
        return Interval(mean, -2.0, 2.0, level), math.nan
    if not spread.error:
        # Every pair of checkpoints says the same; half as many pairs as checkpoints are independent of each other.
        pvalue = 2.0 ** (1 - most // 2) if mean else 1.0
        return Interval(mean, -2.0 if mean else 0.0, 2.0 if mean else 0.0, level), pvalue
    half = spread.half(level)
    pvalue = 2 * float(stdtr(spread.degrees, -abs(mean) / spread.error))
    return Interval(mean, max(-2.0, mean - half), min(2.0, mean + half), level), pvalue


def _bootstrap_test(
    difference: FloatArray,
    scores: Sequence[FloatArray],
    accuracy: FloatArray,
    value: str,
    level: float,
    rng: np.random.Generator,
) -> tuple[Interval, float]:
    """Return the interval and p-value of a mean difference of Recall@k or Rel@k; unknown for one task."""
    tasks = len(difference)
    most = int((~np.isnan(scores[0]) & ~np.isnan(accuracy)).sum(axis=1).max(initial=0))
    mean = float(difference.mean()) if tasks else math.nan
    if tasks < 2 or most < FEWEST:
        return Interval(mean, math.nan, math.nan, level), math.nan
    # The same draws of tasks and checkpoints for both measures.
    seed, k = int(rng.integers(2**32)), (int(value.partition("_at_")[2]),)
    one, two = (resampled(s, accuracy, k, np.random.default_rng(seed))[value] for s in scores)
    drawn = one - two
    spread = MeanError(float(drawn[~np.isnan(drawn)].std(ddof=1)), min(tasks, most) - 1.0)
    if not spread.error:  # the same in every task and draw: only the signs of the tasks are left
        far = 1.0 if mean else 0.0
        return Interval(mean, -far, far, level), 2.0 ** (1 - tasks) if mean else 1.0
    half = spread.half(level)
    pvalue = 2 * float(stdtr(spread.degrees, -abs(mean) / spread.error))
    return Interval(mean, mean - half, mean + half, level), pvalue


@dataclass(frozen=True, eq=False)
class Pool:
    """Checkpoints that are ranked against each other, without references.

    Attributes
    ----------
    group : str
    tasks, checkpoints : tuple of str
    accuracy : ndarray, shape (tasks, checkpoints)
        NaN where a checkpoint was not fine-tuned, or that failed.
    failed : ndarray of bool
        Where the table has a row without an accuracy.
    scores, gflops : dict of str to ndarray
        By measure, in the same shape.
    """

    group: str
    tasks: tuple[str, ...]
    checkpoints: tuple[str, ...]
    accuracy: FloatArray
    failed: NDArray[np.bool_]
    scores: Mapping[str, FloatArray]
    gflops: Mapping[str, FloatArray]

    @property
    def uneven(self) -> int:
        """Number of tasks for which not all checkpoints of the group were tried."""
        return int((np.isnan(self.accuracy) & ~self.failed).any(axis=1).sum())

    def cost(self, measure: str, task: int | None = None) -> float:
        """Return the mean cost of a score; NaN where it is unknown."""
        values = self.gflops.get(measure, np.full_like(self.accuracy, np.nan))
        return known_mean(values if task is None else values[task])


def pools_of(table: CheckpointScores, union: bool) -> dict[str, Pool]:
    """Return the pool of each group, and at the end their union if there are several."""
    parts = table.by_group()
    if union and len(parts) > 1:
        if UNION in parts:
            raise InputError(
                f"groups holds {UNION!r}, the name of all groups together: rename it, or pass {arg('union', False)}."
            )
        _check_union(table)
        parts[UNION] = table.union()
    return {name: _pool(name, part) for name, part in parts.items()}


def _pool(group: str, table: CheckpointScores) -> Pool:
    """Arrange the rows of a group as matrices of tasks by checkpoints."""
    if not table.ranked.any():
        raise InputError(f"group {group!r} holds references only: there is nothing to rank.")
    table = table.select(table.ranked)
    tasks = table.task_names
    names = tuple(dict.fromkeys(table.checkpoints.tolist()))
    assert table.tasks is not None
    row = {task: i for i, task in enumerate(tasks)}
    column = {name: i for i, name in enumerate(names)}
    rows = np.array([row[t] for t in table.tasks.tolist()])
    columns = np.array([column[c] for c in table.checkpoints.tolist()])

    def matrix(values: NDArray[np.float64]) -> FloatArray:
        found = np.full((len(tasks), len(names)), np.nan)
        found[rows, columns] = values
        return found

    return Pool(
        group,
        tasks,
        names,
        matrix(table.accuracy),
        matrix(np.isnan(table.accuracy).astype(np.float64)) == 1,
        {name: matrix(values) for name, values in table.scores.items()},
        {name: matrix(values) for name, values in table.gflops.items()},
    )


def _check_union(table: CheckpointScores) -> None:
    """Raise unless a name in two groups is one checkpoint, with one accuracy and one score of a measure."""
    assert table.tasks is not None
    keys = list(zip(table.tasks.tolist(), table.checkpoints.tolist(), strict=True))
    first = {key: i for i, key in reversed(list(enumerate(keys)))}
    before = np.array([first[key] for key in keys])
    kinds = {"accuracies": table.accuracy, **{f"scores of {k}": v for k, v in table.scores.items()}}
    for kind, values in kinds.items():
        other = ~np.isclose(values, values[before], rtol=1e-9, atol=0, equal_nan=True)
        if other.any():
            row = int(np.flatnonzero(other)[0])
            task, name = keys[row]
            raise InputError(
                f"checkpoint {name!r} is in several groups with different {kind} for {task!r} ({values[before[row]]:g} "
                f"and {values[row]:g}): name them apart, or pass {arg('union', False)}."
            )
