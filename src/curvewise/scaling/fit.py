"""Fitted laws: forms weighed by how well they predict the largest runs from the smaller ones, bands and intervals.

Inside the runs at hand the largest are held out at several factors of compute, every member of a small family is fitted
to the rest, and members count by the inverse of their mean square error there. The same errors say how fast a
prediction drifts off with the distance in compute, which is the scale of prediction bands.

Confidence intervals follow the profile of the objective: how far a quantity can move before the fit becomes too bad.
For least squares with normal errors this is the profile likelihood with its exact small-sample quantile. For Huber's
function, and for runs whose rows are not independent, the same curve is compared with a threshold that is scaled by
the sandwich variance of the estimate: the curve gives the interval its shape, the sandwich its width. Where forms are
weighed, limits are quantiles of refits to weighted runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtrit

from curvewise.errors import InputError, arg
from curvewise.scaling.forms import BLOCK, FORMS, HUBER, Bowl, Data, Form, Place, fit_global, minimise
from curvewise.scaling.runs import ScalingRuns, count_sizes
from curvewise.text import format_count
from curvewise.types.results import FloatArray

FAMILY = ("additive", "tied", "coupled")
EMPHASES = (0.0, 0.5)
"""Powers of compute by which rows are weighted: all alike, and the large more, which lie nearer to what is asked."""
INNER = (2.0, 4.0, 8.0, 16.0)
"""Factors of compute that are held out inside the data."""
FEWEST_INNER = 8
"""Runs that must be left to fit to."""
DRIFT = 0.0085
"""Drift of log loss per factor e of compute, where too few runs show it: the median over the benchmark's data sets."""
REACH = 1.5
"""Multiple of the drift in a 95% prediction band. In the backtests of `benchmarks/scaling.py`, with one weight per
source, 95% of the held-out losses take 1.28 where forms are weighed and 1.62 for a single form."""
NEAREST = 1e-6
"""Log errors below this count as this: neither a mean of logarithms nor weights must hang on a lucky hit."""
NEAREST_LEAST = 8
"""Rows, at least, whose residuals show the noise at a place."""

Design = tuple[str, float]
"""A form by name, and a power of compute."""


InnerErrors = tuple[list[FloatArray], list[FloatArray]]
"""Errors of log loss of held-out runs and their distances, as :func:`inner_errors` returns them."""


class WeighedLaw(NamedTuple):
    """One fitted law of a forecast."""

    design: Design
    data: Data
    theta: FloatArray
    value: float
    weight: float = 1.0

    def log_loss(self, at: Place) -> FloatArray:
        """Predicted log loss at places, shape (n,)."""
        return np.asarray(np.log(self.data.form.loss(self.theta[None], at)[0]))


def make_place(runs: ScalingRuns) -> Place:
    """Return the sizes of runs as logarithms."""
    unique = None if runs.unique_tokens is None else np.log(runs.unique_tokens)
    return Place(np.log(runs.params), np.log(runs.tokens), unique)


def make_data(
    runs: ScalingRuns, form: str, loss: str = "huber", emphasis: float = 0.0, base: Mapping[str, float] | None = None
) -> Data:
    """Return the problem of fitting a form to runs; with ``base`` only the constants of repeated data are fitted."""
    at = make_place(runs)
    made: Form = FORMS[form](float(at.params.mean()), float(at.tokens.mean()))
    weights = None
    if emphasis:
        weights = (runs.compute / runs.compute.max()) ** emphasis
        weights = weights / weights.mean()
    delta = HUBER if loss == "huber" else np.inf
    fixed = None
    if base is not None:
        fixed = made.private({**base, "R_D": 1.0, "R_N": 1.0})
        fixed[5:] = np.nan
    return Data(made.shift(at), np.log(runs.loss), made, delta, weights, logs=loss != "linear", fixed=fixed)


def fit_forecast(
    runs: ScalingRuns,
    designs: Sequence[Design],
    loss: str = "huber",
    base: Mapping[str, float] | None = None,
    known: bool = True,
) -> Forecast:
    """Fit members to runs and weigh them by inner backtests."""
    # Beside others, a form that nearly interpolates the runs has nothing to say.
    spare = 1 if len(designs) > 1 else 0
    members = [m for m in (_fit(runs, design, loss, spare, base) for design in designs) if m is not None]
    if not members:
        raise InputError(
            f"holds {format_count(runs.count, 'run')}, too few to weigh forms: choose one with {arg('form', 'tied')}.",
            argument="runs",
        )
    if len(members) == 1:
        return Forecast((members[0],), runs, loss, base, known)
    inner = inner_errors(runs, [m.design for m in members], loss, base)
    weights = _weights(inner[0], len(members))
    weighted = tuple(m._replace(weight=float(w)) for m, w in zip(members, weights, strict=True))
    return Forecast(weighted, runs, loss, base, known, inner)


