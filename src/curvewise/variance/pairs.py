"""Pairs of examples that do not err independently of each other."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.types import FloatArray, Interval, Predictions, Result, as_predictions, check_level
from curvewise.variance._bits import IntArray, column_pack
from curvewise.variance._hypergeometric import smallest_pvalue
from curvewise.variance._pair_counts import TILE, estimate_seconds, iter_pair_counts
from curvewise.variance._pair_search import Found, PairSearch
from curvewise.variance.totals import measure_totals
from curvewise.variance.wording import said

LONG = 20.0
"""Seconds of counting from which it is said beforehand how long it will take."""


@dataclass(frozen=True, eq=False)
class DependentPairs(Result):
    """Pairs of examples whose errors go together, or avoid each other.

    Arrays have one entry per pair that is listed, the largest difference first.

    Attributes
    ----------
    runs, examples, pairs : int
        The size of the experiment; how many pairs of examples there are.
    min_effect : float
        Deviations from independence smaller than this are of no interest.
    deviating : int
        Pairs that deviate by ``min_effect`` or more in these runs, by chance or not.
    dependent : int
        Those among them that chance does not explain: the violating pairs, listed or not.
    first, second : ndarray of int
        Their examples, by index.
    first_ids, second_ids : ndarray
        Their examples, by name; the indices where examples have no names.
    first_correct, second_correct : ndarray
        Share of runs that are right on each.
    both_correct, expected_correct : ndarray
        Share of runs that are right on both, and what independent errors would give.
    differences : tuple of Interval
        ``both_correct − expected_correct``. The intervals allow for the search over all pairs;
        being symmetric they are rough where runs are few.
    pvalues, adjusted_pvalues : ndarray
        Of Fisher's exact test, and adjusted for all pairs of examples.
    multiplicity : {"holm", "bh"}
        How: by the chance of any false pair, or by the share of false pairs among those found.
    """

    runs: int
    examples: int
    pairs: int
    min_effect: float
    deviating: int
    dependent: int
    first: IntArray
    second: IntArray
    first_ids: NDArray[Any]
    second_ids: NDArray[Any]
    first_correct: FloatArray
    second_correct: FloatArray
    both_correct: FloatArray
    expected_correct: FloatArray
    differences: tuple[Interval, ...]
    pvalues: FloatArray
    adjusted_pvalues: FloatArray
    multiplicity: str
    level: float
    warnings: tuple[str, ...]

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per listed pair."""
        return {
            "first": self.first_ids,
            "second": self.second_ids,
            "first correct": self.first_correct,
            "second correct": self.second_correct,
            "expected both correct": self.expected_correct,
            "both correct": self.both_correct,
            "difference": [d.estimate for d in self.differences],
            "low": [d.low for d in self.differences],
            "high": [d.high for d in self.differences],
            "p": self.pvalues,
            "adjusted p": self.adjusted_pvalues,
        }

    def summary(self) -> str:
        """The search in a few sentences."""
        effect = said(self.min_effect, "fraction")
        how = "Holm" if self.multiplicity == "holm" else "Benjamini–Hochberg"
        found = "no pair violates" if not self.dependent else f"{self.dependent:,} violate"
        found = "1 violates" if self.dependent == 1 else found
        lines = [
            f"Of {self.pairs:,} pairs of {self.examples:,} examples, {found} independent errors by"
            f" {effect} or more (Fisher's exact test over {self.runs:,} runs, {how} over all"
            f" pairs, {1 - self.level:.2g}).",
            f"{self.deviating:,} deviate as much in these runs, by chance or not.",
        ]
        if len(self.first):
            lines.append(
                f"The largest deviation is that of {self.first_ids[0]} and {self.second_ids[0]}:"
                f" both are right in {said(float(self.both_correct[0]), 'fraction')} of runs,"
                f" where independent errors would give"
                f" {said(float(self.expected_correct[0]), 'fraction')}."
            )
        return " ".join([*lines, *(f"Beware: {w}" for w in self.warnings)])


