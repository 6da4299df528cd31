"""Variance of what is linear in a network's answers, over samples of examples."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.response.scores import gi_weights, pal_weights
from curvewise.types import FloatArray

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
    if score == "gi_relative" and not (curve.magnitude == 0).any() and curve.clean_total:
        # Answers to clean and perturbed examples rise together: as if independent is too wide.
        clean = curve.clean_accuracy
        slope = (1 - curve.gi) / clean**2 if clean > 0 else math.nan
        variance += slope**2 * clean * (1 - clean) / curve.clean_total
    return math.sqrt(variance)


def linear_variance(weights: FloatArray, curve: ResponseCurve) -> float:
    """Variance of weights · accuracy.

    Where single answers are known, an example counts with all its magnitudes together, and, mixed
    pairs, with every pair that it is in. Otherwise the magnitudes are taken as independent.
    """
    p, n = curve.accuracy, curve.total
    # With all answers right (or wrong) a proportion shows no spread: one pseudo-answer more.
    p = (p * n + 0.5) / (n + 1)
    if curve.hits is None:
        return float(np.sum(weights**2 * p * (1 - p) / n))
    found = answers_variance(weights, curve.hits.astype(np.float64), curve.partners)
    return found if found != 0 else float(np.sum(np.abs(weights) * np.sqrt(p * (1 - p) / n)) ** 2)


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
