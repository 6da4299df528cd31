"""Confidence intervals by profile likelihood over γ, without the prior.

Given γ the law is linear, so the likelihood profiled over everything but a linear quantity φ is a
parabola in φ for each γ. The interval is the union over a fine grid of γ of the stretches where
that parabola stays under the F threshold. It lets γ be unknown, which the paper's band does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import fdtri, stdtr

from curvewise.learning.replicates import Replicates, size_variance
from curvewise.types import FloatArray

FINE_GRID: FloatArray = np.arange(-396, -3) / 400.0
"""γ = −0.99, …, −0.01 in steps of .0025."""


@dataclass(frozen=True, eq=False)
class Profile:
    """The likelihood of B curves along γ.

    Attributes
    ----------
    gammas : ndarray, shape (G,)
    level, slope : ndarray, shape (B, G)
        Weighted mean of the error, and slope against the centred basis, at each γ.
    level_variance, slope_variance : ndarray, shape (B, 1) and (B, G)
        Their variances in units of the noise scale s².
    centre : ndarray, shape (B, G)
        Weighted mean of the basis.
    residual : ndarray, shape (B, G)
        Weighted residual sum of squares, within sizes included.
    freedom : ndarray, shape (B,)
        Runs minus parameters.
    origin : float
        Mean log n, where the basis is 0.
    """

    gammas: FloatArray
    level: FloatArray
    slope: FloatArray
    level_variance: FloatArray
    slope_variance: FloatArray
    centre: FloatArray
    residual: FloatArray
    freedom: FloatArray
    origin: float

    def interval(
        self, on_level: float, on_slope: FloatArray, level: float = 0.95
    ) -> tuple[FloatArray, FloatArray]:
        """Interval of φ = on_level · level + on_slope(γ) · slope, for each curve.

        Parameters
        ----------
        on_level : float
            Coefficient of the weighted mean.
        on_slope : ndarray, shape (B, G)
            Coefficient of the slope at each γ.
        level : float
            Coverage.

        Returns
        -------
        low, high : ndarray, shape (B,)
            Infinite where the data leave no degree of freedom.
        """
        estimate = on_level * self.level + on_slope * self.slope
        variance = on_level**2 * self.level_variance + on_slope**2 * self.slope_variance
        best = self.residual.min(axis=1)
        threshold = best * (1.0 + _quantile(level, self.freedom) / np.maximum(self.freedom, 1))
        room = threshold[:, None] - self.residual
        half = np.sqrt(variance * np.maximum(room, 0.0))
        inside = room >= 0
        low = np.where(inside, estimate - half, np.inf).min(axis=1)
        high = np.where(inside, estimate + half, -np.inf).max(axis=1)
        open_ended = self.freedom < 1
        return np.where(open_ended, -np.inf, low), np.where(open_ended, np.inf, high)

    def probability_above(self, on_level: float, on_slope: FloatArray, value: float) -> FloatArray:
        """Confidence that φ lies above ``value``: the signed root of the profile, read on Student's t.

        Returns
        -------
        ndarray, shape (B,)
            NaN where the data leave no degree of freedom.
        """
        estimate = on_level * self.level + on_slope * self.slope
        variance = on_level**2 * self.level_variance + on_slope**2 * self.slope_variance
        cost = (self.residual + (estimate - value) ** 2 / np.maximum(variance, 1e-300)).min(axis=1)
        best = self.residual.argmin(axis=1)
        rows = np.arange(len(best))
        freedom = np.maximum(self.freedom, 1)
        scale = np.maximum(self.residual[rows, best] / freedom, 1e-300)
        root = np.sqrt(np.maximum(cost - self.residual[rows, best], 0.0) / scale)
        signed = np.sign(estimate[rows, best] - value) * root
        return np.where(self.freedom < 1, np.nan, stdtr(freedom, signed))

    def error_coefficients(self, n: float) -> tuple[float, FloatArray]:
        """Coefficients of e(n); ``n = inf`` gives the asymptote α."""
        return 1.0, self._basis(n) - self.centre

    def reliance_coefficients(self, n: float) -> tuple[float, FloatArray]:
        """Coefficients of β_N = −2ηγN^γ."""
        return 0.0, np.broadcast_to(-2.0 * self.gammas * (self._basis(n) + 1.0), self.slope.shape)

    def change_coefficients(self, n: float, to: float) -> tuple[float, FloatArray]:
        """Coefficients of e(n) − e(to)."""
        return 0.0, np.broadcast_to(self._basis(n) - self._basis(to), self.slope.shape)

    def gamma_interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Interval of γ itself, up to the ends of the grid."""
        best = self.residual.min(axis=1)
        threshold = best * (1.0 + _quantile(level, self.freedom) / np.maximum(self.freedom, 1))
        inside = (self.residual <= threshold[:, None]) | (self.freedom[:, None] < 1)
        low = np.where(inside, self.gammas, np.inf).min(axis=1)
        high = np.where(inside, self.gammas, -np.inf).max(axis=1)
        return low, high

    def _basis(self, n: float) -> FloatArray:
        if np.isinf(n):
            return np.full_like(self.gammas, -1.0)
        return np.expm1(self.gammas * (np.log(n) - self.origin))


