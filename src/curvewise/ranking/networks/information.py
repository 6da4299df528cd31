"""Lower bound of the mutual information of features and labels, from a critic that is trained."""

from __future__ import annotations

import copy
import functools
import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from curvewise.errors import InputError, either
from curvewise.nn.devices import find_device
from curvewise.ranking.measure import RankingMeasure, as_number, warn
from curvewise.ranking.mixture import project
from curvewise.ranking.networks.probes import TARGETS, Labelled, fifth, own_terms, read_labelled, scale_of
from curvewise.types.results import check_whole

# Random orders in which test examples are put into batches.
SHUFFLES = 4
# Units of each of the critic's two hidden layers.
WIDTH = 256
# Learning rate of Adam.
CRITIC_RATE = 5e-4
# Steps between two looks at held-out examples.
BOUND_LOOK = 25
# Looks without a better bound after which training ends.
PATIENCE = 10
# Examples for each dimension below which a critic memorises its examples.
FEW = 10
# Training examples from which principal axes are computed at most, and components that are counted.
AXES_FROM, COMPONENTS = 8192, 128


def information_score(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    test_features: ArrayLike | None = None,
    test_labels: ArrayLike | None = None,
    alpha: float = 0.01,
    energy: float | None = None,
    batch: int = 128,
    steps: int = 2000,
    device: str | None = None,
    rng: int | np.random.Generator = 0,
) -> float:
    """Lower bound I_α of the mutual information of features and labels, in nats.

    For K pairs with critic f, m(y) = mean over them of exp f(x, y), and a baseline q(y) that is
    trained, too (Poole et al. 2019, interpolated bounds)::

        I_α = 1 + E[f(x, y) − log a(y)] − E_y[m(y) / a(y)],   a = α m + (1 − α) q

    With α = 1 it is InfoNCE, at most log K and steady; towards 0 its bias falls and its variance
    rises, up to about log(K/α). The critic is a network with two hidden layers of 256 units and an
    output for each class, trained by Adam. Labels are few and known, so that the second mean is
    taken over all of them, and not over those of the batch. Training begins with a bound of 0 and
    ends where that of a fifth of the training examples, held out for this, is best: what is scored
    is neither memorised nor chosen by its own score.

    Parameters
    ----------
    features : array_like, shape (examples, dimensions)
        Of the training examples.
    labels : array_like
        A class for each, or a matrix of 0 and 1 (multi-label, if not every row has exactly one 1): then each label of
        an example makes a pair with it.
    test_features, test_labels : array_like, optional
        Those that are scored; without, the training examples are (in-sample, which is too high).
    alpha : float
        Above 0 and up to 1; the paper on ranking takes 0.01 and 0.5.
    energy : float, optional
        Share of the variance that principal components keep before (0.8 in the paper); all
        features by default. Of more than 8,192 training examples, so many are drawn for the axes,
        which would else cost more than all the rest.
    batch : int
        K. Where there are fewer examples, as many as there are.
    steps : int
        At most.
    device : str, optional
        The CPU by default.
    rng : int or Generator
        Decides the critic's first weights, batches, and what is held out.

    Returns
    -------
    float
        Mean over batches of test examples. It may be negative, and above the truth by chance.

    Warns
    -----
    CurvewiseWarning
        If there are fewer than ten training examples for each dimension, if the labels' entropy
        is above log(K/α), or if nothing was found.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> labels = random.integers(2, size=1000)
    >>> x = random.standard_normal((1000, 2)) + 10 * labels[:, None]
    >>> test = {"test_features": x[500:], "test_labels": labels[500:]}
    >>> round(information_score(x[:500], labels[:500], **test, steps=300), 2)  # log 2 = 0.69
    0.69
    """
    how = BoundSettings(alpha, energy, batch, steps)
    random = np.random.default_rng(rng)
    train, test = read_labelled(features, labels, test_features, test_labels, "the bound I_α")
    if energy is not None:
        # Both on the principal components of the training examples.
        some = train.x
        if len(some) > AXES_FROM:
            some = some[np.sort(random.choice(len(some), AXES_FROM, replace=False))]
        scores, projection = project(some, energy)
        if some is not train.x:
            scores = projection.apply(train.x)
        test_scores = scores if test is train else projection.apply(test.x.astype(scores.dtype))
        train, test = Labelled(scores, train.targets), Labelled(test_scores, test.targets)
    place = find_device(device or "cpu")
    kept, out = fifth(random.permutation(len(train)), train.targets)
    mean, spread = scale_of(train.x)
    if energy is not None:
        # One spread for all keeps the weights of principal components: each its own would raise noise.
        spread = np.full_like(spread, np.sqrt(np.mean(spread**2)))
    make = functools.partial(_pairs, scale=(mean, spread), place=place)
    with own_terms(place):
        pairs = make(test, np.arange(len(test)))
        dimensions = train.x.shape[1]
        if len(train) < FEW * dimensions:
            warn(
                f"{len(train)} examples in {dimensions} dimensions: the critic overfits them, and the bound I_α lies "
                "far below the mutual information. Use more examples, or fewer dimensions "
                f"({either('energy=0.8', 'the measure mi-pca-0.01')})."
            )
        shares = pairs.shares[pairs.shares > 0]
        entropy, most = float(-(shares * shares.log()).sum()), math.log(how.batch / how.alpha)
        if entropy > most:
            warn(
                f"The labels' entropy of {entropy:.2f} nats is above log(batch/alpha) = {most:.2f}, "
                "which the bound I_α hardly exceeds: raise batch."
            )
        critic = train_critic(make(train, kept), make(train, out), how, random)
        found = float(np.mean([critic.bound(pairs, how, random) for _ in range(SHUFFLES)]))
    if found <= 0:
        warn(
            f"The bound I_α is {found:.2g}: the critic found nothing that generalises to other examples. Use more "
            f"examples, or {either('energy=0.8', 'the measure mi-pca-0.01')}."
        )
    return found


