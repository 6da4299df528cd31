"""Comparison of variances between runs: of two trainings, and along a hyperparameter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from os import PathLike
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import fdtr, fdtrc

from curvewise.errors import InputError, arg, brief, prefix, quietly, warn_all
from curvewise.stats.power import crossing
from curvewise.stats.tests import holm
from curvewise.text import format_interval, format_pvalue, format_setting, format_value
from curvewise.types.predictions import Predictions, asked_of
from curvewise.types.results import (
    FloatArray,
    Interval,
    Result,
    as_generator,
    check_level,
    check_whole,
    interval_columns,
    interval_lists,
)
from curvewise.variance.anova import (
    FEWEST,
    QUANTITIES,
    DisplayUnit,
    PredictionFormat,
    Totals,
    VarianceSplit,
    check_keywords,
    decimals,
    judge_tails,
    measure_totals,
    normal_std,
    read_predictions,
    split_variance,
    true_std,
    variance_degrees,
)
from curvewise.variance.decompose import VarianceDecomposition, decompose_variance
from curvewise.variance.difference import align_examples, share_groups, two_names, unpaired_difference

DRAWS = 20_000
"""Draws for the interval of a ratio of distribution-wise standard deviations."""

FEWEST_DRAWS = 100
"""With fewer draws the limits of a 95% interval are the extremes."""


def compare_variances(
    a: Predictions | VarianceDecomposition | ArrayLike,
    b: Predictions | VarianceDecomposition | ArrayLike,
    labels: ArrayLike | PathLike[str] | None = None,
    *,
    names: tuple[str, str] = ("a", "b"),
    level: float = 0.95,
    draws: int = DRAWS,
    rng: int | np.random.Generator = 0,
    **reading: Unpack[PredictionFormat],
) -> VarianceComparison:
    """Compare how much two trainings vary between runs.

    Parameters
    ----------
    a, b : Predictions, VarianceDecomposition or array_like, shape (runs, examples)
        Two trainings with independent runs. Two test sets may be
        compared (a shifted one with the usual one, say), each in its own Predictions.
    labels : array_like, shape (examples,), optional
        True classes; needed for predicted labels.
    kind, axes, groups
        As in :func:`decompose_variance`.
    names : tuple of str
        Names of the trainings.
    level : float
        Coverage of the intervals.
    draws : int
        For the interval of the ratio on new data.
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
    names = two_names(names)
    read, same_set = read_together({"a": a, "b": b}, labels, reading)
    one, two = map(measure_split, read)
    unit = one[0].unit
    if unit != two[0].unit:
        raise InputError(f"a and b are not of one kind: the unit of a is {unit!r}, that of b {two[0].unit!r}.")
    runs = one[0].run, two[0].run
    ratio = variance_ratio(one[1], two[1], runs, level=level, draws=draws, rng=rng)
    notes = [note for (totals, _), name in zip((one, two), names, strict=True) for note in tail_notes(name, totals.run)]
    sizes = one[0].examples, two[0].examples
    if sizes[0] != sizes[1] or not all(same_set):
        differ = f"{names[0]} has {sizes[0]:,} examples and {names[1]} {sizes[1]:,}"
        differ = differ if sizes[0] != sizes[1] else f"the examples of {names[0]} and {names[1]} are not the same"
        notes.append(
            f"{differ}: their test-set deviations are not of one test set, and only those on new data compare."
        )
    warn_all(notes)
    return VarianceComparison(
        names=names,
        runs=(len(runs[0]), len(runs[1])),
        examples=sizes,
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
        run_errors=runs,
    )


