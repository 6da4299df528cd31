"""Features and the classes of their examples, read together."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.ranking._targets import as_targets
from curvewise.types import as_matrix


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
