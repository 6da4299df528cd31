"""What comparing a method with scratch example by example gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from curvewise.errors import InputError
from curvewise.tables import number
from curvewise.transfer.gains import GainEnd
from curvewise.types import FloatArray, Interval, Result


@dataclass(frozen=True, eq=False)
class WinRate(Result):
    """The share of test examples on which a method has a lower loss than scratch.

    Attributes
    ----------
    rate : Interval
        The share, ties counting half, for other examples and other runs like these; ½ is no better
        than scratch.
    pvalue : float
        That it is ½, two-sided; not below 1e-9. It is below 1 − level just where the interval
        leaves ½ out.
    ties : float
        Share of comparisons that are ties.
    by_run : ndarray, shape (runs,)
        The share of each run of the method, averaged over the runs of scratch.
    runs, scratch_runs, examples : int
        What was compared.
    groups : int, optional
        Groups of examples that belong together, where there are any.
    paired : bool
        Whether run r of the method was compared with run r of scratch only.
    examples_std, runs_std : float
        Standard error of the rate that the sample of examples, and that of runs beyond it, make;
        the latter is NaN where runs cannot be told to vary.
    level : float
        Coverage of the interval.
    names : tuple of str
        Of the method, and of what it is compared with.
    """

    rate: Interval
    pvalue: float
    ties: float
    by_run: FloatArray
    runs: int
    scratch_runs: int
    examples: int
    groups: int | None
    paired: bool
    examples_std: float
    runs_std: float
    level: float = 0.95
    warnings: tuple[str, ...] = ()
    names: tuple[str, str] = ("the method", "scratch")

    @property
    def verdict(self) -> str:
        """Whether it is "better" or "worse" than scratch, or "undecided"."""
        if self.rate.low > 0.5:
            return "better"
        return "worse" if self.rate.high < 0.5 else "undecided"

    def columns(self) -> dict[str, Any]:
        """One row."""
        return _columns([self])

    def summary(self) -> str:
        """A few sentences."""
        p, low, high = (f"{100 * v:.1f}%" for v in (self.rate.estimate, *self.rate))
        grouped = "" if self.groups is None else f" in {self.groups:,} groups"
        text = (
            f"{_first_up(self.names[0])} has a lower loss than {self.names[1]} on {p} of"
            f" {self.examples:,} test examples{grouped}"
            f" ({self.level:.0%} interval {low} to {high}; p = {number(self.pvalue, 2)} against"
            f" one half): {self._said_verdict()}."
        )
        if self.ties > 0:
            text += f" {100 * self.ties:.1f}% are ties, which count half."
        return " ".join([text, *(f"Beware: {w}" for w in self.warnings)])

    def _said_verdict(self) -> str:
        said = {
            "better": f"more often than not it beats {self.names[1]}",
            "worse": f"more often than not {self.names[1]} beats it",
            "undecided": f"it cannot be told from {self.names[1]}",
        }
        return said[self.verdict]


@dataclass(frozen=True, eq=False)
class WinRates(Result):
    """Win rates by training size.

    Attributes
    ----------
    n : ndarray, shape (sizes,)
        Training sizes, from small to large.
    rates : tuple of WinRate
        One for each.
    adjusted : ndarray, shape (sizes,)
        P-values by Holm's rule, all sizes together.
    end : GainEnd
        From which size the rate is no longer told from ½.
    level : float
        Coverage of each interval by itself.
    """

    n: FloatArray
    rates: tuple[WinRate, ...]
    adjusted: FloatArray
    end: GainEnd
    level: float = 0.95
    warnings: tuple[str, ...] = ()

    def at(self, n: float) -> WinRate:
        """The win rate at one of the sizes."""
        found = np.flatnonzero(self.n == n)
        if not len(found):
            there = ", ".join(number(v) for v in self.n.tolist())
            raise InputError(f"n={n!r} is none of the sizes: {there}.")
        return self.rates[int(found[0])]

    def columns(self) -> dict[str, Any]:
        """A row for each size."""
        return {"n": self.n, **_columns(self.rates), "adjusted": self.adjusted}

    def summary(self) -> str:
        """A few sentences."""
        parts = [
            f"{100 * r.rate.estimate:.1f}% [{100 * r.rate.low:.1f}, {100 * r.rate.high:.1f}] at n ="
            f" {number(size)}"
            for size, r in zip(self.n.tolist(), self.rates, strict=True)
        ]
        text = "The method has the lower loss on " + ", ".join(parts) + " of the test examples. "
        return " ".join([text + self.end.text, *(f"Beware: {w}" for w in self.warnings)])


def _first_up(name: str) -> str:
    """The beginning of a sentence; names of people's own stay as they are."""
    return "The method" if name == "the method" else name


def _columns(rates: Sequence[WinRate]) -> dict[str, Any]:
    return {
        "win_rate": np.array([r.rate.estimate for r in rates]),
        "low": np.array([r.rate.low for r in rates]),
        "high": np.array([r.rate.high for r in rates]),
        "pvalue": np.array([r.pvalue for r in rates]),
        "ties": np.array([r.ties for r in rates]),
        "runs": np.array([r.runs for r in rates]),
        "scratch_runs": np.array([r.scratch_runs for r in rates]),
        "examples": np.array([r.examples for r in rates]),
    }
