"""Forms of the law: loss as a function of parameters N and tokens D, with derivatives.

All forms are the irreducible loss E plus a reducible part in which N and D appear by their logarithms. Inside the
solver the coefficients A and B are logarithms of the two terms at the centre of the data (its mean log N and mean
log D): there they hardly depend on the exponents, as A and B themselves do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.types.results import FloatArray

EXPONENT_BOUNDS = (0.01, 3.0)
"""Exponents outside of these make a term a constant, or a step, over any range of sizes that is measured."""
TERM_BOUNDS = (-12.0, 4.0)
"""Logarithm of a term at the centre of the data, over the smallest loss: below, the term is not there."""


class Place(NamedTuple):
    """Sizes of runs as logarithms.

    Attributes
    ----------
    params, tokens : ndarray, shape (n,)
        log N and log D.
    unique : ndarray, shape (n,), optional
        log of the tokens that are distinct, where data is repeated.
    """

    params: FloatArray
    tokens: FloatArray
    unique: FloatArray | None = None

    def take(self, rows: Any) -> Place:
        """Return some of the places."""
        return Place(self.params[rows], self.tokens[rows], None if self.unique is None else self.unique[rows])


CENTRE = Place(*np.zeros((3, 1)))
"""The centre of some data, as a place that is shifted there."""
LOG6 = float(np.log(6.0))


def on_budget(log_budget: FloatArray, log_n: FloatArray, unique: float | None = None) -> Place:
    """Return the places of models of these sizes on their budgets C = 6 N D."""
    return Place(log_n, log_budget - LOG6 - log_n, None if unique is None else np.full(len(log_n), unique))


class Values(NamedTuple):
    """Losses of K laws at n places, with their derivatives.

    Attributes
    ----------
    loss : ndarray, shape (K, n)
        Predicted losses.
    slope : ndarray, shape (K, P, n)
        Derivatives in the P parameters of the solver.
    bend : callable
        From weights c, shape (K, n), to the sum over places of c times the second derivatives, shape (K, P, P).
    """

    loss: FloatArray
    slope: FloatArray
    bend: Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Form(ABC):
    """A form of the law around the centre of some data.

    Parameters of the solver, in order: E, the logarithms a and b of the two terms at the centre, the exponents, and
    what else the form has. ``names`` has them in that order.

    Attributes
    ----------
    params, tokens : float
        Centre: mean log N and mean log D.
    """

    params: float
    tokens: float
    name: ClassVar[str]
    names: ClassVar[tuple[str, ...]]
    limits: ClassVar[Mapping[str, tuple[float, float]]] = {}
    """Limits of further parameters; papers write those that begin with "log " without their logarithm."""

    @property
    def size(self) -> int:
        """Number of parameters."""
        return len(self.names)

    def bounds(self, smallest_loss: float) -> tuple[FloatArray, FloatArray]:
        """Lower and upper limits of the parameters of the solver."""
        term = np.log(smallest_loss) + TERM_BOUNDS
        limits = {"E": (0.0, smallest_loss), "a": term, "b": term} | dict(self.limits)
        low, high = np.array([limits.get(name, EXPONENT_BOUNDS) for name in self.names]).T
        return low, high

    @abstractmethod
    def values(self, theta: FloatArray, at: Place) -> Values:
        """Losses of laws θ, shape (K, P), at places that are shifted to the centre."""

    def loss(self, theta: FloatArray, at: Place) -> FloatArray:
        """Return losses, shape (K, n), of laws θ, shape (K, P), at places n."""
        return self.values(theta, self.shift(at)).loss

    def own_loss(self, theta: FloatArray, at: Place) -> FloatArray:
        """Return the loss of law k at place k, shape (K,)."""
        return self.loss(theta, at.take((slice(None), None)))[:, 0]

    def shift(self, at: Place) -> Place:
        """Move places to the centre."""
        unique = None if at.unique is None else at.unique - self.tokens
        return Place(at.params - self.params, at.tokens - self.tokens, unique)

    def exponents(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return α and β, shape (K,) each."""
        named = dict(zip(self.names, theta.T, strict=True))
        return named["alpha"], named.get("beta", named["alpha"])

    def exponent(self, theta: FloatArray) -> FloatArray:
        """Return a of N* ∝ C^a, shape (K,)."""
        alpha, beta = self.exponents(theta)
        return beta / (alpha + beta)

    def public(self, theta: FloatArray) -> dict[str, FloatArray]:
        """Return the parameters as papers write them: E, A, B, alpha, beta, and the others of the form."""
        named = dict(zip(self.names, theta.T, strict=True))
        alpha, beta = self.exponents(theta)
        with np.errstate(over="ignore"):
            found = {
                "E": named["E"],
                "A": np.exp(named["a"] + alpha * self.params),
                "B": np.exp(named["b"] + beta * self.tokens),
                "alpha": alpha,
                "beta": beta,
            }
        return found | {k.removeprefix("log "): np.exp(named[k]) if k[:4] == "log " else named[k] for k in self.limits}

    def private(self, given: Mapping[str, float]) -> FloatArray:
        """Return the parameters of the solver, shape (P,), from those that papers write."""
        alpha, beta = given["alpha"], given.get("beta", given["alpha"])
        named = {"E": given["E"], "alpha": alpha, "beta": beta}
        named["a"] = np.log(given["A"]) - alpha * self.params
        named["b"] = np.log(given["B"]) - beta * self.tokens
        named |= {k: np.log(given[k[4:]]) if k[:4] == "log " else given[k] for k in self.limits}
        return np.array([named[k] for k in self.names])

    def optimum(self, theta: FloatArray, log_budget: FloatArray) -> FloatArray:
        """Return log N* of laws θ, shape (K, P), for a log budget C = 6 N D of each, shape (K,): shape (K,).

        The smallest A/N^α + B/D^β on C = 6 N D has α A/N^α = β B/D^β.
        """
        alpha, beta = self.exponents(theta)
        total = log_budget - LOG6 - self.params - self.tokens
        gap = np.log(alpha / beta) + theta[:, 1] - theta[:, 2]
        return np.asarray(self.params + (gap + beta * total) / (alpha + beta))

    def lowest(self, theta: FloatArray, log_budget: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log N* of laws θ for a log budget of each, and their losses there, shape (K,) each."""
        size = self.optimum(theta, log_budget)
        return size, self.own_loss(theta, on_budget(log_budget, size))


class Additive(Form):
    """E + A/N^α + B/D^β (Hoffmann et al. 2022)."""

    name: ClassVar[str] = "additive"
    names: ClassVar[tuple[str, ...]] = ("E", "a", "b", "alpha", "beta")

    def values(self, theta: FloatArray, at: Place) -> Values:
        """Losses with derivatives."""
        e, a, b, alpha, beta = (theta[:, i : i + 1] for i in range(5))
        x, y = at.params, at.tokens
        of_n, of_d = np.exp(a - alpha * x), np.exp(b - beta * y)
        slope = np.empty((len(theta), 5, of_n.shape[1]))
        slope[:, 0] = 1.0
        slope[:, 1], slope[:, 2] = of_n, of_d
        np.multiply(of_n, -x, out=slope[:, 3])
        np.multiply(of_d, -y, out=slope[:, 4])

        return Values(e + of_n + of_d, slope, lambda c: _bend_of_terms(c * of_n, c * of_d, x, y, 5))


def _bend_of_terms(pull_n: FloatArray, pull_d: FloatArray, x: FloatArray, y: FloatArray, size: int) -> FloatArray:
    """Second derivatives of the two terms in a, α and b, β, summed over places with the weights that they are times."""
    total = np.zeros((len(pull_n), size, size))
    for i, pull, z in ((1, pull_n, x), (2, pull_d, y)):
        total[:, i, i] = pull.sum(axis=1)
        # Sizes are the same for all laws, or of each law its own where tokens repeat.
        first, second = (pull @ v if v.ndim == 1 else (pull * v).sum(axis=1) for v in (z, z * z))
        total[:, i, i + 2] = total[:, i + 2, i] = -first
        total[:, i + 2, i + 2] = second
    return total


class Tied(Form):
    """E + A/N^α + B/D^α: one exponent for both."""

    name: ClassVar[str] = "tied"
    names: ClassVar[tuple[str, ...]] = ("E", "a", "b", "alpha")

    def values(self, theta: FloatArray, at: Place) -> Values:
        """Losses with derivatives."""
        # The additive law at β = α: what it has for the two exponents is added up.
        apart = Additive(self.params, self.tokens).values(theta[:, [0, 1, 2, 3, 3]], at)
        together = np.eye(5)[:, :4] + np.outer(np.eye(5)[4], np.eye(4)[3])
        slope = np.concatenate([apart.slope[:, :3], apart.slope[:, 3:].sum(axis=1, keepdims=True)], axis=1)
        return Values(apart.loss, slope, lambda c: together.T @ apart.bend(c) @ together)


class Coupled(Form):
    """E + ((A/N^α)^(1/g) + (B/D^β)^(1/g))^g: additive at g = 1, the larger of the two terms towards g = 0."""

    name: ClassVar[str] = "coupled"
    names: ClassVar[tuple[str, ...]] = ("E", "a", "b", "alpha", "beta", "g")
    limits: ClassVar[Mapping[str, tuple[float, float]]] = {"g": (0.1, 4.0)}

    def values(self, theta: FloatArray, at: Place) -> Values:
        """Losses with derivatives, by those of log T = g log(exp(u/g) + exp(v/g))."""
        e, a, b, alpha, beta, g = (theta[:, i : i + 1] for i in range(6))
        x, y = at.params, at.tokens
        u, v = a - alpha * x, b - beta * y
        gap = np.clip((u - v) / g, -300.0, 300.0)
        share = 1.0 / (1.0 + np.exp(-gap))  # of the term of N
        more = np.log1p(np.exp(-np.abs(gap)))  # log(exp(u/g) + exp(v/g)) less the larger of the two
        term = np.exp(np.maximum(u, v) + g * more)
        rest = 1.0 - share
        entropy = more + np.maximum(gap, 0.0) - share * gap
        ratio = np.stack([share, rest, -x * share, -y * rest, entropy], axis=1)  # d log T in a, b, α, β, g
        slope = np.empty((len(theta), 6, term.shape[1]))
        slope[:, 0] = 1.0
        slope[:, 1:] = ratio * term[:, None]

        def bend(c: FloatArray) -> FloatArray:
            total = np.zeros((len(theta), 6, 6))
            pull = c * term
            total[:, 1:, 1:] = (ratio * pull[:, None]) @ ratio.transpose(0, 2, 1)
            # d² log T = k q qᵀ for q = d(u − v) in the parameters, with −(u − v)/g in the place of g.
            k = share * rest / g
            one = np.ones_like(gap)
            q = np.stack([one, -one, -x * one, y * one, -gap], axis=1)
            total[:, 1:, 1:] += (q * (pull * k)[:, None]) @ q.transpose(0, 2, 1)
            return total

        return Values(e + term, slope, bend)

    def optimum(self, theta: FloatArray, log_budget: FloatArray) -> FloatArray:
        """Return log N*: the outer power does not move the optimum of the sum inside, whose exponents are α/g, β/g."""
        inner = theta.copy()
        inner[:, 1:5] /= theta[:, 5:6]
        return super().optimum(inner, log_budget)


class Repeated(Form):
    """E + A/N'^α + B/D'^β: repeated tokens and excess parameters decay in value (Muennighoff et al. 2023).

    D' = U (1 + R*_D (1 − exp(−R_D/R*_D))) with U distinct tokens and R_D = D/U − 1 repetitions; N' in the same way
    from the parameters that are optimal for U tokens.
    """

    name: ClassVar[str] = "repeated"
    names: ClassVar[tuple[str, ...]] = ("E", "a", "b", "alpha", "beta", "log R_D", "log R_N")
    limits: ClassVar[Mapping[str, tuple[float, float]]] = dict.fromkeys(names[5:], (np.log(1e-2), np.log(1e4)))

    def values(self, theta: FloatArray, at: Place) -> Values:
        """Losses with derivatives, through N' and D' by the chain rule."""
        alpha, beta = theta[:, 3:4], theta[:, 4:5]
        of_n, of_d, x, y = self._terms(theta, at)
        u, best, base = self._bases(theta, at)
        d_n, d_rn = _saturating_slopes(at.params - base, np.exp(theta[:, 6:7]))
        _, d_rd = _saturating_slopes(at.tokens - u, np.exp(theta[:, 5:6]))
        # N' moves with its base only where parameters exceed what is optimal for the distinct tokens.
        pull = np.where(best < at.params, 1.0 - d_n, 0.0) / alpha
        slope = np.zeros((len(theta), 7, len(at.params)))
        slope[:, 0] = 1.0
        slope[:, 1] = of_n * (1.0 - alpha * pull)
        slope[:, 2] = of_n * alpha * pull + of_d
        slope[:, 3] = -of_n * (x + alpha * pull * (1.0 / alpha - best))
        slope[:, 4] = -of_n * alpha * pull * (u - 1.0 / beta) - of_d * y
        slope[:, 5] = -of_d * beta * d_rd
        slope[:, 6] = -of_n * alpha * d_rn

        # Only the two exponentials bend, with N' and D' held: enough to keep the steps of the right length.
        return Values(theta[:, :1] + of_n + of_d, slope, lambda c: _bend_of_terms(c * of_n, c * of_d, x, y, 7))

    def loss(self, theta: FloatArray, at: Place) -> FloatArray:
        """Return losses without derivatives."""
        of_n, of_d, _, _ = self._terms(theta, self.shift(at))
        return theta[:, :1] + of_n + of_d

    def _terms(self, theta: FloatArray, at: Place) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the terms of N and D, and log N' and log D', shape (K, n) each, at places shifted to the centre."""
        u, _, base = self._bases(theta, at)
        x = base + _saturating(at.params - base, np.exp(theta[:, 6:7]))
        y = u + _saturating(at.tokens - u, np.exp(theta[:, 5:6]))
        return np.exp(theta[:, 1:2] - theta[:, 3:4] * x), np.exp(theta[:, 2:3] - theta[:, 4:5] * y), x, y

    def _bases(self, theta: FloatArray, at: Place) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the logs of the distinct tokens U, of the parameters that are optimal for U, and of those up to N."""
        a, b, alpha, beta = (theta[:, i : i + 1] for i in range(1, 5))
        u = at.tokens if at.unique is None else np.minimum(at.unique, at.tokens)
        # On the optimal path α A/N^α = β B/D^β.
        best = (np.log(alpha / beta) + a - b + beta * u) / alpha
        return u, best, np.minimum(best, at.params)


MOST = 300.0
"""Log ratio beyond which exponentials overflow; there D' has long reached its limit."""


def _saturating(log_ratio: FloatArray, scale: FloatArray) -> FloatArray:
    """Return log(1 + s (1 − exp(−R/s))) for R = exp(log_ratio) − 1 repetitions and decay constant s."""
    log_ratio = np.minimum(log_ratio, MOST)
    return np.log1p(-scale * np.expm1(-np.expm1(log_ratio) / scale))


def _saturating_slopes(log_ratio: FloatArray, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the derivatives of :func:`_saturating` in the log ratio and in log s."""
    log_ratio = np.minimum(log_ratio, MOST)
    share = np.expm1(log_ratio) / scale
    left, gone = np.exp(-share), -np.expm1(-share)
    whole = 1.0 + scale * gone
    return left * np.exp(log_ratio) / whole, scale * (gone - share * left) / whole


FORMS: Mapping[str, type[Form]] = {form.name: form for form in (Additive, Tied, Coupled, Repeated)}


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
    fixed : ndarray, shape (P,), optional
        Values of parameters that are not fitted; NaN for those that are.
    """

    at: Place
    log_loss: FloatArray
    form: Form
    delta: float
    weights: FloatArray | None = None
    logs: bool = True
    fixed: FloatArray | None = None

    @property
    def free(self) -> NDArray[np.bool_]:
        """True for the parameters that are fitted, shape (P,)."""
        return np.ones(self.form.size, dtype=np.bool_) if self.fixed is None else np.isnan(self.fixed)

    @property
    def size(self) -> int:
        """Number of parameters that are fitted."""
        return int(self.free.sum())

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Limits of the parameters; those that are not fitted have both at their value."""
        low, high = self.form.bounds(float(np.exp(self.log_loss.min())))
        if self.fixed is None:
            return low, high
        return np.where(self.free, low, self.fixed), np.where(self.free, high, self.fixed)

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

    def bowl(self, theta: FloatArray, weights: FloatArray | float = 1.0) -> Bowl:
        """Return the sum of weighted Huber terms of log residuals with its derivatives.

        Parameters
        ----------
        theta : ndarray, shape (K, P)
            Parameters of K problems.
        weights : ndarray, shape (K, n) or float
            Weights of the rows.
        """
        loss, slope, bend = self.form.values(theta, self.at)
        if self.weights is not None:
            weights = weights * self.weights
        if self.logs:
            residual = np.log(loss) - self.log_loss
            slope /= loss[:, None]  # now of log loss
        else:
            residual = loss - np.exp(self.log_loss)
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
    _, slope, bend = form.values(theta, CENTRE)
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
    centre = form.values(theta, CENTRE).loss[:, 0]

    def at_share(share: FloatArray) -> FloatArray:
        new = np.clip(theta + share[:, None] * step, lower, upper)
        for k, j in enumerate(_partners(form), 1):
            # The step is one of the logarithm of the slope, exp(a) α.
            new[:, k] = theta[:, k] + share * step[:, k] - np.log(new[:, j] / theta[:, j])
        new[:, 1:] = np.clip(new[:, 1:], lower[1:], upper[1:])
        new[:, 0] = 0.0
        new[:, 0] = centre + share * step[:, 0] - form.values(new, CENTRE).loss[:, 0]
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
VALLEYS = 4
"""Valleys of that grid to begin from."""
FINISHED = 6
"""Starts that are followed to the end, of those that are best after a few steps."""


def fit_global(data: Data) -> tuple[FloatArray, float]:
    """Find the global minimum of the objective.

    The law is linear in E, A and B once the exponents are given: on a grid of exponents they are solved for by
    weighted least squares without negative coefficients. From the best valleys of that grid, judged by squares and by
    the objective, all parameters are then refined together.

    Parameters
    ----------
    data : Data
        Runs with form and loss.

    Returns
    -------
    theta : ndarray, shape (P,)
        Parameters of the solver.
    value : float
        The sum of Huber terms, or half the sum of squares.
    """
    guesses = np.clip(starts(data), *data.bounds)
    if len(guesses) > FINISHED:
        # Forms with more parameters have many starts, most of which lead to the same few minima.
        guesses, value = minimise(lambda t, _: data.bowl(t), guesses, data.form, data.bounds, steps=15)
        guesses = guesses[np.argsort(value)[:FINISHED]]
    if isinstance(data.form, Repeated) and data.fixed is None:
        # Nor may it be worse than the additive law, which it is where nothing decays.
        plain = replace(data, form=Additive(data.form.params, data.form.tokens), at=Place(*data.at[:2]))
        guesses = np.vstack([guesses, [*fit_global(plain)[0], *data.bounds[1][5:]]])
    theta, value = minimise(lambda t, _: data.bowl(t), guesses, data.form, data.bounds)
    best = int(value.argmin())
    return theta[best], float(value[best])


def starts(data: Data) -> FloatArray:
    """Return first guesses, shape (K, P), from the best valleys of a grid over the exponents."""
    form = data.form
    if isinstance(form, Tied):
        return _valleys(data)[:, :4]
    found = _valleys(data)
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


def _valleys(data: Data) -> FloatArray:
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
    chosen = list(dict.fromkeys([*_lowest(value.reshape(shape))[: VALLEYS - 1], *_lowest(square.reshape(shape))]))
    return guesses[chosen[:VALLEYS]]


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
