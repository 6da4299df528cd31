"""Extrapolation of learning curves by an ensemble weighed inside the training part.

`fit_ensemble` fits a set of laws ``e(n) = a + b g(n)`` (power laws with several emphases on the
last sizes, Morgan-Mercer-Flodin, M4, a one-break law, and the last value), lets each of them
predict later training sizes from shorter prefixes (rolling origin), and averages their curves with
weights that fall with that error. The predicted change from the last value is damped by noise:
where the ensemble's own rolling forecasts erred by as much as it now predicts, it keeps to the
last value. Few sizes, or noisy ones, say little about the tail: then the laws that fit all sizes
take over and count alike (`_tail_evidence`). One or two sizes are not fitted: the measured means
are joined and the last one is carried forward.

The constants below were chosen on the LCDB 1.0 datasets of even id and on pseudo-tasks cut inside
the training points of the 92 scaling curves; ``benchmarks/extrapolation.py`` scores all of both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


HORIZONS = (1.4, 2.0, 2.8, 4.0, 8.0, 16.0)
"""Prefixes end where the last size is at least this many times larger."""


SHORTEST_PREFIX = 3
"""Fewest sizes a rolling-origin fit may use."""


WEIGHT_POWER = 2.0
"""Weights fall as the rolling error to the minus this power."""


PSEUDO_ORIGINS = 0.5
"""Weight, in origins, of the shrinkage of each rolling error towards the members' median."""


ORIGIN_DISCOUNT = 0.5
"""Each shorter prefix counts this much of the one before it."""


DAMPING = 0.1
"""Damping of the predicted change by the squared ratio of rolling noise to it."""


TAIL_NOISE = 0.01
"""Relative standard error, per size beyond three, at which rolling errors count one half."""


WHOLE_CURVE = 0.5
"""Members with at most this emphasis on late sizes stand for the curve as a whole."""


USUAL_NOISE = 0.05
"""Relative noise of one run where nothing is known of it; counts as one observation of it."""


SHORTEST_STEP = 0.1
"""Shorter log distances between an origin and what it forecasts count as this."""


SMALLEST_ERROR = 1e-6
"""Relative errors below this are as good as none."""


RELATIVE_NOISE = 0.03
"""Misfit, relative to the value, added to the standard errors."""


SMALLEST_RELATIVE = 1e-2
"""Values below this share of the largest one count as that share in relative residuals."""


_KNOTS = np.concatenate([np.arange(0.0, 8.0, 0.25), np.arange(8.0, 24.0), np.arange(24.0, 256.0, 8.0)])
"""Log ratios to the last size at which the lowest value so far is taken: nobody asks for more than e^248 times it."""


MOST_POINTS = 96
"""Longer curves are averaged into this many bins, equal in log size."""


def fit_ensemble(
    n: Array, mean: Array, stderr: Array | None = None, *, floor: float | None = 0.0, ceiling: float | None = None
) -> LawEnsemble:
    """Fit every member and weigh it by its rolling-origin error inside the training part.

    Parameters
    ----------
    n : ndarray, shape (S,)
        Strictly increasing positive sizes.
    mean : ndarray, shape (S,)
        Mean errors or losses, in any unit.
    stderr : ndarray, shape (S,), optional
        Standard errors of the means; non-finite entries count as the largest finite one.
    floor : float or None
        Lower bound of the curve; None where values may be negative or rise.
    ceiling : float, optional
        Upper bound of the predictions, such as the error of guessing.

    Returns
    -------
    LawEnsemble
    """
    n, mean, stderr = _thin(*_as_arrays(n, mean, stderr))
    if len(n) < SHORTEST_PREFIX:
        return fit_member("measured", n, mean, stderr, floor, ceiling)
    log_n = np.log(n / n[-1])
    names = tuple(name for name, member in MEMBERS.items() if member.prior > 0.0)
    # Prefixes to fit, by their length: the whole curve first, then ever shorter ones.
    lengths = {int(np.sum(log_n <= 1e-9 - np.log(horizon))) for horizon in HORIZONS}
    ends = [len(log_n), *sorted((k for k in lengths if k >= SHORTEST_PREFIX), reverse=True)]
    curves, tables = _fit_prefixes(names, ends, log_n, mean, stderr, floor)
    errors = _rolling_errors(curves, ends, mean, floor)
    relative = _relative_noise(log_n, mean, stderr, floor)
    evidence = _tail_evidence(len(n), relative)
    whole = np.array([MEMBERS[name].fits_whole_curve for name in names])
    weights = evidence * _weigh_members(names, errors, len(ends) - 1)
    weights += (1.0 - evidence) * whole / whole.sum()
    return LawEnsemble(
        members=names,
        weights=weights,
        parameters=tables,
        rolling_error=dict(zip(names, errors.tolist(), strict=True)),
        n_last=float(n[-1]),
        last=float(mean[-1]),
        noise=evidence * _forecast_noise(weights, curves, ends, log_n, mean, floor),
        stderr=relative,
        floor=floor,
        ceiling=ceiling,
    )


