"""Data of torchvision, where it is installed and was downloaded."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.io._table import brief
from curvewise.study.datasets._pictures import decode_all, picture_array
from curvewise.study.datasets._request import Request
from curvewise.study.datasets._source import Part, Rows, Source


def load_torchvision(request: Request) -> Source:
    """Load a dataset of torchvision from the folder it was downloaded to."""
    from curvewise.nn.vision import open_torchvision

    kind = request.text("torchvision") or ""
    name, root = request.text("name") or kind, request.path("root")
    size, channels = request.size("size"), request.one_of("channels", (1, 3))
    if root is None:
        raise InputError(
            f"data.torchvision={brief(kind)} needs data.root: the folder it was downloaded to."
        )
    train, test = (open_torchvision(kind, root, train=which) for which in (True, False))
    channels = channels or (1 if train[0][0].mode in ("1", "L") else 3)
    parts = [_part(part, size, channels) for part in (train, test) if part is not None]
    names = getattr(train, "classes", None)
    classes = tuple(map(str, names)) if names is not None else None
    return Source(parts[0], parts[1] if len(parts) > 1 else None, classes, name)


def _part(data: Any, size: tuple[int, int] | None, channels: int) -> Part:
    found = next(
        (v for k in ("targets", "labels", "_labels") if (v := getattr(data, k, None)) is not None),
        None,
    )
    labels = np.asarray([data[i][1] for i in range(len(data))] if found is None else found)
    if len(labels) != len(data):
        raise InputError(
            f"{type(data).__name__} has {len(data)} pictures and {len(labels)} labels."
        )

    def read(rows: Rows | None) -> NDArray[np.uint8]:
        wanted = list(range(len(data)) if rows is None else map(int, rows))
        return decode_all(
            wanted,
            lambda i: picture_array(data[i][0], size, channels),
            lambda i: f"Picture {wanted[i]} of {type(data).__name__}",
        )

    return Part(labels, read)
