"""Features of ONNX files: against the same network in torch, and of architectures of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch.nn import functional

from curvewise.errors import InputError
from curvewise.ranking.networks.checkpoints import Checkpoint
from curvewise.ranking.networks.features import TokenFeatures, extract_features, extract_many
from curvewise.ranking.networks.formats import OnnxGraph
from curvewise.ranking.networks.inputs import Inputs
from curvewise.ranking.networks.preprocessing import Preprocessing

RNG = np.random.default_rng(6)
CONV = RNG.normal(size=(6, 3, 3, 3)).astype(np.float32)
DENSE = RNG.normal(size=(6, 4)).astype(np.float32)
IMAGES = RNG.integers(0, 256, (11, 3, 8, 9)).astype(np.uint8)
PLAIN = Preprocessing()


def by_hand(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Feature map, its mean, and probabilities."""
    maps = functional.conv2d(torch.from_numpy(x), torch.from_numpy(CONV)).relu()
    features = maps.mean(dim=(2, 3))
    return maps.numpy(), features.numpy(), (features @ torch.from_numpy(DENSE)).softmax(1).numpy()


def network(path: Path, kind: str = "gemm", batch: int | str = "n", beside: bool = False) -> Path:
    """A convolution, a mean and a classifier, written in several ways."""
    node = helper.make_node
    nodes = [node("Conv", ["in", "conv"], ["map"], name="first"), node("Relu", ["map"], ["act"])]
    mean = [node("GlobalAveragePool", ["act"], ["pool"]), node("Flatten", ["pool"], ["flat"])]
    weights = {"conv": CONV, "dense": DENSE}
    shape: list[Any] = [batch, 3, 8, 9]
    element = TensorProto.FLOAT
    tail: list[Any]
    if kind == "gemm":
        tail = [*mean, node("Gemm", ["flat", "dense"], ["scores"]), node("Softmax", ["scores"], ["out"])]
    elif kind == "transposed":  # as torch exports a matrix product
        weights["dense"] = np.ascontiguousarray(DENSE.T)
        tail = [
            *mean,
            node("Transpose", ["dense"], ["turned"], perm=[1, 0]),
            node("MatMul", ["flat", "turned"], ["product"]),
            node("Add", ["product", "bias"], ["scores"]),
            node("LogSoftmax", ["scores"], ["out"], axis=1),
        ]
        weights["bias"] = np.zeros(4, np.float32)
    elif kind == "pixel":  # a convolution of one pixel, with the mean after it
        weights["dense"] = np.ascontiguousarray(DENSE.T[:, :, None, None])
        tail = [
            node("Conv", ["act", "dense"], ["scores"]),
            node("GlobalAveragePool", ["scores"], ["mean"]),
            node("Flatten", ["mean"], ["row"]),
            node("Softmax", ["row"], ["out"], axis=1),
        ]
    elif kind == "sigmoid":
        tail = [*mean, node("Gemm", ["flat", "dense"], ["scores"]), node("Sigmoid", ["scores"], ["out"])]
    elif kind == "constants":  # weights are operations, as Paddle writes them
        held = {n: numpy_helper.from_array(w, n) for n, w in weights.items()}
        nodes = [*(node("Constant", [], [n], value=w) for n, w in held.items()), *nodes]
        weights = {}
        tail = [*mean, node("Gemm", ["flat", "dense"], ["out"])]
    elif kind == "headless":
        tail = [*mean, node("Identity", ["flat"], ["out"])]
    elif kind == "detector":
        weights["box"] = RNG.normal(size=(2, 6, 3, 3)).astype(np.float32)
        tail = [node("Conv", ["act", "box"], ["out"])]
    elif kind == "bytes":  # pixels go in with their channels last
        shape, element = [batch, 8, 9, 3], TensorProto.UINT8
        nodes = [
            node("Cast", ["image"], ["numbers"], to=TensorProto.FLOAT),
            node("Mul", ["numbers", "level"], ["small"]),
            node("Transpose", ["small"], ["in"], perm=[0, 3, 1, 2]),
            *nodes,
        ]
        weights["level"] = np.array(1 / 255, np.float32)
        tail = [*mean, node("Gemm", ["flat", "dense"], ["out"])]
    else:
        raise ValueError(kind)
    given = helper.make_tensor_value_info("image" if kind == "bytes" else "in", element, shape)
    answer = helper.make_tensor_value_info("out", TensorProto.FLOAT, None)
    initial = [numpy_helper.from_array(w, n) for n, w in weights.items()]
    graph = helper.make_graph([*nodes, *tail], "net", [given], [answer], initial)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 9
    made = onnx.shape_inference.infer_shapes(made)
    onnx.save(made, path, save_as_external_data=beside, size_threshold=0, location="weights.bin")
    return path


