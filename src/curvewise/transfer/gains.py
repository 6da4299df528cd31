"""Training sizes up to which a method gains over scratch, and how many samples the gain is worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from curvewise.errors import InputError
from curvewise.stats.intervals import crossing_interval, difference_interval, first_crossing
from curvewise.text import format_interval, format_number, format_size
from curvewise.transfer.runs import MANY, TIE
from curvewise.types.results import FloatArray, Interval, as_floats, check_level

# A fitted curve is followed up to this multiple of the largest size of scratch.
FARTHEST = 1000.0
# Error of the interpolation, as a share of its distance from other curves through the same means: keeps 95% intervals
# at 93 to 100% coverage for power laws, with or without a floor, and sizes a factor of 4 or 10 apart.
BEND = 0.4
# The floor of a curve of logarithms lies this share of the range of the means below the lowest of them.
FLOOR = 0.05
# Sizes looked at among those of scratch, and as many beyond where a curve leads there.
POINTS = 301


def gain_end(n: ArrayLike, gain: ArrayLike, low: ArrayLike, high: ArrayLike) -> GainEnd:
    """Find the training size from which a gain is no longer significant.

    Each size is judged by its own interval. At twenty sizes without any gain one interval of 95%
    is expected to exclude 0 all the same, one time in two on the side of a gain.

    Parameters
    ----------
    n : array_like, shape (sizes,)
        Training sizes, each once, from small to large.
    gain : array_like, shape (sizes,)
        Gain of the method there, such as the calibrated risk of scratch minus its own.
    low, high : array_like, shape (sizes,)
        The interval of the gain; NaN where it is not known.

    Returns
    -------
    GainEnd

    Examples
    --------
    >>> end = gain_end([100, 1000, 10000], [0.3, 0.1, 0.0], [0.2, 0.02, -0.1], [0.4, 0.2, 0.1])
    >>> end.n_last_significant, end.n_from
    (1000.0, 10000.0)
    >>> end.text
    'The gain is significant up to n = 1,000; from n = 10,000 on it is not.'
    """
    given = {"n": n, "gain": gain, "low": low, "high": high}
    sizes, g, a, b = (np.atleast_1d(as_floats(v, k)) for k, v in given.items())
    _check_sizes(sizes, "n")
    for name, array in (("gain", g), ("low", a), ("high", b)):
        if array.shape != sizes.shape:
            raise InputError(f"{name} has shape {array.shape} for {len(sizes)} sizes: give one for each.")
    slack = 1e-9 * (1 + np.abs(g))  # what arithmetic may add to an end that equals the gain
    wrong = {"low is above high": a > b, "gain lies outside low and high": (g < a - slack) | (g > b + slack)}
    for problem, where in wrong.items():
        if where.any():
            at = format_number(float(sizes[where][0]))
            raise InputError(f"{problem} at n = {at}: are these the ends of its interval?")
    significant, worse, unknown = a > 0, b < 0, np.isnan(a) | np.isnan(b)
    last = int(np.flatnonzero(significant)[-1]) if significant.any() else -1
    later = np.flatnonzero(worse[last + 1 :]) + last + 1
    n_from = float("nan") if unknown.all() else float(sizes[last + 1]) if last + 1 < len(sizes) else float("inf")
    return GainEnd(
        n_last_significant=float(sizes[last]) if last >= 0 else float("nan"),
        n_from=n_from,
        worse_from=float(sizes[later[0]]) if len(later) else float("inf"),
        significant_at=tuple(sizes[significant].tolist()),
        worse_at=tuple(sizes[worse].tolist()),
        unknown_at=tuple(sizes[unknown].tolist()),
        text=_end_text(sizes, significant, worse, unknown),
    )


@dataclass(frozen=True, eq=False)
class GainEnd:
    """Training size from which a gain is no longer significant.

    Attributes
    ----------
    n_last_significant : float
        Largest size at which the interval of the gain lies above 0; NaN if it does at none.
    n_from : float
        First size from which on no interval lies above 0: the smallest size if none ever does,
        infinite if the one of the largest size still does, NaN if no interval is known.
    worse_from : float
        First size after ``n_last_significant`` at which the interval lies below 0; infinite if none does.
    significant_at, worse_at : tuple of float
        All sizes at which the interval lies above 0, and below it.
    unknown_at : tuple of float
        Sizes whose interval is not known.
    text : str
        The same as a sentence.
    """

    n_last_significant: float
    n_from: float
    worse_from: float
    significant_at: tuple[float, ...]
    worse_at: tuple[float, ...]
    unknown_at: tuple[float, ...]
    text: str


def _check_sizes(sizes: FloatArray, argument: str) -> None:
    """Raise unless these are training sizes, each once, from small to large."""
    if sizes.ndim != 1 or not len(sizes):
        raise InputError(f"{argument} has shape {sizes.shape}: give a list of training sizes.", argument=argument)
    if not (np.isfinite(sizes) & (sizes > 0)).all():
        bad = sizes[~(np.isfinite(sizes) & (sizes > 0))][0]
        raise InputError(f"{argument} holds {bad:g}: training sizes must be positive numbers.", argument=argument)
    if (np.diff(sizes) <= 0).any():
        raise InputError(f"{argument} must hold each size once, from small to large.", argument=argument)


def _end_text(
    sizes: FloatArray, significant: NDArray[np.bool_], worse: NDArray[np.bool_], unknown: NDArray[np.bool_]
) -> str:
    if unknown.all():
        return "No interval of the gain is known: it cannot be tested."
    if not significant.any():
        text = "No size shows a significant gain"
    elif significant[-1]:
        text = f"The gain is significant at the largest size, n = {format_number(sizes[-1])}"
    else:
        last = int(np.flatnonzero(significant)[-1])
        text = f"The gain is significant up to n = {format_number(sizes[last])}; from n = "
        text += f"{format_number(sizes[last + 1])} on it is not"
    parts: dict[str, NDArray[np.bool_]] = {}
    doubtful = ~significant & ~worse & ~unknown
    if significant.any():
        doubtful[int(np.flatnonzero(significant)[-1]) :] = False
        parts["it is not significant at"] = doubtful
    parts |= {"the method is significantly worse at": worse, "no interval is known at": unknown}
    for lead, mask in parts.items():
        if mask.any():
            text += f"; {lead} n = " + ", ".join(format_number(float(v)) for v in sizes[mask])
    return text + "."


def data_equivalence(
    n: ArrayLike,
    method: ArrayLike,
    scratch_n: ArrayLike,
    scratch: ArrayLike,
    *,
    variance: ArrayLike | None = None,
    scratch_variance: ArrayLike | None = None,
    covariance: ArrayLike | None = None,
    degrees: ArrayLike = np.inf,
    scratch_degrees: ArrayLike = np.inf,
    curve: Any = None,
    level: float = 0.95,
) -> tuple[Equivalence, ...]:
    """Find how many samples training from scratch needs to match a method at each of its sizes.

    Between its sizes scratch is interpolated in log n without overshoot (Fritsch and Carlson);
    the equivalent is where it first comes down to the risk of the method. The interval holds the
    sizes around there at which the two risks do not differ significantly. Scaling all
    risks and adding a constant changes nothing, so that they may be calibrated or not.

    Parameters
    ----------
    n, method : array_like, shape (sizes,)
        Training sizes of the method and its mean risk there; NaN where there is none.
    scratch_n, scratch : array_like, shape (scratch sizes,)
        The same for scratch, without NaN, in the same unit.
    variance, scratch_variance : array_like, optional
        Variance of each mean; for scratch also a covariance matrix. Without either, or where one
        is NaN, the interval is NaN.
    covariance : array_like, shape (sizes, scratch sizes), optional
        Between means of the method and of scratch, where runs share training subsets.
    degrees, scratch_degrees : array_like
        Degrees of freedom of the variances, one or one for each size.
    curve : object, optional
        A learning curve fitted to risks of scratch *in the unit of* ``scratch``, such as
        ``fit_learning_curve`` gives, used beyond the largest size of scratch, up to a thousand
        times it: an object with ``predict(n, interval="confidence", level=...)`` that has columns
        ``error``, ``low`` and ``high``. If these risks are calibrated, fit it to calibrated ones.
    level : float
        Coverage of the intervals.

    Returns
    -------
    tuple of Equivalence
        One for each size of the method.

    Notes
    -----
    Simulated with power laws (``benchmarks/transfer_wins.py``), 95% intervals hold the equivalent
    in 93 to 99% of cases with 2 to 10 runs of each size, where every mean has its own variance; in
    90 to 100% where all share one, whose degrees of freedom are counted as if each had its own.
    With little noise the median estimate is within 5% of the truth, sizes being a factor of 4 or
    10 apart. The interval allows for an error of interpolation between sizes. Of scratch that falls slowly, then fast,
    then slowly (logistic in log n), it holds the equivalent in 94 to 99% with sizes a factor of 4 apart; of 10, where
    the steepest part lies within one step, in 67 to 88%.

    Examples
    --------
    >>> found = data_equivalence(
    ...     [100], [0.3], [100, 1000, 10000], [0.8, 0.4, 0.2],
    ...     variance=[1e-4], scratch_variance=[1e-4] * 3,
    ... )
    >>> print(found[0].text)
    100 samples of the method are worth 2,530 [1,910, 3,500] from scratch.
    """
    check_level(level)
    measured = _scratch_curve(scratch_n, scratch, scratch_variance, scratch_degrees, level, curve)
    sizes, risks = (np.atleast_1d(as_floats(v, k)) for v, k in ((n, "n"), (method, "method")))
    _check_sizes(sizes, "n")
    if risks.shape != sizes.shape or np.isinf(risks).any():
        raise InputError(
            f"method has shape {risks.shape} for {len(sizes)} sizes: give a finite risk for each,"
            " NaN where there is none."
        )
    own = _variances(variance, sizes.shape, "variance")
    free = _broadcast(degrees, sizes.shape, "degrees")
    shape = (len(sizes), len(measured.n))
    shared = np.zeros(shape) if covariance is None else as_floats(covariance, "covariance")
    if shared.shape != shape or not np.isfinite(shared).all():
        raise InputError(
            f"covariance has shape {shared.shape}: give finite numbers in {shape}, sizes of the method × sizes of "
            "scratch."
        )
    if curve is not None:
        _check_unit(curve, measured)
    gaps = [RiskGap(measured, *cell) for cell in zip(risks, own, free, shared, strict=True)]
    return tuple(_invert(size, gap) for size, gap in zip(sizes.tolist(), gaps, strict=True))


@dataclass(frozen=True, eq=False)
class Equivalence:
    """Samples of training from scratch that a training size of a method is worth.

    Attributes
    ----------
    n : float
        Training size of the method.
    equivalent : Interval
        The size at which scratch comes down to the risk of the method. The estimate is infinite
        where it does not within the sizes looked at, and 0 where scratch is better from its
        smallest size on; NaN where the method was not measured. An end without a known error is
        NaN; an infinite end or one at 0 means that none can be given.
    factor : Interval
        The same over ``n``: above 1 the pretraining saves data.
    beyond : {"above", "below"} or None
        Side of the sizes of scratch on which the equivalent lies, if it is beyond them.
    extrapolated : bool
        Whether it, or a finite end of its interval, rests on a curve beyond what was measured.
    """

    n: float
    equivalent: Interval
    factor: Interval
    beyond: str | None = None
    extrapolated: bool = False

    @property
    def text(self) -> str:
        """The same as a sentence."""
        low, high, estimate = self.equivalent.low, self.equivalent.high, self.equivalent.estimate
        lead = f"{format_size(self.n)} samples of the method "
        if np.isnan(estimate):
            return f"What {lead}are worth is not known."
        if self.beyond == "above":
            least = f": at least {format_size(low)}." if low > 0 else "."
            return f"{lead}are worth more than the largest size looked at from scratch{least}"
        if self.beyond == "below":
            most = f": at most {format_size(high)}." if np.isfinite(high) else "."
            return f"{lead}are worth less than the smallest size of scratch{most}"
        shown = format_size(estimate) if np.isnan(low) else format_interval(self.equivalent, write=format_size)
        rests = ", by a fitted curve" if self.extrapolated else ""
        return f"{lead}are worth {shown} from scratch{rests}."


def _invert(size: float, gap: RiskGap) -> Equivalence:
    """Invert the difference of the two risks at one size of the method."""
    grid, level = gap.scratch.grid, gap.scratch.level
    if np.isnan(gap.risk):
        nothing = Interval(np.nan, np.nan, np.nan, level)
        return Equivalence(size, nothing, nothing)
    centre, *_ = gap(grid)
    estimate = float(np.exp(first_crossing(np.log(grid), centre))) if centre[0] > 0 else 0.0
    estimate = float(grid[0]) if centre[0] == 0 else estimate
    low = high = np.nan
    if gap.known:
        low, high = crossing_interval(gap, grid)
        low = float(grid[-1]) if np.isinf(low) else low
        high = float(grid[0]) if high == 0 else high
    beyond = "above" if np.isinf(estimate) else "below" if estimate == 0 else None
    top = gap.scratch.n[-1]
    ends = [v for v in (estimate, low, high) if np.isfinite(v)]
    return Equivalence(
        n=size,
        equivalent=Interval(estimate, low, high, level),
        factor=Interval(estimate / size, low / size, high / size, level),
        beyond=beyond,
        extrapolated=bool(max(ends, default=0.0) > top * (1 + 1e-9)),
    )


def _scratch_curve(
    n: ArrayLike, risk: ArrayLike, variance: ArrayLike | None, degrees: ArrayLike, level: float, curve: Any
) -> ScratchCurve:
    sizes = np.atleast_1d(as_floats(n, "scratch_n"))
    _check_sizes(sizes, "scratch_n")
    risks = np.atleast_1d(as_floats(risk, "scratch"))
    if risks.shape != sizes.shape or not np.isfinite(risks).all():
        raise InputError(
            f"scratch has shape {risks.shape} for {len(sizes)} sizes, and each must be a number:"
            " leave out sizes at which scratch was not measured."
        )
    matrix = variance is not None and np.ndim(variance) == 2
    given = _variances(variance, sizes.shape * 2 if matrix else sizes.shape, "scratch_variance")
    free = _broadcast(degrees, sizes.shape, "scratch_degrees")
    return ScratchCurve(sizes, risks, given if matrix else np.diag(given), free, level, curve)


def _variances(given: ArrayLike | None, shape: tuple[int, ...], argument: str) -> FloatArray:
    if given is None:
        return np.full(shape, np.nan)
    found = as_floats(given, argument)
    if found.shape != shape:
        raise InputError(f"{argument} has shape {found.shape}: give {shape}, one for each size.", argument=argument)
    if ((np.diagonal(found) if len(shape) == 2 else found) < 0).any() or np.isinf(found).any():
        raise InputError(f"{argument} must hold variances: not negative, not infinite.", argument=argument)
    return found


def _broadcast(given: ArrayLike, shape: tuple[int, ...], argument: str) -> FloatArray:
    found = as_floats(given, argument)
    if found.shape not in ((), shape) or not (found > 0).all():
        raise InputError("must be positive, one or one for each size.", argument=argument, value=given)
    return np.broadcast_to(found, shape)


def _check_unit(curve: Any, scratch: ScratchCurve) -> None:
    """Refuse a curve in another unit than scratch, which would extrapolate nonsense."""
    there = curve_band(curve, scratch.n, scratch.level)[0]
    off = float(np.median(np.abs(there - scratch.risk)))
    span = float(np.ptp(scratch.risk))
    # Calibrated risks and losses usually differ by more than the whole range of the curve.
    if off > max(span, 0.5 * float(np.abs(scratch.risk).mean())):
        at = len(scratch.n) - 1
        raise InputError(
            f"curve gives {format_number(float(there[at]))} at n = {format_number(float(scratch.n[at]))}, where"
            f" scratch is {format_number(float(scratch.risk[at]))}: fit it to the same risks, in the same"
            " unit and calibrated if these are."
        )


class ScratchValues(NamedTuple):
    """Risk of scratch at some sizes, with its errors.

    ``risk``, shape (T,), is interpolated; ``moves``, shape (T, sizes), is how far it moves with
    each of the means. ``variance`` is what their errors make, ``doubt`` the sum of squares of its
    parts over their degrees of freedom; ``bend`` is how far the risk may be off by itself.
    ``beyond`` are the places past the largest size where there is a fitted curve, ``band`` its
    error there, low and high.
    """

    risk: FloatArray
    moves: FloatArray
    variance: FloatArray
    doubt: FloatArray
    bend: FloatArray
    beyond: NDArray[np.intp]
    band: tuple[FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class ScratchCurve:
    """Mean risks of scratch: sizes, means, their covariances, degrees of freedom.

    Past the largest size a fitted ``curve`` may lead on, with its interval of ``level``.
    """

    n: FloatArray
    risk: FloatArray
    covariance: FloatArray
    degrees: FloatArray
    level: float
    curve: Any = None

    @cached_property
    def grid(self) -> FloatArray:
        """Sizes of scratch to look at."""
        sizes = self.n
        inner = np.geomspace(sizes[0], sizes[-1], POINTS) if len(sizes) > 1 else sizes
        points = [inner, sizes]
        if self.curve is not None:
            points.append(np.geomspace(sizes[-1], FARTHEST * sizes[-1], POINTS))
        found = np.unique(np.concatenate(points))
        return np.asarray(found[np.diff(np.log(found), prepend=-np.inf) > 1e-12])

    @cached_property
    def on_grid(self) -> ScratchValues:
        """Scratch on the grid, which every method needs."""
        return self.at(self.grid)

    def at(self, n: FloatArray) -> ScratchValues:
        """Interpolate in log n; slopes are over one standard error either way, since interpolation has kinks."""
        count, logs = len(self.n), np.log(n)
        found = np.asarray(self._interpolate(logs))
        # Central differences over one standard error: the slope of an interpolation jumps at its knots.
        moves = (found[:, 1 : count + 1] - found[:, count + 1 :]) / (2 * self._steps)
        parts = moves**2 * np.diagonal(self.covariance)
        beyond = np.flatnonzero((n > self.n[-1]) & (self.curve is not None))
        band = curve_band(self.curve, n[beyond], self.level) if len(beyond) else (np.empty(0),) * 3
        return ScratchValues(
            risk=found[:, 0],
            moves=moves,
            variance=((moves @ self.covariance) * moves).sum(axis=1),
            doubt=(parts**2 / self.degrees).sum(axis=1),
            bend=BEND * self._bends(logs, found[:, 0]),
            beyond=beyond,
            band=band,
        )

    @cached_property
    def _bends(self) -> Callable[[FloatArray, FloatArray], FloatArray]:
        return bends(np.log(self.n), self.risk)

    @cached_property
    def _steps(self) -> FloatArray:
        errors = np.sqrt(np.nan_to_num(np.diagonal(self.covariance)))
        # A mean without error is moved by a little all the same, so that no difference is divided by 0.
        least = 1e-6 * max(float(np.ptp(self.risk)), 1e-6 * float(np.abs(self.risk).max()), 1e-12)
        return np.maximum(errors, least)

    @cached_property
    def _interpolate(self) -> Any:
        moved = np.diag(self._steps)
        base = self.risk[:, None]
        values = np.concatenate([base, base + moved, base - moved], axis=1)
        if len(self.n) == 1:
            return lambda x: np.broadcast_to(values[0], (len(x), values.shape[1]))
        from scipy.interpolate import PchipInterpolator

        logs = np.log(self.n)
        inner = PchipInterpolator(logs, values, axis=0)
        return lambda x: inner(np.clip(x, logs[0], logs[-1]))


def bends(log_n: FloatArray, risk: FloatArray) -> Callable[[FloatArray, FloatArray], FloatArray]:
    """Return a function of log sizes and of a smooth curve there: how far from it others through the same risks lie.

    They are the lines between sizes, which lie above a risk that falls fast and then slowly, and a monotone curve
    through logarithms of the risk, which follows one that falls slowly at first. Neither depends on the unit.
    """
    span = float(np.ptp(risk))
    floor, logs = risk.min() - FLOOR * span, None
    if len(log_n) > 2 and span > 0:
        from scipy.interpolate import PchipInterpolator

        logs = PchipInterpolator(log_n, np.log(risk - floor))

    def apart(at: FloatArray, smooth: FloatArray) -> FloatArray:
        off = np.abs(smooth - np.interp(at, log_n, risk))
        if logs is not None:
            off = np.maximum(off, np.abs(smooth - (floor + np.exp(logs(np.clip(at, log_n[0], log_n[-1]))))))
        return off

    return apart


@dataclass(frozen=True, eq=False)
class RiskGap:
    """Risk of scratch at a size minus that of a method at its own, with an interval.

    ``variance`` and ``degrees`` are those of the method's ``risk``, ``shared`` its covariances
    with the means of scratch.
    """

    scratch: ScratchCurve
    risk: float
    variance: float
    degrees: float
    shared: FloatArray

    @property
    def known(self) -> bool:
        """True if the errors are known, so that there can be an interval."""
        return not (np.isnan(self.variance) or np.isnan(self.scratch.covariance).any())

    def __call__(self, n: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the difference, low and high, as :func:`crossing_interval` takes them."""
        there = self.scratch.on_grid if n is self.scratch.grid else self.scratch.at(n)
        half = self._half(there)
        centre = there.risk - self.risk
        # A method that is as good as scratch at one of its sizes must not miss it by rounding.
        centre[np.abs(centre) <= TIE * max(float(np.abs(self.scratch.risk).max()), abs(self.risk))] = 0.0
        low, high = centre - half, centre + half
        if len(there.beyond):
            band = there.band
            own = float(self._quantile(self.degrees)) * np.sqrt(self.variance)
            ends = (self.risk - own, self.risk + own)
            centre[there.beyond] = band[0] - self.risk
            low[there.beyond], high[there.beyond] = difference_interval(band[0], band[1:], self.risk, ends)
        return centre, low, high

    def _half(self, there: ScratchValues) -> FloatArray:
        """Return half of a t interval, with Satterthwaite's degrees of freedom."""
        total = there.variance + self.variance - 2 * there.moves @ self.shared
        total = np.maximum(total, 0.0) + there.bend**2
        doubt = there.doubt + self.variance**2 / self.degrees
        degrees = np.divide(total**2, doubt, out=np.full_like(total, np.inf), where=doubt > 0)
        # Satterthwaite's approximation never has fewer degrees than the least of its parts.
        degrees = np.maximum(degrees, min(self.degrees, float(self.scratch.degrees.min())))
        return self._quantile(np.minimum(degrees, MANY)) * np.sqrt(total)

    def _quantile(self, degrees: FloatArray | float) -> FloatArray:
        return np.asarray(stdtrit(degrees, 0.5 + self.scratch.level / 2))


def curve_band(curve: Any, n: FloatArray, level: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the error of a fitted curve, moved into its interval where it lies outside, low and high.

    Curves without a confidence interval give that of the mean of many runs.
    """
    kind = getattr(curve, "default_interval", "confidence")
    options: dict[str, Any] = {"interval": kind, "level": level}
    if kind == "prediction":
        options["runs"] = np.inf
    try:
        # A curve of ours gives the same as arrays, for which no pandas is needed.
        found = (curve.band if hasattr(curve, "band") else curve.predict)(n, **options)
        named = (found[name] for name in ("error", "low", "high"))
        error, low, high = (np.asarray(v, dtype=np.float64) for v in named)
    except (AttributeError, KeyError, TypeError) as failure:
        raise InputError(
            f"curve is a {type(curve).__name__} that is not usable ({failure}): pass a fitted learning curve"
            ' whose predict(n, interval="confidence", level=...) has columns error, low and high.'
        ) from None
    return np.clip(error, low, high), low, high
