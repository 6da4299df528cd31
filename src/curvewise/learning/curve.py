"""A fitted extended power law and what it says, with intervals that cover."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from curvewise.learning.base import (
    EXTRAPOLATION_LIMIT,
    Curve,
    CurveIntervals,
    check_interval,
)
from curvewise.learning.calibration import power_interval
from curvewise.learning.power import FORMS, PowerFits, size_weights
from curvewise.learning.profile import (
    FINE_GRID,
    Basis,
    Coefficients,
    NoiseAverage,
    Profile,
    error_of,
    gain_of,
    large_sample_of,
    profile_replicates,
    reliance_of,
)
from curvewise.learning.units import bounds
from curvewise.tables import number
from curvewise.types import FloatArray, Interval, check_level


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
    def asymptote(self) -> Interval:
        """α with its 95% confidence interval."""
        return self.interval_at(np.inf).error

    def gamma_interval(self, level: float = 0.95) -> Interval:
        """γ as fitted, with its confidence interval (both ends at γ when it was held fixed).

        The interval leaves the prior on γ out, and γ as fitted may lie outside it.
        """
        check_level(level)
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
        check_interval(kind)
        other = "conditional" if kind == "conditional" else "confidence"
        low, high = self._clip(*self._band_points(np.array([size]), level, kind, np.inf))
        fitted, reliance = (
            float(self._error_points(np.array([size]))[0]),
            self._reliance_points(size),
        )
        error = float(self._answer_points(np.array([size]), low, high)[0])
        beta, *beta_ends = self._linear_answer(reliance_of(size), reliance, level, other)
        large, *large_ends = self._linear_answer(
            large_sample_of(size), fitted - reliance, level, other
        )
        value, ends, amount = self._scale.value, self._scale.ends, self._scale.amount
        return CurveIntervals(
            n=size,
            error=Interval(value(error), *ends(float(low[0]), float(high[0])), level, kind),
            data_reliance=Interval(
                amount(beta), amount(beta_ends[0]), amount(beta_ends[1]), level, other
            ),
            large_sample=Interval(value(large), *ends(*large_ends), level, other),
        )

    def summary(self) -> str:
        """A few sentences: e_N, β_N, what more data would bring, the fit, the warnings."""
        at = self.interval_at()
        reach = EXTRAPOLATION_LIMIT * self.largest_n
        four = self.interval_at(reach).error
        fit = f"{self._data.total} runs at {len(self.n)} sizes"
        if len(self.n) > self.parameters and np.isfinite(self.r_squared):
            fit += f", R² = {self.r_squared:.3f}"
        word = self.unit.name if self.unit.name in ("loss", "score") else "error"
        text = (
            f"{self.learner}: at n = {number(self.largest_n)} the {word} is {self._say(at.error)}"
            f" (95% confidence) and the data-reliance is {self._say(at.data_reliance)}. With four"
            f" times the data (n = {number(reach)}) it is {self._say(four)} if the fitted form"
            f" holds. Fit: {self.form}, γ = {self.gamma:.2f}, {fit}."
        )
        return " ".join([text, *(f"Beware: {w}" for w in self.all_warnings)])

    @property
    def all_warnings(self) -> tuple[str, ...]:
        """The warnings of the fit, and one for each estimate that lies outside its interval."""
        at, size = self.interval_at(), self.largest_n
        fitted = {
            "γ": (self.gamma, self.gamma_interval()),
            "e_N": (self.error_at(), at.error),
            "β_N": (self.data_reliance_at(), at.data_reliance),
            "e_N − β_N": (float(self.linearised_at(np.inf, size)[0]), at.large_sample),
            "the asymptote": (self.alpha, self.interval_at(np.inf).error),
        }
        outside = [
            name for name, (value, i) in fitted.items() if replace(i, estimate=value).outside
        ]
        if not outside:
            return self.warnings
        return (
            *self.warnings,
            f"The fitted value of {', '.join(outside)} lies outside its own 95% interval: the prior"
            " on γ or a bound pulls the fit away from what the data alone say. The most likely"
            " value is shown instead where there is one.",
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
    def _profile(self) -> Profile | NoiseAverage:
        return profile_replicates(
            self._data,
            self.constants.sigma0_squared,
            gammas=FINE_GRID if self._gamma_is_free else np.array([self.gamma]),
            terms=self._terms,
            only_paper=self.constants.noise == "paper",
        )

    def _error_points(self, n: FloatArray) -> FloatArray:
        alpha, eta, delta = self._points
        x = n**self.gamma
        return np.asarray(alpha + eta * x + delta * x * x, dtype=np.float64)

    def _gain_band(self, n: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        low, high = self._profile.interval(gain_of(self.largest_n, n), level)
        return low / self._scale.factor, high / self._scale.factor

    def _likely_points(self, n: FloatArray) -> FloatArray:
        return self._profile.estimate(error_of(n))

    def _reliance_points(self, n: float) -> float:
        _, eta, delta = self._points
        x = n**self.gamma
        return float(-2.0 * self.gamma * (eta * x + 2.0 * delta * x * x))

    def _band_points(
        self, n: FloatArray, level: float, interval: str, runs: float
    ) -> tuple[FloatArray, FloatArray]:
        if interval == "prediction":
            noise = self._noise_of_mean(n, level, runs)
            ends = bounds(self.unit, self._data.mean)
            floor, ceiling = (v if np.isfinite(v) else None for v in ends)
            low, high = power_interval(
                self._data, self._error_points, n, level, noise, floor, ceiling
            )
        else:
            low, high = self._linear_interval(error_of(n), level, interval)
        return (low if interval == "conditional" else self._may_drop(n, low)), high

    def _probability_never(self, target: float) -> float:
        if self._at_chance:
            return float("nan")  # a power law says nothing about when a curve leaves chance
        # Never to reach it, both the asymptote and the error today must lie above it.
        above = [
            float(self._profile.probability_above(error_of(n), target)[0])
            for n in (np.inf, self.largest_n)
        ]
        return min(above)

    def _linear_interval(
        self, coefficients: Coefficients, level: float, kind: str
    ) -> tuple[FloatArray, FloatArray]:
        """Interval, in points, of quantities that are linear in θ once γ is given."""
        if kind == "confidence":
            return self._profile.interval(coefficients, level)
        basis, theta, covariance = self._conditional
        c = coefficients(basis, np.array([self.gamma]))[:, 0]
        half = ndtri(0.5 + level / 2.0) * np.sqrt(np.einsum("ti,ij,tj->t", c, covariance, c))
        return c @ theta - half, c @ theta + half

    def _linear_answer(
        self, coefficients: Coefficients, fitted: float, level: float, kind: str
    ) -> tuple[float, float, float]:
        """Estimate, low and high in points: the fitted value, or the most likely where outside."""
        low, high = (float(end[0]) for end in self._linear_interval(coefficients, level, kind))
        if Interval(fitted, low, high).outside:
            fitted = float(self._profile.estimate(coefficients)[0])
        return fitted, low, high

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
