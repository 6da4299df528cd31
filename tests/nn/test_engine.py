"""The engine against a loop written by hand, and against itself in other company."""

from __future__ import annotations

import gc
import math
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from pytorch_optimizer import Ranger
from sklearn.datasets import load_digits
from torch.nn import functional

from curvewise.errors import InputError
from curvewise.nn import Assignment, Examples, Keep, Poke, Trained, Training
from curvewise.nn.augmentation import make_augmentation, visits
from curvewise.nn.data import Resident, Streamed, fits
from curvewise.nn.engine import POOL, LanePool, measure_seconds, resident, train
from curvewise.nn.lane import draws, stochastic
from curvewise.nn.networks import features_of, make_network
from curvewise.nn.schedules import rate_factors

OPTIMISERS: dict[str, Any] = {
    "sgd": lambda p, decay: torch.optim.SGD(p, lr=1.0, momentum=0.9, weight_decay=decay),
    "adam": lambda p, decay: torch.optim.Adam(p, lr=1.0, weight_decay=decay),
    "adamw": lambda p, decay: torch.optim.AdamW(p, lr=1.0, weight_decay=decay),
    "ranger": lambda p, decay: Ranger(p, lr=1.0, weight_decay=decay, degenerated_to_sgd=True),
}

MODELS = """
import math
import torch
from torch import nn
from torch.nn import functional

def dropout(shape, classes, p=0.5):
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), 16), nn.ReLU(), nn.Dropout(p),
                         nn.Linear(16, classes))

class Hidden(nn.Module):
    def __init__(self, shape, classes):
        super().__init__()
        self.first, self.last = nn.Linear(math.prod(shape), 16), nn.Linear(16, classes)
        self.unused = nn.Linear(3, 3)
        self.last = nn.Linear(16, classes)
        self.register_buffer("seen", torch.zeros(()), persistent=False)

    def forward(self, x):
        if self.training:
            self.seen += 1
        x = functional.dropout(self.first(x.flatten(1)), 0.5, self.training)
        return self.last(x) * (1 + 0.01 * self.seen)

class Unrepeatable(nn.Module):
    def __init__(self, shape, classes):
        super().__init__()
        self.last = nn.Linear(math.prod(shape), classes)

    def forward(self, x):
        torch.zeros(3).put_(torch.tensor([1]), torch.ones(1))
        return self.last(x.flatten(1))

class Huge(Unrepeatable):
    def __init__(self, shape, classes, words="DefaultCPUAllocator: can't allocate memory"):
        super().__init__(shape, classes)
        self.words = words

    def forward(self, x):
        raise RuntimeError(self.words)  # a MemoryError, or not

class Picky(nn.Module):
    def __init__(self, shape, classes):
        super().__init__()
        self.last = nn.Linear(math.prod(shape), classes)

    def forward(self, x):
        if x.max() > 100:
            raise ValueError("too bright for me")
        return self.last(x.flatten(1))

def frozen(shape, classes):
    net = nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), 8), nn.ReLU(),
                        nn.Linear(8, classes))
    net[1].weight.requires_grad_(False)
    return net

def headless(shape, classes):
    return nn.Sequential(nn.Conv2d(shape[0], classes, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())

def wrong(shape, classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape) + 1, classes))

def activated(shape, classes, kind):
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), 13), getattr(nn, kind)(),
                         nn.Linear(13, classes))
"""


@pytest.fixture(scope="module")
def digits() -> Examples:
    data = load_digits()
    x = (data.images[:400, None] * 15).astype(np.uint8)
    return Examples(x, data.target[:400].astype(np.int64), 10, (0.3,), (0.37,))


