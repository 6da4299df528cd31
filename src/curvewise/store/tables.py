"""A store of runs as the lenses read it: a table of measurements, a table of risks, the predictions of one training."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
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
from curvewise.store.read import array_of, is_store, read_labels, read_records
from curvewise.store.record import PREDICTIONS, is_search
from curvewise.text import arg, brief, format_path, list_names, suggest
from curvewise.types.predictions import RawPredictions

LOSSES = "losses"
"""The array that a run has where targets are numbers, in place of predicted classes."""
# Runs of one training may differ in these coordinates, and in any that end in _seed.
_CHANCE = ("seed", "fold", "subset", "run", "repeat", "replicate", "trial")
# Coordinates that tell runs apart and mean nothing to a reader.
HASHES = ("data", "subset", "recipe", "search", "weights")
_NUMBER_LOSSES = ("l1", "l2")
# The order in which a study names its coordinates; records have theirs sorted by name.
_FIRST = ("learner", "n", "fold", "seed", "init_seed", "order_seed", "augmentation_seed", "poke_seed")


def measured_rows(records: Mapping[str, Mapping[str, Any]], metric: str) -> list[dict[str, Any]]:
    """Give one row per run: its coordinates, its status, its id, and a metric.

    :meth:`Study.measurements` and :func:`load_measurements` both read a store through this function. The value of
    a failed run is NaN. Nested coordinates are left out, except lists, which a grid may vary; learners of a study
    are named with the settings of its grid, which make them another one.

    Parameters
    ----------
    records : dict of str to record
        By id.
    metric : str
        Which; runs that are done must have it.
    """
    rows = []
    for identity, record in records.items():
        given = record["coordinates"]
        plain = {k: v for k, v in given.items() if k not in HASHES and not isinstance(v, Mapping)}
        row = {k: plain[k] for k in _FIRST if k in plain}
        row |= {k: setting_text(v) if isinstance(v, list) else v for k, v in plain.items() if k not in row}
        if str(given.get("recipe", "")).startswith("study/"):
            settings = {k: v for k, v in given.items() if not _is_usual(k)}
            row["learner"] = curve_name(str(given["learner"]), settings)
        if metric == "loss":
            row["judged"] = _judged(record)
        value = record["metrics"].get(metric) if record["status"] == "done" else None
        row = {**row, "status": record["status"]} | ({} if "run" in row else {"run": identity})
        rows.append({**row, metric: math.nan if value is None else float(value)})
    return rows


def _is_usual(coordinate: str) -> bool:
    """Return whether every run of a study has this coordinate, so that it is no setting of a grid."""
    usual = (*HASHES, *_CHANCE, "learner", "n", "training", "poke")
    return coordinate in usual or coordinate.endswith("_seed")


def failure_notes(failed: Sequence[tuple[str, str]], total: int) -> list[str]:
    """Say how many of the runs of each learner failed, and why.

    >>> failure_notes([("net", "ValueError: no"), ("net", "ValueError: no")], 6)
    ['2 of 6 runs failed (net): ValueError: no']
    """
    return [
        f"{count} of {total} runs failed ({learner}): {reason}" for (learner, reason), count in Counter(failed).items()
    ]


def reason_of(text: str) -> str:
    r"""Return the line of an error that says what happened: the last one of a traceback.

    >>> reason_of("Traceback (most recent call last):\n  File …\nValueError: no")
    'ValueError: no'
    """
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    line = lines[-1] if lines else "no reason given"
    return line if len(line) <= 300 else f"{line[:300]}…"


def store_folder(source: Any) -> Path | None:
    """Return the folder that a user names if it is a store of runs; None for any other source."""
    if not isinstance(source, str | PathLike) or not isdir(source):
        return None
    path = Path(source).resolve()  # "." and ".." have no names of their own
    return path if is_store(path) else None


def store_table(folder: Path, metric: str | None = None) -> Table:
    """Make a table with a metric of each run of a store, and its plain coordinates.

    By default the error; where runs predict numbers and none has an error, their loss. Failed runs have NaN.
    Searches for learning rates are left out, as are runs that are done and lack the metric; these are counted.
    """
    runs = {Path(path).name: record for path, record in read_records(folder).items() if not is_search(record)}
    errors = any(r["metrics"].get("error") is not None for r in runs.values())
    metric = metric or ("loss" if not errors and any(map(_judged, runs.values())) else "error")
    failed = {k: r for k, r in runs.items() if r["status"] == "failed"}
    done = {k: r for k, r in runs.items() if k not in failed and r["metrics"].get(metric) is not None}
    if not done:
        there = dict.fromkeys(k for r in runs.values() for k, v in r["metrics"].items() if v is not None)
        raise InputError(
            f"None of the {len(runs)} run(s) in {format_path(folder)} has a metric {metric!r}."
            + (f"{suggest(metric, there)} There are {list_names(there)}." if there else "")
        )
    kept = {k: r for k, r in runs.items() if k in done or k in failed}
    rows = measured_rows(kept, metric)
    table = table_from_records(rows, format_path(folder), folder.name)
    named = [str(r["coordinates"].get("learner", folder.name)) for r in failed.values()]
    reasons = [reason_of(r.get("error") or "") for r in failed.values()]
    notes = failure_notes(list(zip(named, reasons, strict=True)), len(runs))
    if lost := len(runs) - len(kept):
        notes.append(f"{lost} run(s) have no {metric}, and are left out")
    kinds = sorted({str(row["judged"]) for row in rows}) if metric == "loss" else []
    if len(kinds) > 1:
        notes.append(f"losses of the kinds {', '.join(kinds)}, whose values cannot be compared")
    return replace(table, notes=(*table.notes, *notes))


def holds_losses(folder: Path, table: Table) -> bool:
    """Return whether the table of a store is one of losses: its runs predict numbers, or a loss was asked for."""
    values = {name.partition(".")[0] for name in table.columns}
    return is_store(folder) and not {"error", "train_error"} & values


def curve_name(learner: str, settings: Mapping[str, Any]) -> str:
    """Name a curve: the learner, and the settings of the grid that make it another one.

    >>> curve_name("net", {"rate": 0.1, "augment": ["flip", "crop"]})
    'net, rate=0.1, augment=flip, crop'
    """
    return ", ".join([learner, *(f"{name}={setting_text(v)}" for name, v in settings.items())])


def setting_text(value: Any) -> str:
    """Write a setting for people.

    >>> setting_text(["flip", "cutout:12"]), setting_text([]), setting_text(0.1)
    ('flip, cutout:12', 'none', '0.1')
    """
    if isinstance(value, list | tuple):
        return ", ".join(map(setting_text, value)) or "none"
    return str(value)


def _judged(record: Mapping[str, Any]) -> str | None:
    """Return the loss by which a run was judged that predicts numbers; None where it predicts classes."""
    training = record["coordinates"].get("training")
    found = (training.get("loss") or training.get("judged")) if isinstance(training, dict) else None
    return found if found in _NUMBER_LOSSES else None


def risk_table(folder: Path) -> Table:
    """Make a table with the coordinates, status and metrics of each run of a store; seeds are joined into one."""
    runs = [record for record in read_records(folder).values() if not is_search(record)]
    if not runs:
        raise InputError(f"{format_path(folder)} holds no runs.")
    rows = []
    for record in runs:
        given = record["coordinates"].items()
        plain = {k: v for k, v in given if k not in HASHES and not isinstance(v, Mapping | list)}
        seeds = {k: v for k, v in plain.items() if k.endswith("_seed")}
        if seeds and "seed" not in plain:
            plain = {k: v for k, v in plain.items() if k not in seeds}
            plain["seed"] = "/".join(str(v) for v in dict.fromkeys(seeds.values()))
        metrics = {k: v for k, v in record["metrics"].items() if k not in plain}
        rows.append({**plain, "status": record["status"], **metrics})
    return table_from_records(rows, format_path(folder), folder.name)


def read_store(
    folder: Path, learner: str | None, where: Mapping[str, Any] | None, key: str | None = None
) -> RawPredictions:
    """Take the predictions of the runs of one training; runs that failed are left out and counted.

    ``key`` names the array: predictions for the test set by default, or losses where the runs predict numbers.
    Searches for learning rates are no runs of a training.
    """
    every = {Path(path): record for path, record in read_records(folder).items()}
    records = {path: record for path, record in every.items() if not is_search(record)}
    wanted = {**(where or {}), **({} if learner is None else {"learner": learner})}
    kept = _matching(records, wanted, folder)
    _check_one_training(kept, folder)
    numbers = any(_judged(r) and LOSSES in r["arrays"] for r in kept.values())
    name = key or (LOSSES if numbers else PREDICTIONS)
    kind = name.partition(".")[0]
    done = {p: r for p, r in kept.items() if r["status"] == "done" and name in r["arrays"]}
    if not done:
        there = sorted({k for r in kept.values() for k in r["arrays"]})
        which = f" There are {list_names(there)}: choose with {arg('key', there[0])}." if there else ""
        raise InputError(f"None of the {len(kept)} run(s) in {format_path(folder)} has {name}.{which}")
    lost = len(kept) - len(done)
    notes = [f"{len(done):,} of the {len(records):,} runs in {format_path(folder)}"]
    notes += [f"{lost} run(s) failed or have no {name}, and are left out"] if lost else []
    notes += ["the runs predict numbers: the loss of each example"] if numbers and not key else []
    return RawPredictions(
        run_files(done, name),
        format_path(folder),
        kind=kind if kind in ("probabilities", LOSSES) else None,
        axes=("runs", "examples"),
        labels=shared_labels(done, name.partition(".")[2] or "test", folder),
        run_ids=np.array([path.name for path in done], dtype=np.str_),
        predicted=True,
        notes=tuple(notes),
    )


def run_files(records: Mapping[Path, Mapping[str, Any]], name: str) -> RunFiles:
    """Map an array of several runs, each read from its file when it is asked for; all must have one shape."""
    (first, about), *_ = ((path, record["arrays"][name]) for path, record in records.items())
    shape, dtype = tuple(about["shape"]), _dtype(first, about, name)
    for path, record in records.items():
        about = record["arrays"][name]
        here = _dtype(path, about, name)
        if tuple(about["shape"]) != shape or (here.kind == "U") != (dtype.kind == "U"):
            raise InputError(
                f"Run {path.name} has {name} of shape {tuple(about['shape'])} ({here}), run "
                f"{first.name} of {shape} ({dtype}): all runs must be on the same examples."
            )
        dtype = np.result_type(dtype, here)
    return RunFiles(list(records), partial(_array, records=records, name=name), shape, dtype)


def _dtype(path: Path, about: Mapping[str, Any], name: str) -> np.dtype[Any]:
    if re.match(r"[\[{]", about["dtype"]):
        raise InputError(
            f"Run {path.name} has {name} of {brief(about['dtype'])}, an array with fields: "
            "predictions are numbers or texts."
        )
    dtype: np.dtype[Any] = np.dtype(about["dtype"])
    return dtype


def _array(path: Path, records: Mapping[Path, Any], name: str) -> NDArray[Any]:
    return array_of(path, records[path], name)


def shared_labels(records: Mapping[Path, Mapping[str, Any]], evaluation: str, folder: Path) -> NDArray[Any] | None:
    """Read the true classes of the examples that runs were evaluated on, where they were stored."""
    digests = {r["labels"][evaluation]: p for p, r in records.items() if evaluation in r["labels"]}
    if len(digests) > 1:
        one, other = (path.name for path in list(digests.values())[:2])
        raise InputError(
            f"The runs in {format_path(folder)} were evaluated on different examples: {one} and {other} "
            f"have other labels for {brief(evaluation)}. Choose runs with where=, or run the study again."
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
            close = suggest(value, [t for t in there if isinstance(t, str)])
            raise InputError(
                f"{brief(name)} is {brief(value)} in no run of {format_path(folder)}.{close} There are "
                f"{list_names(_distinct(there))}."
            )
    return kept


def _check_one_training(kept: Mapping[Path, dict[str, Any]], folder: Path) -> None:
    """Refuse runs that differ in more than chance: they are not runs of one training."""
    names = dict.fromkeys(k for r in kept.values() for k in r["coordinates"])
    for name in names:
        if name in _CHANCE or name.endswith("_seed"):
            continue
        there = _distinct([r["coordinates"].get(name) for r in kept.values()])
        if len(there) > 1:
            way = arg("learner", there[0]) if name == "learner" else arg("where", {name: there[0]})
            raise InputError(
                f"The runs in {format_path(folder)} are of more than one training: {brief(name)} is "
                f"{list_names(there)}. Choose with {way}."
            )


def _distinct(values: list[Any]) -> list[Any]:
    return list({json.dumps(value, sort_keys=True): value for value in values}.values())
