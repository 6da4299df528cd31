"""Flatness against a fine grid of noise."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from curvewise.errors import InputError
from curvewise.response.networks.measures import MEASURES
from curvewise.response.networks.sharpness import DRAWS_FLAT, flatness, largest_within

complexity_from_initial = MEASURES["pac-bayes-distance"].function
complexity_from_origin = MEASURES["pac-bayes"].function
flatness_magnitude = MEASURES["flatness-magnitude"].function


def drop(model: nn.Module, x: Tensor, y: Tensor, size: float, subject: Any, by_size: bool) -> float:
    """Accuracy lost with the subject's noise put onto the weights of a copy."""
    clean = (model(x).argmax(1) == y).double().mean()
    count = sum(p.numel() for p in model.parameters())
    lost = []
    for draw in range(DRAWS_FLAT):
        noise, start, noisy = subject.noise("flat", draw, count), 0, copy.deepcopy(model)
        for parameter in noisy.parameters():
            own = noise[start : start + parameter.numel()].view(parameter.shape)
            unit = parameter.detach().abs() if by_size else 1.0
            parameter.data += size * unit * own
            start += parameter.numel()
        lost.append(clean - (noisy(x).argmax(1) == y).double().mean())
    return float(torch.stack(lost).mean())


@pytest.mark.parametrize("by_size", [False, True])
def test_is_where_a_grid_search_finds_it(subject_of: Any, fitted: Any, by_size: bool) -> None:
    model, x, y = fitted
    subject = subject_of(model, x, y)
    found = (flatness_magnitude if by_size else flatness)(subject)
    grid = np.geomspace(1e-2, 10, 300)
    lost = np.array([drop(model, x, y, s, subject, by_size) for s in grid])
    within = grid[lost <= 0.1]
    first = grid[np.argmax(lost > 0.1) - 1]  # of several crossings bisection finds one
    assert 0.98 * first <= found <= 1.02 * within.max()
    assert drop(model, x, y, found, subject, by_size) <= 0.1


def test_magnitude_aware_flatness_does_not_depend_on_the_scale_of_layers(
    subject_of: Any, fitted: Any, rescaled: Any
) -> None:
    model, x, y = fitted
    other = rescaled(model, 8.0)
    one, two = (flatness_magnitude(subject_of(m, x, y)) for m in (model, other))
    assert one == pytest.approx(two, rel=1e-6)
    one, two = (flatness(subject_of(m, x, y)) for m in (model, other))
    assert one != pytest.approx(two, rel=0.1)


def test_bound_terms(subject_of: Any, fitted: Any) -> None:
    model, x, y = fitted
    before = {n: torch.randn(p.shape) for n, p in model.named_parameters()}
    subject = subject_of(model, x, y, initial=before)
    size = flatness(subject)
    norm = sum(float((p.detach() ** 2).sum()) for p in model.parameters())
    moved = sum(float(((p.detach() - before[n]) ** 2).sum()) for n, p in model.named_parameters())
    rest = math.log(120 / size) + 10
    assert complexity_from_origin(subject) == pytest.approx(norm / (4 * size**2) + rest, rel=1e-5)
    assert complexity_from_initial(subject) == pytest.approx(moved / (4 * size**2) + rest, rel=1e-5)


def test_nothing_to_find_is_said() -> None:
    with pytest.raises(InputError, match="no better than chance"):
        largest_within(lambda size: 0.0, 0.1)
    with pytest.raises(InputError, match="already"):
        largest_within(lambda size: 1.0, 0.1)
