"""kNN and PARC: measures from distances between the features of examples."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.ranking.measure import (
    RankingMeasure,
    as_matrix,
    as_targets,
    as_test_targets,
    check_known,
    from_one_hot,
    read_test,
    warn,
    warn_of_lone_classes,
)
from curvewise.ranking.moments import Matrix, mean_of, membership
from curvewise.stats.correlation import spearman
from curvewise.types.results import FloatArray, check_whole

TAKES = ("classes", "multilabel")
METRICS = ("euclidean", "cosine")
# Pairs of examples that are compared at a time.
BLOCK = 2**23
# Size of features above which their squares overflow in single precision.
LARGE = 1e15
# Share of ties above which distances in single precision are computed again in double.
BLURRED = 0.02
# Pairs of like labels below which PARC is mostly chance.
ENOUGH = 100
# Examples that PARC pairs by default.
PAIRED = 3000


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
        A class for each, also as a matrix with exactly one 1 in every row.
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
        If, without a test set, classes have a single example, which can never be right; or if the
        features are the same for all examples.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(200) % 2
    >>> good = rng.standard_normal((200, 5)) + 2 * labels[:, None]
    >>> bad = rng.standard_normal((200, 5))
    >>> round(knn(good, labels), 3), round(knn(bad, labels), 3)
    (0.99, 0.565)
    """
    x = as_matrix(features, "features")
    labels, test_labels = from_one_hot(labels, test_labels)
    targets = as_targets(labels, len(x), measure="kNN")
    asking, truth, among = read_test(test_features, test_labels, x, "test_features"), targets.codes, len(x) - 1
    if asking is not None:
        truth, among = as_test_targets(test_labels, len(asking), targets, "kNN").codes, len(x)
    check_known(metric, "metric", METRICS)
    if check_whole(neighbours, "neighbours", 1) > among:
        raise InputError(
            f"give a number from 1 to {among}, as there are {among} examples to choose from.",
            argument="neighbours",
            value=neighbours,
        )
    if asking is None:
        lone = int((np.bincount(targets.codes) == 1).sum())
        warn_of_lone_classes(lone, "which can have no neighbour of its class")
    if (x == x[0]).all():
        warn("the features are the same for all examples: all are equally near, and kNN says nothing of the labels.")
    # Hits in the precision of the features, and again in double where single precision cannot tell distances apart.
    kind, hits = x.dtype if asking is None else np.promote_types(x.dtype, asking.dtype), None
    if max(float(np.abs(rows).max()) for rows in (x, asking) if rows is not None) > LARGE:
        kind = np.dtype(np.float64)
    while hits is None:
        near = _place(x.astype(kind, copy=False), x, metric)
        far = None if asking is None else _place(asking.astype(kind, copy=False), x, metric)
        hits = _hits(near, targets.codes, far, truth, int(neighbours))
        kind = np.dtype(np.float64)
    return float(hits.mean())


def _place(rows: Matrix, training: Matrix, metric: str) -> Matrix:
    """Return rows whose Euclidean distances order neighbours by the metric."""
    if metric == "euclidean":
        # Centred on the training examples: less is lost to rounding when norms are subtracted.
        return rows - mean_of(training).astype(rows.dtype)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(length > 0, length, 1)


def _hits(
    near: Matrix, codes: NDArray[np.int64], asking: Matrix | None, truth: NDArray[np.int64], neighbours: int
) -> FloatArray | None:
    """Return 1, 0, or 1/m in a tie, for each of the asking rows, or of all near ones leaving each out.

    None if single precision cannot tell the distances apart.
    """
    # A row y is the nearer to x the larger x·y − |y|²/2 is, which one matrix product gives.
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
    """Return the votes for each class, and the share of rows in which the last neighbour is tied.

    Those as near as the last neighbour, up to rounding, share the votes that are left.
    """
    last = np.partition(closeness, -neighbours, axis=1)[:, -neighbours]
    reach = np.sqrt(squares) + np.sqrt(np.maximum(squares - 2 * last, 0))
    # Error of x·y − |y|²/2 in the worst case: a few units in the last place of the squared distance.
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


