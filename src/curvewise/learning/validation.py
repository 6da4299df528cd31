"""Checks of the method: leave one size out (the paper's Fig. 2), stability (Fig. 9), the variance model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.learning.curve import Curve, check_curves, check_size
from curvewise.learning.fit import build_curve
from curvewise.learning.power import (
    FORMS,
    WEIGHTS,
    Constants,
    GroupedRuns,
    PointScale,
    PowerFits,
    check_choice,
    check_constants,
    fit_power,
    group_runs,
    scale_for,
    size_variance,
    slope_variance,
)
from curvewise.stats.intervals import paired_t_test
from curvewise.text import as_count, format_count, format_number, format_value
from curvewise.types.results import FloatArray, Result, Unit, as_floats, as_generator, check_whole, count_missing

PAPER_ROWS = (*(("power", scheme) for scheme in WEIGHTS), ("sqrt", "size"), ("sqrt2", "size"), ("power2", "size"))
"""Forms and weights of the table in the paper's Fig. 2, in its order."""


@dataclass(frozen=True, eq=False)
class LeaveOneSizeOut(Result):
    """Errors of each form and weighting in predicting the mean at a size left out.

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
    pvalue : ndarray, shape (K,)
        Paired t-test of absolute errors over curves and sizes against the first row (NaN there).
    """

    forms: tuple[str, ...]
    weights: tuple[str, ...]
    r_squared: FloatArray
    sizes: FloatArray
    rmse: FloatArray
    average: FloatArray
    pvalue: FloatArray
    curves: int
    unit: Unit
    warnings: tuple[str, ...] = ()

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """The layout of the paper's Fig. 2: form, weights, R², RMSE per size, average, p."""
        rows: dict[str, Any] = {"form": list(self.forms), "weights": list(self.weights), "r_squared": self.r_squared}
        by_size = {f"rmse_{n:g}": self.rmse[:, i] for i, n in enumerate(self.sizes)}
        return {**rows, **by_size, "average": self.average, "pvalue": self.pvalue}

    def sentences(self) -> str:
        """State which row predicts best, and against what."""
        best = int(np.nanargmin(self.average))
        unit = self.unit.name
        text = (
            f"Over {format_count(self.curves, 'curve')}, form {self.forms[best]} with weights {self.weights[best]}"
            f" predicts the mean {self.unit.quantity} at a size left out best: RMSE"
            f" {format_value(float(self.average[best]), unit)} on average over {len(self.sizes)} sizes"
        )
        if "last" in self.forms:
            carried = float(self.average[self.forms.index("last")])
            text += f" (baseline, the nearest size carried over: {format_value(carried, unit)})"
        return f"{text}."

    def best_rows(self) -> tuple[str, Sequence[int]] | None:
        """Return the row with the lowest RMSE on average."""
        return None if np.isnan(self.average).all() else ("average", [int(np.nanargmin(self.average))])


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
    curves = _by_learner(given, learner)
    if forms is None and weights is None:
        rows = [*PAPER_ROWS, ("auto", "size"), ("last", "size")]
    else:
        rows = [(f, w) for f in _listed(forms, "forms", "power") for w in _listed(weights, "weights", "size")]
    sizes = curves[0].n
    for data in curves:
        if len(data.n) < 3:
            raise InputError("needs at least three sizes per curve to leave one out.", argument="n")
        sizes = np.intersect1d(sizes, data.n)
    if len(sizes) == 0:
        raise InputError("the curves share no size, so no size can be scored for all.", argument="learner")
    misses = np.array([[_misses(d, sizes, f, w, kind, constants) for d in curves] for f, w in rows])
    # Every curve at every size is one pair of the t-test.
    flat = np.abs(misses).reshape(len(rows), -1)
    p = [np.nan, *(paired_t_test(row, flat[0]) for row in flat[1:])]
    rmse = np.sqrt((misses**2).mean(axis=1))
    fits = [[build_curve(d, kind, form=f, weights=w, constants=constants) for d in curves] for f, w in rows]
    return LeaveOneSizeOut(
        forms=tuple(f for f, _ in rows),
        weights=tuple(w for _, w in rows),
        r_squared=np.array([[curve.r_squared for curve in row] for row in fits]).mean(axis=1),
        sizes=sizes,
        rmse=rmse,
        average=rmse.mean(axis=1),
        pvalue=np.array(p),
        curves=len(curves),
        unit=kind,
    )


