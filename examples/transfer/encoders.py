"""One encoder, MobileNetV2, for all tasks: behind it a last layer, or a decoder."""

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
"""After how many layers the images are half, a quarter, … as large, and with how many channels."""

WANTED = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
"""Mean and spread of ImageNet's colours, which the published weights were trained with."""


class Encoded(nn.Module):
    """Images of any size and colour, as the encoder wants them, and what it makes of them."""

    def __init__(self, given: Sequence[Sequence[float]], size: int) -> None:
        super().__init__()
        mean, spread, own_mean, own_spread = (
            torch.tensor(v, dtype=torch.float32).view(1, -1, 1, 1) for v in (*given, *WANTED)
        )
        self.register_buffer("factor", spread / own_spread, persistent=False)
        self.register_buffer("shift", (mean - own_mean) / own_spread, persistent=False)
        self.size, self.body = size, mobilenet_v2()

    def prepared(self, x: Tensor) -> Tensor:
        """Of the size and on the scale that the encoder was trained with."""
        x = x * self.factor + self.shift  # of one channel comes three
        if x.shape[-1] != self.size:
            x = F.interpolate(x, size=(self.size, self.size), mode="bilinear")
        return x.contiguous(memory_format=torch.channels_last)


class Classifier(Encoded):
    """The encoder with a last layer."""

    def __init__(self, classes: int, given: Sequence[Sequence[float]], size: int) -> None:
        super().__init__(given, size)
        self.head = nn.Linear(self.body.dimensions, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Scores of the classes."""
        return self.head(self.body(self.prepared(x)))


class Rise(nn.Module):
    """Twice the size, joined with what the encoder saw at that size."""

    def __init__(self, inside: int, beside: int, outside: int) -> None:
        super().__init__()
        self.mix = nn.Sequential(
            nn.Conv2d(inside + beside, outside, 3, padding=1, bias=False), nn.BatchNorm2d(outside), nn.ReLU()
        )

    def forward(self, x: Tensor, beside: Tensor) -> Tensor:
        """Images to images."""
        return self.mix(torch.cat([F.interpolate(x, size=beside.shape[-2:]), beside], dim=1))


class Decoder(nn.Module):
    """From what the encoder saw at five sizes, the smallest first, back to the largest."""

    def __init__(self, outputs: int, widths: Sequence[int] = (96, 64, 48, 32)) -> None:
        super().__init__()
        channels = [c for _, c in STAGES][::-1]
        inside = [channels[0], *widths]
        steps = zip(inside, channels[1:], widths, strict=False)
        self.rises = nn.ModuleList([Rise(*step) for step in steps])
        self.last = nn.Conv2d(widths[-1], outputs, 1)

    def forward(self, seen: Sequence[Tensor]) -> Tensor:
        """One image with as many channels as there are numbers at each place."""
        x = seen[-1]
        for rise, beside in zip(self.rises, seen[-2::-1], strict=True):
            x = rise(x, beside)
        return self.last(x)


class Dense(Encoded):
    """The encoder with a decoder, which gives numbers at every place of the image."""

    def __init__(self, outputs: Sequence[int], given: Sequence[Sequence[float]], size: int) -> None:
        super().__init__(given, size)
        self.outputs = tuple(outputs)
        self.head = Decoder(outputs[0])

    def forward(self, x: Tensor) -> Tensor:
        """Numbers in the shape of a target."""
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
    """Make a classifier as a study asks for it."""
    return Classifier(classes, given, size)


def dense(shape: tuple[int, ...], outputs: tuple[int, ...], given: Sequence[Sequence[float]], size: int) -> Dense:
    """Make a network that gives images as a study asks for it."""
    return Dense(outputs, given, size)
