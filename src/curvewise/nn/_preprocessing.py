"""Images as a checkpoint takes them: resized, cropped, scaled and normalised, a batch at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from curvewise.errors import InputError

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
    >>> imagenet(torch.zeros(2, 1, 28, 28, dtype=torch.uint8)).shape
    torch.Size([2, 3, 224, 224])
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

    def __call__(self, images: Tensor | Sequence[Tensor]) -> Tensor:
        """Inputs for the network out of pixels of uint8, (n, channels, height, width).

        Images of several sizes are given as a list.
        """
        if not isinstance(images, Tensor):
            return self._joined([self(image[None]) for image in images])
        most = max(1, _PIXELS // images[0].numel()) if len(images) else 1
        if len(images) > most:  # photographs are large before they are resized
            starts = range(0, len(images), most)
            return torch.cat([self(images[first : first + most]) for first in starts])
        x = self._coloured(images.to(torch.float32))
        x = self._cropped(self._resized(x))
        mean, std = (torch.tensor(self._tuple(n), device=x.device) for n in ("mean", "std"))
        x = (x * (self.scale / 255) - mean[:, None, None]) / std[:, None, None]
        return x.movedim(1, -1).contiguous() if self.layout == "last" else x

    def _joined(self, parts: list[Tensor]) -> Tensor:
        shapes = sorted({tuple(part.shape[1:]) for part in parts})
        if len(shapes) > 1:
            raise InputError(
                f"data has images of several sizes, and preprocessing leaves them so ({shapes[0]} "
                f"and {shapes[-1]}): give size=(height, width), or crop= as well."
            )
        return torch.cat(parts)

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

    def _coloured(self, x: Tensor) -> Tensor:
        """As many channels as the network takes, in its order."""
        wanted = _CHANNELS[self.channels]
        if x.shape[1] not in (1, 3):
            raise InputError(f"data has images of {x.shape[1]} channels: give 1 (grey) or 3 (RGB).")
        if x.shape[1] == 3 and wanted == 1:
            weights = torch.tensor(_LUMA, device=x.device)[:, None, None]
            return (x * weights).sum(dim=1, keepdim=True)
        if x.shape[1] == 1 and wanted == 3:
            return x.expand(-1, 3, -1, -1)
        return x.flip(1) if self.channels == "bgr" else x

    def _resized(self, x: Tensor) -> Tensor:
        sides = _target(self.size, x.shape[2], x.shape[3])
        if sides == tuple(x.shape[2:]):
            return x
        if self.interpolation == "nearest":
            return interpolate(x, sides, mode="nearest-exact")
        found = interpolate(
            x, sides, mode=self.interpolation, align_corners=False, antialias=self.antialias
        )
        return found.round_().clamp_(0, 255)  # pixels again: bicubic goes beyond them

    def _cropped(self, x: Tensor) -> Tensor:
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
