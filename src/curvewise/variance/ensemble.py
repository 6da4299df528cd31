"""What several runs together are worth: votes and averages of 1, 2, 4, … runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.types import FloatArray, Interval, Predictions, Result, as_predictions, check_level
from curvewise.variance._class_counts import class_counts
from curvewise.variance._estimates import chance, example_interval, mean_test
from curvewise.variance._votes import Votes, count_votes
from curvewise.variance.anova import example_variance
from curvewise.variance.wording import said_interval

METHODS = ("auto", "vote", "average")
BLOCK_CELLS = 2**22
"""Predictions of an ensemble that are read at once."""


@dataclass(frozen=True, eq=False)
class Ensemble(Result):
    """Error of ensembles of one training's runs, by their size.

    Attributes
    ----------
    runs, examples : int
        The size of the experiment.
    groups : int or None
        Number of groups of examples that belong together.
    method : {"vote", "average"}
        Plurality of predicted classes (a tie counts as a random choice among the tied), or the
        highest of averaged probabilities.
    mean_error : Interval
        Of a single run.
    error : Interval
        Of the ensemble of all runs.
    gain : Interval
        Of the ensemble of all runs over a single run: how much less it errs.
    sizes : ndarray of int
        Sizes of ensembles; 1 and all runs among them.
    draws : ndarray of int
        How many random subsets of the runs stand for each size.
    errors, gains : tuple of Interval
        Error of each size, and how much less it is than that of a single run.
    level : float
        Coverage of the intervals: examples (or groups) are sampled, and subsets of these runs.
    """

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
        """Of the ensemble of all runs."""
        e = self.error
        return Interval(1 - e.estimate, 1 - e.high, 1 - e.low, e.level)

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per size."""
        return {
            "size": self.sizes,
            "error": [e.estimate for e in self.errors],
            "low": [e.low for e in self.errors],
            "high": [e.high for e in self.errors],
            "gain": [g.estimate for g in self.gains],
            "gain low": [g.low for g in self.gains],
            "gain high": [g.high for g in self.gains],
            "draws": self.draws,
        }

    def summary(self) -> str:
        """What the ensemble gains, in a few sentences."""
        how = {"vote": "vote by plurality", "average": "averaged scores"}[self.method]
        design = f" in {self.groups:,} groups" if self.groups else ""
        sentences = [
            f"A single run errs on {said_interval(self.mean_error, 'fraction')} of"
            f" {self.examples:,} examples{design}, the ensemble of all {self.runs:,} runs"
            f" ({how}) on {said_interval(self.error, 'fraction')}: it gains"
            f" {said_interval(self.gain, 'fraction')}."
        ]
        if self.gain.estimate > 0:
            half = [g.estimate >= 0.9 * self.gain.estimate for g in self.gains].index(True)
            if self.sizes[half] < self.runs:
                sentences.append(f"{self.sizes[half]:,} runs have nine tenths of that gain.")
        return " ".join([*sentences, *(f"Beware: {w}" for w in self.warnings)])


