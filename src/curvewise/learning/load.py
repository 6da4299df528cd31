"""Read errors, accuracies, losses or scores by training-set size from files, frames, plain Python and stores."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from os.path import isdir
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, Message, arg, brief, list_names
from curvewise.reading.repeats import check_repeats, join_measurements
from curvewise.reading.roles import (
    FOLD,
    LEARNER,
    SEED,
    SIZE,
    STATUS,
    ColumnMap,
    ColumnRoles,
    Role,
    ask,
    ask_percent,
    check_direction,
    check_percent,
    decide_unit,
    direction,
    find_roles,
    is_spread,
    is_value,
    keep_ended,
    normal,
    says_percent,
    select_one,
    select_rows,
    synonyms,
)
from curvewise.reading.table import (
    THOUSANDS,
    Table,
    check_grouping,
    decimal_note,
    expand_files,
    first_row,
    full_names,
    is_measured,
    is_missing,
    label_array,
    large_files,
    list_columns,
    names_in,
    numbers,
    parse,
    read_table,
    unfold,
)
from curvewise.reading.trackers import plain_names
from curvewise.store.tables import holds_losses, store_folder, store_table
from curvewise.text import as_count, format_count
from curvewise.types.measurements import Measurements
from curvewise.types.results import FloatArray, Unit, same_names

_VALUE = Role(
    "value",
    matches=(is_value,),
    several=True,
    needed=True,
    if_several=f"{arg('wide', 'runs')} or {arg('wide', 'learners')} if each is a measurement of its own",
)
ROLES = (
    Role("n", (SIZE,), needed=True, noun="training-set size"),
    Role("learner", (LEARNER,), several=True, joined=True),
    Role("fold", (FOLD,)),
    Role("seed", (SEED,)),
    Role("split", (synonyms("split subset partition"),)),
    Role("metric", (synonyms("metric measure metric_name eval_metric scorer scoring score_name"),)),
    Role("runs", (synonyms("runs n_runs num_runs n_rep n_reps num_reps reps replicates n_replicates count"),)),
    _VALUE,
    Role("variance", matches=(lambda k: is_spread(k, synonyms("var variance")),)),
    Role("std", matches=(lambda k: is_spread(k, synonyms("std sd stdev")),)),
    STATUS,
    Role("ignore", several=True),
)
WIDE = ("runs", "learners", "sizes")
_NUMBERS = ("n", "runs", "variance", "std")
_ANY_VALUE = synonyms("value values y mean avg average")
_UNFOLDED = ("value", *_NUMBERS, "learner", "fold", "seed")
_RUN_NAME = re.compile(r"(run|seed|fold|rep|replicate|repeat|repetition|trial)_?[0-9]+")


def load_measurements(
    source: Any,
    *,
    unit: str | None = None,
    higher_is_better: bool | None = None,
    columns: ColumnMap | None = None,
    wide: str | None = None,
    per_class: int | None = None,
    metric: str | None = None,
    where: Mapping[str, Any] | None = None,
    drop_failed: bool = False,
    tracker: str | None = None,
    allow_large: bool = False,
) -> Measurements:
    """Read errors, accuracies, losses or scores by training-set size.

    ``notes`` of the result record how each column was interpreted; where two readings are possible it is an error that
    says how to choose.

    Parameters
    ----------
    source : path, DataFrame, dict or list
        A CSV, TSV, JSON, JSON lines or Parquet file (text also with ``.gz``); a pandas, polars or
        pyarrow frame; a dict of columns; a list of records. A cell may hold a list with the
        values of several runs: ``{"num_train_samples": 25, "test_errors": [42.9, 40.5]}``. A dict
        may also have learners as keys, with records or columns each. A folder of runs stored by
        :func:`curvewise.write_run` gives the metric "error" of each, or the one that ``metric``
        names; its "loss", in the unit loss, where runs predict numbers. Runs that failed have NaN, and
        are counted in ``notes``; ``drop_failed`` leaves them out.
    unit : {"fraction", "percent", "loss", "score"}, optional
        What the values mean. By default percent if the name of the value column or of the metric
        says so (``error (%)``, ``acc_pct``), else fractions.
    higher_is_better : bool, optional
        By default the name of the value column or of the metric says so: an accuracy or a score
        is turned into an error when the unit is a fraction or percentages. A column called value, y or
        mean holds errors, unless a tracker wrote it. A column or metric that was chosen, or that a
        tracker wrote, and whose name says nothing needs this argument.
    columns : dict, optional
        Which column has a role: ``{"n": "size_train", "value": "err_valid_mean"}``. Roles are n,
        value, learner, fold, seed, split, metric, runs, variance, std (squared into the variance),
        status, and ignore for columns that are not read. A list of columns for the learner is
        joined with ``" / "``, a list for the value is a wide table; None leaves a role out. ColumnRoles
        not named here are found by name: see Notes.
    wide : {"runs", "learners", "sizes"}, optional
        Each column of numbers is a run, or a learner, or a size (the name is the number). Columns
        called ``run1``, ``seed_2``, … and columns whose names are sizes are seen by themselves.
    per_class : int, optional
        Number of classes, if sizes count examples of each class: they are multiplied by it.
    metric : str, optional
        Which rows to take when there is a column of metrics with several values; of a folder of
        stored runs, which of their metrics.
    where : dict, optional
        Only rows with these values: ``{"epoch": 10}``, or a list of values. ``{"split": "test"}``
        also finds a column of splits that has another name.
    drop_failed : bool
        Drop rows whose value is missing, NaN or infinite, and say which. By default they are an
        error in a long table. An empty cell in a wide table is not measured, and is noted.
    tracker : {"mlflow", "wandb", "optuna"}, optional
        The source of the table: ``mlflow.search_runs()``, runs of Weights & Biases as a
        frame or the file of a project's table, ``study.trials_dataframe()`` of Optuna, or any of
        them saved to a file. ``params.n`` is then known as n and ``metrics.val_error`` as
        val_error, the name of a run is no learner, and bookkeeping is left out.
    allow_large : bool
        Read a compressed file even if it unpacks to more than 256 MiB of text or 1 GiB of arrays.

    Returns
    -------
    Measurements
        One row per value. Columns without a role are in ``labels``.

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
    valid, train, mean or rate beside it; with var or variance, std or sd it is the spread. All
    names are in ``curvewise.learning.load.ROLES``.

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
    n from 'size'; learner from 'model'; value from 'acc' (higher is better, turned into error = 1 − acc);
    3 rows, 3 sizes from 25 to 100, 1 learner
    """
    options: dict[str, Any] = {"wide": wide, "per_class": per_class, "where": where, "drop_failed": drop_failed}
    if isinstance(source, str | PathLike) and len(files := expand_files(source)) > 1:
        options |= {"unit": unit, "higher_is_better": higher_is_better, "columns": columns, "metric": metric}
        options |= {"tracker": tracker, "allow_large": allow_large}
        parts = {str(file): load_measurements(file, **options) for file in files}
        return join_measurements(parts, columns=columns)
    # A file or a frame need not pass through the reader of stores.
    folder = store_folder(source) if isinstance(source, str | PathLike) and isdir(source) else None
    with large_files(allow_large):
        table = store_table(folder, metric) if folder else read_table(source)
    if folder:
        unit, columns, metric = _of_store(folder, table, unit, columns, metric)
    if tracker is not None:
        table, columns = plain_names(table, tracker, columns)
    options |= {"metric": metric, "keep_failed": folder is not None, "tracked": tracker is not None}
    return measurements_of(table, columns, unit, higher_is_better, **options)


def read_stored(frame: Any, columns: ColumnMap, unit: str | None, higher_is_better: bool | None) -> Measurements:
    """Read a frame of measurements of a store, in which runs that failed stay."""
    return measurements_of(read_table(frame), {**columns, "status": None}, unit, higher_is_better, keep_failed=True)


def measurements_of(
    table: Table,
    columns: ColumnMap | None,
    unit: str | None = None,
    higher_is_better: bool | None = None,
    *,
    wide: str | None = None,
    per_class: int | None = None,
    metric: str | None = None,
    where: Mapping[str, Any] | None = None,
    drop_failed: bool = False,
    keep_failed: bool = False,
    tracked: bool = False,
) -> Measurements:
    """Interpret a table that was read; arguments as in :func:`load_measurements`.

    With ``keep_failed`` the table has a row for every run, those that failed with NaN, and a column "status" that says
    so: runs of a store or a tracker. ``tracked`` tables are of a tracker, where any metric may be called "value".
    """
    roles = _find_columns(table, columns, wide)
    named_split = "split" if "split" in table.columns else roles.get("split") or "split"
    table = select_rows(table, {named_split if k == "split" else k: v for k, v in (where or {}).items()})
    # Cells may hold the values of all runs as lists, in a column that no name tells.
    folded = () if "value" in roles else list_columns(table)
    table = unfold(table, [*folded, *(k for role in _UNFOLDED for k in roles.of(role))])
    table = keep_ended(table, roles.get("status"))
    table, metric = select_one(table, "metric", roles.get("metric"), metric)
    _check_one_split(table, roles.get("split"))
    readings = _read_values(table, roles, wide)
    if drop_failed or not keep_failed:
        readings = _drop_failed(readings, drop_failed)
    # Only in these forms the name of a column speaks of the values: in the others it is a learner or a size.
    value_names = readings.measured if readings.form in ("long", "runs") else ()
    if not value_names:
        ask_percent(unit, readings.measured, readings.form, table.source)
    if readings.form == "learners" and metric is None:
        _ask_accuracies(readings.measured, table.source, unit, higher_is_better)
    # A value that nobody chose is an error; one that was chosen by a name that says nothing may be anything.
    value_column = (columns or {}).get("value")
    is_chosen = isinstance(value_column, str) and normal(value_column) not in _ANY_VALUE
    if value_names and (tracked or is_chosen or metric is not None):
        called = table.where(value_names[0]) if metric is None else f"the metric {brief(metric)} in {table.source}"
        check_direction([*value_names, *([metric] if metric else [])], called, unit, higher_is_better)
    chosen = decide_unit(unit, higher_is_better, value_names, metric)
    check_percent(unit, chosen, readings.value, f"{list_names(readings.measured, 3)} in {table.source}")
    known = np.isfinite(readings.value) if keep_failed else np.ones(len(readings.value), dtype=np.bool_)
    errors = np.full(len(known), np.nan)
    errors[known] = chosen.errors(readings.value[known], f"{list_names(readings.measured, 3)} in {table.source}")
    n, size_note = _total_sizes(readings.n, per_class)
    runs, variance, spread_notes = _summaries(readings.table, roles, chosen)
    labels, label_notes = _labels_of(readings, roles, _STORE_LABELS if keep_failed else ())
    found = Measurements(
        learner=readings.learner, n=n, error=errors, unit=chosen.once_read, runs=runs, variance=variance, labels=labels
    )
    one_file = () if readings.run is None else ("run",)  # a column that every row of a wide table has
    repeat_notes = check_repeats(found, table.source, readings.table.rows, columns, roles.of("learner"), one_file)
    notes = (
        *(_describe(readings, roles, _unit_note(chosen, value_names), n), size_note, *table.notes),
        *decimal_note(table, [*readings.measured, *(name for role in _NUMBERS for name in roles.of(role))]),
        *(*readings.notes, *spread_notes, *label_notes, *repeat_notes),
    )
    return replace(found, notes=tuple(map(Message, notes)))


def _of_store(
    folder: Path, table: Table, unit: str | None, columns: ColumnMap | None, metric: str | None
) -> tuple[str | None, ColumnMap | None, str | None]:
    """Return unit, columns and metric for the table of a store, which names its columns itself."""
    if holds_losses(folder, table):
        if unit not in ("loss", None):
            problem = f"the runs in {table.source} predict numbers, and their values are losses."
            remedy = f"Leave {arg('unit')} out, or pass {arg('unit', 'loss')}."
            raise InputError(problem, argument="unit", value=unit, remedy=remedy)
        unit = "loss"
    # Columns of a store have their meaning by contract. Failed runs stay, as NaN, since a study counts them as well.
    own: dict[str, str | None] = {"status": None}
    own |= {"learner": "learner"} if "learner" in table.columns else {}
    if metric is not None and metric in table.columns:
        own, metric = {**own, "value": metric}, None
    return unit, {**own, **(columns or {})}, metric


def _find_columns(table: Table, columns: ColumnMap | None, wide: str | None) -> ColumnRoles:
    """Find the column of each role; in the wide form values are not looked for."""
    roles = [Role("value", several=True) if wide and role is _VALUE else role for role in ROLES]
    found = find_roles(table.columns, table.source, roles, columns)
    if "variance" in found and "std" in found:
        raise InputError(
            f"{table.source} has a variance ({list_names(found.of('variance'))}) and a standard deviation "
            f"({list_names(found.of('std'))}). Leave one out: {ask('std', None)}."
        )
    return found


def _check_one_split(table: Table, column: str | None) -> None:
    """Refuse rows of several splits, which are no runs of one curve."""
    there = [] if column is None else list(dict.fromkeys(names_in(table, column)))
    if len(there) > 1:
        raise InputError(
            f"{table.where(str(column))} names {len(there)} splits: {list_names(there)}. Choose one with "
            f"{arg('where', {column: there[0]})}. If it numbers folds, pass {ask('fold', column)}."
        )


def _ask_accuracies(learners: Sequence[str], source: str, unit: str | None, higher_is_better: bool | None) -> None:
    """Raise where columns are learners and their names, such as cnn_acc, speak of accuracies or scores."""
    found = [name for name in learners if direction(name)]
    if higher_is_better is None and unit not in ("loss", "score") and found:
        raise InputError(
            f"The columns of {source} are learners, and {list_names(found[:3])} may say that higher is better: pass "
            f"{arg('higher_is_better', True)} for accuracies or {arg('higher_is_better', False)} for errors.",
            argument="higher_is_better",
        )


def _drop_failed(readings: Readings, drop: bool) -> Readings:
    # Dropping diverged runs in silence makes a learner look better than it is.
    failed = ~np.isfinite(readings.value)
    if not failed.any():
        return readings
    count, rows = int(failed.sum()), readings.table.rows
    if not drop:
        raise InputError(
            f"{count} of {len(failed)} values in {list_names(readings.measured, 3)} of {readings.table.source} are "
            f"missing, NaN or infinite ({first_row(rows, failed)}). Pass {arg('drop_failed', True)} to leave these "
            "runs out and have it noted, or give them the value of a blind guess."
        )
    if failed.all():
        raise InputError(f"All {count} values of {readings.table.source} failed: none is left.")
    which = [
        f"{brief(str(readings.learner[i]))} at n = {as_count(readings.n[i]):,} (row {rows[i]})"
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
        raise InputError("must be the number of classes, a whole number.", argument="per_class", value=per_class)
    return n * per_class, f"sizes multiplied by {per_class} classes, so that n is the total"


def _summaries(table: Table, roles: ColumnRoles, unit: Unit) -> tuple[FloatArray | None, FloatArray | None, list[str]]:
    """Read the number of runs and their variance where rows are means, and make notes."""
    runs = variance = None
    notes = []
    if "runs" in roles:
        name = roles["runs"]
        runs = _at_least(table, name, "runs", 1.0)
        notes.append(f"number of runs from {name!r:.200}")
    for role in ("variance", "std"):
        if role in roles:
            name = roles[role]
            if says_percent(name) and unit.name != "percent":
                raise InputError(
                    f"{table.where(name)} says percent, and the values are read in {unit.name!r}: pass "
                    f"{arg('unit', 'percent')} if they are percentages too, or {ask(role, None)}."
                )
            spread = _at_least(table, name, role, 0.0)
            variance = spread**2 if role == "std" else spread
            notes.append(f"variance from {name!r:.200}" + (", squared" if role == "std" else ""))
            if missing := int(np.isnan(spread).sum()):
                notes.append(f"{format_count(missing, 'row')} without a variance")
    return runs, variance, notes


def _at_least(table: Table, name: str, role: str, low: float) -> FloatArray:
    remedy = f"Or pass {ask(role, None)} if it is not the {role}."
    values = numbers(table, name, thousands=role == "runs", remedy=remedy)
    bad = (values < low) | np.isinf(values) | (np.isnan(values) & (role == "runs"))
    _refuse(table, name, bad, f"{table.where(name)} is the {role}, which must be at least {low:g}: it reads", remedy)
    return values


def _refuse(table: Table, name: str, bad: NDArray[np.bool_], problem: str, remedy: str) -> None:
    """Raise if a column has bad cells, and show the first of them."""
    if bad.any():
        cell = table.columns[name][int(np.flatnonzero(bad)[0])]
        raise InputError(f"{problem} {brief(cell)} ({first_row(table.rows, bad)}). {remedy}")


def _describe(readings: Readings, roles: ColumnRoles, unit: str, n: FloatArray) -> str:
    """Describe which column was taken for which role, and how much was read."""
    held: dict[str, tuple[str, ...]] = {k: roles.of(k) for k in ("n", "learner") if k in roles}
    parts = [ColumnRoles(held).note()] if held else []
    if readings.form in ("learners", "sizes"):
        parts.insert(0, f"{'learner' if readings.form == 'learners' else 'n'} from the column names")
    if readings.form == "long":
        value = ColumnRoles({"value": readings.measured}).note(value=unit)
    else:
        columns = f"{format_count(len(readings.measured), 'column')} taken as {readings.form}"
        value = f"value from {columns}, {list_names(readings.measured, 5)} ({unit})"
    if readings.form != "learners" and "learner" not in roles:
        parts.append(f"no column of learners: all rows are {readings.table.label!r}")
    sizes, learners = np.unique(n), len(set(readings.learner.tolist()))
    span = f" from {as_count(sizes[0]):,} to {as_count(sizes[-1]):,}" if len(sizes) > 1 else ""
    counts = [format_count(len(n), "row"), format_count(len(sizes), "size") + span, format_count(learners, "learner")]
    return "; ".join([*parts, value, ", ".join(counts)])


def _unit_note(unit: Unit, columns: Sequence[str]) -> str:
    """Describe in a phrase how values were read."""
    if unit.higher_is_better and not unit.bounded:
        return "a score, higher is better"
    if unit.higher_is_better:
        name = columns[0] if len(columns) == 1 else "value"
        return f"higher is better, turned into error = {unit.top:g} − {name if name.isidentifier() else brief(name)}"
    if unit.name == "loss":
        return "a loss, lower is better"
    is_loss = any("loss" in k.lower() for k in columns)
    unbounded = f"; for an unbounded loss pass {arg('unit', 'loss')}" if is_loss else ""
    return f"an error from 0 to {unit.top:g}{unbounded}"


@dataclass(frozen=True, eq=False)
class Readings:
    """Measured values, row by row; NaN where a run failed.

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
        kept = {name: getattr(self, name)[keep] for name in ("learner", "n", "value")}
        run = None if self.run is None else self.run[keep]
        return replace(self, table=self.table.take(np.flatnonzero(keep)), run=run, **kept)


