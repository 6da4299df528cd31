"""Examples for networks: samples out of arrays, datasets and loaders, and examples that stay on a device."""

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

from curvewise.errors import InputError, arg
from curvewise.nn.augmentation import make_augmentation
from curvewise.nn.devices import own_generator
from curvewise.nn.task import Examples, choose_rows, is_amount, is_pair, standardised
from curvewise.nn.training import misfit, parse_views

ROUNDS = 10  # times that a sampler may go through its dataset: some never end
MOST_READY = 2**30  # bytes of inputs that are also kept normalised
SLOTS = 8  # batches on their way from the host to a device
ROOM = 0.5  # share of a device's free memory that images may take


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
        Per channel on the scale 0 to 1, for the normalisation of the network's images.
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
        """Return stored examples as the network is given them: images of bytes are normalised."""
        return self.normalised(x.to(torch.float32) / 255) if x.dtype == torch.uint8 else x

    def pixels(self, x: Tensor) -> Tensor:
        """Return stored images with values from 0 to 1, as perturbations take them."""
        if x.dtype == torch.uint8:
            return x.to(torch.float32) / 255
        if self.mean is None or self.std is None:
            return x
        return x * self.std[:, None, None] + self.mean[:, None, None]

    def normalised(self, pixels: Tensor) -> Tensor:
        """Return images with values from 0 to 1 as the network takes them."""
        if self.mean is None or self.std is None:
            return pixels
        return (pixels - self.mean[:, None, None]) / self.std[:, None, None]

    def batches(self, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield inputs as the network is given them, and their classes, a batch at a time."""
        for first in range(0, len(self), size):
            here = slice(first, first + size)
            yield self.given(self.x[here]), self.y[here]

    def take(self, some: int | NDArray[np.int64]) -> Sample:
        """Return the first so many examples, or those at some positions."""
        rows = np.arange(len(self))[:some] if isinstance(some, int) else some
        here = torch.from_numpy(rows).to(self.x.device)
        return replace(self, x=self.x[here], y=self.y[here], rows=self.rows[rows])

    def to(self, device: torch.device | str) -> Sample:
        """Return the same examples on another device."""
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
        Number of examples, or a share below 1; all by default.
    mean, std : float or sequence of float, optional
        Per channel, or one for all, for pixels from 0 to 1: the network takes (pixel − mean) / std.
        Taken from data if that is an :class:`Examples`.
    rng : int or Generator
        Determines the examples drawn, and their order.

    Raises
    ------
    InputError
        If data is empty, inputs and labels do not match, or labels are no classes.
    """
    if examples is not None and not is_amount(examples):
        raise misfit("examples", examples, "Give a whole number of at least 1, or a share below 1.")
    random = np.random.default_rng(rng)
    padding = None
    if isinstance(data, Examples):
        if labels is not None:
            raise InputError("the examples have labels of their own: leave it out.", argument="labels")
        mean, std = data.mean if mean is None else mean, data.std if std is None else std
        labels, padding = data.y, data.padding
        data = standardised(data)
    if labels is None and is_pair(data):
        data, labels = data
    if labels is not None:
        x, y, rows = _from_arrays(data, labels, examples, random)
    else:
        x, y, rows = _from_dataset(data, examples, random)
    # Bytes of images are kept, other whole numbers are tokens, and the rest becomes float32.
    if x.is_floating_point() or x.dtype == torch.bool:
        x = x.to(torch.float32)
    elif x.dtype != torch.uint8 or padding is not None:
        x = x.to(torch.int64)
    if x.ndim == 4:  # of images with one channel, strides alone tell the layout: use those of a new tensor
        x = torch.empty(x.shape, dtype=x.dtype).copy_(x)
    centre, spread = _scale(x, mean, std)
    return Sample(x, _classes(y), rows, centre, spread, padding)


def is_channels_last(shape: Sequence[int]) -> bool:
    """Return whether a batch has the shape of images with their channels behind height and width.

    >>> is_channels_last((100, 28, 28, 1)), is_channels_last((100, 1, 28, 28)), is_channels_last((100, 64, 4, 4))
    (True, False, False)
    """
    if len(shape) != 4:
        return False
    _, first, second, last = shape
    return last in (1, 3, 4) and first > 4 and second > last


def channels_last(shape: Sequence[int]) -> str:
    """Say that images have their channels last, and how to bring them forward."""
    return (
        f"has shape {' × '.join(map(str, shape))}, and looks like images with their channels last. Images are "
        "examples × channels × height × width: pass images.transpose(0, 3, 1, 2), of a tensor images.permute(0, 3, 1, "
        "2)."
    )


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
            raise InputError(f"holds {array.dtype}: give numbers.", argument="data")
        x = torch.from_numpy(np.ascontiguousarray(array[rows]))
    if isinstance(labels, Tensor):
        labels = labels.detach().cpu().numpy()
    return x, np.asarray(labels)[rows], rows


def _from_dataset(
    data: Any, examples: float | None, random: np.random.Generator
) -> tuple[Tensor, Any, NDArray[np.int64]]:
    if isinstance(data, Tensor | np.ndarray):
        raise InputError("is missing: data holds inputs only.", argument="labels", remedy=f"Pass {arg('labels')}.")
    sized = hasattr(data, "__getitem__") and hasattr(data, "__len__")
    if not sized and not isinstance(data, DataLoader | IterableDataset):
        given = f"is a {type(data).__name__}: give a torch Dataset, a DataLoader, or (inputs, labels)."
        raise InputError(given, argument="data")
    loader = data if isinstance(data, DataLoader) else DataLoader(data, batch_size=256)
    if isinstance(loader.dataset, IterableDataset):
        if examples is not None and examples < 1:
            raise misfit("examples", examples, "a stream has no share.", "Give a whole number.")
        x, y = _joined(loader, None if examples is None else int(examples))
        return x, y, np.arange(len(y), dtype=np.int64)
    dataset: Any = loader.dataset
    # A child of the generator decides what a sampler draws, so that which rows are chosen does not depend on it.
    known = sampled_rows(loader, len(dataset), int(random.spawn(1)[0].integers(2**31)))
    there = np.arange(len(dataset)) if known is None else known
    rows = there[choose_rows(len(there), examples, random)]

    def batches() -> Iterator[Any]:
        # The dataset is asked for the rows chosen only; the loader's own way to put examples together is kept.
        for first in range(0, len(rows), 256):
            items = [dataset[i] for i in rows[first : first + 256].tolist()]
            try:
                yield loader.collate_fn(items)
            except (RuntimeError, TypeError) as error:
                raise InputError(
                    f"gives examples that cannot be put together ({error}): add a transform that makes tensors of one "
                    "shape, or pass a DataLoader with a collate_fn that does.",
                    argument="data",
                ) from error

    x, y = _joined(batches(), None)
    return x, y, rows


def sampled_rows(loader: DataLoader[Any], size: int, seed: int) -> NDArray[np.int64] | None:
    """Return the positions that a loader's sampler gives, in order; None where that is the whole dataset."""
    sampler: Any = loader.sampler
    if loader.batch_sampler is not None:
        batches: Any = loader.batch_sampler
        sampler = batches.sampler if type(batches) is BatchSampler else batches
    if type(sampler) in (SequentialSampler, RandomSampler):
        drawn = getattr(sampler, "num_samples", size)
        if len(sampler.data_source) == drawn == size and getattr(sampler, "replacement", False) is False:
            return None  # every example once
    nested = sampler is loader.batch_sampler
    with own_generator(seed):
        found: Iterable[Any] = chain.from_iterable(sampler) if nested else iter(sampler)
        try:
            rows = np.array([int(i) for i in islice(found, ROUNDS * size)], dtype=np.int64)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"has a {type(sampler).__name__} that gives no positions of examples ({error}): pass the dataset, or a "
                "torch.utils.data.Subset of it.",
                argument="data",
            ) from error
    return np.unique(rows)


