"""Read a store of runs: records, arrays, checkpoints and labels, each checked when it is read.

All that reads a store goes through this module. It follows no link, opens no pipe or device, and unpickles nothing.
"""

from __future__ import annotations

import gc
import hashlib
import io
import json
import math
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, StoreError, importing, os_reason
from curvewise.reading.arrays import npz_arrays
from curvewise.store.record import (
    MOST_RECORD,
    PREDICTIONS,
    RECORD,
    REMEDY,
    UnknownSchema,
    data_digest,
    is_id,
    parse_record,
    part_file,
)

AnyPath: TypeAlias = "str | os.PathLike[str]"

LABELS = "labels"
"""Folder of a store for the true classes, which many runs share."""
DATA = "data"
"""Folder of a store for copies of a study's examples."""
ASIDE = ".partial"
"""Folder of a store for runs being written; inside it, so that a rename crosses no disks."""
REPLACED = ".replaced-"
"""Marks a run that was moved aside, and goes back unless its successor comes."""
COPY_ARRAYS = ("x", "y", "test_x", "test_y")
COPY_FIELDS = ("classes", "name", "padding", "notes", "targets", "standardise")
MOST_READS = 10
"""Times that a run is read again which another process replaced while it was read."""
_LOOKS = 20  # each must meet another replacement of the run for a look to fail
_EMPTY_LOOKS = 5  # looks that find a run nowhere, between two of its moves, before it counts as missing
# Opening a pipe would wait for a writer, and a link leads out of the store; not every system knows all of these.
_OPEN = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_OPEN |= getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
_OPEN_FOLDER = _OPEN | getattr(os, "O_DIRECTORY", 0)
OPENS_IN_FOLDERS = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
"""True if the system opens a file relative to an open folder, so that no link can be put in the folder's place."""
_is_replaced = re.compile(r"([0-9a-f]{20})" + re.escape(REPLACED) + r"[0-9a-f]{12}").fullmatch


class MissingRun(StoreError):
    """There is no such run."""


class ReplacedRun(StoreError):
    """Another process replaced a run between two reads of it."""


@dataclass(frozen=True, eq=False)
class Run:
    """One stored run.

    Attributes
    ----------
    id : str
        Hash of the coordinates, and the name of the run's directory.
    path : Path
        The run's directory.
    coordinates : dict
        What identifies the run.
    status : {"done", "failed"}
        How it ended.
    metrics : dict of str to float
        What was measured; NaN where the value was not finite.
    error : str or None
        Why it failed.
    environment : dict
        What it was made with.
    notes : tuple of str
        What a reader should know, such as warnings raised in training.
    arrays : dict
        For each array: file, sha256, shape, dtype.
    files : dict
        For each checkpoint: file, sha256, bytes.
    label_digests : dict of str to str
        For each evaluation set whose labels were given, their hash.
    predictions : ndarray or None
        What was predicted for the test set; None too when the run comes from :func:`list_runs`,
        which loads no arrays: ``read_run(run.path)`` or ``run.array("predictions")`` does.
    """

    id: str
    path: Path
    coordinates: Mapping[str, Any]
    status: str
    metrics: Mapping[str, float]
    error: str | None = None
    environment: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    arrays: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Any] = field(default_factory=dict)
    label_digests: Mapping[str, str] = field(default_factory=dict)
    predictions: NDArray[Any] | None = None

    def array(self, name: str = "predictions") -> NDArray[Any]:
        """Read one array, such as ``"probabilities"`` or ``"predictions.shifted"``.

        Raises
        ------
        InputError
            If the run has no such array.
        StoreError
            If its file is missing or damaged.
        """
        self._check("array", name, self.arrays)
        return array_of(self.path, {"arrays": self.arrays}, name)

    def checkpoint(self, name: str = "end") -> dict[str, NDArray[Any]]:
        """Read the weights of one checkpoint, by their names.

        Raises
        ------
        InputError
            If the run has no such checkpoint.
        StoreError
            If its file is missing or damaged.
        MissingDependencyError
            Without safetensors.
        """
        self._check("checkpoint", name, self.files)
        path = self.path / part_file("files", name)
        data = read_part(self.path, {"files": self.files}, "files", name)
        with importing(f"Reading {path} needs safetensors", "torch"):
            from safetensors.numpy import load
        try:
            weights: dict[str, NDArray[Any]] = load(data)
        except Exception as error:  # safetensors has errors of its own, and lets numpy's through
            raise StoreError(f"{path} is not a safetensors file: {error}. {REMEDY}") from error
        return weights

    def labels(self, evaluation: str = "test") -> NDArray[Any]:
        """Read the true classes of an evaluation set, where they were given.

        Raises
        ------
        InputError
            If the labels of this set were not stored.
        StoreError
            If their file is missing or damaged.
        """
        self._check("set of labels", evaluation, self.label_digests)
        return read_labels(self.path.parent, self.label_digests[evaluation])

    def _check(self, what: str, name: str, there: Mapping[str, Any]) -> None:
        if name not in there:
            known = ", ".join(map(repr, sorted(there))) or "none"
            raise InputError(f"Run {self.id} has no {what} {name!r}; there is {known}.")


