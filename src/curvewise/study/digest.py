"""Fingerprints of data and of estimators, so that a stored run is only reused for the same work."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
        named = (
            data.items() if hasattr(data, "items") else ((c.name, c) for c in data.iter_columns())
        )
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
