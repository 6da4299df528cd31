"""Distribution of test accuracy over runs, beside the one that independent errors would give.

If the errors of a run were independent (Jordan 2023, definition 1), their number would be Poisson-binomial
with the error rates of the examples.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from curvewise.text import format_interval, format_pvalue, format_value
from curvewise.types.predictions import Predictions
from curvewise.types.results import FloatArray, Interval, Result, as_generator, check_level
from curvewise.variance.anova import (
    clipped,
    decimals,
    measure_totals,
    mostly_wrong,
    read_answers,
    read_predictions,
    run_std,
    split_variance,
)

NOTHING = 1e-12
"""Probability below which a number of errors is left out of the distributions."""
SIMULATIONS = 999
"""Samples of runs drawn to know how far from its own distribution a sample lies."""
GROUP = 100
"""Trials whose distribution is built one trial at a time, all groups side by side."""
TINY = np.finfo(np.float64).tiny


def measure_accuracy_distribution(
    predictions: Predictions | ArrayLike | PathLike[str],
    labels: ArrayLike | PathLike[str] | None = None,
    *,
    kind: str | None = None,
    axes: Sequence[str] | None = None,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> AccuracyDistribution:
    """Compare the accuracy of runs with those of independent errors and of coins.

    If the errors of a run were independent, their number would be Poisson-binomial with the error
    rates of the examples. Rates p from R runs make p(1 − p) too small by (R − 1)/R on average: the
    standard deviation is corrected for it, and the distribution is that of rates drawn together
    towards their mean just so far that its variance is the corrected one. Groups of examples play
    no part here: independence is that of single examples.

    Parameters
    ----------
    predictions : Predictions or array_like, shape (runs, examples)
        Predicted labels, or 0/1 errors or hits.
    labels : array_like, shape (examples,), optional
        True classes; needed for predicted labels.
    kind, axes
        As in :func:`decompose_variance`; kind is needed for 0 and 1 without labels.
    level : float
        Coverage of the intervals.
    rng : int or Generator
        Determines the samples behind ``expected_distance`` and its p-value.

    Examples
    --------
    >>> rng = np.random.default_rng(2)
    >>> errors = rng.random((200, 1000)) < rng.beta(0.3, 1.2, 1000)
    >>> a = measure_accuracy_distribution(errors, kind="errors")
    >>> [round(std, 4) for std in (a.measured_std.estimate, a.independent_std, a.binomial_std)]
    [0.0099, 0.0098, 0.0126]
    """
    check_level(level)
    need = "accuracy needs one right or wrong answer of each run to each example. Their variance can be decomposed."
    given = read_predictions(read_answers(predictions, labels, need, kind=kind, axes=axes), directed=True)
    # Independence is that of single examples: groups would change what it means.
    totals = measure_totals(replace(given, groups=None))
    split, runs, n = split_variance(totals), totals.runs, totals.examples
    error, mean = float(totals.example.mean()), 1 - float(totals.run.mean())
    wrong = np.rint(totals.run * n).astype(np.int64)
    rates = shrunk_rates(totals.example, runs)
    pmfs = [poisson_binomial_pmf(rates), poisson_binomial_pmf(np.full(n, error))]
    # Only counts that either distribution or a run reaches: n + 1 of them are mostly zeros.
    likely = np.flatnonzero(np.maximum(*pmfs) > NOTHING)
    support = np.arange(min(likely[0], wrong.min()), max(likely[-1], wrong.max()) + 1)
    pmfs = [pmf[support] for pmf in pmfs]
    counts = np.bincount(wrong - support[0], minlength=len(support))
    ranges = [expected_range(pmf, runs, n, level) for pmf in pmfs]
    distance, drawn = kolmogorov(counts, pmfs[0]), sample_distances(pmfs[0], runs, as_generator(rng))
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    std, binomial = run_std(totals.run, level, tied=split.tied), error * (1 - error) / n
    half = float(stdtrit(runs - 1, (1 + level) / 2)) * math.sqrt((split.test_set or split.tied) / runs)
    notes = mostly_wrong(float(totals.run.mean()), totals.unit, given)
    if split.independent == 0:
        notes.append("the runs agree on every example: there is no variance to explain.")
    if totals.twins:
        notes.append(f"{totals.twins} run(s) repeat another run on every example.")
    if runs < 10:
        notes.append(f"{runs} runs say little about a distribution.")
    return AccuracyDistribution(
        runs=runs,
        examples=n,
        accuracy=clipped(Interval(mean, mean - half, mean + half, level)),
        measured_std=std,
        independent_std=math.sqrt(split.independent),
        binomial_std=math.sqrt(binomial),
        variance_ratio=_variance_ratio(std, split.independent),
        binomial_ratio=_variance_ratio(std, binomial, invert=True),
        run_range=float(wrong.max() - wrong.min()) / n,
        independent_range=ranges[0],
        binomial_range=ranges[1],
        distance=distance,
        expected_distance=Interval(float(drawn.mean()), low, high, level, "prediction"),
        # Distances tie with the one measured up to rounding, and such draws count as no nearer.
        distance_pvalue=float(1 + np.count_nonzero(drawn >= distance - 1e-12)) / (1 + len(drawn)),
        binomial_distance=kolmogorov(counts, pmfs[1]),
        independence_pvalue=split.independence_pvalue,
        errors=support,
        counts=counts,
        independent_pmf=pmfs[0],
        binomial_pmf=pmfs[1],
        level=level,
        warnings=tuple(notes),
        run_errors=totals.run,
    )


@dataclass(frozen=True, eq=False)
class AccuracyDistribution(Result):
    """Distribution of test accuracy over runs, beside that of independent errors.

    Attributes
    ----------
    runs, examples : int
        Size of the experiment.
    accuracy : Interval
        Mean over runs of the accuracy on this test set; runs are sampled, the examples given.
    measured_std : Interval
        Standard deviation between runs; wider where run errors have heavy tails.
    independent_std : float
        Standard deviation that independent errors of the examples' own rates would give.
    binomial_std : float
        Standard deviation that n coins of the mean error would give.
    variance_ratio : Interval
        Measured variance over that of independent errors.
    binomial_ratio : Interval
        Binomial variance over the measured one.
    run_range : float
        Accuracy of the luckiest run minus that of the unluckiest.
    independent_range, binomial_range : Interval
        Range that so many runs with independent errors, or of coins, would have: mean and limits.
    distance, binomial_distance : float
        Largest gap (Kolmogorov) between the measured distribution function and the predicted one.
    expected_distance : Interval
        Distance of as many runs that do have independent errors: mean and limits.
    distance_pvalue : float
        Share of such runs that lie as far away.
    independence_pvalue : float
        P-value of Cochran's Q, which looks at the variance alone.
    errors : ndarray of int
        Numbers of errors a run may make; the next three belong to them.
    counts : ndarray of int
        Number of runs that made so many.
    independent_pmf, binomial_pmf : ndarray
        Probability of so many.
    run_errors : ndarray
        Test error of each run.
    """

    unit: ClassVar[str] = "fraction"
    unlisted = ("run_errors",)

    runs: int
    examples: int
    accuracy: Interval
    measured_std: Interval
    independent_std: float
    binomial_std: float
    variance_ratio: Interval
    binomial_ratio: Interval
    run_range: float
    independent_range: Interval
    binomial_range: Interval
    distance: float
    expected_distance: Interval
    distance_pvalue: float
    binomial_distance: float
    independence_pvalue: float
    errors: NDArray[np.int64]
    counts: NDArray[np.int64]
    independent_pmf: FloatArray
    binomial_pmf: FloatArray
    level: float
    warnings: tuple[str, ...]
    run_errors: FloatArray

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per distribution: standard deviation, range, distance."""
        measured = self.measured_std
        return {
            "distribution": ["measured", "independent errors", "binomial"],
            "std": [measured.estimate, self.independent_std, self.binomial_std],
            "low": [measured.low, math.nan, math.nan],
            "high": [measured.high, math.nan, math.nan],
            "range": [self.run_range, self.independent_range.estimate, self.binomial_range.estimate],
            "distance": [0.0, self.distance, self.binomial_distance],
        }

    def sentences(self) -> str:
        """The distribution in a few sentences."""
        text = (
            f"Over {self.runs:,} runs the accuracy on {self.examples:,} examples is"
            f" {format_interval(self.accuracy, 'fraction')} on average, with a standard deviation of"
            f" {format_interval(self.measured_std, 'fraction')}; the luckiest run is"
            f" {format_value(self.run_range, 'fraction')} above the unluckiest."
        )
        if self.independent_std == 0:
            return text
        ratio, binomial = (format_interval(r, write=decimals(2)) for r in (self.variance_ratio, self.binomial_ratio))
        compared = f": as a variance, {binomial} times what is measured" if self.measured_std.estimate else ""
        return (
            f"{text} If examples erred independently the standard deviation would be"
            f" {format_value(self.independent_std, 'fraction')} and so many runs would lie"
            f" {format_interval(self.independent_range, 'fraction')} apart: the variance is {ratio} times that of"
            f" independent errors. The distributions lie {self.distance:.3f} apart (Kolmogorov;"
            f" {self.expected_distance.estimate:.3f} on average for independent errors,"
            f" {format_pvalue(self.distance_pvalue)}). The binomial standard deviation is"
            f" {format_value(self.binomial_std, 'fraction')}{compared}."
        )


