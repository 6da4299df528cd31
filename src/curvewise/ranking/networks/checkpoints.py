"""Checkpoints of any format, what a reader of each format gives, and how outputs become rows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import chain, count
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from curvewise.errors import InputError
from curvewise.ranking.measure import CheckpointFeatures, as_number, check_known
from curvewise.ranking.networks.preprocessing import Prepare, is_network, is_torch

if TYPE_CHECKING:
    from torch import Tensor, nn


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A trained network, and the way its features are extracted.

    Parameters
    ----------
    name : str
        Name in results.
    source : nn.Module, path, array_like, CheckpointFeatures or callable
        A network of torch, timm, torchvision or Hugging Face; a file: an exported program,
        TorchScript, ONNX, TensorFlow Lite, weights with a factory, or features (``.npy``,
        ``.npz``, ``.safetensors``); a folder that ``save_pretrained`` of Hugging Face wrote;
        features of the examples; or a function from a batch to features, or to (features,
        probabilities).
    layer : str, optional
        A submodule, or a tensor of ONNX and TensorFlow Lite; ``"output"`` for the output of the
        network. By default the input of its last linear layer.
    preprocessing : Preprocessing, dict, object or callable, optional
        Preprocessing of images of bytes: see :class:`Preprocessing`. Also weights of torchvision
        or their transforms, a configuration of timm, or an image processor of Hugging Face. By
        default the checkpoint's own, if it has one.
    factory : str or callable, optional
        Function that makes the network for a file of weights: ``"module:function"`` or a function, called
        with shape, classes and options; or a name such as ``"resnet18"`` or ``"timm:NAME"``.
    options : dict, optional
        Further options of the factory.
    shape, classes : tuple of int, int, optional
        Arguments of the factory; by default the shape of an input after preprocessing,
        and as many classes as the last matrix in the file has rows.
    pool : {"auto", "mean", "first", "flatten", "tokens"}
        Way in which outputs with several places (pixels, tokens) become rows: their mean (the default),
        the first, all side by side, or a row for each place.
    tokenizer : object or path, optional
        Of Hugging Face, for texts; a folder of Hugging Face brings its own.
    length : int, optional
        Tokens beyond this number are cut off.
    source_accuracy : float, optional
        Accuracy on the task that it was trained for, as a fraction.
    folder : path, optional
        Folder of the module of a factory; the current folder by default.

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
            raise InputError("give each checkpoint a name, as text.", argument="name", value=self.name)
        check_known(self.pool, "pool", POOLS)
        if self.source_accuracy is not None:
            problem = f"give {self.name!r} a fraction from 0 to 1."
            as_number(self.source_accuracy, "source_accuracy", problem, lambda v: 0 <= v <= 1)
        if self.layer is not None and not isinstance(self.layer, str):
            raise InputError(f"give {self.name!r} a name, as text.", argument="layer", value=self.layer)

    def __repr__(self) -> str:
        what = str(self.path) if self.path is not None else type(self.source).__name__
        return f"Checkpoint({self.name!r}, {what})"

    @property
    def path(self) -> Path | None:
        """File or folder; None for what is in memory."""
        return Path(self.source) if isinstance(self.source, str | os.PathLike) else None


def as_checkpoint(given: Any, name: str | None = None) -> Checkpoint:
    """Make a checkpoint from whatever stands for one; named after its file or class.

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
        f"is a {type(given).__name__}: give a Checkpoint, a torch module, a path, features, or a function.",
        argument="checkpoint",
    )


