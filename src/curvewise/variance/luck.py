"""Luck of runs: are those that are good on some examples better on others, or on other test sets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from os import PathLike
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtr, stdtrit

from curvewise.errors import InputError, arg, brief, prefix, quietly, warn_all
from curvewise.stats.tests import holm
from curvewise.text import format_interval, format_pvalue, format_value
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
    DisplayUnit,
    PredictionFormat,
    group_codes,
    judge_tails,
    measure_totals,
    read_predictions,
    share_interval,
    split_variance,
)
from curvewise.variance.decompose import VarianceDecomposition, decompose_variance
from curvewise.variance.difference import is_vector, places_of

FEWEST_RUNS = 4
"""Fewest runs from which a correlation has an interval."""
ENOUGH = 10
"""Runs from which the intervals of gains cover (85% of the 95% intervals with 4 runs, 92% with 10)."""
NEAR_ONE = 1 - 1e-12
"""Correlations beyond this are set to it: Fisher's scale has no end."""


def measure_seed_luck(
    first: Predictions | ArrayLike | PathLike[str],
    second: Predictions | ArrayLike | tuple[Any, Any] | None = None,
    labels: ArrayLike | PathLike[str] | None = None,
    *,
    split: str | ArrayLike = "even-odd",
    splits: int = 100,
    top: float = 0.25,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
    **reading: Unpack[PredictionFormat],
) -> SeedLuck:
    """Measure if runs that did well on some examples do better on others.

    Parameters
    ----------
    first : Predictions or array_like, shape (runs, examples)
        Predicted labels, 0/1 errors or losses. By itself, it is split in two.
    second : Predictions, array_like or (predictions, labels), optional
        The same runs on other examples, such as a test set beside a validation set.
    labels : array_like, shape (examples,), optional
        True classes of the examples of ``first``.
    kind, axes
        As in :func:`decompose_variance`, for both.
    groups : array_like, shape (examples,), optional
        Group of each example of ``first``: a group falls into one part.
    split : {"even-odd", "random"} or array_like of bool, shape (examples,)
        Way to split ``first``: by turns, at random, or True for the first part.
    splits : int
        Random splits to average over; 0 for none.
    top : float
        Share of the runs to pick by the first part.
    level : float
        Coverage of the intervals.
    rng : int or Generator
        Determines the random splits.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000) ** 4
    >>> luck = measure_seed_luck(rng.random((200, 2000)) < p, kind="errors")
    >>> bool(luck.gain_first.estimate > 0.005), 0 in luck.gain_second, 0 in luck.correlation
    (True, True, True)
    """
    check_level(level)
    if not 0 < top < 1:
        raise InputError("must be a share of the runs between 0 and 1, such as 0.25.", argument="top", value=top)
    splits = check_whole(splits, "splits", 0)
    given = read_predictions(first, labels, argument="first", directed=True, **reading)
    if given.runs < FEWEST_RUNS:
        raise InputError(f"holds {given.runs} run(s): a correlation needs at least {FEWEST_RUNS}.", argument="first")
    if second is None:
        totals, generator = measure_totals(given), as_generator(rng)
        # All splits in one pass over the data: each is one more column of weights.
        halves = random_halves(given, splits, generator)
        masks = np.column_stack([split_in_two(given, split, generator), halves])
        # Sums of 0/1 errors are exact in single precision, which is twice as fast.
        exact = given.binary and given.examples < 2**24
        precision: type[np.floating[Any]] = np.float32 if exact else np.float64
        weights, size = masks.astype(precision), np.count_nonzero(masks, axis=0)
        parts = [block.astype(precision) @ weights for _, block in given.error_blocks()]
        sums = np.concatenate(parts).astype(np.float64)
        firsts, seconds = sums / size, (totals.run[:, None] * given.examples - sums) / (given.examples - size)
        one, two = firsts[:, 0], seconds[:, 0]
        sizes = int(size[0]), given.examples - int(size[0])
        expected = [expected_correlation(end, sizes) for end in share_interval(split_variance(totals), level)]
        average = None
        if splits:  # the mean over random splits, and the limits between which they fall
            r = [correlate(a, b, level)[0].estimate for a, b in zip(firsts.T[1:], seconds.T[1:], strict=True)]
            low, high = np.quantile(r, [(1 - level) / 2, (1 + level) / 2]).tolist()
            average = Interval(float(np.mean(r)), low, high, level, "prediction")
        unit, how = totals.unit, split if isinstance(split, str) else "mask"
    else:
        if not isinstance(second, tuple) and is_vector(second):
            raise InputError(f"is a second test set; for the true classes pass {arg('labels')}.", argument="second")
        if not isinstance(split, str) or split != "even-odd":
            raise InputError("is for one test set.", argument="split", remedy="Leave it out if second is given.")
        values, truth = second if isinstance(second, tuple) and len(second) == 2 else (second, None)
        reading.pop("groups", None)  # they are of the first set
        other = read_predictions(values, truth, argument="second", directed=True, **reading)
        order = same_runs(given, other, ("first", "second"))
        both = measure_totals(given), measure_totals(other)
        if both[0].unit != both[1].unit:
            raise InputError("first and second must both be errors or both be losses.")
        one, two, sizes = both[0].run, both[1].run[order], (given.examples, other.examples)
        # Runs that are equally good on both sets differ by chance only: √(α₁α₂), for the estimates and for both limits.
        shares = (share_interval(split_variance(t), level) for t in both)
        expected = [math.sqrt(a * b) for a, b in zip(*shares, strict=True)]
        average, splits, unit, how = None, 0, both[0].unit, "pair"
    correlation, pvalue = correlate(one, two, level)
    notes = []
    if given.runs < ENOUGH:
        notes.append(
            f"{given.runs} runs are few: the interval of the gain on the second set covers less often than stated."
            f" Train {ENOUGH} or more."
        )
    if np.ptp(one) == 0 or np.ptp(two) == 0:
        notes.append("the runs do not differ on one of the two sets: there is no correlation.")
    if judge_tails(one).heavy or judge_tails(two).heavy:
        notes.append(
            "run errors have heavy tails, so a few runs may cause the correlation: check the picture before you use"
            " its interval."
        )
    return SeedLuck(
        runs=given.runs,
        examples=sizes,
        split=how,
        correlation=correlation,
        pvalue=pvalue,
        expected=Interval(expected[0], expected[1], expected[2], level),
        random=average,
        splits=splits,
        top=top,
        gain_first=best_of(one, one, top, level),
        gain_second=best_of(one, two, top, level),
        unit=unit,
        level=level,
        warnings=tuple(notes),
        first_errors=one,
        second_errors=two,
    )


