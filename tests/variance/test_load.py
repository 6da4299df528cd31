"""Predictions of many runs out of arrays, in files and in memory."""

import json
import pickle
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from made_predictions import (
    ERRORS,
    EXAMPLES,
    GROUPS,
    LABELS,
    LOSSES,
    PREDS,
    PROBABILITIES,
    Trap,
    fails,
    long_frame,
    same,
    save_npz,
)

from curvewise.errors import InputError, MissingDependencyError
from curvewise.variance.load import load_predictions


def test_npy_is_mapped_and_stays_so(tmp_path):
    np.save(tmp_path / "runs.npy", PREDS)
    p = same(load_predictions(tmp_path / "runs.npy", labels=LABELS))
    assert isinstance(p.values, np.memmap)
    assert p.values.mode == "r"
    turned = tmp_path / "turned.npy"
    np.save(turned, PREDS.T)
    p = same(load_predictions(str(turned), labels=LABELS, axes=("examples", "runs")))
    assert np.shares_memory(p.values, p.values.base)  # a view of the map, not a copy


def test_npy_is_never_loaded_whole(tmp_path, monkeypatch):
    path = tmp_path / "big.npy"
    big = np.lib.format.open_memmap(path, mode="w+", dtype=np.uint8, shape=(8, 2**22))
    big[:, :2] = [0, 1]
    big.flush()
    read = []
    plain = np.memmap.__getitem__

    def watch(self, index):
        read.append(index)
        return plain(self, index)

    p = load_predictions(path, labels=np.zeros(2**22, dtype=np.uint8))
    monkeypatch.setattr(np.memmap, "__getitem__", watch)
    assert sum(int(e.sum()) for _, e in p.error_blocks()) == 8
    assert [r.stop - r.start for r in read] == [1] * 8


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [("errors", ERRORS, "errors"), ("is_correct", 1 - ERRORS, "correct"), ("nll", LOSSES, "losses")],
)
def test_the_name_of_an_npy_file_says_the_kind(tmp_path, name, values, kind):
    np.save(tmp_path / f"{name}.npy", values)
    p = load_predictions(tmp_path / f"{name}.npy")
    assert p.kind == kind
    np.testing.assert_array_equal(p.errors(), values if kind == "losses" else ERRORS)
    assert p.notes == (f"{kind} by the name of the file",)


def test_unnamed_zeros_and_ones_are_errors_and_that_is_noted(tmp_path):
    np.save(tmp_path / "x.npy", ERRORS)
    p = same(load_predictions(tmp_path / "x.npy"), labels=False)
    assert p.kind == "errors"
    assert "pass kind='correct' if 1 means right" in p.notes[0]
    hits = load_predictions(tmp_path / "x.npy", kind="correct")
    np.testing.assert_array_equal(hits.errors(), 1 - ERRORS)
    assert not hits.notes


def test_predictions_without_labels_are_not_errors(tmp_path):
    np.save(tmp_path / "preds.npy", ERRORS)
    fails("preds.npy holds predictions and no labels: pass labels=", tmp_path / "preds.npy")
    fails("no labels", save_npz(tmp_path, y_pred=ERRORS))
    assert load_predictions(tmp_path / "preds.npy", kind="errors").kind == "errors"


@pytest.mark.parametrize("pred", ["preds", "predictions", "pred", "y_pred", "Labels predicted"])
@pytest.mark.parametrize("label", ["labels", "targets", "y_true", "y"])
def test_npz_by_names(tmp_path, pred, label):
    more = {"run_ids": np.array(["a", "b", "c", "d"]), "example_ids": np.arange(EXAMPLES) + 7}
    p = same(load_predictions(save_npz(tmp_path, **{pred: PREDS, label: LABELS}, **more, group=GROUPS, epochs=[1])))
    assert p.run_ids.tolist() == ["a", "b", "c", "d"]
    assert p.example_ids[0] == 7
    np.testing.assert_array_equal(p.groups, GROUPS)
    assert "not read: 'epochs'" in p.notes[0]


@pytest.mark.parametrize("name", ["probabilities", "probs", "logits"])
def test_npz_of_probabilities(tmp_path, name):
    p = same(load_predictions(save_npz(tmp_path, **{name: PROBABILITIES, "labels": LABELS})), False)
    assert p.kind == "probabilities"


