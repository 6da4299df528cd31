"""Networks that predict numbers: against plain torch, known solutions, and themselves."""

from __future__ import annotations

import io
import math
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors.numpy import save_file
from torch.nn import functional

from curvewise.errors import InputError
from curvewise.nn import Assignment, Examples, Keep, Trained, Training
from curvewise.nn.architectures import Unet6
from curvewise.nn.augmentation import make_augmentation, visits
from curvewise.nn.devices import reproducible
from curvewise.nn.engine import measure_seconds, resident, train
from curvewise.nn.lane import DENSE_BATCH, EVALUATION_BATCH, Lane, Setup, make_single, make_stack
from curvewise.nn.networks import make_network, notes_of
from curvewise.nn.optimisers import make_loss, number_losses
from curvewise.nn.schedules import Goal, drive, rate_factors
from curvewise.nn.task import settle_training, split_rows

CPU = torch.device("cpu")
LOSSES = {"l1": functional.l1_loss, "l2": functional.mse_loss}
OPTIMISERS: dict[str, Any] = {
    "sgd": lambda p, decay: torch.optim.SGD(p, lr=1.0, momentum=0.9, weight_decay=decay),
    "adamw": lambda p, decay: torch.optim.AdamW(p, lr=1.0, weight_decay=decay),
}

MODELS = """
from torch import nn

def flat(shape, outputs):
    return nn.Sequential(nn.Conv2d(shape[0], outputs[0], 3, padding=1), nn.Tanh())

def wrong(shape, outputs):
    return nn.Sequential(nn.Flatten(), nn.LazyLinear(1))

class Flat(nn.Module):

    def __init__(self, shape, outputs, when):
        super().__init__()
        self.linear, self.when = nn.Linear(shape[0], outputs[0]), when

    def forward(self, x):
        flat = {"always": True, "training": self.training, "many": len(x) > 2}[self.when]
        return self.linear(x).squeeze(-1) if flat else self.linear(x)
"""


def rows_of_numbers(seed: int, count: int = 60, wide: int = 5, numbers: int = 3) -> Examples:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, wide)).astype(np.float32)
    y = np.sin(x @ rng.normal(size=(wide, numbers))) + 0.1 * rng.normal(size=(count, numbers))
    return Examples(x, y.astype(np.float32), 0)


