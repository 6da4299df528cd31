"""Long and wide tables into readings: one size, one value and one learner per row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.io._columns import Roles, is_run_name
from curvewise.io._commas import check_grouping
from curvewise.io._numbers import (
    THOUSANDS,
    first_row,
    is_measured,
    is_missing,
    names_in,
    numbers,
    parse,
)
from curvewise.io._table import Table, brief, listed
from curvewise.types import FloatArray
from curvewise.types.coercion import same_names

WIDE = ("runs", "learners", "sizes")


@dataclass(frozen=True, eq=False)
class Readings:
    """What was measured, row by row; NaN where a run failed.

    ``table`` holds the cells that belong to each row, ``measured`` names the columns the values
    came from, ``form`` is "long" or one of ``WIDE``.
    """

    table: Table
    form: str
    measured: tuple[str, ...]
    learner: NDArray[np.str_]
    n: FloatArray
    value: FloatArray
    run: NDArray[np.str_] | None = None
    notes: list[str] = field(default_factory=list)

    def take(self, keep: NDArray[np.bool_]) -> Readings:
        """Take the rows where ``keep`` is true."""
        return replace(
            self,
            table=self.table.take(np.flatnonzero(keep)),
            learner=self.learner[keep],
            n=self.n[keep],
            value=self.value[keep],
            run=None if self.run is None else self.run[keep],
        )


def read_values(table: Table, roles: Roles, wide: str | None) -> Readings:
    """Find the form of a table and read sizes, values and learners out of it."""
    if wide is not None and wide not in WIDE:
        raise InputError(f"wide={wide!r} is not known: use one of {', '.join(map(repr, WIDE))}.")
    form = wide or _form(table, roles)
    if form == "long":
        return Readings(
            table=table,
            form=form,
            measured=roles["value"],
            learner=_learners(table, roles),
            n=_sizes(table, roles),
            value=numbers(table, roles["value"][0]),
            notes=_thousands_note(table, roles),
        )
    _check_no_summary(table, roles)
    return _melt(table, roles, form)


def size_columns(table: Table) -> list[str]:
    """Columns whose names are training-set sizes: whole numbers from 1."""
    sizes = {name: parse(name, thousands=True) for name in table.columns}
    return [k for k, n in sizes.items() if n and math.isfinite(n) and n >= 1 and n == int(n)]


def _form(table: Table, roles: Roles) -> str:
    if not roles["n"]:
        sizes = size_columns(table)
        if len(sizes) < 2 or roles["value"]:
            raise _no_size(table)
        return "sizes"
    if len(roles["value"]) == 1:
        return "long"
    found = list(roles["value"]) or _measured(table, roles, "runs")
    if len(found) > 1 and all(map(is_run_name, found)):
        return "runs"
    if not found:
        raise InputError(
            f"No column of {table.source} is known as the value: it has {listed(table.columns)}. "
            "Say which with columns={'value': …}, or name it error, accuracy or loss."
        )
    raise InputError(
        f"{table.source} has a size but no column known as the value; {listed(found)} hold(s) "
        "numbers. Pass wide='runs' if each column is a run, wide='learners' if each is a learner, "
        f"or columns={{'value': {brief(found[0])}}} if one of them is the value."
    )


def _no_size(table: Table) -> InputError:
    if all(parse(name) is not None for name in table.columns):
        return InputError(
            f"The column names of {table.source} are numbers ({listed(table.columns, 5)}): is "
            "the line with the names missing? Add it, for example n,error."
        )
    return InputError(
        f"No column of {table.source} is known as the training-set size: it has "
        f"{listed(table.columns)}. Say which with columns={{'n': …}}, or name it n."
    )


def _check_no_summary(table: Table, roles: Roles) -> None:
    for role in ("runs", "variance", "std"):
        if roles[role]:
            raise InputError(
                f"{table.where(roles[role][0])} is the {role}, which a wide table cannot carry: "
                f"remove it, pass columns={{{role!r}: None}}, or use one row per measurement."
            )


def _melt(table: Table, roles: Roles, form: str) -> Readings:
    names = roles["value"] or tuple(_measured(table, roles, form))
    _check_wide(table, roles, form, names)
    cells = np.column_stack([numbers(table, name) for name in names]).ravel()
    blank = np.column_stack([[is_missing(c) for c in table.columns[k]] for k in names]).ravel()
    if blank.all():
        raise InputError(f"All cells of {listed(names)} in {table.source} are empty.")
    row, column = np.divmod(np.flatnonzero(~blank), len(names))
    rest = {k: v for k, v in table.columns.items() if k not in names}
    called = same_names(list(names), f"the columns of {table.source}")
    name = np.array(called, dtype=np.str_)[column]
    sizes = np.array([parse(k, thousands=True) for k in names]) if form == "sizes" else None
    note = f"{int(blank.sum())} empty cell(s) taken as not measured"
    return Readings(
        table=replace(table, columns=rest).take(row),
        form=form,
        measured=names,
        learner=name if form == "learners" else _learners(table, roles)[row],
        n=_sizes(table, roles)[row] if sizes is None else sizes.astype(np.float64)[column],
        value=cells[~blank],
        run=name if form == "runs" else None,
        notes=[*([note] if blank.any() else []), *_thousands_note(table, roles)],
    )


def _measured(table: Table, roles: Roles, form: str) -> list[str]:
    """Columns of numbers that play no other role."""
    if form == "sizes":
        return size_columns(table)
    taken = {name for role, names in roles.items() if role != "value" for name in names}
    free = [name for name in table.columns if name not in taken]
    return [name for name in free if is_run_name(name) or is_measured(table.columns[name])]


def _check_wide(table: Table, roles: Roles, form: str, names: Sequence[str]) -> None:
    if not names:
        what = "whose name is a size" if form == "sizes" else "of numbers beside the size"
        raise InputError(f"wide={form!r}: {table.source} has no column {what}.")
    if form == "runs" and not roles["value"] and 0 < sum(map(is_run_name, names)) < len(names):
        others = [name for name in names if not is_run_name(name)]
        raise InputError(
            f"Among the columns of {table.source} some are called like runs and some are not "
            f"({listed(others)}). Name the runs: columns={{'value': [{listed(names, 3)}]}}."
        )
    if form == "sizes" and roles["n"]:
        raise InputError(
            f"wide='sizes' reads sizes from the column names, but {table.where(roles['n'][0])} "
            "holds sizes too: pass wide='runs' or wide='learners'."
        )
    for name in names if form == "sizes" and table.decimal_commas else ():
        check_grouping(name, f"The name of a column of {table.source} is")
    if form == "sizes" and any(name not in size_columns(table) for name in names):
        raise InputError(f"wide='sizes': {listed(names)} must all be sizes, such as '25'.")
    if form != "sizes" and not roles["n"]:
        raise _no_size(table)
    if form == "learners" and roles["learner"]:
        raise InputError(
            f"wide='learners' takes learners from the column names, but "
            f"{table.where(roles['learner'][0])} names learners too: pass wide='runs', or "
            "columns={'learner': None} to keep it as a label."
        )


def _learners(table: Table, roles: Roles) -> NDArray[np.str_]:
    names = roles["learner"]
    if not names:
        return np.repeat(np.array([table.label], dtype=np.str_), len(table))
    parts = [names_in(table, name) for name in names]
    for name, words in zip(names, parts, strict=True):
        empty = np.array([word == "" for word in words])
        if empty.any():
            raise InputError(
                f"{table.where(name)} names no learner in {first_row(table.rows, empty)}: fill "
                "it in, or pass columns={'learner': None} if all rows are one learner."
            )
    joined = (
        parts[0] if len(parts) == 1 else [" / ".join(words) for words in zip(*parts, strict=True)]
    )
    return np.array(joined, dtype=np.str_)


def _sizes(table: Table, roles: Roles) -> FloatArray:
    name = roles["n"][0]
    n = numbers(table, name, thousands=True)
    for bad, what in ((np.isnan(n), "empty"), (np.isinf(n), "infinite"), (n <= 0, "not positive")):
        if bad.any():
            cell = table.columns[name][int(np.flatnonzero(bad)[0])]
            raise InputError(
                f"A training-set size in {table.where(name)} is {what}: {brief(cell)} "
                f"({first_row(table.rows, bad)}). Sizes are counts of training examples: correct "
                "them or remove the rows."
            )
    return n


def _thousands_note(table: Table, roles: Roles) -> list[str]:
    cells = table.columns[roles["n"][0]] if roles["n"] else []
    there = [cell for cell in cells if isinstance(cell, str) and THOUSANDS.fullmatch(cell.strip())]
    return [f"commas in sizes read as thousands: {there[0]!r}"] if there else []
