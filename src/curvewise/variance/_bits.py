"""Count bits in packed tables of errors (runs x examples): along runs and along examples.

A packed table is what ``np.packbits(errors, axis=1)`` makes: eight examples to a byte, the first in
the highest bit. Tables come in blocks of runs, so that none has to be in memory as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError

ByteArray: TypeAlias = NDArray[np.uint8]
IntArray: TypeAlias = NDArray[np.int64]
WordArray: TypeAlias = NDArray[np.uint64]

LANE_WORDS = 10240  # words per step of the adder: its four arrays fill 320 KB of cache
MOST_LANES = 256  # rows per step, so that short rows do not make small tables slow
PACK_RUNS = 512  # runs transposed at a time; a multiple of 64
# Swaps that transpose 8 x 8 bits in a word: distance of the pair, and its lower partners.
_SWAPS = ((7, 0x00AA00AA00AA00AA), (14, 0x0000CCCC0000CCCC), (28, 0x00000000F0F0F0F0))


class BitCounter:
    """How often each column of bits was set, over any number of rows.

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
            total += _unpacked_sum(planes.reshape(-1, self._shape[1])) << weight
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
    for block in _checked(blocks, n):
        done = 0
        while done < len(block):
            rows = counter.free_rows()[: len(block) - done]
            by_byte = rows.view(np.uint8)
            by_byte[:, :width] = block[done : done + len(rows)]
            by_byte[:, width - 1] &= last_byte_mask(n)
            run_totals.append(count_bits(rows).sum(axis=1, dtype=np.int64))
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
    for rows in _regrouped(_checked(blocks, n), packed_width(n)):
        bytes_of_runs = -(-len(rows) // 8)
        if start + len(rows) > runs:
            break
        first = start // 8
        by_byte[:, first : first + bytes_of_runs] = _transposed(rows)[:, :n].T
        start += len(rows)
    else:
        if start == runs:
            return columns
    raise InputError(f"runs={runs} is not the number of rows of the blocks: pass their sum.")


def count_bits(words: WordArray) -> ByteArray:
    """Count set bits in each word."""
    counted: ByteArray = np.bitwise_count(words)
    return counted


def packed_width(n: int) -> int:
    """Bytes of a packed row of n bits."""
    if n < 1:
        raise InputError(f"n={n}: at least 1 example is needed.")
    return -(-n // 8)


def last_byte_mask(n: int) -> np.uint8:
    """Bits of the last byte of a packed row that belong to the n examples."""
    return np.uint8(0xFF & (0xFF << (-n % 8)))


def _unpacked_sum(planes: WordArray) -> IntArray:
    """Sum bits over rows; at most 255 rows at a time, so that bytes hold the sums."""
    total = np.zeros(64 * planes.shape[1], dtype=np.int64)
    for start in range(0, len(planes), 255):
        bits = np.unpackbits(planes[start : start + 255].view(np.uint8), axis=1)
        total += np.add.reduce(bits, axis=0, dtype=np.uint8)
    return total


def _checked(blocks: Iterable[ByteArray], n: int) -> Iterator[ByteArray]:
    """Blocks that have the shape and type of packed errors of n examples."""
    width = packed_width(n)
    for block in blocks:
        if block.dtype != np.uint8 or block.ndim != 2 or block.shape[1] != width:
            raise InputError(
                f"blocks holds an array of {block.dtype} of shape {block.shape}: {n} examples need "
                f"uint8 of shape (runs, {width}), as np.packbits(errors, axis=1) makes them."
            )
        yield block


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
    """Bits (8 r, 8 b) packed along the second axis, packed along the first: bytes (r, 8 b)."""
    if len(rows) % 8:
        rows = np.pad(rows, ((0, -len(rows) % 8), (0, 0)))
    groups = rows.reshape(-1, 8, rows.shape[1]).transpose(0, 2, 1)
    words = np.ascontiguousarray(groups).view(">u8")[..., 0].astype(np.uint64)
    for distance, lower in _SWAPS:
        swap = (words ^ (words >> np.uint64(distance))) & np.uint64(lower)
        words ^= swap
        words ^= swap << np.uint64(distance)
    return words.astype(">u8").view(np.uint8).reshape(len(groups), -1)
