"""Mixtures of Gaussians fitted by EM in matrix products, for numpy or torch.

Sums over examples are products in the precision of the data; parameters are kept in double
precision. A step waits for nothing to be read from the device, only a look at the likelihood does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from curvewise.ranking._clusters import parts
from curvewise.ranking._loops import looped

COVARIANCES = ("diagonal", "shrunk", "tied", "full")
FLOOR = 1e-4  # of the mean variance, added to every variance: single precision resolves it
LOOK = 5  # steps between two looks at the likelihood
EMPTY = 1e-10  # examples below which a component is dead
NEVER = -1e30  # logarithm of the weight of a dead component
LEAST = -60.0  # logarithm of the least share: products with smaller ones are slow subnormals
SLIGHT = 1e-10  # share in a component below which an example does not enter its covariance

Respond = Callable[[Any], tuple[Any, Any]]


@dataclass(frozen=True, eq=False)
class Mixture:
    """Gaussians that together describe examples.

    Attributes
    ----------
    covariance : {"diagonal", "shrunk", "tied", "full"}
        Their form.
    counts, means : array, shapes (components,) and (components, dimensions)
        How many examples each has, and where it lies.
    spread : array
        Variances (components, dimensions) for diagonal ones; a matrix for tied ones; a matrix for
        each otherwise.
    floor : scalar array
        What was added to variances.
    trace : tuple of float
        Mean log-likelihood of an example before each step of EM.
    """

    covariance: str
    counts: Any
    means: Any
    spread: Any
    floor: Any
    trace: tuple[float, ...] = ()

    def posteriors(self, x: Any, xp: Any = np) -> Any:
        """Chance of each component given each example; a row for each example."""
        respond, z = responder(self, x.dtype, xp), _prepared(x, self.covariance, xp)
        return xp.concatenate([respond(z[rows])[0].T for rows in parts(z, len(self.means))])

    def log_likelihood(self, x: Any, xp: Any = np) -> float:
        """Mean logarithm of the density at examples."""
        respond, z = responder(self, x.dtype, xp), _prepared(x, self.covariance, xp)
        sums = [respond(z[r])[1].sum(dtype=xp.float64) for r in parts(z, len(self.means))]
        return float(sum(sums)) / len(x)


def fit_mixture(
    x: Any,
    labels: Any,
    components: int,
    covariance: str = "diagonal",
    *,
    steps: int = 100,
    tolerance: float = 1e-3,
    xp: Any = np,
) -> Mixture:
    """Fit a mixture by EM from a cluster for each example.

    Parameters
    ----------
    x : array, shape (examples, dimensions)
        Coordinates.
    labels : array of int
        The cluster each example starts in.
    components : int
        Number of clusters. An empty one stays so.
    covariance : {"diagonal", "shrunk", "tied", "full"}
        ``"shrunk"`` pulls each component's covariance towards the one all share, with the weight
        of as many examples as there are dimensions.
    steps : int
        The most steps.
    tolerance : float
        EM stops where a step adds less to the mean log-likelihood; looked at every fifth step.
    xp : module
        numpy or torch.

    Examples
    --------
    >>> x = np.random.default_rng(0).standard_normal((200, 2)) + [[0, 0], [9, 9]] * 100
    >>> found = fit_mixture(x, np.array([0, 1] * 100), 2)
    >>> found.counts, found.means.round(0) + 0.0
    (array([100., 100.]), array([[0., 0.],
                                 [9., 9.]]))
    """
    z = _prepared(x, covariance, xp)
    model = _started(x, z, labels, components, covariance, xp)
    trace = xp.zeros(steps, dtype=xp.float64)
    at = xp.zeros(1, dtype=xp.int64)

    def step() -> None:
        found, likelihood = _step(model, z, responder(model, x.dtype, xp), xp)
        for name in ("counts", "means", "spread"):
            getattr(model, name)[...] = getattr(found, name)
        trace[at] = likelihood
        at[...] = at + 1

    # Matrices are factored, and rows chosen, with a look at what was found: not to be recorded.
    go, taken = looped(step, xp if covariance == "diagonal" else np), 0
    while taken < steps:
        go(min(LOOK, steps - taken))
        taken = min(taken + LOOK, steps)
        if taken % LOOK == 0 and abs(float(trace[taken - 1] - trace[taken - 2])) < tolerance:
            break
    return replace(model, trace=tuple(trace[:taken].tolist()))


def _prepared(x: Any, covariance: str, xp: Any) -> Any:
    """What a step reads of examples: coordinates, for diagonal covariance after their squares."""
    return xp.concatenate([x * x, x], axis=1) if covariance == "diagonal" else x


def _started(x: Any, z: Any, labels: Any, components: int, covariance: str, xp: Any) -> Mixture:
    """Estimates from hard assignments."""
    centre = x.mean(axis=0, dtype=xp.float64)
    centred = x - xp.asarray(centre, dtype=x.dtype)
    floor = FLOOR * (centred * centred).mean(dtype=xp.float64)
    floor = xp.where(floor > 0, floor, xp.ones_like(floor))
    means = xp.zeros((components, 1), dtype=xp.float64) + centre
    blank = Mixture(covariance, means[:, 0], means, means, floor)
    names, none = xp.arange(components), x[:0, 0]
    left = iter(parts(z, components))

    def assigned(_: Any) -> tuple[Any, Any]:
        return xp.asarray(names[:, None] == labels[next(left)], dtype=x.dtype), none

    return _step(blank, z, assigned, xp)[0]


def _step(model: Mixture, z: Any, respond: Respond, xp: Any) -> tuple[Mixture, Any]:
    """Estimates from the components' shares in examples, and the mean log-likelihood before."""
    sums: list[Any] = []
    for rows in parts(z, len(model.means)):
        shares, likelihood = respond(z[rows])
        found = [*_SUMS[model.covariance](model, z[rows], shares, xp)]
        found += [shares.sum(axis=1, dtype=xp.float64), likelihood.sum(dtype=xp.float64)]
        sums = [a + b for a, b in zip(sums, found, strict=True)] if sums else found
    first, second, counts, likelihood = sums
    alive = xp.where(counts > EMPTY, counts, xp.ones_like(counts))
    means, spread = _ESTIMATES[model.covariance](model, first, second, alive, len(z), xp)
    return replace(model, counts=counts, means=means, spread=spread), likelihood / len(z)