def _read_values(table: Table, roles: ColumnRoles, wide: str | None) -> Readings:
    """Find the form of a table and read sizes, values and learners out of it."""
    if wide is not None and wide not in WIDE:
        raise InputError(f"is not known: use one of {list_names(WIDE)}.", argument="wide", value=wide)
    form = wide or _form(table, roles)
    if form == "long":
        n, value = _sizes(table, roles), numbers(table, roles["value"])
        notes = _thousands_note(table, roles)
        return Readings(table, form, roles.of("value"), _learners(table, roles), n, value, notes=notes)
    for role in ("runs", "variance", "std"):
        if role in roles:
            raise InputError(
                f"{table.where(roles[role])} is the {role}, which a wide table cannot carry: remove it, pass "
                f"{ask(role, None)}, or use one row per measurement."
            )
    return _melt(table, roles, form)


def _size_columns(table: Table) -> list[str]:
    """Find the columns whose names are training-set sizes: whole numbers from 1."""
    sizes = {name: parse(name, thousands=True) for name in table.columns}
    return [k for k, n in sizes.items() if n and math.isfinite(n) and n >= 1 and n == int(n)]


def _form(table: Table, roles: ColumnRoles) -> str:
    if "n" not in roles:
        sizes = _size_columns(table)
        if len(sizes) < 2 or "value" in roles:
            raise _no_size(table)
        return "sizes"
    if len(roles.of("value")) == 1:
        return "long"
    found = list(roles.of("value")) or _measured(table, roles, "runs")
    if len(found) > 1 and all(_RUN_NAME.fullmatch(normal(k)) for k in found):
        return "runs"
    if not found:
        raise InputError(
            f"No column of {table.source} is known as the value: it has {list_names(table.columns)}. Say which with "
            f"{arg('columns', {'value': 'COLUMN'})}, or name it error, accuracy or loss."
        )
    raise InputError(
        f"{table.source} has a size but no column known as the value; {list_names(found)} hold numbers. Pass "
        f"{arg('wide', 'runs')} if each column is a run, {arg('wide', 'learners')} if each is a learner, or "
        f"{ask('value', found[0])} if one of them is the value."
    )


