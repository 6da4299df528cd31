"""Trained models with their hyperparameters, generalization gaps and measures, and how to read them."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError, arg, brief, format_path, list_names
from curvewise.reading.roles import (
    SETTINGS,
    STATUS,
    TOPS,
    ColumnMap,
    ColumnRoles,
    Role,
    ask,
    bare,
    check_column,
    find_roles,
    fractions,
    is_status,
    keep_ended,
    named_unit,
    normal,
    synonyms,
)
from curvewise.reading.table import (
    Column,
    Table,
    as_path,
    full_names,
    is_measured,
    is_missing,
    json_table,
    kind_of,
    label_array,
    large_files,
    names_in,
    numbers,
    parse,
    parse_json,
    read_table,
    read_text,
    texts,
)
from curvewise.text import format_count
from curvewise.types.results import FloatArray, RowTable, as_column, as_floats, distinct

_NAMES = {
    "model": "model name model_name model_id id run run_id run_name network",
    "task": "task task_name",
    "gap": "gap generalization_gap generalisation_gap gen_gap",
    "train_accuracy": "train_accuracy train_acc training_accuracy training_acc accuracy_train acc_train",
    "test_accuracy": "test_accuracy test_acc accuracy_test acc_test | val_accuracy val_acc | accuracy acc",
    "train_error": "train_error train_err training_error error_train",
    "test_error": "test_error test_err error_test | val_error | error err",
}
# "|" parts names that count only where no column has one before it: a gap goes by the test set where there is one.
_FIRST = ("model", "test_accuracy", "test_error")  # of several columns with such a name the first counts
ROLES = tuple(
    Role(role, tuple(map(synonyms, names.split("|"))), percent=True, first=role in _FIRST, needed=role == "gap")
    for role, names in _NAMES.items()
)
# A loss on test data is no measure: it is what measures should predict.
_NEITHER = synonyms("""
    seed fold seconds time date epoch epochs index test_loss val_loss validation_loss loss_test
    status run_status""")
_EPOCHS = synonyms("epoch epochs")
# In a corpus of a study these are settings where they vary, but a learner may also be the name of each model.
_OF_A_STUDY = synonyms("learner n")
_SETTING = re.compile(r"(hp|hparam|hparams|hyperparameter|hyperparameters|param|params)[._:/]+.+")
_MEASURE = re.compile(r"(measure|measures|prediction|predictions)[._:/]+.+")
RESERVED = ("model", "task", "gap", "train_accuracy")
ONE_TASK = "all models"


def load_corpus(
    source: Any,
    *,
    columns: ColumnMap | None = None,
    hyperparameters: Sequence[str] | None = None,
    measures: Sequence[str] | None = None,
    orientation: Mapping[str, int] | None = None,
    unit: str | None = None,
    predictions: str | PathLike[str] | None = None,
    allow_large: bool = False,
) -> ModelCorpus:
    """Read trained models with their hyperparameters, gaps and measures.

    ``notes`` of the result record how each column was interpreted.

    Parameters
    ----------
    source : path, DataFrame, dict or list
        A table with a row for each model: CSV, TSV, JSON, JSON lines or Parquet, a frame, a dict
        of columns or a list of records. Or the layout of the PGDL competition: a folder with
        ``model_configs.json`` for each task (and ``MEASURE/TASK.predict``), one such file, or a
        dict with ``model_specs`` and ``prediction``.
    columns : dict, optional
        Which column has a role: ``{"gap": "difference", "task": "suite"}``. Roles are model, task, gap, train_accuracy,
        test_accuracy, train_error, test_error and status; None leaves one out. Others are found by name. Without a gap
        it is the difference of training and test accuracy, or of test and training error.
    hyperparameters, measures : sequence of str, optional
        Columns. If only hyperparameters are named, other numbers are measures. Other columns are distinguished by
        prefixes (``hp.depth``, ``measure.gi``), by the names of :func:`list_measures`, by usual names of
        hyperparameters, and by whether values repeat; where that leaves a doubt it is an error. Where some have the
        prefix of hyperparameters, other numbers are measures.
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
        Models without a gap or a measure are kept, with NaN, and noted. Where a column called status or state says of
        every row that it is finished, failed, running, …, only finished models are taken, and the others are counted in
        ``notes``: a model that was stopped halfway has a gap, too. ``columns={"status": None}`` takes all.

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
    if unit not in (None, "fraction", "percent"):
        raise InputError(f"{arg('unit', unit)}: gaps and accuracies are 'fraction' or 'percent'.")
    with large_files(allow_large):
        data, name = read_source(source)
        if isinstance(data, Path) or is_specification(data):
            given = {"columns": columns, "hyperparameters": hyperparameters, "measures": measures}
            if odd := [k for k, v in given.items() if v]:
                raise InputError(
                    f"{name} is in the competition's layout, which says what is what: leave out "
                    f"{', '.join(map(arg, odd))}."
                )
            folders = [data] if isinstance(data, Path) else []
            tasks = _tasks_from_folder(data) if folders else [_task_from_dict(data, name, name)]
            folders += [] if predictions is None else [as_path(predictions)]
            notes = [note for folder in folders for note in _add_predictions(tasks, folder)]
            return _corpus_of_tasks(tasks, orientation, TOPS[unit or "fraction"], notes)
        if predictions is not None:
            raise InputError(f"{arg('predictions')} goes with the competition's layout, which this is not.")
        table = data if isinstance(data, Table) else read_table(data)
    table, roles = _find_columns(table, columns, hyperparameters, measures, orientation or ())
    return _from_table(table, roles, orientation, unit)