@pytest.mark.parametrize("kind", ["gemm", "transposed", "pixel", "bytes", "sigmoid", "constants"])
@pytest.mark.parametrize("batch", ["n", 4, 1], ids=["any", "four", "one"])
def test_what_the_last_linear_layer_is_given(kind: str, batch: int | str, tmp_path: Path) -> None:
    path = network(tmp_path / "net.onnx", kind, batch)
    own = None if kind == "bytes" else PLAIN
    found = extract_features(Checkpoint("net", path, preprocessing=own), IMAGES, batch=7)
    _, features, wanted = by_hand(IMAGES.astype(np.float32) / 255)
    assert found.layer.startswith("input of ")
    assert np.allclose(found.features, features, atol=1e-5)
    assert found.probabilities is not None
    assert np.allclose(found.probabilities, wanted, atol=1e-5)
    assert found.parameters is not None
    assert found.parameters >= CONV.size + DENSE.size
    head = 6 * 7 if kind == "pixel" else 1
    assert found.gflops == pytest.approx(11 * (2 * 6 * 7 * 6 * 27 + 2 * head * 6 * 4) / 1e9)


def test_a_tensor_or_a_node_by_name_and_all_of_them(tmp_path: Path) -> None:
    one = Checkpoint("net", network(tmp_path / "net.onnx"), preprocessing=PLAIN)
    maps, features, own = by_hand(IMAGES.astype(np.float32) / 255)
    assert np.allclose(extract_features(one, IMAGES, layer="flat").features, features, atol=1e-5)
    raw = extract_features(one, IMAGES, layer="first").features
    assert raw.shape == (11, 6)
    assert raw.min() < features.min()  # before its ReLU
    every = extract_features(one, IMAGES, layer="all")
    assert list(every) == [f"net @ {n}" for n in ("map", "act", "pool", "flat", "scores", "out")]
    assert np.allclose(every["net @ act"].features, maps.mean(axis=(2, 3)), atol=1e-5)
    assert np.allclose(every["net @ out"].features, own, atol=1e-5)
    with pytest.raises(InputError, match=r"no tensor or node of that name.*flat"):
        extract_features(one, IMAGES, layer="flatt")


def test_places_of_a_map_are_tokens_of_their_image(tmp_path: Path) -> None:
    """Six channels of 6 × 7 places: 42 rows for each image, not 6 × 6 or 6 × 7 by another axis."""
    one = Checkpoint("net", network(tmp_path / "net.onnx"), preprocessing=PLAIN, layer="act", pool="tokens")
    maps, _, _ = by_hand(IMAGES.astype(np.float32) / 255)
    found = extract_features(one, IMAGES, batch=4)
    places = maps.shape[2] * maps.shape[3]
    assert places != maps.shape[1] * maps.shape[2]
    assert np.allclose(found.features, maps.reshape(11, 6, -1).transpose(0, 2, 1).reshape(-1, 6), atol=1e-5)
    assert found.examples.tolist() == np.repeat(np.arange(11), places).tolist()


def test_without_a_classifier_the_output_or_the_largest_map(tmp_path: Path) -> None:
    maps, features, _ = by_hand(IMAGES.astype(np.float32) / 255)
    for kind in ("headless", "detector"):
        path = network(tmp_path / f"{kind}.onnx", kind)
        found = extract_features(Checkpoint(kind, path, preprocessing=PLAIN), IMAGES)
        assert np.allclose(found.features, features, atol=1e-5)
        assert found.probabilities is None
        assert any("no linear classifier" in note for note in found.notes)
    one = Checkpoint("detector", path, layer="act", pool="flatten", preprocessing=PLAIN)
    assert np.allclose(extract_features(one, IMAGES).features, maps.reshape(11, -1), atol=1e-5)


def test_weights_in_a_file_beside(tmp_path: Path) -> None:
    path = network(tmp_path / "net.onnx", beside=True)
    one = Checkpoint("net", path, preprocessing=PLAIN)
    cache = tmp_path / "cache"
    found = extract_features(one, IMAGES, cache=cache)
    assert np.allclose(found.features, by_hand(IMAGES.astype(np.float32) / 255)[1], atol=1e-5)
    stored = tmp_path / "weights.bin"
    values = np.frombuffer(stored.read_bytes(), np.float32) * np.float32(1.25)
    stored.write_bytes(values.tobytes())
    again = extract_features(one, IMAGES, cache=cache)  # the weights count, not the file's name
    assert np.allclose(again.features, 1.25 * found.features, atol=1e-4)


