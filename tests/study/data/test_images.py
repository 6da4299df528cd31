"""CIFAR files, JPEG archives and images in folders, made on the spot and compared with Pillow."""

from __future__ import annotations

import io
import json
import os
import sys
import tomllib
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from scipy.io import savemat

from curvewise.errors import InputError, MissingDependencyError
from curvewise.study.data import images
from curvewise.study.data.load import load_dataset

RNG = np.random.default_rng(2)


def picture(h: int = 6, w: int = 8, mode: str = "RGB") -> Image.Image:
    shape = (h, w) if mode == "L" else (h, w, 3)
    return Image.fromarray(RNG.integers(0, 256, shape, dtype=np.uint8))


def write_folder(root: Path, classes: str = "ab", n: int = 3, **options: Any) -> list[np.ndarray]:
    """A folder of PNG files for each class; gives the pictures in order."""
    found = []
    for name in classes:
        (root / name).mkdir(parents=True)
        for i in range(n):
            made = picture(**options)
            made.save(root / name / f"{i}.png")
            found.append(np.asarray(made))
    return found


# --- CIFAR ---------------------------------------------------------------------------------------


def write_cifar10(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    x = RNG.integers(0, 256, (30, 3, 32, 32), dtype=np.uint8)
    y = (np.arange(30) % 10).astype(np.uint8)
    rows = np.column_stack([y, x.reshape(30, -1)])
    rows[:15].tofile(folder / "data_batch_1.bin")
    rows[15:25].tofile(folder / "data_batch_2.bin")
    rows[25:].tofile(folder / "test_batch.bin")
    return x, y


def test_cifar10_is_read_from_its_batches(tmp_path: Path) -> None:
    x, y = write_cifar10(tmp_path)
    names = [f"class {i}" for i in range(10)]
    (tmp_path / "batches.meta.txt").write_text("\n".join(names) + "\n\n")
    data = load_dataset(tmp_path)
    assert np.array_equal(data.x, x[:25])
    assert np.array_equal(data.test_x, x[25:])
    assert np.array_equal(data.y, y[:25])
    assert data.classes == tuple(names)
    assert data.name == "cifar10"


@pytest.mark.parametrize(("labels", "column"), [("fine", 1), ("coarse", 0), (None, 1)])
def test_cifar100_has_two_labels(tmp_path: Path, labels: str | None, column: int) -> None:
    x = RNG.integers(0, 256, (8, 3072), dtype=np.uint8)
    y = np.array([[0, 5], [1, 6], [2, 7], [0, 8]] * 2, dtype=np.uint8)
    np.column_stack([y, x]).astype(np.uint8).tofile(tmp_path / "train.bin")
    spec = {"path": str(tmp_path), **({"labels": labels} if labels else {})}
    data = load_dataset(spec)
    assert [int(data.classes[i]) for i in data.y] == y[:, column].tolist()
    assert np.array_equal(data.x.reshape(8, -1), x)
    assert data.test_x is None


def test_damaged_and_pickled_cifar_is_refused(tmp_path: Path) -> None:
    write_cifar10(tmp_path)
    path = tmp_path / "data_batch_2.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match=r"data_batch_2.bin has 30,729 bytes, .*multiple of 3,073"):
        load_dataset(tmp_path)
    pickles = tmp_path / "cifar-10-batches-py"
    pickles.mkdir()
    (pickles / "data_batch_1").write_bytes(b"\x80")
    for spec in ({"name": "cifar10", "path": str(pickles)}, pickles):
        with pytest.raises(InputError, match="pickles can run code: fetch the binary version"):
            load_dataset(spec)


# --- JPEG archives -------------------------------------------------------------------------------


def write_archive(path: Path, **changes: Any) -> list[np.ndarray]:
    data, pictures = [], []
    for _ in range(12):
        file = io.BytesIO()
        picture(16, 16).save(file, "JPEG")
        data.append(np.frombuffer(file.getvalue(), np.uint8))
        pictures.append(np.moveaxis(np.asarray(Image.open(file)), 2, 0))
    arrays = {
        "train_jpeg": np.concatenate(data),
        "train_offsets": np.cumsum([0, *map(len, data)]),
        "train_labels": np.arange(12) % 2,
        "classes": np.array(["cat", "dog"]),
    }
    np.savez(path, **{**arrays, **changes})
    return pictures


def test_an_archive_is_decoded_as_pillow_does(tmp_path: Path) -> None:
    pictures = write_archive(tmp_path / "cats_jpeg.npz")
    data = load_dataset(tmp_path / "cats_jpeg.npz")
    assert np.array_equal(data.x, pictures)
    assert data.classes == ("cat", "dog")
    assert data.name == "cats"


def test_an_archive_is_enlarged(tmp_path: Path) -> None:
    """CIFAR at 224 × 224, as pretrained networks want it, where its archive of JPEG images is read by name."""
    pictures = write_archive(tmp_path / "cifar10_jpeg.npz")
    data = load_dataset({"name": "cifar10", "size": 224}, folder=tmp_path)
    assert data.x.shape == (12, 3, 224, 224)
    expected = Image.fromarray(np.moveaxis(pictures[0], 0, 2)).resize((224, 224), Image.Resampling.BILINEAR)
    assert np.abs(np.asarray(expected).mean(axis=(0, 1)) - data.x[0].mean(axis=(1, 2))).max() < 2


def test_only_the_pictures_asked_for_are_decoded(tmp_path: Path) -> None:
    pictures = write_archive(tmp_path / "a.npz")
    some = load_dataset({"path": str(tmp_path / "a.npz"), "examples": 4})
    rows = [next(i for i, p in enumerate(pictures) if np.array_equal(p, x)) for x in some.x]
    with np.load(tmp_path / "a.npz") as file:
        arrays = dict(file)
    for i in set(range(12)) - set(rows):
        arrays["train_jpeg"][arrays["train_offsets"][i] : arrays["train_offsets"][i + 1]] = 0
    np.savez(tmp_path / "broken.npz", **arrays)
    spec = {"path": str(tmp_path / "broken.npz")}
    assert np.array_equal(load_dataset({**spec, "examples": 4}).x, some.x)
    with pytest.raises(InputError, match=r"Picture \d+ of 'train' in broken.npz is not a whole"):
        load_dataset(spec)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_offsets": np.arange(12)}, "13 whole numbers"),
        ({"train_offsets": np.arange(13)}, "must rise from 0"),
        ({"train_jpeg": np.zeros(9)}, "must hold bytes"),
        ({"train_labels": np.arange(12)}, "label 11, but the classes are 0 to 1"),
    ],
)
def test_archives_that_do_not_add_up_are_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    write_archive(tmp_path / "a.npz", **changes)
    with pytest.raises(InputError, match=message):
        load_dataset(tmp_path / "a.npz")


