"""How many runs gave each example each class, in one pass over the predictions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.variance._bits import LANE_WORDS, BitCounter, IntArray, packed_width

Labels: TypeAlias = NDArray[np.integer[Any] | np.bool_]

FEW_CLASSES = 41  # up to here counting bits, eight classes at a time, is faster than np.bincount
LEAST_GROUP = 3  # a last group of fewer classes is counted class by class
MANY_RUNS = 4096  # runs per np.bincount, or as many as there are classes
MANY_BINS = 65536  # bins per np.bincount


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
    tally: _Tally
    tally = _FewClasses(n, classes) if classes <= FEW_CLASSES else _ManyClasses(n, classes)
    for block in _checked(blocks, n):
        tally.add(block)
    return tally.totals()


class _Tally(Protocol):
    """What counts classes."""

    def add(self, labels: Labels) -> None:
        """Count the labels (rows, n) of some runs."""

    def totals(self) -> IntArray:
        """Counts (n, classes) so far."""


class _FewClasses:
    """Adds up one bit per class and example, in tiles of examples that stay in the cache."""

    def __init__(self, n: int, classes: int) -> None:
        self._classes = classes
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
            piece = _as_bytes(labels[done : done + rows], self._classes)
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


def _checked(blocks: Iterable[Labels], n: int) -> Iterator[Labels]:
    """Blocks of whole numbers for n examples."""
    for block in blocks:
        if block.dtype.kind not in "iub" or block.ndim != 2 or block.shape[1] != n:
            raise InputError(
                f"predictions holds an array of {block.dtype} of shape {block.shape}: {n} examples "
                f"need whole class numbers of shape (runs, {n})."
            )
        yield block.view(np.uint8) if block.dtype.kind == "b" else block


def _check_range(labels: Labels, classes: int) -> None:
    lowest = labels.min() if labels.dtype.kind == "i" else 0
    for value in (lowest, labels.max()):
        if not 0 <= value < classes:
            raise InputError(
                f"predictions holds class {value}, but classes={classes} allows 0 to {classes - 1}:"
                " number the classes from 0, or raise classes."
            )


def _as_bytes(labels: Labels, classes: int) -> NDArray[np.uint8]:
    _check_range(labels, classes)
    return np.asarray(labels, dtype=np.uint8)
