"""The tables and figures of a report as files for papers, and its text as Markdown."""

from __future__ import annotations

import csv
import html
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import Any

from curvewise.errors import InputError, list_names
from curvewise.report.content import Figure, Report, ReportTable, Section
from curvewise.report.page import report_of
from curvewise.text import csv_cell, format_table, markdown_text

FORMATS = {"markdown": "md", "latex": "tex"}
FIGURES = ("svg", "pdf", "png")


def export_report(
    source: Any,
    folder: str | os.PathLike[str],
    formats: Sequence[str] = ("markdown", "latex"),
    figures: Sequence[str] = ("svg", "pdf"),
    *,
    index: str = "index.md",
    title: str | None = None,
    question: str | None = None,
) -> Path:
    r"""Write every table and every figure of a report into a folder, and its text as Markdown.

    Parameters
    ----------
    source : Report, Result, sequence or dict of results, or Study
        What it is about, as for :func:`write_report`.
    folder : path
        It is made if it is not there. Files of the same names are replaced.
    formats : sequence of {"markdown", "latex"}
        Of the tables: files that end in .md and .tex.
    figures : sequence of {"svg", "pdf", "png"}
        Of the figures.
    index : str
        Name of the file with the text, the tables and links to the figures. Runs of a study are
        listed in ``runs.csv`` beside it.
    title, question : str, optional
        Name of the report, and what it answers.

    Returns
    -------
    Path
        Of the text.

    Examples
    --------
    >>> import tempfile
    >>> import curvewise as cw
    >>> n, error = [100, 100, 200, 200, 400, 400], [0.31, 0.29, 0.25, 0.24, 0.21, 0.20]
    >>> curve = cw.fit_learning_curve(n, error)
    >>> path = export_report(curve, tempfile.mkdtemp(), formats=["latex"], figures=[])
    >>> path.name, [p.name for p in sorted(path.parent.glob("*.tex"))]
    ('index.md', ['LearningCurve.tex'])
    """
    from curvewise.drawing.picture import save_figure

    _check("formats", formats, tuple(FORMATS))
    _check("figures", figures, FIGURES)
    report = _distinct(report_of(source, title=title, question=question))
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise InputError("is a file: give a folder.", argument="folder", value=str(folder))
    place.mkdir(parents=True, exist_ok=True)
    for name in exported_files(report, formats, figures, index):
        # Writing through a link would change a file outside the folder.
        if (place / name).is_symlink():  # replaced, and what it leads to stays as it is
            (place / name).unlink()
    for table in _all(report, "tables"):
        for kind in formats:
            note = table.title if kind == "latex" else ""  # the text in Markdown has the title
            text = format_table(_safe_columns(table, kind), kind, None, note=note)
            _write(place / f"{table.name}.{FORMATS[kind]}", text + "\n")
    for figure in _all(report, "figures"):
        for ending in figures:
            save_figure(figure.draw, place / f"{figure.name}.{ending}")
    if report.runs is not None and report.runs.columns:
        with (place / "runs.csv").open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(map(csv_cell, report.runs.columns))
            rows = zip(*report.runs.columns.values(), strict=True)
            writer.writerows(map(csv_cell, row) for row in rows)
    _write(place / index, markdown_of(report, figures))
    return place / index


def exported_files(
    report: Report, formats: Sequence[str], figures: Sequence[str], index: str = "index.md"
) -> list[str]:
    """Names of the files that :func:`export_report` writes, the text first."""
    named = _distinct(report)
    return [
        index,
        *(f"{f.name}.{ending}" for f in _all(named, "figures") for ending in figures),
        *(f"{t.name}.{FORMATS[kind]}" for t in _all(named, "tables") for kind in formats),
        *(["runs.csv"] if report.runs is not None and report.runs.columns else []),
    ]


