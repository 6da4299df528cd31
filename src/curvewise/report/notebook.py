"""Results in a notebook: the same sentences, warnings and tables as in a report."""

from __future__ import annotations

from curvewise.report.page import fragment_of
from curvewise.report.results import section_of
from curvewise.types import Result


def html_of(result: Result) -> str:
    """A result as HTML for a notebook; pictures are drawn when asked for, by ``plot()``."""
    return fragment_of(section_of(result, pictures=False))
