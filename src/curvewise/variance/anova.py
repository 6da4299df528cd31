"""One pass over runs × examples: what every decomposition needs, and nothing of their size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, chdtri, fdtri, ndtri, stdtr, stdtrit

from curvewise.errors import InputError
from curvewise.stats.intervals import cluster_degrees, cluster_variance
from curvewise.types.predictions import Predictions
from curvewise.types.results import Interval
from curvewise.types.units import FloatArray
from curvewise.variance.counts import packed_totals

TWINS_UP_TO = 2 * 10**7
"""Cells up to which runs are compared with each other, to find the same run given twice."""


@dataclass(frozen=True, eq=False)
class Totals:
    """What is kept of the errors of R runs on n examples.

    Attributes
    ----------
    run : ndarray, shape (runs,)
        Mean error of each run.
    example : ndarray, shape (examples,)
        Mean error of each example over runs.
    noise : float
        Σ over groups of the variance between runs of the group's total, divided by n²: the
        variance that the test error would have if groups varied independently. Without groups
        each example is its own.
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
        Whether 0/1 values were read as errors though nothing says that 1 means wrong.
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
        """Whether each run was either right or wrong on an example."""
        return self.unit == "fraction" and self.repeats == 1

    @property
    def runs(self) -> int:
        """How many runs."""
        return len(self.run)

    @property
    def examples(self) -> int:
        """How many examples."""
        return len(self.example)

    @property
    def units(self) -> int:
        """How many groups of examples; the examples themselves without groups."""
        return self.examples if self.groups is None else int(self.groups.max()) + 1


class Moments:
    """Means and sums of squared deviations of columns, merged block by block."""

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
        self.squares += ((block - mean) ** 2).sum(axis=0)
        self.squares += shift**2 * (self.count * rows / total)
        self.mean += shift * (rows / total)
        self.count = total

    @property
    def variance(self) -> FloatArray:
        """Variance of each column, ddof 1."""
        return self.squares / (self.count - 1)


def measure_totals(predictions: Predictions) -> Totals:
    """Read the predictions once and keep the totals."""
    if predictions.runs < 2:
        raise InputError(
            "predictions holds one run: the variance between runs needs at least two. One run of"
            " each training can be compared, with weaker evidence."
        )
    if predictions.examples < 2:
        raise InputError("predictions holds one example: a test set needs at least two.")
    if predictions.groups is not None and len(np.unique(predictions.groups)) < 2:
        raise InputError("groups puts all examples into one group: at least two are needed.")
    if predictions.packed is not None and predictions.groups is None:
        return _packed(predictions)
    if predictions.binary and predictions.groups is None:
        return _counted(predictions)
    return _averaged(predictions)


def totals_of_counts(run: FloatArray, wrong: NDArray[Any], runs: int | None = None, twins: int = 0) -> Totals:
    """Totals of 0/1 errors from each run's mean and each example's number of wrong runs."""
    number = len(run) if runs is None else runs
    p = wrong / number
    v = number / (number - 1) * p * (1 - p)
    n = len(wrong)
    return Totals(
        run=run, example=p, noise=float(v.sum()) / n**2, concentration=1 / n, cell_variance=float(v.mean()), twins=twins
    )


def _packed(predictions: Predictions) -> Totals:
    n = predictions.examples
    by_run, by_example = packed_totals((block for _, block in predictions.blocks()), n)
    if predictions.higher_is_better:
        by_run, by_example = n - by_run, predictions.runs - by_example
    return totals_of_counts(by_run / n, by_example)


def _counted(predictions: Predictions) -> Totals:
    n = predictions.examples
    wrong = np.zeros(n, dtype=np.int64)
    by_run: list[NDArray[Any]] = []
    seen = _Seen(predictions)
    for _, errors in predictions.error_blocks():
        seen.add(errors)
        by_run.append(np.count_nonzero(errors, axis=1))
        for part in _rows(errors, 255):  # so that sums of 0/1 bytes fit a byte
            wrong += np.add.reduce(part, axis=0, dtype=np.uint8)
    return totals_of_counts(np.concatenate(by_run) / n, wrong, twins=seen.twins)


