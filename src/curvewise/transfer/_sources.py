"""What is measured: risks out of a table, with their controls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.types import Control, FloatArray, TransferRisks, as_floats
from curvewise.types.coercion import same_names
from curvewise.types.risks import ONE_TASK, as_control, measured_control, names_share

ControlLike: TypeAlias = Any  # a number, an Interval, a Control, a name, or these by task
RISKS = ("risk", "loss", "error")


@dataclass(frozen=True, eq=False)
class Given:
    """Risks of the methods, and the controls of each task that has them."""

    risks: TransferRisks
    blind: Mapping[str, Control]
    maximal: Mapping[str, Control]


def read_source(
    source: Any, scratch: str | None, blind: ControlLike, maximal: ControlLike
) -> Given:
    """Risks and controls out of a table or :class:`TransferRisks`, and what was passed beside."""
    columns, unit = _columns_of(source)
    own = source if isinstance(source, TransferRisks) else None
    start = scratch or (own.scratch if own else "scratch")
    tasks = tuple(dict.fromkeys(columns["task"].tolist()))
    held: dict[str, dict[str, Control]] = {}
    used: set[str] = set()
    for role, given in (("blind", blind), ("maximal", maximal)):
        held[role] = dict(getattr(own, role)) if own else {}
        for task, value in _by_task(given, role, tasks).items():
            if isinstance(value, str):
                held[role][task] = _named(value, role, task, columns, start)
                used.add(value)
            elif value is not None:
                held[role][task] = as_control(value, role)
    keep = ~np.isin(columns["method"], sorted(used))
    risks = _as_risks({k: v[keep] for k, v in columns.items()}, own, start, unit)
    found = Given(risks, held["blind"], held["maximal"])
    for task in risks.task_names:
        _check_controls(found, task)
    return found


def _check_controls(given: Given, task: str) -> None:
    """Raise where a control is in another unit than the risks."""
    own = given.risks.of(task=task)
    seen = own.risk[~np.isnan(own.risk)]
    if not len(seen) or not _are_shares(given.risks.unit):
        return
    for role, controls in (("blind", given.blind), ("maximal", given.maximal)):
        if task in controls:
            _check_share(role, controls[task], task, seen)


def _are_shares(unit: str) -> bool:
    """Whether risks are shares of examples by what they are called, in percent or not."""
    return names_share(unit) or unit.startswith(("1 − ", "100 − "))


def _check_share(role: str, control: Control, task: str, seen: FloatArray) -> None:
    """Raise for a percentage among fractions, or a fraction among percentages."""
    risk, low, high = control.risk, float(seen.min()), float(seen.max())
    text = f"{role}={risk:.6g} of task {task!r} looks like a "
    among = f"risks from {low:.4g} to {high:.4g}"
    if low >= 0 and high <= 1 < risk <= 100:
        raise InputError(
            f"{text}percentage beside fractions ({among}): pass {risk / 100:.6g}, or call the "
            "column loss if it has no bounds."
        )
    if role == "blind" and 0 < risk <= 1 < high <= 100 and risk < low <= 100 * risk:
        raise InputError(f"{text}fraction beside percentages ({among}): pass {100 * risk:.6g}.")


def _columns_of(source: Any) -> tuple[dict[str, NDArray[Any]], str]:
    """Columns task, method, n, risk and, where they are, seed and fold; and what a risk is."""
    if isinstance(source, TransferRisks):
        return {k: np.asarray(v) for k, v in source.columns().items()}, source.unit
    if isinstance(source, str | PathLike):
        raise InputError(f"source={str(source)!r} is a name: pass load_risks({str(source)!r}).")
    names = _names(source)
    risk = [name for name in RISKS if name in names]
    missing = [name for name in ("method", "n") if name not in names] + ["risk"] * (not risk)
    if missing:
        raise InputError(
            f"source has no column {' and no '.join(map(repr, missing))}; it has {names!r}. Rename "
            "them to method, n and risk, or say which is which: load_risks(table, method=…, n=…, "
            "risk=…)."
        )
    if len(risk) > 1:
        raise InputError(f"source has the columns {risk!r}, all of them risks: keep one.")
    found = {"method": _named_rows(source["method"], "method"), "n": as_floats(source["n"], "n")}
    found["risk"] = as_floats(source[risk[0]], risk[0])
    rows = len(found["risk"])
    found["task"] = (
        _named_rows(source["task"], "task") if "task" in names else np.full(rows, ONE_TASK)
    )
    found |= {name: _texts(source[name]) for name in ("seed", "fold") if name in names}
    for name, column in found.items():
        if column.shape != (rows,):
            raise InputError(f"source has {rows} risks and {column.shape} entries of {name!r}.")
    return found, risk[0]


def _names(source: Any) -> list[str]:
    listed = source if isinstance(source, Mapping) else getattr(source, "columns", None)
    if listed is None or callable(listed):
        raise InputError(
            f"source is a {type(source).__name__}: pass TransferRisks, or a table with the columns "
            "method, n and risk, and task, seed or fold where there are several."
        )
    return [str(name) for name in listed]


def _texts(values: Any) -> NDArray[np.str_]:
    return np.asarray(values).astype(np.str_)


def _named_rows(values: Any, name: str) -> NDArray[np.str_]:
    """Names as text; none may be missing."""
    array = np.asarray(values)
    if array.dtype.kind in "Of":
        missing = sum(1 for v in array.ravel().tolist() if v is None or v != v or str(v) == "<NA>")
        if missing:
            raise InputError(f"source has {missing} row(s) without a {name}: name or drop them.")
    return np.array(same_names(array.astype(np.str_).tolist(), f"source: column {name!r}"))


def _as_risks(
    columns: Mapping[str, NDArray[Any]], own: TransferRisks | None, scratch: str, unit: str
) -> TransferRisks:
    if not len(columns["risk"]):
        raise InputError("source holds no runs beside those of the controls.")
    made: dict[str, Any] = {
        "tasks": columns["task"],
        "methods": columns["method"],
        "n": columns["n"],
        "risk": columns["risk"],
        "seeds": columns.get("seed"),
        "folds": columns.get("fold"),
        "scratch": scratch,
        "unit": unit,
    }
    return TransferRisks(**made) if own is None else replace(own, **made)


def _by_task(given: ControlLike, role: str, tasks: Sequence[str]) -> dict[str, Any]:
    """What was passed for each task."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        return dict.fromkeys(tasks, given)
    named = {str(task): value for task, value in given.items()}
    strangers = [t for t in named if t not in tasks]
    if strangers:
        raise InputError(f"{role} is given for {strangers[0]!r}, which is none of {list(tasks)!r}.")
    return named


def _named(
    name: str, role: str, task: str, columns: Mapping[str, NDArray[Any]], scratch: str
) -> Control:
    """What the rows of a method say: those without a size, else those at its largest."""
    if name == scratch:
        raise InputError(
            f"{role}={name!r} is the method that starts from nothing, which is measured against it:"
            " pass its risk at the size that you mean as a number or a Control."
        )
    rows = (columns["method"] == name) & (columns["task"] == task)
    found = measured_control(columns["n"][rows], columns["risk"][rows])
    if found is None:
        there = sorted(set(columns["method"][columns["task"] == task].tolist()))
        raise InputError(f"{role}={name!r} has no risk on task {task!r}; there are {there!r}.")
    return found
