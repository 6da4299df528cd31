"""A report as one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import warnings
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from curvewise.errors import CurvewiseError, MissingDependencyError
from curvewise.report.content import Figure, Report, Runs, Section, Table
from curvewise.report.tabled import has_intervals, is_number, shown_columns
from curvewise.types import plain

if TYPE_CHECKING:
    from markupsafe import Markup

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

    environment = _environment()
    script = _script()
    charts: dict[str, Markup] = {}
    pictures = _Pictures(environment, charts)
    environment.globals |= {
        "shown": pictures.shown,
        "tabled": lambda table: _tabled(environment, table),
        "warned": lambda texts, is_open: _warned(environment, texts, is_open),
    }
    keyed = _keyed(report)
    body = {
        "report": report,
        "sections": keyed,
        "first": report.figure,
        "runs": _runs(report.runs),
        "charts": charts,
        "css": _raw(_asset("report.css")),
        "script": _raw(script),
        "script_hash": _hash(script),
        "version": __version__,
    }
    return environment.get_template("report.html").render(body)  # type: ignore[no-any-return]


def _environment() -> Any:
    try:
        from jinja2 import DictLoader, Environment, StrictUndefined
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            'A report needs jinja2, which is not installed: pip install "curvewise[report]".'
        ) from error
    pages = DictLoader({"report.html": _asset("report.html"), **_PARTS})
    environment = Environment(loader=pages, autoescape=True, undefined=StrictUndefined)
    environment.filters["said"] = said
    return environment


_PARTS = {
    "figure": """<figure>
{% if chart %}<div data-chart="{{ chart }}">{% endif %}
<div class="still" tabindex="0" role="img" aria-label="{{ title }}">{{ svg }}</div>
{% if chart %}</div>{% endif %}
<figcaption>{{ title | said }}</figcaption>
</figure>""",
    "table": """<div class="scroll" tabindex="0" role="region" aria-label="{{ title }}">
<table class="sortable"><caption>{{ title }}</caption>
<thead><tr>{% for c in columns %}<th scope="col"{% if c.is_number %} class="number"{% endif %}>\
<button type="button">{{ c.name }}</button></th>{% endfor %}</tr></thead>
<tbody>
{% for row in rows %}\
<tr{% if row.learner is not none %} data-learner="{{ row.learner }}"{% endif %}>\
{% for cell in row.cells %}<td{% if columns[loop.index0].is_number %} class="number"\
{% elif cell.text | length < 25 %} class="short"{% endif %}\
{% if cell.value is not none %} data-value="{{ cell.value }}"{% endif %}><bdi>{{ cell.text }}</bdi>\
{% if cell.interval %} <span class="range">{{ cell.interval }}</span>{% endif %}</td>\
{% endfor %}</tr>
{% endfor %}</tbody></table></div>
{% if left %}<p>{{ left }} further rows are not shown here; the export has all.</p>{% endif %}""",
    "plain": """<table><caption>{{ title }}</caption>
<thead><tr>{% for c in columns %}<th scope="col">{{ c.name }}</th>{% endfor %}</tr></thead>
<tbody>
{% for row in rows %}<tr>{% for cell in row.cells %}<td><bdi>{{ cell.text }}</bdi>\
{% if cell.interval %} {{ cell.interval }}{% endif %}</td>\
{% endfor %}</tr>
{% endfor %}</tbody></table>
{% if left %}<p>{{ left }} further rows are not shown.</p>{% endif %}""",
    "warnings": """<details class="warnings"{% if is_open %} open{% endif %}>\
<summary>{{ texts | length }} {{ "warning" if texts | length == 1 else "warnings" }}</summary>\
<ul tabindex="0">\
{% for text in texts %}<li>{{ text | said }}</li>{% endfor %}</ul></details>""",
}


class _Pictures:
    """Turns figures into HTML, and collects the data of those that are alive."""

    def __init__(self, environment: Any, charts: dict[str, Markup]) -> None:
        self.environment, self.charts, self.count = environment, charts, 0

    def shown(self, figure: Figure) -> Markup:
        self.count += 1
        chart = None
        if figure.chart is not None:
            chart = f"chart-{self.count}"
            self.charts[chart] = embedded({**figure.chart, "id": chart})
        svg = _raw(svg_of(figure, f"f{self.count}-"))
        template = self.environment.get_template("figure")
        return _raw(template.render(chart=chart, title=figure.title, svg=svg))


def svg_of(figure: Figure, prefix: str = "") -> str:
    """A figure as SVG that can stand in a page beside others: its ids begin with a prefix."""
    from curvewise.plot.save import svg_text

    svg = svg_text(figure.draw)
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<(metadata|style)\b.*?</\1>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<path\b[^>]*>", lambda tag: re.sub(r"(\.\d\d)\d+", r"\1", tag[0]), svg)
    return _prefixed(svg, prefix)


def _prefixed(svg: str, prefix: str) -> str:
    named = re.compile(r'(\bid="|url\(#|href="#)')
    return re.sub(r"<[^>]*>", lambda tag: named.sub(rf"\1{prefix}", tag[0]), svg)


def embedded(data: Any) -> Markup:
    r"""Data as JSON that can stand inside a script element, whatever names are in it.

    >>> print(embedded({"name": "</script>"}))
    {"name":"\u003c/script>"}
    """
    text = json.dumps(plain(data), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _raw(text.replace("<", "\\u003c").replace("\u2028", "\\u2028"))


def fragment_of(section: Section, most: int = 60) -> str:
    """A section as HTML for a notebook: sentences, warnings, picture and tables, no scripts."""
    environment = _environment()
    found = [_raw(f"<p>{said(text)}</p>") for text in section.text]
    found += [_warned(environment, section.warnings, True)] if section.warnings else []
    found += [_raw(_still(figure)) for figure in section.figures]
    found += [_tabled(environment, table, "plain", most) for table in section.tables]
    return f'<div class="curvewise">{"".join(found)}</div>'


def _still(figure: Figure) -> str:
    """A picture for a notebook, or nothing where it cannot be drawn: the numbers stand without."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fonts: nobody asked for a picture
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
_LEFTWARD = re.compile(
    "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+(?: +[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+)*"
)


