"""What a task asks for, told by the curve of training from scratch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from curvewise.errors import InputError
from curvewise.tables import format_table, number
from curvewise.transfer._task_curve import Reached, TaskNeeds, needs_of, shared_range, told_apart
from curvewise.transfer.measure import measure_transfer
from curvewise.transfer.transfer_result import RiskCurve, TransferResult
from curvewise.types import Interval, Result, check_level

__all__ = ["LEVELS", "Reached", "TaskNeeds", "TaskRanking", "rank_tasks"]

LEVELS = (0.75, 0.5, 0.25, 0.1)


@dataclass(frozen=True, eq=False)
class TaskRanking(Result):
    """Tasks by how much data they ask for.

    Attributes
    ----------
    rows : tuple of TaskNeeds
        From the task that asks for least data to the one that asks for most.
    levels : tuple of float
        Calibrated risks that sizes were found for.
    ordered_by : float
        The level whose training size orders the tasks: of those given, the one that most tasks
        reach between sizes measured; of equals the one nearest 0.5.
    unsure : tuple of (str, str)
        All pairs that cannot be told apart, the one that asks for less data first.
    curves : tuple of RiskCurve
        Of scratch, in the same order.
    level : float
        Coverage of the intervals.
    """

    rows: tuple[TaskNeeds, ...]
    levels: tuple[float, ...]
    ordered_by: float
    unsure: tuple[tuple[str, str], ...]
    curves: tuple[RiskCurve, ...]
    level: float
    warnings: tuple[str, ...] = ()

    @property
    def order(self) -> tuple[str, ...]:
        """The tasks, from least data to most."""
        return tuple(row.task for row in self.rows)

    def row(self, task: str) -> TaskNeeds:
        """One task."""
        for row in self.rows:
            if row.task == task:
                return row
        raise InputError(f"task={task!r} is none of {list(self.order)!r}.")

    def columns(self) -> dict[str, Any]:
        """A row for each task.

        Where a size lies beyond those measured, ``n_…`` is NaN, and it lies between ``n_…_low``
        and ``n_…_high``: from 0 to the smallest measured, or from the largest to ∞, or further in
        as far as its interval goes. ``halving`` likewise, if it is above ``largest / smallest``.
        All three are NaN where nothing is known.
        """
        found: dict[str, Any] = {"task": list(self.order)}
        quantities = {f"n_{v:g}": [row.at(v).bounds for row in self.rows] for v in self.levels}
        for name in ("mean", "shared_mean"):
            quantities[name] = [getattr(row, name) for row in self.rows]
        quantities["halving"] = [row.halving_bounds for row in self.rows]
        for name, intervals in quantities.items():
            found[name] = [i.estimate for i in intervals]
            found[f"{name}_low"] = [i.low for i in intervals]
            found[f"{name}_high"] = [i.high for i in intervals]
        found["smallest"] = [row.smallest for row in self.rows]
        found["largest"] = [row.largest for row in self.rows]
        return found

    def table(self, format: str = "markdown", digits: int = 2) -> str:
        """A row for each task, a column for each level, intervals in brackets.

        Parameters
        ----------
        format : {"markdown", "latex", "text"}
            Markup of the table.
        digits : int
            Decimals of the mean and of the factor.
        """
        cells: dict[str, list[str]] = {"task": list(self.order)}
        for level in self.levels:
            cells[f"n at {level:g}"] = [str(row.at(level)) for row in self.rows]
        cells["mean calibrated risk"] = [_written(row.mean, digits) for row in self.rows]
        cells["times data to halve"] = [row.halving_text(digits) for row in self.rows]
        text = format_table(cells, format, digits)
        return text.replace("≤", r"$\leq$").replace(">", "$>$") if format == "latex" else text

    def summary(self) -> str:
        """A few sentences."""
        said = [f"{r.task} ({r.at(self.ordered_by)})" for r in self.rows]
        if len(said) == 1:
            text = f"Learned from scratch, {self.rows[0].task} reaches a calibrated risk of "
            size = str(self.rows[0].at(self.ordered_by))
            text += f"{self.ordered_by:g} at n {size if size[0] in '≤>' else f'= {size}'}."
        else:
            text = f"From least to most data for a calibrated risk of {self.ordered_by:g} from "
            text += f"scratch: {', '.join(said)}."
        if self.unsure:
            groups = "; ".join(map(_joined, _alike(self.order, self.unsure)))
            text += f" Not told apart at {self.level:.0%}: {groups}."
        known = [r for r in self.rows if not math.isnan(r.halving.estimate)]
        halve = ", ".join(f"{r.task} {_times(r)}" for r in known)
        return text + (f" Times the data to halve calibrated risk: {halve}." if halve else "")


def _times(row: TaskNeeds) -> str:
    """The factor that halves the risk in three digits, or what it is above."""
    factor = row.halving.estimate
    return number(factor, 3) if math.isfinite(factor) else f"> {number(row.spanned, 3)}"


def _joined(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _alike(order: Sequence[str], unsure: Sequence[tuple[str, str]]) -> list[tuple[str, ...]]:
    """Pairs as groups of which no two are told apart; none lies within another."""
    pairs = {frozenset(pair) for pair in unsure}
    groups: list[tuple[str, ...]] = []
    for k, first in enumerate(order):
        group = [first]
        for name in order[k + 1 :]:
            if all(frozenset((name, other)) in pairs for other in group):
                group.append(name)
        groups.append(tuple(group))
    said = {frozenset(p) for g in groups for p in combinations(g, 2)}
    groups += [pair for pair in unsure if frozenset(pair) not in said]
    kept = [g for g in groups if len(g) > 1]
    return [g for g in kept if not any(set(g) < set(other) for other in kept)]


def _written(value: Interval, digits: int) -> str:
    def one(x: float) -> str:
        if math.isnan(x):
            return "?"
        return f"{x:.{digits}f}"

    if math.isnan(value.estimate):
        return ""
    if math.isnan(value.low):
        return one(value.estimate)
    return f"{one(value.estimate)} [{one(value.low)}, {one(value.high)}]"


def rank_tasks(
    source: Any, *, levels: Sequence[float] = LEVELS, level: float = 0.95
) -> TaskRanking:
    """Tell tasks apart by how much data training from scratch needs for them.

    Section 5 of the supplement of Atanov et al. 2022: the less data scratch needs, the less there
    is for pretraining to give.

    Parameters
    ----------
    source : TransferResult, or what :func:`measure_transfer` takes
        Risks with their controls.
    levels : sequence of float
        Calibrated risks to find the training size for: 0.5 is halfway from the blind guess to
        maximal supervision.
    level : float
        Coverage of the intervals.

    Returns
    -------
    TaskRanking

    Notes
    -----
    Between sizes the calibrated risk is taken to be a line in log n; nothing is said beyond the
    sizes measured but that the level lies there. The interval of a size holds all sizes at which
    the interval of the interpolated risk holds the level. The factor that halves the risk rests on
    the sizes at which it is two standard errors above that of maximal supervision.

    Examples
    --------
    >>> table = {
    ...     "task": ["edges"] * 6 + ["depth"] * 6,
    ...     "method": ["scratch"] * 12,
    ...     "n": [100, 100, 1000, 1000, 10000, 10000] * 2,
    ...     "loss": [0.5, 0.48, 0.2, 0.22, 0.12, 0.12, 0.83, 0.81, 0.52, 0.55, 0.30, 0.31],
    ... }
    >>> from curvewise.transfer.measure import measure_transfer
    >>> found = rank_tasks(measure_transfer(table, blind=0.9, maximal=0.1), levels=(0.5,))
    >>> found.order, found.unsure
    (('edges', 'depth'), ())
    >>> found.row("depth").at(0.5).n.estimate
    1419.62...
    >>> str(found.row("edges").at(0.5))
    '≤ 100 (or up to 168)'
    """
    check_level(level)
    wanted = _check_levels(levels)
    result = source if isinstance(source, TransferResult) else measure_transfer(source, level=level)
    cells = result._runs_of(result.tasks)
    shared = shared_range(cells)
    rows = [needs_of(task, wanted, shared, level) for task in cells]
    by = _ordering(rows, wanted)
    place = sorted(range(len(rows)), key=lambda i: _key(rows[i], by))
    ordered = tuple(rows[i] for i in place)
    alarms = [f"{row.task}: {text}" for row in ordered for text in row.warnings]
    if len(rows) > 1 and shared is None:
        alarms.append("No training sizes are spanned by all tasks: their means are not comparable.")
    return TaskRanking(
        rows=ordered,
        levels=wanted,
        ordered_by=by,
        unsure=tuple(
            (a.task, b.task)
            for a, b in combinations(ordered, 2)
            if not told_apart(a.at(by), b.at(by))
        ),
        curves=tuple(result.curve(row.task, result.scratch) for row in ordered),
        level=level,
        warnings=tuple(alarms),
    )


def _check_levels(levels: Sequence[float]) -> tuple[float, ...]:
    try:
        found = tuple(float(v) for v in levels)
    except (TypeError, ValueError):
        raise InputError(f"levels={levels!r} must hold numbers, such as (0.5, 0.25).") from None
    if not found or not all(0 < v < 1 for v in found):
        raise InputError(
            f"levels={levels!r} must lie between 0 (maximal supervision) and 1 (a blind guess)."
        )
    return tuple(sorted(set(found), reverse=True))


def _ordering(rows: Sequence[TaskNeeds], levels: Sequence[float]) -> float:
    """The level that most tasks reach between sizes measured; of equals the nearest to 0.5."""
    inside = {v: sum(row.at(v).beyond is None for row in rows) for v in levels}
    return max(levels, key=lambda v: (inside[v], -abs(v - 0.5)))


def _key(row: TaskNeeds, by: float) -> tuple[float, float]:
    """Training size first; tasks beyond the sizes measured by their mean risk."""
    mean = row.shared_mean if math.isfinite(row.shared_mean.estimate) else row.mean
    return row.at(by).n.estimate, mean.estimate if math.isfinite(mean.estimate) else 0.0
