"""Load checkpoints with what fine-tuning gave and what measures said of them before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from curvewise.errors import InputError
from curvewise.io._columns import check_column, normal, some_rows
from curvewise.io._files import large_files
from curvewise.io._numbers import names_in, numbers
from curvewise.io._score_columns import BASELINES, ROLES, ScoreRoles, score_roles
from curvewise.io._score_join import joined
from curvewise.io._score_rows import gather
from curvewise.io._table import Table, brief, listed, unfold
from curvewise.io._units import ask_percent, named_unit
from curvewise.io.measurements import read_source
from curvewise.types import CheckpointScores, FloatArray
from curvewise.types.coercion import same_names

_UNITS = {"fraction": 1.0, "percent": 100.0, "score": 1.0}


def load_checkpoint_scores(
    source: Any,
    *,
    accuracies: Any = None,
    checkpoint: str | None = None,
    task: str | None = None,
    group: str | None = None,
    accuracy: str | None = None,
    measures: Sequence[str] | None = None,
    measure: str | None = None,
    score: str | None = None,
    wide: str | None = None,
    unit: str | None = None,
    reference: str | Sequence[str] = (),
    baselines: Sequence[str] | None = None,
    where: Mapping[str, Any] | None = None,
    repeats: str | None = None,
    allow_large: bool = False,
) -> CheckpointScores:
    """Read checkpoints with fine-tuned accuracies and scores of ranking measures.

    What was taken for what is said in ``notes`` of the result.

    Parameters
    ----------
    source : path, DataFrame, dict or list
        A CSV, TSV, JSON, JSON lines or Parquet file, a frame, a dict of columns or a list of
        records. Either a row for each checkpoint and task with a column for each measure, or a row
        for each score with a column that names the measure, or accuracies alone as a matrix (see
        ``wide``).
    accuracies : path, DataFrame, dict, list or CheckpointScores, optional
        The accuracies, if they are in another table; joined by checkpoint, task and group. Scores
        without a column of tasks hold for all tasks.
    checkpoint, task, group, accuracy : str, optional
        Columns with these roles, found by name otherwise.
    measures : sequence of str, optional
        Columns with scores, by default all other numbers; where each row is one score, the
        measures to read. Columns called ``MEASURE_gflops`` or ``gflops.MEASURE`` are their costs.
    measure, score : str, optional
        Columns with the name of a measure and its score, where each row is one score.
    wide : {"checkpoints"}, optional
        Each column of numbers is a checkpoint and holds its accuracies, a row for each task.
    unit : {"fraction", "percent", "score"}, optional
        Of the accuracies. By default percent if the name of their column says so (``acc (%)``),
        else fractions. A score is any number of which more is better.
    reference : str or sequence of str
        Checkpoints that are shown and never ranked, such as "From-Scratch"; also those that a
        column ``reference`` marks as true.
    baselines : sequence of str, optional
        Which scores are plain baselines; by default those called like a number of parameters or a
        source accuracy.
    where : dict, optional
        Only rows with these values: ``{"Trainable Backbone": False}``, or a list of values.
    repeats : {"best", "mean"}, optional
        What to take of several rows of one checkpoint and task: the best accuracy, as over
        hyperparameters, or the mean, as over seeds. By default they are an error.
    allow_large : bool
        Read a compressed file even if it unpacks to more than 256 MiB of text or 1 GiB of arrays.

    Returns
    -------
    CheckpointScores
        Rows without an accuracy or a score are kept, with NaN, and noted.

    Raises
    ------
    InputError
        If something cannot be read, or could be read in two ways.

    Examples
    --------
    >>> rows = {
    ...     "model": ["a", "b", "a", "b"],
    ...     "dataset": ["pets", "pets", "cars", "cars"],
    ...     "accuracy": [91.0, 88.0, 70.5, 73.0],
    ...     "nleep": [-0.5, -0.7, -2.1, -2.0],
    ...     "parameters": [25, 11, 25, 11],
    ... }
    >>> table = load_checkpoint_scores(rows, unit="percent")
    >>> table, table.baselines
    (CheckpointScores(2 checkpoints, 2 tasks, 1 group, 2 measures), ('parameters',))
    """
    _check_options(unit, wide, repeats)
    with large_files(allow_large):
        table, note = some_rows(read_source(source), where or {})
    told = {"checkpoint": checkpoint, "task": task, "group": group, "accuracy": accuracy}
    options = _Options(unit, repeats)
    if wide is not None:
        found = _from_matrix(table, told, options)
    else:
        named = {**told, "measure": measure, "score": score}
        roles = score_roles(table, named, measures, list(where or ()))
        table = unfold(table, [*roles.one.values(), *roles.measures * (not roles.is_long)])
        found = _from_rows(table, roles, options, separate=accuracies is not None)
    if accuracies is not None:
        with large_files(allow_large):
            found = joined(found, _truth(accuracies, told, options), table.source)
    if unit == "percent" and 0 < np.nanmax(found.accuracy, initial=0.0) <= 0.01:
        raise InputError(
            "unit='percent', and no accuracy is above 1: pass unit='fraction' if that is what they "
            "are."
        )
    found = replace(found, notes=(*found.notes, *note, *table.notes))
    return _finished(found, reference, baselines)


@dataclass(frozen=True)
class _Options:
    unit: str | None
    repeats: str | None


def _check_options(unit: str | None, wide: str | None, repeats: str | None) -> None:
    if unit is not None and unit not in _UNITS:
        raise InputError(f"unit={unit!r}: use one of {', '.join(map(repr, _UNITS))}.")
    if wide not in (None, "checkpoints"):
        raise InputError(f"wide={wide!r}: use 'checkpoints', or leave it out.")
    if repeats not in (None, "best", "mean"):
        raise InputError(f"repeats={repeats!r}: use 'best', 'mean', or leave it out.")


def _from_rows(
    table: Table, roles: ScoreRoles, options: _Options, *, separate: bool
) -> CheckpointScores:
    one = roles.one
    if one["checkpoint"] is None:
        raise InputError(
            f"{table.source} has no column of checkpoints: name it with checkpoint=…. It has "
            f"{listed(table.columns)}."
        )
    if one["accuracy"] is None and not separate:
        raise InputError(
            f"{table.source} has no accuracies: name their column with accuracy=…, or pass the "
            f"table that has them as accuracies=…. It has {listed(table.columns)}."
        )
    truth = np.full(len(table), np.nan)
    if one["accuracy"] is not None and not separate:
        name = one["accuracy"]
        truth = _in_unit(table, name, named_unit(options.unit, [name]))
    found = gather(table, roles, truth, options.repeats)
    notes = [
        *(f"{role}s from {one[role]!r}" for role in ("checkpoint", "task", "group") if one[role]),
        *([f"accuracies from {one['accuracy']!r}"] if one["accuracy"] and not separate else []),
        f"scores: {listed(found.scores) or 'none'}",
        *([f"left out: {listed(roles.left_out)}"] if roles.left_out else []),
    ]
    return replace(found, reference=_references(table, one), notes=(*notes, *found.notes))


def _references(table: Table, one: Mapping[str, str | None]) -> tuple[str, ...]:
    """Checkpoints that a column marks as references."""
    if one["reference"] is None or one["checkpoint"] is None:
        return ()
    marks = [word.lower() in ("true", "1", "yes") for word in names_in(table, one["reference"])]
    names = names_in(table, one["checkpoint"])
    return tuple(dict.fromkeys(n for n, mark in zip(names, marks, strict=True) if mark))


def _in_unit(table: Table, name: str, unit: str) -> FloatArray:
    top = _UNITS[unit]
    values = numbers(table, name) / top
    bad = np.isinf(values) | ((values < 0) | (values > 1) if unit != "score" else False)
    if bad.any():
        right = "'percent'" if top == 1 else "'fraction'"
        raise InputError(
            f"{table.where(name)} holds {values[bad][0] * top:g}, which is no "
            f"{'fraction' if top == 1 else 'percentage'}: pass unit={right} if that is "
            "what it is, or unit='score' for a number without bounds."
        )
    return values


def _from_matrix(table: Table, told: dict[str, str | None], options: _Options) -> CheckpointScores:
    """Accuracies with a row for each task and a column for each checkpoint."""
    for role in ("checkpoint", "accuracy"):
        if told[role] is not None:
            raise InputError(f"{role}={told[role]!r} does not go with wide='checkpoints'.")
    keys = {}
    for role in ("task", "group"):
        check_column(table, role, told[role])
        free = [k for k in table.columns if normal(k) in ROLES[role]]
        keys[role] = told[role] or (free[0] if free else None)
    names = [k for k in table.columns if k not in keys.values()]
    ask_percent(options.unit, names, "checkpoints", table.source)
    unit = options.unit or "fraction"
    values = np.stack([_in_unit(table, name, unit) for name in names], axis=1)

    def spread(role: str) -> Any:
        column = keys[role]
        return None if column is None else np.repeat(names_in(table, column), len(names))

    return CheckpointScores(
        np.tile(same_names(names, f"the columns of {table.source}"), len(table)),
        values.ravel(),
        tasks=spread("task"),
        groups=spread("group"),
        notes=(f"{len(names)} checkpoints from columns, {len(table)} tasks from rows",),
    )


def _truth(accuracies: Any, told: dict[str, str | None], options: _Options) -> CheckpointScores:
    if isinstance(accuracies, CheckpointScores):
        return accuracies
    table = read_source(accuracies)
    named = {k: v if v in table.columns else None for k, v in told.items()}
    roles = score_roles(table, named, None, ())
    found = _from_rows(table, roles, options, separate=False)
    return replace(found, notes=(*found.notes, *table.notes))


def _finished(
    table: CheckpointScores, reference: str | Sequence[str], baselines: Sequence[str] | None
) -> CheckpointScores:
    """With references and baselines, and notes of what is missing."""
    names = (reference,) if isinstance(reference, str) else tuple(reference)
    names = tuple(dict.fromkeys((*table.reference, *names)))
    for name in names:
        if name not in table.checkpoints:
            raise InputError(f"reference names {brief(name)}, which is no checkpoint of the table.")
    plain = baselines
    if plain is None:
        plain = [name for name in table.scores if normal(name) in BASELINES]
    ranked = ~np.isin(table.checkpoints, names)
    notes = [f"baselines: {listed(plain)}"] if plain and baselines is None else []
    columns = {"accuracy": table.accuracy, **table.scores}
    for name, values in columns.items():
        if lost := int((np.isnan(values) & ranked).sum()):
            notes.append(f"{lost} of {int(ranked.sum())} rows have no {brief(name)}")
    return replace(
        table,
        reference=names,
        baselines=tuple(plain),
        notes=tuple(dict.fromkeys((*table.notes, *notes))),
    )
