"""What the architectures share: how weights are drawn, and a few layers."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor, nn

from curvewise.errors import InputError


def draw(model: nn.Module, *, convolutions: str = "fan_in") -> nn.Module:
    """Draw every weight anew from torch's global generator, and give the model back.

    Convolutions by the rule of He et al.: normal, with variance 2 over the fan-in or fan-out; or,
    with ``"uniform"``, as linear layers are: weights and biases uniform within ±1/√fan-in.
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


class Scale(nn.Module):
    """Multiply with a constant."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        """Multiply."""
        return x * self.factor


class GlobalMax(nn.Module):
    """The largest value of each channel: what AdaptiveMaxPool2d(1) gives, in fewer kernels.

    By position, not by value (``amax``): a compiled backward pass computes the values again in
    another precision, finds none equal to the largest, and divides by none.
    """

    def forward(self, x: Tensor) -> Tensor:
        """From (batch, channels, height, width) to (batch, channels)."""
        return x.flatten(2).max(dim=2).values


class Residual(nn.Module):
    """Add what layers give to what they were given."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        """Add."""
        summed: Tensor = x + self.layers(x)
        return summed


def conv(inside: int, outside: int, side: int, *, batch_norm: bool) -> list[nn.Module]:
    """A convolution that keeps the image's size, batch norm if asked for, and ReLU."""
    layers: list[nn.Module] = [nn.Conv2d(inside, outside, side, padding=side // 2)]
    if batch_norm:
        layers.append(nn.BatchNorm2d(outside))
    return [*layers, nn.ReLU(inplace=True)]


def image_shape(shape: tuple[int, ...], architecture: str) -> tuple[int, int, int]:
    """(channels, height, width), or an error for inputs that are not images."""
    if len(shape) != 3 or min(shape) < 1:
        raise InputError(
            f"architecture={architecture!r} takes images, (channels, height, width); one input "
            f"has shape {tuple(shape)}. Use 'linear' or 'mlp' for plain features."
        )
    return shape[0], shape[1], shape[2]


def at_least_one(**numbers: Any) -> None:
    """Refuse options that are not whole numbers from 1 on."""
    for name, value in numbers.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InputError(f"options: {name}={value!r}: give a whole number of at least 1.")
