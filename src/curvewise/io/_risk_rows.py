"""Rows of a table of risks: sizes, failed runs, accuracies turned into errors, repeated rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.io._columns import FINISHED, is_score, normal, status_word
from curvewise.io._numbers import first_row, names_in, numbers, texts
from curvewise.io._risk_columns import RiskRoles, higher_is_better
from curvewise.io._table import Table, brief, listed
from curvewise.types import UNITS, FloatArray

FAILED = frozenset(("failed", "fail", "failure", "error", "crashed", "killed", "aborted", "pruned"))
"""How a run ended that has no result; one that goes on is left out instead."""
NO_NUMBER = frozenset(("oom", "out of memory", "diverged", "timeout", "timed out"))
"""What else is written in place of a number that did not come about."""


def names_of(table: Table, column: str | None, role: str, otherwise: str) -> NDArray[np.str_]:
    """Names in a column, of which none may be empty."""
    if column is None:
        return np.full(len(table), otherwise)
    words = names_in(table, column)
    if "" in words:
        raise InputError(
            f"Row {table.rows[words.index('')]} of {table.source} names no {role} in "
            f"{brief(column)}: fill the cell or remove the row."
        )
    return np.array(words, dtype=np.str_)


def finished(table: Table, roles: RiskRoles) -> tuple[Table, NDArray[np.bool_], list[str]]:
    """Leave out runs that are not at their end; which of the others failed, and what to say."""
    column = roles.one["status"]
    if column is None:
        return table, np.zeros(len(table), dtype=np.bool_), []
    words = np.array([status_word(cell) for cell in table.columns[column]])
    ended = np.isin(words, sorted(FINISHED | FAILED))
    if not ended.any():
        raise InputError(f"None of the {len(table)} rows of {table.source} is finished.")
    notes = []
    if not ended.all():
        others = listed(dict.fromkeys(words[~ended].tolist()))
        notes.append(f"{int((~ended).sum())} rows left out by {column!r:.200}: {others}")
    table = table.take(np.flatnonzero(ended))
    return table, np.isin(words[ended], sorted(FAILED)), notes


def check_sizes(table: Table, column: str, n: FloatArray, is_control: NDArray[np.bool_]) -> None:
    """Only rows of controls may have no size."""
    bad = ~(np.isfinite(n) & (n > 0)) & ~is_control
    if bad.any():
        cell = table.columns[column][int(np.flatnonzero(bad)[0])]
        raise InputError(
            f"{table.where(column)} reads {brief(cell)} ({first_row(table.rows, bad)}): a training "
            "size is a positive number. Only controls may have none: name theirs with blind=… or "
            "maximal=…."
        )


@dataclass(frozen=True)
class Reading:
    """How values of a table become risks.

    Attributes
    ----------
    name : str
        What a risk is called on an axis.
    note : str
        How they were read, in words.
    top, sign : float
        A risk is ``top + sign * value``.
    """

    name: str
    note: str
    top: float = 0.0
    sign: float = 1.0

    def risk(self, value: float) -> float:
        """A risk out of one value."""
        return self.top + self.sign * value

    def risks(self, values: FloatArray) -> FloatArray:
        """Risks out of values."""
        return self.top + self.sign * values


def reading_of(
    column: str, values: FloatArray, unit: str | None, higher: bool | None, source: str
) -> Reading:
    """Decide whether values are losses, errors, accuracies or scores, and in which unit."""
    _check(unit, higher)
    up = _is_up(column, unit, higher)
    words = normal(column).replace("_", " ")
    seen = values[np.isfinite(values)]
    if unit in ("fraction", "percent"):
        _check_bounds(seen, unit, column, source)
    if not up:
        known = higher is False or higher_is_better(column) is not None
        note = "lower is better" if known else "lower is taken as better"
        mark = {"percent": " (%)", "loss": "" if "loss" in words else " (loss)"}
        return Reading(words + mark.get(unit or "", ""), note)
    if unit == "loss":
        raise InputError(
            f"unit='loss' contradicts higher_is_better=True for {column!r:.200}: leave one out."
        )
    if unit == "score" or (unit is None and seen.size and not 0 <= seen.min() <= seen.max() <= 100):
        return Reading(f"−{words}", "a score, turned into its negative", 0.0, -1.0)
    percent = unit == "percent" or (unit is None and seen.size and seen.max() > 1)
    top = 100.0 if percent else 1.0
    name = " ".join("error" if k in ("accuracy", "acc") else k for k in words.split())
    if name == words:
        name = f"{top:g} − {words}"
    how = (
        f"turned into {top:g} − {column}, as accuracies in {'percent' if percent else 'fractions'}"
    )
    return Reading(name + (" (%)" if percent and "error" in name else ""), how, top, -1.0)


def check_direction(column: str, unit: str | None, higher: bool | None) -> None:
    """A column that was chosen by hand must say whether lower is better, or the user must."""
    if higher is None and unit not in ("loss", "score") and higher_is_better(column) is None:
        raise InputError(
            f"risk={column!r:.200} does not say whether lower is better: pass "
            "higher_is_better=False for losses or errors, higher_is_better=True for accuracies or "
            "scores."
        )


def _is_up(column: str, unit: str | None, higher: bool | None) -> bool:
    """Whether higher is better: the user's word, which must not contradict a plain name."""
    said = higher_is_better(column)
    if higher is None and unit != "score":
        return bool(said)
    up = bool(higher or unit == "score")
    if said is not None and said != up and not is_score(column):
        setting = "unit='score'" if unit == "score" else f"higher_is_better={higher}"
        better = "higher" if said else "lower"
        raise InputError(
            f"{setting} contradicts the name {column!r:.200}, for which {better} is better: leave "
            "the setting out, or give the column its right name."
        )
    return up


