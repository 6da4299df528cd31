"""Whether runs that are lucky on some examples are better on others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.types import (
    FloatArray,
    Interval,
    Predictions,
    Result,
    as_predictions,
    check_level,
    interval_columns,
)
from curvewise.variance._estimates import correlate, same_runs
from curvewise.variance._halves import (
    best_of,
    expected_of_pair,
    expected_of_parts,
    luck_notes,
    over_splits,
    part_errors,
    random_halves,
    split_in_two,
)
from curvewise.variance.anova import share_interval, split_variance
from curvewise.variance.totals import measure_totals
from curvewise.variance.wording import said_interval, said_pvalue

FEWEST = 4
"""Runs below which a correlation has no interval."""


@dataclass(frozen=True, eq=False)
class SeedLuck(Result):
    """What being good on a first set of examples says about a second one.

    Attributes
    ----------
    runs : int
        Number of runs.
    examples : tuple of int
        Size of the first and of the second set.
    split : str
        "even-odd", "random" or "mask" for parts of one test set, "pair" for two test sets.
    correlation : Interval
        Of the runs' errors on the two sets (Fisher's interval).
    pvalue : float
        Of no correlation.
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
        "fraction" for errors, "loss" for losses.
    """

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
    _first: FloatArray
    _second: FloatArray

    @property
    def first_errors(self) -> FloatArray:
        """Error of each run on the first set."""
        return self._first

    @property
    def second_errors(self) -> FloatArray:
        """Error of each run on the second set."""
        return self._second

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per quantity: estimate, low, high."""
        rows = {"correlation": self.correlation, "expected correlation": self.expected}
        if self.random is not None:
            rows["random splits"] = self.random
        rows |= {"gain on the first": self.gain_first, "gain on the second": self.gain_second}
        return interval_columns(rows)

    def summary(self) -> str:
        """What luck is worth, in a few sentences."""
        unit, r = self.unit, self.correlation
        sets = "two test sets" if self.split == "pair" else "two parts of the test set"
        how = {"even-odd": ", examples alternating", "random": ", drawn at random"}
        average = ""
        if self.random is not None:
            average = f"; over {self.splits:,} random splits it is {_plain(self.random)}"
        return " ".join(
            [
                f"The errors of {self.runs:,} runs on {sets} ({self.examples[0]:,} and"
                f" {self.examples[1]:,} examples{how.get(self.split, '')}) have a correlation of"
                f" {_plain(r)} ({said_pvalue(self.pvalue)}){average}.",
                self._expectation(),
                f"The best {self.top:.0%} of runs on the first are better than the mean run there"
                f" by {said_interval(self.gain_first, unit)}, and on the second by"
                f" {said_interval(self.gain_second, unit)}.",
                *(f"Beware: {w}" for w in self.warnings),
            ]
        )

    def _expectation(self) -> str:
        e = self.expected
        condition = " if each run is equally good on both" if self.split == "pair" else ""
        if math.isnan(e.estimate):
            return "What correlation to expect is not known."
        if e.estimate == 0:
            return (
                "No variance between runs was found that is real. That is not to say there is none:"
                f" a correlation of up to {e.high:.3f} may be expected{condition}."
            )
        return (
            "The variance between runs that is real lets expect a correlation of"
            f" {_plain(e)}{condition}."
        )


