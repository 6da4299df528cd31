"""Networks of the pool that can be trained, each written so that published weights fit into it.

All of them give the features that their last layer is given; :func:`finetuned` puts their own
preprocessing before them and a new last layer behind, which is what a study trains.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

RESIDUALS = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1))
RESIDUALS = (*RESIDUALS, (6, 160, 3, 2), (6, 320, 1, 1))
"""MobileNetV2: expansion, channels, how often, stride."""

LITE = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5))
LITE = (*LITE, (6, 192, 4, 2, 5), (6, 320, 1, 1, 3))
"""EfficientNet-lite: the same, and the size of the kernel."""

SEPARABLE = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5)
SEPARABLE = (*SEPARABLE, (1024, 2), (1024, 1))
"""MobileNetV1: channels and stride."""


class Unit(nn.Module):
    """Convolution, batch normalisation unless it is folded into the weights, and ReLU6.

    Parameters
    ----------
    norm : float, optional
        Epsilon of the batch normalisation; None for weights into which it is folded.
    same : bool
        Whether to pad as TensorFlow does: at stride 2 less before than behind.
    """

    def __init__(
        self,
        inside: int,
        outside: int,
        kernel: int = 1,
        stride: int = 1,
        *,
        norm: float | None,
        same: bool,
        groups: int = 1,
        active: bool = True,
    ) -> None:
        super().__init__()
        padding = 0 if same else kernel // 2
        bias = norm is None
        self.conv = nn.Conv2d(inside, outside, kernel, stride, padding, groups=groups, bias=bias)
        self.norm = nn.Identity() if norm is None else nn.BatchNorm2d(outside, eps=norm)
        self.same, self.active = same, active

    def forward(self, x: Tensor) -> Tensor:
        """Images to images."""
        if self.same and self.conv.kernel_size[0] > 1:
            kernel, stride = self.conv.kernel_size[0], self.conv.stride[0]
            more = [max((-(-s // stride) - 1) * stride + kernel - s, 0) for s in x.shape[-2:]]
            high, wide = more
            x = F.pad(x, (wide // 2, wide - wide // 2, high // 2, high - high // 2))
        x = self.norm(self.conv(x))
        return F.relu6(x) if self.active else x


class Residual(nn.Sequential):
    """Units one after the other, with their input added where its shape is that of the output."""

    def __init__(self, units: Iterable[Unit], added: bool) -> None:
        super().__init__(*units)
        self.added = added

    def forward(self, x: Tensor) -> Tensor:
        """Images to images."""
        return x + super().forward(x) if self.added else super().forward(x)


class Pooled(nn.Sequential):
    """Layers whose last images are averaged over all places."""

    def __init__(self, layers: Iterable[nn.Module], dimensions: int) -> None:
        super().__init__(*layers)
        self.dimensions = dimensions

    def forward(self, x: Tensor) -> Tensor:
        """Images to features, with channels last in memory: half as slow again otherwise."""
        return super().forward(x.contiguous(memory_format=torch.channels_last)).mean((2, 3))


def mobilenet_v1(width: float = 1.0) -> Pooled:
    """Howard et al. 2017, without its last layer, the batch normalisation folded in."""
    how: dict[str, Any] = {"norm": None, "same": True}
    inside = _rounded(32 * width)
    layers: list[nn.Module] = [Unit(3, inside, 3, 2, **how)]
    for channels, stride in SEPARABLE:
        outside = _rounded(channels * width)
        layers += [Unit(inside, inside, 3, stride, groups=inside, **how)]
        layers += [Unit(inside, outside, **how)]
        inside = outside
    return Pooled(layers, inside)


def mobilenet_v2(folded: bool = False) -> Pooled:
    """Sandler et al. 2018, without its last layer.

    Parameters
    ----------
    folded : bool
        As in TensorFlow Lite: batch normalisation folded into the weights, TensorFlow's padding.
    """
    how: dict[str, Any] = {"norm": None if folded else 1e-5, "same": folded}
    return _inverted([(*row, 3) for row in RESIDUALS], how)


def efficientnet_lite(width: float = 1.0, depth: float = 1.0) -> Pooled:
    """EfficientNet-lite: no squeeze and excitation, ReLU6; the first and last keep their width."""
    rows = []
    for i, (expansion, channels, repeats, stride, kernel) in enumerate(LITE):
        more = repeats if i in (0, len(LITE) - 1) else math.ceil(repeats * depth)
        rows.append((expansion, _rounded(channels * width), more, stride, kernel))
    return _inverted(rows, {"norm": 1e-3, "same": True})


def _inverted(rows: Sequence[Sequence[int]], how: dict[str, Any]) -> Pooled:
    layers: list[nn.Module] = [Unit(3, 32, 3, 2, **how)]
    inside = 32
    for expansion, outside, repeats, first, kernel in rows:
        for i in range(repeats):
            stride, hidden = (first if i == 0 else 1), inside * expansion
            units = [Unit(inside, hidden, **how)] if expansion > 1 else []
            units += [Unit(hidden, hidden, kernel, stride, groups=hidden, **how)]
            units += [Unit(hidden, outside, active=False, **how)]
            layers.append(Residual(units, added=stride == 1 and inside == outside))
            inside = outside
    return Pooled([*layers, Unit(inside, 1280, **how)], 1280)


def _rounded(channels: float) -> int:
    """The next multiple of 8, never less than nine tenths of what was asked for."""
    found = max(8, int(channels + 4) // 8 * 8)
    return found if found >= 0.9 * channels else found + 8


class Block(nn.Module):
    """Two convolutions around which the input goes unchanged, or thinned out and padded."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.stride, self.more = stride, outside - inside

    def forward(self, x: Tensor) -> Tensor:
        """Images to images."""
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        around = x[..., :: self.stride, :: self.stride]
        half = self.more // 2
        return F.relu(y + F.pad(around, (0, 0, 0, 0, half, self.more - half)))


