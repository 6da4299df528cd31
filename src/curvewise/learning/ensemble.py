"""Extrapolation by an ensemble of forms, with prediction intervals calibrated on real curves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from curvewise.errors import InputError
from curvewise.learning.calibration import ensemble_interval
from curvewise.learning.curve import EXTRAPOLATION_LIMIT, Curve
from curvewise.learning.extrapolation import SHORTEST_PREFIX, LawEnsemble, fit_ensemble, fit_member
from curvewise.learning.power import GroupedRuns, bounds
from curvewise.learning.profile import NoiseAverage, Profile, large_sample_of, profile_replicates, reliance_of
from curvewise.stats.intervals import excluded_level
from curvewise.text import arg, format_number
from curvewise.types.units import FloatArray, Unit

ENSEMBLE_FORMS = ("auto", "constrained", "last")
"""Forms made to extrapolate: the ensemble, the power law with α, η ≥ 0, the last mean carried."""


@dataclass(frozen=True, eq=False)
class EnsembleCurve(Curve):
    """A curve made to extrapolate.

    Its intervals are prediction intervals calibrated on real learning curves; it has no confidence
    intervals, because it supposes no form that could be true. One or two sizes are not fitted:
    their means are joined and the last one is carried forward. Beyond a largest size that is still
    within a tenth of chance, intervals reach down to the lowest possible error.

    Attributes
    ----------
    members : dict of str to float
        Weight of each form in the ensemble.
    rolling_error : dict of str to float
        What each form erred, relatively, when it predicted the later of the measured sizes from
        the earlier ones; NaN where there were too few sizes.
    """

    members: dict[str, float]
    rolling_error: dict[str, float]
    _ensemble: LawEnsemble

    @property
    def default_interval(self) -> str:
        """Always "prediction"."""
        return "prediction"

    def sentences(self) -> str:
        """A few sentences: the error now, at twice and at four times the data."""
        word = self.unit.name if self.unit.name in ("loss", "score") else "error"
        now, twice, four = (
            self._say(self.interval_at(k * self.largest_n).error) for k in (1.0, 2.0, EXTRAPOLATION_LIMIT)
        )
        best = sorted(self.members, key=lambda m: -self.members[m])[:3]
        fitted = len(self.n) >= SHORTEST_PREFIX or self.form == "last"
        how = f"led by {', '.join(best)}" if fitted else "the means are joined, no law is fitted"
        return (
            f"{self.learner}: at n = {format_number(self.largest_n)} the {word} is {now}; with twice the"
            f" data it is predicted to be {twice}, with four times {four} (95% prediction intervals"
            f" for the mean of many runs). Form: {self.form}, {how};"
            f" {self._data.total} runs at {len(self.n)} sizes."
        )

    @cached_property
    def _profile(self) -> Profile | NoiseAverage:
        only_paper = self.constants.noise == "paper"
        return profile_replicates(self._data, self.constants.sigma0_squared, only_paper=only_paper)

    def _error_points(self, n: FloatArray) -> FloatArray:
        return self._ensemble.predict(np.minimum(n, 1e30))

    def _gain_band(self, n: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        low, high = self._clip(*self._band_points(n, level, "prediction", np.inf))
        now = float(self._error_points(np.array([self.largest_n]))[0])
        return (now - high) / self._scale.factor, (now - low) / self._scale.factor

    def _likely_points(self, n: FloatArray) -> FloatArray:
        return self._error_points(n)

    def _reliance_points(self, n: float) -> float:
        # The slope of an average of forms jumps where their weights and damping set in; the power
        # law's likelihood gives a slope that has an interval.
        return float(self._profile.estimate(reliance_of(n))[0])

    def _large_points(self, n: float) -> float:
        return float(self._profile.estimate(large_sample_of(n))[0])

    def _band_points(self, n: FloatArray, level: float, interval: str, runs: float) -> tuple[FloatArray, FloatArray]:
        if interval != "prediction":
            raise InputError(
                f"has no {arg('interval', interval)}: it supposes no form that could"
                f" be true. Use {arg('interval', 'prediction')}, or fit {arg('form', 'power')}.",
                argument="form",
                value=self.form,
            )
        noise = self._noise_of_mean(n, level, runs)
        low, high = ensemble_interval(self._data, self._ensemble, n, level, noise)
        return self._may_drop(n, low), high

    def _probability_never(self, target: float) -> float:
        """Probability that neither today's data nor a thousand times as much is enough."""
        return min(self._probability_above(k * self.largest_n, target) for k in (1e3, 1.0))

    def _probability_above(self, n: float, target: float) -> float:
        size = np.array([n])

        def interval(level: float) -> tuple[float, float]:
            low, high = self._band_points(size, level, "prediction", np.inf)
            return float(low[0]), float(high[0])

        outside = excluded_level(interval, target)
        above = float(self._error_points(size)[0]) > target
        return 0.5 * (1.0 + outside) if above else 0.5 * (1.0 - outside)


def fit_points(
    points: GroupedRuns, unit: Unit, form: str, sigma0_squared: float, chance: float | None = None
) -> LawEnsemble:
    """Fit the ensemble, or the one member that ``form`` names, in points."""
    floor, ceiling = bounds(unit, points.mean)
    ceiling = ceiling if chance is None else max(chance, float(points.mean.max()))
    limits = {"floor": floor if np.isfinite(floor) else None, "ceiling": ceiling if np.isfinite(ceiling) else None}
    stderr = points.standard_error(sigma0_squared) if points.replicated else None
    if form == "auto":
        return fit_ensemble(points.n, points.mean, stderr, **limits)
    return fit_member(form, points.n, points.mean, stderr, **limits)
