"""H-score: between-class variance of features against all of it, covariance shrunk."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from curvewise.errors import InputError
from curvewise.ranking._examples import (
    Examples,
    as_number,
    read_examples,
    warn,
    warn_of_lone_classes,
)
from curvewise.ranking._moments import (
    class_means,
    decompose,
    inner_products,
    mean_of,
    membership,
    outer_products,
    parts,
)
from curvewise.ranking.measure import RankingMeasure
from curvewise.types import FloatArray


def h_score(features: ArrayLike, labels: ArrayLike, shrinkage: float | None = None) -> float:
    """Trace of the inverse covariance of features times the covariance of their class means.

    H = (1 − a) tr(Σ_a⁻¹ Σ_means) with Σ_a = (1 − a) Σ + a tr(Σ)/d I: Bao et al. (2019) with a = 0,
    regularised by Ibrahim et al. (2022). Covariances divide by the number of examples.

    Parameters
    ----------
    features : array_like, shape (examples, dimensions)
        As the checkpoint gives them.
    labels : array_like
        A class for each example, or a matrix of 0 and 1 (multi-label: a row for each example and
        label).
    shrinkage : float, optional
        a, from 0 (the plain H-score, by the pseudo-inverse) to below 1; by default Ledoit's and
        Wolf's (2004), from the data.

    Returns
    -------
    float
        From 0 to the number of classes less one; more is better. In-sample.

    Warns
    -----
    CurvewiseWarning
        If the plain score is asked for and there are no more examples than dimensions, where it is
        the number of classes less one whatever the features; if a class has a single example; if
        the features are the same for all.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(200) % 2
    >>> good = rng.standard_normal((200, 5)) + 2 * labels[:, None]
    >>> bad = rng.standard_normal((200, 5))
    >>> round(h_score(good, labels), 3), round(h_score(bad, labels), 3)
    (0.833, 0.0)
    """
    remedy = "give a number from 0 to below 1, or None."
    if shrinkage is not None and not 0 <= as_number(shrinkage, "shrinkage", remedy) < 1:
        raise InputError(f"shrinkage={shrinkage!r}: {remedy}")
    return max(signed_h_score(features, labels, shrinkage), 0.0)


def signed_h_score(features: ArrayLike, labels: ArrayLike, shrinkage: float | None = None) -> float:
    """The H-score, continued below 0 where the covariance cannot be told from a sphere.

    There the estimated shrinkage is a ≥ 1, which is taken as 1, so that many samples score exactly
    0 and seem not to vary. Around a = 1, H is (1 − a) d tr(Σ_means)/tr(Σ), of which (1/a − 1) in
    the place of (1 − a) is the bounded continuation. Intervals take their spread from it.
    """
    examples = read_examples(features, labels, "the H-score")
    n, d = examples.features.shape
    warn_of_lone_classes(examples.lone, "which is its own mean and so seems well told apart")
    if shrinkage == 0 and n <= d:
        warn(
            f"the plain H-score of {n} examples with {d} features is the number of classes less "
            "one whatever the features: leave shrinkage out, or give more examples."
        )
    centre = mean_of(examples.features)
    build = outer_products if n < d else inner_products
    products = build(examples.features, centre)
    if examples.same or not np.trace(products) > 0:
        warn("the features are the same for all examples: the H-score is 0.")
        return 0.0
    if shrinkage is None:
        shrinkage = _ledoit_wolf(examples, centre, products)
    if shrinkage >= 1:
        means = class_means(examples.features, examples.codes, examples.counts, centre)
        between = float((examples.counts[:, None] * means**2).sum())
        return float((1 / shrinkage - 1) * between * d / np.trace(products))
    score = _dual if n < d else _primal
    return float((1 - shrinkage) * score(examples, centre, products / n, shrinkage))


def _ledoit_wolf(examples: Examples, centre: FloatArray, products: FloatArray) -> float:
    """The shrinkage towards a multiple of the identity with the least expected squared error.

    Estimated, it may be above 1. Traces and squares of XᵀX and XXᵀ are the same, so either will do.
    """
    n, d = examples.features.shape
    if d == 1:  # the covariance is such a multiple
        return 0.0
    fourth = sum(
        float((np.einsum("ij,ij->i", part, part) ** 2).sum())
        for _, part in parts(examples.features, centre)
    )
    squares = float(np.einsum("ij,ij->", products, products)) / n**2
    apart = squares - float(np.trace(products) / n) ** 2 / d
    noise = (fourth / n - squares) / n
    return max(noise / apart, 0.0) if apart > 0 else math.inf


def _primal(
    examples: Examples, centre: FloatArray, covariance: FloatArray, shrinkage: float
) -> float:
    """tr(Σ_a⁻¹ Σ_means) by dimensions."""
    n, d = examples.features.shape
    means = class_means(examples.features, examples.codes, examples.counts, centre)
    means *= np.sqrt(examples.counts / n)[:, None]
    if shrinkage == 0:
        values, vectors, _ = decompose(covariance, n)
        return float(((means @ vectors) ** 2 / values).sum())
    ridge = shrinkage * np.trace(covariance) / d
    return float((_solve(covariance, shrinkage, ridge, means.T) * means.T).sum())


def _dual(examples: Examples, centre: FloatArray, products: FloatArray, shrinkage: float) -> float:
    """The same by examples, as X Σ_a⁻¹ Xᵀ = XXᵀ (ridge I + (1 − a) XXᵀ/n)⁻¹.

    The matrix that makes weighted class means of X has orthonormal rows, divided by √n.
    """
    n, d = examples.features.shape
    member = membership(np.arange(n), examples.codes, (len(examples.counts), n)).toarray()
    member /= np.sqrt(examples.counts)[:, None]
    if shrinkage == 0:
        _, vectors, _ = decompose(products, d)
        return float(((member @ vectors) ** 2).sum())
    ridge = shrinkage * np.trace(products) / d
    return float((_solve(products, shrinkage, ridge, products @ member.T) * member.T).sum())


def _solve(products: FloatArray, shrinkage: float, ridge: float, right: FloatArray) -> FloatArray:
    from scipy.linalg import solve

    shrunk = (1 - shrinkage) * products
    shrunk[np.diag_indices_from(shrunk)] += ridge
    found: FloatArray = solve(shrunk, right, assume_a="pos", check_finite=False)
    return found


def _flops(n: int, d: int, classes: int) -> float:
    small, large = min(n, d), max(n, d)
    return float(large) * small**2 + small**3 / 3 + 2.0 * n * d + 4.0 * classes * small**2


MEASURES = (
    RankingMeasure(
        "h-score",
        h_score,
        about="Between-class variance of features relative to their shrunk covariance "
        "(Bao et al. 2019, regularised by Ibrahim et al. 2022).",
        cost="One product of the features with themselves and a linear system: about a second of "
        "CPU for 10,000 examples of 2,048 dimensions.",
        fails="In-sample: too high with few examples of a class; without shrinkage it says nothing "
        "with fewer examples than dimensions.",
        flops=_flops,
        targets=("classes", "multilabel"),
        bounds=(0.0, np.inf),
    ),
)
