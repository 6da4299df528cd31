"""The loop over magnitudes and examples: what a network answers to each perturbed example."""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from curvewise.nn.data import Sample
from curvewise.nn.evaluation import arithmetic, exact, is_told, logits_of
from curvewise.nn.lane import channels_last
from curvewise.response.networks.changes import each, mixed
from curvewise.response.networks.sites import Parts
from curvewise.response.networks.trial import Manner, Task

BLOCK = 256
"""Examples that are perturbed at a time where that costs more than a look-up."""
WRONG, RIGHT, BROKEN = 0, 1, 2
"""Codes of answers; the last is for outputs without a largest finite value."""

Codes = NDArray[np.uint8]
T = TypeVar("T")


def answer(parts: Parts, inputs: Inputs, task: Task, manner: Manner) -> tuple[Codes, Codes]:
    """Codes of the answers to unchanged examples, (N,), and at each magnitude, (M, N)."""
    with arithmetic(manner.device, manner.precision):
        work = _Work(parts, inputs, task, manner)
        found = np.empty((len(task.levels), len(task.labels)), dtype=np.uint8)
        for rows in work.groups():
            found[:, rows] = work.answers(rows)
        if parts.whole is not None:
            found[0] = work.plain(parts.whole)
    codes = np.repeat(found[:1], len(task.magnitudes), axis=0)  # magnitude 0 changes nothing
    codes[task.levels[1:]] = found[1:]
    return found[0], codes


