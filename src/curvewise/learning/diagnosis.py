"""Diagnosis of learning curves: the ways in which they misbehave, as warnings."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, ndtr, psi, zeta

from curvewise.errors import Message, arg
from curvewise.learning.power import Constants, GroupedRuns
from curvewise.learning.profile import SLOPE_MEAN, SLOPE_STD
from curvewise.text import format_number, format_pvalue
from curvewise.types.results import FloatArray, Unit

GAMMA_USUAL = (-0.85, -0.15)
"""γ outside this range is flagged; the paper's 41 curves lie inside it."""


def diagnose(
    data: GroupedRuns,
    fitted: FloatArray,
    constants: Constants,
    *,
    gamma: float | None = None,
    parameters: int = 0,
    chance: float | None = None,
    unit: Unit = Unit(),  # noqa: B008 (frozen)
) -> list[str]:
    """Find the ways in which a learning curve misbehaves, as warnings.

    Parameters
    ----------
    data : GroupedRuns
        Runs per size, in points.
    fitted : ndarray, shape (S,)
        The fitted curve at the sizes.
    constants : Constants
        σ0², and whether the intervals suppose the paper's variance.
    gamma, parameters : float, int, optional
        Exponent and number of parameters of a power law; none for a form made to extrapolate, whose shape and fit
        are not judged.
    chance : float, optional
        Error of a blind guess in points.
    unit : Unit
        Unit of the measurements, for the texts.
    """
    variance = data.run_variance(constants.sigma0_squared)
    noise = np.sqrt(variance / data.runs)
    found = [*_too_little(data, parameters)]
    if constants.noise == "paper" and spread_trend(data, variance) < 0.005:
        found.append(
            "The spread of the runs does not fall with n as σ0² + σ̂²/n says: the largest sizes are"
            f" noisier than modelled, and intervals there are too narrow. Use {arg('noise', 'estimated')}."
        )
    fall = "rise" if unit.name == "score" else "fall"  # points fall whatever the unit
    flat = (
        f"No {fall} is shown: the means at the smallest and the largest size differ by less than three standard errors"
    )
    flat += "." if gamma is None else ", so that γ and the asymptote are not determined by the data."
    flat += " More runs, or smaller sizes, would show one."
    if gamma is None and chance is None:
        flat += f" If this is the {unit.quantity} of a blind guess, pass {arg('chance')}: the intervals then allow for"
        flat += f" any {fall}."
    found += _misshapen(data, noise, flat, unit)
    if gamma is not None:
        found += _ill_fitting(data, fitted, variance, gamma, parameters)
    # Fractions read as percentages lie below 1; accuracies given as fractions and turned first, above 99.
    if unit.name == "percent" and (float(data.mean.max()) <= 1.0 or float(data.mean.min()) >= 99.0):
        found.append(
            f"All errors lie within 1% of 0 or of 100%: if these are fractions, pass {arg('unit', 'fraction')}."
        )
    if chance is not None:
        found += _near_chance(data, chance, extrapolator=gamma is None)
    return found


