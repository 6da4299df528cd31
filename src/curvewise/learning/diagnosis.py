"""What is wrong with a curve, in plain words."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, ndtr, psi, zeta

from curvewise.learning.power import Replicates
from curvewise.learning.profile import SLOPE_MEAN, SLOPE_STD
from curvewise.text import format_number
from curvewise.types.units import FloatArray

GAMMA_USUAL = (-0.85, -0.15)
"""γ outside this range is flagged; the paper's 41 curves lie inside it."""


def diagnose(
    data: Replicates,
    fitted: FloatArray,
    *,
    gamma: float,
    parameters: int,
    sigma0_squared: float,
    paper_noise: bool = False,
    chance: float | None = None,
) -> tuple[str, ...]:
    """Look for the ways in which a learning curve misbehaves.

    Parameters
    ----------
    data : Replicates
        Runs per size, in points.
    fitted : ndarray, shape (S,)
        The fitted curve at the sizes.
    gamma : float
        Its exponent.
    parameters : int
        How many parameters were fitted.
    sigma0_squared : float
        σ0² in points².
    paper_noise : bool
        Whether the intervals suppose the paper's variance σ0² + σ̂²/n.
    chance : float, optional
        Error of a blind guess in points, of a form made to extrapolate.
    """
    variance = data.run_variance(sigma0_squared)
    noise = np.sqrt(variance / data.runs)
    found = [*_too_little(data, parameters)]
    if paper_noise and spread_is_steady(data, variance) < 0.005:
        found.append(
            "The spread of the runs does not fall with n as σ0² + σ̂²/n says: the largest sizes are"
            " noisier than modelled, and intervals there are too narrow. Use noise='estimated'."
        )
    found += [*_misshapen(data, noise)]
    found += [*_ill_fitting(data, fitted, variance, gamma, parameters)]
    if chance is not None:
        found += [*near_chance(data, chance, extrapolator=True)]
    return tuple(found)


def _too_little(data: Replicates, parameters: int) -> Iterator[str]:
    sizes = len(data.n)
    if sizes < parameters:
        yield (
            f"{sizes} sizes cannot determine {parameters} parameters: γ is held by the prior alone."
            " Add sizes, or use form='sqrt'."
        )
    if not data.replicated:
        what = "One run per size" if (data.runs < 2).all() else "Means without their variance"
        yield (
            f"{what}: the noise of a run is judged only by how far the sizes lie from the curve,"
            f" and assumed to vary as a power of n between {_power(-2)} and {_power(2)}. Repeat"
            " some sizes, the largest among them if you can."
        )
    elif (data.known_variance <= (1e-9 * data.mean) ** 2).all():
        yield (
            "Runs of equal size agree exactly: were they trained with the same seed and data?"
            " Intervals that rest on their spread are too narrow."
        )
    if 1 < data.n[-1] / data.n[0] < 4:
        yield (
            f"The sizes span a factor of {data.n[-1] / data.n[0]:.1f} only: the shape of the curve"
            " is poorly determined. Go down to an eighth of the largest size if you can."
        )


def _power(deviations: float) -> str:
    return f"n^{SLOPE_MEAN + deviations * SLOPE_STD:.1f}".replace("-", "−")


def _misshapen(data: Replicates, noise: FloatArray) -> Iterator[str]:
    rise = data.mean[1:] - data.mean[:-1]
    limit = 3.0 * np.hypot(noise[1:], noise[:-1])
    total = float(data.mean[0] - data.mean[-1])
    total_noise = 3.0 * math.hypot(noise[0], noise[-1])
    if total < -total_noise:
        yield (
            "Error rises with more data from the smallest to the largest size. If these are"
            " accuracies or scores, pass higher_is_better=True; if not, a power law cannot describe"
            " this, and the training of the large runs deserves a look."
        )
    elif (rise > limit).any():
        where = int(np.argmax(rise - limit))
        yield (
            f"Error rises from n = {format_number(data.n[where])} to n = {format_number(data.n[where + 1])} by"
            " more than noise explains: a peak or a dip, which a power law smooths over."
        )
    elif abs(total) <= total_noise:
        yield (
            "The curve is flat within its noise: γ and the asymptote are not determined by the"
            " data, and its extrapolation is its level."
        )


