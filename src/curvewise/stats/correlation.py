"""Rank and linear correlation, of many rows with one at a time."""

from __future__ import annotations

import numpy as np

from curvewise.types.results import FloatArray

PAIRS_UP_TO = 100  # values: beyond, sorting is quicker than a look at every pair


def kendall(rows: FloatArray, target: FloatArray) -> FloatArray:
    """Kendall's τ-b of each row with the target; NaN where either has one value only, or a NaN.

    >>> kendall(np.array([[1.0, 2.0, 3.0], [1.0, 3.0, 2.0]]), np.array([1.0, 2.0, 3.0])).round(4)
    array([1.    , 0.3333])
    """
    if len(target) > PAIRS_UP_TO:
        from scipy.stats import kendalltau  # imported late: scipy.stats is slow to load

        # "asymptotic" is the p-value's method, which is not used: the cheapest.
        return np.array([kendalltau(row, target, method="asymptotic").statistic for row in rows])
    first, second = np.triu_indices(len(target), 1)
    # By ranks: the difference of two infinite values is not a number.
    places = average_ranks(target)
    up = np.sign(places[first] - places[second])
    found = np.empty(len(rows))
    for row, values in enumerate(rows):
        places = average_ranks(values)
        signs = np.sign(places[first] - places[second])
        # τ-b: ties of either side are taken out of the denominator.
        untied = np.count_nonzero(signs) * np.count_nonzero(up)
        found[row] = signs @ up / np.sqrt(untied) if untied else np.nan
    return found


def pearson(rows: FloatArray, target: FloatArray) -> FloatArray:
    """Pearson's correlation of each row with the target; NaN where either has one value only.

    >>> pearson(np.array([[1.0, 2.0, 3.0], [4.0, 4.0, 4.0]]), np.array([1.0, 2.0, 3.0]))
    array([ 1., nan])
    """
    x, y = _standard(rows), _standard(target[None])
    r: FloatArray = np.clip((x @ y.T)[:, 0], -1.0, 1.0)
    return r


def spearman(rows: FloatArray, target: FloatArray) -> FloatArray:
    """Pearson's correlation of ranks; NaN where either has one value only, or a NaN.

    >>> spearman(np.array([[1.0, 20.0, 300.0]]), np.array([1.0, 2.0, 3.0]))
    array([1.])
    """
    return pearson(np.array([average_ranks(m) for m in rows]), average_ranks(target))


def weighted_kendall(rows: FloatArray, target: FloatArray) -> FloatArray:
    """Kendall's τ with hyperbolic weights: an exchange near the top counts most.

    An exchange between places r and s, counted from 0 at the best, weighs 1/(r + 1) + 1/(s + 1),
    with places by the row and by the target in turn, averaged (Vigna 2015).

    >>> weighted_kendall(np.array([[1.0, 2.0, 3.0], [1.0, 3.0, 2.0]]), np.array([1.0, 2.0, 3.0]))
    array([1.        , 0.18181818])
    """
    from scipy.stats import weightedtau  # imported late: scipy.stats is slow to load

    # The range of a row with a NaN is NaN; scipy would rank it as the lowest.
    varies = bool(np.ptp(target) > 0)
    return np.array([weightedtau(row, target).statistic if varies and np.ptp(row) > 0 else np.nan for row in rows])


def average_ranks(values: FloatArray) -> FloatArray:
    """Ranks from 1; those of equal values are their mean. All are NaN where one value is.

    >>> average_ranks(np.array([3.0, 1.0, 3.0, 7.0]))
    array([2.5, 1. , 2.5, 4. ])
    """
    # By numpy: rankdata would load scipy.stats, which is slow to load.
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    ranks: FloatArray = (last - (count - 1) / 2)[place.reshape(-1)]
    return np.full(len(ranks), np.nan) if np.isnan(values).any() else ranks


def _standard(rows: FloatArray) -> FloatArray:
    """Rows with mean 0 and length 1; NaN for one with a single value.

    They are brought to a largest value of 1 before and after they are centred, without which
    squares of values such as 1e±200 would be infinite or 0.
    """
    one_value = rows.max(axis=1, keepdims=True) == rows.min(axis=1, keepdims=True)
    scaled = _scaled(rows)
    with np.errstate(invalid="ignore"):  # a row with an infinite value is NaN
        centred = _scaled(scaled - scaled.mean(axis=1, keepdims=True))
    size = np.where(one_value, np.nan, np.linalg.norm(centred, axis=1, keepdims=True))
    standard: FloatArray = centred / size
    return standard


def _scaled(rows: FloatArray) -> FloatArray:
    """Rows over the power of two next to their largest value, which changes no digit."""
    largest = np.abs(rows).max(axis=1, keepdims=True)
    scaled: FloatArray = np.ldexp(rows, -np.frexp(largest)[1])
    return scaled
