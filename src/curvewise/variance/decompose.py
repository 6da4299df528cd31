"""What part of the variance between runs is real, and what is the finite test set."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import fdtri, ndtr, ndtri

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.text import format_interval, format_pvalue, format_value
from curvewise.types.coercion import as_predictions
from curvewise.types.predictions import Predictions
from curvewise.types.results import Interval, Result, check_level, interval_columns
from curvewise.types.units import FloatArray, Unit, as_floats
from curvewise.variance.anova import (
    ENOUGH,
    FEWEST,
    Split,
    Tails,
    Totals,
    f_interval,
    few_groups,
    judge_tails,
    mean_interval,
    measure_totals,
    mostly_wrong,
    run_std,
    share_interval,
    split_variance,
    std_interval,
    totals_of_counts,
)

INTERVALS = ("auto", "F", "bootstrap", "robust")

_ONE_RUN = (
    "there is one run, and its {} repeats are taken as the runs: the variances are those between"
    " repeats of one network, and say nothing about other trainings."
)


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
        Predicted labels, 0/1 errors or hits, losses or scores; (runs, examples, repeats) with
        ``axes``. The repeats of a single run are taken as runs, with a warning.
    labels : array_like, shape (examples,), optional
        True classes; needed for predicted labels.
    kind : {"labels", "errors", "correct", "losses", "scores", "probabilities"}, optional
        What the values are, where they do not say it. 0 and 1 without labels are read as errors,
        and the summary says so: the variances are the same for hits, the mean error is not.
    axes : sequence of str, optional
        What the axes are, where the shape does not say it: ("examples", "runs"), say.
    groups : array_like, shape (examples,), optional
        Which examples belong together. They are taken as one unit of sampling: only different
        groups are supposed to err independently.
    interval : {"auto", "F", "bootstrap", "robust"}
        Of the distribution-wise standard deviation. "auto" takes the F interval unless run errors
        have heavy tails: an excess kurtosis above two of its standard errors, or a run more than
        about four robust standard deviations from the median. Then it takes the two-way
        bootstrap, or with fewer than 30 runs the robust closed form; the latter also where the
        runs differ in few of the examples, so that which examples were drawn matters more than
        the number of runs.
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
    >>> v = decompose_variance(errors, kind="errors")
    >>> round(v.test_set_std, 4), round(v.independent_std, 4), v.distribution_std
    (0.0063, 0.0066, 0.0)
    """
    given = as_predictions(predictions, labels, kind=kind, axes=axes, groups=groups)
    repeated = given.runs == 1 and given.repeats > 1
    if repeated:
        given = replace(given, values=np.asarray(given.values)[0].T, run_ids=None)
    if interval not in INTERVALS:
        raise InputError(f"interval={interval!r} is not known: use one of {', '.join(INTERVALS)}.")
    check_level(level)
    totals = replace(measure_totals(given), assumed=given.assumed and given.kind == "errors")
    split = split_variance(totals)
    tails = judge_tails(totals.run)
    influence = measure_influence(given)
    uneven = influence.share > UNEVEN * 2 / (given.runs - 1)
    method = interval if interval != "auto" else tails.method
    if interval == "auto" and method == "F" and uneven:
        method = "robust"
    robust = robust_interval(split, tails, influence.share, level)
    if method == "bootstrap":
        count = resamples or default_resamples(given.runs, totals.units)
        drawn = bootstrap_variances(given, count, np.random.default_rng(rng))
        limits = bca_limits(drawn, split, totals.run, influence.units, level)
    else:
        limits = f_interval(split, level) if method == "F" else robust
    notes = [_ONE_RUN.format(given.runs)] if repeated else []
    notes += mostly_wrong(float(totals.run.mean()), totals.unit, given)
    return _result(totals, split, tails, method, (limits, robust), level, notes)


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
    robust = robust_interval(split, tails, 0.0, level)
    method = "robust" if tails.heavy else "F"
    limits = robust if tails.heavy else f_interval(split, level)
    notes = mostly_wrong(float(totals.run.mean()), totals.unit)
    return _result(totals, split, tails, method, (limits, robust), level, notes)


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


