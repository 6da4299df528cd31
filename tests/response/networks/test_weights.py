"""Norms against numpy's singular values and unrolled convolutions."""

from __future__ import annotations

import copy
import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import brentq, minimize
from torch import Tensor, nn
from torch.func import functional_call

from curvewise.errors import InputError
from curvewise.response.networks.measures import MEASURES, measure_model
from curvewise.response.networks.subject import weights_of
from curvewise.response.networks.weights import (
    DRAWS_FLAT,
    NOISE,
    RADIUS,
    distance,
    distance_spectral,
    flatness,
    kernel_norm,
    l2_norm,
    largest_within,
    layers_of,
    operator_norm,
    path_norm,
    worst_rise,
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


@pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")  # of a network that was not trained
def test_a_module_under_two_names_is_measured_as_it_is() -> None:
    """Nor do measures with other weights change the network that the next ones are computed on."""

    class Once(nn.Module):
        def __init__(self, inner: nn.Module, last: nn.Module) -> None:
            super().__init__()
            self.inner, self.relu, self.last = inner, nn.ReLU(), last

        def forward(self, x: Tensor) -> Tensor:
            return self.last(self.relu(self.inner(self.relu(self.inner(x)))))

    torch.manual_seed(0)
    inner, last, x = nn.Linear(4, 4), nn.Linear(4, 3), torch.randn(60, 4)
    twice = nn.Sequential(inner, nn.ReLU(), inner, nn.ReLU(), last)
    labels = twice(x).argmax(1)
    names = ["path-norm", "sharpness-average", "sharpness-worst", "l2-norm", "loss", "gi-intra", "jacobian", "dbi"]
    found = measure_model(twice, (x, labels), names, progress=False).values
    assert found == pytest.approx(measure_model(Once(inner, last), (x, labels), names, progress=False).values, rel=1e-4)
    assert torch.equal(twice(x).argmax(1), labels)


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


@pytest.mark.filterwarnings("ignore:`torch.nn.utils.weight_norm` is deprecated")
@pytest.mark.parametrize(
    "computed",
    [
        nn.utils.parametrizations.weight_norm,
        nn.utils.parametrizations.spectral_norm,
        nn.utils.weight_norm,
        nn.utils.spectral_norm,
    ],
)
def test_weights_that_are_computed_count_as_they_are(subject_of: Any, computed: Any) -> None:
    torch.manual_seed(0)
    x, first, plain, last = torch.randn(6, 3), computed(nn.Linear(3, 5)), nn.Linear(3, 5), nn.Linear(5, 2)
    model = nn.Sequential(first, nn.ReLU(), last).eval()
    with torch.no_grad():
        before = model(x)
        plain.weight.copy_(first.weight)
        plain.bias.copy_(first.bias)
    found = path_norm(subject_of(model, x))
    assert float(found) == pytest.approx(
        float(path_norm(subject_of(nn.Sequential(plain, nn.ReLU(), last), x))), rel=1e-6
    )
    assert torch.equal(model(x), before)  # and still can be called
    images, conv, norm = torch.randn(6, 1, 5, 4), computed(nn.Conv2d(1, 3, 3)), nn.BatchNorm2d(3)
    subject = subject_of(nn.Sequential(conv, norm, nn.Flatten(), nn.Linear(18, 2)), images)
    plain = nn.Conv2d(1, 3, 3)
    with torch.no_grad():
        subject.model(images)
        plain.weight.copy_(subject.model[0].weight)
        norm.running_var.uniform_(0.5, 2)
    norms = [
        operator_norm(layers_of(subject_of(nn.Sequential(one, norm, nn.Flatten(), nn.Linear(18, 2)), images))[0])
        for one in (subject.model[0], plain)
    ]
    assert float(norms[0]) == pytest.approx(float(norms[1]), rel=1e-6)


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
    noise = torch.randn(400, len(flat), generator=torch.Generator().manual_seed(1))
    for function, scale in (
        (sharpness_average, flat.square().mean().sqrt() * torch.ones_like(flat)),
        (sharpness_adaptive_average, flat.abs()),
    ):
        rises = [float(weights.loss(flat + NOISE * scale * e)) for e in noise]
        wanted = np.mean(rises) - float(weights.loss(flat))
        found = [float(function(subject_of(model, x, y, seed=s))) for s in range(15)]
        tolerance = 4 * np.hypot(np.std(found) / 15**0.5, np.std(rises) / 400**0.5)
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


def test_both_kinds_of_flatness_of_one_network_are_kept_apart(subject_of: Any, fitted: Any) -> None:
    subject = subject_of(*fitted)
    assert flatness(subject) != flatness_magnitude(subject)
    assert flatness_magnitude(subject) == flatness_magnitude(subject_of(*fitted))
