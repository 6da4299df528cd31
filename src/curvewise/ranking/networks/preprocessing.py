"""Preprocessing of images for a checkpoint, in any of its forms, and the types of the examples it is for."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, arg

INTERPOLATIONS = ("nearest", "bilinear", "bicubic")
_CHANNELS = {"rgb": 3, "bgr": 3, "grey": 1}
# Weights of red, green and blue in ITU-R BT.601, as in Pillow's mode "L".
_LUMA = (0.299, 0.587, 0.114)
# Values that are resized at a time, at four bytes each.
_PIXELS = 2**25
Size = int | tuple[int, int]


@dataclass(frozen=True)
class Preprocessing:
    """Preprocessing of pixels before they are given to a network.

    Parameters
    ----------
    size : int or (height, width), optional
        What images are resized to: an int is the shorter side, a pair is taken as it is. They keep
        their size by default.
    crop : int or (height, width), optional
        What is then cut from the centre.
    mean, std : float or sequence of float
        Per channel, or one for all: the network takes (value − mean) / std.
    interpolation : {"bilinear", "bicubic", "nearest"}
        How images are resized.
    channels : {"rgb", "bgr", "grey"}
        What the network takes; grey images are repeated, coloured ones weighted as eyes do.
    scale : float
        Pixels go from 0 to this value before the mean is subtracted; 255 leaves them as they are.
    antialias : bool
        Whether images that shrink are smoothed first, as Pillow does.
    layout : {"first", "last"}
        Where the network has its channels.

    Examples
    --------
    >>> imagenet = Preprocessing(256, 224, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    >>> imagenet(np.zeros((2, 1, 28, 28), np.uint8)).shape
    (2, 3, 224, 224)
    """

    size: Size | None = None
    crop: Size | None = None
    mean: float | tuple[float, ...] = 0.0
    std: float | tuple[float, ...] = 1.0
    interpolation: str = "bilinear"
    channels: str = "rgb"
    scale: float = 1.0
    antialias: bool = True
    layout: str = "first"

    def __post_init__(self) -> None:
        put = object.__setattr__
        for name in ("size", "crop"):
            put(self, name, _as_size(getattr(self, name), name))
        for name, allowed in (
            ("interpolation", INTERPOLATIONS),
            ("channels", tuple(_CHANNELS)),
            ("layout", ("first", "last")),
        ):
            if getattr(self, name) not in allowed:
                problem, given = f"use one of {', '.join(allowed)}.", {name: getattr(self, name)}
                raise InputError(problem, argument="preprocessing", value=given)
        for name in ("mean", "std"):
            put(self, name, self._per_channel(name))
        if min(self._tuple("std")) <= 0:
            raise InputError("give numbers above 0.", argument="preprocessing", value={"std": self.std})

    def __call__(self, images: Any) -> Any:
        """Make inputs for the network from pixels of uint8, (n, channels, height, width).

        Arrays become arrays, and tensors of torch tensors on their device. Images of several
        sizes are given as a list.
        """
        tensor = is_torch(images, "Tensor")
        if not tensor and not isinstance(images, np.ndarray):
            parts = [self(image[None]) for image in images]
            shapes = sorted({tuple(part.shape[1:]) for part in parts})
            if len(shapes) > 1:
                raise InputError(
                    f"has images of several sizes, and preprocessing leaves them so ({shapes[0]} and "
                    f"{shapes[-1]}): give a size of (height, width), or a crop as well.",
                    argument="data",
                )
            return put_together(parts)
        most = max(1, _PIXELS // math.prod(images.shape[1:])) if len(images) else 1
        if len(images) > most:  # photographs are large before they are resized
            starts = range(0, len(images), most)
            return put_together([self(images[first : first + most]) for first in starts])
        x = self._coloured(images.float() if tensor else images.astype(np.float32))
        x = self._cropped(self._resized(x))
        mean, std = (_like(x, self._tuple(name)) for name in ("mean", "std"))
        x = (x * (self.scale / 255) - mean) / std
        if self.layout == "first":
            return x
        return x.movedim(1, -1).contiguous() if tensor else np.moveaxis(x, 1, -1)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dict."""
        return asdict(self)

    def shape(self, height: int, width: int) -> tuple[int, int, int]:
        """Return channels, height and width of an image of this size after preprocessing."""
        sides = self.crop or _target(self.size, height, width)
        high, wide = (sides, sides) if isinstance(sides, int) else sides
        return _CHANNELS[self.channels], high, wide

    def _tuple(self, name: str) -> tuple[float, ...]:
        value = getattr(self, name)
        return value if isinstance(value, tuple) else (value,) * _CHANNELS[self.channels]

    def _per_channel(self, name: str) -> float | tuple[float, ...]:
        value = getattr(self, name)
        if isinstance(value, int | float):
            return float(value)
        values = tuple(float(v) for v in value)
        if len(values) != _CHANNELS[self.channels]:
            raise InputError(
                f"preprocessing: {name} has {len(values)} values, and channels={self.channels!r} "
                f"has {_CHANNELS[self.channels]}: give one for each, or one for all."
            )
        return values

    def _coloured(self, x: Any) -> Any:
        """Return as many channels as the network takes, in its order."""
        wanted = _CHANNELS[self.channels]
        if x.shape[1] not in (1, 3):
            raise InputError(f"has images of {x.shape[1]} channels: give 1 (grey) or 3 (RGB).", argument="data")
        if x.shape[1] == 3 and wanted == 1:
            return (x * _like(x, _LUMA)).sum(1)[:, None]
        if x.shape[1] == 1 and wanted == 3:
            return x[:, [0, 0, 0]]
        return x[:, [2, 1, 0]] if self.channels == "bgr" else x

    def _resized(self, x: Any) -> Any:
        sides = _target(self.size, x.shape[2], x.shape[3])
        if sides == tuple(x.shape[2:]):
            return x
        if not is_torch(x, "Tensor"):
            how = self.interpolation, self.antialias
            down, across = (resize_matrix(a, b, *how) for a, b in zip(x.shape[2:], sides, strict=True))
            return np.clip(np.rint(down @ (x @ across.T)), 0, 255)
        from torch.nn.functional import interpolate

        if self.interpolation == "nearest":
            return interpolate(x, sides, mode="nearest-exact")
        found = interpolate(x, sides, mode=self.interpolation, align_corners=False, antialias=self.antialias)
        return found.round_().clamp_(0, 255)  # pixels again: bicubic goes beyond them

    def _cropped(self, x: Any) -> Any:
        if self.crop is None:
            return x
        high, wide = (self.crop, self.crop) if isinstance(self.crop, int) else self.crop
        if high > x.shape[2] or wide > x.shape[3]:
            raise InputError(
                f"larger than images of {x.shape[2]} × {x.shape[3]}: give a size to resize them to first.",
                argument="preprocessing",
                value={"crop": self.crop},
            )
        top, left = round((x.shape[2] - high) / 2), round((x.shape[3] - wide) / 2)
        return x[:, :, top : top + high, left : left + wide]


@cache
def resize_matrix(size: int, wanted: int, interpolation: str, antialias: bool) -> NDArray[np.float32]:
    """Return the weights of each pixel along an axis for each one after resizing, shape (wanted, size).

    As torch and Pillow have them: with ``antialias``, the kernel is stretched where the image
    shrinks, and cut off at the edges; without, the pixels at the edges are repeated.

    >>> resize_matrix(4, 2, "bilinear", False)
    array([[0.5, 0.5, 0. , 0. ],
           [0. , 0. , 0.5, 0.5]], dtype=float32)
    """
    centre = (np.arange(wanted) + 0.5)[:, None] * (size / wanted)  # in pixels of the original
    if interpolation == "nearest":
        found: NDArray[Any] = np.floor(centre) == np.arange(size)
        return found.astype(np.float32)
    # torch and Pillow take a = −0.5 with antialias, torch −0.75 without.
    if antialias:
        stretch = max(size / wanted, 1.0)
        weights = _kernel(interpolation, (np.arange(size) + 0.5 - centre) / stretch, -0.5)
        found = weights / weights.sum(axis=1, keepdims=True)
        return found.astype(np.float32)
    reach = {"bilinear": 1, "bicubic": 2}[interpolation]
    taps = np.floor(centre - 0.5) + np.arange(1 - reach, reach + 1)
    found = np.zeros((wanted, size))
    rows, places = np.arange(wanted)[:, None], taps.clip(0, size - 1).astype(int)
    np.add.at(found, (rows, places), _kernel(interpolation, taps + 0.5 - centre, -0.75))
    return found.astype(np.float32)


def _kernel(interpolation: str, distance: NDArray[Any], a: float) -> NDArray[Any]:
    """Return the weights at distances in pixels: a triangle, or Keys's cubic with parameter a."""
    x = np.abs(distance)
    if interpolation == "bilinear":
        triangle: NDArray[Any] = np.maximum(1 - x, 0.0)
        return triangle
    inner, outer = ((a + 2) * x - (a + 3)) * x**2 + 1, a * (((x - 5) * x + 8) * x - 4)
    return np.where(x < 1, inner, np.where(x < 2, outer, 0.0))


def _like(x: Any, values: Sequence[float]) -> Any:
    """Return one value for each channel, of the type and on the device of the images."""
    column = np.array(values, dtype=np.float32)[:, None, None]
    return x.new_tensor(column) if is_torch(x, "Tensor") else column


def put_together(parts: Sequence[Any]) -> Any:
    """Join several batches of arrays, or of tensors."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    import torch

    return torch.cat(list(parts))


def _target(size: Size | None, height: int, width: int) -> tuple[int, int]:
    """Return height and width after resizing; an int is the shorter side."""
    if size is None:
        return height, width
    if not isinstance(size, int):
        return size
    if height <= width:
        return size, int(size * width / height)
    return int(size * height / width), size


def _as_size(value: Any, name: str) -> Size | None:
    if value is None:
        return None
    sides = (value,) if isinstance(value, int) else tuple(value)
    if len(sides) not in (1, 2) or not all(isinstance(s, int) and not isinstance(s, bool) and s > 0 for s in sides):
        problem = "give a whole number (the shorter side) or (height, width)."
        raise InputError(problem, argument="preprocessing", value={name: value})
    return sides[0] if len(sides) == 1 else (sides[0], sides[1])


# Preprocessing, or a function from a batch of uint8 to inputs. The batch is a tensor where torch is installed, and an
# array otherwise.
Prepare = Preprocessing | Callable[[Any], Any]
# Pillow's numbers of filters, which Hugging Face writes.
_RESAMPLE = {0: "nearest", 2: "bilinear", 3: "bicubic"}


def as_preprocessing(given: Any) -> Prepare:
    """Read preprocessing in any of its forms.

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
        f"is a {type(given).__name__} that is not understood: give a Preprocessing, weights of torchvision or their "
        "transforms, a configuration of timm, an image processor of Hugging Face, or a function of a batch of pixels.",
        argument="preprocessing",
    )


