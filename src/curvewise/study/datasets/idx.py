"""IDX files, gzipped or not: the format of MNIST and of what took its place."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.io._arrays import check_file
from curvewise.io._files import LARGEST_ARRAYS, check_unpacked
from curvewise.io._table import listed, shown
from curvewise.study.datasets._request import Request
from curvewise.study.datasets._source import Part, Source, array_part

FASHION = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
    "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip

TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_CHUNK = 1 << 24


def is_idx_name(name: str) -> bool:
    """Whether a file is called as IDX files are."""
    return any(f"{mark}idx{k}-ubyte" in name for mark in "-." for k in (1, 3))


def load_idx(folder: Path, request: Request) -> Source:
    """Load images and labels from the IDX files of a folder; the test part if it is there."""
    name = request.text("name") or folder.resolve().name
    train = _part(folder, ("train",))
    test = _part(folder, ("t10k", "test"))
    if train is None:
        raise InputError(
            f"{shown(folder)} has no training images: there should be train-images-idx3-ubyte and "
            "train-labels-idx1-ubyte, perhaps with .gz."
        )
    fashion = "fashion" in f"{name} {folder.resolve()}".lower()
    return Source(train, test, FASHION if fashion else None, name)


def _part(folder: Path, marks: tuple[str, ...]) -> Part | None:
    images, labels = (_find(folder, marks, kind) for kind in ("images", "labels"))
    if images is None and labels is None:
        return None
    if images is None or labels is None:
        there, lacking = (labels, "images") if images is None else (images, "labels")
        assert there is not None
        raise InputError(f"{shown(folder)} has {shown(there)}, but no {lacking} to go with it.")
    x, y = read_idx(images), read_idx(labels)
    if x.ndim != 3 or x.dtype != np.uint8:
        raise InputError(
            f"{shown(images)} holds {x.dtype} of shape {x.shape}: images are bytes, (examples, "
            "height, width)."
        )
    if y.ndim != 1:
        raise InputError(
            f"{shown(labels)} holds an array of shape {y.shape}: labels have one axis."
        )
    return array_part(x[:, None], y, shown(images), shown(labels))


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
            f"{shown(folder)} has several files with {marks[0]} {kind}: {listed(stems)}. Put those "
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
            f"{shown(path)} is not a whole {'gzip ' if packed else ''}file ({error}): it was cut "
            "short or damaged. Fetch it again."
        ) from error


def _array(file: IO[bytes], path: Path) -> NDArray[Any]:
    magic = file.read(4)
    kind = TYPES.get(magic[2]) if len(magic) == 4 and magic[:2] == b"\0\0" else None
    if kind is None or not magic[3]:
        gzipped = " (it is gzipped: end its name in .gz)" if magic[:2] == b"\x1f\x8b" else ""
        raise InputError(
            f"{shown(path)} begins with {magic.hex(' ') or 'nothing'}, so it is not an IDX file"
            f"{gzipped}."
        )
    header = file.read(4 * magic[3])
    if len(header) < 4 * magic[3]:
        raise InputError(f"{shown(path)} ends within its header: it was cut short. Fetch it again.")
    shape = tuple(int(k) for k in np.frombuffer(header, ">u4"))
    dtype = np.dtype(kind)
    wanted = math.prod(shape) * dtype.itemsize
    if path.suffix.lower() == ".gz":
        check_unpacked(path, wanted, LARGEST_ARRAYS)
    data = _read(file, wanted + 1)
    if len(data) != wanted:
        seen = f"{len(data):,} bytes" if len(data) < wanted else "more"
        raise InputError(
            f"{shown(path)} says that it holds {' × '.join(map(str, shape))} values ({wanted:,} "
            f"bytes), but there are {seen}: it was cut short or damaged. Fetch it again."
        )
    return np.frombuffer(data, dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=False)


def _read(file: IO[bytes], most: int) -> bytearray:
    """At most that many bytes; piece by piece, as a damaged header may promise any number."""
    data = bytearray()  # not bytes, on which an array could not be written to
    while len(data) < most and (piece := file.read(min(most - len(data), _CHUNK))):
        data += piece
    return data
