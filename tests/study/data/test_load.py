"""Loading by name, arrays in .npz files, IDX files, and what all data has in common."""

from __future__ import annotations

import gzip
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris

from curvewise.errors import InputError
from curvewise.study.data.dataset import Dataset
from curvewise.study.data.load import load_dataset

RNG = np.random.default_rng(11)
FASHION = Path("/usr/share/datasets/fashion-mnist")


def idx(array: np.ndarray, kind: int = 8) -> bytes:
    return struct.pack(f">HBB{array.ndim}I", 0, kind, array.ndim, *array.shape) + array.tobytes()


def write_idx(folder: Path, n: int = 12, *, packed: bool = False, test: bool = True) -> np.ndarray:
    """Write MNIST's four files, small, and give all images."""
    x = RNG.integers(0, 256, (n, 5, 4), dtype=np.uint8)
    y = (np.arange(n) % 3).astype(np.uint8)
    for part in ("train", "t10k") if test else ("train",):
        for name, array in ((f"{part}-images-idx3-ubyte", x), (f"{part}-labels-idx1-ubyte", y)):
            data = idx(array)
            path = folder / (name + (".gz" if packed else ""))
            path.write_bytes(gzip.compress(data, mtime=0) if packed else data)
    return x


def npz(folder: Path, **arrays: Any) -> str:
    np.savez(folder / "data.npz", **arrays)
    return str(folder / "data.npz")


# --- by name -------------------------------------------------------------------------------------


def test_digits_are_images_of_all_levels() -> None:
    data = load_dataset("digits")
    original = load_digits()
    assert data.x.shape == (1797, 1, 8, 8)
    assert np.array_equal(np.round(data.x[:, 0] / 255 * 16), original.images)
    assert np.array_equal(data.y, original.target)
    assert data.x.max() == 255
    assert data.test_x is None