def _no_size(table: Table) -> InputError:
    if all(parse(name) is not None for name in table.columns):
        return InputError(
            f"The column names of {table.source} are numbers ({list_names(table.columns, 5)}): is the line with the "
            "names missing? Add it, for example n,error."
        )
    return InputError(
        f"No column of {table.source} is known as the training-set size: it has {list_names(table.columns)}. Say which "
        f"with {arg('columns', {'n': 'COLUMN'})}, or name it n."
    )


def _melt(table: Table, roles: ColumnRoles, form: str) -> Readings:
    measured = roles.of("value") or tuple(_measured(table, roles, form))
    _check_wide(table, roles, form, measured)
    cells = np.column_stack([numbers(table, name) for name in measured]).ravel()
    blank = np.column_stack([[is_missing(c) for c in table.columns[k]] for k in measured]).ravel()
    if blank.all():
        raise InputError(f"All cells of {list_names(measured)} in {table.source} are empty.")
    row, column = np.divmod(np.flatnonzero(~blank), len(measured))
    rest = {k: v for k, v in table.columns.items() if k not in measured}
    called = same_names(list(measured), f"the columns of {table.source}")
    name = np.array(called, dtype=np.str_)[column]
    sizes = np.array([parse(k, thousands=True) for k in measured]) if form == "sizes" else None
    note = f"{format_count(int(blank.sum()), 'empty cell')} taken as not measured"
    return Readings(
        table=replace(table, columns=rest).take(row),
        form=form,
        measured=measured,
        learner=name if form == "learners" else _learners(table, roles)[row],
        n=_sizes(table, roles)[row] if sizes is None else sizes.astype(np.float64)[column],
        value=cells[~blank],
        run=name if form == "runs" else None,
        notes=[*([note] if blank.any() else []), *_thousands_note(table, roles)],
    )