def _averaged(predictions: Predictions) -> Totals:
    groups = predictions.groups
    n, repeats = predictions.examples, predictions.repeats
    codes = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1].ravel()
    order, sizes = np.argsort(codes, kind="stable"), np.bincount(codes)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    cells, together = Moments(n), Moments(len(sizes))
    by_run: list[FloatArray] = []
    within, seen = 0.0, _Seen(predictions)
    for _, errors in predictions.error_blocks(repeats=True):
        seen.add(errors)
        means = errors.mean(axis=2, dtype=np.float64)
        if repeats > 1:
            within += float(errors.var(axis=2, ddof=1).sum())
        by_run.append(means.mean(axis=1))
        cells.add(means)
        if groups is not None:
            together.add(np.add.reduceat(means[:, order], starts, axis=1))
    spread = cells.variance
    return Totals(
        run=np.concatenate(by_run),
        example=cells.mean,
        noise=float((spread if groups is None else together.variance).sum()) / n**2,
        concentration=float((sizes.astype(np.float64) ** 2).sum()) / n**2,
        cell_variance=float(spread.mean()),
        repeat_variance=within / (predictions.runs * n) if repeats > 1 else float("nan"),
        repeats=repeats,
        unit=predictions.unit,
        groups=None if groups is None else codes,
        twins=seen.twins,
    )


def _rows(block: NDArray[Any], size: int) -> Iterator[NDArray[Any]]:
    for start in range(0, len(block), size):
        yield block[start : start + size]


class _Seen:
    """Counts runs that repeat an earlier one exactly, where that is cheap to know."""

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
            mark = hash(row.tobytes())
            self.twins += mark in self.rows
            self.rows.add(mark)


# Two-way analysis of variance, runs × examples: point estimates and the F interval.


@dataclass(frozen=True)
class Split:
    """Where the variance between the test errors of runs comes from.

    Attributes
    ----------
    test_set : float
        Variance of the test error between runs, ddof 1.
    independent : float
        What of it there would be if examples (or groups of them) varied independently.
    noise : float
        What the finite test set adds to the variance of true error.
    distribution : float
        Variance of true error between runs: unbiased, so it may be negative.
    example : float
        Variance between examples of the chance of an error: how much they differ in difficulty.
    interaction : float
        Variance of a cell beyond its run and its example; with repeats, without their noise.
    repeat : float
        Variance between repeats in a cell; NaN without repeats.
    runs, units : float
        Degrees of freedom are ``runs − 1`` and ``(runs − 1)(units − 1)``. Groups of unequal size
        count for as many equal ones as carry the same weight.
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

    @property
    def ratio(self) -> float:
        """F: the test-set variance over what noise alone would give."""
        if self.noise > 0:
            return self.test_set / self.noise
        return math.inf if self.test_set > 0 else math.nan

    @property
    def degrees(self) -> tuple[float, float]:
        """Degrees of freedom of :attr:`ratio`."""
        return self.runs - 1, (self.runs - 1) * (self.units - 1)

    @property
    def q(self) -> float:
        """Cochran's Q, which is χ² with ``runs − 1`` degrees of freedom under independence."""
        if self.independent == 0:
            return 0.0
        return (self.runs - 1) * self.test_set / self.independent

    @property
    def independence_pvalue(self) -> float:
        """Of Cochran's Q: how often independent errors would vary as much as this."""
        return float(chdtrc(self.runs - 1, self.q))


def split_variance(totals: Totals) -> Split:
    """Split the variance between runs, from totals."""
    runs, n, c = totals.runs, totals.examples, totals.concentration
    # Runs that do not differ must not do so by the rounding of their mean.
    test_set = float(np.var(totals.run, ddof=1)) if np.ptp(totals.run) else 0.0
    noise = max(0.0, (totals.noise - c * test_set) / (1 - c))
    residual = max(0.0, (totals.cell_variance - test_set) * n / (n - 1))
    repeat = totals.repeat_variance
    return Split(
        test_set=test_set,
        independent=totals.noise,
        noise=noise,
        distribution=(test_set - totals.noise) / (1 - c),
        example=float(np.var(totals.example, ddof=1)) - residual / runs,
        interaction=residual - (0.0 if math.isnan(repeat) else repeat / totals.repeats),
        repeat=repeat,
        runs=runs,
        units=1 / c,
    )


def f_quantiles(split: Split, level: float) -> tuple[float, float]:
    """The lower and upper quantile of F for an interval of this level."""
    tail = (1 - level) / 2
    one, two = split.degrees
    return float(fdtri(one, two, tail)), float(fdtri(one, two, 1 - tail))


def f_interval(split: Split, level: float) -> tuple[float, float]:
    """Limits of the distribution-wise variance for normal run effects."""
    low, high = f_quantiles(split, level)
    limits = [max(0.0, split.test_set / q - split.noise) for q in (high, low)]
    return limits[0], limits[1]