def _joined(batches: Iterable[Any], examples: int | None) -> tuple[Tensor, Any]:
    """Join inputs and labels of all batches, at most so many."""
    xs: list[Tensor] = []
    ys: list[Tensor] = []
    count = 0
    for batch in batches:
        problem = ""
        if not isinstance(batch, tuple | list) or len(batch) < 2:
            problem = f"gives {type(batch).__name__} for a batch: it must give (inputs, labels)."
        elif not isinstance(x := batch[0], Tensor):
            problem = f"gives inputs of {type(x).__name__}: add a transform that makes tensors."
        elif xs and x.shape[1:] != xs[0].shape[1:]:
            problem = (
                f"gives inputs of shape {tuple(xs[0].shape[1:])} in one batch and {tuple(x.shape[1:])} in another: "
                "bring all to one shape, such as with a collate_fn that pads to a fixed length."
            )
        if problem:
            raise InputError(problem, argument="data")
        xs.append(x)
        ys.append(torch.as_tensor(batch[1]))
        count += len(x)
        if examples is not None and count >= examples:
            break
    if not xs:
        raise InputError("is empty: give at least one example.", argument="data")
    return torch.cat(xs)[:examples], torch.cat(ys)[:examples].numpy()


def _classes(labels: Any) -> Tensor:
    found = np.asarray(labels)
    problem = ""
    if found.ndim != 1:
        problem = f"has shape {found.shape}: give one class for each example."
    elif found.dtype.kind == "f" and not np.equal(np.mod(found, 1), 0).all():
        problem = "holds numbers that are not whole: give classes from 0 on."
    elif found.dtype.kind not in "iufb":
        problem = f"holds {found.dtype}: give classes as numbers from 0 on."
    elif found.min() < 0:
        problem = f"holds {found.min()}: give classes from 0 on."
    if problem:
        raise InputError(problem, argument="labels")
    return torch.from_numpy(found.astype(np.int64))