def measure_ensemble(
    predictions: Predictions | ArrayLike,
    labels: ArrayLike | None = None,
    *,
    kind: str | None = None,
    axes: Sequence[str] | None = None,
    groups: ArrayLike | None = None,
    method: str = "auto",
    sizes: Sequence[int] | None = None,
    draws: int = 10,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
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
        Which examples belong together: they are sampled together.
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
    given = as_predictions(predictions, labels, kind=kind, axes=axes, groups=groups)
    how = _method(given, method)
    chosen = _sizes(given.runs, sizes)
    if draws < 1:
        raise InputError(f"draws={draws} must be at least 1.")
    votes = count_votes(given)
    single, all_runs = _ends(votes, given, how)
    generator, classes = np.random.default_rng(rng), len(votes.column)
    outcomes = []
    for size in chosen:
        if size in (1, given.runs):
            outcomes.append(single[None] if size == 1 else all_runs[None])
            continue
        rows = [generator.permutation(given.runs)[:size] for _ in range(draws)]
        outcomes.append(np.stack([_subset(given, np.sort(r), how, classes) for r in rows]))
    return _result(given, how, chosen, outcomes, votes.groups, level)


def _result(
    given: Predictions,
    method: str,
    sizes: list[int],
    outcomes: list[FloatArray],
    codes: NDArray[np.int64] | None,
    level: float,
) -> Ensemble:
    single = outcomes[0][0]
    errors = [chance(_interval(o, codes, level)) for o in outcomes]
    gains = [_interval(single - o, codes, level) for o in outcomes]
    return Ensemble(
        runs=given.runs,
        examples=given.examples,
        groups=None if codes is None else int(codes.max()) + 1,
        method=method,
        mean_error=errors[0],
        error=errors[-1],
        gain=gains[-1],
        sizes=np.array(sizes),
        draws=np.array([len(o) for o in outcomes]),
        errors=tuple(errors),
        gains=tuple(gains),
        level=level,
        warnings=(),
    )


def _interval(outcomes: FloatArray, codes: NDArray[np.int64] | None, level: float) -> Interval:
    """Mean over draws and examples; both are sampled."""
    values = outcomes.mean(axis=0)
    draws = len(outcomes)
    if draws == 1:
        return example_interval(values, codes, level)
    by_draw = float(np.var(outcomes.mean(axis=1), ddof=1)) / draws
    parts = {"examples": example_variance(values, codes), "draws": (by_draw, draws - 1.0)}
    return mean_test(float(values.mean()), parts, 0.0, level).estimate


def _method(given: Predictions, method: str) -> str:
    if method not in METHODS:
        raise InputError(f"method={method!r} is not known: use one of {', '.join(METHODS)}.")
    if method == "average" and given.kind != "probabilities":
        raise InputError(
            f"method='average' needs probabilities, and predictions are {given.kind}: use 'vote'."
        )
    if method == "auto":
        return "average" if given.kind == "probabilities" else "vote"
    return method


def _sizes(runs: int, sizes: Sequence[int] | None) -> list[int]:
    wanted = [2**i for i in range(1, max(1, runs).bit_length())] if sizes is None else list(sizes)
    if sizes is not None and any(not 1 <= s <= runs or s != int(s) for s in wanted):
        raise InputError(f"sizes={sizes} must be whole numbers from 1 to the {runs:,} runs.")
    return sorted({1, runs, *(int(s) for s in wanted if s <= runs)})


def _ends(votes: Votes, given: Predictions, method: str) -> tuple[FloatArray, FloatArray]:
    """Of each example: share of single runs that err, and error of all runs together."""
    if method == "vote":
        return votes.error, vote_errors(votes.counts, votes.truth)
    return votes.error, _averaged(given, (block for _, block in given.blocks()))


def _subset(given: Predictions, rows: NDArray[Any], method: str, classes: int) -> FloatArray:
    """Error of an ensemble of some runs on each example."""
    assert given.labels is not None
    parts = _read(given, rows)
    if method == "average":
        return _averaged(given, (np.asarray(p.values) for p in parts))
    blocks = (block for p in parts for _, block in p.label_blocks())
    return vote_errors(class_counts(blocks, given.examples, classes), given.labels)


def _read(given: Predictions, rows: NDArray[Any]) -> Iterator[Predictions]:
    """Some runs, a few at a time; a source is read one run after the other."""
    width = int(np.prod(given.values.shape[1:]))
    step = max(1, BLOCK_CELLS // width)
    for start in range(0, len(rows), step):
        some = [np.asarray(given.values[int(r) : int(r) + 1]) for r in rows[start : start + step]]
        yield replace(given, values=np.concatenate(some), run_ids=None)


def vote_errors(counts: NDArray[Any], truth: NDArray[np.int64]) -> FloatArray:
    """Chance that a plurality vote is wrong on each example, ties decided at random."""
    best = counts.max(axis=1)
    tied = np.count_nonzero(counts == best[:, None], axis=1)
    right = np.take_along_axis(counts, truth[:, None], axis=1)[:, 0] == best
    return np.where(right, 1 - 1 / tied, 1.0)


def _averaged(given: Predictions, blocks: Iterator[NDArray[Any]]) -> FloatArray:
    assert given.labels is not None
    total = np.zeros(given.values.shape[1:])
    for block in blocks:
        total += block.sum(axis=0, dtype=np.float64)
    return vote_errors(total, given.labels)
