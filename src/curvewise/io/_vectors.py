"""One value per example out of a file: what a single run predicted, labels, groups, names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.io._arrays import map_npy, named_arrays
from curvewise.io._files import as_path, kind_of, parse_json, read_text, split_rows
from curvewise.io._numbers import label_array, parse
from curvewise.io._parts import part_of
from curvewise.io._table import Column, brief, listed, shown

VECTOR_FILES = (".npy", ".npz", ".safetensors", ".csv", ".tsv", ".tab", ".txt", ".json")
_FLAGS = {"true": 1, "false": 0}


def read_vector(source: str | PathLike[str], part: str) -> NDArray[Any]:
    """Read labels, groups or names of examples: the only array in a file, or the one so called."""
    path = as_path(source)
    names, get = read_named(path)
    known = [name for name in names if part_of(name) == part]
    chosen = list(names) if len(names) == 1 else known
    if len(chosen) != 1:
        raise InputError(
            f"{shown(path)} holds {listed(names)}, and {len(known)} of them could be the {part}s:"
            f" pass the {part}s as an array."
        )
    array = np.asarray(get(chosen[0]))
    if array.ndim != 1:
        raise InputError(f"The {part}s in {shown(path)} have shape {array.shape}: pass a list.")
    _check_sorted(names, get, path, part)
    return array


def read_named(path: Path) -> tuple[Sequence[str], Callable[[str], Any]]:
    """Names of the arrays in any file of :data:`VECTOR_FILES`; one without a name is ``""``."""
    suffix = path.with_suffix("").suffix if path.suffix.lower() == ".gz" else path.suffix
    suffix = suffix.lower()
    if suffix not in VECTOR_FILES:
        kind_of(path)  # for its message on what is no file, or has another ending
        raise InputError(f"{shown(path)} must be one of {', '.join(VECTOR_FILES)}.")
    if suffix == ".npy":
        return [""], lambda _: map_npy(path)
    if suffix in (".npz", ".safetensors"):
        return named_arrays(path)
    text = read_text(path)
    if suffix == ".json":
        arrays = _json_arrays(parse_json(text, path), path)
    else:
        arrays = _lines(text, path) if suffix == ".txt" else _cells(text, path)
    return list(arrays), arrays.__getitem__


def compact(cells: Column) -> NDArray[Any]:
    """Cells as whole numbers, numbers or text; whole numbers in as few bytes as hold them."""
    is_text = isinstance(cells, np.ndarray) and cells.dtype.kind == "U"
    array = np.asarray(cells) if is_text else label_array(cells)
    if array.dtype.kind not in "iu" or not array.size:
        return array
    low, high = int(array.min()), int(array.max())
    return array.astype(np.result_type(np.min_scalar_type(low), np.min_scalar_type(high)))


def flags(values: NDArray[Any]) -> NDArray[Any]:
    """Read the words true and false as 1 and 0, if there are no others.

    >>> flags(np.array(["True", "False"])).tolist(), flags(np.array([0, 1])).tolist()
    ([1, 0], [0, 1])
    """
    if values.dtype.kind != "U":
        return values
    words, codes = np.unique(values, return_inverse=True)
    read = [_FLAGS.get(word.strip().lower()) for word in words.tolist()]
    return values if None in read else np.array(read, dtype=np.uint8)[codes].reshape(values.shape)


def _json_arrays(data: Any, path: Path) -> Mapping[str, NDArray[Any]]:
    arrays = data if isinstance(data, dict) else {"": data}
    for name, cells in arrays.items():
        where = f"{brief(name)} in {shown(path)}" if name else shown(path)
        scalar = isinstance(cells, int) and not isinstance(cells, bool) and bool(name)
        if not scalar and (not isinstance(cells, list) or not cells):
            raise InputError(
                f"{where} is {brief(cells)}: a list with one value per example is read."
            )
    return {name: nested(cells, f"{shown(path)}") for name, cells in arrays.items()}


def nested(cells: Any, where: str) -> NDArray[Any]:
    """Lists in lists as an array; entries must be alike, and lists of one length."""
    try:
        array = np.asarray(cells)
    except ValueError as error:
        raise InputError(f"{where} holds lists of different lengths: each must be as long.") from (
            error
        )
    if array.dtype.kind not in "biufU" or _mixed(cells):
        raise InputError(
            f"{where} holds something that is neither a number nor a text, or both: null, perhaps?"
            " Every example needs a value."
        )
    return array if array.dtype.kind in "bfU" else compact(array.ravel()).reshape(array.shape)


def _mixed(cells: Any) -> bool:
    """Whether numbers stand among texts, which numpy would write as texts."""
    if not isinstance(cells, list | tuple):
        return False
    if cells and isinstance(cells[0], list | tuple):
        return any(map(_mixed, cells)) or len({isinstance(c[0], str) for c in cells if c}) > 1
    return len({isinstance(cell, str) for cell in cells}) > 1


def _lines(text: str, path: Path) -> dict[str, NDArray[Any]]:
    cells = [line.strip() for line in text.strip().split("\n")]
    values = re.split(r"[\s,;]+", cells[0])
    if len(values) > 1 and all(parse(value) is not None for value in values if value):
        raise InputError(
            f"{shown(path)} has several values in its first line, {brief(cells[0])}: write one per"
            " line, or name it .csv."
        )
    return _column(cells, path)


def _cells(text: str, path: Path) -> dict[str, NDArray[Any]]:
    if not text.strip():
        raise InputError(f"{shown(path)} is empty.")
    rows, _ = split_rows(text.strip("\r\n") + "\n", path)
    if len(rows[0]) == 1:
        return _column([row[0].strip() for row in rows], path)
    header = [name.strip() for name in rows[0]]
    if len(set(header)) < len(header) or all(parse(name) is not None for name in header):
        raise InputError(
            f"{shown(path)} has {len(header)} columns and no line with their names: one run needs "
            "one column, or names that say which is which."
        )
    if len(rows) < 2:
        raise InputError(f"{shown(path)} has a header ({listed(header)}) but no rows.")
    columns = zip(header, zip(*rows[1:], strict=True), strict=True)
    return {name: compact(list(cells)) for name, cells in columns}


def _column(cells: list[str], path: Path) -> dict[str, NDArray[Any]]:
    """One column, with or without a name above it."""
    first = cells[0]
    word = parse(first) is None and len(cells) > 1
    named = word and (part_of(first) is not None or all(parse(c) is not None for c in cells[1:]))
    values = cells[1:] if named else cells
    blank = [i for i, cell in enumerate(values) if cell == ""]
    if blank:
        raise InputError(
            f"{shown(path)} has no value in row {blank[0] + 1} ({len(blank)} such row(s)): every "
            "example needs one."
        )
    return {first if named else "": compact(values)}


def _check_sorted(names: Sequence[str], get: Callable[[str], Any], path: Path, part: str) -> None:
    """Refuse numbered examples in another order than that of their numbers."""
    numbers = [name for name in names if part_of(name) == "example"]
    if part == "example" or len(names) == 1 or len(numbers) != 1:
        return
    ids = np.asarray(get(numbers[0]))
    if ids.ndim == 1 and counts_up(np.sort(ids)) and not counts_up(ids):
        raise InputError(
            f"{shown(path)} lists examples in another order than {brief(numbers[0])} numbers them:"
            " sort it, since labels and groups go by position."
        )


def counts_up(ids: NDArray[Any]) -> bool:
    """Whether names count up by one from 0 or from 1."""
    if ids.dtype.kind not in "iu" or not ids.size or int(ids[0]) not in (0, 1):
        return False
    return bool((ids == np.arange(len(ids)) + int(ids[0])).all())


def no_value(cells: Column) -> NDArray[np.bool_]:
    """Which cells hold nothing; among texts "none" and "NA" may be names of classes."""
    array = compact(cells)
    if array.dtype.kind == "U":
        return np.array([not word.strip() for word in array.tolist()], dtype=np.bool_)
    return np.isnan(array) if array.dtype.kind == "f" else np.zeros(len(array), dtype=np.bool_)
