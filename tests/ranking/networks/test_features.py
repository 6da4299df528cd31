"""Features of torch networks: the right layer, every example once, nothing left behind."""

from __future__ import annotations

import copy
import dataclasses
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.numpy import save_file
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, Subset

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.nn.architectures import ARCHITECTURES
from curvewise.nn.task import Examples
from curvewise.ranking.measure import CheckpointFeatures
from curvewise.ranking.networks.checkpoints import Checkpoint, InputBatch, LayerOutputs
from curvewise.ranking.networks.features import TokenFeatures, extract_features, extract_many
from curvewise.ranking.networks.inputs import read_inputs
from curvewise.ranking.networks.modules import TorchReader
from curvewise.ranking.networks.preprocessing import Preprocessing

RNG = np.random.default_rng(11)
IMAGES = RNG.integers(0, 256, (37, 3, 10, 12)).astype(np.uint8)
PLAIN = Preprocessing()


class Net(nn.Module):
    """A small network whose parts can be taken apart by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(inplace=True))
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(6, 4)

    def features(self, x: Tensor) -> Tensor:
        return self.stem(x).mean(dim=(2, 3))  # type: ignore[no-any-return]

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.drop(self.features(x)))  # type: ignore[no-any-return]


def net() -> Net:
    torch.manual_seed(0)
    made = Net()
    made.train()(torch.rand(16, 3, 10, 12))
    return made


def by_hand(model: Net) -> tuple[np.ndarray, np.ndarray]:
    ready = copy.deepcopy(model).eval()
    with torch.no_grad():
        found = ready.features(torch.from_numpy(IMAGES).float() / 255)
        return found.numpy(), ready.head(found).softmax(1).numpy()


def test_by_default_what_the_last_linear_layer_is_given() -> None:
    model = net()
    features, own = by_hand(model)
    found = extract_features(Checkpoint("net", model, preprocessing=PLAIN), IMAGES, batch=8)
    assert found.layer == "input of head"
    assert np.allclose(found.features, features, atol=1e-6)
    assert found.probabilities is not None
    assert np.allclose(found.probabilities, own, atol=1e-6)
    assert found.features.dtype == np.float32
    assert found.parameters == sum(p.numel() for p in model.parameters())
    assert any("'head'" in note for note in found.notes)
    assert found.seconds is not None
    assert found.seconds > 0


def test_operations_are_counted() -> None:
    found = extract_features(Checkpoint("net", net(), preprocessing=PLAIN), IMAGES)
    each = 2 * 8 * 10 * 6 * 27 + 2 * 6 * 4  # a multiplication and an addition count as two
    assert found.gflops == pytest.approx(37 * each / 1e9)


def test_the_network_is_left_as_it_was() -> None:
    model = net().train()
    model.drop.eval()
    before = copy.deepcopy(model.state_dict())
    extract_features(Checkpoint("net", model, preprocessing=PLAIN), IMAGES, layer="all")
    assert [m.training for m in model.modules()].count(False) == 1
    assert all(torch.equal(v, model.state_dict()[k]) for k, v in before.items())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


@pytest.mark.parametrize("batch", [1, 5, 37, 100])
def test_batches_do_not_matter(batch: int) -> None:
    model = net()
    found = extract_features(Checkpoint("net", model, preprocessing=PLAIN), IMAGES, batch=batch)
    assert np.allclose(found.features, by_hand(model)[0], atol=1e-6)


def test_a_named_layer_and_all_of_them_in_one_pass() -> None:
    model, calls = net(), []
    model.register_forward_hook(lambda m, a, out: calls.append(len(out)))
    ready = copy.deepcopy(model).eval()
    x = torch.from_numpy(IMAGES).float() / 255
    with torch.no_grad():
        conv = ready.stem[0](x).mean(dim=(2, 3)).numpy()
        norm = ready.stem[1](ready.stem[0](x)).mean(dim=(2, 3)).numpy()
        stem, logits = ready.stem(x).mean(dim=(2, 3)).numpy(), ready(x).numpy()
    one = Checkpoint("net", model, preprocessing=PLAIN)
    named = extract_features(one, IMAGES, layer="stem.0")
    assert np.allclose(named.features, conv, atol=1e-5)
    calls.clear()
    every = extract_features(one, IMAGES, layer="all", batch=20)
    assert sum(calls) == 37 + 2 + 1  # one to find the classifier, one to count operations
    assert list(every) == ["net @ stem.0", "net @ stem.1", "net @ stem", "net @ drop", "net @ head"]
    for name, wanted in {"stem.0": conv, "stem.1": norm, "stem": stem, "head": logits}.items():
        assert np.allclose(every[f"net @ {name}"].features, wanted, atol=1e-5), name
    assert every["net @ stem"].probabilities is not None


def test_a_layer_that_is_called_twice_is_told_apart() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.act = nn.Linear(4, 4), nn.Tanh()

        def forward(self, x: Tensor) -> Tensor:
            return self.act(self.a(self.act(x)))  # type: ignore[no-any-return]

    x = RNG.normal(size=(5, 4)).astype(np.float32)
    every = extract_features(Twice(), x, layer="all")
    assert list(every) == ["Twice @ act", "Twice @ a", "Twice @ act (call 2)"]
    assert np.allclose(every["Twice @ act"].features, np.tanh(x), atol=1e-6)


@pytest.mark.parametrize("name", ["cnn", "nin", "resnet18", "mlp", "resnet9"])
def test_classifiers_of_our_own_are_found(name: str) -> None:
    torch.manual_seed(1)
    model = ARCHITECTURES[name]((3, 32, 32), 7).eval()
    x = torch.rand(6, 3, 32, 32)
    found = extract_features(model, x)
    with torch.no_grad():
        wanted = model(x).softmax(dim=1)
    assert found.probabilities is not None
    assert np.allclose(found.probabilities, wanted, atol=1e-4)
    assert found.layer.startswith("input of ")


def test_a_convolution_of_one_pixel_is_a_classifier_too() -> None:
    torch.manual_seed(2)
    body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU())
    model = nn.Sequential(body, nn.Conv2d(8, 5, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    x = torch.rand(4, 3, 9, 9)
    found = extract_features(model, x)
    assert np.allclose(found.features, body(x).mean(dim=(2, 3)).detach(), atol=1e-6)
    assert found.layer == "input of 1"
    assert found.probabilities is not None
    assert found.probabilities.shape == (4, 5)


def test_scores_that_are_probabilities_already_are_kept() -> None:
    torch.manual_seed(3)
    x = torch.rand(4, 6)
    soft = nn.Sequential(nn.Linear(6, 3), nn.Softmax(dim=1))
    logs = nn.Sequential(soft[0], nn.LogSoftmax(dim=1))
    wanted = soft(x).detach()
    for model in (soft, logs, nn.Sequential(soft[0])):
        own = extract_features(model, x).probabilities
        assert own is not None
        assert np.allclose(own, wanted, atol=1e-6)
    binary = extract_features(nn.Sequential(nn.Linear(6, 1), nn.Sigmoid()), x).probabilities
    assert binary is not None
    assert np.allclose(binary.sum(axis=1), 1)


def test_a_network_without_its_classifier_gives_its_output() -> None:
    torch.manual_seed(4)
    block = nn.Sequential(nn.Linear(6, 12), nn.GELU(), nn.Linear(12, 6))

    class Headless(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block, self.norm, self.fc = block, nn.BatchNorm1d(6), nn.Identity()

        def forward(self, x: Tensor) -> Tensor:
            return self.fc(self.norm(x + self.block(x)))  # type: ignore[no-any-return]

    model = Headless()
    x = torch.rand(9, 6)
    found = extract_features(model, x)
    assert found.layer == "output"
    assert found.probabilities is None
    assert np.allclose(found.features, model.eval()(x).detach(), atol=1e-6)
    assert any("no linear classifier" in note for note in found.notes)


def test_outputs_in_tuples_and_dicts() -> None:
    class Wrapped(nn.Module):
        def __init__(self, how: str) -> None:
            super().__init__()
            self.how, self.net = how, net()

        def forward(self, x: Tensor) -> Any:
            out = self.net(x)
            return (out, None) if self.how == "tuple" else {"aux": None, "logits": out}

    features = by_hand(net())[0]
    for how in ("tuple", "dict"):
        found = extract_features(Checkpoint("w", Wrapped(how), preprocessing=PLAIN), IMAGES)
        assert found.layer == "input of net.head"
        assert np.allclose(found.features, features, atol=1e-6)


@pytest.mark.parametrize("pool", ["mean", "first", "flatten", "tokens"])
def test_ways_to_pool_a_feature_map(pool: str) -> None:
    model = net()
    ready = copy.deepcopy(model).eval()
    with torch.no_grad():
        maps = ready.stem(torch.from_numpy(IMAGES).float() / 255).numpy()
    places = maps.reshape(37, 6, -1).transpose(0, 2, 1)
    wanted = {
        "mean": places.mean(axis=1),
        "first": places[:, 0],
        "flatten": maps.reshape(37, -1),
        "tokens": places.reshape(-1, 6),
    }[pool]
    one = Checkpoint("net", model, layer="stem", preprocessing=PLAIN, pool=pool)
    found = extract_features(one, IMAGES, batch=10)
    assert np.allclose(found.features, wanted, atol=1e-5)
    if pool == "tokens":
        assert isinstance(found, TokenFeatures)
        assert found.examples is not None
        assert found.examples.tolist() == np.repeat(np.arange(37), 80).tolist()
        some = found.take(np.flatnonzero(found.examples == 3))
        assert np.allclose(some.features, places[3], atol=1e-5)


# Data


class Pictures(Dataset[Any]):
    """Pictures of Pillow, some of another size."""

    def __init__(self, *, ragged: bool = False) -> None:
        self.ragged = ragged

    def __len__(self) -> int:
        return len(IMAGES)

    def __getitem__(self, i: int) -> tuple[Image.Image, int]:
        picture = Image.fromarray(IMAGES[i].transpose(1, 2, 0))
        if self.ragged and i % 3 == 0:
            picture = picture.resize((30, 20))
        return picture, i % 4


def test_data_in_every_form_gives_the_same() -> None:
    model = net()
    wanted, labels = by_hand(model)[0], np.arange(37) % 4
    one = Checkpoint("net", model, preprocessing=PLAIN)
    forms: dict[str, Any] = {
        "array": IMAGES,
        "channels last": np.ascontiguousarray(IMAGES.transpose(0, 2, 3, 1)),
        "tensor": torch.from_numpy(IMAGES),
        "pair": (IMAGES, labels),
        "examples": Examples(IMAGES, labels, 4),
        "dataset": Pictures(),
        "loader": DataLoader(Pictures(), batch_size=4, shuffle=True),
    }
    for form, data in forms.items():
        found = extract_features(one, data, batch=10)
        assert np.allclose(found.features, wanted, atol=1e-6), form
    prepared = extract_features(Checkpoint("net", model), IMAGES.astype(np.float32) / 255)
    assert np.allclose(prepared.features, wanted, atol=1e-6)
    assert read_inputs(forms["dataset"]).labels.tolist() == labels.tolist()  # type: ignore[union-attr]
    assert read_inputs(forms["pair"]).labels.tolist() == labels.tolist()  # type: ignore[union-attr]
    some = extract_features(one, Subset(Pictures(), [5, 2, 30]))
    assert np.allclose(some.features, wanted[[5, 2, 30]], atol=1e-6)


def test_pictures_of_several_sizes_are_resized_one_by_one() -> None:
    model = net()
    one = Checkpoint("net", model, preprocessing=Preprocessing((10, 12)))
    found = extract_features(one, Pictures(ragged=True), batch=8)
    wanted = by_hand(model)[0]
    same = np.arange(37) % 3 != 0
    assert np.allclose(found.features[same], wanted[same], atol=1e-6)
    assert not np.allclose(found.features[~same], wanted[~same], atol=1e-3)


def test_some_examples_are_drawn_and_keep_their_order() -> None:
    model = net()
    one = Checkpoint("net", model, preprocessing=PLAIN)
    inputs = read_inputs(IMAGES, np.arange(37), examples=10, rng=3)
    found = extract_features(one, inputs)
    assert len(found) == 10
    assert (np.diff(inputs.rows) > 0).all()
    assert inputs.labels is not None
    assert inputs.labels.tolist() == inputs.rows.tolist()
    assert np.allclose(found.features, by_hand(model)[0][inputs.rows], atol=1e-6)
    again = extract_features(one, IMAGES, examples=10, rng=3)
    assert np.array_equal(again.features, found.features)


def test_the_normalisation_of_the_data_is_used_where_the_network_says_nothing() -> None:
    model = net().eval()
    mean, std = (0.4, 0.5, 0.6), (0.2, 0.3, 0.4)
    data = Examples(IMAGES, np.zeros(37, np.int64), 4, mean, std)
    x = torch.from_numpy(IMAGES).float() / 255
    shift, scale = (torch.tensor(v)[:, None, None] for v in (mean, std))
    wanted = model.features((x - shift) / scale).detach()
    assert np.allclose(extract_features(model, data).features, wanted, atol=1e-5)


def test_a_networks_own_configuration_comes_before_the_data() -> None:
    model = net().eval()
    model.pretrained_cfg = {  # type: ignore[assignment]
        "input_size": (3, 20, 20),
        "crop_pct": 1.0,
        "mean": (0.5, 0.5, 0.5),
        "std": (0.5, 0.5, 0.5),
        "interpolation": "bilinear",
    }
    ready = Preprocessing(20, 20, 0.5, 0.5)(torch.from_numpy(IMAGES))
    wanted = model.features(ready).detach()
    data = Examples(IMAGES, np.zeros(37, np.int64), 4, (0.1,) * 3, (0.2,) * 3)
    assert np.allclose(extract_features(model, data).features, wanted, atol=1e-5)


# What goes wrong


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (IMAGES, "preprocessing of 'Net' is not known"),
        (np.zeros((4, 3, 8, 3), np.uint8), "cannot be told where their channels"),
        (np.zeros((4, 5, 8, 8), np.uint8), "cannot be told where their channels"),
        (np.zeros((0, 3, 8, 8), np.uint8), "data is empty"),
        (np.zeros((4, 6), np.float32), "cannot be called with a batch"),
        (["a text"], "tokenizer of 'Net' is missing"),
        (3, "data is a int"),
        (np.array([{}]), "data holds object"),
    ],
    ids=["bytes", "both", "neither", "empty", "shape", "texts", "number", "objects"],
)
def test_data_that_does_not_fit_is_told(data: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        extract_features(net(), data)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"layer": "stemm"}, "no submodule of that name.*stem"),
        ({"batch": 0}, "batch=0"),
        ({"precision": "int8"}, "precision='int8'"),
        ({"examples": 0.0}, "examples=0.0"),
        ({"layout": "middle"}, "layout='middle'"),
        ({"device": "tpu"}, "device='tpu'"),
    ],
    ids=["layer", "batch", "precision", "examples", "layout", "device"],
)
def test_options_that_cannot_be_are_told(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        extract_features(Checkpoint("net", net(), preprocessing=PLAIN), IMAGES, **options)


def test_a_layer_that_is_never_called_is_told() -> None:
    model = net()
    model.spare = nn.Linear(2, 2)
    with pytest.raises(InputError, match="layer='spare': it is never called"):
        extract_features(Checkpoint("net", model, preprocessing=PLAIN), IMAGES, layer="spare")


def test_one_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "broken.onnx").write_bytes(b"\x08\x07nonsense")

    class Diverged(Net):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x / 0)

    def careless(x: Any) -> Any:
        raise KeyError("lost")

    given = {
        "good": Checkpoint("x", net(), preprocessing=PLAIN),
        "file": tmp_path / "broken.onnx",
        "absent": tmp_path / "none.pt2",
        "nan": Checkpoint("x", Diverged(), preprocessing=PLAIN),
        "own": careless,
        "rows": np.zeros((5, 2)),
        "last": Checkpoint("x", net(), preprocessing=PLAIN),
    }
    shares: list[float] = []
    found, failures = extract_many(given, IMAGES, progress=shares.append, batch=16)
    assert list(found) == ["good", "last"]
    assert list(failures) == ["file", "absent", "nan", "own", "rows"]
    assert "cannot be read" in failures["file"]
    assert "no such file" in failures["absent"]
    assert "gives NaN" in failures["nan"]
    assert "KeyError" in failures["own"]
    assert "features of 5 examples, and the data has 37" in failures["rows"]
    assert shares[-1] == pytest.approx(1)
    assert shares == sorted(shares)


def test_where_memory_runs_out_batches_are_halved() -> None:
    class Hungry(Net):
        most, seen = 5, 0

        def forward(self, x: Tensor) -> Tensor:
            if len(x) > self.most:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return super().forward(x)

    torch.manual_seed(0)
    model = Hungry()
    one = Checkpoint("net", model, preprocessing=PLAIN)
    found = extract_features(one, IMAGES, batch=16)
    assert np.allclose(found.features, by_hand(model)[0], atol=1e-6)
    assert "memory ran out: batches were halved to 4" in found.notes
    model.most = 0
    with pytest.raises(InputError, match="not even with one"):
        extract_features(Checkpoint("net", model, layer="stem", preprocessing=PLAIN), IMAGES)


def test_half_precision_gives_nearly_the_same_in_float32() -> None:
    model = net()
    one = Checkpoint("net", model, preprocessing=PLAIN)
    found = extract_features(one, IMAGES, precision="bfloat16")
    assert found.features.dtype == np.float32
    difference = np.abs(found.features - by_hand(model)[0]).max()
    assert 0 < difference < 0.05


def test_many_features_lie_in_a_file() -> None:
    model = net()
    one = Checkpoint("net", model, preprocessing=PLAIN)
    found = extract_features(one, IMAGES, limit=200, batch=4)
    assert isinstance(found.features, np.memmap)
    assert np.allclose(found.features, by_hand(model)[0], atol=1e-6)
    assert any("temporary file" in note for note in found.notes)


# The cache


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Examples of each forward pass."""
    done: list[int] = []
    read = TorchReader.read

    def counted(self: TorchReader, given: InputBatch) -> LayerOutputs:
        done.append(len(given))
        return read(self, given)

    monkeypatch.setattr(TorchReader, "read", counted)
    return done


