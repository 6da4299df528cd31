"""Brightness, contrast, saturation and hue of images: what augmentation and perturbation share.

Shares have the shape (B, 1, 1, 1). Nothing is cut to 0…1 but in :func:`recolour`.
"""

from __future__ import annotations

import torch
from torch import Tensor


def recolour(x: Tensor, light: Tensor, contrast: Tensor, saturation: Tensor, hue: Tensor) -> Tensor:
    """Brightness, contrast, saturation and hue in that order, cut to 0…1 after each.

    Only images of three channels have saturation and hue; others change in the first two.
    """
    x = brighten(x, light).clamp(0, 1)
    x = stretch_contrast(x, contrast).clamp(0, 1)
    if x.shape[1] != 3:
        return x
    return turn_hue(saturate(x, saturation).clamp(0, 1), hue)


def brighten(x: Tensor, share: Tensor) -> Tensor:
    """Scale the image."""
    return x * (1 + share)


def stretch_contrast(x: Tensor, share: Tensor) -> Tensor:
    """Scale the distance from the mean grey of the image."""
    mean = grey(x).mean(dim=(-2, -1), keepdim=True)
    return mean + (x - mean) * (1 + share)


def saturate(x: Tensor, share: Tensor) -> Tensor:
    """Scale the distance from the grey of each pixel."""
    level = grey(x)
    return level + (x - level) * (1 + share)


def grey(x: Tensor) -> Tensor:
    """How bright each pixel looks, shape (B, 1, H, W): luma, or the mean of other than 3 channels.

    >>> grey(torch.tensor([1.0, 0.5, 0.0]).view(1, 3, 1, 1)).item()
    0.5924999713897705
    """
    if x.shape[1] != 3:
        return x.mean(dim=1, keepdim=True)
    red, green, blue = x.unbind(1)
    return (0.299 * red + 0.587 * green + 0.114 * blue).unsqueeze(1)


def turn_hue(x: Tensor, turns: Tensor) -> Tensor:
    """Turn the hue of colours by a share of the circle, keeping saturation and value."""
    red, green, blue = x.unbind(1)
    value, least = x.amax(1), x.amin(1)
    spread = value - least
    unit = torch.where(spread > 0, spread, 1.0)
    sixth = torch.where(
        value == red,
        (green - blue) / unit,
        torch.where(value == green, 2 + (blue - red) / unit, 4 + (red - green) / unit),
    )
    sixth = sixth + 6 * turns.squeeze(1)

    def channel(offset: int) -> Tensor:
        place = torch.remainder(sixth + offset, 6)
        return value - spread * torch.minimum(place, 4 - place).clamp(0, 1)

    return torch.stack([channel(5), channel(3), channel(1)], dim=1)
