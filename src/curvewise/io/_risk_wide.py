"""Tables of risks with a column for each method or each size, turned into a row for each run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from curvewise.errors import InputError
from curvewise.io._columns import is_status, normal
from curvewise.io._numbers import is_measured, is_missing
from curvewise.io._risk_columns import ROLES, ColumnName
from curvewise.io._risk_controls import SCRATCH
from curvewise.io._risk_sizes import header_size
from curvewise.io._table import Table, listed, take_cells

VALUE = "value"


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NO_METHOD = _names("""
    std sd sem stderr se var variance ci low high lower upper time seconds hours runtime epoch
    epochs step steps lr""")
"""Words in names of columns that say something else of a run than its risk."""


def in_rows(
    table: Table,
    told: Mapping[str, ColumnName],
    used: Collection[str],
    scratch: str | None,
    higher: bool | None,
) -> Table:
    """A table with a row for each run, as it is or out of one whose columns are sizes or methods.

    Columns are sizes if two or more are called like one and none holds sizes; they are methods if
    one is called like training from scratch and none holds methods. A cell without a value was not
    measured. Columns do not say whether lower is better, so that ``higher`` must.
    """
    taken = {*used, *(name for name in told.values() if name)}
    free = [k for k in table.columns if k not in taken]
    lacks = {role for role in ("n", "method") if not told[role] and not _plays(free, role)}
    sizes = {k: size for k in free if (size := header_size(k)) is not None}
    if "n" in lacks and len(sizes) > 1:
        return _melted(table, "n", sizes, higher)
    if "method" in lacks and (called := _called_scratch(free, scratch)):
        methods = [k for k in free if k in called or _holds_risks(table, k)]
        return _melted(table, "method", {k: k for k in methods}, higher)
    return table


def _plays(names: Sequence[str], *roles: str) -> bool:
    return any(normal(k) in tier for k in names for role in roles for tier in ROLES[role])


def _called_scratch(names: Sequence[str], given: str | None) -> list[str]:
    return [k for k in names if (normal(k) in SCRATCH.plain if given is None else k == given)]


def _holds_risks(table: Table, name: str) -> bool:
    cells = table.columns[name]
    if (
        _plays([name], *ROLES)
        or is_status(name, cells)
        or _NO_METHOD & set(normal(name).split("_"))
    ):
        return False
    return is_measured(cells)


def _melted(table: Table, role: str, names: Mapping[str, Any], higher: bool | None) -> Table:
    """The columns ``names`` below one another, with what each is called in one of its own."""
    what = {"n": "sizes", "method": "methods"}[role]
    if higher is None:
        raise InputError(
            f"{table.source} has {what} as columns ({listed(names)}), which do not say what is in "
            "them: pass higher_is_better=False for losses or errors, higher_is_better=True for "
            "accuracies."
        )
    there = {
        name: np.array([i for i, cell in enumerate(table.columns[name]) if not is_missing(cell)])
        for name in names
    }
    if not any(map(len, there.values())):
        raise InputError(f"{table.source} has no value in {listed(names)}: there is no risk.")
    index = np.concatenate([rows.astype(np.intp) for rows in there.values()])
    kept = {k: take_cells(cells, index) for k, cells in table.columns.items() if k not in names}
    columns = {
        **kept,
        role: [called for name, called in names.items() for _ in there[name]],
        VALUE: [table.columns[name][i] for name, rows in there.items() for i in rows],
    }
    empty = len(names) * len(table) - len(index)
    notes = [f"columns {listed(names)} taken as {what}"]
    notes += [f"{empty} empty cells left out"] if empty else []
    rows = table.rows[index]
    return replace(table, columns=columns, rows=rows, notes=(*table.notes, *notes))
