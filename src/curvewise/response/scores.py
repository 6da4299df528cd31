"""Scores of a perturbation response curve: plain functions of magnitudes and accuracies.

Every score but the Pal-score is linear in the accuracies; the Pal-score is a ratio of two that are.
That is what makes their intervals closed-form (:mod:`curvewise.response.curve`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from curvewise.errors import InputError, arg
from curvewise.types.results import FloatArray, Unit, as_floats

SIGNS = ("fold", "keep")
VARIANTS = ("text", "algorithm4")


def gi_score(
    magnitude: ArrayLike,
    accuracy: ArrayLike,
    *,
    signs: str = "fold",
    relative_to: float | None = None,
    unit: str = "fraction",
) -> float:
    """Gi-score: distance of a network from one that no perturbation affects.

    The area between the cumulative accuracy of an ideal network and that of this one, over the
    ideal's area (Schiff et al. 2021, algorithm 2, with magnitudes brought to 0 … 1). It is 0 for a
    network that is always right, 1 for one that never is.

    Parameters
    ----------
    magnitude : array_like, shape (M,)
        Magnitudes, in any order; each once.
    accuracy : array_like, shape (M,)
        Accuracy at each.
    signs : {"fold", "keep"}
        Where some magnitudes are negative: average both directions at each distance from 0, or sweep from the lowest to
        the highest as the paper does. The sweep weights its start more than its end, so that turning left and right
        differ.
    relative_to : float, optional
        Clean accuracy. The ideal then is a network that keeps this accuracy.
    unit : {"fraction", "percent"}
        Of accuracies.

    Returns
    -------
    float
        Lower is better.

    Raises
    ------
    InputError
        If there are fewer than two magnitudes (folded: distances from 0), a magnitude twice, or a number that is no
        accuracy.

    Examples
    --------
    >>> gi_score([0.0, 0.25, 0.5], [1.0, 1.0, 1.0])
    0.0
    >>> round(gi_score([0.0, 0.25, 0.5], [1.0, 0.9, 0.6]), 4)
    0.1
    >>> gi_score([-180, -90, 0, 90, 180], [0.5, 0.5, 1.0, 0.5, 0.5])
    0.3125
    """
    places, right = check_curve(magnitude, accuracy, unit)
    score = 1.0 - float(gi_weights(places, signs) @ right)
    return score if relative_to is None else 1.0 - (1.0 - score) / _clean(relative_to, unit)


PAL_FLAT = 84.0
"""Pal-score where accuracy does not fall: (0.5 − 0.5 · 0.4²) / (0.5 · 0.1²)."""


def pal_score(
    magnitude: ArrayLike,
    accuracy: ArrayLike,
    *,
    variant: str = "text",
    top: float = 0.6,
    bottom: float = 0.1,
    signs: str = "fold",
    unit: str = "fraction",
) -> float:
    """Pal-score: area under the cumulative accuracy at high magnitudes over that at low ones.

    Parameters
    ----------
    magnitude, accuracy : array_like, shape (M,)
        A response curve.
    variant : {"text", "algorithm4"}
        As the paper (Schiff et al. 2021) has it in words, areas over the upper ``top`` and the
        lower ``bottom`` of the magnitudes; an ideal network scores 84. Or as its algorithm 4
        computes it: the ratio of two single trapezoids under the accuracies, the ones that end at
        positions ``int(top · M)`` and ``int(bottom · M)``.
    top, bottom : float
        Shares of the range of magnitudes.
    signs : {"fold", "keep"}
        As of :func:`gi_score`.
    unit : {"fraction", "percent"}
        Of accuracies.

    Returns
    -------
    float
        Higher is better; NaN where the network is never right at low magnitudes.

    Examples
    --------
    >>> round(pal_score([0.0, 0.25, 0.5], [1.0, 1.0, 1.0]), 6)
    84.0
    """
    places, right = check_curve(magnitude, accuracy, unit)
    above, below = pal_weights(places, variant, top, bottom, signs)
    area = float(below @ right)
    return float(above @ right) / area if area > 0 else float("nan")


def mean_accuracy(accuracy: ArrayLike, *, unit: str = "fraction") -> float:
    """Mean of a response curve, the simplest score; a fraction.

    >>> round(mean_accuracy([1.0, 0.9, 0.6]), 4)
    0.8333
    """
    right = _accuracies(accuracy, unit)
    if right.ndim != 1 or not len(right):
        raise InputError(f"has shape {right.shape}: give one number for each magnitude.", argument="accuracy")
    return float(right.mean())


def accuracy_at(magnitude: ArrayLike, accuracy: ArrayLike, at: float, *, unit: str = "fraction") -> float:
    """Accuracy at one magnitude, interpolated between its neighbours.

    At 0.5 of intra-class mixup this is the Mixup measure of the competition's winner, and Manifold
    Mixup if the mixing is done at the first layer.

    >>> round(accuracy_at([0.0, 0.25, 0.5], [1.0, 0.9, 0.6], 0.5), 3)
    0.6
    """
    places, right = check_curve(magnitude, accuracy, unit)
    if not places[0] <= at <= places[-1]:
        raise InputError(f"{arg('at', at)} lies outside the magnitudes, {places[0]:g} to {places[-1]:g}.")
    return float(np.interp(at, places, right))


def cumulative_accuracy(
    magnitude: ArrayLike, accuracy: ArrayLike, *, signs: str = "fold", unit: str = "fraction"
) -> tuple[FloatArray, FloatArray]:
    """The perturbation cumulative density (PCD): the integral of accuracy up to each magnitude.

    Returns
    -------
    u : ndarray
        Magnitudes from 0 to 1: folded if asked for, shifted and scaled.
    density : ndarray
        From 0 to at most 1; an ideal network's equals u.

    Examples
    --------
    >>> u, density = cumulative_accuracy([0.0, 0.25, 0.5], [1.0, 1.0, 0.5])
    >>> u.tolist(), density.tolist()
    ([0.0, 0.5, 1.0], [0.0, 0.5, 0.875])
    """
    places, right = check_curve(magnitude, accuracy, unit)
    u, fold = folded(places, signs)
    return u, _running(u, fold @ right)


def check_curve(magnitude: ArrayLike, accuracy: ArrayLike, unit: str = "fraction") -> tuple[FloatArray, FloatArray]:
    """Return magnitudes in rising order with their accuracies as fractions, or raise an error."""
    places, right = as_floats(magnitude, "magnitude"), _accuracies(accuracy, unit)
    if places.ndim != 1 or places.shape != right.shape:
        raise InputError(f"magnitude has shape {places.shape} and accuracy {right.shape}: give two of the same length.")
    order = np.argsort(places, kind="stable")
    check_magnitudes(places[order])
    return places[order], right[order]


def check_magnitudes(places: FloatArray) -> None:
    """Refuse a grid, in rising order, with no range, a value twice, or a value that is not finite."""
    if not np.isfinite(places).all():
        raise InputError("holds NaN or infinite values: give finite numbers.", argument="magnitude")
    if len(places) < 2:
        raise InputError(f"holds {len(places)} value(s): a response curve needs two or more.", argument="magnitude")
    if (np.diff(places) == 0).any():
        twice = places[1:][np.diff(places) == 0][0]
        raise InputError(f"holds {twice:g} twice: give each magnitude once.", argument="magnitude")


def gi_weights(places: FloatArray, signs: str = "fold") -> FloatArray:
    """Weights w with Gi = 1 − w · accuracy, for magnitudes in rising order."""
    # Algorithm 2 of the paper: the area under the PCD over that of an ideal network, which is u and has the area 1/2.
    return _weights(places, signs, lambda u, running: 2 * _running(u, running)[-1])


def pal_weights(
    places: FloatArray, variant: str = "text", top: float = 0.6, bottom: float = 0.1, signs: str = "fold"
) -> tuple[FloatArray, FloatArray]:
    """Weights of the numerator and the denominator of the Pal-score."""
    if variant not in VARIANTS:
        raise InputError(f"use one of {', '.join(map(repr, VARIANTS))}.", argument="variant", value=variant)
    for name, share in (("top", top), ("bottom", bottom)):
        if not 0 < share <= 1:
            raise InputError("give a share above 0 and at most 1.", argument=name, value=share)
    if variant == "algorithm4":
        return _trapezoid(places, top, "top", signs), _trapezoid(places, bottom, "bottom", signs)

    def area(low: float, high: float) -> FloatArray:
        return _weights(places, signs, lambda u, running: _between(u, running, low, high))

    return area(1 - top, 1), area(0, bottom)


def folded(places: FloatArray, signs: str = "fold") -> tuple[FloatArray, FloatArray]:
    """Magnitudes brought to 0 … 1, and the matrix that takes accuracies there.

    Folding takes the mean of both directions at every distance that either was measured at, interpolated linearly;
    beyond the end of one direction it takes the other alone.
    """
    if signs not in SIGNS:
        raise InputError(f"use one of {', '.join(map(repr, SIGNS))}.", argument="signs", value=signs)
    # One direction only needs no folding; a negative one is mirrored, so that 0 comes first.
    if signs == "keep" or places[0] >= 0 or places[-1] <= 0:
        along = places if signs == "keep" or places[0] >= 0 else -places[::-1]
        matrix = np.eye(len(places))
        matrix = matrix if along is places else matrix[::-1]
    else:
        along = np.unique(np.abs(places))
        if len(along) < 2:
            raise InputError(
                f"holds {places[0]:g} and {places[-1]:g} only, one distance from 0, and both directions are "
                f"averaged: add a magnitude, or use {arg('signs', 'keep')}.",
                argument="magnitude",
            )
        matrix = _both_sides(places, along)
    return (along - along[0]) / (along[-1] - along[0]), matrix


def _both_sides(places: FloatArray, along: FloatArray) -> FloatArray:
    """Mean of the two directions at each distance; rows are distances, columns magnitudes."""
    sides = []
    for side in (places >= 0, places <= 0):
        order = np.argsort(np.abs(places[side]))
        distance, columns = np.abs(places[side])[order], np.eye(len(places))[side][order].T
        sides.append([np.interp(along, distance, column, left=np.nan, right=np.nan) for column in columns])
    # NaN marks distances beyond the end of a direction: there the other counts alone.
    mean: FloatArray = np.nanmean(sides, axis=0).T
    return mean


def _weights(places: FloatArray, signs: str, area: Callable[[FloatArray, FloatArray], FloatArray]) -> FloatArray:
    """Weight of each accuracy in an area under the cumulative accuracy."""
    u, fold = folded(places, signs)
    return area(u, _running(u, fold))


def _running(u: FloatArray, accuracy: FloatArray) -> FloatArray:
    """Cumulative trapezoids along the first axis, from 0."""
    width = np.diff(u).reshape(-1, *(1,) * (accuracy.ndim - 1))
    steps = 0.5 * width * (accuracy[1:] + accuracy[:-1])
    return np.concatenate([np.zeros_like(accuracy[:1]), np.cumsum(steps, axis=0)])


def _between(u: FloatArray, running: FloatArray, low: float, high: float) -> FloatArray:
    """Trapezoids from low to high, with the values there interpolated."""
    cuts = np.unique(np.concatenate([[low, high], u[(u > low) & (u < high)]]))
    at = np.stack([np.interp(cuts, u, column) for column in running.T], axis=1)
    area: FloatArray = _running(cuts, at)[-1]
    return area


def _trapezoid(places: FloatArray, share: float, name: str, signs: str) -> FloatArray:
    """Weights of the one trapezoid under the accuracies that ends at a share of the positions."""
    # The paper's algorithm 4 differs from its text, which speaks of areas under the PCD: both are kept.
    u, fold = folded(places, signs)
    end = min(int(share * len(u)), len(u) - 1)
    if end == 0:
        raise InputError(
            f"{arg('variant', 'algorithm4')} takes position int({name} · M) = 0 of {len(u)} magnitudes, where there is "
            f"no trapezoid: measure at {int(np.ceil(1 / share))} or more."
        )
    weights: FloatArray = 0.5 * (u[end] - u[end - 1]) * (fold[end] + fold[end - 1])
    return weights


def _accuracies(accuracy: ArrayLike, unit: str, name: str = "accuracy") -> FloatArray:
    if unit not in ("fraction", "percent"):
        raise InputError("accuracies are 'fraction' or 'percent'.", argument="unit", value=unit)
    found, values = Unit(unit), as_floats(accuracy, name)
    if values.size and np.isfinite(values).all() and (values.min() < 0 or values.max() > found.top):
        worst = values.min() if values.min() < 0 else values.max()
        percent = unit == "fraction" and values.min() >= 0 and values.max() <= 100
        remedy = f" Pass {arg('unit', 'percent')} if these are percentages." if percent else ""
        raise InputError(f"holds {worst:g}, which is no {unit} from 0 to {found.top:g}.{remedy}", argument=name)
    return found.errors(values, name) / found.top


def _clean(relative_to: float, unit: str) -> float:
    clean = _accuracies(relative_to, unit, "relative_to")
    if clean.ndim or clean == 0:
        raise InputError("give one accuracy above 0.", argument="relative_to", value=relative_to)
    return float(clean)
