"""Prediction intervals of learning curves, calibrated on the real curves of LCDB 1.0.

Around a predicted error c, all in percent points, the interval of the mean error at size n is

    low = c − q_lo(level) · s_lo,    high = c + q_hi(level) · s_hi,
    log s = x·a + softplus(x·b) · log((L + ½) / (log 2 + ½)),    L = log(n / n_last) in [0, log 64].

x holds a one and features of the curve (`FEATURES`): s is a product of powers of them at a
doubling of the data, and grows with a power of L + ½ that depends on them too and is never
negative. The two sides differ, because curves fall below a forecast and rise above it
for different reasons. a and b minimise the pinball loss of the 97.5% quantile, that is half of the
interval score at 95%; q are quantiles of error / s on datasets held out of the fit of a and b.

The target does not depend on the law one prefers. So the interval of any other law, such as the
paper's power law, is that of the ensemble, extended to hold the law's own prediction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from curvewise.learning.extrapolation import LawEnsemble, fit_ensemble
from curvewise.learning.power import GroupedRuns
from curvewise.types.results import FloatArray

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
"""Levels whose quantiles are stored; others are interpolated."""

EPSILON = 0.05
"""Points added inside logarithms: differences well below this are rounding."""
INTERPOLATION = 0.5
"""Added to the log ratio L: the error of a forecast is not zero where the data end."""
LONGEST_REACH = float(np.log(64.0))
"""Largest log ratio L seen in the calibration; the scale is held there beyond it."""
LARGEST_SIZE = 1e30
"""Stands for an infinite training size."""
UNKNOWN_ROLLING = 0.2
"""Relative rolling error assumed where there were too few sizes to see one."""
PLATEAU = 0.05
"""Relative distance from the first error at which the feature "plateau" is one half."""
NEUTRAL_HEADROOM = 70.0
"""Points of headroom assumed for losses and scores, which have no upper end."""


@dataclass(frozen=True)
class IntervalSide:
    """Constants of one side: a (P,), b (P,), and q at each of `LEVELS`."""

    size: tuple[float, ...]
    growth: tuple[float, ...]
    quantiles: tuple[float, ...]

    def scale(self, x: FloatArray, reach: FloatArray) -> FloatArray:
        """Return s (T,) of features (T, P) and log ratios (T,)."""
        growth = np.logaddexp(0.0, x @ np.array(self.growth))
        logs = x @ np.array(self.size) + growth * log_distance(reach)
        return np.asarray(np.exp(np.clip(logs, -20.0, 20.0)))

    def quantile(self, level: float) -> float:
        """Return q at any level: log q is piecewise linear in log z, z the level's normal quantile."""
        knots = np.log(ndtri(0.5 + np.array(LEVELS) / 2.0))
        values = np.log(self.quantiles)
        at = np.log(ndtri(0.5 + level / 2.0))
        k = int(np.clip(np.searchsorted(knots, at), 1, len(knots) - 1))
        slope = (values[k] - values[k - 1]) / (knots[k] - knots[k - 1])
        return float(np.exp(values[k] + slope * (at - knots[k])))


# Fitted to the LCDB 1.0 datasets of even id by `python benchmarks/intervals.py --regenerate`.
COEFFICIENTS = {
    "one": (2.822, -0.177, 2.466, -4.830),
    "error": (0.388, 0.319, -0.046, 0.504),  # log of the predicted error
    "headroom": (-0.410, -0.142, 0.021, 0.435),  # log of its distance from 100%
    "misfit": (0.227, -0.174, 0.613, -0.538),  # log of the rms residual at the 3 measured sizes nearest to n
    "span": (-0.202, -0.205, -0.166, -0.030),  # log of log(n_last / n_first)
    "rising": (0.085, -0.109, 0.324, 0.677),  # rise over the last two of them, relative to step and misfit
    "rolling": (0.147, -0.114, 0.029, 0.007),  # log of the error the ensemble made forecasting later measured sizes
    "spread": (0.186, -0.054, 0.177, 0.166),  # log of the weighted standard deviation of its members at n
    "sizes": (-0.151, 0.034, -0.265, 0.278),  # log of the number of sizes
    "noise": (0.160, -0.293, 0.014, -0.430),  # log of the typical standard error of the means
    "few": (1.034, -0.204, 1.292, -0.267),  # 1 with one or two sizes, which are joined and not fitted
    "plateau": (0.113, 0.133, -0.637, 0.011),  # 1 where all means equal the first, 1/2 where they differ by 5% of it
    "plateau x error": (-0.241, -0.104, 0.049, 0.106),
    "plateau x sizes": (0.445, 0.244, 0.133, 0.379),
}
"""For each feature: a and b of the lower side, a and b of the upper side."""
QUANTILES = (0.281, 0.550, 0.739, 0.954, 1.548), (0.136, 0.446, 0.686, 1.004, 2.347)
"""q of the lower and of the upper side at each of `LEVELS`."""

