"""Ground truth for ranking checkpoints, out of studies that fine-tuned them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from curvewise.errors import InputError, StoreError
from curvewise.ranking.scores import ONE_GROUP, CheckpointScores
from curvewise.store.read import is_file
from curvewise.store.record import REMEDY, TEST, part_file
from curvewise.study.results import choose_runs, label_of
from curvewise.study.spec.study import Job

if TYPE_CHECKING:
    from curvewise.study.study import Study


def checkpoint_files(
    study: Study, learner: str | None = None, *, n: int | None = None, **settings: Any
) -> dict[str, str]:
    """Files of the weights that a study kept, by name: what :func:`study_recipe` fine-tunes.

    Parameters
    ----------
    study : Study
        With ``[keep] checkpoints = "drops"`` (at every drop of the learning rate, and at the end)
        or ``"end"``, and run.
    learner : str, optional
        Only this one's.
    n : int, optional
        Only of this training size.
    **settings
        Only runs with these: ``fold``, ``vary``, names of the grid.

    Returns
    -------
    dict of str to str
        Paths by names such as ``"resnet50 drop-1"``; runs that differ by chance alone are
        numbered.

    Raises
    ------
    InputError
        If no run has weights.
    """
    runs = choose_runs(study, learner=learner, n=n, **settings)
    kept = [r for r in runs if r.state in ("done", "outdated") and r.record.get("files")]
    if not kept:
        raise InputError(
            f'None of the {len(runs)} runs has kept weights: say [keep] checkpoints = "drops" and run the study.'
        )
    labels = [label_of(study, r.job) for r in kept]
    found: dict[str, str] = {}
    for place, (run, label) in enumerate(zip(kept, labels, strict=True)):
        several = labels.count(label) > 1
        name = f"{label} #{labels[: place + 1].count(label)}" if several else label
        folder = (study.runs_folder / run.job.id).resolve()
        for moment in sorted(run.record["files"], key=_moment):
            path = folder / part_file("files", moment)
            if not is_file(path):
                raise StoreError(f"{path} is missing, or is no plain file. {REMEDY}")
            found[f"{name} {moment}"] = str(path)
    return found


def _moment(name: str) -> tuple[bool, int, str]:
    """Drops in their order, then the end."""
    number = name.rpartition("-")[2]
    return name == "end", int(number) if number.isdigit() else 0, name


def ranking_table(
    studies: Study | Mapping[str, Study],
    *,
    evaluation: str = TEST,
    n: int | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
) -> CheckpointScores:
    """Accuracies after fine-tuning for every checkpoint and task, as in Li et al. 2021.

    A checkpoint is a learner with ``weights``; runs of a grid that varies ``weights`` are
    checkpoints called by their files. Its accuracy is the best over all other settings, of the
    mean over folds and seeds of each. Learners without weights are trained from scratch, which is
    a reference.

    Parameters
    ----------
    studies : Study or dict of str to Study
        By task; a single one is called by its name.
    evaluation : str
        Accuracy on which evaluation set. The best on the test set is what the paper takes, and is
        a little too good for every checkpoint alike.
    n : int, optional
        Training size; by default the largest of each study.
    groups : dict of str to sequence of str, optional
        Learners of each group; a reference belongs to all of them.

    Returns
    -------
    CheckpointScores
        Without scores: add them with :func:`add_rankings` or ``with_scores``. Its notes name what
        failed or is missing.

    Raises
    ------
    InputError
        If no run is done, or a group names a learner that is not there.

    Warns
    -----
    CurvewiseWarning
        If runs failed or are missing.
    """
    by_task = studies if isinstance(studies, Mapping) else {studies.name: studies}
    if not by_task:
        raise InputError("studies is empty: give at least one.")
    rows: list[tuple[str, str, str, float]] = []
    references: dict[str, None] = {}
    notes: list[str] = []
    for task, study in by_task.items():
        best, scratch, said = _best_of(study, evaluation, n)
        notes += [f"{task}: {text}" for text in said]
        references |= dict.fromkeys(scratch)
        for (learner, name), accuracy in best.items():
            found = _groups_of(learner, name in scratch, groups)
            rows += [(group, task, name, accuracy) for group in found]
    _check_groups(groups, by_task)
    if not rows:
        raise InputError("groups names no learner that has runs: there is nothing to rank.")
    return CheckpointScores(
        np.array([name for _, _, name, _ in rows]),
        np.array([accuracy for *_, accuracy in rows], dtype=np.float64),
        tasks=np.array([task for _, task, _, _ in rows]),
        groups=np.array([group for group, *_ in rows]),
        reference=tuple(references),
        notes=tuple(notes),
    )


def _best_of(study: Study, evaluation: str, n: int | None) -> tuple[dict[tuple[str, str], float], list[str], list[str]]:
    """Best accuracy by learner and checkpoint, which of them are from scratch, and notes."""
    size = max(job.n for job in study.jobs if not job.is_search) if n is None else n
    measured = study.measurements(evaluation=evaluation, n=size)
    jobs = {job.id: job for job in study.jobs}
    names = _names(study.jobs)
    errors: dict[tuple[str, str], dict[str, list[float]]] = {}
    scratch: list[str] = []
    for run, error in zip(measured.labels["run"].tolist(), measured.error.tolist(), strict=True):
        job = jobs[run]
        key = (job.name, names[job.id])
        if _weights(job) is None:
            scratch.append(key[1])
        settings = json.dumps(dict(job.settings), sort_keys=True, default=str)
        errors.setdefault(key, {}).setdefault(settings, []).append(error)
    best = {key: _best(map(_accuracy, found.values())) for key, found in errors.items()}
    tried = max(len(found) for found in errors.values())
    notes = [f"n = {size}", *measured.notes]
    if tried > 1:
        notes.append(f"best of up to {tried} settings on {evaluation!r}")
    return best, list(dict.fromkeys(scratch)), notes


def _accuracy(errors: Sequence[float]) -> float:
    """Mean over folds and seeds of those that did not fail; NaN if all did."""
    known = [e for e in errors if not math.isnan(e)]
    return 1 - math.fsum(known) / len(known) if known else math.nan


def _best(accuracies: Iterable[float]) -> float:
    return max((a for a in accuracies if not math.isnan(a)), default=math.nan)


def _weights(job: Job) -> str | None:
    return None if job.learner.training is None else job.learner.training.weights


def _names(jobs: Sequence[Job]) -> dict[str, str]:
    """Name what was fine-tuned: the learner, and the file where a grid varies it.

    Files of one name in several folders are called by their whole paths.
    """
    found = {}
    files = {w for job in jobs if "weights" in job.settings and (w := _weights(job))}
    stems = [PurePath(file).stem for file in files]
    for job in jobs:
        file = _weights(job) if "weights" in job.settings else None
        stem = "" if file is None else PurePath(file).stem
        own = file if stems.count(stem) > 1 else stem
        found[job.id] = f"{job.name} {own}" if own else job.name
    return found


def _groups_of(learner: str, scratch: bool, groups: Mapping[str, Sequence[str]] | None) -> list[str]:
    if groups is None:
        return [ONE_GROUP]
    if scratch and not any(learner in names for names in groups.values()):
        return list(groups)
    return [group for group, names in groups.items() if learner in names]


def _check_groups(groups: Mapping[str, Sequence[str]] | None, studies: Mapping[str, Study]) -> None:
    known = {name for study in studies.values() for name in study.learners}
    for group, names in (groups or {}).items():
        if isinstance(names, str):
            raise InputError(f"groups[{group!r}] is one text: give a list of learners.")
        for name in names:
            if name not in known:
                raise InputError(
                    f"groups[{group!r}] names {name!r}, which is no learner: there are {', '.join(sorted(known))}."
                )
