"""TransRate: bits that knowing the class saves when features are coded."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from curvewise.errors import InputError
from curvewise.ranking._examples import as_number, read_examples, warn
from curvewise.ranking._moments import TINY, Matrix, inner_products, mean_of, outer_products
from curvewise.ranking.measure import RankingMeasure
from curvewise.types import FloatArray

RESOLVED = 1e-3
"""Rounding of an eigenvalue, beside 1, below which a Cholesky factor gives the determinant."""


def transrate(
    features: ArrayLike, labels: ArrayLike, *, eps: float = 1e-4, unit_scale: bool = False
) -> float:
    """Coding rate of all features less the mean coding rate within classes (Huang et al. 2022).

    The rate of n centred rows Z is ½ log det(I + ZᵀZ/(n ε)), in nats; classes count by their share
    of the examples (the paper's program takes their plain mean, the same for classes of one size).

    Parameters
    ----------
    features : array_like, shape (examples, dimensions)
        As the checkpoint gives them.
    labels : array_like
        A class for each example, or a matrix of 0 and 1 (multi-label: a row for each example and
        label).
    eps : float
        Squared distortion that is allowed.
    unit_scale : bool
        Divide the features by the root of their mean variance first, so that the result does not
        depend on their scale, which differs between checkpoints. Not so in the paper.

    Returns
    -------
    float
        More is better. In-sample.

    Warns
    -----
    CurvewiseWarning
        If there are fewer examples than dimensions, where rates grow with the number of examples;
        or if there are two classes: as classes are centred on the mean of all, two classes of one
        size have the same rate as both together however far apart they lie.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(200) % 4
    >>> good = rng.standard_normal((200, 5)) + 2 * np.eye(4, 5)[labels]
    >>> bad = rng.standard_normal((200, 5))
    >>> round(transrate(good, labels), 3), round(transrate(bad, labels), 3)
    (0.51, 0.126)
    """
    remedy = "give a number above 0."
    if not 0 < as_number(eps, "eps", remedy) < np.inf:
        raise InputError(f"eps={eps!r}: {remedy}")
    examples = read_examples(features, labels, "TransRate")
    n, d = examples.features.shape
    if n < d:
        warn(
            f"TransRate of {n} examples with {d} features says how many examples there are rather "
            "than how they lie: give more examples than features, or reduce the features first."
        )
    if len(examples.counts) == 2:
        warn(
            "TransRate hardly sees how far apart two classes lie, as both are centred on the mean "
            "of all examples: rank by another measure."
        )
    centre = mean_of(examples.features)
    order = np.argsort(examples.codes, kind="stable")
    ends = np.cumsum(examples.counts)
    within = 0.0
    products = _products(examples.features, centre)
    if unit_scale:
        eps *= float(np.trace(products)) / (n * d) or 1.0
    for end, count in zip(ends, examples.counts, strict=True):
        rows = examples.features[order[end - count : end]]
        within += float(count) / n * _rate(_products(rows, centre), count * eps, max(count, d))
    return _rate(products, n * eps, max(n, d)) - within


def _products(rows: Matrix, centre: FloatArray) -> FloatArray:
    """ZᵀZ or ZZᵀ, whichever is smaller: det(I + ZᵀZ) = det(I + ZZᵀ)."""
    build = outer_products if len(rows) < rows.shape[1] else inner_products
    return build(rows, centre)


def _rate(products: FloatArray, scale: float, longest: int) -> float:
    """½ log det(I + products/scale), of a matrix whose larger side is ``longest``.

    Where products are so large that 1 is lost to rounding beside them, by those eigenvalues that
    are above it.
    """
    inner = products / scale
    rounding = TINY * longest
    if rounding * float(np.trace(inner)) > RESOLVED:
        values = np.linalg.eigvalsh(inner)
        return float(np.log1p(values[values > rounding * values[-1]]).sum()) / 2
    inner[np.diag_indices_from(inner)] += 1.0
    return float(np.log(np.diag(np.linalg.cholesky(inner))).sum())


def _flops(n: int, d: int, classes: int) -> float:
    def rate(rows: float) -> float:
        small, large = min(rows, d), max(rows, d)
        return large * small**2 + small**3 / 3

    return rate(n) + classes * rate(n / classes)


MEASURES = (
    RankingMeasure(
        "transrate",
        transrate,
        about="Coding rate of the features less that within classes (Huang et al. 2022).",
        cost="A product of the features with themselves and a determinant, for all and for each "
        "class: about two seconds of CPU for 10,000 examples of 2,048 dimensions.",
        fails="Says little with fewer examples than dimensions, or of two classes; depends on the "
        "scale of the features, which differs between checkpoints (see unit_scale).",
        flops=_flops,
        targets=("classes", "multilabel"),
    ),
)
