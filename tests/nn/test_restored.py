from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from curvewise.errors import InputError  # noqa: E402
from curvewise.nn.devices import one_thread  # noqa: E402
from curvewise.nn.engine import train  # noqa: E402
from curvewise.nn.networks import initial_network, restore_network  # noqa: E402
from curvewise.nn.task import Assignment, Examples, Keep  # noqa: E402
from curvewise.nn.training import Training  # noqa: E402

SHAPE, CLASSES = (1, 8, 8), 3


def examples(count: int = 60) -> Examples:
    rng = np.random.default_rng(0)
    y = np.arange(count) % CLASSES
    x = rng.integers(0, 150, (count, *SHAPE)) + 50 * y[:, None, None, None]
    return Examples(x.astype(np.uint8), y, CLASSES, mean=(0.4,), std=(0.2,))


def trained(training: Training, *seeds: int, folder: Path | None = None) -> list[Any]:
    data = examples()
    work = [Assignment(np.arange(40), init=seed, order=seed) for seed in seeds]
    found = dict(train(training, work, data, {"test": data}, device="cpu", keep=Keep(checkpoints="end"), folder=folder))
    return [found[i] for i in range(len(seeds))]


def probabilities(model: torch.nn.Module) -> Any:
    data = examples()
    x = (torch.from_numpy(data.x).float() / 255 - 0.4) / 0.2
    with torch.no_grad():
        return model(x).softmax(1).numpy()


KINDS = {
    "mlp": Training("mlp", options={"width": 8}, epochs=3),
    "nin": Training("nin", options={"width": 4, "depth": 2, "batch_norm": True}, epochs=2),
    "resnet": Training("resnet9", options={"width": 4}, epochs=1),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_restored_network_gives_the_probabilities_of_the_training(kind: str) -> None:
    training = KINDS[kind]
    for seed, found in zip((3, 4), trained(training, 3, 4), strict=True):
        assert found.error is None
        weights = found.checkpoints["end"]
        model = restore_network(training, SHAPE, CLASSES, weights)
        assert not model.training
        state = model.state_dict()
        assert state.keys() == weights.keys()
        assert all(np.array_equal(state[k].numpy(), weights[k]) for k in weights)
        np.testing.assert_allclose(probabilities(model), found.probabilities["test"], atol=1e-6)
        start = probabilities(initial_network(training, SHAPE, CLASSES, seed))
        assert np.abs(start - found.probabilities["test"]).max() > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_training_for_no_epoch_leaves_the_initial_network(kind: str) -> None:
    training = replace(KINDS[kind], epochs=0)
    for seed, found in zip((5, 6), trained(training, 5, 6), strict=True):
        state = initial_network(training, SHAPE, CLASSES, seed).state_dict()
        weights = found.checkpoints["end"]
        assert state.keys() == weights.keys()
        assert all(np.array_equal(state[k].numpy(), weights[k]) for k in weights)


def test_the_state_of_torch_stays() -> None:
    torch.manual_seed(8)
    before = torch.random.get_rng_state()
    model = initial_network(KINDS["mlp"], SHAPE, CLASSES, 1)
    weights = {k: v.numpy() for k, v in model.state_dict().items()}
    restore_network(KINDS["mlp"], SHAPE, CLASSES, weights)
    assert torch.equal(before, torch.random.get_rng_state())


def test_weights_from_a_file(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    plain = Training("mlp", options={"width": 8}, epochs=0)
    given = initial_network(plain, SHAPE, CLASSES, 77)
    save_file({k: v.numpy() for k, v in given.state_dict().items()}, tmp_path / "w.safetensors")
    training = Training("mlp", options={"width": 8}, epochs=0, weights="w.safetensors")
    (found,) = trained(training, 1, folder=tmp_path)
    start = initial_network(training, SHAPE, CLASSES, 1, tmp_path).state_dict()
    assert all(torch.equal(start[k], v) for k, v in given.state_dict().items())
    weights = found.checkpoints["end"]
    assert all(np.array_equal(start[k].numpy(), weights[k]) for k in weights)
    # Once trained it stands without the file.
    (tmp_path / "w.safetensors").unlink()
    model = restore_network(training, SHAPE, CLASSES, weights, tmp_path)
    assert all(torch.equal(model.state_dict()[k], v) for k, v in given.state_dict().items())


@pytest.mark.parametrize("architecture", ["mlp", "resnet9"])
def test_a_network_of_which_the_last_layer_was_trained(architecture: str) -> None:
    training = Training(architecture, options={"width": 8}, epochs=5, trained="head", rate=0.01)
    for seed, found in zip((3, 4), trained(training, 3, 4), strict=True):
        weights = found.checkpoints["end"]
        assert len(weights) <= 2
        model = restore_network(training, SHAPE, CLASSES, weights, seed=seed)
        np.testing.assert_allclose(probabilities(model), found.probabilities["test"], atol=1e-5)
    with pytest.raises(InputError, match="trained='head'"):
        initial_network(training, SHAPE, CLASSES, 3)
    for wrong in ({"nowhere.weight": np.zeros(2)}, {**weights, "nowhere.weight": np.zeros(2)}):
        with pytest.raises(InputError, match="do not fit"):
            restore_network(training, SHAPE, CLASSES, wrong)


def test_weights_that_do_not_fit() -> None:
    (found,) = trained(KINDS["mlp"], 3)
    weights = found.checkpoints["end"]
    wider = Training("mlp", options={"width": 9})
    with pytest.raises(InputError, match=r"do not fit architecture='mlp'.*'width': 9"):
        restore_network(wider, SHAPE, CLASSES, weights)
    name = next(iter(weights))
    lacking = {k: v for k, v in weights.items() if k != name}
    for wrong in (lacking, {**weights, "more": np.zeros(1)}):
        with pytest.raises(InputError, match="do not fit"):
            restore_network(KINDS["mlp"], SHAPE, CLASSES, wrong)


def test_one_thread_and_back() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    seen = []
    with contextlib.suppress(KeyError), one_thread():
        seen.append(torch.get_num_threads())
        raise KeyError
    seen.append(torch.get_num_threads())
    torch.set_num_threads(before)
    assert seen == [1, 2]