def test_files_beside_are_found_in_graphs_inside_of_operations() -> None:
    weight = numpy_helper.from_array(DENSE, "dense")
    weight.external_data.add(key="location", value="inner.bin")
    answer = helper.make_tensor_value_info("out", TensorProto.FLOAT, None)
    inner = helper.make_graph([helper.make_node("MatMul", ["x", "dense"], ["out"])], "inner", [], [answer], [weight])
    node = helper.make_node("If", ["yes"], ["all"], then_branch=inner, else_branch=inner)
    outer = OnnxGraph.__new__(OnnxGraph)
    outer.model = helper.make_model(helper.make_graph([node], "outer", [], []))
    assert outer.beside() == ["inner.bin"]


def test_images_of_another_size_are_resized_to_what_it_takes(tmp_path: Path) -> None:
    path = network(tmp_path / "net.onnx", "bytes")
    large = np.repeat(np.repeat(IMAGES, 2, axis=2), 2, axis=3)  # every pixel four times
    found = extract_features(path, large)
    small = Preprocessing((8, 9))(torch.from_numpy(large)).numpy()
    assert np.allclose(found.features, by_hand(small)[1], atol=1e-5)
    fixed = Checkpoint("net", network(tmp_path / "b.onnx"), preprocessing=PLAIN)
    other = extract_features(fixed, large)
    assert np.allclose(other.features, found.features, atol=1e-5)
    assert "images are resized to 8 × 9, which it takes" in other.notes


def test_what_does_not_fit_is_told(tmp_path: Path) -> None:
    path = network(tmp_path / "net.onnx")
    (tmp_path / "cut.onnx").write_bytes(path.read_bytes()[:-200])
    numbers = np.zeros((3, 5), np.float32)
    _, failures = extract_many({"bytes": path, "cut": tmp_path / "cut.onnx"}, IMAGES)
    assert "preprocessing of 'bytes' is not known" in failures["bytes"]
    assert "cannot be read" in failures["cut"]
    with pytest.raises(InputError, match="cannot be run on inputs of shape"):
        extract_features(path, numbers)


def test_a_text_encoder_is_given_its_mask_and_pooled_with_it(tmp_path: Path) -> None:
    table = RNG.normal(size=(9, 4)).astype(np.float32)
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["states"]),
        helper.make_node("Cast", ["attention_mask"], ["real"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["real", "axis"], ["wide"]),
        helper.make_node("Mul", ["states", "wide"], ["out"]),
    ]
    given = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "t"]) for name in ("attention_mask", "input_ids")
    ]
    answer = helper.make_tensor_value_info("out", TensorProto.FLOAT, ["n", "t", 4])
    initial = [numpy_helper.from_array(table, "table")]
    initial.append(numpy_helper.from_array(np.array([2]), "axis"))
    graph = helper.make_graph(nodes, "text", given, [answer], initial)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 9
    onnx.save(made, tmp_path / "text.onnx")
    tokens = np.array([[3, 4, 0, 0], [5, 6, 7, 8]])
    inputs = Inputs(tokens, None, np.arange(2), padding=0)
    found = extract_features(tmp_path / "text.onnx", inputs)
    wanted = np.stack([table[[3, 4]].mean(axis=0), table[[5, 6, 7, 8]].mean(axis=0)])
    assert np.allclose(found.features, wanted, atol=1e-6)
    each = extract_features(Checkpoint("text", tmp_path / "text.onnx", pool="tokens"), inputs)
    assert isinstance(each, TokenFeatures)
    assert np.allclose(each.features, table[[3, 4, 5, 6, 7, 8]], atol=1e-6)
    assert each.examples is not None
    assert each.examples.tolist() == [0, 0, 1, 1, 1, 1]  # padding has no row
    with pytest.raises(InputError, match="takes 2 inputs"):
        extract_features(tmp_path / "text.onnx", tokens)


LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
KNOWN = {  # features before the classifier, 10⁹ multiplications with additions: as published
    "bvlc_alexnet": (4096, 0.65),
    "densenet121": (1024, 2.83),
    "inception_v1": (1024, 1.43),
    "resnet50": (2048, 4.09),
    "shufflenet": (544, 0.125),
    "squeezenet": (512, 0.349),
    "vgg19": (4096, 19.63),
}


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_published_architectures(name: str) -> None:
    file = LIGHT / f"light_{name}.onnx"
    if not file.is_file():
        pytest.skip(f"this version of onnx brings no {file.name}")
    graph = OnnxGraph(file)
    head = graph.head(graph.model.graph.output[0].name)
    assert head is not None
    size, products = KNOWN[name]
    shapes, _ = graph.shapes((1, 3, 224, 224))
    assert shapes[head.features][1] == size
    assert shapes[head.logits][1] == 1000
    assert graph.gflops((1, 3, 224, 224)) == pytest.approx(2 * products, rel=0.01)