def read_run(path: AnyPath) -> Run:
    """Read one run and check it against its checksums.

    Parameters
    ----------
    path : path
        The run's directory.

    Returns
    -------
    Run
        With its predictions for the test set; what else it has is read when asked for.

    Raises
    ------
    StoreError
        If a file is missing or damaged; the message names it.
    """
    folder = Path(path)
    # Record and predictions must be of one run: where it is replaced in between, both are read again.
    for left in reversed(range(MOST_READS)):
        run = _as_run(folder, folder.name, read_record(folder))
        try:
            if PREDICTIONS in run.arrays:
                object.__setattr__(run, "predictions", run.array(PREDICTIONS))
        except ReplacedRun:  # since its record was read
            if not left:
                raise
        else:
            break
    return run


def list_runs(store: AnyPath) -> list[Run]:
    """Read the records of all runs in a store, without their arrays.

    What an interrupted write left behind is ignored. Nothing in the store is changed.

    Parameters
    ----------
    store : path
        Folder of the store. One that does not exist yet has no runs.

    Returns
    -------
    list of Run
        Ordered by id; ``read_run(run.path)`` loads a run's predictions.

    Raises
    ------
    StoreError
        If a record is damaged; the message names it.
    """
    folder = Path(store)
    if not folder.exists():
        return []
    check_folder(folder)
    with without_collecting():
        records = read_records(folder)
        return [_as_run(Path(path), os.path.basename(path), r) for path, r in records.items()]


def _as_run(folder: Path, identity: str, record: Mapping[str, Any]) -> Run:
    metrics = {k: math.nan if v is None else v for k, v in record["metrics"].items()}
    as_is = {k: record.get(k) for k in ("coordinates", "status", "error", "environment", "arrays", "files")}
    about: dict[str, Any] = as_is | {"notes": tuple(record["notes"]), "label_digests": record["labels"]}
    return Run(id=identity, path=folder, metrics=metrics, **about)


def check_folder(folder: Path) -> None:
    """Refuse a store that is a file."""
    if folder.exists() and not folder.is_dir():
        raise StoreError(f"store={str(folder)!r} is not a folder.")


def read_records(store: AnyPath) -> dict[str, dict[str, Any]]:
    """Read the records of all runs in a store, by the paths of their folders."""
    found = {}
    with without_collecting():
        for path in run_folders(store):
            with suppress(MissingRun):  # it was deleted since the store was listed
                found[path] = read_record(path)
    return found


def read_record(folder: AnyPath) -> dict[str, Any]:
    """Read the record in a run's folder and check that it is whole and belongs there.

    Raises
    ------
    MissingRun
        If there is no such folder.
    UnknownSchema
        If it is of another version.
    StoreError
        If it is damaged.
    """
    home = os.path.basename(folder)
    if not is_id(home):  # a path such as "."
        home = os.path.basename(os.path.abspath(folder))
    problem: StoreError | None = None
    for place in _looks(folder):
        try:
            path = os.path.join(place, RECORD)
            try:
                data = read_file(path, MOST_RECORD)
            except OSError as error:
                raise StoreError(f"{path} cannot be read: {error}. {REMEDY}") from error
            return parse_record(data, path, home)
        except UnknownSchema:
            raise
        except StoreError as error:
            problem = error
    raise problem or _missing(folder)


def _missing(folder: AnyPath) -> MissingRun:
    return MissingRun(f"There is no run {os.fspath(folder)}: No such file or directory.")


def run_folders(store: AnyPath) -> list[str]:
    """Paths of all that is named like a run in a store, in the order of their ids."""
    try:
        names: set[str] = set()
        # Twice, since a run that is being replaced is for a moment in neither place.
        for _ in range(2):
            with os.scandir(store) as entries:
                names |= {e.name for e in entries if is_id(e.name)}
            names |= {identity for identity, _ in _runs_aside(store)}
    except OSError as error:
        raise StoreError(f"{os.fspath(store)} cannot be listed: {error}.") from error
    return [os.path.join(store, name) for name in sorted(names)]