@dataclass(frozen=True, eq=False)
class SeedLuck(Result):
    """Relation between the errors of runs on a first set of examples and on a second one.

    Attributes
    ----------
    runs : int
        Number of runs.
    examples : tuple of int
        Size of the first and of the second set.
    split : str
        "even-odd", "random" or "mask" for parts of one test set, "pair" for two test sets.
    correlation : Interval
        Correlation of the runs' errors on the two sets (Fisher's interval).
    pvalue : float
        P-value of no correlation.
    expected : Interval
        The correlation that follows from the share α of variance that is real: α/(2 − α) for
        halves; for two sets √(α₁α₂), if each run is equally good on both. It is 0 where no share
        was found, which the upper end does not rule out, and NaN where runs do not differ.
    random : Interval or None
        Mean correlation over random splits, and the limits between which they fall.
    splits : int
        How many random splits.
    top : float
        Share of the runs that is picked by the first set.
    gain_first, gain_second : Interval
        How much less than all runs the picked ones err on the first and on the second set. With
        4 runs 85% of the 95% intervals hold, with 10 runs 92%.
    unit : str
        "fraction" for errors, "loss" for losses, "score" for scores.
    first_errors, second_errors : ndarray
        Error of each run on the first and on the second set.
    """

    unlisted = ("first_errors", "second_errors")

    runs: int
    examples: tuple[int, int]
    split: str
    correlation: Interval
    pvalue: float
    expected: Interval
    random: Interval | None
    splits: int
    top: float
    gain_first: Interval
    gain_second: Interval
    unit: str
    level: float
    warnings: tuple[str, ...]
    first_errors: FloatArray
    second_errors: FloatArray

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per quantity: estimate, low, high."""
        rows = {"correlation": self.correlation, "expected_correlation": self.expected}
        if self.random is not None:
            rows["random_splits"] = self.random
        rows |= {"gain_first": self.gain_first, "gain_second": self.gain_second}
        return interval_columns(rows)

    def sentences(self) -> str:
        """Say what luck is worth in a few sentences."""
        unit, r = self.unit, self.correlation
        sets = "two test sets" if self.split == "pair" else "two parts of the test set"
        how = {"even-odd": ", examples alternating", "random": ", drawn at random"}
        random = "" if self.random is None else format_interval(self.random)
        average = f"; over {self.splits:,} random splits it is {random}" if random else ""
        return (
            f"The {_plural(unit)} of {self.runs:,} runs on {sets} ({self.examples[0]:,} and {self.examples[1]:,}"
            f" examples{how.get(self.split, '')}) have a correlation of {format_interval(r)}"
            f" ({format_pvalue(self.pvalue)}){average}. {self._expectation()} The best {self.top:.0%} of runs on the"
            f" first are better than the mean run there by {format_interval(self.gain_first, unit)}, and on the second"
            f" by {format_interval(self.gain_second, unit)}."
        )

    def _expectation(self) -> str:
        e = self.expected
        condition = " if each run is equally good on both" if self.split == "pair" else ""
        if math.isnan(e.estimate):
            return "The correlation to expect is unknown."
        if e.estimate == 0:
            expect = f"a correlation of up to {e.high:.3f} may be expected{condition}."
            return f"No real variance between runs was found, which does not exclude some: {expect}"
        text = format_interval(e)
        return f"The real variance between runs implies a correlation of {text}{condition}."


def _plural(unit: str) -> str:
    return {"loss": "losses", "score": "scores"}.get(unit, "errors")


def split_in_two(predictions: Predictions, split: str | ArrayLike, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Choose the examples of the first part; groups are kept together."""
    n = predictions.examples
    if not isinstance(split, str):
        mask = np.asarray(split)
        if mask.dtype != bool or mask.shape != (n,):
            remedy = f"pass one True or False for each of the {n:,} examples, 'even-odd' or 'random'."
            raise InputError(f"has shape {mask.shape} and dtype {mask.dtype}: {remedy}", argument="split")
        if mask.all() or not mask.any():
            raise InputError("has all examples in one part: both need some.", argument="split")
        return mask
    if split == "random":
        return random_halves(predictions, 1, rng)[:, 0]
    if split != "even-odd":
        problem = "is not known: use 'even-odd', 'random' or a mask of the examples."
        raise InputError(problem, argument="split", value=split)
    # Examples, or groups of them, take turns in the order in which they appear.
    units = (np.arange(n) if predictions.groups is None else predictions.groups).tolist()
    rank = {unit: i for i, unit in enumerate(dict.fromkeys(units))}
    return np.array([rank[unit] % 2 == 0 for unit in units])


