"""A report as one HTML file that needs nothing else, and a result as HTML in a notebook."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import uuid
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from itertools import count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from curvewise.errors import CurvewiseError, InputError, MissingDependencyError
from curvewise.report.content import Figure, Report, ReportTable, Section
from curvewise.report.results import results_report, section_of
from curvewise.text import format_number
from curvewise.types.results import Result, plain

if TYPE_CHECKING:
    from markupsafe import Markup


def write_report(
    source: Any, path: str | os.PathLike[str] = "report.html", *, title: str | None = None, question: str | None = None
) -> Path:
    """Write one self-contained HTML page.

    It needs no network and no other file, and can be mailed, archived and printed.

    Parameters
    ----------
    source : Result, sequence or dict of results, Study or Report
        What it is about. The first result is the answer; the keys of a dict are titles. A study is
        looked at through every lens that applies.
    path : path
        Of the page; one that is there is replaced.
    title, question : str, optional
        Name of the report, and what it answers.

    Returns
    -------
    Path
        Of the page.

    Raises
    ------
    InputError
        If the source is nothing that a report can be about, or there is no such folder.
    MissingDependencyError
        Without jinja2.

    Examples
    --------
    >>> import tempfile
    >>> import curvewise as cw
    >>> n, error = [100, 100, 200, 200, 400, 400], [0.31, 0.29, 0.25, 0.24, 0.21, 0.20]
    >>> curve = cw.fit_learning_curve(n, error)
    >>> path = write_report(curve, Path(tempfile.mkdtemp()) / "report.html")
    >>> "How does error fall with data?" in path.read_text(encoding="utf-8")
    True
    """
    place = Path(path)
    if not place.parent.is_dir():
        raise InputError(
            f"there is no folder {place.parent}.", argument="path", value=str(path), remedy="Make it first."
        )
    text = page_of(report_of(source, title=title, question=question))
    # Written aside and renamed, so that a page that is open is never half a page.
    aside = place.with_name(f".{uuid.uuid4().hex}.part")
    try:
        with aside.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        aside.replace(place)
    finally:
        aside.unlink(missing_ok=True)
    return place


def report_of(source: Any, *, title: str | None = None, question: str | None = None) -> Report:
    """Make the report of a source; one that is a report already stays as it is."""
    if isinstance(source, Report):
        return source
    if isinstance(source, Result | Mapping) or (isinstance(source, Sequence) and not isinstance(source, str | bytes)):
        return results_report(source, title=title, question=question)
    from curvewise.study.study import Study

    if not isinstance(source, Study):
        raise InputError("give a result, several of them, or a study (cw.load_study).", argument="source", value=source)
    from curvewise.report.study import study_report

    return study_report(source, title=title, question=question)


SCRIPTS = ("base.js", "curves.js", "panel.js", "chart.js", "tables.js", "start.js")
"""Each uses what those before it name."""

MOST_ROWS = 2_000
"""Rows of a table that are written out; of longer ones the first, and how many there are."""

MOST_SVG = 500_000
"""Letters of a picture that a notebook keeps with a result."""


def page_of(report: Report) -> str:
    """The page of a report: HTML with its styles, scripts, pictures and data inside.

    Parameters
    ----------
    report : Report
        What it says.
    """
    from curvewise import __version__
    from curvewise.drawing.style import about, one_document

    environment = _environment()
    # In one function, so that none of the page's names get in the way of others.
    parts = "\n".join(map(read_asset, SCRIPTS))
    script = f'"use strict";\n(() => {{\n{parts}}})();\n'
    charts: dict[str, Markup] = {}
    numbers = count(1)

    def shown(figure: Figure) -> Markup:
        """Turn a figure into HTML, and collect its data if it is alive."""
        number, chart = next(numbers), None
        if figure.chart is not None:
            chart = f"chart-{number}"
            charts[chart] = embedded({**figure.chart, "id": chart, "series": _placed(figure.chart["series"])})
        with about(figure.learner, figure.said):
            svg = _raw(follow_theme(svg_of(figure, f"f{number}-")))
        return _rendered(environment, "figure", chart=chart, title=figure.title, svg=svg)

    environment.globals |= {
        "shown": shown,
        "tabled": lambda table: _tabled(environment, table),
        "warned": lambda texts, is_open: _rendered(environment, "warnings", texts=texts, is_open=is_open),
    }
    # Sections with a key for links, made of a number, and without what the first screen says.
    keyed = [
        {
            **{k: getattr(s, k) for k in s.__dataclass_fields__},
            "key": f"section-{i}",
            "is_answer": s.text == (" ".join(report.answer),),
            "warnings": () if set(s.warnings) == set(report.warnings) else s.warnings,
        }
        for i, s in enumerate(report.sections, start=1)
    ]
    runs: dict[str, Any] | None = None
    if report.runs is not None:
        columns = {k: _packed(list(v)) for k, v in report.runs.columns.items()}
        rows = len(next(iter(report.runs.columns.values()), ()))
        data = embedded({"names": list(columns), "count": rows, "columns": columns})
        runs = {"text": report.runs.text, "failures": report.runs.failure_table(), "data": data}
    body = {
        "report": report,
        "sections": keyed,
        "first": report.figure,
        "runs": runs,
        "charts": charts,
        "css": _raw(read_asset("report.css")),
        "script": _raw(script),
        "script_hash": script_hash(script),
        "version": __version__,
    }
    # One colour and one line style per learner on the whole page; those of charts come first.
    with one_document():
        for figure in [report.figure, *(f for s in report.sections for f in s.figures)]:
            if figure is not None and figure.chart is not None:
                _placed(figure.chart["series"])
        return environment.get_template("report.html").render(body)  # type: ignore[no-any-return]


def _placed(series: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Give each learner of a chart the number that stands for its colour; quantities have a tone instead."""
    from curvewise.drawing.style import place_of

    return [dict(s) if "tone" in s else {**s, "place": place_of(s["name"], i)} for i, s in enumerate(series)]


