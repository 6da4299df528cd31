"""Results of a study for the lenses: measurements, predictions, a table of runs, trained networks."""

from __future__ import annotations

import json
import math
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import CurvewiseWarning, InputError, UntrustedCodeError
from curvewise.nn.task import Examples
from curvewise.store.read import read_run
from curvewise.store.record import TEST
from curvewise.store.tables import (
    LOSSES,
    curve_name,
    failure_notes,
    measured_rows,
    reason_of,
    run_files,
    setting_text,
    shared_labels,
)
from curvewise.study.spec.study import Job
from curvewise.study.status import Planned, evaluation_digests, planned_runs
from curvewise.text import arg, either, list_names, suggest
from curvewise.types.measurements import Measurements
from curvewise.types.predictions import Predictions
from curvewise.types.results import data_frame
from curvewise.types.units import Unit

if TYPE_CHECKING:
    import pandas as pd
    from torch import nn

    from curvewise.study.spec.study import StudySpec


FRACTIONS = ("error", "train_error")
_RUN = either("study.run()", "`curvewise study run`")


def read_measurements(
    study: StudySpec, metric: str, evaluation: str, learner: str | None, settings: Mapping[str, Any]
) -> Measurements:
    """Read one value per run; failed runs are NaN."""
    check_evaluation(study, evaluation)
    runs = choose_runs(study, learner=learner, **settings)
    name = metric if evaluation == TEST else f"{metric}.{evaluation}"
    digest = evaluation_digests(study).get(evaluation)
    kept = [
        r for r in runs if r.state == "failed" or (name in r.standing.metrics and _was_evaluated(r, evaluation, digest))
    ]
    there = dict.fromkeys(k for r in runs for k in r.standing.metrics if r.state == "done")
    if there and name not in there:
        raise InputError(
            f"{arg('metric', name)} was measured in none of the {len(runs)} runs.{suggest(name, there)} "
            f"There are {list_names(there)}."
        )
    if not kept:
        raise InputError(_nothing(runs, f"a measured {name}", _RUN))
    notes = [*_notes(runs, kept, name), *_mixed(kept, metric)]
    for note in notes:
        warnings.warn(note, CurvewiseWarning, stacklevel=3)
    rows = measured_rows({r.job.id: r.record for r in kept}, name)
    return Measurements(
        learner=np.array([label_of(study, r.job) for r in kept]),
        n=np.array([row["n"] for row in rows], dtype=np.float64),
        error=np.array([row[name] for row in rows], dtype=np.float64),
        unit=Unit("fraction" if metric in FRACTIONS else "loss"),
        labels={
            **{k: _column(v) for k, v in _coordinates(study, kept).items()},
            "run": np.array([row["run"] for row in rows]),
        },
        notes=(*notes, *study.assumptions, *study.partition.warnings),
    )


def _was_evaluated(run: Planned, evaluation: str, digest: str | None) -> bool:
    """Return whether a run is stored and predicted this evaluation set as it is now."""
    return run.state in ("done", "outdated") and run.has_evaluation(evaluation, digest)


def _notes(runs: Sequence[Planned], kept: Sequence[Planned], name: str) -> list[str]:
    """Report what failed and what is missing; nothing is dropped in silence."""
    failed = [(r.job.name, reason_of(r.standing.text)) for r in kept if r.state == "failed"]
    ids = {r.job.id for r in kept}
    absent = Counter(r.state for r in runs if r.job.id not in ids)
    why = {
        "missing": "are not made yet",
        "damaged": "are damaged and left out",
        "outdated": f"were made without {name} as it is now, and are left out",
        "done": f"have no {name}, and are left out",
    }
    lost = [f"{k} of {len(runs)} planned runs {why[s]}." for s, k in absent.items()]
    return failure_notes(failed, len(runs)) + lost


