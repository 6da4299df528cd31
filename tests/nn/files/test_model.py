"""Networks out of every kind of file answer as the network that was written; bad files are refused."""

from __future__ import annotations

import io
import json
import pickle
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from safetensors.torch import save_file
from torch import nn

from curvewise.errors import InputError
from curvewise.nn.files.formats import kind_of
from curvewise.nn.files.model import ModelFile, check_answers, load_model

FACTORY = """
from torch import nn

def make(shape, classes, width=4):
    return nn.Sequential(
        nn.Conv2d(shape[0], width, 3), nn.BatchNorm2d(width), nn.ReLU(),
        nn.Flatten(), nn.Linear(width * (shape[1] - 2) * (shape[2] - 2), classes),
    )
"""
SHAPE = (1, 8, 8)
ANY = ({0: torch.export.Dim.DYNAMIC},)


def network() -> nn.Sequential:
    space: dict[str, Callable[..., nn.Sequential]] = {}
    exec(FACTORY, space)
    torch.manual_seed(0)
    made = space["make"](SHAPE, 10)
    made.train()(torch.rand(50, *SHAPE))  # so that its batch norm has statistics
    return made.eval()


def inputs(count: int = 37) -> torch.Tensor:
    return torch.rand(count, *SHAPE, generator=torch.Generator().manual_seed(1))


def export(net: nn.Module, path: Path, batch: int = 4, shapes: object = None) -> Path:
    torch.export.save(torch.export.export(net, (inputs(batch),), dynamic_shapes=shapes), path)
    return path


def script(net: nn.Module, path: Path, *, trace: bool) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        made = torch.jit.trace(net, inputs(4), check_trace=False) if trace else torch.jit.script(net)
        made.save(path)
    return path


def onnx_linear(
    path: Path, batch: int | str = "n", last: bool = False, labels: bool = False
) -> tuple[Path, np.ndarray]:
    """A linear classifier of flattened images, and its weights."""
    weight = np.random.default_rng(3).normal(size=(3 * 4 * 5, 7)).astype(np.float32)
    shape = [batch, 4, 5, 3] if last else [batch, 3, 4, 5]
    nodes = [
        helper.make_node("Flatten", ["image"], ["flat"]),
        helper.make_node("MatMul", ["flat", "weight"], ["scores"]),
        helper.make_node("ArgMax", ["scores"], ["label"], axis=1, keepdims=0),
    ]
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, [batch, 7])
    label = helper.make_tensor_value_info("label", TensorProto.INT64, [batch])
    graph = helper.make_graph(
        nodes if labels else nodes[:2],
        "linear",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)],
        [label, scores] if labels else [scores],
        [numpy_helper.from_array(weight, "weight")],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)
    return path, weight


def load(path: Path, **options: object) -> ModelFile:
    return load_model(path, **{"shape": SHAPE, "classes": 10, **options})  # type: ignore[arg-type]


def refusal(path: Path, **options: object) -> str:
    with pytest.raises(InputError) as caught:
        check_answers(load(path, **options), inputs(8))
    return str(caught.value)


@pytest.mark.parametrize("shapes", [None, ANY, ({0: torch.export.Dim("n", max=16)},)], ids=["fixed", "any", "limited"])
@pytest.mark.parametrize("count", [1, 4, 37])
def test_an_exported_program_answers_alike_whatever_its_batch_size(tmp_path, shapes, count):
    net = network()
    file = load(export(net, tmp_path / "m.pt2", shapes=shapes))
    assert file.kind == "exported program"
    check_answers(file, inputs(8))
    with torch.no_grad():
        torch.testing.assert_close(file.model(inputs(count)), net(inputs(count)))
        channels_last = inputs(count).to(memory_format=torch.channels_last)
        torch.testing.assert_close(file.model(channels_last), net(inputs(count)))
    assert file.model.eval() is file.model.train() is file.model


def test_layers_of_an_exported_program(tmp_path):
    net = network()
    file = load(export(net, tmp_path / "m.pt2", shapes=ANY), layer="2")
    seen = []
    file.model.get_submodule("2").register_forward_hook(lambda _, __, out: seen.append(out))
    with torch.no_grad():
        torch.testing.assert_close(file.model(inputs()), net(inputs()))
        torch.testing.assert_close(seen[0], net[:3](inputs()))
    kinds = [type(m).__module__ == nn.ReLU.__module__ for m in file.model.children()]
    assert kinds == [False, False, True, False, False]
    assert "batches of 4" in refusal(export(net, tmp_path / "fixed.pt2"), layer="2")


@pytest.mark.parametrize("trace", [True, False])
def test_torchscript(tmp_path, trace):
    net = network()
    net.train(not trace)
    file = load(script(net, tmp_path / "m.pt", trace=trace))
    assert file.kind == "TorchScript"
    check_answers(file, inputs(8))
    with torch.no_grad():
        torch.testing.assert_close(file.model(inputs()), net.eval()(inputs()))
    assert "cannot be reached" in refusal(tmp_path / "m.pt", layer=1)


