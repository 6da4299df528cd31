"""A report as one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from curvewise.errors import MissingDependencyError
from curvewise.report.content import Figure, Report, Runs, Section, Table
from curvewise.tables import number
from curvewise.types import plain

if TYPE_CHECKING:
    from markupsafe import Markup

SCRIPTS = ("base.js", "curves.js", "panel.js", "chart.js", "tables.js", "start.js")
"""Each uses what those before it name."""

MOST_ROWS = 2_000
"""Rows of a table that are written out; of longer ones the first, and how many there are."""


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
    return Environment(loader=pages, autoescape=True, undefined=StrictUndefined)


_PARTS = {
    "figure": """<figure>
{% if chart %}<div data-chart="{{ chart }}">{% endif %}
<div class="still" tabindex="0" role="img" aria-label="{{ title }}">{{ svg }}</div>
{% if chart %}</div>{% endif %}
<figcaption>{{ title }}</figcaption>
</figure>""",
    "table": """<div class="scroll" tabindex="0" role="region" aria-label="{{ title }}">
<table class="sortable"><caption>{{ title }}</caption>
<thead><tr>{% for name in names %}<th scope="col"{% if name in right %} class="number"{% endif %}>\
<button type="button">{{ name }}</button></th>{% endfor %}</tr></thead>
<tbody>
{% for row in rows %}\
<tr{% if row.learner is not none %} data-learner="{{ row.learner }}"{% endif %}>\
{% for cell in row.cells %}<td{% if cell.value is not none %} class="number" \
data-value="{{ cell.value }}"{% endif %}><bdi>{{ cell.text }}</bdi></td>{% endfor %}</tr>
{% endfor %}</tbody></table></div>
{% if left %}<p>{{ left }} further rows are not shown here; the export has all.</p>{% endif %}""",
    "plain": """<table><caption>{{ title }}</caption>
<thead><tr>{% for name in names %}<th scope="col">{{ name }}</th>{% endfor %}</tr></thead>
<tbody>
{% for row in rows %}<tr>{% for cell in row.cells %}<td><bdi>{{ cell.text }}</bdi></td>\
{% endfor %}</tr>
{% endfor %}</tbody></table>
{% if left %}<p>{{ left }} further rows are not shown.</p>{% endif %}""",
    "warnings": """<details class="warnings"{% if is_open %} open{% endif %}>\
<summary>{{ texts | length }} {{ "warning" if texts | length == 1 else "warnings" }}</summary>\
<ul tabindex="0">\
{% for text in texts %}<li>{{ text }}</li>{% endfor %}</ul></details>""",
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
    """A section as HTML for a notebook: sentences, warnings and tables, no scripts."""
    environment = _environment()
    parts = [str(escape(text)) for text in section.text]
    found = [_raw(f"<p>{text}</p>") for text in parts]
    found += [_warned(environment, section.warnings, True)] if section.warnings else []
    found += [_tabled(environment, table, "plain", most) for table in section.tables]
    return f'<div class="curvewise">{"".join(found)}</div>'


def _tabled(environment: Any, table: Table, kind: str = "table", most: int = MOST_ROWS) -> Markup:
    names = list(table.columns)
    columns = [list(c)[:most] for c in table.columns.values()]
    total = len(next(iter(table.columns.values()), ()))
    right = {k for k, c in zip(names, columns, strict=True) if any(map(_is_number, c))}
    learners = next((c for k, c in zip(names, columns, strict=True) if k == "learner"), None)
    rows = [
        {
            "learner": None if learners is None else str(learners[i]),
            "cells": [_cell(c[i], table.digits) for c in columns],
        }
        for i in range(min(total, most))
    ]
    left = max(0, total - most)
    template = environment.get_template(kind)
    return _raw(template.render(title=table.title, names=names, right=right, rows=rows, left=left))


def _cell(value: Any, digits: int) -> dict[str, Any]:
    if not _is_number(value):
        return {"text": "–" if value is None else str(value), "value": None}
    known = plain(float(value))  # infinities as JavaScript reads them
    text = "–" if known is None else number(float(value), digits)
    return {"text": text, "value": "" if known is None else known}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_)


def _warned(environment: Any, texts: Sequence[str], is_open: bool) -> Markup:
    return _raw(environment.get_template("warnings").render(texts=texts, is_open=is_open))


def _keyed(report: Report) -> list[dict[str, Any]]:
    """Sections with a key for links: made of a number, whatever the title is."""
    return [
        {**{k: getattr(s, k) for k in s.__dataclass_fields__}, "key": f"section-{i}"}
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
    }
    return Table("failures", "Why runs failed", columns)


def _packed(values: list[Any]) -> dict[str, Any]:
    """A column in few letters: words are said once."""
    if all(v is None or _is_number(v) for v in values):
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


def table_columns(columns: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Columns as lists of plain values."""
    return {k: list(np.asarray(v, dtype=object)) for k, v in columns.items()}
