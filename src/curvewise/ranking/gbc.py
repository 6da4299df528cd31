"""GBC: how much the classes overlap in feature space, each taken for a Gaussian."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.ranking._examples import as_count, read_examples, warn, warn_of_lone_classes
from curvewise.ranking._moments import class_means, principal_coordinates
from curvewise.ranking.measure import RankingMeasure
from curvewise.types import FloatArray

COVARIANCES = ("spherical", "diagonal")

FLOOR = 1e-8
"""Least variance of a class, as a share of the variance of all examples."""


def gbc(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    covariance: Literal["spherical", "diagonal"] = "spherical",
    dims: int | None = 64,
) -> float:
    """Gaussian Bhattacharyya coefficient: overlap of classes, negative (Pándy et al. 2022).

    −Σ exp(−D) over ordered pairs of different classes, D the Bhattacharyya distance of Gaussians
    with the means and variances of the two classes. (The released program drops the number of
    dimensions in the logarithm's term for spherical Gaussians; here it stands.)

    Parameters
    ----------
    features : array_like, shape (examples, dimensions)
        As the checkpoint gives them.
    labels : array_like
        A class for each example, or a matrix of 0 and 1 (multi-label: a row for each example and
        label).
    covariance : {"spherical", "diagonal"}
        One variance for each class, or one for each class and dimension.
    dims : int, optional
        Principal components kept; None keeps the features as they are.

    Returns
    -------
    float
        From −C(C − 1) for C classes that are all the same to 0 for classes apart; more is better.
        In-sample.

    Warns
    -----
    CurvewiseWarning
        If a class has a single example (it is given the mean variance within the others), or
        hardly any variance (at least 1e-8 of that of all examples is assumed), which moves it apart
        from the others; or if the features are the same for all examples.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(200) % 2
    >>> good = rng.standard_normal((200, 5)) + 2 * labels[:, None]
    >>> bad = rng.standard_normal((200, 5))
    >>> round(gbc(good, labels), 3), round(gbc(bad, labels), 3)
    (-0.138, -1.973)
    """
    if covariance not in COVARIANCES:
        raise InputError(f"covariance={covariance!r}: use 'spherical' or 'diagonal'.")
    if dims is not None:
        dims = as_count(dims, "dims", otherwise=", or None for all")
    examples = read_examples(features, labels, "GBC")
    if dims is not None and dims < examples.features.shape[1]:
        x = principal_coordinates(examples.features, dims)
    else:
        x = examples.features.astype(np.float64)
    x -= x.mean(axis=0)
    total = float((x**2).mean())
    if examples.same or not total > 0:
        warn("the features are the same for all examples: GBC is as low as it can be.")
        return float(-len(examples.counts) * (len(examples.counts) - 1))
    if covariance == "diagonal":  # dimensions that say nothing of any class
        x = x[:, (x**2).mean(axis=0) >= FLOOR * total]
    means = class_means(x, examples.codes, examples.counts, np.zeros(x.shape[1]))
    variances = _variances(x, means, examples.codes, examples.counts)
    if covariance == "spherical":
        variances = variances.mean(axis=1, keepdims=True)
    warn_of_lone_classes(examples.lone, "and so no variance: it is given that within the others")
    if tiny := int((variances < FLOOR * total).any(axis=1).sum()):
        warn(
            f"{tiny} of {len(variances)} classes have hardly any variance, so that GBC takes them "
            "for perfectly apart: give more examples of them, or fewer dims."
        )
    return _overlap(means, np.maximum(variances, FLOOR * total))


def _variances(
    x: FloatArray, means: FloatArray, codes: NDArray[np.int64], counts: NDArray[np.int64]
) -> FloatArray:
    """Variance of each class and dimension; that within all classes for a class of one example."""
    within = (x - means[codes]) ** 2
    variances = class_means(within, codes, counts, np.zeros(x.shape[1]))
    many = counts > 1
    if many.any():
        variances[~many] = counts[many] @ variances[many] / counts[many].sum()
    return variances


def _overlap(means: FloatArray, variances: FloatArray) -> float:
    """−Σ exp(−D) over ordered pairs, a class with those after it at a time."""
    each = means.shape[1] // variances.shape[1]  # dimensions that share a variance
    logs = each * np.log(variances).sum(axis=1)
    total = 0.0
    for one in range(len(means) - 1):
        middle = (variances[one] + variances[one + 1 :]) / 2
        moved = ((means[one] - means[one + 1 :]) ** 2 / middle).sum(axis=1) / 8
        spread = each * np.log(middle).sum(axis=1) / 2 - (logs[one] + logs[one + 1 :]) / 4
        total += 2.0 * float(np.exp(-moved - spread).sum())
    return -total


def _flops(n: int, d: int, classes: int) -> float:
    small, large, kept = min(n, d), max(n, d), min(64, n, d)
    reduced = float(large) * small**2 + 4 / 3 * small**3 + 2.0 * n * d * kept
    return reduced + 8.0 * n * kept + 4.0 * classes**2 * kept


MEASURES = (
    RankingMeasure(
        "gbc",
        gbc,
        about="Overlap of the classes as Gaussians, by Bhattacharyya coefficients "
        "(Pándy et al. 2022).",
        cost="A principal component analysis to 64 dimensions: about two seconds of CPU for "
        "10,000 examples of 2,048 dimensions.",
        fails="A class of one or few examples seems apart from all others; classes far apart all "
        "give 0; ignores what classes have beyond mean and variance.",
        flops=_flops,
        targets=("classes", "multilabel"),
        bounds=(-np.inf, 0.0),
    ),
)
