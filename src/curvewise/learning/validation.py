"""How well a form predicts the sizes it has not seen: the table in the paper's Fig. 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.learning.curve import Curve, check_size
from curvewise.learning.fit import build_curve, check_form
from curvewise.learning.power import (
    FORMS,
    Constants,
    Replicates,
    fit_power,
    from_means,
    gamma_grid,
    group_runs,
    scale_for,
    size_variance,
    size_weights,
    slope_variance,
)
from curvewise.stats.intervals import paired_t_test
from curvewise.text import format_number
from curvewise.types.results import Result
from curvewise.types.units import FloatArray, Unit, as_floats

PAPER_ROWS = (
    ("power", "size"),
    ("power", "run"),
    ("power", "none"),
    ("sqrt", "size"),
    ("sqrt2", "size"),
    ("power2", "size"),
)
"""Forms and weights of the table in the paper's Fig. 2, in its order."""


@dataclass(frozen=True, eq=False)
class LeaveOneSizeOut(Result):
    """How well each form and weighting predicts the mean error at a size left out.

    Attributes
    ----------
    forms, weights : tuple of str, length K
        The rows.
    r_squared : ndarray, shape (K,)
        Of the fits to all sizes, averaged over curves.
    sizes : ndarray, shape (S,)
        Sizes left out in turn.
    rmse : ndarray, shape (K, S)
        Root mean square, over curves, of predicted minus measured mean, in the unit given.
    average : ndarray, shape (K,)
        Mean of ``rmse`` over sizes.
    p_value : ndarray, shape (K,)
        Paired t-test of absolute errors over curves and sizes against the first row (NaN there).
    """

    forms: tuple[str, ...]
    weights: tuple[str, ...]
    r_squared: FloatArray
    sizes: FloatArray
    rmse: FloatArray
    average: FloatArray
    p_value: FloatArray
    curves: int
    unit: Unit
    warnings: tuple[str, ...] = ()

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """The layout of the paper's Fig. 2: form, weights, R², RMSE per size, average, p."""
        by_size = {format_number(n): self.rmse[:, i] for i, n in enumerate(self.sizes)}
        return {
            "form": list(self.forms),
            "weights": list(self.weights),
            "R2": self.r_squared,
            **by_size,
            "average": self.average,
            "p_value": self.p_value,
        }

    def summary(self) -> str:
        """Which row predicts best, and against what."""
        best = int(np.nanargmin(self.average))
        text = (
            f"Over {self.curves} curve(s), the mean error at a size left out is predicted best by"
            f" form {self.forms[best]} with weights {self.weights[best]}: RMSE"
            f" {format_number(float(self.average[best]))}{self.unit.suffix} on average over"
            f" {len(self.sizes)} sizes"
        )
        if "last" in self.forms:
            carried = float(self.average[self.forms.index("last")])
            text += f" (the nearest size carried over: {format_number(carried)}{self.unit.suffix})"
        return " ".join([text + ".", *(f"Beware: {w}" for w in self.warnings)])


def leave_one_size_out(
    n: ArrayLike,
    error: ArrayLike,
    *,
    learner: ArrayLike | None = None,
    forms: Sequence[str] | None = None,
    weights: Sequence[str] | None = None,
    unit: str = "fraction",
    higher_is_better: bool = False,
    runs: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    constants: Constants = Constants(),  # noqa: B008 (frozen)
) -> LeaveOneSizeOut:
    """Leave out each size in turn, fit the rest, predict its mean error.

    Parameters
    ----------
    n, error : array_like, shape (runs,)
        Training size and error of each run.
    learner : array_like, shape (runs,), optional
        Which curve a run belongs to; all curves must share the sizes that are scored.
    forms, weights : sequence of str, optional
        Rows are all combinations; by default the six of the paper's table, "auto", and "last", the
        nearest size's mean carried over.
    unit, higher_is_better, runs, variance, constants
        As in :func:`fit_learning_curve`.
    """
    read_as = Unit(unit, higher_is_better)
    kind = read_as.once_read
    columns = {"n": n, "error": read_as.errors(error), "runs": runs, "variance": variance}
    given = {k: as_floats(v, k) for k, v in columns.items() if v is not None}
    if any(v.shape not in (given["n"].shape, ()) for v in given.values()):
        raise InputError("n, error, runs and variance must have one entry per row each.")
    given = {k: np.broadcast_to(v, given["n"].shape) for k, v in given.items()}
    if variance is not None and runs is None:
        raise InputError("variance needs runs=: over how many runs each mean was taken.")
    curves = _by_learner(given, learner)
    rows = _rows(forms, weights)
    sizes = curves[0].n
    for data in curves:
        if len(data.n) < 3:
            raise InputError("n needs at least three sizes per curve to leave one out.")
        sizes = np.intersect1d(sizes, data.n)
    if len(sizes) == 0:
        raise InputError("learner: the curves share no size, so no size can be scored for all.")
    misses = np.array([[_misses(d, sizes, f, w, kind, constants) for d in curves] for f, w in rows])
    flat = np.abs(misses).reshape(len(rows), -1)
    p = [np.nan, *(paired_t_test(row, flat[0]) for row in flat[1:])]
    rmse = np.sqrt((misses**2).mean(axis=1))
    return LeaveOneSizeOut(
        forms=tuple(f for f, _ in rows),
        weights=tuple(w for _, w in rows),
        r_squared=np.array(
            [[build_curve(d, kind, form=f, weights=w, constants=constants).r_squared for d in curves] for f, w in rows]
        ).mean(axis=1),
        sizes=sizes,
        rmse=rmse,
        average=rmse.mean(axis=1),
        p_value=np.array(p),
        curves=len(curves),
        unit=kind,
    )