def join_corpora(corpora: Mapping[str, ModelCorpus]) -> ModelCorpus:
    """Join corpora into one in which each is a task, such as data sets and families of networks side by side.

    Parameters
    ----------
    corpora : dict of str to ModelCorpus
        By the name of the task; a corpus with tasks of its own gives ``"name, task"`` for each.

    Returns
    -------
    ModelCorpus
        A hyperparameter that one of them lacks is None there, a measure NaN. Models are only compared with others of
        their task, so that hyperparameters and gaps of different tasks need not be comparable.

    Raises
    ------
    InputError
        If there is none, two of them declare different orientations of a measure, or tasks have the same name.

    Examples
    --------
    >>> one = ModelCorpus(("a", "b"), {"depth": [2, 4]}, [0.1, 0.2], {"norm": [5.0, 6.0]})
    >>> joined = join_corpora({"CIFAR-10": one, "SVHN": one})
    >>> joined, joined.task_names
    (ModelCorpus(4 models, 2 tasks, 1 hyperparameter, 1 measure), ('CIFAR-10', 'SVHN'))
    """
    if not isinstance(corpora, Mapping) or not corpora:
        raise InputError("give a dict of at least one corpus by the name of its task.", argument="corpora")
    orientation: dict[str, int] = {}
    for name, corpus in corpora.items():
        if not isinstance(corpus, ModelCorpus):
            raise InputError(f"holds a {type(corpus).__name__} for {name!r}: give a ModelCorpus.", argument="corpora")
        for measure, sign in corpus.orientation.items():
            if orientation.setdefault(measure, sign) != sign:
                raise InputError(f"declare two orientations of {measure!r}: give it one.", argument="corpora")
    parts = list(corpora.values())
    tasks = [
        [str(name)] * len(c) if c.tasks is None else [f"{name}, {task}" for task in c.tasks]
        for name, c in corpora.items()
    ]
    if twice := [t for t, count in Counter(t for own in tasks for t in set(own)).items() if count > 1]:
        raise InputError(f"hold two tasks called {twice[0]!r}: give them different names.", argument="corpora")
    settings = dict.fromkeys(k for c in parts for k in c.hyperparameters)
    measures = dict.fromkeys(k for c in parts for k in c.measures)

    def column(values: NDArray[Any] | None, count: int, lacking: Any) -> list[Any]:
        return [lacking] * count if values is None else values.tolist()

    shares = [value for c in parts for value in column(c.train_accuracy, len(c), np.nan)]
    return ModelCorpus(
        models=tuple(model for c in parts for model in c.models),
        hyperparameters={
            k: mixed_array([v for c in parts for v in column(c.hyperparameters.get(k), len(c), None)]) for k in settings
        },
        gap=np.concatenate([c.gap for c in parts]),
        measures={k: np.array([v for c in parts for v in column(c.measures.get(k), len(c), np.nan)]) for k in measures},
        orientation=orientation,
        tasks=np.array([task for own in tasks for task in own]),
        train_accuracy=None if all(c.train_accuracy is None for c in parts) else np.array(shares),
        notes=tuple(f"{name}: {note}" for name, c in corpora.items() for note in c.notes),
    )


def read_source(source: Any) -> tuple[Any, str]:
    """Read a folder, a table, or data that may be a table or specifications; return it with its name."""
    if not isinstance(source, str | PathLike):
        return source, "the dict"
    path = as_path(source)
    if path.is_dir():
        return path.resolve(), format_path(path)
    if kind_of(path)[0] != "json":
        return read_table(path), format_path(path)
    data = parse_json(read_text(path), path)
    if not is_specification(data):
        return json_table(data, path), format_path(path)
    return data, path.resolve().parent.name if path.stem in _SPECIFICATIONS else path.stem


@dataclass(frozen=True)
class CorpusColumns:
    """Columns by role, and those of hyperparameters and measures; ``guessed`` where names and values told them."""

    of: ColumnRoles
    hyperparameters: tuple[str, ...]
    measures: tuple[str, ...]
    left_out: tuple[str, ...]
    guessed: bool


