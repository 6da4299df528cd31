"""A section for any result, and a report of any results."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from curvewise.errors import InputError
from curvewise.report.charts import learning_chart
from curvewise.report.content import Figure, Report, Section, Table
from curvewise.report.words import METHODS, QUESTIONS, lens_of
from curvewise.types import Measurements, Result, Unit

SETTINGS = (
    *("form", "weights", "weight", "interval", "kind", "level", "unit", "seeds", "paired", "mode"),
    *("perturbation", "layer", "by", "loss", "per", "average", "rule", "method"),
)
"""Fields of results that say how something was computed."""

FEW = 3
"""Sentences of the answer on the first screen."""


def results_report(
    results: Result | Sequence[Result] | Mapping[str, Result],
    *,
    title: str | None = None,
    question: str | None = None,
) -> Report:
    """What a report of results says: the first of them is the answer.

    Parameters
    ----------
    results : Result, or sequence or dict of them
        The keys of a dict are titles of sections.
    title, question : str, optional
        Of the report; by default what the first result's lens asks.
    """
    named = _named(results)
    sections = tuple(section_of(result, name) for name, result in named)
    first = named[0][1]
    lens = lens_of(first)
    return Report(
        title=title or "curvewise report",
        question=question or QUESTIONS.get(lens, sections[0].title),
        answer=first_sentences(first.summary()),
        figure=next((f for s in sections for f in s.figures), None),
        warnings=tuple(dict.fromkeys(w for s in sections for w in s.warnings)),
        sections=sections,
    )


def _named(results: Any) -> list[tuple[str | None, Result]]:
    if isinstance(results, Result):
        found: list[tuple[str | None, Result]] = [(None, results)]
    elif isinstance(results, Mapping):
        found = [(str(k), v) for k, v in results.items()]
    elif isinstance(results, Sequence) and not isinstance(results, str):
        found = [(None, v) for v in results]
    else:
        found = [(None, results)]
    if not found:
        raise InputError("results is empty: give at least one.")
    for _, one in found:
        if not isinstance(one, Result):
            raise InputError(f"results holds {one!r:.60}: give what an analysis returned.")
    return found


def section_of(
    result: Result,
    title: str | None = None,
    runs: Measurements | None = None,
    *,
    alive: bool = True,
) -> Section:
    """The section of one result: sentences, picture (for a browser alive), table and method."""
    lens = lens_of(result)
    name = _file(title or type(result).__name__)
    heading = title or QUESTIONS.get(lens, type(result).__name__)
    return Section(
        title=heading,
        text=(sentences(result),),
        warnings=warnings_of(result),
        figures=_figures(result, name, heading, _chart(result, runs) if alive else None),
        tables=_tables(result, name),
        method=METHODS.get(lens, ()),
        settings=_settings(result),
    )


def sentences(result: Result) -> str:
    """The summary of a result without its warnings."""
    text = result.summary()
    for warning in result.all_warnings:
        text = text.replace(f" Beware: {warning}", "")
    return text


def warnings_of(result: Result) -> tuple[str, ...]:
    """All warnings of a result: of many curves each one's, not the first and how many there are."""
    from curvewise.learning.many import LearningCurves

    if not isinstance(result, LearningCurves):
        return tuple(result.all_warnings)
    each = [f"{c.learner}: {w}" for c in result for w in c.all_warnings]
    lost = [f"{name} could not be fitted: {why}" for name, why in result.failures.items()]
    told = (*each, *(f"{name}: {why}" for name, why in result.failures.items()))
    own = [w for w in result.warnings if not w.endswith(told)]
    return tuple(dict.fromkeys([*own, *each, *lost]))


def _figures(
    result: Result, name: str, title: str, chart: Mapping[str, Any] | None
) -> tuple[Figure, ...]:
    from curvewise.plot.dispatch import picture_of

    if picture_of(type(result)) is None:
        return ()
    return (Figure(name, title, result.plot, chart),)


def _chart(result: Result, runs: Measurements | None) -> Mapping[str, Any] | None:
    from curvewise.learning.base import Curve
    from curvewise.learning.many import LearningCurves

    if isinstance(result, LearningCurves):
        fitted = list(result)
        return learning_chart(fitted, runs) if fitted else None
    return learning_chart([result], runs) if isinstance(result, Curve) else None


def _tables(result: Result, name: str) -> tuple[Table, ...]:
    columns = {k: list(v) for k, v in result.columns().items()}
    return (Table(name, "Numbers", columns),) if any(map(len, columns.values())) else ()


def _settings(result: Result) -> dict[str, str]:
    """Settings among the fields of a result, as words."""
    found = {}
    for f in fields(result):  # type: ignore[arg-type]
        value = getattr(result, f.name)
        if f.name in SETTINGS and value is not None:
            found[f.name] = value.name if isinstance(value, Unit) else str(value)
    return found


def first_sentences(text: str, few: int = FEW) -> tuple[str, ...]:
    """The first sentences of a text, without warnings.

    >>> first_sentences("A is 1.5 [1, 2]. B is 2. C. D. Beware: x.", 2)
    ('A is 1.5 [1, 2].', 'B is 2.')
    >>> first_sentences("digits: A is best. letters: B is.", 1)
    ('digits: A is best.', 'letters: B is.')
    """
    parts = re.split(r"(?<=[.?!])\s+(?=[^a-z])", text.split(" Beware: ")[0].strip())
    labelled = re.compile(r"(?<=[.?!])\s+(?=[^\s.:]+: )")
    return tuple(line for part in parts[:few] for line in labelled.split(part))


def _file(label: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.]+", "-", label).strip("-.")[:80] or "result"