def fit_member(
    name: str,
    n: Array,
    mean: Array,
    stderr: Array | None = None,
    floor: float | None = 0.0,
    ceiling: float | None = None,
) -> LawEnsemble:
    """Fit the one member `name`; arguments and result as in `fit_ensemble`.

    One or two sizes are not fitted, but joined and carried forward ("measured").
    """
    n, mean, stderr = _thin(*_as_arrays(n, mean, stderr))
    if len(n) < SHORTEST_PREFIX and name != "last":
        name = "measured"
    table = MEMBERS[name](n, mean, stderr, floor)
    noise = _relative_noise(np.log(n / n[-1]), mean, stderr, floor)
    known = {name: table}, {name: float("nan")}, float(n[-1]), float(mean[-1])
    return LawEnsemble((name,), np.ones(1), *known, stderr=noise, floor=floor, ceiling=ceiling)


REMEMBERED = 8
"""Arrays of sizes whose predictions an ensemble keeps; an interval asks about three."""


@dataclass(frozen=True)
class LawEnsemble:
    """Fitted members and their weights.

    Attributes
    ----------
    members : tuple of str
        Names, keys of `MEMBERS`.
    weights : ndarray, shape (M,)
        Nonnegative, summing to one.
    parameters : dict
        Per member a table (J, 3 + P): share, asymptote, amplitude and shape of each of the J
        curves the member averages; without a law log sizes and means.
    rolling_error : dict
        Per member the mean relative rolling-origin error; NaN where no prefix was long enough.
    n_last : float
        Largest training size, the unit of all sizes inside.
    last : float
        The value there.
    noise : float
        Root mean square error of the ensemble's rolling forecasts per square root of log distance:
        relative to the value, or plain without a floor. 0 where no prefix was long enough. Scaled
        by the evidence about the tail.
    stderr : float
        Typical standard error of the means, relative to the value (to the range without a floor).
    floor, ceiling : float or None
        Bounds of every prediction.
    """

    members: tuple[str, ...]
    weights: Array
    parameters: dict[str, Array] = field(repr=False)
    rolling_error: dict[str, float]
    n_last: float
    last: float
    noise: float = 0.0
    stderr: float = USUAL_NOISE
    floor: float | None = 0.0
    ceiling: float | None = None

    def predict(self, n_new: Array | Sequence[float] | float) -> Array:
        """Return predicted errors (T,) at sizes (T,).

        The average is geometric where all members are positive and arithmetic otherwise. Beyond
        the last size its change c (a log ratio where there is a floor) is damped to
        ``c / (1 + DAMPING * noise^2 * log(n / n_last) / c^2)``; and where there is a floor, the prediction
        keeps to the lowest so far where damping would let it rise.
        """
        sizes = np.atleast_1d(np.asarray(n_new, dtype=np.float64))
        values = self._damped(sizes)
        beyond = sizes > self.n_last
        if self.floor is None or not beyond.any():
            return values
        # Lowest values so far at fixed sizes: between two of them a prediction lies between both.
        reach = np.log(sizes[beyond] / self.n_last)
        right = np.clip(np.searchsorted(_KNOTS, reach), 1, len(_KNOTS) - 1)
        values[beyond] = np.clip(values[beyond], self._lowest[right], self._lowest[right - 1])
        return values

    @cached_property
    def _lowest(self) -> Array:
        """Lowest value so far at the knots."""
        return np.minimum.accumulate(self._damped(self.n_last * np.exp(_KNOTS)))

    def _damped(self, n_new: Array) -> Array:
        """Return the average of the members at sizes (T,), its change damped beyond the last size."""
        average = _average(self.weights, self.member_predictions(n_new), self.floor)
        reach = np.log(np.maximum(n_new / self.n_last, 1.0))
        relative = self.floor is not None and self.last > 0.0
        usable = (average > 0.0) if relative else np.ones(average.shape, dtype=bool)
        now, then = self.last, average[usable]
        change = np.log(then) - np.log(now) if relative else then - now
        damped = change**3 / (change**2 + DAMPING * self.noise**2 * reach[usable] + 1e-300)
        average[usable] = np.exp(np.log(now) + damped) if relative else now + damped
        return self._clip(average)  # logarithms and exponentials round

    def member_predictions(self, n_new: Array | Sequence[float] | float) -> Array:
        """Return the members' predictions (M, T) at sizes (T,), clipped to floor and ceiling."""
        sizes = np.atleast_1d(np.asarray(n_new, dtype=np.float64))
        # A probability is found by trying levels, and every level asks about the same few sizes several times.
        known = self._predicted.get(key := sizes.tobytes())
        if known is None:
            log_n = np.log(np.maximum(sizes, np.finfo(float).tiny)) - np.log(self.n_last)
            known = self._clip(np.stack([MEMBERS[m].predict(self.parameters[m], log_n) for m in self.members]))
            known.flags.writeable = False
            if len(self._predicted) == REMEMBERED:
                self._predicted.clear()
            self._predicted[key] = known
        return known

    @cached_property
    def _predicted(self) -> dict[bytes, Array]:
        return {}

    def spread(self, n_new: Array | Sequence[float] | float) -> Array:
        """Return the weighted standard deviation (T,) of the members at sizes (T,)."""
        curves = self.member_predictions(n_new)
        deviation = curves - self.weights @ curves
        unit = float(np.abs(deviation).max()) or 1.0
        return np.asarray(unit * np.sqrt(self.weights @ (deviation / unit) ** 2))

    def _clip(self, values: Array) -> Array:
        low = -np.inf if self.floor is None else self.floor
        high = np.inf if self.ceiling is None else self.ceiling
        return np.asarray(np.clip(values, low, high))


