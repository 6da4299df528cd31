"""Subsets of a training set, several of each size: what a learning curve is measured on."""

from __future__ import annotations

import math
import re
import warnings as python_warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import CurvewiseWarning, InputError, arg
from curvewise.text import format_count
from curvewise.types.results import FloatArray, check_labelled, check_whole, data_frame

if TYPE_CHECKING:
    import pandas as pd


IntArray: TypeAlias = NDArray[np.int64]


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
    held : int
        How many examples of each class are meant to validate on; ``n`` counts them.
    """

    n: int
    fold: int
    indices: IntArray
    held: int = 0


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
        """Number of subsets of each size."""
        return tuple(len(self.at(n)) for n in self.sizes)

    def at(self, n: int) -> tuple[Subset, ...]:
        """Return the subsets of one size."""
        return tuple(s for s in self.subsets if s.n == n)

    def __iter__(self) -> Iterator[Subset]:
        return iter(self.subsets)

    def __len__(self) -> int:
        return len(self.subsets)

    def frame(self) -> pd.DataFrame:
        """One row per subset and example: n, fold, index."""
        n = [s.n for s in self.subsets]
        fold, index = np.repeat([s.fold for s in self.subsets], n), np.concatenate([s.indices for s in self.subsets])
        return data_frame({"n": np.repeat(n, n), "fold": fold, "index": index})


def partition_training_set(
    labels_or_count: ArrayLike | int,
    sizes: Sequence[float | str] | NDArray[Any],
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
    sizes : sequence of int, of float, or of str
        Whole numbers are examples; numbers up to 1.0 are fractions of the training set, rounded
        down. With ``per_class``, both are per class (fractions: of the smallest class). Beside
        either, ``"3/class"`` is exactly 3 examples of each class, and ``"3/class + 1/class"`` or
        ``"18 + 1/class"`` adds one of each to validate on.
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
    >>> partition_training_set(labels, sizes=["3/class", 0.25, 1.0], folds=1).sizes
    (6, 100, 400)
    """
    codes, classes = class_codes(labels_or_count, stratify, per_class)
    amounts = _amounts(sizes, codes, classes, stratify, per_class)
    counts = [amount.total for amount in amounts]
    if len(set(counts)) < len(counts):
        raise InputError(f"names a size twice: in examples it is {counts}.", argument="sizes", value=sizes)
    how_many = fold_counts(folds, [amount.fits for amount in amounts])
    entropy = entropy_of(rng)
    indices: dict[int, list[IntArray]] = {}
    parents = [np.arange(len(codes), dtype=np.int64)]
    for amount, k in sorted(zip(amounts, how_many, strict=True), key=lambda pair: -pair[0].total):
        generator = np.random.default_rng([entropy, amount.count])
        _check_room(codes, classes, parents[:k], amount)
        indices[amount.total] = draw_subsets(codes, parents, amount, k, generator)
        parents = indices[amount.total] if nested else parents
    # Each nested subset begins with its own fold of the next smaller size.
    for small, large in pairwise(sorted(indices)) if nested else ():
        for fold, first in enumerate(indices[small][: len(indices[large])]):
            rest = indices[large][fold]
            indices[large][fold] = np.concatenate([first, rest[~np.isin(rest, first)]])
    for n, subsets_of_n in indices.items():
        assert all(len(s) == n == len(np.unique(s)) for s in subsets_of_n), f"a subset of {n} holds an example twice"
    notes = tuple(w for n in counts for w in _notes(indices[n], codes))
    for note in notes:
        python_warnings.warn(note, CurvewiseWarning, stacklevel=2)
    subsets = [Subset(len(i), fold, i, a.held) for a in amounts for fold, i in enumerate(indices[a.total])]
    return Partition(tuple(subsets), len(codes), nested, notes)


