"""The arithmetic of linear classifiers: their loss, its minimum, and a few epochs towards it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from curvewise.nn._labelled import Labelled, fifth, scale_of

PENALTIES = (1.0, 0.1, 0.01, 0.001)
"""Among which the penalty of a converged classifier is chosen, from strong to weak."""

MOMENTUM = 0.9
GAP = 1e-4
"""How far above its minimum the loss may be, relative to it, to be called converged."""

STEPS = 2000
LOOK = 10
"""Steps between two looks at how far the loss is above its minimum."""

CHOOSING_ROWS = 4000
"""Most examples on which a penalty is chosen."""


def batch_size(examples: int) -> int:
    """A fiftieth of the examples, from 32 to 512, and no more than there are.

    >>> [batch_size(n) for n in (10, 100, 5_000, 100_000)]
    [10, 32, 100, 512]
    """
    return min(max(examples // 50, 32), 512, examples)


def standardised(train: Labelled, test: Labelled, place: torch.device) -> tuple[Tensor, Tensor]:
    """Both in units of the training examples' spread; what does not vary stays at 0 there."""
    mean, spread = scale_of(train.x)

    def scaled(x: NDArray[Any]) -> Tensor:
        centred = x - mean
        centred /= spread
        return torch.from_numpy(centred.astype(np.float32)).to(place)

    x = scaled(train.x)
    return x, x if test is train else scaled(test.x)


def logits(x: Tensor, weights: Tensor) -> Tensor:
    return torch.addmm(weights[-1], x, weights[:-1])


def _loss(x: Tensor, target: Tensor, weights: Tensor, several: bool) -> tuple[Tensor, Tensor]:
    """The mean logistic loss in double precision, and its gradient; the last row is the bias."""
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
    """Weights that minimise the penalised loss, and how far above the minimum it is at most.

    That is a share of the loss, and ``enough`` of it ends the search. Where classes are told
    apart easily the loss is small, and rounding in single precision stops the search before:
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
    x: Tensor,
    target: Tensor,
    several: bool,
    penalty: float,
    weights: Tensor,
    enough: float,
    steps: int,
) -> tuple[float, int]:
    """Change weights in place until the gap is small enough, steps are used up or they do nothing.

    Returns the gap and how many steps are left.
    """
    # Tolerances of 0 leave the end to the gap; ten steps are done between two looks at it.
    search = torch.optim.LBFGS(
        [weights],
        max_iter=LOOK,
        history_size=10,
        tolerance_grad=0,
        tolerance_change=0,
        line_search_fn="strong_wolfe",
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
    """A penalised loss that no weights get below, and that the best ones reach.

    With any probabilities whose means are the shares of the classes, it is their mean entropy less
    ‖slope of W‖²/2λ (the dual problem). Those of the weights are mixed with a constant until their
    means are; a class that no example has is left out.
    """
    shares, z = target.mean(dim=0, dtype=torch.float64), logits(x, weights).double()
    p = torch.sigmoid(z) if several else z.masked_fill(shares == 0, -torch.inf).softmax(dim=1)
    told = p.mean(dim=0)
    mixed = 1 - shares / told.clamp(min=1e-300)
    if several:
        mixed = torch.maximum(mixed, 1 - (1 - shares) / (1 - told).clamp(min=1e-300))
    else:
        mixed = mixed[shares > 0].amax()
    p = (p * (1 - mixed) + shares - told * (1 - mixed)).clamp(0, 1)
    entropy: Tensor = torch.special.entr(p) + (torch.special.entr(1 - p) if several else 0)
    slope: Tensor = x.T @ (p - target).to(x.dtype) / len(x)
    return entropy.sum(dim=1).mean() - slope.square().sum(dtype=torch.float64) / (2 * penalty)


def _zeros(x: Tensor, target: Tensor) -> Tensor:
    """Weights to begin with."""
    shape = (x.shape[1] + 1, target.shape[1])
    return torch.zeros(shape, dtype=torch.float32, device=x.device)


def chosen_penalty(
    x: Tensor, target: Tensor, train: Labelled, random: np.random.Generator
) -> float:
    """The penalty under which held-out examples are the most likely."""
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
    x: Tensor,
    target: Tensor,
    several: bool,
    how: tuple[int, float | None, int],
    random: np.random.Generator,
) -> Tensor:
    """Weights after epochs of SGD with momentum at a rate, in batches of about one size."""
    epochs, rate, size = how
    n, steps = len(x), -(-len(x) // size)
    if rate is None:
        rate = 1 / (_largest_variance(x, random) + x.shape[1] / size)
    weights = _zeros(x, target)
    velocity = torch.zeros_like(weights)
    for _ in range(epochs):
        order = torch.from_numpy(random.permutation(n)).to(x.device)
        for rows in order.tensor_split(steps):
            _, slope = _loss(x[rows], target[rows], weights, several)
            velocity.mul_(MOMENTUM).add_(slope)
            weights.sub_(velocity, alpha=rate)
    return weights


def _largest_variance(x: Tensor, random: np.random.Generator) -> float:
    """The largest eigenvalue of the covariance of centred rows, by power iteration."""
    start = random.standard_normal(x.shape[1])
    axis = torch.from_numpy(start).to(x.device, torch.float32)
    for _ in range(10):
        axis = x.T @ (x @ (axis / axis.norm().clamp(min=1e-30))) / len(x)
    return max(float(axis.norm()), 1e-12)
