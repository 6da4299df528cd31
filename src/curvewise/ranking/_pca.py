"""Principal components that keep a share of the energy, without all the others.

Written for numpy or torch: ``xp`` is the module, and arrays are its own. Nothing but what both
call by one name is used, so that the same lines run on a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

ROWS = 2048  # centred at a time
SMALL = 512  # below which all eigenvectors are had at once
WIDTH = 128  # of the first block
LOOKS = 5  # at one width, before all eigenvectors are computed after all
PRECISION = 1e-3  # of an eigenvector: its residual relative to its eigenvalue


@dataclass(frozen=True, eq=False)
class Projection:
    """Where principal components lie.

    Attributes
    ----------
    mean, axes : array, shapes (dimensions,) and (dimensions, kept)
        Of the training examples; each axis points to where its scores have the longer tail.
    scale : scalar array
        The largest centred value, by which features are divided; infinite where all are the same.
    kept : float
        Share of the variance that the axes hold.
    """

    mean: Any
    axes: Any
    scale: Any
    kept: float

    def apply(self, features: Any, xp: Any = np) -> Any:
        """Scores of examples on the axes, a row for each."""
        found = [part @ self.axes for part in _centred(features, self.mean, self.scale)]
        return found[0] if len(found) == 1 else xp.concatenate(found)


def project(features: Any, energy: float = 0.8, xp: Any = np) -> tuple[Any, Projection]:
    """Reduce features to the fewest principal components that hold a share of the variance.

    Features are centred, not standardised: the energy is that of the covariance. In more than
    512 dimensions the axes come from subspace iteration and are within a thousandth of exact.

    Parameters
    ----------
    features : array, shape (examples, dimensions)
        Of the training examples; a memory map will do.
    energy : float
        Share of the variance to keep, above 0; 1 keeps every direction that varies.
    xp : module
        numpy or torch.

    Returns
    -------
    tuple
        Scores of the examples and the :class:`Projection` that makes them, also of others. Where
        all examples are the same, one score of 0 for each.

    Examples
    --------
    >>> x = np.random.default_rng(0).standard_normal((100, 3)) * [10.0, 1.0, 0.1]
    >>> scores, projection = project(x, 0.8)
    >>> scores.shape, round(projection.kept, 2)
    ((100, 1), 0.99)
    """
    mean = xp.asarray(features.mean(axis=0, dtype=xp.float64), dtype=features.dtype)
    scale = _scale(features, mean, xp)
    if features.shape[0] < features.shape[1]:
        centred = (features - mean) / scale
        values, vectors, total = leading(centred @ centred.T, energy, xp)
        axes = centred.T @ (vectors / xp.sqrt(values))
    else:
        matrix = sum(part.T @ part for part in _centred(features, mean, scale))
        values, axes, total = leading(matrix, energy, xp)
    kept = float(values.sum()) / total if total else 1.0
    projection = Projection(mean, axes, scale, kept)
    scores = projection.apply(features, xp)
    long = (scores * scores * scores).sum(axis=0)
    sign = xp.where(long < 0, -xp.ones_like(long), xp.ones_like(long))
    return scores * sign, Projection(mean, axes * sign, scale, kept)


def leading(matrix: Any, share: float, xp: Any = np) -> tuple[Any, Any, float]:
    """The largest eigenvalues that make up a share of the trace, their vectors, and the trace.

    Examples
    --------
    >>> values, vectors, total = leading(np.diag([1.0, 8.0, 1.0]), 0.75)
    >>> values.round(3), abs(vectors).round(3).ravel(), total
    (array([8.]), array([0., 1., 0.]), 10.0)
    """
    size = len(matrix)
    total = float(xp.trace(matrix))
    if size > SMALL and share < 1 and total > 0:
        found = _iterated(matrix, share * total, xp)
        if found is not None:
            return *found, total
    values, vectors = xp.linalg.eigh(matrix)
    values, vectors = xp.flip(values, (0,)), xp.flip(vectors, (1,))
    rounding = size * float(xp.finfo(matrix.dtype).eps)
    varied = max(int((values > rounding * values[0]).sum()), 1) if total > 0 else 1
    count = min(_enough(values, share * total, xp) or size, varied)
    return xp.clip(values[:count], 1e-30, None), vectors[:, :count], total


def _iterated(matrix: Any, wanted: float, xp: Any) -> tuple[Any, Any] | None:
    """Leading eigenpairs by subspace iteration; None where most are needed, or gaps are small.

    The block is twice as wide as what is asked of it, and starts from the same random signs every
    time.
    """
    size, random = len(matrix), np.random.default_rng(0)
    image = xp.zeros((size, 0), dtype=matrix.dtype)
    for width in (WIDTH * 2**i for i in range(20)):
        if width > size // 3:
            return None
        fresh = random.integers(0, 2, (size, width - image.shape[1]), dtype=np.int8) - 0.5
        image = xp.concatenate([image, xp.asarray(fresh, dtype=matrix.dtype)], axis=1)
        for _ in range(LOOKS):
            block = _orthonormal(matrix @ image, xp, passes=1)  # nearly: good enough on the way
            block = _orthonormal(matrix @ (matrix @ block), xp, passes=2)
            image = matrix @ block
            values, turn = xp.linalg.eigh(block.T @ image)
            values, turn = xp.flip(values, (0,)), xp.flip(turn, (1,))
            count = _enough(values, wanted, xp)
            if count is None or count > width // 2:
                break
            vectors = block @ turn[:, :count]
            if _settled(values[:count], vectors, image @ turn[:, :count], xp):
                return values[:count], vectors
        else:
            return None
    return None


def _enough(values: Any, wanted: float, xp: Any) -> int | None:
    """How many of the values, the largest first, add up to what is wanted; None if they do not."""
    sums = xp.cumsum(xp.asarray(values, dtype=xp.float64), 0)
    count = int((sums < wanted).sum())
    return count + 1 if count < len(values) else None


def _settled(values: Any, vectors: Any, image: Any, xp: Any) -> bool:
    """Whether they are eigenvectors, and orthonormal."""
    off = image - vectors * values
    worst = (xp.sqrt((off * off).sum(axis=0)) / values).max()
    gram = vectors.T @ vectors - xp.eye(len(values), dtype=values.dtype)
    return float(xp.maximum(worst, xp.abs(gram).max())) < PRECISION


def _orthonormal(block: Any, xp: Any, passes: int) -> Any:
    """An orthonormal basis of a block, by Cholesky factors in double precision."""
    wide = xp.asarray(block, dtype=xp.float64)
    for _ in range(passes):
        gram = wide.T @ wide
        gram = gram + (1e-14 * xp.trace(gram)) * xp.eye(len(gram), dtype=gram.dtype)
        wide = wide @ xp.linalg.inv(xp.linalg.cholesky(gram)).T
    return xp.asarray(wide, dtype=block.dtype)


def _centred(features: Any, mean: Any, scale: Any) -> Iterator[Any]:
    for start in range(0, len(features), ROWS):
        part = features[start : start + ROWS] - mean
        part /= scale
        yield part


def _scale(features: Any, mean: Any, xp: Any) -> Any:
    """The largest distance from the mean; infinite where it is rounding in every feature."""
    high, low = xp.amax(features, axis=0), xp.amin(features, axis=0)
    found = xp.maximum(high - mean, mean - low)
    eps = max(4 * float(xp.finfo(features.dtype).eps), len(features) * 2.0**-52)
    rounding = eps * xp.maximum(xp.abs(high), xp.abs(low))
    most = xp.where(found > rounding, found, xp.zeros_like(found)).max()
    return xp.where(most > 0, most, xp.full_like(most, np.inf))
