"""The report of a study: the question it answers, the answer, and all that is behind it."""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scipy.special import stdtrit

from curvewise.errors import CurvewiseError
from curvewise.report.content import Figure, Report, Reproduce, Runs
from curvewise.report.lenses import StudyFindings, find_all
from curvewise.report.results import QUESTIONS, first_sentences
from curvewise.text import format_interval, format_number
from curvewise.types.results import Interval

if TYPE_CHECKING:
    from curvewise.study.status import Planned, Status
    from curvewise.study.study import Study


BEST = "Which learner is best, and how sure is that?"


@dataclass(frozen=True, eq=False)
class StudyReport(Report):
    """The report of a study, with the results behind it.

    Attributes
    ----------
    found : dict
        status, errors, evaluations, rates, curves, comparison or ranking, better, variance,
        sweeps, sources, twins, test_sets, transfer: those that the study has.
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
    '6 runs: 0 finished, 6 remaining.'
    """
    from curvewise.study.status import looked_up_once

    with looked_up_once(study) as planned:
        status = study.status()
        findings = find_all(study, planned, form)
        asked, answer, figure = _answered(findings)
        said = [*status.warnings, *_notes(findings, status)]
        # A finished study with an answer need not state its progress.
        finished = status.done == status.planned and answer
        progress = () if finished else first_sentences(status.sentences(), 1)[:1]
        return StudyReport(
            title=title or study.name,
            question=question or asked,
            answer=(*answer, *findings.left_out, *progress),
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
    said = []
    for row in at[:2]:
        mean, runs, where = row[word], row["runs"], f"at n = {row['n']:,}"
        if runs < 2 or row["std"] is None:
            text = f"{format_number(mean)} {where}, of one run: nothing tells how sure that is."
        else:
            # Student's t over the runs; the test examples are taken as given.
            half = float(stdtrit(runs - 1, 0.975)) * row["std"] / math.sqrt(runs)
            interval = format_interval(Interval(mean, mean - half, mean + half), write=format_number)
            text = f"{interval} {where}, the mean of {runs} runs on these test examples."
        said.append(f"{row['learner']}: {word} {text}")
    return tuple(said)


def _notes(findings: StudyFindings, status: Status) -> list[str]:
    """State what failed and what is missing, from the measurements where there are some."""
    if findings.runs is not None:
        failed = [
            f"{f.count:,} of {status.planned:,} runs failed ({', '.join(f.learners)}): {f.message}"
            for f in status.failures
        ]
        alone = re.compile(r"\d+ of \d+ runs failed \(")  # each reason by itself, paths and all
        return [*failed, *(n for n in findings.runs.notes if not alone.match(n))]
    left = f"{status.planned - status.done - status.failed:,} of {status.planned:,} planned runs"
    return [f"{left} are not finished yet.", *findings.study.partition.warnings]


FEW = 4
"""Kinds of machines or versions that are named one by one."""


def runs_of(study: Study, planned: Sequence[Planned], status: Status) -> Runs:
    """Tabulate every run of a study with its state, what it measured and how long it took."""
    from curvewise.store.tables import reason_of
    from curvewise.study.study import label_of

    runs = [run for run in planned if not run.job.is_search]
    word = "loss" if study.dataset.is_numbers else "error"
    environments = [run.record.get("environment", {}) for run in runs]
    seeds: dict[str, list[int]] = {}
    apart = 1
    for kind in runs[0].job.seeds if runs else ():
        values = [run.job.seeds[kind] for run in runs]
        # A seed that follows another distinguishes no further runs, and is left out.
        if (told := len(set(zip(*seeds.values(), values, strict=True)))) > apart:
            seeds[f"{kind} seed"], apart = values, told
    columns: dict[str, Sequence[Any]] = {
        "learner": [label_of(study, run.job) for run in runs],
        "n": [run.job.n for run in runs],
        "fold": [run.job.fold for run in runs],
        **seeds,
        "status": [run.state for run in runs],
        word: [run.standing.metrics.get(word) for run in runs],
        "seconds": [run.seconds for run in runs],
        "device": [e.get("device") for e in environments],
        "path": [e.get("path") for e in environments],
        "run": [run.job.id for run in runs],
    }
    columns = {k: v for k, v in columns.items() if k == "run" or any(x is not None for x in v)}
    reasons = [reason_of(r.standing.text) if r.standing.text else None for r in runs]
    if any(reasons):
        columns["reason"] = reasons
    text = [replace(status, failures=()).sentences()]  # the failures have a table
    made = [run.record["environment"] for run in planned if run.record]
    if made:
        words = {"devices": "device", "systems": "platform", "Python": "python"}
        named = [f"{word}: {_counted(made, key)}" for word, key in words.items()]
        text.append(f"Made with {'; '.join(named)}.")
    return Runs(tuple(text), columns, status.failures)


def reproduction(study: Study, planned: Sequence[Planned], file: Path | None) -> Reproduce:
    """Collect what it takes to make the same runs and the same report again."""
    from curvewise import __version__
    from curvewise.study.spec.document import document_of, toml_text

    made = [run.record["environment"] for run in planned if run.record]
    packages: dict[str, dict[str, None]] = {}
    commits: dict[str, None] = {}
    for environment in made:
        # Runs of older stores do not name curvewise among their packages.
        for name, version in {"curvewise": __version__, **environment.get("packages", {})}.items():
            packages.setdefault(str(name), {})[str(version)] = None
        git = environment.get("git")
        if isinstance(git, Mapping) and git.get("commit"):
            commits[f"{git['commit']}{' with uncommitted changes' if git.get('dirty') else ''}"] = None
    own = packages.pop("curvewise", {__version__: None})
    facts = {
        "Made by": f"curvewise {', '.join(sorted(own))}",
        "Python": _counted(made, "python") if made else "",
        "Packages": ", ".join(f"{k} {' or '.join(v)}" for k, v in packages.items()),
        "Commit": ", ".join(list(commits)[:FEW]),
        "Data": f"digest {study.data_digest}",
        "Seed": str(study.seed),
        "Store": str(study.runs_folder.resolve()),
    }
    command = text = ""
    if file is not None:
        name = shlex.quote(file.name)
        command = f"curvewise study run {name}\ncurvewise study report {name}"
        text = file.read_bytes().decode("utf-8-sig")
    else:
        with suppress(CurvewiseError):  # data in memory has no file that names it
            text = toml_text(document_of(study, study.folder))
    return Reproduce(command, text, {k: v for k, v in facts.items() if v})


def _counted(environments: Sequence[Mapping[str, Any]], key: str) -> str:
    found = Counter(str(e[key]) for e in environments if e.get(key)).most_common()
    if len(found) == 1:
        return found[0][0]
    said = [f"{name} ({count:,} runs)" for name, count in found[:FEW]]
    more = [f"and {len(found) - FEW} more"] if len(found) > FEW else []
    return ", ".join([*said, *more]) or "not known"
