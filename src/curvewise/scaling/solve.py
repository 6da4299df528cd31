"""Least Huber loss, or least squares, of log loss: many small problems at once.

Every refit of a law, for resamples, limits of intervals, backtests or several starts, is one of a batch that a
bounded Levenberg–Marquardt method with exact second derivatives solves together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.scaling.forms import Coupled, Form, Place, Repeated, Tied
from curvewise.types.results import FloatArray

HUBER = 1e-3
"""δ of Hoffmann et al. (2022): log residuals beyond it count by their size, not their square."""
BLOCK = 60_000
"""Numbers in an array of problems × rows: with the derivatives they fit the cache of a core."""


class Bowl(NamedTuple):
    """Objective of K problems around a point.

    Attributes
    ----------
    value, gradient : ndarray, shape (K,) and (K, P)
        Objective and its first derivatives.
    curvature : ndarray, shape (K, P, P)
        Second derivatives; need not be positive.
    metric : ndarray, shape (K, P, P)
        A matrix that is never negative, of the size of the curvature, to which steps are damped.
    """

    value: FloatArray
    gradient: FloatArray
    curvature: FloatArray
    metric: FloatArray


Objective: TypeAlias = Callable[[FloatArray, NDArray[np.intp]], Bowl]
"""From parameters, shape (K', P), of the problems with these numbers to the objective there."""


@dataclass(frozen=True, eq=False)
class Data:
    """Runs as the solver takes them.

    Attributes
    ----------
    at : Place
        Sizes, shifted to the centre of the form.
    log_loss : ndarray, shape (n,)
        Logarithms of the losses.
    form : Form
        The law, with the centre.
    delta : float
        Threshold of Huber's function; infinite for squares.
    weights : ndarray, shape (n,), optional
        Weights of the rows.
    logs : bool
        Whether residuals are those of log loss; else of the loss itself.
    """

    at: Place
    log_loss: FloatArray
    form: Form
    delta: float
    weights: FloatArray | None = None
    logs: bool = True

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Limits of the parameters."""
        return self.form.bounds(float(np.exp(self.log_loss.min())))

    def residuals(self, theta: FloatArray) -> FloatArray:
        """Return log predicted minus log measured loss, shape (K, n); without logarithms where those are not fitted."""
        loss = self.form.values(theta, self.at).loss
        return np.asarray(np.log(loss) - self.log_loss if self.logs else loss - np.exp(self.log_loss))

    def value(self, theta: FloatArray) -> FloatArray:
        """Return the objective of K laws, shape (K,)."""
        residual = self.residuals(theta)
        clipped = np.clip(residual, -self.delta, self.delta)
        terms = clipped * (residual - 0.5 * clipped)
        return np.asarray((terms if self.weights is None else self.weights * terms).sum(axis=1))

    def bowl(self, theta: FloatArray, weights: FloatArray | float = 1.0, log_loss: FloatArray | None = None) -> Bowl:
        """Return the sum of weighted Huber terms of log residuals with its derivatives.

        Parameters
        ----------
        theta : ndarray, shape (K, P)
            Parameters of K problems.
        weights : ndarray, shape (K, n) or float
            Weights of the rows.
        log_loss : ndarray, shape (K, n), optional
            Losses of each problem, where they are not those that were measured.
        """
        loss, slope, bend = self.form.values(theta, self.at)
        measured = self.log_loss if log_loss is None else log_loss
        if self.weights is not None:
            weights = weights * self.weights
        if self.logs:
            residual = np.log(loss) - measured
            slope /= loss[:, None]  # now of log loss
        else:
            residual = loss - np.exp(measured)
        clipped = np.clip(residual, -self.delta, self.delta)
        # Huber's function is r²/2 inside and δ(|r| − δ/2) outside: ψ (r − ψ/2) in both.
        pull = weights * clipped
        value = (pull * (residual - 0.5 * clipped)).sum(axis=1)
        gradient = (slope @ pull[:, :, None])[:, :, 0]
        inside = np.abs(residual) <= self.delta
        with np.errstate(divide="ignore", invalid="ignore"):
            weight = weights * np.where(inside, 1.0, clipped / residual)
        across = slope.transpose(0, 2, 1)
        metric = (slope * weight[:, None]) @ across
        # d² log m = d²m / m − (d log m)(d log m)ᵀ
        curvature = (slope * (weights * inside - (pull if self.logs else 0.0))[:, None]) @ across
        curvature += bend(pull / loss if self.logs else pull)
        return Bowl(value, gradient, curvature, metric)


def minimise(
    objective: Objective,
    start: FloatArray,
    form: Form,
    bounds: tuple[FloatArray, FloatArray],
    *,
    steps: int = 100,
    tol: float = 1e-12,
) -> tuple[FloatArray, FloatArray]:
    """Find a local minimum of each of K problems between bounds.

    Parameters
    ----------
    objective : callable
        Objective with derivatives.
    start : ndarray, shape (K, P)
        First guesses.
    form : Form
        The law; steps follow its valleys.
    bounds : tuple of ndarray, shape (P,)
        Lowest and highest parameters; a parameter that is fixed has them equal.
    steps : int
        Most iterations.
    tol : float
        A problem is done when a step lowers it by less than this part.

    Returns
    -------
    theta, value : ndarray, shape (K, P) and (K,)
        Where each ended.
    """
    lower, upper = bounds
    theta = np.clip(start, lower, upper)
    count, size = theta.shape
    here = Bowl(*(np.array(part) for part in objective(theta, np.arange(count))))
    damping = np.full(count, 1e-3)
    active = np.arange(count)
    eye = np.eye(size, dtype=np.bool_)
    for _ in range(steps):
        now, value = theta[active], here.value[active]
        raw = here.gradient[active]
        # A parameter at its bound stays there while the objective falls beyond it.
        fixed = ((now <= lower) & (raw >= 0)) | ((now >= upper) & (raw <= 0))
        bent = ~fixed[:, 0]  # E is free
        gradient, curvature, metric = _in_valley(form, now, bent, raw, here.curvature[active], here.metric[active])
        system = curvature + damping[active, None, None] * metric
        # In units in which the metric has ones on its diagonal; a parameter that nothing depends on does not move.
        scale = np.sqrt(np.diagonal(metric, axis1=1, axis2=2)) + 1e-100
        system /= scale[:, :, None] * scale[:, None, :]
        if fixed.any():
            gradient[fixed] = 0.0
            system[fixed[:, :, None] | fixed[:, None, :]] = 0.0
        system[:, eye] += 1e-11 + fixed
        right = -(gradient / scale)[:, :, None]
        try:
            step = np.linalg.solve(system, right)[:, :, 0] / scale
        except np.linalg.LinAlgError:  # one of the batch is singular to the last bit
            system[:, eye] += 1e-6
            step = (np.linalg.pinv(system) @ right)[:, :, 0] / scale
        # Exponents and logarithms: a longer step than this leaves the region that derivatives describe.
        step *= np.minimum(1.0, 2.0 / np.maximum(np.abs(step).max(axis=1, keepdims=True), 1e-300))
        there = _move(form, now, step, bent, bounds)
        found = objective(there, active)
        better = found.value < value
        place = active[better]
        theta[place] = there[better]
        for old, new in zip(here, found, strict=True):
            old[place] = new[better]
        fall = value - found.value
        damping[active] = np.where(
            better, np.maximum(damping[active] / 8, 1e-12), np.maximum(damping[active] * 6, 1e-3)
        )
        stopped = better & (fall <= tol * value) & (damping[active] < 1.0)
        stuck = ~better & ((damping[active] > 1e8) | (np.abs(fall) <= 1e-15 * np.abs(value)))
        active = active[~(stopped | stuck)]
        if not len(active):
            break
    return theta, here.value


# E, the size of a term and its exponent trade off against one another: the loss in the middle of the data and its slope
# are known, and all that is left open is how the curve bends. In E, a and α that is a narrow, bent valley, along which
# steps are short. With the loss at the centre, c = E + T, and the slopes α exp(a) and β exp(b) in their place it is
# straight. Parameters and bounds remain E, a, b, α, β; only the steps are taken in these coordinates.


def _in_valley(
    form: Form, theta: FloatArray, bent: NDArray[np.bool_], gradient: FloatArray, *matrices: FloatArray
) -> tuple[FloatArray, ...]:
    """Write gradient, curvature and metric in the coordinates of the valley, where E is free (``bent``)."""
    curvature, metric = matrices
    if not bent.any():
        return gradient.copy(), curvature.copy(), metric.copy()
    count, size = theta.shape
    at = np.zeros(1)
    _, slope, bend = form.values(theta, Place(at, at, at))
    free = bent.astype(np.float64)
    total, twice = slope[:, :, 0] * free[:, None], bend(free[:, None])  # of the reducible loss at the centre
    turn = np.zeros((count, size, size))  # rows: E, a, b, …; columns: c, log slopes, exponents, …
    turn[:, np.arange(size), np.arange(size)] = 1.0
    further = np.zeros((count, size, size))
    for k, j in enumerate(_partners(form), 1):
        turn[:, k, j] = -free / theta[:, j]
        further[:, j, j] += (gradient[:, k] - gradient[:, 0] * total[:, k]) * free / theta[:, j] ** 2
    inner = turn[:, 1:, 1:]
    turn[:, 0, 1:] = -(total[:, None, 1:] @ inner)[:, 0]
    across = turn.transpose(0, 2, 1)
    pull = gradient[:, 0, None, None]
    further[:, 1:, 1:] -= pull * (inner.transpose(0, 2, 1) @ twice[:, 1:, 1:] @ inner)
    return ((across @ gradient[:, :, None])[:, :, 0], across @ curvature @ turn + further, across @ metric @ turn)


def _move(
    form: Form, theta: FloatArray, step: FloatArray, bent: NDArray[np.bool_], bounds: tuple[FloatArray, FloatArray]
) -> FloatArray:
    """Take a step in the coordinates of the valley, as far as E stays above 0, and within the bounds."""
    lower, upper = bounds
    straight = np.clip(theta + step, lower, upper)
    if not bent.any():
        return straight
    at = Place(np.zeros(1), np.zeros(1), np.zeros(1))
    centre = form.values(theta, at).loss[:, 0]

    def at_share(share: FloatArray) -> FloatArray:
        new = np.clip(theta + share[:, None] * step, lower, upper)
        for k, j in enumerate(_partners(form), 1):
            # The step is one of the logarithm of the slope, exp(a) α.
            new[:, k] = theta[:, k] + share * step[:, k] - np.log(new[:, j] / theta[:, j])
        new[:, 1:] = np.clip(new[:, 1:], lower[1:], upper[1:])
        new[:, 0] = 0.0
        new[:, 0] = centre + share * step[:, 0] - form.values(new, at).loss[:, 0]
        return new

    moved = at_share(np.ones(len(theta)))
    short = bent & (moved[:, 0] < 0)
    if short.any():  # halve the way to E = 0 a few times, then let E be cut off there
        low, high = np.zeros(len(theta)), np.ones(len(theta))
        for _ in range(12):
            share = np.where(short, 0.5 * (low + high), 1.0)
            below = at_share(share)[:, 0] < 0
            low, high = np.where(below, low, share), np.where(below, share, high)
        moved = at_share(np.where(short, high, 1.0))
    return np.where(bent[:, None], np.clip(moved, lower, upper), straight)


def _partners(form: Form) -> tuple[int, int]:
    """Return the places of the exponents that belong to a and b."""
    return 3, 3 if "beta" not in form.names else 4


GRID = np.geomspace(0.05, 2.0, 13)
"""Exponents at which the linear part of the law is solved for, to begin with."""
FINISHED = 6
"""Starts that are followed to the end, of those that are best after a few steps."""


def fit_global(data: Data, fixed: FloatArray | None = None, most: int = 4) -> tuple[FloatArray, float]:
    """Find the global minimum of the objective.

    The law is linear in E, A and B once the exponents are given: on a grid of exponents they are solved for by
    weighted least squares without negative coefficients. From the best valleys of that grid, judged by squares and by
    the objective, all parameters are then refined together.

    Parameters
    ----------
    data : Data
        Runs with form and loss.
    fixed : ndarray, shape (P,), optional
        Values of parameters that are not fitted; NaN for those that are.
    most : int
        Valleys to begin from.

    Returns
    -------
    theta : ndarray, shape (P,)
        Parameters of the solver.
    value : float
        The sum of Huber terms, or half the sum of squares.
    """
    lower, upper = data.bounds
    if fixed is not None:
        lower, upper = (np.where(np.isnan(fixed), bound, fixed) for bound in (lower, upper))
    guesses = np.clip(starts(data, most), lower, upper)
    if len(guesses) > FINISHED:
        # Forms with more parameters have many starts, most of which lead to the same few minima.
        guesses, value = minimise(lambda t, _: data.bowl(t), guesses, data.form, (lower, upper), steps=15)
        guesses = guesses[np.argsort(value)[:FINISHED]]
    theta, value = minimise(lambda t, _: data.bowl(t), guesses, data.form, (lower, upper))
    best = int(value.argmin())
    return theta[best], float(value[best])


def starts(data: Data, most: int = 4) -> FloatArray:
    """Return first guesses, shape (K, P), from the best valleys of a grid over the exponents."""
    form = data.form
    if isinstance(form, Tied):
        return _valleys(data, most)[:, :4]
    found = _valleys(data, most)
    if isinstance(form, Coupled):
        # At the centre both terms are alike, so that T is 2^g of them: keep it as the additive law has it.
        powers = (0.25, 0.5, 1.0, 2.0, 4.0)
        shift = [np.array([0.0, *[(1 - g) * np.log(2.0)] * 2, 0.0, 0.0]) for g in powers]
        return np.vstack(
            [np.column_stack([found + s, np.full(len(found), g)]) for g, s in zip(powers, shift, strict=True)]
        )
    if isinstance(form, Repeated):
        return _decays(data, found)
    return found


def _valleys(data: Data, most: int) -> FloatArray:
    """Return E, a, b, α, β at the best valleys of the grid, shape (K, 5); for one exponent α = β."""
    x, y = data.at.params, data.at.tokens
    inverse = np.exp(-data.log_loss)
    ones = np.ones(len(x)) if data.weights is None else np.sqrt(data.weights)
    # (m − L)/L is log m − log L to first order, and linear in E, A and B.
    of_n, of_d = (np.exp(-GRID[:, None] * z) * (inverse * ones) for z in (x, y))
    one = inverse * ones
    tied = isinstance(data.form, Tied)
    i, j = (np.arange(len(GRID)),) * 2 if tied else np.divmod(np.arange(len(GRID) ** 2), len(GRID))
    q = len(i)
    gram, right = np.empty((q, 3, 3)), np.empty((q, 3))
    gram[:, 0, 0], right[:, 0] = one @ one, one @ ones
    for k, terms, index in ((1, of_n, i), (2, of_d, j)):
        gram[:, 0, k] = gram[:, k, 0] = (terms @ one)[index]
        gram[:, k, k] = (terms * terms).sum(axis=1)[index]
        right[:, k] = (terms @ ones)[index]
    gram[:, 1, 2] = gram[:, 2, 1] = (of_n @ of_d.T)[i, j]
    c = _not_negative(gram, right)
    square = (c * ((gram @ c[:, :, None])[:, :, 0] - 2 * right)).sum(axis=1)
    # A term that is not there at all would never come back: begin from a hundredth of the loss.
    c[:, 1:] = np.maximum(c[:, 1:], 0.01 * np.exp(data.log_loss.min()))
    guesses = np.column_stack([c[:, 0], np.log(c[:, 1:]), GRID[i], GRID[j]])
    shape = (q,) if tied else (len(GRID), len(GRID))
    # Single precision is enough to rank the points of a grid, and its logarithm takes a tenth of the time.
    floor, first, second = (v.astype(np.float32).reshape(*shape, 1) for v in c.T)
    level, of_n, of_d = ((v / ones).astype(np.float32) for v in (one, of_n, of_d))
    residual, other = first * (of_n if tied else of_n[:, None]), second * of_d
    residual += other
    residual += np.multiply(floor, level, out=other)
    np.log(residual, out=residual)
    clipped = np.clip(residual, -data.delta, data.delta, out=other)
    residual -= 0.5 * clipped
    residual *= clipped
    value = residual.reshape(q, -1) @ (ones**2).astype(np.float32)
    # The best by the objective, then the valleys of squares, which robust objectives fill with small dents.
    chosen = list(dict.fromkeys([*_lowest(value.reshape(shape))[: most - 1], *_lowest(square.reshape(shape))]))
    return guesses[chosen[:most]]


def _not_negative(gram: FloatArray, right: FloatArray) -> FloatArray:
    """Solve least squares in three coefficients that are not negative, shape (Q, 3)."""
    ridge = 1e-12 * np.trace(gram, axis1=1, axis2=2)[:, None, None] * np.eye(3)
    best = np.linalg.solve(gram + ridge, right[:, :, None])[:, :, 0]
    bad = np.flatnonzero((best < 0).any(axis=1))
    if len(bad):
        lowest = np.full(len(bad), np.inf)
        for pair in map(np.array, ([0, 1], [0, 2], [1, 2])):
            part = np.linalg.solve((gram + ridge)[np.ix_(bad, pair, pair)], right[bad][:, pair, None])[:, :, 0]
            part = np.maximum(part, 0.0)
            pull = (gram[np.ix_(bad, pair, pair)] @ part[:, :, None])[:, :, 0] - 2 * right[bad][:, pair]
            cost = (part * pull).sum(axis=1)
            better = cost < lowest
            lowest[better] = cost[better]
            whole = np.zeros((len(bad), 3))
            whole[:, pair] = part
            best[bad[better]] = whole[better]
    return best


def _lowest(values: FloatArray) -> list[int]:
    """Return places of a grid that are no higher than their neighbours, the lowest first."""
    padded = np.pad(values, 1, constant_values=np.inf)
    inner = tuple(slice(1, -1) for _ in values.shape)
    low = np.ones(values.shape, dtype=np.bool_)
    for axis in range(values.ndim):
        for side in (slice(0, -2), slice(2, None)):
            low &= values <= padded[tuple(side if k == axis else s for k, s in enumerate(inner))]
    place = np.flatnonzero(low)
    return [int(p) for p in place[np.argsort(values.ravel()[place])]]


def _decays(data: Data, found: FloatArray) -> FloatArray:
    """Return guesses for repeated data: those of the additive law with the best decay constants of a grid."""
    constants = np.log(np.array([0.5, 2.0, 6.0, 15.0, 40.0, 100.0, 400.0]))
    rd, rn = (v.ravel() for v in np.meshgrid(constants, constants, indexing="ij"))
    guesses = np.vstack([np.column_stack([np.tile(base, (len(rd), 1)), rd, rn]) for base in found])
    value = data.value(guesses)
    places = [
        k * len(rd) + p
        for k in range(len(found))
        for p in _lowest(value[k * len(rd) : (k + 1) * len(rd)].reshape(len(constants), -1))[:3]
    ]
    return guesses[places]
