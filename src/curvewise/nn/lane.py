"""Networks in training, on tensors that stay where they are.

Everything a step needs lies on the device: the examples, the line of examples to visit, the rates
and a cursor. A step is therefore the same sequence of kernels each time, which a CUDA graph can
replay without the host, and what it computes depends on nothing beside the lane.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from curvewise.nn.chance import visits
from curvewise.nn.data import Resident
from curvewise.nn.networks import features_of, make_network, notes_of
from curvewise.nn.optimisers import make_loss, make_optimiser
from curvewise.nn.task import Assignment, Outputs, Poke, check_shape
from curvewise.nn.training import Training

LINE = 2**21  # positions that are laid out at a time, so that long trainings take little memory
EVALUATION_BATCH = 2000
DENSE_BATCH = 250  # where outputs are images, and layers therefore as large to the end


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

    @property
    def cuda(self) -> bool:
        """True if this is a GPU."""
        return self.device.type == "cuda"

    def network(self, seed: int | None = None) -> nn.Module:
        """Make a network, with the initial weights of a seed; torch's generator stays as it is."""
        with torch.random.fork_rng(devices=[]):
            if seed is not None:
                torch.default_generator.manual_seed(seed)
            return make_network(self.training, self.shape, self.outputs, self.folder)

    def arithmetic(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context in which the precision is the one asked for."""
        if self.training.precision == "float32":
            return contextlib.nullcontext()
        # A cache of cast weights would be stale when a graph is replayed.
        return torch.autocast(self.device.type, dtype=torch.bfloat16, cache_enabled=False)


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
        self.capacity = max(1, LINE // (batch * width))
        self.line = torch.zeros((self.capacity, width, batch), dtype=torch.int64, device=device)
        self.rates = torch.zeros(self.capacity, device=device)
        self.cursor = torch.zeros(1, dtype=torch.int64, device=device)
        self.count = torch.zeros((), device=device)
        self.position = torch.arange(batch, device=device)
        self.n = torch.ones((), dtype=torch.int64, device=device)
        self.augmentation_seeds = torch.zeros(width, dtype=torch.int64, device=device)
        self.loss_sum = torch.zeros(width, device=device)
        self.optimiser = make_optimiser(setup.training)
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
        if self.stream is None:
            yield
        else:
            with torch.cuda.stream(self.stream):
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
        self.line[:steps].copy_(line.view(self.width, steps, batch).transpose(0, 1))
        self.rates[:steps].copy_(torch.from_numpy(rates))
        self.cursor.zero_()

    def advance(self, steps: int) -> None:
        """Take steps along what was laid out."""
        if self.graph is None:
            for _ in range(steps):
                self.step()
        else:
            for _ in range(steps):
                self.graph.replay()

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
        with torch.cuda.graph(graph, stream=self.stream, capture_error_mode="thread_local"):
            self.step()
        self.graph = graph

    def _next(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return examples (width, batch), their epochs (batch,) and the rate of this step."""
        index = self.line.index_select(0, self.cursor)[0]
        rate = self.rates.index_select(0, self.cursor)[0]
        # Only augmentation asks for the epoch: spare the others a kernel in every step.
        epoch = self.position // self.n if self.setup.training.augmentation else self.position
        return index, epoch, rate

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
        self,
        data: Resident,
        rows: Tensor | None = None,
        *,
        members: Sequence[int] | None = None,
        features: bool = False,
    ) -> Tensor:
        """Return outputs (or features) for all examples, shape (members, examples, …), float32."""
        parts = self.look(data, rows, members=members, features=features)
        return torch.cat([part for _, part in parts], dim=1)

    def look(
        self,
        data: Resident,
        rows: Tensor | None = None,
        *,
        members: Sequence[int] | None = None,
        features: bool = False,
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield targets and outputs (or features) of some examples at a time, so that few are held."""
        chosen = range(self.width) if members is None else members
        count = len(data.y) if rows is None else len(rows)
        batch = DENSE_BATCH if data.y.ndim > 2 else EVALUATION_BATCH
        with torch.no_grad():
            for start in range(0, count, batch):
                part: slice | Tensor = slice(start, start + batch)
                part = part if rows is None else rows[part]
                yield data.y[part], self.outputs(data.inputs(part), chosen, features=features).float()


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
        # Copied in place: a captured graph reads the tensors that it was captured with.
        with torch.no_grad():
            for kind in (nn.Module.parameters, nn.Module.buffers):
                for mine, drawn in zip(kind(self.model), kind(fresh), strict=True):
                    mine.copy_(drawn)
        self.optimiser.reset(self.params, self.state)

    def step(self) -> None:
        """Take one step: forward, backward and update."""
        index, epoch, rate = self._next()
        loss = self.forward(self.model, index[0], self.augmentation_seeds[0], epoch)
        # Weights that the network does not use have a gradient of 0.
        grads = torch.autograd.grad(loss, self.params, materialize_grads=True)
        with torch.no_grad():
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

    def forward(model: nn.Module, index: Tensor, seed: Tensor, epoch: Tensor) -> Tensor:
        x = batch(index, seed, epoch)
        if images:
            x = channels_last(x)
        with setup.arithmetic():
            logits = model(x)
        return loss(logits.float(), data.y[index])

    update: Callable[..., None] = make_optimiser(training).step
    if setup.compiled:
        forward = torch.compile(forward, dynamic=False)
        update = torch.compile(update, dynamic=False)
    return lambda: Single(setup, forward, update)


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
