"""The record of a run: its id, its fields and what they may hold, its arrays and weights as bytes."""

from __future__ import annotations

import ast
import functools
import hashlib
import io
import json
import math
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from types import CodeType, FunctionType, MethodType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError, StoreError, importing, parse_reason

SCHEMA = 1
RECORD = "record.json"
CHECKSUM = "sha256"
"""Field of a record that guards the others."""
STATUSES = ("done", "failed")
PREDICTIONS, TEST = "predictions", "test"
SEARCH = "rate-search/"
"""First letters of the recipe of a run that only searched for a learning rate."""
REMEDY = "Restore it, or delete the run's folder to have the run made again."

MOST_RECORD = 16_000_000
"""Bytes of a record; a study's records have less than a thousandth of it."""
MOST_DEPTH = 64
"""Levels of lists and dicts in a record."""
MOST_LETTERS = 64
MOST_BITS = 13_000
"""Of a whole number; Python reads at most 4,300 digits."""
MOST_ERROR = 1_000_000
"""Letters of an error that are kept: its beginning, and more of its end, which says what it is."""
DEEPEST = 20
"""Levels of nested parameters in a fingerprint; deeper ones are named by their type only."""
PACKAGES = ("curvewise", "numpy", "scipy", "scikit-learn", "joblib", "torch", "transformers")

Encoded: TypeAlias = "dict[str, tuple[bytes, dict[str, Any]]]"
"""Arrays or weights by name: the bytes of the file, and its entry in the record."""

_KINDS = {"coordinates": dict, "metrics": dict, "environment": dict, "arrays": dict, "notes": list}
_KINDS |= {"files": dict, "labels": dict}
# The first records had neither of these fields, nor a checksum of their own: they stay readable.
_LATER = ("files", "labels")
_FIRST = {*_KINDS, "schema", "id", "status", "error"} - {*_LATER}
_MOST = sys.float_info.max

is_id = re.compile(r"[0-9a-f]{20}").fullmatch
_is_name = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}").fullmatch
_is_digest = re.compile(r"[0-9a-f]{64}").fullmatch
_write = json.JSONEncoder(sort_keys=True, indent=1, allow_nan=False).encode
# Sorted keys and no spaces: the id of a run must not depend on the order in which keys were given.
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        problem = "is not JSON" if text.lstrip("-").isalpha() else "is too large a number"
        raise ValueError(f"{text[:20]} {problem}")
    return number


# NaN and Infinity are no JSON, although Python reads them; 1e999 would silently become infinity.
_decode = json.JSONDecoder(parse_constant=_finite, parse_float=_finite).decode


class UnknownSchema(StoreError):
    """A record is intact, but of a version that this curvewise does not know."""


def run_id(coordinates: Mapping[str, Any]) -> str:
    """Hash coordinates: 20 hexadecimal digits that do not depend on the order of the keys.

    >>> run_id({"n": 100, "learner": "a"}) == run_id({"learner": "a", "n": np.int64(100)})
    True
    """
    if not isinstance(coordinates, Mapping) or not coordinates:
        raise InputError("pass a dict with at least one entry.", argument="coordinates", value=coordinates)
    return _plain_id(jsonable(coordinates, "coordinates"))


def _plain_id(coordinates: Mapping[str, Any]) -> str:
    return hashlib.sha256(_encode(coordinates).encode()).hexdigest()[:20]


def has_id(coordinates: Mapping[str, Any], home: str) -> bool:
    """Return whether a folder's name is the hash of these coordinates, which are plain JSON."""
    try:
        return _plain_id(coordinates) == home
    except (ValueError, RecursionError):
        return False


def jsonable(value: Any, where: str, level: int = 2) -> Any:
    """Convert numpy scalars, tuples and arrays; refuse values that JSON would change or cannot hold."""
    # np.int64(100) and 100 must have the same hash, and so the same run.
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        if value.bit_length() <= MOST_BITS:
            return value
        raise InputError(f"{where} is a number of more than 4,000 digits: use a string.")
    if level > MOST_DEPTH:
        raise InputError(f"{where[:100]}… has more than {MOST_DEPTH} levels: use fewer.")
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        raise InputError(f"{where} is {value}, which JSON cannot hold: use None or a string.")
    if isinstance(value, list | tuple):
        return [jsonable(v, f"{where}[{i}]", level + 1) for i, v in enumerate(value)]
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise InputError(f"{where} has the key {key!r}: keys must be strings.")
        return {key: jsonable(v, f"{where}[{key!r}]", level + 1) for key, v in value.items()}
    raise InputError(f"{where} is a {type(value).__name__}: pass strings, numbers, bools, None, lists or dicts.")


