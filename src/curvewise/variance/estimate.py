"""A number whose error has several sources, some of them known from a few runs only."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from curvewise.types import FloatArray, Interval
from curvewise.variance.anova import Split, sampled_variance, satterthwaite
from curvewise.variance.tails import FEWEST
from curvewise.variance.totals import Totals

MANY = 1e9
"""Degrees of freedom of a variance that is known."""


@dataclass(frozen=True)
class Estimate:
    """A number with the variance of its error, made of parts that are known more or less well.

    Attributes
    ----------
    value : float
        The number.
    variance : float
        Of its error; NaN where it is not known.
    parts : tuple of (float, float)
        Variances that make it up, with their degrees of freedom.
    """

    value: float
    variance: float
    parts: tuple[tuple[float, float], ...] = ()

    def quantile(self, p: float) -> float:
        """How far out, in standard errors, the error lies with probability ``p``.

        Student's t with Satterthwaite's degrees of freedom. That fails where a part that two to
        four runs make happens to come out small, and the others then pretend to know it: there,
        the mean of the parts' own quantiles weighted by the parts (Cochran and Cox).
        """
        if self._few:
            weights, degrees = self._arrays
            return float(weights @ stdtrit(degrees, p) / weights.sum())
        return float(stdtrit(self.degrees, p))

    def draw(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Values that the truth may have, by what is left open: each part with its own t."""
        weights, degrees = self._arrays
        errors = [
            math.sqrt(w) * rng.standard_t(min(df, 1e6), size)
            for w, df in zip(weights, degrees, strict=True)
        ]
        scale = math.sqrt(self.variance / weights.sum())
        drawn: FloatArray = self.value + scale * np.sum(errors, axis=0)
        return drawn

    @property
    def _arrays(self) -> tuple[FloatArray, FloatArray]:
        known = [(v, df) for v, df in self.parts if v > 0] or [(1.0, MANY)]
        weights, degrees = (np.array(x, dtype=float) for x in zip(*known, strict=True))
        return weights, degrees

    @property
    def _few(self) -> bool:
        return min((df for _, df in self.parts), default=MANY) < FEWEST - 1

    @property
    def degrees(self) -> float:
        """Satterthwaite's degrees of freedom of the variance."""
        weights, degrees = self._arrays
        return min(MANY, satterthwaite(float(weights.sum()), weights, degrees))

    def interval(self, level: float, most: float = math.inf) -> Interval:
        """The interval, within ±``most``; unknown limits where the variance is not known."""
        if math.isnan(self.variance):
            return Interval(self.value, math.nan, math.nan, level)
        half = self.quantile((1 + level) / 2) * math.sqrt(self.variance)
        return Interval(
            self.value, max(-most, self.value - half), min(most, self.value + half), level
        )

    def tail(self, limit: float, above: bool = True) -> float:
        """One-sided p-value: how often so large a value, if the truth were ``limit`` or less.

        With ``above=False``, how often so small a one if it were ``limit`` or more.
        """
        if math.isnan(self.variance):
            return math.nan
        gap = (self.value - limit) * (1 if above else -1)
        if self.variance == 0:
            return 0.5 if gap == 0 else float(gap < 0)
        far = gap / math.sqrt(self.variance)
        return self._below(-far) if far > 0 else 1 - self._below(far)

    def _below(self, z: float) -> float:
        """The probability whose quantile is ``z``, which is below 0."""
        if not self._few:
            return float(stdtr(self.degrees, z))
        # A mean of quantile functions: the probability lies between those of the parts alone.
        ends = stdtr(self._arrays[1], z)
        if ends.min() <= 1e-300:
            return float(ends.min())
        low, high = math.log(ends.min()), math.log(ends.max())
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self.quantile(math.exp(middle)) < z else (low, middle)
        return math.exp(high)

    @property
    def pvalue(self) -> float:
        """Two-sided, against 0."""
        one = self.tail(0.0, above=self.value > 0)
        return one if math.isnan(one) else min(1.0, 2 * one)


def both_sampled(
    value: float,
    runs: list[tuple[float, int]],
    examples: tuple[float, float],
    twice: float,
) -> Estimate:
    """Runs and examples both sampled; ``twice`` is what both parts count.

    ``runs`` and ``examples`` are variances with their degrees of freedom.
    """
    by_example, degrees = examples
    by_run = sum(v for v, _ in runs)
    variance = max(by_run, by_example, by_run + by_example - twice)
    rest = max(0.0, by_example - twice)
    return Estimate(value, variance, (*runs, (rest, degrees)))


def mean_interval(totals: Totals, split: Split, level: float) -> Interval:
    """Mean error on the distribution, runs and examples both counted as sampled."""
    by_run = split.test_set / split.runs
    shown = totals.example != np.round(totals.example.mean())  # neither always right nor wrong
    if totals.unit != "fraction":
        shown[:] = True
    found = both_sampled(
        float(totals.run.mean()),
        [(by_run, split.runs - 1)],
        sampled_variance(totals.example, totals.groups, shown),
        split.noise / split.runs,
    ).interval(level)
    if totals.unit != "fraction":
        return found
    return Interval(found.estimate, max(0.0, found.low), min(1.0, found.high), level)
