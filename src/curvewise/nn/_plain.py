"""Convolutional networks without shortcuts: a small one, VGG, and network in network."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from curvewise.nn._layers import at_least_one, conv, draw, image_shape

_VGG = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


def cnn(shape: tuple[int, ...], classes: int, *, width: int = 32) -> nn.Module:
    """Three 3×3 convolutions, each with ReLU and pooling, then a linear layer.

    The convolutions have width, 2 · width and 2 · width channels. Pooling is left out where an
    image is one pixel wide or high already.
    """
    channels, height, side = image_shape(shape, "cnn")
    at_least_one(width=width)
    layers: list[nn.Module] = []
    for outside in (width, 2 * width, 2 * width):
        layers += conv(channels, outside, 3, batch_norm=False)
        pool, height, side = _halved(height, side)
        layers.append(pool)
        channels = outside
    head = nn.Linear(channels * height * side, classes)
    return draw(nn.Sequential(*layers, nn.Flatten(), head))


class Vgg(nn.Module):
    """Simonyan and Zisserman's network with one linear layer, as is usual for small images.

    Layers are named as in torchvision; pooling is left out once a side is one pixel. There, of a
    3×3 kernel only the middle meets the image: weights are drawn by how many inputs a convolution
    really adds up, or the signal of an 8×8 image would be gone before the last layer.

    Parameters
    ----------
    layers : {11, 13, 16, 19}
        Which of the four; layers with weights in the original.
    shape, classes
        Of one input, and of the output.
    batch_norm : bool
        Batch norm after each convolution.
    width : int
        Channels of the first stage; the others have 2, 4, 8 and 8 times as many.
    """

    def __init__(
        self,
        layers: int,
        shape: tuple[int, ...],
        classes: int,
        *,
        batch_norm: bool = False,
        width: int = 64,
    ) -> None:
        super().__init__()
        channels, height, side = image_shape(shape, f"vgg{layers}")
        at_least_one(width=width)
        stages: list[nn.Module] = []
        met: list[float] = []
        for repeats, outside in zip(_VGG[layers], (1, 2, 4, 8, 8), strict=True):
            for _ in range(repeats):
                stages += conv(channels, outside * width, 3, batch_norm=batch_norm)
                met.append(_met(height) * _met(side))
                channels = outside * width
            pool, height, side = _halved(height, side)
            stages.append(pool)
        self.features = nn.Sequential(*stages)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(channels, classes)
        draw(self)
        convolutions = [m for m in stages if isinstance(m, nn.Conv2d)]
        with torch.no_grad():
            for convolution, places in zip(convolutions, met, strict=True):
                convolution.weight.mul_(math.sqrt(9 / places))

    def forward(self, x: Tensor) -> Tensor:
        """Logits."""
        logits: Tensor = self.classifier(self.pool(self.features(x)).flatten(1))
        return logits


def vgg11(
    shape: tuple[int, ...], classes: int, *, batch_norm: bool = False, width: int = 64
) -> nn.Module:
    """VGG with 8 convolutions."""
    return Vgg(11, shape, classes, batch_norm=batch_norm, width=width)


def vgg13(
    shape: tuple[int, ...], classes: int, *, batch_norm: bool = False, width: int = 64
) -> nn.Module:
    """VGG with 10 convolutions."""
    return Vgg(13, shape, classes, batch_norm=batch_norm, width=width)


def vgg16(
    shape: tuple[int, ...], classes: int, *, batch_norm: bool = False, width: int = 64
) -> nn.Module:
    """VGG with 13 convolutions."""
    return Vgg(16, shape, classes, batch_norm=batch_norm, width=width)


def vgg19(
    shape: tuple[int, ...], classes: int, *, batch_norm: bool = False, width: int = 64
) -> nn.Module:
    """VGG with 16 convolutions."""
    return Vgg(19, shape, classes, batch_norm=batch_norm, width=width)


def nin(
    shape: tuple[int, ...],
    classes: int,
    *,
    depth: int = 3,
    width: int = 192,
    batch_norm: bool = False,
) -> nn.Module:
    """Network in network: blocks of a convolution and two layers across channels at each pixel.

    The first block's convolution is 5×5, the others' 3×3; images are halved between blocks. A
    global mean over pixels precedes the linear layer, which is the same as averaging class maps.

    Parameters
    ----------
    shape, classes
        Of one input, and of the output.
    depth, width : int
        Blocks, and channels of each layer.
    batch_norm : bool
        Batch norm after each convolution.
    """
    channels, height, side = image_shape(shape, "nin")
    at_least_one(depth=depth, width=width)
    layers: list[nn.Module] = []
    for block in range(depth):
        if block:
            pool, height, side = _halved(height, side)
            layers.append(pool)
        layers += conv(channels, width, 3 if block else 5, batch_norm=batch_norm)
        layers += conv(width, width, 1, batch_norm=batch_norm)
        layers += conv(width, width, 1, batch_norm=batch_norm)
        channels = width
    head = nn.Linear(width, classes)
    return draw(nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), head))


def _met(side: int) -> float:
    """Of the three places of a kernel along an axis, how many meet the image on average."""
    return 3 - 2 / side


def _halved(height: int, width: int) -> tuple[nn.Module, int, int]:
    """Pooling, or nothing where a side is one pixel; and the size after it."""
    if min(height, width) < 2:
        return nn.Identity(), height, width
    return nn.MaxPool2d(2), height // 2, width // 2