def is_search(record: Mapping[str, Any]) -> bool:
    """Return whether a run only searched for a learning rate."""
    return str(record["coordinates"].get("recipe", "")).startswith(SEARCH)


def part_file(kind: str, name: str) -> str:
    """Name the file of an array or checkpoint; records repeat it, and may name no other.

    >>> part_file("arrays", "predictions"), part_file("files", "end")
    ('predictions.npy', 'end.safetensors')
    """
    return f"{name}.npy" if kind == "arrays" else f"{name}.safetensors"


def set_name(kind: str, evaluation: str) -> str:
    """Name an array or a metric of an evaluation set; those of the test set need no suffix.

    >>> set_name("predictions", "test"), set_name("predictions", "shifted")
    ('predictions', 'predictions.shifted')
    """
    return kind if evaluation == TEST else f"{kind}.{evaluation}"


# ---- Write a record


def record_bytes(record: dict[str, Any]) -> bytes:
    """Write a record as text, with the checksum that guards it; refuse one that could not be read back."""
    strange = _strange_environment(record["environment"])
    if strange:
        raise InputError(f"environment has {strange}, by which runs are looked up: leave them out.")
    return record_text(record | {CHECKSUM: record_checksum(record)})


def record_text(record: Mapping[str, Any]) -> bytes:
    """Write a record as its file holds it."""
    return _write(record).encode() + b"\n"


def record_checksum(record: Mapping[str, Any]) -> str:
    """Hash the file that all other fields would make."""
    rest = {key: value for key, value in record.items() if key != CHECKSUM}
    return hashlib.sha256(record_text(rest)).hexdigest()


def named_arrays(
    predictions: ArrayLike | Mapping[str, ArrayLike] | None, arrays: Mapping[str, ArrayLike] | None
) -> dict[str, ArrayLike]:
    """Give every array its name in the record; the test set's predictions need no suffix."""
    found: dict[str, ArrayLike] = {}
    if isinstance(predictions, Mapping):
        for name, values in predictions.items():
            check_name(name, "predictions")
            found[set_name(PREDICTIONS, name)] = values
    elif predictions is not None:
        found[PREDICTIONS] = predictions
    for name, values in (arrays or {}).items():
        check_name(name, "arrays", 2 * MOST_LETTERS)
        if name == PREDICTIONS or name.startswith(f"{PREDICTIONS}."):
            raise InputError(f"arrays has {name!r}: pass predictions as predictions=.")
        found[name] = values
    check_distinct(found, "arrays")
    return found


def check_name(name: object, argument: str, most: int = MOST_LETTERS) -> None:
    """Refuse a name that is no plain name of a file."""
    plain = isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name)
    if not plain or len(str(name)) > most:
        raise InputError(
            f"{argument} has the name {str(name)[:100]!r}: use at most {most} letters, digits, '_',"
            " '.' and '-', and begin with a letter or digit.",
            argument=argument,
        )