def images(seed: int, count: int = 30, side: int = 8) -> Examples:
    """Blurred inputs are the targets."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 256, size=(count, 2, side, side)).astype(np.uint8)
    pad = np.pad(x.mean(axis=1, keepdims=True) / 255, [(0, 0), (0, 0), (1, 1), (1, 1)])
    y = sum(pad[..., i : i + side, j : j + side] for i in range(3) for j in range(3)) / 9
    return Examples(x, y.astype(np.float32), 0, (0.5, 0.5), (0.25, 0.3))


def prepared(examples: Examples) -> torch.Tensor:
    x = torch.from_numpy(examples.x)
    if examples.x.ndim == 2:
        return x
    mean, std = (torch.tensor(v)[:, None, None] for v in (examples.mean, examples.std))
    return (x.float() / 255 - mean) / std


def by_hand(
    training: Training, examples: Examples, assignment: Assignment, folder: Path | None = None
) -> torch.nn.Module:
    """A loop with torch's own optimiser and loss."""
    torch.manual_seed(assignment.init)
    model = make_network(training, examples.shape, examples.outputs, folder)
    optimiser = OPTIMISERS[training.optimiser](model.parameters(), training.weight_decay)
    n = len(assignment.rows)
    batch, steps = training.batch_for(n), training.steps_for(n)
    order, rows = torch.tensor([assignment.order]), torch.from_numpy(assignment.rows)[None]
    line = visits(order, rows, 0, steps * batch)[0]
    x, y = prepared(examples), torch.from_numpy(examples.y)
    loss_of = LOSSES[training.loss or "l2"]
    for step, factor in enumerate(rate_factors(training, steps)):
        place = torch.arange(step * batch, (step + 1) * batch)
        index = line[place]
        shown = x[index]
        if training.augmentation:
            change = make_augmentation(training.augmentation, examples.shape)
            mean, std = torch.tensor(examples.mean), torch.tensor(examples.std)
            raw = torch.from_numpy(examples.x[index.numpy()]).float() / 255
            seed = torch.tensor(assignment.augmentation)
            raw = change(raw, seed, place // n, index, mean)
            shown = (raw - mean[:, None, None]) / std[:, None, None]
        optimiser.param_groups[0]["lr"] = training.rates[0] * float(factor)
        optimiser.zero_grad()
        loss_of(model(shown), y[index]).backward()
        optimiser.step()
    return model.eval()


ROWS, IMAGE = "rows", "images"
SMALL = {"options": {"width": 8}, "rate": 0.02, "batch": 16}
LOOPS: dict[str, tuple[str, Training]] = {
    "mlp, l1": (ROWS, Training("mlp", **SMALL, loss="l1", epochs=4)),
    "mlp, usual loss": (ROWS, Training("mlp", **SMALL, epochs=2.5, weight_decay=0.01)),
    "linear, adamw": (ROWS, Training("linear", optimiser="adamw", rate=0.01, loss="l1", steps=9)),
    "mlp, batch norm": (ROWS, Training("mlp", options={"width": 8, "batch_norm": True}, epochs=3)),
    "unet, l1": (IMAGE, Training("unet", options={"width": 2}, rate=0.02, loss="l1", steps=4)),
    "own, noise": (IMAGE, Training("nets:flat", rate=0.1, batch=7, steps=8, augmentation=("noise:0.1", "cutout:3"))),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    (folder / "nets.py").write_text(MODELS)
    return folder


def trained(
    training: Training, examples: Examples, shown: Examples, runs: list[Assignment], **how: Any
) -> list[Trained]:
    how = {"keep": Keep(checkpoints="end", predictions=True), **how}
    found = dict(train(training, runs, examples, {"test": shown}, **how))
    return [found[i] for i in range(len(runs))]


@pytest.mark.parametrize("name", LOOPS)
def test_a_training_is_that_of_a_plain_loop(name: str, models: Path) -> None:
    kind, training = LOOPS[name]
    make = rows_of_numbers if kind == ROWS else images
    examples = make(0)
    shown = replace(examples, x=examples.x[::-1].copy(), y=examples.y[::-1] + np.float32(0.1))
    rng = np.random.default_rng(1)
    runs = [Assignment(rng.permutation(len(examples.y))[:24], s, s + 1, s + 2) for s in (3, 4, 5)]
    ours = trained(training, examples, shown, runs, folder=models)[1]
    assert ours.error is None, ours.error
    model = by_hand(training, examples, runs[1], models)
    for key, weight in model.state_dict().items():
        assert np.allclose(ours.checkpoints["end"][key], weight, rtol=1e-4, atol=5e-6), key
    with torch.no_grad():
        predicted = model(prepared(shown))
        seen = model(prepared(examples)[runs[1].rows])
    assert ours.predictions["test"].shape == shown.y.shape
    assert np.allclose(ours.predictions["test"], predicted, atol=2e-5)
    loss_of = LOSSES[training.loss or "l2"]
    each = [float(loss_of(p, torch.tensor(y))) for p, y in zip(predicted, shown.y, strict=True)]
    assert ours.losses["test"].shape == (len(shown.y),)
    assert np.allclose(ours.losses["test"], each, rtol=1e-3, atol=1e-5)
    theirs = float(loss_of(seen, torch.from_numpy(examples.y[runs[1].rows])))
    assert ours.metrics["train_loss"] == pytest.approx(theirs, rel=1e-3)
    assert "train_error" not in ours.metrics
    assert not ours.probabilities


def test_least_squares_are_found() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 4)).astype(np.float32)
    y = (x @ rng.normal(size=(4, 2)) + [1.0, -2.0] + 0.3 * rng.normal(size=(80, 2))).astype("f4")
    training = Training("linear", rate=0.05, batch=80, steps=400, schedule="constant")
    examples = Examples(x, y, 0)
    (found,) = trained(training, examples, examples, [Assignment(np.arange(80))])
    solution, residuals, *_ = np.linalg.lstsq(np.c_[x, np.ones(80)], y, rcond=None)
    weights = found.checkpoints["end"]
    assert np.allclose(weights["1.weight"].T, solution[:4], atol=1e-3)
    assert np.allclose(weights["1.bias"], solution[4], atol=1e-3)
    assert found.metrics["train_loss"] == pytest.approx(residuals.sum() / y.size, rel=1e-4)