def continue_curve(
    value: float | None, n: Array, mean: Array, stderr: Array | None, floor: float | None
) -> Continuation:
    """Continue a curve from a value at its last size, as the constrained power law of the same data goes on.

    Parameters
    ----------
    value : float or None
        The curve at the last size; None for that of the constrained power law.
    n, mean, stderr, floor
        As in `fit_ensemble`; two sizes or more.
    """
    # As rows: share, asymptote, amplitude and rate of each of the power laws that are averaged, at n_last = 1.
    share, a, b, rate = MEMBERS["constrained"](n, mean, stderr, floor).T
    level = float(share @ (a + b))
    value = level if value is None else value
    # Values that may cross zero have no meaningful ratio.
    scale = 1.0 if floor is None else value / level if level > 0.0 else 0.0
    # Without a floor the laws may rise: those that do add nothing.
    return Continuation(float(n[-1]), value, scale * share * np.maximum(b, 0.0), rate)


@dataclass(frozen=True)
class Continuation:
    """A curve beyond its last size that never rises and, where there is a floor, stays above it.

    Attributes
    ----------
    n_last, value : float
        The last size and the value there.
    amplitude, rate : ndarrays, shape (J,)
        ``value - sum(amplitude * (1 - (n / n_last)^-rate))``.
    """

    n_last: float
    value: float
    amplitude: Array
    rate: Array

    def predict(self, n_new: Array) -> Array:
        """Return the curve (T,) at sizes (T,) beyond the last one; infinity gives its limit."""
        fallen = np.expm1(np.multiply.outer(np.log(n_new / self.n_last), -self.rate))
        return np.asarray(self.value + fallen @ self.amplitude)

    def slope(self, n_new: float) -> float:
        """Return the change of the curve with log n."""
        return float(-(self.amplitude * self.rate) @ (n_new / self.n_last) ** -self.rate)


