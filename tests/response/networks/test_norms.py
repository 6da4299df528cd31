"""Norms against numpy's singular values and unrolled convolutions."""

from __future__ import annotations

import copy
import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from curvewise.errors import InputError
from curvewise.response.networks.measures import MEASURES
from curvewise.response.networks.norms import (
    distance,
    distance_spectral,
    kernel_norm,
    l2_norm,
    layers_of,
    operator_norm,
    path_norm,
)

frobenius_product = MEASURES["frobenius-product"].function
frobenius_sum = MEASURES["frobenius-sum"].function
operator_product = MEASURES["operator-product"].function
operator_sum = MEASURES["operator-sum"].function
parameter_count = MEASURES["parameters"].function
spectral_product = MEASURES["spectral-product"].function
spectral_sum = MEASURES["spectral-sum"].function
stable_rank_sum = MEASURES["stable-rank-sum"].function


def matrices(model: nn.Sequential) -> list[np.ndarray]:
    """Weights of a network without convolutions."""
    return [m.weight.detach().double().numpy() for m in model if isinstance(m, nn.Linear)]


def unrolled(module: nn.Module, shape: tuple[int, ...]) -> np.ndarray:
    """The matrix of a layer without its bias, a column for each value of an input."""
    basis = torch.eye(math.prod(shape)).view(-1, *shape)
    with torch.no_grad():
        out = module(basis) - module(torch.zeros(1, *shape))
    return out.flatten(1).T.double().numpy()


def test_sums_and_products_of_layers(subject_of: Any, fitted: Any) -> None:
    model, x, y = fitted
    subject = subject_of(model, x, y)
    weights = matrices(model)
    frobenius = np.array([np.sum(w**2) for w in weights])
    spectral = np.array([np.linalg.svd(w)[1][0] ** 2 for w in weights])
    assert float(frobenius_sum(subject)) == pytest.approx(frobenius.sum(), rel=1e-6)
    assert float(frobenius_product(subject)) == pytest.approx(np.log(frobenius.prod()), rel=1e-6)
    for found in (spectral_sum(subject), operator_sum(subject)):
        assert float(found) == pytest.approx(spectral.sum(), rel=1e-6)
    for found in (spectral_product(subject), operator_product(subject)):
        assert float(found) == pytest.approx(np.log(spectral.prod()), rel=1e-6)
    assert float(stable_rank_sum(subject)) == pytest.approx((frobenius / spectral).sum(), rel=1e-6)


def test_count_and_length_are_of_all_parameters(subject_of: Any, normed: Any, images: Any) -> None:
    subject = subject_of(normed, *images)
    values = np.concatenate([p.detach().numpy().ravel() for p in normed.parameters()])
    assert parameter_count(subject) == len(values) == 6 * 27 + 6 + 12 + 4 * 27 + 8 + 68
    assert float(l2_norm(subject)) == pytest.approx(np.linalg.norm(values), rel=1e-6)


def test_batch_norm_is_folded_into_the_layer_before(subject_of: Any, normed: Any, images: Any) -> None:
    layers = layers_of(subject_of(normed, *images))
    assert [(layer.name, layer.norm) for layer in layers] == [("0", "1"), ("3", "4"), ("7", None)]
    # What the pair of modules does, unrolled, has the norm that is claimed for the folded layer.
    for layer, first in zip(layers, (0, 3), strict=False):
        matrix = unrolled(normed[first : first + 2], layer.shape)
        norm = np.linalg.svd(matrix, compute_uv=False)[0]
        assert float(operator_norm(layer)) == pytest.approx(norm, rel=1e-4)


def test_batch_norm_alone_is_a_layer(subject_of: Any, images: Any) -> None:
    norm = nn.BatchNorm2d(3).eval()
    nn.init.uniform_(norm.weight, -3, 1)
    norm.running_var.uniform_(0.5, 2.0)
    model = nn.Sequential(norm, nn.ReLU(), nn.Flatten(), nn.Linear(192, 4))
    first, _ = layers_of(subject_of(model, *images))
    wanted = np.linalg.svd(unrolled(norm, (3, 8, 8)), compute_uv=False)[0]
    assert float(operator_norm(first)) == pytest.approx(wanted, rel=1e-5)
    assert float(kernel_norm(first)) == pytest.approx(wanted, rel=1e-5)


def test_batch_norm_after_an_activation_in_place_is_not_folded(subject_of: Any, images: Any) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.ReLU(inplace=True), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(256, 4))
    layers = layers_of(subject_of(model.eval(), *images))
    assert [(layer.name, layer.norm) for layer in layers] == [("0", None), ("2", None), ("4", None)]


@pytest.mark.parametrize(
    "options",
    [
        {"padding": 1},
        {"stride": 2},
        {"padding": 2, "padding_mode": "circular"},
        {"groups": 3},
        {"dilation": 2, "padding": 2},
    ],
    ids=["same", "stride", "circular", "groups", "dilation"],
)
def test_operator_norm_is_that_of_the_unrolled_convolution(
    subject_of: Any, images: Any, options: dict[str, Any]
) -> None:
    torch.manual_seed(2)
    convolution = nn.Conv2d(3, 6, 3, **options)
    model = nn.Sequential(convolution, nn.Flatten(), nn.LazyLinear(4))
    model(images[0])
    layer = layers_of(subject_of(model, *images))[0]
    singular = np.linalg.svd(unrolled(convolution, (3, 8, 8)), compute_uv=False)
    assert float(operator_norm(layer)) == pytest.approx(singular[0], rel=1e-4)


