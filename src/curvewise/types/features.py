"""What a checkpoint says about labelled examples: its features, and its own classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError


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
        What was taken for what.

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
                    f"probabilities of {self.name!r} has {len(found)} rows and features "
                    f"{len(self)}: give one of each for every example."
                )
            put(self, "probabilities", found)

    def __len__(self) -> int:
        return len(self.features)

    def __repr__(self) -> str:
        rows, dimensions = self.features.shape
        return f"CheckpointFeatures({self.name!r}, {rows:,} examples × {dimensions:,})"

    def take(self, rows: NDArray[Any]) -> CheckpointFeatures:
        """Some of the examples: their positions, or a mask with an entry for each."""
        own = None if self.probabilities is None else self.probabilities[rows]
        return replace(self, features=self.features[rows], probabilities=own)


def as_matrix(values: ArrayLike, argument: str) -> NDArray[np.floating[Any]]:
    """A finite matrix with a row for each example, in float32 or float64; raise otherwise."""
    found = np.asanyarray(values)
    if found.ndim != 2:
        raise InputError(
            f"{argument} has shape {found.shape}: give a matrix with a row for each example. Pool "
            "or flatten further axes first."
        )
    if not found.size:
        raise InputError(f"{argument} has shape {found.shape}: it is empty.")
    if found.dtype.kind not in "fiub":
        raise InputError(f"{argument} holds {found.dtype}: give numbers.")
    if found.dtype not in (np.float32, np.float64):
        found = found.astype(np.float32 if found.dtype.itemsize < 4 else np.float64)
    with np.errstate(over="ignore", invalid="ignore"):  # a look at each only where the sum is odd
        odd = not np.isfinite(np.sum(found, dtype=np.float64))
    if odd and not np.isfinite(found).all():
        bad = int((~np.isfinite(found).all(axis=1)).sum())
        raise InputError(
            f"{argument} has NaN or infinite values in {bad} of {len(found)} rows: the network "
            "diverged or overflows in half precision. Extract them in float32, or leave it out."
        )
    if found.dtype == np.float64:  # fourth powers of these overflow or are 0
        largest = max(float(found.max()), -float(found.min()))
        if largest > 1e75 or 0 < largest < 1e-75:
            raise InputError(
                f"{argument} has values up to {largest:g} in size: multiply them by one number, so "
                "that they are of the order of 1."
            )
    return found
