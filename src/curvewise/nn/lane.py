"""Networks in training, on tensors that stay where they are.

Everything a step needs lies on the device: the examples, the line of examples to visit, the rates
and a cursor. A step is therefore the same sequence of kernels each time, which a CUDA graph can
replay without the host, and what it computes depends on nothing beside the lane.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap
from torch.nn import functional

from curvewise.nn.augmentation import view, visits
from curvewise.nn.data import SLOTS, Resident
from curvewise.nn.networks import Whitening, features_of, make_network, notes_of
from curvewise.nn.optimisers import Grouped, Optimiser, make_loss, make_optimiser
from curvewise.nn.task import Assignment, Outputs, Poke, check_shape
from curvewise.nn.training import MOVES, Training

Members = Sequence[int] | None  # networks of a lane; None for all

LINE = 2**21  # positions that are laid out at a time, so that long trainings take little memory
EVALUATION_BATCH = 2000
DENSE_BATCH = 250  # where outputs are images, and layers therefore as large to the end
GROUP = 4  # networks whose matrices are multiplied in one call; a stack on a CPU is a multiple of it
BLOCK = 16  # float32 numbers in 64 bytes, the widest vector and line of the cache

ELEMENTWISE = (nn.ReLU, nn.GELU, nn.Tanh, nn.Identity)
"""Layers that leave zeros zero, and so may be given rows that are filled up."""

STACKABLE = (*ELEMENTWISE, nn.Linear, nn.Flatten, nn.LayerNorm, nn.Sequential)
"""Layers that :func:`stacked_outputs` knows."""


@dataclass(frozen=True, eq=False)
class Setup:
    """Settings, data and place that the lanes of one kind of training share."""

    training: Training
    data: Resident
    shape: tuple[int, ...]
    outputs: Outputs
    batch: int
    device: torch.device
    folder: Path | None = None
    compiled: bool = False
    body: nn.Module | None = None  # of a linear probe, whose features are computed in each step

    @property
    def cuda(self) -> bool:
        """True if this is a GPU."""
        return self.device.type == "cuda"

    def network(self, seed: int | None = None) -> nn.Module:
        """Make a network, with the initial weights of a seed; torch's generator stays as it is."""
        with torch.random.fork_rng(devices=[]):
            if seed is not None:
                torch.default_generator.manual_seed(seed)
            network = make_network(self.training, self.shape, self.outputs, self.folder)
            return network if self.body is None else LinearProbe(self.body, network)

    def arithmetic(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context in which the precision is the one asked for."""
        if self.training.precision == "float32":
            return contextlib.nullcontext()
        # A cache of cast weights would be stale when a graph is replayed.
        kind = getattr(torch, self.training.precision)
        return torch.autocast(self.device.type, dtype=kind, cache_enabled=False)

    @cached_property
    def optimiser(self) -> Optimiser:
        """The rule by which parameters are changed, for a list of those that are trained."""
        shapes = {name: tuple(p.shape) for name, p in self.network().named_parameters() if p.requires_grad}
        return make_optimiser(self.training, shapes)

    @property
    def magnifier(self) -> float:
        """The factor of the loss on the way back: float16 has no numbers as small as gradients of a mean."""
        # About that of a summed loss; a power of two, which takes no digits from the gradients.
        return 2.0 ** (self.batch.bit_length() - 1) if self.training.precision == "float16" else 1.0


class LinearProbe(nn.Module):
    """A linear layer on the features of a network that stays as it is, in evaluation mode."""

    def __init__(self, body: nn.Module, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer
        self.body = [body]  # in a list: its weights are no part of this module, and no mode reaches it

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs of the layer."""
        with torch.no_grad():
            features = features_of(self.body[0], x)
        found: Tensor = self.layer(features.float())
        return found


class Lane(ABC):
    """``width`` networks that go through their trainings in step."""

    width: int
    params: list[Tensor]
    names: list[str]
    notes: tuple[str, ...] = ()
    is_taken = False
    kernels: frozenset[str] = frozenset()

    def __init__(self, setup: Setup, width: int) -> None:
        self.setup, self.width = setup, width
        device, batch = setup.device, setup.batch
        # Made once and only ever written to in place: a captured graph goes on reading the same memory.
        self.capacity = max(1, LINE // (batch * width))
        self.line = torch.zeros((self.capacity, width, batch), dtype=torch.int64, device=device)
        self.optimiser = setup.optimiser
        several = (len(self.optimiser.rules),) if isinstance(self.optimiser, Grouped) else ()
        self.rates = torch.zeros((self.capacity, *several), device=device)
        self.cursor = torch.zeros(1, dtype=torch.int64, device=device)
        self.count = torch.zeros((), device=device)
        self.position = torch.arange(batch, device=device)
        self.n = torch.ones((), dtype=torch.int64, device=device)
        self.augmentation_seeds = torch.zeros(width, dtype=torch.int64, device=device)
        self.loss_sum = torch.zeros(width, device=device)
        self.feed = setup.data.feed(width * batch, setup.training.augmentation, self.capacity)
        self.graph: torch.cuda.CUDAGraph | None = None
        self.stream = torch.cuda.Stream(device) if setup.cuda else None  # type: ignore[no-untyped-call]

    @abstractmethod
    def begin(self, assignments: Sequence[Assignment]) -> None:
        """Draw the initial weights."""

    @abstractmethod
    def step(self) -> None:
        """Take one step of the optimiser, entirely on the device."""

    @abstractmethod
    def outputs(self, x: Tensor, members: Sequence[int], *, features: bool) -> Tensor:
        """Return logits (members, batch, *outputs) for prepared inputs, in evaluation mode.

        With ``features``, the inputs of the last layer instead: (members, batch, features).
        """

    @abstractmethod
    def weights(self, member: int) -> dict[str, NDArray[Any]]:
        """Copy a network's parameters and buffers."""

    @abstractmethod
    def _tensors(self) -> list[Tensor]:
        """Return everything that a training changes."""

    @property
    def path(self) -> str:
        """The way of execution, as far as rounding may depend on it."""
        if not self.setup.cuda:
            # Without the width: on a CPU with one thread a stack of any width gives the same bits.
            return "eager" if self.width == 1 else "eager, stack"
        ways = ["cuda graph" if self.graph is not None else "eager"]
        ways += ["compiled"] if self.setup.compiled else []
        ways += [f"stack of {self.width}"] if self.width > 1 else []
        return ", ".join(ways)

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Put what follows on the lane's own stream."""
        with contextlib.nullcontext() if self.stream is None else torch.cuda.stream(self.stream):
            yield

    def place(self, assignments: Sequence[Assignment]) -> None:
        """Set seeds and training examples; the weights come with :meth:`begin`."""
        device = self.setup.device
        self.rows = torch.from_numpy(np.stack([a.rows for a in assignments])).to(device)
        self.order_seeds = torch.tensor([a.order for a in assignments], device=device)
        self.n.fill_(self.rows.shape[1])
        self.augmentation_seeds.copy_(torch.tensor([a.augmentation for a in assignments]))
        self.rewind()

    def rewind(self) -> None:
        """Forget what the steps so far have counted."""
        self.count.zero_()
        self.loss_sum.zero_()
        self.position.copy_(torch.arange(self.setup.batch))

    def lay(self, first: int, rates: NDArray[np.float32]) -> None:
        """Lay out the examples and rates of the steps from ``first`` on."""
        steps, batch = len(rates), self.setup.batch
        line = visits(self.order_seeds, self.rows, first * batch, (first + steps) * batch)
        line = line.view(self.width, steps, batch).transpose(0, 1)
        self.line[:steps].copy_(line)
        self.rates[:steps].copy_(torch.from_numpy(rates))
        if self.feed is not None:
            self.feed.line = line.reshape(steps, -1).cpu().numpy()
        self.start_line()

    def start_line(self) -> None:
        """Go to the beginning of what was laid out."""
        self.cursor.zero_()
        if self.feed is not None:
            self.feed.at = 0

    def advance(self, steps: int) -> None:
        """Take steps along what was laid out."""
        take = self.step if self.graph is None else self.graph.replay
        for _ in range(steps):
            if self.feed is not None:
                self.feed.put()
            take()
            if self.feed is not None:
                self.feed.taken()

    def capture(self) -> None:
        """Record a step as a CUDA graph; what was trained before is lost."""
        assert self.stream is not None
        self.stream.wait_stream(torch.cuda.current_stream(self.setup.device))
        with torch.cuda.stream(self.stream):
            for _ in range(3):  # compiles, and lets libraries allocate their workspaces outside the graph
                self.step()
                self.cursor.zero_()
        self.stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        # Other threads may go on with their own work meanwhile: only this one must not synchronise.
        with torch.cuda.graph(graph, stream=self.stream, capture_error_mode="thread_local"):
            self.step()
        self.graph = graph

    def _next(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return examples (width, batch), their epochs (batch,) and the rate of this step, or that of each group."""
        index = self.line.index_select(0, self.cursor)[0]
        rate = self.rates.index_select(0, self.cursor)[0]
        # Only augmentation asks for the epoch: spare the others a kernel in every step.
        epoch = self.position // self.n if self.setup.training.augmentation else self.position
        return index, epoch, rate

    def _given(self) -> Tensor | None:
        """Return the stored inputs of this step, (width · batch, …), where they come from the host."""
        if self.feed is None:
            return None
        return self.feed.window.index_select(0, self.cursor % SLOTS)[0]

    def _count_up(self, losses: Tensor) -> None:
        self.loss_sum.add_(losses)
        self.cursor.add_(1)
        self.position.add_(self.setup.batch)

    def poke(self, pokes: Sequence[Poke | None]) -> None:
        """Nudge one weight of each network that is to be nudged."""
        sizes = np.cumsum([p.numel() // self.width for p in self.params])
        for member, poke in enumerate(pokes):
            if poke is None:
                continue
            # Uniform over all trained weights, in the order of the parameters: the same weight in a stack and alone.
            where = int(np.random.default_rng(poke.seed).integers(sizes[-1]))
            which = int(np.searchsorted(sizes, where, side="right"))
            inside = where - int(sizes[which - 1] if which else 0)
            stacked = self.params[which]
            own = (stacked[member] if self.width > 1 else stacked).detach()
            own[np.unravel_index(inside, own.shape)] *= poke.factor

    def snapshot(self) -> list[Tensor]:
        """Copy everything that a training changes."""
        return [t.detach().clone() for t in self._tensors()]

    def restore(self, copies: Sequence[Tensor]) -> None:
        """Go back to a copy."""
        with torch.no_grad():
            for tensor, copy in zip(self._tensors(), copies, strict=True):
                tensor.copy_(copy)

    def mean_losses(self, steps: int) -> NDArray[np.float64]:
        """Return the mean training loss since the last call, for each network."""
        losses = (self.loss_sum / max(steps, 1)).double().cpu().numpy()
        self.loss_sum.zero_()
        return losses

    def predict(
        self, data: Resident, rows: Tensor | None = None, *, members: Members = None, features: bool = False
    ) -> Tensor:
        """Return outputs (or features) for all examples, shape (members, examples, …), float32."""
        parts = self.look(data, rows, members=members, features=features)
        return torch.cat([part for _, part in parts], dim=1)

    def look(
        self, data: Resident, rows: Tensor | None = None, *, members: Members = None, features: bool = False
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield targets and outputs (or features) of some examples at a time, so that few are held.

        Outputs are averaged over the views of the data, features are those of the images themselves.
        """
        chosen = range(self.width) if members is None else members
        count = len(data.y) if rows is None else len(rows)
        batch = DENSE_BATCH if data.y.ndim > 2 else EVALUATION_BATCH
        with torch.no_grad():
            for start in range(0, count, batch):
                part: slice | Tensor = slice(start, start + batch)
                part = part if rows is None else rows[part]
                x = data.inputs(part)
                if features or not data.views:
                    yield data.y[part], self.outputs(x, chosen, features=features).float()
                    continue
                whole: Tensor | float = 0.0
                for weight, shift, mirrored in data.views:
                    seen = self.outputs(view(x, shift, mirrored=mirrored), chosen, features=False)
                    whole = whole + weight * seen.float()
                assert isinstance(whole, Tensor)
                yield data.y[part], whole


class Single(Lane):
    """One network in training, as a module: eager, or compiled and captured as a CUDA graph."""

    def __init__(self, setup: Setup, forward: Callable[..., Tensor], update: Any) -> None:
        super().__init__(setup, 1)
        self.forward, self.update = forward, update
        self.model = setup.network()
        self.model.to(setup.device)
        if setup.data.kind == "images":
            self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.model.train()
        self.notes = notes_of(self.model)
        named = [(k, p) for k, p in self.model.named_parameters() if p.requires_grad]
        self.names, self.params = [k for k, _ in named], [p for _, p in named]
        self.buffers = list(self.model.buffers())
        self.state = self.optimiser.start(self.params)

    def begin(self, assignments: Sequence[Assignment]) -> None:
        """Draw the initial weights of the one assignment."""
        self.place(assignments)
        fresh = self.setup.network(assignments[0].init)
        for layer in fresh.modules():
            if isinstance(layer, Whitening):
                layer.fill(self.setup.data, assignments[0].rows)
        # Copied in place: a captured graph reads the tensors that it was captured with.
        with torch.no_grad():
            for kind in (nn.Module.parameters, nn.Module.buffers):
                for mine, drawn in zip(kind(self.model), kind(fresh), strict=True):
                    mine.copy_(drawn)
        self.optimiser.reset(self.params, self.state)

    def step(self) -> None:
        """Take one step: forward, backward and update."""
        index, epoch, rate = self._next()
        loss = self.forward(self.model, index[0], self.augmentation_seeds[0], epoch, self._given())
        magnifier = self.setup.magnifier
        whole = None if magnifier == 1 else torch.full_like(loss, magnifier)
        # Weights that the network does not use have a gradient of 0.
        grads = torch.autograd.grad(loss, self.params, whole, materialize_grads=True)
        with torch.no_grad():
            if magnifier != 1:
                grads = torch._foreach_div(grads, magnifier)
            self.count.add_(1)
            self.update(self.params, grads, self.state, rate, self.count)
            self._count_up(loss.detach())

    def outputs(self, x: Tensor, members: Sequence[int], *, features: bool) -> Tensor:
        """Return outputs of the network, or inputs of its last layer, for prepared inputs."""
        x = channels_last(x) if self.setup.data.kind == "images" else x
        self.model.eval()
        try:
            with self.setup.arithmetic():
                found: Tensor = features_of(self.model, x) if features else self.model(x)
                return found[None]
        finally:
            self.model.train()

    def weights(self, member: int) -> dict[str, NDArray[Any]]:
        """Copy its parameters and buffers."""
        state = self.model.state_dict()
        return {k: v.detach().cpu().numpy().copy(order="C") for k, v in state.items()}

    def _tensors(self) -> list[Tensor]:
        slots = (t for slot in self.state.values() for t in slot)
        return [*self.params, *self.buffers, *slots, self.count]


def make_single(setup: Setup) -> Callable[[], Single]:
    """Return a maker of lanes that share one compiled step."""
    training, data = setup.training, setup.data
    batch = data.batcher(training.augmentation)
    images, loss = data.kind == "images", make_loss(training)

    def forward(model: nn.Module, index: Tensor, seed: Tensor, epoch: Tensor, given: Tensor | None) -> Tensor:
        x = batch(index, seed, epoch, given)
        x = channels_last(x) if images else x
        with setup.arithmetic():
            logits = model(x)
        return loss(logits.float(), data.y[index])

    step = _compiled(setup, forward)
    return lambda: Single(setup, *step)


def _compiled(setup: Setup, forward: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., None]]:
    """Return the two halves of a step, gradients and update, compiled where that is asked for."""
    update: Callable[..., None] = setup.optimiser.step
    if not setup.compiled:
        return forward, update
    return torch.compile(forward, dynamic=False), torch.compile(update, dynamic=False)


def channels_last(x: Tensor) -> Tensor:
    """Lay images out with the channels innermost, which convolutions are quickest on."""
    if x.shape[1] > 1:
        return x.contiguous(memory_format=torch.channels_last)
    # With one channel both layouts are the same memory, and only the strides tell which is meant.
    count, _, height, width = x.shape
    return x.contiguous().as_strided((count, 1, height, width), (height * width, 1, width, 1))


def stochastic(model: nn.Module) -> bool:
    """Tell whether a network draws random numbers of its own while it is trained."""
    # By name, since timm and others have layers of their own for it; networks with a configuration (of transformers)
    # may call ``functional.dropout`` anywhere.
    names = ("dropout", "droppath", "stochasticdepth")
    return any(
        any(name in type(m).__name__.lower() for name in names) and getattr(m, "p", 1.0) for m in model.modules()
    ) or any(getattr(m, "config", None) is not None for m in model.modules())


def draws(model: nn.Module, x: Tensor) -> bool:
    """Tell whether a forward pass moves torch's generator, as ``functional.dropout`` does."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        before = torch.default_generator.get_state()
        with contextlib.suppress(Exception):  # the training itself will report it
            model(x)
        return not torch.equal(before, torch.default_generator.get_state())


def check_outputs(model: nn.Module, x: Tensor, outputs: tuple[int, ...]) -> None:
    """Refuse a network whose outputs do not have the shape of a target: they would be broadcast."""
    model.eval()
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        try:
            shape = tuple(model(x).shape)
        except Exception:  # the training itself will report it
            return
        finally:
            model.train()
    check_shape(shape, (len(x), *outputs))


# Many small networks of one shape in training as one: their weights stacked, their steps batched. Right for multi-layer
# perceptrons and linear probes, where one network alone leaves a device idle. Convolutions gain nothing from it, and
# batch normalisation keeps counts that cannot be stacked.


def stackable(model: nn.Module, training: Training) -> bool:
    """Tell whether every part of a training is known to give the same bits in any stack."""
    known = all(type(m) in STACKABLE for m in model.modules())
    trained = all(p.requires_grad for p in model.parameters())
    # Augmentations that calculate with pixels may round otherwise in a larger batch.
    exact = all(spec.partition(":")[0] in MOVES for spec in training.augmentation)
    # Products of Muon's matrices may round otherwise in a larger batch of them.
    return known and trained and exact and "muon" not in training.optimisers and not list(model.buffers())


class Stack(Lane):
    """Networks whose weights have a leading axis for the network.

    On a CPU weights lie in tensors that are filled up with zeros (``stored``), so that bits do not
    depend on a network's place; ``params`` are the parts of them that networks use.
    """

    def __init__(self, setup: Setup, width: int, forward: Callable[..., Any], update: Any) -> None:
        super().__init__(setup, width)
        self.forward, self.update = forward, update
        self.skeleton = setup.network()
        self.skeleton.to(setup.device)
        self.notes = notes_of(self.skeleton)
        named = dict(self.skeleton.named_parameters())
        self.names = list(named)
        shapes = [tuple(p.shape) for p in named.values()]
        if setup.cuda:
            self.stored = [torch.zeros((width, *s), device=setup.device) for s in shapes]
            self.params = self.trained = self.stored
        else:
            self.stored = [make_room(width, s) for s in shapes]
            self.params = self._used(self.stored, shapes)
            # Ranger takes means over a matrix, in which the zeros would count.
            self.trained = self.params if "ranger" in setup.training.optimisers else self.stored
        self.state = self.optimiser.start(self.trained)

    def begin(self, assignments: Sequence[Assignment]) -> None:
        """Draw the initial weights of each network from its own seed."""
        # A stack that is not full is filled up with its last network, so that its width, on which
        # rounding may depend, is the same whoever trains in it.
        full = [*assignments, *[assignments[-1]] * (self.width - len(assignments))]
        self.place(full)
        drawn: list[list[Tensor]] = [[] for _ in self.params]
        for assignment in assignments:
            fresh = self.setup.network(assignment.init)
            for found, parameter in zip(drawn, fresh.parameters(), strict=True):
                found.append(parameter.detach())
        for room, mine, found in zip(self.stored, self.params, drawn, strict=True):
            room.zero_()  # a network that diverged here leaves NaN where there should be zeros
            mine.copy_(torch.stack(found + found[-1:] * (self.width - len(found))))
        self.optimiser.reset(self.trained, self.state)

    def step(self) -> None:
        """Take one step of all networks."""
        index, epoch, rate = self._next()
        with torch.no_grad():
            batch = (index, self.augmentation_seeds, epoch, self._given())
            grads, losses = self.forward(self.skeleton, self.names, self.stored, batch)
            if self.trained is not self.stored:
                grads = self._used(grads, [tuple(p.shape[1:]) for p in self.params])
            self.count.add_(1)
            self.update(self.trained, grads, self.state, rate, self.count, stacked=True)
            self._count_up(losses)

    @staticmethod
    def _used(stored: Sequence[Tensor], shapes: Sequence[tuple[int, ...]]) -> list[Tensor]:
        both = zip(stored, shapes, strict=True)
        return [tensor[(slice(None), *map(slice, shape))] for tensor, shape in both]

    def outputs(self, x: Tensor, members: Sequence[int], *, features: bool) -> Tensor:
        """Return outputs of networks, or inputs of their last layers, for the same prepared inputs."""
        model, found = self.skeleton, []
        for member in members:  # one after the other, which rounds as if each were alone
            with torch.no_grad():
                for mine, stacked in zip(model.parameters(), self.params, strict=True):
                    mine.copy_(stacked[member])
            with self.setup.arithmetic():
                found.append(features_of(model, x) if features else model(x))
        return torch.stack(found)

    def weights(self, member: int) -> dict[str, NDArray[Any]]:
        """Copy one network's parameters."""
        return {k: p[member].detach().cpu().numpy().copy() for k, p in zip(self.names, self.params, strict=True)}

    def _tensors(self) -> list[Tensor]:
        return [*self.stored, *(t for slot in self.state.values() for t in slot), self.count]


def make_stack(setup: Setup, width: int) -> Callable[[], Stack]:
    """Return a maker of stacks that share one compiled step.

    On a CPU a stack has room for at least ``width`` networks, in whole groups.
    """
    if not setup.cuda:
        width = whole_groups(width)
    step = _compiled(setup, _vectorised(setup) if setup.cuda else _grouped(setup))
    return lambda: Stack(setup, width, *step)


def _batches(setup: Setup) -> Callable[[Tensor, Tensor, Tensor, Tensor | None], tuple[Tensor, Tensor]]:
    """Return a function that gives inputs and targets, shape (networks, batch, …)."""
    data = setup.data
    batch = data.batcher(setup.training.augmentation)

    def batches(index: Tensor, seeds: Tensor, epoch: Tensor, given: Tensor | None) -> tuple[Tensor, Tensor]:
        flat, each = index.flatten(), index.shape[1]
        x = batch(flat, seeds.repeat_interleave(each), epoch.repeat(index.shape[0]), given)
        return x.view(*index.shape, *x.shape[1:]), data.y[index]

    return batches


Gradients = tuple[list[Tensor], Tensor]


def _vectorised(setup: Setup) -> Callable[..., Gradients]:
    """Return a function that computes gradients and losses on a GPU."""
    batches, loss, magnifier = _batches(setup), make_loss(setup.training), setup.magnifier

    def forward(model: nn.Module, names: list[str], params: list[Tensor], batch: tuple[Any, ...]) -> Gradients:
        x, y = batches(*batch)

        def loss_of(weights: list[Tensor], x_one: Tensor, y_one: Tensor) -> Tensor:
            with setup.arithmetic():
                logits = functional_call(model, dict(zip(names, weights, strict=True)), (x_one,))
            return loss(logits.float(), y_one) * magnifier if magnifier != 1 else loss(logits.float(), y_one)

        grads, losses = vmap(grad_and_value(loss_of))(params, x, y)
        return (grads, losses) if magnifier == 1 else (list(torch._foreach_div(grads, magnifier)), losses / magnifier)

    return forward


def _grouped(setup: Setup) -> Callable[..., Gradients]:
    """Return a function that computes gradients and losses on a CPU: bits do not depend on a network's place."""
    batches, losses_of = _batches(setup), make_loss(setup.training, stacked=True)

    def forward(model: nn.Module, names: list[str], params: list[Tensor], batch: tuple[Any, ...]) -> Gradients:
        x, y = batches(*batch)
        with torch.enable_grad():
            leaves = [p.detach().requires_grad_() for p in params]
            weights: dict[Tensor, Tensor] = dict(zip(model.parameters(), leaves, strict=True))
            losses = losses_of(stacked_outputs(model, weights, x), y)
            grads = torch.autograd.grad(losses, leaves, torch.ones_like(losses))
        return list(grads), losses.detach()

    return forward


# Layers of stacked networks on a CPU that round alike wherever a network lies in its stack.
#
# Two things would make a network's bits depend on its place and its company. Libraries of matrix products (MKL, above
# all on AMD) add up in another order where a matrix does not begin on a boundary of 64 bytes. And the vectorised loops
# of torch compute the last few numbers of a tensor one by one, with another exponential than the others.
#
# Here neither can happen. Rows are filled up with zeros to whole blocks of 64 bytes, so that every matrix begins on a
# boundary and no loop has a remainder; and every call multiplies the matrices of ``GROUP`` networks, however many there
# are in the stack.


def whole_groups(networks: int) -> int:
    """Round a number of networks up to whole groups.

    Examples
    --------
    >>> whole_groups(1), whole_groups(8), whole_groups(9)
    (4, 8, 12)
    """
    return -(-networks // GROUP) * GROUP


def make_room(networks: int, shape: tuple[int, ...]) -> Tensor:
    """Allocate zeros for a parameter of many networks; its last two axes have whole blocks.

    Examples
    --------
    >>> make_room(4, (10, 20)).shape
    torch.Size([4, 16, 32])
    """
    return torch.zeros((networks, *shape[:-2], *map(_whole_blocks, shape[-2:])))


def is_spelled_out(model: nn.Module) -> bool:
    """Tell whether :func:`stacked_outputs` does all that calling the network would do: no hooks, no overrides.

    Old-style weight normalisation, for instance, is a hook.
    """
    return not any(
        m._forward_hooks or m._forward_pre_hooks or m._backward_hooks or "forward" in vars(m) for m in model.modules()
    )


def stacked_outputs(model: nn.Module, weights: Mapping[Tensor, Tensor], x: Tensor) -> Tensor:
    """Compute outputs of many networks, each for inputs of its own.

    Parameters
    ----------
    model : nn.Module
        The shape of all of them: layers of ``STACKABLE``.
    weights : dict of Tensor to Tensor
        By the model's own parameters: those of all networks, from :func:`make_room`.
    x : Tensor, shape (networks, batch, *shape)
        Inputs.

    Returns
    -------
    Tensor, shape (networks, batch, *outputs)
    """
    x, size = _through(model, weights, x, x.shape[-1])
    return x[..., :size]


def _through(layer: nn.Module, weights: Mapping[Tensor, Tensor], x: Tensor, size: int) -> tuple[Tensor, int]:
    """Apply one layer; return its outputs, perhaps with filled-up rows, and how long a row really is."""
    if isinstance(layer, nn.Sequential):
        for inner in layer:
            x, size = _through(inner, weights, x, size)
    elif isinstance(layer, nn.Linear):
        if size != layer.in_features:
            raise ValueError(f"{layer} is given inputs of {size} numbers.")
        x = _filled(x, size)
        bias = None if layer.bias is None else weights[layer.bias]
        flat = x.reshape(len(x), -1, x.shape[-1])
        y = _Linear.apply(flat, weights[layer.weight], bias)  # type: ignore[no-untyped-call]
        x, size = y.view(*x.shape[:-1], y.shape[-1]), layer.out_features
    elif isinstance(layer, ELEMENTWISE):
        x = layer(_filled(x, size))
    elif isinstance(layer, nn.LayerNorm):
        x = functional.layer_norm(x[..., :size], layer.normalized_shape, eps=layer.eps)
        axes = x.dim() - 1 - len(layer.normalized_shape)
        for own, join in ((layer.weight, torch.mul), (layer.bias, torch.add)):
            if own is not None:
                used = weights[own][(slice(None), *map(slice, own.shape))]
                x = join(x, used.reshape(len(x), *(1,) * axes, *own.shape))
    elif isinstance(layer, nn.Flatten):
        ends = (layer.start_dim, layer.end_dim)
        first, last = (axis + 1 if axis >= 0 else axis + x.dim() for axis in ends)
        if last > first:
            x = x[..., :size].flatten(first, last)
            size = x.shape[-1]
    else:
        raise TypeError(f"{type(layer).__name__} is not known in a stack.")
    return x, size


def _whole_blocks(size: int) -> int:
    return -(-size // BLOCK) * BLOCK


def _filled(x: Tensor, size: int) -> Tensor:
    """Fill rows up with zeros to whole blocks, if they are not yet."""
    lacking = _whole_blocks(size) - x.shape[-1]
    return functional.pad(x, (0, lacking)) if lacking else x


class _Linear(torch.autograd.Function):
    """Linear layers of many networks: x (networks, batch, in), weight (networks, out, in)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        x = x.contiguous()
        ctx.save_for_backward(x, weight)
        y = _products(x, weight.transpose(1, 2))
        return y if bias is None else y.add_(bias.unsqueeze(1))

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, Tensor, Tensor | None]:
        x, weight = ctx.saved_tensors
        slope = slope.contiguous()
        of_x, _, of_bias = ctx.needs_input_grad
        return (
            _products(slope, weight) if of_x else None,
            _products(slope.transpose(1, 2), x),
            slope.sum(dim=1) if of_bias else None,
        )


def _products(a: Tensor, b: Tensor) -> Tensor:
    if len(a) == GROUP:
        return torch.bmm(a, b)
    found = a.new_empty((len(a), a.shape[1], b.shape[2]))
    for x, y, both in zip(*(torch.split(t, GROUP) for t in (a, b, found)), strict=True):
        torch.bmm(x, y, out=both)
    return found
