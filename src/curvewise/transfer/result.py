"""Results of measuring transfer: calibrated curves, improvements, comparisons and ranks of methods, spread of runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, groupby, product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, stdtrit

from curvewise.errors import InputError, list_names, suggest
from curvewise.stats.intervals import probability_lowest
from curvewise.stats.tests import holm
from curvewise.text import (
    Cell,
    as_count,
    format_count,
    format_interval,
    format_level,
    format_number,
    format_pvalue,
    format_sign,
    format_table,
    latex_note,
    mark_best,
    pvalue_text,
)
from curvewise.transfer.risks import ONE_TASK, Control, TransferRisks, Weight, calibrated_risk
from curvewise.transfer.runs import (
    MANY,
    TIE,
    Row,
    StandardError,
    TaskRuns,
    adjust_pvalues,
    blind_missing,
    columns_of,
    combine_variances,
)
from curvewise.types.results import FloatArray, Interval, Result, check_level

if TYPE_CHECKING:
    from curvewise.transfer.gains import Equivalence, GainEnd


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
    """Improvement of a method over scratch on one task.

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
    reversed : bool
        Whether scratch gets worse with more data in places and CCI has another sign over log n. It is not significant.
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
    reversed: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def significant(self) -> bool:
        """True if it differs from scratch after Holm's correction for the methods of its task."""
        return bool(self.adjusted <= 1 - self.cci.level) and not self.reversed


