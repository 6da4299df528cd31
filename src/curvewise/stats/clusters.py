"""The variance of a mean over examples that were sampled in clusters of unequal size."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def cluster_variance(totals: NDArray[Any], sizes: NDArray[Any]) -> NDArray[np.float64]:
    """Cluster-robust variance CR2 of a mean: unbiased where examples are independent.

    ``totals`` are the sums of deviations from the mean in each cluster (clusters first).
    A cluster that holds a share w of the examples pulls the mean towards itself, so that its own
    deviation is too small: Bell and McCaffrey (2002) divide its square by 1 − w.
    """
    n = sizes.sum()
    variance: NDArray[np.float64] = (totals.T**2 / (1 - sizes / n)).sum(axis=-1) / n**2
    return variance


def cluster_degrees(sizes: NDArray[Any]) -> float:
    """Bell and McCaffrey's degrees of freedom of :func:`cluster_variance`.

    One less than the number of clusters where they are of equal size, fewer where they are not.

    >>> equal, unequal = np.full(12, 40), np.array([400, *[20] * 11])
    >>> [round(cluster_degrees(sizes), 1) for sizes in (equal, unequal)]
    [11.0, 2.2]
    """
    w = sizes / sizes.sum()
    pull = w**2 / (1 - w)
    return 1 / float((w**2).sum() + pull.sum() ** 2 - (pull**2).sum())
