"""Wide tables into predictions: a row for each run, or a column for each run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.io._files import read_text, split_rows
from curvewise.io._found import Found
from curvewise.io._long import keep_learner
from curvewise.io._numbers import first_row, is_missing, numbers, parse
from curvewise.io._parts import PartMap, check_map, find_others
from curvewise.io._table import Column, Table, brief, check_names, listed, make_table, shown
from curvewise.io._vectors import compact, flags, no_value

_ROWS: dict[tuple[str, ...], str] = {("runs", "examples"): "run", ("examples", "runs"): "example"}
# What a row can bring along beside the cells, where rows are runs and where they are examples.
_ALONG = {"run": ("run", "learner"), "example": ("example", "label", "group")}


def read_wide(
    table: Table,
    axes: Sequence[str],
    kind: str | None = None,
    columns: PartMap | None = None,
    learner: str | None = None,
) -> Found:
    """Read a table whose rows are runs or whose columns are, as ``axes`` says."""
    row = _row_is(axes, table.source)
    names = list(table.columns)
    others = find_others(
        names, table.source, check_map(columns, names, table.source, "column"), "column"
    )
    for part in others:
        if part not in _ALONG[row]:
            raise InputError(
                f"{table.where(others[part])} is known as the {part}, which a table with a row for "
                f"each {row} cannot carry. If it is one of the values, pass columns={{{part!r}: "
                "None}; if the table has a row for each run and example, leave axes= out."
            )
    table = keep_learner(table, others.get("learner"), learner)
    values = [name for name in names if name not in others.values()]
    cells = _matrix(table, values, kind)
    headings = np.array(values, dtype=np.str_) if not _counted(values) else None
    held = {part: compact(table.columns[name]) for part, name in others.items()}
    said = [f"{part} from {brief(name)}" for part, name in others.items()]
    return Found(
        cells if row == "run" else cells.T,
        table.source,
        kind,
        axes=("runs", "examples"),
        arranged=True,
        labels=held.get("label"),
        groups=held.get("group"),
        run_ids=held.get("run") if row == "run" else headings,
        example_ids=held.get("example") if row == "example" else headings,
        notes=(f"each row is one {row}", *said, *table.notes),
    )


def wide_csv(path: Path, axes: Sequence[str], header: bool | None) -> Table:
    """Read separated text whose first line may or may not hold names."""
    row = _row_is(axes, shown(path))
    rows, _ = split_rows(read_text(path), path)
    first = [name.strip() for name in rows[0]]
    if header is None:
        header = _has_names(first, path)
    if not header:
        names = [f"{_UNNAMED}{i}" for i in range(len(first))]
    else:
        names = [
            row if i == 0 and name in ("", "Unnamed: 0") else name for i, name in enumerate(first)
        ]
        check_names(names, shown(path))
    body = rows[1:] if header else rows
    if not body:
        raise InputError(f"{shown(path)} has a header ({listed(first, 5)}) but no rows.")
    cells: list[Column] = [list(column) for column in zip(*body, strict=True)]
    return make_table(shown(path), dict(zip(names, cells, strict=True)))


_UNNAMED = "column "


def _counted(names: Sequence[str]) -> bool:
    return all(name == f"{_UNNAMED}{i}" for i, name in enumerate(names))


def _row_is(axes: Sequence[str], source: str) -> str:
    if tuple(axes) not in _ROWS:
        raise InputError(
            f"axes={tuple(axes)!r}: {source} is a table, which has two axes: pass ('runs', "
            "'examples') where rows are runs or ('examples', 'runs') where columns are."
        )
    return _ROWS[tuple(axes)]


def _has_names(first: Sequence[str], path: Path) -> bool:
    """Whether a first line holds names; numbers that could be either are asked about."""
    values = [parse(cell) for cell in first]
    if any(value is None or is_missing(cell) for value, cell in zip(values, first, strict=True)):
        return True
    whole = all(value == int(value) for value in values if value is not None and np.isfinite(value))
    if whole and len(set(values)) == len(values) > 1:
        raise InputError(
            f"The first line of {shown(path)} is {listed(first, 4)}: numbers that could be names of"
            " columns or values. Pass header=True or header=False."
        )
    return False


def _matrix(table: Table, names: Sequence[str], kind: str | None) -> NDArray[Any]:
    if not names:
        raise InputError(
            f"{table.source} has no columns of values: it has {listed(table.columns)}."
        )
    columns = []
    for name in names:
        bad = no_value(table.columns[name])
        if bad.any():
            raise InputError(
                f"{table.where(name)} is empty or NaN in {first_row(table.rows, bad)}: every run "
                "needs a value for every example."
            )
        columns.append(
            numbers(table, name) if kind in ("losses", "scores") else compact(table.columns[name])
        )
    words = [column.dtype.kind == "U" for column in columns]
    if any(words) and not all(words):
        name = names[words.index(True)]
        raise InputError(
            f"{table.where(name)} holds text and others hold numbers. If it names runs or examples "
            f"pass columns={{'run': {brief(name)}}} or columns={{'example': {brief(name)}}}; if it "
            "is something else, leave it out."
        )
    cells = np.column_stack(columns)
    return flags(cells) if kind in ("errors", "correct") else cells
