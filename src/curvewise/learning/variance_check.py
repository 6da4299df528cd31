"""Whether the variance model σ0² + σ̂²/n describes the spread of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from curvewise.errors import InputError
from curvewise.learning.base import Curve
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
        Test that measured and modelled keep one ratio over the sizes; NaN with one size. Small
        means that the spread does not fall as the model says.
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
            f" curve(s) at {len(self.n)} sizes (χ², p = {self.p_value:.2g})."
        )


def check_variance_model(curves: Sequence[Curve]) -> VarianceCheck:
    """Compare the spread of runs with the variance model, pooled over curves.

    Parameters
    ----------
    curves : sequence of LearningCurve or EnsembleCurve
        In one unit.
    """
    if not curves or len({c.unit for c in curves}) > 1:
        raise InputError("curves must be a list of fitted curves in one unit.")
    rows: list[tuple[float, float, float, float]] = []
    for c in curves:
        known = (c.runs > 1) & np.isfinite(c.variance)
        model = c.run_std_at(c.n[known]) ** 2
        free = c.runs[known] - 1
        rows += zip(
            c.n[known].tolist(),
            c.variance[known].tolist(),
            model.tolist(),
            free.tolist(),
            strict=True,
        )
    if not rows:
        raise InputError("curves hold no replicated size: there is no spread to check.")
    n, measured, modelled, freedom = np.array(rows).T
    sizes, index = np.unique(n, return_inverse=True)
    total = np.bincount(index, freedom).astype(np.float64)
    pooled = np.bincount(index, freedom * measured) / total
    expected = np.bincount(index, freedom * modelled) / total
    return VarianceCheck(
        n=sizes,
        measured=pooled,
        modelled=expected,
        freedom=total,
        p_value=_same_ratio(pooled / expected, total),
        curves=len(curves),
        unit=curves[0].unit,
    )


def _same_ratio(ratio: FloatArray, freedom: FloatArray) -> float:
    """p-value that log ratios of mean squares agree; their variance is 2/f, their bias −1/f.

    The level of the ratio is not tested, because σ̂² was fitted to it.
    """
    if len(ratio) < 2:
        return float("nan")
    logs = np.log(np.maximum(ratio, 1e-300)) + 1.0 / freedom
    weight = freedom / 2.0
    centre = float((weight * logs).sum() / weight.sum())
    return float(chdtrc(len(ratio) - 1, float((weight * (logs - centre) ** 2).sum())))
