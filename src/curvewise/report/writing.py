"""Write a report to a file."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from curvewise.errors import InputError
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
        raise InputError(f"path={str(path)!r}: there is no folder {place.parent}. Make it first.")
    text = page_of(report_of(source, title=title, question=question))
    aside = place.with_name(f".{uuid.uuid4().hex}.part")
    try:
        with aside.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        aside.replace(place)
    finally:
        aside.unlink(missing_ok=True)
    return place


def report_of(source: Any, *, title: str | None = None, question: str | None = None) -> Report:
    """What a report of a source says; one that is a report already stays as it is."""
    if isinstance(source, Report):
        return source
    if isinstance(source, Result | Mapping) or (
        isinstance(source, Sequence) and not isinstance(source, str | bytes)
    ):
        return results_report(source, title=title, question=question)
    from curvewise.study import Study

    if not isinstance(source, Study):
        raise InputError(
            f"source={source!r:.60}: give a result, several of them, or a study (cw.load_study)."
        )
    from curvewise.report.study import study_report

    return study_report(source, title=title, question=question)
