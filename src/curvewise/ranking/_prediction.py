"""Labels predicted through a checkpoint's source classes, as LEEP, NCE and NLEEP do it.

Arrays of probabilities are numpy's or torch's, with ``xp`` the module; labels are numpy's.
"""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.ranking._targets import Targets, as_targets
from curvewise.types import FloatArray

TAKES = ("classes", "multilabel")
RARE = 0.05  # share of test labels at the floor above which a warning is due


def predict_labels(
    source: Any, targets: Targets, tested: Any, asked: Targets, xp: Any = np
) -> FloatArray:
    """Probability of each test label: Σ P̂(label | source class) P(source class | example).

    Parameters
    ----------
    source, tested : array, shape (examples, source classes)
        Probabilities of source classes for the training and the test examples.
    targets, asked : Targets
        Their labels.
    xp : module
        numpy or torch.

    Returns
    -------
    ndarray
        In the order of the rows of ``asked``.
    """
    parts, _ = _by_class(source, targets, xp)
    sums = xp.stack([part.sum(axis=0, dtype=xp.float64) for part in parts])
    given = xp.asarray(conditional(sums, xp), dtype=source.dtype)
    parts, places = _by_class(tested, asked, xp)
    values = np.empty(len(places))
    values[places] = xp.concatenate([part @ given[k] for k, part in enumerate(parts)]).tolist()
    return values


def conditional(sums: Any, xp: Any = np) -> Any:
    """P(label | source class) from sums; label frequencies where a source class has no weight.

    >>> conditional(np.array([[2.0, 0.0], [1.0, 0.0]])).round(3)
    array([[0.667, 0.667],
           [0.333, 0.333]])
    """
    weights = sums.sum(axis=0)
    safe = xp.where(weights > 0, weights, xp.ones_like(weights))
    return xp.where(weights > 0, sums / safe, (sums.sum(axis=1) / weights.sum())[:, None])


def mean_log(
    probabilities: FloatArray, targets: Targets, asked: Targets | None, level: int = 3
) -> float:
    """Mean logarithm; of test labels, not below what the training labels can tell from 0.

    One more training example, with its label drawn apart from its source class, would change a
    probability p to (ñp + P̂(y)) / (ñ + 1): at least P̂(y) / (ñ + 1), where P̂(y) is the label's
    frequency and ñ the number of training labels.
    """
    if asked is not None:
        counts = np.bincount(targets.codes, minlength=len(targets.classes))
        floor = (counts / (len(targets.codes) * (len(targets.codes) + 1.0)))[asked.codes]
        unseen = float((probabilities < floor).mean())
        if unseen > RARE:
            warnings.warn(
                f"{unseen:.0%} of test labels were never seen with their source class in training:"
                " the score rests on the probability that one more example would give them. Take"
                " more training examples (for nleep also: fewer components).",
                CurvewiseWarning,
                stacklevel=level,
            )
        probabilities = np.maximum(probabilities, floor)
    return float(np.log(probabilities).mean())


def asked_targets(labels: Any, count: int, targets: Targets, measure: str) -> Targets:
    """Labels of test examples, each of a class that a training example has."""
    found = as_targets(
        labels,
        count,
        allowed=(targets.kind,),
        measure=f"{measure} with such training labels",
        argument="test_labels",
        classes=targets.classes,
    )
    known = np.bincount(targets.codes, minlength=len(targets.classes)) > 0
    if not len(found.codes):
        raise InputError("test_labels has no label: give examples that have one.")
    if lost := found.codes[~known[found.codes]].tolist():
        raise InputError(
            f"test_labels holds class {targets.classes[lost[0]]!r}, which no training example "
            "has: add examples of it, or leave it out."
        )
    return found


def has_test(features: ArrayLike | None, labels: ArrayLike | None, argument: str) -> bool:
    """Whether there are test examples; raise where only half of them is given."""
    if (features is None) != (labels is None):
        both = [argument, "test_labels"] if labels is None else ["test_labels", argument]
        raise InputError(f"{both[0]} is given without {both[1]}: give both, or neither.")
    return features is not None


def same_width(train: Any, test: Any, argument: str) -> None:
    """Raise where test examples have another number of columns."""
    if train.shape[1] != test.shape[1]:
        raise InputError(
            f"{argument} has {test.shape[1]} columns and the training examples {train.shape[1]}: "
            "give the output of the same layer."
        )


def _by_class(values: Any, targets: Targets, xp: Any) -> tuple[list[Any], NDArray[np.int64]]:
    """Rows of an array for each class, and the places of all of them among the targets."""
    order = np.argsort(targets.codes, kind="stable")
    rows = values[xp.asarray(targets.rows[order])]
    ends = [0, *np.cumsum(np.bincount(targets.codes, minlength=len(targets.classes))).tolist()]
    return [rows[first:last] for first, last in pairwise(ends)], order