def _listed(names: Sequence[str] | str | None, argument: str, default: str) -> Sequence[str]:
    """Return one name or several as a list, which must not be empty."""
    if isinstance(names, str) or names is None:
        return [names or default]
    if not len(names):
        raise InputError("is empty: name at least one.", argument=argument)
    return names


def _by_learner(columns: dict[str, NDArray[Any]], learner: ArrayLike | None) -> list[GroupedRuns]:
    if learner is None:
        return [group_runs(**columns)]
    given, shape = np.asarray(learner), columns["n"].shape
    if count_missing(given.ravel().tolist()):
        raise InputError("has missing values; name every learner.", argument="learner")
    names = given.astype(str)
    if names.shape != shape:
        raise InputError(f"has shape {names.shape} and n has {shape}: one name per run.", argument="learner")
    return [group_runs(**{c: v[names == k] for c, v in columns.items()}) for k in dict.fromkeys(names.tolist())]


def _misses(
    data: GroupedRuns, sizes: FloatArray, form: str, weights: str, unit: Unit, constants: Constants
) -> FloatArray:
    out = []
    for size in sizes:
        held = data.n == size
        rest = data.only(~held)
        # Nearest in log n, the scale on which curves are smooth.
        if form == "last":
            nearest = int(np.abs(np.log(rest.n / size)).argmin())
            predicted = float(rest.mean[nearest])
        else:
            curve = build_curve(rest, unit, form=form, weights=weights, constants=constants)
            predicted = curve.error_at(float(size))
        out.append(predicted - float(data.mean[held][0]))
    return np.array(out)


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
    _data: GroupedRuns  # in the unit given
    _rows: tuple[FloatArray, FloatArray]  # size and value of each run that was measured
    _fits: tuple[PowerFits, ...]
    _scale: PointScale
    warnings: tuple[str, ...] = ()

    def sampled_at(self, n: ArrayLike) -> FloatArray:
        """Return the sampled curves at T sizes, shape (K, draws, T); ``inf`` gives their asymptotes."""
        return self._scale.values(np.stack([f.errors_at(n) for f in self._fits]))

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per form."""
        std: dict[str, Any] = {"e_N": self.error_std, "beta_N": self.data_reliance_std, "gamma": self.gamma_std}
        std = {f"{name}_std": values for name, values in {**std, "alpha": self.alpha_std}.items()}
        outside = {f"rmse_{n:g}": self.held_out_rmse[:, i] for i, n in enumerate(self.held_out)}
        return {"form": list(self.forms), **std, **outside}

    def sentences(self) -> str:
        """State how far e_N and β_N can be trusted from one run per size."""
        spreads = (self.error_std, self.data_reliance_std, self.alpha_std)
        error, reliance, alpha = (format_value(float(std[0]), self.unit.name) for std in spreads)
        return (
            f"Estimated from one run at each of a few sizes ({self.draws} simulated designs, form {self.forms[0]}), e_N"
            f" at n = {format_number(self.at)} has a standard deviation of {error}, β_N of {reliance} and the asymptote"
            f" of {alpha}."
        )


def measure_stability(
    n: ArrayLike,
    error: ArrayLike,
    *,
    sizes: ArrayLike | None = None,
    forms: Sequence[str] | None = None,
    draws: int = 100,
    at: float | None = None,
    unit: str = "fraction",
    higher_is_better: bool = False,
    runs: ArrayLike | None = None,
    variance: ArrayLike | None = None,
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
    forms : sequence of {"power", "sqrt", "power2", "sqrt2"}, optional
        Parameterisations to compare; all four by default.
    draws : int
        How many small designs to simulate.
    at : float, optional
        N; the largest of ``sizes`` by default.
    unit, higher_is_better, runs, variance, constants
        As in :func:`fit_learning_curve`.
    rng : int or Generator
        Seed.
    """
    read_as = Unit(unit, higher_is_better)
    kind = read_as.once_read
    rows = as_floats(n, "n"), read_as.errors(error)
    data = group_runs(*rows, runs, variance)
    scale = scale_for(kind, data.mean)
    used = data.n[-4:] if sizes is None else np.unique(as_floats(sizes, "sizes"))
    if not np.isin(used, data.n).all() or len(used) < 2:
        measured = ", ".join(map(format_number, data.n.tolist()))
        raise InputError(f"must be at least two of the sizes that were measured: {measured}.", argument="sizes")
    forms = tuple(FORMS) if forms is None else tuple(_listed(forms, "forms", "power"))
    for form in forms:
        check_choice("forms", form, tuple(FORMS))
    check_constants(constants)
    draws = check_whole(draws, "draws", 2)
    points = data.in_points(scale)
    # The variance of one run, modelled where there is only one.
    spread = np.where(points.freedom > 0, points.variance, points.run_variance(constants.sigma0_squared))
    keep = np.isin(data.n, used)
    noise = as_generator(rng).standard_normal((draws, keep.sum()))
    drawn = points.mean[keep] + np.sqrt(spread[keep]) * noise
    size = float(used[-1]) if at is None else check_size(at, "at")
    held = data.n[~keep]
    # σ0² keeps a size whose runs happen to agree from taking all the weight.
    weight = 1.0 / np.maximum(spread[keep], constants.sigma0_squared)
    fits = [fit_power(used, drawn, weight[None], form, constants) for form in forms]
    misses = [np.sqrt(((f.errors_at(held) - points.mean[~keep]) ** 2).mean(axis=0)) for f in fits]
    deviations = [[q.std() for q in (f.errors_at(size), f.reliance_at(size), f.gamma, f.alpha)] for f in fits]
    error_std, reliance_std, gamma_std, alpha_std = np.array(deviations).T
    return Stability(
        forms=forms,
        at=size,
        draws=draws,
        error_std=error_std / scale.factor,
        data_reliance_std=reliance_std / scale.factor,
        gamma_std=gamma_std,
        alpha_std=alpha_std / scale.factor,
        held_out=held,
        held_out_rmse=np.array(misses) / scale.factor,
        unit=kind,
        _data=data,
        _rows=rows,
        _fits=tuple(fits),
        _scale=scale,
    )


