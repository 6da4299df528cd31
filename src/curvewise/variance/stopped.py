"""What a plan for stopping holds, and what it says about the runs so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from curvewise.types import Interval, Result
from curvewise.variance.wording import said_interval


@dataclass(frozen=True, eq=False)
class StoppingPlan(Result):
    """At which numbers of runs to look, and how small a p-value must be to stop.

    Attributes
    ----------
    looks : tuple of int
        Runs of each training at which the two are compared.
    level : float
        One minus the chance that any look finds a difference where there is none.
    nominal_level : float
        The p-value below which a look stops, the same at each.
    naive_error : float
        That chance if every look stopped at ``1 - level`` instead.
    paired : bool
        Whether run r of one training shares its seeds with run r of the other.
    effects : tuple of float
        True differences in standard deviations between runs (of a training; of the differences
        of pairs, if paired).
    expected_runs, chance_found : tuple of float
        For each effect: runs of each training until the plan stops, on average, and the chance
        that it stops with a difference.
    fixed_chance : tuple of float
        The chance that a single look at the last number of runs finds it.
    draws : int
        Simulated experiments with normal run errors behind these numbers.
    """

    looks: tuple[int, ...]
    level: float
    nominal_level: float
    naive_error: float
    paired: bool
    effects: tuple[float, ...]
    expected_runs: tuple[float, ...]
    chance_found: tuple[float, ...]
    fixed_chance: tuple[float, ...]
    draws: int
    warnings: tuple[str, ...]

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per true difference: what to expect."""
        return {
            "difference in std": list(self.effects),
            "expected runs": list(self.expected_runs),
            "chance found": list(self.chance_found),
            "chance of one look": list(self.fixed_chance),
        }

    def summary(self) -> str:
        """The plan in a few sentences."""
        shown = [f"{n:,}" for n in self.looks]
        looks = ", ".join(shown if len(shown) <= 10 else [*shown[:4], "…", shown[-1]])
        one = self.effects.index(1.0)
        return (
            f"Compare after {looks} runs of each training, and stop when p < "
            f"{self.nominal_level:.4f}. Where there is no difference, one is found with a chance"
            f" of {1 - self.level:.0%} over all looks; stopping at p < {1 - self.level:.2g} instead"
            f" would make that {self.naive_error:.0%}. A difference of one standard deviation"
            f" between runs is found with a chance of {self.chance_found[one]:.0%} after"
            f" {self.expected_runs[one]:.1f} runs on average, by a single look at"
            f" {self.looks[-1]:,} runs with {self.fixed_chance[one]:.0%}."
        )


@dataclass(frozen=True, eq=False)
class StoppingCheck(Result):
    """What the plan says about the runs so far.

    Attributes
    ----------
    decision : str
        "stop: a better", "stop: b better", "stop: equivalent within margin", "stop: undecided"
        (the last look is over) or "go on". It is that of the first look that stopped.
    runs : int
        Runs of each training that were looked at.
    difference : Interval
        Error of a minus error of b on this test set at the last look, with an interval that
        holds at all looks together.
    pvalue : float
        At the last look, not adjusted: it is compared with the plan's ``nominal_level``.
    next_look : int or None
        Runs at which to look again.
    looked, differences, pvalues, decisions : tuple
        The same at every look so far.
    margin : float or None
        Differences up to this size do not matter.
    """

    decision: str
    runs: int
    difference: Interval
    pvalue: float
    next_look: int | None
    looked: tuple[int, ...]
    differences: tuple[Interval, ...]
    pvalues: tuple[float, ...]
    decisions: tuple[str, ...]
    margin: float | None
    names: tuple[str, str]
    plan: StoppingPlan
    unit: str
    warnings: tuple[str, ...]

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per look so far."""
        return {
            "runs": list(self.looked),
            "difference": [d.estimate for d in self.differences],
            "low": [d.low for d in self.differences],
            "high": [d.high for d in self.differences],
            "p": list(self.pvalues),
            "decision": list(self.decisions),
        }

    def summary(self) -> str:
        """The decision in a few sentences."""
        a, b = self.names
        level = f"{self.plan.level:.0%}"
        then = "" if self.next_look is None else f" Look again at {self.next_look:,} runs."
        return " ".join(
            [
                f"After {self.runs:,} runs of each training the error of {a} minus that of {b} on"
                f" this test set is {said_interval(self.difference, self.unit)} (an interval that"
                f" holds at all planned looks together with {level}).",
                f"Decision: {self.decision}.{then}",
                *(f"Beware: {w}" for w in self.warnings),
            ]
        )
