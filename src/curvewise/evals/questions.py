"""A score for each model and question out of its samples, and the design by which the questions were sampled."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import binom

from curvewise.errors import InputError, arg, list_names
from curvewise.evals.evals import Evals
from curvewise.stats.clusters import FEW_CLUSTERS, Clusters, sample_design
from curvewise.text import format_count
from curvewise.types.results import FloatArray

_METRIC = re.compile(r"pass([@^])(\d+)")
FEW_QUESTIONS = 10
"""With fewer questions intervals rest on assumptions more than on data."""
LEAST = 0.1
"""The variance of a mean is not taken to be less than this part of what independent answers of the same rates have."""
ROUNDING = 1e-12
"""Relative differences of scores smaller than this are those of rounding."""
FEW_SEEDS = 4
"""With fewer training seeds nothing shows how they are distributed."""


class QuestionMetric(NamedTuple):
    """The way in which samples of a question make one score: their mean, pass@k or pass^k."""

    kind: str
    k: int = 1

    def __str__(self) -> str:
        return "mean" if self.kind == "mean" else f"{self.kind}{self.k}"


def parse_metric(metric: str | None) -> QuestionMetric:
    """Read "mean" (the default), "pass@5" or "pass^4".

    >>> parse_metric("pass^4"), str(parse_metric(None))
    (QuestionMetric(kind='pass^', k=4), 'mean')
    """
    if metric in (None, "mean"):
        return QuestionMetric("mean")
    found = _METRIC.fullmatch(str(metric).replace(" ", ""))
    if not found or int(found[2]) < 1:
        raise InputError(
            f"{arg('metric', metric)} is not known: use 'mean', 'pass@k' (one of k samples is right) or 'pass^k' (all "
            "k are right), with a number for k, such as 'pass@5'."
        )
    return QuestionMetric(f"pass{found[1]}", int(found[2]))


@dataclass(frozen=True, eq=False, repr=False)
class QuestionScores:
    """One score for each model and question.

    Attributes
    ----------
    values : ndarray, shape (models, questions)
        Unbiased estimates from the samples; with training seeds the mean over them.
    noise : ndarray, shape (models, questions)
        Variance of the estimate over new samples of the same question; NaN with a single sample (of each seed).
    samples : ndarray of int, shape (models, questions)
        Number of samples.
    metric : QuestionMetric
        Mean, pass@k or pass^k.
    binary : bool
        True where each sample has the lowest or the highest score possible.
    seeds : tuple of (ndarray or None)
        For each model with several training seeds, the scores of each, shape (seeds, questions).
    seed_names : tuple of tuple of str
        Names of the seeds of each model, in the same order.
    """

    values: FloatArray
    noise: FloatArray
    samples: NDArray[np.int64]
    metric: QuestionMetric
    binary: bool
    seeds: tuple[FloatArray | None, ...]
    seed_names: tuple[tuple[str, ...], ...]

    @property
    def single(self) -> NDArray[np.bool_]:
        """Models with one sample of each question."""
        ones: NDArray[np.bool_] = (self.samples == 1).all(axis=1)
        return ones

    @property
    def sampling_variance(self) -> FloatArray:
        """Variance of one sample around the mean of its question, averaged over questions, of each model.

        For pass@k and pass^k that of the question's estimate, from as many samples as there are. NaN where every
        question has a single sample.
        """
        known, many = np.isfinite(self.noise), self.samples if self.metric.kind == "mean" else 1
        with np.errstate(invalid="ignore"):
            means: FloatArray = np.where(known, self.noise * many, 0.0).sum(axis=1) / known.sum(axis=1)
        return means

    @property
    def sampling_noise(self) -> FloatArray:
        """Variance of a question's score over new samples, averaged over questions, of each model.

        A question with a single sample is taken to vary as one sample of the others does.
        """
        many = self.samples if self.metric.kind == "mean" else 1
        noise = np.where(np.isnan(self.noise), self.sampling_variance[:, None] / many, self.noise)
        means: FloatArray = np.maximum(0.0, noise.mean(axis=1))
        return means

    def noise_of_mean(self, design: Clusters) -> FloatArray:
        """Variance of the weighted mean over new samples of the same questions, of each model; 0 where unknown."""
        found: FloatArray = np.nan_to_num(self.noise) @ design.weights**2
        return np.maximum(0.0, found)


def question_scores(e: Evals, metric: str | None = None) -> QuestionScores:
    """Score each question by its samples.

    Parameters
    ----------
    e : Evals
        Scores of all samples.
    metric : str, optional
        "mean" (the default), "pass@k": the chance that at least one of k samples is right, or
        "pass^k": that all k are. The last two need 0/1 scores and at least k samples of each question, by each
        training seed where there are several.

    Examples
    --------
    >>> e = Evals(np.array([[[1, 0, 0, 0], [1, 1, 0, 1]]]), ("a",), np.array(["q1", "q2"]))
    >>> question_scores(e, "pass@2").values
    array([[0.5, 1. ]])
    >>> question_scores(e, "pass^2").values
    array([[0. , 0.5]])
    """
    how = parse_metric(metric)
    if how.kind != "mean" and not e.binary:
        raise InputError(f"{arg('metric', metric)} counts right answers, and the scores are not all 0 or 1.")
    if how.kind != "mean" and not e.higher_is_better:
        raise InputError(
            f"{arg('metric', metric)} counts scores of 1 as right, and here a low score is better.",
            remedy="Turn the scores around (1 − score) and say that a high one is better.",
        )
    values, noise = np.empty((2, *e.shape[:2]))
    seeds: list[FloatArray | None] = []
    names = []
    for m in range(len(e.models)):  # one at a time, so that memory does not grow with the number of models
        runs = e.seed_slots(m)
        scored = [_score_samples(e, m, slots, how) for slots in runs]
        each = np.array([value for value, _ in scored])
        # Samples of one seed say nothing of others: the noise is that within seeds, averaged like the scores.
        values[m] = each.mean(axis=0) if len(each) > 1 else each[0]
        noise[m] = np.mean([within for _, within in scored], axis=0) / len(each)
        seeds.append(each if len(each) > 1 else None)
        names.append(tuple(str(e.seeds[m][slots][0]) for slots in runs) if e.seeds is not None else ())
    return QuestionScores(values, noise, e.samples, how, e.two_valued, tuple(seeds), tuple(names))


def _score_samples(e: Evals, m: int, slots: NDArray[np.bool_], how: QuestionMetric) -> tuple[FloatArray, FloatArray]:
    """Return the score of each question from some samples of a model, and its variance over new samples."""
    scores = e.scores[m] if slots.all() else e.scores[m][:, slots]
    known = np.isfinite(scores)
    n = known.sum(axis=1)
    if n.min() < how.k:
        q = int(np.argmin(n))
        question = str(e.questions[q])
        seed = "" if e.seeds is None else f" by seed {str(e.seeds[m][slots][0])!r}"
        if how.kind == "mean":
            raise InputError(
                f"{e.models[m]!r} has no sample{seed} of {question!r}: each training seed needs every question.",
                remedy="Leave the question or the seed out, or load the logs without seeds.",
            )
        raise InputError(
            f"{arg('metric', str(how))} needs {how.k} samples of each question; {e.models[m]!r} has {n[q]}{seed} of "
            f"{question!r}. The largest k that these logs allow is {n.min()}."
        )
    total = np.where(known, scores, 0.0).sum(axis=1)
    if how.kind == "mean":
        mean = total / n
        with np.errstate(invalid="ignore", divide="ignore"):
            squares = np.where(known, scores - mean[:, None], 0.0) ** 2
            return mean, np.where(n > 1, squares.sum(axis=1) / (n - 1) / n, np.nan)
    right = total.astype(np.int64)
    # pass@k is one minus the chance that k samples are all wrong; pass^k the chance that they are all right.
    counted = n - right if how.kind == "pass@" else right
    every = _all_of(counted, n, how.k)
    return 1 - every if how.kind == "pass@" else every, _noise(counted, n, how.k)


def _all_of(c: NDArray[np.int64], n: NDArray[np.int64], k: int) -> FloatArray:
    """Return C(c, k) / C(n, k), the unbiased estimate of p^k from c of n (Chen et al. 2021)."""
    chance: FloatArray = np.ones(np.broadcast(c, n).shape)
    for i in range(k):
        chance *= np.maximum(c - i, 0) / (n - i)
    return chance


def _noise(c: NDArray[np.int64], n: NDArray[np.int64], k: int) -> FloatArray:
    """Variance over new samples of the estimate of p^k.

    Unbiased with 2k samples: the square of the estimate less an unbiased estimate of p^2k. With fewer than 2k that
    cannot be had, and the variance is the exact one at p = (c + ½)/(n + 1), which is not 0 at c = 0 or n.
    """
    # A table over the few pairs (c, n) that occur, rather than a sum for each question.
    base = int(n.max()) + 1
    pairs, where = np.unique(c * base + n, return_inverse=True)
    table = np.empty(len(pairs))
    for i, (right, count) in enumerate(divmod(int(pair), base) for pair in pairs):
        if count >= 2 * k:
            one, two = (float(_all_of(np.array(right), np.array(count), j)) for j in (k, 2 * k))
            table[i] = one**2 - two
        elif count == 1:
            table[i] = np.nan
        else:
            counts = np.arange(count + 1)
            p = (right + 0.5) / (count + 1)
            weights = binom(count, counts) * p**counts * (1 - p) ** (count - counts)
            values = _all_of(counts, np.full(count + 1, count), k)
            table[i] = weights @ values**2 - (weights @ values) ** 2
    noise: FloatArray = table[where.ravel()]
    return noise


def question_design(e: Evals, average: str | Mapping[str, float] = "questions") -> Clusters:
    """Describe the sampling of the questions: groups are clusters, tasks are strata where the average is over tasks.

    Parameters
    ----------
    e : Evals
        Evaluations with their groups and tasks.
    average : "questions", "tasks" or mapping
        Each question counts alike, each task counts alike, or each task has this weight.
    """
    if isinstance(average, str) and average == "questions":
        return sample_design(len(e.questions), e.groups)
    if not isinstance(average, Mapping) and average != "tasks":
        raise InputError(
            "is not known: use 'questions' (each counts alike), 'tasks' (each task counts alike), or a dict with the "
            "weight of each task.",
            argument="average",
            value=average,
        )
    if e.tasks is None:
        raise InputError(
            "needs the task of each question, and there are none.",
            argument="average",
            value=average,
            remedy=f"Pass {arg('average', 'questions')}, or load logs that name their tasks.",
        )
    if not isinstance(average, Mapping):
        return sample_design(len(e.questions), e.groups, e.tasks)
    weights, known = {str(k): float(v) for k, v in average.items()}, set(e.tasks.tolist())
    if set(weights) != known:
        wrong = sorted(set(weights) ^ known)
        raise InputError(
            f"must give a weight for each task: {list_names(wrong, 5)} is in only one of the two.", argument="average"
        )
    if not all(np.isfinite(v) and v > 0 for v in weights.values()):
        raise InputError("must hold weights above 0; leave other tasks out with select.", argument="average")
    return sample_design(len(e.questions), e.groups, e.tasks, weights)


def seed_variance(design: Clusters, each: FloatArray) -> tuple[tuple[float, float], float]:
    """Return the variance between training seeds of a mean, with its degrees of freedom, and its overlap.

    The overlap is how the seeds answer these very questions, which the variance between questions counts as well.

    Parameters
    ----------
    design : Clusters
        The sampling of the questions.
    each : ndarray, shape (seeds, questions)
        Scores of each training seed.
    """
    seeds, means = len(each), design.mean(each)
    rest = each - each.mean(axis=0) - (means - means.mean())[:, None]
    overlap = float(design.variance(rest).sum()) / (seeds * (seeds - 1))
    return (float(np.var(means, ddof=1)) / seeds, seeds - 1.0), overlap


def question_warnings(e: Evals, scores: QuestionScores, design: Clusters) -> list[str]:
    """Warn of data that support less than their number suggests, or that are likely a mistake."""
    notes = list(e.warnings)
    if len(e.questions) < FEW_QUESTIONS:
        notes.append(f"{format_count(len(e.questions), 'question')} only: expect wide intervals.")
    if design.count == 1 and len(e.questions) > 1:
        notes.append(
            "all questions are in one group: nothing shows how groups differ, and the intervals are as wide as for a "
            "single question. Without groups, questions count as independent."
        )
    elif design.effective < FEW_CLUSTERS and e.groups is not None and design.count < len(e.questions):
        notes.append(
            f"the groups weigh as much as {design.effective:.1f} of equal size: too few to say much about new groups."
        )
    if design.stratified and design.lonely.any():
        notes.append(
            f"{format_count(int(design.lonely.sum()), 'task')} with a single question or group: the variance within "
            "these tasks is taken from their distance to the others."
        )
    seeds = [len(each) for each in scores.seeds if each is not None]
    if seeds and min(seeds) < FEW_SEEDS:
        notes.append(f"{min(seeds)} training seeds of a model: the intervals assume normal seed effects.")
    worst, best = e.range if e.higher_is_better else e.range[::-1]
    ends = {name: scores.values[:, 0] == end for name, end in (("right", best), ("wrong", worst)) if np.isfinite(end)}
    for name, first in ends.items():
        same = [e.models[m] for m in np.flatnonzero(first) if (scores.values[m] == scores.values[m, 0]).all()]
        if same and len(e.questions) > 1:
            those = list_names(same, 3, quoted=False)
            notes.append(f"every answer of {those} is {name}: the standard error of 0 says nothing, the interval does.")
    return notes + _identical_models(e, scores) + _mixed_scales(e, scores)


def _identical_models(e: Evals, scores: QuestionScores) -> list[str]:
    """Name models whose scores are the same on every question, unless they are the same on all questions."""
    first: dict[bytes, str] = {}
    notes = []
    for name, row in zip(e.models, scores.values, strict=True):
        if np.ptp(row) == 0:  # all right or all wrong: many models may be
            continue
        digits = np.round(row / (ROUNDING * np.abs(row).max()))
        other = first.setdefault((digits + 0.0).tobytes(), name)
        if other != name:
            notes.append(f"{other!r} and {name!r} have the same score on every question: is one log there twice?")
    return notes[:5]


def _mixed_scales(e: Evals, scores: QuestionScores) -> list[str]:
    """Name models that look like fractions beside others that look like percentages."""
    most = scores.values.max(axis=1)
    if not 1 < e.range[1] < np.inf or most.max() <= 1 or e.range[0] < 0:
        return []
    small = [e.models[m] for m in np.flatnonzero((most <= 1) & (scores.values.min(axis=1) >= 0) & (most > 0))]
    if not small:
        return []
    return [
        f"the scores of {list_names(small, 3, quoted=False)} lie between 0 and 1, and others reach {most.max():g}:"
        " check that all are on one scale."
    ]
