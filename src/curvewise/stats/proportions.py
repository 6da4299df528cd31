"""Intervals and tests of 0/1 scores and of means between 0 and 1: Wilson, clusters, and pairs of answers.

An interval here never has zero width: five right answers of five do not show that all would be right.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr, ndtri

from curvewise.types.units import FloatArray

WORST = 1 / 3
"""Informative questions that the worst design effect counts for in :func:`bounded_interval`.

Chosen by simulation (``benchmarks/evals_coverage.py``): with 1/4 rows of clustered, nearly perfect scores fall below
90%, with 1/2 means of several samples exceed 98%.
"""

UNSEEN = 1.0
"""The same for differences, in :func:`widened_variance`: few questions that decide may be missing from the sample."""


def wilson_interval(mean: ArrayLike, n: ArrayLike, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
    """Return Wilson's score interval of a rate, from n independent answers.

    >>> [round(float(end), 3) for end in wilson_interval(1.0, 5)]
    [0.566, 1.0]
    """
    return _score_interval(np.asarray(mean, dtype=np.float64), float(ndtri((1 + level) / 2)) ** 2 / np.asarray(n))


def bounded_interval(
    mean: ArrayLike,
    variance: ArrayLike,
    quantile: ArrayLike,
    n: float,
    clusters: float,
    level: float = 0.95,
    capped: ArrayLike = True,
) -> tuple[FloatArray, FloatArray]:
    """Return a score interval of means between 0 and 1, of several samples, of clusters, or of pass@k.

    Wilson's interval, where the variance of the mean at a rate μ is D μ(1 − μ)/n with the design effect D that the
    data show, and with the quantile of t. Nearly perfect scores show hardly anything about D: it is the geometric mean
    of the estimate, which counts as nμ(1 − μ), and of the worst that is possible, that all questions of a cluster go
    together, which counts as :data:`WORST`.

    Parameters
    ----------
    mean, variance, quantile : array_like
        Means, their estimated variances, and the quantile of t that goes with these; NaN or infinite where the variance
        is not known.
    n : float
        Number of questions.
    clusters : float
        Number of clusters of equal weight that weigh as much as those of the questions; n without clusters.
    level : float
        Coverage.
    capped : array_like of bool
        False where more than questions is sampled, or the mean is one over strata. Otherwise the interval is never
        wider than Wilson's with one answer for each cluster, because a mean of answers varies no more than one of them.

    Examples
    --------
    >>> low, high = bounded_interval(0.9, 0.0004, 1.98, 100, 100)
    >>> round(float(low), 3), round(float(high), 3)
    (0.853, 0.933)
    """
    m, v, t = (np.asarray(x, dtype=np.float64) for x in (mean, variance, quantile))
    z = float(ndtri((1 + level) / 2))
    seen, worst = n * m * (1 - m), n / clusters
    with np.errstate(divide="ignore", invalid="ignore"):
        # n/(n − 1) as μ(1 − μ) is the variance with n in its denominator: D is 1 for single answers.
        shown = np.where(seen > 0, np.maximum(n * (n - 1) * v / seen, 1e-9), worst)
        effect = shown ** (seen / (seen + WORST)) * worst ** (WORST / (seen + WORST))
        spread = t**2 * effect / n
    # Where the variance is not known, the bound is.
    spread = np.where(np.isfinite(spread), spread, z**2 / clusters)
    return _score_interval(m, np.where(capped, np.minimum(spread, z**2 / clusters), spread))


def _score_interval(mean: FloatArray, spread: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Solve (mean − μ)² = spread · μ(1 − μ) for μ."""
    centre = (mean + spread / 2) / (1 + spread)
    half = np.sqrt(spread * mean * (1 - mean) + spread**2 / 4) / (1 + spread)
    # At 0 and 1 the end is the mean itself, whatever rounding makes of it.
    low = np.where(mean <= 0, 0.0, np.clip(centre - half, 0.0, mean))
    high = np.where(mean >= 1, 1.0, np.clip(centre + half, mean, 1.0))
    return low, high


def widened_variance(variance: ArrayLike, apart: ArrayLike, clusters: float) -> FloatArray:
    """Return the variance of a difference between −1 and 1, not trusted where hardly anything differs.

    If two models differ on no question, or on all alike, a question of another kind may be missing from the sample. The
    variance is then that of two such questions, one each way; with more that differ, a geometric mean of both.

    Parameters
    ----------
    variance : array_like
        Estimated variance.
    apart : array_like
        Sum over questions of the distance of their difference from the nearest of −1, 0 and 1 to their mean.
    clusters : float
        Number of clusters (questions, without clusters) of equal weight.
    """
    v, seen = np.asarray(variance, dtype=np.float64), np.asarray(apart, dtype=np.float64)
    few = 2 / (clusters + 2) ** 2
    mixed = np.maximum(v, 1e-300) ** (seen / (seen + UNSEEN)) * few ** (UNSEEN / (seen + UNSEEN))
    return np.maximum(v, mixed)