class CifarResNet(nn.Module):
    """He et al. 2016, section 4.2, without its last layer: 3 stages of 16, 32 and 64 channels."""

    dimensions = 64

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        blocks = (depth - 2) // 6
        for stage, (inside, outside) in enumerate(((16, 16), (16, 32), (32, 64)), start=1):
            first = Block(inside, outside, 1 if stage == 1 else 2)
            rest = [Block(outside, outside, 1) for _ in range(blocks - 1)]
            self.add_module(f"layer{stage}", nn.Sequential(first, *rest))

    def forward(self, x: Tensor) -> Tensor:
        """Images to features."""
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return x.mean((2, 3))


BODIES = {
    "mobilenet-v1": mobilenet_v1,
    "mobilenet-v2": mobilenet_v2,
    "efficientnet-lite": efficientnet_lite,
    "cifar-resnet": CifarResNet,
}


class Finetuned(nn.Module):
    """A body behind its own preprocessing, and a last layer that was drawn anew.

    Parameters
    ----------
    given : tuple of list of float
        Mean and spread with which the images come normalised, undone first.
    wanted : tuple of list of float
        Mean and spread that the body was trained with, on the scale 0 to 1.
    size : int
        Height and width that the body was trained with.
    """

    def __init__(
        self,
        body: nn.Module,
        classes: int,
        given: tuple[Sequence[float], Sequence[float]],
        wanted: tuple[Sequence[float], Sequence[float]],
        size: int,
    ) -> None:
        super().__init__()
        mean, spread, own_mean, own_spread = (
            torch.tensor(v, dtype=torch.float32).view(1, -1, 1, 1) for v in (*given, *wanted)
        )
        self.register_buffer("factor", spread / own_spread, persistent=False)
        self.register_buffer("shift", (mean - own_mean) / own_spread, persistent=False)
        self.size, self.body = size, body
        self.head = nn.Linear(body.dimensions, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Images as a study gives them, to scores for the classes."""
        x = x * self.factor + self.shift  # of one channel comes three
        if x.shape[-1] != self.size:
            x = F.interpolate(x, size=(self.size, self.size), mode="bilinear")
        return self.head(self.body(x))


def finetuned(
    shape: tuple[int, ...],
    classes: int,
    body: str,
    given: Sequence[Sequence[float]],
    wanted: Sequence[Sequence[float]],
    size: int,
    **options: Any,
) -> Finetuned:
    """Make a network as a study asks for it, which then fills in the weights of a checkpoint."""
    made = BODIES[body](**options)
    return Finetuned(made, classes, (given[0], given[1]), (wanted[0], wanted[1]), size)


def fill(network: nn.Module, tensors: Sequence[Tensor]) -> nn.Module:
    """Fill a network with tensors that come in the order of its own; every shape must fit."""
    own = {k: v for k, v in network.state_dict().items() if not k.endswith("tracked")}
    if [tuple(v.shape) for v in own.values()] != [tuple(t.shape) for t in tensors]:
        raise ValueError(f"{len(tensors)} tensors do not fit the {len(own)} of {type(network)}")
    network.load_state_dict(dict(zip(own, tensors, strict=True)), strict=False)
    return network
