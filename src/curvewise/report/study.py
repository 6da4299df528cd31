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

import numpy as np
from scipy.special import stdtrit

from curvewise.errors import CurvewiseError
from curvewise.report.content import Figure, Report, Reproduce, Runs
from curvewise.report.lenses import StudyFindings, find_all
from curvewise.report.results import QUESTIONS, first_sentences, verdict_on_transfer
from curvewise.text import format_count, format_interval, format_value
from curvewise.types.results import Interval

if TYPE_CHECKING:
    from curvewise.learning.partition import Partition
    from curvewise.study.status import Planned, Status
    from curvewise.study.study import Study


BEST = "Which learner is best, and how certain is that?"


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
    """Ask of a study, finished or not, every question that its design can answer.

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
    >>> study_report(study).answer[0][:24]
    'No run has finished yet:'
    """
    from curvewise.study.status import looked_up_once

    with looked_up_once(study) as planned:
        status = study.status()
        findings = find_all(study, planned, form)
        open_question, answer, figure = _answered(findings, status)
        texts = [*status.warnings, *_notes(findings, status)]
        # A finished study with an answer need not state its progress.
        finished = status.done == status.planned and answer
        progress = () if finished else first_sentences(status.sentences(), 1)[:1]
        return StudyReport(
            title=title or study.name,
            question=question or open_question,
            answer=(*answer, *findings.left_out, *progress),
            figure=figure,
            warnings=tuple(dict.fromkeys([*texts, *(w for s in findings.sections for w in s.warnings)])),
            sections=tuple(findings.sections),
            runs=runs_of(study, planned, status),
            reproduce=reproduction(study, planned, file, form=form),
            found={"status": status, **findings.found},
        )


def _answered(findings: StudyFindings, status: Status) -> tuple[str, tuple[str, ...], Figure | None]:
    """The question that the design can answer, its answer, and the picture that shows it."""
    found, curves = findings.found, findings.figure("curves")
    fitted = list(found["curves"]) if "curves" in found else []
    spread = found.get("variance") or {}
    if findings.runs is None:
        return "How far is the study?", (NOT_BEGUN,), None
    if not any(value is not None for value in found["errors"][findings.word]):
        why = f", most often with: {status.failures[0].message}" if status.failures else "."
        return BEST, (f"Every run failed{why}", RUN_AGAIN), None
    if "transfer" in found:
        return (
            QUESTIONS["transfer"],
            (*verdict_on_transfer(found["transfer"]), *_short(found["transfer"])),
            findings.figure("transfer"),
        )
    if len(fitted) > 1 and not any(c._data.replicated for c in fitted):
        return BEST, (f"The runs cannot show which learner is best. {ONE_SUBSET}", *_lowest(findings)), curves
    if "ranking" in found or "comparison" in found:
        result = found.get("ranking") or found["comparison"]
        open_question = result.verdict == "undecided" if "comparison" in found else max(result.probability_best) < 0.95
        more = advise_folds(findings.study.partition, round(result.at))
        if all(value == 0 for value in found["errors"][findings.word] if value is not None):
            more = "No run made an error: a larger or harder test set is needed to distinguish the learners."
        return BEST, (*_short(result), *((more,) if open_question else ())), curves
    if len(fitted) == 1:
        alone = () if fitted[0]._data.replicated else (ONE_SUBSET,)
        return f"How does the {findings.word} fall with data?", (*alone, *_short(fitted[0])), curves
    if "better" in found:
        undecided = found["better"].verdict == "undecided"
        more = "To decide, add seeds: four times as many halve the interval on this test set."
        return BEST, (*_short(found["better"]), *((more,) if undecided else ())), findings.figure("better")
    if len(spread) == 1:
        only = next(f for s in findings.sections for f in s.figures if f.name.startswith("variance"))
        return QUESTIONS["variance"], _short(*spread.values()), only
    return f"Which {findings.plural} did the learners reach?", _lowest(findings), curves


