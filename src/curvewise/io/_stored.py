"""Stored runs as they lie on disk: records, arrays and labels, checked when read."""

from __future__ import annotations

import ast
import gc
import hashlib
import io
import json
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import StoreError

SCHEMA = 1
RECORD = "record.json"
LABELS = "labels"
"""Folder of a store for the true classes, which many runs share."""
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
_MOST = sys.float_info.max
REMEDY = "Restore it, or delete the run's folder to have the run made again."

_is_name = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}").fullmatch
_is_id = re.compile(r"[0-9a-f]{20}").fullmatch
_is_digest = re.compile(r"[0-9a-f]{64}").fullmatch
_decode = json.JSONDecoder(parse_constant=lambda name: _refuse_constant(name)).decode
_write = json.JSONEncoder(sort_keys=True, indent=1, allow_nan=False).encode
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


class UnknownSchema(StoreError):
    """A record is whole, and of a version that this curvewise does not know."""


def run_folders(store: str | os.PathLike[str]) -> list[str]:
    """Paths of all that is named like a run in a store, in the order of their ids."""
    try:
        with os.scandir(store) as entries:
            return sorted(e.path for e in entries if _is_id(e.name))
    except OSError as error:
        raise StoreError(f"{os.fspath(store)} cannot be listed: {error}.") from error


def is_store(folder: Path) -> bool:
    """Whether a folder holds runs as ``write_run`` stores them."""
    with os.scandir(folder) as entries:
        return any(_is_id(e.name) and os.path.lexists(f"{e.path}/{RECORD}") for e in entries)


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
    with without_collecting():
        return {path: read_record(path) for path in run_folders(store)}


def read_record(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the record in a run's folder and check that it is whole and belongs there."""
    path = os.path.join(folder, RECORD)
    if os.path.islink(folder):
        raise StoreError(f"{os.fspath(folder)} is a link and no run's folder. {REMEDY}")
    try:
        data = _read(path)
        record = _decode(data.decode())
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"{path} cannot be read: {error}. {REMEDY}") from error
    if not isinstance(record, dict) or not isinstance(record.get("schema"), int):
        raise StoreError(f"{path} is not the record of a run. {REMEDY}")
    whole = _is_whole(record, data)
    if record["schema"] != SCHEMA and (whole or not is_guarded(record)):
        raise UnknownSchema(
            f"{path} has schema {record['schema']} and this curvewise reads {SCHEMA}: use the "
            "version that wrote it."
        )
    for name in _LATER:
        record.setdefault(name, {})
    home = os.path.basename(folder)
    if not _is_id(home):  # a path such as "."
        home = os.path.basename(os.path.abspath(folder))
    _check_fields(record, path, home, whole)
    return record


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
    if whole and is_guarded(record):
        belongs = record.get("id") == home
    else:
        belongs = has_id(record["coordinates"], home)
    if not belongs:
        raise StoreError(
            f"{path} does not belong in a folder of this name: its coordinates or the folder's "
            f"name were changed. {REMEDY}"
        )
    if not whole:
        raise StoreError(f"{path} is damaged: its checksum is not the recorded one. {REMEDY}")
    described = [_is_name(k) and _is_array(v) for k, v in record["arrays"].items()]
    described += [_is_name(k) and _is_file(v) for k, v in record["files"].items()]
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


def _is_file(about: object) -> bool:
    if not isinstance(about, dict):
        return False
    return isinstance(about.get("file"), str) and _is_hash(about.get("sha256"))


def _is_array(about: Any) -> bool:
    if not _is_file(about) or not isinstance(about.get("shape"), list):
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


def read_checked(path: str | os.PathLike[str], checksum: object, remedy: str = REMEDY) -> bytes:
    """Read a file and check it against its recorded checksum."""
    path = os.fspath(path)
    try:
        data = _read(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error}. {remedy}") from error
    if hashlib.sha256(data).hexdigest() != checksum:
        raise StoreError(f"{path} is damaged: its checksum is not the recorded one. {remedy}")
    return data


def _read(path: str) -> bytes:
    """Read a file that is one: no pipe, device or link."""
    try:
        handle = os.open(path, _OPEN)
    except OSError as error:
        if os.path.islink(path):
            raise OSError("it is a link, and a store holds files only") from error
        raise
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            raise OSError("it is no plain file")
        data = os.read(handle, about.st_size + 1)
        if len(data) == about.st_size:
            return data
        parts = [data]  # large files come in parts
        while parts[-1]:
            parts.append(os.read(handle, about.st_size + 1))
        return b"".join(parts)
    finally:
        os.close(handle)


def read_array(
    path: str | os.PathLike[str], checksum: object, remedy: str = REMEDY
) -> NDArray[Any]:
    """Read a ``.npy`` file and check it against its recorded checksum; nothing is unpickled."""
    data = read_checked(path, checksum, remedy)
    try:
        array: NDArray[Any] = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    except MemoryError as error:  # a header may claim more than there is
        raise StoreError(
            f"{os.fspath(path)} is not an array, or one that is too large for this machine: "
            f"{error}. {remedy}"
        ) from error
    except Exception as error:  # numpy parses the header as Python, which can fail in many ways
        raise StoreError(f"{os.fspath(path)} is not an array: {error}. {remedy}") from error
    return array


def read_labels(store: str | os.PathLike[str], digest: str) -> NDArray[Any]:
    """Read labels that runs of a store share; their name is their checksum."""
    path = os.path.join(store, LABELS, f"{digest}.npy")
    return read_array(
        path,
        digest,
        "Restore it, or store these labels again: run the study, or call write_labels.",
    )


def array_of(folder: Path, record: Mapping[str, Any], name: str) -> NDArray[Any]:
    """Read one array of a run."""
    return read_array(folder / f"{name}.npy", record["arrays"][name].get("sha256"))
