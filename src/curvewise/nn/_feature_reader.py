"""What a checkpoint of any format does: take batches, give rows of features and probabilities."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from curvewise.nn._feature_items import is_torch
from curvewise.nn._own_preprocessing import Prepare

OUTPUT = "output"
"""Name of the layer where what the network itself gives is taken."""


Matrix = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Given:
    """One batch as a network takes it.

    Attributes
    ----------
    x : ndarray, Tensor or list
        Inputs, (examples, ...), as tensors for networks of torch; for a function of one's own,
        whatever it takes.
    mask : ndarray or Tensor, shape (examples, tokens), optional
        False for tokens that stand for nothing.
    """

    x: Any
    mask: Any = None

    def __len__(self) -> int:
        return len(self.x)

    def part(self, first: int, last: int) -> Given:
        """Some of its examples."""
        return Given(self.x[first:last], None if self.mask is None else self.mask[first:last])


@dataclass(frozen=True, eq=False)
class Found:
    """What a network gave for one batch.

    Attributes
    ----------
    features : dict of str to ndarray
        Rows by layer; a row for each example, or for each place where tokens are asked for.
    probabilities : ndarray, shape (examples, classes), optional
        Of its own classes.
    places : dict of str to ndarray of int
        How many rows each example has, by layer, where tokens are asked for.
    """

    features: dict[str, Matrix]
    probabilities: Matrix | None = None
    places: dict[str, NDArray[np.int64]] = field(default_factory=dict)


@dataclass(frozen=True)
class Taken:
    """What of a network is wanted.

    Attributes
    ----------
    layer : str, optional
        A layer's name, or ``"all"``; by default what enters the last linear layer.
    pool : str
        One of :data:`curvewise.nn._pooling.POOLS`.
    """

    layer: str | None = None
    pool: str = "auto"


class Reader(Protocol):
    """A network of any format, ready to be run.

    Attributes
    ----------
    notes : list of str
        What was taken for what.
    parameters : int, optional
        Number of its weights.
    preprocessing : Preprocessing or callable, optional
        Its own, where it says what that is.
    sides : (height, width), optional
        The one size of images that it takes.
    most : int, optional
        The largest batch that it takes.
    """

    notes: list[str]
    parameters: int | None
    preprocessing: Prepare | None
    sides: tuple[int, int] | None
    most: int | None

    def running(self) -> AbstractContextManager[None]:
        """For as long as batches are read: on its device, in evaluation mode."""

    def start(self, given: Given) -> None:
        """Find out with a first batch which layers there are; raise where that fails."""

    def read(self, given: Given) -> Found:
        """Run it on a batch."""

    def gflops(self, given: Given) -> float | None:
        """10⁹ operations for one example of a batch; None where they cannot be counted."""

    def digest(self) -> str | None:
        """A hash of its weights; None where they cannot be told."""


def as_rows(values: Any) -> Matrix:
    """An array or tensor as an array of float32 in the memory of the computer."""
    if is_torch(values, "Tensor"):
        values = values.detach().to("cpu").float().numpy()
    return np.asarray(values, dtype=np.float32)