def _result(
    totals: Totals,
    split: Split,
    tails: Tails,
    method: str,
    limits: tuple[tuple[float, float], tuple[float, float]],
    level: float,
    notes: Sequence[str],
) -> VarianceDecomposition:
    std = math.sqrt(max(0.0, split.distribution))
    if split.test_set == 0 and split.independent == 0:
        limits = (_unseen(totals, level), _unseen(totals, level))
    elif split.test_set == 0 and totals.unit == "fraction":
        # A tie: the test errors may differ by up to half an example.
        tied = f_interval(replace(split, test_set=1 / (4 * totals.examples**2)), level)
        limits = (tied, tied)
    notes = [*notes, *_warnings(totals, split, tails, method)]
    for text in notes:
        warnings.warn(text, CurvewiseWarning, stacklevel=3)
    share = share_interval(split, level, None if method == "F" else limits[0])
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
        test_set_interval=run_std(totals.run, level, totals.unit),
        independent_std=math.sqrt(split.independent),
        distribution_variance=split.distribution,
        distribution_std=std,
        distribution_interval=_roots(std, limits[0], level, totals.unit),
        robust_interval=_roots(std, limits[1], level, totals.unit),
        distribution_share=share.estimate,
        share_interval=share,
        independence_pvalue=split.independence_pvalue,
        components=parts,
        excess_kurtosis=tails.excess_kurtosis,
        method=method,
        unit=totals.unit,
        level=level,
        warnings=tuple(notes),
        _totals=totals,
        _split=split,
    )


def _roots(std: float, limits: tuple[float, float], level: float, unit: str) -> Interval:
    return std_interval(std, math.sqrt(limits[0]), math.sqrt(limits[1]), level, unit)


def _unseen(totals: Totals, level: float) -> tuple[float, float]:
    """Runs that agree on every example seen may differ on others, of which few can be so.

    If they differ on a share q of all examples, the variance of true error is at most q²/4.
    """
    share = 1 - ((1 - level) / 2) ** (1 / totals.units)
    return 0.0, share**2 / 4 if totals.unit == "fraction" else 0.0


def _warnings(totals: Totals, split: Split, tails: Tails, method: str) -> list[str]:
    said_so = tails.warnings(method)
    said_so += few_groups(None if totals.groups is None else split.units)
    if totals.twins and not _by_chance(totals):
        said_so.append(
            f"{totals.twins} run(s) repeat another run on every example. If that is the same run"
            " given twice, leave it out: the intervals count it as new."
        )
    return said_so


def _by_chance(totals: Totals) -> bool:
    """Whether two of so many runs may well agree on every example though they differ."""
    if not totals.binary:
        return False
    p = (totals.example * totals.runs + 0.5) / (totals.runs + 1)
    same = float(np.log1p(-2 * p * (1 - p)).sum())
    return math.log(totals.runs * (totals.runs - 1) / 2) + same > math.log(0.01)


# What a decomposition of the variance between runs says.

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
                f" {what} is {format_interval(self._level(), unit)}{self._assumed()}.",
                f"Between runs the test {what} has a standard deviation of"
                f" {format_value(self.test_set_std, unit)}; if {apart} varied independently it would be"
                f" {format_value(self.independent_std, unit)}.",
                "On the distribution, the standard deviation between runs is"
                f" {format_interval(self.distribution_interval, unit)}"
                f"{self._supposed()}{self._wider()}.",
                real,
                f"The runs {independent} independent errors (Cochran's Q, {format_pvalue(self.independence_pvalue)}).",
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
        low, high = format_value(robust.low, self.unit), format_value(robust.high, self.unit)
        return f"; [{low}, {high}] if runs need not be normal nor shift all examples alike"

    def _design(self) -> str:
        parts = [f"in {self.groups:,} groups"] if self.groups else []
        parts += [f"sampled {self.repeats} times each"] if self.repeats > 1 else []
        return f" ({', '.join(parts)})" if parts else ""


# The two-way bootstrap: runs and examples drawn anew, no example paired with its own copy.

BATCH_CELLS = 2**21
"""Weights drawn at once; each batch of resamples reads the predictions once."""

WORK = 2e11
"""Multiplications after which fewer resamples are drawn."""


def default_resamples(runs: int, units: int) -> int:
    """2,000 resamples, or as many of them (200 at least) as the size of the data allows."""
    return int(np.clip(WORK / (4.0 * runs * units), 200, 2000))