def preprocessing_of(model: Any) -> Prepare | None:
    """Return the preprocessing that a network of timm specifies; None where there is none."""
    for name in ("pretrained_cfg", "default_cfg"):
        found = getattr(model, name, None)
        if found is not None and not is_torch(found, "Tensor") and _get(found, "input_size"):
            return as_preprocessing(found)
    return None


def preprocessing_in(folder: Path) -> Prepare | None:
    """Return the preprocessing of the image processor in a Hugging Face folder; None where there is none."""
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
    """Read a configuration of timm: images are resized so that the crop is the stated share of them."""
    channels, high, wide = _get(given, "input_size")
    share = float(_get(given, "crop_pct", 0.875))
    squashed = _get(given, "crop_mode", "center") == "squash" or high != wide
    size = (math.floor(high / share), math.floor(wide / share)) if squashed else math.floor(high / share)
    return Preprocessing(
        size,
        (high, wide),
        tuple(_get(given, "mean")),
        tuple(_get(given, "std")),
        _get(given, "interpolation", "bicubic"),
        "grey" if channels == 1 else "rgb",
    )


def _from_torchvision(given: Any) -> Preprocessing:
    way = _get(given, "interpolation", "bilinear")
    return Preprocessing(
        _get(given, "resize_size"),
        _get(given, "crop_size"),
        tuple(_get(given, "mean")),
        tuple(_get(given, "std")),
        getattr(way, "value", way),
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
        _RESAMPLE.get(int(way), str(way)),
        scale=255 * (factor if _get(given, "do_rescale", True) else 1.0),
    )


