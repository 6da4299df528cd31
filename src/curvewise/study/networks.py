"""Trained networks out of a store, as modules that can be called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from curvewise.errors import InputError
from curvewise.nn.task import Examples
from curvewise.study.reading import choose_runs
from curvewise.study.store import read_run

if TYPE_CHECKING:
    from torch import nn

    from curvewise.study.study import Study


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
    initial : nn.Module
        With the weights that it started from.
    examples : Examples
        What it was trained on.
    """

    run: str
    network: nn.Module
    initial: nn.Module
    examples: Examples


def choose_network(
    study: Study, learner: str | None, run: str | None, wanted: Mapping[str, Any]
) -> StudyNetwork:
    """The first stored network with these coordinates, or the one of a run."""
    if run is not None:
        return load_model(study, run)
    runs = choose_runs(study, learner=learner, **wanted)
    for found in runs:
        if "end" in found.record.get("files", {}):
            return load_model(study, found.job.id)
    raise InputError(
        f'None of the {len(runs)} runs has weights: say [keep] checkpoints = "end" and run the '
        "study."
    )


def load_model(study: Study, identity: str) -> StudyNetwork:
    """A trained network of a study, with its weights, its first weights and its examples."""
    from curvewise.nn.trained import initial_network, restore_network

    job = next((job for job in study.jobs if job.id == identity), None)
    if job is None:
        raise InputError(f"run={identity!r} is no run of this study: study.frame() lists them.")
    training = job.learner.training
    if training is None or job.learner.members > 1:
        raise InputError(
            f"run={identity!r} is of {job.name!r}, which is no single network of the engine's."
        )
    rows, whole = study.rows_of(job.n, job.fold), study.examples
    weights = read_run(study.runs_folder / identity).checkpoint("end")
    shape, classes = whole.shape, whole.classes
    return StudyNetwork(
        identity,
        restore_network(training, shape, classes, weights, study.folder),
        initial_network(training, shape, classes, job.seeds["init"], study.folder),
        replace(whole, x=whole.x[rows], y=whole.y[rows]),
    )