def test_least_absolute_differences_are_at_the_median() -> None:
    y = np.array([[0.0, 5.0], [1.0, 5.5], [2.0, 9.0], [7.0, 6.0], [100.0, 50.0]], dtype=np.float32)
    examples = Examples(np.zeros((5, 1), dtype=np.float32), y, 0)
    training = Training("linear", rate=0.5, loss="l1", momentum=0.0, batch=5, steps=1000)
    (found,) = trained(training, examples, examples, [Assignment(np.arange(5))])
    assert np.allclose(found.predictions["test"], np.median(y, axis=0), atol=0.05)
    assert found.metrics["train_loss"] == pytest.approx(np.abs(y - np.median(y, axis=0)).mean(), rel=1e-3)


def driven(lane: Lane, goal: Goal, runs: list[Assignment]) -> list[Trained]:
    course = drive(lane, goal, runs)
    while True:
        try:
            next(course)
        except StopIteration as stop:
            found: list[Trained] = stop.value
            return found


def parts(one: Trained) -> list[NDArray[Any]]:
    metrics = np.array(list(one.metrics.values()))
    return [*one.checkpoints["end"].values(), one.losses["t"], one.predictions["t"], metrics]


@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 1000), loss=st.sampled_from(["l1", "l2"]), wide=st.integers(1, 30), numbers=st.integers(1, 9)
)
def test_a_stack_is_nothing_but_its_members(seed: int, loss: str, wide: int, numbers: int) -> None:
    examples = rows_of_numbers(seed, 30, wide, numbers)
    training = Training("mlp", options={"width": 7}, rate=0.02, steps=4, batch=5, loss=loss)
    rng = np.random.default_rng(seed)
    runs = [Assignment(rng.permutation(30)[:12], i, i, i) for i in range(4)]
    shown = {"t": resident(rows_of_numbers(seed + 1, 6, wide, numbers), CPU)}
    goal = Goal(training, shown, Keep(checkpoints="end", predictions=True))
    setup = Setup(training, resident(examples, CPU), examples.shape, examples.outputs, 5, CPU)
    with reproducible():
        whole = driven(make_stack(setup, 4)(), goal, runs)
        other = [one for run in runs for one in driven(make_stack(setup, 2)(), goal, [run])]
        single = make_single(setup)()
        alone = [driven(single, goal, [run])[0] for run in runs]
    for mine, pair, one in zip(whole, other, alone, strict=True):
        for a, b, c in zip(parts(mine), parts(pair), parts(one), strict=True):
            assert np.array_equal(a, b)
            assert np.allclose(a, c, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", ["mlp, l1", "unet, l1"])
def test_company_does_not_matter(name: str, models: Path) -> None:
    kind, training = LOOPS[name]
    examples = rows_of_numbers(0) if kind == ROWS else images(0)
    runs = [Assignment(np.arange(20) + s, s, s, s) for s in range(5)]
    together = trained(training, examples, examples, runs)
    alone = [trained(training, examples, examples, [run], in_flight=1)[0] for run in runs]
    for one, other in zip(together, alone, strict=True):
        assert one.metrics == other.metrics
        assert np.array_equal(one.losses["test"], other.losses["test"])
        assert np.array_equal(one.predictions["test"], other.predictions["test"])


def test_numbers_are_only_kept_where_asked_for() -> None:
    examples = rows_of_numbers(0)
    (found,) = trained(Training("linear"), examples, examples, [Assignment(np.arange(9))], keep=None)
    assert not found.predictions
    assert found.losses["test"].dtype == np.float32


def test_a_training_that_diverges_says_so() -> None:
    examples = rows_of_numbers(0)
    training = Training("linear", rate=1e9, epochs=20)
    (found,) = trained(training, examples, examples, [Assignment(np.arange(40))])
    assert str(found.error).startswith("diverged")


def test_early_stopping_goes_by_the_validation_loss() -> None:
    examples = rows_of_numbers(2, count=80)
    training = Training("mlp", **SMALL, loss="l1", schedule="early-stop", validation=0.25, patience=3, epochs=60)
    assignment = Assignment(np.arange(60), 1, 2, 3)
    (found,) = trained(training, examples, examples, [assignment])
    _, held = split_rows(assignment.rows, np.zeros(80, dtype=np.int64), 0.25)
    model = make_network(training, examples.shape, examples.outputs)
    model.load_state_dict({k: torch.tensor(v) for k, v in found.checkpoints["end"].items()})
    with torch.no_grad():
        loss = functional.l1_loss(model.eval()(prepared(examples)[held]), torch.tensor(examples.y[held]))
    assert len(held) == 15
    assert found.metrics["validation_loss"] == pytest.approx(float(loss), rel=1e-5)
    assert "validation_error" not in found.metrics


@pytest.mark.parametrize("schedule", ["plateau", "searched"])
def test_other_schedules_that_watch_take_numbers(schedule: str) -> None:
    examples = rows_of_numbers(2, count=80)
    usual = Training("mlp", **SMALL, schedule=schedule, epochs=30)
    untrained, found = (
        trained(training, examples, examples, [Assignment(np.arange(60))])[0]
        for training in (replace(usual, epochs=0), usual)
    )
    assert found.error is None
    assert found.metrics["train_loss"] < 0.7 * untrained.metrics["train_loss"]


def test_a_head_of_numbers_is_trained_on_features() -> None:
    examples = rows_of_numbers(2, count=80)
    training = Training("mlp", **SMALL, trained="head", epochs=40)
    (found,) = trained(training, examples, examples, [Assignment(np.arange(60), 5)])
    assert found.error is None
    torch.manual_seed(5)
    model = make_network(training, examples.shape, examples.outputs)
    head = {k: torch.tensor(v) for k, v in found.checkpoints["end"].items()}
    model.load_state_dict(head, strict=False)
    with torch.no_grad():
        assert np.allclose(model.eval()(prepared(examples)), found.predictions["test"], atol=1e-4)


WRONG: dict[str, tuple[Training, Any, str]] = {
    "l1 for classes": (Training(loss="l1"), 10, "for numbers"),
    "cross-entropy for numbers": (Training(loss="cross-entropy"), (2,), "for classes"),
    "smoothing": (Training(label_smoothing=0.1), (2,), "label_smoothing"),
    "flip": (Training("unet", augmentation=("noise:0.1", "flip")), (1, 8, 8), r"\['flip'\]"),
    "rotation": (Training("a:b", augmentation=("rotation:9",)), (1, 8, 8), "rotation"),
    "head": (Training("a:b", trained="head"), (1, 8, 8), "trained='head'"),
    "row for an image": (Training("resnet9"), (1, 8, 8), "'unet'"),
    "image for a row": (Training("unet"), (3,), "rows of numbers"),
    "image for classes": (Training("unet"), 3, "classes"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_contradicts_the_targets_is_refused(name: str) -> None:
    training, outputs, match = WRONG[name]
    with pytest.raises(InputError, match=match):
        settle_training(training, outputs)


def test_the_engine_refuses_it_too() -> None:
    examples = rows_of_numbers(0)
    with pytest.raises(InputError, match="cross-entropy"):
        trained(Training(loss="cross-entropy"), examples, examples, [Assignment(np.arange(9))])
    with pytest.raises(InputError, match="cross-entropy"):
        measure_seconds(Training(loss="cross-entropy"), examples, 9)
    with pytest.raises(InputError, match="not known"):
        Training(loss="huber")


def test_rows_of_pixels_may_be_moved() -> None:
    moved = Training("cnn", augmentation=("flip", "rotation:10"))
    assert settle_training(moved, (2,)).augmentation == moved.augmentation


def test_a_network_with_other_outputs_is_refused(models: Path) -> None:
    examples = images(0)
    with pytest.raises(InputError, match=r"\(2, 1\).*\(2, 1, 8, 8\)"):
        trained(Training("nets:wrong"), examples, examples, [Assignment(np.arange(9))], folder=models)


@pytest.mark.parametrize("loss", ["l1", "l2"])
@pytest.mark.parametrize("when", ["training", "many"])
def test_outputs_are_never_spread_over_targets(when: str, loss: str, models: Path) -> None:
    """(8,) against (8, 1) would be 64 differences."""
    examples = rows_of_numbers(0, numbers=1)
    training = Training("nets:Flat", options={"when": when}, batch=8, epochs=1, loss=loss)
    (found,) = trained(training, examples, examples, [Assignment(np.arange(20))], folder=models)
    assert "shape (8,) for 8 inputs, and their targets have shape (8, 1)" in str(found.error)
    assert not found.losses
    with pytest.raises(InputError, match=r"shape \(2,\) for 2 inputs"):
        trained(
            replace(training, options={"when": "always"}),
            examples,
            examples,
            [Assignment(np.arange(20))],
            folder=models,
        )


def test_predictions_are_never_spread_over_targets() -> None:
    y = torch.zeros(4, 1)
    for outputs in (torch.zeros(4), torch.zeros(3, 4), torch.zeros(4, 2), torch.zeros(2, 1, 1)):
        with pytest.raises(InputError, match="shape of a target"):
            number_losses(outputs, y, "l1")
    assert number_losses(torch.ones(3, 4, 1), y, "l2").tolist() == [[1.0] * 4] * 3


@pytest.mark.parametrize("other", ["columns", "classes"])
def test_other_sets_must_have_targets_of_the_same_kind(other: str) -> None:
    examples = rows_of_numbers(0)
    classes = Examples(examples.x, np.arange(60) % 2, 2)
    shown = classes if other == "classes" else replace(examples, y=examples.y[:, :1])
    with pytest.raises(InputError, match="evaluation set 'test'"):
        trained(Training("linear"), examples, shown, [Assignment(np.arange(9))])
    with pytest.raises(InputError, match="evaluation set 'test'"):
        trained(Training("linear"), classes, examples, [Assignment(np.arange(9))])


def test_numbers_without_an_axis_are_refused() -> None:
    examples = rows_of_numbers(0)
    flat = replace(examples, y=examples.y[:, 0])
    with pytest.raises(InputError, match=r"y\[:, None\]"):
        trained(Training("mlp"), flat, flat, [Assignment(np.arange(9))])


@pytest.mark.parametrize("loss", ["l1", "l2"])
def test_sets_are_evaluated_in_parts(loss: str) -> None:
    """More examples than are shown to a network at once, and not a multiple of that."""
    rng = np.random.default_rng(0)
    pictures = images(0, count=30, side=4)
    many = Examples(
        rng.integers(0, 256, size=(DENSE_BATCH + 7, 2, 4, 4)).astype(np.uint8),
        rng.normal(size=(DENSE_BATCH + 7, 1, 4, 4)).astype(np.float32),
        0,
        pictures.mean,
        pictures.std,
    )
    table, long = rows_of_numbers(0), rows_of_numbers(1, count=2 * EVALUATION_BATCH + 1)
    small: dict[str, Any] = {"options": {"width": 2}, "steps": 2, "batch": 7, "loss": loss}
    for name, examples, shown in (("unet", pictures, many), ("mlp", table, long)):
        training = Training(name, **small)
        (found,) = trained(training, examples, shown, [Assignment(np.arange(20))])
        model = make_network(training, examples.shape, examples.outputs)
        model.load_state_dict({k: torch.tensor(v) for k, v in found.checkpoints["end"].items()})
        with torch.no_grad():
            predicted = model.eval()(prepared(shown))
        assert np.allclose(found.predictions["test"], predicted, atol=1e-5)
        each = LOSSES[loss](predicted, torch.from_numpy(shown.y), reduction="none").flatten(1)
        assert np.allclose(found.losses["test"], each.mean(dim=1), atol=1e-4)


def test_settings_that_came_later_leave_the_others_as_they_were() -> None:
    assert not {"loss", "weights_into"} & set(Training().as_dict())
    assert Training(loss="l1").as_dict()["loss"] == "l1"
    for setting in ("weights", "like"):
        with pytest.raises(InputError, match=f"{setting}=.*path of a file"):
            Training(**{setting: ""})
    with pytest.raises(InputError, match="weights_into"):
        Training(weights_into="encoder")


# The encoder and decoder


@pytest.mark.parametrize("architecture", ["unet", "unet6"])
@pytest.mark.parametrize("encoder", ["resnet18", "resnet50"])
@pytest.mark.parametrize("stem", ["small", "imagenet"])
def test_images_of_any_size_become_images_of_any_size(architecture: str, encoder: str, stem: str) -> None:
    torch.manual_seed(0)
    options = {"width": 2 if architecture == "unet" else 8, "encoder": encoder, "stem": stem}
    for shape, outputs in (((1, 9, 13), (2, 9, 13)), ((3, 32, 32), (1, 16, 20))):
        model = make_network(Training(architecture, options=options), shape, outputs)
        found = model(torch.randn(2, *shape))
        assert found.shape == (2, *outputs)
        found.sum().backward()
        assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())


def test_six_blocks_double_the_image_with_the_stages_of_the_encoder_beside() -> None:
    """Figure 2 of Atanov et al.: five links, from the last stage to the first convolution; the sixth block has none."""
    torch.manual_seed(0)
    model = make_network(Training("unet6", options={"width": 16}), (3, 64, 64), (2, 64, 64)).eval()
    seen: dict[str, list[tuple[int, ...]]] = {"blocks": [], "links": [], "pool": []}
    for name, sizes in seen.items():
        for module in [model.pool] if name == "pool" else getattr(model, name):
            module.register_forward_hook(lambda _, given, out, sizes=sizes: sizes.append(tuple(out.shape[1:])))
    x = torch.randn(1, 3, 64, 64)
    before = model(x)
    sides = [2, 4, 8, 16, 32, 64]
    assert seen["blocks"] == [(w, s, s) for w, s in zip([128, 64, 32, 16, 8, 4], sides, strict=True)]
    assert seen["links"] == seen["blocks"][:5]
    assert seen["pool"] == [(512, 1, 1)]  # a sixty-fourth of the side, which six blocks double
    for link in model.links:  # each is used
        with torch.no_grad():
            link.weight.zero_()
        assert not torch.allclose(before, before := model(x))


def test_the_encoder_of_the_paper_is_a_resnet50_without_its_last_layer() -> None:
    """25,557,032 weights are published for ResNet-50, of which 2,049,000 are its last layer's."""
    model = Unet6((3, 64, 64), (1, 64, 64))
    assert sum(p.numel() for p in model.encoder.parameters()) == 25_557_032 - 2_049_000


def test_a_step_is_compiled_whole() -> None:
    """What a GPU is given must not come apart; traced here, without writing kernels."""
    model = make_network(Training("unet", options={"width": 2}), (1, 9, 9), (1, 9, 9))
    try:
        traced = torch.compile(model, backend="eager", fullgraph=True, dynamic=False)
        x = torch.randn(2, 1, 9, 9)
        assert torch.allclose(traced(x), model(x), atol=1e-5)
        loss = make_loss(Training("unet", loss="l1"))
        whole = torch.compile(loss, backend="eager", fullgraph=True, dynamic=False)
        assert float(whole(x, torch.zeros_like(x))) == pytest.approx(float(x.abs().mean()))
    finally:
        torch._dynamo.reset()


def test_an_unknown_encoder_is_refused() -> None:
    with pytest.raises(InputError, match="resnet34"):
        make_network(Training("unet", options={"encoder": "vgg11"}), (1, 8, 8), (1, 8, 8))


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, NDArray[Any]]]:
    """A network that was made for seven classes, in three kinds of files."""
    folder = tmp_path_factory.mktemp("weights")
    torch.manual_seed(9)
    model = make_network(Training("resnet18", options={"width": 2}), (2, 8, 8), 7)
    state = model.state_dict()
    arrays = {k: v.numpy() for k, v in state.items()}
    save_file(arrays, folder / "net.safetensors")
    np.savez(folder / "net.npz", **arrays)
    torch.save(state, folder / "net.pt")
    return folder, arrays