def test_features_are_computed_once(passes: list[int], tmp_path: Path) -> None:
    model = net().eval()
    one = Checkpoint("a", model, preprocessing=PLAIN, source_accuracy=0.5)
    first = extract_features(one, IMAGES, cache=tmp_path)
    assert sum(passes) == len(IMAGES)
    shares: list[float] = []
    again = Checkpoint("b", copy.deepcopy(model).train(), preprocessing=PLAIN)
    second = extract_features(again, DataLoader(Pictures()), cache=tmp_path, progress=shares.append)
    assert sum(passes) == len(IMAGES)
    assert shares == [1.0]
    assert (second.name, second.layer, second.seconds) == ("b", first.layer, first.seconds)
    assert second.source_accuracy is None
    assert np.array_equal(second.features, first.features)
    assert second.probabilities is not None
    assert np.array_equal(second.probabilities, first.probabilities)  # type: ignore[arg-type]
    assert any("read from the cache" in note for note in second.notes)


@pytest.mark.parametrize(
    "change", ["weight", "buffer", "pixel", "order", "preprocessing", "layer", "pool", "precision"]
)
def test_whatever_changes_features_makes_them_anew(passes: list[int], tmp_path: Path, change: str) -> None:
    model = net()
    options: dict[str, Any] = {"preprocessing": PLAIN}
    images, precision = IMAGES.copy(), "float32"
    extract_features(Checkpoint("a", model, **options), images, cache=tmp_path)
    if change == "weight":
        model.head.bias.data[0] += 1e-6
    elif change == "buffer":
        model.get_buffer("stem.1.running_mean")[0] += 1e-6
    elif change == "pixel":
        images[36, 2, 9, 11] ^= 1
    elif change == "order":
        images = images[::-1].copy()
    elif change == "preprocessing":
        options["preprocessing"] = Preprocessing(mean=0.5)
    elif change in ("layer", "pool"):
        options[change] = {"layer": "stem", "pool": "first"}[change]
    else:
        precision = "bfloat16"
    one = Checkpoint("a", model, **options)
    found = extract_features(one, images, cache=tmp_path, precision=precision)
    assert sum(passes) == 2 * len(IMAGES)
    fresh = extract_features(one, images, precision=precision)
    assert np.array_equal(found.features, fresh.features)