def _sides(size: Any) -> int | tuple[int, int] | None:
    """Read a size of Hugging Face: a number, a shortest edge, or height and width."""
    if size is None or isinstance(size, int):
        return size
    if _get(size, "height") is not None:
        return int(_get(size, "height")), int(_get(size, "width"))
    if _get(size, "shortest_edge") is not None:
        return int(_get(size, "shortest_edge"))
    raise InputError("not understood: give a Preprocessing.", argument="preprocessing", value={"size": size})


def is_torch(value: Any, kind: str, module: str = "torch") -> bool:
    """Tell if a value is of a class of torch, without importing torch.

    >>> is_torch(np.zeros(3), "Tensor")
    False
    """
    package = sys.modules.get(module)
    return package is not None and isinstance(value, getattr(package, kind))


def is_network(value: Any) -> bool:
    """Tell if a value is a module of torch."""
    return is_torch(value, "Module", "torch.nn")


def as_array(value: Any) -> NDArray[Any]:
    """Return an array in main memory: bytes and tokens as they are, other numbers as float32."""
    if is_torch(value, "Tensor"):
        value = value.detach().cpu()
        value = (value.float() if value.is_floating_point() else value).numpy()
    found = np.array(value)
    if found.dtype in (np.uint8, np.float32):
        return found
    return found.astype(np.float32 if found.dtype.kind in "fb" else np.int64)


