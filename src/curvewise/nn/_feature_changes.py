"""What the perturbations do to values of any kind: features of tables, outputs of layers."""

from __future__ import annotations

import torch
from torch import Tensor

from curvewise.errors import InputError
from curvewise.nn._draw import Draw, each
from curvewise.nn._token_changes import Roles


def mixed(x: Tensor, share: Tensor, partner: Tensor) -> Tensor:
    """A straight line from each example to its partner, by that share of the way."""
    share = each(share, x.ndim)
    return (1 - share) * x + share * partner


def scaled(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """By a factor."""
    return x * (1 + each(share, x.ndim))


def jittered(x: Tensor, std: Tensor, draw: Draw) -> Tensor:
    """Gaussian noise in units of each value's spread over the sample, which ``draw.known`` is."""
    spread: Tensor = draw.known.to(x)
    _check_like(x, spread.shape, "feature-noise")
    return x + each(std, x.ndim) * spread * draw.normal(x.shape)


def spreads(x: Tensor, roles: Roles) -> Tensor:
    """Take the standard deviation of each value over the examples."""
    kept = x if x.dtype == torch.float64 else x.to(torch.float32)
    return kept.std(dim=0, correction=0)


def swapped(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """That share of each example's features taken from one other example of ``draw.known``.

    Positions count through the sample, so that no example is given its own features back.
    """
    pool = draw.known.to(x)
    _check_like(x, pool.shape[1:], "feature-swap")
    step = 1 + torch.floor(draw.one(2) * (len(pool) - 1)).to(torch.int64)
    donors = pool[(draw.positions + step) % len(pool)]
    return torch.where(draw.chosen(torch.ones_like(x, dtype=torch.bool), share), donors, x)


def donors(x: Tensor, roles: Roles) -> Tensor:
    """All examples, to take features from."""
    if len(x) < 2:
        raise InputError(
            "feature-swap takes features from another example: give a sample of at least 2."
        )
    return x


def _check_like(x: Tensor, shape: torch.Size, name: str) -> None:
    if x.shape[1:] != shape:
        raise InputError(
            f"{name} was fitted to examples of shape {tuple(shape)} and given some of shape "
            f"{tuple(x.shape[1:])}: fit it to the sample that it is for."
        )
