"""Shares of test examples on which a method beats training from scratch."""

from __future__ import annotations

import hashlib
import math
import warnings as python_warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, stdtrit

from curvewise.errors import CurvewiseWarning, InputError, either
from curvewise.stats.clusters import cluster_degrees, cluster_variance
from curvewise.stats.intervals import excluded_level
from curvewise.stats.tests import holm
from curvewise.text import format_interval, format_level, format_number, format_pvalue
from curvewise.transfer.gains import GainEnd, gain_end
from curvewise.transfer.runs import MANY, columns_of
from curvewise.types.predictions import BLOCK_BYTES, Predictions
from curvewise.types.results import FloatArray, Interval, Result, as_floats, check_level, count_missing

# Losses of runs × examples, in memory or to be read in blocks.
Losses: TypeAlias = "Predictions | FloatArray"

# More runs than this on a tenth as many examples are probably a transposed array.
MANY_RUNS = 50

NAMES = ("the method", "scratch")
# With fewer groups (or examples) an interval is only approximate.
FEW_UNITS = 10
# With fewer runs (or examples, or groups) their variance may come out far too small by chance.
FEW = 5


def win_rate(
    losses: ArrayLike | Predictions | Sequence[ArrayLike],
    scratch_losses: ArrayLike | Predictions | Sequence[ArrayLike],
    *,
    groups: ArrayLike | None = None,
    paired: bool = False,
    names: tuple[str, str] = NAMES,
    level: float = 0.95,
) -> WinRate:
    """Measure the share of test examples on which a method has a lower loss than scratch.

    With several runs it is averaged over all pairs of a run of the method and one of scratch, and
    the interval is for other test examples *and* other runs. With one run of each it is for these
    two networks on other examples; with one run of one side only, that side is taken to vary as
    much as the other.

    Parameters
    ----------
    losses, scratch_losses : array_like or Predictions
        Loss of each example, shape (examples,), or (runs, examples); the numbers of runs may
        differ. Examples must be the same and in the same order. Of booleans True is a wrong answer. Infinite losses may
        be compared;
        a run that is NaN on every example has failed and is left out, with a warning.
        :class:`Predictions` are read a block at a time; those of labels count as 0/1 errors, so
        that most examples are ties.
    groups : array_like, shape (examples,), optional
        Which examples belong together (frames of a video, questions on a passage) and are sampled
        whole. Taken from the predictions where they know.
    paired : bool
        Compare run r of the method only with run r of scratch: for runs that share their training
        subset or seed, whose losses go up and down together.
    names : tuple of str
        Names of the method, and of what it is compared with.
    level : float
        Coverage of the interval.

    Notes
    -----
    The variance is that of a mean over examples, runs of the method and runs of scratch, all of
    them sampled; the interval is Student's on the scale of log odds, with fewer than five runs of a
    side on that of an angle. Two runs say little about how much others vary: the interval is wide for
    that, and a narrower one would hold the truth too seldom where only one side varies. Simulated with
    known truth (``benchmarks/transfer_wins.py``; 50 to 2000 examples), 95% intervals hold it in 98
    to 100% of cases with two runs of each, 93 to 100% with three, 92 to 100% with five or ten,
    least where the rate is near 1 and runs vary much; 94 to 99% where one side does not vary. Where
    a run changes losses as much as an example does they hold a rate of one half in 96 to 100%, one
    of 0.98 in as few as 78%: the runs that lose are seldom among those seen. With one run of each
    they hold the rate of these two networks in 94 to 99%, but that of other runs in as few as 11%.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> difficulty = rng.normal(size=500)
    >>> scratch = difficulty + rng.normal(size=(5, 500))
    >>> method = difficulty - 0.5 + rng.normal(size=(5, 500))
    >>> found = win_rate(method, scratch)
    >>> print(f"{found.rate.estimate:.3f}", found.verdict)
    0.620 better
    """
    if len(names) != 2 or isinstance(names, str):
        raise InputError("must be two: of the method, and of scratch.", argument="names", value=names)
    found = _measured(losses, scratch_losses, groups, paired, level, (names[0], names[1]))
    for text in found.warnings:
        python_warnings.warn(text, CurvewiseWarning, stacklevel=2)
    return found


