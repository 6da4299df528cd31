"""The unit in which pictures of the variance draw, and the colours of its three parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from curvewise.plot.style import colour
from curvewise.plot.variance_parts import digits
from curvewise.types import FloatArray, Interval


@dataclass(frozen=True)
class Measure:
    """Errors as percentages; losses and scores as they are."""

    unit: str

    @property
    def bounded(self) -> bool:
        """Whether values are errors."""
        return self.unit in ("fraction", "percent")

    def of(self, values: ArrayLike) -> FloatArray:
        """Values as they are drawn."""
        return np.asarray(values, dtype=np.float64) * (100.0 if self.unit == "fraction" else 1.0)

    def interval(self, interval: Interval) -> tuple[float, float, float]:
        """Estimate, low and high as they are drawn."""
        estimate, low, high = self.of([interval.estimate, interval.low, interval.high]).tolist()
        return estimate, low, high

    def label(self, text: str) -> str:
        """Axis label: "test error" becomes "test error (%)", "test loss", "negative score"."""
        if self.bounded:
            return f"{text} (%)"
        if self.unit == "score":
            return text.replace("test error", "error").replace("error", "negative score")
        return text.replace("error", "loss")

    def said(self, value: float) -> str:
        """A value with its unit, in three digits."""
        return f"{digits(float(self.of(value)))}{'%' if self.bounded else ''}"

    def told(self, interval: Interval) -> str:
        """An estimate with its limits in brackets."""
        low, high = self.said(interval.low), self.said(interval.high)
        return f"{self.said(interval.estimate)} [{low}, {high}]"


SERIES = {"test set": colour(0), "independent": colour(1), "distribution": colour(2)}
"""The three standard deviations have the same colours in every picture."""
