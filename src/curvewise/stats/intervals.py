"""Intervals of differences, of crossings and of means whose variance has several parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr, stdtrit

from curvewise.types.results import Interval
from curvewise.types.units import FloatArray

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
