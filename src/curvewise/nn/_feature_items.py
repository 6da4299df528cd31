"""One example of a dataset: its input as an array, its label."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError


def is_torch(value: Any, kind: str, module: str = "torch") -> bool:
    """Whether a value is of a class of torch, which was imported by whoever made it.

    >>> is_torch(np.zeros(3), "Tensor")
    False
    """
    package = sys.modules.get(module)
    return package is not None and isinstance(value, getattr(package, kind))


def is_network(value: Any) -> bool:
    """Whether a value is a module of torch."""
    return is_torch(value, "Module", "torch.nn")


def kind_of_numbers(value: Any) -> str:
    """Name of the type of an array's or tensor's numbers.

    >>> kind_of_numbers(np.zeros(3, np.uint8))
    'uint8'
    """
    return str(value.dtype).removeprefix("torch.")


def as_array(value: Any) -> NDArray[Any]:
    """On the CPU: bytes and tokens as they are, other numbers as float32."""
    if is_torch(value, "Tensor"):
        value = value.detach().cpu()
        value = (value.float() if value.is_floating_point() else value).numpy()
    found = np.array(value)
    if found.dtype in (np.uint8, np.float32):
        return found
    return found.astype(np.float32 if found.dtype.kind in "fb" else np.int64)


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


def pixels_of(item: Any) -> NDArray[np.uint8]:
    """A picture of Pillow as bytes, channels first."""
    if item.mode in ("I", "F") or item.mode.startswith("I;"):
        raise InputError(
            f"data has a picture of mode {item.mode!r}, more than 8 bits: bring its values to "
            "0…255 and convert it to mode 'L' first."
        )
    grey = item.mode in ("1", "L", "LA", "La")
    found: NDArray[np.uint8] = np.array(item.convert("L" if grey else "RGB"))
    return found[None] if grey else np.moveaxis(found, -1, 0)


def layout_of(shape: tuple[int, ...]) -> str:
    """Where images have their channels, or an error where either is possible."""
    first, last = shape[1] in (1, 3), shape[-1] in (1, 3)
    if first == last:
        raise InputError(
            f"data has images of shape {shape[1:]}, and it cannot be told where their channels "
            "are: pass layout='first' or layout='last', with 1 or 3 channels."
        )
    return "first" if first else "last"
