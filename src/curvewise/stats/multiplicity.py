"""P-values of many tests at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from curvewise.types import FloatArray


def holm(pvalues: ArrayLike, tests: int | None = None) -> FloatArray:
    """Holm's adjustment: keeps the chance of any false rejection.

    Parameters
    ----------
    pvalues : array_like
        Of the tests, or of the smallest of them.
    tests : int, optional
        How many tests there were in all.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(pvalues, dtype=np.float64).ravel()
    count = len(p) if tests is None else tests
    order = np.argsort(p, kind="stable")
    steps = p[order] * (count - np.arange(len(p)))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return adjusted


def benjamini_hochberg(pvalues: ArrayLike, tests: int | None = None) -> FloatArray:
    """Adjustment of Benjamini and Hochberg: keeps the share of false ones among rejections.

    >>> benjamini_hochberg([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.04, 0.04]
    """
    p = np.asarray(pvalues, dtype=np.float64).ravel()
    count = len(p) if tests is None else tests
    order = np.argsort(p, kind="stable")
    steps = p[order] * count / np.arange(1, len(p) + 1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(steps[::-1])[::-1])
    return adjusted
