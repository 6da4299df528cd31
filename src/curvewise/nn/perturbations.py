"""Perturbations of images, by name and magnitude: how far off, in which direction, of what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from curvewise.errors import InputError
from curvewise.io._table import brief, listed, suggest
from curvewise.nn import _image_changes as changes
from curvewise.nn._image_changes import Draw

INTERPOLATIONS = ("bilinear", "nearest")
AT_ONCE = 1024
"""Images that :func:`perturb` has in work at a time."""


@dataclass(frozen=True)
class Perturbation:
    """A family of changes to an image; magnitude 0 changes nothing.

    Attributes
    ----------
    name, unit : str
        What it is called and what magnitudes are measured in.
    low, high : float
        The magnitudes that it takes. Where ``low`` is negative the sign is a direction.
    change : callable
        ``(x, magnitude, draw)`` with x of shape (B, C, H, W) from 0 to 1 and magnitudes of shape
        (B,); its result is clipped to 0 to 1.
    coloured : bool
        Whether it needs three channels.
    """

    name: str
    unit: str
    low: float
    high: float
    change: Callable[[Tensor, Tensor, Draw], Tensor]
    coloured: bool = False

    def apply(
        self,
        x: Tensor,
        magnitude: float | Tensor,
        seed: int = 0,
        *,
        first: int = 0,
        fill: float = 0.0,
        interpolation: str = "bilinear",
    ) -> Tensor:
        """Perturb a batch of images, on the device it is on.

        Parameters
        ----------
        x : Tensor, shape (B, C, H, W)
            uint8, or floating point from 0 to 1; the result is of the same kind.
        magnitude : float, or Tensor of shape (B,)
            One for all, or one for each image.
        seed : int
            Decides noise and places. Together with ``first`` it fully determines the result.
        first : int
            Position of the first image among all examples: parts of a batch with their positions
            get the same noise as the whole.
        fill : float
            Value from 0 to 1 of what comes in from outside the image, or is cut out.
        interpolation : {"bilinear", "nearest"}
            For what moves pixels by parts of a pixel.

        Returns
        -------
        Tensor
            As x.

        Examples
        --------
        >>> x = torch.tensor([[[[0, 100, 200]]]], dtype=torch.uint8)
        >>> PERTURBATIONS["shift-x"].apply(x, 1 / 3).tolist()
        [[[[0, 0, 100]]]]
        """
        images = _as_fractions(x, self)
        magnitudes = self._magnitudes(magnitude, images)
        if interpolation not in INTERPOLATIONS:
            raise InputError(f"interpolation={interpolation!r}: use {listed(INTERPOLATIONS)}.")
        if not 0 <= fill <= 1:
            raise InputError(f"fill={fill!r}: give a value from 0 (black) to 1 (white).")
        draw = Draw(
            torch.tensor(seed, dtype=torch.int64, device=x.device),
            torch.arange(first, first + len(x), device=x.device),
            fill,
            interpolation,
        )
        still = (magnitudes == 0)[:, None, None, None]
        changed = self.change(images, magnitudes, draw).clamp(0, 1)
        changed = torch.where(still, images, changed)  # resampling by nothing would leave a trace
        return changed if x.is_floating_point() else (changed * 255).round().to(torch.uint8)

    def check(self, magnitude: Any, channels: int) -> None:
        """Refuse a magnitude out of range, or images without colours where they are needed."""
        number = isinstance(magnitude, int | float) and not isinstance(magnitude, bool)
        if not number or not self.low <= magnitude <= self.high:
            raise InputError(
                f"magnitude={brief(magnitude)} of {self.name!r}: give {self.unit} from "
                f"{self.low:g} to {self.high:g}."
            )
        if self.coloured and channels != 3:
            raise InputError(
                f"perturbation={self.name!r} is for colours; these images have {channels} "
                f"channel{'' if channels == 1 else 's'}, not 3."
            )

    def _magnitudes(self, magnitude: float | Tensor, images: Tensor) -> Tensor:
        if not isinstance(magnitude, Tensor):
            self.check(magnitude, images.shape[1])
            return images.new_full((len(images),), float(magnitude))
        if magnitude.ndim and magnitude.shape != (len(images),):
            raise InputError(
                f"magnitude has shape {tuple(magnitude.shape)}: give one number, or one for each "
                f"of the {len(images)} images."
            )
        self.check(float(magnitude.min()), images.shape[1])
        self.check(float(magnitude.max()), images.shape[1])
        return magnitude.to(images).expand(len(images))


def perturb(x: NDArray[np.uint8], name: str, magnitude: float, seed: int = 0) -> NDArray[np.uint8]:
    """Perturb images in an array; the same ones whatever else is perturbed.

    Parameters
    ----------
    x : ndarray of uint8, shape (examples, channels, height, width)
        Images.
    name : str
        One of :data:`PERTURBATIONS`.
    magnitude : float
        In its unit; 0 changes nothing.
    seed : int
        Decides noise and places.

    Examples
    --------
    >>> x = np.full((2, 1, 4, 4), 100, dtype=np.uint8)
    >>> perturb(x, "brightness", 0.2)[0, 0, 0].tolist()
    [151, 151, 151, 151]
    """
    if x.ndim != 4 or x.dtype != np.uint8:
        raise InputError(
            f"x holds {x.dtype} of shape {x.shape}: give images of uint8, (examples, channels, "
            "height, width)."
        )
    check_perturbation(name, magnitude, x.shape[1])
    out = np.empty_like(x)
    for first in range(0, len(x), AT_ONCE):
        here = torch.from_numpy(np.array(x[first : first + AT_ONCE]))
        changed = PERTURBATIONS[name].apply(here, magnitude, seed, first=first)
        out[first : first + AT_ONCE] = changed.numpy()
    return out


def check_perturbation(name: str, magnitude: Any, channels: int) -> None:
    """Refuse a perturbation that is not known, or cannot be applied so to such images."""
    if name not in PERTURBATIONS:
        raise InputError(
            f"perturbation={brief(name)} is not known: use one of {listed(PERTURBATIONS)}."
            f"{suggest(name, PERTURBATIONS)}"
        )
    PERTURBATIONS[name].check(magnitude, channels)


def _as_fractions(x: Tensor, perturbation: Perturbation) -> Tensor:
    if x.ndim != 4 or not (x.dtype == torch.uint8 or x.is_floating_point()):
        raise InputError(
            f"x holds {x.dtype} of shape {tuple(x.shape)}: give images of uint8 or floating point, "
            "(batch, channels, height, width)."
        )
    if perturbation.coloured and x.shape[1] != 3:
        perturbation.check(0.0, x.shape[1])
    return x if x.is_floating_point() else x.to(torch.float32) / 255


PERTURBATIONS = {
    p.name: p
    for p in (
        Perturbation("rotation", "degrees counter-clockwise", -180, 180, changes.rotated),
        Perturbation("shift-x", "shares of the width to the right", -1, 1, changes.shifted_right),
        Perturbation("shift-y", "shares of the height downwards", -1, 1, changes.shifted_down),
        Perturbation("brightness", "shares of the whole range added", -1, 1, changes.brighter),
        Perturbation("contrast", "shares of the contrast added", -1, 10, changes.contrasted),
        Perturbation(
            "saturation", "shares of the saturation added", -1, 10, changes.saturated, True
        ),
        Perturbation("hue", "turns of the colour wheel", -0.5, 0.5, changes.hued, True),
        Perturbation("colour", "shares of all four", -0.5, 0.5, changes.recoloured, True),
        Perturbation(
            "noise", "standard deviations of noise, 1 the whole range", -1, 1, changes.noisy
        ),
        Perturbation("blur", "pixels of standard deviation", 0, changes.BLUR, changes.blurred),
        Perturbation("cutout", "shares of height and width", 0, 1, changes.cut_out),
        Perturbation("intensity", "shares of the values added", -1, 10, changes.scaled),
    )
}
"""Perturbations by name."""
