"""Images as a checkpoint takes them: resized, cropped, scaled and normalised, a batch at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.nn._feature_items import is_torch

INTERPOLATIONS = ("nearest", "bilinear", "bicubic")
_CHANNELS = {"rgb": 3, "bgr": 3, "grey": 1}
_LUMA = (0.299, 0.587, 0.114)  # of ITU-R BT.601, as Pillow's mode "L"

_PIXELS = 2**25
"""Values that are resized at a time, at four bytes each."""

Size = int | tuple[int, int]


@dataclass(frozen=True)
class Preprocessing:
    """What is done to pixels before a network is given them.

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
                raise InputError(
                    f"preprocessing: {name}={getattr(self, name)!r}: use one of "
                    f"{', '.join(allowed)}."
                )
        for name in ("mean", "std"):
            put(self, name, self._per_channel(name))
        if min(self._tuple("std")) <= 0:
            raise InputError(f"preprocessing: std={self.std!r}: give numbers above 0.")

    def __call__(self, images: Any) -> Any:
        """Inputs for the network out of pixels of uint8, (n, channels, height, width).

        Arrays become arrays, and tensors of torch tensors on their device. Images of several
        sizes are given as a list.
        """
        tensor = is_torch(images, "Tensor")
        if not tensor and not isinstance(images, np.ndarray):
            return self._joined([self(image[None]) for image in images])
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

    def _joined(self, parts: Sequence[Any]) -> Any:
        shapes = sorted({tuple(part.shape[1:]) for part in parts})
        if len(shapes) > 1:
            raise InputError(
                f"data has images of several sizes, and preprocessing leaves them so ({shapes[0]} "
                f"and {shapes[-1]}): give size=(height, width), or crop= as well."
            )
        return put_together(parts)

    def to_dict(self) -> dict[str, Any]:
        """Its fields."""
        return asdict(self)

    def shape(self, height: int, width: int) -> tuple[int, int, int]:
        """Channels, height and width of what becomes of an image of this size."""
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
        """As many channels as the network takes, in its order."""
        wanted = _CHANNELS[self.channels]
        if x.shape[1] not in (1, 3):
            raise InputError(f"data has images of {x.shape[1]} channels: give 1 (grey) or 3 (RGB).")
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
            down, across = (
                resize_matrix(a, b, *how) for a, b in zip(x.shape[2:], sides, strict=True)
            )
            return np.clip(np.rint(down @ (x @ across.T)), 0, 255)
        from torch.nn.functional import interpolate

        if self.interpolation == "nearest":
            return interpolate(x, sides, mode="nearest-exact")
        found = interpolate(
            x, sides, mode=self.interpolation, align_corners=False, antialias=self.antialias
        )
        return found.round_().clamp_(0, 255)  # pixels again: bicubic goes beyond them

    def _cropped(self, x: Any) -> Any:
        if self.crop is None:
            return x
        high, wide = (self.crop, self.crop) if isinstance(self.crop, int) else self.crop
        if high > x.shape[2] or wide > x.shape[3]:
            raise InputError(
                f"preprocessing: crop={self.crop!r} is larger than images of "
                f"{x.shape[2]} × {x.shape[3]}: give a size to resize them to first."
            )
        top, left = round((x.shape[2] - high) / 2), round((x.shape[3] - wide) / 2)
        return x[:, :, top : top + high, left : left + wide]


@cache
def resize_matrix(
    size: int, wanted: int, interpolation: str, antialias: bool
) -> NDArray[np.float32]:
    """Weights of each pixel along an axis for each one after resizing, shape (wanted, size).

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
    kernel, reach = {"bilinear": (_triangle, 1), "bicubic": (_cubic, 2)}[interpolation]
    if antialias:
        stretch = max(size / wanted, 1.0)
        weights = kernel((np.arange(size) + 0.5 - centre) / stretch, -0.5)
        found = weights / weights.sum(axis=1, keepdims=True)
        return found.astype(np.float32)
    taps = np.floor(centre - 0.5) + np.arange(1 - reach, reach + 1)
    found = np.zeros((wanted, size))
    rows, places = np.arange(wanted)[:, None], taps.clip(0, size - 1).astype(int)
    np.add.at(found, (rows, places), kernel(taps + 0.5 - centre, -0.75))
    return found.astype(np.float32)


def _triangle(distance: NDArray[Any], _: float) -> NDArray[Any]:
    found: NDArray[Any] = np.maximum(1 - np.abs(distance), 0.0)
    return found


def _cubic(distance: NDArray[Any], a: float) -> NDArray[Any]:
    """Keys's cubic convolution; torch and Pillow take −0.5 with antialias, torch −0.75 without."""
    x = np.abs(distance)
    inner, outer = ((a + 2) * x - (a + 3)) * x**2 + 1, a * (((x - 5) * x + 8) * x - 4)
    found: NDArray[Any] = np.where(x < 1, inner, np.where(x < 2, outer, 0.0))
    return found


def _like(x: Any, values: Sequence[float]) -> Any:
    """One value for each channel, of the kind and where images are."""
    column = np.array(values, dtype=np.float32)[:, None, None]
    return x.new_tensor(column) if is_torch(x, "Tensor") else column


def put_together(parts: Sequence[Any]) -> Any:
    """One batch of arrays, or of tensors, out of several."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    import torch

    return torch.cat(list(parts))


def _target(size: Size | None, height: int, width: int) -> tuple[int, int]:
    """Height and width after resizing; an int is the shorter side."""
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
    if len(sides) not in (1, 2) or not all(
        isinstance(s, int) and not isinstance(s, bool) and s > 0 for s in sides
    ):
        raise InputError(
            f"preprocessing: {name}={value!r}: give a whole number (the shorter side) or "
            "(height, width)."
        )
    return sides[0] if len(sides) == 1 else (sides[0], sides[1])
