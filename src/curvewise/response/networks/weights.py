"""Measures of the weights: norms, distances from where they started, path norm, sharpness and flatness.

Sums and products over layers are of squared norms, as in Jiang et al. (2020); products are given as their logarithm,
which ranks networks alike and does not overflow. Batch norm is folded into the layer before it: without that its
weights could have any size.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd
from torch.nn.modules.instancenorm import _InstanceNorm
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm

from curvewise.errors import InputError, arg
from curvewise.nn.networks import logits_of
from curvewise.response.networks.sites import is_activation
from curvewise.response.networks.subject import JIANG, Subject, flattened, measure, rounding, weights_of

# Steps of the iteration that finds the norm of a convolution.
LANCZOS = 40
_NOT_LINEAR = (nn.LayerNorm, nn.GroupNorm, nn.MultiheadAttention, _InstanceNorm)

# Examples for sharpness.
MOST = 2000
# Steps of the search for the worst direction.
ASCENT = 10
# Draws of noise for the average rise.
DRAWS = 10
# Radius of the ball, as a share of the length of the weights.
RADIUS = 0.002
# Radius of the ball in which each weight moves in units of its own size.
ADAPTIVE = 0.5
# Length of the noise as a share of that of the weights; of each weight if adaptive.
NOISE = 0.1

# Examples for flatness, which takes many more passes.
MOST_FLAT = 1000
# Draws of noise, the same ones at every size, so that accuracy falls steadily with size.
DRAWS_FLAT = 8
# Fall of accuracy that counts as flat, as in Jiang et al. (2020).
TOLERANCE = 0.1
# Sizes of noise to search.
RANGE = (1e-5, 10.0)
# Halvings of that range on a logarithmic scale: sizes are then known to 0.4%.
HALVINGS = 12

_WEIGHTS = "the weights alone"
_FOLDED = "the weights, and one example to find the layers"
_ASCENT = f"{ASCENT + 2} forward and backward passes over up to {MOST:,} examples"
_NOISE = f"{DRAWS} forward passes over up to {MOST:,} examples"
_FLAT = f"{(HALVINGS + 2) * DRAWS_FLAT} forward passes over up to {MOST_FLAT:,} examples"
_SHARED = "as flatness, with which it is shared"
_NAGARAJAN = "Nagarajan and Kolter 2019, Generalization in deep networks: the role of distance from initialization"
_NEYSHABUR = "Neyshabur et al. 2018, A PAC-Bayesian approach to spectrally-normalized margin bounds"


@measure("parameters", 1, _WEIGHTS)
def parameter_count(subject: Subject) -> float:
    """Number of parameters."""
    return float(sum(p.numel() for p in subject.model.parameters()))


@measure("l2-norm", 1, _WEIGHTS)
def l2_norm(subject: Subject) -> Tensor:
    """Euclidean norm of all parameters."""
    length: Tensor = flattened(dict(subject.model.named_parameters())).double().norm()
    return length


@measure("distance", 1, _WEIGHTS, "initial", paper=_NAGARAJAN)
def distance(subject: Subject) -> Tensor:
    """Euclidean distance of all parameters from where training began."""
    initial = _initial(subject)
    names = dict(subject.model.named_parameters())
    length: Tensor = (flattened(names) - flattened({n: initial[n] for n in names})).double().norm()
    return length


@measure("distance-spectral", 1, _FOLDED, "initial", paper=JIANG)
def distance_spectral(subject: Subject) -> Tensor:
    """Sum over layers of squared spectral norms of what training added to kernels."""
    initial = _initial(subject)
    squares = []
    for layer in layers_of(subject):
        if isinstance(layer.module, nn.Linear | _ConvNd):
            if f"{layer.name}.weight" not in initial:
                raise InputError(
                    f"{layer.name} has no initial kernel: it is computed (weight norm) or tied to another."
                )
            moved = layer.module.weight - initial[f"{layer.name}.weight"]
            squares.append(kernel_norm(replace(layer, weight=moved)) ** 2)
    return torch.stack(squares).sum()


def _initial(subject: Subject) -> Mapping[str, Tensor]:
    if subject.initial is None:
        raise InputError(f"the weights before training are not known: pass {arg('initial')}.")
    return subject.initial


@measure("frobenius-sum", 1, _FOLDED, paper=JIANG)
def frobenius_sum(subject: Subject) -> Tensor:
    """Sum over layers of squared Frobenius norms, batch norm folded in."""
    return squared_norms(subject, "frobenius").sum()


@measure("frobenius-product", 1, _FOLDED, paper=JIANG)
def frobenius_product(subject: Subject) -> Tensor:
    """Logarithm of the product over layers of squared Frobenius norms."""
    return squared_norms(subject, "frobenius").log().sum()


@measure("spectral-sum", 1, _FOLDED, paper=JIANG)
def spectral_sum(subject: Subject) -> Tensor:
    """Sum over layers of squared spectral norms.

    A convolution's kernel is taken as a matrix: the usual stand-in for its operator norm.
    """
    return squared_norms(subject, "kernel").sum()


@measure("spectral-product", 1, _FOLDED, paper="Bartlett et al. 2017, Spectrally-normalized margin bounds")
def spectral_product(subject: Subject) -> Tensor:
    """Logarithm of the product over layers of squared spectral norms of kernels as matrices."""
    return squared_norms(subject, "kernel").log().sum()


@measure("operator-sum", 1, f"{LANCZOS} passes of one input through each convolution and back")
def operator_sum(subject: Subject) -> Tensor:
    """Sum over layers of squared operator norms, convolutions at the size of their real inputs."""
    return squared_norms(subject, "operator").sum()


@measure("operator-product", 1, "as operator-sum, with which it is shared")
def operator_product(subject: Subject) -> Tensor:
    """Logarithm of the product over layers of squared operator norms."""
    return squared_norms(subject, "operator").log().sum()


@measure("stable-rank-sum", 1, _FOLDED, paper=_NEYSHABUR)
def stable_rank_sum(subject: Subject) -> Tensor:
    """Sum over layers of the squared Frobenius over the squared spectral norm of the kernel."""
    return (squared_norms(subject, "frobenius") / squared_norms(subject, "kernel")).sum()


def squared_norms(subject: Subject, kind: str) -> Tensor:
    """Squared norms of all layers: "frobenius", "kernel" (largest singular value as a matrix) or "operator"."""
    norms: dict[str, Callable[[Layer], Tensor]] = {
        "frobenius": lambda layer: layer.weight.double().norm(),
        "kernel": kernel_norm,
        "operator": lambda layer: operator_norm(layer).double(),
    }
    return subject.once((kind, "norms"), lambda: torch.stack([norms[kind](layer) ** 2 for layer in layers_of(subject)]))


def kernel_norm(layer: Layer) -> Tensor:
    """Largest singular value of the kernel as a matrix, output channels by all the rest."""
    kernel = layer.kernel
    # The smaller of the two Gram matrices has the same largest eigenvalue.
    if kernel.shape[1] > kernel.shape[2]:
        kernel = kernel.mT
    largest: Tensor = torch.linalg.eigvalsh(kernel @ kernel.mT)[:, -1].max()
    return largest.clamp(min=0).sqrt()


def operator_norm(layer: Layer) -> Tensor:
    """Largest singular value of a layer as a map from inputs to outputs.

    A convolution's depends on the size of the image. It is found by Lanczos iteration, which takes fewer steps than
    power iteration for the same accuracy and, like it, gives at most the norm.
    """
    module, size = layer.module, math.prod(layer.shape)
    if not isinstance(module, _ConvNd):
        return kernel_norm(layer)
    # Without its bias, and with the scale of a batch norm behind it.
    conv: Any = _computed_weights(copy.deepcopy(module).requires_grad_(True)).requires_grad_(False)
    conv.weight.copy_(layer.weight)
    if conv.bias is not None:
        conv.bias.zero_()

    def there_and_back(v: Tensor) -> Tensor:
        # The gradient of |Av|² / 2 is AᵀAv, so autograd gives the transpose of any convolution.
        v = v.view(1, *layer.shape).requires_grad_()
        out = conv(v)
        return torch.autograd.grad(out, v, out.detach())[0].flatten()

    start = torch.randn(size, generator=torch.Generator().manual_seed(0)).to(layer.weight)
    return largest_eigenvalue(there_and_back, start, min(LANCZOS, size)).clamp(min=0).sqrt()


def largest_eigenvalue(symmetric: Callable[[Tensor], Tensor], start: Tensor, steps: int) -> Tensor:
    """Largest eigenvalue of a symmetric map by Lanczos iteration."""
    basis = start.new_zeros(steps, len(start))
    projected = start.new_zeros(steps, steps)
    v = start / start.norm()
    for step in range(steps):
        basis[step] = v
        image = symmetric(v)
        # Made orthogonal to all vectors before it, twice: once is not enough in float32.
        for _ in range(2):
            onto = basis[: step + 1] @ image
            image = image - onto @ basis[: step + 1]
            projected[step, : step + 1] += onto
        length = image.norm()
        rest = length > 1e-5 * projected.diagonal().max()  # else what is left is rounding
        v = torch.where(rest, image / length, torch.zeros_like(image))
    largest: Tensor = torch.linalg.eigvalsh(projected.double())[-1]  # of the lower triangle
    return largest


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
    """Linear layers in the order of a forward pass, batch norm folded into them."""
    return subject.once("layers", lambda: _traced_layers(subject))


def _traced_layers(subject: Subject) -> list[Layer]:
    trace, hooks = _Trace(), []
    for name, module in subject.model.named_modules():
        if isinstance(module, nn.Linear | _ConvNd):
            hooks.append(module.register_forward_hook(lambda m, x, y, n=name: trace.linear(n, m, x, y)))
        elif isinstance(module, _BatchNorm):
            hooks.append(module.register_forward_pre_hook(lambda m, x, n=name: trace.norm(n, m, x)))
    try:
        with torch.no_grad():
            x, _ = next(subject.batches(2))  # batch norm by the batch takes no single example
            subject.model(x)
    finally:
        for hook in hooks:
            hook.remove()
    if not trace.layers:
        raise InputError("the model has no linear layer or convolution (a module of torch.nn).")
    if not all(torch.isfinite(layer.weight).all() for layer in trace.layers):
        raise InputError("the model's weights are not all finite: it may have diverged.")
    return trace.layers


class _Trace:
    """Hooks that note each linear layer and batch norm as it is called."""

    def __init__(self) -> None:
        self.layers: list[Layer] = []
        self.seen: list[tuple[Tensor, int, int]] = []  # output of a layer, its version, number of the layer

    def linear(self, name: str, module: Any, given: Any, out: Tensor) -> None:
        groups, shape = getattr(module, "groups", 1), tuple(given[0].shape[1:])
        self.layers.append(Layer(name, module, module.weight.detach(), groups, shape))
        # A transposed convolution has its output channels second, so a scale of them does not fold into its rows.
        if not isinstance(module, _ConvTransposeNd):
            self.seen.append((out, out._version, len(self.layers) - 1))

    def norm(self, name: str, module: Any, given: Any) -> None:
        scale = _batch_norm_scale(module)
        if scale is None:
            return
        for out, version, at in reversed(self.seen):
            # The same version: nothing was done to the output in place since.
            if out is given[0] and out._version == version:
                layer = self.layers[at]
                each = scale.view(-1, *[1] * (layer.weight.ndim - 1))
                self.layers[at] = replace(layer, weight=layer.weight * each, norm=name)
                return
        shape = tuple(given[0].shape[1:])
        self.layers.append(Layer(name, module, scale[:, None], len(scale), shape))


def _batch_norm_scale(module: _BatchNorm) -> Tensor | None:
    """Factor of batch norm for each channel; None where it takes the statistics of the batch."""
    if module.running_var is None:
        return None
    scale = torch.rsqrt(module.running_var + module.eps)
    return scale if module.weight is None else scale * module.weight.detach()


@measure(
    "path-norm",
    1,
    "one forward pass of one input, in float64",
    "continuous",
    paper="Neyshabur et al. 2015, Norm-based capacity control in neural networks",
)
def path_norm(subject: Subject) -> Tensor:
    """Root of the sum over paths of products of squared weights, by a pass of ones."""
    # Biases are inputs of their own; batch norm is folded into the layer before it; activations let everything
    # through; a maximum over pixels takes the largest sum.
    for name, module in subject.model.named_modules():
        if isinstance(module, _NOT_LINEAR):
            raise InputError(f"{type(module).__name__} ({name}) has no paths: it is not linear.")
    if not subject.continuous:
        raise InputError("inputs are tokens: there are no paths from them.")
    layers = layers_of(subject)
    # A copy to be changed, in which weights that are computed (weight norm) are weights of their own.
    model = _computed_weights(copy.deepcopy(subject.model).requires_grad_(True)).requires_grad_(False).double()
    for parameter in model.parameters():
        parameter.square_()
    biases: dict[str, Tensor] = {}  # of the layer before a batch norm
    for layer in layers:
        bias = getattr(layer.module, "bias", None)
        if layer.norm is not None and bias is not None:
            biases[layer.norm] = bias.double()
            model.get_submodule(layer.name).bias.zero_()  # type: ignore[operator]
    norms = {name: m for name, m in subject.model.named_modules() if isinstance(m, _BatchNorm)}
    for name, module in model.named_modules():
        if name in norms:
            module.forward = _squared_norm(norms[name], biases.get(name))
        elif is_activation(module):
            module.forward = lambda x: x
    # With squared weights and an input of ones every path contributes the product of its squared weights.
    ones = torch.ones(1, *subject.sample.x.shape[1:], dtype=torch.float64, device=subject.device)
    with torch.no_grad():
        return logits_of(model(ones)).sum().sqrt()


def _computed_weights(model: nn.Module) -> nn.Module:
    """Put computed weights in the place of what they are computed from, in both ways that torch has."""
    for module in list(model.modules()):
        # Not removed: that would change the class, which the network has in common with its copy.
        parametrizations: Any = getattr(module, "parametrizations", {})
        for name in list(parametrizations):
            parametrizations[name] = _Given(getattr(module, name))
        for key, hook in list(module._forward_pre_hooks.items()):
            if isinstance(hook, WeightNorm | SpectralNorm):
                hook.remove(module)
                del module._forward_pre_hooks[key]
    return model


class _Given(nn.Module):
    """A weight in the place of its computation."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight.detach())

    def forward(self) -> Tensor:
        return self.weight


