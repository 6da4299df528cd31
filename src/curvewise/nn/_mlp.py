"""Networks for any input: a linear classifier and the multi-layer perceptron."""

from __future__ import annotations

import math

from torch import nn

from curvewise.nn._layers import at_least_one, draw


def linear(shape: tuple[int, ...], classes: int, *, bias: bool = True) -> nn.Module:
    """One linear layer on the flattened input: a convex problem."""
    return draw(nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), classes, bias=bias)))


def mlp(
    shape: tuple[int, ...],
    classes: int,
    *,
    width: int = 128,
    depth: int = 2,
    batch_norm: bool = False,
) -> nn.Module:
    """Hidden layers of one width with ReLU, then a linear layer.

    Parameters
    ----------
    shape : tuple of int
        Shape of one input; flattened.
    classes : int
        Outputs.
    width, depth : int
        Units of a hidden layer, and hidden layers.
    batch_norm : bool
        Batch norm before each ReLU.
    """
    at_least_one(width=width, depth=depth)
    layers: list[nn.Module] = [nn.Flatten()]
    inside = math.prod(shape)
    for _ in range(depth):
        layers.append(nn.Linear(inside, width))
        if batch_norm:
            layers.append(nn.BatchNorm1d(width))
        layers.append(nn.ReLU(inplace=True))
        inside = width
    return draw(nn.Sequential(*layers, nn.Linear(inside, classes)))
