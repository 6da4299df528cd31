"""Sums of products of features, in double precision and a part at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.types import FloatArray

Matrix = NDArray[np.floating[Any]]

PART = 2**22
"""Numbers of the features that are held in double precision at a time."""

TINY = float(np.finfo(np.float64).eps)


def mean_of(features: Matrix) -> FloatArray:
    """Mean of each feature."""
    mean: FloatArray = features.mean(axis=0, dtype=np.float64)
    return mean


def parts(features: Matrix, centre: FloatArray | None) -> Iterator[tuple[slice, FloatArray]]:
    """Some rows at a time in double precision, less the centre; and which rows they are."""
    step = max(1, PART // features.shape[1])
    for start in range(0, len(features), step):
        rows = slice(start, start + step)
        part = features[rows].astype(np.float64)
        if centre is not None:
            part -= centre
        yield rows, part


def inner_products(features: Matrix, centre: FloatArray | None = None) -> FloatArray:
    """XᵀX, of dimensions with dimensions.

    >>> inner_products(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[10., 14.],
           [14., 20.]])
    """
    found = np.zeros((features.shape[1], features.shape[1]))
    for _, part in parts(features, centre):
        found += part.T @ part
    return found


def outer_products(features: Matrix, centre: FloatArray | None = None) -> FloatArray:
    """XXᵀ, of examples with examples.

    >>> outer_products(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[ 5., 11.],
           [11., 25.]])
    """
    found = np.zeros((len(features), len(features)))
    step = max(1, PART // len(features))
    for start in range(0, features.shape[1], step):
        part = features[:, start : start + step].astype(np.float64)
        if centre is not None:
            part -= centre[start : start + step]
        found += part @ part.T
    return found


def products_with(weights: Any, features: Matrix, centre: FloatArray | None = None) -> FloatArray:
    """WX for weights (outputs × examples), an array or a sparse one by columns.

    >>> products_with(np.array([[1.0, 1.0]]), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[4., 6.]])
    """
    found: FloatArray = np.zeros((weights.shape[0], features.shape[1]))
    for rows, part in parts(features, centre):
        found += weights[:, rows] @ part
    return found


def membership(rows: NDArray[np.int64], codes: NDArray[np.int64], shape: tuple[int, int]) -> Any:
    """Sparse classes × examples, 1 where an example has the class."""
    from scipy.sparse import csc_array

    return csc_array((np.ones(len(rows)), (codes, rows)), shape=shape)


def class_means(
    features: Matrix, codes: NDArray[np.int64], counts: NDArray[np.int64], centre: FloatArray
) -> FloatArray:
    """Mean of each class, less the centre."""
    member = membership(np.arange(len(codes)), codes, (len(counts), len(codes)))
    means: FloatArray = products_with(member, features, centre) / counts[:, None]
    return means


def decompose(symmetric: FloatArray, longest: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Eigenvalues above rounding, their vectors, and the vectors of the others.

    ``longest`` is the larger side of the matrix whose products these are.
    """
    # The same LAPACK routine as scipy's driver="evd", which fails for one dimension before 1.14.
    values, vectors = np.linalg.eigh(symmetric)
    kept = values > max(float(values[-1]), 0.0) * TINY * longest
    return values[kept], vectors[:, kept], vectors[:, ~kept]


def principal_coordinates(features: Matrix, dims: int) -> FloatArray:
    """Examples along at most as many principal axes, around their mean.

    Axes along which there is nothing but rounding are left out, but for the first.

    >>> principal_coordinates(np.array([[0.0, 5.0], [2.0, 5.0]]), 2).round(6) ** 2
    array([[1.],
           [1.]])
    """
    from scipy.linalg import eigh

    n, d = features.shape
    centre = mean_of(features)
    size = min(n, d)
    build = outer_products if n < d else inner_products
    values, vectors = eigh(build(features, centre), subset_by_index=(max(0, size - dims), size - 1))
    kept = values > values[-1] * TINY * max(n, d)
    kept[-1] = True
    if n < d:
        coordinates: FloatArray = vectors[:, kept] * np.sqrt(np.maximum(values[kept], 0.0))
        return coordinates
    return np.concatenate([part @ vectors[:, kept] for _, part in parts(features, centre)])
