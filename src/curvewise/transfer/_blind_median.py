"""Exact medians of many numbers in little memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.transfer._blind_targets import Elements, Which, blocks_of
from curvewise.types import FloatArray

Parts: TypeAlias = Callable[[], Iterator[tuple[FloatArray, FloatArray]]]
"""Makes an iterator over values and their weights, both shape (m,); called once for each pass."""

LIMIT = 2**21
"""Numbers that may be sorted at once."""

TIE = 1e-10
"""Sums of weights this close, relative to the total, are taken for equal."""

EVERY, AROUND = 61, 0.02
"""One number in so many is looked at first, to find two on either side of the median."""

_BITS = 16


def medians(targets: Elements, per: str) -> FloatArray:
    """The median for each constant: the middle of those that minimise the mean absolute loss."""
    cells, many = targets.cells(per)
    if many == targets.size:
        found = [_columns(targets, w) for w in blocks_of(many, len(targets.array))]
        return np.concatenate(found)
    return np.array([_cell(targets, _as_slice(np.flatnonzero(cells == k))) for k in range(many)])


def _as_slice(which: NDArray[np.intp]) -> Which:
    """The same as a slice where places are evenly apart, which is much quicker to read."""
    steps = np.diff(which)
    if len(which) < 2 or (steps != steps[0]).any():
        return which
    return slice(int(which[0]), int(which[-1]) + 1, int(steps[0]))


def _columns(targets: Elements, which: slice) -> FloatArray:
    values, weight = targets.gather(which)
    if (weight == weight.flat[0]).all() and weight.flat[0] > 0:
        return np.asarray(np.median(values, axis=0), dtype=np.float64)
    return weighted_median(values, weight)


def _cell(targets: Elements, which: Which) -> float:
    def parts() -> Iterator[tuple[FloatArray, FloatArray]]:
        for _, values, weight in targets.pieces(which):
            yield values.ravel(), weight.ravel()

    return streamed_median(parts)


def weighted_median(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Median along the first axis; the middle where a stretch of values would do; NaN of nothing.

    >>> weighted_median(np.array([[1.0], [2.0], [9.0]]), np.array([[1.0], [1.0], [1.0]]))
    array([2.])
    >>> weighted_median(np.array([[1.0], [2.0], [9.0]]), np.array([[1.0], [1.0], [2.0]]))
    array([5.5])
    """
    order = np.argsort(values, axis=0, kind="stable")
    ranked = np.take_along_axis(values, order, axis=0)
    below = np.cumsum(np.take_along_axis(weights, order, axis=0), axis=0)
    total = below[-1]
    lower = np.argmax(below >= total * (0.5 - TIE), axis=0)
    upper = np.argmax(below > total * (0.5 + TIE), axis=0)
    column = np.arange(values.shape[1])
    return np.where(total > 0, 0.5 * (ranked[lower, column] + ranked[upper, column]), np.nan)


def streamed_median(parts: Parts, limit: int = LIMIT) -> float:
    """The same of one column that need not fit into memory, by a few passes over it.

    One number in 61 tells between which two the median will lie; a second pass sorts those between
    them and weighs the rest. Where that fails, since too many numbers are the same or the few were
    not like the others, they are counted by their bits.
    """
    found = _between(parts, *_likely_ends(parts), limit)
    return _by_bits(parts, limit) if found is None else found


def _likely_ends(parts: Parts) -> tuple[float, float]:
    """Two numbers that will have the median between them, by some of all."""
    some = [(v[::EVERY].copy(), w[::EVERY].copy()) for v, w in parts()]
    values, weights = (np.concatenate(c) for c in zip(*some, strict=True))
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    if not below[-1] > 0:
        return np.nan, np.nan
    places = np.searchsorted(below / below[-1], [0.5 - AROUND, 0.5 + AROUND])
    ends = values[order][np.minimum(places, len(values) - 1)]
    return float(ends[0]), float(ends[1])


