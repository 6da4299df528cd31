"""A corpus of models out of a study: hyperparameters, generalization gap, and measures."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.io._table import brief, listed, suggest
from curvewise.study._looking import Measured, Task, look_at_runs, tasks_for
from curvewise.study.networks import has_network, load_model
from curvewise.study.reading import label_of
from curvewise.study.standings import Planned, evaluation_digests, planned_runs
from curvewise.types import ModelCorpus

if TYPE_CHECKING:
    from torch import nn

    from curvewise.nn.measures import Measure
    from curvewise.study.study import Study

TEST = "test"


def measure_corpus(
    study: Study,
    measures: str | Measure | Sequence[str | Measure] | None = None,
    *,
    evaluation: str = TEST,
    examples: int = 5000,
    seeds: str = "each",
    device: str | None = None,
    workers: int = 0,
    rng: int = 0,
    progress: bool | None = None,
    tell: Callable[[str, Measured], None] | None = None,
) -> ModelCorpus:
    """Measure every trained network of a study, and put it beside its generalization gap.

    Parameters
    ----------
    study : Study
        With ``[keep] checkpoints = "end"``, and run.
    measures : str, Measure or sequence of them, optional
        Names of :func:`list_measures`, or measures of your own; all that can be computed by
        default.
    evaluation : str
        The gap is the error on this evaluation set less the error on the training examples.
    examples : int
        Training examples to measure on, drawn at random.
    seeds : {"each", "first"}
        Whether every run is a model, or one of each training; another seed of the same training,
        where there is one, is the twin that disagreement is measured with in both cases.
    device : str, optional
        ``"cpu"`` or ``"cuda"``; by default a GPU if there is one.
    workers : int
        Processes that measure side by side, each on one thread and with the same results; 0
        works in this one.
    rng : int
        Decides examples and perturbations, the same for all networks.
    progress : bool, optional
        Whether to show a bar on stderr; by default on a terminal.
    tell : callable, optional
        Called with the id of each run and what was measured, as soon as it is.

    Returns
    -------
    ModelCorpus
        The settings of the grid are the hyperparameters; so are learner and n where the study has
        several. Runs that failed, are missing or have no network are named in its notes. A measure
        that could not be computed is NaN, as are all of a network that cannot be rebuilt, and the
        notes say why.

    Raises
    ------
    InputError
        If an argument cannot be used, there is no run with weights, or no network can be measured.
    """
    if seeds not in ("each", "first"):
        raise InputError(f"seeds={seeds!r}: use 'each' or 'first'.")
    asked = _asked(measures)
    done, notes = done_runs(study, evaluation)
    say(notes, stacklevel=3)
    chosen, twins = _choose(done, seeds)
    _check_twins(asked, twins)
    tasks = tasks_for(study, [r.job.id for r in chosen], device, workers, twins)
    look = partial(_measure, measures=asked, examples=examples, rng=rng)
    found = look_at_runs(study, look, tasks, workers, progress, tell)
    corpus = make_corpus(study, chosen, found, evaluation, notes)
    say(corpus.notes[len(notes) :], stacklevel=3)
    return corpus


def say(notes: Sequence[str], stacklevel: int) -> None:
    """Warn of notes."""
    for note in notes:
        warnings.warn(note, CurvewiseWarning, stacklevel=stacklevel)


def make_corpus(
    study: Study,
    runs: Sequence[Planned],
    found: Sequence[Measured],
    evaluation: str,
    notes: Sequence[str] = (),
) -> ModelCorpus:
    """Put what was measured beside settings and gaps."""
    names = list(dict.fromkeys(name for one in found for name in one.values))
    train = np.array([r.standing.metrics["train_error"] for r in runs], dtype=np.float64)
    error = np.array([r.standing.metrics[metric_of(evaluation)] for r in runs], dtype=np.float64)
    orientation: dict[str, int] = {}
    for one in found:
        orientation |= one.orientation
    return ModelCorpus(
        models=tuple(f"{label_of(study, r.job)}, {r.job.id[:8]}" for r in runs),
        hyperparameters=settings_of(study, runs),
        gap=error - train,
        measures={
            name: np.array([one.values.get(name, np.nan) for one in found], dtype=np.float64)
            for name in names
        },
        orientation=orientation,
        train_accuracy=1 - train,
        notes=(*notes, *_said(found)),
    )


def _said(found: Sequence[Measured]) -> list[str]:
    """What is to be said of the networks, once where it is the same but for numbers."""
    lost = [note for one in found if not one.values for note in one.notes]
    alike: dict[str, list[str]] = {}
    for note in (note for one in found if one.values for note in dict.fromkeys(one.notes)):
        alike.setdefault(re.sub(r"\d+(\.\d+)?", "…", note), []).append(note)
    return lost + [
        f"{texts[0]} ({'' if len(set(texts)) == 1 else 'or alike, '}{len(texts)} of {len(found)} "
        "models)"
        for texts in alike.values()
    ]


def settings_of(study: Study, runs: Sequence[Planned]) -> dict[str, NDArray[Any]]:
    """What the runs differ in by design: learner and size where there are several, and the grid."""
    several: dict[str, list[Any]] = {
        "learner": [r.job.name for r in runs],
        "n": [r.job.n for r in runs],
    }
    columns = {name: np.array(v) for name, v in several.items() if len(set(v)) > 1}
    for name in study.design.settings:
        columns[name] = _values([r.job.settings.get(name) for r in runs])
    return columns


def _values(values: Sequence[Any]) -> NDArray[Any]:
    """Settings as a column; lists as text."""
    if any(isinstance(v, list | tuple | Mapping) or v is None for v in values):
        return np.array([json.dumps(v) for v in values])
    return np.array(values)


def metric_of(evaluation: str) -> str:
    """The error on an evaluation set, as runs call it."""
    return "error" if evaluation == TEST else f"error.{evaluation}"


def done_runs(study: Study, evaluation: str) -> tuple[list[Planned], list[str]]:
    """The runs that have weights and errors, and what is to be said of the others."""
    if evaluation not in (TEST, *study.evaluate):
        raise InputError(
            f"evaluation={evaluation!r} is no evaluation set of the study: there is "
            f"{', '.join((TEST, *study.evaluate))}."
        )
    if study.dataset.is_numbers:
        raise InputError("Models are measured by their errors on classes, and targets are numbers.")
    runs = [r for r in planned_runs(study) if not r.job.is_search]
    digest = evaluation_digests(study).get(evaluation)
    lacks = [_lack(r, evaluation, digest) for r in runs]
    done = [r for r, lack in zip(runs, lacks, strict=True) if lack is None]
    others: dict[str, list[str]] = {}
    for run, lack in zip(runs, lacks, strict=True):
        if lack is not None:
            others.setdefault(f"{lack} and left out", []).append(run.job.id[:8])
        elif run.state == "outdated":
            why = f"outdated and taken as they are ({run.standing.text.rstrip('.')})"
            others.setdefault(why, []).append(run.job.id[:8])
    notes = [
        f"{len(ids)} of {len(runs)} planned runs are {what}: {_few(ids)}."
        for what, ids in others.items()
    ]
    if not done:
        raise InputError(
            f"None of the {len(runs)} runs can be measured: say [keep] checkpoints = "
            f'"end" and run the study. {" ".join(notes)}'
        )
    return done, notes


def _lack(run: Planned, evaluation: str, digest: str | None) -> str | None:
    """Why a run is no model of the corpus; None if it is one."""
    if run.state not in ("done", "outdated"):
        return run.state
    if run.job.learner.training is None or run.job.learner.members > 1:
        return "no single network"
    if not has_network(run):
        return "without weights"
    for metric in ("train_error", metric_of(evaluation)):
        if metric not in run.standing.metrics:
            return f"without {metric}"
    return (
        None if run.has_evaluation(evaluation, digest) else f"without {evaluation!r} as it is now"
    )


def _few(ids: Sequence[str]) -> str:
    return ", ".join([*ids[:5], *(["…"] if len(ids) > 5 else [])])


def _choose(done: Sequence[Planned], seeds: str) -> tuple[list[Planned], dict[str, str]]:
    """Which runs are models, and which run is whose twin."""
    groups: dict[str, list[Planned]] = {}
    for run in done:
        job = run.job
        same = [job.name, job.settings, job.n, job.fold, job.varies]
        groups.setdefault(json.dumps(same, default=str), []).append(run)
    twins = {}
    for group in groups.values():
        for one, other in zip(group, [*group[1:], group[0]], strict=True):
            if len(group) > 1:
                twins[one.job.id] = other.job.id
    return list(done) if seeds == "each" else [group[0] for group in groups.values()], twins


def _asked(measures: Any) -> list[Measure] | None:
    """Measures by their names; None for all."""
    from curvewise.nn.measures import MEASURES, Measure

    if measures is None:
        return None
    asked = [measures] if isinstance(measures, str | Measure) else list(measures)
    if not asked:
        raise InputError("measures is empty: name at least one, or leave it out for all.")
    for measure in asked:
        if not isinstance(measure, Measure) and measure not in MEASURES:
            raise InputError(
                f"measures: {brief(measure)} is not known: use one of "
                f"{listed(MEASURES, 60)}.{suggest(measure, MEASURES)}"
            )
    return [m if isinstance(m, Measure) else MEASURES[m] for m in asked]


def _check_twins(asked: list[Measure] | None, twins: Mapping[str, str]) -> None:
    for measure in asked or ():
        if "twin" in measure.needs and not twins:
            raise InputError(
                f"measure {measure.name!r} needs two seeds of a training, and the study has one: "
                "say [design] seeds = 2 and run it."
            )


def _measure(
    study: Study, task: Task, *, measures: list[Measure] | None, examples: int, rng: int
) -> Measured:
    from curvewise.nn.measures import measure_model

    model = load_model(study, task.run)
    wanted = measures is None or any("twin" in m.needs for m in measures)
    twin, notes = _twin(study, task.twin if wanted else None)
    there = {"initial": model.initial, "twin": twin}
    lost = [m for m in measures or () if any(there.get(k, model) is None for k in m.needs)]
    kept = None if measures is None else [m for m in measures if m not in lost]
    values = dict.fromkeys((m.name for m in lost), np.nan)
    orientation = {m.name: m.orientation for m in lost}
    notes += [f"{m.name}: needs {' and '.join(k for k in m.needs if k in there)}." for m in lost]
    if kept == []:
        return Measured(values, orientation, tuple(notes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)  # kept on the result, said once for all
        found = measure_model(
            model.network,
            model.examples,
            kept,
            examples=examples,
            initial=model.initial,
            twin=twin,
            device=task.device,
            rng=rng,
            progress=False,
            name=task.run[:8],
        )
    return Measured(
        {**values, **found.values},
        {**orientation, **found.orientation},
        (*notes, *found.warnings),
    )


def _twin(study: Study, run: str | None) -> tuple[nn.Module | None, list[str]]:
    """The network of another seed, or why there is none."""
    if run is None:
        return None, []
    try:
        return load_model(study, run).network, []
    except Exception as error:  # the run itself can be measured all the same
        return None, [f"Its twin {run[:8]} cannot be used: {error}"]
