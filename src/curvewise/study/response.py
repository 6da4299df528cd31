"""A corpus of models out of a study: hyperparameters, generalization gap, and measures."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import CurvewiseError, InputError, MissingDependencyError, quietly, warn_all
from curvewise.nn.own_code import installed_only
from curvewise.progress import progress_bar
from curvewise.response.judgement import MeasureJudgement, judge_measures
from curvewise.response.load import ModelCorpus
from curvewise.store.record import TEST, data_digest, set_name
from curvewise.store.write import write_file
from curvewise.study.status import Planned, choose_devices, evaluation_digests, planned_runs
from curvewise.study.study import Study, check_evaluation, has_network, label_of, load_model

if TYPE_CHECKING:
    from torch import nn

    from curvewise.response.curve import CorpusSensitivity
    from curvewise.response.networks.subject import Measure


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
    tell: Callable[[str, NetworkMeasures], None] | None = None,
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
        raise InputError("use 'each' or 'first'.", argument="seeds", value=seeds)
    if isinstance(measures, Iterable) and not isinstance(measures, str):
        measures = list(measures)
    asked = _asked(measures)
    done, notes = done_runs(study, evaluation)
    warn_all(notes, stacklevel=3)
    chosen, twins = _choose(done, seeds)
    for measure in asked or ():
        if "twin" in measure.needs and not twins:
            raise InputError(
                f"measure {measure.name!r} needs two seeds of a training, and the study has one: "
                "say [design] seeds = 2 and run it."
            )
    tasks = tasks_for(study, [r.job.id for r in chosen], device, workers, twins)
    # By name, as given: workers look measures up themselves, since not all of them can be pickled.
    look = partial(_measure, given=measures, examples=examples, rng=rng)
    found = measure_runs(study, look, tasks, workers, progress, tell)
    corpus = make_corpus(study, chosen, found, evaluation, notes)
    warn_all(corpus.notes[len(notes) :], stacklevel=3)
    return corpus


def make_corpus(
    study: Study, runs: Sequence[Planned], found: Sequence[NetworkMeasures], evaluation: str, notes: Sequence[str] = ()
) -> ModelCorpus:
    """Put measures beside settings and gaps."""
    names = list(dict.fromkeys(name for one in found for name in one.values))
    train = np.array([r.standing.metrics["train_error"] for r in runs], dtype=np.float64)
    error = np.array([r.standing.metrics[set_name("error", evaluation)] for r in runs], dtype=np.float64)
    orientation: dict[str, int] = {}
    for one in found:
        orientation |= one.orientation
    return ModelCorpus(
        models=tuple(_model_name(study, r) for r in runs),
        hyperparameters=settings_of(study, runs),
        gap=error - train,
        measures={name: np.array([one.values.get(name, np.nan) for one in found], dtype=np.float64) for name in names},
        orientation=orientation,
        train_accuracy=1 - train,
        notes=(*notes, *_gather_notes(found)),
    )


def _model_name(study: Study, run: Planned) -> str:
    return f"{label_of(study, run.job)}, {run.job.id[:8]}"


def _gather_notes(found: Sequence[NetworkMeasures]) -> list[str]:
    """Gather the notes on the networks; notes that differ only in numbers are given once."""
    lost = [note for one in found if not one.values for note in one.notes]
    alike: dict[str, list[str]] = {}
    for note in (note for one in found if one.values for note in dict.fromkeys(one.notes)):
        alike.setdefault(re.sub(r"\d+(\.\d+)?", "…", note), []).append(note)
    return lost + [
        f"{texts[0]} ({'' if len(set(texts)) == 1 else 'or alike, '}{len(texts)} of {len(found)} models)"
        for texts in alike.values()
    ]


def settings_of(study: Study, runs: Sequence[Planned]) -> dict[str, NDArray[Any]]:
    """Return the columns in which the runs differ by design: learner and size where there are several, and the grid."""
    several: dict[str, list[Any]] = {"learner": [r.job.name for r in runs], "n": [r.job.n for r in runs]}
    columns = {name: np.array(v) for name, v in several.items() if len(set(v)) > 1}
    for name in study.design.settings:
        values = [r.job.settings.get(name) for r in runs]
        nested = any(isinstance(v, list | tuple | Mapping) or v is None for v in values)
        columns[name] = np.array([json.dumps(v) for v in values] if nested else values)
    return columns


def done_runs(study: Study, evaluation: str) -> tuple[list[Planned], list[str]]:
    """Find the runs that have weights and errors, with notes on the others."""
    check_evaluation(study, evaluation)
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
            why = f"outdated and used as they are ({run.standing.text.rstrip('.')})"
            others.setdefault(why, []).append(run.job.id[:8])
    notes = [
        f"{len(ids)} of {len(runs)} planned runs are {what}: {', '.join(ids[:5])}{', …' if len(ids) > 5 else ''}."
        for what, ids in others.items()
    ]
    if not done:
        raise InputError(
            f"None of the {len(runs)} runs can be measured: say [keep] checkpoints = "
            f'"end" and run the study. {" ".join(notes)}'
        )
    return done, notes


def _lack(run: Planned, evaluation: str, digest: str | None) -> str | None:
    """Return why a run is no model of the corpus; None if it is one."""
    if run.state not in ("done", "outdated"):
        return run.state
    if run.job.learner.training is None or run.job.learner.members > 1:
        return "no single network"
    if not has_network(run):
        return "without weights"
    for metric in ("train_error", set_name("error", evaluation)):
        if metric not in run.standing.metrics:
            return f"without {metric}"
    return None if run.has_evaluation(evaluation, digest) else f"without {evaluation!r} as it is now"


def _choose(done: Sequence[Planned], seeds: str) -> tuple[list[Planned], dict[str, str]]:
    """Choose the runs that are models, and the twin of each."""
    groups: dict[str, list[Planned]] = {}
    for run in done:
        job = run.job
        same = [job.name, job.settings, job.n, job.fold, job.varies]
        groups.setdefault(json.dumps(same, default=str), []).append(run)
    # Each run is compared with the next one of its training, and the last with the first.
    twins = {}
    for group in groups.values():
        for one, other in zip(group, [*group[1:], group[0]], strict=True):
            if len(group) > 1:
                twins[one.job.id] = other.job.id
    return list(done) if seeds == "each" else [group[0] for group in groups.values()], twins


def _asked(measures: Any) -> list[Measure] | None:
    """Look measures up by their names; None for all."""
    from curvewise.response.networks.measures import find_measures

    return None if measures is None else find_measures(measures)


def _measure(study: Study, task: NetworkTask, *, given: Any, examples: int, rng: int) -> NetworkMeasures:
    from curvewise.response.networks.measures import measure_model

    measures = _asked(given)
    model = load_model(study, task.run)
    wanted = measures is None or any("twin" in m.needs for m in measures)
    twin, notes = _twin(study, task.twin if wanted else None)
    there: dict[str, Any] = {"initial": model.initial, "twin": twin}
    lost = [m for m in measures or () if any(there.get(k, model) is None for k in m.needs)]
    kept = None if measures is None else [m for m in measures if m not in lost]
    values = dict.fromkeys((m.name for m in lost), np.nan)
    orientation = {m.name: m.orientation for m in lost}
    notes += [f"{m.name}: needs {' and '.join(k for k in m.needs if k in there)}." for m in lost]
    if kept == []:
        return NetworkMeasures(values, orientation, tuple(notes))
    with quietly():  # kept on the result, and given once for all networks
        how: dict[str, Any] = {"device": task.device, "rng": rng, "progress": False}
        found = measure_model(model.network, model.examples, kept, examples=examples, **there, **how)
    return NetworkMeasures({**values, **found.values}, {**orientation, **found.orientation}, (*notes, *found.warnings))


def _twin(study: Study, run: str | None) -> tuple[nn.Module | None, list[str]]:
    """Load the network of another seed; a note says why there is none."""
    if run is None:
        return None, []
    try:
        return load_model(study, run).network, []
    except Exception as error:  # the run itself can be measured all the same
        return None, [f"Its twin {run[:8]} cannot be used: {error}"]


def judge_study_sensitivity(
    study: Study, perturbation: str = "mixup-intra", *, evaluation: str = TEST, **options: Any
) -> CorpusSensitivity:
    """Judge how the information in response scores of a study's networks depends on the number of batches.

    Parameters
    ----------
    study : Study
        With ``[keep] checkpoints = "end"``, and run on one training subset. Of several seeds of a training the first
        is taken.
    perturbation : str
        As of :func:`curvewise.response.judge_sensitivity`.
    evaluation : str
        The gap is the error on this evaluation set less the error on the training examples.
    **options
        All others of :func:`curvewise.response.judge_sensitivity`.

    Returns
    -------
    CorpusSensitivity

    Raises
    ------
    InputError
        If runs have no weights, or were trained on different examples.
    """
    from curvewise.response.networks.measurement import judge_sensitivity

    done, notes = done_runs(study, evaluation)
    warn_all(notes, stacklevel=3)
    runs, _ = _choose(done, "first")
    if len({(r.job.n, r.job.fold) for r in runs}) > 1:
        raise InputError("The networks were trained on several subsets: measure a study with one size and one fold.")
    corpus = make_corpus(study, runs, [NetworkMeasures({}) for _ in runs], evaluation, notes)
    loaded = [load_model(study, r.job.id) for r in runs]
    networks = {name: model.network for name, model in zip(corpus.models, loaded, strict=True)}
    return judge_sensitivity(networks, loaded[0].examples, corpus, perturbation, **options)


# ---- Invariance: models trained with none, half and all of a perturbation

ORIENTATION = {"gi-score": 1, "mean accuracy": -1, "augmented accuracy": -1}
"""Each measure of invariance, and whether more of it should mean a larger gap."""
PLACES = 11
"""Magnitudes of the response curve."""


def judge_invariance(
    models: Study | Mapping[str, nn.Module],
    perturbation: str,
    *,
    least_train_accuracy: float | None = 0.8,
    permutations: int = 999,
    level: float = 0.95,
    rng: int = 0,
    **measuring: Any,
) -> MeasureJudgement:
    """Judge which measure on training data predicts how well networks take a perturbation.

    Parameters
    ----------
    models, perturbation
        As of :func:`measure_invariance`.
    least_train_accuracy : float, optional
        Models below it are left out, and counted.
    permutations, level
        As of :func:`judge_measures`.
    rng : int
        Decides all draws.
    **measuring
        All other arguments of :func:`measure_invariance`.

    Returns
    -------
    MeasureJudgement
    """
    corpus = measure_invariance(models, perturbation, rng=rng, **measuring)
    return judge_measures(
        corpus, least_train_accuracy=least_train_accuracy, permutations=permutations, level=level, rng=rng
    )


def measure_invariance(
    models: Study | Mapping[str, nn.Module],
    perturbation: str,
    *,
    hyperparameters: Mapping[str, ArrayLike] | Sequence[str] | None = None,
    data: tuple[Any, Any] | None = None,
    reach: tuple[float, float] | None = None,
    magnitudes: int | Sequence[float] = PLACES,
    examples: int | None = None,
    device: str | None = None,
    workers: int = 0,
    rng: int = 0,
    progress: bool | None = None,
) -> ModelCorpus:
    """Put measures of invariance on training data beside the gap that a perturbation opens.

    Models that were trained with none, half and all of a perturbation's range are tried on test
    examples perturbed at random over the whole range. The gap between that and their training
    accuracy is what the Gi-score, the mean accuracy of the response curve, and the accuracy on
    a randomly perturbed tenth of the training data can be judged by (Schiff et al. 2021, section
    4.2).

    Parameters
    ----------
    models : Study, or dict of str to nn.Module
        A study with ``checkpoints = "end"`` and an evaluation set with this perturbation and a
        range of magnitudes, the widest if there are several; of its runs those take part whose
        augmentation is none or this perturbation. Or networks by name.
    perturbation : str
        Which.
    hyperparameters : dict of columns, or sequence of str, optional
        For networks, a value for each: needed. For a study, which of the hyperparameters that
        :func:`measure_corpus` has; all but the augmentation by default.
    data : tuple, optional
        For networks: training and test data, each as :func:`measure_response` takes it.
    reach : tuple of float, optional
        Lowest and highest magnitude, for networks; the usual ones by default. A study's are those
        of its evaluation set.
    magnitudes : int or sequence of float
        How many, or which, for the response curve.
    examples : int, optional
        Training examples for the response curve, all by default. Its Gi-score sweeps from the lowest to the highest
        magnitude, as in the paper.
    device, workers, rng, progress
        As of :func:`measure_corpus`; workers are for a study, and networks are measured where
        they are by default.

    Returns
    -------
    ModelCorpus
        With the measures gi-score, mean accuracy and augmented accuracy.

    Raises
    ------
    InputError
        If an argument cannot be used; it is looked at before anything is measured.
    """
    from curvewise.response.networks.measurement import invariance_scores, perturbed_accuracy, single_perturbation

    ends = single_perturbation(perturbation, reach)[1]
    how: dict[str, Any] = {"examples": examples, "rng": rng}
    if isinstance(models, Study):
        for name, value in (("data", data), ("reach", reach)):
            if value is not None:
                raise InputError("is for networks: a study has its own. Leave it out.", argument=name)
        where = (device, workers, progress)
        return _from_study(models, perturbation, hyperparameters, magnitudes, how, *where)
    if not isinstance(models, Mapping) or not models:
        raise InputError("give a study, or a dict with at least one network.", argument="models")
    if not isinstance(data, tuple) or len(data) != 2 or not isinstance(hyperparameters, Mapping):
        raise InputError("For networks, give data=(train, test) and hyperparameters={name: values}.")
    for name, values in hyperparameters.items():
        if np.ndim(values) != 1 or len(np.asarray(values)) != len(models):
            raise InputError(
                f"hyperparameters[{name!r}] has shape {np.shape(values)} for {len(models)} "
                "networks: give a list with one value for each."
            )
    rows = []
    places = _places(magnitudes, ends)
    same: dict[str, Any] = {"device": device, "rng": rng}
    with progress_bar("measuring", len(models), progress) as advance:
        for model in models.values():
            plain = perturbed_accuracy(model, data[0], perturbation, (0.0, 0.0), **same)
            moved = perturbed_accuracy(model, data[1], perturbation, ends, **same)
            scores = invariance_scores(model, data[0], perturbation, places, ends, examples=examples, **same)
            rows.append((plain, moved, *scores))
            advance(1)
    train, test, *columns = np.array(rows, dtype=np.float64).T
    return ModelCorpus(
        models=tuple(models),
        hyperparameters={name: np.asarray(values) for name, values in hyperparameters.items()},
        gap=train - test,
        measures=dict(zip(ORIENTATION, columns, strict=True)),
        orientation=ORIENTATION,
        train_accuracy=train,
    )


def _from_study(
    study: Study,
    perturbation: str,
    hyperparameters: Any,
    magnitudes: int | Sequence[float],
    how: dict[str, Any],
    device: str | None,
    workers: int,
    progress: bool | None,
) -> ModelCorpus:
    chosen = _invariance_runs(study, perturbation)
    runs, notes = chosen.runs, [*chosen.notes, *chosen.others]
    warn_all(chosen.notes, stacklevel=4)
    names = _names(list(settings_of(study, runs)), hyperparameters)
    places = _places(magnitudes, chosen.reach)
    look = partial(_look, perturbation=perturbation, places=places, reach=chosen.reach, how=how)
    tasks = tasks_for(study, [r.job.id for r in runs], device, workers)
    measured = measure_runs(study, look, tasks, workers, progress)
    corpus = make_corpus(study, runs, measured, chosen.evaluation, notes)
    warn_all(corpus.notes[len(notes) :], stacklevel=4)
    columns = {name: corpus.hyperparameters[name] for name in names}
    return replace(corpus, hyperparameters=columns)


@dataclass(frozen=True)
class _InvarianceRuns:
    """Runs whose invariance to a perturbation can be measured, the evaluation set with its range, and notes.

    ``notes`` are on runs that are missing or outdated, ``others`` on those that were trained otherwise.
    """

    evaluation: str
    reach: tuple[float, float]
    runs: list[Planned]
    notes: tuple[str, ...]
    others: tuple[str, ...]


def _invariance_runs(study: Study, perturbation: str) -> _InvarianceRuns:
    evaluation, reach = _evaluation(study, perturbation)
    done, notes = done_runs(study, evaluation)
    # Networks trained plainly, or with this perturbation alone.
    augmentations = [r.job.learner.training.augmentation if r.job.learner.training else ("none",) for r in done]
    own = [all(spec.partition(":")[0] == perturbation for spec in specs) for specs in augmentations]
    runs = [r for r, is_own in zip(done, own, strict=True) if is_own]
    if not runs:
        raise InputError(
            f"No run was trained plainly or with perturbation={perturbation!r} alone: the study's "
            "augmentations are others."
        )
    apart = len(done) - len(runs)
    others = (f"{apart} runs with another augmentation are left out.",) if apart else ()
    return _InvarianceRuns(evaluation, reach, runs, tuple(notes), others)


def list_invariances(study: Study) -> list[str]:
    """Name the perturbations that networks of a study are augmented with and evaluated over a range of."""
    trained: set[str] = set()
    for job in study.jobs:
        specs = job.learner.training.augmentation if job.learner.training is not None else ()
        trained |= {specs[0].partition(":")[0]} if len(specs) == 1 else set()
    ranged = [e.perturbation for e in study.evaluate.values() if e.data is None and isinstance(e.magnitude, tuple)]
    return [name for name in dict.fromkeys(ranged) if name is not None and name in trained]


KEPT = ".invariance"
"""Folder of a store for measures of invariance, which the report shows."""


@dataclass(frozen=True)
class KeptInvariance:
    """Kept measures of a study's networks, and the settings that they were measured with."""

    corpus: ModelCorpus
    settings: Mapping[str, Any]

    @property
    def sentence(self) -> str:
        """State the settings.

        >>> corpus = ModelCorpus(("a",), {"width": [8]}, [0.1], {"gi-score": [0.2]})
        >>> KeptInvariance(corpus, {"magnitudes": 2, "examples": 20, "rng": 0}).sentence
        'Measured at 2 magnitudes on 20 training examples of each network, seed 0; hyperparameters held fixed: width.'
        """
        places, examples = self.settings["magnitudes"], self.settings["examples"]
        where = f"{places if isinstance(places, int) else len(places)} magnitudes"
        which = "all training examples" if examples is None else f"{examples:,} training examples"
        fixed = ", ".join(self.corpus.hyperparameters) or "none"
        seed = self.settings["rng"]
        return f"Measured at {where} on {which} of each network, seed {seed}; hyperparameters held fixed: {fixed}."


