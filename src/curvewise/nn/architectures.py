"""Architectures by name: factories that take the shape of one input, the number of classes, and options.

Weights are drawn from torch's global generator while a network is made, so that ``torch.manual_seed`` before it fixes
them; the order in which layers are made is therefore part of what a seed stands for. Published networks name their
layers as torchvision does, so that files of weights fit.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from curvewise.errors import InputError
from curvewise.nn.training import IMAGE_ARCHITECTURES, ROW_ARCHITECTURES, check_sides, misfit


def linear(shape: tuple[int, ...], classes: int, *, bias: bool = True) -> nn.Module:
    """Make one linear layer on the flattened input: a convex problem."""
    return draw(nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), classes, bias=bias)))


def mlp(
    shape: tuple[int, ...], classes: int, *, width: int = 128, depth: int = 2, batch_norm: bool = False
) -> nn.Module:
    """Make hidden layers of one width with ReLU, then a linear layer.

    Parameters
    ----------
    shape : tuple of int
        Shape of one input; flattened.
    classes : int
        Outputs.
    width, depth : int
        Units of a hidden layer, and hidden layers.
    batch_norm : bool
        Batch norm before each ReLU.
    """
    _check_positive(width=width, depth=depth)
    layers: list[nn.Module] = [nn.Flatten()]
    inside = math.prod(shape)
    for _ in range(depth):
        layers.append(nn.Linear(inside, width))
        if batch_norm:
            layers.append(nn.BatchNorm1d(width))
        layers.append(nn.ReLU(inplace=True))
        inside = width
    return draw(nn.Sequential(*layers, nn.Linear(inside, classes)))


def cnn(shape: tuple[int, ...], classes: int, *, width: int = 32) -> nn.Module:
    """Make three 3×3 convolutions, each with ReLU and pooling, then a linear layer.

    The convolutions have width, 2 · width and 2 · width channels. Pooling is left out where an image is one
    pixel wide or high already.
    """
    channels, height, side = image_shape(shape, "cnn", width=width)
    layers: list[nn.Module] = []
    for outside in (width, 2 * width, 2 * width):
        layers += _convolution(channels, outside, 3, batch_norm=False)
        pool, height, side = _pooling(height, side)
        layers.append(pool)
        channels = outside
    head = nn.Linear(channels * height * side, classes)
    return draw(nn.Sequential(*layers, nn.Flatten(), head))


class Vgg(nn.Module):
    """Simonyan and Zisserman's network, with one linear layer, as is usual for small images, or with all three.

    Layers are named as in torchvision; pooling is left out once a side is one pixel.

    Parameters
    ----------
    layers : {11, 13, 16, 19}
        Layers with weights in the original.
    shape, classes
        Shape of one input, and the number of outputs.
    batch_norm : bool
        Batch norm after each convolution.
    width : int
        Channels of the first stage; the others have 2, 4, 8 and 8 times as many.
    classifier : {"linear", "full"}
        One linear layer on the mean over pixels; or the published three, the hidden ones 64 times as wide as
        the first stage, on a grid of 7×7 means.
    dropout : float
        Share of the hidden units of a full classifier that is dropped.
    """

    CLASSIFIERS = ("linear", "full")

    def __init__(
        self,
        layers: int,
        shape: tuple[int, ...],
        classes: int,
        *,
        batch_norm: bool = False,
        width: int = 64,
        classifier: str = "linear",
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        _check_choice("classifier", classifier, self.CLASSIFIERS)
        # Convolutions in each of the five stages (Simonyan and Zisserman 2015, table 1: A, B, D and E).
        table = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
        channels, height, side = image_shape(shape, f"vgg{layers}", width=width)
        stages: list[nn.Module] = []
        met: list[float] = []
        for repeats, outside in zip(table[layers], (1, 2, 4, 8, 8), strict=True):
            for _ in range(repeats):
                stages += _convolution(channels, outside * width, 3, batch_norm=batch_norm)
                # Of the three places of a kernel along an axis of s pixels, 3 − 2/s meet the image on average.
                met.append((3 - 2 / height) * (3 - 2 / side))
                channels = outside * width
            pool, height, side = _pooling(height, side)
            stages.append(pool)
        self.features = nn.Sequential(*stages)
        if classifier == "linear":
            self.pool: nn.Module = nn.AdaptiveAvgPool2d(1)
            self.classifier: nn.Module = nn.Linear(channels, classes)
        else:
            hidden = 64 * width
            self.pool = GridMean(7, height, side)
            self.classifier = nn.Sequential(
                *(nn.Linear(49 * channels, hidden), nn.ReLU(inplace=True), _dropout(dropout)),
                *(nn.Linear(hidden, hidden), nn.ReLU(inplace=True), _dropout(dropout)),
                nn.Linear(hidden, classes),
            )
        draw(self)
        convolutions = [m for m in stages if isinstance(m, nn.Conv2d)]
        # He et al. scale by all nine places of a kernel. Where only its middle meets the image, the signal of an
        # 8×8 image would vanish before the last layer: scale by the inputs that a convolution really adds up.
        with torch.no_grad():
            for convolution, places in zip(convolutions, met, strict=True):
                convolution.weight.mul_(math.sqrt(9 / places))

    def forward(self, x: Tensor) -> Tensor:
        """Return logits."""
        logits: Tensor = self.classifier(self.pool(self.features(x)).flatten(1))
        return logits


vgg11, vgg13, vgg16, vgg19 = (partial(Vgg, layers) for layers in (11, 13, 16, 19))


class GridMean(nn.Module):
    """Average images over a grid of cells, as nn.AdaptiveAvgPool2d, whose gradient differs between runs on a GPU.

    Parameters
    ----------
    size : int
        Cells along either side.
    height, width : int
        Of the images; smaller ones than the grid are repeated.
    """

    rows: Tensor
    columns: Tensor

    def __init__(self, size: int, height: int, width: int) -> None:
        super().__init__()
        self.size = size
        for name, side in (("rows", height), ("columns", width)):
            cells = torch.zeros(size, side)
            for i in range(size):
                start, stop = i * side // size, -(-(i + 1) * side // size)
                cells[i, start:stop] = 1 / (stop - start)
            self.register_buffer(name, cells, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, channels, height, width) to (batch, channels, size, size)."""
        if tuple(x.shape[-2:]) == (self.size, self.size):
            return x
        if tuple(x.shape[-2:]) != (self.rows.shape[1], self.columns.shape[1]):  # not the images it was made for
            return functional.adaptive_avg_pool2d(x, self.size)
        means: Tensor = self.rows @ x @ self.columns.T
        return means


