"""Ranking measures, and the labels and features they are computed from."""

from __future__ import annotations

import contextlib
import math
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import CurvewiseWarning, InputError, either
from curvewise.types.results import FloatArray, as_unmasked, check_labelled, count_missing

# What the examples of a task may be labelled with, and how messages put it.
KINDS = ("classes", "multilabel", "numbers")
_IN_WORDS = {
    "classes": "one class per example",
    "multilabel": "several classes per example (a matrix of 0 and 1)",
    "numbers": "numbers (regression)",
}


@dataclass(frozen=True, eq=False)
class RankingMeasure:
    """Score of a checkpoint for a task; a higher score predicts better fine-tuning.

    Attributes
    ----------
    name : str
        The name that ``measures=`` takes.
    function : callable
        ``function(x, labels, *, test_features=None, test_labels=None, rng=0) -> float``, where x
        is what it takes (``test_probabilities`` in place of ``test_features`` for those that take
        probabilities). A measure that does not split has no ``test_`` arguments, a deterministic
        one no ``rng``.
    takes : {"features", "probabilities", "network"}
        Input that it is computed from.
    splits : bool
        True if it is fitted on training examples and scored on test examples; otherwise it is
        computed on all examples at once.
    seeded : bool
        True if it draws random numbers.
    targets : tuple of str
        Among "classes", "multilabel", "numbers".
    flops : callable
        ``flops(n, d, classes) -> float``: operations for n examples of d dimensions, without the
        forward pass.
    guess : {"", "log", "share"}
        Score of a guess by class frequencies: the mean of their logarithms, or the largest share;
        empty if unknown.
    bounds : tuple of float
        Lowest and highest possible value; intervals end there.
    hits : callable, optional
        Of a measure that is a mean over test examples: a function with the same arguments that gives
        the value of each. Its intervals come from resampled examples, without training again.
    about, cost, fails : str
        One sentence each: definition and origin; cost; conditions under which it fails.
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
    hits: Callable[..., NDArray[Any]] | None = None

    def columns(self) -> dict[str, Any]:
        """Return the descriptive fields as one row of a table."""
        described = {name: getattr(self, name) for name in ("takes", "targets", "about", "cost", "fails")}
        return {"measure": self.name, **described, "targets": ", ".join(self.targets)}


@dataclass(frozen=True, eq=False, repr=False)
class CheckpointFeatures:
    """Features of the same examples by one checkpoint, a row for each example.

    Attributes
    ----------
    name : str
        Of the checkpoint.
    features : ndarray, shape (examples, dimensions)
        As float32 or float64; a memory map will do.
    probabilities : ndarray, shape (examples, source classes), optional
        What the checkpoint's own head says, where it has one.
    layer : str
        Where the features were taken.
    parameters : int, optional
        Number of weights of the network.
    source_accuracy : float, optional
        Accuracy on what it was trained for, as a fraction.
    seconds, gflops : float, optional
        Cost of the forward pass over all examples; 10⁹ operations, a multiplication and an
        addition counted as two.
    notes : tuple of str
        How each column was interpreted.

    Examples
    --------
    >>> CheckpointFeatures("resnet", np.zeros((100, 64)))
    CheckpointFeatures('resnet', 100 examples × 64)
    """

    name: str
    features: NDArray[np.floating[Any]]
    probabilities: NDArray[np.floating[Any]] | None = None
    layer: str = ""
    parameters: int | None = None
    source_accuracy: float | None = None
    seconds: float | None = None
    gflops: float | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "features", as_matrix(self.features, f"features of {self.name!r}"))
        if self.probabilities is not None:
            found = as_matrix(self.probabilities, f"probabilities of {self.name!r}")
            if len(found) != len(self):
                raise InputError(
                    f"probabilities of {self.name!r} has {len(found)} rows and features {len(self)}: give one of each "
                    "for every example."
                )
            put(self, "probabilities", found)

    def __len__(self) -> int:
        return len(self.features)

    def __repr__(self) -> str:
        rows, dimensions = self.features.shape
        return f"CheckpointFeatures({self.name!r}, {rows:,} examples × {dimensions:,})"

    def take(self, rows: NDArray[Any]) -> CheckpointFeatures:
        """Select some of the examples: their positions, or a mask with an entry for each."""
        own = None if self.probabilities is None else self.probabilities[rows]
        return replace(self, features=self.features[rows], probabilities=own)


def as_matrix(values: ArrayLike | None, argument: str) -> NDArray[np.floating[Any]]:
    """Return a finite matrix with a row for each example, in float32 or float64; raise otherwise."""

    def refusal(problem: str) -> InputError:
        # Features of a checkpoint are called by its name, which is no argument.
        named = argument.isidentifier()
        return InputError(problem, argument=argument) if named else InputError(f"{argument} {problem}")

    as_unmasked(values, argument)
    found = np.asanyarray(values)
    if found.dtype.kind == "O":  # nullable numbers of a DataFrame
        with contextlib.suppress(TypeError, ValueError):
            found = found.astype(np.float64)
    if found.ndim != 2:
        raise refusal(
            f"has shape {found.shape}: give a matrix with a row for each example. Pool or flatten further axes first."
        )
    if not found.size:
        raise refusal(f"has shape {found.shape}: it is empty.")
    if found.dtype.kind not in "fiub":
        raise refusal(f"holds {found.dtype}: give numbers.")
    # float16 overflows in sums of squares; BLAS has no routines for whole numbers.
    if found.dtype not in (np.float32, np.float64):
        found = found.astype(np.float32 if found.dtype.itemsize < 4 else np.float64)
    with np.errstate(over="ignore", invalid="ignore"):  # a look at each only where the sum is odd
        odd = not np.isfinite(np.sum(found, dtype=np.float64))
    if odd and not np.isfinite(found).all():
        bad = int((~np.isfinite(found).all(axis=1)).sum())
        raise refusal(
            f"has NaN or infinite values in {bad} of {len(found)} rows: the network diverged or overflows "
            "in half precision. Extract them in float32, or leave it out."
        )
    if found.dtype == np.float64:  # fourth powers of these overflow or are 0
        largest = max(float(found.max()), -float(found.min()))
        if largest > 1e75 or 0 < largest < 1e-75:
            raise refusal(
                f"has values up to {largest:g} in size: multiply them by one number, so that they are of "
                "the order of 1."
            )
    return found


@dataclass(frozen=True, eq=False)
class Targets:
    """Labels of the examples.

    Attributes
    ----------
    kind : {"classes", "multilabel", "numbers"}
    count : int
        Number of examples.
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
        """Return examples × classes, 1 where an example has the class."""
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
    point are refused where both classes and numbers are allowed.

    Parameters
    ----------
    labels : array_like
        As many as there are examples.
    count : int
        Number of examples.
    allowed : tuple of str
        Kinds that the measure takes.
    measure, argument : str
        Names for messages.
    classes : tuple, optional
        The classes of the training examples, where these are test examples.

    Raises
    ------
    InputError
        If lengths differ, values are missing, there is one class only, or a class is unknown.
    """
    found = label_array(labels, argument)
    as_unmasked(labels, argument)
    if found.ndim == 0 or len(found) != count:
        raise InputError(f"has shape {found.shape} for {count} examples: give one for each.", argument=argument)
    if found.dtype.kind in "fO" and count_missing(found.ravel().tolist()):
        raise InputError("has missing values: leave those examples out.", argument=argument)
    if found.dtype.kind == "O":  # a column of a DataFrame: numbers or texts held as objects
        values = [v if isinstance(v, int | float | np.number) else str(v) for v in found.ravel()]
        found = np.array(values).reshape(found.shape)
    kind = _kind(found, argument, allowed, classes)
    if kind not in allowed:
        raise InputError(
            f"are {_IN_WORDS[kind]}, and {measure} takes {' or '.join(_IN_WORDS[k] for k in allowed)}.",
            argument=argument,
        )
    if kind == "numbers":
        none = np.zeros(0, dtype=np.int64)
        return Targets(kind, count, none, none, (), found.reshape(count, -1).astype(np.float64))
    if kind == "multilabel":
        return _several(found, count, argument, classes)
    return _single(found, count, argument, classes)


def label_array(labels: ArrayLike, argument: str = "labels") -> NDArray[Any]:
    """Return labels as an array; raise for lists of several lengths."""
    try:
        return np.asarray(labels)
    except ValueError:
        raise InputError(
            "holds lists of several lengths: where examples have several classes, give "
            "a matrix of 0 and 1 with a column for each class.",
            argument=argument,
        ) from None


def named_axes(values: Any) -> list[tuple[str, Sequence[Any]]]:
    """Return the names along the columns and the index of a frame, or along the index of a series.

    >>> named_axes([1, 2])
    []
    """
    found = [(name, getattr(values, name, None)) for name in ("columns", "index")]
    return [(name, axis) for name, axis in found if axis is not None and not callable(axis)]  # lists have an index()


def check_order(own: Sequence[Any], other: Sequence[Any], of: str, remedy: str, argument: str) -> None:
    """Raise where both hold the same names in different orders, as values are read by position."""
    one, two = list(map(str, own)), list(map(str, other))
    if one != two and set(one) == set(two):
        raise InputError(f"has {of} in another order, and both are read by position: {remedy}.", argument=argument)


def from_one_hot(*labels: Any) -> tuple[Any, ...]:
    """Return labels as classes, numbered by column, where every row of 0 and 1 holds exactly one 1; else as they are.

    Labels of training and test examples belong together: if one example of either has several classes, or none, all
    may have. A classifier of one class each is another model with another metric than one of several classes.

    >>> from_one_hot(np.eye(3), [[0, 1, 0]])
    (array([0, 1, 2]), array([1]))
    >>> from_one_hot([[1, 0], [1, 1]], None)
    ([[1, 0], [1, 1]], None)
    """
    try:
        matrices = [np.asarray(given) for given in labels if given is not None]
    except ValueError:  # lists of several lengths
        return labels
    if any(map(np.ma.isMaskedArray, labels)) or len({m.shape[1:] for m in matrices}) > 1:
        return labels

    def marks(m: NDArray[Any]) -> bool:
        binary = m.ndim == 2 and m.shape[1] > 1 and m.dtype.kind in "biuf" and np.isin(m, (0, 1)).all()
        return bool(binary and (m.sum(axis=1) == 1).all())

    if not all(map(marks, matrices)):
        return labels
    return tuple(None if given is None else np.asarray(given).argmax(axis=1) for given in labels)


def _kind(found: NDArray[Any], argument: str, allowed: tuple[str, ...], classes: tuple[Any, ...] | None) -> str:
    if found.ndim > 2:
        raise InputError(f"has shape {found.shape}: give a vector or a matrix.", argument=argument)
    if found.ndim == 2 and found.shape[1] > 1:
        binary = found.dtype.kind in "biuf" and bool(np.isin(found, (0, 1)).all())
        if not binary and found.dtype.kind not in "fiu":
            raise InputError(f"has shape {found.shape}: give a matrix of 0 and 1.", argument=argument)
        return "multilabel" if binary else "numbers"
    if found.dtype.kind != "f" or (classes is not None and np.isin(found, classes).all()):
        return "classes"
    if found.ndim == 2 or (found != np.trunc(found)).any() or not np.isfinite(found).all():
        return "numbers"
    # Whole numbers in floating point, such as a column of a CSV with gaps: never guess between the two.
    if "numbers" in allowed:
        raise InputError(
            "holds whole numbers in floating point, which could be classes or numbers: give "
            + either(
                f"{argument}.astype(int) for classes, or {argument}[:, None] for regression.",
                "integers, with no decimal point, for classes, or an .npy file of shape (examples, 1) for regression.",
            ),
            argument=argument,
        )
    return "classes"


def _single(found: NDArray[Any], count: int, argument: str, classes: tuple[Any, ...] | None) -> Targets:
    values = found.reshape(count)
    check_labelled(values, argument)
    names, codes = np.unique(values, return_inverse=True)
    known = tuple(names.tolist())
    if classes is not None:
        # Test labels get the codes of the training classes.
        place = {name: i for i, name in enumerate(classes)}
        if lost := [name for name in known if name not in place]:
            raise InputError(
                f"holds class {lost[0]!r}, which no training example has: add examples of it, or leave it out.",
                argument=argument,
            )
        codes = np.array([place[name] for name in known])[codes]
        known = classes
    elif len(known) < 2:
        raise InputError(f"holds one class only ({known[0]!r}): it takes two to tell.", argument=argument)
    rows = np.arange(count, dtype=np.int64)
    return Targets("classes", count, rows, codes.reshape(-1).astype(np.int64), known)


def _several(found: NDArray[Any], count: int, argument: str, classes: tuple[Any, ...] | None) -> Targets:
    width = found.shape[1]
    if classes is not None and len(classes) != width:
        raise InputError(
            f"has {width} columns and the training labels {len(classes)}: give the same classes.", argument=argument
        )
    if found.sum(axis=0).astype(bool).sum() < 2 and classes is None:
        raise InputError(f"{argument} marks one class only: it takes two to tell.", argument=argument)
    rows, codes = np.nonzero(found)
    return Targets("multilabel", count, rows, codes, tuple(range(width)))


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows of features, each with one class.

    Attributes
    ----------
    features : ndarray, shape (rows, dimensions)
        As float32 or float64.
    codes : ndarray of int
        Class of each row, from 0 without gaps.
    counts : ndarray of int
        Rows of each class; none has 0.
    """

    features: NDArray[np.floating[Any]]
    codes: NDArray[np.int64]
    counts: NDArray[np.int64]

    @property
    def lone(self) -> int:
        """Number of classes with a single row."""
        return int((self.counts == 1).sum())

    @property
    def same(self) -> bool:
        """True if all rows are equal."""
        return bool((self.features == self.features[0]).all())


