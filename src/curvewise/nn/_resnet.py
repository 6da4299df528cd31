"""Residual networks: the nine-layer one for small images, and ResNet-18, 34 and 50."""

from __future__ import annotations

from torch import Tensor, nn

from curvewise.errors import InputError
from curvewise.nn._layers import GlobalMax, Residual, Scale, at_least_one, draw, image_shape

STEMS = ("small", "imagenet")


def resnet9(
    shape: tuple[int, ...], classes: int, *, width: int = 64, scale: float = 0.2
) -> nn.Module:
    """The nine-layer network of the variance paper (Page 2019, as in Ilyas et al. 2022).

    Convolutions with batch norm and ReLU: 64 channels; 128, 5×5 with stride 2; two of 128 with a
    shortcut; 256, pooled; two of 256 with a shortcut; 128 without padding. The largest value of
    each channel goes into a linear layer without bias, whose output is scaled. Images smaller
    than 11×11 are padded before the last convolution, which would not fit otherwise.

    Parameters
    ----------
    shape, classes
        Of one input, and of the output.
    width : int
        Channels of the first convolution; the others have 2, 2, 4, 4 and 2 times as many.
    scale : float
        Of the logits.
    """
    channels, height, side = image_shape(shape, "resnet9")
    at_least_one(width=width)
    two, four = 2 * width, 4 * width
    smallest = (min(height, side) + 1) // 2 // 2
    if smallest < 1:
        raise InputError(
            f"architecture='resnet9' needs images of 3×3 pixels or more, and these have "
            f"{height}×{side}: use 'cnn' or 'mlp'."
        )
    layers = nn.Sequential(
        _normed(channels, width),
        _normed(width, two, kernel=5, stride=2, padding=2),
        Residual(_normed(two, two), _normed(two, two)),
        _normed(two, four),
        nn.MaxPool2d(2),
        Residual(_normed(four, four), _normed(four, four)),
        _normed(four, two, padding=0 if smallest >= 3 else 1),
        GlobalMax(),
        nn.Linear(two, classes, bias=False),
        Scale(scale),
    )
    return draw(layers, convolutions="uniform")


def resnet18(
    shape: tuple[int, ...], classes: int, *, width: int = 64, stem: str = "small"
) -> nn.Module:
    """ResNet-18; see :class:`ResNet`."""
    return ResNet(_Basic, (2, 2, 2, 2), shape, classes, width=width, stem=stem)


def resnet34(
    shape: tuple[int, ...], classes: int, *, width: int = 64, stem: str = "small"
) -> nn.Module:
    """ResNet-34; see :class:`ResNet`."""
    return ResNet(_Basic, (3, 4, 6, 3), shape, classes, width=width, stem=stem)


def resnet50(
    shape: tuple[int, ...], classes: int, *, width: int = 64, stem: str = "small"
) -> nn.Module:
    """ResNet-50; see :class:`ResNet`."""
    return ResNet(_Bottleneck, (3, 4, 6, 3), shape, classes, width=width, stem=stem)


class ResNet(nn.Module):
    """He et al.'s network, its layers named as in torchvision so that files of weights fit.

    Parameters
    ----------
    block : type
        What is repeated.
    repeats : tuple of int
        Blocks in each of the four stages; each but the first halves the image.
    shape, classes
        Of one input, and of the output.
    width : int
        Channels of the first stage.
    stem : {"small", "imagenet"}
        A 3×3 convolution that keeps the size, or a 7×7 one with stride 2 and pooling.
    """

    def __init__(
        self,
        block: type[_Basic] | type[_Bottleneck],
        repeats: tuple[int, ...],
        shape: tuple[int, ...],
        classes: int,
        *,
        width: int,
        stem: str,
    ) -> None:
        super().__init__()
        channels, _, _ = image_shape(shape, "resnet")
        at_least_one(width=width)
        if stem not in STEMS:
            raise InputError(f"options: stem={stem!r} is not known: use {' or '.join(STEMS)}.")
        large = stem == "imagenet"
        kernel, stride = (7, 2) if large else (3, 1)
        self.conv1 = nn.Conv2d(channels, width, kernel, stride, kernel // 2, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool: nn.Module = nn.MaxPool2d(3, 2, 1) if large else nn.Identity()
        inside, stages = width, []
        for stage, count in enumerate(repeats):
            blocks = []
            for number in range(count):
                stride = 2 if stage and not number else 1
                blocks.append(block(inside, width * 2**stage, stride))
                inside = width * 2**stage * block.expansion
            stages.append(nn.Sequential(*blocks))
        self.layer1, self.layer2, self.layer3, self.layer4 = stages
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(inside, classes)
        draw(self, convolutions="fan_out")

    def forward(self, x: Tensor) -> Tensor:
        """Logits."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        logits: Tensor = self.fc(self.avgpool(x).flatten(1))
        return logits


class _Basic(nn.Module):
    """Two 3×3 convolutions beside a shortcut."""

    expansion = 1

    def __init__(self, inside: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = _shortcut(inside, width, stride)

    def forward(self, x: Tensor) -> Tensor:
        beside = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        summed: Tensor = self.relu(self.bn2(self.conv2(x)) + beside)
        return summed


class _Bottleneck(nn.Module):
    """A 3×3 convolution between two 1×1 ones, the last four times as wide, beside a shortcut."""

    expansion = 4

    def __init__(self, inside: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = _shortcut(inside, 4 * width, stride)

    def forward(self, x: Tensor) -> Tensor:
        beside = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.relu(self.bn2(self.conv2(x)))
        summed: Tensor = self.relu(self.bn3(self.conv3(x)) + beside)
        return summed


def _shortcut(inside: int, outside: int, stride: int) -> nn.Sequential | None:
    """A 1×1 convolution where the block changes the shape."""
    if stride == 1 and inside == outside:
        return None
    return nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))


def _normed(
    inside: int, outside: int, *, kernel: int = 3, stride: int = 1, padding: int = 1
) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inside, outside, kernel, stride, padding, bias=False),
        nn.BatchNorm2d(outside),
        nn.ReLU(inplace=True),
    )
