"""Margins against loops, and distances to the boundary against where it is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from curvewise.response.networks.margins import boundary_distances, margin, output_margins
from curvewise.response.networks.measures import MEASURES

margin_at_input = MEASURES["margin-10-input"].function
margin_at_layer = MEASURES["margin-10-layer1"].function
margin_over_spectral = MEASURES["margin-10-spectral"].function
margin_over_spread = MEASURES["margin-10-spread"].function


def looped(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> np.ndarray:
    with torch.no_grad():
        logits = model(x).double().numpy()
    return np.array([row[k] - max(np.delete(row, k)) for row, k in zip(logits, y.numpy(), strict=True)])


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_quantiles_of_output_margins(subject_of: Any, fitted: Any, share: float) -> None:
    model, x, y = fitted
    subject = subject_of(model, x, y, batch=50)
    margins = looped(model, x, y)
    wanted = np.quantile(margins, share)
    assert float(margin(subject, share)) == pytest.approx(wanted, rel=1e-5)
    norms = [np.linalg.svd(m.weight.detach().numpy())[1][0] for m in model[::2]]
    if share != 0.1:  # the others are of this quantile alone
        return
    assert float(margin_over_spectral(subject)) == pytest.approx(wanted / math.prod(norms), rel=1e-5)
    with torch.no_grad():
        spread = math.sqrt(np.var(model(x).double().numpy(), axis=0, ddof=1).sum())
    assert float(margin_over_spread(subject)) == pytest.approx(wanted / spread, rel=1e-5)


def test_a_wrong_answer_has_a_negative_margin() -> None:
    found = output_margins(torch.tensor([[3.0, 1.0], [3.0, 1.0]]), torch.tensor([0, 1]))
    assert found.tolist() == [2.0, -2.0]


def test_distance_to_the_boundary_of_a_linear_network_is_exact(subject_of: Any) -> None:
    torch.manual_seed(0)
    model, x = nn.Linear(5, 2), torch.randn(30, 5)
    y = torch.arange(30) % 2
    subject = subject_of(model, x, y)
    given, classes = subject.sample.x, subject.sample.y
    places, distances = boundary_distances(subject, given, classes, None)
    assert torch.equal(places, given)
    # Walking that far along the normal of the boundary gives a tie.
    normal = (model.weight[0] - model.weight[1]).detach()
    signs = torch.where(classes == 0, -1.0, 1.0)
    there = given + (signs * distances)[:, None] * normal / normal.norm()
    logits = model(there)
    assert torch.allclose(logits[:, 0], logits[:, 1], atol=1e-5)
    spread = math.sqrt(np.var(x.numpy(), axis=0, ddof=1).sum())
    wanted = np.quantile(distances.numpy(), 0.1) / spread
    assert float(margin_at_input(subject)) == pytest.approx(wanted, rel=1e-5)


def test_distance_at_a_layer_is_that_at_the_input_of_the_rest(subject_of: Any, fitted: Any) -> None:
    model, x, y = fitted
    subject = subject_of(model, x, y, batch=50)
    hidden = model[:2](subject.sample.x).detach()
    rest = subject_of(model[2:], hidden, subject.sample.y)
    assert float(margin_at_layer(subject)) == pytest.approx(float(margin_at_input(rest)), rel=1e-5)


def test_a_layer_that_a_later_one_changes_in_place(subject_of: Any, fitted: Any) -> None:
    model, x, y = fitted
    inplace = nn.Sequential(model[0], nn.ReLU(), nn.Threshold(0.3, 0.0, inplace=True), *model[2:])
    subject = subject_of(inplace, x, y)
    given, classes = subject.sample.x[:5], subject.sample.y[:5]
    places, _ = boundary_distances(subject, given, classes, 1)
    assert torch.equal(places, model[:2](given))


@pytest.mark.parametrize(
    "function",
    [margin_over_spectral, margin_over_spread, margin_at_input, margin_at_layer],
    ids=["spectral", "spread", "input", "layer"],
)
def test_normalised_margins_do_not_depend_on_scale(subject_of: Any, fitted: Any, rescaled: Any, function: Any) -> None:
    model, x, y = fitted
    other = rescaled(model, 4.0)
    if function is not margin_over_spectral:  # nor on the scale of the outputs
        with torch.no_grad():
            other[4].weight.mul_(2)
            other[4].bias.mul_(2)
    one, two = (function(subject_of(m, x, y)) for m in (model, other))
    assert float(one) == pytest.approx(float(two), rel=1e-4)
