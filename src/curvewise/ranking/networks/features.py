"""Features of examples by checkpoints of any format: one pass over the data for each of them.

They are kept in a cache on disk by a hash of all that determines them (checked when read, never pickled), and in a
temporary file where they do not fit into memory.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import time
import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import CurvewiseError, InputError, Message, arg, list_names
from curvewise.nn.devices import PRECISIONS
from curvewise.nn.files.formats import file_digest
from curvewise.progress import Progress, progressing
from curvewise.ranking.measure import CheckpointFeatures, check_known, warn
from curvewise.ranking.networks.checkpoints import (
    Checkpoint,
    InputBatch,
    LayerOutputs,
    Reader,
    as_checkpoint,
    as_checkpoints,
)
from curvewise.ranking.networks.formats import open_reader, stored_features
from curvewise.ranking.networks.inputs import (
    Inputs,
    Preparation,
    given_preprocessing,
    input_shape,
    preparation,
    read_inputs,
)
from curvewise.types.results import check_whole

# Changes whenever the same inputs would give other features than before.
FORMAT = 3
# Bytes of features that are kept in memory.
LIMIT = 2**30
_ARRAYS = ("features", "probabilities", "examples")
_FIELDS = ("name", "layer", "parameters", "source_accuracy", "seconds", "gflops")
# Bytes from which on an array is mapped, not read.
_MAPPED = 2**24

# Moves a progress bar on by so many examples.
Advance = Callable[[float], None]


class Extraction(TypedDict, total=False):
    """Keywords that say how features are extracted; all have a default.

    Attributes
    ----------
    examples : int or float, optional
        Number of examples, or below 1 their share, drawn at random; all by default.
    layout : {"first", "last"}, optional
        Place of the channels of images, if their shape does not tell; images of floating point
        are taken to have them where the network has.
    preprocessing : Preprocessing, dict, object or callable, optional
        For images of bytes and checkpoints without preprocessing of their own: networks that were
        all trained alike need it said once. A checkpoint's own comes first.
    batch : int, optional
        Examples at a time; halved where memory runs out.
    device : str, optional
        ``"cpu"`` or ``"cuda"``. A network in memory stays where it is by default; one from a file
        goes to a GPU if there is one.
    precision : {"float32", "bfloat16", "float16"}
        Precision that torch computes in; features are float32 in any case.
    cache : path, optional
        Folder for features, which are found again by the content of weights, data and
        preprocessing. It grows: delete its files when they are no longer needed.
    limit : int
        Bytes of features kept in memory, of all layers and checkpoints together (1 GiB); beyond,
        they are in a temporary file.
    """

    examples: float | None
    layout: str | None
    preprocessing: Any
    batch: int | None
    device: str | None
    precision: str
    cache: str | os.PathLike[str] | None
    limit: int


class _Options(Extraction, total=False):
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
    rng: int | np.random.Generator = 0,
    progress: Progress = None,
    **extraction: Unpack[Extraction],
) -> CheckpointFeatures | dict[str, CheckpointFeatures]:
    """Run examples through a checkpoint once and keep the output of one of its layers.

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
        ``"all"`` for every layer in one pass; by default the input of the last linear layer.
    rng : int or Generator
        Decides which examples are drawn.
    progress : bool or callable, optional
        A bar on stderr (by default where that is a terminal), or a function of the share done.
    **extraction
        ``examples``, ``layout``, ``preprocessing``, ``batch``, ``device``, ``precision``,
        ``cache``, ``limit``: see :class:`Extraction`.

    Returns
    -------
    CheckpointFeatures or dict
        For ``"all"``, by names such as ``"resnet @ layer4"``. With ``pool="tokens"`` they are
        :class:`TokenFeatures`, which know the example of each row.

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
    inputs, settings = _start(data, extraction, rng)
    one = as_checkpoint(checkpoint)
    with progressing(f"features of {one.name}", len(inputs), progress) as advance:
        found = _features(one, inputs, layer, settings, advance)
    return found if (layer or one.layer) == "all" else next(iter(found.values()))


