"""Where a mixture starts: k-means from seeds that lie far apart, for numpy or torch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from curvewise.ranking._loops import looped

ROUNDS = 10  # of Lloyd's algorithm: a start for EM, which goes on from there


def cluster(x: Any, draws: Any, xp: Any = np) -> Any:
    """Assign examples to clusters by k-means.

    Seeds are drawn with chances in proportion to the squared distance from those already there,
    a few candidates for each, of which the one that leaves the least sum of squares is taken
    (greedy k-means++, as in scikit-learn). They are drawn along the order of the first coordinate,
    so that the order in which examples are given does not matter.

    Parameters
    ----------
    x : array, shape (examples, dimensions)
        Coordinates.
    draws : array of float64, shape (clusters, candidates)
        Random numbers from 0 to 1; see :func:`candidates`.
    xp : module
        numpy or torch.

    Returns
    -------
    array of int
        A cluster for each example. One without examples stays empty.

    Examples
    --------
    >>> x = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> cluster(x, np.array([[0.2], [0.9]]))
    array([0, 0, 1, 1])
    """
    centres = seeds(x[xp.argsort(x[:, 0])], draws, xp)
    for _ in range(ROUNDS):
        centres = _centres(x, nearest(x, centres, xp), centres, xp)
    return nearest(x, centres, xp)


def candidates(clusters: int) -> int:
    """How many candidates there are for each seed, as scikit-learn has it.

    >>> candidates(1), candidates(30)
    (2, 5)
    """
    return 2 + int(math.log(clusters))


def seeds(x: Any, draws: Any, xp: Any = np) -> Any:
    """A row of x for each row of draws: far from each other, by chance.

    >>> seeds(np.array([[0.0], [0.0], [3.0]]), np.array([[0.1], [0.5]]))
    array([[0.],
           [3.]])
    """
    lengths = (x * x).sum(axis=1)
    rounding = 16 * float(xp.finfo(x.dtype).eps)

    def drawn(chances: Any, draw: Any) -> Any:
        sums = xp.cumsum(chances, 0, dtype=xp.float64)
        return xp.clip(xp.searchsorted(sums, draw * sums[-1:]), 0, len(x) - 1)

    def apart(rows: Any) -> Any:
        """Squared distance of every example from some, a column for each of these."""
        both = lengths[:, None] + lengths[rows]
        found = both - 2 * (x @ x[rows].T)
        return xp.where(found > rounding * both, found, xp.zeros_like(found))

    first = drawn(xp.ones_like(lengths), draws[0, :1])
    chances, at = apart(first)[:, 0], xp.ones_like(first)
    rows = xp.zeros_like(draws[:, 0], dtype=first.dtype) + first

    def step() -> None:
        tried = drawn(chances, draws[at][0])
        left = xp.minimum(chances[:, None], apart(tried))
        # An index of one number stays on the device; a number would be read from it.
        best = left.sum(axis=0, dtype=xp.float64).argmin()[None]
        rows[at] = tried[best]
        chances[...] = left[:, best][:, 0]
        at[...] = at + 1

    looped(step, xp)(len(draws) - 1)
    return x[rows]


def nearest(x: Any, centres: Any, xp: Any = np) -> Any:
    """The nearest centre to each row.

    >>> nearest(np.array([[0.0], [2.0]]), np.array([[3.0], [-1.0]]))
    array([1, 0])
    """
    half = (centres * centres).sum(axis=1) / 2
    return xp.concatenate(
        [(x[rows] @ centres.T - half).argmax(axis=1) for rows in parts(x, len(centres))]
    )


def parts(x: Any, width: int) -> list[slice]:
    """Rows to take at a time, so that a table of them stays in the cache (of a GPU: in memory)."""
    most = 2**19 if str(getattr(x, "device", "cpu")) == "cpu" else 2**29
    rows = max(most // width, 128)
    return [slice(start, start + rows) for start in range(0, len(x), rows)]


def _centres(x: Any, labels: Any, old: Any, xp: Any) -> Any:
    """Means of clusters; of an empty one the old."""
    sums, counts = xp.zeros_like(old), xp.zeros_like(old[:, 0])
    names = xp.arange(len(old))
    for rows in parts(x, len(old)):
        marks = xp.asarray(labels[rows][:, None] == names, dtype=x.dtype)
        sums = sums + marks.T @ x[rows]
        counts = counts + marks.sum(axis=0)
    return xp.where(counts[:, None] > 0, sums / xp.clip(counts, 1, None)[:, None], old)
