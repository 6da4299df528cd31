"""From the user's unit to percentage points, in which the paper's constants hold, and back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from curvewise.errors import InputError
from curvewise.types import FloatArray, Unit


@dataclass(frozen=True)
class Scale:
    """points = sign · factor · value.

    Fractions are multiplied by 100 and percentages kept. Losses and scores have no natural unit:
    they are scaled so that the largest absolute mean over the sizes is 100 points, which makes
    the fit indifferent to the unit of the loss. Scores also change sign, so that points fall.
    """

    factor: float
    sign: float = 1.0

    def points(self, value: FloatArray | float) -> FloatArray:
        """Values in the unit to points."""
        return np.asarray(value, dtype=np.float64) * (self.sign * self.factor)

    def values(self, points: FloatArray | float) -> FloatArray:
        """Points to values in the unit."""
        return np.asarray(points, dtype=np.float64) * (self.sign / self.factor)

    def value(self, points: float) -> float:
        """One value in the unit."""
        return float(points * self.sign / self.factor)

    def amount(self, points: float) -> float:
        """A difference or a width, whose sign does not depend on the unit."""
        return float(points / self.factor)

    def ends(self, low: float, high: float) -> tuple[float, float]:
        """Both ends of an interval, in order."""
        a, b = self.value(low), self.value(high)
        return (a, b) if self.sign > 0 else (b, a)


def scale_for(unit: Unit, means: FloatArray) -> Scale:
    """The scale of a unit; for losses and scores it depends on the largest absolute mean."""
    if unit.name == "fraction":
        return Scale(100.0)
    if unit.name == "percent":
        return Scale(1.0)
    largest = float(np.abs(means).max())
    if largest > 0 and not 1e-100 < largest < 1e100:
        raise InputError(f"error holds means near {largest:g}: rescale the {unit.name} first.")
    factor = 100.0 / largest if largest > 0 else 1.0
    return Scale(factor, -1.0 if unit.higher_is_better else 1.0)


def bounds(unit: Unit, points: FloatArray) -> tuple[float, float]:
    """Lowest and highest possible value in points: 0 and 100 for errors, 0 for positive losses."""
    if unit.bounded:
        return 0.0, 100.0
    if unit.name == "loss" and float(points.min()) >= 0:
        return 0.0, np.inf
    return -np.inf, np.inf