def _find_columns(
    table: Table,
    columns: ColumnMap | None,
    hyperparameters: Sequence[str] | None,
    measures: Sequence[str] | None,
    oriented: Collection[str],
) -> tuple[Table, CorpusColumns]:
    """Find the column of each role, and tell hyperparameters from measures; one with an orientation is a measure.

    The table comes back without the models whose training did not end.
    """
    for name, listed in (("hyperparameters", hyperparameters), ("measures", measures)):
        if isinstance(listed, str):
            raise InputError(f"{arg(name, listed)} is one text: give a list of columns.")
        for column in listed or ():
            check_column(table.columns, table.source, arg(name, [column]), column)
    taken = {*(hyperparameters or ()), *(measures or ())}
    named = {k for v in (columns or {}).values() if v for k in ([v] if isinstance(v, str) else v)}
    oriented = {k for k in oriented if k in table.columns} - taken - named
    free = {k: cells for k, cells in table.columns.items() if k not in taken | oriented}
    # A measured corpus has the accuracy on training examples among its measures; it is not that of a test set.
    written = "test_accuracy" not in (columns or {}) and _is_on_training(table)
    one = find_roles(
        free, table.source, (*ROLES, STATUS), {**(columns or {}), "test_accuracy": None} if written else columns
    )
    table = keep_ended(table, one.get("status"))
    rest = [k for k in table.columns if k in oriented or k in one.rest]
    marked = any(_SETTING.fullmatch(k.strip().lower()) for k in rest)
    known = {k: "measure" if k in oriented else _kind(k, table.columns[k], marked) for k in rest}
    known |= {"accuracy": "measure"} if written and "accuracy" in rest else {}
    settings = tuple(hyperparameters or [k for k in rest if known[k] == "hyperparameter"])
    scores = tuple(measures or [k for k in rest if known[k] == "measure"])
    if hyperparameters is not None and measures is None:
        scores = tuple(k for k in rest if known[k] != "neither" and is_measured(table.columns[k]))
    unclear = [k for k in rest if known[k] == "unclear" and k not in (*settings, *scores)]
    if unclear and hyperparameters is None and measures is None:
        raise InputError(
            f"{list_names(unclear)} in {table.source} could be hyperparameters or measures: say with "
            f"{arg('hyperparameters', unclear)} or {arg('measures', unclear)}."
        )
    left = tuple(k for k in rest if k not in (*settings, *scores))
    return table, CorpusColumns(one, settings, scores, left, hyperparameters is None or measures is None)


def _is_on_training(table: Table) -> bool:
    """Return whether "accuracy" is nearer to the training accuracy beside a gap than to what the gap leaves of it."""
    if not {"accuracy", "train_accuracy", "gap"} <= table.columns.keys():
        return False
    own, train, gap = (numbers(table, name) for name in ("accuracy", "train_accuracy", "gap"))
    known = np.isfinite(own + train + gap)
    return bool(np.abs(own - train)[known].sum() < np.abs(own - (train - gap))[known].sum())


def _kind(name: str, cells: Column, marked: bool) -> str:
    """Tell what a column is by its name, or by how often its values repeat unless hyperparameters are ``marked``."""
    # Empty cells do not repeat: they are models that a measure could not be computed for.
    known = [text for text, cell in zip(texts(cells), cells, strict=True) if not is_missing(cell)]
    repeats = len(known) / max(len(set(known)), 1)
    measured = is_measured(cells)
    plain = name.strip().lower()
    # In order: a prefix, a usual name of a setting or of our own measures, then the values. A setting takes few values
    # (4 models each, say), a measure hardly ever the same twice; what lies between is asked back.
    rules: list[tuple[str, Callable[[], bool]]] = [
        ("hyperparameter", lambda: bool(_SETTING.fullmatch(plain))),
        ("measure", lambda: bool(_MEASURE.fullmatch(plain))),
        ("neither", lambda: normal(name) in _NEITHER or is_status(name, cells) or all(map(is_missing, cells))),
        ("neither", lambda: any(role.is_called(name) for role in ROLES)),
        ("measure", lambda: measured and plain in KNOWN_ORIENTATION),
        ("hyperparameter", lambda: normal(name) in SETTINGS),
        ("hyperparameter" if repeats >= 2 else "neither", lambda: normal(name) in _OF_A_STUDY),
        ("hyperparameter", lambda: not measured and repeats >= 2),
        ("neither", lambda: not measured),
        ("measure", lambda: marked),
        ("hyperparameter", lambda: repeats >= 4),
        ("measure", lambda: repeats < 2),
    ]
    return next((kind for kind, holds in rules if holds()), "unclear")