def share_interval(split: Split, level: float, limits: tuple[float, float] | None = None) -> Interval:
    """The share of the test-set variance that is real: Cronbach's α, between 0 and 1.

    Feldt's interval, or from ``limits`` of the distribution-wise variance where these were not
    made by F.
    """
    if split.test_set == 0:
        return Interval(math.nan, 0.0, 1.0, level)
    if limits is None:
        low, high = f_quantiles(split, level)
        ends = [min(1.0, max(0.0, 1 - q / split.ratio)) for q in (high, low)]
    else:
        ends = [v / (v + split.noise) if v + split.noise > 0 else 1.0 for v in limits]
    share = min(1.0, max(0.0, split.distribution / split.test_set))
    return Interval(share, ends[0], ends[1], level)


MOST = {"fraction": 0.5}
"""The largest standard deviation there can be, by unit: that of 0 and 1 with equal chances."""


def std_interval(std: float, low: float, high: float, level: float, unit: str) -> Interval:
    """A standard deviation with its limits, which end at the largest there can be."""
    most = max(MOST.get(unit, math.inf), std)  # of two or three runs a sample may have more
    return Interval(std, min(low, most), min(high, most), level)


def normal_std(variance: float, degrees: float, level: float, unit: str) -> Interval:
    """A standard deviation of normal values, by χ²."""
    tail = (1 - level) / 2
    low, high = (math.sqrt(variance * degrees / chdtri(degrees, p)) for p in (tail, 1 - tail))
    return std_interval(math.sqrt(variance), low, high, level, unit)


def example_variance(values: FloatArray, groups: NDArray[np.int64] | None = None) -> tuple[float, float]:
    """Variance of a mean over sampled examples (or groups of them), and its degrees of freedom.

    Without groups each example is a cluster of one.
    """
    deviation = values - values.mean()
    if groups is None:
        n = len(values)
        return float((deviation**2).sum()) / (n * (n - 1)), n - 1.0
    totals, sizes = np.bincount(groups, weights=deviation), np.bincount(groups)
    return float(cluster_variance(totals, sizes)), cluster_degrees(sizes)


FEW_UNITS = 4
"""Where fewer examples (or groups) than this show anything, more may be missing from the sample."""


def sampled_variance(
    values: FloatArray, groups: NDArray[np.int64] | None, shown: NDArray[np.bool_]
) -> tuple[float, float]:
    """As :func:`example_variance`, for 0/1 errors of which few examples show any.

    Where no example errs, or tells two trainings apart, one that does may be missing from the
    sample: the variance is then not less than that of two such units, one each way.
    """
    variance, degrees = example_variance(values, groups)
    seen = shown if groups is None else np.bincount(groups, weights=shown) > 0
    if np.count_nonzero(seen) >= FEW_UNITS:
        return variance, degrees
    units = len(values) if groups is None else len(np.unique(groups))
    return max(variance, 2 / (units + 2) ** 2), degrees


def satterthwaite(variance: float, parts: FloatArray, degrees: FloatArray) -> float:
    """Degrees of freedom of a variance that is a sum of parts."""
    spread = float((parts**2 / degrees).sum())
    return variance**2 / spread if spread > 0 else math.inf


def t_interval(estimate: float, variance: float, parts: FloatArray, degrees: FloatArray, level: float) -> Interval:
    """A t interval whose variance is a sum of parts, each with its degrees of freedom."""
    df = satterthwaite(variance, parts, degrees)
    t = float(stdtrit(min(df, 1e9), (1 + level) / 2))
    half = t * math.sqrt(variance)
    return Interval(estimate, estimate - half, estimate + half, level)


# Whether an interval for the variance between runs can be trusted: tails and number of runs.

FEWEST = 5
"""With fewer runs nothing can be said about their tails."""

ENOUGH = 30
"""From this many runs on, the bootstrap holds for heavy tails."""

KURTOSIS = 2.0
"""Tails are heavy when the excess kurtosis is above this many of its standard errors …"""

OUTLIER = 4.0
"""… or a run lies further from the median than this many robust standard deviations: more with
few runs, where those are uncertain, and with very many, of which one lies far out by chance. Of
normal runs about one set in twenty looks heavy by either."""


