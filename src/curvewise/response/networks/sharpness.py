"""Sharpness and flatness: how the loss rises, and how long accuracy holds, around the trained weights."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from curvewise.errors import InputError
from curvewise.response.networks.norms import distance, l2_norm
from curvewise.response.networks.subject import JIANG, Measure, Subject, rounding, weights_of

# Examples for sharpness.
MOST = 2000
# Steps of the search for the worst direction.
ASCENT = 10
# Draws of noise for the average rise.
DRAWS = 10
# Radius of the ball, as a share of the length of the weights.
RADIUS = 0.002
# Radius of the ball in which each weight moves in units of its own size.
ADAPTIVE = 0.5
# Length of the noise as a share of that of the weights; of each weight if adaptive.
NOISE = 0.1

# Examples for flatness, which takes many more passes.
MOST_FLAT = 1000
# Draws of noise, the same ones at every size, so that accuracy falls steadily with size.
DRAWS_FLAT = 8
# Fall of accuracy that counts as flat, as in Jiang et al. (2020).
TOLERANCE = 0.1
# Sizes of noise to search.
RANGE = (1e-5, 10.0)
# Halvings of that range on a logarithmic scale: sizes are then known to 0.4%.
HALVINGS = 12


def sharpness_worst(subject: Subject, adaptive: bool) -> Tensor:
    """Largest rise of the loss in a ball around the weights.

    Its radius is a share of the weights' length; or each weight moves in units of its own size, if adaptive.
    """
    weights = weights_of(subject, MOST)
    flat = weights.flat
    scale, radius = (flat.abs(), ADAPTIVE) if adaptive else (flat.norm().expand_as(flat), RADIUS)
    return worst_rise(weights.gradient, flat, scale, radius, subject.noise("ascent", 0, len(scale)))


def sharpness_average(subject: Subject, adaptive: bool) -> Tensor:
    """Mean rise of the loss under noise of one size for all weights, or in proportion to each if adaptive."""
    weights = weights_of(subject, MOST)
    flat = weights.flat
    scale = flat.abs() if adaptive else flat.square().mean().sqrt().expand_as(flat)
    base = weights.loss(flat)
    noise = (NOISE * scale * subject.noise("noise", draw, len(scale)) for draw in range(DRAWS))
    return torch.stack([weights.loss(flat + moved) - base for moved in noise]).mean()


def worst_rise(
    gradient: Callable[[Tensor], tuple[Tensor, Tensor]],
    weights: Tensor,
    scale: Tensor,
    radius: float,
    start: Tensor,
    steps: int = ASCENT,
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
        # Three radii long at first, so that the far side of the ball is reached, then ever shorter.
        u = u + along * (3 * radius * left / steps / along.norm().clamp(min=1e-30))
        u = u * (radius / u.norm()).clamp(max=1)
    return best - base


def flatness(subject: Subject, adaptive: bool = False) -> float:
    """Largest size of noise on the weights that costs at most 0.1 of accuracy; in proportion to each if adaptive."""

    def search() -> float:
        weights = weights_of(subject, MOST_FLAT)
        scale = weights.flat.abs() if adaptive else torch.ones_like(weights.flat)
        clean = weights.accuracy(weights.flat)

        def drop(size: float) -> float:
            noise = (size * scale * subject.noise("flat", draw, len(scale)) for draw in range(DRAWS_FLAT))
            noisy = [weights.accuracy(weights.flat + moved) for moved in noise]
            return float(clean - torch.stack(noisy).mean())

        with rounding():
            return largest_within(drop, TOLERANCE)

    return subject.once(("flatness", adaptive), search)


def largest_within(
    drop: Callable[[float], float], tolerance: float, between: tuple[float, float] = RANGE, steps: int = HALVINGS
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
            f"noise of size {between[1]:g} takes at most {tolerance:g} off the accuracy: the network may answer no "
            "better than chance."
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


def pac_bayes_complexity(subject: Subject, length: Tensor) -> float:
    """Part of a PAC-Bayes bound that differs between networks; ``length`` is the distance from the prior."""
    size = flatness(subject)
    return float(length) ** 2 / (4 * size**2) + math.log(len(subject.sample) / size) + 10


_ASCENT = f"{ASCENT + 2} forward and backward passes over up to {MOST:,} examples"
_NOISE = f"{DRAWS} forward passes over up to {MOST:,} examples"
_FLAT = f"{(HALVINGS + 2) * DRAWS_FLAT} forward passes over up to {MOST_FLAT:,} examples"
_SHARED = "as flatness, with which it is shared"

SHARPNESSES = (
    Measure(
        "sharpness-worst",
        lambda s: sharpness_worst(s, adaptive=False),
        1,
        cost=_ASCENT,
        about=f"Largest rise of the loss found within {RADIUS:g} times the length of the weights (Keskar et al. 2017, "
        "On large-batch training for deep learning).",
    ),
    Measure(
        "sharpness-average",
        lambda s: sharpness_average(s, adaptive=False),
        1,
        cost=_NOISE,
        about=f"Mean rise of the loss under Gaussian noise of {NOISE:g} times the weights' root mean square (Neyshabur "
        "et al. 2017, Exploring generalization in deep learning).",
    ),
    Measure(
        "sharpness-adaptive-worst",
        lambda s: sharpness_worst(s, adaptive=True),
        1,
        cost=_ASCENT,
        about="Largest rise of the loss found where each weight moves in units of its own size, radius "
        f"{ADAPTIVE:g} (Kwon et al. 2021, ASAM); it does not depend on the scale of layers.",
    ),
    Measure(
        "sharpness-adaptive-average",
        lambda s: sharpness_average(s, adaptive=True),
        1,
        cost=_NOISE,
        about=f"Mean rise of the loss under Gaussian noise of {NOISE:g} times each weight (Andriushchenko et al. 2023, "
        "A modern look at sharpness).",
    ),
)
"""Measures of how the loss rises around the weights."""

FLATNESSES = (
    Measure(
        "flatness",
        flatness,
        -1,
        cost=_FLAT,
        about=f"Largest standard deviation of Gaussian noise on the weights that takes {TOLERANCE:g} off the training "
        f"accuracy: PAC-Bayes flatness ({JIANG}).",
    ),
    Measure(
        "flatness-magnitude",
        lambda s: flatness(s, adaptive=True),
        -1,
        cost=_FLAT,
        about=f"The same for noise in proportion to each weight, magnitude-aware flatness ({JIANG}).",
    ),
    Measure(
        "pac-bayes",
        lambda s: pac_bayes_complexity(s, l2_norm(s)),
        1,
        cost=_SHARED,
        about=f"|w|² / 4σ² + log(n / σ) + 10 with σ the noise borne and n the examples used ({JIANG}).",
    ),
    Measure(
        "pac-bayes-distance",
        lambda s: pac_bayes_complexity(s, distance(s)),
        1,
        ("initial",),
        _SHARED,
        f"|w − w₀|² / 4σ² + log(n / σ) + 10 ({JIANG}).",
    ),
)
"""Measures of how much noise the weights bear."""
