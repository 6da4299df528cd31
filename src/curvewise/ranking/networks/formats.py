"""From a checkpoint to something that reads features: what it is decides how."""

from __future__ import annotations

import zipfile
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, MissingDependencyError
from curvewise.nn.files.kinds import kind_of
from curvewise.ranking.networks.checkpoints import OUTPUT, Checkpoint, Found, Given, Reader, Taken, as_rows, pooled
from curvewise.ranking.networks.preprocessing import Prepare, is_network, is_torch
from curvewise.ranking.networks.runtimes import OnnxReader, TfliteReader
from curvewise.reading.arrays import map_npy, named_arrays
from curvewise.reading.files import large_files

_UNPACKED = 2**34
"""Bytes that arrays in one archive may have; those of a file of their own are not read at once."""


def open_reader(checkpoint: Checkpoint, shape: tuple[int, ...], device: str | None, precision: str) -> Reader:
    """Load a checkpoint.

    Parameters
    ----------
    checkpoint : Checkpoint
        A network or function, not features.
    shape : tuple of int
        Shape of one input as the network will be given it, as far as that is known.
    device : str, optional
        Where it runs; a network in memory stays where it is by default.
    precision : str
        What torch computes in.
    """
    taken = Taken(checkpoint.layer, checkpoint.pool)
    path = checkpoint.path
    if path is not None:
        return _from_path(checkpoint, path, taken, shape, device, precision)
    if is_network(checkpoint.source):
        from curvewise.ranking.networks.modules import from_module

        return from_module(checkpoint.source, taken, device, precision)
    return FunctionReader(checkpoint.source, taken)


def _from_path(
    checkpoint: Checkpoint, path: Path, taken: Taken, shape: tuple[int, ...], device: str | None, precision: str
) -> Reader:
    if path.is_dir():
        return cast(Reader, _networks(path).from_folder(path, taken, device, precision))
    if is_tflite(path):
        return TfliteReader(path, taken)
    kind = kind_of(path)
    if kind == "onnx":
        return OnnxReader(path, taken, device)
    return cast(Reader, _networks(path).from_file(checkpoint, path, kind, taken, shape, device, precision))


def _networks(path: Path) -> Any:
    """What opens networks of torch; ONNX and TensorFlow Lite do without."""
    try:
        from curvewise.ranking.networks import modules as _feature_networks
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingDependencyError(
            f'Reading {path} needs torch, which is not installed: pip install "curvewise[torch]".'
        ) from error
    return _feature_networks


def is_tflite(path: Path) -> bool:
    """Whether a file is of TensorFlow Lite, by its content."""
    if not path.is_file():
        return False
    with open(path, "rb") as stream:
        return stream.read(8)[4:] == b"TFL3"


def stored_features(checkpoint: Checkpoint) -> tuple[NDArray[Any], NDArray[Any] | None] | None:
    """Features and probabilities that a checkpoint holds instead of a network; None otherwise."""
    source, path = checkpoint.source, checkpoint.path
    if path is None:
        if is_torch(source, "Tensor"):
            return source.detach().cpu().numpy(), None
        return (source, None) if isinstance(source, np.ndarray) else None
    if not path.is_file():
        return None
    with open(path, "rb") as stream:
        head = stream.read(9)
    try:
        if head.startswith(b"\x93NUMPY"):
            return map_npy(path), None
        if head.startswith(b"PK\x03\x04") and _holds_arrays(path):
            _check_size(path)
            names, get = named_arrays(path, "npz")
            with large_files(True):  # up to the size just checked
                return _picked({name: get(name) for name in names}, path)
    except (ValueError, OSError, RuntimeError, MemoryError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} cannot be read ({error}): write features as plain arrays with numpy.save.") from error
    if head[8:] == b"{" and checkpoint.factory is None:
        named = _networks(path).read_tensors(path, safetensors=True)
        if "features" in named:
            return _picked({name: t.float().numpy() for name, t in named.items()}, path)
    return None


def _holds_arrays(path: Path) -> bool:
    with zipfile.ZipFile(path) as archive:
        return any(name.endswith(".npy") for name in archive.namelist())


def _check_size(path: Path) -> None:
    """Refuse what is far larger unpacked than anyone would put into an archive."""
    with zipfile.ZipFile(path) as archive:
        size = sum(about.file_size for about in archive.infolist())
    if size > _UNPACKED:
        raise ValueError(f"unpacked it would take {size / 2**30:,.0f} GiB of memory")


def _picked(arrays: dict[str, NDArray[Any]], path: Path) -> tuple[NDArray[Any], NDArray[Any] | None]:
    if "features" not in arrays and len(arrays) != 1:
        raise InputError(
            f"{path} holds {', '.join(arrays)}: call the matrix of features 'features' (and its "
            "own classes' probabilities 'probabilities')."
        )
    found = arrays.get("features", next(iter(arrays.values())))
    return found, arrays.get("probabilities")


class FunctionReader:
    """A function from a batch to features, or to (features, probabilities)."""

    def __init__(self, function: Any, taken: Taken) -> None:
        self.function, self.taken = function, taken
        self.notes: list[str] = []
        self.parameters: int | None = None
        self.preprocessing: Prepare | None = None
        self.sides: tuple[int, int] | None = None
        self.most: int | None = None
        if taken.layer not in (None, OUTPUT):
            raise InputError(f"layer={taken.layer!r}: a function has no layers. Let it give those features.")

    def running(self) -> AbstractContextManager[None]:
        """Nothing has to be put back."""
        return nullcontext()

    def start(self, given: Given) -> None:
        """Nothing has to be found."""

    def read(self, given: Given) -> Found:
        """Call the function, with arrays."""
        found = self.function(given.x)
        values, own = found if isinstance(found, tuple) and len(found) == 2 else (found, None)
        rows = as_rows(values)
        if rows.ndim < 1 or len(rows) != len(given):
            raise InputError(
                f"the function gave shape {rows.shape} for {len(given)} examples: it must give a row for each."
            )
        rows = pooled(rows, self.taken.pool, last=rows.ndim == 3)
        return Found({OUTPUT: rows}, None if own is None else as_rows(own))

    def gflops(self, given: Given) -> float | None:
        """Not known."""
        return None

    def digest(self) -> str | None:
        """Not known: what a function does can change without a sign."""
        return None
