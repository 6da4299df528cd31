"""Trials of a hyperparameter search: their scores, in order, with what was searched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from curvewise.errors import InputError, Message, arg, brief, list_names
from curvewise.reading.roles import (
    SETTINGS,
    STATUS,
    Role,
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
from curvewise.reading.table import Table, numbers, parse, read_table
from curvewise.reading.trackers import TRACKERS, metric_names, plain_names
from curvewise.text import format_count
from curvewise.types.results import FloatArray, as_floats

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
                f"{format_count(lost, 'trial')} of {len(scores) + lost} ended without a score and are left out: the "
                "budget counts finished trials only. Give a failed trial the score of a useless model to count it."
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
        given = source if higher_is_better is None else replace(source, higher_is_better=higher_is_better)
        return given if name is None else replace(given, name=name)
    if _is_plain(source):
        for option, value in (("metric", metric), ("where", where), ("tracker", tracker)):
            if value is not None:
                raise InputError(f"{arg(option, value)} is for tables; these are plain numbers.")
        series = getattr(source, "name", None)
        named = series if isinstance(series, str) else ""
        higher = (
            _direction(named, higher_is_better, None) if named and direction(named) is not None else higher_is_better
        )
        return Trials(source, True if higher is None else higher, name or named or "scores", named)
    notes: list[str] = []
    goal: bool | None = None
    if hasattr(source, "trials_dataframe") and hasattr(source, "directions"):
        if len(source.directions) != 1 and metric is None:
            raise InputError(f"{arg('metric')} is needed: the study has {len(source.directions)} objectives.")
        goal = source.directions[0].name == "MAXIMIZE" if len(source.directions) == 1 else None
        sampler = type(source.sampler).__name__
        if sampler not in _INDEPENDENT:
            notes.append(_adaptive(f"The study samples with {sampler}, which learns from earlier trials"))
        name, tracker, source = name or source.study_name, tracker or "optuna", source.trials_dataframe()
    return _of_table(read_table(source, single=True), metric, higher_is_better, goal, where, tracker, name, notes)


def _adaptive(reason: str) -> str:
    return (
        f"{reason}: its trials are not independent, and the expected best of k of them is not what a search of k "
        "trials finds. Use trials of a random search, or repeat the whole search."
    )


def _is_plain(source: Any) -> bool:
    """Return whether something holds numbers and no columns."""
    if isinstance(source, list | tuple):
        return not any(isinstance(v, Mapping) for v in source)
    return isinstance(source, np.ndarray) or (getattr(source, "ndim", None) == 1 and not hasattr(source, "columns"))


def _of_table(
    exported: Table,
    metric: str | None,
    higher_is_better: bool | None,
    goal: bool | None,
    where: Mapping[str, Any] | None,
    tracker: str | None,
    name: str | None,
    notes: list[str],
) -> Trials:
    tracker = tracker or _recognised(exported)
    table, outcomes, searched = exported, set[str](), list[str]()
    if tracker is not None:
        # An index is how a frame numbers trials; a parameter has the same short name as in the export.
        table, told = plain_names(exported, tracker, {"value": metric} if metric else None)
        metric = str(told["value"]) if told else None
        outcomes = set(metric_names(exported, tracker))
        prefix = _PREFIX[tracker]
        searched = [k for k in table.columns if k.startswith(prefix) or f"{prefix}{k}" in exported.columns]
        if tracker == "wandb" and not searched:
            searched = [k for k in table.columns if normal(k) in SETTINGS]
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
    if not searched:
        searched = [k for k in table.columns if normal(k) in SETTINGS]
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
            raise InputError(
                f"contradicts the study, which {'maximizes' if goal else 'minimizes'} its objective.",
                argument="higher_is_better",
                value=higher_is_better,
                remedy="Leave it out.",
            )
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
