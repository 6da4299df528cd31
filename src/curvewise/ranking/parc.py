"""PARC: whether examples with like features have like labels, by correlations of pairs."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from curvewise.errors import InputError
from curvewise.ranking._examples import as_count, warn
from curvewise.ranking._moments import Matrix, membership
from curvewise.ranking._targets import as_targets
from curvewise.ranking.measure import RankingMeasure
from curvewise.stats.correlation import spearman
from curvewise.types import FloatArray, as_matrix

ENOUGH = 100
"""Pairs of like labels below which the score is mostly chance."""


def parc(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    examples: int = 3000,
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
            f"{flat} of {len(x)} examples have the same number in every feature: PARC takes them "
            "for unlike any other."
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


def _flops(n: int, d: int, classes: int) -> float:
    kept = min(n, 3000)
    pairs = kept * (kept - 1) / 2
    return pairs * 2 * (d + classes) + 2 * pairs * math.log2(max(pairs, 2))


MEASURES = (
    RankingMeasure(
        "parc",
        parc,
        about="Spearman's correlation, over pairs of examples, of distances between features with "
        "distances between labels (Bolya et al. 2021).",
        cost="All pairs of at most 3,000 examples: about two seconds of CPU and a quarter of a "
        "gigabyte.",
        fails="Mostly chance with few examples of each class; depends on the axes of the features, "
        "as it correlates over them.",
        flops=_flops,
        seeded=True,
        targets=("classes", "multilabel"),
        bounds=(-1.0, 1.0),
    ),
)