def test_tables_of_scikit_learn_keep_their_class_names() -> None:
    iris, cancer = load_dataset("iris"), load_dataset({"name": "breast-cancer"})
    np.testing.assert_allclose(iris.x, load_iris().data.astype(np.float32))
    assert iris.classes == ("setosa", "versicolor", "virginica")
    assert cancer.classes[0] == load_breast_cancer().target_names[0]
    assert cancer.x.dtype == np.float32


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("digit", "Did you mean 'digits'"),
        ("digit.npz", "no such file"),
        ({"name": "fashon-mnist"}, "Did you mean 'fashion-mnist'"),
        ({"name": "digits", "exampels": 3}, "Did you mean 'examples'"),
        ({"name": "digits", "examples": 0}, "whole number from 1 on"),
        ({"name": "digits", "examples": 9}, "less than the 10 classes"),
        ({"name": "digits", "test_examples": 9}, "no test part"),
        ({}, "neither name, path"),
        ({"path": "a", "hf": "b"}, "give one of them"),
        ({"name": 3}, "give a text"),
        ("", "give a name, a path"),
        (7, "give a name, a path"),
        ({"path": 7}, "not a path"),
        ({"path": "a\0b"}, "not a path|no such file"),
    ],
)
def test_what_cannot_be_asked_for_is_said(spec: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_dataset(spec)


def test_absent_data_names_where_it_was_looked_for(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("CURVEWISE_DATA", str(tmp_path / "elsewhere"))
    with pytest.raises(InputError, match=r"mnist.*IDX files.*elsewhere.*CURVEWISE_DATA"):
        load_dataset("mnist", folder=tmp_path)


def test_named_data_is_found_beside_the_study_and_in_the_data_folder(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "here" / "mnist").mkdir(parents=True)
    x = write_idx(tmp_path / "here" / "mnist")
    assert np.array_equal(load_dataset("mnist", folder=tmp_path / "here").x[:, 0], x)
    monkeypatch.setenv("CURVEWISE_DATA", str(tmp_path / "here"))
    assert np.array_equal(load_dataset("MNIST", folder=tmp_path).x[:, 0], x)


def test_data_is_loaded_without_torch() -> None:
    code = (
        "import sys; from curvewise.study import load_dataset; "
        "from curvewise.study.spec.evaluation import Evaluation; load_dataset('digits'); "
        "print(sorted({'torch', 'transformers', 'datasets', 'PIL'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- a part of the examples ----------------------------------------------------------------------


def test_some_examples_are_drawn_class_by_class_and_always_the_same(tmp_path: Path) -> None:
    y = np.repeat([0, 1, 2], [600, 300, 100])
    x = np.arange(1000, dtype=np.float64)[:, None]
    path = npz(tmp_path, x=x, y=y, x_test=x[::2], y_test=y[::2])
    data = load_dataset({"path": path, "examples": 100, "test_examples": 50})
    assert np.bincount(data.y).tolist() == [60, 30, 10]
    assert np.bincount(data.test_y).tolist() == [30, 15, 5]
    assert np.array_equal(data.y, y[data.x[:, 0].astype(int)])
    again = load_dataset({"path": path, "examples": 100})
    assert np.array_equal(again.x, data.x)
    assert np.all(np.diff(data.x[:, 0]) > 0)
    assert not np.array_equal(data.x[:60, 0], np.arange(60))
    assert len(again.test_y) == 500
    assert len(load_dataset({"path": path, "examples": 5000}).y) == 1000


# --- labels --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "codes", "names"),
    [
        (["b", "a", "b", "c"], [1, 0, 1, 2], ("a", "b", "c")),
        ([5, 1, 5, 9], [1, 0, 1, 2], ("1", "5", "9")),
        ([1, 2, 1, 2], [0, 1, 0, 1], ("1", "2")),
        ([-1, 1, 1, -1], [0, 1, 1, 0], ("-1", "1")),
        ([0.0, 2.0, 1.0, 0.0], [0, 2, 1, 0], ("0", "1", "2")),
        ([True, False, True, True], [1, 0, 1, 1], ("False", "True")),
        ([[0], [1], [1], [0]], [0, 1, 1, 0], ("0", "1")),
    ],
)
def test_labels_become_classes_in_sorted_order(
    tmp_path: Path, labels: list[Any], codes: list[int], names: tuple[str, ...]
) -> None:
    data = load_dataset(npz(tmp_path, x=np.zeros((4, 2)), y=np.array(labels)))
    assert data.y.tolist() == codes
    assert data.classes == names
    renumbered = type(labels[0]) is int and codes != labels
    assert any("numbered" in note for note in data.notes) == renumbered


def test_training_and_test_labels_are_numbered_together(tmp_path: Path) -> None:
    x = np.zeros((3, 2))
    path = npz(tmp_path, x_train=x, y_train=["b", "d", "b"], x_test=x, y_test=["a", "b", "d"])
    data = load_dataset(path)
    assert data.classes == ("a", "b", "d")
    assert data.y.tolist() == [1, 2, 1]
    assert data.test_y.tolist() == [0, 1, 2]
    assert any("lacks: 'a'" in note for note in data.notes)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 0, 0], "one class only"),
        ([0.5, 1, 2], "not measurements"),
        ([0, np.nan, 1], "1 labels are missing"),
        ([[1, 0], [0, 1], [1, 0]], "argmax"),
        ([0, 1], "3 examples and 'y' has 2"),
        (np.array(["2020-01-01"] * 3, dtype="M8[D]"), "datetime64"),
    ],
)
def test_labels_that_are_no_classes_are_refused(tmp_path: Path, labels: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_dataset(npz(tmp_path, x=np.zeros((3, 2)), y=np.array(labels)))


# --- .npz ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [
        ("x", "y", "x_test", "y_test"),
        ("x_train", "y_train", "x_test", "y_test"),
        ("X_train", "Y_train", "X_test", "Y_test"),
        ("train_images", "train_labels", "test_images", "test_labels"),
        ("images", "labels", "test_images", "test_labels"),
        ("data", "target", "test_data", "test_target"),
    ],
)
def test_usual_names_are_known(tmp_path: Path, names: tuple[str, ...]) -> None:
    arrays = [np.full((4, 2), 1.0), np.array([0, 1, 0, 1]), np.full((2, 2), 2.0), np.array([1, 0])]
    data = load_dataset(npz(tmp_path, **dict(zip(names, arrays, strict=True))))
    assert data.x.tolist() == arrays[0].tolist()
    assert data.test_x.tolist() == arrays[2].tolist()
    assert data.test_y.tolist() == [1, 0]


def test_other_names_are_asked_for(tmp_path: Path) -> None:
    arrays = {"pixels": np.zeros((4, 2)), "what": np.array([0, 1, 0, 1]), "more": np.zeros(3)}
    path = npz(tmp_path, **arrays)
    with pytest.raises(InputError, match=r"'pixels', 'what', 'more': say which of them is x"):
        load_dataset(path)
    with pytest.raises(InputError, match="Did you mean 'what'"):
        load_dataset({"path": path, "x": "pixels", "y": "waht"})
    data = load_dataset({"path": path, "x": "pixels", "y": "what"})
    assert data.y.tolist() == [0, 1, 0, 1]
    assert any("Not read: 'more'" in note for note in data.notes)
    both = npz(tmp_path, x=np.zeros((4, 2)), images=np.zeros((4, 2)), y=np.array([0, 1, 0, 1]))
    with pytest.raises(InputError, match="which of them is x"):
        load_dataset(both)