def geometric_sizes(total: int, count: int = 5, ratio: float = 2.0, *, minimum: int = 1) -> tuple[int, ...]:
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
    count, minimum = check_whole(count, "count", 1), check_whole(minimum, "minimum", 1)
    if not ratio > 1:
        raise InputError("must be larger than 1.", argument="ratio", value=ratio)
    if total < minimum:
        problem = f"is less than {arg('minimum', minimum)}: there is no such size."
        raise InputError(problem, argument="total", value=total)
    series = {int(total / ratio**power * (1 + 1e-12)) for power in range(count)}
    return tuple(sorted(n for n in series if n >= minimum))


def _notes(subsets: list[IntArray], codes: IntArray) -> Iterator[str]:
    """Warn of subsets of one size that share examples or lack classes."""
    n, classes = len(subsets[0]), int(codes.max()) + 1
    uses = np.bincount(np.concatenate(subsets), minlength=len(codes))
    if uses.max() > 1:
        yield (
            f"n={n}: the {len(subsets)} subsets share examples, {int((uses > 1).sum())} of "
            f"{len(codes)} are used up to {int(uses.max())} times, so these runs are not "
            f"independent; without sharing, at most {len(codes) // n} fit at this size."
        )
    lacking = [s for s in subsets if len(np.unique(codes[s])) < classes]
    if n < classes:
        yield f"n={n} is less than the {classes} classes, so every subset lacks some."
    elif lacking:
        yield (
            f"n={n}: {len(lacking)} of {len(subsets)} subsets lack a class that has fewer examples "
            "than there are folds; fewer folds avoid it."
        )


# Check what :func:`partition_training_set` is given and turn it into whole numbers.

MOST_FOLDS = 16  # more subsets than this of one size cost training time and say little more


def class_codes(labels_or_count: ArrayLike | int, stratify: bool, per_class: bool) -> tuple[IntArray, list[Any]]:
    """Turn labels into class numbers from 0 and class names; one class where they do not matter."""
    if per_class and not stratify:
        raise InputError(f"needs the classes: leave {arg('stratify', True)}.", argument="per_class", value=True)
    if isinstance(labels_or_count, int | np.integer) and not isinstance(labels_or_count, bool):
        if stratify:
            raise InputError(
                f"is a count, which has no classes: pass the labels, or {arg('stratify', False)}.",
                argument="labels_or_count",
                value=labels_or_count,
            )
        if labels_or_count < 1:
            raise InputError("at least 1 example is needed.", argument="labels_or_count", value=labels_or_count)
        return np.zeros(int(labels_or_count), dtype=np.int64), ["all"]
    labels = np.asarray(labels_or_count)
    if labels.ndim != 1 or labels.size == 0:
        raise InputError(
            f"has shape {labels.shape}: pass one label per example, or a count.", argument="labels_or_count"
        )
    return _label_codes(labels) if stratify else (np.zeros(len(labels), dtype=np.int64), ["all"])


def _label_codes(labels: NDArray[Any]) -> tuple[IntArray, list[Any]]:
    values = labels.tolist() if labels.dtype.kind in "fOM" else []
    missing = np.array([v is None or (not isinstance(v, str) and str(v) in {"nan", "NaT", "<NA>"}) for v in values])
    if missing.any():
        raise InputError(
            f"holds {format_count(int(missing.sum()), 'missing label')}, the first at position"
            f" {int(missing.argmax())}: drop these examples or give them a class.",
            argument="labels_or_count",
        )
    if labels.dtype.kind == "f" and np.any(labels != np.round(labels)):
        raise InputError(
            f"holds numbers that are not whole, which are no classes: pass {arg('stratify', False)} for a continuous"
            " target.",
            argument="labels_or_count",
        )
    check_labelled(labels, "labels_or_count")
    try:
        names, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        problem = "mixes labels that cannot be compared, such as numbers and strings: use one type."
        raise InputError(problem, argument="labels_or_count") from error
    return codes.astype(np.int64), names.tolist()


@dataclass(frozen=True)
class Amount:
    """A size as it was asked for: so many examples, or so many of each class, and some of each to validate on."""

    count: int
    per_class: bool
    held: int
    total: int
    fits: int


