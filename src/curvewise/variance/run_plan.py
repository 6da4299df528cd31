"""What a plan of runs says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.tables import about
from curvewise.types import FloatArray, Interval, Result
from curvewise.variance._power import DifferencePower, VariancePower
from curvewise.variance.wording import said


@dataclass(frozen=True, eq=False)
class RunPlan(Result):
    """How many runs are needed, and what other numbers of runs would give.

    Attributes
    ----------
    question : {"difference", "variance"}
        Whether two trainings differ, or whether true error varies between runs of one.
    effect : float
        The true difference (or standard deviation of true error) that should be seen.
    runs : int or None
        The fewest runs of each training that do; None where ``runs_max`` do not.
    runs_interval : Interval or None
        The same with the pilot's standard deviations at the limits of their intervals; infinite
        where ``runs_max`` would not do. None without a pilot.
    examples_needed : int or None
        Where ``runs`` is None because the test set is too small: the fewest examples with which
        ``runs_max`` runs would do.
    power : float
        The chance of seeing the effect that was asked for: that the interval of the difference
        (or of the standard deviation) excludes 0.
    target : {"distribution", "test set"}
        Where the difference is to be seen. On the distribution the examples count as sampled.
    paired : bool
        Whether run r of one training shares its seeds with run r of the other.
    examples : int or None
        Size of the test set, where it is known.
    table_runs, table_power : ndarray
        Numbers of runs, and the power of each.
    table_detectable : ndarray
        The effect that is seen with the power asked for.
    table_standard_error, table_half_width : ndarray
        Of the estimate: its standard error and half the width of its interval.
    table_one_more : ndarray
        What one more run of each training buys: by what part the interval gets narrower.
    assumptions : tuple of str
        What was taken for granted.
    """

    question: str
    effect: float
    runs: int | None
    runs_interval: Interval | None
    examples_needed: int | None
    runs_max: int
    power: float
    level: float
    target: str
    paired: bool
    examples: int | None
    table_runs: NDArray[np.int64]
    table_power: FloatArray
    table_detectable: FloatArray
    table_standard_error: FloatArray
    table_half_width: FloatArray
    table_one_more: FloatArray
    assumptions: tuple[str, ...]
    unit: str
    warnings: tuple[str, ...]
    _model: DifferencePower | VariancePower

    def power_at(self, runs: int, effect: float | None = None) -> float:
        """The chance that so many runs of each training show the effect."""
        if runs < 2:
            raise InputError(f"runs={runs}: at least two runs are needed.")
        return self._model.power(self.effect if effect is None else effect, runs)

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per number of runs.

        ``detectable`` is the difference (or standard deviation) that is seen with the power asked
        for, ``one more`` by what part one more run of each training makes the interval narrower.
        """
        return {
            "runs": self.table_runs,
            "power": self.table_power,
            "detectable": self.table_detectable,
            "std error": self.table_standard_error,
            "half-width": self.table_half_width,
            "one more": self.table_one_more,
        }

    def summary(self) -> str:
        """The plan in a few sentences."""
        lines = [self._answer()]
        if self.runs is not None:
            where = int(np.searchsorted(self.table_runs, self.runs))
            lines.append(
                f"The interval is then ±{said(float(self.table_half_width[where]), self.unit)}; one"
                f" more run would make it {self.table_one_more[where]:.1%} narrower."
            )
        if self.assumptions:
            lines.append(f"This takes for granted that {'; '.join(self.assumptions)}.")
        return " ".join([*lines, *(f"Beware: {w}" for w in self.warnings)])

    def _answer(self) -> str:
        what = (
            f"see a true difference of {said(self.effect, self.unit)} on {self._where}"
            if self.question == "difference"
            else "tell a standard deviation of true error of"
            f" {said(self.effect, self.unit)} between runs from 0"
        )
        each = " of each training" if self.question == "difference" else ""
        if self.runs is not None:
            inner = self.runs_interval
            limits = "" if inner is None else f" [{about(inner.low)}, {about(inner.high)}]"
            return f"To {what} with {self.power:.0%} power takes {self.runs:,}{limits} runs{each}."
        text = f"Not even {self.runs_max:,} runs{each} {what} with {self.power:.0%} power."
        if self.examples_needed is None:
            return text
        return (
            f"{text} The test set is too small: its examples add a part that no number of runs"
            f" removes. With about {about(self.examples_needed)} examples instead of"
            f" {self.examples:,} so many runs would do."
        )

    @property
    def _where(self) -> str:
        return "the distribution" if self.target == "distribution" else "this test set"