@pytest.mark.parametrize("name", ["w.safetensors", "w.pt", "legacy.pth", "nested.ckpt", "odd.bin"])
def test_weights_with_a_factory(tmp_path, name):
    net = network()
    (tmp_path / "nets_of_test.py").write_text(FACTORY)
    path, state = tmp_path / name, net.state_dict()
    if name in ("w.safetensors", "odd.bin"):
        save_file(state, path)
    elif name == "nested.ckpt":
        wrapped = {f"module._orig_mod.{k}": v for k, v in state.items()}
        torch.save({"epoch": 3, "state_dict": wrapped}, path)
    else:
        torch.save(state, path, _use_new_zipfile_serialization=name == "w.pt")
    options = {"factory": "nets_of_test:make", "folder": tmp_path}
    file = load(path, **options, options={"width": 4})
    assert not file.model.training
    with torch.no_grad():
        assert torch.equal(file.model(inputs()), net(inputs()))
    assert "0.weight (4, 1, 3, 3) in the file and (5, 1, 3, 3) in the network" in refusal(
        path, **options, options={"width": 5}
    )
    assert "holds weights alone" in refusal(path)
    assert "Its options are width" in refusal(path, **options, options={"wdth": 5})
    assert "has no 'mak'" in refusal(path, factory="nets_of_test:mak", folder=tmp_path)


def test_names_that_do_not_fit_are_told_with_what_is_close(tmp_path):
    (tmp_path / "nets_of_test.py").write_text(FACTORY)
    state = network().state_dict()
    state["4.wieght"] = state.pop("4.weight")
    save_file(state, tmp_path / "w.safetensors")
    told = refusal(tmp_path / "w.safetensors", factory="nets_of_test:make", folder=tmp_path)
    assert "1 missing in the file, such as 4.weight (the file has 4.wieght instead)" in told
    assert "1 not in the network, such as 4.wieght (the network has 4.weight instead)" in told


@pytest.mark.parametrize("batch", ["n", 4, 100])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("labels", [False, True])
def test_onnx_is_the_matrix_product_that_it_says(tmp_path, batch, last, labels):
    path, weight = onnx_linear(tmp_path / "m.onnx", batch, last, labels)
    x = np.random.default_rng(0).random((37, 3, 4, 5)).astype(np.float32)
    file = load(path, shape=(3, 4, 5))
    flat = (x.transpose(0, 2, 3, 1) if last else x).reshape(37, -1)
    np.testing.assert_allclose(file.model(x), flat @ weight, rtol=1e-4, atol=1e-4)
    assert any("scores was taken" in note for note in file.notes) == labels
    check_answers(file, torch.from_numpy(x))


def test_onnx_refuses_what_it_does_not_take(tmp_path, monkeypatch):
    path, _ = onnx_linear(tmp_path / "m.onnx")
    cpu = ["CPUExecutionProvider"]
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: cpu)
    assert "takes inputs of shape (3, 4, 5), and the data has (1, 8, 8)" in refusal(path)
    assert "has no GPU" in load(path, shape=(3, 4, 5), device="cuda").notes[0]
    with pytest.raises(InputError, match=r"takes tensor\(float\), and the data is int64"):
        load(path, shape=(3, 4, 5)).model(np.zeros((2, 3, 4, 5), np.int64))


def test_the_content_decides_not_the_ending(tmp_path):
    net = network()
    script(net, tmp_path / "program.pt2", trace=False)
    export(net, tmp_path / "script.pt", shapes=ANY)
    onnx_linear(tmp_path / "network.safetensors")
    onnx_linear(tmp_path / "network")
    assert kind_of(tmp_path / "program.pt2") == "script"
    assert kind_of(tmp_path / "script.pt") == "exported"
    assert kind_of(tmp_path / "network") == "onnx"
    assert load(tmp_path / "script.pt").kind == "exported program"


class Bomb:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.write_text, (self.path, "boom")


def test_a_pickled_module_is_refused_with_the_remedy_and_runs_nothing(tmp_path):
    torch.save(network(), tmp_path / "module.pt")
    torch.save({"0.weight": Bomb(tmp_path / "boom")}, tmp_path / "bomb.pt")
    (tmp_path / "plain.pt").write_bytes(pickle.dumps(Bomb(tmp_path / "boom")))
    for name in ("module", "bomb", "plain"):
        for factory in (None, "cnn"):
            told = refusal(tmp_path / f"{name}.pt", factory=factory)
            assert "would run code" in told
            assert "torch.export.save" in told
    assert not (tmp_path / "boom").exists()


def changed(path: Path, ending: str, change: Callable[[bytes], bytes]) -> Path:
    """The archive with one member changed."""
    result = path.with_name("changed.pt2")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(result, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, change(data) if name.endswith(ending) else data)
    return result