def pair_of(item: Any) -> tuple[Any, Any]:
    """Return input and label of one example of a dataset."""
    if isinstance(item, Mapping):
        raise InputError(
            f"gives a dict with {', '.join(map(str, item))} for each example: give (input, "
            "label), such as with a Dataset that picks them.",
            argument="data",
        )
    if isinstance(item, tuple | list) and len(item) >= 2:
        return item[0], item[1]
    return item, None


def is_picture(item: Any) -> bool:
    """Tell if something is a picture of Pillow."""
    return hasattr(item, "getbands") and hasattr(item, "convert")


def pixels_of(item: Any) -> NDArray[np.uint8]:
    """Return a picture of Pillow as bytes, channels first."""
    if item.mode in ("I", "F") or item.mode.startswith("I;"):
        raise InputError(
            f"has a picture of mode {item.mode!r}, more than 8 bits: bring its values to "
            "0…255 and convert it to mode 'L' first.",
            argument="data",
        )
    grey = item.mode in ("1", "L", "LA", "La")
    found: NDArray[np.uint8] = np.array(item.convert("L" if grey else "RGB"))
    return found[None] if grey else np.moveaxis(found, -1, 0)


def layout_of(shape: tuple[int, ...]) -> str:
    """Return the place of the channels of images; raise where either is possible."""
    first, last = shape[1] in (1, 3), shape[-1] in (1, 3)
    if first == last:
        raise InputError(
            f"has images of shape {shape[1:]}, and it cannot be told where their channels are: pass "
            f"{arg('layout', 'first')} or {arg('layout', 'last')}, with 1 or 3 channels.",
            argument="data",
        )
    return "first" if first else "last"
