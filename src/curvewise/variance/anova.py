"""Two-way analysis of variance of runs × examples: totals, variance components and intervals.

The table of errors is read once and reduced to its totals. They are split into the variance between
runs on the test set, the part that independent errors explain, and the variance of true error (Jordan
2023, equation 3). The other modules of this lens build on these quantities.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtrc, chdtri, fdtri, ndtri, stdtr, stdtrit

from curvewise.errors import InputError, Message, arg
from curvewise.stats.clusters import FEW_CLUSTERS, sample_design
from curvewise.stats.intervals import both_sampled, satterthwaite
from curvewise.text import format_number
from curvewise.types.predictions import Predictions, as_predictions
from curvewise.types.results import FloatArray, Interval

TWINS_UP_TO = 2 * 10**7
"""Cells up to which runs are compared with each other, to find the same run given twice."""

MOST_STD = {"fraction": 0.5}
"""Largest possible standard deviation by unit: that of 0 and 1 with equal chances."""

FEWEST = 5
"""Fewest runs from which their tails can be judged."""

ENOUGH = 30
"""Runs from which the two-way bootstrap covers with heavy tails (simulated with 10% failed runs)."""

KURTOSIS = 2.0
"""Tails are heavy when the excess kurtosis exceeds this many of its standard errors …"""

OUTLIER = 4.0
"""… or a run lies further from the median than this many robust standard deviations: more with few
runs, where those are uncertain, and with very many, of which one lies far out by chance. About one in
twenty sets of normal runs looks heavy by either."""

FEW_UNITS = 4
"""Fewest examples (or groups) that show anything; with fewer, more may be missing from the sample."""

SUSPICIOUS = 2 / 3
"""A mean error above this is more likely a mistake in the input than a training."""


class PredictionFormat(TypedDict, total=False):
    """Keywords that say what arrays of predictions mean, as in :func:`decompose_variance`."""

    kind: str | None
    axes: Sequence[str] | None
    groups: ArrayLike | None


def read_predictions(
    predictions: Any,
    labels: ArrayLike | PathLike[str] | None = None,
    *,
    argument: str = "predictions",
    directed: bool = False,
    **reading: Unpack[PredictionFormat],
) -> Predictions:
    """Make :class:`Predictions` of an array, or read them from a file that is named; labels likewise.

    ``directed`` as of :func:`as_predictions`.
    """
    if isinstance(labels, str | PathLike) or isinstance(predictions, str | PathLike):
        from curvewise.variance.load import load_predictions, read_labels

        labels = read_labels(labels)
        if isinstance(predictions, str | PathLike):
            predictions = load_predictions(predictions, labels, **reading)
            labels, reading = None, {}
    return as_predictions(predictions, labels, argument=argument, directed=directed, **reading)


def read_answers(
    predictions: Any,
    labels: ArrayLike | PathLike[str] | None,
    need: str,
    *,
    argument: str = "predictions",
    **reading: Unpack[PredictionFormat],
) -> Predictions:
    """Read predictions of which each run is right or wrong on each example; ``need`` says why nothing else will do."""
    given = read_predictions(predictions, labels, argument=argument, **reading)
    if not given.binary:
        raise InputError(f"holds losses or repeats: {need}", argument=argument)
    return given


def check_keywords(given: Mapping[str, Any], group: Any) -> None:
    """Refuse a keyword that is not of the group, as Python does where they are listed."""
    if unknown := given.keys() - group.__optional_keys__:
        raise TypeError(f"unexpected keyword argument {min(unknown)!r}")


@dataclass(frozen=True, eq=False)
class Totals:
    """Totals of the errors of R runs on n examples.

    Attributes
    ----------
    run : ndarray, shape (runs,)
        Mean error of each run.
    example : ndarray, shape (examples,)
        Mean error of each example over runs.
    noise : float
        Σ over groups of the variance between runs of the group's total, divided by n²: the variance of
        the test error if groups varied independently. Without groups each example is its own.
    concentration : float
        Σ m² / n² over the sizes m of the groups: 1/n without groups.
    cell_variance : float
        Mean over examples of the variance between runs.
    repeat_variance : float
        Mean variance between repeats of one example in one run; NaN without repeats.
    repeats : int
        Samples of an example in a run.
    unit : {"fraction", "loss", "score"}
        Errors that are 0 or 1 (or means of such over repeats), losses, or negated scores.
    groups : ndarray of int, shape (examples,), optional
        Group of each example.
    twins : int
        Runs that repeat an earlier run on every example.
    assumed : bool
        True if 0/1 values were read as errors though nothing says that 1 means wrong.
    """

    run: FloatArray
    example: FloatArray
    noise: float
    concentration: float
    cell_variance: float
    repeat_variance: float = float("nan")
    repeats: int = 1
    unit: str = "fraction"
    groups: NDArray[np.int64] | None = None
    twins: int = 0
    assumed: bool = False

    @property
    def binary(self) -> bool:
        """True if each run was either right or wrong on an example."""
        return self.unit == "fraction" and self.repeats == 1

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.run)

    @property
    def examples(self) -> int:
        """Number of examples."""
        return len(self.example)

    @property
    def units(self) -> int:
        """Number of groups of examples; of examples without groups."""
        return self.examples if self.groups is None else int(self.groups.max()) + 1


def measure_totals(predictions: Predictions) -> Totals:
    """Read the predictions once and keep the totals."""
    if predictions.runs < 2:
        problem = "holds one run: the variance between runs needs at least two."
        remedy = "One run of each training can be compared, with weaker evidence."
        raise InputError(problem, argument="predictions", remedy=remedy)
    if predictions.examples < 2:
        raise InputError("holds one example: a test set needs at least two.", argument="predictions")
    if predictions.groups is not None or not predictions.binary:
        return _averaged(predictions)
    n = predictions.examples
    wrong, rows, seen = np.zeros(n, dtype=np.int64), [], _RepeatedRuns(predictions)
    for _, errors in predictions.error_blocks():
        seen.add(errors)
        # Eight errors of 0 or 1 to a byte: sums along rows would take far longer.
        rows.append(np.bitwise_count(np.packbits(errors, axis=1)).sum(axis=1, dtype=np.int64))
        for start in range(0, len(errors), 255):  # so that sums of 0/1 bytes fit a byte
            wrong += np.add.reduce(errors[start : start + 255], axis=0, dtype=np.uint8)
    return totals_of_counts(np.concatenate(rows) / n, wrong, twins=seen.twins)


def totals_of_counts(run: FloatArray, wrong: NDArray[Any], twins: int = 0) -> Totals:
    """Make totals of 0/1 errors from each run's mean and each example's number of wrong runs."""
    runs, n = len(run), len(wrong)
    p = wrong / runs
    # R/(R − 1) here and ddof 1 between runs: with either left out, a training without true variance would
    # be given one of about 1/R of its test-set variance.
    v = runs / (runs - 1) * p * (1 - p)
    noise = float(v.sum()) / n**2
    return Totals(run, p, noise, concentration=1 / n, cell_variance=float(v.mean()), twins=twins)


def _averaged(predictions: Predictions) -> Totals:
    """Total losses, scores, repeats and grouped errors, by moments that are merged block by block."""
    n, repeats = predictions.examples, predictions.repeats
    units = SamplingUnits(n, group_codes(predictions.groups))
    cells, together = ColumnMoments(n), ColumnMoments(len(units.sizes))
    by_run: list[FloatArray] = []
    within, seen = 0.0, _RepeatedRuns(predictions)
    for _, errors in predictions.error_blocks(repeats=True):
        seen.add(errors)
        means = errors.mean(axis=2, dtype=np.float64)
        if repeats > 1:
            within += float(errors.var(axis=2, ddof=1).sum())
        by_run.append(means.mean(axis=1))
        cells.add(means)
        if units.codes is not None:
            together.add(units.totals(means))
    noise = (cells if units.codes is None else together).variance
    return Totals(
        run=np.concatenate(by_run),
        example=cells.mean,
        noise=float(noise.sum()) / n**2,
        concentration=float((units.sizes**2).sum()) / n**2,
        cell_variance=float(cells.variance.mean()),
        repeat_variance=within / (predictions.runs * n) if repeats > 1 else float("nan"),
        repeats=repeats,
        unit=predictions.unit,
        groups=units.codes,
        twins=seen.twins,
    )


class ColumnMoments:
    """Means and sums of squared deviations of columns, merged block by block.

    Sums of squares about each block's own mean, as Chan et al. (1983) merge them: plain sums of squares
    would lose the digits of losses that are large and differ little between runs.
    """

    def __init__(self, columns: int) -> None:
        self.count = 0
        self.mean = np.zeros(columns)
        self.squares = np.zeros(columns)

    def add(self, block: NDArray[Any]) -> None:
        """Take in some more rows."""
        rows = len(block)
        mean = block.mean(axis=0, dtype=np.float64)
        shift = mean - self.mean
        total = self.count + rows
        # Deviations from the block's own mean first, then the shift between the two means.
        self.squares += ((block - mean) ** 2).sum(axis=0)
        self.squares += shift**2 * (self.count * rows / total)
        self.mean += shift * (rows / total)
        self.count = total

    @property
    def variance(self) -> FloatArray:
        """Variance of each column, ddof 1."""
        return self.squares / (self.count - 1)


class _RepeatedRuns:
    """Counts runs that repeat an earlier one exactly, if that is cheap to know."""

    def __init__(self, predictions: Predictions) -> None:
        self.rows: set[int] = set()
        self.twins = 0
        self.on = predictions.runs * predictions.examples * predictions.repeats <= TWINS_UP_TO

    def add(self, block: NDArray[Any]) -> None:
        if not self.on:
            return
        if block.dtype == np.uint8:  # a run with hardly any errors may repeat by chance
            wrong = np.count_nonzero(block.reshape(len(block), -1), axis=1)
            block = block[(wrong >= 20) & (wrong <= block[0].size - 20)]
        for row in block:
            # A hash, not the row: the runs of a large store need not be held to be recognised.
            mark = hash(row.tobytes())
            self.twins += mark in self.rows
            self.rows.add(mark)


def group_codes(groups: NDArray[Any] | None) -> NDArray[np.int64] | None:
    """Number the groups from 0 in the order of their names; None without groups."""
    if groups is None:
        return None
    names, codes = np.unique(groups, return_inverse=True)
    if len(names) < 2:
        raise InputError("has all examples in one group: at least two are needed.", argument="groups")
    return codes.ravel().astype(np.int64)


class SamplingUnits:
    """Units by which examples are sampled: groups of them, or the examples themselves.

    Parameters
    ----------
    examples : int
        Number of examples.
    codes : ndarray of int, shape (examples,), optional
        Group of each example, numbered from 0.
    """

    def __init__(self, examples: int, codes: NDArray[np.int64] | None = None) -> None:
        self.codes = codes
        self.sizes = np.ones(examples) if codes is None else np.bincount(codes).astype(np.float64)
        self._order = None if codes is None else np.argsort(codes, kind="stable")
        self._starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.intp)

    def totals(self, block: NDArray[Any]) -> NDArray[Any]:
        """Sum a block (runs × examples) over the examples of each group."""
        if self._order is None:
            return block
        ordered = block[:, self._order].astype(np.float64, copy=False)
        totals: NDArray[Any] = np.add.reduceat(ordered, self._starts, axis=1)
        return totals

    def blocks(self, predictions: Predictions) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield the total error of each unit, a block of runs at a time with its first run."""
        for start, errors in predictions.error_blocks():
            yield start, self.totals(errors)


