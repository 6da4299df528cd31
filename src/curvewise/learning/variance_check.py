"""Whether the variance model σ0² + σ̂²/n describes the spread of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.learning.base import Curve
from curvewise.learning.replicates import size_variance, slope_variance
from curvewise.types import FloatArray, Result, Unit


@dataclass(frozen=True, eq=False)
class VarianceCheck(Result):
    """Measured against modelled variance of runs, size by size.

    Attributes
    ----------
    n : ndarray, shape (S,)
        Sizes with replicates in at least one curve.
    measured, modelled : ndarray, shape (S,)
        Mean over curves, weighted by degrees of freedom, of s² and of σ0² + σ̂²/n.
    p_value : float
        Simulated, that measured and modelled keep one ratio over the sizes; NaN with one size.
        Small means that the spread does not fall as the model says. With few runs at the large
        sizes it has little power.
    """

    n: FloatArray
    measured: FloatArray
    modelled: FloatArray
    freedom: FloatArray
    p_value: float
    curves: int
    unit: Unit
    warnings: tuple[str, ...] = ()

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per size."""
        return {
            "n": self.n,
            "measured": self.measured,
            "modelled": self.modelled,
            "ratio": self.measured / self.modelled,
            "degrees of freedom": self.freedom,
        }

    def summary(self) -> str:
        """Whether σ0² + σ̂²/n describes the spread of the runs."""
        verdict = "does not describe" if self.p_value < 0.01 else "is consistent with"
        return (
            f"The variance model σ0² + σ̂²/n {verdict} the spread of the runs of {self.curves}"
            f" curve(s) at {len(self.n)} sizes (p = {self.p_value:.2g})."
        )


def check_variance_model(
    curves: Sequence[Curve], *, draws: int = 999, rng: int = 0
) -> VarianceCheck:
    """Compare the spread of runs with the variance model, pooled over curves.

    Parameters
    ----------
    curves : sequence of LearningCurve or EnsembleCurve
        In one unit.
    draws : int
        Simulations of the null, in which σ̂² is estimated anew each time.
    rng : int
        Their seed.
    """
    if isinstance(curves, Curve):
        curves = [curves]
    if not curves or len({c.unit for c in curves}) > 1:
        raise InputError("curves must be a list of fitted curves in one unit.")
    parts = [_part(c) for c in curves]
    if not any(len(p.n) for p in parts):
        raise InputError("curves hold no replicated size: there is no spread to check.")
    measured = [p.variance[None] for p in parts]
    sizes, freedom, pooled, expected = _pool(parts, measured)
    generator = np.random.default_rng(rng)
    null = [
        p.modelled(p.variance[None]) * generator.chisquare(p.freedom, (draws, len(p.n))) / p.freedom
        for p in parts
    ]
    _, _, null_pooled, null_expected = _pool(parts, null)
    statistic = _unevenness(pooled / expected, freedom)[0]
    beyond = _unevenness(null_pooled / null_expected, freedom) >= statistic
    return VarianceCheck(
        n=sizes,
        measured=pooled[0],
        modelled=expected[0],
        freedom=freedom,
        p_value=float("nan") if len(sizes) < 2 else float((1 + beyond.sum()) / (1 + draws)),
        curves=len(curves),
        unit=curves[0].unit,
    )


@dataclass(frozen=True, eq=False)
class _Part:
    """Replicated sizes of one curve, in its unit."""

    n: FloatArray
    variance: FloatArray
    freedom: FloatArray
    floor: float

    def modelled(self, variance: FloatArray) -> FloatArray:
        """σ0² + σ̂²/n with σ̂² estimated from variances (draws, S)."""
        slope = slope_variance(self.n, self.freedom + 1.0, variance, self.floor)
        return size_variance(self.n, slope[:, None], self.floor)


def _part(curve: Curve) -> _Part:
    known = (curve.runs > 1) & np.isfinite(curve.variance)
    floor = curve.constants.sigma0_squared / curve._scale.factor**2
    return _Part(curve.n[known], curve.variance[known], curve.runs[known] - 1.0, floor)


def _pool(
    parts: Sequence[_Part], variances: Sequence[FloatArray]
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Sizes, degrees of freedom, and measured and modelled variance (draws, S) over all curves."""
    sizes = np.unique(np.concatenate([p.n for p in parts]))
    freedom = np.zeros(len(sizes))
    measured = np.zeros((len(variances[0]), len(sizes)))
    modelled = np.zeros_like(measured)
    for part, variance in zip(parts, variances, strict=True):
        at = np.searchsorted(sizes, part.n)
        freedom[at] += part.freedom
        measured[:, at] += part.freedom * variance
        modelled[:, at] += part.freedom * part.modelled(variance)
    return sizes, freedom, measured / freedom, modelled / freedom


def _unevenness(ratio: FloatArray, freedom: FloatArray) -> FloatArray:
    """Weighted variance of log ratios (draws, S) over sizes.

    The level of the ratio is not judged, because σ̂² was fitted to it.
    """
    logs = np.log(np.maximum(ratio, 1e-300))
    centre = (logs @ freedom / freedom.sum())[:, None]
    return np.asarray(((logs - centre) ** 2) @ freedom)
