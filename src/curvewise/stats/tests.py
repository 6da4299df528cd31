"""Tests of two samples by permutation, by placements and at several looks, and adjustments of many p-values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import comb

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, ndtri, stdtr

from curvewise.errors import InputError
from curvewise.stats.intervals import SampledMean
from curvewise.types.results import FloatArray, Interval, as_generator, check_whole, plain

EXACT_UP_TO = 20_000
"""Up to so many arrangements all are tried; beyond, some are drawn."""

WORK = 2e8
"""Values shuffled at most; with many runs fewer arrangements are drawn."""


def permutation_pvalue(a: FloatArray, b: FloatArray, *, draws: int = 9999, rng: int | np.random.Generator = 0) -> float:
    """Return the two-sided p-value of a permutation test: runs dealt at random to a and b, by Welch's t.

    All arrangements are tried where there are few; else ``draws`` of them, the observed one
    counted among them.

    >>> permutation_pvalue(np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0]))
    0.1
    """
    values = np.concatenate([a, b])
    if np.isnan(values).any():
        return math.nan
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
    generator = as_generator(rng)

    def deal(rows: int) -> FloatArray:
        return _welch(generator.permuted(np.tile(values, (rows, 1)), axis=1), size)

    return _drawn_pvalue(deal, total, seen, draws)


def sign_flip_pvalue(differences: FloatArray, *, draws: int = 9999, rng: int | np.random.Generator = 0) -> float:
    """Return the two-sided p-value of paired differences with random signs, by t.

    >>> sign_flip_pvalue(np.array([1.0, 2.0, 3.0]))
    0.25
    """
    if np.isnan(differences).any():
        return math.nan
    if not differences.any():
        return 1.0
    size = len(differences)
    seen = abs(_one_sample(differences[None, :])[0])
    if 2**size <= EXACT_UP_TO:
        signs = 1 - 2 * ((np.arange(2**size)[:, None] >> np.arange(size)) & 1)
        return float(np.mean(_as_large(_one_sample(signs * differences), seen)))
    generator = as_generator(rng)

    def flip(rows: int) -> FloatArray:
        return _one_sample((1 - 2 * generator.integers(0, 2, size=(rows, size))) * differences)

    return _drawn_pvalue(flip, size, seen, draws)


def _drawn_pvalue(draw: Callable[[int], FloatArray], size: int, seen: float, draws: int) -> float:
    """Return the share of drawn statistics as large as the one seen, which counts among them."""
    # Fewer draws with many runs, whose t statistic is nearly normal anyway.
    draws = int(min(draws, max(999, WORK / size)))
    hits, left = 0, draws
    while left:  # in blocks, so that memory does not grow with the number of draws
        rows = min(left, max(1, 2**20 // size))
        hits += int(_as_large(draw(rows), seen).sum())
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


def probability_below(a: FloatArray, b: FloatArray, level: float = 0.95, *, paired: bool = False) -> Interval:
    """Return P(a < b) + P(a = b)/2 for a random value of each: the area under a ROC curve.

    The interval is Student's on the scale of log odds with the variance of the placements, each
    of which is known to half a step at best. Where every value of one sample is below every one of
    the other, it ends where a chance that large would still show this in the smaller sample; where
    all values are equal nothing is known.

    Parameters
    ----------
    a, b : ndarray
        The two samples.
    level : float
        Coverage of the interval.
    paired : bool
        True if value i of a goes with value i of b (runs that share their seeds). The chance is
        still that of two values drawn apart; only its interval is that of pairs.

    Examples
    --------
    >>> probability_below(np.array([1.0, 2.0, 3.0]), np.array([2.0, 3.0, 4.0])).estimate
    0.7777777777777778
    """
    if paired and len(a) != len(b):
        raise InputError(f"a has {len(a)} values and b has {len(b)}.", argument="paired", value=True)
    above = _placements(a, np.sort(b))
    below = 1 - _placements(b, np.sort(a))
    p = float(above.mean())
    tail = (1 - level) / 2
    fewest = min(len(a), len(b))
    if p in (0.0, 1.0):
        # Complete separation: the chance at which the smaller sample would still show it with probability tail.
        edge = tail ** (1 / fewest)
        return Interval(p, edge if p else 0.0, 1.0 if p else 1 - edge, level)
    if fewest < 2 or np.ptp(above) == np.ptp(below) == 0:
        return Interval(p, 0.0, 1.0, level)
    sizes = np.array([len(a), len(b)])
    # A placement moves in steps of one value of the other sample, and is known to half a step at best.
    least = 1 / (2 * sizes[::-1]) ** 2
    if paired:  # placements of pairs vary together
        variance = max(float(np.var(above + below, ddof=1)), float(least.sum())) / len(a)
        parts = [(variance, len(a) - 1.0)]
    else:
        spreads = np.maximum([np.var(above, ddof=1), np.var(below, ddof=1)], least) / sizes
        variance, parts = float(spreads.sum()), list(zip(spreads.tolist(), (sizes - 1.0).tolist(), strict=True))
    quantile = SampledMean(p, variance, tuple(parts)).quantile(1 - tail)
    # Delta method on the log odds, whose interval cannot leave (0, 1).
    half = quantile * math.sqrt(variance) / (p * (1 - p))
    low, high = expit(logit(p) - half), expit(logit(p) + half)
    return Interval(p, float(low), float(high), level)


def _placements(values: FloatArray, others: FloatArray) -> FloatArray:
    """For each value the share of the others above it, ties counting half."""
    right = np.searchsorted(others, values, side="right")
    left = np.searchsorted(others, values, side="left")
    return 1 - (left + right) / (2 * len(others))


def holm(pvalues: ArrayLike, tests: int | None = None) -> FloatArray:
    """Holm's adjustment: keeps the chance of any false rejection.

    Parameters
    ----------
    pvalues : array_like
        P-values of the tests, or the smallest of them.
    tests : int, optional
        Number of tests in all.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    # ``tests`` beyond the p-values given: the others are taken to be larger than all of these.
    return _adjust(pvalues, tests, lambda p, count, rank: np.maximum.accumulate(p * (count + 1 - rank)))


