"""Spread over runs of the same method, beside the differences between methods."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations, groupby, product
from typing import Any

import numpy as np
from scipy.special import chdtri

from curvewise.errors import InputError
from curvewise.tables import format_table
from curvewise.text import format_interval, format_number
from curvewise.transfer.calibration import calibrated_risk
from curvewise.transfer.result import TransferResult
from curvewise.transfer.risks import TransferRisks
from curvewise.transfer.runs import adjust_pvalues, blind_missing, columns_of, combine_variances
from curvewise.types.results import Interval, Result, check_level


def measure_spread(source: TransferResult | TransferRisks, *, level: float = 0.95) -> RunSpread:
    """Measure the standard deviation over runs per method and size, and whether methods differ by more.

    Figure 3 of the supplement of Atanov et al. 2022, who check whether the mean of a method lies
    outside the standard deviation of another's runs. With three or four runs such a standard
    deviation may be a few times too small, which its interval shows and Welch's test allows for.

    Parameters
    ----------
    source : TransferResult or TransferRisks
        Calibrated risks if all tasks have both controls, else risks as they are.
    level : float
        Coverage of the intervals of standard deviations, for runs that are normal.

    Examples
    --------
    >>> risks = TransferRisks(
    ...     tasks=["depth"] * 6,
    ...     methods=["scratch"] * 3 + ["swav"] * 3,
    ...     n=[100] * 6,
    ...     risk=[0.50, 0.52, 0.54, 0.40, 0.41, 0.42],
    ... )
    >>> found = measure_spread(risks)
    >>> found.row("depth", "swav", 100).std
    Interval(estimate=0.0099..., low=0.0052..., high=0.0628..., level=0.95, kind='confidence')
    >>> pair = found.pairs[0]
    >>> pair.outside, round(pair.pvalue, 4)
    (True, 0.0037)
    """
    check_level(level)
    cells: dict[tuple[str, str, float], tuple[float, float, int]] = {}  # mean, standard deviation and runs
    if isinstance(source, TransferResult):
        if lost := [task for task in source.tasks if source.blind[task].assumed]:
            raise blind_missing(lost[0])
        calibrated = True
        for curve in source.curves:
            for n, *cell in zip(*(c.tolist() for c in (curve.n, curve.calibrated, curve.std, curve.runs)), strict=True):
                cells[curve.task, curve.method, n] = (cell[0], cell[1], cell[2])
    elif isinstance(source, TransferRisks):
        calibrated = all(t in source.blind and t in source.maximal for t in source.task_names)
        if np.isnan(source.risk).all():
            raise InputError("holds nothing but failed runs.", argument="risk")
        good = source.select(~np.isnan(source.risk))
        for task, method in product(good.task_names, good.method_names):
            here = (good.tasks == task) & (good.methods == method)
            for n in np.unique(good.n[here]).tolist():
                risks = good.risk[here & (good.n == n)]
                if calibrated:
                    risks = calibrated_risk(risks, blind=source.blind[task].risk, maximal=source.maximal[task].risk)
                std = float(risks.std(ddof=1)) if len(risks) > 1 else math.nan
                cells[task, method, n] = (float(risks.mean()), std, len(risks))
    else:
        raise InputError(
            f"is a {type(source).__name__}: pass what load_risks or measure_transfer gives.", argument="source"
        )
    unit = "calibrated risk" if calibrated else source.unit
    rows = [MethodSpread(*k, mean, _std_interval(std, runs, level), runs) for k, (mean, std, runs) in cells.items()]
    single = sum(r.runs < 2 for r in rows)
    notes = (f"{single} of {len(rows)} cells have one run, and no spread.",) if single else ()
    # Pairs of methods within a task and size, tasks in the order of the source and sizes from small to large.
    order = {task: i for i, task in enumerate(dict.fromkeys(r.task for r in rows))}
    known = sorted((r for r in rows if r.runs > 1), key=lambda r: (order[r.task], r.n))
    groups = groupby(known, key=lambda r: (r.task, r.n))
    pairs = []
    for a, b in (pair for _, group in groups for pair in combinations(group, 2)):
        # Welch's test: variances of means add up, with Satterthwaite's degrees of freedom.
        variances = np.array([r.std.estimate**2 / r.runs for r in (a, b)])
        error = combine_variances(variances, np.array([a.runs - 1.0, b.runs - 1.0]))
        difference = a.mean - b.mean
        outside = abs(difference) > max(a.std.estimate, b.std.estimate)
        # Runs that are all equal, of both methods, leave nothing to test the difference by.
        pvalue = error.pvalue(difference) if error.std > 0 else math.nan
        pairs.append(SpreadPair(a.task, a.n, a.method, b.method, difference, outside, pvalue))
    return RunSpread(tuple(rows), adjust_pvalues(pairs), calibrated, unit, level, source.scratch, notes)


@dataclass(frozen=True)
class MethodSpread:
    """Runs of one method on one task at one size.

    Attributes
    ----------
    task, method : str
    n : float
        Training size.
    mean : float
        Of the risk.
    std : Interval
        Standard deviation over runs, with its chi-square interval; NaN with one run.
    runs : int
        That did not fail.
    """

    task: str
    method: str
    n: float
    mean: float
    std: Interval
    runs: int


@dataclass(frozen=True)
class SpreadPair:
    """Two methods on one task at one size.

    Attributes
    ----------
    task : str
    n : float
    one, two : str
    difference : float
        Mean of the first less that of the second.
    outside : bool
        Whether each mean lies outside the standard deviation of the other method's runs.
    pvalue : float
        Welch's test that the means agree; NaN if all runs of each method are equal.
    adjusted : float
        The same by Holm's method over all pairs of the result.
    """

    task: str
    n: float
    one: str
    two: str
    difference: float
    outside: bool
    pvalue: float
    adjusted: float = math.nan


@dataclass(frozen=True, eq=False)
class RunSpread(Result):
    """Spread over runs of each method at each size, and differences of methods beside it.

    Attributes
    ----------
    rows : tuple of MethodSpread
    pairs : tuple of SpreadPair
        Of methods with at least two runs each at a size.
    calibrated : bool
        Whether risks are calibrated, or in the unit of the losses.
    unit : str
        What they are.
    level : float
        Coverage of the intervals.
    scratch : str
        Name of the method that starts from nothing.
    """

    rows: tuple[MethodSpread, ...]
    pairs: tuple[SpreadPair, ...]
    calibrated: bool
    unit: str
    level: float
    scratch: str = "scratch"
    warnings: tuple[str, ...] = ()

    def row(self, task: str, method: str, n: float) -> MethodSpread:
        """Return one method on one task at one size."""
        for row in self.rows:
            if (row.task, row.method, row.n) == (task, method, n):
                return row
        raise InputError(f"task={task!r}, method={method!r}, n={n!r}: there is no such row.")

    def columns(self) -> dict[str, Any]:
        """Return a row for each task, method and size."""
        return columns_of(self.rows, "task method n runs mean std=std.estimate std_low=std.low std_high=std.high")

    def pair_columns(self) -> dict[str, Any]:
        """Return a row for each pair of methods on a task at a size."""
        return columns_of(self.pairs, "task n one two difference outside pvalue adjusted")

    def pair_table(self, format: str = "markdown", digits: int = 3) -> str:
        """Write the pairs as text: Markdown, LaTeX or plain."""
        return format_table(self.pair_columns(), format, digits)

    def sentences(self) -> str:
        """Summarise the result in a few sentences."""
        known = [r for r in self.rows if r.runs > 1]
        if not known:
            return "No method was run twice at the same size: the spread is unknown."
        most = max(known, key=lambda r: r.std.estimate)
        middle = float(np.median([r.std.estimate for r in known]))
        text = f"Standard deviations over runs of {self.unit} have a median of "
        text += f"{format_number(middle, 3)} over {len(known)} cells of task, method and size; the largest"
        text += f" is {format_interval(most.std)}, {most.method} on {most.task} "
        text += f"at n = {format_number(most.n)} ({most.runs} runs)."
        if not self.pairs:
            return text
        outside = sum(p.outside for p in self.pairs)
        share = 1.0 - self.level
        told = sum(p.pvalue < share for p in self.pairs)
        sure = sum(p.adjusted < share for p in self.pairs)
        text += f" In {outside} of {len(self.pairs)} pairs of methods at a size each mean lies "
        text += "outside the standard deviation of the other; "
        return text + f"{told} differ significantly by Welch's test at {share:.0%}, {sure} after Holm's correction."


def _std_interval(std: float, runs: int, level: float) -> Interval:
    """Return the chi-square interval of a standard deviation."""
    if runs < 2:
        return Interval(math.nan, math.nan, math.nan, level)
    free, tail = runs - 1, 0.5 * (1.0 - level)
    low, high = (std * math.sqrt(free / chdtri(free, p)) for p in (tail, 1.0 - tail))
    return Interval(std, low, high, level)
