"""Correlations of one task, and what they are without each of the checkpoints in turn."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from curvewise.stats.correlation import kendall, pearson, weighted_kendall
from curvewise.types import FloatArray

CORRELATIONS = ("pearson", "kendall", "weighted_kendall")
_WHOLE = {"pearson": pearson, "kendall": kendall, "weighted_kendall": weighted_kendall}


def correlation(scores: FloatArray, accuracy: FloatArray, name: str) -> float:
    """A correlation of one task, over the checkpoints that have both.

    0 where all scores are equal, which is what a random order of them gives on average; NaN where
    all accuracies are equal or there are fewer than two.
    """
    whole = ~np.isnan(scores) & ~np.isnan(accuracy)
    x, y = scores[whole], accuracy[whole]
    if len(y) < 2 or y.max() == y.min():
        return math.nan
    return 0.0 if x.max() == x.min() else float(_WHOLE[name](x[None], y)[0])


def left_out(scores: FloatArray, accuracy: FloatArray, name: str) -> FloatArray:
    """A correlation without each checkpoint in turn.

    It is that of all where a checkpoint has no score or accuracy, and 0 where all that are left
    are equal.

    >>> left_out(np.array([1.0, 2.0, 4.0, 3.0]), np.array([0.1, 0.2, 0.3, 0.4]), "kendall").round(3)
    array([0.333, 0.333, 1.   , 1.   ])
    """
    whole = ~np.isnan(scores) & ~np.isnan(accuracy)
    found = np.full(len(scores), correlation(scores, accuracy, name))
    if whole.sum() > 2:
        found[whole] = _WITHOUT[name](scores[whole], accuracy[whole])
    return found


def _pearson(x: FloatArray, y: FloatArray) -> FloatArray:
    size = len(x)
    rest = np.arange(size - 1) + (np.arange(size - 1) >= np.arange(size)[:, None])
    a, b = (v[rest] - v[rest].mean(axis=1, keepdims=True) for v in (x, y))
    equal = (np.ptp(x[rest], axis=1) == 0) | (np.ptp(y[rest], axis=1) == 0)
    size_of = np.sqrt(np.sum(a * a, axis=1) * np.sum(b * b, axis=1))
    found: FloatArray = np.sum(a * b, axis=1) / np.where(equal, 1.0, size_of)
    return np.where(equal, 0.0, found)


def _kendall(x: FloatArray, y: FloatArray) -> FloatArray:
    """Sums over pairs less those of each checkpoint."""
    return _ratio(*(m.sum() / 2 - m.sum(axis=1) for m in _signs(x, y)))


def _weighted(x: FloatArray, y: FloatArray) -> FloatArray:
    """As above, a pair weighing as much as the places of its two, by scores and by accuracies.

    Without a checkpoint those below it are a place further up.
    """
    found = np.zeros(len(x))
    for keys in ((y, x), (x, y)):
        place = np.empty(len(x))
        place[np.lexsort(keys)[::-1]] = np.arange(len(x))
        weight = 1 / (1 + place[None] - (place[None] > place[:, None]))
        np.fill_diagonal(weight, 0.0)
        sums = [np.sum(weight * (m.sum(axis=1)[None] - m), axis=1) for m in _signs(x, y)]
        found += _ratio(*sums) / 2
    return found


_WITHOUT = {"pearson": _pearson, "kendall": _kendall, "weighted_kendall": _weighted}


def _signs(x: FloatArray, y: FloatArray) -> tuple[NDArray[np.float64], ...]:
    """For every pair whether x and y agree, and whether each tells it apart."""
    up, over = np.sign(x[:, None] - x[None]), np.sign(y[:, None] - y[None])
    return up * over, up * up, over * over


def _ratio(both: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    told = first * second > 1e-12
    found: FloatArray = both / np.sqrt(np.where(told, first * second, 1.0))
    return np.where(told, found, 0.0)
