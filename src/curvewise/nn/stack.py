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

from curvewise.nn.architectures import features_of, make_network, notes_of
from curvewise.nn.lane import Lane, Setup
from curvewise.nn.optimisers import make_optimiser
from curvewise.nn.task import Assignment

STACKABLE = (
    torch.nn.Linear,
    torch.nn.ReLU,
    torch.nn.GELU,
    torch.nn.Tanh,
    torch.nn.SiLU,
    torch.nn.Flatten,
    torch.nn.Identity,
    torch.nn.LayerNorm,
    torch.nn.Sequential,
)


def stackable(model: torch.nn.Module) -> bool:
    """Whether every part of a network is known to work on stacked weights."""
    inner = [m for m in model.modules() if m is not model]
    known = all(type(m) in STACKABLE for m in inner)
    return known and (bool(inner) or type(model) in STACKABLE) and not list(model.buffers())


class Stack(Lane):
    """Networks whose weights have a leading axis for the network."""

    def __init__(self, setup: Setup, width: int, forward: Callable[..., Any], update: Any) -> None:
        super().__init__(setup, width)
        self.forward, self.update = forward, update
        self.skeleton = make_network(setup.training, setup.shape, setup.classes, setup.folder)
        self.skeleton.to(setup.device)
        self.notes = notes_of(self.skeleton)
        named = dict(self.skeleton.named_parameters())
        self.names = list(named)
        self.params = [torch.zeros((width, *p.shape), device=setup.device) for p in named.values()]
        self.state = self.optimiser.start(self.params)

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
                fresh = make_network(setup.training, setup.shape, setup.classes, setup.folder)
                for found, parameter in zip(drawn, fresh.parameters(), strict=True):
                    found.append(parameter.detach())
        for mine, found in zip(self.params, drawn, strict=True):
            mine.copy_(torch.stack(found + found[-1:] * (self.width - len(found))))
        self.optimiser.reset(self.params, self.state)

    def step(self) -> None:
        """One step of all networks."""
        index, epoch, rate = self._next()
        with torch.no_grad():
            grads, losses = self.forward(
                self.skeleton, self.names, self.params, index, self.augmentation_seeds, epoch
            )
            self.count.add_(1)
            self.update(self.params, grads, self.state, rate, self.count, stacked=True)
            self._count_up(losses)

    def logits(self, x: Tensor) -> Tensor:
        """Outputs of all networks for the same prepared inputs."""
        return self._evaluated(self.skeleton, x)

    def features(self, x: Tensor) -> Tensor:
        """Inputs of their last layers."""
        found = []
        for member in range(self.width):
            own = {k: p[member] for k, p in zip(self.names, self.params, strict=True)}
            with torch.no_grad():
                for name, parameter in self.skeleton.named_parameters():
                    parameter.copy_(own[name])
            with self.setup.arithmetic():
                found.append(features_of(self.skeleton, x))
        return torch.stack(found)

    def _evaluated(self, model: torch.nn.Module, x: Tensor) -> Tensor:
        def look(params: dict[str, Tensor]) -> Tensor:
            result: Tensor = functional_call(model, params, (x,))
            return result

        with self.setup.arithmetic():
            together: Tensor = vmap(look)(dict(zip(self.names, self.params, strict=True)))
        return together

    def weights(self, member: int) -> dict[str, NDArray[Any]]:
        """A copy of one network's parameters."""
        return {
            k: p[member].detach().cpu().numpy()
            for k, p in zip(self.names, self.params, strict=True)
        }

    def _tensors(self) -> list[Tensor]:
        return [*self.params, *(t for slot in self.state.values() for t in slot), self.count]


def make_stack(setup: Setup, width: int) -> Callable[[], Stack]:
    """A maker of stacks that share one compiled step."""
    training, data = setup.training, setup.data
    batch = data.batcher(training.augmentation)

    def forward(
        model: torch.nn.Module,
        names: list[str],
        params: list[Tensor],
        index: Tensor,
        seeds: Tensor,
        epoch: Tensor,
    ) -> tuple[list[Tensor], Tensor]:
        flat = index.flatten()
        each = index.shape[1]
        x = batch(flat, seeds.repeat_interleave(each), epoch.repeat(index.shape[0]))
        x = x.view(*index.shape, *x.shape[1:])
        y = data.y[index]

        def loss_of(weights: list[Tensor], x_one: Tensor, y_one: Tensor) -> Tensor:
            with setup.arithmetic():
                logits = functional_call(model, dict(zip(names, weights, strict=True)), (x_one,))
            return torch.nn.functional.cross_entropy(
                logits.float(), y_one, label_smoothing=training.label_smoothing
            )

        found: tuple[list[Tensor], Tensor] = vmap(grad_and_value(loss_of))(params, x, y)
        return found

    update: Callable[..., None] = make_optimiser(training).step
    if setup.compiled:
        forward = torch.compile(forward, dynamic=False)
        update = torch.compile(update, dynamic=False)
    return lambda: Stack(setup, width, forward, update)