def _mixed(kept: Sequence[Planned], metric: str) -> list[str]:
    """Report losses of different kinds side by side."""
    losses = sorted({str(r.job.learner.loss) for r in kept if r.job.learner.loss is not None})
    if len(losses) < 2 or metric not in ("loss", "train_loss", "gap"):
        return []
    return [
        f"The learners are judged by different losses ({', '.join(losses)}), whose values cannot "
        "be compared: choose with learner=."
    ]


def mixed_losses(study: StudySpec) -> list[str]:
    """Report learners of a study that are judged by different losses; empty if there are none."""
    return _mixed([r for r in planned_runs(study) if not r.job.is_search], "loss")


def read_predictions(
    study: StudySpec, learner: str | None, evaluation: str, probabilities: bool, settings: Mapping[str, Any]
) -> Predictions:
    """Map the predictions of the runs of one training, each run read when it is asked for."""
    check_evaluation(study, evaluation)
    runs = choose_runs(study, learner=learner, **settings)
    _check_one_training(study, runs)
    numbers = study.dataset.is_numbers
    if numbers and probabilities:
        raise InputError(f"{arg('probabilities', True)} is for classes, and the targets are numbers.")
    kind = "probabilities" if probabilities else LOSSES if numbers else "predictions"
    name = kind if evaluation == TEST else f"{kind}.{evaluation}"
    digest = evaluation_digests(study).get(evaluation)
    done = [r for r in runs if _was_evaluated(r, evaluation, digest) and name in r.record["arrays"]]
    if not done:
        hint = " Say [keep] probabilities = true and" if probabilities else ""
        raise InputError(_nothing(runs, name, f"{hint} {_RUN}".strip()))
    notes = _left_out(runs, done)
    records = {study.runs_folder / r.job.id: r.record for r in done}
    labels = None
    if not numbers:
        labels = shared_labels(records, evaluation, study.runs_folder)
        labels = study.evaluation_sets[evaluation].y if labels is None else labels.astype(np.int64)
    return Predictions(
        run_files(records, name),
        "labels" if kind == "predictions" else kind,
        labels=labels,
        classes=None if numbers else study.dataset.classes,
        run_ids=np.array([r.job.id for r in done]),
        notes=(*notes, *study.assumptions),
    )


def _left_out(runs: Sequence[Planned], done: Sequence[Planned]) -> list[str]:
    ids = {r.job.id for r in done}
    notes = [f"{len(done):,} of {len(runs):,} planned runs"]
    for state, count in Counter(r.state for r in runs if r.job.id not in ids).items():
        where = "missing" if state == "missing" else f"left out: {state}"
        note = f"{count} of {len(runs)} planned runs are {where}."
        warnings.warn(note, CurvewiseWarning, stacklevel=4)
        notes.append(note)
    if (folds := len({r.job.fold for r in done})) > 1:
        notes.append(f"runs on {folds} different training subsets")
    return notes


def _check_one_training(study: StudySpec, runs: Sequence[Planned]) -> None:
    """Refuse runs that differ in more than chance: they are not runs of one training."""
    for name in ("learner", *study.design.settings, "n", "vary"):
        values = [_coordinate(r.job, name) for r in runs]
        several = list({json.dumps(v, default=str): v for v in values}.values())
        if len(several) > 1:
            raise InputError(
                f"These runs are of more than one training: {name} is {', '.join(map(repr, several[:8]))}. Choose "
                f"with {arg(name, several[0])}."
            )