def read_rows(features: ArrayLike, labels: ArrayLike, measure: str) -> LabelledRows:
    """Check features and labels; an example with several labels becomes a row for each."""
    x = as_matrix(features, "features")
    targets = as_targets(labels, len(x), allowed=("classes", "multilabel"), measure=measure)
    if targets.kind == "multilabel":
        x = x[targets.rows]
    _, codes, counts = np.unique(targets.codes, return_inverse=True, return_counts=True)
    return LabelledRows(x, codes.reshape(-1).astype(np.int64), counts.astype(np.int64))


def as_test_targets(labels: Any, count: int, targets: Targets, measure: str, *, seen: bool = True) -> Targets:
    """Read the labels of test examples; with ``seen``, each must be of a class that a training example has."""
    found = as_targets(
        labels,
        count,
        allowed=(targets.kind,),
        measure=f"{measure} with such training labels",
        argument="test_labels",
        classes=targets.classes,
    )
    if not seen:
        return found
    known = np.bincount(targets.codes, minlength=len(targets.classes)) > 0
    if not len(found.codes):
        raise InputError("has no label: give examples that have one.", argument="test_labels")
    if lost := found.codes[~known[found.codes]].tolist():
        raise InputError(
            f"holds class {targets.classes[lost[0]]!r}, which no training example "
            "has: add examples of it, or leave it out.",
            argument="test_labels",
        )
    return found


