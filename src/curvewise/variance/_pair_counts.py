"""How often every two examples fail in the same run, tile by tile.

With numba (the extra ``fast``) the bits that two examples share are counted word by word; without
it the errors are unpacked and multiplied as matrices, which takes about ten times as long.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.variance._bits import WordArray

CountTile: TypeAlias = NDArray[np.int32]
# Adds to counts (tile, tile) the pairs of examples from i0 and from j0 on.
Kernel: TypeAlias = Callable[[WordArray, int, int, CountTile], None]

TILE = 256  # examples along a side, by which 60,000 runs of a tile just fit the L2 cache
PLAIN_TILE = 1024  # the same without numba, where unpacking costs less in larger tiles
WORDS = 1024  # words of 64 runs at a time: eight examples of them fill 64 KB of cache
PLAIN_WORDS = 32  # the same without numba, where each run becomes four bytes


def iter_pair_counts(
    columns: WordArray, tile: int | None = None
) -> Iterator[tuple[int, int, CountTile]]:
    """Yield counts of common errors for all pairs of examples, a tile at a time.

    Parameters
    ----------
    columns : ndarray of uint64, shape (n, words)
        Errors of each example packed along runs, as ``column_pack`` makes them.
    tile : int, optional
        Examples along each side of a tile; by default what is fastest.

    Yields
    ------
    i0, j0 : int
        First examples of the tile, ``i0 <= j0``.
    counts : ndarray of int32, shape (up to tile, up to tile)
        ``counts[a, b]`` runs in which both ``i0 + a`` and ``j0 + b`` fail. Tiles on the diagonal
        are symmetric, and their diagonal holds each example's own errors.
    """
    if columns.dtype != np.uint64 or columns.ndim != 2:
        raise InputError(
            f"columns is an array of {columns.dtype} of shape {columns.shape}: pass uint64 of "
            "shape (examples, words), as column_pack makes it."
        )
    columns = np.ascontiguousarray(columns)
    kernel = _kernel()
    tile = _side(kernel, tile)
    n, side = len(columns), -(-tile // 4) * 4
    for i0 in range(0, n, tile):
        for j0 in range(i0, n, tile):
            counts = np.zeros((side, side), dtype=np.int32)
            kernel(columns, i0, j0, counts)
            yield i0, j0, counts[: min(tile, n - i0), : min(tile, n - j0)]


def estimate_seconds(n: int, runs: int, tile: int | None = None) -> float:
    """Estimate how long :func:`iter_pair_counts` will take, from a small part measured now.

    Parameters
    ----------
    n, runs : int
        Numbers of examples and of runs.
    tile : int, optional
        As it will be passed.

    Returns
    -------
    float
        Seconds on the clock, without the half second that numba compiles once in a process.
    """
    if n < 1 or runs < 1:
        raise InputError(f"n={n}, runs={runs}: at least 1 example and 1 run are needed.")
    kernel, words = _kernel(), -(-runs // 64)
    side = -(-min(_side(kernel, tile), n) // 4) * 4
    sample = np.zeros((2 * side, min(words, WORDS // 8)), dtype=np.uint64)
    counts = np.zeros((side, side), dtype=np.int32)
    kernel(sample[:1], 0, 0, np.zeros((4, 4), dtype=np.int32))  # compiles
    clock = []
    for _ in range(3):
        start = time.perf_counter()
        kernel(sample, 0, side, counts)
        clock.append(time.perf_counter() - start)
    tiles = n / side * (n / side + 1) / 2
    return float(min(clock) * tiles * words / sample.shape[1])


def _side(kernel: Kernel, tile: int | None) -> int:
    if tile is None:
        return PLAIN_TILE if kernel is _plain_kernel else TILE
    if tile < 1:
        raise InputError(f"tile={tile}: at least 1 example is needed along a side.")
    return tile


@cache
def _kernel() -> Kernel:
    """The fastest kernel that the installed packages allow."""
    try:
        numba = importlib.import_module("numba")
        importlib.import_module("llvmlite")
    except ImportError:
        return _plain_kernel
    return _compiled_kernel(numba)


def _plain_kernel(columns: WordArray, i0: int, j0: int, counts: CountTile) -> None:
    """Multiply matrices of zeros and ones; below 2^24 single precision is exact."""
    side = len(counts)
    for start in range(0, columns.shape[1], PLAIN_WORDS):
        part = columns[:, start : start + PLAIN_WORDS]
        left = _unpacked(part[i0 : i0 + side])
        right = left if i0 == j0 else _unpacked(part[j0 : j0 + side])
        counts[: len(left), : len(right)] += (left @ right.T).astype(np.int32)


def _unpacked(columns: WordArray) -> NDArray[np.float32]:
    by_byte = np.ascontiguousarray(columns).view(np.uint8)
    return np.unpackbits(by_byte, axis=1).astype(np.float32)


def _compiled_kernel(numba: Any) -> Kernel:
    """Compile a kernel that goes through a tile in squares of 4 x 4 pairs."""
    square = _compiled_square(numba)

    @numba.njit(nogil=True)  # type: ignore[untyped-decorator]
    def kernel(columns: WordArray, i0: int, j0: int, counts: CountTile) -> None:
        n, words = columns.shape
        for start in range(0, words, WORDS):
            stop = min(start + WORDS, words)
            for i in range(0, min(len(counts), n - i0), 4):
                for j in range(0, min(len(counts), n - j0), 4):
                    sums = square(columns, i0 + i, j0 + j, start, stop)
                    for a in range(4):
                        for b in range(4):
                            counts[i + a, j + b] += sums[a][b]

    compiled: Kernel = kernel
    return compiled


def _compiled_square(numba: Any) -> Any:
    """Compile the count of 4 x 4 pairs, for which a word once read serves four pairs."""
    popcount = _popcount(numba)
    zero = np.uint64(0)

    @numba.njit(inline="always")  # type: ignore[untyped-decorator]
    def four_rows(columns: Any, i: int) -> Any:
        last = len(columns) - 1  # it stands in for examples beyond it, whose counts nobody reads
        second, third, fourth = min(i + 1, last), min(i + 2, last), min(i + 3, last)
        return columns[i], columns[second], columns[third], columns[fourth]

    @numba.njit(inline="always")  # type: ignore[untyped-decorator]
    def add(s: Any, x: Any, y: Any) -> Any:
        s0, s1 = s[0] + popcount(x & y[0]), s[1] + popcount(x & y[1])
        s2, s3 = s[2] + popcount(x & y[2]), s[3] + popcount(x & y[3])
        return s0, s1, s2, s3

    @numba.njit(nogil=True)  # type: ignore[untyped-decorator]
    def square(columns: Any, i: int, j: int, start: int, stop: int) -> Any:
        a, b = four_rows(columns, i), four_rows(columns, j)
        s0 = s1 = s2 = s3 = (zero, zero, zero, zero)
        for w in range(np.uint64(start), np.uint64(stop)):  # unsigned, or it does not vectorise
            y = (b[0][w], b[1][w], b[2][w], b[3][w])
            s0, s1 = add(s0, a[0][w], y), add(s1, a[1][w], y)
            s2, s3 = add(s2, a[2][w], y), add(s3, a[3][w], y)
        return s0, s1, s2, s3

    return square


def _popcount(numba: Any) -> Any:
    """The processor's instruction that counts bits, which numba does not offer by itself."""
    word = numba.types.uint64

    @numba.extending.intrinsic  # type: ignore[untyped-decorator]
    def popcount(typing_context: Any, x: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.ctpop(arguments[0])

        return word(word), generate

    return popcount
