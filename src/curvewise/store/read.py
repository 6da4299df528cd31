"""One stored run."""

from __future__ import annotations

import ast
import gc
import hashlib
import io
import json
import math
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, MissingDependencyError, StoreError, parse_reason


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
        if name not in self.arrays:
            self._lacks("array", name, self.arrays)
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
        if name not in self.files:
            self._lacks("checkpoint", name, self.files)
        path = self.path / part_file("files", name)
        data = read_part(self.path, {"files": self.files}, "files", name)
        try:
            from safetensors.numpy import load
        except ModuleNotFoundError as error:
            raise MissingDependencyError(
                f"Reading {path} needs safetensors, which is not installed: pip install "
                'safetensors, or "curvewise[torch]".'
            ) from error
        try:
            weights: dict[str, NDArray[Any]] = load(data)
        except Exception as error:  # safetensors has errors of its own, and lets numpy's through
            raise StoreError(f"{path} is no safetensors file: {error}. {REMEDY}") from error
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
        if evaluation not in self.label_digests:
            self._lacks("set of labels", evaluation, self.label_digests)
        return read_labels(self.path.parent, self.label_digests[evaluation])

    def _lacks(self, what: str, name: str, there: Mapping[str, Any]) -> NoReturn:
        known = ", ".join(map(repr, sorted(there))) or "none"
        raise InputError(f"Run {self.id} has no {what} {name!r}; there is {known}.")


# Stored runs as they lie on disk: records, arrays and labels, checked when read.

SCHEMA = 1
RECORD = "record.json"
LABELS = "labels"
"""Folder of a store for the true classes, which many runs share."""
DATA = "data"
"""Folder of a store for copies of a study's examples."""
ASIDE = ".partial"
"""Folder of a store for what is being written; inside it, so that a rename crosses no disks."""
REPLACED = ".replaced-"
"""Marks a run that was moved aside, and goes back unless its successor comes."""
MOST_RECORD = 16_000_000
"""Bytes of a record; none that a study writes has a thousandth of it."""
MOST_DEPTH = 64
"""Levels of lists and dicts in a record."""
CHECKSUM = "sha256"
"""Field of a record that guards the others."""
STATUSES = ("done", "failed")
SEARCH = "rate-search/"
"""How the recipe of a run begins that only searched for a learning rate."""
_KINDS = {
    "coordinates": dict,
    "metrics": dict,
    "environment": dict,
    "arrays": dict,
    "notes": list,
    "files": dict,
    "labels": dict,
}
_LATER = ("files", "labels")  # fields that the first records did not have
_FIRST = {*_KINDS, "schema", "id", "status", "error"} - {*_LATER}
# Opening a pipe would wait for a writer, and a link leads out of the store; not every system
# knows all of these.
_OPEN = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_OPEN |= getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
_OPEN_FOLDER = _OPEN | getattr(os, "O_DIRECTORY", 0)
OPENS_IN_FOLDERS = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
"""Whether the system opens a file in an opened folder, which no link can be put in place of."""
_LOOKS = 5  # each must meet another replacement of the run for a look to fail
_MOST = sys.float_info.max
REMEDY = "Restore it, or delete the run's folder to have the run made again."

_is_name = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}").fullmatch
is_id = re.compile(r"[0-9a-f]{20}").fullmatch
_is_replaced = re.compile(r"([0-9a-f]{20})" + re.escape(REPLACED) + r"[0-9a-f]{12}").fullmatch
_is_digest = re.compile(r"[0-9a-f]{64}").fullmatch
_decode = json.JSONDecoder(
    parse_constant=lambda name: _refuse_constant(name), parse_float=lambda text: _number(text)
).decode
_write = json.JSONEncoder(sort_keys=True, indent=1, allow_nan=False).encode
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


class UnknownSchema(StoreError):
    """A record is whole, and of a version that this curvewise does not know."""


class MissingRun(StoreError):
    """There is no such run."""