def bootstrap_variances(predictions: Predictions, resamples: int, rng: np.random.Generator) -> FloatArray:
    """The distribution-wise variance in resamples of runs and examples.

    The estimate is a mean over pairs of distinct runs and pairs of distinct examples. A resample
    holds some examples twice, and a copy covaries with itself: such pairs are left out of the
    numerator and of the denominator. (Put into the plain formula they would add noise/n.)
    Groups are drawn whole.
    """
    sizes = unit_sizes(predictions)
    batch = int(np.clip(BATCH_CELLS // max(predictions.runs, len(sizes)), 16, 256))
    drawn = [_batch(predictions, sizes, min(batch, resamples - start), rng) for start in range(0, resamples, batch)]
    return np.concatenate(drawn)


def bca_limits(
    drawn: FloatArray, split: Split, run_errors: FloatArray, units: FloatArray, level: float
) -> tuple[float, float]:
    """Limits of the variance from its resamples, corrected for bias and skewness (BCa).

    ``units`` is what single examples do to the estimate; runs act through their squared distance
    from the mean.
    """
    size = len(drawn)
    below = np.clip((drawn < split.distribution).mean(), 1 / size, 1 - 1 / size)
    bias = float(ndtri(below))
    deviation = (run_errors - run_errors.mean()) ** 2
    runs = (deviation - deviation.mean()) / (len(run_errors) - 1)
    spread = float((runs**2).sum() + (units**2).sum())
    skew = float((runs**3).sum() + (units**3).sum()) / (6 * spread**1.5) if spread else 0.0
    limits = []
    for tail, edge in (((1 - level) / 2, 0.0), ((1 + level) / 2, 1.0)):
        z = bias + float(ndtri(tail))
        share = float(ndtr(bias + z / (1 - skew * z))) if skew * z < 1 else edge
        limits.append(max(0.0, float(np.quantile(drawn, share))))
    return limits[0], limits[1]


def _batch(predictions: Predictions, sizes: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
    runs, units = predictions.runs, len(sizes)
    # Sums of 0/1 errors are exact in single precision, which is twice as fast.
    exact = predictions.binary and predictions.examples < 2**22 and runs < 2**22
    precision: type[np.floating[Any]] = np.float32 if exact else np.float64
    by_run = rng.multinomial(runs, np.full(runs, 1 / runs), size=count).astype(precision)
    by_unit = rng.multinomial(units, np.full(units, 1 / units), size=count).astype(precision)
    first = np.zeros((count, units))
    second = np.zeros((count, units))
    sums = np.empty((runs, count))
    centre = None
    for start, totals in unit_blocks(predictions):
        block = totals.astype(precision)
        if not predictions.binary:  # only differences between runs matter; large means cost digits
            centre = block[0].copy() if centre is None else centre
            block -= centre
        rows = slice(start, start + len(block))
        sums[rows] = block @ by_unit.T
        first += by_run[:, rows] @ block
        if predictions.groups is not None or not predictions.binary:
            second += by_run[:, rows] @ (block * block)
    if predictions.groups is None and predictions.binary:
        second = first  # 0² = 0 and 1² = 1
    w, u = by_run.astype(np.float64), by_unit.astype(np.float64)
    total = runs * (w * sums.T**2).sum(axis=1) - (w * sums.T).sum(axis=1) ** 2
    own = (u**2 * (runs * second - first**2)).sum(axis=1)
    pairs_of_runs = runs**2 - (w**2).sum(axis=1)
    pairs_of_units = (u @ sizes) ** 2 - u**2 @ sizes**2
    values: FloatArray = (total - own) / (pairs_of_runs * pairs_of_units)
    return values


def unit_sizes(predictions: Predictions) -> FloatArray:
    """How many examples each group has; ones without groups."""
    if predictions.groups is None:
        return np.ones(predictions.examples)
    return np.unique(predictions.groups, return_counts=True)[1].astype(np.float64)


def unit_blocks(predictions: Predictions) -> Iterator[tuple[int, NDArray[Any]]]:
    """Total error of each group (or the error of each example) a block of runs at a time."""
    if predictions.groups is None:
        yield from predictions.error_blocks()
        return
    codes = np.unique(predictions.groups, return_inverse=True)[1].ravel()
    order = np.argsort(codes, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes))[:-1]])
    for start, errors in predictions.error_blocks():
        yield start, np.add.reduceat(errors[:, order].astype(np.float64), starts, axis=1)


