"""What part of the variance between runs is real, and what is the finite test set."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.types import (
    FloatArray,
    Interval,
    Predictions,
    Result,
    Unit,
    as_floats,
    as_predictions,
)
from curvewise.variance.anova import (
    Split,
    f_interval,
    mean_interval,
    share_interval,
    split_variance,
    std_interval,
)
from curvewise.variance.bootstrap import bootstrap_variances, default_resamples
from curvewise.variance.tails import Tails, judge_tails
from curvewise.variance.totals import Totals, measure_totals, totals_of_counts
from curvewise.variance.wording import check_level, said, said_interval, said_pvalue

INTERVALS = ("auto", "F", "bootstrap")


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
    distribution_share : float
        Part of the test-set variance that is real: Cronbach's α. Signed like the variance.
    share_interval : Interval
        Its interval (Feldt), for normal run effects.
    independence_pvalue : float
        Of Cochran's Q: how often independent errors would vary as much.
    components : dict
        Variances of a single error: between runs, examples, run × example, repeats.
    method : str
        How ``distribution_interval`` was made: "F" or "bootstrap".
    unit : str
        "fraction" for errors, "loss" for losses.
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
            "distribution share": self.share_interval,
        }
        return {
            "quantity": list(rows),
            "estimate": [i.estimate for i in rows.values()],
            "low": [i.low for i in rows.values()],
            "high": [i.high for i in rows.values()],
        }

    def summary(self) -> str:
        """The decomposition in a few sentences."""
        unit, what = self.unit, "loss" if self.unit == "loss" else "error"
        share = self.distribution_share
        real = (
            "The runs do not differ at all on this test set."
            if math.isnan(share)
            else f"So {min(1.0, max(0.0, share)):.0%} of the test-set variance is a real difference"
            " between runs."
        )
        apart = "groups of examples" if self.groups else "examples"
        independent = "differ from" if self.independence_pvalue < 0.05 else "agree with"
        return " ".join(
            [
                f"Over {self.runs:,} runs and {self.examples:,} examples{self._design()} the mean"
                f" {what} is {said_interval(self.error, unit)}.",
                f"Between runs the test {what} has a standard deviation of"
                f" {said(self.test_set_std, unit)}; if {apart} varied independently it would be"
                f" {said(self.independent_std, unit)}.",
                "On the distribution, the standard deviation between runs is"
                f" {said_interval(self.distribution_interval, unit)}.",
                real,
                f"The runs {independent} independent errors (Cochran's Q,"
                f" {said_pvalue(self.independence_pvalue)}).",
                *(f"Beware: {w}" for w in self.warnings),
            ]
        )

    def _design(self) -> str:
        parts = [f"in {self.groups:,} groups"] if self.groups else []
        parts += [f"sampled {self.repeats} times each"] if self.repeats > 1 else []
        return f" ({', '.join(parts)})" if parts else ""


def decompose_variance(
    predictions: Predictions | ArrayLike,
    labels: ArrayLike | None = None,
    *,
    kind: str | None = None,
    axes: Sequence[str] | None = None,
    groups: ArrayLike | None = None,
    interval: str = "auto",
    level: float = 0.95,
    resamples: int | None = None,
    rng: int | np.random.Generator = 0,
) -> VarianceDecomposition:
    """Split the variance between runs into what is real and what is the finite test set.

    Parameters
    ----------
    predictions : Predictions or array_like, shape (runs, examples)
        Predicted labels, 0/1 errors, losses; (runs, examples, repeats) with ``axes``.
    labels : array_like, shape (examples,), optional
        True classes; needed for predicted labels.
    kind : {"labels", "errors", "correct", "losses", "probabilities"}, optional
        What the values are, where they do not say it.
    axes : sequence of str, optional
        What the axes are, where the shape does not say it: ("examples", "runs"), say.
    groups : array_like, shape (examples,), optional
        Which examples belong together. They are taken as one unit of sampling: only different
        groups are supposed to err independently.
    interval : {"auto", "F", "bootstrap"}
        Of the distribution-wise standard deviation. "auto" takes the F interval, and the two-way
        bootstrap where the runs have heavy tails and there are enough of them.
    level : float
        Coverage of the intervals.
    resamples : int, optional
        Of the bootstrap: 2,000 by default, fewer for very large data.
    rng : int or Generator
        Determines the bootstrap.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> errors = rng.random((50, 2000)) < rng.random(2000) ** 4
    >>> v = decompose_variance(errors)
    >>> round(v.test_set_std, 4), round(v.independent_std, 4), v.distribution_std
    (0.0063, 0.0066, 0.0)
    """
    given = as_predictions(predictions, labels, kind=kind, axes=axes, groups=groups)
    if interval not in INTERVALS:
        raise InputError(f"interval={interval!r} is not known: use one of {', '.join(INTERVALS)}.")
    check_level(level)
    totals = measure_totals(given)
    split = split_variance(totals)
    tails = judge_tails(totals.run)
    method = interval if interval != "auto" else tails.method
    if method == "bootstrap":
        count = resamples or default_resamples(given.runs, totals.units)
        drawn = bootstrap_variances(given, count, np.random.default_rng(rng))
        limits = _percentiles(drawn, level)
    else:
        limits = f_interval(split, level)
    return _result(totals, split, tails, limits, method, interval, level)


def decompose_totals(
    run_errors: ArrayLike,
    example_counts: ArrayLike,
    *,
    unit: str = "fraction",
    higher_is_better: bool = False,
    level: float = 0.95,
) -> VarianceDecomposition:
    """Decompose the variance from totals alone: one error per run, one count per example.

    Parameters
    ----------
    run_errors : array_like, shape (runs,)
        Test error of each run (its accuracy, with ``higher_is_better``).
    example_counts : array_like, shape (examples,)
        In how many of the runs each example was wrong (right, with ``higher_is_better``).
    unit : {"fraction", "percent"}
        Of ``run_errors``. The result is in fractions.
    higher_is_better : bool
        Whether accuracies and counts of right answers are given.
    level : float
        Coverage of the intervals.

    Examples
    --------
    >>> v = decompose_totals([0.5, 0.25, 0.75, 0.5, 0.5], [0, 5, 3, 2])
    >>> v.runs, v.examples, round(v.test_set_std, 3)
    (5, 4, 0.177)
    """
    check_level(level)
    scale = Unit(unit, higher_is_better)
    if not scale.bounded:
        raise InputError(f"unit={unit!r}: totals are of 0/1 errors, in fraction or percent.")
    errors = scale.errors(run_errors, "run_errors").ravel() / scale.top
    counts = as_floats(example_counts, "example_counts").ravel()
    _check_totals(errors, counts)
    wrong = len(errors) - counts if higher_is_better else counts
    _check_agreement(errors, wrong)
    totals = totals_of_counts(errors, wrong)
    split = split_variance(totals)
    tails = judge_tails(totals.run)
    return _result(totals, split, tails, f_interval(split, level), "F", "auto", level)


def _check_totals(errors: FloatArray, counts: FloatArray) -> None:
    if len(errors) < 2 or len(counts) < 2:
        raise InputError(
            f"run_errors has {len(errors)} run(s) and example_counts {len(counts)} example(s): at"
            " least two of each are needed."
        )
    if not np.isfinite(counts).all() or (counts != np.round(counts)).any():
        raise InputError("example_counts must hold whole numbers: in how many runs it was wrong.")
    if counts.min() < 0 or counts.max() > len(errors):
        raise InputError(
            f"example_counts runs from {counts.min():g} to {counts.max():g}; with"
            f" {len(errors)} runs it must lie between 0 and {len(errors)}."
        )


def _check_agreement(errors: FloatArray, wrong: FloatArray) -> None:
    by_run, by_example = float(errors.mean()), float(wrong.mean()) / len(errors)
    if abs(by_run - by_example) > 1e-3:
        raise InputError(
            f"run_errors has a mean of {by_run:.4f} and example_counts one of {by_example:.4f}:"
            " they are not of the same runs and examples, or one counts right answers"
            " (higher_is_better=True is for both)."
        )


def _percentiles(drawn: FloatArray, level: float) -> tuple[float, float]:
    tail = (1 - level) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return max(0.0, float(low)), max(0.0, float(high))


def _result(
    totals: Totals,
    split: Split,
    tails: Tails,
    limits: tuple[float, float],
    method: str,
    asked: str,
    level: float,
) -> VarianceDecomposition:
    std = math.sqrt(max(0.0, split.distribution))
    notes = _warnings(totals, split, tails, method, asked)
    for text in notes:
        warnings.warn(text, CurvewiseWarning, stacklevel=3)
    share = share_interval(split, level)
    parts = {"run": split.distribution, "example": split.example}
    parts["run × example"] = split.interaction
    if totals.repeats > 1:
        parts["repeat"] = split.repeat
    return VarianceDecomposition(
        runs=totals.runs,
        examples=totals.examples,
        repeats=totals.repeats,
        groups=None if totals.groups is None else totals.units,
        error=mean_interval(totals, split, level),
        test_set_std=math.sqrt(split.test_set),
        test_set_interval=std_interval(split.test_set, totals.runs - 1, level),
        independent_std=math.sqrt(split.independent),
        distribution_variance=split.distribution,
        distribution_std=std,
        distribution_interval=Interval(std, math.sqrt(limits[0]), math.sqrt(limits[1]), level),
        distribution_share=share.estimate,
        share_interval=share,
        independence_pvalue=split.independence_pvalue,
        components=parts,
        excess_kurtosis=tails.excess_kurtosis,
        method=method,
        unit="fraction" if totals.binary else "loss",
        level=level,
        warnings=tuple(notes),
        _totals=totals,
        _split=split,
    )


def _warnings(totals: Totals, split: Split, tails: Tails, method: str, asked: str) -> list[str]:
    said_so = tails.warnings(method, asked)
    if totals.groups is not None and split.units < 10:
        said_so.append(
            f"the groups weigh as much as {split.units:.1f} of equal size: too few to tell the"
            " distribution from this test set."
        )
    if totals.twins:
        said_so.append(
            f"{totals.twins} run(s) repeat another run on every example. If that is the same run"
            " given twice, leave it out: the intervals count it as new."
        )
    return said_so