def extract_many(
    checkpoints: Any,
    data: Any,
    *,
    layer: str | None = None,
    rng: int | np.random.Generator = 0,
    progress: Progress = None,
    **extraction: Unpack[Extraction],
) -> tuple[dict[str, CheckpointFeatures], dict[str, str]]:
    """Extract features of the same examples by several checkpoints; failures are reported, not raised.

    Parameters
    ----------
    checkpoints : mapping or sequence
        Checkpoints, or whatever stands for one; a mapping names them.
    data, layer, rng, progress, **extraction
        As for :func:`extract_features`.

    Returns
    -------
    features : dict of str to CheckpointFeatures
        By the checkpoints' names, in their order.
    failures : dict of str to str
        Reasons, by the names of the checkpoints that failed.

    Examples
    --------
    >>> from torch import nn
    >>> good, bad = nn.Linear(4, 2), nn.Linear(5, 2)
    >>> found, failures = extract_many({"good": good, "bad": bad}, np.ones((3, 4), np.float32))
    >>> list(found), list(failures)
    (['good'], ['bad'])
    """
    inputs, settings = _start(data, extraction, rng)
    named = as_checkpoints(checkpoints)
    found: dict[str, CheckpointFeatures] = {}
    failures: dict[str, str] = {}
    done = 0.0
    with progressing("features", len(inputs) * len(named), progress) as advance:

        def counted(amount: float) -> None:
            nonlocal done
            done += amount
            advance(amount)

        for place, one in enumerate(named, 1):
            try:
                found.update(_features(one, inputs, layer, settings, counted))
            except CurvewiseError as error:
                failures[one.name] = error.message if isinstance(error, InputError) else str(error)
            except Exception as error:  # whatever a network of someone else's may raise
                first = str(error).strip().split("\n")[0][:300]
                failures[one.name] = f"it failed with {type(error).__name__}: {first}"
            counted(place * len(inputs) - done)  # the rest of one that failed
    return found, failures


@dataclass
class _Settings:
    """Options that are the same for all checkpoints; see :class:`Extraction`."""

    batch: int | None = None
    device: str | None = None
    precision: str = "float32"
    cache: Any = None
    limit: int = LIMIT

    def __post_init__(self) -> None:
        self.limit = check_whole(self.limit, "limit", 0)
        if self.batch is not None:
            self.batch = check_whole(self.batch, "batch", 1)
        check_known(self.precision, "precision", PRECISIONS)
        self.features = None if self.cache is None else FeatureCache(self.cache)
        self.room = Room(self.limit)


def _start(data: Any, extraction: Extraction, rng: int | np.random.Generator) -> tuple[Inputs, _Settings]:
    """Read the examples and check the options."""
    options: dict[str, Any] = {**extraction}
    reading = {name: options.pop(name, None) for name in ("examples", "layout", "preprocessing")}
    settings = _Settings(**options)
    return read_inputs(data, rng=rng, **reading), settings


def _features(
    checkpoint: Checkpoint, inputs: Inputs, layer: str | None, settings: _Settings, advance: Advance
) -> dict[str, CheckpointFeatures]:
    """Return features by name, one or one for each layer: stored, from the cache, or computed."""
    if layer is not None:
        checkpoint = replace(checkpoint, layer=layer)
    ready = _stored(checkpoint, inputs)
    if ready is not None:
        advance(len(inputs))
        return {checkpoint.name: ready}
    first = next(iter(inputs.batches(min(2, len(inputs)))))
    shape = input_shape(given_preprocessing(checkpoint, inputs), first)
    reader = open_reader(checkpoint, shape, settings.device, settings.precision)
    prepare = preparation(checkpoint, reader, inputs, first)
    cache, notes = settings.features, list[str]()
    key = None if cache is None else _key(checkpoint, reader, inputs, prepare, settings.precision)
    if cache is not None and key is not None:
        kept, wrong = cache.read(key)
        if kept is not None:
            advance(len(inputs))
            # As they were kept, with the name and accuracy that the checkpoint has now.
            for fields in kept:
                fields["notes"] += (f"read from the cache {cache.folder}",)
                fields |= {"source_accuracy": checkpoint.source_accuracy, "name": _name_at(checkpoint, fields["layer"])}
            kinds = (TokenFeatures if "examples" in fields else CheckpointFeatures for fields in kept)
            return {fields["name"]: kind(**fields) for kind, fields in zip(kinds, kept, strict=True)}
        notes += [wrong] if wrong else []
    elif cache is not None:
        notes.append("not cached: its content does not determine what it does to its inputs")
    left = settings.room.left
    try:
        found = _computed(checkpoint, reader, inputs, prepare, settings, advance)
    except BaseException:
        settings.room.left = left  # its matrices are gone
        raise
    if cache is not None and key is not None and (failed := cache.write(key, found)):
        warn(failed)
        notes.append(failed)
    if any(isinstance(one.features, np.memmap) for one in found):
        notes.append("features lie in a temporary file, mapped into memory")
    found = [replace(one, notes=(*one.notes, *notes)) for one in found]
    return {one.name: one for one in found}