def said(text: Any) -> Markup:
    """A sentence as HTML, in which no name that is read to the left turns numbers around.

    >>> print(said("a\u202eb <i> \u05d0: 0.17"))
    ab &lt;i&gt; <bdi>א</bdi>: 0.17
    """
    plainly = str(escape(_TURNING.sub("", str(text))))
    return _raw(_LEFTWARD.sub(lambda found: f"<bdi>{found[0]}</bdi>", plainly))


def _tabled(environment: Any, table: Table, kind: str = "table", most: int = MOST_ROWS) -> Markup:
    columns = shown_columns(table, most)
    total = len(next(iter(table.columns.values()), ()))
    count = min(total, most)
    learners = list(table.columns.get("learner", ()))[:count]
    rows = [
        {"learner": str(learners[i]) if learners else None, "cells": [c.cells[i] for c in columns]}
        for i in range(count)
    ]
    template = environment.get_template(kind)
    brackets = ", with intervals in brackets" if has_intervals(columns) else ""
    title = table.title if "interval" in table.title else f"{table.title}{brackets}"
    return _raw(template.render(title=title, columns=columns, rows=rows, left=total - count))


def _warned(environment: Any, texts: Sequence[str], is_open: bool) -> Markup:
    return _raw(environment.get_template("warnings").render(texts=texts, is_open=is_open))


def _keyed(report: Report) -> list[dict[str, Any]]:
    """Sections with a key for links, made of a number, and without what the first screen says."""
    return [
        {
            **{k: getattr(s, k) for k in s.__dataclass_fields__},
            "key": f"section-{i}",
            "is_answer": s.text == (" ".join(report.answer),),
            "warnings": () if set(s.warnings) == set(report.warnings) else s.warnings,
        }
        for i, s in enumerate(report.sections, start=1)
    ]


def _runs(runs: Runs | None) -> dict[str, Any] | None:
    if runs is None:
        return None
    names = list(runs.columns)
    count = len(next(iter(runs.columns.values()), ()))
    columns = {k: _packed(list(v)) for k, v in runs.columns.items()}
    data = embedded({"names": names, "count": count, "columns": columns})
    return {"text": runs.text, "failures": _failures(runs), "data": data}


def _failures(runs: Runs) -> Table | None:
    if not runs.failures:
        return None
    columns = {
        "runs": [f.count for f in runs.failures],
        "learners": [", ".join(f.learners) for f in runs.failures],
        "reason": [f.message for f in runs.failures],
        "one of them": [f.example for f in runs.failures],
    }
    return Table("failures", "Why runs failed", columns)


def _packed(values: list[Any]) -> dict[str, Any]:
    """A column in few letters: words are said once."""
    if all(v is None or is_number(v) for v in values):
        return {"values": [None if v is None else _short(v) for v in values]}
    words = list(dict.fromkeys("" if v is None else str(v) for v in values))
    places = {word: i for i, word in enumerate(words)}
    return {"values": [places["" if v is None else str(v)] for v in values], "words": words}


def _short(value: Any) -> Any:
    found = plain(value)
    return float(f"{found:.6g}") if isinstance(found, float) else found


def _script() -> str:
    """What a page does, in one function, so that none of its names get in the way of others."""
    parts = "\n".join(map(_asset, SCRIPTS))
    return f'"use strict";\n(() => {{\n{parts}}})();\n'


def _asset(name: str) -> str:
    return (files("curvewise.report") / "assets" / name).read_text(encoding="utf-8")


def _raw(text: str) -> Markup:
    from markupsafe import Markup

    return Markup(text)


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
