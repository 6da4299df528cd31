"""A store as one table: a row for each run, as Parquet, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from curvewise.errors import InputError, MissingDependencyError, StoreError, os_reason
from curvewise.store.read import AnyPath, Run, list_runs, without_collecting
from curvewise.tables import csv_cell
from curvewise.text import arg

ENDINGS = (".parquet", ".csv", ".json")
PACKAGES = ("curvewise", "numpy", "torch")
"""Packages whose versions stand in the table; records have more."""
_RENAMED: dict[tuple[str, ...], str] = {("coordinates", "subset"): "subset_digest"}
"""A hash, which readers of tables would take for the name of a split."""
Cells: TypeAlias = "dict[tuple[str, ...], Any]"
Columns: TypeAlias = "dict[str, list[Any]]"


def export_store(store: AnyPath, path: AnyPath, *, overwrite: bool = False) -> Path:
    """Write a table with a row for each run of a store.

    Its columns are id and status; the coordinates, with the keys of nested ones joined by dots, and
    ``subset``, the hash of the training examples, called ``subset_digest``;
    the metrics, called ``metrics.…`` where a coordinate has their name; ``failure``, the first line
    of the error; ``notes``; and what it was made with, ``environment.…``. Lists are JSON text, and
    so is all of a column that holds values of several types. In a CSV file, texts that a
    spreadsheet would take for formulas get an apostrophe.

    Parameters
    ----------
    store : path
        Folder of the store.
    path : path
        File to write; ``.parquet``, ``.csv`` or ``.json`` says how.
    overwrite : bool
        Whether to replace a file that is there.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        If the file is there already, or its ending is not known, or the store has no runs.
    StoreError
        If a record is damaged, or the file cannot be written.
    MissingDependencyError
        For Parquet without pyarrow: ``pip install "curvewise[parquet]"``.

    Examples
    --------
    >>> import tempfile
    >>> from curvewise.store.write import write_run
    >>> store = tempfile.mkdtemp()
    >>> coordinates = {"learner": "a, b", "n": 100, "training": {"rate": 0.1}}
    >>> path = write_run(store, coordinates, metrics={"error": 0.2})
    >>> print(export_store(store, f"{store}/runs.csv").read_text())
    id,status,learner,n,training.rate,error,failure,notes,...
    ...,done,"a, b",100,0.1,0.2,,,...
    """
    target = Path(path)
    if target.suffix.lower() not in ENDINGS:
        raise InputError(f"must end in {', '.join(ENDINGS)}.", argument="path", value=str(target))
    if target.is_dir() or (os.path.lexists(target) and not overwrite):
        raise InputError(
            f"is there already: choose another name, or pass {arg('overwrite', True)}.",
            argument="path",
            value=str(target),
        )
    if not target.parent.is_dir():
        raise InputError(f"there is no folder {target.parent}. Make it first.", argument="path", value=str(target))
    with without_collecting():
        runs = list_runs(store)
        if not runs:
            raise InputError("holds no runs: nothing to export.", argument="store", value=str(store))
        columns = run_columns(runs)
    rows = zip(*columns.values(), strict=True)
    if target.suffix.lower() == ".parquet":
        data = _as_parquet(columns)
    elif target.suffix.lower() == ".csv":
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\r\n")  # texts with either of the two are quoted
        writer.writerow(map(csv_cell, columns))
        writer.writerows(map(csv_cell, row) for row in rows)
        data = buffer.getvalue().encode(errors="backslashreplace")
    else:
        lines = [json.dumps(dict(zip(columns, row, strict=True))) for row in rows]
        data = ("[\n" + ",\n".join(lines) + "\n]\n").encode()
    _replace(target, data)
    return target


def run_columns(runs: Sequence[Run]) -> Columns:
    """Make the columns of the table, of plain values; None where a run has no such entry."""
    rows = [_cells(run) for run in runs]
    every: dict[tuple[str, ...], None] = {}
    for row in rows:
        every.update(dict.fromkeys(row))
    groups = ("", "coordinates", "metrics", "end", "environment")
    order = dict.fromkeys(sorted(every, key=lambda key: groups.index(key[0])))
    return {name: _of_one_type([row.get(key) for row in rows]) for key, name in _names(order).items()}


def _cells(run: Run) -> Cells:
    about = dict(run.environment)
    packages = about.pop("packages", None)
    if isinstance(packages, Mapping):
        about |= {f"packages.{k}": packages[k] for k in PACKAGES if k in packages}
    return {
        ("", "id"): run.id,
        ("", "status"): run.status,
        **_flat(("coordinates",), run.coordinates),
        **{("metrics", k): None if math.isnan(v) else v for k, v in run.metrics.items()},
        ("end", "failure"): next(iter((run.error or "").strip().splitlines()), None),
        ("end", "notes"): " ".join(run.notes) or None,
        **_flat(("environment",), about),
    }


def _flat(head: tuple[str, ...], values: Mapping[str, Any]) -> Cells:
    found: Cells = {}
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            found |= _flat((*head, key), value)
        else:
            is_plain = not isinstance(value, Mapping | list)
            found[*head, key] = value if is_plain else json.dumps(value, sort_keys=True)
    return found


def _names(keys: Mapping[tuple[str, ...], None]) -> dict[tuple[str, ...], str]:
    """Name every column once; a later one of the same name is called by its group, too."""
    names: dict[tuple[str, ...], str] = {}
    taken: set[str] = {"failure", "notes"}
    for key in keys:
        group, *rest = key
        plain = _RENAMED.get(key) or ".".join(rest)
        if group == "end":
            names[key] = plain
            continue
        tries = [f"{group}.{plain}", json.dumps(list(key), ensure_ascii=False)]
        if group != "environment":
            tries.insert(0, plain)
        names[key] = next(name for name in tries if name not in taken)
        taken.add(names[key])
    return names


def _of_one_type(values: list[Any]) -> list[Any]:
    """Give a column one type, as Parquet needs; mixed values become JSON text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} and len(kinds) == 2:
        with suppress(OverflowError):  # whole numbers beyond all floats stay as they are, in text
            return [None if value is None else float(value) for value in values]
    if len(kinds) > 1:
        return [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
    return values


def _as_parquet(columns: Columns) -> bytes:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            'Writing Parquet needs pyarrow, which is not installed: pip install "curvewise[parquet]", or write .csv.'
        ) from error
    arrays = {}
    for name, values in columns.items():
        try:
            arrays[_unicode(name)] = pa.array([_unicode(v) for v in values])
        except (pa.ArrowInvalid, OverflowError):  # whole numbers beyond 64 bits
            arrays[_unicode(name)] = pa.array([None if v is None else str(v) for v in values])
    buffer = io.BytesIO()
    pq.write_table(pa.table(arrays), buffer)
    return buffer.getvalue()


def _unicode(value: Any) -> Any:
    """Write out halves of characters, which have no encoding."""
    if not isinstance(value, str):
        return value
    return value.encode(errors="backslashreplace").decode()


def _replace(target: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    aside = target.with_name(f".{uuid.uuid4().hex[:12]}{target.suffix}")
    try:
        with open(aside, "xb") as out:
            out.write(data)
        os.replace(aside, target)
    except OSError as error:
        raise StoreError(f"{target} cannot be written: {os_reason(error, place=False)}.") from error
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
