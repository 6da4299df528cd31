"""Whether an interval for the variance between runs can be trusted: tails and number of runs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from curvewise.types import FloatArray

FEWEST = 5
"""With fewer runs nothing can be said about their tails."""

ENOUGH = 30
"""From this many runs on, the bootstrap holds for heavy tails."""

KURTOSIS = 2.0
"""Tails are heavy when the excess kurtosis is above this many of its standard errors …"""

OUTLIER = 4.0
"""… or a run lies further from the median than this many robust standard deviations: more with
few runs, where those are uncertain, and with very many, of which one lies far out by chance. Of
normal runs about one set in twenty looks heavy by either."""


@dataclass(frozen=True)
class Tails:
    """How heavy the tails of run errors are, and what follows.

    Attributes
    ----------
    runs : int
        How many there are.
    excess_kurtosis : float
        Of their errors, with the usual correction for bias; 0 for normal ones.
    outlier : float
        The largest distance from the median, in robust standard deviations.
    """

    runs: int
    excess_kurtosis: float
    outlier: float

    @property
    def heavy(self) -> bool:
        """Whether the F interval should not be trusted."""
        if self.runs < FEWEST:
            return False
        limit = KURTOSIS * math.sqrt(24 / self.runs)
        furthest = max(OUTLIER * (1 + 10 / self.runs**1.5), float(-ndtri(0.005 / self.runs)))
        return self.excess_kurtosis > limit or self.outlier > furthest

    @property
    def method(self) -> str:
        """Which interval to take."""
        if not self.heavy:
            return "F"
        return "bootstrap" if self.runs >= ENOUGH else "robust"

    def warnings(self, method: str) -> list[str]:
        """What to know about the interval in plain words."""
        if self.runs < FEWEST:
            return [
                f"{self.runs} runs are too few to see whether run effects are normal, and no"
                f" interval holds if they are not: train at least {FEWEST}."
            ]
        if not self.heavy:
            return []
        said = f"run errors have heavy tails (excess kurtosis {self.excess_kurtosis:.1f}"
        said += f", one run {self.outlier:.1f} robust standard deviations from the median)"
        if self.runs < ENOUGH:
            return [
                f"{said}: failed runs? With {self.runs} runs no interval is sure to hold then;"
                f" from {ENOUGH} on, one does."
            ]
        if method == "F":
            return [f"{said}: the F interval is too narrow; interval='auto' takes a better one."]
        return []


def judge_tails(run_errors: FloatArray) -> Tails:
    """Measure how far run errors are from normal ones."""
    runs = len(run_errors)
    middle = float(np.median(run_errors))
    away = np.abs(run_errors - middle)
    robust = 1.4826 * float(np.median(away))
    outlier = float(away.max()) / robust if robust > 0 else 0.0
    return Tails(runs, _excess_kurtosis(run_errors), outlier)


def _excess_kurtosis(values: FloatArray) -> float:
    """Excess kurtosis, unbiased for normal values."""
    r = len(values)
    deviation = values - values.mean()
    second = float((deviation**2).mean())
    if r < 4 or second == 0:
        return 0.0
    plain = float((deviation**4).mean()) / second**2 - 3
    return ((r + 1) * plain + 6) * (r - 1) / ((r - 2) * (r - 3))
