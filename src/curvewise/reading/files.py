"""Files and frames into tables: CSV, TSV, JSON, JSON lines and Parquet, text also gzip-compressed."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from glob import iglob
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from curvewise.errors import InputError, MissingDependencyError, parse_reason
from curvewise.reading.table import (
    Column,
    Table,
    check_names,
    is_decimal_comma,
    make_table,
    table_from_dict,
    table_from_frame,
    table_from_records,
)
from curvewise.tables import is_formula
from curvewise.text import arg, brief, format_path, list_names

# The ending decides: content that disagrees with it is an error, because a damaged Parquet file may pass for text.
_KINDS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".txt": "csv",
    ".json": "json",
    ".jsonl": "lines",
    ".ndjson": "lines",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}
# Files with a wrong ending are common: their first bytes say what they are.
_MAGIC = {
    b"PAR1": "a Parquet file: name it .parquet",
    b"\x1f\x8b": "gzip-compressed: add .gz to its name",
    b"PK\x03\x04": "a ZIP or Excel file: export the sheet as CSV",
    b"\x93NUMPY": "a numpy array: write its rows to a CSV with column names",
    b"\xff\xfe": "UTF-16 text: save it as UTF-8",
    b"\xfe\xff": "UTF-16 text: save it as UTF-8",
}


# A cell of text takes some fifty bytes as a Python string: 256 MiB of CSV are several GiB in memory.
LARGEST_TEXT = 1 << 28
"""Bytes that a compressed text may unpack to; in memory its cells take many times as much."""
LARGEST_ARRAYS = 1 << 30
"""Bytes that compressed arrays and Parquet files may unpack to."""
_ALLOW_LARGE: ContextVar[bool] = ContextVar("allow_large", default=False)


def read_table(source: Any, *, single: bool = False) -> Table:
    """Read whatever can be a table: a file, a frame, a dict of columns or learners, a list of records.

    With ``single`` a text of one column is allowed.
    """
    if isinstance(source, str | PathLike):
        return read_file(source, single=single)
    if isinstance(source, Mapping):
        return table_from_dict(source, "the dict")
    if isinstance(source, list | tuple):
        return table_from_records(source, "the list of records")
    if isinstance(source, np.ndarray):
        raise InputError(
            f"source is an array of shape {tuple(source.shape)}, which does not say what is what. Pass a dict of "
            "columns: {'n': sizes, 'error': errors}."
        )
    return table_from_frame(source, "the DataFrame")


@contextmanager
def large_files(allowed: bool) -> Iterator[None]:
    """Read compressed files within it whatever they unpack to, if that is allowed."""
    # A context variable, because the check is made deep inside readers that a dozen callers share.
    token = _ALLOW_LARGE.set(allowed)
    try:
        yield
    finally:
        _ALLOW_LARGE.reset(token)


def check_unpacked(path: Path, size: int, most: int) -> None:
    """Refuse a compressed file that takes far more memory than its size suggests: a gzip or zip bomb."""
    if size > most and not _ALLOW_LARGE.get():
        raise InputError(
            f"{format_path(path)} unpacks to more than {most / 2**30:g} GiB, from {path.stat().st_size:,} bytes: pass "
            f"{arg('allow_large', True)} if that is right and there is enough memory."
        )


def read_file(source: str | PathLike[str], *, single: bool = False) -> Table:
    """Read one file; its name says the format, and its content must agree.

    With ``single`` a text of one column is allowed, with or without a name on top.
    """
    path, *others = expand_files(source)
    if others:
        return _joined([read_file(p, single=single) for p in (path, *others)], str(source))
    kind, packed = kind_of(path)
    if kind == "parquet":
        frame = parquet_frame(_read_bytes(path, packed), path)
        return replace(table_from_frame(frame, format_path(path)), label=path.stem)
    text = read_text(path)
    if kind == "csv":
        return _csv(text, path, _label(path), single)
    return json_table(parse_json(text, path, lines=kind == "lines"), path)


def expand_files(source: str | PathLike[str]) -> list[Path]:
    """Return the files that a pattern such as ``runs/*.csv`` matches, in natural order; of a plain name that file."""
    path = as_path(source)
    if not any(sign in str(path) for sign in "*?[") or path.exists():
        return [path]
    found = [Path(name) for name in iglob(str(path), recursive=True)]
    if not found:
        raise InputError(f"{arg('source', str(source))} matches no file.")
    return sorted(found, key=lambda p: natural(str(p)))


def natural(name: str) -> tuple[Any, ...]:
    """Make a key that sorts run_2 before run_10.

    >>> sorted(["run_10", "run_2", "run"], key=natural)
    ['run', 'run_2', 'run_10']
    """
    pieces = re.split(r"([0-9]+)", name)
    return tuple((p.lower(), 0) if i % 2 == 0 else ("", int(p)) for i, p in enumerate(pieces)), name


def _joined(tables: Sequence[Table], source: str) -> Table:
    """Put the rows of tables with the same columns below one another."""
    first = tables[0]
    for table in tables[1:]:
        if odd := sorted(set(table.columns) ^ set(first.columns)):
            has, lacks = (table, first) if odd[0] in table.columns else (first, table)
            raise InputError(
                f"{has.source} has a column {brief(odd[0])}, {lacks.source} has not: read them separately."
            )
    columns = {name: [cell for table in tables for cell in table.columns[name]] for name in first.columns}
    notes = dict.fromkeys(note for table in tables for note in table.notes)
    joined = make_table(source, columns, first.label, [f"{len(tables)} files", *notes])
    return replace(joined, decimal_commas=any(table.decimal_commas for table in tables))


def as_path(source: str | PathLike[str]) -> Path:
    """Make a path of what the user gave, which may not be an address."""
    # As a path it would only be reported as missing, which sends people looking for a file.
    if "://" in str(source):
        raise InputError(f"{arg('source', str(source))} is an address: download it and pass the path.")
    if not str(source):
        raise InputError(f"{arg('source', '')} names no file: pass its path.")
    return Path(source).expanduser()


def read_text(path: Path) -> str:
    """Read a whole file of UTF-8 text, unpacking gzip."""
    return _decode(_read_bytes(path, path.suffix.lower() == ".gz"), path)


def _label(path: Path) -> str:
    return path.name.removesuffix(".gz").rpartition(".")[0] or path.name


def kind_of(path: Path) -> tuple[str, bool]:
    """Tell the format by the ending: csv, json, lines or parquet, and whether gzip is around it."""
    suffixes = [s.lower() for s in path.suffixes]
    packed = bool(suffixes) and suffixes[-1] == ".gz"
    if packed:
        suffixes.pop()
    kind = _KINDS.get(suffixes[-1] if suffixes else "")
    if kind and not (packed and kind == "parquet"):
        return kind, packed
    check_file(path)
    never = " Pickles are never read: they can run code." if ".pkl" in path.suffixes else ""
    raise InputError(
        f"{arg('source', str(path))} has an ending that is not known. Known are {', '.join(_KINDS)}, and text "
        f"also with .gz.{never}"
    )


def check_file(path: Path) -> None:
    """Refuse a path to nothing, to a folder or to an empty file."""
    try:
        is_there, is_folder = path.exists(), path.is_dir()
        is_empty = is_there and not is_folder and path.is_file() and path.stat().st_size == 0
    except OSError as error:
        raise InputError(f"{arg('source', str(path))}: {error.strerror or error}.") from error
    except ValueError:  # a NUL in the name
        is_there = is_folder = is_empty = False
    if is_folder:
        raise InputError(f"{arg('source', str(path))} is a directory: pass one file in it.")
    if not is_there:
        near = "" if str(path.parent) == "." else f" in {str(path.parent)!r}"
        raise InputError(f"{arg('source', str(path))}: there is no such file{near}.")
    if is_empty:
        raise InputError(f"{format_path(path)} is empty.")


def _read_bytes(path: Path, packed: bool) -> bytes:
    check_file(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{format_path(path)} cannot be read: {error.strerror or error}.") from error
    if packed and data:
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
                data = stream.read(-1 if _ALLOW_LARGE.get() else LARGEST_TEXT + 1)
            check_unpacked(path, len(data), LARGEST_TEXT)
        except (EOFError, OSError, zlib.error) as error:
            raise InputError(
                f"{format_path(path)} is not a whole gzip file ({error}): it was cut short or is not gzip at all. "
                "Fetch it again, or take .gz off its name."
            ) from error
    if not data.strip():
        raise InputError(f"{format_path(path)} is empty.")
    return data


def parquet_frame(data: bytes, path: Path) -> Any:
    """Read the content of a Parquet file as a table of pyarrow."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f'Reading {format_path(path)} needs pyarrow, which is not installed: pip install "curvewise[parquet]".'
        ) from error
    try:
        about = pyarrow.parquet.read_metadata(io.BytesIO(data))
        packed = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
        # A column that repeats one value takes next to nothing on disk, and its length in memory.
        check_unpacked(path, max(packed, 8 * about.num_rows * about.num_columns), LARGEST_ARRAYS)
        return pyarrow.parquet.read_table(io.BytesIO(data))
    except InputError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, MemoryError, OverflowError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"{format_path(path)} is not a whole Parquet file ({reason:.200}): it was cut short, or is something else "
            "with that ending."
        ) from error


def _decode(data: bytes, path: Path) -> str:
    for magic, remedy in _MAGIC.items():
        if data.startswith(magic):
            raise InputError(f"{format_path(path)} is {remedy}.")
    if b"\0" in data:
        raise InputError(f"{format_path(path)} holds NUL bytes: it is a binary file, not text.")
    try:
        # Excel writes a byte-order mark, which would become part of the first column's name.
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{format_path(path)} is not UTF-8 text (line {line}): save it as UTF-8, or it is a binary file."
        ) from error


def _csv(text: str, path: Path, label: str, single: bool = False) -> Table:
    rows, delimiter = split_rows(text, path)
    header = [name.strip() for name in rows.pop(0)]
    if single and len(header) == 1:
        with suppress(ValueError):  # numbers alone, without a name on top
            float(header[0])
            header, rows = ["value"], [header, *rows]
    else:
        check_names(header, format_path(path))
        if len(header) == 1:
            raise InputError(
                f"{format_path(path)} has a single column, {brief(header[0])}: fields must be separated by "
                f"{', '.join(_DELIMITERS.values())}."
            )
    if not rows:
        raise InputError(f"{format_path(path)} has a header ({list_names(header)}) but no rows.")
    if "'" in text:  # curvewise's own exports write '=1+1, so that no spreadsheet computes it
        header = [_without_apostrophe(name) for name in header]
        rows = [[_without_apostrophe(cell) for cell in row] for row in rows]
    cells: list[Column] = [list(column) for column in zip(*rows, strict=True)]
    usual = "\t" if ".tsv" in path.name or ".tab" in path.name else ","
    notes = [] if delimiter == usual else [f"fields separated by {_DELIMITERS[delimiter]}"]
    table = make_table(format_path(path), dict(zip(header, cells, strict=True)), label, notes)
    commas = delimiter != "," and any(is_decimal_comma(cell) for row in rows for cell in row)
    return replace(table, decimal_commas=commas)


def _without_apostrophe(cell: str) -> str:
    return cell[1:] if cell[:1] == "'" and is_formula(cell[1:]) else cell


def split_rows(text: str, path: Path) -> tuple[list[list[str]], str]:
    """Cut separated text into rows of equal length; return the separator with them."""
    if text.lstrip()[:1] in ("[", "{"):
        raise InputError(f"{format_path(path)} looks like JSON, not CSV: name it .json.")
    if "\n" not in text:  # lines of old spreadsheets end in CR alone
        text = text.replace("\r", "\n")
    delimiter = _delimiter(text)
    if delimiter == "\t" and (plain := _without_quoting(text)) is not None:
        return plain, delimiter
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[list[str]] = []
    try:
        for row in reader:
            if row:
                rows.append(row)
                if len(row) != len(rows[0]):
                    raise _ragged(path, reader.line_num, row, rows[0], delimiter)
    except csv.Error as error:
        raise InputError(
            f"{format_path(path)} cannot be read as CSV at line {reader.line_num} ({error}): look for a quotation mark "
            "that is not closed."
        ) from error
    return rows, delimiter


def _without_quoting(text: str) -> list[list[str]] | None:
    """Cut tab-separated text whose quotation marks are part of sentences into rows; None for other text.

    That is so where cutting at tabs alone gives rows of one length, and quotes would break them.
    """
    plain = [line.split("\t") for line in text.splitlines() if line]
    if '"' not in text or len(set(map(len, plain))) != 1:
        return None
    try:
        quoted = sum(1 for row in csv.reader(io.StringIO(text), delimiter="\t", strict=True) if row)
    except csv.Error:
        return plain
    return plain if quoted != len(plain) else None


def _delimiter(text: str) -> str:
    """Find the separator that cuts the header into most fields; a comma if none does."""
    # Only the header is looked at: cells may hold commas as text or as decimal marks, names hardly ever do.
    header = text.lstrip("\r\n").split("\n", 1)[0].rstrip("\r").replace("\r", " ")
    try:
        return max(_DELIMITERS, key=lambda d: len(next(csv.reader([header], delimiter=d), [])))
    except csv.Error:  # a field of more than 131,072 characters, which reading reports
        return ","


def _ragged(path: Path, line: int, row: list[str], header: list[str], delimiter: str) -> InputError:
    remedy = "Is the file cut short?"
    if len(row) > len(header):
        remedy = f"Put quotes around cells that hold a {delimiter!r}."
        if delimiter == ",":
            remedy += " If numbers have decimal commas, write 0.25 instead of 0,25."
    return InputError(
        f"Line {line} of {format_path(path)} has {len(row)} field(s), the header has {len(header)}. " + remedy
    )


def parse_json(text: str, path: Path, lines: bool = False) -> Any:
    """Parse JSON or JSON lines, refusing a name that is there twice."""

    # json.loads keeps the last of two equal names, and the other column would be lost in silence.
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        check_names([name for name, _ in pairs], f"An object in {format_path(path)}")
        return dict(pairs)

    try:
        if not lines:
            return json.loads(text, object_pairs_hook=unique)
        rows = [row for row in text.split("\n") if row.strip()]
        return [json.loads(row, object_pairs_hook=unique) for row in rows]
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        if not isinstance(error, json.JSONDecodeError | RecursionError):  # too many digits
            raise InputError(f"{format_path(path)} cannot be read: {parse_reason(error)}.") from error
        raise InputError(
            f"{format_path(path)} is not whole JSON ({error!s:.200}): it was cut short, or is something else with that "
            "ending."
        ) from error


def json_table(data: Any, path: Path) -> Table:
    """Make a table of records, of columns or of learners."""
    label = _label(path)
    if isinstance(data, dict):
        return table_from_dict(data, format_path(path), label)
    if isinstance(data, list):
        return table_from_records(data, format_path(path), label)
    raise InputError(
        f"{format_path(path)} holds {brief(data)}: a list of records, a dict of columns or a dict of learners was "
        "expected."
    )
