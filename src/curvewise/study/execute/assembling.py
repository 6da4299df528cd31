"""What came out of a training, as the parts of a stored run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curvewise.nn.task import Assignment, Examples, Keep, Trained
from curvewise.study._classes import log_loss
from curvewise.study._numbers import number_losses
from curvewise.study.execute.standing import LOSSES

if TYPE_CHECKING:
    from curvewise.study.jobs import Job
    from curvewise.study.study import Study

TEST = "test"
MOST_LETTERS = 20_000
"""Of an error that is kept with a run; a traceback may repeat itself without end."""


def assemble(study: Study, job: Job, trained: Trained, keep: Keep | None = None) -> dict[str, Any]:
    """Turn what came of a training into what :func:`~curvewise.study.store.write_run` takes.

    Probabilities become predicted classes, errors and losses; of numbers there are losses. Those
    that are not finite, or not of the right shape, make the run a failed one. What is kept is what
    the study asks for, unless ``keep`` says otherwise.
    """
    metrics: dict[str, float] = {k: float(v) for k, v in trained.metrics.items()}
    metrics["seconds"] = trained.seconds
    error = trained.error
    numbers = study.dataset.is_numbers
    if numbers and error is None and not job.is_search:
        trained, error = _judged(study, job, trained)
    elif error is None and not job.is_search:
        error = _wrong(trained.probabilities, study.evaluation_sets)
    if error is not None:
        finite = {k: v for k, v in metrics.items() if math.isfinite(v)}
        text = _shortened(error)
        return {"status": "failed", "error": text, "metrics": finite, "notes": trained.notes}
    parts = {"status": "done", "metrics": metrics, "notes": trained.notes}
    if job.is_search:
        return parts
    measure = _measured_numbers if numbers else _measured
    return {**parts, **measure(study, trained, metrics, keep or study.keep)}


def _judged(study: Study, job: Job, trained: Trained) -> tuple[Trained, str | None]:
    """Losses of predicted numbers, where they were not measured yet; and what is wrong."""
    losses = dict(trained.losses)
    for name, examples in study.evaluation_sets.items():
        if name in trained.predictions and name not in losses:
            given, expected = trained.predictions[name], examples.y.shape
            if given.shape != expected:
                return trained, f"Numbers for {name!r} have shape {given.shape}: not {expected}."
            losses[name] = number_losses(given, examples.y, str(job.learner.loss))
        if name not in losses:
            return trained, f"Nothing was predicted for the evaluation set {name!r}."
        if not np.isfinite(losses[name]).all():
            return trained, f"The training diverged: losses for {name!r} are not finite."
    return replace(trained, losses=losses), None


def _measured_numbers(
    study: Study, trained: Trained, metrics: dict[str, float], keep: Keep
) -> dict[str, Any]:
    arrays, measured = {}, {}
    for name in study.evaluation_sets:
        ending = "" if name == TEST else f".{name}"
        arrays[f"{LOSSES}{ending}"] = trained.losses[name]
        measured[f"loss{ending}"] = float(trained.losses[name].mean(dtype=np.float64))
        if keep.features and name in trained.features:
            arrays[f"features{ending}"] = trained.features[name]
    if "train_loss" in metrics:
        measured["gap"] = measured["loss"] - metrics["train_loss"]
    return {
        "predictions": dict(trained.predictions) if keep.predictions else None,
        "metrics": {**metrics, **measured},
        "arrays": arrays,
        "checkpoints": trained.checkpoints,
    }


def _measured(
    study: Study, trained: Trained, metrics: dict[str, float], keep: Keep
) -> dict[str, Any]:
    predictions, arrays, labels = {}, {}, {}
    measured: dict[str, float] = {}
    for name, examples in study.evaluation_sets.items():
        ending = "" if name == TEST else f".{name}"
        given = trained.probabilities[name]
        predicted = given.argmax(axis=1).astype(np.min_scalar_type(examples.classes - 1))
        predictions[name], labels[name] = predicted, examples.y
        measured[f"error{ending}"] = float(np.mean(predicted != examples.y))
        if not trained.hard:
            measured[f"loss{ending}"] = log_loss(given, examples.y)
        if keep.probabilities:
            arrays[f"probabilities{ending}"] = given
        if keep.features and name in trained.features:
            arrays[f"features{ending}"] = trained.features[name]
    if "train_error" in metrics:
        measured["gap"] = measured["error"] - metrics["train_error"]
    return {
        "predictions": predictions,
        "metrics": {**metrics, **measured},
        "arrays": arrays,
        "labels": labels,
        "checkpoints": trained.checkpoints,
    }


def _wrong(
    probabilities: Mapping[str, NDArray[np.float32]], sets: Mapping[str, Examples]
) -> str | None:
    for name, examples in sets.items():
        if name not in probabilities:
            return f"Nothing was predicted for the evaluation set {name!r}."
        given, expected = probabilities[name], (len(examples.y), examples.classes)
        if given.shape != expected:
            return f"Probabilities for {name!r} have shape {given.shape}: expected {expected}."
        if not np.isfinite(given).all():
            return f"The training diverged: probabilities for {name!r} are not finite."
    return None


def _shortened(text: str) -> str:
    if len(text) <= MOST_LETTERS:
        return text
    return f"{text[: MOST_LETTERS // 2]}\n[…]\n{text[-MOST_LETTERS // 2 :]}"


def failed(text: str) -> Trained:
    """A training that came to nothing."""
    return Trained(error=text)


def assign(job: Job, rows: NDArray[np.int64], member: int = 0) -> Assignment:
    """What the engine is to train for a job, or for one network of its ensemble.

    The first network has the seeds of a run without an ensemble, the others seeds derived of them.
    """

    def seed(name: str) -> int:
        own = job.seeds[name]
        return (
            own if not member else int(np.random.SeedSequence([own, member]).generate_state(1)[0])
        )

    return Assignment(rows, seed("init"), seed("order"), seed("augmentation"), job.poke)


def average(members: Sequence[Trained]) -> Trained:
    """Average what an ensemble's members predict; one that failed fails the ensemble.

    What was measured on the training examples is the mean over the members, and features stand side
    by side.
    """
    if len(members) == 1:
        return members[0]
    seconds = sum(m.seconds for m in members)
    for i, member in enumerate(members):
        if member.error is not None:
            return Trained(error=f"Network {i} of the ensemble: {member.error}", seconds=seconds)
    first = members[0]
    what = "train_loss is a mean" if first.predictions else "train_error and train_loss are means"
    note = f"{what} over the {len(members)} networks."
    return Trained(
        probabilities={
            name: _mean([m.probabilities[name] for m in members]) for name in first.probabilities
        },
        metrics={k: float(np.mean([m.metrics[k] for m in members])) for k in first.metrics},
        checkpoints={
            f"network-{i}-{name}": weights
            for i, member in enumerate(members)
            for name, weights in member.checkpoints.items()
        },
        features={
            name: np.concatenate([m.features[name] for m in members], axis=1)
            for name in first.features
        },
        seconds=seconds,
        path=first.path,
        notes=(*dict.fromkeys(n for m in members for n in m.notes), note),
        hard=first.hard,
        predictions={
            name: _mean([m.predictions[name] for m in members]) for name in first.predictions
        },
        doubts=tuple(dict.fromkeys(doubt for m in members for doubt in m.doubts)),
    )


def _mean(parts: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """In double precision and the order of the members, whoever finished first."""
    mean: NDArray[np.float64] = np.stack(parts).astype(np.float64).mean(axis=0)
    return mean.astype(np.float32)
