"""What a table of a report shows: headings for people, intervals beside what they are of."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from curvewise.report.content import Table
from curvewise.tables import number
from curvewise.types import plain

GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "eta": "η"}


@dataclass(frozen=True)
class Cell:
    """What stands in a cell, the interval behind it, and by what it is sorted."""

    text: str
    value: Any = None
    interval: str = ""


@dataclass(frozen=True)
class Column:
    """A column as it is shown; numbers stand to the right."""

    name: str
    cells: tuple[Cell, ...]
    is_number: bool


def shown_columns(table: Table, most: int) -> list[Column]:
    """The columns of a table, those with the ends of intervals put behind what they are of.

    Examples
    --------
    >>> table = Table("t", "Numbers", {"e_N": [0.2], "e_N low": [0.1], "e_N high": [0.35]})
    >>> [(c.name, c.cells[0].text, c.cells[0].interval) for c in shown_columns(table, 9)]
    [('e_N', '0.2', '[0.1, 0.35]')]
    """
    given = {k: list(v)[:most] for k, v in table.columns.items()}
    ends = _ends(given)
    behind = {name for pair in ends.values() for name in pair}
    found = []
    for name, values in given.items():
        if name in behind:
            continue
        cells = [cell_of(v, table.digits) for v in values]
        if name in ends:
            low, high = (given[k] for k in ends[name])
            brackets = [_brackets(a, b, table.digits) for a, b in zip(low, high, strict=True)]
            cells = [Cell(c.text, c.value, b) for c, b in zip(cells, brackets, strict=True)]
        found.append(Column(heading(name), tuple(cells), any(map(is_number, values))))
    return found


def has_intervals(columns: Sequence[Column]) -> bool:
    """Whether some column has them."""
    return any(cell.interval for column in columns for cell in column.cells)


def heading(name: str) -> str:
    """The name of a column for people; indices stay.

    >>> heading("probability_best"), heading("beta_N"), heading("n_0.5"), heading("e_N")
    ('probability best', 'β_N', 'n_0.5', 'e_N')
    """
    greek = re.sub(r"^[a-z]+(?=_N\b|$)", lambda found: GREEK.get(found[0], found[0]), name)
    return re.sub(r"(?<=\w\w)_", " ", greek)


def cell_of(value: Any, digits: int = 4) -> Cell:
    """A value for people, and as the browser sorts it."""
    if not is_number(value):
        return Cell("–" if value is None else str(value))
    known = plain(float(value))  # infinities as JavaScript reads them
    text = "–" if known is None else number(float(value), digits)
    return Cell(text, "" if known is None else known)


def is_number(value: Any) -> bool:
    """Whether a value is a number and no answer of yes or no."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_)


def _ends(columns: Mapping[str, Sequence[Any]]) -> dict[str, tuple[str, str]]:
    """Columns with an interval, and those with its ends: named after them, or right behind."""
    names = list(columns)
    found = {}
    for name, after in pairwise([*names, ""]):
        pairs = [(f"{name} low", f"{name} high"), (f"{name}_low", f"{name}_high")]
        pairs += [("low", "high")] if after == "low" else []
        both = next((p for p in pairs if p[0] in columns and p[1] in columns), None)
        if both and all(_numeric(columns[k]) for k in (name, *both)):
            found[name] = both
    return found


def _numeric(values: Sequence[Any]) -> bool:
    return all(v is None or is_number(v) for v in values)


def _brackets(low: Any, high: Any, digits: int) -> str:
    ends = [cell_of(v, digits).text for v in (low, high)]
    return "" if ends == ["–", "–"] else f"[{ends[0]}, {ends[1]}]"