FEATURES = tuple(COEFFICIENTS)
_LOWER_SIZE, _LOWER_GROWTH, _UPPER_SIZE, _UPPER_GROWTH = zip(*COEFFICIENTS.values(), strict=True)
TABLE = (IntervalSide(_LOWER_SIZE, _LOWER_GROWTH, QUANTILES[0]), IntervalSide(_UPPER_SIZE, _UPPER_GROWTH, QUANTILES[1]))
"""The frozen constants of the lower and the upper side; ``size`` and ``growth`` in the order of `FEATURES`."""


def ensemble_interval(
    data: GroupedRuns, ensemble: LawEnsemble, n: FloatArray, level: float, noise: FloatArray | float
) -> tuple[FloatArray, FloatArray]:
    """Interval of the mean error at sizes n (T,) around an ensemble or a single member of one.

    Parameters
    ----------
    data : GroupedRuns
        What it was fitted to, in points.
    ensemble : LawEnsemble
        The fit; one with a single member is compared with the whole ensemble.
    n : ndarray, shape (T,)
        Sizes.
    level : float
        Coverage, between 0 and 1.
    noise : ndarray, shape (T,) or float
        Variance in points² of what the new runs average to: σ²(n) / runs.
    """
    if len(ensemble.members) == 1 and ensemble.members[0] != "measured":
        limits = ensemble.floor, ensemble.ceiling
        return power_interval(data, ensemble.predict, n, level, noise, *limits)
    sizes = np.minimum(np.atleast_1d(n), LARGEST_SIZE)
    known = np.concatenate([data.n, sizes[(sizes < data.n[0]) | (sizes > data.n[-1])]])
    x, reach = describe(data, ensemble, known), log_ratio(data.n, known)
    centre = ensemble.predict(known)
    ends = prediction_interval(centre, x, reach, level=level)
    down, up = (_between(data.n, known, np.abs(end - centre), sizes) for end in ends)
    extra = float(ndtri(0.5 + level / 2.0)) ** 2 * np.asarray(noise, dtype=np.float64)
    middle = ensemble.predict(sizes)
    return middle - np.hypot(down, np.sqrt(extra)), middle + np.hypot(up, np.sqrt(extra))


def _between(n: FloatArray, known: FloatArray, half: FloatArray, sizes: FloatArray) -> FloatArray:
    """Half widths (T,) at sizes from those at the sizes measured, n, and at the sizes asked for beyond them.

    Features change at the sizes measured; between them widths go smoothly and without overshooting (PCHIP).
    """
    order = np.argsort(known)
    found = np.interp(np.log(sizes), np.log(known[order]), half[order])
    inside = (sizes > n[0]) & (sizes < n[-1])
    if inside.any():
        from scipy.interpolate import PchipInterpolator  # slow to load, and single sizes do not need it

        found[inside] = PchipInterpolator(np.log(n), half[: len(n)])(np.log(sizes[inside]))
    return found


def power_interval(
    data: GroupedRuns,
    predict: Callable[[FloatArray], FloatArray],
    n: FloatArray,
    level: float,
    noise: FloatArray | float,
    floor: float | None = 0.0,
    ceiling: float | None = 100.0,
) -> tuple[FloatArray, FloatArray]:
    """Interval for another law, such as the paper's power law.

    The ensemble's interval, extended where it has to be to hold the law's own prediction.

    Parameters
    ----------
    data, n, level, noise
        As in `ensemble_interval`.
    predict : callable
        Maps sizes (T,) to predicted errors (T,) in points.
    floor, ceiling : float or None
        Bounds of the curve, as in `fit_ensemble`.
    """
    sizes = np.minimum(np.atleast_1d(n), LARGEST_SIZE)
    own = predict(sizes)
    low, high = ensemble_interval(data, _whole_ensemble(data, floor, ceiling), sizes, level, noise)
    return np.minimum(low, own), np.maximum(high, own)


@lru_cache(maxsize=16)
def _whole_ensemble(data: GroupedRuns, floor: float | None, ceiling: float | None) -> LawEnsemble:
    """Fit the ensemble once for all levels and sizes that are asked about the same runs."""
    stderr = data.standard_error() if data.replicated else None
    return fit_ensemble(data.n, data.mean, stderr, floor=floor, ceiling=ceiling)


