"""What measuring transfer gives: calibrated curves and improvements over scratch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.tables import whole
from curvewise.transfer._cells import Task
from curvewise.transfer._transfer_tables import write_improvements
from curvewise.transfer._words import said_of_transfer
from curvewise.transfer.comparison import Settings, TransferComparison, compare_methods
from curvewise.transfer.ranks import TransferRanks, rank_methods
from curvewise.types import Control, FloatArray, Interval, Result

if TYPE_CHECKING:
    from curvewise.transfer.equivalence import Equivalence
    from curvewise.transfer.gains import GainEnd


@dataclass(frozen=True, eq=False)
class RiskCurve:
    """Risks of one method on one task by training size.

    Attributes
    ----------
    task, method : str
    n : ndarray of float, shape (sizes,)
        From small to large.
    risk : ndarray of float, shape (sizes,)
        Mean over runs, in the unit of the losses.
    calibrated : ndarray of float, shape (sizes,)
        The same with the blind guess at 1 and maximal supervision at 0.
    low, high : ndarray of float, shape (sizes,)
        Interval of the calibrated mean; NaN where nothing tells the spread between runs.
    std : ndarray of float, shape (sizes,)
        Between runs, calibrated; NaN with one run.
    runs, failed : ndarray of int, shape (sizes,)
        Runs that count, and those that failed.
    """

    task: str
    method: str
    n: FloatArray
    risk: FloatArray
    calibrated: FloatArray
    low: FloatArray
    high: FloatArray
    std: FloatArray
    runs: NDArray[np.int64]
    failed: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Improvement:
    """How much better than scratch a method is on one task.

    Attributes
    ----------
    task, method : str
    cci : Interval
        Calibrated cumulative improvement: 0 is scratch, 1 maximal supervision at every size.
    pvalue : float
        Two-sided, that it is 0.
    adjusted : float
        The same after Holm's correction for all methods of the task.
    n : ndarray of float, shape (sizes,)
        Sizes that both have, which it rests on.
    gain, gain_low, gain_high : ndarray of float, shape (sizes,)
        Calibrated risk of scratch less that of the method at each, with its interval.
    gain_ends : GainEnd, optional
        From which size the gain can no longer be told from 0.
    data_equivalence : tuple of Equivalence
        How many samples scratch needs to be as good, for each size.
    borrowed : bool
        Whether at half or more of the sizes the method, or scratch, has one run, so that the
        interval rests on the spread of other methods.
    warnings : tuple of str
    """

    task: str
    method: str
    cci: Interval
    pvalue: float
    adjusted: float
    n: FloatArray
    gain: FloatArray
    gain_low: FloatArray
    gain_high: FloatArray
    gain_ends: GainEnd | None = None
    data_equivalence: tuple[Equivalence, ...] = ()
    borrowed: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def sure(self) -> bool:
        """Whether it differs from scratch after Holm's correction for the methods of its task."""
        return bool(self.adjusted <= 1 - self.cci.level)