@dataclass(frozen=True)
class VarianceSplit:
    """Variance between the test errors of runs, split by origin.

    Attributes
    ----------
    test_set : float
        Variance of the test error between runs, ddof 1.
    independent : float
        Part of it if examples (or groups of them) varied independently.
    noise : float
        Variance that the finite test set adds to the variance of true error.
    distribution : float
        Variance of true error between runs: unbiased, so it may be negative.
    example : float
        Variance between examples of the chance of an error: how much they differ in difficulty.
    interaction : float
        Variance of a cell beyond its run and its example; with repeats, without their noise.
    repeat : float
        Variance between repeats in a cell; NaN without repeats.
    runs, units : float
        Degrees of freedom are ``runs − 1`` and ``(runs − 1)(units − 1)``. Groups of unequal size count for
        as many equal ones as carry the same weight.
    tied : float
        Variance that is taken for an upper limit where ``test_set`` is 0; see :func:`tied_variance`.
    """

    test_set: float
    independent: float
    noise: float
    distribution: float
    example: float
    interaction: float
    repeat: float
    runs: int
    units: float
    tied: float = 0.0

    @property
    def ratio(self) -> float:
        """F: the test-set variance over the one that noise alone would give."""
        if self.noise > 0:
            return self.test_set / self.noise
        return math.inf if self.test_set > 0 else math.nan

    @property
    def degrees(self) -> tuple[float, float]:
        """Degrees of freedom of :attr:`ratio`."""
        return self.runs - 1, (self.runs - 1) * (self.units - 1)

    @property
    def independence_pvalue(self) -> float:
        """P-value of Cochran's Q: how often independent errors would vary as much as this."""
        # Q is χ² with R − 1 degrees of freedom under independence. For 0/1 errors it is this ratio exactly.
        q = (self.runs - 1) * self.test_set / self.independent if self.independent else 0.0
        return float(chdtrc(self.runs - 1, q))