def _from_table(
    table: Table, roles: CorpusColumns, orientation: Mapping[str, int] | None, unit: str | None
) -> ModelCorpus:
    gap, train, gap_note, unused = _gap(table, roles.of, unit)
    left_out = [k for k in table.columns if k in (*roles.left_out, *unused)]
    names, name_note = _models(table, roles)
    values = {name: numbers(table, name) for name in roles.measures}
    task = roles.of.get("task")
    notes = [
        gap_note,
        f"hyperparameters from {list_names(roles.hyperparameters) or 'no column'}; measures from "
        f"{list_names(roles.measures) or 'no column'}" + (" (by names and values)" if roles.guessed else ""),
        *([f"tasks from {task!r}"] if task else []),
        *([f"left out: {list_names(left_out)}"] if left_out else []),
        *name_note,
        *table.notes,
    ]
    if lost := int(np.isnan(gap).sum()):
        notes.append(f"{lost} of {len(table)} models have no gap: they failed or were not measured")
    notes += _lacking(values, "")
    for name in roles.hyperparameters:
        if lost := sum(map(is_missing, table.columns[name])):
            notes.append(f"{lost} of {len(table)} models have no {brief(name)}, which counts as a value of its own")
    return ModelCorpus(
        models=names,
        hyperparameters={k: label_array(table.columns[k]) for k in roles.hyperparameters},
        gap=gap,
        measures=values,
        orientation=orientation or {},
        tasks=np.array(full_names(table, task, "task"), dtype=np.str_) if task else None,
        train_accuracy=train,
        notes=tuple(notes),
    )


def _gap(
    table: Table, roles: ColumnRoles, unit: str | None
) -> tuple[FloatArray, FloatArray | None, str, tuple[str, ...]]:
    """Read the gap and the training accuracy as fractions; tell where they are from, and which columns are not used."""

    def read(role: str) -> FloatArray | None:
        name = roles.get(role)
        if name is None:
            return None
        values = fractions(table, name, named_unit(unit, [name]), low=-1.0)
        # No network has an accuracy below 1%: this column holds fractions, and the gap would mix two units.
        if unit == "percent" and role.endswith("accuracy") and 0 < np.nanmax(values, initial=0.0) <= 0.01:
            raise InputError(
                f"{arg('unit', 'percent')}, and no value of {brief(name)} is above 1: give all columns of "
                f"{table.source} one unit."
            )
        return values

    train, error = read("train_accuracy"), read("train_error")
    if train is None and error is not None:
        train = 1 - error
    known, test, test_error = read("gap"), read("test_accuracy"), read("test_error")
    # A test error counts more than a validation accuracy, or one of no set that is named.
    counts, other = "test_accuracy", "test_error"
    if test is None or (test_error is not None and _tier(other, roles) < _tier(counts, roles)):
        counts, other, test = other, counts, None if test_error is None else 1 - test_error
    if known is not None:
        _check_sign(known, train, test, table, roles)
        return known, train, f"gap from {roles['gap']!r}", _held(roles, counts, other)
    if train is None or test is None:
        raise InputError(
            f"{table.source} has no gap: name its column with {ask('gap')}, or give columns of training and test "
            f"accuracy (train_accuracy, test_accuracy) or error. It has {list_names(table.columns)}."
        )
    is_error = counts == "test_error"
    how = f"{roles[counts]!r} − train error" if is_error else f"training accuracy − {roles[counts]!r}"
    return train - test, train, f"gap as {how}", _held(roles, other)


def _held(roles: ColumnRoles, *names: str) -> tuple[str, ...]:
    return tuple(column for name in names if (column := roles.get(name)))


def _tier(role: str, roles: ColumnRoles) -> int:
    """Rank the name of a column among those of its role, the test set first; -1 for one that the user named."""
    known = next(one.known for one in ROLES if one.name == role)
    return next((tier for tier, names in enumerate(known) if bare(roles[role]) in names), -1)


def _check_sign(
    gap: FloatArray, train: FloatArray | None, test: FloatArray | None, table: Table, roles: ColumnRoles
) -> None:
    """Raise where a column of gaps is test less training accuracy by the table's own accuracies."""
    if train is None or test is None:
        return
    known = np.isfinite(gap) & np.isfinite(train - test)
    found, own = gap[known], (train - test)[known]
    # Rounded gaps: nearer to minus the difference than to the difference, on average over models.
    if len(own) and np.abs(own).max() > 0 and np.abs(found + own).mean() < 0.1 * np.abs(found - own).mean():
        raise InputError(
            f"{table.where(roles['gap'])} is test less training accuracy, by the accuracies of the table: a gap is "
            "training less test accuracy. Change its sign, or remove the column; the gap is then computed."
        )


