"""Many small networks of one shape in training as one: their weights stacked, their steps batched.

Right for multi-layer perceptrons and linear probes, where one network alone leaves a device idle.
Convolutions gain nothing from it, and batch normalisation keeps counts that cannot be stacked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import functional_call, grad_and_value, vmap

from curvewise.nn import alignment as _aligned
from curvewise.nn.lane import Lane, Setup
from curvewise.nn.networks import features_of, make_network, notes_of
from curvewise.nn.optimisers import make_loss, make_losses, make_optimiser
from curvewise.nn.task import Assignment

# Layers that ``_aligned`` knows. All but the linear ones and LayerNorm leave zeros zero.
STACKABLE = (
    torch.nn.Linear,
    torch.nn.ReLU,
    torch.nn.GELU,
    torch.nn.Tanh,
    torch.nn.Flatten,
    torch.nn.Identity,
    torch.nn.LayerNorm,
    torch.nn.Sequential,
)


EXACT = ("flip", "translate", "crop", "cutout")
"""Augmentations that move pixels and do not calculate with them."""


def stackable(model: torch.nn.Module, augmentation: Sequence[str] = ()) -> bool:
    """Whether every part of a training is known to give the same bits in any stack."""
    known = all(type(m) in STACKABLE for m in model.modules())
    trained = all(p.requires_grad for p in model.parameters())
    exact = all(spec.partition(":")[0] in EXACT for spec in augmentation)
    return known and trained and exact and not list(model.buffers())


class Stack(Lane):
    """Networks whose weights have a leading axis for the network.

    On a CPU weights lie in tensors that are filled up with zeros (``stored``), so that bits do not
    depend on a network's place; ``params`` are the parts of them that networks use.
    """

    def __init__(self, setup: Setup, width: int, forward: Callable[..., Any], update: Any) -> None:
        super().__init__(setup, width)
        self.forward, self.update = forward, update
        with torch.random.fork_rng(devices=[]):
            self.skeleton = make_network(setup.training, setup.shape, setup.outputs, setup.folder)
        self.skeleton.to(setup.device)
        self.notes = notes_of(self.skeleton)
        named = dict(self.skeleton.named_parameters())
        self.names = list(named)
        shapes = [tuple(p.shape) for p in named.values()]
        if setup.cuda:
            self.stored = [torch.zeros((width, *s), device=setup.device) for s in shapes]
            self.params = self.trained = self.stored
        else:
            self.stored = [_aligned.make_room(width, s) for s in shapes]
            self.params = self._used(self.stored, shapes)
            # Ranger takes means over a matrix, in which the zeros would count.
            ranger = setup.training.optimiser == "ranger"
            self.trained = self.params if ranger else self.stored
        self.state = self.optimiser.start(self.trained)

    def begin(self, assignments: Sequence[Assignment]) -> None:
        """Draw the initial weights of each network from its own seed."""
        setup = self.setup
        # A stack that is not full is filled up with its last network, so that its width, on which
        # rounding may depend, is the same whoever trains in it.
        full = [*assignments, *[assignments[-1]] * (self.width - len(assignments))]
        self.place(full)
        drawn: list[list[Tensor]] = [[] for _ in self.params]
        with torch.random.fork_rng(devices=[]):
            for assignment in assignments:
                torch.default_generator.manual_seed(assignment.init)
                fresh = make_network(setup.training, setup.shape, setup.outputs, setup.folder)
                for found, parameter in zip(drawn, fresh.parameters(), strict=True):
                    found.append(parameter.detach())
        for room, mine, found in zip(self.stored, self.params, drawn, strict=True):
            room.zero_()  # a network that diverged here leaves NaN where there should be zeros
            mine.copy_(torch.stack(found + found[-1:] * (self.width - len(found))))
        self.optimiser.reset(self.trained, self.state)

    def step(self) -> None:
        """One step of all networks."""
        index, epoch, rate = self._next()
        with torch.no_grad():
            grads, losses = self.forward(self.skeleton, self.names, self.stored, index, self.augmentation_seeds, epoch)
            if self.trained is not self.stored:
                grads = self._used(grads, [tuple(p.shape[1:]) for p in self.params])
            self.count.add_(1)
            self.update(self.trained, grads, self.state, rate, self.count, stacked=True)
            self._count_up(losses)

    @staticmethod
    def _used(stored: Sequence[Tensor], shapes: Sequence[tuple[int, ...]]) -> list[Tensor]:
        both = zip(stored, shapes, strict=True)
        return [tensor[(slice(None), *map(slice, shape))] for tensor, shape in both]

    def logits(self, x: Tensor, members: Sequence[int]) -> Tensor:
        """Outputs of networks for the same prepared inputs."""
        return torch.stack([self._evaluated(self.skeleton, x, member) for member in members])

    def features(self, x: Tensor, members: Sequence[int]) -> Tensor:
        """Inputs of their last layers."""
        model = self.skeleton
        found = [self._evaluated(lambda x: features_of(model, x), x, m) for m in members]
        return torch.stack(found)

    def _evaluated(self, look: Callable[[Tensor], Tensor], x: Tensor, member: int) -> Tensor:
        """One network after the other, which rounds as if each were alone."""
        with torch.no_grad():
            for mine, stacked in zip(self.skeleton.parameters(), self.params, strict=True):
                mine.copy_(stacked[member])
        with self.setup.arithmetic():
            return look(x)

    def weights(self, member: int) -> dict[str, NDArray[Any]]:
        """A copy of one network's parameters."""
        return {k: p[member].detach().cpu().numpy().copy() for k, p in zip(self.names, self.params, strict=True)}

    def _tensors(self) -> list[Tensor]:
        return [*self.stored, *(t for slot in self.state.values() for t in slot), self.count]


