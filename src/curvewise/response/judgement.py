"""What judging measures on a corpus gives."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scipy.special import ndtr, ndtri

from curvewise.errors import InputError
from curvewise.response._engine import jackknife_error
from curvewise.response._judgement_tables import Section, write_table
from curvewise.types import FloatArray, Interval, Result

AVERAGE = "All Avg"
VALUES = ("cmi", "pgdl", "kendall", "granulated", "pearson", "spearman")
HUNDREDFOLD = ("cmi", "pgdl")  # as the competition gives them


@dataclass(frozen=True, eq=False)
class Judged:
    """One measure on the models of one task.

    Attributes
    ----------
    measure, task : str
    n : int
        Models that have the measure and a gap.
    cmi : Interval
        Conditional mutual information, see :func:`cmi_score`, and its interval.
    null_mean, pvalue : float
        Its mean under the null, and how often the null gives as much.
    null : str
        Which effects of the hyperparameters the null keeps.
    directed : bool
        Whether the measure was held to a declared orientation.
    pgdl : float
        The competition's version.
    kendall, granulated, pearson, spearman : float
        Kendall's τ-b, its granulated form, Pearson's and Spearman's correlation with the gap.
    """

    measure: str
    task: str
    n: int
    cmi: Interval
    null_mean: float
    pvalue: float
    null: str
    directed: bool
    pgdl: float
    kendall: float
    granulated: float
    pearson: float
    spearman: float
    _centre: float = field(default=math.nan, repr=False)
    _error: float = field(default=math.nan, repr=False)
    _dealt: FloatArray | None = field(default=None, repr=False)
    _left_out: FloatArray | None = field(default=None, repr=False)
    _models: tuple[int, ...] = field(default=(), repr=False)

    @classmethod
    def unknown(cls, measure: str, task: str, n: int, level: float) -> Judged:
        """A measure of which nothing can be said."""
        nan = math.nan
        nothing = Interval(nan, nan, nan, level)
        return cls(measure, task, n, nothing, nan, nan, "nothing", False, nan, nan, nan, nan, nan)

    def value(self, name: str) -> float:
        """One of the values as a number."""
        return self.cmi.estimate if name == "cmi" else float(getattr(self, name))


@dataclass(frozen=True, eq=False)
class MeasureJudgement(Result):
    """How well measures tell the generalization gap.

    Attributes
    ----------
    rows : tuple of Judged
        Measures within tasks; with several tasks, at the end the averages over them.
    measures, tasks : tuple of str
    models : int
        Models that were judged on.
    level : float
        Coverage of the intervals.
    permutations : int
        Draws of the null.
    """

    rows: tuple[Judged, ...]
    measures: tuple[str, ...]
    tasks: tuple[str, ...]
    models: int
    level: float
    permutations: int
    warnings: tuple[str, ...] = ()

    def row(self, measure: str, task: str | None = None) -> Judged:
        """One measure on one task, or on average over them."""
        wanted = task or (AVERAGE if len(self.tasks) > 1 else self.tasks[0])
        for row in self.rows:
            if row.measure == measure and row.task == wanted:
                return row
        raise InputError(
            f"measure={measure!r}, task={task!r}: there is no such row. Measures are "
            f"{list(self.measures)!r}, tasks {list(self.tasks)!r}."
        )

    def columns(self) -> dict[str, Any]:
        """A row for each measure and task."""
        return {
            "measure": [r.measure for r in self.rows],
            "task": [r.task for r in self.rows],
            "n": [r.n for r in self.rows],
            "cmi": [r.cmi.estimate for r in self.rows],
            "low": [r.cmi.low for r in self.rows],
            "high": [r.cmi.high for r in self.rows],
            "null_mean": [r.null_mean for r in self.rows],
            "pvalue": [r.pvalue for r in self.rows],
            **{name: [r.value(name) for r in self.rows] for name in VALUES[1:]},
        }

    def table(
        self,
        format: str = "markdown",
        digits: int = 2,
        *,
        value: str = "cmi",
        sections: Mapping[str, Sequence[str]] | None = None,
    ) -> str:
        """Measures by tasks, the best of each task bold, as in table 1 of Schiff et al. 2021.

        Parameters
        ----------
        format : {"markdown", "latex", "text"}
            Markup of the table.
        digits : int
            Decimals.
        value : {"cmi", "pgdl", "kendall", "granulated", "pearson", "spearman"}
            What is shown. The first two are multiplied by 100, as the competition does.
        sections : dict of str to sequence of str, optional
            Measures under headings. The best of each section is bold, the best of all starred.
        """
        parts = sections or {f"{value} × 100" if value in HUNDREDFOLD else value: self.measures}
        shown = [self.section(k, names, value) for k, names in parts.items()]
        return write_table(shown, self.shown_tasks, format, digits, overall=len(shown) > 1)

    @property
    def shown_tasks(self) -> tuple[str, ...]:
        """The columns of a table."""
        return (*self.tasks, AVERAGE) if len(self.tasks) > 1 else self.tasks

    def section(self, heading: str, names: Sequence[str], value: str = "cmi") -> Section:
        """Some measures as a part of a table."""
        if value not in VALUES:
            raise InputError(f"value={value!r}: use one of {', '.join(map(repr, VALUES))}.")
        factor = 100 if value in HUNDREDFOLD else 1
        rows = {
            name: {t: factor * self.row(name, t).value(value) for t in self.shown_tasks}
            for name in names
        }
        counts = {t: max(r.n for r in self.rows if r.task == t) for t in self.shown_tasks}
        return Section(heading, rows, counts)

    def compare(self, one: str, two: str) -> MeasureComparison:
        """How much more one measure tells than another, on the same models.

        The jackknife leaves out a model for both measures at once, so that what both share of the
        luck of the corpus cancels.
        """
        scores, errors = [], []
        for task in self.tasks:
            a, b = self.row(one, task), self.row(two, task)
            if a._left_out is None or b._left_out is None or a._models != b._models:
                raise InputError(
                    f"{one!r} and {two!r} were not judged on the same four or more models of "
                    f"{task!r}: select those that have both first."
                )
            scores.append(a.cmi.estimate - b.cmi.estimate)
            errors.append(jackknife_error(a._left_out - b._left_out))
        mean = math.fsum(scores) / len(scores)
        error = math.sqrt(math.fsum(e * e for e in errors)) / len(errors)
        parts = [self._difference(d, e) for d, e in zip(scores, errors, strict=True)]
        # With no error at all the measures rank every pair of models alike.
        pvalue = float(2 * ndtr(-abs(mean) / error)) if error else 1.0
        whole = self._difference(mean, error)
        return MeasureComparison(one, two, self.tasks, tuple(parts), whole, pvalue)

    def _difference(self, estimate: float, error: float) -> Interval:
        half = float(ndtri(0.5 + self.level / 2)) * error
        return Interval(estimate, estimate - half, estimate + half, self.level)

    def summary(self) -> str:
        """A few sentences."""
        rows = [self.row(name) for name in self.measures]
        known = [r for r in rows if not math.isnan(r.cmi.estimate)]
        tasks = f" of {len(self.tasks)} tasks" if len(self.tasks) > 1 else ""
        one = "" if len(rows) == 1 else "s"
        text = f"{len(rows)} measure{one} judged on {self.models} models{tasks}."
        if not known:
            return text + " None has a score."
        best = max(known, key=lambda r: r.cmi.estimate)
        text += f" Best{' on average' if tasks else ''} is {best.measure}: CMI {best.cmi}"
        if not math.isnan(best.pvalue):
            text += f", {best.null_mean:.3f} by hyperparameters alone (p = {best.pvalue:.2g})"
            better = sum(r.pvalue <= 1 - self.level for r in known)
            text += f". {better} of {len(known)} tell more than hyperparameters do, each at "
            text += f"{1 - self.level:.0%}"
        return text + "."


@dataclass(frozen=True, eq=False)
class MeasureComparison(Result):
    """How much more one measure tells than another.

    Attributes
    ----------
    one, two : str
        The measures.
    tasks : tuple of str
    by_task : tuple of Interval
        Difference of their conditional mutual information in each task.
    difference : Interval
        Mean over the tasks.
    pvalue : float
        Two-sided, that the mean difference is 0.
    """

    one: str
    two: str
    tasks: tuple[str, ...]
    by_task: tuple[Interval, ...]
    difference: Interval
    pvalue: float
    warnings: tuple[str, ...] = ()

    def columns(self) -> dict[str, list[Any]]:
        """A row for each task, and one for their mean."""
        parts = [*self.by_task, self.difference] if len(self.tasks) > 1 else list(self.by_task)
        return {
            "task": [*self.tasks, AVERAGE][: len(parts)],
            "difference": [p.estimate for p in parts],
            "low": [p.low for p in parts],
            "high": [p.high for p in parts],
        }

    def summary(self) -> str:
        """One sentence."""
        return (
            f"CMI of {self.one} less that of {self.two}: {self.difference} (p = {self.pvalue:.2g})."
        )


def tabulate_judgements(
    judgements: Mapping[str, MeasureJudgement],
    format: str = "markdown",
    digits: int = 2,
    *,
    value: str = "cmi",
) -> str:
    """Several judgements below each other, as in table 3 of Schiff et al. 2021.

    Parameters
    ----------
    judgements : dict of str to MeasureJudgement
        By heading: for each perturbation the measures of it, say.
    format, digits, value
        As of :meth:`MeasureJudgement.table`.

    Returns
    -------
    str
        A column for each task that occurs, with the number of models beside each heading. The
        best measure under each heading is bold.
    """
    if not judgements:
        raise InputError("judgements is empty: give at least one.")
    columns = dict.fromkeys(t for j in judgements.values() for t in j.shown_tasks)
    average = [AVERAGE] if AVERAGE in columns else []
    tasks = [*(t for t in columns if t != AVERAGE), *average]
    sections = [j.section(k, j.measures, value) for k, j in judgements.items()]
    return write_table(sections, tasks, format, digits)