@dataclass(frozen=True)
class Member:
    """A law with an emphasis on late sizes; calling it fits it.

    Attributes
    ----------
    family : str or None
        Key of `FAMILIES`; None is no law: the last `knots` means, joined and held beyond.
    tail : float
        Points weigh ``(n / n_last)^tail``.
    prior : float
        Weight before any rolling error is seen; 0 keeps it out of the ensemble.
    knots : int
        How many of the last means a member without a law keeps.
    """

    family: str | None
    tail: float = 0.0
    prior: float = 1.0
    knots: int = 1

    @property
    def fits_whole_curve(self) -> bool:
        """True for a law that all sizes determine, not the last ones alone."""
        return self.family is not None and self.tail <= WHOLE_CURVE

    def __call__(self, n: Array, mean: Array, stderr: Array | None = None, floor: float | None = 0.0) -> Array:
        """Return the parameter table fitted to sizes, means and errors (S,).

        Rows (J, 3 + P) as in `ShapeFit.table`; without a law log sizes and means (knots, 2).
        """
        log_n = np.log(n / n[-1])
        if self.family is None:
            return np.column_stack([log_n, mean])[-self.knots :]
        weights = self.weigh(log_n, mean, stderr, floor)[None, :]
        fit = fit_shapes(FAMILIES[self.family], log_n, mean, weights / weights.sum(), floor)
        return fit.table(0)

    def predict(self, table: Array, log_n: Array) -> Array:
        """Return the curve (T,) of a fitted table at relative log sizes (T,)."""
        if self.family is None:
            return np.interp(log_n, table[:, 0], table[:, 1])
        basis = FAMILIES[self.family].basis(table[:, 3:], log_n)
        share, a, b = table[:, 0], table[:, 1], table[:, 2]
        return np.asarray(share @ a + (share * b) @ basis)

    def weigh(self, log_n: Array, mean: Array, stderr: Array | None, floor: float | None) -> Array:
        """Return unnormalised weights (S,) of the points."""
        unit = float(np.abs(mean).max()) or 1.0
        size = np.abs(mean) / unit
        # Residuals are relative to the value; those of values that may cross zero have no meaningful ratio.
        scale = np.full_like(size, size.mean() or 1.0) if floor is None else np.maximum(size, SMALLEST_RELATIVE)
        variance = scale**2
        if stderr is not None:
            variance = (RELATIVE_NOISE * scale) ** 2 + (stderr / unit) ** 2
        return np.asarray(np.exp(self.tail * log_n) / variance)


MEMBERS: dict[str, Member] = {
    "last": Member(None),
    "measured": Member(None, prior=0.0, knots=2),
    "constrained": Member("power", 0.5, prior=0.0),
    "power_0": Member("power", 0.0),
    "power_0.5": Member("power", 0.5),
    "power_1": Member("power", 1.0),
    "power_2": Member("power", 2.0),
    "power_3": Member("power", 3.0),
    "mmf4_1": Member("mmf4", 1.0),
    "mmf4_2": Member("mmf4", 2.0),
    "m4_0.5": Member("m4", 0.5),
    "m4_2": Member("m4", 2.0),
    "break_0.5": Member("break", 0.5),
    "break_1": Member("break", 1.0),
    "break_2": Member("break", 2.0),
}
"""Members by name; calling one fits it alone."""


def _as_arrays(n: Array, mean: Array, stderr: Array | None) -> tuple[Array, Array, Array | None]:
    """Return the inputs as float arrays, with unusable standard errors dropped."""
    sizes, values = np.asarray(n, dtype=np.float64), np.asarray(mean, dtype=np.float64)
    noise = np.asarray(np.nan if stderr is None else stderr, dtype=np.float64)
    known = noise[np.isfinite(noise)]
    if not np.any(known > 0.0):
        return sizes, values, None
    # A mean of one replicate has no standard error; it is no better than the worst known one.
    return sizes, values, np.where(np.isfinite(noise), noise, known.max())


def _thin(n: Array, mean: Array, stderr: Array | None) -> tuple[Array, Array, Array | None]:
    """Average curves of more than `MOST_POINTS` points into bins equal in log size."""
    if len(n) <= MOST_POINTS:
        return n, mean, stderr
    log_n = np.log(n)
    edges = np.linspace(log_n[0], log_n[-1], MOST_POINTS + 1)[1:-1]
    _, bins = np.unique(np.searchsorted(edges, log_n), return_inverse=True)
    count = np.bincount(bins)
    sizes = np.exp(np.bincount(bins, log_n) / count)
    values = np.bincount(bins, mean) / count
    if stderr is None:
        return sizes, values, None
    return sizes, values, np.sqrt(np.bincount(bins, stderr**2)) / count


