"""The report of a study: the question it answers, the answer, and all that is behind it."""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curvewise.errors import CurvewiseError
from curvewise.report.content import Figure, Report, Reproduce, Runs
from curvewise.report.lenses import StudyFindings, find_all
from curvewise.report.results import QUESTIONS, first_sentences
from curvewise.text import format_number

if TYPE_CHECKING:
    from curvewise.study.spec.study import Study
    from curvewise.study.standing import Planned
    from curvewise.study.status import Status


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
    from curvewise.study.standing import looked_up_once

    with looked_up_once(study) as planned:
        status = study.status()
        findings = find_all(study, planned, form)
        asked, answer, figure = _answered(findings)
        said = [*status.warnings, *_notes(findings, status)]
        return StudyReport(
            title=title or study.name,
            question=question or asked,
            answer=(*answer, *findings.left_out, *_so_far(status, answer)),
            figure=figure,
            warnings=tuple(dict.fromkeys([*said, *(w for s in findings.sections for w in s.warnings)])),
            sections=tuple(findings.sections),
            runs=runs_of(study, planned, status),
            reproduce=reproduction(study, planned, file),
            found={"status": status, **findings.found},
        )


def _answered(findings: StudyFindings) -> tuple[str, tuple[str, ...], Figure | None]:
    """The question that the design can answer, its answer, and the picture that shows it."""
    found, curves = findings.found, findings.figure("curves")
    fitted = list(found["curves"]) if "curves" in found else []
    spread = found.get("variance") or {}
    if "transfer" in found:
        return QUESTIONS["transfer"], _short(found["transfer"]), findings.figure("transfer")
    if "ranking" in found or "comparison" in found:
        return BEST, _short(found.get("ranking") or found["comparison"]), curves
    if len(fitted) == 1:
        return f"How does the {findings.word} fall with data?", _short(fitted[0]), curves
    if "better" in found:
        return BEST, _short(found["better"]), findings.figure("better")
    if len(spread) == 1:
        only = next(f for s in findings.sections for f in s.figures if f.name.startswith("variance"))
        return QUESTIONS["variance"], _short(*spread.values()), only
    if findings.runs is not None:
        plural = "losses" if findings.word == "loss" else "errors"
        return f"Which {plural} did the learners reach?", _lowest(findings), curves
    return "How far is the study?", (), None


def _short(result: Any) -> tuple[str, ...]:
    return first_sentences(result.sentences())


def _lowest(findings: StudyFindings) -> tuple[str, ...]:
    """The lowest mean at the largest size, with its interval over runs."""
    columns, word = findings.found["errors"], findings.word
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    known = [row for row in rows if row[word] is not None]
    if not known:
        return ("Every run failed: there is nothing to compare.",)
    largest = max(row["n"] for row in known)
    at = sorted((row for row in known if row["n"] == largest), key=lambda row: row[word])
    return tuple(_said(row, word) for row in at[:2])


def _said(row: Mapping[str, Any], word: str) -> str:
    where = f"{row['learner']}: {word} {format_number(row[word])}"
    at = f"at n = {row['n']:,}"
    if row["runs"] < 2 or row["std"] is None:
        return f"{where} {at}, of one run: nothing tells how sure that is."
    from scipy.stats import t

    half = t.ppf(0.975, row["runs"] - 1) * row["std"] / math.sqrt(row["runs"])
    low, high = format_number(row[word] - half), format_number(row[word] + half)
    return f"{where} [{low}, {high}] {at}, the mean of {row['runs']} runs on these test examples."


def _so_far(status: Status, answer: Sequence[str]) -> tuple[str, ...]:
    """How far the study is, where that is not all of it."""
    if status.done == status.planned and answer:
        return ()
    return (first_sentences(status.sentences(), 1)[0],)


def _notes(findings: StudyFindings, status: Status) -> list[str]:
    """What failed and what is missing; the measurements tell it, where there are some."""
    if findings.runs is not None:
        failed = [
            f"{f.count:,} of {status.planned:,} runs failed ({', '.join(f.learners)}): {f.message}"
            for f in status.failures
        ]
        alone = re.compile(r"\d+ of \d+ runs failed \(")  # each reason by itself, paths and all
        return [*failed, *(n for n in findings.runs.notes if not alone.match(n))]
    left = f"{status.planned - status.done - status.failed:,} of {status.planned:,} planned runs"
    return [f"{left} are not made yet.", *findings.study.partition.warnings]


# The runs behind a study's report, and what it takes to make them again.

FEW = 4
"""Kinds of machines or versions that are named one by one."""


