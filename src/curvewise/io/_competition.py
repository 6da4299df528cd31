"""Corpora in the layout of the PGDL competition (2020).

A task has a file of specifications, ``model_configs.json``: for each model the hyperparameters
(``hparams``, each with a ``current_value``) and the accuracies (``metrics``). A measure has a
file of predictions for each task, ``MEASURE/TASK.predict``: a number for each model.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from curvewise.errors import InputError
from curvewise.io._files import parse_json, read_text
from curvewise.io._numbers import parse
from curvewise.io._table import brief, listed, shown
from curvewise.types import ModelCorpus
from curvewise.types.corpus import mixed_array

SPECIFICATIONS = ("model_configs", "model_specs")
PREDICTIONS = ("predictions", "prediction")
DEEPEST = 4  # folders below the one that is named


@dataclass
class Task:
    """Models of one task as they stand in files: specifications, and predictions by measure."""

    name: str
    source: str
    models: dict[str, Any]
    predictions: dict[str, dict[str, Any]] = field(default_factory=dict)


def is_specification(data: Any) -> bool:
    """Whether a dict holds models in the competition's layout."""
    if not isinstance(data, Mapping) or not data:
        return False
    if any(isinstance(data.get(key), Mapping) for key in SPECIFICATIONS):
        return True
    return all(isinstance(v, Mapping) and "hparams" in v for v in data.values())


def task_from_dict(data: Mapping[str, Any], source: str, name: str) -> Task:
    """Read specifications, with predictions beside them if there are any."""
    key = next((k for k in SPECIFICATIONS if isinstance(data.get(k), Mapping)), None)
    if key is None:
        return Task(name, source, _ids(data))
    task = Task(str(data.get("task", data.get("name", name))), source, _ids(data[key]))
    for beside in PREDICTIONS:
        told = data.get(beside)
        if isinstance(told, Mapping):
            nested = any(isinstance(v, Mapping) for v in told.values())
            for measure, values in (told if nested else {beside: told}).items():
                task.predictions[str(measure)] = _predictions(values, f"{measure} in {source}")
    return task


def tasks_from_folder(folder: Path) -> list[Task]:
    """Read all tasks below a folder, and the predictions for them."""
    files = [path for path in _walk(folder) if path.name in _SPECIFICATION_FILES]
    tasks = [
        task_from_dict(_object(path), shown(path), path.parent.name or "task") for path in files
    ]
    tasks = tasks or _single_models(folder)
    if not tasks:
        raise InputError(
            f"source={str(folder)!r} is a folder without model_configs.json and without model "
            "folders whose config.json has 'hparams': name the file of the corpus."
        )
    twice = [t.name for t in tasks if sum(t.name == u.name for u in tasks) > 1]
    if twice:
        raise InputError(f"{shown(folder)} holds two tasks called {twice[0]!r}: rename a folder.")
    return tasks


_SPECIFICATION_FILES = tuple(f"{key}.json" for key in SPECIFICATIONS)


def add_predictions(tasks: list[Task], folder: Path) -> list[str]:
    """Add the predictions below a folder to their tasks; what belongs to none is noted."""
    notes = []
    by_name = {task.name: task for task in tasks}
    for path in _walk(folder):
        if path.suffix != ".predict":
            continue
        if path.stem not in by_name:
            notes.append(f"{shown(path)} left out: there is no task called {path.stem!r}")
            continue
        measure = "prediction" if path.parent == folder else path.parent.name
        told = by_name[path.stem].predictions
        if measure in told:
            raise InputError(f"{shown(path)}: there are two predictions of {measure!r}.")
        told[measure] = _predictions(_object(path), shown(path))
    return notes