def test_all_layers_and_tokens_come_back_from_the_cache(tmp_path: Path) -> None:
    for options in ({"layer": "all"}, {"layer": "stem", "pool": "tokens"}):
        one = Checkpoint("net", net(), preprocessing=PLAIN, **options)  # type: ignore[arg-type]
        first, second = (extract_many([one], IMAGES, cache=tmp_path)[0] for _ in range(2))
        assert list(first) == list(second)
        for name, found in first.items():
            assert np.array_equal(found.features, second[name].features)
            assert type(found) is type(second[name])
            assert getattr(found, "examples", 0) is not None
            assert np.array_equal(getattr(found, "examples", ()), getattr(second[name], "examples", ()))


def test_a_damaged_cache_is_told_and_mended(tmp_path: Path) -> None:
    one = Checkpoint("a", net(), preprocessing=PLAIN)
    first = extract_features(one, IMAGES, cache=tmp_path)
    (file,) = tmp_path.glob("*.features.npy")
    file.write_bytes(file.read_bytes()[:-4])
    second = extract_features(one, IMAGES, cache=tmp_path)
    assert any("computed again" in note for note in second.notes)
    assert np.array_equal(first.features, second.features)
    third = extract_features(one, IMAGES, cache=tmp_path)
    assert not any("computed again" in note for note in third.notes)