@pytest.mark.parametrize("count", ["packed", "examples", "n_examples"])
def test_npz_of_bits(tmp_path, count):
    bits = {"errors": np.packbits(ERRORS, axis=1), count: EXAMPLES}
    p = same(load_predictions(save_npz(tmp_path, **bits, labels=LABELS, groups=GROUPS)), False)
    assert p.packed == EXAMPLES
    np.testing.assert_array_equal(p.labels, LABELS)
    np.testing.assert_array_equal(p.groups, GROUPS)
    plain = load_predictions(save_npz(tmp_path, errors=ERRORS, **{count: EXAMPLES}))
    assert plain.packed is None
    fails("take 8 bytes a run", save_npz(tmp_path, errors=bits["errors"], packed=60))


def test_key_and_kind_choose_among_arrays(tmp_path):
    path = save_npz(tmp_path, preds=PREDS, losses=LOSSES, first=PREDS[::-1], labels=LABELS)
    fails(r"2 arrays .* 'preds', 'losses'. Choose with key='preds', or say which kind=", path)
    same(load_predictions(path, kind="labels"))
    same(load_predictions(path, key="preds"))
    assert load_predictions(path, kind="losses").kind == "losses"
    np.testing.assert_array_equal(load_predictions(path, key="first").errors(), ERRORS[::-1])
    fails("key='pred': runs.npz has no such array. Did you mean 'preds'", path, key="pred")


def test_one_array_needs_no_name_and_several_do(tmp_path):
    same(load_predictions(save_npz(tmp_path, arr_0=PREDS), labels=LABELS))
    path = save_npz(tmp_path, arr_0=PREDS, arr_1=LABELS)
    fails("No array of runs.npz is known .* It has 'arr_0', 'arr_1': .* key='arr_0'", path)
    same(load_predictions(path, key="arr_0", columns={"label": "arr_1"}))
    fails("'labels' is no role. Did you mean 'label'", path, columns={"labels": "arr_1"})
    fails("could be the label: 'labels', 'targets'", save_npz(tmp_path, preds=PREDS, labels=LABELS,
                                                               targets=LABELS))  # fmt: skip
    fails("no array.* of kind='losses'|No array .* kind='losses'",
          save_npz(tmp_path, errors=ERRORS, labels=LABELS), kind="losses")  # fmt: skip


def test_safetensors_lazily(tmp_path):
    numpy_safetensors = pytest.importorskip("safetensors.numpy")
    path = tmp_path / "runs.safetensors"
    numpy_safetensors.save_file({"preds": PREDS, "labels": LABELS}, path)
    p = same(load_predictions(path))
    assert not isinstance(p.values, np.ndarray)
    assert p.values.shape == PREDS.shape
    np.testing.assert_array_equal(p.values[1:3], PREDS[1:3])
    same(pickle.loads(pickle.dumps(p)))
    fails("key='x': runs.safetensors has no such array", path, key="x")
    path.write_bytes(path.read_bytes()[:-3])
    fails("runs.safetensors is not a whole safetensors file", path)


def test_safetensors_that_numpy_cannot_hold(tmp_path):
    pytest.importorskip("safetensors")
    head = json.dumps({"logits": {"dtype": "BF16", "shape": [1, 1, 3], "data_offsets": [0, 6]}})
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(head).to_bytes(8, "little") + head.encode() + bytes(6))
    # Where ml_dtypes is installed, numpy knows the type; it cannot compute with it.
    fails("x.safetensors (cannot be read|has dtype bfloat16).* float32", path, labels=[0])


def test_safetensors_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    (tmp_path / "x.safetensors").write_bytes(b"x")
    with pytest.raises(MissingDependencyError, match=r"curvewise\[torch\]"):
        load_predictions(tmp_path / "x.safetensors")


@pytest.mark.parametrize("name", ["x.npy", "x.npz"])
def test_damaged_arrays(tmp_path, name):
    path = tmp_path / name
    (np.save if name == "x.npy" else np.savez)(path, PREDS)
    whole = path.read_bytes()
    npy = name == "x.npy"
    short, other = ("says", "has no whole header") if npy else ("is not a whole",) * 2
    for data, message in [
        (b"", f"{name} is empty"),
        (whole[:-30], f"{name} {short}"),
        (whole[:20], f"{name} {other}"),
        (b"nonsense" * 9, f"{name} {other}"),
        (pickle.dumps([1, 2]), f"{name} {other}"),
    ]:
        path.write_bytes(data)
        fails(message, path, labels=LABELS)


