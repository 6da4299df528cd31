"""What people ask a learning curve: how much data for this error, and is it worth its price."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.learning.base import (
    EXTRAPOLATION_LIMIT,
    Curve,
    check_sizes_to_predict,
)
from curvewise.learning.units import bounds
from curvewise.stats import crossing_interval
from curvewise.tables import about, number
from curvewise.types import FloatArray, Result, Unit, check_level, data_frame

if TYPE_CHECKING:
    import pandas as pd

FARTHEST = 1e6
"""Sizes are searched up to this multiple of the largest one measured."""


@dataclass(frozen=True)
class SamplesToReach(Result):
    """How many samples it takes to reach an error.

    Attributes
    ----------
    learner : str
    error : float
        The target, in the unit of the fit.
    estimate : float
        Training size at which the curve reaches it; infinite if it never does.
    low, high : float
        Interval of that size: the sizes at which the target lies inside the interval of the curve.
    level : float
        Its coverage.
    probability_never : float
        Confidence that no amount of data is enough (the asymptote lies above the target); for the
        forms without an asymptote of their own, that a thousand times the data is not.
    kind : str
        "confidence" or "prediction".
    """

    learner: str
    error: float
    estimate: float
    low: float
    high: float
    level: float
    probability_never: float
    kind: str
    unit: Unit
    warnings: tuple[str, ...] = ()

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row: the target, the size, its interval, the probability of never."""
        return {
            "learner": [self.learner],
            "error": [self.error],
            "n": [self.estimate],
            "low": [self.low],
            "high": [self.high],
            "probability_never": [self.probability_never],
        }

    def summary(self) -> str:
        """One or two sentences."""
        target = f"{number(self.error)}{self.unit.suffix}"
        span = f"{self.level:.0%} {self.kind} interval {about(self.low)} to {about(self.high)}"
        if np.isinf(self.low):
            span = f"no size searched is in the {self.level:.0%} {self.kind} interval"
        if np.isnan(self.estimate):
            text = f"{self.learner}: no training size can be named for {target}."
        elif np.isinf(self.estimate):
            text = f"{self.learner}: the fitted curve never reaches {target} ({span})."
        else:
            size = about(self.estimate)
            text = (
                f"{self.learner}: the fitted curve reaches {target} at about n = {size} ({span})."
            )
        if np.isfinite(self.probability_never):
            doubt = "But the" if self.probability_never > 0.5 > np.isinf(self.estimate) else "The"
            text += f" {doubt} chance that it is never reached is {self.probability_never:.0%}."
        return " ".join([text, *(f"Beware: {w}" for w in self.warnings)])


def samples_to_reach(curve: Curve, error: float, *, level: float = 0.95) -> SamplesToReach:
    """Invert a curve and its band; see :meth:`Curve.samples_to_reach`."""
    check_level(level)
    target = float(curve._scale.points(float(curve.unit.errors(error, "error"))))
    estimate, low, high = _reach(curve, target, level)
    floor, _ = bounds(curve.unit, curve._data.mean)
    return SamplesToReach(
        learner=curve.learner,
        error=float(error),
        estimate=estimate,
        low=low,
        high=high,
        level=level,
        probability_never=1.0 if target <= floor else curve._probability_never(target),
        kind=curve.default_interval,
        unit=curve.unit,
        warnings=_reach_warnings(curve, target, estimate),
    )