# Raised when what is measured changes, so that kept measures are measured anew.
_KEPT_VERSION = 1
_KEPT_FIELDS = ("models", "hyperparameters", "gap", "measures", "train_accuracy", "notes")


def keep_invariance(
    study: Study,
    perturbation: str,
    corpus: ModelCorpus,
    *,
    magnitudes: int | Sequence[float] = PLACES,
    examples: int | None = None,
    rng: int = 0,
) -> None:
    """Write the measures of a study's networks beside its runs, where a report finds them.

    ``magnitudes``, ``examples`` and ``rng`` are those of :func:`measure_invariance` that the corpus was made with.
    """
    places = magnitudes if isinstance(magnitudes, int) else [float(m) for m in magnitudes]
    settings = {"magnitudes": places, "examples": examples, "rng": rng}
    kept = {name: getattr(corpus, name) for name in _KEPT_FIELDS}
    digest = _invariance_digest(study, perturbation, list(corpus.hyperparameters), settings)
    text = json.dumps({**kept, "settings": settings, "digest": digest}, default=np.ndarray.tolist)
    write_file(study.runs_folder, KEPT, f"{perturbation}.json", text.encode())


def _invariance_digest(study: Study, perturbation: str, names: Sequence[str], settings: Mapping[str, Any]) -> str:
    """Hash everything that decides measures of invariance: networks, evaluation set, hyperparameters and settings."""
    chosen = _invariance_runs(study, perturbation)
    columns = settings_of(study, chosen.runs)
    decides = {
        "version": _KEPT_VERSION,
        "evaluation": [chosen.evaluation, *chosen.reach, evaluation_digests(study).get(chosen.evaluation)],
        "models": [_model_name(study, r) for r in chosen.runs],
        "runs": [[r.job.id, r.record.get("files", {}).get("end")] for r in chosen.runs],
        "errors": [
            [r.standing.metrics[k] for k in ("train_error", set_name("error", chosen.evaluation))] for r in chosen.runs
        ],
        "hyperparameters": {name: columns[name].tolist() if name in columns else None for name in names},
        "settings": dict(settings),
    }
    return data_digest([json.dumps(decides, sort_keys=True, default=str)])