def _pairs(
    some: Labelled, rows: NDArray[np.int64], *, scale: tuple[NDArray[Any], NDArray[Any]], place: torch.device
) -> LabelledPairs:
    """Return pairs of some examples, with standardised features."""
    own = np.isin(some.targets.rows, rows)
    codes = some.targets.codes[own]
    if not len(codes):
        raise InputError("The examples that are held out or scored have no labels: give more.")
    x = ((some.x[some.targets.rows[own]] - scale[0]) / scale[1]).astype(np.float32)
    shares = np.bincount(codes, minlength=len(some.targets.classes)) / len(codes)
    return LabelledPairs(
        torch.from_numpy(x).to(place),
        torch.from_numpy(codes).to(place),
        torch.from_numpy(shares).to(place, torch.float32),
    )


def _bound_flops(n: int, d: int, classes: int, *, energy: bool) -> float:
    """Count operations of a thousand steps, with 128 principal components at most."""
    inputs, before = d, 0.0
    if energy:
        rows, inputs = min(n, AXES_FROM), min(d, COMPONENTS)
        before = 2.0 * rows * d * min(rows, d) + 2.0 * n * d * inputs  # the axes, and all examples along them
    return before + 1000 * 6.0 * 128 * WIDTH * (inputs + WIDTH + classes)


@dataclass(frozen=True)
class BoundSettings:
    """Settings of the bound; see :func:`information_score`."""

    alpha: float
    energy: float | None
    batch: int
    steps: int

    def __post_init__(self) -> None:
        for name in ("alpha",) if self.energy is None else ("alpha", "energy"):
            as_number(getattr(self, name), name, "give a number above 0 and up to 1.", lambda v: 0 < v <= 1)
        for name, least in (("batch", 2), ("steps", 1)):
            object.__setattr__(self, name, check_whole(getattr(self, name), name, least))


@dataclass(frozen=True, eq=False)
class LabelledPairs:
    """Features and labels on a device: a row for each label of each example."""

    x: Tensor
    codes: Tensor
    shares: Tensor

    def __len__(self) -> int:
        return len(self.codes)


