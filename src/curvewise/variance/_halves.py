"""Two parts of a test set: who belongs to which, and what runs did on each."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from curvewise.errors import InputError
from curvewise.types import FloatArray, Interval, Predictions
from curvewise.variance._estimates import correlate
from curvewise.variance.tails import judge_tails

ENOUGH = 10
"""Runs from which the intervals of gains hold."""


def split_in_two(
    predictions: Predictions, split: str | ArrayLike, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Which examples are in the first part; groups are kept together."""
    n = predictions.examples
    if not isinstance(split, str):
        mask = np.asarray(split)
        if mask.dtype != bool or mask.shape != (n,):
            raise InputError(
                f"split has shape {mask.shape} and dtype {mask.dtype}: pass one True or False for"
                f" each of the {n:,} examples, 'even-odd' or 'random'."
            )
        if mask.all() or not mask.any():
            raise InputError("split puts all examples into one part: both need some.")
        return mask
    if split == "random":
        return random_halves(predictions, 1, rng)[:, 0]
    if split != "even-odd":
        raise InputError(
            f"split={split!r} is not known: use 'even-odd', 'random' or a mask of the examples."
        )
    turn = np.arange(n) if predictions.groups is None else _turn(predictions.groups)
    first: NDArray[np.bool_] = turn % 2 == 0
    return first


def _turn(groups: NDArray[Any]) -> NDArray[np.int64]:
    """Groups of the examples numbered in the order in which they appear."""
    _, start, codes = np.unique(groups, return_index=True, return_inverse=True)
    rank = np.empty(len(start), dtype=np.int64)
    rank[np.argsort(start)] = np.arange(len(start))
    return rank[codes.ravel()]


def random_halves(
    predictions: Predictions, count: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Masks (examples × count) of a random half of the examples, or of the groups."""
    units = predictions.examples
    codes = None
    if predictions.groups is not None:
        codes = np.unique(predictions.groups, return_inverse=True)[1].ravel()
        units = int(codes.max()) + 1
    masks = np.zeros((units, count), dtype=bool)
    for j in range(count):
        masks[rng.permutation(units)[: units // 2], j] = True
    return masks if codes is None else masks[codes]


def part_errors(predictions: Predictions, masks: NDArray[np.bool_]) -> FloatArray:
    """Total error of each run on each part (runs × parts), a block of runs at a time."""
    # Sums of 0/1 errors are exact in single precision, which is twice as fast.
    exact = predictions.binary and predictions.examples < 2**24
    precision: type[np.floating[Any]] = np.float32 if exact else np.float64
    weights = masks.astype(precision)
    sums = [block.astype(precision) @ weights for _, block in predictions.error_blocks()]
    return np.concatenate(sums).astype(np.float64)


def expected_correlation(share: float, sizes: tuple[int, int]) -> float:
    """Correlation of two parts of a test set of which this share of the variance is real.

    >>> round(expected_correlation(0.4, (50, 50)), 3)  # α/(2 − α) for halves
    0.25
    """
    if math.isnan(share):
        return math.nan
    parts = [share + (1 - share) * sum(sizes) / size for size in sizes]
    return share / math.sqrt(parts[0] * parts[1])


def expected_of_parts(share: Interval, sizes: tuple[int, int]) -> Interval:
    """The same with its limits; a share that comes out below 0 counts as none."""
    ends = [expected_correlation(a, sizes) for a in (share.estimate, share.low, share.high)]
    return _chance_interval(ends, share.level)


def expected_of_pair(first: Interval, second: Interval) -> Interval:
    """Correlation on two test sets of runs that are equally good on both, from both shares."""
    pairs = ((getattr(first, end), getattr(second, end)) for end in ("estimate", "low", "high"))
    ends = [a * b if math.isnan(a * b) else math.sqrt(max(0.0, a) * max(0.0, b)) for a, b in pairs]
    return _chance_interval(ends, first.level)


def _chance_interval(ends: list[float], level: float) -> Interval:
    estimate, low, high = (x if math.isnan(x) else max(0.0, x) for x in ends)
    return Interval(estimate, low, high, level)


def best_of(first: FloatArray, second: FloatArray, top: float, level: float) -> Interval:
    """How much less than all runs those err on the second that are best on the first.

    Runs that tie for the last place share it. The standard error is that of the influence of each
    run, by which it moves the mean, the selected mean and the place of the cut.
    """
    runs = len(first)
    picked = max(1, math.ceil(top * runs - 1e-9))
    cut = float(np.sort(first)[picked - 1])
    tied = first == cut
    weight = np.where(first < cut, 1.0, 0.0)
    weight[tied] = (picked - weight.sum()) / np.count_nonzero(tied)
    gain = float(second.mean() - (weight * second).sum() / picked)
    spread = float(np.var(first))
    slope = float(np.mean((first - first.mean()) * (second - second.mean()))) / (spread or 1.0)
    at_cut = float(second.mean()) + slope * (cut - float(first.mean()))
    influence = second - weight * (second - at_cut) * runs / picked
    half = float(stdtrit(runs - 1, (1 + level) / 2)) * float(np.std(influence, ddof=1))
    half /= math.sqrt(runs)
    return Interval(gain, gain - half, gain + half, level)


def over_splits(first: FloatArray, second: FloatArray, level: float) -> Interval:
    """Mean correlation over several splits (columns), and the limits between which they fall."""
    r = np.array(
        [correlate(a, b, level)[0].estimate for a, b in zip(first.T, second.T, strict=True)]
    )
    low, high = np.quantile(r, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(r.mean()), float(low), float(high), level, "prediction")


def luck_notes(first: FloatArray, second: FloatArray) -> list[str]:
    """What to know about runs that are few, that do not differ, or that differ too much."""
    notes = []
    if len(first) < ENOUGH:
        notes.append(
            f"{len(first)} runs are few: the interval of the gain on the second holds less often"
            f" than it says. Train {ENOUGH} or more."
        )
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        notes.append("the runs do not differ on one of the two sets: there is no correlation.")
    if judge_tails(first).heavy or judge_tails(second).heavy:
        notes.append(
            "run errors have heavy tails, so a few runs may make the correlation: look at the"
            " picture before its interval."
        )
    return notes