def win_rates(
    by_n: Mapping[float, tuple[Any, Any]], *, groups: ArrayLike | None = None, paired: bool = False, level: float = 0.95
) -> WinRates:
    """Measure win rates at several training sizes, and from which size they are no longer significant.

    Parameters
    ----------
    by_n : dict
        From training size to the losses of the method and of scratch; see :func:`win_rate`.
    groups, paired, level
        As for :func:`win_rate`, the same at every size.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> draw = lambda gain: (rng.normal(-gain, size=(5, 400)), rng.normal(size=(5, 400)))
    >>> found = win_rates({100: draw(1.0), 1000: draw(0.5), 10000: draw(0.0)})
    >>> print(found.end.text)
    The gain is significant up to n = 1,000; from n = 10,000 on it is not.
    """
    if not isinstance(by_n, Mapping) or not by_n:
        raise InputError("must be a dict from training size to (losses, scratch_losses), not empty.", argument="by_n")
    for size, pair in by_n.items():
        if not isinstance(size, int | float | np.number) or not 0 < size < np.inf:
            raise InputError(f"has the key {size!r}: training sizes are positive numbers.", argument="by_n")
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InputError(f"by_n[{size!r}] must be a pair: (losses, scratch_losses).")
    order = sorted(by_n)
    rates = []
    for size in order:
        try:
            rates.append(_measured(*by_n[size], groups, paired, level))
        except InputError as failure:
            raise InputError(f"At n = {format_number(float(size))}: {failure}") from None
    sizes = np.array(order, dtype=np.float64)
    ends = np.array([[r.rate.estimate, r.rate.low, r.rate.high] for r in rates]) - 0.5
    alarms = tuple(dict.fromkeys(text for r in rates for text in r.warnings))
    for text in alarms:
        python_warnings.warn(text, CurvewiseWarning, stacklevel=2)
    return WinRates(
        n=sizes,
        rates=tuple(rates),
        adjusted=holm(np.array([r.pvalue for r in rates])),
        end=gain_end(sizes, *ends.T),
        level=level,
        warnings=alarms,
    )


def _measured(
    losses: Any,
    scratch_losses: Any,
    groups: ArrayLike | None,
    paired: bool,
    level: float,
    names: tuple[str, str] = NAMES,
) -> WinRate:
    check_level(level)
    called = ("losses", "scratch_losses") if names == NAMES else names
    own, other = _as_losses(losses, called[0]), _as_losses(scratch_losses, called[1])
    _check_pair(own, other, called)
    # The groups given, or those of the predictions, or every example by itself.
    for source in (own, other):
        if groups is None and isinstance(source, Predictions):
            groups = source.groups
    units = SampledUnits(np.ones(own.shape[1]))
    if groups is not None:
        codes = group_codes(groups, own.shape[1])
        if codes.max() == 0:
            raise InputError("has one group of all examples: nothing can be said about others.", argument="groups")
        units = SampledUnits(np.bincount(codes).astype(np.float64), codes)
    if paired and own.shape[0] != other.shape[0]:
        raise InputError(
            f"{called[0]} has {own.shape[0]} runs and {called[1]} has {other.shape[0]}: pairs need as many of each.",
            argument="paired",
            value=True,
        )
    # Predictions hold no failed runs; in an array one that failed is NaN on every example.
    kept = [np.ones(x.shape[0], bool) if isinstance(x, Predictions) else ~np.isnan(x[:, 0]) for x in (own, other)]
    alarms = [
        f"Left out, since failed (NaN on every example): {int((~there).sum())} of {len(there)} runs"
        f" of {name}{', and the runs that go with them' if paired else ''}."
        for name, there in zip(names, kept, strict=True)
        if not there.all()
    ]
    if paired:
        kept = [kept[0] & kept[1]] * 2
        if not kept[0].any():
            raise InputError("in every pair of runs one has failed (NaN).", argument="paired", value=True)
    own, other = (
        x if keep.all() else x.subset(runs=np.flatnonzero(keep)) if isinstance(x, Predictions) else x[keep]
        for x, keep in zip((own, other), kept, strict=True)
    )
    sides = [(own, other)] if paired else [(own, other), (other, own)]
    counts = [_count(*side, units, paired) for side in sides]
    spread = _spread_of(counts, units)
    return WinRate(
        rate=spread.interval(level),
        pvalue=spread.pvalue(),
        ties=counts[0].ties,
        by_run=counts[0].by_run,
        runs=own.shape[0],
        scratch_runs=other.shape[0],
        examples=own.shape[1],
        groups=None if units.codes is None else len(units.sizes),
        paired=paired,
        examples_std=float(np.sqrt(spread.examples)),
        runs_std=float(np.sqrt(spread.runs)),
        level=level,
        warnings=(*alarms, *_warnings(own, other, units, names)),
        names=names,
    )