def _variance_ratio(std: Interval, variance: float, invert: bool = False) -> Interval:
    """Return the squared standard deviation over a variance, or that variance over it."""
    if variance == 0 or (invert and std.estimate == 0):
        return Interval(math.nan, 0.0, math.inf, std.level)
    estimate, low, high = (v**2 / variance for v in (std.estimate, std.low, std.high))
    return Interval(1 / estimate, 1 / high, 1 / low, std.level) if invert else Interval(estimate, low, high, std.level)


def shrunk_rates(rates: FloatArray, runs: int) -> FloatArray:
    """Shrink rates towards their mean, so that Σ p(1 − p) becomes R/(R − 1) of its value."""
    mean = float(rates.mean())
    most = mean * (1 - mean)
    spread = float(np.mean((rates - mean) ** 2))
    if spread == 0:
        return rates
    # Σ p(1 − p) = n(m(1 − m) − Var p): solve for the variance of rates that makes it R/(R − 1) times as large.
    keep = (runs * spread - most) / ((runs - 1) * spread)
    return np.clip(mean + math.sqrt(max(0.0, keep)) * (rates - mean), 0.0, 1.0)


def kolmogorov(counts: NDArray[Any], pmf: FloatArray) -> float:
    """Return the largest distance between the distribution functions of counts and of probabilities."""
    measured = np.cumsum(counts) / counts.sum()
    return float(np.abs(measured - np.cumsum(pmf)).max())


