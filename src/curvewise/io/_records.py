"""Predictions out of a store of runs: one folder per run, with a record and an array."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, StoreError
from curvewise.io._folders import RunFiles
from curvewise.io._found import Found
from curvewise.io._table import brief, listed, shown, suggest

_RECORD, _SCHEMA = "record.json", 1
_FOLDER = re.compile(r"[0-9a-f]{20}")
# Runs of one training may differ in these coordinates, and in any that end in _seed.
_CHANCE = ("seed", "fold", "subset", "run", "repeat", "replicate", "trial")
_REMEDY = "Restore it, or delete the run's folder to have the run made again."


def is_store(folder: Path) -> bool:
    """Whether a folder holds runs as ``write_run`` stores them."""
    return any(_FOLDER.fullmatch(p.name) and (p / _RECORD).is_file() for p in folder.iterdir())


def read_store(folder: Path, learner: str | None, where: Mapping[str, Any] | None) -> Found:
    """Take the runs of one training; those that failed are left out and counted."""
    names = sorted(p for p in folder.iterdir() if p.is_dir() and _FOLDER.fullmatch(p.name))
    records = {path: _record(path / _RECORD) for path in names}
    wanted = {**(where or {}), **({} if learner is None else {"learner": learner})}
    kept = _matching(records, wanted, folder)
    _check_one_training(kept, folder)
    done = {p: r["arrays"]["predictions"] for p, r in kept.items() if _has_predictions(r)}
    if not done:
        raise InputError(f"None of the {len(kept)} run(s) in {shown(folder)} has predictions.")
    shape, dtype = _common(done)
    lost = len(kept) - len(done)
    notes = [f"{len(done):,} of the {len(records):,} runs in {shown(folder)}"]
    notes += [f"{lost} run(s) failed or have no predictions, and are left out"] if lost else []
    return Found(
        RunFiles(list(done), partial(_array, about=done), shape, dtype),
        shown(folder),
        axes=("runs", "examples"),
        run_ids=np.array([path.name for path in done], dtype=np.str_),
        predicted=True,
        notes=tuple(notes),
    )


def _record(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"{path} cannot be read: {error}. {_REMEDY}") from error
    if not isinstance(record, dict) or record.get("schema") != _SCHEMA:
        raise StoreError(f"{path} is no record of a run that this curvewise reads. {_REMEDY}")
    if not all(isinstance(record.get(k), dict) for k in ("coordinates", "arrays")):
        raise StoreError(f"{path} lacks coordinates or arrays. {_REMEDY}")
    return record


def _has_predictions(record: Mapping[str, Any]) -> bool:
    return record.get("status") == "done" and "predictions" in record["arrays"]


def _matching(
    records: Mapping[Path, dict[str, Any]], wanted: Mapping[str, Any], folder: Path
) -> dict[Path, dict[str, Any]]:
    kept = dict(records)
    for name, value in wanted.items():
        there = [r["coordinates"].get(name) for r in kept.values()]
        kept = {p: r for p, r in kept.items() if r["coordinates"].get(name) == value}
        if not kept:
            several = listed(_distinct(there))
            close = suggest(value, [t for t in there if isinstance(t, str)])
            raise InputError(
                f"{brief(name)} is {brief(value)} in no run of {shown(folder)}.{close} There are "
                f"{several}."
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
                f"The runs in {shown(folder)} are of more than one training: {brief(name)} is "
                f"{listed(there)}. Choose with {way}."
            )


def _distinct(values: list[Any]) -> list[Any]:
    return list({json.dumps(value, sort_keys=True): value for value in values}.values())


def _common(done: Mapping[Path, Any]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    first = next(iter(done))
    shape, dtype = tuple(done[first]["shape"]), np.dtype(done[first]["dtype"])
    for path, about in done.items():
        here = np.dtype(about["dtype"])
        if tuple(about["shape"]) != shape or (here.kind == "U") != (dtype.kind == "U"):
            raise InputError(
                f"Run {path.name} has predictions of shape {tuple(about['shape'])} ({here}), run "
                f"{first.name} of {shape} ({dtype}): all runs must be on the same examples."
            )
        dtype = np.result_type(dtype, here)
    return shape, dtype


def _array(path: Path, about: Mapping[Path, Any]) -> NDArray[Any]:
    """Read the predictions of one run and check them against their recorded checksum."""
    file = path / "predictions.npy"
    try:
        data = file.read_bytes()
    except OSError as error:
        raise StoreError(f"{file} cannot be read: {error}. {_REMEDY}") from error
    if hashlib.sha256(data).hexdigest() != about[path].get("sha256"):
        raise StoreError(f"{file} is damaged: its checksum is not the recorded one. {_REMEDY}")
    array: NDArray[Any] = np.load(io.BytesIO(data), allow_pickle=False)
    return array
