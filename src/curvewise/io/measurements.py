"""Load learning-curve measurements from files, frames and plain Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from os.path import isdir
from pathlib import Path
from typing import Any

import numpy as np

from curvewise.errors import InputError
from curvewise.io._columns import (
    ColumnMap,
    Roles,
    assign_roles,
    says_percent,
    some_rows,
)
from curvewise.io._commas import decimal_note
from curvewise.io._files import large_files, read_file
from curvewise.io._labels import labels_of
from curvewise.io._numbers import first_row, names_in, numbers
from curvewise.io._readings import Readings, read_values
from curvewise.io._records import holds_losses, store_table
from curvewise.io._repeats import check_repeats, not_told_apart
from curvewise.io._stored import is_store
from curvewise.io._table import (
    Table,
    brief,
    list_columns,
    listed,
    table_from_dict,
    table_from_frame,
    table_from_records,
    unfold,
)
from curvewise.io._trackers import keep_finished, plain_names
from curvewise.io._units import ask_percent, decide_unit, unit_note
from curvewise.types import FloatArray, Measurements, Unit

_NUMBERS = ("n", "runs", "variance", "std")
_UNFOLDED = ("value", *_NUMBERS, "learner", "fold", "seed")


def load_measurements(
    source: Any,
    *,
    unit: str | None = None,
    higher_is_better: bool | None = None,
    columns: ColumnMap | None = None,
    wide: str | None = None,
    per_class: int | None = None,
    metric: str | None = None,
    split: str | None = None,
    where: Mapping[str, Any] | None = None,
    drop_failed: bool = False,
    tracker: str | None = None,
    allow_large: bool = False,
) -> Measurements:
    """Read errors, accuracies, losses or scores by training-set size.

    What was taken for what is said in ``notes`` of the result; where two readings are possible
    it is an error that says how to choose.

    Parameters
    ----------
    source : path, DataFrame, dict or list
        A CSV, TSV, JSON, JSON lines or Parquet file (text also with ``.gz``); a pandas, polars or
        pyarrow frame; a dict of columns; a list of records. A cell may hold a list with the
        values of several runs: ``{"num_train_samples": 25, "test_errors": [42.9, 40.5]}``. A dict
        may also have learners as keys, with records or columns each. A folder of runs stored by
        :func:`curvewise.write_run` gives the metric "error" of each, or the one that ``metric``
        names; its "loss", in the unit loss, where runs predict numbers. Runs that failed are left
        out and counted in ``notes``.
    unit : {"fraction", "percent", "loss", "score"}, optional
        What the values mean. By default percent if the name of the value column or of the metric
        says so (``error (%)``, ``acc_pct``), else fractions.
    higher_is_better : bool, optional
        By default the name of the value column or of the metric says so: an accuracy or a score
        is turned into an error when the unit is a fraction or percentages.
    columns : dict, optional
        Which column plays a role: ``{"n": "size_train", "value": "err_valid_mean"}``. Roles are n,
        value, learner, fold, seed, split, metric, runs, variance, std (squared into the variance),
        status, and ignore for columns that are not read. A list of columns for the learner is
        joined with ``" / "``, a list for the value is a wide table; None leaves a role out. Roles
        not named here are found by name: see Notes.
    wide : {"runs", "learners", "sizes"}, optional
        Each column of numbers is a run, or a learner, or a size (the name is the number). Columns
        called ``run1``, ``seed_2``, … and columns whose names are sizes are seen by themselves.
    per_class : int, optional
        Number of classes, if sizes count examples of each class: they are multiplied by it.
    metric, split : str, optional
        Which rows to take when there is a column of metrics or splits with several values; of a
        folder of stored runs, which of their metrics.
    where : dict, optional
        Only rows with these values: ``{"epoch": 10}``, or a list of values.
    drop_failed : bool
        Drop rows whose value is missing, NaN or infinite, and say which. By default they are an
        error in a long table. An empty cell in a wide table is not measured, and is noted.
    tracker : {"mlflow", "wandb", "optuna"}, optional
        What the table was exported from: ``mlflow.search_runs()``, runs of Weights & Biases as a
        frame or the file of a project's table, ``study.trials_dataframe()`` of Optuna, or any of
        them saved to a file. ``params.n`` is then known as n and ``metrics.val_error`` as
        val_error, the name of a run is no learner, and bookkeeping is left out.
    allow_large : bool
        Read a compressed file even if it unpacks to more than 256 MiB of text or 1 GiB of arrays.

    Returns
    -------
    Measurements
        One row per value. Columns that play no role are in ``labels``.

    Raises
    ------
    InputError
        If something cannot be read, or could be read in two ways.
    MissingDependencyError
        For Parquet without pyarrow: ``pip install "curvewise[parquet]"``.

    Notes
    -----
    Names are compared in lower case, with spaces and punctuation as underscores: n, size,
    train_size, n_train, num_train_samples, samples, seen_examples, … are sizes; learner, model,
    method, estimator, algorithm, name, … learners; n_rep, runs, replicates, count, … runs. A value
    is called error, err, loss, risk, accuracy, acc, score, value or mean, possibly with test,
    valid, train, mean or rate beside it; with var or variance, std or sd it is the spread. The
    whole dictionary is ``curvewise.io._columns``.

    Rows of one learner and size are its runs. Two rows with the same fold and seed are one run, and
    an error; so are rows that differ in a setting (epoch, lr, dataset, …) where neither folds nor
    seeds tell runs apart, and rows that are there several times. The message says how to choose.
    A setting is known by its name, or because the same values recur at every size; other columns
    that vary between runs are named in ``notes``. ``columns={"seed": None}`` takes rows that are
    alike as runs where no column is a seed.

    Where a column called status or state says of every row that it is finished, failed, running,
    pruned, …, only finished rows are taken, and the others are counted in ``notes``;
    ``columns={"status": None}`` takes all.

    Text is UTF-8, with or without a byte-order mark, separated by commas, semicolons or tabs.
    Between semicolons or tabs, ``78,96`` is read as 78.96, and a size such as ``1,000`` is an
    error; otherwise ``"1,000"`` is a thousand in a column of sizes, and any other comma in a
    number an error. Rows are counted from 1 below the header.

    Examples
    --------
    >>> rows = {"size": [25, 50, 100], "acc": [0.5, 0.75, 0.875], "model": ["net", "net", "net"]}
    >>> m = load_measurements(rows)
    >>> m.error.tolist()
    [0.5, 0.25, 0.125]
    >>> print(m.notes[0])
    n from column 'size'; value from 'acc' (higher is better, turned into error = 1 − acc);
    learner from 'model'; 3 rows, 3 sizes from 25 to 100, 1 learner
    """
    with large_files(allow_large):
        table = _stored(source, metric) or read_source(source)
    unit = _unit_of(source, table, unit)
    if metric is not None and metric in table.columns and _is_stored(source):
        columns, metric = {"value": metric, **(columns or {})}, None
    if "learner" in table.columns and _is_stored(source):  # a coordinate of runs has its own name
        columns = {"learner": "learner", **(columns or {})}
    if tracker is not None:
        table, columns = plain_names(table, tracker, columns)
    table, chosen_note = some_rows(table, where or {})
    roles = assign_roles(table, columns, wide)
    folded = list_columns(table) if not roles["value"] else ()
    table = unfold(table, [*folded, *(k for role in _UNFOLDED for k in roles[role])])
    table = keep_finished(table, roles)
    table, metrics = _select(table, roles, "metric", metric)
    table, _ = _select(table, roles, "split", split)
    readings = _drop_failed(read_values(table, roles, wide), drop_failed)
    names = readings.measured if readings.form in ("long", "runs") else ()
    if not names:
        ask_percent(unit, readings.measured, readings.form, table.source)
    chosen = decide_unit(unit, higher_is_better, names, metrics)
    errors = chosen.errors(readings.value, f"{listed(readings.measured, 3)} in {table.source}")
    n, size_note = _total_sizes(readings.n, per_class)
    runs, variance, spread_notes = _summaries(readings.table, roles, chosen)
    labels, label_notes = labels_of(readings, roles)
    said = _what_was_taken(readings, roles, unit_note(chosen, names), n)
    read = [*readings.measured, *(name for role in _NUMBERS for name in roles[role])]
    decimals = decimal_note(table, read)
    found = Measurements(
        learner=readings.learner,
        n=n,
        error=errors,
        unit=chosen.once_read,
        runs=runs,
        variance=variance,
        labels=labels,
    )
    apart, alike = not_told_apart(columns, list(labels))
    if readings.run is not None:  # a column, which every row has
        apart, alike = [*apart, "run"], False
    repeat_notes = check_repeats(
        found, table.source, readings.table.rows, roles["learner"], apart, alike
    )
    notes = (
        *(said, size_note, *chosen_note, *table.notes, *decimals, *readings.notes),
        *(*spread_notes, *label_notes, *repeat_notes),
    )
    return replace(found, notes=notes)


def _is_stored(source: Any) -> bool:
    return isinstance(source, str | PathLike) and isdir(source) and is_store(Path(source))


def _stored(source: Any, metric: str | None) -> Table | None:
    """The runs of a store; None for another source."""
    return store_table(Path(source).resolve(), metric) if _is_stored(source) else None


def _unit_of(source: Any, table: Table, unit: str | None) -> str | None:
    """The unit as given; that of a store whose runs predict numbers is loss."""
    if not _is_stored(source):
        return unit
    if not holds_losses(Path(source), table):
        return unit
    if unit not in ("loss", None):
        raise InputError(
            f"unit={unit!r}: the runs in {table.source} predict numbers, and their values are "
            "losses. Leave unit= out, or pass unit='loss'."
        )
    return "loss"


def read_source(source: Any, *, single: bool = False) -> Table:
    """Read whatever can be a table; ``single`` allows one column."""
    if isinstance(source, str | PathLike):
        if _is_stored(source):
            return store_table(Path(source).resolve())
        return read_file(source, single=single)
    if isinstance(source, Mapping):
        return table_from_dict(source, "the dict")
    if isinstance(source, list | tuple):
        return table_from_records(source, "the list of records")
    if isinstance(source, np.ndarray):
        raise InputError(
            f"source is an array of shape {source.shape}, which does not say what is what. Pass "
            "a dict of columns: {'n': sizes, 'error': errors}."
        )
    return table_from_frame(source, "the DataFrame")


def _select(table: Table, roles: Roles, role: str, wanted: str | None) -> tuple[Table, str | None]:
    """Take the rows of one metric or split, and which it is."""
    if not roles[role]:
        if wanted is not None:
            raise InputError(
                f"{role}={wanted!r:.200}: {table.source} has no column of {role}s. Say which with "
                f"columns={{{role!r}: …}}; it has {listed(table.columns)}."
            )
        return table, None
    name = roles[role][0]
    words = np.array(names_in(table, name), dtype=np.str_)
    there = list(dict.fromkeys(words.tolist()))
    if wanted is None and len(there) > 1:
        other = " If it numbers folds, pass columns={'fold': 'split'}." if role == "split" else ""
        raise InputError(
            f"{table.where(name)} has {len(there)} values: {listed(there)}. Choose one with "
            f"{role}={there[0]!r:.200}.{other}"
        )
    chosen = there[0] if wanted is None else str(wanted)
    if chosen not in there:
        raise InputError(f"{role}={wanted!r:.200} is not in {table.where(name)}: {listed(there)}.")
    keep = words == chosen
    if keep.all():
        return table, chosen
    note = f"{int(keep.sum())} of {len(table)} rows taken: {role} is {chosen!r:.200}"
    table = table.take(np.flatnonzero(keep))
    return replace(table, notes=(*table.notes, note)), chosen


def _drop_failed(readings: Readings, drop: bool) -> Readings:
    failed = ~np.isfinite(readings.value)
    if not failed.any():
        return readings
    count, rows = int(failed.sum()), readings.table.rows
    if not drop:
        raise InputError(
            f"{count} of {len(failed)} values in {listed(readings.measured, 3)} of "
            f"{readings.table.source} are missing, NaN or infinite ({first_row(rows, failed)}). "
            "Pass drop_failed=True to leave these runs out and have it noted, or give them the "
            "value of a blind guess."
        )
    if failed.all():
        raise InputError(f"All {count} values of {readings.table.source} failed: none is left.")
    which = [
        f"{brief(str(readings.learner[i]))} at n = {_size(readings.n[i])} (row {rows[i]})"
        for i in np.flatnonzero(failed)[:10]
    ]
    more = f" and {count - 10} more" if count > 10 else ""
    note = f"{count} of {len(failed)} values dropped as failed: {', '.join(which)}{more}"
    kept = readings.take(~failed)
    return replace(kept, notes=[*kept.notes, note])


def _total_sizes(n: FloatArray, per_class: int | None) -> tuple[FloatArray, str]:
    if per_class is None:
        below = "; some are below 1: fractions of a data set, or thousands?"
        return n, "sizes taken as given" + (below if n.min() < 1 else "")
    whole = isinstance(per_class, int | np.integer) and not isinstance(per_class, bool)
    if not whole or per_class < 1:
        raise InputError(f"per_class={per_class!r} must be the number of classes, a whole number.")
    return n * per_class, f"sizes multiplied by {per_class} classes, so that n is the total"


def _summaries(
    table: Table, roles: Roles, unit: Unit
) -> tuple[FloatArray | None, FloatArray | None, list[str]]:
    """Read runs and variance of rows that are means, and what to say about them."""
    runs = variance = None
    notes = []
    if roles["runs"]:
        name = roles["runs"][0]
        runs = _at_least(table, name, "runs", 1.0)
        notes.append(f"number of runs from {name!r:.200}")
    for role in ("variance", "std"):
        if roles[role]:
            name = roles[role][0]
            if says_percent(name) and unit.name != "percent":
                raise InputError(
                    f"{table.where(name)} says percent, and the values are read in "
                    f"{unit.name!r}: pass unit='percent' if they are percentages too, or "
                    f"columns={{{role!r}: None}}."
                )
            spread = _at_least(table, name, role, 0.0)
            variance = spread**2 if role == "std" else spread
            notes.append(f"variance from {name!r:.200}" + (", squared" if role == "std" else ""))
            if missing := int(np.isnan(spread).sum()):
                notes.append(f"{missing} row(s) without a variance")
    return runs, variance, notes


def _at_least(table: Table, name: str, role: str, low: float) -> FloatArray:
    remedy = f"Or pass columns={{{role!r}: None}} if it is not the {role}."
    values = numbers(table, name, thousands=role == "runs", remedy=remedy)
    bad = (values < low) | np.isinf(values) | (np.isnan(values) & (role == "runs"))
    if bad.any():
        cell = table.columns[name][int(np.flatnonzero(bad)[0])]
        raise InputError(
            f"{table.where(name)} is the {role}, which must be at least {low:g}: it reads "
            f"{brief(cell)} ({first_row(table.rows, bad)}). {remedy}"
        )
    return values


def _what_was_taken(readings: Readings, roles: Roles, reading: str, n: FloatArray) -> str:
    many, names = len(readings.measured), listed(readings.measured, 5)
    by_form = {
        "long": f"value from {names}",
        "runs": f"value from {many} column(s) taken as runs, {names}",
        "learners": f"value from {many} column(s) taken as learners, {names}",
        "sizes": f"value from {many} column(s) taken as sizes, {names}",
    }
    learner = f"learner from {' / '.join(map(brief, roles['learner']))}"
    if readings.form == "learners":
        learner = "learner from the column names"
    elif not roles["learner"]:
        learner = f"no column of learners: all rows are {readings.table.label!r}"
    size = f"n from column {brief(roles['n'][0])}" if roles["n"] else "n from the column names"
    sizes, learners = np.unique(n), len(set(readings.learner.tolist()))
    span = f" from {_size(sizes[0])} to {_size(sizes[-1])}" if len(sizes) > 1 else ""
    counts = f"{_plural(len(n), 'row')}, {_plural(len(sizes), 'size')}{span}"
    value = f"{by_form[readings.form]} ({reading})"
    return f"{size}; {value}; {learner}; {counts}, {_plural(learners, 'learner')}"


def _size(n: float) -> str:
    return f"{int(n):,}" if n == int(n) else f"{n:g}"


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
