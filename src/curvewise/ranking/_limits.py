"""Intervals of scores and ranks out of replicates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curvewise.ranking._resampling import Replicates
from curvewise.types import FloatArray

DRAWS = 4000


def score_limits(
    scores: FloatArray,
    replicates: Replicates,
    level: float,
    bounds: tuple[float, float] = (-np.inf, np.inf),
) -> tuple[FloatArray, FloatArray]:
    """Interval of each score: Student's t times the standard error to either side.

    It ends where scores do.
    """
    from scipy.special import stdtrit

    half = float(stdtrit(replicates.freedom, 0.5 + level / 2)) * replicates.errors()
    low, high = (np.clip(end, *bounds) for end in (scores - half, scores + half))
    return np.minimum(low, scores), np.maximum(high, scores)


def rank_limits(
    scores: FloatArray, replicates: Replicates, level: float, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Interval of each rank, from which checkpoints are told apart from it.

    A checkpoint's rank is at least one more than the number that score surely more, and at most
    the number of all less those that score surely less. All differences of one checkpoint from
    the others are tested together, so that the chance of any wrong verdict is 1 − level (the
    largest of the studentised differences, stepping down; Mogstad, Romano, Shaikh and Wilhelm
    2024). Quantiles of resampled ranks would not do: noise on top of noise keeps checkpoints
    that are as good as equal in the order in which they happened to come.

    Returns
    -------
    low, high : ndarray
        The best rank and the worst; 1 is the highest score.
    """
    count = len(scores)
    low, high = np.ones(count), np.full(count, float(count))
    if count == 1:
        return low, high
    weights = rng.standard_normal((DRAWS, len(replicates.deviations))) / np.sqrt(replicates.freedom)
    weights /= np.sqrt(rng.chisquare(replicates.freedom, (DRAWS, 1)) / replicates.freedom)
    noise = weights @ np.nan_to_num(replicates.deviations)
    for j in range(count):
        sure = _told_apart(j, scores, replicates, noise, level)
        low[j] += np.sum(sure & (scores > scores[j]))
        high[j] -= np.sum(sure & (scores < scores[j]))
    return low, high


def _told_apart(
    j: int, scores: FloatArray, replicates: Replicates, noise: FloatArray, level: float
) -> NDArray[np.bool_]:
    """Which checkpoints surely differ from checkpoint j."""
    apart = replicates.deviations - replicates.deviations[:, [j]]
    error = np.sqrt((apart**2).sum(axis=0) / replicates.freedom)
    difference = np.abs(scores - scores[j])
    sure: NDArray[np.bool_] = (error == 0) & (difference > 0)
    open_ = (error > 0) & np.isfinite(error)
    signs = np.where(np.argsort(np.argsort(scores)) % 2, 1, -1)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = difference / error
        drawn = (noise - noise[:, [j]]) * signs / error
    while open_.any():
        limit = np.quantile(drawn[:, open_].max(axis=1), level)
        found = open_ & (t > limit)
        if not found.any():
            break
        sure |= found
        open_ &= ~found
    return sure