def _fit_prefixes(
    names: tuple[str, ...], ends: list[int], log_n: Array, mean: Array, stderr: Array | None, floor: float | None
) -> tuple[Array, dict[str, Array]]:
    """Fit each member to each of O prefixes, the whole curve first.

    Prefixes are zero weights in one batch per law, so all fits share the basis.

    Returns
    -------
    curves : ndarray, shape (M, O, S)
        Predictions of every fit at all training sizes.
    tables : dict
        Per member the parameter table of the fit to the whole curve.
    """
    inside = np.arange(len(log_n)) < np.array(ends)[:, None]
    curves: dict[str, Array] = {}
    tables: dict[str, Array] = {}
    for family in dict.fromkeys(MEMBERS[name].family for name in names):
        group = [name for name in names if MEMBERS[name].family == family]
        if family is None:
            last = mean[np.array(ends) - 1]
            curves["last"] = np.repeat(last[:, None], len(log_n), axis=1)
            tables["last"] = np.array([[0.0, mean[-1]]])
            continue
        weights = np.concatenate([MEMBERS[name].weigh(log_n, mean, stderr, floor) * inside for name in group])
        weights /= weights.sum(axis=1, keepdims=True)
        fit = fit_shapes(FAMILIES[family], log_n, mean, weights, floor, stderr)
        fitted = fit.curves()
        for i, name in enumerate(group):
            curves[name] = fitted[i * len(ends) : (i + 1) * len(ends)]
            tables[name] = fit.table(i * len(ends))
    return np.stack([curves[name] for name in names]), tables


def _rolling_errors(curves: Array, ends: list[int], mean: Array, floor: float | None) -> Array:
    """Return the relative errors (M,) over what follows the prefixes, from curves (M, O, S).

    Shorter prefixes are further from the task at hand and count ever less.
    """
    if len(ends) == 1:
        return np.full(len(curves), np.nan)
    misses = np.abs(curves - mean) / _value_scale(mean, floor)
    errors = [misses[:, o, end:].mean(axis=1) for o, end in enumerate(ends) if o > 0]
    discount = ORIGIN_DISCOUNT ** np.arange(len(errors))
    return np.asarray(discount @ np.array(errors) / discount.sum())


def _value_scale(mean: Array, floor: float | None) -> Array:
    """Return what relative errors are relative to (S,): the value, or the range without a floor."""
    if floor is None:
        return np.full_like(mean, np.ptp(mean) or 1.0)
    size = np.abs(mean)
    return np.maximum(size, SMALLEST_RELATIVE * (size.max() or 1.0))


def _relative_noise(log_n: Array, mean: Array, stderr: Array | None, floor: float | None) -> float:
    """Return the typical relative standard error of the means.

    Without replicates it is judged by how far each mean lies from the line through its
    neighbours (Gasser, Sroka and Jennen-Steinmetz 1986), together with `USUAL_NOISE`.
    """
    scale = _value_scale(mean, floor)
    if stderr is not None:
        return float(np.sqrt(np.mean((stderr / scale) ** 2)))
    squares = np.zeros(0)
    if len(mean) > 2:
        after = (log_n[1:-1] - log_n[:-2]) / (log_n[2:] - log_n[:-2])
        before = 1.0 - after
        off = mean[1:-1] - before * mean[:-2] - after * mean[2:]
        squares = (off / scale[1:-1]) ** 2 / (1.0 + before**2 + after**2)
    return float(np.sqrt((squares.sum() + USUAL_NOISE**2) / (len(squares) + 1)))


def _tail_evidence(sizes: int, noise: float) -> float:
    """Return how much rolling errors count, between 0 and 1.

    ``1 / (1 + x^2)`` with x the variance ``noise^2`` over that allowed, ``(TAIL_NOISE (S - 3))^2``:
    what a few noisy sizes say about which law follows the tail best is mostly noise.
    """
    spare = sizes - LAW_PARAMETERS
    return 0.0 if spare <= 0 else 1.0 / (1.0 + (noise / (TAIL_NOISE * spare)) ** 4)