def benjamini_hochberg(pvalues: ArrayLike, tests: int | None = None) -> FloatArray:
    """Adjustment of Benjamini and Hochberg: keeps the share of false ones among rejections.

    >>> benjamini_hochberg([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.04, 0.04]
    """
    # NaN comes last, and stays alone.
    return _adjust(pvalues, tests, lambda p, count, rank: np.fmin.accumulate((p * count / rank)[::-1])[::-1])


def _adjust(
    pvalues: ArrayLike, tests: int | None, steps: Callable[[FloatArray, int, NDArray[np.int64]], FloatArray]
) -> FloatArray:
    """Adjust p-values by a function of them in rising order, the number of tests, and their ranks from 1."""
    p = np.asarray(pvalues, dtype=np.float64).ravel()
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, steps(p[order], len(p) if tests is None else tests, np.arange(1, len(p) + 1)))
    return adjusted


# Tests that look at the data several times and may stop at each, at a level that keeps the error rate over all.


@dataclass(frozen=True)
class SequentialDesign:
    """Level of each look, and what the looks find at true differences.

    Attributes
    ----------
    looks : tuple of int
        Values (runs, questions) at each look.
    nominal_level : float
        The p-value below which a look stops, the same at each, as in Pocock's design.
    naive_error : float
        Error rate over all looks if each stopped at the level that is kept over all.
    expected, found, fixed : tuple of float
        For each effect: values until the test stops, on average; the chance that it stops with a difference; the chance
        that a single look at the last finds one.
    """

    looks: tuple[int, ...]
    nominal_level: float
    naive_error: float
    expected: tuple[float, ...]
    found: tuple[float, ...]
    fixed: tuple[float, ...]