def random_halves(predictions: Predictions, count: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Draw masks (examples × count) of a random half of the examples, or of the groups."""
    codes = group_codes(predictions.groups)
    units = predictions.examples if codes is None else int(codes.max()) + 1
    masks = np.zeros((units, count), dtype=bool)
    for j in range(count):
        masks[rng.permutation(units)[: units // 2], j] = True
    return masks if codes is None else masks[codes]


def expected_correlation(share: float, sizes: tuple[int, int]) -> float:
    """Return the correlation of two parts of a test set of which this share of the variance is real.

    >>> round(expected_correlation(0.4, (50, 50)), 3)  # α/(2 − α) for halves
    0.25
    """
    parts = [share + (1 - share) * sum(sizes) / size for size in sizes]
    return share / math.sqrt(parts[0] * parts[1])


def correlate(x: FloatArray, y: FloatArray, level: float) -> tuple[Interval, float]:
    """Return Pearson's correlation with Fisher's interval, and the p-value of no correlation."""
    runs = len(x)
    a, b = x - x.mean(), y - y.mean()
    norm = math.sqrt(float(a @ a) * float(b @ b))
    if norm == 0 or np.ptp(x) == 0 or np.ptp(y) == 0:  # rounding may leave some of a constant
        return Interval(math.nan, -1.0, 1.0, level), math.nan
    r = min(1.0, max(-1.0, float(a @ b) / norm))
    if abs(r) >= 1 - 1e-15:
        return Interval(r, r, r, level), 0.0
    # Fisher's z has the variance 1/(R − 3).
    half = float(ndtri((1 + level) / 2)) / math.sqrt(runs - 3)
    low, high = math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)
    statistic = r * math.sqrt((runs - 2) / (1 - r * r))
    return Interval(r, low, high, level), 2 * float(stdtr(runs - 2, -abs(statistic)))


def same_runs(first: Predictions, second: Predictions, names: tuple[str, str]) -> NDArray[Any]:
    """Return the run of ``second`` that each run of ``first`` is: by name if both name them."""
    if first.runs != second.runs:
        raise InputError(
            f"{names[0]} has {first.runs:,} runs and {names[1]} {second.runs:,}: the same runs must be scored on both."
            " Leave out the runs that one of them lacks."
        )
    if first.run_ids is None or second.run_ids is None:
        return np.arange(first.runs)
    order = places_of(first.run_ids, second.run_ids)
    if min(order) < 0:
        missing = brief(first.run_ids[order.index(-1)])
        raise InputError(
            f"run_ids of {names[1]} lack the run {missing} of {names[0]}: the same runs must be scored on both."
        )
    return np.array(order)


def best_of(first: FloatArray, second: FloatArray, top: float, level: float) -> Interval:
    """Return how much less than all runs those err on the second that are best on the first.

    Runs that tie for the last place share it. The standard error is that of the influence of each run, by
    which it moves the mean, the selected mean and the place of the cut.
    """
    runs = len(first)
    picked = max(1, math.ceil(top * runs - 1e-9))
    # A selection at a threshold: its influence has a term for the shift of the cut itself.
    cut = float(np.sort(first)[picked - 1])
    tied = first == cut
    weight = np.where(first < cut, 1.0, 0.0)
    weight[tied] = (picked - weight.sum()) / np.count_nonzero(tied)
    gain = float(second.mean() - (weight * second).sum() / picked)
    spread = float(np.var(first))
    slope = float(np.mean((first - first.mean()) * (second - second.mean()))) / (spread or 1.0)
    at_cut = float(second.mean()) + slope * (cut - float(first.mean()))
    influence = second - weight * (second - at_cut) * runs / picked
    half = float(stdtrit(runs - 1, (1 + level) / 2)) * float(np.std(influence, ddof=1)) / math.sqrt(runs)
    return Interval(gain, gain - half, gain + half, level)


def compare_test_sets(
    test_sets: Mapping[str, Any],
    *,
    kind: str | None = None,
    axes: Sequence[str] | None = None,
    interval: str = "auto",
    level: float = 0.95,
    resamples: int | None = None,
    rng: int | np.random.Generator = 0,
) -> TestSetComparison:
    """Compare the variance of the same runs on several test sets, and what they share.

    Test sets of different examples have no noise in common, so the covariance of run errors is
    without bias that of true errors. Divided by the standard deviations of true error it gives
    the correlation of true errors, which is worth little where one of these is near 0.

    Parameters
    ----------
    test_sets : mapping of str to Predictions, array_like or (predictions, labels)
        By name. Runs are matched by ``run_ids`` where two sets have them, else by place.
    kind, axes
        As in :func:`decompose_variance`, for every set that is no :class:`Predictions`.
    interval, resamples, rng
        As in :func:`decompose_variance`.
    level : float
        Coverage of the intervals.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> skill = rng.standard_normal((60, 1)) * 0.03
    >>> sets = {name: rng.random((60, 2000)) < 0.2 + skill for name in ("plain", "shifted")}
    >>> c = compare_test_sets(sets)
    >>> c.pairs[0].stable, 1.0 in c.pairs[0].true_correlation
    (True, True)
    """
    check_level(level)
    if not isinstance(test_sets, Mapping) or len(test_sets) < 2:
        raise InputError("must map the names of two test sets or more to predictions.", argument="test_sets")
    given = {}
    for name, value in test_sets.items():
        values, labels = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
        asked = asked_of(values, {"kind": kind, "axes": axes})
        given[str(name)] = read_predictions(values, labels, argument=f"test_sets[{brief(name)}]", **asked)
    names = tuple(given)
    runs = min(p.runs for p in given.values())
    if runs < FEWEST_RUNS:
        raise InputError(f"hold {runs} run(s): a correlation needs at least {FEWEST_RUNS}.", argument="test_sets")
    order = {n: same_runs(given[names[0]], p, (names[0], n)) for n, p in given.items()}
    splits, notes = {}, []
    named = {name: p.example_ids for name, p in given.items() if p.example_ids is not None}
    for a, b in combinations(named, 2):
        if shared := len(np.intersect1d(named[a], named[b])):
            notes.append(
                f"{a} and {b} share {shared:,} example ids: if these are the same examples, their noise is in the"
                " correlations."
            )
    for name, p in given.items():
        with quietly():
            splits[name] = decompose_variance(p, interval=interval, level=level, resamples=resamples, rng=rng)
        notes += [prefix(f"{name}: ", text) for text in splits[name].warnings]
    errors = {name: splits[name].run_errors[order[name]] for name in names}
    couples = list(combinations(names, 2))
    found = [correlate(errors[a], errors[b], level) for a, b in couples]
    pvalues = np.array([p for _, p in found])
    adjusted, known = np.full(len(couples), math.nan), ~np.isnan(pvalues)
    adjusted[known] = holm(pvalues[known])
    pairs = []
    for (a, b), (r, pvalue), q in zip(couples, found, adjusted.tolist(), strict=True):
        stable = min(splits[s].distribution_interval.low for s in (a, b)) > 0
        # Different examples have independent noise, so that the covariance needs no correction, only the
        # variances do.
        noise = [s.test_set_std**2 - s.distribution_variance for s in (splits[a], splits[b])]
        true = true_correlation(errors[a], errors[b], noise, stable, level)
        pairs.append(TestSetPair(a, b, r, r.estimate**2, pvalue, q, true, stable))
    if unstable := sum(not p.stable for p in pairs):
        notes.append(
            f"the correlation of true errors is unknown for {unstable} of {len(pairs)} pairs: the true variance on one"
            " of their sets does not differ significantly from 0."
        )
    warn_all(notes)
    return TestSetComparison(runs, names, splits, tuple(pairs), level, tuple(notes), errors)


@dataclass(frozen=True, eq=False)
class TestSetComparison(Result):
    """The same runs on several test sets.

    Attributes
    ----------
    runs : int
        Number of runs.
    names : tuple of str
        The test sets, in the order given.
    decompositions : dict of str to VarianceDecomposition
        The variance between runs on each.
    pairs : tuple of TestSetPair
        Each pair of test sets.
    level : float
        Coverage of the intervals; tests reject below 1 − level.
    run_errors : dict of str to ndarray
        Error of each run on each test set; runs in the order of the first.
    """

    __test__ = False
    unlisted = ("run_errors",)

    runs: int
    names: tuple[str, ...]
    decompositions: Mapping[str, VarianceDecomposition]
    pairs: tuple[TestSetPair, ...]
    level: float
    warnings: tuple[str, ...]
    run_errors: Mapping[str, FloatArray]

    @property
    def unit(self) -> str:
        """Unit of the errors on all test sets; empty where they differ."""
        units = {d.unit for d in self.decompositions.values()}
        return units.pop() if len(units) == 1 else ""

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per test set: its decomposition. The error of scores is negated."""
        sets = [self.decompositions[name] for name in self.names]
        return {
            "test_set": list(self.names),
            "examples": [d.examples for d in sets],
            "error": [d.error.estimate for d in sets],
            "test_set_std": [d.test_set_std for d in sets],
            "independent_std": [d.independent_std for d in sets],
            **interval_lists("distribution_std", (d.distribution_interval for d in sets)),
            "share": [d.distribution_share for d in sets],
            "pvalue": [d.independence_pvalue for d in sets],
        }

    def display_columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per test set; mean losses and mean scores by their name."""
        signed = [float(DisplayUnit(d.unit).signed(d.error.estimate)) for d in self.decompositions.values()]
        table = {**self.columns(), "error": signed}
        return {DisplayUnit(self.unit).word if name == "error" else name: column for name, column in table.items()}

    def pair_columns(self) -> Mapping[str, Sequence[Any]]:
        """One row per pair of test sets: its correlations."""
        return {
            "first": [p.first for p in self.pairs],
            "second": [p.second for p in self.pairs],
            **interval_lists("correlation", (p.correlation for p in self.pairs)),
            "r_squared": [p.r_squared for p in self.pairs],
            "pvalue": [p.pvalue for p in self.pairs],
            "adjusted": [p.adjusted for p in self.pairs],
            **interval_lists("true_correlation", (p.true_correlation for p in self.pairs), "true_"),
            "stable": [p.stable for p in self.pairs],
        }

    def sentences(self) -> str:
        """Variances and correlations in a few sentences."""
        stds = [
            f"{format_value(d.distribution_std, d.unit)} for {name} ({format_value(d.test_set_std, d.unit)} on these"
            " examples)"
            for name, d in self.decompositions.items()
        ]
        found = [p for p in self.pairs if p.adjusted < 1 - self.level]
        best = max(self.pairs, key=lambda p: -1.0 if math.isnan(p.r_squared) else p.r_squared)
        words = _plural(self.unit)
        sentences = [
            f"The standard deviation between {self.runs:,} runs on new data is {', '.join(stds)}.",
            f"Run {words} are significantly correlated in {len(found)} of {len(self.pairs)} pairs of test sets (Holm's"
            " correction).",
        ]
        if not math.isnan(best.r_squared):
            known = best.stable and not math.isnan(best.true_correlation.estimate)
            true = format_interval(best.true_correlation) if known else "not known"
            sentences.append(
                f"The strongest is that of {best.first} and {best.second}:"
                f" R² = {best.r_squared:.3f} ({format_pvalue(best.pvalue)}); that of true {words} is {true}."
            )
        return " ".join(sentences)


@dataclass(frozen=True)
class TestSetPair:
    """Correlation of the errors of the same runs on two test sets.

    Attributes
    ----------
    first, second : str
        The two test sets.
    correlation : Interval
        Correlation of the runs' test errors (Fisher's interval).
    r_squared : float
        Its square.
    pvalue, adjusted : float
        P-value of no correlation, by itself and with Holm's correction for all pairs.
    true_correlation : Interval
        Correlation of the runs' true errors: covariance over the product of the standard deviations of true
        error, cut off at −1 and 1. It is NaN where a variance is not
        positive. The limits are −1 and 1 if the variance of either set does not differ significantly from 0.
    stable : bool
        True if both variances differ significantly from 0; the true correlation is not known otherwise.
    """

    __test__ = False  # pytest: this is no test

    first: str
    second: str
    correlation: Interval
    r_squared: float
    pvalue: float
    adjusted: float
    true_correlation: Interval
    stable: bool


def true_correlation(x: FloatArray, y: FloatArray, noise: Sequence[float], stable: bool, level: float) -> Interval:
    """Return the correlation of x and y without their noise of known variance.

    The limits are those of the correlation of x and y (jackknife on Fisher's scale, where no value lies beyond
    1), divided by the factor by which the noise makes it smaller. If that leaves nothing below 1, the noise
    seems to be less than assumed, and the limit of x and y themselves holds anyway.
    """
    variances = [float(np.var(v, ddof=1)) for v in (x, y)]
    shares = [max(0.0, 1 - e / v) if v > 0 else 0.0 for v, e in zip(variances, noise, strict=True)]
    smaller = math.sqrt(shares[0] * shares[1])
    if smaller == 0:
        return Interval(math.nan, -1.0, 1.0, level)
    # Jackknife: the noise is not normal, and Fisher's variance is that of normal pairs.
    r = _with_each_left_out(x, y)
    estimate = min(1.0, max(-1.0, float(r[0]) / smaller))
    if not stable or not np.isfinite(r).all():
        return Interval(estimate, -1.0, 1.0, level)
    runs = len(x)
    z = np.arctanh(np.clip(r, -NEAR_ONE, NEAR_ONE))
    half = float(stdtrit(runs - 1, (1 + level) / 2)) * math.sqrt(np.var(z[1:]) * (runs - 1))
    low, high = math.tanh(z[0] - half), math.tanh(z[0] + half)
    low = low if low >= smaller else max(-1.0, low / smaller)
    high = high if high <= -smaller else min(1.0, high / smaller)
    return Interval(estimate, low, high, level)


def _with_each_left_out(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return Pearson's correlation of all runs, then without each of them in turn."""
    runs = len(x)
    a, b = x - x.mean(), y - y.mean()
    xx, yy, xy = (np.array([u @ v, *(u @ v - u * v * runs / (runs - 1))]) for u, v in ((a, a), (b, b), (a, b)))
    with np.errstate(divide="ignore", invalid="ignore"):
        values: FloatArray = xy / np.sqrt(xx * yy)
    return values