def _by_learner(columns: dict[str, NDArray[Any]], learner: ArrayLike | None) -> list[Replicates]:
    if learner is None:
        return [_grouped(columns)]
    names = np.asarray(learner).astype(str)
    shape = columns["n"].shape
    if names.shape != shape:
        raise InputError(f"learner has shape {names.shape} and n has {shape}: one name per run.")
    return [_grouped({c: v[names == k] for c, v in columns.items()}) for k in dict.fromkeys(names.tolist())]


def _grouped(columns: dict[str, NDArray[Any]]) -> Replicates:
    if "runs" not in columns:
        return group_runs(columns["n"], columns["error"])
    return from_means(columns["n"], columns["error"], columns["runs"], columns.get("variance"))


def _rows(forms: Sequence[str] | None, weights: Sequence[str] | None) -> list[tuple[str, str]]:
    if forms is None and weights is None:
        return [*PAPER_ROWS, ("auto", "size"), ("last", "size")]
    rows = [(f, w) for f in forms or ("power",) for w in weights or ("size",)]
    for form, _ in rows:
        check_form(form)
    return rows


def _misses(
    data: Replicates, sizes: FloatArray, form: str, weights: str, unit: Unit, constants: Constants
) -> FloatArray:
    out = []
    for size in sizes:
        held = data.n == size
        rest = data.only(~held)
        if form == "last":
            nearest = int(np.abs(np.log(rest.n / size)).argmin())
            predicted = float(rest.mean[nearest])
        else:
            curve = build_curve(rest, unit, form=form, weights=weights, constants=constants)
            predicted = curve.error_at(float(size))
        out.append(predicted - float(data.mean[held][0]))
    return np.array(out)


# How far estimates move when there is one run at each of a few sizes: the paper's Fig. 9.


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
        outside = {f"RMSE at {format_number(n)}": self.held_out_rmse[:, i] for i, n in enumerate(self.held_out)}
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
            f" {format_number(self.at)} has a standard deviation of"
            f" {format_number(float(self.error_std[0]))}{unit} and β_N of"
            f" {format_number(float(self.data_reliance_std[0]))}{unit} with form {self.forms[0]}; the"
            f" asymptote of {format_number(float(self.alpha_std[0]))}{unit}."
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
    rows = [_stability_row(form, used, points, spread[keep], size, held, centre[~keep], constants) for form in forms]
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


def _moments(data: Replicates, factor: float, sign: float, constants: Constants) -> tuple[FloatArray, FloatArray]:
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
        n, points, weight[None], gammas=gamma_grid(form, constants.gamma), prior=constants.prior, terms=FORMS[form][1]
    )

    def curve(size: FloatArray | float) -> FloatArray:
        x = np.asarray(size) ** fits.gamma[:, None]
        return np.asarray(fits.alpha[:, None] + fits.eta[:, None] * x + fits.delta[:, None] * x * x)

    x = at**fits.gamma
    reliance = -2.0 * fits.gamma * (fits.eta * x + 2.0 * fits.delta * x * x)
    outside = np.sqrt(((curve(held) - truth) ** 2).mean(axis=0)) if len(held) else np.zeros(0)
    spreads = (curve(at).std(), reliance.std(), fits.gamma.std(), fits.alpha.std())
    return (*spreads, outside)


# Whether the variance model σ0² + σ̂²/n describes the spread of runs.


