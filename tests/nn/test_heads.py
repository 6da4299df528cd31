"""Linear probes against a layer trained by hand on the features."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch.nn import functional

from curvewise.nn import Assignment, Examples, Keep, Poke, Trained, Training
from curvewise.nn.architectures import Scale
from curvewise.nn.augmentation import make_augmentation, visits
from curvewise.nn.engine import train
from curvewise.nn.networks import features_of, head_of, make_network
from curvewise.nn.schedules import rate_factors

NETWORKS = {
    "cnn": Training("cnn", options={"width": 4}, trained="head", batch=16, epochs=3, rate=0.05),
    "resnet9": Training("resnet9", options={"width": 2}, trained="head", steps=7, rate=0.05),
}
KEEP = Keep(checkpoints="end", features=True)


@pytest.fixture(scope="module")
def digits() -> Examples:
    data = load_digits()
    x = (data.images[:300, None] * 15).astype(np.uint8)
    return Examples(x, data.target[:300].astype(np.int64), 10, (0.3,), (0.37,))


@pytest.fixture(scope="module")
def shown(digits: Examples) -> dict[str, Examples]:
    return {"test": replace(digits, x=digits.x[250:], y=digits.y[250:])}


def assigned(seed: int, n: int = 40) -> Assignment:
    rows = np.random.default_rng(seed).permutation(250)[:n]
    return Assignment(rows, seed, seed + 100, seed + 200)


def trained(training: Training, runs: list[Assignment], *data: Any, **how: Any) -> list[Trained]:
    found = dict(train(training, runs, *data, **{"keep": KEEP, **how}))
    assert all(one.error is None for one in found.values())
    return [found[i] for i in range(len(runs))]


def drawn(training: Training, seed: int, digits: Examples, folder: Path | None) -> torch.nn.Module:
    torch.manual_seed(seed)
    return make_network(training, digits.shape, 10, folder)


def features(model: torch.nn.Module, x: Any) -> torch.Tensor:
    with torch.no_grad():
        return features_of(model.eval(), (torch.from_numpy(x).float() / 255 - 0.3) / 0.37)


def probed(training: Training, one: Assignment, x: torch.Tensor, y: Any, *, bias: bool) -> torch.nn.Linear:
    """Multinomial regression by stochastic gradient descent."""
    torch.manual_seed(one.init)
    layer = make_network(Training("linear", options={"bias": bias}), tuple(x.shape[1:]), 10)
    optimiser = torch.optim.SGD(layer.parameters(), lr=1.0, momentum=0.9)
    n, labels = len(one.rows), torch.from_numpy(y)
    batch, steps = training.batch_for(n), training.steps_for(n)
    rows = torch.from_numpy(one.rows)[None]
    line = visits(torch.tensor([one.order]), rows, 0, steps * batch)[0].view(steps, batch)
    for index, factor in zip(line, rate_factors(training, steps), strict=True):
        optimiser.param_groups[0]["lr"] = training.rates[0] * float(factor)
        optimiser.zero_grad()
        functional.cross_entropy(layer(x[index]), labels[index]).backward()
        optimiser.step()
    head: torch.nn.Linear = head_of(layer)[1]
    return head


@pytest.fixture
def saved(digits: Examples, tmp_path: Path) -> Path:
    """Weights of the networks, drawn from another seed, with running statistics that tell."""
    for name, training in NETWORKS.items():
        model = drawn(training, 77, digits, None)
        model((torch.from_numpy(digits.x[:64]).float() / 255 - 0.3) / 0.37)
        torch.save(model.state_dict(), tmp_path / f"{name}.pt")
    return tmp_path


@pytest.mark.parametrize("from_file", [True, False])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_probe_is_a_layer_on_features(
    name: str, from_file: bool, digits: Examples, shown: dict[str, Examples], saved: Path
) -> None:
    training = replace(NETWORKS[name], weights=f"{name}.pt" if from_file else None)
    runs = [assigned(1), assigned(2), assigned(3), replace(assigned(1), order=5)]
    found = trained(training, runs, digits, shown, folder=saved)
    for run, one in zip(runs, found, strict=True):
        body = drawn(training, run.init, digits, saved)
        x, test = features(body, digits.x), features(body, shown["test"].x)
        factor = next((m.factor for m in body.modules() if isinstance(m, Scale)), 1.0)
        assert np.allclose(one.features["test"], test, rtol=1e-4, atol=1e-5)
        head = probed(training, run, x, digits.y, bias=head_of(body)[1].bias is not None)
        label = head_of(body)[0]
        kept = one.checkpoints["end"]
        expected = {f"{label}.{k}": v / factor for k, v in head.state_dict().items()}
        assert kept.keys() == expected.keys()
        for key, weight in expected.items():
            assert np.allclose(kept[key], weight, rtol=1e-4, atol=1e-4)
        # with what was kept, the network is whole
        body.load_state_dict({k: torch.from_numpy(v) for k, v in kept.items()}, strict=False)
        with torch.no_grad():
            logits = body((torch.from_numpy(digits.x).float() / 255 - 0.3) / 0.37)
        probabilities = torch.softmax(logits[250:], 1).numpy()
        assert np.allclose(one.probabilities["test"], probabilities, atol=1e-4)
        assert np.allclose(one.probabilities["test"].sum(1), 1, atol=1e-6)
        own, y = logits[run.rows], torch.from_numpy(digits.y[run.rows])
        loss = float(functional.cross_entropy(own, y))
        assert one.metrics["train_loss"] == pytest.approx(loss, rel=1e-3, abs=1e-5)
        assert one.metrics["train_error"] == float((own.argmax(1) != y).double().mean())


def test_company_changes_no_bit(digits: Examples, shown: dict[str, Examples], saved: Path) -> None:
    for weights in ("cnn.pt", None):
        training = replace(NETWORKS["cnn"], weights=weights)
        runs = [assigned(seed, n) for seed, n in enumerate((40, 40, 9, 40, 1))]
        together = trained(training, runs, digits, shown, folder=saved)
        for run, one in zip(runs, together, strict=True):
            (alone,) = trained(training, [run], digits, shown, folder=saved, in_flight=1)
            assert np.array_equal(alone.probabilities["test"], one.probabilities["test"])
            assert np.array_equal(alone.features["test"], one.features["test"])
            assert alone.metrics == one.metrics


def test_from_a_file_only_the_layer_depends_on_the_initial_seed(
    digits: Examples, shown: dict[str, Examples], saved: Path
) -> None:
    runs = [assigned(1), replace(assigned(1), init=9)]
    filed = replace(NETWORKS["cnn"], weights="cnn.pt")
    for training, same in ((filed, True), (NETWORKS["cnn"], False)):
        first, second = trained(training, runs, digits, shown, folder=saved)
        assert np.array_equal(first.features["test"], second.features["test"]) == same
        assert not np.array_equal(first.probabilities["test"], second.probabilities["test"])


def test_probes_take_schedules_that_watch_and_pokes(digits: Examples, shown: dict[str, Examples]) -> None:
    for schedule in ("plateau", "early-stop", "searched"):
        training = replace(NETWORKS["cnn"], schedule=schedule, validation=0.25, patience=1)
        keep = Keep(checkpoints="drops")
        (found,) = trained(training, [assigned(1)], digits, shown, keep=keep)
        assert all("." in name for weights in found.checkpoints.values() for name in weights)
    training = replace(NETWORKS["cnn"], epochs=0)
    runs = [assigned(1), replace(assigned(1), poke=Poke(3, 0, 2.0))]
    plain, poked = trained(training, runs, digits, shown)
    moved = sum(int((v != poked.checkpoints["end"][k]).sum()) for k, v in plain.checkpoints["end"].items())
    assert moved == 1


def test_a_network_that_goes_on_after_its_last_layer_says_so(
    digits: Examples, shown: dict[str, Examples], tmp_path: Path
) -> None:
    (tmp_path / "nets.py").write_text(
        "from torch import nn\n"
        "def squashed(shape, classes):\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(64, classes), nn.Softmax(dim=1))\n"
    )
    training = Training("nets:squashed", trained="head", steps=2)
    (found,) = trained(training, [assigned(1)], digits, shown, folder=tmp_path)
    assert "after its last layer" in found.notes[0]
    (plain,) = trained(NETWORKS["cnn"], [assigned(1)], digits, shown)
    assert plain.notes == ()


@pytest.mark.parametrize("name", NETWORKS)
def test_augmentation_that_moves_nothing_leaves_a_probe_as_it_is(
    name: str, digits: Examples, shown: dict[str, Examples], saved: Path
) -> None:
    training = replace(NETWORKS[name], weights=f"{name}.pt")
    runs = [assigned(1), assigned(2)]
    once = trained(training, runs, digits, shown, folder=saved)
    anew = trained(replace(training, augmentation=("translate:0",)), runs, digits, shown, folder=saved)
    for one, other in zip(once, anew, strict=True):
        assert one.checkpoints["end"].keys() == other.checkpoints["end"].keys()
        for key, weight in one.checkpoints["end"].items():
            assert np.allclose(weight, other.checkpoints["end"][key], rtol=1e-4, atol=1e-5)
        assert np.allclose(one.features["test"], other.features["test"], rtol=1e-4, atol=1e-5)
        assert np.allclose(one.probabilities["test"], other.probabilities["test"], atol=1e-5)
        assert (one.path, other.path) == (
            "eager, stack, features computed once",
            "eager, features computed in each step",
        )


def test_features_of_augmented_images_are_computed_in_each_epoch(
    digits: Examples, shown: dict[str, Examples], saved: Path
) -> None:
    specs = ("flip", "resized-crop:0.5")
    training = replace(NETWORKS["resnet9"], weights="resnet9.pt", augmentation=specs, steps=9, batch=16)
    runs = [assigned(1), replace(assigned(1), augmentation=9)]
    found = trained(training, runs, digits, shown, folder=saved)
    body = drawn(training, 0, digits, saved).eval()
    change = make_augmentation(specs, digits.shape)
    factor = next(m.factor for m in body.modules() if isinstance(m, Scale))
    for run, one in zip(runs, found, strict=True):
        torch.manual_seed(run.init)
        layer = make_network(Training("linear", options={"bias": False}), (head_of(body)[1].in_features,), 10)
        optimiser = torch.optim.SGD(layer.parameters(), lr=1.0, momentum=0.9)
        line = visits(torch.tensor([run.order]), torch.from_numpy(run.rows)[None], 0, 9 * 16)[0]
        for step, factors in enumerate(rate_factors(training, 9)):
            index = line[step * 16 : (step + 1) * 16]
            epoch = (step * 16 + torch.arange(16)) // len(run.rows)
            pixels = torch.from_numpy(digits.x)[index].float() / 255
            moved = change(pixels, torch.tensor(run.augmentation), epoch, index, torch.tensor([0.3]))
            with torch.no_grad():
                x = features_of(body, (moved - 0.3) / 0.37)
            optimiser.param_groups[0]["lr"] = 0.05 * float(factors)
            optimiser.zero_grad()
            functional.cross_entropy(layer(x), torch.from_numpy(digits.y)[index]).backward()
            optimiser.step()
        (weight,) = layer.parameters()
        (kept,) = one.checkpoints["end"].values()
        assert np.allclose(kept, weight.detach() / factor, rtol=1e-4, atol=1e-5)
    # The body stays as it was, its running statistics included, and another seed gives other images.
    assert not np.array_equal(*(one.probabilities["test"] for one in found))
    assert np.allclose(found[0].features["test"], features(body, shown["test"].x), atol=1e-5)
