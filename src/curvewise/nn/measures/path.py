"""Path norm: the weights of all paths from an input to an output."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

from curvewise.errors import InputError
from curvewise.nn._guarding import logits_of
from curvewise.nn._sites import is_activation
from curvewise.nn.measures.layers import batch_norm_scale, layers_of
from curvewise.nn.measures.measure import Measure
from curvewise.nn.measures.subject import Subject

_NOT_LINEAR = (nn.LayerNorm, nn.GroupNorm, nn.MultiheadAttention, _InstanceNorm)


def path_norm(subject: Subject) -> Tensor:
    """Square root of the sum over all paths of the product of squared weights.

    One forward pass of ones with all weights squared, in float64. Biases are inputs of their own;
    batch norm is folded into the layer before it; activations let everything through; a maximum
    over pixels takes the largest sum.
    """
    for name, module in subject.model.named_modules():
        if isinstance(module, _NOT_LINEAR):
            raise InputError(f"{type(module).__name__} ({name}) has no paths: it is not linear.")
    if not subject.continuous:
        raise InputError("inputs are tokens: there are no paths from them.")
    layers = layers_of(subject)
    squared = {name: value.double() ** 2 for name, value in subject.model.named_parameters()} | {
        name: value.double() for name, value in _floating_buffers(subject.model).items()
    }
    biases: dict[str, Tensor] = {}  # of the layer before a batch norm
    for layer in layers:
        bias = getattr(layer.module, "bias", None)
        if layer.norm is not None and bias is not None:
            biases[layer.norm] = bias.double()
            squared[f"{layer.name}.bias"] = torch.zeros_like(biases[layer.norm])
    ones = torch.ones(1, *subject.sample.x.shape[1:], dtype=torch.float64, device=subject.device)
    with torch.no_grad(), _linear(subject.model, biases):
        return logits_of(functional_call(subject.model, squared, (ones,))).sum().sqrt()


def _floating_buffers(model: nn.Module) -> dict[str, Tensor]:
    return {name: value for name, value in model.named_buffers() if value.is_floating_point()}


@contextmanager
def _linear(model: nn.Module, biases: dict[str, Tensor]) -> Iterator[None]:
    """Square batch norm and take activations away."""
    instead: dict[nn.Module, Callable[[Tensor], Tensor]] = {}
    for name, module in model.named_modules():
        if isinstance(module, _BatchNorm):
            instead[module] = _squared(module, biases.get(name))
        elif is_activation(module):
            instead[module] = _same
    before = {module: vars(module).get("forward") for module in instead}
    try:
        for module, forward in instead.items():
            vars(module)["forward"] = forward
        yield
    finally:
        for module, own in before.items():
            vars(module).pop("forward", None)
            if own is not None:
                vars(module)["forward"] = own


def _same(x: Tensor) -> Tensor:
    return x


def _squared(module: _BatchNorm, bias: Tensor | None) -> Callable[[Tensor], Tensor]:
    """What batch norm does to squared weights, the bias of the layer before it taken in."""
    scale = batch_norm_scale(module)
    if scale is None or module.running_mean is None:
        raise InputError("batch norm without running statistics is not linear.")
    scale = scale.double()
    shift = ((0.0 if bias is None else bias) - module.running_mean.double()) * scale
    if module.bias is not None:
        shift = shift + module.bias.double()

    def forward(x: Tensor) -> Tensor:
        shape = (1, -1, *[1] * (x.ndim - 2))
        return x * (scale**2).view(shape) + (shift**2).view(shape)

    return forward


PATHS = (
    Measure(
        "path-norm",
        path_norm,
        1,
        ("continuous",),
        "one forward pass of one input, in float64",
        "Root of the sum over paths of products of squared weights (Neyshabur et al. 2015, "
        "Norm-based capacity control in neural networks), by a pass of ones.",
    ),
)
"""Measures of this module."""
