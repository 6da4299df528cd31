"""What every fitted learning curve can be asked, whatever form was fitted."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from curvewise.errors import InputError
from curvewise.learning.noise import RunNoise
from curvewise.learning.power import Constants
from curvewise.learning.profile import NoiseAverage, Profile
from curvewise.learning.replicates import Replicates
from curvewise.learning.units import Scale, bounds
from curvewise.tables import number, whole
from curvewise.types import FloatArray, Interval, Result, Unit, check_level, data_frame

if TYPE_CHECKING:
    import pandas as pd

    from curvewise.learning.answers import SamplesToReach

EXTRAPOLATION_LIMIT = 4.0
"""Beyond this multiple of the largest size the paper does not trust its curves (§4.2)."""

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
        β_N, how much the error would rise with a quarter of the data.
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
    _data: Replicates
    _scale: Scale
    _at_chance: bool  # whether the largest size is within a tenth of the blind guess named

    @abstractmethod
    def _error_points(self, n: FloatArray) -> FloatArray:
        """The curve at sizes n, in points."""

    @abstractmethod
    def _band_points(
        self, n: FloatArray, level: float, interval: str, runs: float
    ) -> tuple[FloatArray, FloatArray]:
        """Low and high of the curve at sizes n, in points, before clipping to what is possible."""

    @abstractmethod
    def _likely_points(self, n: FloatArray) -> FloatArray:
        """A centre at sizes n that lies inside every interval, in points."""

    @abstractmethod
    def _gain_band(self, n: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Low and high of how much better n is than the largest size, in the unit."""

    @abstractmethod
    def _reliance_points(self, n: float) -> float:
        """β_N in points."""

    @abstractmethod
    def interval_at(
        self, n: float | None = None, *, level: float = 0.95, interval: str | None = None
    ) -> CurveIntervals:
        """e_N, β_N and e_N − β_N with their intervals."""

    @property
    @abstractmethod
    def _profile(self) -> Profile | NoiseAverage:
        """The likelihood along γ."""

    @abstractmethod
    def _probability_never(self, target: float) -> float:
        """Probability that the error, in points, never falls to ``target``."""

    @property
    def default_interval(self) -> str:
        """The kind of interval that this form gives when none is named."""
        return "confidence"

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
        self,
        n: ArrayLike,
        interval: str | None = None,
        *,
        level: float = 0.95,
        runs: float = 1,
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
            With "prediction": the mean of how many new runs. ``float("inf")`` for the true mean.

        Returns
        -------
        DataFrame
            Columns n, error, low, high, in the unit of the fit. Where the fitted curve lies outside
            its own interval, error is the most likely value; where no error can be that low or
            high, it is NaN, and the interval is all that is known.
        """
        sizes = check_sizes_to_predict(n)
        return data_frame({"n": sizes, **self.band(sizes, interval, level=level, runs=runs)})

    def band(
        self, n: ArrayLike, interval: str | None = None, *, level: float = 0.95, runs: float = 1
    ) -> dict[str, FloatArray]:
        """What :meth:`predict` tabulates, as arrays: error, low, high."""
        kind = interval or self.default_interval
        check_interval(kind)
        check_level(level)
        n = check_sizes_to_predict(n)
        if not runs > 0:
            raise InputError(f"runs={runs} must be positive: the number of new runs averaged.")
        low, high = self._clip(*self._band_points(n, level, kind, runs))
        ends = [self._scale.values(low), self._scale.values(high)]
        if self._scale.sign < 0:
            ends.reverse()
        error = self._scale.values(self._answer_points(n, low, high))
        return {"error": error, "low": ends[0], "high": ends[1]}

    def samples_to_reach(self, error: float, *, level: float = 0.95) -> SamplesToReach:
        """How many training samples it takes to reach an error, given in the unit of the fit."""
        from curvewise.learning.answers import samples_to_reach

        return samples_to_reach(self, error, level=level)

    def budget(
        self, n: ArrayLike, *, cost_per_sample: float = 1.0, level: float = 0.95
    ) -> pd.DataFrame:
        """What more data would cost and bring, from the largest size measured."""
        from curvewise.learning.answers import budget

        return budget(self, n, cost_per_sample=cost_per_sample, level=level)

    def run_std_at(self, n: ArrayLike) -> FloatArray:
        """Standard deviation of one run at size n, see :mod:`curvewise.learning.noise`."""
        sizes = check_sizes_to_predict(n)
        return np.sqrt(self._run_noise.variance(sizes)) / self._scale.factor

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row: learner, N, e_N, β_N, γ where there is one, with intervals."""
        at = self.interval_at()
        return {
            "learner": [self.learner],
            "N": [whole(self.largest_n)],
            "e_N": [at.error.estimate],
            "e_N low": [at.error.low],
            "e_N high": [at.error.high],
            "beta_N": [at.data_reliance.estimate],
            "beta_N low": [at.data_reliance.low],
            "beta_N high": [at.data_reliance.high],
            "gamma": [float(getattr(self, "gamma", np.nan))],
            "form": [self.form],
        }

    def to_dict(self) -> dict[str, Any]:
        """All of the result as plain Python values, intervals at the largest size included."""
        from curvewise.types import plain

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

    def _answer_points(self, n: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """The curve at sizes n, in points, where it can be an answer; see :meth:`predict`."""
        fitted = self._error_points(n)
        slack = 1e-9 * (1.0 + np.abs(fitted))
        outside = (fitted < low - slack) | (fitted > high + slack)
        answer = np.where(outside, self._likely_points(n), fitted) if outside.any() else fitted
        floor, ceiling = bounds(self.unit, self._data.mean)
        possible = (answer >= floor - slack) & (answer <= ceiling + slack)
        return np.where(possible, np.clip(answer, low, high), np.nan)

    def _size(self, n: float | None) -> float:
        return self.largest_n if n is None else check_size(n, "n", infinite=True)

    def _say(self, interval: Interval) -> str:
        unit = self.unit.suffix
        low, high = number(interval.low), number(interval.high)
        if np.isnan(interval.estimate):
            return f"between {low} and {high}{unit}"
        return f"{number(interval.estimate)}{unit} [{low}, {high}]"


def check_interval(interval: str) -> None:
    """Raise unless the kind of interval is known."""
    if interval not in INTERVALS:
        raise InputError(
            f"interval={interval!r} is not known: use one of {', '.join(map(repr, INTERVALS))}."
        )


def check_size(n: float, argument: str, *, infinite: bool = False) -> float:
    """One training size as a float, or an error that names the argument."""
    if not isinstance(n, int | float | np.number) or not n > 0:
        raise InputError(f"{argument}={n!r} must be a positive training size.")
    if np.isinf(n) and not infinite:
        raise InputError(f"{argument}={n!r} must be finite.")
    return float(n)


def check_sizes_to_predict(n: ArrayLike) -> FloatArray:
    """Training sizes as an array, or an error that names the argument."""
    try:
        sizes = np.atleast_1d(np.asarray(n, dtype=np.float64))
    except (TypeError, ValueError):
        raise InputError(f"n={n!r} must be one training size or a list of them.") from None
    if sizes.ndim != 1 or not (sizes > 0).all():
        raise InputError("n must be one positive size or a list of them.")
    return sizes