UNET: dict[str, Any] = {"architecture": "unet", "options": {"width": 2}}


@pytest.mark.parametrize("file", ["net.safetensors", "net.npz", "net.pt"])
def test_an_encoder_starts_from_a_classifier(file: str, classifier: tuple[Path, dict[str, NDArray[Any]]]) -> None:
    folder, arrays = classifier
    training = Training(**UNET, weights=file, weights_into="encoder")
    torch.manual_seed(1)
    bare = make_network(Training(**UNET), (2, 8, 8), (1, 8, 8)).state_dict()
    torch.manual_seed(1)
    model = make_network(training, (2, 8, 8), (1, 8, 8), folder)
    for name, value in model.state_dict().items():
        inner = name.removeprefix("encoder.")
        expected = arrays[inner] if inner != name else bare[name].numpy()
        assert np.array_equal(value, expected), name
    (note,) = notes_of(model)
    assert f"{len(arrays) - 2} arrays were loaded into encoder" in note
    assert "left out of it: fc.bias, fc.weight" in note
    assert "Initialised randomly in the network: decoder.0.0.weight" in note


def test_a_whole_network_fills_a_part_or_all(tmp_path: Path) -> None:
    torch.manual_seed(2)
    whole = make_network(Training(**UNET), (2, 8, 8), (1, 8, 8)).state_dict()
    save_file({k: v.numpy() for k, v in whole.items()}, tmp_path / "end.safetensors")
    training = Training(**UNET, weights="end.safetensors")
    model = make_network(training, (2, 8, 8), (1, 8, 8), tmp_path)
    assert all(torch.equal(v, whole[k]) for k, v in model.state_dict().items())
    assert notes_of(model) == ()
    part = replace(training, weights_into="encoder")
    model = make_network(part, (2, 8, 8), (3, 8, 8), tmp_path)
    assert torch.equal(model.state_dict()["encoder.conv1.weight"], whole["encoder.conv1.weight"])
    assert "left out of it: decoder.0.0.weight" in notes_of(model)[0]


