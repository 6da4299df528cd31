"""A table as it was read: named columns of cells, the row each came from, and notes; cells into numbers and names.

Tables come out of frames, dicts and records, and out of files: CSV, TSV, JSON, JSON lines and Parquet, text also
gzip-compressed.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from glob import iglob
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import (
    InputError,
    MissingDependencyError,
    arg,
    brief,
    format_path,
    importing,
    list_names,
    parse_reason,
)
from curvewise.text import is_formula
from curvewise.types.results import FloatArray, same_names

Column: TypeAlias = list[Any] | NDArray[Any]
Rows: TypeAlias = NDArray[np.intp]

_DATE = re.compile(r"\s*[0-9]{4}-[0-9]{2}-[0-9]{2}")
# What pandas calls an index that was written to a file without a name.
_INDEX_NAMES = ("", "Unnamed: 0", "__index_level_0__")


@dataclass(frozen=True, eq=False)
class Table:
    """Cells by column, not yet interpreted.

    Attributes
    ----------
    source : str
        Its name in messages: a file name, or "the DataFrame".
    columns : dict of str to list or ndarray
        Cells as they came: numbers, text or None.
    rows : ndarray of int
        For each row its number in the source, counted from 1 below the header.
    label : str
        Name for the learner when no column gives one.
    notes : tuple of str
        How cells were interpreted, and what was left out.
    decimal_commas : bool
        Whether ``"0,5"`` is a half and ``"1.000"`` perhaps a thousand: fields are separated by semicolons, or by tabs
        and such cells exist.
    """

    source: str
    columns: Mapping[str, Column]
    rows: Rows
    label: str = "learner"
    notes: tuple[str, ...] = ()
    decimal_commas: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, index: Rows) -> Table:
        """Take the rows at ``index``, in that order and as often as named there."""
        columns = {name: take_cells(cells, index) for name, cells in self.columns.items()}
        return replace(self, columns=columns, rows=self.rows[index])

    def keep(self, rows: NDArray[np.bool_], note: str) -> Table:
        """Take the rows where the mask is true; if that leaves any out, ``note`` says so."""
        return self if rows.all() else replace(self.take(np.flatnonzero(rows)), notes=(*self.notes, note))

    def where(self, name: str) -> str:
        """Name one column in a message."""
        return f"column {brief(name)} of {self.source}"


def make_table(source: str, columns: Mapping[str, Column], label: str = "learner", notes: Sequence[str] = ()) -> Table:
    """Check that columns have one length, and set an unnamed index aside."""
    # An index without a name is how pandas writes row numbers, and would be read as a column of numbers.
    lengths = {name: len(cells) for name, cells in columns.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{brief(name)} has {size}" for name, size in list(lengths.items())[:10])
        raise InputError(f"The columns of {source} differ in length: {said}. Make them equal.")
    if not lengths:
        raise InputError(f"{source} has no columns: there is nothing to read.")
    if not max(lengths.values()):
        raise InputError(f"{source} has columns ({list_names(lengths)}) but no rows.")
    index = [name for name in columns if name in _INDEX_NAMES]
    for name in index:
        _check_index(columns[name], [cells for other, cells in columns.items() if other not in index], source)
    notes = [*notes, *(f"column {name!r} left out: an index without a name" for name in index)]
    kept = {name: cells for name, cells in columns.items() if name not in index}
    rows = np.arange(1, max(lengths.values()) + 1)
    return Table(source, kept, rows, label, tuple(notes))


def _check_index(cells: Column, others: Sequence[Column], source: str) -> None:
    """Refuse names in an index without a name: left out, the runs of several learners would be those of one."""
    names = _names(cells)
    # Names of single rows, beside a column that names what the rows are of.
    if not names or (len(set(names)) == len(cells) and any(map(_names, others))):
        return
    raise InputError(
        f"{source} has names ({list_names(dict.fromkeys(names), 3)}) in a column or an index that itself has no "
        "name. Call it learner if these are learners, and otherwise by what they are, or remove it."
    )


def _names(cells: Column) -> list[str]:
    """Return the cells that are texts and neither numbers nor dates."""
    return [c for c in cells if isinstance(c, str) and parse(c) is None and not _DATE.match(c)]


def table_from_frame(frame: Any, source: str) -> Table:
    """Read any DataFrame that narwhals knows."""
    try:
        import narwhals as nw
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            "Reading a DataFrame needs narwhals, which is not installed: pip install narwhals."
        ) from error
    frame, notes = _plain_pandas(frame, source)
    if hasattr(frame, "column_names"):  # of pyarrow, whose tables may have two columns of one name
        check_names(frame.column_names, source)
    try:
        native = nw.from_native(frame)
    except TypeError as error:
        raise InputError(
            f"source of type {type(frame).__name__} cannot be read. Pass a path, a DataFrame (pandas, polars, "
            "pyarrow), a dict of columns or a list of records."
        ) from error
    eager = native.collect() if isinstance(native, nw.LazyFrame) else native
    columns: dict[str, Column] = {}
    for name in eager.columns:
        series = eager[name]
        # Decimals, whole numbers beside empty cells and those of 128 bits would lose digits as floats, and dates are no
        # numbers: these come as Python objects.
        exact = series.dtype.is_integer() and (series.null_count() or series.dtype in (nw.Int128, nw.UInt128))
        numeric = series.dtype.is_numeric() and not series.dtype.is_decimal() and not exact
        columns[str(name)] = series.to_numpy() if numeric else series.to_list()
    return make_table(source, columns, notes=notes)


def table_from_dict(data: Mapping[Any, Any], source: str, label: str = "learner") -> Table:
    """Read a dict of columns, or a dict of learners with records or columns each."""
    if any(isinstance(value, Mapping) or _is_records(value) for value in data.values()):
        records = [r for learner, value in data.items() for r in _of_learner(learner, value, source)]
        return table_from_records(records, source, label)
    return make_table(source, _columns_from_dict(data, source), label)


def table_from_records(records: Sequence[Any], source: str, label: str = "learner") -> Table:
    """Read a list of dicts; a key that one record lacks is a missing cell."""
    if not records:
        raise InputError(f"{source} is an empty list: there is nothing to measure.")
    for row, record in enumerate(records, 1):
        if not isinstance(record, Mapping):
            raise InputError(
                f"{source} should be a list of records such as {{'n': 25, 'error': 0.4}}, but entry {row} is "
                f"{brief(record)}."
            )
    names = list(dict.fromkeys(name for record in records for name in record))
    check_names([str(name) for name in names], source)
    cells: dict[str, Column] = {str(k): [record.get(k) for record in records] for k in names}
    return make_table(source, cells, label)


def check_names(names: Iterable[str], source: str) -> None:
    """Refuse a name that is there twice."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(
            f"{source} has more than one column called {list_names(twice)}: rename them so that each name is there "
            "once."
        )