class ReplacedRun(StoreError):
    """Another process replaced a run between two reads of it."""


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Whether there is a folder, and no link to one."""
    try:
        about = os.lstat(path)
    except OSError:
        return False
    junction = getattr(about, "st_reparse_tag", 0) == getattr(stat, "IO_REPARSE_TAG_MOUNT_POINT", 1)
    return stat.S_ISDIR(about.st_mode) and not junction


def is_file(path: str | os.PathLike[str]) -> bool:
    """Whether there is a file, and no link, pipe or device."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def open_folder(path: str | os.PathLike[str]) -> int:
    """Open a folder that is one, to open or delete what is in it."""
    try:
        return os.open(path, _OPEN_FOLDER)
    except OSError as error:
        if os.path.islink(path):
            raise OSError("it is a link, and a store holds plain files and folders") from error
        raise


def run_folders(store: str | os.PathLike[str]) -> list[str]:
    """Paths of all that is named like a run in a store, in the order of their ids."""
    try:
        # Twice, since a run that is being replaced is for a moment in neither place.
        names = {*_run_names(store), *_names_aside(store), *_run_names(store)}
    except OSError as error:
        raise StoreError(f"{os.fspath(store)} cannot be listed: {error}.") from error
    return [os.path.join(store, name) for name in sorted(names)]


def _run_names(store: str | os.PathLike[str]) -> list[str]:
    with os.scandir(store) as entries:
        return [e.name for e in entries if is_id(e.name)]


def _names_aside(store: str | os.PathLike[str]) -> list[str]:
    """Ids of the runs that were moved aside to be replaced."""
    return [identity for identity, _ in _runs_aside(store)]


def _runs_aside(store: str | os.PathLike[str]) -> list[tuple[str, str]]:
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


def replaced_id(name: str) -> str | None:
    """Id of the run that was moved aside under a name; None for names that no store makes.

    >>> replaced_id("0123456789abcdef0123.replaced-0123456789ab")
    '0123456789abcdef0123'
    >>> replaced_id("0123456789abcdef0123.replaced-my notes")
    """
    match = _is_replaced(name)
    return None if match is None else match[1]


def _looks(folder: str | os.PathLike[str]) -> Iterator[str]:
    """Where to look for a run, for as long as other processes replace it.

    A run that is replaced lies aside until its successor is in its place.
    """
    store, identity = os.path.split(folder)
    for _ in range(_LOOKS):
        there = _identity(folder)
        if there is None:
            yield from (path for name, path in _runs_aside(store) if name == identity)
        else:
            yield os.fspath(folder)
            if _identity(folder) == there:
                return


def _identity(folder: str | os.PathLike[str]) -> tuple[int, int] | None:
    """Number and age of what is in a place; another run there has others."""
    try:
        about = os.lstat(folder)
    except OSError:
        return None
    return about.st_ino, about.st_ctime_ns


def is_store(folder: Path) -> bool:
    """Whether a folder holds runs as ``write_run`` stores them."""
    with os.scandir(folder) as entries:
        return any(is_id(e.name) and os.path.lexists(f"{e.path}/{RECORD}") for e in entries)


def is_search(record: Mapping[str, Any]) -> bool:
    """Whether a run only searched for a learning rate."""
    return str(record["coordinates"].get("recipe", "")).startswith(SEARCH)


def coordinates_id(coordinates: Mapping[str, Any]) -> str:
    """Hash of coordinates that are plain JSON; the name of the run's folder."""
    return hashlib.sha256(_encode(coordinates).encode()).hexdigest()[:20]


def record_text(record: Mapping[str, Any]) -> bytes:
    """A record as its file has it."""
    return _write(record).encode() + b"\n"


def record_checksum(record: Mapping[str, Any]) -> str:
    """Hash of the file that all other fields would make."""
    rest = {key: value for key, value in record.items() if key != CHECKSUM}
    return hashlib.sha256(record_text(rest)).hexdigest()


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