def has_test(features: ArrayLike | None, labels: ArrayLike | None, argument: str) -> bool:
    """Tell if there are test examples; raise where only half of them is given."""
    if (features is None) != (labels is None):
        both = [argument, "test_labels"] if labels is None else ["test_labels", argument]
        raise InputError(f"{both[0]} is given without {both[1]}: give both, or neither.")
    return features is not None


def read_test(
    test: Any, labels: ArrayLike | None, train: Any, argument: str, read: Callable[..., Any] | None = None
) -> Any:
    """Return the test examples, as wide as those of the training; None where there are none."""
    if not has_test(test, labels, argument):
        return None
    found = (read or as_matrix)(test, argument)
    check_width(train, found, argument)
    return found


def check_width(train: Any, test: Any, argument: str) -> None:
    """Raise where test examples have another number of columns."""
    if train.shape[1] != test.shape[1]:
        raise InputError(
            f"has {test.shape[1]} columns and the training examples {train.shape[1]}: "
            "give the output of the same layer.",
            argument=argument,
        )


def as_number(value: object, argument: str, remedy: str, valid: Callable[[float], bool]) -> float:
    """Return a number that is valid; raise with the remedy for anything else, such as text.

    >>> as_number(1, "energy", "give a share", lambda v: 0 < v <= 1)
    1.0
    """
    if isinstance(value, int | float | np.number) and not isinstance(value, bool) and valid(float(value)):
        return float(value)
    raise InputError(remedy, argument=argument, value=value)