def take_cells(cells: Column, index: Rows) -> Column:
    """Take the cells at ``index``."""
    return cells[index] if isinstance(cells, np.ndarray) else [cells[i] for i in index]


def _plain_pandas(frame: Any, source: str) -> tuple[Any, list[str]]:
    """Turn a named pandas index into columns and column names into text; note an index without a name that is left."""
    if not (type(frame).__module__.startswith("pandas") and hasattr(frame, "reset_index")):
        return frame, []
    if getattr(frame, "columns", None) is None:
        raise InputError("source is a pandas Series: pass a DataFrame with a column of sizes.")
    if frame.columns.nlevels > 1:
        raise InputError(
            f"{source} has {frame.columns.nlevels} levels of column names. Flatten them first: frame.columns = "
            "['_'.join(map(str, c)) for c in frame.columns]."
        )
    notes = []
    if any(name is not None for name in frame.index.names):
        kept = [name for name in frame.index.names if name not in frame.columns]
        frame = frame.reset_index(level=kept) if kept else frame
    elif frame.index.nlevels > 1 or frame.index.dtype.kind not in "iu":  # row numbers say nothing
        others = [frame.iloc[:, k].tolist() for k in range(frame.shape[1])]
        for level in range(frame.index.nlevels):
            _check_index(frame.index.get_level_values(level).tolist(), others, source)
        notes = [
            f"an index without a name left out ({list_names(frame.index[:3].tolist())}, …): name it to have it read"
        ]
    check_names([str(name) for name in frame.columns], source)
    return frame.set_axis([str(name) for name in frame.columns], axis=1).reset_index(drop=True), notes


