"""Accuracy of nearest neighbours in feature space."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.ranking.measure import RankingMeasure, as_count, as_targets, warn, warn_of_lone_classes
from curvewise.ranking.moments import Matrix, mean_of, membership
from curvewise.ranking.prediction import asked_targets, has_test, same_width
from curvewise.ranking.scores import as_matrix
from curvewise.stats.correlation import spearman
from curvewise.types.units import FloatArray

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
        features, labels, test_features=test_features, test_labels=test_labels, neighbours=neighbours, metric=metric
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
            f"neighbours={neighbours!r}: give a number from 1 to {among}, as there are {among} examples to choose from."
        )
    return found


def _in_space(
    x: Matrix, codes: NDArray[np.int64], asking: Matrix | None, truth: NDArray[np.int64], neighbours: int, metric: str
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
    near: Matrix, codes: NDArray[np.int64], asking: Matrix | None, truth: NDArray[np.int64], neighbours: int
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
    closeness: NDArray[Any], squares: NDArray[Any], codes: NDArray[np.int64], classes: int, neighbours: int
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
        about="Accuracy of the nearest neighbours in feature space, leaving one out or on a test set.",
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


# PARC: whether examples with like features have like labels, by correlations of pairs.

ENOUGH = 100
"""Pairs of like labels below which the score is mostly chance."""


def parc(features: ArrayLike, labels: ArrayLike, *, examples: int = 3000, rng: int | np.random.Generator = 0) -> float:
    """Rank correlation, over pairs of examples, of feature distance with label distance.

    Both distances are one less Pearson's correlation: of the two examples' features, and of their
    one-hot labels; Spearman's correlation relates them (Bolya et al. 2021).

    Parameters
    ----------
    features : array_like, shape (examples, dimensions)
        As the checkpoint gives them, at least two dimensions.
    labels : array_like
        A class for each example, or a matrix of 0 and 1 (multi-label; an example with none or all
        of the labels counts as uncorrelated with every other).
    examples : int
        The most examples that are paired; of more, so many are drawn. 3,000 take a quarter of a
        gigabyte, which grows with the square.
    rng : int or Generator
        For the draw.

    Returns
    -------
    float
        From −1 to 1; more is better. In-sample.

    Warns
    -----
    CurvewiseWarning
        If fewer than 100 pairs of examples have like labels, or features are constant within
        examples, so that they correlate with none, or equally alike for all pairs.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(200) % 2
    >>> good = rng.standard_normal((200, 5)) + 2 * np.eye(2, 5)[labels]
    >>> bad = rng.standard_normal((200, 5))
    >>> round(parc(good, labels), 3), round(parc(bad, labels), 3)
    (0.597, 0.006)
    """
    examples = as_count(examples, "examples", least=2)
    x = as_matrix(features, "features")
    if x.shape[1] < 2:
        raise InputError("features has one dimension, and PARC correlates over at least two.")
    targets = as_targets(labels, len(x), allowed=("classes", "multilabel"), measure="PARC")
    marks = membership(targets.rows, targets.codes, (len(targets.classes), len(x)))
    if len(x) > examples:
        drawn = np.random.default_rng(rng).choice(len(x), examples, replace=False, shuffle=False)
        x, marks = x[drawn], marks[:, drawn]
    apart, _ = _distances(marks.toarray().T)
    if apart.min() == apart.max():
        raise InputError(
            "labels has no two examples alike, or all alike, so that PARC has nothing to "
            "correlate: give more examples of each class."
        )
    if (like := int((apart < 1).sum())) < ENOUGH:
        warn(
            f"PARC rests on {like} pairs of examples with like labels, which is mostly chance: "
            "give more examples of each class."
        )
    distances, flat = _distances(x)
    if flat:
        warn(
            f"{flat} of {len(x)} examples have the same number in every feature: PARC takes them for unlike any other."
        )
    if distances.min() == distances.max():
        if not flat:
            warn("the features of all examples are equally alike: PARC is 0.")
        return 0.0
    return float(spearman(distances[None], apart)[0])


def _distances(rows: Matrix) -> tuple[FloatArray, int]:
    """One less the correlation of each pair of rows; and how many rows are constant.

    Distances are rounded to what double precision holds, so that equal ones are ties.
    """
    unit = rows.astype(np.float64)
    flat = unit.max(axis=1) == unit.min(axis=1)
    unit -= unit.mean(axis=1, keepdims=True)
    unit[flat] = 0.0
    unit /= np.where(flat, 1.0, np.linalg.norm(unit, axis=1))[:, None]
    distances = 1 - (unit @ unit.T)[np.triu_indices(len(rows), 1)]
    return np.round(distances, 12), int(flat.sum())


def _flops_parc(n: int, d: int, classes: int) -> float:
    kept = min(n, 3000)
    pairs = kept * (kept - 1) / 2
    return pairs * 2 * (d + classes) + 2 * pairs * math.log2(max(pairs, 2))


MEASURES_PARC = (
    RankingMeasure(
        "parc",
        parc,
        about="Spearman's correlation, over pairs of examples, of distances between features with "
        "distances between labels (Bolya et al. 2021).",
        cost="All pairs of at most 3,000 examples: about two seconds of CPU and a quarter of a gigabyte.",
        fails="Mostly chance with few examples of each class; depends on the axes of the features, "
        "as it correlates over them.",
        flops=_flops_parc,
        seeded=True,
        targets=("classes", "multilabel"),
        bounds=(-1.0, 1.0),
    ),
)
