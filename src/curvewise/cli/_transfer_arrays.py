"""Arrays of targets and of losses in, for ``curvewise transfer blind`` and ``wins``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from curvewise.cli._console import UsageError, note
from curvewise.cli._files import STDIN

if TYPE_CHECKING:
    from numpy.typing import NDArray


def read_array(
    file: str | Path, keys: Sequence[str] = (), several: Literal["outputs", "runs"] = "outputs"
) -> NDArray[Any]:
    """Read the array of a file; of several the one that ``keys`` names, or several together.

    Parameters
    ----------
    file : path
        ``.npy``, ``.npz``, ``.safetensors``, ``.csv``, ``.txt`` or ``.json``.
    keys : sequence of str
        Arrays or columns.
    several : {"outputs", "runs"}
        What more than one are: outputs of each example, or runs on the same examples.
    """
    import numpy as np

    from curvewise.io._files import as_path
    from curvewise.io._table import listed, suggest
    from curvewise.io._vectors import read_named

    if str(file) == STDIN:
        raise UsageError("Arrays are read from a file, not from stdin.")
    path = as_path(file)
    names, get = read_named(path)
    for key in keys:
        if key not in names:
            raise UsageError(
                f"--key {key!r} is not in {path.name}.{suggest(key, names)} It has {listed(names)}."
            )
    chosen = list(keys) or list(names)
    what = "runs" if several == "runs" else "the outputs of each example"
    if len(chosen) > 1 and not keys:
        raise UsageError(
            f"{path.name} holds {listed(names)}: choose with --key; several, such as --key "
            f"{','.join(names[:2])}, are {what}."
        )
    arrays = [get(name) for name in chosen]
    if any(array.shape != arrays[0].shape for array in arrays):
        raise UsageError(f"--key {','.join(keys)}: these differ in shape.")
    found: NDArray[Any] = (
        arrays[0] if len(arrays) == 1 else np.stack(arrays, axis=several == "outputs")
    )
    name = f" ({', '.join(chosen)})" if any(chosen) else ""
    note(f"{path.name}{name}: {' × '.join(map(str, found.shape))} {found.dtype.name}")
    return found


def ignored(word: str | None) -> Any:
    """What marks an element without target: a number, NaN, or a text."""
    if word is None:
        return None
    try:
        value = float(word)
    except ValueError:
        return word
    return int(value) if value.is_integer() else value
