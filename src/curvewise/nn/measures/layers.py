"""The linear layers of a network in the order of a forward pass, batch norm folded into them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd

from curvewise.errors import InputError
from curvewise.nn.measures.subject import Subject


@dataclass(frozen=True, eq=False)
class Layer:
    """One linear map of the network, without its bias.

    Attributes
    ----------
    name : str
        Of its module.
    module : nn.Module
        A linear layer, a convolution, or a batch norm that follows neither directly.
    weight : Tensor
        Of the map, that of a batch norm behind it included.
    groups : int
        Parts of the channels that do not see each other.
    shape : tuple of int
        Of one example as it comes in.
    norm : str, optional
        The batch norm that is folded in.
    """

    name: str
    module: nn.Module
    weight: Tensor
    groups: int
    shape: tuple[int, ...]
    norm: str | None = None

    @property
    def kernel(self) -> Tensor:
        """The weights as a matrix for each group, in float64."""
        first = len(self.weight)
        return self.weight.double().reshape(self.groups, first // self.groups, -1)


def layers_of(subject: Subject) -> list[Layer]:
    """The linear layers that a forward pass goes through."""
    return subject.once("layers", lambda: _checked(_traced(subject)))


def _checked(found: list[Layer]) -> list[Layer]:
    if not found:
        raise InputError("the model has no linear layer or convolution (a module of torch.nn).")
    if not all(torch.isfinite(layer.weight).all() for layer in found):
        raise InputError("the model's weights are not all finite: it may have diverged.")
    return found


class _Trace:
    """Hooks that note each linear layer and batch norm as it is called."""

    def __init__(self) -> None:
        self.layers: list[Layer] = []
        self.seen: list[tuple[Tensor, int, int]] = []  # what came out, its version, which layer

    def linear(self, name: str, module: Any, given: Any, out: Tensor) -> None:
        groups = getattr(module, "groups", 1)
        shape = tuple(given[0].shape[1:])
        self.layers.append(Layer(name, module, module.weight.detach(), groups, shape))
        if not isinstance(module, _ConvTransposeNd):
            self.seen.append((out, out._version, len(self.layers) - 1))

    def norm(self, name: str, module: Any, given: Any) -> None:
        scale = batch_norm_scale(module)
        if scale is None:
            return
        for out, version, at in reversed(self.seen):
            if out is given[0] and out._version == version:  # nothing was done to it since
                layer = self.layers[at]
                each = scale.view(-1, *[1] * (layer.weight.ndim - 1))
                self.layers[at] = replace(layer, weight=layer.weight * each, norm=name)
                return
        shape = tuple(given[0].shape[1:])
        self.layers.append(Layer(name, module, scale[:, None], len(scale), shape))


def _traced(subject: Subject) -> list[Layer]:
    trace, hooks = _Trace(), []
    for name, module in subject.model.named_modules():
        if isinstance(module, nn.Linear | _ConvNd):
            hooks.append(
                module.register_forward_hook(lambda m, x, y, n=name: trace.linear(n, m, x, y))
            )
        elif isinstance(module, _BatchNorm):
            hooks.append(module.register_forward_pre_hook(lambda m, x, n=name: trace.norm(n, m, x)))
    try:
        with torch.no_grad():
            x, _ = next(subject.batches(2))  # batch norm by the batch takes no single example
            subject.model(x)
    finally:
        for hook in hooks:
            hook.remove()
    return trace.layers


def batch_norm_scale(module: _BatchNorm) -> Tensor | None:
    """What batch norm multiplies each channel with; None where it goes by the batch."""
    if module.running_var is None:
        return None
    scale = torch.rsqrt(module.running_var + module.eps)
    return scale if module.weight is None else scale * module.weight.detach()
