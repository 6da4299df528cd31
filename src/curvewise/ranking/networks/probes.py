"""Linear classifiers on fixed features, after a few epochs or at convergence; labelled examples for all that trains."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from curvewise.errors import InputError, either
from curvewise.nn.devices import find_device
from curvewise.ranking.measure import (
    RankingMeasure,
    Targets,
    as_matrix,
    as_number,
    as_targets,
    as_test_targets,
    check_known,
    from_one_hot,
    read_test,
    warn,
)
from curvewise.ranking.prediction import NleepSettings, nleep_reduced, reduce_features
from curvewise.types.results import FloatArray, check_whole

TARGETS = ("classes", "multilabel")
# Penalties among which that of a converged classifier is chosen, from strong to weak.
PENALTIES = (1.0, 0.1, 0.01, 0.001)
# Momentum of SGD in Li et al. 2021.
MOMENTUM = 0.9
# Distance of the loss above its minimum, relative to it, at convergence.
GAP = 1e-4
# Most steps of L-BFGS.
STEPS = 2000
# Steps between two looks at the gap.
LOOK = 10
# Most examples on which a penalty is chosen.
CHOOSING_ROWS = 4000
# Steps on a GPU before a loop is recorded, in which libraries allocate their workspaces.
UNRECORDED = 2


def linear_score(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    test_features: ArrayLike | None = None,
    test_labels: ArrayLike | None = None,
    epochs: int | None = None,
    penalty: float | None = None,
    metric: Literal["accuracy", "log-likelihood"] = "accuracy",
    device: str | None = None,
    rng: int | np.random.Generator = 0,
    rate: float | None = None,
    batch: int | None = None,
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
        each class against the rest. A matrix with exactly one 1 in every row is classes.
    test_features, test_labels : array_like, optional
        Those that are scored; without, the training examples are (in-sample).
    epochs : int, optional
        Number of epochs; trained to convergence by default.
    penalty : float, optional
        λ in mean loss + λ/2·‖W‖², for a converged classifier. By default the best of 1, 0.1, 0.01
        and 0.001 by the log-likelihood of a fifth of the training examples (of at most 4,000),
        which are held out for this and used afterwards.
    metric : {"accuracy", "log-likelihood"}
        Quantity that is averaged over examples. With multi-label targets accuracy is the average precision
        of an example's own classes in the order in which the classifier puts them (scikit-learn's
        label ranking average precision).
    device : str, optional
        The CPU by default.
    rng : int or Generator
        Decides the order of examples in SGD, and which are held out to choose the penalty.
    rate : float, optional
        Learning rate of SGD. By default 1 / (largest eigenvalue of the covariance + dimensions / batch),
        which is about one over the largest curvature that a batch has.
    batch : int, optional
        Examples in a batch of SGD; by default a fiftieth of the examples, from 32 to the paper's 512.

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
    how: dict[str, Any] = {"epochs": epochs, "penalty": penalty, "metric": metric, "device": device}
    test: dict[str, Any] = {"test_features": test_features, "test_labels": test_labels}
    return float(linear_hits(features, labels, **test, **how, rng=rng, rate=rate, batch=batch).mean())


def linear_hits(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    test_features: ArrayLike | None = None,
    test_labels: ArrayLike | None = None,
    rng: int | np.random.Generator = 0,
    **settings: Any,
) -> FloatArray:
    """Return the value of each test example in :func:`linear_score`, which has the same arguments.

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
    how = ProbeSettings(**settings)
    random = np.random.default_rng(rng)
    train, test = read_labelled(features, labels, test_features, test_labels, "a linear probe")
    if test is train and len(train) <= train.x.shape[1]:
        warn(
            f"{len(train)} examples in {train.x.shape[1]} dimensions can be separated whatever their labels are, and "
            f"they are scored in-sample: give {either('test_features and test_labels', '--test')}."
        )
    place = find_device(how.device or "cpu")
    with own_terms(place):
        x, test_x = standardised(train, test, place)
        target = train.target(place)
        if how.epochs is None:
            penalty = chosen_penalty(x, target, train, random) if how.penalty is None else how.penalty
            weights, gap = converged(x, target, train.several, penalty, None, GAP)
            if gap > GAP:
                warn(
                    f"The linear classifier did not converge (in {STEPS} steps at most): its loss may be "
                    f"{gap:.1%} above the minimum. Use a penalty above {penalty:g}."
                )
        else:
            size = min(how.batch or batch_size(len(x)), len(x))
            steps = how.epochs * -(-len(x) // size)
            if steps < 10:
                warn(
                    f"{len(x)} examples in batches of {size} make {steps} steps: the classifier has hardly "
                    "been trained. Take a smaller batch, more epochs, or train until converged."
                )
            weights = descended(x, target, train.several, (how.epochs, how.rate, size), random)
            if not bool(weights.isfinite().all()):
                warn("The linear classifier diverged, and its score is NaN: lower its rate.")
        return hits_of(logits(test_x, weights), test, how.metric)


@dataclass(frozen=True)
class ProbeSettings:
    """Settings of a linear probe; see :func:`linear_score`."""

    epochs: int | None = None
    penalty: float | None = None
    metric: str = "accuracy"
    device: str | None = None
    rate: float | None = None
    batch: int | None = None

    def __post_init__(self) -> None:
        for name in ("epochs", "batch"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, check_whole(getattr(self, name), name, 1))
        for name in ("penalty", "rate"):
            if (value := getattr(self, name)) is not None:
                as_number(value, name, "give a number above 0.", lambda v: 0 < v < np.inf)
        if self.epochs is not None and self.penalty is not None:
            raise InputError("penalty is for a converged classifier: leave out penalty, or leave out epochs.")
        if self.epochs is None and (self.rate is not None or self.batch is not None):
            raise InputError("rate and batch are for SGD: give the number of epochs.")
        check_known(self.metric, "metric", ("accuracy", "log-likelihood"))


def batch_size(examples: int) -> int:
    """Return a fiftieth of the examples, from 32 to 512, and no more than there are.

    >>> [batch_size(n) for n in (10, 100, 5_000, 100_000)]
    [10, 32, 100, 512]
    """
    return min(max(examples // 50, 32), 512, examples)


def standardised(train: Labelled, test: Labelled, place: torch.device) -> tuple[Tensor, Tensor]:
    """Standardise both by the training examples; a constant dimension becomes 0 there."""
    mean, spread = scale_of(train.x)

    def scaled(x: NDArray[Any]) -> Tensor:
        centred = x - mean
        centred /= spread
        return torch.from_numpy(centred.astype(np.float32)).to(place)

    x = scaled(train.x)
    return x, x if test is train else scaled(test.x)


def logits(x: Tensor, weights: Tensor) -> Tensor:
    """Return the logits of a linear probe whose last row of weights is the bias."""
    return torch.addmm(weights[-1], x, weights[:-1])


def _loss(x: Tensor, target: Tensor, weights: Tensor, several: bool) -> tuple[Tensor, Tensor]:
    """Return the mean logistic loss in double precision, and its gradient; the last row is the bias."""
    z = logits(x, weights)
    if several:
        each = (torch.nn.functional.softplus(z) - z * target).sum(dim=1)
        off = torch.sigmoid(z) - target
    else:
        total = z.logsumexp(dim=1)
        each = total - (z * target).sum(dim=1)
        off = torch.exp(z - total[:, None]) - target
    gradient = torch.cat([x.T @ off, off.sum(dim=0, keepdim=True)]) / len(x)
    return each.mean(dtype=torch.float64), gradient


def converged(
    x: Tensor, target: Tensor, several: bool, penalty: float, start: Tensor | None, enough: float
) -> tuple[Tensor, float]:
    """Return weights that minimise the penalised loss, and a bound on the distance from the minimum.

    That is a share of the loss, and ``enough`` of it ends the search. Where classes are easily
    separated the loss is small, and rounding in single precision stops the search before:
    it then goes on in double precision.
    """
    weights = _zeros(x, target) if start is None else start.clone()
    gap, left = _search(x, target, several, penalty, weights, enough, STEPS)
    if gap > enough and left:
        exact = weights.double()
        gap, _ = _search(x.double(), target.double(), several, penalty, exact, enough, left)
        weights = exact.to(weights.dtype)
    return weights, gap


def _search(
    x: Tensor, target: Tensor, several: bool, penalty: float, weights: Tensor, enough: float, steps: int
) -> tuple[float, int]:
    """Change weights in place until the gap is small enough, steps run out or nothing changes.

    Returns the gap and how many steps are left.
    """
    # Tolerances of 0 leave the end to the gap; ten steps are done between two looks at it.
    search = torch.optim.LBFGS(
        [weights], max_iter=LOOK, history_size=10, tolerance_grad=0, tolerance_change=0, line_search_fn="strong_wolfe"
    )

    @torch.no_grad()
    def value() -> Tensor:
        loss, weights.grad = _loss(x, target, weights, several)
        weights.grad[:-1] += penalty * weights[:-1]
        return loss + penalty / 2 * weights[:-1].square().sum(dtype=torch.float64)

    gap, before = np.inf, np.inf
    while gap > enough and steps > 0:
        search.step(value)  # type: ignore[no-untyped-call]
        steps -= LOOK
        loss = float(value())
        gap = 1 - float(_floor(x, target, weights, several, penalty)) / loss
        if before - loss <= torch.finfo(x.dtype).eps * loss:
            break
        before = loss
    return gap, steps


def _floor(x: Tensor, target: Tensor, weights: Tensor, several: bool, penalty: float) -> Tensor:
    """Return a lower bound of the penalised loss, which the best weights reach.

    With any probabilities whose means are the shares of the classes, it is their mean entropy less
    ‖slope of W‖²/2λ (the dual problem). Those of the weights are mixed with a constant until their
    means are; a class that no example has is left out.
    """
    shares, z = target.mean(dim=0, dtype=torch.float64), logits(x, weights).double()
    p = torch.sigmoid(z) if several else z.masked_fill(shares == 0, -torch.inf).softmax(dim=1)
    mean_p = p.mean(dim=0)
    mixed = 1 - shares / mean_p.clamp(min=1e-300)
    if several:
        mixed = torch.maximum(mixed, 1 - (1 - shares) / (1 - mean_p).clamp(min=1e-300))
    else:
        mixed = mixed[shares > 0].amax()
    p = (p * (1 - mixed) + shares - mean_p * (1 - mixed)).clamp(0, 1)
    entropy: Tensor = torch.special.entr(p) + (torch.special.entr(1 - p) if several else 0)
    slope: Tensor = x.T @ (p - target).to(x.dtype) / len(x)
    return entropy.sum(dim=1).mean() - slope.square().sum(dtype=torch.float64) / (2 * penalty)


def _zeros(x: Tensor, target: Tensor) -> Tensor:
    """Return initial weights."""
    shape = (x.shape[1] + 1, target.shape[1])
    return torch.zeros(shape, dtype=torch.float32, device=x.device)


def chosen_penalty(x: Tensor, target: Tensor, train: Labelled, random: np.random.Generator) -> float:
    """Choose the penalty under which held-out examples are the most likely."""
    order = random.permutation(len(x))[:CHOOSING_ROWS]
    kept, out = (torch.from_numpy(rows).to(x.device) for rows in fifth(order, train.targets))
    best, least, weights = PENALTIES[0], np.inf, None
    for penalty in PENALTIES:
        weights, _ = converged(x[kept], target[kept], train.several, penalty, weights, 10 * GAP)
        loss = float(_loss(x[out], target[out], weights, train.several)[0])
        if loss > least:
            break
        best, least = penalty, loss
    return best


def descended(
    x: Tensor, target: Tensor, several: bool, how: tuple[int, float | None, int], random: np.random.Generator
) -> Tensor:
    """Return weights after epochs of SGD with momentum, in batches of about one size."""
    epochs, rate, size = how
    n, steps = len(x), -(-len(x) // size)
    if rate is None:
        # One over the largest curvature: the largest eigenvalue of the covariance by power iteration, and the noise
        # that a batch of this size adds.
        axis = torch.from_numpy(random.standard_normal(x.shape[1])).to(x.device, torch.float32)
        for _ in range(10):
            axis = x.T @ (x @ (axis / axis.norm().clamp(min=1e-30))) / len(x)
        rate = 1 / (max(float(axis.norm()), 1e-12) + x.shape[1] / size)
    weights = _zeros(x, target)
    velocity = torch.zeros_like(weights)
    for _ in range(epochs):
        order = torch.from_numpy(random.permutation(n)).to(x.device)
        for rows in order.tensor_split(steps):
            _, slope = _loss(x[rows], target[rows], weights, several)
            velocity.mul_(MOMENTUM).add_(slope)
            weights.sub_(velocity, alpha=rate)
    return weights


@dataclass(frozen=True, eq=False)
class Labelled:
    """Examples and their labels.

    Attributes
    ----------
    x : array or Tensor
        Their features or inputs, a row for each.
    targets : Targets
        Classes, or several classes each.
    """

    x: Any
    targets: Targets

    def __len__(self) -> int:
        return self.targets.count

    @property
    def several(self) -> bool:
        """True if an example can have several classes."""
        return self.targets.kind == "multilabel"

    def target(self, place: torch.device) -> Tensor:
        """Return examples × classes on a device, 1 where an example has the class."""
        return torch.from_numpy(self.targets.one_hot()).to(place, torch.float32)


def read_labelled(
    features: ArrayLike, labels: ArrayLike, test_features: ArrayLike | None, test_labels: ArrayLike | None, measure: str
) -> tuple[Labelled, Labelled]:
    """Check features with their labels; without test examples, the training ones twice."""
    labels, test_labels = from_one_hot(labels, test_labels)
    x = as_matrix(features, "features")
    train = Labelled(x, as_targets(labels, len(x), allowed=TARGETS, measure=measure))
    test_x = read_test(test_features, test_labels, x, "test_features")
    if test_x is None:
        return train, train
    return train, Labelled(test_x, as_test_targets(test_labels, len(test_x), train.targets, measure, seen=False))


def scale_of(x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return mean and spread of each dimension in double precision; the spread of a constant one is 1."""
    mean, spread = x.mean(axis=0, dtype=np.float64), x.std(axis=0, dtype=np.float64)
    rounding = 10 * np.finfo(x.dtype).eps
    return mean, np.where(spread > rounding * np.abs(mean), spread, 1)


@contextlib.contextmanager
def own_terms(place: torch.device) -> Iterator[None]:
    """Enable gradients and disable autocast, whatever was set around the block."""
    exact = torch.autocast(place.type, enabled=False)
    with torch.inference_mode(mode=False), exact:
        yield


def fifth(order: NDArray[np.int64], targets: Targets) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split examples into four fifths and one fifth, in which classes have the same shares.

    Parameters
    ----------
    order : ndarray of int
        Some examples in a random order.
    targets : Targets
        What all are labelled with; with several classes each, a fifth regardless of them.
    """
    out = np.arange(len(order)) % 5 == 4
    if targets.kind == "classes":
        _, first, which = np.unique(targets.codes[order], return_index=True, return_inverse=True)
        by_class = np.argsort(first[which], kind="stable")  # not by their names
        out[by_class] = out.copy()
    if not out.any():
        raise InputError(f"{len(order)} training examples are too few: give at least 5.")
    return order[~out], order[out]


def hits_of(logits: Tensor, test: Labelled, metric: str) -> FloatArray:
    """Return the value of each example under a metric; NaN where its logits are not finite.

    Parameters
    ----------
    logits : Tensor, shape (examples, classes)
        What a classifier says.
    test : Labelled
        What is right.
    metric : {"accuracy", "log-likelihood"}
        Accuracy is whether the largest logit is right or, with several classes, the average
        precision of the right ones in the order of the logits.
    """
    z, target = logits.double(), test.target(logits.device).double()
    if metric == "log-likelihood":
        if test.several:
            found = (z * target - torch.nn.functional.softplus(z)).sum(dim=1)
        else:
            found = ((z - z.logsumexp(dim=1, keepdim=True)) * target).sum(dim=1)
    elif test.several:
        found = _average_precision(z, target > 0)
    else:
        found = target.gather(1, z.argmax(dim=1, keepdim=True))[:, 0]
    found = torch.where(z.isfinite().all(dim=1), found, torch.nan)
    return np.asarray(found.cpu().numpy(), dtype=np.float64)


def _average_precision(z: Tensor, right: Tensor) -> Tensor:
    """Return the mean over an example's classes of the share of right ones among those ranked as high.

    1 for an example without any class, which no order can get wrong.
    """
    total = torch.zeros(len(z), dtype=torch.float64, device=z.device)
    for code in range(z.shape[1]):
        above = z >= z[:, code : code + 1]
        total += right[:, code] * (above & right).sum(dim=1) / above.sum(dim=1).clamp(min=1)
    count = right.sum(dim=1)
    return torch.where(count > 0, total / count.clamp(min=1), torch.ones_like(total))


def nleep_on_device(
    features: ArrayLike | Tensor,
    labels: ArrayLike,
    *,
    test_features: ArrayLike | Tensor | None = None,
    test_labels: ArrayLike | None = None,
    energy: float = 0.8,
    components: int = 5,
    covariance: str = "diagonal",
    variant: str = "paper",
    steps: int = 100,
    rng: int | np.random.Generator = 0,
    device: str | torch.device | None = None,
) -> float:
    """Compute NLEEP by torch; see :func:`curvewise.ranking.prediction.nleep`.

    Parameters
    ----------
    features, test_features : array_like or Tensor, shape (examples, dimensions)
        In memory or on the device already.
    labels, test_labels, energy, components, covariance, variant, steps, rng
        As there. The same draws are made, so that results differ by rounding only.
    device : str or torch.device, optional
        By default where the features are; for arrays the GPU if there is one.

    Returns
    -------
    float
        As there.

    Raises
    ------
    InputError
        As there; or if there is no such device.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> labels = np.repeat(["cat", "dog"], 100)
    >>> x = random.standard_normal((200, 20)) + 3 * (labels == "cat")[:, None]
    >>> from curvewise.ranking.prediction import nleep
    >>> abs(nleep_on_device(torch.tensor(x), labels) - nleep(x, labels)) < 1e-9
    True
    """
    settings = NleepSettings(components, covariance, variant, steps)
    default = features.device if isinstance(features, Tensor) else "cuda" if torch.cuda.is_available() else "cpu"
    place = find_device(device) if device is not None else torch.device(default)
    here = torch.cuda.device(place) if place.type == "cuda" else contextlib.nullcontext()
    with torch.no_grad(), here:
        read, xp = functools.partial(_matrix, place=place), TorchOn(place)
        x = read(features, "features")
        test = read_test(test_features, test_labels, x, "test_features", read)
        reduced, test = reduce_features(x, test, energy, xp)
        return nleep_reduced(reduced, labels, test, test_labels, settings, rng, xp)


class TorchOn:
    """Array module with the functions of torch whose new arrays lie on one device.

    A ``with torch.device(…)`` would do the same, and slow every call down; on a GPU loops are
    recorded as well.
    """

    def __init__(self, place: torch.device) -> None:
        makers = ("arange", "asarray", "empty", "eye", "zeros")
        self.__dict__ |= {name: functools.partial(getattr(torch, name), device=place) for name in makers}
        if place.type == "cuda":
            self.looped = _recorded

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


def _recorded(step: Callable[[], None]) -> Callable[[int], None]:
    """Replay steps from a CUDA graph, recorded after a few steps in which libraries allocate their memory."""
    stream, graph, taken = torch.cuda.Stream(), torch.cuda.CUDAGraph(), 0  # type: ignore[no-untyped-call]

    def go(times: int) -> None:
        nonlocal taken
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for number in range(taken, taken + times):
                if number == UNRECORDED:
                    graph.capture_begin(capture_error_mode="thread_local")
                    try:
                        step()
                    finally:
                        graph.capture_end()
                if number < UNRECORDED:
                    step()
                else:
                    graph.replay()
        taken += times
        torch.cuda.current_stream().wait_stream(stream)

    return go


def _matrix(values: Any, argument: str, place: torch.device) -> Tensor:
    """Return a finite matrix on the device."""
    if not isinstance(values, Tensor):
        return torch.asarray(as_matrix(values, argument), device=place, copy=True)
    if values.ndim != 2 or not values.numel() or not values.is_floating_point():
        raise InputError(
            f"has shape {tuple(values.shape)} and holds {values.dtype}: give a matrix "
            "of floats with a row for each example.",
            argument=argument,
        )
    found = values.to(place, values.dtype if values.dtype == torch.float64 else torch.float32)
    if not bool(torch.isfinite(found.sum())):
        as_matrix(found.cpu().numpy(), argument)
    return found


# A share of test examples that a trained network gets right.
SHARE: dict[str, Any] = {"splits": True, "seeded": True, "targets": TARGETS, "guess": "share", "bounds": (0.0, 1.0)}
_FAILS = (
    "{} Without test examples it is in-sample, and with no more examples than dimensions any labels can be separated."
)
MEASURES = (
    *(
        RankingMeasure(
            f"linear-{epochs}",
            functools.partial(linear_score, epochs=epochs),
            about=f"Accuracy of a linear classifier of the features after {duration} of SGD (Li et al. 2021).",
            cost="Two products with the features for each epoch: a second or so of CPU for 10,000 "
            "examples of 2,048 dimensions and 100 classes.",
            fails=_FAILS.format(
                "What is not yet trained tells little: it ranked worst beside fine-tuning in the paper."
            ),
            flops=functools.partial(lambda times, n, d, classes: 4.0 * times * n * d * classes + 40.0 * n * d, epochs),
            hits=functools.partial(linear_hits, epochs=epochs),
            **SHARE,
        )
        for epochs, duration in ((1, "one epoch"), (5, "five epochs"))
    ),
    RankingMeasure(
        "linear",
        linear_score,
        about="Accuracy of a linear classifier of the features trained until converged, its "
        "penalty chosen on held-out training examples (Li et al. 2021).",
        cost="About 60 passes over the features and 120 over at most 4,000 rows: about ten seconds "
        "of CPU for 10,000 examples of 2,048 dimensions and 100 classes.",
        fails=_FAILS.format("It sees what is linearly separable before fine-tuning only."),
        # Sixty evaluations of the loss and its gradient, and twice as many to choose the penalty.
        flops=lambda n, d, classes: 4.0 * d * classes * (60 * n + 120 * min(n, CHOOSING_ROWS)),
        hits=linear_hits,
        **SHARE,
    ),
)
