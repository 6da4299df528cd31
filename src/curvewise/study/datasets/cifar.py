"""CIFAR-10 and CIFAR-100 in their binary versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.io._arrays import check_file
from curvewise.io._table import listed, shown
from curvewise.study.datasets import npz
from curvewise.study.datasets._request import Request
from curvewise.study.datasets._source import Part, Source, array_part

PIXELS = 3 * 32 * 32


def is_cifar_name(name: str) -> bool:
    """Whether a file is called as those of CIFAR are."""
    return name.startswith("data_batch") or name in ("train.bin", "test.bin", "test_batch.bin")


def load_cifar(path: Path, request: Request) -> Source:
    """Load a folder of CIFAR's binary files, or an archive with its pictures as JPEG."""
    if path.is_file():
        return npz.load_npz(path, request)
    name = request.text("name")
    hundred = (path / "train.bin").is_file()
    which = request.one_of("labels", ("fine", "coarse"), "fine") if hundred else None
    batches = [path / "train.bin"] if hundred else sorted(path.glob("data_batch*.bin"))
    if not batches:
        seen = sorted(p.name for p in path.iterdir() if p.name != ".DS_Store")
        pickled = any(n.startswith("data_batch") or n in ("train", "test") for n in seen)
        raise InputError(
            f"{shown(path)} has no data_batch_1.bin or train.bin, but {listed(seen, 8)}."
            + (
                " These are the pickles of the Python version, which are not read, as pickles can "
                "run code: fetch the binary version."
                if pickled
                else ""
            )
        )
    column = 1 if which == "fine" else 0
    tests = [path / ("test.bin" if hundred else "test_batch.bin")]
    classes = _classes(path, which)
    train = _part(batches, 2 if hundred else 1, column)
    test = _part(tests, 2 if hundred else 1, column) if tests[0].is_file() else None
    return Source(train, test, classes, name or ("cifar100" if hundred else "cifar10"))


def _part(paths: list[Path], marks: int, column: int) -> Part:
    read = [_read(path, marks + PIXELS) for path in paths]
    rows: NDArray[Any] = read[0] if len(read) == 1 else np.concatenate(read)
    x = np.ascontiguousarray(rows[:, marks:]).reshape(-1, 3, 32, 32)
    return array_part(x, rows[:, column].astype(np.int64), shown(paths[0]), shown(paths[0]))


def _read(path: Path, length: int) -> NDArray[np.uint8]:
    check_file(path)
    try:
        data = np.fromfile(path, dtype=np.uint8)
    except OSError as error:
        raise InputError(f"{shown(path)} cannot be read: {error}.") from error
    if len(data) % length:
        raise InputError(
            f"{shown(path)} has {len(data):,} bytes, which is no multiple of {length:,} (a picture "
            "with its label): it was cut short, or is something else. Fetch it again."
        )
    return data.reshape(-1, length)


def _classes(path: Path, which: str | None) -> tuple[str, ...] | None:
    """Names of the classes, from the file that comes with the pictures."""
    file = path / ("batches.meta.txt" if which is None else f"{which}_label_names.txt")
    if not file.is_file():
        return None
    return tuple(line.strip() for line in file.read_text().splitlines() if line.strip()) or None
