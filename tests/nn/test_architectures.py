"""Networks: sizes known from elsewhere, gradients everywhere, weights by seed alone."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from curvewise.errors import InputError, MissingDependencyError
from curvewise.nn.networks import ARCHITECTURES, features_of, head_of, make_network
from curvewise.nn.training import ROW_ARCHITECTURES, Training

SHAPES = [(1, 8, 8), (1, 28, 28), (3, 32, 32)]
SLIM: dict[str, dict[str, Any]] = {**{name: {"width": 8} for name in ROW_ARCHITECTURES}, "linear": {}}


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


def test_layers_have_the_names_of_torchvision_s_files() -> None:
    names = set(ARCHITECTURES["resnet18"]((3, 32, 32), 10, width=4).state_dict())
    assert {"conv1.weight", "bn1.running_var", "layer2.0.downsample.0.weight", "fc.bias"} <= names
    deep = set(ARCHITECTURES["vgg19"]((1, 8, 8), 10, width=4, batch_norm=True).state_dict())
    assert {"features.0.weight", "features.49.weight", "features.50.running_mean"} <= deep


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ROW_ARCHITECTURES)
def test_logits_features_and_gradients(name: str, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    model = ARCHITECTURES[name](shape, 7, **SLIM[name])
    x = torch.randn(16, *shape)
    logits = model(x)
    assert logits.shape == (16, 7)
    nn.functional.cross_entropy(logits, torch.arange(16) % 7).backward()
    for parameter, value in model.named_parameters():
        assert value.grad is not None, parameter
        # a ReLU may be dead, not a whole layer
        assert float(value.grad.abs().max()) > 0, parameter
    head = head_of(model)[1]
    features = features_of(model.eval(), x)
    assert features.shape == (16, head.in_features)
    scale = 0.2 if name == "resnet9" else 1.0
    torch.testing.assert_close(head(features) * scale, model(x))


@pytest.mark.parametrize("name", ROW_ARCHITECTURES)
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


@pytest.mark.parametrize("name", ["cnn", "vgg11", "nin", "resnet9", "resnet18"])
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


def test_no_network_has_dropout() -> None:
    for name in ROW_ARCHITECTURES:
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
    model = make_network(Training("curvewise.nn.networks:linear"), (4,), 3)
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
