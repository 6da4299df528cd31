"""From an image to an image: an encoder, and a decoder that brings back its resolution."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from curvewise.errors import InputError
from curvewise.nn._layers import draw, image_shape
from curvewise.nn._resnet import ResNet, resnet18, resnet34, resnet50

ENCODERS = {"resnet18": resnet18, "resnet34": resnet34, "resnet50": resnet50}


class Unet(nn.Module):
    """A residual network without its last layer, and a decoder with links across.

    The encoder is the network of that name, its layers named alike, so that a file of weights of
    one that was trained to classify fits it. From its last stage on, four steps enlarge the image
    to the size of the stage before, put that stage's channels beside, and convolve. Images are
    enlarged by repeating pixels, whose gradient is the same each time on a GPU.

    Parameters
    ----------
    shape : tuple of int
        Of one input: (channels, height, width).
    outputs : tuple of int
        Of one target: (channels, height, width), of any height and width.
    encoder : {"resnet18", "resnet34", "resnet50"}
        Which network.
    width : int
        Channels of its first stage.
    stem : {"small", "imagenet"}
        How it begins, as of that network.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        outputs: tuple[int, ...],
        *,
        encoder: str = "resnet18",
        width: int = 64,
        stem: str = "small",
    ) -> None:
        super().__init__()
        image_shape(shape, "unet")
        if encoder not in ENCODERS:
            raise InputError(
                f"options: encoder={encoder!r} is not known: use one of {', '.join(ENCODERS)}."
            )
        body = ENCODERS[encoder](shape, 1, width=width, stem=stem)
        assert isinstance(body, ResNet)
        last = body.fc.in_features
        body.fc = nn.Identity()  # type: ignore[assignment]
        self.encoder = body
        sides = [width, *(last // 2**k for k in (3, 2, 1))]  # channels of stem and stages
        steps, inside = [], last
        for beside in reversed(sides):
            steps.append(_convolution(inside + beside, beside))
            inside = beside
        self.decoder = nn.ModuleList(steps)
        self.size = outputs[1:]
        self.last = nn.Conv2d(inside, outputs[0], 3, padding=1)
        draw(self, convolutions="fan_out")
        draw(self.last, convolutions="uniform")  # small, as of a last linear layer

    def forward(self, x: Tensor) -> Tensor:
        """Predicted images."""
        body = self.encoder
        found = [body.relu(body.bn1(body.conv1(x)))]
        found.append(body.layer1(body.maxpool(found[0])))
        for stage in (body.layer2, body.layer3, body.layer4):
            found.append(stage(found[-1]))
        x = found.pop()
        for step, beside in zip(self.decoder, reversed(found), strict=True):
            x = step(torch.cat([_enlarged(x, beside.shape[-2:]), beside], dim=1))
        images: Tensor = self.last(_enlarged(x, self.size))
        return images


def unet(
    shape: tuple[int, ...],
    outputs: tuple[int, ...],
    *,
    encoder: str = "resnet18",
    width: int = 64,
    stem: str = "small",
) -> nn.Module:
    """An encoder and a decoder for images; see :class:`Unet`."""
    return Unet(shape, outputs, encoder=encoder, width=width, stem=stem)


def _convolution(inside: int, outside: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inside, outside, 3, padding=1, bias=False),
        nn.BatchNorm2d(outside),
        nn.ReLU(inplace=True),
    )


def _enlarged(x: Tensor, size: tuple[int, ...]) -> Tensor:
    if tuple(x.shape[-2:]) == tuple(size):
        return x
    return functional.interpolate(x, size=list(size), mode="nearest")