def test_the_cifar10_archive(data_dir: Path) -> None:
    path = data_dir / "cifar10_jpeg.npz"
    if not path.is_file():
        pytest.skip(f"no {path}")
    data = load_dataset({"path": str(path), "examples": 300, "test_examples": 100})
    assert data.x.shape == (300, 3, 32, 32)
    assert np.bincount(data.test_y).tolist() == [10] * 10
    assert len(data.classes) == 10
    ships, deer = (data.x[data.y == data.classes.index(c)].mean(axis=(0, 2, 3)) for c in ("ship", "deer"))
    assert ships[2] - ships[0] > deer[2] - deer[0]  # the sea is bluer than the wood


# --- folders -------------------------------------------------------------------------------------


def test_the_class_is_the_folder(tmp_path: Path) -> None:
    pictures = write_folder(tmp_path, "ba")
    data = load_dataset(tmp_path)
    by_class = pictures[3:] + pictures[:3]
    assert np.array_equal(np.moveaxis(data.x, 1, 3), by_class)
    assert data.y.tolist() == [0, 0, 0, 1, 1, 1]
    assert data.classes == ("a", "b")


@pytest.mark.parametrize("test", ["test", "val"])
def test_train_and_test_may_lie_above(tmp_path: Path, test: str) -> None:
    write_folder(tmp_path / "train")
    held = write_folder(tmp_path / test, n=2)
    (tmp_path / "extra").mkdir()
    data = load_dataset(tmp_path)
    assert len(data.y) == 6
    assert np.array_equal(np.moveaxis(data.test_x, 1, 3), held)
    assert any("'extra'" in note for note in data.notes)