def responder(model: Mixture, dtype: Any, xp: Any = np) -> Respond:
    """A function from prepared examples to shares (components × examples) and log densities."""
    alive = model.counts > EMPTY
    weights = xp.log(xp.where(alive, model.counts, xp.ones_like(model.counts)) / model.counts.sum())
    weights = xp.where(alive, weights, xp.full_like(weights, NEVER))
    weights = weights - 0.5 * model.means.shape[1] * math.log(2 * math.pi)
    score = _SCORES[model.covariance](model, weights, dtype, xp)

    def respond(z: Any) -> tuple[Any, Any]:
        shares = score(z)
        top = xp.amax(shares, axis=0)
        shares -= top
        xp.clip(shares, LEAST, None, out=shares)
        xp.exp(shares, out=shares)
        total = shares.sum(axis=0)
        shares /= total
        return shares, top + xp.log(total)

    return respond


def _score_diagonal(model: Mixture, weights: Any, dtype: Any, xp: Any) -> Callable[[Any], Any]:
    pull = model.means / model.spread
    both = xp.asarray(xp.concatenate([-0.5 / model.spread, pull], axis=1), dtype=dtype)
    own = weights - 0.5 * (model.means * pull + xp.log(model.spread)).sum(axis=1)
    own = xp.asarray(own[:, None], dtype=dtype)

    def score(z: Any) -> Any:
        found = both @ z.T
        found += own
        return found

    return score