def _is_records(value: Any) -> bool:
    return isinstance(value, list | tuple) and any(isinstance(v, Mapping) for v in value)


def _of_learner(learner: Any, value: Any, source: str) -> list[dict[str, Any]]:
    """Turn what stands under one learner's name into records that name it."""
    where = f"{brief(learner)} in {source}"
    if isinstance(value, Mapping):
        columns = _columns_from_dict(value, where)
        make_table(where, columns)  # for its checks
        value = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    elif not _is_records(value):
        raise InputError(
            f"{where} is {brief(value)}, not a list of records: give each learner records such as {{'n': 25, 'error': "
            "0.4}."
        )
    if any(isinstance(record, Mapping) and "learner" in record for record in value):
        raise InputError(
            f"{source} names learners twice: as the key {brief(learner)} and as 'learner' inside it. Leave one of them "
            "out."
        )
    return [{"learner": str(learner), **record} if isinstance(record, Mapping) else record for record in value]


def _columns_from_dict(data: Mapping[Any, Any], source: str) -> dict[str, Column]:
    check_names([str(name) for name in data], source)
    columns: dict[str, Column] = {}
    for name, cells in data.items():
        # The entries of a set are in no order.
        no_cells = isinstance(cells, str | bytes | set | frozenset | Mapping) or not hasattr(cells, "__iter__")
        if no_cells or getattr(cells, "ndim", 1) == 0:
            raise InputError(
                f"{brief(str(name))} in {source} is {brief(cells)}, not a list of cells. Use a dict of columns, {{'n': "
                "[25, 50], 'error': [0.4, 0.3]}, a list of records, or a dict of learners with records each."
            )
        flat = isinstance(cells, np.ndarray) and cells.ndim == 1
        columns[str(name)] = cells if flat else list(cells)
    return columns


def unfold(table: Table, names: Iterable[str | None]) -> Table:
    """Make one row per element where cells of these columns hold lists (the errors of all runs).

    Lists in other columns, such as tags, stay as they are.
    """
    folded = [name for name in dict.fromkeys(names) if name and _holds_lists(table.columns[name])]
    if not folded:
        return table
    cells = {name: [_as_list(cell) for cell in table.columns[name]] for name in folded}
    counts = np.array([[len(c) for c in cells[name]] for name in folded])
    uneven = np.flatnonzero((counts != counts[0]).any(axis=0))
    if uneven.size:
        row = int(uneven[0])
        sizes = ", ".join(f"{brief(n)} has {c}" for n, c in zip(folded, counts[:, row], strict=True))
        raise InputError(f"Lists in row {row + 1} of {table.source} differ in length: {sizes}.")
    long = table.take(np.repeat(np.arange(len(table)), counts[0]))
    flat = {name: [cell for cells_ in cells[name] for cell in cells_] for name in folded}
    notes = [*table.notes, f"{list_names(folded)} held lists: one row per element"]
    if empty := int((counts[0] == 0).sum()):
        notes.append(f"{empty} empty list(s) taken as not measured")
    if not len(long):
        raise InputError(f"All lists in {table.source} are empty: there is nothing to measure.")
    return replace(long, columns={**long.columns, **flat}, notes=tuple(notes))