@pytest.fixture(scope="module")
def shown() -> dict[str, Examples]:
    data = load_digits()
    x = (data.images[-45:, None] * 15).astype(np.uint8)
    test = Examples(x, data.target[-45:].astype(np.int64), 10, (0.3,), (0.37,))
    return {"test": test, "dark": replace(test, x=test.x // 2)}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    (folder / "nets.py").write_text(MODELS)
    return folder


def assigned(seed: int, n: int = 40, **more: Any) -> Assignment:
    rows = np.random.default_rng(seed).permutation(400)[:n]
    return Assignment(rows, seed, seed + 100, seed + 200, **more)


def trained(
    training: Training,
    assignments: Sequence[Assignment],
    examples: Examples,
    evaluations: dict[str, Examples],
    **how: Any,
) -> list[Trained]:
    how = {"keep": Keep(checkpoints="end"), **how}
    found = dict(train(training, assignments, examples, evaluations, **how))
    assert sorted(found) == list(range(len(assignments)))
    return [found[i] for i in range(len(assignments))]


def end(one: Trained) -> dict[str, NDArray[Any]]:
    assert one.error is None, one.error
    return dict(one.checkpoints["end"])


def assert_same(first: Trained, second: Trained) -> None:
    """Bit for bit, all that there is but the time it took."""
    assert first.error == second.error
    assert first.metrics == second.metrics
    assert first.notes == second.notes
    for kind in ("probabilities", "features"):
        one, other = getattr(first, kind), getattr(second, kind)
        assert one.keys() == other.keys()
        assert all(np.array_equal(one[k], other[k]) for k in one)
    assert first.checkpoints.keys() == second.checkpoints.keys()
    for when, weights in first.checkpoints.items():
        assert all(np.array_equal(weights[k], second.checkpoints[when][k]) for k in weights)


def differ(first: Trained, second: Trained) -> bool:
    return not np.array_equal(first.probabilities["test"], second.probabilities["test"])


# A loop written by hand


def by_hand(training: Training, examples: Examples, assignment: Assignment) -> torch.nn.Module:
    torch.manual_seed(assignment.init)
    model = make_network(training, examples.shape, examples.classes)
    optimiser = OPTIMISERS[training.optimiser](model.parameters(), training.weight_decay)
    n = len(assignment.rows)
    batch, steps = training.batch_for(n), training.steps_for(n)
    order, rows = torch.tensor([assignment.order]), torch.from_numpy(assignment.rows)[None]
    line = visits(order, rows, 0, steps * batch)[0]
    augment = make_augmentation(training.augmentation, examples.shape)
    seed, mean = torch.tensor(assignment.augmentation), torch.tensor(examples.mean)
    images, labels = torch.from_numpy(examples.x), torch.from_numpy(examples.y)
    for step, factor in enumerate(rate_factors(training, steps)):
        place = torch.arange(step * batch, (step + 1) * batch)
        index = line[place]
        x = augment(images[index].float() / 255, seed, place // n, index, mean)
        loss = functional.cross_entropy(
            model((x - 0.3) / 0.37), labels[index], label_smoothing=training.label_smoothing
        )
        optimiser.param_groups[0]["lr"] = training.rates[0] * float(factor)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model.eval()


MOVES = ("flip", "translate:1", "cutout:3")
LOOPS = {
    "mlp": Training("mlp", options={"width": 16}, batch=16, epochs=3, label_smoothing=0.1),
    "mlp, decay": Training("mlp", options={"width": 16}, batch=7, epochs=2.5, weight_decay=0.01),
    "mlp, moved": Training("mlp", options={"width": 16}, batch=16, augmentation=MOVES, epochs=3),
    "mlp, batch norm": Training("mlp", options={"width": 8, "batch_norm": True}, epochs=4),
    "linear, adamw": Training("linear", optimiser="adamw", rate=0.01, weight_decay=0.1, steps=11),
    "linear, adam": Training("linear", optimiser="adam", rate=0.01, weight_decay=0.1, epochs=9),
    "cnn, ranger": Training("cnn", options={"width": 4}, optimiser="ranger", rate=0.01, weight_decay=1e-2, steps=15),
    "cnn, cosine": Training("cnn", options={"width": 4}, schedule="cosine", rate=0.05, warmup=0.3),
    "resnet9": Training(
        "resnet9",
        options={"width": 4},
        batch=20,
        steps=6,
        rate=0.05,
        weight_decay=5e-4,
        augmentation=(*MOVES, "rotation:20", "noise:0.05"),
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_training_is_that_of_a_plain_loop(name: str, digits: Examples, shown: dict[str, Examples]) -> None:
    training, assignment = LOOPS[name], assigned(3, n=50)
    others = [assigned(seed, n=50) for seed in (4, 5)]
    found = trained(training, [assignment, *others], digits, shown, keep=Keep(checkpoints="end", features=True))[0]
    model = by_hand(training, digits, assignment)
    theirs = model.state_dict()
    ours = end(found)
    assert ours.keys() == theirs.keys()
    for key, weight in theirs.items():  # running statistics among them
        assert np.allclose(ours[key], weight.numpy(), rtol=1e-5, atol=2e-6), key
    with torch.no_grad():
        for key, data in shown.items():
            x = (torch.from_numpy(data.x).float() / 255 - 0.3) / 0.37
            probabilities = torch.softmax(model(x), 1).numpy()
            assert np.allclose(found.probabilities[key], probabilities, atol=1e-5)
            assert np.allclose(found.probabilities[key].sum(1), 1, atol=1e-6)
            assert np.allclose(found.features[key], features_of(model, x), rtol=1e-4, atol=1e-4)
        x = (torch.from_numpy(digits.x[assignment.rows]).float() / 255 - 0.3) / 0.37
        y = torch.from_numpy(digits.y[assignment.rows])
        logits = model(x)
    assert found.metrics["train_loss"] == pytest.approx(float(functional.cross_entropy(logits, y)), rel=1e-4, abs=1e-6)
    assert found.metrics["train_error"] == pytest.approx(float((logits.argmax(1) != y).double().mean()))
    assert found.metrics["steps"] == training.steps_for(50)


def test_groups_of_small_networks_are_trained_as_by_torch(digits: Examples, shown: dict[str, Examples]) -> None:
    """In a stack on a CPU: the biases at a rate of their own, for two of three epochs."""
    groups = {"*bias": {"rate": 0.02, "weight_decay": 0.0, "epochs": 2}}
    training = Training("mlp", options={"width": 16}, batch=10, epochs=3, weight_decay=0.01, groups=groups)
    assignment = assigned(3, n=50)
    found, _ = trained(training, [assignment, assigned(4, n=50)], digits, shown)
    assert "stack" in found.path
    torch.manual_seed(3)
    model = make_network(training, digits.shape, 10)
    biases = [p for name, p in model.named_parameters() if name.endswith("bias")]
    matrices = [p for name, p in model.named_parameters() if name.endswith("weight")]
    optimiser = torch.optim.SGD(
        [{"params": matrices, "weight_decay": 0.01}, {"params": biases}], lr=training.rates[0], momentum=0.9
    )
    line = visits(torch.tensor([assignment.order]), torch.from_numpy(assignment.rows)[None], 0, 150)[0]
    for step in range(15):
        index = line[10 * step : 10 * step + 10]
        x = (torch.from_numpy(digits.x)[index].float() / 255 - 0.3) / 0.37
        whole, own = optimiser.param_groups
        whole["lr"], own["lr"] = 0.1 * (1 - step / 15), 0.02 * max(0.0, 1 - step / 10)
        optimiser.zero_grad()
        functional.cross_entropy(model(x), torch.from_numpy(digits.y)[index]).backward()
        optimiser.step()
    for key, weight in model.state_dict().items():
        assert np.allclose(end(found)[key], weight.numpy(), rtol=1e-5, atol=2e-6), key


def test_without_epochs_the_network_is_as_drawn(digits: Examples, shown: dict[str, Examples]) -> None:
    for schedule in ("linear", "plateau", "early-stop", "searched"):
        training = Training("mlp", epochs=0, schedule=schedule, validation=0.2)
        (found,) = trained(training, [assigned(3)], digits, shown)
        torch.manual_seed(3)
        model = make_network(training, digits.shape, 10)
        assert all(np.array_equal(end(found)[k], v) for k, v in model.state_dict().items())
        assert found.metrics["steps"] == 0


def test_epochs_may_be_fractions_and_steps_are_taken_as_given(digits: Examples, shown: dict[str, Examples]) -> None:
    sizes = [assigned(n, n=n) for n in (1, 5, 16, 17, 40)]
    half = trained(Training("linear", epochs=2.5, batch=16), sizes, digits, shown)
    assert [one.metrics["steps"] for one in half] == [3, 3, 3, 3, 7]
    seven = trained(Training("linear", steps=7, batch=16), sizes, digits, shown)
    assert [one.metrics["steps"] for one in seven] == [7] * 5
    assert seven[4].metrics["epochs"] == 7 * 16 / 40


# In company

COMPANY = {
    "mlp": Training("mlp", options={"width": 12}, batch=16, epochs=2, augmentation=MOVES),
    "narrow": Training("mlp", options={"width": 2}, batch=3, steps=12),
    "single class": Training("linear", batch=8, steps=9, optimiser="adamw", rate=0.01),
    "noisy mlp": Training("mlp", batch=5, steps=8, augmentation=("noise:0.1", "rotation:30")),
    "batch norm": Training("mlp", options={"batch_norm": True}, batch=8, steps=5),
    "cnn": Training("cnn", options={"width": 2}, batch=16, steps=5, augmentation=MOVES),
    "searched": Training("mlp", options={"width": 8}, epochs=6, schedule="searched", patience=2),
    "plateau": Training("mlp", options={"width": 8}, epochs=6, schedule="plateau", patience=1),
}


@pytest.mark.parametrize("name", COMPANY)
def test_company_changes_no_bit(name: str, digits: Examples, shown: dict[str, Examples]) -> None:
    training, keep = COMPANY[name], Keep(checkpoints="drops", features=True)
    runs = [assigned(seed, n=n) for seed, n in enumerate((40, 40, 11, 40, 4, 40, 40, 40, 40, 40))]
    alone = [trained(training, [run], digits, shown, keep=keep)[0] for run in runs]
    assert all(one.error is None for one in alone)
    for at_once, way in ((None, 1), (3, 1), (1, -1)):  # the last one backwards
        found = trained(training, runs[::way], digits, shown, keep=keep, in_flight=at_once)[::way]
        for one, other in zip(alone, found, strict=True):
            assert_same(one, other)


STREAMED = {
    "mlp": Training("mlp", options={"width": 12}, batch=16, epochs=2, augmentation=MOVES),
    "linear": Training("linear", batch=8, steps=9),
    "cnn": Training("cnn", options={"width": 2}, batch=16, steps=19),
    "crops": Training("cnn", options={"width": 2}, batch=16, steps=5, augmentation=("resized-crop:0.3", "noise:0.1")),
    "early stop": Training(
        "cnn", options={"width": 2}, steps=20, look_every=3, patience_steps=6, schedule="early-stop", validation=0.3
    ),
    "probe": Training("cnn", options={"width": 2}, trained="head", steps=9),
    "augmented probe": Training("cnn", options={"width": 2}, trained="head", steps=9, augmentation=("flip",)),
}


@pytest.mark.parametrize("name", STREAMED)
def test_streamed_images_change_no_bit(name: str, digits: Examples, shown: dict[str, Examples], tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", digits.x)
    mapped = replace(digits, x=np.load(tmp_path / "x.npy", mmap_mode="r"))
    runs, keep = [assigned(1), assigned(2)], Keep(checkpoints="end", features=True)
    on_device = trained(STREAMED[name], runs, digits, shown, keep=keep, stream=False)
    from_file = trained(STREAMED[name], runs, mapped, shown, keep=keep, stream=True)
    for one, other in zip(on_device, from_file, strict=True):
        assert_same(one, other)


def test_images_are_streamed_where_they_do_not_fit(digits: Examples, monkeypatch: pytest.MonkeyPatch) -> None:
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (2 * digits.x.nbytes, 0))
    assert fits(digits, gpu)
    assert fits(digits, cpu)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (2 * digits.x.nbytes - 1, 0))
    assert not fits(digits, gpu)
    rows = Examples(digits.x.reshape(len(digits.x), -1).astype(np.float32), digits.y, 10)
    assert fits(rows, gpu)  # only images are streamed
    assert type(resident(rows, cpu, True)) is Resident
    # A mapped file is not copied to memory, however large; a small array is.
    large = np.broadcast_to(np.uint8(0), (2**30 // 64 + 1, 1, 8, 8))
    assert type(resident(Examples(large, digits.y, 10), cpu)) is Streamed
    assert type(resident(Examples(large[:10], digits.y[:10], 10), cpu)) is Resident


@pytest.mark.parametrize("kind", ["ReLU", "GELU", "Tanh", "SiLU", "Sigmoid"])
def test_no_activation_rounds_by_the_company_it_keeps(
    kind: str, digits: Examples, shown: dict[str, Examples], models: Path
) -> None:
    training = Training("nets:activated", options={"kind": kind}, batch=3, steps=6)
    runs = [assigned(seed) for seed in range(9)]
    found = trained(training, runs, digits, shown, folder=models)
    for at_once in (1, 8):
        again = trained(training, runs, digits, shown, folder=models, in_flight=at_once)
        for one, other in zip(found, again, strict=True):
            assert_same(one, other)


def test_threads_that_train_at_once_change_no_bit(digits: Examples, shown: dict[str, Examples], models: Path) -> None:
    """Each draws and counts on the process's one generator, and wants the same lanes."""
    kinds = [
        Training("mlp", options={"width": 7}, batch=5, steps=20),
        Training("mlp", options={"width": 7}, batch=5, steps=20),
        Training("nets:dropout", batch=8, steps=10),
    ]
    runs = [assigned(seed) for seed in range(5)]
    alone = [trained(kind, runs, digits, shown, folder=models, in_flight=2) for kind in kinds]
    torch.manual_seed(5)
    expected, flags = torch.rand(3), torch.are_deterministic_algorithms_enabled()
    torch.manual_seed(5)

    def again(kind: Training) -> list[Trained]:
        return trained(kind, runs, digits, shown, folder=models, in_flight=2)

    with ThreadPoolExecutor(3) as threads:
        together = list(threads.map(again, kinds))
    for one, other in zip(alone, together, strict=True):
        for first, second in zip(one, other, strict=True):
            assert_same(first, second)
    assert torch.equal(torch.rand(3), expected)
    assert torch.are_deterministic_algorithms_enabled() == flags


def test_calls_that_take_turns_change_no_bit(digits: Examples, shown: dict[str, Examples]) -> None:
    training = Training("mlp", options={"width": 7}, batch=5, steps=6)
    runs = [assigned(seed) for seed in range(6)]
    alone = trained(training, runs, digits, shown, keep=None)
    one = train(training, runs, digits, shown, in_flight=2)
    other = train(training, runs[::-1], digits, shown, in_flight=2)
    for (i, mine), (k, its) in zip(one, other, strict=True):
        assert_same(mine, alone[i])
        assert_same(its, alone[5 - k])


def test_kernels_that_do_not_repeat_are_told(digits: Examples, shown: dict[str, Examples], models: Path) -> None:
    for _ in range(2):
        (found,) = trained(Training("nets:Unrepeatable", steps=2), [assigned(1)], digits, shown, folder=models)
        (doubt,) = found.doubts
        assert "no deterministic version of put_" in doubt
    (found,) = trained(Training("mlp", steps=2), [assigned(1)], digits, shown)
    assert found.doubts == ()


def test_too_little_memory_is_raised_and_not_told_as_a_run_s(
    digits: Examples, shown: dict[str, Examples], models: Path
) -> None:
    with pytest.raises(RuntimeError, match="can't allocate memory"):
        trained(Training("nets:Huge", steps=2), [assigned(1)], digits, shown, folder=models)
    (found,) = trained(
        Training("nets:Huge", options={"words": "3"}, steps=2), [assigned(1)], digits, shown, folder=models
    )
    assert "RuntimeError: 3" in str(found.error)


SCRIPT = """
import sys
import numpy as np
from pathlib import Path
from curvewise.nn import Assignment, Examples, Keep, Training
from curvewise.nn.engine import train
data = np.load(sys.argv[1])
digits = Examples(data["x"], data["y"], 10, (0.3,), (0.37,))
run = Assignment(data["rows"], 3, 103, 203)
for i, text in enumerate(sys.argv[3:]):
    training = Training(**eval(text))
    (_, found), = train(training, [run], digits, {"test": digits}, keep=Keep(checkpoints="end"),
                        folder=Path(sys.argv[1]).parent)
    np.savez(f"{sys.argv[2]}-{i}.npz", p=found.probabilities["test"], **found.checkpoints["end"])
"""


def test_a_fresh_process_gives_the_same(digits: Examples, models: Path, tmp_path: Path) -> None:
    run = assigned(3)
    data = models / "data.npz"
    np.savez(data, x=digits.x, y=digits.y, rows=run.rows)
    settings: list[dict[str, Any]] = [
        {"architecture": "mlp", "batch": 16, "steps": 9, "optimiser": "ranger", "rate": 0.01},
        {"architecture": "cnn", "options": {"width": 2}, "steps": 4, "augmentation": ("flip",)},
        {"architecture": "nets:dropout", "batch": 16, "steps": 9},
    ]
    command = [sys.executable, "-c", SCRIPT, str(data), str(tmp_path / "out")]
    subprocess.run([*command, *map(repr, settings)], check=True)
    everything = [assigned(seed) for seed in range(3)] + [run]
    for i, setting in reversed(list(enumerate(settings))):
        torch.rand(7)
        ours = trained(Training(**setting), everything, digits, {"test": digits}, folder=models)[3]
        with np.load(tmp_path / f"out-{i}.npz") as fresh:
            assert np.array_equal(fresh["p"], ours.probabilities["test"])
            assert all(np.array_equal(fresh[k], v) for k, v in end(ours).items())


def test_each_seed_changes_what_it_is_for_and_nothing_else(digits: Examples, shown: dict[str, Examples]) -> None:
    training = Training("mlp", options={"width": 8}, batch=16, epochs=2, augmentation=MOVES)
    base = assigned(3)
    runs = [base] + [replace(base, **{k: 999}) for k in ("init", "order", "augmentation")]
    found = trained(training, runs, digits, shown)
    assert all(differ(found[0], other) for other in found[1:])
    start = [end(one) for one in trained(replace(training, epochs=0), runs, digits, shown)]
    same = [all(np.array_equal(start[0][k], s[k]) for k in s) for s in start]
    assert same == [True, False, True, True]
    # where nothing is augmented, its seed is for nothing
    plain = trained(replace(training, augmentation=()), runs, digits, shown)
    assert [differ(plain[0], other) for other in plain[1:]] == [True, True, False]
    # whole batches have no order beside rounding
    whole = trained(replace(training, batch=40), runs, digits, shown)
    gaps = [np.abs(whole[0].probabilities["test"] - w.probabilities["test"]).max() for w in whole]
    assert gaps[2] < 1e-5 < min(gaps[1], gaps[3])


def test_the_caller_s_generator_flags_and_threads_stay(
    digits: Examples, shown: dict[str, Examples], models: Path
) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    threads = torch.get_num_threads()
    for name in ("mlp", "cnn", "nets:dropout"):
        torch.manual_seed(5)
        training = Training(name, steps=2, batch=16)
        for _ in train(training, [assigned(s) for s in range(3)], digits, shown, folder=models):
            assert torch.get_num_threads() == threads
            assert not torch.are_deterministic_algorithms_enabled()
        measure_seconds(training, digits, 40, folder=models)
        assert torch.equal(torch.rand(3), expected)


# Pokes


def changed(before: Trained, after: Trained) -> list[float]:
    """The ratios of the weights that changed."""
    ratios = []
    for key, weight in end(before).items():
        moved = weight != end(after)[key]
        ratios += list(end(after)[key][moved] / weight[moved])
    return ratios


@pytest.mark.parametrize("architecture", ["mlp", "cnn"])
@pytest.mark.parametrize("when", [0, 2])
def test_a_poke_changes_one_weight(architecture: str, when: int, digits: Examples, shown: dict[str, Examples]) -> None:
    training = Training(architecture, options={"width": 4}, epochs=when, batch=20, rate=0.01)
    pokes = [None, Poke(1, when), Poke(1, when), Poke(2, when, 3.0), Poke(3, when + 1)]
    runs = [replace(assigned(3), poke=poke) for poke in pokes]
    plain, first, again, other, late = trained(training, runs, digits, shown)
    assert changed(plain, first) == pytest.approx([1.001], rel=1e-6)
    assert changed(plain, other) == pytest.approx([3.0], rel=1e-6)
    assert changed(first, other) != changed(plain, other)
    assert_same(first, again)
    assert changed(plain, late) == []
    assert "ended before epoch" in late.notes[-1]
    assert plain.notes == first.notes == ()


@pytest.mark.parametrize("architecture", ["mlp", "cnn"])
def test_a_poke_on_the_way_leaves_what_was_before_it(
    architecture: str, digits: Examples, shown: dict[str, Examples]
) -> None:
    training = Training(architecture, options={"width": 4}, batch=20, epochs=4, schedule="drops", drops=(0.5,))
    keep = Keep(checkpoints="drops")
    pokes = [None, Poke(1, 2), Poke(1, 1), Poke(1, 0)]
    runs = [replace(assigned(3), poke=poke) for poke in pokes]
    found = trained(training, runs, digits, shown, keep=keep)
    halfway = [one.checkpoints["drop-1"] for one in found]
    same = [all(np.array_equal(halfway[0][k], h[k]) for k in h) for h in halfway]
    assert same == [True, True, False, False]
    assert all(changed(found[0], one) for one in found[1:])
    for run, one in zip(runs, found, strict=True):  # alone
        assert_same(trained(training, [run], digits, shown, keep=keep)[0], one)


def test_which_weight_is_poked_is_drawn_among_all(digits: Examples, shown: dict[str, Examples]) -> None:
    training = Training("linear", epochs=0)
    runs = [replace(assigned(3), poke=Poke(seed, 0, 2.0)) for seed in range(120)]
    plain, *found = trained(training, [assigned(3), *runs], digits, shown)
    places = set()
    for one in found:
        flat = np.concatenate([(end(one)[k] != v).ravel() for k, v in end(plain).items()])
        places.add(int(np.flatnonzero(flat)[0]))
        assert flat.sum() == 1
    assert len(places) > 90
    assert 250 < np.mean(list(places)) < 400  # of 650


# What goes wrong


def test_a_diverged_run_says_so_and_the_others_go_on(digits: Examples, shown: dict[str, Examples]) -> None:
    features = Examples(digits.x.reshape(400, -1).astype(np.float32) / 255, digits.y, 10)
    features.x[7] = np.inf
    rows = [np.arange(10, 50), np.arange(40), np.arange(60, 100)]
    runs = [Assignment(r, i, i, i) for i, r in enumerate(rows)]
    test = {"test": replace(features, x=features.x[100:120], y=digits.y[100:120])}
    for options in ({"width": 8}, {"width": 8, "batch_norm": True}):
        training = Training("mlp", options=options, epochs=4, batch=8)
        before = trained(training, [runs[0], runs[2]], features, test)
        first, bad, last = trained(training, runs, features, test)
        assert bad.error is not None
        assert bad.error.startswith("diverged: the training loss is nan")
        assert_same(first, before[0])
        assert_same(last, before[1])
        # the lanes are as good as new
        assert_same(first, trained(training, [runs[0]], features, test)[0])


def test_a_rate_that_is_far_too_high(digits: Examples, shown: dict[str, Examples]) -> None:
    for name in ("mlp", "cnn"):
        training = Training(name, options={"width": 4}, rate=3e38, epochs=9, batch=4)
        for one in trained(training, [assigned(1), assigned(2)], digits, shown):
            assert one.error is not None
            assert one.error.startswith("diverged: the training loss is nan")


@pytest.mark.parametrize("schedule", ["plateau", "early-stop", "searched"])
def test_controlled_schedules_say_that_they_diverged(
    schedule: str, digits: Examples, shown: dict[str, Examples]
) -> None:
    training = Training("mlp", rate=3e38, epochs=40, batch=4, schedule=schedule, validation=0.2, patience=2)
    (found,) = trained(training, [assigned(1)], digits, shown)
    assert found.error is not None
    assert found.error.startswith("diverged")


def test_a_run_that_raises_is_told_and_the_others_go_on(
    digits: Examples, shown: dict[str, Examples], models: Path
) -> None:
    features = Examples(digits.x.reshape(400, -1).astype(np.float32) / 255, digits.y, 10)
    features.x[7] = 1000
    calm = np.setdiff1d(np.arange(40), [7])
    rows = [calm, np.arange(40), calm]
    runs = [Assignment(r, i, i, i) for i, r in enumerate(rows)]
    test = {"test": Examples(features.x[100:120], digits.y[100:120], 10)}
    training = Training("nets:Picky", batch=16, epochs=3)
    first, bad, last = trained(training, runs, features, test, folder=models)
    assert first.error is None
    assert last.error is None
    assert bad.error is not None
    assert "Traceback" in bad.error
    assert "too bright for me" in bad.error
    assert not bad.probabilities


@pytest.mark.parametrize("options", [{"batch_norm": True}, {}])
def test_a_batch_of_one(options: dict[str, Any], digits: Examples, shown: dict[str, Examples]) -> None:
    training = Training("mlp", options=options, steps=4)
    runs = [assigned(1), assigned(2, n=1), assigned(3, n=2)]
    first, one, two = trained(training, runs, digits, shown)
    assert first.error is None
    assert two.error is None
    if options:
        assert one.error is not None
        assert "more than 1 value per channel" in one.error
        with pytest.raises(InputError, match="more than 1 value per channel"):
            measure_seconds(training, digits, 1)
    else:
        assert one.error is None


def test_no_examples_at_all(digits: Examples, shown: dict[str, Examples]) -> None:
    empty = Assignment(np.zeros(0, dtype=np.int64))
    found = trained(Training("linear", steps=2), [assigned(1), empty], digits, shown)
    assert found[0].error is None
    assert found[1].error is not None
    assert "no examples" in found[1].error


def test_one_class_is_learned_like_any_other(digits: Examples, shown: dict[str, Examples]) -> None:
    rows = np.flatnonzero(digits.y == 3)[:20]
    (found,) = trained(Training("mlp", epochs=5), [Assignment(rows)], digits, shown)
    assert found.metrics["train_error"] == 0
    assert (found.probabilities["test"].argmax(1) == 3).all()


def test_a_network_that_does_not_fit_fails_in_each_run(
    digits: Examples, shown: dict[str, Examples], models: Path
) -> None:
    runs = [assigned(1), assigned(2)]
    for one in trained(Training("nets:wrong", steps=2), runs, digits, shown, folder=models):
        assert one.error is not None
        assert "in_features=65" in one.error
        assert "inputs of 64 numbers" in one.error


def test_without_a_linear_layer_only_features_fail(digits: Examples, shown: dict[str, Examples], models: Path) -> None:
    training = Training("nets:headless", steps=2)
    (found,) = trained(training, [assigned(1)], digits, shown, folder=models)
    assert found.error is None
    keep = Keep(features=True)
    (found,) = trained(training, [assigned(1)], digits, shown, folder=models, keep=keep)
    assert found.error is not None
    assert "End it with a Linear" in found.error
    with pytest.raises(InputError, match="End it with a Linear"):
        trained(replace(training, trained="head"), [assigned(1)], digits, shown, folder=models)


@pytest.mark.parametrize("device", ["gpu", "cuda:99", "mps", "meta"])
def test_devices_that_are_not_there(device: str, digits: Examples, shown: dict[str, Examples]) -> None:
    for how in ("all", "head"):
        training = Training("linear", steps=1, trained=how)
        with pytest.raises(InputError, match=device):
            trained(training, [assigned(1)], digits, shown, device=device)
        with pytest.raises(InputError, match=device):
            measure_seconds(training, digits, 40, device=device)


def test_an_unknown_architecture_is_an_input_error(digits: Examples, shown: dict[str, Examples]) -> None:
    with pytest.raises(InputError, match="not known"):
        trained(Training("perceptron"), [assigned(1)], digits, shown)


# Networks that draw numbers


def test_dropout_follows_the_augmentation_seed(digits: Examples, shown: dict[str, Examples], models: Path) -> None:
    for name in ("nets:dropout", "nets:Hidden"):
        training = Training(name, batch=16, steps=8)
        base = assigned(3)
        runs = [assigned(1), base, replace(base, augmentation=9), assigned(2), base]
        found = trained(training, runs, digits, shown, folder=models)
        torch.rand(3)
        assert_same(found[1], trained(training, [base], digits, shown, folder=models)[0])
        assert_same(found[1], found[4])
        assert differ(found[1], found[2])


def test_dropout_is_the_plain_loop_s_and_off_in_evaluation(
    digits: Examples, shown: dict[str, Examples], models: Path
) -> None:
    training, run = Training("nets:dropout", batch=16, steps=8, schedule="constant"), assigned(3)
    (found,) = trained(training, [run], digits, shown, folder=models)
    torch.manual_seed(run.init)
    model = make_network(training, digits.shape, 10, models)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    rows = torch.from_numpy(run.rows)[None]
    line = visits(torch.tensor([run.order]), rows, 0, 8 * 16)[0].view(8, 16)
    x = (torch.from_numpy(digits.x).float() / 255 - 0.3) / 0.37
    torch.manual_seed(run.augmentation)
    for index in line:
        optimiser.zero_grad()
        functional.cross_entropy(model(x[index]), torch.from_numpy(digits.y)[index]).backward()
        optimiser.step()
    for key, weight in model.state_dict().items():
        assert np.allclose(end(found)[key], weight, rtol=1e-5, atol=1e-6)


def test_networks_that_draw_are_recognised(models: Path, digits: Examples) -> None:
    x = torch.rand(2, 1, 8, 8)
    for name, named, found in (
        ("nets:dropout", True, True),
        ("nets:Hidden", False, True),
        ("mlp", False, False),
        ("nets:wrong", False, False),
    ):
        model = make_network(Training(name), (1, 8, 8), 10, models)
        state = torch.random.get_rng_state()
        assert stochastic(model) == named
        assert draws(model, x) == found
        assert torch.equal(state, torch.random.get_rng_state())


def test_an_encoder_of_text(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=30,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=8,
    )
    transformers.BertModel(config).save_pretrained(tmp_path / "bert")
    rng = np.random.default_rng(0)
    text = Examples(rng.integers(1, 30, (40, 6)), rng.integers(0, 2, 40), 2, padding=0)
    training = Training("hf:bert", optimiser="adam", rate=1e-3, batch=8, steps=6)
    base = Assignment(np.arange(30), 1, 2, 3)
    runs = [replace(base, init=9), base, replace(base, augmentation=4)]
    found = trained(training, runs, text, {"test": text}, folder=tmp_path)
    assert all(one.error is None for one in found)
    assert_same(found[1], trained(training, [base], text, {"test": text}, folder=tmp_path)[0])
    assert differ(found[1], found[2])


# Details of networks


def test_frozen_and_unused_weights_stay_and_buffers_start_anew(
    digits: Examples, shown: dict[str, Examples], models: Path
) -> None:
    runs = [assigned(1), assigned(2)]
    for name, key in (("nets:frozen", "1.weight"), ("nets:Hidden", "unused.weight")):
        training = Training(name, steps=5, batch=16)
        start = trained(replace(training, steps=0), runs, digits, shown, folder=models)
        found = trained(training, runs, digits, shown, folder=models)
        for one, other in zip(start, found, strict=True):
            assert np.array_equal(end(one)[key], end(other)[key])
            assert any(not np.array_equal(v, end(other)[k]) for k, v in end(one).items())


def test_what_was_yielded_does_not_change_later(digits: Examples, shown: dict[str, Examples]) -> None:
    for name in ("mlp", "cnn"):
        training = Training(name, options={"width": 4}, steps=3)
        keep = Keep(checkpoints="end", features=True)
        (found,) = trained(training, [assigned(1)], digits, shown, keep=keep)
        before = {k: v.copy() for k, v in end(found).items()}
        trained(training, [assigned(2), assigned(3)], digits, shown)
        assert all(np.array_equal(v, end(found)[k]) for k, v in before.items())


# Time and memory


@pytest.mark.parametrize(
    "training",
    [
        Training("mlp", epochs=3),
        Training("mlp", epochs=3, schedule="searched"),
        Training("mlp", rate=(0.1, 0.2), trained="head"),
        Training("nets:dropout"),
        Training("cnn", options={"width": 2}, augmentation=MOVES),
    ],
)
def test_measuring_gives_a_time_and_disturbs_nothing(
    training: Training, digits: Examples, shown: dict[str, Examples], models: Path
) -> None:
    settled = replace(training, epochs=1, rate=0.1, schedule="linear")
    before = trained(settled, [assigned(1)], digits, shown, folder=models)
    seconds = measure_seconds(training, digits, 100, folder=models)
    assert math.isfinite(seconds)
    assert seconds > 0
    assert_same(before[0], trained(settled, [assigned(1)], digits, shown, folder=models)[0])


def test_memory_does_not_grow(digits: Examples, shown: dict[str, Examples]) -> None:
    def tensors() -> int:
        gc.collect()
        return sum(issubclass(type(o), torch.Tensor) for o in gc.get_objects())

    kinds = [Training("mlp", options={"width": 4}, steps=2, batch=b) for b in (8, 16)]
    kinds += [Training("cnn", options={"width": 2}, steps=2), Training("mlp", trained="head")]
    kinds[3] = replace(kinds[3], steps=2, options={"width": 4})
    runs = [assigned(seed) for seed in range(2)]
    counts = []
    for _ in range(3):
        for training in kinds:
            trained(training, runs, digits, shown)
        counts.append(tensors())
    assert counts[1] == counts[-1]
    assert sum(map(len, POOL.lanes.values())) <= 3
    kept = {lane.setup.batch for lanes in POOL.lanes.values() for lane in lanes}
    assert len(kept) == 1


# Lanes side by side, with a stopwatch that is set


def grown(most, seconds, *, again=None):
    """The number of lanes for so many runs, where a step of so many takes the seconds given."""
    pool = LanePool(stopwatch=lambda lanes: seconds(len(lanes)))

    def lane():
        return SimpleNamespace(is_taken=False, setup=SimpleNamespace(cuda=False))

    return [len(pool.grown("single", lambda: lane, n)) for n in (most, again) if n is not None]


def test_every_run_has_a_lane_where_that_is_quicker():
    for most, expected in ((1, 1), (2, 2), (3, 3), (5, 5), (8, 8)):
        assert grown(most, lambda count: 1.0) == [expected]


def test_lanes_that_gain_nothing_are_not_made():
    assert grown(8, lambda count: float(count)) == [1]
    assert grown(8, lambda count: max(1.0, count / 4)) == [4]


def test_what_was_found_by_doubling_holds_for_later_runs():
    assert grown(8, lambda count: max(1.0, count / 2), again=8) == [2, 2]
    # the third of three lanes gained little: that says nothing of a fourth
    assert grown(3, lambda count: 1.5 if count == 3 else 1.0, again=8) == [2, 8]
