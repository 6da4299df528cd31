"""Read runs by parameters and tokens with their losses."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from curvewise.errors import InputError, Message, arg, brief, list_names
from curvewise.reading.roles import (
    SETTINGS,
    STATUS,
    ColumnMap,
    Role,
    ask,
    bare,
    check_column,
    check_contradiction,
    check_direction_flag,
    direction,
    find_roles,
    is_value,
    keep_ended,
    normal,
    select_rows,
    status_word,
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
    parse,
    read_table,
)
from curvewise.reading.trackers import TRACKERS, metric_names, plain_names
from curvewise.scaling.runs import ROWS, ScalingRuns
from curvewise.text import format_count
from curvewise.types.results import FloatArray, as_floats

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
_FLAGS = {"true": True, "1": True, "1.0": True, "yes": True, "y": True, "t": True} | dict.fromkeys(
    ("false", "0", "0.0", "no", "n", "f", ""), False
)
_TIMES = {"k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}


def read_amount(cell: Any) -> Any:
    """Read 1.3B as 1.3e9; leave other cells as they are."""
    text = cell.strip().lower() if isinstance(cell, str) else ""
    if text[-1:] in _TIMES:
        with suppress(ValueError):
            return float(text[:-1]) * _TIMES[text[-1]]
    return cell


def _holds_counts(cells: Column) -> bool:
    return is_measured([read_amount(cell) for cell in cells])


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
    # A log perplexity is a loss already.
    said = re.search(r"(?:(?:^|_)(log)_?)?(?:perplexity|ppl)$", bare(column))
    if unit is None and said is not None and not said[1]:
        unit = "perplexity"
    mixed = _mixed_settings(table, roles.rest)
    diverged = ~np.isfinite(numbers(table, column))
    if diverged.all():
        raise InputError("holds no finite number: all runs have diverged or are empty.", argument="loss")
    if diverged.any():
        count = format_count(int(diverged.sum()), "row")
        mixed.append(Message(f"{count} without a finite loss left out (diverged or unfinished)."))
        table = table.take(np.flatnonzero(~diverged))
    fields: dict[str, Any] = {"tokens": None, "loss": numbers(table, column)}
    for role in ("params", "tokens", "flops", "unique_tokens", "step"):
        if role in roles:
            fields[role] = _sizes(table, roles[role])
            empty = int(np.isnan(fields[role]).sum())
            if empty and role in ("params", "tokens", "flops"):
                raise InputError(f"{table.where(roles[role])} is empty in {empty} rows: fill them, or remove the rows.")
    if "run" in roles:
        fields["run"] = np.array(full_names(table, roles["run"], "run"))
    if "source" in roles:
        fields["source"] = np.array(names_in(table, roles["source"]))
    if "flagged" in roles:
        column = roles["flagged"]
        cells = ["" if is_missing(cell) else str(cell).strip().lower() for cell in table.columns[column]]
        if unknown := [cell for cell in cells if cell not in _FLAGS]:
            raise InputError(
                f"{table.where(column)} holds {unknown[0]!r}: flags are true or false. Write them so, or leave the "
                f"column out with {ask('flagged', None)}."
            )
        fields["flagged"] = np.array([_FLAGS[cell] for cell in cells])
    return ScalingRuns(
        **fields,
        metrics=_metrics(table, roles.rest, metrics),
        name=name or table.label,
        unit=unit,
        notes=tuple(map(Message, [roles.note(left_out=False), *table.notes])),
        warnings=tuple(mixed),
    )


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
    cells = [read_amount(cell) for cell in table.columns[column]]
    changed = Table(table.source, {**table.columns, column: cells}, table.rows, table.label)
    return numbers(changed, column, thousands=True)


def _metrics(table: Table, rest: Sequence[str], requested: Sequence[str] | None) -> dict[str, FloatArray]:
    """Read further columns of numbers; those that are requested for must be there."""
    if missing := [k for k in requested or () if k not in table.columns]:
        raise InputError(
            f"{arg('metrics', missing)}: {table.source} has no such column. It has {list_names(table.columns)}."
        )
    if requested is not None:
        return {name: numbers(table, name) for name in requested}
    found = {}
    for name in rest:
        if name not in ROWS and normal(name) not in ("seed", "index") and is_measured(table.columns[name]):
            with suppress(InputError):
                found[name] = numbers(table, name)
    return found


_PREFIX = {"mlflow": "params.", "wandb": "config.", "optuna": "params_"}
"""Names of hyperparameters begin so."""
_INDEPENDENT = ("RandomSampler", "QMCSampler", "GridSampler", "BruteForceSampler")
"""Samplers of Optuna whose trials do not depend on earlier results."""
_ROLES = (Role("trial", (synonyms("trial number trial_id trial_number iteration"),), first=True), STATUS)


@dataclass(frozen=True, eq=False)
class Trials:
    """Scores of the finished trials of one search.

    Attributes
    ----------
    scores : ndarray, shape (n,)
        One for each finished trial, in the order they were tried where it is known.
    higher_is_better : bool
        Direction of the score.
    name : str
        For legends and sentences.
    metric : str
        What was scored; empty where nobody says.
    ordered : bool
        Whether the order is that of the trials.
    lost : int
        Trials that ended without a score.
    settings : dict of str to tuple
        For each hyperparameter that was searched: the smallest and the largest number, or the names that were tried.
    notes, warnings : tuple of str
        How the input was read, and what deserves a look.
    """

    scores: FloatArray
    higher_is_better: bool = True
    name: str = "scores"
    metric: str = ""
    ordered: bool = True
    lost: int = 0
    settings: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        scores = as_floats(self.scores, "scores")
        if scores.ndim != 1:
            raise InputError(f"has shape {scores.shape}: give one score for each trial.", argument="scores")
        missing = np.isnan(scores)
        scores = scores[~missing]
        if np.isinf(scores).any():
            raise InputError(
                "holds infinite values: give a diverged trial the score of a useless model, or NaN to leave it out.",
                argument="scores",
            )
        if len(scores) < 2:
            raise InputError(f"holds {format_count(len(scores), 'score')}: at least 2 are needed.", argument="scores")
        notes = list(self.warnings)
        lost = self.lost + int(missing.sum())
        if lost and not any("without a score" in text for text in notes):
            notes.append(
                f"{format_count(lost, 'trial')} of {len(scores) + lost} ended without a score: the budget counts "
                "finished trials only. Give a failed trial the score of a useless model to count it."
            )
        object.__setattr__(self, "scores", scores)
        object.__setattr__(self, "lost", lost)
        object.__setattr__(self, "warnings", tuple(map(Message, notes)))

    def __len__(self) -> int:
        return len(self.scores)


def load_trials(
    source: Any,
    *,
    metric: str | None = None,
    higher_is_better: bool | None = None,
    where: Mapping[str, Any] | None = None,
    tracker: str | None = None,
    name: str | None = None,
) -> Trials:
    """Read the scores of a search.

    Parameters
    ----------
    source : array_like, path, DataFrame, dict or optuna.Study
        Scores in the order they were tried, or a table with a row for each trial: what ``study.trials_dataframe()``,
        ``mlflow.search_runs()`` and the table of a W&B project give, or any other, also saved to a file.
    metric : str, optional
        Column of the score; by default the only one that is called so.
    higher_is_better : bool, optional
        By default what the name of the metric or the study says; an array holds scores, of which higher is better.
    where : dict, optional
        Only rows with these values: ``{"model": "lstm"}``.
    tracker : {"mlflow", "wandb", "optuna"}, optional
        The tracker that made the table; by default known by its columns.
    name : str, optional
        Name of the learner for sentences.

    Returns
    -------
    Trials
        Failed and pruned trials are left out, which ``warnings`` say.

    Examples
    --------
    >>> trials = load_trials({"number": [0, 1, 2], "value": [0.3, 0.2, None], "params_lr": [0.1, 0.01, 1.0],
    ...                       "state": ["COMPLETE", "COMPLETE", "PRUNED"]}, higher_is_better=False)
    >>> trials.scores.tolist(), trials.lost, trials.settings
    ([0.3, 0.2], 0, {'lr': (0.01, 0.1)})
    """
    check_direction_flag(higher_is_better)
    if isinstance(source, Trials):
        for option, value in (("metric", metric if metric != source.metric else None), ("where", where)):
            if value is not None:
                raise InputError(f"{arg(option, value)} is for tables; these trials have been read already.")
        given = source if higher_is_better is None else replace(source, higher_is_better=higher_is_better)
        return given if name is None else replace(given, name=name)
    if _is_plain(source):
        for option, value in (("metric", metric), ("where", where), ("tracker", tracker)):
            if value is not None:
                raise InputError(f"{arg(option, value)} is for tables; these are plain numbers.")
        series = getattr(source, "name", None)
        named = series if isinstance(series, str) else ""
        if direction(named) is not None:
            higher_is_better = _direction(named, higher_is_better, None)
        return Trials(source, higher_is_better is not False, name or named or "scores", named)
    notes: list[str] = []
    goal: bool | None = None
    if hasattr(source, "trials_dataframe") and hasattr(source, "directions"):
        if len(source.directions) != 1 and metric is None:
            raise InputError(f"{arg('metric')} is needed: the study has {len(source.directions)} objectives.")
        goal = source.directions[0].name == "MAXIMIZE" if len(source.directions) == 1 else None
        sampler = type(source.sampler).__name__
        if sampler not in _INDEPENDENT:
            notes.append(
                f"The study samples with {sampler}, which learns from earlier trials: its trials are not independent, "
                "and the expected best of k of them is not what a search of k trials finds. Use trials of a random "
                "search, or repeat the whole search."
            )
        name, tracker, source = name or source.study_name, tracker or "optuna", source.trials_dataframe()
    exported = read_table(source, single=True)
    tracker = tracker or _recognised(exported)
    table, outcomes, searched = exported, set[str](), list[str]()
    if tracker is not None:
        # An index is how a frame numbers trials; a parameter has the same short name as in the export.
        table, renamed = plain_names(exported, tracker, {"value": metric} if metric else None)
        metric = str(renamed["value"]) if renamed else None
        outcomes = set(metric_names(exported, tracker))
        prefix = _PREFIX[tracker]
        searched = [k for k in table.columns if k.startswith(prefix) or f"{prefix}{k}" in exported.columns]
    searched = searched or [k for k in table.columns if normal(k) in SETTINGS]
    table = select_rows(table, where)
    column = _score_column(table, metric, [k for k in table.columns if k in outcomes and k not in searched])
    roles = find_roles(table.columns, table.source, _ROLES, used=[column])
    ends = Counter(map(status_word, table.columns[roles["status"]] if "status" in roles else ()))
    if ends["pruned"]:
        notes.append(
            f"{format_count(ends['pruned'], 'trial')} pruned by early results and left out: the "
            "expected best is that of the trials that pruning let through, and a budget of trials is none of compute."
        )
    lost = len(table) - ends["pruned"]
    table = keep_ended(table, roles.get("status"))
    lost -= len(table)
    ordered = "trial" in roles
    if ordered:
        table = table.take(np.argsort(numbers(table, roles["trial"]), kind="stable"))
    scores = numbers(table, column)
    done = table.take(np.flatnonzero(~np.isnan(scores)))
    return Trials(
        scores,
        _direction(column, higher_is_better, goal),
        name or table.label,
        column,
        ordered,
        lost,
        {k: _range(done.columns[k]) for k in searched},
        tuple(map(Message, [f"scores from {brief(column)}", *table.notes])),
        tuple(notes),
    )


def _is_plain(source: Any) -> bool:
    """Return whether something holds numbers and no columns."""
    if isinstance(source, list | tuple):
        return not any(isinstance(v, Mapping) for v in source)
    return hasattr(source, "__array__") and not hasattr(source, "columns")


def _recognised(table: Table) -> str | None:
    """Return the tracker whose export has such columns, or None."""
    there = list(table.columns)
    if {"number", "state"} <= set(there) and any(k.startswith(("params_", "value")) for k in there):
        return "optuna"
    if any(k.startswith("metrics.") for k in there):
        return "mlflow"
    if any(k in TRACKERS["wandb"].nested or k.startswith(("config.", "summary.")) for k in there):
        return "wandb"
    return None


def _score_column(table: Table, metric: str | None, outcomes: Sequence[str]) -> str:
    if metric is not None:
        check_column(table.columns, table.source, arg("metric", metric), metric)
        return metric
    there = [k for k in outcomes or table.columns if is_value(k)]
    if not there and len(outcomes) == 1:
        there = list(outcomes)
    if len(there) != 1:
        found = f"{list_names(there)} could all be" if there else "No column is called like"
        raise InputError(
            f"{found} the score of the trials in {table.source}. Choose with "
            f"{arg('metric', there[0] if there else 'COLUMN')}; it has {list_names(table.columns)}."
        )
    return there[0]


def _direction(column: str, higher_is_better: bool | None, goal: bool | None) -> bool:
    by_name = direction(column)
    if higher_is_better is not None:
        if goal is not None and goal != higher_is_better:
            problem = f"contradicts the study, which {'maximizes' if goal else 'minimizes'} its objective."
            raise InputError(problem, argument="higher_is_better", value=higher_is_better, remedy="Leave it out.")
        check_contradiction(column, by_name, higher_is_better, arg("higher_is_better", higher_is_better))
        return higher_is_better
    if goal is not None or by_name is not None:
        return bool(goal if goal is not None else by_name)
    raise InputError(
        f"the name {brief(column)} does not say whether higher is better: pass {arg('higher_is_better', True)} for "
        f"scores or {arg('higher_is_better', False)} for errors and losses.",
        argument="higher_is_better",
    )


def _range(cells: Any) -> tuple[Any, ...]:
    """Return the smallest and the largest number that was tried, or the names."""
    found = [parse(cell) for cell in cells]
    known = [v for v in found if v is not None and not np.isnan(v)]
    if known and all(v is not None for v in found):
        return (min(known), max(known))
    return tuple(sorted({str(cell) for cell in cells if cell is not None}))
