"""Path norm against all paths, one by one."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from curvewise.errors import InputError
from curvewise.response.networks.norms import path_norm


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
