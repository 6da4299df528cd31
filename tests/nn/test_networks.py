"""Networks: sizes known from elsewhere, gradients everywhere, weights by seed alone."""

from __future__ import annotations

import contextlib
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from curvewise.errors import InputError, MissingDependencyError
from curvewise.nn.architectures import ARCHITECTURES
from curvewise.nn.devices import one_thread
from curvewise.nn.engine import train
from curvewise.nn.networks import check_logits, features_of, head_of, initial_network, make_network, restore_network
from curvewise.nn.task import Assignment, Examples, Keep
from curvewise.nn.training import ROW_ARCHITECTURES, SMALLEST_SIDES, Training

SHAPES = [(1, 8, 8), (1, 28, 28), (3, 32, 32)]
SLIM: dict[str, dict[str, Any]] = {**{name: {"width": 8} for name in ROW_ARCHITECTURES}, "linear": {}}
SLIM["speednet"] |= {"dirac": False}  # with it, convolutions with as many inputs as outputs start alike
DEEP = ("resnet152", "resnext101_32x8d", "wide_resnet101_2")  # only more of the layers of shallower ones
LARGE = ("resnet101", "resnext50_32x4d", "wide_resnet50_2", "alexnet", "mobilenet_v2", "googlenet")
TRIED = [name for name in ROW_ARCHITECTURES if name not in DEEP]