def corpus_of_tasks(
    tasks: list[Task], orientation: Mapping[str, int] | None, top: float, notes: list[str]
) -> ModelCorpus:
    """Put tasks below each other; what one lacks is None or NaN, and noted."""
    settings = dict.fromkeys(k for t in tasks for m in t.models.values() for k in _hparams(m, t))
    measures = dict.fromkeys(k for t in tasks for k in t.predictions)
    rows = [(task, name, model) for task in tasks for name, model in task.models.items()]
    train, test = (
        np.array([_metric(model, key, task) for task, _, model in rows]) / top
        for key in ("train_acc", "test_acc")
    )
    values = {
        measure: np.array([_number(t.predictions.get(measure, {}).get(n), t) for t, n, _ in rows])
        for measure in measures
    }
    notes = [
        *notes,
        f"{len(rows)} models of {len(tasks)} task(s) in the layout of the PGDL competition: gap "
        "from train_acc − test_acc, hyperparameters from hparams, measures from predictions",
        *_missing(tasks, train - test, values),
    ]
    return ModelCorpus(
        models=tuple(name for _, name, _ in rows),
        hyperparameters={
            k: mixed_array([_hparams(m, t).get(k) for t, _, m in rows]) for k in settings
        },
        gap=train - test,
        measures=values,
        orientation=orientation or {},
        tasks=np.array([t.name for t, _, _ in rows]) if len(tasks) > 1 else None,
        train_accuracy=train,
        notes=tuple(notes),
    )


def _missing(
    tasks: list[Task], gap: np.ndarray[Any, Any], values: Mapping[str, np.ndarray[Any, Any]]
) -> Iterator[str]:
    if lost := int(np.isnan(gap).sum()):
        yield f"{lost} of {len(gap)} models have no accuracies: their gap is NaN"
    for measure, column in values.items():
        if lost := int((~np.isfinite(column)).sum()):
            yield f"{lost} of {len(gap)} models have no prediction of {measure!r}"
    for task in tasks:
        for measure, told in task.predictions.items():
            if other := set(told) - set(task.models):
                yield (
                    f"{len(other)} prediction(s) of {measure!r} left out: {task.source} has no "
                    f"model {listed(sorted(other), 3)}"
                )


def _single_models(folder: Path) -> list[Task]:
    """Models with a folder and a config.json each."""
    tasks: dict[Path, Task] = {}
    for path in _walk(folder):
        if path.name == "config.json":
            data = _object(path)
            if "hparams" in data:
                home = path.parent.parent
                task = tasks.setdefault(home, Task(home.name or "task", shown(home), {}))
                task.models[_id(path.parent.name)] = data
    return list(tasks.values())


def _walk(folder: Path) -> Iterator[Path]:
    """Files below a folder in the order of their names; links to folders are not followed."""
    for root, folders, files in os.walk(folder):
        folders.sort()
        if len(Path(root).relative_to(folder).parts) >= DEEPEST:
            folders.clear()
        yield from (Path(root) / name for name in sorted(files))


def _object(path: Path) -> dict[str, Any]:
    data = parse_json(read_text(path), path)
    if not isinstance(data, dict):
        raise InputError(f"{shown(path)} holds {brief(data)}: a dict by model was expected.")
    return data


def _id(name: Any) -> str:
    """Specifications may call a model ``20`` that predictions call ``model_20``."""
    return str(name) if "model" in str(name) else f"model_{name}"


def _ids(models: Mapping[Any, Any]) -> dict[str, Any]:
    return {_id(name): model for name, model in models.items()}


def _predictions(values: Any, source: str) -> dict[str, Any]:
    if not isinstance(values, Mapping):
        raise InputError(f"{source} is {brief(values)}: a number for each model was expected.")
    return {_id(name): value for name, value in values.items()}


def _hparams(model: Any, task: Task) -> dict[str, Any]:
    told = model.get("hparams") if isinstance(model, Mapping) else None
    if not isinstance(told, Mapping):
        raise InputError(f"A model of {task.source} has no 'hparams': it is {brief(model)}.")
    return {
        str(k): v.get("current_value") if isinstance(v, Mapping) else v for k, v in told.items()
    }


def _metric(model: Mapping[str, Any], key: str, task: Task) -> float:
    metrics = model.get("metrics")
    return _number(metrics.get(key) if isinstance(metrics, Mapping) else None, task)


def _number(cell: Any, task: Task) -> float:
    value = parse(cell)
    if value is None:
        raise InputError(f"{task.source} holds {brief(cell)} where a number was expected.")
    return value