def profile(
    n: FloatArray,
    mean: FloatArray,
    weight: FloatArray,
    within: FloatArray,
    freedom: FloatArray,
    gammas: FloatArray = FINE_GRID,
) -> Profile:
    """Profile B curves measured at the same sizes.

    Parameters
    ----------
    n : ndarray, shape (S,)
        Sizes.
    mean, weight : ndarray, shape (B, S)
        Mean error and its weight F_i/σ_i².
    within : ndarray, shape (B,)
        Weighted sum of squares within sizes, Σ (F_i − 1) s_i²/σ_i².
    freedom : ndarray, shape (B,)
        Runs minus the number of free parameters.
    gammas : ndarray, shape (G,)
        Grid of γ; one value when γ is held fixed.
    """
    logs = np.log(n)
    origin = float(logs.mean())
    basis = np.expm1(np.multiply.outer(gammas, logs - origin))
    total = weight.sum(axis=1, keepdims=True)
    level = (weight * mean).sum(axis=1, keepdims=True) / total
    moved = weight * (mean - level)
    centre = (weight @ basis.T) / total
    sum_xx = np.maximum(weight @ (basis * basis).T - centre**2 * total, 1e-300)
    sum_xy = moved @ basis.T
    between = (moved * (mean - level)).sum(axis=1, keepdims=True) - sum_xy**2 / sum_xx
    # Sizes that agree exactly leave rounding noise; a floor keeps ratios of residuals meaningful.
    floor = 1e-20 * (weight * mean**2).sum(axis=1, keepdims=True) + 1e-300
    return Profile(
        gammas=gammas,
        level=np.broadcast_to(level, centre.shape),
        slope=sum_xy / sum_xx,
        level_variance=1.0 / total,
        slope_variance=1.0 / sum_xx,
        centre=centre,
        residual=np.maximum(within[:, None] + np.maximum(between, 0.0), floor),
        freedom=freedom,
        origin=origin,
    )


def profile_replicates(
    data: Replicates, sigma0_squared: float, gammas: FloatArray = FINE_GRID
) -> Profile:
    """Profile one curve from grouped runs (B = 1)."""
    spread = size_variance(data.n, data.slope_variance(sigma0_squared), sigma0_squared)
    known = np.where((data.runs > 1) & np.isfinite(data.variance), data.variance, 0.0)
    within = np.sum((data.runs - 1) * known / spread)
    counted = np.where((data.runs > 1) & ~np.isfinite(data.variance), 1, data.runs)
    freedom = counted.sum() - 2 - (1 if len(gammas) > 1 else 0)
    return profile(
        data.n,
        data.mean[None],
        (data.runs / spread)[None],
        np.array([within]),
        np.array([float(freedom)]),
        gammas,
    )


def _quantile(level: float, freedom: FloatArray) -> FloatArray:
    return np.asarray(fdtri(1.0, np.maximum(freedom, 1.0), level), dtype=np.float64)
