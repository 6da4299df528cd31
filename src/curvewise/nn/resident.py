"""Examples that live on the device, and how they are made ready for a network."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from curvewise.errors import InputError
from curvewise.nn.task import Examples

Batch = Callable[[Tensor, Tensor, Tensor], Tensor]

MOST_READY = 2**30  # bytes of inputs that are kept normalised, too


class Resident:
    """Inputs and targets on a device.

    Attributes
    ----------
    x, y : Tensor
        All examples; images as bytes.
    kind : {"images", "tokens", "features"}
        What x holds.
    is_numbers : bool
        Whether y holds numbers, not classes.
    mean, std : Tensor
        Per channel, for images.
    """

    def __init__(self, examples: Examples, device: torch.device) -> None:
        self.kind = "images" if examples.x.ndim == 4 else "features"
        if examples.padding is not None:
            self.kind = "tokens"
        x = torch.from_numpy(_writable(examples.x))
        if self.kind == "features":
            x = _standardised(x.to(torch.float64), examples).to(torch.float32)
        elif self.kind == "tokens":
            x = x.to(torch.int64)
        self.x = x.to(device)
        self.is_numbers = examples.is_numbers
        exact = torch.float32 if self.is_numbers else torch.int64
        self.y = torch.from_numpy(_writable(examples.y)).to(device, exact)
        channels = examples.x.shape[1] if self.kind == "images" else 1
        mean, std = examples.mean or (0.0,) * channels, examples.std or (1.0,) * channels
        self.mean = torch.tensor(mean, dtype=torch.float32, device=device)
        self.std = torch.tensor(std, dtype=torch.float32, device=device)

    @property
    def strata(self) -> NDArray[np.int64]:
        """The class of each example, so that shares are drawn class by class; numbers are one."""
        if self.is_numbers:
            return np.zeros(len(self.y), dtype=np.int64)
        return np.asarray(self.y.cpu())

    def prepared(self, x: Tensor) -> Tensor:
        """Normalise a batch of stored inputs, without augmentation."""
        if self.kind != "images":
            return x
        scaled = x.to(torch.float32) / 255
        return (scaled - self.mean[:, None, None]) / self.std[:, None, None]

    @cached_property
    def ready(self) -> Tensor | None:
        """All inputs normalised, where that takes little memory; None where it does not."""
        if self.kind != "images":
            return self.x
        return self.prepared(self.x) if 4 * self.x.numel() <= MOST_READY else None

    def inputs(self, examples: Tensor | slice) -> Tensor:
        """Some inputs, normalised."""
        return self.prepared(self.x[examples]) if self.ready is None else self.ready[examples]

    def batcher(self, specs: tuple[str, ...]) -> Batch:
        """A function (example, seed, epoch) that gives augmented and normalised inputs."""
        ready = None if specs else self.ready  # now, not while a step is being compiled
        if ready is not None:
            return lambda example, seed, epoch: ready[example]
        if not specs:
            return lambda example, seed, epoch: self.prepared(self.x[example])
        from curvewise.nn.augmentation import make_augmentation

        change = make_augmentation(specs, tuple(self.x.shape[1:]))

        def batch(example: Tensor, seed: Tensor, epoch: Tensor) -> Tensor:
            x = self.x[example].to(torch.float32) / 255
            changed = change(x, seed, epoch, example, self.mean)
            return (changed - self.mean[:, None, None]) / self.std[:, None, None]

        return batch


def find_device(device: str | torch.device) -> torch.device:
    """The device of that name, if there is one."""
    try:
        place = torch.device(device)
    except RuntimeError:
        place = None
    if place is None or place.type not in ("cpu", "cuda"):
        raise InputError(f"device={str(device)!r} is not known: use 'cpu', 'cuda' or 'cuda:1'.")
    gpus = torch.cuda.device_count()
    if place.type == "cuda" and (place.index or 0) >= gpus:
        seen = f"only {gpus} of them" if gpus else "no GPU"
        raise InputError(f"device={str(device)!r}, but torch sees {seen} here: use 'cpu'.")
    return place


def _standardised(x: Tensor, examples: Examples) -> Tensor:
    """Features on one scale; as they are where their mean and spread are not given."""
    if examples.mean is None or examples.std is None:
        return x
    mean, std = (torch.tensor(v, dtype=x.dtype) for v in (examples.mean, examples.std))
    return (x - mean) / std


def _writable(array: NDArray[Any]) -> NDArray[Any]:
    """Copy what may not be written to, which torch would not share."""
    return array if array.flags.writeable else array.copy()
