"""Decimal commas in text whose fields are not separated by commas: ``12,5;78,96``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from curvewise.errors import InputError
from curvewise.io._table import Column, Table, brief

_DECIMAL = re.compile(r"[-+]?[0-9]*,[0-9]+([eE][-+]?[0-9]+)?")
_POINT = re.compile(r"[-+]?[0-9.,]*\.[0-9.,]*([eE][-+]?[0-9]+)?")
_GROUPED = re.compile(r"[0-9]{1,3}([.,])[0-9]{3}(\1[0-9]{3})*")


def is_decimal_comma(cell: Any) -> bool:
    """Whether a cell can be a number with a decimal comma.

    >>> is_decimal_comma("78,96"), is_decimal_comma("1,5E-03"), is_decimal_comma("1,000,000")
    (True, True, False)
    """
    return isinstance(cell, str) and _DECIMAL.fullmatch(cell.strip()) is not None


def cells_with_points(table: Table, name: str, whole: bool) -> Column:
    """Cells of a column of numbers, with points for decimal commas.

    Where numbers are ``whole``, as sizes are, a separator before three digits is an error.
    """
    cells = table.columns[name]
    if whole:
        for row, cell in zip(table.rows, cells, strict=True):
            check_grouping(cell, f"Row {row} in {table.where(name)} reads")
    commas = [i for i, cell in enumerate(cells) if is_decimal_comma(cell)]
    points = [i for i, cell in enumerate(cells) if isinstance(cell, str) and _has_point(cell)]
    if commas and points:
        i, k = commas[0], points[0]
        raise InputError(
            f"{table.where(name)} has commas and points in its numbers: {brief(cells[i])} in row "
            f"{table.rows[i]}, {brief(cells[k])} in row {table.rows[k]}. Write all of them with a "
            "decimal point and without separators of thousands."
        )
    return [cell.replace(",", ".") if is_decimal_comma(cell) else cell for cell in cells]


def check_grouping(cell: Any, where: str) -> None:
    """Refuse a size that is a thousand or one, depending on where the file was written."""
    text = cell.strip() if isinstance(cell, str) else ""
    if _GROUPED.fullmatch(text):
        plain = re.sub("[.,]", "", text)
        raise InputError(
            f"{where} {brief(cell)}: is that {plain}, or a decimal number? Write sizes without "
            f"separators, such as {plain}."
        )


def decimal_note(table: Table, names: Iterable[str]) -> list[str]:
    """What to say if numbers in these columns had decimal commas."""
    if not table.decimal_commas:
        return []
    found = [cell for name in names for cell in table.columns[name] if is_decimal_comma(cell)]
    return [f"decimal commas read as points: {found[0].strip()!r}"] if found else []


def _has_point(cell: str) -> bool:
    return _POINT.fullmatch(cell.strip()) is not None
