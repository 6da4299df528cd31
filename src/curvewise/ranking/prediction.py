"""LEEP, NCE and NLEEP: labels predicted from a checkpoint's own classes, or from Gaussian clusters of its features.

Arrays of probabilities and features are numpy's or torch's, with ``xp`` the module; labels are numpy's.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.ranking.measure import (
    RankingMeasure,
    Targets,
    as_matrix,
    as_number,
    as_targets,
    as_test_targets,
    check_known,
    check_width,
    has_test,
    read_test,
    warn,
)
from curvewise.ranking.mixture import COVARIANCES, candidates, cluster, fit_mixture, project
from curvewise.types.results import FloatArray, as_unmasked, check_whole, count_missing

TAKES = ("classes", "multilabel")
# Share of test labels at the floor above which a warning is due.
RARE = 0.05
VARIANTS = ("paper", "in-sample", "no-log", "capped")
# Examples per component below which a warning is due.
FEW = 5


def leep(
    source_probabilities: ArrayLike,
    labels: ArrayLike,
    *,
    test_probabilities: ArrayLike | None = None,
    test_labels: ArrayLike | None = None,
) -> float:
    """Log expected empirical prediction (Nguyen et al. 2020): more is better, 0 is best.

    The source classes z that a checkpoint's own head sees in training examples are counted with
    their labels y. Then Σ P̂(y|z) P(z|x) predicts the label of a test example without training,
    and the score is the mean logarithm of the probability of the right label.

    Parameters
    ----------
    source_probabilities : array_like, shape (examples, source classes)
        Softmax output of the checkpoint's own head, for the training examples. Rows that add up
        to 1 within a hundredth, as in half precision, are scaled to do so.
    labels : array_like
        A class for each, or a matrix of 0 and 1 (examples × classes) where there may be several:
        then an example counts once for each of its labels.
    test_probabilities, test_labels : array_like, optional
        Examples to score. Without them the training examples are scored (in-sample).

    Returns
    -------
    float
        Nats per label. A source class without weight in training predicts labels by frequency.
        A label that training never saw with the source classes of a test example would score -∞:
        probabilities of test labels are not let below P̂(y)/(ñ + 1), what one more example with a
        label drawn by frequency would give. A warning is given where more than one in twenty is.

    Raises
    ------
    InputError
        If rows are not probabilities, lengths differ, there is one class only, or a test label is
        unknown in training.

    See Also
    --------
    nce : With one source class for each example.
    curvewise.ranking.prediction.nleep : For checkpoints without a head.

    Examples
    --------
    >>> source = [[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.2, 0.8]]
    >>> round(leep(source, ["cat", "cat", "dog", "dog"]), 4)
    -0.2955
    >>> round(leep(source, ["cat", "dog", "cat", "dog"]), 4)
    -0.6931
    """
    own = as_probabilities(source_probabilities, "source_probabilities")
    test = read_test(test_probabilities, test_labels, own, "test_probabilities", as_probabilities)
    return _score_predictions(own, labels, test, test_labels, "leep")


def nce(
    source_probabilities: ArrayLike,
    labels: ArrayLike,
    *,
    test_probabilities: ArrayLike | None = None,
    test_labels: ArrayLike | None = None,
) -> float:
    """Negative conditional entropy of labels given source classes (Tran et al. 2019).

    As :func:`leep`, with each example counted for one source class, the most probable. More is
    better, 0 is best.

    Parameters
    ----------
    source_probabilities : array_like
        Softmax output (examples × source classes) of the checkpoint's own head, or a source class
        for each example: a number or a name.
    labels : array_like
        A class for each, or a matrix of 0 and 1 (examples × classes).
    test_probabilities, test_labels : array_like, optional
        Examples to score, in the same form. Without them the training examples are scored
        (in-sample).

    Returns
    -------
    float
        Nats per label. Pairs that training never saw are treated as in :func:`leep`.

    Raises
    ------
    InputError
        As :func:`leep`.

    Examples
    --------
    >>> round(nce([0, 0, 0, 1], ["cat", "cat", "dog", "dog"]), 4)
    -0.4774
    """
    own = every = _source_classes(source_probabilities, "source_probabilities")
    tested = has_test(test_probabilities, test_labels, "test_probabilities")
    if tested:
        every = np.concatenate([own, _source_classes(test_probabilities, "test_probabilities")])
        given, asking = np.asarray(source_probabilities), np.asarray(test_probabilities)
        if given.ndim == asking.ndim == 2:
            check_width(given, asking, "test_probabilities")
    # One source class for each example is a row of probabilities that are 0 and 1.
    names, codes = np.unique(every, return_inverse=True)
    marks = (codes[:, None] == np.arange(len(names))).astype(np.float64)
    return _score_predictions(marks[: len(own)], labels, marks[len(own) :] if tested else None, test_labels, "nce")


def _score_predictions(
    own: NDArray[Any], labels: ArrayLike, test: NDArray[Any] | None, test_labels: ArrayLike | None, measure: str
) -> float:
    """Return the mean log probability of labels given source classes; in-sample without test examples."""
    targets = as_targets(labels, len(own), allowed=TAKES, measure=measure)
    if test is None:
        return mean_log(predict_labels(own, targets, own, targets), targets, None)
    test_targets = as_test_targets(test_labels, len(test), targets, measure)
    return mean_log(predict_labels(own, targets, test, test_targets), targets, test_targets)


def as_probabilities(values: ArrayLike | None, argument: str) -> NDArray[np.floating[Any]]:
    """Return a matrix whose rows are probabilities; raise for anything else."""
    found = as_matrix(values, argument)
    least, sums = float(found.min()), found.sum(axis=1, dtype=np.float64)
    worst = float(sums[abs(sums - 1).argmax()])
    if least < 0 or abs(worst - 1) > 0.01:
        seen = f"{least:.4g}" if least < 0 else f"a row that adds up to {worst:.4g}"
        raise InputError(
            f"holds {seen}: give probabilities, which add up to 1 in each row. For "
            "logits take their softmax; for features without a head there is nleep.",
            argument=argument,
        )
    scaled: NDArray[np.floating[Any]] = found / sums.astype(found.dtype)[:, None]
    return scaled


def _source_classes(values: ArrayLike | None, argument: str) -> NDArray[Any]:
    """Return a source class for each example: the most probable, or the one given."""
    found: NDArray[Any] = np.asarray(as_unmasked(values, argument))
    if found.ndim != 1:
        likely: NDArray[Any] = as_probabilities(found, argument).argmax(axis=1)
        return likely
    if found.dtype.kind in "fO" and count_missing(found.tolist()):
        raise InputError("has missing values: leave those examples out.", argument=argument)
    return found.astype(np.str_) if found.dtype.kind == "O" else found


@dataclass(frozen=True)
class NleepSettings:
    """Settings of the mixture that NLEEP fits; see :func:`nleep`."""

    components: int = 5
    covariance: str = "diagonal"
    variant: str = "paper"
    steps: int = 100
    tolerance: float = 1e-3  # of a step's gain in mean log-likelihood, below which EM stops

    def __post_init__(self) -> None:
        check_known(self.covariance, "covariance", COVARIANCES)
        check_known(self.variant, "variant", VARIANTS)
        for name in ("components", "steps"):
            check_whole(getattr(self, name), name, 1)

    def count(self, examples: int, classes: int) -> int:
        """Return the number of components."""
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
    rng: int | np.random.Generator = 0,
) -> float:
    """LEEP with Gaussian clusters of features for source classes (Li et al. 2021).

    Features of the training examples are reduced to the principal components that hold a share of
    the variance; a mixture of Gaussians is fitted to them by EM from k-means; and the chances of
    its components given an example take the place of a classification head in
    :func:`~curvewise.ranking.prediction.leep`. More is better, 0 is best. Neither the order of examples,
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
        Of a Gaussian. The paper does not state its own, and most take ``"full"``, which needs many more
        examples a component than dimensions: otherwise EM stops where k-means left it. ``"tied"``
        is one for all, ``"shrunk"`` between full and tied.
    variant : {"paper", "in-sample", "no-log", "capped"}
        The others are in circulation, and score the examples they are fitted on: ``"in-sample"``
        otherwise like the paper; ``"no-log"`` the mean probability, not its logarithm;
        ``"capped"`` with max(min(classes, .2 n), .1 n) Gaussians for n examples.
    steps : int
        Maximum number of EM steps; EM stops earlier once a step adds less than 0.001 to the mean
        log-likelihood.
    rng : int or Generator
        Draws the seeds of k-means.

    Returns
    -------
    float
        Nats per label (for ``"no-log"`` a probability). Unseen test labels as in
        :func:`~curvewise.ranking.prediction.leep`.

    Warns
    -----
    CurvewiseWarning
        If there are fewer than five examples a component, all features are the same, full
        covariance is stuck, or many test labels never occurred with their component.

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
    settings = NleepSettings(components, covariance, variant, steps)
    x = as_matrix(features, "features")
    reduced, test = reduce_features(x, read_test(test_features, test_labels, x, "test_features"), energy)
    return nleep_reduced(reduced, labels, test, test_labels, settings, rng)