def _weigh_members(names: tuple[str, ...], errors: Array, origins: int) -> Array:
    """Return weights (M,) from rolling errors (M,), shrunk towards the members' median.

    ``w ~ prior * ((E + k median(E)) / (1 + k))^-power``, with ``k`` the pseudo-origins over the
    discounted number of origins.
    """
    prior = np.array([MEMBERS[name].prior for name in names])
    if origins == 0:
        return np.asarray(prior / prior.sum())
    k = PSEUDO_ORIGINS / float(np.sum(ORIGIN_DISCOUNT ** np.arange(origins)))
    shrunk = (errors + k * np.median(errors)) / (1.0 + k)
    weights = prior * (shrunk + SMALLEST_ERROR) ** -WEIGHT_POWER
    return np.asarray(weights / weights.sum())


def _forecast_noise(
    weights: Array, curves: Array, ends: list[int], log_n: Array, mean: Array, floor: float | None
) -> float:
    """Return the rms error of the ensemble's forecasts from curves (M, O, S), per root distance.

    Errors are taken to grow as those of a random walk in log size.
    """
    squares: list[float] = []
    for origin, end in enumerate(ends[1:], start=1):
        forecast = _average(weights, curves[:, origin, end:], floor)
        truth = mean[end:]
        step = np.maximum(log_n[end:] - log_n[end - 1], SHORTEST_STEP)
        if floor is None:
            miss = forecast - truth
        else:
            least = SMALLEST_RELATIVE * float(np.abs(mean).max() or 1.0)
            miss = np.log(np.maximum(forecast, least) / np.maximum(truth, least))
        squares.extend((miss**2 / step).tolist())
    return float(np.sqrt(np.mean(squares))) if squares else 0.0


def _average(weights: Array, curves: Array, floor: float | None) -> Array:
    """Return the mean curve (T,) of members (M, T): geometric where all of them are positive."""
    average = np.asarray(weights @ curves)
    if floor is not None:
        positive = np.all(curves > 0.0, axis=0)
        average[positive] = np.exp(weights @ np.log(curves[:, positive]))
    return average


# ---- Single laws e(n) = a + b g(n; shape), with g decreasing and g(n_last) = 1. Given the shape, a and b follow in
# closed form; the shape runs over a fixed grid and is averaged out with posterior-like weights instead of being
# optimised, which is quick, never fails to converge, and keeps short noisy curves from picking an extreme shape.


SMALLEST_RESIDUAL = 1e-12
"""Squared residuals below this share of the signal count as a perfect fit."""


SMALLEST_SHARE = 1e-4
"""Shapes with less than this share of the leading one are dropped from parameter tables."""


LAW_PARAMETERS = 3
"""Parameters of a power law: sizes beyond these tell something of the shape."""


LARGEST_LOG_BASIS = 300.0
"""Cap that keeps the exponentials of far extrapolations towards n = 0 finite."""


TYPICAL_RATE = 0.5
"""Centre of the weak log-normal prior on every exponent."""


RATE_SPREAD = 1.0
"""Standard deviation of that prior, in natural-log units."""


def fit_shapes(
    family: Family, log_n: Array, values: Array, weights: Array, floor: float | None, noise: Array | None = None
) -> ShapeFit:
    """Fit one law under K weightings of the same S points.

    Parameters
    ----------
    family : Family
    log_n : ndarray, shape (S,)
        Log sizes minus the last log size, so the last entry is 0.
    values : ndarray, shape (S,)
    weights : ndarray, shape (K, S)
        Each row sums to one; zeros leave points out.
    floor : float or None
        Lower bound of the asymptote; None lifts it, and the sign constraint of `b` with it.
    noise : ndarray, shape (S,), optional
        Standard errors of the values. Shapes whose squared residuals differ by less than these
        explain are averaged, whichever happens to pass nearest to the points.

    Returns
    -------
    ShapeFit
    """
    shapes = family.shapes(-float(log_n[0]))
    basis = family.basis(shapes, log_n)
    # In units of the largest value the squares below can neither overflow nor vanish.
    unit = float(np.abs(values).max()) or 1.0
    bound = None if floor is None else floor / unit
    a, b, residual = solve_linear(basis, values / unit, weights, bound)
    if noise is not None:
        # By how much mean squared residuals of two shapes differ by chance.
        spare = np.maximum(np.count_nonzero(weights, axis=1) - LAW_PARAMETERS, 1)
        residual = residual + (weights @ (noise / unit) ** 2 / spare)[:, None]
    return ShapeFit(shapes, basis, family.shares(residual, weights), a * unit, b * unit)


