"""One example of a dataset: its input as a tensor, its label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from curvewise.errors import InputError


def as_tensor(value: Any) -> Tensor:
    """On the CPU: bytes and tokens as they are, other numbers as float32."""
    found = value.cpu() if isinstance(value, Tensor) else torch.from_numpy(np.array(value))
    if found.dtype in (torch.uint8, torch.float32):
        return found
    if found.is_floating_point() or found.dtype == torch.bool:
        return found.to(torch.float32)
    return found.to(torch.int64)


def pair_of(item: Any) -> tuple[Any, Any]:
    """Input and label of one example of a dataset."""
    if isinstance(item, Mapping):
        raise InputError(
            f"data gives a dict with {', '.join(map(str, item))} for each example: give (input, "
            "label), such as with a Dataset that picks them."
        )
    if isinstance(item, tuple | list) and len(item) >= 2:
        return item[0], item[1]
    return item, None


def is_picture(item: Any) -> bool:
    """Whether something is a picture of Pillow."""
    return hasattr(item, "getbands") and hasattr(item, "convert")


def pixels_of(item: Any) -> Tensor:
    """A picture of Pillow as bytes, channels first."""
    if item.mode in ("I", "F") or item.mode.startswith("I;"):
        raise InputError(
            f"data has a picture of mode {item.mode!r}, more than 8 bits: bring its values to "
            "0…255 and convert it to mode 'L' first."
        )
    grey = item.mode in ("1", "L", "LA", "La")
    found = torch.from_numpy(np.array(item.convert("L" if grey else "RGB")))
    return found[None] if grey else found.movedim(-1, 0)


def layout_of(shape: tuple[int, ...]) -> str:
    """Where images have their channels, or an error where either is possible."""
    first, last = shape[1] in (1, 3), shape[-1] in (1, 3)
    if first == last:
        raise InputError(
            f"data has images of shape {shape[1:]}, and it cannot be told where their channels "
            "are: pass layout='first' or layout='last', with 1 or 3 channels."
        )
    return "first" if first else "last"
