"""Methods against each other: differences of their cumulative improvements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from curvewise.stats import holm
from curvewise.tables import number
from curvewise.transfer._cells import Estimate, Task
from curvewise.transfer._spread import Error, together
from curvewise.transfer.cumulative import Weight
from curvewise.types import FloatArray, Interval, Result

AVERAGE = "average"


@dataclass(frozen=True)
class Settings:
    """How improvements are made."""

    weight: Weight = "scratch"
    pooled: bool = False
    level: float = 0.95


@dataclass(frozen=True, eq=False)
class ComparedMethods:
    """How much more one method improves on scratch than another.

    Attributes
    ----------
    task : str
        "average" for the mean over tasks.
    one, two : str
        The methods.
    difference : Interval
        Cumulative improvement of ``one`` less that of ``two``, on the same sizes.
    pvalue : float
        Two-sided, that it is 0.
    adjusted : float
        By Holm's method for all comparisons made together.
    n : ndarray of float
        Sizes that it rests on; of an average those of all tasks.
    """

    task: str
    one: str
    two: str
    difference: Interval
    pvalue: float
    adjusted: float
    n: FloatArray


@dataclass(frozen=True, eq=False)
class TransferComparison(Result):
    """Methods against each other.

    Attributes
    ----------
    rows : tuple of ComparedMethods
        A row for each pair and task.
    """

    rows: tuple[ComparedMethods, ...]
    warnings: tuple[str, ...] = ()

    def columns(self) -> dict[str, list[Any]]:
        """A row for each pair of methods and task."""
        rows = self.rows
        return {
            "task": [r.task for r in rows],
            "one": [r.one for r in rows],
            "two": [r.two for r in rows],
            "difference": [r.difference.estimate for r in rows],
            "low": [r.difference.low for r in rows],
            "high": [r.difference.high for r in rows],
            "pvalue": [r.pvalue for r in rows],
            "adjusted": [r.adjusted for r in rows],
            "sizes": [len(r.n) for r in rows],
        }

    def summary(self) -> str:
        """A sentence for each pair."""
        return "\n".join(map(_said, self.rows))


def _said(row: ComparedMethods) -> str:
    text = f"{row.task}: CCI of {row.one} less that of {row.two}: {row.difference}"
    if math.isnan(row.pvalue):
        return text + "."
    text += f", p = {number(row.pvalue, 2)}"
    if row.adjusted != row.pvalue:
        text += f" ({number(row.adjusted, 2)} for all comparisons together)"
    return text + "."


def compare_methods(
    tasks: Sequence[Task],
    pairs: Sequence[tuple[str, str]],
    settings: Settings,
    *,
    average: bool = True,
) -> TransferComparison:
    """Compare pairs of methods on every task that has both."""
    rows: list[ComparedMethods] = []
    notes: list[str] = []
    for one, two in pairs:
        found = []
        for task in tasks:
            n = task.shared(one, two)
            if not len(n):
                notes.append(f"{task.name}: {one}, {two} and {task.scratch} share no size.")
                continue
            if len(n) < max(len(task.shared(m)) for m in (one, two)):
                notes.append(
                    f"{task.name}: {one} and {two} are compared on the {len(n)} "
                    f"size{'' if len(n) == 1 else 's'} that both have."
                )
            found.append((task, n, _difference(task, one, two, n, settings)))
        rows += [_row(t.name, one, two, e.value, e.error, n, settings) for t, n, e in found]
        if average and len(found) > 1:
            rows.append(_average(found, one, two, settings))
    return TransferComparison(_adjusted(rows), tuple(dict.fromkeys(notes)))


def _difference(task: Task, one: str, two: str, n: FloatArray, settings: Settings) -> Estimate:
    a, b = (task.cci(m, n, settings.weight, settings.pooled) for m in (one, two))
    return a - b


def _row(
    task: str, one: str, two: str, value: float, error: Error, n: FloatArray, settings: Settings
) -> ComparedMethods:
    pvalue = error.pvalue(value)
    return ComparedMethods(
        task=task,
        one=one,
        two=two,
        difference=error.interval(value, settings.level),
        pvalue=pvalue,
        adjusted=pvalue,
        n=n,
    )


def _average(
    found: Sequence[tuple[Task, FloatArray, Estimate]], one: str, two: str, settings: Settings
) -> ComparedMethods:
    """The mean over these tasks, whose runs are not those of each other."""
    count = len(found)
    value = float(np.mean([e.value for *_, e in found]))
    parts = np.array([(e.error.std / count) ** 2 for *_, e in found])
    error = together(parts, np.array([e.error.degrees for *_, e in found]))
    sizes = np.unique(np.concatenate([n for _, n, _ in found]))
    return _row(AVERAGE, one, two, value, error, sizes, settings)


def _adjusted(rows: Sequence[ComparedMethods]) -> tuple[ComparedMethods, ...]:
    known = [i for i, r in enumerate(rows) if not math.isnan(r.pvalue)]
    adjusted = dict(zip(known, holm([rows[i].pvalue for i in known]), strict=True))
    return tuple(replace(r, adjusted=float(adjusted.get(i, math.nan))) for i, r in enumerate(rows))
