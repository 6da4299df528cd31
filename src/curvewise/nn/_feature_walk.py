"""What a checkpoint gave so far: rows by layer, in the course of one pass over the data."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.io._table import listed
from curvewise.nn._feature_reader import Found, Given, Reader
from curvewise.nn._feature_rows import Room, Rows
from curvewise.nn.checkpoints import Checkpoint
from curvewise.types.features import CheckpointFeatures


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
                found.append(
                    CheckpointFeatures(features=rows.matrix(), probabilities=own, **fields)
                )
        if len(found) < len(self.rows) or not found:
            left = [layer for layer in self.rows if self._examples(layer) != self.total]
            said = f"layers that some batches do not come through were left out: {listed(left, 5)}"
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