def _environment() -> Any:
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            'A report needs jinja2, which is not installed: pip install "curvewise[report]".'
        ) from error
    environment = Environment(loader=FunctionLoader(read_asset), autoescape=True, undefined=StrictUndefined)
    environment.filters["said"] = said
    return environment


def svg_of(figure: Figure, prefix: str = "") -> str:
    """A figure as SVG that can stand in a page beside others: its ids begin with a prefix."""
    from curvewise.drawing.picture import svg_text

    svg = svg_text(figure.draw)
    svg = svg[svg.index("<svg") :]
    # Metadata would differ between machines, and a style of one picture would apply to all on the page.
    svg = re.sub(r"<(metadata|style)\b.*?</\1>", "", svg, flags=re.DOTALL)
    # Hundredths of a point are below what a screen or printer shows, and most of the size of a page.
    svg = re.sub(r"<path\b[^>]*>", lambda tag: re.sub(r"(\.\d\d)\d+", r"\1", tag[0]), svg)
    return _prefixed(svg, prefix)


def follow_theme(svg: str) -> str:
    """Let a picture follow light and dark: its colours become those of the page, which names them.

    >>> follow_theme('<path style="stroke: #005098; fill: none"/>')
    '<path style="stroke: var(--series-0, #005098); fill: none"/>'
    """
    from curvewise.drawing.style import GREYS, INK, PALETTE, pale

    names = {shade: f"var(--series-{i}, {shade})" for i, shade in enumerate(PALETTE)}
    names |= {pale(k): f"color-mix(in srgb, {v} 36%, var(--paper, #fff))" for k, v in names.items()}
    names |= {shade: f"var(--ink, {shade})" for shade in (INK, "#000000")} | {"#ffffff": "var(--paper, #ffffff)"}
    names |= {shade: f"var(--faint, {shade})" for shade in GREYS}
    shades = re.compile("|".join(names))

    def named(tag: re.Match[str]) -> str:
        return shades.sub(lambda found: names[found[0]], tag[0])

    return re.sub(r'\bstyle="[^"]*"', named, svg)


