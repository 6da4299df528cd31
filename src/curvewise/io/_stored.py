"""Stored runs as they lie on disk: records, arrays and labels, checked when read."""

from __future__ import annotations

import gc
import hashlib
import io
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
    """Paths of the runs in a store, in the order of their ids."""
    try:
        with os.scandir(store) as entries:
            return sorted(e.path for e in entries if _is_id(e.name) and e.is_dir())
    except OSError as error:
        raise StoreError(f"{os.fspath(store)} cannot be listed: {error}.") from error


def is_store(folder: Path) -> bool:
    """Whether a folder holds runs as ``write_run`` stores them."""
    with os.scandir(folder) as entries:
        return any(_is_id(e.name) and os.path.isfile(f"{e.path}/{RECORD}") for e in entries)


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
    try:
        with open(path, "rb", buffering=0) as file:
            data = file.read()
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
        belongs = _has_id(record["coordinates"], home)
    if not belongs:
        raise StoreError(
            f"{path} does not belong in a folder of this name: its coordinates or the folder's "
            f"name were changed. {REMEDY}"
        )
    if not whole:
        raise StoreError(f"{path} is damaged: its checksum is not the recorded one. {REMEDY}")
    described = [*record["arrays"].items(), *record["files"].items()]
    if not all(_is_name(k) and isinstance(v, dict) for k, v in described):
        raise StoreError(f"{path} describes no arrays or files that a run can have. {REMEDY}")
    if not all(_is_name(k) and _is_digest(str(v)) for k, v in record["labels"].items()):
        raise StoreError(f"{path} names no labels that a store can have. {REMEDY}")


def _has_id(coordinates: Mapping[str, Any], home: str) -> bool:
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
        with open(path, "rb", buffering=0) as file:
            data = file.read()
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error}. {remedy}") from error
    if hashlib.sha256(data).hexdigest() != checksum:
        raise StoreError(f"{path} is damaged: its checksum is not the recorded one. {remedy}")
    return data


def read_array(
    path: str | os.PathLike[str], checksum: object, remedy: str = REMEDY
) -> NDArray[Any]:
    """Read a ``.npy`` file and check it against its recorded checksum; nothing is unpickled."""
    data = read_checked(path, checksum, remedy)
    try:
        array: NDArray[Any] = np.load(io.BytesIO(data), allow_pickle=False)
    except (ValueError, EOFError, OSError, SyntaxError) as error:
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
