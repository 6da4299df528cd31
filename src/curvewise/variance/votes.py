"""Votes of the runs: disagreement of two of them, and the error of ensembles.

One pass counts how many runs gave each example each class. Disagreement, error and plurality votes follow
from these counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from typing import Any, ClassVar, TypeAlias, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.text import format_interval, format_pvalue
from curvewise.types.predictions import Predictions
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
    PredictionFormat,
    clipped,
    example_variance,
    group_codes,
    mean_test,
    rate_interval,
    read_predictions,
    sampled_variance,
)

Classes: TypeAlias = NDArray[np.integer[Any] | np.bool_]
METHODS = ("auto", "vote", "average")
BLOCK_CELLS = 2**22
"""Predictions of an ensemble that are read at once."""
MOST_CELLS = 2 * 10**9
"""Examples × classes beyond which the classes are taken for a mistake."""
FEW_CLASSES = 41
"""Classes up to which comparing with each class is faster than np.bincount."""
MANY_RUNS = 4096
"""Runs per np.bincount, or as many as there are classes."""
MANY_BINS = 65536
"""Bins per np.bincount: they stay in the cache."""


def measure_disagreement(
    predictions: Predictions | ArrayLike | PathLike[str],
    labels: ArrayLike | PathLike[str] | None = None,
    *,
    level: float = 0.95,
    **reading: Unpack[PredictionFormat],
) -> Disagreement:
    """Measure how often two runs disagree, over all pairs of runs, in one pass.

    With c runs out of R for a class, R(R − 1) − Σ c(c − 1) ordered pairs disagree on the example,
    so that no pair need be formed. The intervals are those of a new sample of examples for these
    runs; :func:`measure_calibration` counts the runs as sampled, too.

    Parameters
    ----------
    predictions : Predictions or array_like, shape (runs, examples)
        Predicted labels, or probabilities with an axis for the classes.
    labels : array_like, shape (examples,), optional
        True classes.
    kind : {"labels", "probabilities"}, optional
        Kind of the values, if it is not evident.
    axes : sequence of str, optional
        Order of the axes, if the shape does not say it.
    groups : array_like, shape (examples,), optional
        Group of each example: groups are sampled together.
    level : float
        Coverage of the intervals.

    Examples
    --------
    >>> d = measure_disagreement([[0, 1, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]], [0, 1, 0, 1])
    >>> round(d.disagreement.estimate, 3), round(d.error.estimate, 3)
    (0.333, 0.417)
    """
    check_level(level)
    given = read_predictions(predictions, labels, **reading)
    votes = count_votes(given)
    apart = votes.error - votes.disagreement
    # Where no example shows a gap, one that does may be missing from the sample.
    known = example_variance if np.ptp(apart) else partial(sampled_variance, binary=True)
    gap = mean_test(float(apart.mean()), [known(apart, votes.groups)], 0.0, level)
    return Disagreement(
        runs=votes.runs,
        examples=votes.examples,
        classes=votes.classes,
        groups=votes.group_number,
        disagreement=rate_interval(votes.disagreement, votes.groups, level),
        error=rate_interval(votes.error, votes.groups, level),
        gap=gap.estimate,
        pvalue=gap.pvalue,
        level=level,
        warnings=(),
        _votes=votes,
    )


@dataclass(frozen=True, eq=False)
class Disagreement(Result):
    """Disagreement of two runs of one training.

    Attributes
    ----------
    runs, examples, classes : int
        Size of the experiment; classes that occur.
    groups : int or None
        Number of groups of examples that belong together.
    disagreement : Interval
        Chance that two different runs predict different classes for an example.
    error : Interval
        Chance that a run is wrong on an example.
    gap : Interval
        Error minus disagreement: 0 if the ensemble is class-wise calibrated.
    pvalue : float
        P-value of no gap.
    level : float
        Coverage of the intervals, for which examples (or groups of them) are sampled.
    """

    unit: ClassVar[str] = "fraction"

    runs: int
    examples: int
    classes: int
    groups: int | None
    disagreement: Interval
    error: Interval
    gap: Interval
    pvalue: float
    level: float
    warnings: tuple[str, ...]
    _votes: Votes

    @property
    def example_disagreement(self) -> FloatArray:
        """Disagreement of two runs on each example."""
        return self._votes.disagreement

    @property
    def example_errors(self) -> FloatArray:
        """Share of runs that err on each example."""
        return self._votes.error

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per quantity: estimate, low, high."""
        rows = {"disagreement": self.disagreement, "error": self.error, "gap": self.gap}
        return interval_columns(rows)

    def sentences(self) -> str:
        """Disagreement and error in a few sentences."""
        design = f" in {self.groups:,} groups" if self.groups else ""
        if self.pvalue >= 1 - self.level:
            verdict = "not significantly different"
        else:
            less = self.gap.estimate > 0
            verdict = (
                f"so the runs agree {'more' if less else 'less'} often than a calibrated ensemble of this error would"
            )
        return (
            f"Two of {self.runs:,} runs disagree on {format_interval(self.disagreement, 'fraction')} of"
            f" {self.examples:,} examples{design}; a run errs on {format_interval(self.error, 'fraction')}. Error minus"
            f" disagreement is {format_interval(self.gap, 'fraction')} ({format_pvalue(self.pvalue)}): {verdict}."
        )


