"""Decomposition of the variance between runs: the part that is real, and the part of the finite test set.

Three intervals of the distribution-wise standard deviation are offered. F is exact for normal run effects
that shift all examples alike. The two-way bootstrap draws runs and examples anew. The robust closed form
takes its degrees of freedom from the kurtosis of the runs and from how unevenly their common variation is
spread over the examples.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from curvewise.errors import InputError, Message, arg, warn_all
from curvewise.text import format_interval, format_number, format_pvalue, format_value
from curvewise.types.predictions import Predictions
from curvewise.types.results import (
    FloatArray,
    Interval,
    Result,
    Unit,
    as_floats,
    as_generator,
    check_level,
    check_whole,
    interval_columns,
)
from curvewise.variance.anova import (
    ENOUGH,
    FEWEST,
    QUANTITIES,
    DisplayUnit,
    SamplingUnits,
    Tails,
    Totals,
    VarianceSplit,
    f_interval,
    f_quantiles,
    few_groups,
    group_codes,
    judge_tails,
    mean_interval,
    measure_totals,
    mostly_wrong,
    read_predictions,
    run_std,
    share_interval,
    split_variance,
    std_interval,
    totals_of_counts,
    variance_degrees,
)

INTERVALS = ("auto", "F", "bootstrap", "robust")
WIDER = 1.1
"""The robust interval is reported beside the F interval if it is wider by this factor."""
BATCH_CELLS = 2**21
"""Weights drawn at once; each batch of resamples reads the predictions once."""
WORK = 2e11
"""Multiplications after which fewer resamples are drawn."""
MEASURED = 10
"""Runs from which the influence of examples is measured."""
UNEVEN = 1.0
"""Part of the examples in the variance of an estimate, over that of normal runs, from which the F interval
is not taken."""
FEWEST_RESAMPLES = 50
"""With fewer resamples the bootstrap has no limits to speak of."""
ROWS = 16
"""Runs held as floats at once."""
THINNED = 1000
"""Runs read a second time, at even distances, to see how the examples vary with the runs."""


def decompose_variance(
    predictions: Predictions | ArrayLike | PathLike[str],
    labels: ArrayLike | PathLike[str] | None = None,
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
        Kind of the values, if it is not evident. 0 and 1 without labels are read as errors,
        and the summary says so: the variances are the same for hits, the mean error is not.
    axes : sequence of str, optional
        Order of the axes, if the shape does not say it: ("examples", "runs"), say.
    groups : array_like, shape (examples,), optional
        Group of each example. A group is one unit of sampling: only different
        groups are supposed to err independently.
    interval : {"auto", "F", "bootstrap", "robust"}
        Interval of the distribution-wise standard deviation. "auto" takes the F interval unless run errors
        have heavy tails: an excess kurtosis above two of its standard errors, or a run more than
        about four robust standard deviations from the median. Then it takes the two-way
        bootstrap, or with fewer than 30 runs the robust closed form; the latter also where the
        runs differ in few of the examples, so that which examples were drawn matters more than
        the number of runs.
    level : float
        Coverage of the intervals.
    resamples : int, optional
        Resamples of the bootstrap: 2,000 by default, fewer for very large data.
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
    given = read_predictions(predictions, labels, kind=kind, axes=axes, groups=groups)
    repeated = given.runs == 1 and given.repeats > 1
    # One network sampled many times: its repeats are the only runs there are.
    if repeated:
        given = replace(given, values=np.asarray(given.values)[0].T, run_ids=None, seeds=None)
    if interval not in INTERVALS:
        raise InputError(f"is not known: use one of {', '.join(INTERVALS)}.", argument="interval", value=interval)
    check_level(level)
    resamples = None if resamples is None else check_whole(resamples, "resamples", FEWEST_RESAMPLES)
    totals = replace(measure_totals(given), assumed=given.assumed and given.kind == "errors")
    split, tails, influence = split_variance(totals), judge_tails(totals.run), measure_influence(given)
    method, limits = interval, None
    if interval == "auto":
        # Runs that differ in few examples: which examples were drawn then matters more than the number of runs.
        uneven = influence.share > UNEVEN * 2 / (given.runs - 1)
        method = "robust" if tails.heavy or uneven else "F"
        method = "bootstrap" if tails.heavy and given.runs >= ENOUGH else method
    if method == "bootstrap":
        # 2,000 resamples, or as many of them (200 at least) as the size of the data allows.
        count = resamples or int(np.clip(WORK / (4.0 * given.runs * totals.units), 200, 2000))
        drawn = bootstrap_variances(given, count, as_generator(rng))
        limits = bca_limits(drawn, split, totals.run, influence.units, level)
    single = (
        f"there is one run, and its {given.runs} repeats are taken as the runs: the variances are those between"
        " repeats of one network, and say nothing about other trainings."
    )
    notes = [*([single] if repeated else []), *mostly_wrong(float(totals.run.mean()), totals.unit, given)]
    return _result(totals, split, tails, method, influence.share, level, notes, limits)


@dataclass(frozen=True, eq=False)
class VarianceDecomposition(Result):
    """Variance between the runs of one training, split by origin.

    Attributes
    ----------
    runs, examples : int
        Size of the experiment.
    repeats : int
        Samples of an example in each run.
    groups : int or None
        Number of groups of examples that belong together.
    error : Interval
        Mean error on new data; runs and examples both count as sampled.
    test_set_std : float
        Standard deviation between runs of the error on this test set.
    test_set_interval : Interval
        Its interval, for normal run errors.
    independent_std : float
        Standard deviation if examples erred independently of each other.
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
        P-value of Cochran's Q: how often independent errors would vary as much.
    components : dict
        Variances of a single error: between runs, examples, run × example, repeats. Unbiased, so
        that one may be negative.
    excess_kurtosis : float
        Excess kurtosis of run errors: 0 for normal ones.
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
    _split: VarianceSplit

    @property
    def run_errors(self) -> FloatArray:
        """Mean error of each run."""
        return self._totals.run

    @property
    def example_errors(self) -> FloatArray:
        """Mean error of each example over runs."""
        return self._totals.example

    def _headline(self) -> str:
        stds = f"test_set_std={format_number(self.test_set_std)}, distribution_std={self.distribution_interval}"
        display = DisplayUnit(self.unit)
        mean = f"{display.word}={display.interval(self.error)}"
        return f"runs={self.runs}, examples={self.examples}, {mean}, {stds}"

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per quantity: estimate, low, high. The error of scores is negated, as in :attr:`error`."""
        rows = {
            "error": self.error,
            "test_set_std": self.test_set_interval,
            "independent_std": Interval(self.independent_std, math.nan, math.nan),
            "distribution_std": self.distribution_interval,
            "distribution_std_robust": self.robust_interval,
            "distribution_share": self.share_interval,
        }
        return interval_columns(rows)

    def display_columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per quantity; the first is the mean loss or the mean score where these were measured."""
        display = DisplayUnit(self.unit)
        table = display.columns(self.columns(), rows=("error",))
        name = "error" if display.word == "error" else f"mean_{display.word}"
        return table | {"quantity": [name if q == "error" else q for q in table["quantity"]]}

    row_names = QUANTITIES

    def sentences(self) -> str:
        """The decomposition in a few sentences."""
        unit, display = self.unit, DisplayUnit(self.unit)
        if math.isnan(self.distribution_share):
            alike = "do not differ at all" if self.independent_std == 0 else f"have the same {display.word}"
            real = f". The runs {alike} on this test set."
        else:
            share = format_interval(self.share_interval, "fraction")
            real = f": {share} of the test-set variance is a real difference between runs."
        apart = "groups of examples" if self.groups else "examples"
        vary = "vary" if self.independence_pvalue < 1 - self.level else "do not vary"
        seen = format_interval(self.test_set_interval, unit).partition(" [")[0]  # in the digits of the table
        design = [f"in {self.groups:,} groups"] if self.groups else []
        design += [f"sampled {self.repeats} times each"] if self.repeats > 1 else []
        sampled = f" ({', '.join(design)})" if design else ""
        assumed = f" (1 was read as an error: pass {arg('kind', 'correct')} if it means right)"
        normal = self.method == "F" and self.runs < ENOUGH
        text = [
            f"Over {self.runs:,} runs and {self.examples:,} examples{sampled} the mean {display.word} is"
            f" {format_interval(display.interval(self.error), unit)}{assumed if self._totals.assumed else ''}.",
            f"The standard deviation between runs is {seen} on this test set"
            f" ({format_value(self.independent_std, unit)} if {apart} varied independently) and"
            f" {format_interval(self.distribution_interval, unit)} on new data"
            f"{' (assumes normally distributed runs; too few to check)' if normal else ''}{self._wider()}{real}",
            f"The errors of runs {vary} significantly more than independent errors would (Cochran's Q,"
            f" {format_pvalue(self.independence_pvalue)}).",
        ]
        return Message(" ".join(text))

    def _wider(self) -> str:
        """Say the interval without the assumptions of F, if that makes a difference."""
        robust = self.robust_interval
        if self.method != "F" or robust.width <= WIDER * self.distribution_interval.width:
            return ""
        ends = format_interval(robust, self.unit).partition(" ")[2]
        return f" ({ends} without assuming normal runs that shift all examples alike)"


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
        Unit of ``run_errors``. The result is in fractions.
    higher_is_better : bool
        True if accuracies and counts of right answers are given.
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
        raise InputError("totals are of 0/1 errors, in fraction or percent.", argument="unit", value=unit)
    errors = scale.errors(run_errors, "run_errors").ravel() / scale.top
    counts = as_floats(example_counts, "example_counts").ravel()
    runs = len(errors)
    if runs < 2 or len(counts) < 2:
        found = f"run_errors has {runs} run(s) and example_counts {len(counts)} example(s)"
        raise InputError(f"{found}: at least two of each are needed.")
    if not np.isfinite(counts).all() or (counts != np.round(counts)).any():
        raise InputError("must hold whole numbers: in how many runs it was wrong.", argument="example_counts")
    if counts.min() < 0 or counts.max() > runs:
        problem = f"must lie between 0 and {runs}, the number of runs; it is {counts.min():g} to {counts.max():g}."
        raise InputError(problem, argument="example_counts")
    wrong = runs - counts if higher_is_better else counts
    by_run, by_example = float(errors.mean()), float(wrong.mean()) / runs
    if abs(by_run - by_example) > 1e-3:  # published accuracies are rounded
        raise InputError(
            f"run_errors has a mean of {by_run:.4f} and example_counts one of {by_example:.4f}: they are not of the"
            f" same runs and examples, or one counts right answers ({arg('higher_is_better', True)} is for both)."
        )
    totals = totals_of_counts(errors, wrong)
    return decomposition_of(totals, level, mostly_wrong(by_run, totals.unit))


