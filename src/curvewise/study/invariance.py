"""Is a network invariant? Models trained with none, half and all of a perturbation, judged."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.response import MeasureJudgement, judge_measures
from curvewise.study.corpus import Measured, done_runs, look_at_runs, make_corpus
from curvewise.study.networks import load_model
from curvewise.study.study import Study
from curvewise.types import ModelCorpus

if TYPE_CHECKING:
    from torch import nn

ORIENTATION = {"gi-score": 1, "mean accuracy": -1, "augmented accuracy": -1}
"""Each measure of invariance, and whether more of it should mean a larger gap."""

SHARE = 0.1
"""Share of the training examples that are perturbed at random, as in the paper."""


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
        range of magnitudes; of its runs those take part whose augmentation is none or this
        perturbation. Or networks by name.
    perturbation : str
        Which.
    hyperparameters : dict of columns, or sequence of str, optional
        For networks, a value for each: needed. For a study, names of settings of its grid; all but
        the augmentation by default.
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
        As of :func:`measure_corpus`; workers are for a study.

    Returns
    -------
    ModelCorpus
        With the measures gi-score, mean accuracy and augmented accuracy.
    """
    how = {"examples": examples, "signs": signs, "device": device, "rng": rng}
    if isinstance(models, Study):
        asked = (magnitudes, how, workers, progress)
        return _from_study(models, perturbation, hyperparameters, *asked)
    if train is None or test is None or not isinstance(hyperparameters, Mapping):
        raise InputError("For networks, give train=, test= and hyperparameters={name: values}.")
    if not models:
        raise InputError("models is empty: give at least two networks.")
    data = train, test
    return _from_networks(models, perturbation, hyperparameters, data, reach, magnitudes, how)


def _from_study(
    study: Study,
    perturbation: str,
    hyperparameters: Any,
    magnitudes: int | Sequence[float],
    how: dict[str, Any],
    workers: int,
    progress: bool | None,
) -> ModelCorpus:
    evaluation, reach = _evaluation(study, perturbation)
    done, notes = done_runs(study)
    runs = [r for r in done if _augmented_by(r.job.learner.training, perturbation)]
    look = partial(
        _look,
        perturbation=perturbation,
        places=_places(magnitudes, reach),
        reach=reach,
        how=how,
    )
    measured = look_at_runs(study, look, [(r.job.id, None) for r in runs], workers, progress)
    corpus = make_corpus(study, runs, measured, evaluation, notes)
    names = hyperparameters or [k for k in study.design.settings if k != "augmentation"]
    for name in names:
        if name not in corpus.hyperparameters:
            raise InputError(
                f"hyperparameters holds {name!r}, which is no setting of the study's grid: it has "
                f"{', '.join(corpus.hyperparameters)}."
            )
    columns = {name: corpus.hyperparameters[name] for name in names}
    return replace(corpus, hyperparameters=columns)


def _from_networks(
    models: Mapping[str, nn.Module],
    perturbation: str,
    hyperparameters: Mapping[str, ArrayLike],
    data: tuple[Any, Any],
    reach: tuple[float, float] | None,
    magnitudes: int | Sequence[float],
    how: dict[str, Any],
) -> ModelCorpus:
    from curvewise.nn.invariance import perturbed_accuracy
    from curvewise.nn.perturbations import find_perturbation

    train, test = data
    ends = find_perturbation(perturbation).usual if reach is None else reach
    places = _places(magnitudes, ends)
    where = {"device": how["device"], "rng": how["rng"]}
    rows: list[dict[str, float]] = []
    for model in models.values():
        found = _of_network(model, train, perturbation, places, ends, **how)
        plain = perturbed_accuracy(model, train, perturbation, (0.0, 0.0), **where)
        moved = perturbed_accuracy(model, test, perturbation, ends, **where)
        rows.append(found | {"train": plain, "test": moved})
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return ModelCorpus(
        models=tuple(models),
        hyperparameters={k: np.asarray(v) for k, v in hyperparameters.items()},
        gap=columns["train"] - columns["test"],
        measures={name: columns[name] for name in ORIENTATION},
        orientation=ORIENTATION,
        train_accuracy=columns["train"],
    )


def _evaluation(study: Study, perturbation: str) -> tuple[str, tuple[float, float]]:
    """The evaluation set with this perturbation over a range, and the range."""
    for name, evaluation in study.evaluate.items():
        if evaluation.perturbation == perturbation and isinstance(evaluation.magnitude, tuple):
            low, high = evaluation.magnitude
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
    if isinstance(magnitudes, int):
        return [float(m) for m in np.linspace(*reach, magnitudes)]
    return [float(m) for m in magnitudes]


def _look(
    study: Study,
    task: tuple[str, str | None],
    *,
    perturbation: str,
    places: list[float],
    reach: tuple[float, float],
    how: dict[str, Any],
) -> Measured:
    model = load_model(study, task[0])
    values = _of_network(model.network, model.examples, perturbation, places, reach, **how)
    return Measured(values, ORIENTATION)


def _of_network(
    model: nn.Module,
    train: Any,
    perturbation: str,
    magnitudes: Sequence[float],
    reach: tuple[float, float],
    *,
    examples: int | None = None,
    signs: str = "keep",
    device: str | None = None,
    rng: int = 0,
) -> dict[str, float]:
    """The three measures of one network on its training data, by name."""
    from curvewise.nn.invariance import perturbed_accuracy
    from curvewise.nn.response import measure_response

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)  # a filter on accuracy follows
        curve = measure_response(
            model,
            train,
            perturbation,
            magnitudes=magnitudes,
            examples=examples,
            signs=signs,
            device=device,
            rng=rng,
            progress=False,
        )
    augmented = perturbed_accuracy(
        model, train, perturbation, reach, examples=SHARE, device=device, rng=rng
    )
    return {
        "gi-score": curve.gi,
        "mean accuracy": curve.mean_accuracy,
        "augmented accuracy": augmented,
    }
