"""What the trained measures share: examples, scales, what is held out, and settings of torch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import cache, partial

import numpy as np
import pytest
import torch
from torch import nn

from curvewise.ranking.measure import as_targets
from curvewise.ranking.networks.finetuning import finetuning_score
from curvewise.ranking.networks.information import information_score
from curvewise.ranking.networks.probes import fifth, linear_score, scale_of


def drawn() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=400)
    return (rng.standard_normal((400, 4)) + y[:, None]).astype(np.float32), y


def finetuned() -> float:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = nn.Linear(4, 8, dtype=torch.float32), nn.Linear(8, 5, dtype=torch.float32)
    network = nn.Sequential(layers[0], nn.ReLU(), layers[1])
    return finetuning_score(network, *drawn(), epochs=2, progress=False)


MEASURES: dict[str, Callable[[], float]] = {
    "converged": lambda: linear_score(*drawn(), metric="log-likelihood"),
    "epochs": lambda: linear_score(*drawn(), epochs=2, metric="log-likelihood"),
    "information": lambda: information_score(*drawn(), steps=50),
    "finetuned": finetuned,
}


@cache
def plain(measure: str) -> float:
    return MEASURES[measure]()


@contextlib.contextmanager
def double() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("measure", list(MEASURES))
@pytest.mark.parametrize("around", ["no_grad", "inference", "autocast", "float64"])
def test_what_others_have_set_plays_no_part(around: str, measure: str) -> None:
    found = plain(measure)
    settings: dict[str, Callable[[], contextlib.AbstractContextManager[object]]] = {
        "no_grad": torch.no_grad,
        "inference": torch.inference_mode,
        "autocast": lambda: torch.autocast("cpu", dtype=torch.float16),
        "float64": double,
    }
    with settings[around]():
        before = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
        assert MEASURES[measure]() == found
        assert (torch.is_grad_enabled(), torch.is_inference_mode_enabled()) == before


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_rounding_is_no_spread(kind: type) -> None:
    values = np.full(50, 0.1, dtype=kind)
    values[::2] = np.nextafter(values[0], kind(1))
    x = np.column_stack([values, np.arange(50), np.zeros(50)]).astype(kind)
    mean, spread = scale_of(x)
    np.testing.assert_allclose(spread, [1, np.arange(50).std(), 1])
    np.testing.assert_allclose(mean, [0.1, 24.5, 0], rtol=1e-6)


def test_a_fifth_has_the_shares_of_classes_and_does_not_know_their_names() -> None:
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2, 3], [50, 30, 20, 2])
    order = rng.permutation(102)
    found = []
    for names in ([0, 1, 2, 3], [2, 3, 0, 1]):
        targets = as_targets(np.array(names)[codes], 102)
        kept, out = fifth(order, targets)
        assert sorted([*kept, *out]) == list(range(102))
        assert np.abs(np.bincount(codes[out], minlength=4) - [10, 6, 4, 0.4]).max() <= 1
        found.append(out)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("measure", [linear_score, partial(information_score, steps=100), "network"])
def test_one_1_in_each_row_is_a_class(measure):
    """The accuracy of a linear probe was the mean inverse rank of the right class, 0.69 in the place of 0.46."""
    x, labels = drawn()
    found = []
    for codes in (labels, np.eye(int(labels.max()) + 1)[labels]):
        if measure == "network":
            network = nn.Linear(x.shape[1], 4)
            found.append(finetuning_score(network, x, codes, test_data=x, test_labels=codes, rate=0.01, progress=False))
        else:
            found.append(measure(x, codes, test_features=x, test_labels=codes))
    assert found[0] == found[1]
