"""Runs of Weights & Biases."""

from __future__ import annotations

import json
import shutil
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from inspect import signature
from os import PathLike
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from curvewise.errors import InputError, brief, format_path
from curvewise.integrations.runs import import_tracker, is_table_path, measure_runs, runs_table, stack_predictions
from curvewise.reading.roles import ColumnMap
from curvewise.reading.table import Table
from curvewise.reading.trackers import flatten
from curvewise.types.measurements import Measurements
from curvewise.types.predictions import Predictions


def load_measurements(
    runs: Any,
    *,
    metric: str | None = None,
    size_param: str | None = None,
    learner_param: str | Sequence[str] | None = None,
    where: Mapping[str, Any] | None = None,
    unit: str | None = None,
    higher_is_better: bool | None = None,
    columns: ColumnMap | None = None,
) -> Measurements:
    """Read a summary metric of every run of a W&B project by training-set size.

    Runs that failed, crashed, were killed or logged NaN keep their rows, with NaN and the status "failed", and
    ``notes`` count them; fits leave them out and say so. Runs that still go on are left out and noted.

    Parameters
    ----------
    runs : str, path, wandb runs, or DataFrame
        ``"entity/project"``; what ``wandb.Api().runs(…)`` returns, or a list of such runs; a folder of local runs,
        also offline ones, such as ``"wandb"``; or a table: a frame or list of records, or the CSV file of a project's
        page, for which W&B is not needed.
    metric : str, optional
        The summary metric; by default the only one called error, accuracy, loss, ….
    size_param : str, optional
        The entry of the config with the training-set size; by default the one called n, train_size, ….
    learner_param : str or list of str, optional
        The entries that tell learners apart; by default one called model, learner, ….
    where : dict, optional
        Only runs with these settings: ``{"model": "mlp"}``, or ``{"project": "digits"}`` in a folder of several.
    unit : {"fraction", "percent", "loss", "score"}, optional
        What the values mean; fractions by default.
    higher_is_better : bool, optional
        By default the name of the metric says so; needed where it does not.
    columns : dict, optional
        Further roles, as in :func:`curvewise.load_measurements`: ``{"seed": "init"}``.

    Returns
    -------
    Measurements
        One row per run.

    Raises
    ------
    InputError
        If there is no such metric or size, or no run finished.

    Examples
    --------
    >>> records = [{"name": f"run {n}", "state": "finished", "config": {"n": n}, "summary": {"val_acc": 1 - 10 / n}}
    ...            for n in (100, 200)]
    >>> load_measurements(records, metric="val_acc", size_param="n").error.round(3).tolist()
    [0.1, 0.05]
    """
    native = _runs(runs)
    table = runs if native is None else _table(native, runs)
    return measure_runs(table, "wandb", metric, size_param, learner_param, where, unit, higher_is_better, columns)


def load_predictions(
    runs: Any,
    *,
    artifact: str = "predictions.npy",
    labels: ArrayLike | str | PathLike[str] | None = None,
    kind: str | None = None,
    where: Mapping[str, Any] | None = None,
) -> Predictions:
    """Read what the runs of a W&B project predicted for each test example, from a file that each saved.

    Parameters
    ----------
    runs : str, path or wandb runs
        As in :func:`load_measurements`.
    artifact : str
        Name of the file among those of the run (``run.save`` puts it there): ``.npy``, ``.npz`` (also with the
        labels), ``.csv`` or ``.json``, one run each.
    labels : array_like or path, optional
        The true class of each example, where the file has none.
    kind : str, optional
        What the values are, as in :func:`curvewise.load_predictions`.
    where : dict, optional
        Settings of the runs to take, ``{"model": "mlp", "n": 400}``: all must be runs of one training.
    """
    native = _runs(runs)
    if native is None:
        raise InputError("is a table, which holds no files: pass a project, a folder or runs.", argument="runs")

    def fetch(row: int, folder: Path) -> Path | None:
        run = native[row]
        if isinstance(run, Mapping):  # a local run
            path = Path(run["files"], artifact)
            return Path(shutil.copy(path, folder)) if path.is_file() else None
        for file in run.files([artifact]):
            if file.name == artifact:
                with file.download(root=str(folder), replace=True) as opened:
                    return Path(opened.name)
        return None

    table = _table(native, runs)
    return stack_predictions(table, "wandb", fetch, artifact=artifact, labels=labels, kind=kind, where=where)