def _measured(table: Table, roles: ColumnRoles, form: str) -> list[str]:
    """Find the columns of numbers that have no other role."""
    if form == "sizes":
        return _size_columns(table)
    taken = {name for role, held in roles.held.items() if role != "value" for name in held}
    free = [name for name in table.columns if name not in taken]
    return [name for name in free if _RUN_NAME.fullmatch(normal(name)) or is_measured(table.columns[name])]


def _check_wide(table: Table, roles: ColumnRoles, form: str, names: Sequence[str]) -> None:
    if not names:
        what = "whose name is a size" if form == "sizes" else "of numbers beside the size"
        raise InputError(f"{table.source} has no column {what}.", argument="wide", value=form)
    others = [name for name in names if not _RUN_NAME.fullmatch(normal(name))]
    if form == "runs" and "value" not in roles and 0 < len(others) < len(names):
        raise InputError(
            f"Among the columns of {table.source} some are called like runs and some are not ({list_names(others)}). "
            f"Name the runs: {ask('value', names)}."
        )
    if form == "sizes" and "n" in roles:
        problem = f"reads sizes from the column names, but {table.where(roles['n'])} holds sizes too."
        remedy = f"Pass {arg('wide', 'runs')} or {arg('wide', 'learners')}."
        raise InputError(problem, argument="wide", value=form, remedy=remedy)
    for name in names if form == "sizes" and table.decimal_commas else ():
        check_grouping(name, f"The name of a column of {table.source} is")
    if form == "sizes" and any(name not in _size_columns(table) for name in names):
        raise InputError(f"{list_names(names)} must all be sizes, such as '25'.", argument="wide", value=form)
    if form != "sizes" and "n" not in roles:
        raise _no_size(table)
    if form == "learners" and "learner" in roles:
        problem = f"takes learners from the column names, but {table.where(roles['learner'])} names learners too."
        remedy = f"Pass {arg('wide', 'runs')}, or {ask('learner', None)} to keep it as a label."
        raise InputError(problem, argument="wide", value=form, remedy=remedy)