def _size(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


# ImageNet networks: counts printed in torchvision's documentation. Small images: counts of the
# CIFAR-10 networks in common use, one linear layer after the convolutions.
@pytest.mark.parametrize(
    ("name", "options", "shape", "classes", "size"),
    [
        ("resnet18", {"stem": "imagenet"}, (3, 224, 224), 1000, 11_689_512),
        ("resnet34", {"stem": "imagenet"}, (3, 224, 224), 1000, 21_797_672),
        ("resnet50", {"stem": "imagenet"}, (3, 224, 224), 1000, 25_557_032),
        ("resnet18", {}, (3, 32, 32), 10, 11_173_962),
        ("resnet34", {}, (3, 32, 32), 10, 21_282_122),
        ("resnet50", {}, (3, 32, 32), 10, 23_520_842),
        ("vgg11", {"batch_norm": True}, (3, 32, 32), 10, 9_231_114),
        ("vgg13", {"batch_norm": True}, (3, 32, 32), 10, 9_416_010),
        ("vgg16", {"batch_norm": True}, (3, 32, 32), 10, 14_728_266),
        ("vgg19", {"batch_norm": True}, (3, 32, 32), 10, 20_040_522),
        # torchvision's vgg16 has 138,357,544, of which 123,642,856 lie in three linear layers
        ("vgg16", {}, (3, 224, 224), 10, 138_357_544 - 123_642_856 + 5_130),
        ("resnet9", {}, (3, 32, 32), 10, 2_274_880),
        ("linear", {}, (3, 32, 32), 10, 30_730),
        ("mlp", {"width": 100, "depth": 1}, (784,), 10, 79_510),
        ("mlp", {"width": 100, "depth": 2, "batch_norm": True}, (784,), 10, 90_010),
    ],
)
def test_sizes_are_the_known_ones(
    name: str, options: dict[str, Any], shape: tuple[int, ...], classes: int, size: int
) -> None:
    # torch draws nothing for a network without memory, which keeps this quick
    with torch.device("meta"):
        assert _size(ARCHITECTURES[name](shape, classes, **options)) == size


@pytest.mark.parametrize(("name", "stem", "side"), [(*key, side) for key, side in SMALLEST_SIDES.items()])
def test_images_of_the_smallest_side_are_taken_and_smaller_ones_refused(name: str, stem: str | None, side: int) -> None:
    training = Training(name, options={"width": 8, **({} if stem is None else {"stem": stem})})
    assert make_network(training, (3, side, side), 4)(torch.zeros(2, 3, side, side)).shape == (2, 4)
    form = "" if stem is None else f"with stem='{stem}' "
    with pytest.raises(InputError, match=f"architecture='{name}': {form}needs images of {side}×{side}"):
        make_network(training, (3, 20, side - 1) if side > 2 else (3, 1, 1), 4)


def test_layers_have_the_names_of_torchvision_s_files() -> None:
    names = set(ARCHITECTURES["resnet18"]((3, 32, 32), 10, width=4).state_dict())
    assert {"conv1.weight", "bn1.running_var", "layer2.0.downsample.0.weight", "fc.bias"} <= names
    deep = set(ARCHITECTURES["vgg19"]((1, 8, 8), 10, width=4, batch_norm=True).state_dict())
    assert {"features.0.weight", "features.49.weight", "features.50.running_mean"} <= deep


# Those published for large images are trained on 32×32 in test_architectures.py.
@pytest.mark.parametrize(
    ("name", "shape"), [(name, shape) for name in TRIED for shape in SHAPES if name not in LARGE or shape == SHAPES[0]]
)
def test_logits_features_and_gradients(name: str, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    model = ARCHITECTURES[name](shape, 7, **SLIM[name])
    x = torch.randn(16, *shape)
    logits = model(x)
    assert logits.shape == (16, 7)
    nn.functional.cross_entropy(logits, torch.arange(16) % 7).backward()
    for parameter, value in model.named_parameters():
        if not value.requires_grad:  # scales of norms that stay 1
            assert name == "speednet"
            continue
        assert value.grad is not None, parameter
        # a ReLU may be dead, not a whole layer
        assert float(value.grad.abs().max()) > 0, parameter
    head = head_of(model)[1]
    features = features_of(model.eval(), x)
    assert features.shape == (16, head.in_features)
    scale = {"resnet9": 0.2, "speednet": 1 / head.in_features}.get(name, 1.0)
    torch.testing.assert_close(head(features) * scale, model(x))


@pytest.mark.parametrize("name", TRIED)
def test_the_seed_decides_the_weights(name: str) -> None:
    def drawn(seed: int) -> dict[str, Tensor]:
        torch.manual_seed(seed)
        return make_network(Training(name, options=SLIM[name]), (1, 8, 8), 3).state_dict()

    first, again, other = drawn(1), drawn(1), drawn(2)
    assert all(torch.equal(first[k], again[k]) for k in first)
    matrices = [k for k, v in first.items() if v.dim() > 1]
    assert matrices
    assert not any(torch.equal(first[k], other[k]) for k in matrices)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["cnn", "vgg11", "vgg19", "nin", "resnet34"])
def test_signals_neither_die_nor_explode_on_the_way(name: str, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    model = ARCHITECTURES[name](shape, 10, width=16)
    size = float(features_of(model, torch.randn(32, *shape)).detach().std())
    assert 0.1 < size < 10


@pytest.mark.parametrize("name", ["cnn", "vgg11", "nin", "resnet9", "resnet18", "alexnet", "mobilenet_v2", "googlenet"])
def test_images_need_not_be_square(name: str) -> None:
    model = ARCHITECTURES[name]((2, 8, 13), 4, **SLIM[name])
    assert model(torch.randn(3, 2, 8, 13)).shape == (3, 4)


@pytest.mark.parametrize("side", [3, 5, 8, 10, 11, 12, 32, 64])
def test_resnet9_takes_images_of_any_size(side: int) -> None:
    model = ARCHITECTURES["resnet9"]((1, side, side), 4, width=4)
    assert model(torch.randn(3, 1, side, side)).shape == (3, 4)
    with pytest.raises(InputError, match="3×3"):
        ARCHITECTURES["resnet9"]((1, 2, 2), 4)


@pytest.mark.parametrize("name", ["mlp", "vgg13", "nin"])
def test_batch_norm_is_an_option(name: str) -> None:
    kinds = (nn.BatchNorm1d, nn.BatchNorm2d)
    for wanted in (False, True):
        model = ARCHITECTURES[name]((1, 8, 8), 4, batch_norm=wanted, **SLIM[name])
        assert any(isinstance(m, kinds) for m in model.modules()) is wanted


def test_no_network_has_dropout_that_was_published_without() -> None:
    for name in set(TRIED) - {"alexnet", "mobilenet_v2", "googlenet"}:
        model = ARCHITECTURES[name]((1, 8, 8), 4, **SLIM[name])
        assert not any("dropout" in type(m).__name__.lower() for m in model.modules())


@pytest.mark.parametrize(
    ("training", "shape", "message"),
    [
        (Training("resnet10"), (1, 8, 8), r"resnet10.*resnet18.*timm:NAME"),
        (Training("mlp", options={"wide": 3}), (4,), r"wide.*width, depth, batch_norm"),
        (Training("linear", options={"width": 3}), (4,), r"width.*Its options are bias"),
        (Training("mlp", options={"width": 0}), (4,), r"width=0.*at least 1"),
        (Training("cnn", options={"width": 2.5}), (1, 8, 8), r"width=2.5.*whole"),
        (Training("resnet18", options={"stem": "big"}), (1, 8, 8), r"stem='big'.*small or imagenet"),
        (Training("cnn"), (64,), r"images.*\(64,\).*'mlp'"),
        (Training("resnet9"), (64,), r"images"),
    ],
)
def test_wrong_architectures_are_refused(training: Training, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_network(training, shape, 3)


def test_head_and_features_need_a_linear_layer_that_is_used() -> None:
    with pytest.raises(InputError, match=r"no torch\.nn\.Linear"):
        head_of(nn.Sequential(nn.Conv2d(1, 2, 3)))

    class Idle(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.idle = nn.Linear(2, 2)

        def forward(self, x: Tensor) -> Tensor:
            return x

    with pytest.raises(InputError, match="not used"):
        features_of(Idle(), torch.zeros(1, 2))


OWN = """
from torch import nn
from {helper} import hidden

def build(shape, classes, *, extra=0):
    width = hidden + extra
    return nn.Sequential(nn.Flatten(), nn.Linear(shape[0], width), nn.Linear(width, classes))

def wrong(shape, classes):
    return "no network"
"""


def _own_factory(folder: Path, hidden: int, helper: str) -> None:
    folder.mkdir()
    (folder / "models.py").write_text(OWN.format(helper=helper))
    (folder / f"{helper}.py").write_text(f"hidden = {hidden}\n")


def test_a_factory_of_one_s_own(tmp_path: Path) -> None:
    _own_factory(tmp_path / "a", 5, "helper_of_a")
    _own_factory(tmp_path / "b", 9, "helper_of_b")
    path = list(sys.path)
    training = Training("models:build", options={"extra": 1})
    for _ in range(2):  # two studies, both with a models.py
        assert make_network(training, (4,), 3, tmp_path / "a")[1].out_features == 6
        assert make_network(training, (4,), 3, tmp_path / "b")[1].out_features == 10
    assert sys.path == path
    assert "models" not in sys.modules
    with pytest.raises(InputError, match=r"has no 'built'.*build"):
        make_network(Training("models:built"), (4,), 3, tmp_path / "a")
    with pytest.raises(InputError, match=r"returned str"):
        make_network(Training("models:wrong"), (4,), 3, tmp_path / "a")
    with pytest.raises(InputError, match=r"\['more'\].*options are extra"):
        make_network(Training("models:build", options={"more": 1}), (4,), 3, tmp_path / "a")
    with pytest.raises(InputError, match=r"cannot import 'no_such_module'"):
        make_network(Training("no_such_module:build"), (4,), 3, tmp_path / "a")


def test_an_installed_factory_is_found_without_a_folder() -> None:
    model = make_network(Training("curvewise.nn.architectures:linear"), (4,), 3)
    assert head_of(model)[1].out_features == 3


def test_a_factory_that_raises_says_so_itself(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("raise RuntimeError('my own mistake')\n")
    for _ in range(2):
        with pytest.raises(InputError, match="my own mistake"):
            make_network(Training("broken:build"), (4,), 3, tmp_path)


def test_timm_is_asked_for_by_name_and_never_downloads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(MissingDependencyError, match="pip install timm"):
        make_network(Training("timm:resnet10t"), (1, 8, 8), 3)

    def create_model(name: str, **options: Any) -> nn.Module:
        assert (name, options) == (
            "resnet10t",
            {"pretrained": False, "num_classes": 3, "in_chans": 1, "drop_rate": 0.5},
        )
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 3))

    fake = SimpleNamespace(list_models=lambda: ["resnet10t"], create_model=create_model)
    monkeypatch.setitem(sys.modules, "timm", fake)
    model = make_network(Training("timm:resnet10t", options={"drop_rate": 0.5}), (1, 8, 8), 3)
    assert head_of(model)[0] == "1"
    with pytest.raises(InputError, match=r"list_models"):
        make_network(Training("timm:resnet9000"), (1, 8, 8), 3)
    with pytest.raises(InputError, match=r"images"):
        make_network(Training("timm:resnet10t"), (64,), 3)


def test_torchvision_is_asked_for_by_name_and_never_downloads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchvision", None)
    with pytest.raises(MissingDependencyError, match="pip install torchvision"):
        make_network(Training("torchvision:resnet18"), (3, 8, 8), 4)

    def get_model(name: str, **options: Any) -> nn.Module:
        inner = {"aux_logits": False, "init_weights": True} if name == "googlenet" else {"norm_layer": None}
        assert options == {"weights": None, "num_classes": 4, **inner}
        return nn.Sequential(nn.Flatten(), nn.Linear(192, 4))

    models = SimpleNamespace(list_models=lambda module: ["resnet18", "googlenet"], get_model=get_model)
    monkeypatch.setitem(sys.modules, "torchvision", SimpleNamespace(models=models))
    make_network(Training("torchvision:resnet18", options={"norm_layer": None}), (3, 8, 8), 4)
    make_network(Training("torchvision:googlenet"), (3, 8, 8), 4)
    with pytest.raises(InputError, match=r"weights='DEFAULT', which torchvision would download.*Fetch the file"):
        make_network(Training("torchvision:resnet18", options={"weights": "DEFAULT"}), (3, 8, 8), 4)
    with pytest.raises(InputError, match=r"list_models"):
        make_network(Training("torchvision:resnet9000"), (3, 8, 8), 4)
    with pytest.raises(InputError, match=r"3 channels, and these have 1.*channels=3"):
        make_network(Training("torchvision:resnet18"), (1, 8, 8), 4)


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


@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_a_binary_network_that_is_wrapped_as_the_message_says(shape: tuple[int, ...]) -> None:
    outputs = torch.tensor([0.5, -2.0, 3.0]).reshape(shape)
    with pytest.raises(InputError, match="wrap it in a module") as said:
        check_logits(outputs, 3, 2)
    remedy = re.search(r"returns (torch\.stack\(.*\)) of its logits z, flattened", str(said.value))
    assert remedy is not None
    logits = eval(remedy[1], {"torch": torch, "z": outputs.flatten()})
    check_logits(logits, 3, 2)
    torch.testing.assert_close(logits.softmax(dim=1)[:, 1], outputs.flatten().sigmoid())


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


def test_images_are_halved_in_the_3x3_convolution_of_a_block():
    # As in torchvision; He et al. 2016 halve in the first 1x1 convolution of a bottleneck.
    strides = {}
    for name in ("resnet18", "resnet50"):
        block = ARCHITECTURES[name]((3, 8, 8), 2, width=4).layer2[0]
        strides[name] = [m.stride[0] for m in block.modules() if isinstance(m, torch.nn.Conv2d)]
    assert strides == {"resnet18": [2, 1, 2], "resnet50": [1, 2, 1, 2]}  # the last is the shortcut's
