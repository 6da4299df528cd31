"""From a network of torch, in memory or in a file, to something that reads features."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from curvewise.nn._feature_reader import OUTPUT, Reader, Taken
from curvewise.nn._feature_script import ScriptReader, is_script
from curvewise.nn._feature_torch import TorchReader, call_plain
from curvewise.nn._flags import own_generator
from curvewise.nn._foreign import call_hugging_face, hugging_face_encoder, is_hugging_face
from curvewise.nn._guarding import chosen_device
from curvewise.nn._own_preprocessing import Prepare, preprocessing_in, preprocessing_of
from curvewise.nn._tensors import fill_network, read_tensors
from curvewise.nn.checkpoints import Checkpoint
from curvewise.nn.model_files import load_model


def from_module(
    model: nn.Module,
    taken: Taken,
    device: str | None,
    precision: str,
    preprocessing: Prepare | None = None,
) -> Reader:
    """Have a network in memory read; it stays where it is unless a device is asked for."""
    model = getattr(model, "_orig_mod", model)  # inside of torch.compile
    place = chosen_device(model, device)
    own = preprocessing or preprocessing_of(model)
    if is_script(model):
        return ScriptReader(model, taken, place, precision, call_plain, own)
    call = call_hugging_face if is_hugging_face(model) else call_plain
    return TorchReader(model, taken, place, precision, call, own)


def from_folder(path: Path, taken: Taken, device: str | None, precision: str) -> Reader:
    """Load a network out of a folder of Hugging Face."""
    return from_module(
        hugging_face_encoder(path), taken, device or _best(), precision, preprocessing_in(path)
    )


def from_file(
    checkpoint: Checkpoint,
    path: Path,
    kind: str,
    taken: Taken,
    shape: tuple[int, ...],
    device: str | None,
    precision: str,
) -> Reader:
    """Load an exported program, TorchScript, or weights with what makes their network."""
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
        reader = from_module(model, taken, str(place), precision)
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
