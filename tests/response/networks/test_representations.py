"""The Davies–Bouldin index against scikit-learn's, and where representations are taken."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from sklearn.metrics import davies_bouldin_score
from torch import nn

from curvewise.errors import InputError
from curvewise.response.networks.margins import davies_bouldin, davies_bouldin_index, find_site
from curvewise.response.networks.measures import MEASURES

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


def test_a_layer_that_a_later_one_changes_in_place(subject_of: Any, fitted: Any) -> None:
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
