"""Images in folders, one for each class."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.io._table import listed, shown
from curvewise.study.datasets._pictures import (
    GREY_MODES,
    decode,
    decode_all,
    in_threads,
    pillow,
)
from curvewise.study.datasets._request import Request
from curvewise.study.datasets._source import Part, Rows, Source, array_part

Found: TypeAlias = list[tuple[Path, str]]  # images and their classes

ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
TRAIN = ("train", "training")
TEST = ("test", "testing", "val", "valid", "validation")
"""Folders above those of the classes; the first of each that is there is taken."""


def load_image_folder(path: Path, request: Request) -> Source:
    """Load images whose class is the folder they lie in."""
    name = request.text("name") or path.resolve().name
    size = request.size("size")
    channels = request.one_of("channels", (1, 3))
    skip = request.one_of("on_error", ("raise", "skip"), "raise") == "skip"
    notes: list[str] = []
    below = {p.name.lower(): p for p in _subfolders(path)}
    train_at = next((below[n] for n in TRAIN if n in below), None)
    test_at = next((below[n] for n in TEST if n in below), None)
    if (train_at is None) != (test_at is None) and len(below) == 1:
        raise InputError(
            f"{shown(path)} has only the folder {listed(below)}: give the folder of the classes "
            "itself, or put train beside test."
        )
    split = train_at is not None and test_at is not None
    if split and (left := [p.name for p in below.values() if p not in (train_at, test_at)]):
        notes.append(f"Folders not read: {listed(sorted(left))}.")
    parts = [train_at, test_at] if split else [path]
    found = [_found(p, notes) for p in parts if p is not None]
    channels = channels or _channels([image for part in found for image in part], skip)
    made = [_part(images, size, channels, skip, notes) for images in found]
    return Source(made[0], made[1] if split else None, None, name, notes=notes)


def _subfolders(path: Path) -> list[Path]:
    return sorted(p for p in path.iterdir() if p.is_dir() and not p.name.startswith("."))


def _found(path: Path, notes: list[str]) -> Found:
    """The images below a folder, class by class."""
    classes = _subfolders(path)
    if not classes:
        raise InputError(
            f"{shown(path)} has no subfolders: images are expected in one folder for each class."
        )
    found: Found = []
    others = 0
    for folder in classes:
        inside = [p for p in folder.rglob("*") if p.is_file() and not p.name.startswith(".")]
        images = sorted(p for p in inside if p.suffix.lower() in ENDINGS)
        others += len(inside) - len(images)
        if not images:
            raise InputError(
                f"{shown(path)}/{shown(folder)} holds no images (that end in "
                f"{', '.join(ENDINGS)}): remove the folder, or give its images."
            )
        found += [(image, folder.name) for image in images]
    notes += (
        [f"{others} files in {shown(path)} are not images and were left out."] if others else []
    )
    return found


def _channels(found: Found, skip: bool) -> int:
    """Grey if every image is; looks at the headers only."""
    image = pillow("Reading images")
    for path, _ in found:
        try:
            with image.open(path) as opened:
                if opened.mode not in GREY_MODES:
                    return 3
        except (OSError, SyntaxError, ValueError) as error:
            if not skip:
                raise InputError(
                    f"{_shown(path)} is not a whole picture ({error}): remove or replace it, "
                    "or use data.on_error='skip'."
                ) from error
    return 1


def _part(
    found: Found, size: tuple[int, int] | None, channels: int, skip: bool, notes: list[str]
) -> Part:
    def one(path: Path) -> NDArray[np.uint8]:
        return decode(path, size, channels)

    labels = np.array([label for _, label in found])
    if skip:
        return _readable(found, labels, one, notes)

    def read(rows: Rows | None) -> NDArray[np.uint8]:
        wanted = [found[i][0] for i in (range(len(found)) if rows is None else rows)]
        return decode_all(wanted, one, lambda i: _shown(wanted[i]))

    return Part(labels, read)


def _readable(
    found: Found, labels: NDArray[Any], one: Callable[[Path], NDArray[np.uint8]], notes: list[str]
) -> Part:
    """Those images that can be decoded; all are, to know which."""
    pictures, good, bad = [], [], []
    for i, picture in enumerate(in_threads(one, [path for path, _ in found])):
        if isinstance(picture, ValueError):
            bad.append(_shown(found[i][0]))
        else:
            pictures.append(picture)
            good.append(i)
    if not good:
        raise InputError(f"None of the {len(found)} images can be read; the first is {bad[0]}.")
    if bad:
        notes.append(f"{len(bad)} images cannot be read and were left out: {listed(bad, 5)}.")
    x = decode_all(pictures, lambda picture: picture, lambda k: _shown(found[good[k]][0]))
    return array_part(x, labels[good], "images", "labels")


def _shown(path: Path) -> str:
    """How messages call an image: with its class."""
    return f"{shown(path.parent)}/{shown(path)}"