def as_checkpoints(given: Any) -> list[Checkpoint]:
    """Make checkpoints from a mapping by name, or a sequence; names that repeat are numbered.

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
            f"is a {type(given).__name__}: give a dict from names to checkpoints, or a list.", argument="checkpoints"
        )
    found: dict[str, Checkpoint] = {}
    for one in map(as_checkpoint, given):
        numbered = (f"{one.name} ({again})" for again in count(2))
        name = next(n for n in chain([one.name], numbered) if n not in found)
        found[name] = replace(one, name=name)
    if not found:
        raise InputError("is empty: give at least one.", argument="checkpoints")
    return list(found.values())


# Name of the layer where what the network itself gives is taken.
OUTPUT = "output"

Matrix = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class InputBatch:
    """One batch as a network takes it.

    Attributes
    ----------
    x : ndarray, Tensor or list
        Inputs, (examples, ...), as tensors for networks of torch; for a function of one's own,
        whatever it takes.
    mask : ndarray or Tensor, shape (examples, tokens), optional
        False for padding.
    """

    x: Any
    mask: Any = None

    def __len__(self) -> int:
        return len(self.x)

    def part(self, first: int, last: int) -> InputBatch:
        """Return some of its examples."""
        return InputBatch(self.x[first:last], None if self.mask is None else self.mask[first:last])


@dataclass(frozen=True, eq=False)
class LayerOutputs:
    """Outputs of a network for one batch.

    Attributes
    ----------
    features : dict of str to ndarray
        Rows by layer; a row for each example, or for each place with ``pool="tokens"``.
    probabilities : ndarray, shape (examples, classes), optional
        Of its own classes.
    places : dict of str to ndarray of int
        Number of rows of each example, by layer, with ``pool="tokens"``.
    """

    features: dict[str, Matrix]
    probabilities: Matrix | None = None
    places: dict[str, NDArray[np.int64]] = field(default_factory=dict)


class Reader:
    """A network of any format, ready to be run.

    Parameters
    ----------
    checkpoint : Checkpoint
        Says which layer is wanted, and how its output becomes rows.

    Attributes
    ----------
    notes : list of str
        How the network was interpreted.
    parameters : int, optional
        Number of its weights.
    preprocessing : Preprocessing or callable, optional
        Its own, if the file or object has one.
    sides : (height, width), optional
        Size of images, if it takes only one.
    most : int, optional
        Largest batch.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.layer, self.pool = checkpoint.layer, checkpoint.pool
        self.notes: list[str] = []
        self.parameters: int | None = None
        self.preprocessing: Prepare | None = None
        self.sides: tuple[int, int] | None = None
        self.most: int | None = None

    def running(self) -> AbstractContextManager[None]:
        """Hold the network on its device in evaluation mode while batches are read, where there is such a thing."""
        return nullcontext()

    def start(self, given: InputBatch) -> None:
        """Find the layers with a first batch, if they are not known before; raise where that fails."""

    def read(self, given: InputBatch) -> LayerOutputs:
        """Run the network on a batch."""
        raise NotImplementedError

    def gflops(self, given: InputBatch) -> float | None:
        """Return 10⁹ operations for one example of a batch; None where they cannot be counted."""
        return None

    def digest(self) -> str | None:
        """Return a hash of all that determines its answers; None where that is not known, as of a function."""
        return None

    def outputs(self, values: Mapping[str, tuple[Any, bool]], own: Any, mask: Any = None) -> LayerOutputs:
        """Pool values by layer, with their features in the last axis or not, beside probabilities of own classes."""
        pool = self.pool
        rows = {name: as_rows(pooled(value, pool, last=last, mask=mask)) for name, (value, last) in values.items()}
        places = {}
        if pool == "tokens":
            places = {name: places_of(value, last=last, mask=mask) for name, (value, last) in values.items()}
        return LayerOutputs(rows, None if own is None else as_rows(own), places)


def as_rows(values: Any) -> Matrix:
    """Return an array or tensor as an array of float32 in main memory."""
    if is_torch(values, "Tensor"):
        values = values.detach().to("cpu").float().numpy()
    return np.asarray(values, dtype=np.float32)


# How outputs with several places become rows: see ``Checkpoint``.
POOLS = ("auto", "mean", "first", "flatten", "tokens")
# Modules whose output has its features in the last axis, and in the second.
_LAST = ("Linear", "LayerNorm", "RMSNorm", "Embedding", "GELU")
_FIRST = ("Conv1d", "BatchNorm1d", "MaxPool1d", "AvgPool1d", "AdaptiveAvgPool1d")


def main_tensor(output: Any, examples: int) -> Tensor | None:
    """Return the main tensor of a network's or layer's output; None where there is none."""
    named: dict[str, Any] = {}
    if is_torch(output, "Tensor"):
        return output if _fits(output, examples) else None
    if isinstance(output, dict):
        named = {str(k): v for k, v in output.items()}
    elif isinstance(output, tuple | list):
        named = {str(i): v for i, v in enumerate(output)}
    found: Tensor
    for name in ("logits", "last_hidden_state", "features", *named):
        found = named.get(name)  # type: ignore[assignment]
        if is_torch(found, "Tensor") and _fits(found, examples):
            return found
    return None


