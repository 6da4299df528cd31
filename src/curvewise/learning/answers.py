"""What people ask a learning curve: how much data for this error, and is it worth its price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.learning.base import EXTRAPOLATION_LIMIT, Curve, check_level
from curvewise.tables import number
from curvewise.types import FloatArray, Result, Unit, data_frame

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
        if np.isinf(self.estimate):
            text = f"{self.learner}: the fitted curve never reaches {target}"
        else:
            text = f"{self.learner}: {target} is reached with about n = {number(self.estimate)}"
        text += (
            f" ({self.level:.0%} {self.kind} interval {number(self.low)} to {number(self.high)})."
        )
        if np.isfinite(self.probability_never):
            text += f" The chance that it is never reached is {self.probability_never:.0%}."
        return " ".join([text, *(f"Beware: {w}" for w in self.warnings)])


def samples_to_reach(curve: Curve, error: float, *, level: float = 0.95) -> SamplesToReach:
    """Invert a curve and its band; see :meth:`Curve.samples_to_reach`."""
    check_level(level)
    target = float(curve._scale.points(float(curve.unit.errors(error, "error"))))
    grid = _search_grid(curve)
    centre = curve._error_points(grid)
    low, high = _band(curve, grid, level)
    inside = (low <= target) & (target <= high)
    estimate = _crossing(
        grid, centre, target, lambda n: float(curve._error_points(np.array([n]))[0])
    )
    first, last = _hull(curve, grid, inside, target, level)
    if not inside.any() and np.isinf(estimate):
        first = last = np.inf
    return SamplesToReach(
        learner=curve.learner,
        error=float(error),
        estimate=estimate,
        low=first,
        high=last,
        level=level,
        probability_never=curve._probability_never(target),
        kind=curve.default_interval,
        unit=curve.unit,
        warnings=_reach_warnings(curve, estimate, first, last),
    )


def budget(
    curve: Curve, n: ArrayLike, *, cost_per_sample: float = 1.0, level: float = 0.95
) -> pd.DataFrame:
    """Tabulate what more data costs and brings; see :meth:`Curve.budget`.

    Returns
    -------
    DataFrame
        Columns n, samples added, cost, error, low, high (the interval of the error there), gain
        (how much better than at the largest size measured) and gain per unit of cost.
    """
    if not (np.isfinite(cost_per_sample) and cost_per_sample >= 0):
        raise InputError(f"cost_per_sample={cost_per_sample!r} must be a price, not negative.")
    sizes = np.atleast_1d(np.asarray(n, dtype=np.float64))
    if not (sizes > 0).all():
        raise InputError("n must hold positive training sizes.")
    added = np.maximum(sizes - curve.largest_n, 0.0)
    band = curve.band(sizes, level=level)
    now = curve.error_at()
    gain = (now - band["error"]) * curve._scale.sign
    cost = added * cost_per_sample
    per_cost = np.divide(gain, cost, out=np.full_like(gain, np.nan), where=cost > 0)
    return data_frame(
        {"n": sizes, "added": added, "cost": cost, **band, "gain": gain, "gain_per_cost": per_cost}
    )


def _search_grid(curve: Curve) -> FloatArray:
    start = np.log(max(min(1.0, float(curve.n[0])), curve.n[0] / 1e3))
    return np.exp(np.linspace(start, np.log(curve.largest_n * FARTHEST), 401))


def _band(curve: Curve, n: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    return curve._clip(*curve._band_points(n, level, curve.default_interval, np.inf))


def _crossing(grid: FloatArray, values: FloatArray, target: float, at: Any) -> float:
    """First size at which a curve comes down to the target, by bisection in log n."""
    below = values <= target
    if not below.any():
        return float("inf")
    first = int(np.argmax(below))
    if first == 0:
        return float(grid[0])
    low, high = np.log(grid[first - 1]), np.log(grid[first])
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if at(np.exp(middle)) <= target else (middle, high)
    return float(np.exp(high))


def _hull(
    curve: Curve, grid: FloatArray, inside: NDArray[np.bool_], target: float, level: float
) -> tuple[float, float]:
    """Smallest and largest size whose band holds the target, the ends refined by bisection."""
    if not inside.any():
        # The band steps over the target between two grid points: refine around the crossing.
        estimate = _crossing(
            grid,
            curve._error_points(grid),
            target,
            lambda n: float(curve._error_points(np.array([n]))[0]),
        )
        return estimate, estimate

    def holds(n: float) -> bool:
        low, high = _band(curve, np.array([n]), level)
        return bool(low[0] <= target <= high[0])

    def refine(inner: float, outer: float) -> float:
        a, b = np.log(inner), np.log(outer)
        for _ in range(24):
            middle = 0.5 * (a + b)
            a, b = (middle, b) if holds(float(np.exp(middle))) else (a, middle)
        return float(np.exp(a))

    first, last = int(np.argmax(inside)), len(inside) - 1 - int(np.argmax(inside[::-1]))
    low = refine(grid[first], grid[first - 1]) if first > 0 else float(grid[0])
    high = refine(grid[last], grid[last + 1]) if last < len(grid) - 1 else float("inf")
    return low, high


def _reach_warnings(curve: Curve, estimate: float, low: float, high: float) -> tuple[str, ...]:
    limit = EXTRAPOLATION_LIMIT * curve.largest_n
    found = []
    if limit < estimate < np.inf:
        found.append(
            f"this lies beyond n = {number(limit)}, four times the largest size measured, where the"
            " form of the curve is no longer supported by the data"
        )
    if estimate < curve.n[0]:
        found.append("this lies below the smallest size measured")
    if np.isfinite(estimate) and not low <= estimate <= high:
        found.append("the estimate lies outside its own interval: the prior on γ pulls the fit")
    return tuple(f"{text}." for text in found)
