"""Differences of pairs of models on the same questions: estimates, tests and intervals of many pairs at once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtr, stdtrit

from curvewise.errors import InputError, list_names
from curvewise.evals.evals import Evals
from curvewise.evals.questions import LEAST, QuestionScores, question_design, question_scores, seed_variance
from curvewise.stats.clusters import Clusters, sample_design
from curvewise.stats.intervals import (
    SampledMean,
    both_sampled,
    mcnemar_pvalue,
    paired_interval,
    paired_statistic,
    widened_variance,
)
from curvewise.types.results import FloatArray

BLOCK = 2**22
"""Cells of differences that are held at a time."""


@dataclass(frozen=True, eq=False)
class PairTests:
    """Score of a minus score of b for pairs of models.

    Single right or wrong answers to independent questions are tested by McNemar's exact test, all else by t. Where a
    model has several training seeds, seeds and questions both count as sampled.

    Attributes
    ----------
    a, b : ndarray of int, shape (pairs,)
        Places of the models.
    difference, standard_error : ndarray, shape (pairs,)
        Mean difference and its standard error.
    variance, degrees : ndarray, shape (pairs,)
        Variance that the t test goes by, not less than is plausible; NaN where it is not known.
    only_a, only_b : ndarray, shape (pairs,)
        Questions that only a, or only b, answers right; NaN where the test is by t.
    seeded : dict of int to SampledMean
        Pairs of which a model has several training seeds.
    questions : int
        Number of questions.
    width : float
        Largest possible difference, perhaps infinite.
    """

    a: NDArray[np.intp]
    b: NDArray[np.intp]
    difference: FloatArray
    standard_error: FloatArray
    variance: FloatArray
    degrees: FloatArray
    only_a: FloatArray
    only_b: FloatArray
    seeded: Mapping[int, SampledMean]
    questions: int
    width: float

    @property
    def exact(self) -> NDArray[np.bool_]:
        """Pairs that are tested by McNemar's exact test."""
        known: NDArray[np.bool_] = np.isfinite(self.only_a)
        return known

    def pvalues(self) -> FloatArray:
        """Two-sided p-values against no difference; 1 where nothing is known about bounded scores."""
        with np.errstate(divide="ignore", invalid="ignore"):
            p = 2 * stdtr(self.degrees, -np.abs(self.difference) / np.sqrt(self.variance))
        p = np.where(self.difference == 0, 1.0, p)
        if math.isfinite(self.width):
            p = np.where(np.isnan(self.variance), 1.0, p)
        exact = self.exact
        p[exact] = mcnemar_pvalue(self.only_a[exact], self.only_b[exact])
        for i, estimate in self.seeded.items():
            p[i] = estimate.pvalue
        return np.minimum(p, 1.0)

    def intervals(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Limits of the differences, within what is possible; they exclude 0 where the p-value is below 1 − level."""
        half = stdtrit(self.degrees, (1 + level) / 2) * np.sqrt(self.variance)
        if math.isfinite(self.width):  # nothing is known: all that is possible
            half = np.where(np.isnan(half), 2 * self.width, half)
        low, high = np.maximum(self.difference - half, -self.width), np.minimum(self.difference + half, self.width)
        exact = self.exact
        if exact.any():
            ends = paired_interval(self.only_a[exact], self.only_b[exact], self.questions, level)
            low[exact], high[exact] = self.width * np.array(ends)
        for i, estimate in self.seeded.items():
            interval = estimate.interval(level, self.width)
            low[i], high[i] = interval.low, interval.high
        return low, high

    def tail(self, limit: float, above: bool = True) -> float:
        """One-sided p-value of the first pair: against a true difference of ``limit`` or less (or more)."""
        if 0 in self.seeded:
            return self.seeded[0].tail(limit, above)
        sign = 1.0 if above else -1.0
        if self.exact[0]:
            z = paired_statistic(self.only_a[:1], self.only_b[:1], self.questions, limit / self.width)[0]
            return float(ndtr(-sign * z))
        if math.isnan(self.variance[0]):
            return 1.0 if math.isfinite(self.width) else math.nan
        gap = sign * (float(self.difference[0]) - limit)
        return float(stdtr(self.degrees[0], -gap / math.sqrt(self.variance[0])))


def pair_tests(
    e: Evals,
    metric: str | None = None,
    average: str | Mapping[str, float] = "questions",
    pairs: tuple[NDArray[np.intp], NDArray[np.intp]] | None = None,
    paired_seeds: bool = False,
    scores: QuestionScores | None = None,
) -> PairTests:
    """Test pairs of models: all of them by default, each once.

    Parameters
    ----------
    e : Evals
        Scores of the models.
    metric, average
        As in :func:`curvewise.score_evals`.
    pairs : tuple of ndarray, optional
        Places of the first and of the second model of each pair.
    paired_seeds : bool
        True if seed s of a and of b share their randomness.
    scores : QuestionScores, optional
        Where they are known already.
    """
    scores, design = scores or question_scores(e, metric), question_design(e, average)
    a, b = np.triu_indices(len(e.models), 1) if pairs is None else pairs
    # The few models of the pairs asked for: Gram matrices grow with the square of their number.
    used, where = np.unique(np.concatenate([a, b]), return_inverse=True)
    one, two = where[: len(a)], where[len(a) :]
    values = scores.values[used]
    means = design.mean(values)
    every, freedom = design.pairwise(values)
    variance, degrees = every[one, two], np.array(freedom[one, two], dtype=np.float64)
    error, width = np.sqrt(variance), e.range[1] - e.range[0]
    simple = scores.binary and design.count == len(e.questions) and not design.stratified
    unseeded = np.array([scores.seeds[m] is None for m in used])
    exact = (scores.single[used] & unseeded & simple)[one] & (scores.single[used] & unseeded)[two]
    only_a, only_b = np.full((2, len(a)), np.nan)
    if exact.any():
        marks = (values - e.range[0]) / width
        both, right = marks @ marks.T, marks.sum(axis=1)
        only_a[exact] = (right[one] - both[one, two])[exact]
        only_b[exact] = (right[two] - both[one, two])[exact]
    trusted = _trusted_variance(scores, design, used, (one, two), variance, ~exact, width)
    seeded = {}
    for i in np.flatnonzero(~(unseeded[one] & unseeded[two])).tolist():
        if np.isnan(trusted[i]):  # one group: nothing is known, with seeds or without
            continue
        value, known = float(means[one[i]] - means[two[i]]), (float(trusted[i]), float(degrees[i]))
        parts = _seed_variances(scores, design, int(a[i]), int(b[i]), paired_seeds)
        seeded[i] = both_sampled(value, [v for v, _ in parts], known, sum(overlap for _, overlap in parts))
        error[i] = math.sqrt(seeded[i].variance)
    if paired_seeds and not seeded:
        raise InputError("needs models with training seeds.", argument="paired_seeds", value=True)
    return PairTests(
        a=np.asarray(a),
        b=np.asarray(b),
        difference=means[one] - means[two],
        standard_error=error,
        variance=trusted,
        degrees=degrees,
        only_a=only_a,
        only_b=only_b,
        seeded=seeded,
        questions=len(e.questions),
        width=width,
    )


def _trusted_variance(
    scores: QuestionScores,
    design: Clusters,
    used: NDArray[np.intp],
    pairs: tuple[NDArray[np.intp], NDArray[np.intp]],
    variance: FloatArray,
    tested: NDArray[np.bool_],
    width: float,
) -> FloatArray:
    """Return variances of differences that are not smaller than the scores make plausible."""
    one, two = pairs
    values, trusted = scores.values[used], variance.copy()
    few = 2 / (design.effective + 2) ** 2
    if not scores.binary:
        # Graded scores are tested by plain t; where nothing varies, as for two questions that differ, one each way.
        nothing = few * width**2 if math.isfinite(width) else np.nan
        return np.where(trusted == 0, nothing, trusted)
    noise = scores.noise_of_mean(design)[used]
    floor = LEAST * (noise[one] + noise[two])
    layers, plain = design.layers(), np.zeros(len(variance))
    if design.count < values.shape[1]:
        for own, weight, _ in layers:
            plain += weight**2 * np.nan_to_num(sample_design(len(own)).pairwise(values[:, own])[0][one, two])
    trusted = np.where(np.isnan(trusted), np.nan, np.maximum(trusted, np.maximum(floor, LEAST * plain)))
    for own, weight, layer in layers:
        # Within each task, because one in which nothing differs would count as known exactly.
        own_values = values[:, own]
        shown = np.nan_to_num(layer.pairwise(own_values)[0][one, two]) if design.stratified else trusted
        with np.errstate(invalid="ignore"):
            rare = np.flatnonzero(tested & (shown < 2 * (width / (layer.effective + 2)) ** 2))
        step = max(1, BLOCK // len(own))
        for start in range(0, len(rare), step):
            block = rare[start : start + step]
            gaps = (own_values[one[block]] - own_values[two[block]]) / width
            apart = np.abs(gaps - np.round(gaps.mean(axis=1, keepdims=True))).sum(axis=1)
            wider = width**2 * widened_variance(shown[block] / width**2, apart, layer.effective)
            trusted[block] += weight**2 * (wider - shown[block])
    return trusted


def _seed_variances(
    scores: QuestionScores, design: Clusters, a: int, b: int, paired: bool
) -> list[tuple[tuple[float, float], float]]:
    """Return what training seeds add to the variance: of each model, or of the differences of paired seeds."""
    pair = scores.seeds[a], scores.seeds[b]
    if not paired:
        return [seed_variance(design, each) for each in pair if each is not None]
    one, two = pair
    names = scores.seed_names[a], scores.seed_names[b]
    if one is None or two is None or set(names[0]) != set(names[1]):
        raise InputError(
            f"needs the same training seeds of both models; there are {list_names(names[0], 5)} and"
            f" {list_names(names[1], 5)}.",
            argument="paired_seeds",
            value=True,
        )
    return [seed_variance(design, one - two[[names[1].index(name) for name in names[0]]])]