def check_distinct(names: Mapping[str, Any], argument: str) -> None:
    """Refuse names that are one and the same on file systems that ignore case."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise InputError(
                f"{argument} has both {other!r} and {name!r}: names differ by case only.", argument=argument
            )


def npy_bytes(values: ArrayLike, argument: str) -> tuple[bytes, dict[str, Any]]:
    """Encode an array as a ``.npy`` file and describe it."""
    array = _plain_array(values, argument)
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    data = buffer.getvalue()
    about = {"sha256": hashlib.sha256(data).hexdigest(), "shape": list(array.shape), "dtype": str(array.dtype)}
    return data, about


def weights_bytes(weights: Mapping[str, ArrayLike], argument: str) -> tuple[bytes, dict[str, Any]]:
    """Encode arrays by name as a safetensors file and describe it."""
    with importing(f"{argument}: storing weights needs safetensors", "torch"):
        from safetensors.numpy import save
    arrays = {}
    for name, values in weights.items():
        where = f"{argument}[{name!r}]"
        array = np.ascontiguousarray(_plain_array(values, where))
        arrays[str(name)] = array.reshape(np.shape(values))  # ascontiguousarray makes a number an array of one
        if array.dtype.kind not in "biuf":
            raise InputError(f"{where} is of {array.dtype}: weights are numbers.")
    try:
        data: bytes = save(arrays)
    except Exception as error:  # safetensors lets errors of numpy and of Rust through
        raise InputError(f"{argument} cannot be stored as safetensors: {error}.", argument=argument) from error
    return data, {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}


def _plain_array(values: ArrayLike, argument: str) -> NDArray[Any]:
    array = np.asarray(values)
    if array.dtype.hasobject and array.size and all(isinstance(value, str) for value in array.flat):
        array = array.astype(np.str_)  # texts as pandas holds them
    if array.dtype.hasobject:
        raise InputError(
            f"{argument} holds Python objects, which would need pickle: pass numbers, or strings of one type.",
            argument=argument,
        )
    return array


def metric_values(metrics: Mapping[str, float]) -> tuple[dict[str, float | None], list[str]]:
    """Replace values that are not finite by None, with a note for each."""
    values: dict[str, float] = {}
    for name, value in metrics.items():
        try:
            values[str(name)] = float(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError("must be a number.", argument=f"metrics[{name!r}]", value=value) from error
    lost = [f"metrics[{k!r}] was {v} and is stored as null." for k, v in values.items() if not math.isfinite(v)]
    return {k: v if math.isfinite(v) else None for k, v in values.items()}, lost


def error_text(error: str | BaseException | None) -> str | None:
    """Write an error as text, of which a long one loses its middle."""
    if isinstance(error, BaseException):
        error = f"{type(error).__name__}: {error}"
    if not isinstance(error, str | None):
        raise InputError("pass text, an exception or None.", argument="error", value=error)
    if error is not None and len(error) > MOST_ERROR:
        head, tail = MOST_ERROR // 10, MOST_ERROR - MOST_ERROR // 10
        return f"{error[:head]}\n[… {len(error) - MOST_ERROR:,} letters …]\n{error[-tail:]}"
    return error


# ---- Check a record


def parse_record(data: bytes, path: str, home: str) -> dict[str, Any]:
    """Decode a record and check that it is intact and belongs in the folder ``home``.

    Raises
    ------
    UnknownSchema
        If it is intact and of another version.
    StoreError
        If it is damaged; the message names ``path``.
    """
    try:
        record = _decode(data.decode())
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{path} cannot be read: {parse_reason(error)}. {REMEDY}") from error
    # Counting brackets is quick, and only a record with more of them can be too deep.
    if data.count(b"{") + data.count(b"[") > MOST_DEPTH and depth_of(record) > MOST_DEPTH:
        raise StoreError(f"{path} is not the record of a run: it has more than {MOST_DEPTH} levels. {REMEDY}")
    if not isinstance(record, dict) or not isinstance(record.get("schema"), int):
        raise StoreError(f"{path} is not the record of a run. {REMEDY}")
    intact = _is_intact(record, data)
    if record["schema"] != SCHEMA and (intact or not is_guarded(record)):
        raise UnknownSchema(
            f"{path} has schema {record['schema']} and this curvewise reads {SCHEMA}: use the version that wrote it."
        )
    for name in _LATER:
        record.setdefault(name, {})
    wrong = [k for k, kind in _KINDS.items() if type(record.get(k)) is not kind]
    if wrong or record.get("status") not in STATUSES:
        raise StoreError(f"{path} lacks {', '.join(wrong) or 'a known status'}. {REMEDY}")
    # A checksum covers the id; only a record without one needs the slower hash of its coordinates.
    own = intact and is_guarded(record)
    if not (record.get("id") == home if own else has_id(record["coordinates"], home)):
        raise StoreError(
            f"{path} does not belong in a folder of this name: its coordinates or the folder's "
            f"name were changed. {REMEDY}"
        )
    if not intact:
        raise StoreError(f"{path} is damaged: its checksum is not the recorded one. {REMEDY}")
    described = [_is_name(k) and _is_array(k, v) for k, v in record["arrays"].items()]
    described += [_is_name(k) and _is_part(k, v, "files") for k, v in record["files"].items()]
    if not all(described):
        raise StoreError(f"{path} describes no arrays or files that a run can have. {REMEDY}")
    if not all(_is_name(k) and _is_hash(v) for k, v in record["labels"].items()):
        raise StoreError(f"{path} names no labels that a store can have. {REMEDY}")
    strange = _strange_result(record) or _strange_environment(record["environment"])
    if strange:
        raise StoreError(f"{path} is damaged: it has {strange}. {REMEDY}")
    return record


def depth_of(value: object) -> int:
    """Count the levels of lists and dicts, without recursion, which deep ones would not survive.

    >>> depth_of({"a": [1, [2]]}), depth_of(1)
    (3, 0)
    """
    depth, level = 0, [value]
    while level := [v for v in level if isinstance(v, dict | list)]:
        depth += 1
        level = [w for v in level for w in (v.values() if isinstance(v, dict) else v)]
    return depth


def is_guarded(record: Mapping[str, Any]) -> bool:
    """Return whether a record has a checksum of its own, which the first ones had not."""
    return CHECKSUM in record


def _is_intact(record: Mapping[str, Any], data: bytes) -> bool:
    if not is_guarded(record):
        return record.keys() <= _FIRST
    checksum = str(record[CHECKSUM])
    # Dropping a line is quicker than writing the record again, which is only needed where white space was changed.
    rest = data.replace(f'\n "{CHECKSUM}": "{checksum}",\n'.encode(errors="replace"), b"\n", 1)
    if hashlib.sha256(rest).hexdigest() == checksum:
        return True
    try:
        return checksum == record_checksum(record)
    except (ValueError, RecursionError):
        return False


def _strange_result(record: Mapping[str, Any]) -> str | None:
    for value in record["metrics"].values():
        if value is not None and not (type(value) in (int, float) and -_MOST <= value <= _MOST):
            return "metrics that are not numbers"
    if not isinstance(record.get("error"), str | None):
        return "an error that is not text"
    if not all(isinstance(note, str) for note in record["notes"]):
        return "notes that are not text"
    return None


def _strange_environment(environment: Mapping[str, Any]) -> str | None:
    """Name an entry of the environment that is read again and has no usable value."""
    if "attempts" in environment and not _is_count(environment["attempts"]):
        return "attempts that are not a whole number"
    known = environment.get("evaluations", {})
    if not isinstance(known, dict) or not all(isinstance(v, str) for v in known.values()):
        return "evaluations that are not a dict of texts"
    return None


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_hash(value: object) -> bool:
    return isinstance(value, str) and _is_digest(value) is not None


def _is_part(name: str, about: Any, kind: str) -> bool:
    known = isinstance(about, dict) and about.get("file") == part_file(kind, name)
    return known and _is_hash(about.get("sha256"))


def _is_array(name: str, about: Any) -> bool:
    if not _is_part(name, about, "arrays") or not isinstance(about.get("shape"), list):
        return False
    dtype = about.get("dtype")
    return all(map(_is_count, about["shape"])) and isinstance(dtype, str) and _is_dtype(dtype)


@functools.lru_cache(maxsize=256)
def _is_dtype(name: str) -> bool:
    """Return whether numpy has such a type, and arrays of it hold no Python objects."""
    try:
        return not np.dtype(ast.literal_eval(name) if name[:1] in ("[", "{") else name).hasobject
    except (TypeError, ValueError, SyntaxError, OverflowError, MemoryError, RecursionError):
        return False


# ---- Fingerprints of data and of estimators, so that a stored run is only reused for the same work


def data_digest(data: Any) -> str:
    """Hash the values, type and shape of data.

    Parameters
    ----------
    data : array-like, sparse matrix or DataFrame, shape (examples, ...)
        A DataFrame's index does not count, its column names do.

    Returns
    -------
    str
        32 hexadecimal digits.

    Examples
    --------
    >>> data_digest([[1, 2], [3, 4]]) == data_digest(np.array([[1, 2], [3, 4]]))
    True
    """
    if isinstance(data, np.memmap) and isinstance(known := getattr(data, "digest", None), str):
        return known  # hashed when the file was written, which may be larger than memory
    digest = hashlib.sha256()
    for chunk in _chunks(data):
        # With its length: "ab" + "c" must not have the hash of "a" + "bc".
        digest.update(len(chunk).to_bytes(8, "little"))
        digest.update(chunk)
    return digest.hexdigest()[:32]


def describe(value: Any, depth: int = 0) -> str:
    """Describe all that determines an estimator's or a function's behaviour, without memory addresses.

    Arrays are named by their digest, functions by their name and byte code, estimators by class and
    parameters, other objects by class and attributes.

    Examples
    --------
    >>> describe({"b": 1.0, "a": None})
    "{'a': None, 'b': 1.0}"
    """
    inner = functools.partial(describe, depth=depth + 1)
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        return repr(value)
    if depth > DEEPEST:
        return _type_name(type(value))
    if isinstance(value, type):
        return _type_name(value)
    if isinstance(value, Mapping):
        items = sorted((inner(k), inner(v)) for k, v in value.items())
        return "{" + ", ".join(f"{k}: {v}" for k, v in items) + "}"
    if isinstance(value, list | tuple | set | frozenset):
        items_text = [inner(v) for v in value]
        ordered = sorted(items_text) if isinstance(value, set | frozenset) else items_text
        return f"{type(value).__name__}({', '.join(ordered)})"
    if isinstance(value, np.ndarray) or hasattr(value, "tocsr") or hasattr(value, "columns"):
        return f"data({data_digest(value)})"
    return _describe_object(value, inner)


def _chunks(data: Any) -> Iterator[bytes | memoryview]:
    if hasattr(data, "tocsr"):
        matrix = data.tocsr(copy=True)
        matrix.sum_duplicates()  # the same matrix may be stored in several ways
        yield f"sparse {matrix.shape}".encode()
        for part in (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data):
            yield from _array_chunks(part)
    elif hasattr(data, "columns") and (hasattr(data, "items") or hasattr(data, "iter_columns")):
        named = data.items() if hasattr(data, "items") else ((c.name, c) for c in data.iter_columns())
        yield b"frame"
        for name, column in named:
            yield repr(name).encode()
            yield from _array_chunks(np.asarray(column))
    else:
        try:
            array = np.asarray(data)
        except ValueError:  # rows of different lengths
            array = np.empty(len(data), dtype=object)
            array[:] = list(data)
        yield from _array_chunks(array)


def _array_chunks(array: NDArray[Any]) -> Iterator[bytes | memoryview]:
    yield f"{array.dtype.str} {array.shape}".encode()
    if array.dtype.hasobject:
        yield from (describe(v).encode("utf-8", "surrogatepass") for v in array.ravel().tolist())
    elif array.nbytes:
        # A view of the bytes and no copy, which a file mapped into memory could not afford.
        yield np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    else:
        yield b""


def _describe_object(value: Any, inner: functools.partial[str]) -> str:
    if isinstance(value, functools.partial):
        return f"partial({inner(value.func)}, {inner(value.args)}, {inner(value.keywords)})"
    if isinstance(value, MethodType):
        return f"{inner(value.__self__)}.{inner(value.__func__)}"
    if isinstance(value, FunctionType):
        name = f"{value.__module__}.{value.__qualname__}"
        closed = [cell.cell_contents for cell in value.__closure__ or ()]
        return f"{name}({_code(value.__code__)}, {inner(value.__defaults__)}, {inner(closed)})"
    name = _type_name(type(value))
    if hasattr(value, "get_params"):
        return f"{name}({inner(value.get_params(deep=False))})"
    if getattr(value, "__dict__", None):
        return f"{name}({inner(vars(value))})"
    return f"{name}({re.sub(r' at 0x[0-9a-fA-F]+', '', repr(value))})"


def _type_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _code(code: CodeType) -> str:
    # Line numbers and file names are left out: moving a function does not change what it does.
    constants = [_code(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    text = code.co_code.hex() + repr(code.co_names) + repr(constants)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


# ---- The environment that a run was made in


def capture_environment() -> dict[str, Any]:
    """Describe the interpreter, the packages and the git state of the working directory.

    Never fails: an entry that cannot be had is None. The answer is kept for the life of the process.

    Returns
    -------
    dict
        python, platform, packages (name to version), git (commit and dirty, or None).

    Examples
    --------
    >>> sorted(capture_environment())
    ['git', 'packages', 'platform', 'python']
    """
    try:
        folder = os.getcwd()
    except OSError:  # it was deleted
        folder = ""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": dict(_packages()),
        "git": _git(folder),
    }


@functools.cache
def _packages() -> Mapping[str, str]:
    found = {}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


@functools.cache
def _git(folder: str) -> dict[str, Any] | None:
    commit = _ask_git(folder, "rev-parse", "HEAD")
    if not commit:
        return None
    changes = _ask_git(folder, "status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, "dirty": None if changes is None else bool(changes)}


def _ask_git(folder: str, *arguments: str) -> str | None:
    # Without --no-optional-locks, `status` would write to the user's repository.
    command = ["git", "--no-optional-locks", "-C", folder, *arguments]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.SubprocessError, UnicodeError):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None
