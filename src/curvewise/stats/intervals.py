"""Intervals of differences, of crossings, of rates and of means whose variance has several parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, ndtri, stdtr, stdtrit

from curvewise.types.results import FloatArray, Interval

KNOWN = 1e9
"""Degrees of freedom of a variance that is known."""

FEW = 5
"""With fewer values their variance may come out far too small by chance."""


def difference_interval(
    a: ArrayLike, a_interval: tuple[ArrayLike, ArrayLike], b: ArrayLike, b_interval: tuple[ArrayLike, ArrayLike]
) -> tuple[FloatArray, FloatArray]:
    """Return the interval of a − b from the intervals of two independent estimates (MOVER).

    Zou and Donner 2008: each side of the difference recovers its variance from the matching sides
    of the two intervals, so that skewed intervals stay skewed. Estimates must lie inside theirs.

    >>> low, high = difference_interval(5.0, (4.0, 6.0), 3.0, (2.0, 4.0))
    >>> round(float(low), 3), round(float(high), 3)
    (0.586, 3.414)
    """
    (a_low, a_high), (b_low, b_high) = a_interval, b_interval
    centre = np.subtract(a, b)
    # The lower end of a − b comes from the lower side of a and the upper side of b.
    below = np.hypot(np.subtract(a, a_low), np.subtract(b_high, b))
    above = np.hypot(np.subtract(a_high, a), np.subtract(b, b_low))
    return centre - below, centre + above


SMALLEST_PVALUE = 1e-9
"""The smallest p-value that :func:`excluded_level` tells: a smaller one comes back as this one."""


def excluded_level(interval: Callable[[float], tuple[float, float]], value: float, tolerance: float = 1e-4) -> float:
    """Return the largest level at which the interval still leaves ``value`` out, by bisection.

    One minus it is a two-sided p-value, not below :data:`SMALLEST_PVALUE`.

    >>> from scipy.special import ndtri
    >>> z = lambda level: (2 - ndtri(0.5 + level / 2), 2 + ndtri(0.5 + level / 2))
    >>> round(1 - excluded_level(z, 0.0), 3)
    0.046
    """
    low, high = 0.0, 1.0 - SMALLEST_PVALUE
    ends = interval(high)
    if not ends[0] <= value <= ends[1]:
        return high
    # Relative to the p-value, so that small ones keep their digits.
    while high - low > tolerance * (1.0 - low):
        middle = 0.5 * (low + high)
        ends = interval(middle)
        if ends[0] <= value <= ends[1]:
            high = middle
        else:
            low = middle
    return low


def probability_lowest(quantiles: FloatArray, probabilities: FloatArray) -> FloatArray:
    """Return the chance that each of K independent quantities is the lowest.

    Parameters
    ----------
    quantiles : ndarray, shape (K, P)
        Quantiles of each quantity, not falling along the second axis.
    probabilities : ndarray, shape (P,)
        Their probabilities, increasing.

    Returns
    -------
    ndarray, shape (K,)
        Sums to 1; by integrating over equal slices of each quantity's own distribution.

    >>> q = np.array([[0., 1., 2.], [0., 1., 2.], [5., 6., 7.]])
    >>> probability_lowest(q, np.array([0.0, 0.5, 1.0])).round(3)
    array([0.5, 0.5, 0. ])
    """
    # Midpoints of 400 equal slices of each quantity's own distribution.
    slices = (np.arange(400) + 0.5) / 400
    draws = np.array([np.interp(slices, probabilities, q) for q in quantiles])
    chance = np.empty(len(quantiles))
    for k, own in enumerate(draws):
        others = np.delete(draws, k, axis=0)
        # Half of a tie counts as a win, so that identical quantities share the chance.
        above = [1.0 - 0.5 * (np.searchsorted(o, own, "left") + np.searchsorted(o, own, "right")) / 400 for o in others]
        chance[k] = np.prod(above, axis=0).mean() if above else 1.0
    total = chance.sum()
    return chance / total if total > 0 else chance


def paired_t_test(a: FloatArray, b: FloatArray) -> float:
    """Return the two-sided p-value that a and b, paired, have the same mean; NaN with fewer than two pairs."""
    d = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
    if len(d) < 2:
        return float("nan")
    spread = d.std(ddof=1) / np.sqrt(len(d))
    if spread == 0:
        return 1.0 if d.mean() == 0 else 0.0
    return float(2.0 * stdtr(len(d) - 1, -abs(d.mean() / spread)))


Evaluate: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray, FloatArray]]
"""From points x, shape (T,), to a quantity there: centre, low and high, shape (T,) each."""


def crossing_interval(evaluate: Evaluate, grid: FloatArray) -> tuple[float, float]:
    """The points around the first crossing at which zero is not ruled out.

    The quantity is positive before the crossing and negative after it, as an error above its target
    is; its centre must lie inside its interval. Ends are found by Brent's method in log x.

    Parameters
    ----------
    evaluate : callable
        The quantity with its interval.
    grid : ndarray, shape (G,)
        Positive, increasing points to look at.

    Returns
    -------
    low, high : float
        0 or infinity where the stretch runs out of the grid; both infinite (both 0) if the whole
        interval stays above (below) zero.

    >>> line = lambda x: (2 - x, 1.5 - x, 2.5 - x)
    >>> [round(v, 6) for v in crossing_interval(line, np.array([1.0, 2.0, 3.0, 4.0]))]
    [1.5, 2.5]
    """
    x: list[float] = np.log(grid).tolist()
    centre, low, high = evaluate(grid)
    values = zip(centre.tolist(), low.tolist(), high.tolist(), strict=True)
    known = dict(zip(x, values, strict=True))
    inside = (low <= 0) & (high >= 0)
    after = np.flatnonzero(centre <= 0)

    def at(place: float) -> tuple[float, float, float]:
        if place not in known:
            a, b, c = (float(v[0]) for v in evaluate(np.exp([place])))
            known[place] = (a, b, c)
        return known[place]

    def outside_by(place: float) -> float:
        _, a, b = at(place)
        return float(np.maximum(a, -b))

    def end(along: NDArray[np.intp], start: Callable[[], float], without: float) -> float:
        """Return where the stretch ends that leads from a start along grid points, or ``without``."""
        outside = np.flatnonzero(~inside[along])
        if len(outside) == 0:
            return without
        k = int(outside[0])
        return float(np.exp(_zero(outside_by, x[along[k - 1]] if k else start(), x[along[k]])))

    places = np.arange(len(grid))
    if len(after) == 0:
        return (end(places[::-1], lambda: x[-1], 0.0), np.inf) if inside[-1] else (np.inf, np.inf)
    first = int(after[0])
    if first == 0:
        return (0.0, end(places, lambda: x[0], np.inf)) if inside[0] else (0.0, 0.0)

    def root() -> float:
        return _zero(lambda place: at(place)[0], x[first], x[first - 1])

    return end(places[:first][::-1], root, 0.0), end(places[first:], root, np.inf)


def first_crossing(grid: FloatArray, values: FloatArray) -> float:
    """Return where values come down to zero first, by a line between grid points; inf if they never do.

    >>> first_crossing(np.array([1.0, 2.0, 4.0]), np.array([2.0, 1.0, -1.0]))
    3.0
    """
    after = np.flatnonzero(values <= 0)
    if len(after) == 0:
        return float("inf")
    i = int(after[0])
    if i == 0:
        return 0.0
    share = values[i - 1] / (values[i - 1] - values[i])
    return float(grid[i - 1] + share * (grid[i] - grid[i - 1]))


def _zero(above_by: Callable[[float], float], below: float, above: float) -> float:
    """Find where a quantity is zero between a point where it is not above and one where it is.

    NaN counts as above.
    """
    from scipy.optimize import brentq

    def value(place: float) -> float:
        found = float(above_by(place))
        return float("inf") if np.isnan(found) else found

    if value(below) > 0:  # by rounding, where an interval has no width
        return below
    if value(above) <= 0:
        return above
    return float(brentq(value, below, above, xtol=1e-10, maxiter=1000))


def satterthwaite(variance: float, parts: FloatArray, degrees: FloatArray) -> float:
    """Return degrees of freedom of a variance that is a sum of parts."""
    spread = float((parts**2 / degrees).sum())
    return min(variance**2 / spread, KNOWN) if spread > 0 else KNOWN


def variance_degrees(deviations: FloatArray, degrees: float) -> float:
    """Return the degrees of freedom of an estimated variance, fewer than ``degrees`` where tails are heavy.

    The relative variance of a variance of n values is κ/n + 2/(n − 1), κ being their excess kurtosis, and that of a χ²
    with d degrees of freedom is 2/d.

    >>> rare = np.array([1.0] * 5 + [0.0] * 95)
    >>> round(variance_degrees(rare - rare.mean(), 99))
    11
    """
    n, spread = len(deviations), float((deviations**2).mean())
    if n <= 3 or spread == 0:
        return degrees
    plain = float((deviations**4).mean()) / spread**2 - 3
    # Corrected for bias as of one sample (Joanes and Gill 1998).
    kurtosis = ((n + 1) * plain + 6) * (n - 1) / ((n - 2) * (n - 3))
    return 2 / (max(0.0, kurtosis) / n + 2 / degrees)


@dataclass(frozen=True)
class SampledMean:
    """Number with the variance of its error, made of parts that are known more or less well.

    Attributes
    ----------
    value : float
        The number.
    variance : float
        Variance of its error; NaN if it is not known.
    parts : tuple of (float, float)
        Variances that make it up, with their degrees of freedom.
    within : SampledMean, optional
        The same number with fewer sources of error: intervals are not narrower, nor p-values smaller, than its own.
    """

    value: float
    variance: float
    parts: tuple[tuple[float, float], ...] = ()
    within: SampledMean | None = None

    def quantile(self, p: float) -> float:
        """Return how far out, in standard errors, the error lies with probability ``p``."""
        own = self._own_quantile(p)
        if (scale := self._scale_within) is None or self.within is None:
            return own
        least = self.within.quantile(p) / scale
        return max(own, least) if p > 0.5 else min(own, least)

    def _own_quantile(self, p: float) -> float:
        """Return the quantile by the parts alone.

        Student's t with Satterthwaite's degrees of freedom. That fails if a part from two to four runs
        happens to come out small, and the others then pretend to know it: there, the mean of the parts' own
        quantiles weighted by the parts (Cochran and Cox).
        """
        if self._few:
            weights, degrees = self._arrays
            return float(weights @ stdtrit(degrees, p) / weights.sum())
        return float(stdtrit(self.degrees, p))

    def draw(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw values that the truth may have: each part with its own t."""
        weights, degrees = self._arrays
        errors = [math.sqrt(w) * rng.standard_t(min(df, 1e6), size) for w, df in zip(weights, degrees, strict=True)]
        scale = math.sqrt(self.variance / weights.sum())
        drawn: FloatArray = self.value + scale * np.sum(errors, axis=0)
        return drawn

    @property
    def _arrays(self) -> tuple[FloatArray, FloatArray]:
        # Parts that came out 0 have no say in the quantile; without any the error is taken as normal.
        known = [(v, df) for v, df in self.parts if v > 0] or [(1.0, KNOWN)]
        weights, degrees = (np.array(x, dtype=float) for x in zip(*known, strict=True))
        return weights, degrees

    @property
    def _scale_within(self) -> float | None:
        """Standard error in those of ``within``; None where that is not given or not known.

        A part that is known well, such as that of the examples, makes the degrees of freedom of the sum larger than
        those of the runs alone, so that the interval could be narrower although its variance is larger.
        """
        if self.within is None or not self.within.variance > 0:
            return None
        return math.sqrt(self.variance / self.within.variance)

    @property
    def _few(self) -> bool:
        return min((df for _, df in self.parts), default=KNOWN) < FEW - 1

    @property
    def degrees(self) -> float:
        """Satterthwaite's degrees of freedom of the variance."""
        weights, degrees = self._arrays
        return satterthwaite(float(weights.sum()), weights, degrees)

    def interval(self, level: float, most: float = math.inf) -> Interval:
        """Return the interval, within ±``most``; NaN limits if the variance is not known."""
        if math.isnan(self.variance):
            return Interval(self.value, math.nan, math.nan, level)
        half = self.quantile((1 + level) / 2) * math.sqrt(self.variance)
        return Interval(self.value, max(-most, self.value - half), min(most, self.value + half), level)

    def tail(self, limit: float, above: bool = True) -> float:
        """Return a one-sided p-value: how often so large a value, if the truth were ``limit`` or less.

        With ``above=False``, how often so small a one if it were ``limit`` or more.
        """
        if math.isnan(self.variance):
            return math.nan
        gap = (self.value - limit) * (1 if above else -1)
        # Without any error the sign of the gap decides; a tie is left to chance.
        if self.variance == 0:
            return 0.5 if gap == 0 else float(gap < 0)
        # Always the lower tail: 1 − p of an upper one would lose the digits of small p-values.
        far = gap / math.sqrt(self.variance)
        return self._below(-far) if far > 0 else 1 - self._below(far)

    def _below(self, z: float) -> float:
        """Return the probability whose quantile is ``z``, which is below 0."""
        own = self._own_below(z)
        if (scale := self._scale_within) is None or self.within is None:
            return own
        return max(own, self.within._below(z * scale))

    def _own_below(self, z: float) -> float:
        if not self._few:
            return float(stdtr(self.degrees, z))
        # A mean of quantile functions: the probability lies between those of the parts alone.
        ends = stdtr(self._arrays[1], z)
        if ends.min() <= 1e-300:
            return float(ends.min())
        low, high = math.log(ends.min()), math.log(ends.max())
        # Bisection on the logarithm, so that tiny probabilities keep their relative precision.
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self._own_quantile(math.exp(middle)) < z else (low, middle)
        return math.exp(high)

    @property
    def pvalue(self) -> float:
        """Two-sided p-value against 0."""
        one = self.tail(0.0, above=self.value > 0)
        return one if math.isnan(one) else min(1.0, 2 * one)


def both_sampled(
    value: float, runs: Sequence[tuple[float, float]], examples: tuple[float, float], twice: float
) -> SampledMean:
    """Combine the sampling of runs and of examples; ``twice`` is the variance that both parts count.

    ``runs`` and ``examples`` are variances with their degrees of freedom.
    """
    by_example, degrees = examples
    by_run = sum(v for v, _ in runs)
    # Var = V_run/R + V_example/n − V_interaction/(Rn): the last is in both of the first two.
    variance = max(by_run, by_example, by_run + by_example - twice)
    return SampledMean(value, variance, (*runs, (max(0.0, by_example - twice), degrees)))


# Rates: intervals and tests of 0/1 scores and of means between 0 and 1. An interval here never has zero width: five
# right answers of five do not show that all would be right.

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
    return score_interval(np.asarray(mean, dtype=np.float64), float(ndtri((1 + level) / 2)) ** 2 / np.asarray(n))


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
    return score_interval(m, np.where(capped, np.minimum(spread, z**2 / clusters), spread))


def score_interval(mean: FloatArray, spread: FloatArray) -> tuple[FloatArray, FloatArray]:
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
