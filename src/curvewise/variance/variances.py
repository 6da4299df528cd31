"""Does one training vary more between runs than another, on this test set and in truth."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.tables import number
from curvewise.types import (
    FloatArray,
    Interval,
    Predictions,
    Result,
    asked_of,
    check_level,
    interval_columns,
)
from curvewise.variance.anova import Split, f_interval, normal_std, std_interval
from curvewise.variance.decomposition import VarianceDecomposition
from curvewise.variance.ratio import DRAWS, measure_split, variance_ratio
from curvewise.variance.tails import FEWEST, judge_tails
from curvewise.variance.totals import Totals
from curvewise.variance.wording import said_interval, said_pvalue


@dataclass(frozen=True, eq=False)
class VarianceComparison(Result):
    """Whether runs of training a differ more from each other than runs of training b.

    Attributes
    ----------
    names : tuple of str
        What a and b are called.
    runs, examples : tuple of int
        The sizes of the two experiments.
    test_set_std : tuple of Interval
        Standard deviation of test error between runs, of a and of b.
    distribution_std : tuple of Interval
        Standard deviation of true error between runs, of a and of b.
    test_set_ratio : Interval
        That of a over that of b, for test error.
    test_set_pvalue : float
        Two-sided, against equal variances of test error.
    distribution_ratio : Interval
        That of a over that of b, for true error. Limits of 0 and ∞ say that the data leave it
        open.
    distribution_pvalue : float
        Two-sided, against equal variances of true error.
    excess_kurtosis : float
        Of run errors, both together: above 0 it widens the intervals of the ratios.
    unit : {"fraction", "loss", "score"}
        Of the standard deviations.
    level : float
        Coverage of the intervals; a verdict is reached at ``1 - level``.
    """

    names: tuple[str, str]
    runs: tuple[int, int]
    examples: tuple[int, int]
    test_set_std: tuple[Interval, Interval]
    distribution_std: tuple[Interval, Interval]
    test_set_ratio: Interval
    test_set_pvalue: float
    distribution_ratio: Interval
    distribution_pvalue: float
    excess_kurtosis: float
    unit: str
    level: float
    warnings: tuple[str, ...]
    _run_errors: tuple[FloatArray, FloatArray]

    @property
    def verdict(self) -> str:
        """Which training varies more in true error, or that this was not shown."""
        if self.distribution_pvalue >= 1 - self.level:
            return "no difference shown"
        return f"{self.names[0 if self._a_varies_more() else 1]} varies more"

    @property
    def test_set_verdict(self) -> str:
        """Which training varies more in test error, or that this was not shown."""
        if self.test_set_pvalue >= 1 - self.level:
            return "no difference shown"
        return f"{self.names[0 if self.test_set_ratio.estimate > 1 else 1]} varies more"

    @property
    def run_errors(self) -> tuple[FloatArray, FloatArray]:
        """Test error of each run of a and of b."""
        return self._run_errors

    def _a_varies_more(self) -> bool:
        a, b = self.distribution_std
        return a.estimate > b.estimate

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per quantity: estimate, low, high, p-value where there is one."""
        a, b = self.names
        rows = {
            f"test-set std of {a}": self.test_set_std[0],
            f"test-set std of {b}": self.test_set_std[1],
            "test-set ratio": self.test_set_ratio,
            f"distribution std of {a}": self.distribution_std[0],
            f"distribution std of {b}": self.distribution_std[1],
            "distribution ratio": self.distribution_ratio,
        }
        pvalues = {
            "test-set ratio": self.test_set_pvalue,
            "distribution ratio": self.distribution_pvalue,
        }
        pvalue = [pvalues.get(name, math.nan) for name in rows]
        return {**interval_columns(rows), "p": pvalue}

    def summary(self) -> str:
        """The comparison in a few sentences."""
        a, b = self.names
        parts = [
            f"Over {self.runs[0]:,} runs of {a} and {self.runs[1]:,} of {b}:",
            self._sentence("On this test set", self.test_set_std, self.test_set_ratio),
            f"({said_pvalue(self.test_set_pvalue)}: {self.test_set_verdict}).",
            self._sentence("On the distribution", self.distribution_std, self.distribution_ratio),
            f"({said_pvalue(self.distribution_pvalue)}: {self.verdict}).",
        ]
        if self.verdict == "no difference shown":
            parts.append(
                "That no difference was shown does not mean that there is none: the interval says"
                " which ratios remain possible."
            )
        return " ".join([*parts, *(f"Beware: {w}" for w in self.warnings)])

    def _sentence(self, where: str, std: tuple[Interval, Interval], ratio: Interval) -> str:
        one, two = (said_interval(s, self.unit) for s in std)
        return (
            f"{where}, the standard deviation between runs is {one} for {self.names[0]} and {two}"
            f" for {self.names[1]}, a ratio of {said_ratio(ratio)}"
        )


