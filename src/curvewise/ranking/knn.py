"""Accuracy of nearest neighbours in feature space."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.ranking._examples import as_count, warn_of_lone_classes
from curvewise.ranking._moments import Matrix, mean_of
from curvewise.ranking._prediction import asked_targets, has_test, same_width
from curvewise.ranking._targets import as_targets
from curvewise.ranking.measure import RankingMeasure
from curvewise.types import FloatArray, as_matrix

METRICS = ("euclidean", "cosine")

BLOCK = 2**23
"""Pairs of examples that are compared at a time."""

BLURRED = 0.02
"""Share of ties above which distances in single precision are computed again in double."""


def knn(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    test_features: ArrayLike | None = None,
    test_labels: ArrayLike | None = None,
    neighbours: int = 5,
    metric: Literal["euclidean", "cosine"] = "euclidean",
) -> float:
    """Share of examples whose nearest neighbours are mostly of their class.

    Test examples look among the training examples; without a test set every example looks among
    the others (leave one out). Ties are decided fairly, so that the order of examples plays no
    part: neighbours at the same distance as the last one share the votes that are left, and where
    m classes have the most votes, each is right by 1/m.

    Parameters
    ----------
    features : array_like, shape (examples, dimensions)
        Of the training examples.
    labels : array_like
        A class for each.
    test_features, test_labels : array_like, optional
        Those of the test examples.
    neighbours : int
        How many have a vote.
    metric : {"euclidean", "cosine"}
        Distance between features.

    Returns
    -------
    float
        Accuracy from 0 to 1; more is better.

    Warns
    -----
    CurvewiseWarning
        If, without a test set, classes have a single example: it can never be right.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(200) % 2
    >>> good = rng.standard_normal((200, 5)) + 2 * labels[:, None]
    >>> bad = rng.standard_normal((200, 5))
    >>> round(knn(good, labels), 3), round(knn(bad, labels), 3)
    (0.99, 0.565)
    """
    hits = knn_hits(
        features,
        labels,
        test_features=test_features,
        test_labels=test_labels,
        neighbours=neighbours,
        metric=metric,
    )
    return float(hits.mean())


def knn_hits(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    test_features: ArrayLike | None = None,
    test_labels: ArrayLike | None = None,
    neighbours: int = 5,
    metric: Literal["euclidean", "cosine"] = "euclidean",
) -> FloatArray:
    """Whether each test example (or each, leaving it out) is right: 1, 0, or 1/m in a tie.

    See `knn` for the arguments.

    >>> knn_hits([[0.0], [1.0], [5.0]], [0, 0, 1], test_features=[[4.0]], test_labels=[1],
    ...          neighbours=1)
    array([1.])
    """
    x = as_matrix(features, "features")
    targets = as_targets(labels, len(x), measure="kNN")
    if not has_test(test_features, test_labels, "test_features"):
        neighbours = _checked(len(x) - 1, neighbours, metric)
        lone = int((np.bincount(targets.codes) == 1).sum())
        warn_of_lone_classes(lone, "which can have no neighbour of its class", depth=4)
        return _in_space(x, targets.codes, None, targets.codes, neighbours, metric)
    asking = as_matrix(np.asarray(test_features), "test_features")
    same_width(x, asking, "test_features")
    truth = asked_targets(test_labels, len(asking), targets, "kNN").codes
    neighbours = _checked(len(x), neighbours, metric)
    return _in_space(x, targets.codes, asking, truth, neighbours, metric)


def _checked(among: int, neighbours: int, metric: str) -> int:
    """The number of neighbours, if there are so many and the metric is known."""
    if metric not in METRICS:
        raise InputError(f"metric={metric!r}: use 'euclidean' or 'cosine'.")
    found = as_count(neighbours, "neighbours")
    if found > among:
        raise InputError(
            f"neighbours={neighbours!r}: give a number from 1 to {among}, as there are {among} "
            "examples to choose from."
        )
    return found


def _in_space(
    x: Matrix,
    codes: NDArray[np.int64],
    asking: Matrix | None,
    truth: NDArray[np.int64],
    neighbours: int,
    metric: str,
) -> FloatArray:
    """Hits in the precision of the features, or in double where that cannot tell them apart."""
    kind = x.dtype if asking is None else np.promote_types(x.dtype, asking.dtype)
    while True:
        near = _place(x.astype(kind, copy=False), x, metric)
        far = None if asking is None else _place(asking.astype(kind, copy=False), x, metric)
        hits = _hits(near, codes, far, truth, neighbours)
        if hits is not None:
            return hits
        kind = np.dtype(np.float64)


def _place(rows: Matrix, training: Matrix, metric: str) -> Matrix:
    """Rows whose Euclidean distances order neighbours by the metric.

    Around the training examples' mean less is lost to rounding.
    """
    if metric == "euclidean":
        return rows - mean_of(training).astype(rows.dtype)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(length > 0, length, 1)


def _hits(
    near: Matrix,
    codes: NDArray[np.int64],
    asking: Matrix | None,
    truth: NDArray[np.int64],
    neighbours: int,
) -> FloatArray | None:
    """Hits of the asking rows, or of all near ones leaving each out.

    A row y is the nearer to x the larger x·y − |y|²/2 is, which one product gives. None if single
    precision cannot tell the distances apart.
    """
    half = np.einsum("ij,ij->i", near, near) / 2
    classes = int(codes.max()) + 1
    step = max(1, BLOCK // len(near))
    hits = np.empty(len(truth))
    for start in range(0, len(truth), step):
        rows = (near if asking is None else asking)[start : start + step]
        closeness = rows @ near.T
        closeness -= half
        if asking is None:
            own = np.arange(len(rows))
            closeness[own, start + own] = -np.inf
        squares = np.einsum("ij,ij->i", rows, rows)
        votes, tied = _votes(closeness, squares, codes, classes, neighbours)
        if near.dtype == np.float32 and tied > BLURRED:
            return None
        winners = votes > votes.max(axis=1, keepdims=True) - 1e-6
        right = winners[np.arange(len(rows)), truth[start : start + step]]
        hits[start : start + step] = right / winners.sum(axis=1)
    return hits


def _votes(
    closeness: NDArray[Any],
    squares: NDArray[Any],
    codes: NDArray[np.int64],
    classes: int,
    neighbours: int,
) -> tuple[FloatArray, float]:
    """Votes for each class, and the share of rows whose last neighbour has its like.

    Those as near as the last neighbour, up to rounding, share the votes that are left.
    """
    last = np.partition(closeness, -neighbours, axis=1)[:, -neighbours]
    reach = np.sqrt(squares) + np.sqrt(np.maximum(squares - 2 * last, 0))
    rounding = 4 * np.finfo(closeness.dtype).eps * reach**2
    row, column = np.nonzero(closeness >= (last - rounding)[:, None])
    nearer = closeness[row, column] > (last + rounding)[row]
    shape = len(closeness)
    sure = np.bincount(row[nearer], minlength=shape)
    tied = np.bincount(row[~nearer], minlength=shape)
    weight = np.where(nearer, 1.0, ((neighbours - sure) / tied)[row])
    cell = row * classes + codes[column]
    votes: FloatArray = np.bincount(cell, weight, shape * classes).astype(np.float64)
    return votes.reshape(shape, classes), float((tied > 1).mean())


def _flops(n: int, d: int, classes: int) -> float:
    return 2.0 * n * n * d + 10.0 * n * n


MEASURES = (
    RankingMeasure(
        "knn",
        knn,
        about="Accuracy of the nearest neighbours in feature space, leaving one out or on a test "
        "set.",
        cost="Distances of all pairs of examples: about five seconds of CPU for 10,000 examples of "
        "2,048 dimensions, a bounded number at a time.",
        fails="Without a test set, a class of one example is always wrong; one feature of a large "
        "scale hides the others.",
        flops=_flops,
        splits=True,
        guess="share",
        bounds=(0.0, 1.0),
    ),
)