def tied_variance(examples: int) -> float:
    """Return the variance that a tie may hide: the 0/1 errors of its runs may differ by up to half an example."""
    return 1 / (4 * examples**2)


def split_variance(totals: Totals) -> VarianceSplit:
    """Split the variance between runs, from totals.

    Without groups the concentration c is 1/n and ``distribution`` is equation 3 of Jordan (2023),
    n/(n − 1) · (V_S − Σ v_i/n²), which is (MS_run − MS_residual)/n of the two-way analysis of variance.
    With groups n is replaced by the number of equal groups of the same weight, 1/c.
    """
    runs, n, c = totals.runs, totals.examples, totals.concentration
    # Runs that do not differ must not do so by the rounding of their mean.
    test_set = float(np.var(totals.run, ddof=1)) if np.ptp(totals.run) else 0.0
    residual = max(0.0, (totals.cell_variance - test_set) * n / (n - 1))
    repeat = totals.repeat_variance
    return VarianceSplit(
        test_set=test_set,
        independent=totals.noise,
        noise=max(0.0, (totals.noise - c * test_set) / (1 - c)),
        distribution=(test_set - totals.noise) / (1 - c),
        example=float(np.var(totals.example, ddof=1)) - residual / runs,
        interaction=residual - (0.0 if math.isnan(repeat) else repeat / totals.repeats),
        repeat=repeat,
        runs=runs,
        units=1 / c,
        tied=tied_variance(n) if test_set == 0 and totals.unit == "fraction" else 0.0,
    )