def compare_variances(
    a: Predictions | VarianceDecomposition | ArrayLike,
    b: Predictions | VarianceDecomposition | ArrayLike,
    labels: ArrayLike | None = None,
    *,
    kind: str | None = None,
    axes: Sequence[str] | None = None,
    groups: ArrayLike | None = None,
    names: tuple[str, str] = ("a", "b"),
    level: float = 0.95,
    draws: int = DRAWS,
    rng: int | np.random.Generator = 0,
) -> VarianceComparison:
    """Compare how much two trainings vary between runs.

    Parameters
    ----------
    a, b : Predictions, VarianceDecomposition or array_like, shape (runs, examples)
        Of two trainings whose runs have nothing to do with each other. Two test sets may be
        compared (a shifted one with the usual one, say), each in its own Predictions.
    labels : array_like, shape (examples,), optional
        True classes; needed for predicted labels.
    kind, axes, groups
        As in :func:`decompose_variance`.
    names : tuple of str
        What to call them.
    level : float
        Coverage of the intervals.
    draws : int
        For the interval of the ratio on the distribution.
    rng : int or Generator
        Determines the draws.

    Examples
    --------
    >>> rng = np.random.default_rng(2)
    >>> quiet = rng.random((40, 500)) < 0.1
    >>> loud = rng.random((40, 500)) < rng.normal(0.1, 0.03, (40, 1))
    >>> c = compare_variances(loud, quiet, names=("loud", "quiet"))
    >>> c.verdict, round(c.test_set_ratio.estimate, 2)
    ('loud varies more', 2.1)
    """
    check_level(level)
    options = {"kind": kind, "axes": axes, "groups": groups}
    one, two = (
        measure_split(given, labels, name, **asked_of(given, options))
        for given, name in ((a, "a"), (b, "b"))
    )
    unit = one[0].unit
    if unit != two[0].unit:
        raise InputError(
            f"a and b are not of one kind: the unit of a is {unit!r}, that of b {two[0].unit!r}."
        )
    runs = one[0].run, two[0].run
    ratio = variance_ratio(one[1], two[1], runs, level=level, draws=draws, rng=rng)
    notes = _notes((one[0], two[0]), names)
    for text in notes:
        warnings.warn(text, CurvewiseWarning, stacklevel=2)
    return VarianceComparison(
        names=names,
        runs=(len(runs[0]), len(runs[1])),
        examples=(one[0].examples, two[0].examples),
        test_set_std=(observed_std(one[1], level, unit), observed_std(two[1], level, unit)),
        distribution_std=(true_std(one[1], level, unit), true_std(two[1], level, unit)),
        test_set_ratio=ratio.test_set,
        test_set_pvalue=ratio.test_set_pvalue,
        distribution_ratio=ratio.distribution,
        distribution_pvalue=ratio.distribution_pvalue,
        excess_kurtosis=ratio.excess_kurtosis,
        unit=unit,
        level=level,
        warnings=tuple(notes),
        _run_errors=runs,
    )


def observed_std(split: Split, level: float, unit: str) -> Interval:
    """Standard deviation of test error between runs, by χ²."""
    return normal_std(split.test_set, split.runs - 1, level, unit)


def true_std(split: Split, level: float, unit: str) -> Interval:
    """Standard deviation of true error between runs, by F."""
    low, high = f_interval(split, level)
    estimate = math.sqrt(max(0.0, split.distribution))
    return std_interval(estimate, math.sqrt(low), math.sqrt(high), level, unit)


def said_ratio(ratio: Interval) -> str:
    """A ratio of standard deviations with its limits.

    >>> said_ratio(Interval(1.234, 0.5, float("inf")))
    '1.23 [0.50, ∞]'
    """
    estimate, low, high = (
        f"{x:.2f}" if math.isfinite(x) else number(x)
        for x in (ratio.estimate, ratio.low, ratio.high)
    )
    return f"{estimate} [{low}, {high}]"


def tail_notes(name: str, run_errors: FloatArray) -> list[str]:
    """What few runs or heavy tails mean for ratios and for each standard deviation."""
    tails = judge_tails(run_errors)
    if tails.runs < FEWEST:
        return [f"{name} has {tails.runs} runs: its intervals lean on run effects being normal."]
    if not tails.heavy:
        return []
    return [
        f"run errors of {name} have heavy tails (excess kurtosis {tails.excess_kurtosis:.1f}):"
        " intervals of ratios allow for that, those of its standard deviations do not."
    ]


def _notes(totals: tuple[Totals, Totals], names: tuple[str, str]) -> list[str]:
    said_so = []
    for one, name in zip(totals, names, strict=True):
        said_so += tail_notes(name, one.run)
    if totals[0].examples != totals[1].examples:
        said_so.append(
            f"{names[0]} has {totals[0].examples:,} examples and {names[1]}"
            f" {totals[1].examples:,}: their test-set deviations are not of one test set, and only"
            " those on the distribution compare."
        )
    return said_so
