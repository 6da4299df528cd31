"""Judge measures of generalization on a corpus of trained models, which of them predict the gap; and combine them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from curvewise.errors import CurvewiseWarning, InputError, arg, either
from curvewise.response.cmi import (
    Codes,
    ConditioningSets,
    InformationScores,
    chance_noise,
    check_corpus,
    clipped_interval,
    jackknife_error,
    lowest_pgdl,
    pair_cells,
    pgdl_scores,
    shuffled_gaps,
    upper_tail,
    value_codes,
)
from curvewise.response.load import KNOWN_ORIENTATION, ModelCorpus
from curvewise.stats.correlation import average_ranks, kendall, pearson, spearman
from curvewise.text import format_count, format_interval, format_pvalue, format_table, mark_best
from curvewise.types.results import FloatArray, Interval, Result, as_floats, as_generator, check_level, interval_lists

# The name of this row in table 1 of Schiff et al. 2021.
AVERAGE = "All Avg"
VALUES = ("cmi", "pgdl", "kendall", "granulated", "pearson", "spearman")
# Multiplied by 100 in tables, as the competition does.
HUNDREDFOLD = ("cmi", "pgdl")
# Measures times pairs of models that are scored together: 32 MB of single precision.
AT_ONCE = 2**23


def judge_measures(
    corpus: ModelCorpus,
    measures: Sequence[str] | None = None,
    *,
    least_train_accuracy: float | None = None,
    given: int = 2,
    permutations: int = 999,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> MeasureJudgement:
    """Judge how well measures predict the generalization gap, task by task and on average.

    Parameters
    ----------
    corpus : ModelCorpus
        Models with hyperparameters, gaps and measures.
    measures : sequence of str, optional
        Names of the measures to judge; all by default.
    least_train_accuracy : float, optional
        Leave out models with a lower training accuracy; Schiff et al. 2021 take 0.8.
    given : int
        Number of hyperparameters held fixed at a time in the conditional mutual information.
    permutations : int
        Draws of its null distribution; 0 for none.
    level : float
        Coverage of its interval.
    rng : int or Generator
        Decides the draws.

    Returns
    -------
    MeasureJudgement
        For each measure and task the conditional mutual information with its interval and null distribution, the
        competition's version of it, and rank and linear correlations. A measure with a declared orientation is held
        to it; one without is as good in either direction.

    Warns
    -----
    CurvewiseWarning
        If models are left out because they failed, or hyperparameters leave little to predict.

    Notes
    -----
    The interval is for the score that a very large corpus over the same hyperparameters would give: the score ±
    Student's t times the jackknife's standard error over models. It is unknown for a measure that is right on every
    pair of models, and so is that of an average over tasks with such a one. The null distribution permutes what
    hyperparameters leave unexplained of the gap: its p-value is for "this measure says nothing beyond all
    hyperparameters together". That part is taken to vary alike everywhere: where its spread differs by a factor of ten
    or more between settings, about one in ten null tests is significant at 0.05.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> gap = rng.random(36) / 5
    >>> corpus = ModelCorpus(
    ...     models=tuple(f"net {i}" for i in range(36)),
    ...     hyperparameters={"depth": np.tile([2, 4, 6], 12), "norm": np.repeat([True, False], 18)},
    ...     gap=gap,
    ...     measures={"good": gap + rng.normal(size=36) / 50, "poor": rng.random(36)},
    ...     orientation={"good": 1, "poor": 1},
    ... )
    >>> print(judge_measures(corpus).table())
    | measure   | all models |
    |:----------|-----------:|
    | cmi × 100 | n = 36     |
    | good      | **56.06**  |
    | poor      | -0.30      |
    """
    if not isinstance(corpus, ModelCorpus):
        problem = (
            f"is a {type(corpus).__name__}: pass a ModelCorpus, which load_corpus reads from a file or a DataFrame."
        )
        raise InputError(problem, argument="corpus")
    check_level(level)
    if isinstance(measures, str):
        raise InputError(f"{arg('measures', measures)} is one text: give a list of names.")
    chosen = list(corpus.measures if measures is None else dict.fromkeys(measures))
    for name in chosen:
        if name not in corpus.measures:
            raise InputError(f"holds {name!r}, which is none of {list(corpus.measures)[:20]!r}.", argument="measures")
    if not chosen:
        remedy = either("add some with corpus.with_measures({…})", "name their columns with --measure")
        raise InputError(f"has no measures: {remedy}.", argument="corpus")
    corpus, notes = well_trained(corpus, least_train_accuracy)
    given_rng = as_generator(rng)
    # A generator that was passed must give other draws the next time.
    generator = given_rng.spawn(1)[0] if given_rng is rng else given_rng
    rows: list[MeasureScores] = []
    alarms: list[str] = []
    tasks = corpus.task_names
    # Draws of their own for each task: those of one do not depend on the measures of another.
    for (task, part), own in zip(corpus.by_task().items(), [generator, *generator.spawn(len(tasks) - 1)], strict=True):
        judge = _TaskJudge(task, part, given, permutations, level, own)
        rows += judge.rows(chosen)
        alarms += judge.alarms
        notes += judge.notes
    for text in dict.fromkeys(alarms):
        warnings.warn(text, CurvewiseWarning, stacklevel=2)
    if len(tasks) > 1:
        rows += [_average([row for row in rows if row.measure == name], level) for name in chosen]
    return MeasureJudgement(
        rows=tuple(rows),
        measures=tuple(chosen),
        tasks=tasks,
        models=len(corpus),
        level=level,
        permutations=permutations,
        warnings=tuple(dict.fromkeys([*alarms, *notes])),
    )


@dataclass(frozen=True, eq=False)
class MeasureScores:
    """Scores of one measure on the models of one task.

    Attributes
    ----------
    measure, task : str
    n : int
        Models that have the measure and a gap.
    cmi : Interval
        Conditional mutual information, see :func:`cmi_score`, and its interval.
    null_mean, pvalue : float
        Its mean under the null distribution, and the share of draws that give as much.
    null : str
        The effects of the hyperparameters that the null distribution keeps.
    directed : bool
        The measure was held to a declared orientation.
    pgdl : float
        The competition's version.
    kendall, granulated, pearson, spearman : float
        Kendall's τ-b, its granulated form, Pearson's and Spearman's correlation with the gap.
    """

    measure: str
    task: str
    n: int
    cmi: Interval
    directed: bool
    null_mean: float = math.nan
    pvalue: float = math.nan
    null: str = "nothing"
    pgdl: float = math.nan
    kendall: float = math.nan
    granulated: float = math.nan
    pearson: float = math.nan
    spearman: float = math.nan
    # Kept for averages over tasks and paired comparisons of two measures; no part of the frame.
    _centre: float = field(default=math.nan, repr=False)
    _error: float = field(default=math.nan, repr=False)
    _shuffled: FloatArray | None = field(default=None, repr=False)
    _left_out: FloatArray | None = field(default=None, repr=False)
    _models: tuple[int, ...] = field(default=(), repr=False)

    def value(self, name: str) -> float:
        """Return one of the scores as a number."""
        return self.cmi.estimate if name == "cmi" else float(getattr(self, name))

    def strength(self, name: str) -> float:
        """Return the same as it is ordered by: either sign is as good for a measure without an orientation."""
        return self.value(name) if self.directed or name in HUNDREDFOLD else abs(self.value(name))


@dataclass(frozen=True, eq=False)
class MeasureJudgement(Result):
    """Scores of measures as predictors of the generalization gap.

    Attributes
    ----------
    rows : tuple of MeasureScores
        Measures within tasks; with several tasks, at the end the averages over them.
    measures, tasks : tuple of str
    models : int
        Models that were judged on.
    level : float
        Coverage of the intervals.
    permutations : int
        Draws of the null distribution.
    """

    rows: tuple[MeasureScores, ...]
    measures: tuple[str, ...]
    tasks: tuple[str, ...]
    models: int
    level: float
    permutations: int
    warnings: tuple[str, ...] = ()

    def row(self, measure: str, task: str | None = None) -> MeasureScores:
        """Return one measure on one task, or on average over them."""
        wanted = task or (AVERAGE if len(self.tasks) > 1 else self.tasks[0])
        for row in self.rows:
            if row.measure == measure and row.task == wanted:
                return row
        raise InputError(
            f"{arg('measure', measure)}, {arg('task', task)}: there is no such row. Measures are "
            f"{list(self.measures)!r}, tasks {list(self.tasks)!r}."
        )

    def columns(self) -> dict[str, Any]:
        """Return a row for each measure and task."""
        return {
            **{name: [getattr(r, name) for r in self.rows] for name in ("measure", "task", "n")},
            **interval_lists("cmi", (r.cmi for r in self.rows)),
            **{name: [getattr(r, name) for r in self.rows] for name in ("null_mean", "pvalue", *VALUES[1:])},
        }

    def table(
        self,
        format: str = "markdown",
        digits: int | None = None,
        *,
        value: str = "cmi",
        sections: Mapping[str, Sequence[str]] | None = None,
    ) -> str:
        """Write measures by tasks, the best of each task bold, as in table 1 of Schiff et al. 2021.

        Parameters
        ----------
        format : {"markdown", "latex", "text"}
            Markup of the table.
        digits : int, optional
            Decimals, 2 by default.
        value : {"cmi", "pgdl", "kendall", "granulated", "pearson", "spearman"}
            The score to show. The first two are multiplied by 100, as the competition does.
        sections : dict of str to sequence of str, optional
            Measures under headings. The best of each section is bold, the best of all starred.
        """
        digits = 2 if digits is None else digits
        parts = sections or {f"{value} × 100" if value in HUNDREDFOLD else value: self.measures}
        sections_of = [(heading, self, names) for heading, names in parts.items()]
        return _write_sections(sections_of, self.shown_tasks, value, format, digits, overall=len(parts) > 1)

    @property
    def shown_tasks(self) -> tuple[str, ...]:
        """The columns of a table."""
        return (*self.tasks, AVERAGE) if len(self.tasks) > 1 else self.tasks

    @property
    def counts(self) -> dict[str, int]:
        """Number of models behind each column of a table."""
        return {t: max(r.n for r in self.rows if r.task == t) for t in self.shown_tasks}

    def compare(self, one: str, two: str) -> MeasureComparison:
        """Compare the information of two measures on the same models.

        The jackknife leaves out a model for both measures at once, so that what both owe to the choice of models
        cancels.
        """
        scores, errors = [], []
        for task in self.tasks:
            a, b = self.row(one, task), self.row(two, task)
            if a._left_out is None or b._left_out is None or a._models != b._models:
                raise InputError(
                    f"{one!r} and {two!r} were not judged on the same four or more models of {task!r}: select those "
                    "that have both first."
                )
            scores.append(a.cmi.estimate - b.cmi.estimate)
            errors.append(jackknife_error(a._left_out - b._left_out, scores[-1]))
        mean = math.fsum(scores) / len(scores)
        error = math.sqrt(math.fsum(e * e for e in errors)) / len(errors)
        # Normal quantiles, as for the averages over tasks.
        z = float(ndtri(0.5 + self.level / 2))
        *parts, whole = (
            Interval(d, d - z * e, d + z * e, self.level)
            for d, e in zip([*scores, mean], [*errors, error], strict=True)
        )
        pvalue = float(2 * ndtr(-abs(mean) / error)) if abs(mean) > 1e-9 else 1.0
        return MeasureComparison(one, two, self.tasks, tuple(parts), whole, pvalue)

    def sentences(self) -> str:
        """Describe the result in a few sentences."""
        rows = [self.row(name) for name in self.measures]
        known = [r for r in rows if not math.isnan(r.cmi.estimate)]
        tasks = f" of {len(self.tasks)} tasks" if len(self.tasks) > 1 else ""
        # Without models that have no gap, or none of the measures.
        used = sum(self.counts[task] for task in self.tasks)
        some = f"{used:,} of " if used < self.models else ""
        text = f"{format_count(len(rows), 'measure')} judged on {some}{format_count(self.models, 'model')}{tasks}."
        if not known:
            return text + " None has a score."
        best = max(known, key=lambda r: r.cmi.estimate)
        cmi = format_interval([100 * v for v in best.cmi])
        least = "Best" if best.cmi.estimate >= 0 else "None predicts in its declared direction. Highest"
        text += f" {least}{' on average' if tasks else ''} is {best.measure}: CMI × 100 of {cmi}"
        if not math.isnan(best.pvalue):
            text += f", {100 * best.null_mean:.1f} by hyperparameters alone ({format_pvalue(best.pvalue)})"
            better = sum(r.pvalue <= 1 - self.level for r in known)
            text += f". {better} of {len(known)} predict significantly better than hyperparameters alone, each at"
            text += f" {1 - self.level:.2g}"
        if tasks and (lost := [r.measure for r in rows if math.isnan(r.cmi.estimate)]):
            text += f". Without an average, as a task gives no score: {', '.join(lost)}"
        if opposite := [r.measure for r in known if r.directed and r.cmi.high < 0]:
            text += f". Significantly opposite to the declared direction: {', '.join(opposite)}"
        ranked = {r.measure: r.strength("kendall") for r in rows if not math.isnan(r.kendall)}
        first = max(ranked, key=lambda name: ranked[name], default=best.measure)
        if first != best.measure and ranked[first] > ranked.get(best.measure, -math.inf):
            text += f". By Kendall's τ {first} is the best"
        return text + "."


@dataclass(frozen=True, eq=False)
class MeasureComparison(Result):
    """Difference between the information of two measures.

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
        """Return a row for each task, and one for their mean."""
        parts = [*self.by_task, self.difference] if len(self.tasks) > 1 else list(self.by_task)
        return {"task": [*self.tasks, AVERAGE][: len(parts)], **interval_lists("difference", parts)}

    def sentences(self) -> str:
        """Describe the result in one sentence."""
        return f"CMI of {self.one} less that of {self.two}: {self.difference} ({format_pvalue(self.pvalue)})."