def kept_invariance(study: Study, perturbation: str) -> KeptInvariance | None:
    """Read what :func:`keep_invariance` wrote; None if there is nothing, or the study or its runs have changed."""
    path = study.runs_folder / KEPT / f"{perturbation}.json"
    if not path.is_file():
        return None
    plain = json.loads(path.read_text("utf-8"))
    settings = plain.get("settings")  # missing in files of earlier versions, which do not say how they were measured
    if settings is None:
        return None
    if plain.get("digest") != _invariance_digest(study, perturbation, list(plain["hyperparameters"]), settings):
        return None
    kept = {name: plain[name] for name in _KEPT_FIELDS}
    kept["notes"] = tuple(kept["notes"])
    return KeptInvariance(ModelCorpus(**kept, orientation=ORIENTATION), settings)


def _names(there: list[str], asked: Any) -> list[str]:
    """Choose the settings that are hyperparameters: those asked for, or all but the augmentation."""
    if asked is None:
        return [name for name in there if name != "augmentation"]
    if isinstance(asked, str | Mapping) or not isinstance(asked, Sequence):
        raise InputError(f"hyperparameters={asked!r}: for a study, give a list of settings of its grid.")
    for name in asked:
        if name not in there:
            raise InputError(
                f"hyperparameters holds {name!r}, which the runs do not differ in: they have "
                f"{', '.join(there) or 'no settings'}."
            )
    return list(asked)