def test_axes_are_told_apart_or_asked_for(tmp_path: Path) -> None:
    x = RNG.integers(0, 256, (4, 3, 6, 7), dtype=np.uint8)
    y = np.array([0, 1, 0, 1])
    last = np.moveaxis(x, 1, 3)
    for stored in (x, last):
        assert np.array_equal(load_dataset(npz(tmp_path, x=stored, y=y)).x, x)
    assert np.array_equal(load_dataset(npz(tmp_path, x=x[:, 0], y=y)).x, x[:, :1])
    doubtful = npz(tmp_path, x=x[..., :3], y=y)
    with pytest.raises(InputError, match=r"data.axes='NCHW'"):
        load_dataset(doubtful)
    assert load_dataset({"path": doubtful, "axes": "NCHW"}).x.shape == (4, 3, 6, 3)
    assert load_dataset({"path": doubtful, "axes": "NHWC"}).x.shape == (4, 3, 3, 6)


def test_fractions_become_bytes_and_normalised_images_are_refused(tmp_path: Path) -> None:
    x = RNG.integers(0, 256, (4, 6, 7), dtype=np.uint8)
    x[0, 0, 0] = 255
    y = np.array([0, 1, 0, 1])
    for stored in (x / 255, (x / 255).astype(np.float32), x.astype(np.float64), x.astype(int)):
        assert np.array_equal(load_dataset(npz(tmp_path, x=stored, y=y)).x[:, 0], x)
    with pytest.raises(InputError, match="before they are normalised"):
        load_dataset(npz(tmp_path, x=x / 127.5 - 1, y=y))
    with pytest.raises(InputError, match="from 0 to 255"):
        load_dataset(npz(tmp_path, x=x.astype(int) + 1, y=y))


def test_whole_numbers_may_be_features_or_tokens(tmp_path: Path) -> None:
    path = npz(tmp_path, x=np.arange(12).reshape(4, 3), y=np.array([0, 1, 0, 1]))
    with pytest.raises(InputError, match=r"data.kind='features' or data.kind='tokens'"):
        load_dataset(path)
    assert load_dataset({"path": path, "kind": "features"}).x.dtype == np.float32
    tokens = load_dataset({"path": path, "kind": "tokens", "padding": 0})
    assert tokens.x.dtype == np.int32
    assert tokens.padding == 0


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.array([[1.0, np.nan]] * 2), "y": [0, 1]}, "2 NaN or infinite"),
        ({"x": np.zeros((2, 3, 4, 5, 6)), "y": [0, 1]}, "has shape"),
        ({"x": np.array([["a"], ["b"]]), "y": [0, 1]}, "must be numbers"),
        ({"x": np.zeros((0, 2)), "y": np.zeros(0, int)}, "empty"),
        ({"x": np.float64(3), "y": [0, 1]}, "single value"),
    ],
)
def test_arrays_that_are_no_inputs_are_refused(tmp_path: Path, arrays: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_dataset(npz(tmp_path, **arrays))


def test_pickled_and_damaged_files_are_refused(tmp_path: Path) -> None:
    path = npz(tmp_path, x=np.zeros((2, 2)), y=np.array([{"a": 1}, None], dtype=object))
    with pytest.raises(InputError, match="pickles are never read"):
        load_dataset(path)
    whole = Path(npz(tmp_path, x=RNG.random((50, 20)), y=np.arange(50) % 2)).read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"not a whole \.npz"):
        load_dataset(tmp_path / "cut.npz")
    (tmp_path / "x.npy").write_bytes(b"")
    with pytest.raises(InputError, match=r"end in \.npy are not read"):
        load_dataset(tmp_path / "x.npy")


# --- IDX -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [True, False])
def test_idx_files_are_read_gzipped_or_not(tmp_path: Path, packed: bool) -> None:
    x = write_idx(tmp_path, packed=packed)
    data = load_dataset(tmp_path)
    assert np.array_equal(data.x[:, 0], x)
    assert np.array_equal(data.test_x[:, 0], x)
    assert data.y.tolist() == [0, 1, 2] * 4
    assert data.name == tmp_path.name
    assert data.x.flags.writeable  # as torch wants it
    assert data.x.flags.c_contiguous


def test_idx_without_a_test_part_has_none(tmp_path: Path) -> None:
    write_idx(tmp_path, test=False)
    assert load_dataset(tmp_path).test_x is None


def test_numbers_of_several_bytes_are_big_endian(tmp_path: Path) -> None:
    write_idx(tmp_path, n=3, test=False)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx(np.array([300, 1, 300], dtype=">i4"), 0x0C))
    assert load_dataset(tmp_path).classes == ("1", "300")


