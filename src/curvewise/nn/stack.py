"""Many small networks of one shape in training as one: their weights stacked, their steps batched.

Right for multi-layer perceptrons and linear probes, where one network alone leaves a device idle.
Convolutions gain nothing from it, and batch normalisation keeps counts that cannot be stacked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap
from torch.nn import functional

from curvewise.nn.augmentation import MOVES
from curvewise.nn.lane import Lane, Setup
from curvewise.nn.networks import features_of, notes_of
from curvewise.nn.optimisers import make_loss, make_optimiser
from curvewise.nn.task import Assignment

GROUP = 4  # networks whose matrices are multiplied in one call; a stack on a CPU is a multiple of it
BLOCK = 16  # float32 numbers in 64 bytes, the widest vector and line of the cache

ELEMENTWISE = (nn.ReLU, nn.GELU, nn.Tanh, nn.Identity)
"""Layers that leave zeros zero, and so may be given rows that are filled up."""

STACKABLE = (*ELEMENTWISE, nn.Linear, nn.Flatten, nn.LayerNorm, nn.Sequential)
"""Layers that :func:`stacked_outputs` knows."""


def stackable(model: nn.Module, augmentation: Sequence[str] = ()) -> bool:
    """Tell whether every part of a training is known to give the same bits in any stack."""
    known = all(type(m) in STACKABLE for m in model.modules())
    trained = all(p.requires_grad for p in model.parameters())
    # Augmentations that calculate with pixels may round otherwise in a larger batch.
    exact = all(spec.partition(":")[0] in MOVES for spec in augmentation)
    return known and trained and exact and not list(model.buffers())


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
            ranger = setup.training.optimiser == "ranger"
            self.trained = self.params if ranger else self.stored
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
    forward = _vectorised(setup) if setup.cuda else _grouped(setup)
    update: Callable[..., None] = make_optimiser(setup.training).step
    if setup.compiled:
        forward = torch.compile(forward, dynamic=False)
        update = torch.compile(update, dynamic=False)
    return lambda: Stack(setup, width, forward, update)


def _batches(setup: Setup) -> Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Return a function that gives inputs and targets, shape (networks, batch, …)."""
    data = setup.data
    batch = data.batcher(setup.training.augmentation)

    def batches(index: Tensor, seeds: Tensor, epoch: Tensor) -> tuple[Tensor, Tensor]:
        flat, each = index.flatten(), index.shape[1]
        x = batch(flat, seeds.repeat_interleave(each), epoch.repeat(index.shape[0]))
        return x.view(*index.shape, *x.shape[1:]), data.y[index]

    return batches


Gradients = tuple[list[Tensor], Tensor]


def _vectorised(setup: Setup) -> Callable[..., Gradients]:
    """Return a function that computes gradients and losses on a GPU."""
    batches, loss = _batches(setup), make_loss(setup.training)

    def forward(
        model: nn.Module, names: list[str], params: list[Tensor], index: Tensor, seeds: Tensor, epoch: Tensor
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
    """Return a function that computes gradients and losses on a CPU: bits do not depend on a network's place."""
    batches, losses_of = _batches(setup), make_loss(setup.training, stacked=True)

    def forward(
        model: nn.Module, names: list[str], params: list[Tensor], index: Tensor, seeds: Tensor, epoch: Tensor
    ) -> Gradients:
        x, y = batches(index, seeds, epoch)
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
