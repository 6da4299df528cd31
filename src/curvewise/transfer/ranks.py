"""How the ranking of methods changes with the training size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import stdtrit

from curvewise.stats import holm, probability_lowest
from curvewise.tables import number
from curvewise.transfer._cells import Task
from curvewise.transfer._spread import MANY
from curvewise.types import Result


@dataclass(frozen=True)
class MethodRank:
    """The place of one method at one size of a task.

    Attributes
    ----------
    task, method : str
    n : float
        Training size.
    rank : float
        1 is the lowest mean risk; methods with the same share their places.
    low, high : int
        Places that it may have: behind all methods that are surely better and before all that are
        surely worse, by Holm's method over all pairs at this size.
    best : float
        Chance that its risk is the lowest, as far as the runs tell; NaN where they do not.
    among : int
        Methods that were measured at this size.
    """

    task: str
    method: str
    n: float
    rank: float
    low: int
    high: int
    best: float
    among: int


@dataclass(frozen=True, eq=False)
class TransferRanks(Result):
    """Places of methods by training size.

    Attributes
    ----------
    rows : tuple of MethodRank
        Methods within sizes within tasks.
    level : float
        How sure the places of a size are together.
    scratch : str
        Name of the method that starts from nothing.
    """

    rows: tuple[MethodRank, ...]
    level: float
    scratch: str = "scratch"
    warnings: tuple[str, ...] = ()

    def columns(self) -> dict[str, list[Any]]:
        """A row for each task, size and method."""
        names = ("task", "n", "method", "rank", "low", "high", "best", "among")
        return {name: [getattr(r, name) for r in self.rows] for name in names}

    def at(self, task: str, n: float) -> dict[str, MethodRank]:
        """The methods at one size, by name."""
        return {r.method: r for r in self.rows if r.task == task and r.n == n}

    def summary(self) -> str:
        """Who leads at each size."""
        said = []
        for task, n in dict.fromkeys((r.task, r.n) for r in self.rows):
            first = [r for r in self.at(task, n).values() if r.low == 1]
            best = min(first, key=lambda r: r.rank)
            others = len(first) - 1
            text = f"{task}, n = {number(n)}: {best.method} is first of {best.among}"
            said.append(text + (f"; {others} more may be." if others else ", surely."))
        return "\n".join(said)


def rank_methods(tasks: Sequence[Task], level: float, scratch: str) -> TransferRanks:
    """Places of all methods at every size of every task."""
    rows = []
    for task in tasks:
        for n in sorted({n for _, n in task.cells}):
            rows += _at_size(task, n, level)
    return TransferRanks(tuple(rows), level, scratch)


def _at_size(task: Task, n: float, level: float) -> list[MethodRank]:
    names = [m for m in (task.scratch, *task.methods) if (m, n) in task.cells]
    if len(names) < 2:
        return []
    found = [task.calibrated(name, n) for name in names]
    values = np.array([e.value for e in found])
    better, worse = np.zeros(len(names), dtype=int), np.zeros(len(names), dtype=int)
    pairs = list(combinations(range(len(names)), 2))
    # Which of two risks is lower does not depend on the controls, however vague these are.
    gaps = [replace(found[i] - found[j], blind=0.0, maximal=0.0) for i, j in pairs]
    tested = [gap.error.pvalue(gap.value) for gap in gaps]
    sure = holm([1.0 if math.isnan(p) else p for p in tested]) <= 1 - level
    for (i, j), gap, told in zip(pairs, gaps, sure, strict=True):
        if told:
            low, high = (i, j) if gap.value < 0 else (j, i)
            better[high] += 1
            worse[low] += 1
    places = 0.5 * (1 + (values[:, None] > values).sum(1) + (values[:, None] >= values).sum(1))
    chance = _chances(task, names, n)
    return [
        MethodRank(
            task=task.name,
            method=name,
            n=n,
            rank=float(places[i]),
            low=int(1 + better[i]),
            high=int(len(names) - worse[i]),
            best=chance[i],
            among=len(names),
        )
        for i, name in enumerate(names)
    ]


def _chances(task: Task, names: Sequence[str], n: float) -> list[float]:
    """Chance that each has the lowest mean risk; the controls move all alike."""
    cells = [task.cells[name, n] for name in names]
    means = task.runs.mean[cells]
    errors = [task.runs.error(task.runs.of_mean(c), []) for c in cells]
    if any(math.isnan(e.std) for e in errors):
        return [math.nan] * len(names)
    points = (np.arange(200) + 0.5) / 200
    drawn = [
        m + e.std * stdtrit(min(e.degrees, MANY), points)
        for m, e in zip(means, errors, strict=True)
    ]
    return [float(p) for p in probability_lowest(np.array(drawn), points)]