def near_chance(data: Replicates, chance: float, *, extrapolator: bool = False) -> Iterator[str]:
    """Flag sizes whose error is within a tenth of a blind guess.

    Parameters
    ----------
    data : Replicates
        Runs per size, in points.
    chance : float
        Error of a blind guess in points.
    extrapolator : bool
        Whether the form fitted is one of those made to extrapolate.
    """
    near = is_near_chance(data.mean, chance)
    if not near.any():
        return
    up_to = f"Up to n = {format_number(data.n[near].max())} the error is within a tenth of chance"
    beyond = int(len(data.n) - np.flatnonzero(near)[-1] - 1)
    if not extrapolator:
        yield (f"{up_to}, where a power law does not hold: leave those sizes out, or extrapolate with form='auto'.")
    elif beyond == 0:
        yield (
            f"{up_to}: the runs do not show when learning begins, and the error with more data may"
            " be anything below. Train at larger sizes."
        )
    else:
        yield (
            f"{up_to}: those sizes say little about the rest of the curve. Leave them out"
            f" (largest={beyond}) and compare."
        )


def is_near_chance(mean: FloatArray, chance: float) -> NDArray[np.bool_]:
    """Return where errors (S,) are within a tenth of a blind guess, both in points."""
    return np.asarray(mean > chance - 0.1 * abs(chance))


def _ill_fitting(
    data: Replicates, fitted: FloatArray, variance: FloatArray, gamma: float, parameters: int
) -> Iterator[str]:
    low, high = GAMMA_USUAL
    if len(data.n) >= parameters and not low <= gamma <= high:
        yield (
            f"γ = {gamma:.2f} is far from −½. The paper reads this as a sign of badly chosen"
            " hyperparameters, or of sizes so small that error is near chance."
        )
    p = lack_of_fit(data, fitted, variance, parameters)
    at_end = gamma <= -0.985 or gamma >= -0.015
    if p < 1e-3:
        yield (
            f"The fitted form misses the means by more than the spread of the runs allows"
            f" (lack of fit, p = {p:.1g}): a poor fit."
            + (" γ is at the end of the range searched. " if at_end else " ")
            + "Extrapolate with form='auto'."
        )


def lack_of_fit(data: Replicates, fitted: FloatArray, variance: FloatArray, parameters: int) -> float:
    """p-value of the F test of the size means against the curve; NaN without replicates.

    Misfit Σ F_i(ē_i − ê_i)²/σ_i² on S − p degrees of freedom, against the spread within sizes.
    """
    between = len(data.n) - parameters
    within = float(data.freedom.sum())
    if between < 1 or within < 1:
        return float("nan")
    weight = 1.0 / variance
    spread = float((data.freedom * data.known_variance) @ weight) / within
    misfit = float((data.runs * (data.mean - fitted) ** 2) @ weight) / between
    return float(fdtrc(between, within, misfit / spread)) if spread > 0 else float("nan")


def spread_is_steady(data: Replicates, variance: FloatArray) -> float:
    """p-value, one-sided, that log s²/σ² does not rise with log n; NaN with one replicated size.

    The logarithm of a mean square on f degrees of freedom has mean ψ(f/2) − log(f/2) and variance
    ψ′(f/2).
    """
    known = np.flatnonzero(data.known_variance > 0)
    if len(known) < 2:
        return float("nan")
    half = data.freedom[known] / 2.0
    logs = np.log(data.variance[known] * half / variance[known]) - psi(half)
    weight = 1.0 / zeta(2.0, half)  # ψ′
    x = np.log(data.n[known])
    x = x - (weight @ x) / weight.sum()
    return float(ndtr(-(weight @ (x * logs)) / np.sqrt(weight @ (x * x))))