def _scale(
    x: Tensor, mean: float | Sequence[float] | None, std: float | Sequence[float] | None
) -> tuple[Tensor | None, Tensor | None]:
    if (mean is None) != (std is None):
        raise InputError(f"{arg('mean')} and {arg('std')} belong together.", remedy="Give both or neither.")
    if mean is None or std is None or x.ndim != 4:
        return None, None
    mean, std = ((float(v),) * x.shape[1] if isinstance(v, int | float | np.number) else v for v in (mean, std))
    for name, values in (("mean", mean), ("std", std)):
        if len(values) != x.shape[1]:
            problem = f"{len(values)} values for images of {x.shape[1]} channel(s)."
            raise InputError(problem, argument=name, remedy="Give one for each.")
    if min(std) <= 0:
        raise misfit("std", list(std), "Give numbers above 0.")
    return torch.tensor(mean, dtype=torch.float32), torch.tensor(std, dtype=torch.float32)


Batch = Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]


class Resident:
    """Inputs and targets on a device.

    Attributes
    ----------
    x, y : Tensor
        All examples; images as bytes.
    kind : {"images", "tokens", "features"}
        Content of x.
    is_numbers : bool
        True if y holds numbers, not classes.
    mean, std : Tensor
        Per channel, for images.
    views : list of (float, int, bool)
        Weight, shift and mirroring of each view over which outputs are averaged; empty for the image alone.
    """

    def __init__(self, examples: Examples, device: torch.device) -> None:
        self.views = parse_views(examples.views, examples.shape) if examples.views else []
        self.kind = "images" if examples.x.ndim == 4 else "features"
        if examples.padding is not None:
            self.kind = "tokens"
        kept = {"images": None, "features": torch.float32, "tokens": torch.int64}[self.kind]
        self.x = torch.from_numpy(_writable(standardised(examples))).to(device, kept)
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
        return self._normalised(x.to(torch.float32) / 255)

    def _normalised(self, pixels: Tensor) -> Tensor:
        return (pixels - self.mean[:, None, None]) / self.std[:, None, None]

    @cached_property
    def ready(self) -> Tensor | None:
        """All inputs normalised, where that takes little memory; None where it does not."""
        if self.kind != "images":
            return self.x
        return self.prepared(self.x) if 4 * self.x.numel() <= MOST_READY else None

    def stored(self, examples: Tensor | slice) -> Tensor:
        """Return some inputs as they are stored, on the device."""
        return self.x[examples]

    def inputs(self, examples: Tensor | slice) -> Tensor:
        """Return some inputs, normalised."""
        return self.prepared(self.stored(examples)) if self.ready is None else self.ready[examples]

    def feed(self, count: int, specs: tuple[str, ...], steps: int) -> Feed | None:
        """Return what brings batches of so many images to the device; None where all are there."""
        return None

    def batcher(self, specs: tuple[str, ...]) -> Batch:
        """Return a function (example, seed, epoch, given) that gives augmented and normalised inputs.

        ``given`` are the stored inputs of these examples where a :class:`Feed` brings them, else None.
        """
        ready = None if specs else self.ready  # computed now, not while a step is being compiled
        if ready is not None:
            return lambda example, seed, epoch, given: ready[example]
        change = make_augmentation(specs, tuple(self.x.shape[1:]))

        def batch(example: Tensor, seed: Tensor, epoch: Tensor, given: Tensor | None) -> Tensor:
            stored = self.x[example] if given is None else given
            if stored.is_floating_point():  # normalised on its way
                return stored
            if not specs:
                return self.prepared(stored)
            return self._normalised(change(stored.to(torch.float32) / 255, seed, epoch, example, self.mean))

        return batch


