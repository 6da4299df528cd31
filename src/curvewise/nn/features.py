"""Features of examples by checkpoints of any format: one pass over the data for each of them."""

from __future__ import annotations

import os
from typing import Any, Literal, TypedDict, Unpack, overload

import numpy as np

from curvewise.errors import CurvewiseError
from curvewise.nn._bar import Progress, progressing
from curvewise.nn._feature_extracting import Advance, extracted, manner_of
from curvewise.nn._feature_inputs import Inputs, read_inputs
from curvewise.nn._feature_rows import LIMIT
from curvewise.nn._feature_walk import TokenFeatures
from curvewise.nn.checkpoints import as_checkpoint, as_checkpoints
from curvewise.types.features import CheckpointFeatures

__all__ = ["Inputs", "TokenFeatures", "extract_features", "extract_many", "read_inputs"]


class _Options(TypedDict, total=False):
    labels: Any
    examples: float | None
    layout: str | None
    preprocessing: Any
    batch: int | None
    device: str | None
    precision: str
    cache: str | os.PathLike[str] | None
    limit: int
    rng: int | np.random.Generator
    progress: Progress


@overload
def extract_features(
    checkpoint: Any, data: Any, *, layer: Literal["all"], **options: Unpack[_Options]
) -> dict[str, CheckpointFeatures]: ...
@overload
def extract_features(
    checkpoint: Any, data: Any, *, layer: str | None = None, **options: Unpack[_Options]
) -> CheckpointFeatures: ...
def extract_features(
    checkpoint: Any,
    data: Any,
    *,
    layer: str | None = None,
    labels: Any = None,
    examples: float | None = None,
    layout: str | None = None,
    preprocessing: Any = None,
    batch: int | None = None,
    device: str | None = None,
    precision: str = "float32",
    cache: str | os.PathLike[str] | None = None,
    limit: int = LIMIT,
    rng: int | np.random.Generator = 0,
    progress: Progress = None,
) -> CheckpointFeatures | dict[str, CheckpointFeatures]:
    """Run examples through a checkpoint once and keep what one of its layers gives.

    Parameters
    ----------
    checkpoint : Checkpoint, nn.Module, path, array_like or callable
        See :class:`curvewise.nn.checkpoints.Checkpoint`.
    data : ndarray, Tensor, list of str, Examples, (inputs, labels), Dataset or DataLoader
        Images of uint8 are pixels of any size and brought to what the checkpoint takes; numbers of
        floating point are given as they are; other whole numbers are tokens. A dataset is read
        batch by batch.
    layer : str, optional
        A submodule (ONNX and TensorFlow Lite: a tensor) whose output is wanted, ``"output"``, or
        ``"all"`` for every layer in one pass; by default what the last linear layer is given.
    labels : array_like, optional
        Only their number is checked.
    examples : int or float, optional
        How many examples, or below 1 which share, drawn at random; all by default.
    layout : {"first", "last"}, optional
        Where images have their channels, if that cannot be told from their shape; images of
        floating point are taken to have them where the network has.
    preprocessing : Preprocessing, dict, object or callable, optional
        For images of bytes and checkpoints that bring none along: networks that were all trained
        alike need it said once. What a checkpoint says itself comes first.
    batch : int, optional
        Examples at a time; halved where memory runs out.
    device : str, optional
        ``"cpu"`` or ``"cuda"``. A network in memory stays where it is by default; one from a file
        goes to a GPU if there is one.
    precision : {"float32", "bfloat16", "float16"}
        What torch computes in; features are float32 in any case.
    cache : path, optional
        A folder for features that are found again by the content of weights, data and
        preprocessing. It grows: delete its files when they are no longer needed.
    limit : int
        Bytes of features that are kept in memory, of all layers and checkpoints together; beyond,
        they lie in a temporary file.
    rng : int or Generator
        Decides which examples are drawn.
    progress : bool or callable, optional
        A bar on stderr (by default where that is a terminal), or a function of the share done.

    Returns
    -------
    CheckpointFeatures or dict
        For ``"all"``, by names such as ``"resnet @ layer4"``. With ``pool="tokens"`` they are
        :class:`TokenFeatures`, which tell whose each row is.

    Raises
    ------
    InputError
        The checkpoint cannot be read or run on the data, or gives NaN.
    MissingDependencyError
        The checkpoint needs a package that is not installed.

    Examples
    --------
    >>> from torch import nn
    >>> network = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    >>> found = extract_features(network, np.ones((10, 4), np.float32))
    >>> found, found.layer, found.probabilities.shape
    (CheckpointFeatures('Sequential', 10 examples × 8), 'input of 2', (10, 3))
    """
    inputs = read_inputs(
        data, labels, examples=examples, layout=layout, preprocessing=preprocessing, rng=rng
    )
    one = as_checkpoint(checkpoint)
    how = manner_of(batch, device, precision, cache, limit)
    with progressing(f"features of {one.name}", len(inputs), progress) as advance:
        found = extracted(one, inputs, layer, how, advance)
    return found if (layer or one.layer) == "all" else next(iter(found.values()))


def extract_many(
    checkpoints: Any,
    data: Any,
    *,
    layer: str | None = None,
    labels: Any = None,
    examples: float | None = None,
    layout: str | None = None,
    preprocessing: Any = None,
    batch: int | None = None,
    device: str | None = None,
    precision: str = "float32",
    cache: str | os.PathLike[str] | None = None,
    limit: int = LIMIT,
    rng: int | np.random.Generator = 0,
    progress: Progress = None,
) -> tuple[dict[str, CheckpointFeatures], dict[str, str]]:
    """Features of the same examples by several checkpoints; those that fail are told.

    Parameters
    ----------
    checkpoints : mapping or sequence
        Checkpoints, or whatever stands for one; a mapping names them.
    data, layer, labels, examples, layout, preprocessing, batch, device, precision, cache, limit, \
rng, progress
        As for :func:`extract_features`.

    Returns
    -------
    features : dict of str to CheckpointFeatures
        By the checkpoints' names, in their order.
    failures : dict of str to str
        By the names of those that failed, why.

    Examples
    --------
    >>> from torch import nn
    >>> good, bad = nn.Linear(4, 2), nn.Linear(5, 2)
    >>> found, failures = extract_many({"good": good, "bad": bad}, np.ones((3, 4), np.float32))
    >>> list(found), list(failures)
    (['good'], ['bad'])
    """
    inputs = read_inputs(
        data, labels, examples=examples, layout=layout, preprocessing=preprocessing, rng=rng
    )
    named = as_checkpoints(checkpoints)
    how = manner_of(batch, device, precision, cache, limit)
    found: dict[str, CheckpointFeatures] = {}
    failures: dict[str, str] = {}
    with progressing("features", len(inputs) * len(named), progress) as advance:
        for one in named:
            done = _Counted(advance)
            try:
                found.update(extracted(one, inputs, layer, how, done))
            except CurvewiseError as error:
                failures[one.name] = str(error)
            except Exception as error:  # whatever a network of someone else's may raise
                said = str(error).strip().split("\n")[0][:300]
                failures[one.name] = f"it failed with {type(error).__name__}: {said}"
            advance(len(inputs) - done.amount)
    return found, failures


class _Counted:
    """How much of a bar was moved on."""

    def __init__(self, advance: Advance) -> None:
        self.advance, self.amount = advance, 0.0

    def __call__(self, amount: float) -> None:
        self.amount += amount
        self.advance(amount)
