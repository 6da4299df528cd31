"""Content of a report, before it is a page: sections with text, figures and tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, Self

from curvewise.errors import neutral
from curvewise.text import readable_columns

WAYS = {"form": 'form="{0}" in Python, --form {0} on the command line'}
"""Both ways to follow the advice that readers of a page get most often."""


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
    """Columns of equal length with a title.

    Attributes
    ----------
    name, title : str
        Of its file when it is exported; what it shows.
    columns : mapping
        Numbers in full precision, and words.
    unit : str
        Of errors among the columns, see :func:`curvewise.text.readable_columns`.
    written : mapping, optional
        The columns as people read them, where a result writes them itself.
    """

    name: str
    title: str
    columns: Mapping[str, Sequence[Any]]
    unit: str = ""
    written: Mapping[str, Sequence[Any]] | None = None

    def __len__(self) -> int:
        return len(next(iter((self.written or self.columns).values()), ()))

    def readable(self) -> Mapping[str, Sequence[Any]]:
        """Return the columns as people read them: intervals behind estimates, in the digits that they support."""
        return readable_columns(self.columns, self.unit) if self.written is None else self.written


@dataclass(frozen=True, eq=False)
class Section:
    """The part of one question, or of one result.

    Attributes
    ----------
    title : str
        A question. Sections with the same title stand together under it.
    label : str
        What this section answers it for, such as one learner; empty if for all.
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
    label: str = ""

    def __post_init__(self) -> None:
        for name in ("text", "warnings"):  # a page is for those who write Python and those who type commands
            object.__setattr__(self, name, tuple(neutral(text, **WAYS) for text in getattr(self, name)))

    @property
    def heading(self) -> str:
        """The question and what it is asked of."""
        return f"{self.title} {self.label}" if self.label else self.title


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

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def failure_table(self) -> ReportTable | None:
        """Reasons for which runs failed, as a table; None where none did."""
        if not self.failures:
            return None
        columns = {
            "runs": [f.count for f in self.failures],
            "learners": [", ".join(f.learners) for f in self.failures],
            "reason": [f.message for f in self.failures],
            "example": [f.example for f in self.failures],
        }
        return ReportTable("failures", "Why runs failed", columns)


@dataclass(frozen=True)
class Reproduce:
    """Instructions to make a report again.

    Attributes
    ----------
    steps : str
        A sentence on what to do with the command and the file.
    command : str
        Lines for a terminal.
    file : str
        Text of the study file or the script.
    file_name : str
        Its name.
    facts : dict of str to str
        Versions, data, seeds.
    """

    steps: str = ""
    command: str = ""
    file: str = ""
    file_name: str = ""
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
        One for each result or question.
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

    def __post_init__(self) -> None:
        for name in ("answer", "warnings"):
            object.__setattr__(self, name, tuple(neutral(text, **WAYS) for text in getattr(self, name)))

    def without_repeats(self) -> Self:
        """Return the report with no sentence twice: what the answer says is left out of the sections.

        >>> section = Section("Why?", ("A is 1. B is 2. C is 3.", "D."))
        >>> report = Report("T", "Q?", ("A is 1.", "B is 2.", "D."), sections=(section,))
        >>> report.without_repeats().sections[0].text
        ('C is 3.',)
        """
        answer = list(self.answer)
        runs = self.runs
        if runs is not None:
            others = (" ".join(s for s in split_sentences(text) if s not in answer) for text in runs.text)
            runs = replace(runs, text=tuple(filter(None, others)))
        stated = {*answer, " ".join(answer)}
        sections = []
        for section in self.sections:
            kept = []
            for text in section.text:
                parts = split_sentences(text)
                # Only sentences at the beginning: later ones may be about something else than those of the answer,
                # which may open with a verdict of its own.
                begin = answer.index(parts[0]) if parts[0] in answer else len(answer)
                same = list(takewhile(lambda pair: pair[0] == pair[1], zip(parts, answer[begin:], strict=False)))
                rest = " ".join(parts[len(same) :])
                if rest and rest not in stated:
                    kept.append(rest)
                stated |= {text, rest}
            sections.append(replace(section, text=tuple(kept)))
        return replace(self, sections=tuple(sections), runs=runs)


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences.

    >>> split_sentences("A is 1.5 [1, 2]. B is 2.")
    ['A is 1.5 [1, 2].', 'B is 2.']
    >>> split_sentences("digits: A is best. letters: B is.")
    ['digits: A is best.', 'letters: B is.']
    """
    # A result on several tasks begins each sentence with the task's name, which may be in lower case.
    return re.split(r"(?<=[.?!])\s+(?=[^a-z]|[^\s.:]+: )", text.strip())


def group_warnings(warnings: Sequence[str]) -> list[str]:
    """Join warnings that say the same of several learners.

    >>> group_warnings(["a: few runs.", "b: few runs.", "c: lost.", "Old."])
    ['a, b: few runs.', 'c: lost.', 'Old.']
    """
    heads: dict[tuple[str, bool], list[str]] = {}
    for warning in dict.fromkeys(warnings):
        head, colon, rest = warning.partition(": ")
        # A warning without a name is general, also where one with a name says the same.
        heads.setdefault((rest if colon else head, bool(colon)), []).append(head)
    return [f"{', '.join(names)}: {text}" if named else text for (text, named), names in heads.items()]
