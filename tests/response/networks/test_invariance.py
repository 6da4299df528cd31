from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from curvewise.errors import InputError  # noqa: E402
from curvewise.nn.data import draw_sample  # noqa: E402
from curvewise.nn.task import Examples  # noqa: E402
from curvewise.response.networks.measurement import (  # noqa: E402
    invariance_scores,
    measure_response,
    perturbed_accuracy,
    single_perturbation,
)
from curvewise.response.networks.perturbations import PERTURBATIONS, draw_magnitudes, find_perturbation  # noqa: E402
from curvewise.response.networks.trial import Execution  # noqa: E402

MEAN, STD = (0.4, 0.5, 0.3), (0.2, 0.3, 0.25)


def images(count: int = 90) -> Examples:
    rng = np.random.default_rng(1)
    y = np.arange(count) % 3
    x = rng.integers(0, 120, (count, 3, 6, 6))
    x[np.arange(count), y, 1:4, 2:5] += 55  # a patch in the channel of its class
    return Examples(x.astype(np.uint8), y, 3, mean=MEAN, std=STD)


@pytest.fixture(scope="module")
def network() -> nn.Module:
    """Fitted by least squares, so that it is right on most images and wrong on some."""
    data = images()
    x = (data.x / 255 - np.reshape(MEAN, (3, 1, 1))) / np.reshape(STD, (3, 1, 1))
    flat = np.c_[x.reshape(len(x), -1), np.ones(len(x))]
    gram = flat.T @ flat + 30 * np.eye(flat.shape[1])
    w = np.linalg.solve(gram, flat.T @ np.eye(3)[data.y])
    model = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(108, 3))
    model[2].weight.data = torch.tensor(w[:-1].T, dtype=torch.float32)
    model[2].bias.data = torch.tensor(w[-1], dtype=torch.float32)
    return model.train()


def by_hand(model: nn.Module, data: Examples, name: str, low: float, high: float, seed: int) -> float:
    """One image after the other."""
    rows = np.random.default_rng(seed).permutation(len(data.y))
    magnitudes = draw_magnitudes(low, high, len(rows), seed)
    perturbation, hits = find_perturbation(name), 0
    mean, std = (torch.tensor(v)[:, None, None] for v in (MEAN, STD))
    model.eval()
    for i, row in enumerate(rows):
        x = torch.from_numpy(data.x[row : row + 1]).float() / 255
        if perturbation.of == "values":
            x = (x - mean) / std
        moved = perturbation.apply(x, torch.tensor(magnitudes[i : i + 1]), seed, positions=torch.tensor([i]))
        if perturbation.of == "images":
            moved = (moved - mean) / std
        hits += int(model(moved).argmax()) == data.y[row]
    model.train()
    return hits / len(rows)


# All but those that learn from the whole sample, which by_hand does not know.
SINGLE = sorted(
    k for k, p in PERTURBATIONS.items() if p.pairs is None and p.learn is None and p.of in ("images", "values")
)


@pytest.mark.parametrize("name", SINGLE)
def test_it_is_what_a_loop_over_images_gives(network: nn.Module, name: str) -> None:
    low, high = PERTURBATIONS[name].paper_range
    found = perturbed_accuracy(network, images(), name, rng=5)
    assert found == by_hand(network, images(), name, low, high, 5)


def test_the_perturbation_matters_and_the_seed(network: nn.Module) -> None:
    clean = perturbed_accuracy(network, images(), "rotation", (0, 0))
    network.eval()
    x = (torch.from_numpy(images().x).float() / 255).permute(0, 2, 3, 1)
    x = ((x - torch.tensor(MEAN)) / torch.tensor(STD)).permute(0, 3, 1, 2)
    assert clean == float((network(x).argmax(1).numpy() == images().y).mean()) > 0.95
    network.train()
    noisy = [perturbed_accuracy(network, images(), "noise", (0.5, 1), rng=i) for i in range(4)]
    assert max(noisy) < clean
    assert len(set(noisy)) > 1


