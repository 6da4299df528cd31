"""What is given back as it was, and what is refused with a word of advice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.nn.networks import borrowed
from curvewise.response.networks.measurement import batch_size, measure_response, measure_responses, measure_sensitivity
from curvewise.response.networks.perturbations import find_perturbation
from curvewise.response.networks.trial import Execution

X = np.random.default_rng(0).random((40, 1, 6, 6)).astype(np.float32)
Y = np.arange(40) % 4


def grouped(options: dict[str, Any]) -> dict[str, Any]:
    """Put options of reading, execution and perturbation where they belong."""
    left = dict(options)
    reading = {k: left.pop(k) for k in ("labels", "mean", "std") if k in left}
    how = {k: left.pop(k) for k in ("device", "batch", "precision", "compile") if k in left}
    look = {k: left.pop(k) for k in ("fill", "interpolation", "padding", "mask") if k in left}
    if look:
        left["perturbation"] = find_perturbation(left["perturbation"], **look)
    return left | ({"reading": reading} if reading else {}) | ({"device": Execution(**how)} if how else {})


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Dropout(0.5), nn.Flatten(), nn.Linear(32, 4))


class Broken(nn.Module):
    """Fails after some calls."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = network()
        self.left = 3

    def forward(self, x: Tensor) -> Tensor:
        self.left -= 1
        if self.left < 0 and not torch.jit.is_scripting():
            raise KeyError("out of order")
        return self.inside(x) if x.sum() > -1 else x


def state(model: nn.Module) -> list[Any]:
    return [
        [(name, m.training, dict(m._forward_hooks)) for name, m in model.named_modules()],
        [(p.requires_grad, p.grad is None or p.grad.clone(), p.device) for p in model.parameters()],
        {name: value.clone() for name, value in model.state_dict().items()},
    ]


