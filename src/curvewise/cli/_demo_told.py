"""What the demo tells: on the page at once, and in a report at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curvewise.cli._console import Page, sentences, warn_each

if TYPE_CHECKING:
    from curvewise.learning import LearningCurves
    from curvewise.report.content import Section
    from curvewise.types import Measurements, Result


@dataclass
class Told:
    """What the demo has told so far: on the page, and in sections for its report.

    Attributes
    ----------
    page : Page
        Where it is shown.
    folder : Path
        Where files are written.
    sections : list of Section
        For the report.
    files : list of str
        What was written.
    """

    page: Page
    folder: Path
    sections: list[Section] = field(default_factory=list)
    files: list[str] = field(default_factory=list)


def curves_section(curves: LearningCurves, measurements: Measurements) -> Section:
    """The section of the learning curves, whose numbers the page has shown as a table."""
    from curvewise.report.looking import drawn, named
    from curvewise.report.results import section_of

    section = drawn(
        section_of(curves, "How does error fall with data?", runs=measurements),
        "curves",
        "Error e_N and data-reliance β_N",
    )
    return replace(
        section,
        text=tuple(sentences(c) for c in curves),
        warnings=tuple(w for c in curves for w in named(c.all_warnings, c.learner)),
    )


def ask(
    told: Told,
    question: str,
    *answers: Result,
    names: Sequence[str] = (),
    first: Sequence[str] = (),
    last: Sequence[str] = (),
    figures: Mapping[str, Callable[[], Any]] | None = None,
) -> None:
    """Put a question, its answers and their pictures on the page and into the report.

    ``names`` says whom each is about, where the answers do not say it themselves; ``first`` and
    ``last`` are what to know before and after them.
    """
    from curvewise.cli._study_report import show_section
    from curvewise.report.content import Figure, Section
    from curvewise.report.looking import named
    from curvewise.report.words import METHODS, lens_of

    text: list[str] = []
    found: list[str] = []
    for answer, name in zip(answers, names or [""] * len(answers), strict=True):
        text.append(f"{name}: {sentences(answer)}" if name else sentences(answer))
        about = name or getattr(answer, "learner", "")
        found += named(answer.all_warnings, about) if about else answer.all_warnings
    section = Section(
        question,
        text=(*first, *text, *last),
        warnings=tuple(found),
        figures=tuple(Figure(k, question, draw) for k, draw in (figures or {}).items()),
        method=METHODS.get(lens_of(answers[0]), ()),
    )
    show_section(told.page, section)
    warn_each(found)
    told.sections.append(section)
