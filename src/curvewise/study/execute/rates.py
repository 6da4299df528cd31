"""Find a learning rate on one training subset, for all runs of a learner."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from curvewise.nn.task import Examples, Trained
from curvewise.study._classes import log_loss
from curvewise.study.execute.assembling import assign

if TYPE_CHECKING:
    from curvewise.study.jobs import Job
    from curvewise.study.study import Study

VALIDATION = "validation"


def search_rate(study: Study, job: Job, *, device: str = "cpu") -> Trained:
    """Train with each candidate rate on two thirds of a subset and try it on the other third.

    The rate with the least error is taken; among equals the one with the lower loss, then the lower
    rate. Where targets are numbers, the one with the least loss. One that diverges counts as all
    wrong.

    Parameters
    ----------
    study : Study
        Whose data it is.
    job : Job
        A search, whose learner names several rates.
    device : str
        Where to train.

    Returns
    -------
    Trained
        With the metrics ``rate``, ``error.<rate>`` (of classes) and ``loss.<rate>``, and no
        predictions; with an error if all rates diverged.
    """
    from curvewise.nn.engine import train

    training = job.learner.training
    assert training is not None
    subset = study.rows_of(job.n, job.fold)
    numbers = study.examples.is_numbers
    labels = np.zeros(len(study.examples.y), np.int64) if numbers else study.examples.y
    rows, held = split_in_three(subset, labels, job.seeds["order"])
    sets = {VALIDATION: _part(study.examples, held)}
    tried: list[tuple[float, float, float]] = []
    errors: list[str] = []
    seconds, path = 0.0, ""
    for rate in training.rates:
        ((_, trained),) = train(
            replace(training, rate=rate),
            [assign(job, rows)],
            study.examples,
            sets,
            device=device,
            folder=study.folder,
        )
        seconds, path = seconds + trained.seconds, trained.path
        error, loss, reason = _judge(trained, sets[VALIDATION].y)
        errors += [] if reason is None else [f"rate {rate:g}: {reason}"]
        tried.append((error, loss, rate))
    if len(errors) == len(tried):
        reasons = "\n".join(errors)
        return Trained(error=f"No learning rate led anywhere.\n{reasons}", seconds=seconds)
    metrics = {} if numbers else {f"error.{rate!r}": error for error, _, rate in tried}
    metrics |= {f"loss.{rate!r}": loss for _, loss, rate in tried if np.isfinite(loss)}
    notes = tuple(text.splitlines()[0] for text in errors)
    best = min(tried)[2]
    return Trained(metrics={"rate": best, **metrics}, seconds=seconds, path=path, notes=notes)


def _judge(trained: Trained, y: NDArray[np.int64]) -> tuple[float, float, str | None]:
    if trained.error is not None:
        return 1.0, float("inf"), trained.error
    if trained.losses:
        return 0.0, float(trained.losses[VALIDATION].mean(dtype=np.float64)), None
    given = trained.probabilities[VALIDATION]
    if not np.isfinite(given).all():
        return 1.0, float("inf"), "the training diverged"
    return float(np.mean(given.argmax(axis=1) != y)), log_loss(given, y), None


def split_in_three(
    rows: NDArray[np.int64], labels: NDArray[np.int64], seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split a subset 2:1, each class as evenly as it goes.

    Examples
    --------
    >>> y = np.repeat([0, 1], [6, 3])
    >>> two, one = split_in_three(np.arange(9), y, seed=0)
    >>> np.bincount(y[two]).tolist(), np.bincount(y[one]).tolist()
    ([4, 2], [2, 1])
    """
    shuffled = np.random.default_rng(seed).permutation(rows)
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    third = np.arange(len(rows)) % 3 == 2
    if not third.any():  # one or two examples: better tried on what was learnt than not at all
        return by_class, by_class
    return by_class[~third], by_class[third]


def _part(examples: Examples, rows: NDArray[np.int64]) -> Examples:
    return replace(examples, x=examples.x[rows], y=examples.y[rows])
