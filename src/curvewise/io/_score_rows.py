"""Rows of a table gathered by group, task and checkpoint."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.io._numbers import names_in, numbers, texts
from curvewise.io._score_columns import ScoreRoles, long_hint
from curvewise.io._table import Table, brief, listed, suggest
from curvewise.types import CheckpointScores, FloatArray

Key: TypeAlias = tuple[str, str, str]
Places: TypeAlias = NDArray[np.intp]


def gather(
    table: Table, roles: ScoreRoles, accuracy: FloatArray, repeats: str | None
) -> CheckpointScores:
    """One entry for each group, task and checkpoint; several rows of one are ``repeats``."""
    keys = _keys(table, roles)
    places = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    where = np.array([places[key] for key in keys])
    words = names_in(table, roles.one["measure"]) if roles.one["measure"] else []
    part = np.unique(words, return_inverse=True)[1] if words else np.zeros(len(keys), dtype=int)
    notes = _check_repeats(table, roles, keys, where, part, repeats)
    count = len(places)
    if roles.is_long:
        score, cost = roles.one["score"], roles.gflops.get("")
        assert score is not None
        wanted = _wanted(table, roles, words)
        picks = {name: np.array(words) == name for name in wanted}
        scores = {k: _mean(numbers(table, score), where, count, rows) for k, rows in picks.items()}
        gflops = (
            {k: _mean(numbers(table, cost), where, count, rows) for k, rows in picks.items()}
            if cost
            else {}
        )
        if repeats is None:
            _check_same(table, roles, accuracy, where)
    else:
        scores = {k: _mean(numbers(table, k), where, count) for k in roles.measures}
        gflops = {k: _mean(numbers(table, c), where, count) for k, c in roles.gflops.items()}
    chosen = _best if repeats == "best" else _mean
    names = list(places)
    return CheckpointScores(
        np.array([name for _, _, name in names]),
        chosen(accuracy, where, count),
        scores,
        tasks=np.array([t for _, t, _ in names]) if roles.one["task"] else None,
        groups=np.array([g for g, _, _ in names]) if roles.one["group"] else None,
        gflops=gflops,
        notes=tuple(notes),
    )


def _wanted(table: Table, roles: ScoreRoles, words: list[str]) -> list[str]:
    """The measures of a long table, or those that were asked for."""
    there = list(dict.fromkeys(words))
    for name in roles.measures:
        if name not in there:
            raise InputError(
                f"measures names {brief(name)}: no row of {table.source} is of that measure."
                f"{suggest(name, there)} It has {listed(there)}."
            )
    return list(roles.measures) or there


def _keys(table: Table, roles: ScoreRoles) -> list[Key]:
    def words(role: str) -> list[str]:
        column = roles.one[role]
        if column is None:
            return [""] * len(table)
        found = names_in(table, column)
        if "" in found:
            raise InputError(
                f"Row {table.rows[found.index('')]} of {table.source} names no {role}: fill the "
                "cell or remove the row."
            )
        return found

    return list(zip(words("group"), words("task"), words("checkpoint"), strict=True))


def _check_repeats(
    table: Table,
    roles: ScoreRoles,
    keys: list[Key],
    where: Places,
    part: Places,
    repeats: str | None,
) -> list[str]:
    """Several rows of one checkpoint, task (and measure) are an error unless they were meant."""
    both = where * (int(part.max()) + 1) + part
    _, first, counts = np.unique(both, return_index=True, return_counts=True)
    if counts.max() == 1:
        return []
    if repeats is not None:
        many = int((counts > 1).sum())
        return [f"the {repeats} accuracy of several rows for {many} checkpoints and tasks"]
    row = int(first[np.argmax(counts > 1)])
    rows = np.flatnonzero(both == both[row])
    differ = [k for k in roles.left_out if len({texts(table.columns[k])[i] for i in rows}) > 1]
    group, task, name = keys[row]
    hint = "Pass repeats='best' (of hyperparameters) or repeats='mean' (of seeds)."
    if differ:
        value = texts(table.columns[differ[0]])[row]
        hint = (
            f"They differ in {listed(differ)}: choose with "
            f"where={{{differ[0]!r:.200}: {value!r:.200}}}, make it the group with "
            f"group={differ[0]!r:.200}, or pass repeats='best' or "
            f"repeats='mean'.{long_hint(table, roles, differ)}"
        )
    raise InputError(
        f"{table.source} holds {brief(name)} {len(rows)} times"
        + (f" for {brief(task)}" if task else "")
        + (f" in {brief(group)}" if group else "")
        + f". {hint}"
    )


def _check_same(
    table: Table,
    roles: ScoreRoles,
    accuracy: FloatArray,
    where: Places,
) -> None:
    """In a long table the accuracy stands beside every score, and is the same there."""
    column = roles.one["accuracy"]
    if column is None:
        return
    low, high = (np.full(where.max() + 1, end) for end in (np.inf, -np.inf))
    np.fmin.at(low, where, accuracy)
    np.fmax.at(high, where, accuracy)
    if (bad := high - low > 1e-9).any():
        row = int(np.flatnonzero(bad[where])[0])
        raise InputError(
            f"{table.where(column)} has different accuracies for one checkpoint and task, such as "
            f"row {table.rows[row]}: pass repeats='best' or repeats='mean', or correct it."
        )


def _mean(
    values: FloatArray,
    where: Places,
    count: int,
    rows: NDArray[np.bool_] | None = None,
) -> FloatArray:
    """Mean of what is known by place, NaN where nothing is."""
    known = ~np.isnan(values) & (True if rows is None else rows)
    total = np.bincount(where[known], values[known], minlength=count)
    many = np.bincount(where[known], minlength=count)
    found: FloatArray = np.where(many > 0, total / np.maximum(many, 1), np.nan)
    return found


def _best(values: FloatArray, where: Places, count: int) -> FloatArray:
    found = np.full(count, np.nan)
    np.fmax.at(found, where, values)
    return found