def _evaluation(study: Study, perturbation: str) -> tuple[str, tuple[float, float]]:
    """The test set with this perturbation over the widest range, and the range."""
    there: dict[str, tuple[float, float]] = {}
    for name, evaluation in study.evaluate.items():
        own = evaluation.data is None and evaluation.perturbation == perturbation
        if own and isinstance(evaluation.magnitude, tuple):
            there[name] = evaluation.magnitude
    if there:
        name = max(there, key=lambda k: there[k][1] - there[k][0])
        low, high = there[name]
        return name, (float(low), float(high))
    raise InputError(
        f"The study has no evaluation set with perturbation={perturbation!r} and a range of "
        f'magnitudes: add [evaluate.{perturbation}] with perturbation = "{perturbation}" and '
        "magnitude = [low, high], and run it again."
    )


def _places(magnitudes: int | Sequence[float], reach: tuple[float, float]) -> list[float]:
    if isinstance(magnitudes, int | np.integer):
        if isinstance(magnitudes, bool) or magnitudes < 2:
            raise InputError(f"magnitudes={magnitudes!r}: give at least 2, or a list of them.")
        return [float(m) for m in np.linspace(*reach, int(magnitudes))]
    return [float(m) for m in magnitudes]


def _look(
    study: Study,
    task: NetworkTask,
    *,
    perturbation: str,
    places: list[float],
    reach: tuple[float, float],
    how: dict[str, Any],
) -> NetworkMeasures:
    from curvewise.response.networks.measurement import invariance_scores

    model, where = load_model(study, task.run), {**how, "device": task.device}
    values = invariance_scores(model.network, model.examples, perturbation, places, reach, **where)
    return NetworkMeasures(dict(zip(ORIENTATION, values, strict=True)), ORIENTATION)