def _models(table: Table, roles: CorpusColumns) -> tuple[tuple[str, ...], list[str]]:
    """Name the models; those that are there twice are numbered."""
    column = roles.of.get("model")
    if column is None:
        return tuple(f"model {row}" for row in table.rows), ["models are numbered by their rows"]
    task = roles.of.get("task")
    where = names_in(table, task) if task else [""] * len(table)
    names = names_in(table, column)
    count = Counter(zip(where, names, strict=True))
    if max(count.values()) == 1:
        return tuple(names), [f"models from {column!r}"]
    _check_repeated(table, list(zip(where, names, strict=True)), roles.left_out)
    unique = [
        name if count[place, name] == 1 else f"{name} (row {row})"
        for place, name, row in zip(where, names, table.rows, strict=True)
    ]
    return tuple(unique), [f"models from {column!r}, with the row where a name is there twice"]


def _check_repeated(table: Table, models: Sequence[tuple[str, str]], left_out: Sequence[str]) -> None:
    """Raise for rows of a model that are alike or are its epochs: they would count as models of their own."""
    rows = list(zip(models, *map(texts, table.columns.values()), strict=True))
    for row, count in Counter(rows).items():
        if count > 1:
            here = [number for number, other in zip(table.rows, rows, strict=True) if other == row]
            raise InputError(
                f"{table.source} has the same row for model {brief(row[0][1])} {count} times, in rows "
                f"{list_names(here)}: remove all but one, or, if these are models of their own, add a column such as "
                "seed that tells them apart."
            )
    for name in left_out:
        epochs = set(zip(models, texts(table.columns[name]), strict=True))
        if normal(name) in _EPOCHS and len(epochs) > len(set(models)):
            raise InputError(
                f"{table.where(name)} has several values for one model: keep the last row of each, or, if these are "
                f"models of their own, name it with {arg('hyperparameters', [name])} among the others."
            )


# As list_measures() declares them, without torch (a test compares the two); and the scores of measure_invariance.
_RISING = """
    loss parameters l2-norm frobenius-sum frobenius-product spectral-sum spectral-product operator-sum
    operator-product stable-rank-sum distance distance-spectral path-norm sharpness-worst sharpness-average
    sharpness-adaptive-worst sharpness-adaptive-average pac-bayes pac-bayes-distance jacobian jacobian-softmax dbi
    dbi-last gi-intra gi-intra-layer1 gi-inter gi-inter-layer1 dbi-mixup augmentation-penalty disagreement
    disagreement-soft gi-score
"""
_FALLING = """
    accuracy margin-10 margin-50 margin-10-spectral margin-10-spread margin-10-input margin-10-layer1 flatness
    flatness-magnitude pal-intra pal-intra-layer1 pal-inter pal-inter-layer1 mean-accuracy mixup manifold-mixup
"""
KNOWN_ORIENTATION = {
    **dict.fromkeys(_RISING.split(), 1),
    **dict.fromkeys(_FALLING.split(), -1),
    **dict.fromkeys(("mean accuracy", "augmented accuracy"), -1),
}
"""Orientation of each measure that curvewise computes, by its name."""