def _fit(
    runs: ScalingRuns, design: Design, loss: str, spare: int, base: Mapping[str, float] | None
) -> WeighedLaw | None:
    """Fit one member; None where there are fewer runs than its parameters and some to spare, or too few sizes."""
    data = make_data(runs, design[0], loss, design[1], base)
    few_sizes = spare and data.size > 4 and min(map(count_sizes, make_place(runs)[:2])) < 3
    if runs.count < data.size + spare or few_sizes:
        return None
    theta, value = fit_global(data)
    return WeighedLaw(design, data, theta, value)


def inner_errors(
    runs: ScalingRuns, designs: Sequence[Design], loss: str = "huber", base: Mapping[str, float] | None = None
) -> InnerErrors:
    """Hold out the largest runs at each factor of :data:`INNER`.

    Returns
    -------
    errors : list of ndarray, shape (members, held out)
        Signed errors of log loss for each factor that leaves enough to fit to; NaN for members that could not be.
    distances : list of ndarray, shape (held out,)
        Log of compute over the largest that was fitted.
    """
    errors, distances = [], []
    for factor in INNER:
        kept, held = split_by_compute(runs, factor)
        if not kept.any() or not held.any():
            continue
        inside = runs.select(kept)
        if inside.count < FEWEST_INNER or min(len(np.unique(v)) for v in (inside.params, inside.tokens)) < 3:
            continue
        outside = runs.select(held)
        at, measured = make_place(outside), np.log(outside.loss)
        fits = [_fit(inside, design, loss, 1, base) for design in designs]
        failed = np.full(len(outside), np.nan)
        errors.append(np.stack([failed if m is None else m.log_loss(at) - measured for m in fits]))
        distances.append(np.log(outside.compute / inside.compute.max()))
    return errors, distances


