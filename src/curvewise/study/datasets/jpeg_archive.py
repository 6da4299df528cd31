"""An archive of JPEG pictures in one ``.npz``: their bytes end to end, offsets and labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from curvewise.errors import InputError
from curvewise.io._arrays import named_arrays
from curvewise.io._table import brief, shown
from curvewise.study.datasets._pictures import decode, decode_all
from curvewise.study.datasets._request import Request
from curvewise.study.datasets._source import Part, Source


def is_archive(names: Sequence[str]) -> bool:
    """Whether a file with such arrays is an archive of pictures."""
    return {"train_jpeg", "train_offsets", "train_labels"} <= set(names)


def load_archive(path: Path, request: Request) -> Source:
    """Load the pictures of an archive; only those asked for are decoded."""
    names, get = named_arrays(path)
    name = request.text("name") or path.stem.removesuffix("_jpeg")
    size = request.size("size")
    channels = request.one_of("channels", (1, 3), 3)
    train = _part(get, "train", path, size, channels)
    test = _part(get, "test", path, size, channels) if "test_jpeg" in names else None
    classes = tuple(map(str, get("classes").tolist())) if "classes" in names else None
    return Source(train, test, classes, name)


def _part(
    get: Callable[[str], Any], part: str, path: Path, size: tuple[int, int] | None, channels: int
) -> Part:
    offsets, labels = (np.asarray(get(f"{part}_{kind}")) for kind in ("offsets", "labels"))
    if offsets.ndim != 1 or offsets.dtype.kind not in "iu" or len(offsets) != len(labels) + 1:
        raise InputError(
            f"{part}_offsets in {shown(path)} has {offsets.dtype} of shape {offsets.shape}: it "
            f"must hold {len(labels) + 1} whole numbers, one more than {part}_labels."
        )
    ends = offsets.astype(np.int64)

    def read(rows: Any) -> Any:
        data = np.asarray(get(f"{part}_jpeg"))
        if data.dtype != np.uint8 or data.ndim != 1:
            raise InputError(f"{part}_jpeg in {shown(path)} must hold bytes, in one row.")
        if ends[0] != 0 or ends[-1] != len(data) or np.any(np.diff(ends) <= 0):
            raise InputError(
                f"{part}_offsets in {shown(path)} must rise from 0 to {len(data)}, the length of "
                f"{part}_jpeg; they go from {ends[0]} to {ends[-1]}."
            )
        wanted = list(range(len(labels)) if rows is None else rows)
        return decode_all(
            wanted,
            lambda i: decode(data[ends[i] : ends[i + 1]].tobytes(), size, channels),
            lambda i: f"Picture {wanted[i]} of {brief(part)} in {shown(path)}",
        )

    return Part(labels, read)