def _warnings(own: Losses, other: Losses, units: SampledUnits, names: tuple[str, str]) -> tuple[str, ...]:
    sides = ((names[0], own), (names[1], other))
    single = [name for name, losses in sides if losses.shape[0] == 1]
    found = []
    if len(single) == 2:
        found.append(
            "One run of each was compared: the interval is for these two networks on other examples. What another seed "
            "would change is not in it; train three or more of each."
        )
    elif single:
        found.append(
            f"There is one run of {single[0]}: it is taken to vary between runs as much as the other side does."
        )
    for name, losses in sides:
        digests = {hashlib.sha256(row.tobytes()).digest() for _, rows in _blocks(losses) for row in rows}
        if len(digests) < losses.shape[0]:
            found.append(f"Two runs of {name} have the same losses on every example: was a run given twice?")
    if len(units.sizes) < FEW_UNITS:
        word = "examples" if units.codes is None else "groups of examples"
        found.append(f"There are only {len(units.sizes)} {word}: the interval is only approximate.")
    return tuple(found)


@dataclass(frozen=True, eq=False)
class WinRate(Result):
    """Share of test examples on which a method has a lower loss than scratch.

    Attributes
    ----------
    rate : Interval
        The share, ties counting half, for other examples and other runs like these; ½ is no better
        than scratch.
    pvalue : float
        That it is ½, two-sided; not below 1e-9. It is below 1 − level just where the interval
        leaves ½ out.
    ties : float
        Share of comparisons that are ties.
    by_run : ndarray, shape (runs,)
        The share of each run of the method, averaged over the runs of scratch.
    runs, scratch_runs, examples : int
        Numbers of runs and examples compared.
    groups : int, optional
        Groups of examples that belong together, where there are any.
    paired : bool
        Whether run r of the method was compared with run r of scratch only.
    examples_std, runs_std : float
        Standard error of the rate that the sample of examples, and that of runs beyond it, make;
        the latter is NaN where no side has two runs.
    level : float
        Coverage of the interval.
    names : tuple of str
        Of the method, and of what it is compared with.
    """

    rate: Interval
    pvalue: float
    ties: float
    by_run: FloatArray
    runs: int
    scratch_runs: int
    examples: int
    groups: int | None
    paired: bool
    examples_std: float
    runs_std: float
    level: float = 0.95
    warnings: tuple[str, ...] = ()
    names: tuple[str, str] = ("the method", "scratch")

    @property
    def verdict(self) -> str:
        """Significance against scratch: "better", "worse" or "undecided"."""
        if self.rate.low > 0.5:
            return "better"
        return "worse" if self.rate.high < 0.5 else "undecided"

    def columns(self) -> dict[str, Any]:
        """Return one row."""
        return _columns([self])

    def sentences(self) -> str:
        """Summarise the result in a few sentences."""
        who = "The method" if self.names[0] == NAMES[0] else self.names[0]
        grouped = "" if self.groups is None else f" in {self.groups:,} groups"
        verdicts = {
            "better": "it wins significantly more often than it loses",
            "worse": "it loses significantly more often than it wins",
            "undecided": f"not significantly different from {self.names[1]}",
        }
        text = (
            f"{who} has a lower loss than {self.names[1]} on {format_interval(self.rate, 'fraction')} of"
            f" {self.examples:,} test examples{grouped}"
            f" ({format_level(self.level)} interval; {format_pvalue(self.pvalue)} against one half):"
            f" {verdicts[self.verdict]}."
        )
        if self.ties > 0:
            text += f" {100 * self.ties:.1f}% are ties, which count half."
        return text


