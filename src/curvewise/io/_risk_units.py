"""Whether controls that are given as numbers are in the unit of the table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from curvewise.errors import InputError
from curvewise.io._risk_rows import Reading
from curvewise.types import FloatArray
from curvewise.types.risks import names_share


def check_numbers(
    given: Mapping[str, Any], reading: Reading, column: str, values: FloatArray, unit: str | None
) -> None:
    """Raise for a number that is no share where the table holds shares, or may be two things.

    Parameters
    ----------
    given : dict
        What the user gave for blind and maximal.
    reading : Reading
        How values of the table become risks.
    column : str
        Where they are from.
    values : ndarray
        As the table has them.
    unit : str, optional
        The user's word for what they are.
    """
    seen = values[np.isfinite(values)]
    if not seen.size or not _holds_shares(reading, column, unit, seen):
        return
    percent = unit == "percent" or (unit is None and seen.max() > 1)
    for role, value in ((r, v) for r, g in given.items() for _, v in _numbers(g)):
        _check_bounds(role, value, 100.0 if percent else 1.0, column, seen, reading)
        if percent and unit is None and 0 < value <= 1:
            _check_percent(role, value, column, reading, seen)
    if reading.sign < 0:
        _check_order(given, column)
        _check_reach(given["maximal"], column, seen)


def _holds_shares(reading: Reading, column: str, unit: str | None, seen: FloatArray) -> bool:
    """Whether values are accuracies or errors that lie between 0 and 1 or 0 and 100."""
    if unit in ("fraction", "percent") or reading.top:
        return True
    return unit is None and names_share(column) and seen.min() >= 0 and seen.max() <= 100


def _numbers(given: Any) -> Iterator[tuple[str | None, float]]:
    """Plain numbers among what was given, with their tasks."""
    for task, value in given.items() if isinstance(given, Mapping) else ((None, given),):
        if isinstance(value, int | float | np.number) and not isinstance(value, bool):
            yield (None if task is None else str(task)), float(value)


def _check_bounds(
    role: str, value: float, top: float, column: str, seen: FloatArray, reading: Reading
) -> None:
    if not np.isfinite(value) or 0 <= value <= top:
        return
    kind = "fraction" if top == 1 else "percentage"
    way = f"pass {role}={value / 100:g}" if 1 < value <= 100 else f"pass {role}= as one"
    free = "" if reading.sign < 0 else ", or unit='loss' if these are losses without bounds"
    raise InputError(
        f"{role}={value:g} is no {kind}, as {column!r:.200} holds ({seen.min():.4g} to "
        f"{seen.max():.4g}): {way}{free}."
    )


def _check_percent(
    role: str, value: float, column: str, reading: Reading, seen: FloatArray
) -> None:
    """A number up to 1 among percentages may be a fraction, if that would make sense as well."""
    risks, other = reading.risks(seen), reading.risk(100 * value)
    sensible = other >= np.median(risks) if role == "blind" else other <= risks.min()
    if sensible:
        raise InputError(
            f"{role}={value:g} among percentages ({column!r:.200} holds {seen.min():.4g} to "
            f"{seen.max():.4g}) may mean {value:g}% or {100 * value:g}%: pass "
            f"{role}={100 * value:g}, or unit='percent' if {value:g}% is meant."
        )


def _check_order(given: Mapping[str, Any], column: str) -> None:
    """Among accuracies the blind guess is the lower of the two."""
    blind, maximal = (dict(_numbers(given[role])) for role in ("blind", "maximal"))
    for task, low in blind.items():
        high = maximal.get(task, maximal.get(None))
        if high is not None and low >= high:
            raise InputError(
                f"blind={low:g} is not below maximal={high:g}: {column!r:.200} is read as "
                "higher-is-better, and so are its controls. Check which is which; numbers are as "
                "the table has them, such as accuracies among accuracies."
            )


def _check_reach(maximal: Any, column: str, seen: FloatArray) -> None:
    """Maximal supervision that every run beats would turn all signs round."""
    for _, value in _numbers(maximal):
        if value < seen.min():
            raise InputError(
                f"maximal={value:g} is beaten by every run ({column!r:.200} holds {seen.min():.4g} "
                f"to {seen.max():.4g}), which would turn the sign of CCI round: pass what all the "
                "data gives, in the unit of the table, or leave it out."
            )
