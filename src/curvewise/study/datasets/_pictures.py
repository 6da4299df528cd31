"""Decode pictures with Pillow, several at a time."""

from __future__ import annotations

import importlib
import io
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, MissingDependencyError

GREY_MODES = ("1", "L", "LA", "I", "I;16", "F")
AT_ONCE = 8
"""Threads at most; Pillow decodes without holding the interpreter."""

BATCH = 32  # pictures to a task: small ones are decoded faster than a task is handed over
WAITING = 1024  # pictures that may wait, decoded, to be stored


def pillow(purpose: str) -> Any:
    """Pillow's Image module, or an error that says what it was wanted for."""
    try:
        return importlib.import_module("PIL.Image")
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f'{purpose} needs Pillow, which is not installed: pip install "curvewise[images]".'
        ) from error


def decode(source: Path | bytes, size: tuple[int, int] | None, channels: int) -> NDArray[np.uint8]:
    """One picture as (channels, height, width); upright, and cut to the size if there is one.

    Raises
    ------
    ValueError
        If it cannot be decoded.
    """
    image = pillow("Reading pictures")
    ops = importlib.import_module("PIL.ImageOps")
    try:
        with image.open(io.BytesIO(source) if isinstance(source, bytes) else source) as opened:
            opened.load()
            return picture_array(ops.exif_transpose(opened), size, channels)
    except (OSError, SyntaxError, ValueError, EOFError, image.DecompressionBombError) as error:
        raise ValueError(str(error).splitlines()[0] if str(error) else repr(error)) from error


def picture_array(picture: Any, size: tuple[int, int] | None, channels: int) -> NDArray[np.uint8]:
    """A picture of Pillow as (channels, height, width) bytes.

    With a size, it is scaled until it covers it, proportions kept, and the middle is cut out.
    """
    ops = importlib.import_module("PIL.ImageOps")
    plain = _eight_bits(picture).convert("L" if channels == 1 else "RGB")
    if size is not None and plain.size != (size[1], size[0]):
        plain = ops.fit(plain, (size[1], size[0]), method=pillow("Resizing").Resampling.BILINEAR)
    array = np.asarray(plain, dtype=np.uint8)
    return array[None] if channels == 1 else np.moveaxis(array, 2, 0)


def _eight_bits(picture: Any) -> Any:
    """Pillow cuts sixteen bits off at 255 instead of scaling them."""
    if picture.mode in ("I", "I;16", "I;16B", "I;16L"):
        values = np.asarray(picture).astype(np.int64)
        return pillow("Scaling").fromarray((np.clip(values, 0, 65535) >> 8).astype(np.uint8))
    return picture


def decode_all(
    sources: Sequence[Any], one: Callable[[Any], NDArray[np.uint8]], name: Callable[[int], str]
) -> NDArray[np.uint8]:
    """Decode many pictures of one size into one array; ``name`` says how to call one of them."""
    out: NDArray[np.uint8] | None = None
    for i, picture in enumerate(in_threads(one, sources)):
        if isinstance(picture, ValueError):
            raise InputError(
                f"{name(i)} is not a whole picture ({picture}): remove or replace it, or use "
                "data.on_error='skip' for pictures in folders."
            ) from picture
        if out is None:
            out = np.empty((len(sources), *picture.shape), dtype=np.uint8)
        if picture.shape != out.shape[1:]:
            (_, h, w), (_, h0, w0) = picture.shape, out.shape[1:]
            raise InputError(
                f"{name(i)} is {h} × {w} pixels and {name(0)} {h0} × {w0}: bring all to one size, "
                "such as data.size=32."
            )
        out[i] = picture
    assert out is not None
    return out


def in_threads(
    one: Callable[[Any], NDArray[np.uint8]], sources: Sequence[Any]
) -> Iterable[NDArray[np.uint8] | ValueError]:
    """Decode with threads, in order; a picture that fails gives its error."""

    def tried(few: Sequence[Any]) -> list[NDArray[np.uint8] | ValueError]:
        out: list[NDArray[np.uint8] | ValueError] = []
        for source in few:
            try:
                out.append(one(source))
            except ValueError as error:
                out.append(error)
        return out

    with ThreadPoolExecutor(min(AT_ONCE, os.cpu_count() or 1)) as pool:
        for first in range(0, len(sources), WAITING):
            here = sources[first : first + WAITING]
            batches = [here[i : i + BATCH] for i in range(0, len(here), BATCH)]
            for batch in pool.map(tried, batches):
                yield from batch
