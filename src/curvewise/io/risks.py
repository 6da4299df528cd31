"""Load risks of pretrained and other methods by training size, with their controls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from os.path import isdir
from pathlib import Path
from typing import Any

import numpy as np

from curvewise.errors import InputError
from curvewise.io._columns import says_percent, some_rows
from curvewise.io._files import large_files
from curvewise.io._numbers import names_in
from curvewise.io._risk_columns import ColumnName, RiskRoles, risk_roles
from curvewise.io._risk_controls import BLIND, MAXIMAL, Found, Rows, find_control, find_scratch
from curvewise.io._risk_rows import (
    Reading,
    check_direction,
    check_repeats,
    check_sizes,
    finished,
    names_of,
    reading_of,
    risks_of,
)
from curvewise.io._risk_sizes import sizes_of
from curvewise.io._risk_store import risk_table
from curvewise.io._risk_units import check_numbers
from curvewise.io._risk_wide import in_rows
from curvewise.io._stored import is_store
from curvewise.io._table import Table, listed, unfold
from curvewise.io._units import named_unit
from curvewise.io.measurements import read_source
from curvewise.types import TransferRisks
from curvewise.types.risks import ONE_TASK


def load_risks(
    source: Any,
    *,
    task: ColumnName = None,
    method: str | None = None,
    n: str | None = None,
    risk: str | None = None,
    seed: ColumnName = None,
    fold: ColumnName = None,
    scratch: str | None = None,
    blind: Any = None,
    maximal: Any = None,
    unit: str | None = None,
    higher_is_better: bool | None = None,
    where: Mapping[str, Any] | None = None,
    drop_failed: bool = False,
    allow_large: bool = False,
) -> TransferRisks:
    """Read test losses or errors of methods on tasks by training size.

    What was taken for what is said in ``notes`` of the result; where two readings are possible
    it is an error that says how to choose.

    Parameters
    ----------
    source : path, DataFrame, dict or list
        A CSV, TSV, JSON, JSON lines or Parquet file, a frame, a dict of columns or a list of
        records with a row for each run; or a folder of runs stored by
        :func:`curvewise.write_run`, of which ``risk`` then names a metric. Methods or sizes may
        also be columns; then ``higher_is_better`` must say what is in them.
    task, method, n, risk, seed, fold : str, optional
        Columns with these roles, found by name otherwise: domain, dataset, … are tasks; method,
        pretraining, initialisation, learner, … methods; train_size, n, … sizes; test_loss, risk,
        error, accuracy, … risks. False for a task, seed or fold: no column.
    scratch : str, optional
        The method that starts from nothing; by default the one called scratch, from-scratch,
        random init, ….
    blind, maximal : str, number, Interval, Control, or dict of these by task, optional
        The controls: the method whose rows they are, or their risk. By default the rows called
        blind-guess, chance, dummy, zero-shot, …, and gold, maximal, oracle, full, …. Of a control
        with several sizes the largest counts. A number is read as those of the table, so that it
        is an accuracy among accuracies, and a percentage among percentages; an Interval or a
        Control is a risk.
    unit : {"fraction", "percent", "loss", "score"}, optional
        What the values are. By default percentages if the name of the column says so
        (``error (%)``) or accuracies are above 1, and all else is taken as it is: a calibrated
        risk is the same in every unit.
    higher_is_better : bool, optional
        By default the name of the column says so; that of one chosen with ``risk`` must. Accuracies
        become errors, and scores their negatives.
    where : dict, optional
        Only rows with these values: ``{"split": "test"}``, or a list of values.
    drop_failed : bool
        Leave out failed runs, and say how many. By default they stay, with NaN.
    allow_large : bool
        Read a compressed file even if it unpacks to more than 256 MiB of text or 1 GiB of arrays.

    Returns
    -------
    TransferRisks
        Rows of scratch and the methods, in their order; those of the other controls are in
        ``blind`` and ``maximal``, with the standard error over their runs.

    Raises
    ------
    InputError
        If something cannot be read, could be read in two ways, or a run is there twice.

    Notes
    -----
    Names of controls are free. For language models ``scratch="few-shot"``, ``blind="zero-shot"``
    and ``maximal="full fine-tuning"`` play these roles, and are found by themselves unless others
    do.

    A run failed if its risk is missing, NaN or infinite, or if a column called status or state
    says so. Rows of runs that still go on are left out.

    Examples
    --------
    >>> rows = {
    ...     "domain": ["depth"] * 6,
    ...     "method": ["blind-guess", "gold", "scratch", "scratch", "swav", "swav"],
    ...     "train_size": [-1, -1, 100, 1000, 100, 1000],
    ...     "test_loss": [0.9, 0.1, 0.7, 0.4, 0.5, 0.3],
    ... }
    >>> risks = load_risks(rows)
    >>> risks
    TransferRisks(4 runs, 1 task, 2 methods, 2 sizes from 100 to 1000)
    >>> risks.blind["depth"].risk, risks.maximal["depth"].risk, risks.unit
    (0.9, 0.1, 'test loss')
    """
    used = where or {}
    told: dict[str, ColumnName] = {"task": task, "method": method, "n": n, "risk": risk}
    told |= {"seed": seed, "fold": fold}
    with large_files(allow_large):
        table, note = some_rows(_read(source), used)
    table = in_rows(table, told, used, scratch, higher_is_better)
    roles = risk_roles(table, told, list(used))
    table = unfold(table, roles.one.values())
    table, failed, notes = finished(table, roles)
    if says_percent(roles.column("risk")) and unit in (None, "fraction"):
        unit = named_unit(unit, [roles.column("risk")])
    values, lost = risks_of(table, roles.column("risk"), failed)
    reading = reading_of(roles.column("risk"), values, unit, higher_is_better, table.source)
    if risk is not None:
        check_direction(risk, unit, higher_is_better)
    given = {"blind": blind, "maximal": maximal}
    check_numbers(given, reading, roles.column("risk"), values, unit)
    rows = _rows(table, roles, reading.risks(values))
    said = [_what_was_taken(roles, reading), *note, *notes]
    repeats = check_repeats(table, roles, _keys(table, roles, rows))
    start, controls = _controls(rows, table.source, scratch, blind, maximal, reading)
    gone = np.isin(rows.methods, [name for c in controls for name in c.methods])
    check_sizes(table, roles.column("n"), rows.n, gone)
    said += [f"scratch: {start!r}", *(text for c in controls for text in c.notes)]
    found = _risks(table, roles, rows, ~gone, start, controls, reading.name)
    return _finished(found, [*said, *repeats, *lost, *table.notes], drop_failed, table.source)


def _read(source: Any) -> Table:
    if isinstance(source, str | PathLike) and isdir(source) and is_store(Path(source)):
        return risk_table(Path(source).resolve())
    return read_source(source)


def _rows(table: Table, roles: RiskRoles, risk: Any) -> Rows:
    return Rows(
        names_of(table, roles.one["task"], "task", ONE_TASK),
        names_of(table, roles.one["method"], "method", ""),
        sizes_of(table, roles.column("n")),
        np.asarray(risk, dtype=np.float64),
    )


def _keys(table: Table, roles: RiskRoles, rows: Rows) -> list[tuple[str, ...]]:
    """What a run is: task, method, size, and seed and fold where there are any."""
    more = [names_in(table, name) for role in ("seed", "fold") if (name := roles.one[role])]
    sizes = [f"{n:g}" for n in rows.n.tolist()]
    return list(zip(rows.tasks.tolist(), rows.methods.tolist(), sizes, *more, strict=True))


def _controls(
    rows: Rows, source: str, scratch: str | None, blind: Any, maximal: Any, reading: Reading
) -> tuple[str, tuple[Found, Found]]:
    """The name of scratch, and the two other controls."""
    parts = [
        find_control(rows, called, given, reading.risk, source, scratch)
        for called, given in ((BLIND, blind), (MAXIMAL, maximal))
    ]
    start = find_scratch(rows, scratch, [k for c in parts for k in c.methods], source)
    return start, (parts[0], parts[1])


def _risks(
    table: Table,
    roles: RiskRoles,
    rows: Rows,
    keep: Any,
    scratch: str,
    controls: tuple[Found, Found],
    unit: str,
) -> TransferRisks:
    def column(role: str) -> Any:
        name = roles.one[role]
        return None if name is None else np.array(names_in(table, name))[keep]

    if not keep.any():
        raise InputError(f"{table.source} has controls and no other rows: there is no method.")
    return TransferRisks(
        tasks=rows.tasks[keep],
        methods=rows.methods[keep],
        n=rows.n[keep],
        risk=rows.risk[keep],
        seeds=column("seed"),
        folds=column("fold"),
        scratch=scratch,
        blind=controls[0].control,
        maximal=controls[1].control,
        unit=unit,
    )


def _what_was_taken(roles: RiskRoles, reading: Reading) -> str:
    one = roles.one
    parts = [f"{role}s from {one[role]!r}" for role in ("task", "method") if one[role]]
    parts += [f"n from {one['n']!r}", f"risks from {one['risk']!r} ({reading.note})"]
    parts += [f"{role}s from {one[role]!r}" for role in ("seed", "fold") if one[role]]
    parts += [f"left out: {listed(roles.left_out)}"] if roles.left_out else []
    return "; ".join(parts)


def _finished(
    found: TransferRisks, notes: list[str], drop_failed: bool, source: str
) -> TransferRisks:
    failed = np.isnan(found.risk)
    if failed.all():
        raise InputError(f"All {len(found)} runs of {source} failed: none is left.")
    if drop_failed and failed.any():
        found = found.select(~failed)
        notes.append(f"{int(failed.sum())} failed runs left out")
    return replace(found, notes=tuple(notes))