def _squared_norm(module: _BatchNorm, bias: Tensor | None) -> Callable[[Tensor], Tensor]:
    """Batch norm of squared weights, which takes in the bias of the layer before it."""
    scale = _batch_norm_scale(module)
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


@measure("sharpness-worst", 1, _ASCENT, paper="Keskar et al. 2017, On large-batch training for deep learning")
def sharpness_worst(subject: Subject) -> Tensor:
    """Largest rise of the loss found within 0.002 times the length of the weights."""
    return _largest_rise(subject, adaptive=False)


@measure("sharpness-average", 1, _NOISE, paper="Neyshabur et al. 2017, Exploring generalization in deep learning")
def sharpness_average(subject: Subject) -> Tensor:
    """Mean rise of the loss under Gaussian noise of 0.1 times the weights' root mean square."""
    return _mean_rise(subject, adaptive=False)


@measure("sharpness-adaptive-worst", 1, _ASCENT, paper="Kwon et al. 2021, ASAM")
def sharpness_adaptive_worst(subject: Subject) -> Tensor:
    """Largest rise of the loss found where each weight moves in units of its own size, radius 0.5.

    It does not depend on the scale of layers.
    """
    return _largest_rise(subject, adaptive=True)


@measure("sharpness-adaptive-average", 1, _NOISE, paper="Andriushchenko et al. 2023, A modern look at sharpness")
def sharpness_adaptive_average(subject: Subject) -> Tensor:
    """Mean rise of the loss under Gaussian noise of 0.1 times each weight."""
    return _mean_rise(subject, adaptive=True)