def _fits(value: Any, examples: int) -> bool:
    """Tell if a tensor has a row of floating point for each example."""
    return bool(value.ndim >= 1 and len(value) == examples and value.is_floating_point())


def channels_at_end(module: nn.Module | None, value: Tensor) -> bool:
    """Tell if the last axis of an output holds the features: for tokens it does, for feature maps not."""
    kind = "" if module is None else type(module).__name__
    if kind in _FIRST:
        return False
    return value.ndim == 3 or kind in _LAST


def pooled(value: Any, pool: str, *, last: bool, mask: Any = None) -> Any:
    """Return rows for examples: a feature map's mean over places, the tokens' mean or the first of them.

    Parameters
    ----------
    value : ndarray or Tensor, shape (examples, ...)
        Output of a layer.
    pool : str
        One of :data:`POOLS`; with ``"tokens"`` there is a row for each place.
    last : bool
        True if the features are the last axis, otherwise they are the second.
    mask : ndarray or Tensor, shape (examples, tokens), optional
        False for padding.

    Returns
    -------
    ndarray or Tensor
        Whichever was given, of float32.

    Examples
    --------
    >>> pooled(np.ones((2, 8, 4, 4)), "auto", last=False).shape
    (2, 8)
    >>> pooled(np.ones((2, 5, 8)), "tokens", last=True).shape
    (10, 8)
    """
    value = _floats(value)
    if value.ndim == 1:
        return value[:, None]
    if value.ndim == 2:
        return value
    if pool == "flatten":
        return value.reshape(len(value), -1)
    places = _places(value, last)
    if mask is not None and mask.shape != places.shape[:2]:
        mask = None  # a layer that is not about tokens
    if pool == "tokens":
        return places.reshape(-1, places.shape[2]) if mask is None else places[mask]
    if pool == "first":
        return places[:, 0]
    if mask is None:
        return places.mean(1)
    weights = _floats(mask)[:, :, None]
    return (places * weights).sum(1) / weights.sum(1).clip(1)


def places_of(value: Any, *, last: bool, mask: Any) -> NDArray[np.int64]:
    """Return the number of rows of each example with ``pool="tokens"``."""
    if value.ndim <= 2:
        return np.ones(len(value), dtype=np.int64)
    places = prod(_places(value, last).shape[1:-1])
    if mask is not None and mask.shape[1] == places:
        counts = mask.sum(1)
        return np.asarray(counts.cpu() if is_torch(counts, "Tensor") else counts, dtype=np.int64)
    return np.full(len(value), places, dtype=np.int64)


def _floats(value: Any) -> Any:
    return value.float() if is_torch(value, "Tensor") else np.asarray(value, dtype=np.float32)


def _places(value: Any, last: bool) -> Any:
    """Return the same values as (examples, places, features)."""
    if not last:
        value = value.movedim(1, -1) if is_torch(value, "Tensor") else np.moveaxis(value, 1, -1)
    return value.reshape(len(value), prod(value.shape[1:-1]), value.shape[-1])


def as_probabilities(scores: Any, *, ready: bool, squashed: bool = False) -> Any:
    """Return probabilities of classes from logits or log-probabilities, or as they are if ``ready``.

    One column is about the second of two classes. Scores that were squashed, each by a sigmoid,
    are turned back into logits, since those of all classes do not sum to 1.

    >>> as_probabilities(np.array([[0.0]]), ready=False).tolist()
    [[0.5, 0.5]]
    """
    scores, tensor = _floats(scores), is_torch(scores, "Tensor")
    if squashed:
        scores, ready = scores.clip(1e-7, 1 - 1e-7), False
        scores = scores.logit() if tensor else special.logit(scores)
    if scores.shape[1] == 1:
        if not ready:
            scores = scores.sigmoid() if tensor else special.expit(scores)
        found = scores[:, [0, 0]]  # a copy
        found[:, 0] = 1 - found[:, 1]
        return found
    if ready:
        return scores / scores.sum(1)[:, None]
    # The softmax of log-probabilities is the probabilities themselves.
    return scores.softmax(dim=1) if tensor else special.softmax(scores, axis=1)
