"""What a network is to answer, and how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from curvewise.nn._perturbation import Perturbation
from curvewise.types import FloatArray

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be answered.

    Attributes
    ----------
    labels : ndarray of int, shape (N,)
        Classes of the examples.
    perturbation : Perturbation
        What is done to them.
    magnitudes : ndarray, shape (M,)
        How much.
    partners : ndarray of int, shape (M, N), or None
        With what, for perturbations of pairs.
    seed : int
        Decides noise and places.
    fill, interpolation
        How images are changed.
    """

    labels: Integers
    perturbation: Perturbation
    magnitudes: FloatArray
    partners: Integers | None
    seed: int
    fill: float = 0.0
    interpolation: str = "bilinear"

    @property
    def levels(self) -> list[int]:
        """Which magnitudes are to be measured: −1 for none, and all that are not 0."""
        return [-1, *np.flatnonzero(self.magnitudes).tolist()]


@dataclass(frozen=True, eq=False)
class Manner:
    """How it is to be done.

    Attributes
    ----------
    device, precision
        Where, and in what arithmetic.
    batch : int
        Examples given to the network at a time.
    compiled : bool
        Whether to compile.
    advance : callable
        Told how many examples were answered.
    notes : list of str
        Takes what a reader should know.
    """

    device: torch.device
    precision: str
    batch: int
    compiled: bool
    advance: Callable[[float], None]
    notes: list[str] = field(default_factory=list)
