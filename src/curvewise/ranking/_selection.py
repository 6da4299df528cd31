"""What trying the k checkpoints of highest score gives, averaged over the orders of ties."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.types import FloatArray

Places: TypeAlias = NDArray[np.intp]


def recall_at(scores: FloatArray, accuracy: FloatArray, k: int) -> float:
    """Chance that a checkpoint of the highest accuracy is among the k of highest score.

    Equal scores are put in a random order. A checkpoint without a score (NaN) is never chosen.

    >>> recall_at(np.array([2.0, 1.0, 1.0]), np.array([0.7, 0.9, 0.8]), 2)
    0.5
    """
    sure, tied, slots = _chosen(scores, k)
    best = accuracy == accuracy.max()
    if best[sure].any():
        return 1.0
    lucky = int(best[tied].sum())
    return 1.0 - math.comb(len(tied) - lucky, slots) / math.comb(len(tied), slots)


def rel_at(scores: FloatArray, accuracy: FloatArray, k: int) -> float:
    """Best accuracy among the k of highest score over the best of all, in the same way.

    NaN where the best accuracy is not above 0, so that there is no ratio.

    >>> round(rel_at(np.array([2.0, 1.0, 1.0]), np.array([0.8, 0.9, 0.7]), 2), 4)
    0.9444
    """
    top = float(accuracy.max())
    sure, tied, slots = _chosen(scores, k)
    if top <= 0 or not len(sure) + slots:
        return math.nan
    least = float(accuracy[sure].max()) if len(sure) else -math.inf
    if not slots:
        return least / top
    values = np.maximum(np.sort(accuracy[tied])[::-1], least)
    # Of the sets of so many, those in which a value is the first of the sorted ones.
    ways = [math.comb(len(tied) - 1 - place, slots - 1) for place in range(len(tied))]
    total = math.comb(len(tied), slots)
    return math.fsum(v * (w / total) for v, w in zip(values.tolist(), ways, strict=True)) / top


def _chosen(scores: FloatArray, k: int) -> tuple[Places, Places, int]:
    """Who is surely among the k highest, who shares the places left, and how many these are."""
    known = np.flatnonzero(~np.isnan(scores))
    if len(known) <= k:
        return known, known[:0], 0
    edge = np.sort(scores[known])[::-1][k - 1]
    sure = known[scores[known] > edge]
    return sure, known[scores[known] == edge], k - len(sure)


def drawn_selections(
    scores: FloatArray, accuracy: FloatArray, k: tuple[int, ...], rng: np.random.Generator
) -> dict[str, FloatArray]:
    """Recall@k and Rel@k of many draws at once, ties in one random order each.

    Parameters
    ----------
    scores, accuracy : ndarray, shape (draws, checkpoints)
        NaN where unknown.
    """
    jitter = rng.random(scores.shape)
    order = np.lexsort((jitter, np.where(np.isnan(scores), -np.inf, scores)), axis=-1)[:, ::-1]
    known = np.where(np.isnan(scores), np.nan, accuracy)
    ranked = np.take_along_axis(known, order, axis=-1)
    top = np.fmax.reduce(accuracy, axis=-1)
    found = {}
    for count in k:
        best = np.fmax.reduce(ranked[:, :count], axis=-1)
        found[f"recall@{count}"] = np.where(np.isnan(top), np.nan, best == top)
        found[f"rel@{count}"] = best / np.where(top > 0, top, np.nan)
    return found