@dataclass(frozen=True, eq=False)
class WinRates(Result):
    """Win rates by training size.

    Attributes
    ----------
    n : ndarray, shape (sizes,)
        Training sizes, from small to large.
    rates : tuple of WinRate
        One for each.
    adjusted : ndarray, shape (sizes,)
        P-values by Holm's rule, all sizes together.
    end : GainEnd
        Training size from which the rate no longer differs significantly from ½.
    level : float
        Coverage of each interval by itself.
    """

    n: FloatArray
    rates: tuple[WinRate, ...]
    adjusted: FloatArray
    end: GainEnd
    level: float = 0.95
    warnings: tuple[str, ...] = ()

    def at(self, n: float) -> WinRate:
        """Return the win rate at one of the sizes."""
        found = np.flatnonzero(self.n == n)
        if not len(found):
            there = ", ".join(format_number(v) for v in self.n.tolist())
            raise InputError(f"is none of the sizes: {there}.", argument="n", value=n)
        return self.rates[int(found[0])]

    def columns(self) -> dict[str, Any]:
        """Return a row for each size."""
        return {"n": self.n, **_columns(self.rates), "adjusted": self.adjusted}

    def sentences(self) -> str:
        """Summarise the result in a few sentences."""
        parts = [
            f"{format_interval(r.rate, 'fraction')} at n = {format_number(size)}"
            for size, r in zip(self.n.tolist(), self.rates, strict=True)
        ]
        text = "The method has the lower loss on " + ", ".join(parts) + " of the test examples. "
        return text + self.end.text


def _columns(rates: Sequence[WinRate]) -> dict[str, Any]:
    names = "win_rate=rate.estimate low=rate.low high=rate.high pvalue ties runs scratch_runs examples"
    return {name: np.array(column) for name, column in columns_of(rates, names).items()}


@dataclass(frozen=True, eq=False)
class SampledUnits:
    """Units that were sampled: examples, or groups of them. ``codes`` is None if each is its own."""

    sizes: FloatArray
    codes: NDArray[np.intp] | None = None

    def totals(self, rows: NDArray[Any]) -> FloatArray:
        """Sum each row over every unit."""
        if self.codes is None:
            return rows.astype(np.float64)
        return np.array([np.bincount(self.codes, row, len(self.sizes)) for row in rows])


@dataclass(frozen=True, eq=False)
class WinCounts:
    """Wins of the runs of one side, averaged over the runs of the other.

    Attributes
    ----------
    by_run : ndarray, shape (runs,)
        Share of examples that each run wins.
    by_unit : ndarray, shape (units,)
        Wins in each unit, averaged over runs.
    squares : float
        Sum over runs and units of the squared wins.
    ties : float
        Share of ties.
    """

    by_run: FloatArray
    by_unit: FloatArray
    squares: float
    ties: float


def _as_losses(given: Any, argument: str) -> Losses:
    """Return losses as runs × examples, or raise an error that names the argument."""
    if isinstance(given, Predictions):
        return given
    try:
        found = as_floats(given, argument)
    except InputError as failure:
        try:
            lengths = {len(row) for row in given}
        except TypeError:
            lengths = set()
        if len(lengths) < 2:
            raise
        raise InputError(
            f"{argument} has runs of unequal numbers of examples: measure every run on the same test examples.",
            argument=argument,
        ) from failure
    found = found[None] if found.ndim == 1 else found
    if found.ndim != 2 or 0 in found.shape:
        raise InputError(
            f"{argument} has shape {found.shape}: give losses of one run, (examples,), or of"
            " several, (runs, examples); average repeats first.",
            argument=argument,
        )
    missing = np.isnan(found)
    if missing.all():
        raise InputError(f"{argument} holds nothing but NaN: no run has finished.", argument=argument)
    bad = np.flatnonzero(missing.any(axis=1) & ~missing.all(axis=1))
    if len(bad):
        listed = ", ".join(map(str, bad[:5])) + (" …" if len(bad) > 5 else "")
        raise InputError(
            f"{argument} holds NaN on some examples of run(s) {listed}: give each a loss, infinite"
            " where it is too large for a number, or NaN on all examples of a run that failed.",
            argument=argument,
        )
    return found


