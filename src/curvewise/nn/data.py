"""Labelled examples for a trained network, taken from whatever holds them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, RandomSampler, SequentialSampler

from curvewise.errors import InputError
from curvewise.nn.devices import own_generator
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
            name: value.to(device) for name in ("x", "y", "mean", "std") if (value := getattr(self, name)) is not None
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
        raise InputError(f"examples={examples!r}: give a whole number of at least 1, or a share below 1.")
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
    mean, std = ((float(v),) * x.shape[1] if isinstance(v, int | float | np.number) else v for v in (mean, std))
    for name, values in (("mean", mean), ("std", std)):
        if len(values) != x.shape[1]:
            raise InputError(
                f"{name} has {len(values)} values, images have {x.shape[1]} channel(s): give one for each."
            )
    if min(std) <= 0:
        raise InputError(f"std={list(std)}: give numbers above 0.")
    return torch.tensor(mean, dtype=torch.float32), torch.tensor(std, dtype=torch.float32)


# Examples out of datasets and loaders: which of them there are, and how they come together.

ROUNDS = 10
"""How often a sampler may go through its dataset: some never end."""

Integers = NDArray[np.int64]


def load(data: Any, examples: int | None, choose: Callable[[int], Integers], seed: int) -> tuple[Tensor, Any, Integers]:
    """Inputs, labels and positions out of a dataset or a loader.

    Parameters
    ----------
    data : Dataset or DataLoader
        Of a loader the examples that its sampler gives are taken, not their order.
    examples : int, optional
        How many of a stream.
    choose : callable
        Picks positions among so many.
    seed : int
        For samplers that draw which examples they give.
    """
    loader = data if isinstance(data, DataLoader) else DataLoader(_checked(data), batch_size=256)
    if isinstance(loader.dataset, IterableDataset):
        x, y = _joined(loader, examples)
        return x, y, np.arange(len(y), dtype=np.int64)
    dataset: Any = loader.dataset
    known = sampled_rows(loader, len(dataset), seed)
    rows = choose(len(dataset)) if known is None else known[choose(len(known))]
    parts = (rows[i : i + 256].tolist() for i in range(0, len(rows), 256))
    batches = (_collated(loader, [dataset[i] for i in part]) for part in parts)
    x, y = _joined(batches, None)
    return x, y, rows


def sampled_rows(loader: DataLoader[Any], size: int, seed: int) -> Integers | None:
    """Positions that a loader's sampler gives, in order; None where that is the whole dataset."""
    sampler: Any = loader.sampler
    if loader.batch_sampler is not None:
        batches: Any = loader.batch_sampler
        sampler = batches.sampler if type(batches) is BatchSampler else batches
    if _is_plain(sampler, size):
        return None
    nested = sampler is loader.batch_sampler
    with own_generator(seed):
        found: Iterable[Any] = chain.from_iterable(sampler) if nested else iter(sampler)
        try:
            rows = np.array([int(i) for i in islice(found, ROUNDS * size)], dtype=np.int64)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"data has a {type(sampler).__name__} that gives no positions of examples "
                f"({error}): pass the dataset, or a torch.utils.data.Subset of it."
            ) from error
    return np.unique(rows)


def _is_plain(sampler: Any, size: int) -> bool:
    """Whether a sampler gives every example of a dataset once."""
    if type(sampler) not in (SequentialSampler, RandomSampler):
        return False
    drawn = getattr(sampler, "num_samples", size)
    return len(sampler.data_source) == drawn == size and getattr(sampler, "replacement", False) is False


def _checked(data: Any) -> Any:
    if isinstance(data, IterableDataset) or (hasattr(data, "__getitem__") and hasattr(data, "__len__")):
        return data
    raise InputError(f"data is a {type(data).__name__}: give a torch Dataset, a DataLoader, or (inputs, labels).")


def _collated(loader: DataLoader[Any], items: list[Any]) -> Any:
    try:
        return loader.collate_fn(items)
    except (RuntimeError, TypeError) as error:
        raise InputError(
            f"data gives examples that cannot be put together ({error}): add a transform that "
            "makes tensors of one shape, or pass a DataLoader with a collate_fn that does."
        ) from error


def _joined(batches: Iterable[Any], examples: int | None) -> tuple[Tensor, Any]:
    """Inputs and labels of all batches, at most so many."""
    xs: list[Tensor] = []
    ys: list[Tensor] = []
    count = 0
    for x, y in _pairs(batches):
        if xs and x.shape[1:] != xs[0].shape[1:]:
            raise InputError(
                f"data gives inputs of shape {tuple(xs[0].shape[1:])} in one batch and "
                f"{tuple(x.shape[1:])} in another: bring all to one shape, such as with a "
                "collate_fn that pads to a fixed length."
            )
        xs.append(x)
        ys.append(y)
        count += len(x)
        if examples is not None and count >= examples:
            break
    if not xs:
        raise InputError("data is empty: give at least one example.")
    return torch.cat(xs)[:examples], torch.cat(ys)[:examples].numpy()


def _pairs(batches: Iterable[Any]) -> Iterator[tuple[Tensor, Tensor]]:
    """Inputs and labels of each batch, as tensors."""
    for batch in batches:
        if not isinstance(batch, tuple | list) or len(batch) < 2:
            raise InputError(f"data gives {type(batch).__name__} for a batch: it must give (inputs, labels).")
        if not isinstance(batch[0], Tensor):
            raise InputError(f"data gives inputs of {type(batch[0]).__name__}: add a transform that makes tensors.")
        yield batch[0], torch.as_tensor(batch[1])


# Examples that live on the device, and how they are made ready for a network.

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
