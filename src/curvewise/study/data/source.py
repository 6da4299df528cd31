"""Examples as they were found: labels of any kind, and inputs that are read when needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.learning.partition import partition_training_set
from curvewise.study.data.dataset import Dataset, number_targets
from curvewise.text import arg, brief, list_names, suggest
from curvewise.types.predictions import check_labelled

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
    train, test : DataPart
        The examples; None where the data has no test part.
    classes : tuple of str, optional
        Names of the classes 0, 1, …, where the data tells them.
    name : str
        What the data is called.
    padding : int, optional
        The token that stands for nothing.
    notes : list of str
        What was taken for what; reading may add to it.
    """

    train: DataPart
    test: DataPart | None = None
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
    notes = source.notes
    if source.test is None and test_examples is not None:
        raise InputError(
            f"{arg('data.test_examples', test_examples)}: {source.name} has no test part; a study holds out a share of "
            "the examples (design.test)."
        )
    parts = [part for part in (source.train, source.test) if part is not None]
    about: dict[str, Any] = {"name": source.name, "padding": source.padding}
    if targets == "numbers":
        y: list[NDArray[Any]] = [number_targets(part.labels, "The labels") for part in parts]
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
        value = self._take(key)
        if value is not None and (not isinstance(value, str) or not value):
            raise InputError(f"{arg(f'data.{key}', value)}: give a text.")
        return value

    def texts(self, key: str) -> list[str] | None:
        """One text or a list of them."""
        value = self._take(key)
        if value is None:
            return None
        found = [value] if isinstance(value, str) else value
        if not isinstance(found, Sequence) or not found or not all(isinstance(v, str) for v in found):
            raise InputError(f"{arg(f'data.{key}', value)}: give a text, or a list of texts.")
        return list(found)

    def one_of(self, key: str, allowed: Sequence[Any], default: Any = None) -> Any:
        """One of a few values."""
        value = self._take(key)
        if value is not None and value not in allowed:
            raise InputError(f"{arg(f'data.{key}', value)}: use one of {list_names(allowed)}.")
        return default if value is None else value

    def count(self, key: str, least: int = 1) -> int | None:
        """A whole number, not below the least."""
        value = self._take(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InputError(f"{arg(f'data.{key}', value)}: give a whole number from {least} on.")
        return value

    def size(self, key: str) -> tuple[int, int] | None:
        """Height and width, or one number for both."""
        value = self._take(key)
        if value is None:
            return None
        pair = [value, value] if isinstance(value, int) else value
        right = isinstance(pair, Sequence) and len(pair) == 2
        if not right or any(isinstance(v, bool) or not isinstance(v, int) or v < 1 for v in pair):
            raise InputError(f"{arg(f'data.{key}', value)}: give pixels, such as 32 or [32, 48].")
        return pair[0], pair[1]

    def path(self, key: str) -> Path | None:
        """A file or folder that is there; relative ones start in the study's folder."""
        value = self._take(key)
        if value is None:
            return None
        try:
            path = self.folder / Path(value).expanduser()
            there = path.exists()
        except (TypeError, ValueError, OSError, RuntimeError) as error:
            raise InputError(f"{arg(f'data.{key}', value)} is not a path: {error}.") from error
        if not there:
            where = "" if Path(value).is_absolute() else f" in {self.folder.resolve()}"
            raise InputError(f"{arg(f'data.{key}', str(value))}: there is no such file or folder{where}.")
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

    def _take(self, key: str) -> Any:
        self._taken.add(key)
        return self._options.get(key)