def read_records(store: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """Read the records of all runs in a store, by the paths of their folders."""
    found = {}
    with without_collecting():
        for path in run_folders(store):
            with suppress(MissingRun):  # it was deleted since the store was listed
                found[path] = read_record(path)
    return found


def read_record(folder: str | os.PathLike[str]) -> dict[str, Any]:
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
            return _read_record(place, home)
        except UnknownSchema:
            raise
        except StoreError as error:
            problem = error
    raise problem or _missing(folder)


def _missing(folder: str | os.PathLike[str]) -> MissingRun:
    return MissingRun(f"There is no run {os.fspath(folder)}: No such file or directory.")


def _read_record(folder: str, home: str) -> dict[str, Any]:
    path = os.path.join(folder, RECORD)
    try:
        data = read_file(path, MOST_RECORD)
        record = _decode(data.decode())
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"{path} cannot be read: {parse_reason(error)}. {REMEDY}") from error
    if data.count(b"{") + data.count(b"[") > MOST_DEPTH and depth_of(record) > MOST_DEPTH:
        raise StoreError(f"{path} is not the record of a run: it has more than {MOST_DEPTH} levels. {REMEDY}")
    if not isinstance(record, dict) or not isinstance(record.get("schema"), int):
        raise StoreError(f"{path} is not the record of a run. {REMEDY}")
    whole = _is_whole(record, data)
    if record["schema"] != SCHEMA and (whole or not is_guarded(record)):
        raise UnknownSchema(
            f"{path} has schema {record['schema']} and this curvewise reads {SCHEMA}: use the version that wrote it."
        )
    for name in _LATER:
        record.setdefault(name, {})
    _check_fields(record, path, home, whole)
    return record


def depth_of(value: object) -> int:
    """Levels of lists and dicts, without calling itself, which deep ones would not survive.

    >>> depth_of({"a": [1, [2]]}), depth_of(1)
    (3, 0)
    """
    depth, level = 0, [value]
    while level := [v for v in level if isinstance(v, dict | list)]:
        depth += 1
        level = [w for v in level for w in (v.values() if isinstance(v, dict) else v)]
    return depth


def is_guarded(record: Mapping[str, Any]) -> bool:
    """Whether a record has a checksum of its own, which the first ones had not."""
    return CHECKSUM in record


def _is_whole(record: Mapping[str, Any], data: bytes) -> bool:
    if not is_guarded(record):
        return record.keys() <= _FIRST
    checksum = str(record[CHECKSUM])
    # Dropping a line is quicker than writing the record anew, which is only needed where somebody
    # changed the white space.
    rest = data.replace(f'\n "{CHECKSUM}": "{checksum}",\n'.encode(errors="replace"), b"\n", 1)
    if hashlib.sha256(rest).hexdigest() == checksum:
        return True
    try:
        return checksum == record_checksum(record)
    except (ValueError, RecursionError):
        return False


def _check_fields(record: dict[str, Any], path: str, home: str, whole: bool) -> None:
    wrong = [k for k, kind in _KINDS.items() if type(record.get(k)) is not kind]
    if wrong or record.get("status") not in STATUSES:
        raise StoreError(f"{path} lacks {', '.join(wrong) or 'a known status'}. {REMEDY}")
    belongs = record.get("id") == home if whole and is_guarded(record) else has_id(record["coordinates"], home)
    if not belongs:
        raise StoreError(
            f"{path} does not belong in a folder of this name: its coordinates or the folder's "
            f"name were changed. {REMEDY}"
        )
    if not whole:
        raise StoreError(f"{path} is damaged: its checksum is not the recorded one. {REMEDY}")
    described = [_is_name(k) and _is_array(k, v) for k, v in record["arrays"].items()]
    described += [_is_name(k) and _is_part(k, v, "files") for k, v in record["files"].items()]
    if not all(described):
        raise StoreError(f"{path} describes no arrays or files that a run can have. {REMEDY}")
    if not all(_is_name(k) and _is_hash(v) for k, v in record["labels"].items()):
        raise StoreError(f"{path} names no labels that a store can have. {REMEDY}")
    strange = _strange_result(record) or strange_environment(record["environment"])
    if strange:
        raise StoreError(f"{path} is damaged: it has {strange}. {REMEDY}")


def _strange_result(record: Mapping[str, Any]) -> str | None:
    for value in record["metrics"].values():
        if value is not None and not (type(value) in (int, float) and -_MOST <= value <= _MOST):
            return "metrics that are no numbers"
    if not isinstance(record.get("error"), str | None):
        return "an error that is no text"
    if not all(isinstance(note, str) for note in record["notes"]):
        return "notes that are no texts"
    return None


def strange_environment(environment: Mapping[str, Any]) -> str | None:
    """Say which of the entries that are read again is of no use; None if all are."""
    if "attempts" in environment and not _is_count(environment["attempts"]):
        return "attempts that are no whole number"
    known = environment.get("evaluations", {})
    if not isinstance(known, dict) or not all(isinstance(v, str) for v in known.values()):
        return "evaluations that are no dict of texts"
    return None


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_hash(value: object) -> bool:
    return isinstance(value, str) and _is_digest(value) is not None


