"""What is common to all lenses on a study: what was found so far, and how it is said."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from curvewise.errors import CurvewiseError, CurvewiseWarning
from curvewise.report.content import Section
from curvewise.report.results import section_of

if TYPE_CHECKING:
    from curvewise.study.standings import Planned
    from curvewise.study.study import Study
    from curvewise.types import Measurements, Result


@dataclass
class Looking:
    """A study while it is looked at.

    Attributes
    ----------
    study : Study
        Whose runs.
    planned : list of Planned
        Every run that it asks for, with what is stored of it.
    form : str
        Of the learning curves.
    runs : Measurements, optional
        What the runs measured; None while there are none.
    sections : list of Section
        What was said so far.
    found : dict
        The results behind it.
    left_out : list of str
        Sentences on learners that the answer cannot be about.
    """

    study: Study
    planned: list[Planned]
    form: str
    runs: Measurements | None = None
    sections: list[Section] = field(default_factory=list)
    found: dict[str, Any] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    @property
    def word(self) -> str:
        """What the values are: errors of classes, or losses of numbers."""
        return "loss" if self.runs is not None and self.runs.unit.name == "loss" else "error"

    def figure(self, name: str) -> Any:
        """A picture that was made, by its name."""
        every = (f for s in self.sections for f in s.figures)
        return next((f for f in every if f.name == name), None)


@contextmanager
def quietly() -> Iterator[None]:
    """Keep warnings back that are on the result, from where they are shown."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        yield


def drawn(section: Section, name: str, table: str = "Numbers") -> Section:
    """A section whose pictures and tables have a short name, for files, and tables a title."""
    return replace(
        section,
        figures=tuple(replace(f, name=name) for f in section.figures),
        tables=tuple(replace(t, name=name, title=table) for t in section.tables),
    )


def part_of(result: Result, label: str, kind: str) -> Section:
    """The section of one of several results of a kind, whose warnings have its name."""
    table = f"{label}: estimates with their intervals"
    section = drawn(section_of(result, label), f"{kind}-{file_name(label)}", table)
    return replace(section, warnings=tuple(named(result.all_warnings, label)))


def joined(title: str, parts: Sequence[Section]) -> Section:
    """Sections of several trainings as one."""
    return Section(
        title,
        text=tuple(f"{p.title}: {text}" for p in parts for text in p.text),
        warnings=tuple(w for p in parts for w in p.warnings),
        figures=tuple(f for p in parts for f in p.figures),
        tables=tuple(t for p in parts for t in p.tables),
        method=parts[0].method if parts else (),
        settings=parts[0].settings if parts else {},
    )


def attempted(act: Callable[[], Section], what: str) -> tuple[Section | None, list[str]]:
    """Do what not every form of curve allows, or say that it is left out."""
    try:
        with quietly():
            return act(), []
    except CurvewiseError as error:
        return None, [f"There is no {what}: {error}"]


def named(messages: Sequence[str], name: str) -> list[str]:
    """Warnings with the name of what they are of.

    >>> named(["few runs.", "net: few sizes."], "net")
    ['net: few runs.', 'net: few sizes.']
    """
    head = f"{name}: "
    return [w if w.startswith(head) else f"{head}{w}" for w in messages]


def file_name(label: str) -> str:
    """Part of the name of a file.

    >>> file_name("net, rate=0.1/2")
    'net-rate-0.1-2'
    """
    return re.sub(r"[^A-Za-z0-9_.]+", "-", label).strip("-")[:80]