def advise_folds(partition: Partition, n: int) -> str:
    """Advise how to narrow the interval at n, within what the training examples allow."""
    room = {size: (len(partition.at(size)), partition.total // size) for size in partition.sizes}
    there, most = room.get(n, (1, 4))
    if most >= 4 * there:
        return f"To decide, add folds at n = {n:,}: four times as many halve the interval."
    if most > there:
        return f"To decide, add folds at n = {n:,}: up to {most:,} training subsets fit without sharing examples."
    fit = min(there, most)  # subsets beyond those that fit share examples
    full = f"more than {format_count(fit, 'training subset')} of {n:,} examples {'does' if fit == 1 else 'do'} not fit "
    full += f"into {partition.total:,} examples"
    smaller = [f"{fits:,} at n = {size:,}" for size, (now, fits) in room.items() if size < n and fits > now]
    way = f"Add folds at smaller sizes (up to {' and '.join(smaller[-2:])}), or use" if smaller else "Use"
    return f"To decide, more data are needed: {full} without sharing. {way} a larger training set."


NOT_BEGUN = "No run has finished yet: the commands at the end of this report run the study and write the report again."
RUN_AGAIN = "Correct the cause and run the study again with --retry-failed."
ONE_SUBSET = (
    "There is one training subset per size, so the curves have no confidence interval: set folds = 2 or more "
    "under [design] and run the study again."
)


def _short(result: Any) -> tuple[str, ...]:
    return tuple(text for text in first_sentences(result.sentences()) if not text.startswith("Fit:"))


def _lowest(findings: StudyFindings) -> tuple[str, ...]:
    """The lowest means at the largest size, with their intervals over runs."""
    assert findings.runs is not None
    columns, word, unit, subsets = findings.found["errors"], findings.word, findings.unit, findings.runs.subset_means()
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    known = [row for row in rows if row[word] is not None]
    largest = max(row["n"] for row in known)
    at = sorted((row for row in known if row["n"] == largest), key=lambda row: row[word])[:2]
    lines, single = [], [row["learner"] for row in at if row["std"] is None]
    for row in at:
        mean, runs = row[word], row["runs"]
        if row["std"] is None:
            text = f"{format_value(mean, unit)} at n = {largest:,}, one run."
        elif row["std"] <= 1e-12 * abs(mean):  # equal but for rounding
            text = _without_spread(findings, row)
        else:
            # Student's t over the runs; the test examples are taken as given. Where several training subsets have
            # several runs, over the means of the subsets, too: runs on one subset are not independent.
            own = subsets.error[(subsets.learner == row["learner"]) & (subsets.n == largest)]
            own = own[np.isfinite(own)]
            shared = 1 < len(own) < runs
            samples = [(row["std"], runs), *([(float(own.std(ddof=1)), len(own))] if shared else [])]
            half = max(float(stdtrit(count - 1, 0.975)) * std / math.sqrt(count) for std, count in samples)
            low, high = mean - half, mean + half
            if unit == "fraction":
                low, high = max(low, 0.0), min(high, 1.0)
            interval = format_interval(Interval(mean, low, high), unit)
            of = f" of {len(own)} training subsets" if shared else ""
            text = f"{interval} at n = {largest:,}, mean of {runs} runs{of} on this test set."
        lines.append(f"{row['learner']}: {word} {text}")
    if single:
        lines.append("One run has no interval: set seeds or folds to 2 or more under [design] and run the study again.")
    return tuple(lines)


def _without_spread(findings: StudyFindings, row: Mapping[str, Any]) -> str:
    """Describe runs with the same error: identical ones, or different ones whose spread says nothing of the mean."""
    from curvewise.stats.intervals import wilson_interval
    from curvewise.study.status import apart_from_seeds, outcome_of
    from curvewise.study.study import label_of

    value, where, count = row[findings.word], f"at n = {row['n']:,}", row["runs"]
    shown = format_value(value, findings.unit)
    chosen = [
        run
        for run in findings.planned
        if run.state == "done"
        and not run.job.is_search
        and (label_of(findings.study, run.job), run.job.n) == (row["learner"], row["n"])
    ]
    if len({(apart_from_seeds(run.job), outcome_of(run)) for run in chosen}) == 1:
        return f"{shown} {where}, {count} runs with identical predictions."
    examples = chosen[0].record["arrays"].get("predictions", {}).get("shape", [0])[0]
    if findings.unit != "fraction" or not examples:
        return f"{shown} {where}, no spread in {count} runs."
    low, high = map(float, wilson_interval(value, examples))
    interval = format_interval(Interval(value, low, high), findings.unit)
    return f"{interval} {where}, the same in {count} runs (Wilson's interval for {examples:,} test examples)."


def _notes(findings: StudyFindings, status: Status) -> list[str]:
    """State what failed and what is missing, from the measurements where there are some."""
    if findings.runs is not None:
        failed = [
            f"{f.count:,} of {status.planned:,} runs failed ({', '.join(f.learners)}): {f.message}"
            for f in status.failures
        ]
        # Each reason by itself, paths and all; and what the answer says of the progress.
        known = re.compile(r"[\d,]+ of [\d,]+ (runs failed \(|planned runs are )")
        return [*failed, *(n for n in findings.runs.notes if not known.match(n))]
    return list(findings.study.partition.warnings)


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
        if (distinct := len(set(zip(*seeds.values(), values, strict=True)))) > apart:
            seeds[f"{kind} seed"], apart = values, distinct
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
    text = replace(status, failures=()).sentences()  # the failures have a table
    return Runs((text,), columns, status.failures)


def reproduction(study: Study, planned: Sequence[Planned], file: Path | None, *, form: str = "power") -> Reproduce:
    """Collect what it takes to make the same runs and the same report again.

    Parameters
    ----------
    study : Study
        Whose report it is.
    planned : sequence of Planned
        Its runs.
    file : Path, optional
        Where it was loaded from.
    form : str
        Of the learning curves.
    """
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
        "Made with": f"curvewise {', '.join(sorted(own))}",
        "Python": _counted(made, "python") if made else "",
        "Systems": _counted(made, "platform") if made else "",
        "Devices": _counted(made, "device") if made else "",
        "Packages": ", ".join(f"{k} {' or '.join(v)}" for k, v in packages.items()),
        "Commit": ", ".join(list(commits)[:FEW]),
        "Data": f"digest {study.data_digest}",
        "Seed": str(study.seed),
        "Store": str(study.runs_folder.resolve()),
    }
    if file is not None:
        name, text = file.name, file.read_bytes().decode("utf-8-sig")
    else:
        name, text = "study.toml", ""
        with suppress(CurvewiseError):  # data in memory has no file that names it
            text = toml_text(document_of(study, study.folder))
    known = {k: v for k, v in facts.items() if v}
    if not text:
        return Reproduce("The data of this study were in memory: run the Python code again that made it.", facts=known)
    options = [*(["--form", form] if form != "power" else []), *(["--trust"] if file and study.trust else [])]
    lines = (["curvewise", "study", "run", name], ["curvewise", "study", "report", name, *options])
    if file is not None:
        steps = f"Run these commands in the folder of {name}. Finished runs are not trained again."
    else:
        steps = f"Save the text below as {name}, and run these commands in its folder."
    return Reproduce(steps, "\n".join(map(shlex.join, lines)), text, name, known)


def _counted(environments: Sequence[Mapping[str, Any]], key: str) -> str:
    found = Counter(str(e[key]) for e in environments if e.get(key)).most_common()
    if len(found) == 1:
        return found[0][0]
    named = [f"{name} ({count:,} runs)" for name, count in found[:FEW]]
    more = [f"and {len(found) - FEW} more"] if len(found) > FEW else []
    return ", ".join([*named, *more]) or "not known"
