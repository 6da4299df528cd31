"""Targets as elements, a block at a time: which of them count, and which share a constant."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.types import FloatArray

IntArray: TypeAlias = NDArray[np.intp]
Which: TypeAlias = slice | IntArray
Piece: TypeAlias = tuple[slice, NDArray[Any], FloatArray]
"""Which examples; the elements looked at, shape (B, e) or (B, e, D); their weights, (B, e)."""

BLOCK = 2**20
"""Numbers that are looked at together: 8 MiB of float64."""

ALL = slice(None)


@dataclass(frozen=True, eq=False)
class Elements:
    """Targets cut into elements: numbers, labels, or vectors along an axis.

    Attributes
    ----------
    array : ndarray, shape (examples, ...)
        Not copied; a memory-mapped file stays one.
    argument : str
        What to call it in messages.
    axis : int, optional
        Where channels, or the components of vectors, are.
    vectors : bool
        Whether an element is the vector along ``axis``.
    ignore : object
        What marks an element without target: a value, NaN, or a mask.
    counts : ndarray, shape (examples,)
        Elements of each example that count.
    by_pixel : bool
        Whether each element has the same weight, whatever its example.
    """

    array: NDArray[Any]
    argument: str
    axis: int | None = None
    vectors: bool = False
    ignore: Any = None
    by_pixel: bool = False
    numbers: bool = True
    counts: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the elements of an example."""
        inner = list(self.array.shape[1:])
        if self.vectors and self.axis is not None:
            inner.pop(self.axis - 1)
        return tuple(inner)

    @property
    def size(self) -> int:
        """Elements in an example."""
        return math.prod(self.shape)

    @property
    def dimension(self) -> int:
        """Components of a vector."""
        return self.array.shape[self.axis] if self.vectors and self.axis is not None else 1

    @property
    def example_weights(self) -> FloatArray:
        """What each example counts in the risk: the same, or as many as its elements are."""
        used = self.counts > 0
        return np.where(self.by_pixel, self.counts, used).astype(np.float64)

    def cells(self, per: str) -> tuple[IntArray, int]:
        """Which constant each element is compared with, and how many constants there are."""
        if per == "pixel":
            return np.arange(self.size), self.size
        if per == "all" or self.vectors or self.axis is None:
            return np.zeros(self.size, dtype=np.intp), 1
        inner = self.axis - 1
        channel = np.arange(self.shape[inner]).reshape([-1] + [1] * (len(self.shape) - inner - 1))
        return np.broadcast_to(channel, self.shape).ravel(), self.shape[inner]

    def raw(self, which: Which = ALL) -> Iterator[tuple[slice, NDArray[Any], NDArray[np.bool_]]]:
        """Blocks of examples: their elements, and which of them count."""
        size = self.size if isinstance(which, slice) and which == ALL else _length(which, self.size)
        step = max(1, BLOCK // max(1, size * self.dimension))
        for start in range(0, len(self.array), step):
            rows = slice(start, min(start + step, len(self.array)))
            values = self._read(self.array[rows], which)
            if self.numbers:
                values = values.astype(np.float64)
            yield rows, values, self._valid(values, rows, which)

    def _read(self, block: NDArray[Any], which: Which) -> NDArray[Any]:
        if self.vectors and self.axis is not None:
            block = np.moveaxis(block, self.axis, -1)
            return block.reshape(len(block), self.size, self.dimension)[:, which]
        return block.reshape(len(block), self.size)[:, which]

    def _valid(self, values: NDArray[Any], rows: slice, which: Which) -> NDArray[np.bool_]:
        if isinstance(self.ignore, np.ndarray):
            mask = self.ignore[rows]
            if not self.vectors and mask.ndim < self.array.ndim and self.axis is not None:
                mask = np.broadcast_to(np.expand_dims(mask, self.axis), self.array[rows].shape)
            return ~mask.reshape(len(mask), self.size)[:, which]
        if self.ignore is None:
            return np.ones(values.shape[:2], dtype=np.bool_)
        if isinstance(self.ignore, float) and math.isnan(self.ignore):
            left = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, bool)
            return np.asarray(~left.any(axis=2) if self.vectors else ~left)
        left = values == self.ignore
        return np.asarray(~left.all(axis=2) if self.vectors else ~left)

    def pieces(self, which: Which = ALL) -> Iterator[Piece]:
        """Blocks with the weight of each element in the risk; 0, and 0 its weight, if it is none.

        Weights add up to the number of examples, or of elements if each counts the same.
        """
        share = self.example_weights / np.maximum(self.counts, 1)
        for rows, values, valid in self.raw(which):
            weight = valid * share[rows, None]
            if self.numbers and not valid.all():
                values[~valid] = 0.0
            yield rows, values, weight

    def gather(self, which: Which) -> tuple[FloatArray, FloatArray]:
        """Some elements of all examples at once, with their weights."""
        parts = list(self.pieces(which))
        return np.concatenate([p[1] for p in parts]), np.concatenate([p[2] for p in parts])

    def totals(self, of: Callable[[NDArray[Any]], FloatArray] | None = None) -> FloatArray:
        """Weighted sum over examples of each element, or of a function of it."""
        total: FloatArray | float = 0.0
        for _, values, weight in self.pieces():
            what = values if of is None else of(values)
            total = total + (np.einsum("be,be...->e...", weight, what))
        return np.asarray(total, dtype=np.float64)

    @property
    def equal(self) -> bool:
        """Whether all elements that count have the same weight."""
        used = self.counts[self.counts > 0]
        return self.by_pixel or bool((used == used[0]).all())


def _length(which: Which, size: int) -> int:
    return len(range(*which.indices(size))) if isinstance(which, slice) else len(which)


def blocks_of(size: int, each: int) -> Iterator[slice]:
    """Slices that cover a number of elements, each small enough to hold ``each`` of its numbers."""
    step = max(1, BLOCK // max(1, each))
    for start in range(0, size, step):
        yield slice(start, min(start + step, size))


def as_targets(given: Any, argument: str, *, numbers: bool) -> NDArray[Any]:
    """An array with an example in each row; text only where labels are asked for."""
    if np.ma.isMaskedArray(given) and np.ma.getmaskarray(given).any():
        raise InputError(f"{argument} is a masked array: pass its data, and its mask as ignore=.")
    try:
        array = np.asanyarray(given)
    except ValueError as error:
        raise InputError(
            f"{argument} must be an array with a row for each example: {error}."
        ) from None
    if array.dtype.kind == "O":
        array = _from_objects(array, argument)
    if array.ndim == 0:
        raise InputError(
            f"{argument}={given!r} is a single value: give the target of each example."
        )
    if array.size == 0:
        raise InputError(f"{argument} is empty, of shape {array.shape}: give at least one target.")
    if array.dtype.kind not in ("biuf" if numbers else "biufUS"):
        raise InputError(
            f"{argument} holds {array.dtype} values such as {array.flat[0]!r}: this loss needs "
            "numbers. For class names use loss='error' or loss='cross-entropy'."
        )
    return np.asanyarray(array)


def _from_objects(array: NDArray[Any], argument: str) -> NDArray[Any]:
    if all(isinstance(v, str) for v in array.flat):
        return np.asarray(array, dtype=np.str_)
    try:
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        kinds = ", ".join(sorted({type(v).__name__ for v in array.flat}))
        raise InputError(f"{argument} mixes {kinds}: give numbers, or text throughout.") from None