def test_grey_images_have_one_channel_unless_asked_otherwise(tmp_path: Path) -> None:
    pictures = write_folder(tmp_path, mode="L")
    assert np.array_equal(load_dataset(tmp_path).x[:, 0], pictures)
    assert load_dataset({"path": str(tmp_path), "channels": 3}).x.shape[1] == 3
    picture().save(tmp_path / "a" / "9.png")
    assert load_dataset(tmp_path).x.shape[1] == 3


def test_sixteen_bits_are_scaled_not_cut_off(tmp_path: Path) -> None:
    write_folder(tmp_path, mode="L", n=1)
    deep = RNG.integers(0, 65536, (6, 8), dtype=np.uint16)
    Image.fromarray(deep).save(tmp_path / "a" / "0.png")
    assert np.array_equal(load_dataset(tmp_path).x[0, 0], deep >> 8)


def test_size_keeps_proportions_and_cuts_the_middle(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        wide = np.zeros((10, 30, 3), np.uint8)
        wide[:, 10:20] = 200
        Image.fromarray(wide).save(tmp_path / name / "0.png")
    data = load_dataset({"path": str(tmp_path), "size": 10})
    assert data.x.shape == (2, 3, 10, 10)
    assert (data.x == 200).all()
    assert load_dataset({"path": str(tmp_path), "size": [5, 15]}).x.shape == (2, 3, 5, 15)


def test_pictures_stand_upright(tmp_path: Path) -> None:
    write_folder(tmp_path, n=1, h=8, w=6)
    lying = picture(6, 8)
    tag = Image.Exif()
    tag[0x0112] = 6  # the camera was turned
    lying.save(tmp_path / "a" / "0.png", exif=tag)
    data = load_dataset(tmp_path)
    assert np.array_equal(np.moveaxis(data.x[0], 0, 2), np.rot90(np.asarray(lying), -1))


def test_unreadable_images_are_named_or_skipped_and_counted(tmp_path: Path) -> None:
    pictures = write_folder(tmp_path, h=40, w=40)
    bad = tmp_path / "a" / "1.png"
    bad.write_bytes(bad.read_bytes()[:-600])
    (tmp_path / "b" / "2.png").write_bytes(b"no picture at all")
    (tmp_path / "b" / "notes.txt").write_text("left out")
    with pytest.raises(InputError, match=r"a/1.png is not a whole picture"):
        load_dataset({"path": str(tmp_path), "channels": 3})
    with pytest.raises(InputError, match=r"[ab]/[12].png is not a whole picture"):
        load_dataset(tmp_path)
    data = load_dataset({"path": str(tmp_path), "on_error": "skip"})
    assert np.array_equal(np.moveaxis(data.x, 1, 3), [pictures[i] for i in (0, 2, 3, 4)])
    assert data.y.tolist() == [0, 0, 1, 1]
    assert any("2 images cannot be read" in n and "'a/1.png'" in n for n in data.notes)
    assert any("1 files" in note for note in data.notes)


def test_folders_without_images_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is empty"):
        load_dataset(tmp_path)
    picture().save(tmp_path / "loose.png")
    with pytest.raises(InputError, match="no subfolders"):
        load_dataset(tmp_path)
    write_folder(tmp_path)
    (tmp_path / "c").mkdir()
    with pytest.raises(InputError, match="/c holds no images"):
        load_dataset(tmp_path)
    (tmp_path / "c").rmdir()
    picture(9, 9).save(tmp_path / "b" / "9.png")
    with pytest.raises(InputError, match=r"b/9.png is 9 × 9 pixels and a/0.png 6 × 8: .*data.size"):
        load_dataset(tmp_path)
    with pytest.raises(InputError, match=r"data.size=\[1, 2, 3\]"):
        load_dataset({"path": str(tmp_path), "size": [1, 2, 3]})


def test_only_a_training_folder_is_in_doubt(tmp_path: Path) -> None:
    write_folder(tmp_path / "train")
    with pytest.raises(InputError, match="only the folder 'train'"):
        load_dataset(tmp_path)
    assert len(load_dataset(tmp_path / "train").y) == 6


def test_one_class_is_none(tmp_path: Path) -> None:
    write_folder(tmp_path, "a")
    with pytest.raises(InputError, match="one class only, 'a'"):
        load_dataset(tmp_path)


# --- torchvision ---------------------------------------------------------------------------------


class Toy:
    """What a dataset of torchvision looks like from outside."""

    classes = ("cat", "dog")

    def __init__(self, root: str, train: bool = True, download: bool = False) -> None:
        if download:
            raise AssertionError("nothing may be downloaded")
        if not (Path(root) / "toy").is_dir():
            raise RuntimeError("Dataset not found.")
        rng = np.random.default_rng(int(train))
        self.data = rng.integers(0, 256, (6 if train else 4, 5, 7, 3), dtype=np.uint8)
        self.targets = [i % 2 for i in range(len(self.data))]

    def __getitem__(self, i: int) -> tuple[Image.Image, int]:
        return Image.fromarray(self.data[i]), self.targets[i]

    def __len__(self) -> int:
        return len(self.data)


@pytest.fixture
def torchvision(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torchvision with one dataset."""
    package = types.ModuleType("torchvision")
    package.datasets = types.ModuleType("torchvision.datasets")  # type: ignore[attr-defined]
    package.datasets.Toy = Toy
    monkeypatch.setitem(sys.modules, "torchvision", package)
    monkeypatch.setitem(sys.modules, "torchvision.datasets", package.datasets)


@pytest.mark.usefixtures("torchvision")
def test_torchvision_is_read_from_its_root(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"data.torchvision='Toy'.*Dataset not found.*Download it there first"):
        load_dataset({"torchvision": "Toy", "root": str(tmp_path)})
    (tmp_path / "toy").mkdir()
    data = load_dataset({"torchvision": "Toy", "root": str(tmp_path)})
    assert np.array_equal(np.moveaxis(data.x, 1, 3), Toy(str(tmp_path)).data)
    assert np.array_equal(np.moveaxis(data.test_x, 1, 3), Toy(str(tmp_path), train=False).data)
    assert data.classes == ("cat", "dog")
    with pytest.raises(InputError, match=r"needs data\.root"):
        load_dataset({"torchvision": "Toy"})
    with pytest.raises(InputError, match="no dataset of that name"):
        load_dataset({"torchvision": "Toys", "root": str(tmp_path)})


@pytest.mark.usefixtures("torchvision")
def test_torchvision_may_not_unpickle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(InputError, match=r"LSUN.* keeps a pickle in its folder"):
        load_dataset({"torchvision": "LSUN", "root": str(tmp_path)})

    class Cached(Toy):
        """Has a cache as old versions of torchvision wrote them, and loads it as they did."""

        def __init__(self, root: str, train: bool = True) -> None:
            self.data, self.targets = torch.load(Path(root) / "cache.pt", weights_only=False)

    monkeypatch.setattr(sys.modules["torchvision.datasets"], "Cached", Cached, raising=False)
    torch.save((Toy, [0, 1]), tmp_path / "cache.pt")  # a class by its name, which is code
    with pytest.raises(InputError, match="cannot be opened"):
        load_dataset({"torchvision": "Cached", "root": str(tmp_path)})


def test_a_torchvision_that_does_not_go_with_torch_is_told(tmp_path: Path, monkeypatch: Any) -> None:
    def fail(name: str) -> None:
        raise RuntimeError("operator does not exist")

    monkeypatch.setattr("curvewise.nn.files.datasets.importlib.import_module", fail)
    with pytest.raises(MissingDependencyError, match=r"operator does not exist.*for this torch"):
        load_dataset({"torchvision": "CIFAR10", "root": str(tmp_path)})


def test_without_torchvision_the_package_is_named(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "torchvision.datasets", None)
    with pytest.raises(MissingDependencyError, match="pip install torchvision"):
        load_dataset({"torchvision": "CIFAR10", "root": str(tmp_path)})


# --- The layouts of the papers' data sets, with the lines of the guide -----------------------------

GUIDE = Path(__file__).parents[3] / "docs" / "howto" / "recipes.md"


def run_lines(section: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run the lines of a section of the guide in a folder; gives the data that the row of its table has."""
    text = GUIDE.read_text("utf-8")
    monkeypatch.chdir(folder)
    if f"### {section}\n" in text:
        exec(text.split(f"### {section}\n")[1].split("```python\n")[1].split("```")[0], {})
    row = next(line for line in text.splitlines() if line.startswith(f"| {section} "))
    said = row.split("|")[4].split("`")[1]
    return {**tomllib.loads(f"data = {said}")["data"]}


def assert_same(x: np.ndarray, pictures: list[np.ndarray]) -> None:
    assert np.array_equal(x, np.moveaxis(np.stack(pictures), 3, 1))


def write_svhn(folder: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    made = {}
    for part, n in (("train", 24), ("test", 11)):
        images, digits = RNG.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8), np.arange(n) % 10
        labels = np.where(digits == 0, 10, digits).astype(np.uint8)[:, None]
        savemat(folder / f"{part}_32x32.mat", {"X": images.transpose(1, 2, 3, 0), "y": labels}, do_compression=True)
        made[part] = images, digits
    return made


def test_svhn_is_read_from_its_two_files(tmp_path: Path) -> None:
    (tmp_path / "svhn").mkdir()
    made = write_svhn(tmp_path / "svhn")
    for spec in ("svhn", {"path": "svhn"}, "svhn/train_32x32.mat"):
        data = load_dataset(spec, folder=tmp_path)
        assert_same(data.x, list(made["train"][0]))
        assert_same(data.test_x, list(made["test"][0]))
        assert np.array_equal(data.y, made["train"][1])
        assert data.classes[data.test_y[10]] == "0"
    (tmp_path / "svhn" / "test_32x32.mat").unlink()
    assert load_dataset("svhn", folder=tmp_path).test_x is None
    savemat(tmp_path / "svhn" / "train_32x32.mat", {"labels": np.arange(3)})
    with pytest.raises(InputError, match=r"train_32x32.mat cannot be read: it holds .*SVHN X"):
        load_dataset("svhn", folder=tmp_path)
    (tmp_path / "svhn" / "train_32x32.mat").write_bytes(b"no such thing")
    with pytest.raises(InputError, match=r"train_32x32.mat cannot be read"):
        load_dataset("svhn", folder=tmp_path)
    with pytest.raises(InputError, match=r"fetch train_32x32.mat and test_32x32.mat"):
        load_dataset("svhn", folder=tmp_path / "svhn")


@pytest.mark.parametrize(("section", "test"), [("ImageNet", "val"), ("Places365", "val"), ("CINIC-10", "test")])
def test_folders_of_train_and_another_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, section: str, test: str
) -> None:
    spec = run_lines(section, tmp_path, monkeypatch)
    root = tmp_path / spec["path"]
    for part in ("train", "val" if test == "val" else "valid", "test"):
        for name in ("n01440764", "n02102040"):
            (root / part / name).mkdir(parents=True)
            if (part, test) == ("test", "val"):  # ImageNet's own has no classes
                picture(40, 60).save(root / part / f"{name}.JPEG")
                continue
            for i in range(2 if part == "train" else 1):
                picture(40, 60).save(root / part / name / f"{name}_{i}.JPEG")
    data = load_dataset({**spec, "size": 16}, folder=tmp_path)
    assert data.x.shape == (4, 3, 16, 16)
    assert data.test_x.shape == (2, 3, 16, 16)
    first = Image.open(root / "train" / "n01440764" / "n01440764_0.JPEG").convert("RGB")
    # The shorter side to 16 and the middle of the other; one way rounds before the other.
    cut = np.asarray(first.resize((24, 16), Image.Resampling.BILINEAR))[:, 4:20]
    assert np.abs(np.moveaxis(cut, 2, 0).astype(int) - data.x[0]).mean() < 2
    with pytest.raises(InputError, match="there must be train and this one"):
        load_dataset({**spec, "test": "elsewhere"}, folder=tmp_path)


def test_caltech_has_thirty_images_of_each_class_to_train_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, n in (("ant", 31), ("yin_yang", 34)):
        (tmp_path / "101_ObjectCategories" / name).mkdir(parents=True)
        for i in range(n):
            picture(6, 6).save(tmp_path / "101_ObjectCategories" / name / f"image_{i:04d}.jpg")
    data = load_dataset({**run_lines("Caltech-101", tmp_path, monkeypatch), "size": 6}, folder=tmp_path)
    assert np.bincount(data.y).tolist() == [30, 30]
    assert np.bincount(data.test_y).tolist() == [1, 4]


def test_folders_without_a_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = run_lines("EuroSAT", tmp_path, monkeypatch)
    pictures = write_folder(tmp_path / spec["path"], h=6, w=6)
    data = load_dataset({**spec, "size": 6}, folder=tmp_path)
    assert_same(data.x, pictures)
    assert data.test_x is None


def test_flowers_have_their_classes_in_other_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jpg").mkdir()
    made = [picture(6, 6) for _ in range(7)]
    for i, one in enumerate(made, 1):
        one.save(tmp_path / "jpg" / f"image_{i:05d}.jpg", quality=100, subsampling=0)
    savemat(tmp_path / "imagelabels.mat", {"labels": np.array([[3, 1, 2, 3, 1, 2, 2]])})
    savemat(tmp_path / "setid.mat", {"trnid": [[2, 4]], "valid": [[6]], "tstid": [[1, 3, 5, 7]]})
    data = load_dataset({**run_lines("Flowers-102", tmp_path, monkeypatch), "size": 6})
    assert data.classes == ("1", "2", "3")
    assert data.y.tolist() == [0, 2, 1]
    assert data.test_y.tolist() == [2, 1, 0, 1]
    assert np.abs(np.moveaxis(np.asarray(made[1]), 2, 0).astype(int) - data.x[0]).max() < 40
    table = pd.read_csv("flowers.csv").assign(split="valid")
    table.to_csv("flowers.csv", index=False)
    with pytest.raises(InputError, match="holds 'valid': write train or test"):
        load_dataset({"path": "flowers.csv", "image": "file", "split": "split", "root": "jpg"})


def test_sun_has_lists_of_files_in_folders_of_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = write_folder(tmp_path / "SUN397" / "a" / "apse", "bc", 2, h=6, w=6)
    names = [f"/a/apse/{c}/{i}.png" for c in "bc" for i in range(2)]
    (tmp_path / "Training_01.txt").write_text("\n".join(names[:3]))
    (tmp_path / "Testing_01.txt").write_text(names[3])
    data = load_dataset({**run_lines("SUN397", tmp_path, monkeypatch), "size": 6})
    assert_same(data.x, pictures[:3])
    assert_same(data.test_x, pictures[3:])
    assert data.classes == ("/a/apse/b", "/a/apse/c")
    (tmp_path / "SUN397" / "a" / "apse" / "b" / "0.png").unlink()
    with pytest.raises(InputError, match="names 1 of 3 images that are not in"):
        load_dataset({"path": "sun-train.csv", "image": "file", "root": "SUN397"})


def test_camelyon_becomes_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = {p: RNG.integers(0, 256, (n, 8, 8, 3), dtype=np.uint8) for p, n in (("train", 6), ("valid", 4))}

    @contextmanager
    def opened(name: str) -> Iterator[dict[str, np.ndarray]]:
        part = name.split("_")[4]
        yield {"x": made[part], "y": (np.arange(len(made[part])) % 2).reshape(-1, 1, 1, 1)}

    module = types.ModuleType("h5py")
    module.File = opened  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "h5py", module)
    data = load_dataset(run_lines("Patch Camelyon", tmp_path, monkeypatch))
    assert_same(data.x, list(made["train"]))
    assert_same(data.test_x, list(made["valid"]))
    assert data.test_y.tolist() == [0, 1, 0, 1]