def _between(parts: Parts, low: float, high: float, limit: int) -> float | None:
    """The median if it lies between two numbers with few others between them, else None."""
    kept = [(np.array([low, high]), np.zeros(2))]
    base, total, count = 0.0, 0.0, 0
    for values, weights in parts():
        inside = (values > low) & (values < high)
        kept.append((values[inside], weights[inside]))
        count += len(kept[-1][0])
        if not low <= high or count > limit:
            return None
        total += float(weights.sum())
        base += float(weights @ (values < low))
        kept[0][1][:] += weights @ (values == low), weights @ (values == high)
    values, weights = (np.concatenate(c) for c in zip(*kept, strict=True))
    weights[1] *= high > low  # counted once if both are the same
    if not base < total * (0.5 - TIE) or not base + weights.sum() > total * (0.5 + TIE):
        return None
    order = np.argsort(values, kind="stable")
    below = base + np.cumsum(weights[order])
    lower = values[order][np.argmax(below >= total * (0.5 - TIE))]
    upper = values[order][np.argmax(below > total * (0.5 + TIE))]
    return float(0.5 * (lower + upper))


def _by_bits(parts: Parts, limit: int) -> float:
    """The median by a code of bits that keeps the order of numbers.

    Numbers are counted by the leading bits, then those that share the leading bits of the median by
    the next ones, until so few are left that they can be sorted.
    """
    prefix, shift, base, total = np.uint64(0), 64, 0.0, 0.0
    while shift > 0:
        weight, count = _histogram(parts, prefix, shift)
        if shift == 64:
            total = float(weight.sum())
            if count.sum() <= limit:
                break
        below = base + np.cumsum(weight)
        chosen = int(np.argmax((below >= total * (0.5 - TIE)) & (weight > 0)))
        base = float(below[chosen] - weight[chosen])
        prefix, shift = np.uint64((int(prefix) << _BITS) | chosen), shift - _BITS
        if count[chosen] <= limit:
            break
    return _finish(parts, prefix, shift, base, total)


def _finish(parts: Parts, prefix: np.uint64, shift: int, base: float, total: float) -> float:
    """The median among the numbers with a prefix; the next number above them may be half of it."""
    kept: list[tuple[FloatArray, FloatArray]] = []
    above = np.inf
    for values, weights, key in _counted(parts):
        inside = _leading(key, shift) == prefix
        higher = _leading(key, shift) > prefix
        above = min(above, float(values[higher].min())) if higher.any() else above
        v, w = values[inside], weights[inside]
        kept.append((v[:1], w.sum(keepdims=True)) if shift == 0 and len(v) else (v, w))
    values, weights = (np.concatenate(c) for c in zip(*kept, strict=True))
    order = np.argsort(values, kind="stable")
    below = base + np.cumsum(weights[order])
    if not total > 0 or not len(values):
        return float("nan")
    lower = values[order][np.argmax(below >= total * (0.5 - TIE))]
    past = below > total * (0.5 + TIE)
    upper = values[order][np.argmax(past)] if past.any() else above
    return float(0.5 * (lower + upper))


def _histogram(parts: Parts, prefix: np.uint64, shift: int) -> tuple[FloatArray, FloatArray]:
    """Weight and number of the values by the bits that follow a prefix."""
    weight, count = np.zeros(2**_BITS), np.zeros(2**_BITS)
    for _, weights, key in _counted(parts):
        inside = _leading(key, shift) == prefix
        following = _leading(key[inside], shift - _BITS) & np.uint64(2**_BITS - 1)
        bins = following.astype(np.intp)
        weight += np.bincount(bins, weights=weights[inside], minlength=2**_BITS)
        count += np.bincount(bins, minlength=2**_BITS)
    return weight, count


def _counted(parts: Parts) -> Iterator[tuple[FloatArray, FloatArray, NDArray[np.uint64]]]:
    """Values with a weight, and codes for them that have their order."""
    for values, weights in parts():
        there = weights > 0
        v = values[there] + 0.0  # no negative zero, which has another code than zero
        bits = v.view(np.uint64)
        sign = np.uint64(1 << 63)
        yield v, weights[there], np.where(bits & sign, ~bits, bits | sign)


def _leading(key: NDArray[np.uint64], shift: int) -> NDArray[np.uint64]:
    return np.zeros_like(key) if shift == 64 else key >> np.uint64(shift)
