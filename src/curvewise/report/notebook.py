"""Results in a notebook: the same sentences, warnings, picture and tables as in a report."""

from __future__ import annotations

from curvewise.report.page import fragment_of
from curvewise.report.results import section_of
from curvewise.types import Result


def html_of(result: Result) -> str:
    """A result as HTML for a notebook; what can be played with is in :func:`write_report`."""
    return fragment_of(section_of(result, alive=False))
