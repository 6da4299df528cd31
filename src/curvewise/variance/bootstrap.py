"""The two-way bootstrap: runs and examples drawn anew, no example paired with its own copy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.types import FloatArray, Predictions

BATCH = 256
"""Resamples drawn at once; each batch reads the predictions once."""

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
    drawn = [
        _batch(predictions, sizes, min(BATCH, resamples - start), rng)
        for start in range(0, resamples, BATCH)
    ]
    return np.concatenate(drawn)


def _batch(
    predictions: Predictions, sizes: FloatArray, count: int, rng: np.random.Generator
) -> FloatArray:
    runs, units = predictions.runs, len(sizes)
    # Sums of 0/1 errors are exact in single precision, which is twice as fast.
    exact = predictions.binary and predictions.examples < 2**22 and runs < 2**22
    precision = np.float32 if exact else np.float64
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
