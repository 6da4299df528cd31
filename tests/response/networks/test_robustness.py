"""Measures of responses against brute force over all pairs and against single calls."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from curvewise.response.networks import robustness
from curvewise.response.networks.measures import MEASURES, measure_model
from curvewise.response.networks.perturbations import PERTURBATIONS
from curvewise.response.networks.robustness import AUGMENTATIONS, COLOURED, RESPONSES

CURVES = [m.name for m in RESPONSES if m.name != "augmentation-penalty"]


def mixed_accuracy(before: nn.Module, after: nn.Module, x: Tensor, y: Tensor) -> np.ndarray:
    """For each example, the share of partners of its class with which its middle is answered."""
    shares = []
    with torch.no_grad():
        hidden = before(x)
        for i, (one, label) in enumerate(zip(hidden, y, strict=True)):
            partners = [j for j in range(len(x)) if y[j] == label and j != i]
            answers = after((one + hidden[partners]) / 2).argmax(1)
            shares.append(float((answers == label).double().mean()))
    return np.array(shares)


@pytest.fixture
def noisy(fitted: Any) -> tuple[nn.Sequential, Tensor, Tensor]:
    """The fitted network on data in which it errs at times."""
    model, x, y = fitted
    return model, x + torch.randn(x.shape, generator=torch.Generator().manual_seed(2)), y


@pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")
@pytest.mark.parametrize(("name", "cut"), [("mixup", 0), ("manifold-mixup", 2)])
def test_mixup_is_the_accuracy_over_pairs_of_a_class(noisy: Any, name: str, cut: int) -> None:
    model, x, y = noisy
    wanted = mixed_accuracy(model[:cut], model[cut:], x, y).mean()
    assert 0.5 < wanted < 0.98
    found = [measure_model(model, (x, y), name, rng=r).values[name] for r in range(30)]
    assert np.mean(found) == pytest.approx(wanted, abs=4 * np.std(found) / 30**0.5)
    assert np.std(found) < 0.05


@pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")
def test_scores_are_those_of_the_curves_and_curves_are_shared(noisy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, x, y = noisy
    curves: dict[tuple[str, Any], Any] = {}
    measure = robustness.measure_response

    def counted(*given: Any, **options: Any) -> Any:
        key = given[2], options["layer"]
        assert key not in curves
        curves[key] = measure(*given, **options)
        return curves[key]

    monkeypatch.setattr(robustness, "measure_response", counted)
    found = measure_model(model, (x, y), [*CURVES, "dbi"]).values
    assert set(curves) == set(itertools.product(("mixup-intra", "mixup-inter"), (None, 1)))
    for (perturbation, layer), curve in curves.items():
        suffix = perturbation.removeprefix("mixup-") + ("" if layer is None else "-layer1")
        assert found[f"gi-{suffix}"] == curve.gi
        assert found[f"pal-{suffix}"] == curve.pal
    plain = curves["mixup-intra", None]
    assert plain.magnitude[-1] == 0.5
    assert found["mixup"] == plain.accuracy[-1]
    assert found["manifold-mixup"] == curves["mixup-intra", 1].accuracy[-1]
    assert found["mean-accuracy"] == pytest.approx(plain.accuracy.mean())
    assert found["dbi-mixup"] == pytest.approx(found["dbi"] * (1 - found["mixup"]), rel=1e-6)


@pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")
@pytest.mark.parametrize("channels", [1, 3])
def test_penalty_is_the_mean_accuracy_lost(channels: int) -> None:
    """Images perturbed outside, where no chance is involved; the rest within its bounds."""
    torch.manual_seed(0)
    random = np.random.default_rng(1)
    y = np.arange(90) % 3
    x = random.integers(0, 120, (90, channels, 8, 8), dtype=np.uint8)
    x[np.arange(90), :, 2 + y, :] = 160  # the class is in which row a line is
    model = nn.Sequential(nn.Flatten(), nn.Linear(64 * channels, 16), nn.ReLU(), nn.Linear(16, 3))
    pixels, labels = torch.tensor(x) / 255.0, torch.tensor(y)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(60):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model((pixels - 0.3) / 0.25), labels).backward()
        optimiser.step()
    scale = {"mean": [0.3] * channels, "std": [0.25] * channels}
    found = measure_model(model, (x, y), ["augmentation-penalty", "accuracy"], reading=scale).values

    def accuracy(images: Tensor) -> float:
        return float((model((images - 0.3) / 0.25).argmax(1) == labels).double().mean())

    names = [name for name in AUGMENTATIONS if channels == 3 or name not in COLOURED]
    known = [name for name in names if name not in ("noise", "cutout")]
    drops = []
    for name in known:
        both = [m for m in AUGMENTATIONS[name] if m != 0]
        right = [accuracy(PERTURBATIONS[name].apply(pixels, m)) for m in both]
        drops.append(accuracy(pixels) - np.mean(right))
    assert found["accuracy"] == pytest.approx(accuracy(pixels))
    lost = found["augmentation-penalty"] * len(names) - sum(drops)
    assert sum(drops) > 0.05
    # Noise and cutout: as much as another draw of theirs costs, give or take.
    others = [
        sum(
            accuracy(pixels) - accuracy(PERTURBATIONS[n].apply(pixels, AUGMENTATIONS[n][1], seed))
            for n in ("noise", "cutout")
        )
        for seed in range(30)
    ]
    assert min(others) - 0.05 <= lost <= max(others) + 0.05


jacobian = MEASURES["jacobian"].function
jacobian_softmax = MEASURES["jacobian-softmax"].function


def brute(model: nn.Module, x: Tensor, *, softmax: bool) -> float:
    """Mean of the Frobenius norms, one example at a time."""
    finish = nn.Softmax(1) if softmax else nn.Identity()
    norms = [torch.autograd.functional.jacobian(lambda one: finish(model(one)), one[None]).norm() for one in x]
    return float(torch.stack(norms).mean())


def test_few_outputs_are_exact(subject_of: Any, normed: Any, images: Any) -> None:
    subject = subject_of(normed, *images, batch=16)
    assert float(jacobian(subject)) == pytest.approx(brute(normed, images[0], softmax=False), rel=1e-5)
    assert float(jacobian_softmax(subject)) == pytest.approx(brute(normed, images[0], softmax=True), rel=1e-5)


def test_many_outputs_are_projected_without_much_bias(subject_of: Any) -> None:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 60))
    x, y = torch.randn(50, 40), torch.arange(50)
    wanted = brute(model, x, softmax=False)
    found = np.array([float(jacobian(subject_of(model, x, y, seed=s))) for s in range(20)])
    assert found.mean() == pytest.approx(wanted, rel=0.02)
    assert 0 < found.std() < 0.1 * wanted


def test_a_network_that_starts_in_place(subject_of: Any) -> None:
    model = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 2))
    x = torch.randn(6, 3)
    found = float(jacobian(subject_of(model, x)))
    wanted = (model[1].weight[:, None] * (x > 0)).detach().square().sum(dim=(0, 2)).sqrt().mean()
    assert found == pytest.approx(float(wanted), rel=1e-5)