def test_inaturalist_has_its_classes_in_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = write_folder(tmp_path / "train_val_images" / "Aves", "ab", 2, h=6, w=6)
    names = [f"train_val_images/Aves/{c}/{i}.png" for c in "ab" for i in range(2)]
    for part, rows in (("train", [0, 2]), ("val", [3, 1])):
        images = [{"id": i, "file_name": names[i]} for i in rows]
        labels = [{"image_id": i, "category_id": 10 + i // 2} for i in reversed(rows)]
        (tmp_path / f"{part}2017.json").write_text(json.dumps({"images": images, "annotations": labels}))
    data = load_dataset({**run_lines("iNaturalist 2017", tmp_path, monkeypatch), "size": 6})
    assert_same(data.x, [pictures[0], pictures[2]])
    assert data.classes == ("10", "11")
    assert data.y.tolist() == [0, 1]
    assert dict(zip(data.test_y.tolist(), data.test_x[:, 0, 0, 0], strict=True)) == {
        1: pictures[3][0, 0, 0],
        0: pictures[1][0, 0, 0],
    }


def test_pets_have_lists_without_endings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("images", "annotations"):
        (tmp_path / name).mkdir()
    for name in ("Bombay_1", "Bombay_2", "pug_7"):
        picture(6, 6).save(tmp_path / "images" / f"{name}.jpg")
    (tmp_path / "annotations" / "trainval.txt").write_text("Bombay_1 6 1 5\npug_7 27 2 17\n")
    (tmp_path / "annotations" / "test.txt").write_text("Bombay_2 6 1 5\n")
    data = load_dataset({**run_lines("Oxford Pets", tmp_path, monkeypatch), "size": 6})
    assert (data.classes, data.y.tolist(), data.test_y.tolist()) == (("6", "27"), [0, 1], [0])


# --- Decoded images that are kept ------------------------------------------------------------------


def decoded(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Count the images that are decoded from here on."""
    seen: list[Path] = []
    real = images.decode
    monkeypatch.setattr(images, "decode", lambda path, *rest: seen.append(path) or real(path, *rest))
    return seen


def test_a_cache_spares_the_decoding_and_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for part in ("train", "test"):
        write_folder(tmp_path / "set" / part, n=4)
    spec = {"path": "set", "size": 5}
    plain = load_dataset(spec, folder=tmp_path)
    seen = decoded(monkeypatch)
    for count in (16, 0):
        data = load_dataset({**spec, "cache": "kept"}, folder=tmp_path)
        assert len(seen) == count
        assert np.array_equal(data.x, plain.x)
        assert np.array_equal(data.test_x, plain.test_x)
        assert data.digest == plain.digest  # runs have the same names
        assert data.x.filename.parent == tmp_path / "kept"
        seen.clear()
    # Another size, other examples or a changed file is another cache.
    load_dataset({**spec, "size": 6, "cache": "kept"}, folder=tmp_path)
    assert len(seen) == 16
    load_dataset({**spec, "examples": 4, "cache": "kept"}, folder=tmp_path)
    assert len(seen) == 20
    seen.clear()
    picture().save(tmp_path / "set" / "train" / "a" / "0.png")
    os.utime(tmp_path / "set" / "train" / "a" / "0.png", ns=(1, 1))
    data = load_dataset({**spec, "cache": "kept"}, folder=tmp_path)
    assert len(seen) == 8
    assert data.digest == load_dataset(spec, folder=tmp_path).digest != plain.digest
    assert not [p.name for p in (tmp_path / "kept").iterdir() if p.suffix != ".npy"]


def test_a_cache_follows_no_links_and_is_checked(tmp_path: Path) -> None:
    write_folder(tmp_path / "set")
    spec = {"path": "set", "cache": "kept"}
    load_dataset(spec, folder=tmp_path)
    (array,) = (tmp_path / "kept").glob("*.npy")
    array.rename(tmp_path / "elsewhere.npy")
    array.symlink_to(tmp_path / "elsewhere.npy")
    with pytest.raises(InputError, match="cannot be used: it is a link"):
        load_dataset(spec, folder=tmp_path)
    array.unlink()
    np.save(array, np.zeros((2, 3, 4, 5), dtype=np.uint8))
    with pytest.raises(InputError, match=r"holds uint8 of shape \(2, 3, 4, 5\). Remove it"):
        load_dataset(spec, folder=tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    with pytest.raises(InputError, match="it is a link"):
        load_dataset({**spec, "cache": "link"}, folder=tmp_path)
    with pytest.raises(InputError, match=r"data.on_error='skip'.*data.cache"):
        load_dataset({**spec, "on_error": "skip"}, folder=tmp_path)


def test_a_damaged_image_leaves_no_cache(tmp_path: Path) -> None:
    write_folder(tmp_path / "set")
    (tmp_path / "set" / "b" / "2.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match=r"b/2.png is not a whole picture"):
        load_dataset({"path": "set", "cache": "kept", "channels": 3}, folder=tmp_path)
    assert not list((tmp_path / "kept").iterdir())


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (np.arange(1, 7)[:, None] + 0.5, r"labels that are not whole numbers: SVHN has bytes and labels 1 to 10"),
        (np.array([["a", 2]], dtype=object), r"labels of type object: SVHN has"),
        (np.zeros((0, 1), dtype=np.uint8), r"no labels: SVHN has"),
        (np.full((6, 1), 11), r"labels 11 to 11: SVHN has"),
    ],
)
def test_labels_that_svhn_has_not_are_told(tmp_path: Path, labels: Any, told: str) -> None:
    from scipy.io import savemat

    savemat(tmp_path / "train_32x32.mat", {"X": RNG.integers(0, 256, (32, 32, 3, 6), dtype=np.uint8), "y": labels})
    with pytest.raises(InputError, match=f"train_32x32.mat holds .*{told}"):
        load_dataset(str(tmp_path))


def test_pixels_and_hash_of_a_cache_belong_together(tmp_path: Path) -> None:
    write_folder(tmp_path / "set")
    spec = {"path": "set", "cache": "kept"}
    plain = load_dataset(spec, folder=tmp_path)
    (array,) = (tmp_path / "kept").glob("*.npy")
    changed = bytearray(array.read_bytes())
    changed[-10] ^= 255
    array.write_bytes(changed)
    with pytest.raises(InputError, match=r"it holds other pixels than were written. Remove it"):
        load_dataset(spec, folder=tmp_path)
    array.unlink()
    assert load_dataset(spec, folder=tmp_path).digest == plain.digest


def test_a_replaced_image_or_another_folder_is_another_cache(tmp_path: Path) -> None:
    def write(folder: Path, level: int) -> None:
        for label in "ab":
            (folder / label).mkdir(parents=True, exist_ok=True)
            for i in range(3):
                file = folder / label / f"{i}.bmp"
                Image.fromarray(np.full((4, 4, 3), level + i, dtype=np.uint8)).save(file)
                os.utime(file, (1, 1))  # nor does its length change

    kept = str(tmp_path / "kept")
    for folder, level in (("set", 0), ("set", 100), ("other", 200)):
        write(tmp_path / folder, level)
        data = load_dataset({"path": folder, "cache": kept}, folder=tmp_path)
        assert data.x.max() == level + 2
        assert data.digest == load_dataset(folder, folder=tmp_path).digest
