"""One encoder, MobileNetV2, for all tasks, followed by a linear layer or a decoder."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

sys.path.append(str(Path(__file__).resolve().parents[1] / "checkpoints"))
from networks import mobilenet_v2

STAGES = ((2, 16), (4, 24), (7, 32), (14, 96), (18, 320))
"""Layers after which the images have half, a quarter, … of their size, with the number of channels there."""

WANTED = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
"""Mean and standard deviation of ImageNet's colours, with which the published weights were trained."""


class Encoded(nn.Module):
    """An encoder that takes images of any size and number of channels."""

    def __init__(self, given: Sequence[Sequence[float]], size: int) -> None:
        super().__init__()
        mean, spread, own_mean, own_spread = (
            torch.tensor(v, dtype=torch.float32).view(1, -1, 1, 1) for v in (*given, *WANTED)
        )
        self.register_buffer("factor", spread / own_spread, persistent=False)
        self.register_buffer("shift", (mean - own_mean) / own_spread, persistent=False)
        self.size, self.body = size, mobilenet_v2()

    def prepared(self, x: Tensor) -> Tensor:
        """Bring images to the size and scale that the encoder was trained with."""
        x = x * self.factor + self.shift  # of one channel comes three
        if x.shape[-1] != self.size:
            x = F.interpolate(x, size=(self.size, self.size), mode="bilinear")
        return x.contiguous(memory_format=torch.channels_last)


class Classifier(Encoded):
    """The encoder with a linear layer."""

    def __init__(self, classes: int, given: Sequence[Sequence[float]], size: int) -> None:
        super().__init__(given, size)
        self.head = nn.Linear(self.body.dimensions, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return scores of the classes."""
        return self.head(self.body(self.prepared(x)))


class Rise(nn.Module):
    """Double the size and join the features of the encoder at that size."""

    def __init__(self, inside: int, beside: int, outside: int) -> None:
        super().__init__()
        self.mix = nn.Sequential(
            nn.Conv2d(inside + beside, outside, 3, padding=1, bias=False), nn.BatchNorm2d(outside), nn.ReLU()
        )

    def forward(self, x: Tensor, beside: Tensor) -> Tensor:
        """Images to images."""
        return self.mix(torch.cat([F.interpolate(x, size=beside.shape[-2:]), beside], dim=1))


class Decoder(nn.Module):
    """Combine the features of the encoder at five sizes, from the smallest to the largest."""

    def __init__(self, outputs: int, widths: Sequence[int] = (96, 64, 48, 32)) -> None:
        super().__init__()
        channels = [c for _, c in STAGES][::-1]
        inside = [channels[0], *widths]
        steps = zip(inside, channels[1:], widths, strict=False)
        self.rises = nn.ModuleList([Rise(*step) for step in steps])
        self.last = nn.Conv2d(widths[-1], outputs, 1)

    def forward(self, seen: Sequence[Tensor]) -> Tensor:
        """Return an image with one channel per number to predict."""
        x = seen[-1]
        for rise, beside in zip(self.rises, seen[-2::-1], strict=True):
            x = rise(x, beside)
        return self.last(x)


class Dense(Encoded):
    """The encoder with a decoder, which predicts numbers at every pixel."""

    def __init__(self, outputs: Sequence[int], given: Sequence[Sequence[float]], size: int) -> None:
        super().__init__(given, size)
        self.outputs = tuple(outputs)
        self.head = Decoder(outputs[0])

    def forward(self, x: Tensor) -> Tensor:
        """Return numbers in the shape of a target."""
        seen, x, stages = [], self.prepared(x), {layers for layers, _ in STAGES}
        for place, layer in enumerate(list(self.body)[: STAGES[-1][0]], start=1):
            x = layer(x)
            if place in stages:
                seen.append(x)
        made = self.head(seen)
        if made.shape[-2:] != self.outputs[1:]:
            made = F.interpolate(made, size=self.outputs[1:], mode="bilinear")
        return made


def classifier(shape: tuple[int, ...], classes: int, given: Sequence[Sequence[float]], size: int) -> Classifier:
    """Make a classifier, as a study calls it."""
    return Classifier(classes, given, size)


def dense(shape: tuple[int, ...], outputs: tuple[int, ...], given: Sequence[Sequence[float]], size: int) -> Dense:
    """Make a network that predicts images, as a study calls it."""
    return Dense(outputs, given, size)