def _learners(table: Table, roles: ColumnRoles) -> NDArray[np.str_]:
    columns = roles.of("learner")
    if not columns:
        return np.repeat(np.array([table.label], dtype=np.str_), len(table))
    remedy = f"fill it in, or pass {ask('learner', None)} if all rows are one learner"
    parts = [full_names(table, name, "learner", remedy) for name in columns]
    return np.array([" / ".join(names) for names in zip(*parts, strict=True)], dtype=np.str_)


def _sizes(table: Table, roles: ColumnRoles) -> FloatArray:
    name = roles["n"]
    n = numbers(table, name, thousands=True)
    for bad, what in ((np.isnan(n), "empty"), (np.isinf(n), "infinite"), (n <= 0, "not positive")):
        remedy = "Sizes are counts of training examples: correct them or remove the rows."
        _refuse(table, name, bad, f"A training-set size in {table.where(name)} is {what}:", remedy)
    return n


def _thousands_note(table: Table, roles: ColumnRoles) -> list[str]:
    cells = table.columns[roles["n"]] if "n" in roles else []
    there = [cell for cell in cells if isinstance(cell, str) and THOUSANDS.fullmatch(cell.strip())]
    return [f"commas in sizes read as thousands: {there[0]!r}"] if there else []


# What a frame of measurements calls its own columns.
_RESERVED = ("learner", "n", "error", "runs", "variance")
_COORDINATES = ("fold", "seed", "split", "metric")
# Columns of a store or a tracker that never tell curves apart.
_STORE_LABELS = ("status", "run")


