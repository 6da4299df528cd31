"""Ranks of numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from curvewise.stats.correlation import average_ranks
from curvewise.types import FloatArray


def normal_scores(values: FloatArray) -> FloatArray:
    """Quantiles of the normal distribution in the order of the values.

    >>> normal_scores(np.array([1.0, 2.0, 900.0])).round(3)
    array([-0.967,  0.   ,  0.967])
    """
    scores: FloatArray = ndtri((average_ranks(values) - 0.5) / len(values))
    return scores


def dense_ranks(columns: FloatArray) -> NDArray[np.int16 | np.int32]:
    """The order of the numbers in each column, in small whole numbers that are quick to compare.

    >>> dense_ranks(np.array([[0.5], [0.1], [0.5], [0.9]])).ravel()
    array([1, 0, 1, 2], dtype=int16)
    """
    order = np.argsort(columns, axis=0)
    rising = np.take_along_axis(columns, order, axis=0)
    step = np.zeros(columns.shape, dtype=np.int16 if len(columns) < 2**15 else np.int32)
    np.cumsum(rising[1:] > rising[:-1], axis=0, out=step[1:])
    ranks = np.empty_like(step)
    np.put_along_axis(ranks, order, step, axis=0)
    return ranks