def sequential_design(
    looks: Sequence[int],
    effects: Sequence[float] = (),
    *,
    level: float = 0.95,
    paired: bool = True,
    draws: int = 100_000,
    rng: int | np.random.Generator = 0,
) -> SequentialDesign:
    """Find the level of each of several looks by simulating t tests of normal values.

    Parameters
    ----------
    looks : sequence of int
        Values at each look, rising, from 2 on.
    effects : sequence of float
        True differences, in standard deviations of a value, for which to tell what is found.
    level : float
        One minus the error rate over all looks.
    paired : bool
        True for the t test of differences, False for Welch's t test of two samples of that size each.
    draws : int
        Simulated experiments.
    rng : int or Generator
        Determines them.

    Examples
    --------
    >>> design = sequential_design([50, 100, 200], [0.3], draws=20_000)
    >>> round(design.nominal_level, 3), round(design.found[0], 2)
    (0.021, 0.97)
    """
    planned = rising_looks(looks)
    draws = check_whole(draws, "draws", 1000)
    generator = as_generator(rng)
    # Simulated, not looked up: tables of Pocock's constants are for known variances, and few values need t.
    gap, error, degrees = _simulate(planned, paired, draws, generator)
    smallest = _look_pvalues(gap, error, degrees, 1 - level).min(axis=0)
    # The level at which the smallest p-value of all looks falls below it just 1 − level of the time.
    # Never above that of a single test: with few values a t test errs less often than it says, and p-values above
    # 1 − level are not simulated.
    nominal = min(1 - level, float(np.quantile(smallest, 1 - level, method="lower")))
    gap, error, degrees = _simulate(planned, paired, max(1000, draws // 10), generator)
    rows = [_expect(planned, _look_pvalues(gap + x, error, degrees, 1 - level), nominal, 1 - level) for x in effects]
    expected, found, fixed = zip(*rows, strict=True) if rows else ((), (), ())
    return SequentialDesign(planned, nominal, float((smallest <= 1 - level).mean()), expected, found, fixed)


def rising_looks(looks: ArrayLike) -> tuple[int, ...]:
    """Raise unless looks are rising whole numbers from 2 on."""
    try:
        planned = tuple(check_whole(n, "looks", 2) for n in np.ravel(looks).tolist())
    except InputError:
        planned = ()
    if not planned or not all(x < y for x, y in pairwise(planned)):
        raise InputError(
            "must be rising whole numbers from 2 on, such as [5, 10, 20].", argument="looks", value=plain(looks)
        )
    return planned


def _simulate(
    looks: tuple[int, ...], paired: bool, draws: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Simulate normal values without a true difference, and compare by Welch's or the paired t test.

    Only sums and sums of squares of the values between two looks are drawn. Returns tables (looks × draws): the
    difference of the two means so far, in standard deviations of a value, its standard error, and the degrees of
    freedom of that.
    """
    sides = [_look_moments(looks, draws, rng) for _ in range(1 if paired else 2)]
    sizes = np.array(looks, dtype=np.float64)[:, None]
    parts = [variance / sizes for _, variance in sides]
    total = np.sum(parts, axis=0)
    degrees = (sizes - 1) * total**2 / np.sum([p**2 for p in parts], axis=0)
    gap = sides[0][0] if paired else sides[0][0] - sides[1][0]
    return gap, np.sqrt(total), degrees


def _look_pvalues(gap: FloatArray, error: FloatArray, degrees: FloatArray, most: float) -> FloatArray:
    """Return two-sided p-values of t tests.

    Those above ``most`` are given as 1: a t that is not even extreme for a normal variable is not worth the time.
    """
    t = np.abs(gap) / error
    values = np.ones_like(t)
    small = t >= -ndtri(most / 2)
    values[small] = 2 * stdtr(degrees[small], -t[small])
    return np.where(values > most, 1.0, values)


def _look_moments(looks: tuple[int, ...], draws: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Mean and variance (ddof 1) of standard normal values so far, at each look."""
    means, variances = np.empty((2, len(looks), draws))
    mean, squares, before = np.zeros(draws), np.zeros(draws), 0
    for look, now in enumerate(looks):
        new = now - before
        fresh = rng.standard_normal(draws) / math.sqrt(new)
        # Only what enters the t statistic is drawn: the mean and the sum of squares of the new values.
        within = rng.chisquare(new - 1, draws) if new > 1 else 0.0
        squares += within + (fresh - mean) ** 2 * (before * new / now)
        mean += (fresh - mean) * (new / now)
        means[look], variances[look] = mean, squares / (now - 1)
        before = now
    return means, variances


def _expect(looks: tuple[int, ...], pvalues: FloatArray, nominal: float, alpha: float) -> tuple[float, float, float]:
    """Values until the test stops, its chance to find the effect, and that of one last look."""
    found = pvalues <= nominal
    stopped = np.where(found.any(axis=0), found.argmax(axis=0), len(pvalues) - 1)
    values = float(np.array(looks)[stopped].mean())
    return values, float(found.any(axis=0).mean()), float((pvalues[-1] <= alpha).mean())
