"""Features on disk: a cache by a hash of all that determines them, and matrices that grow beyond memory.

Files of the cache are checked when they are read, and never pickled.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import uuid
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.nn.files.kinds import file_digest
from curvewise.ranking.scores import CheckpointFeatures
from curvewise.text import Message, arg

# Changes whenever the same inputs would give other features than before.
FORMAT = 3
# Bytes of features that are kept in memory.
LIMIT = 2**30
_ARRAYS = ("features", "probabilities", "examples")
_FIELDS = ("name", "layer", "parameters", "source_accuracy", "seconds", "gflops")
# Bytes from which on an array is mapped, not read.
_MAPPED = 2**24


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
            return [self._fields(key, record) for record in written["features"]], None
        except FileNotFoundError as error:
            if error.filename == str(file):
                return None, None
            why = "a file is missing"
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            why = str(error)
        return None, f"files of the cache {self.folder} are damaged ({why}): the features were computed again"

    def _fields(self, key: str, record: dict[str, Any]) -> dict[str, Any]:
        arrays = {n: self._load(key, n, sha) for n, sha in record.pop("arrays").items()}
        return {**record, "notes": tuple(record["notes"]), **arrays}

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
                f"the features do not fit into the folder for temporary files, "
                f"{self._folder or tempfile.gettempdir()} ({error}): make room, or name another "
                "one with the variable TMPDIR."
            ) from error
        if self._total is None:
            self._room.left += sum(part.nbytes for part in self._parts)
        self._parts = []