def is_store(folder: Path) -> bool:
    """Return whether a folder holds runs as ``write_run`` stores them."""
    with os.scandir(folder) as entries:
        return any(is_id(e.name) and os.path.lexists(f"{e.path}/{RECORD}") for e in entries)


def replaced_id(name: str) -> str | None:
    """Id of the run that was moved aside under a name; None for names that no store makes.

    >>> replaced_id("0123456789abcdef0123.replaced-0123456789ab")
    '0123456789abcdef0123'
    >>> replaced_id("0123456789abcdef0123.replaced-my notes")
    """
    match = _is_replaced(name)
    return None if match is None else match[1]


def _runs_aside(store: AnyPath) -> list[tuple[str, str]]:
    """Id and path of each run that was moved aside to be replaced."""
    aside = os.path.join(store, ASIDE)
    found = []
    if is_folder(aside):
        with suppress(OSError), os.scandir(aside) as entries:
            for entry in entries:
                identity = replaced_id(entry.name)
                if identity is not None and entry.is_dir(follow_symlinks=False):
                    found.append((identity, entry.path))
    return found


def _looks(folder: AnyPath) -> Iterator[str]:
    """Give the places to look for a run, for as long as other processes replace it.

    A run that is replaced lies aside until its successor is in its place.
    """
    store, identity = os.path.split(folder)
    empty = 0
    for _ in range(_LOOKS):
        there = _identity(folder)
        if there is not None:
            yield os.fspath(folder)
            if _identity(folder) == there:
                return
        elif aside := [path for name, path in _runs_aside(store) if name == identity]:
            yield from aside
        elif (empty := empty + 1) == _EMPTY_LOOKS:
            return


def _identity(folder: AnyPath) -> tuple[int, int] | None:
    """Number and age of what is in a place; another run there has others."""
    try:
        about = os.lstat(folder)
    except OSError:
        return None
    return about.st_ino, about.st_ctime_ns


def array_of(folder: AnyPath, record: Mapping[str, Any], name: str) -> NDArray[Any]:
    """Read one array of a run and check it against its recorded checksum; nothing is unpickled."""
    data = read_part(folder, record, "arrays", name)
    return _as_array(data, os.path.join(folder, part_file("arrays", name)), REMEDY)


def read_labels(store: AnyPath, digest: str) -> NDArray[Any]:
    """Read labels that runs of a store share; their name is their checksum."""
    path = os.path.join(store, LABELS, f"{digest}.npy")
    remedy = "Restore it, or store these labels again: run the study, or call write_labels."
    return _as_array(read_checked(path, digest, remedy), path, remedy)


def read_part(folder: AnyPath, record: Mapping[str, Any], kind: str, name: str) -> bytes:
    """Read an array or checkpoint of a run (``kind`` is "arrays" or "files").

    Raises
    ------
    MissingRun, ReplacedRun
        If the run was deleted, or replaced by another, since its record was read.
    StoreError
        If the file is missing or damaged.
    """
    checksum = record[kind][name]["sha256"]
    for _ in range(_LOOKS):
        there, problem = _identity(folder), None
        for place in _looks(folder):
            try:
                return read_checked(os.path.join(place, part_file(kind, name)), checksum)
            except StoreError as error:
                problem = error
        if problem is None:
            raise _missing(folder)
        try:
            now = read_record(folder)[kind].get(name, {}).get("sha256")
        except StoreError:
            raise problem from None
        if now != checksum:
            break
        if _identity(folder) == there:
            raise problem  # else it was replaced, and by a run like the first: look again
    raise ReplacedRun(f"{os.fspath(folder)} was replaced by another run while it was read: read the store again.")


def missing_file(folder: AnyPath, record: Mapping[str, Any]) -> str | None:
    """Name of a file that a record says is there and is not; None if all are."""
    files = [part_file(kind, name) for kind in ("arrays", "files") for name in record[kind]]
    gone = None
    for place in _looks(folder):
        gone = next((file for file in files if not is_file(os.path.join(place, file))), None)
        if gone is None:
            break
    return gone


def _as_array(data: bytes, path: str, remedy: str) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    except Exception as error:  # numpy parses the header as Python, which can fail in many ways
        # A header may claim more than there is.
        large = ", or one that is too large for this machine" if isinstance(error, MemoryError) else ""
        raise StoreError(f"{path} is not an array{large}: {error}. {remedy}") from error
    return array