def tabulate_judgements(
    judgements: Mapping[str, MeasureJudgement], format: str = "markdown", digits: int = 2, *, value: str = "cmi"
) -> str:
    """Write several judgements below each other, as in table 3 of Schiff et al. 2021.

    Parameters
    ----------
    judgements : dict of str to MeasureJudgement
        By heading: for each perturbation the measures of it, say.
    format, digits, value
        As of :meth:`MeasureJudgement.table`.

    Returns
    -------
    str
        A column for each task that occurs, with the number of models beside each heading. The best measure under each
        heading is bold.
    """
    if not judgements:
        raise InputError("is empty: give at least one.", argument="judgements")
    columns = dict.fromkeys(t for j in judgements.values() for t in j.shown_tasks)
    average = [AVERAGE] if AVERAGE in columns else []
    tasks = [*(t for t in columns if t != AVERAGE), *average]
    sections = [(heading, judgement, judgement.measures) for heading, judgement in judgements.items()]
    return _write_sections(sections, tasks, value, format, digits)


def _write_sections(
    sections: Sequence[tuple[str, MeasureJudgement, Sequence[str]]],
    tasks: Sequence[str],
    value: str,
    format: str,
    digits: int,
    *,
    overall: bool = False,
) -> str:
    """Write measures under headings, the best of each section bold; ``overall`` stars the best of all sections."""
    if value not in VALUES:
        raise InputError(f"use one of {', '.join(map(repr, VALUES))}.", argument="value", value=value)
    factor = 100 if value in HUNDREDFOLD else 1
    labels = [label for heading, _, names in sections for label in (heading, *names)]
    columns: dict[str, Sequence[Any]] = {"measure": labels}
    for task in tasks:
        cells: list[Any] = []
        rows = [[j.row(name, task) if task in j.shown_tasks else None for name in names] for _, j, names in sections]
        scores = [[math.nan if r is None else factor * r.value(value) for r in part] for part in rows]
        strengths = [[math.nan if r is None else factor * r.strength(value) for r in part] for part in rows]
        best = max((score for part in strengths for score in part if score == score), default=math.nan)
        for (_, judgement, _), part, strong in zip(sections, scores, strengths, strict=True):
            count = judgement.counts.get(task)
            cells.append("" if count is None else f"n = {count}")
            for cell, mark, score in zip(mark_best(part, digits), mark_best(strong, digits), strong, strict=True):
                # The only measure of a section is its best, too.
                bold = mark.bold or (len(part) == 1 and score == score)
                cells.append(cell._replace(bold=bold, signs="*" if overall and score == best else ""))
        columns[task if task != "measure" else "measure "] = cells
    return format_table(columns, format, digits, names=1)