@dataclass(frozen=True, eq=False)
class VarianceComparison(Result):
    """Comparison of the variances between runs of training a and of training b.

    Attributes
    ----------
    names : tuple of str
        Names of a and b.
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
        Excess kurtosis of run errors, both together: above 0 it widens the intervals of the ratios.
    unit : {"fraction", "loss", "score"}
        Unit of the standard deviations.
    level : float
        Coverage of the intervals; a verdict is reached at ``1 - level``.
    run_errors : tuple of ndarray
        Test error of each run of a and of b.
    """

    unlisted = ("run_errors",)

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
    run_errors: tuple[FloatArray, FloatArray]

    @property
    def verdict(self) -> str:
        """Training that varies more in true error, or that no difference was shown."""
        if self.distribution_pvalue >= 1 - self.level:
            return "no difference shown"
        return f"{self.names[0 if self.distribution_ratio.low >= 1 else 1]} varies more"

    @property
    def test_set_verdict(self) -> str:
        """Training that varies more in test error, or that no difference was shown."""
        if self.test_set_pvalue >= 1 - self.level:
            return "no difference shown"
        return f"{self.names[0 if self.test_set_ratio.estimate > 1 else 1]} varies more"

    def _headline(self) -> str:
        ratios = f"test_set_ratio={self.test_set_ratio}, distribution_ratio={self.distribution_ratio}"
        return f"{self.names[0]!r} over {self.names[1]!r}: {ratios}, verdict={self.verdict!r}"

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per quantity: estimate, low, high, p-value where there is one."""
        rows = {
            "test_set_std_a": self.test_set_std[0],
            "test_set_std_b": self.test_set_std[1],
            "test_set_ratio": self.test_set_ratio,
            "distribution_std_a": self.distribution_std[0],
            "distribution_std_b": self.distribution_std[1],
            "distribution_ratio": self.distribution_ratio,
        }
        pvalues = [math.nan, math.nan, self.test_set_pvalue, math.nan, math.nan, self.distribution_pvalue]
        return {**interval_columns(rows), "pvalue": pvalues}

    @property
    def a(self) -> str:
        """Name of training a."""
        return self.names[0]

    @property
    def b(self) -> str:
        """Name of training b."""
        return self.names[1]

    row_names = QUANTITIES

    def sentences(self) -> str:
        """The comparison in a few sentences."""
        a, b = self.names
        parts = [
            f"Over {self.runs[0]:,} runs of {a} and {self.runs[1]:,} of {b}:",
            self._sentence("On this test set", self.test_set_std, self.test_set_ratio),
            f"({format_pvalue(self.test_set_pvalue)}: {self.test_set_verdict}).",
            self._sentence("On new data", self.distribution_std, self.distribution_ratio),
            f"({format_pvalue(self.distribution_pvalue)}: {self.verdict}).",
        ]
        if self.verdict == "no difference shown":
            parts.append("No significant difference does not mean that there is none: see the intervals.")
        return " ".join(parts)

    def _sentence(self, where: str, std: tuple[Interval, Interval], ratio: Interval) -> str:
        one, two = (format_interval(s, self.unit) for s in std)
        return (
            f"{where}, the standard deviation between runs is {one} for {self.names[0]} and {two}"
            f" for {self.names[1]}, a ratio of {format_interval(ratio, write=decimals(2))}"
        )


def read_together(
    given: Mapping[str, Any],
    labels: ArrayLike | PathLike[str] | None,
    reading: PredictionFormat,
    directed: bool = False,
) -> tuple[list[Predictions | VarianceDecomposition], list[bool]]:
    """Read the runs of several trainings by the name of each argument; decompositions are left as they are.

    Those that may be of the first one's test set have examples in one order and share groups, because examples and
    groups are compared by place. The second list says which these are.
    """
    check_keywords(reading, PredictionFormat)
    read: list[Any] = []
    for name, p in given.items():
        if not isinstance(p, VarianceDecomposition):
            p = read_predictions(p, labels, argument=name, directed=directed, **asked_of(p, reading))
        read.append(p)
    named = next((p for p in read if isinstance(p, Predictions) and p.example_ids is not None), None)
    truth, same = None, [True] * len(read)
    for i, p in enumerate(read):
        if not isinstance(p, Predictions):
            continue
        if named is not None and p.example_ids is not None:
            same[i] = set(p.example_ids.tolist()) == set(np.asarray(named.example_ids).tolist())
            read[i] = p = align_examples(named, p) if same[i] else p
        if same[i] and (classes := p.true_classes) is not None:
            truth = classes if truth is None else truth
            same[i] = np.array_equal(truth, classes)
    shared = iter(share_groups([p for p, s in zip(read, same, strict=True) if s]))
    return [next(shared) if s else p for p, s in zip(read, same, strict=True)], same


def measure_split(given: Predictions | VarianceDecomposition) -> tuple[Totals, VarianceSplit]:
    """Totals and variances of predictions, or those that a decomposition already holds."""
    if isinstance(given, VarianceDecomposition):
        return given._totals, given._split
    totals = measure_totals(given)
    return totals, split_variance(totals)


def observed_std(split: VarianceSplit, level: float, unit: str) -> Interval:
    """Return the standard deviation of test error between runs, by χ²."""
    return normal_std(split.test_set, split.runs - 1, level, unit, split.tied)


def tail_notes(name: str, run_errors: FloatArray) -> list[str]:
    """Warn of few runs or heavy tails, for ratios and for each standard deviation."""
    tails = judge_tails(run_errors)
    if tails.runs < FEWEST:
        return [f"{name} has {tails.runs} runs: its intervals assume normal run effects (too few runs to check)."]
    if not tails.heavy:
        return []
    return [
        f"run errors of {name} have heavy tails (excess kurtosis {tails.excess_kurtosis:.1f}):"
        " intervals of ratios allow for that, those of its standard deviations do not."
    ]


def variance_ratio(
    a: VarianceSplit,
    b: VarianceSplit,
    run_errors: tuple[FloatArray, FloatArray] | None = None,
    *,
    level: float = 0.95,
    draws: int = DRAWS,
    rng: int | np.random.Generator = 0,
) -> VarianceRatio:
    """Compare how much two trainings vary between runs.

    The test-set ratio has an F interval, with fewer degrees of freedom where run errors have
    heavier tails than normal ones: a ratio is in the interval unless Shoemaker's test (2003)
    rejects it, with the kurtosis pooled at that ratio and about trimmed means, as Bonett (2006)
    does. For the distribution both parts of each estimate, the variance between runs and the
    noise, are drawn from what the data leave open (scaled χ²: a generalised confidence interval),
    and negative variances count as 0.

    Parameters
    ----------
    a, b : VarianceSplit
        Variances of two trainings with independent runs.
    run_errors : tuple of ndarray, optional
        Test error of each run of a and of b, to judge the tails; without them they count as
        normal.
    level : float
        Coverage of the intervals.
    draws : int
        For the ratio on new data.
    rng : int or Generator
        Determines the draws.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> quiet = rng.random((40, 500)) < 0.1
    >>> loud = rng.random((40, 500)) < rng.normal(0.1, 0.03, (40, 1))
    >>> a, b = (measure_split(Predictions(errors, "errors"))[1] for errors in (loud, quiet))
    >>> r = variance_ratio(a, b)
    >>> round(r.test_set.estimate, 2), r.test_set.low > 1, r.distribution_pvalue < 0.01
    (2.4, True, True)
    """
    draws = check_whole(draws, "draws", FEWEST_DRAWS)
    tails = _PooledTails(run_errors or ())
    test_set = _test_set_ratio(a, b, tails, level)
    # The kurtosis is pooled at the compatible ratio nearest to 1, the one that the test of equality speaks of.
    nearest = min(max(1.0, test_set.low), max(1e-12, test_set.high))
    excess = tails.excess(nearest)
    generator, drawn = as_generator(rng), []
    for s in (a, b):
        # Variances of true error that the data leave open; a negative one counts as 0.
        degrees, rest = variance_degrees(s.runs, excess), s.degrees[1]
        total = s.test_set * degrees / generator.chisquare(degrees, draws)
        drawn.append(np.maximum(0.0, total - s.noise * rest / generator.chisquare(rest, draws)))
    one, two = drawn
    # A generalised two-sided p-value: how far the draws are on one side of 0. Draws in which neither training varies
    # count for both sides, as they do for the limits: the p-value is small only where the interval leaves 1 out.
    sides = [(1 + int(side.sum())) / (1 + draws) for side in (one - two <= 0, one - two >= 0)]
    low, high = _ratio_limits(one, two, level)
    pvalue = min(1.0, 2 * min(sides))
    if a.test_set == 0 or b.test_set == 0:  # no sample of a variance, as for the test set
        low, high, pvalue = 0.0, math.inf, 1.0
    estimate = math.sqrt(_divide(max(0.0, a.distribution), max(0.0, b.distribution)))
    return VarianceRatio(
        test_set=test_set,
        test_set_pvalue=_pvalue_at(1.0, a, b, tails),
        distribution=Interval(estimate, low, high, level),
        distribution_pvalue=pvalue,
        excess_kurtosis=excess,
    )


@dataclass(frozen=True)
class VarianceRatio:
    """Standard deviations between runs of a over those of b.

    Attributes
    ----------
    test_set : Interval
        Ratio of the standard deviations of test error.
    test_set_pvalue : float
        Two-sided, against equal variances, by F; 1 where the runs of a training do not differ at all.
    distribution : Interval
        Ratio of the standard deviations of true error. The estimate is NaN where neither training
        shows any, infinite where only b shows none.
    distribution_pvalue : float
        Two-sided, against equal variances of true error; 1 where the runs of a training do not differ at all.
    excess_kurtosis : float
        Excess kurtosis of run errors, both trainings together, at the compatible ratio nearest to 1. Above 0 it
        widens the intervals.
    """

    test_set: Interval
    test_set_pvalue: float
    distribution: Interval
    distribution_pvalue: float
    excess_kurtosis: float


class _PooledTails:
    """Sums of squares and fourth powers of two samples, from which their pooled kurtosis follows."""

    def __init__(self, samples: Sequence[FloatArray]) -> None:
        self.count = sum(map(len, samples))
        self.squares, self.fourths = list[float](), list[float]()
        for x in samples:
            n = len(x)
            # Bonett's mean without the outer values, more of them the fewer there are.
            cut = min((n - 1) // 2, int(n / (2 * math.sqrt(n - 4)))) if n > 4 else 0
            self.squares.append(float(((x - x.mean()) ** 2).sum()))
            self.fourths.append(float(((x - np.sort(x)[cut : n - cut].mean()) ** 4).sum()))

    def excess(self, ratio: float) -> float:
        """Return the excess kurtosis of both samples once a is divided by ``ratio``; at least 0."""
        square = self.squares[0] / ratio**2 + self.squares[1] if self.count else 0.0
        if square == 0:
            return 0.0
        fourth = self.fourths[0] / ratio**4 + self.fourths[1]
        return max(0.0, self.count * fourth / square**2 - 3)


def _test_set_ratio(a: VarianceSplit, b: VarianceSplit, tails: _PooledTails, level: float) -> Interval:
    """All ratios that are not rejected."""
    estimate = math.sqrt(_divide(a.test_set, b.test_set))
    if not 0 < estimate < math.inf:
        return Interval(estimate, 0.0, math.inf, level)

    # The p-value falls away from the estimate, by factors below 1 and above it, until it rejects.
    below = crossing(lambda times: 1 - level - _pvalue_at(estimate / times, a, b, tails), 1.0)
    above = crossing(lambda times: 1 - level - _pvalue_at(estimate * times, a, b, tails), 1.0)
    return Interval(estimate, estimate / max(1.0, below), estimate * max(1.0, above), level)


def _pvalue_at(ratio: float, a: VarianceSplit, b: VarianceSplit, tails: _PooledTails) -> float:
    """Two-sided p-value against this ratio of the standard deviations of test error."""
    f = _divide(a.test_set, b.test_set) / ratio**2
    if not 0 < f < math.inf:
        return 1.0  # runs that do not differ at all are no sample of a variance: the interval is [0, ∞]
    one, two = (variance_degrees(s.runs, tails.excess(ratio)) for s in (a, b))
    return min(1.0, 2 * float(min(fdtr(one, two, f), fdtrc(one, two, f))))


def _divide(a: float, b: float) -> float:
    if b > 0:
        return a / b
    return math.inf if a > 0 else math.nan


def _ratio_limits(a: FloatArray, b: FloatArray, level: float) -> tuple[float, float]:
    """Limits of the root of a/b; 0/0 may be anything, and counts for both limits."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = a / b
    # Draws with both variances 0 leave the ratio open: they count against both limits.
    open_ended = (a == 0) & (b == 0)
    tail = (1 - level) / 2
    low = np.quantile(np.where(open_ended, 0.0, ratio), tail, method="lower")
    high = np.quantile(np.where(open_ended, np.inf, ratio), 1 - tail, method="higher")
    return math.sqrt(low), math.sqrt(high)


