"""Read runs by parameters and tokens with their losses."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from curvewise.errors import InputError, Message, arg, list_names
from curvewise.reading.roles import (
    STATUS,
    ColumnMap,
    Role,
    ask,
    bare,
    direction,
    find_roles,
    keep_ended,
    normal,
    select_rows,
    synonyms,
)
from curvewise.reading.table import (
    Column,
    Table,
    full_names,
    is_measured,
    is_missing,
    large_files,
    names_in,
    numbers,
    read_table,
)
from curvewise.reading.trackers import plain_names
from curvewise.scaling.runs import ROWS, ScalingRuns, without_diverged
from curvewise.types.results import FloatArray

_PARAMS = synonyms("""
    params n_params num_params nparams n_parameters num_parameters parameters parameter_count param_count n_param
    model_size model_params total_params size_params""")
_TOKENS = synonyms("""
    tokens n_tokens num_tokens ntokens train_tokens training_tokens total_tokens tokens_seen seen_tokens tokens_trained
    dataset_tokens throughput_total_tokens train_tokens_total""")
_FLOPS = synonyms("""
    flops flop training_flop training_flops train_flops train_flop total_flops compute compute_flops flops_budget
    compute_budget budget""")
_UNIQUE = synonyms("unique_tokens unique distinct_tokens tokens_unique n_unique_tokens unique_train_tokens")
_LOSSES = (
    synonyms("""
    loss final_loss eval_loss val_loss valid_loss validation_loss test_loss cross_entropy crossentropy nll
    final_val_loss final_validation_loss heldout_loss held_out_loss"""),
    synonyms("perplexity ppl val_ppl valid_ppl val_perplexity test_perplexity"),
    synonyms("train_loss training_loss smooth_loss"),
)

MOST_SETTINGS = 12
"""Different texts in a column up to which it is taken for a setting, and not for the names of runs."""
_TIMES = {"k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}


def _plain_count(cell: Any) -> Any:
    """Read 1.3B as 1.3e9; leave other cells as they are."""
    text = cell.strip().lower() if isinstance(cell, str) else ""
    if len(text) > 1 and text[-1] in _TIMES:
        try:
            return float(text[:-1]) * _TIMES[text[-1]]
        except ValueError:
            return cell
    return cell


def _holds_counts(cells: Column) -> bool:
    return is_measured([_plain_count(cell) for cell in cells])


ROLES = (
    Role(
        "params",
        (_PARAMS, synonyms("n"), synonyms("size")),
        noun="number of parameters N",
        required=True,
        holds=_holds_counts,
    ),
    Role("tokens", (_TOKENS, synonyms("d t")), noun="number of training tokens D", holds=_holds_counts),
    Role("flops", (_FLOPS, synonyms("c")), holds=_holds_counts),
    Role("unique_tokens", (_UNIQUE,), noun="number of distinct tokens"),
    Role("loss", (*_LOSSES, synonyms("l")), required=True, if_several="rename the others"),
    Role("run", (synonyms("run run_id run_name run_index exp_name experiment_name"), synonyms("name")), first=True),
    Role("step", (synonyms("step steps global_step train_step iteration iterations"),), first=True),
    Role("source", (synonyms("source experiment family corpus"), synonyms("dataset data")), telling=True, first=True),
    Role("flagged", (synonyms("outlier is_outlier flagged excluded suspect"),), first=True),
    STATUS,
)


def as_scaling_runs(source: Any) -> ScalingRuns:
    """Return runs as they are, and load what else holds them: a file or a table."""
    if isinstance(source, ScalingRuns):
        return source
    try:
        return load_scaling_runs(source)
    except InputError as error:
        if not re.search(r"\b(columns|metrics|unit|where)=|allow_large", str(error)):
            raise
        remedy = "Read the runs with load_scaling_runs, which has these arguments, and pass what it returns."
        raise InputError(error.message, remedy=remedy) from error


def load_scaling_runs(
    source: Any,
    *,
    columns: ColumnMap | None = None,
    metrics: Sequence[str] | None = None,
    where: Mapping[str, Any] | None = None,
    unit: str | None = None,
    tracker: str | None = None,
    name: str | None = None,
    allow_large: bool = False,
) -> ScalingRuns:
    """Read losses of models of several sizes.

    Two of parameters, tokens and flops are needed, since C = 6 N D. ``notes`` of the result record how each column was
    interpreted; where two readings are possible it is an error that says how to choose.

    Parameters
    ----------
    source : path, DataFrame, dict or list
        A CSV, TSV, JSON, JSON lines or Parquet file, a frame, a dict of columns or a list of records, with a row for
        each run or checkpoint.
    columns : dict, optional
        Which column has a role: ``{"params": "non_embedding", "loss": "c4_loss"}``. Roles are params, tokens, flops,
        loss, run, unique_tokens, step, source, flagged and status; None leaves one out. Others are found by name.
    metrics : list of str, optional
        Further columns of numbers to keep, such as accuracies on tasks; by default all that have no role.
    where : dict, optional
        Only rows with these values: ``{"dataset": "c4"}``, or a list of values.
    unit : {"loss", "perplexity"}, optional
        What the values are. By default a loss, unless the column is called perplexity; values that could be something
        else are an error that asks.
    tracker : {"mlflow", "wandb", "optuna"}, optional
        The tracker that exported the table, whose names are then shortened: ``params.n_params`` is n_params.
    name : str, optional
        Name for legends and sentences; by default that of the file.
    allow_large : bool
        Read a compressed file even if it unpacks to more than 256 MiB of text.

    Returns
    -------
    ScalingRuns
        Diverged runs (NaN or infinite losses) are left out, which ``warnings`` say.

    Raises
    ------
    InputError
        If something cannot be read, could be read in two ways, or tokens and flops do not belong together.

    Examples
    --------
    >>> table = {"Model Size": [1e8, 1e9], "Training FLOP": [1e18, 1e20], "loss": [3.4, 2.6]}
    >>> runs = load_scaling_runs(table)
    >>> runs.tokens.round(-7).tolist()
    [1670000000.0, 16670000000.0]
    >>> runs.notes[0]
    "params from 'Model Size'; flops from 'Training FLOP'; loss from 'loss'"
    """
    with large_files(allow_large):
        table = read_table(source)
    if tracker is not None:
        table, columns = plain_names(table, tracker, columns)
    table = select_rows(table, where)
    roles = find_roles(table.columns, table.source, ROLES, columns, used=list(where or ()))
    if "tokens" not in roles and "flops" not in roles:
        raise InputError(
            f"No column of {table.source} is known as the training tokens or the compute: it has "
            f"{list_names(table.columns)}. Say which with {ask('tokens')} or {ask('flops')}."
        )
    table = keep_ended(table, roles.get("status"))
    column = roles["loss"]
    if direction(column) is True:
        raise InputError(
            f"{ask('loss', column)}: {table.where(column)} is better if it is higher, by its name. A scaling law is "
            "fitted to a loss; predict accuracies with predict_downstream."
        )
    if unit is None and bare(column).endswith(("perplexity", "ppl")):
        unit = "perplexity"
    fields: dict[str, Any] = {"tokens": None, "unit": unit, "name": name or table.label}
    for role in ("params", "tokens", "flops", "loss", "unique_tokens", "step"):
        if role in roles:
            fields[role] = _sizes(table, roles[role]) if role != "loss" else numbers(table, column)
    for role in ("run", "source"):
        if role in roles:
            fields[role] = np.array(
                full_names(table, roles[role], role) if role == "run" else names_in(table, roles[role])
            )
    if "flagged" in roles:
        fields["flagged"] = np.array([_is_true(cell) for cell in table.columns[roles["flagged"]]])
    fields["metrics"] = _metrics(table, roles.rest, metrics)
    fields["notes"] = tuple(map(Message, [roles.note(left_out=False), *table.notes]))
    lost = [role for role in ("params", "tokens", "flops") if role in fields and fields[role] is not None]
    for role in lost:
        if np.isnan(fields[role]).any():
            raise InputError(
                f"{table.where(roles[role])} is empty in {int(np.isnan(fields[role]).sum())} rows: fill them, or "
                "remove the rows."
            )
    fields["warnings"] = tuple(_mixed_settings(table, roles.rest))
    return without_diverged(fields)


def _mixed_settings(table: Table, rest: Sequence[str]) -> list[str]:
    """Return a warning where rows differ in texts that no role reads, such as the data set or a schedule."""
    mixed = {}
    for name in rest:
        cells = table.columns[name]
        values = sorted({str(cell) for cell in cells})
        # Names of runs differ in nearly every row, and remarks are empty in most.
        if 1 < len(values) <= MOST_SETTINGS and not is_measured(cells) and not any(map(is_missing, cells)):
            mixed[name] = values
    if not mixed:
        return []
    name, values = next(iter(mixed.items()))
    return [
        Message(
            f"Rows differ in {list_names(mixed, 5)} and are taken as runs of one law: losses on different data or by "
            f"different recipes do not follow one. Select with {arg('where', {name: values[0]})}."
        )
    ]


def _sizes(table: Table, column: str) -> FloatArray:
    """Read counts such as 190000000, 1.9e8, 190M and 1.3B.

    >>> from curvewise.reading.table import make_table
    >>> _sizes(make_table("a", {"n": ["190M", "1.3B", "2T", "7e9", "1,000,000"]}), "n").tolist()
    [190000000.0, 1300000000.0, 2000000000000.0, 7000000000.0, 1000000.0]
    """
    cells = [_plain_count(cell) for cell in table.columns[column]]
    changed = Table(table.source, {**table.columns, column: cells}, table.rows, table.label)
    return numbers(changed, column, thousands=True)


def _is_true(cell: Any) -> bool:
    return not is_missing(cell) and str(cell).strip().lower() in ("true", "1", "1.0", "yes", "y")


def _metrics(table: Table, rest: Sequence[str], asked: Sequence[str] | None) -> dict[str, FloatArray]:
    """Read further columns of numbers; those that are asked for must be there."""
    if missing := [k for k in asked or () if k not in table.columns]:
        raise InputError(
            f"{arg('metrics', missing)}: {table.source} has no such column. It has {list_names(table.columns)}."
        )
    found = {}
    for name in asked if asked is not None else rest:
        if asked is None and (
            name in ROWS or normal(name) in ("seed", "index") or not is_measured(table.columns[name])
        ):
            continue
        try:
            found[name] = numbers(table, name)
        except InputError:
            if asked is not None:
                raise
    return found
