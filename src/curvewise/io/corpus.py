"""Load corpora of trained models: hyperparameters, generalization gaps and measures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from curvewise.errors import InputError
from curvewise.io._competition import (
    SPECIFICATIONS,
    add_predictions,
    corpus_of_tasks,
    is_specification,
    task_from_dict,
    tasks_from_folder,
)
from curvewise.io._corpus_columns import CorpusRoles, corpus_roles
from curvewise.io._files import as_path, json_table, kind_of, large_files, parse_json, read_text
from curvewise.io._numbers import label_array, names_in, numbers
from curvewise.io._table import Table, brief, listed, shown
from curvewise.io._units import named_unit
from curvewise.io.measurements import read_source
from curvewise.types import FloatArray, ModelCorpus

_UNITS = {"fraction": 1.0, "percent": 100.0}


def load_corpus(
    source: Any,
    *,
    gap: str | None = None,
    hyperparameters: Sequence[str] | None = None,
    measures: Sequence[str] | None = None,
    task: str | None = None,
    model: str | None = None,
    train_accuracy: str | None = None,
    orientation: Mapping[str, int] | None = None,
    unit: str | None = None,
    predictions: str | PathLike[str] | None = None,
    allow_large: bool = False,
) -> ModelCorpus:
    """Read trained models with their hyperparameters, gaps and measures.

    What was taken for what is said in ``notes`` of the result.

    Parameters
    ----------
    source : path, DataFrame, dict or list
        A table with a row for each model: CSV, TSV, JSON, JSON lines or Parquet, a frame, a dict
        of columns or a list of records. Or the layout of the PGDL competition: a folder with
        ``model_configs.json`` for each task (and ``MEASURE/TASK.predict``), one such file, or a
        dict with ``model_specs`` and ``prediction``.
    gap : str, optional
        The column with the gap. By default one that is called so, or the difference of columns of
        training and test accuracy, or of test and training error.
    hyperparameters, measures : sequence of str, optional
        Columns. If only hyperparameters are named, other numbers are measures. Columns that
        nobody names are told apart by prefixes (``hp.depth``, ``measure.gi``), by usual names of
        hyperparameters, and by whether values repeat; where that is not plain it is an error.
    task, model, train_accuracy : str, optional
        Columns with these roles, found by name otherwise.
    orientation : dict of str to {1, -1}, optional
        Of measures: 1 where more should mean a larger gap, -1 where a smaller one.
    unit : {"fraction", "percent"}, optional
        Of gaps, accuracies and errors. By default percent for columns whose names say so
        (``gap (%)``), else fractions.
    predictions : path, optional
        A folder with further predictions in the competition's layout.
    allow_large : bool
        Read a compressed file even if it unpacks to more than 256 MiB of text or 1 GiB of arrays.

    Returns
    -------
    ModelCorpus
        Models without a gap or a measure are kept, with NaN, and noted.

    Raises
    ------
    InputError
        If something cannot be read, or could be read in two ways.

    Examples
    --------
    >>> rows = {
    ...     "depth": [2, 2, 4, 4],
    ...     "train_acc": [1.0, 1.0, 0.99, 1.0],
    ...     "test_acc": [0.9, 0.88, 0.93, 0.91],
    ...     "norm": [5.1, 5.6, 3.2, 3.9],
    ... }
    >>> corpus = load_corpus(rows)
    >>> corpus.gap.round(2).tolist(), list(corpus.hyperparameters), list(corpus.measures)
    ([0.1, 0.12, 0.06, 0.09], ['depth'], ['norm'])
    """
    if unit is not None and unit not in _UNITS:
        raise InputError(f"unit={unit!r}: gaps and accuracies are 'fraction' or 'percent'.")
    with large_files(allow_large):
        data, name = _read(source)
    if isinstance(data, Path) or is_specification(data):
        named = {"gap": gap, "hyperparameters": hyperparameters, "measures": measures, "task": task}
        if any(named.values()):
            raise InputError(
                f"{name} is in the competition's layout, which says what is what: leave out "
                f"{', '.join(k for k, v in named.items() if v)}."
            )
        folders = [data] if isinstance(data, Path) else []
        tasks = tasks_from_folder(data) if folders else [task_from_dict(data, name, name)]
        folders += [] if predictions is None else [as_path(predictions)]
        notes = [note for folder in folders for note in add_predictions(tasks, folder)]
        return corpus_of_tasks(tasks, orientation, _UNITS[unit or "fraction"], notes)
    if predictions is not None:
        raise InputError("predictions= goes with the competition's layout, which this is not.")
    table = data if isinstance(data, Table) else read_source(data)
    told = {"gap": gap, "task": task, "model": model, "train_accuracy": train_accuracy}
    roles = corpus_roles(table, told, hyperparameters, measures, orientation or ())
    return _from_table(table, roles, orientation, unit)


def _read(source: Any) -> tuple[Any, str]:
    """A folder, a table, or what may be either a table or specifications; and what it is called."""
    if not isinstance(source, str | PathLike):
        return source, "the dict"
    path = as_path(source)
    if path.is_dir():
        return path.resolve(), shown(path)
    if kind_of(path)[0] != "json":
        return read_source(path), shown(path)
    data = parse_json(read_text(path), path)
    if not is_specification(data):
        return json_table(data, path), shown(path)
    return data, path.resolve().parent.name if path.stem in SPECIFICATIONS else path.stem


def _from_table(
    table: Table, roles: CorpusRoles, orientation: Mapping[str, int] | None, unit: str | None
) -> ModelCorpus:
    gap, train, said = _gap(table, roles, unit)
    names, name_note = _models(table, roles)
    values = {name: numbers(table, name) for name in roles.measures}
    task = roles.one["task"]
    notes = [
        said,
        f"hyperparameters from {listed(roles.hyperparameters) or 'no column'}; measures from "
        f"{listed(roles.measures) or 'no column'}"
        + (" (told apart by names and values)" if roles.guessed else ""),
        *([f"tasks from {task!r}"] if task else []),
        *([f"left out: {listed(roles.left_out)}"] if roles.left_out else []),
        *name_note,
        *table.notes,
    ]
    if lost := int(np.isnan(gap).sum()):
        notes.append(f"{lost} of {len(table)} models have no gap: they failed or were not measured")
    for name, column in values.items():
        if lost := int((~np.isfinite(column)).sum()):
            notes.append(f"{lost} of {len(table)} models have no {brief(name)}")
    return ModelCorpus(
        models=names,
        hyperparameters={k: label_array(table.columns[k]) for k in roles.hyperparameters},
        gap=gap,
        measures=values,
        orientation=orientation or {},
        tasks=np.array(names_in(table, task), dtype=np.str_) if task else None,
        train_accuracy=train,
        notes=tuple(notes),
    )


def _gap(
    table: Table, roles: CorpusRoles, unit: str | None
) -> tuple[FloatArray, FloatArray | None, str]:
    """The gap and the training accuracy as fractions, and where they are from."""

    def read(role: str) -> FloatArray | None:
        name = roles.one[role]
        return None if name is None else _in_unit(table, name, _UNITS[named_unit(unit, [name])])

    train, error = read("train_accuracy"), read("train_error")
    if train is None and error is not None:
        train = 1 - error
    known, test, test_error = read("gap"), read("test_accuracy"), read("test_error")
    if known is not None:
        return known, train, f"gap from {roles.one['gap']!r}"
    if train is not None and test is not None:
        return train - test, train, f"gap as training accuracy − {roles.one['test_accuracy']!r}"
    if train is not None and test_error is not None:
        return test_error - (1 - train), train, f"gap as {roles.one['test_error']!r} − train error"
    raise InputError(
        f"{table.source} has no gap: name its column with gap=…, or give columns of training and "
        f"test accuracy (train_accuracy, test_accuracy) or error. It has {listed(table.columns)}."
    )


def _in_unit(table: Table, name: str, top: float) -> FloatArray:
    values = numbers(table, name) / top
    bad = np.isinf(values) | (np.abs(values) > 1)
    if bad.any():
        right = "'percent'" if top == 1 else "'fraction'"
        raise InputError(
            f"{table.where(name)} holds {values[bad][0] * top:g}, which is no "
            f"{'fraction' if top == 1 else 'percentage'}: pass unit={right} if that is what it is."
        )
    return values


def _models(table: Table, roles: CorpusRoles) -> tuple[tuple[str, ...], list[str]]:
    """Names of the models; those that are there twice are numbered."""
    column = roles.one["model"]
    if column is None:
        return tuple(f"model {row}" for row in table.rows), ["models are numbered by their rows"]
    task = roles.one["task"]
    where = names_in(table, task) if task else [""] * len(table)
    names = names_in(table, column)
    count = Counter(zip(where, names, strict=True))
    if max(count.values()) == 1:
        return tuple(names), [f"models from {column!r}"]
    unique = [
        name if count[place, name] == 1 else f"{name} (row {row})"
        for place, name, row in zip(where, names, table.rows, strict=True)
    ]
    return tuple(unique), [f"models from {column!r}, with the row where a name is there twice"]
