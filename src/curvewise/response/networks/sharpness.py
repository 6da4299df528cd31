"""Sharpness: by how much the loss rises around the weights."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from curvewise.errors import InputError
from curvewise.response.networks.norms import distance, l2_norm
from curvewise.response.networks.subject import Measure, Subject, Weights, rounding, weights_of

MOST = 2000
"""Examples."""
STEPS = 10
"""Steps of the ascent."""
DRAWS = 10
"""Draws of noise."""
RADIUS = 0.002
"""Of the ball, as a share of the length of the weights."""
ADAPTIVE = 0.5
"""Of the ball in which each weight moves in units of its own size."""
NOISE = 0.1
"""Length of the noise as a share of that of the weights; of each weight if adaptive."""


def sharpness_worst(subject: Subject) -> Tensor:
    """Largest rise of the loss within a ball whose radius is a share of the weights' length."""
    weights = weights_of(subject, MOST)
    scale = weights.flat.norm().expand_as(weights.flat)
    return _worst(subject, weights, scale, RADIUS)


def sharpness_adaptive_worst(subject: Subject) -> Tensor:
    """The same in the ball where each weight moves in units of its own size."""
    weights = weights_of(subject, MOST)
    return _worst(subject, weights, weights.flat.abs(), ADAPTIVE)


def sharpness_average(subject: Subject) -> Tensor:
    """Mean rise of the loss under noise of one size for all weights."""
    weights = weights_of(subject, MOST)
    return _average(subject, weights, weights.flat.square().mean().sqrt().expand_as(weights.flat))


def sharpness_adaptive_average(subject: Subject) -> Tensor:
    """Mean rise of the loss under noise in proportion to each weight."""
    weights = weights_of(subject, MOST)
    return _average(subject, weights, weights.flat.abs())


def worst_rise(
    gradient: Callable[[Tensor], tuple[Tensor, Tensor]],
    weights: Tensor,
    scale: Tensor,
    radius: float,
    start: Tensor,
    steps: int = STEPS,
) -> Tensor:
    """Largest value found of loss(weights + scale · u) − loss(weights) with |u| ≤ radius.

    Projected gradient ascent in steps of one length, which shrinks to 0 towards the end.

    Parameters
    ----------
    gradient : callable
        Takes weights; gives the loss there and its slope.
    weights, scale : Tensor, shape (D,)
        Where to start from, and the unit of each direction.
    radius : float
        Of the ball.
    start : Tensor, shape (D,)
        The direction of a first small step, needed where the slope is 0.
    steps : int
        Of the ascent.

    Examples
    --------
    >>> def gradient(w):  # of 2 a² + ½ b²
    ...     return (torch.tensor([2.0, 0.5]) * w * w).sum(), torch.tensor([4.0, 1.0]) * w
    >>> origin, one = torch.zeros(2), torch.ones(2)
    >>> round(float(worst_rise(gradient, origin, one, 0.1, start=one)), 4)
    0.02
    """
    u = start / start.norm() * (radius / 10)
    base = best = gradient(weights)[0]
    for left in range(steps, -1, -1):
        loss, slope = gradient(weights + scale * u)
        best = torch.fmax(best, loss)
        along = scale * slope
        u = u + along * (3 * radius * left / steps / along.norm().clamp(min=1e-30))
        u = u * (radius / u.norm()).clamp(max=1)
    return best - base


def _worst(subject: Subject, weights: Weights, scale: Tensor, radius: float) -> Tensor:
    start = subject.noise("ascent", 0, len(scale))
    return worst_rise(weights.gradient, weights.flat, scale, radius, start)


def _average(subject: Subject, weights: Weights, scale: Tensor) -> Tensor:
    base = weights.loss(weights.flat)
    rises = [
        weights.loss(weights.flat + NOISE * scale * subject.noise("noise", draw, len(scale))) - base
        for draw in range(DRAWS)
    ]
    return torch.stack(rises).mean()


_ASCENT = f"{STEPS + 2} forward and backward passes over up to {MOST:,} examples"
_NOISE = f"{DRAWS} forward passes over up to {MOST:,} examples"

SHARPNESSES = (
    Measure(
        "sharpness-worst",
        sharpness_worst,
        1,
        (),
        _ASCENT,
        f"Largest rise of the loss found within {RADIUS:g} times the length of the weights (Keskar "
        "et al. 2017, On large-batch training for deep learning).",
    ),
    Measure(
        "sharpness-average",
        sharpness_average,
        1,
        (),
        _NOISE,
        f"Mean rise of the loss under Gaussian noise of {NOISE:g} times the weights' root mean "
        "square (Neyshabur et al. 2017, Exploring generalization in deep learning).",
    ),
    Measure(
        "sharpness-adaptive-worst",
        sharpness_adaptive_worst,
        1,
        (),
        _ASCENT,
        "Largest rise of the loss found where each weight moves in units of its own size, radius "
        f"{ADAPTIVE:g} (Kwon et al. 2021, ASAM); it does not depend on the scale of layers.",
    ),
    Measure(
        "sharpness-adaptive-average",
        sharpness_adaptive_average,
        1,
        (),
        _NOISE,
        f"Mean rise of the loss under Gaussian noise of {NOISE:g} times each weight "
        "(Andriushchenko et al. 2023, A modern look at sharpness).",
    ),
)
"""Measures of this module."""


