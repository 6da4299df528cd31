"""The two-way bootstrap: runs and examples drawn anew, no example paired with its own copy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from curvewise.types import FloatArray, Predictions
from curvewise.variance.anova import Split

BATCH_CELLS = 2**21
"""Weights drawn at once; each batch of resamples reads the predictions once."""

WORK = 2e11
"""Multiplications after which fewer resamples are drawn."""


def default_resamples(runs: int, units: int) -> int:
    """2,000 resamples, or as many of them (200 at least) as the size of the data allows."""
    return int(np.clip(WORK / (4.0 * runs * units), 200, 2000))


def bootstrap_variances(
    predictions: Predictions, resamples: int, rng: np.random.Generator
) -> FloatArray:
    """The distribution-wise variance in resamples of runs and examples.

    The estimate is a mean over pairs of distinct runs and pairs of distinct examples. A resample
    holds some examples twice, and a copy covaries with itself: such pairs are left out of the
    numerator and of the denominator. (Put into the plain formula they would add noise/n.)
    Groups are drawn whole.
    """
    sizes = unit_sizes(predictions)
    batch = int(np.clip(BATCH_CELLS // max(predictions.runs, len(sizes)), 16, 256))
    drawn = [
        _batch(predictions, sizes, min(batch, resamples - start), rng)
        for start in range(0, resamples, batch)
    ]
    return np.concatenate(drawn)


def bca_limits(
    drawn: FloatArray, split: Split, run_errors: FloatArray, units: FloatArray, level: float
) -> tuple[float, float]:
    """Limits of the variance from its resamples, corrected for bias and skewness (BCa).

    ``units`` is what single examples do to the estimate; runs act through their squared distance
    from the mean.
    """
    size = len(drawn)
    below = np.clip((drawn < split.distribution).mean(), 1 / size, 1 - 1 / size)
    bias = float(ndtri(below))
    deviation = (run_errors - run_errors.mean()) ** 2
    runs = (deviation - deviation.mean()) / (len(run_errors) - 1)
    spread = float((runs**2).sum() + (units**2).sum())
    skew = float((runs**3).sum() + (units**3).sum()) / (6 * spread**1.5) if spread else 0.0
    limits = []
    for tail, edge in (((1 - level) / 2, 0.0), ((1 + level) / 2, 1.0)):
        z = bias + float(ndtri(tail))
        share = float(ndtr(bias + z / (1 - skew * z))) if skew * z < 1 else edge
        limits.append(max(0.0, float(np.quantile(drawn, share))))
    return limits[0], limits[1]


def _batch(
    predictions: Predictions, sizes: FloatArray, count: int, rng: np.random.Generator
) -> FloatArray:
    runs, units = predictions.runs, len(sizes)
    # Sums of 0/1 errors are exact in single precision, which is twice as fast.
    exact = predictions.binary and predictions.examples < 2**22 and runs < 2**22
    precision: type[np.floating[Any]] = np.float32 if exact else np.float64
    by_run = rng.multinomial(runs, np.full(runs, 1 / runs), size=count).astype(precision)
    by_unit = rng.multinomial(units, np.full(units, 1 / units), size=count).astype(precision)
    first = np.zeros((count, units))
    second = np.zeros((count, units))
    sums = np.empty((runs, count))
    centre = None
    for start, totals in unit_blocks(predictions):
        block = totals.astype(precision)
        if not predictions.binary:  # only differences between runs matter; large means cost digits
            centre = block[0].copy() if centre is None else centre
            block -= centre
        rows = slice(start, start + len(block))
        sums[rows] = block @ by_unit.T
        first += by_run[:, rows] @ block
        if predictions.groups is not None or not predictions.binary:
            second += by_run[:, rows] @ (block * block)
    if predictions.groups is None and predictions.binary:
        second = first  # 0² = 0 and 1² = 1
    w, u = by_run.astype(np.float64), by_unit.astype(np.float64)
    total = runs * (w * sums.T**2).sum(axis=1) - (w * sums.T).sum(axis=1) ** 2
    own = (u**2 * (runs * second - first**2)).sum(axis=1)
    pairs_of_runs = runs**2 - (w**2).sum(axis=1)
    pairs_of_units = (u @ sizes) ** 2 - u**2 @ sizes**2
    values: FloatArray = (total - own) / (pairs_of_runs * pairs_of_units)
    return values


def unit_sizes(predictions: Predictions) -> FloatArray:
    """How many examples each group has; ones without groups."""
    if predictions.groups is None:
        return np.ones(predictions.examples)
    return np.unique(predictions.groups, return_counts=True)[1].astype(np.float64)


def unit_blocks(predictions: Predictions) -> Iterator[tuple[int, NDArray[Any]]]:
    """Total error of each group (or the error of each example) a block of runs at a time."""
    if predictions.groups is None:
        yield from predictions.error_blocks()
        return
    codes = np.unique(predictions.groups, return_inverse=True)[1].ravel()
    order = np.argsort(codes, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes))[:-1]])
    for start, errors in predictions.error_blocks():
        yield start, np.add.reduceat(errors[:, order].astype(np.float64), starts, axis=1)