def decomposition_of(totals: Totals, level: float, notes: list[str]) -> VarianceDecomposition:
    """Decompose the variance where the predictions behind the totals are not at hand."""
    tails = judge_tails(totals.run)
    return _result(totals, split_variance(totals), tails, "robust" if tails.heavy else "F", 0.0, level, notes)


def _result(
    totals: Totals,
    split: VarianceSplit,
    tails: Tails,
    method: str,
    uneven: float,
    level: float,
    notes: list[str],
    limits: tuple[float, float] | None = None,
) -> VarianceDecomposition:
    """Put the result together; ``limits`` are those of the bootstrap, ``uneven`` is :attr:`Influence.share`."""
    # Always computed, as the summary reports it beside F where it is much wider.
    robust = robust_interval(split, tails, uneven, level)
    if limits is None:
        limits = f_interval(split, level) if method == "F" else robust
    if split.test_set == 0 and split.independent == 0:
        # Runs that agree on every example seen may differ on a share q of all examples, and the variance of
        # true error is then at most q²/4. The sample would hold none of them with this probability.
        share = 1 - ((1 - level) / 2) ** (1 / totals.units)
        limits = robust = 0.0, share**2 / 4 if totals.unit == "fraction" else 0.0
    elif split.test_set == 0 and totals.unit == "fraction":
        limits = robust = f_interval(split, level)
    notes = [*notes, *tails.warnings(method), *few_groups(None if totals.groups is None else split.units)]
    if totals.twins and not _repeat_by_chance(totals):
        notes.append(
            f"{totals.twins} run(s) repeat another run on every example. If that is the same run given twice, leave"
            " it out: the intervals count it as new."
        )
    warn_all(notes, 4)
    std = math.sqrt(max(0.0, split.distribution))
    share_real = share_interval(split, level, None if method == "F" else limits)
    # A repeat has a component only if there are repeats; its variance is NaN otherwise.
    components = {"run": split.distribution, "example": split.example, "run_example": split.interaction}
    if totals.repeats > 1:
        components["repeat"] = split.repeat
    return VarianceDecomposition(
        runs=totals.runs,
        examples=totals.examples,
        repeats=totals.repeats,
        groups=None if totals.groups is None else totals.units,
        error=mean_interval(totals, split, level),
        test_set_std=math.sqrt(split.test_set),
        test_set_interval=run_std(totals.run, level, totals.unit, split.tied),
        independent_std=math.sqrt(split.independent),
        distribution_variance=split.distribution,
        distribution_std=std,
        distribution_interval=std_interval(std, limits, level, totals.unit),
        robust_interval=std_interval(std, robust, level, totals.unit),
        distribution_share=share_real.estimate,
        share_interval=share_real,
        independence_pvalue=split.independence_pvalue,
        components=components,
        excess_kurtosis=tails.excess_kurtosis,
        method=method,
        unit=totals.unit,
        level=level,
        warnings=tuple(notes),
        _totals=totals,
        _split=split,
    )


