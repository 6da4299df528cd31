"""Two-way analysis of variance, runs × examples: point estimates and the F interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, chdtri, fdtri, stdtrit

from curvewise.stats import cluster_degrees, cluster_variance
from curvewise.types import FloatArray, Interval
from curvewise.variance.totals import Totals


@dataclass(frozen=True)
class Split:
    """Where the variance between the test errors of runs comes from.

    Attributes
    ----------
    test_set : float
        Variance of the test error between runs, ddof 1.
    independent : float
        What of it there would be if examples (or groups of them) varied independently.
    noise : float
        What the finite test set adds to the variance of true error.
    distribution : float
        Variance of true error between runs: unbiased, so it may be negative.
    example : float
        Variance between examples of the chance of an error: how much they differ in difficulty.
    interaction : float
        Variance of a cell beyond its run and its example; with repeats, without their noise.
    repeat : float
        Variance between repeats in a cell; NaN without repeats.
    runs, units : float
        Degrees of freedom are ``runs − 1`` and ``(runs − 1)(units − 1)``. Groups of unequal size
        count for as many equal ones as carry the same weight.
    """

    test_set: float
    independent: float
    noise: float
    distribution: float
    example: float
    interaction: float
    repeat: float
    runs: int
    units: float

    @property
    def ratio(self) -> float:
        """F: the test-set variance over what noise alone would give."""
        if self.noise > 0:
            return self.test_set / self.noise
        return math.inf if self.test_set > 0 else math.nan

    @property
    def degrees(self) -> tuple[float, float]:
        """Degrees of freedom of :attr:`ratio`."""
        return self.runs - 1, (self.runs - 1) * (self.units - 1)

    @property
    def q(self) -> float:
        """Cochran's Q, which is χ² with ``runs − 1`` degrees of freedom under independence."""
        if self.independent == 0:
            return 0.0
        return (self.runs - 1) * self.test_set / self.independent

    @property
    def independence_pvalue(self) -> float:
        """Of Cochran's Q: how often independent errors would vary as much as this."""
        return float(chdtrc(self.runs - 1, self.q))


def split_variance(totals: Totals) -> Split:
    """Split the variance between runs, from totals."""
    runs, n, c = totals.runs, totals.examples, totals.concentration
    # Runs that do not differ must not do so by the rounding of their mean.
    test_set = float(np.var(totals.run, ddof=1)) if np.ptp(totals.run) else 0.0
    noise = max(0.0, (totals.noise - c * test_set) / (1 - c))
    residual = max(0.0, (totals.cell_variance - test_set) * n / (n - 1))
    repeat = totals.repeat_variance
    return Split(
        test_set=test_set,
        independent=totals.noise,
        noise=noise,
        distribution=(test_set - totals.noise) / (1 - c),
        example=float(np.var(totals.example, ddof=1)) - residual / runs,
        interaction=residual - (0.0 if math.isnan(repeat) else repeat / totals.repeats),
        repeat=repeat,
        runs=runs,
        units=1 / c,
    )


def f_quantiles(split: Split, level: float) -> tuple[float, float]:
    """The lower and upper quantile of F for an interval of this level."""
    tail = (1 - level) / 2
    one, two = split.degrees
    return float(fdtri(one, two, tail)), float(fdtri(one, two, 1 - tail))


def f_interval(split: Split, level: float) -> tuple[float, float]:
    """Limits of the distribution-wise variance for normal run effects."""
    low, high = f_quantiles(split, level)
    limits = [max(0.0, split.test_set / q - split.noise) for q in (high, low)]
    return limits[0], limits[1]


def share_interval(
    split: Split, level: float, limits: tuple[float, float] | None = None
) -> Interval:
    """The share of the test-set variance that is real: Cronbach's α, between 0 and 1.

    Feldt's interval, or from ``limits`` of the distribution-wise variance where these were not
    made by F.
    """
    if split.test_set == 0:
        return Interval(math.nan, 0.0, 1.0, level)
    if limits is None:
        low, high = f_quantiles(split, level)
        ends = [min(1.0, max(0.0, 1 - q / split.ratio)) for q in (high, low)]
    else:
        ends = [v / (v + split.noise) if v + split.noise > 0 else 1.0 for v in limits]
    share = min(1.0, max(0.0, split.distribution / split.test_set))
    return Interval(share, ends[0], ends[1], level)


MOST = {"fraction": 0.5}
"""The largest standard deviation there can be, by unit: that of 0 and 1 with equal chances."""


def std_interval(std: float, low: float, high: float, level: float, unit: str) -> Interval:
    """A standard deviation with its limits, which end at the largest there can be."""
    most = max(MOST.get(unit, math.inf), std)  # of two or three runs a sample may have more
    return Interval(std, min(low, most), min(high, most), level)


def normal_std(variance: float, degrees: float, level: float, unit: str) -> Interval:
    """A standard deviation of normal values, by χ²."""
    tail = (1 - level) / 2
    low, high = (math.sqrt(variance * degrees / chdtri(degrees, p)) for p in (tail, 1 - tail))
    return std_interval(math.sqrt(variance), low, high, level, unit)


def example_variance(
    values: FloatArray, groups: NDArray[np.int64] | None = None
) -> tuple[float, float]:
    """Variance of a mean over sampled examples (or groups of them), and its degrees of freedom.

    Without groups each example is a cluster of one.
    """
    deviation = values - values.mean()
    if groups is None:
        n = len(values)
        return float((deviation**2).sum()) / (n * (n - 1)), n - 1.0
    totals, sizes = np.bincount(groups, weights=deviation), np.bincount(groups)
    return float(cluster_variance(totals, sizes)), cluster_degrees(sizes)


FEW_UNITS = 4
"""Where fewer examples (or groups) than this show anything, more may be missing from the sample."""


def sampled_variance(
    values: FloatArray, groups: NDArray[np.int64] | None, shown: NDArray[np.bool_]
) -> tuple[float, float]:
    """As :func:`example_variance`, for 0/1 errors of which few examples show any.

    Where no example errs, or tells two trainings apart, one that does may be missing from the
    sample: the variance is then not less than that of two such units, one each way.
    """
    variance, degrees = example_variance(values, groups)
    seen = shown if groups is None else np.bincount(groups, weights=shown) > 0
    if np.count_nonzero(seen) >= FEW_UNITS:
        return variance, degrees
    units = len(values) if groups is None else len(np.unique(groups))
    return max(variance, 2 / (units + 2) ** 2), degrees


def satterthwaite(variance: float, parts: FloatArray, degrees: FloatArray) -> float:
    """Degrees of freedom of a variance that is a sum of parts."""
    spread = float((parts**2 / degrees).sum())
    return variance**2 / spread if spread > 0 else math.inf


def t_interval(
    estimate: float, variance: float, parts: FloatArray, degrees: FloatArray, level: float
) -> Interval:
    """A t interval whose variance is a sum of parts, each with its degrees of freedom."""
    df = satterthwaite(variance, parts, degrees)
    t = float(stdtrit(min(df, 1e9), (1 + level) / 2))
    half = t * math.sqrt(variance)
    return Interval(estimate, estimate - half, estimate + half, level)