def part_file(kind: str, name: str) -> str:
    """Name of the file with an array or checkpoint; records repeat it, and may say no other.

    >>> part_file("arrays", "predictions"), part_file("files", "end")
    ('predictions.npy', 'end.safetensors')
    """
    return f"{name}.npy" if kind == "arrays" else f"{name}.safetensors"


def _is_part(name: str, about: object, kind: str) -> bool:
    if not isinstance(about, dict):
        return False
    return about.get("file") == part_file(kind, name) and _is_hash(about.get("sha256"))


def _is_array(name: str, about: Any) -> bool:
    if not _is_part(name, about, "arrays") or not isinstance(about.get("shape"), list):
        return False
    dtype = about.get("dtype")
    return all(map(_is_count, about["shape"])) and isinstance(dtype, str) and _is_dtype(dtype)


@lru_cache(maxsize=256)
def _is_dtype(name: str) -> bool:
    """Whether numpy has such a type, and arrays of it hold no Python objects."""
    try:
        return not np.dtype(ast.literal_eval(name) if name[:1] in ("[", "{") else name).hasobject
    except (TypeError, ValueError, SyntaxError, OverflowError, MemoryError, RecursionError):
        return False


def has_id(coordinates: Mapping[str, Any], home: str) -> bool:
    """Whether a folder's name is the hash of these coordinates."""
    try:
        return coordinates_id(coordinates) == home
    except (ValueError, RecursionError):
        return False


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text[:20]} is too large")
    return number


def read_checked(path: str | os.PathLike[str], checksum: object, remedy: str = REMEDY) -> bytes:
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
        data = os.read(handle, about.st_size + 1)
        if len(data) == about.st_size:
            return data
        parts = [data]  # large files come in parts
        while parts[-1]:
            parts.append(os.read(handle, about.st_size + 1))
        return b"".join(parts)
    finally:
        os.close(handle)


def open_file(path: str | os.PathLike[str]) -> IO[bytes]:
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
        return os.open(name, _OPEN, dir_fd=at)
    except OSError as error:
        if os.path.islink(path):
            raise OSError("it is a link, and a store holds plain files and folders") from error
        raise
    finally:
        os.close(at)


def read_labels(store: str | os.PathLike[str], digest: str) -> NDArray[Any]:
    """Read labels that runs of a store share; their name is their checksum."""
    path = os.path.join(store, LABELS, f"{digest}.npy")
    remedy = "Restore it, or store these labels again: run the study, or call write_labels."
    return _as_array(read_checked(path, digest, remedy), path, remedy)


def array_of(folder: str | os.PathLike[str], record: Mapping[str, Any], name: str) -> NDArray[Any]:
    """Read one array of a run and check it against its recorded checksum; nothing is unpickled."""
    data = read_part(folder, record, "arrays", name)
    return _as_array(data, os.path.join(folder, part_file("arrays", name)), REMEDY)


def read_part(folder: str | os.PathLike[str], record: Mapping[str, Any], kind: str, name: str) -> bytes:
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
        there = _identity(folder)
        try:
            return _read_part(folder, part_file(kind, name), checksum)
        except MissingRun:
            raise
        except StoreError as error:
            problem = error
        try:
            now = read_record(folder)[kind].get(name, {}).get("sha256")
        except StoreError:
            raise problem from None
        if now != checksum:
            break
        if _identity(folder) == there:
            raise problem  # else it was replaced, and by a run like the first: look again
    raise ReplacedRun(f"{os.fspath(folder)} was replaced by another run while it was read: read the store again.")


def _read_part(folder: str | os.PathLike[str], file: str, checksum: str) -> bytes:
    problem: StoreError | None = None
    for place in _looks(folder):
        try:
            return read_checked(os.path.join(place, file), checksum)
        except StoreError as error:
            problem = error
    raise problem or _missing(folder)


def missing_file(folder: str | os.PathLike[str], record: Mapping[str, Any]) -> str | None:
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
    except MemoryError as error:  # a header may claim more than there is
        raise StoreError(
            f"{path} is not an array, or one that is too large for this machine: {error}. {remedy}"
        ) from error
    except Exception as error:  # numpy parses the header as Python, which can fail in many ways
        raise StoreError(f"{path} is not an array: {error}. {remedy}") from error
    return array
