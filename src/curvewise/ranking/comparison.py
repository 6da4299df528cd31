"""Measures against each other on the same checkpoints and tasks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from curvewise.errors import InputError
from curvewise.ranking.agreement import CORRELATIONS, FEWEST, Spread, metric_of_tasks, resampled, two_way
from curvewise.ranking.scores import UNION, CheckpointScores
from curvewise.stats.tests import holm, sign_flip_pvalue
from curvewise.text import format_number
from curvewise.types.results import Interval, Result
from curvewise.types.units import FloatArray

ENOUGH_TASKS = 6  # with fewer, no arrangement of signs is rarer than 5%


@dataclass(frozen=True, eq=False)
class Compared:
    """How much better one measure ranks than another.

    Attributes
    ----------
    one, two : str
        The measures.
    group : str
        Whose checkpoints.
    value : str
        What is compared: "kendall", "pearson", …
    difference : Interval
        Mean over the tasks of the value of ``one`` less that of ``two``.
    pvalue : float
        Two-sided, that it is 0 for other checkpoints and tasks like these. NaN for Recall@k and
        Rel@k of one task.
    adjusted : float
        By Holm's method for all comparisons made together.
    task_pvalue : float
        That it is 0 for these checkpoints and other tasks: how often differences with random signs
        are as large. NaN with fewer than six tasks.
    tasks, checkpoints : int
        How many it rests on.
    test : str
        How ``pvalue`` was found.
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
    """Measures against each other.

    Attributes
    ----------
    rows : tuple of Compared
        A row for each pair and group.
    """

    rows: tuple[Compared, ...]
    warnings: tuple[str, ...] = ()

    def columns(self) -> dict[str, list[Any]]:
        """A row for each pair of measures and group."""
        return {
            "group": [r.group for r in self.rows],
            "one": [r.one for r in self.rows],
            "two": [r.two for r in self.rows],
            "value": [r.value for r in self.rows],
            "difference": [r.difference.estimate for r in self.rows],
            "low": [r.difference.low for r in self.rows],
            "high": [r.difference.high for r in self.rows],
            "pvalue": [r.pvalue for r in self.rows],
            "adjusted": [r.adjusted for r in self.rows],
            "task_pvalue": [r.task_pvalue for r in self.rows],
            "tasks": [r.tasks for r in self.rows],
            "checkpoints": [r.checkpoints for r in self.rows],
            "test": [r.test for r in self.rows],
        }

    def summary(self) -> str:
        """A sentence for each pair."""
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
) -> Compared:
    both = ~np.isnan(pool.scores[one]) & ~np.isnan(pool.scores[two])
    scores = [np.where(both, pool.scores[m], np.nan) for m in (one, two)]
    first, second = (metric_of_tasks(s, pool.accuracy, value) for s in scores)
    told = ~np.isnan(first.values) & ~np.isnan(second.values)
    difference = first.values[told] - second.values[told]
    usable = (both & ~np.isnan(pool.accuracy))[told]
    count = int(usable.any(axis=0).sum())
    most = int(usable.sum(axis=1).max(initial=0))
    flipped = math.nan
    if len(difference) >= ENOUGH_TASKS:
        flipped = sign_flip_pvalue(difference, draws=permutations, rng=rng)
    where = "checkpoints and tasks" if len(difference) > 1 else "checkpoints"
    test = f"{'jackknife' if value in CORRELATIONS else 'bootstrap'} over {where}"
    if value in CORRELATIONS:
        without = (first.without - second.without)[told]
        interval, pvalue = _tested(difference, without, most, level)
    else:
        draw = partial(_drawn, [s[told] for s in scores], pool.accuracy[told], value, rng)
        interval, pvalue = _drawn_test(difference, draw, most, level)
    return Compared(
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


def _tested(difference: FloatArray, without: FloatArray, most: int, level: float) -> tuple[Interval, float]:
    """Interval and p-value of a mean difference of correlations."""
    if not len(difference):
        return Interval(math.nan, math.nan, math.nan, level), math.nan
    mean = float(difference.mean())
    spread = two_way(difference, without)
    if most < FEWEST:
        return Interval(mean, -2.0, 2.0, level), math.nan
    if not spread.error:
        # Every pair of checkpoints says the same; half as many pairs as checkpoints are
        # independent of each other.
        pvalue = 2.0 ** (1 - most // 2) if mean else 1.0
        return Interval(mean, -2.0 if mean else 0.0, 2.0 if mean else 0.0, level), pvalue
    half = spread.half(level)
    pvalue = 2 * float(stdtr(spread.degrees, -abs(mean) / spread.error))
    return Interval(mean, max(-2.0, mean - half), min(2.0, mean + half), level), pvalue


def _drawn(scores: Sequence[FloatArray], accuracy: FloatArray, value: str, rng: np.random.Generator) -> FloatArray:
    """Differences of two measures in the same draws of tasks and checkpoints."""
    seed, k = int(rng.integers(2**32)), (int(value.partition("@")[2]),)
    one, two = (resampled(s, accuracy, k, np.random.default_rng(seed))[value] for s in scores)
    drawn = one - two
    return drawn[~np.isnan(drawn)]


def _drawn_test(
    difference: FloatArray, draw: Callable[[], FloatArray], most: int, level: float
) -> tuple[Interval, float]:
    """Interval and p-value of a mean difference that can be drawn; not for one task."""
    tasks = len(difference)
    mean = float(difference.mean()) if tasks else math.nan
    if tasks < 2 or most < FEWEST:
        return Interval(mean, math.nan, math.nan, level), math.nan
    spread = Spread(float(draw().std(ddof=1)), min(tasks, most) - 1.0)
    if not spread.error:  # in every task and draw the same: signs of the tasks are all that tells
        far = 1.0 if mean else 0.0
        return Interval(mean, -far, far, level), 2.0 ** (1 - tasks) if mean else 1.0
    half = spread.half(level)
    pvalue = 2 * float(stdtr(spread.degrees, -abs(mean) / spread.error))
    return Interval(mean, mean - half, mean + half, level), pvalue


def check_value(value: str, known: Sequence[str]) -> None:
    """Raise unless a metric is known."""
    if value not in known:
        raise InputError(f"value={value!r}: use one of {', '.join(map(repr, known))}.")


# Checkpoints of a group as matrices of tasks by checkpoints.


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
        """Tasks for which not all checkpoints of the group were tried."""
        return int((np.isnan(self.accuracy) & ~self.failed).any(axis=1).sum())

    def cost(self, measure: str, task: int | None = None) -> float:
        """Mean cost of a score; NaN where unknown."""
        values = self.gflops.get(measure, np.full_like(self.accuracy, np.nan))
        some = values if task is None else values[task]
        known = some[~np.isnan(some)]
        return float(known.mean()) if len(known) else math.nan


def pools_of(table: CheckpointScores, union: bool) -> dict[str, Pool]:
    """The pool of each group, and of all as one at the end if there are several."""
    parts = table.by_group()
    if union and len(parts) > 1:
        if UNION in parts:
            raise InputError(
                f"groups holds {UNION!r}, which all groups together are called: rename it, or pass union=False."
            )
        _check_union(table)
        parts[UNION] = table.union()
    return {name: _pool(name, part) for name, part in parts.items()}


def _pool(group: str, table: CheckpointScores) -> Pool:
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
    """One name in two groups is one checkpoint, with one accuracy and one score of a measure."""
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
                f"checkpoint {name!r} is in several groups with different {kind} for {task!r} "
                f"({values[before[row]]:g} and {values[row]:g}): name them apart, or pass "
                "union=False."
            )