def measure_sweep(
    predictions: Mapping[float, Predictions | VarianceDecomposition | ArrayLike],
    labels: ArrayLike | PathLike[str] | None = None,
    *,
    name: str = "hyperparameter",
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
    **reading: Unpack[PredictionFormat],
) -> VarianceSweep:
    """Decompose the variance between runs at each value of a hyperparameter.

    Parameters
    ----------
    predictions : mapping of float to Predictions, VarianceDecomposition or array_like
        Runs at each value of the hyperparameter (or of the length of training).
    labels : array_like, shape (examples,), optional
        True classes; needed for predicted labels.
    name : str
        Name of the hyperparameter, such as "learning rate".
    kind, axes, groups
        As in :func:`decompose_variance`. Groups that one of the Predictions brings along count for
        all of as many examples that bring none.
    level : float
        Coverage of the intervals; excess is shown at ``1 - level``.
    rng : int or Generator
        Determines bootstrap intervals, where there are any.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> steady = rng.random((40, 500)) < 0.1
    >>> shaky = rng.random((40, 500)) < rng.uniform(0.05, 0.2, (40, 1))
    >>> s = measure_sweep({0.5: steady, 1.0: shaky}, kind="errors")
    >>> s.best, s.largest_without_excess, s.has_excess
    (0.5, 0.5, (False, True))
    """
    check_level(level)
    if not isinstance(predictions, Mapping) or not predictions:
        raise InputError("must map values to runs: {0.1: …, 0.2: …}.", argument="predictions")
    if wrong := [v for v in predictions if not isinstance(v, Real) or not math.isfinite(v)]:
        problem = f"has the key {brief(wrong[0])}, which is not a number: a sweep needs values of the hyperparameter."
        remedy = "For named settings use decompose_variance on each."
        raise InputError(problem, argument="predictions", remedy=remedy)
    values = sorted(predictions)
    # Sorted values and one stream of numbers: the order of the mapping does not matter.
    generator = as_generator(rng)
    given = {f"predictions[{brief(value)}]": predictions[value] for value in values}
    read, same_set = read_together(given, labels, reading, directed=True)
    if other := [p.level for p in read if isinstance(p, VarianceDecomposition) and p.level != level]:
        problem = f"holds a decomposition with intervals of {other[0]:.4g}."
        remedy = f"Decompose with {arg('level', level)}, or pass {arg('level', other[0])}."
        raise InputError(problem, argument="predictions", remedy=remedy)
    with quietly():
        parts = [decompose_variance(p, level=level, rng=generator) if isinstance(p, Predictions) else p for p in read]
    if len({p.unit for p in parts}) > 1:
        raise InputError("predictions mixes losses with 0/1 errors: pass one kind.")
    notes = [prefix(f"at {format_setting(v)}, ", w) for v, p in zip(values, parts, strict=True) for w in p.warnings]
    warn_all(notes)
    pvalues = [p.independence_pvalue for p in parts]
    adjusted = holm(pvalues)
    best = min(zip(values, parts, strict=True), key=lambda pair: pair[1].error.estimate)[0]
    # Not shown is not absent: the summary adds the upper limit at the value chosen here.
    calm = [v for v, p in zip(values, adjusted, strict=True) if p >= 1 - level]
    return VarianceSweep(
        name=name,
        values=tuple(values),
        runs=tuple(p.runs for p in parts),
        error=tuple(p.error for p in parts),
        test_set_std=tuple(p.test_set_interval for p in parts),
        independent_std=tuple(p.independent_std for p in parts),
        excess_std=tuple(p.test_set_std - p.independent_std for p in parts),
        distribution_std=tuple(p.distribution_interval for p in parts),
        variance_ratio=tuple(_inverse(p.share_interval) for p in parts),
        pvalues=tuple(pvalues),
        adjusted_pvalues=tuple(adjusted.tolist()),
        best=best,
        tied=_tied_with(values.index(best), values, parts, same_set, level),
        largest_without_excess=max(calm) if calm else None,
        unit=parts[0].unit,
        level=level,
        warnings=tuple(notes),
        _decompositions=tuple(parts),
    )


