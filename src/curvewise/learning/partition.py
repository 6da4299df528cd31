"""Subsets of a training set, several of each size: what a learning curve is measured on."""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.learning._allocation import IntArray, draw_subsets, put_smaller_first
from curvewise.learning._partition_inputs import (
    class_codes,
    entropy_of,
    example_counts,
    fold_counts,
)
from curvewise.types import data_frame

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Subset:
    """One training subset.

    Attributes
    ----------
    n : int
        How many examples it holds, over all classes.
    fold : int
        Its number among the subsets of this size, from 0.
    indices : ndarray of int, shape (n,)
        Positions in the training set, in random order.
    """

    n: int
    fold: int
    indices: IntArray


@dataclass(frozen=True, eq=False)
class Partition:
    """The subsets that :func:`partition_training_set` made, in the order of the sizes asked for.

    Attributes
    ----------
    subsets : tuple of Subset
        Size by size, fold by fold.
    total : int
        How many examples the training set holds.
    nested : bool
        Whether smaller subsets lie inside larger ones.
    warnings : tuple of str
        Where subsets share examples, or lack classes.
    """

    subsets: tuple[Subset, ...]
    total: int
    nested: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes in examples, in the order asked for."""
        return tuple(dict.fromkeys(s.n for s in self.subsets))

    @property
    def folds(self) -> tuple[int, ...]:
        """How many subsets there are of each size."""
        return tuple(len(self.at(n)) for n in self.sizes)

    def at(self, n: int) -> tuple[Subset, ...]:
        """Give the subsets of one size."""
        return tuple(s for s in self.subsets if s.n == n)

    def __iter__(self) -> Iterator[Subset]:
        return iter(self.subsets)

    def __len__(self) -> int:
        return len(self.subsets)

    def frame(self) -> pd.DataFrame:
        """One row per subset and example: n, fold, index."""
        repeats = [s.n for s in self.subsets]
        return data_frame(
            {
                "n": np.repeat(repeats, repeats),
                "fold": np.repeat([s.fold for s in self.subsets], repeats),
                "index": np.concatenate([s.indices for s in self.subsets]),
            }
        )


def partition_training_set(
    labels_or_count: ArrayLike | int,
    sizes: Sequence[float] | NDArray[Any],
    folds: Sequence[int] | int | None = None,
    *,
    nested: bool = False,
    stratify: bool = True,
    per_class: bool = False,
    rng: int | np.random.Generator = 0,
) -> Partition:
    """Draw several training subsets of each size.

    Subsets of one size do not overlap as long as ``folds × size`` examples are there. Where more
    are asked for, all examples of a class are used up, then shuffled and dealt again, so that they
    are shared as little as possible; the result's warnings say so.

    With ``nested``, fold j of a size lies inside fold ``j mod folds`` of the next larger size, and
    its examples stand first in fold j's ``indices``: the subsets of a fold are prefixes of one
    stratified permutation. Folds inside the same larger subset are disjoint as long as they fit.

    Stratified class counts are proportional, rounded so that each subset has exactly n examples.
    Every class gets at least one when ``n >= classes``; with fewer examples, as many different
    classes as possible, chosen at random. Disjointness comes first: a class with fewer examples
    than folds is missing in some of them, and the warnings say so.

    Parameters
    ----------
    labels_or_count : array-like, shape (examples,), or int
        Class labels; or the number of examples, with ``stratify=False``.
    sizes : sequence of int or of float
        Whole numbers are examples; numbers up to 1.0 are fractions of the training set, rounded
        down. With ``per_class``, both are per class (fractions: of the smallest class).
    folds : int or sequence of int, optional
        How many subsets of each size. By default as many as fit without overlap, at most 16.
    nested : bool
        Whether smaller subsets lie inside larger ones.
    stratify : bool
        Whether the classes keep their proportions.
    per_class : bool
        Whether each class gets exactly the size asked for; ``Subset.n`` is then classes × size.
    rng : int or numpy.random.Generator
        Fully determines the result. Without ``nested``, a seed gives the same subsets of a size
        whatever the other sizes are.

    Returns
    -------
    Partition
        Iterates over its :class:`Subset` items.

    Raises
    ------
    InputError
        If a size is not there to be drawn, or the arguments contradict each other.

    Examples
    --------
    >>> labels = [0, 1] * 200
    >>> parts = partition_training_set(labels, sizes=[25, 50, 100, 200, 400])
    >>> parts.folds
    (16, 8, 4, 2, 1)
    >>> [sum(labels[i] for i in s.indices) for s in parts.at(50)]
    [25, 25, 25, 25, 25, 25, 25, 25]
    >>> partition_training_set(labels, sizes=[0.2, 0.4, 0.8], folds=[4, 2, 1], nested=True).sizes
    (80, 160, 320)
    """
    codes, classes = class_codes(labels_or_count, stratify, per_class)
    members = np.bincount(codes)
    available, there_are = len(codes), "there are"
    if per_class:
        available = int(members.min())
        there_are = f"the smallest class ({classes[members.argmin()]!r}) has"
    counts = example_counts(sizes, available, there_are)
    how_many = fold_counts(folds, counts, available)
    entropy = entropy_of(rng)
    indices: dict[int, list[IntArray]] = {}
    parents = [np.arange(len(codes), dtype=np.int64)]
    for n, k in sorted(zip(counts, how_many, strict=True), reverse=True):
        generator = np.random.default_rng([entropy, n])
        indices[n] = draw_subsets(codes, parents, n, k, per_class, generator)
        parents = indices[n] if nested else parents
    if nested:
        put_smaller_first(indices)
    notes = tuple(w for n in counts for w in _notes(indices[n], codes))
    for note in notes:
        python_warnings.warn(note, CurvewiseWarning, stacklevel=2)
    subsets = [Subset(len(i), fold, i) for n in counts for fold, i in enumerate(indices[n])]
    return Partition(tuple(subsets), len(codes), nested, notes)


def geometric_sizes(
    total: int, count: int = 5, ratio: float = 2.0, *, minimum: int = 1
) -> tuple[int, ...]:
    """Training-set sizes in a geometric series that ends with all examples.

    Parameters
    ----------
    total : int
        How many examples there are.
    count : int
        How many sizes.
    ratio : float
        Each size is this many times the one before, rounded down.
    minimum : int
        Smaller sizes are left out, so that fewer than ``count`` may come back.

    Returns
    -------
    tuple of int
        From small to large; the last is ``total``.

    Examples
    --------
    >>> geometric_sizes(1600)
    (100, 200, 400, 800, 1600)
    >>> geometric_sizes(100, count=8, minimum=10)
    (12, 25, 50, 100)
    """
    if count < 1 or not ratio > 1 or minimum < 1:
        raise InputError(
            f"count={count}, ratio={ratio:g}, minimum={minimum}: count and minimum must be at "
            "least 1 and ratio larger than 1."
        )
    if total < minimum:
        raise InputError(f"total={total} is less than minimum={minimum}: there is no such size.")
    series = {int(total / ratio**power * (1 + 1e-12)) for power in range(count)}
    return tuple(sorted(n for n in series if n >= minimum))


def _notes(subsets: list[IntArray], codes: IntArray) -> Iterator[str]:
    """Say what a reader should know about the subsets of one size."""
    n, classes = len(subsets[0]), int(codes.max()) + 1
    uses = np.bincount(np.concatenate(subsets), minlength=len(codes))
    if uses.max() > 1:
        yield (
            f"n={n}: the {len(subsets)} subsets share examples, {int((uses > 1).sum())} of "
            f"{len(codes)} are used up to {int(uses.max())} times, so these runs are not "
            "independent; fewer folds avoid it."
        )
    lacking = [s for s in subsets if len(np.unique(codes[s])) < classes]
    if n < classes:
        yield f"n={n} is less than the {classes} classes, so every subset lacks some."
    elif lacking:
        yield (
            f"n={n}: {len(lacking)} of {len(subsets)} subsets lack a class that has fewer examples "
            "than there are folds; fewer folds avoid it."
        )