def test_features_are_not_lost_where_they_cannot_be_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(*given: Any) -> None:
        raise OSError(28, "No space left on device")

    model = net()
    one = Checkpoint("a", model, preprocessing=PLAIN)
    monkeypatch.setattr("os.replace", full)
    with pytest.warns(CurvewiseWarning, match="No space left"):
        found = extract_features(one, IMAGES, cache=tmp_path)
    assert np.allclose(found.features, by_hand(model)[0], atol=1e-6)
    assert any("No space left" in note for note in found.notes)
    assert list(tmp_path.iterdir()) == []


def test_all_layers_and_checkpoints_share_the_memory() -> None:
    one = Checkpoint("net", net(), preprocessing=PLAIN)
    pool = dict.fromkeys("abc", one)
    size = extract_features(one, IMAGES).features.nbytes + 37 * 4 * 4
    found, _ = extract_many(pool, IMAGES, limit=2 * size)
    assert [isinstance(f.features, np.memmap) for f in found.values()] == [False, False, True]
    failing = Checkpoint("bad", nn.Sequential(one.source, Fails()), preprocessing=PLAIN)
    found, failures = extract_many([failing, one], IMAGES, limit=size, batch=10)
    assert list(failures) == ["bad"]
    assert not isinstance(found["net"].features, np.memmap)


