"""Permutation tests of a difference of means."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from curvewise.types import FloatArray

EXACT_UP_TO = 20_000
"""Up to so many arrangements all are tried; beyond, some are drawn."""

WORK = 2e8
"""Values shuffled at most; with many runs fewer arrangements are drawn."""


def permutation_pvalue(
    a: FloatArray, b: FloatArray, *, draws: int = 9999, rng: int | np.random.Generator = 0
) -> float:
    """Two-sided: how often runs dealt at random to a and b differ as much, by Welch's t.

    All arrangements are tried where there are few; else ``draws`` of them, the observed one
    counted among them.

    >>> permutation_pvalue(np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0]))
    0.1
    """
    values = np.concatenate([a, b])
    if np.ptp(values) == 0:
        return 1.0
    size, total = len(a), len(values)
    seen = abs(_welch(values[None, :], size)[0])
    if comb(total, size) <= EXACT_UP_TO:
        chosen = np.array(list(combinations(range(total), size)))
        inside = np.zeros((len(chosen), total), dtype=bool)
        np.put_along_axis(inside, chosen, True, axis=1)
        order = np.argsort(~inside, axis=1, kind="stable")
        return float(np.mean(_as_large(_welch(values[order], size), seen)))
    generator = np.random.default_rng(rng)
    draws = int(min(draws, max(999, WORK / total)))
    hits, left = 0, draws
    while left:
        rows = min(left, max(1, 2**20 // total))
        shuffled = generator.permuted(np.tile(values, (rows, 1)), axis=1)
        hits += int(_as_large(_welch(shuffled, size), seen).sum())
        left -= rows
    return (hits + 1) / (draws + 1)


def sign_flip_pvalue(
    differences: FloatArray, *, draws: int = 9999, rng: int | np.random.Generator = 0
) -> float:
    """Two-sided: how often paired differences with random signs have as large a t.

    >>> sign_flip_pvalue(np.array([1.0, 2.0, 3.0]))
    0.25
    """
    if not differences.any():
        return 1.0
    size = len(differences)
    seen = abs(_one_sample(differences[None, :])[0])
    if 2**size <= EXACT_UP_TO:
        signs = 1 - 2 * ((np.arange(2**size)[:, None] >> np.arange(size)) & 1)
        return float(np.mean(_as_large(_one_sample(signs * differences), seen)))
    generator = np.random.default_rng(rng)
    draws = int(min(draws, max(999, WORK / size)))
    hits, left = 0, draws
    while left:
        rows = min(left, max(1, 2**20 // size))
        signs = 1 - 2 * generator.integers(0, 2, size=(rows, size))
        hits += int(_as_large(_one_sample(signs * differences), seen).sum())
        left -= rows
    return (hits + 1) / (draws + 1)


def _as_large(statistic: FloatArray, seen: float) -> NDArray[np.bool_]:
    # Arrangements that tie with the observed one count, whatever the last digit says.
    return np.abs(statistic) >= seen * (1 - 1e-9)


def _welch(rows: FloatArray, size: int) -> FloatArray:
    one, two = rows[:, :size], rows[:, size:]
    difference = one.mean(axis=1) - two.mean(axis=1)
    return _studentised(difference, _error(one) + _error(two))


def _one_sample(rows: FloatArray) -> FloatArray:
    return _studentised(rows.mean(axis=1), _error(rows))


def _error(rows: FloatArray) -> FloatArray:
    size = rows.shape[1]
    if size == 1:
        return np.zeros(len(rows))
    spread: FloatArray = rows.var(axis=1, ddof=1) / size
    return spread


def _studentised(difference: FloatArray, variance: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        t = difference / np.sqrt(variance)
    return np.where(difference == 0, 0.0, t)
