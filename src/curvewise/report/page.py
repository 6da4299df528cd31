"""A report as one HTML file that needs nothing else, and a result as HTML in a notebook."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
import re
import uuid
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from curvewise.errors import CurvewiseError, InputError, MissingDependencyError
from curvewise.report.content import Figure, Report, ReportTable, Section, group_warnings
from curvewise.report.results import evals_report, results_report, section_of
from curvewise.text import Cell, format_count, format_number
from curvewise.types.results import Result, plain

if TYPE_CHECKING:
    from markupsafe import Markup


def write_report(
    source: Any,
    path: str | os.PathLike[str] = "report.html",
    *,
    title: str | None = None,
    question: str | None = None,
    code: str | None = None,
) -> Path:
    """Write one self-contained HTML page.

    It needs no network and no other file, and can be mailed, archived and printed.

    Parameters
    ----------
    source : Result, sequence or dict of results, Evals, Study or Report
        What it is about. The first result is the answer; the keys of a dict are titles. A study, and evaluations of
        models, are analysed for every question that they can answer.
    path : path
        Of the page; an existing file is replaced.
    title, question : str, optional
        Name of the report, and what it answers.
    code : str, optional
        Text of the script that made the results, shown under "How to make this report again"; for
        example ``Path(__file__).read_text()``. The report of a study shows its study file instead.

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
    if place.is_dir():
        raise InputError("is a folder.", argument="path", value=str(path), remedy="Add the name of the page.")
    if not place.parent.is_dir():
        raise InputError(
            f"there is no folder {place.parent}.", argument="path", value=str(path), remedy="Make it first."
        )
    text = page_of(report_of(source, title=title, question=question, code=code))
    # Written aside and renamed, so that a page that is open is never half a page.
    aside = place.with_name(f".{uuid.uuid4().hex}.part")
    try:
        with aside.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        aside.replace(place)
    finally:
        aside.unlink(missing_ok=True)
    return place


def report_of(source: Any, *, title: str | None = None, question: str | None = None, code: str | None = None) -> Report:
    """Make the report of a source; one that is a report already stays as it is."""
    if isinstance(source, Report):
        return source
    if isinstance(source, Result | Mapping) or (isinstance(source, Sequence) and not isinstance(source, str | bytes)):
        return results_report(source, title=title, question=question, code=code)
    from curvewise.evals.evals import Evals
    from curvewise.study.study import Study

    if isinstance(source, Evals):
        return evals_report(source, title=title, question=question, code=code)
    if not isinstance(source, Study):
        raise InputError(
            "give a result, several of them, evaluations (cw.load_evals) or a study (cw.load_study).",
            argument="source",
            value=source,
        )
    from curvewise.report.study import study_report

    return study_report(source, title=title, question=question)


SCRIPTS = ("base.js", "curves.js", "panel.js", "chart.js", "tables.js", "start.js")
"""Each uses what those before it name."""

MOST_ROWS = 2_000
"""Rows of a table that are written out; of longer ones the first, and how many there are."""

MOST_SVG = 500_000
"""Letters of a picture that a notebook keeps with a result."""


NARROW = 6
"""Columns of a table that may share a row with another one, or stand beside a picture."""

