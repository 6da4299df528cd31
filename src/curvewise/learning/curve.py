"""Fit one learning curve: the extended power law of Hoiem et al. 2021, with intervals that cover."""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.learning.base import EXTRAPOLATION_LIMIT, Curve, CurveIntervals, check_level
from curvewise.learning.prediction import power_interval
from curvewise.learning.diagnose import diagnose, near_chance
from curvewise.learning.ensemble import ENSEMBLE_FORMS, EnsembleCurve
from curvewise.learning.power import FORMS, Constants, PowerFits, fit_replicates, size_weights
from curvewise.learning.profile import FINE_GRID, Basis, Profile, profile_replicates
from curvewise.learning.replicates import Replicates, from_means, group_runs
from curvewise.learning.units import Scale, bounds, scale_for
from curvewise.types import FloatArray, Interval, Unit, number


def fit_learning_curve(
    n: ArrayLike,
    error: ArrayLike,
    *,
    unit: str = "fraction",
    higher_is_better: bool = False,
    form: str = "power",
    weights: str = "size",
    largest: int | None = None,
    chance: float | None = None,
    runs: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    learner: str = "learner",
    constants: Constants = Constants(),  # noqa: B008 (frozen)
) -> LearningCurve | EnsembleCurve:
    """Fit e(n) = α + η n^γ, or another form, to errors measured at several training sizes.

    Parameters
    ----------
    n, error : array_like, shape (runs,)
        Training size and error of each run. Repeat a size for replicates.
    unit : {"fraction", "percent", "loss", "score"}
        What the values are. Every number comes back in this unit.
    higher_is_better : bool
        The values are accuracies (turned into errors) or, with unit="score", scores.
    form : str
        "power" (the paper's), "sqrt" (γ = −½), "power2" and "sqrt2" (the same with δ n^2γ), or one
        of the extrapolators "auto", "constrained" (α, η ≥ 0) and "last" (carry the last mean).
    weights : {"size", "run", "none"}
        Weight of a run: 1/(F σ²), 1/σ², or 1.
    largest : int, optional
        Use only this many of the largest sizes; the paper's light design is form="sqrt", largest=3.
    chance : float, optional
        Value of a blind guess, in the unit given (an accuracy with higher_is_better); sizes near
        it are flagged, and it caps the extrapolators.
    runs, variance : array_like, optional
        When ``error`` already holds means: over how many runs, and their variance at ddof 1.
    learner : str
        Name for legends and sentences.
    constants : Constants
        The paper's λ and σ0², in percentage points; or a γ to hold fixed.

    Returns
    -------
    LearningCurve or EnsembleCurve
        The second for the forms "auto", "constrained" and "last".

    References
    ----------
    Hoiem, Gupta, Li and Shlapentokh-Rothman, Learning Curves for Analysis of Deep Networks, 2021.

    Examples
    --------
    >>> n = [100, 100, 200, 200, 400, 400, 800]
    >>> curve = fit_learning_curve(n, [.32, .30, .24, .25, .19, .18, .15], unit="fraction")
    >>> round(curve.error_at(800), 3), round(curve.data_reliance_at(800), 3)
    (0.146, 0.083)
    """
    kind = Unit(unit, higher_is_better)
    values = kind.errors(error)
    if runs is None and variance is not None:
        raise InputError("variance needs runs=: over how many runs each mean was taken.")
    data = group_runs(n, values) if runs is None else from_means(n, values, runs, variance)
    if largest is not None:
        if largest < 1:
            raise InputError(f"largest={largest} must be at least 1: how many sizes to use.")
        data = data.only(slice(-largest, None))
    guess = None if chance is None else float(kind.errors(chance, "chance"))
    curve = build_curve(
        data, kind, form=form, weights=weights, learner=learner, constants=constants, chance=guess
    )
    for message in curve.warnings:
        python_warnings.warn(message, CurvewiseWarning, stacklevel=2)
    return curve


def build_curve(
    data: Replicates,
    unit: Unit,
    *,
    form: str = "power",
    weights: str = "size",
    learner: str = "learner",
    constants: Constants = Constants(),  # noqa: B008 (frozen)
    chance: float | None = None,
    notes: tuple[str, ...] = (),
) -> LearningCurve | EnsembleCurve:
    """Fit a curve to grouped runs given in ``unit``; warnings are kept on the result only."""
    check_form(form)
    scale = scale_for(unit, data.mean)
    points = to_points(data, scale)
    guess = None if chance is None else float(scale.points(chance))
    notes = (*notes, *_notes(unit, data, scale))
    if form in ENSEMBLE_FORMS:
        return EnsembleCurve.fit(
            points,
            unit,
            scale,
            form=form,
            learner=learner,
            notes=notes,
            constants=constants,
            chance=guess,
        )
    fits = fit_replicates(points, form, weights, constants)
    theta = tuple(float(a[0]) for a in (fits.alpha, fits.eta, fits.delta, fits.gamma))
    curve = wrap_fit(points, theta, unit, scale, form, weights, learner, constants, notes)
    if guess is None:
        return curve
    return replace(curve, warnings=(*curve.warnings, *near_chance(points, guess)))


