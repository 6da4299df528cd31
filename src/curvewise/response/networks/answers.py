"""The loop over magnitudes and examples: answers of a network to perturbed examples.

Values to perturb come from stored inputs, or, at a layer, from features that were computed once or are computed again
where they do not fit into memory. On a GPU steps are compiled and recorded as CUDA graphs.
"""

from __future__ import annotations

import itertools
import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from curvewise.nn.data import Sample
from curvewise.nn.lane import channels_last
from curvewise.nn.networks import arithmetic, exact, has_answer, logits_of
from curvewise.response.networks.perturbations import Perturbation, mix, per_example
from curvewise.response.networks.sites import NetworkHalves
from curvewise.response.networks.trial import ExecutionPlan, Trial

Codes = NDArray[np.uint8]
Integers = NDArray[np.int64]
Before = Callable[[Tensor], tuple[Tensor, ...]]
Body = Callable[..., Tensor]
T = TypeVar("T")

WRONG, RIGHT, BROKEN = 0, 1, 2
"""Codes of answers; the last is for outputs without a largest finite value."""
# Examples that are perturbed at a time where that costs more than a look-up.
BLOCK = 256
# Bytes of inputs that are kept normalised on a CPU.
MOST_READY = 2**30
# Bytes of a layer's outputs that are kept on a CPU; on a GPU half of what is free.
BUDGET = 2**31
# Steps before a recording, in which libraries take their workspaces.
WARM = 3
_NUMBER = itertools.count()


def answer(halves: NetworkHalves, inputs: NetworkInputs, trial: Trial, plan: ExecutionPlan) -> tuple[Codes, Codes]:
    """Return codes of the answers to unchanged examples, (N,), and at each magnitude, (M, N)."""
    with arithmetic(plan.device, plan.precision):
        loop = _Loop(halves, inputs, trial, plan)
        found = np.empty((len(trial.levels), len(trial.labels)), dtype=np.uint8)
        for rows in loop.groups():
            found[:, rows] = loop.answers(rows)
        if halves.whole is not None:
            found[0] = loop.plain(halves.whole)
    codes = np.repeat(found[:1], len(trial.magnitudes), axis=0)  # magnitude 0 changes nothing
    codes[trial.levels[1:]] = found[1:]
    return found[0], codes