def _largest_rise(subject: Subject, adaptive: bool) -> Tensor:
    """Largest rise of the loss in a ball around the weights.

    Its radius is a share of the weights' length; or each weight moves in units of its own size, if adaptive.
    """
    weights = weights_of(subject, MOST)
    flat = weights.flat
    scale, radius = (flat.abs(), ADAPTIVE) if adaptive else (flat.norm().expand_as(flat), RADIUS)
    return worst_rise(weights.gradient, flat, scale, radius, subject.noise("ascent", 0, len(scale)))


def _mean_rise(subject: Subject, adaptive: bool) -> Tensor:
    """Mean rise of the loss under noise of one size for all weights, or in proportion to each if adaptive."""
    weights = weights_of(subject, MOST)
    flat = weights.flat
    scale = flat.abs() if adaptive else flat.square().mean().sqrt().expand_as(flat)
    base = weights.loss(flat)
    noise = (NOISE * scale * subject.noise("noise", draw, len(scale)) for draw in range(DRAWS))
    return torch.stack([weights.loss(flat + moved) - base for moved in noise]).mean()


def worst_rise(
    gradient: Callable[[Tensor], tuple[Tensor, Tensor]],
    weights: Tensor,
    scale: Tensor,
    radius: float,
    start: Tensor,
    steps: int = ASCENT,
) -> Tensor:
    """Largest value found of loss(weights + scale · u) − loss(weights) with |u| ≤ radius.

    Projected gradient ascent in steps of one length, which shrinks to 0 towards the end.

    Parameters
    ----------
    gradient : callable
        Takes weights; gives the loss there and its slope.
    weights, scale : Tensor, shape (D,)
        Where to start from, and the unit of each direction.
    radius : float
        Of the ball.
    start : Tensor, shape (D,)
        The direction of a first small step, needed where the slope is 0.
    steps : int
        Of the ascent.

    Examples
    --------
    >>> def gradient(w):  # of 2 a² + ½ b²
    ...     return (torch.tensor([2.0, 0.5]) * w * w).sum(), torch.tensor([4.0, 1.0]) * w
    >>> origin, one = torch.zeros(2), torch.ones(2)
    >>> round(float(worst_rise(gradient, origin, one, 0.1, start=one)), 4)
    0.02
    """
    u = start / start.norm() * (radius / 10)
    base = best = gradient(weights)[0]
    for left in range(steps, -1, -1):
        loss, slope = gradient(weights + scale * u)
        best = torch.fmax(best, loss)
        along = scale * slope
        # Three radii long at first, so that the far side of the ball is reached, then ever shorter.
        u = u + along * (3 * radius * left / steps / along.norm().clamp(min=1e-30))
        u = u * (radius / u.norm()).clamp(max=1)
    return best - base