def prediction_interval(
    centre: FloatArray,
    x: FloatArray,
    reach: FloatArray,
    table: tuple[IntervalSide, IntervalSide] = TABLE,
    *,
    level: float = 0.95,
) -> tuple[FloatArray, FloatArray]:
    """Both ends (T,) of the interval of a true mean.

    Parameters
    ----------
    centre : ndarray, shape (T,)
        Predicted errors.
    x : ndarray, shape (T, P)
        Features, see `describe`.
    reach : ndarray, shape (T,)
        log(n / n_last), see `log_ratio`.
    table : tuple of IntervalSide
        Constants of the lower and the upper side.
    level : float
        Coverage, between 0 and 1.
    """
    down, up = (side.quantile(level) * side.scale(x, reach) for side in table)
    return centre - down, centre + up


def describe(data: GroupedRuns, ensemble: LawEnsemble, n: FloatArray) -> FloatArray:
    """Features (T, 14) of an ensemble at sizes n (T,), in the order of `FEATURES`."""
    fitted, predicted = ensemble.predict(data.n), ensemble.predict(n)
    misfit, rising = _nearby(data.n, data.mean, data.mean - fitted, n)
    errors = np.array([ensemble.rolling_error[name] for name in ensemble.members])
    relative = float(ensemble.weights @ np.where(np.isfinite(errors), errors, UNKNOWN_ROLLING))
    # Rolling errors are relative to the value, or to the range where values may cross zero.
    unit = abs(data.mean[-1]) if ensemble.floor is not None else np.ptp(data.mean)
    rolling = relative * unit
    # A curve that has not left its first error may be at chance, and fall by any amount.
    away = float(np.abs(data.mean - data.mean[0]).max()) / (PLATEAU * abs(data.mean[0]) + EPSILON)
    plateau = 1.0 / (1.0 + away**2) if ensemble.floor is not None and len(data.n) > 1 else 0.0
    headroom = np.full(n.shape, NEUTRAL_HEADROOM)
    if ensemble.ceiling is not None:
        headroom = 100.0 - np.clip(predicted, 0.0, 100.0)
    span = max(np.log(data.n[-1] / data.n[0]), np.log(2.0))
    error, sizes = np.log(np.abs(predicted) + 0.3), np.log(len(data.n))
    columns = [
        np.ones(n.shape),
        error,
        np.log(headroom + 1.0),
        np.log(misfit + EPSILON),
        np.full(n.shape, np.log(span)),
        rising,
        np.full(n.shape, np.log(rolling + EPSILON)),
        np.log(ensemble.spread(n) + EPSILON),
        np.full(n.shape, sizes),
        np.full(n.shape, np.log(ensemble.stderr * unit + EPSILON)),
        np.full(n.shape, float(len(data.n) < 3)),
        np.full(n.shape, plateau),
        plateau * error,
        np.full(n.shape, plateau * sizes),
    ]
    return np.column_stack(columns)


def log_ratio(n: FloatArray, n_new: FloatArray) -> FloatArray:
    """Return L (T,), how far sizes lie beyond the measured ones on either side: 0 inside, at most `LONGEST_REACH`."""
    return np.asarray(np.clip(np.maximum(np.log(n_new / n[-1]), np.log(n[0] / n_new)), 0.0, LONGEST_REACH))


def log_distance(reach: FloatArray) -> FloatArray:
    """Log of the log ratio, relative to a doubling of the data."""
    return np.asarray(np.log((reach + INTERPOLATION) / (np.log(2.0) + INTERPOLATION)))


def _nearby(n: FloatArray, mean: FloatArray, residual: FloatArray, n_new: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Misfit and rising (T,) at the measured sizes nearest to each new one.

    Beyond the largest size these are the last three and the last two; step is the rms difference
    of neighbours among the nearest five.
    """
    order = np.argsort(np.abs(np.log(n_new)[:, None] - np.log(n)), axis=1, kind="stable")
    misfit = np.sqrt(np.mean(residual[order[:, :3]] ** 2, axis=1))
    if len(n) < 2:
        return misfit, np.zeros(n_new.shape)
    near = np.sort(order[:, :2], axis=1)
    rise = np.maximum(mean[near[:, 1]] - mean[near[:, 0]], 0.0)
    steps = np.diff(mean[np.sort(order[:, :5], axis=1)], axis=1)
    step = np.sqrt(np.mean(steps**2, axis=1))
    return misfit, rise / (step + misfit + EPSILON)