def _stored(checkpoint: Checkpoint, inputs: Inputs) -> CheckpointFeatures | None:
    """Return the features that the checkpoint consists of, for the examples drawn; None for a network."""
    source = checkpoint.source
    if isinstance(source, CheckpointFeatures):
        rows = _rows(checkpoint, len(source), inputs)
        return replace(source if rows is None else source.take(rows), name=checkpoint.name)
    found = stored_features(checkpoint)
    if found is None:
        return None
    if checkpoint.layer not in (None, "output"):
        raise InputError(
            f"{checkpoint.name!r} holds features, not a network.", argument="layer", value=checkpoint.layer
        )
    features, own = found
    rows = _rows(checkpoint, len(features), inputs)
    if rows is not None:
        features, own = features[rows], None if own is None else own[rows]
    return CheckpointFeatures(
        checkpoint.name, features, own, source_accuracy=checkpoint.source_accuracy, notes=("its features were given",)
    )


def _rows(checkpoint: Checkpoint, there: int, inputs: Inputs) -> NDArray[np.int64] | None:
    """Return the rows of given features that belong to the examples drawn; None for all of them."""
    if there == len(inputs):
        return None
    if there == inputs.total:
        return inputs.rows
    raise InputError(
        f"{checkpoint.name!r} has features of {there:,} examples, and the data has "
        f"{inputs.total:,}: give one row for each example."
    )


def _key(checkpoint: Checkpoint, reader: Reader, inputs: Inputs, prepare: Preparation, precision: str) -> str | None:
    """Return the key of the cache, a hash of all that determines features; None where that is not known."""
    weights = None if prepare.description is None else reader.digest()
    if weights is None:
        return None
    return FeatureCache.key(
        weights=weights,
        data=inputs.digest(),
        preprocessing=prepare.description,
        layer=checkpoint.layer,
        pool=checkpoint.pool,
        precision=precision,
    )


def _name_at(checkpoint: Checkpoint, layer: str) -> str:
    """Return the name of a layer's features: with the layer where all are extracted."""
    return f"{checkpoint.name} @ {layer}" if checkpoint.layer == "all" else checkpoint.name


def _computed(
    checkpoint: Checkpoint, reader: Reader, inputs: Inputs, prepare: Preparation, settings: _Settings, advance: Advance
) -> list[CheckpointFeatures]:
    """Run all examples through the checkpoint."""
    size = settings.batch or (256 if str(getattr(reader, "device", "")).startswith("cuda") else 64)
    size = min(size, reader.most or size)
    collected = _Collected(checkpoint, reader, settings.room, len(inputs))
    with reader.running():
        batches = inputs.batches(size)
        start = prepare(next(batches))
        reader.start(start)
        countless: tuple[type[Exception], ...] = (InputError, NotImplementedError, *_memory_errors())
        try:
            each = reader.gflops(start.part(0, reader.most or 1))
        except countless:
            each = None
        for batch in chain([start], map(prepare, batches)):
            collected.add(batch)
            advance(len(batch))
    notes = [*prepare.notes, *reader.notes, *collected.notes]
    if settings.precision != "float32" and not hasattr(reader, "model"):
        notes.append(f"precision={settings.precision!r} is for torch: it computed as it was exported")
    about: dict[str, Any] = {
        "parameters": reader.parameters,
        "source_accuracy": checkpoint.source_accuracy,
        "seconds": collected.seconds,
        "gflops": None if each is None else each * len(inputs),
        "notes": tuple(notes),
    }
    return collected.features(about)


