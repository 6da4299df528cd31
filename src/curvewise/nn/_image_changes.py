"""What the perturbations do to images; each takes images, magnitudes and a :class:`Draw`."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from curvewise.nn import _colours as colours
from curvewise.nn._augmenting import places, resample, turn
from curvewise.nn._draw import Draw

BLUR = 10.0
"""The widest blur, in pixels."""


def rotated(x: Tensor, degrees: Tensor, draw: Draw) -> Tensor:
    """About the middle, counter-clockwise for positive angles."""
    right, down = turn(*places(x), degrees[:, None, None])
    return resample(x, right, down, draw.fill, draw.interpolation)


def shifted_right(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """To the right by a share of the width, to the left by a negative one."""
    right, down = places(x)
    right = right - share[:, None, None] * x.shape[3]
    return resample(x, right, down, draw.fill, draw.interpolation)


def shifted_down(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """Downwards by a share of the height, upwards by a negative one."""
    right, down = places(x)
    down = down - share[:, None, None] * x.shape[2]
    return resample(x, right, down, draw.fill, draw.interpolation)


def brighter(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """By a factor."""
    return colours.brighten(x, _each(share))


def contrasted(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """Away from the mean grey of the image, or towards it."""
    return colours.stretch_contrast(x, _each(share))


def saturated(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """Away from each pixel's grey, or towards it."""
    return colours.saturate(x, _each(share))


def hued(x: Tensor, turns: Tensor, draw: Draw) -> Tensor:
    """Round the wheel of colours."""
    return colours.turn_hue(x, _each(turns))


def recoloured(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """Brightness, contrast, saturation and hue by one magnitude, clipped after each."""
    share = _each(share)
    return colours.recolour(x, share, share, share, share)


def noisy(x: Tensor, std: Tensor, draw: Draw) -> Tensor:
    """Gaussian noise, its own for each example and value; a negative magnitude flips it."""
    return x + _each(std) * draw.normal(x.shape)


def blurred(x: Tensor, sigma: Tensor, draw: Draw) -> Tensor:
    """Gaussian blur cut off at 4 sigma, the image mirrored at the middle of its border pixels.

    As a product with a matrix for each axis: images smaller than the kernel and a sigma for each
    image are no special cases, which they are for a convolution.
    """
    down, across = (_blur_matrix(sigma, size) for size in x.shape[2:])
    return torch.einsum("bij,bcjk,blk->bcil", down.to(x.dtype), x, across.to(x.dtype))


def _blur_matrix(sigma: Tensor, size: int) -> Tensor:
    """Weights of each pixel for each blurred one, shape (B, size, size)."""
    reach = math.ceil(4 * BLUR)
    offsets = torch.arange(-reach, reach + 1, device=sigma.device)
    spread = sigma.to(torch.float32).clamp(min=1e-6)[:, None]
    weights = torch.exp(-0.5 * (offsets / spread) ** 2)
    weights = weights * (offsets.abs() <= torch.floor(4 * spread + 0.5))
    weights = weights / weights.sum(dim=1, keepdim=True)
    period = max(2 * (size - 1), 1)
    places = (torch.arange(size, device=sigma.device)[:, None] + offsets) % period
    places = torch.minimum(places, period - places) if size > 1 else places * 0
    mirrored = torch.nn.functional.one_hot(places, size).to(weights.dtype)
    return torch.einsum("bo,ioj->bij", weights, mirrored)


def cut_out(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """A rectangle of that share of height and width, wholly inside, at a place drawn for each."""
    inside = torch.ones((), dtype=torch.bool, device=x.device)
    for k, size in enumerate(x.shape[2:]):
        side = torch.round(share * size)
        start = torch.floor(draw.one(k) * (size - side + 1))
        place = torch.arange(size, device=x.device)
        within = (place >= start[:, None]) & (place < (start + side)[:, None])
        shape = [len(x), 1, size, 1] if k == 0 else [len(x), 1, 1, size]
        inside = inside & within.view(shape)
    return torch.where(inside, torch.full_like(x, draw.fill), x)


def _each(magnitude: Tensor) -> Tensor:
    return magnitude[:, None, None, None]
