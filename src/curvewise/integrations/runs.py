"""Runs of other libraries: what the callbacks that store them share, and the readers of all experiment trackers."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError, MissingDependencyError, arg, brief, list_names, suggest
from curvewise.learning.load import ROLES, measurements_of
from curvewise.reading.roles import (
    FINISHED,
    SIZE,
    UNFINISHED,
    ColumnMap,
    column_map,
    find_roles,
    is_value,
    normal,
    select_rows,
    status_word,
    tells_runs,
)
from curvewise.reading.table import Table, is_missing, numbers, read_table, table_from_records, texts
from curvewise.reading.trackers import metric_names, plain_names
from curvewise.store.tables import failure_notes
from curvewise.store.write import write_run
from curvewise.text import format_count
from curvewise.types.measurements import Measurements
from curvewise.types.predictions import Predictions
from curvewise.variance.load import load_predictions

_GOING_ON = frozenset(["running", "scheduled", "waiting", "pending", "queued", "preempting"])
_TABLES = (".csv", ".tsv", ".json", ".jsonl", ".parquet", ".gz")
_NAMES = ("run_name", "run_id", "trial")  # what a run is called in messages, the first that there is
_SETTINGS = {"mlflow": "params.", "wandb": "config.", "optuna": "params_"}


def check_classifier(outputs: tuple[int, ...], labels: tuple[int, ...]) -> None:
    """Refuse outputs that are not one row of at least two logits for each label, by their shapes."""
    if len(outputs) != 2 or outputs[1] < 2 or labels != outputs[:1]:
        raise InputError(
            f"returns outputs of shape {tuple(outputs)} for labels of shape {tuple(labels)}: only runs of classifiers "
            "are stored, with logits, (examples, classes), and one class each. For a binary network return "
            "torch.stack([0 * z, z], dim=-1) of its logits z, flattened.",  # [-z, z] would have the loss of 2z
            argument="model",
        )


def store_classifier(
    store: str | PathLike[str],
    coordinates: Mapping[str, Any],
    logits: NDArray[Any],
    labels: NDArray[Any],
    metrics: Mapping[str, Any],
) -> None:
    """Store the classes that a trained network predicts with its error, or that it diverged."""
    if not np.isfinite(logits).all():  # the highest of NaN would be stored as class 0
        write_run(store, coordinates, error="diverged: the network predicts NaN or infinity")
        return
    predictions = logits.argmax(axis=1)
    error = float(np.mean(predictions != labels))
    write_run(store, coordinates, predictions, {"error": error, **metrics}, labels=labels)


def import_tracker(package: str, install: str) -> Any:
    """Import the library of a tracker, or say how to install it."""
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        name = package.partition(".")[0]
        if error.name != name:
            raise
        raise MissingDependencyError(
            f"Reading these runs needs {name}, which is not installed: pip install {install}. A table that was "
            "exported from it can be read without it."
        ) from error


def is_table_path(source: Any) -> bool:
    """Return whether a text or path names a table: a file, or something with the ending of one."""
    return isinstance(source, str | PathLike) and (Path(source).is_file() or Path(source).suffix.lower() in _TABLES)


def runs_table(records: Sequence[Mapping[str, Any]], source: str, label: str) -> Table:
    """Make a table of the runs that a tracker gave."""
    if not records:
        raise InputError(f"{source} has no runs.")
    return table_from_records(records, source, label)


def measure_runs(
    table: Any,
    tracker: str,
    metric: str | None,
    size_param: str | None,
    learner_param: str | Sequence[str] | None,
    where: Mapping[str, Any] | None,
    unit: str | None,
    higher_is_better: bool | None,
    columns: ColumnMap | None,
) -> Measurements:
    """Read one metric of every run; a run that failed stays, with NaN and the status "failed".

    ``table`` is a :class:`Table` as exported, or whatever :func:`read_table` takes; what follows the tracker is in the
    order of every ``load_measurements``.
    """
    table = table if isinstance(table, Table) else read_table(table)
    roles: dict[str, Any] = dict(column_map(columns))
    for role, given in (("value", metric), ("n", size_param), ("learner", learner_param)):
        if given is not None:
            roles[role] = given
    exported = table
    table, translated = plain_names(exported, tracker, roles)
    roles = dict(translated or {})
    outcomes = [k for k in table.columns if k in metric_names(exported, tracker)]
    settings = [k for k in table.columns if k not in outcomes]
    sizes, metrics = [k for k in settings if normal(k) in SIZE], outcomes or settings
    roles["n"] = _find_column(table, "size_param", roles.get("n"), settings, sizes)
    roles["value"] = _find_column(table, "metric", roles.get("value"), metrics, list(filter(is_value, metrics)))
    # Other metrics are no settings that tell trainings apart: a run that failed has ended at another epoch.
    requested = {k for given in roles.values() for k in ([given] if isinstance(given, str) else given or ())}
    table = select_rows(table, where)
    table = replace(table, columns={k: v for k, v in table.columns.items() if k in requested or k not in outcomes})
    found = find_roles(table.columns, table.source, ROLES, roles)
    table = _mark_failed(table, found.get("status"), found["value"], found["n"], found.of("learner"))
    roles["status"] = None
    return measurements_of(table, roles, unit, higher_is_better, keep_failed=True, tracked=True)


_SOUGHT = {
    "size_param": (
        *("is no parameter of the runs", "could all be the training-set size"),
        *("No parameter is called like the training-set size", "Say which", "n_train"),
    ),
    "metric": (
        *("was logged by no run", "are {} metrics"),
        *("No metric is called error, accuracy, …", "Choose one", "val_acc"),
    ),
}
"""Words of messages on the argument that names a column: not there, several, none, the remedy, an example."""


def _find_column(table: Table, argument: str, given: str | None, known: Sequence[str], there: Sequence[str]) -> str:
    """Return the column that the user gives, else the only one ``there`` is among the ``known`` ones."""
    unknown, several, none, choose, example = _SOUGHT[argument]
    if given is not None and given not in table.columns:
        raise InputError(
            f"{arg(argument, given)} {unknown} in {table.source}.{suggest(given, known)} They have {list_names(known)}."
        )
    if given is None and len(there) != 1:
        found = f"{list_names(there)} {several.format(len(there))}" if there else none
        setting = arg(argument, there[0] if there else example)
        raise InputError(
            f"{found} of the runs in {table.source}. {choose} with {setting}; they have {list_names(known)}."
        )
    return given or there[0]


def _mark_failed(table: Table, status: str | None, value: str, size: str, learner: Sequence[str]) -> Table:
    """Give every run the status done or failed; a failed one has NaN, and notes say how each ended."""
    states = table.columns[status] if status else ["finished"] * len(table)
    words = [status_word(cell) for cell in states]
    if unknown := sorted(set(words) - FINISHED - UNFINISHED - {""}):
        raise InputError(f"{table.where(str(status))} says {list_names(unknown)}, which is no known status.")
    cells, values = table.columns[value], numbers(table, value)
    reasons = [_reason(*run, value) for run in zip(states, cells, values, strict=True)]
    named = [k for k in _NAMES if k in table.columns]
    called = texts(table.columns[named[0]]) if named else [f"row {row}" for row in table.rows]
    needed = [(k, [is_missing(cell) for cell in table.columns[k]]) for k in (size, *learner)]
    keep, notes = np.ones(len(table), dtype=np.bool_), list[str]()
    for name, missing in needed:
        bare = [i for i, lacks in enumerate(missing) if lacks and keep[i]]
        if used := [i for i in bare if not reasons[i]]:
            raise InputError(
                f"{format_count(len(used), 'finished run')} in {table.source} did not log {brief(name)}: "
                f"{list_names([called[i] for i in used], 3)}. Log it, or choose other runs with {arg('where')}."
            )
        keep[bare] = False
        if bare:
            runs = list_names([called[i] for i in bare], 5)
            notes.append(f"{format_count(len(bare), 'run')} without {brief(name)} left out, none finished: {runs}")
    going = [i for i, word in enumerate(words) if word in _GOING_ON and keep[i]]
    keep[going] = False
    if going:
        notes.append(f"{format_count(len(going), 'run')} left out, still {words[going[0]]}")
    failed = np.array([bool(reason) for reason in reasons])
    if not (keep & ~failed).any():
        ended = ", ".join(f"{called[i]}: {reasons[i]}" for i in range(min(3, len(table))))
        raise InputError(f"No run in {table.source} finished with a value of {brief(value)} ({ended}).")
    learners = [" / ".join(cells) for cells in zip(*(texts(table.columns[k]) for k in learner), strict=True)]
    learners = learners or [table.label] * len(table)
    lost = np.flatnonzero(keep & failed)
    notes += failure_notes([(learners[i], reasons[i]) for i in lost], int(keep.sum()))
    kept = {k: v for k, v in table.columns.items() if k != status}
    kept |= {value: np.where(failed, np.nan, values), "status": np.where(failed, "failed", "done").tolist()}
    marked = replace(table, columns=kept, notes=(*table.notes, *notes))
    return marked.take(np.flatnonzero(keep))


def _reason(status: Any, cell: Any, number: float, metric: str) -> str:
    """Say why a run has no value; empty for one that finished with a value."""
    if status_word(status) not in FINISHED:
        return "it has no status" if is_missing(status) else f"its status is {status}"
    if np.isfinite(number):
        return ""
    return f"it did not log {brief(metric)}" if cell is None or cell == "" else f"{brief(metric)} is {number}"


def stack_predictions(
    table: Table,
    tracker: str,
    fetch: Callable[[int, Path], Path | None],
    *,
    artifact: str,
    labels: ArrayLike | str | PathLike[str] | None,
    kind: str | None,
    where: Mapping[str, Any] | None,
) -> Predictions:
    """Read a file that every finished run saved, one prediction for each test example.

    ``fetch(i, folder)`` puts the file of the i-th run into a folder and returns its path, or None where the run has
    no such file.
    """
    total = len(table)
    settings = [k for k in table.columns if k.startswith(_SETTINGS[tracker])]
    short = {k.removeprefix(_SETTINGS[tracker]): k for k in settings}
    table = replace(table, columns={**table.columns, "_": np.arange(total)})
    chosen = select_rows(table, {short.get(k, k): v for k, v in (where or {}).items()})
    words = [status_word(c) for k in ("status", "state") for c in chosen.columns.get(k, ())]
    done = np.array([word in FINISHED for word in words])
    if not done.any():
        raise InputError(f"None of the {len(chosen)} runs in {table.source} has finished.")
    ended = chosen.keep(done, f"{int((~done).sum())} of {len(chosen)} runs did not finish and are left out")
    for name in (k for k in settings if not tells_runs(k.removeprefix(_SETTINGS[tracker]))):
        there = list(dict.fromkeys(texts(ended.columns[name])))
        if len(there) > 1:
            plain = name.removeprefix(_SETTINGS[tracker])
            raise InputError(
                f"The runs in {table.source} are of more than one training: {brief(plain)} is {list_names(there, 5)}. "
                f"Choose with {arg('where', {plain: there[0]})}."
            )
    ids = texts(ended.columns[next(k for k in ("run_id", "id", "number") if k in ended.columns)])
    with tempfile.TemporaryDirectory() as folder:
        found = {}
        for name, row in zip(ids, ended.columns["_"], strict=True):
            into = Path(folder, "parts", name)
            into.mkdir(parents=True)
            if (path := fetch(int(row), into)) is not None:
                found[name] = path
        if not found:
            raise InputError(
                f"is a file of none of the {len(ended)} finished runs in {table.source}.",
                argument="artifact",
                value=artifact,
                remedy="Save it at the end of each training, as .npy, .npz, .csv or .json.",
            )
        side = Path(folder, "runs")
        side.mkdir()
        for position, path in enumerate(found.values()):
            path.rename(side / f"{position:06d}{path.suffix}")
        read = load_predictions(side, labels=labels, kind=kind)
        notes = [f"{len(found)} runs from {artifact} in {table.source}", *ended.notes]
        if lost := len(ended) - len(found):
            notes.append(f"{format_count(lost, 'finished run')} without {artifact} left out")
        return replace(read, values=np.asarray(read.values), run_ids=np.array(list(found)), notes=tuple(notes))