def f_quantiles(split: VarianceSplit, level: float, degrees: float | None = None) -> tuple[float, float]:
    """Return the lower and upper quantile of F; ``degrees`` replaces those of the test-set variance."""
    tail = (1 - level) / 2
    one, two = split.degrees
    one = one if degrees is None else degrees
    return float(fdtri(one, two, tail)), float(fdtri(one, two, 1 - tail))


def f_interval(split: VarianceSplit, level: float) -> tuple[float, float]:
    """Return limits of the distribution-wise variance for normal run effects.

    With F = MS_run/MS_residual this is MS_residual · (F/F_q − 1)/n at the two quantiles. (Feldt's interval
    of α times the test-set variance looks alike, and is too narrow: it takes that variance as known.)
    """
    # Negative limits are cut off at 0: a variance cannot be there, though its unbiased estimate can.
    low, high = f_quantiles(split, level)
    below, above = (max(0.0, (split.test_set or split.tied) / q - split.noise) for q in (high, low))
    return below if split.test_set else 0.0, above


def share_interval(split: VarianceSplit, level: float, limits: tuple[float, float] | None = None) -> Interval:
    """Return the share of the test-set variance that is real: Cronbach's α, between 0 and 1.

    Feldt's interval, or from ``limits`` of the distribution-wise variance if these were not made by F.
    """
    if split.test_set == 0:
        return Interval(math.nan, 0.0, 1.0, level)
    if limits is None:
        low, high = f_quantiles(split, level)
        ends = [min(1.0, max(0.0, 1 - q / split.ratio)) for q in (high, low)]
    else:
        # The share is σ²/(σ² + noise), which rises with σ²: limits of one are limits of the other.
        ends = [v / (v + split.noise) if v + split.noise > 0 else 1.0 for v in limits]
    share = min(1.0, max(0.0, split.distribution / split.test_set))
    return Interval(share, ends[0], ends[1], level)


