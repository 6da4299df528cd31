"""A table as it was read: named columns of cells, the row each came from, what to say about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, MissingDependencyError
from curvewise.text import brief, listed

Column: TypeAlias = list[Any] | NDArray[Any]
Rows: TypeAlias = NDArray[np.intp]

# What pandas calls an index that was written to a file without a name.
_INDEX_NAMES = ("", "Unnamed: 0", "__index_level_0__")


@dataclass(frozen=True, eq=False)
class Table:
    """Cells by column, not yet interpreted.

    Attributes
    ----------
    source : str
        How messages call it: a file name, or "the DataFrame".
    columns : dict of str to list or ndarray
        Cells as they came: numbers, text or None.
    rows : ndarray of int
        For each row its number in the source, counted from 1 below the header.
    label : str
        Name for the learner when no column gives one.
    notes : tuple of str
        What had to be said while reading.
    decimal_commas : bool
        Whether ``"0,5"`` is a half: fields are separated by something else, and such cells exist.
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

    def where(self, name: str) -> str:
        """How messages call one column."""
        return f"column {brief(name)} of {self.source}"


def make_table(
    source: str,
    columns: Mapping[str, Column],
    label: str = "learner",
    notes: Sequence[str] = (),
) -> Table:
    """Check that columns have one length, and set an unnamed index aside."""
    lengths = {name: len(cells) for name, cells in columns.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{brief(name)} has {size}" for name, size in list(lengths.items())[:10])
        raise InputError(f"The columns of {source} differ in length: {said}. Make them equal.")
    if not lengths:
        raise InputError(f"{source} has no columns: there is nothing to read.")
    if not max(lengths.values()):
        raise InputError(f"{source} has columns ({listed(lengths)}) but no rows.")
    index = [name for name in columns if name in _INDEX_NAMES]
    notes = [*notes, *(f"column {name!r} left out: an index without a name" for name in index)]
    kept = {name: cells for name, cells in columns.items() if name not in index}
    rows = np.arange(1, max(lengths.values()) + 1)
    return Table(source, kept, rows, label, tuple(notes))


def table_from_frame(frame: Any, source: str) -> Table:
    """Read any DataFrame that narwhals knows."""
    try:
        import narwhals as nw
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            "Reading a DataFrame needs narwhals, which is not installed: pip install narwhals."
        ) from error
    frame = _plain_pandas(frame, source)
    try:
        native = nw.from_native(frame)
    except TypeError as error:
        raise InputError(
            f"source of type {type(frame).__name__} cannot be read. Pass a path, a DataFrame "
            "(pandas, polars, pyarrow), a dict of columns or a list of records."
        ) from error
    eager = native.collect() if isinstance(native, nw.LazyFrame) else native
    columns: dict[str, Column] = {}
    for name in eager.columns:
        series = eager[name]
        numeric = series.dtype.is_numeric() and not series.dtype.is_decimal()
        columns[str(name)] = series.to_numpy() if numeric else series.to_list()
    return make_table(source, columns)


def table_from_dict(data: Mapping[Any, Any], source: str, label: str = "learner") -> Table:
    """Read a dict of columns, or a dict of learners with records or columns each."""
    by_learner = any(isinstance(value, Mapping) or _is_records(value) for value in data.values())
    if by_learner:
        records = [
            r for learner, value in data.items() for r in _of_learner(learner, value, source)
        ]
        return table_from_records(records, source, label)
    return make_table(source, _columns_from_dict(data, source), label)


def table_from_records(records: Sequence[Any], source: str, label: str = "learner") -> Table:
    """Read a list of dicts; a key that one record lacks is a missing cell."""
    if not records:
        raise InputError(f"{source} is an empty list: there is nothing to measure.")
    for row, record in enumerate(records, 1):
        if not isinstance(record, Mapping):
            raise InputError(
                f"{source} should be a list of records such as {{'n': 25, 'error': 0.4}}, but "
                f"entry {row} is {brief(record)}."
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
            f"{source} has more than one column called {listed(twice)}: rename them so that "
            "each name is there once."
        )


def take_cells(cells: Column, index: Rows) -> Column:
    """Take the cells at ``index``."""
    return cells[index] if isinstance(cells, np.ndarray) else [cells[i] for i in index]