def test_kernel_norm_reshapes_each_group(subject_of: Any, normed: Any, images: Any) -> None:
    layer = layers_of(subject_of(normed, *images))[1]
    weight = layer.weight.double().numpy()
    groups = [weight[:2].reshape(2, -1), weight[2:].reshape(2, -1)]
    wanted = max(np.linalg.svd(g)[1][0] for g in groups)
    assert float(kernel_norm(layer)) == pytest.approx(wanted, rel=1e-6)


def test_distances_from_initial_weights(subject_of: Any, fitted: Any) -> None:
    model, x, y = fitted
    before = {n: torch.randn(p.shape) for n, p in model.named_parameters()}
    subject = subject_of(model, x, y, initial=before)
    moved = {n: (p.detach() - before[n]).double().numpy() for n, p in model.named_parameters()}
    whole = math.sqrt(sum(np.sum(d**2) for d in moved.values()))
    spectral = sum(np.linalg.svd(moved[f"{i}.weight"])[1][0] ** 2 for i in (0, 2, 4))
    assert float(distance(subject)) == pytest.approx(whole, rel=1e-6)
    assert float(distance_spectral(subject)) == pytest.approx(spectral, rel=1e-5)


def test_products_ignore_how_the_scale_is_spread_over_layers(subject_of: Any, fitted: Any, rescaled: Any) -> None:
    model, x, y = fitted
    other = copy.deepcopy(rescaled(model, 4.0))
    pairs: list[tuple[Tensor, Tensor]] = [
        (function(subject_of(model, x, y)), function(subject_of(other, x, y)))
        for function in (spectral_product, frobenius_product, stable_rank_sum)
    ]
    for one, two in pairs:
        assert float(one) == pytest.approx(float(two), rel=1e-6)
    assert float(spectral_sum(subject_of(other, x, y))) != pytest.approx(
        float(spectral_sum(subject_of(model, x, y))), rel=0.01
    )


def all_paths(weights: list[np.ndarray], biases: list[np.ndarray]) -> float:
    """Sum over paths from an input or a bias to an output of the product of squared weights."""

    def onwards(layer: int, unit: int) -> float:
        """All paths that go on from a unit of a layer, one after the other."""
        if layer == len(weights):
            return 1.0
        return sum(weights[layer][k, unit] ** 2 * onwards(layer + 1, k) for k in range(len(weights[layer])))

    inputs = sum(onwards(0, unit) for unit in range(weights[0].shape[1]))
    constants = sum(
        bias[unit] ** 2 * onwards(layer + 1, unit) for layer, bias in enumerate(biases) for unit in range(len(bias))
    )
    return inputs + constants


@pytest.mark.parametrize("activation", [nn.ReLU, nn.Tanh, nn.SiLU], ids=lambda a: a.__name__)
def test_equals_the_sum_over_all_paths(subject_of: Any, activation: Any) -> None:
    torch.manual_seed(4)
    sizes = (3, 4, 5, 2)
    linears = [nn.Linear(a, b) for a, b in itertools.pairwise(sizes)]
    model = nn.Sequential(linears[0], activation(), linears[1], activation(), linears[2])
    wanted = all_paths(
        [m.weight.detach().double().numpy() for m in linears], [m.bias.detach().double().numpy() for m in linears]
    )
    assert float(path_norm(subject_of(model, torch.randn(6, 3)))) == pytest.approx(math.sqrt(wanted), rel=1e-6)


def test_activations_that_work_in_place_let_everything_through(subject_of: Any) -> None:
    torch.manual_seed(4)
    first, last = nn.Linear(3, 4), nn.Linear(4, 2)
    x = torch.randn(6, 3)
    plain = path_norm(subject_of(nn.Sequential(first, nn.ReLU(), last), x))
    for activation in (nn.SiLU(inplace=True), nn.Hardswish(inplace=True)):
        found = path_norm(subject_of(nn.Sequential(first, activation, last), x))
        assert float(found) == pytest.approx(float(plain), rel=1e-12)


def test_batch_norm_is_folded(subject_of: Any) -> None:
    """With weights folded by hand there is no batch norm left, and the same norm."""
    torch.manual_seed(5)
    first, norm, last = nn.Linear(3, 4), nn.BatchNorm1d(4).eval(), nn.Linear(4, 2)
    early = nn.BatchNorm1d(3, affine=False).eval()
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    for module in (norm, early):
        module.running_mean.normal_()
        module.running_var.uniform_(0.5, 2.0)
    x = torch.randn(6, 3)
    found = path_norm(subject_of(nn.Sequential(early, first, norm, nn.ReLU(), last), x))
    start = nn.Linear(3, 3)
    folded = nn.utils.fusion.fuse_linear_bn_eval(first.eval(), norm)
    with torch.no_grad():
        scale = torch.rsqrt(early.running_var + early.eps)
        start.weight.copy_(torch.diag(scale))
        start.bias.copy_(-early.running_mean * scale)
    model = nn.Sequential(start, nn.ReLU(), folded, nn.ReLU(), last)
    assert float(found) == pytest.approx(float(path_norm(subject_of(model, x))), rel=1e-5)


def test_does_not_depend_on_how_the_scale_is_spread_over_layers(subject_of: Any, fitted: Any, rescaled: Any) -> None:
    model, x, y = fitted
    one, two = (path_norm(subject_of(m, x, y)) for m in (model, rescaled(model, 3.0)))
    assert float(one) == pytest.approx(float(two), rel=1e-5)


def test_networks_without_paths_say_so(subject_of: Any) -> None:
    x = torch.randn(6, 3)
    model = nn.Sequential(nn.LayerNorm(3), nn.Linear(3, 2))
    with pytest.raises(InputError, match="LayerNorm"):
        path_norm(subject_of(model, x))
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2, track_running_stats=False))
    with pytest.raises(InputError, match="running statistics"):
        path_norm(subject_of(model, x))
