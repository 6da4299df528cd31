"""Arrays in a ``.npz`` file: which is which, and which axis is which."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, arg, brief, format_path, list_names, suggest
from curvewise.reading.arrays import named_arrays
from curvewise.reading.table import LARGEST_ARRAYS, check_file, check_unpacked
from curvewise.study.data import images as jpeg_archive
from curvewise.study.data.dataset import TARGETS, DataPart, DataSource, Request, array_part, check_precision

INPUTS = ("x", "images", "features", "inputs", "data", "tokens")
LABELS = ("y", "labels", "label", "targets", "target")
CLASS_NAMES = ("classes", "class_names", "label_names")
CHANNELS = (1, 2, 3, 4)


def load_npz(path: Path, request: Request) -> DataSource:
    """Load inputs and labels from a ``.npz`` file, test examples too if it has them."""
    names, get = named_arrays(path)
    if jpeg_archive.is_archive(names):
        return jpeg_archive.load_archive(path, request)
    name = request.text("name") or path.stem
    axes = request.one_of("axes", ("NCHW", "NHWC", "NHW"))
    kind = request.one_of("kind", ("features", "tokens", "images"))
    keys = _keys(names, request, format_path(path))
    notes = [f"{', '.join(brief(k) for k in keys.values())} from {format_path(path)}."]
    left = [n for n in names if n not in keys.values() and n.lower() not in CLASS_NAMES]
    notes += [f"Not read: {list_names(left)}."] if left else []
    padding = request.count("padding", least=0) if kind == "tokens" else None
    numbers = request.one_of("targets", TARGETS) == "numbers"
    parts = []
    for x_key, y_key in ((keys[x], keys[y]) for x, y in (("x", "y"), ("test_x", "test_y")) if x in keys):
        x, y = np.asarray(get(x_key)), np.asarray(get(y_key))
        if x.ndim == 0 or y.ndim == 0:
            raise InputError(f"{brief(x_key if x.ndim == 0 else y_key)} is a single value, no array.")
        y = _as_targets(y, brief(y_key), axes) if numbers else y
        parts.append(array_part(as_inputs(x, brief(x_key), axes, kind, notes), y, brief(x_key), brief(y_key)))
    # Names of the classes, if an array of texts is called so.
    named = [np.asarray(get(name)) for name in names if name.lower() in CLASS_NAMES]
    classes = next((tuple(found.tolist()) for found in named if found.ndim == 1 and found.dtype.kind == "U"), None)
    return DataSource(parts, classes, name, padding, notes)


def _keys(names: list[str], request: Request, source: str) -> dict[str, str]:
    """Find the arrays x, y, test_x and test_y: as asked for, else by the usual names."""
    asked = {k: v for k in ("x", "y", "test_x", "test_y") if (v := request.text(k)) is not None}
    for key, value in asked.items():
        if value not in names:
            raise InputError(
                f"{arg(f'data.{key}', value)} is not in {source}, which has {list_names(names)}.{suggest(value, names)}"
            )
    found = {**_usual(names, "train", ("x", "y")), **_usual(names, "test", ("test_x", "test_y"))}
    keys = asked if {"x", "y"} <= set(asked) else {**found, **asked}
    for x, y in (("x", "y"), ("test_x", "test_y")):
        if (x in keys) != (y in keys) or (x == "x" and x not in keys):
            lacking = x if x not in keys else y
            raise InputError(
                f"{source} has {list_names(names)}: say which of them is {lacking}, with {arg(f'data.{lacking}')}"
            )
    return keys


def _usual(names: list[str], part: str, keys: tuple[str, str]) -> dict[str, str]:
    """The arrays of a part that are called as usual; none where several could be meant."""
    lower = {name.lower(): name for name in names}
    found = {}
    for key, stems in zip(keys, (INPUTS, LABELS), strict=True):
        patterns = [f"{part}_{{}}", f"{{}}_{part}"]
        plain = ["{}"] if part == "train" and not any("train" in n for n in lower) else []
        hits = [n for p in patterns + plain for s in stems if (n := p.format(s)) in lower]
        if len(hits) == 1:
            found[key] = lower[hits[0]]
    return found


def _as_targets(y: NDArray[Any], name: str, axes: str | None) -> NDArray[Any]:
    """Images to predict have the axes of the inputs; rows stay as they are."""
    if y.ndim == 3 and axes in (None, "NHW"):
        return y[:, None]
    if y.ndim == 4 and (axes if axes in ("NCHW", "NHWC") else _axes(y.shape, name)) == "NHWC":
        return np.ascontiguousarray(np.moveaxis(y, 3, 1))
    return y


def as_inputs(x: NDArray[Any], name: str, axes: str | None, kind: str | None, notes: list[str]) -> NDArray[Any]:
    """Inputs as a Dataset holds them: images of bytes, features of float32, or tokens."""
    if x.dtype.kind not in "fiub":
        raise InputError(f"{name} is of type {x.dtype}: inputs must be numbers.")
    if x.dtype.kind == "f" and not np.isfinite(x).all():
        count = int(np.sum(~np.isfinite(x)))
        raise InputError(f"{name} holds {count} NaN or infinite values: drop or fill these.")
    if x.ndim == 2 and kind != "images":
        return _flat(x, name, kind)
    if x.ndim == 3 and axes in (None, "NHW"):
        return _bytes(x[:, None], name, notes)
    if x.ndim == 4:
        axes = axes or _axes(x.shape, name)
        images = np.moveaxis(x, 3, 1) if axes == "NHWC" else x
        return _bytes(np.ascontiguousarray(images), name, notes)
    raise InputError(
        f"{name} has shape {x.shape}{'' if axes is None else f' (axes={axes!r})'}: give (examples, "
        "channels, height, width), (examples, height, width, channels), (examples, height, width), "
        "(examples, features) or (examples, tokens)."
    )


def _flat(x: NDArray[Any], name: str, kind: str | None) -> NDArray[Any]:
    if kind is None and x.dtype.kind in "iu":
        raise InputError(
            f"{name} holds whole numbers of shape {x.shape}: say what they are, {arg('data.kind', 'features')} "
            f"or {arg('data.kind', 'tokens')} (images must be reshaped to their height and width)."
        )
    if kind != "tokens":
        with np.errstate(over="ignore"):  # refused with the whole array
            features = x.astype(np.float32)
        if np.isfinite(features).all():
            check_precision(x, features, name)
        return features
    if x.dtype.kind not in "iu" or (x.size and x.min() < 0):
        raise InputError(f"{name} holds tokens, so it must hold whole numbers from 0 on.")
    return x.astype(np.int32)


def _axes(shape: tuple[int, ...], name: str) -> str:
    first, last = shape[1] in CHANNELS, shape[3] in CHANNELS
    if first == last:
        raise InputError(
            f"{name} has shape {shape}: say which axis is which, {arg('data.axes', 'NCHW')} (examples, "
            f"channels, height, width) or {arg('data.axes', 'NHWC')}."
        )
    return "NCHW" if first else "NHWC"


def _bytes(x: NDArray[Any], name: str, notes: list[str]) -> NDArray[np.uint8]:
    """Images from 0 to 255; fractions from 0 to 1 are multiplied by 255 and rounded."""
    if x.dtype == np.uint8 or not x.size:
        return x.astype(np.uint8, copy=False)
    low, high = x.min(), x.max()
    whole = x.dtype.kind in "iub" or bool(np.all(x == np.round(x)))
    if low >= 0 and high <= 255 and whole and (high > 1 or x.dtype.kind in "iu"):
        return x.astype(np.uint8)
    if low >= 0 and high <= 1:
        notes.append(f"{name} was multiplied by 255 and rounded.")
        return np.round(x.astype(np.float64) * 255).astype(np.uint8)
    raise InputError(
        f"{name} holds images with values from {low:g} to {high:g}: save them as whole numbers "
        "from 0 to 255, or as fractions from 0 to 1, before they are normalised."
    )


# IDX files, gzipped or not: the format of MNIST and of what took its place.

FASHION = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
    "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip

TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_CHUNK = 1 << 24


def is_idx_name(name: str) -> bool:
    """Return whether a file has a name of IDX files."""
    return any(f"{mark}idx{k}-ubyte" in name for mark in "-." for k in (1, 3))


def load_idx(folder: Path, request: Request) -> DataSource:
    """Load images and labels from the IDX files of a folder; the test part if it is there."""
    name = request.text("name") or folder.resolve().name
    train = _idx_part(folder, ("train",))
    test = _idx_part(folder, ("t10k", "test"))
    if train is None:
        raise InputError(
            f"{format_path(folder)} has no training images: there should be train-images-idx3-ubyte and "
            "train-labels-idx1-ubyte, perhaps with .gz."
        )
    fashion = "fashion" in f"{name} {folder.resolve()}".lower()
    return DataSource([train] if test is None else [train, test], FASHION if fashion else None, name)


def _idx_part(folder: Path, marks: tuple[str, ...]) -> DataPart | None:
    images, labels = (_find(folder, marks, kind) for kind in ("images", "labels"))
    if images is None and labels is None:
        return None
    if images is None or labels is None:
        there, lacking = (labels, "images") if images is None else (images, "labels")
        assert there is not None
        raise InputError(f"{format_path(folder)} has {format_path(there)}, but no {lacking} to go with it.")
    x, y = read_idx(images), read_idx(labels)
    if x.ndim != 3 or x.dtype != np.uint8:
        raise InputError(
            f"{format_path(images)} holds {x.dtype} of shape {x.shape}: images are bytes, (examples, height, width)."
        )
    if y.ndim != 1:
        raise InputError(f"{format_path(labels)} holds an array of shape {y.shape}: labels have one axis.")
    return array_part(x[:, None], y, format_path(images), format_path(labels))


def _find(folder: Path, marks: tuple[str, ...], kind: str) -> Path | None:
    """The one file for a part; unpacked rather than gzipped where both are there."""
    found = sorted(
        path
        for path in folder.iterdir()
        if is_idx_name(path.name) and kind in path.name and any(m in path.name for m in marks)
    )
    stems = sorted({path.name.removesuffix(".gz") for path in found})
    if len(stems) > 1:
        raise InputError(
            f"{format_path(folder)} has several files with {marks[0]} {kind}: {list_names(stems)}. Put those "
            "of each data set into a folder of its own."
        )
    return found[0] if found else None


def read_idx(path: Path) -> NDArray[Any]:
    """Read one IDX file; its size must be what its header says."""
    check_file(path)
    packed = path.suffix.lower() == ".gz"
    try:
        with gzip.open(path, "rb") if packed else open(path, "rb") as file:
            return _array(file, path)  # type: ignore[arg-type]
    except (EOFError, OSError, zlib.error) as error:
        raise InputError(
            f"{format_path(path)} is not a whole {'gzip ' if packed else ''}file ({error}): it was cut "
            "short or damaged. Fetch it again."
        ) from error


def _array(file: IO[bytes], path: Path) -> NDArray[Any]:
    magic = file.read(4)
    kind = TYPES.get(magic[2]) if len(magic) == 4 and magic[:2] == b"\0\0" else None
    if kind is None or not magic[3]:
        gzipped = " (it is gzipped: end its name in .gz)" if magic[:2] == b"\x1f\x8b" else ""
        raise InputError(
            f"{format_path(path)} begins with {magic.hex(' ') or 'nothing'}, so it is not an IDX file{gzipped}."
        )
    header = file.read(4 * magic[3])
    if len(header) < 4 * magic[3]:
        raise InputError(f"{format_path(path)} ends within its header: it was cut short. Fetch it again.")
    shape = tuple(int(k) for k in np.frombuffer(header, ">u4"))
    dtype = np.dtype(kind)
    wanted = math.prod(shape) * dtype.itemsize
    if path.suffix.lower() == ".gz":
        check_unpacked(path, wanted, LARGEST_ARRAYS)
    data = _read(file, wanted + 1)
    if len(data) != wanted:
        seen = f"{len(data):,} bytes" if len(data) < wanted else "more"
        raise InputError(
            f"{format_path(path)} says that it holds {' × '.join(map(str, shape))} values ({wanted:,} "
            f"bytes), but there are {seen}: it was cut short or damaged. Fetch it again."
        )
    return np.frombuffer(data, dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=False)


def _read(file: IO[bytes], most: int) -> bytearray:
    """At most that many bytes; piece by piece, as a damaged header may promise any number."""
    data = bytearray()  # not bytes, on which an array could not be written to
    while len(data) < most and (piece := file.read(min(most - len(data), _CHUNK))):
        data += piece
    return data


# CIFAR-10 and CIFAR-100 in their binary versions.

PIXELS = 3 * 32 * 32


def is_cifar_name(name: str) -> bool:
    """Return whether a file has a name of the files of CIFAR."""
    return name.startswith("data_batch") or name in ("train.bin", "test.bin", "test_batch.bin")


def load_cifar(path: Path, request: Request) -> DataSource:
    """Load a folder of CIFAR's binary files, or an archive with its pictures as JPEG."""
    if path.is_file():
        return load_npz(path, request)
    name = request.text("name")
    hundred = (path / "train.bin").is_file()
    which = request.one_of("labels", ("fine", "coarse"), "fine") if hundred else None
    batches = [path / "train.bin"] if hundred else sorted(path.glob("data_batch*.bin"))
    if not batches:
        seen = sorted(p.name for p in path.iterdir() if p.name != ".DS_Store")
        pickled = any(n.startswith("data_batch") or n in ("train", "test") for n in seen)
        raise InputError(
            f"{format_path(path)} has no data_batch_1.bin or train.bin, but {list_names(seen, 8)}."
            + (
                " These are the pickles of the Python version, which are not read, as pickles can "
                "run code: fetch the binary version."
                if pickled
                else ""
            )
        )
    column = 1 if which == "fine" else 0
    test = path / ("test.bin" if hundred else "test_batch.bin")
    there = [batches, [test]] if test.is_file() else [batches]
    parts = [_cifar_part(files, 2 if hundred else 1, column) for files in there]
    # Names of the classes, from the file that comes with the pictures.
    file = path / ("batches.meta.txt" if which is None else f"{which}_label_names.txt")
    lines = file.read_text().splitlines() if file.is_file() else []
    classes = tuple(line.strip() for line in lines if line.strip()) or None
    return DataSource(parts, classes, name or ("cifar100" if hundred else "cifar10"))


