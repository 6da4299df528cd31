"""Layers of stacked networks on a CPU that round alike wherever a network lies in its stack.

Two things would make a network's bits depend on its place and its company. Libraries of matrix
products (MKL, above all on AMD) add up in another order where a matrix does not begin on a
boundary of 64 bytes. And the vectorised loops of torch compute the last few numbers of a tensor
one by one, with another exponential than the others.

Here neither can happen. Rows are filled up with zeros to whole blocks of 64 bytes, so that every
matrix begins on a boundary and no loop has a remainder; and every call multiplies the matrices of
``GROUP`` networks, however many there are in the stack.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

GROUP = 4  # networks whose matrices are multiplied in one call; a stack is a multiple of it
BLOCK = 16  # float32 numbers in 64 bytes, the widest vector and line of the cache

ELEMENTWISE = (nn.ReLU, nn.GELU, nn.Tanh, nn.Identity)
"""Layers that leave zeros zero, and so may be given rows that are filled up."""


def whole_groups(networks: int) -> int:
    """Round a number of networks up to whole groups.

    Examples
    --------
    >>> whole_groups(1), whole_groups(8), whole_groups(9)
    (4, 8, 12)
    """
    return -(-networks // GROUP) * GROUP


def make_room(networks: int, shape: tuple[int, ...]) -> Tensor:
    """Zeros for a parameter of many networks; its last two axes have whole blocks.

    Examples
    --------
    >>> make_room(4, (10, 20)).shape
    torch.Size([4, 16, 32])
    """
    return torch.zeros((networks, *shape[:-2], *map(_whole_blocks, shape[-2:])))


def is_spelled_out(model: nn.Module) -> bool:
    """Whether :func:`forward` does all that calling the network would do: no hooks, no overrides.

    Old-style weight normalisation, for instance, is a hook.
    """
    return not any(
        m._forward_hooks or m._forward_pre_hooks or m._backward_hooks or "forward" in vars(m) for m in model.modules()
    )


def forward(model: nn.Module, weights: Mapping[Tensor, Tensor], x: Tensor) -> Tensor:
    """Outputs of many networks, each for inputs of its own.

    Parameters
    ----------
    model : nn.Module
        The shape of all of them: layers of ``curvewise.nn.stack.STACKABLE``.
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
    """One layer; gives its outputs, perhaps with filled-up rows, and how long a row really is."""
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
    """Rows filled up with zeros to whole blocks, if they are not yet."""
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
