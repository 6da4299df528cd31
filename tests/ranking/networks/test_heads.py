"""Where features are in networks with several heads, other precisions and layers called twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from curvewise.errors import InputError
from curvewise.ranking.networks.checkpoints import Checkpoint
from curvewise.ranking.networks.features import extract_features

X = np.random.default_rng(3).standard_normal((9, 4)).astype(np.float32)


def seeded(*layers: nn.Module) -> nn.Sequential:
    torch.manual_seed(1)
    made = nn.Sequential(*layers)
    for weight in made.parameters():
        nn.init.normal_(weight)
    return made


class Heads(nn.Module):
    """Two heads on different layers; the first one's scores come first."""

    def __init__(self, second: int) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.low, self.high = nn.Linear(4, 8), nn.Linear(8, 6)
        self.main, self.extra = nn.Linear(8, 3), nn.Linear(6, second)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        low = self.low(x).relu()
        return self.main(low), self.extra(self.high(low).relu())


@pytest.mark.parametrize("second", [3, 2, 1])
def test_the_head_of_the_scores_that_come_first(second: int) -> None:
    model = Heads(second)
    found = extract_features(model, X)
    low = model.low(torch.from_numpy(X)).relu()
    assert found.layer == "input of main"
    assert np.allclose(found.features, low.detach(), atol=1e-6)
    assert found.probabilities is not None
    assert np.allclose(found.probabilities, model.main(low).softmax(1).detach(), atol=1e-6)


@pytest.mark.parametrize("classes", [1, 3])
def test_sigmoids_of_scores_are_taken_back(classes: int) -> None:
    model = seeded(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, classes), nn.Sigmoid())
    found = extract_features(model, X)
    logits = model[:3](torch.from_numpy(X))
    wanted = torch.cat([1 - logits.sigmoid(), logits.sigmoid()], 1)
    wanted = logits.softmax(1) if classes > 1 else wanted
    assert found.layer == "input of 2"
    assert found.probabilities is not None
    assert np.allclose(found.probabilities, wanted.detach(), atol=1e-4)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_networks_of_other_precisions_are_given_theirs(kind: torch.dtype) -> None:
    model = seeded(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3)).to(kind)
    found = extract_features(model, X)
    wanted = model[:2](torch.from_numpy(X).to(kind)).float()
    assert found.features.dtype == np.float32
    assert np.allclose(found.features, wanted.detach(), atol=1e-6)
    assert model[0].weight.dtype == kind


class Twice(nn.Module):
    """Calls one layer twice."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.step = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.step(self.step(x).relu())  # type: ignore[no-any-return]


def test_of_a_layer_that_is_called_twice_the_last_call_is_taken_and_that_is_said() -> None:
    model, x = Twice(), torch.from_numpy(X)
    named = extract_features(Checkpoint("net", model, layer="step"), X, batch=4)
    assert np.allclose(named.features, model(x).detach(), atol=1e-6)
    assert sum("more than once" in note for note in named.notes) == 1
    assert np.allclose(extract_features(model, X).features, model.step(x).relu().detach())


def test_compiled_networks_are_looked_into() -> None:
    model = seeded(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3))
    compiled: Any = torch.compile(model, backend="eager")
    found = extract_features(compiled, X)
    assert found.layer == "input of 2"
    assert np.allclose(found.features, model[:2](torch.from_numpy(X)).detach(), atol=1e-6)


class Early(nn.Module):
    """Leaves out a layer where it is sure."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 3), nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        found = self.first(x)
        return self.second(found) if len(x) != 1 else found  # type: ignore[no-any-return]


def test_layers_that_some_batches_do_not_come_through_are_left_out_and_told() -> None:
    found = extract_features(Early(), X, layer="all", batch=4)  # the last batch is of one
    assert list(found) == ["Early @ first"]
    assert len(found["Early @ first"]) == 9
    assert any("left out: 'second'" in note for note in found["Early @ first"].notes)


def test_nan_in_some_rows_of_tokens_is_told() -> None:
    class Odd(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.where(x > 1.5, torch.nan, x)[:, None].repeat(1, 5, 1)

    with pytest.raises(InputError, match="gives NaN or infinite features at 'output'"):
        extract_features(Checkpoint("net", Odd(), pool="tokens"), X)
