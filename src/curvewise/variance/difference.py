"""The difference of two trainings, with its variance on this test set and on the distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from curvewise.errors import InputError
from curvewise.types import FloatArray, Interval, Predictions, Unit
from curvewise.variance.anova import Split, example_variance, satterthwaite, split_variance
from curvewise.variance.totals import Totals, measure_totals

MANY = 1e9
"""Degrees of freedom of a variance that is known."""


@dataclass(frozen=True)
class Estimate:
    """A number with a variance and the degrees of freedom of that variance."""

    value: float
    variance: float
    degrees: float

    def interval(self, level: float) -> Interval:
        """The t interval; unknown limits where the variance is not known."""
        if math.isnan(self.variance):
            return Interval(self.value, math.nan, math.nan, level)
        half = float(stdtrit(self.degrees, (1 + level) / 2)) * math.sqrt(self.variance)
        return Interval(self.value, self.value - half, self.value + half, level)

    def tail(self, limit: float, above: bool = True) -> float:
        """One-sided p-value: how often so large a value, if the truth were ``limit`` or less.

        With ``above=False``, how often so small a one if it were ``limit`` or more.
        """
        if math.isnan(self.variance):
            return math.nan
        gap = (self.value - limit) * (1 if above else -1)
        if self.variance == 0:
            return 0.5 if gap == 0 else float(gap < 0)
        return float(stdtr(self.degrees, -gap / math.sqrt(self.variance)))

    @property
    def pvalue(self) -> float:
        """Two-sided, against 0."""
        return min(1.0, 2 * self.tail(0.0, above=self.value > 0))


@dataclass(frozen=True, eq=False)
class Difference:
    """Error of a minus error of b.

    Attributes
    ----------
    test_set : Estimate
        The examples taken as given: only the runs are sampled.
    distribution : Estimate
        Runs and examples both sampled.
    a, b : ndarray
        Error of each run on the test set.
    splits : tuple of Split, optional
        The variance decompositions of a and b.
    paired : bool
        Whether run r of a goes with run r of b.
    method : {"both sampled", "one run", "scores"}
        What was known.
    """

    test_set: Estimate
    distribution: Estimate
    a: FloatArray
    b: FloatArray
    splits: tuple[Split, Split] | None = None
    paired: bool = False
    method: str = "both sampled"

    @property
    def scope(self) -> str:
        """What can be judged: the distribution, or this test set where only scores are known."""
        return "test set" if self.method == "scores" else "distribution"

    @property
    def decisive(self) -> Estimate:
        """The estimate for :attr:`scope`."""
        return self.test_set if self.method == "scores" else self.distribution


class _Differences:
    """Errors of a minus errors of b, run by run, read a slice at a time."""

    dtype = np.dtype(np.float64)

    def __init__(self, a: Predictions, b: Predictions) -> None:
        self.a, self.b = a, b
        self.shape = a.shape

    def __getitem__(self, rows: slice) -> FloatArray:
        one = self.a.errors_of(rows).astype(np.float64)
        return one - self.b.errors_of(rows)


def check_same_examples(a: Predictions, b: Predictions) -> None:
    """A comparison is on one test set."""
    if a.examples != b.examples:
        raise InputError(
            f"a has {a.examples:,} examples and b has {b.examples:,}: compare them on the same"
            " test set."
        )
    if (a.kind == "losses") != (b.kind == "losses"):
        raise InputError(f"a is of kind {a.kind!r} and b of kind {b.kind!r}: pass the same.")
    said = {"true_classes": "labels", "example_ids": "example_ids", "groups": "groups"}
    for name, word in said.items():
        one, two = getattr(a, name), getattr(b, name)
        if one is not None and two is not None and not np.array_equal(one, two):
            raise InputError(f"a and b have different {word}: they are not of one test set.")


def is_scores(values: Any) -> bool:
    """Whether these are one score per run."""
    return not isinstance(values, Predictions) and np.ndim(values) == 1


def check_scores(values: Any, unit: Unit, argument: str) -> FloatArray:
    """One score per run as errors, losses or negative scores: below is better throughout."""
    if not is_scores(values):
        raise InputError(f"{argument} is not one score per run, and the other is: pass the same.")
    if len(values) < 2:
        raise InputError(
            f"{argument} holds {len(values)} score(s): the spread between runs needs two or more."
        )
    errors = unit.errors(values, argument)
    return -errors if unit.name == "score" else errors


def predictions_difference(
    a: Predictions, b: Predictions, paired: bool | None, distribution_std: float = 0.0
) -> Difference:
    """The difference by what there is: paired runs, unpaired runs, one run."""
    check_same_examples(a, b)
    a, b, together = _match(a, b, paired)
    if min(a.runs, b.runs) == 1:
        return single_run_difference(a, b, distribution_std)
    if together:
        return paired_difference(a, b)
    return unpaired_difference(measure_totals(a), measure_totals(b))


def _match(
    a: Predictions, b: Predictions, paired: bool | None
) -> tuple[Predictions, Predictions, bool]:
    """Decide on pairing, and bring the runs of b into the order of those of a."""
    if a.run_ids is None or b.run_ids is None or paired is False:
        return a, b, bool(paired)
    place = {name: i for i, name in enumerate(b.run_ids.tolist())}
    order = [place.get(name, -1) for name in a.run_ids.tolist()]
    if -1 in order or a.runs != b.runs:
        if paired:
            raise InputError("paired=True, but a and b do not name the same runs in run_ids.")
        return a, b, False
    return a, b if order == sorted(order) else b.subset(runs=order), True


def paired_difference(a: Predictions, b: Predictions) -> Difference:
    """Run r of a goes with run r of b: the decomposition of their differences."""
    if a.runs != b.runs:
        raise InputError(f"paired=True, but a has {a.runs} runs and b has {b.runs}.")
    gaps = Predictions(_Differences(a, b), "losses", groups=_groups(a, b))
    totals = measure_totals(gaps)
    split = split_variance(totals)
    value, runs = float(totals.run.mean()), totals.runs
    by_run = split.test_set / runs
    by_example, units = example_variance(totals.example, totals.groups)
    variance = max(by_run, by_example, by_run + by_example - split.noise / runs)
    degrees = _degrees(variance, [by_run, by_example], [runs - 1, units - 1])
    one, two = measure_totals(a), measure_totals(b)
    return Difference(
        Estimate(value, by_run, runs - 1),
        Estimate(value, variance, degrees),
        one.run,
        two.run,
        (split_variance(one), split_variance(two)),
        paired=True,
    )


def unpaired_difference(a: Totals, b: Totals) -> Difference:
    """Runs of a and of b have nothing to do with each other; the examples are the same."""
    splits = split_variance(a), split_variance(b)
    value = float(a.run.mean() - b.run.mean())
    by_run = [s.test_set / s.runs for s in splits]
    welch = sum(by_run)
    by_example, units = example_variance(a.example - b.example, a.groups)
    # What varies with the run in each cell is in both parts: count it once.
    twice = sum(s.noise / s.runs for s in splits)
    variance = max(welch, by_example, welch + by_example - twice)
    runs = [s.runs - 1 for s in splits]
    return Difference(
        Estimate(value, welch, _degrees(welch, by_run, runs)),
        Estimate(value, variance, _degrees(variance, [*by_run, by_example], [*runs, units - 1])),
        a.run,
        b.run,
        splits,
    )


def single_run_difference(a: Predictions, b: Predictions, distribution_std: float) -> Difference:
    """One run of a or of b: the variance between runs is taken from calibration, not measured."""
    parts = [_run_part(p) for p in (a, b)]
    one, two = (_example_means(p) for p in (a, b))
    value = float(one.mean() - two.mean())
    by_example, units = example_variance(one - two, _codes(_groups(a, b)))
    real = sum(distribution_std**2 / p.runs for p in (a, b))
    return Difference(
        Estimate(value, min(sum(parts), by_example) + real, units - 1),
        Estimate(value, by_example + real, units - 1),
        a.errors().mean(axis=1),
        b.errors().mean(axis=1),
        method="one run",
    )


def score_difference(a: FloatArray, b: FloatArray, paired: bool) -> Difference:
    """One score per run: what the test set's examples add is not known."""
    if paired:
        if len(a) != len(b):
            raise InputError(f"paired=True, but a has {len(a)} runs and b has {len(b)}.")
        gaps = a - b
        value, variance = float(gaps.mean()), float(gaps.var(ddof=1)) / len(gaps)
        degrees = float(len(gaps) - 1)
    else:
        parts = [float(x.var(ddof=1)) / len(x) for x in (a, b)]
        value, variance = float(a.mean() - b.mean()), sum(parts)
        degrees = _degrees(variance, parts, [len(a) - 1, len(b) - 1])
    here, unknown = Estimate(value, variance, degrees), Estimate(value, math.nan, math.nan)
    return Difference(here, unknown, a, b, paired=paired, method="scores")


def _run_part(p: Predictions) -> float:
    """Variance of the mean test error of the runs there are, by err/2n if the errors are 0/1.

    Whatever it is, it is part of how much the two differ between examples, which bounds it.
    """
    if p.runs > 1:
        return split_variance(measure_totals(p)).test_set / p.runs
    if not p.binary:
        return math.inf
    return float(p.errors().mean()) / (2 * p.examples)


def _example_means(p: Predictions) -> FloatArray:
    total = np.zeros(p.examples)
    for _, errors in p.error_blocks():
        total += errors.sum(axis=0)
    return total / p.runs


def _groups(a: Predictions, b: Predictions) -> NDArray[np.int64] | None:
    return a.groups if a.groups is not None else b.groups


def _codes(groups: NDArray[np.int64] | None) -> NDArray[Any] | None:
    return None if groups is None else np.unique(groups, return_inverse=True)[1].ravel()


def _degrees(variance: float, parts: list[float], degrees: list[int]) -> float:
    return min(MANY, satterthwaite(variance, np.array(parts), np.array(degrees, dtype=float)))