def reduce_features(x: Any, test: Any, energy: float, xp: Any = np) -> tuple[Any, Any]:
    """Return principal components of training examples, and test examples on the same axes."""
    as_number(energy, "energy", "give a share above 0 and up to 1, such as 0.8.", lambda share: 0 < share <= 1)
    reduced, projection = project(x, energy, xp)
    if not bool((reduced != 0).any()):
        warn("all examples have the same features, which therefore say nothing about the labels.")
    return reduced, None if test is None else projection.apply(xp.asarray(test, dtype=x.dtype), xp)


def nleep_reduced(
    reduced: Any,
    labels: ArrayLike,
    test: Any = None,
    test_labels: ArrayLike | None = None,
    settings: NleepSettings = NleepSettings(),
    rng: int | np.random.Generator = 0,
    xp: Any = np,
) -> float:
    """Compute NLEEP from the result of :func:`reduce_features`, or from some of its rows."""
    targets = as_targets(labels, len(reduced), allowed=TAKES, measure="nleep")
    test_targets = None
    if test is not None:
        if settings.variant != "paper":
            raise InputError(
                "it scores the examples it is fitted on: leave test_features and test_labels out, or take 'paper'.",
                argument="variant",
                value=settings.variant,
            )
        test_targets = as_test_targets(test_labels, len(test), targets, "nleep")
    own, tested = _posteriors(reduced, targets, test, settings, rng, xp)
    found = predict_labels(own, targets, tested, targets if test_targets is None else test_targets, xp)
    if settings.variant == "no-log":
        return float(found.mean())
    return mean_log(found, targets, test_targets)