def sample_distances(pmf: FloatArray, runs: int, rng: np.random.Generator) -> FloatArray:
    """Return distances of samples from their distribution, moved to each sample's mean.

    The rates come from the runs themselves, so that the mean of the prediction is theirs.
    """
    place = np.arange(len(pmf))
    counts = rng.multinomial(runs, pmf / pmf.sum(), size=SIMULATIONS)
    measured = np.cumsum(counts, axis=1) / runs
    # The rates are those of the runs, so that the prediction has their mean: unshifted draws would lie too far.
    shift = counts @ place / runs - pmf @ place
    cdf = np.concatenate([[0.0], np.cumsum(pmf)])
    moved = np.interp(place - shift[:, None], np.arange(-1, len(pmf)), cdf)
    distances: FloatArray = np.abs(measured - moved).max(axis=1)
    return distances


def expected_range(pmf: FloatArray, runs: int, n: int, level: float) -> Interval:
    """Return the range of independent draws, exactly: mean and limits, as a share of n."""
    cdf = np.minimum(np.cumsum(pmf), 1.0)
    before = np.concatenate([[0.0], cdf[:-1]])
    # E[max − min] = Σ over x of P(min ≤ x < max), from the distribution functions of both extremes.
    mean = float((1 - cdf**runs - (1 - cdf) ** runs).sum())
    tail, limits = (1 - level) / 2, []
    for goal in (tail, 1 - tail):
        low, high = 0, len(pmf) - 1
        while low < high:  # the smallest range that is not exceeded with this probability
            middle = (low + high) // 2
            inside = cdf[np.minimum(np.arange(len(pmf)) + middle, len(pmf) - 1)]
            chance = float(((inside - before) ** runs - (inside - cdf) ** runs).sum())
            low, high = (low, middle) if chance >= goal else (middle + 1, high)
        limits.append(low / n)
    return Interval(mean / n, limits[0], limits[1], level, "prediction")


