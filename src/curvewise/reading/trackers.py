"""Tables exported from experiment trackers: their columns under plain names, finished runs only."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from curvewise.errors import InputError
from curvewise.reading.roles import FINISHED, UNFINISHED, ColumnMap, Roles, status_word
from curvewise.reading.table import Column, Table, is_missing
from curvewise.text import brief, list_names

LONGEST_CELL = 1_000_000  # characters of a cell that may hold a dict


class _Form(NamedTuple):
    """How a tracker names its columns.

    ``prefixes`` are cut off; what fits ``bookkeeping`` plays no role in any study and is left out;
    ``names`` are given others, because a run's own name is no learner; ``nested`` hold dicts.
    """

    prefixes: tuple[str, ...]
    bookkeeping: re.Pattern[str]
    names: Mapping[str, str]
    nested: tuple[str, ...] = ()


# mlflow.search_runs(), and the file that its page of runs saves
_MLFLOW = _Form(
    prefixes=("params.", "metrics.", "tags."),
    bookkeeping=re.compile(
        r"experiment_id|artifact_uri|start_time|end_time|tags\.mlflow\.(?!runName$).*|"
        r"Start Time|Duration|Source Type|Source Name|User|Dataset|Experiment ID|Models"
    ),
    names={"tags.mlflow.runName": "run_name", "Name": "run_name", "Run ID": "run_id"},
)
# wandb.Api().runs(…) as a frame, flattened or not, and the file that a project's table saves
_WANDB = _Form(
    prefixes=("config.", "summary.", "summary_metrics."),
    bookkeeping=re.compile(
        r"((config|summary|summary_metrics)[./])?_.*|system_metrics.*|Notes|User|Tags|tags|Created|"
        r"created_at|Runtime|Sweep|Hostname|Updated|Commit|GPU Count|GPU Type|GitHub|url|path"
    ),
    names={"Name": "run_name", "name": "run_name", "ID": "run_id", "id": "run_id"},
    nested=("config", "summary"),
)
# study.trials_dataframe()
_OPTUNA = _Form(
    prefixes=("params_", "user_attrs_"),
    bookkeeping=re.compile(
        r"datetime_start|datetime_complete|duration|system_attrs_.*|intermediate_values_.*|"
        r"distributions_.*|trial_id"
    ),
    names={"number": "trial"},
)
TRACKERS = {"mlflow": _MLFLOW, "wandb": _WANDB, "optuna": _OPTUNA}


def plain_names(table: Table, tracker: str, columns: ColumnMap | None) -> tuple[Table, ColumnMap | None]:
    """Give the columns of an export plain names: ``params.n`` is n, ``metrics.val_acc`` val_acc.

    Parameters
    ----------
    table : Table
        As exported.
    tracker : {"mlflow", "wandb", "optuna"}
        By what.
    columns : dict, optional
        What the user says about roles, in either naming.

    Returns
    -------
    table : Table
        Without bookkeeping. A name that two columns would have is not shortened.
    columns : dict, optional
        In the new naming.
    """
    if tracker not in TRACKERS:
        raise InputError(
            f"tracker={tracker!r} is not known: use one of {', '.join(map(repr, TRACKERS))}, or "
            "columns= for a table from elsewhere."
        )
    form = TRACKERS[tracker]
    table = _unnested(table, form)
    asked = _asked(columns)
    kept = [k for k in table.columns if k in asked or not form.bookkeeping.fullmatch(k)]
    wanted = {name: _short(name, form) for name in kept}
    count = Counter(wanted.values())
    new = {name: short if count[short] == 1 else name for name, short in wanted.items()}
    renamed = replace(table, columns={new[k]: table.columns[k] for k in kept})
    return renamed, _translated(columns, new)


def keep_finished(table: Table, roles: Roles) -> Table:
    """Leave out the rows of runs that failed, were stopped or still go on, and count them."""
    if not roles["status"]:
        return table
    name = roles["status"][0]
    words = [status_word(cell) for cell in table.columns[name]]
    unknown = sorted(set(words) - FINISHED - UNFINISHED - {""})
    if unknown:
        raise InputError(
            f"{table.where(name)} says {list_names(unknown)}, which is no known status: use finished, "
            "failed, running, …, or pass columns={'status': None} and choose the rows yourself."
        )
    finished = np.array([word in FINISHED for word in words])
    if finished.all():
        return table
    others = Counter(word or "without a status" for word in words if word not in FINISHED)
    said = ", ".join(f"{count} {word}" for word, count in others.items())
    if not finished.any():
        raise InputError(f"None of the {len(table)} rows of {table.source} is finished: {said}.")
    note = f"{len(table) - int(finished.sum())} of {len(table)} rows left out by column {brief(name)}: {said}"
    return replace(table.take(np.flatnonzero(finished)), notes=(*table.notes, note))


def _short(name: str, form: _Form) -> str:
    if name in form.names:
        return form.names[name]
    for prefix in form.prefixes:
        if name.startswith(prefix) and len(name) > len(prefix):
            return name[len(prefix) :]
    return name


def _asked(columns: ColumnMap | None) -> set[str]:
    names: set[str] = set()
    for given in (columns or {}).values():
        names |= {given} if isinstance(given, str) else set(given or ())
    return names


def _translated(columns: ColumnMap | None, new: Mapping[str, str]) -> ColumnMap | None:
    if columns is None:
        return None
    translated: dict[str, str | Sequence[str] | None] = {}
    for role, given in columns.items():
        if given is None or isinstance(given, str):
            translated[role] = None if given is None else new.get(given, given)
        else:
            translated[role] = [new.get(name, name) for name in given]
    return translated


def _unnested(table: Table, form: _Form) -> Table:
    """Turn a column of dicts, or of such dicts as text, into a column for each key."""
    columns: dict[str, Column] = {}
    for name, cells in table.columns.items():
        if name not in form.nested:
            columns[name] = cells
            continue
        dicts = [_flat(_as_dict(table, name, i, cell)) for i, cell in enumerate(cells)]
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
            f"Row {table.rows[row]} in {table.where(name)} reads {brief(cell)}, not a dict of "
            "settings. Export one column for each: pandas.json_normalize(records)."
        )
    return found


def _flat(nested: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in nested.items():
        name = f"{before}{key}"
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{name}.")
        else:
            flat[name] = value
    return flat