@dataclass(frozen=True)
class ShapeFit:
    """A law fitted under K weightings; all shapes with their shares.

    Attributes
    ----------
    shapes : ndarray, shape (G, P)
    basis : ndarray, shape (G, S)
        ``g`` of each shape at the training sizes.
    share, a, b : ndarrays, shape (K, G)
        Shares (rows sum to one), asymptotes and amplitudes.
    """

    shapes: Array
    basis: Array
    share: Array
    a: Array
    b: Array

    def curves(self) -> Array:
        """Return the shape-averaged curves (K, S) at the training sizes."""
        level = np.sum(self.share * self.a, axis=1, keepdims=True)
        return np.asarray(level + (self.share * self.b) @ self.basis)

    def table(self, k: int) -> Array:
        """Return rows ``[share, a, b, *shape]`` (J, 3 + P) of weighting `k`."""
        # Shapes with a negligible share only cost time at prediction.
        keep = np.flatnonzero(self.share[k] > SMALLEST_SHARE * self.share[k].max())
        share = self.share[k, keep] / self.share[k, keep].sum()
        return np.column_stack([share, self.a[k, keep], self.b[k, keep], self.shapes[keep]])


def solve_linear(basis: Array, values: Array, weights: Array, floor: float | None) -> tuple[Array, Array, Array]:
    """Weighted least squares for ``a + b g`` under ``a >= floor`` and ``b >= 0``.

    Parameters
    ----------
    basis : ndarray, shape (G, S)
    values : ndarray, shape (S,)
    weights : ndarray, shape (K, S)
        Rows sum to one.
    floor : float or None
        None: both coefficients are free.

    Returns
    -------
    a, b, residual : ndarrays, shape (K, G)
        Coefficients and weighted squared residuals.
    """
    mean = (weights @ values)[:, None]
    g1 = weights @ basis.T
    g2 = weights @ (basis * basis).T
    gy = weights @ (basis * values).T
    yy = (weights @ (values * values))[:, None]
    spread = np.maximum(g2 - g1 * g1, 1e-14 * g2)
    b = (gy - g1 * mean) / spread
    a = mean - b * g1
    if floor is not None:
        low = a < floor
        a = np.where(low, floor, a)
        b = np.where(low, (gy - floor * g1) / g2, b)
        rising = b < 0.0
        b = np.where(rising, 0.0, b)
        a = np.where(rising, np.maximum(mean, floor), a)
    residual = yy - 2 * a * mean - 2 * b * gy + a * a + 2 * a * b * g1 + b * b * g2
    tiny = SMALLEST_RESIDUAL * yy + np.finfo(float).tiny
    return a, b, np.maximum(residual, tiny)


@dataclass(frozen=True)
class Family:
    """One law: its shape function, its shape grid and how sharply the grid is weighed.

    Attributes
    ----------
    log_basis : callable
        Maps shapes (G, P) and log sizes relative to the last one (T,) to ``log g`` (G, T).
    grid : ndarray, shape (G, P)
        Shape parameters.  Those in `span_columns` are shares of the observed log span.
    rate_columns : tuple of int
        Columns that are exponents, and so fall under the weak prior.
    sharpness : float
        Exponent of the grid weights (see `shares`).
    per_point : bool
        Whether that exponent grows with the number of points.
    span_columns : tuple of int
        Columns to be multiplied by the log span of the training sizes.
    """

    log_basis: Callable[[Array, Array], Array]
    grid: Array
    rate_columns: tuple[int, ...]
    sharpness: float
    per_point: bool = False
    span_columns: tuple[int, ...] = ()

    def shapes(self, span: float) -> Array:
        """Return the grid (G, P) for training sizes spanning `span` natural-log units."""
        shapes = self.grid.copy()
        shapes[:, list(self.span_columns)] *= span
        return shapes

    def basis(self, shapes: Array, log_n: Array) -> Array:
        """Return ``g`` (G, T) at relative log sizes (T,), with ``g = 1`` at the last training size."""
        log_basis = self.log_basis(shapes, np.append(log_n, 0.0))
        return np.exp(np.minimum(log_basis[:, :-1] - log_basis[:, -1:], LARGEST_LOG_BASIS))

    def shares(self, residual: Array, weights: Array) -> Array:
        """Return the share (K, G) of each shape, from residuals (K, G) and weights (K, S).

        ``share ~ prior * residual^-power``.  For the power law the exponent is proportional to
        ``m - 2``, where ``m = 1 / sum w^2`` is the effective number of points, as in the posterior of a
        Gaussian model of unknown variance.  The richer laws keep a constant exponent: what limits
        them is that no shape is right, not noise, so more points must not make them more certain.
        """
        effective = 1.0 / np.sum(weights * weights, axis=1)
        points = np.maximum(effective - 2.0, 1.0) if self.per_point else np.ones(len(weights))
        rates = np.log(self.grid[:, list(self.rate_columns)] / TYPICAL_RATE)
        log_prior = -0.5 * np.sum((rates / RATE_SPREAD) ** 2, axis=1)
        log_share = log_prior - (self.sharpness * points)[:, None] * np.log(residual)
        share = np.exp(log_share - log_share.max(axis=1, keepdims=True))
        return np.asarray(share / share.sum(axis=1, keepdims=True))