# Flatness in the sense of PAC-Bayes bounds: how much noise the weights bear.

MOST_FLATNESS = 1000
"""Examples."""
DRAWS_FLATNESS = 8
"""Draws of noise, the same at every size."""
TOLERANCE = 0.1
"""How much accuracy may fall."""
RANGE = (1e-5, 10.0)
"""Where sizes of noise are looked for."""
STEPS_FLATNESS = 12
"""Halvings of that range, on a logarithmic scale."""


def flatness(subject: Subject) -> float:
    """Largest size of noise, one for all weights, that costs no more than 0.1 of accuracy."""
    return subject.once("flatness", lambda: _largest(subject, by_size=False))


def flatness_magnitude(subject: Subject) -> float:
    """The same for noise in proportion to each weight."""
    return subject.once("flatness-magnitude", lambda: _largest(subject, by_size=True))


def complexity_from_origin(subject: Subject) -> float:
    """The part of a PAC-Bayes bound that differs between networks, the prior at 0."""
    return _complexity(subject, l2_norm(subject))


def complexity_from_initial(subject: Subject) -> float:
    """The same, the prior at the initial weights."""
    return _complexity(subject, distance(subject))


def largest_within(
    drop: Callable[[float], float], tolerance: float, between: tuple[float, float] = RANGE, steps: int = STEPS_FLATNESS
) -> float:
    """Largest size at which a rising function is within a tolerance, by bisection of logarithms.

    Examples
    --------
    >>> round(largest_within(lambda size: size**2, 0.25, steps=30), 6)
    0.5
    """
    low, high = (math.log(end) for end in between)
    if drop(math.exp(high)) <= tolerance:
        raise InputError(
            f"noise of size {between[1]:g} takes no more than {tolerance:g} off the accuracy: the "
            "network may answer no better than chance."
        )
    if drop(math.exp(low)) > tolerance:
        raise InputError(f"noise of size {between[0]:g} takes more than {tolerance:g} off already.")
    for _ in range(steps):
        middle = (low + high) / 2
        if drop(math.exp(middle)) <= tolerance:
            low = middle
        else:
            high = middle
    return math.exp(low)


def _largest(subject: Subject, *, by_size: bool) -> float:
    weights = weights_of(subject, MOST_FLATNESS)
    scale = weights.flat.abs() if by_size else torch.ones_like(weights.flat)
    clean = weights.accuracy(weights.flat)

    def drop(size: float) -> float:
        noisy = [
            weights.accuracy(weights.flat + size * scale * subject.noise("flat", draw, len(scale)))
            for draw in range(DRAWS_FLATNESS)
        ]
        return float(clean - torch.stack(noisy).mean())

    with rounding():
        return largest_within(drop, TOLERANCE)


def _complexity(subject: Subject, length: Tensor) -> float:
    size = flatness(subject)
    return float(length) ** 2 / (4 * size**2) + math.log(len(subject.sample) / size) + 10


_COST = f"{(STEPS_FLATNESS + 2) * DRAWS_FLATNESS} forward passes over up to {MOST_FLATNESS:,} examples"
_JIANG = "Jiang et al. 2020, Fantastic generalization measures"

FLATNESSES = (
    Measure(
        "flatness",
        flatness,
        -1,
        (),
        _COST,
        f"Largest standard deviation of Gaussian noise on the weights that takes {TOLERANCE:g} off "
        f"the training accuracy: PAC-Bayes flatness ({_JIANG}).",
    ),
    Measure(
        "flatness-magnitude",
        flatness_magnitude,
        -1,
        (),
        _COST,
        f"The same for noise in proportion to each weight, magnitude-aware flatness ({_JIANG}).",
    ),
    Measure(
        "pac-bayes",
        complexity_from_origin,
        1,
        (),
        "as flatness, with which it is shared",
        f"|w|² / 4σ² + log(n / σ) + 10 with σ the noise borne and n the examples used ({_JIANG}).",
    ),
    Measure(
        "pac-bayes-distance",
        complexity_from_initial,
        1,
        ("initial",),
        "as flatness, with which it is shared",
        f"|w − w₀|² / 4σ² + log(n / σ) + 10 ({_JIANG}).",
    ),
)
"""Measures of this module."""