def _cifar_part(paths: list[Path], marks: int, column: int) -> DataPart:
    rows: NDArray[Any] = np.concatenate([_read_batch(path, marks + PIXELS) for path in paths])
    x = np.ascontiguousarray(rows[:, marks:]).reshape(-1, 3, 32, 32)
    return array_part(x, rows[:, column].astype(np.int64), format_path(paths[0]), format_path(paths[0]))


def _read_batch(path: Path, length: int) -> NDArray[np.uint8]:
    check_file(path)
    try:
        data = np.fromfile(path, dtype=np.uint8)
    except OSError as error:
        raise InputError(f"{format_path(path)} cannot be read: {error}.") from error
    if len(data) % length:
        raise InputError(
            f"{format_path(path)} has {len(data):,} bytes, which is no multiple of {length:,} (a picture "
            "with its label): it was cut short, or is something else. Fetch it again."
        )
    return data.reshape(-1, length)


# SVHN: cropped digits in two MATLAB files.


def is_svhn_name(name: str) -> bool:
    """Return whether a file has a name of the files of SVHN."""
    return name in ("train_32x32.mat", "test_32x32.mat")


def load_svhn(folder: Path, request: Request) -> DataSource:
    """Load ``train_32x32.mat``, and ``test_32x32.mat`` if it is there."""
    name, train, test = request.text("name"), folder / "train_32x32.mat", folder / "test_32x32.mat"
    if not train.is_file():
        raise InputError(f"{format_path(folder)} has no train_32x32.mat: fetch it, and test_32x32.mat beside it.")
    parts = [_svhn_part(path) for path in (train, test) if path.is_file()]
    return DataSource(parts, tuple("0123456789"), name or "svhn")


