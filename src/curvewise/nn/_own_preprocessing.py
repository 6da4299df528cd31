"""What preprocessing a checkpoint brings along: of timm, torchvision and Hugging Face."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from curvewise.errors import InputError
from curvewise.nn._feature_items import is_torch
from curvewise.nn._preprocessing import INTERPOLATIONS, Preprocessing

Prepare = Preprocessing | Callable[[Any], Any]
"""How pixels become inputs; a function of one's own is given a batch of uint8.

The batch is a tensor where torch is installed, and an array otherwise.
"""

_RESAMPLE = {0: "nearest", 2: "bilinear", 3: "bicubic"}  # Pillow's numbers


def as_preprocessing(given: Any) -> Prepare:
    """Understand what someone gave as preprocessing.

    Parameters
    ----------
    given : Preprocessing, dict, or object
        The fields of a :class:`Preprocessing`; a configuration of timm; weights of torchvision or
        their transforms; an image processor of Hugging Face, or its configuration; or a function
        that takes a batch of pixels of uint8, (n, channels, height, width), and gives inputs.

    Examples
    --------
    >>> as_preprocessing({"input_size": (3, 224, 224), "crop_pct": 0.875, "mean": (0.5,) * 3,
    ...                   "std": (0.5,) * 3, "interpolation": "bicubic"}).size
    256
    """
    if isinstance(given, Preprocessing):
        return given
    if isinstance(given, Mapping) and set(given) <= set(Preprocessing.__dataclass_fields__):
        return Preprocessing(**given)
    if not isinstance(given, Mapping) and callable(getattr(given, "transforms", None)):
        given = given.transforms()  # weights of torchvision
    for marks, read in (
        (("input_size", "mean"), _from_timm),
        (("crop_size", "resize_size", "mean"), _from_torchvision),
        (("image_mean", "image_std"), _from_hugging_face),
    ):
        if all(_get(given, mark) is not None for mark in marks):
            return read(given)
    if callable(given):
        own: Callable[[Any], Any] = given
        return own
    raise InputError(
        f"preprocessing is a {type(given).__name__} that is not understood: give a Preprocessing, "
        "weights of torchvision or their transforms, a configuration of timm, an image processor "
        "of Hugging Face, or a function of a batch of pixels."
    )


def preprocessing_of(model: Any) -> Prepare | None:
    """What a network of timm says about its inputs; None where nothing is said."""
    for name in ("pretrained_cfg", "default_cfg"):
        found = getattr(model, name, None)
        if found is not None and not is_torch(found, "Tensor") and _get(found, "input_size"):
            return as_preprocessing(found)
    return None


def preprocessing_in(folder: Path) -> Prepare | None:
    """What the image processor in a Hugging Face folder does; None where there is none."""
    file = folder / "preprocessor_config.json"
    if not file.is_file():
        return None
    try:
        written = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read ({error}): copy it again.") from error
    return None if written.get("image_mean") is None else as_preprocessing(written)


def _get(thing: Any, name: str, default: Any = None) -> Any:
    found = thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)
    return default if found is None else found


def _from_timm(given: Any) -> Preprocessing:
    """Images are resized so that the crop is the stated share of them."""
    channels, high, wide = _get(given, "input_size")
    share = float(_get(given, "crop_pct", 0.875))
    squashed = _get(given, "crop_mode", "center") == "squash" or high != wide
    size = (
        (math.floor(high / share), math.floor(wide / share))
        if squashed
        else math.floor(high / share)
    )
    return Preprocessing(
        size,
        (high, wide),
        tuple(_get(given, "mean")),
        tuple(_get(given, "std")),
        _interpolation(_get(given, "interpolation", "bicubic")),
        "grey" if channels == 1 else "rgb",
    )


def _from_torchvision(given: Any) -> Preprocessing:
    way = _get(given, "interpolation", "bilinear")
    return Preprocessing(
        _one_or_two(_get(given, "resize_size")),
        _one_or_two(_get(given, "crop_size")),
        tuple(_get(given, "mean")),
        tuple(_get(given, "std")),
        _interpolation(getattr(way, "value", way)),
        antialias=_get(given, "antialias", True) is not False,
    )


def _from_hugging_face(given: Any) -> Preprocessing:
    size = _sides(_get(given, "size")) if _get(given, "do_resize", True) else None
    crop = _sides(_get(given, "crop_size")) if _get(given, "do_center_crop", False) else None
    share = _get(given, "crop_pct")
    if share and isinstance(size, int):  # as ConvNeXt says it
        size, crop = (int(size / share), size) if size < 384 else ((size, size), None)
    factor = float(_get(given, "rescale_factor", 1 / 255))
    normal = _get(given, "do_normalize", True)
    way = _get(given, "resample", 2)
    return Preprocessing(
        size,
        crop,
        tuple(_get(given, "image_mean")) if normal else 0.0,
        tuple(_get(given, "image_std")) if normal else 1.0,
        _interpolation(_RESAMPLE.get(int(way), str(way))),
        scale=255 * (factor if _get(given, "do_rescale", True) else 1.0),
    )


def _sides(size: Any) -> int | tuple[int, int] | None:
    """A size of Hugging Face: a number, a shortest edge, or height and width."""
    if size is None or isinstance(size, int):
        return size
    if _get(size, "height") is not None:
        return int(_get(size, "height")), int(_get(size, "width"))
    if _get(size, "shortest_edge") is not None:
        return int(_get(size, "shortest_edge"))
    raise InputError(f"preprocessing: size={size!r} is not understood: give a Preprocessing.")


def _one_or_two(value: Any) -> int | tuple[int, int]:
    """Torchvision writes [256] for the shorter side."""
    sides = (value,) if isinstance(value, int) else tuple(int(v) for v in value)
    return sides[0] if len(sides) == 1 else (sides[0], sides[1])


def _interpolation(name: Any) -> str:
    if name not in INTERPOLATIONS:
        raise InputError(
            f"preprocessing: interpolation={name!r} is not known: give a Preprocessing with one "
            f"of {', '.join(INTERPOLATIONS)}."
        )
    return str(name)
