"""Examples to train on and to test on: as a loader found them, and as studies take them."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import CurvewiseWarning, InputError, arg, brief, list_names, suggest
from curvewise.learning.partition import partition_training_set
from curvewise.store.record import data_digest
from curvewise.types.results import check_labelled

TARGETS = ("classes", "numbers")


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training examples, and test examples where they come apart.

    Attributes
    ----------
    x : ndarray
        Images, (examples, channels, height, width) of uint8; features, (examples, features) of
        float; or tokens, (examples, length) of integers.
    y : ndarray of int, shape (examples,); or of float
        Classes from 0 on. With ``targets="numbers"`` the numbers to predict: (examples,),
        (examples, k) or (examples, channels, height, width); one number for each example becomes a
        row of one.
    test_x, test_y : ndarray, optional
        The test set that belongs to the data. Without one, a study holds out a share of ``x``.
    classes : tuple of str
        Names of the classes.
    name : str
        What the data is called.
    padding : int, optional
        The token that stands for nothing, where x holds tokens.
    notes : tuple of str
        What was taken for what, and what was left out.
    targets : {"classes", "numbers"}
        What y holds.
    standardise : bool
        Whether a study subtracts from numbers their mean over what may be trained on, and divides
        by their standard deviation: each number of a row, or each channel of images, by itself.
        Losses and predictions are then on that scale.

    Examples
    --------
    >>> x, y = np.zeros((3, 1, 8, 8), dtype=np.uint8), np.zeros((3, 1, 8, 8))
    >>> Dataset(x, y, targets="numbers")
    Dataset('data': 3 examples, targets (1, 8, 8), inputs (1, 8, 8) uint8)
    """

    x: NDArray[Any]
    y: NDArray[Any]
    test_x: NDArray[Any] | None = None
    test_y: NDArray[Any] | None = None
    classes: tuple[str, ...] = ()
    name: str = "data"
    padding: int | None = None
    notes: tuple[str, ...] = field(default=())
    targets: str = "classes"
    standardise: bool = False

    def __post_init__(self) -> None:
        if self.targets not in TARGETS:
            raise InputError(f"targets={self.targets!r}: use one of {', '.join(TARGETS)}.")
        if (self.test_x is None) != (self.test_y is None):
            raise InputError("test_x and test_y belong together: give both or neither.")
        for name in ("x", "y", "test_x", "test_y"):
            if not isinstance(given := getattr(self, name), np.ndarray | None) or (
                given is None and name in ("x", "y")
            ):
                object.__setattr__(self, name, np.asarray(given))  # lists, frames, tensors
        if isinstance(self.classes, str):
            problem = "is one text: give a list with the name of each class."
            raise InputError(problem, argument="classes", value=self.classes)
        object.__setattr__(self, "classes", () if self.classes is None else tuple(map(str, self.classes)))
        parts = [("x", self.x, "y", self.y)]
        if self.test_x is not None and self.test_y is not None:
            parts.append(("test_x", self.test_x, "test_y", self.test_y))
            if self.test_x.shape[1:] != self.x.shape[1:]:
                there, here = self.test_x.shape[1:], self.x.shape[1:]
                problem = f"has inputs of shape {there}, x of {here}: bring both to one shape."
                raise InputError(problem, argument="test_x")
        for x_name, x, _, _ in parts:
            _check_inputs(x_name, x)
        if self.is_numbers:
            self._settle_numbers()
            return
        if self.standardise:
            raise InputError("is for numbers, and the targets are classes.", argument="standardise", value=True)
        for x_name, x, y_name, y in parts:
            if y.dtype.kind == "f" or y.ndim > 1:
                raise InputError(
                    f"holds {y.dtype} of shape {y.shape}, not class labels: say targets='numbers' if these "
                    "numbers are to be predicted, or pass whole numbers from 0 on, one class per example.",
                    argument=y_name,
                )
            if y.shape != (len(x),):
                raise InputError(f"has shape {y.shape}; {x_name} has {len(x)} examples.", argument=y_name)
            if y.dtype.kind not in "iu" or y.min() < 0:
                raise InputError("must hold whole numbers from 0 on, one class per example.", argument=y_name)
        highest = max(int(y.max()) for _, _, _, y in parts)
        if not self.classes:
            object.__setattr__(self, "classes", tuple(map(str, range(highest + 1))))
        if highest >= len(self.classes):
            raise InputError(
                f"y holds class {highest}, but there are {len(self.classes)} names in classes: "
                "number the classes from 0 on."
            )

    def _settle_numbers(self) -> None:
        """Numbers become float32 with an axis for them."""
        if self.classes:
            raise InputError("is given, and targets='numbers' has none: leave it out.", argument="classes")
        for name, x in (("y", self.x), ("test_y", self.test_x)):
            if x is None:
                continue
            found = number_targets(getattr(self, name), name)
            if len(found) != len(x):
                raise InputError(f"{name} has {len(found)} examples and its inputs {len(x)}.")
            if name == "y":
                check_precision(self.y, found, name)
            object.__setattr__(self, name, found)
        if self.test_y is not None and self.test_y.shape[1:] != self.y.shape[1:]:
            there, here = self.test_y.shape[1:], self.y.shape[1:]
            problem = f"has numbers of shape {there}, y of {here}: bring both to one shape."
            raise InputError(problem, argument="test_y")

    @property
    def is_numbers(self) -> bool:
        """True if the targets are numbers."""
        return self.targets == "numbers"

    @property
    def is_image(self) -> bool:
        """True if the inputs are images."""
        return self.x.ndim == 4

    def grouped(self, groups: Sequence[int]) -> Dataset:
        """The same examples with other classes.

        Parameters
        ----------
        groups : sequence of int
            The new class of every old one, from 0 on: ``[0, 0, 1]`` joins the first two of three.

        Examples
        --------
        >>> data = Dataset(np.zeros((3, 2)), np.array([0, 1, 2]), classes=("cat", "dog", "car"))
        >>> data.grouped([0, 0, 1]).classes
        ('cat+dog', 'car')
        """
        new = class_groups(groups, len(self.classes))
        names = tuple("+".join(self.classes[i] for i in np.flatnonzero(new == k)) for k in range(new.max() + 1))
        test_y = None if self.test_y is None else new[self.test_y]
        return replace(self, y=new[self.y], test_y=test_y, classes=names)

    @cached_property
    def digest(self) -> str:
        """Hash of the training inputs and targets."""
        return data_digest([data_digest(self.x), data_digest(self.y)])

    def __repr__(self) -> str:
        held = "" if self.test_x is None else f" and {len(self.test_x):,} to test on"
        what = f"targets {tuple(self.y.shape[1:])}" if self.is_numbers else f"{len(self.classes)} classes"
        inputs = f"inputs {tuple(self.x.shape[1:])} {self.x.dtype}"
        return f"Dataset({self.name!r}: {len(self.x):,} examples{held}, {what}, {inputs})"


