"""How far estimates move when there is one run at each of a few sizes: the paper's Fig. 9."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.learning.base import check_size
from curvewise.learning.power import FORMS, Constants, fit_power, gamma_grid, size_weights
from curvewise.learning.replicates import Replicates, group_runs
from curvewise.learning.units import scale_for
from curvewise.tables import number
from curvewise.types import FloatArray, Result, Unit


@dataclass(frozen=True, eq=False)
class Stability(Result):
    """Spread of what is estimated from one run at each of a few sizes: the paper's Fig. 9.

    Attributes
    ----------
    forms : tuple of str, length K
    at : float
        N.
    error_std, data_reliance_std, gamma_std, alpha_std : ndarray, shape (K,)
        Standard deviation over the draws of e_N, β_N, γ and α.
    held_out : ndarray, shape (H,)
        Measured sizes that the fits did not use.
    held_out_rmse : ndarray, shape (K, H)
        Of the draws' predictions about the measured means there.
    """

    forms: tuple[str, ...]
    at: float
    draws: int
    error_std: FloatArray
    data_reliance_std: FloatArray
    gamma_std: FloatArray
    alpha_std: FloatArray
    held_out: FloatArray
    held_out_rmse: FloatArray
    unit: Unit
    warnings: tuple[str, ...] = ()

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per form."""
        outside = {
            f"RMSE at {number(n)}": self.held_out_rmse[:, i] for i, n in enumerate(self.held_out)
        }
        return {
            "form": list(self.forms),
            "e_N std": self.error_std,
            "beta_N std": self.data_reliance_std,
            "gamma std": self.gamma_std,
            "alpha std": self.alpha_std,
            **outside,
        }

    def summary(self) -> str:
        """How far e_N and β_N can be trusted from one run per size."""
        unit = self.unit.suffix
        text = (
            f"From one run at each of a few sizes, over {self.draws} draws, e_N at n ="
            f" {number(self.at)} has a standard deviation of"
            f" {number(float(self.error_std[0]))}{unit} and β_N of"
            f" {number(float(self.data_reliance_std[0]))}{unit} with form {self.forms[0]}; the"
            f" asymptote of {number(float(self.alpha_std[0]))}{unit}."
        )
        return " ".join([text, *(f"Beware: {w}" for w in self.warnings)])


def measure_stability(
    n: ArrayLike,
    error: ArrayLike,
    *,
    sizes: ArrayLike | None = None,
    forms: Sequence[str] = tuple(FORMS),
    draws: int = 100,
    at: float | None = None,
    unit: str = "fraction",
    higher_is_better: bool = False,
    rng: int | np.random.Generator = 0,
    constants: Constants = Constants(),  # noqa: B008 (frozen)
) -> Stability:
    """Draw one run per size from the measured means and spreads, fit, and see what moves.

    Parameters
    ----------
    n, error : array_like, shape (runs,)
        The full measurements.
    sizes : array_like, optional
        The sizes of the small design; by default the four largest.
    forms : sequence of {"power", "sqrt", "power2", "sqrt2"}
        Parameterisations to compare.
    draws : int
        How many small designs to simulate.
    at : float, optional
        N; the largest of ``sizes`` by default.
    unit, higher_is_better, constants
        As in :func:`fit_learning_curve`.
    rng : int or Generator
        Seed.
    """
    read_as = Unit(unit, higher_is_better)
    kind = read_as.once_read
    data = group_runs(n, read_as.errors(error))
    scale = scale_for(kind, data.mean)
    used = data.n[-4:] if sizes is None else np.unique(np.asarray(sizes, dtype=np.float64))
    if not np.isin(used, data.n).all() or len(used) < 2:
        raise InputError("sizes must be at least two of the sizes that were measured.")
    unknown = [f for f in forms if f not in FORMS]
    if unknown or draws < 2:
        raise InputError(f"forms must be among {', '.join(FORMS)} and draws at least 2.")
    centre, spread = _moments(data, scale.factor, scale.sign, constants)
    keep = np.isin(data.n, used)
    generator = np.random.default_rng(rng)
    points = centre[keep] + np.sqrt(spread[keep]) * generator.standard_normal((draws, keep.sum()))
    size = float(used[-1]) if at is None else check_size(at, "at")
    held = data.n[~keep]
    rows = [
        _stability_row(form, used, points, spread[keep], size, held, centre[~keep], constants)
        for form in forms
    ]
    columns = [np.array(c) / scale.factor for c in zip(*rows, strict=True)]
    return Stability(
        forms=tuple(forms),
        at=size,
        draws=draws,
        error_std=columns[0],
        data_reliance_std=columns[1],
        gamma_std=columns[2] * scale.factor,
        alpha_std=columns[3],
        held_out=held,
        held_out_rmse=columns[4],
        unit=kind,
    )


def _moments(
    data: Replicates, factor: float, sign: float, constants: Constants
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of one run at each size in points; modelled where there is one run."""
    variance = data.variance * factor**2
    s0 = constants.sigma0_squared
    points = Replicates(data.n, data.runs, data.mean * factor * sign, variance)
    modelled = points.run_variance(s0)
    return points.mean, np.where(data.runs > 1, variance, modelled)


def _stability_row(
    form: str,
    n: FloatArray,
    points: FloatArray,
    spread: FloatArray,
    at: float,
    held: FloatArray,
    truth: FloatArray,
    constants: Constants,
) -> tuple[Any, ...]:
    weight = size_weights("size", np.ones_like(n), np.maximum(spread, constants.sigma0_squared))
    fits = fit_power(
        n,
        points,
        weight[None],
        gammas=gamma_grid(form, constants.gamma),
        prior=constants.prior,
        terms=FORMS[form][1],
    )

    def curve(size: FloatArray | float) -> FloatArray:
        x = np.asarray(size) ** fits.gamma[:, None]
        return np.asarray(fits.alpha[:, None] + fits.eta[:, None] * x + fits.delta[:, None] * x * x)

    x = at**fits.gamma
    reliance = -2.0 * fits.gamma * (fits.eta * x + 2.0 * fits.delta * x * x)
    outside = np.sqrt(((curve(held) - truth) ** 2).mean(axis=0)) if len(held) else np.zeros(0)
    spreads = (curve(at).std(), reliance.std(), fits.gamma.std(), fits.alpha.std())
    return (*spreads, outside)
