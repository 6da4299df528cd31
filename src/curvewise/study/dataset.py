"""Examples to train on and to test on, whatever they came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.study.digest import data_digest


@dataclass(frozen=True, eq=False)
class Dataset:
    """A classification problem: training examples, and test examples where they come apart.

    Attributes
    ----------
    x : ndarray
        Images, (examples, channels, height, width) of uint8; features, (examples, features) of
        float; or tokens, (examples, length) of integers.
    y : ndarray of int, shape (examples,)
        Classes from 0 on.
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
    """

    x: NDArray[Any]
    y: NDArray[np.int64]
    test_x: NDArray[Any] | None = None
    test_y: NDArray[np.int64] | None = None
    classes: tuple[str, ...] = ()
    name: str = "data"
    padding: int | None = None
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
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
        for x_name, x, y_name, y in parts:
            _check_part(x_name, x, y_name, y)
        highest = max(int(y.max()) for _, _, _, y in parts)
        if not self.classes:
            object.__setattr__(self, "classes", tuple(map(str, range(highest + 1))))
        if highest >= len(self.classes):
            raise InputError(
                f"y holds class {highest}, but there are {len(self.classes)} names in classes: "
                "number the classes from 0 on."
            )

    @property
    def is_image(self) -> bool:
        """Whether the inputs are images."""
        return self.x.ndim == 4

    @cached_property
    def digest(self) -> str:
        """Hash of the training inputs and classes."""
        return data_digest([data_digest(self.x), data_digest(self.y)])

    def __repr__(self) -> str:
        held = "" if self.test_x is None else f" and {len(self.test_x):,} to test on"
        return (
            f"Dataset({self.name!r}: {len(self.x):,} examples{held}, "
            f"{len(self.classes)} classes, inputs {tuple(self.x.shape[1:])} {self.x.dtype})"
        )


def _check_part(x_name: str, x: NDArray[Any], y_name: str, y: NDArray[Any]) -> None:
    if not len(x):
        raise InputError(f"{x_name} is empty: there must be at least one example.")
    if y.shape != (len(x),):
        raise InputError(f"{y_name} has shape {y.shape}; {x_name} has {len(x)} examples.")
    if y.dtype.kind not in "iu" or y.min() < 0:
        raise InputError(f"{y_name} must hold whole numbers from 0 on, one class per example.")
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
