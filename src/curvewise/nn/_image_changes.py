"""What the perturbations do to images; each takes images, magnitudes and a :class:`Draw`."""

from __future__ import annotations

import math
from dataclasses import dataclass

import kornia
import torch
from torch import Tensor

from curvewise.nn.chance import uniform

BLUR = 10.0
"""The widest blur, in pixels."""


@dataclass(frozen=True)
class Draw:
    """What a perturbation is given beside images and magnitudes.

    Attributes
    ----------
    seed : Tensor
        Decides noise and places; one number.
    positions : Tensor of int, shape (B,)
        Which example of the whole each image is, so that noise does not depend on the batch.
    fill : float
        Value from 0 to 1 of what comes in from outside the image, and of what is cut out.
    interpolation : {"bilinear", "nearest"}
        Between pixels, for what moves them.
    """

    seed: Tensor
    positions: Tensor
    fill: float
    interpolation: str


def rotated(x: Tensor, degrees: Tensor, draw: Draw) -> Tensor:
    """About the middle, counter-clockwise for positive angles."""
    turned = kornia.geometry.transform.rotate(
        x - draw.fill, degrees, mode=draw.interpolation, padding_mode="zeros", align_corners=True
    )
    return turned + draw.fill


def shifted_right(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """To the right by a share of the width, to the left by a negative one."""
    return _moved(x, share, draw, 0)


def shifted_down(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """Downwards by a share of the height, upwards by a negative one."""
    return _moved(x, share, draw, 1)


def _moved(x: Tensor, share: Tensor, draw: Draw, axis: int) -> Tensor:
    pixels = torch.zeros(len(x), 2, dtype=x.dtype, device=x.device)
    pixels[:, axis] = share * x.shape[3 - axis]
    moved = kornia.geometry.transform.translate(
        x - draw.fill, pixels, mode=draw.interpolation, padding_mode="zeros", align_corners=True
    )
    return moved + draw.fill


def brighter(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """By a constant."""
    return x + _each(share)


def scaled(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """By a factor."""
    return x * (1 + _each(share))


def contrasted(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """Away from the mean grey of the image, or towards it."""
    mean = _grey(x).mean(dim=(1, 2, 3), keepdim=True)
    return mean + (x - mean) * (1 + _each(share))


def saturated(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """Away from each pixel's grey, or towards it."""
    grey = _grey(x)
    return grey + (x - grey) * (1 + _each(share))


def hued(x: Tensor, turns: Tensor, draw: Draw) -> Tensor:
    """Round the wheel of colours."""
    return kornia.enhance.adjust_hue(x, turns * (2 * math.pi))


def recoloured(x: Tensor, share: Tensor, draw: Draw) -> Tensor:
    """Brightness, contrast, saturation and hue by one magnitude, clipped after each."""
    for change in (brighter, contrasted, saturated, hued):
        x = change(x, share, draw).clamp(0, 1)
    return x


def noisy(x: Tensor, std: Tensor, draw: Draw) -> Tensor:
    """Gaussian noise, its own for each example and value; a negative magnitude flips it."""
    places = torch.arange(x[0].numel(), device=x.device).view(x.shape[1:])
    first, second = (
        uniform(draw.seed, draw.positions[:, None, None, None], places, k) for k in (0, 1)
    )
    radius = torch.sqrt(-2 * torch.log1p(-first))  # 1 - first is never 0
    normal = radius * torch.cos(2 * math.pi * second)
    return x + _each(std) * normal.to(x.dtype)


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
        start = torch.floor(uniform(draw.seed, draw.positions, k) * (size - side + 1))
        place = torch.arange(size, device=x.device)
        within = (place >= start[:, None]) & (place < (start + side)[:, None])
        shape = [len(x), 1, size, 1] if k == 0 else [len(x), 1, 1, size]
        inside = inside & within.view(shape)
    return torch.where(inside, torch.full_like(x, draw.fill), x)


def _grey(x: Tensor) -> Tensor:
    """Luma of three channels, the mean of any other number; shape (B, 1, H, W)."""
    if x.shape[1] == 3:
        return kornia.color.rgb_to_grayscale(x)
    return x.mean(dim=1, keepdim=True)


def _each(magnitude: Tensor) -> Tensor:
    return magnitude[:, None, None, None]
