"""Refit many curves simulated from a fitted one, in one vectorised call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from curvewise.errors import InputError
from curvewise.learning.power import FORMS, PowerFits, fit_power, gamma_grid, size_weights
from curvewise.learning.replicates import size_variance, slope_variance
from curvewise.types import FloatArray

if TYPE_CHECKING:
    from curvewise.learning.curve import LearningCurve


def parametric_refits(
    curve: LearningCurve, refits: int, rng: int | np.random.Generator
) -> PowerFits:
    """Fit ``refits`` data sets drawn from the fitted curve and variance model, in points."""
    if refits < 1:
        raise InputError(f"refits={refits} must be at least 1.")
    data, generator = curve._data, np.random.default_rng(rng)
    spread = data.run_variance(curve.constants.sigma0_squared)
    fitted = curve._error_points(data.n)
    mean, variance = simulate(generator, fitted, spread, data.runs, refits)
    return refit(curve, mean, variance)


def simulate(
    rng: np.random.Generator, centre: FloatArray, spread: FloatArray, runs: FloatArray, draws: int
) -> tuple[FloatArray, FloatArray]:
    """Draw size means and variances of normal runs, without drawing the runs.

    Returns
    -------
    mean, variance : ndarray, shape (draws, S)
        Variance is 0 where a size has one run.
    """
    mean = rng.standard_normal((draws, len(centre)))
    mean *= np.sqrt(spread / runs)
    mean += centre
    variance = np.zeros((draws, len(centre)))
    for i in np.flatnonzero(runs >= 2):
        free = runs[i] - 1.0
        variance[:, i] = rng.standard_gamma(free / 2.0, draws) * (2.0 * spread[i] / free)
    return mean, variance


def refit(curve: LearningCurve, mean: FloatArray, variance: FloatArray) -> PowerFits:
    """Fit the curve's form, anew for each row of means and variances in points."""
    data, s0 = curve._data, curve.constants.sigma0_squared
    slope = slope_variance(data.n, data.runs, variance, s0)
    modelled = size_variance(data.n, slope[:, None], s0)
    weight = size_weights(curve.weights, data.runs, modelled)
    return fit_power(
        data.n,
        mean,
        np.atleast_2d(weight),
        gammas=gamma_grid(curve.form, None if curve._gamma_is_free else curve.gamma),
        prior=curve.constants.prior,
        terms=FORMS[curve.form][1],
    )
