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
PACK_RUNS = 512
"""Runs transposed at a time; a multiple of 64."""
FEW_CLASSES = 41
"""Classes up to which comparing with each class is faster than np.bincount."""
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
    by_run, by_example = [np.zeros(0, dtype=np.int64)], np.zeros(n, dtype=np.int64)
    for block in blocks:
        for rows in _pieces(block):
            bits = np.unpackbits(rows, axis=1, count=n)
            by_run.append(np.bitwise_count(np.packbits(bits, axis=1)).sum(axis=1, dtype=np.int64))
            by_example += np.add.reduce(bits, axis=0, dtype=np.uint8)
    return np.concatenate(by_run), by_example


def _pieces(block: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield 255 rows at a time, so that a byte holds the sum of their zeros and ones."""
    yield from (block[start : start + 255] for start in range(0, len(block), 255))


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
    for start, rows in _regrouped(blocks, -(-n // 8)):
        packed = np.packbits(np.unpackbits(rows, axis=1, count=n), axis=0)
        by_byte[:, start // 8 : start // 8 + len(packed)] = packed.T
    return columns


def _regrouped(blocks: Iterable[ByteArray], width: int) -> Iterator[tuple[int, ByteArray]]:
    """Cut and join blocks to PACK_RUNS rows each, the last perhaps fewer; yield the first row and the rows."""
    rows = np.empty((PACK_RUNS, width), dtype=np.uint8)
    start = filled = 0
    for block in blocks:
        done = 0
        while done < len(block):
            taken = block[done : done + PACK_RUNS - filled]
            rows[filled : filled + len(taken)] = taken
            filled, done = filled + len(taken), done + len(taken)
            if filled == PACK_RUNS:
                yield start, rows
                start, filled = start + filled, 0
    if filled:
        yield start, rows[:filled]


def class_counts(blocks: Iterable[Labels], n: int, classes: int) -> IntArray:
    """Count, for every example, the runs that predicted each class.

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
    checked = _checked(blocks, classes)
    return _compared(checked, n, classes) if classes <= FEW_CLASSES else _binned(checked, n, classes)


def _checked(blocks: Iterable[Labels], classes: int) -> Iterator[NDArray[np.integer[Any]]]:
    """Yield blocks of class numbers, all of them in range."""
    for block in blocks:
        labels: NDArray[Any] = block.view(np.uint8) if block.dtype.kind == "b" else block
        if not labels.size:
            continue
        for value in (labels.min() if labels.dtype.kind == "i" else 0, labels.max()):
            if not 0 <= value < classes:
                problem = f"holds class {value}, but {classes} classes are 0 to {classes - 1}: number them from 0."
                raise InputError(problem, argument="predictions")
        yield labels


def _compared(blocks: Iterable[NDArray[np.integer[Any]]], n: int, classes: int) -> IntArray:
    """Compare all labels with each class; the last class is what the others leave of the runs."""
    counts, runs = np.zeros((classes, n), dtype=np.int64), 0
    for block in blocks:
        runs += len(block)
        for rows in _pieces(block.astype(np.uint8, copy=False)):
            for c in range(classes - 1):
                counts[c] += np.add.reduce(rows == np.uint8(c), axis=0, dtype=np.uint8)
    counts[-1] = runs - counts.sum(axis=0)
    return np.ascontiguousarray(counts.T)


def _binned(blocks: Iterable[NDArray[np.integer[Any]]], n: int, classes: int) -> IntArray:
    """Count by np.bincount, a few examples at a time so that their bins stay in the cache."""
    counts = np.zeros((n, classes), dtype=np.int64)
    step = max(1, min(64, MANY_BINS // classes))

    def count(labels: NDArray[np.integer[Any]]) -> None:
        for start in range(0, n, step):
            tile = counts[start : start + step]
            part = labels[:, start : start + step].astype(np.int64)
            part += np.arange(len(tile)) * classes
            tile += np.bincount(part.ravel(), minlength=tile.size).reshape(tile.shape)

    # Short blocks are collected first, so that not each of them walks over all bins.
    waiting: list[NDArray[Any]] = []
    for block in blocks:
        for start in range(0, len(block), max(MANY_RUNS, classes)):
            piece = block[start : start + max(MANY_RUNS, classes)]
            waiting.append(piece.astype(np.min_scalar_type(classes - 1)))  # a copy: the block may be used again
            if sum(map(len, waiting)) >= classes:
                count(np.concatenate(waiting))
                waiting = []
    if waiting:
        count(np.concatenate(waiting))
    return counts
