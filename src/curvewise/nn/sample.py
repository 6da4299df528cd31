"""Labelled examples for a trained network, taken from whatever holds them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import IterableDataset

from curvewise.errors import InputError
from curvewise.nn._loading import load
from curvewise.nn.task import Examples, choose_rows, is_amount, is_pair, standardised


@dataclass(frozen=True, eq=False)
class Sample:
    """Examples on a device.

    Attributes
    ----------
    x : Tensor
        Images of uint8, or whatever the network takes: floating point, or tokens.
    y : Tensor of int64
        Their classes.
    rows : ndarray of int
        Their positions in the data they were taken from.
    mean, std : Tensor, optional
        Per channel on the scale 0 to 1, what the network's images are normalised with.
    padding : int, optional
        The token that stands for nothing, where x holds tokens.
    """

    x: Tensor
    y: Tensor
    rows: NDArray[np.int64]
    mean: Tensor | None = None
    std: Tensor | None = None
    padding: int | None = None

    def __len__(self) -> int:
        return len(self.y)

    @property
    def classes(self) -> int:
        """The number of classes seen: the largest class plus one."""
        return int(self.y.max()) + 1

    def given(self, x: Tensor) -> Tensor:
        """What the network is given for stored examples: images of bytes are normalised."""
        return self.normalised(x.to(torch.float32) / 255) if x.dtype == torch.uint8 else x

    def pixels(self, x: Tensor) -> Tensor:
        """Stored images with values from 0 to 1, for what changes images."""
        if x.dtype == torch.uint8:
            return x.to(torch.float32) / 255
        if self.mean is None or self.std is None:
            return x
        return x * self.std[:, None, None] + self.mean[:, None, None]

    def normalised(self, pixels: Tensor) -> Tensor:
        """Images with values from 0 to 1 as the network takes them."""
        if self.mean is None or self.std is None:
            return pixels
        return (pixels - self.mean[:, None, None]) / self.std[:, None, None]

    def batches(self, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """What the network is given, and the classes, a batch at a time."""
        for first in range(0, len(self), size):
            here = slice(first, first + size)
            yield self.given(self.x[here]), self.y[here]

    def take(self, some: int | NDArray[np.int64]) -> Sample:
        """The first so many examples, or those at some positions."""
        rows = np.arange(len(self))[:some] if isinstance(some, int) else some
        here = torch.from_numpy(rows).to(self.x.device)
        return replace(self, x=self.x[here], y=self.y[here], rows=self.rows[rows])

    def to(self, device: torch.device | str) -> Sample:
        """The same on another device."""
        moved = {
            name: value.to(device)
            for name in ("x", "y", "mean", "std")
            if (value := getattr(self, name)) is not None
        }
        return replace(self, **moved)


def draw_sample(
    data: Any,
    labels: Any = None,
    *,
    examples: float | None = None,
    mean: float | Sequence[float] | None = None,
    std: float | Sequence[float] | None = None,
    rng: int | np.random.Generator = 0,
) -> Sample:
    """Take examples at random, without repetition, and put them in memory, on the CPU.

    Parameters
    ----------
    data : Dataset, DataLoader, Examples, (inputs, labels), Tensor or ndarray
        Inputs with their classes. Images of uint8 are pixels; of floating point, they are what the
        network takes. Of a DataLoader the examples that its sampler gives and the way to put them
        together are used, not the order; a stream (IterableDataset) is read from its beginning. A
        list of tuples is a dataset.
    labels : array_like of int, optional
        Classes, where data holds inputs only.
    examples : int or float, optional
        How many, or below 1 which share; all by default.
    mean, std : float or sequence of float, optional
        Per channel, or one for all, for pixels from 0 to 1: the network takes (pixel − mean) / std.
        Taken from data if that is an :class:`Examples`.
    rng : int or Generator
        Decides which examples, and their order.

    Raises
    ------
    InputError
        If data is empty, inputs and labels do not match, or labels are no classes.
    """
    if examples is not None and not is_amount(examples):
        raise InputError(
            f"examples={examples!r}: give a whole number of at least 1, or a share below 1."
        )
    random = np.random.default_rng(rng)
    padding = None
    if isinstance(data, Examples):
        mean, std = mean or data.mean, std or data.std
        labels, padding = data.y, data.padding
        data = standardised(data)
    if labels is None and is_pair(data):
        data, labels = data
    if labels is not None:
        x, y, rows = _from_arrays(data, labels, examples, random)
    else:
        x, y, rows = _from_dataset(data, examples, random)
    x = _converted(x, padding)
    centre, spread = _scale(x, mean, std)
    return Sample(x, _classes(y), rows, centre, spread, padding)


def _converted(x: Tensor, padding: int | None) -> Tensor:
    """Bytes of images as they are, other whole numbers as tokens, the rest as float32."""
    if x.is_floating_point() or x.dtype == torch.bool:
        x = x.to(torch.float32)
    elif x.dtype != torch.uint8 or padding is not None:
        x = x.to(torch.int64)
    # Of images with one channel, strides alone tell the layout: have those of a new tensor.
    return torch.empty(x.shape, dtype=x.dtype).copy_(x) if x.ndim == 4 else x


def _from_arrays(
    data: Any, labels: Any, examples: float | None, random: np.random.Generator
) -> tuple[Tensor, Any, NDArray[np.int64]]:
    if len(data) != len(labels):
        raise InputError(f"data has {len(data):,} examples and labels {len(labels):,}.")
    rows = choose_rows(len(data), examples, random)
    if isinstance(data, Tensor):
        x = data.detach()[torch.from_numpy(rows).to(data.device)].cpu()
    else:
        array = np.asarray(data)
        if array.dtype.kind not in "fiub":
            raise InputError(f"data holds {array.dtype}: give numbers.")
        x = torch.from_numpy(np.ascontiguousarray(array[rows]))
    if isinstance(labels, Tensor):
        labels = labels.detach().cpu().numpy()
    return x, np.asarray(labels)[rows], rows


def _from_dataset(
    data: Any, examples: float | None, random: np.random.Generator
) -> tuple[Tensor, Any, NDArray[np.int64]]:
    if isinstance(data, Tensor | np.ndarray):
        raise InputError("labels is missing: data holds inputs only. Pass labels=.")
    stream = isinstance(getattr(data, "dataset", data), IterableDataset)
    if stream and examples is not None and examples < 1:
        raise InputError(f"examples={examples!r}: a stream has no share, give a whole number.")
    count = int(examples) if stream and examples is not None else None
    seed = int(random.spawn(1)[0].integers(2**31))
    return load(data, count, lambda there: choose_rows(there, examples, random), seed)


def _classes(labels: Any) -> Tensor:
    found = np.asarray(labels)
    if found.ndim != 1:
        raise InputError(f"labels has shape {found.shape}: give one class for each example.")
    if found.dtype.kind == "f" and not np.equal(np.mod(found, 1), 0).all():
        raise InputError("labels holds numbers that are not whole: give classes from 0 on.")
    if found.dtype.kind not in "iufb":
        raise InputError(f"labels holds {found.dtype}: give classes as numbers from 0 on.")
    if found.min() < 0:
        raise InputError(f"labels holds {found.min()}: give classes from 0 on.")
    return torch.from_numpy(found.astype(np.int64))


def _scale(
    x: Tensor, mean: float | Sequence[float] | None, std: float | Sequence[float] | None
) -> tuple[Tensor | None, Tensor | None]:
    if (mean is None) != (std is None):
        raise InputError("mean and std belong together: give both or neither.")
    if mean is None or std is None or x.ndim != 4:
        return None, None
    mean, std = (
        (float(v),) * x.shape[1] if isinstance(v, int | float | np.number) else v
        for v in (mean, std)
    )
    for name, values in (("mean", mean), ("std", std)):
        if len(values) != x.shape[1]:
            raise InputError(
                f"{name} has {len(values)} values, images have {x.shape[1]} channel(s): give one "
                "for each."
            )
    if min(std) <= 0:
        raise InputError(f"std={list(std)}: give numbers above 0.")
    return torch.tensor(mean, dtype=torch.float32), torch.tensor(std, dtype=torch.float32)
