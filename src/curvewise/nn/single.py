"""One network in training, as a module: eager, or compiled and captured as a CUDA graph."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from curvewise.nn.architectures import features_of, make_network, notes_of
from curvewise.nn.lane import Lane, Setup
from curvewise.nn.losses import make_loss
from curvewise.nn.optimisers import make_optimiser
from curvewise.nn.targets import check_shape
from curvewise.nn.task import Assignment


class Single(Lane):
    """One network, as a module."""

    def __init__(self, setup: Setup, forward: Callable[..., Tensor], update: Any) -> None:
        super().__init__(setup, 1)
        self.forward, self.update = forward, update
        with torch.random.fork_rng(devices=[]):
            self.model = make_network(setup.training, setup.shape, setup.outputs, setup.folder)
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
        setup = self.setup
        self.place(assignments)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(assignments[0].init)
            fresh = make_network(setup.training, setup.shape, setup.outputs, setup.folder)
        with torch.no_grad():
            for kind in (torch.nn.Module.parameters, torch.nn.Module.buffers):
                for mine, drawn in zip(kind(self.model), kind(fresh), strict=True):
                    mine.copy_(drawn)
        self.optimiser.reset(self.params, self.state)

    def step(self) -> None:
        """One step, forward, backward and update."""
        index, epoch, rate = self._next()
        loss = self.forward(self.model, index[0], self.augmentation_seeds[0], epoch)
        # Weights that the network does not use have a gradient of 0.
        grads = torch.autograd.grad(loss, self.params, materialize_grads=True)
        with torch.no_grad():
            self.count.add_(1)
            self.update(self.params, grads, self.state, rate, self.count)
            self._count_up(loss.detach())

    def logits(self, x: Tensor, members: Sequence[int]) -> Tensor:
        """Outputs of the network for prepared inputs."""
        return self._evaluated(self.model, x)[None]

    def features(self, x: Tensor, members: Sequence[int]) -> Tensor:
        """Inputs of its last layer."""
        return self._evaluated(lambda batch: features_of(self.model, batch), x)[None]

    def _evaluated(self, look: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        self.model.eval()
        try:
            with self.setup.arithmetic():
                images = self.setup.data.kind == "images"
                return look(channels_last(x) if images else x)
        finally:
            self.model.train()

    def weights(self, member: int) -> dict[str, NDArray[Any]]:
        """A copy of its parameters and buffers."""
        state = self.model.state_dict()
        return {k: v.detach().cpu().numpy().copy(order="C") for k, v in state.items()}

    def _tensors(self) -> list[Tensor]:
        slots = (t for slot in self.state.values() for t in slot)
        return [*self.params, *self.buffers, *slots, self.count]


def make_single(setup: Setup) -> Callable[[], Single]:
    """A maker of lanes that share one compiled step."""
    training, data = setup.training, setup.data
    batch = data.batcher(training.augmentation)
    images, loss = data.kind == "images", make_loss(training)

    def forward(model: torch.nn.Module, index: Tensor, seed: Tensor, epoch: Tensor) -> Tensor:
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


def stochastic(model: torch.nn.Module) -> bool:
    """Whether a network draws random numbers of its own while it is trained."""
    names = ("dropout", "droppath", "stochasticdepth")
    return any(
        any(name in type(m).__name__.lower() for name in names) and getattr(m, "p", 1.0)
        for m in model.modules()
    ) or any(getattr(m, "config", None) is not None for m in model.modules())


def draws(model: torch.nn.Module, x: Tensor) -> bool:
    """Whether a forward pass moves torch's generator, such as ``functional.dropout`` does."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        before = torch.default_generator.get_state()
        with contextlib.suppress(Exception):  # which the training will tell
            model(x)
        return not torch.equal(before, torch.default_generator.get_state())


def check_outputs(model: torch.nn.Module, x: Tensor, outputs: tuple[int, ...]) -> None:
    """Refuse a network whose outputs have not the shape of a target: numbers would be spread."""
    model.eval()
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        try:
            shape = tuple(model(x).shape)
        except Exception:  # which the training will tell
            return
        finally:
            model.train()
    check_shape(shape, (len(x), *outputs))
