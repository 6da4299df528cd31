"""Features of quantised TensorFlow Lite files: real ones, and messages about others."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from curvewise.errors import InputError
from curvewise.ranking.networks.checkpoints import Checkpoint, InputBatch
from curvewise.ranking.networks.features import extract_features, extract_many
from curvewise.ranking.networks.formats import TfliteReader
from curvewise.ranking.networks.preprocessing import Preprocessing

SMALL = "mobilenet_v1_0.25_128_quant.tflite"
KNOWN = {  # features, classes, and 10⁶ multiplications with additions: as published
    "mobilenet_v1_0.25_128_quant": (256, 1001, 14),
    "mobilenet_v1_0.5_160_quant": (512, 1001, 77),
    "mobilenet_v1_0.75_192_quant": (768, 1001, 239),
    "mobilenet_v1_1.0_224_quant_embedding_extractor": (1024, None, 569),
    "mobilenet_v2_1.0_224_inat_bird_quant": (1280, 965, 300),
    "mobilenet_v2_1.0_224_inat_insect_quant": (1280, 1022, 300),
    "mobilenet_v2_1.0_224_quant": (1280, 1001, 300),
    "tf2_mobilenet_v2_1.0_224_ptq": (1280, 1001, 300),
}


def cifar(data_dir: Path, part: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    with np.load(data_dir / "cifar10_jpeg.npz") as archive:
        data, ends = archive[f"{part}_jpeg"], archive[f"{part}_offsets"]
        labels = archive[f"{part}_labels"][:count]
    pictures = [np.asarray(Image.open(io.BytesIO(data[ends[i] : ends[i + 1]].tobytes()))) for i in range(count)]
    return np.stack(pictures), labels


def file(data_dir: Path, name: str) -> Path:
    path = data_dir / "checkpoints" / name
    if not path.is_file():
        pytest.skip(f"no {name} among the data")
    return path


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_real_networks(data_dir: Path, name: str) -> None:
    path = file(data_dir, f"{name}.tflite")
    images, _ = cifar(data_dir, "test", 3)
    found = extract_features(path, images)
    size, classes, products = KNOWN[name]
    assert found.features.shape == (3, size)
    assert found.gflops == pytest.approx(3 * 2 * products / 1e3, rel=0.05)
    assert found.parameters is not None
    assert found.parameters == pytest.approx(path.stat().st_size, rel=0.15)  # a byte for each
    if classes is None:
        assert found.probabilities is None
        assert any("no linear classifier" in note for note in found.notes)
    else:
        assert found.probabilities is not None
        assert found.probabilities.shape == (3, classes)
        assert np.allclose(found.probabilities.sum(axis=1), 1, atol=1e-5)


def plain(path: Path, x: np.ndarray) -> Any:
    """The file run by itself, and what its output stands for."""
    from ai_edge_litert.interpreter import Interpreter

    one = Interpreter(str(path), num_threads=1)
    one.allocate_tensors()
    one.set_tensor(one.get_input_details()[0]["index"], x)
    one.invoke()
    about = one.get_output_details()[0]
    scale, zero = about["quantization"]
    return scale * (one.get_tensor(about["index"]).astype(float) - zero)


def test_bytes_go_in_as_they_are_and_probabilities_are_the_networks_own(data_dir: Path) -> None:
    path = file(data_dir, SMALL)
    images, _ = cifar(data_dir, "test", 4)
    large = np.repeat(np.repeat(images, 4, axis=1), 4, axis=2)  # 128 × 128, nothing to resize
    found = extract_features(path, large)
    wanted = np.concatenate([plain(path, x[None]) for x in large])
    assert found.probabilities is not None
    # Its own output has 256 levels; ours is the softmax of the same logits.
    assert np.abs(found.probabilities - wanted).max() < 3 / 256
    assert (found.probabilities.argmax(1) == wanted.argmax(1)).all()


def test_an_output_is_what_the_file_gives(data_dir: Path) -> None:
    path = file(data_dir, "mobilenet_v1_1.0_224_quant_embedding_extractor.tflite")
    images, _ = cifar(data_dir, "test", 2)
    large = np.repeat(np.repeat(images, 7, axis=1), 7, axis=2)
    found = extract_features(path, large)
    wanted = np.concatenate([plain(path, x[None]) for x in large]).reshape(2, -1)
    assert np.allclose(found.features, wanted, atol=1e-5)


def test_inside_tensors_are_those_of_the_reference_kernels(data_dir: Path) -> None:
    reader = TfliteReader(Checkpoint("small", file(data_dir, SMALL)))
    images, _ = cifar(data_dir, "test", 2)
    given = InputBatch(reader.preprocessing(np.moveaxis(images, -1, 1)))  # type: ignore[misc]
    fast = next(iter(reader.read(given).features.values()))
    for _ in range(reader._workers):
        reader._free.get()
        reader._free.put(reader._open(inside=True, delegates=False))
    slow = next(iter(reader.read(given).features.values()))
    assert np.corrcoef(fast.ravel(), slow.ravel())[0, 1] > 0.99  # the two round differently


def test_layers_by_name_and_all_of_them(data_dir: Path, tmp_path: Path) -> None:
    path = file(data_dir, SMALL)
    images, _ = cifar(data_dir, "test", 2)
    pooled = extract_features(path, images)
    named = extract_features(path, images, layer="MobilenetV1/Logits/AvgPool_1a/AvgPool")
    assert np.array_equal(pooled.features, named.features)
    every, failures = extract_many({"m": path}, images, layer="all", cache=tmp_path)
    assert failures == {}
    assert len(every) == 31  # its operations
    assert np.array_equal(every["m @ MobilenetV1/Logits/AvgPool_1a/AvgPool"].features, pooled.features)
    with pytest.raises(InputError, match=r"no tensor of that name.*AvgPool"):
        extract_features(path, images, layer="MobilenetV1/Logits/AvgPool_1a/AvgPoool")


def test_ones_own_preprocessing_is_quantised(data_dir: Path) -> None:
    path = file(data_dir, SMALL)
    images, _ = cifar(data_dir, "test", 2)
    own = Preprocessing((128, 128), mean=128 / 255, std=128 / 255)  # the same, in other words
    found = extract_features(Checkpoint("m", path, preprocessing=own), images)
    assert np.array_equal(found.features, extract_features(path, images).features)
    with pytest.raises(InputError, match=r"takes inputs of shape \(1, 128, 128, 3\)"):
        extract_features(Checkpoint("m", path, preprocessing=Preprocessing(64)), images)


def test_a_damaged_file_is_told(data_dir: Path, tmp_path: Path) -> None:
    content = file(data_dir, SMALL).read_bytes()
    cut = tmp_path / "cut.tflite"
    cut.write_bytes(content[:5000])
    with pytest.raises(InputError, match="cannot be read"):
        extract_features(cut, np.zeros((2, 3, 8, 8), np.uint8))


def test_nothing_is_written_to_stderr_where_all_is_well(data_dir: Path) -> None:
    program = (
        "import sys, numpy as np; from curvewise.ranking.networks.features import extract_features; "
        "extract_features(sys.argv[1], np.zeros((2, 8, 8, 3), np.uint8), progress=False)"
    )
    given = [sys.executable, "-W", "ignore", "-c", program, str(file(data_dir, SMALL))]
    done = subprocess.run(given, capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_features_tell_pictures_apart_better_than_pixels(data_dir: Path) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    images, labels = cifar(data_dir, "train", 400)
    found = extract_features(file(data_dir, SMALL), images)

    def accuracy(x: np.ndarray) -> float:
        scaled = (x - x[:260].mean(axis=0)) / (x[:260].std(axis=0) + 1e-6)
        probe = linear_model.LogisticRegression(C=0.01, max_iter=300)
        return float(probe.fit(scaled[:260], labels[:260]).score(scaled[260:], labels[260:]))

    pixels = images.reshape(400, -1) / 255.0
    assert accuracy(found.features) > accuracy(pixels) + 0.1
