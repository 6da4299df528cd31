"""Scores of models with intervals, and pass@k and pass^k for several k: questions, samples, groups, tasks, seeds."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from curvewise.errors import InputError, list_names, quietly, warn_all
from curvewise.evals.evals import Evals, place_of
from curvewise.evals.load import as_evals
from curvewise.evals.questions import (
    LEAST,
    QuestionScores,
    question_design,
    question_scores,
    question_warnings,
    seed_variance,
)
from curvewise.stats.clusters import Clusters, sample_design
from curvewise.stats.intervals import WORST, both_sampled, bounded_interval, wilson_interval
from curvewise.text import Cell, format_count, format_interval, format_level, format_number, format_target
from curvewise.types.results import FloatArray, Interval, Result, check_level

PASS_KINDS = {"pass@": "at least one of k samples is right", "pass^": "all k samples are right"}


def score_evals(
    e: Evals | Any, metric: str | None = None, *, average: str | Mapping[str, float] = "questions", level: float = 0.95
) -> ModelScores:
    """Score each model by its mean over questions, with an interval for new questions of the same kind.

    0/1 scores with one sample of each question have Wilson's interval. With several samples, groups, tasks or pass@k it
    is a score interval with the variance that the data show (:func:`curvewise.stats.bounded_interval`); it never has
    zero width. So it is for graded scores with a lowest and a highest possible one; others have Student's t. Groups of
    questions are clusters: CR2 with the degrees of freedom of Bell and McCaffrey. Training seeds, where a model has
    several, count as sampled too.

    Parameters
    ----------
    e : Evals, path, DataFrame or other source of :func:`load_evals`
        Scores of models on questions.
    metric : str, optional
        "mean" (the default), "pass@5": the chance that one of 5 samples is right, "pass^4": that all 4 are.
    average : {"questions", "tasks"} or dict
        Each question counts alike; each task counts alike (a macro-average); or each task has a weight. Tasks are
        given, and not sampled.
    level : float
        Coverage of the intervals.

    Examples
    --------
    >>> e = Evals(np.array([[1, 1, 1, 0, 1, 1, 0, 1, 1, 1]]), ("a",), np.arange(10))
    >>> print(score_evals(e).interval("a"))
    0.80 [0.49, 0.94]
    """
    check_level(level)
    e = as_evals(e)
    found = score_models(e, question_scores(e, metric), average, level)
    warn_all(found.warnings)
    return found


def score_models(e: Evals, scores: QuestionScores, average: str | Mapping[str, float], level: float) -> ModelScores:
    """As :func:`score_evals`, from scores of questions that are known already, and quietly."""
    design = question_design(e, average)
    means, variance, degrees = (f(scores.values) for f in (design.mean, design.variance, design.degrees))
    quantiles: FloatArray = np.asarray(stdtrit(degrees, (1 + level) / 2), dtype=np.float64)
    for m, each in enumerate(scores.seeds):
        if each is None or np.isnan(variance[m]):
            continue
        between, overlap = seed_variance(design, each)
        sampled = both_sampled(float(means[m]), [between], (float(variance[m]), float(degrees[m])), overlap)
        variance[m], quantiles[m] = sampled.variance, sampled.quantile((1 + level) / 2)
    low, high = _limits(e.range, scores, design, (means, variance, quantiles), level)
    # The variance of scores is that between questions and the noise of samples, which may be unknown (NaN).
    several = scores.values.shape[1] > 1
    total = scores.values.var(axis=1, ddof=1) if several else np.full(len(scores.values), np.nan)
    return ModelScores(
        models=e.models,
        scores=means,
        standard_errors=np.sqrt(variance),
        low=low,
        high=high,
        questions=len(e.questions),
        samples=e.samples.mean(axis=1),
        question_variance=np.maximum(0.0, total - scores.sampling_noise),
        sampling_variance=scores.sampling_variance,
        metric=str(scores.metric),
        average=average if isinstance(average, str) else "weighted tasks",
        groups=None if e.groups is None else design.count,
        seeds=tuple(1 if each is None else len(each) for each in scores.seeds),
        level=level,
        unit="fraction" if e.binary else "",
        higher_is_better=e.higher_is_better,
        warnings=tuple(question_warnings(e, scores, design)),
    )


def _limits(
    ends: tuple[float, float],
    scores: QuestionScores,
    design: Clusters,
    moments: tuple[FloatArray, FloatArray, FloatArray],
    level: float,
) -> tuple[FloatArray, FloatArray]:
    """Intervals of means: by t where their range has no end; all of the range where nothing is known.

    Between two ends scores are often crowded near one of them, and t covers 75 to 88% of the truths with 10 to 40
    graded questions. The variance is therefore one at the rate supposed, as for means of 0/1 samples.
    """
    (least, most), (means, variance, quantiles) = ends, moments
    if math.isinf(least) or math.isinf(most):
        half = quantiles * np.sqrt(variance)
        return np.maximum(means - half, least), np.minimum(means + half, most)
    width, n, clusters = most - least, scores.values.shape[1], design.effective
    # Where nothing but questions is sampled, a mean of answers varies no more than one of them.
    simple = np.array([each is None for each in scores.seeds]) & (not design.stratified)
    unit = replace(scores, values=(scores.values - least) / width, noise=scores.noise / width**2)
    place, known = np.clip((means - least) / width, 0.0, 1.0), variance / width**2
    if scores.binary:
        known = _plausible_variance(unit, design, known)
        # Single answers have Wilson's interval.
        alike, same = wilson_interval(place, n, level), scores.single & simple & (design.count == n)
    else:
        # Scores that are all the same do not show that others would be, too: as Wilson's for 0 or 1.
        alike, same = wilson_interval(place, clusters, level), variance == 0
    inner = bounded_interval(place, known, quantiles, n, clusters, level, simple)
    low, high = (least + width * np.where(same, *pair) for pair in zip(alike, inner, strict=True))
    if not scores.binary:
        low, high = (np.where(np.isnan(variance), end, side) for end, side in zip(ends, (low, high), strict=True))
    return np.minimum(low, means), np.maximum(high, means)


def _plausible_variance(scores: QuestionScores, design: Clusters, variance: FloatArray) -> FloatArray:
    """Return variances of means of 0/1 samples that are not smaller than the answers make plausible."""
    # What samples of a question vary is part of the variance, and groups add to it: a much smaller one is chance.
    ungrouped = np.zeros(len(scores.values))
    for own, weight, _ in design.layers():
        ungrouped += weight**2 * np.nan_to_num(sample_design(len(own)).variance(scores.values[:, own]))
    floor = np.maximum(scores.noise_of_mean(design), LEAST * ungrouped)
    known: FloatArray = np.where(np.isnan(variance), np.nan, np.maximum(variance, floor))
    return known + _small_tasks(scores, design) if design.stratified else known


def _small_tasks(scores: QuestionScores, design: Clusters) -> FloatArray:
    """Variance that tasks with few wrong (or right) answers hide, of each model.

    A task of twelve questions with a rate of 90% shows no variance at all in a quarter of all samples. As in
    :func:`curvewise.stats.bounded_interval`, the variance within a task is a geometric mean of what it shows and of the
    worst, that of single answers at the rate with one right and one wrong answer added.
    """
    found = np.zeros(len(scores.values))
    for own, weight, layer in design.layers():
        values, n = scores.values[:, own], len(own)
        mean = values.mean(axis=1)
        seen, rate = n * mean * (1 - mean), (n * mean + 1) / (n + 2)
        shown, worst = np.nan_to_num(layer.variance(values)), rate * (1 - rate) / n
        # Squared: a task with two or three wrong answers shows enough.
        share = (WORST / (seen + WORST)) ** 2
        mixed = np.maximum(shown, 1e-300) ** (1 - share) * worst**share
        found += weight**2 * np.maximum(0.0, mixed - shown)
    return found


def error_cells(errors: FloatArray, unit: str) -> list[Cell]:
    """Write standard errors in two digits, which is more than most data support.

    >>> [cell.text for cell in error_cells(np.array([0.05224, 0.00992, 0.0, np.nan]), "fraction")]
    ['5.2%', '0.99%', '0%', '–']
    """
    scale, sign = (100.0, "%") if unit == "fraction" else (1.0, "")
    return [Cell("–" if math.isnan(x) else f"{format_number(scale * x, 2)}{sign}") for x in errors.tolist()]


def in_points(text: str) -> str:
    """Write a difference of percentages in points.

    >>> in_points("13% [4, 22]"), in_points("1%")
    ('13 points [4, 22]', '1 point')
    """
    return re.sub(r"^(-?1)%", r"\1 point", text).replace("%", " points", 1)


def points(value: float, unit: str) -> str:
    """Write a difference that is given, such as a margin.

    >>> points(0.025, "fraction"), points(0.5, "")
    ('2.5 points', '0.5')
    """
    return in_points(format_target(value, unit)) if unit == "fraction" else format_number(value)


@dataclass(frozen=True, eq=False)
class ModelScores(Result):
    """Scores of models with their intervals.

    Attributes
    ----------
    models : tuple of str
        Their names.
    scores, standard_errors, low, high : ndarray
        Mean over questions, its standard error (0 where all answers are alike: use the interval) and interval.
    questions : int
        Number of questions.
    samples : ndarray
        Samples of a question, the mean of each model.
    question_variance : ndarray
        Variance between questions of a model's true score on them; NaN with one sample of each question.
    sampling_variance : ndarray
        Variance of one sample around the mean of its question; of pass@k and pass^k, of the question's estimate. NaN
        with one sample of each question.
    metric : str
        "mean", "pass@k" or "pass^k".
    average : str
        "questions", "tasks" or "weighted tasks".
    groups : int or None
        Number of groups of questions.
    seeds : tuple of int
        Training seeds of each model.
    level : float
        Coverage of the intervals.
    higher_is_better : bool
        False for losses.
    """

    models: tuple[str, ...]
    scores: FloatArray
    standard_errors: FloatArray
    low: FloatArray
    high: FloatArray
    questions: int
    samples: FloatArray
    question_variance: FloatArray
    sampling_variance: FloatArray
    metric: str
    average: str
    groups: int | None
    seeds: tuple[int, ...]
    level: float
    unit: str
    higher_is_better: bool
    warnings: tuple[str, ...]

    def interval(self, model: str) -> Interval:
        """Return the score of one model with its interval."""
        m = place_of(model, self.models)
        return Interval(float(self.scores[m]), float(self.low[m]), float(self.high[m]), self.level)

    def _headline(self) -> str:
        first = f"{self.models[0]!r}: {self.interval(self.models[0])}"
        more = f" and {len(self.models) - 1} more" if len(self.models) > 1 else ""
        return f"{self.metric} of {first}{more}, {format_count(self.questions, 'question')}"

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per model: score, standard error, interval, questions and samples of each question."""
        whole = bool((self.samples == np.round(self.samples)).all())
        return {
            "model": list(self.models),
            "score": self.scores,
            "standard_error": self.standard_errors,
            "low": self.low,
            "high": self.high,
            "questions": np.full(len(self.models), self.questions),
            "samples": self.samples.astype(np.int64) if whole else self.samples,
        }

    def display_columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per model, the interval beside the score."""
        table = self.columns()
        order = ("model", "score", "low", "high", "standard_error", "questions", "samples")
        return {name: table[name] for name in order}

    def readable(self) -> Mapping[str, Sequence[Any]]:
        """Return one row per model, standard errors in two digits."""
        return dict(super().readable()) | {"std error": error_cells(self.standard_errors, self.unit)}

    def best_rows(self) -> tuple[str, Sequence[int]] | None:
        """Write the best score bold, where there are several models."""
        if len(self.models) < 2:
            return None
        best = self.scores.max() if self.higher_is_better else self.scores.min()
        return "score", np.flatnonzero(self.scores == best).tolist()

    def sentences(self) -> str:
        """The scores in a few sentences."""
        name = "The mean score" if self.metric == "mean" else self.metric
        order = np.argsort(-self.scores if self.higher_is_better else self.scores, kind="stable")
        shown = []
        for m in order[:3]:
            interval = format_interval(self.interval(self.models[m]), self.unit)
            error = f" (standard error {error_cells(self.standard_errors[m : m + 1], self.unit)[0].text})"
            # A standard error of 0, or of one question, says nothing.
            alone = len(self.models) == 1 and self.standard_errors[m] > 0
            shown.append(f"{interval} for {self.models[m]}{error if alone else ''}")
        listed = ", ".join(shown)
        if len(order) > 3:
            third, fourth = self.scores[order[2:4]]
            tied = bool(abs(fourth - third) <= 1e-12 * abs(third))
            words = ("lower", "no higher") if self.higher_is_better else ("higher", "no lower")
            listed += f" and {words[tied]} for {len(order) - 3} more"
        text = [f"{name} is {listed}, from {self._design()}."]
        if len(order) > 1:
            text.append(
                f"The {format_level(self.level)} intervals are for new questions of the same kind; whether two models "
                "differ is a paired comparison, not an overlap of intervals."
            )
        return " ".join(text)

    def _design(self) -> str:
        """Say how many questions, groups, samples and seeds there are."""
        words = format_count(self.questions, "question")
        if self.groups is not None:
            words += f" in {format_count(self.groups, 'group')}"
        least, most = self.samples.min(), self.samples.max()
        if most > 1:
            count = f"{least:.3g}" if least == most else f"{least:.3g} to {most:.3g}"
            words += f" with {count} samples each"
        if max(self.seeds) > 1:
            words += f" and {max(self.seeds)} training seeds"
        if self.average != "questions":
            words += ", averaged over tasks" if self.average == "tasks" else ", averaged over weighted tasks"
        return words


def measure_passes(
    e: Evals | Any,
    kind: str = "pass^",
    k: int | Sequence[int] | None = None,
    *,
    average: str | Mapping[str, float] = "questions",
    level: float = 0.95,
) -> PassCurve:
    """Score each model by pass@k or pass^k for several k: how it fares with more attempts, and how reliable it is.

    Parameters
    ----------
    e : Evals, path, DataFrame or other source of :func:`load_evals`
        0/1 scores of models on questions, with several samples of each.
    kind : {"pass^", "pass@"}
        The chance that all k samples of a question are right, or that at least one of them is.
    k : int or sequence of int, optional
        Numbers of samples; by default every one from 1 to the fewest samples that a question has.
    average, level
        As in :func:`score_evals`.

    Examples
    --------
    >>> marks = np.array([[[1, 1, 1], [1, 0, 0], [0, 1, 1], [0, 0, 0]] * 5])
    >>> measure_passes(Evals(marks, ("a",), np.arange(20))).scores.round(3).tolist()
    [[0.5, 0.333, 0.25]]
    """
    if kind not in PASS_KINDS:
        raise InputError(f"must be one of {list_names(PASS_KINDS)}.", argument="kind", value=kind)
    e = as_evals(e)
    fewest = min(
        int(np.isfinite(e.scores[m][:, slots]).sum(axis=1).min())
        for m in range(len(e.models))
        for slots in e.seed_slots(m)
    )
    wanted = list(range(1, fewest + 1)) if k is None else sorted(set(np.ravel(k).tolist()))
    if not wanted:
        raise InputError("is empty: give one or more numbers of samples.", argument="k")
    with quietly():
        found = [score_evals(e, f"{kind}{count}", average=average, level=level) for count in wanted]
    first = found[0]
    notes = tuple(dict.fromkeys(note for each in found for note in each.warnings))
    warn_all(notes)
    table = {
        name: np.stack([getattr(each, name) for each in found], axis=1)
        for name in ("scores", "standard_errors", "low", "high")
    }
    return PassCurve(
        models=e.models,
        kind=kind,
        k=tuple(map(int, wanted)),
        **table,
        questions=first.questions,
        samples=first.samples,
        average=first.average,
        level=level,
        unit="fraction",
        warnings=notes,
    )


@dataclass(frozen=True, eq=False)
class PassCurve(Result):
    """pass@k or pass^k of models, for several k.

    Attributes
    ----------
    models : tuple of str
        Their names.
    kind : {"pass^", "pass@"}
        All samples right, or at least one.
    k : tuple of int
        Numbers of samples, rising.
    scores, standard_errors, low, high : ndarray, shape (models, k)
        Each with its interval.
    questions : int
        Number of questions.
    samples : ndarray
        Samples of a question, the mean of each model.
    average : str
        Average of the questions: "questions", "tasks" or "weighted tasks".
    """

    models: tuple[str, ...]
    kind: str
    k: tuple[int, ...]
    scores: FloatArray
    standard_errors: FloatArray
    low: FloatArray
    high: FloatArray
    questions: int
    samples: FloatArray
    average: str
    level: float
    unit: str
    warnings: tuple[str, ...]

    def interval(self, model: str, k: int) -> Interval:
        """Return the score of one model with its interval."""
        m = place_of(model, self.models)
        if k not in self.k:
            raise InputError(f"there is no {self.kind}{k}; there are those of {', '.join(map(str, self.k))} samples.")
        i = self.k.index(k)
        return Interval(float(self.scores[m, i]), float(self.low[m, i]), float(self.high[m, i]), self.level)

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per model and k: score, standard error and interval."""
        many = len(self.k)
        return {
            "model": [name for name in self.models for _ in self.k],
            "k": list(self.k) * len(self.models),
            "score": self.scores.ravel(),
            "standard_error": self.standard_errors.ravel(),
            "low": self.low.ravel(),
            "high": self.high.ravel(),
            "questions": np.full(many * len(self.models), self.questions),
        }

    def display_columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per model with a column for each k; of a single model one row per k."""
        if len(self.models) == 1:
            score, low, high = self.scores[0], self.low[0], self.high[0]
            each = {f"{self.kind}k": score, "low": low, "high": high, "standard_error": self.standard_errors[0]}
            return {"k": list(self.k), **each}
        table: dict[str, Sequence[Any] | NDArray[Any]] = {"model": list(self.models)}
        for i, name in enumerate(f"{self.kind}{k}" for k in self.k):
            table |= {name: self.scores[:, i], f"{name}_low": self.low[:, i], f"{name}_high": self.high[:, i]}
        return table

    def readable(self) -> Mapping[str, Sequence[Any]]:
        """Return the same with intervals beside the scores, standard errors in two digits."""
        table = dict(super().readable())
        if "std error" in table:
            table["std error"] = error_cells(self.standard_errors[0], self.unit)
        return table

    def sentences(self) -> str:
        """The scores of the first and the last k in a few sentences."""
        first, last = self.k[0], self.k[-1]
        order = np.argsort(-self.scores[:, -1], kind="stable")[:3]
        shown = []
        for m in order:
            name = self.models[m]
            one, two = (format_interval(self.interval(name, k), self.unit) for k in (first, last))
            shown.append(
                f"{name}: {one}" if first == last else f"{name}: {one} with k = {first}, {two} with k = {last}"
            )
        more = f"; and {len(self.models) - 3} more" if len(self.models) > 3 else ""
        over = "" if self.average == "questions" else ", averaged over tasks"
        design = format_count(self.questions, "question")
        return (
            f"{self.kind}k, the chance that {PASS_KINDS[self.kind]}, on {design}{over}:"
            f" {'; '.join(shown)}{more}. The {format_level(self.level)} intervals are for new questions of the same"
            " kind."
        )
