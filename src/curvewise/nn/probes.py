"""Linear classifiers on fixed features, after a few epochs or trained to the end."""

from __future__ import annotations

import functools
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from curvewise.errors import InputError
from curvewise.nn._labelled import TARGETS, Labelled, hits_of, own_terms, read_labelled, warn
from curvewise.nn._linear import (
    CHOOSING_ROWS,
    GAP,
    STEPS,
    batch_size,
    chosen_penalty,
    converged,
    descended,
    logits,
    standardised,
)
from curvewise.nn.resident import find_device
from curvewise.ranking.measure import RankingMeasure
from curvewise.types import FloatArray


def linear_score(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    test_features: ArrayLike | None = None,
    test_labels: ArrayLike | None = None,
    epochs: int | None = None,
    penalty: float | None = None,
    rate: float | None = None,
    batch: int | None = None,
    metric: Literal["accuracy", "log-likelihood"] = "accuracy",
    device: str | None = None,
    rng: int | np.random.Generator = 0,
) -> float:
    """Accuracy of a linear classifier of features that stay as they are.

    Features are standardised on the training examples. With ``epochs``, weights begin at 0 and are
    trained by SGD with momentum 0.9 at a constant rate without decay (Li et al. 2021). Without, the
    regularised logistic loss, which has one minimum, is minimised by L-BFGS until it is provably
    within a ten-thousandth of it.

    Parameters
    ----------
    features : array_like, shape (examples, dimensions)
        Of the training examples.
    labels : array_like
        A class for each, or a matrix of 0 and 1 (multi-label): then there is one classifier for
        each class against the rest.
    test_features, test_labels : array_like, optional
        Those that are scored; without, the training examples are (in-sample).
    epochs : int, optional
        After how many to stop; trained until converged by default.
    penalty : float, optional
        λ in mean loss + λ/2·‖W‖², for a converged classifier. By default the best of 1, 0.1, 0.01
        and 0.001 by the log-likelihood of a fifth of the training examples (of at most 4,000),
        which are held out for this and used afterwards.
    rate : float, optional
        Of SGD. By default 1 / (largest eigenvalue of the covariance + dimensions / batch), which
        is about one over the largest curvature that a batch has.
    batch : int, optional
        Of SGD; by default a fiftieth of the examples, from 32 to the paper's 512.
    metric : {"accuracy", "log-likelihood"}
        What is averaged over examples. With multi-label targets accuracy is the average precision
        of an example's own classes in the order in which the classifier puts them (scikit-learn's
        label ranking average precision).
    device : str, optional
        The CPU by default.
    rng : int or Generator
        Decides the order of examples in SGD, and which are held out to choose the penalty.

    Returns
    -------
    float
        The mean over test examples; NaN, with a warning, if the training diverged.

    Warns
    -----
    CurvewiseWarning
        If there are no test examples and no more training examples than dimensions, if SGD has
        less than ten steps, or if training diverged or did not converge.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> labels = np.arange(400) % 2
    >>> x = random.standard_normal((400, 5)) + labels[:, None]
    >>> half, rest = slice(0, 200), slice(200, 400)
    >>> test = {"test_features": x[rest], "test_labels": labels[rest]}
    >>> round(linear_score(x[half], labels[half], **test), 2)
    0.86
    """
    options: dict[str, Any] = {
        "test_features": test_features,
        "test_labels": test_labels,
        "epochs": epochs,
        "penalty": penalty,
        "rate": rate,
        "batch": batch,
    }
    hits = linear_hits(features, labels, **options, metric=metric, device=device, rng=rng)
    return float(hits.mean())


def linear_hits(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    test_features: ArrayLike | None = None,
    test_labels: ArrayLike | None = None,
    epochs: int | None = None,
    penalty: float | None = None,
    rate: float | None = None,
    batch: int | None = None,
    metric: Literal["accuracy", "log-likelihood"] = "accuracy",
    device: str | None = None,
    rng: int | np.random.Generator = 0,
) -> FloatArray:
    """What each test example adds to :func:`linear_score`, whose arguments these are.

    Returns
    -------
    ndarray, shape (test examples,)
        1 where the classifier is right and 0 where it is not; the average precision or the
        log-likelihood where that is asked for.

    Examples
    --------
    >>> linear_hits([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"], penalty=0.1)
    array([1., 1., 1., 1.])
    """
    _check(epochs, penalty, rate, batch, metric)
    random = np.random.default_rng(rng)
    train, test = read_labelled(features, labels, test_features, test_labels, "a linear probe")
    if test is train and len(train) <= train.x.shape[1]:
        warn(
            f"{len(train)} examples in {train.x.shape[1]} dimensions can be told apart whatever "
            "their labels are, and they are scored in-sample: give test_features and test_labels."
        )
    place = find_device(device or "cpu")
    with own_terms(place):
        x, shown = standardised(train, test, place)
        target = train.target(place)
        if epochs is None:
            weights = _to_the_end(x, target, train, penalty, random)
        else:
            weights = _some_epochs(x, target, train, (epochs, rate, batch), random)
        return hits_of(logits(shown, weights), test, metric)