def _check_pair(losses: Losses, scratch: Losses, names: tuple[str, str]) -> None:
    """Raise unless both are measured on the same examples, in the same kind of loss."""
    (one, n), (two, m) = losses.shape, scratch.shape
    if n != m:
        # As many rows, and more rows than columns: the rows are rather the examples.
        turned = " They look transposed: rows are runs." if one == two and one > max(n, m) else ""
        raise InputError(
            f"{names[0]} has {n:,} examples and {names[1]} has {m:,}: compare them on the same"
            f" test examples, in the same order.{turned}"
        )
    arrays = not (isinstance(losses, Predictions) or isinstance(scratch, Predictions))
    if arrays and min(one, two) >= max(MANY_RUNS, 10 * n):
        raise InputError(
            f"{names[0]} has {one:,} runs on {n:,} examples: are they transposed? Rows are runs and"
            f" columns are examples; turn the arrays over{either(', or pass Predictions if it is so', '')}."
        )
    if n < 2:
        raise InputError(f"{names[0]} has one example: a share of examples needs two or more.")
    if not (isinstance(losses, Predictions) and isinstance(scratch, Predictions)):
        return
    if losses.unit != scratch.unit:  # 0/1 errors beside losses, or scores, whose negatives are always lower
        raise InputError(f"{names[0]} is of kind {losses.kind!r} and {names[1]} of {scratch.kind!r}: pass the same.")
    for field, word in (("true_classes", "labels"), ("example_ids", "example_ids")):
        a, b = getattr(losses, field), getattr(scratch, field)
        if a is not None and b is not None and not np.array_equal(a, b):
            raise InputError(f"{names[0]} and {names[1]} have different {word}: are they one test?")


def group_codes(groups: ArrayLike, examples: int) -> NDArray[np.intp]:
    """Number the groups that examples belong to; every example must have one."""
    found = np.asarray(groups)
    if found.shape != (examples,):
        raise InputError(
            f"groups has shape {found.shape} for {examples:,} examples: say for each example that is measured which "
            "group it belongs to."
        )
    if missing := count_missing(found.tolist()):
        raise InputError(
            f"groups has no value (NaN or None) for {missing} of {examples:,} examples: give each a group, its own if "
            "it is alone."
        )
    names = found.astype(np.str_) if found.dtype.kind == "O" else found
    codes: NDArray[np.intp] = np.unique(names, return_inverse=True)[1].reshape(-1)
    return codes


def _count(own: Losses, other: Losses, units: SampledUnits, paired: bool) -> WinCounts:
    """Count wins of each run of ``own`` against every run of ``other``, or against the one that goes with it."""
    runs, examples = own.shape
    rivals = 1 if paired else other.shape[0]
    by_run, by_unit = np.zeros(runs), np.zeros(len(units.sizes))
    squares, ties = 0.0, 0
    for start, block in _blocks(own):
        rows = slice(start, start + len(block))
        against: Iterable[NDArray[Any]] = (row for _, others in _blocks(other) for row in others)
        if paired:
            against = [other.errors_of(rows) if isinstance(other, Predictions) else other[rows]]
        twice = np.zeros(block.shape, dtype=np.int32)
        for rival in against:
            # 2 where the loss is lower, 1 where it is the same, 0 where it is higher: whole numbers add up exactly.
            won = np.add(block < rival, block <= rival, dtype=np.int8)
            twice += won
            ties += int(np.count_nonzero(won == 1))
        totals = units.totals(twice) / (2 * rivals)
        by_run[rows] = totals.sum(axis=1) / examples
        by_unit += totals.sum(axis=0) / runs
        squares += float(np.vdot(totals, totals))
    return WinCounts(by_run, by_unit, squares, ties / (runs * rivals * examples))


