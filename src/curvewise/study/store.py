"""Runs on disk: one directory per run, written aside and renamed into place."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import ArrayLike

from curvewise.errors import InputError, StoreError, os_reason
from curvewise.io._stored import (
    MOST_RECORD,
    RECORD,
    SCHEMA,
    MissingRun,
    ReplacedRun,
    part_file,
    read_part,
    read_record,
    read_records,
    without_collecting,
)
from curvewise.study._files import publish, put_back, write_aside
from curvewise.study._record import (
    PREDICTIONS,
    TEST,
    check_distinct,
    check_name,
    error_text,
    jsonable,
    metric_values,
    named_arrays,
    npy_bytes,
    record_bytes,
    run_id,
    weights_bytes,
)
from curvewise.study.environment import capture_environment
from curvewise.study.labels import Encoded, check_folder, encode_labels, store_labels
from curvewise.study.run import Run

AnyPath: TypeAlias = "str | PathLike[str]"
MOST_READS = 10
"""How often a run is read anew that another process replaced while it was read."""


def write_run(
    store: AnyPath,
    coordinates: Mapping[str, Any],
    predictions: ArrayLike | Mapping[str, ArrayLike] | None = None,
    metrics: Mapping[str, float] | None = None,
    *,
    arrays: Mapping[str, ArrayLike] | None = None,
    checkpoints: Mapping[str, Mapping[str, ArrayLike]] | None = None,
    labels: ArrayLike | Mapping[str, ArrayLike] | None = None,
    status: str = "done",
    error: str | BaseException | None = None,
    environment: Mapping[str, Any] | None = None,
    notes: tuple[str, ...] = (),
    overwrite: bool = False,
) -> Path:
    """Store one run, from anyone's own training loop.

    The run appears whole or not at all: it is written aside, synced and renamed into place, so that
    a crash, a full disk, or another process writing the same run, leaves no half-written directory.
    A run that is replaced stays until the new one is in its place.

    A run that is there already with the same results is left alone and its path returned, whatever
    time either took; a failed one is replaced; one that differs is an error unless ``overwrite``.

    Parameters
    ----------
    store : path
        Folder of the store; made if missing.
    coordinates : dict
        What identifies the run (learner, n, fold, seeds, data digest, …): strings, numbers, bools,
        None, and lists and dicts of them. Their hash names the directory.
    predictions : array-like, or dict of str to array-like, optional
        What the model predicted for each evaluation example, any shape; numbers or strings. A dict
        has them by evaluation set, of which ``"test"`` is the one that a plain array is for.
    metrics : dict of str to float, optional
        Measured values. NaN and infinities are stored as null, and a note says so.
    arrays : dict of str to array-like, optional
        Further arrays: ``"probabilities"``, ``"probabilities.shifted"``, ``"features"``, …
    checkpoints : dict of str to dict of str to array-like, optional
        Weights by name, for each checkpoint; stored as ``<checkpoint>.safetensors``.
    labels : array-like, or dict of str to array-like, optional
        The true class of each evaluation example, by evaluation set; an array is the test set's.
        Stored once for all runs with the same ones.
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
        If a different or damaged run with these coordinates is there, or if writing fails; what
        was stored stays.
    MissingDependencyError
        For checkpoints without safetensors.

    Examples
    --------
    >>> import tempfile
    >>> store = tempfile.mkdtemp()
    >>> path = write_run(store, {"learner": "mine", "n": 100, "seed": 1}, [0, 1, 1], {"error": 0.2},
    ...                  arrays={"features": [[0.5], [1.5], [2.5]]}, labels=[0, 1, 0])
    >>> run = read_run(path)
    >>> run.metrics["error"], run.predictions.tolist(), run.labels().tolist()
    (0.2, [0, 1, 1], [0, 1, 0])
    >>> run.array("features").shape
    (3, 1)
    """
    identity = run_id(coordinates)
    kept = {k: npy_bytes(v, k) for k, v in named_arrays(predictions, arrays).items()}
    weights = _weights(checkpoints or {})
    truth = encode_labels(labels)
    _check_lengths(kept, truth)
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
        "arrays": {k: about | {"file": part_file("arrays", k)} for k, (_, about) in kept.items()},
        "files": {k: about | {"file": part_file("files", k)} for k, (_, about) in weights.items()},
        "labels": {k: about["sha256"] for k, (_, about) in truth.items()},
    }
    files = {part_file("arrays", k): data for k, (data, _) in kept.items()}
    files |= {part_file("files", k): data for k, (data, _) in weights.items()}
    files[RECORD] = record_bytes(record)
    if len(files[RECORD]) > MOST_RECORD:
        raise InputError(
            f"The record of the run has {len(files[RECORD]):,} bytes, and {MOST_RECORD:,} are the "
            "most: store what is large as arrays=."
        )
    try:
        return _store(Path(store), identity, record, files, truth, overwrite)
    except StoreError:
        raise
    except OSError as problem:
        reason = os_reason(problem, place=False)
        raise StoreError(
            f"Run {identity} could not be written to store={str(store)!r}: {reason}. Nothing of it "
            "was kept, and what is stored stays."
        ) from problem


def _check_lengths(arrays: Encoded, labels: Encoded) -> None:
    """Predictions for other examples than the labels are of would only be found when read."""
    for name, (_, truth) in labels.items():
        for kind in (PREDICTIONS, "probabilities"):
            array = kind if name == TEST else f"{kind}.{name}"
            if array not in arrays:
                continue
            shape, count = arrays[array][1]["shape"], truth["shape"][0]
            if not shape or shape[0] != count:
                raise InputError(
                    f"{array} has shape {tuple(shape)} and labels {name!r} {count} examples: give "
                    "one prediction for each example."
                )


def _store(
    folder: Path,
    identity: str,
    record: Mapping[str, Any],
    files: Mapping[str, bytes],
    truth: Encoded,
    overwrite: bool,
) -> Path:
    store_labels(folder, truth)  # before the run that names them
    final = folder / identity
    if not overwrite and _is_settled(final, record):
        return final
    aside = write_aside(folder, identity, files)
    return publish(
        aside,
        final,
        keep=lambda: not overwrite and _is_settled(final, record),
        check=lambda: _check_published(final),
    )


def _check_published(folder: Path) -> None:
    """Read what was written as others will."""
    try:
        record = read_record(folder)
        for kind in ("arrays", "files"):
            for name in record[kind]:
                read_part(folder, record, kind, name)
    except ReplacedRun:  # by another process, which checks what it has written
        return
    except StoreError as error:
        raise StoreError(
            f"{folder} was written and is not as it was written: {error} Store it again."
        ) from error


def read_run(path: AnyPath) -> Run:
    """Read one run and check it against its checksums.

    Parameters
    ----------
    path : path
        The run's directory.

    Returns
    -------
    Run
        With its predictions for the test set; what else it has is read when asked for.

    Raises
    ------
    StoreError
        If a file is missing or damaged; the message names it.
    """
    folder = Path(path)
    for left in reversed(range(MOST_READS)):
        run = _as_run(folder, folder.name, read_record(folder))
        try:
            if PREDICTIONS in run.arrays:
                object.__setattr__(run, "predictions", run.array(PREDICTIONS))
        except ReplacedRun:  # since its record was read
            if not left:
                raise
        else:
            break
    return run


def list_runs(store: AnyPath) -> list[Run]:
    """Read the records of all runs in a store, without their arrays.

    What an interrupted write left behind is ignored. Nothing in the store is changed.

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
    check_folder(folder)
    with without_collecting():
        records = read_records(folder)
        return [_as_run(Path(path), os.path.basename(path), r) for path, r in records.items()]


