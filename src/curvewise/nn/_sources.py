"""Where the values to be perturbed come from: stored inputs, stored or recomputed features."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from curvewise.nn.sample import Sample
from curvewise.nn.single import channels_last

Before = Callable[[Tensor], tuple[Tensor, ...]]
Integers = NDArray[np.int64]

MOST_READY = 2**30
"""Bytes of inputs that are kept normalised on a CPU."""
BUDGET = 2**31
"""Bytes of a layer's outputs that are kept on a CPU; on a GPU half of what is free."""


class Source(Protocol):
    """Gives what the second part of a network takes, by position of the examples in the sample.

    Everything given is a copy, which the network may change.
    """

    def values(self, rows: Tensor) -> tuple[Tensor, ...]:
        """What is perturbed, and what else is needed."""

    def first(self, rows: Tensor) -> Tensor:
        """What is perturbed."""


class Inputs:
    """Inputs as the network takes them.

    Parameters
    ----------
    sample : Sample
        On the device, or on the CPU where it is too large.
    device : device
        Where the network is.
    dtype : dtype, optional
        Of floating-point inputs, where the network is not of float32.
    last : bool
        Lay images out with the channels innermost.
    """

    def __init__(
        self, sample: Sample, device: torch.device, dtype: torch.dtype | None, last: bool
    ) -> None:
        self.sample, self.device, self.dtype = sample, device, dtype
        self.last = last and sample.x.ndim == 4
        small = 4 * sample.x.numel() <= MOST_READY
        self.ready = self._made(sample.x) if device.type == "cpu" and small else None

    @property
    def resident(self) -> bool:
        """Whether everything lies on the device."""
        return self.sample.x.device == self.device

    def stored(self, rows: Tensor) -> Tensor:
        """Examples as they are stored, on the device."""
        x = self.sample.x
        return x[rows.to(x.device)].to(self.device)

    def laid(self, x: Tensor) -> Tensor:
        """What the network takes, in its layout and precision."""
        if self.dtype is not None and x.is_floating_point():
            x = x.to(self.dtype)
        return channels_last(x) if self.last else x

    def values(self, rows: Tensor) -> tuple[Tensor, ...]:
        """What is perturbed: inputs."""
        return (self.first(rows),)

    def first(self, rows: Tensor) -> Tensor:
        """What is perturbed: inputs."""
        if self.ready is None:
            return self._made(self.stored(rows))
        return self.laid(_picked(self.ready, rows))

    def _made(self, stored: Tensor) -> Tensor:
        return self.laid(self.sample.given(stored))


class Stored:
    """What the first part of a network gave for some examples, computed once."""

    def __init__(self, parts: Sequence[Tensor], where: Tensor) -> None:
        self.parts, self.where = parts, where

    def values(self, rows: Tensor) -> tuple[Tensor, ...]:
        """What is perturbed, and what else is needed."""
        here = self.where[rows]
        return tuple(_picked(part, here) for part in self.parts)

    def first(self, rows: Tensor) -> Tensor:
        """What is perturbed."""
        return _picked(self.parts[0], self.where[rows])


class Computed:
    """What the first part of a network gives, computed whenever it is asked for."""

    def __init__(self, before: Before, inputs: Inputs) -> None:
        self.before, self.inputs = before, inputs

    def values(self, rows: Tensor) -> tuple[Tensor, ...]:
        """What is perturbed, and what else is needed."""
        # Some may share their memory, with each other or with the network.
        return tuple(value.clone() for value in self.before(self.inputs.first(rows)))

    def first(self, rows: Tensor) -> Tensor:
        """What is perturbed."""
        return self.values(rows)[0]


def store_features(found: Iterable[tuple[Tensor, ...]], rows: Tensor, size: int) -> Stored:
    """Put together what the first part gave, batch by batch, for some rows of so many examples."""
    parts: list[Tensor] = []
    first = 0
    for values in found:
        parts = parts or [_room(value, len(rows)) for value in values]
        for part, value in zip(parts, values, strict=True):
            part[first : first + len(value)] = value
        first += len(values[0])
    where = torch.zeros(size, dtype=torch.int64, device=rows.device)
    where[rows] = torch.arange(len(rows), device=rows.device)
    return Stored(parts, where)


def bytes_each(source: Computed, rows: Tensor) -> int:
    """Bytes of what the first part gives for one example."""
    return sum(v.numel() * v.element_size() for v in source.values(rows)) // len(rows)


def budget(device: torch.device) -> int:
    """Bytes that may be used for features."""
    return torch.cuda.mem_get_info(device)[0] // 2 if device.type == "cuda" else BUDGET


def groups(labels: Integers, pairs: str | None, block: int, most: int) -> list[NDArray[np.int64]]:
    """Split examples so that partners stay together, each part with at most so many examples.

    Parts can be larger where classes are, and all is one part where partners are of other classes.
    """
    everything = np.arange(len(labels))
    if pairs == "inter" or len(labels) <= most:
        return [everything]
    if pairs is None:
        size = max(most // block * block, block)
        return [everything[i : i + size] for i in range(0, len(labels), size)]
    found: list[list[Integers]] = []
    room = 0
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        if len(members) > room:
            found.append([])
            room = most
        found[-1].append(members)
        room -= len(members)
    return [np.concatenate(parts) for parts in found]


def _room(value: Tensor, count: int) -> Tensor:
    """Space for so many of what a batch of it is given, in its layout."""
    shape = (count, *value.shape[1:])
    last = value.ndim == 4 and value.is_contiguous(memory_format=torch.channels_last)
    layout = torch.channels_last if last and not value.is_contiguous() else torch.contiguous_format
    return torch.empty(shape, dtype=value.dtype, device=value.device, memory_format=layout)


def _picked(part: Tensor, rows: Tensor) -> Tensor:
    """Rows, in the layout of the whole."""
    if part.ndim == 4 and not part.is_contiguous():
        return part.permute(0, 2, 3, 1)[rows].permute(0, 3, 1, 2)
    return part[rows]