def read_checked(path: AnyPath, checksum: object, remedy: str = REMEDY) -> bytes:
    """Read a file and check it against its recorded checksum."""
    path = os.fspath(path)
    try:
        data = read_file(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error}. {remedy}") from error
    if hashlib.sha256(data).hexdigest() != checksum:
        raise StoreError(f"{path} is damaged: its checksum is not the recorded one. {remedy}")
    return data


def read_file(path: str, most: int | None = None) -> bytes:
    """Read a file that is one, in a folder that is one: no pipe, device or link."""
    handle = _open(path)
    try:
        about = os.fstat(handle)
        _check_plain(about)
        if most is not None and about.st_size > most:
            raise OSError(f"it has {about.st_size:,} bytes, and {most:,} are the most")
        # One byte more than its size, so that a file that grows meanwhile is noticed.
        data = os.read(handle, about.st_size + 1)
        if len(data) == about.st_size:
            return data
        parts = [data]  # large files come in parts
        while parts[-1]:
            parts.append(os.read(handle, about.st_size + 1))
        return b"".join(parts)
    finally:
        os.close(handle)


def open_file(path: AnyPath) -> IO[bytes]:
    """Open a file that is one, in a folder that is one, as :func:`read_file` does."""
    handle = _open(os.fspath(path))
    try:
        _check_plain(os.fstat(handle))
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def _check_plain(about: os.stat_result) -> None:
    if not stat.S_ISREG(about.st_mode):
        raise OSError("it is no plain file")


def _open(path: str) -> int:
    folder, name = os.path.split(path)
    if not OPENS_IN_FOLDERS:
        if os.path.islink(path) or os.path.islink(folder):
            raise OSError("it is a link, and a store holds plain files and folders")
        return os.open(path, _OPEN)
    at = open_folder(folder or os.curdir)
    try:
        with _no_link(path):
            return os.open(name, _OPEN, dir_fd=at)
    finally:
        os.close(at)


def open_folder(path: AnyPath) -> int:
    """Open a folder that is one, to open or delete what is in it."""
    with _no_link(path):
        return os.open(path, _OPEN_FOLDER)


@contextmanager
def _no_link(path: AnyPath) -> Iterator[None]:
    """Say of a path that cannot be opened that it is a link, if it is one."""
    try:
        yield
    except OSError as error:
        if os.path.islink(path):
            raise OSError("it is a link, and a store holds plain files and folders") from error
        raise


def is_folder(path: AnyPath) -> bool:
    """Return whether there is a folder, and no link to one."""
    try:
        about = os.lstat(path)
    except OSError:
        return False
    junction = getattr(about, "st_reparse_tag", 0) == getattr(stat, "IO_REPARSE_TAG_MOUNT_POINT", 1)
    return stat.S_ISDIR(about.st_mode) and not junction


def is_file(path: AnyPath) -> bool:
    """Return whether there is a file, and no link, pipe or device."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


@contextmanager
def without_collecting() -> Iterator[None]:
    """Keep Python from looking for garbage, in vain and over and over, while much is made."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def read_copy(path: Path, what: str = "a study's data") -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Read a copy of the data that a function made, and check it against its recorded digest.

    Returns
    -------
    arrays : dict of str to ndarray
        Those of :data:`COPY_ARRAYS` that it has.
    about : dict
        The other fields of the data (:data:`COPY_FIELDS`), the function and when it was called.
    """
    about = read_about(path, what)
    with unreadable_data(path, what):
        names, get = npz_arrays(path, open_file)
        arrays = {name: get(name) for name in COPY_ARRAYS if name in names}
        for name in COPY_FIELDS:
            about[name]  # raises a KeyError that names the field
        if data_digest([data_digest(arrays["x"]), data_digest(arrays["y"])]) != about.get("digest"):
            raise ValueError("its examples are not those recorded")
    return arrays, about


def read_about(path: Path, what: str = "a study's data") -> dict[str, Any]:
    """Read the description that a copy of data has beside its arrays."""
    with unreadable_data(path, what):
        _, get = npz_arrays(path, open_file)
        found = json.loads(str(get("about")))
        if not isinstance(found, dict):
            raise ValueError("it does not say what it holds")
    return found


@contextmanager
def unreadable_data(path: Path, what: str = "a study's data") -> Iterator[None]:
    """Turn any error of reading a copy of data into a StoreError with a remedy."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        if isinstance(error, OSError):
            reason = os_reason(error, place=False)
        # The store writes uncompressed files, so that allowing larger ones is no remedy here.
        reason = reason.partition(": pass allow_large")[0].removesuffix(".")
        raise StoreError(
            f"{path} cannot be read: {reason}. It is a copy of {what}: remove it, and run the study again."
        ) from error
