"""Read scores with one number per run, where neither training-set sizes nor single examples are known."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from curvewise.errors import CurvewiseWarning, InputError, arg, brief, list_names
from curvewise.reading.roles import (
    FINISHED,
    check_column,
    check_direction,
    check_percent,
    decide_unit,
    direction,
    has_usual_name,
    is_status,
    is_value,
    normal,
    status_word,
    synonyms,
    tells_runs,
)
from curvewise.reading.table import Table, is_missing, large_files, names_in, numbers, read_table, unfold
from curvewise.store.tables import store_folder, store_table
from curvewise.types.results import FloatArray
from curvewise.variance.load import METRIC, SPLIT, check_one_kind

# Rows so called at the end of a sheet are no runs.
_SUMMARY = re.compile(
    "min(imum)?|max(imum)?|mean|average|avg|median|std|sd|stdev|std_dev|std_deviation|standard_deviation|var|variance|total|sum|count|stderr|std_err|standard_error"
)
_PASS = synonyms("epoch epochs step steps iteration iter checkpoint dataset task")
_INDEX = synonyms("index row row_number unnamed_0")


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
        folder = store_folder(source)
        table = store_table(folder) if folder else read_table(source, single=True)
    name = _value_column(table, value)
    members = [by] if isinstance(by, str) else list(by or ())
    for column in members:
        check_column(table.columns, table.source, arg("by", column), column)
    table = _runs_only(unfold(table, [name, *members]), name, members)
    metric = check_one_kind(table, [name, *members], METRIC | SPLIT, "by")
    described = [name] if metric is None else [name, metric]
    check_direction(described, table.where(name), unit, higher_is_better)
    _check_copies(table, name, members)
    chosen = decide_unit(unit, higher_is_better, [name], metric)
    check_percent(unit, chosen, numbers(table, name), table.where(name))
    errors = chosen.errors(numbers(table, name), table.where(name))
    # Without a unit the result is in fractions, whatever the column had.
    if unit is None and chosen.name == "percent":
        errors = errors / 100
    parts = [names_in(table, column) for column in members]
    names = [" / ".join(words) for words in zip(*parts, strict=True)] or [table.label] * len(table)
    which = np.array(names, dtype=np.str_)
    return {key: errors[which == key] for key in dict.fromkeys(names)}


def _value_column(table: Table, value: str | None) -> str:
    if value is not None:
        check_column(table.columns, table.source, arg("value", value), value)
        return value
    found = [k for k in table.columns if is_value(k) or has_usual_name(k)]
    found = found or [k for k in table.columns if direction(k) is not None]
    found = found or (list(table.columns) if len(table.columns) == 1 else [])
    if len(found) == 1:
        return found[0]
    several = f"{len(found)} columns" if found else "No column"
    raise InputError(
        f"{several} of {table.source} could be the value: say which with {arg('value')}. It has "
        f"{list_names(found or table.columns)}."
    )


def _runs_only(table: Table, value: str, members: Sequence[str]) -> Table:
    """Leave out rows without a value, unfinished runs and summaries, and warn of it."""
    # The text "nan" is a run that failed, and is for the unit to refuse.
    nothing = [is_missing(c) and not (isinstance(c, str) and c.strip().lower() == "nan") for c in table.columns[value]]
    blank, summary, going = np.array(nothing), *np.zeros((2, len(table)), dtype=np.bool_)
    for name in (k for k in table.columns if k != value and k not in members):
        cells = table.columns[name]
        if not (isinstance(cells, np.ndarray) and cells.dtype.kind in "biuf"):
            summary |= np.array([isinstance(c, str) and bool(_SUMMARY.fullmatch(normal(c))) for c in cells])
            if is_status(name, cells):
                going |= np.array([status_word(c) not in FINISHED for c in cells])
    for rows, why in (
        (blank, "hold no value"),
        (summary & ~blank, "are summaries by their names, not runs,"),
        (going & ~(blank | summary), "are of runs that are not finished"),
    ):
        if rows.any():
            which = table.rows[rows]
            shown = ", ".join(map(str, which[:10])) + (" …" if len(which) > 10 else "")
            text = f"{len(which)} row(s) of {table.source} {why} and are left out: {shown}"
            warnings.warn(text, CurvewiseWarning, stacklevel=3)
    out = blank | summary | going
    if out.all():
        raise InputError(f"No row of {table.source} has a value in column {brief(value)}.")
    return table.take(np.flatnonzero(~out))


def _check_copies(table: Table, value: str, members: Sequence[str]) -> None:
    """Refuse a run that is there twice: rows of one training, fold and seed; or every row again."""
    columns = {k: list(map(str, cells)) for k, cells in table.columns.items() if normal(k) not in _INDEX}
    training = list(zip(*(columns[k] for k in members), strict=True)) or [()] * len(table)
    ids = [k for k, cells in columns.items() if tells_runs(k) and k not in (value, *members) and len(set(cells)) > 1]
    known = np.array([any(not is_missing(table.columns[k][row]) for k in ids) for row in range(len(table))])
    seen: dict[tuple[Any, ...], int] = {}
    for row in np.flatnonzero(known).tolist():
        if (first := seen.setdefault((training[row], *(columns[k][row] for k in ids)), row)) != row:
            which = ", ".join(f"{k} {brief(columns[k][row])}" for k in ids)
            differ = [k for k, cells in columns.items() if k != value and cells[first] != cells[row]]
            alike = columns[value][first] == columns[value][row]
            remedy = " with the same values: remove one of them" if alike else ": remove one of them"
            if differ:
                by = arg("by", [*members, differ[0]] if members else differ[0])
                remedy = f", and they differ in {list_names(differ, 3)}: keep the rows of one, or pass {by}"
            raise InputError(
                f"Rows {table.rows[first]} and {table.rows[row]} of {table.source} are the same run ({which}){remedy}. "
                f"If {brief(ids[0])} does not tell runs apart, leave that column out."
            )
    if known.any():
        return
    for name in (k for k in columns if normal(k) in _PASS and k not in (value, *members)):
        counted = Counter(zip(training, columns[name], strict=True))
        # Once each, it is the epoch at which a run stopped.
        if len(counted) > len(set(training)) and len(set(counted.values())) == 1 and max(counted.values()) > 1:
            by = arg("by", [*members, name] if members else name)
            raise InputError(
                f"Rows of one training in {table.source} differ in {brief(name)}, with as many rows for each: keep the "
                f"rows of one, or pass {by}."
            )
    counts = Counter(zip(*columns.values(), strict=True))
    if len(counts) > 2 and (times_each := int(np.gcd.reduce(list(counts.values())))) > 1:
        raise InputError(
            f"Every row of {table.source} is there {times_each} times. Remove the copies, or add a column seed that "
            "tells runs apart."
        )