def test_pickles_inside_an_exported_program_are_refused(tmp_path):
    path = export(network(), tmp_path / "m.pt2")
    boom = tmp_path / "boom"

    def bomb(_: bytes) -> bytes:
        buffer = io.BytesIO()
        torch.save(Bomb(boom), buffer)
        return buffer.getvalue()

    def pickled(data: bytes) -> bytes:
        config = json.loads(data)
        next(iter(config["config"].values()))["use_pickle"] = True
        return json.dumps(config).encode()

    def opaque(data: bytes) -> bytes:
        about = {"path_name": "opaque_obj_0", "use_pickle": False, "is_param": False}
        return json.dumps({"config": {"x": about}}).encode()

    for ending, change in (
        ("sample_inputs/model.pt", bomb),
        ("weights_config.json", pickled),
        ("constants_config.json", opaque),
    ):
        assert "refused" in refusal(changed(path, ending, change))
    assert not boom.exists()


def test_a_network_exported_in_training_mode_is_refused(tmp_path):
    dropping = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(64, 10)).train()
    norm = network().train()
    for path in (
        export(dropping, tmp_path / "dropout.pt2", shapes=ANY),
        export(dropping, tmp_path / "fixed.pt2"),
        script(dropping, tmp_path / "dropout.pt", trace=True),
    ):
        assert "differently each time: it was exported in training mode" in refusal(path)
    assert "what else is in the batch" in refusal(export(norm, tmp_path / "norm.pt2", shapes=ANY))


def test_shapes_that_do_not_fit(tmp_path):
    net = network()
    path = export(net, tmp_path / "m.pt2", shapes=ANY)
    with pytest.raises(InputError, match=r"inputs of shape \(1, 8, 8\), and the data has \(3, 8"):
        load(path, shape=(3, 8, 8))
    file = load(script(net, tmp_path / "m.pt", trace=True), shape=(1, 9, 9))
    with pytest.raises(InputError, match=r"cannot be run on inputs of shape \(4, 1, 9, 9\)"):
        check_answers(file, torch.rand(4, 1, 9, 9))


def test_two_inputs_are_one_too_many(tmp_path):
    class Two(nn.Module):
        def forward(self, a, b):
            return a + b

    torch.export.save(torch.export.export(Two(), (inputs(4), inputs(4))), tmp_path / "two.pt2")
    assert "takes 2 inputs" in refusal(tmp_path / "two.pt2")


@pytest.mark.parametrize("share", [0.02, 0.3, 0.7, 0.98])
@pytest.mark.parametrize("kind", ["pt2", "pt", "safetensors", "state.pt", "onnx"])
def test_files_cut_short_are_told(tmp_path, capfd, kind, share):
    whole, cut = tmp_path / f"whole.{kind}", tmp_path / f"cut.{kind}"
    if kind == "pt2":
        export(network(), whole)
    elif kind == "pt":
        script(network(), whole, trace=False)
    elif kind == "safetensors":
        save_file(network().state_dict(), whole)
    elif kind == "onnx":
        onnx_linear(whole)
    else:
        torch.save(network().state_dict(), whole)
    data = whole.read_bytes()
    cut.write_bytes(data[: int(len(data) * share)])
    told = refusal(cut, factory="cnn")
    assert str(cut) in told
    assert "cut short" in told
    assert capfd.readouterr().err == ""


def test_damaged_programs_are_told_and_nothing_else_is_said(tmp_path, capfd):
    path = export(network(), tmp_path / "m.pt2")
    for ending, data in (
        ("models/model.json", b'{"graph_module": {}}'),
        ("models/model.json", b"\xff not json"),
        ("weights_config.json", b"[]"),
        ("weights/weight_0", b"\0"),
        ("archive_version", b"99"),
    ):
        told = refusal(changed(path, ending, lambda _, data=data: data))
        assert "cannot be read" in told
    assert capfd.readouterr() == ("", "")


def test_what_is_no_network(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros(3))
    np.save(tmp_path / "a.npy", np.zeros(3))
    (tmp_path / "empty.pt").touch()
    (tmp_path / "words.txt").write_text("hello, world")
    (tmp_path / "words.onnx").write_text("hello, world")
    (tmp_path / "keras.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(20))
    with zipfile.ZipFile(tmp_path / "any.zip", "w") as archive:
        archive.writestr("a.txt", "a")
    for name, words in (
        ("a.npz", "archive of numpy arrays"),
        ("a.npy", "not a network"),
        ("empty.pt", "is empty"),
        ("words.txt", "not a known kind of network file"),
        ("words.onnx", "cannot be read"),
        ("keras.h5", "tf2onnx"),
        ("any.zip", "not a known kind of network file"),
        ("absent.pt", "there is no such file"),
        ("", "is a folder"),
    ):
        assert words in refusal(tmp_path / name)
