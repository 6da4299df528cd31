"""LEEP and NCE: how well a checkpoint's own classes tell the labels of a task."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.ranking._prediction import (
    TAKES,
    asked_targets,
    conditional,
    has_test,
    mean_log,
    predict_labels,
    same_width,
)
from curvewise.ranking._targets import as_targets
from curvewise.ranking.measure import RankingMeasure
from curvewise.types import as_matrix


def leep(
    source_probabilities: ArrayLike,
    labels: ArrayLike,
    *,
    test_probabilities: ArrayLike | None = None,
    test_labels: ArrayLike | None = None,
) -> float:
    """Log expected empirical prediction (Nguyen et al. 2020): more is better, 0 is best.

    The source classes z that a checkpoint's own head sees in training examples are counted with
    their labels y. Then Σ P̂(y|z) P(z|x) predicts the label of a test example without training,
    and the score is the mean logarithm of the probability of the right label.

    Parameters
    ----------
    source_probabilities : array_like, shape (examples, source classes)
        Softmax output of the checkpoint's own head, for the training examples. Rows that add up
        to 1 within a hundredth, as in half precision, are scaled to do so.
    labels : array_like
        A class for each, or a matrix of 0 and 1 (examples × classes) where there may be several:
        then an example counts once for each of its labels.
    test_probabilities, test_labels : array_like, optional
        Examples to score. Without them the training examples are scored (in-sample).

    Returns
    -------
    float
        Nats per label. A source class without weight in training predicts labels by frequency.
        A label that training never saw with the source classes of a test example would score -∞:
        probabilities of test labels are not let below P̂(y)/(ñ + 1), what one more example with a
        label drawn by frequency would give. A warning is given where more than one in twenty is.

    Raises
    ------
    InputError
        If rows are not probabilities, lengths differ, there is one class only, or a test label is
        unknown in training.

    See Also
    --------
    nce : With one source class for each example.
    curvewise.ranking.nleep.nleep : For checkpoints without a head.

    Examples
    --------
    >>> source = [[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.2, 0.8]]
    >>> round(leep(source, ["cat", "cat", "dog", "dog"]), 4)
    -0.2955
    >>> round(leep(source, ["cat", "dog", "cat", "dog"]), 4)
    -0.6931
    """
    own = as_probabilities(source_probabilities, "source_probabilities")
    targets = as_targets(labels, len(own), allowed=TAKES, measure="leep")
    if not has_test(test_probabilities, test_labels, "test_probabilities"):
        return mean_log(predict_labels(own, targets, own, targets), targets, None)
    test = as_probabilities(test_probabilities, "test_probabilities")
    same_width(own, test, "test_probabilities")
    asked = asked_targets(test_labels, len(test), targets, "leep")
    return mean_log(predict_labels(own, targets, test, asked), targets, asked)


def nce(
    source_probabilities: ArrayLike,
    labels: ArrayLike,
    *,
    test_probabilities: ArrayLike | None = None,
    test_labels: ArrayLike | None = None,
) -> float:
    """Negative conditional entropy of labels given source classes (Tran et al. 2019).

    As :func:`leep`, with each example counted for one source class, the most probable. More is
    better, 0 is best.

    Parameters
    ----------
    source_probabilities : array_like
        Softmax output (examples × source classes) of the checkpoint's own head, or a source class
        for each example: a number or a name.
    labels : array_like
        A class for each, or a matrix of 0 and 1 (examples × classes).
    test_probabilities, test_labels : array_like, optional
        Examples to score, in the same form. Without them the training examples are scored
        (in-sample).

    Returns
    -------
    float
        Nats per label. Pairs that training never saw are treated as in :func:`leep`.

    Raises
    ------
    InputError
        As :func:`leep`.

    Examples
    --------
    >>> round(nce([0, 0, 0, 1], ["cat", "cat", "dog", "dog"]), 4)
    -0.4774
    """
    own = _source_classes(source_probabilities, "source_probabilities")
    targets = as_targets(labels, len(own), allowed=TAKES, measure="nce")
    asked, every = targets, own
    tested = has_test(test_probabilities, test_labels, "test_probabilities")
    if tested:
        test = _source_classes(test_probabilities, "test_probabilities")
        given, asking = np.asarray(source_probabilities), np.asarray(test_probabilities)
        if given.ndim == asking.ndim == 2:
            same_width(given, asking, "test_probabilities")
        asked = asked_targets(test_labels, len(test), targets, "nce")
        every = np.concatenate([own, test])
    names, codes = np.unique(every, return_inverse=True)
    sums = np.zeros((len(targets.classes), len(names)))
    np.add.at(sums, (targets.codes, codes[: len(own)][targets.rows]), 1.0)
    found = conditional(sums)[asked.codes, codes[-asked.count :][asked.rows]]
    return mean_log(found, targets, asked if tested else None)


def as_probabilities(values: ArrayLike | None, argument: str) -> NDArray[np.floating[Any]]:
    """A matrix whose rows are probabilities; raise otherwise."""
    found = as_matrix(np.asarray(values), argument)
    least, sums = float(found.min()), found.sum(axis=1, dtype=np.float64)
    worst = float(sums[abs(sums - 1).argmax()])
    if least < 0 or abs(worst - 1) > 0.01:
        seen = f"{least:.4g}" if least < 0 else f"a row that adds up to {worst:.4g}"
        raise InputError(
            f"{argument} holds {seen}: give probabilities, which add up to 1 in each row. For "
            "logits take their softmax; for features without a head there is nleep."
        )
    scaled: NDArray[np.floating[Any]] = found / sums.astype(found.dtype)[:, None]
    return scaled


def _source_classes(values: ArrayLike | None, argument: str) -> NDArray[Any]:
    """A source class for each example: the most probable, or the one given."""
    found: NDArray[Any] = np.asarray(values)
    if found.ndim != 1:
        likely: NDArray[Any] = as_probabilities(found, argument).argmax(axis=1)
        return likely
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise InputError(f"{argument} has missing values: leave those examples out.")
    return found.astype(np.str_) if found.dtype.kind == "O" else found


MEASURES = (
    RankingMeasure(
        "leep",
        leep,
        about="How well the checkpoint's own classes tell the labels (LEEP, Nguyen et al. 2020).",
        cost="One pass over the head's probabilities.",
        fails="Needs a classification head; an overconfident head spoils it.",
        flops=lambda n, d, classes: 3.0 * n * d,  # d source classes
        takes="probabilities",
        splits=True,
        targets=TAKES,
        guess="log",
        bounds=(-np.inf, 0.0),
    ),
    RankingMeasure(
        "nce",
        nce,
        about="Minus the entropy of labels given the head's most probable class (NCE, Tran et al. "
        "2019).",
        cost="One pass over the head's probabilities.",
        fails="Needs a classification head; many source classes for few examples look informative "
        "in-sample.",
        flops=lambda n, d, classes: float(n * d),
        takes="probabilities",
        splits=True,
        targets=TAKES,
        guess="log",
        bounds=(-np.inf, 0.0),
    ),
)