@dataclass(frozen=True)
class Tails:
    """How heavy the tails of run errors are, and what follows.

    Attributes
    ----------
    runs : int
        How many there are.
    excess_kurtosis : float
        Of their errors, with the usual correction for bias; 0 for normal ones.
    outlier : float
        The largest distance from the median, in robust standard deviations.
    """

    runs: int
    excess_kurtosis: float
    outlier: float

    @property
    def heavy(self) -> bool:
        """Whether the F interval should not be trusted."""
        if self.runs < FEWEST:
            return False
        limit = KURTOSIS * math.sqrt(24 / self.runs)
        furthest = max(OUTLIER * (1 + 10 / self.runs**1.5), float(-ndtri(0.005 / self.runs)))
        return self.excess_kurtosis > limit or self.outlier > furthest

    @property
    def method(self) -> str:
        """Which interval to take."""
        if not self.heavy:
            return "F"
        return "bootstrap" if self.runs >= ENOUGH else "robust"

    def warnings(self, method: str) -> list[str]:
        """What to know about the interval in plain words."""
        if self.runs < FEWEST:
            return [
                f"{self.runs} runs are too few to see whether run effects are normal, and no"
                f" interval holds if they are not: train at least {FEWEST}."
            ]
        if not self.heavy:
            return []
        said = f"run errors have heavy tails (excess kurtosis {self.excess_kurtosis:.1f}"
        said += f", one run {self.outlier:.1f} robust standard deviations from the median)"
        if self.runs < ENOUGH:
            return [
                f"{said}: failed runs? With {self.runs} runs no interval is sure to hold then;"
                f" from {ENOUGH} on, one does."
            ]
        if method == "F":
            return [f"{said}: the F interval is too narrow; interval='auto' takes a better one."]
        return []


def judge_tails(run_errors: FloatArray) -> Tails:
    """Measure how far run errors are from normal ones."""
    runs = len(run_errors)
    middle = float(np.median(run_errors))
    away = np.abs(run_errors - middle)
    robust = 1.4826 * float(np.median(away))
    outlier = float(away.max()) / robust if robust > 0 else 0.0
    return Tails(runs, _excess_kurtosis(run_errors), outlier)


def _excess_kurtosis(values: FloatArray) -> float:
    """Excess kurtosis, unbiased for normal values."""
    r = len(values)
    deviation = values - values.mean()
    second = float((deviation**2).mean())
    if r < 4 or second == 0:
        return 0.0
    plain = float((deviation**4).mean()) / second**2 - 3
    return ((r + 1) * plain + 6) * (r - 1) / ((r - 2) * (r - 3))


# A number whose error has several sources, some of them known from a few runs only.

MANY = 1e9
"""Degrees of freedom of a variance that is known."""