def grouped(pairs: Iterable[tuple[Any, str]]) -> dict[Any, list[str]]:
    """Return each text with the names that it is about.

    >>> grouped([("slow", "a"), ("wrong", "b"), ("slow", "c")])
    {'slow': ['a', 'c'], 'wrong': ['b']}
    """
    found: dict[Any, list[str]] = {}
    for text, name in pairs:
        found.setdefault(text, []).append(name)
    return found


def check_known(value: object, argument: str, known: Sequence[str]) -> None:
    """Raise for a value that is none of the known ones.

    >>> check_known("plain", "rows", ("plain", "unit"))
    """
    if value not in known:
        names = " or ".join(map(repr, known)) if len(known) == 2 else f"one of {', '.join(known)}"
        raise InputError(f"use {names}.", argument=argument, value=value)


def warn(*texts: str) -> None:
    """Warn the user whose code called a function of this package, however deep inside of it this is."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("curvewise."):
        level, frame = level + 1, frame.f_back
    for text in texts:
        warnings.warn(text, CurvewiseWarning, stacklevel=level)


def warn_of_lone_classes(count: int, so: str) -> None:
    """Warn the caller of the measure if there are classes with a single example."""
    if count:
        classes = "1 class has" if count == 1 else f"{count} classes have"
        warn(f"{classes} a single example, {so}: add examples of it, or leave it out.")