@measure("flatness", -1, _FLAT, paper=JIANG)
def flatness(subject: Subject) -> float:
    """Largest standard deviation of Gaussian noise on the weights that takes 0.1 off the training accuracy.

    This is PAC-Bayes flatness.
    """
    return _bearable_noise(subject, adaptive=False)


@measure("flatness-magnitude", -1, _FLAT, paper=JIANG)
def flatness_magnitude(subject: Subject) -> float:
    """The same for noise in proportion to each weight, magnitude-aware flatness."""
    return _bearable_noise(subject, adaptive=True)


def _bearable_noise(subject: Subject, adaptive: bool) -> float:
    """Largest size of noise on the weights that costs at most 0.1 of accuracy; in proportion to each if adaptive."""

    def search() -> float:
        weights = weights_of(subject, MOST_FLAT)
        scale = weights.flat.abs() if adaptive else torch.ones_like(weights.flat)
        clean = weights.accuracy(weights.flat)

        def drop(size: float) -> float:
            noise = (size * scale * subject.noise("flat", draw, len(scale)) for draw in range(DRAWS_FLAT))
            noisy = [weights.accuracy(weights.flat + moved) for moved in noise]
            return float(clean - torch.stack(noisy).mean())

        with rounding():
            return largest_within(drop, TOLERANCE)

    return subject.once(("flatness", adaptive), search)