def melt(table: Table, names: Mapping[str, Any], into: str, value: str) -> tuple[Table, int]:
    """Put columns below one another; return the rows, without empty cells, and how many of these there are.

    The column ``into`` holds for each row what ``names`` gives for its column, and ``value`` its cell.
    """
    filled = {k: np.flatnonzero([not is_missing(cell) for cell in table.columns[k]]) for k in names}
    index = np.concatenate(list(filled.values()))
    if not len(index):
        raise InputError(f"{table.source} has no value in {list_names(names)}: there is nothing to measure.")
    long = replace(table, columns={k: v for k, v in table.columns.items() if k not in names}).take(index)
    columns = {
        **long.columns,
        into: [called for name, called in names.items() for _ in filled[name]],
        value: [cell for name, rows in filled.items() for cell in take_cells(table.columns[name], rows)],
    }
    return replace(long, columns=columns), len(names) * len(table) - len(index)


def list_columns(table: Table) -> list[str]:
    """Find the columns whose cells hold lists of numbers, or lists and numbers."""
    return [
        name
        for name, cells in table.columns.items()
        if _holds_lists(cells) and all(isinstance(v, int | float | np.number) for c in cells for v in _as_list(c))
    ]


def _holds_lists(cells: Column) -> bool:
    if isinstance(cells, np.ndarray) and cells.dtype != object:
        return False
    return any(issubclass(kind, list | tuple | np.ndarray) for kind in set(map(type, cells)))


def _as_list(cell: Any) -> list[Any]:
    if isinstance(cell, list | tuple | np.ndarray):
        return list(cell)
    return [] if cell is None else [cell]


# Cells into numbers, with errors that name the row and the text.

_MISSING = frozenset({"", "nan", "na", "n/a", "#n/a", "<na>", "null", "none"})
_DECIMAL = re.compile(r"[-+]?[0-9]*,[0-9]+([eE][-+]?[0-9]+)?")
_POINT = re.compile(r"[-+]?[0-9.,]*\.[0-9.,]*([eE][-+]?[0-9]+)?")
_GROUPED = re.compile(r"[1-9][0-9]{0,2}([.,])[0-9]{3}(\1[0-9]{3})*")
THOUSANDS = re.compile(r"[1-9][0-9]{0,2}(,[0-9]{3})+(\.0*)?")
# "007" is a name, not the number 7: read as one, "7" and "007" would be the same label.
LEADING_ZERO = re.compile(r"[-+]?0[0-9]")


def numbers(table: Table, name: str, *, thousands: bool = False, remedy: str = "") -> FloatArray:
    """Read the cells of a column as float64; a missing cell is NaN.

    Parameters
    ----------
    thousands : bool
        Read ``"1,000"`` as one thousand. Sizes are whole, so that the comma cannot be a decimal
        one; anywhere else it is an error. In a table with decimal commas it is an error here, and so is ``"1.000"``
        beside ``"100"``.
    remedy : str
        What else the user can do, at the end of a message.
    """
    cells = table.columns[name]
    commas = table.decimal_commas
    if thousands and (commas or any(isinstance(cell, str) and cell.strip().isdecimal() for cell in cells)):
        # 100 beside 1.000: read as they stand, the larger size would be the smaller one.
        for row, cell in zip(table.rows, cells, strict=True):
            check_grouping(cell if commas or "." in str(cell) else None, f"Row {row} in {table.where(name)} reads")
    if commas:
        cells = _cells_with_points(table, name)
    quick = _quick(cells)
    if quick is not None:
        return quick
    parsed = [parse(cell, thousands) for cell in cells]
    bad = [i for i, number in enumerate(parsed) if number is None]
    if bad:
        raise _not_a_number(table, name, bad, remedy)
    return np.array(parsed, dtype=np.float64)


def parse(cell: Any, thousands: bool = False) -> float | None:
    """Read one cell as a number: NaN if it is missing, None if it is something else.

    >>> parse(" 0.5 "), parse("1,000"), parse("1,000", thousands=True), parse("NA"), parse(True)
    (0.5, None, 1000.0, nan, None)
    """
    if is_missing(cell):
        return float("nan")
    if isinstance(cell, str):
        if thousands and THOUSANDS.fullmatch(cell.strip()):
            cell = cell.replace(",", "")
        if "_" in cell:  # float("1_000") is 1000 in Python, and "run_1" must not come near it
            return None
    if isinstance(cell, bool | np.bool_ | bytes | complex):
        return None
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return None