@dataclass(frozen=True, eq=False, repr=False)
class ModelCorpus(RowTable):
    """A table of trained models on which measures of generalization can be judged.

    Attributes
    ----------
    models : tuple of str
        Names, each once in a task.
    hyperparameters : dict of str to ndarray
        Settings that were varied; values of any kind.
    gap : ndarray, shape (models,)
        Training accuracy less test accuracy, as a fraction. NaN for a model that failed.
    measures : dict of str to ndarray
        A number for each model, NaN where there is none.
    orientation : dict of str to int
        1 where a higher value should mean a larger gap, -1 where a smaller one. A measure that is
        not named here has no declared orientation.
    tasks : ndarray of str, optional
        Which task (a data set with an architecture, say) a model belongs to. Models are only
        compared with others of their task.
    train_accuracy : ndarray, optional
        As a fraction.
    notes : tuple of str
        How columns were interpreted, and which models failed.

    Examples
    --------
    >>> corpus = ModelCorpus(
    ...     models=("a", "b", "c"),
    ...     hyperparameters={"depth": [2, 2, 4]},
    ...     gap=[0.1, 0.2, 0.3],
    ...     measures={"norm": [5.0, 6.0, 7.0]},
    ...     orientation={"norm": 1},
    ... )
    >>> corpus
    ModelCorpus(3 models, 1 task, 1 hyperparameter, 1 measure)
    """

    by_row = ("models", "hyperparameters", "gap", "measures", "tasks", "train_accuracy")
    noun = "models"

    models: tuple[str, ...]
    hyperparameters: Mapping[str, NDArray[Any]]
    gap: FloatArray
    measures: Mapping[str, FloatArray] = field(default_factory=dict)
    orientation: Mapping[str, int] = field(default_factory=dict)
    tasks: NDArray[np.str_] | None = None
    train_accuracy: FloatArray | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "models", tuple(map(str, self.models)))
        # 0.95 - 0.85 is the gap that 0.9 - 0.8 is, up to rounding, and so are 10% and 0.1: they must be ties.
        put(self, "gap", _fractions(self.gap, "gap", -1.0, len(self)).round(14))
        put(self, "measures", _measures(self.measures, len(self)))
        put(self, "hyperparameters", as_columns(self.hyperparameters, len(self)))
        put(self, "orientation", _orientation(self.orientation, self.measures))
        if self.tasks is not None:
            tasks = as_column(np.asarray(self.tasks, dtype=object), "tasks", len(self), "models")
            if any(is_missing(task) for task in tasks):
                raise InputError("holds a missing name: name the task of each model.", argument="tasks")
            put(self, "tasks", tasks.astype(np.str_))
        if self.train_accuracy is not None:
            share = _fractions(self.train_accuracy, "train_accuracy", 0.0, len(self))
            put(self, "train_accuracy", share)
        self._check_names()

    def _check_names(self) -> None:
        if not self.models:
            raise InputError("is empty: a corpus holds at least one model.", argument="models")
        tasks = self.models if self.tasks is None else zip(self.tasks, self.models, strict=True)
        name, count = Counter(tasks).most_common(1)[0]
        if count > 1:
            raise InputError(
                f"holds {name if self.tasks is None else name[1]!r} {count} times in one task: give each model "
                "a name of its own.",
                argument="models",
            )
        both = set(self.hyperparameters) & set(self.measures)
        kept = (set(self.hyperparameters) | set(self.measures)) & set(RESERVED)
        if both or kept:
            why = "is a hyperparameter and a measure" if both else "is the name of another column"
            raise InputError(f"{sorted(both or kept)[0]!r} {why}: give it another name.")

    def __len__(self) -> int:
        return len(self.models)

    def __repr__(self) -> str:
        parts = {
            "model": len(self),
            "task": len(self.task_names),
            "hyperparameter": len(self.hyperparameters),
            "measure": len(self.measures),
        }
        return f"ModelCorpus({', '.join(format_count(k, noun) for noun, k in parts.items())})"

    @property
    def task_names(self) -> tuple[str, ...]:
        """The tasks in order of first appearance; one called "all models" where none is named."""
        return (ONE_TASK,) if self.tasks is None else distinct(self.tasks)

    def by_task(self) -> dict[str, ModelCorpus]:
        """Return a corpus for each task."""
        if self.tasks is None:
            return {ONE_TASK: self}
        return {name: self.select(self.tasks == name) for name in self.task_names}

    def with_measures(
        self, measures: Mapping[str, ArrayLike], orientation: Mapping[str, int] | int | None = None
    ) -> ModelCorpus:
        """Return the same models with further measures, or others in the place of those of a name.

        Parameters
        ----------
        measures : dict of str to array_like
            A number for each model.
        orientation : dict or {1, -1}, optional
            Of each of them, or of all.
        """
        if isinstance(orientation, int | np.integer):
            orientation = dict.fromkeys(measures, orientation)
        kept = {k: v for k, v in self.orientation.items() if k not in measures}
        added = _measures(measures, len(self))
        return replace(self, measures={**self.measures, **added}, orientation={**kept, **(orientation or {})})

    def columns(self) -> dict[str, Any]:
        """Return columns with a row for each model."""
        named = {"task": self.tasks, "model": np.array(self.models, dtype=np.str_)}
        shares = {"train_accuracy": self.train_accuracy, "gap": self.gap}
        found = {**named, **self.hyperparameters, **shares, **self.measures}
        return {name: column for name, column in found.items() if column is not None}


def _fractions(values: ArrayLike, name: str, low: float, count: int) -> FloatArray:
    found = as_column(as_floats(values, name), name, count, "models")
    bad = np.isinf(found) | (found < low) | (found > 1)
    if bad.any():
        remedy = f"If these are percentages, divide them by 100 (or load them with {arg('unit', 'percent')})."
        if np.isinf(found[bad][0]):
            remedy = "Pass NaN where there is no value."
        problem = f"holds {found[bad][0]:g}, which is no fraction from {low:g} to 1."
        raise InputError(problem, argument=name, remedy=remedy)
    return found


def _measures(measures: Mapping[str, ArrayLike], count: int) -> dict[str, FloatArray]:
    return {
        str(k): as_column(as_floats(v, f"measure {k!r}"), f"measure {k!r}", count, "models")
        for k, v in measures.items()
    }


def as_columns(hyperparameters: Mapping[str, Any], count: int) -> dict[str, NDArray[Any]]:
    """Check that each hyperparameter, in a dict or a frame, has a value for each of ``count`` models."""
    if hasattr(hyperparameters, "columns"):
        hyperparameters = {k: hyperparameters[k] for k in hyperparameters.columns}
    if not isinstance(hyperparameters, Mapping):
        problem = f"is a {type(hyperparameters).__name__}: give a dict of columns, such as "
        raise InputError(problem + "{'depth': [2, 2, 4], 'rate': [0.1, 0.01, 0.1]}.", argument="hyperparameters")
    for name, column in hyperparameters.items():
        if isinstance(column, str) or not isinstance(column, Iterable):
            raise InputError(f"hyperparameters[{name!r}] is {brief(column)}: give a value for each model.")
    arrays = {str(k): v if isinstance(v, np.ndarray) else mixed_array(v) for k, v in hyperparameters.items()}
    return {k: as_column(column, f"hyperparameters[{k!r}]", count, "models") for k, column in arrays.items()}