def measure_dependent_pairs(
    predictions: Predictions | ArrayLike,
    labels: ArrayLike | None = None,
    *,
    kind: str | None = None,
    axes: Sequence[str] | None = None,
    min_effect: float = 0.02,
    level: float = 0.95,
    multiplicity: str = "holm",
    limit: int = 1000,
    progress: Callable[[float], None] | None = None,
) -> DependentPairs:
    """Find pairs of examples that violate independent errors.

    Errors are independent if the chance of being right on two examples at once is the product of
    the two chances. All pairs are compared; those off by ``min_effect`` or more are tested. The
    test is exact because a normal approximation fails where errors are rare: there it declares
    thousands of independent pairs dependent.

    Parameters
    ----------
    predictions : Predictions or array_like, shape (runs, examples)
        Predicted labels or 0/1 errors, of many runs: hundreds at least. 0/1 errors of as many runs
        as examples, or of more, need ``axes=("runs", "examples")``: without labels their shape
        does not say which is which.
    labels : array_like, shape (examples,), optional
        True classes; needed for predicted labels.
    kind, axes
        As in :func:`decompose_variance`.
    min_effect : float
        The smallest deviation of interest: 0.02 is two points.
    level : float
        One minus the error rate over all pairs of examples.
    multiplicity : {"holm", "bh"}
        Keep the chance of any false pair, or the share of false pairs among those found.
    limit : int
        How many pairs to list; all are counted.
    progress : callable, optional
        Called now and then with the part of the work that is done, from 0 to 1.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> errors = rng.random((400, 30)) < 0.3
    >>> errors[:, 7] = errors[:, 3] ^ (rng.random(400) < 0.1)
    >>> found = measure_dependent_pairs(errors, axes=("runs", "examples"))
    >>> found.dependent, int(found.first[0]), int(found.second[0])
    (1, 3, 7)
    """
    given = as_predictions(predictions, labels, kind=kind, axes=axes)
    _check(given, min_effect, multiplicity, limit)
    check_level(level)
    wrong = np.rint(measure_totals(given).example * given.runs).astype(np.int64)
    share = wrong / given.runs
    kept = np.flatnonzero(share * (1 - share) >= min_effect)  # others cannot deviate so much
    notes = _announce(len(kept), given, level)
    search = PairSearch(wrong[kept], given.runs, given.examples, min_effect, level, multiplicity)
    columns = column_pack(_packed_blocks(given), given.examples, given.runs)[kept]
    done = 0
    for i, j, counts in iter_pair_counts(columns):
        search.add(i, j, counts, limit)
        done += counts.size * (1 if i == j else 2)  # tiles stand for both sides of the diagonal
        if progress is not None:
            progress(done / len(kept) ** 2)
    return _result(given, search, search.finish(limit), kept, level, notes)


def _result(
    given: Predictions,
    search: PairSearch,
    found: Found,
    kept: IntArray,
    level: float,
    notes: list[str],
) -> DependentPairs:
    if found.coarse:
        notes.append(
            "so many pairs deviate that p-values were adjusted by Bonferroni's rule, which finds"
            " no more than the one asked for: a failed run among the runs does this."
        )
        warnings.warn(notes[-1], CurvewiseWarning, stacklevel=3)
    first, second = kept[found.i], kept[found.j]
    names = np.arange(given.examples) if given.example_ids is None else given.example_ids
    one, two = (1 - search.wrong[k] / given.runs for k in (found.i, found.j))
    both = one + two - 1 + found.counts / given.runs
    return DependentPairs(
        runs=given.runs,
        examples=given.examples,
        pairs=search.tests,
        min_effect=search.min_effect,
        deviating=search.deviating,
        dependent=found.dependent,
        first=first,
        second=second,
        first_ids=names[first],
        second_ids=names[second],
        first_correct=one,
        second_correct=two,
        both_correct=both,
        expected_correct=one * two,
        differences=search.intervals(found, level),
        pvalues=found.pvalues,
        adjusted_pvalues=found.adjusted,
        multiplicity=search.multiplicity,
        level=level,
        warnings=tuple(notes),
    )


def _announce(kept: int, given: Predictions, level: float) -> list[str]:
    """What to know beforehand: how long it takes, and whether it can find anything."""
    notes = []
    pairs = given.examples * (given.examples - 1) / 2
    if smallest_pvalue(given.runs) > (1 - level) / pairs:
        notes.append(
            f"{given.runs:,} runs are too few: no pair among {pairs:,.0f} could be told from"
            " chance. Train more runs, or pass fewer examples."
        )
    seconds = estimate_seconds(kept, given.runs) if kept > TILE else 0.0
    if seconds > LONG:
        faster = "" if find_spec("numba") else " (curvewise[fast] makes it about ten times faster)"
        notes.append(f"counting the pairs takes about {_duration(seconds)}{faster}.")
    for text in notes:
        warnings.warn(text, CurvewiseWarning, stacklevel=3)
    return notes


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes"


def _packed_blocks(given: Predictions) -> Iterator[NDArray[np.uint8]]:
    if given.packed is None:
        for _, errors in given.error_blocks():
            yield np.packbits(errors, axis=1)
        return
    for _, bits in given.blocks():
        yield ~bits if given.higher_is_better else bits


def _check(given: Predictions, min_effect: float, multiplicity: str, limit: int) -> None:
    if not given.binary:
        raise InputError(
            "predictions holds losses or repeats: pairs need one 0/1 error (or predicted class) of"
            " each run for each example."
        )
    if not (math.isfinite(min_effect) and 0 < min_effect <= 0.25):
        raise InputError(
            f"min_effect={min_effect} must be above 0 and at most 0.25, the largest deviation there"
            " is. 0.02 is two points."
        )
    if multiplicity not in ("holm", "bh"):
        raise InputError(f"multiplicity={multiplicity!r} is not known: use 'holm' or 'bh'.")
    if limit < 1:
        raise InputError(f"limit={limit} must be at least 1.")