class _Work:
    """What the steps share."""

    def __init__(self, parts: Parts, inputs: Inputs, task: Task, manner: Manner) -> None:
        self.parts, self.inputs, self.task, self.manner = parts, inputs, task, manner
        self.labels = torch.from_numpy(task.labels).to(manner.device)
        self.perturbation = task.perturbation
        self.deep = None if parts.before is None else Computed(parts.before, inputs)
        custom = not np.isfinite(self.perturbation.low)
        self.block = manner.batch
        least = min(BLOCK, len(task.labels))
        if custom:  # a function of one's own sees the same blocks whatever the batch
            self.block = least
        elif self.perturbation.pairs is None and self.deep is None:
            self.block = -(-least // manner.batch) * manner.batch
        self.threads = 1
        if parts.pure and not custom and manner.device.type == "cpu" and not manner.compiled:
            self.threads = torch.get_num_threads()
        self.most = len(task.labels)
        if self.deep is not None:
            each = bytes_each(self.deep, self._rows(np.arange(min(manner.batch, self.most))))
            self.most = budget(manner.device) // max(each, 1)

    def groups(self) -> list[Integers]:
        """Examples that are answered together; the perturbation is told of all of them before."""
        task = self.task
        if self.perturbation.learn is not None:
            known = self._known()
            with exact(self.manner.device):
                padding = self.inputs.sample.padding
                self.perturbation = self.perturbation.fitted(known, padding=padding)
        if self.deep is None:
            return [np.arange(len(task.labels))]
        return groups(task.labels, self.perturbation.pairs, self.block, self.most)

    def _known(self) -> Tensor:
        """What a perturbation learns from: all inputs, or as many features as there is room for."""
        sample = self.inputs.sample
        if self.deep is not None:
            return self._stored(self.deep, np.arange(min(self.most, len(sample)))).parts[0]
        whole = sample.x if self.perturbation.of == "tokens" else sample.given(sample.x)
        return whole.to(self.manner.device)

    def answers(self, rows: Integers) -> Codes:
        """Codes of the answers for some examples, (levels, examples)."""
        source = self._source(rows)
        if self.task.partners is not None:
            return self._in_pairs(source, rows)
        judge = self._judge(source, rows)
        return np.stack([self._one_by_one(source, rows, level, judge) for level in self.task.levels])

    def plain(self, whole: Body) -> Codes:
        """Codes of what the network itself answers to unchanged examples."""

        def body(rows: Tensor) -> Tensor:
            return coded(logits_of(whole(self.inputs.first(rows))), self.labels[rows])

        tape = self._table(np.arange(len(self.labels)))
        codes = torch.cat([body(rows) for rows in tape])
        return codes.cpu().numpy()[: len(self.labels)]

    def _source(self, rows: Integers) -> Source:
        if self.deep is None:
            return self.inputs
        if len(rows) > self.most:
            return self.deep
        return self._stored(self.deep, rows)

    def _stored(self, deep: Computed, rows: Integers) -> Stored:
        """What the first part of the network gives for some examples."""
        places = self._rows(rows)
        items = [(part,) for part in torch.split(places, self.manner.batch)]
        return store_features(self._mapped(deep.values, items), places, len(self.task.labels))

    def _in_pairs(self, source: Source, rows: Integers) -> Codes:
        """All magnitudes in one row, so that only the last batch has to be filled up."""
        assert self.task.partners is not None
        levels = np.repeat(self.task.levels, len(rows))
        own = np.tile(rows, len(self.task.levels))
        mates = np.where(levels < 0, own, self.task.partners[levels, own])
        shares = np.where(levels < 0, 0.0, self.task.magnitudes[levels]).astype(np.float32)
        change, labels, after = self.perturbation.change, self.labels, self.parts.after

        def body(rows: Tensor, mates: Tensor, shares: Tensor) -> Tensor:
            x, *others = source.values(rows)
            changed = _paired(change, x, shares, source.first(mates))
            return coded(logits_of(after(changed, *others)), labels[rows])

        tape = [self._table(values) for values in (own, mates, shares)]
        codes = self._run(body, tape)
        return codes.cpu().numpy().reshape(-1)[: len(own)].reshape(-1, len(rows))

    def _one_by_one(self, source: Source, rows: Integers, level: int, judge: Body) -> Codes:
        """One magnitude for all examples."""
        size = self.manner.batch

        def body(rows: Tensor) -> Tensor:
            values = self._changed(source, rows, level)
            labels = self.labels[rows]
            pieces = [
                judge(labels[i : i + size], *(v[i : i + size] for v in values)) for i in range(0, len(rows), size)
            ]
            return torch.cat(pieces)

        codes = self._each(body, [self._table(rows)])
        return codes.cpu().numpy().reshape(-1)[: len(rows)]

    def _judge(self, source: Source, rows: Integers) -> Body:
        """A function of classes and values that gives codes, compiled if that is asked for."""
        after = self.parts.after

        def judge(labels: Tensor, *values: Tensor) -> Tensor:
            return coded(logits_of(after(*values)), labels)

        first = self._table(rows)[0][: self.manner.batch]
        example = [self.labels[first], *source.values(first)]
        return self._compiled(judge, [value[None] for value in example]) or judge

    def _changed(self, source: Source, rows: Tensor, level: int) -> tuple[Tensor, ...]:
        """Values for the second part of the network, the first of them perturbed."""
        if level < 0:
            return source.values(rows)
        task, inputs = self.task, self.inputs
        how: dict[str, Any] = {
            "magnitude": float(task.magnitudes[level]),
            "seed": task.seed,
            "positions": rows + level * len(task.labels),  # fresh noise for each magnitude
            "fill": task.fill,
            "interpolation": task.interpolation,
        }
        images = self.perturbation.of == "images"
        x, *others = (inputs.stored(rows),) if images else source.values(rows)
        with exact(self.manner.device):
            if not images:
                return (self.perturbation.apply(x, **how), *others)
            pixels = self.perturbation.apply(inputs.sample.pixels(x), **how)
            return (inputs.laid(inputs.sample.normalised(pixels)),)

    def _run(self, body: Body, tape: Sequence[Tensor]) -> Tensor:
        """Answers to every row of the tables, compiled if that is asked for."""
        quick = self._compiled(body, tape)
        if quick is not None and self.manner.device.type == "cuda":
            try:
                return replayed(quick, tape, self.manner.advance)
            except RuntimeError:
                self.manner.notes.append("No CUDA graph could be recorded of the network.")
        return self._each(quick or body, tape)

    def _compiled(self, body: Body, tape: Sequence[Tensor]) -> Body | None:
        """The function compiled, or None where it should not or cannot be."""
        if not (self.manner.compiled and self.inputs.resident):
            return None
        try:
            return compiled(body, tape)
        except Exception as error:  # whatever a compiler may come across
            self.manner.notes.append(f"The network could not be compiled ({type(error).__name__}) and ran as it is.")
            return None

    def _each(self, body: Body, tape: Sequence[Tensor]) -> Tensor:
        """Answers to every row of the tables."""
        found = []
        for code in self._mapped(body, list(zip(*tape, strict=True))):
            found.append(code)
            self.manner.advance(len(code))
        return torch.stack(found)

    def _mapped(self, function: Callable[..., T], items: Sequence[tuple[Tensor, ...]]) -> Iterator[T]:
        """What a function gives for each item, in threads where the network allows it."""
        if self.threads == 1 or len(items) == 1:
            yield from (function(*item) for item in items)
            return

        def call(item: tuple[Tensor, ...]) -> T:
            with arithmetic(self.manner.device, self.manner.precision):
                return function(*item)

        threads = torch.get_num_threads()
        start: dict[str, Any] = {"initializer": torch.set_num_threads, "initargs": (1,)}
        try:
            with ThreadPoolExecutor(self.threads, **start) as pool:
                yield from pool.map(call, items)
        finally:
            torch.set_num_threads(threads)  # the workers' choice is that of later threads, too

    def _table(self, values: NDArray[Any]) -> Tensor:
        """Values in rows of a block each, the last one filled up."""
        lacking = -len(values) % self.block
        filled = np.concatenate([values, np.resize(values, lacking)])
        return torch.from_numpy(filled.reshape(-1, self.block)).to(self.manner.device)

    def _rows(self, rows: Integers) -> Tensor:
        return torch.from_numpy(rows).to(self.manner.device)


def _paired(change: Callable[..., Tensor], x: Tensor, shares: Tensor, partner: Tensor) -> Tensor:
    """Change a copy of examples and their partners, in at least float32."""
    if change is mixed and x.dtype == torch.float32:
        return x.lerp_(partner, each(shares, x.ndim))  # the same, without copies of its own
    half = x.dtype in (torch.float16, torch.bfloat16)
    kind = torch.float32 if half else x.dtype
    with exact(x.device):
        return change(x.to(kind), shares.to(kind), partner.to(kind)).to(x.dtype)


def coded(logits: Tensor, labels: Tensor) -> Tensor:
    """Whether the largest logit is that of the class; a code of its own where there is none."""
    right = (logits.argmax(dim=1) == labels).to(torch.uint8)
    return torch.where(is_told(logits), right, BROKEN)


# Where the values to be perturbed come from: stored inputs, stored or recomputed features.

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

    def __init__(self, sample: Sample, device: torch.device, dtype: torch.dtype | None, last: bool) -> None:
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


# Compiled steps, and steps recorded as CUDA graphs.

Body = Callable[..., Tensor]

WARM = 3
"""Steps before a recording, in which libraries take their workspaces."""
_NUMBER = itertools.count()


def compiled(body: Body, tape: Sequence[Tensor]) -> Body:
    """Compile a function of the rows of tables, and call it once to see that it works.

    It gets a name of its own, because torch compiles a function only so many times.
    """
    code = body.__code__.replace(co_name=f"{body.__name__}_{next(_NUMBER)}")
    named = types.FunctionType(code, body.__globals__, code.co_name, None, body.__closure__)
    quick: Body = torch.compile(named, dynamic=False)
    quick(*(table[0] for table in tape))
    return quick


def replayed(body: Body, tape: Sequence[Tensor], advance: Callable[[float], None]) -> Tensor:
    """What a function gives for each row of tables on a GPU, without waiting in between.

    A step is recorded as a CUDA graph that finds its own place in the tables.
    """
    device, (count, width) = tape[0].device, tape[0].shape
    codes = torch.zeros((count, width), dtype=torch.uint8, device=device)
    cursor = torch.zeros(1, dtype=torch.int64, device=device)

    def step() -> None:
        code = body(*(table.index_select(0, cursor)[0] for table in tape))
        codes.index_copy_(0, cursor, code[None])
        cursor.add_(1)

    stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(stream):
        for _ in range(WARM):
            step()
            cursor.zero_()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
        step()
    for _ in range(count):
        graph.replay()
        advance(width)
    return codes
