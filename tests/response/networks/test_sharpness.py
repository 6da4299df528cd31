"""Sharpness against quadratics with known answers, and under changes of scale."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import brentq, minimize
from torch import Tensor, nn
from torch.func import functional_call

from curvewise.errors import InputError
from curvewise.response.networks.measures import MEASURES
from curvewise.response.networks.sharpness import DRAWS_FLAT, NOISE, RADIUS, flatness, largest_within, worst_rise
from curvewise.response.networks.subject import weights_of

sharpness_adaptive_average = MEASURES["sharpness-adaptive-average"].function
sharpness_adaptive_worst = MEASURES["sharpness-adaptive-worst"].function
sharpness_average = MEASURES["sharpness-average"].function
sharpness_worst = MEASURES["sharpness-worst"].function


def quadratic(slope: np.ndarray, matrix: np.ndarray) -> Any:
    """The loss g · w + ½ w · H w with its slope."""
    g, h = torch.tensor(slope), torch.tensor(matrix)

    def gradient(w: Tensor) -> tuple[Tensor, Tensor]:
        return g @ w + 0.5 * w @ h @ w, g + h @ w

    return gradient


def highest_in_ball(slope: np.ndarray, matrix: np.ndarray, radius: float) -> float:
    """By the condition (λ − H) w = g with |w| = r and λ above all eigenvalues."""
    values, vectors = np.linalg.eigh(matrix)
    g = vectors.T @ slope
    multiplier = brentq(
        lambda m: np.linalg.norm(g / (m - values)) - radius,
        values[-1] + 1e-9,
        values[-1] + np.linalg.norm(g) / radius + 1,
    )
    w = g / (multiplier - values)
    return float(g @ w + 0.5 * (values * w**2).sum())


@pytest.mark.parametrize("radius", [0.05, 0.5, 3.0])
def test_the_worst_of_a_quadratic(radius: float) -> None:
    random = np.random.default_rng(0)
    basis = np.linalg.qr(random.standard_normal((8, 8)))[0]
    matrix = basis @ np.diag([5, 1, 0.5, 0.3, 0.1, 0, -0.2, -1]) @ basis.T
    slope = random.standard_normal(8)
    start = torch.tensor(random.standard_normal(8))
    found = worst_rise(
        quadratic(slope, matrix),
        torch.zeros(8, dtype=torch.float64),
        torch.ones(8, dtype=torch.float64),
        radius,
        start,
        steps=20,
    )
    assert float(found) == pytest.approx(highest_in_ball(slope, matrix, radius), rel=1e-3)


def test_at_a_minimum_the_worst_is_along_the_largest_curvature() -> None:
    matrix = np.diag([4.0, 2.0, 1.0])
    start = torch.ones(3, dtype=torch.float64)
    found = worst_rise(quadratic(np.zeros(3), matrix), torch.zeros(3, dtype=torch.float64), start, 0.1, start)
    assert float(found) == pytest.approx(0.5 * 4 * 0.01, rel=1e-3)
    scale = torch.tensor([0.5, 2.0, 1.0], dtype=torch.float64)  # ½ s² h decides: 0.5, 4, 0.5
    found = worst_rise(quadratic(np.zeros(3), matrix), torch.zeros(3, dtype=torch.float64), scale, 0.1, start)
    assert float(found) == pytest.approx(4 * 0.01, rel=1e-3)


def test_a_peak_inside_the_ball_is_found() -> None:
    gradient = quadratic(np.array([1.0, 0.0]), -np.eye(2) * 4)  # highest at 1/4: 1/8
    one = torch.ones(2, dtype=torch.float64)
    found = worst_rise(gradient, one * 0, one, 1.0, one, steps=40)
    assert float(found) == pytest.approx(0.125, rel=2e-3)


def test_worst_on_a_network_beats_what_is_drawn_at_random(subject_of: Any, fitted: Any) -> None:
    model, x, y = fitted
    subject = subject_of(model, x, y, batch=50)
    names = dict(model.named_parameters())
    flat = torch.cat([p.detach().flatten() for p in names.values()])

    def loss(moved: Tensor) -> Tensor:
        parts = torch.split(flat + moved, [p.numel() for p in names.values()])
        given = {n: v.view(p.shape) for (n, p), v in zip(names.items(), parts, strict=True)}
        return nn.functional.cross_entropy(functional_call(model, given, (x,)), y)

    radius = RADIUS * flat.norm()
    zero = torch.zeros_like(flat, requires_grad=True)
    slope = torch.autograd.grad(loss(zero), zero)[0]
    with torch.no_grad():
        base = loss(flat * 0)
        one_step = loss(radius * slope / slope.norm()) - base
        drawn = torch.randn(200, len(flat), generator=torch.Generator().manual_seed(0))
        random = max(loss(radius * d / d.norm()) - base for d in drawn)
    found = float(sharpness_worst(subject))
    assert found > 1.0001 * float(one_step) > float(random) > 0

    # Nor does another optimiser find anything worse.
    def value(u: np.ndarray) -> tuple[float, np.ndarray]:
        moved = torch.tensor(u * float(radius), dtype=torch.float32, requires_grad=True)
        risen = loss(moved) - base
        down = torch.autograd.grad(risen, moved)[0].double().numpy()
        unit = float(one_step)  # of a size at which its tolerances mean something
        return -float(risen.detach()) / unit, -down * float(radius) / unit

    ball = {"type": "ineq", "fun": lambda u: 1 - u @ u, "jac": lambda u: -2 * u}
    start = (slope / slope.norm()).double().numpy()
    best = minimize(value, start, jac=True, method="SLSQP", constraints=[ball])
    assert found == pytest.approx(-best.fun * float(one_step), rel=0.005)


def test_average_is_the_mean_over_noise(subject_of: Any, fitted: Any) -> None:
    """For small noise the mean rise is half the trace of the Hessian times the variance."""
    model, x, y = fitted
    subject = subject_of(model, x, y, batch=50)
    weights = weights_of(subject, 120)
    flat = weights.flat
    noise = torch.randn(1000, len(flat), generator=torch.Generator().manual_seed(1))
    for function, scale in (
        (sharpness_average, flat.square().mean().sqrt() * torch.ones_like(flat)),
        (sharpness_adaptive_average, flat.abs()),
    ):
        rises = [float(weights.loss(flat + NOISE * scale * e)) for e in noise]
        wanted = np.mean(rises) - float(weights.loss(flat))
        found = [float(function(subject_of(model, x, y, seed=s))) for s in range(30)]
        tolerance = 4 * np.hypot(np.std(found) / 30**0.5, np.std(rises) / 1000**0.5)
        assert np.mean(found) == pytest.approx(wanted, abs=tolerance)
        assert tolerance < 0.5 * wanted


def test_adaptive_sharpness_does_not_depend_on_the_scale_of_layers(subject_of: Any, fitted: Any, rescaled: Any) -> None:
    model, x, y = fitted
    other = rescaled(model, 8.0)
    for function in (sharpness_adaptive_worst, sharpness_adaptive_average):
        one, two = (float(function(subject_of(m, x, y))) for m in (model, other))
        assert one == pytest.approx(two, rel=1e-4)
        assert one > 0
    for function in (sharpness_worst, sharpness_average):
        one, two = (float(function(subject_of(m, x, y))) for m in (model, other))
        assert one != pytest.approx(two, rel=0.1)


def test_gradients_are_autograds(subject_of: Any, fitted: Any) -> None:
    model, x, y = fitted
    weights = weights_of(subject_of(model, x, y, batch=50), 120)
    loss, slope = weights.gradient(weights.flat)
    model.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    wanted = torch.cat([p.grad.flatten() for p in model.parameters()])
    assert torch.allclose(slope, wanted, atol=1e-6)
    assert float(loss) == pytest.approx(float(weights.loss(weights.flat)), rel=1e-6)


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
    grid = np.geomspace(1e-2, 10, 120)
    lost = np.array([drop(model, x, y, s, subject, by_size) for s in grid])
    within = grid[lost <= 0.1]
    first = grid[np.argmax(lost > 0.1) - 1]  # of several crossings bisection finds one
    assert 0.94 * first <= found <= 1.07 * within.max()  # the grid has steps of 6%
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