@dataclass(frozen=True, eq=False, repr=False)
class TokenFeatures(CheckpointFeatures):
    """Features with a row for each place of each example: a token, or a pixel of a feature map.

    Attributes
    ----------
    examples : ndarray of int, shape (rows,)
        Example of each row.
    """

    examples: NDArray[np.int64] | None = None

    def take(self, rows: NDArray[Any]) -> TokenFeatures:
        """Select rows: their positions, or a mask with an entry for each."""
        owners = None if self.examples is None else self.examples[rows]
        return replace(self, features=self.features[rows], examples=owners)


class _Collected:
    """Outputs of a checkpoint so far, by layer, of so many examples in all."""

    def __init__(self, checkpoint: Checkpoint, reader: Reader, room: Room, total: int) -> None:
        self.checkpoint, self.reader, self.room, self.total = checkpoint, reader, room, total
        self.rows: dict[str, GrowingMatrix] = {}
        self.own: GrowingMatrix | None = None
        self.places: dict[str, list[NDArray[np.int64]]] = {}
        self.seconds, self.most = 0.0, 2**31
        self.notes: list[str] = []

    def add(self, batch: InputBatch) -> None:
        """Run a batch, in halves where memory runs out."""
        for first in range(0, len(batch), self.most):
            part = batch.part(first, min(first + self.most, len(batch)))
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
                # Outside the except block: the error's traceback would keep the tensors alive.
                self._halve(len(part))
                self.add(batch.part(first, len(batch)))
                return
            self._keep(found)

    def _halve(self, size: int) -> None:
        self.most = size // 2
        torch = sys.modules["torch"]  # it raised the error, so it is loaded
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        text = "memory ran out: batches were halved to"
        self.notes = [n for n in self.notes if not n.startswith(text)] + [f"{text} {self.most}"]

    def _keep(self, found: LayerOutputs) -> None:
        total = None if self.checkpoint.pool == "tokens" else self.total
        for layer, values in found.features.items():
            # The sum first: it is finite for nearly all, and quicker than a look at each value.
            if not (np.isfinite(values.sum(dtype=np.float64)) or np.isfinite(values).all()):
                raise InputError(
                    f"{self.checkpoint.name!r} gives NaN or infinite features at {layer!r}: the network "
                    f"diverged, overflows in half precision, or takes other inputs. Use {arg('precision', 'float32')}, "
                    "check its preprocessing, or leave it out."
                )
            self.rows.setdefault(layer, GrowingMatrix(self.room, total)).add(values)
        for layer, counts in found.places.items():
            self.places.setdefault(layer, []).append(counts)
        if found.probabilities is not None:
            self.own = self.own or GrowingMatrix(self.room, self.total)
            self.own.add(found.probabilities)

    def features(self, about: Mapping[str, Any]) -> list[CheckpointFeatures]:
        """Return all features by layer, without layers that some examples do not pass through."""
        own = None if self.own is None else self.own.matrix()
        found: list[CheckpointFeatures] = []
        left_out = []
        for layer, rows in self.rows.items():
            counts = np.concatenate(self.places[layer]) if layer in self.places else None
            if (len(rows) if counts is None else len(counts)) != self.total:
                left_out.append(layer)
                continue
            fields = {**about, "name": _name_at(self.checkpoint, layer), "layer": layer}
            if counts is not None:
                owners = np.repeat(np.arange(len(counts)), counts)
                found.append(TokenFeatures(features=rows.matrix(), examples=owners, **fields))
            else:
                found.append(CheckpointFeatures(features=rows.matrix(), probabilities=own, **fields))
        if left_out or not found:
            text = f"layers that some batches do not pass through were left out: {list_names(left_out, 5)}"
            if not found:
                raise InputError(f"{self.checkpoint.name!r}: {text}. Name another layer.")
            found = [replace(one, notes=(*one.notes, text)) for one in found]
        return found


