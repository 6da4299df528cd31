"""CIFAR files, JPEG archives and images in folders, made on the spot and compared with Pillow."""

from __future__ import annotations

import io
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from curvewise.errors import InputError, MissingDependencyError
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
