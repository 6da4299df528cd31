"""What a ranking measure is: a function of features and labels with its conditions."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.ranking.scores import as_matrix
from curvewise.types.predictions import check_labelled
from curvewise.types.units import FloatArray


@dataclass(frozen=True, eq=False)
class RankingMeasure:
    """A number for a checkpoint and a task of which more predicts better fine-tuning.

    Attributes
    ----------
    name : str
        What it is asked for by.
    function : callable
        ``function(x, labels, *, test_features=None, test_labels=None, rng=0) -> float``, where x
        is what it takes (``test_probabilities`` in the place of ``test_features`` for those that
        take probabilities). A measure that does not split has no ``test_`` arguments, one without
        chance no ``rng``.
    takes : {"features", "probabilities", "network"}
        What it is computed from.
    splits : bool
        Whether it is fitted on training examples and scored on test examples; one that does not
        is computed on all examples at once.
    seeded : bool
        Whether chance enters.
    targets : tuple of str
        Among "classes", "multilabel", "numbers".
    flops : callable
        ``flops(n, d, classes) -> float``: operations for n examples of d dimensions, apart from
        the forward pass.
    guess : {"", "log", "share"}
        What a guess by the frequencies of classes scores: the mean of their logs, or the largest
        share; unknown if empty.
    bounds : tuple of float
        The lowest and the highest value that there can be; intervals end there.
    about, cost, fails : str
        One sentence each: what it is and where it comes from; what it costs; when it fails.
    """

    name: str
    function: Callable[..., float]
    about: str
    cost: str
    fails: str
    flops: Callable[[int, int, int], float]
    takes: str = "features"
    splits: bool = False
    seeded: bool = False
    targets: tuple[str, ...] = ("classes",)
    guess: str = ""
    bounds: tuple[float, float] = (-math.inf, math.inf)

    def columns(self) -> dict[str, Any]:
        """What is said of it, in a row."""
        return {
            "measure": self.name,
            "takes": self.takes,
            "targets": ", ".join(self.targets),
            "about": self.about,
            "cost": self.cost,
            "fails": self.fails,
        }


# Labels of examples: one class each, several, or numbers.

KINDS = ("classes", "multilabel", "numbers")


@dataclass(frozen=True, eq=False)
class Targets:
    """What examples are labelled with.

    Attributes
    ----------
    kind : {"classes", "multilabel", "numbers"}
        What they are.
    count : int
        How many examples.
    rows, codes : ndarray of int
        One row per example and label: the example's position, and its class from 0. For one class
        each, ``rows`` is 0, 1, 2 …; an example without any label has no row. Empty for numbers.
    classes : tuple
        Names of the classes in the order of their codes.
    values : ndarray, shape (examples, outputs), optional
        The numbers.
    """

    kind: str
    count: int
    rows: NDArray[np.int64]
    codes: NDArray[np.int64]
    classes: tuple[Any, ...] = ()
    values: FloatArray | None = None

    def __len__(self) -> int:
        return self.count

    def one_hot(self) -> FloatArray:
        """Examples × classes, 1 where an example has the class."""
        found = np.zeros((self.count, len(self.classes)))
        found[self.rows, self.codes] = 1.0
        return found


def as_targets(
    labels: ArrayLike,
    count: int,
    *,
    allowed: tuple[str, ...] = ("classes",),
    measure: str = "this measure",
    argument: str = "labels",
    classes: tuple[Any, ...] | None = None,
) -> Targets:
    """Read labels: a vector of classes, a matrix of 0 and 1 (multi-label), or numbers.

    A vector of whole numbers, texts or booleans is classes; a vector or matrix of other numbers is
    numbers; a matrix of 0 and 1 with more than one column is multi-label. Whole numbers in floating
    point are asked about where both classes and numbers would do.

    Parameters
    ----------
    labels : array_like
        As many as there are examples.
    count : int
        Number of examples.
    allowed : tuple of str
        What the measure takes.
    measure, argument : str
        What to call them in messages.
    classes : tuple, optional
        The classes of the training examples, where these are test examples.

    Raises
    ------
    InputError
        If lengths differ, values are missing, there is one class only, or a class is unknown.
    """
    found = _array(labels, argument)
    if found.ndim == 0 or len(found) != count:
        raise InputError(f"{argument} has shape {found.shape} for {count} examples: give one for each.")
    if found.dtype.kind in "fO" and _missing(found):
        raise InputError(f"{argument} has missing values: leave those examples out.")
    found = _plain(found)
    kind = _kind(found, argument, allowed, classes)
    if kind not in allowed:
        raise InputError(f"{argument} are {_SAID[kind]}, and {measure} takes {' or '.join(_SAID[k] for k in allowed)}.")
    if kind == "numbers":
        none = np.zeros(0, dtype=np.int64)
        return Targets(kind, count, none, none, (), found.reshape(count, -1).astype(np.float64))
    if kind == "multilabel":
        return _several(found, count, argument, classes)
    return _single(found, count, argument, classes)


_SAID = {
    "classes": "one class per example",
    "multilabel": "several classes per example (a matrix of 0 and 1)",
    "numbers": "numbers (regression)",
}


def _array(labels: ArrayLike, argument: str) -> NDArray[Any]:
    try:
        return np.asarray(labels)
    except ValueError:
        raise InputError(
            f"{argument} holds lists of several lengths: where examples have several classes, give "
            "a matrix of 0 and 1 with a column for each class."
        ) from None


def _plain(found: NDArray[Any]) -> NDArray[Any]:
    """Numbers or texts, where they are held as objects."""
    if found.dtype.kind != "O":
        return found
    values = [v if isinstance(v, int | float | np.number) else str(v) for v in found.ravel()]
    return np.array(values).reshape(found.shape)


def _missing(found: NDArray[Any]) -> bool:
    return any(_is_missing(value) for value in found.ravel().tolist())


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas' NA is neither
        return True


def _kind(found: NDArray[Any], argument: str, allowed: tuple[str, ...], classes: tuple[Any, ...] | None) -> str:
    if found.ndim > 2:
        raise InputError(f"{argument} has shape {found.shape}: give a vector or a matrix.")
    if found.ndim == 2 and found.shape[1] > 1:
        binary = found.dtype.kind in "biuf" and bool(np.isin(found, (0, 1)).all())
        if not binary and found.dtype.kind not in "fiu":
            raise InputError(f"{argument} has shape {found.shape}: give a matrix of 0 and 1.")
        return "multilabel" if binary else "numbers"
    if found.dtype.kind != "f" or (classes is not None and np.isin(found, classes).all()):
        return "classes"
    if found.ndim == 2 or (found != np.trunc(found)).any() or not np.isfinite(found).all():
        return "numbers"
    if "numbers" in allowed:
        raise InputError(
            f"{argument} holds whole numbers in floating point, which could be classes or numbers: "
            f"give {argument}.astype(int) for classes, or {argument}[:, None] for regression."
        )
    return "classes"


def _single(found: NDArray[Any], count: int, argument: str, classes: tuple[Any, ...] | None) -> Targets:
    values = found.reshape(count)
    check_labelled(values, argument)
    names, codes = np.unique(values, return_inverse=True)
    known = tuple(names.tolist())
    if classes is not None:
        place = {name: i for i, name in enumerate(classes)}
        if lost := [name for name in known if name not in place]:
            raise InputError(
                f"{argument} holds class {lost[0]!r}, which no training example has: add examples "
                "of it, or leave it out."
            )
        codes = np.array([place[name] for name in known])[codes]
        known = classes
    elif len(known) < 2:
        raise InputError(f"{argument} holds one class only ({known[0]!r}): it takes two to tell.")
    rows = np.arange(count, dtype=np.int64)
    return Targets("classes", count, rows, codes.reshape(-1).astype(np.int64), known)


def _several(found: NDArray[Any], count: int, argument: str, classes: tuple[Any, ...] | None) -> Targets:
    width = found.shape[1]
    if classes is not None and len(classes) != width:
        raise InputError(
            f"{argument} has {width} columns and the training labels {len(classes)}: give the same classes."
        )
    if found.sum(axis=0).astype(bool).sum() < 2 and classes is None:
        raise InputError(f"{argument} marks one class only: it takes two to tell.")
    rows, codes = np.nonzero(found)
    return Targets("multilabel", count, rows, codes, tuple(range(width)))


# Features and the classes of their examples, read together.


@dataclass(frozen=True, eq=False)
class Examples:
    """Rows of features, each with one class.

    Attributes
    ----------
    features : ndarray, shape (rows, dimensions)
        As float32 or float64.
    codes : ndarray of int
        Class of each row, from 0 without gaps.
    counts : ndarray of int
        How many rows each class has; none has 0.
    """

    features: NDArray[np.floating[Any]]
    codes: NDArray[np.int64]
    counts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.features)

    @property
    def lone(self) -> int:
        """How many classes have a single row."""
        return int((self.counts == 1).sum())

    @property
    def same(self) -> bool:
        """Whether all rows are the same."""
        return bool((self.features == self.features[0]).all())


def read_examples(features: ArrayLike, labels: ArrayLike, measure: str) -> Examples:
    """Check features and labels; an example with several labels becomes a row for each."""
    x = as_matrix(features, "features")
    targets = as_targets(labels, len(x), allowed=("classes", "multilabel"), measure=measure)
    if targets.kind == "multilabel":
        x = x[targets.rows]
    _, codes, counts = np.unique(targets.codes, return_inverse=True, return_counts=True)
    return Examples(x, codes.reshape(-1).astype(np.int64), counts.astype(np.int64))


def as_count(value: object, argument: str, least: int = 1, otherwise: str = "") -> int:
    """A whole number from the least on; raise otherwise.

    >>> as_count(5.0, "components")
    5
    """
    if isinstance(value, int | float | np.number) and value >= least and float(value).is_integer():
        return int(value)
    raise InputError(f"{argument}={value!r}: give a whole number from {least}{otherwise}.")


def as_number(value: object, argument: str, remedy: str) -> float:
    """A number; raise with what to give for anything else, such as text.

    >>> as_number(1, "energy", "give a share")
    1.0
    """
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        return float(value)
    raise InputError(f"{argument}={value!r}: {remedy}")


def warn(text: str) -> None:
    """Warn the caller of the measure that calls this."""
    warnings.warn(text, CurvewiseWarning, stacklevel=3)


def warn_of_lone_classes(count: int, so: str, depth: int = 3) -> None:
    """Warn the caller of the measure, at a depth, if there are classes with a single example."""
    if count:
        classes = "1 class has" if count == 1 else f"{count} classes have"
        warnings.warn(
            f"{classes} a single example, {so}: add examples of it, or leave it out.",
            CurvewiseWarning,
            stacklevel=depth,
        )
