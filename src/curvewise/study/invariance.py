"""Is a network invariant? Models trained with none, half and all of a perturbation, judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from curvewise.errors import InputError
from curvewise.progress import progress_bar
from curvewise.response import MeasureJudgement, judge_measures
from curvewise.study._looking import Measured, Task, look_at_runs, tasks_for
from curvewise.study.corpus import done_runs, make_corpus, say, settings_of
from curvewise.study.networks import load_model
from curvewise.study.study import Study
from curvewise.types import ModelCorpus

if TYPE_CHECKING:
    from torch import nn

ORIENTATION = {"gi-score": 1, "mean accuracy": -1, "augmented accuracy": -1}
"""Each measure of invariance, and whether more of it should mean a larger gap."""


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
    """Ask which measure on training data foretells how well networks take a perturbation.

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
        corpus,
        least_train_accuracy=least_train_accuracy,
        permutations=permutations,
        level=level,
        rng=rng,
    )


def measure_invariance(
    models: Study | Mapping[str, nn.Module],
    perturbation: str,
    *,
    hyperparameters: Mapping[str, ArrayLike] | Sequence[str] | None = None,
    train: Any = None,
    test: Any = None,
    reach: tuple[float, float] | None = None,
    magnitudes: int | Sequence[float] = 11,
    examples: int | None = None,
    signs: str = "keep",
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
    train, test
        For networks: training and test data as :func:`measure_response` takes them.
    reach : tuple of float, optional
        Lowest and highest magnitude, for networks; the usual ones by default. A study's are those
        of its evaluation set.
    magnitudes : int or sequence of float
        How many, or which, for the response curve.
    examples : int, optional
        Training examples for the response curve, all by default.
    signs : {"keep", "fold"}
        How the Gi-score takes negative magnitudes: swept as in the paper, or folded.
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
    ends = _within(perturbation, reach)
    how = {"examples": examples, "signs": signs, "rng": rng}
    if isinstance(models, Study):
        for name, value in (("train", train), ("test", test), ("reach", reach)):
            if value is not None:
                raise InputError(f"{name}= is for networks: a study has its own. Leave it out.")
        where = (device, workers, progress)
        return _from_study(models, perturbation, hyperparameters, magnitudes, how, *where)
    if not isinstance(models, Mapping) or not models:
        raise InputError("models: give a study, or a dict with at least one network.")
    if train is None or test is None or not isinstance(hyperparameters, Mapping):
        raise InputError("For networks, give train=, test= and hyperparameters={name: values}.")
    for name, values in hyperparameters.items():
        if np.ndim(values) != 1 or len(np.asarray(values)) != len(models):
            raise InputError(
                f"hyperparameters[{name!r}] has shape {np.shape(values)} for {len(models)} "
                "networks: give a list with one value for each."
            )
    rows = []
    places = _places(magnitudes, ends)
    how["device"] = device
    with progress_bar("measuring", len(models), progress) as advance:
        for model in models.values():
            rows.append(_row(model, train, test, perturbation, places, ends, how))
            advance(1)
    return _from_rows(tuple(models), hyperparameters, rows)


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
    evaluation, reach = _evaluation(study, perturbation)
    done, notes = done_runs(study, evaluation)
    say(notes, stacklevel=4)
    runs = [r for r in done if _augmented_by(r.job.learner.training, perturbation)]
    if not runs:
        raise InputError(
            f"No run was trained plainly or with perturbation={perturbation!r} alone: the study's "
            "augmentations are others."
        )
    if len(runs) < len(done):
        notes.append(f"{len(done) - len(runs)} runs with another augmentation take no part.")
    names = _names(list(settings_of(study, runs)), hyperparameters)
    places = _places(magnitudes, reach)
    look = partial(_look, perturbation=perturbation, places=places, reach=reach, how=how)
    tasks = tasks_for(study, [r.job.id for r in runs], device, workers)
    measured = look_at_runs(study, look, tasks, workers, progress)
    corpus = make_corpus(study, runs, measured, evaluation, notes)
    say(corpus.notes[len(notes) :], stacklevel=4)
    columns = {name: corpus.hyperparameters[name] for name in names}
    return replace(corpus, hyperparameters=columns)


def _names(there: list[str], asked: Any) -> list[str]:
    """Which settings are hyperparameters: those asked for, or all but the augmentation."""
    if asked is None:
        return [name for name in there if name != "augmentation"]
    if isinstance(asked, str | Mapping) or not isinstance(asked, Sequence):
        raise InputError(
            f"hyperparameters={asked!r}: for a study, give a list of settings of its grid."
        )
    for name in asked:
        if name not in there:
            raise InputError(
                f"hyperparameters holds {name!r}, which the runs do not differ in: they have "
                f"{', '.join(there) or 'no settings'}."
            )
    return list(asked)


def _row(
    model: nn.Module,
    train: Any,
    test: Any,
    perturbation: str,
    places: list[float],
    ends: tuple[float, float],
    how: dict[str, Any],
) -> dict[str, float]:
    """Measures and accuracies of one network."""
    from curvewise.nn.invariance import perturbed_accuracy, withstanding

    where = {"device": how["device"], "rng": how["rng"]}
    plain = perturbed_accuracy(model, train, perturbation, (0.0, 0.0), **where)
    moved = perturbed_accuracy(model, test, perturbation, ends, **where)
    found = withstanding(model, train, perturbation, places, ends, **how)
    return {**dict(zip(ORIENTATION, found, strict=True)), "train": plain, "test": moved}


def _from_rows(
    names: tuple[str, ...], hyperparameters: Mapping[str, Any], rows: Sequence[dict[str, float]]
) -> ModelCorpus:
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return ModelCorpus(
        models=names,
        hyperparameters=hyperparameters,
        gap=columns["train"] - columns["test"],
        measures={name: columns[name] for name in ORIENTATION},
        orientation=ORIENTATION,
        train_accuracy=columns["train"],
    )


def _within(perturbation: str, reach: tuple[float, float] | None) -> tuple[float, float]:
    from curvewise.nn.invariance import within

    return within(perturbation, reach)[1]


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


def _augmented_by(training: Any, perturbation: str) -> bool:
    """Whether a network was trained plainly, or with this perturbation alone."""
    if training is None:
        return False
    return all(spec.partition(":")[0] == perturbation for spec in training.augmentation)


def _places(magnitudes: int | Sequence[float], reach: tuple[float, float]) -> list[float]:
    if isinstance(magnitudes, int | np.integer):
        if isinstance(magnitudes, bool) or magnitudes < 2:
            raise InputError(f"magnitudes={magnitudes!r}: give at least 2, or a list of them.")
        return [float(m) for m in np.linspace(*reach, int(magnitudes))]
    return [float(m) for m in magnitudes]


def _look(
    study: Study,
    task: Task,
    *,
    perturbation: str,
    places: list[float],
    reach: tuple[float, float],
    how: dict[str, Any],
) -> Measured:
    from curvewise.nn.invariance import withstanding

    model, where = load_model(study, task.run), {**how, "device": task.device}
    values = withstanding(model.network, model.examples, perturbation, places, reach, **where)
    return Measured(dict(zip(ORIENTATION, values, strict=True)), ORIENTATION)
