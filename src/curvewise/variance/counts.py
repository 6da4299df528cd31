"""Counts of errors and of classes in tables of runs × examples: along runs and along examples.

A packed table is what ``np.packbits(errors, axis=1)`` makes: eight examples to a byte, the first in
the highest bit. Tables come in blocks of runs, so that none has to be in memory as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError

ByteArray: TypeAlias = NDArray[np.uint8]
IntArray: TypeAlias = NDArray[np.int64]
WordArray: TypeAlias = NDArray[np.uint64]
Labels: TypeAlias = NDArray[np.integer[Any] | np.bool_]
LANE_WORDS = 10240
"""Words per step of the adder: its four arrays fill 320 KB of cache."""
MOST_LANES = 256
"""Rows per step, so that short rows do not make small tables slow."""
PACK_RUNS = 512
"""Runs transposed at a time; a multiple of 64."""
SWAPS = ((7, 0x00AA00AA00AA00AA), (14, 0x0000CCCC0000CCCC), (28, 0x00000000F0F0F0F0))
"""Swaps that transpose 8 × 8 bits in a word: distance of the pair, and its lower partners."""
FEW_CLASSES = 41
"""Classes up to which counting bits, eight classes at a time, is faster than np.bincount."""
LEAST_GROUP = 3
"""A last group of fewer classes is counted class by class."""
MANY_RUNS = 4096
"""Runs per np.bincount, or as many as there are classes."""
MANY_BINS = 65536
"""Bins per np.bincount: they stay in the cache."""


def packed_totals(blocks: Iterable[ByteArray], n: int) -> tuple[IntArray, IntArray]:
    """Count errors of every run and of every example in one pass.

    Parameters
    ----------
    blocks : iterable of uint8 ndarray, shape (rows, ceil(n / 8))
        Packed errors of some runs each. Bits beyond the n-th are ignored.
    n : int
        Number of examples.

    Returns
    -------
    run_totals : ndarray of int64, shape (R,)
    example_totals : ndarray of int64, shape (n,)
    """
    width = packed_width(n)
    counter = BitCounter(-(-width // 8))
    run_totals = []
    last_byte = np.uint8(0xFF & (0xFF << (-n % 8)))  # the bits of it that belong to the n examples
    for block in blocks:
        done = 0
        while done < len(block):
            rows = counter.free_rows()[: len(block) - done]
            by_byte = rows.view(np.uint8)
            by_byte[:, :width] = block[done : done + len(rows)]
            by_byte[:, width - 1] &= last_byte
            run_totals.append(np.bitwise_count(rows).sum(axis=1, dtype=np.int64))
            done += len(rows)
            counter.commit(len(rows))
    runs = np.concatenate(run_totals) if run_totals else np.zeros(0, dtype=np.int64)
    return runs, counter.totals()[:n]


def column_pack(blocks: Iterable[ByteArray], n: int, runs: int) -> WordArray:
    """Turn errors packed along examples into errors packed along runs.

    Parameters
    ----------
    blocks : iterable of uint8 ndarray, shape (rows, ceil(n / 8))
        Packed errors of some runs each. Bits beyond the n-th are ignored.
    n : int
        Number of examples.
    runs : int
        Rows of all blocks together.

    Returns
    -------
    ndarray of uint64, shape (n, ceil(runs / 64))
        One row per example, its runs in the order of ``np.packbits``, zeros after the last.
    """
    columns = np.zeros((n, -(-runs // 64)), dtype=np.uint64)
    by_byte = columns.view(np.uint8)
    start = 0
    for rows in _regrouped(blocks, packed_width(n)):
        first, bytes_of_runs = start // 8, -(-len(rows) // 8)
        by_byte[:, first : first + bytes_of_runs] = _transposed(rows)[:, :n].T
        start += len(rows)
    return columns


def packed_width(n: int) -> int:
    """Return the bytes of a packed row of n bits."""
    return -(-n // 8)


def _regrouped(blocks: Iterable[ByteArray], width: int) -> Iterator[ByteArray]:
    """Cut and join blocks to PACK_RUNS rows each; the last may have fewer."""
    held = np.empty((PACK_RUNS, width), dtype=np.uint8)
    filled = 0
    for block in blocks:
        done = 0
        while done < len(block):
            rows = min(PACK_RUNS - filled, len(block) - done)
            held[filled : filled + rows] = block[done : done + rows]
            filled, done = filled + rows, done + rows
            if filled == PACK_RUNS:
                yield held
                filled = 0
    if filled:
        yield held[:filled]


def _transposed(rows: ByteArray) -> ByteArray:
    """Repack bits (8 r, 8 b) from along the second axis to along the first: bytes (r, 8 b)."""
    if len(rows) % 8:
        rows = np.pad(rows, ((0, -len(rows) % 8), (0, 0)))
    groups = rows.reshape(-1, 8, rows.shape[1]).transpose(0, 2, 1)
    words = np.ascontiguousarray(groups).view(">u8")[..., 0].astype(np.uint64)
    for distance, lower in SWAPS:
        swap = (words ^ (words >> np.uint64(distance))) & np.uint64(lower)
        words ^= swap
        words ^= swap << np.uint64(distance)
    return words.astype(">u8").view(np.uint8).reshape(len(groups), -1)


class BitCounter:
    """Counter of how often each column of bits was set, over any number of rows.

    Rows are added like binary numbers, 64 columns per word at once: three planes of one weight make
    one of that weight and one of twice the weight (a carry-save adder), so that a row costs five
    operations on words whatever the number of rows.

    Parameters
    ----------
    words : int
        Length of a row in words of 64 columns.
    """

    def __init__(self, words: int) -> None:
        self._lanes = max(1, min(MOST_LANES, LANE_WORDS // words))  # rows added at once
        self._shape = (2 * self._lanes, words)
        self._pairs: list[WordArray] = []  # by weight: two planes that wait to be added
        self._sums: list[WordArray] = []  # by weight: one plane
        self._waiting: list[int] = []  # by weight: how many planes of the pair are filled
        self._filled = 0
        self._grow()

    def free_rows(self) -> WordArray:
        """Rows to be written next; tell :meth:`commit` how many were.

        Columns that are never written count as never set.
        """
        return self._pairs[0].reshape(self._shape)[self._filled :]

    def commit(self, rows: int) -> None:
        """Count the first ``rows`` of the free rows; this overwrites them once all are taken."""
        self._filled += rows
        if self._filled == 2 * self._lanes:
            self._filled = 0
            self._add_pair(0)

    def add(self, rows: ByteArray) -> None:
        """Count rows of bytes, which may be shorter than the words."""
        done = 0
        while done < len(rows):
            free = self.free_rows()[: len(rows) - done]
            free.view(np.uint8)[:, : rows.shape[1]] = rows[done : done + len(free)]
            done += len(free)
            self.commit(len(free))

    def totals(self) -> IntArray:
        """Rows in which each column was set, in the order of ``np.unpackbits`` of a row's bytes."""
        self.free_rows()[:] = 0
        self.commit(2 * self._lanes - self._filled)
        total = np.zeros(64 * self._shape[1], dtype=np.int64)
        for weight, (pair, sums) in enumerate(zip(self._pairs, self._sums, strict=True)):
            planes = np.concatenate([sums, *pair[: self._waiting[weight]]])
            planes = planes.reshape(-1, self._shape[1])
            for start in range(0, len(planes), 255):  # so that bytes hold the sums
                bits = np.unpackbits(planes[start : start + 255].view(np.uint8), axis=1)
                total += np.add.reduce(bits, axis=0, dtype=np.uint8).astype(np.int64) << weight
        return total

    def _grow(self) -> None:
        size = self._lanes * self._shape[1]
        self._pairs.append(np.zeros((2, size), dtype=np.uint64))
        self._sums.append(np.zeros(size, dtype=np.uint64))
        self._waiting.append(0)

    def _add_pair(self, weight: int) -> None:
        """Add the two waiting planes of a weight to its sum and carry into the next weight."""
        if weight + 1 == len(self._pairs):
            self._grow()
        (a, b), total = self._pairs[weight], self._sums[weight]
        carry = self._pairs[weight + 1][self._waiting[weight + 1]]
        np.bitwise_and(a, b, out=carry)
        np.bitwise_xor(a, b, out=a)
        np.bitwise_and(a, total, out=b)
        np.bitwise_or(carry, b, out=carry)
        np.bitwise_xor(a, total, out=total)
        self._waiting[weight] = 0
        self._waiting[weight + 1] += 1
        if self._waiting[weight + 1] == 2:
            self._add_pair(weight + 1)