# Not 1,000k, which may be a million or a thousand.
_SHORT_COUNT = re.compile(r"([0-9]+(?:\.[0-9]+|,[0-9]{1,2})?) ?([kmbgt])", re.IGNORECASE)
_TIMES = {"k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}


def counts(table: Table, name: str, nothing: frozenset[str] = frozenset()) -> FloatArray:
    """Read a column of sizes, also written 1,000, 1k or 1.5M; NaN where a cell is empty or one of ``nothing``.

    >>> counts(make_table("a", {"n": ["100", "1k", "10,000", "1.5M", "all"]}), "n", frozenset(["all"])).tolist()
    [100.0, 1000.0, 10000.0, 1500000.0, nan]
    """
    for row, cell in zip(table.rows, table.columns[name], strict=True):
        if isinstance(cell, str) and cell.strip().endswith("%"):
            raise InputError(
                f"Row {row} in {table.where(name)} reads {brief(cell)}: a training size is a number of examples. "
                "Write 500 for 1% of 50,000."
            )
    cells = [plain_count(cell, nothing) for cell in table.columns[name]]
    return numbers(replace(table, columns={**table.columns, name: cells}), name, thousands=True)


def plain_count(cell: Any, nothing: frozenset[str] = frozenset()) -> Any:
    """Write 1k in a cell as 1000, and a word for nothing as None."""
    text = cell.strip() if isinstance(cell, str) else ""
    if found := _SHORT_COUNT.fullmatch(text):
        return round(float(found[1].replace(",", ".")) * _TIMES[found[2].lower()], 6)
    return None if text.lower() in nothing else cell


def is_missing(cell: Any) -> bool:
    """Return whether a cell holds nothing: None, NaN, an empty text or a usual word for it."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(cell, str):
        return cell.strip().lower() in _MISSING
    return isinstance(cell, float | np.floating) and bool(np.isnan(cell))


def is_measured(cells: Column) -> bool:
    """Return whether a column is meant to hold numbers: at least one cell does, or all are empty."""
    plain = [cell.strip().removesuffix("%") if isinstance(cell, str) else cell for cell in cells]
    known = (value for value in map(parse, plain) if value is not None)
    return not all(map(math.isnan, known)) or any(map(is_decimal_comma, plain)) or all(map(is_missing, cells))


def texts(cells: Column) -> list[str]:
    """Write cells as text, verbatim; a whole number has no decimal point, a missing cell is ``""``."""

    def text(cell: Any) -> str:
        if not isinstance(cell, str) and is_missing(cell):
            return ""
        # pandas turns whole numbers beside an empty cell into floats: the fold 3.0 is the fold 3.
        whole = isinstance(cell, float | np.floating) and float(cell).is_integer() and abs(float(cell)) < 2**53
        return str(int(cell)) if whole else str(cell)

    # Half-width floats stay what they are: the rate 0.1 of a frame must not become 0.10000000149011612.
    short = isinstance(cells, np.ndarray) and cells.dtype.kind == "f" and cells.dtype.itemsize < 8
    plain: list[Any] = cells.tolist() if isinstance(cells, np.ndarray) and not short else list(cells)
    return plain if set(map(type, plain)) == {str} else [text(cell) for cell in plain]


def names_in(table: Table, column: str) -> list[str]:
    """Read names of learners, tasks, runs and the like, without blanks around them.

    Two names that differ in such blanks only are an error: they may be one or two.
    """
    return same_names(texts(table.columns[column]), table.where(column))


def full_names(table: Table, column: str, role: str, remedy: str = "fill the cell or remove the row") -> list[str]:
    """Read names as :func:`names_in` does, of which none may be empty."""
    words = names_in(table, column)
    empty = np.array([word == "" for word in words])
    if empty.any():
        raise InputError(f"{table.where(column)} names no {role} in {first_row(table.rows, empty)}: {remedy}.")
    return words


def label_array(cells: Column) -> NDArray[Any]:
    """Make an array of a further coordinate: whole numbers, numbers or text, whichever holds all."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "biuf":
        return cells
    if set(map(type, cells)) <= {bool, np.bool_}:
        return np.array(cells, dtype=np.bool_)
    words, values = texts(cells), _quick(cells)
    if values is None:
        parsed = [parse(cell) for cell in cells]
        values = None if None in parsed else np.array(parsed, dtype=np.float64)
    if values is None or np.isnan(values).all() or any(map(LEADING_ZERO.match, words)):
        return np.array(words, dtype=np.str_)
    whole = np.isfinite(values) & (values == np.rint(values))
    large = np.flatnonzero(whole & (abs(values) >= 2**53))
    if not len(large):
        return values.astype(np.int64) if whole.all() else values
    # Seeds of 64 bits have more digits than a float: two of them would become one.
    return np.array(words, dtype=np.str_) if any(words[i].lstrip("+-").isdecimal() for i in large) else values


def first_row(rows: Rows, bad: NDArray[np.bool_]) -> str:
    """Name the rows where the mask is true: ``"row 3"``, or ``"5 rows, the first is row 3"``."""
    count, row = int(bad.sum()), int(rows[np.flatnonzero(bad)[0]])
    return f"row {row}" if count == 1 else f"{count} rows, the first is row {row}"


def _quick(cells: Column) -> FloatArray | None:
    """Read all cells at once if each is plainly a number; None to look at each of them."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "iuf":
        return cells.astype(np.float64)
    if isinstance(cells, np.ndarray) or not set(map(type, cells)) <= {str, float, int}:
        return None
    if any("_" in cell for cell in cells if type(cell) is str):
        return None
    try:
        return np.array(cells, dtype=np.float64)
    except (ValueError, OverflowError):
        return None


def _not_a_number(table: Table, name: str, bad: list[int], remedy: str) -> InputError:
    cell = table.columns[name][bad[0]]
    hint = "Correct the cell or remove the row."
    if is_decimal_comma(cell):
        hint = f"For a decimal comma write {cell.strip().replace(',', '.', 1)} instead."
    elif isinstance(cell, str) and cell.strip().endswith("%"):
        hint = f"Remove the percent signs and pass {arg('unit', 'percent')}."
    elif isinstance(cell, bool | np.bool_):
        hint = "True and False are not measurements: average them per run first."
    more = f" ({len(bad)} such cells)" if len(bad) > 1 else ""
    return InputError(
        f"Row {table.rows[bad[0]]} in {table.where(name)} reads {brief(cell)}, which is not a number{more}. "
        f"{hint}" + (f" {remedy}" if remedy else "")
    )


# Decimal commas in text whose fields are separated by semicolons or tabs: ``12,5;78,96``. In a column of sizes
# "1,000" is then a thousand or one, depending on who wrote the file: that is asked back.


def is_decimal_comma(cell: Any) -> bool:
    """Return whether a cell can be a number with a decimal comma.

    >>> is_decimal_comma("78,96"), is_decimal_comma("1,5E-03"), is_decimal_comma("1,000,000")
    (True, True, False)
    """
    return isinstance(cell, str) and _DECIMAL.fullmatch(cell.strip()) is not None


def _cells_with_points(table: Table, name: str) -> Column:
    """Write points for decimal commas in a column of numbers."""
    cells = table.columns[name]
    commas = [i for i, cell in enumerate(cells) if is_decimal_comma(cell)]
    points = [i for i, cell in enumerate(cells) if isinstance(cell, str) and _POINT.fullmatch(cell.strip())]
    if commas and points:
        i, k = commas[0], points[0]
        raise InputError(
            f"{table.where(name)} has commas and points in its numbers: {brief(cells[i])} in row {table.rows[i]}, "
            f"{brief(cells[k])} in row {table.rows[k]}. Write all of them with a decimal point and without separators "
            "of thousands."
        )
    return [cell.replace(",", ".") if is_decimal_comma(cell) else cell for cell in cells]


def check_grouping(cell: Any, where: str) -> None:
    """Refuse a size that is a thousand or one, depending on where the file was written."""
    text = cell.strip() if isinstance(cell, str) else ""
    if _GROUPED.fullmatch(text):
        plain = re.sub("[.,]", "", text)
        raise InputError(
            f"{where} {brief(cell)}: is that {plain}, or a decimal number? Write sizes without separators, such as "
            f"{plain}."
        )


def decimal_note(table: Table, names: Iterable[str]) -> list[str]:
    """Make a note if numbers in these columns had decimal commas."""
    if not table.decimal_commas:
        return []
    found = [cell for name in names for cell in table.columns[name] if is_decimal_comma(cell)]
    return [f"decimal commas read as points: {found[0].strip()!r}"] if found else []


# Files into tables.

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
# A line before the header that names the separator for Excel.
_EXCEL_SEPARATOR = re.compile(r"\A\s*sep=.\r?\n")
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
    pieces = re.split(r"0*([0-9]+)", name)
    # The longer of two numbers is the larger one: Python makes no integers of thousands of digits.
    return tuple((p.lower(), 0) if i % 2 == 0 else (len(p), p) for i, p in enumerate(pieces)), name


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
    return _decode(_read_bytes(path, ending(path)[1]), path)


def _label(path: Path) -> str:
    return path.name.removesuffix(".gz").rpartition(".")[0] or path.name


def ending(path: Path) -> tuple[str, bool]:
    """Return the ending of a file in lower case, without the .gz behind it, and whether there is one.

    >>> ending(Path("labels.CSV.gz")), ending(Path("labels.json"))
    (('.csv', True), ('.json', False))
    """
    packed = path.suffix.lower() == ".gz"
    return (path.with_suffix("") if packed else path).suffix.lower(), packed


def kind_of(path: Path) -> tuple[str, bool]:
    """Tell the format by the ending: csv, json, lines or parquet, and whether gzip is around it."""
    suffix, packed = ending(path)
    kind = _KINDS.get(suffix)
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
    with importing(f"Reading {format_path(path)} needs pyarrow", "parquet"):
        import pyarrow
        import pyarrow.parquet
    try:
        about = pyarrow.parquet.read_metadata(io.BytesIO(data))
        check_names(about.schema.to_arrow_schema().names, format_path(path))
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
    if "" in header:  # spreadsheets write empty columns behind the table, too
        filled = [i for i, name in enumerate(header) if name or any(row[i].strip() for row in rows)]
        header, *rows = ([row[i] for i in filled] for row in (header, *rows))
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
    commas = delimiter == "\t" and any(is_decimal_comma(cell) for row in rows for cell in row)
    return replace(table, decimal_commas=commas or delimiter == ";")


def _without_apostrophe(cell: str) -> str:
    return cell[1:] if cell[:1] == "'" and is_formula(cell[1:]) else cell


def split_rows(text: str, path: Path) -> tuple[list[list[str]], str]:
    """Cut separated text into rows of equal length; return the separator with them."""
    if text.lstrip()[:1] in ("[", "{"):
        raise InputError(f"{format_path(path)} looks like JSON, not CSV: name it .json.")
    if "\n" not in text:  # lines of old spreadsheets end in CR alone
        text = text.replace("\r", "\n")
    text = _EXCEL_SEPARATOR.sub("", text).rstrip("\r\n")
    delimiter = _delimiter(text)
    if delimiter == "\t" and (plain := _without_quoting(text)) is not None:
        return plain, delimiter
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[list[str]] = []
    try:
        for row in reader:
            # A line of blanks is a cell only where there is one column.
            if len(row) > 1 or (row and (row[0].strip() or not rows)) or (rows and len(rows[0]) == 1):
                rows.append(row or [""])
                if len(rows[-1]) != len(rows[0]):
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