def make_stack(setup: Setup, width: int) -> Callable[[], Stack]:
    """A maker of stacks that share one compiled step.

    On a CPU a stack has room for at least ``width`` networks, in whole groups.
    """
    if not setup.cuda:
        width = _aligned.whole_groups(width)
    forward = _vectorised(setup) if setup.cuda else _grouped(setup)
    update: Callable[..., None] = make_optimiser(setup.training).step
    if setup.compiled:
        forward = torch.compile(forward, dynamic=False)
        update = torch.compile(update, dynamic=False)
    return lambda: Stack(setup, width, forward, update)


def _batches(setup: Setup) -> Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]:
    """A function that gives inputs and targets, shape (networks, batch, …)."""
    data = setup.data
    batch = data.batcher(setup.training.augmentation)

    def batches(index: Tensor, seeds: Tensor, epoch: Tensor) -> tuple[Tensor, Tensor]:
        flat, each = index.flatten(), index.shape[1]
        x = batch(flat, seeds.repeat_interleave(each), epoch.repeat(index.shape[0]))
        return x.view(*index.shape, *x.shape[1:]), data.y[index]

    return batches


Gradients = tuple[list[Tensor], Tensor]


def _vectorised(setup: Setup) -> Callable[..., Gradients]:
    """Gradients and losses on a GPU."""
    batches, loss = _batches(setup), make_loss(setup.training)

    def forward(
        model: torch.nn.Module, names: list[str], params: list[Tensor], index: Tensor, seeds: Tensor, epoch: Tensor
    ) -> Gradients:
        x, y = batches(index, seeds, epoch)

        def loss_of(weights: list[Tensor], x_one: Tensor, y_one: Tensor) -> Tensor:
            with setup.arithmetic():
                logits = functional_call(model, dict(zip(names, weights, strict=True)), (x_one,))
            return loss(logits.float(), y_one)

        found: Gradients = vmap(grad_and_value(loss_of))(params, x, y)
        return found

    return forward


def _grouped(setup: Setup) -> Callable[..., Gradients]:
    """Gradients and losses on a CPU, where a network's bits must not depend on its place."""
    batches, losses_of = _batches(setup), make_losses(setup.training)

    def forward(
        model: torch.nn.Module, names: list[str], params: list[Tensor], index: Tensor, seeds: Tensor, epoch: Tensor
    ) -> Gradients:
        x, y = batches(index, seeds, epoch)
        with torch.enable_grad():
            leaves = [p.detach().requires_grad_() for p in params]
            weights: dict[Tensor, Tensor] = dict(zip(model.parameters(), leaves, strict=True))
            losses = losses_of(_aligned.forward(model, weights, x), y)
            grads = torch.autograd.grad(losses, leaves, torch.ones_like(losses))
        return list(grads), losses.detach()

    return forward