@dataclass(frozen=True)
class Estimate:
    """A number with the variance of its error, made of parts that are known more or less well.

    Attributes
    ----------
    value : float
        The number.
    variance : float
        Of its error; NaN where it is not known.
    parts : tuple of (float, float)
        Variances that make it up, with their degrees of freedom.
    """

    value: float
    variance: float
    parts: tuple[tuple[float, float], ...] = ()

    def quantile(self, p: float) -> float:
        """How far out, in standard errors, the error lies with probability ``p``.

        Student's t with Satterthwaite's degrees of freedom. That fails where a part that two to
        four runs make happens to come out small, and the others then pretend to know it: there,
        the mean of the parts' own quantiles weighted by the parts (Cochran and Cox).
        """
        if self._few:
            weights, degrees = self._arrays
            return float(weights @ stdtrit(degrees, p) / weights.sum())
        return float(stdtrit(self.degrees, p))

    def draw(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Values that the truth may have, by what is left open: each part with its own t."""
        weights, degrees = self._arrays
        errors = [math.sqrt(w) * rng.standard_t(min(df, 1e6), size) for w, df in zip(weights, degrees, strict=True)]
        scale = math.sqrt(self.variance / weights.sum())
        drawn: FloatArray = self.value + scale * np.sum(errors, axis=0)
        return drawn

    @property
    def _arrays(self) -> tuple[FloatArray, FloatArray]:
        known = [(v, df) for v, df in self.parts if v > 0] or [(1.0, MANY)]
        weights, degrees = (np.array(x, dtype=float) for x in zip(*known, strict=True))
        return weights, degrees

    @property
    def _few(self) -> bool:
        return min((df for _, df in self.parts), default=MANY) < FEWEST - 1

    @property
    def degrees(self) -> float:
        """Satterthwaite's degrees of freedom of the variance."""
        weights, degrees = self._arrays
        return min(MANY, satterthwaite(float(weights.sum()), weights, degrees))

    def interval(self, level: float, most: float = math.inf) -> Interval:
        """The interval, within ±``most``; unknown limits where the variance is not known."""
        if math.isnan(self.variance):
            return Interval(self.value, math.nan, math.nan, level)
        half = self.quantile((1 + level) / 2) * math.sqrt(self.variance)
        return Interval(self.value, max(-most, self.value - half), min(most, self.value + half), level)

    def tail(self, limit: float, above: bool = True) -> float:
        """One-sided p-value: how often so large a value, if the truth were ``limit`` or less.

        With ``above=False``, how often so small a one if it were ``limit`` or more.
        """
        if math.isnan(self.variance):
            return math.nan
        gap = (self.value - limit) * (1 if above else -1)
        if self.variance == 0:
            return 0.5 if gap == 0 else float(gap < 0)
        far = gap / math.sqrt(self.variance)
        return self._below(-far) if far > 0 else 1 - self._below(far)

    def _below(self, z: float) -> float:
        """The probability whose quantile is ``z``, which is below 0."""
        if not self._few:
            return float(stdtr(self.degrees, z))
        # A mean of quantile functions: the probability lies between those of the parts alone.
        ends = stdtr(self._arrays[1], z)
        if ends.min() <= 1e-300:
            return float(ends.min())
        low, high = math.log(ends.min()), math.log(ends.max())
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self.quantile(math.exp(middle)) < z else (low, middle)
        return math.exp(high)

    @property
    def pvalue(self) -> float:
        """Two-sided, against 0."""
        one = self.tail(0.0, above=self.value > 0)
        return one if math.isnan(one) else min(1.0, 2 * one)


def both_sampled(value: float, runs: list[tuple[float, int]], examples: tuple[float, float], twice: float) -> Estimate:
    """Runs and examples both sampled; ``twice`` is what both parts count.

    ``runs`` and ``examples`` are variances with their degrees of freedom.
    """
    by_example, degrees = examples
    by_run = sum(v for v, _ in runs)
    variance = max(by_run, by_example, by_run + by_example - twice)
    rest = max(0.0, by_example - twice)
    return Estimate(value, variance, (*runs, (rest, degrees)))


def mean_interval(totals: Totals, split: Split, level: float) -> Interval:
    """Mean error on the distribution, runs and examples both counted as sampled."""
    by_run = split.test_set / split.runs
    shown = totals.example != np.round(totals.example.mean())  # neither always right nor wrong
    if totals.unit != "fraction":
        shown[:] = True
    found = both_sampled(
        float(totals.run.mean()),
        [(by_run, split.runs - 1)],
        sampled_variance(totals.example, totals.groups, shown),
        split.noise / split.runs,
    ).interval(level)
    if totals.unit != "fraction":
        return found
    return Interval(found.estimate, max(0.0, found.low), min(1.0, found.high), level)


# Intervals and tests that several analyses of runs × examples share.


@dataclass(frozen=True)
class Test:
    """An estimate that should be 0, with its interval and p-value.

    Attributes
    ----------
    estimate : Interval
        The estimate.
    statistic : float
        The estimate over its standard error.
    pvalue : float
        Two-sided.
    """

    __test__ = False  # pytest: this is no test

    estimate: Interval
    statistic: float
    pvalue: float


def example_interval(values: FloatArray, groups: NDArray[np.int64] | None, level: float) -> Interval:
    """A mean over sampled examples (or groups) by t."""
    parts = {"examples": example_variance(values, groups)}
    return mean_test(float(values.mean()), parts, 0.0, level).estimate


def mean_test(estimate: float, parts: Mapping[str, tuple[float, float]], twice: float, level: float) -> Test:
    """Whether a mean is 0, from the parts of its variance with their degrees of freedom.

    ``twice`` is what every part holds, and must be counted once.
    """
    variances = np.array([part[0] for part in parts.values()])
    degrees = np.array([part[1] for part in parts.values()], dtype=np.float64)
    total = max(float(variances.max()), float(variances.sum()) - twice * (len(parts) - 1))
    interval = t_interval(estimate, total, variances, degrees, level)
    if total == 0:
        return Test(interval, 0.0 if estimate == 0 else math.inf, 1.0 if estimate == 0 else 0.0)
    statistic = estimate / math.sqrt(total)
    df = min(satterthwaite(total, variances, degrees), 1e9)
    return Test(interval, statistic, 2 * float(stdtr(df, -abs(statistic))))


def run_std(run_errors: FloatArray, level: float, unit: str = "fraction") -> Interval:
    """Standard deviation between runs by χ², with fewer degrees of freedom for heavy tails.

    A variance of R values with excess kurtosis κ is known as well as one of 2R/(κ + 2R/(R − 1))
    degrees of freedom (R − 1 for normal values); κ counts where tails are judged heavy.
    """
    runs = len(run_errors)
    if np.ptp(run_errors) == 0:
        return Interval(0.0, 0.0, 0.0, level)
    tails = judge_tails(run_errors)
    excess = tails.excess_kurtosis if tails.heavy else 0.0
    degrees = 2 * runs / (excess + 2 * runs / (runs - 1))
    return normal_std(float(np.var(run_errors, ddof=1)), degrees, level, unit)


def correlate(x: FloatArray, y: FloatArray, level: float) -> tuple[Interval, float]:
    """Pearson's correlation with Fisher's interval, and the p-value of none at all."""
    runs = len(x)
    a, b = x - x.mean(), y - y.mean()
    norm = math.sqrt(float(a @ a) * float(b @ b))
    if norm == 0 or np.ptp(x) == 0 or np.ptp(y) == 0:  # rounding may leave some of a constant
        return Interval(math.nan, -1.0, 1.0, level), math.nan
    r = min(1.0, max(-1.0, float(a @ b) / norm))
    if abs(r) >= 1 - 1e-15:
        return Interval(r, r, r, level), 0.0
    half = float(ndtri((1 + level) / 2)) / math.sqrt(runs - 3)
    low, high = math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)
    statistic = r * math.sqrt((runs - 2) / (1 - r * r))
    return Interval(r, low, high, level), 2 * float(stdtr(runs - 2, -abs(statistic)))