class Critic:
    """Network with an output f(x, y) for each class y, and log q(y).

    Parameters
    ----------
    dimensions, classes : int
        What goes in and comes out.
    random : Generator
        Draws its first weights.
    place : device
    """

    def __init__(self, dimensions: int, classes: int, random: np.random.Generator, place: torch.device) -> None:
        sizes = (dimensions, WIDTH, WIDTH, classes)
        first = [np.zeros(classes)]
        for fan, units in itertools.pairwise(sizes):
            first += [random.uniform(-1, 1, (units, fan)) / math.sqrt(fan), np.zeros(units)]
        first[-2][:] = 0  # all classes are alike in the beginning, and the bound is 0
        self.tensors = [torch.from_numpy(array).to(place, torch.float32).requires_grad_() for array in first]

    def __call__(self, x: Tensor) -> Tensor:
        """Return f(x, y), shape (examples, classes)."""
        layers = list(zip(self.tensors[1::2], self.tensors[2::2], strict=True))
        for weight, bias in layers[:-1]:
            x = nn.functional.relu(nn.functional.linear(x, weight, bias))
        return nn.functional.linear(x, *layers[-1])

    @torch.no_grad()
    def bound(self, pairs: LabelledPairs, how: BoundSettings, random: np.random.Generator) -> float:
        """Return the mean of I_α over batches of about K pairs in a random order."""
        order = torch.from_numpy(random.permutation(len(pairs))).to(pairs.x.device)
        found = [
            interpolated_bound(self(pairs.x[rows]), pairs.codes[rows], pairs.shares, self.tensors[0], how.alpha)
            for rows in order.tensor_split(max(len(order) // how.batch, 1))
        ]
        return float(torch.stack(found).mean())


def interpolated_bound(scores: Tensor, codes: Tensor, shares: Tensor, log_baseline: Tensor, alpha: float) -> Tensor:
    """Compute I_α of a batch.

    Parameters
    ----------
    scores : Tensor, shape (K, classes)
        f(x, y) for each example and each class.
    codes : Tensor, shape (K,)
        The class of each example.
    shares, log_baseline : Tensor, shape (classes,)
        p(y) and log q(y).
    alpha : float
        α.

    Examples
    --------
    >>> scores, codes = torch.eye(2) * 1000, torch.arange(2)  # certain of each of two examples
    >>> half = torch.full((2,), 0.5)
    >>> round(float(interpolated_bound(scores, codes, half, torch.zeros(2), alpha=1)), 3)
    0.693
    """
    log_mean = scores.logsumexp(dim=0) - math.log(len(scores))
    log_a = log_mean
    if alpha < 1:
        log_a = torch.logaddexp(log_mean + math.log(alpha), log_baseline + math.log1p(-alpha))
    joint = scores.gather(1, codes[:, None])[:, 0] - log_a[codes]
    return 1 + joint.mean() - (shares * torch.exp(log_mean - log_a)).sum()


def train_critic(train: LabelledPairs, out: LabelledPairs, how: BoundSettings, random: np.random.Generator) -> Critic:
    """Train a critic; return it as it was when the held-out pairs had their best bound."""
    place, size = train.x.device, min(how.batch, len(train))
    critic = Critic(train.x.shape[1], len(train.shares), random, place)
    search = torch.optim.Adam(critic.tensors, lr=CRITIC_RATE)
    best, since, kept = 0.0, 0, copy.deepcopy(critic)
    for first in range(0, how.steps, BOUND_LOOK):
        count = min(BOUND_LOOK, how.steps - first)
        batches = torch.from_numpy(random.integers(len(train), size=(count, size))).to(place)
        for rows in batches:
            search.zero_grad()
            value = interpolated_bound(
                critic(train.x[rows]), train.codes[rows], train.shares, critic.tensors[0], how.alpha
            )
            (-value).backward()  # type: ignore[no-untyped-call]
            search.step()
        found, since = critic.bound(out, how, random), since + 1
        if found > best:
            best, since, kept = found, 0, copy.deepcopy(critic)
        if since >= PATIENCE:
            break
    return kept


MEASURES = tuple(
    RankingMeasure(
        f"mi-pca-{alpha:g}" if energy else f"mi-{alpha:g}",
        functools.partial(information_score, alpha=alpha, energy=energy),
        about=f"Lower bound I_α of the mutual information of features and labels at α = {alpha:g}"
        f"{', after PCA that keeps 0.8 of the energy' if energy else ''} (Poole et al. 2019).",
        cost="Training a network with two hidden layers for some hundred batches: seconds.",
        fails="High dimension and little data: with fewer than ten examples for each dimension the "
        "critic memorises them. Without test examples it is in-sample.",
        flops=functools.partial(_bound_flops, energy=energy is not None),
        splits=True,
        seeded=True,
        targets=TARGETS,
    )
    for energy in (None, 0.8)
    for alpha in (0.01, 0.5)
)