def _log_power(shapes: Array, log_n: Array) -> Array:
    """``g = n^-c``; shapes (G, 1) hold ``c``."""
    return -shapes[:, :1] * log_n


def _log_mmf4(shapes: Array, log_n: Array) -> Array:
    """Morgan-Mercer-Flodin ``g = 1 / (1 + n^d / b)``; shapes (G, 2) hold ``d, -log b``.

    ``(a b + c n^d) / (b + n^d) = c + (a - c) / (1 + n^d / b)``, so it is linear in two of four.
    """
    return -np.logaddexp(0.0, shapes[:, 1:2] + shapes[:, :1] * log_n)


def _log_m4(shapes: Array, log_n: Array) -> Array:
    """M4 of Alabdulmohsin et al. (2022); shapes (G, 3) hold ``c, log b, alpha``.

    With ``t = (e - e_inf) / (e_0 - e_inf)`` the law reads ``t / (1 - t)^alpha = b n^-c``; its
    inverse is tabulated once per ``alpha`` on a logistic scale of ``t`` and interpolated.
    """
    log_u = shapes[:, 1:2] - shapes[:, :1] * log_n
    log_t = np.empty_like(log_u)
    for alpha in np.unique(shapes[:, 2]):
        rows = shapes[:, 2] == alpha
        log_t[rows] = np.interp(log_u[rows], _LOG_T - alpha * _LOG_ONE_MINUS_T, _LOG_T)
    return log_t


_LOGIT = np.linspace(-60.0, 30.0, 3001)


_LOG_T = -np.logaddexp(0.0, -_LOGIT)


_LOG_ONE_MINUS_T = -np.logaddexp(0.0, _LOGIT)


def _log_break(shapes: Array, log_n: Array) -> Array:
    """One-break law ``g = n^-c0 (1 + (n / d)^(1/f))^(-(c1 - c0) f)``.

    Shapes (G, 4) hold ``c0, c1, log d, f``: the slope before and after the break, where it is
    and how wide.
    """
    before, after, place, width = (shapes[:, i : i + 1] for i in range(4))
    return -before * log_n - (after - before) * width * np.logaddexp(0.0, (log_n - place) / width)


def _cross(*axes: object) -> Array:
    """Return the Cartesian product of the axes as rows (G, P)."""
    return np.array(list(product(*axes)), dtype=np.float64)  # type: ignore[call-overload]


FAMILIES: dict[str, Family] = {
    "power": Family(_log_power, np.geomspace(0.02, 3.0, 200)[:, None], (0,), sharpness=4.0, per_point=True),
    "mmf4": Family(_log_mmf4, _cross(np.geomspace(0.05, 3.0, 20), np.linspace(-3.0, 4.0, 15)), (0,), sharpness=2.5),
    "m4": Family(
        _log_m4, _cross(np.geomspace(0.05, 3.0, 18), np.linspace(-4.0, 3.0, 14), (0.5, 2.0, 4.0)), (0,), sharpness=2.5
    ),
    "break": Family(
        _log_break,
        _cross(
            (0.02, 0.05, 0.1, 0.2, 0.4, 0.8),
            (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6),
            np.linspace(-0.85, -0.15, 5),
            (0.15, 0.6),
        ),
        (0, 1),
        sharpness=2.5,
        span_columns=(2,),
    ),
}
"""The laws that members are built from."""