def _weights(checkpoints: Mapping[str, Mapping[str, ArrayLike]]) -> Encoded:
    check_distinct(checkpoints, "checkpoints")
    found = {}
    for name, weights in checkpoints.items():
        check_name(name, "checkpoints")
        found[name] = weights_bytes(weights, f"checkpoints[{name!r}]")
    return found


def _is_settled(final: Path, record: Mapping[str, Any]) -> bool:
    """Whether the run is there already and stays; a different one is an error."""
    if not os.path.lexists(final):
        put_back(final.parent)
    try:
        there = read_record(final)
    except MissingRun:
        return False
    if there["status"] == "failed":
        return False
    if _results(there) == _results(record):
        return True
    raise StoreError(
        f"{final} holds a run with the same coordinates but other results: pass overwrite=True to "
        "replace it, or add the coordinate in which they differ."
    )


def _results(record: Mapping[str, Any]) -> list[Any]:
    """What two runs with the same coordinates must agree in; time is not among it."""
    metrics = {k: v for k, v in record["metrics"].items() if not k.endswith("seconds")}
    return [record["status"], metrics, record["arrays"], record["files"]]


def _as_run(folder: Path, identity: str, record: Mapping[str, Any]) -> Run:
    return Run(
        id=identity,
        path=folder,
        coordinates=record["coordinates"],
        status=record["status"],
        metrics={k: math.nan if v is None else v for k, v in record["metrics"].items()},
        error=record.get("error"),
        environment=record["environment"],
        notes=tuple(record["notes"]),
        arrays=record["arrays"],
        files=record["files"],
        label_digests=record["labels"],
    )
