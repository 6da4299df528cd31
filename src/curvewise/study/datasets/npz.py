"""Arrays in a ``.npz`` file: which is which, and which axis is which."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.io._arrays import named_arrays
from curvewise.io._table import brief, listed, shown, suggest
from curvewise.study.dataset import TARGETS
from curvewise.study.datasets import jpeg_archive
from curvewise.study.datasets._request import Request
from curvewise.study.datasets._source import Part, Source, array_part

INPUTS = ("x", "images", "features", "inputs", "data", "tokens")
LABELS = ("y", "labels", "label", "targets", "target")
CLASS_NAMES = ("classes", "class_names", "label_names")
CHANNELS = (1, 2, 3, 4)


def load_npz(path: Path, request: Request) -> Source:
    """Load inputs and labels from a ``.npz`` file, test examples too if it has them."""
    names, get = named_arrays(path)
    if jpeg_archive.is_archive(names):
        return jpeg_archive.load_archive(path, request)
    name = request.text("name") or path.stem
    axes = request.one_of("axes", ("NCHW", "NHWC", "NHW"))
    kind = request.one_of("kind", ("features", "tokens", "images"))
    keys = _keys(names, request, shown(path))
    notes = [f"{', '.join(brief(k) for k in keys.values())} from {shown(path)}."]
    left = [n for n in names if n not in keys.values() and n.lower() not in CLASS_NAMES]
    notes += [f"Not read: {listed(left)}."] if left else []
    padding = request.count("padding", least=0) if kind == "tokens" else None
    numbers = request.one_of("targets", TARGETS) == "numbers"
    parts = [
        _part(get, keys[x], keys[y], axes, kind, notes, numbers=numbers)
        for x, y in (("x", "y"), ("test_x", "test_y"))
        if x in keys
    ]
    classes = _class_names(get, names)
    return Source(parts[0], parts[1] if len(parts) > 1 else None, classes, name, padding, notes)


def _keys(names: list[str], request: Request, source: str) -> dict[str, str]:
    """Which array is x, y, test_x and test_y: as asked for, else by the usual names."""
    asked = {k: v for k in ("x", "y", "test_x", "test_y") if (v := request.text(k)) is not None}
    for key, value in asked.items():
        if value not in names:
            raise InputError(
                f"data.{key}={brief(value)} is not in {source}, which has {listed(names)}."
                f"{suggest(value, names)}"
            )
    found = {**_usual(names, "train", ("x", "y")), **_usual(names, "test", ("test_x", "test_y"))}
    keys = asked if {"x", "y"} <= set(asked) else {**found, **asked}
    for x, y in (("x", "y"), ("test_x", "test_y")):
        if (x in keys) != (y in keys) or (x == "x" and x not in keys):
            lacking = x if x not in keys else y
            raise InputError(
                f"{source} has {listed(names)}: say which of them is {lacking}, with "
                f"data.{lacking}=…"
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


def _part(
    get: Callable[[str], Any],
    x_key: str,
    y_key: str,
    axes: str | None,
    kind: str | None,
    notes: list[str],
    *,
    numbers: bool,
) -> Part:
    x, y = np.asarray(get(x_key)), np.asarray(get(y_key))
    if x.ndim == 0 or y.ndim == 0:
        raise InputError(f"{brief(x_key if x.ndim == 0 else y_key)} is a single value, no array.")
    y = _as_targets(y, brief(y_key), axes) if numbers else y
    return array_part(as_inputs(x, brief(x_key), axes, kind, notes), y, brief(x_key), brief(y_key))


def _as_targets(y: NDArray[Any], name: str, axes: str | None) -> NDArray[Any]:
    """Images to predict have the axes of the inputs; rows stay as they are."""
    if y.ndim == 3 and axes in (None, "NHW"):
        return y[:, None]
    if y.ndim == 4 and (axes if axes in ("NCHW", "NHWC") else _axes(y.shape, name)) == "NHWC":
        return np.ascontiguousarray(np.moveaxis(y, 3, 1))
    return y


def as_inputs(
    x: NDArray[Any], name: str, axes: str | None, kind: str | None, notes: list[str]
) -> NDArray[Any]:
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
            f"{name} holds whole numbers of shape {x.shape}: say what they are, data.kind="
            "'features' or data.kind='tokens' (images must be reshaped to their height and width)."
        )
    if kind != "tokens":
        return x.astype(np.float32)
    if x.dtype.kind not in "iu" or (x.size and x.min() < 0):
        raise InputError(f"{name} holds tokens, so it must hold whole numbers from 0 on.")
    return x.astype(np.int32)


def _axes(shape: tuple[int, ...], name: str) -> str:
    first, last = shape[1] in CHANNELS, shape[3] in CHANNELS
    if first == last:
        raise InputError(
            f"{name} has shape {shape}: say which axis is which, data.axes='NCHW' (examples, "
            "channels, height, width) or data.axes='NHWC'."
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


def _class_names(get: Callable[[str], Any], names: list[str]) -> tuple[str, ...] | None:
    """Names of the classes, if an array of texts is called so."""
    for name in names:
        if name.lower() in CLASS_NAMES:
            found = np.asarray(get(name))
            if found.ndim == 1 and found.dtype.kind == "U":
                return tuple(found.tolist())
    return None
