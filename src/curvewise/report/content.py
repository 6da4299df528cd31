"""Content of a report, before it is a page: sections with text, figures and tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, eq=False)
class Figure:
    """A picture.

    Attributes
    ----------
    name : str
        Of its file when it is exported.
    title : str
        What it shows, for those who cannot see it too.
    draw : callable
        Draws it with matplotlib and returns the Axes.
    chart : dict, optional
        The same for the browser, where it can be played with; see :mod:`curvewise.report.charts`.
    learner : str, optional
        The one learner that it is about, whose colour it has.
    said : str
        Sentences that stand beside it, which its caption need not repeat.
    """

    name: str
    title: str
    draw: Callable[[], Any]
    chart: Mapping[str, Any] | None = None
    learner: str | None = None
    said: str = ""


@dataclass(frozen=True, eq=False)
class ReportTable:
    """Columns of equal length with a title."""

    name: str
    title: str
    columns: Mapping[str, Sequence[Any]]
    digits: int = 4


@dataclass(frozen=True, eq=False)
class Section:
    """The part of one lens, or one result.

    Attributes
    ----------
    title : str
        A question.
    text, warnings : tuple of str
        Its answer in sentences, and what to beware of.
    figures, tables : tuple
        Pictures and tables.
    method : tuple of str
        How it was computed, in words.
    settings : dict of str to str
        With which settings.
    """

    title: str
    text: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[ReportTable, ...] = ()
    method: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Runs:
    """The runs behind a report.

    Attributes
    ----------
    text : tuple of str
        Counts, time, environments.
    columns : dict of str to sequence
        A row for each run.
    failures : tuple
        Reasons for which runs failed, with ``count``, ``learners``, ``message`` and the id of one,
        ``example``.
    """

    text: tuple[str, ...]
    columns: Mapping[str, Sequence[Any]]
    failures: tuple[Any, ...] = ()

    def failure_table(self) -> ReportTable | None:
        """Reasons for which runs failed, as a table; None where none did."""
        if not self.failures:
            return None
        columns = {
            "runs": [f.count for f in self.failures],
            "learners": [", ".join(f.learners) for f in self.failures],
            "reason": [f.message for f in self.failures],
            "one of them": [f.example for f in self.failures],
        }
        return ReportTable("failures", "Why runs failed", columns)


@dataclass(frozen=True)
class Reproduce:
    """Command, study file and facts with which the same runs can be made again."""

    command: str = ""
    file: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Report:
    """A report.

    Attributes
    ----------
    title, question : str
        Its name, and what it answers.
    answer : tuple of str
        Two or three sentences with numbers and their intervals.
    figure : Figure, optional
        The one picture that shows it.
    warnings : tuple of str
        All of them, each once.
    sections : tuple of Section
        One for each result or lens.
    runs : Runs, optional
        Of a study.
    reproduce : Reproduce, optional
        How to make it again.
    """

    title: str
    question: str
    answer: tuple[str, ...]
    figure: Figure | None = None
    warnings: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    runs: Runs | None = None
    reproduce: Reproduce | None = None