# "3/class", "3/class + 1/class" or "18 + 1/class"
_PER_CLASS = re.compile(r"(\d+)(/class)?(?:\s*\+\s*(\d+)/class)?")


def read_size(size: str) -> tuple[int, bool, int] | None:
    """Read a size written with classes: its number, whether it is per class, and how many of each to validate on.

    >>> read_size("3/class"), read_size("18 + 1/class"), read_size("18")
    ((3, True, 0), (18, False, 1), None)
    """
    found = _PER_CLASS.fullmatch(size.strip())
    if found is None or found[2] is None is found[3] or not int(found[1]) or found[3] == "0":
        return None
    return int(found[1]), found[2] is not None, int(found[3] or 0)


def _amounts(
    sizes: Sequence[float | str] | NDArray[Any], codes: IntArray, classes: list[Any], stratify: bool, per_class: bool
) -> list[Amount]:
    """Turn sizes into checked numbers of examples, in the order given."""
    values = list(sizes) if np.ndim(sizes) else [sizes.item() if isinstance(sizes, np.ndarray) else sizes]
    members = np.bincount(codes)
    least, smallest = int(members.min()), f"the smallest class ({classes[members.argmin()]!r}) has"
    plain = [v for v in values if not isinstance(v, str)]
    available, there_are = (least, smallest) if per_class else (len(codes), "there are")
    numbers = iter(_example_counts(plain, available, there_are, sizes) if plain or not values else [])
    found = []
    for value in values:
        if not isinstance(value, str):
            count, each, held = next(numbers), per_class, 0
        elif (read := read_size(value)) is None:
            ways = "pass whole numbers or fractions, or write '3/class', '3/class + 1/class' or '18 + 1/class'"
            problem = f"holds {value!r}: {ways}."
            raise InputError(problem, argument="sizes")
        elif per_class or not stratify:
            remedy = f"leave {arg('per_class', False)}" if per_class else f"leave {arg('stratify', True)}"
            raise InputError(f"holds {value!r}, which counts examples of a class: {remedy}.", argument="sizes")
        else:
            count, each, held = read
        need, total = (count if each else 0) + held, (count * len(classes) if each else count) + held * len(classes)
        if isinstance(value, str) and (need > least or total > len(codes)):
            seen = f"{smallest} {least}" if need > least else f"there are only {format_count(len(codes), 'example')}"
            raise InputError(f"holds {value!r}, and {seen}: ask for fewer.", argument="sizes")
        fits = min(len(codes) // total, least // need if need else len(codes))
        found.append(Amount(count, each, held, total, fits))
    return found


def _example_counts(values: list[Any], available: int, there_are: str, sizes: Any) -> list[int]:
    """Turn numbers and fractions into checked numbers of examples."""
    numbers = [isinstance(v, Real) and not isinstance(v, bool | np.bool_) for v in values]
    if not values or not all(numbers) or not all(math.isfinite(v) for v in values):
        raise InputError("pass whole numbers or fractions, at least one.", argument="sizes", value=sizes)
    fractions = all(not isinstance(v, Integral) and v <= 1 for v in values)
    if not fractions and any(v != int(v) for v in values):
        raise InputError(
            "mixes fractions and numbers of examples: pass only one kind (all of the data is 1.0 as a fraction).",
            argument="sizes",
            value=sizes,
        )
    # 0.29 * 100 is 28.999999999999996
    counts = [int(round(v * available, 6)) if fractions else int(v) for v in values]
    for value, n in zip(values, counts, strict=True):
        if not 1 <= n <= available:
            problem = f"holds {value:g}, which is {format_count(n, 'example')} while {there_are} {available}:"
            raise InputError(f"{problem} a size must lie between 1 and that.", argument="sizes")
    return counts


def fold_counts(folds: Sequence[int] | int | None, fits: list[int]) -> list[int]:
    """Return the number of subsets of each size: by default as many as fit."""
    if folds is None:
        return [min(MOST_FOLDS, most) for most in fits]
    given = list(np.atleast_1d(np.asarray(folds, dtype=object)))
    given = given * len(fits) if np.ndim(folds) == 0 else given
    if len(given) != len(fits):
        problem = f"has {format_count(len(given), 'value')} and sizes has {len(fits)}:"
        raise InputError(f"{problem} pass one number for each size, or a single number.", argument="folds")
    if any(isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1 for k in given):
        raise InputError("each must be a whole number of at least 1.", argument="folds", value=folds)
    return [int(k) for k in given]


def entropy_of(rng: int | np.random.Generator) -> int:
    """Turn a seed or a Generator into one whole number."""
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    if not isinstance(rng, int | np.integer) or isinstance(rng, bool) or rng < 0:
        raise InputError("pass a seed of at least 0 or a numpy.random.Generator.", argument="rng", value=rng)
    return int(rng)


def _check_room(codes: IntArray, classes: list[Any], parents: list[IntArray], amount: Amount) -> None:
    """Refuse to nest a size with classes in a subset that has too few examples of one."""
    need = (amount.count if amount.per_class else 0) + amount.held
    for parent in parents:
        members = np.bincount(codes[parent], minlength=len(classes))
        if members.min() < need:
            few = int(members.argmin())
            held = f"{amount.held}/class" if amount.held else ""
            requested = " + ".join(filter(None, (f"{amount.count}{'/class' if amount.per_class else ''}", held)))
            problem = (
                f"holds {requested!r}, which cannot lie inside the size {len(parent)}: a subset of that has "
                f"{format_count(int(members[few]), 'example')} of the class {classes[few]!r}, and {need} are needed."
            )
            remedy = f"Ask for fewer of each class or for more than {len(parent)}, or leave {arg('nested', False)}."
            raise InputError(problem, argument="sizes", remedy=remedy)


def draw_subsets(
    codes: IntArray, parents: list[IntArray], amount: Amount, folds: int, rng: np.random.Generator
) -> list[IntArray]:
    """Draw fold j out of parent ``j mod parents``."""
    subsets: dict[int, IntArray] = {}
    weights = np.bincount(codes)
    for i, parent in enumerate(parents):
        children = range(i, folds, len(parents))
        if not children:
            continue
        of_class = codes[parent]
        ends = np.cumsum(np.bincount(of_class, minlength=len(weights)))[:-1]
        pools = np.split(parent[np.argsort(of_class, kind="stable")], ends)
        if amount.per_class:
            counts = np.full((len(children), len(pools)), amount.count, dtype=np.int64)
        else:
            members, n = np.array([len(p) for p in pools], dtype=np.int64), amount.count
            # What is to validate on is set aside; where subsets share examples anyway, only for one of them.
            rest = np.maximum(members - amount.held * len(children), 0)
            rest = rest if rest.sum() >= n * len(children) else members - amount.held
            counts = _allocate(weights, rest, n, len(children), rng)
        counts = counts + amount.held
        subsets.update(zip(children, _deal(pools, counts, rng), strict=True))
    return [subsets[fold] for fold in range(folds)]


def _allocate(weights: IntArray, members: IntArray, n: int, folds: int, rng: np.random.Generator) -> IntArray:
    """Decide how many examples each subset takes from each class, shape (folds, classes).

    Each entry is its class's target rounded down or up. The roundings up of a class go to different
    subsets, and no class is used up before its last subset unless examples must be shared anyway.
    """
    room = members * folds if folds * n > members.sum() else members
    target = _target(weights, room / folds, n)
    base = np.floor(target + 1e-7).astype(np.int64)
    extra = _largest_remainder(
        (target - base) * folds, folds * (n - int(base.sum())), np.minimum(folds, room - folds * base), rng
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


def _largest_remainder(share: FloatArray, total: int, most: IntArray, rng: np.random.Generator) -> IntArray:
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