class AlexNet(nn.Module):
    """Krizhevsky's network with the channels of his second version (2014), its layers named as in torchvision.

    Pooling is left out where a side has fewer than three pixels.

    Parameters
    ----------
    shape, classes
        Shape of one input, and the number of outputs.
    width : int
        Channels of the first convolution; the others have 3, 6, 4 and 4 times as many, hidden layers 64 times.
    stem : {"small", "imagenet"}
        A 3×3 convolution that keeps the size, or an 11×11 one with stride 4.
    dropout : float
        Share of the units before either hidden layer that is dropped.
    """

    def __init__(
        self, shape: tuple[int, ...], classes: int, *, width: int = 64, stem: str = "small", dropout: float = 0.5
    ) -> None:
        super().__init__()
        channels, *sides = image_shape(shape, "alexnet", stem, width=width)
        first = (11, 4, 2) if stem == "imagenet" else (3, 1, 1)
        layers: list[nn.Module] = []
        # For each convolution its channels, (kernel, stride, padding), and whether pooling follows.
        for wide, (kernel, stride, padding), pooled in (
            (1, first, True),
            (3, (5, 1, 2), True),
            (6, (3, 1, 1), False),
            (4, (3, 1, 1), False),
            (4, (3, 1, 1), True),
        ):
            layers += [nn.Conv2d(channels, wide * width, kernel, stride, padding), nn.ReLU(inplace=True)]
            channels = wide * width
            sides = [(side + 2 * padding - kernel) // stride + 1 for side in sides]
            if pooled:
                fits = min(sides) >= 3
                layers.append(nn.MaxPool2d(3, 2) if fits else nn.Identity())
                sides = [(side - 3) // 2 + 1 if fits else side for side in sides]
        self.features = nn.Sequential(*layers)
        self.avgpool = GridMean(6, *sides)
        hidden = 64 * width
        self.classifier = nn.Sequential(
            *(_dropout(dropout), nn.Linear(36 * channels, hidden), nn.ReLU(inplace=True)),
            *(_dropout(dropout), nn.Linear(hidden, hidden), nn.ReLU(inplace=True)),
            nn.Linear(hidden, classes),
        )
        draw(self)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits."""
        logits: Tensor = self.classifier(self.avgpool(self.features(x)).flatten(1))
        return logits


alexnet = AlexNet


def nin(
    shape: tuple[int, ...], classes: int, *, depth: int = 3, width: int = 192, batch_norm: bool = False
) -> nn.Module:
    """Make network in network: blocks of a convolution and two layers across channels at each pixel.

    The first block's convolution is 5×5, the others' 3×3; images are halved between blocks. A global mean over
    pixels precedes the linear layer, which is the same as averaging class maps.

    Parameters
    ----------
    shape, classes
        Shape of one input, and the number of outputs.
    depth, width : int
        Blocks, and channels of each layer.
    batch_norm : bool
        Batch norm after each convolution.
    """
    channels, height, side = image_shape(shape, "nin", depth=depth, width=width)
    layers: list[nn.Module] = []
    for block in range(depth):
        if block:
            pool, height, side = _pooling(height, side)
            layers.append(pool)
        layers += _convolution(channels, width, 3 if block else 5, batch_norm=batch_norm)
        layers += _convolution(width, width, 1, batch_norm=batch_norm)
        layers += _convolution(width, width, 1, batch_norm=batch_norm)
        channels = width
    head = nn.Linear(width, classes)
    return draw(nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), head))


def _convolution(inside: int, outside: int, side: int, *, batch_norm: bool) -> list[nn.Module]:
    """Make a convolution that keeps the image's size, batch norm if asked for, and ReLU."""
    layers: list[nn.Module] = [nn.Conv2d(inside, outside, side, padding=side // 2)]
    if batch_norm:
        layers.append(nn.BatchNorm2d(outside))
    return [*layers, nn.ReLU(inplace=True)]


def _pooling(height: int, width: int) -> tuple[nn.Module, int, int]:
    """Return pooling, or nothing where a side is one pixel; and the size after it."""
    if min(height, width) < 2:
        return nn.Identity(), height, width
    return nn.MaxPool2d(2), height // 2, width // 2


def resnet9(shape: tuple[int, ...], classes: int, *, width: int = 64, scale: float = 0.2) -> nn.Module:
    """Make the nine-layer network of the variance paper (Page 2019, as in Ilyas et al. 2022).

    Convolutions with batch norm and ReLU: 64 channels; 128, 5×5 with stride 2; two of 128 with a shortcut; 256,
    pooled; two of 256 with a shortcut; 128 without padding. The largest value of each channel goes into a linear
    layer without bias, whose output is scaled.

    Parameters
    ----------
    shape, classes
        Shape of one input, and the number of outputs.
    width : int
        Channels of the first convolution; the others have 2, 2, 4, 4 and 2 times as many.
    scale : float
        Factor of the logits.
    """
    channels, height, side = image_shape(shape, "resnet9", width=width)
    two, four = 2 * width, 4 * width
    smallest = (min(height, side) + 1) // 2 // 2
    if smallest < 1:
        problem = f"needs images of 3×3 pixels or more, and these have {height}×{side}."
        raise misfit("architecture", "resnet9", problem, "Use 'cnn' or 'mlp'.")
    layers = nn.Sequential(
        _normed(channels, width),
        _normed(width, two, kernel=5, stride=2, padding=2),
        Residual(_normed(two, two), _normed(two, two)),
        _normed(two, four),
        nn.MaxPool2d(2),
        Residual(_normed(four, four), _normed(four, four)),
        # Images below 11×11 are smaller than this kernel by now: pad them, or it would not fit.
        _normed(four, two, padding=0 if smallest >= 3 else 1),
        GlobalMax(),
        nn.Linear(two, classes, bias=False),
        Scale(scale),
    )
    return draw(layers, convolutions="uniform")


def speednet(
    shape: tuple[int, ...],
    classes: int,
    *,
    width: int = 64,
    norm_momentum: float = 0.6,
    norm_eps: float = 1e-12,
    norm_scale: bool = False,
    dirac: bool = True,
    unit_head: bool = True,
) -> nn.Module:
    """Make the network of the speed record for CIFAR-10 (Jordan 2024), without its first layer.

    Three blocks of a 3×3 convolution, 2×2 max-pooling, batch norm, GELU, a second 3×3 convolution, batch norm and
    GELU, with 64, 256 and 256 channels and no biases. The largest value of each channel goes into a linear layer
    without bias, whose output is divided by its inputs. The published network has ``first_layer="whitening"``.

    Parameters
    ----------
    shape, classes
        Shape of one input, and the number of outputs.
    width : int
        Channels of the first block; the others have four times as many.
    norm_momentum, norm_eps : float
        Of batch norm: weight of the old in its running statistics, and the least variance.
    norm_scale : bool
        Train the scales of batch norm; they stay 1 otherwise. Its biases are trained always.
    dirac : bool
        Let the first filters of each convolution, as many as it has inputs, pass these on as they are.
    unit_head : bool
        Scale the initial weights of the last layer to a standard deviation of 1.
    """
    channels, _, _ = image_shape(shape, "speednet", width=width)
    _check_share("norm_momentum", norm_momentum)
    if isinstance(norm_eps, bool) or not isinstance(norm_eps, int | float) or not 0 <= norm_eps < 1:
        raise InputError(f"norm_eps={norm_eps!r}.", argument="options", remedy="Give a small number from 0 on.")

    def convolved(inside: int, outside: int, *between: nn.Module) -> list[nn.Module]:
        norm = nn.BatchNorm2d(outside, norm_eps, 1 - norm_momentum)
        norm.weight.requires_grad_(norm_scale)
        return [nn.Conv2d(inside, outside, 3, padding=1, bias=False), *between, norm, nn.GELU()]

    layers: dict[str, nn.Module] = {}
    for number, outside in enumerate((width, 4 * width, 4 * width), 1):
        both = [*convolved(channels, outside, nn.MaxPool2d(2)), *convolved(outside, outside)]
        layers[f"block{number}"] = nn.Sequential(*both)
        channels = outside
    head = nn.Linear(channels, classes, bias=False)
    layers |= {"pool": GlobalMax(), "head": head, "scale": Scale(1 / channels)}
    model = draw(nn.Sequential(OrderedDict(layers)), convolutions="uniform")
    with torch.no_grad():
        for module in model.modules() if dirac else ():
            if isinstance(module, nn.Conv2d):
                nn.init.dirac_(module.weight[: module.in_channels])
        if unit_head:
            head.weight.div_(head.weight.std())
    return model


class Scale(nn.Module):
    """Multiply by a constant."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        """Multiply."""
        return x * self.factor


class GlobalMax(nn.Module):
    """Take the largest value of each channel: AdaptiveMaxPool2d(1) in fewer kernels.

    By position, not by value (``amax``): a compiled backward pass computes the values again in another precision,
    finds none equal to the largest, and divides by zero.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, channels, height, width) to (batch, channels)."""
        return x.flatten(2).max(dim=2).values


class Residual(nn.Module):
    """Add the output of layers to their input."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        """Add."""
        summed: Tensor = x + self.layers(x)
        return summed


STEMS = ("small", "imagenet")
"""First layers of a network: for small images, or as published for images of ImageNet."""

FIRST_LAYERS = ("conv1.weight", "encoder.conv1.weight", "features.0.weight", "conv1.conv.weight")
"""Weights whose shape tells the stem: 3×3 for small images, larger for those of ImageNet."""

_RESNETS = {
    # Blocks in each stage, all of which but the first halve the image (He et al. 2016, table 1); how many times as
    # wide as its stage the 3×3 convolution of a bottleneck is, or None for blocks without one; and whether that
    # convolution is grouped (Xie et al. 2017: 32 groups of 4 or 8 channels) or only wide (Zagoruyko 2016).
    "resnet18": ((2, 2, 2, 2), None, False),
    "resnet34": ((3, 4, 6, 3), None, False),
    "resnet50": ((3, 4, 6, 3), 1, False),
    "resnet101": ((3, 4, 23, 3), 1, False),
    "resnet152": ((3, 8, 36, 3), 1, False),
    "resnext50_32x4d": ((3, 4, 6, 3), 2, True),
    "resnext101_32x8d": ((3, 4, 23, 3), 4, True),
    "wide_resnet50_2": ((3, 4, 6, 3), 2, False),
    "wide_resnet101_2": ((3, 4, 23, 3), 2, False),
}


class ResNet(nn.Module):
    """He et al.'s network and its wider kin, layers named as in torchvision so that files of weights fit.

    Parameters
    ----------
    name : str
        ``"resnet18"``, ``"resnext50_32x4d"``, ``"wide_resnet50_2"``, …
    shape, classes
        Shape of one input, and the number of outputs.
    width : int
        Channels of the first stage; a ResNeXt has half as many groups.
    stem : {"small", "imagenet"}
        A 3×3 convolution that keeps the size, or a 7×7 one with stride 2 and pooling.
    """

    def __init__(
        self, name: str, shape: tuple[int, ...], classes: int, *, width: int = 64, stem: str = "small"
    ) -> None:
        super().__init__()
        counts, inner, grouped = _RESNETS[name]
        channels, _, _ = image_shape(shape, name, stem, width=width)
        if grouped and width % 2:
            raise InputError(f"width={width!r}.", argument="options", remedy=f"Give {name} an even number.")
        groups = width // 2 if grouped else 1
        large = stem == "imagenet"
        kernel, stride = (7, 2) if large else (3, 1)
        self.conv1 = nn.Conv2d(channels, width, kernel, stride, kernel // 2, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool: nn.Module = nn.MaxPool2d(3, 2, 1) if large else nn.Identity()
        inside, stages = width, []
        for stage, count in enumerate(counts):
            blocks = []
            for number in range(count):
                stride = 2 if stage and not number else 1
                blocks.append(_Block(inside, width * 2**stage, stride, inner=inner, groups=groups))
                inside = width * 2**stage * (4 if inner else 1)
            stages.append(nn.Sequential(*blocks))
        self.layer1, self.layer2, self.layer3, self.layer4 = stages
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(inside, classes)
        draw(self, convolutions="fan_out")

    def forward(self, x: Tensor) -> Tensor:
        """Return logits."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        logits: Tensor = self.fc(self.avgpool(x).flatten(1))
        return logits


resnet18, resnet34, resnet50 = (partial(ResNet, name) for name in ("resnet18", "resnet34", "resnet50"))


class _Block(nn.Module):
    """Two 3×3 convolutions beside a shortcut; or a 3×3 one between two 1×1 ones, the last four times as wide."""

    def __init__(self, inside: int, width: int, stride: int, *, inner: int | None, groups: int) -> None:
        super().__init__()
        bottleneck = inner is not None
        # The stride is in the 3×3 convolution, as in torchvision, not in the first 1×1 as in the paper.
        first, second = ((1, 1), (3, stride)) if bottleneck else ((3, stride), (3, 1))
        middle = width * (inner or 1)
        self.conv1 = nn.Conv2d(inside, middle, *first, first[0] // 2, bias=False)
        self.bn1 = nn.BatchNorm2d(middle)
        self.conv2 = nn.Conv2d(middle, middle, *second, 1, groups=groups, bias=False)
        self.bn2 = nn.BatchNorm2d(middle)
        outside = width
        if bottleneck:
            outside = 4 * width
            self.conv3 = nn.Conv2d(middle, outside, 1, bias=False)
            self.bn3 = nn.BatchNorm2d(outside)
        self.relu = nn.ReLU(inplace=True)
        self.bottleneck, self.downsample = bottleneck, None
        if stride != 1 or inside != outside:  # a 1×1 convolution where the block changes the shape
            short = nn.Conv2d(inside, outside, 1, stride, bias=False)
            self.downsample = nn.Sequential(short, nn.BatchNorm2d(outside))

    def forward(self, x: Tensor) -> Tensor:
        beside = x if self.downsample is None else self.downsample(x)
        x = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        if self.bottleneck:
            x = self.bn3(self.conv3(self.relu(x)))
        summed: Tensor = self.relu(x + beside)
        return summed


class MobileNetV2(nn.Module):
    """Sandler et al.'s network of inverted residuals (2018, table 2), layers named as in torchvision.

    Parameters
    ----------
    shape, classes
        Shape of one input, and the number of outputs.
    width : int
        Channels of the first convolution; the others in proportion, in multiples of eight as published.
    stem : {"small", "imagenet"}, optional
        Whether the first convolution and the second stage keep the size, or halve it. The same weights fit both: by
        default small for images below 64 pixels.
    dropout : float
        Share of the features that is dropped before the last layer.
    """

    def __init__(
        self, shape: tuple[int, ...], classes: int, *, width: int = 32, stem: str | None = None, dropout: float = 0.2
    ) -> None:
        super().__init__()
        channels, height, side = image_shape(shape, "mobilenet_v2", stem or None, width=width)
        stem = stem or ("small" if min(height, side) < 64 else "imagenet")
        halving = 2 if stem == "imagenet" else 1

        def scaled(count: int) -> int:
            found = max(8, (count * width // 32 + 4) // 8 * 8)
            return found + 8 if found < 0.9 * count * width / 32 else found

        inside = scaled(32)
        layers: list[nn.Module] = [_relu6(channels, inside, 3, halving)]
        # Expansion, channels, repeats and first stride of each stage.
        for factor, count, repeats, first in (
            *((1, 16, 1, 1), (6, 24, 2, halving), (6, 32, 3, 2), (6, 64, 4, 2)),
            *((6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)),
        ):
            for number in range(repeats):
                layers.append(_Inverted(inside, scaled(count), factor, 1 if number else first))
                inside = scaled(count)
        last = max(1280, scaled(1280))
        self.features = nn.Sequential(*layers, _relu6(inside, last, 1, 1))
        self.classifier = nn.Sequential(_dropout(dropout), nn.Linear(last, classes))
        draw(self, convolutions="fan_out")

    def forward(self, x: Tensor) -> Tensor:
        """Return logits."""
        logits: Tensor = self.classifier(self.features(x).mean((2, 3)))
        return logits


mobilenet_v2 = MobileNetV2


class _Inverted(nn.Module):
    """Widen, convolve each channel by itself, narrow; beside a shortcut where the shape stays."""

    def __init__(self, inside: int, outside: int, factor: int, stride: int) -> None:
        super().__init__()
        middle = inside * factor
        wider = [] if factor == 1 else [_relu6(inside, middle, 1, 1)]
        each = _relu6(middle, middle, 3, stride, groups=middle)
        self.conv = nn.Sequential(*wider, each, nn.Conv2d(middle, outside, 1, bias=False), nn.BatchNorm2d(outside))
        self.shortcut = stride == 1 and inside == outside

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.conv(x)
        return x + y if self.shortcut else y


def _relu6(inside: int, outside: int, kernel: int, stride: int, groups: int = 1) -> nn.Sequential:
    """Make a convolution without bias, batch norm, and ReLU up to 6."""
    layer = nn.Conv2d(inside, outside, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(outside), nn.ReLU6(inplace=True))


class GoogLeNet(nn.Module):
    """Szegedy et al.'s first Inception (2015, table 1) with batch norm, as torchvision has it and names its layers.

    Without the two auxiliary classifiers. As in torchvision's files, kernels are 3×3 where the paper has 5×5. Those
    files expect pixels from −1 to 1.

    Parameters
    ----------
    shape, classes
        Shape of one input, and the number of outputs.
    width : int
        Channels of the first convolution; the others in proportion.
    stem : {"small", "imagenet"}
        A 3×3 convolution that keeps the size, without pooling; or a 7×7 one with stride 2, and pooling.
    dropout : float
        Share of the features that is dropped before the last layer.
    """

    def __init__(
        self, shape: tuple[int, ...], classes: int, *, width: int = 64, stem: str = "small", dropout: float = 0.2
    ) -> None:
        super().__init__()
        channels, _, _ = image_shape(shape, "googlenet", stem, width=width)

        def scaled(*counts: int) -> list[int]:
            return [max(1, count * width // 64) for count in counts]

        def pool(size: int) -> nn.Module:
            return nn.MaxPool2d(size, 2, ceil_mode=True)

        large = stem == "imagenet"
        inside = scaled(192)[0]
        self.conv1 = _Normed(channels, width, *((7, 2) if large else (3, 1)))
        self.maxpool1 = pool(3) if large else nn.Identity()
        self.conv2 = _Normed(width, width, 1)
        self.conv3 = _Normed(width, inside, 3)
        self.maxpool2 = pool(3) if large else nn.Identity()
        # Channels of 1×1; of 1×1 before 3×3, and of that; of the same for 5×5; of 1×1 after pooling.
        for name, counts in {
            "3a": (64, 96, 128, 16, 32, 32),
            "3b": (128, 128, 192, 32, 96, 64),
            "4a": (192, 96, 208, 16, 48, 64),
            "4b": (160, 112, 224, 24, 64, 64),
            "4c": (128, 128, 256, 24, 64, 64),
            "4d": (112, 144, 288, 32, 64, 64),
            "4e": (256, 160, 320, 32, 128, 128),
            "5a": (256, 160, 320, 32, 128, 128),
            "5b": (384, 192, 384, 48, 128, 128),
        }.items():
            block = _Inception(inside, *scaled(*counts))
            self.add_module(f"inception{name}", block)
            inside = block.outside
        self.maxpool3, self.maxpool4 = pool(3), pool(2)
        self.dropout = _dropout(dropout)
        self.fc = nn.Linear(inside, classes)
        draw(self, convolutions="fan_out")

    def forward(self, x: Tensor) -> Tensor:
        """Return logits."""
        x = self.maxpool2(self.conv3(self.conv2(self.maxpool1(self.conv1(x)))))
        for name in ("3a", "3b", "4a", "4b", "4c", "4d", "4e", "5a", "5b"):
            if name in ("4a", "5a"):
                x = (self.maxpool3 if name == "4a" else self.maxpool4)(x)
            x = self.get_submodule(f"inception{name}")(x)
        logits: Tensor = self.fc(self.dropout(x.mean((2, 3))))
        return logits


googlenet = GoogLeNet


class _Normed(nn.Module):
    """A convolution without bias, batch norm and ReLU, under torchvision's names in an Inception."""

    def __init__(self, inside: int, outside: int, kernel: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inside, outside, kernel, stride, kernel // 2, bias=False)
        self.bn = nn.BatchNorm2d(outside, eps=0.001)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.bn(self.conv(x)), inplace=True)


class _Inception(nn.Module):
    """Convolutions of several sizes, and pooling, side by side."""

    def __init__(self, inside: int, one: int, before: int, three: int, first: int, five: int, pooled: int) -> None:
        super().__init__()
        self.branch1 = _Normed(inside, one, 1)
        self.branch2 = nn.Sequential(_Normed(inside, before, 1), _Normed(before, three, 3))
        self.branch3 = nn.Sequential(_Normed(inside, first, 1), _Normed(first, five, 3))
        self.branch4 = nn.Sequential(nn.MaxPool2d(3, 1, 1), _Normed(inside, pooled, 1))
        self.outside = one + three + five + pooled

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)], 1)


class Unet(nn.Module):
    """A residual network without its last layer, and a decoder with links across: images to images.

    The encoder is the network of that name, its layers named alike, so that a file of weights of one that was
    trained to classify fits it. From its last stage on, four steps enlarge the image to the size of the stage
    before, put that stage's channels beside, and convolve.

    Parameters
    ----------
    shape : tuple of int
        Shape of one input: (channels, height, width).
    outputs : tuple of int
        Shape of one target: (channels, height, width), of any height and width.
    encoder : {"resnet18", "resnet34", "resnet50"}
        Network that encodes.
    width : int
        Channels of its first stage.
    stem : {"small", "imagenet"}
        Its first layers, as of :class:`ResNet`.
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
        self.encoder, last = _encoder(encoder, shape, width, stem)
        inside = last
        steps = []
        for beside in (last // 2, last // 4, last // 8, width):  # channels of the stages backwards, and of the stem
            steps.append(_normed(inside + beside, beside))
            inside = beside
        self.decoder = nn.ModuleList(steps)
        self.size = outputs[1:]
        self.last = nn.Conv2d(inside, outputs[0], 3, padding=1)
        draw(self, convolutions="fan_out")
        draw(self.last, convolutions="uniform")  # small, as of a last linear layer

    def forward(self, x: Tensor) -> Tensor:
        """Return predicted images."""
        found = _stages(self.encoder, x)
        x = found.pop()
        for step, beside in zip(self.decoder, reversed(found), strict=True):
            x = step(torch.cat([_enlarged(x, beside.shape[-2:]), beside], dim=1))
        images: Tensor = self.last(_enlarged(x, self.size))
        return images


unet = Unet


class Unet6(nn.Module):
    """The network of the transfer paper for images as targets: a residual encoder and six blocks that enlarge.

    The last stage of the encoder is halved once more; each block doubles the image, so that six of them come from
    a sixty-fourth of the side back to all of it. The first five put beside their own channels what a 1×1 convolution
    makes of the encoder's last, …, first stage and of its first convolution (Atanov et al. 2022, supplement 3.2 and
    figure 2). The paper gives neither the channels of the blocks nor what is in one: here 8, 4, 2, 1, 1/2 and 1/4
    times the width, and two 3×3 convolutions with batch norm.

    Parameters
    ----------
    shape, outputs
        As of :class:`Unet`.
    encoder, width, stem
        As of :class:`Unet`; by default those of the paper, a ResNet-50 as published for ImageNet.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        outputs: tuple[int, ...],
        *,
        encoder: str = "resnet50",
        width: int = 64,
        stem: str = "imagenet",
    ) -> None:
        super().__init__()
        self.encoder, last = _encoder(encoder, shape, width, stem)
        self.pool = nn.MaxPool2d(2, ceil_mode=True)  # a side of one pixel stays
        stages = (last, last // 2, last // 4, last // 8, width)  # channels backwards, those of the stem at the end
        own = [max(1, 8 * width // 2**block) for block in range(6)]
        self.links = nn.ModuleList(
            nn.Conv2d(there, here, 1, bias=False) for there, here in zip(stages, own, strict=False)
        )
        blocks, inside = [], last
        for block, here in enumerate(own):
            beside = here if block < len(stages) else 0
            blocks.append(nn.Sequential(_normed(inside + beside, here), _normed(here, here)))
            inside = here
        self.blocks = nn.ModuleList(blocks)
        self.size = outputs[1:]
        self.last = nn.Conv2d(inside, outputs[0], 3, padding=1)
        draw(self, convolutions="fan_out")
        draw(self.last, convolutions="uniform")  # small, as of a last linear layer

    def forward(self, x: Tensor) -> Tensor:
        """Return predicted images."""
        size, found = x.shape[-2:], _stages(self.encoder, x)
        x = self.pool(found[-1])
        for block, link, there in zip(self.blocks, self.links, reversed(found), strict=False):
            beside = link(there)
            x = block(torch.cat([_enlarged(x, beside.shape[-2:]), beside], dim=1))
        images: Tensor = self.last(_enlarged(self.blocks[-1](_enlarged(x, size)), self.size))
        return images


unet6 = Unet6


def _encoder(name: str, shape: tuple[int, ...], width: int, stem: str) -> tuple[ResNet, int]:
    """Make a residual network without its last layer; and the channels of its last stage."""
    image_shape(shape, "unet")
    encoders = {"resnet18": resnet18, "resnet34": resnet34, "resnet50": resnet50}
    if name not in encoders:
        raise InputError(f"encoder={name!r} is not known: use {' or '.join(encoders)}.", argument="options")
    made = encoders[name](shape, 1, width=width, stem=stem)
    last = made.fc.in_features
    made.fc = nn.Identity()  # type: ignore[assignment]
    return made, last


def _stages(body: ResNet, x: Tensor) -> list[Tensor]:
    """Return what the first convolution and each of the four stages of an encoder give."""
    found = [body.relu(body.bn1(body.conv1(x)))]
    found.append(body.layer1(body.maxpool(found[0])))
    for stage in (body.layer2, body.layer3, body.layer4):
        found.append(stage(found[-1]))
    return found


def _normed(inside: int, outside: int, *, kernel: int = 3, stride: int = 1, padding: int = 1) -> nn.Sequential:
    """Make a convolution without bias, batch norm and ReLU."""
    return nn.Sequential(
        nn.Conv2d(inside, outside, kernel, stride, padding, bias=False), nn.BatchNorm2d(outside), nn.ReLU(inplace=True)
    )


def _enlarged(x: Tensor, size: tuple[int, ...]) -> Tensor:
    """Enlarge images by repeating pixels: the gradient of interpolation differs between runs on a GPU."""
    if tuple(x.shape[-2:]) == tuple(size):
        return x
    return functional.interpolate(x, size=list(size), mode="nearest")


def draw(model: nn.Module, *, convolutions: str = "fan_in") -> nn.Module:
    """Draw every weight anew from torch's global generator, and return the model.

    Convolutions by the rule of He et al.: normal, with variance 2 over the fan-in or fan-out; or, with
    ``"uniform"``, as linear layers are: weights and biases uniform within ±1/√fan-in.
    """
    for module in model.modules():
        if isinstance(module, nn.Conv2d) and convolutions != "uniform":
            fan: Any = convolutions
            nn.init.kaiming_normal_(module.weight, mode=fan, nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Conv2d | nn.Linear):
            bound = 1 / math.sqrt(module.weight[0].numel())
            nn.init.uniform_(module.weight, -bound, bound)
            if module.bias is not None:
                nn.init.uniform_(module.bias, -bound, bound)
        elif isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            nn.init.ones_(module.weight)
            nn.init.zeros_(module.bias)
    return model


def image_shape(
    shape: tuple[int, ...], architecture: str, stem: str | None = None, **numbers: Any
) -> tuple[int, int, int]:
    """Return (channels, height, width), or raise for inputs that are not images, too small ones, and bad options."""
    if len(shape) != 3 or min(shape) < 1:
        problem = f"takes images, (channels, height, width); one input has shape {tuple(shape)}."
        raise misfit("architecture", architecture, problem, "Use 'linear' or 'mlp' for plain features.")
    _check_positive(**numbers)
    if stem is not None:
        _check_choice("stem", stem, STEMS)
    check_sides(architecture, stem, shape[1:])
    return shape[0], shape[1], shape[2]


def _check_positive(**numbers: Any) -> None:
    """Refuse options that are not whole numbers from 1 on."""
    for name, value in numbers.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InputError(f"{name}={value!r}.", argument="options", remedy="Give a whole number of at least 1.")


def _check_choice(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InputError(f"{name}={value!r} is not known: use {' or '.join(known)}.", argument="options")


def _dropout(share: float) -> nn.Module:
    _check_share("dropout", share)
    return nn.Dropout(share)


def _check_share(name: str, share: float) -> None:
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share < 1:
        raise InputError(f"{name}={share!r}.", argument="options", remedy="Give a share from 0 to below 1.")


ARCHITECTURES: dict[str, Callable[..., nn.Module]] = {
    # The names are listed once, in a module that a study can import to plan where torch is not installed.
    name: partial(ResNet, name) if name in _RESNETS else globals()[name]
    for name in (*ROW_ARCHITECTURES, *IMAGE_ARCHITECTURES)
}
"""Factories by name, called with the shape of one input, the classes (or the shape of a target), and options."""
