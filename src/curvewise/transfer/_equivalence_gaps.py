"""The difference between the risks of scratch and of a method, at any size of scratch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import stdtrit

from curvewise.errors import InputError
from curvewise.stats import difference_interval
from curvewise.types import FloatArray

FARTHEST = 1000.0
"""A curve is followed up to this multiple of the largest size of scratch."""

BEND = 0.3
"""Error of the interpolation, as a share of what it differs from straight lines between sizes."""

POINTS = 301
"""Sizes looked at among those of scratch, and as many beyond where a curve leads there."""


@dataclass(frozen=True, eq=False)
class ScratchCurve:
    """Mean risks of scratch: sizes, means, their covariances, degrees of freedom."""

    n: FloatArray
    risk: FloatArray
    covariance: FloatArray
    degrees: FloatArray

    def at(self, n: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The interpolated risk, and how far it moves with each of the means.

        Returns
        -------
        risk : ndarray, shape (T,)
        moves : ndarray, shape (T, sizes)
            Slopes over one standard error either way, since interpolation has kinks.
        """
        count = len(self.n)
        found = np.asarray(self._interpolate(np.log(n)))
        return found[:, 0], (found[:, 1 : count + 1] - found[:, count + 1 :]) / (2 * self._steps)

    def error(self, n: FloatArray, risk: FloatArray) -> FloatArray:
        """How far the interpolated risk may be off by itself: nothing at the sizes measured."""
        straight = np.interp(np.log(n), np.log(self.n), self.risk)
        return BEND * np.abs(risk - straight)

    @cached_property
    def _steps(self) -> FloatArray:
        errors = np.sqrt(np.nan_to_num(np.diagonal(self.covariance)))
        least = 1e-6 * max(float(np.ptp(self.risk)), 1e-6 * float(np.abs(self.risk).max()), 1e-12)
        return np.maximum(errors, least)

    @cached_property
    def _interpolate(self) -> Any:
        moved = np.diag(self._steps)
        base = self.risk[:, None]
        values = np.concatenate([base, base + moved, base - moved], axis=1)
        if len(self.n) == 1:
            return lambda x: np.broadcast_to(values[0], (len(x), values.shape[1]))
        from scipy.interpolate import PchipInterpolator

        logs = np.log(self.n)
        inner = PchipInterpolator(logs, values, axis=0)
        return lambda x: inner(np.clip(x, logs[0], logs[-1]))


@dataclass(frozen=True, eq=False)
class Gap:
    """Risk of scratch at a size minus that of a method at its own, with an interval.

    ``variance`` and ``degrees`` are those of the method's ``risk``, ``shared`` its covariances
    with the means of scratch.
    """

    scratch: ScratchCurve
    risk: float
    variance: float
    degrees: float
    shared: FloatArray
    level: float
    curve: Any = None

    @property
    def known(self) -> bool:
        """Whether the errors are known, so that there can be an interval."""
        return not (np.isnan(self.variance) or np.isnan(self.scratch.covariance).any())

    @cached_property
    def grid(self) -> FloatArray:
        """Sizes of scratch to look at."""
        sizes = self.scratch.n
        inner = np.geomspace(sizes[0], sizes[-1], POINTS) if len(sizes) > 1 else sizes
        points = [inner, sizes]
        if self.curve is not None:
            points.append(np.geomspace(sizes[-1], FARTHEST * sizes[-1], POINTS))
        found: FloatArray = np.unique(np.concatenate(points))
        apart = np.diff(np.log(found), prepend=-np.inf) > 1e-12
        kept: FloatArray = found[apart]
        return kept

    def centre(self, n: FloatArray) -> FloatArray:
        """The difference alone."""
        found = self.scratch.at(n)[0] - self.risk
        beyond = n > self.scratch.n[-1]
        if self.curve is not None and beyond.any():
            found[beyond] = curve_band(self.curve, n[beyond], self.level)[0] - self.risk
        return found

    def __call__(self, n: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The difference, low and high: as :func:`crossing_interval` wants them."""
        risk, moves = self.scratch.at(n)
        half = self._half(moves, self.scratch.error(n, risk))
        centre = risk - self.risk
        low, high = centre - half, centre + half
        beyond = n > self.scratch.n[-1]
        if self.curve is not None and beyond.any():
            band = curve_band(self.curve, n[beyond], self.level)
            own = float(stdtrit(self.degrees, 0.5 + self.level / 2)) * np.sqrt(self.variance)
            ends = (self.risk - own, self.risk + own)
            centre[beyond] = band[0] - self.risk
            low[beyond], high[beyond] = difference_interval(band[0], band[1:], self.risk, ends)
        return centre, low, high

    def _half(self, moves: FloatArray, bend: FloatArray) -> FloatArray:
        """Half of a t interval, with Satterthwaite's degrees of freedom."""
        scratch = self.scratch
        total = np.einsum("ti,ij,tj->t", moves, scratch.covariance, moves) + self.variance
        total = np.maximum(total - 2 * moves @ self.shared, 0.0) + bend**2
        parts = moves**2 * np.diagonal(scratch.covariance)
        spread = (parts**2 / scratch.degrees).sum(axis=1) + self.variance**2 / self.degrees
        degrees = np.divide(total**2, spread, out=np.full_like(total, np.inf), where=spread > 0)
        degrees = np.maximum(degrees, min(self.degrees, float(scratch.degrees.min())))
        half: FloatArray = stdtrit(np.minimum(degrees, 1e9), 0.5 + self.level / 2) * np.sqrt(total)
        return half


def curve_band(
    curve: Any, n: FloatArray, level: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Error of a fitted curve, moved into its interval where it lies outside, low and high.

    Curves without a confidence interval give that of the mean of many runs.
    """
    kind = getattr(curve, "default_interval", "confidence")
    options: dict[str, Any] = {"interval": kind, "level": level}
    if kind == "prediction":
        options["runs"] = np.inf
    try:
        # A curve of ours gives the same as arrays, for which no pandas is needed.
        found = (curve.band if hasattr(curve, "band") else curve.predict)(n, **options)
        named = (found[name] for name in ("error", "low", "high"))
        error, low, high = (np.asarray(v, dtype=np.float64) for v in named)
    except (AttributeError, KeyError, TypeError) as failure:
        raise InputError(
            f"curve={type(curve).__name__} cannot be used ({failure}): pass a fitted learning curve"
            ' whose predict(n, interval="confidence", level=...) has columns error, low and high.'
        ) from None
    return np.clip(error, low, high), low, high