def _svhn_part(path: Path) -> DataPart:
    from scipy.io import loadmat, whosmat

    check_file(path)
    try:
        shapes = {name: shape for name, shape, _ in whosmat(path)}
        if not {"X", "y"} <= set(shapes) or len(shapes["X"]) != 4 or shapes["X"][2] != 3:
            raise ValueError(f"it holds {shapes}, and SVHN X (32, 32, 3, images) and y")
        check_unpacked(path, math.prod(shapes["X"]), LARGEST_ARRAYS)
        found = loadmat(path, variable_names=["X", "y"])
    except InputError:
        raise
    except Exception as error:  # a file that is not of MATLAB, or damaged, raises many kinds
        raise InputError(f"{format_path(path)} cannot be read: {error}. Fetch it again.") from error
    x, y = np.asarray(found["X"]), np.asarray(found["y"]).ravel()
    if y.dtype.kind not in "uif" or not y.size:
        labels = f"labels of type {y.dtype}" if y.size else "no labels"
    elif np.any(y != np.floor(y)):  # NaN among them
        labels = "labels that are not whole numbers"
    else:
        labels = "" if y.min() >= 1 and y.max() <= 10 else f"labels {y.min():g} to {y.max():g}"
    if x.dtype != np.uint8 or labels:
        held = " and ".join(filter(None, (str(x.dtype), labels)))
        raise InputError(f"{format_path(path)} holds {held}: SVHN has bytes and labels 1 to 10.")
    y = y.astype(np.int64)
    # MATLAB counts from 1, and the digit 0 is its class 10.
    return array_part(np.ascontiguousarray(x.transpose(3, 2, 0, 1)), y % 10, format_path(path), format_path(path))