def granulated_kendall(
    measure: ArrayLike, gap: ArrayLike, hyperparameters: Mapping[str, Any], *, orientation: int = 1
) -> float:
    """Rank correlation of a measure with the gap among models that differ in one hyperparameter.

    For every hyperparameter, Kendall's correlation within each group of models that agree in all others, averaged over
    the groups; then the mean over the hyperparameters (Jiang et al. 2020). A measure that predicts well only because
    one hyperparameter dominates the gap scores low.

    Parameters
    ----------
    measure, gap : array_like, shape (models,)
    hyperparameters : dict of str to array_like
        Columns with a value for each model.
    orientation : {1, -1}
        1 if more of the measure should mean a larger gap, -1 if a smaller one.

    Returns
    -------
    float
        From -1 to 1; NaN where no two models differ in one hyperparameter only.

    Examples
    --------
    >>> granulated_kendall([1, 2, 3, 4], [1, 2, 3, 4], {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1]})
    1.0
    """
    values, gaps, columns = check_corpus(measure, gap, hyperparameters, "corrected", orientation)
    if orientation is None:
        raise InputError("use 1 (more means a larger gap) or -1.", argument="orientation", value=None)
    codes = {name: value_codes(column) for name, column in columns.items()}
    return float(_granulated(values[None] * orientation, gaps, codes)[0])