def std_interval(std: float, variances: tuple[float, float], level: float, unit: str) -> Interval:
    """Return a standard deviation with limits from those of its variance, cut off at the largest possible."""
    most = max(MOST_STD.get(unit, math.inf), std)  # of two or three runs a sample may have more
    low, high = (min(math.sqrt(v), most) for v in variances)
    return Interval(std, low, high, level)


def true_std(split: VarianceSplit, level: float, unit: str) -> Interval:
    """Return the standard deviation of true error between runs with its F interval."""
    return std_interval(math.sqrt(max(0.0, split.distribution)), f_interval(split, level), level, unit)


def normal_std(variance: float, degrees: float, level: float, unit: str, tied: float = 0.0) -> Interval:
    """Return a standard deviation of normal values with its χ² interval; ``tied`` as of :func:`run_std`."""
    tail = (1 - level) / 2
    low, high = ((variance or tied) * degrees / float(chdtri(degrees, p)) for p in (tail, 1 - tail))
    return std_interval(math.sqrt(variance), (low if variance else 0.0, high), level, unit)


def run_std(run_errors: FloatArray, level: float, unit: str = "fraction", tied: float = 0.0) -> Interval:
    """Return the standard deviation between runs by χ², with fewer degrees of freedom for heavy tails.

    ``tied`` is what :func:`tied_variance` says of runs that do not differ.
    """
    if np.ptp(run_errors) == 0:
        return normal_std(0.0, len(run_errors) - 1, level, unit, tied)
    tails = judge_tails(run_errors)
    degrees = variance_degrees(len(run_errors), tails.excess_kurtosis if tails.heavy else 0.0)
    return normal_std(float(np.var(run_errors, ddof=1)), degrees, level, unit)


def variance_degrees(runs: int, excess_kurtosis: float, examples: float = 0.0) -> float:
    """Return degrees of freedom of a variance of ``runs`` values with this excess kurtosis.

    The relative variance of a sample variance is κ/R + 2/(R − 1), and that of a χ² with d degrees of
    freedom is 2/d. ``examples`` is what the sampling of examples adds to the former.

    >>> round(variance_degrees(10, 0.0), 9), round(variance_degrees(10, 3.0), 1)
    (9.0, 3.8)
    """
    return 2 / (excess_kurtosis / runs + 2 / (runs - 1) + examples)