def mixed_array(values: Any) -> NDArray[Any]:
    """Make a column of values of any kind; those of different kinds stay what they are.

    >>> mixed_array([1, 2]).dtype.kind, mixed_array([1, "a", None]).tolist()
    ('i', [1, 'a', None])
    """
    cells = list(values)
    kinds = {type(v) for v in cells}
    # np.array([1, "a", None]) would turn all of them into text.
    if kinds <= {int} or kinds <= {float} or kinds <= {bool} or kinds <= {str}:
        return np.array(cells)
    column = np.empty(len(cells), dtype=object)
    column[:] = cells
    return column


def _orientation(orientation: Mapping[str, int], measures: Mapping[str, FloatArray]) -> dict[str, int]:
    for name, sign in orientation.items():
        if name not in measures:
            problem = f"names {name!r}, which is no measure: there is {list_names(measures) or 'none'}."
            raise InputError(problem, argument="orientation")
        if sign not in (1, -1) or isinstance(sign, bool):
            problem = f"is {sign!r} for {name!r}: use 1 if more means a larger gap, -1 if it means a smaller one, "
            raise InputError(f"{problem}or leave the measure out if neither is claimed.", argument="orientation")
    return {str(k): int(v) for k, v in orientation.items()}


# Corpora in the layout of the PGDL competition (2020). A task has a file of specifications, ``model_configs.json``: for
# each model the hyperparameters (``hparams``, each with a ``current_value``) and the accuracies (``metrics``). A
# measure has a file of predictions for each task, ``MEASURE/TASK.predict``: a number for each model.

_SPECIFICATIONS = ("model_configs", "model_specs")
_PREDICTIONS = ("predictions", "prediction")
_DEEPEST = 4  # folders below the one that is named: a study of tasks, each with folders of models


@dataclass
class CompetitionTask:
    """A task as it stands in files: specifications of models, and predictions by measure."""

    name: str
    source: str
    models: dict[str, Any]
    predictions: dict[str, dict[str, Any]] = field(default_factory=dict)


def is_specification(data: Any) -> bool:
    """Return whether a dict holds models in the competition's layout."""
    if not isinstance(data, Mapping) or not data:
        return False
    if any(isinstance(data.get(key), Mapping) for key in _SPECIFICATIONS):
        return True
    return all(isinstance(v, Mapping) and "hparams" in v for v in data.values())


def _task_from_dict(data: Mapping[str, Any], source: str, name: str) -> CompetitionTask:
    """Read specifications, with predictions beside them if there are any."""
    key = next((k for k in _SPECIFICATIONS if isinstance(data.get(k), Mapping)), None)
    if key is None:
        return CompetitionTask(name, source, {_id(k): model for k, model in data.items()})
    task = CompetitionTask(
        str(data.get("task", data.get("name", name))), source, {_id(k): m for k, m in data[key].items()}
    )
    for beside in _PREDICTIONS:
        given = data.get(beside)
        if isinstance(given, Mapping):
            nested = any(isinstance(v, Mapping) for v in given.values())
            for measure, values in (given if nested else {beside: given}).items():
                task.predictions[str(measure)] = _predictions(values, f"{measure} in {source}")
    return task


def _tasks_from_folder(folder: Path) -> list[CompetitionTask]:
    """Read all tasks below a folder, and the predictions for them."""
    files = [path for path in _walk(folder) if path.name in tuple(f"{key}.json" for key in _SPECIFICATIONS)]
    tasks = [_task_from_dict(_object(path), format_path(path), path.parent.name or "task") for path in files]
    tasks = tasks or _single_models(folder)
    if not tasks:
        raise InputError(
            f"{arg('source', str(folder))} is a folder without model_configs.json and without model folders whose "
            "config.json has 'hparams': name the file of the corpus."
        )
    name, count = Counter(task.name for task in tasks).most_common(1)[0]
    if count > 1:
        raise InputError(f"{format_path(folder)} holds two tasks called {name!r}: rename a folder.")
    return tasks


def _add_predictions(tasks: list[CompetitionTask], folder: Path) -> list[str]:
    """Add the predictions below a folder to their tasks; a file that belongs to none is noted."""
    notes = []
    by_name = {task.name: task for task in tasks}
    for path in _walk(folder):
        if path.suffix != ".predict":
            continue
        if path.stem not in by_name:
            notes.append(f"{format_path(path)} left out: there is no task called {path.stem!r}")
            continue
        measure = "prediction" if path.parent == folder else path.parent.name
        predictions = by_name[path.stem].predictions
        if measure in predictions:
            raise InputError(f"{format_path(path)}: there are two predictions of {measure!r}.")
        predictions[measure] = _predictions(_object(path), format_path(path))
    return notes