@pytest.mark.parametrize("name", ["rotation", "noise", "feature-noise", "intensity", "cutout"])
def test_batches_do_not_matter(network: nn.Module, name: str) -> None:
    reach = {"feature-noise": (0.5, 3), "noise": (0.3, 0.6), "intensity": (-1, -1)}.get(name)
    found = [perturbed_accuracy(network, images(), name, reach, device=Execution(batch=b)) for b in (1, 7, 90, 512)]
    assert len(set(found)) == 1
    assert found[0] < 1


def test_feature_noise_is_measured_in_spreads_of_what_the_network_takes(network: nn.Module) -> None:
    """The fitted spreads are those of normalised images: as of floats that were given so."""
    data = images()
    x = (data.x.astype(np.float32) / 255 - np.reshape(MEAN, (3, 1, 1))) / np.reshape(STD, (3, 1, 1))
    for seed in range(3):
        given = perturbed_accuracy(network, (x.astype(np.float32), data.y), "feature-noise", (1, 3), rng=seed)
        assert perturbed_accuracy(network, data, "feature-noise", (1, 3), rng=seed) == given
    # A response curve has the same noise at its first magnitude.
    curve = measure_response(network, data, "feature-noise", magnitudes=[2, 3], rng=3)
    here = perturbed_accuracy(network, data, "feature-noise", (2, 2), rng=3)
    assert here == curve.accuracy[0] < 1


def test_normalised_images_are_brought_back_to_pixels(network: nn.Module) -> None:
    data = images()
    x = (data.x / 255 - np.reshape(MEAN, (3, 1, 1))) / np.reshape(STD, (3, 1, 1))
    floats = (x.astype(np.float32), data.y)
    found = perturbed_accuracy(network, floats, "rotation", reading={"mean": MEAN, "std": STD})
    assert found == perturbed_accuracy(network, data, "rotation")
    with pytest.raises(InputError, match="mean=… and std=…"):
        perturbed_accuracy(network, floats, "rotation")


