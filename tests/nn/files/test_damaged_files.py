"""Damaged files of networks and weights are refused in words, whatever is wrong with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from damaging import damaged, survives
from torch import nn

from curvewise.nn.files.model import load_model
from curvewise.nn.files.tensors import read_weights
from curvewise.ranking.networks.features import extract_features

pytestmark = pytest.mark.filterwarnings("ignore")

SHAPE, CLASSES = (6,), 3


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, CLASSES)).eval()


def exported(path: Path) -> None:
    with open(path, "wb") as stream:
        torch.export.save(torch.export.export(network(), (torch.zeros(4, 6),)), stream)


def scripted(path: Path) -> None:
    torch.jit.save(torch.jit.trace(network(), torch.zeros(2, 6)), path)


def legacy(path: Path) -> None:
    torch.save(network().state_dict(), path, _use_new_zipfile_serialization=False)


def safetensors(path: Path) -> None:
    save = pytest.importorskip("safetensors.torch").save_file
    save(network().state_dict(), path)


def onnx(path: Path) -> None:
    made = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper, kind = made.helper, made.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", kind, ["batch", 6])],
        [helper.make_tensor_value_info("y", kind, ["batch", CLASSES])],
        [helper.make_tensor("w", kind, (6, CLASSES), np.ones(6 * CLASSES).tolist())],
    )
    opset = [helper.make_opsetid("", 17)]
    made.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)


def load(path: Path) -> Any:
    weights = path.suffix in (".pth", ".safetensors")
    return load_model(path, shape=SHAPE, classes=CLASSES, factory="mlp" if weights else None, layer=None)


@pytest.mark.parametrize(
    ("name", "make", "count"),
    [
        ("a.pt2", exported, 12),
        ("a.pt", scripted, 20),
        ("a.pth", lambda path: torch.save(network().state_dict(), path), 50),
        ("b.pth", legacy, 50),
        ("a.safetensors", safetensors, 50),
        ("a.onnx", onnx, 40),
    ],
)
def test_damaged_networks(tmp_path, name: str, make: Callable[[Path], None], count: int, capfd):
    path = tmp_path / name
    make(path)
    whole = path.read_bytes()
    for made in (whole, *damaged(whole, count)):
        path.write_bytes(made)
        survives(load, path)
        if path.suffix in (".pth", ".safetensors"):
            survives(read_weights, path)


def test_damaged_arrays_of_weights_and_features(tmp_path):
    path = tmp_path / "a.npz"
    features = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
    for key, read in (("0.weight", read_weights), ("features", _features)):
        np.savez_compressed(path, **{key: features})
        whole = path.read_bytes()
        assert survives(read, path)
        for made in damaged(whole, 40):
            path.write_bytes(made)
            survives(read, path)


def _features(path: Path) -> Any:
    return extract_features(path, np.zeros((8, 3), dtype=np.float32))


def test_damaged_tensorflow_lite(tmp_path, data_dir: Path):
    pytest.importorskip("ai_edge_litert")
    whole = data_dir / "checkpoints" / "mobilenet_v1_0.25_128_quant.tflite"
    if not whole.is_file():
        pytest.skip("no such file among the data")
    path = tmp_path / "a.tflite"
    images = np.zeros((1, 128, 128, 3), dtype=np.uint8)
    for made in damaged(whole.read_bytes(), 8):
        path.write_bytes(made)
        survives(lambda file: extract_features(file, images), path)