def markdown_of(report: Report, figures: Sequence[str] = ()) -> str:
    """The text of a report as Markdown, with its tables, and links to figures beside it."""
    report = report.without_repeats()
    shown = [warning for s in report.sections for warning in s.warnings]
    lines = [f"# {_safe(report.title)}", "", f"**{_safe(report.question)}**", ""]
    lines += _paragraphs(report.answer)
    # Warnings of a section stand there, those of the whole report here.
    lines += _beware([w for w in report.warnings if w not in shown])
    stated: set[str] = set()
    if report.figure is not None and all(report.figure not in s.figures for s in report.sections):
        lines += _linked(report.figure, figures)
    for section in report.sections:
        lines += _section(section, figures, stated)
    if report.runs is not None:
        failures = report.runs.failure_table()
        lines += ["## Runs", "", *_paragraphs(report.runs.text), *_tables([failures] if failures else [])]
    if report.reproduce is not None:
        lines += ["## How to make this report again", "", *_paragraphs([report.reproduce.steps])]
        lines += [f"    {_safe(line)}" for line in report.reproduce.command.splitlines()] + [""]
        lines += [f"- {_safe(k)}: {_safe(v)}" for k, v in report.reproduce.facts.items()]
    return "\n".join(lines).strip() + "\n"


def _section(section: Section, figures: Sequence[str], stated: set[str]) -> list[str]:
    lines = [f"## {_safe(section.heading)}", "", *_paragraphs(section.text)]
    new = [w for w in section.warnings if w not in stated]
    lines += _beware(list(dict.fromkeys(new)))
    for figure in section.figures:
        lines += _linked(figure, figures)
    lines += _tables(section.tables)
    method = [text for text in section.method if text not in stated]
    settings = ", ".join(f"{k} {v}" for k, v in section.settings.items())
    if method:
        lines += _paragraphs([" ".join(["Method:", *method])])
    if settings:
        lines += _paragraphs([f"Settings: {settings}."])
    stated.update(new, method)
    return lines


def _tables(tables: Sequence[ReportTable]) -> list[str]:
    return [
        line
        for table in tables
        for line in (f"{_safe(table.title)}:", "", format_table(_safe_columns(table, "markdown"), "markdown"), "")
    ]


def _paragraphs(texts: Sequence[str]) -> list[str]:
    return [line for text in texts for line in (_safe(text), "")]


def _beware(warnings: Sequence[str]) -> list[str]:
    return [*(f"- Warning: {_safe(w)}" for w in warnings), ""] if warnings else []


def _linked(figure: Figure, endings: Sequence[str]) -> list[str]:
    """A figure in the text: one that a reader of Markdown can show, or else a link."""
    shown = next((e for e in ("svg", "png") if e in endings), None)
    title = _safe(figure.title).replace("[", "(").replace("]", ")")
    if shown is not None:
        return [f"![{title}]({figure.name}.{shown})", ""]
    return [f"[{title}]({figure.name}.{endings[0]})", ""] if endings else []


def _all(report: Report, kind: str) -> list[Any]:
    first = [report.figure] if kind == "figures" and report.figure is not None else []
    every = chain(first, (part for s in report.sections for part in getattr(s, kind)))
    return list({id(part): part for part in every}.values())


def _distinct(report: Report) -> Report:
    """The report with a name of its own for each table and each figure."""
    known: dict[int, Any] = {}
    for kind in ("figures", "tables"):
        taken: set[str] = set()
        in_order = [part for s in report.sections for part in getattr(s, kind)] + _all(report, kind)
        for part in {id(part): part for part in in_order}.values():
            # Compared in lower case, because some file systems do not tell cases apart.
            tried = chain([part.name], (f"{part.name}-{i}" for i in count(2)))
            name = next(n for n in tried if n.lower() not in taken)
            taken.add(name.lower())
            known[id(part)] = replace(part, name=name)

    def named(parts: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(known[id(part)] for part in parts)

    sections = tuple(replace(s, figures=named(s.figures), tables=named(s.tables)) for s in report.sections)
    first = None if report.figure is None else known[id(report.figure)]
    return replace(report, figure=first, sections=sections)


def _safe_columns(table: ReportTable, kind: str) -> Mapping[str, Sequence[Any]]:
    """Columns as people read them, whose texts Markdown does not take for tags."""
    if kind != "markdown":
        return table.readable()
    return {_safe(k): [_safe(v) if type(v) is str else v for v in column] for k, column in table.readable().items()}


def _safe(text: str) -> str:
    return markdown_text(html.escape(str(text), quote=False))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def _check(argument: str, given: Sequence[str], known: Sequence[str]) -> None:
    if isinstance(given, str) or any(one not in known for one in given):
        raise InputError(f"give a list of {list_names(known)}.", argument=argument, value=given)
