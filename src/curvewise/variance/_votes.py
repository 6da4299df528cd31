"""How the runs voted on each example: counts of classes, and what they estimate without bias."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.types import FloatArray, Predictions
from curvewise.variance._class_counts import class_counts

MOST_CELLS = 2 * 10**9
"""Examples × classes beyond which the classes are taken for a mistake."""


@dataclass(frozen=True, eq=False)
class Votes:
    """How many of R runs gave each example each class.

    Attributes
    ----------
    counts : ndarray of int, shape (examples, classes)
        Only classes that are true or predicted somewhere have a column.
    truth : ndarray of int, shape (examples,)
        Column of the true class.
    column : ndarray of int
        Column of each class number.
    names : tuple
        What the classes of the columns are called.
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
        """How many classes occur."""
        return int(self.counts.shape[1])

    @property
    def examples(self) -> int:
        """How many examples."""
        return len(self.truth)

    @property
    def right(self) -> NDArray[np.int64]:
        """How many runs were right on each example."""
        return np.take_along_axis(self.counts, self.truth[:, None], axis=1)[:, 0]

    @property
    def error(self) -> FloatArray:
        """Share of runs that were wrong on each example."""
        return 1 - self.right / self.runs

    @property
    def disagreement(self) -> FloatArray:
        """Share of pairs of different runs that disagree on each example: Σ q(1 − q), unbiased."""
        same = np.einsum("ij,ij->i", self.counts, self.counts) - self.runs
        values: FloatArray = 1 - same / (self.runs * (self.runs - 1))
        return values


def count_votes(predictions: Predictions, least: int = 2) -> Votes:
    """Count the classes in one pass; a second only if a class is predicted that no label has."""
    if predictions.repeats > 1:
        raise InputError(
            "predictions has several repeats of each example: votes need one class from each run."
            " Pick one repeat, or put the repeats along the runs."
        )
    if predictions.runs < least:
        raise InputError(f"predictions holds {predictions.runs} run(s): {least} are needed here.")
    if predictions.examples < 2:
        raise InputError("predictions holds one example: a test set needs at least two.")
    counts = _counts(predictions)
    assert predictions.labels is not None
    known = counts.shape[1]
    used = counts.any(axis=0) | (np.bincount(predictions.labels, minlength=known) > 0)
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
        groups=group_codes(predictions),
    )


def _counts(predictions: Predictions) -> NDArray[np.int64]:
    n, known = predictions.examples, class_number(predictions)
    try:
        return class_counts((block for _, block in predictions.label_blocks()), n, known)
    except InputError:
        highest = max(int(block.max()) for _, block in predictions.label_blocks())
        if highest < known:
            raise
    if n * (highest + 1) > MOST_CELLS:
        raise InputError(
            f"predictions holds class {highest:,}, and the labels end at {known - 1:,}: number the"
            " classes 0, 1, …, or pass their names."
        )
    return class_counts((block for _, block in predictions.label_blocks()), n, highest + 1)


def class_number(predictions: Predictions) -> int:
    """How many classes the predictions say there are, without reading them."""
    if predictions.kind == "probabilities":
        return int(predictions.values.shape[2])
    assert predictions.labels is not None or not predictions.has_classes
    named = 0 if predictions.classes is None else len(predictions.classes)
    return max(named, 0 if predictions.labels is None else int(predictions.labels.max()) + 1)


def group_codes(predictions: Predictions) -> NDArray[np.int64] | None:
    """Groups numbered from 0 in order; at least two of them."""
    if predictions.groups is None:
        return None
    found, codes = np.unique(predictions.groups, return_inverse=True)
    if len(found) < 2:
        raise InputError("groups puts all examples into one group: at least two are needed.")
    return codes.ravel().astype(np.int64)