def _plain_pandas(frame: Any, source: str) -> Any:
    """Turn a named pandas index into columns and column names into text."""
    if not (type(frame).__module__.startswith("pandas") and hasattr(frame, "reset_index")):
        return frame
    if getattr(frame, "columns", None) is None:
        raise InputError("source is a pandas Series: pass a DataFrame with a column of sizes.")
    if frame.columns.nlevels > 1:
        raise InputError(
            f"{source} has {frame.columns.nlevels} levels of column names. Flatten them first: "
            "frame.columns = ['_'.join(map(str, c)) for c in frame.columns]."
        )
    if any(name is not None for name in frame.index.names):
        kept = [name for name in frame.index.names if name not in frame.columns]
        frame = frame.reset_index(level=kept) if kept else frame
    check_names([str(name) for name in frame.columns], source)
    return frame.set_axis([str(name) for name in frame.columns], axis=1).reset_index(drop=True)


def _is_records(value: Any) -> bool:
    return isinstance(value, list | tuple) and any(isinstance(v, Mapping) for v in value)


def _of_learner(learner: Any, value: Any, source: str) -> list[dict[str, Any]]:
    """Turn what stands under one learner's name into records that name it."""
    where = f"{brief(learner)} in {source}"
    if isinstance(value, Mapping):
        columns = _columns_from_dict(value, where)
        make_table(where, columns)  # for its checks
        value = [
            dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)
        ]
    elif not _is_records(value):
        raise InputError(
            f"{where} is {brief(value)}, not a list of records: give each learner records such "
            "as {'n': 25, 'error': 0.4}."
        )
    if any(isinstance(record, Mapping) and "learner" in record for record in value):
        raise InputError(
            f"{source} names learners twice: as the key {brief(learner)} and as 'learner' inside "
            "it. Leave one of them out."
        )
    return [
        {"learner": str(learner), **record} if isinstance(record, Mapping) else record
        for record in value
    ]


def _columns_from_dict(data: Mapping[Any, Any], source: str) -> dict[str, Column]:
    check_names([str(name) for name in data], source)
    columns: dict[str, Column] = {}
    for name, cells in data.items():
        if isinstance(cells, str | bytes | Mapping) or not hasattr(cells, "__iter__"):
            raise InputError(
                f"{brief(str(name))} in {source} is {brief(cells)}, not a list of cells. Use a "
                "dict of columns, {'n': [25, 50], 'error': [0.4, 0.3]}, a list of records, or a "
                "dict of learners with records each."
            )
        flat = isinstance(cells, np.ndarray) and cells.ndim == 1
        columns[str(name)] = cells if flat else list(cells)
    return columns


def unfold(table: Table, names: Iterable[str | None]) -> Table:
    """One row per element where cells of these columns hold lists (the errors of all runs).

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
        sizes = ", ".join(
            f"{brief(n)} has {c}" for n, c in zip(folded, counts[:, row], strict=True)
        )
        raise InputError(f"Lists in row {row + 1} of {table.source} differ in length: {sizes}.")
    long = table.take(np.repeat(np.arange(len(table)), counts[0]))
    flat = {name: [cell for cells_ in cells[name] for cell in cells_] for name in folded}
    notes = [*table.notes, f"{listed(folded)} held lists: one row per element"]
    if empty := int((counts[0] == 0).sum()):
        notes.append(f"{empty} empty list(s) taken as not measured")
    if not len(long):
        raise InputError(f"All lists in {table.source} are empty: there is nothing to measure.")
    return replace(long, columns={**long.columns, **flat}, notes=tuple(notes))


def list_columns(table: Table) -> list[str]:
    """Columns whose cells hold lists of numbers, or lists and numbers."""
    return [
        name
        for name, cells in table.columns.items()
        if _holds_lists(cells)
        and all(isinstance(v, int | float | np.number) for c in cells for v in _as_list(c))
    ]


def _holds_lists(cells: Column) -> bool:
    if isinstance(cells, np.ndarray) and cells.dtype != object:
        return False
    return any(issubclass(kind, list | tuple | np.ndarray) for kind in set(map(type, cells)))


def _is_list(cell: Any) -> bool:
    return isinstance(cell, list | tuple | np.ndarray)


def _as_list(cell: Any) -> list[Any]:
    return list(cell) if _is_list(cell) else [] if cell is None else [cell]
