"""Variance of what is linear in a network's answers, over samples of examples."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from curvewise.errors import InputError
from curvewise.response.scores import gi_weights, pal_weights
from curvewise.types import FloatArray, Interval, check_level

if TYPE_CHECKING:
    from curvewise.response.curve import ResponseCurve


SCORES = ("gi", "pal", "mean_accuracy")
"""Scores that models are compared by."""


def score_slope(curve: ResponseCurve, score: str) -> FloatArray:
    """How much a score changes with the accuracy at each magnitude; NaN where it has no value."""
    known = (*SCORES, "gi_relative")
    if score not in known:
        raise InputError(f"score={score!r}: use one of {', '.join(map(repr, known))}.")
    if score == "gi":
        return -gi_weights(curve.magnitude, curve.signs)
    if score == "mean_accuracy":
        return np.full(len(curve.magnitude), 1 / len(curve.magnitude))
    if score == "gi_relative":
        return _relative_slope(curve)
    above, below = pal_weights(curve.magnitude, signs=curve.signs)
    area = float(below @ curve.accuracy)
    return (above - curve.pal * below) / area if area > 0 else np.full(len(above), np.nan)


def _relative_slope(curve: ResponseCurve) -> FloatArray:
    """Of the relative Gi-score; the clean accuracy moves with the answers at magnitude 0."""
    clean = curve.clean_accuracy
    if not clean > 0:
        return np.full(len(curve.magnitude), np.nan)
    area = 1 - curve.gi
    slope: FloatArray = area / clean**2 * (curve.magnitude == 0)
    return slope - gi_weights(curve.magnitude, curve.signs) / clean


def score_error(curve: ResponseCurve, score: str) -> float:
    """Standard error of a score over samples of examples, by the delta method for ratios."""
    variance = linear_variance(score_slope(curve, score), curve)
    return math.sqrt(variance + _clean_variance(curve, score))


def _clean_variance(curve: ResponseCurve, score: str) -> float:
    """What a clean accuracy that was measured apart adds to the variance of a score."""
    if score != "gi_relative" or (curve.magnitude == 0).any() or not curve.clean_total:
        return 0.0
    # Answers to clean and perturbed examples rise together: as if independent is too wide.
    clean = curve.clean_accuracy
    slope = (1 - curve.gi) / clean**2 if clean > 0 else math.nan
    return slope**2 * clean * (1 - clean) / curve.clean_total


def score_interval(curve: ResponseCurve, score: str, level: float) -> Interval:
    """Interval of a score over samples of examples.

    Wilson's, of as many independent answers as have the variance of the score: near a score that
    is ideal the normal interval is far too narrow. A ratio may be better than ideal, so that its
    interval is that of the delta method.
    """
    estimate = float(getattr(curve, score))
    best, worst = _ends(curve, score)
    slope = score_slope(curve, score)
    variance = (seen_variance(slope, curve) + _clean_variance(curve, score)) / (worst - best) ** 2
    lost = (estimate - best) / (worst - best)
    if math.isnan(variance) or math.isnan(lost):
        return Interval(estimate, math.nan, math.nan, check_level(level))
    count = int(curve.total.min())
    times = quantile(level, count - 1 if curve.hits is not None else math.inf)
    if score in ("pal", "gi_relative"):
        # An example more, and at least the share of examples that a sample may well hold none of.
        half = max(times * math.sqrt(variance + count**-2), times**2 / (count + times**2))
        low, high = lost - half, min(1.0, lost + half)
    else:
        share = min(max(lost, 0.0), 1.0)
        alike = np.array(effective_count(share, variance, count))
        low, high = (float(end) for end in wilson(np.array(share), alike, times))
    ends = sorted((best + low * (worst - best), best + high * (worst - best)))
    return Interval(estimate, min(ends[0], estimate), max(ends[1], estimate), level)


def _ends(curve: ResponseCurve, score: str) -> tuple[float, float]:
    """A score of a network that is always right, and of one that never is once perturbed."""
    if score != "pal":
        return (1.0, 0.0) if score == "mean_accuracy" else (0.0, 1.0)
    above, below = pal_weights(curve.magnitude, signs=curve.signs)
    return float(above.sum() / below.sum()), 0.0


def quantile(level: float, degrees: float) -> float:
    """How many standard errors an interval reaches: Student's t, or normal."""
    upper = 0.5 + check_level(level) / 2
    return float(ndtri(upper) if math.isinf(degrees) else stdtrit(max(degrees, 1), upper))