def read_frame(study: StudySpec) -> pd.DataFrame:
    """Make a table with one row per planned run: coordinates, settings that differ, status, metrics."""
    runs = [r for r in planned_runs(study) if not r.job.is_search]
    columns: dict[str, Any] = {
        "run": [r.job.id for r in runs],
        "learner": [r.job.name for r in runs],
        "n": [r.job.n for r in runs],
        **{k: _column(v) for k, v in _coordinates(study, runs).items()},
    }
    for name, values in _differing(runs).items():
        columns.setdefault(name, _column(values))
    if "loss" in columns:  # of the grid; the measured loss has this name
        columns.setdefault("judged", columns.pop("loss"))
    for name in dict.fromkeys(name for r in runs for name in r.standing.metrics):
        measured = [r.standing.metrics.get(name) for r in runs]
        values = [math.nan if v is None else float(v) for v in measured]
        if name == "rate" and name in columns and name not in study.design.settings:
            # One that was searched is a list in the settings, and a number once it is found.
            found = zip(columns[name], values, strict=True)
            columns[name] = [rates if math.isnan(v) else v for rates, v in found]
        else:
            columns[f"trained_{name}" if name in columns else name] = values
    columns["reason"] = [reason_of(r.standing.text) if r.state == "failed" else "" for r in runs]
    return data_frame(columns)


def _differing(runs: Sequence[Planned]) -> dict[str, list[Any]]:
    """Settings and options in which the learners differ."""
    about = []
    for job in (r.job for r in runs):
        own = job.learner.as_dict()
        options = own.pop("options", {})
        if job.learner.loss is not None:  # numbers: the measured loss has this name
            own = {k: v for k, v in own.items() if k != "loss"} | {"judged": job.learner.loss}
        about.append({**own, **options})
    names = dict.fromkeys(name for settings in about for name in settings)
    several = {name: {json.dumps(s[name], default=str) for s in about if name in s} for name in names}
    differ = [name for name, values in several.items() if len(values) > 1]
    return {name: [settings.get(name) for settings in about] for name in differ}


def _coordinates(study: StudySpec, runs: Sequence[Planned]) -> dict[str, list[Any]]:
    seeds = dict.fromkeys(k for r in runs for k in r.job.seeds)
    columns: dict[str, list[Any]] = {"fold": [r.job.fold for r in runs]}
    columns |= {f"{k}_seed": [r.job.seeds[k] for r in runs] for k in seeds}
    if any(r.job.poke for r in runs):
        columns["poke_seed"] = [-1 if r.job.poke is None else r.job.poke.seed for r in runs]
    columns |= {k: [r.job.settings.get(k) for r in runs] for k in study.design.settings}
    if len(study.design.variations) > 1:
        columns["vary"] = [r.job.varies for r in runs]
    return columns | {"status": [r.state for r in runs]}


def _column(values: Sequence[Any]) -> NDArray[Any]:
    """Numbers and words as they are, lists as text."""
    if any(isinstance(v, list | tuple | Mapping) for v in values):
        return np.array([setting_text(v) for v in values])
    if all(isinstance(v, bool) for v in values):
        return np.array(values, dtype=bool)
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        return np.array(values)
    if all(isinstance(v, str) for v in values):
        return np.array(values)
    return np.array(values, dtype=object)


def label_of(study: StudySpec, job: Job) -> str:
    """Name a curve: the learner, and the settings of the grid that make it another one."""
    varies = {"vary": job.varies} if len(study.design.variations) > 1 else {}
    # Sorted, as in the records of a store, so that both give a curve the same name.
    return curve_name(job.name, {**dict(sorted(job.settings.items())), **varies})


def choose_runs(study: StudySpec, *, learner: str | None = None, **wanted: Any) -> list[Planned]:
    """Choose the planned runs with the given learner, size, fold, variation or settings of the grid."""
    known = ("n", "fold", "vary", *study.design.settings)
    for name in wanted:
        if name not in known:
            raise InputError(f"{name}= is no coordinate of this study: it has {', '.join(known)}.")
    runs = [r for r in planned_runs(study) if not r.job.is_search]
    asked = {"learner": learner, **wanted}
    for name, value in asked.items():
        if value is None:
            continue
        there = [_coordinate(r.job, name) for r in runs]
        runs = [r for r, v in zip(runs, there, strict=True) if _same(v, value)]
        if not runs:
            values = ", ".join(dict.fromkeys(map(repr, there)))
            raise InputError(f"{arg(name, value)} is in no run of the study: there is {values}.")
    return runs