def _check(unit: str | None, higher: bool | None) -> None:
    if unit is not None and unit not in UNITS:
        raise InputError(f"unit={unit!r}: use one of {', '.join(map(repr, UNITS))}.")
    if higher not in (None, True, False):
        raise InputError(f"higher_is_better={higher!r} must be True, False or None.")
    if unit == "score" and higher is False:
        raise InputError("unit='score' contradicts higher_is_better=False: use unit='loss'.")


def _check_bounds(seen: FloatArray, unit: str, column: str, source: str) -> None:
    top = 1.0 if unit == "fraction" else 100.0
    bad = seen[(seen < 0) | (seen > top)]
    if bad.size:
        right = "'percent', or 'loss' or 'score'" if unit == "fraction" else "'loss' or 'score'"
        raise InputError(
            f"Column {column!r:.200} of {source} holds {bad[0]:g}, which is no {unit}: pass "
            f"unit={right} for a number without bounds."
        )


def risks_of(table: Table, column: str, failed: NDArray[np.bool_]) -> tuple[FloatArray, list[str]]:
    """Risks as they stand, NaN where the run failed or is not finite, and what to say."""
    spread = any("±" in cell for cell in table.columns[column] if isinstance(cell, str))
    remedy = "Of a mean ± a spread give the mean, or better a row for each run." if spread else ""
    said = [_says_failed(cell) for cell in table.columns[column]]
    if any(said):
        cells = [None if bad else c for bad, c in zip(said, table.columns[column], strict=True)]
        table = replace(table, columns={**table.columns, column: cells})
    values = numbers(table, column, remedy=remedy)
    notes = []
    for bad, why in (
        (failed, "failed by their status"),
        (np.isnan(values) & ~failed, "without a value"),
        (np.isinf(values) & ~failed, "infinite"),
    ):
        if bad.any():
            notes.append(
                f"{int(bad.sum())} of {len(values)} runs taken as failed, {why} "
                f"({first_row(table.rows, bad)})"
            )
    return np.where(failed | ~np.isfinite(values), np.nan, values), notes


def _says_failed(cell: object) -> bool:
    """Whether a cell says that there is no number since the run failed.

    >>> _says_failed("FAILED"), _says_failed("OOM"), _says_failed("0.5"), _says_failed(0.5)
    (True, True, False, False)
    """
    return isinstance(cell, str) and cell.strip().lower() in FAILED | NO_NUMBER


def check_repeats(table: Table, roles: RiskRoles, keys: list[tuple[str, ...]]) -> list[str]:
    """Two rows of one run are an error; without seeds, rows of one size are runs, and noted."""
    seen: dict[tuple[str, ...], int] = {}
    named = roles.one["seed"] is not None or roles.one["fold"] is not None
    repeated = False
    for row, key in enumerate(keys):
        if named and not any(key[3:]):
            continue  # a control, mostly, that has no seed
        if key not in seen:
            seen[key] = row
            continue
        repeated = True
        if named:
            raise _twice(table, roles, seen[key], row)
    if repeated:
        return ["no seeds: rows of one task, method and size are taken as runs"]
    return []


def _twice(table: Table, roles: RiskRoles, first: int, second: int) -> InputError:
    columns = {
        role: name for role in ("task", "method", "n", "seed", "fold") if (name := roles.one[role])
    }
    where = ", ".join(f"{k} {brief(table.columns[k][second])}" for k in columns.values())
    differ = [
        k
        for k in roles.left_out
        if texts(table.columns[k])[first] != texts(table.columns[k])[second]
    ]
    way = "remove one"
    if differ:
        value = texts(table.columns[differ[0]])[first]
        way = f"choose with where={{{differ[0]!r:.200}: {value!r:.200}}}, as they differ in "
        way += listed(differ)
    role = "seed" if roles.one["seed"] else "fold"
    return InputError(
        f"Rows {table.rows[first]} and {table.rows[second]} of {table.source} are the same run "
        f"({where}): {way}, or pass {role}=False if {roles.one[role]!r:.200} does not tell runs "
        "apart."
    )
