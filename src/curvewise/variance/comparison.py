"""What a comparison of two trainings says."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from curvewise.types import Interval, Result, interval_columns
from curvewise.variance.difference import Difference
from curvewise.variance.wording import said, said_interval, said_pvalue


@dataclass(frozen=True, eq=False)
class RunComparison(Result):
    """How training a compares with training b.

    Attributes
    ----------
    a, b : str
        Their names.
    runs : tuple of int
        Runs of a and of b.
    examples : int or None
        Size of the test set; None where only scores are known.
    paired : bool
        Whether run r of a goes with run r of b.
    difference : Interval
        Error of a minus error of b on the distribution, runs and examples both sampled. Below 0,
        a is better, whatever the unit. Limits are NaN where only scores are known.
    pvalue : float
        Of ``difference``, two-sided, by t.
    test_set_difference : Interval
        The same for this test set: only runs are sampled.
    test_set_pvalue : float
        Two-sided, by permutation of runs (by flips of signs where they are paired), and not less
        than by t; by t alone where there are too few runs to permute.
    probability_better : Interval
        The chance that a random run of a has a lower test error than a random run of b.
    distribution_probability_better : Interval
        The same for true error, for normal run effects.
    margin : float or None
        Differences up to this size do not matter.
    equivalence_pvalue : float
        Against the hypothesis that the difference is ``margin`` or more (two one-sided tests).
    verdict : {"a better", "b better", "equivalent", "undecided"}
        On the distribution, or on the test set where nothing else is known.
    test_set_verdict : {"a better", "b better", "undecided"}
        On this test set.
    scope : {"distribution", "test set"}
        What ``verdict`` is about.
    method : {"both sampled", "one run", "scores"}
        What was known.
    """

    a: str
    b: str
    runs: tuple[int, int]
    examples: int | None
    paired: bool
    difference: Interval
    pvalue: float
    test_set_difference: Interval
    test_set_pvalue: float
    probability_better: Interval
    distribution_probability_better: Interval
    margin: float | None
    equivalence_pvalue: float
    verdict: str
    test_set_verdict: str
    scope: str
    method: str
    unit: str
    level: float
    warnings: tuple[str, ...]
    _parts: Difference

    @property
    def worse(self) -> bool:
        """Whether a is shown to be worse than b by more than the margin."""
        return self._shown and self._decisive.low > (self.margin or 0.0)

    @property
    def better(self) -> bool:
        """Whether a is shown to be better than b by more than the margin."""
        return self._shown and self._decisive.high < -(self.margin or 0.0)

    @property
    def maybe_worse(self) -> bool:
        """Whether it is not excluded that a is worse than b by more than the margin."""
        excluded = self._decisive.high <= (self.margin or 0.0) or self.verdict == "equivalent"
        return not (self._parts.conclusive and excluded)

    @property
    def _shown(self) -> bool:
        permuted = self.scope == "distribution" or self.test_set_pvalue < 1 - self.level
        return self._parts.conclusive and permuted

    @property
    def _decisive(self) -> Interval:
        return self.difference if self.scope == "distribution" else self.test_set_difference

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per quantity: estimate, low, high, p-value."""
        rows = {
            "difference on the distribution": (self.difference, self.pvalue),
            "difference on this test set": (self.test_set_difference, self.test_set_pvalue),
            f"chance that {self.a} beats {self.b}, test set": (self.probability_better, math.nan),
            f"chance that {self.a} beats {self.b}, distribution": (
                self.distribution_probability_better,
                math.nan,
            ),
        }
        intervals = {name: interval for name, (interval, _) in rows.items()}
        return {**interval_columns(intervals), "p": [p for _, p in rows.values()]}

    def summary(self) -> str:
        """The verdict in a few sentences."""
        return " ".join(
            [self._verdict(), *self._evidence(), *(f"Beware: {w}" for w in self.warnings)]
        )

    def _verdict(self) -> str:
        if not self._parts.conclusive:
            return self._of_networks()
        text = {"equivalent": self._equal, "undecided": self._open}.get(self.verdict, self._clear)()
        only_here = self.verdict not in ("a better", "b better") and not (
            self.verdict == "equivalent" and self._better_of(self._decisive)
        )
        if self.scope == "test set" or self.test_set_verdict == "undecided" or not only_here:
            return text
        return f"{text} On this test set {_order(self, self.test_set_verdict)}, no more."

    def _clear(self) -> str:
        return f"{_order(self, self.verdict)} on the {self.scope}."

    def _open(self) -> str:
        return f"{self.a} and {self.b} cannot be told apart on the {self.scope}."

    def _equal(self) -> str:
        text = (
            f"{self.a} and {self.b} are equivalent on the {self.scope}: they differ by less than"
            f" {said(self.margin or 0.0, self.unit)} ({said_pvalue(self.equivalence_pvalue)})."
        )
        shown = self._better_of(self._decisive)
        return f"{text} Within that, {shown}." if shown else text

    def _better_of(self, interval: Interval) -> str:
        """Which is better by an interval, or nothing."""
        if interval.low <= 0 <= interval.high:
            return ""
        return _order(self, "a better" if interval.high < 0 else "b better")

    def _of_networks(self) -> str:
        better = self._better_of(self.difference)
        told = f"of these networks, {better}" if better else "these networks cannot be told apart"
        return (
            f"One run does not show which training is better, {self.a} or {self.b}; {told} on the"
            " distribution."
        )

    def _evidence(self) -> list[str]:
        unit = self.unit
        here = f"{said_interval(self.test_set_difference, unit)} on this test set"
        known = self.runs != (1, 1) and not math.isnan(self.test_set_pvalue)
        here += f" ({said_pvalue(self.test_set_pvalue)})" if known else ""
        there = (
            f"{said_interval(self.difference, unit)} on the distribution"
            f" ({said_pvalue(self.pvalue)}) and "
            if self.scope == "distribution"
            else ""
        )
        what = unit if unit in ("loss", "score") else "error"
        # Errors of a minus errors of b: of scores, which are better high, the other way round.
        one, two = (self.b, self.a) if unit == "score" else (self.a, self.b)
        pairs = "Runs are paired. " if self.paired else ""
        said_so = [f"{pairs}The {what} of {one} minus that of {two} is {there}{here}."]
        chance = self.probability_better
        if min(self.runs) > 1:
            said_so.append(
                f"A random run of {self.a} beats one of {self.b} on this test set with"
                f" probability {chance.estimate:.2f} [{chance.low:.2f}, {chance.high:.2f}]."
            )
        if self.margin is not None and self.verdict != "equivalent" and self._parts.conclusive:
            said_so.append(
                f"That they differ by less than {said(self.margin, unit)} is not shown"
                f" ({said_pvalue(self.equivalence_pvalue)})."
            )
        return said_so


def _order(c: RunComparison, verdict: str) -> str:
    better, worse = (c.a, c.b) if verdict == "a better" else (c.b, c.a)
    return f"{better} is better than {worse}"
