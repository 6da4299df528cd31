"""Perturbing the output of a layer: cut there or replaced by a hook, the answers are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.nn.architectures import ARCHITECTURES
from curvewise.response.curve import ResponseCurve
from curvewise.response.networks import answers, sites
from curvewise.response.networks.measurement import measure_response
from curvewise.response.networks.trial import Execution, draw_partners

pytestmark = pytest.mark.filterwarnings("ignore:The model is right on")

N = 90
X = torch.rand(N, 1, 12, 12, generator=torch.Generator().manual_seed(0))
Y = (X.mean(dim=(1, 2, 3)).argsort().argsort() * 3 // N).long()


class Block(nn.Module):
    """A shortcut beside the layers, and a pool of values that both sides need."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())
        self.inner = nn.Conv2d(4, 4, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(4)
        self.relu = nn.ReLU(inplace=True)
        self.unused = nn.Linear(2, 2)
        self.scale = nn.Parameter(torch.tensor(1.5))
        self.head = nn.Linear(4 * 144, 3)

    def forward(self, x: Tensor) -> Tensor:
        size = x.mean(dim=(1, 2, 3))
        x = self.stem(x)
        y = self.relu(self.norm(self.inner(x)))
        y = self.relu(y * self.scale + x)
        y = y.view(y.size(0), -1)
        return self.head(y) + size[:, None]


def block() -> Block:
    torch.manual_seed(3)
    model = Block()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -0.5, 0.5)
            nn.init.uniform_(module.running_var, 0.5, 2)
    return model


def by_hand(
    model: nn.Module, layer: nn.Module, call: int, partners: np.ndarray, grid: np.ndarray, labels: Tensor = Y
) -> np.ndarray:
    """Answers with the layer's output replaced, all examples at once, magnitude by magnitude."""
    state: dict[str, Any] = {"calls": 0, "mix": None}

    def hook(module: nn.Module, given: Any, output: Tensor) -> Tensor | None:
        state["calls"] += 1
        if state["calls"] != call + 1:
            return None
        if state["mix"] is None:
            state["seen"] = output.clone()
            return None
        share, rows = state["mix"]
        return (1 - share) * output + share * state["seen"][rows]

    model.eval()
    rows = np.random.default_rng(0).permutation(N)
    x, y = X[rows], labels[rows]
    handle = layer.register_forward_hook(hook)
    hits = []
    with torch.no_grad():
        model(x)
        for share, others in zip(grid, partners, strict=True):
            state.update(calls=0, mix=(float(share), others))
            hits.append((model(x).argmax(dim=1) == y).numpy())
    handle.remove()
    return np.stack(hits)


LAYERS = ["stem", "stem.0", "stem.1", "inner", "norm", "head"]


@pytest.mark.parametrize("way", ["cut", "hook"])
@pytest.mark.parametrize("pairs", ["intra", "inter"])
@pytest.mark.parametrize("layer", LAYERS)
def test_mixing_at_a_layer(layer: str, pairs: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "hook":
        monkeypatch.setattr(sites, "trace_halves", lambda model, site: None)
    model = block()
    curve = measure_response(model, (X, Y), f"mixup-{pairs}", layer=layer, magnitudes=4)
    assert curve.settings["path"] == way
    assert curve.layer == layer
    rows = np.random.default_rng(0).permutation(N)
    partners = draw_partners(Y[rows].numpy(), pairs, 4, 0)
    assert np.array_equal(partners, curve.partners)  # type: ignore[arg-type]
    wanted = by_hand(model, model.get_submodule(layer), 0, partners, curve.magnitude)
    assert np.array_equal(curve.hits, wanted)  # type: ignore[arg-type]


@pytest.mark.parametrize("way", ["cut", "hook"])
@pytest.mark.parametrize(
    ("number", "name", "call"), [(1, "stem.2", 0), (2, "relu (call 1)", 0), (3, "relu (call 2)", 1)]
)
def test_activations_by_number(number: int, name: str, call: int, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "hook":
        monkeypatch.setattr(sites, "trace_halves", lambda model, site: None)
    model = block()
    curve = measure_response(model, (X, Y), layer=number, magnitudes=4)
    assert curve.layer == name
    layer = model.get_submodule(name.split(" ")[0])
    assert curve.partners is not None
    wanted = by_hand(model, layer, call, curve.partners, curve.magnitude)
    assert np.array_equal(curve.hits, wanted)  # type: ignore[arg-type]


def test_the_first_layer_of_our_networks() -> None:
    images = torch.rand(40, 1, 28, 28)
    for name, layer in (("cnn", "1"), ("resnet9", "0.2"), ("resnet18", "relu")):
        torch.manual_seed(0)
        model = ARCHITECTURES[name]((1, 28, 28), 10, width=8)
        curve = measure_response(model, (images, torch.arange(40) % 4), layer=1, magnitudes=2)
        assert curve.layer == layer
        assert curve.settings["path"] == "cut"


class Counted(nn.Module):
    """Notes how many examples come by; a leaf of what is traced, as torch's own layers are."""

    __module__ = "torch.nn.modules.counted"

    def forward(self, x: Tensor) -> Tensor:
        SEEN.append(len(x))
        return x


SEEN: list[int] = []


def counting() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 4, 3), Counted(), nn.ReLU(), nn.Flatten(), nn.Linear(400, 8), nn.Linear(8, 3))