def parc(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    standardise: bool = True,
    examples: int = PAIRED,
    rng: int | np.random.Generator = 0,
) -> float:
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
    standardise : bool
        Bring every feature to mean 0 and variance 1 over the examples first, as the authors' program
        does; False is the plain formula of the paper.
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
    (0.54, 0.007)
    """
    examples = check_whole(examples, "examples", 2)
    x = as_matrix(features, "features")
    if x.shape[1] < 2:
        raise InputError("has one dimension, and PARC correlates over at least two.", argument="features")
    targets = as_targets(labels, len(x), allowed=TAKES, measure="PARC")
    marks = membership(targets.rows, targets.codes, (len(targets.classes), len(x)))
    if len(x) > examples:
        drawn = np.random.default_rng(rng).choice(len(x), examples, replace=False, shuffle=False)
        x, marks = x[drawn], marks[:, drawn]
    apart, _ = _distances(marks.toarray().T)
    if apart.min() == apart.max():
        raise InputError(
            "has no two examples alike, or all alike, so that PARC has nothing to "
            "correlate: give more examples of each class.",
            argument="labels",
        )
    if (like := int((apart < 1).sum())) < ENOUGH:
        warn(
            f"PARC rests on {like} pairs of examples with like labels, which is mostly chance: "
            "give more examples of each class."
        )
    if standardise:
        x = x.astype(np.float64)
        # A feature that is constant but for rounding says nothing, and must not be blown up.
        rounding = np.abs(x).max(axis=0) * np.finfo(np.float64).eps * len(x)
        x -= x.mean(axis=0)
        spread = x.std(axis=0)
        varied = spread > rounding
        x = np.where(varied, x, 0.0) / np.where(varied, spread, 1.0)
        if not varied.any():
            warn("the features of all examples are equally alike: PARC is 0.")
            return 0.0
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
    """Return 1 − Pearson's correlation of each pair of rows, and the number of constant rows."""
    unit = rows.astype(np.float64)
    flat = unit.max(axis=1) == unit.min(axis=1)
    unit -= unit.mean(axis=1, keepdims=True)
    unit[flat] = 0.0
    unit /= np.where(flat, 1.0, np.linalg.norm(unit, axis=1))[:, None]
    distances = 1 - (unit @ unit.T)[np.triu_indices(len(rows), 1)]
    # Rounded to what double precision holds, so that equal distances are ties.
    return np.round(distances, 12), int(flat.sum())


def _parc_flops(n: int, d: int, classes: int) -> float:
    kept = min(n, PAIRED)
    pairs = kept * (kept - 1) / 2
    return pairs * 2 * (d + classes) + 2 * pairs * math.log2(max(pairs, 2))


MEASURES = (
    RankingMeasure(
        "parc",
        parc,
        about="Spearman's correlation, over pairs of examples, of distances between features with "
        "distances between labels (Bolya et al. 2021).",
        cost="All pairs of at most 3,000 examples: about two seconds of CPU and a quarter of a gigabyte.",
        fails="Mostly chance with few examples of each class; depends on the axes of the features, "
        "as it correlates over them.",
        flops=_parc_flops,
        seeded=True,
        targets=TAKES,
        bounds=(-1.0, 1.0),
    ),
    RankingMeasure(
        "knn",
        knn,
        about="Accuracy of the nearest neighbours in feature space, leaving one out or on a test set.",
        cost="Distances of all pairs of examples: about five seconds of CPU for 10,000 examples of "
        "2,048 dimensions, a bounded number at a time.",
        fails="Without a test set, a class of one example is always wrong; one feature of a large "
        "scale hides the others.",
        flops=lambda n, d, classes: 2.0 * n * n * d + 10.0 * n * n,
        splits=True,
        guess="share",
        bounds=(0.0, 1.0),
    ),
)
