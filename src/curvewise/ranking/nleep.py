"""NLEEP: how well clusters of a checkpoint's features tell the labels of a task."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.ranking._clusters import candidates, cluster
from curvewise.ranking._examples import as_count, as_number
from curvewise.ranking._mixture import COVARIANCES, fit_mixture
from curvewise.ranking._pca import project
from curvewise.ranking._prediction import (
    TAKES,
    asked_targets,
    has_test,
    mean_log,
    predict_labels,
    same_width,
)
from curvewise.ranking._targets import Targets, as_targets
from curvewise.ranking.measure import RankingMeasure
from curvewise.types import as_matrix

VARIANTS = ("paper", "in-sample", "no-log", "capped")
FEW = 5  # examples a component below which a warning is due


@dataclass(frozen=True)
class Settings:
    """How the mixture of NLEEP is fitted; see :func:`nleep`."""

    components: int = 5
    covariance: str = "diagonal"
    variant: str = "paper"
    steps: int = 100
    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        if self.covariance not in COVARIANCES:
            raise InputError(
                f"covariance={self.covariance!r} is not known: use one of {', '.join(COVARIANCES)}."
            )
        if self.variant not in VARIANTS:
            raise InputError(
                f"variant={self.variant!r} is not known: use one of {', '.join(VARIANTS)}."
            )
        for name in ("components", "steps"):
            as_count(getattr(self, name), name)
        remedy = "give a number from 0."
        if not as_number(self.tolerance, "tolerance", remedy) >= 0:
            raise InputError(f"tolerance={self.tolerance!r}: {remedy}")

    def count(self, examples: int, classes: int) -> int:
        """How many components."""
        if self.variant == "capped":
            return max(int(max(min(classes, 0.2 * examples), 0.1 * examples)), 1)
        return int(self.components) * classes


def nleep(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    test_features: ArrayLike | None = None,
    test_labels: ArrayLike | None = None,
    energy: float = 0.8,
    components: int = 5,
    covariance: str = "diagonal",
    variant: str = "paper",
    steps: int = 100,
    tolerance: float = 1e-3,
    rng: int | np.random.Generator = 0,
) -> float:
    """LEEP with Gaussian clusters of features for source classes (Li et al. 2021).

    Features of the training examples are reduced to the principal components that hold a share of
    the variance; a mixture of Gaussians is fitted to them by EM from k-means; and the chances of
    its components given an example take the place of a classification head in
    :func:`~curvewise.ranking.leep.leep`. More is better, 0 is best. Neither the order of examples,
    the names of classes, nor turning, moving or scaling all features changes it, but for rounding:
    in single precision that can be seen in the third digit, which is less than ``rng`` makes of it.

    Parameters
    ----------
    features : array_like, shape (examples, dimensions)
        Of the training examples. The work is done in their precision, float32 or float64.
    labels : array_like
        A class for each, or a matrix of 0 and 1 (examples × classes) where there may be several:
        then an example counts once for each of its labels, and the mixture is fitted to examples.
    test_features, test_labels : array_like, optional
        Examples to score. Without them the training examples are scored (in-sample).
    energy : float
        Share of the variance that the principal components keep; features are centred.
    components : int
        Gaussians for each class of the training examples. There are never more than examples.
    covariance : {"diagonal", "shrunk", "tied", "full"}
        Of a Gaussian. The paper's is not said, and most take ``"full"``, which needs many more
        examples a component than dimensions: otherwise EM stops where k-means left it. ``"tied"``
        is one for all, ``"shrunk"`` between full and tied.
    variant : {"paper", "in-sample", "no-log", "capped"}
        The others are in circulation, and score the examples they are fitted on: ``"in-sample"``
        otherwise like the paper; ``"no-log"`` the mean probability, not its logarithm;
        ``"capped"`` with max(min(classes, .2 n), .1 n) Gaussians for n examples.
    steps, tolerance : int, float
        EM makes at most so many steps, and stops where one adds less to the mean log-likelihood;
        looked at every fifth step.
    rng : int or Generator
        Draws the seeds of k-means.

    Returns
    -------
    float
        Nats per label (for ``"no-log"`` a probability). Unseen test labels as in
        :func:`~curvewise.ranking.leep.leep`.

    Warns
    -----
    CurvewiseWarning
        If there are fewer than five examples a component, all features are the same, full
        covariance is stuck, or many test labels were never seen with their component.

    Raises
    ------
    InputError
        If lengths differ, features are not finite, there is one class only, a test label is
        unknown in training, or an option is not.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat(["cat", "dog"], 100)
    >>> blurred = rng.standard_normal((200, 20))
    >>> clear = blurred + 3 * (labels == "cat")[:, None]
    >>> bool(nleep(clear, labels) > nleep(blurred, labels))
    True
    """
    settings = Settings(components, covariance, variant, steps, tolerance)
    x, test = as_matrix(features, "features"), None
    if has_test(test_features, test_labels, "test_features"):
        test = as_matrix(np.asarray(test_features), "test_features")
    reduced, test = reduce_features(x, test, energy)
    return nleep_reduced(reduced, labels, test, test_labels, settings, rng)


def reduce_features(x: Any, test: Any, energy: float, xp: Any = np) -> tuple[Any, Any]:
    """Principal components of training examples, and test examples on the same axes."""
    remedy = "give a share above 0 and up to 1, such as 0.8."
    if not 0 < as_number(energy, "energy", remedy) <= 1:
        raise InputError(f"energy={energy!r}: {remedy}")
    if test is not None:
        same_width(x, test, "test_features")
    reduced, projection = project(x, energy, xp)
    if not bool((reduced != 0).any()):
        _warn("all examples have the same features: they tell nothing about labels.", level=4)
    return reduced, None if test is None else projection.apply(xp.asarray(test, dtype=x.dtype), xp)


def nleep_reduced(
    reduced: Any,
    labels: ArrayLike,
    test: Any = None,
    test_labels: ArrayLike | None = None,
    settings: Settings = Settings(),  # noqa: B008  frozen
    rng: int | np.random.Generator = 0,
    xp: Any = np,
) -> float:
    """NLEEP from what :func:`reduce_features` gives, or a part of its rows.

    ``reduced`` and ``test`` are arrays of ``xp``, numpy or torch; labels are numpy's.
    """
    targets = as_targets(labels, len(reduced), allowed=TAKES, measure="nleep")
    asked = None
    if test is not None:
        if settings.variant != "paper":
            raise InputError(
                f"variant={settings.variant!r} scores the examples it is fitted on: leave "
                "test_features and test_labels out, or use variant='paper'."
            )
        asked = asked_targets(test_labels, len(test), targets, "nleep")
    own, tested = _posteriors(reduced, targets, test, settings, rng, xp)
    found = predict_labels(own, targets, tested, targets if asked is None else asked, xp)
    if settings.variant == "no-log":
        return float(found.mean())
    return mean_log(found, targets, asked, level=4)


def _posteriors(
    x: Any,
    targets: Targets,
    test: Any,
    settings: Settings,
    rng: int | np.random.Generator,
    xp: Any,
) -> tuple[Any, Any]:
    """Chances of components, for training and test examples (the same without those)."""
    wanted = settings.count(len(x), len(np.unique(targets.codes)))
    count = min(wanted, len(x))
    if len(x) < FEW * wanted:
        _warn(
            f"{len(x)} examples for {wanted} components are fewer than {FEW} for each: the score "
            "tells them apart by chance. Take more examples or fewer components."
        )
    draws = xp.asarray(np.random.default_rng(rng).random((count, candidates(count))))
    start = cluster(x, draws, xp)
    mixture = fit_mixture(
        x,
        start,
        count,
        settings.covariance,
        steps=int(settings.steps),
        tolerance=settings.tolerance,
        xp=xp,
    )
    own = mixture.posteriors(x, xp)
    thin = settings.covariance == "full" and len(x) <= count * x.shape[1]
    if thin and bool((own.argmax(axis=1) == start).all()):
        _warn(
            f"full covariance is stuck where k-means left it: {len(x) / count:.0f} examples a "
            f"component in {x.shape[1]} dimensions. Use covariance='diagonal' or 'shrunk'.",
        )
    return own, own if test is None else mixture.posteriors(test, xp)


def _warn(message: str, level: int = 5) -> None:
    warnings.warn(message, CurvewiseWarning, stacklevel=level)


def _operations(n: int, d: int, classes: int) -> float:
    """The covariance (or the products of examples), and 50 steps of EM in 100 dimensions."""
    return float(n) * d * min(n, d) + 50 * 8.0 * n * min(d, 100) * 5 * classes


MEASURES = (
    RankingMeasure(
        "nleep",
        nleep,
        about="How well Gaussian clusters of features tell the labels (NLEEP, Li et al. 2021).",
        cost="A covariance of features, and EM in matrix products: about 1 s of CPU for 10,000 "
        "examples of 2,048 dimensions and 10 classes.",
        fails="With few examples a component it tells them apart by chance; full covariance then "
        "stays where k-means left it.",
        flops=_operations,
        splits=True,
        seeded=True,
        targets=TAKES,
        guess="log",
        bounds=(-np.inf, 0.0),
    ),
)