def split_by_compute(runs: ScalingRuns, factor: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return masks of the rows to fit to, up to the largest compute over a factor, and of those held out."""
    held = runs.compute > runs.compute.max() / factor * (1 + 1e-9)
    # Earlier checkpoints of a run that is held out share its error: they are not fitted either.
    return ~np.isin(runs.groups, runs.groups[held]), held


def _weights(errors: Sequence[FloatArray], count: int) -> FloatArray:
    """Weights by the inverse mean square error, its logarithm averaged over the factors; equal without any."""
    if not errors or count == 1:
        return np.full(count, 1.0 / count)
    logs = np.stack([0.5 * np.log(np.maximum((e**2).mean(axis=1), NEAREST**2)) for e in errors])
    known = ~np.isnan(logs)
    score = np.where(known, logs, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    # A member that could not be tried is taken to be as bad as the worst that was.
    score[~known.any(axis=0)] = score[known.any(axis=0)].max()
    weights = np.exp(-2.0 * (score - score.min()))
    return np.asarray(weights / weights.sum())


Quantity: TypeAlias = Callable[[FloatArray], FloatArray]
"""From parameters of K laws, shape (K, P), to a number for each, shape (K,)."""


class QuantityFamily(NamedTuple):
    """Several quantities that are computed together.

    Attributes
    ----------
    number : int
        Number Q of quantities.
    value : callable
        From parameters of K laws, shape (K, P), and the number of a quantity for each, shape (K,), to these
        quantities, shape (K,).
    """

    number: int
    value: Callable[[FloatArray, NDArray[np.intp]], FloatArray]

    @classmethod
    def of(cls, quantities: Sequence[Quantity]) -> Self:
        """Make a family of single quantities."""

        def value(theta: FloatArray, which: NDArray[np.intp]) -> FloatArray:
            found = np.empty(len(theta))
            for k, quantity in enumerate(quantities):
                if (here := which == k).any():
                    found[here] = quantity(theta[here])
            return found

        return cls(len(quantities), value)

    def slope(self, theta: FloatArray, which: NDArray[np.intp]) -> FloatArray:
        """Return derivatives, shape (K, P), by central differences."""
        count, size = theta.shape
        step = 1e-6 * (1.0 + np.abs(theta))
        moved = step[:, :, None] * np.eye(size)  # (K, P, P)
        points = np.concatenate([theta[:, None] + moved, theta[:, None] - moved], axis=1)
        value = self.value(points.reshape(-1, size), np.repeat(which, 2 * size)).reshape(count, 2, size)
        return np.asarray((value[:, 0] - value[:, 1]) / (2 * step))


STIFFNESS = 1e3
"""Weight of the penalty that holds a quantity at its aim, over the curvature of the profile."""
REFITS = 200
"""Refits with random weights that show the variance of estimates of Huber's loss."""
CLOSE = 1e-3
"""Relative distance from the threshold, on the scale of standard errors, at which a limit is found."""


@dataclass(frozen=True, eq=False)
class ProfileIntervals:
    """Intervals of any quantities of one fitted law.

    Attributes
    ----------
    data : Data
        Runs, form and loss.
    theta : ndarray, shape (P,)
        The fit.
    value : float
        Its objective.
    groups : ndarray of int, shape (n,)
        Run of each row, from 0 on; rows of one run are left out and counted together.
    alike : bool
        False for runs that do not have one noise, which count by their own errors as those with checkpoints do.
    """

    data: Data
    theta: FloatArray
    value: float
    groups: NDArray[np.intp]
    alike: bool = True

    def limits(self, quantities: Sequence[Quantity] | QuantityFamily, level: float = 0.95) -> FloatArray:
        """Return low and high of each quantity, shape (2, Q); infinite where the data do not bound it."""
        family = quantities if isinstance(quantities, QuantityFamily) else QuantityFamily.of(quantities)
        every, fitted = np.arange(family.number), np.tile(self.theta, (family.number, 1))
        slopes = family.slope(fitted, every)
        moved = np.flatnonzero(np.einsum("qp,pr,qr->q", slopes, self.inverse, slopes) > 0)
        if len(moved) < family.number:  # the others follow from parameters that are not fitted, or that no run shows
            found = np.tile(family.value(fitted, every), (2, 1))
            found[:, (slopes * self.data.free != 0).any(axis=1)] = [[-np.inf], [np.inf]]
            if len(moved):
                part = QuantityFamily(len(moved), lambda theta, which: family.value(theta, moved[which]))
                found[:, moved] = self.limits(part, level)
            return found
        scale, degrees = self._grouped(slopes) if not self.independent else self._single(family, slopes)
        threshold = 0.5 * stdtrit(degrees, 0.5 + level / 2) ** 2 * scale
        return _search(self, family, slopes, threshold)

    def _single(self, family: QuantityFamily, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the scale of the objective's drop for each quantity where rows are independent, and its degrees.

        With equal noise in all rows it is :attr:`noise`, for squares the variance of the residuals, with n − P degrees
        of freedom. Where noise varies with N and D as :attr:`spread` says, it is larger by a known ratio if the
        estimate rests on noisier rows than most. Where the variance of an estimate is clearly larger than that, by the
        squared errors of the rows that it rests on (squares) or by refits with random weights (Huber), so is the scale:
        the log r of this further ratio is shrunk as James and Stein do, by 1 − s²/r², with s the error of r.
        """
        n, size = len(self.groups), self.data.size
        influence = (slopes @ self.inverse @ self.jacobian) ** 2
        total = influence.sum(axis=1)
        if np.isinf(self.data.delta):
            square, variance = self.errors**2, self.spread**2
            known = np.log(influence @ variance / total / variance.mean())
            ratio = np.log(influence @ square / total / square.mean()) - known
            share, standard = influence * variance, square / variance
            error = standard.var() / standard.mean() ** 2 * (share**2).sum(axis=1) / share.sum(axis=1) ** 2
        else:
            known = self._known_ratio(slopes)
            refits, count = self.refits, family.number
            values = family.value(np.tile(refits, (count, 1)), np.repeat(np.arange(count), len(refits)))
            values = values.reshape(count, len(refits))
            low, high = np.quantile(values, [0.16, 0.84], axis=1)
            # The curvature of the profile itself, over a standard error on either side.
            spread = total * self.noise / self.steepness
            walk = _Walk(self, family, np.maximum(np.sqrt(spread), 1e-15))
            held, _ = walk.fit_at(np.arange(2 * count), walk.start + walk.sign * walk.step)
            rise = np.maximum(self.data.value(held) - self.value, 0.0).reshape(2, -1).mean(axis=0)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.log((high - low) ** 2 / 4 * 2 * rise / spread / self.noise)
            # Refits to few rows vary too little, by about the share of the rows that parameters take up.
            ratio = np.nan_to_num(ratio - 1.5 * np.log1p(-size / n) if n > size else ratio, posinf=0.0, neginf=0.0)
            ratio -= known
            error = 8.0 * (influence**2).sum(axis=1) / total**2
        with np.errstate(divide="ignore"):
            kept = np.maximum(0.0, 1.0 - error / ratio**2)
        return self.noise * np.exp(np.clip(known + kept * ratio, 0.0, 3.0)), np.full(len(slopes), float(n - size))

    def _known_ratio(self, slopes: FloatArray) -> FloatArray:
        """Return the log of the scale for each quantity over :attr:`noise`, for Huber's loss and :attr:`spread`."""
        # Pulls and curvature of a row are functions of its spread, which a few of its values show.
        some = np.geomspace(self.spread.min(), self.spread.max(), 17)
        standard, delta = self.errors / self.spread, self.data.delta
        pulls = (np.clip(some[:, None] * standard, -delta, delta) ** 2).mean(axis=1)
        bend, pull = (np.interp(self.spread, some, v) for v in (mean_steepness(standard, delta / some), pulls))
        path = slopes @ inverse_of_squares(self.jacobian * np.sqrt(bend))
        variance = (path @ self.jacobian) ** 2 @ pull
        return np.asarray(np.log(variance / (path * slopes).sum(axis=1) * bend.mean() / pull.mean()))

    def _grouped(self, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return scales and degrees of freedom where rows are checkpoints of runs: the runs' pulls are squared."""
        pull = np.clip(self.errors, -self.data.delta, self.data.delta)
        influence = slopes @ self.inverse @ self.jacobian
        count = int(self.groups.max()) + 1
        member = np.arange(count)[:, None] == self.groups
        totals, parts = member @ (influence * pull).T, member @ (influence**2).T
        weight = parts.sum(axis=0)
        degrees = (1 - 1 / count) * weight**2 / (parts**2).sum(axis=0)  # Satterthwaite's
        return (totals**2).sum(axis=0) / weight / self.steepness, degrees

    @cached_property
    def refits(self) -> FloatArray:
        """Parameters of fits with exponential weights of the rows, shape (resamples, P)."""
        weights = np.random.default_rng(0).exponential(size=(REFITS, len(self.groups)))
        return refit(self.data, self.theta, weights)

    @property
    def independent(self) -> bool:
        """True where each row is a run of its own, and all have one noise."""
        return self.alike and int(self.groups.max()) + 1 == len(self.groups)

    @cached_property
    def spread(self) -> FloatArray:
        """Standard deviations of the rows' errors over their geometric mean: log-linear in N and D, shape (n,).

        The logarithms of squared errors are regressed on log N and log D (Harvey 1976). What is fitted is shrunk by the
        share that chance alone would explain: the log of a squared normal error has the variance π²/2.
        """
        at, square = self.data.at, self.errors**2
        design = np.column_stack([np.ones_like(at.params), at.params, at.tokens])
        logs = np.log(square + 1e-4 * np.median(square) + 1e-300)  # no error is so small that it decides
        fitted = design @ np.linalg.lstsq(design, logs, rcond=None)[0]
        fitted -= fitted.mean()
        explained = float((fitted**2).sum())
        kept = max(0.0, 1.0 - np.pi**2 / explained) if explained > 0 else 0.0  # two slopes
        return np.asarray(np.exp(0.5 * kept * fitted))

    @cached_property
    def noise(self) -> float:
        """Mean square of the rows' pulls over the mean curvature of their terms."""
        pull = np.clip(self.errors, -self.data.delta, self.data.delta)
        return float((pull**2).mean() / self.steepness)

    @cached_property
    def steepness(self) -> float:
        """Mean second derivative of Huber's function over the distribution of errors; 1 for squares."""
        return float(mean_steepness(self.errors, self.data.delta))

    @cached_property
    def errors(self) -> FloatArray:
        """Errors of rows, in the objective's scale, as independent runs would have them, shape (n,).

        Each run is predicted by a fit without it; such errors are too large by the error of that fit, which
        (I − H)^½ takes off, for H the rows' part of the hat matrix. For squares these are the residuals of CR2.
        """
        count = int(self.groups.max()) + 1
        out = np.empty(len(self.groups))
        block = max(1, BLOCK // len(self.groups))
        for first in range(0, count, block):
            left_out = np.arange(first, min(first + block, count))
            weights = (left_out[:, None] != self.groups).astype(np.float64)
            theta = refit(self.data, self.theta, weights, steps=40, tol=1e-7)
            row, column = np.nonzero(weights == 0)
            out[column] = -self.data.residuals(theta)[row, column]
        if self.independent:
            hat = np.einsum("pn,pq,qn->n", self.jacobian, self.inverse, self.jacobian)
            return np.asarray(out * np.sqrt(np.clip(1 - hat, 0.02, 1.0)))
        for group in range(count):
            rows = np.flatnonzero(self.groups == group)
            part = self.jacobian[:, rows]
            values, vectors = np.linalg.eigh(part.T @ self.inverse @ part)
            out[rows] = vectors @ (np.sqrt(np.clip(1 - values, 0.02, 1.0)) * (vectors.T @ out[rows]))
        return out

    @cached_property
    def jacobian(self) -> FloatArray:
        """Derivatives of log loss, or of the loss itself, in the parameters, shape (P, n)."""
        values = self.data.form.values(self.theta[None], self.data.at)
        slope = values.slope[0] / values.loss[0] if self.data.logs else values.slope[0]
        return np.asarray(slope * self.data.free[:, None])

    @cached_property
    def inverse(self) -> FloatArray:
        """Inverse of JJᵀ, shape (P, P)."""
        return inverse_of_squares(self.jacobian)


def inverse_of_squares(jacobian: FloatArray) -> FloatArray:
    """Return the inverse of JJᵀ, shape (P, P), for J of shape (P, n) whose rows differ widely in size."""
    size = np.sqrt((jacobian**2).sum(axis=1))
    size = np.where(size > 0, size, np.inf)  # a parameter that nothing depends on has no variance
    unit = jacobian / size[:, None]
    return np.asarray(np.linalg.pinv(unit @ unit.T, rcond=1e-13, hermitian=True) / np.outer(size, size))


def mean_steepness(error: FloatArray, delta: FloatArray | float) -> Any:
    """Return the mean second derivative of Huber's function over the distribution of errors; 1 for squares.

    Few rows lie within δ, so that the share of those that do is smoothed over a normal kernel.
    """
    top = np.asarray(delta)[..., None]
    quarter = np.subtract(*np.quantile(error, [0.75, 0.25])) / 1.349
    spread = min(x for x in (quarter, error.std(), np.inf) if x > 0)
    if not np.isfinite(spread):
        return np.ones(top.shape[:-1])
    width = 1.06 * spread * len(error) ** -0.2  # Silverman's rule
    return (ndtr((top - error) / width) - ndtr((-top - error) / width)).mean(axis=-1)


def refit(data: Data, theta: FloatArray, weights: FloatArray, *, steps: int = 100, tol: float = 1e-9) -> FloatArray:
    """Fit again with weights of the rows, shape (K, n), beginning from a fit: shape (K, P)."""
    found = np.empty((len(weights), len(theta)))
    block = max(1, BLOCK // weights.shape[1])
    for first in range(0, len(weights), block):
        part = weights[first : first + block]

        def objective(theta: FloatArray, which: NDArray[np.intp], part: FloatArray = part) -> Bowl:
            return data.bowl(theta, part[which])

        start = np.tile(theta, (len(part), 1))
        found[first : first + len(part)] = minimise(objective, start, data.form, data.bounds, steps=steps, tol=tol)[0]
    return found


class _Walk:
    """Fits with quantities held below and above the estimate: problems k and Q + k are those of quantity k.

    Parameters
    ----------
    fit : ProfileIntervals
        Data and estimate.
    family : QuantityFamily
        The quantities that are held.
    step : ndarray, shape (Q,)
        Distance of about a standard error.
    """

    def __init__(self, fit: ProfileIntervals, family: QuantityFamily, step: FloatArray) -> None:
        count = family.number
        self.fit, self.family = fit, family
        self.which, self.sign = np.tile(np.arange(count), 2), np.repeat([-1.0, 1.0], count)
        self.step = np.tile(step, 2)
        self.theta = np.tile(fit.theta, (2 * count, 1))
        self.start = self.family.value(self.theta, self.which)
        self.value = self.start.copy()
        slopes = self.family.slope(self.theta, self.which)
        path = slopes @ fit.inverse
        length = np.einsum("qp,qp->q", path, slopes)
        # A step of about a standard error would lead parameters that the runs hardly show beyond both their bounds,
        # where the search for the best fit gets lost: there the bounds count as what is known of them.
        low, high = fit.data.bounds
        room = np.where(high > low, high - low, np.inf)
        self.astray = astray = (np.abs(path) * (self.step / np.maximum(length, 1e-300))[:, None] > room).any(axis=1)
        if astray.any():
            held = inverse_of_squares(np.hstack([fit.jacobian, np.diag(np.sqrt(fit.noise) / room)]))
            path[astray] = slopes[astray] @ held
            wide, length = length, np.where(astray, np.einsum("qp,qp->q", path, slopes), length)
            self.step = self.step * np.sqrt(length / np.maximum(wide, 1e-300))
        self.path = path / np.maximum(length, 1e-300)[:, None]
        # To first order the objective rises by (distance)² · curvature / 2.
        self.stiff = STIFFNESS * fit.steepness / np.maximum(length, 1e-300)

    @np.errstate(divide="ignore", invalid="ignore")  # a trial step without a quantity is not taken
    def fit_at(self, active: NDArray[np.intp], aim: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Fit the active problems with their quantities held near ``aim``; return parameters and quantities.

        A stiff spring pulls the quantity there; where it ends up, the fit is the best of all that have it there.
        """
        data, stiff, which = self.fit.data, self.stiff[active], self.which[active]

        def spring(theta: FloatArray, k: NDArray[np.intp]) -> Bowl:
            plain, slope = data.bowl(theta), self.family.slope(theta, which[k])
            gap = self.family.value(theta, which[k]) - aim[k]
            outer = stiff[k, None, None] * slope[:, :, None] * slope[:, None, :]
            return Bowl(
                plain.value + 0.5 * stiff[k] * gap**2,
                plain.gradient + (stiff[k] * gap)[:, None] * slope,
                plain.curvature + outer,
                plain.metric + outer,
            )

        guess = self.theta[active] + self.path[active] * (aim - self.value[active])[:, None]
        guess = np.where(np.isfinite(guess), guess, self.theta[active])
        theta, reached = minimise(spring, guess, data.form, data.bounds, steps=40, tol=1e-7)
        if (again := np.flatnonzero(self.astray[active])).size:
            # A straight line is a poor guess where bounds are near: begin from the last fit, too.
            start, other = self.theta[active[again]], lambda theta, k: spring(theta, again[k])
            second, lowest = minimise(other, start, data.form, data.bounds, steps=100, tol=1e-7)
            better = ~(lowest >= reached[again])
            theta[again[better]] = second[better]
        return theta, self.family.value(theta, which)


def _search(fit: ProfileIntervals, family: QuantityFamily, slopes: FloatArray, threshold: FloatArray) -> FloatArray:
    """Walk each quantity down and up until the best objective with it held there has risen by the threshold."""
    count = family.number
    goal = np.sqrt(np.tile(threshold, 2))
    length = np.maximum(np.einsum("qp,pr,qr->q", slopes, fit.inverse, slopes) / fit.steepness, 1e-30)
    walk = _Walk(fit, family, np.sqrt(2 * threshold * length))
    sign, start, step = walk.sign, walk.start, walk.step
    # ``walk`` holds the furthest point below the threshold; beyond lies the nearest above it.
    rise_near = np.zeros(2 * count)
    far, rise_far = np.full(2 * count, np.nan), np.full(2 * count, np.nan)
    limit, stalled = sign * np.inf, np.zeros(2 * count, dtype=np.int64)
    aim = start + sign * step
    active = np.arange(2 * count)
    for turn in range(40):
        theta, value = walk.fit_at(active, aim[active])
        rise = np.sqrt(np.maximum(fit.data.value(theta) - fit.value, 0.0))
        found = np.abs(rise - goal[active]) <= CLOSE * goal[active]
        limit[active[found]] = value[found]
        below = rise < goal[active]
        near = walk.value[active]
        moved = sign[active] * (value - near) > 1e-3 * np.abs(aim[active] - near)
        # Where the profile is flatter than at the fit, the spring must be stiffer to lead the quantity on.
        walk.stiff[active] *= np.where(np.abs(value - aim[active]) > 0.05 * np.abs(aim[active] - near), 10.0, 1.0)
        forward = below & moved
        place = active[forward]
        walk.path[place] = (theta - walk.theta[active])[forward] / (value - near)[forward, None]
        walk.value[place], walk.theta[place], rise_near[place] = value[forward], theta[forward], rise[forward]
        far[active[~below]], rise_far[active[~below]] = value[~below], rise[~below]
        between = ~np.isnan(far[active])
        stalled[active] = np.where(below & ~moved, stalled[active] + 1, 0)
        near = walk.value[active]
        # No further along: parameters are at their bounds, and the data do not rule out what lies there.
        given_up = ~found & ((stalled[active] > 2) | (np.abs(near - start[active]) > 1e3 * step[active]))
        # Huber's objective can jump across the threshold, from one valley to another.
        given_up |= ~found & between & (np.abs(far[active] - near) <= CLOSE * step[active])
        limit[active[given_up & between]] = near[given_up & between]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (goal - rise_near)[active] / (rise_far - rise_near)[active]
            inside = near + (far[active] - near) * (np.clip(share, 0.1, 0.9) if turn % 3 else 0.5)
            ratio = np.clip(goal[active] / rise_near[active] - 1, 0.2, 2.0)
            beyond = np.maximum(np.abs(near - start[active]) * ratio, step[active] * 0.25) * 2.0 ** stalled[active]
        beyond = np.where(np.isfinite(beyond), beyond, step[active])
        aim[active] = np.where(between, inside, near + sign[active] * beyond)
        active = active[~(found | given_up)]
        if not len(active):
            break
    unfinished = active[~np.isnan(far[active])]
    limit[unfinished] = walk.value[unfinished]
    return limit.reshape(2, count)


RESAMPLES = 400
"""Refits of each member behind intervals where forms are weighed."""
NODES = 9
"""Budgets at which limits are searched for; between them they are interpolated."""


@dataclass(frozen=True, eq=False)
class Forecast:
    """Fitted laws with weights that sum to 1, their intervals and the scale of their errors.

    Attributes
    ----------
    members : tuple of WeighedLaw
        At least one.
    runs : ScalingRuns
        What was fitted.
    loss : str
        How residuals count.
    base : dict of str to float, optional
        Parameters of the law for data that is not repeated, which are kept and not fitted.
    known : bool
        False where rows may be checkpoints of unknown runs, or are too few: all limits are then NaN.
    """

    members: tuple[WeighedLaw, ...]
    runs: ScalingRuns
    loss: str
    base: Mapping[str, float] | None = None
    known: bool = True
    _inner: InnerErrors | None = None

    def noise(self, at: Place) -> FloatArray:
        """Return the standard deviation of a run's log loss at places, shape (n,).

        It is that of the residuals of the half of the rows that is nearest in compute: small runs are often noisier.
        """
        rows = len(self.runs)
        square = (self.log_loss(make_place(self.runs)) - np.log(self.runs.loss)) ** 2
        count = min(max(-(-rows // 2), NEAREST_LEAST), rows)
        distance = np.abs((at.params + at.tokens)[:, None] - np.log(self.runs.params * self.runs.tokens))
        nearest = np.argpartition(distance, count - 1, axis=1)[:, :count]
        # Each row has lost its share of the parameters' degrees of freedom, of which checkpoints of a run have one.
        left = 1 - self.members[0].data.size / self.runs.count
        return np.asarray(np.sqrt(square[nearest].sum(axis=1) / max(count * left, 2.0)))

    @cached_property
    def drift(self) -> float:
        """Root mean square error of log loss per factor e of compute, in inner backtests; NaN with too few runs."""
        inner = self._inner or inner_errors(self.runs, [m.design for m in self.members], self.loss, self.base)
        weights = np.array([m.weight for m in self.members])
        squares = far = 0.0
        for error, distance in zip(*inner, strict=True):
            tried = np.asarray(~np.isnan(error).any(axis=1))
            if (weights * tried).sum() > 0:
                share = weights * tried / (weights * tried).sum()
                squares += float(((share @ np.where(tried[:, None], error, 0.0)) ** 2).mean())
                far += float((distance**2).mean())
        return float(np.sqrt(squares / far)) if far > 0 else float("nan")

    @property
    def leading(self) -> WeighedLaw:
        """The member with the largest weight, those of one form counted together."""
        total: dict[str, float] = {}
        for member in self.members:
            total[member.design[0]] = total.get(member.design[0], 0.0) + member.weight
        best = max(total, key=lambda name: total[name])
        # Of the leading form the plain fit: its parameters are those of all runs alike.
        return next(m for m in self.members if m.design[0] == best)

    def log_loss(self, at: Place) -> FloatArray:
        """Predicted log loss at places, shape (n,)."""
        return np.asarray(sum(m.weight * m.log_loss(at) for m in self.members))

    def spread(self, at: Place) -> FloatArray:
        """Standard deviation of the members' log losses at places, by their weights."""
        each = np.stack([m.log_loss(at) for m in self.members])
        weight = np.array([m.weight for m in self.members])
        return np.asarray(np.sqrt(weight @ (each - weight @ each) ** 2))

    def leverage(self, at: Place) -> FloatArray:
        """Return the variance of the leading law's log loss at places over that of a run's noise, to first order."""
        lead = self.leading
        form, theta = lead.data.form, lead.theta[None]
        here, there = (form.values(theta, place) for place in (lead.data.at, form.shift(at)))
        inverse = inverse_of_squares(here.slope[0] / here.loss[0] * lead.data.free[:, None])
        requested = there.slope[0] / there.loss[0]
        return np.asarray(((inverse @ requested) * requested).sum(axis=0))

    def band_half_width(self, at: Place, level: float) -> FloatArray:
        """Half the width of the prediction band of log loss for one new run."""
        size = self.leading.data.size
        quantile = float(stdtrit(max(self.runs.count - size, 2), 0.5 + level / 2))
        return self.half_width(at, quantile, float(ndtri(0.5 + level / 2) / ndtri(0.975)))

    def half_width(self, at: Place, quantile: float, level_ratio: float = 1.0) -> FloatArray:
        """Half the width of a prediction band of log loss.

        Parameters
        ----------
        at : Place
            Sizes.
        quantile : float
            Of the noise of a single run, in standard deviations.
        level_ratio : float
            Quantile of the level over that of 95%, by which the drift is scaled.
        """
        beyond = np.maximum(np.log(6.0 / self.runs.compute.max()) + at.params + at.tokens, 0.0)
        far = REACH * level_ratio
        drift = self.drift if np.isfinite(self.drift) else DRIFT
        # At sizes that are unlike all runs, the law is less certain than a run is noisy.
        near = (quantile * self.noise(at)) ** 2 * np.maximum(self.leverage(at), 1.0)
        return np.asarray(np.sqrt(near + far**2 * ((drift * beyond) ** 2 + self.spread(at) ** 2)))

    @cached_property
    def profile(self) -> ProfileIntervals:
        """Intervals of the leading member."""
        lead = self.leading
        return ProfileIntervals(lead.data, lead.theta, lead.value, self.runs.groups)

    def log_loss_limits(self, at: Place, level: float) -> FloatArray:
        """Return limits of the expected log loss at places, shape (2, n)."""
        count = len(at.params)
        if not self.known:
            return np.full((2, count), np.nan)
        if len(self.members) > 1:
            draws = self._picked(lambda form, theta: np.log(form.loss(theta, at)), level)
            return np.asarray(np.quantile(draws, [0.5 - level / 2, 0.5 + level / 2], axis=0))
        form = self.leading.data.form
        found = np.empty((2, count))
        # As many problems at a time as fit the cache.
        block = max(1, BLOCK // (4 * len(self.runs.groups)))
        for first in range(0, count, block):
            part = at.take(slice(first, first + block))

            def value(theta: FloatArray, which: NDArray[np.intp], part: Place = part) -> FloatArray:
                return np.asarray(np.log(form.own_loss(theta, part.take(which))))

            found[:, first : first + block] = self.profile.limits(QuantityFamily(len(part.params), value), level)
        if self.base is not None:
            # Only the worth of repetition is open: it lies between that of new data and nearly none.
            lead = self.leading
            ends = (np.where(lead.data.free, bound, lead.theta)[None] for bound in reversed(lead.data.bounds))
            found = np.clip(found, *(np.log(form.loss(theta, at)[0]) for theta in ends))
        return found

    def optima(
        self,
        best: Callable[[Form, FloatArray, FloatArray], tuple[FloatArray, FloatArray]],
        budgets: FloatArray,
        level: float,
        sampled: bool = False,
    ) -> tuple[FloatArray, FloatArray]:
        """Return limits of log N* and of the log loss there for log budgets, shape (2, M) each.

        ``best`` gives both, shape (K,), for laws of a form, shape (K, P), and a log budget for each, shape (K,). If it
        is itself a search, which has no smooth derivatives, limits are ``sampled``: quantiles of refits.
        """
        if not self.known:
            return np.full((2, len(budgets)), np.nan), np.full((2, len(budgets)), np.nan)
        ends = [0.5 - level / 2, 0.5 + level / 2]
        if sampled or len(self.members) > 1:

            def both(form: Form, theta: FloatArray) -> FloatArray:
                count = len(budgets)
                pair = best(form, np.repeat(theta, count, axis=0), np.tile(budgets, len(theta)))
                return np.concatenate([v.reshape(len(theta), count) for v in pair], axis=1)

            low_high = np.quantile(self._picked(both, level), ends, axis=0)
            return low_high[:, : len(budgets)], low_high[:, len(budgets) :]
        form, theta = self.leading.data.form, self.leading.theta
        nodes, which_node = np.unique(budgets, return_inverse=True)
        few = len(nodes) <= NODES
        if not few:
            nodes = np.linspace(nodes[0], nodes[-1], NODES)

        def value(theta: FloatArray, which: NDArray[np.intp]) -> FloatArray:
            size, loss = best(form, theta, nodes[which % len(nodes)])
            return np.where(which < len(nodes), size, loss)

        limits = self.profile.limits(QuantityFamily(2 * len(nodes), value), level).reshape(2, 2, len(nodes))
        if few:
            return limits[:, 0, which_node], limits[:, 1, which_node]
        # Distances from the estimate are smooth in log C, and the estimate itself is exact.
        found = []
        for k in (0, 1):
            centre, here = (best(form, np.tile(theta, (len(c), 1)), c)[k] for c in (nodes, budgets))
            found.append(np.stack([here + _smooth(nodes, side - centre, budgets) for side in limits[:, k]]))
        return found[0], found[1]

    def _picked(self, of: Callable[[Form, FloatArray], FloatArray], level: float) -> FloatArray:
        """Return a quantity of refits, those of each member by its weight: forms differ, too.

        Refits to few runs vary too little, by the degrees of freedom that the parameters take up and by Student's
        quantile over the normal: their distances from the fit are stretched by as much.
        """
        rng = np.random.default_rng(0)
        runs = int(self.runs.groups.max()) + 1
        kept = []
        for member, refits in zip(self.members, self.refits, strict=True):
            take = int(np.round(member.weight * RESAMPLES))
            if take:
                form = member.data.form
                free = max(runs - member.data.size, 1)
                stretch = np.sqrt(runs / free) * stdtrit(free, 0.5 + level / 2) / ndtri(0.5 + level / 2)
                centre = of(form, member.theta[None])
                kept.append(centre + stretch * (of(form, refits[rng.permutation(RESAMPLES)[:take]]) - centre))
        return np.concatenate(kept)

    @cached_property
    def refits(self) -> tuple[FloatArray, ...]:
        """Parameters of each member on resamples, shape (resamples, P) each.

        Runs get exponential weights with mean 1: with few runs, drawing them with replacement would leave some
        resamples without a size.
        """
        rng = np.random.default_rng(0)
        runs = int(self.runs.groups.max()) + 1
        weights = rng.exponential(size=(RESAMPLES, runs))[:, self.runs.groups]
        return tuple(refit(m.data, m.theta, weights) for m in self.members)


def _smooth(nodes: FloatArray, values: FloatArray, at: FloatArray) -> FloatArray:
    """Interpolate between nodes by cubics with the slopes of parabolas; infinite from where a node is."""
    finite = np.isfinite(values)
    if not finite.all():
        near = np.interp(at, nodes, np.where(finite, values, 0.0))
        unbounded = np.interp(at, nodes, np.where(finite, 0.0, 1.0)) > 0
        return np.where(unbounded, np.sign(values[~finite][0]) * np.inf, near)
    slope = np.gradient(values, nodes, edge_order=2)
    k = np.clip(np.searchsorted(nodes, at) - 1, 0, len(nodes) - 2)
    wide = nodes[k + 1] - nodes[k]
    t = (at - nodes[k]) / wide
    # Hermite's cubic on [0, 1], for which scipy would load its splines: four tenths of a second.
    ends = (1 + 2 * t) * (1 - t) ** 2 * values[k] + t**2 * (3 - 2 * t) * values[k + 1]
    return np.asarray(ends + wide * t * (1 - t) * ((1 - t) * slope[k] - t * slope[k + 1]))