def _memory_errors() -> tuple[type[Exception], ...]:
    """Return the errors of torch for exhausted memory, if it is used at all."""
    torch = sys.modules.get("torch")
    return () if torch is None else (torch.OutOfMemoryError,)


class FeatureCache:
    """A folder of features; it grows until its files are deleted.

    Parameters
    ----------
    folder : path
        Made where it does not exist.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"this folder cannot be made ({error.strerror}): give another one, or none.",
                argument="cache",
                value=str(folder),
            ) from error

    @staticmethod
    def key(**parts: Any) -> str:
        """Return a hash of what determines features: plain values by name.

        >>> FeatureCache.key(layer="fc") == FeatureCache.key(layer="fc", pool=None)
        False
        """
        text = json.dumps({"format": FORMAT, **parts}, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:40]

    def write(self, key: str, found: Sequence[CheckpointFeatures]) -> str | None:
        """Keep features, so that readers see all of them or none; return a warning where that fails."""
        try:
            records = []
            for one in found:
                record: dict[str, Any] = {name: getattr(one, name) for name in _FIELDS}
                record["notes"] = list(one.notes)
                arrays = {name: getattr(one, name, None) for name in _ARRAYS}
                record["arrays"] = {n: self._save(key, n, array) for n, array in arrays.items() if array is not None}
                records.append(record)
            # The record comes last and is renamed into place: without it the arrays are not found.
            about = {"format": FORMAT, "key": key, "sha256": _hash_of(records), "features": records}
            with self._aside() as aside:
                aside.write_text(json.dumps(about, indent=1), encoding="utf-8")
                os.replace(aside, self.folder / f"{key}.json")
        except OSError as error:
            reason = error.strerror or error
            text = f"{arg('cache', str(self.folder))}: features cannot be written there ({reason}): make room, or give "
            return Message(text + "another folder.")
        return None

    def read(self, key: str) -> tuple[list[dict[str, Any]] | None, str | None]:
        """Return the fields of kept features with their arrays, and a note on damage; None and None if never kept."""
        file = self.folder / f"{key}.json"
        try:
            written = json.loads(file.read_text(encoding="utf-8"))
            if written["key"] != key or written["format"] != FORMAT:
                raise ValueError("it belongs to something else")
            if written["sha256"] != _hash_of(written["features"]):
                raise ValueError(f"{file.name} is not what was written")
            for record in written["features"]:
                arrays = {name: self._load(key, name, sha) for name, sha in record.pop("arrays").items()}
                record |= {"notes": tuple(record["notes"]), **arrays}
            return written["features"], None
        except FileNotFoundError as error:
            if error.filename == str(file):
                return None, None
            why = "a file is missing"
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            why = str(error)
        return None, f"files of the cache {self.folder} are damaged ({why}): the features were computed again"

    def _path(self, key: str, name: str, sha: str) -> Path:
        """Return the file of an array, named by its content, too: others may write the same key at the same time."""
        return self.folder / f"{key}.{sha[:16]}.{name}.npy"

    def _load(self, key: str, name: str, sha: str) -> NDArray[Any]:
        path = self._path(key, name, sha)
        if file_digest(path) != sha:
            raise ValueError(f"{path.name} is not what was written")
        mode: Any = "c" if path.stat().st_size > _MAPPED else None
        found: NDArray[Any] = np.load(path, mmap_mode=mode, allow_pickle=False)
        return found

    def _save(self, key: str, name: str, array: NDArray[Any]) -> str:
        with self._aside() as aside:
            with open(aside, "wb") as stream:
                np.save(stream, array, allow_pickle=False)
            sha = file_digest(aside)
            os.replace(aside, self._path(key, name, sha))
        return sha

    @contextmanager
    def _aside(self) -> Iterator[Path]:
        """Yield a file to write and rename; it is deleted if something fails before that."""
        aside = self.folder / f".{uuid.uuid4().hex}"
        try:
            yield aside
        finally:
            with suppress(OSError):
                aside.unlink(missing_ok=True)


def _hash_of(records: list[Any]) -> str:
    """Return a hash of records, to see damage to their file."""
    return hashlib.sha256(json.dumps(records, sort_keys=True).encode()).hexdigest()


class Room:
    """Bytes that matrices may take in memory, all of them together."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.left = limit