def class_counts(blocks: Iterable[Labels], n: int, classes: int) -> IntArray:
    """Count, for every example, the runs that said each class.

    Parameters
    ----------
    blocks : iterable of integer ndarray, shape (rows, n)
        Predicted classes of some runs each, from 0 to ``classes - 1``.
    n : int
        Number of examples.
    classes : int
        Number of classes.

    Returns
    -------
    ndarray of int64, shape (n, classes)
        Each row sums to the number of runs.
    """
    if n < 1 or classes < 1:
        raise InputError(f"n={n}, classes={classes}: at least 1 example and 1 class are needed.")
    tally = _FewClasses(n, classes) if classes <= FEW_CLASSES else _ManyClasses(n, classes)
    for block in blocks:
        tally.add(block.view(np.uint8) if block.dtype.kind == "b" else block)
    return tally.totals()


class _FewClasses:
    """Adds up one bit per class and example, in tiles of examples that stay in the cache."""

    def __init__(self, n: int, classes: int) -> None:
        width = 8 * LANE_WORDS
        self._tiles = [slice(start, min(start + width, n)) for start in range(0, n, width)]
        self._tallies = [_Tile(tile.stop - tile.start, classes) for tile in self._tiles]

    def add(self, labels: Labels) -> None:
        for tile, tally in zip(self._tiles, self._tallies, strict=True):
            tally.add(labels[:, tile])

    def totals(self) -> IntArray:
        return np.concatenate([tally.totals() for tally in self._tallies])