PROBES = 5 * 16  # looks at a batch, twice, and at two examples; a check of the parts; rounded up


@pytest.mark.parametrize("magnitudes", [3, 10])
@pytest.mark.parametrize("name", ["mixup-intra", "mixup-inter", "intensity"])
def test_what_comes_before_the_layer_runs_once_per_example(name: str, magnitudes: int) -> None:
    SEEN.clear()
    measure_response(counting(), (X, Y), name, layer=1, magnitudes=magnitudes, device=Execution(batch=15))
    assert N <= sum(SEEN) <= N + 15 + PROBES
    SEEN.clear()
    measure_response(counting(), (X, Y), name, magnitudes=magnitudes, device=Execution(batch=15))
    assert sum(SEEN) >= N * magnitudes


def test_what_does_not_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"layer": 1, "magnitudes": 4, "device": Execution(batch=15)}
    wanted = {
        name: measure_response(counting(), (X, Y), name, **options)
        for name in ("mixup-intra", "mixup-inter", "intensity")
    }
    each = 4 * 100 * 4  # bytes of an example after the first layer
    monkeypatch.setattr(answers, "BUDGET", 35 * each)  # one class of 30, not two
    for name, curve in wanted.items():
        SEEN.clear()
        found = measure_response(counting(), (X, Y), name, **options)
        assert np.array_equal(found.hits, curve.hits)  # type: ignore[arg-type]
        if name == "mixup-inter":  # partners are anywhere: computed anew, with their partners
            assert sum(SEEN) >= 2 * 4 * N
        else:  # class by class, or part by part
            assert sum(SEEN) <= N + 15 * 4 + PROBES


def test_groups_keep_partners_together() -> None:
    labels = np.array([0, 1, 2, 0, 1, 2, 0, 0])
    found = answers.groups(labels, "intra", 1, 4)
    assert [sorted(labels[g].tolist()) for g in found] == [[0, 0, 0, 0], [1, 1, 2, 2]]
    assert sorted(np.concatenate(found).tolist()) == list(range(8))
    assert len(answers.groups(labels, "inter", 1, 4)) == 1
    assert [len(g) for g in answers.groups(labels, None, 3, 5)] == [3, 3, 2]


@pytest.mark.parametrize("name", ["feature-noise", "intensity"])
def test_other_perturbations_at_a_layer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"layer": "stem", "magnitudes": [0, 0.5, 2], "device": Execution(batch=20)}
    cut = measure_response(block(), (X, Y), name, **options)
    monkeypatch.setattr(sites, "trace_halves", lambda model, site: None)
    hooked = measure_response(block(), (X, Y), name, **options)
    assert np.array_equal(cut.hits, hooked.hits)  # type: ignore[arg-type]
    assert len(np.unique(cut.correct)) > 1