@dataclass(frozen=True, eq=False)
class VarianceCheck(Result):
    """Measured against modelled variance of runs, size by size.

    Attributes
    ----------
    n : ndarray, shape (S,)
        Sizes with replicates in at least one curve.
    measured, modelled : ndarray, shape (S,)
        Mean over curves, weighted by degrees of freedom, of s² and of σ0² + σ̂²/n.
    p_value : float
        Simulated, that measured and modelled keep one ratio over the sizes; NaN with one size.
        Small means that the spread does not fall as the model says. With few runs at the large
        sizes it has little power.
    """

    n: FloatArray
    measured: FloatArray
    modelled: FloatArray
    freedom: FloatArray
    p_value: float
    curves: int
    unit: Unit
    warnings: tuple[str, ...] = ()

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per size."""
        return {
            "n": self.n,
            "measured": self.measured,
            "modelled": self.modelled,
            "ratio": self.measured / self.modelled,
            "degrees of freedom": self.freedom,
        }

    def summary(self) -> str:
        """Whether σ0² + σ̂²/n describes the spread of the runs."""
        verdict = "does not describe" if self.p_value < 0.01 else "is consistent with"
        return (
            f"The variance model σ0² + σ̂²/n {verdict} the spread of the runs of {self.curves}"
            f" curve(s) at {len(self.n)} sizes (p = {self.p_value:.2g})."
        )


def check_variance_model(curves: Sequence[Curve], *, draws: int = 999, rng: int = 0) -> VarianceCheck:
    """Compare the spread of runs with the variance model, pooled over curves.

    Parameters
    ----------
    curves : sequence of LearningCurve or EnsembleCurve
        In one unit.
    draws : int
        Simulations of the null, in which σ̂² is estimated anew each time.
    rng : int
        Their seed.
    """
    if isinstance(curves, Curve):
        curves = [curves]
    if not curves or len({c.unit for c in curves}) > 1:
        raise InputError("curves must be a list of fitted curves in one unit.")
    parts = [_part(c) for c in curves]
    if not any(len(p.n) for p in parts):
        raise InputError("curves hold no replicated size: there is no spread to check.")
    measured = [p.variance[None] for p in parts]
    sizes, freedom, pooled, expected = _pool(parts, measured)
    generator = np.random.default_rng(rng)
    null = [p.modelled(p.variance[None]) * generator.chisquare(p.freedom, (draws, len(p.n))) / p.freedom for p in parts]
    _, _, null_pooled, null_expected = _pool(parts, null)
    statistic = _unevenness(pooled / expected, freedom)[0]
    beyond = _unevenness(null_pooled / null_expected, freedom) >= statistic
    return VarianceCheck(
        n=sizes,
        measured=pooled[0],
        modelled=expected[0],
        freedom=freedom,
        p_value=float("nan") if len(sizes) < 2 else float((1 + beyond.sum()) / (1 + draws)),
        curves=len(curves),
        unit=curves[0].unit,
    )


@dataclass(frozen=True, eq=False)
class _Part:
    """Replicated sizes of one curve, in its unit."""

    n: FloatArray
    variance: FloatArray
    freedom: FloatArray
    floor: float

    def modelled(self, variance: FloatArray) -> FloatArray:
        """σ0² + σ̂²/n with σ̂² estimated from variances (draws, S)."""
        slope = slope_variance(self.n, self.freedom + 1.0, variance, self.floor)
        return size_variance(self.n, slope[:, None], self.floor)


def _part(curve: Curve) -> _Part:
    known = (curve.runs > 1) & np.isfinite(curve.variance)
    floor = curve.constants.sigma0_squared / curve._scale.factor**2
    return _Part(curve.n[known], curve.variance[known], curve.runs[known] - 1.0, floor)


def _pool(
    parts: Sequence[_Part], variances: Sequence[FloatArray]
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Sizes, degrees of freedom, and measured and modelled variance (draws, S) over all curves."""
    sizes = np.unique(np.concatenate([p.n for p in parts]))
    freedom = np.zeros(len(sizes))
    measured = np.zeros((len(variances[0]), len(sizes)))
    modelled = np.zeros_like(measured)
    for part, variance in zip(parts, variances, strict=True):
        at = np.searchsorted(sizes, part.n)
        freedom[at] += part.freedom
        measured[:, at] += part.freedom * variance
        modelled[:, at] += part.freedom * part.modelled(variance)
    return sizes, freedom, measured / freedom, modelled / freedom


def _unevenness(ratio: FloatArray, freedom: FloatArray) -> FloatArray:
    """Weighted variance of log ratios (draws, S) over sizes.

    The level of the ratio is not judged, because σ̂² was fitted to it.
    """
    logs = np.log(np.maximum(ratio, 1e-300))
    centre = (logs @ freedom / freedom.sum())[:, None]
    return np.asarray(((logs - centre) ** 2) @ freedom)
