"""Fitted learning curves: estimates with their intervals, predictions, samples to reach an error, budgets."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from curvewise.errors import InputError, Message, arg, warn_all
from curvewise.learning.calibration import power_interval
from curvewise.learning.diagnosis import is_below, not_followed
from curvewise.learning.extrapolation import SHORTEST_PREFIX, Continuation, continue_curve
from curvewise.learning.power import (
    FORMS,
    Constants,
    GroupedRuns,
    PointScale,
    PowerFits,
    bounds,
    check_choice,
    fit_means,
    simulate,
    size_weights,
)
from curvewise.learning.profile import (
    FINE_GRID,
    Basis,
    Coefficients,
    NoiseAverage,
    Profile,
    RunNoise,
    error_of,
    gain_of,
    large_sample_of,
    profile_replicates,
    reliance_of,
)
from curvewise.stats.intervals import crossing_interval
from curvewise.text import (
    Cell,
    as_count,
    format_chance,
    format_interval,
    format_level,
    format_number,
    format_size,
    format_target,
    interval_cell,
)
from curvewise.types.results import (
    FloatArray,
    Interval,
    Result,
    Unit,
    as_floats,
    as_generator,
    check_level,
    check_whole,
    data_frame,
    plain,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


EXTRAPOLATION_LIMIT = 4.0
"""Beyond this multiple of the largest size the paper does not trust its curves (§4.2)."""

FARTHEST = 1e6
"""Sizes are searched up to this multiple of the largest one measured."""

EDGE = 0.05
"""An estimate is at the edge of its interval within this share of the width."""
NARROW = 0.1
"""Widths of intervals of γ below which that does not matter: there the edge is within the rounding of γ."""

INTERVALS = ("confidence", "prediction", "conditional")


@dataclass(frozen=True)
class CurveIntervals:
    """Error and data-reliance at one size, each with its interval.

    Attributes
    ----------
    n : float
        The size N.
    error : Interval
        e_N.
    data_reliance : Interval
        β_N, to first order how much the error would rise with a quarter of the data.
    large_sample : Interval
        e_N − β_N, the linearised estimate of error with unlimited data.
    """

    n: float
    error: Interval
    data_reliance: Interval
    large_sample: Interval


@dataclass(frozen=True, eq=False)
class Curve(Result):
    """A fitted learning curve; see :class:`LearningCurve` and :class:`EnsembleCurve`.

    Attributes
    ----------
    learner : str
        Name, for legends and sentences.
    form : str
        What was fitted.
    unit : Unit
        Unit of every number on this object.
    n, runs, mean, variance : ndarray, shape (S,)
        The measurements, by size: runs, mean value, variance of one run (NaN where unknown).
    warnings : tuple of str
        What to beware of.
    notes : tuple of str
        How the input was read.
    constants : Constants
        λ and σ0² of the fit, in percentage points.
    """

    learner: str
    form: str
    unit: Unit
    n: FloatArray
    runs: FloatArray
    mean: FloatArray
    variance: FloatArray
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    constants: Constants
    _data: GroupedRuns
    _scale: PointScale
    _at_chance: bool  # whether the largest size is within a tenth of the blind guess named
    _place: int | None  # among the learners fitted together, by which pictures choose its colour

    @abstractmethod
    def _error_points(self, n: FloatArray) -> FloatArray:
        """The curve at sizes n, in points: the one function that all answers, tables and pictures come from."""

    @abstractmethod
    def _band_points(self, n: FloatArray, level: float, interval: str, runs: float) -> tuple[FloatArray, FloatArray]:
        """Low and high of the curve at sizes n, in points, before clipping to what is possible."""

    def _likely_points(self, n: FloatArray) -> FloatArray:
        """The centre of the intervals at sizes n, in points, which the prior on γ does not move."""
        return self._error_points(n)

    @abstractmethod
    def _gain_band(self, n: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Low and high of how much better n is than the largest size, in the unit."""

    @abstractmethod
    def _reliance_points(self, n: float) -> float:
        """β_N in points."""

    def _large_points(self, n: float) -> float:
        """e_N − β_N in points."""
        return float(self._error_points(np.array([n]))[0]) - self._reliance_points(n)

    @property
    @abstractmethod
    def _profile(self) -> Profile | NoiseAverage:
        """The likelihood along γ."""

    @abstractmethod
    def _probability_never(self, target: float) -> float:
        """Probability that the error, in points, never falls to ``target``."""

    def interval_at(
        self, n: float | None = None, *, level: float = 0.95, interval: str | None = None
    ) -> CurveIntervals:
        """Return e_N, β_N and e_N − β_N with their intervals.

        Parameters
        ----------
        n : float, optional
            N; the largest size by default. ``inf`` gives the asymptote of a power law.
        level : float
            Coverage.
        interval : {"confidence", "prediction", "conditional"}, optional
            Kind of the interval of e_N; forms made to extrapolate have prediction intervals only. The other two
            quantities have confidence intervals by the power law's likelihood, or conditional ones when asked for.
        """
        check_level(level)
        kind = interval or self.default_interval
        check_choice("interval", kind, INTERVALS)
        # β_N and e_N − β_N are no measurements, so that there is nothing to predict.
        other = "conditional" if kind == "conditional" else "confidence"
        size = self._size(n)
        error, low, high = (float(v[0]) for v in self._answer_points(np.array([size]), level, kind, np.inf))
        beta, beta_low, beta_high = self._linear_answer(reliance_of(size), self._reliance_points(size), level, other)
        large, *large_ends = self._linear_answer(large_sample_of(size), self._large_points(size), level, other)
        value, ends, amount = self._scale.value, self._scale.ends, self._scale.amount
        return CurveIntervals(
            n=size,
            error=Interval(value(error), *ends(low, high), level, kind),
            data_reliance=Interval(amount(beta), amount(beta_low), amount(beta_high), level, other),
            large_sample=Interval(value(large), *ends(*large_ends), level, other),
        )

    @property
    def default_interval(self) -> str:
        """The kind of interval that this form gives when none is named."""
        return "confidence"

    def is_supported_at(self, n: float) -> bool:
        """Return False for a size at which the curve does not follow what was fitted, as beyond a law that rises."""
        return True

    def warnings_at(self, n: float) -> tuple[str, ...]:
        """Return the warnings that matter to the curve at size n; some are only about extrapolation."""
        return self.all_warnings

    @property
    def largest_n(self) -> float:
        """The largest training size measured: the default N."""
        return float(self.n[-1])

    @property
    def r_squared(self) -> float:
        """Share of the variance of the size means that the curve explains."""
        total = float(((self.mean - self.mean.mean()) ** 2).sum())
        rest = float(((self.mean - self.errors_at(self.n)) ** 2).sum())
        return 1.0 - rest / total if total > 0 else float("nan")

    @property
    def e_N(self) -> float:
        """Error at the largest size measured; :meth:`interval_at` has its interval."""
        return self.error_at()

    @property
    def beta_N(self) -> float:
        """Data-reliance at the largest size measured; :meth:`interval_at` has its interval."""
        return self.data_reliance_at()

    def error_at(self, n: float | None = None) -> float:
        """e_N, the error at training size N (default: the largest size measured)."""
        return float(self.errors_at([self._size(n)])[0])

    def errors_at(self, n: ArrayLike) -> FloatArray:
        """The curve at several training sizes."""
        return self._scale.values(self._error_points(check_sizes_to_predict(n)))

    def data_reliance_at(self, n: float | None = None) -> float:
        """β_N = N^−½ ∂e/∂n^−½: to first order, the rise of error with a quarter of the data."""
        return self._scale.amount(self._reliance_points(self._size(n)))

    def linearised_at(self, n: ArrayLike, at: float | None = None) -> FloatArray:
        """Eq. 1 of the paper: e(dN) ≈ e_N + (d^−½ − 1) β_N, from e_N and β_N alone."""
        anchor = self._size(at)
        d = check_sizes_to_predict(n) / anchor
        e = float(self._error_points(np.array([anchor]))[0])
        return self._scale.values(e + (d**-0.5 - 1.0) * self._reliance_points(anchor))

    def predict(
        self, n: ArrayLike, interval: str | None = None, *, level: float = 0.95, runs: float = 1
    ) -> pd.DataFrame:
        """The curve at sizes n, with an interval.

        Parameters
        ----------
        n : array_like
            Training sizes.
        interval : {"confidence", "prediction", "conditional"}, optional
            "confidence" is for the curve itself and supposes its form; "prediction" is for what
            will be measured there, calibrated on real curves; "conditional" is the paper's Eq. 3,
            which treats γ as known and is far too narrow.
        level : float
            Coverage.
        runs : int
            With "prediction": the mean of how many new runs, one by default, which varies more than the mean of many
            that tables, sentences and pictures show (e_N): that is ``float("inf")``.

        Returns
        -------
        DataFrame
            Columns n, error, low, high, in the unit of the fit. Its ``attrs`` name the kind of the interval, its level
            and, for prediction intervals, the number of runs. The error never rises beyond the largest size measured;
            see :attr:`LearningCurve.beyond`.

        Warns
        -----
        CurvewiseWarning
            If a size is more than four times the largest one measured, or below the smallest.
        """
        sizes = check_sizes_to_predict(n, least=1)
        warn_all(far_sizes(sizes, [self]))
        table = data_frame({"n": whole_sizes(sizes), **self.band(sizes, interval, level=level, runs=runs)})
        kind = interval or self.default_interval
        table.attrs.update({"interval": kind, "level": level} | ({"runs": runs} if kind == "prediction" else {}))
        return table

    def band(
        self, n: ArrayLike, interval: str | None = None, *, level: float = 0.95, runs: float = 1
    ) -> dict[str, FloatArray]:
        """Return what :meth:`predict` tabulates, as arrays: error, low, high."""
        kind = interval or self.default_interval
        check_choice("interval", kind, INTERVALS)
        check_level(level)
        n = check_sizes_to_predict(n)
        if not isinstance(runs, int | float | np.number) or not runs > 0:
            raise InputError("must be positive: the number of new runs averaged.", argument="runs", value=runs)
        error, low, high = (self._scale.values(v) for v in self._answer_points(n, level, kind, runs))
        if self._scale.sign < 0:
            low, high = high, low
        return {"error": error, "low": low, "high": high}

    def samples_to_reach(self, error: float, *, level: float = 0.95) -> SamplesToReach:
        """Find how many training samples it takes to reach an error, given in the unit of the fit."""
        check_level(level)
        value = as_floats(error, "error")
        if value.ndim or not np.isfinite(value):
            raise InputError("must be one number in the unit of the fit: what to reach.", argument="error", value=error)
        target = float(self._scale.points(float(self.unit.errors(value, "error"))))
        crosses, low, high = _reach(self, target, level)
        floor, _ = bounds(self.unit, self._data.mean)
        never = 1.0 if target <= floor else self._probability_never(target)
        _, top = self._band_points(self.n, level, self.default_interval, np.inf)
        reached = self.n[(top < target) & (self._data.mean < target)]
        # As a median would be: infinite where never is more likely than ever.
        estimate = np.inf if never > 0.5 and np.isfinite(crosses) else crosses
        return SamplesToReach(
            learner=self.learner,
            error=float(error),
            estimate=estimate,
            low=low,
            high=max(high, estimate),
            level=level,
            probability_never=never,
            curve_reaches=crosses,
            kind=self.default_interval,
            unit=self.unit,
            reached_at=float(reached[0]) if len(reached) else None,
            _place=self._place,
            warnings=tuple(_reach_warnings(self, target, estimate, float(error))),
        )

    def budget(self, n: ArrayLike, *, cost_per_sample: float = 1.0, level: float = 0.95) -> pd.DataFrame:
        """Tabulate what more data would cost and bring, from the largest size measured.

        Returns
        -------
        DataFrame
            Columns n, added (samples), cost, error, low, high (the interval of the error there), gain (how much better
            than at the largest size measured), its interval gain_low, gain_high, and gain_per_cost.
        """
        if not isinstance(cost_per_sample, int | float | np.number) or not 0 <= cost_per_sample < np.inf:
            raise InputError("must be a price of 0 or more.", argument="cost_per_sample", value=cost_per_sample)
        sizes = check_sizes_to_predict(n, least=1)
        # Data that there are already cost nothing more.
        added = np.maximum(sizes - self.largest_n, 0.0)
        band = self.band(sizes, level=level, runs=np.inf)
        low, high = self._gain_band(sizes, level)
        gain = (self.error_at() - self.errors_at(sizes)) * self._scale.sign
        low, high = np.minimum(low, gain), np.maximum(high, gain)  # as in _answer_points
        if self.unit.bounded:  # at most all of the error can be gained
            top = self.interval_at(level=level).error.high
            low, gain, high = (np.clip(v, top - self.unit.top, top) for v in (low, gain, high))
        cost = added * cost_per_sample
        per_cost = np.divide(gain, cost, out=np.full_like(gain, np.nan), where=cost > 0)
        table = {"n": sizes, "added": added, "cost": cost, **band, "gain": gain}
        return data_frame({**table, "gain_low": low, "gain_high": high, "gain_per_cost": per_cost})

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw the curve with measurements and intervals, and return the Axes.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; a new figure by default.
        **options
            Those of :func:`curvewise.learning.plot_learning_curves`: x="log" (or "linear", "log-log", "sqrt"),
            at=N, predict=[sizes to mark], to=size to end at, reach=target, interval, level, held_out=(n, values),
            limit and legend.
        """
        return super().plot(ax, **options)

    def run_std_at(self, n: ArrayLike) -> FloatArray:
        """Standard deviation of one run at size n, see :class:`RunNoise`."""
        sizes = check_sizes_to_predict(n)
        return np.sqrt(self._run_noise.variance(sizes)) / self._scale.factor

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row: learner, N, e_N, β_N, γ where there is one, with intervals."""
        return {**estimate_columns([self]), "form": [self.form]}

    def to_dict(self) -> dict[str, Any]:
        """All of the result as plain Python values, intervals at the largest size included."""
        return {**super().to_dict(), "at_largest_n": plain(self.interval_at())}

    @cached_property
    def _run_noise(self) -> RunNoise:
        data, s0 = self._data, self.constants.sigma0_squared
        profile, level = self._profile, s0
        if isinstance(profile, Profile):
            return RunNoise(data, s0, None, level, 0.0)
        noise, freedom = profile.power.noise, float(data.freedom.sum())
        if data.replicated and noise is not None:
            relative = noise.relative_variance(data.n)[0]
            level = float((data.freedom * data.known_variance / relative).sum()) / freedom
        elif (freedom := float(profile.power.freedom[0])) >= 1:
            # Without replicates the noise is how far the sizes lie from the curve.
            level = float(profile.power.residual[0].min()) / freedom
        return RunNoise(data, s0, noise, level, max(freedom, 1.0))

    def _noise_of_mean(self, n: FloatArray, level: float, runs: float) -> FloatArray:
        """Variance in points² that gives a normal interval the width of the mean of new runs."""
        z = float(ndtri(0.5 + level / 2.0))
        return (self._run_noise.half_width(n, level) / z) ** 2 / runs

    def _not_surer_than_runs(
        self, n: FloatArray, level: float, noise: FloatArray, low: FloatArray, high: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Widen a prediction interval to the error that the runs measured leave, in points.

        Prediction intervals were calibrated on means of many runs. With few and noisy ones they held less than they
        claim at the sizes measured, where they could be narrower than a confidence interval of the power law. Its
        distances are the least there; beyond the largest size those at that size are.
        """
        if not self._data.replicated or len(self.n) < SHORTEST_PREFIX:
            return low, high
        measured = error_of(np.clip(n, self.n[0], self.largest_n))
        middle, ends = self._profile.estimate(measured), self._profile.interval(measured, level)
        centre, extra = self._error_points(n), float(ndtri(0.5 + level / 2.0)) * np.sqrt(noise)
        down, up = (np.hypot(np.abs(end - middle), extra) for end in ends)
        return np.fmin(low, centre - down), np.fmax(high, centre + up)

    def _clip(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Cut an interval off at what is possible; one that lies wholly below 0 says nothing."""
        floor, ceiling = bounds(self.unit, self._data.mean)
        void = high < floor
        low, high = np.where(void, floor, low), np.where(void, ceiling, high)
        return np.clip(low, floor, ceiling), np.clip(high, floor, ceiling)

    def _may_drop(self, n: FloatArray, low: FloatArray) -> FloatArray:
        """Let intervals of a curve still at chance reach down to the lowest possible error.

        Nothing measured tells when the error will leave chance, or how far it will fall.
        """
        floor, _ = bounds(self.unit, self._data.mean)
        if not self._at_chance or not np.isfinite(floor):
            return low
        return np.where(n > self.largest_n, floor, low)

    def _answer_points(
        self, n: FloatArray, level: float, interval: str, runs: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The curve at sizes n with its interval, in points.

        An interval by the likelihood need not hold a curve that the prior on γ has moved: it is extended to it.
        """
        curve = self._error_points(n)
        low, high = self._clip(*self._band_points(n, level, interval, runs))
        return curve, np.minimum(low, curve), np.maximum(high, curve)

    def _linear_interval(self, coefficients: Coefficients, level: float, kind: str) -> tuple[FloatArray, FloatArray]:
        """Interval, in points, of quantities that are linear in θ once γ is given."""
        return self._profile.interval(coefficients, level)

    def _linear_answer(
        self, coefficients: Coefficients, fitted: float, level: float, kind: str
    ) -> tuple[float, float, float]:
        """Estimate, low and high in points; the interval is extended as in :meth:`_answer_points`."""
        low, high = (float(end[0]) for end in self._linear_interval(coefficients, level, kind))
        return fitted, min(low, fitted), max(high, fitted)

    def _size(self, n: float | None) -> float:
        return self.largest_n if n is None else check_size(n, "n", infinite=True)

    def _say(self, interval: Interval) -> str:
        return format_interval(interval, self.unit.name)

    def readable(self) -> Mapping[str, Sequence[Any]]:
        """Return one row: learner, N, e_N, β_N and γ with their intervals."""
        return readable_estimates([self])

    def table_note(self) -> str:
        """Name the quantities and their intervals."""
        return note_on_estimates([self])


def estimate_columns(curves: Sequence[Curve], at: float | None = None) -> dict[str, Sequence[Any] | NDArray[Any]]:
    """Tabulate e_N and β_N with their intervals, and γ, one row per curve; N is each curve's own if None."""
    rows = [c.interval_at(at) for c in curves]
    table: dict[str, Sequence[Any] | NDArray[Any]] = {
        "learner": [c.learner for c in curves],
        "N": [as_count(r.n) for r in rows],
    }
    for name, field in {"e_N": "error", "beta_N": "data_reliance"}.items():
        intervals: list[Interval] = [getattr(r, field) for r in rows]
        table[name] = [i.estimate for i in intervals]
        table[f"{name}_low"] = [i.low for i in intervals]
        table[f"{name}_high"] = [i.high for i in intervals]
    return {**table, "gamma": [float(getattr(c, "gamma", np.nan)) for c in curves]}


def readable_estimates(
    curves: Sequence[Curve], at: float | None = None, level: float = 0.95, interval: str | None = None
) -> dict[str, list[Any]]:
    """Tabulate e_N, β_N and γ with their intervals as people read them, the best e_N of several in bold."""
    rows = [c.interval_at(at, level=level, interval=interval) for c in curves]
    gammas = [c.gamma_interval(level) if hasattr(c, "gamma_interval") else None for c in curves]
    unit = curves[0].unit.name if curves else ""
    errors = [r.error.estimate for r in rows]
    alike = len(curves) > 1 and len({r.n for r in rows}) == 1 and not np.isnan(errors).all()
    best = (np.nanmax(errors) if unit == "score" else np.nanmin(errors)) if alike else None
    table: dict[str, list[Any]] = {
        "learner": [c.learner for c in curves],
        "N": [as_count(r.n) for r in rows],
        # A prediction interval may be that of one new run, too: the heading says which.
        "e_N (mean of runs)" if rows and rows[0].error.kind == "prediction" else "e_N": [
            interval_cell(r.error, unit, bold=r.error.estimate == best) for r in rows
        ],
        "β_N": [interval_cell(r.data_reliance, unit) for r in rows],
    }
    if any(g is not None for g in gammas):
        table["γ"] = [
            Cell("–") if g is None else Cell(f"{g.estimate:.2f}", after=f" [{g.low:.2f}, {g.high:.2f}]") for g in gammas
        ]
    return table


def note_on_estimates(curves: Sequence[Curve], level: float = 0.95, interval: str | None = None) -> str:
    """Name the quantities of :func:`readable_estimates` and the kind and level of their intervals."""
    kinds = list(dict.fromkeys(interval or c.default_interval for c in curves))
    word = curves[0].unit.quantity if curves else "error"
    # The interval of β_N is by the power law, whatever the form; see interval_at.
    apart = "; β_N: confidence, of form power" if kinds == ["prediction"] else ""
    return (
        f"{word.capitalize()} e_N and data-reliance β_N ({format_level(level)} {' and '.join(kinds)} intervals{apart})"
    )


def check_curves(curves: Any) -> list[Curve]:
    """Return fitted curves as a list; refuse none, other things, and curves in different units."""
    chosen = [curves] if isinstance(curves, Curve) else list(curves)
    if not chosen:
        raise InputError("is empty: give at least one fitted curve.", argument="curves")
    for curve in chosen:
        if not isinstance(curve, Curve):
            what = f"holds a {type(curve).__name__}: give fitted curves, as made by cw.fit_learning_curve."
            raise InputError(what, argument="curves")
    if len({c.unit for c in chosen}) > 1:
        raise InputError("are in different units: fit all of them in the same unit.", argument="curves")
    return chosen


def check_size(n: float, argument: str, *, infinite: bool = False) -> float:
    """One training size as a float, or an error that names the argument."""
    if not isinstance(n, int | float | np.number) or not n > 0:
        raise InputError("must be a positive training size.", argument=argument, value=n)
    if np.isinf(n) and not infinite:
        raise InputError("must be finite.", argument=argument, value=n)
    return float(n)


def check_sizes_to_predict(n: ArrayLike, least: int = 0) -> FloatArray:
    """Training sizes as an array, or an error that names the argument."""
    try:
        sizes = np.atleast_1d(np.asarray(n, dtype=np.float64))
    except (TypeError, ValueError):
        raise InputError("must be one training size or a list of them.", argument="n", value=n) from None
    if sizes.ndim != 1 or len(sizes) < least or not (sizes > 0).all():
        raise InputError("must be one positive size or a list of them.", argument="n")
    return sizes


@dataclass(frozen=True, eq=False)
class LearningCurve(Curve):
    """A fitted extended power law.

    Attributes
    ----------
    alpha, eta, gamma, delta : float
        Asymptote α, coefficient η of n^γ, exponent γ, coefficient δ of n^2γ (0 where not fitted).
        Individually unstable; report e_N and β_N instead.
    weights : str
        The weighting scheme.
    parameters : int
        How many parameters were free.
    """

    alpha: float
    eta: float
    gamma: float
    delta: float
    weights: str
    parameters: int
    _points: tuple[float, float, float]

    @property
    def sigma_hat_squared(self) -> float:
        """σ̂² of the variance model σ² = σ0² + σ̂²/n, in the square of the unit."""
        return self._data.slope_variance(self.constants.sigma0_squared) / self._scale.factor**2

    @property
    def sigma0_squared(self) -> float:
        """σ0² in the square of the unit."""
        return self.constants.sigma0_squared / self._scale.factor**2

    @property
    def beyond(self) -> str:
        """The law that answers beyond the largest size measured follow, the same for every size and every question.

        "law": the fitted law. "constrained": the power law with α, η ≥ 0, scaled to go through the fitted error at the
        largest size. That is where the fitted law falls below what is possible, rises, or leaves its own 95% confidence
        interval, all of which the prior on γ can cause.
        """
        return "law" if self._continuation is None else "constrained"

    @property
    def asymptote(self) -> Interval:
        """Error with unlimited data and its 95% confidence interval: α, or the limit of what :attr:`beyond` names."""
        return self.interval_at(np.inf).error

    def gamma_interval(self, level: float = 0.95) -> Interval:
        """γ as fitted, with its confidence interval (both ends at γ when it was held fixed).

        The interval leaves the prior on γ out, and is extended to γ where the prior has moved that out of it.
        """
        check_level(level)
        low, high = (float(end[0]) for end in self._profile.gamma_interval(level))
        return Interval(self.gamma, min(low, self.gamma), max(high, self.gamma), level)

    def sentences(self) -> str:
        """A few sentences: e_N, β_N, what more data would bring, the fit."""
        at = self.interval_at()
        reach = EXTRAPOLATION_LIMIT * self.largest_n
        fit = f"{self._data.total} runs at {len(self.n)} sizes"
        if len(self.n) > self.parameters and np.isfinite(self.r_squared):
            fit += f", R² = {self.r_squared:.3f}"
        word = self.unit.quantity
        four = self._say(self.interval_at(reach).error)
        return (
            f"{self.learner}: at n = {format_number(self.largest_n)} the {word} is {self._say(at.error)}"
            f" (95% confidence interval) and the data-reliance is {self._say(at.data_reliance)}. With four times the"
            f" data (n = {format_number(reach)}) the predicted {word} is {four}."
            f" Fit: {self.form}, γ = {self.gamma:.2f}, {fit}."
        )

    @property
    def all_warnings(self) -> tuple[str, ...]:
        """The warnings of the fit and those that need intervals: of the prior on γ, of answers beyond the law."""
        return self.warnings_at(np.inf)

    def warnings_at(self, n: float) -> tuple[str, ...]:
        """Return the warnings that matter to the curve at size n; one is only about sizes beyond those measured."""
        beyond = n > self.largest_n
        text = "" if self._departure is None else not_followed(self._departure, self.largest_n, self.unit)
        found = [w for w in self.warnings if w != text]
        # Beyond the data, a law out of its interval has a warning of its own.
        if self._disagreement and not (beyond and self._departure == "outside"):
            found.append(self._disagreement)
        if self._edge and not (beyond and text):
            found.append(self._edge)
        return (*found, text) if text and beyond else tuple(found)

    def is_supported_at(self, n: float) -> bool:
        """Return False for a size at which the curve does not follow what was fitted; see :attr:`beyond`."""
        return n <= self.largest_n or self._departure is None

    def to_dict(self) -> dict[str, Any]:
        """All of the result as plain Python values, with :attr:`beyond` and intervals at the largest size."""
        return {**super().to_dict(), "beyond": self.beyond}

    def bootstrap(self, refits: int = 1000, *, rng: int | np.random.Generator = 0) -> PowerFits:
        """Refit data simulated from the fitted curve and its variance model.

        Every refit estimates σ̂² and γ anew.

        Returns
        -------
        PowerFits
            Parameters of each refit, in the unit of the fit.
        """
        data, draws = self._data, check_whole(refits, "refits", 1)
        spread = data.run_variance(self.constants.sigma0_squared)
        means = simulate(as_generator(rng), self._error_points(data.n), spread, data.runs, draws)
        points = fit_means(data.n, data.runs, *means, self.form, self.weights, self.constants)
        back = self._scale.sign / self._scale.factor
        alpha, eta, delta = (v * back for v in (points.alpha, points.eta, points.delta))
        return PowerFits(alpha, eta, delta, points.gamma, points.objective)

    @property
    def _terms(self) -> int:
        return FORMS[self.form][1]

    @property
    def _gamma_is_free(self) -> bool:
        return self.parameters > self._terms

    @cached_property
    def _profile(self) -> Profile | NoiseAverage:
        gammas = FINE_GRID if self._gamma_is_free else np.array([self.gamma])
        return profile_replicates(self._data, self.constants, gammas=gammas, terms=self._terms)

    def _error_points(self, n: FloatArray) -> FloatArray:
        law, last = self._law_points(n), float(self._law_points(np.array([self.largest_n]))[0])
        floor, ceiling = bounds(self.unit, self._data.mean)
        beyond = n > self.largest_n
        if beyond.any() or not floor <= last <= ceiling:
            onward = self._continuation
            if onward is not None:
                # A law that is impossible at the largest size itself is held at the value that stands in for it.
                floor, ceiling = (onward.value if last < floor else floor, onward.value if last > ceiling else ceiling)
                law = np.where(beyond, onward.predict(np.maximum(n, self.largest_n)), law)
        return np.clip(law, floor, ceiling)

    def _law_points(self, n: FloatArray) -> FloatArray:
        """The fitted law at sizes n, in points."""
        alpha, eta, delta = self._points
        x = n**self.gamma
        return np.asarray(alpha + eta * x + delta * x * x, dtype=np.float64)

    @cached_property
    def _departure(self) -> str | None:
        """Why answers beyond the largest size do not follow the fitted law; None where they do."""
        sizes = self.largest_n * np.append(np.geomspace(1.0, FARTHEST, 25), np.inf)
        law = self._law_points(sizes)
        floor, ceiling = bounds(self.unit, self._data.mean)
        slack = 1e-9 * (1.0 + np.abs(law))
        if is_below(self._points[0], floor):
            return "negative"
        if (np.diff(law) > slack[1:]).any():
            return "rising"
        low, high = self._clip(*self._linear_interval(error_of(sizes[1:]), 0.95, "confidence"))
        inside = (law[1:] >= low - slack[1:]) & (law[1:] <= high + slack[1:]) & (law[0] <= ceiling)
        return None if inside.all() else "outside"

    @cached_property
    def _disagreement(self) -> str:
        """Warn where the prior on γ moved an estimate out of the interval that the data alone give; else empty."""
        if not self._gamma_is_free or self.constants.prior == 0:
            return ""

        def is_outside(value: float | FloatArray, ends: tuple[FloatArray, FloatArray]) -> NDArray[np.bool_]:
            slack = 1e-6 * (1.0 + np.abs(value))
            return np.asarray((value < ends[0] - slack) | (value > ends[1] + slack))

        last, word = self.largest_n, self.unit.quantity
        sizes = self.n[
            is_outside(self._law_points(self.n), self._linear_interval(error_of(self.n), 0.95, "confidence"))
        ]
        reliance = self._linear_interval(reliance_of(last), 0.95, "confidence")
        moved = ["γ"] if is_outside(self.gamma, self._profile.gamma_interval(0.95)).any() else []
        moved += ["β_N"] if is_outside(self._reliance_points(last), reliance).any() else []
        moved += [f"the {word} at n = {', '.join(map(format_number, sizes))}"] if len(sizes) else []
        if not moved:
            return ""
        what = " and ".join([", ".join(moved[:-1]), moved[-1]] if len(moved) > 1 else moved)
        return Message(
            f"The prior on γ and the data disagree: the estimate of {what} is outside the 95% interval that the data"
            f" alone give, which is extended to it. Use {arg('form', 'auto')}."
        )

    @cached_property
    def _edge(self) -> str:
        """Warn where the prior on γ drew γ and β_N to the edge of what the data alone give; else empty."""
        if not self._gamma_is_free or self.constants.prior == 0 or self._disagreement:
            return ""

        def room(value: float, low: float, high: float) -> float:
            return min(value - low, high - value) / (high - low) if high > low else 1.0

        gamma, reliance = self.gamma_interval(), self.interval_at(interval="confidence").data_reliance
        # The prior draws γ to −½: from below to the upper end, from above to the lower one.
        drawn = self.gamma >= -0.5 if gamma.low + gamma.high > 2 * self.gamma else self.gamma <= -0.5
        if not drawn or gamma.width <= NARROW or max(room(*gamma), room(*reliance)) >= EDGE:
            return ""
        return Message(
            "The prior on γ draws the estimates of γ and β_N to the edge of their 95% intervals, which are those of the"
            f" data alone: values further inside describe the data better. Compare with {arg('form', 'auto')}."
        )

    @cached_property
    def _continuation(self) -> Continuation | None:
        """The curve beyond the largest size where that is not the fitted law."""
        if self._departure is None:
            return None
        data = self._data
        floor, ceiling = bounds(self.unit, data.mean)
        last = float(self._law_points(np.array([self.largest_n]))[0])
        stderr = data.standard_error(self.constants.sigma0_squared) if data.replicated else None
        possible = last if floor <= last <= ceiling else None
        return continue_curve(possible, data.n, data.mean, stderr, floor if np.isfinite(floor) else None)

    def _gain_band(self, n: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        low, high = self._profile.interval(gain_of(self.largest_n, n), level)
        return low / self._scale.factor, high / self._scale.factor

    def _likely_points(self, n: FloatArray) -> FloatArray:
        return self._profile.estimate(error_of(n))

    def _reliance_points(self, n: float) -> float:
        if n > self.largest_n and (onward := self._continuation) is not None:
            return -2.0 * onward.slope(n)
        _, eta, delta = self._points
        x = n**self.gamma
        return float(-2.0 * self.gamma * (eta * x + 2.0 * delta * x * x))

    def _band_points(self, n: FloatArray, level: float, interval: str, runs: float) -> tuple[FloatArray, FloatArray]:
        if interval == "prediction":
            noise = self._noise_of_mean(n, level, runs)
            ends = bounds(self.unit, self._data.mean)
            floor, ceiling = (v if np.isfinite(v) else None for v in ends)
            low, high = power_interval(self._data, self._error_points, n, level, noise, floor, ceiling)
            low, high = self._not_surer_than_runs(n, level, noise, low, high)
        else:
            low, high = self._linear_interval(error_of(n), level, interval)
        return (low if interval == "conditional" else self._may_drop(n, low)), high

    def _probability_never(self, target: float) -> float:
        if self._at_chance:
            return float("nan")  # a power law says nothing about when a curve leaves chance
        # Never to reach it, the error must lie above it both today and with all the data that are searched.
        sizes = (FARTHEST * self.largest_n, self.largest_n)
        return min(float(self._profile.probability_above(error_of(n), target)[0]) for n in sizes)

    def _linear_interval(self, coefficients: Coefficients, level: float, kind: str) -> tuple[FloatArray, FloatArray]:
        if kind == "confidence":
            return super()._linear_interval(coefficients, level, kind)
        basis, theta, covariance = self._conditional
        c = coefficients(basis, np.array([self.gamma]))[:, 0]
        half = ndtri(0.5 + level / 2.0) * np.sqrt(np.einsum("ti,ij,tj->t", c, covariance, c))
        return c @ theta - half, c @ theta + half

    @cached_property
    def _conditional(self) -> tuple[Basis, FloatArray, FloatArray]:
        """θ̂ = M e and its covariance M Σ_e Mᵀ at the fitted γ, as in the paper's Eq. 3."""
        data, gamma = self._data, np.array([self.gamma])
        basis = Basis(float(np.log(data.n).mean()), self._terms)
        x = basis.error(data.n, gamma)[:, 0]
        variance = data.run_variance(self.constants.sigma0_squared)
        root = np.sqrt(size_weights(self.weights, data.runs, variance))
        m = np.linalg.pinv(root[:, None] * x) * root
        return basis, m @ data.mean, (m * (variance / data.runs)) @ m.T


@dataclass(frozen=True)
class SamplesToReach(Result):
    """Samples that it takes to reach an error.

    Attributes
    ----------
    learner : str
    error : float
        The target, in the unit of the fit.
    estimate : float
        Training size at which the curve reaches it; infinite if it never does, or if ``probability_never`` is above
        one half.
    low, high : float
        Interval of that size: the sizes at which the target lies inside the interval of the curve.
    level : float
        Its coverage.
    probability_never : float
        Confidence that a million times the data is not enough; for the forms made to extrapolate, that a thousand
        times the data is not.
    kind : str
        "confidence" or "prediction".
    reached_at : float or None
        Smallest size measured at which the interval of the curve lies below the target, so that it is reached already.
    curve_reaches : float
        Training size at which the fitted curve reaches the target, whatever the probability of never.
    """

    learner: str
    error: float
    estimate: float
    low: float
    high: float
    level: float
    probability_never: float
    kind: str
    unit: Unit
    reached_at: float | None = None
    curve_reaches: float = np.nan
    warnings: tuple[str, ...] = ()
    _place: int | None = None

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row: the target, the size, its interval, the probability of never."""
        row = {"learner": self.learner, "error": self.error, "n": self.estimate, "low": self.low, "high": self.high}
        return {name: [value] for name, value in {**row, "probability_never": self.probability_never}.items()}

    def readable(self) -> Mapping[str, Sequence[Any]]:
        """Return the row with sizes in the same digits as in the sentences."""
        size = "–" if np.isnan(self.estimate) else format_size(self.estimate)
        ends = "" if np.isnan(self.low) else f" [{format_size(self.low)}, {format_size(self.high)}]"
        return {**super().readable(), "n": [Cell(size, after=ends)]}

    def table_note(self) -> str:
        """Name the kind and level of the interval."""
        target = format_target(self.error, self.unit.name)
        return f"Training examples needed for {target} ({format_level(self.level)} {self.kind} interval)"

    def sentences(self) -> str:
        """One or two sentences."""
        target = format_target(self.error, self.unit.name)
        span = f"{format_level(self.level)} {self.kind} interval {format_size(self.low)} to {format_size(self.high)}"
        if np.isinf(self.low):
            span = f"no size searched is in the {format_level(self.level)} {self.kind} interval"
        never, curve = self.probability_never, self.curve_reaches
        if np.isnan(self.estimate):
            text = f"{self.learner}: no training size can be named for {target}."
        elif np.isfinite(self.estimate):
            size = format_size(self.estimate)
            text = f"{self.learner}: the fitted curve reaches {target} at about n = {size} ({span})."
        elif np.isfinite(curve) and never > 0.5:
            side = "below" if self.unit.name == "score" else "above"
            text = f"{self.learner}: {target} is probably never reached ({span}): the fitted curve gets there at n ="
            return f"{text} {format_size(curve)}, but the chance that it levels off {side} is {format_chance(never)}."
        else:
            text = f"{self.learner}: the fitted curve never reaches {target} ({span})."
        if self.reached_at is not None:
            text += f" It is already reached at n = {format_number(self.reached_at)}, which was measured."
        elif np.isinf(self.estimate) and never <= 0.5:
            text += f" But the intervals leave a chance of {format_chance(1 - never)} that it is reached."
        elif np.isfinite(never):
            text += f" The chance that it is never reached is {format_chance(never)}."
        return text


def whole_sizes(n: FloatArray) -> NDArray[Any]:
    """Return training sizes as integers if all of them are.

    >>> whole_sizes(np.array([400.0, 800.0])), whole_sizes(np.array([0.5]))
    (array([400, 800]), array([0.5]))
    """
    whole = bool((n < 2**53).all()) and bool((np.mod(n, 1.0) == 0).all())  # larger ones are no exact floats
    return n.astype(np.int64) if whole else n


def far_sizes(n: FloatArray, curves: Sequence[Curve]) -> Iterator[str]:
    """Warn of sizes below those measured, and of sizes so far beyond them that the paper trusts no curve (§4.2)."""
    smallest, largest = max(c.n[0] for c in curves), min(c.largest_n for c in curves)
    if n.min() < smallest:
        text = f"n = {format_number(float(n.min()))} is below the smallest size measured ({format_number(smallest)})"
        yield f"{text}: intervals hold less often there than they claim."
    if n.max() > EXTRAPOLATION_LIMIT * largest:
        text = f"n = {format_number(float(n.max()))} is more than four times the largest size measured"
        yield f"{text}: the form may not hold there."


def _reach(curve: Curve, target: float, level: float) -> tuple[float, float, float]:
    """Size at which the curve comes down to the target, and the sizes at which it may."""
    start = max(min(1.0, float(curve.n[0])), float(curve.n[0]) / 1e3)
    # 401 sizes over nine decades: 45 for each, between which bisection finds the size itself.
    grid = np.geomspace(start, curve.largest_n * FARTHEST, 401)
    grid = grid[rising_below(curve, grid) :]
    # The most likely curve, without the prior on γ, decides whether error falls at all.
    first, last = curve._likely_points(np.array([curve.n[0], curve.largest_n]))
    if last > first:
        # A rising curve comes up to a target, not down; no size can be named.
        return (np.nan, np.nan, np.nan) if first <= target else (np.inf, np.inf, np.inf)
    if target <= bounds(curve.unit, curve._data.mean)[0]:
        return np.inf, np.inf, np.inf

    def above(n: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        error, low, high = curve._answer_points(n, level, curve.default_interval, np.inf)
        return error - target, low - target, high - target

    low, high = crossing_interval(above, grid)
    # The target may enter the band beyond the grid: then only a lower bound is known.
    if np.isinf(low) and above(np.array([1e3 * grid[-1]]))[1][0] <= 0:
        low = float(grid[-1])
    exact = _solve(curve._error_points, grid, target)
    return float(np.clip(exact, low, high)) if low <= high else exact, low, high  # a root by two routes


def rising_below(curve: Curve, n: FloatArray) -> int:
    """Count the sizes n, in rising order, before the peak that a curve may have below the smallest size measured.

    A law with δ may rise there from 0, and has every error a first time at a size that means nothing.
    """
    error = curve._error_points(n[n <= curve.n[0]])
    return int(np.argmax(error >= error.max() - 1e-9)) if len(error) else 0


def _solve(at: Callable[[FloatArray], FloatArray], grid: FloatArray, target: float) -> float:
    """First size at which a curve is at the target, by bisection in log n."""
    reached = np.flatnonzero(at(grid) <= target)
    if len(reached) == 0:
        return float("inf")
    if reached[0] == 0:
        return float(grid[0])
    low, high = np.log(grid[int(reached[0]) - 1 :][:2])
    # Fifty halvings of a step of the grid reach the precision of a float.
    for _ in range(50):
        middle = 0.5 * (low + high)
        below = float(at(np.exp([middle]))[0]) <= target
        low, high = (low, middle) if below else (middle, high)
    return float(np.exp(high))


def _reach_warnings(curve: Curve, target: float, estimate: float, error: float) -> Iterator[str]:
    limit, unit = EXTRAPOLATION_LIMIT * curve.largest_n, curve.unit
    lowest, top = float(curve._data.mean.min()), float(curve._data.mean.max())
    if unit.name == "percent" and 0 < error < 0.1 * lowest and 100 * error <= top:
        more = f"{100 * error:g}"
        yield f"{error:g} is read as {error:g}%, far below every error measured: for {more}% ask for {more}."
    if target <= bounds(unit, curve._data.mean)[0]:
        yield f"a curve never reaches an error of {error:g}, it can only come close: ask for a target above it."
    if np.isnan(estimate):
        rises = "falls" if unit.name == "score" else "rises"
        yield f"{unit.quantity} {rises} with more data here: no size can be named."
    if limit < estimate < np.inf:
        yield (
            f"n = {format_size(estimate)} lies beyond four times the largest size measured ({format_number(limit)}),"
            " where the data do not support the form of the curve."
        )
    if target >= top and unit.bounded:
        yield (
            "every size measured is better than this already; targets are errors, so for an"
            f" accuracy of 95% ask for {0.05 * unit.top:g}."
        )
    elif estimate < curve.n[0]:
        yield "this lies below the smallest size measured."