def _granulated(measures: FloatArray, gap: FloatArray, codes: Mapping[str, Codes]) -> FloatArray:
    """Granulated Kendall correlation of each row."""
    by_axis = []
    for name, own in codes.items():
        cells = pair_cells({k: v for k, v in codes.items() if k != name}, len(gap))
        same = cells.groups[cells.first] == cells.groups[cells.second]
        chosen = same & (own[cells.first] != own[cells.second])
        if not chosen.any():
            continue
        first, second = cells.first[chosen], cells.second[chosen]
        _, group = np.unique(cells.groups[first], return_inverse=True)
        agree = np.sign(measures[:, first] - measures[:, second]) * np.sign(gap[first] - gap[second])
        count = np.bincount(group)
        by_axis.append(np.array([(np.bincount(group, weights=row) / count).mean() for row in agree]))
    return np.mean(by_axis, axis=0) if by_axis else np.full(len(measures), np.nan)


def well_trained(corpus: ModelCorpus, least: float | None) -> tuple[ModelCorpus, list[str]]:
    """Select the models that reach a training accuracy, and note how many."""
    if least is None:
        return corpus, []
    if not 0 <= least <= 1:
        raise InputError("give a fraction from 0 to 1, like 0.8.", argument="least_train_accuracy", value=least)
    if corpus.train_accuracy is None:
        raise InputError("the corpus has no training accuracies.", argument="least_train_accuracy", value=least)
    keep = corpus.train_accuracy >= least
    if not keep.any():
        raise InputError(f"no model of {len(corpus)} reaches it.", argument="least_train_accuracy", value=least)
    if keep.all():
        return corpus, [f"All {len(corpus)} models reach a training accuracy of {least:.0%}."]
    note = (
        f"{int((~keep).sum())} of {len(corpus)} models left out: training accuracy below {least:.0%} or unknown; "
        f"n = {int(keep.sum())}."
    )
    return corpus.select(keep), [note]


