"""Does one training vary more between runs than another: ratios of standard deviations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import fdtr, fdtrc

from curvewise.types import FloatArray, Interval, as_predictions
from curvewise.variance.anova import Split, split_variance
from curvewise.variance.decomposition import VarianceDecomposition
from curvewise.variance.totals import Totals, measure_totals

DRAWS = 20_000
"""Draws for the interval of a ratio of distribution-wise standard deviations."""


@dataclass(frozen=True)
class VarianceRatio:
    """Standard deviations between runs of a over those of b.

    Attributes
    ----------
    test_set : Interval
        Ratio of the standard deviations of test error.
    test_set_pvalue : float
        Two-sided, against equal variances, by F.
    distribution : Interval
        Ratio of the standard deviations of true error. The estimate is NaN where neither training
        shows any, infinite where only b shows none.
    distribution_pvalue : float
        Two-sided, against equal variances of true error.
    excess_kurtosis : float
        Of run errors, both trainings together, at the compatible ratio nearest to 1. Above 0 it
        widens the intervals.
    """

    test_set: Interval
    test_set_pvalue: float
    distribution: Interval
    distribution_pvalue: float
    excess_kurtosis: float


def variance_ratio(
    a: Split,
    b: Split,
    run_errors: tuple[FloatArray, FloatArray] | None = None,
    *,
    level: float = 0.95,
    draws: int = DRAWS,
    rng: int | np.random.Generator = 0,
) -> VarianceRatio:
    """Compare how much two trainings vary between runs.

    The test-set ratio has an F interval, with fewer degrees of freedom where run errors have
    heavier tails than normal ones: a ratio is in the interval unless Shoemaker's test (2003)
    rejects it, with the kurtosis pooled at that ratio and about trimmed means, as Bonett (2006)
    does. For the distribution both parts of each estimate, the variance between runs and the
    noise, are drawn from what the data leave open (scaled χ²: a generalised confidence interval),
    and negative variances count as 0.

    Parameters
    ----------
    a, b : Split
        Of two trainings with independent runs.
    run_errors : tuple of ndarray, optional
        Test error of each run of a and of b, to judge the tails; without them they count as
        normal.
    level : float
        Coverage of the intervals.
    draws : int
        For the ratio on the distribution.
    rng : int or Generator
        Determines the draws.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> quiet = rng.random((40, 500)) < 0.1
    >>> loud = rng.random((40, 500)) < rng.normal(0.1, 0.03, (40, 1))
    >>> a, b = (measure_split(errors, None, "errors")[1] for errors in (loud, quiet))
    >>> r = variance_ratio(a, b)
    >>> round(r.test_set.estimate, 2), r.test_set.low > 1, r.distribution_pvalue < 0.01
    (2.4, True, True)
    """
    tails = _Tails.normal() if run_errors is None else _Tails.of(*run_errors)
    test_set = _test_set_ratio(a, b, tails, level)
    nearest = min(max(1.0, test_set.low), max(1e-12, test_set.high))
    excess = tails.excess(nearest)
    generator = np.random.default_rng(rng)
    one, two = (_drawn(s, adjusted_degrees(s.runs, excess), draws, generator) for s in (a, b))
    low, high = _ratio_limits(one, two, level)
    estimate = math.sqrt(_over(max(0.0, a.distribution), max(0.0, b.distribution)))
    return VarianceRatio(
        test_set=test_set,
        test_set_pvalue=_pvalue_at(1.0, a, b, tails),
        distribution=Interval(estimate, low, high, level),
        distribution_pvalue=_sign_pvalue(one - two),
        excess_kurtosis=excess,
    )


def adjusted_degrees(runs: int, excess_kurtosis: float) -> float:
    """Degrees of freedom of a variance whose values have this excess kurtosis (0 if negative).

    >>> adjusted_degrees(10, 0.0), round(adjusted_degrees(10, 3.0), 1)
    (9.0, 3.8)
    """
    kurtosis = 3 + max(0.0, excess_kurtosis)
    return 2 * runs / (kurtosis - (runs - 3) / (runs - 1))


@dataclass(frozen=True)
class _Tails:
    """What a pooled kurtosis needs: sums of squares and fourth powers of two samples."""

    count: int
    squares: tuple[float, float]
    fourths: tuple[float, float]

    @classmethod
    def normal(cls) -> _Tails:
        return cls(0, (0.0, 0.0), (0.0, 0.0))

    @classmethod
    def of(cls, a: FloatArray, b: FloatArray) -> _Tails:
        squares = [float(((x - x.mean()) ** 2).sum()) for x in (a, b)]
        fourths = [float(((x - _trimmed_mean(x)) ** 4).sum()) for x in (a, b)]
        return cls(len(a) + len(b), (squares[0], squares[1]), (fourths[0], fourths[1]))

    def excess(self, ratio: float) -> float:
        """Excess kurtosis of both samples once a is divided by ``ratio``; at least 0."""
        square = self.squares[0] / ratio**2 + self.squares[1]
        if self.count == 0 or square == 0:
            return 0.0
        fourth = self.fourths[0] / ratio**4 + self.fourths[1]
        return max(0.0, self.count * fourth / square**2 - 3)


def _trimmed_mean(values: FloatArray) -> float:
    """A mean without the outer values, more of them the fewer there are."""
    n = len(values)
    cut = min((n - 1) // 2, int(n / (2 * math.sqrt(n - 4)))) if n > 4 else 0
    return float(np.sort(values)[cut : n - cut].mean())


def _pvalue_at(ratio: float, a: Split, b: Split, tails: _Tails) -> float:
    """Two-sided p-value against this ratio of the standard deviations of test error."""
    f = _over(a.test_set, b.test_set) / ratio**2
    if math.isnan(f):
        return 1.0
    if f in (0.0, math.inf):
        return 0.0
    one, two = (adjusted_degrees(s.runs, tails.excess(ratio)) for s in (a, b))
    return min(1.0, 2 * float(min(fdtr(one, two, f), fdtrc(one, two, f))))


def _test_set_ratio(a: Split, b: Split, tails: _Tails, level: float) -> Interval:
    """All ratios that are not rejected."""
    estimate = math.sqrt(_over(a.test_set, b.test_set))
    if not 0 < estimate < math.inf:
        return Interval(estimate, 0.0, math.inf, level)

    def limit(away: float) -> float:
        inside, outside = 0.0, 1.0  # in powers of e
        while _pvalue_at(estimate * math.exp(away * outside), a, b, tails) > 1 - level:
            inside, outside = outside, 2 * outside
            if outside > 500:
                return 0.0 if away < 0 else math.inf
        for _ in range(50):
            middle = (inside + outside) / 2
            accepted = _pvalue_at(estimate * math.exp(away * middle), a, b, tails) > 1 - level
            inside, outside = (middle, outside) if accepted else (inside, middle)
        return estimate * math.exp(away * inside)

    return Interval(estimate, limit(-1.0), limit(1.0), level)


def measure_split(
    given: Any, labels: ArrayLike | None, argument: str, **options: Any
) -> tuple[Totals, Split]:
    """Totals and variances of predictions, or those that a decomposition already holds."""
    if isinstance(given, VarianceDecomposition):
        return given._totals, given._split
    predictions = as_predictions(given, labels, argument=argument, **options)
    totals = measure_totals(predictions)
    return totals, split_variance(totals)


def _over(a: float, b: float) -> float:
    if b > 0:
        return a / b
    return math.inf if a > 0 else math.nan


def _drawn(split: Split, degrees: float, draws: int, rng: np.random.Generator) -> FloatArray:
    """Variances of true error that the data leave open; they may be negative."""
    total = split.test_set * degrees / rng.chisquare(degrees, draws)
    rest = split.degrees[1]
    noise = split.noise * rest / rng.chisquare(rest, draws)
    values: FloatArray = total - noise
    return values


def _ratio_limits(a: FloatArray, b: FloatArray, level: float) -> tuple[float, float]:
    """Limits of the root of a/b; 0/0 may be anything, and counts for both limits."""
    one, two = np.maximum(a, 0.0), np.maximum(b, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = one / two
    open_ended = (one == 0) & (two == 0)
    tail = (1 - level) / 2
    low = np.quantile(np.where(open_ended, 0.0, ratio), tail, method="lower")
    high = np.quantile(np.where(open_ended, np.inf, ratio), 1 - tail, method="higher")
    return math.sqrt(low), math.sqrt(high)


def _sign_pvalue(drawn: FloatArray) -> float:
    """How far the draws are on one side of 0: a generalised two-sided p-value."""
    below = (1 + int((drawn <= 0).sum())) / (1 + len(drawn))
    above = (1 + int((drawn >= 0).sum())) / (1 + len(drawn))
    return min(1.0, 2 * min(below, above))