@dataclass(frozen=True)
class Tails:
    """Heaviness of the tails of run errors, and the interval that follows from it.

    Attributes
    ----------
    runs : int
        Number of runs.
    excess_kurtosis : float
        Excess kurtosis of their errors, with the usual correction for bias; 0 for normal ones.
    outlier : float
        The largest distance from the median, in robust standard deviations; 0 where more than half of the runs are
        alike.
    """

    runs: int
    excess_kurtosis: float
    outlier: float

    @property
    def heavy(self) -> bool:
        """True if the F interval should not be trusted."""
        if self.runs < FEWEST:
            return False
        # Both limits are set so that normal runs pass about nineteen times in twenty.
        limit = KURTOSIS * math.sqrt(24 / self.runs)  # 24/R: variance of a normal sample's kurtosis
        furthest = max(OUTLIER * (1 + 10 / self.runs**1.5), float(-ndtri(0.005 / self.runs)))
        return self.excess_kurtosis > limit or self.outlier > furthest

    def warnings(self, method: str) -> list[str]:
        """Warn of an interval that may not cover."""
        if self.runs < FEWEST:
            return [
                f"{self.runs} runs are too few to check that run effects are normal, and no interval is valid"
                f" if they are not: train at least {FEWEST}."
            ]
        if not self.heavy:
            return []
        # Not known where more than half of the runs are alike.
        far = f", one run {self.outlier:.1f} robust standard deviations from the median" if self.outlier else ""
        text = f"run errors have heavy tails (excess kurtosis {self.excess_kurtosis:.1f}{far})"
        if self.runs < ENOUGH:
            return [
                f"{text}: failed runs? With {self.runs} runs no interval is certain to cover then; with"
                f" {ENOUGH} or more, one is."
            ]
        if method == "F":
            return [Message(f"{text}: the F interval is too narrow; {arg('interval', 'auto')} takes a better one.")]
        return []


def judge_tails(run_errors: FloatArray) -> Tails:
    """Measure how far run errors are from normal ones."""
    r, away = len(run_errors), np.abs(run_errors - float(np.median(run_errors)))
    robust = 1.4826 * float(np.median(away))  # the factor makes it the standard deviation of normal values
    outlier = float(away.max()) / robust if robust > 0 else 0.0
    deviation = run_errors - run_errors.mean()
    second = float((deviation**2).mean())
    if r < 4 or second == 0:
        return Tails(r, 0.0, outlier)
    # G2 of Joanes and Gill (1998): unbiased for normal values, which the plain ratio is not with few runs.
    plain = float((deviation**4).mean()) / second**2 - 3
    return Tails(r, ((r + 1) * plain + 6) * (r - 1) / ((r - 2) * (r - 3)), outlier)


def example_variance(values: FloatArray, groups: NDArray[np.int64] | None = None) -> tuple[float, float]:
    """Return the variance of a mean over sampled examples (or groups), and its degrees of freedom."""
    if groups is None:
        return float(values.var(ddof=1)) / len(values), len(values) - 1.0
    design = sample_design(len(values), groups)
    return float(design.variance(values)), float(design.degrees(values))


def sampled_variance(values: FloatArray, groups: NDArray[np.int64] | None, binary: bool) -> tuple[float, float]:
    """As :func:`example_variance`, for 0/1 errors of which few examples show any.

    If no example errs, or tells two trainings apart, one that does may be missing from the sample: the
    variance is then not less than that of two such units, one each way.
    """
    variance, degrees = example_variance(values, groups)
    # An error shows something unless it is like nearly all: always right or wrong, all tied or all apart.
    shown = values != np.round(values.mean()) if binary else np.ones(len(values), dtype=bool)
    seen = shown if groups is None else np.bincount(groups, weights=shown) > 0
    if np.count_nonzero(seen) >= FEW_UNITS:
        return variance, degrees
    units = len(values) if groups is None else len(np.unique(groups))
    return max(variance, 2 / (units + 2) ** 2), degrees


@dataclass(frozen=True)
class MeanTest:
    """Estimate that should be 0, with its interval and p-value.

    Attributes
    ----------
    estimate : Interval
        The estimate.
    statistic : float
        The estimate over its standard error.
    pvalue : float
        Two-sided p-value.
    """

    estimate: Interval
    statistic: float
    pvalue: float