def mcnemar_pvalue(only_a: ArrayLike, only_b: ArrayLike) -> FloatArray:
    """Return the exact two-sided p-value of McNemar's test, from questions that only a and only b solves.

    >>> round(float(mcnemar_pvalue(8, 1)), 4)
    0.0391
    """
    a, b = np.asarray(only_a, dtype=np.float64), np.asarray(only_b, dtype=np.float64)
    return np.asarray(np.minimum(1.0, 2 * bdtr(np.minimum(a, b), (a + b).astype(np.int64), 0.5)))


def mcnemar_power(n: int, difference: float, apart: float, level: float = 0.95) -> float:
    """Return the chance that McNemar's exact test of n questions has p < 1 − level.

    All samples are counted out but those with a chance of less than 1e-12. ``apart`` is the share of questions that
    only one of the two answers right, and ``difference`` that of their rates, which is not larger.

    >>> round(mcnemar_power(10, 0.8, 0.8), 4)  # six or more of ten on which they differ
    0.9672
    """
    middle, reach = n * apart, 8 * np.sqrt(n * apart * (1 - apart)) + 20
    m = np.arange(max(1, int(middle - reach)), min(n, int(middle + reach)) + 1, dtype=np.float64)
    chance = bdtr(m, n, apart) - bdtr(m - 1, n, apart)
    # The most questions that only the loser answers right for a significant difference, negative where there is none:
    # at most two fewer than the normal distribution says.
    most = np.floor((m - float(ndtri((1 + level) / 2)) * np.sqrt(m)) / 2) + 2
    for _ in range(4):
        most -= mcnemar_pvalue(np.maximum(most, 0), np.maximum(m - most, 0)) >= 1 - level
    share = (1 + abs(difference) / apart) / 2
    lost = [np.where(most < 0, 0.0, bdtr(np.maximum(most, 0), m.astype(np.int64), p)) for p in (share, 1 - share)]
    return float(min(1.0, (chance * (lost[0] + lost[1])).sum()))


def paired_interval(only_a: ArrayLike, only_b: ArrayLike, n: int, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
    """Return the interval of a difference of two rates on the same n questions: Tango's score interval (1998).

    It agrees with :func:`mcnemar_pvalue`: 0 is inside exactly where that is not below one minus the level. The exact
    test is more cautious than the score test that the interval belongs to, so that an end may be moved to 0.

    >>> low, high = paired_interval(0, 0, 5)
    >>> round(float(low), 3), round(float(high), 3)
    (-0.434, 0.434)
    """
    a, b = np.asarray(only_a, dtype=np.float64), np.asarray(only_b, dtype=np.float64)
    z, gap = float(ndtri((1 + level) / 2)), (a - b) / n
    ends = []
    for sign in (1.0, -1.0):
        # The statistic falls with the rate supposed; at the outer end it is beyond any quantile.
        outer, inner = np.full_like(gap, -sign), gap.copy()
        for _ in range(48):  # halvings, to the last digits
            middle = (outer + inner) / 2
            inside = sign * paired_statistic(a, b, n, middle) <= z
            outer, inner = np.where(inside, outer, middle), np.where(inside, middle, inner)
        ends.append(inner)
    low, high = ends
    significant, tiny = mcnemar_pvalue(a, b) < 1 - level, np.finfo(np.float64).tiny
    low = np.where(gap > 0, np.where(significant, np.maximum(low, tiny), np.minimum(low, 0.0)), low)
    high = np.where(gap < 0, np.where(significant, np.minimum(high, -tiny), np.maximum(high, 0.0)), high)
    return low, high


def paired_statistic(only_a: FloatArray, only_b: FloatArray, n: int, difference: ArrayLike) -> FloatArray:
    """Return Tango's statistic, normal if the true difference of the rates is ``difference``; at 0 it is McNemar's."""
    d = np.asarray(difference, dtype=np.float64)
    # The most likely rate of questions that only b solves, given the difference, solves a quadratic equation.
    linear = -only_a - only_b + (2 * n - only_a + only_b) * d
    rate = (np.sqrt(linear**2 + 8 * n * only_b * d * (1 - d)) - linear) / (4 * n)
    variance = np.maximum(0.0, n * (2 * rate + d * (1 - d)))
    gap = only_a - only_b - n * d
    with np.errstate(divide="ignore", invalid="ignore"):
        found = gap / np.sqrt(variance)
    return np.where(gap == 0, 0.0, found)