def test_damaged_member_of_npz(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, preds=PREDS, labels=LABELS)
    data = bytearray(path.read_bytes())
    data[data.index(PREDS.tobytes()) + 5] ^= 3
    path.write_bytes(data)
    fails("'preds' in x.npz cannot be read .* damaged", path)


def test_nothing_pickled_is_loaded(tmp_path):
    trap = np.array([[Trap(), Trap()]], dtype=object)
    np.save(tmp_path / "x.npy", trap, allow_pickle=True)
    fails("x.npy holds Python objects.*pickles are never read", tmp_path / "x.npy")
    fails("'preds' in runs.npz holds Python objects", save_npz(tmp_path, preds=trap))
    for name in ("x.pkl", "x.pt", "x.joblib"):
        (tmp_path / name).write_bytes(pickle.dumps(Trap()))
        fails("can run code and is never read: save arrays as .npy", tmp_path / name)


def test_shapes_that_are_no_runs(tmp_path):
    np.save(tmp_path / "x.npy", LABELS)
    fails("One score per run says less", tmp_path / "x.npy")
    np.save(tmp_path / "x.npy", PREDS[:, :, None].repeat(2, 2))
    fails("three axes: say what they are", tmp_path / "x.npy", labels=LABELS)
    p = load_predictions(tmp_path / "x.npy", labels=LABELS, axes=("runs", "examples", "repeats"))
    assert p.repeats == 2
    np.save(tmp_path / "x.npy", PREDS.T)
    fails("looks transposed", tmp_path / "x.npy", labels=LABELS)


def test_paths_that_are_not_there(tmp_path):
    for name in ("x.npy", "x.npz", "x.csv", "x.xyz", "x.pkl", "x"):
        fails("there is no such file", tmp_path / name)
    fails("source='' names no file", "")
    fails("is an address", "https://example.org/x.npz")
    (tmp_path / "x.xyz").write_text("a")
    fails("ending that is not known", tmp_path / "x.xyz")
    fails("kind='hits': is not known", tmp_path / "x.npy", kind="hits")


def test_arrays_and_dicts_of_arrays():
    p = same(load_predictions(PREDS, labels=LABELS))
    assert same(load_predictions(p)).kind == "labels"
    same(load_predictions(PREDS.tolist(), labels=LABELS.tolist()))
    same(load_predictions({"preds": PREDS, "labels": LABELS}))
    same(load_predictions({"preds": PREDS.tolist(), "labels": LABELS.tolist()}))
    fails("lists of different lengths", [[1, 2], [1]])
    fails("learner='a': says nothing about an array", PREDS, labels=LABELS, learner="a")


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, dict])
def test_frames(make):
    columns = {name: cells.to_numpy() for name, cells in long_frame().items()}
    p = same(load_predictions(make(columns)))
    assert p.run_ids.tolist() == [0, 1, 2, 3]
    assert p.example_ids.tolist() == list(range(EXAMPLES))
    assert p.values.dtype == np.uint8
    said = "values from column 'pred'; label from 'label'; run from 'seed'; example from 'id'"
    assert p.notes[0] == said


def test_records():
    same(load_predictions(long_frame().to_dict("records")))


def test_fashion_mnist(data_dir):
    path = data_dir / "variance" / "fashion_mnist_mlp_512runs.npz"
    p = load_predictions(path)
    assert p.shape == (512, 10_000)
    assert p.notes == ("values from 'preds'; label from 'labels'",)
    with np.load(path) as file:
        wrong = file["preds"] != file["labels"]
    np.testing.assert_array_equal(p.errors(), wrong)


def test_an_array_that_is_larger_than_its_file_is_refused_in_one_sentence(tmp_path):
    path = tmp_path / "giant.npy"
    with path.open("wb") as stream:
        header = {"descr": "<i8", "fortran_order": False, "shape": (1 << 40,)}
        np.lib.format.write_array_header_1_0(stream, header)
    with pytest.raises(InputError) as caught:
        load_predictions(path)
    assert str(caught.value).count("giant.npy") == 1
    assert "says that it holds int64" in str(caught.value)


def test_values_that_are_left_out_are_not_looked_for(tmp_path):
    path = save_npz(tmp_path, preds=PREDS, errors=ERRORS, labels=LABELS)
    fails("2 arrays .* could be the predictions: 'preds', 'errors'", path)
    same(load_predictions(path, columns={"error": None}))
