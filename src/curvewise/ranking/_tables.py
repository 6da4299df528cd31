"""Tables of measures by metrics: the best of each column bold, the second best underlined."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from curvewise.errors import InputError
from curvewise.tables import format_table

if TYPE_CHECKING:
    from curvewise.ranking.judgement import Judged, Referred

_MARKS = {
    "markdown": (("**", "**"), ("<u>", "</u>")),
    "latex": ((r"\textbf{", "}"), (r"\underline{", "}")),
    "text": (("", "*"), ("", "+")),
}
# Private-use characters stand for markup, as many as it is wide, and the writers of tables let
# them be.
_STANDS = (("\ue000", "\ue001"), ("\ue002", "\ue003"))
_MARKDOWN = re.compile(r"([\\`*_<>\[\]])")
_TITLES = {"pearson": "Pearson", "kendall": "Kendall", "weighted_kendall": "Weighted"}


def write_judgement(rows: Sequence[Judged], values: Sequence[str], format: str, digits: int) -> str:
    """Measures by metrics × 100, and their cost."""
    _check(format)
    columns = {"Measure": [_name(_label(r), format) for r in rows]}
    for value in values:
        columns[_TITLES.get(value, value.capitalize())] = _marked(
            [100 * r.value(value) for r in rows], digits, format
        )
    columns["GFLOPs"] = [_cost(r.gflops) for r in rows]
    return _written(columns, 1, format)


def write_references(rows: Sequence[Referred], format: str, digits: int) -> str:
    """References by group and task."""
    _check(format)
    columns = {
        "Group": [_name(r.group, format) for r in rows],
        "Task": [_name(r.task, format) for r in rows],
        "Reference": [_name(r.reference, format) for r in rows],
        "Accuracy": [_percent(r.accuracy, digits) for r in rows],
        "Best checkpoint": [_percent(r.best, digits) for r in rows],
        "Below": [f"{r.below} of {r.n}" for r in rows],
    }
    return _written(columns, 3, format)


def _check(format: str) -> None:
    if format not in _MARKS:
        raise InputError(f"format={format!r} is not known: use one of {', '.join(_MARKS)}.")


def _label(row: Judged) -> str:
    return f"{row.measure} (baseline)" if row.baseline else row.measure


def _marked(values: Sequence[float], digits: int, format: str) -> list[str]:
    """Numbers as text; those that read like the best are bold, like the next underlined."""
    texts = ["–" if math.isnan(v) else f"{round(v, digits) + 0.0:.{digits}f}" for v in values]
    order = sorted({t for t in texts if t != "–"}, key=float, reverse=True)
    marks = dict(zip(order, _stands(format), strict=False)) if len(order) > 1 else {}
    return [t.join(marks.get(t, ("", ""))) for t in texts]


def _stands(format: str) -> list[tuple[str, str]]:
    both = zip(_STANDS, _MARKS[format], strict=True)
    return [(a * len(x), b * len(y)) for (a, b), (x, y) in both]


def _cost(value: float) -> str:
    if math.isnan(value):
        return "–"
    return f"{value:.2E}" if value >= 1e4 or 0 < value < 0.01 else f"{value:.2f}"


def _percent(value: float, digits: int) -> str:
    return "–" if math.isnan(value) else f"{100 * value:.{digits}f}"


def _name(text: str, format: str) -> str:
    """A name that cannot do anything to a page or a terminal."""
    plain = "".join(c if c.isprintable() and not "\ue000" <= c <= "\ue0ff" else "�" for c in text)
    return _MARKDOWN.sub(r"\\\1", plain) if format == "markdown" else plain


def _written(columns: dict[str, list[str]], names: int, format: str) -> str:
    """The table, with what follows after so many columns of names to the right."""
    lines = format_table(columns, format).split("\n")
    if format == "markdown":
        parts = lines[1].strip("|").split("|")
        lines[1] = "|".join(["", *parts[:names], *(p[1:] + ":" for p in parts[names:]), ""])
    elif format == "latex":
        lines[0] = rf"\begin{{tabular}}{{{'l' * names}{'r' * (len(columns) - names)}}}"
    text = "\n".join(lines)
    for stands, written in zip(_stands(format), _MARKS[format], strict=True):
        for mark, markup in zip(stands, written, strict=True):
            text = text.replace(mark, markup) if mark else text
    return text