def _check(
    epochs: int | None, penalty: float | None, rate: float | None, batch: int | None, metric: str
) -> None:
    for name, value, least in (("epochs", epochs, 1), ("batch", batch, 1)):
        if value is not None and (int(value) != value or value < least):
            raise InputError(f"{name}={value!r}: give a whole number of at least {least}.")
    for name, amount in (("penalty", penalty), ("rate", rate)):
        if amount is not None and not 0 < amount < np.inf:
            raise InputError(f"{name}={amount!r}: give a number above 0.")
    if epochs is not None and penalty is not None:
        raise InputError(
            "penalty is for a converged classifier: leave out penalty, or leave out epochs."
        )
    if epochs is None and (rate is not None or batch is not None):
        raise InputError("rate and batch are for SGD: say after how many epochs it should stop.")
    if metric not in ("accuracy", "log-likelihood"):
        raise InputError(f"metric={metric!r}: use 'accuracy' or 'log-likelihood'.")


def _to_the_end(
    x: Tensor, target: Tensor, train: Labelled, penalty: float | None, random: np.random.Generator
) -> Tensor:
    if penalty is None:
        penalty = chosen_penalty(x, target, train, random)
    weights, gap = converged(x, target, train.several, penalty, None, GAP)
    if gap > GAP:
        warn(
            f"The linear classifier did not converge (in {STEPS} steps at most): its loss may be "
            f"{gap:.1%} above the minimum. Use a penalty above {penalty:g}."
        )
    return weights


def _some_epochs(
    x: Tensor,
    target: Tensor,
    train: Labelled,
    how: tuple[int, float | None, int | None],
    random: np.random.Generator,
) -> Tensor:
    epochs, rate, batch = how
    size = min(batch or batch_size(len(x)), len(x))
    steps = epochs * -(-len(x) // size)
    if steps < 10:
        warn(
            f"{len(x)} examples in batches of {size} make {steps} steps: the classifier has hardly "
            "been trained. Take a smaller batch, more epochs, or train until converged."
        )
    weights = descended(x, target, train.several, (epochs, rate, size), random)
    if not bool(weights.isfinite().all()):
        warn("The linear classifier diverged, and its score is NaN: lower its rate.")
    return weights


def _sgd_flops(n: int, d: int, classes: int, *, epochs: int) -> float:
    return 4.0 * epochs * n * d * classes + 40.0 * n * d


def _lbfgs_flops(n: int, d: int, classes: int) -> float:
    chosen = min(n, CHOOSING_ROWS)
    return 4.0 * d * classes * (60 * n + 120 * chosen)


_FAILS = (
    "{} Without test examples it is in-sample, and with no more examples than dimensions any "
    "labels can be told apart."
)

MEASURES = (
    *(
        RankingMeasure(
            f"linear-{epochs}",
            functools.partial(linear_score, epochs=epochs),
            about=f"Accuracy of a linear classifier of the features after {said} of SGD (Li et al. "
            "2021).",
            cost="Two products with the features for each epoch: a second or so of CPU for 10,000 "
            "examples of 2,048 dimensions and 100 classes.",
            fails=_FAILS.format(
                "What is not yet trained tells little: it ranked worst beside fine-tuning in the "
                "paper."
            ),
            flops=functools.partial(_sgd_flops, epochs=epochs),
            splits=True,
            guess="share",
            bounds=(0.0, 1.0),
            seeded=True,
            targets=TARGETS,
        )
        for epochs, said in ((1, "one epoch"), (5, "five epochs"))
    ),
    RankingMeasure(
        "linear",
        linear_score,
        about="Accuracy of a linear classifier of the features trained until converged, its "
        "penalty chosen on held-out training examples (Li et al. 2021).",
        cost="About 60 passes over the features and 120 over at most 4,000 rows: about ten seconds "
        "of CPU for 10,000 examples of 2,048 dimensions and 100 classes.",
        fails=_FAILS.format("It sees what is linearly separable before fine-tuning only."),
        flops=_lbfgs_flops,
        splits=True,
        guess="share",
        bounds=(0.0, 1.0),
        seeded=True,
        targets=TARGETS,
    ),
)