# An interval for runs that are not normal and examples that are sampled too.
#
# The F interval supposes normal run effects that shift all examples alike. Here the degrees of
# freedom of the test-set variance are those that its own sampling variance asks for: by the
# kurtosis of the runs, and by how unevenly the common variation is spread over the examples.

MEASURED = 10
"""Runs from which on the influence of examples is measured."""

UNEVEN = 1.0
"""The examples' part of the variance of an estimate, over that of normal runs, from which on the
F interval is not taken."""

ROWS = 16
"""Runs held as floats at once."""

THINNED = 1000
"""Runs read a second time, at even distances, to see how the examples vary with the runs."""


@dataclass(frozen=True, eq=False)
class Influence:
    """What single examples (or groups) do to the estimate.

    Attributes
    ----------
    units : ndarray
        Change of the estimated variance with the weight of each example.
    share : float
        Variance of the estimate from the sampling of examples, over the squared test-set
        variance. What noise alone would put into it is taken off.
    """

    units: FloatArray
    share: float


NO_INFLUENCE = Influence(np.zeros(0), 0.0)


def measure_influence(predictions: Predictions) -> Influence:
    """How the estimate hangs on single examples; not measured with fewer than ten runs."""
    if predictions.runs < MEASURED:
        return NO_INFLUENCE
    step = max(1, predictions.runs // THINNED)
    thinned = predictions.subset(runs=slice(None, None, step)) if step > 1 else predictions
    totals = measure_totals(thinned)
    split = split_variance(totals)
    if split.test_set == 0:
        return NO_INFLUENCE
    runs, n, c = thinned.runs, totals.examples, totals.concentration
    sizes = unit_sizes(thinned)
    together, own = _covariances(thinned, totals, len(sizes))
    common = n * together - own - split.distribution * (n * sizes - sizes**2)
    units = 2 * common / (n**2 * (1 - c))
    noise = 4 * split.noise * split.test_set / runs
    share = max(0.0, float((units**2).sum()) - noise) / split.test_set**2
    return Influence(units, share)


def _covariances(predictions: Predictions, totals: Totals, units: int) -> tuple[FloatArray, FloatArray]:
    """Covariance of each example (or group's total) with the run's mean, and its own variance."""
    deviation = totals.run - totals.run.mean()
    plain = predictions.binary and predictions.groups is None
    together, mean, squares = (np.zeros(units) for _ in range(3))
    centre: FloatArray | None = None
    for start, block in unit_blocks(predictions):
        for row in range(0, len(block), ROWS):
            values = block[row : row + ROWS].astype(np.float64)
            if not plain:
                centre = values[0].copy() if centre is None else centre
                values -= centre
                mean += values.sum(axis=0)
                squares += np.einsum("ij,ij->j", values, values)
            first = start + row
            together += deviation[first : first + len(values)] @ values
    runs = predictions.runs
    if plain:
        mean, squares = totals.example * runs, totals.example * runs
    return together / (runs - 1), (squares - mean**2 / runs) / (runs - 1)


def robust_interval(split: Split, tails: Tails, examples: float, level: float) -> tuple[float, float]:
    """Limits of the distribution-wise variance; ``examples`` is :attr:`Influence.share`."""
    kurtosis = max(0.0, tails.excess_kurtosis) if split.runs >= FEWEST else 0.0
    degrees = 2 / (kurtosis / split.runs + 2 / (split.runs - 1) + examples)
    tail = (1 - level) / 2
    below = 1 / float(fdtri(degrees, split.degrees[1], 1 - tail))
    above = 1 / float(fdtri(degrees, split.degrees[1], tail))
    if kurtosis > 0:  # the spread of a standard deviation reaches further down than F says
        reach = max(0.0, 1 - float(ndtri(1 - tail)) / math.sqrt(2 * degrees)) ** 2
        below = min(below, reach)
    limits = [max(0.0, split.test_set * factor - split.noise) for factor in (below, above)]
    return limits[0], limits[1]
