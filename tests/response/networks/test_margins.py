"""Margins against loops, and distances to the boundary against where it is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import davies_bouldin_score
from torch import nn

from curvewise.errors import InputError
from curvewise.response.networks.measures import (
    MEASURES,
    boundary_distances,
    davies_bouldin,
    davies_bouldin_index,
    find_site,
    margin,
    output_margins,
)

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


davies_bouldin_last = MEASURES["dbi-last"].function


@pytest.mark.parametrize("seed", range(5))
def test_index_is_scikit_learns(seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 7, (60,), generator=random) * 3  # classes need not follow each other
    features = torch.randn(60, 9, generator=random) + labels[:, None] * 0.1
    wanted = davies_bouldin_score(features.numpy(), labels.numpy())
    assert float(davies_bouldin_index(features, labels)) == pytest.approx(wanted, rel=1e-6)


def test_one_class_has_no_index() -> None:
    with pytest.raises(InputError, match="one class"):
        davies_bouldin_index(torch.randn(5, 2), torch.ones(5, dtype=torch.int64))


def test_layers_are_averaged_over_squares_of_pixels(subject_of: Any, normed: Any, images: Any) -> None:
    model = nn.Sequential(nn.Conv2d(3, 5, 1), nn.ReLU(), nn.Flatten(), nn.Linear(320, 4))
    x, y = images
    with torch.no_grad():
        hidden = model[:2](x)
    pooled = hidden.view(40, 5, 4, 2, 4, 2).mean(dim=(3, 5)).flatten(1)  # from 8×8 to 4×4
    wanted = davies_bouldin_score(pooled.numpy(), y.numpy())
    assert float(davies_bouldin(subject_of(model, x, y, batch=7))) == pytest.approx(wanted, rel=1e-5)
    for layer, rows in ((2, normed[:6]), ("3", normed[:4])):
        with torch.no_grad():
            small = rows(x).flatten(1)  # 2×2 already
        found = davies_bouldin(subject_of(normed, x, y, batch=7, layer=layer))
        assert float(found) == pytest.approx(davies_bouldin_score(small.numpy(), y.numpy()), rel=1e-5)


def test_representations_of_a_layer_that_a_later_one_changes_in_place(subject_of: Any, fitted: Any) -> None:
    model, x, y = fitted
    inplace = nn.Sequential(*model[:2], nn.Threshold(1.0, 0.0, inplace=True), *model[2:])
    one, two = (davies_bouldin(subject_of(m, x, y)) for m in (model, inplace))
    assert float(one) == float(two)


def test_last_is_what_the_head_is_given(subject_of: Any, normed: Any, images: Any) -> None:
    x, y = images
    with torch.no_grad():
        features = normed[:-1](x).numpy()
    found = davies_bouldin_last(subject_of(normed, x, y))
    assert float(found) == pytest.approx(davies_bouldin_score(features, y.numpy()), rel=1e-5)


def test_activations_are_counted_as_they_are_called(subject_of: Any) -> None:
    class Shared(nn.Module):
        """One activation module after each of two layers."""

        def __init__(self) -> None:
            super().__init__()
            self.late, self.relu, self.early = nn.Linear(5, 4), nn.ReLU(), nn.Linear(3, 5)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.relu(self.late(self.relu(self.early(x))))

    torch.manual_seed(0)
    model, x, y = Shared(), torch.randn(30, 3), torch.arange(30) % 3
    with torch.no_grad():
        first = torch.relu(model.early(x))
        second = torch.relu(model.late(first))
        middle = model.late(first)
    for layer, features in ((1, first), (2, second), ("late", middle)):
        found = davies_bouldin(subject_of(model, x, y, layer=layer))
        wanted = davies_bouldin_score(features.numpy(), y.numpy())
        assert float(found) == pytest.approx(wanted, rel=1e-5)
    with pytest.raises(InputError, match="calls 2 activation"):
        davies_bouldin(subject_of(model, x, y, layer=3))
    with pytest.raises(InputError, match="Did you mean 'early'"):
        find_site(subject_of(model, x, y), "earl")


disagreement = MEASURES["disagreement"].function
disagreement_soft = MEASURES["disagreement-soft"].function
training_accuracy = MEASURES["accuracy"].function
training_loss = MEASURES["loss"].function


def probabilities(model: nn.Module, x: torch.Tensor) -> np.ndarray:
    with torch.no_grad():
        logits = model(x).double().numpy()
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def test_loss_and_accuracy(subject_of: Any, fitted: Any) -> None:
    model, x, y = fitted
    subject = subject_of(model, x, y, batch=50)
    p = probabilities(model, x)
    assert float(training_accuracy(subject)) == pytest.approx((p.argmax(1) == y.numpy()).mean())
    wanted = -np.log(p[np.arange(120), y.numpy()]).mean()
    assert float(training_loss(subject)) == pytest.approx(wanted, rel=1e-4)


def test_disagreement(subject_of: Any, fitted: Any) -> None:
    model, x, y = fitted
    torch.manual_seed(9)
    twin = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3))
    subject = subject_of(model, x, y, twin=twin, batch=50)
    p, q = probabilities(model, x), probabilities(twin, x)
    apart = (p.argmax(1) != q.argmax(1)).mean()
    assert 0 < apart < 1
    assert float(disagreement(subject)) == pytest.approx(apart)
    assert float(disagreement_soft(subject)) == pytest.approx(0.5 * np.abs(p - q).sum(axis=1).mean(), rel=1e-5)
    same = subject_of(model, x, y, twin=model)
    assert float(disagreement(same)) == float(disagreement_soft(same)) == 0


def test_a_twin_with_other_classes_is_refused(subject_of: Any, fitted: Any) -> None:
    model, x, y = fitted
    with pytest.raises(InputError, match="twin has another number of outputs"):
        disagreement(subject_of(model, x, y, twin=nn.Linear(4, 5)))