def wilson(
    share: FloatArray, count: FloatArray | NDArray[np.int64], times: float
) -> tuple[FloatArray, FloatArray]:
    """Wilson's interval of shares of so many answers, ``times`` standard errors wide."""
    wide = times**2 / np.asarray(count)
    centre = (share + wide / 2) / (1 + wide)
    half = np.sqrt(share * (1 - share) * wide + wide**2 / 4) / (1 + wide)
    return np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)


def effective_count(share: float, variance: float, examples: int) -> float:
    """How many independent answers would have the variance of this share of all answers.

    An example that is always right and one that never is are added first. So few failures, or
    none, of which the variance tells little, count as if an example failed at every magnitude.

    >>> effective_count(0.0, 0.0, 100)
    101.0
    """
    more = (1 - share) ** 2 + share**2 - (1 - 2 * share) ** 2 / (examples + 2)
    squares = examples * max(examples - 1, 1) * variance + more
    middle = (examples * share + 1) / (examples + 2)
    return float(middle * (1 - middle) * (examples + 2) * (examples + 1) / squares)


def linear_variance(weights: FloatArray, curve: ResponseCurve) -> float:
    """Variance of weights · accuracy, which is never 0.

    Where single answers are known, an example counts with all its magnitudes together, and, mixed
    pairs, with every pair that it is in. Otherwise the magnitudes are taken as independent.
    """
    p, n = curve.accuracy, curve.total
    # With all answers right (or wrong) a proportion shows no spread: one pseudo-answer more.
    p = (p * n + 0.5) / (n + 1)
    if curve.hits is None:
        return float(np.sum(weights**2 * p * (1 - p) / n))
    found = seen_variance(weights, curve)
    return found if found != 0 else float(np.sum(np.abs(weights) * np.sqrt(p * (1 - p) / n)) ** 2)


def seen_variance(weights: FloatArray, curve: ResponseCurve) -> float:
    """Variance of weights · accuracy as the answers show it; 0 where all are alike."""
    if curve.hits is None:
        p = curve.accuracy
        return float(np.sum(weights**2 * p * (1 - p) / curve.total))
    return answers_variance(weights, curve.hits.astype(np.float64), curve.partners)


def answers_variance(
    weights: FloatArray, answers: FloatArray, partners: NDArray[np.int64] | None
) -> float:
    """Variance of ``weights · answers.mean(axis=1)`` over samples of examples.

    Answers that share an example are not independent. Their products are added up over all such
    pairs of answers (the dyadic form of the cluster-robust variance): by example, what each brings
    in every pair it is in, less what is then counted twice, answers that share both examples.

    Parameters
    ----------
    weights : ndarray, shape (M,)
        What each magnitude counts.
    answers : ndarray, shape (M, N)
        Right (1) or wrong (0), or the difference of two such.
    partners : ndarray of int, shape (M, N), optional
        With which example each was mixed.
    """
    count = answers.shape[1]
    parts = weights[:, None] * (answers - answers.mean(axis=1, keepdims=True))
    alone = float(np.sum(parts.sum(axis=0) ** 2) / (count * max(count - 1, 1)))
    if partners is None or not np.isfinite(alone):
        return alone
    own = np.broadcast_to(np.arange(count), partners.shape)
    by_example = _sums(own, parts, count) + _sums(partners, parts, count)
    _, pair = np.unique(
        np.minimum(own, partners) * count + np.maximum(own, partners), return_inverse=True
    )
    twice = np.bincount(pair.ravel(), weights=parts.ravel())
    shared = float(np.sum(by_example**2) - np.sum(twice**2))
    # Around their own mean, answers that share an example (four in N do) vary too little.
    shared /= count * max(count - 4, 1)
    return float(max(shared, alone))  # never less than with examples alone


def _sums(places: NDArray[np.int64], parts: FloatArray, count: int) -> FloatArray:
    """Sum of the parts at each place."""
    return np.bincount(places.ravel(), weights=parts.ravel(), minlength=count).astype(np.float64)
