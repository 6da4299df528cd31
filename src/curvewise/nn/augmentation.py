"""Augmentation on the device, as a function of a seed, an epoch and an example.

What an example looks like in an epoch depends on nothing else: not on the batch it is in, not on
the device, not on what was drawn before. Shapes are static and nothing is asked of the host, so
that it can be compiled and captured in a CUDA graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import groupby

from torch import Tensor

from curvewise.errors import InputError
from curvewise.nn._augmenting import Chance, Change, add_noise, jitter_colour, move_pixels, warp

Augmentation = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
Family = Callable[[Tensor, list[Change], Chance, Tensor], Tensor]

AUGMENTATIONS: dict[str, str] = {
    "flip": "left to right, for half of the examples",
    "translate": "by whole pixels, up to that many along each axis; 'translate:2'",
    "crop": "out of the image padded by that many reflected pixels; 'crop:4'",
    "cutout": "a square of that side, wholly inside the image; 'cutout:12'",
    "rotation": "by up to that many degrees either way; 'rotation:30'",
    "shift-x": "sideways by up to that share of the width either way; 'shift-x:0.5'",
    "shift-y": "up or down by up to that share of the height; 'shift-y:0.5'",
    "colour": "brightness, contrast, saturation and hue by up to that share; 'colour:0.25'",
    "noise": "normal, of that standard deviation on the scale 0 to 1; 'noise:0.1'",
}
"""What there is, and what its number means."""

_MOVES = ("flip", "translate", "crop", "cutout")
_WARPS = ("rotation", "shift-x", "shift-y")
_LARGEST = {"rotation": 180.0, "shift-x": 1.0, "shift-y": 1.0, "colour": 0.5, "noise": math.inf}
_DRAWS = 16  # numbers of draws that belong to one augmentation
_AGAIN = 1024  # how far on they start where it is asked for a second time


def make_augmentation(specs: tuple[str, ...], shape: tuple[int, ...]) -> Augmentation:
    """Make a function that augments a batch of images.

    The augmentations are applied in the order given. Neighbours that move pixels (flip,
    translate, crop, cutout) become one look-up, neighbours that interpolate (rotation and
    shifts) one resampling. Two trainings that differ in one augmentation draw the same numbers
    for the others.

    Parameters
    ----------
    specs : tuple of str
        Names of :data:`AUGMENTATIONS`, with a number after a colon; empty for none.
    shape : tuple of int
        (channels, height, width).

    Returns
    -------
    callable
        Of images (examples, channels, height, width) on the scale 0 to 1, a seed (0-dim int64),
        the epoch and the index of each example (int64), and a fill for each channel, which
        stands where an image has no pixel; gives the augmented images.

    Raises
    ------
    InputError
        A specification is not known, or does not fit images of this shape.

    Examples
    --------
    >>> import torch
    >>> flip = make_augmentation(("flip",), (1, 1, 3))
    >>> x = torch.tensor([0.0, 0.1, 0.2]).expand(4, 1, 1, 3)
    >>> epoch, example = torch.zeros(4, dtype=torch.int64), torch.arange(4)
    >>> flip(x, torch.tensor(0), epoch, example, torch.zeros(1))[:, 0, 0, 0]
    tensor([0.2000, 0.0000, 0.0000, 0.2000])
    """
    if not specs:
        return lambda x, seed, epoch, example, fill: x
    if len(shape) != 3:
        raise InputError(
            f"augmentation={list(specs)} is for images, (channels, height, width); one input has "
            f"shape {tuple(shape)}: leave it out."
        )
    changes = _parsed(specs, (shape[0], shape[1], shape[2]))
    groups = [(family, list(steps)) for family, steps in groupby(changes, key=_family)]

    def augment(x: Tensor, seed: Tensor, epoch: Tensor, example: Tensor, fill: Tensor) -> Tensor:
        chance = Chance(seed, epoch, example)
        for family, steps in groups:
            x = family(x, steps, chance, fill)
        return x

    return augment


def _family(change: Change) -> Family:
    if change.kind in _MOVES:
        return move_pixels
    if change.kind in _WARPS:
        return warp
    return jitter_colour if change.kind == "colour" else add_noise


def _parsed(specs: tuple[str, ...], shape: tuple[int, int, int]) -> list[Change]:
    """Specifications as changes, each with numbers of draws of its own."""
    changes: list[Change] = []
    for spec in specs:
        kind, colon, text = str(spec).partition(":")
        if kind not in AUGMENTATIONS:
            known = "; ".join(f"{name}: {meaning}" for name, meaning in AUGMENTATIONS.items())
            raise InputError(f"augmentation={spec!r} is not known. There are: {known}.")
        amount = _amount(spec, kind, text if colon else None, shape)
        repeats = sum(c.kind == kind for c in changes)
        first = _DRAWS * list(AUGMENTATIONS).index(kind) + _AGAIN * repeats
        changes.append(Change(kind, amount, first))
    return changes


def _amount(spec: str, kind: str, text: str | None, shape: tuple[int, int, int]) -> float:
    if kind == "flip":
        if text is not None:
            raise InputError(f"augmentation={spec!r}: 'flip' takes no number.")
        return 0.0
    whole = kind in _MOVES
    side = min(shape[1:])
    largest = side if kind == "cutout" else side - 1 if whole else _LARGEST[kind]
    try:
        value = float(int(text or "")) if whole else float(text or "")
    except ValueError:
        value = math.nan
    if not 0 <= value <= largest or math.isinf(value):
        number = "whole number" if whole else "number"
        bound = "" if math.isinf(largest) else f" to {largest:g}"
        raise InputError(
            f"augmentation={spec!r}: give a {number} from 0{bound} after the colon for images of "
            f"{shape[1]}×{shape[2]} ({AUGMENTATIONS[kind]})."
        )
    return value