class Fails(nn.Module):
    """Gives NaN for the last batch."""

    def forward(self, x: Tensor) -> Tensor:
        return x if len(x) != 7 else x * torch.nan


def test_what_cannot_be_told_by_its_content_is_not_cached(tmp_path: Path) -> None:
    def mean(x: np.ndarray) -> np.ndarray:
        return x.reshape(len(x), 3, -1).mean(axis=2)

    found = extract_features(mean, IMAGES, cache=tmp_path)
    assert any("not cached" in note for note in found.notes)
    own = Checkpoint("a", net(), preprocessing=lambda x: x.float() / 255)
    assert any("not cached" in n for n in extract_features(own, IMAGES, cache=tmp_path).notes)
    assert list(tmp_path.iterdir()) == []


# Sources that are no modules


def test_an_archive_that_unpacks_to_far_more_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "features.npz"
    np.savez_compressed(path, features=np.zeros((37, 100_000), np.float32))
    assert len(extract_features(path, IMAGES)) == 37
    with zipfile.ZipFile(path) as archive:
        size = archive.infolist()[0].file_size
    monkeypatch.setattr("curvewise.ranking.networks.formats._UNPACKED", size - 1)
    with pytest.raises(InputError, match="unpacked it would take"):
        extract_features(path, IMAGES)


