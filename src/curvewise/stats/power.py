"""Power of tests: of a difference whose variance has parts that more runs, or more examples, make smaller."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from scipy.special import fdtrc, fdtri, nctdtr, ndtr, ndtri, stdtrit

from curvewise.stats.intervals import SampledMean

NORMAL_FROM = 1e6
"""Degrees of freedom from which t is taken as normal."""


@dataclass(frozen=True)
class DifferencePower:
    """Power of the t test for the difference of two trainings.

    Attributes
    ----------
    run_parts : tuple of float
        Variances between runs that add up in a difference: of a and of b, or of the differences
        of paired runs. They shrink with the number of runs.
    example_part : float
        Variance between examples of the difference of error rates; shrinks with examples only.
    noise : float
        Part of the sum of ``run_parts`` that shrinks with examples as well.
    examples : float
        Size of the test set.
    level : float
        Coverage of the interval that goes with the test.
    """

    run_parts: tuple[float, ...]
    example_part: float
    noise: float
    examples: float
    level: float

    def variance(self, runs: float, examples: float | None = None) -> float:
        """Variance of the estimated difference."""
        n = self.examples if examples is None else examples
        between = sum(self.run_parts)
        # More examples average out the noise of runs, but not the difference between them.
        if self.noise:
            between += self.noise * (self.examples / n - 1)
        return between / runs + (self.example_part / n if self.example_part else 0.0)

    def estimate(self, runs: float, examples: float | None = None) -> SampledMean:
        """Return the comparison's estimate of that variance: its parts and degrees of freedom."""
        n = self.examples if examples is None else examples
        parts = tuple((v / runs, runs - 1.0) for v in self.run_parts)
        here = SampledMean(0.0, sum(v for v, _ in parts), parts)
        if not self.example_part:
            return here
        by_example = self.example_part / n
        return SampledMean(0.0, here.variance + by_example, (*parts, (by_example, n - 1.0)), within=here)

    def half_width(self, runs: float) -> float:
        """Half the expected width of the interval."""
        return self.estimate(runs).quantile((1 + self.level) / 2) * self.standard_error(runs)

    def standard_error(self, runs: float) -> float:
        """Return the standard error of the estimated difference."""
        return math.sqrt(self.variance(runs))

    def power(self, gap: float, runs: float, examples: float | None = None) -> float:
        """Chance that a true difference ``gap`` is found significant."""
        variance = self.variance(runs, examples)
        if variance == 0:
            return 1.0 if gap else 1 - self.level
        known = self.estimate(runs, examples)
        critical = known.quantile((1 + self.level) / 2)
        return t_power(gap / math.sqrt(variance), known.degrees, self.level, critical)

    def detectable(self, power: float, runs: float) -> float:
        """The difference that is found with this power."""
        error = self.standard_error(runs)
        return error * crossing(lambda x: self.power(x * error, runs) - power, 1.0) if error else 0.0

    def examples_needed(self, gap: float, power: float, runs: int) -> int | None:
        """The fewest examples with which so many runs would do; None if none would."""

        def missing(n: float) -> float:
            return self.power(gap, runs, n) - power

        return None if missing(1e15) < 0 else math.ceil(crossing(missing, self.examples) * (1 - 1e-9))


@dataclass(frozen=True)
class VariancePower:
    """Chance that the F interval of the standard deviation of true error lies above 0.

    Attributes
    ----------
    noise : float
        Variance of test error that independent errors alone give.
    std : float
        The standard deviation of true error that is asked about.
    examples : float
        Size of the test set.
    level : float
        Coverage of the interval, whose lower end is that of a one-sided test at half of the rest.
    """

    noise: float
    std: float
    examples: float
    level: float

    def power(self, std: float, runs: float) -> float:
        """Chance that the lower end of the interval is above 0."""
        one, two = runs - 1, (runs - 1) * (self.examples - 1)
        limit = float(fdtri(one, two, (1 + self.level) / 2))
        return float(fdtrc(one, two, limit / (1 + std**2 / self.noise)))

    def detectable(self, power: float, runs: float) -> float:
        """Return the standard deviation that differs significantly from 0 with this power."""
        scale = math.sqrt(self.noise)
        return scale * crossing(lambda x: self.power(x * scale, runs) - power, 1.0)

    def standard_error(self, runs: float) -> float:
        """Return the standard error of the estimated standard deviation, to first order."""
        return math.sqrt(2 / (runs - 1)) * (self.std**2 + self.noise) / (2 * self.std)

    def half_width(self, runs: float) -> float:
        """Half the width of its interval, to first order."""
        return float(ndtri((1 + self.level) / 2)) * self.standard_error(runs)


def t_power(shift: float, degrees: float, level: float, critical: float | None = None) -> float:
    """Power of a two-sided t test whose statistic is shifted by ``shift`` standard errors.

    ``critical`` is what the statistic must exceed, where that is not the quantile of t.

    >>> round(t_power(2.0, 10, 0.95), 4), round(t_power(0.0, 10, 0.95), 4)
    (0.4396, 0.05)
    """
    # There t is normal to all digits that matter.
    if degrees > NORMAL_FROM:
        z = float(ndtri((1 + level) / 2))
        return float(ndtr(abs(shift) - z) + ndtr(-abs(shift) - z))
    t = float(stdtrit(degrees, (1 + level) / 2)) if critical is None else critical
    # Both tails: with small effects a test may also reject on the wrong side.
    above = 1 - float(nctdtr(degrees, abs(shift), t))
    return min(1.0, above + float(nctdtr(degrees, abs(shift), -t)))


def crossing(rising: Callable[[float], float], start: float) -> float:
    """Return where a rising function of a positive number passes 0; infinite if it does not."""
    low = high = start
    while rising(high) < 0:
        low, high = high, 4 * high
        if high > 1e30:
            return math.inf
    while rising(low) >= 0:
        low, high = low / 4, low
        if low < 1e-30:
            return 0.0
    # Geometric bisection: effects and sizes span many orders of magnitude.
    for _ in range(80):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if rising(middle) >= 0 else (middle, high)
    return high
