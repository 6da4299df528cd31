"""Examples to train on and to test on, whatever they came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.study._numbers import check_precision, number_targets
from curvewise.study.digest import data_digest

TARGETS = ("classes", "numbers")


@dataclass(frozen=True, eq=False)
class Dataset:
    """What is to be learnt: training examples, and test examples where they come apart.

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
        parts = [("x", self.x, "y", self.y)]
        if self.test_x is not None and self.test_y is not None:
            parts.append(("test_x", self.test_x, "test_y", self.test_y))
            if self.test_x.shape[1:] != self.x.shape[1:]:
                raise InputError(
                    f"test_x has inputs of shape {self.test_x.shape[1:]}, x of "
                    f"{self.x.shape[1:]}: bring both to one shape."
                )
        for x_name, x, _, _ in parts:
            _check_inputs(x_name, x)
        if self.is_numbers:
            self._settle_numbers()
            return
        if self.standardise:
            raise InputError("standardise=True is for numbers, and the targets are classes.")
        for x_name, x, y_name, y in parts:
            _check_classes(x_name, x, y_name, y)
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
            raise InputError("classes= is given, and targets='numbers' has none: leave it out.")
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
            raise InputError(
                f"test_y has numbers of shape {self.test_y.shape[1:]}, y of {self.y.shape[1:]}: "
                "bring both to one shape."
            )

    @property
    def is_numbers(self) -> bool:
        """Whether the targets are numbers."""
        return self.targets == "numbers"

    @property
    def is_image(self) -> bool:
        """Whether the inputs are images."""
        return self.x.ndim == 4

    @cached_property
    def digest(self) -> str:
        """Hash of the training inputs and targets."""
        return data_digest([data_digest(self.x), data_digest(self.y)])

    def __repr__(self) -> str:
        held = "" if self.test_x is None else f" and {len(self.test_x):,} to test on"
        what = f"{len(self.classes)} classes"
        if self.is_numbers:
            what = f"targets {tuple(self.y.shape[1:])}"
        return (
            f"Dataset({self.name!r}: {len(self.x):,} examples{held}, "
            f"{what}, inputs {tuple(self.x.shape[1:])} {self.x.dtype})"
        )


def _check_classes(x_name: str, x: NDArray[Any], y_name: str, y: NDArray[Any]) -> None:
    if y.dtype.kind == "f" or y.ndim > 1:
        raise InputError(
            f"{y_name} holds {y.dtype} of shape {y.shape}, which can be no classes: say "
            "targets='numbers' if these numbers are to be predicted, or pass whole numbers from 0 "
            "on, one class per example."
        )
    if y.shape != (len(x),):
        raise InputError(f"{y_name} has shape {y.shape}; {x_name} has {len(x)} examples.")
    if y.dtype.kind not in "iu" or y.min() < 0:
        raise InputError(f"{y_name} must hold whole numbers from 0 on, one class per example.")


def _check_inputs(x_name: str, x: NDArray[Any]) -> None:
    if not len(x):
        raise InputError(f"{x_name} is empty: there must be at least one example.")
    if x.ndim == 4 and x.dtype != np.uint8:
        raise InputError(
            f"{x_name} holds images of {x.dtype}: pass uint8 from 0 to 255 (multiply by 255 and "
            "round if they are fractions)."
        )
    if x.ndim not in (2, 4):
        raise InputError(
            f"{x_name} has shape {x.shape}: pass (examples, channels, height, width), (examples, "
            "features) or (examples, tokens)."
        )
    if x.dtype.kind == "f" and not np.isfinite(x).all():
        raise InputError(f"{x_name} holds NaN or infinity: drop or fill these values.")
    if x.dtype.kind not in "fiub":
        raise InputError(f"{x_name} is of type {x.dtype}: pass numbers.")