def _posteriors(
    x: Any, targets: Targets, test: Any, settings: NleepSettings, rng: int | np.random.Generator, xp: Any
) -> tuple[Any, Any]:
    """Return the probabilities of components for training and test examples (the same without those)."""
    wanted = settings.count(len(x), len(np.unique(targets.codes)))
    count = min(wanted, len(x))
    if len(x) < FEW * wanted:
        warn(
            f"{len(x)} examples for {wanted} components are fewer than {FEW} for each: the score is "
            "mostly chance. Take more examples or fewer components."
        )
    draws = xp.asarray(np.random.default_rng(rng).random((count, candidates(count))))
    start = cluster(x, draws, xp)
    mixture = fit_mixture(
        x, start, count, settings.covariance, steps=int(settings.steps), tolerance=settings.tolerance, xp=xp
    )
    own = mixture.posteriors(x, xp)
    # With no more examples per component than dimensions every full covariance is singular but for the floor on
    # variances, and EM cannot move an example from one component to another.
    thin = settings.covariance == "full" and len(x) <= count * x.shape[1]
    if thin and bool((own.argmax(axis=1) == start).all()):
        warn(
            f"full covariance is stuck where k-means left it: {len(x) / count:.0f} examples per "
            f"component in {x.shape[1]} dimensions. Use covariance='diagonal' or 'shrunk'."
        )
    return own, own if test is None else mixture.posteriors(test, xp)