@dataclass(frozen=True)
class CciSettings:
    """Settings that all improvements of a result share."""

    weight: Weight = "scratch"
    pooled: bool = False
    level: float = 0.95


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
    _cells: Mapping[str, TaskRuns] = field(default_factory=dict, repr=False)
    _settings: CciSettings = field(default_factory=CciSettings, repr=False)

    def curve(self, task: str, method: str) -> RiskCurve:
        """Return the risks of one method on one task."""
        return find_row(self.curves, task=task, method=method)

    def improvement(self, task: str, method: str) -> Improvement:
        """Return how much better than scratch one method is on one task."""
        return find_row(self.improvements, task=task, method=method)

    def columns(self) -> dict[str, Any]:
        """Return a row for each task and method.

        ``adjusted`` is the p-value after Holm's correction within the task. ``gain_significant_at`` lists
        the sizes at which the gain is significant, each by its own interval: the last of them is
        ``gain_until`` (NaN if there is none), and from ``gain_from`` on there is none (infinite if
        it is significant at the largest size). ``borrowed`` says that the interval rests on the spread
        of others.
        """
        rows = self.improvements
        counts = [self.curve(r.task, r.method) for r in rows]
        runs = [int(c.runs[np.isin(c.n, r.n)].sum()) for c, r in zip(counts, rows, strict=True)]
        ends = [r.gain_ends for r in rows]
        names = "task method cci=cci.estimate low=cci.low high=cci.high pvalue adjusted borrowed"
        return columns_of(rows, names) | {
            "sizes": [len(r.n) for r in rows],
            "smallest": [float(r.n[0]) for r in rows],
            "largest": [float(r.n[-1]) for r in rows],
            "runs": runs,
            "gain_smallest": [float(r.gain[0]) for r in rows],
            "gain_largest": [float(r.gain[-1]) for r in rows],
            "gain_significant_at": [
                " ".join(str(as_count(n)) for n in end.significant_at) if end else "" for end in ends
            ],
            "gain_until": [end.n_last_significant if end else math.nan for end in ends],
            "gain_from": [end.n_from if end else math.nan for end in ends],
        }

    def readable(self) -> Mapping[str, Sequence[Any]]:
        """Return a row for each task and method, with the sizes at which the gain is significant."""
        table = dict(super().readable())
        del table["gain until"], table["gain from"]  # the sizes say it
        if not any(table["borrowed"]):
            del table["borrowed"]
        sizes = table["gain significant at"]
        table["gain significant at"] = [text.replace(" ", ", ") or "no size" for text in sizes]
        return {_HEADINGS.get(name, name): values for name, values in table.items()}

    def table(self, format: str = "markdown", digits: int | None = None, *, layout: str = "tasks") -> str:
        """Write the improvements as text: methods by tasks, as in table 1 of Atanov et al. 2022.

        Parameters
        ----------
        format : {"markdown", "latex", "text"}
            Markup of the table. The best of each task is bold, in plain text marked with an
            asterisk; † and ‡ are explained below. Methods without any value are left out.
        digits : int, optional
            Decimals, 3 by default.
        layout : {"tasks", "long"}
            A column for each task, or a row for each task and method with all columns.
        """
        if layout == "long":
            return super().table(format, digits)
        digits = 3 if digits is None else digits
        if layout != "tasks":
            raise InputError("is not known: use 'tasks' or 'long'.", argument="layout", value=layout)
        if format not in ("markdown", "latex", "text"):
            raise InputError("is not known: use one of markdown, latex, text.", argument="format", value=format)
        held = {(r.task, r.method): r for r in self.improvements}
        known = {r.method for r in self.improvements if not math.isnan(r.cci.estimate)}
        shown = [m for m in self.methods if m in known] or list(self.methods)
        columns: dict[str, list[Any]] = {"Method": shown}
        for task in self.tasks:
            columns[task] = _cells_of_task([held.get((task, m)) for m in shown], digits)
        text = format_table(columns, format, digits, names=1)
        used = {sign for cells in list(columns.values())[1:] for cell in cells for sign in cell.signs}
        notes = [f"{format_sign(sign, format)} {note}" for sign, note in _NOTES.items() if sign in used]
        if format == "latex":
            return text + "".join(map(latex_note, notes))
        return text + ("\n" if notes and format == "markdown" else "") + "".join(f"\n{note}" for note in notes)

    def compare(self, a: str, b: str, task: str | None = None) -> TransferComparison:
        """Compare the cumulative improvement of two methods.

        The first less the second, on the sizes that both and scratch have. Scratch and the controls are shared, so that
        the difference has a smaller error than either improvement.

        Parameters
        ----------
        a, b : str
            Methods.
        task : str, optional
            One task; by default all that have both, and their average if there are several.
        """
        for name in (a, b):
            check_name("method", name, self.methods)
        if task is not None:
            check_name("task", task, self.tasks)
        chosen = self.tasks if task is None else (task,)
        return compare_methods(self.runs_of(chosen), [(a, b)], self._settings)

    def comparisons(self) -> TransferComparison:
        """Compare every pair of methods on every task, with p-values by Holm's method for all together."""
        pairs = list(combinations(self.methods, 2))
        if not pairs:
            raise InputError("a comparison needs at least two.", argument="methods", value=self.methods)
        return compare_methods(self.runs_of(self.tasks), pairs, self._settings, average=False)

    def ranks(self) -> TransferRanks:
        """Rank all methods, scratch included, at each size of each task."""
        rows: list[MethodRank] = []
        for task in self.runs_of(self.tasks):
            for n in sorted({n for _, n in task.cells}):
                rows += _rank_at_size(task, n, self.level)
        return TransferRanks(tuple(rows), self.level, self.scratch)

    def sentences(self) -> str:
        """Summarise the result in a few sentences."""
        text = f"{format_count(len(self.methods), 'method')} against {self.scratch} on "
        text += f"{format_count(len(self.tasks), 'task')}."
        return text + "".join(f" {_summarise_task(self, task)}" for task in self.tasks)

    def runs_of(self, tasks: Sequence[str]) -> list[TaskRuns]:
        """Return the runs behind some tasks, which only :func:`measure_transfer` leaves in a result."""
        lost = [task for task in tasks if task not in self._cells]
        if lost:
            raise InputError(
                f"this TransferResult holds no runs of task {lost[0]!r}, which are needed here: "
                "take the one that measure_transfer gives."
            )
        return [self._cells[task] for task in tasks]


_HEADINGS = {
    "cci": "CCI",
    "borrowed": "interval from the spread of others",
    "gain smallest": "gain at the smallest n",
    "gain largest": "gain at the largest n",
    "gain significant at": "gain significant at n",
}