class _Tile:
    """Counts of few classes for a tile of examples.

    Eight classes share a byte per label, in which the label sets one bit; a few left over are
    compared one by one; the last class is what the others leave of the runs.
    """

    def __init__(self, n: int, classes: int) -> None:
        self._n, self._classes, self._runs = n, classes, 0
        groups, left = divmod(classes - 1, 8)
        if left >= LEAST_GROUP:
            groups, left = groups + 1, 0
        self._groups = [BitCounter(packed_width(n)) for _ in range(groups)]
        self._singles = [BitCounter(packed_width(packed_width(n))) for _ in range(left)]
        self._rows = 2 * max(1, LANE_WORDS // packed_width(n))

    def add(self, labels: Labels) -> None:
        self._runs += len(labels)
        done = 0
        while done < len(labels):
            rows = len(self._groups[0].free_rows()) if self._groups else self._rows
            _check_range(labels[done : done + rows], self._classes)
            piece = np.asarray(labels[done : done + rows], dtype=np.uint8)
            for group, counter in enumerate(self._groups):
                free = counter.free_rows()[: len(piece)]
                shift = piece if group == 0 else piece - np.uint8(8 * group)  # others wrap round
                np.left_shift(np.uint8(1), shift, out=free.view(np.uint8)[:, : self._n])
                counter.commit(len(free))
            for single, counter in enumerate(self._singles, start=8 * len(self._groups)):
                counter.add(np.packbits(piece == np.uint8(single), axis=1))
            done += len(piece)

    def totals(self) -> IntArray:
        counts = np.zeros((self._n, self._classes), dtype=np.int64)
        for group, counter in enumerate(self._groups):
            known = counts[:, 8 * group : min(8 * group + 8, self._classes - 1)]
            # The bit of the first class is the lowest, which np.unpackbits puts last.
            known[:] = counter.totals().reshape(-1, 8)[: self._n, ::-1][:, : known.shape[1]]
        for single, counter in enumerate(self._singles, start=8 * len(self._groups)):
            counts[:, single] = counter.totals()[: self._n]
        counts[:, -1] = self._runs - counts.sum(axis=1)
        return counts


class _ManyClasses:
    """Counts by np.bincount, a few examples at a time so that their bins stay in the cache.

    Runs are collected first, at most as many as there are classes, so that short blocks do not walk
    over all bins each time.
    """

    def __init__(self, n: int, classes: int) -> None:
        self._counts = np.zeros((n, classes), dtype=np.int64)
        self._held: list[Labels] = []
        self._dtype = np.min_scalar_type(classes - 1)
        self._enough = classes
        self._step = max(MANY_RUNS, classes)

    def add(self, labels: Labels) -> None:
        for start in range(0, len(labels), self._step):
            piece = labels[start : start + self._step]
            _check_range(piece, self._counts.shape[1])
            if len(piece) >= self._enough:
                self._count(piece)
                continue
            self._held.append(piece.astype(self._dtype))  # a copy: the block may be used again
            if sum(map(len, self._held)) >= self._enough:
                self._count_held()

    def totals(self) -> IntArray:
        self._count_held()
        return self._counts

    def _count_held(self) -> None:
        if self._held:
            self._count(np.concatenate(self._held))
            self._held = []

    def _count(self, labels: Labels) -> None:
        n, classes = self._counts.shape
        step = max(1, min(64, MANY_BINS // classes))
        for start in range(0, n, step):
            tile = self._counts[start : start + step]
            part = labels[:, start : start + step].astype(np.int64)
            part += np.arange(len(tile)) * classes
            tile += np.bincount(part.ravel(), minlength=tile.size).reshape(tile.shape)


def _check_range(labels: Labels, classes: int) -> None:
    for value in (labels.min() if labels.dtype.kind == "i" else 0, labels.max()):
        if not 0 <= value < classes:
            problem = f"holds class {value}, but {classes} classes are 0 to {classes - 1}: number the classes from 0."
            raise InputError(problem, argument="predictions")
