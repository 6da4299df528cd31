"""Predictions out of a store of runs: one folder per run, with a record and arrays."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from os import PathLike
from os.path import isdir
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.reading.arrays import RunFiles
from curvewise.reading.table import Table, table_from_records
from curvewise.store.read import array_of, is_search, is_store, read_labels, read_records
from curvewise.text import brief, format_path, list_names, suggest
from curvewise.types.coercion import RawPredictions

# Runs of one training may differ in these coordinates, and in any that end in _seed.
_CHANCE = ("seed", "fold", "subset", "run", "repeat", "replicate", "trial")
_PREDICTIONS, _PROBABILITIES, _LOSSES = "predictions", "probabilities", "losses"
_ERROR, _LOSS, _JUDGED = "error", "loss", "judged"
_NUMBER_LOSSES = ("l1", "l2")
# Coordinates that tell runs apart and mean nothing to a reader.
HASHES = ("data", "subset", "recipe", "search", "weights")


def read_store(
    folder: Path, learner: str | None, where: Mapping[str, Any] | None, key: str | None = None
) -> RawPredictions:
    """Take the runs of one training; those that failed are left out and counted.

    ``key`` names the array: predictions for the test set unless said otherwise, or losses where the
    runs predict numbers. Searches for learning rates are no runs of a training.
    """
    every = {Path(path): record for path, record in read_records(folder).items()}
    records = {path: record for path, record in every.items() if not is_search(record)}
    wanted = {**(where or {}), **({} if learner is None else {"learner": learner})}
    kept = _matching(records, wanted, folder)
    _check_one_training(kept, folder)
    numbers = any(_judged(r) and _LOSSES in r["arrays"] for r in kept.values())
    name = key or (_LOSSES if numbers else _PREDICTIONS)
    kind = name.partition(".")[0]
    done = {p: r for p, r in kept.items() if r["status"] == "done" and name in r["arrays"]}
    if not done:
        raise InputError(_without(kept, name, folder))
    shape, dtype = _common(done, name)
    lost = len(kept) - len(done)
    notes = [f"{len(done):,} of the {len(records):,} runs in {format_path(folder)}"]
    notes += [f"{lost} run(s) failed or have no {name}, and are left out"] if lost else []
    notes += ["the runs predict numbers: the loss of each example"] if numbers and not key else []
    return RawPredictions(
        RunFiles(list(done), partial(_array, records=done, name=name), shape, dtype),
        format_path(folder),
        kind=kind if kind in (_PROBABILITIES, _LOSSES) else None,
        axes=("runs", "examples"),
        labels=_labels(done, name, folder),
        run_ids=np.array([path.name for path in done], dtype=np.str_),
        predicted=True,
        notes=tuple(notes),
    )


def store_table(folder: Path, metric: str | None = None) -> Table:
    """A metric of each run of a store that is done, with its plain coordinates.

    By default the error; where runs predict numbers and none has an error, their loss. Searches for
    learning rates are left out, as are runs without the metric; these are counted. Learners of a
    study are called as in :meth:`Study.measurements`: with the settings of its grid.
    """
    runs = [record for record in read_records(folder).values() if not is_search(record)]
    errors = any(r["metrics"].get(_ERROR) is not None for r in runs)
    metric = metric or (_LOSS if not errors and any(map(_judged, runs)) else _ERROR)
    done = [r for r in runs if r["status"] == "done" and r["metrics"].get(metric) is not None]
    rows = [
        {k: v for k, v in r["coordinates"].items() if k not in HASHES and not _is_nested(v)}
        | ({_JUDGED: _judged(r)} if metric == _LOSS else {})
        | _named_with_settings(r["coordinates"])
        | {metric: r["metrics"][metric]}
        for r in done
    ]
    if not rows:
        there = dict.fromkeys(k for r in runs for k, v in r["metrics"].items() if v is not None)
        raise InputError(
            f"None of the {len(runs)} run(s) in {format_path(folder)} has a metric {metric!r}."
            + (f"{suggest(metric, there)} There are {list_names(there)}." if there else "")
        )
    table = table_from_records(rows, format_path(folder), folder.name)
    lost = len(runs) - len(done)
    notes = [f"{lost} run(s) failed or have no {metric}, and are left out"] if lost else []
    kinds = sorted({str(row[_JUDGED]) for row in rows}) if metric == _LOSS else []
    if len(kinds) > 1:
        notes.append(f"losses of the kinds {', '.join(kinds)}, whose values cannot be compared")
    return replace(table, notes=(*table.notes, *notes))


def holds_losses(folder: Path, table: Table) -> bool:
    """Whether the table of a store is one of losses: its runs predict numbers, or it was asked."""
    return is_store(folder) and not {_ERROR, f"train_{_ERROR}"} & {name.partition(".")[0] for name in table.columns}


def _named_with_settings(coordinates: Mapping[str, Any]) -> dict[str, str]:
    """The learner of a study with the settings of its grid, which make it another one."""
    if not str(coordinates.get("recipe", "")).startswith("study/"):
        return {}
    usual = {*HASHES, *_CHANCE, "learner", "n", "training", "poke"}
    settings = {k: v for k, v in coordinates.items() if k not in usual and not k.endswith("_seed")}
    return {"learner": called(str(coordinates["learner"]), settings)}


def called(learner: str, settings: Mapping[str, Any]) -> str:
    """What a curve is called: the learner, and the settings of the grid that make it another.

    >>> called("net", {"rate": 0.1, "augment": ["flip", "crop"]})
    'net, rate=0.1, augment=flip, crop'
    """
    return ", ".join([learner, *(f"{name}={said(v)}" for name, v in settings.items())])


def said(value: Any) -> str:
    """Write a setting for people.

    >>> said(["flip", "cutout:12"]), said([]), said(0.1)
    ('flip, cutout:12', 'none', '0.1')
    """
    if isinstance(value, list | tuple):
        return ", ".join(map(said, value)) or "none"
    return str(value)


def _judged(record: Mapping[str, Any]) -> str | None:
    """By which loss a run was judged that predicts numbers; None where it predicts classes."""
    training = record["coordinates"].get("training")
    found = (training.get(_LOSS) or training.get(_JUDGED)) if isinstance(training, dict) else None
    return found if found in _NUMBER_LOSSES else None


def _is_nested(value: Any) -> bool:
    return isinstance(value, Mapping | list)


def _without(kept: Mapping[Path, dict[str, Any]], name: str, folder: Path) -> str:
    there = sorted({k for r in kept.values() for k in r["arrays"]})
    which = f" There are {list_names(there)}: choose with key={brief(there[0])}." if there else ""
    return f"None of the {len(kept)} run(s) in {format_path(folder)} has {name}.{which}"


def _labels(done: Mapping[Path, dict[str, Any]], name: str, folder: Path) -> NDArray[Any] | None:
    """The true classes of the examples that an array is about, where they were stored."""
    evaluation = name.partition(".")[2] or "test"
    digests = {r["labels"][evaluation]: p for p, r in done.items() if evaluation in r["labels"]}
    if len(digests) > 1:
        one, other = (path.name for path in list(digests.values())[:2])
        raise InputError(
            f"The runs in {format_path(folder)} were evaluated on different examples: {one} and {other} "
            f"have other labels for {brief(evaluation)}. Choose runs with where=."
        )
    return read_labels(folder, next(iter(digests))) if digests else None


def _matching(
    records: Mapping[Path, dict[str, Any]], wanted: Mapping[str, Any], folder: Path
) -> dict[Path, dict[str, Any]]:
    kept = dict(records)
    for name, value in wanted.items():
        there = [r["coordinates"].get(name) for r in kept.values()]
        kept = {p: r for p, r in kept.items() if r["coordinates"].get(name) == value}
        if not kept:
            several = list_names(_distinct(there))
            close = suggest(value, [t for t in there if isinstance(t, str)])
            raise InputError(
                f"{brief(name)} is {brief(value)} in no run of {format_path(folder)}.{close} There are {several}."
            )
    return kept


def _check_one_training(kept: Mapping[Path, dict[str, Any]], folder: Path) -> None:
    """Runs that differ in more than chance are not runs of one training."""
    names = dict.fromkeys(k for r in kept.values() for k in r["coordinates"])
    for name in names:
        if name in _CHANCE or name.endswith("_seed"):
            continue
        there = _distinct([r["coordinates"].get(name) for r in kept.values()])
        if len(there) > 1:
            way = f"where={{{brief(name)}: {brief(there[0])}}}"
            way = f"learner={brief(there[0])}" if name == "learner" else way
            raise InputError(
                f"The runs in {format_path(folder)} are of more than one training: {brief(name)} is "
                f"{list_names(there)}. Choose with {way}."
            )


def _distinct(values: list[Any]) -> list[Any]:
    return list({json.dumps(value, sort_keys=True): value for value in values}.values())


def _common(done: Mapping[Path, dict[str, Any]], name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    first, about = next((path, record["arrays"][name]) for path, record in done.items())
    shape, dtype = tuple(about["shape"]), _dtype(first, about, name)
    for path, record in done.items():
        about = record["arrays"][name]
        here = _dtype(path, about, name)
        if tuple(about["shape"]) != shape or (here.kind == "U") != (dtype.kind == "U"):
            raise InputError(
                f"Run {path.name} has {name} of shape {tuple(about['shape'])} ({here}), run "
                f"{first.name} of {shape} ({dtype}): all runs must be on the same examples."
            )
        dtype = np.result_type(dtype, here)
    return shape, dtype


def _dtype(path: Path, about: Mapping[str, Any], name: str) -> np.dtype[Any]:
    if about["dtype"][:1] in ("[", "{"):
        raise InputError(
            f"Run {path.name} has {name} of {brief(about['dtype'])}, an array with fields: "
            "predictions are numbers or texts."
        )
    dtype: np.dtype[Any] = np.dtype(about["dtype"])
    return dtype


def _array(path: Path, records: Mapping[Path, Any], name: str) -> NDArray[Any]:
    """Read one array of a run and check it against its recorded checksum."""
    return array_of(path, records[path], name)


# Risks out of a store of runs: a row for each run, those that failed among them.


def risk_table(folder: Path) -> Table:
    """Coordinates, status and metrics of each run of a store; seeds joined into one."""
    runs = [record for record in read_records(folder).values() if not is_search(record)]
    if not runs:
        raise InputError(f"{format_path(folder)} holds no runs.")
    return table_from_records([_row(record) for record in runs], format_path(folder), folder.name)


def _row(record: Mapping[str, Any]) -> dict[str, Any]:
    plain = {k: v for k, v in record["coordinates"].items() if k not in HASHES and not isinstance(v, Mapping | list)}
    seeds = {k: v for k, v in plain.items() if k.endswith("_seed")}
    if seeds and "seed" not in plain:
        plain = {k: v for k, v in plain.items() if k not in seeds}
        plain["seed"] = "/".join(str(v) for v in dict.fromkeys(seeds.values()))
    metrics = {k: v for k, v in record["metrics"].items() if k not in plain}
    return {**plain, "status": record["status"], **metrics}


def store_folder(source: Any) -> Path | None:
    """Return the folder that a user names if it is a store of runs; None for any other source."""
    if not isinstance(source, str | PathLike) or not isdir(source):
        return None
    path = Path(source).resolve()  # "." and ".." have no names of their own
    return path if is_store(path) else None