def rate_interval(values: FloatArray, groups: NDArray[np.int64] | None, level: float) -> Interval:
    """Return the mean of a rate over sampled examples (or groups), not trusted where few examples show any."""
    sampled = sampled_variance(values, groups, binary=True)
    return clipped(mean_test(float(values.mean()), [sampled], 0.0, level).estimate)


def mean_test(estimate: float, parts: Sequence[tuple[float, float]], twice: float, level: float) -> MeanTest:
    """Test if a mean is 0, from the parts of its variance with their degrees of freedom.

    ``twice`` is the variance that every part holds, and must be counted once.
    """
    variances, degrees = np.array(parts, dtype=np.float64).T
    # The estimated overlap may exceed a part by chance; the total is never below the largest part.
    total = max(float(variances.max()), float(variances.sum()) - twice * (len(parts) - 1))
    df = satterthwaite(total, variances, degrees)
    half = float(stdtrit(df, (1 + level) / 2)) * math.sqrt(total)
    interval = Interval(estimate, estimate - half, estimate + half, level)
    # Nothing varies: any mean other than 0 is then certain.
    if total == 0:
        return MeanTest(interval, 0.0 if estimate == 0 else math.inf, 1.0 if estimate == 0 else 0.0)
    statistic = estimate / math.sqrt(total)
    return MeanTest(interval, statistic, 2 * float(stdtr(df, -abs(statistic))))


def mean_interval(totals: Totals, split: VarianceSplit, level: float) -> Interval:
    """Return the mean error on new data, runs and examples both counted as sampled."""
    binary = totals.unit == "fraction"
    mean = both_sampled(
        float(totals.run.mean()),
        [(split.test_set / split.runs, split.runs - 1)],
        sampled_variance(totals.example, totals.groups, binary),
        split.noise / split.runs,
    ).interval(level)
    return clipped(mean) if binary else mean


def interval_of(ends: Iterable[float], level: float) -> Interval:
    """Return an interval from its estimate, lower and upper limit."""
    estimate, low, high = map(float, ends)
    return Interval(estimate, low, high, level)


def clipped(interval: Interval) -> Interval:
    """Cut the limits of a rate off at 0 and 1."""
    low, high = np.clip([interval.low, interval.high], 0.0, 1.0).tolist()
    return Interval(interval.estimate, low, high, interval.level, interval.kind)


def mostly_wrong(error: float, unit: str, given: Predictions | None = None) -> list[str]:
    """Warn of a mean error that is more likely a mistake in the input."""
    if unit != "fraction":
        return []
    truth = given.labels if given is not None and given.kind == "labels" else None
    # Hits beside labels of two classes look like predicted classes, and coin flips would be right half the time.
    if truth is not None and len(np.unique(truth)) == 2 and error > 0.5:
        remedy = f"if 1 means a correct answer, pass {arg('kind', 'correct')}."
        return [Message(f"more than half of the predictions are wrong: {remedy}")]
    if error <= SUSPICIOUS:
        return []
    # Answers other than 0 and 1 are classes, and no hits.
    if given is not None and truth is not None and not {*np.unique(given.values[:20]).tolist()} <= {0, 1}:
        remedy = "check that the labels are in the order of the examples, unless the networks are hardly trained."
        return [Message(f"more than two thirds of the predictions are wrong: {remedy}")]
    remedy = (
        f"If these are hits, or accuracies, say so ({arg('kind', 'correct')}, {arg('higher_is_better', True)}); if"
        " classes were predicted, check that the labels are given and in order."
    )
    return [Message(f"more than two thirds of the answers are wrong. {remedy}")]


def few_groups(effective: float | None) -> list[str]:
    """Warn of groups that weigh as much as a few of equal size; None without groups."""
    if effective is None or effective >= FEW_CLUSTERS:
        return []
    return [
        f"the groups weigh as much as {effective:.1f} of equal size: too few to generalize well"
        " from this test set to new groups."
    ]


