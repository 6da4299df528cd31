"""Improvements as a table of methods by tasks."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from curvewise.errors import InputError
from curvewise.tables import format_table

if TYPE_CHECKING:
    from curvewise.transfer.transfer_result import Improvement

# Private-use characters stand for markup, as many as it is wide, and the writers of tables let
# them be.
OPEN, CLOSE, MINUS, NOTHING, DAGGER, DOUBLE = "\ue000\ue001\ue002\ue003\ue004\ue005"
_PLAIN = {MINUS: "-", NOTHING: "–", DAGGER: "†", DOUBLE: "‡"}
_MARKS: dict[str, dict[str, str]] = {
    "markdown": {OPEN: "**", CLOSE: "**", **_PLAIN},
    "latex": {
        OPEN: r"\textbf{",
        CLOSE: "}",
        MINUS: "$-$",
        NOTHING: "--",
        DAGGER: r"$^\dagger$",
        DOUBLE: r"$^\ddagger$",
    },
    "text": {OPEN: "", CLOSE: "*", **_PLAIN},
}
_NOTES = {
    DAGGER: "At half or more of the sizes there is one run, with the spread of other methods.",
    DOUBLE: "The highest of methods on different training sizes, which are not comparable.",
}
_MARKDOWN = re.compile(r"([\\`*_<>\[\]])")


def write_improvements(
    rows: Sequence[Improvement],
    tasks: Sequence[str],
    methods: Sequence[str],
    format: str,
    digits: int,
) -> str:
    """Methods by tasks: value [low, high], the best of each task marked, notes below."""
    if format not in _MARKS:
        raise InputError(f"format={format!r} is not known: use one of {', '.join(_MARKS)}.")
    marks = {stand: stand * len(mark) for stand, mark in _MARKS[format].items()}
    held = {(r.task, r.method): r for r in rows}
    told = {r.method for r in rows if not math.isnan(r.cci.estimate)}
    shown = [m for m in methods if m in told] or list(methods)
    columns = {"Method": [_name(m, format) for m in shown]}
    for task in tasks:
        found = [held.get((task, m)) for m in shown]
        columns[_name(task, format)] = _column(found, digits, marks)
    text = format_table(columns, format)
    below = _notes([sign for sign in _NOTES if sign in text], format)
    for stand, mark in _MARKS[format].items():
        text = text.replace(stand * len(mark), mark) if mark else text
    return text + below


def _notes(signs: Sequence[str], format: str) -> str:
    """What the signs in a table say, below it."""
    if not signs:
        return ""
    said = [f"{_MARKS[format][sign]} {_NOTES[sign]}" for sign in signs]
    if format == "latex":
        return "\n" + "\n".join(rf"\par{{\footnotesize {note}\par}}" for note in said)
    return ("\n\n" if format == "markdown" else "\n") + "\n".join(said)


def _differ(rows: Sequence[Improvement | None]) -> bool:
    """Whether the improvements that are known rest on different sizes."""
    known = [r for r in rows if r is not None and not math.isnan(r.cci.estimate)]
    return len({tuple(r.n.tolist()) for r in known}) > 1


def _column(rows: Sequence[Improvement | None], digits: int, marks: dict[str, str]) -> list[str]:
    values = [math.nan if r is None else r.cci.estimate for r in rows]
    rounded = [round(v, digits) + 0.0 for v in values if not math.isnan(v)]
    differ = marks[DOUBLE] if _differ(rows) else ""
    best = max(rounded) if len(set(rounded)) > 1 else None
    found = []
    for row, value in zip(rows, values, strict=True):
        text = _rounded(value, digits, marks)
        if best is not None and round(value, digits) == best:
            text = f"{marks[OPEN]}{text}{marks[CLOSE]}{differ}"
        if row is not None and not math.isnan(row.cci.low):
            low, high = (_rounded(v, digits, marks) for v in (row.cci.low, row.cci.high))
            text += f" [{low}, {high}]" + (marks[DAGGER] if row.borrowed else "")
        found.append(text)
    return found


def _rounded(value: float, digits: int, marks: dict[str, str]) -> str:
    if math.isnan(value):
        return marks[NOTHING]
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", marks[MINUS])


def _name(text: str, format: str) -> str:
    """A name that cannot do anything to a page or a terminal."""
    plain = "".join(c if c.isprintable() and not "\ue000" <= c <= "\ue0ff" else "�" for c in text)
    return _MARKDOWN.sub(r"\\\1", plain) if format == "markdown" else plain