def _prefixed(svg: str, prefix: str) -> str:
    named = re.compile(r'(\bid="|url\(#|href="#)')
    return re.sub(r"<[^>]*>", lambda tag: named.sub(rf"\1{prefix}", tag[0]), svg)


def embedded(data: Any) -> Markup:
    r"""Data as JSON that can stand inside a script element, whatever names are in it.

    >>> print(embedded({"name": "</script>"}))
    {"name":"\u003c/script>"}
    """
    # "</script>" in a name would end the element, and U+2028 ends a line in JavaScript but not in JSON.
    text = json.dumps(plain(data), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _raw(text.replace("<", "\\u003c").replace("\u2028", "\\u2028"))


def fragment_of(section: Section, most: int = 60) -> str:
    """A section as HTML for a notebook: sentences, warnings, picture and tables, no scripts."""
    environment = _environment()
    found = [_raw(f"<p>{said(text)}</p>") for text in section.text]
    if section.warnings:
        found.append(_rendered(environment, "warnings", texts=section.warnings, is_open=True))
    found += [_raw(_still(figure)) for figure in section.figures]
    found += [_tabled(environment, table, "plain", most) for table in section.tables]
    return f'<div class="curvewise">{"".join(found)}</div>'


def _still(figure: Figure) -> str:
    """A picture for a notebook, or nothing where it cannot be drawn: the numbers stand without."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fonts: the user asked for numbers
            svg = svg_of(figure)
    except (CurvewiseError, ImportError):
        return ""
    if len(svg) > MOST_SVG:
        return "<p>The picture is large: draw it with <code>.plot()</code>.</p>"
    prefix = f"c{hashlib.sha256(svg.encode()).hexdigest()[:12]}-"  # among the other outputs
    fitted = _prefixed(svg, prefix).replace("<svg ", '<svg style="max-width:100%;height:auto" ', 1)
    frame = "background:#fff;max-width:46em;padding:.5em"
    return f'<div role="img" aria-label="{escape(figure.title)}" style="{frame}">{fitted}</div>'


_TURNING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_LEFTWARD = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+(?: +[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+)*")


def said(text: Any) -> Markup:
    """A sentence as HTML, in which no name that is read to the left turns numbers around.

    >>> print(said("a\u202eb <i> \u05d0: 0.17"))
    ab &lt;i&gt; <bdi>א</bdi>: 0.17
    """
    plainly = str(escape(_TURNING.sub("", str(text))))
    return _raw(_LEFTWARD.sub(lambda found: f"<bdi>{found[0]}</bdi>", plainly))


def _tabled(environment: Any, table: ReportTable, kind: str = "table", most: int = MOST_ROWS) -> Markup:
    columns = shown_columns(table, most)
    total = len(next(iter(table.columns.values()), ()))
    many = min(total, most)
    learners = list(table.columns.get("learner", ()))[:many]
    rows = [
        {"learner": str(learners[i]) if learners else None, "cells": [c.cells[i] for c in columns]} for i in range(many)
    ]
    bracketed = any(cell.interval for column in columns for cell in column.cells)
    brackets = ", with intervals in brackets" if bracketed else ""
    title = table.title if "interval" in table.title else f"{table.title}{brackets}"
    return _rendered(environment, kind, title=title, columns=columns, rows=rows, left=total - many)


def _rendered(environment: Any, template: str, **values: Any) -> Markup:
    return _raw(environment.get_template(f"{template}.html").render(**values))


def _packed(values: list[Any]) -> dict[str, Any]:
    """A column in few letters: words are said once."""
    if all(v is None or is_number(v) for v in values):
        known = [plain(v) for v in values]
        return {"values": [float(f"{v:.6g}") if isinstance(v, float) else v for v in known]}
    words = list(dict.fromkeys("" if v is None else str(v) for v in values))
    places = {word: i for i, word in enumerate(words)}
    return {"values": [places["" if v is None else str(v)] for v in values], "words": words}


def read_asset(name: str) -> str:
    """Return the text of one of the files that pages are made of."""
    return (files("curvewise.report") / "assets" / name).read_text(encoding="utf-8")


def _raw(text: str) -> Markup:
    from markupsafe import Markup

    return Markup(text)


def script_hash(script: str) -> str:
    """Return the hash by which a page's policy lets its own script run, and no other."""
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "eta": "η"}