@dataclass(frozen=True, eq=False)
class TransferResult(Result):
    """Methods against training from scratch, between a blind guess and maximal supervision.

    Attributes
    ----------
    tasks, methods : tuple of str
        ``methods`` without scratch.
    scratch : str
        Name of the method that starts from nothing.
    blind, maximal : dict of str to Control
        The controls of each task.
    curves : tuple of RiskCurve
        Of every method on every task, scratch included.
    improvements : tuple of Improvement
        Of every method on every task that it was measured on.
    weight : str
        What the area between the curves was integrated over.
    seeds : str
        "mean", or "pooled" if every run was a point of its own.
    level : float
        Coverage of the intervals.
    unit : str
        What a risk is called.
    notes : tuple of str
        What the source says that was taken for what; nothing to act on.
    """

    tasks: tuple[str, ...]
    methods: tuple[str, ...]
    scratch: str
    blind: Mapping[str, Control]
    maximal: Mapping[str, Control]
    curves: tuple[RiskCurve, ...]
    improvements: tuple[Improvement, ...]
    weight: str
    seeds: str
    level: float
    unit: str
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    _cells: Mapping[str, Task] = field(default_factory=dict, repr=False)
    _settings: Settings = field(default_factory=Settings, repr=False)

    def curve(self, task: str, method: str) -> RiskCurve:
        """The risks of one method on one task."""
        found: RiskCurve = _found(self.curves, task, method)
        return found

    def improvement(self, task: str, method: str) -> Improvement:
        """How much better than scratch one method is on one task."""
        found: Improvement = _found(self.improvements, task, method)
        return found

    def columns(self) -> dict[str, Any]:
        """A row for each task and method.

        ``adjusted`` is the p-value after Holm's correction within the task. ``gain_sure_at`` lists
        the sizes at which the gain is sure, each by its own interval: the last of them is
        ``gain_until`` (NaN if there is none), and from ``gain_from`` on there is none (infinite if
        it is sure at the largest size). ``borrowed`` says that the interval rests on the spread
        of others.
        """
        rows = self.improvements
        counts = [self.curve(r.task, r.method) for r in rows]
        runs = [int(c.runs[np.isin(c.n, r.n)].sum()) for c, r in zip(counts, rows, strict=True)]
        return {
            "task": [r.task for r in rows],
            "method": [r.method for r in rows],
            "cci": [r.cci.estimate for r in rows],
            "low": [r.cci.low for r in rows],
            "high": [r.cci.high for r in rows],
            "pvalue": [r.pvalue for r in rows],
            "adjusted": [r.adjusted for r in rows],
            "borrowed": [r.borrowed for r in rows],
            "sizes": [len(r.n) for r in rows],
            "smallest": [float(r.n[0]) for r in rows],
            "largest": [float(r.n[-1]) for r in rows],
            "runs": runs,
            "gain_smallest": [float(r.gain[0]) for r in rows],
            "gain_largest": [float(r.gain[-1]) for r in rows],
            "gain_sure_at": [_sizes_sure(r) for r in rows],
            "gain_until": [_end(r, "n_last_sure") for r in rows],
            "gain_from": [_end(r, "n_from") for r in rows],
        }

    def table(self, format: str = "markdown", digits: int = 3, *, layout: str = "tasks") -> str:
        """The improvements as text: methods by tasks, as in table 1 of Atanov et al. 2022.

        Parameters
        ----------
        format : {"markdown", "latex", "text"}
            Markup of the table. The best of each task is bold, in plain text marked with an
            asterisk; † and ‡ are explained below. Methods without any value are left out.
        digits : int
            Decimals.
        layout : {"tasks", "long"}
            A column for each task, or a row for each task and method with all columns.
        """
        if layout == "long":
            return super().table(format, digits)
        if layout != "tasks":
            raise InputError(f"layout={layout!r} is not known: use 'tasks' or 'long'.")
        return write_improvements(self.improvements, self.tasks, self.methods, format, digits)

    def compare(self, a: str, b: str, task: str | None = None) -> TransferComparison:
        """The cumulative improvement of one method less that of another.

        On the sizes that both and scratch have. Scratch and the controls are shared, so that the
        difference can be much surer than either improvement.

        Parameters
        ----------
        a, b : str
            Methods.
        task : str, optional
            One task; by default all that have both, and their average if there are several.
        """
        for name in (a, b):
            self._check("method", name, self.methods)
        if task is not None:
            self._check("task", task, self.tasks)
        chosen = self.tasks if task is None else (task,)
        return compare_methods(self._runs_of(chosen), [(a, b)], self._settings)

    def comparisons(self) -> TransferComparison:
        """Every pair of methods on every task, with p-values by Holm's method for all together."""
        pairs = list(combinations(self.methods, 2))
        if not pairs:
            raise InputError(f"methods={self.methods!r}: a comparison needs at least two.")
        return compare_methods(self._runs_of(self.tasks), pairs, self._settings, average=False)

    def ranks(self) -> TransferRanks:
        """The place of every method, scratch included, at each size of each task."""
        return rank_methods(self._runs_of(self.tasks), self.level, self.scratch)

    def summary(self) -> str:
        """A few sentences."""
        return said_of_transfer(self)

    def _runs_of(self, tasks: Sequence[str]) -> list[Task]:
        """The runs behind some tasks, which only :func:`measure_transfer` leaves in a result."""
        lost = [task for task in tasks if task not in self._cells]
        if lost:
            raise InputError(
                f"this TransferResult holds no runs of task {lost[0]!r}, which are needed here: "
                "take the one that measure_transfer gives."
            )
        return [self._cells[task] for task in tasks]

    def _check(self, argument: str, name: str, known: Sequence[str]) -> None:
        if name not in known:
            raise InputError(f"{argument}={name!r} is none of {list(known)!r}.{near(name, known)}")


def near(name: str, known: Sequence[str]) -> str:
    """What may have been meant."""
    close = get_close_matches(name, known, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def _end(row: Improvement, name: str) -> float:
    """One of the sizes at which the gain ends; NaN where nothing is known of it."""
    return float("nan") if row.gain_ends is None else float(getattr(row.gain_ends, name))


def _sizes_sure(row: Improvement) -> str:
    """The sizes at which the gain is sure, with spaces between."""
    found = () if row.gain_ends is None else row.gain_ends.sure_at
    return " ".join(str(whole(n)) for n in found)


def _found(rows: Sequence[Any], task: str, method: str) -> Any:
    for row in rows:
        if (row.task, row.method) == (task, method):
            return row
    there = [(row.task, row.method) for row in rows]
    raise InputError(
        f"task={task!r}, method={method!r}: there is no such pair; there are {there[:20]!r}."
    )