def test_own_functions_at_a_layer() -> None:
    def away(x: Tensor, magnitude: float, rng: torch.Generator) -> Tensor:
        assert x.shape[1:] == (4, 12, 12)
        return x * (1 - magnitude)

    model = block()
    curve = measure_response(model, (X, Y), away, layer="stem", magnitudes=[0, 1])
    rows = np.random.default_rng(0).permutation(N)
    handle = model.stem.register_forward_hook(lambda m, g, output: 0 * output)
    with torch.no_grad():
        gone = model.eval()(X[rows]).argmax(dim=1) == Y[rows]
    handle.remove()
    assert np.array_equal(curve.hits[1], gone.numpy())  # type: ignore[index]


def test_layers_that_cannot_be_cut_are_hooked() -> None:
    class Choosy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inside = block()

        def forward(self, x: Tensor) -> Tensor:
            return self.inside(x) if float(x.sum()) > -1 else x

    class Sized(nn.Module):
        """Needs the size of the whole batch after the layer."""

        def __init__(self) -> None:
            super().__init__()
            self.inside = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU())
            self.head = nn.Linear(400, 3)

        def forward(self, x: Tensor) -> Tensor:
            size = x.shape[0]
            return self.head(self.inside(x).reshape(size, -1))

    for kind, layer in ((Choosy, "inside.stem"), (Sized, "inside")):
        torch.manual_seed(0)
        model = kind()
        curve = measure_response(model, (X, Y), layer=layer, magnitudes=3)
        assert curve.settings["path"] == "hook"
        assert curve.partners is not None
        wanted = by_hand(model, model.get_submodule(layer), 0, curve.partners, curve.magnitude)
        assert np.array_equal(curve.hits, wanted)  # type: ignore[arg-type]


def test_a_network_with_hooks_is_not_traced_and_its_hooks_are_run() -> None:
    model = block()
    calls: list[Any] = []
    model.inner.register_forward_hook(lambda m, given, output: calls.append(type(output)))
    curve = measure_response(model, (X, Y), layer="stem", magnitudes=2)
    assert curve.settings["path"] == "hook"
    assert calls
    assert set(calls) == {Tensor}


def test_in_place_layers_do_not_change_what_is_stored() -> None:
    model = nn.Sequential(nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(144, 3))
    given = X - 0.5
    before = given.clone()
    first = measure_response(model, (given, Y), "intensity", magnitudes=[0.1, 0.2])
    assert torch.equal(given, before)
    second = measure_response(model, (given, Y), "intensity", magnitudes=[0.1, 0.2])
    assert np.array_equal(first.hits, second.hits)  # type: ignore[arg-type]


def test_folding_leaves_the_network_alone() -> None:
    model = block()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    strides = {name: value.stride() for name, value in model.state_dict().items()}
    measure_response(model, (X, Y), layer="norm", magnitudes=2)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])
        assert value.stride() == strides[name]


