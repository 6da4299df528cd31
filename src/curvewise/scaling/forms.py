"""Forms of the law: loss as a function of parameters N and tokens D, with derivatives.

All forms are the irreducible loss E plus a reducible part in which N and D appear by their logarithms. Inside the
solver the coefficients A and B are logarithms of the two terms at the centre of the data (its mean log N and mean
log D): there they hardly depend on the exponents, as A and B themselves do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

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
    equation: ClassVar[str]

    @property
    def size(self) -> int:
        """Number of parameters."""
        return len(self.names)

    def bounds(self, smallest_loss: float) -> tuple[FloatArray, FloatArray]:
        """Lower and upper limits of the parameters of the solver."""
        low, high = zip(*(self._bound(name, smallest_loss) for name in self.names), strict=True)
        return np.array(low), np.array(high)

    def _bound(self, name: str, smallest_loss: float) -> tuple[float, float]:
        if name == "E":
            return 0.0, smallest_loss
        if name in ("a", "b"):
            return TERM_BOUNDS[0] + np.log(smallest_loss), TERM_BOUNDS[1] + np.log(smallest_loss)
        return EXPONENT_BOUNDS

    @abstractmethod
    def values(self, theta: FloatArray, at: Place) -> Values:
        """Losses of laws θ, shape (K, P), at places that are shifted to the centre."""

    def loss(self, theta: FloatArray, at: Place) -> FloatArray:
        """Return losses, shape (K, n), of laws θ, shape (K, P), at places n."""
        return self.values(theta, self.shift(at)).loss

    def own_loss(self, theta: FloatArray, at: Place) -> FloatArray:
        """Return the loss of law k at place k, shape (K,)."""
        shifted = self.shift(at)
        alpha, beta = self.exponents(theta)
        moved = theta.copy()
        # At the centre the two terms are exp(a) and exp(b): move them instead of the place.
        moved[:, 1] -= alpha * shifted.params
        moved[:, 2] -= beta * shifted.tokens
        zero = np.zeros(1)
        return self.values(moved, Place(zero, zero)).loss[:, 0]

    def shift(self, at: Place) -> Place:
        """Move places to the centre."""
        unique = None if at.unique is None else at.unique - self.tokens
        return Place(at.params - self.params, at.tokens - self.tokens, unique)

    def exponents(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return α and β, shape (K,) each."""
        named = dict(zip(self.names, theta.T, strict=True))
        return named["alpha"], named.get("beta", named["alpha"])

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
        return found | self._further(named)

    def private(self, given: Mapping[str, float]) -> FloatArray:
        """Return the parameters of the solver, shape (P,), from those that papers write."""
        alpha, beta = given["alpha"], given.get("beta", given["alpha"])
        named = {"E": given["E"], "alpha": alpha, "beta": beta}
        named["a"] = np.log(given["A"]) - alpha * self.params
        named["b"] = np.log(given["B"]) - beta * self.tokens
        return np.array([named[k] if k in named else self._read(k, given) for k in self.names])

    def _further(self, named: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        return {}

    def _read(self, name: str, given: Mapping[str, float]) -> float:
        return float(given[name])

    def optimum(self, theta: FloatArray, log_budget: FloatArray) -> FloatArray:
        """Return log N* of laws θ, shape (K, P), for a log budget C = 6 N D of each, shape (K,): shape (K,).

        The smallest A/N^α + B/D^β on C = 6 N D has α A/N^α = β B/D^β.
        """
        alpha, beta = self.exponents(theta)
        total = log_budget - np.log(6.0) - self.params - self.tokens
        gap = np.log(alpha / beta) + theta[:, 1] - theta[:, 2]
        return np.asarray(self.params + (gap + beta * total) / (alpha + beta))


class Additive(Form):
    """E + A/N^α + B/D^β (Hoffmann et al. 2022)."""

    name: ClassVar[str] = "additive"
    names: ClassVar[tuple[str, ...]] = ("E", "a", "b", "alpha", "beta")
    equation: ClassVar[str] = "E + A/N^α + B/D^β"

    def values(self, theta: FloatArray, at: Place) -> Values:
        """Losses with derivatives."""
        e, a, b, alpha, beta = (theta[:, i : i + 1] for i in range(5))
        x, y = at.params, at.tokens
        of_n, of_d = np.exp(a - alpha * x), np.exp(b - beta * y)
        slope = np.empty((len(theta), 5, len(x)))
        slope[:, 0] = 1.0
        slope[:, 1], slope[:, 2] = of_n, of_d
        np.multiply(of_n, -x, out=slope[:, 3])
        np.multiply(of_d, -y, out=slope[:, 4])

        def bend(c: FloatArray) -> FloatArray:
            total = np.zeros((len(theta), 5, 5))
            for i, j, term, z in ((1, 3, of_n, x), (2, 4, of_d, y)):
                pull = c * term
                total[:, i, i] = pull.sum(axis=1)
                total[:, i, j] = total[:, j, i] = -(pull @ z)
                total[:, j, j] = pull @ (z * z)
            return total

        return Values(e + of_n + of_d, slope, bend)


class Tied(Form):
    """E + A/N^α + B/D^α: one exponent for both."""

    name: ClassVar[str] = "tied"
    names: ClassVar[tuple[str, ...]] = ("E", "a", "b", "alpha")
    equation: ClassVar[str] = "E + A/N^α + B/D^α"

    def values(self, theta: FloatArray, at: Place) -> Values:
        """Losses with derivatives."""
        e, a, b, alpha = (theta[:, i : i + 1] for i in range(4))
        x, y = at.params, at.tokens
        of_n, of_d = np.exp(a - alpha * x), np.exp(b - alpha * y)
        slope = np.empty((len(theta), 4, len(x)))
        slope[:, 0] = 1.0
        slope[:, 1], slope[:, 2] = of_n, of_d
        slope[:, 3] = -x * of_n - y * of_d

        def bend(c: FloatArray) -> FloatArray:
            total = np.zeros((len(theta), 4, 4))
            for i, term, z in ((1, of_n, x), (2, of_d, y)):
                pull = c * term
                total[:, i, i] = pull.sum(axis=1)
                total[:, i, 3] = total[:, 3, i] = -(pull @ z)
                total[:, 3, 3] += pull @ (z * z)
            return total

        return Values(e + of_n + of_d, slope, bend)


class Coupled(Form):
    """E + ((A/N^α)^(1/g) + (B/D^β)^(1/g))^g: additive at g = 1, the larger of the two terms towards g = 0."""

    name: ClassVar[str] = "coupled"
    names: ClassVar[tuple[str, ...]] = ("E", "a", "b", "alpha", "beta", "g")
    equation: ClassVar[str] = "E + ((A/N^α)^(1/g) + (B/D^β)^(1/g))^g"

    def _bound(self, name: str, smallest_loss: float) -> tuple[float, float]:
        return (0.1, 4.0) if name == "g" else super()._bound(name, smallest_loss)

    def _further(self, named: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        return {"g": named["g"]}

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
        slope = np.empty((len(theta), 6, len(x)))
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
    names: ClassVar[tuple[str, ...]] = ("E", "a", "b", "alpha", "beta", "log_rd", "log_rn")
    equation: ClassVar[str] = "E + A/N'^α + B/D'^β"

    def _bound(self, name: str, smallest_loss: float) -> tuple[float, float]:
        if name in ("log_rd", "log_rn"):
            return float(np.log(1e-2)), float(np.log(1e4))
        return super()._bound(name, smallest_loss)

    def _further(self, named: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        return {"R_D": np.exp(named["log_rd"]), "R_N": np.exp(named["log_rn"])}

    def _read(self, name: str, given: Mapping[str, float]) -> float:
        return float(np.log(given[{"log_rd": "R_D", "log_rn": "R_N"}[name]]))

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

        def bend(c: FloatArray) -> FloatArray:
            # The part of the two exponentials, with N' and D' held: enough to keep the steps of the right length.
            total = np.zeros((len(theta), 7, 7))
            for i, j, term, z in ((1, 3, of_n, x), (2, 4, of_d, y)):
                pull = c * term
                total[:, i, i] = pull.sum(axis=1)
                total[:, i, j] = total[:, j, i] = -(pull * z).sum(axis=1)
                total[:, j, j] = (pull * z * z).sum(axis=1)
            return total

        return Values(theta[:, :1] + of_n + of_d, slope, bend)

    def loss(self, theta: FloatArray, at: Place) -> FloatArray:
        """Return losses without derivatives."""
        of_n, of_d, _, _ = self._terms(theta, self.shift(at))
        return theta[:, :1] + of_n + of_d

    def own_loss(self, theta: FloatArray, at: Place) -> FloatArray:
        """Return the loss of law k at place k, shape (K,)."""
        x, y, u = (None if v is None else v[:, None] for v in self.shift(at))
        of_n, of_d, _, _ = self._terms(theta, Place(x, y, u))  # type: ignore[arg-type]
        return (theta[:, :1] + of_n + of_d)[:, 0]

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