# ---- Networks of a study measured one by one, in this process or in several

SAFE = "PYTHONSAFEPATH"


@dataclass(frozen=True)
class NetworkTask:
    """One network to measure: its run, the run of its twin, and the device."""

    run: str
    twin: str | None = None
    device: str | None = None


@dataclass(frozen=True, eq=False)
class NetworkMeasures:
    """Measures of one network.

    Attributes
    ----------
    values : dict of str to float
        By measure; empty for a network that cannot be measured.
    orientation : dict of str to int
        Whether more means a larger gap (1) or a smaller one (−1).
    notes : tuple of str
        What went wrong.
    """

    values: Mapping[str, float]
    orientation: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


MeasureOne = Callable[["Study", NetworkTask], NetworkMeasures]


def tasks_for(
    study: Study, runs: Sequence[str], device: str | None, workers: int, twins: Mapping[str, str] | None = None
) -> list[NetworkTask]:
    """Make a task for each run, spread over the GPUs that the workers may use."""
    devices = choose_devices(study, device, workers)[: max(1, workers)]
    twins = twins or {}
    return [NetworkTask(run, twins.get(run), devices[i % len(devices)]) for i, run in enumerate(runs)]


def measure_runs(
    study: Study,
    look: MeasureOne,
    tasks: Sequence[NetworkTask],
    workers: int,
    progress: bool | None,
    tell: Callable[[str, NetworkMeasures], None] | None = None,
) -> list[NetworkMeasures]:
    """Measure the networks of all runs, in order.

    A network that cannot be measured has no values, and a note that says why.

    Raises
    ------
    InputError
        If that is so for all of them.
    """
    found: dict[int, NetworkMeasures] = {}
    here = ((i, _measure_safely(study, look, task)) for i, task in enumerate(tasks))
    each = _in_processes(study, look, tasks, workers) if workers else here
    with progress_bar("measuring", len(tasks), progress) as advance:
        for index, measured in each:
            found[index] = measured
            if tell is not None:
                tell(tasks[index].run, measured)
            advance(1, f"{len(found)}/{len(tasks)} models")
    if not any(one.values for one in found.values()):
        raise InputError(f"No network can be measured. {found[0].notes[0]}")
    return [found[i] for i in range(len(tasks))]


