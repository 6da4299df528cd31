"""A section for any result, and a report of any results."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from curvewise.errors import InputError
from curvewise.report.charts import figures_of
from curvewise.report.content import Report, ReportTable, Section
from curvewise.types.measurements import Measurements
from curvewise.types.results import Result
from curvewise.types.units import Unit

SETTINGS = (
    *("form", "weights", "weight", "interval", "kind", "level", "unit", "seeds", "paired", "mode"),
    *("perturbation", "layer", "by", "loss", "per", "average", "rule", "method"),
)
"""Fields of results that say how something was computed."""

FEW = 3
"""Sentences of the answer on the first screen."""


def results_report(
    results: Result | Sequence[Result] | Mapping[str, Result], *, title: str | None = None, question: str | None = None
) -> Report:
    """Make the report of results: the first of them is the answer.

    Parameters
    ----------
    results : Result, or sequence or dict of them
        The keys of a dict are titles of sections.
    title, question : str, optional
        Of the report; by default what the first result's lens asks.
    """
    if isinstance(results, Mapping):
        named: list[tuple[str | None, Any]] = [(str(k), v) for k, v in results.items()]
    else:
        several = isinstance(results, Sequence) and not isinstance(results, str | Result)
        every: Any = results if several else [results]
        named = [(None, v) for v in every]
    if not named:
        raise InputError("is empty: give at least one.", argument="results")
    for _, one in named:
        if not isinstance(one, Result):
            raise InputError(f"holds {one!r:.60}: give what an analysis returned.", argument="results")
    sections = tuple(section_of(result, name) for name, result in named)
    first = named[0][1]
    lens = lens_of(first)
    return Report(
        title=title or "curvewise report",
        question=question or QUESTIONS.get(lens, sections[0].title),
        answer=first_sentences(first.sentences()),
        figure=next((f for s in sections for f in s.figures), None),
        warnings=tuple(dict.fromkeys(w for s in sections for w in s.warnings)),
        sections=sections,
    )


def section_of(
    result: Result, title: str | None = None, runs: Measurements | None = None, *, alive: bool = True
) -> Section:
    """Make the section of one result: sentences, picture (for a browser alive), table and method.

    Parameters
    ----------
    result : Result
        Of any lens.
    title : str, optional
        By default what its lens asks.
    runs : Measurements, optional
        Of learning curves: the points of the chart, with fold and seed.
    alive : bool
        Give the chart that a browser can play with, too.
    """
    from curvewise.drawing.picture import picture_of

    lens = lens_of(result)
    name = file_name(title or type(result).__name__) or "result"
    heading = title or QUESTIONS.get(lens, type(result).__name__)
    warnings = result.all_warnings
    if lens == "learning":  # imported only now, so that a page on other results does not load this lens
        from curvewise.learning.fit import LearningCurves

        if isinstance(result, LearningCurves):
            # Each one's, not the first and how many there are.
            warnings = tuple(dict.fromkeys([*result.general_warnings, *result.curve_warnings]))
    figures = figures_of(result, name, heading, runs, alive=alive) if picture_of(type(result)) else ()
    columns = {k: list(v) for k, v in result.columns().items()}
    values = {f.name: getattr(result, f.name) for f in fields(result) if f.name in SETTINGS}  # type: ignore[arg-type]
    return Section(
        title=heading,
        text=(result.sentences(),),
        warnings=warnings,
        figures=figures,
        tables=(ReportTable(name, "Numbers", columns),) if any(map(len, columns.values())) else (),
        method=METHODS.get(lens, ()),
        settings={k: v.name if isinstance(v, Unit) else str(v) for k, v in values.items() if v is not None},
    )


def first_sentences(text: str, few: int = FEW) -> tuple[str, ...]:
    """Return the first sentences of a text.

    >>> first_sentences("A is 1.5 [1, 2]. B is 2. C. D.", 2)
    ('A is 1.5 [1, 2].', 'B is 2.')
    >>> first_sentences("digits: A is best. letters: B is.", 1)
    ('digits: A is best.', 'letters: B is.')
    """
    parts = re.split(r"(?<=[.?!])\s+(?=[^a-z])", text.strip())
    # A result on several tasks begins each sentence with the task's name, which may be in lower case.
    labelled = re.compile(r"(?<=[.?!])\s+(?=[^\s.:]+: )")
    return tuple(line for part in parts[:few] for line in labelled.split(part))


def file_name(label: str) -> str:
    """Turn a label into part of the name of a file.

    >>> file_name("net, rate=0.1/2")
    'net-rate-0.1-2'
    """
    return re.sub(r"[^A-Za-z0-9_.]+", "-", label).strip("-.")[:80]


QUESTIONS = {
    "learning": "How does error fall with data?",
    "variance": "How much do runs differ, and what of it is real?",
    "response": "How does it respond when the input moves?",
    "transfer": "Does pretraining beat simple controls?",
    "ranking": "Which checkpoint should be fine-tuned?",
    "study": "How far is it?",
}

METHODS = {
    "learning": (
        "The extended power law e(n) = α + ηn^γ is fitted to the runs by weighted least squares "
        "with a prior on γ (Hoiem et al. 2021). Confidence intervals are by profile likelihood and "
        "suppose that form; prediction intervals were calibrated on real learning curves.",
    ),
    "variance": (
        "The variance of the error over runs is split into what independent errors on a finite "
        "test set would give and what is left, which is there on new data too (Jordan 2023).",
    ),
    "response": (
        "What the network was trained on is perturbed with growing magnitude; the Gi-score sums up "
        "how its accuracy falls from 0 (never) to 1, the Pal-score compares high with low "
        "magnitudes (Schiff et al. 2021).",
    ),
    "transfer": (
        "Risks are put on the scale between maximal supervision (0) and a blind guess (1); the "
        "area between a method and scratch, weighted by what scratch learns, is the calibrated "
        "cumulative improvement (Atanov et al. 2022). Intervals count the runs.",
    ),
    "ranking": (
        "Features of labelled examples are scored, nothing is trained (Li et al. 2021). Ranks have "
        "intervals from scoring random parts of the examples again.",
    ),
}


def lens_of(result: Result) -> str:
    """Return the lens that made a result: the folder of its class.

    >>> from curvewise.learning import LearningCurves
    >>> lens_of(LearningCurves.__new__(LearningCurves))
    'learning'
    """
    parts = type(result).__module__.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "curvewise" else ""