def measure_seed_luck(
    first: Predictions | ArrayLike,
    second: Predictions | ArrayLike | None = None,
    labels: ArrayLike | None = None,
    second_labels: ArrayLike | None = None,
    *,
    kind: str | None = None,
    axes: Sequence[str] | None = None,
    groups: ArrayLike | None = None,
    split: str | ArrayLike = "even-odd",
    splits: int = 100,
    top: float = 0.25,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> SeedLuck:
    """Ask whether runs that did well on some examples do better on others.

    Parameters
    ----------
    first : Predictions or array_like, shape (runs, examples)
        Predicted labels, 0/1 errors or losses. By itself, it is split in two.
    second : Predictions or array_like, optional
        The same runs on other examples, such as a test set beside a validation set.
    labels, second_labels : array_like, optional
        True classes of the examples of each.
    kind, axes
        As in :func:`decompose_variance`, for both.
    groups : array_like, shape (examples,), optional
        Which examples of ``first`` belong together: they fall into the same part.
    split : {"even-odd", "random"} or array_like of bool, shape (examples,)
        How to split ``first``: by turns, at random, or True for the first part.
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
        raise InputError(f"top={top} must be a share of the runs between 0 and 1, such as 0.25.")
    if splits < 0:
        raise InputError(f"splits={splits} must be 0 or more.")
    given = as_predictions(
        first, labels, kind=kind, axes=axes, groups=groups, argument="first", directed=True
    )
    if given.runs < FEWEST:
        raise InputError(f"first holds {given.runs} run(s): a correlation needs at least {FEWEST}.")
    if second is not None:
        if not isinstance(second, Predictions) and np.ndim(second) == 1:
            raise InputError("second is a second test set; for the true classes pass labels=.")
        if not isinstance(split, str) or split != "even-odd":
            raise InputError("split is for one test set: leave it out where second is given.")
        other = as_predictions(
            second, second_labels, kind=kind, axes=axes, argument="second", directed=True
        )
        return _pair(given, other, top, level)
    return _one(given, split, splits, top, level, np.random.default_rng(rng))


def _pair(first: Predictions, second: Predictions, top: float, level: float) -> SeedLuck:
    order = same_runs(first, second, ("first", "second"))
    totals = measure_totals(first), measure_totals(second)
    if totals[0].unit != totals[1].unit:
        raise InputError("first and second must both be errors or both be losses.")
    shares = [share_interval(split_variance(t), level) for t in totals]
    return _result(
        (totals[0].run, totals[1].run[order]),
        (first.examples, second.examples),
        expected_of_pair(*shares),
        top,
        level,
        split="pair",
        random=None,
        splits=0,
        unit=totals[0].unit,
    )


def _one(
    given: Predictions,
    split: str | ArrayLike,
    splits: int,
    top: float,
    level: float,
    rng: np.random.Generator,
) -> SeedLuck:
    totals = measure_totals(given)
    halves = random_halves(given, splits, rng)
    mask = split_in_two(given, split, rng)
    sums = part_errors(given, np.column_stack([mask, halves]))
    size = np.count_nonzero(np.column_stack([mask, halves]), axis=0)
    first, second = sums / size, (totals.run[:, None] * given.examples - sums)
    second = second / (given.examples - size)
    share = share_interval(split_variance(totals), level)
    sizes = int(size[0]), given.examples - int(size[0])
    return _result(
        (first[:, 0], second[:, 0]),
        sizes,
        expected_of_parts(share, sizes),
        top,
        level,
        split=split if isinstance(split, str) else "mask",
        random=over_splits(first[:, 1:], second[:, 1:], level) if splits else None,
        splits=splits,
        unit=totals.unit,
    )


def _result(
    errors: tuple[FloatArray, FloatArray],
    examples: tuple[int, int],
    expected: Interval,
    top: float,
    level: float,
    **rest: Any,
) -> SeedLuck:
    first, second = errors
    correlation, pvalue = correlate(first, second, level)
    return SeedLuck(
        runs=len(first),
        examples=examples,
        correlation=correlation,
        pvalue=pvalue,
        expected=expected,
        top=top,
        gain_first=best_of(first, first, top, level),
        gain_second=best_of(first, second, top, level),
        level=level,
        warnings=tuple(luck_notes(first, second)),
        _first=first,
        _second=second,
        **rest,
    )


def _plain(interval: Interval) -> str:
    return f"{interval.estimate:.3f} [{interval.low:.3f}, {interval.high:.3f}]"