LABELS, IMAGES = "train-labels-idx1-ubyte", "train-images-idx3-ubyte"


@pytest.mark.parametrize(
    ("file", "data", "message"),
    [
        (LABELS, b"", "is empty"),
        (LABELS, b"\0\0", "not an IDX file"),
        (LABELS, b"PK\x03\x04 and so on", "begins with 50 4b 03 04"),
        (LABELS, gzip.compress(b"x", mtime=0), "it is gzipped"),
        (LABELS, b"\0\0\x08\x01\0\0", "within its header"),
        (LABELS, idx(np.zeros(12, np.uint8))[:-1], "12 bytes.*there are 11 bytes"),
        (LABELS, idx(np.zeros(12, np.uint8)) + b"!", "but there are more"),
        (LABELS, idx(np.zeros(11, np.uint8)), "12 examples and .* has 11"),
        (LABELS, idx(np.zeros((12, 1), np.uint8)), "labels have one axis"),
        (IMAGES, idx(np.zeros((12, 5), np.uint8)), "images are bytes"),
        (IMAGES, b"\0\0\x08\x03" + b"\xff" * 12, "there are 0 bytes"),
        (LABELS + ".gz", gzip.compress(idx(np.zeros(12, np.uint8)), mtime=0)[:-9], "not a whole gzip"),
        (LABELS + ".gz", idx(np.zeros(12, np.uint8)), "not a whole gzip"),
    ],
)
def test_damaged_idx_files_are_refused(tmp_path: Path, file: str, data: bytes, message: str) -> None:
    write_idx(tmp_path)
    (tmp_path / file.removesuffix(".gz")).unlink()
    (tmp_path / file).write_bytes(data)
    with pytest.raises(InputError, match=message):
        load_dataset(tmp_path)


def test_missing_and_doubtful_idx_files_are_named(tmp_path: Path) -> None:
    write_idx(tmp_path)
    with pytest.raises(InputError, match="give their folder"):
        load_dataset(tmp_path / IMAGES)
    (tmp_path / f"other-{IMAGES}").write_bytes(b"")
    with pytest.raises(InputError, match="several files with train images"):
        load_dataset(tmp_path)
    (tmp_path / f"other-{IMAGES}").unlink()
    (tmp_path / LABELS).unlink()
    with pytest.raises(InputError, match="but no labels to go with it"):
        load_dataset(tmp_path)
    (tmp_path / IMAGES).unlink()
    with pytest.raises(InputError, match="no training images"):
        load_dataset(tmp_path)


@pytest.mark.skipif(not FASHION.is_dir(), reason="needs the Debian package dataset-fashion-mnist")
def test_fashion_mnist_of_debian_is_found_by_name() -> None:
    data = load_dataset({"name": "fashion-mnist", "examples": 1000, "test_examples": 500})
    assert data.x.shape == (1000, 1, 28, 28)
    assert np.bincount(data.y).tolist() == [100] * 10
    assert np.bincount(data.test_y).tolist() == [50] * 10
    assert data.classes[9] == "Ankle boot"
    boots = data.x[data.y == 9, 0].mean(axis=0)
    assert boots[24].mean() > boots[1].mean()  # soles are at the bottom: rows are rows


def test_colours_that_stand_last_are_refused() -> None:
    with pytest.raises(InputError, match=r"x has shape \(4, 8, 8, 3\), colours last: pass np\.moveaxis"):
        Dataset(np.zeros((4, 8, 8, 3), np.uint8), np.arange(4) % 2)


def test_names_of_classes_are_texts_in_a_tuple() -> None:
    for names in (["3", 5], np.array(["3", "5"]), ("3", "5")):
        assert Dataset(np.zeros((4, 2)), np.arange(4) % 2, classes=names).classes == ("3", "5")
    with pytest.raises(InputError, match="classes='ab': is one text"):
        Dataset(np.zeros((4, 2)), np.arange(4) % 2, classes="ab")


@pytest.mark.parametrize("ending", ["csv", "npz"])
def test_features_that_single_precision_makes_one_are_refused(tmp_path: Path, ending: str) -> None:
    times = 1_700_000_000 + np.arange(4.0)
    if ending == "npz":
        np.savez(tmp_path / "data.npz", x=np.column_stack([np.arange(4.0), times]), y=np.arange(4) % 2)
    else:
        rows = "\n".join(f"{k},{t:.0f},{k % 2}" for k, t in enumerate(times))
        (tmp_path / "data.csv").write_text(f"k,time,label\n{rows}\n")
    with pytest.raises(InputError, match="lie within 3 of each other, which single precision does not tell apart"):
        load_dataset(tmp_path / f"data.{ending}")