Statistics: TypeAlias = "tuple[tuple[float, ...], tuple[float, ...]]"
"""Mean and standard deviation of each channel of images."""


def level_counts(images: NDArray[np.uint8], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count the 256 levels of each channel over some of the images, shape (channels, 256)."""
    counts = np.zeros((images.shape[1], 256), dtype=np.int64)
    for start in range(0, len(rows), 4096):  # a few images at a time need no copy of all of them
        some = np.asarray(images[rows[start : start + 4096]])
        counts += np.stack([np.bincount(some[:, c].ravel(), minlength=256) for c in range(len(counts))])
    return counts


def level_statistics(counts: NDArray[np.int64]) -> Statistics:
    """Return mean and standard deviation of each channel, its levels on a scale from 0 to 1.

    Sums are of whole numbers and so exact: ids of runs depend on every bit, which must be the same on all machines.

    >>> level_statistics(np.bincount([0, 255], minlength=256)[None])
    ((0.5,), (0.5,))
    """
    mean, std = [], []
    for levels in counts.tolist():
        count, total = sum(levels), sum(k * n for k, n in enumerate(levels))
        squares = sum(k * k * n for k, n in enumerate(levels))
        mean.append(total / (255 * count))
        # Values that do not vary are not scaled.
        std.append(math.sqrt((count * squares - total**2) / (255 * count) ** 2) or 1.0)
    return tuple(mean), tuple(std)


MOST_CHANNELS = 3
"""Channels for which the roundings of earlier statistics are listed: their number grows as 35 to this power."""


def earlier_statistics(counts: NDArray[np.int64]) -> Iterator[Statistics]:
    """List the statistics that versions up to 0.2 can have had of the same images.

    These summed in floating point by a BLAS, whose last bits depend on the processor. Over random images, with the
    kernels of five kinds of processors, means were up to 4 units in the last place from the sum that is rounded once
    (more than 3 in 0.2% of cases), and means of squares up to 2.
    """
    if len(counts) > MOST_CHANNELS:
        return
    levels = np.arange(256) / 255
    channels = []
    for share in counts / counts.sum(axis=1, keepdims=True):
        found: dict[tuple[float, float], None] = {}
        for mean in _neighbours(math.fsum(share * levels), 3):
            for square in _neighbours(math.fsum(share * levels**2), 2):
                found[mean, math.sqrt(max(square - mean**2, 0.0)) or 1.0] = None
        channels.append(found)
    for chosen in itertools.product(*channels):
        yield tuple(mean for mean, _ in chosen), tuple(std for _, std in chosen)


def _neighbours(value: float, units: int) -> list[float]:
    """Return a number and those up to so many units in the last place away."""
    return [value + k * math.ulp(value) for k in range(-units, units + 1)]


def class_groups(groups: Any, classes: int) -> NDArray[np.int64]:
    """Check that a list gives every class a new one, from 0 on, and leaves at least two; give it as an array."""
    given = list(groups) if isinstance(groups, Sequence | np.ndarray) and not isinstance(groups, str) else []
    whole = given and all(isinstance(k, int | np.integer) and not isinstance(k, bool) for k in given)
    if not classes:
        raise InputError("groups classes, and the targets are numbers: leave it out.", argument="classes")
    if not whole or len(given) != classes or sorted(set(given)) != list(range(max(given) + 1)) or max(given) < 1:
        way = f"give the new class of each of the {classes} classes, such as {[i % 2 for i in range(min(classes, 10))]}"
        remedy = f"With the recipe variance-binary, say classes={classes}." if whole and len(given) != classes else ""
        raise InputError(f"{way}, from 0 on and at least two.", argument="classes", value=groups, remedy=remedy)
    return np.array(given, dtype=np.int64)


def binary_groupings(
    classes: int = 10, sample: int | None = None, *, rng: int | np.random.Generator = 0
) -> list[list[int]]:
    """List the ways to split classes into two groups, each as the new class of every old one.

    Of ten classes there are 511, the binary tasks of Jordan 2023, figure 6. As a grid they are trained one by one:
    ``Design(grid={"classes": binary_groupings(10)})``.

    Parameters
    ----------
    classes : int
        How many there are, at least two; the first always stays in group 0.
    sample : int, optional
        Draw so many different ones instead, in their order.
    rng : int or numpy.random.Generator
        Determines the sample.

    Examples
    --------
    >>> binary_groupings(3)
    [[0, 0, 1], [0, 1, 0], [0, 1, 1]]
    >>> len(binary_groupings(10)), len(binary_groupings(100, sample=20))
    (511, 20)
    """
    if not isinstance(classes, int) or classes < 2:
        raise InputError("give a whole number of at least 2.", argument="classes", value=classes)
    there = 2 ** (classes - 1) - 1
    if sample is not None and not 1 <= sample <= there:
        raise InputError(f"there are {there:,} ways to draw from.", argument="sample", value=sample)
    if sample is None and classes > 20:
        raise InputError(
            f"has 2^{classes - 1} - 1 ways: draw a few with {arg('sample')}.", argument="classes", value=classes
        )
    chosen: set[int] = set() if sample is not None else set(range(1, there + 1))
    random = np.random.default_rng(rng)
    while sample is not None and len(chosen) < sample:
        bits = random.integers(2, size=classes - 1)
        chosen |= {int("".join(map(str, bits)), 2)} - {0}
    return [[int(bit) for bit in f"{number:0{classes}b}"] for number in sorted(chosen)]


def _check_inputs(x_name: str, x: NDArray[Any]) -> None:
    problem = None
    if x.ndim and not len(x):
        problem = "is empty: there must be at least one example."
    elif x.ndim == 4 and x.dtype != np.uint8:
        problem = f"holds images of {x.dtype}: pass uint8 from 0 to 255 (multiply fractions by 255 and round)."
    elif x.ndim == 4 and x.shape[1] == x.shape[2] > 4 and x.shape[3] == 3:
        problem = f"has shape {x.shape}, colours last: pass np.moveaxis({x_name}, 3, 1)."
    elif x.ndim not in (2, 4):
        ways = "(examples, channels, height, width), (examples, features) or (examples, tokens)"
        problem = f"has shape {x.shape}: pass {ways}."
    elif x.dtype.kind == "f" and not np.isfinite(x).all():
        problem = "holds NaN or infinity: drop or fill these values."
    elif x.dtype.kind not in "fiub":
        problem = f"is of type {x.dtype}: pass numbers."
    if problem:
        raise InputError(problem, argument=x_name)


def hold_out(y: NDArray[Any], test: float, stratify: bool, entropy: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split examples into a training part and a test set.

    Parameters
    ----------
    y : ndarray, shape (examples,)
        Targets.
    test : float or int
        Fraction, or number of examples, that is held out.
    stratify : bool
        Keep the proportions of the classes.
    entropy : int
        Determines the split.

    Returns
    -------
    train, held : ndarray of int
        Positions, in order.
    """
    count = isinstance(test, int | np.integer) and not isinstance(test, bool)
    finite = isinstance(test, Real) and math.isfinite(test)
    held_out = int(test) if count else math.ceil(round(float(test) * len(y), 6)) if finite else 0
    if not 1 <= held_out < len(y) or (not count and not 0 < test < 1):
        ways = "a fraction between 0 and 1, a number of examples, or (X_test, y_test)"
        problem = f"would hold out {held_out} of {len(y)} examples: pass {ways}."
        raise InputError(problem, argument="test", value=test)
    # Drawing the training part, not the test set, keeps the only example of a class for training.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        rng = np.random.default_rng([entropy, 0])
        kept = partition_training_set(y if stratify else len(y), [len(y) - held_out], 1, stratify=stratify, rng=rng)
    train = np.sort(kept.subsets[0].indices)
    return train, np.setdiff1d(np.arange(len(y), dtype=np.int64), train)


# Targets that are numbers: how they are checked, scaled, and how far predictions are off.

MOST_LOST = 1e-3
"""Of the span of numbers, what may be lost when they become single precision."""


def number_targets(y: Any, name: str) -> NDArray[np.float32]:
    """Targets as numbers: (examples, k) or (examples, channels, height, width) of float32.

    One number for each example is a row of one.

    >>> number_targets(np.array([0.5, 1.5]), "y").shape
    (2, 1)
    """
    values = np.asarray(y)
    if values.dtype.kind not in "fiub":
        raise InputError(f"{name} is of type {values.dtype}: targets='numbers' needs numbers.")
    if values.ndim not in (1, 2, 4) or 0 in values.shape[1:]:
        raise InputError(
            f"{name} has shape {values.shape}: pass numbers as (examples,), (examples, k) or "
            "(examples, channels, height, width), with an axis for the channel if there is one."
        )
    with np.errstate(over="ignore"):  # said below
        found = values.astype(np.float32)
    if np.ma.is_masked(y) or not np.isfinite(found).all():
        lost = np.ma.getmaskarray(y) | ~np.isfinite(np.ma.getdata(y))
        problem = f"{int(lost.sum())} masked, NaN or infinite numbers: drop these examples."
        if not lost.any():
            most = np.abs(np.ma.getdata(y)).max()
            problem = f"numbers up to {most:.3g}, too large for single precision: divide by their standard deviation."
        raise InputError(f"{name} holds {problem}")
    return found[:, None] if found.ndim == 1 else found


def check_precision(y: Any, found: NDArray[np.float32], name: str) -> None:
    """Refuse numbers that vary by so little that single precision does not tell them apart.

    >>> check_precision([0.1, 0.2], np.array([[0.1], [0.2]], dtype=np.float32), "y")
    """
    values = np.asarray(y).reshape(found.shape)
    if np.can_cast(values.dtype, np.float32) or not values.size:
        return
    axes = (0,) if values.ndim == 2 else (0, 2, 3)
    high, low = values.max(axis=axes), values.min(axis=axes)
    span = high.astype(np.float64) - low.astype(np.float64)
    lost = np.zeros(span.shape)
    for start in range(0, len(values), 1000):  # images in double precision take much memory
        part = slice(start, start + 1000)
        off = np.abs(values[part].astype(np.float64) - found[part])
        lost = np.maximum(lost, off.max(axis=axes))
    one = found.max(axis=axes) == found.min(axis=axes)
    vague = (high != low) & (one | (lost > MOST_LOST * span))
    if vague.any():
        where = int(np.argmax(vague))
        which = f" (column or channel {where})" if len(span) > 1 else ""
        raise InputError(
            f"{name} has numbers{which} that lie within {span[where]:.3g} of each other, which single precision does "
            "not tell apart: subtract their mean and divide by their standard deviation first."
        )


def target_scale(y: NDArray[np.float32]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and spread of each number of a row, or of each channel of images.

    What does not vary is not scaled.

    >>> target_scale(np.array([[0.0, 5.0], [2.0, 5.0]], dtype=np.float32))
    ((1.0, 5.0), (1.0, 1.0))
    """
    axes = (0,) if y.ndim == 2 else (0, 2, 3)
    mean, std = y.mean(axis=axes, dtype=np.float64), y.std(axis=axes, dtype=np.float64)
    return tuple(mean.tolist()), tuple(np.where(std > 0, std, 1.0).tolist())


def scaled(y: NDArray[np.float32], mean: tuple[float, ...], std: tuple[float, ...]) -> NDArray[np.float32]:
    """Subtract the mean and divide by the spread.

    >>> scaled(np.array([[0.0], [4.0]], dtype=np.float32), (2.0,), (2.0,)).tolist()
    [[-1.0], [1.0]]
    """
    shape = (len(mean), *(1,) * (y.ndim - 2))
    off = y - np.array(mean, dtype=np.float64).reshape(shape)
    return np.asarray(off / np.array(std).reshape(shape), dtype=np.float32)


def number_losses(predicted: NDArray[Any], y: NDArray[np.float32], loss: str) -> NDArray[np.float32]:
    """The loss of each example: the mean over its numbers of absolute or squared differences.

    >>> number_losses(np.array([[1.0, 4.0]]), np.zeros((1, 2), dtype=np.float32), "l1").tolist()
    [2.5]
    """
    found = np.empty(len(y), dtype=np.float32)
    for start in range(0, len(y), 1000):  # images in double precision take much memory
        part = slice(start, start + 1000)
        off = predicted[part].astype(np.float64) - y[part]
        each = np.abs(off) if loss == "l1" else off**2
        found[part] = each.reshape(len(off), -1).mean(axis=1)
    return found


def as_predicted(values: Any, shape: tuple[int, ...], what: str) -> NDArray[np.float32]:
    """Predicted numbers in the shape of their targets; a row of one may lack its axis.

    >>> as_predicted([1, 2], (2, 1), "predict").tolist()
    [[1.0], [2.0]]
    """
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{what} gave {array.dtype}: expected numbers of shape {shape}.")
    if shape[1:] == (1,) and array.shape == shape[:1]:
        array = array[:, None]
    if array.shape != shape:
        raise ValueError(f"{what} gave an array of shape {array.shape}: expected {shape}, the shape of the targets.")
    return array.astype(np.float32)


# Predicted classes as probabilities, and the loss of probabilities.

HARD_NOTE = "Only classes were predicted, no probabilities: there is an error and no loss."


def one_hot(predicted: NDArray[Any], classes: int, what: str) -> NDArray[np.float32]:
    """Write predicted classes as probabilities of 0 and 1.

    >>> one_hot(np.array([2, 0]), 3, "predictions").tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    if predicted.ndim != 1 or predicted.dtype.kind not in "iu":
        raise ValueError(
            f"{what} gave {predicted.dtype} of shape {predicted.shape}: expected one whole number, "
            "the class, for each example."
        )
    if len(predicted) and not (predicted.min() >= 0 and predicted.max() < classes):
        raise ValueError(
            f"{what} gave classes from {predicted.min()} to {predicted.max()}: expected 0 to {classes - 1}."
        )
    full = np.zeros((len(predicted), classes), dtype=np.float32)
    full[np.arange(len(predicted)), predicted.astype(np.int64)] = 1
    return full


def log_loss(probabilities: NDArray[np.float32], y: NDArray[np.int64]) -> float:
    """Mean of −log of the probability of the true class, which counts as at least 1.2e-7.

    The bound is the spacing of float32 at 1: without it, one example to whose class a tree or a
    small subset gives probability 0 would make the mean infinite.

    >>> round(log_loss(np.array([[0.5, 0.5], [1, 0]], dtype=np.float32), np.array([0, 0])), 4)
    0.3466
    """
    least = np.finfo(np.float32).eps
    true = probabilities[np.arange(len(y)), y].astype(np.float64)
    return float(-np.log(np.maximum(true, least)).mean())


RowIndices: TypeAlias = NDArray[np.int64]

SUBSET_SEED = 0
"""Of the choice that ``examples = k`` makes, which is the same for every study of the data."""


@dataclass(frozen=True, eq=False)
class DataPart:
    """Training or test examples.

    Attributes
    ----------
    labels : ndarray, shape (examples,) or (examples, 1)
        Numbers or texts; for numbers to predict, of any shape that Dataset takes.
    read : callable
        Gives the inputs of some rows, or of all for None.
    """

    labels: NDArray[Any]
    read: Callable[[RowIndices | None], NDArray[Any]]


@dataclass(frozen=True, eq=False)
class DataSource:
    """Examples as a loader found them.

    Attributes
    ----------
    parts : sequence of DataPart
        The training examples, and the test examples where the data has some.
    classes : tuple of str, optional
        Names of the classes 0, 1, …, where the data tells them.
    name : str
        What the data is called.
    padding : int, optional
        The token that stands for nothing.
    notes : list of str
        What was taken for what; reading may add to it.
    """

    parts: Sequence[DataPart]
    classes: tuple[str, ...] | None = None
    name: str = "data"
    padding: int | None = None
    notes: list[str] = field(default_factory=list)


def array_part(x: NDArray[Any], labels: NDArray[Any], x_name: str, y_name: str) -> DataPart:
    """Make a part of examples that are in memory; the names are for messages."""
    if len(x) != len(labels):
        raise InputError(f"{x_name} has {len(x)} examples and {y_name} has {len(labels)}: they must be as many.")
    return DataPart(labels, lambda rows: x if rows is None else x[rows])


def make_dataset(
    source: DataSource, examples: int | None, test_examples: int | None, *, targets: str, standardise: bool
) -> Dataset:
    """Number the classes, or take the labels for numbers; pick the examples asked for, and read them."""
    notes, parts = source.notes, source.parts
    if len(parts) < 2 and test_examples is not None:
        problem = f"{source.name} has no test part; a study holds out a share of the examples (design.test)."
        raise InputError(problem, argument="data.test_examples", value=test_examples)
    about: dict[str, Any] = {"name": source.name, "padding": source.padding}
    if targets == "numbers":
        y: list[NDArray[Any]] = [number_targets(part.labels, "The array of labels") for part in parts]
        about |= {"targets": targets, "standardise": standardise}
    else:
        labels = [_plain_labels(part.labels) for part in parts]
        codes, classes = _numbered(labels, source.classes, notes)
        y, about["classes"] = [*codes], classes
        seen = np.unique(codes[0])
        if len(seen) < 2:
            raise InputError(
                f"{source.name} has one class only, {brief(classes[int(seen[0])])}: there is nothing "
                "to tell apart. Is this the right column or folder?"
            )
        if len(codes) > 1 and (new := np.setdiff1d(codes[1], seen)).size:
            names = list_names((classes[i] for i in new), 5)
            notes.append(f"The test part has classes that the training part lacks: {names}.")
    limits = {"examples": examples, "test_examples": test_examples}
    names_of = (("x", "y"), ("test_x", "test_y"))
    for part, values, (option, most), (x, own) in zip(parts, y, limits.items(), names_of, strict=False):
        rows = _pick(values, most, option, notes, by_class=targets != "numbers")
        about |= {x: part.read(rows), own: values if rows is None else values[rows]}
    return Dataset(**about, notes=tuple(notes))


def _pick(y: NDArray[Any], most: int | None, option: str, notes: list[str], *, by_class: bool) -> RowIndices | None:
    """Draw at most so many examples, class by class if they have classes, in their old order; None for all."""
    if most is None or most >= len(y):
        return None
    if not by_class:
        notes.append(f"{option}: {most:,} of {len(y):,}, drawn with seed 0.")
        return np.sort(np.random.default_rng(SUBSET_SEED).choice(len(y), most, replace=False))
    if most < len(np.unique(y)):
        raise InputError(
            f"{arg(f'data.{option}', most)} is less than the {len(np.unique(y))} classes: take at least one "
            "example of each."
        )
    notes.append(f"{option}: {most:,} of {len(y):,}, drawn class by class with seed 0.")
    return np.sort(partition_training_set(y, [most], 1, rng=SUBSET_SEED).subsets[0].indices)


def _plain_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """Turn labels into whole numbers or texts, one per example."""
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.ndim != 1:
        raise InputError(
            f"The labels have shape {labels.shape}: give one class per example (argmax(axis=1) if "
            f"each row marks its class with a 1), or say {arg('data.targets', 'numbers')} to predict numbers."
        )
    if not len(labels):
        raise InputError("The data is empty: there must be at least one example.")
    if labels.dtype.kind == "b":
        return labels.astype(str)
    if labels.dtype.kind == "f":
        if not np.isfinite(labels).all():
            count = int(np.sum(~np.isfinite(labels)))
            raise InputError(f"{count} labels are missing (NaN or infinite): drop these examples.")
        if np.any(labels != np.round(labels)):
            raise InputError(
                f"The labels hold {labels[labels != np.round(labels)][0]:g}: they must be classes, that is whole "
                f"numbers or texts, not measurements. Say {arg('data.targets', 'numbers')} to predict numbers."
            )
        return labels.astype(np.int64)
    if labels.dtype.kind in "iu":
        return labels.astype(np.int64)
    if labels.dtype.kind in "UT":
        return labels
    raise InputError(f"The labels are of type {labels.dtype}: give whole numbers or texts.")


def _numbered(
    labels: list[NDArray[Any]], classes: tuple[str, ...] | None, notes: list[str]
) -> tuple[list[RowIndices], tuple[str, ...]]:
    """Classes from 0 on for the labels of each part, and their names."""
    if len({values.dtype.kind in "iu" for values in labels}) > 1:
        raise InputError("The training labels are numbers and the test labels texts, or the reverse.")
    together = np.concatenate(labels)
    values, codes = np.unique(together, return_inverse=True)
    cuts = np.cumsum([len(part) for part in labels])[:-1]
    numbers = together.dtype.kind in "iu"
    if classes is not None and numbers:
        if values[0] < 0 or values[-1] >= len(classes):
            wrong = int(values[0] if values[0] < 0 else values[-1])
            raise InputError(f"There is a label {wrong}, but the classes are 0 to {len(classes) - 1}.")
        return np.split(together, cuts), classes
    if numbers and (values[0] != 0 or values[-1] != len(values) - 1):
        check_labelled(together, "labels")  # numbers other than 0, 1, … may mark examples without a label
        notes.append(f"Labels {list_names(values.tolist(), 5)} are numbered 0 to {len(values) - 1}.")
    return np.split(codes.astype(np.int64), cuts), tuple(str(value) for value in values)


# ---- The table of data in a study file, taken out key by key


class Request:
    """The options of one set of data; options that were not taken in the end are an error.

    Parameters
    ----------
    options : dict
        As given.
    folder : Path
        Where relative paths start.
    """

    def __init__(self, options: Mapping[str, Any], folder: Path) -> None:
        self._options = dict(options)
        self._taken: set[str] = set()
        self.folder = folder

    def __contains__(self, key: str) -> bool:
        return self._options.get(key) is not None

    def text(self, key: str) -> str | None:
        """A text, or None where it is not given."""
        found: str | None = self.take(key, lambda v: isinstance(v, str) and v != "", "give a text.")
        return found

    def texts(self, key: str) -> list[str] | None:
        """One text or a list of them."""

        def right(value: Any) -> bool:
            several = [value] if isinstance(value, str) else value
            return isinstance(several, Sequence) and bool(several) and all(isinstance(v, str) for v in several)

        found = self.take(key, right, "give a text, or a list of texts.")
        return None if found is None else [found] if isinstance(found, str) else list(found)

    def one_of(self, key: str, allowed: Sequence[Any], default: Any = None) -> Any:
        """One of a few values."""
        found = self.take(key, lambda v: v in allowed, f"use one of {list_names(allowed)}.")
        return default if found is None else found

    def count(self, key: str, least: int = 1) -> int | None:
        """A whole number, not below the least."""
        found: int | None = self.take(key, lambda v: _is_whole(v, least), f"give a whole number from {least} on.")
        return found

    def size(self, key: str) -> tuple[int, int] | None:
        """Height and width, or one number for both."""

        def right(value: Any) -> bool:
            pair = isinstance(value, Sequence) and len(value) == 2 and all(_is_whole(v) for v in value)
            return pair or _is_whole(value)

        found = self.take(key, right, "give pixels, such as 32 or [32, 48].")
        return None if found is None else (found, found) if isinstance(found, int) else (found[0], found[1])

    def path(self, key: str) -> Path | None:
        """A file or folder that is there; relative ones start in the study's folder."""
        value = self.take(key)
        if value is None:
            return None
        try:
            path = self.folder / Path(value).expanduser()
            there = path.exists()
        except (TypeError, ValueError, OSError, RuntimeError) as error:
            raise InputError(f"{arg(f'data.{key}', value)} is not a path: {error}.") from error
        if not there:
            where = "" if Path(value).is_absolute() else f" in {self.folder.resolve()}"
            raise InputError(f"there is no such file or folder{where}.", argument=f"data.{key}", value=str(value))
        return path

    def rest(self) -> dict[str, Any]:
        """Take all options that are left."""
        left = {k: v for k, v in self._options.items() if k not in self._taken}
        self._taken |= set(left)
        return left

    def finish(self) -> None:
        """Refuse options that were not taken."""
        if left := [key for key in self._options if key in self and key not in self._taken]:
            raise InputError(
                f"data has {list_names(left)}, which such data does not take: it takes "
                f"{list_names(sorted(self._taken))}.{suggest(left[0], self._taken)}"
            )

    def take(self, key: str, right: Callable[[Any], bool] = lambda _: True, problem: str = "") -> Any:
        """Take an option, None where it is not given; one that is not right is an error."""
        self._taken.add(key)
        value = self._options.get(key)
        if value is not None and not right(value):
            raise InputError(problem, argument=f"data.{key}", value=value)
        return value


def _is_whole(value: Any, least: int = 1) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