def _reach(curve: Curve, target: float, level: float) -> tuple[float, float, float]:
    """Size at which the curve comes down to the target, and the sizes at which it may."""
    start = max(min(1.0, float(curve.n[0])), float(curve.n[0]) / 1e3)
    grid = np.geomspace(start, curve.largest_n * FARTHEST, 401)
    first, last = curve._likely_points(np.array([curve.n[0], curve.largest_n]))
    if last > first:
        # A rising curve comes up to a target, not down; no size can be named.
        return (np.nan, np.nan, np.nan) if first <= target else (np.inf, np.inf, np.inf)
    if target <= bounds(curve.unit, curve._data.mean)[0]:
        return np.inf, np.inf, np.inf

    def above(n: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        low, high = curve._band_points(n, level, curve.default_interval, np.inf)
        return curve._likely_points(n) - target, low - target, high - target

    low, high = crossing_interval(above, grid)
    if np.isinf(low) and above(np.array([1e3 * grid[-1]]))[1][0] <= 0:
        low = float(grid[-1])
    exact = _solve(curve._error_points, grid, target)
    if not low <= exact <= high:
        # The prior on γ pulls the fit out of its own interval: what the data alone say is inside.
        exact = float(np.clip(_solve(curve._likely_points, grid, target), low, high))
    return exact, low, high


def _solve(at: Callable[[FloatArray], FloatArray], grid: FloatArray, target: float) -> float:
    """First size at which a curve is at the target, by bisection in log n."""
    reached = np.flatnonzero(at(grid) <= target)
    if len(reached) == 0:
        return float("inf")
    if reached[0] == 0:
        return float(grid[0])
    low, high = np.log(grid[reached[0] - 1]), np.log(grid[reached[0]])
    for _ in range(50):
        middle = 0.5 * (low + high)
        below = float(at(np.exp([middle]))[0]) <= target
        low, high = (low, middle) if below else (middle, high)
    return float(np.exp(high))


def budget(
    curve: Curve, n: ArrayLike, *, cost_per_sample: float = 1.0, level: float = 0.95
) -> pd.DataFrame:
    """Tabulate what more data costs and brings; see :meth:`Curve.budget`.

    Returns
    -------
    DataFrame
        Columns n, samples added, cost, error, low, high (the interval of the error there), gain
        (how much better than at the largest size measured), its interval, and gain per unit of
        cost.
    """
    if not (np.isfinite(cost_per_sample) and cost_per_sample >= 0):
        raise InputError(f"cost_per_sample={cost_per_sample!r} must be a price, not negative.")
    sizes = check_sizes_to_predict(n)
    added = np.maximum(sizes - curve.largest_n, 0.0)
    band = curve.band(sizes, level=level, runs=np.inf)
    low, high = curve._gain_band(sizes, level)
    gain = (curve.error_at() - curve.errors_at(sizes)) * curve._scale.sign
    likely = curve._likely_points(np.append(sizes, curve.largest_n)) / curve._scale.factor
    outside = (gain < low) | (gain > high)  # pulled there by the prior on γ
    gain = np.where(outside, np.clip(likely[-1] - likely[:-1], low, high), gain)
    if curve.unit.bounded:  # no more can be gained than the error there is
        top = curve.interval_at(level=level).error.high
        low, gain, high = (np.clip(v, top - curve.unit.top, top) for v in (low, gain, high))
    cost = added * cost_per_sample
    per_cost = np.divide(gain, cost, out=np.full_like(gain, np.nan), where=cost > 0)
    table = {"n": sizes, "added": added, "cost": cost, **band, "gain": gain}
    return data_frame({**table, "gain_low": low, "gain_high": high, "gain_per_cost": per_cost})


def _reach_warnings(curve: Curve, target: float, estimate: float) -> tuple[str, ...]:
    limit = EXTRAPOLATION_LIMIT * curve.largest_n
    found = []
    if np.isnan(estimate):
        found.append("error rises with more data here: no size can be named")
    if limit < estimate < np.inf:
        found.append(
            f"this lies beyond n = {number(limit)}, four times the largest size measured, where the"
            " form of the curve is no longer supported by the data"
        )
    if target >= float(curve._data.mean.max()) and curve.unit.bounded:
        found.append(
            "every size measured is better than this already; targets are errors, so for an"
            f" accuracy of 95% ask for {0.05 * curve.unit.top:g}"
        )
    elif estimate < curve.n[0]:
        found.append("this lies below the smallest size measured")
    return tuple(f"{text}." for text in found)