def test_weights_that_do_not_fit_a_part_are_refused(
    classifier: tuple[Path, dict[str, NDArray[Any]]], tmp_path: Path
) -> None:
    folder, arrays = classifier
    into = {"weights": "net.npz", "weights_into": "encoder"}
    for training, match in (
        (Training(**UNET, weights="net.npz"), "do not fit architecture='unet'"),
        (Training("unet", options={"width": 4}, **into), "of another shape"),
        (Training("unet", options={"width": 2, "encoder": "resnet34"}, **into), "missing"),
        (Training(**UNET, weights="net.npz", weights_into="body"), "encoder, decoder, last"),
    ):
        with pytest.raises(InputError, match=match):
            make_network(training, (2, 8, 8), (1, 8, 8), folder)
    (tmp_path / "cut.npz").write_bytes((folder / "net.npz").read_bytes()[:200])
    cut = Training(**UNET, weights="cut.npz", weights_into="encoder")
    with pytest.raises(InputError, match="cannot be read"):
        make_network(cut, (2, 8, 8), (1, 8, 8), tmp_path)
    assert math.prod(arrays["fc.weight"].shape) == 7 * 16
    with pytest.raises(InputError, match="has no weights"):
        make_network(Training(**UNET, weights="net.npz", weights_into="encoder.relu"), (2, 8, 8), (1, 8, 8), folder)