def _repeat_by_chance(totals: Totals) -> bool:
    """Return True if two of so many runs may well agree on every example though they differ."""
    if not totals.binary:
        return False
    p = (totals.example * totals.runs + 0.5) / (totals.runs + 1)  # no rate is taken to be exactly 0 or 1
    same = float(np.log1p(-2 * p * (1 - p)).sum())
    return math.log(totals.runs * (totals.runs - 1) / 2) + same > math.log(0.01)


def robust_interval(split: VarianceSplit, tails: Tails, examples: float, level: float) -> tuple[float, float]:
    """Return limits of the distribution-wise variance; ``examples`` is :attr:`Influence.share`."""
    kurtosis = max(0.0, tails.excess_kurtosis) if split.runs >= FEWEST else 0.0
    degrees = variance_degrees(split.runs, kurtosis, examples)
    low, high = f_quantiles(split, level, degrees)
    below, above = 1 / high, 1 / low
    if kurtosis > 0:  # the spread of a standard deviation reaches further down than F says
        below = min(below, max(0.0, 1 - float(ndtri((1 + level) / 2)) / math.sqrt(2 * degrees)) ** 2)
    limits = [max(0.0, split.test_set * factor - split.noise) for factor in (below, above)]
    return limits[0], limits[1]


@dataclass(frozen=True, eq=False)
class Influence:
    """Influence of single examples (or groups) on the estimate.

    Attributes
    ----------
    units : ndarray
        Change of the estimated variance with the weight of each example.
    share : float
        Variance of the estimate from the sampling of examples, over the squared test-set variance; the part
        that noise alone would give is subtracted.
    """

    units: FloatArray
    share: float


