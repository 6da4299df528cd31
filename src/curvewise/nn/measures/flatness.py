"""Flatness in the sense of PAC-Bayes bounds: how much noise the weights bear."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from curvewise.errors import InputError
from curvewise.nn.measures.measure import Measure
from curvewise.nn.measures.norms import distance, l2_norm
from curvewise.nn.measures.subject import Subject, rounding
from curvewise.nn.measures.weights import weights_of

MOST = 1000
"""Examples."""
DRAWS = 8
"""Draws of noise, the same at every size."""
TOLERANCE = 0.1
"""How much accuracy may fall."""
RANGE = (1e-5, 10.0)
"""Where sizes of noise are looked for."""
STEPS = 12
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
    drop: Callable[[float], float],
    tolerance: float,
    between: tuple[float, float] = RANGE,
    steps: int = STEPS,
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
    weights = weights_of(subject, MOST)
    scale = weights.flat.abs() if by_size else torch.ones_like(weights.flat)
    clean = weights.accuracy(weights.flat)

    def drop(size: float) -> float:
        noisy = [
            weights.accuracy(weights.flat + size * scale * subject.noise("flat", draw, len(scale)))
            for draw in range(DRAWS)
        ]
        return float(clean - torch.stack(noisy).mean())

    with rounding():
        return largest_within(drop, TOLERANCE)


def _complexity(subject: Subject, length: Tensor) -> float:
    size = flatness(subject)
    return float(length) ** 2 / (4 * size**2) + math.log(len(subject.sample) / size) + 10


_COST = f"{(STEPS + 2) * DRAWS} forward passes over up to {MOST:,} examples"
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