class _Loop:
    """State of the loop over examples and magnitudes."""

    def __init__(self, halves: NetworkHalves, inputs: NetworkInputs, trial: Trial, plan: ExecutionPlan) -> None:
        self.halves, self.inputs, self.trial, self.plan = halves, inputs, trial, plan
        self.labels = torch.from_numpy(trial.labels).to(plan.device)
        _ = inputs.ready  # made once, before threads ask for it
        self.perturbation = trial.perturbation
        self.deep = None if halves.before is None else ComputedFeatures(halves.before, inputs)
        custom = not np.isfinite(self.perturbation.low)
        self.block = plan.batch
        least = min(BLOCK, len(trial.labels))
        if custom:  # a function of one's own sees the same blocks whatever the batch
            self.block = least
        elif self.perturbation.pairs is None and self.deep is None:
            # A whole number of batches of at least BLOCK examples.
            self.block = -(-least // plan.batch) * plan.batch
        self.threads = 1
        # Only traced networks and our own changes are known to be free of state that threads would share.
        if halves.pure and not custom and plan.device.type == "cpu" and not plan.compiled:
            self.threads = torch.get_num_threads()
        self.most = len(trial.labels)
        if self.deep is not None:
            some = min(plan.batch, self.most)
            tried = self.deep.values(self._rows(np.arange(some)))
            # As many examples as there is room for the outputs of the first half.
            each = sum(v.numel() * v.element_size() for v in tried) // some
            self.most = budget(plan.device) // max(each, 1)

    def groups(self) -> list[Integers]:
        """Split the examples into parts that are answered together; the perturbation learns from all of them first."""
        trial = self.trial
        if self.perturbation.learn is not None:
            known = self._known()
            with exact(self.plan.device):
                padding = self.inputs.sample.padding
                self.perturbation = self.perturbation.fitted(known, padding=padding)
        if self.deep is None:
            return [np.arange(len(trial.labels))]
        return groups(trial.labels, self.perturbation.pairs, self.block, self.most)

    def _known(self) -> Tensor:
        """Return the sample for the perturbation: all inputs, or as many features as there is room for."""
        sample = self.inputs.sample
        if self.deep is not None:
            return self._stored(self.deep, np.arange(min(self.most, len(sample)))).parts[0]
        whole = sample.x if self.perturbation.of == "tokens" else sample.given(sample.x)
        return whole.to(self.plan.device)

    def answers(self, rows: Integers) -> Codes:
        """Return codes of the answers for some examples, (levels, examples)."""
        source = self._source(rows)
        if self.trial.partners is not None:
            return self._in_pairs(source, rows)
        judge = self._judge(source, rows)
        return np.stack([self._one_by_one(source, rows, level, judge) for level in self.trial.levels])

    def plain(self, whole: Body) -> Codes:
        """Return codes of the answers of the whole network to unchanged examples."""

        def body(rows: Tensor) -> Tensor:
            return coded(logits_of(whole(self.inputs.first(rows))), self.labels[rows])

        tape = self._table(np.arange(len(self.labels)))
        codes = torch.cat([body(rows) for rows in tape])
        return codes.cpu().numpy()[: len(self.labels)]

    def _source(self, rows: Integers) -> ValueSource:
        if self.deep is None:
            return self.inputs
        if len(rows) > self.most:
            return self.deep
        return self._stored(self.deep, rows)

    def _stored(self, deep: ComputedFeatures, rows: Integers) -> StoredFeatures:
        """Compute the first half of the network for some examples."""
        places = self._rows(rows)
        items = [(part,) for part in torch.split(places, self.plan.batch)]
        return store_features(self._mapped(deep.values, items), places, len(self.trial.labels))

    def _in_pairs(self, source: ValueSource, rows: Integers) -> Codes:
        """Answer all magnitudes in one row, so that only the last batch has to be filled up."""
        assert self.trial.partners is not None
        # Level −1, the clean examples, is a mixture of each example with itself by 0.
        levels = np.repeat(self.trial.levels, len(rows))
        own = np.tile(rows, len(self.trial.levels))
        mates = np.where(levels < 0, own, self.trial.partners[levels, own])
        shares = np.where(levels < 0, 0.0, self.trial.magnitudes[levels]).astype(np.float32)
        change, labels, after = self.perturbation.change, self.labels, self.halves.after

        def body(rows: Tensor, mates: Tensor, shares: Tensor) -> Tensor:
            x, *others = source.values(rows)
            changed = _paired(change, x, shares, source.first(mates))
            return coded(logits_of(after(changed, *others)), labels[rows])

        tape = [self._table(values) for values in (own, mates, shares)]
        codes = self._run(body, tape)
        return codes.cpu().numpy().reshape(-1)[: len(own)].reshape(-1, len(rows))

    def _one_by_one(self, source: ValueSource, rows: Integers, level: int, judge: Body) -> Codes:
        """Answer one magnitude for all examples."""
        size = self.plan.batch

        def body(rows: Tensor) -> Tensor:
            values = self._changed(source, rows, level)
            labels = self.labels[rows]
            pieces = [
                judge(labels[i : i + size], *(v[i : i + size] for v in values)) for i in range(0, len(rows), size)
            ]
            return torch.cat(pieces)

        codes = self._each(body, [self._table(rows)])
        return codes.cpu().numpy().reshape(-1)[: len(rows)]

    def _judge(self, source: ValueSource, rows: Integers) -> Body:
        """Return a function from classes and values to codes, compiled if the plan says so."""
        after = self.halves.after

        def judge(labels: Tensor, *values: Tensor) -> Tensor:
            return coded(logits_of(after(*values)), labels)

        # Compiled for the shapes of one batch; the last one is filled up to the same.
        first = self._table(rows)[0][: self.plan.batch]
        example = [self.labels[first], *source.values(first)]
        return self._compiled(judge, [value[None] for value in example]) or judge

    def _changed(self, source: ValueSource, rows: Tensor, level: int) -> tuple[Tensor, ...]:
        """Return values for the second half of the network, the first of them perturbed."""
        if level < 0:
            return source.values(rows)
        trial = self.trial
        how: dict[str, Any] = {
            "magnitude": float(trial.magnitudes[level]),
            "seed": trial.seed,
            "positions": rows + level * len(trial.labels),  # fresh noise for each magnitude
        }
        if source is self.inputs:
            return (self.inputs.perturbed(self.perturbation, rows, **how),)
        x, *others = source.values(rows)
        with exact(self.plan.device):
            return (self.perturbation.apply(x, **how), *others)

    def _run(self, body: Body, tape: Sequence[Tensor]) -> Tensor:
        """Answer every row of the tables, compiled if the plan says so."""
        quick = self._compiled(body, tape)
        if quick is not None and self.plan.device.type == "cuda":
            try:
                return replayed(quick, tape, self.plan.advance)
            except RuntimeError:
                self.plan.notes.append("No CUDA graph could be recorded of the network.")
        return self._each(quick or body, tape)

    def _compiled(self, body: Body, tape: Sequence[Tensor]) -> Body | None:
        """Compile a function; None where it should not or cannot be."""
        if not (self.plan.compiled and self.inputs.resident):
            return None
        try:
            return compiled(body, tape)
        except Exception as error:  # whatever a compiler may come across
            self.plan.notes.append(f"The network could not be compiled ({type(error).__name__}) and ran as it is.")
            return None

    def _each(self, body: Body, tape: Sequence[Tensor]) -> Tensor:
        """Answer every row of the tables."""
        found = []
        for code in self._mapped(body, list(zip(*tape, strict=True))):
            found.append(code)
            self.plan.advance(len(code))
        return torch.stack(found)

    def _mapped(self, function: Callable[..., T], items: Sequence[tuple[Tensor, ...]]) -> Iterator[T]:
        """Map a function over items, in threads where the network allows it."""
        if self.threads == 1 or len(items) == 1:
            yield from (function(*item) for item in items)
            return

        def call(item: tuple[Tensor, ...]) -> T:
            with arithmetic(self.plan.device, self.plan.precision):
                return function(*item)

        threads = torch.get_num_threads()
        start: dict[str, Any] = {"initializer": torch.set_num_threads, "initargs": (1,)}
        try:
            with ThreadPoolExecutor(self.threads, **start) as pool:
                yield from pool.map(call, items)
        finally:
            torch.set_num_threads(threads)  # the workers' choice is that of later threads, too

    def _table(self, values: NDArray[Any]) -> Tensor:
        """Arrange values in rows of a block each, the last one filled up."""
        lacking = -len(values) % self.block
        filled = np.concatenate([values, np.resize(values, lacking)])
        return torch.from_numpy(filled.reshape(-1, self.block)).to(self.plan.device)

    def _rows(self, rows: Integers) -> Tensor:
        return torch.from_numpy(rows).to(self.plan.device)


def _paired(change: Callable[..., Tensor], x: Tensor, shares: Tensor, partner: Tensor) -> Tensor:
    """Change a copy of examples and their partners, in at least float32."""
    if change is mix and x.dtype == torch.float32:
        return x.lerp_(partner, per_example(shares, x.ndim))  # the same, without copies of its own
    half = x.dtype in (torch.float16, torch.bfloat16)
    kind = torch.float32 if half else x.dtype
    with exact(x.device):
        return change(x.to(kind), shares.to(kind), partner.to(kind)).to(x.dtype)


def coded(logits: Tensor, labels: Tensor) -> Tensor:
    """Compare the largest logit with the class; a code of its own where there is none."""
    right = (logits.argmax(dim=1) == labels).to(torch.uint8)
    return torch.where(has_answer(logits), right, BROKEN)


# Values for the second half of a network, by position of the examples in the sample. All are copies, which the network
# may change.


class ValueSource(ABC):
    """Values to perturb, and whatever else the second half needs."""

    @abstractmethod
    def values(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Return the values to perturb first, then all others that are needed."""

    def first(self, rows: Tensor) -> Tensor:
        """Return the values to perturb."""
        return self.values(rows)[0]


class NetworkInputs(ValueSource):
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

    @cached_property
    def ready(self) -> Tensor | None:
        """All inputs as the network takes them, where there is room; perturbed pixels do not need them."""
        small = 4 * self.sample.x.numel() <= MOST_READY
        return self._made(self.sample.x) if self.device.type == "cpu" and small else None

    @property
    def resident(self) -> bool:
        """Everything lies on the device."""
        return self.sample.x.device == self.device

    def stored(self, rows: Tensor) -> Tensor:
        """Return examples as they are stored, on the device."""
        x = self.sample.x
        return x[rows.to(x.device)].to(self.device)

    def laid(self, x: Tensor) -> Tensor:
        """Convert to the layout and precision of the network."""
        if self.dtype is not None and x.is_floating_point():
            x = x.to(self.dtype)
        return channels_last(x) if self.last else x

    def values(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Return the values to perturb: inputs."""
        return (self._made(self.stored(rows)) if self.ready is None else self.laid(_picked(self.ready, rows)),)

    def perturbed(self, change: Perturbation, rows: Tensor, **how: Any) -> Tensor:
        """Perturb inputs: pixels from 0 to 1 before they are normalised, all else as the network takes it."""
        with exact(self.device):
            if change.of != "images":
                return change.apply(self.first(rows), **how)
            pixels = change.apply(self.sample.pixels(self.stored(rows)), **how)
            return self.laid(self.sample.normalised(pixels))

    def _made(self, stored: Tensor) -> Tensor:
        return self.laid(self.sample.given(stored))


class StoredFeatures(ValueSource):
    """Outputs of the first half of a network for some examples, computed once."""

    def __init__(self, parts: Sequence[Tensor], where: Tensor) -> None:
        self.parts, self.where = parts, where

    def values(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Return the values to perturb first, then all others that are needed."""
        here = self.where[rows]
        return tuple(_picked(part, here) for part in self.parts)

    def first(self, rows: Tensor) -> Tensor:
        """Return the values to perturb."""
        return _picked(self.parts[0], self.where[rows])


class ComputedFeatures(ValueSource):
    """Outputs of the first half of a network, computed on every request."""

    def __init__(self, before: Before, inputs: NetworkInputs) -> None:
        self.before, self.inputs = before, inputs

    def values(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Return the values to perturb first, then all others that are needed."""
        # Some may share their memory, with each other or with the network.
        return tuple(value.clone() for value in self.before(self.inputs.first(rows)))


def store_features(found: Iterable[tuple[Tensor, ...]], rows: Tensor, size: int) -> StoredFeatures:
    """Collect the outputs of the first half, batch by batch, for some rows of so many examples."""
    parts: list[Tensor] = []
    first = 0
    for values in found:
        parts = parts or [_room(value, len(rows)) for value in values]
        for part, value in zip(parts, values, strict=True):
            part[first : first + len(value)] = value
        first += len(values[0])
    where = torch.zeros(size, dtype=torch.int64, device=rows.device)
    where[rows] = torch.arange(len(rows), device=rows.device)
    return StoredFeatures(parts, where)


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
    # Whole classes, packed one after the other: partners of the same class are then always in the same part.
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
    """Allocate space for so many examples in the layout of a batch."""
    shape = (count, *value.shape[1:])
    last = value.ndim == 4 and value.is_contiguous(memory_format=torch.channels_last)
    layout = torch.channels_last if last and not value.is_contiguous() else torch.contiguous_format
    return torch.empty(shape, dtype=value.dtype, device=value.device, memory_format=layout)


def _picked(part: Tensor, rows: Tensor) -> Tensor:
    """Select rows, in the layout of the whole."""
    # Indexing would give up channels-last, and convolutions would convert every batch again.
    if part.ndim == 4 and not part.is_contiguous():
        return part.permute(0, 2, 3, 1)[rows].permute(0, 3, 1, 2)
    return part[rows]


def compiled(body: Body, tape: Sequence[Tensor]) -> Body:
    """Compile a function of the rows of tables, and call it once to see that it works."""
    # A name of its own, because torch recompiles a function only so many times before it gives up.
    code = body.__code__.replace(co_name=f"{body.__name__}_{next(_NUMBER)}")
    named = types.FunctionType(code, body.__globals__, code.co_name, None, body.__closure__)
    quick: Body = torch.compile(named, dynamic=False)
    quick(*(table[0] for table in tape))
    return quick


def replayed(body: Body, tape: Sequence[Tensor], advance: Callable[[float], None]) -> Tensor:
    """Map a function over the rows of tables on a GPU, without waiting in between.

    A step is recorded as a CUDA graph that finds its own place in the tables.
    """
    device, (count, width) = tape[0].device, tape[0].shape
    codes = torch.zeros((count, width), dtype=torch.uint8, device=device)
    cursor = torch.zeros(1, dtype=torch.int64, device=device)

    def step() -> None:
        code = body(*(table.index_select(0, cursor)[0] for table in tape))
        codes.index_copy_(0, cursor, code[None])
        cursor.add_(1)

    # CUDA graphs are recorded on a side stream, after steps that initialise libraries there.
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
