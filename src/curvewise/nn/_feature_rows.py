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
"""Bytes of features that are kept in memory."""


class Room:
    """Bytes that matrices may take in memory, all of them together."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.left = limit


class Rows:
    """A matrix that grows; beyond a limit it lies in a temporary file, which nobody else sees.

    Parameters
    ----------
    room : Room, optional
        Bytes that are left in memory, for this matrix and others.
    total : int, optional
        How many rows there will be, where that is known: each is then kept in its place at once,
        without a copy in the end.
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

    def __init__(
        self, room: Room | None = None, total: int | None = None, folder: Path | None = None
    ) -> None:
        self._room, self._total, self._folder = room or Room(), total, folder
        self._parts: list[NDArray[np.float32]] = []
        self._whole: NDArray[np.float32] | None = None
        self._file: Any = None
        self._count, self._width = 0, -1

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
            self._begin(part)
        if part.shape[1] != self._width:
            raise InputError(
                f"a batch has {part.shape[1]} features and the ones before {self._width}: its "
                "inputs differ in size. Use pool='mean', or bring all inputs to one size."
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
        """Everything that was added, at its end: an array, or a memory map of the file."""
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
        """Where the total is known, it is known at once where they go."""
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
        # has no name, and is gone with whoever has it open or mapped
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
                f"the features do not fit into the folder for temporary files, "
                f"{self._folder or tempfile.gettempdir()} ({error}): make room, or name another "
                "one with the variable TMPDIR."
            ) from error
        if self._total is None:
            self._room.left += sum(part.nbytes for part in self._parts)
        self._parts = []
