"""What a run is made of, as bytes: ``record.json``, the arrays and the weights beside it."""

from __future__ import annotations

import functools
import hashlib
import io
import math
import os
import platform
import re
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError, MissingDependencyError
from curvewise.store.read import (
    CHECKSUM,
    MOST_DEPTH,
    STATUSES,
    coordinates_id,
    record_checksum,
    record_text,
    strange_environment,
)

PREDICTIONS, TEST = "predictions", "test"
MOST_LETTERS = 64
MOST_BITS = 13_000
"""Of a whole number; Python reads at most 4,300 digits."""
MOST_ERROR = 1_000_000
"""Letters of an error that are kept: its beginning, and more of its end, which says what it is."""


def run_id(coordinates: Mapping[str, Any]) -> str:
    """Hash coordinates: 20 hexadecimal digits that do not depend on the order of the keys.

    >>> run_id({"n": 100, "learner": "a"}) == run_id({"learner": "a", "n": np.int64(100)})
    True
    """
    if not isinstance(coordinates, Mapping) or not coordinates:
        raise InputError(f"coordinates={coordinates!r}: pass a dict with at least one entry.")
    return coordinates_id(jsonable(coordinates, "coordinates"))


def jsonable(value: Any, where: str, level: int = 2) -> Any:
    """Convert numpy scalars, tuples and arrays; refuse what JSON would change or cannot hold."""
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


def record_bytes(record: dict[str, Any]) -> bytes:
    """Write a record as text, with the checksum that guards it; refuse one that none could read."""
    strange = strange_environment(record["environment"])
    if strange:
        raise InputError(f"environment has {strange}, by which runs are looked up: leave them out.")
    return record_text(record | {CHECKSUM: record_checksum(record)})


def named_arrays(
    predictions: ArrayLike | Mapping[str, ArrayLike] | None, arrays: Mapping[str, ArrayLike] | None
) -> dict[str, ArrayLike]:
    """Give every array the name it has in the record: the test set's predictions need none."""
    found: dict[str, ArrayLike] = {}
    if isinstance(predictions, Mapping):
        for name, values in predictions.items():
            check_name(name, "predictions")
            found[PREDICTIONS if name == TEST else f"{PREDICTIONS}.{name}"] = values
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
    """Refuse what is no plain name of a file."""
    plain = isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name)
    if not plain or len(str(name)) > most:
        raise InputError(
            f"{argument} has the name {str(name)[:100]!r}: use at most {most} letters, digits, '_',"
            " '.' and '-', and begin with a letter or digit."
        )


def check_distinct(names: Mapping[str, Any], argument: str) -> None:
    """Refuse names that some file systems take for one."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise InputError(f"{argument} has both {other!r} and {name!r}: names differ by case only.")


def npy_bytes(values: ArrayLike, argument: str) -> tuple[bytes, dict[str, Any]]:
    """Encode an array as a ``.npy`` file and say what is in it."""
    array = _plain_array(values, argument)
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    data = buffer.getvalue()
    about = {"sha256": hashlib.sha256(data).hexdigest(), "shape": list(array.shape), "dtype": str(array.dtype)}
    return data, about


def weights_bytes(weights: Mapping[str, ArrayLike], argument: str) -> tuple[bytes, dict[str, Any]]:
    """Encode arrays by name as a safetensors file and say what is in it."""
    try:
        from safetensors.numpy import save
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"{argument}: storing weights needs safetensors, which is not installed: pip install "
            'safetensors, or "curvewise[torch]".'
        ) from error
    arrays = {}
    for name, values in weights.items():
        where = f"{argument}[{name!r}]"
        array = np.ascontiguousarray(_plain_array(values, where))
        arrays[str(name)] = array.reshape(np.shape(values))  # a number stays one
        if array.dtype.kind not in "biuf":
            raise InputError(f"{where} is of {array.dtype}: weights are numbers.")
    try:
        data: bytes = save(arrays)
    except Exception as error:  # it has no errors of its own
        raise InputError(f"{argument} cannot be stored as safetensors: {error}.") from error
    return data, {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}


def _plain_array(values: ArrayLike, argument: str) -> NDArray[Any]:
    array = np.asarray(values)
    if array.dtype.hasobject:
        raise InputError(
            f"{argument} holds Python objects, which would need pickle: pass numbers, or strings of one type."
        )
    return array


def metric_values(metrics: Mapping[str, float]) -> tuple[dict[str, float | None], list[str]]:
    """Replace what is not finite by None, and say so."""
    values: dict[str, float | None] = {}
    lost = []
    for name, value in metrics.items():
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError) as error:
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
        error = f"{type(error).__name__}: {error}"
    if not isinstance(error, str | None):
        raise InputError(f"error={error!r}: pass text, an exception or None.")
    if error is not None and len(error) > MOST_ERROR:
        head, tail = MOST_ERROR // 10, MOST_ERROR - MOST_ERROR // 10
        return f"{error[:head]}\n[… {len(error) - MOST_ERROR:,} letters …]\n{error[-tail:]}"
    return error


# Fingerprints of data and of estimators, so that a stored run is only reused for the same work.

DEEPEST = 20  # of nested parameters; what lies deeper is named by its type only


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
    digest = hashlib.sha256()
    for chunk in _chunks(data):
        digest.update(len(chunk).to_bytes(8, "little"))
        digest.update(chunk)
    return digest.hexdigest()[:32]


def describe(value: Any, depth: int = 0) -> str:
    """Write what determines an estimator's or a function's behaviour, without memory addresses.

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


def _chunks(data: Any) -> Iterator[bytes]:
    if hasattr(data, "tocsr"):
        matrix = data.tocsr(copy=True)
        matrix.sum_duplicates()
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
        yield from _array_chunks(_as_array(data))


def _as_array(data: Any) -> NDArray[Any]:
    try:
        return np.asarray(data)
    except ValueError:  # rows of different lengths
        array = np.empty(len(data), dtype=object)
        array[:] = list(data)
        return array


def _array_chunks(array: NDArray[Any]) -> Iterator[bytes]:
    yield f"{array.dtype.str} {array.shape}".encode()
    if array.dtype.hasobject:
        yield from (describe(v).encode("utf-8", "surrogatepass") for v in array.ravel().tolist())
    else:
        yield np.ascontiguousarray(array).tobytes()


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
    constants = [_code(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    text = code.co_code.hex() + repr(code.co_names) + repr(constants)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


# What a run was made with: Python, packages, platform and the state of the user's repository.

PACKAGES = ("curvewise", "numpy", "scipy", "scikit-learn", "joblib", "torch", "transformers")


def capture_environment() -> dict[str, Any]:
    """Describe the interpreter, the packages and the git state of the working directory.

    Never fails: what cannot be had is None. The answer is kept for the life of the process.

    Returns
    -------
    dict
        python, platform, packages (name to version), git (commit and dirty, or None).

    Examples
    --------
    >>> sorted(capture_environment())
    ['git', 'packages', 'platform', 'python']
    """
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": dict(_packages()),
        "git": _git(_working_directory()),
    }


@cache
def _packages() -> Mapping[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was deleted
        return ""


@cache
def _git(folder: str) -> dict[str, Any] | None:
    commit = _ask_git(folder, "rev-parse", "HEAD")
    if not commit:
        return None
    changes = _ask_git(folder, "status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, "dirty": None if changes is None else bool(changes)}


def _ask_git(folder: str, *arguments: str) -> str | None:
    command = ["git", "--no-optional-locks", "-C", folder, *arguments]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.SubprocessError, UnicodeError):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None
