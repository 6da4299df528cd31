"""Norms of the weights and distances from where they started.

Sums and products over layers are of squared norms, as Jiang et al. (2020) have them; products are
given as their logarithm, which ranks networks alike and does not overflow. Batch norm is folded
into the layer before it: without that its weights could have any size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.conv import _ConvNd

from curvewise.errors import InputError
from curvewise.nn.measures.layers import Layer, layers_of
from curvewise.nn.measures.measure import Measure
from curvewise.nn.measures.subject import Subject
from curvewise.nn.measures.weights import flattened

STEPS = 40
"""Steps of the Lanczos iteration for the norm of a convolution."""


def parameter_count(subject: Subject) -> float:
    """Number of parameters."""
    return float(sum(p.numel() for p in subject.model.parameters()))


def l2_norm(subject: Subject) -> Tensor:
    """Euclidean norm of all parameters as they are stored."""
    length: Tensor = flattened(dict(subject.model.named_parameters())).double().norm()
    return length


def frobenius_sum(subject: Subject) -> Tensor:
    """Sum over layers of squared Frobenius norms."""
    return _squares(subject, "frobenius").sum()


def frobenius_product(subject: Subject) -> Tensor:
    """Logarithm of the product over layers of squared Frobenius norms."""
    return _squares(subject, "frobenius").log().sum()


def spectral_sum(subject: Subject) -> Tensor:
    """Sum over layers of squared largest singular values of the kernel as a matrix."""
    return _squares(subject, "kernel").sum()


def spectral_product(subject: Subject) -> Tensor:
    """Logarithm of the product over layers of the same."""
    return _squares(subject, "kernel").log().sum()


def operator_sum(subject: Subject) -> Tensor:
    """Sum over layers of squared operator norms, convolutions at the size of their inputs."""
    return _squares(subject, "operator").sum()


def operator_product(subject: Subject) -> Tensor:
    """Logarithm of the product over layers of squared operator norms."""
    return _squares(subject, "operator").log().sum()


def stable_rank_sum(subject: Subject) -> Tensor:
    """Sum over layers of the squared Frobenius norm over the squared spectral norm."""
    return (_squares(subject, "frobenius") / _squares(subject, "kernel")).sum()


def distance(subject: Subject) -> Tensor:
    """Euclidean distance of all parameters from the initial ones."""
    initial = _initial(subject)
    names = dict(subject.model.named_parameters())
    moved = flattened(names) - flattened({n: initial[n] for n in names})
    length: Tensor = moved.double().norm()
    return length


def distance_spectral(subject: Subject) -> Tensor:
    """Sum over layers of squared largest singular values of what was added to the kernel."""
    initial = _initial(subject)
    squares = []
    for layer in layers_of(subject):
        if isinstance(layer.module, nn.Linear | _ConvNd):
            moved = layer.module.weight - initial[f"{layer.name}.weight"]
            squares.append(kernel_norm(replace(layer, weight=moved)) ** 2)
    return torch.stack(squares).sum()


def kernel_norm(layer: Layer) -> Tensor:
    """Largest singular value of the kernel as a matrix, output channels by all the rest."""
    kernel = layer.kernel
    if kernel.shape[1] > kernel.shape[2]:
        kernel = kernel.mT
    largest: Tensor = torch.linalg.eigvalsh(kernel @ kernel.mT)[:, -1].max()
    return largest.clamp(min=0).sqrt()


def operator_norm(layer: Layer, steps: int = STEPS) -> Tensor:
    """Largest singular value of a layer as a map from inputs to outputs.

    A convolution's depends on the size of the image. It is found by Lanczos iteration, which takes
    fewer steps than power iteration for the same accuracy and, like it, gives at most the norm.
    """
    module, size = layer.module, math.prod(layer.shape)
    if not isinstance(module, _ConvNd):
        return kernel_norm(layer)
    weights = {"weight": layer.weight}
    if module.bias is not None:
        weights["bias"] = torch.zeros_like(module.bias)

    def there_and_back(v: Tensor) -> Tensor:
        v = v.view(1, *layer.shape).requires_grad_()
        out = functional_call(module, weights, (v,))
        return torch.autograd.grad(out, v, out.detach())[0].flatten()

    start = torch.randn(size, generator=torch.Generator().manual_seed(0)).to(layer.weight)
    return largest_eigenvalue(there_and_back, start, min(steps, size)).clamp(min=0).sqrt()


def largest_eigenvalue(symmetric: Callable[[Tensor], Tensor], start: Tensor, steps: int) -> Tensor:
    """Lanczos iteration, each vector made orthogonal to all before it, twice."""
    basis = start.new_zeros(steps, len(start))
    projected = start.new_zeros(steps, steps)
    v = start / start.norm()
    for step in range(steps):
        basis[step] = v
        image = symmetric(v)
        for _ in range(2):
            onto = basis[: step + 1] @ image
            image = image - onto @ basis[: step + 1]
            projected[step, : step + 1] += onto
        length = image.norm()
        rest = length > 1e-5 * projected.diagonal().max()  # else what is left is rounding
        v = torch.where(rest, image / length, torch.zeros_like(image))
    largest: Tensor = torch.linalg.eigvalsh(projected.double())[-1]  # of the lower triangle
    return largest


def _squares(subject: Subject, kind: str) -> Tensor:
    """Squared norms of all layers."""
    norms: dict[str, Callable[[Layer], Tensor]] = {
        "frobenius": lambda layer: layer.weight.double().norm(),
        "kernel": kernel_norm,
        "operator": lambda layer: operator_norm(layer).double(),
    }
    return subject.once(
        (kind, "norms"), lambda: torch.stack([norms[kind](at) ** 2 for at in layers_of(subject)])
    )


def _initial(subject: Subject) -> Mapping[str, Tensor]:
    if subject.initial is None:
        raise InputError("the weights before training are not known: pass initial=.")
    return subject.initial


_WEIGHTS = "the weights alone"
_FOLDED = "the weights, and one example to find the layers"
_JIANG = "Jiang et al. 2020, Fantastic generalization measures"

NORMS = (
    Measure("parameters", parameter_count, 1, (), _WEIGHTS, "Number of parameters."),
    Measure("l2-norm", l2_norm, 1, (), _WEIGHTS, "Euclidean norm of all parameters."),
    Measure(
        "frobenius-sum",
        frobenius_sum,
        1,
        (),
        _FOLDED,
        f"Sum over layers of squared Frobenius norms, batch norm folded in ({_JIANG}).",
    ),
    Measure(
        "frobenius-product",
        frobenius_product,
        1,
        (),
        _FOLDED,
        f"Logarithm of the product over layers of squared Frobenius norms ({_JIANG}).",
    ),
    Measure(
        "spectral-sum",
        spectral_sum,
        1,
        (),
        _FOLDED,
        "Sum over layers of squared spectral norms, a convolution's kernel taken as a matrix: the "
        f"usual stand-in for its operator norm ({_JIANG}).",
    ),
    Measure(
        "spectral-product",
        spectral_product,
        1,
        (),
        _FOLDED,
        "Logarithm of the product over layers of squared spectral norms of kernels as matrices "
        "(Bartlett et al. 2017, Spectrally-normalized margin bounds).",
    ),
    Measure(
        "operator-sum",
        operator_sum,
        1,
        (),
        f"{STEPS} passes of one input through each convolution and back",
        "Sum over layers of squared operator norms, convolutions at the size of their real inputs.",
    ),
    Measure(
        "operator-product",
        operator_product,
        1,
        (),
        "as operator-sum, with which it is shared",
        "Logarithm of the product over layers of squared operator norms.",
    ),
    Measure(
        "stable-rank-sum",
        stable_rank_sum,
        1,
        (),
        _FOLDED,
        "Sum over layers of the squared Frobenius over the squared spectral norm of the kernel "
        "(Neyshabur et al. 2018, A PAC-Bayesian approach to spectrally-normalized margin bounds).",
    ),
    Measure(
        "distance",
        distance,
        1,
        ("initial",),
        _WEIGHTS,
        "Euclidean distance of all parameters from where training began (Nagarajan and Kolter "
        "2019, Generalization in deep networks: the role of distance from initialization).",
    ),
    Measure(
        "distance-spectral",
        distance_spectral,
        1,
        ("initial",),
        _FOLDED,
        f"Sum over layers of squared spectral norms of what training added to kernels ({_JIANG}).",
    ),
)
"""Measures of this module."""
