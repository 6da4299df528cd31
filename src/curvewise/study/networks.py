"""Trained networks out of a store, as modules that can be called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from curvewise.errors import InputError, UntrustedCodeError
from curvewise.nn.task import Examples
from curvewise.study.reading import choose_runs
from curvewise.study.standings import Planned
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
    initial : nn.Module, optional
        With the weights that it started from; None where only its last layer was trained.
    examples : Examples
        Its training subset, with the share that a schedule held out for validation.
    """

    run: str
    network: nn.Module
    initial: nn.Module | None
    examples: Examples


def choose_network(
    study: Study, learner: str | None, run: str | None, wanted: Mapping[str, Any]
) -> StudyNetwork:
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
    """Whether the store holds a network of this run: an ensemble has several, others none."""
    return run.state in ("done", "outdated") and "end" in run.record.get("files", {})


def load_model(study: Study, identity: str) -> StudyNetwork:
    """A trained network of a study, with its weights, its first weights and its examples."""
    from curvewise.nn.trained import initial_network, restore_network

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
