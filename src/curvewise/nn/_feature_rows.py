"""Rows that arrive batch by batch, kept in memory up to a limit and in a file beyond it."""

from __future__ import annotations

import tempfile
import weakref
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError

LIMIT = 2**30
"""Bytes of one matrix that are kept in memory."""


class Rows:
    """A matrix that grows; beyond a limit it lies in a temporary file, which nobody else sees.

    Parameters
    ----------
    limit : int
        Bytes that are kept in memory.
    folder : Path, optional
        Where the file is made; the system's folder for such files by default.

    Examples
    --------
    >>> rows = Rows()
    >>> for part in (np.ones((2, 3)), np.zeros((1, 3))):
    ...     rows.add(part)
    >>> rows.matrix().shape
    (3, 3)
    """

    def __init__(self, limit: int = LIMIT, folder: Path | None = None) -> None:
        self._limit, self._folder = limit, folder
        self._parts: list[NDArray[np.float32]] = []
        self._file: Any = None
        self._map: NDArray[np.float32] | None = None
        self._count, self._bytes, self._width = 0, 0, -1

    def __len__(self) -> int:
        return self._count

    @property
    def on_disk(self) -> bool:
        """Whether the limit was passed."""
        return self._file is not None

    def add(self, part: NDArray[Any]) -> None:
        """Some more rows, all as wide as the first ones."""
        part = np.ascontiguousarray(part, dtype=np.float32)
        if self._width < 0:
            self._width = part.shape[1]
        if part.shape[1] != self._width:
            raise InputError(
                f"a batch has {part.shape[1]} features and the ones before {self._width}: its "
                "inputs differ in size. Use pool='mean', or bring all inputs to one size."
            )
        self._count += len(part)
        self._bytes += part.nbytes
        self._parts.append(part)
        if self.on_disk or self._bytes > self._limit:
            self._spill()

    def matrix(self) -> NDArray[np.float32]:
        """Everything that was added, at its end: an array, or a memory map of the file."""
        shape = (self._count, max(self._width, 0))
        if not self.on_disk:
            found = np.concatenate(self._parts) if self._parts else np.empty(shape, np.float32)
            self._parts = [found]
            return found
        if self._map is None:
            self._file.flush()
            self._map = np.memmap(self._file, dtype=np.float32, mode="r+", shape=shape)
            self._file.close()  # the map keeps the content
        return self._map

    def _spill(self) -> None:
        if self._file is None:  # has no name, and is gone with whoever has it open or mapped
            self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115
            weakref.finalize(self, self._file.close)
        for part in self._parts:
            part.tofile(self._file)
        self._parts = []
