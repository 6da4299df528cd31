"""Runs on disk: one directory per run, written aside and renamed into place."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import ArrayLike, NDArray

from curvewise.errors import StoreError
from curvewise.study._files import publish, remove_leftovers, write_aside
from curvewise.study._record import (
    PREDICTIONS,
    RECORD,
    SCHEMA,
    error_text,
    jsonable,
    metric_values,
    npy_bytes,
    read_array,
    read_record,
    run_id,
)
from curvewise.study.environment import capture_environment

AnyPath: TypeAlias = "str | PathLike[str]"


@dataclass(frozen=True, eq=False)
class Run:
    """One stored run.

    Attributes
    ----------
    id : str
        Hash of the coordinates, and the name of the run's directory.
    path : Path
        The run's directory.
    coordinates : dict
        What identifies the run.
    status : {"done", "failed"}
        How it ended.
    metrics : dict of str to float
        What was measured; NaN where the value was not finite.
    error : str or None
        Why it failed.
    environment : dict
        What it was made with.
    notes : tuple of str
        What a reader should know, such as warnings raised in training.
    arrays : dict
        For each array: file, sha256, shape, dtype.
    predictions : ndarray or None
        What was predicted; None too when the run comes from :func:`list_runs`, which loads no
        arrays: ``read_run(run.path)`` does.
    """

    id: str
    path: Path
    coordinates: Mapping[str, Any]
    status: str
    metrics: Mapping[str, float]
    error: str | None = None
    environment: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    arrays: Mapping[str, Any] = field(default_factory=dict)
    predictions: NDArray[Any] | None = None


def write_run(
    store: AnyPath,
    coordinates: Mapping[str, Any],
    predictions: ArrayLike | None = None,
    metrics: Mapping[str, float] | None = None,
    *,
    status: str = "done",
    error: str | BaseException | None = None,
    environment: Mapping[str, Any] | None = None,
    notes: tuple[str, ...] = (),
    overwrite: bool = False,
) -> Path:
    """Store one run, from anyone's own training loop.

    The run appears whole or not at all: it is written aside, synced and renamed into place, so that
    a crash, or another process writing the same run, leaves no half-written directory.

    A run that is there already with the same predictions and metrics is left alone and its path
    returned; a failed one is replaced; one that differs is an error unless ``overwrite``.

    Parameters
    ----------
    store : path
        Folder of the store; made if missing.
    coordinates : dict
        What identifies the run (learner, n, fold, seeds, data digest, …): strings, numbers, bools,
        None, and lists and dicts of them. Their hash names the directory.
    predictions : array-like, optional
        What the model predicted for each evaluation example, any shape; numbers or strings.
    metrics : dict of str to float, optional
        Measured values. NaN and infinities are stored as null, and a note says so.
    status : {"done", "failed"}
        How the run ended.
    error : str or exception, optional
        Why it failed.
    environment : dict, optional
        Added to what is captured: device, determinism flags, …
    notes : tuple of str
        Kept with the run.
    overwrite : bool
        Whether to replace whatever is there.

    Returns
    -------
    Path
        The run's directory.

    Raises
    ------
    InputError
        If something cannot be stored.
    StoreError
        If a different or damaged run with these coordinates is there.

    Examples
    --------
    >>> import tempfile
    >>> store = tempfile.mkdtemp()
    >>> path = write_run(store, {"learner": "mine", "n": 100, "seed": 1}, [0, 1, 1], {"error": 0.2})
    >>> run = read_run(path)
    >>> run.metrics["error"], run.predictions.tolist()
    (0.2, [0, 1, 1])
    """
    identity = run_id(coordinates)
    arrays = {} if predictions is None else {PREDICTIONS: npy_bytes(predictions)}
    values, lost = metric_values(metrics or {})
    record = {
        "schema": SCHEMA,
        "id": identity,
        "coordinates": jsonable(coordinates, "coordinates"),
        "status": status,
        "metrics": values,
        "error": error_text(status, error),
        "environment": {
            **capture_environment(),
            "written": datetime.now(UTC).isoformat(timespec="seconds"),
            **jsonable(environment or {}, "environment"),
        },
        "notes": [*map(str, notes), *lost],
        "arrays": {name.removesuffix(".npy"): about for name, (_, about) in arrays.items()},
    }
    folder = _store_folder(store)
    text = json.dumps(record, indent=1, sort_keys=True, allow_nan=False).encode()
    files = {name: data for name, (data, _) in arrays.items()} | {RECORD: text + b"\n"}
    final = folder / identity
    if not overwrite and _is_settled(final, record):
        return final
    aside = write_aside(folder, identity, files)
    return publish(aside, final, keep=lambda: not overwrite and _is_settled(final, record))


def read_run(path: AnyPath) -> Run:
    """Read one run and check it against its checksums.

    Parameters
    ----------
    path : path
        The run's directory.

    Returns
    -------
    Run
        With its predictions.

    Raises
    ------
    StoreError
        If a file is missing or damaged; the message names it.
    """
    folder = Path(path)
    record = read_record(folder / RECORD)
    predictions = None
    if "predictions" in record["arrays"]:
        predictions = read_array(folder / PREDICTIONS, record["arrays"]["predictions"])
    return _as_run(folder, record, predictions)


def list_runs(store: AnyPath) -> list[Run]:
    """Read the records of all runs in a store, without their arrays.

    What an interrupted write left behind is ignored, and removed once it is an hour old.

    Parameters
    ----------
    store : path
        Folder of the store. One that does not exist yet has no runs.

    Returns
    -------
    list of Run
        Ordered by id; ``read_run(run.path)`` loads a run's predictions.

    Raises
    ------
    StoreError
        If a record is damaged; the message names it.
    """
    folder = Path(store)
    if not folder.exists():
        return []
    if not folder.is_dir():
        raise StoreError(f"store={str(store)!r} is not a folder.")
    remove_leftovers(folder, now=time.time())
    names = sorted(p for p in folder.iterdir() if re.fullmatch(r"[0-9a-f]{20}", p.name))
    return [_as_run(p, read_record(p / RECORD), None) for p in names if p.is_dir()]


def _store_folder(store: AnyPath) -> Path:
    folder = Path(store)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"store={str(store)!r} cannot be made a folder: {error}.") from error
    return folder


def _is_settled(final: Path, record: Mapping[str, Any]) -> bool:
    """Whether the run is there already and stays; a different one is an error."""
    if not final.exists():
        return False
    there = read_record(final / RECORD)
    if there["status"] == "failed":
        return False
    if all(there[key] == record[key] for key in ("status", "metrics", "arrays")):
        return True
    raise StoreError(
        f"{final} holds a run with the same coordinates but other results: pass overwrite=True to "
        "replace it, or add the coordinate in which they differ."
    )


def _as_run(folder: Path, record: Mapping[str, Any], predictions: NDArray[Any] | None) -> Run:
    metrics = {k: math.nan if v is None else v for k, v in record["metrics"].items()}
    kept = {k: record[k] for k in ("coordinates", "status", "environment", "arrays")}
    return Run(
        id=folder.name,
        path=folder,
        metrics=metrics,
        error=record.get("error"),
        notes=tuple(record["notes"]),
        predictions=predictions,
        **kept,
    )