HOSTILE: dict[str, tuple[Any, str]] = {
    "objects": (np.array([{}], dtype=object), "cannot be read"),
    "texts": (np.array(["a"]), "cannot be read"),
    "complex": (np.zeros((2, 2, 3, 3), dtype=np.complex64), "complex"),
    "nan": (np.full((2, 2, 3, 3), np.nan, dtype=np.float32), "NaN"),
    "no axes": (np.float32(1), "of another shape"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_arrays_that_are_no_weights_are_refused(
    name: str, classifier: tuple[Path, dict[str, NDArray[Any]]], tmp_path: Path
) -> None:
    value, match = HOSTILE[name]
    np.savez(tmp_path / "net.npz", **{**classifier[1], "conv1.weight": value})
    training = Training(**UNET, weights="net.npz", weights_into="encoder")
    with pytest.raises(InputError, match=match):
        make_network(training, (2, 8, 8), (1, 8, 8), tmp_path)


def test_an_array_that_claims_to_be_huge_is_refused(tmp_path: Path) -> None:
    about = {"descr": "<f8", "fortran_order": False, "shape": (10**13,)}
    with zipfile.ZipFile(tmp_path / "net.npz", "w") as file:
        head = io.BytesIO()
        np.lib.format.write_array_header_1_0(head, about)
        file.writestr("conv1.weight.npy", head.getvalue())
    training = Training(**UNET, weights="net.npz", weights_into="encoder")
    with pytest.raises(InputError, match="cannot be read"):
        make_network(training, (2, 8, 8), (1, 8, 8), tmp_path)


def test_notes_of_weights_come_with_the_run(classifier: tuple[Path, dict[str, NDArray[Any]]]) -> None:
    training = Training(**UNET, weights="net.npz", weights_into="encoder", steps=1, batch=4)
    examples = images(0)
    run = Assignment(np.arange(8))
    (found,) = trained(training, examples, examples, [run], folder=classifier[0])
    assert found.error is None
    assert "loaded into encoder" in found.notes[0]