def predict_labels(source: Any, targets: Targets, tested: Any, test_targets: Targets, xp: Any = np) -> FloatArray:
    """Return the probability of each test label, Σ P̂(label | source class) P(source class | example).

    Parameters
    ----------
    source, tested : array, shape (examples, source classes)
        Probabilities of source classes for the training and the test examples.
    targets, test_targets : Targets
        Their labels.
    xp : module
        numpy or torch.

    Returns
    -------
    ndarray
        In the order of the rows of ``test_targets``.
    """
    parts, _ = _by_class(source, targets, xp)
    sums = xp.stack([part.sum(axis=0, dtype=xp.float64) for part in parts])
    given = xp.asarray(conditional(sums, xp), dtype=source.dtype)
    parts, places = _by_class(tested, test_targets, xp)
    values = np.empty(len(places))
    values[places] = xp.concatenate([part @ given[k] for k, part in enumerate(parts)]).tolist()
    return np.minimum(values, 1.0)  # some BLAS round a certain label to above 1


def conditional(sums: Any, xp: Any = np) -> Any:
    """Return P(label | source class) from sums; label frequencies where a source class has no weight.

    >>> conditional(np.array([[2.0, 0.0], [1.0, 0.0]])).round(3)
    array([[0.667, 0.667],
           [0.333, 0.333]])
    """
    weights = sums.sum(axis=0)
    safe = xp.where(weights > 0, weights, xp.ones_like(weights))
    return xp.where(weights > 0, sums / safe, (sums.sum(axis=1) / weights.sum())[:, None])


def mean_log(probabilities: FloatArray, targets: Targets, test_targets: Targets | None) -> float:
    """Return the mean logarithm; test labels have at least the probability that training can distinguish from 0.

    One more training example, with its label drawn apart from its source class, would change a
    probability p to (ñp + P̂(y)) / (ñ + 1): at least P̂(y) / (ñ + 1), where P̂(y) is the label's
    frequency and ñ the number of training labels.
    """
    if test_targets is not None:
        counts = np.bincount(targets.codes, minlength=len(targets.classes))
        floor = (counts / (len(targets.codes) * (len(targets.codes) + 1.0)))[test_targets.codes]
        unseen = float((probabilities < floor).mean())
        if unseen > RARE:
            warn(
                f"{unseen:.0%} of test labels were never seen with their source class in training:"
                " the score rests on the probability that one more example would give them. Take"
                " more training examples (for nleep also: fewer components)."
            )
        probabilities = np.maximum(probabilities, floor)
    return float(np.log(probabilities).mean())


def _by_class(values: Any, targets: Targets, xp: Any) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the rows of an array for each class, and the places of all of them among the targets."""
    order = np.argsort(targets.codes, kind="stable")
    rows = values[xp.asarray(targets.rows[order])]
    ends = [0, *np.cumsum(np.bincount(targets.codes, minlength=len(targets.classes))).tolist()]
    return [rows[first:last] for first, last in pairwise(ends)], order


# A mean logarithm of probabilities of test labels.
_LOGARITHM: dict[str, Any] = {"splits": True, "targets": TAKES, "guess": "log", "bounds": (-np.inf, 0.0)}
MEASURES = (
    RankingMeasure(
        "nleep",
        nleep,
        about="How well Gaussian clusters of features tell the labels (NLEEP, Li et al. 2021).",
        cost="A covariance of features, and EM in matrix products: about 1 s of CPU for 10,000 "
        "examples of 2,048 dimensions and 10 classes.",
        fails="With few examples a component it tells them apart by chance; full covariance then "
        "stays where k-means left it.",
        # The covariance (or the products of examples), and 50 steps of EM with 5 components a class in 100 dimensions.
        flops=lambda n, d, classes: float(n) * d * min(n, d) + 50 * 8.0 * n * min(d, 100) * 5 * classes,
        seeded=True,
        **_LOGARITHM,
    ),
    RankingMeasure(
        "leep",
        leep,
        about="How well the checkpoint's own classes tell the labels (LEEP, Nguyen et al. 2020).",
        cost="One pass over the head's probabilities.",
        fails="Needs a classification head; an overconfident head spoils it.",
        flops=lambda n, d, classes: 3.0 * n * d,  # d source classes
        takes="probabilities",
        **_LOGARITHM,
    ),
    RankingMeasure(
        "nce",
        nce,
        about="Minus the entropy of labels given the head's most probable class (NCE, Tran et al. 2019).",
        cost="One pass over the head's probabilities.",
        fails="Needs a classification head; many source classes for few examples look informative in-sample.",
        flops=lambda n, d, classes: float(n * d),
        takes="probabilities",
        **_LOGARITHM,
    ),
)