def largest_within(
    drop: Callable[[float], float], tolerance: float, between: tuple[float, float] = RANGE, steps: int = HALVINGS
) -> float:
    """Largest size at which a rising function is within a tolerance, by bisection of logarithms.

    Examples
    --------
    >>> round(largest_within(lambda size: size**2, 0.25, steps=30), 6)
    0.5
    """
    low, high = (math.log(end) for end in between)
    if drop(math.exp(high)) <= tolerance:
        seen = f"noise of size {between[1]:g} takes at most {tolerance:g} off the accuracy"
        raise InputError(f"{seen}: the network may answer no better than chance.")
    if drop(math.exp(low)) > tolerance:
        raise InputError(f"noise of size {between[0]:g} takes more than {tolerance:g} off already.")
    for _ in range(steps):
        middle = (low + high) / 2
        if drop(math.exp(middle)) <= tolerance:
            low = middle
        else:
            high = middle
    return math.exp(low)


@measure("pac-bayes", 1, _SHARED, paper=JIANG)
def pac_bayes(subject: Subject) -> float:
    """|w|² / 4σ² + log(n / σ) + 10 with σ the noise borne and n the examples used."""
    return _complexity(subject, l2_norm(subject))


@measure("pac-bayes-distance", 1, _SHARED, "initial", paper=JIANG)
def pac_bayes_distance(subject: Subject) -> float:
    """|w − w₀|² / 4σ² + log(n / σ) + 10."""
    return _complexity(subject, distance(subject))


def _complexity(subject: Subject, length: Tensor | float) -> float:
    """Part of a PAC-Bayes bound that differs between networks; ``length`` is the distance from the prior."""
    size = _bearable_noise(subject, adaptive=False)
    return float(length) ** 2 / (4 * size**2) + math.log(len(subject.sample) / size) + 10


NORMS = (
    *(parameter_count, l2_norm, frobenius_sum, frobenius_product, spectral_sum, spectral_product),
    *(operator_sum, operator_product, stable_rank_sum, distance, distance_spectral, path_norm),
)
SHARPNESSES = (sharpness_worst, sharpness_average, sharpness_adaptive_worst, sharpness_adaptive_average)
FLATNESSES = (flatness, flatness_magnitude, pac_bayes, pac_bayes_distance)
"""Norms of the weights, the rise of the loss around them, and the noise that they bear."""
