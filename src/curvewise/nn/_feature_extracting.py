"""One pass over the data for one checkpoint, unless its features are known already."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.nn._feature_cache import FeatureCache
from curvewise.nn._feature_inputs import Batch, Inputs
from curvewise.nn._feature_opening import open_reader, stored_features
from curvewise.nn._feature_preparing import (
    Preparation,
    given_preprocessing,
    input_shape,
    preparation,
)
from curvewise.nn._feature_reader import PRECISIONS, Reader
from curvewise.nn._feature_rows import Room
from curvewise.nn._feature_walk import TokenFeatures, Walk, name_at
from curvewise.nn.checkpoints import Checkpoint
from curvewise.types.features import CheckpointFeatures

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


def manner_of(
    batch: int | None, device: str | None, precision: str, cache: Any, limit: int
) -> Manner:
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
        raise InputError(
            f"layer={checkpoint.layer!r}: {checkpoint.name!r} holds features, no network."
        )
    features, own = found
    rows = _rows(checkpoint, len(features), inputs)
    if rows is not None:
        features, own = features[rows], None if own is None else own[rows]
    return CheckpointFeatures(
        checkpoint.name,
        features,
        own,
        source_accuracy=checkpoint.source_accuracy,
        notes=("its features were given",),
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


def _key(
    checkpoint: Checkpoint, reader: Reader, inputs: Inputs, prepare: Preparation, how: Manner
) -> str | None:
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
    checkpoint: Checkpoint,
    reader: Reader,
    inputs: Inputs,
    prepare: Preparation,
    how: Manner,
    advance: Advance,
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