def test_tokens() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    x = np.where(rng.random((60, 8)) < 0.7, 4 + y[:, None], 6)
    data = Examples(x.astype(np.int64), y, 2, padding=0)

    class Counts(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.stack([(x == 4).sum(1), (x == 5).sum(1)], 1).float()

    model = Counts()
    assert perturbed_accuracy(model, data, "token-dropout", (0, 0)) == 1
    gone = perturbed_accuracy(model, data, "token-dropout", (1, 1))
    assert gone == 0.5  # without tokens it says class 0
    assert gone <= perturbed_accuracy(model, data, "token-dropout", (0.5, 1)) <= 1
    swapped = [perturbed_accuracy(model, (x.astype(k), y), "token-replacement", (1, 1)) for k in ("int64", "uint8")]
    assert swapped[0] == swapped[1]


def test_mode_and_device_come_back(network: nn.Module) -> None:
    network.train()
    network[1].eval()
    before = {k: v.clone() for k, v in network.state_dict().items()}
    perturbed_accuracy(network, images(), "rotation", device=Execution(device="cpu"))
    assert [m.training for m in network.modules()] == [True, True, False, True]
    other = Examples(images().x, images().y + 1, 4, mean=MEAN, std=STD)
    with pytest.raises(InputError, match="labels holds class 3"):
        perturbed_accuracy(network, other, "rotation")
    assert [m.training for m in network.modules()] == [True, True, False, True]
    assert all(p.device.type == "cpu" and p.grad is None for p in network.parameters())
    assert all(torch.equal(v, before[k]) for k, v in network.state_dict().items())
    network.train()


def test_precisions_and_broken_outputs(network: nn.Module) -> None:
    import copy

    plain = perturbed_accuracy(network, images(), "rotation")
    double = copy.deepcopy(network).double()
    assert perturbed_accuracy(double, images(), "rotation") == plain
    broken = copy.deepcopy(network)
    broken[2].bias.data[0] = torch.nan  # argmax would take it for the answer
    assert perturbed_accuracy(broken, images(), "rotation") == 0


def test_excluded_classes_do_not_make_an_answer_wrong(network: nn.Module) -> None:
    class More(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.pad(x, (0, 1), value=-torch.inf)

    plain = perturbed_accuracy(network, images(), "rotation")
    assert plain > 0
    assert perturbed_accuracy(nn.Sequential(network, More()), images(), "rotation") == plain


@pytest.mark.parametrize("name", ["rotation", "blur"])
def test_only_the_network_computes_in_low_precision(name: str) -> None:
    class Noted(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            given.append(x.clone())
            return x.flatten(1)[:, :3]

    found = []
    for precision in ("float32", "bfloat16"):
        given: list[torch.Tensor] = []
        perturbed_accuracy(Noted(), images(), name, device=Execution(precision=precision))
        found.append(torch.cat(given))
    assert torch.equal(*found)


def test_a_share_of_the_examples(network: nn.Module) -> None:
    sample = draw_sample(images(), examples=0.1, rng=2)
    assert len(sample) == 9
    part = Examples(images().x[sample.rows], images().y[sample.rows], 3, mean=MEAN, std=STD)
    found = perturbed_accuracy(network, images(), "intensity", (0, 0), examples=0.1, rng=2)
    assert found == perturbed_accuracy(network, part, "intensity", (0, 0))
    assert found * 9 == round(found * 9)


def test_three_measures(network: nn.Module) -> None:
    gi, mean, augmented = invariance_scores(network, images(), "rotation", [-60, 0, 60], (-60, 60), rng=4)
    curve = measure_response(network, images(), "rotation", magnitudes=[-60, 0, 60], examples=None, signs="keep", rng=4)
    assert (gi, mean) == (curve.gi, curve.mean_accuracy)
    share = perturbed_accuracy(network, images(), "rotation", (-60, 60), examples=0.1, rng=4)
    assert augmented == share


def grouped(options: dict[str, Any]) -> dict[str, Any]:
    """Put options of reading, execution and perturbation where they belong."""
    left = dict(options)
    reading = {k: left.pop(k) for k in ("labels", "mean", "std") if k in left}
    how = {k: left.pop(k) for k in ("device", "batch", "precision", "compile") if k in left}
    look = {k: left.pop(k) for k in ("fill", "interpolation", "padding", "mask") if k in left}
    if look:
        left["perturbation"] = find_perturbation(left["perturbation"], **look)
    return left | ({"reading": reading} if reading else {}) | ({"device": Execution(**how)} if how else {})


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "unknown": ({"perturbation": "rotatoin"}, "rotatoin.*is not known"),
    "pairs": ({"perturbation": "mixup-intra"}, "mixes pairs"),
    "order": ({"reach": (10, -10)}, "the lower first"),
    "one end": ({"reach": (10,)}, "two magnitudes"),
    "one number": ({"reach": 5}, "reach=5: give two magnitudes"),
    "words": ({"reach": ("a", "b")}, "reach must hold numbers"),
    "half a batch": ({"batch": 2.5}, r"batch=2\.5"),
    "too far": ({"reach": (0, 500)}, "from -180 to 180"),
    "batch": ({"batch": 0}, "batch=0"),
    "negative batch": ({"batch": -1}, "batch=-1"),
    "precision": ({"precision": "int3"}, "precision='int3'"),
    "rng": ({"rng": -1}, "rng=-1"),
    "examples": ({"examples": 0}, "examples=0"),
    "device": ({"device": "abacus"}, "device='abacus'"),
    "tokens": ({"perturbation": "token-dropout"}, "is for tokens"),
    "model": ({"model": len}, "give a torch.nn.Module"),
    "interpolation": ({"interpolation": "magic"}, "interpolation='magic'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(network: nn.Module, case: str) -> None:
    given, said = BAD[case]
    asked = {"model": network, "data": images(), "perturbation": "rotation", **given}
    with pytest.raises(InputError, match=said):
        perturbed_accuracy(**grouped(asked))


def test_colours_need_colours() -> None:
    grey = Examples(images().x[:, :1], images().y, 3)
    with pytest.raises(InputError, match="is for colours"):
        perturbed_accuracy(nn.Sequential(nn.Flatten(), nn.Linear(36, 3)), grey, "hue")


def test_magnitudes_of_single_examples() -> None:
    assert single_perturbation("rotation", None)[1] == (-180.0, 180.0)
    assert single_perturbation("rotation", (-3, 4)) == (PERTURBATIONS["rotation"], (-3.0, 4.0))
