"""The runs behind a study's report, and what it takes to make them again."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curvewise.errors import CurvewiseError
from curvewise.report.content import Reproduce, Runs
from curvewise.report.results import sentences

if TYPE_CHECKING:
    from curvewise.study.standings import Planned
    from curvewise.study.status import Status
    from curvewise.study.study import Study

FEW = 4
"""Kinds of machines or versions that are named one by one."""


def runs_of(study: Study, planned: Sequence[Planned], status: Status) -> Runs:
    """Every run of a study with its state, what it measured and how long it took."""
    made = [run for run in planned if not run.job.is_search]
    return Runs(_text(planned, status), _columns(study, made), status.failures)


def _text(planned: Sequence[Planned], status: Status) -> tuple[str, ...]:
    text = [sentences(replace(status, failures=()))]  # which have a table
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
    from curvewise.study.reading import label_of
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
    from curvewise.study.document import document_of
    from curvewise.study.toml import toml_text

    try:
        return toml_text(document_of(study, study.folder))
    except CurvewiseError:  # data in memory has no file that names it
        return ""