def _runs(source: Any) -> list[Any] | None:
    """Return the runs of a project or a folder, or those given; None for a table."""
    if isinstance(source, str | PathLike) and Path(source).is_dir():
        return _local_runs(Path(source))
    if isinstance(source, str) and not is_table_path(source):
        if source.count("/") > 1:
            raise InputError(
                "is neither a folder nor a file here, and no project.",
                argument="runs",
                value=source,
                remedy='Pass "entity/project", or the folder "wandb" that a training made.',
            )
        api = import_tracker("wandb", "wandb").Api()
        # Newer versions ask the server for the settings and metrics of each run anew, unless they are asked not to.
        options = {"lazy": False} if "lazy" in signature(api.runs).parameters else {}
        return list(api.runs(source, **options))
    if isinstance(source, str | PathLike | Mapping) or hasattr(source, "columns"):
        return None
    try:
        found = list(source)
    except TypeError:  # a kind of frame, or nothing that can be read: the reader of tables says so
        return None
    return found if found and all(hasattr(run, "summary_metrics") for run in found) else None


def _table(runs: Sequence[Any], source: Any) -> Table:
    """Make a table with a column for each setting and each metric."""
    records = []
    for run in runs:
        local = isinstance(run, Mapping)
        about = run if local else {k: getattr(run, k) for k in ("id", "name", "state", "project", "config")}
        summary = run["summary"] if local else run.summary_metrics
        record = {k: about[k] for k in ("id", "name", "state", "project")}
        records.append(record | flatten(about["config"], "config.") | flatten(summary, "summary."))
    if isinstance(source, str | PathLike) and Path(source).is_dir():
        title, label = f"the W&B runs in {format_path(Path(source))}", Path(source).resolve().name
    else:
        title, label = "the W&B runs", "learner"
        if isinstance(source, str):
            title, label = f"the W&B project {brief(source)}", source.rpartition("/")[2]
    projects = {record["project"] for record in records} - {"", None}
    return runs_table(records, title, projects.pop() if len(projects) == 1 else label)


# Local runs. W&B writes each to a log of protocol buffers, run-<id>.wandb, in the format of LevelDB: blocks of 32 KiB
# with records that a header of 7 bytes precedes (checksum, length, and whether the record is whole or a part).

_BLOCK = 32768
_HEADER = struct.Struct("<IHB")
_WHOLE, _FIRST, _LAST = 1, 2, 4


def _local_runs(folder: Path) -> list[dict[str, Any]]:
    """Read the logs below a folder, in the order in which they were begun; a resumed run is one run."""
    paths = sorted(folder.rglob("*.wandb"), key=lambda path: path.parent.name.partition("run-")[2])
    if not paths:
        raise InputError("holds no runs of W&B: no file in it ends in .wandb.", argument="runs", value=str(folder))
    messages = import_tracker("wandb.proto.wandb_internal_pb2", "wandb")
    runs: dict[str, dict[str, Any]] = {}
    for path in dict.fromkeys(path.resolve() for path in paths):  # latest-run is a link to one of them
        identity = path.stem.removeprefix("run-")
        start = {"id": identity, "name": identity, "project": "", "started": (0, 0), "config": {}, "summary": {}}
        run = runs.setdefault(identity, start)
        run |= {"state": "crashed", "files": path.parent / "files"}  # crashed unless the log has an end
        for data in _logged(path):
            record = messages.Record.FromString(data)
            if record.HasField("run"):
                run["name"], run["project"] = record.run.display_name or run["name"], record.run.project
                run["started"] = record.run.start_time.seconds, record.run.start_time.nanos
                _update(run["config"], record.run.config)
                _update(run["summary"], record.run.summary)
            elif record.HasField("config"):
                _update(run["config"], record.config)
            elif record.HasField("summary"):
                _update(run["summary"], record.summary)
            elif record.HasField("exit"):
                run["state"] = "failed" if record.exit.exit_code else "finished"
    return sorted(runs.values(), key=lambda run: run["started"])


def _logged(path: Path) -> Iterator[bytes]:
    """Yield the records of a log; one that is cut short or damaged ends it, as when the training was killed."""
    data = path.read_bytes()
    if data[:4] != b":W&B":
        raise InputError(f"{format_path(path)} is no log of W&B: it does not begin with :W&B.")
    position, parts = 7, b""
    while position + _HEADER.size <= len(data):
        room = _BLOCK - position % _BLOCK
        if room < _HEADER.size:  # no header fits into the rest of the block
            position += room
            continue
        checksum, length, kind = _HEADER.unpack_from(data, position)
        position += _HEADER.size
        part = data[position : position + length]
        if len(part) < length or zlib.crc32(part, zlib.crc32(bytes([kind]))) != checksum:
            return
        position += length
        parts = part if kind in (_WHOLE, _FIRST) else parts + part
        if kind in (_WHOLE, _LAST):
            yield parts


def _update(values: dict[str, Any], changes: Any) -> None:
    """Apply the changes of a record, whose values are JSON."""
    for item in changes.update:
        *path, last = item.nested_key or [item.key]
        inner = values
        for key in path:
            inner = inner.setdefault(key, {}) if isinstance(inner.get(key, {}), dict) else inner
        inner[last] = json.loads(item.value_json)
    for item in changes.remove:
        values.pop(item.nested_key[0] if item.nested_key else item.key, None)