def _score_tied(model: Mixture, weights: Any, dtype: Any, xp: Any) -> Callable[[Any], Any]:
    factor = xp.linalg.cholesky(model.spread)
    whiten = xp.linalg.inv(factor).T
    centres = model.means @ whiten
    own = weights - xp.log(xp.diagonal(factor)).sum() - 0.5 * (centres * centres).sum(axis=1)
    whiten, centres, own = (xp.asarray(v, dtype=dtype) for v in (whiten, centres, own[:, None]))

    def score(x: Any) -> Any:
        white = x @ whiten
        found = centres @ white.T
        found += own - 0.5 * (white * white).sum(axis=1)
        return found

    return score


def _score_full(model: Mixture, weights: Any, dtype: Any, xp: Any) -> Callable[[Any], Any]:
    factors = xp.linalg.cholesky(model.spread)
    sizes = xp.log(xp.diagonal(factors, 0, 1, 2)).sum(axis=1)
    own = xp.asarray((weights - sizes)[:, None], dtype=dtype)
    whiten = xp.asarray(xp.linalg.inv(factors).swapaxes(1, 2), dtype=dtype)
    means = xp.asarray(model.means, dtype=dtype)

    def score(x: Any) -> Any:
        found = xp.empty((len(means), len(x)), dtype=dtype)
        for k in range(len(means)):
            white = (x - means[k]) @ whiten[k]
            found[k] = -0.5 * xp.einsum("ij,ij->i", white, white)
        found += own
        return found

    return score


def _sums_diagonal(model: Mixture, z: Any, shares: Any, xp: Any) -> tuple[Any, Any]:
    found, size = xp.asarray(shares @ z, dtype=xp.float64), model.means.shape[1]
    return found[:, size:], found[:, :size]


def _sums_tied(model: Mixture, x: Any, shares: Any, xp: Any) -> tuple[Any, Any]:
    wide = xp.asarray(x, dtype=xp.float64)
    return xp.asarray(shares @ x, dtype=xp.float64), wide.T @ wide


def _sums_full(model: Mixture, x: Any, shares: Any, xp: Any) -> tuple[Any, Any]:
    """Of distances from the means before, over the examples that have a share worth the name."""
    first, second = xp.zeros_like(model.means), []
    for k in range(len(shares)):
        (rows,) = xp.where(shares[k] > SLIGHT)
        apart = xp.asarray(x[rows], dtype=xp.float64) - model.means[k]
        weighted = apart * xp.asarray(shares[k][rows], dtype=xp.float64)[:, None]
        first[k] = weighted.sum(axis=0)
        second.append(weighted.T @ apart)
    return first, xp.stack(second)


def _estimate_diagonal(
    model: Mixture, first: Any, second: Any, alive: Any, count: int, xp: Any
) -> tuple[Any, Any]:
    means = first / alive[:, None]
    return means, xp.clip(second / alive[:, None] - means * means, 0, None) + model.floor


def _estimate_tied(
    model: Mixture, first: Any, second: Any, alive: Any, count: int, xp: Any
) -> tuple[Any, Any]:
    means = first / alive[:, None]
    level = model.floor * xp.eye(first.shape[1], dtype=first.dtype)
    return means, (second - first.T @ means) / count + level


def _estimate_full(
    model: Mixture, first: Any, second: Any, alive: Any, count: int, xp: Any
) -> tuple[Any, Any]:
    moved, size = first / alive[:, None], first.shape[1]
    spread = second / alive[:, None, None] - moved[:, :, None] * moved[:, None, :]
    if model.covariance == "shrunk":
        own = alive[:, None, None]
        shared = (own * spread).sum(axis=0) / count
        spread = (own * spread + size * shared) / (own + size)
    return model.means + moved, spread + model.floor * xp.eye(size, dtype=first.dtype)


_SCORES = {
    "diagonal": _score_diagonal,
    "tied": _score_tied,
    "shrunk": _score_full,
    "full": _score_full,
}
_SUMS = {"diagonal": _sums_diagonal, "tied": _sums_tied, "shrunk": _sums_full, "full": _sums_full}
_ESTIMATES = {
    "diagonal": _estimate_diagonal,
    "tied": _estimate_tied,
    "shrunk": _estimate_full,
    "full": _estimate_full,
}
