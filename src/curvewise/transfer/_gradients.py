"""How calibrated risks, gains and cumulative improvements move with what they are made of.

Everything is in the unit of the losses: the derivatives with respect to the mean risk of a method
and of scratch at each size, and to the two controls.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from curvewise.transfer.cumulative import Weight, along
from curvewise.types import FloatArray


@dataclass(frozen=True)
class Slopes:
    """Derivatives of one number.

    Attributes
    ----------
    method, scratch : ndarray, shape (points,)
        By the risk of each at every point.
    blind, maximal : float
        By the controls.
    """

    method: FloatArray
    scratch: FloatArray
    blind: float
    maximal: float


def calibrated_slopes(risk: float, blind: float, maximal: float) -> tuple[float, float, float]:
    """Derivatives of a calibrated risk by the risk, the blind guess and the maximal control."""
    range_ = blind - maximal
    level = (risk - maximal) / range_
    return 1 / range_, -level / range_, (level - 1) / range_


def cci_slopes(
    n: FloatArray, method: FloatArray, scratch: FloatArray, maximal: float, weight: Weight
) -> Slopes:
    """Derivatives of the cumulative improvement.

    It is 1 − A/B with A = Σ Δ (F + F′ − 2M) and B = Σ Δ (S + S′ − 2M) over the steps Δ from one
    size to the next. The blind guess only sets the scale of A and B, so that it falls out.
    """
    width = along(n, scratch, weight)
    both = _pairs(method - maximal), _pairs(scratch - maximal)
    a, b = (float(width @ pair) for pair in both)
    if b == 0:
        gone = np.full(len(n), np.nan)
        return Slopes(gone, gone, 0.0, float("nan"))
    held = _to_points(width, width)
    of_a, of_b = np.zeros(len(n)), held.copy()
    if not callable(weight) and weight == "scratch":  # the steps are those of scratch
        of_a = of_a + _to_points(-both[0], both[0])
        of_b = of_b + _to_points(-both[1], both[1])
    ratio = a / b
    return Slopes(
        method=-held / b,
        scratch=(ratio * of_b - of_a) / b,
        blind=0.0,
        maximal=2 * float(width.sum()) * (1 - ratio) / b,
    )


def _pairs(values: FloatArray) -> FloatArray:
    """Sums of neighbours."""
    return values[1:] + values[:-1]


def _to_points(left: FloatArray, right: FloatArray) -> FloatArray:
    """What the steps give to the points at their left and right ends."""
    found = np.zeros(len(left) + 1)
    found[:-1] += left
    found[1:] += right
    return found