def _in_processes(
    study: Study, look: MeasureOne, tasks: Sequence[NetworkTask], workers: int
) -> Iterator[tuple[int, NetworkMeasures]]:
    # Not fork: torch and its threads do not survive it.
    context = multiprocessing.get_context("spawn")
    known = (study, look, os.environ.get(SAFE))
    with _safe_path():
        pool = ProcessPoolExecutor(min(workers, len(tasks)), context, _start, known)
    try:
        with _safe_path():  # submitting is what starts the workers
            waiting = {pool.submit(_measure_in_worker, task): i for i, task in enumerate(tasks)}
        for future in as_completed(waiting):
            yield waiting[future], future.result()
    except BrokenProcessPool as error:
        raise CurvewiseError(
            "A worker died, perhaps for lack of memory, or because the calling script does not "
            "guard what it does by if __name__ == '__main__'. Use fewer workers; workers=0 needs "
            "none."
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _safe_path() -> Iterator[None]:
    """Start processes that do not look for modules in the current folder first.

    Until a new process has been sent our path, it has Python's usual one, with that folder in it.
    """
    before = os.environ.get(SAFE)
    os.environ[SAFE] = "1"
    try:
        yield
    finally:
        del os.environ[SAFE]
        if before is not None:
            os.environ[SAFE] = before


_GIVEN: list[tuple[Study, MeasureOne]] = []


def _start(study: Study, look: MeasureOne, safe: str | None) -> None:
    os.environ.pop(SAFE, None)  # which programs that a network starts should not inherit
    if safe is not None:
        os.environ[SAFE] = safe
    # Only now: what look holds, perhaps a function of the caller's, was found as the caller does.
    sys.path[:] = installed_only(sys.path, study.folder)
    _GIVEN[:] = [(study, look)]  # its data is loaded once, when the first task needs it


def _measure_in_worker(task: NetworkTask) -> NetworkMeasures:
    return _measure_safely(*_GIVEN[0], task)


def _measure_safely(study: Study, look: MeasureOne, task: NetworkTask) -> NetworkMeasures:
    """Measure one network; an error becomes a note, and the others go on."""
    from curvewise.nn.devices import one_thread

    try:
        with one_thread():
            return look(study, task)
    except MissingDependencyError:
        raise
    except Exception as error:
        kind = "" if isinstance(error, CurvewiseError) else f"{type(error).__name__}: "
        return NetworkMeasures({}, notes=(f"Run {task.run} cannot be measured: {kind}{error}",))
