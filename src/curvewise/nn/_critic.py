"""A network that tells pairs of features and labels that belong together, and its bound I_α."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from curvewise.errors import InputError

WIDTH = 256
"""Units of each of the critic's two hidden layers."""

RATE = 5e-4
LOOK = 25
"""Steps between two looks at held-out examples."""

PATIENCE = 10
"""Looks without a better bound after which training ends."""


@dataclass(frozen=True)
class Settings:
    """How a bound is estimated; see :func:`information_score`."""

    alpha: float
    energy: float | None
    batch: int
    steps: int

    def __post_init__(self) -> None:
        for name in ("alpha", "energy"):
            value = getattr(self, name)
            if value is not None and not 0 < value <= 1:
                raise InputError(f"{name}={value!r}: give a number above 0 and up to 1.")
        for name, least in (("batch", 2), ("steps", 1)):
            value = getattr(self, name)
            if int(value) != value or value < least:
                raise InputError(f"{name}={value!r}: give a whole number of at least {least}.")


@dataclass(frozen=True, eq=False)
class Pairs:
    """Features and labels on a device: a row for each label of each example."""

    x: Tensor
    codes: Tensor
    shares: Tensor

    def __len__(self) -> int:
        return len(self.codes)


class Critic:
    """A network with an output f(x, y) for each class y, and log q(y).

    Parameters
    ----------
    dimensions, classes : int
        What goes in and comes out.
    random : Generator
        Draws its first weights.
    place : device
    """

    def __init__(
        self, dimensions: int, classes: int, random: np.random.Generator, place: torch.device
    ) -> None:
        sizes = (dimensions, WIDTH, WIDTH, classes)
        first = [np.zeros(classes)]
        for fan, units in itertools.pairwise(sizes):
            first += [random.uniform(-1, 1, (units, fan)) / math.sqrt(fan), np.zeros(units)]
        first[-2][:] = 0  # all classes are alike in the beginning, and the bound is 0
        self.tensors = [
            torch.from_numpy(array).to(place, torch.float32).requires_grad_() for array in first
        ]

    def __call__(self, x: Tensor) -> Tensor:
        """f(x, y), shape (examples, classes)."""
        layers = list(zip(self.tensors[1::2], self.tensors[2::2], strict=True))
        for weight, bias in layers[:-1]:
            x = nn.functional.relu(nn.functional.linear(x, weight, bias))
        return nn.functional.linear(x, *layers[-1])

    def copied(self) -> list[Tensor]:
        """Its weights as they are now."""
        return [tensor.detach().clone() for tensor in self.tensors]

    @torch.no_grad()
    def take(self, weights: list[Tensor]) -> None:
        """Have other weights."""
        for tensor, value in zip(self.tensors, weights, strict=True):
            tensor.copy_(value)

    @torch.no_grad()
    def bound(self, pairs: Pairs, how: Settings, random: np.random.Generator) -> float:
        """Mean of I_α over batches of about K pairs in a random order."""
        order = torch.from_numpy(random.permutation(len(pairs))).to(pairs.x.device)
        found = [
            interpolated_bound(
                self(pairs.x[rows]), pairs.codes[rows], pairs.shares, self.tensors[0], how.alpha
            )
            for rows in order.tensor_split(max(len(order) // how.batch, 1))
        ]
        return float(torch.stack(found).mean())


def interpolated_bound(
    scores: Tensor, codes: Tensor, shares: Tensor, log_baseline: Tensor, alpha: float
) -> Tensor:
    """I_α of a batch.

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


def train_critic(train: Pairs, out: Pairs, how: Settings, random: np.random.Generator) -> Critic:
    """A critic as it was when the held-out pairs had their best bound."""
    place, size = train.x.device, min(how.batch, len(train))
    critic = Critic(train.x.shape[1], len(train.shares), random, place)
    search = torch.optim.Adam(critic.tensors, lr=RATE)
    best, since, weights = 0.0, 0, critic.copied()
    for first in range(0, how.steps, LOOK):
        count = min(LOOK, how.steps - first)
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
            best, since, weights = found, 0, critic.copied()
        if since >= PATIENCE:
            break
    critic.take(weights)
    return critic
