"""Who has the lower loss on each example: counted over pairs of runs, a block at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.types import FloatArray, Predictions, as_floats
from curvewise.types.predictions import BLOCK_BYTES

Losses: TypeAlias = "Predictions | FloatArray"
"""Losses of runs × examples, in memory or to be read in blocks."""

MANY_RUNS = 50
"""Of few examples, so many runs look like examples."""

Against: TypeAlias = Callable[[NDArray[Any], int], tuple[NDArray[Any], int]]
"""From a block of runs and the first one's index to twice their wins, and the number of ties."""


@dataclass(frozen=True, eq=False)
class Units:
    """What was sampled: examples, or groups of them. ``codes`` is None if each is its own."""

    sizes: FloatArray
    codes: NDArray[np.intp] | None = None

    def totals(self, rows: NDArray[Any]) -> FloatArray:
        """Sums of each row over every unit."""
        if self.codes is None:
            return rows.astype(np.float64)
        return np.array([np.bincount(self.codes, row, len(self.sizes)) for row in rows])


@dataclass(frozen=True, eq=False)
class Side:
    """Wins of the runs of one side, averaged over the runs of the other.

    Attributes
    ----------
    by_run : ndarray, shape (runs,)
        Share of examples that each run wins.
    by_unit : ndarray, shape (units,)
        Wins in each unit, averaged over runs.
    squares : float
        Sum over runs and units of the squared wins.
    ties : float
        Share of ties.
    """

    by_run: FloatArray
    by_unit: FloatArray
    squares: float
    ties: float


def as_losses(given: Any, argument: str) -> Losses:
    """Losses as runs × examples, or an error that names the argument."""
    if isinstance(given, Predictions):
        return given
    try:
        found = as_floats(given, argument)
    except InputError as failure:
        if not _ragged(given):
            raise
        raise InputError(
            f"{argument} has runs of unequal numbers of examples: every run must be measured on"
            " the same test examples."
        ) from failure
    found = found[None] if found.ndim == 1 else found
    if found.ndim != 2 or 0 in found.shape:
        raise InputError(
            f"{argument} has shape {found.shape}: give losses of one run, (examples,), or of"
            " several, (runs, examples); average repeats first."
        )
    missing = np.isnan(found)
    if missing.all():
        raise InputError(f"{argument} holds nothing but NaN: no run has finished.")
    bad = np.flatnonzero(missing.any(axis=1) & ~missing.all(axis=1))
    if len(bad):
        said = ", ".join(map(str, bad[:5])) + (" …" if len(bad) > 5 else "")
        raise InputError(
            f"{argument} holds NaN on some examples of run(s) {said}: give each a loss, infinite"
            " where it is too large for a number, or NaN on all examples of a run that failed."
        )
    return found


def finished(losses: Losses) -> NDArray[np.bool_]:
    """Which runs have losses: one that failed has NaN on every example."""
    if isinstance(losses, Predictions):
        return np.ones(shape_of(losses)[0], dtype=np.bool_)
    return ~np.isnan(losses[:, 0])


def without(losses: Losses, keep: NDArray[np.bool_]) -> Losses:
    """The runs to be kept; no copy where these are all."""
    if keep.all():
        return losses
    if isinstance(losses, Predictions):
        return losses.subset(runs=np.flatnonzero(keep))
    return losses[keep]


def shape_of(losses: Losses) -> tuple[int, int]:
    """Runs and examples."""
    runs, examples = losses.shape
    return int(runs), int(examples)


def check_pair(losses: Losses, scratch: Losses, names: tuple[str, str]) -> None:
    """Both must be measured on the same examples, in the same kind of loss."""
    (one, n), (two, m) = shape_of(losses), shape_of(scratch)
    if n != m:
        turned = " They look transposed: rows are runs." if one == two and one > 1 else ""
        raise InputError(
            f"{names[0]} has {n:,} examples and {names[1]} has {m:,}: compare them on the same"
            f" test examples, in the same order.{turned}"
        )
    arrays = not (isinstance(losses, Predictions) or isinstance(scratch, Predictions))
    if arrays and min(one, two) >= max(MANY_RUNS, 10 * n):
        raise InputError(
            f"{names[0]} has {one:,} runs on {n:,} examples: are they transposed? Rows are runs and"
            " columns are examples; turn the arrays over, or pass Predictions if it is so."
        )
    if n < 2:
        raise InputError(f"{names[0]} has one example: a share of examples needs two or more.")
    if not (isinstance(losses, Predictions) and isinstance(scratch, Predictions)):
        return
    if (losses.kind == "losses") != (scratch.kind == "losses"):
        raise InputError(
            f"{names[0]} is of kind {losses.kind!r} and {names[1]} of {scratch.kind!r}: pass the"
            " same."
        )
    for field, word in (("true_classes", "labels"), ("example_ids", "example_ids")):
        a, b = getattr(losses, field), getattr(scratch, field)
        if a is not None and b is not None and not np.array_equal(a, b):
            raise InputError(f"{names[0]} and {names[1]} have different {word}: are they one test?")


