"""Trained networks out of files: exported programs, TorchScript, weights with a factory, ONNX."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from curvewise.errors import InputError
from curvewise.nn._files import kind_of
from curvewise.nn._flags import own_generator
from curvewise.nn._foreign import HuggingFace
from curvewise.nn._onnx import OnnxModel
from curvewise.nn._programs import load_exported, load_script
from curvewise.nn._tensors import fill_network, read_tensors
from curvewise.nn.architectures import make_network
from curvewise.nn.settings import Training

KINDS = {
    "exported": "exported program",
    "script": "TorchScript",
    "safetensors": "weights (safetensors)",
    "torch": "weights (torch.save)",
    "onnx": "ONNX",
}
"""Kinds of files that can be loaded, in words."""


@dataclass(frozen=True, eq=False)
class ModelFile:
    """A trained network from a file.

    Attributes
    ----------
    model : nn.Module or callable
        In evaluation mode, on the CPU unless exported for elsewhere. A network of an ONNX file is
        a plain callable, arrays in and arrays out.
    kind : str
        What the file is, in words.
    path : Path
        The file.
    notes : tuple of str
        What was taken for what.
    """

    model: nn.Module | Callable[[Any], Any]
    kind: str
    path: Path
    notes: tuple[str, ...] = field(default=())


def load_model(
    path: str | os.PathLike[str],
    *,
    shape: tuple[int, ...],
    classes: int,
    factory: str | None = None,
    options: Mapping[str, Any] | None = None,
    layer: str | int | None = None,
    device: str | None = None,
    folder: str | os.PathLike[str] | None = None,
) -> ModelFile:
    """Load a trained network; what the file holds decides how, not how it is called.

    Files with pickled code are refused. An exported program and TorchScript are programs all the
    same: use those that come from people you trust.

    Parameters
    ----------
    path : path
        An ExportedProgram, TorchScript, ONNX, or a state_dict in a file of safetensors or of
        ``torch.save``.
    shape : tuple of int
        Shape of one input.
    classes : int
        How many classes there are.
    factory : str, optional
        What makes the network for a state_dict: ``"module:function"``, called with shape, classes
        and options; a name such as ``"cnn"`` or ``"resnet18"``; ``"timm:NAME"``; ``"hf:FOLDER"``.
    options : dict, optional
        Further options of the factory.
    layer : str or int, optional
        Something inside of the network will be looked at: raise where the file does not allow it.
    device : str, optional
        Where the network will run.
    folder : path, optional
        Where the module of a factory may lie; the current folder by default.

    Raises
    ------
    InputError
        If there is no such file, it is damaged, would run code when it is read, or does not fit.
    MissingDependencyError
        If the file needs a package that is not installed.
    """
    file = Path(path)
    kind = kind_of(file)
    if kind in ("safetensors", "torch"):
        training = _training(file, kind, factory, options)
        tensors = read_tensors(file, safetensors=kind == "safetensors")
        with own_generator():  # its first weights are drawn, and not used
            network = make_network(training, tuple(shape), classes, Path(folder or "."))
        inner = network.network if isinstance(network, HuggingFace) else network
        fill_network(inner, tensors, file)
        return ModelFile(network.eval(), KINDS[kind], file)
    ignored = () if factory is None else ("it holds its network: the factory is not used",)
    if layer is not None and kind != "exported":
        raise InputError(
            f"layer={layer!r}: the layers inside {KINDS[kind]} cannot be reached. Give an exported "
            "program (.pt2), or weights with a factory."
        )
    if kind == "onnx":
        model = OnnxModel(file, tuple(shape), device)
        return ModelFile(model, KINDS[kind], file, ignored + model.notes)
    if kind == "script":
        return ModelFile(load_script(file), KINDS[kind], file, ignored)
    on = None if device is None else torch.device(device)
    network = load_exported(file, tuple(shape), layers=layer is not None, device=on)
    return ModelFile(network, KINDS[kind], file, ignored)


def _training(
    path: Path, kind: str, factory: str | None, options: Mapping[str, Any] | None
) -> Training:
    if factory is None:
        if kind == "torch":
            read_tensors(path, safetensors=False)  # a whole module is refused first
        raise InputError(
            f"{path} holds weights alone: name what makes their network with "
            "factory='module:function' (called with shape, classes and options), or a name such "
            "as factory='resnet18'."
        )
    return Training(factory, options=dict(options or {}))


def check_answers(file: ModelFile, x: Tensor) -> None:
    """Raise unless a network can be run on inputs and answers each by itself, always the same.

    A network exported in training mode drops units at random or normalises with what else is in
    the batch; no mode that is set later changes that.

    Parameters
    ----------
    file : ModelFile
        The network, on the CPU.
    x : Tensor
        A few inputs as the network takes them.
    """
    whole, again, half = (_answers(file, part) for part in (x, x, x[: max(1, len(x) // 2)]))
    if not all(isinstance(a, np.ndarray) for a in (whole, again, half)):
        return  # no plain answers: whoever asks for them says so
    scale = 1e-3 * max(1.0, float(np.abs(whole).max(initial=0)))
    same = {
        "differently each time": (whole, again),
        "by what else is in the batch": (whole[: len(half)], half),
    }
    for how, (a, b) in same.items():
        if not np.allclose(a, b, rtol=0, atol=scale, equal_nan=True):
            raise InputError(
                f"{file.path} answers {how}: it was exported in training mode. Call model.eval() "
                "before exporting it."
            )


def _answers(file: ModelFile, x: Tensor) -> Any:
    if not isinstance(file.model, nn.Module):
        return file.model(x.numpy())
    device = next((p.device for p in file.model.parameters()), torch.device("cpu"))
    try:
        with torch.inference_mode():
            found = file.model(x.to(device))
    except (RuntimeError, ValueError, TypeError, AssertionError, IndexError) as error:
        said = str(error).strip().split("\n")[-1][:300]
        raise InputError(
            f"{file.path} cannot be run on inputs of shape {tuple(x.shape)}, {x.dtype}: {said}"
        ) from error
    return found.float().cpu().numpy() if isinstance(found, Tensor) else found
