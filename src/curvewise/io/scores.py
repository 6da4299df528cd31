"""Load one score per run, where neither training-set sizes nor single examples are known."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.io._columns import FINISHED, direction, is_status, normal, plays, status_word
from curvewise.io._files import large_files
from curvewise.io._numbers import is_missing, names_in, numbers
from curvewise.io._repeats import tells_runs
from curvewise.io._table import Table, brief, listed, suggest, unfold
from curvewise.io._units import decide_unit
from curvewise.io.measurements import read_source
from curvewise.types import FloatArray

# Rows so called at the end of a sheet are no runs.
_SUMMARY = re.compile(
    "min(imum)?|max(imum)?|mean|average|avg|median|std|sd|stdev|std_dev|std_deviation|standard_deviation|var|"
    "variance|total|sum|count|stderr|std_err|standard_error"
)


def load_scores(
    source: Any,
    *,
    value: str | None = None,
    by: str | Sequence[str] | None = None,
    unit: str | None = None,
    higher_is_better: bool | None = None,
    allow_large: bool = False,
) -> dict[str, FloatArray]:
    """Read one error, accuracy, loss or score per run, by training.

    Parameters
    ----------
    source : path, DataFrame, dict or list
        A table as :func:`load_measurements` reads it, with one row for each run.
    value : str, optional
        The column with the scores; needed where several could be it.
    by : str or sequence of str, optional
        The column that says which training a run is of; several are joined with ``" / "``.
    unit : {"fraction", "percent", "loss", "score"}, optional
        What the values mean, and what is returned. By default fractions; of a column whose name
        says percent, such as ``acc (%)``, fractions are made.
    higher_is_better : bool, optional
        By default the name of the column says so; needed for fractions and percentages where it
        does not. Accuracies are turned into errors.
    allow_large : bool
        Read a compressed file even if it unpacks to more than 256 MiB of text or 1 GiB of arrays.

    Returns
    -------
    dict of str to ndarray
        Errors, losses or scores of the runs of each training, in the order of the rows. Without
        ``by`` there is one, called by the name of the file.

    Warns
    -----
    CurvewiseWarning
        If rows are left out: those without a value, summaries, such as one called "Mean", and runs
        of which a column status or state says that they failed or still go on.

    Examples
    --------
    >>> rows = {"model": ["a", "a", "b"], "val_loss": [3.2, 3.3, 3.1]}
    >>> load_scores(rows, by="model", unit="loss")
    {'a': array([3.2, 3.3]), 'b': array([3.1])}
    """
    with large_files(allow_large):
        table = read_source(source, single=True)
    name = _value_column(table, value)
    if higher_is_better is None and unit not in ("loss", "score") and direction(name) is None:
        raise InputError(
            f"The name of {table.where(name)} does not say whether higher is better: pass "
            "higher_is_better=True for accuracies or higher_is_better=False for errors."
        )
    members = [by] if isinstance(by, str) else list(by or ())
    for column in members:
        _check_there(table, "by", column)
    table = _runs_only(unfold(table, [name, *members]), name, members)
    _check_copies(table)
    chosen = decide_unit(unit, higher_is_better, [name], None)
    errors = chosen.errors(numbers(table, name), table.where(name))
    if unit is None and chosen.name == "percent":
        errors = errors / 100
    parts = [names_in(table, column) for column in members]
    names = [" / ".join(words) for words in zip(*parts, strict=True)] or [table.label] * len(table)
    which = np.array(names, dtype=np.str_)
    return {key: errors[which == key] for key in dict.fromkeys(names)}


def _value_column(table: Table, value: str | None) -> str:
    if value is not None:
        _check_there(table, "value", value)
        return value
    found = [k for k in table.columns if plays(k, "value") or direction(k) is not None]
    found = found or (list(table.columns) if len(table.columns) == 1 else [])
    if len(found) == 1:
        return found[0]
    several = f"{len(found)} columns" if found else "No column"
    raise InputError(
        f"{several} of {table.source} could be the value: say which with value=…. It has "
        f"{listed(found or table.columns)}."
    )


def _check_there(table: Table, argument: str, name: str) -> None:
    if name not in table.columns:
        raise InputError(
            f"{argument}={brief(name)}: {table.source} has no such column."
            f"{suggest(name, table.columns)} It has {listed(table.columns)}."
        )


def _runs_only(table: Table, value: str, members: Sequence[str]) -> Table:
    """Leave out rows without a value, unfinished runs and summaries, and warn of it."""
    blank = np.array([_is_blank(cell) for cell in table.columns[value]])
    summary = np.zeros(len(table), dtype=np.bool_)
    going = np.zeros(len(table), dtype=np.bool_)
    for name in (k for k in table.columns if k != value and k not in members):
        cells = table.columns[name]
        if not (isinstance(cells, np.ndarray) and cells.dtype.kind in "biuf"):
            summary |= np.array([_is_summary(c) for c in cells])
            if is_status(name, cells):
                going |= np.array([status_word(c) not in FINISHED for c in cells])
    _warn(table, blank, "hold no value")
    _warn(table, summary & ~blank, "are summaries by their names, not runs,")
    _warn(table, going & ~(blank | summary), "are of runs that are not finished")
    out = blank | summary | going
    if out.all():
        raise InputError(f"No row of {table.source} has a value in column {brief(value)}.")
    return table.take(np.flatnonzero(~out))


def _check_copies(table: Table) -> None:
    """Refuse a run that is there twice: rows alike in every column, one of which tells runs."""
    columns = {k: list(map(str, cells)) for k, cells in table.columns.items()}
    ids = [k for k, cells in columns.items() if tells_runs(k) and len(set(cells)) > 1]
    seen: dict[tuple[str, ...], int] = {}
    for row, cells in enumerate(zip(*columns.values(), strict=True) if ids else ()):
        first = seen.setdefault(cells, row)
        if first != row:
            which = ", ".join(f"{k} {brief(columns[k][row])}" for k in ids)
            raise InputError(
                f"Rows {table.rows[first]} and {table.rows[row]} of {table.source} are the same run"
                f" ({which}) with the same values: remove one of them."
            )


def _is_blank(cell: Any) -> bool:
    """Nothing measured; the text "nan" is a run that failed, and is for the unit to refuse."""
    return is_missing(cell) and not (isinstance(cell, str) and cell.strip().lower() == "nan")


def _is_summary(cell: Any) -> bool:
    return isinstance(cell, str) and _SUMMARY.fullmatch(normal(cell)) is not None


def _warn(table: Table, rows: NDArray[np.bool_], why: str) -> None:
    if rows.any():
        which = table.rows[rows]
        said = ", ".join(map(str, which[:10])) + (" …" if len(which) > 10 else "")
        warnings.warn(
            f"{len(which)} row(s) of {table.source} {why} and are left out: {said}",
            CurvewiseWarning,
            stacklevel=4,
        )
