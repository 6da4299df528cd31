"""The report of a study: the question it answers, the answer, and all that is behind it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curvewise.report.content import Figure, Report
from curvewise.report.lenses import look
from curvewise.report.looking import Looking
from curvewise.report.results import first_sentences
from curvewise.report.runs import reproduction, runs_of
from curvewise.report.words import QUESTIONS
from curvewise.tables import number

if TYPE_CHECKING:
    from curvewise.study.status import Status
    from curvewise.study.study import Study

BEST = "Which learner is best, and how sure is that?"


@dataclass(frozen=True, eq=False)
class StudyReport(Report):
    """The report of a study, with the results behind it.

    Attributes
    ----------
    found : dict
        status, errors, evaluations, rates, curves, comparison or ranking, better, variance,
        sources, transfer: those that the study has.
    """

    found: Mapping[str, Any] = field(default_factory=dict)


def study_report(
    study: Study,
    *,
    title: str | None = None,
    question: str | None = None,
    form: str = "power",
    file: Path | None = None,
) -> StudyReport:
    """Look at a study, finished or not, through every lens that applies.

    Parameters
    ----------
    study : Study
        Its store is read once.
    title, question : str, optional
        Of the report; by default the name of the study, and what its design can answer.
    form : str
        Of the learning curves.
    file : Path, optional
        Where the study was loaded from.

    Examples
    --------
    >>> import tempfile
    >>> from curvewise.study import Design, Learner, Study
    >>> study = Study(
    ...     data="digits",
    ...     learners={"bayes": Learner(estimator="sklearn.naive_bayes:GaussianNB")},
    ...     design=Design(sizes=[100, 200, 400], folds=2),
    ...     folder=Path(tempfile.mkdtemp()),
    ... )
    >>> study_report(study).answer[0]
    'study: 0 of 6 runs done, 6 to do.'
    """
    from curvewise.study.standings import looked_up_once

    with looked_up_once(study) as planned:
        status = study.status()
        looking = look(study, planned, form)
        asked, answer, figure = _answered(looking)
        said = [*status.warnings, *_notes(looking, status)]
        return StudyReport(
            title=title or study.name,
            question=question or asked,
            answer=(*answer, *looking.left_out, *_so_far(status, answer)),
            figure=figure,
            warnings=tuple(
                dict.fromkeys([*said, *(w for s in looking.sections for w in s.warnings)])
            ),
            sections=tuple(looking.sections),
            runs=runs_of(study, planned, status),
            reproduce=reproduction(study, planned, file),
            found={"status": status, **looking.found},
        )


def _answered(looking: Looking) -> tuple[str, tuple[str, ...], Figure | None]:
    """The question that the design can answer, its answer, and the picture that shows it."""
    found, curves = looking.found, looking.figure("curves")
    fitted = list(found["curves"]) if "curves" in found else []
    spread = found.get("variance") or {}
    if "transfer" in found:
        return QUESTIONS["transfer"], _short(found["transfer"]), looking.figure("transfer")
    if "ranking" in found or "comparison" in found:
        return BEST, _short(found.get("ranking") or found["comparison"]), curves
    if len(fitted) == 1:
        return f"How does the {looking.word} fall with data?", _short(fitted[0]), curves
    if "better" in found:
        return BEST, _short(found["better"]), looking.figure("better")
    if len(spread) == 1:
        only = next(f for s in looking.sections for f in s.figures if f.name.startswith("variance"))
        return QUESTIONS["variance"], _short(*spread.values()), only
    if looking.runs is not None:
        plural = "losses" if looking.word == "loss" else "errors"
        return f"Which {plural} did the learners reach?", _lowest(looking), curves
    return "How far is the study?", (), None


def _short(result: Any) -> tuple[str, ...]:
    return first_sentences(result.summary())


def _lowest(looking: Looking) -> tuple[str, ...]:
    """The lowest mean at the largest size, with its interval over runs."""
    columns, word = looking.found["errors"], looking.word
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    known = [row for row in rows if row[word] is not None]
    if not known:
        return ("Every run failed: there is nothing to compare.",)
    largest = max(row["n"] for row in known)
    at = sorted((row for row in known if row["n"] == largest), key=lambda row: row[word])
    return tuple(_said(row, word) for row in at[:2])


def _said(row: Mapping[str, Any], word: str) -> str:
    where = f"{row['learner']}: {word} {number(row[word])}"
    at = f"at n = {row['n']:,}"
    if row["runs"] < 2 or row["std"] is None:
        return f"{where} {at}, of one run: nothing tells how sure that is."
    from scipy.stats import t

    half = t.ppf(0.975, row["runs"] - 1) * row["std"] / math.sqrt(row["runs"])
    low, high = number(row[word] - half), number(row[word] + half)
    return f"{where} [{low}, {high}] {at}, the mean of {row['runs']} runs on these test examples."


def _so_far(status: Status, answer: Sequence[str]) -> tuple[str, ...]:
    """How far the study is, where that is not all of it."""
    if status.done == status.planned and answer:
        return ()
    return (first_sentences(status.summary(), 1)[0],)


def _notes(looking: Looking, status: Status) -> list[str]:
    """What failed and what is missing; the measurements tell it, where there are some."""
    if looking.runs is not None:
        failed = [
            f"{f.count:,} of {status.planned:,} runs failed ({', '.join(f.learners)}): {f.message}"
            for f in status.failures
        ]
        alone = re.compile(r"\d+ of \d+ runs failed \(")  # each reason by itself, paths and all
        return [*failed, *(n for n in looking.runs.notes if not alone.match(n))]
    left = f"{status.planned - status.done - status.failed:,} of {status.planned:,} planned runs"
    return [f"{left} are not made yet.", *looking.study.partition.warnings]