def assert_same(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if isinstance(one, Tensor):
        assert torch.equal(one, other)
    elif isinstance(one, list | tuple):
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
    elif isinstance(one, dict):
        assert_same(list(one.values()), list(other.values()))
    else:
        assert one == other


@pytest.mark.parametrize("layer", [None, "0", "inside.0"])
@pytest.mark.filterwarnings("ignore:The model is right on")
def test_a_network_comes_back_as_it_was(layer: str | None) -> None:
    failing = layer == "inside.0"
    model = Broken() if failing else network()
    inside = model.inside if isinstance(model, Broken) else model
    inside[1].eval()  # some parts are frozen
    inside[0].weight.requires_grad_(False)
    inside[4].register_forward_hook(lambda m, given, output: None)
    model(torch.from_numpy(X)).sum().backward()
    before = state(model)
    if failing:
        with pytest.raises(KeyError):
            measure_response(model, (X, Y), layer=layer)
    else:
        measure_response(model, (X, Y), layer=layer)
    assert_same(before, state(model))
    assert torch.is_grad_enabled()
    model_output = inside(torch.from_numpy(X)).sum()
    model_output.backward()  # nothing of it was made in inference mode


def test_dropout_is_off() -> None:
    model = network().train()
    options: dict[str, Any] = {"magnitudes": 3}
    with pytest.warns(CurvewiseWarning):
        one, two = (measure_response(model, (X, Y), **options) for _ in range(2))
    assert np.array_equal(one.hits, two.hits)  # type: ignore[arg-type]
    assert model.training


def test_a_moved_network_goes_back() -> None:
    """There may be no second device here: one that notes where it is sent."""
    moves: list[str] = []

    class Moved(nn.Linear):
        def to(self, device: Any) -> Any:  # type: ignore[override]
            moves.append(str(device))
            return self

    with pytest.raises(KeyError), borrowed(Moved(2, 2), torch.device("cuda", 0)):
        raise KeyError
    assert moves == ["cuda:0", "cpu"]


def wrapped(function: Any) -> nn.Module:
    class Wrapped(nn.Module):
        def forward(self, x: Tensor) -> Any:
            return function(x.flatten(1))

    return Wrapped()


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (wrapped(lambda x: x[:, 0]), "one number each.*binary"),
        (wrapped(lambda x: x[:, :1]), "one number each.*binary"),
        (wrapped(lambda x: x[:, :3]), "labels holds class 3, but the model has 3 outputs"),
        (wrapped(lambda x: x[:, :, None]), r"shape \(16, 36, 1\)"),
        (wrapped(lambda x: {"scores": x}), "dict with 'scores'"),
        (wrapped(lambda x: "text"), "returned str"),
        (wrapped(lambda x: ()), "returned tuple"),
        (wrapped(lambda x: x @ x), "model cannot be called with a batch of torch.float32"),
        (lambda x: x[:, 0, 0, 0], "one number each"),
        (lambda x: ["a"] * len(x), "classes as integers"),
        ("resnet", "model is a str"),
        (None, "model is a NoneType"),
    ],
    ids=[
        "numbers",
        "column",
        "few outputs",
        "cube",
        "dict",
        "text",
        "nothing",
        "fails",
        "plain number",
        "plain text",
        "name",
        "none",
    ],
)
def test_outputs_that_are_no_logits(model: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        measure_response(model, (X, Y), magnitudes=2)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"perturbation": "mixup-intr"}, "Did you mean 'mixup-intra'"),
        ({"magnitudes": [0.1]}, "two or more"),
        ({"magnitudes": [0.1, 0.1]}, "twice"),
        ({"magnitudes": [0, 2]}, "magnitude=2.0 of 'mixup-intra'"),
        ({"perturbation": "mixup-inter", "magnitudes": [0, 0.5]}, "less than 0.5"),
        ({"magnitudes": 1}, "magnitudes=1: must be a whole number, 2 or more"),
        ({"magnitudes": True}, "magnitudes=True"),
        ({"precision": "float8"}, "precision='float8'"),
        ({"signs": "both"}, "signs='both'"),
        ({"batch": 0}, "batch=0"),
        ({"batch": 2.5}, r"batch=2\.5: must be a whole number"),
        ({"batch": "8"}, "batch='8'"),
        ({"batch": True}, "batch=True"),
        ({"magnitudes": 5.0}, r"magnitudes=5\.0: .*a whole number of them"),
        ({"perturbation": ["rotation"]}, r"perturbation=\['rotation'\] is not known"),
        ({"layer": ["0"]}, r"layer=\['0'\]: give a submodule's name"),
        ({"layer": 1.0}, r"layer=1\.0: give a submodule's name"),
        ({"device": "tpu"}, "device='tpu'"),
        ({"rng": -1}, "rng=-1"),
        ({"rng": "x"}, "rng='x'"),
        ({"labels": Y * 0}, "one class only, 0"),
        ({"labels": np.arange(40)}, "no class has two"),
        ({"examples": 0}, "examples=0"),
        ({"perturbation": "hue"}, "colours"),
        ({"perturbation": "token-dropout"}, "tokens"),
        ({"perturbation": "feature-swap"}, "features"),
        ({"perturbation": "rotation", "fill": 2.0}, "fill=2.0"),
        ({"perturbation": "rotation", "interpolation": "cubic"}, "interpolation='cubic'"),
        ({"perturbation": "rotation", "labels": Y, "data": 4 * X - 2}, r"-2 to .*mean=… and std=…"),
        ({"perturbation": "rotation", "data": 9 * X, "mean": [0.5], "std": [0.5]}, "once mean and std are undone"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_arguments_that_do_not_fit(options: dict[str, Any], said: str) -> None:
    options = {"data": X, "labels": Y, **options}
    with pytest.raises(InputError, match=said):
        measure_response(network(), **grouped(options))


def test_normalised_images_with_their_scale_are_accepted() -> None:
    with pytest.warns(CurvewiseWarning, match="right on"):
        measure_response(network(), (4 * X - 2, Y), "rotation", magnitudes=3, reading={"mean": [0.5], "std": [0.25]})


@pytest.mark.filterwarnings("ignore:The model is right on")
def test_whole_numbers_of_numpy_are_numbers() -> None:
    model = nn.Sequential(network(), nn.ReLU())
    options: dict[str, Any] = {"magnitudes": 3, "layer": 1, "batch": 7}
    wanted = measure_response(model, (X, Y), **grouped(options))
    given = {name: np.int64(value) for name, value in options.items()}
    found = measure_response(model, (X, Y), **grouped(given))
    assert np.array_equal(found.hits, wanted.hits)  # type: ignore[arg-type]
    assert found.settings["batch"] == 7
    assert type(found.settings["batch"]) is int


def test_plain_functions_have_no_layers() -> None:
    with pytest.raises(InputError, match="layer='a': the model is a plain function"):
        measure_response(lambda x: x, (X, Y), layer="a")
    with pytest.raises(InputError, match="device='cpu': the model is a plain function"):
        measure_response(lambda x: x, (X, Y), device=Execution(device="cpu"))


def test_outputs_that_are_not_finite_count_as_wrong_and_are_counted() -> None:
    def answers(x: np.ndarray) -> np.ndarray:
        logits = np.eye(4)[(x[:, 0, 0, 0] * 4).astype(int)]
        logits[x[:, 0, 0, 0] > 0.75, 0] = np.nan
        return logits

    x = X.copy()
    x[:, 0, 0, 0] = Y / 4 + 0.1
    with pytest.warns(CurvewiseWarning) as said:
        curve = measure_response(answers, (x, Y), magnitudes=[0, 0.2])
    assert curve.clean_correct == 30
    assert curve.correct.tolist() == [30, 30]
    assert any("30 of 120 outputs hold NaN" in str(w.message) for w in said)
    assert any("right on 75.0%" in str(w.message) for w in said)


class Shaken(nn.Module):
    """Dropout that is never turned off."""

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.dropout(x, 0.5, training=True)


MOODS = {
    "chance": (Shaken, "depend on chance"),
    "batch": (lambda: nn.BatchNorm2d(2, track_running_stats=False), "other examples of a batch"),
}


@pytest.mark.parametrize("batch", [None, 1, 2, 8])
@pytest.mark.parametrize("layer", [None, "0"])
@pytest.mark.parametrize("mood", MOODS, ids=list(MOODS))
@pytest.mark.filterwarnings("ignore:The model is right on")
def test_answers_that_depend_on_more_than_the_example(mood: str, layer: str | None, batch: int | None) -> None:
    torch.manual_seed(0)
    make, said = MOODS[mood]
    model = network()
    model[1] = make()
    with pytest.warns(CurvewiseWarning, match=said):
        curve = measure_response(model, (X, Y), layer=layer, device=Execution(batch=batch), magnitudes=2)
    assert sum("The network" in warning for warning in curve.warnings) == 1


def test_a_network_for_one_size_of_batches() -> None:
    class Fixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inside = network()

        def forward(self, x: Tensor) -> Tensor:
            if len(x) != 8:
                raise RuntimeError("8 at a time")
            return self.inside(x)

    with pytest.warns(CurvewiseWarning) as said:
        measure_response(Fixed(), (X, Y), layer="inside.0", device=Execution(batch=8), magnitudes=2)
    assert all("The model is right on" in str(w.message) for w in said)


def test_excluded_classes_do_not_make_an_answer_wrong() -> None:
    x = X.copy()
    x[:, 0, 0, 0] = Y / 4 + 0.1

    def answers(x: np.ndarray) -> np.ndarray:
        chances = np.eye(4)[(x[:, 0, 0, 0] * 4).astype(int)]
        with np.errstate(divide="ignore"):
            return np.log(chances)

    curve = measure_response(answers, (x, Y), magnitudes=[0, 0.2])
    assert curve.clean_accuracy == 1
    assert curve.warnings == ()


def test_good_networks_are_not_warned_of(recwarn: pytest.WarningsRecorder) -> None:
    x = X.copy()
    x[:, 0, 0, 0] = Y / 4 + 0.1
    curve = measure_response(lambda x: (x[:, 0, 0, 0] * 4).astype(int), (x, Y), magnitudes=[0, 0.2])
    assert curve.clean_accuracy == 1
    assert curve.warnings == ()
    assert not recwarn.list


def test_measurements_of_several() -> None:
    with pytest.raises(InputError, match="models is a list: give a model, or a mapping from names to models"):
        measure_responses([network()], (X, Y))
    with pytest.raises(TypeError, match="'layers'"):
        measure_responses({"a": network()}, (X, Y), layers=1)
    with pytest.warns(CurvewiseWarning, match=r"^[ab]: "):
        measure_responses({"a": network(), "b": network()}, (X, Y), magnitudes=2)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"repeats": 1}, "repeats=1"),
        ({"batches": (1,)}, "128 examples, and there are 40"),
        ({}, "640 examples, and there are 40"),
        ({"batches": (0, 1)}, "batches=\\(0, 1\\)"),
        ({"repeats": 2.5}, r"repeats=2\.5"),
        ({"batches": [1.5]}, r"batches=\[1\.5\]"),
        ({"batches": []}, r"batches=\[\]"),
        ({"precision": "float8"}, "precision='float8'"),
        ({"batch": 0}, "batch=0"),
    ],
    ids=["repeats", "too many", "default", "zero", "half a repeat", "half a batch", "no batches", "precision", "batch"],
)
def test_sensitivity_that_cannot_be(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        measure_sensitivity(network(), (X, Y), **grouped(options))


@pytest.mark.filterwarnings("ignore:The model is right on")
def test_a_bar_is_drawn_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    measure_response(network(), (X, Y), magnitudes=2, progress=False)
    measure_response(network(), (X, Y), magnitudes=2)  # not a terminal
    assert capsys.readouterr().err == ""
    measure_response(network(), (X, Y), magnitudes=2, progress=True)
    assert "measuring" in capsys.readouterr().err


def test_batches_fit_the_cache_and_are_filled() -> None:
    assert batch_size(100_000, 23_040, 230_400, cuda=False) == 64
    assert batch_size(10**9, 23_040, 230_400, cuda=False) == 8
    assert batch_size(1, 100, 1000, cuda=False) == 100
    for row in (23_040, 230_400, 5000, 4097):
        size = batch_size(100_000, row, row, cuda=True)
        assert size <= 4096
        assert -row % size / row < 0.04  # what the last batch is filled up with
    assert batch_size(2**24, 23_040, 23_040, cuda=True) == 64


def test_one_example_with_nan_does_not_spoil_the_noise_of_the_others() -> None:
    torch.manual_seed(0)
    x, model = torch.randn(60, 4), nn.Linear(4, 2)
    y = model(x).argmax(dim=1)
    broken = x.clone()
    broken[3, 1] = torch.nan
    options: dict[str, Any] = {"perturbation": "feature-noise", "magnitudes": [0, 0.5], "rng": 1}
    whole = measure_response(model, (x, y), **options)
    with pytest.warns(CurvewiseWarning, match="3 of 180 outputs hold NaN"):
        curve = measure_response(model, (broken, y), **options)
    # The others get the same noise, but for the size of one spread.
    assert (curve.correct >= whole.correct - 4).all()
