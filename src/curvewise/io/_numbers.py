"""Cells into numbers, with errors that name the row and the text."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.io._commas import cells_with_points, is_decimal_comma
from curvewise.io._table import Column, Rows, Table, brief
from curvewise.types import FloatArray
from curvewise.types.coercion import same_names

_MISSING = frozenset({"", "nan", "na", "n/a", "null", "none"})
THOUSANDS = re.compile(r"[0-9]{1,3}(,[0-9]{3})+(\.0*)?")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]")


def numbers(table: Table, name: str, *, thousands: bool = False, remedy: str = "") -> FloatArray:
    """Read the cells of a column as float64; a missing cell is NaN.

    Parameters
    ----------
    thousands : bool
        Read ``"1,000"`` as one thousand. Sizes are whole, so that the comma cannot be a decimal
        one; anywhere else it is an error. In a table with decimal commas it is an error here.
    remedy : str
        What else the user can do, at the end of a message.
    """
    cells = table.columns[name]
    if table.decimal_commas:
        cells = cells_with_points(table, name, whole=thousands)
    quick = _quick(cells)
    if quick is not None:
        return quick
    parsed = [parse(cell, thousands) for cell in cells]
    bad = [i for i, number in enumerate(parsed) if number is None]
    if bad:
        raise _not_a_number(table, name, bad, remedy)
    return np.array(parsed, dtype=np.float64)


def parse(cell: Any, thousands: bool = False) -> float | None:
    """One cell as a number: NaN if it is missing, None if it is something else.

    >>> parse(" 0.5 "), parse("1,000"), parse("1,000", thousands=True), parse("NA"), parse(True)
    (0.5, None, 1000.0, nan, None)
    """
    if is_missing(cell):
        return float("nan")
    if isinstance(cell, str):
        if thousands and THOUSANDS.fullmatch(cell.strip()):
            cell = cell.replace(",", "")
        if "_" in cell:
            return None
    if isinstance(cell, bool | np.bool_ | bytes | complex):
        return None
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return None


def is_missing(cell: Any) -> bool:
    """Whether a cell holds nothing: None, NaN, an empty text or a usual word for it."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(cell, str):
        return cell.strip().lower() in _MISSING
    return isinstance(cell, float | np.floating) and bool(np.isnan(cell))


def is_measured(cells: Column) -> bool:
    """Whether a column of a wide table is meant to hold numbers: one cell does, or none does."""
    return any(map(_like_a_number, cells)) or all(map(is_missing, cells))


def texts(cells: Column) -> list[str]:
    """Cells as text, verbatim; a whole number has no decimal point, a missing cell is ``""``."""
    plain = cells.tolist() if isinstance(cells, np.ndarray) else cells
    return plain if set(map(type, plain)) == {str} else [_text(cell) for cell in plain]


def names_in(table: Table, column: str) -> list[str]:
    """Names of learners, tasks, runs and the like, without blanks around them.

    Two names that differ in such blanks only are an error: they may be one or two.
    """
    return same_names(texts(table.columns[column]), table.where(column))


def label_array(cells: Column) -> NDArray[Any]:
    """Cells of a further coordinate: whole numbers, numbers or text, whichever holds all."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "biuf":
        return cells
    if set(map(type, cells)) <= {bool, np.bool_}:
        return np.array(cells, dtype=np.bool_)
    words, values = texts(cells), _all_numbers(cells)
    if values is None or any(map(_LEADING_ZERO.match, words)):
        return np.array(words, dtype=np.str_)
    whole = bool(np.all(np.isfinite(values) & (values == np.rint(values)) & (abs(values) < 2**53)))
    return values.astype(np.int64) if whole else values


def first_row(rows: Rows, bad: NDArray[np.bool_]) -> str:
    """Which rows are meant: ``"row 3"``, or ``"5 rows, the first is row 3"``."""
    count, row = int(bad.sum()), int(rows[np.flatnonzero(bad)[0]])
    return f"row {row}" if count == 1 else f"{count} rows, the first is row {row}"


def _like_a_number(cell: Any) -> bool:
    if isinstance(cell, str) and is_decimal_comma(cell.strip().removesuffix("%")):
        return True
    value = parse(cell.strip().removesuffix("%") if isinstance(cell, str) else cell)
    return value is not None and not math.isnan(value)


def _all_numbers(cells: Column) -> FloatArray | None:
    """Cells as numbers, or None if one is something else or all are missing."""
    values = _quick(cells)
    if values is None:
        parsed = []
        for cell in cells:
            parsed.append(parse(cell))
            if parsed[-1] is None:
                return None
        values = np.array(parsed, dtype=np.float64)
    return None if np.isnan(values).all() else values


def _quick(cells: Column) -> FloatArray | None:
    """All cells at once if each is plainly a number; None to look at each of them."""
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
        hint = "Remove the percent signs and pass unit='percent'."
    elif isinstance(cell, bool | np.bool_):
        hint = "True and False are not measurements: average them per run first."
    more = f" ({len(bad)} such cells)" if len(bad) > 1 else ""
    return InputError(
        f"Row {table.rows[bad[0]]} in {table.where(name)} reads {brief(cell)}, which is not a "
        f"number{more}. {hint}" + (f" {remedy}" if remedy else "")
    )


def _text(cell: Any) -> str:
    if cell is None or (not isinstance(cell, str) and is_missing(cell)):
        return ""
    whole = isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53
    return str(int(cell)) if whole else str(cell)
