"""Training sizes of a table of risks: 1000, 1,000, 1k; and cells that say there is none."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from curvewise.errors import InputError
from curvewise.io._numbers import numbers, parse
from curvewise.io._table import Table, brief
from curvewise.types import FloatArray

_SHORT = re.compile(r"([0-9]+(?:[.,][0-9]+)?) ?([kKmM])")
_TIMES = {"k": 1e3, "m": 1e6}
_NONE = frozenset(("-", "–", "—", "all", "full", "max", "any"))
_HEADER = re.compile(r"(?:n ?[=_] ?)?([0-9][0-9.,]* ?[kKmM]?)")


def sizes_of(table: Table, column: str) -> FloatArray:
    """Sizes of a column; NaN where a cell is empty or says "all", as rows of controls may.

    >>> from curvewise.io._table import make_table
    >>> sizes_of(make_table("a", {"n": ["100", "1k", "10,000", "1.5M", "all"]}), "n").tolist()
    [100.0, 1000.0, 10000.0, 1500000.0, nan]
    """
    cells = [_plain(cell) for cell in table.columns[column]]
    for row, cell in zip(table.rows, cells, strict=True):
        if isinstance(cell, str) and cell.strip().endswith("%"):
            raise InputError(
                f"Row {row} in {table.where(column)} reads {brief(cell)}: a training size is a "
                "number of examples. Write 500 for 1% of 50,000."
            )
    changed = replace(table, columns={**table.columns, column: cells})
    return numbers(changed, column, thousands=True)


def _plain(cell: Any) -> Any:
    """A cell with 1k as 1000 and "all" as nothing."""
    if not isinstance(cell, str):
        return cell
    text = cell.strip()
    if found := _SHORT.fullmatch(text):
        return round(float(found[1].replace(",", ".")) * _TIMES[found[2].lower()], 6)
    return None if text.lower() in _NONE else cell


def header_size(name: str) -> float | None:
    """The size that a column is called by, None if it is called something else.

    >>> header_size("100"), header_size("n=1k"), header_size("1,000"), header_size("top5")
    (100.0, 1000.0, 1000.0, None)
    """
    found = _HEADER.fullmatch(name.strip())
    size = parse(_plain(found[1]), thousands=True) if found else None
    return size if size is not None and size > 0 else None