def measure_ensemble(
    predictions: Predictions | ArrayLike | PathLike[str],
    labels: ArrayLike | PathLike[str] | None = None,
    *,
    method: str = "auto",
    sizes: Sequence[int] | None = None,
    draws: int = 10,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
    **reading: Unpack[PredictionFormat],
) -> Ensemble:
    """Measure the error of ensembles of 1, 2, 4, … and all runs.

    Parameters
    ----------
    predictions : Predictions or array_like, shape (runs, examples)
        Predicted labels, or probabilities (or logits) with an axis for the classes.
    labels : array_like, shape (examples,), optional
        True classes.
    kind, axes
        As in :func:`decompose_variance`.
    groups : array_like, shape (examples,), optional
        Group of each example: groups are sampled together.
    method : {"auto", "vote", "average"}
        Plurality vote, or average of the scores as they are given; "auto" averages where there
        are scores.
    sizes : sequence of int, optional
        Sizes to measure beside 1 and all runs: powers of two by default.
    draws : int
        Random subsets of the runs for each size.
    level : float
        Coverage of the intervals.
    rng : int or Generator
        Determines the subsets.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 5, 1000)
    >>> slips = rng.random((33, 1000)) < 0.3
    >>> e = measure_ensemble(np.where(slips, rng.integers(0, 5, (33, 1000)), labels), labels)
    >>> e.sizes.tolist(), round(e.mean_error.estimate, 2), e.error.estimate
    ([1, 2, 4, 8, 16, 32, 33], 0.24, 0.0)
    """
    check_level(level)
    given = read_predictions(predictions, labels, **reading)
    if method not in METHODS:
        raise InputError(f"is not known: use one of {', '.join(METHODS)}.", argument="method", value=method)
    if method == "average" and given.kind != "probabilities":
        raise InputError(
            f"needs probabilities, and predictions are {given.kind}: use 'vote'.", argument="method", value=method
        )
    if method == "auto":
        method = "average" if given.kind == "probabilities" else "vote"
    runs = given.runs
    wanted = [2**i for i in range(1, max(1, runs).bit_length())] if sizes is None else np.ravel(sizes).tolist()
    if sizes is not None and any(not 1 <= s <= runs or s != int(s) for s in wanted):
        raise InputError(f"must be whole numbers from 1 to the {runs:,} runs.", argument="sizes", value=wanted)
    draws = check_whole(draws, "draws", 1)
    chosen = sorted({1, runs, *(int(s) for s in wanted if s <= runs)})
    votes, generator = count_votes(given), as_generator(rng)
    outcomes = []  # of each size, the error on each example: draws × examples
    for size in chosen:
        if size == 1:
            outcomes.append(votes.error[None])
            continue
        # Subsets without replacement: an ensemble never holds the same run twice. Of all runs there is one.
        rows = [generator.permutation(runs)[:size] for _ in range(draws)] if size < runs else [np.arange(runs)]
        outcomes.append(np.stack([_subset_errors(given, np.sort(r), method, len(votes.column)) for r in rows]))
    errors = [clipped(_ensemble_interval(o, votes, level)) for o in outcomes]
    # A single run gains nothing over itself, and that is certain.
    gains = [Interval(0.0, 0.0, 0.0, level), *(_ensemble_interval(votes.error - o, votes, level) for o in outcomes[1:])]
    return Ensemble(
        runs=runs,
        examples=given.examples,
        groups=votes.group_number,
        method=method,
        mean_error=errors[0],
        error=errors[-1],
        gain=gains[-1],
        sizes=np.array(chosen),
        draws=np.array([len(o) for o in outcomes]),
        errors=tuple(errors),
        gains=tuple(gains),
        level=level,
        warnings=(),
    )


