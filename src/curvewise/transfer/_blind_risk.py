"""A mean of the losses of examples, and how sure it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, entr, stdtrit

from curvewise.stats import cluster_degrees, cluster_variance
from curvewise.types import FloatArray, Interval


@dataclass(frozen=True)
class Mean:
    """A weighted mean with its standard error and interval; ``units`` were counted for it."""

    interval: Interval
    std: float
    units: int


def mean_loss(
    losses: FloatArray,
    weights: FloatArray,
    groups: NDArray[Any] | None,
    level: float,
    *,
    bounded: bool,
    rivals: int = 1,
    optimism: Callable[[float, int], float] | None = None,
    entropy: bool = False,
) -> Mean:
    """Mean of the losses of examples; an example, or a group of them, is what was drawn.

    Parameters
    ----------
    losses, weights : ndarray, shape (examples,)
        Without those that have no target.
    groups : ndarray, shape (examples,), optional
        Examples that belong together.
    bounded : bool
        Whether losses lie between 0 and 1: then the interval is Wilson's, for as many examples as
        would have this standard error, else Student's with Hall's correction for skewness.
    rivals : int
        From how many constants that cannot be told apart the best was chosen on the same examples;
        the upper end allows for it (Bonferroni, with the exact binomial interval).
    optimism : callable, optional
        By how much the mean may be low, of the mean and the number of units; the upper end allows
        for it.
    entropy : bool
        Whether this is the entropy of frequencies on the same examples, see :func:`_of_entropy`.
    """
    total = weights.sum()
    mean = float((weights * losses).sum() / total)
    kept = losses - mean
    parts = weights * kept if groups is None else _sums(weights * kept, groups)
    sizes = weights if groups is None else _sums(weights, groups)
    parts, sizes = parts[sizes > 0], sizes[sizes > 0]
    units = len(parts)
    if units < 2:
        return Mean(Interval(mean, np.nan, np.nan, level), float("nan"), units)
    std = float(np.sqrt(cluster_variance(parts, sizes)))
    tail = 0.5 * (1.0 - level)
    quantile = float(-stdtrit(cluster_degrees(sizes), tail))
    if bounded:
        low, high = _wilson(mean, std, units, quantile)
        high = high if rivals == 1 else max(high, _exact_high(mean, std, units, tail / rivals))
    else:
        low, high = _skewed(mean, std, parts, quantile)
        low = max(low, 0.0) if losses.min() >= 0 else low
    high += 0.0 if optimism is None else optimism(mean, units)
    high = min(high, 1.0) if bounded else high
    if entropy:
        low, high = _of_entropy(mean, (low, high), units, quantile, tail)
    return Mean(Interval(mean, low, high, level), std, units)


def _skewed(mean: float, std: float, parts: FloatArray, quantile: float) -> tuple[float, float]:
    """Ends for a mean of skewed parts, by the monotone transformation of Hall 1992."""
    n, deviation = len(parts), float(parts.std())
    skew = float(((parts - parts.mean()) ** 3).mean()) / deviation**3 if deviation > 0 else 0.0
    if abs(skew) < 1e-6:
        return mean - quantile * std, mean + quantile * std
    y = np.array([quantile, -quantile]) / np.sqrt(n) - skew / (6.0 * n)
    away = (3.0 / skew) * (np.cbrt(1.0 + skew * y) - 1.0)
    low, high = mean - std * np.sqrt(n) * away
    return float(min(low, mean)), float(max(high, mean))


def _of_entropy(
    mean: float, ends: tuple[float, float], units: int, quantile: float, tail: float
) -> tuple[float, float]:
    """Ends of an entropy, which is flat where frequencies are alike.

    Losses are then nearly the same, and their spread says nothing of how far other frequencies,
    no less likely, would be below: to second order by half a squared quantile over the number of
    units. Where only one class was seen, a second so rare that it may well be missing is allowed
    for.
    """
    low, high = max(0.0, ends[0] - quantile**2 / (2.0 * units)), ends[1]
    unseen = -np.expm1(np.log(tail) / units)
    return low, high if mean > 0 else max(high, float(entr(unseen) + entr(1.0 - unseen)))


def _exact_high(share: float, std: float, units: int, tail: float) -> float:
    """Upper end of a share by the binomial distribution itself, which its tails need."""
    n = effective_examples(share, std, units)
    kept = (1.0 - share) * n
    return float(1.0 - betaincinv(kept, n - kept + 1.0, tail)) if kept > 0 else 1.0


def _sums(values: FloatArray, groups: NDArray[Any]) -> FloatArray:
    _, code = np.unique(groups, return_inverse=True)
    return np.bincount(code, weights=values).astype(np.float64)


def effective_examples(share: float, std: float, units: int) -> float:
    """How many independent draws of 0 or 1 would have this standard error."""
    return share * (1.0 - share) / std**2 if std > 0 else float(units)


def _wilson(share: float, std: float, units: int, quantile: float) -> tuple[float, float]:
    n = effective_examples(share, std, units)
    z2 = quantile**2 / n
    centre = (share + 0.5 * z2) / (1.0 + z2)
    half = np.sqrt(quantile**2 * share * (1.0 - share) / n + 0.25 * z2**2) / (1.0 + z2)
    return float(max(0.0, min(share, centre - half))), float(min(1.0, max(share, centre + half)))