def check_form(form: str) -> None:
    """Raise unless the form is known."""
    known = (*FORMS, *ENSEMBLE_FORMS)
    if form not in known:
        raise InputError(f"form={form!r} is not known: use one of {', '.join(map(repr, known))}.")


def to_points(data: Replicates, scale: Scale) -> Replicates:
    """Grouped runs from the user's unit to points."""
    return Replicates(data.n, data.runs, scale.points(data.mean), data.variance * scale.factor**2)


def wrap_fit(
    points: Replicates,
    theta: tuple[float, ...],
    unit: Unit,
    scale: Scale,
    form: str,
    weights: str,
    learner: str,
    constants: Constants,
    notes: tuple[str, ...],
) -> LearningCurve:
    """Make the result out of fitted (α, η, δ, γ) in points."""
    alpha, eta, delta, gamma = theta
    x = points.n**gamma
    fitted = alpha + eta * x + delta * x * x
    free, terms = FORMS[form]
    parameters = terms + int(free and constants.gamma is None)
    found = diagnose(
        points,
        fitted,
        gamma=gamma,
        parameters=parameters,
        sigma0_squared=constants.sigma0_squared,
    )
    if alpha < bounds(unit, points.mean)[0]:
        found = (
            *found,
            f"The asymptote α = {number(scale.value(alpha))} is below 0, which cannot be: the fit"
            " describes the sizes measured but should not be extrapolated. Use form='auto'.",
        )
    return LearningCurve(
        learner=learner,
        form=form,
        unit=unit,
        n=points.n,
        runs=points.runs,
        mean=scale.values(points.mean),
        variance=points.variance / scale.factor**2,
        warnings=found,
        notes=notes,
        constants=constants,
        _data=points,
        _scale=scale,
        alpha=scale.value(alpha),
        eta=scale.value(eta),
        gamma=gamma,
        delta=scale.value(delta),
        weights=weights,
        parameters=parameters,
        r_squared=_r_squared(points.mean, fitted),
        _points=(alpha, eta, delta),
    )


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
    r_squared : float
        Of the size means about the curve.
    """

    alpha: float
    eta: float
    gamma: float
    delta: float
    weights: str
    parameters: int
    r_squared: float
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
    def asymptote(self) -> Interval:
        """α with its 95% confidence interval."""
        return self.interval_at(np.inf).error

    def gamma_interval(self, level: float = 0.95) -> Interval:
        """γ with its confidence interval (both ends at γ when it was held fixed)."""
        low, high = self._profile.gamma_interval(level)
        return Interval(self.gamma, float(low[0]), float(high[0]), level)

    def interval_at(
        self, n: float | None = None, *, level: float = 0.95, interval: str | None = None
    ) -> CurveIntervals:
        """e_N, β_N and e_N − β_N with their intervals.

        Parameters
        ----------
        n : float, optional
            N; the largest size by default. ``inf`` gives the asymptote.
        level : float
            Coverage.
        interval : {"confidence", "prediction", "conditional"}, optional
            Kind of the interval of e_N. The other two quantities have confidence intervals, or
            conditional ones when that is asked for.
        """
        check_level(level)
        size = self._size(n)
        kind = interval or "confidence"
        other = "conditional" if kind == "conditional" else "confidence"
        low, high = self._clip(*self._band_points(np.array([size]), level, kind, 1))
        error, reliance = self._error_points(np.array([size])), self._reliance_points(size)
        beta = self._linear_interval(self._reliance_row(size), level, other)
        large = self._linear_interval(self._large_row(size), level, other)
        ends, amount = self._scale.ends, self._scale.amount
        large_low, large_high = self._clip(large[0], large[1])
        return CurveIntervals(
            n=size,
            error=Interval(
                self._scale.value(error[0]), *ends(float(low[0]), float(high[0])), level, kind
            ),
            data_reliance=Interval(
                amount(reliance), amount(float(beta[0][0])), amount(float(beta[1][0])), level, other
            ),
            large_sample=Interval(
                self._scale.value(error[0] - reliance),
                *ends(float(large_low[0]), float(large_high[0])),
                level,
                other,
            ),
        )

    def summary(self) -> str:
        """A few sentences: e_N, β_N, what more data would bring, the fit, the warnings."""
        at = self.interval_at()
        reach = EXTRAPOLATION_LIMIT * self.largest_n
        four = self.interval_at(reach).error
        word = self.unit.name if self.unit.name in ("loss", "score") else "error"
        text = (
            f"{self.learner}: at n = {number(self.largest_n)} the {word} is {self._say(at.error)}"
            f" (95% confidence) and the data-reliance is {self._say(at.data_reliance)}. With four"
            f" times the data (n = {number(reach)}) the fitted curve gives {self._say(four)}. Fit:"
            f" {self.form}, γ = {self.gamma:.2f}, {self._data.total} runs at {len(self.n)} sizes,"
            f" R² = {self.r_squared:.3f}."
        )
        return " ".join([text, *(f"Beware: {w}" for w in self.all_warnings)])

    @property
    def all_warnings(self) -> tuple[str, ...]:
        """The warnings of the fit, and one for each estimate that lies outside its interval."""
        at = self.interval_at()
        pulled = {
            "e_N": at.error,
            "β_N": at.data_reliance,
            "the asymptote": self.interval_at(np.inf).error,
        }
        outside = [name for name, interval in pulled.items() if interval.outside]
        if not outside:
            return self.warnings
        return (
            *self.warnings,
            f"The estimate of {', '.join(outside)} lies outside its own 95% interval: the prior on γ"
            " or a bound pulls the fit away from what the data alone say.",
        )

    def bootstrap(self, refits: int = 1000, *, rng: int | np.random.Generator = 0) -> PowerFits:
        """Refit data simulated from the fitted curve and its variance model.

        Every refit estimates σ̂² and γ anew.

        Returns
        -------
        PowerFits
            Parameters of each refit, in the unit of the fit.
        """
        from curvewise.learning.bootstrap import parametric_refits

        points = parametric_refits(self, refits, rng)
        back = self._scale.sign / self._scale.factor
        return PowerFits(
            points.alpha * back,
            points.eta * back,
            points.delta * back,
            points.gamma,
            points.objective,
        )

    @property
    def _terms(self) -> int:
        return FORMS[self.form][1]

    @property
    def _gamma_is_free(self) -> bool:
        return self.parameters > self._terms

    @cached_property
    def _profile(self) -> Profile:
        gammas = FINE_GRID if self._gamma_is_free else np.array([self.gamma])
        return profile_replicates(
            self._data, self.constants.sigma0_squared, gammas=gammas, terms=self._terms
        )

    def _error_points(self, n: FloatArray) -> FloatArray:
        alpha, eta, delta = self._points
        x = n**self.gamma
        return np.asarray(alpha + eta * x + delta * x * x, dtype=np.float64)

    def _reliance_points(self, n: float) -> float:
        _, eta, delta = self._points
        x = n**self.gamma
        return float(-2.0 * self.gamma * (eta * x + 2.0 * delta * x * x))

    def _band_points(
        self, n: FloatArray, level: float, interval: str, runs: float
    ) -> tuple[FloatArray, FloatArray]:
        if interval == "prediction":
            noise = self._run_variance(n) / runs
            return power_interval(self._data, self._error_points, n, level, noise)
        return self._linear_interval(lambda basis, g: basis.error(n, g), level, interval)

    def _probability_never(self, target: float) -> float:
        floor, _ = bounds(self.unit, self._data.mean)
        if target <= floor:
            return 1.0
        p = self._profile
        return float(p.probability_above(p.basis.error(np.inf, p.gammas), target)[0])

    def _reliance_row(self, n: float) -> _Coefficients:
        return lambda basis, gammas: basis.reliance(n, gammas)

    def _large_row(self, n: float) -> _Coefficients:
        return lambda basis, gammas: basis.error(n, gammas) - basis.reliance(n, gammas)

    def _linear_interval(
        self, coefficients: _Coefficients, level: float, kind: str
    ) -> tuple[FloatArray, FloatArray]:
        """Interval, in points, of quantities that are linear in θ once γ is given."""
        if kind == "confidence":
            p = self._profile
            return p.interval(coefficients(p.basis, p.gammas), level)
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
        variance = self._run_variance(data.n)
        root = np.sqrt(size_weights(self.weights, data.runs, variance))
        m = np.linalg.pinv(root[:, None] * x) * root
        return basis, m @ data.mean, (m * (variance / data.runs)) @ m.T


_Coefficients = Callable[[Basis, FloatArray], FloatArray]


def _r_squared(mean: FloatArray, fitted: FloatArray) -> float:
    total = float(((mean - mean.mean()) ** 2).sum())
    return 1.0 - float(((mean - fitted) ** 2).sum()) / total if total > 0 else float("nan")


def _notes(unit: Unit, data: Replicates, scale: Scale) -> tuple[str, ...]:
    notes = []
    if unit.bounded and unit.higher_is_better:
        notes.append(f"Accuracies were turned into errors: error = {unit.top:g} − accuracy.")
    if not unit.bounded:
        notes.append(
            f"The paper's constants hold for percentages: the {unit.name} was multiplied by"
            f" {number(scale.factor)} so that its largest mean is 100 points."
        )
    if unit.name == "percent" and float(data.mean.max()) <= 1.0:
        notes.append("No error is above 1%: if these are fractions, pass unit='fraction'.")
    return tuple(notes)