class Odd(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.twice = nn.Linear(144, 144)
        self.never = nn.Linear(2, 2)
        self.pair = nn.LSTM(12, 12, batch_first=True)
        self.number = Number()
        self.head = nn.Linear(144, 3)

    def forward(self, x: Tensor) -> Tensor:
        x, _ = self.pair(x[:, 0])
        x = self.twice(self.twice(x.flatten(1)))
        return self.head(x) + self.number(x)


class Number(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.sum()


@pytest.mark.parametrize(
    ("layer", "said"),
    [
        ("twise", "no submodule of that name. Did you mean 'twice'"),
        ("zzzzzz", "Some are 'twice', 'never'"),
        ("", "no submodule"),
        ("twice", "called 2 times"),
        ("never", "never called"),
        ("pair", "returns tuple"),
        ("number", r"shape \(\) for 16 examples"),
        (1, "calls 0 activation modules"),
        (0, "layer=0"),
        (True, "layer=True"),
    ],
)
def test_bad_layers(layer: Any, said: str) -> None:
    model = Odd()
    with pytest.raises(InputError, match=said):
        measure_response(model, (X, Y), layer=layer, magnitudes=2)
    assert all(not m._forward_hooks for m in model.modules())
    assert model.training


@pytest.mark.parametrize("name", ["rotation", "token-dropout"])
def test_images_and_tokens_are_perturbed_at_the_input_only(name: str) -> None:
    with pytest.raises(InputError, match="cannot be applied at layer='stem'"):
        measure_response(block(), (X, Y), name, layer="stem")


def test_codes() -> None:
    nan, inf = torch.nan, torch.inf
    rows = [[1.0, 2.0], [1.0, 2.0], [nan, 1.0], [0.0, inf], [-inf, 0.0], [-inf, 0.0], [-inf, -inf]]
    labels = torch.tensor([1, 0, 1, 1, 1, 0, 0])
    assert answers.coded(torch.tensor(rows), labels).tolist() == [1, 0, 2, 2, 1, 0, 2]


class Aside(nn.Module):
    """What its layer gives is what it is given, and is needed once more."""

    def __init__(self, layer: nn.Module, in_place: bool = False) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.first, self.layer, self.in_place = nn.Linear(144, 16), layer, in_place
        self.second, self.head = nn.Linear(16, 16), nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        before = self.first(x.flatten(1) - 0.5)
        after = self.layer(before)
        if self.in_place:
            after = after.relu_()
        return self.head(self.second(after) - before)


ASIDE = {"dropout": nn.Dropout(0.5), "identity": nn.Identity()}


@pytest.mark.parametrize("room", [2**31, 1], ids=["stored", "computed"])
@pytest.mark.parametrize("layer", ASIDE, ids=list(ASIDE))
@pytest.mark.parametrize("pairs", ["intra", "inter"])
def test_mixing_does_not_change_what_else_is_needed(
    pairs: str, layer: str, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Aside(ASIDE[layer])
    with torch.no_grad():
        labels = model.eval()(X).argmax(dim=1)
    monkeypatch.setattr(answers, "budget", lambda device: room)
    options: dict[str, Any] = {"layer": "layer", "magnitudes": [0.0, 0.4, 0.49], "device": Execution(batch=7)}
    curve = measure_response(model, (X, labels), f"mixup-{pairs}", **options)
    assert curve.settings["path"] == "cut"
    assert curve.correct[2] < N
    wanted = by_hand(model, model.layer, 0, curve.partners, curve.magnitude, labels)  # type: ignore[arg-type]
    assert np.array_equal(curve.hits, wanted)  # type: ignore[arg-type]


@pytest.mark.parametrize("room", [2**31, 1], ids=["stored", "computed"])
def test_unperturbed_accuracy_at_a_layer_is_the_network_s_own(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Aside(nn.Dropout(0.5), in_place=True)
    with torch.no_grad():
        labels = model.eval()(X).argmax(dim=1)
    monkeypatch.setattr(answers, "budget", lambda device: room)
    with pytest.warns(CurvewiseWarning, match="layer 'layer' is replaced by a copy"):
        curve = measure_response(model, (X, labels), layer="layer", magnitudes=[0, 0.3], device=Execution(batch=7))
    assert curve.settings["path"] == "hook"
    assert curve.clean_accuracy == curve.accuracy[0] == 1
    mixed = by_hand(model, model.layer, 0, curve.partners, curve.magnitude, labels)  # type: ignore[arg-type]
    assert np.array_equal(curve.hits[1], mixed[1])  # type: ignore[index]


def test_a_result_is_a_curve() -> None:
    with pytest.warns(CurvewiseWarning, match="right on"):
        assert isinstance(measure_response(block(), (X, Y), layer=1), ResponseCurve)


@pytest.mark.parametrize("call", [0, 1])
def test_one_of_several_calls_of_a_module_is_caught(call: int) -> None:
    relu = nn.ReLU()
    model = nn.Sequential(nn.Linear(3, 4), relu, nn.Linear(4, 2), relu)
    x = torch.rand(5, 3)
    widths = []
    with sites.caught(sites.Site("relu", relu, call), lambda out: widths.append(out.shape[1])):
        model(x)
    assert widths == [(4, 2)[call]]