@dataclass(frozen=True, eq=False)
class VarianceSweep(Result):
    """The variance between runs at each value of a hyperparameter.

    Tuples have one entry per value, from the smallest to the largest.

    Attributes
    ----------
    name : str
        The hyperparameter.
    values : tuple of float
        Its values.
    runs : tuple of int
        Runs at each.
    error : tuple of Interval
        Mean error; the mean score with its sign changed, for unit "score".
    test_set_std, distribution_std : tuple of Interval
        Standard deviations between runs, of test error and of true error.
    independent_std : tuple of float
        Standard deviation of test error if examples erred independently.
    excess_std : tuple of float
        ``test_set_std − independent_std``.
    variance_ratio : tuple of Interval
        Variance of test error over variance of true error; infinite where no variance of true
        error was found.
    pvalues, adjusted_pvalues : tuple of float
        P-values of Cochran's Q against independent errors; the latter by Holm over the values.
    best : float
        The value of lowest mean error (highest mean score).
    tied : tuple of float
        Values whose mean error was not shown to differ from the best's (on new data, Holm
        over the values). Values measured on other examples (another number of them, other groups or
        other ``example_ids``) are not compared.
    largest_without_excess : float or None
        The largest value at which no excess was shown (adjusted p of ``1 - level`` or more).
    unit : {"fraction", "loss", "score"}
        Unit of errors and standard deviations.
    """

    name: str
    values: tuple[float, ...]
    runs: tuple[int, ...]
    error: tuple[Interval, ...]
    test_set_std: tuple[Interval, ...]
    independent_std: tuple[float, ...]
    excess_std: tuple[float, ...]
    distribution_std: tuple[Interval, ...]
    variance_ratio: tuple[Interval, ...]
    pvalues: tuple[float, ...]
    adjusted_pvalues: tuple[float, ...]
    best: float
    tied: tuple[float, ...]
    largest_without_excess: float | None
    unit: str
    level: float
    warnings: tuple[str, ...]
    _decompositions: tuple[VarianceDecomposition, ...]

    @property
    def has_excess(self) -> tuple[bool, ...]:
        """True for each value at which an excess over independent errors was shown."""
        return tuple(p < 1 - self.level for p in self.adjusted_pvalues)

    def __getitem__(self, value: float) -> VarianceDecomposition:
        """The decomposition at a value of the hyperparameter."""
        if value not in self.values:
            raise KeyError(value)
        return self._decompositions[self.values.index(value)]

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per value of the hyperparameter. Errors as in :attr:`error`."""
        return {
            "value": list(self.values),
            "runs": list(self.runs),
            **interval_lists("error", self.error, "error_"),
            "test_set_std": [i.estimate for i in self.test_set_std],
            "independent_std": list(self.independent_std),
            "excess_std": list(self.excess_std),
            **interval_lists("distribution_std", self.distribution_std, "distribution_std_"),
            "variance_ratio": [i.estimate for i in self.variance_ratio],
            "pvalue": list(self.pvalues),
            "adjusted_pvalue": list(self.adjusted_pvalues),
        }

    def display_columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per value of the hyperparameter; mean losses and mean scores by their name."""
        display = DisplayUnit(self.unit)
        table = display.columns(self.columns(), ("error", "error_low", "error_high"))
        return {name.replace("error", display.word): column for name, column in table.items()}

    def sentences(self) -> str:
        """The sweep in a few sentences."""
        display = DisplayUnit(self.unit)
        best = format_interval(display.interval(self.error[self.values.index(self.best)]), self.unit)
        tied = ", ".join(map(format_setting, self.tied))
        found = [format_setting(v) for v, has in zip(self.values, self.has_excess, strict=True) if has]
        how = "Cochran's Q, Holm over the values"
        smallest = format_pvalue(min(self.adjusted_pvalues))
        lines = [
            f"Of {len(self.values)} values of the {self.name}, {format_setting(self.best)} has the {display.best} mean"
            f" {display.word} ({best}).{f' Not shown to differ from it: {tied}.' if tied else ''}",
            f"The runs vary more than independent errors would at {', '.join(found)} ({how})."
            if found
            else f"At no value do the runs vary more than independent errors would ({how}, smallest {smallest}).",
        ]
        if (largest := self.largest_without_excess) is not None:
            limit = format_value(self.distribution_std[self.values.index(largest)].high, self.unit)
            also = largest == self.best and len(self.values) > 1
            same = f" It is also the value of {display.best} {display.word}." if also else ""
            lines.append(
                f"The largest value at which no such excess was shown is {format_setting(largest)}.{same} Not shown is"
                f" not absent: there, the standard deviation of true {display.word} between runs may be up to {limit}."
            )
        return " ".join(lines)


def _tied_with(
    best: int, values: Sequence[float], parts: Sequence[VarianceDecomposition], same_set: Sequence[bool], level: float
) -> tuple[float, ...]:
    """Return the values whose mean error is not shown to be above the best one's."""
    lowest = parts[best]._totals

    def comparable(i: int) -> bool:  # may be of one test set
        t = parts[i]._totals
        if i == best or not (same_set[i] and same_set[best]):
            return False
        if t.groups is None or lowest.groups is None:
            return t.examples == lowest.examples
        return np.array_equal(t.groups, lowest.groups)

    rest = list(filter(comparable, range(len(values))))
    adjusted = holm([unpaired_difference(parts[i]._totals, lowest).distribution.pvalue for i in rest])
    return tuple(values[i] for i, p in zip(rest, adjusted, strict=True) if p >= 1 - level)


def _inverse(share: Interval) -> Interval:
    """Return the test-set variance over the true variance, from the share of the latter."""
    estimate, low, high = (
        x if math.isnan(x) else (1 / x if x > 0 else math.inf) for x in (share.estimate, share.high, share.low)
    )
    return Interval(estimate, low, high, share.level)