def runs_of(study: Study, planned: Sequence[Planned], status: Status) -> Runs:
    """Every run of a study with its state, what it measured and how long it took."""
    made = [run for run in planned if not run.job.is_search]
    return Runs(_text(planned, status), _columns(study, made), status.failures)


def _text(planned: Sequence[Planned], status: Status) -> tuple[str, ...]:
    text = [replace(status, failures=()).sentences()]  # which have a table
    made = [run.record["environment"] for run in planned if run.record]
    if made:
        words = {"devices": "device", "systems": "platform", "Python": "python"}
        named = [f"{word}: {_counted(made, key)}" for word, key in words.items()]
        text.append(f"Made with {'; '.join(named)}.")
    return tuple(text)


def _counted(environments: Sequence[Mapping[str, Any]], key: str) -> str:
    found = Counter(str(e[key]) for e in environments if e.get(key)).most_common()
    if len(found) == 1:
        return found[0][0]
    said = [f"{name} ({count:,} runs)" for name, count in found[:FEW]]
    more = [f"and {len(found) - FEW} more"] if len(found) > FEW else []
    return ", ".join([*said, *more]) or "not known"


def _columns(study: Study, runs: Sequence[Planned]) -> dict[str, Sequence[Any]]:
    from curvewise.study.results import label_of
    from curvewise.study.status import reason_of

    word = "loss" if study.dataset.is_numbers else "error"
    environments = [run.record.get("environment", {}) for run in runs]
    columns: dict[str, Sequence[Any]] = {
        "learner": [label_of(study, run.job) for run in runs],
        "n": [run.job.n for run in runs],
        "fold": [run.job.fold for run in runs],
        **_seeds(runs),
        "status": [run.state for run in runs],
        word: [run.standing.metrics.get(word) for run in runs],
        "seconds": [run.seconds for run in runs],
        "device": [e.get("device") for e in environments],
        "path": [e.get("path") for e in environments],
        "run": [run.job.id for run in runs],
    }
    reasons = [reason_of(r.standing.text) if r.standing.text else None for r in runs]
    return {
        **{k: v for k, v in columns.items() if k == "run" or any(x is not None for x in v)},
        **({"reason": reasons} if any(reasons) else {}),
    }


def _seeds(runs: Sequence[Planned]) -> dict[str, list[int]]:
    """The seeds that tell runs apart; one that follows another is left out."""
    found: dict[str, list[int]] = {}
    apart = 1
    for kind in runs[0].job.seeds if runs else ():
        values = [run.job.seeds[kind] for run in runs]
        told = len(set(zip(*found.values(), values, strict=True)))
        if told > apart:
            found[f"{kind} seed"], apart = values, told
    return found


def reproduction(study: Study, planned: Sequence[Planned], file: Path | None) -> Reproduce:
    """How to make the same runs and the same report again."""
    made = [run.record["environment"] for run in planned if run.record]
    facts = {
        "Made by": _made_by(made),
        "Python": _counted(made, "python") if made else "",
        "Packages": _packages(made),
        "Commit": _commit(made),
        "Data": f"digest {study.data_digest}",
        "Seed": str(study.seed),
        "Store": str(study.runs_folder.resolve()),
    }
    command = ""
    if file is not None:
        name = shlex.quote(file.name)
        command = f"curvewise study run {name}\ncurvewise study report {name}"
    return Reproduce(command, _study_text(study, file), {k: v for k, v in facts.items() if v})


def _made_by(environments: Sequence[Mapping[str, Any]]) -> str:
    from curvewise import __version__

    versions = {str(e.get("packages", {}).get("curvewise", __version__)) for e in environments}
    return f"curvewise {', '.join(sorted(versions) or [__version__])}"


def _packages(environments: Sequence[Mapping[str, Any]]) -> str:
    found: dict[str, dict[str, None]] = {}
    for environment in environments:
        for name, version in environment.get("packages", {}).items():
            found.setdefault(str(name), {})[str(version)] = None
    return ", ".join(f"{k} {' or '.join(v)}" for k, v in found.items() if k != "curvewise")


def _commit(environments: Sequence[Mapping[str, Any]]) -> str:
    found: dict[str, None] = {}
    for environment in environments:
        git = environment.get("git")
        if isinstance(git, Mapping) and git.get("commit"):
            changed = " with uncommitted changes" if git.get("dirty") else ""
            found[f"{git['commit']}{changed}"] = None
    return ", ".join(list(found)[:FEW])


def _study_text(study: Study, file: Path | None) -> str:
    """The study file as it is, or as it would be written."""
    if file is not None:
        return file.read_bytes().decode("utf-8-sig")
    from curvewise.study.spec.document import document_of, toml_text

    try:
        return toml_text(document_of(study, study.folder))
    except CurvewiseError:  # data in memory has no file that names it
        return ""