def _coordinate(job: Job, name: str) -> Any:
    fixed = {"learner": job.name, "n": job.n, "fold": job.fold, "vary": job.varies}
    return fixed[name] if name in fixed else job.settings.get(name)


def _same(value: Any, asked: Any) -> bool:
    if isinstance(value, list | tuple) and isinstance(asked, list | tuple):
        return list(value) == list(asked)
    if isinstance(value, str) and not isinstance(asked, str) and isinstance(asked, Iterable):
        return value == "+".join(asked)  # vary=["init", "order"]
    return bool(value == asked)


def check_evaluation(study: StudySpec, evaluation: str) -> None:
    """Refuse a name that no evaluation set of the study has."""
    known = [TEST, *study.evaluate]
    if evaluation not in known:
        raise InputError(
            f"{arg('evaluation', evaluation)} is no evaluation set of the study: there is {', '.join(known)}."
        )


def _nothing(runs: Sequence[Planned], what: str, way: str) -> str:
    states = ", ".join(f"{k} {s}" for s, k in Counter(r.state for r in runs).items())
    return f"None of the {len(runs)} runs has {what} ({states}): {way} first."


# ---- Trained networks


@dataclass(frozen=True, eq=False)
class StudyNetwork:
    """A trained network of a study, and what belongs to it.

    Attributes
    ----------
    run : str
        Id of the run.
    network : nn.Module
        With its weights, in evaluation mode, on the CPU. It takes images as ``examples.mean`` and
        ``examples.std`` normalise them.
    initial : nn.Module, optional
        With the weights that it started from; None where only its last layer was trained.
    examples : Examples
        Its training subset, with the share that a schedule held out for validation.
    """

    run: str
    network: nn.Module
    initial: nn.Module | None
    examples: Examples


def choose_network(study: StudySpec, learner: str | None, run: str | None, wanted: Mapping[str, Any]) -> StudyNetwork:
    """The first stored network with these coordinates, or the one of a run."""
    if run is not None:
        return load_model(study, run)
    runs = choose_runs(study, learner=learner, **wanted)
    for found in runs:
        if has_network(found):
            return load_model(study, found.job.id)
    raise InputError(
        f"None of the {len(runs)} runs has the weights of a single network: say [keep] "
        'checkpoints = "end" and run the study.'
    )


def has_network(run: Planned) -> bool:
    """Return whether the store holds a network of this run: an ensemble has several, others none."""
    return run.state in ("done", "outdated") and "end" in run.record.get("files", {})


def load_model(study: StudySpec, identity: str) -> StudyNetwork:
    """A trained network of a study, with its weights, its first weights and its examples."""
    from curvewise.nn.networks import initial_network, restore_network

    job = next((job for job in study.jobs if job.id == identity), None)
    if job is None:
        raise InputError(f"run={identity!r} is no run of this study: study.frame() lists them.")
    training = job.learner.training
    if training is None or job.learner.members > 1:
        raise InputError(
            f"run={identity!r} is of {job.name!r}, which is no single network: choose a learner "
            "with an architecture and one member."
        )
    if job.is_search:
        raise InputError(f"run={identity!r} is a search for a learning rate, and has no network.")
    if (place := study.unimported(job.learner)) is not None:
        raise UntrustedCodeError(
            f"run={identity!r} is of {job.name!r}, which is made by {place}: its code is not "
            "imported unless the study is loaded with trust=True."
        )
    rows, whole = study.rows_of(job.n, job.fold), study.examples
    weights = read_run(study.runs_folder / identity).checkpoint("end")
    shape, classes, seed = whole.shape, whole.outputs, job.seeds["init"]
    initial = None
    if training.trained == "all":
        initial = initial_network(training, shape, classes, seed, study.folder)
    return StudyNetwork(
        identity,
        restore_network(training, shape, classes, weights, study.folder, seed),
        initial,
        replace(whole, x=whole.x[rows], y=whole.y[rows]),
    )