@dataclass(frozen=True)
class HtmlCell:
    """A cell of a table: its text, the interval behind it, and the value by which it is sorted."""

    text: str
    value: Any = None
    interval: str = ""


@dataclass(frozen=True)
class HtmlColumn:
    """A column as it is shown; numbers stand to the right."""

    name: str
    cells: tuple[HtmlCell, ...]
    is_number: bool


def shown_columns(table: ReportTable, most: int) -> list[HtmlColumn]:
    """The columns of a table, those with the ends of intervals put behind what they are of.

    Examples
    --------
    >>> table = ReportTable("t", "Numbers", {"e_N": [0.2], "e_N_low": [0.1], "e_N_high": [0.35]})
    >>> [(c.name, c.cells[0].text, c.cells[0].interval) for c in shown_columns(table, 9)]
    [('e_N', '0.2', '[0.1, 0.35]')]
    """
    given = {k: list(v)[:most] for k, v in table.columns.items()}
    ends = _ends(given)
    behind = {name for pair in ends.values() for name in pair}
    found = []
    for name, values in given.items():
        if name in behind:
            continue
        cells = [cell_of(v, table.digits) for v in values]
        if name in ends:
            low, high = (given[k] for k in ends[name])
            texts = zip(*([cell_of(v, table.digits).text for v in end] for end in (low, high)), strict=True)
            brackets = ["" if (a, b) == ("–", "–") else f"[{a}, {b}]" for a, b in texts]
            cells = [HtmlCell(c.text, c.value, b) for c, b in zip(cells, brackets, strict=True)]
        found.append(HtmlColumn(heading(name), tuple(cells), any(map(is_number, values))))
    return found


def heading(name: str) -> str:
    """The name of a column for people; indices stay.

    >>> heading("probability_best"), heading("beta_N"), heading("n_at_0_5"), heading("e_N")
    ('probability best', 'β_N', 'n at 0.5', 'e_N')
    """
    greek = re.sub(r"^[a-z]+(?=_N\b|$)", lambda found: GREEK.get(found[0], found[0]), name)
    levels = re.sub(r"(?<=\d)_(?=\d)", ".", greek.replace("_at_", " at "))  # n_at_0_5 is the size that reaches 0.5
    return re.sub(r"(?<=\w\w)_", " ", levels)


def cell_of(value: Any, digits: int = 4) -> HtmlCell:
    """A value for people, and as the browser sorts it."""
    if not is_number(value):
        return HtmlCell("–" if value is None else str(value))
    known = plain(float(value))  # infinities as JavaScript reads them
    text = "–" if known is None else format_number(float(value), digits)
    return HtmlCell(text, "" if known is None else known)


def is_number(value: Any) -> bool:
    """Return True for a number, and not for True and False."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_)


def _ends(columns: Mapping[str, Sequence[Any]]) -> dict[str, tuple[str, str]]:
    """Columns with an interval, and those with its ends: named after them, or right behind."""
    names = list(columns)
    found = {}
    for name, after in pairwise([*names, ""]):
        pairs = [(f"{name}_low", f"{name}_high")]
        pairs += [("low", "high")] if after == "low" else []
        both = next((p for p in pairs if p[0] in columns and p[1] in columns), None)
        if both and all(v is None or is_number(v) for k in (name, *both) for v in columns[k]):
            found[name] = both
    return found


def html_of(result: Result) -> str:
    """A result as HTML for a notebook; what can be played with is in :func:`write_report`."""
    return fragment_of(section_of(result, alive=False))