def find_row(rows: Sequence[Row], **wanted: Any) -> Row:
    """Return the row whose attributes have these values, or raise an error that lists some of those there are."""
    there = [tuple(getattr(row, name) for name in wanted) for row in rows]
    if tuple(wanted.values()) in there:
        return rows[there.index(tuple(wanted.values()))]
    asked = ", ".join(f"{name}={value!r}" for name, value in wanted.items())
    noun = "pair" if len(wanted) == 2 else "row"
    raise InputError(f"{asked}: there is no such {noun}; there are {there[:20]!r}.")


def check_name(argument: str, name: str, known: Sequence[str]) -> None:
    """Raise for a name that is none of those known, with the nearest one."""
    if name not in known:
        raise InputError(f"is none of {list_names(known)}.{suggest(name, known)}", argument=argument, value=name)


NAMED = 5
"""Methods that a sentence names; it counts the rest."""

_NOTES = {
    "†": "At half or more of the sizes there is one run, with the spread of other methods.",
    "‡": "The highest of methods on different training sizes, which are not comparable.",
}


def _cells_of_task(rows: Sequence[Improvement | None], digits: int) -> list[Cell]:
    """Write the improvements of one task: value [low, high], the best in bold, with signs for the notes."""
    cells = mark_best([math.nan if r is None else r.cci.estimate for r in rows], digits)
    differ = on_different_sizes([r for r in rows if r is not None])
    found = []
    for row, cell in zip(rows, cells, strict=True):
        signs = "‡" if cell.bold and differ else ""
        after = ""
        if row is not None and not math.isnan(row.cci.low):
            # Adding 0 turns -0.0 into 0.0.
            low, high = (f"{round(end, digits) + 0.0:.{digits}f}" for end in (row.cci.low, row.cci.high))
            after = f" [{low}, {high}]"
            signs += "†" if row.borrowed else ""
        found.append(cell._replace(signs=signs, after=after))
    return found


def _summarise_task(result: TransferResult, task: str) -> str:
    """Say which method is best on a task, how many differ from scratch, and where the gain ends."""
    rows = [r for r in result.improvements if r.task == task]
    known = [r for r in rows if not math.isnan(r.cci.estimate)]
    nameless = result.tasks == (ONE_TASK,)  # the table has no column of tasks
    if not known:
        return f"{'N' if nameless else f'{task}: n'}o CCI can be computed."
    best = max(known, key=lambda r: r.cci.estimate)
    text = "" if nameless else f"{task}: "
    worse = worse_than_scratch(known, result.scratch)
    if worse:
        text += f"{'N' if nameless else 'n'}{worse[1:]} "
    mixed = on_different_sizes(known)
    text += f"{'B' if nameless or worse else 'b'}est is " if len(known) > 1 and not mixed else ""
    cci = format_number(best.cci.estimate, 3)
    if not math.isnan(best.cci.low):
        cci = format_interval(best.cci)
    text += f"{best.method}, CCI {cci}"
    text += "; CCIs rest on different sizes, and methods are not ranked" if mixed else ""
    tested = [r for r in known if not math.isnan(r.pvalue)]
    share = 1 - result.level
    if len(tested) > 1 and not worse:
        signs = np.sign([r.cci.estimate for r in tested if r.significant])
        text += f"; {int((signs > 0).sum())} of {len(tested)} are better than {result.scratch}"
        text += f", {int((signs < 0).sum())} worse" if (signs < 0).any() else ""
        text += f" at {format_number(round(100 * share, 6))}% after Holm's correction for "
        text += f"{len(tested)} tests"
    text += "."
    if best.gain_ends is not None and tested:
        text += f" {best.gain_ends.text}"
    if result.maximal[task].assumed:
        text += f" Maximal supervision is assumed: {result.maximal[task].source}."
    return text


