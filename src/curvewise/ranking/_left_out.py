"""Correlations of one task, and what they are without each of the checkpoints in turn."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from curvewise.stats.correlation import kendall, pearson, weighted_kendall
from curvewise.types import FloatArray

PART = 2**20  # pairs that are held at a time
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
    """Sums of squares and products less those of each checkpoint, around the mean of the others."""
    size = len(x)
    a, b = x - x.mean(), y - y.mean()
    more = size / (size - 1)  # what a checkpoint takes away, as it moves the mean too
    both, first, second = (np.sum(u * v) - more * u * v for u, v in ((a, b), (a, a), (b, b)))
    equal = _one_value(x) | _one_value(y)
    outlier = (first < 1e-4 * np.sum(a * a)) | (second < 1e-4 * np.sum(b * b))
    for place in np.flatnonzero(outlier & ~equal):  # where it is all there is, little is left
        rest = np.arange(size) != place
        u, v = (value[rest] - value[rest].mean() for value in (x, y))
        both[place], first[place], second[place] = np.sum(u * v), np.sum(u * u), np.sum(v * v)
    found: FloatArray = both / np.sqrt(np.where(equal, 1.0, first * second))
    return np.where(equal, 0.0, found)


def _one_value(values: FloatArray) -> NDArray[np.bool_]:
    """Whether all values are equal without each in turn."""
    different, place, count = np.unique(values, return_inverse=True, return_counts=True)
    if len(different) > 2:
        return np.zeros(len(values), dtype=np.bool_)
    alone: NDArray[np.bool_] = (count == 1)[place.reshape(-1)]
    return alone if len(different) == 2 else np.ones_like(alone)


def _kendall(x: FloatArray, y: FloatArray) -> FloatArray:
    """Sums over pairs less those of each checkpoint."""
    own = np.concatenate([[m.sum(axis=1) for m in _signs(x, y, rows)] for rows in _rows(x)], axis=1)
    return _ratio(*(sums.sum() / 2 - sums for sums in own))


def _weighted(x: FloatArray, y: FloatArray) -> FloatArray:
    """As above, a pair weighing as much as the places of its two, by scores and by accuracies.

    Without a checkpoint those below it are a place further up.
    """
    own = np.concatenate([[m.sum(axis=1) for m in _signs(x, y, rows)] for rows in _rows(x)], axis=1)
    found = np.zeros(len(x))
    for keys in ((y, x), (x, y)):
        place = np.empty(len(x))
        place[np.lexsort(keys)[::-1]] = np.arange(len(x))
        for rows in _rows(x):
            weight = 1 / (1 + place[None] - (place[None] > place[rows, None]))
            weight[np.arange(len(weight)), np.arange(len(x))[rows]] = 0.0
            sums = [
                np.sum(weight * (total[None] - m), axis=1)
                for total, m in zip(own, _signs(x, y, rows), strict=True)
            ]
            found[rows] += _ratio(*sums) / 2
    return found


_WITHOUT = {"pearson": _pearson, "kendall": _kendall, "weighted_kendall": _weighted}


def _signs(x: FloatArray, y: FloatArray, rows: slice) -> tuple[NDArray[np.float64], ...]:
    """For pairs of some with all whether x and y agree, and whether each tells them apart."""
    up, over = np.sign(x[rows, None] - x[None]), np.sign(y[rows, None] - y[None])
    return up * over, up * up, over * over


def _rows(x: FloatArray) -> list[slice]:
    """Rows to take at a time, so that a table of pairs stays small."""
    step = max(1, PART // len(x))
    return [slice(start, start + step) for start in range(0, len(x), step)]


def _ratio(both: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    told = first * second > 1e-12
    found: FloatArray = both / np.sqrt(np.where(told, first * second, 1.0))
    return np.where(told, found, 0.0)
