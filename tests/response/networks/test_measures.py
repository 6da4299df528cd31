"""The whole shelf on one network: what it leaves alone, refuses, and says."""

from __future__ import annotations

import copy
import itertools
import json
import math
import re
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.nn.task import Examples
from curvewise.response.networks import measures
from curvewise.response.networks.measures import (
    AUGMENTATIONS,
    COLOURED,
    MEASURES,
    RESPONSES,
    ModelMeasures,
    list_measures,
    measure_model,
)
from curvewise.response.networks.perturbations import PERTURBATIONS
from curvewise.response.networks.subject import Measure
from curvewise.response.networks.trial import Execution

WEIGHTS_ONLY = ["l2-norm", "frobenius-sum", "spectral-product", "parameters"]


def quietly(*given: Any, **options: Any) -> ModelMeasures:
    """Measure where a warning is part of the matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        return measure_model(*given, **options)


class Picky(nn.Module):
    """A network that fails at its n-th call."""

    def __init__(self, inner: nn.Module, calls: int) -> None:
        super().__init__()
        self.inner, self.left = inner, calls

    def forward(self, x: Tensor) -> Tensor:
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("enough")
        return self.inner(x)


class Wrapped(nn.Module):
    """A linear network that does something with its logits."""

    def __init__(self, finish: Any) -> None:
        super().__init__()
        self.inner, self.finish = nn.Linear(4, 2), finish

    def forward(self, x: Tensor) -> Any:
        return self.finish(self.inner(x))


@pytest.mark.parametrize("calls", [10**9, 7, 0], ids=["fine", "fails late", "fails at once"])
def test_the_network_is_left_exactly_as_it_was(normed: Any, images: Any, calls: int) -> None:
    x, y = images
    model = Picky(normed, calls)
    nn.functional.cross_entropy(normed(x), y).backward()
    normed[0].weight.requires_grad_(False)
    model.train()
    normed[4].eval()
    seen: list[int] = []
    normed[2].register_forward_hook(lambda *_: seen.append(1))
    before = copy.deepcopy(model)
    slopes = [p.grad.clone() for p in model.parameters()]
    random = torch.get_rng_state()
    cudnn = torch.backends.cudnn
    flags = cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32
    initial, twin = copy.deepcopy(normed), copy.deepcopy(model)
    quietly(model, (x, y), initial=Picky(initial, 0), twin=twin, examples=30)
    assert torch.equal(random, torch.get_rng_state())
    assert flags == (cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32)
    assert [m.training for m in model.modules()] == [m.training for m in before.modules()]
    assert [len(m._forward_hooks) for m in model.modules()] == [len(m._forward_hooks) for m in before.modules()]
    assert model.left == before.left
    for (name, one), (_, two) in zip(model.named_parameters(), before.named_parameters(), strict=True):
        assert one.requires_grad == two.requires_grad, name
    for parameter, slope in zip(model.parameters(), slopes, strict=True):
        assert torch.equal(parameter.grad, slope)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before.state_dict()[name]), name


def test_every_measure_of_a_sound_network_is_a_number(fitted: Any) -> None:
    model, x, y = fitted
    before = copy.deepcopy(model)
    nn.init.normal_(before[0].weight)
    found = measure_model(model, (x, y), initial=before, twin=before)
    wanted = [n for n, m in MEASURES.items() if "images" not in m.needs]
    assert list(found.values) == wanted
    assert all(math.isfinite(value) for value in found.values.values())
    assert found.warnings == ()
    assert found.orientation == {n: MEASURES[n].orientation for n in wanted}
    assert set(found.seconds) == set(wanted)
    assert all(seconds >= 0 for seconds in found.seconds.values())


def test_what_is_not_given_is_left_out(fitted: Any) -> None:
    model, x, y = fitted
    found = measure_model(model, (x, y)).values
    assert not {"distance", "disagreement", "augmentation-penalty"} & set(found)
    for name, need in (("distance", "initial="), ("disagreement", "twin="), ("augmentation-penalty", "images")):
        with pytest.raises(InputError, match=f"{name}.*needs.*{need}"):
            measure_model(model, (x, y), name)


def test_rng_decides_everything_and_the_batch_nothing(normed: Any, images: Any) -> None:
    x, y = images
    names = ["loss", "margin-10", "jacobian", "sharpness-average", "sharpness-worst", "dbi"]
    first, again, other = (measure_model(normed, (x, y), names, examples=25, rng=r).values for r in (1, 1, 2))
    assert first == again
    assert all(first[name] != other[name] for name in names)
    small = measure_model(normed, (x, y), names, examples=25, rng=1, device=Execution(batch=4)).values
    assert small == pytest.approx(first, rel=1e-4)
    alone = measure_model(normed, (x, y), "sharpness-average", examples=25, rng=1).values
    assert alone["sharpness-average"] == first["sharpness-average"]


def test_bytes_are_normalised(normed: Any) -> None:
    random = np.random.default_rng(0)
    x, y = random.integers(0, 256, (40, 3, 8, 8), dtype=np.uint8), np.arange(40) % 4
    mean, std = [0.4, 0.5, 0.6], [0.2, 0.3, 0.25]
    floats = (x / 255 - np.reshape(mean, (3, 1, 1))) / np.reshape(std, (3, 1, 1))
    names = ["loss", "margin-10-input", "jacobian", "dbi", "sharpness-average"]
    wanted = measure_model(normed, (floats.astype(np.float32), y), names).values
    examples = Examples(x, y, 4, mean=tuple(mean), std=tuple(std))
    for found in (
        measure_model(normed, (x, y), names, reading={"mean": mean, "std": std}),
        measure_model(normed, examples, names),
    ):
        assert found.values == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize(
    ("model", "fine", "reason"),
    [
        (nn.Flatten(), ["parameters", "loss"], "no linear layer"),
        (nn.Linear(4, 1), WEIGHTS_ONLY, r"shape \(20, 1\)"),
        (Wrapped(lambda out: {"scores": out}), WEIGHTS_ONLY, "returned dict with 'scores'"),
        (Wrapped(lambda out: (out, 0)), [*WEIGHTS_ONLY, "loss"], "calls 0 activation"),
        (nn.Sequential(nn.Linear(4, 2)), [*WEIGHTS_ONLY, "loss"], "calls 0 activation"),
        (nn.Linear(4, 2, dtype=torch.float64), [*WEIGHTS_ONLY, "loss"], "calls 0 activation"),
    ],
    ids=["no layers", "one output", "a dict", "a tuple", "no activation", "double"],
)
def test_what_a_network_lacks_is_nan_with_the_reason(model: nn.Module, fine: list[str], reason: str) -> None:
    x, y = torch.randn(20, 4), torch.arange(20) % 2
    found = quietly(model, (x, y), [*WEIGHTS_ONLY, "loss", "dbi"])
    assert any(re.search(reason, text) for text in found.warnings)
    lacking = {name for name, value in found.values.items() if math.isnan(value)}
    assert lacking == {*WEIGHTS_ONLY, "loss", "dbi"} - set(fine)
    assert all(any(name in text for text in found.warnings) for name in lacking)
    assert f"{len(lacking)} could not be computed" in found.summary()


def test_one_reason_is_said_once(fitted: Any) -> None:
    model, x, y = fitted
    with torch.no_grad():
        model[2].weight[0, 0] = torch.nan
    found = quietly(model, (x, y), ["loss", "margin-10", "spectral-sum", "parameters"])
    assert len(found.warnings) == 2
    assert found.warnings[0].startswith("loss, margin-10: the model's outputs are not all finite")
    assert found.warnings[1].startswith("spectral-sum: the model's weights are not all finite")
    assert found.values["parameters"] == 191


def test_labels_beyond_the_outputs(fitted: Any) -> None:
    model, x, y = fitted
    with pytest.warns(CurvewiseWarning, match="Sequential: loss: labels holds class 3"):
        found = measure_model(model, (x, y + 1), ["loss"])
    assert "but the model has 3 outputs" in found.warnings[0]


def test_weights_computed_in_the_forward_pass(fitted: Any) -> None:
    _, x, y = fitted
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        layer = nn.utils.weight_norm(nn.Linear(4, 3))
    layer(x).sum().backward()  # leaves a weight that is no leaf, which does not deepcopy
    found = measure_model(layer, (x, y), ["loss", "sharpness-average"]).values
    with torch.no_grad():
        wanted = nn.functional.cross_entropy(layer(x), y)
    assert found["loss"] == pytest.approx(float(wanted), rel=1e-5)


def test_a_measure_of_ones_own(fitted: Any) -> None:
    model, x, y = fitted
    mine = Measure("largest", lambda s: max(p.abs().max() for p in s.model.parameters()), 1)
    found = measure_model(model, (x, y), [mine, "loss"])
    wanted = max(float(p.detach().abs().max()) for p in model.parameters())
    assert found.values["largest"] == pytest.approx(wanted)
    assert list(found.values) == ["largest", "loss"]
    broken = Measure("broken", lambda s: 1 / 0, -1)
    result = quietly(model, (x, y), [broken, "loss"])
    assert "broken: failed with ZeroDivisionError" in result.warnings[0]
    assert math.isfinite(result.values["loss"])


def test_initial_as_a_module_or_its_state(fitted: Any) -> None:
    model, x, y = fitted
    other = copy.deepcopy(model)
    nn.init.ones_(other[2].weight)
    one, two = (measure_model(model, (x, y), "distance", initial=i).values for i in (other, other.state_dict()))
    assert one == two
    state = other.state_dict()
    del state["4.bias"]
    with pytest.raises(InputError, match=r"initial has nothing for '4.bias'"):
        measure_model(model, (x, y), "distance", initial=state)
    with pytest.raises(InputError, match=r"initial has shape \(2, 4\) for '0.weight'"):
        measure_model(model, (x, y), "distance", initial={"0.weight": torch.ones(2, 4)})
    with pytest.raises(InputError, match="initial is a int"):
        measure_model(model, (x, y), "distance", initial=3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measures": "margin-1O"}, "'margin-1O' is not known.*Did you mean 'margin-10'"),
        ({"measures": []}, "measures is empty"),
        ({"layer": 0}, "layer=0"),
        ({"layer": "7"}, "layer='7': the model has no submodule"),
        ({"twin": "other"}, "twin is a str"),
        ({"examples": 0}, "examples=0"),
    ],
    ids=["name", "none", "number", "layer", "twin", "examples"],
)
def test_arguments_are_checked(fitted: Any, options: dict[str, Any], message: str) -> None:
    model, x, y = fitted
    with pytest.raises(InputError, match=message):
        measure_model(model, (x, y), **options)


def test_a_function_is_no_network(fitted: Any) -> None:
    with pytest.raises(InputError, match="model is a function"):
        measure_model(lambda x: x, fitted[1:])


def test_results_can_be_read(fitted: Any) -> None:
    model, x, y = fitted
    done: list[float] = []
    found = quietly(model, (x, y), ["loss", "flatness", "l2-norm"], progress=done.append)
    assert done == pytest.approx([1 / 3, 2 / 3, 1])
    assert found.frame().columns.tolist() == ["measure", "value", "orientation", "seconds"]
    assert "| flatness " in found.table()
    assert "lower" in found.table("text")
    again = json.loads(json.dumps(found.to_dict()))
    assert again["values"] == pytest.approx(found.values)
    assert found.summary().startswith("3 measures of Sequential on 120 examples in ")


def test_list_of_measures_tells_all() -> None:
    table = list_measures()
    assert table["name"].is_unique
    assert set(table["orientation"]) == {1, -1}
    assert (table["cost"].str.len() > 0).all()
    assert (table["about"].str.endswith(".")).all()
    assert len(table) == len(MEASURES) >= 40


def test_a_measure_declares_what_it_means() -> None:
    with pytest.raises(InputError, match="orientation=2"):
        Measure("wrong", lambda s: 0.0, 2)
    with pytest.raises(InputError, match="needs="):
        Measure("wrong", lambda s: 0.0, 1, ("time"))


def test_tokens() -> None:
    """What needs numbers as inputs is left out; the rest works on tokens."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(9, 5), nn.Flatten(), nn.Linear(20, 6), nn.ReLU(), nn.Linear(6, 3))
    x, y = torch.randint(0, 9, (60, 4)), torch.arange(60) % 3
    names = ["loss", "margin-10-layer1", "sharpness-adaptive-worst", "spectral-sum", "dbi"]
    found = measure_model(model, (x, y), names).values
    assert all(math.isfinite(value) for value in found.values())
    for name in ("jacobian", "path-norm", "mixup"):
        with pytest.raises(InputError, match="not tokens"):
            measure_model(model, (x, y), name)


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
    measure = measures.measure_response

    def counted(*given: Any, **options: Any) -> Any:
        key = given[2], options["layer"]
        assert key not in curves
        curves[key] = measure(*given, **options)
        return curves[key]

    monkeypatch.setattr(measures, "measure_response", counted)
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


def test_measures_are_names() -> None:
    with pytest.raises(InputError, match="measures=3: give names"):
        measures.find_measures(3)  # type: ignore[arg-type]
