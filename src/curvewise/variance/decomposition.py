"""What a decomposition of the variance between runs says."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from curvewise.types import FloatArray, Interval, Result, interval_columns
from curvewise.variance.anova import Split
from curvewise.variance.tails import ENOUGH
from curvewise.variance.totals import Totals
from curvewise.variance.wording import said, said_interval, said_pvalue

WIDER = 1.1
"""The robust interval is told beside the F interval when it is wider by this factor."""


@dataclass(frozen=True, eq=False)
class VarianceDecomposition(Result):
    """Where the differences between runs of one training come from.

    Attributes
    ----------
    runs, examples : int
        The size of the experiment.
    repeats : int
        Samples of an example in each run.
    groups : int or None
        Number of groups of examples that belong together.
    error : Interval
        Mean error on the distribution; runs and examples both count as sampled.
    test_set_std : float
        Standard deviation between runs of the error on this test set.
    test_set_interval : Interval
        Its interval, for normal run errors.
    independent_std : float
        What it would be if examples erred independently of each other.
    distribution_variance : float
        Variance between runs of the true error, unbiased: it may be negative.
    distribution_std : float
        Its root; 0 where the variance is negative.
    distribution_interval : Interval
        The interval of ``distribution_std``.
    robust_interval : Interval
        The same by a closed form that allows for heavy tails and for the sampling of examples,
        which the F interval does not count. From totals alone the examples are not counted.
    distribution_share : float
        Part of the test-set variance that is real: Cronbach's α; 0 where the variance is negative.
    share_interval : Interval
        Its interval (Feldt), for normal run effects.
    independence_pvalue : float
        Of Cochran's Q: how often independent errors would vary as much.
    components : dict
        Variances of a single error: between runs, examples, run × example, repeats. Unbiased, so
        that one may be negative.
    excess_kurtosis : float
        Of run errors: 0 for normal ones.
    method : {"F", "bootstrap", "robust"}
        How ``distribution_interval`` was made.
    unit : str
        "fraction" for errors, "loss" for losses, "score" for scores, whose ``error`` is negated.
    """

    runs: int
    examples: int
    repeats: int
    groups: int | None
    error: Interval
    test_set_std: float
    test_set_interval: Interval
    independent_std: float
    distribution_variance: float
    distribution_std: float
    distribution_interval: Interval
    robust_interval: Interval
    distribution_share: float
    share_interval: Interval
    independence_pvalue: float
    components: Mapping[str, float]
    excess_kurtosis: float
    method: str
    unit: str
    level: float
    warnings: tuple[str, ...]
    _totals: Totals
    _split: Split

    @property
    def run_errors(self) -> FloatArray:
        """Mean error of each run."""
        return self._totals.run

    @property
    def example_errors(self) -> FloatArray:
        """Mean error of each example over runs."""
        return self._totals.example

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per quantity: estimate, low, high."""
        nothing = Interval(self.independent_std, math.nan, math.nan)
        rows = {
            "error": self.error,
            "test-set std": self.test_set_interval,
            "independent std": nothing,
            "distribution std": self.distribution_interval,
            "… robust": self.robust_interval,
            "distribution share": self.share_interval,
        }
        return interval_columns(rows)

    def summary(self) -> str:
        """The decomposition in a few sentences."""
        unit, what = self.unit, self.unit if self.unit in ("loss", "score") else "error"
        share = self.distribution_share
        real = (
            ("The runs do not differ at all on this test set." if self.independent_std == 0 else "")
            or "The runs have the same error on this test set."
            if math.isnan(share)
            else f"So {share:.0%} [{self.share_interval.low:.0%},"
            f" {self.share_interval.high:.0%}] of the test-set variance is a real difference"
            " between runs."
        )
        apart = "groups of examples" if self.groups else "examples"
        independent = "differ from" if self.independence_pvalue < 0.05 else "agree with"
        return " ".join(
            [
                f"Over {self.runs:,} runs and {self.examples:,} examples{self._design()} the mean"
                f" {what} is {said_interval(self._level(), unit)}{self._assumed()}.",
                f"Between runs the test {what} has a standard deviation of"
                f" {said(self.test_set_std, unit)}; if {apart} varied independently it would be"
                f" {said(self.independent_std, unit)}.",
                "On the distribution, the standard deviation between runs is"
                f" {said_interval(self.distribution_interval, unit)}"
                f"{self._supposed()}{self._wider()}.",
                real,
                f"The runs {independent} independent errors (Cochran's Q,"
                f" {said_pvalue(self.independence_pvalue)}).",
                *(f"Beware: {w}" for w in self.warnings),
            ]
        )

    def _level(self) -> Interval:
        """The mean error, or the mean score, which is held as a negative error."""
        e = self.error
        return Interval(-e.estimate, -e.high, -e.low, e.level) if self.unit == "score" else e

    def _assumed(self) -> str:
        text = " (1 was read as an error: pass kind='correct' if it means right)"
        return text if self._totals.assumed else ""

    def _supposed(self) -> str:
        few = self.method == "F" and self.runs < ENOUGH
        return " (if runs are normal, which so few do not show)" if few else ""

    def _wider(self) -> str:
        """The interval without what F takes for granted, where that makes a difference."""
        robust = self.robust_interval
        if self.method != "F" or robust.width <= WIDER * self.distribution_interval.width:
            return ""
        low, high = said(robust.low, self.unit), said(robust.high, self.unit)
        return f"; [{low}, {high}] if runs need not be normal nor shift all examples alike"

    def _design(self) -> str:
        parts = [f"in {self.groups:,} groups"] if self.groups else []
        parts += [f"sampled {self.repeats} times each"] if self.repeats > 1 else []
        return f" ({', '.join(parts)})" if parts else ""
