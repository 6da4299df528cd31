"""The record of a run as bytes: what goes into ``record.json`` and the arrays beside it."""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError, StoreError

SCHEMA = 1
RECORD, PREDICTIONS = "record.json", "predictions.npy"
STATUSES = ("done", "failed")
_REMEDY = "Restore it, or delete the run's folder to have the run made again."


def run_id(coordinates: Mapping[str, Any]) -> str:
    """Hash coordinates: 20 hexadecimal digits that do not depend on the order of the keys.

    >>> run_id({"n": 100, "learner": "a"}) == run_id({"learner": "a", "n": np.int64(100)})
    True
    """
    if not isinstance(coordinates, Mapping) or not coordinates:
        raise InputError(f"coordinates={coordinates!r}: pass a dict with at least one entry.")
    plain = jsonable(coordinates, "coordinates")
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def jsonable(value: Any, where: str) -> Any:
    """Convert numpy scalars, tuples and arrays; refuse what JSON would change or cannot hold."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        raise InputError(f"{where} is {value}, which JSON cannot hold: use None or a string.")
    if isinstance(value, list | tuple):
        return [jsonable(v, f"{where}[{i}]") for i, v in enumerate(value)]
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise InputError(f"{where} has the key {key!r}: keys must be strings.")
        return {key: jsonable(v, f"{where}[{key!r}]") for key, v in value.items()}
    raise InputError(
        f"{where} is a {type(value).__name__}: pass strings, numbers, bools, None, lists or dicts."
    )


def npy_bytes(predictions: ArrayLike) -> tuple[bytes, dict[str, Any]]:
    """Encode an array as a ``.npy`` file and say what is in it."""
    array = np.asarray(predictions)
    if array.dtype.hasobject:
        raise InputError(
            "predictions holds Python objects, which would need pickle: pass numbers, or strings "
            "of one type."
        )
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    data = buffer.getvalue()
    about = {
        "file": PREDICTIONS,
        "sha256": hashlib.sha256(data).hexdigest(),
        "shape": list(array.shape),
        "dtype": str(array.dtype),
    }
    return data, about


def metric_values(metrics: Mapping[str, float]) -> tuple[dict[str, float | None], list[str]]:
    """Replace what is not finite by None, and say so."""
    values: dict[str, float | None] = {}
    lost = []
    for name, value in metrics.items():
        try:
            number = float(value)
        except (TypeError, ValueError) as error:
            raise InputError(f"metrics[{name!r}] is {value!r}: pass a number.") from error
        values[str(name)] = number if math.isfinite(number) else None
        if not math.isfinite(number):
            lost.append(f"metrics[{name!r}] was {number} and is stored as null.")
    return values, lost


def error_text(status: str, error: str | BaseException | None) -> str | None:
    """Check that status and error agree, and write the error as text."""
    if status not in STATUSES:
        raise InputError(f"status={status!r} is not known: use 'done' or 'failed'.")
    if status == "done" and error is not None:
        raise InputError("error is given although status='done': use status='failed'.")
    if isinstance(error, BaseException):
        return f"{type(error).__name__}: {error}"
    return error


def read_record(path: Path) -> dict[str, Any]:
    """Read a ``record.json`` and check that it is one and belongs to its folder."""
    try:
        record = json.loads(path.read_bytes(), parse_constant=_refuse_constant)
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"{path} cannot be read: {error}. {_REMEDY}") from error
    if not isinstance(record, dict) or not isinstance(record.get("schema"), int):
        raise StoreError(f"{path} is not the record of a run. {_REMEDY}")
    if record["schema"] != SCHEMA:
        raise StoreError(
            f"{path} has schema {record['schema']} and this curvewise reads {SCHEMA}: use the "
            "version that wrote it."
        )
    _check_fields(record, path)
    return record


def _check_fields(record: Mapping[str, Any], path: Path) -> None:
    kinds = {"coordinates": dict, "metrics": dict, "environment": dict, "arrays": dict}
    wrong = [k for k, kind in (kinds | {"notes": list}).items() if type(record.get(k)) is not kind]
    if wrong or record.get("status") not in STATUSES:
        raise StoreError(f"{path} lacks {', '.join(wrong) or 'a known status'}. {_REMEDY}")
    try:
        belongs = run_id(record["coordinates"]) == path.parent.name
    except InputError:
        belongs = False
    if not belongs:
        raise StoreError(
            f"{path} does not belong in a folder of this name: its coordinates or the folder's "
            f"name were changed. {_REMEDY}"
        )


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def read_array(path: Path, about: Mapping[str, Any]) -> NDArray[Any]:
    """Read a ``.npy`` file and check it against its recorded checksum."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error}. {_REMEDY}") from error
    if hashlib.sha256(data).hexdigest() != about.get("sha256"):
        raise StoreError(f"{path} is damaged: its checksum is not the recorded one. {_REMEDY}")
    try:
        array: NDArray[Any] = np.load(io.BytesIO(data), allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise StoreError(f"{path} is not an array: {error}. {_REMEDY}") from error
    return array