class _TaskJudge:
    """Judges measures on the models of one task; measures that exist for the same models are scored together."""

    def __init__(
        self, task: str, corpus: ModelCorpus, given: int, permutations: int, level: float, rng: np.random.Generator
    ) -> None:
        self.task, self.corpus = task, corpus
        self.given, self.permutations, self.level, self.rng = given, permutations, level, rng
        self.alarms: list[str] = []
        self.notes: list[str] = []

    def rows(self, names: Sequence[str]) -> list[MeasureScores]:
        """Judge every measure."""
        gap = self.corpus.gap
        lost = ~np.isfinite(gap)
        known, negative = int((~lost).sum()), int((gap < 0).sum())
        if 2 * negative > known:
            self._warn(
                f"{negative} of {known} gaps are negative: a gap is training less test accuracy. If these are test "
                "less training accuracy, change their sign; directions of measures are inverted otherwise."
            )
        if lost.any():
            self._warn(f"{self._models(lost)} have no gap and are left out.")
        # Measures that failed for the same models share cells, shuffled gaps and most of the time.
        batches: dict[bytes, list[str]] = {}
        for name in names:
            whole = ~lost & np.isfinite(self.corpus.measures[name])
            batches.setdefault(whole.tobytes(), []).append(name)
        found: dict[str, MeasureScores] = {}
        for mask, batch in batches.items():
            whole = np.frombuffer(mask, dtype=np.bool_)
            if failed := int((~lost & ~whole).sum()):
                listed = ", ".join(map(repr, batch[:5])) + (" …" if len(batch) > 5 else "")
                self._warn(
                    f"{self._models(~lost & ~whole)} have no {listed}: "
                    f"{'it is' if failed == 1 else 'they are'} left out there."
                )
            found |= {row.measure: row for row in self._judge(batch, whole)}
        return [found[name] for name in names]

    def _judge(self, names: list[str], whole: NDArray[np.bool_]) -> Iterator[MeasureScores]:
        """Judge measures on the models that have them."""
        count = int(whole.sum())
        if count < 2:
            self._warn(f"{count} model(s) with {names[0]!r}: it takes two to compare.")
            unknown = Interval(math.nan, math.nan, math.nan, self.level)
            for name in names:
                yield MeasureScores(name, self.task, count, unknown, name in self.corpus.orientation)
            return
        part = self.corpus.select(whole)
        conditioning = ConditioningSets.choose(part.gap, part.hyperparameters, self.given)
        # From the start each time: whether other measures failed for other models changes nothing.
        rng = deepcopy(self.rng)
        shuffled, null = shuffled_gaps(part.gap, conditioning.codes, self.permutations, rng)
        noise = chance_noise(part.gap, rng)
        for text in conditioning.alarms:
            self._warn(text)
        if shuffled is None:
            self._warn("Hyperparameters explain every gap, so that there is no null distribution to test against.")
        self.notes += [f"{self.task}: {text}" for text in conditioning.notes]
        models = tuple(np.flatnonzero(whole).tolist())
        at_once = max(1, AT_ONCE // (count * count))
        for start in range(0, len(names), at_once):
            some = names[start : start + at_once]
            signs = [part.orientation.get(name) for name in some]
            table = np.stack([part.measures[n] * (s or 1) for n, s in zip(some, signs, strict=True)])
            directed = np.array([s is not None for s in signs])
            scores = InformationScores.of(conditioning, table, directed, shuffled, noise)
            others = {
                "pgdl": lowest_pgdl(pgdl_scores(table, part.gap, part.hyperparameters), len(some)),
                "kendall": kendall(table, part.gap),
                "granulated": _granulated(table, part.gap, conditioning.codes),
                "pearson": pearson(table, part.gap),
                "spearman": spearman(table, part.gap),
            }
            for m, name in enumerate(some):
                yield MeasureScores(
                    measure=name,
                    task=self.task,
                    n=count,
                    cmi=scores.interval(m, self.level),
                    null_mean=scores.null_mean(m),
                    pvalue=scores.pvalue(m),
                    null=null,
                    directed=bool(directed[m]),
                    **{key: float(values[m]) for key, values in others.items()},
                    _centre=scores.centre(m),
                    _error=scores.error(m),
                    _shuffled=None if scores.shuffled is None else scores.shuffled[m],
                    _left_out=None if scores.left_out is None else scores.left_out[m],
                    _models=models,
                )

    def _models(self, lost: NDArray[np.bool_]) -> str:
        which = [self.corpus.models[i] for i in np.flatnonzero(lost)[:3]]
        more = " …" if lost.sum() > 3 else ""
        return f"{int(lost.sum())} of {len(lost)} models ({', '.join(map(repr, which))}{more})"

    def _warn(self, text: str) -> None:
        self.alarms.append(f"{self.task}: {text}")


def _average(rows: list[MeasureScores], level: float) -> MeasureScores:
    """Mean over the tasks, which are independent of each other."""
    count = len(rows)

    def mean(name: str) -> float:
        return math.fsum(getattr(row, name) for row in rows) / count

    score = math.fsum(row.cmi.estimate for row in rows) / count
    # Variances of independent tasks add up.
    error = math.sqrt(math.fsum(row._error**2 for row in rows)) / count
    half = float(ndtri(0.5 + level / 2)) * error
    floor = -1.0 if rows[0].directed else 0.0
    known = [row._shuffled for row in rows if row._shuffled is not None]
    # Draw by draw, since the permutations of different tasks are independent as well.
    shuffled = np.mean(known, axis=0) if len(known) == count else None
    return replace(
        rows[0],
        task=AVERAGE,
        n=sum(row.n for row in rows),
        cmi=clipped_interval(score, mean("_centre") - half, score + half, level, floor),
        null_mean=mean("null_mean"),
        pvalue=math.nan if shuffled is None else upper_tail(shuffled, score),
        **{name: mean(name) for name in VALUES[1:]},  # type: ignore[arg-type]
        _error=error,
        _shuffled=shuffled,
        _left_out=None,
    )


def combine_measures(
    measures: Mapping[str, ArrayLike] | ModelCorpus,
    how: str = "pca",
    *,
    names: Sequence[str] | None = None,
    orientation: Mapping[str, int] | None = None,
    tasks: ArrayLike | None = None,
) -> FloatArray:
    """Combine measures into one, of which more means a larger gap (signed products excepted).

    Every measure is first oriented so that more means a larger gap.

    Parameters
    ----------
    measures : dict of str to array_like, or ModelCorpus
        A number of each measure for each model.
    how : {"pca", "npca", "average", "product", "product+average", "signed-product", "signed-product+average", "rank"}
        The first principal component, of the measures as they are or each divided by its standard deviation; its sign
        is such that the mean of the loadings is positive. Their mean. Their product, in which a measure that falls with
        the gap divides. The sum of the last two. The product as tables 7 and 8 of Schiff et al. 2021 have it, in which
        a measure that falls with the gap is negated, Gi · (−Pal); and its sum with the mean. The mean of their ranks.
        The paper does not negate Mixup scores: for those rows say ``orientation={"mixup": 1}``.
    names : sequence of str, optional
        Measures to combine; all by default.
    orientation : dict of str to {1, -1}, optional
        -1 for a measure of which less means a larger gap. By default what the corpus declares, else what
        :func:`list_measures` declares for that name, else 1; a signed product needs it for measures of other names.
    tasks : array_like of str, optional
        Components, standard deviations and ranks are computed within each task. By default those of the corpus.

    Returns
    -------
    ndarray, shape (models,)
        NaN where one of the measures is not finite.

    Raises
    ------
    InputError
        For a product of negative numbers, which has no direction, and for a signed product of measures whose
        orientation is not known.

    Notes
    -----
    A signed product rises with one factor and falls with the other, whatever the gap does: Gi · (−Pal) orders models
    nearly as −Gi does, because Pal varies little. Take ``"product"`` unless the paper's numbers are wanted.

    Examples
    --------
    >>> combine_measures({"gi": [0.1, 0.3], "pal": [60, 40]}, "rank", orientation={"pal": -1})
    array([1., 2.])
    >>> combine_measures({"gi": [0.1, 0.3], "pal": [60, 40]}, "product", orientation={"pal": -1})
    array([0.00166667, 0.0075    ])
    >>> combine_measures({"gi": [0.1, 0.3], "pal": [60, 40]}, "signed-product", orientation={"pal": -1})
    array([ -6., -12.])
    """
    if how not in _WAYS:
        raise InputError(f"use one of {', '.join(map(repr, _WAYS))}.", argument="how", value=how)
    is_given = orientation is not None
    if isinstance(measures, ModelCorpus):
        orientation = {**measures.orientation, **(orientation or {})}
        tasks = measures.tasks if tasks is None else tasks
        measures = measures.measures
    if isinstance(names, str):
        raise InputError(f"{arg('names', names)} is one text: give a list of measures.")
    wanted = list(measures) if names is None else list(names)
    if not wanted:
        raise InputError("is empty: give at least one measure.", argument="measures")
    for name in wanted:
        if name not in measures:
            raise InputError(f"holds {name!r}, which is none of {list(measures)!r}.", argument="names")
    for name, sign in (orientation or {}).items():
        if name not in measures or sign not in (1, -1):
            raise InputError(f"orientation[{name!r}]={sign!r}: give 1 or -1 for a measure out of {list(measures)!r}.")
    known = KNOWN_ORIENTATION | dict(orientation or {})
    unknown = [name for name in wanted if name not in known]
    # Whoever names orientations has decided on all of them.
    if how.startswith("signed") and unknown and not is_given:
        raise InputError(
            f"{arg('how', how)} needs the orientation of {unknown[0]!r}, which is not known.",
            remedy=f"Give orientation={{{unknown[0]!r}: 1}}, or -1 if less of it means a larger gap.",
        )
    signs = np.array([float(known.get(name, 1)) for name in wanted])
    rows = [as_floats(measures[name], f"measure {name!r}") for name in wanted]
    shapes = {row.shape for row in rows}
    if len(shapes) > 1 or rows[0].ndim != 1:
        raise InputError(f"measures differ in shape, {sorted(shapes)}: one number for each model.")
    table = np.stack(rows)
    where = np.zeros(table.shape[1], dtype=np.str_) if tasks is None else np.asarray(tasks, dtype=np.str_)
    if where.shape != (table.shape[1],):
        raise InputError(f"has shape {where.shape} for {table.shape[1]} models: one for each.", argument="tasks")
    combined = np.full(table.shape[1], np.nan)
    whole = np.isfinite(table).all(axis=0)
    # Within each task: levels of measures are not comparable between data sets.
    for task in np.unique(where):
        mask = (where == task) & whole
        if mask.any():
            combined[mask] = _WAYS[how](table[:, mask], signs)
    return combined


def _component(table: FloatArray, signs: FloatArray) -> FloatArray:
    """Return scores on the first principal component, with a positive mean loading."""
    oriented = table * signs[:, None]
    centred = oriented - oriented.mean(axis=1, keepdims=True)
    loadings = np.linalg.svd(centred, full_matrices=False)[0][:, 0]
    # A principal component has no sign of its own: that of the mean loading decides.
    lean = loadings.mean()
    if abs(lean) < 1e-12:  # opposite loadings: the first decides
        lean = loadings[np.argmax(np.abs(loadings) > 1e-12)]
    scores: FloatArray = np.sign(lean) * (loadings @ centred)
    return scores


def _standard_component(table: FloatArray, signs: FloatArray) -> FloatArray:
    """Return the same with each measure divided by its standard deviation."""
    # A constant measure has no spread but that of rounding, which must not be blown up.
    spread = table.std(axis=1, keepdims=True)
    flat = spread <= 1e-12 * np.abs(table).max(axis=1, keepdims=True)
    centred = table - table.mean(axis=1, keepdims=True)
    return _component(np.where(flat, 0.0, centred / np.where(flat, 1.0, spread)), signs)


def _mean_measure(table: FloatArray, signs: FloatArray) -> FloatArray:
    mean: FloatArray = (table * signs[:, None]).mean(axis=0)
    return mean


def _product(table: FloatArray, signs: FloatArray) -> FloatArray:
    falling = signs < 0
    if (table < 0).any() or (table[falling] == 0).any():
        raise InputError(
            f"{arg('how', 'product')} needs measures that are not negative, and above 0 where they fall with the gap, "
            f"or it has no direction: use {arg('how', 'rank')}, 'average' or 'npca'."
        )
    product: FloatArray = np.prod(table ** signs[:, None], axis=0)
    return product


def _signed_product(table: FloatArray, signs: FloatArray) -> FloatArray:
    product: FloatArray = np.prod(table * signs[:, None], axis=0)
    return product


_WAYS: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "pca": _component,
    "npca": _standard_component,
    "average": _mean_measure,
    "product": _product,
    "product+average": lambda table, signs: _product(table, signs) + _mean_measure(table, signs),
    "signed-product": _signed_product,
    "signed-product+average": lambda table, signs: _signed_product(table, signs) + _mean_measure(table, signs),
    "rank": lambda table, signs: np.mean([average_ranks(row) for row in table * signs[:, None]], axis=0),
}
