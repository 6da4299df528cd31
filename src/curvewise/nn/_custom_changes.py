"""Perturbations that are a function someone wrote."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from curvewise.errors import InputError
from curvewise.nn._draw import Draw
from curvewise.nn.chance import hashed

Custom = Callable[[Tensor, float, torch.Generator], Tensor]


def change_of(function: Custom, name: str) -> Callable[[Tensor, Tensor, Draw], Tensor]:
    """A change that calls the function once for each magnitude in a batch, and checks its answer.

    It is not called for magnitude 0. Its generator is set by the seed and the first position.
    """

    def change(x: Tensor, magnitudes: Tensor, draw: Draw) -> Tensor:
        state = int(hashed(draw.seed, draw.positions[0])) & (2**63 - 1)
        rng = torch.Generator(device=x.device).manual_seed(state)
        out = x.clone()
        for magnitude in sorted(set(magnitudes.tolist()) - {0.0}):
            rows = (magnitudes == magnitude).nonzero().squeeze(1)
            said = float(f"{magnitude:.7g}") if x.dtype == torch.float32 else magnitude
            out[rows] = _checked(function(x[rows], said, rng), x[rows], name)
        return out

    return change


def _checked(changed: Any, x: Tensor, name: str) -> Tensor:
    if not isinstance(changed, Tensor):
        raise InputError(
            f"perturbation={name!r} returned {type(changed).__name__}: return the changed tensor."
        )
    if changed.shape != x.shape:
        raise InputError(
            f"perturbation={name!r} returned shape {tuple(changed.shape)} for an x of "
            f"{tuple(x.shape)}: keep the shape."
        )
    if changed.device != x.device:
        raise InputError(
            f"perturbation={name!r} returned a tensor on {changed.device} for an x on {x.device}: "
            "keep the device."
        )
    if not changed.is_floating_point():
        raise InputError(
            f"perturbation={name!r} returned {changed.dtype} for an x of {x.dtype}: return "
            "floating point."
        )
    return changed.to(x.dtype)
