"""A corpus of models out of a study: hyperparameters, generalization gap, and measures."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.study.execute.local import ONE_THREAD
from curvewise.study.networks import load_model
from curvewise.study.progress import progress_bar
from curvewise.study.reading import label_of
from curvewise.study.standings import Planned, planned_runs
from curvewise.types import ModelCorpus

if TYPE_CHECKING:
    from curvewise.study.study import Study

TEST = "test"


@dataclass(frozen=True, eq=False)
class Measured:
    """What was found for one network.

    Attributes
    ----------
    values : dict of str to float
        By measure.
    orientation : dict of str to int
        Whether more means a larger gap (1) or a smaller one (−1).
    notes : tuple of str
        What went wrong.
    """

    values: Mapping[str, float]
    orientation: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def measure_corpus(
    study: Study,
    measures: Sequence[str] | None = None,
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
    measures : sequence of str, optional
        Names of :data:`curvewise.nn.measures.MEASURES`; all that can be computed by default.
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
        Processes that measure side by side; 0 works in this one.
    rng : int
        Decides examples and perturbations, the same for all networks.
    progress : bool, optional
        Whether to show a bar on stderr; by default on a terminal.
    tell : callable, optional
        Called with the id of each run and what was measured, as soon as it is.

    Returns
    -------
    ModelCorpus
        The settings of the grid are the hyperparameters. Runs that failed or are missing are named
        in its notes; a measure that could not be computed is NaN.

    Raises
    ------
    InputError
        If there is no run with weights.
    """
    if seeds not in ("each", "first"):
        raise InputError(f"seeds={seeds!r}: use 'each' or 'first'.")
    chosen, twins, notes = _choose(study, seeds)
    look = partial(_measure, measures=measures, examples=examples, device=device, rng=rng)
    tasks = [(run.job.id, twins.get(run.job.id)) for run in chosen]
    found = look_at_runs(study, look, tasks, workers, progress, tell)
    return make_corpus(study, chosen, found, evaluation, notes)


def make_corpus(
    study: Study,
    runs: Sequence[Planned],
    found: Sequence[Measured],
    evaluation: str,
    notes: Sequence[str] = (),
) -> ModelCorpus:
    """Put what was measured beside settings and gaps."""
    metric = "error" if evaluation == TEST else f"error.{evaluation}"
    if any(metric not in r.standing.metrics for r in runs):
        there = sorted({k for r in runs for k in r.standing.metrics if k.startswith("error")})
        raise InputError(
            f"evaluation={evaluation!r}: the runs have no {metric}; there is {', '.join(there)}."
        )
    names = list(dict.fromkeys(name for one in found for name in one.values))
    train = np.array([r.standing.metrics["train_error"] for r in runs], dtype=np.float64)
    error = np.array([r.standing.metrics[metric] for r in runs], dtype=np.float64)
    orientation: dict[str, int] = {}
    for one in found:
        orientation |= one.orientation
    said = Counter(re.sub(r"\d+(\.\d+)?", "…", note) for one in found for note in one.notes)
    return ModelCorpus(
        models=tuple(f"{label_of(study, r.job)}, {r.job.id[:8]}" for r in runs),
        hyperparameters={
            name: _values([r.job.settings.get(name) for r in runs])
            for name in study.design.settings
        },
        gap=error - train,
        measures={
            name: np.array([one.values.get(name, np.nan) for one in found], dtype=np.float64)
            for name in names
        },
        orientation=orientation,
        train_accuracy=1 - train,
        notes=(*notes, *(f"{text} ({k} of {len(runs)} models)" for text, k in said.items())),
    )


def _values(values: Sequence[Any]) -> NDArray[Any]:
    """Settings as a column; lists as text."""
    if any(isinstance(v, list | tuple | Mapping) or v is None for v in values):
        return np.array([json.dumps(v) for v in values])
    return np.array(values)


def done_runs(study: Study) -> tuple[list[Planned], list[str]]:
    """The runs that have weights, and what is to be said of the others."""
    runs = [r for r in planned_runs(study) if not r.job.is_search]
    done = [
        r for r in runs if r.state in ("done", "outdated") and "end" in r.record.get("files", {})
    ]
    there = {r.job.id for r in done}
    left = Counter(r.state for r in runs if r.job.id not in there)
    notes = [
        f"{k} of {len(runs)} planned runs are {'without weights' if s == 'done' else s} and left "
        "out."
        for s, k in left.items()
    ]
    if not done:
        states = ", ".join(f"{k} {s}" for s, k in left.items())
        raise InputError(
            f"None of the {len(runs)} runs has weights ({states}): say [keep] checkpoints = "
            '"end" and run the study.'
        )
    for note in notes:
        warnings.warn(note, CurvewiseWarning, stacklevel=4)
    return done, notes


def _choose(study: Study, seeds: str) -> tuple[list[Planned], dict[str, str], list[str]]:
    """Which runs are models, and which run is whose twin."""
    done, notes = done_runs(study)
    groups: dict[str, list[Planned]] = {}
    for run in done:
        same = json.dumps([run.job.name, run.job.settings, run.job.n, run.job.fold], default=str)
        groups.setdefault(same, []).append(run)
    twins = {}
    for group in groups.values():
        for one, other in zip(group, [*group[1:], group[0]], strict=True):
            if len(group) > 1:
                twins[one.job.id] = other.job.id
    chosen = done if seeds == "each" else [group[0] for group in groups.values()]
    return chosen, twins, notes


Look = Callable[["Study", tuple[str, str | None]], Measured]


def look_at_runs(
    study: Study,
    look: Look,
    tasks: Sequence[tuple[str, str | None]],
    workers: int,
    progress: bool | None,
    tell: Callable[[str, Measured], None] | None = None,
) -> list[Measured]:
    """Look at every run, in this process or in several, and give what was found in order."""
    found: dict[int, Measured] = {}
    with progress_bar("measuring", len(tasks), progress) as advance:
        for index, measured in _each(study, look, tasks, workers):
            found[index] = measured
            if tell is not None:
                tell(tasks[index][0], measured)
            advance(1, f"{len(found)}/{len(tasks)} models")
    return [found[i] for i in range(len(tasks))]


def _each(
    study: Study, look: Look, tasks: Sequence[tuple[str, str | None]], workers: int
) -> Iterator[tuple[int, Measured]]:
    if not workers:
        for index, task in enumerate(tasks):
            yield index, look(study, task)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _start, (study, dict(ONE_THREAD))) as pool:
        waiting = {pool.submit(_look, look, task): i for i, task in enumerate(tasks)}
        for future in as_completed(waiting):
            yield waiting[future], future.result()


_STUDY: list[Study] = []


def _start(study: Study, variables: dict[str, str]) -> None:
    os.environ.update(variables)
    _STUDY[:] = [study]  # its data is loaded once, when the first task needs it


def _look(look: Look, task: tuple[str, str | None]) -> Measured:
    return look(_STUDY[0], task)


def _measure(
    study: Study,
    task: tuple[str, str | None],
    *,
    measures: Sequence[str] | None,
    examples: int,
    device: str | None,
    rng: int,
) -> Measured:
    from curvewise.nn.measures import measure_model

    model = load_model(study, task[0])
    twin = load_model(study, task[1]).network if task[1] else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)  # kept on the result, said once for all
        found = measure_model(
            model.network,
            model.examples,
            measures,
            examples=examples,
            initial=model.initial,
            twin=twin,
            device=device,
            rng=rng,
            name=task[0][:8],
        )
    return Measured(found.values, found.orientation, found.warnings)