def worse_than_scratch(rows: Sequence[Improvement], scratch: str) -> str:
    """Say that no method of a task beats scratch, with the names of those that are significantly worse.

    Nothing where a method is significantly better, or none is significantly worse.
    """
    tested = [r for r in rows if not math.isnan(r.pvalue)]
    worse = [r.method for r in tested if r.significant and r.cci.estimate < 0]
    if not worse or any(r.significant and r.cci.estimate > 0 for r in tested):
        return ""
    few = worse if len(worse) <= NAMED else [*worse[:NAMED], f"{len(worse) - NAMED} more"]
    names = few[0] if len(few) == 1 else f"{', '.join(few[:-1])} and {few[-1]}"
    none = "no method beats" if len(worse) == len(rows) else "no method is significantly better than"
    how = f" after Holm's correction for {len(tested)} tests" if len(tested) > 1 else ""
    return f"{none} {scratch}; {names} {'is' if len(worse) == 1 else 'are'} significantly worse{how}."


def on_different_sizes(rows: Sequence[Improvement]) -> bool:
    """Tell whether the CCIs of a task rest on different sizes, so that they are not comparable."""
    return len({tuple(r.n.tolist()) for r in rows if not math.isnan(r.cci.estimate)}) > 1


AVERAGE = "average"


@dataclass(frozen=True, eq=False)
class ComparedMethods:
    """Difference of the cumulative improvements of two methods.

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
        """Return a row for each pair of methods and task."""
        names = "task one two difference=difference.estimate low=difference.low high=difference.high pvalue adjusted"
        return columns_of(self.rows, names) | {"sizes": [len(r.n) for r in self.rows]}

    def sentences(self) -> str:
        """Write a sentence for each pair."""
        lines = []
        for row in self.rows:
            text = f"{row.task}: CCI of {row.one} less that of {row.two}: {row.difference}"
            if not math.isnan(row.pvalue):
                text += f", {format_pvalue(row.pvalue)}"
                if row.adjusted != row.pvalue:
                    text += f" ({pvalue_text(row.adjusted)} for all comparisons together)"
            lines.append(text + ".")
        return "\n".join(lines)


def compare_methods(
    tasks: Sequence[TaskRuns], pairs: Sequence[tuple[str, str]], settings: CciSettings, *, average: bool = True
) -> TransferComparison:
    """Compare pairs of methods on every task that has both."""
    rows: list[ComparedMethods] = []
    notes: list[str] = []

    def add(task: str, value: float, error: StandardError, n: FloatArray) -> None:
        interval, pvalue = error.interval(value, settings.level), error.pvalue(value)
        rows.append(ComparedMethods(task, one, two, interval, pvalue, adjusted=pvalue, n=n))

    for one, two in pairs:
        found = []
        for task in tasks:
            n = task.shared(one, two)
            if not len(n):
                notes.append(f"{task.name}: {one}, {two} and {task.scratch} share no size.")
                continue
            if len(n) < max(len(task.shared(m)) for m in (one, two)):
                shared = format_count(len(n), "size")
                notes.append(f"{task.name}: {one} and {two} are compared on the {shared} that both have.")
            a, b = (task.cci(m, n, settings.weight, settings.pooled) for m in (one, two))
            difference = a - b
            found.append((n, difference.value, difference.error))
            add(task.name, difference.value, difference.error, n)
        if average and len(found) > 1:
            # Runs of one task are none of another, so that the variances of the mean over tasks add up.
            errors = [error for *_, error in found]
            whole, within = (
                combine_variances(
                    np.array([(e.std / len(found)) ** 2 for e in part]), np.array([e.degrees for e in part])
                )
                for part in (errors, [e.within or e for e in errors])
            )
            error = replace(whole, within=within)
            sizes = np.unique(np.concatenate([n for n, *_ in found]))
            add(AVERAGE, float(np.mean([value for _, value, _ in found])), error, sizes)
    return TransferComparison(adjust_pvalues(rows), tuple(dict.fromkeys(notes)))


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
        Range of possible places: behind all methods that are significantly better and before all that are
        significantly worse, by Holm's method over all pairs at this size.
    best : float
        Probability that its risk is the lowest, from the spread of the runs; NaN where that is unknown.
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
        Confidence level of the ranges of places at one size together.
    scratch : str
        Name of the method that starts from nothing.
    """

    rows: tuple[MethodRank, ...]
    level: float
    scratch: str = "scratch"
    warnings: tuple[str, ...] = ()

    def columns(self) -> dict[str, list[Any]]:
        """Return a row for each task, size and method."""
        return columns_of(self.rows, "task n method rank low high best among")

    def at(self, task: str, n: float) -> dict[str, MethodRank]:
        """Return the methods at one size, by name."""
        return {r.method: r for r in self.rows if r.task == task and r.n == n}

    def sentences(self) -> str:
        """Say which method leads at each size."""
        lines = []
        for task, n in dict.fromkeys((r.task, r.n) for r in self.rows):
            first = [r for r in self.at(task, n).values() if r.low == 1]
            best = min(first, key=lambda r: r.rank)
            others = len(first) - 1
            text = f"{task}, n = {format_number(n)}: {best.method} is first of {best.among}"
            lines.append(text + (f"; {others} more may be." if others else ", significantly."))
        return "\n".join(lines)