ENDS = ("estimate", "low", "high")
"""Columns of a table with a row for each quantity."""


@dataclass(frozen=True)
class DisplayUnit:
    """Name, sign and direction of errors for people.

    The analyses store scores, of which a high one is good, as negative errors, so that lower is better in every unit.
    People read the score itself, and differences of the scores themselves.

    >>> DisplayUnit("score").interval(Interval(-31.0, -32.0, -30.5))
    Interval(estimate=31.0, low=30.5, high=32.0, level=0.95, kind='confidence')
    """

    unit: str

    @property
    def word(self) -> str:
        """The measured quantity: error, loss or score."""
        return self.unit if self.unit in ("loss", "score") else "error"

    @property
    def best(self) -> str:
        """Direction of the best value: lowest, or highest of scores."""
        return "highest" if self.unit == "score" else "lowest"

    @property
    def sign(self) -> float:
        """Factor from a stored error to the displayed value: −1 for scores."""
        return -1.0 if self.unit == "score" else 1.0

    @property
    def direction(self) -> str:
        """Meaning of the sign of a stored difference, for documents that people and programs read without this page."""
        first, second = ("b", "a") if self.unit == "score" else ("a", "b")
        return f"{self.word} of {first} minus {self.word} of {second}: below 0, a is better"

    def signed(self, errors: ArrayLike) -> FloatArray:
        """Return errors, or differences of them, with the sign in which they are read."""
        return self.sign * np.asarray(errors, dtype=np.float64)

    def interval(self, error: Interval) -> Interval:
        """Return the interval of an error, or of a difference, with the sign in which it is read."""
        if self.unit != "score":
            return error
        return replace(error, estimate=-error.estimate, low=-error.high, high=-error.low)

    def columns(
        self,
        columns: Mapping[str, Sequence[Any] | NDArray[Any]],
        names: tuple[str, str, str] = ENDS,
        rows: Sequence[str] | None = None,
    ) -> dict[str, Any]:
        """Return a table whose estimates and limits have the sign in which they are read.

        Parameters
        ----------
        columns : mapping
            The table with errors as they are stored.
        names : tuple of str
            Columns of the estimates and of their lower and upper limits.
        rows : sequence of str, optional
            Only the rows of these quantities; the others are probabilities, standard deviations or shares.
        """
        table = {name: list(columns[name]) for name in names}
        for i in range(len(table[names[0]])):
            if rows is None or columns["quantity"][i] in rows:
                ends = self.interval(Interval(*(table[name][i] for name in names)))
                for name, end in zip(names, ends, strict=True):
                    table[name][i] = end
        return dict(columns) | table


QUANTITIES = {
    "difference": "difference on new data",
    "test_set_difference": "difference on this test set",
    "probability_better": "chance that {a} beats {b}, this test set (by ranks)",
    "distribution_probability": "chance that {a} beats {b}, new data (normal runs)",
    "test_set_std": "std on this test set",
    "independent_std": "std if examples were independent",
    "distribution_std": "std on new data",
    "distribution_std_robust": "… not assuming normal runs",
    "distribution_share": "share of variance that is real",
    "test_set_std_a": "std of {a} on this test set",
    "test_set_std_b": "std of {b} on this test set",
    "distribution_std_a": "std of {a} on new data",
    "distribution_std_b": "std of {b} on new data",
    "test_set_ratio": "ratio {a} / {b} on this test set",
    "distribution_ratio": "ratio {a} / {b} on new data",
    "gain_first": "gain on the first part",
    "gain_second": "gain on the second part",
}
"""Rows of the tables of this question as people read them; a and b are the trainings compared."""


def decimals(digits: int) -> Callable[[float], str]:
    """Return a writer of numbers with so many decimals, ``∞`` for infinity, for :func:`format_interval`.

    >>> decimals(2)(1.234), decimals(2)(float("inf"))
    ('1.23', '∞')
    """
    return lambda value: f"{value:.{digits}f}" if math.isfinite(value) else format_number(value)
