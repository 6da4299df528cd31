"""How many samples scratch needs to match a method: what a pretraining is worth in data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from curvewise.errors import InputError
from curvewise.stats import crossing_interval, first_crossing
from curvewise.tables import about, number
from curvewise.transfer._equivalence_gaps import Gap, ScratchCurve, curve_band
from curvewise.transfer.gains import check_sizes
from curvewise.types import FloatArray, Interval, as_floats, check_level


@dataclass(frozen=True, eq=False)
class Equivalence:
    """What a method's training size is worth in samples of training from scratch.

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
        Whether the equivalent lies above or below the sizes of scratch.
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
        lead = f"{about(self.n)} samples of the method "
        if np.isnan(estimate):
            return f"What {lead}are worth is not known."
        if self.beyond == "above":
            least = f": at least {about(low)}." if low > 0 else "."
            return f"{lead}are worth more than the largest size looked at from scratch{least}"
        if self.beyond == "below":
            most = f": at most {about(high)}." if np.isfinite(high) else "."
            return f"{lead}are worth less than the smallest size of scratch{most}"
        known = "" if np.isnan(low) else f" [{about(low)}, {about(high)}]"
        rests = ", by a fitted curve" if self.extrapolated else ""
        return f"{lead}are worth {about(estimate)}{known} from scratch{rests}."


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
    """How many samples training from scratch needs to match a method at each of its sizes.

    Between its sizes scratch is interpolated in log n without overshoot (Fritsch and Carlson);
    the equivalent is where it first comes down to the risk of the method. The interval holds the
    sizes around there at which the difference of the two risks is not told from 0. Scaling all
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
    10 apart. The interval allows for an error of interpolation between sizes.

    Examples
    --------
    >>> found = data_equivalence(
    ...     [100], [0.3], [100, 1000, 10000], [0.8, 0.4, 0.2],
    ...     variance=[1e-4], scratch_variance=[1e-4] * 3,
    ... )
    >>> print(found[0].text)
    100 samples of the method are worth 2530 [1930, 3420] from scratch.
    """
    check_level(level)
    measured = _scratch_curve(scratch_n, scratch, scratch_variance, scratch_degrees, level, curve)
    sizes, risks = (np.atleast_1d(as_floats(v, k)) for v, k in ((n, "n"), (method, "method")))
    check_sizes(sizes, "n")
    if risks.shape != sizes.shape or np.isinf(risks).any():
        raise InputError(
            f"method has shape {risks.shape} for {len(sizes)} sizes: give a finite risk for each,"
            " NaN where there is none."
        )
    own = _variances(variance, sizes.shape, "variance")
    free = _broadcast(degrees, sizes.shape, "degrees")
    shared = _shared(covariance, (len(sizes), len(measured.n)))
    if curve is not None:
        _check_unit(curve, measured)
    gaps = [Gap(measured, *cell) for cell in zip(risks, own, free, shared, strict=True)]
    return tuple(_one(size, gap) for size, gap in zip(sizes.tolist(), gaps, strict=True))


def _one(size: float, gap: Gap) -> Equivalence:
    """Invert the difference of the two risks at one size of the method."""
    grid, level = gap.scratch.grid, gap.scratch.level
    if np.isnan(gap.risk):
        nothing = Interval(np.nan, np.nan, np.nan, level)
        return Equivalence(size, nothing, nothing)
    centre = gap.centre(grid)
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
    n: ArrayLike,
    risk: ArrayLike,
    variance: ArrayLike | None,
    degrees: ArrayLike,
    level: float,
    curve: Any,
) -> ScratchCurve:
    sizes = np.atleast_1d(as_floats(n, "scratch_n"))
    check_sizes(sizes, "scratch_n")
    risks = np.atleast_1d(as_floats(risk, "scratch"))
    if risks.shape != sizes.shape or not np.isfinite(risks).all():
        raise InputError(
            f"scratch has shape {risks.shape} for {len(sizes)} sizes, and each must be a number:"
            " leave out sizes at which scratch was not measured."
        )
    matrix = np.ndim(variance) == 2 if variance is not None else False
    shape = (len(sizes), len(sizes)) if matrix else sizes.shape
    given = _variances(variance, shape, "scratch_variance")
    return ScratchCurve(
        sizes,
        risks,
        given if matrix else np.diag(given),
        _broadcast(degrees, sizes.shape, "scratch_degrees"),
        level,
        curve,
    )


def _variances(given: ArrayLike | None, shape: tuple[int, ...], argument: str) -> FloatArray:
    if given is None:
        return np.full(shape, np.nan)
    found = as_floats(given, argument)
    if found.shape != shape:
        raise InputError(f"{argument} has shape {found.shape}: give {shape}, one for each size.")
    own = np.diagonal(found) if len(shape) == 2 else found
    if (own < 0).any() or np.isinf(found).any():
        raise InputError(f"{argument} must hold variances: not negative, not infinite.")
    return found


def _shared(given: ArrayLike | None, shape: tuple[int, int]) -> FloatArray:
    if given is None:
        return np.zeros(shape)
    found = as_floats(given, "covariance")
    if found.shape != shape or not np.isfinite(found).all():
        raise InputError(
            f"covariance has shape {found.shape}: give finite numbers in {shape}, sizes of the"
            " method × sizes of scratch."
        )
    return found


def _broadcast(given: ArrayLike, shape: tuple[int, ...], argument: str) -> FloatArray:
    found = as_floats(given, argument)
    if found.shape not in ((), shape) or not (found > 0).all():
        raise InputError(f"{argument}={given!r} must be positive, one or one for each size.")
    return np.broadcast_to(found, shape)


def _check_unit(curve: Any, scratch: ScratchCurve) -> None:
    """A curve in another unit than scratch would extrapolate nonsense."""
    there = curve_band(curve, scratch.n, scratch.level)[0]
    off = float(np.median(np.abs(there - scratch.risk)))
    span = float(np.ptp(scratch.risk))
    if off > max(span, 0.5 * float(np.abs(scratch.risk).mean())):
        at = len(scratch.n) - 1
        raise InputError(
            f"curve gives {number(float(there[at]))} at n = {number(float(scratch.n[at]))}, where"
            f" scratch is {number(float(scratch.risk[at]))}: fit it to the same risks, in the same"
            " unit and calibrated if these are."
        )
