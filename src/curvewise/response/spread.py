"""Variance of what is linear in a network's answers, over samples of examples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from curvewise.types import FloatArray

if TYPE_CHECKING:
    from curvewise.response.curve import ResponseCurve


def linear_variance(weights: FloatArray, curve: ResponseCurve) -> float:
    """Variance of weights · accuracy.

    Where single answers are known, an example counts with all its magnitudes together, and, mixed
    pairs, with every pair that it is in. Otherwise the magnitudes are taken as independent.
    """
    if curve.hits is None:
        p, n = curve.accuracy, curve.total
        # With all answers right (or wrong) a proportion shows no spread: one pseudo-answer more.
        p = (p * n + 0.5) / (n + 1)
        return float(np.sum(weights**2 * p * (1 - p) / n))
    return answers_variance(weights, curve.hits.astype(np.float64), curve.partners)


def answers_variance(
    weights: FloatArray, answers: FloatArray, partners: NDArray[np.int64] | None
) -> float:
    """Variance of ``weights · answers.mean(axis=1)`` over samples of examples.

    Answers that share an example are not independent. Their products are added up over all such
    pairs of answers (the dyadic form of the cluster-robust variance): by example, what each brings
    in every pair it is in, less what is then counted twice.

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
    whole = parts.sum(axis=0)
    if partners is None:
        return float(np.sum(whole**2) / (count * max(count - 1, 1)))
    for row, other in zip(parts, partners, strict=True):
        whole = whole + np.bincount(other, weights=row, minlength=count)
    shared = float(np.sum(whole**2)) - float(np.sum(parts**2))
    alone = float(np.sum(parts.sum(axis=0) ** 2))  # never less than with examples alone
    return float(max(shared, alone) / (count * max(count - 1, 1)))
