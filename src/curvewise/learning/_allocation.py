"""Deal examples into subsets: how many of each class, and which ones."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.types import FloatArray

IntArray: TypeAlias = NDArray[np.int64]


def draw_subsets(
    codes: IntArray,
    parents: list[IntArray],
    n: int,
    folds: int,
    per_class: bool,
    rng: np.random.Generator,
) -> list[IntArray]:
    """Draw fold j out of parent ``j mod parents``."""
    subsets: dict[int, IntArray] = {}
    weights = np.bincount(codes)
    for i, parent in enumerate(parents):
        children = range(i, folds, len(parents))
        if not children:
            continue
        pools = _by_class(codes, parent, len(weights))
        if per_class:
            counts = np.full((len(children), len(pools)), n, dtype=np.int64)
        else:
            members = np.array([len(p) for p in pools], dtype=np.int64)
            counts = _allocate(weights, members, n, len(children), rng)
        subsets.update(zip(children, _deal(pools, counts, rng), strict=True))
    return [subsets[fold] for fold in range(folds)]


def put_smaller_first(indices: dict[int, list[IntArray]]) -> None:
    """Reorder nested subsets so that each begins with its own fold of the next smaller size."""
    ordered = sorted(indices)
    for small, large in pairwise(ordered):
        for fold, first in enumerate(indices[small][: len(indices[large])]):
            rest = indices[large][fold]
            indices[large][fold] = np.concatenate([first, rest[~np.isin(rest, first)]])


def _by_class(codes: IntArray, indices: IntArray, classes: int) -> list[IntArray]:
    of_class = codes[indices]
    ends = np.cumsum(np.bincount(of_class, minlength=classes))[:-1]
    return np.split(indices[np.argsort(of_class, kind="stable")], ends)


def _allocate(
    weights: IntArray, members: IntArray, n: int, folds: int, rng: np.random.Generator
) -> IntArray:
    """Say how many examples each subset takes from each class, shape (folds, classes).

    Each entry is its class's target rounded down or up. The roundings up of a class go to different
    subsets, and no class is used up before its last subset unless examples must be shared anyway.
    """
    room = members * folds if folds * n > members.sum() else members
    target = _target(weights, room / folds, n)
    base = np.floor(target + 1e-7).astype(np.int64)
    extra = _largest_remainder(
        (target - base) * folds,
        folds * (n - int(base.sum())),
        np.minimum(folds, room - folds * base),
        rng,
    )
    # The extras of a class stand together, so that taking turns gives them to different subsets.
    order = rng.permutation(len(members))
    takes = np.repeat(order, extra[order])
    turns = rng.permutation(folds)[np.arange(len(takes)) % folds]
    counts = np.tile(base, (folds, 1))
    np.add.at(counts, (turns, takes), 1)
    return counts


def _target(weights: IntArray, ceiling: FloatArray, n: int) -> FloatArray:
    """Share n out in proportion to the weights, at least 1 and at most the ceiling each."""
    floor = np.minimum(1.0, ceiling)
    if floor.sum() >= n:
        return _solve(lambda level: np.minimum(floor, level), 1.0, n)
    top = float((ceiling / weights).max())
    return _solve(lambda level: np.clip(level * weights, floor, ceiling), top, n)


def _solve(share: Callable[[float], FloatArray], high: float, n: int) -> FloatArray:
    """Evaluate ``share`` at the level where it sums to n; the sum must grow with the level."""
    low = 0.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if share(middle).sum() < n else (low, middle)
    return share(high)


def _largest_remainder(
    share: FloatArray, total: int, most: IntArray, rng: np.random.Generator
) -> IntArray:
    """Find whole numbers near ``share`` that sum to ``total``; ties are broken at random."""
    whole = np.minimum(np.floor(share + 1e-6).astype(np.int64), most)
    order = np.lexsort((rng.random(len(share)), np.round(whole - share, 6)))
    while (left := total - int(whole.sum())) > 0:
        whole[[c for c in order if whole[c] < most[c]][:left]] += 1
    return whole


def _deal(pools: list[IntArray], counts: IntArray, rng: np.random.Generator) -> list[IntArray]:
    """Deal the examples of each class like cards; a class that runs out is shuffled again."""
    decks = [rng.permutation(pool) for pool in pools]
    subsets = []
    for row in counts:
        hands = []
        for c, want in enumerate(row):
            hand, decks[c] = decks[c][:want], decks[c][want:]
            if (short := want - len(hand)) > 0:
                fresh = rng.permutation(pools[c])
                held = np.isin(fresh, hand)
                fresh = np.concatenate([fresh[~held], fresh[held]])
                hand, decks[c] = np.concatenate([hand, fresh[:short]]), fresh[short:]
            hands.append(hand)
        subsets.append(rng.permutation(np.concatenate(hands)))
    return subsets