def test_functions_take_pixels_or_what_was_prepared() -> None:
    def own(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        flat = x.reshape(len(x), -1)
        return flat[:, :5], np.full((len(x), 2), 0.5)

    raw = extract_features(own, IMAGES)
    assert np.array_equal(raw.features, IMAGES.reshape(37, -1)[:, :5])
    assert raw.probabilities is not None
    assert raw.gflops is None
    ready = extract_features(Checkpoint("own", own, preprocessing=PLAIN), IMAGES, batch=9)
    assert np.allclose(ready.features, IMAGES.reshape(37, -1)[:, :5] / 255)
    with pytest.raises(InputError, match="it must give a row for each"):
        extract_features(lambda x: x[:1], IMAGES)
    with pytest.raises(InputError, match="a function has no layers"):
        extract_features(own, IMAGES, layer="fc")


def test_tokens_of_a_function_are_a_row_each() -> None:
    """The last axis of (examples, tokens, features) holds features, the second of a map of pixels."""
    places = IMAGES.reshape(37, 3, -1).transpose(0, 2, 1)
    given = {5: lambda x: x.reshape(len(x), 3, -1).transpose(0, 2, 1)[:, :5], 120: lambda x: x.astype(np.float32)}
    for count, function in given.items():
        found = extract_features(Checkpoint("own", function, pool="tokens"), IMAGES, batch=9)
        assert isinstance(found, TokenFeatures)
        assert np.array_equal(found.features, places[:, :count].reshape(-1, 3))
        assert found.examples is not None
        assert found.examples.tolist() == np.repeat(np.arange(37), count).tolist()


def test_features_that_were_given(tmp_path: Path) -> None:
    features = RNG.normal(size=(37, 4)).astype(np.float32)
    own = RNG.dirichlet(np.ones(3), 37).astype(np.float32)
    np.save(tmp_path / "a.npy", features)
    np.savez(tmp_path / "b.npz", features=features, probabilities=own)
    save_file({"features": features, "probabilities": own}, tmp_path / "c.safetensors")
    given = {
        "array": features,
        "tensor": torch.from_numpy(features),
        "object": CheckpointFeatures("z", features, own),
        **{path.stem: path for path in tmp_path.iterdir()},
    }
    inputs = read_inputs(IMAGES, examples=20, rng=1)
    found, failures = extract_many(given, inputs)
    assert failures == {}
    for name, one in found.items():
        assert np.array_equal(one.features, features[inputs.rows]), name
        assert one.name == name
        if name in ("object", "b", "c"):
            assert one.probabilities is not None
            assert np.array_equal(one.probabilities, own[inputs.rows]), name
    np.savez(tmp_path / "d.npz", a=features, b=own)
    with pytest.raises(InputError, match="call the matrix of features 'features'"):
        extract_features(tmp_path / "d.npz", IMAGES)
    np.save(tmp_path / "e.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(InputError, match="as plain arrays"):
        extract_features(tmp_path / "e.npy", IMAGES)


# Files of torch


def saved(model: nn.Module, path: Path, *, batch: int | None = None) -> Path:
    dynamic = None if batch else ({0: torch.export.Dim.DYNAMIC},)
    program = torch.export.export(model, (torch.rand(batch or 4, 3, 10, 12),), dynamic_shapes=dynamic)
    torch.export.save(program, path)
    return path


@pytest.mark.parametrize("kind", ["pt2", "fixed", "traced", "scripted"])
def test_exported_networks_give_what_their_module_gives(kind: str, tmp_path: Path) -> None:
    model = net().eval()
    features, own = by_hand(model)
    path = tmp_path / "net.pt"
    if kind in ("pt2", "fixed"):
        saved(model, path, batch=5 if kind == "fixed" else None)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            x = torch.rand(2, 3, 10, 12)
            script = torch.jit.trace(model, x) if kind == "traced" else torch.jit.script(model)
            script.save(path)
    found = extract_features(Checkpoint("net", path, preprocessing=PLAIN), IMAGES, batch=8)
    assert "input" in found.layer
    assert np.allclose(found.features, features, atol=1e-5)
    assert found.probabilities is not None
    assert np.allclose(found.probabilities, own, atol=1e-5)
    each = 2 * 8 * 10 * 6 * 27 + 2 * 6 * 4
    assert found.gflops == pytest.approx(37 * each / 1e9)


def test_layers_of_an_exported_network(tmp_path: Path) -> None:
    model = net().eval()
    path = saved(model, tmp_path / "net.pt2")
    one = Checkpoint("net", path, preprocessing=PLAIN)
    found = extract_features(one, IMAGES, layer="stem")
    assert np.allclose(found.features, by_hand(model)[0], atol=1e-5)
    with pytest.raises(InputError, match="cannot be reached"):
        extract_features(one, IMAGES, layer="all")


FACTORY = """
from torch import nn

def make(shape, classes, width=6):
    return nn.Sequential(
        nn.Conv2d(shape[0], width, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(width, classes),
    )
"""


@pytest.mark.parametrize("how", ["module:function", "callable"])
def test_weights_with_a_factory(how: str, tmp_path: Path) -> None:
    (tmp_path / "ours.py").write_text(FACTORY)
    space: dict[str, Any] = {}
    exec(FACTORY, space)
    torch.manual_seed(5)
    model = space["make"]((3, 10, 12), 9, width=7)
    state = {f"module.{k}": v for k, v in model.state_dict().items()}
    torch.save({"state_dict": state}, tmp_path / "net.th")
    factory = "ours:make" if how == "module:function" else space["make"]
    one = Checkpoint(
        "net", tmp_path / "net.th", factory=factory, options={"width": 7}, preprocessing=PLAIN, folder=tmp_path
    )
    seed = torch.random.get_rng_state()
    found = extract_features(one, IMAGES)
    assert torch.equal(seed, torch.random.get_rng_state())
    wanted = model[:-1](torch.from_numpy(IMAGES).float() / 255).detach()
    assert np.allclose(found.features, wanted, atol=1e-6)
    assert found.probabilities is not None
    assert found.probabilities.shape == (37, 9)
    assert any("made for 9 classes" in note for note in found.notes)
    assert any("'module.' was removed from" in note for note in found.notes)
    save_file({k: v.numpy() for k, v in model.state_dict().items()}, tmp_path / "net.safetensors")
    plain = dataclasses.replace(one, source=tmp_path / "net.safetensors")
    assert not any("removed from" in note for note in extract_features(plain, IMAGES).notes)
    with pytest.raises(InputError, match="holds weights alone"):
        extract_features(Checkpoint("net", tmp_path / "net.th", preprocessing=PLAIN), IMAGES)


@pytest.mark.parametrize("where", ["checkpoint", "default"])
def test_preprocessing_that_floating_point_images_do_not_get_is_told(where: str) -> None:
    model, own = net(), Preprocessing(mean=0.5, std=0.5)
    floats = IMAGES.astype(np.float32) / 255
    one = Checkpoint("net", model, preprocessing=own if where == "checkpoint" else None)
    default = {"preprocessing": own} if where == "default" else {}
    with pytest.warns(CurvewiseWarning, match="not applied: give images of uint8"):
        found = extract_features(one, floats, **default)
    assert np.allclose(found.features, by_hand(model)[0], atol=1e-6)
    assert any("preprocessing was not applied" in note for note in found.notes)
    plain = extract_features(Checkpoint("net", model), floats)  # nothing given, nothing to tell
    assert not any("preprocessing" in note for note in plain.notes)


def test_options_of_another_name_are_refused() -> None:
    with pytest.raises(TypeError, match="argument 'bach'"):
        extract_features(net(), IMAGES, bach=3)  # type: ignore[call-overload]
