"""Open a checkpoint of any format: a network, a function, or stored features."""

from __future__ import annotations

import zipfile
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, MissingDependencyError
from curvewise.nn.files.kinds import kind_of
from curvewise.ranking.networks.checkpoints import (
    OUTPUT,
    Checkpoint,
    InputBatch,
    LayerChoice,
    LayerOutputs,
    Reader,
    as_rows,
    pooled,
)
from curvewise.ranking.networks.preprocessing import Prepare, is_network, is_torch
from curvewise.ranking.networks.runtimes import OnnxReader, TfliteReader
from curvewise.reading.arrays import map_npy, named_arrays
from curvewise.reading.files import large_files

# Bytes that the arrays of one archive may have: far more than is ever put into one. A file of one array is mapped.
_UNPACKED = 2**34


def open_reader(checkpoint: Checkpoint, shape: tuple[int, ...], device: str | None, precision: str) -> Reader:
    """Load a checkpoint.

    Parameters
    ----------
    checkpoint : Checkpoint
        A network or function, not features.
    shape : tuple of int
        Shape of one input after preprocessing, as far as that is known.
    device : str, optional
        Device that it runs on; a network in memory stays where it is by default.
    precision : str
        Precision that torch computes in.
    """
    taken = LayerChoice(checkpoint.layer, checkpoint.pool)
    path = checkpoint.path
    if path is not None and path.is_dir():
        return cast(Reader, _networks(path).from_folder(path, taken, device, precision))
    if path is not None:
        if path.is_file():
            with open(path, "rb") as stream:
                head = stream.read(8)
            if head[4:] == b"TFL3":
                return TfliteReader(path, taken)
        kind = kind_of(path)
        if kind == "onnx":
            return OnnxReader(path, taken, device)
        return cast(Reader, _networks(path).from_file(checkpoint, path, kind, taken, shape, device, precision))
    if is_network(checkpoint.source):
        from curvewise.ranking.networks.modules import from_module

        return from_module(checkpoint.source, taken, device, precision)
    return FunctionReader(checkpoint.source, taken)


def _networks(path: Path) -> Any:
    """Return the module that opens networks of torch; ONNX and TensorFlow Lite do without it."""
    try:
        from curvewise.ranking.networks import modules as _feature_networks
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingDependencyError(
            f'Reading {path} needs torch, which is not installed: pip install "curvewise[torch]".'
        ) from error
    return _feature_networks


def stored_features(checkpoint: Checkpoint) -> tuple[NDArray[Any], NDArray[Any] | None] | None:
    """Return the features and probabilities that a checkpoint holds instead of a network; None for a network."""
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
        sizes = {}
        if head.startswith(b"PK\x03\x04"):
            with zipfile.ZipFile(path) as archive:
                sizes = {about.filename: about.file_size for about in archive.infolist()}
        if any(name.endswith(".npy") for name in sizes):
            if sum(sizes.values()) > _UNPACKED:
                raise ValueError(f"unpacked it would take {sum(sizes.values()) / 2**30:,.0f} GiB of memory")
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


def _picked(arrays: dict[str, NDArray[Any]], path: Path) -> tuple[NDArray[Any], NDArray[Any] | None]:
    if "features" not in arrays and len(arrays) != 1:
        raise InputError(
            f"{path} holds {', '.join(arrays)}: call the matrix of features 'features' (and its "
            "own classes' probabilities 'probabilities')."
        )
    found = arrays.get("features", next(iter(arrays.values())))
    return found, arrays.get("probabilities")


class FunctionReader:
    """A function of the user's from a batch to features, or to (features, probabilities)."""

    def __init__(self, function: Any, taken: LayerChoice) -> None:
        self.function, self.taken = function, taken
        self.notes: list[str] = []
        self.parameters: int | None = None
        self.preprocessing: Prepare | None = None
        self.sides: tuple[int, int] | None = None
        self.most: int | None = None
        if taken.layer not in (None, OUTPUT):
            raise InputError(
                "a function has no layers. Let it give those features.", argument="layer", value=taken.layer
            )

    def running(self) -> AbstractContextManager[None]:
        """Nothing has to be put back."""
        return nullcontext()

    def start(self, given: InputBatch) -> None:
        """Nothing has to be found."""

    def read(self, given: InputBatch) -> LayerOutputs:
        """Call the function, with arrays."""
        found = self.function(given.x)
        values, own = found if isinstance(found, tuple) and len(found) == 2 else (found, None)
        rows = as_rows(values)
        if rows.ndim < 1 or len(rows) != len(given):
            raise InputError(
                f"the function gave shape {rows.shape} for {len(given)} examples: it must give a row for each."
            )
        rows = pooled(rows, self.taken.pool, last=rows.ndim == 3)
        return LayerOutputs({OUTPUT: rows}, None if own is None else as_rows(own))

    def gflops(self, given: InputBatch) -> float | None:
        """Not known."""
        return None

    def digest(self) -> str | None:
        """Not known: what a function does can change without a sign."""
        return None
