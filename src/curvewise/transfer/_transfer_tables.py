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

_MARKS = {"markdown": ("**", "**"), "latex": (r"\textbf{", "}"), "text": ("", "*")}
# Private-use characters stand for markup, as many as it is wide, and the writers of tables let
# them be.
_STANDS = ("\ue000", "\ue001")
_MARKDOWN = re.compile(r"([\\`*_<>\[\]])")
NOTHING = "–"


def write_improvements(
    rows: Sequence[Improvement],
    tasks: Sequence[str],
    methods: Sequence[str],
    format: str,
    digits: int,
) -> str:
    """Methods by tasks: value [low, high], the best of each task marked."""
    if format not in _MARKS:
        raise InputError(f"format={format!r} is not known: use one of {', '.join(_MARKS)}.")
    held = {(r.task, r.method): r for r in rows}
    columns = {"Method": [_name(m, format) for m in methods]}
    for task in tasks:
        columns[_name(task, format)] = _column(
            [held.get((task, m)) for m in methods], digits, format
        )
    text = format_table(columns, format)
    for stand, mark in zip(_STANDS, _MARKS[format], strict=True):
        text = text.replace(stand * len(mark), mark) if mark else text
    return text


def _column(rows: Sequence[Improvement | None], digits: int, format: str) -> list[str]:
    values = [math.nan if r is None else r.cci.estimate for r in rows]
    texts = [_rounded(v, digits) for v in values]
    known = sorted({t for t in texts if t != NOTHING}, key=float)
    best = known[-1] if len(known) > 1 else None
    found = []
    for row, text in zip(rows, texts, strict=True):
        opening, closing = (s * len(m) for s, m in zip(_STANDS, _MARKS[format], strict=True))
        shown = f"{opening}{text}{closing}" if text == best else text
        if row is not None and not math.isnan(row.cci.low):
            shown += f" [{_rounded(row.cci.low, digits)}, {_rounded(row.cci.high, digits)}]"
        found.append(shown)
    return found


def _rounded(value: float, digits: int) -> str:
    return NOTHING if math.isnan(value) else f"{round(value, digits) + 0.0:.{digits}f}"


def _name(text: str, format: str) -> str:
    """A name that cannot do anything to a page or a terminal."""
    plain = "".join(c if c.isprintable() and not "\ue000" <= c <= "\ue0ff" else "�" for c in text)
    return _MARKDOWN.sub(r"\\\1", plain) if format == "markdown" else plain