def _labels_of(
    readings: Readings, roles: ColumnRoles, expected: Sequence[str] = ()
) -> tuple[dict[str, NDArray[Any]], list[str]]:
    """Keep the columns that are neither size nor value under safe names, with notes on unexpected ones."""
    cells, learner = readings.table.columns, roles.of("learner")
    notes: list[str] = []
    several: list[str] = []
    labels = {role: label_array(cells[roles[role]]) for role in _COORDINATES if role in roles}
    if readings.run is not None:
        labels["run"] = readings.run
    parts = learner if len(learner) > 1 else ()  # of a joined name, so that they are kept as well
    claimed = {name for held in roles.held.values() for name in held} - set(parts)
    for name in (k for k in cells if k not in claimed):
        key = name
        # A frame of measurements has its own columns of these names.
        while key in _RESERVED or key in labels:
            key += "_column"
        if key != name:
            notes.append(f"column {name!r} kept as the label {key!r}")
        labels[key] = label_array(cells[name])
        if name not in (*learner, *expected) and labels[key].dtype.kind == "U":
            kinds = len(set(labels[key].tolist()))  # a name of each row tells no curves apart
            several += [name] if 1 < kinds < max(len(labels[key]), 3) else []
    if several:
        notes.append(
            f"kept as labels and not part of the learner's name: {list_names(several)}; to tell curves apart by them "
            f"pass {ask('learner', [*several, *learner])}"
        )
    return labels, notes
