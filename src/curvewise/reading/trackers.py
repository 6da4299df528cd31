"""Tables exported from experiment trackers: their columns under plain names."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from curvewise.errors import InputError, arg, brief
from curvewise.reading.roles import ColumnMap
from curvewise.reading.table import Column, Table, is_missing

LONGEST_CELL = 1_000_000  # characters of a cell that may hold a dict


class TrackerForm(NamedTuple):
    """Names that a tracker gives its columns.

    ``prefixes`` are cut off; what fits ``bookkeeping`` plays no role in any study and is left out;
    ``names`` are given others, because a run's own name is no learner; ``nested`` hold dicts; those that begin with
    ``metrics`` hold what came of a run.
    """

    prefixes: tuple[str, ...]
    bookkeeping: re.Pattern[str]
    names: Mapping[str, str]
    nested: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()


# mlflow.search_runs(), and the file that its page of runs saves
_MLFLOW = TrackerForm(
    prefixes=("params.", "metrics.", "tags."),
    bookkeeping=re.compile(
        r"experiment_id|artifact_uri|start_time|end_time|tags\.mlflow\.(?!runName$).*|"
        r"Start Time|Duration|Source Type|Source Name|User|Dataset|Experiment ID|Models"
    ),
    names={"tags.mlflow.runName": "run_name", "Name": "run_name", "Run ID": "run_id"},
    metrics=("metrics.",),
)
# wandb.Api().runs(…) as a frame, flattened or not, and the file that a project's table saves
_WANDB = TrackerForm(
    prefixes=("config.", "summary.", "summary_metrics."),
    bookkeeping=re.compile(
        r"((config|summary|summary_metrics)[./])?_.*|system_metrics.*|Notes|User|Tags|tags|Created|"
        r"created_at|Runtime|Sweep|Hostname|Updated|Commit|GPU Count|GPU Type|GitHub|url|path"
    ),
    names={"Name": "run_name", "name": "run_name", "ID": "run_id", "id": "run_id"},
    nested=("config", "summary"),
    metrics=("summary.", "summary_metrics."),
)
# study.trials_dataframe()
_OPTUNA = TrackerForm(
    prefixes=("params_", "user_attrs_"),
    bookkeeping=re.compile(
        r"datetime_start|datetime_complete|duration|system_attrs_.*|intermediate_values_.*|"
        r"distributions_.*|trial_id"
    ),
    names={"number": "trial"},
    metrics=("value",),
)
TRACKERS = {"mlflow": _MLFLOW, "wandb": _WANDB, "optuna": _OPTUNA}


def plain_names(table: Table, tracker: str, columns: ColumnMap | None) -> tuple[Table, ColumnMap | None]:
    """Give the columns of an export plain names: ``params.n`` is n, ``metrics.val_acc`` val_acc.

    Parameters
    ----------
    table : Table
        As exported.
    tracker : {"mlflow", "wandb", "optuna"}
        The tracker.
    columns : dict, optional
        The user's roles, with columns in either naming.

    Returns
    -------
    table : Table
        Without bookkeeping. A name that two columns would have is not shortened.
    columns : dict, optional
        In the new naming.
    """
    if tracker not in TRACKERS:
        raise InputError(
            f"{arg('tracker', tracker)} is not known: use one of {', '.join(map(repr, TRACKERS))}, or {arg('columns')} "
            "for a table from elsewhere."
        )
    form = TRACKERS[tracker]
    table = unnest(table, form)
    named = {role: [given] if isinstance(given, str) else list(given or ()) for role, given in (columns or {}).items()}
    requested = {name for given in named.values() for name in given}
    kept = [k for k in table.columns if k in requested or not form.bookkeeping.fullmatch(k)]

    def short(name: str) -> str:
        prefix = next((p for p in form.prefixes if name.startswith(p) and len(name) > len(p)), "")
        return form.names.get(name, name.removeprefix(prefix))

    # A parameter and a metric may both be called loss: neither is shortened then.
    count = Counter(map(short, kept))
    new = {name: short(name) if count[short(name)] == 1 else name for name in kept}
    renamed = replace(table, columns={new[k]: table.columns[k] for k in kept})
    if columns is None:
        return renamed, None
    translated = {role: [new.get(name, name) for name in given] or None for role, given in named.items()}
    return renamed, {role: given[0] if given and len(given) == 1 else given for role, given in translated.items()}


def metric_names(table: Table, tracker: str) -> frozenset[str]:
    """Return the names, long and short, of the columns that hold what came of a run, where names tell it."""
    form = TRACKERS[tracker]
    there = [(k, p) for k in unnest(table, form).columns for p in form.metrics if k.startswith(p)]
    return frozenset(name for k, p in there for name in (k, k.removeprefix(p) if p in form.prefixes else k))


def unnest(table: Table, form: TrackerForm) -> Table:
    """Turn a column of dicts, or of such dicts as text, into a column for each key."""
    columns: dict[str, Column] = {}
    for name, cells in table.columns.items():
        if name not in form.nested:
            columns[name] = cells
            continue
        dicts = [flatten(_as_dict(table, name, i, cell)) for i, cell in enumerate(cells)]
        keys = dict.fromkeys(key for each in dicts for key in each)
        columns |= {f"{name}.{key}": [each.get(key) for each in dicts] for key in keys}
    return replace(table, columns=columns)


def _as_dict(table: Table, name: str, row: int, cell: Any) -> Mapping[str, Any]:
    if isinstance(cell, Mapping):
        return cell
    if is_missing(cell):
        return {}
    found: Any = None
    if isinstance(cell, str) and len(cell) <= LONGEST_CELL:
        try:  # a frame of dicts that was saved as text; reads literals and runs nothing
            found = ast.literal_eval(cell)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            found = None
    if not isinstance(found, Mapping):
        raise InputError(
            f"Row {table.rows[row]} in {table.where(name)} reads {brief(cell)}, not a dict of settings. Export one "
            "column for each: pandas.json_normalize(records)."
        )
    return found


def flatten(nested: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Join the keys of nested dicts with dots.

    >>> flatten({"optimiser": {"lr": 0.1}, "n": 5}, "config.")
    {'config.optimiser.lr': 0.1, 'config.n': 5}
    """
    flat: dict[str, Any] = {}
    for key, value in nested.items():
        name = f"{before}{key}"
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{name}.")
        else:
            flat[name] = value
    return flat
