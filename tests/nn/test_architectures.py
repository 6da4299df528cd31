"""Published networks: their weights counted, their layers named, their outputs those of torchvision."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from curvewise.errors import InputError
from curvewise.nn.architectures import ARCHITECTURES, GridMean
from curvewise.nn.engine import train
from curvewise.nn.networks import features_of, head_of, make_network, notes_of, settle_weights
from curvewise.nn.task import Assignment, Examples, Keep
from curvewise.nn.training import Training

FULL = {"classifier": "full"}
PUBLISHED: dict[str, tuple[dict[str, Any], int]] = {
    # Weights for 1000 classes, as torchvision's documentation prints them; GoogLeNet's without auxiliary classifiers.
    "alexnet": ({}, 61_100_840),
    "vgg11": (FULL, 132_863_336),
    "vgg16": (FULL, 138_357_544),
    "resnet101": ({}, 44_549_160),
    "resnet152": ({}, 60_192_808),
    "resnext50_32x4d": ({}, 25_028_904),
    "resnext101_32x8d": ({}, 88_791_336),
    "wide_resnet50_2": ({}, 68_883_240),
    "wide_resnet101_2": ({}, 126_886_696),
    "mobilenet_v2": ({}, 3_504_872),
    "googlenet": ({}, 6_624_904),
}
LAYERS: dict[str, dict[str, tuple[int, ...]]] = {
    "alexnet": {"features.0.weight": (64, 3, 11, 11), "features.10.bias": (256,), "classifier.1.weight": (4096, 9216)},
    "vgg16": {
        "features.28.weight": (512, 512, 3, 3),
        "classifier.0.weight": (4096, 25088),
        "classifier.6.bias": (1000,),
    },
    "resnet101": {
        "conv1.weight": (64, 3, 7, 7),
        "layer3.22.conv3.weight": (1024, 256, 1, 1),
        "fc.weight": (1000, 2048),
    },
    "resnext50_32x4d": {"layer1.0.conv1.weight": (128, 64, 1, 1), "layer4.2.conv2.weight": (1024, 32, 3, 3)},
    "wide_resnet50_2": {"layer1.0.conv2.weight": (128, 128, 3, 3), "layer4.0.downsample.0.weight": (2048, 1024, 1, 1)},
    "mobilenet_v2": {
        "features.0.0.weight": (32, 3, 3, 3),
        "features.1.conv.1.weight": (16, 32, 1, 1),
        "features.17.conv.1.0.weight": (960, 1, 3, 3),
        "features.18.1.running_var": (1280,),
        "classifier.1.weight": (1000, 1280),
    },
    "googlenet": {
        "conv1.conv.weight": (64, 3, 7, 7),
        "inception3a.branch3.1.conv.weight": (32, 16, 3, 3),
        "inception4e.branch4.1.bn.bias": (128,),
        "inception5b.branch2.0.conv.weight": (192, 832, 1, 1),
        "fc.weight": (1000, 1024),
    },
}


def _options(name: str) -> dict[str, Any]:
    stem = {"stem": "imagenet"} if "stem" in inspect.signature(ARCHITECTURES[name]).parameters else {}
    return {**stem, **PUBLISHED[name][0]}


@pytest.mark.parametrize("name", PUBLISHED)
def test_networks_have_their_published_sizes_and_names(name: str) -> None:
    with torch.device("meta"):
        model = ARCHITECTURES[name]((3, 224, 224), 1000, **_options(name))
    assert sum(p.numel() for p in model.parameters()) == PUBLISHED[name][1]
    shapes = {k: tuple(v.shape) for k, v in model.state_dict().items()}
    layers = LAYERS.get(name, {})
    assert {k: shapes[k] for k in layers} == layers


@pytest.mark.parametrize("name", PUBLISHED)
def test_outputs_are_those_of_torchvision(name: str, tmp_path: Path) -> None:
    torchvision = pytest.importorskip("torchvision", exc_type=ImportError)
    more = {"aux_logits": True, "init_weights": True} if name == "googlenet" else {}
    torch.manual_seed(1)
    theirs = torchvision.models.get_model(name, weights=None, **more)
    for layer in theirs.modules():
        if isinstance(layer, nn.BatchNorm2d):  # as of a trained network
            layer.running_mean.normal_(0, 0.1)
            layer.running_var.uniform_(0.5, 1.5)
    torch.save(theirs.state_dict(), tmp_path / "w.pth")
    # The stem is not said: the file chooses it.
    ours = make_network(Training(name, options=PUBLISHED[name][0], weights="w.pth"), (3, 224, 224), 1000, tmp_path)
    auxiliary = {k for k in theirs.state_dict() if k.startswith("aux")}
    assert [*ours.state_dict()] == [k for k in theirs.state_dict() if k not in auxiliary]
    assert notes_of(ours) == (("Auxiliary classifiers in w.pth were left out.",) if auxiliary else ())
    x = torch.randn(2, 3, 224, 224)
    with torch.no_grad():
        expected, found = theirs.eval()(x), ours.eval()(x)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4 * float(expected.abs().max()))
    assert float(expected.std()) > 0
    # The same weights fit the library's own route.
    route = Training(f"torchvision:{name}", weights="w.pth")
    again = make_network(route, (3, 224, 224), 1000, tmp_path).eval()
    with torch.no_grad():
        torch.testing.assert_close(again(x), expected)


def test_models_of_torchvision(tmp_path: Path) -> None:
    pytest.importorskip("torchvision", exc_type=ImportError)
    data = _examples(channels=3)
    for name in ("resnet18", "googlenet"):  # the latter must not give its auxiliary outputs
        training = Training(f"torchvision:{name}", epochs=1, batch=10, rate=0.01)
        ((_, found),) = train(training, [Assignment(np.arange(10))], data, {"test": data})
        assert found.error is None
    torch.save(
        make_network(Training("resnet18", options={"stem": "imagenet"}), (3, 32, 32), 5).state_dict(), tmp_path / "w.pt"
    )
    with_file = Training("torchvision:resnet18", weights="w.pt")
    assert settle_weights(with_file, (3, 32, 32), 3, tmp_path) == with_file
    with pytest.raises(InputError, match=r"w\.pt.*do not fit architecture='torchvision:resnet34'.*missing in the file"):
        settle_weights(Training("torchvision:resnet34", weights="w.pt"), (3, 32, 32), 3, tmp_path)
    with pytest.raises(InputError, match=r"3 channels, and these have 1"):
        make_network(Training("torchvision:resnet18"), (1, 32, 32), 3)
    with pytest.raises(InputError, match=r"not a classifier.*list_models"):
        make_network(Training("torchvision:fasterrcnn_resnet50_fpn"), (3, 32, 32), 3)


def test_models_of_timm(tmp_path: Path) -> None:
    timm = pytest.importorskip("timm", exc_type=ImportError)
    torch.manual_seed(1)
    theirs = timm.create_model("resnet18", pretrained=False, num_classes=1000)
    torch.save(theirs.state_dict(), tmp_path / "w.pt")
    x = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        expected = theirs.eval()(x)
        for name in ("resnet18", "timm:resnet18"):  # timm names these layers as torchvision does
            ours = make_network(Training(name, weights="w.pt"), (3, 64, 64), 1000, tmp_path).eval()
            torch.testing.assert_close(ours(x), expected, rtol=1e-3, atol=1e-4)
    assert make_network(Training("timm:resnet18"), (1, 32, 32), 3)(torch.randn(2, 1, 32, 32)).shape == (2, 3)
    with pytest.raises(InputError, match=r"do not fit architecture='timm:resnet34'"):
        settle_weights(Training("timm:resnet34", weights="w.pt"), (3, 32, 32), 3, tmp_path)


def _examples(channels: int = 1, side: int = 32, count: int = 12) -> Examples:
    x = np.random.default_rng(0).integers(0, 256, (count, channels, side, side)).astype(np.uint8)
    return Examples(x, np.arange(count) % 3, 3, mean=(0.5,) * channels, std=(0.25,) * channels)


TWINS = ("vgg11", "resnet152", "resnext101_32x8d", "wide_resnet101_2")  # no other code than that of a shallower one
SMALL = [(name, options) for name, (options, _) in PUBLISHED.items() if name not in TWINS]


@pytest.mark.parametrize(("name", "options"), SMALL)
def test_they_train_on_small_images_alone_as_beside_others(name: str, options: dict[str, Any]) -> None:
    data = _examples()
    training = Training(name, options={"width": 4, **options}, epochs=1, batch=12, rate=0.01)
    work = [Assignment(np.arange(12), init=seed, order=seed, augmentation=seed) for seed in (1, 2)]

    def ends(assignments: list[Assignment]) -> list[dict[str, Any]]:
        found = dict(train(training, assignments, data, {"test": data}, keep=Keep(checkpoints="end")))
        assert [t.error for t in found.values()] == [None] * len(assignments)
        return [dict(found[i].checkpoints["end"]) for i in range(len(assignments))]

    both, alone = ends(work), ends(work[1:])
    assert all(np.array_equal(alone[0][k], both[1][k]) for k in alone[0])
    # Every layer is trained, and by its own seeds.
    assert not [k for k in both[0] if k.endswith("weight") and np.array_equal(both[0][k], both[1][k])]


@pytest.mark.parametrize("side", [1, 3, 5, 7, 8, 13, 14])
def test_means_over_a_grid_are_those_of_torch(side: int) -> None:
    x = torch.randn(2, 3, side, side + 2, dtype=torch.float64, requires_grad=True)
    own = GridMean(7, side, side + 2).double()
    expected = nn.AdaptiveAvgPool2d(7)(x)
    torch.testing.assert_close(own(x), expected)
    slope = torch.randn_like(expected)
    (mine,) = torch.autograd.grad((own(x) * slope).sum(), x)
    (theirs,) = torch.autograd.grad((expected * slope).sum(), x)
    torch.testing.assert_close(mine, theirs)
    other = torch.randn(1, 3, 20, 20, dtype=torch.float64)  # images that it was not made for
    torch.testing.assert_close(own(other), nn.AdaptiveAvgPool2d(7)(other))


def test_dropout_is_as_published_and_an_option() -> None:
    for name, share in {"alexnet": 0.5, "vgg16": 0.5, "mobilenet_v2": 0.2, "googlenet": 0.2}.items():
        for given, expected in (({}, share), ({"dropout": 0.0}, 0.0)):
            options = {"width": 8, **PUBLISHED[name][0], **given}
            model = ARCHITECTURES[name]((3, 32, 32), 3, **options)
            assert {m.p for m in model.modules() if isinstance(m, nn.Dropout)} == {expected}
    with pytest.raises(InputError, match=r"dropout=1.*below 1"):
        ARCHITECTURES["alexnet"]((3, 32, 32), 3, width=8, dropout=1)


def test_the_usual_classifier_of_a_vgg_stays_one_layer() -> None:
    torch.manual_seed(3)
    usual = ARCHITECTURES["vgg11"]((1, 8, 8), 3, width=4)
    assert head_of(usual)[0] == "classifier"
    full = ARCHITECTURES["vgg11"]((1, 8, 8), 3, width=4, classifier="full")
    assert head_of(full)[0] == "classifier.6"
    assert features_of(full, torch.randn(2, 1, 8, 8)).shape == (2, 256)
    with pytest.raises(InputError, match=r"classifier='none' is not known: use linear or full"):
        ARCHITECTURES["vgg11"]((1, 8, 8), 3, classifier="none")


def test_a_mobilenet_of_half_the_width_has_channels_in_eights() -> None:
    # Sandler et al. round to multiples of 8; torchvision's mobilenet_v2(width_mult=0.5) has so many weights.
    with torch.device("meta"):
        half = ARCHITECTURES["mobilenet_v2"]((3, 224, 224), 1000, width=16)
    assert sum(p.numel() for p in half.parameters()) == 1_968_680


@pytest.mark.parametrize(("side", "steps"), [(32, 8), (96, 32)])
def test_mobilenet_halves_small_images_less_often(side: int, steps: int) -> None:
    model = ARCHITECTURES["mobilenet_v2"]((1, side, side), 3, width=8)
    assert model.features(torch.randn(1, 1, side, side)).shape[-1] == side // steps


def test_a_resnext_needs_an_even_width() -> None:
    with pytest.raises(InputError, match=r"width=5.*even"):
        ARCHITECTURES["resnext50_32x4d"]((3, 32, 32), 3, width=5)
    assert ARCHITECTURES["resnext50_32x4d"]((3, 8, 8), 3, width=6).layer1[0].conv2.groups == 3
