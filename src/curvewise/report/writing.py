"""Write a report to a file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from curvewise.report.content import Report
from curvewise.report.page import page_of
from curvewise.report.results import results_report
from curvewise.types import Result


def write_report(
    source: Any,
    path: str | os.PathLike[str] = "report.html",
    *,
    title: str | None = None,
    question: str | None = None,
) -> Path:
    """Write one self-contained HTML page.

    Parameters
    ----------
    source : Result, sequence or dict of results, or Study
        What it is about. The first result is the answer.
    path : path
        Of the page.
    title, question : str, optional
        Name of the report, and what it answers.

    Returns
    -------
    Path
        Of the page.
    """
    report = report_of(source, title=title, question=question)
    place = Path(path)
    text = page_of(report)
    aside = place.with_name(f".{place.name}.{os.getpid()}.part")
    aside.write_text(text, encoding="utf-8", newline="\n")
    aside.replace(place)
    return place


def report_of(
    source: Any, *, title: str | None = None, question: str | None = None
) -> Report:
    """What a report of a source says."""
    if isinstance(source, Report):
        return source
    if isinstance(source, Result | Mapping | Sequence):
        return results_report(source, title=title, question=question)
    from curvewise.report.study import study_report

    return study_report(source, title=title, question=question)