def measure_influence(predictions: Predictions) -> Influence:
    """Measure how the estimate depends on single examples; not with fewer than ten runs."""
    if predictions.runs < MEASURED:
        return Influence(np.zeros(0), 0.0)
    # Thousands of runs say no more of the examples than one thousand, and cost a second pass.
    step = max(1, predictions.runs // THINNED)
    thinned = predictions.subset(runs=slice(None, None, step)) if step > 1 else predictions
    totals = measure_totals(thinned)
    split = split_variance(totals)
    if split.test_set == 0:
        return Influence(np.zeros(0), 0.0)
    runs, n, c = thinned.runs, totals.examples, totals.concentration
    sampled = SamplingUnits(n, totals.groups)
    sizes = sampled.sizes
    together, own = _covariances(thinned, totals, sampled)
    # Derivative of the U-statistic over pairs of distinct examples: n · Cov(example, mean) without the
    # example's own variance, minus its expectation. Noise alone would make its square 4 · noise · V_S/R.
    common = n * together - own - split.distribution * (n * sizes - sizes**2)
    units = 2 * common / (n**2 * (1 - c))
    noise = 4 * split.noise * split.test_set / runs
    share = max(0.0, float((units**2).sum()) - noise) / split.test_set**2
    return Influence(units, share)


def _covariances(predictions: Predictions, totals: Totals, sampled: SamplingUnits) -> tuple[FloatArray, FloatArray]:
    """Return the covariance of each example (or group's total) with the run's mean, and its own variance."""
    deviation, runs = totals.run - totals.run.mean(), predictions.runs
    together, mean, squares = (np.zeros(len(sampled.sizes)) for _ in range(3))
    centre: FloatArray | None = None
    for start, block in sampled.blocks(predictions):
        for row in range(0, len(block), ROWS):
            values = block[row : row + ROWS].astype(np.float64)
            centre = values[0].copy() if centre is None else centre
            values -= centre  # only differences between runs matter; large means would cost digits
            mean += values.sum(axis=0)
            squares += np.einsum("ij,ij->j", values, values)
            together += deviation[start + row : start + row + len(values)] @ values
    return together / (runs - 1), (squares - mean**2 / runs) / (runs - 1)


def bootstrap_variances(predictions: Predictions, resamples: int, rng: np.random.Generator) -> FloatArray:
    """Return the distribution-wise variance in resamples of runs and examples.

    The estimate is a mean over pairs of distinct runs and pairs of distinct examples. A resample holds some
    examples twice, and a copy covaries with itself: such pairs are left out of the numerator and of the
    denominator. (In the plain formula they would add noise/n: its interval covers 0.4% of the time with 100
    runs.) Groups are drawn whole.
    """
    units = SamplingUnits(predictions.examples, group_codes(predictions.groups))
    batch = int(np.clip(BATCH_CELLS // max(predictions.runs, len(units.sizes)), 16, 256))
    drawn = [_batch(predictions, units, min(batch, resamples - start), rng) for start in range(0, resamples, batch)]
    return np.concatenate(drawn)


def _batch(predictions: Predictions, sampled: SamplingUnits, count: int, rng: np.random.Generator) -> FloatArray:
    runs, sizes, units = predictions.runs, sampled.sizes, len(sampled.sizes)
    # Sums of 0/1 errors are exact in single precision, which is twice as fast.
    exact = predictions.binary and predictions.examples < 2**22 and runs < 2**22
    precision: type[np.floating[Any]] = np.float32 if exact else np.float64
    # Counts of how often each run and unit is drawn: a resample needs no copy of the data.
    by_run = rng.multinomial(runs, np.full(runs, 1 / runs), size=count).astype(precision)
    by_unit = rng.multinomial(units, np.full(units, 1 / units), size=count).astype(precision)
    first, second = np.zeros((count, units)), np.zeros((count, units))
    sums = np.empty((runs, count))
    centre = None
    for start, totals in sampled.blocks(predictions):
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
    # Σ over pairs of distinct runs and of any units, minus the pairs of a unit with its own copies.
    total = runs * (w * sums.T**2).sum(axis=1) - (w * sums.T).sum(axis=1) ** 2
    own = (u**2 * (runs * second - first**2)).sum(axis=1)
    pairs_of_runs = runs**2 - (w**2).sum(axis=1)
    pairs_of_units = (u @ sizes) ** 2 - u**2 @ sizes**2
    values: FloatArray = (total - own) / (pairs_of_runs * pairs_of_units)
    return values


def bca_limits(
    drawn: FloatArray, split: VarianceSplit, run_errors: FloatArray, units: FloatArray, level: float
) -> tuple[float, float]:
    """Return limits of the variance from its resamples, corrected for bias and skewness (BCa).

    ``units`` are the influences of single examples on the estimate; runs act through their squared distance
    from the mean.
    """
    size = len(drawn)
    # Efron (1987): z0 from the share of resamples below the estimate, a from the skewness of the influences.
    below = np.clip((drawn < split.distribution).mean(), 1 / size, 1 - 1 / size)
    bias = float(ndtri(below))
    deviation = (run_errors - run_errors.mean()) ** 2
    runs = (deviation - deviation.mean()) / (len(run_errors) - 1)
    # Runs and examples are drawn independently, so their influences add up in both sums.
    spread = float((runs**2).sum() + (units**2).sum())
    skew = float((runs**3).sum() + (units**3).sum()) / (6 * spread**1.5) if spread else 0.0
    limits = []
    for tail, edge in (((1 - level) / 2, 0.0), ((1 + level) / 2, 1.0)):
        z = bias + float(ndtri(tail))
        # Beyond 1/a the correction has no meaning, and the end of the resamples is taken.
        share = float(ndtr(bias + z / (1 - skew * z))) if skew * z < 1 else edge
        limits.append(max(0.0, float(np.quantile(drawn, share))))
    return limits[0], limits[1]
