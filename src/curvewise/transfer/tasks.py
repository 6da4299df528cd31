"""Tasks by how much data training from scratch needs for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy.interpolate import PchipInterpolator

from curvewise.errors import InputError
from curvewise.stats.intervals import crossing_interval, difference_interval, first_crossing
from curvewise.text import format_interval, format_number, format_size, format_table
from curvewise.transfer.gains import bends
from curvewise.transfer.measure import measure_transfer
from curvewise.transfer.result import RiskCurve, TransferResult
from curvewise.transfer.runs import TaskEstimate, TaskRuns, blind_missing, columns_of, sum_estimates
from curvewise.types.results import FloatArray, Interval, Result, check_level

LEVELS = (0.75, 0.5, 0.25, 0.1)
UNKNOWN = float("nan")


def rank_tasks(source: Any, *, levels: Sequence[float] = LEVELS, level: float = 0.95) -> TaskRanking:
    """Rank tasks by how much data training from scratch needs for them.

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
    Between sizes the estimate takes the calibrated risk to be a line in log n; nothing is said beyond the
    sizes measured but that the level lies there. The interval of a size holds all sizes at which
    the interval of the interpolated risk holds the level, and allows for a curve that bends between sizes: by
    simulation it holds the size of power laws in 93 to 100% with sizes a factor of 4 or 10 apart. Of a curve that
    falls slowly, then fast, then slowly, as a logistic one in log n, it may miss where three runs or more leave
    less than a few percent of error. The factor that halves the risk rests on
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
    >>> found.order, found.tied
    (('edges', 'depth'), ())
    >>> found.row("depth").at(0.5).n.estimate
    1419.62...
    >>> str(found.row("edges").at(0.5))
    '≤ 100 (or up to 168)'
    """
    check_level(level)
    try:
        wanted = tuple(sorted({float(v) for v in levels}, reverse=True))
    except (TypeError, ValueError):
        raise InputError("must hold numbers, such as (0.5, 0.25).", argument="levels", value=levels) from None
    if not wanted or not all(0 < v < 1 for v in wanted):
        raise InputError(
            "must lie between 0 (maximal supervision) and 1 (a blind guess).", argument="levels", value=levels
        )
    result = source if isinstance(source, TransferResult) else measure_transfer(source, level=level)
    if lost := [task for task in result.tasks if result.blind[task].assumed]:
        raise blind_missing(lost[0])  # levels of calibrated risk are what is asked about
    cells = result.runs_of(result.tasks)
    # Training sizes that scratch spans on all tasks, over which means are comparable.
    sizes = [task.sizes(task.scratch) for task in cells]
    ends = float(max(n[0] for n in sizes)), float(min(n[-1] for n in sizes))
    shared = ends if ends[0] < ends[1] else None
    rows = [_task_needs(task, wanted, shared, level) for task in cells]
    # Order by the level that most tasks reach between sizes measured; of equals the nearest to 0.5.
    inside = {v: sum(row.at(v).beyond is None for row in rows) for v in wanted}
    by = max(wanted, key=lambda v: (inside[v], -abs(v - 0.5)))

    def place(row: TaskNeeds) -> tuple[float, float]:
        # Training size first; tasks beyond the sizes measured, which have 0 or ∞, by their mean risk.
        mean = row.shared_mean if math.isfinite(row.shared_mean.estimate) else row.mean
        return row.at(by).n.estimate, mean.estimate if math.isfinite(mean.estimate) else 0.0

    ordered = tuple(sorted(rows, key=place))
    alarms = [f"{row.task}: {text}" for row in ordered for text in row.warnings]
    if len(rows) > 1 and shared is None:
        alarms.append("No training sizes are spanned by all tasks: their means are not comparable.")
    return TaskRanking(
        rows=ordered,
        levels=wanted,
        ordered_by=by,
        tied=tuple((a.task, b.task) for a, b in combinations(ordered, 2) if not _differ(a.at(by), b.at(by))),
        curves=tuple(result.curve(row.task, result.scratch) for row in ordered),
        level=level,
        warnings=tuple(alarms),
    )


@dataclass(frozen=True, eq=False)
class TaskRanking(Result):
    """Tasks by how much data they need.

    Attributes
    ----------
    rows : tuple of TaskNeeds
        From the task that needs least data to the one that needs most.
    levels : tuple of float
        Calibrated risks that sizes were found for.
    ordered_by : float
        The level whose training size orders the tasks: of those given, the one that most tasks
        reach between sizes measured; of equals the one nearest 0.5.
    tied : tuple of (str, str)
        All pairs that do not differ significantly, the one that needs less data first.
    curves : tuple of RiskCurve
        Of scratch, in the same order.
    level : float
        Coverage of the intervals.
    """

    rows: tuple[TaskNeeds, ...]
    levels: tuple[float, ...]
    ordered_by: float
    tied: tuple[tuple[str, str], ...]
    curves: tuple[RiskCurve, ...]
    level: float
    warnings: tuple[str, ...] = ()

    @property
    def order(self) -> tuple[str, ...]:
        """The tasks, from least data to most."""
        return tuple(row.task for row in self.rows)

    def row(self, task: str) -> TaskNeeds:
        """Return one task."""
        if task in self.order:
            return self.rows[self.order.index(task)]
        raise InputError(f"is none of {list(self.order)!r}.", argument="task", value=task)

    def columns(self) -> dict[str, Any]:
        """Return a row for each task.

        The size that reaches 0.5 is ``n_at_0_5``. Where one lies beyond those measured, it is NaN, and lies between
        ``n_at_0_5_low`` and ``n_at_0_5_high``: from 0 to the smallest measured, or from the largest to ∞, or further in
        as far as its interval goes. ``halving`` likewise, if it is above ``largest / smallest``.
        All three are NaN where nothing is known.
        """
        # n_at_0_5 for 0.5
        quantities = {f"n_at_{v:g}".replace(".", "_"): [row.at(v).bounds for row in self.rows] for v in self.levels}
        quantities |= columns_of(self.rows, "mean shared_mean halving=halving_bounds")
        found: dict[str, Any] = {"task": list(self.order)}
        for name, intervals in quantities.items():
            found |= columns_of(intervals, f"{name}=estimate {name}_low=low {name}_high=high")
        return found | columns_of(self.rows, "smallest largest")

    def table(self, format: str = "markdown", digits: int | None = None) -> str:
        """Write a row for each task, a column for each level, intervals in brackets.

        Parameters
        ----------
        format : {"markdown", "latex", "text"}
            Markup of the table.
        digits : int, optional
            Decimals of the mean, 2 by default.
        """
        return format_table(self.readable(2 if digits is None else digits), format)

    def readable(self, digits: int = 2) -> dict[str, list[str]]:
        """Return a row for each task, with the size that reaches each level; ``digits`` as for :meth:`table`."""
        cells = {f"n at {level:g}": [str(row.at(level)) for row in self.rows] for level in self.levels}
        cells["mean calibrated risk"] = [_mean_text(row.mean, digits) for row in self.rows]
        cells["times data to halve"] = [row.halving_text() for row in self.rows]
        return {"task": list(self.order), **cells}

    def sentences(self) -> str:
        """Summarise the result in a few sentences."""
        listed = [f"{r.task} ({r.at(self.ordered_by)})" for r in self.rows]
        if len(listed) == 1:
            text = f"Learned from scratch, {self.rows[0].task} reaches a calibrated risk of "
            size = str(self.rows[0].at(self.ordered_by))
            text += f"{self.ordered_by:g} at n {size if size[0] in '≤>' else f'= {size}'}."
        else:
            text = f"From least to most data for a calibrated risk of {self.ordered_by:g} from "
            text += f"scratch: {', '.join(listed)}."
        if self.tied:
            groups = "; ".join(f"{', '.join(g[:-1])} and {g[-1]}" for g in groups_alike(self.order, self.tied))
            text += f" Not significantly different at {1 - self.level:.2g}: {groups}."
        known = [r for r in self.rows if not math.isnan(r.halving.estimate)]
        halve = ", ".join(f"{r.task} {r.halving_text(limits=False)}" for r in known)
        return text + (f" Times the data to halve calibrated risk: {halve}." if halve else "")


def groups_alike(order: Sequence[str], tied: Sequence[tuple[str, str]]) -> list[tuple[str, ...]]:
    """Join pairs into groups in which no two differ significantly; none lies within another."""
    pairs = {frozenset(pair) for pair in tied}
    groups: list[tuple[str, ...]] = []
    for k, first in enumerate(order):
        group = [first]
        for name in order[k + 1 :]:
            if all(frozenset((name, other)) in pairs for other in group):
                group.append(name)
        groups.append(tuple(group))
    listed = {frozenset(p) for g in groups for p in combinations(g, 2)}
    groups += [pair for pair in tied if frozenset(pair) not in listed]
    kept = [g for g in groups if len(g) > 1]
    return [g for g in kept if not any(set(g) < set(other) for other in kept)]


def _mean_text(value: Interval, digits: int) -> str:
    write = f"{{:.{digits}f}}".format
    if math.isnan(value.estimate):
        return ""
    return write(value.estimate) if math.isnan(value.low) else format_interval(value, write=write)


@dataclass(frozen=True, eq=False)
class TaskNeeds:
    """Data that one task needs when it is learned from scratch.

    Attributes
    ----------
    task : str
    reached : tuple of SizeAtLevel
        For each level of calibrated risk, the training size that reaches it first.
    mean : Interval
        Mean calibrated risk over log n, over all sizes measured; NaN with one size.
    shared_mean : Interval
        The same over the sizes that all tasks span, which makes it comparable; NaN if none.
    halving : Interval
        By what factor the training set must grow for calibrated risk to halve, by a line through
        log risk against log n; ∞ stands for a factor above that between the largest and the
        smallest size, or for a risk that does not fall.
    smallest, largest : float
        Training sizes measured.
    warnings : tuple of str
    """

    task: str
    reached: tuple[SizeAtLevel, ...]
    mean: Interval
    shared_mean: Interval
    halving: Interval
    smallest: float
    largest: float
    warnings: tuple[str, ...] = ()

    @property
    def spanned(self) -> float:
        """Largest training size over the smallest: larger factors are beyond what was measured."""
        return self.largest / self.smallest

    @property
    def halving_bounds(self) -> Interval:
        """The factor as a table holds it: NaN above what was measured, between its bounds."""
        if not math.isinf(self.halving.estimate):
            return self.halving
        return _between(self.halving, self.spanned, math.inf)

    def halving_text(self, limits: bool = True) -> str:
        """Write the factor that halves the risk with its interval, or a bound where it is above what was measured."""
        estimate, low, high = self.halving
        most = format_number(self.spanned, 3)
        if math.isnan(estimate):
            return ""
        if math.isinf(estimate):
            return f"> {most}" + (f" (or from {format_number(low, 2)})" if limits and low < self.spanned else "")
        written, _, ends = format_interval((estimate, low, high)).partition(" ")
        return f"{written} {ends.replace('∞', f'>{most}')}" if limits and ends else written

    def at(self, level: float) -> SizeAtLevel:
        """Return the training size for one of the levels."""
        for found in self.reached:
            if math.isclose(found.level, level):
                return found
        raise InputError(f"is none of {[r.level for r in self.reached]!r}.", argument="level", value=level)


@dataclass(frozen=True)
class SizeAtLevel:
    """Training size at which a calibrated risk comes down to a level.

    Attributes
    ----------
    level : float
        Of calibrated risk.
    n : Interval
        0 (∞) stands for a size below the smallest (above the largest) that was measured.
    beyond : {"below", "above"}, optional
        Side of the sizes measured on which the level lies, if it does not lie between them.
    smallest, largest : float
        Sizes measured.
    """

    level: float
    n: Interval
    beyond: str | None
    smallest: float
    largest: float

    @property
    def bounds(self) -> Interval:
        """The size as a table holds it: NaN beyond the sizes measured, between its bounds."""
        if self.beyond == "below":
            return _between(self.n, 0.0, self.smallest)
        return self.n if self.beyond is None else _between(self.n, self.largest, math.inf)

    def __str__(self) -> str:
        _, low, high = self.n
        if self.beyond == "below":
            return f"≤ {format_number(self.smallest)}" + self._maybe("up to", high, self.smallest)
        if self.beyond == "above":
            return f"> {format_number(self.largest)}" + self._maybe("from", low, self.largest)
        if math.isnan(low):
            return format_size(self.n.estimate)
        ends = ["<" * (low == 0) + self._size(low), ">" * math.isinf(high) + self._size(high)]
        return f"{format_size(self.n.estimate)} [{', '.join(ends)}]"

    def _maybe(self, word: str, end: float, size: float) -> str:
        """Say how far between the sizes measured the level may lie nevertheless."""
        return "" if math.isnan(end) or end == size else f" (or {word} {self._size(end)})"

    def _size(self, n: float) -> str:
        if n == 0:
            return format_number(self.smallest)
        return format_number(self.largest) if math.isinf(n) else format_size(n)


def _between(value: Interval, low: float, high: float) -> Interval:
    """Return an unknown number between two bounds, or within its interval where it has one."""
    ends = (low, high) if math.isnan(value.low) else (value.low, value.high)
    return Interval(UNKNOWN, *ends, value.level, value.kind)


def _task_needs(task: TaskRuns, levels: Sequence[float], shared: tuple[float, float] | None, level: float) -> TaskNeeds:
    """Measure on the curve of scratch how much data a task needs."""
    n = task.sizes(task.scratch)
    risks = [task.calibrated(task.scratch, size) for size in n]
    reached = tuple(_reached(n, risks, wanted, level) for wanted in levels)
    alarms = []
    if len(n) < 2:
        alarms.append(f"one training size, n = {format_number(n[0])}: nothing is known of its curve.")
    if any(math.isnan(r.error.std) for r in risks):
        alarms.append("no size was run twice, so that there are no intervals: add seeds.")
    for at in reached:
        after = [r.value > at.level for size, r in zip(n, risks, strict=True) if size > at.n.estimate]
        if at.beyond != "above" and any(after):
            alarms.append(f"calibrated risk comes back above {at.level:g} after n = {at}.")
    return TaskNeeds(
        task=task.name,
        reached=reached,
        mean=_mean(n, risks, (n[0], n[-1]), level),
        shared_mean=_mean(n, risks, shared, level),
        halving=_halving(n, risks, level),
        smallest=float(n[0]),
        largest=float(n[-1]),
        warnings=tuple(alarms),
    )


def _differ(a: SizeAtLevel, b: SizeAtLevel) -> bool:
    """Tell whether two sizes differ significantly, on the scale of log n."""
    if a.n.high < b.n.low or b.n.high < a.n.low:
        return True
    if a.beyond or b.beyond or any(map(math.isnan, (*a.n, *b.n))):
        return False
    with np.errstate(divide="ignore"):
        logs = [np.log([i.estimate, i.low, i.high]) for i in (a.n, b.n)]
    low, high = difference_interval(logs[0][0], (logs[0][1], logs[0][2]), logs[1][0], (logs[1][1], logs[1][2]))
    return bool(low > 0 or high < 0)


def _shares(n: FloatArray, x: FloatArray) -> FloatArray:
    """Return the weight of each size in the risk interpolated at x, shape (len(x), sizes)."""
    return np.stack([np.interp(np.log(x), np.log(n), unit) for unit in np.eye(len(n))], axis=1)


def _reached(n: FloatArray, risks: Sequence[TaskEstimate], wanted: float, level: float) -> SizeAtLevel:
    """Find the size at which the risk, a line in log n between sizes, first comes down to a level."""
    value = np.array([r.value for r in risks])
    value[np.abs(value - wanted) < 1e-12] = wanted  # equal but for rounding
    log_n = first_crossing(np.log(n), value - wanted)
    first = value[0] <= wanted
    estimate = 0.0 if first else float(np.exp(log_n)) if math.isfinite(log_n) else math.inf
    beyond = "below" if first else "above" if math.isinf(estimate) else None

    # A risk need not follow lines between sizes: a monotone curve through the means is nearer to most.
    apart, monotone = bends(np.log(n), value), PchipInterpolator(np.log(n), value) if len(n) > 1 else None

    def evaluate(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        found = [sum_estimates(w, risks) for w in _shares(n, x)]
        spans = [e.error.interval(e.value, level) for e in found]
        line, lows, highs = np.array([[*span] for span in spans]).T
        smooth = line if monotone is None else monotone(np.log(x))
        bend = apart(np.log(x), smooth)
        # The line may be an end of what is possible: it must lie inside by more than a search for its crossing is off.
        half = np.maximum(np.hypot(0.5 * (highs - lows), bend), bend + 1e-9)
        return line - wanted, np.minimum(lows, smooth - half) - wanted, np.maximum(highs, smooth + half) - wanted

    if any(math.isnan(r.error.std) for r in risks):
        low, high = UNKNOWN, UNKNOWN
    else:
        low, high = crossing_interval(evaluate, n)
        low = float(n[-1]) if math.isinf(low) else low
        high = float(n[0]) if high == 0 else high
    return SizeAtLevel(wanted, Interval(estimate, low, high, level), beyond, float(n[0]), float(n[-1]))


def _mean(n: FloatArray, risks: Sequence[TaskEstimate], span: tuple[float, float] | None, level: float) -> Interval:
    """Average the risk over log n between two sizes, by trapezoids."""
    if span is None or len(n) < 2:
        return Interval(UNKNOWN, UNKNOWN, UNKNOWN, level)
    x = np.unique([*span, *n[(n > span[0]) & (n < span[1])]])
    steps = np.diff(np.log(x))
    each = 0.5 * (np.append(steps, 0.0) + np.append(0.0, steps)) / steps.sum()
    found = sum_estimates(each @ _shares(n, x), risks)
    return found.error.interval(found.value, level)


def _halving(n: FloatArray, risks: Sequence[TaskEstimate], level: float) -> Interval:
    """Return the factor 2^(−1/slope) that halves the risk, for a line through log calibrated risk against log n."""
    # Only risks two standard errors above maximal supervision have a logarithm that means something.
    used = [i for i, r in enumerate(risks) if r.value > (0.0 if math.isnan(r.error.std) else 2 * r.error.std)]
    if len(used) < 2:
        return Interval(UNKNOWN, UNKNOWN, UNKNOWN, level)
    log_n = np.log(n[used])
    lever = (log_n - log_n.mean()) / ((log_n - log_n.mean()) ** 2).sum()
    value = np.array([risks[i].value for i in used])
    slope = float(lever @ np.log(value))
    span = sum_estimates(lever / value, [risks[i] for i in used]).error.interval(slope, level)
    most = float(n[-1] / n[0])
    low = min(_factor(span.low, most), most) if not math.isnan(span.low) else UNKNOWN
    return Interval(_factor(slope, most), low, _factor(span.high, most), level)


def _factor(slope: float, most: float) -> float:
    """Return the factor that halves the risk, infinite beyond the sizes that were measured."""
    if math.isnan(slope):
        return UNKNOWN
    found = float(2.0 ** min(-1.0 / slope, 1000.0)) if slope < 0 else math.inf
    return found if found <= most * (1 + 1e-9) else math.inf  # equal but for rounding is not beyond