def _rank_at_size(task: TaskRuns, n: float, level: float) -> list[MethodRank]:
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
    significant = holm([1.0 if math.isnan(p) else p for p in tested]) <= 1 - level
    for (i, j), gap, differs in zip(pairs, gaps, significant, strict=True):
        if differs:
            low, high = (i, j) if gap.value < 0 else (j, i)
            better[high] += 1
            worse[low] += 1
    # Mean of the best and the worst place among equals, which are equal but for rounding.
    behind = values[:, None] - values
    places = 0.5 * (1 + (behind > TIE).sum(1) + (behind >= -TIE).sum(1))
    # Probability of each method to have the lowest mean risk; the controls move all alike.
    cells = [task.cells[name, n] for name in names]
    errors = [task.runs.error(task.runs.of_mean(c)) for c in cells]
    chance = [math.nan] * len(names)
    if not any(math.isnan(e.std) for e in errors):
        # Quantiles at 200 points of each t distribution stand for it: enough for a probability in two digits.
        points = (np.arange(200) + 0.5) / 200
        drawn = [
            task.runs.mean[c] + e.std * stdtrit(min(e.degrees, MANY), points)
            for c, e in zip(cells, errors, strict=True)
        ]
        chance = probability_lowest(np.array(drawn), points).tolist()
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
    rows: list[MethodSpread] = []
    if isinstance(source, TransferResult):
        if lost := [task for task in source.tasks if source.blind[task].assumed]:
            raise blind_missing(lost[0])
        calibrated = True
        for c in source.curves:
            for n, mean, std, runs in zip(*(v.tolist() for v in (c.n, c.calibrated, c.std, c.runs)), strict=True):
                rows.append(MethodSpread(c.task, c.method, n, mean, _std_interval(std, runs, level), runs))
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
                above, runs = risks - risks.min(), len(risks)  # equal runs have no spread, not even by rounding
                std = float(above.std(ddof=1)) if runs > 1 else math.nan
                mean = float(risks.min() + above.mean())
                rows.append(MethodSpread(task, method, n, mean, _std_interval(std, runs, level), runs))
    else:
        raise InputError(
            f"is a {type(source).__name__}: pass what load_risks or measure_transfer gives.", argument="source"
        )
    unit = "calibrated risk" if calibrated else source.unit
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
        return find_row(self.rows, task=task, method=method, n=n)

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
        tested = sum(p.pvalue < share for p in self.pairs)
        significant = sum(p.adjusted < share for p in self.pairs)
        text += f" In {outside} of {len(self.pairs)} pairs of methods at a size each mean lies "
        text += "outside the standard deviation of the other; "
        text += f"{tested} differ significantly by Welch's test at {format_level(share)}, "
        return text + f"{significant} after Holm's correction."


def _std_interval(std: float, runs: int, level: float) -> Interval:
    """Return the chi-square interval of a standard deviation."""
    if runs < 2:
        return Interval(math.nan, math.nan, math.nan, level)
    free, tail = runs - 1, 0.5 * (1.0 - level)
    low, high = (std * math.sqrt(free / chdtri(free, p)) for p in (tail, 1.0 - tail))
    return Interval(std, low, high, level)