def same_runs(first: Predictions, second: Predictions, names: tuple[str, str]) -> NDArray[Any]:
    """Which run of ``second`` each run of ``first`` is: by name where both name them."""
    if first.runs != second.runs:
        raise InputError(
            f"{names[0]} has {first.runs:,} runs and {names[1]} {second.runs:,}: the same runs must"
            " be scored on both. Leave out the runs that one of them lacks."
        )
    if first.run_ids is None or second.run_ids is None:
        return np.arange(first.runs)
    place = {name: i for i, name in enumerate(second.run_ids.tolist())}
    order = [place.get(name, -1) for name in first.run_ids.tolist()]
    if min(order) < 0:
        missing = first.run_ids[order.index(-1)]
        raise InputError(
            f"run_ids of {names[1]} lack the run {missing!r} of {names[0]}: the same runs must be scored on both."
        )
    return np.array(order)


def interval_of(ends: Sequence[float] | FloatArray, level: float, kind: str = "confidence") -> Interval:
    """Estimate, low and high as an interval."""
    estimate, low, high = map(float, ends)
    return Interval(estimate, low, high, level, kind)


def chance(interval: Interval) -> Interval:
    """An interval that ends at 0 and 1."""
    low, high = np.clip([interval.low, interval.high], 0.0, 1.0).tolist()
    return Interval(interval.estimate, low, high, interval.level, interval.kind)


# How the numbers of this lens are said.

SUSPICIOUS = 2 / 3
"""A mean error above this is more likely a mistake in the input than a training."""

MOSTLY_WRONG = (
    "more than two thirds of the answers are wrong. If these are hits, or accuracies, say so"
    " (kind='correct', higher_is_better=True); if classes were predicted, check that the labels are"
    " there and in order."
)

HALF_WRONG = "more than half of the predictions are wrong: if 1 means a correct answer, pass kind='correct'."


def mostly_wrong(error: float, unit: str, given: Predictions | None = None) -> list[str]:
    """Warn of a mean error that is more likely a mistake in the input.

    Hits beside labels of two classes look like predicted classes, and coin flips would be right
    half the time.
    """
    if unit != "fraction":
        return []
    truth = given.labels if given is not None and given.kind == "labels" else None
    if truth is not None and len(np.unique(truth)) == 2 and error > 0.5:
        return [HALF_WRONG]
    return [MOSTLY_WRONG] if error > SUSPICIOUS else []


FEW_GROUPS = 10
"""With fewer groups of equal weight their own variance is hardly known."""


def few_groups(effective: float | None) -> list[str]:
    """Warn of groups that weigh as much as a few of equal size; None where there are no groups."""
    if effective is None or effective >= FEW_GROUPS:
        return []
    return [
        f"the groups weigh as much as {effective:.1f} of equal size: too few to generalize well"
        " from this test set to new groups."
    ]