class GrowingMatrix:
    """A matrix that grows; beyond a limit it lies in a temporary file without a name.

    Parameters
    ----------
    room : Room, optional
        Bytes that are left in memory, for this matrix and others.
    total : int, optional
        Number of rows there will be, where that is known: each is then written to its place at
        once, without a copy in the end.
    folder : Path, optional
        Folder of the file; the system's folder for such files by default.

    Examples
    --------
    >>> rows = GrowingMatrix()
    >>> for part in (np.ones((2, 3)), np.zeros((1, 3))):
    ...     rows.add(part)
    >>> rows.matrix().shape
    (3, 3)
    """

    def __init__(self, room: Room | None = None, total: int | None = None, folder: Path | None = None) -> None:
        self._room, self._total, self._folder = room or Room(), total, folder
        self._parts: list[NDArray[np.float32]] = []
        self._whole: NDArray[np.float32] | None = None
        self._file: Any = None
        self._count, self._width = 0, -1

    def __len__(self) -> int:
        return self._count

    @property
    def on_disk(self) -> bool:
        """True if the limit was passed."""
        return self._file is not None

    def add(self, part: NDArray[Any]) -> None:
        """Add rows, all as wide as the first ones."""
        part = np.ascontiguousarray(part, dtype=np.float32)
        if self._width < 0:
            self._begin(part)
        if part.shape[1] != self._width:
            raise InputError(
                f"a batch has {part.shape[1]} features and the ones before {self._width}: its "
                f"inputs differ in size. Use {arg('pool', 'mean')}, or bring all inputs to one size."
            )
        first, self._count = self._count, self._count + len(part)
        if self._whole is not None:
            self._whole[first : self._count] = part
            return
        self._parts.append(part)
        if self._total is None:
            self._room.left -= part.nbytes
        if self.on_disk or self._room.left < 0:
            self._spill()

    def matrix(self) -> NDArray[np.float32]:
        """Return all that was added: an array, or a memory map of the file."""
        shape = (self._count, max(self._width, 0))
        if self._whole is None and self.on_disk:
            self._file.flush()
            self._whole = np.memmap(self._file, dtype=np.float32, mode="r+", shape=shape)
            self._file.close()  # the map keeps the content
        elif self._whole is None:
            self._whole = np.concatenate(self._parts) if self._parts else np.empty(shape, "f4")
            self._parts = []
        return self._whole[: self._count]

    def _begin(self, part: NDArray[np.float32]) -> None:
        """Make room for all rows, in memory or in a file, if their number is known."""
        self._width = part.shape[1]
        if self._total is None:
            return
        size = 4 * self._total * self._width
        if size <= self._room.left:
            self._room.left -= size
            self._whole = np.empty((self._total, self._width), np.float32)
        else:
            self._open()

    def _open(self) -> None:
        # It has no name, and is gone once it is neither open nor mapped.
        self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115
        weakref.finalize(self, self._file.close)

    def _spill(self) -> None:
        if self._file is None:
            self._open()
        try:
            for part in self._parts:
                part.tofile(self._file)
        except OSError as error:
            raise InputError(
                f"the features do not fit into the folder for temporary files, {self._folder or tempfile.gettempdir()} "
                f"({error}): make room, or name another one with the variable TMPDIR."
            ) from error
        if self._total is None:
            self._room.left += sum(part.nbytes for part in self._parts)
        self._parts = []
