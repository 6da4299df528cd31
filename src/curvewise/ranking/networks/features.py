"""Features of examples by checkpoints of any format: one pass over the data for each of them."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import CurvewiseError, CurvewiseWarning, InputError
from curvewise.nn.devices import PRECISIONS
from curvewise.progress import Progress, progressing
from curvewise.ranking.networks.cache import LIMIT, FeatureCache, Room, Rows
from curvewise.ranking.networks.checkpoints import Checkpoint, Found, Given, Reader, as_checkpoint, as_checkpoints
from curvewise.ranking.networks.formats import open_reader, stored_features
from curvewise.ranking.networks.inputs import (
    Batch,
    Inputs,
    Preparation,
    given_preprocessing,
    input_shape,
    preparation,
    read_inputs,
)
from curvewise.ranking.scores import CheckpointFeatures
from curvewise.text import list_names


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
        See :class:`curvewise.ranking.networks.checkpoints.Checkpoint`.
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
    inputs = read_inputs(data, labels, examples=examples, layout=layout, preprocessing=preprocessing, rng=rng)
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
    inputs = read_inputs(data, labels, examples=examples, layout=layout, preprocessing=preprocessing, rng=rng)
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


# One pass over the data for one checkpoint, unless its features are known already.

Advance = Callable[[float], None]
"""Moves a bar on by so many examples."""


@dataclass(frozen=True)
class Manner:
    """What is the same for all checkpoints."""

    batch: int | None
    device: str | None
    precision: str
    cache: FeatureCache | None
    room: Room


def manner_of(batch: int | None, device: str | None, precision: str, cache: Any, limit: int) -> Manner:
    """Settings that were checked."""
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
        raise InputError(f"limit={limit!r}: give a number of bytes.")
    if batch is not None and (not isinstance(batch, int) or isinstance(batch, bool) or batch < 1):
        raise InputError(f"batch={batch!r}: give a whole number of at least 1.")
    if precision not in PRECISIONS:
        raise InputError(f"precision={precision!r}: use one of {', '.join(PRECISIONS)}.")
    kept = None if cache is None else FeatureCache(cache)
    return Manner(batch, device, precision, kept, Room(limit))


def extracted(
    checkpoint: Checkpoint, inputs: Inputs, layer: str | None, how: Manner, advance: Advance
) -> dict[str, CheckpointFeatures]:
    """Features by name: one, or one for each layer."""
    if layer is not None:
        checkpoint = replace(checkpoint, layer=layer)
    ready = _stored(checkpoint, inputs)
    if ready is not None:
        advance(len(inputs))
        return {checkpoint.name: ready}
    first = next(iter(inputs.batches(min(2, len(inputs)))))
    shape = input_shape(given_preprocessing(checkpoint, inputs), first)
    reader = open_reader(checkpoint, shape, how.device, how.precision)
    prepare = preparation(checkpoint, reader, inputs, first)
    key = _key(checkpoint, reader, inputs, prepare, how)
    notes: list[str] = []
    if how.cache is not None and key is not None:
        kept, wrong = how.cache.read(key)
        if kept is not None:
            advance(len(inputs))
            return _from_cache(checkpoint, kept, how.cache)
        notes += [wrong] if wrong else []
    elif how.cache is not None:
        notes.append("not cached: what it does to its inputs cannot be told from its content")
    left = how.room.left
    try:
        found = _computed(checkpoint, reader, inputs, prepare, how, advance)
    except BaseException:
        how.room.left = left  # what it had is gone
        raise
    if how.cache is not None and key is not None:
        failed = how.cache.write(key, found)
        if failed:
            warnings.warn(failed, CurvewiseWarning, stacklevel=4)
            notes.append(failed)
    if any(isinstance(one.features, np.memmap) for one in found):
        notes.append("features lie in a temporary file, mapped into memory")
    found = [replace(one, notes=(*one.notes, *notes)) for one in found]
    return {one.name: one for one in found}


def _stored(checkpoint: Checkpoint, inputs: Inputs) -> CheckpointFeatures | None:
    """Features that the checkpoint is, for the examples shown."""
    source = checkpoint.source
    if isinstance(source, CheckpointFeatures):
        rows = _rows(checkpoint, len(source), inputs)
        return replace(source if rows is None else source.take(rows), name=checkpoint.name)
    found = stored_features(checkpoint)
    if found is None:
        return None
    if checkpoint.layer not in (None, "output"):
        raise InputError(f"layer={checkpoint.layer!r}: {checkpoint.name!r} holds features, no network.")
    features, own = found
    rows = _rows(checkpoint, len(features), inputs)
    if rows is not None:
        features, own = features[rows], None if own is None else own[rows]
    return CheckpointFeatures(
        checkpoint.name, features, own, source_accuracy=checkpoint.source_accuracy, notes=("its features were given",)
    )


def _rows(checkpoint: Checkpoint, there: int, inputs: Inputs) -> NDArray[np.int64] | None:
    """Which of the features given are those of the examples; None for all of them."""
    if there == len(inputs):
        return None
    if there == inputs.total:
        return inputs.rows
    raise InputError(
        f"{checkpoint.name!r} has features of {there:,} examples, and the data has "
        f"{inputs.total:,}: give one row for each example."
    )


def _key(checkpoint: Checkpoint, reader: Reader, inputs: Inputs, prepare: Preparation, how: Manner) -> str | None:
    if how.cache is None or prepare.said is None:
        return None
    weights = reader.digest()
    if weights is None:
        return None
    return FeatureCache.key(
        weights=weights,
        data=inputs.digest(),
        preprocessing=prepare.said,
        layer=checkpoint.layer,
        pool=checkpoint.pool,
        precision=how.precision,
    )


def _from_cache(
    checkpoint: Checkpoint, kept: list[dict[str, Any]], cache: FeatureCache
) -> dict[str, CheckpointFeatures]:
    found = {}
    for fields in kept:
        fields["notes"] += (f"read from the cache {cache.folder}",)
        fields["source_accuracy"] = checkpoint.source_accuracy
        fields["name"] = name_at(checkpoint, fields["layer"])
        kind = TokenFeatures if "examples" in fields else CheckpointFeatures
        found[fields["name"]] = kind(**fields)
    return found


def _computed(
    checkpoint: Checkpoint, reader: Reader, inputs: Inputs, prepare: Preparation, how: Manner, advance: Advance
) -> list[CheckpointFeatures]:
    """One pass over the data."""
    size = how.batch or (256 if str(getattr(reader, "device", "")).startswith("cuda") else 64)
    size = min(size, reader.most or size)
    walk = Walk(checkpoint, reader, how.room, len(inputs))
    with reader.running():
        batches: Iterator[Batch] = inputs.batches(size)
        start = prepare(next(batches))
        reader.start(start)
        each = walk.counted(start)
        for given in chain([start], map(prepare, batches)):
            walk.add(given)
            advance(len(given))
    notes = [*prepare.notes, *reader.notes, *walk.notes]
    if how.precision != "float32" and not hasattr(reader, "model"):
        notes.append(f"precision={how.precision!r} is for torch: it computed as it was exported")
    about: dict[str, Any] = {
        "parameters": reader.parameters,
        "source_accuracy": checkpoint.source_accuracy,
        "seconds": walk.seconds,
        "gflops": None if each is None else each * len(inputs),
        "notes": tuple(notes),
    }
    return walk.features(about)


# What a checkpoint gave so far: rows by layer, in the course of one pass over the data.


@dataclass(frozen=True, eq=False, repr=False)
class TokenFeatures(CheckpointFeatures):
    """Features with a row for each place of each example: a token, or a pixel of a feature map.

    Attributes
    ----------
    examples : ndarray of int, shape (rows,)
        Which example a row belongs to.
    """

    examples: NDArray[np.int64] | None = None

    def take(self, rows: NDArray[Any]) -> TokenFeatures:
        """Some of the rows: their positions, or a mask with an entry for each."""
        owners = None if self.examples is None else self.examples[rows]
        return replace(self, features=self.features[rows], examples=owners)


def name_at(checkpoint: Checkpoint, layer: str) -> str:
    """What features of a layer are called: with the layer where all are taken."""
    return f"{checkpoint.name} @ {layer}" if checkpoint.layer == "all" else checkpoint.name


class Walk:
    """What a checkpoint gave so far, of so many examples in all."""

    def __init__(self, checkpoint: Checkpoint, reader: Reader, room: Room, total: int) -> None:
        self.checkpoint, self.reader, self.room, self.total = checkpoint, reader, room, total
        self.rows: dict[str, Rows] = {}
        self.own: Rows | None = None
        self.places: dict[str, list[NDArray[np.int64]]] = {}
        self.seconds, self.most = 0.0, 2**31
        self.notes: list[str] = []

    def counted(self, given: Given) -> float | None:
        """10⁹ operations for an example, where they can be counted."""
        try:
            return self.reader.gflops(given.part(0, self.reader.most or 1))
        except (InputError, NotImplementedError):
            return None
        except _memory_errors():
            return None

    def add(self, given: Given) -> None:
        """Run a batch, in halves where memory runs out."""
        for first in range(0, len(given), self.most):
            part = given.part(first, min(first + self.most, len(given)))
            start = time.perf_counter()
            try:
                found = self.reader.read(part)
            except _memory_errors() as error:
                if len(part) == 1:
                    raise InputError(
                        f"{self.checkpoint.name!r} does not fit into memory, not even with one "
                        "example: use another device, or smaller inputs."
                    ) from error
                found = None
            self.seconds += time.perf_counter() - start
            if found is None:
                self._halve(len(part))
                self.add(given.part(first, len(given)))
                return
            self._keep(found)

    def _halve(self, size: int) -> None:
        self.most = size // 2
        torch = sys.modules["torch"]  # whose error it was
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        said = "memory ran out: batches were halved to"
        self.notes = [n for n in self.notes if not n.startswith(said)] + [f"{said} {self.most}"]

    def _keep(self, found: Found) -> None:
        total = None if self.checkpoint.pool == "tokens" else self.total
        for layer, values in found.features.items():
            if not (np.isfinite(values.sum(dtype=np.float64)) or np.isfinite(values).all()):
                raise InputError(
                    f"{self.checkpoint.name!r} gives NaN or infinite features at {layer!r}: the "
                    "network diverged, overflows in half precision, or takes other inputs. Use "
                    "precision='float32', check its preprocessing, or leave it out."
                )
            self.rows.setdefault(layer, Rows(self.room, total)).add(values)
        for layer, counts in found.places.items():
            self.places.setdefault(layer, []).append(counts)
        if found.probabilities is not None:
            self.own = self.own or Rows(self.room, self.total)
            self.own.add(found.probabilities)

    def features(self, about: Mapping[str, Any]) -> list[CheckpointFeatures]:
        """Everything, by layer; layers that some examples do not come through are left out."""
        own = None if self.own is None else self.own.matrix()
        found: list[CheckpointFeatures] = []
        for layer, rows in self.rows.items():
            if self._examples(layer) != self.total:
                continue
            fields = {**about, "name": name_at(self.checkpoint, layer), "layer": layer}
            if layer in self.places:
                counts = np.concatenate(self.places[layer])
                owners = np.repeat(np.arange(len(counts)), counts)
                found.append(TokenFeatures(features=rows.matrix(), examples=owners, **fields))
            else:
                found.append(CheckpointFeatures(features=rows.matrix(), probabilities=own, **fields))
        if len(found) < len(self.rows) or not found:
            left = [layer for layer in self.rows if self._examples(layer) != self.total]
            said = f"layers that some batches do not come through were left out: {list_names(left, 5)}"
            if not found:
                raise InputError(f"{self.checkpoint.name!r}: {said}. Name another layer.")
            found = [replace(one, notes=(*one.notes, said)) for one in found]
        return found

    def _examples(self, layer: str) -> int:
        counts = self.places.get(layer)
        return len(self.rows[layer]) if counts is None else sum(map(len, counts))


def _memory_errors() -> tuple[type[Exception], ...]:
    """What torch raises where memory runs out, if it is used at all."""
    torch = sys.modules.get("torch")
    return () if torch is None else (torch.OutOfMemoryError,)