def _blocks(losses: Losses) -> Iterator[tuple[int, NDArray[Any]]]:
    if isinstance(losses, Predictions):
        yield from losses.error_blocks()
        return
    step = max(1, BLOCK_BYTES // (8 * losses.shape[1]))
    for start in range(0, len(losses), step):
        yield start, losses[start : start + step]


@dataclass(frozen=True, eq=False)
class WinSpread:
    """Variance of a share of wins, with its parts: examples and runs both count as sampled.

    Attributes
    ----------
    rate : float
        The share.
    variance : float
        Its variance in all.
    parts, degrees : ndarray
        Variances of means over examples, runs of the method, runs of scratch, as far as there are
        two; they overlap. Their degrees of freedom.
    examples, runs : float
        What examples, and runs beyond them, contribute; ``runs`` is NaN where no side has two.
    units : int
        Examples, or groups of them.
    """

    rate: float
    variance: float
    parts: FloatArray
    degrees: FloatArray
    examples: float
    runs: float
    units: int

    def interval(self, level: float) -> Interval:
        """Return the rates that are not excluded.

        Student's interval on the scale of log odds, or of the angle whose squared sine is the rate
        where a variance rests on few values: quantiles are then so large that on the former nearly
        every rate would be left, however close the runs are. A share of examples (or groups) so
        small that the sample may well hold none of them could be all wins or all losses: the ends
        leave room for it, so that neither all wins nor all ties make an interval without width.
        """
        tail = (1 - level) / 2
        p, unseen = self.rate, -math.expm1(math.log(tail) / self.units)
        low, high = p * (1 - unseen), p + (1 - p) * unseen
        if 0 < p < 1:
            half = self._quantile(1 - tail) * math.sqrt(self.variance)
            if self._few:  # φ = arcsin √p has variance var(p) / 4p(1 − p)
                angle, away = math.asin(math.sqrt(p)), half / math.sqrt(4 * p * (1 - p))
                ends = [math.sin(end) ** 2 for end in (max(0.0, angle - away), min(0.5 * math.pi, angle + away))]
            else:  # the log odds have variance var(p) / (p(1 − p))²
                ends = [float(expit(logit(p) + away)) for away in (-half / (p * (1 - p)), half / (p * (1 - p)))]
            low, high = min(low, ends[0]), max(high, ends[1])
        return Interval(p, low, high, level)

    @property
    def _few(self) -> bool:
        """True if one of the variances rests on few values."""
        return bool(self.degrees.min() + 1 < FEW)

    def pvalue(self) -> float:
        """Return the two-sided p-value against ½: below 1 − level just where the interval excludes ½."""

        def ends(level: float) -> tuple[float, float]:
            _, low, high = self.interval(level)
            return low, high

        return 1.0 - excluded_level(ends, 0.5)

    def _quantile(self, chance: float) -> float:
        """Return Student's quantile, with Satterthwaite's degrees of freedom.

        Where one of the variances rests on few values the half-widths that each would have alone
        are added in squares, since Satterthwaite's degrees are then too many.
        """
        total = float(self.parts.sum())
        if total == 0:
            return float(stdtrit(self.degrees.min(), chance))
        if self._few:
            return math.sqrt(float(self.parts @ stdtrit(self.degrees, chance) ** 2) / total)
        degrees = self.variance**2 / float((self.parts**2 / self.degrees).sum())
        return float(stdtrit(min(degrees, MANY), chance))


def _spread_of(sides: Sequence[WinCounts], units: SampledUnits) -> WinSpread:
    """Estimate the variance of a share of wins from one side (pairs of runs), or from both.

    Means over examples and over the runs of a side vary by what belongs to each alone, and by how
    these runs answer these examples. The latter is in both and is taken out once.
    """
    p = float(sides[0].by_run.mean())
    count = len(units.sizes)
    examples = float(cluster_variance(sides[0].by_unit - p * units.sizes, units.sizes))
    parts, degrees = [examples], [cluster_degrees(units.sizes)]
    total, runs = examples, 0.0
    known = [side for side in sides if len(side.by_run) > 1]
    n = float(units.sizes.sum())
    weight = float((units.sizes**2).sum()) / n**2  # 1/n for examples, more for groups of unequal size
    for side in known:
        # A side with one run is taken to vary as much as the other does.
        times = 1 if len(known) == len(sides) else 1 + len(side.by_run)
        between = float(np.var(side.by_run, ddof=1))
        apart = (side.squares - len(side.by_run) * float(side.by_unit @ side.by_unit)) / (len(side.by_run) - 1) / n**2
        # Variance of the mean over runs, and the part of it that is due to these examples.
        own = between / len(side.by_run)
        noise = max(0.0, (apart - weight * between) / (1 - weight)) / len(side.by_run)
        total += times * (own - noise)
        runs += times * max(0.0, own - noise)
        parts.append(times * own)
        degrees.append(len(side.by_run) - 1)
    return WinSpread(
        rate=p,
        variance=max(total, *parts) if known else total,
        parts=np.array(parts),
        degrees=np.array(degrees, dtype=np.float64),
        examples=examples,
        runs=runs if known else math.nan,
        units=count,
    )
