"""Checkpoints of any format, and what of them is looked at."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np

from curvewise.errors import InputError
from curvewise.nn._feature_items import is_network, is_torch
from curvewise.nn._pooling import check_pool
from curvewise.nn._preprocessing import Preprocessing
from curvewise.types.features import CheckpointFeatures

__all__ = ["Checkpoint", "Preprocessing", "as_checkpoint", "as_checkpoints"]


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A trained network, and how its features are taken.

    Parameters
    ----------
    name : str
        What it is called in results.
    source : nn.Module, path, array_like, CheckpointFeatures or callable
        A network of torch, timm, torchvision or Hugging Face; a file: an exported program,
        TorchScript, ONNX, TensorFlow Lite, weights with a factory, or features (``.npy``,
        ``.npz``, ``.safetensors``); a folder that ``save_pretrained`` of Hugging Face wrote;
        features of the examples; or a function from a batch to features, or to (features,
        probabilities).
    layer : str, optional
        A submodule, or a tensor of ONNX and TensorFlow Lite; ``"output"`` for what the network
        gives. By default what its last linear layer is given.
    preprocessing : Preprocessing, dict, object or callable, optional
        What is done to images of bytes: see :class:`Preprocessing`. Also weights of torchvision
        or their transforms, a configuration of timm, or an image processor of Hugging Face. By
        default the checkpoint's own, where it brings one along.
    factory : str or callable, optional
        What makes the network for a file of weights: ``"module:function"`` or a function, called
        with shape, classes and options; or a name such as ``"resnet18"`` or ``"timm:NAME"``.
    options : dict, optional
        Further options of the factory.
    shape, classes : tuple of int, int, optional
        What the factory is called with; by default the shape of an input after preprocessing,
        and as many classes as the last matrix in the file has rows.
    pool : {"auto", "mean", "first", "flatten", "tokens"}
        How outputs with several places (pixels, tokens) become rows: their mean (the default),
        the first, all side by side, or a row for each place.
    tokenizer : object or path, optional
        Of Hugging Face, for texts; a folder of Hugging Face brings its own.
    length : int, optional
        Tokens beyond this number are cut off.
    source_accuracy : float, optional
        Accuracy on what it was trained for, as a fraction.
    folder : path, optional
        Where the module of a factory may lie; the current folder by default.

    Examples
    --------
    >>> from torch import nn
    >>> Checkpoint("mine", nn.Linear(4, 2))
    Checkpoint('mine', Linear)
    """

    name: str
    source: Any
    layer: str | None = None
    preprocessing: Any = None
    factory: Any = None
    options: Mapping[str, Any] | None = None
    shape: tuple[int, ...] | None = None
    classes: int | None = None
    pool: str = "auto"
    tokenizer: Any = None
    length: int | None = None
    source_accuracy: float | None = None
    folder: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InputError(f"name={self.name!r}: give each checkpoint a name, as text.")
        check_pool(self.pool)
        accuracy = self.source_accuracy
        if accuracy is not None and not 0 <= accuracy <= 1:
            raise InputError(
                f"source_accuracy={accuracy!r} of {self.name!r}: give a fraction from 0 to 1."
            )
        if self.layer is not None and not isinstance(self.layer, str):
            raise InputError(f"layer={self.layer!r} of {self.name!r}: give a name, as text.")

    def __repr__(self) -> str:
        what = str(self.path) if self.path is not None else type(self.source).__name__
        return f"Checkpoint({self.name!r}, {what})"

    @property
    def path(self) -> Path | None:
        """Where its file or folder is; None for what is in memory."""
        return Path(self.source) if isinstance(self.source, str | os.PathLike) else None


def as_checkpoint(given: Any, name: str | None = None) -> Checkpoint:
    """A checkpoint out of whatever stands for one; named after its file or class.

    Examples
    --------
    >>> as_checkpoint("weights/resnet18.pt2").name
    'resnet18'
    """
    if isinstance(given, Checkpoint):
        return given if name is None else replace(given, name=name)
    if isinstance(given, CheckpointFeatures):
        accuracy = given.source_accuracy
        return Checkpoint(name or given.name, given, source_accuracy=accuracy)
    if isinstance(given, str | os.PathLike):
        path = Path(given)
        return Checkpoint(name or (path.name if path.is_dir() else path.stem), path)
    if isinstance(given, np.ndarray) or is_torch(given, "Tensor") or callable(given):
        kind = getattr(given, "__name__", type(given).__name__)
        return Checkpoint(name or kind, given)
    raise InputError(
        f"checkpoint is a {type(given).__name__}: give a Checkpoint, a torch module, a path, "
        "features, or a function."
    )


def as_checkpoints(given: Any) -> list[Checkpoint]:
    """Checkpoints out of a mapping from names, or a sequence; names that repeat are numbered.

    Examples
    --------
    >>> [c.name for c in as_checkpoints(["a/model.pt2", "b/model.pt2"])]
    ['model', 'model (2)']
    """
    if isinstance(given, Mapping):
        given = [as_checkpoint(one, str(name)) for name, one in given.items()]
    single = isinstance(given, str | os.PathLike | np.ndarray | Checkpoint)
    if single or is_network(given) or is_torch(given, "Tensor"):
        given = [given]
    if not isinstance(given, Iterable):
        raise InputError(
            f"checkpoints is a {type(given).__name__}: give a dict from names to checkpoints, or a "
            "list."
        )
    found: dict[str, Checkpoint] = {}
    for one in map(as_checkpoint, given):
        numbered = (f"{one.name} ({again})" for again in count(2))
        name = next(n for n in chain([one.name], numbered) if n not in found)
        found[name] = replace(one, name=name)
    if not found:
        raise InputError("checkpoints is empty: give at least one.")
    return list(found.values())
