"""Calibrated risk, the cumulative improvement over scratch, and their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike

from curvewise.errors import InputError
from curvewise.text import arg
from curvewise.types.units import FloatArray, as_floats

Weight: TypeAlias = str | Callable[[FloatArray], FloatArray]

WEIGHTS = ("scratch", "uniform", "log")


@overload
def calibrated_risk(risk: float, *, blind: float, maximal: float) -> float: ...
@overload
def calibrated_risk(risk: ArrayLike, *, blind: ArrayLike, maximal: ArrayLike) -> FloatArray: ...
def calibrated_risk(risk: ArrayLike, *, blind: ArrayLike, maximal: ArrayLike) -> float | FloatArray:
    """Scale a risk so that maximal supervision is at 0 and the blind guess at 1.

    Atanov et al. 2022: (R − R_maximal) / (R_blind − R_maximal). 1 is no better than a blind guess, 0 as good as with
    all the data there is; above 1 is worse than a guess, below 0 better than what was taken for maximal.

    Parameters
    ----------
    risk : array_like
        Losses or errors; NaN stays NaN.
    blind, maximal : array_like
        Risks of the two controls, in the same unit.

    Raises
    ------
    InputError
        If the blind guess is not worse than maximal supervision.

    Examples
    --------
    >>> calibrated_risk(0.5, blind=0.9, maximal=0.1)
    0.5
    """
    r, b, m = (as_floats(v, k) for v, k in ((risk, "risk"), (blind, "blind"), (maximal, "maximal")))
    if not (np.isfinite(b).all() and np.isfinite(m).all()):
        raise InputError("blind and maximal must be finite: a scale needs both of its ends.")
    if not (b > m).all():
        raise InputError(
            f"must be above {arg('maximal', maximal)}: risks are lower-is-better.",
            argument="blind",
            value=blind,
            remedy="Turn accuracies into errors, or check which control is which.",
        )
    found = (r - m) / (b - m)
    return float(found) if found.ndim == 0 else found


def cci(n: ArrayLike, method: ArrayLike, scratch: ArrayLike, *, weight: Weight = "scratch") -> float:
    """Compute the calibrated cumulative improvement of a method over training from scratch.

    Atanov et al. 2022: the area between the two calibrated risk curves over that below the one of scratch, by
    trapezoids. 1 is maximal supervision at every size, 0 no better than scratch, negative worse.

    Parameters
    ----------
    n : array_like, shape (sizes,)
        Training sizes, from small to large. A size may be there twice.
    method, scratch : array_like, shape (sizes,)
        Calibrated risks at them.
    weight : {"scratch", "uniform", "log"} or callable
        Scale on which the area is integrated: the calibrated risk of scratch, so that each step counts by what scratch
        learns in it (the paper's); the size (weight 1); or its logarithm (weight 1/n). A callable gives a positive
        weight for each size.

    Returns
    -------
    float
        NaN where scratch encloses no area: with one size, or if its risk does not change.

    Examples
    --------
    >>> cci([100, 1000], method=[0.4, 0.2], scratch=[0.8, 0.4])
    0.5
    """
    sizes, m, s = (as_floats(v, k) for v, k in ((n, "n"), (method, "method"), (scratch, "scratch")))
    if sizes.ndim != 1 or m.shape != sizes.shape or s.shape != sizes.shape:
        raise InputError(
            f"n, method and scratch have shapes {sizes.shape}, {m.shape} and {s.shape}: give one calibrated risk of "
            "each for every size."
        )
    if not (np.isfinite(sizes) & (sizes > 0)).all() or (np.diff(sizes) < 0).any():
        raise InputError("n must hold positive sizes, from small to large.")
    if not (np.isfinite(m).all() and np.isfinite(s).all()):
        raise InputError("method or scratch holds NaN: leave out sizes at which either is missing.")
    steps = step_widths(sizes, s, weight) * 0.5
    below = float((steps * _neighbour_sums(s)).sum())
    between = float((steps * _neighbour_sums(s - m)).sum())
    return between / below if below != 0 else float("nan")


def step_widths(n: FloatArray, scratch: FloatArray, weight: Weight) -> FloatArray:
    """Return the width of each step from one size to the next, on the scale of a weight."""
    if callable(weight):
        w = as_floats(weight(n), "weight(n)")
        if w.shape != n.shape or not (np.isfinite(w) & (w > 0)).all():
            raise InputError("weight must give a positive number for each size.")
        return 0.5 * (w[1:] + w[:-1]) * np.diff(n)
    if weight not in WEIGHTS:
        raise InputError(
            f"is not known: use one of {', '.join(map(repr, WEIGHTS))}, or a function of the sizes.",
            argument="weight",
            value=weight,
        )
    scale = {"scratch": scratch, "uniform": n, "log": np.log(n)}[weight]
    return np.diff(scale)


def _neighbour_sums(values: FloatArray) -> FloatArray:
    return values[1:] + values[:-1]


@dataclass(frozen=True)
class CciSlopes:
    """Derivatives of a cumulative improvement, in the unit of the losses.

    Attributes
    ----------
    method, scratch : ndarray, shape (points,)
        By the risk of each at every point.
    maximal : float
        By maximal supervision. The blind guess only sets the scale of both areas, so that it falls out.
    """

    method: FloatArray
    scratch: FloatArray
    maximal: float


def cci_slopes(n: FloatArray, method: FloatArray, scratch: FloatArray, maximal: float, weight: Weight) -> CciSlopes:
    """Return the derivatives of 1 − A/B, the cumulative improvement.

    A = Σ Δ (F + F′ − 2M) and B = Σ Δ (S + S′ − 2M) over the steps Δ from one size to the next, where F, S and M are
    the risks of the method, of scratch and of maximal supervision.
    """
    width = step_widths(n, scratch, weight)
    both = _neighbour_sums(method - maximal), _neighbour_sums(scratch - maximal)
    a, b = (float(width @ pair) for pair in both)
    if b == 0:
        gone = np.full(len(n), np.nan)
        return CciSlopes(gone, gone, float("nan"))
    held = _to_points(width, width)
    of_a, of_b = np.zeros(len(n)), held.copy()
    if not callable(weight) and weight == "scratch":  # the steps themselves are differences of scratch
        of_a = of_a + _to_points(-both[0], both[0])
        of_b = of_b + _to_points(-both[1], both[1])
    ratio = a / b
    return CciSlopes(
        method=-held / b, scratch=(ratio * of_b - of_a) / b, maximal=2 * float(width.sum()) * (1 - ratio) / b
    )


def _to_points(left: FloatArray, right: FloatArray) -> FloatArray:
    """Add what each step gives to the points at its left and right ends."""
    found = np.zeros(len(left) + 1)
    found[:-1] += left
    found[1:] += right
    return found