def _too_little(data: GroupedRuns, parameters: int) -> Iterator[str]:
    sizes = len(data.n)
    if sizes < parameters:
        yield (
            f"{sizes} sizes cannot determine {parameters} parameters: γ is held by the prior alone."
            f" Add sizes, or use {arg('form', 'sqrt')}."
        )
    if not data.replicated:
        # Two standard deviations of the prior of the exponent.
        low, high = (f"n^{SLOPE_MEAN + k * SLOPE_STD:.1f}".replace("-", "−") for k in (-2, 2))
        what = "One run per size" if (data.runs < 2).all() else "Means without their variance"
        yield (
            f"{what}: the noise of a run is judged only by how far the sizes lie from the curve,"
            f" and assumed to vary as a power of n between {low} and {high}. Repeat"
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


def _misshapen(data: GroupedRuns, noise: FloatArray, flat: str, unit: Unit) -> Iterator[str]:
    score = unit.name == "score"
    rises = f"{unit.quantity.capitalize()} {'falls' if score else 'rises'}"
    # Three standard errors: over the usual five sizes noise alone flags about one curve in two hundred.
    rise = data.mean[1:] - data.mean[:-1]
    limit = 3.0 * np.hypot(noise[1:], noise[:-1])
    total = float(data.mean[0] - data.mean[-1])
    total_noise = 3.0 * math.hypot(noise[0], noise[-1])
    if total < -total_noise:
        lower = f"If lower is better, pass {arg('unit', 'loss')}; if not,"
        higher = f"If these are accuracies or scores, pass {arg('higher_is_better', True)}; if not,"
        yield (
            f"{rises} with more data from the smallest to the largest size. {lower if score else higher} a power law"
            " cannot describe this, and the training of the large runs deserves a look."
        )
    elif (rise > limit).any():
        where = int(np.argmax(rise - limit))
        yield (
            f"{rises} from n = {format_number(data.n[where])} to n = {format_number(data.n[where + 1])} by"
            " more than noise explains: a peak or a dip, which a power law smooths over."
        )
    elif abs(total) <= total_noise:
        yield flat


def _near_chance(data: GroupedRuns, chance: float, extrapolator: bool) -> Iterator[str]:
    """Flag sizes whose error is within a tenth of a blind guess."""
    near = is_near_chance(data.mean, chance)
    if not near.any():
        return
    up_to = f"Up to n = {format_number(data.n[near].max())} the error is within a tenth of chance"
    beyond = int(len(data.n) - np.flatnonzero(near)[-1] - 1)
    if not extrapolator:
        yield (
            f"{up_to}, where a power law does not hold: leave those sizes out, or extrapolate with"
            f" {arg('form', 'auto')}."
        )
    elif beyond == 0:
        yield (
            f"{up_to}: the runs do not show when learning begins, and the error with more data may"
            " be anything below. Train at larger sizes."
        )
    else:
        yield (
            f"{up_to}: those sizes say little about the rest of the curve. Leave them out"
            f" ({arg('largest', beyond) if beyond > 1 else 'remove their rows'}) and compare."
        )


def is_near_chance(mean: FloatArray, chance: float) -> NDArray[np.bool_]:
    """Return where errors (S,) are within a tenth of a blind guess, both in points."""
    # Near chance curves are flat, whatever law they follow later.
    return np.asarray(mean > chance - 0.1 * abs(chance))


def _ill_fitting(
    data: GroupedRuns, fitted: FloatArray, variance: FloatArray, gamma: float, parameters: int
) -> Iterator[str]:
    low, high = GAMMA_USUAL
    if len(data.n) >= parameters and not low <= gamma <= high:
        yield (
            f"γ = {gamma:.2f} is far from the usual −½: check that the hyperparameters suit all sizes, and that the"
            " smallest sizes are not near chance."
        )
    p = lack_of_fit(data, fitted, variance, parameters)
    # The grid ends at −0.99 and −0.01: there γ is not an estimate but a bound.
    at_end = gamma <= -0.985 or gamma >= -0.015
    # Strict, because a study fits many curves and each is tested.
    if p < 1e-3:
        yield (
            f"The fitted form misses the means by more than the spread of the runs allows"
            f" (lack of fit, {format_pvalue(p)}): a poor fit."
            + (" γ is at the end of the range searched. " if at_end else " ")
            + f"Extrapolate with {arg('form', 'auto')}."
        )


def lack_of_fit(data: GroupedRuns, fitted: FloatArray, variance: FloatArray, parameters: int) -> float:
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


def spread_trend(data: GroupedRuns, variance: FloatArray) -> float:
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


def not_followed(departure: str, n: float, unit: Unit) -> str:
    """Warn that answers beyond the largest size n do not follow the fitted law, and why."""
    why = {
        "negative": "The fitted law falls below 0",
        "rising": f"The fitted law {'falls' if unit.name == 'score' else 'rises'} with more data",
        "outside": "The prior on γ pulls the fitted law out of its own 95% interval",
    }[departure]
    follow = f"beyond n = {format_number(n)} answers follow a power law with α, η ≥ 0 instead"
    return Message(f"{why}: {follow}. To extrapolate, use {arg('form', 'auto')}.")


def is_below(value: float, floor: float) -> bool:
    """Return True if a value is below what is possible, by more than rounding."""
    return value < floor - 1e-9 * (1.0 + abs(value))