def poisson_binomial_pmf(p: ArrayLike) -> FloatArray:
    """Return probabilities of 0, 1, ..., n successes in n independent trials.

    Only non-negative numbers are multiplied and added, so that the tails are as accurate as the
    centre, relative to their size. Below 2.2e-308 probabilities lose digits or become 0.

    Parameters
    ----------
    p : array-like, shape (n,)
        Probability of success in each trial, between 0 and 1.

    Returns
    -------
    ndarray, shape (n + 1,)
        Probability of each number of successes.

    Examples
    --------
    >>> poisson_binomial_pmf([0.5, 0.5, 1.0])
    array([0.  , 0.25, 0.5 , 0.25])
    """
    chances = np.asarray(p, dtype=np.float64)
    sure = int(np.count_nonzero(chances == 1.0))
    open_trials = chances[(chances > 0.0) & (chances < 1.0)]
    pmf = np.zeros(len(chances) + 1)
    with np.errstate(under="ignore"):
        groups = _group_pmfs(open_trials)
        while len(groups) > 1:  # pairs of groups, pairs of pairs, …
            left_over = groups[len(groups) // 2 * 2 :]
            groups = [_convolve(a, b) for a, b in zip(groups[::2], groups[1::2], strict=False)] + left_over
        pmf[sure : sure + len(open_trials) + 1] = groups[0]
    return pmf


def _group_pmfs(p: FloatArray) -> list[FloatArray]:
    """Return distributions of groups of trials, one trial more in every group at each step."""
    groups = max(1, -(-len(p) // GROUP))
    members = -(-len(p) // groups)
    chances = np.zeros((groups, members))  # trials that never succeed fill up the last group
    chances.ravel()[: len(p)] = p
    pmf = np.zeros((groups, members + 1))
    pmf[:, 0] = 1.0
    for k in range(members):
        success = chances[:, k, None]
        gained = pmf[:, : k + 1] * success
        pmf[:, : k + 1] *= 1.0 - success
        pmf[:, 1 : k + 2] += gained
    sizes = np.clip(len(p) - members * np.arange(groups), 0, members)
    return [row[: size + 1] for row, size in zip(pmf, sizes, strict=True)]


def _convolve(a: FloatArray, b: FloatArray) -> FloatArray:
    """Convolve directly the entries that differ from zero: subnormal numbers are slow and inexact."""
    total = np.zeros(len(a) + len(b) - 1)
    (a0, a1), (b0, b1) = (np.flatnonzero(pmf >= TINY)[[0, -1]] + [0, 1] for pmf in (a, b))
    total[a0 + b0 : a1 + b1 - 1] = np.convolve(a[a0:a1], b[b0:b1])
    total[total < TINY] = 0.0
    return total
