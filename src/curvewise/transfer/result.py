"""What measuring transfer gives: calibrated curves and improvements over scratch."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from curvewise.errors import InputError
from curvewise.stats.intervals import probability_lowest
from curvewise.stats.tests import holm
from curvewise.tables import format_table
from curvewise.text import as_count, format_number
from curvewise.transfer.calibration import Weight
from curvewise.transfer.risks import ONE_TASK, Control
from curvewise.transfer.runs import MANY, Error, Estimate, Task, beaten, together
from curvewise.types.results import Interval, Result
from curvewise.types.units import FloatArray

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


@dataclass(frozen=True)
class Settings:
    """How improvements are made."""

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
    return " ".join(str(as_count(n)) for n in found)


def _found(rows: Sequence[Any], task: str, method: str) -> Any:
    for row in rows:
        if (row.task, row.method) == (task, method):
            return row
    there = [(row.task, row.method) for row in rows]
    raise InputError(f"task={task!r}, method={method!r}: there is no such pair; there are {there[:20]!r}.")


# Methods against each other: differences of their cumulative improvements.

AVERAGE = "average"


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
    text += f", p = {format_number(row.pvalue, 2)}"
    if row.adjusted != row.pvalue:
        text += f" ({format_number(row.adjusted, 2)} for all comparisons together)"
    return text + "."


def compare_methods(
    tasks: Sequence[Task], pairs: Sequence[tuple[str, str]], settings: Settings, *, average: bool = True
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


# How the ranking of methods changes with the training size.


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
            text = f"{task}, n = {format_number(n)}: {best.method} is first of {best.among}"
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
    drawn = [m + e.std * stdtrit(min(e.degrees, MANY), points) for m, e in zip(means, errors, strict=True)]
    return [float(p) for p in probability_lowest(np.array(drawn), points)]


# Improvements as a table of methods by tasks.

# Private-use characters stand for markup, as many as it is wide, and the writers of tables let
# them be.
OPEN, CLOSE, MINUS, NOTHING, DAGGER, DOUBLE = "\ue000\ue001\ue002\ue003\ue004\ue005"
_PLAIN = {MINUS: "-", NOTHING: "–", DAGGER: "†", DOUBLE: "‡"}
_MARKS: dict[str, dict[str, str]] = {
    "markdown": {OPEN: "**", CLOSE: "**", **_PLAIN},
    "latex": {
        OPEN: r"\textbf{",
        CLOSE: "}",
        MINUS: "$-$",
        NOTHING: "--",
        DAGGER: r"$^\dagger$",
        DOUBLE: r"$^\ddagger$",
    },
    "text": {OPEN: "", CLOSE: "*", **_PLAIN},
}
_NOTES = {
    DAGGER: "At half or more of the sizes there is one run, with the spread of other methods.",
    DOUBLE: "The highest of methods on different training sizes, which are not comparable.",
}
_MARKDOWN = re.compile(r"([\\`*_<>\[\]])")


def write_improvements(
    rows: Sequence[Improvement], tasks: Sequence[str], methods: Sequence[str], format: str, digits: int
) -> str:
    """Methods by tasks: value [low, high], the best of each task marked, notes below."""
    if format not in _MARKS:
        raise InputError(f"format={format!r} is not known: use one of {', '.join(_MARKS)}.")
    marks = {stand: stand * len(mark) for stand, mark in _MARKS[format].items()}
    held = {(r.task, r.method): r for r in rows}
    told = {r.method for r in rows if not math.isnan(r.cci.estimate)}
    shown = [m for m in methods if m in told] or list(methods)
    columns = {"Method": [_name(m, format) for m in shown]}
    for task in tasks:
        found = [held.get((task, m)) for m in shown]
        columns[_name(task, format)] = _column(found, digits, marks)
    text = format_table(columns, format)
    below = _notes([sign for sign in _NOTES if sign in text], format)
    for stand, mark in _MARKS[format].items():
        text = text.replace(stand * len(mark), mark) if mark else text
    return text + below


def _notes(signs: Sequence[str], format: str) -> str:
    """What the signs in a table say, below it."""
    if not signs:
        return ""
    said = [f"{_MARKS[format][sign]} {_NOTES[sign]}" for sign in signs]
    if format == "latex":
        return "\n" + "\n".join(rf"\par{{\footnotesize {note}\par}}" for note in said)
    return ("\n\n" if format == "markdown" else "\n") + "\n".join(said)


def _differ(rows: Sequence[Improvement | None]) -> bool:
    """Whether the improvements that are known rest on different sizes."""
    known = [r for r in rows if r is not None and not math.isnan(r.cci.estimate)]
    return len({tuple(r.n.tolist()) for r in known}) > 1


def _column(rows: Sequence[Improvement | None], digits: int, marks: dict[str, str]) -> list[str]:
    values = [math.nan if r is None else r.cci.estimate for r in rows]
    rounded = [round(v, digits) + 0.0 for v in values if not math.isnan(v)]
    differ = marks[DOUBLE] if _differ(rows) else ""
    best = max(rounded) if len(set(rounded)) > 1 else None
    found = []
    for row, value in zip(rows, values, strict=True):
        text = _rounded(value, digits, marks)
        if best is not None and round(value, digits) == best:
            text = f"{marks[OPEN]}{text}{marks[CLOSE]}{differ}"
        if row is not None and not math.isnan(row.cci.low):
            low, high = (_rounded(v, digits, marks) for v in (row.cci.low, row.cci.high))
            text += f" [{low}, {high}]" + (marks[DAGGER] if row.borrowed else "")
        found.append(text)
    return found


def _rounded(value: float, digits: int, marks: dict[str, str]) -> str:
    if math.isnan(value):
        return marks[NOTHING]
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", marks[MINUS])


def _name(text: str, format: str) -> str:
    """A name that cannot do anything to a page or a terminal."""
    plain = "".join(c if c.isprintable() and not "\ue000" <= c <= "\ue0ff" else "�" for c in text)
    return _MARKDOWN.sub(r"\\\1", plain) if format == "markdown" else plain


# What is said of measured transfer: warnings, notes and the summary.

LOWER = 0.1  # how much lower maximal supervision might be, of the distance to the blind guess
PERSISTING = 3.2  # z-score from which runs are said to vary together; two runs at five sizes: 3.16
FAR = 10  # how many times the largest of risks between 0 and 1 a blind guess may be


def task_alarms(task: Task, settings: Settings, alone: bool) -> list[str]:
    """What the user should act on, for a task as a whole that may be the only one."""
    found = [
        *([_assumed(task, settings)] if task.maximal.assumed else []),
        *beaten(task),
        *_far(task),
        *_failures(task),
        *_no_spread(task),
        *_twice(task),
        *_persisting(task),
        *_apart(task),
        *_ranges(task, alone),
        *_rising(task, settings),
    ]
    return [f"{task.name}: {text}" for text in found]


def _far(task: Task) -> list[str]:
    """A blind guess in percent, by the look of it, beside risks that are fractions."""
    blind, risks = task.blind.risk, task.runs.value
    low, high = float(risks.min()), float(risks.max())
    if low < 0 or not 0 < high <= 1 or blind <= FAR * high:
        return []
    asked = f"in percent? Then pass {blind / 100:.6g}." if blind <= 100 else "in their unit?"
    return [
        f"blind={blind:.6g} is more than {FAR} times the largest risk, {format_number(high)}: is it "
        f"{asked} Calibrated risks and gains hang on it; CCI does not."
    ]


def _failures(task: Task) -> list[str]:
    if not task.failed:
        return []
    said = ", ".join(
        f"{m} at n = {format_number(n)}: {k}{'' if (m, n) in task.cells else ' (all of them)'}"
        for (m, n), k in task.failed.items()
    )
    many = sum(task.failed.values())
    return [
        f"{many} failed run{'' if many == 1 else 's'} left out ({said}), so that means are those "
        "of runs that went well: give a failed run the risk of what would be used in its place, if "
        "that is the question."
    ]


def _no_spread(task: Task) -> list[str]:
    if task.runs.replicated:
        return []
    return [
        "no method was run twice at any size, so that there is no interval: repeat some runs with "
        "other seeds, scratch first."
    ]


def _twice(task: Task) -> list[str]:
    if not task.twice:
        return []
    return [
        f"{task.twice} row{'' if task.twice == 1 else 's'} repeat the method, size, seed, fold and "
        "risk of another and count as runs of their own: was a table put together twice?"
    ]


def _persisting(task: Task) -> list[str]:
    """Runs that go up and down together over sizes, by nothing but their order in the table."""
    if task.seeded or task.runs.by_fold:
        return []
    r, z = task.runs.persistence()
    if not z > PERSISTING:
        return []
    return [
        f"the k-th runs of different sizes vary together (mean correlation {r:.2f}), as runs that "
        "share a seed do, and intervals are wider for it. There is no column of seeds: add one. If "
        "the rows of each size are sorted by risk, that is the reason: give them in the order in "
        "which they were run."
    ]


def _apart(task: Task) -> list[str]:
    names = [m for m in task.methods if not len(task.shared(m))]
    if not names:
        return []
    return [f"{', '.join(names)}: no size shared with {task.scratch}, so that no gain is known."]


def _rising(task: Task, settings: Settings) -> list[str]:
    share = rising_share(task, task.sizes(task.scratch), settings)
    if not share:
        return []
    return [
        f"{task.scratch} gets worse with more data in places: {format_number(100 * share, 2)}% of the "
        "weight is negative, and there a gain counts as a loss. More runs would tell whether that "
        "is noise; weight='log' does not depend on it."
    ]


def rising_share(task: Task, n: FloatArray, settings: Settings) -> float:
    """How much of the weight is negative: steps over which the risk of scratch rises."""
    if callable(settings.weight) or settings.weight != "scratch" or len(n) < 2:
        return 0.0
    steps = np.diff(task.runs.mean[task.index(task.scratch, n)])
    total = float(np.abs(steps).sum())
    return float(steps[steps > 0].sum()) / total if total else 0.0


def _assumed(task: Task, settings: Settings) -> str:
    control = task.maximal
    text = (
        f"maximal supervision was not measured: {format_number(control.risk)} stands for it "
        f"({control.source}). Pass maximal= with the risk that all the data gives"
    )
    known = {m: task.shared(m) for m in task.methods}
    found = {m: task.cci(m, n, settings.weight, settings.pooled) for m, n in known.items() if len(n) > 1}
    found = {m: e for m, e in found.items() if not math.isnan(e.value)}
    if not found:
        return text + "."
    best = max(found, key=lambda m: found[m].value)
    now = found[best].value
    lower = task.lowered(LOWER).cci(best, known[best], settings.weight, settings.pooled).value
    return (
        f"{text}: were it lower by {LOWER:.0%} of the distance to the blind guess, CCI of {best} "
        f"would be {format_number(lower, 3)} in place of {format_number(now, 3)}."
    )


def _ranges(task: Task, alone: bool) -> list[str]:
    """Methods whose improvements rest on different sizes."""
    held: dict[tuple[float, ...], list[str]] = {}
    for method in task.methods:
        n = task.shared(method)
        if len(n):
            held.setdefault(tuple(n.tolist()), []).append(method)
    if len(held) < 2:
        return []
    shared = sorted(set.intersection(*(set(sizes) for sizes in held)))
    said = "; ".join(
        f"{', '.join(names[:4])}{' …' if len(names) > 4 else ''} on {_listed(sizes)}" for sizes, names in held.items()
    )
    chosen = [as_count(n) for n in shared]
    remedy = (
        f"Pass sizes={chosen if alone else {task.name: chosen}!r}, which all of them have"
        if len(shared) > 1
        else "No two sizes are shared by all"
    )
    return [f"CCIs rest on different sizes and are not comparable. {remedy}. There are {said}."]


def _listed(sizes: Sequence[float]) -> str:
    if len(sizes) < 3:
        return " and ".join(map(format_number, sizes))
    return f"{len(sizes)} sizes from {format_number(sizes[0])} to {format_number(sizes[-1])}"


def task_notes(task: Task, curves: Sequence[RiskCurve]) -> list[str]:
    """What else there is to know of a task."""
    alone = (*_unknown(task), *_borrowed(task), *_one_subset(task), *_alike(task))
    found = [f"{task.name}: {text}" for text in alone]
    own = [c for c in curves if c.task == task.name]
    for text, chosen in (
        ("worse than the blind guess", [_where(c, c.calibrated > 1) for c in own]),
        ("better than maximal supervision", [_where(c, c.calibrated < 0) for c in own if c.method != task.scratch]),
    ):
        said = [part for part in chosen if part]
        if said:
            found.append(f"{task.name}: {text}: {'; '.join(said)}.")
    return found


def _borrowed(task: Task) -> list[str]:
    """Means whose spread is that of others."""
    lending = task.runs.degrees > 0
    used = list(task.cells.values())
    known, size = lending[used], task.runs.size[used]
    if known.all() or not lending.any():
        return []
    alone = [
        m
        for m in (task.scratch, *task.methods)
        if len(task.sizes(m)) and not lending[task.index(m, task.sizes(m))].any()
    ]
    what = "training subset" if task.runs.by_fold else "run"
    text = (
        f"{int((~known).sum())} of {len(known)} means rest on one {what}; their spread is taken "
        "from methods with several at the same size, else at the nearest smaller one"
    )
    if size[~known].min() < task.runs.size[lending].min():
        text += ", below the smallest from the nearest larger one, where it may be too small"
    if alone:
        text += f". Intervals of {', '.join(alone)} hold if their runs spread alike"
    return [text + "."]


def _one_subset(task: Task) -> list[str]:
    if task.runs.fold is None or task.runs.by_fold or not task.runs.replicated:
        return []
    return [
        "every method was trained on one subset of each size, so that intervals are about other "
        "seeds on these subsets, not about other subsets."
    ]


def _alike(task: Task) -> list[str]:
    """Runs that differ nowhere, which are rather copies than a spread of 0."""
    variance = task.runs.variance[task.runs.count > 1]
    if not len(variance) or variance.any():
        return []
    return [
        "all runs of the same method and size have the same risk, so that intervals have no width "
        "and p-values mean nothing: are they copies of one run, or rounded?"
    ]


def _unknown(task: Task) -> list[str]:
    """Maximal supervision that was measured, but not twice; CCI does not depend on the guess."""
    if not math.isnan(task.maximal.std) or task.best is not None:
        return []
    return [
        "the error of maximal supervision, measured once, is not known, and intervals take its "
        "risk as exact: run it with other seeds, too, or pass maximal= with its interval."
    ]


def _where(curve: RiskCurve, mask: NDArray[np.bool_]) -> str:
    if not mask.any():
        return ""
    return f"{curve.method} at n = {', '.join(map(format_number, curve.n[mask].tolist()))}"


def said_of_transfer(result: TransferResult) -> str:
    """A few sentences on a result."""
    tasks = f"{len(result.tasks)} task{'' if len(result.tasks) == 1 else 's'}"
    methods = f"{len(result.methods)} method{'' if len(result.methods) == 1 else 's'}"
    text = f"{methods} against {result.scratch} on {tasks}."
    return text + "".join(f" {_said_of_task(result, task)}" for task in result.tasks)


def _said_of_task(result: TransferResult, task: str) -> str:
    rows = [r for r in result.improvements if r.task == task]
    known = [r for r in rows if not math.isnan(r.cci.estimate)]
    if not known:
        return f"{task}: no improvement can be computed."
    best = max(known, key=lambda r: r.cci.estimate)
    nameless = result.tasks == (ONE_TASK,)  # the table has no column of tasks
    text = "" if nameless else f"{task}: "
    text += f"{'B' if nameless else 'b'}est is " if len(known) > 1 else ""
    text += f"{best.method}, CCI {_interval(best)}"
    told = [r for r in known if not math.isnan(r.pvalue)]
    share = 1 - result.level
    if len(told) > 1:
        signs = np.sign([r.cci.estimate for r in told if r.sure])
        text += f"; {int((signs > 0).sum())} of {len(told)} are better than {result.scratch}"
        text += f", {int((signs < 0).sum())} worse" if (signs < 0).any() else ""
        text += f" at {format_number(round(100 * share, 6))}% after Holm's correction for "
        text += f"{len(told)} tests"
    text += "."
    if best.gain_ends is not None and told:
        text += f" {best.gain_ends.text}"
    if result.maximal[task].assumed:
        text += f" Maximal supervision is assumed: {result.maximal[task].source}."
    return text


def _interval(row: Improvement) -> str:
    if math.isnan(row.cci.low):
        return format_number(row.cci.estimate, 3)
    ends = f"[{format_number(row.cci.low, 3)}, {format_number(row.cci.high, 3)}]"
    return f"{format_number(row.cci.estimate, 3)} {ends}"