@dataclass(frozen=True, eq=False)
class Ensemble(Result):
    """Error of ensembles of one training's runs, by their size.

    Attributes
    ----------
    runs, examples : int
        Size of the experiment.
    groups : int or None
        Number of groups of examples that belong together.
    method : {"vote", "average"}
        Plurality of predicted classes (a tie counts as a random choice among the tied), or the
        highest of averaged probabilities.
    mean_error : Interval
        Error of a single run.
    error : Interval
        Error of the ensemble of all runs.
    gain : Interval
        Gain of the ensemble of all runs over a single run: how much less it errs.
    sizes : ndarray of int
        Sizes of ensembles; 1 and all runs among them.
    draws : ndarray of int
        Number of random subsets of the runs for each size.
    errors, gains : tuple of Interval
        Error of each size, and how much less it is than that of a single run.
    level : float
        Coverage of the intervals: examples (or groups) are sampled, and subsets of these runs.
    """

    unit: ClassVar[str] = "fraction"

    runs: int
    examples: int
    groups: int | None
    method: str
    mean_error: Interval
    error: Interval
    gain: Interval
    sizes: NDArray[np.int64]
    draws: NDArray[np.int64]
    errors: tuple[Interval, ...]
    gains: tuple[Interval, ...]
    level: float
    warnings: tuple[str, ...]

    @property
    def accuracy(self) -> Interval:
        """Accuracy of the ensemble of all runs."""
        e = self.error
        return Interval(1 - e.estimate, 1 - e.high, 1 - e.low, e.level)

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per size."""
        return {
            "size": self.sizes,
            **interval_lists("error", self.errors),
            **interval_lists("gain", self.gains, "gain_"),
            "draws": self.draws,
        }

    def sentences(self) -> str:
        """Say what the ensemble gains, in a few sentences."""
        how = {"vote": "vote by plurality", "average": "averaged scores"}[self.method]
        design = f" in {self.groups:,} groups" if self.groups else ""
        sentences = [
            f"A single run errs on {format_interval(self.mean_error, 'fraction')} of {self.examples:,}"
            f" examples{design}, the ensemble of all {self.runs:,} runs ({how}) on"
            f" {format_interval(self.error, 'fraction')}: it gains {format_interval(self.gain, 'fraction')}."
        ]
        if self.gain.estimate > 0:
            half = [g.estimate >= 0.9 * self.gain.estimate for g in self.gains].index(True)
            if self.sizes[half] < self.runs:
                sentences.append(f"{self.sizes[half]:,} runs have nine tenths of that gain.")
        return " ".join(sentences)


def _subset_errors(given: Predictions, rows: NDArray[Any], method: str, classes: int) -> FloatArray:
    """Return the error of an ensemble of some runs on each example."""
    assert given.labels is not None
    # A few runs at a time, and one after the other: a source on disk has no fancy index.
    step = max(1, BLOCK_CELLS // int(np.prod(given.values.shape[1:])))
    parts = (
        replace(
            given, values=np.concatenate([given.values[int(r) : int(r) + 1] for r in some]), run_ids=None, seeds=None
        )
        for some in (rows[start : start + step] for start in range(0, len(rows), step))
    )
    if method == "average":  # the highest mean score
        return vote_errors(sum(np.asarray(p.values).sum(axis=0, dtype=np.float64) for p in parts), given.labels)
    blocks = (block for p in parts for _, block in p.label_blocks())
    return vote_errors(class_counts(blocks, given.examples, classes), given.labels)


def vote_errors(counts: NDArray[Any], truth: NDArray[np.int64]) -> FloatArray:
    """Return the chance that a plurality vote is wrong on each example, ties decided at random."""
    # A tie among t classes is decided at random, so that the true one wins with chance 1/t.
    best = counts.max(axis=1)
    tied = np.count_nonzero(counts == best[:, None], axis=1)
    right = np.take_along_axis(counts, truth[:, None], axis=1)[:, 0] == best
    return np.where(right, 1 - 1 / tied, 1.0)


def _ensemble_interval(outcomes: FloatArray, votes: Votes, level: float) -> Interval:
    """Return the mean over draws and examples with its interval; both are sampled."""
    values, draws = outcomes.mean(axis=0), len(outcomes)
    # Two sources of error: the examples at hand, and the subsets that happened to be drawn.
    parts = [sampled_variance(values, votes.groups, binary=True)]
    if draws > 1:
        parts.append((float(np.var(outcomes.mean(axis=1), ddof=1)) / draws, draws - 1.0))
    return mean_test(float(values.mean()), parts, 0.0, level).estimate


def count_votes(predictions: Predictions, least: int = 2, classes: int = 1) -> Votes:
    """Count the classes in one pass; a second only if a class is predicted that no label has.

    ``least`` and ``classes`` are the fewest runs and classes that will do.
    """
    if predictions.repeats > 1:
        problem = "has several repeats of each example: votes need one class from each run."
        remedy = "Pick one repeat, or put the repeats along the runs."
        raise InputError(problem, argument="predictions", remedy=remedy)
    if predictions.runs < least:
        raise InputError(f"holds {predictions.runs} run(s): {least} are needed here.", argument="predictions")
    if predictions.examples < 2:
        raise InputError("holds one example: a test set needs at least two.", argument="predictions")
    counts = _class_table(predictions)
    assert predictions.labels is not None
    known = counts.shape[1]
    # Columns of classes that neither occur nor are predicted would only cost memory.
    used = counts.any(axis=0) | (np.bincount(predictions.labels, minlength=known) > 0)
    if np.count_nonzero(used) < classes:
        raise InputError("labels and predictions hold one class only: two are needed.")
    column = np.cumsum(used) - 1
    names = np.flatnonzero(used).tolist()
    if predictions.classes is not None:
        names = [predictions.classes[i] for i in names]
    return Votes(
        counts=counts if used.all() else counts[:, used],
        truth=column[predictions.labels],
        column=column,
        names=tuple(names),
        runs=predictions.runs,
        groups=group_codes(predictions.groups),
    )


@dataclass(frozen=True, eq=False)
class Votes:
    """Number of the R runs that gave each example each class.

    Attributes
    ----------
    counts : ndarray of int, shape (examples, classes)
        Only classes that are true or predicted somewhere have a column.
    truth : ndarray of int, shape (examples,)
        Column of the true class.
    column : ndarray of int
        Column of each class number.
    names : tuple
        Names of the classes of the columns.
    runs : int
        R.
    groups : ndarray of int or None
        Group of each example, numbered from 0.
    """

    counts: NDArray[np.int64]
    truth: NDArray[np.int64]
    column: NDArray[np.int64]
    names: tuple[Any, ...]
    runs: int
    groups: NDArray[np.int64] | None

    @property
    def classes(self) -> int:
        """Number of classes that occur."""
        return int(self.counts.shape[1])

    @property
    def examples(self) -> int:
        """Number of examples."""
        return len(self.truth)

    @property
    def group_number(self) -> int | None:
        """Number of groups of examples; None without groups."""
        return None if self.groups is None else int(self.groups.max()) + 1

    @property
    def right(self) -> NDArray[np.int64]:
        """Number of runs that were right on each example."""
        return np.take_along_axis(self.counts, self.truth[:, None], axis=1)[:, 0]

    @property
    def error(self) -> FloatArray:
        """Share of runs that were wrong on each example."""
        return 1 - self.right / self.runs

    @property
    def disagreement(self) -> FloatArray:
        """Share of pairs of different runs that disagree on each example: Σ q(1 − q), unbiased."""
        # Ordered pairs of different runs that agree: Σ c(c − 1) = Σ c² − R.
        same = np.einsum("ij,ij->i", self.counts, self.counts) - self.runs
        values: FloatArray = 1 - same / (self.runs * (self.runs - 1))
        return values


def _class_table(predictions: Predictions) -> NDArray[np.int64]:
    """Count classes up to the highest label, or in a second pass up to the highest prediction."""
    n, labels = predictions.examples, predictions.labels
    if predictions.kind == "probabilities":
        known = int(predictions.values.shape[2])
    else:  # errors without classes have none: label_blocks then says what is missing
        named = 0 if predictions.classes is None else len(predictions.classes)
        known = max(named, 0 if labels is None else int(labels.max()) + 1)
    try:
        return class_counts((block for _, block in predictions.label_blocks()), n, known)
    except InputError:
        highest = max(int(block.max()) for _, block in predictions.label_blocks())
        if highest < known:
            raise
    if n * (highest + 1) > MOST_CELLS:
        problem = f"holds class {highest:,}, and the labels end at {known - 1:,}"
        raise InputError(f"{problem}: number the classes 0, 1, …, or pass their names.", argument="predictions")
    return class_counts((block for _, block in predictions.label_blocks()), n, highest + 1)


def class_counts(blocks: Iterable[Classes], n: int, classes: int) -> NDArray[np.int64]:
    """Count, for every example, the runs that predicted each class.

    Parameters
    ----------
    blocks : iterable of integer ndarray, shape (rows, n)
        Predicted classes of some runs each, from 0 to ``classes - 1``.
    n : int
        Number of examples.
    classes : int
        Number of classes.

    Returns
    -------
    ndarray of int64, shape (n, classes)
        Each row sums to the number of runs.
    """
    if n < 1 or classes < 1:
        raise InputError(f"n={n}, classes={classes}: at least 1 example and 1 class are needed.")
    checked = _checked(blocks, classes)
    return _compared(checked, n, classes) if classes <= FEW_CLASSES else _binned(checked, n, classes)


def _checked(blocks: Iterable[Classes], classes: int) -> Iterator[NDArray[np.integer[Any]]]:
    """Yield blocks of class numbers, all of them in range."""
    for block in blocks:
        labels: NDArray[Any] = block.view(np.uint8) if block.dtype.kind == "b" else block
        if not labels.size:
            continue
        for value in (labels.min() if labels.dtype.kind == "i" else 0, labels.max()):
            if not 0 <= value < classes:
                problem = f"holds class {value}, but {classes} classes are 0 to {classes - 1}: number them from 0."
                raise InputError(problem, argument="predictions")
        yield labels


def _compared(blocks: Iterable[NDArray[np.integer[Any]]], n: int, classes: int) -> NDArray[np.int64]:
    """Compare all labels with each class; the last class is what the others leave of the runs."""
    counts, runs = np.zeros((classes, n), dtype=np.int64), 0
    for block in blocks:
        runs += len(block)
        for start in range(0, len(block), 255):  # so that sums of zeros and ones fit a byte
            rows = block[start : start + 255].astype(np.uint8, copy=False)
            for c in range(classes - 1):
                counts[c] += np.add.reduce(rows == np.uint8(c), axis=0, dtype=np.uint8)
    counts[-1] = runs - counts.sum(axis=0)
    return np.ascontiguousarray(counts.T)


def _binned(blocks: Iterable[NDArray[np.integer[Any]]], n: int, classes: int) -> NDArray[np.int64]:
    """Count by np.bincount, a few examples at a time so that their bins stay in the cache."""
    counts = np.zeros((n, classes), dtype=np.int64)
    step = max(1, min(64, MANY_BINS // classes))

    def count(labels: NDArray[np.integer[Any]]) -> None:
        for start in range(0, n, step):
            tile = counts[start : start + step]
            part = labels[:, start : start + step].astype(np.int64)
            part += np.arange(len(tile)) * classes
            tile += np.bincount(part.ravel(), minlength=tile.size).reshape(tile.shape)

    # Short blocks are collected first, so that not each of them walks over all bins.
    waiting: list[NDArray[Any]] = []
    for block in blocks:
        for start in range(0, len(block), max(MANY_RUNS, classes)):
            piece = block[start : start + max(MANY_RUNS, classes)]
            waiting.append(piece.astype(np.min_scalar_type(classes - 1)))  # a copy: the block may be used again
            if sum(map(len, waiting)) >= classes:
                count(np.concatenate(waiting))
                waiting = []
    if waiting:
        count(np.concatenate(waiting))
    return counts