def _corpus_of_tasks(
    tasks: list[CompetitionTask], orientation: Mapping[str, int] | None, top: float, notes: list[str]
) -> ModelCorpus:
    """Put tasks below each other; a value that one lacks is None or NaN, and noted."""
    each = {task.name: _corpus_of_task(task, top) for task in tasks}
    corpus = join_corpora(each) if len(each) > 1 else each[tasks[0].name]
    notes = [
        *notes,
        f"{len(corpus)} models of {len(tasks)} task(s) in the layout of the PGDL competition: gap from train_acc − "
        "test_acc, hyperparameters from hparams, measures from predictions",
        *_missing(tasks, corpus.gap, corpus.measures),
    ]
    return replace(corpus, orientation=orientation or {}, notes=tuple(notes))


def _corpus_of_task(task: CompetitionTask, top: float) -> ModelCorpus:
    settings = [_hparams(model, task) for model in task.models.values()]
    names = dict.fromkeys(name for own in settings for name in own)
    metrics = [m["metrics"] if isinstance(m.get("metrics"), Mapping) else {} for m in task.models.values()]
    train, test = (
        np.array([_number(of_model.get(key), task) for of_model in metrics]) / top for key in ("train_acc", "test_acc")
    )
    return ModelCorpus(
        models=tuple(task.models),
        hyperparameters={name: mixed_array([own.get(name) for own in settings]) for name in names},
        gap=train - test,
        measures={
            measure: np.array([_number(predicted.get(name), task) for name in task.models])
            for measure, predicted in task.predictions.items()
        },
        train_accuracy=train,
    )


def _missing(tasks: list[CompetitionTask], gap: FloatArray, values: Mapping[str, FloatArray]) -> Iterator[str]:
    if lost := int(np.isnan(gap).sum()):
        yield f"{lost} of {len(gap)} models have no accuracies: their gap is NaN"
    yield from _lacking(values, "prediction of ")
    for task in tasks:
        for measure, predicted in task.predictions.items():
            if other := set(predicted) - set(task.models):
                yield (
                    f"{len(other)} prediction(s) of {measure!r} left out: {task.source} has no model "
                    f"{list_names(sorted(other), 3)}"
                )


def _lacking(measures: Mapping[str, FloatArray], what: str) -> Iterator[str]:
    for name, column in measures.items():
        if lost := int((~np.isfinite(column)).sum()):
            yield f"{lost} of {len(column)} models have no {what}{brief(name)}"


def _single_models(folder: Path) -> list[CompetitionTask]:
    """Read models with a folder and a config.json each."""
    tasks: dict[Path, CompetitionTask] = {}
    for path in _walk(folder):
        if path.name == "config.json":
            data = _object(path)
            if "hparams" in data:
                home = path.parent.parent
                task = tasks.setdefault(home, CompetitionTask(home.name or "task", format_path(home), {}))
                task.models[_id(path.parent.name)] = data
    return list(tasks.values())


def _walk(folder: Path) -> Iterator[Path]:
    """List the files below a folder in the order of their names; links to folders are not followed."""
    for root, folders, files in os.walk(folder):
        folders.sort()
        if len(Path(root).relative_to(folder).parts) >= _DEEPEST:
            folders.clear()
        yield from (Path(root) / name for name in sorted(files))


def _object(path: Path) -> dict[str, Any]:
    data = parse_json(read_text(path), path)
    if not isinstance(data, dict):
        raise InputError(f"{format_path(path)} holds {brief(data)}: a dict by model was expected.")
    return data


def _id(name: Any) -> str:
    """Return the id of a model: specifications may call it ``20`` and predictions ``model_20``."""
    return str(name) if "model" in str(name) else f"model_{name}"


def _predictions(values: Any, source: str) -> dict[str, Any]:
    if not isinstance(values, Mapping):
        raise InputError(f"{source} is {brief(values)}: a number for each model was expected.")
    return {_id(name): value for name, value in values.items()}


def _hparams(model: Any, task: CompetitionTask) -> dict[str, Any]:
    settings = model.get("hparams") if isinstance(model, Mapping) else None
    if not isinstance(settings, Mapping):
        raise InputError(f"A model of {task.source} has no 'hparams': it is {brief(model)}.")
    return {str(k): v.get("current_value") if isinstance(v, Mapping) else v for k, v in settings.items()}


def _number(cell: Any, task: CompetitionTask) -> float:
    value = parse(cell)
    if value is None:
        raise InputError(f"{task.source} holds {brief(cell)} where a number was expected.")
    return value
