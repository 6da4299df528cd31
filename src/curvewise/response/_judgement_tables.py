"""Tables of measures by tasks, the best of each column bold, in Markdown, LaTeX and plain text."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from curvewise.errors import InputError
from curvewise.tables import format_table

# Private-use characters stand for what is not text, so that the writers of tables let them be;
# two of them are as wide as the asterisks of Markdown.
_BOLD, _PLAIN, _STAR = "\ue000\ue000", "\ue001\ue001", "\ue002"
_MARKS = {
    "markdown": {_BOLD: "**", _PLAIN: "**", _STAR: r"\*"},
    "latex": {_BOLD: r"\textbf{", _PLAIN: "}", _STAR: "*"},
    "text": {_BOLD: "", _PLAIN: "*", _STAR: "*"},
}
_MARKDOWN = re.compile(r"([\\`*_<>\[\]])")


class Section(NamedTuple):
    """Some rows of a table under a heading.

    ``values`` are by measure and column, ``counts`` models by column.
    """

    heading: str
    values: Mapping[str, Mapping[str, float]]
    counts: Mapping[str, int]


def write_table(
    sections: Sequence[Section],
    columns: Sequence[str],
    format: str,
    digits: int,
    *,
    overall: bool = False,
) -> str:
    """Write sections below each other; ``overall`` marks the best of all sections with a star."""
    if format not in _MARKS:
        raise InputError(f"format={format!r} is not known: use one of {', '.join(_MARKS)}.")
    most = {c: _best([s.values for s in sections], c) for c in columns} if overall else {}
    labels: list[str] = []
    cells: dict[str, list[str]] = {column: [] for column in columns}
    for section in sections:
        labels += [_name(section.heading, format), *(_name(k, format) for k in section.values)]
        for column in columns:
            best = _best([section.values], column)
            cells[column].append(_count(section.counts.get(column)))
            cells[column] += [
                _cell(row.get(column, math.nan), digits, best, most.get(column))
                for row in section.values.values()
            ]
    text = format_table({"measure": labels, **_named(cells, format)}, format)
    for mark, written in _MARKS[format].items():
        text = text.replace(mark, written)
    return _numbers_to_the_right(text, len(columns), format)


def _best(parts: Sequence[Mapping[str, Mapping[str, float]]], column: str) -> float:
    found = [row.get(column, math.nan) for part in parts for row in part.values()]
    return max((v for v in found if not math.isnan(v)), default=math.nan)


def _cell(value: float, digits: int, best: float, most: float | None) -> str:
    if math.isnan(value):
        return "–"
    text, top = f"{value:.{digits}f}", f"{best:.{digits}f}"
    if text == top:
        text = _BOLD + text + _PLAIN
    return text + _STAR if most is not None and value == most else text


def _count(count: int | None) -> str:
    return "" if count is None else f"n = {count}"


def _named(cells: Mapping[str, list[str]], format: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, column in cells.items():
        title = _name(name, format)
        while title in found or title == "measure":
            title += " "
        found[title] = column
    return found


def _name(text: str, format: str) -> str:
    """A name that cannot do anything to a page or a terminal."""
    plain = "".join(c if c.isprintable() and not "\ue000" <= c <= "\ue0ff" else "�" for c in text)
    return _MARKDOWN.sub(r"\\\1", plain) if format == "markdown" else plain


def _numbers_to_the_right(text: str, columns: int, format: str) -> str:
    lines = text.split("\n")
    if format == "markdown":
        first, *rest = lines[1].strip("|").split("|")
        lines[1] = "|" + "|".join([first, *("-" * (len(r) - 1) + ":" for r in rest)]) + "|"
    elif format == "latex":
        lines[0] = rf"\begin{{tabular}}{{l{'r' * columns}}}"
    return "\n".join(lines)
