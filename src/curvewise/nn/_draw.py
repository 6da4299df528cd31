"""Chance for perturbations: a function of a seed, an example and a place, not of the batch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from curvewise.nn.chance import hashed, uniform


@dataclass(frozen=True)
class Draw:
    """What a perturbation is given beside examples and magnitudes.

    Attributes
    ----------
    seed : Tensor
        Decides noise and places; one number.
    positions : Tensor of int, shape (B,)
        Which example of the whole each one is, so that noise does not depend on the batch.
    fill : float
        Value from 0 to 1 of what comes in from outside an image, and of what is cut out.
    interpolation : {"bilinear", "nearest"}
        Between pixels, for what moves them.
    known : object, optional
        What the perturbation was told of the whole sample: spreads, other examples, tokens.
    """

    seed: Tensor
    positions: Tensor
    fill: float = 0.0
    interpolation: str = "bilinear"
    known: Any = None

    def normal(self, shape: torch.Size) -> Tensor:
        """Normal numbers, their own for each example and place; float32 of that shape.

        Both of the uniform numbers that make a normal one are bits of a single hash.
        """
        bits = hashed(self.seed, each(self.positions, len(shape)), self._places(shape))
        first, second = ((bits >> k & 0xFFFFFF).to(torch.float32) * 2.0**-24 for k in (40, 16))
        radius = torch.sqrt(-2 * torch.log1p(-first))  # 1 - first is never 0
        return radius * torch.cos(2 * math.pi * second)

    def uniform(self, shape: torch.Size, number: int) -> Tensor:
        """Numbers in [0, 1), their own for each example and place; float32 of that shape."""
        return uniform(self.seed, each(self.positions, len(shape)), self._places(shape), number)

    def _places(self, shape: torch.Size) -> Tensor:
        return torch.arange(shape[1:].numel(), device=self.positions.device).view(shape[1:])

    def one(self, number: int) -> Tensor:
        """Numbers in [0, 1), one for each example; float32 of shape (B,)."""
        return uniform(self.seed, self.positions, number)

    def chosen(self, allowed: Tensor, share: Tensor) -> Tensor:
        """Choose that share of the allowed places of each example; a larger share adds places.

        The count is rounded up or down by chance, so that it is the share on average however few
        places there are.
        """
        numbers = torch.where(allowed, self.uniform(allowed.shape, 0), 2.0)
        wanted = torch.floor(share * allowed.sum(dim=1) + self.one(1))
        ranks = numbers.argsort(dim=1, stable=True).argsort(dim=1, stable=True)
        return (ranks < wanted[:, None]) & allowed


def each(values: Tensor, ndim: int) -> Tensor:
    """One value for each example, in a shape that goes with tensors of so many dimensions."""
    return values.view(-1, *([1] * (ndim - 1)))