BESIDE = 46
"""Letters across that there is room for beside a picture on a screen 1,280 pixels wide."""


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
    has_text = [bool(s.text) for s in report.sections]
    report = report.without_repeats()
    script = script_of(SCRIPTS)
    charts: dict[str, Markup] = {}
    numbers = count(1)

    # Tables of the same title are distinguished by where they stand, for those who do not see it.
    titles = Counter(t.title for s in report.sections for t in s.tables)
    places = {id(t): s.heading for s in report.sections for t in s.tables if titles[t.title] > 1}
    headings = [report.question, *(text for s in report.sections for text in (s.title, s.label) if text)]

    def shown(figure: Figure) -> Markup:
        """Turn a figure into HTML, and collect its data if it is alive."""
        number, chart = next(numbers), None
        if figure.chart is not None:
            chart = f"chart-{number}"
            charts[chart] = embedded({**figure.chart, "id": chart, "series": _placed(figure.chart["series"])})
        note: list[str] = []  # as text below the picture, which is read at any width
        with about(figure.learner, figure.said):
            svg = _raw(follow_theme(svg_of(figure, f"f{number}-", note)))
        width = re.search(r'viewBox="0 0 ([\d.]+)', svg)
        points = round(float(width[1])) if width else 0
        # What a heading says is no caption again.
        heading = max((h for h in headings if figure.title.startswith(h)), key=len, default="")
        caption = figure.title.removeprefix(heading).strip()
        parts = {"title": figure.title, "caption": caption, "svg": svg, "points": points, "note": prose(note)}
        return _rendered(environment, "figure", chart=chart, **parts)

    environment.globals |= {
        "shown": shown,
        "tabled": lambda table: _tabled(environment, table, where=places.get(id(table), "")),
        "warned": lambda texts, is_open: _rendered(environment, "warnings", texts=texts, is_open=is_open),
    }
    runs: dict[str, Any] | None = None
    if report.runs is not None:
        # Errors are percentages, as on the rest of the page.
        columns = {
            "error (%)" if name == "error" else name: _packed(values, 100 if name == "error" else 1)
            for name, values in report.runs.columns.items()
        }
        data = embedded({"names": list(columns), "count": len(report.runs), "columns": columns})
        every = f"All {format_count(len(report.runs), 'run')}"
        runs = {"text": report.runs.text, "failures": report.runs.failure_table(), "data": data, "list": every}
    settings = {s.heading: ", ".join(f"{k} {v}" for k, v in s.settings.items()) for s in report.sections if s.settings}
    body = {
        "report": report,
        "warnings": group_warnings(report.warnings),
        "groups": _groups(report, has_text),
        "methods": list(dict.fromkeys(text for s in report.sections for text in s.method)),
        "settings": settings,
        "runs": runs,
        "charts": charts,
        "css": _raw(read_asset("report.css")),
        "script": _raw(script),
        "script_hash": script_hash(script),
        "version": __version__,
        "made": f"Made with curvewise {__version__} on {datetime.now(UTC):%Y-%m-%d}.",
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


def _groups(report: Report, has_text: Sequence[bool]) -> list[dict[str, Any]]:
    """Sections that ask the same, together; and where in them each part stands.

    ``has_text`` tells of each section whether it had text before that of the answer was left out.
    """
    groups: dict[str, dict[str, Any]] = {}
    for number, section in enumerate(report.sections, start=1):
        figures = [f for f in section.figures if f is not report.figure]
        if not (section.text or figures or section.tables):
            continue  # the answer says all of it
        is_at_top = len(figures) < len(section.figures)
        # The first screen has asked it already.
        title = "The numbers behind the answer" if is_at_top and section.title == report.question else section.title
        group = groups.setdefault(title, {"key": f"section-{len(groups) + 1}", "title": title, "blocks": []})
        narrow = [t for t in section.tables if len(t.readable()) <= NARROW]
        # Beside the text stands its picture; narrow tables stand there too, or below a text without a picture. Several
        # pictures stand in pairs below.
        beside = [t for t in narrow if figures and _letters_across(t) <= BESIDE]
        instead = [] if figures else narrow
        group["blocks"].append(
            {
                "key": f"part-{number}",
                "label": section.label,
                "text": section.text,
                "warnings": format_count(len(group_warnings(section.warnings)), "warning") if section.warnings else "",
                "figures": figures,
                "beside": beside,
                "instead": instead,
                "below": [t for t in section.tables if t not in (*beside, *instead)],
                "is_at_top": is_at_top,
                "is_answered": has_text[number - 1] and not section.text and not is_at_top,
                "is_sided": bool(section.text or beside) and len(figures) == 1,
            }
        )
    for group in groups.values():
        group["labels"] = [(b["key"], b["label"]) for b in group["blocks"] if b["label"]]
    return list(groups.values())


def _letters_across(table: ReportTable) -> float:
    """Return about how many letters wide a table is; words are wrapped, numbers are not."""
    across = 0.0
    for column in shown_columns(table, 60):
        cells = [len(f"{cell.text} {cell.interval}".strip()) for cell in column.cells]
        heads = [len(word) for word in column.name.split()]
        across += 1.5 + max([*heads, *(cells if column.is_number else [min(n, 16) for n in cells])], default=0)
    return across


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


def svg_of(figure: Figure, prefix: str = "", note: list[str] | None = None) -> str:
    """A figure as SVG that can stand in a page beside others: its ids begin with a prefix.

    The lines of its caption are moved into ``note`` if that is given.
    """
    from curvewise.drawing.picture import svg_text

    svg = svg_text(figure.draw, note)
    svg = svg[svg.index("<svg") :]
    # Metadata would differ between machines, and a style of one picture would apply to all on the page.
    svg = re.sub(r"<(metadata|style)\b.*?</\1>", "", svg, flags=re.DOTALL)
    # Hundredths of a point are below what a screen or printer shows, and most of the size of a page.
    svg = re.sub(r"<path\b[^>]*>", lambda tag: re.sub(r"(\.\d\d)\d+", r"\1", tag[0]), svg)
    return _prefixed(svg, prefix)


def prose(lines: Sequence[str]) -> str:
    """Join the lines of a caption into sentences.

    >>> prose(["Shaded: 95% interval", "", "12 runs."])
    'Shaded: 95% interval. 12 runs.'
    """
    return " ".join(line if line.endswith((".", "?", "!", "…")) else f"{line}." for line in lines if line)


def follow_theme(svg: str) -> str:
    """Let a picture follow light and dark: its colours become those of the page, which names them.

    >>> follow_theme('<path style="stroke: #005098; fill: none"/>')
    '<path style="stroke: var(--series-0, #005098); fill: none"/>'
    """
    from curvewise.drawing.style import GREYS, INK, PALETTE, pale, word_shade

    series = {shade: f"var(--series-{i}, {shade})" for i, shade in enumerate(PALETTE)}
    names = series | {pale(k): f"color-mix(in srgb, {v} 36%, var(--paper, #fff))" for k, v in series.items()}
    names |= {word_shade(k): f"color-mix(in srgb, {v} 70%, var(--ink, {INK}))" for k, v in series.items()}
    names |= {shade: f"var(--ink, {shade})" for shade in (INK, "#000000")} | {"#ffffff": "var(--paper, #ffffff)"}
    names |= {shade: f"var(--faint, {shade})" for shade in GREYS}
    shades = re.compile("|".join(names))

    def named(tag: re.Match[str]) -> str:
        return shades.sub(lambda found: names[found[0]], tag[0])

    return re.sub(r'\bstyle="[^"]*"', named, svg)


def _prefixed(svg: str, prefix: str) -> str:
    """Begin the ids of a picture with a prefix, and number those that several of its parts share.

    >>> _prefixed('<g id="a"/><g id="a"/><use href="#a"/>', "p-")
    '<g id="p-a"/><g id="p-a--2"/><use href="#p-a"/>'
    """
    named = re.compile(r'(\bid="|url\(#|href="#)([^")]*)')
    seen: Counter[str] = Counter()

    def renamed(found: re.Match[str]) -> str:
        start, name = found.groups()
        again = ""
        if start == 'id="':
            seen[name] += 1
            again = f"--{seen[name]}" if seen[name] > 1 else ""
        return f"{start}{prefix}{name}{again}"

    return re.sub(r"<[^>]*>", lambda tag: named.sub(renamed, tag[0]), svg)


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


_COMMAND = re.compile(r"`(run|curvewise [\w .-]+)`")


def said(text: Any) -> Markup:
    """A sentence as HTML, in which no name that is read to the left turns numbers around.

    >>> print(said("a\u202eb <i> \u05d0: 0.17"))
    ab &lt;i&gt; <bdi>א</bdi>: 0.17
    """
    plainly = _COMMAND.sub(r"<code>\1</code>", str(escape(_TURNING.sub("", str(text)))))
    return _raw(_LEFTWARD.sub(lambda found: f"<bdi>{found[0]}</bdi>", plainly))


def _tabled(
    environment: Any, table: ReportTable, kind: str = "table", most: int = MOST_ROWS, where: str = ""
) -> Markup:
    columns = shown_columns(table, most)
    if len(columns) > NARROW:  # a wide table has no room for what is known of no row
        columns = [c for c in columns if any(x.text != "–" for x in c.cells)] or columns
    shown = min(len(table), most)
    title = table.title
    if shown > 1 and len(columns) > NARROW:  # what all rows of a wide table share is said once
        same = {c.name: c.cells[0].text for c in columns[1:] if len({(x.text, x.interval) for x in c.cells}) == 1}
        columns = [c for c in columns if c.name not in same]
        title += f". In all rows: {', '.join(f'{k} {v}' for k, v in same.items())}" if same else ""
    learners = list(table.columns.get("learner", ()))[:shown]
    rows = [
        {"learner": str(learners[i]) if learners else None, "cells": [c.cells[i] for c in columns]}
        for i in range(shown)
    ]
    label = f"{table.title}: {where}" if where else table.title
    left = len(table) - shown
    return _rendered(environment, kind, title=title, label=label, columns=columns, rows=rows, left=left)


@dataclass(frozen=True)
class HtmlCell:
    """A cell of a table: its text, the interval behind it, and the value by which it is sorted."""

    text: str
    value: Any = None
    interval: str = ""
    is_best: bool = False


@dataclass(frozen=True)
class HtmlColumn:
    """A column as it is shown; numbers stand to the right."""

    name: str
    cells: tuple[HtmlCell, ...]
    is_number: bool


def shown_columns(table: ReportTable, most: int) -> list[HtmlColumn]:
    """Return the columns of a table as they are shown.

    Examples
    --------
    >>> table = ReportTable("t", "Errors", {"error": [0.2], "low": [0.1], "high": [0.35]}, "fraction")
    >>> [(c.name, c.cells[0].text, c.cells[0].interval) for c in shown_columns(table, 9)]
    [('error', '20%', '[10, 35]')]
    """
    found = []
    for name, values in table.readable().items():
        cells = tuple(map(_shown_cell, list(values)[:most]))
        words = re.sub(r"(?<=\d) (?=\d)", ".", name)  # "n at 0 5" is the size that reaches 0.5
        found.append(HtmlColumn(words, cells, any(cell.value is not None for cell in cells)))
    return found


_NUMBER = re.compile(r"((?:[<>] ?)?[-−]?(?:\d[\d,]*(?:\.\d*)?(?:e[-+]\d+)?%?|∞)|–)( \[.*\])?")


def _shown_cell(value: Any) -> HtmlCell:
    if value is None:
        return HtmlCell("–")
    if isinstance(value, bool | np.bool_):
        return HtmlCell("yes" if value else "no")
    if _is_number(value):
        return HtmlCell("–", "") if math.isnan(value) else HtmlCell(format_number(float(value), 3), plain(float(value)))
    is_cell = isinstance(value, Cell)
    written = value.text + value.after + value.signs if is_cell else str(value)
    number = _NUMBER.fullmatch(written)
    if number is None:
        return HtmlCell(written)
    # Sorted as it reads: what reads alike stays in its order.
    plainly = re.sub("[,%<> ]", "", number[1]).replace("∞", "inf").replace("−", "-").replace("–", "nan")
    sorted_by = "" if plainly == "nan" else plain(float(plainly))
    return HtmlCell(number[1], sorted_by, (number[2] or "").strip(), is_cell and value.bold)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_)


def _rendered(environment: Any, template: str, **values: Any) -> Markup:
    return _raw(environment.get_template(f"{template}.html").render(**values))


def _packed(values: Sequence[Any], times: int) -> dict[str, Any]:
    """A column in few letters: words are said once."""
    if all(v is None or _is_number(v) for v in values):
        known = [None if v is None else plain(times * v) for v in values]
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


def script_of(names: Sequence[str]) -> str:
    """Join scripts in one function, so that none of their names get in the way of others."""
    inside = "\n".join(map(read_asset, names))
    return f'"use strict";\n(() => {{\n{inside}}})();\n'


def script_hash(script: str) -> str:
    """Return the hash by which a page's policy lets its own script run, and no other."""
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def html_of(result: Result) -> str:
    """A result as HTML for a notebook; what can be played with is in :func:`write_report`."""
    return fragment_of(section_of(result, alive=False))