@dataclass(frozen=True, eq=False)
class VarianceCheck(Result):
    """Measured against modelled variance of runs, size by size.

    Attributes
    ----------
    n : ndarray, shape (S,)
        Sizes with replicates in at least one curve.
    measured, modelled : ndarray, shape (S,)
        Mean over curves, weighted by degrees of freedom, of s² and of σ0² + σ̂²/n.
    pvalue : float
        Simulated, that measured and modelled keep one ratio over the sizes; NaN with one size.
        Small means that the spread does not fall as the model says. With few runs at the large
        sizes it has little power.
    """

    n: FloatArray
    measured: FloatArray
    modelled: FloatArray
    freedom: FloatArray
    pvalue: float
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
            "degrees_of_freedom": self.freedom,
        }

    def display_columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per size, variances in the unit of :attr:`shown_in`."""
        scale, _ = self.shown_in
        shown = {k.replace("_", " "): v for k, v in self.columns().items()}
        return shown | {"measured": scale * self.measured, "modelled": scale * self.modelled}

    def readable(self) -> Mapping[str, Sequence[Any]]:
        """Return the table as people read it; digits of variances, which are squares, go by themselves."""
        columns: dict[str, Any] = dict(self.display_columns())
        counts = {k: [as_count(v) for v in columns[k]] for k in ("n", "degrees of freedom")}
        return {**columns, **counts} | {k: [f"{v:.3g}" for v in columns[k]] for k in ("measured", "modelled", "ratio")}

    def table_note(self) -> str:
        """Name the unit of the variances."""
        _, square = self.shown_in
        return f"Variance of one run{square and f' in {square}'}"

    def sentences(self) -> str:
        """State whether σ0² + σ̂²/n describes the spread of the runs."""
        if np.isnan(self.pvalue):
            return "Only one size has several runs: the change of their spread with size cannot be tested."
        verdict = "rejected" if self.pvalue < 0.01 else "not rejected"
        return (
            f"The variance model σ0² + σ̂²/n is {verdict} for the runs of {format_count(self.curves, 'curve')} at"
            f" {len(self.n)} sizes (p = {self.pvalue:.2g}). The test takes all sizes together: it asks whether measured"
            " and modelled variance keep one ratio, not whether they agree at each size."
        )

    @property
    def shown_in(self) -> tuple[float, str]:
        """The factor by which people see these variances, and their unit: those of errors are in %²."""
        name = self.unit.name
        return 1e4 if name == "fraction" else 1.0, "%²" if name in ("fraction", "percent") else ""


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
    curves = check_curves(curves)
    draws = check_whole(draws, "draws", 1)
    parts = []
    for c in curves:
        known = (c.runs > 1) & np.isfinite(c.variance)
        floor = c.constants.sigma0_squared / c._scale.factor**2
        parts.append((GroupedRuns(c.n, c.runs, c.mean, c.variance).only(known), floor))
    if not any(len(data.n) for data, _ in parts):
        raise InputError("hold no replicated size: there is no spread to check.", argument="curves")
    measured = [data.variance[None] for data, _ in parts]
    sizes, freedom, pooled, expected = _pool(parts, measured)
    # The null is simulated, because σ̂² is estimated anew from each draw and χ² would not hold.
    generator = as_generator(rng)
    shapes = [generator.chisquare(data.freedom, (draws, len(data.n))) / data.freedom for data, _ in parts]
    null = [_modelled(*p, v) * shape for p, v, shape in zip(parts, measured, shapes, strict=True)]
    _, _, null_pooled, null_expected = _pool(parts, null)
    statistic = _unevenness(pooled / expected, freedom)[0]
    beyond = _unevenness(null_pooled / null_expected, freedom) >= statistic
    return VarianceCheck(
        n=sizes,
        measured=pooled[0],
        modelled=expected[0],
        freedom=freedom,
        pvalue=float("nan") if len(sizes) < 2 else float((1 + beyond.sum()) / (1 + draws)),
        curves=len(curves),
        unit=curves[0].unit,
    )


def _modelled(data: GroupedRuns, floor: float, variance: FloatArray) -> FloatArray:
    """σ0² + σ̂²/n with σ̂² estimated from variances (draws, S) of replicated sizes; ``floor`` is σ0² in their unit."""
    return size_variance(data.n, slope_variance(data.n, data.runs, variance, floor)[:, None], floor)


def _pool(
    parts: Sequence[tuple[GroupedRuns, float]], variances: Sequence[FloatArray]
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Sizes, degrees of freedom, and measured and modelled variance (draws, S) over all curves."""
    sizes = np.unique(np.concatenate([data.n for data, _ in parts]))
    freedom = np.zeros(len(sizes))
    measured = np.zeros((len(variances[0]), len(sizes)))
    modelled = np.zeros_like(measured)
    for (data, floor), variance in zip(parts, variances, strict=True):
        at = np.searchsorted(sizes, data.n)
        freedom[at] += data.freedom
        measured[:, at] += data.freedom * variance
        modelled[:, at] += data.freedom * _modelled(data, floor, variance)
    return sizes, freedom, measured / freedom, modelled / freedom


def _unevenness(ratio: FloatArray, freedom: FloatArray) -> FloatArray:
    """Weighted variance of log ratios (draws, S) over sizes.

    The level of the ratio is not judged, because σ̂² was fitted to it.
    """
    logs = np.log(np.maximum(ratio, 1e-300))
    centre = (logs @ freedom / freedom.sum())[:, None]
    return np.asarray(((logs - centre) ** 2) @ freedom)
