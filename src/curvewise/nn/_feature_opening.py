"""From a checkpoint to something that reads features: what it is decides how."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from curvewise.errors import InputError
from curvewise.nn._feature_onnx import OnnxReader
from curvewise.nn._feature_reader import OUTPUT, Found, Given, Reader, Taken, as_rows
from curvewise.nn._feature_script import ScriptReader, is_script
from curvewise.nn._feature_torch import TorchReader, call_plain
from curvewise.nn._flags import own_generator
from curvewise.nn._foreign import call_hugging_face, hugging_face_encoder, is_hugging_face
from curvewise.nn._guarding import chosen_device
from curvewise.nn._own_preprocessing import Prepare, preprocessing_in, preprocessing_of
from curvewise.nn._pooling import pooled
from curvewise.nn._tensors import fill_network, read_tensors
from curvewise.nn._tflite import TfliteReader
from curvewise.nn.checkpoints import Checkpoint
from curvewise.nn.model_files import kind_of, load_model

_UNPACKED = 2**34
"""Bytes that arrays in one archive may have; those of a file of their own are not read at once."""


def open_reader(
    checkpoint: Checkpoint, shape: tuple[int, ...], device: str | None, precision: str
) -> Reader:
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
    if isinstance(checkpoint.source, nn.Module):
        return _from_module(checkpoint.source, taken, device, precision)
    return FunctionReader(checkpoint.source, taken)


def _from_module(
    model: nn.Module,
    taken: Taken,
    device: str | None,
    precision: str,
    preprocessing: Prepare | None = None,
) -> Reader:
    model = getattr(model, "_orig_mod", model)  # inside of torch.compile
    place = chosen_device(model, device)
    own = preprocessing or preprocessing_of(model)
    if is_script(model):
        return ScriptReader(model, taken, place, precision, call_plain, own)
    call = call_hugging_face if is_hugging_face(model) else call_plain
    return TorchReader(model, taken, place, precision, call, own)


def _from_path(
    checkpoint: Checkpoint,
    path: Path,
    taken: Taken,
    shape: tuple[int, ...],
    device: str | None,
    precision: str,
) -> Reader:
    if path.is_dir():
        return _from_module(
            hugging_face_encoder(path), taken, device or _best(), precision, preprocessing_in(path)
        )
    if is_tflite(path):
        return TfliteReader(path, taken)
    kind = kind_of(path)
    if kind == "onnx":
        return OnnxReader(path, taken, device)
    notes: list[str] = []
    if kind in ("safetensors", "torch"):
        model = _weighted(checkpoint, path, kind, shape, notes)
    else:
        inside = kind == "exported" and taken.layer not in (None, OUTPUT)
        layer = taken.layer if inside else None
        file = load_model(path, shape=shape, classes=1, layer=layer, device=device)
        assert isinstance(file.model, nn.Module)
        model, notes = file.model, [*file.notes]
    place = chosen_device(model, device or _best())
    if kind in ("script", "exported") and taken.layer in (None, OUTPUT, "all"):
        reader: Reader = ScriptReader(model, taken, place, precision, file=path)
    elif kind == "exported":
        reader = TorchReader(model, taken, place, precision, file=path)
    else:
        reader = _from_module(model, taken, str(place), precision)
    reader.notes.extend(notes)
    return reader


def _best() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def _weighted(
    checkpoint: Checkpoint, path: Path, kind: str, shape: tuple[int, ...], notes: list[str]
) -> nn.Module:
    """The network of a file of weights, made by a factory."""
    classes, factory = checkpoint.classes, checkpoint.factory
    shape, options = checkpoint.shape or shape, checkpoint.options
    if factory is not None:
        tensors = read_tensors(path, safetensors=kind == "safetensors")
        notes.extend(_unwrapped(path, kind, next(iter(tensors))))
    if classes is None and factory is not None:
        classes = _rows_of_last(tensors)
        notes.append(f"its network was made for {classes} classes, the rows of its last matrix")
    if callable(factory):
        with own_generator():  # its first weights are drawn, and not used
            model: nn.Module = factory(shape, classes, **(options or {}))
        fill_network(model, tensors, path)
        return model
    file = load_model(
        path,
        shape=shape,
        classes=classes or 1,
        factory=factory,
        options=options,
        folder=checkpoint.folder,
    )
    notes.extend(file.notes)
    assert isinstance(file.model, nn.Module)
    return file.model


def _unwrapped(path: Path, kind: str, name: str) -> list[str]:
    """Say what was taken off the names in a file, of which one is known without it."""
    if kind == "safetensors":
        from safetensors import safe_open

        with safe_open(path, "pt") as file:
            levels: list[Any] = [list(file.keys())]
    else:
        content = torch.load(path, map_location="meta", weights_only=True)
        levels = [content, *(inner for inner in content.values() if isinstance(inner, Mapping))]
    names = {str(raw) for level in levels for raw in level}
    before = {raw.removesuffix(name) for raw in names if raw.endswith(f".{name}")}
    if name in names or not before:
        return []
    return [f"{min(before)!r} was taken off the name of every tensor in the file"]


def _rows_of_last(tensors: Mapping[str, Tensor]) -> int:
    """How many rows the last matrix has; convolutions of one pixel count."""
    rows = [
        int(t.shape[0])
        for t in tensors.values()
        if t.ndim >= 2 and all(side == 1 for side in t.shape[2:])
    ]
    return rows[-1] if rows else 1


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
        if isinstance(source, Tensor):
            return source.detach().cpu().numpy(), None
        return (source, None) if isinstance(source, np.ndarray) else None
    if not path.is_file():
        return None
    with open(path, "rb") as stream:
        head = stream.read(9)
    try:
        if head.startswith(b"\x93NUMPY"):
            return np.load(path, mmap_mode="r", allow_pickle=False), None
        if head.startswith(b"PK\x03\x04") and _holds_arrays(path):
            _check_size(path)
            with np.load(path, allow_pickle=False) as archive:
                return _picked({name: archive[name] for name in archive.files}, path)
    except (ValueError, OSError, EOFError, MemoryError, zipfile.BadZipFile) as error:
        raise InputError(
            f"{path} cannot be read ({error}): write features as plain arrays with numpy.save."
        ) from error
    if head[8:] == b"{" and checkpoint.factory is None:
        named = read_tensors(path, safetensors=True)
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


def _picked(
    arrays: dict[str, NDArray[Any]], path: Path
) -> tuple[NDArray[Any], NDArray[Any] | None]:
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
            raise InputError(
                f"layer={taken.layer!r}: a function has no layers. Let it give those features."
            )

    def running(self) -> AbstractContextManager[None]:
        """Nothing has to be put back."""
        return nullcontext()

    def start(self, given: Given) -> None:
        """Nothing has to be found."""

    def read(self, given: Given) -> Found:
        """Call the function, with arrays."""
        x = given.x.numpy() if isinstance(given.x, Tensor) else given.x
        found = self.function(x)
        values, own = found if isinstance(found, tuple) and len(found) == 2 else (found, None)
        tensor = torch.as_tensor(values)
        if tensor.ndim < 1 or len(tensor) != len(given):
            raise InputError(
                f"the function gave shape {tuple(tensor.shape)} for {len(given)} examples: it must "
                "give a row for each."
            )
        rows = as_rows(pooled(tensor, self.taken.pool, last=tensor.ndim == 3))
        return Found({OUTPUT: rows}, None if own is None else as_rows(torch.as_tensor(own)))

    def gflops(self, given: Given) -> float | None:
        """Not known."""
        return None

    def digest(self) -> str | None:
        """Not known: what a function does can change without a sign."""
        return None
