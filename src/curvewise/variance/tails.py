"""Whether an interval for the variance between runs can be trusted: tails and number of runs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from curvewise.types import FloatArray

FEWEST = 5
"""Below this many runs no interval was found to hold unless run effects are exactly normal."""

ENOUGH = 30
"""From this many runs on, the bootstrap holds for heavy tails."""

THRESHOLD = 2.0
"""Tails are heavy when the excess kurtosis is above this many of its standard errors."""


@dataclass(frozen=True)
class Tails:
    """How heavy the tails of run errors are, and what follows."""

    runs: int
    excess_kurtosis: float
    heavy: bool

    @property
    def method(self) -> str:
        """Which interval to take."""
        return "bootstrap" if self.heavy and self.runs >= ENOUGH else "F"

    def warnings(self, method: str, asked: str) -> list[str]:
        """What to know about the interval in plain words."""
        if self.runs < FEWEST:
            return [
                f"{self.runs} runs are too few for an interval that holds unless run effects are"
                f" normal: train at least {FEWEST}."
            ]
        if not self.heavy:
            return []
        said = f"run errors have heavy tails (excess kurtosis {self.excess_kurtosis:.1f})"
        if self.runs < ENOUGH:
            return [f"{said}, and with {self.runs} runs no interval holds then: train {ENOUGH}."]
        if method == "F":
            return [f"{said}: the F interval is too narrow, the bootstrap needs the predictions."]
        return []


def judge_tails(run_errors: FloatArray) -> Tails:
    """Measure the excess kurtosis of run errors against what normal ones would show."""
    runs = len(run_errors)
    deviation = run_errors - run_errors.mean()
    variance = float((deviation**2).mean())
    if variance == 0 or runs < 4:
        return Tails(runs, math.nan, False)
    excess = float((deviation**4).mean()) / variance**2 - 3
    return Tails(runs, excess, excess > THRESHOLD * math.sqrt(24 / runs))