class Streamed(Resident):
    """Images that stay on the host, in memory or in a mapped file; the targets are on the device.

    Attributes
    ----------
    host : ndarray of uint8, shape (examples, channels, height, width)
        All images.
    """

    def __init__(self, examples: Examples, device: torch.device) -> None:
        super().__init__(replace(examples, x=examples.x[:0]), device)
        self.host, self.device = examples.x, device

    @property
    def ready(self) -> None:
        """None: no input is kept normalised."""
        return

    def stored(self, examples: Tensor | slice) -> Tensor:
        """Gather some images on the host and copy them to the device."""
        rows = examples if isinstance(examples, slice) else examples.cpu().numpy()
        return torch.from_numpy(np.array(self.host[rows])).to(self.device)

    def feed(self, count: int, specs: tuple[str, ...], steps: int) -> Feed:
        """Return what brings batches of so many images to the device."""
        # Small data without augmentation are normalised ahead of the steps where they are resident: so here, as a
        # compiled step might round otherwise.
        ahead = not specs and 4 * self.host.size <= MOST_READY
        return Feed(self, count, steps, ahead=ahead)


class Feed:
    """Batches of images on their way to a device, gathered while earlier ones are trained on.

    Slots are used in turn. A slot is filled anew when the step that read it is over, so that the host is at most
    ``SLOTS`` steps ahead.

    Parameters
    ----------
    data : Streamed
        Where the images come from.
    count : int
        Images of a batch.
    steps : int
        Steps that may be taken before a line is laid, as a stopwatch does.
    ahead : bool
        Normalise images before the step.
    """

    def __init__(self, data: Streamed, count: int, steps: int, *, ahead: bool) -> None:
        cuda = data.device.type == "cuda"
        shape = (SLOTS, count, *data.host.shape[1:])
        self.data, self.ahead, self.at = data, ahead, 0
        self.line: NDArray[np.int64] = np.broadcast_to(np.zeros((1, count), dtype=np.int64), (steps, count))
        self.gathered = torch.empty(shape, dtype=torch.uint8, pin_memory=cuda)
        self._rooms = [slot.numpy() for slot in self.gathered]
        self.window = torch.zeros(shape, dtype=torch.float32 if ahead else torch.uint8, device=data.device)
        self._copies = torch.cuda.Stream(data.device) if cuda else None  # type: ignore[no-untyped-call]
        self._arrived = [torch.cuda.Event() for _ in range(SLOTS)] if cuda else []  # type: ignore[no-untyped-call]
        self._used = [torch.cuda.Event() for _ in range(SLOTS)] if cuda else []  # type: ignore[no-untyped-call]

    def put(self) -> None:
        """Bring the batch of the next step to its slot."""
        slot = self.at % SLOTS
        if self._copies is not None:
            self._used[slot].synchronize()
        rows = self.line[self.at % len(self.line)]
        # With the mode "raise" numpy would gather into memory of its own first.
        np.take(self.data.host, rows, axis=0, out=self._rooms[slot], mode="clip")
        if self._copies is None:
            self._copy(slot)
            return
        with torch.cuda.stream(self._copies):
            self._copy(slot)
            self._arrived[slot].record(self._copies)
        torch.cuda.current_stream(self.data.device).wait_event(self._arrived[slot])

    def _copy(self, slot: int) -> None:
        gathered, to = self.gathered[slot], self.window[slot]
        if self.ahead:
            to.copy_(self.data.prepared(gathered.to(to.device, non_blocking=True)))
        else:
            to.copy_(gathered, non_blocking=True)

    def taken(self) -> None:
        """Note that the step which reads the batch is under way."""
        if self._copies is not None:
            self._used[self.at % SLOTS].record(torch.cuda.current_stream(self.data.device))
        self.at += 1


def fits(examples: Examples, device: torch.device) -> bool:
    """Tell whether examples may lie on a device whole; only images are ever streamed."""
    if examples.x.ndim != 4 or examples.x.dtype != np.uint8:
        return True
    if device.type == "cuda":
        return examples.x.nbytes <= ROOM * torch.cuda.mem_get_info(device)[0]
    # On a CPU they are there already. A mapped file may not be written to, and would be copied to memory.
    return bool(examples.x.flags.writeable) or examples.x.nbytes <= MOST_READY


def _writable(array: NDArray[Any]) -> NDArray[Any]:
    """Copy an array that may not be written to: torch warns when it shares one."""
    return array if array.flags.writeable else array.copy()