def as_units(groups: ArrayLike | None, losses: Losses, scratch: Losses) -> Units:
    """The groups given, or those that the predictions know of, or every example by itself."""
    examples = shape_of(losses)[1]
    for source in (losses, scratch):
        if groups is None and isinstance(source, Predictions):
            groups = source.groups
    if groups is None:
        return Units(np.ones(examples))
    found = np.asarray(groups)
    if found.shape != (examples,):
        raise InputError(f"groups has shape {found.shape}; there are {examples:,} examples.")
    missing = sum(g is None or g != g for g in found.tolist())
    if missing:
        raise InputError(
            f"groups has no value (NaN or None) for {missing} of {examples:,} examples: give each a"
            " group, its own if it is alone."
        )
    names, codes = np.unique(
        found.astype(np.str_) if found.dtype.kind == "O" else found, return_inverse=True
    )
    if len(names) < 2:
        raise InputError("groups puts all examples into one: nothing can be said of others.")
    return Units(np.bincount(codes).astype(np.float64), codes.reshape(-1))


def count_all(own: Losses, other: Losses, units: Units) -> Side:
    """Wins of the runs of ``own`` against every run of ``other``."""
    rivals = shape_of(other)[0]

    def against(block: NDArray[Any], start: int) -> tuple[NDArray[Any], int]:
        twice, ties = np.zeros(block.shape, dtype=np.int32), 0
        for _, rows in _blocks(other):
            for row in rows:
                won = _twice_won(block, row)
                twice += won
                ties += int(np.count_nonzero(won == 1))
        return twice, ties

    return _counted(own, units, against, rivals)


def count_pairs(own: Losses, other: Losses, units: Units) -> Side:
    """Wins of each run of ``own`` against the run of ``other`` that goes with it."""

    def against(block: NDArray[Any], start: int) -> tuple[NDArray[Any], int]:
        won = _twice_won(block, _rows(other, slice(start, start + len(block))))
        return won, int(np.count_nonzero(won == 1))

    return _counted(own, units, against, 1)


def repeats_a_run(losses: Losses) -> bool:
    """Whether two runs are the same on every example."""
    seen = {hashlib.sha256(row.tobytes()).digest() for _, rows in _blocks(losses) for row in rows}
    return len(seen) < shape_of(losses)[0]


def _counted(own: Losses, units: Units, against: Against, rivals: int) -> Side:
    runs, examples = shape_of(own)
    by_run, by_unit = np.zeros(runs), np.zeros(len(units.sizes))
    squares, ties = 0.0, 0
    for start, block in _blocks(own):
        twice, tied = against(block, start)
        totals = units.totals(twice) / (2 * rivals)
        by_run[start : start + len(block)] = totals.sum(axis=1) / examples
        by_unit += totals.sum(axis=0) / runs
        squares += float(np.vdot(totals, totals))
        ties += tied
    return Side(by_run, by_unit, squares, ties / (runs * rivals * examples))


def _twice_won(block: NDArray[Any], rival: NDArray[Any]) -> NDArray[np.int8]:
    """2 where the loss is lower, 1 where it is the same, 0 where it is higher."""
    won: NDArray[np.int8] = np.add(block < rival, block <= rival, dtype=np.int8)
    return won


def _blocks(losses: Losses) -> Iterator[tuple[int, NDArray[Any]]]:
    if isinstance(losses, Predictions):
        yield from losses.error_blocks()
        return
    step = max(1, BLOCK_BYTES // (8 * losses.shape[1]))
    for start in range(0, len(losses), step):
        yield start, losses[start : start + step]


def _rows(losses: Losses, rows: slice) -> NDArray[Any]:
    return losses.errors_of(rows) if isinstance(losses, Predictions) else losses[rows]


def _ragged(given: Any) -> bool:
    """Whether these are rows of unequal lengths."""
    try:
        return len({len(row) for row in given}) > 1
    except TypeError:
        return False
