"""Gaussian mixtures, their start by k-means, and principal components, of numpy's arrays or torch's.

``xp`` is the module of the arrays. Sums over examples are products in the precision of the data, and parameters are
kept in double precision. On a GPU nothing is read back within a step of EM: only a look at the likelihood waits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

COVARIANCES = ("diagonal", "shrunk", "tied", "full")
# Share of the mean variance that is added to every variance: single precision resolves it.
FLOOR = 1e-4
# Steps between two looks at the likelihood.
LOOK = 5
# Examples below which a component is dead.
EMPTY = 1e-10
# Logarithm of the weight of a dead component.
NEVER = -1e30
# Logarithm of the least share: products with smaller ones are slow subnormals.
LEAST = -60.0
# Share in a component below which an example does not enter its covariance.
SLIGHT = 1e-10
# Rounds of Lloyd's algorithm, which only gives EM a start.
ROUNDS = 10
# Rows of the features that are centred at a time.
ROWS = 2048
# Dimensions up to which all eigenvectors are computed at once.
SMALL = 512
# Width of the first block of the subspace iteration.
WIDTH = 128
# Looks at one width, before giving up and computing all eigenvectors.
LOOKS = 5
# Precision of an eigenvector: its residual relative to its eigenvalue.
PRECISION = 1e-3
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
        """Return the probability of each component given each example; a row for each example."""
        respond, z = responder(self, x.dtype, xp), _prepared(x, self.covariance, xp)
        return xp.concatenate([respond(z[rows])[0].T for rows in parts(z, len(self.means))])

    def log_likelihood(self, x: Any, xp: Any = np) -> float:
        """Return the mean logarithm of the density at examples."""
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

    # Only steps with diagonal covariance can be recorded on a GPU: factoring matrices and choosing rows read values
    # back from the device.
    go, taken = looped(step, xp if covariance == "diagonal" else np), 0
    while taken < steps:
        go(min(LOOK, steps - taken))
        taken = min(taken + LOOK, steps)
        if taken % LOOK == 0 and abs(float(trace[taken - 1] - trace[taken - 2])) < tolerance:
            break
    return replace(model, trace=tuple(trace[:taken].tolist()))


def _prepared(x: Any, covariance: str, xp: Any) -> Any:
    """Return what a step reads of examples: coordinates, for diagonal covariance after their squares."""
    return xp.concatenate([x * x, x], axis=1) if covariance == "diagonal" else x


def _started(x: Any, z: Any, labels: Any, components: int, covariance: str, xp: Any) -> Mixture:
    """Return the estimates from hard assignments."""
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
    """Return the estimates from the components' shares in examples, and the mean log-likelihood before."""
    sums: list[Any] = []
    for rows in parts(z, len(model.means)):
        shares, likelihood = respond(z[rows])
        found = [*_FORMS[model.covariance].sums(model, z[rows], shares, xp)]
        found += [shares.sum(axis=1, dtype=xp.float64), likelihood.sum(dtype=xp.float64)]
        sums = [a + b for a, b in zip(sums, found, strict=True)] if sums else found
    first, second, counts, likelihood = sums
    alive = xp.where(counts > EMPTY, counts, xp.ones_like(counts))
    means, spread = _FORMS[model.covariance].estimate(model, first, second, alive, len(z), xp)
    return replace(model, counts=counts, means=means, spread=spread), likelihood / len(z)


def responder(model: Mixture, dtype: Any, xp: Any = np) -> Respond:
    """Return a function from prepared examples to shares (components × examples) and log densities."""
    alive = model.counts > EMPTY
    weights = xp.log(xp.where(alive, model.counts, xp.ones_like(model.counts)) / model.counts.sum())
    weights = xp.where(alive, weights, xp.full_like(weights, NEVER))
    weights = weights - 0.5 * model.means.shape[1] * math.log(2 * math.pi)
    score = _FORMS[model.covariance].score(model, weights, dtype, xp)

    def respond(z: Any) -> tuple[Any, Any]:
        # Softmax over components, in place: these are the largest arrays of a step.
        shares = score(z)
        top = xp.amax(shares, axis=0)
        shares -= top
        xp.clip(shares, LEAST, None, out=shares)
        xp.exp(shares, out=shares)
        total = shares.sum(axis=0)
        shares /= total
        return shares, top + xp.log(total)

    return respond


class _Diagonal:
    """Variances of each component: z holds squares and coordinates, so that one product gives all sums."""

    @staticmethod
    def score(model: Mixture, weights: Any, dtype: Any, xp: Any) -> Callable[[Any], Any]:
        """Return a function from prepared examples to log densities, components × examples."""
        pull = model.means / model.spread
        both = xp.asarray(xp.concatenate([-0.5 / model.spread, pull], axis=1), dtype=dtype)
        own = weights - 0.5 * (model.means * pull + xp.log(model.spread)).sum(axis=1)
        own = xp.asarray(own[:, None], dtype=dtype)

        def score(z: Any) -> Any:
            found = both @ z.T
            found += own
            return found

        return score

    @staticmethod
    def sums(model: Mixture, z: Any, shares: Any, xp: Any) -> tuple[Any, Any]:
        """Return the weighted sums of coordinates and of their products."""
        found, size = xp.asarray(shares @ z, dtype=xp.float64), model.means.shape[1]
        return found[:, size:], found[:, :size]

    @staticmethod
    def estimate(model: Mixture, first: Any, second: Any, alive: Any, count: int, xp: Any) -> tuple[Any, Any]:
        """Return means and spreads from the sums."""
        means = first / alive[:, None]
        return means, xp.clip(second / alive[:, None] - means * means, 0, None) + model.floor


class _Tied:
    """One matrix for all components."""

    @staticmethod
    def score(model: Mixture, weights: Any, dtype: Any, xp: Any) -> Callable[[Any], Any]:
        """Return a function from prepared examples to log densities, components × examples."""
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

    @staticmethod
    def sums(model: Mixture, x: Any, shares: Any, xp: Any) -> tuple[Any, Any]:
        """Return the weighted sums of coordinates and of their products."""
        wide = xp.asarray(x, dtype=xp.float64)
        return xp.asarray(shares @ x, dtype=xp.float64), wide.T @ wide

    @staticmethod
    def estimate(model: Mixture, first: Any, second: Any, alive: Any, count: int, xp: Any) -> tuple[Any, Any]:
        """Return means and spreads from the sums."""
        means = first / alive[:, None]
        level = model.floor * xp.eye(first.shape[1], dtype=first.dtype)
        return means, (second - first.T @ means) / count + level


class _Full:
    """A matrix for each component, shrunk towards the one they share if the mixture says so."""

    @staticmethod
    def score(model: Mixture, weights: Any, dtype: Any, xp: Any) -> Callable[[Any], Any]:
        """Return a function from prepared examples to log densities, components × examples."""
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

    @staticmethod
    def sums(model: Mixture, x: Any, shares: Any, xp: Any) -> tuple[Any, Any]:
        """Return the same of distances from the previous means, over examples with a noticeable share."""
        first, second = xp.zeros_like(model.means), []
        for k in range(len(shares)):
            (rows,) = xp.where(shares[k] > SLIGHT)
            apart = xp.asarray(x[rows], dtype=xp.float64) - model.means[k]
            weighted = apart * xp.asarray(shares[k][rows], dtype=xp.float64)[:, None]
            first[k] = weighted.sum(axis=0)
            second.append(weighted.T @ apart)
        return first, xp.stack(second)

    @staticmethod
    def estimate(model: Mixture, first: Any, second: Any, alive: Any, count: int, xp: Any) -> tuple[Any, Any]:
        """Return means and spreads from the sums."""
        moved, size = first / alive[:, None], first.shape[1]
        spread = second / alive[:, None, None] - moved[:, :, None] * moved[:, None, :]
        if model.covariance == "shrunk":
            own = alive[:, None, None]
            shared = (own * spread).sum(axis=0) / count
            spread = (own * spread + size * shared) / (own + size)
        return model.means + moved, spread + model.floor * xp.eye(size, dtype=first.dtype)


_FORMS: dict[str, Any] = {"diagonal": _Diagonal, "tied": _Tied, "shrunk": _Full, "full": _Full}


def cluster(x: Any, draws: Any, xp: Any = np) -> Any:
    """Assign examples to clusters by k-means.

    Seeds are drawn with chances in proportion to the squared distance from those already there,
    a few candidates for each, of which the one that leaves the least sum of squares is taken
    (greedy k-means++, as in scikit-learn). They are drawn along the order of the first coordinate,
    so that the order in which examples are given does not matter.

    Parameters
    ----------
    x : array, shape (examples, dimensions)
        Coordinates.
    draws : array of float64, shape (clusters, candidates)
        Random numbers from 0 to 1; see :func:`candidates`.
    xp : module
        numpy or torch.

    Returns
    -------
    array of int
        A cluster for each example. One without examples stays empty.

    Examples
    --------
    >>> x = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> cluster(x, np.array([[0.2], [0.9]]))
    array([0, 0, 1, 1])
    """
    centres = seeds(x[xp.argsort(x[:, 0])], draws, xp)
    for _ in range(ROUNDS):
        centres = _centres(x, nearest(x, centres, xp), centres, xp)
    return nearest(x, centres, xp)


def candidates(clusters: int) -> int:
    """Return the number of candidates for each seed, the same as scikit-learn's.

    >>> candidates(1), candidates(30)
    (2, 5)
    """
    return 2 + int(math.log(clusters))


def seeds(x: Any, draws: Any, xp: Any = np) -> Any:
    """Draw a row of x for each row of draws, far from each other (greedy k-means++).

    >>> seeds(np.array([[0.0], [0.0], [3.0]]), np.array([[0.1], [0.5]]))
    array([[0.],
           [3.]])
    """
    lengths = (x * x).sum(axis=1)
    rounding = 16 * float(xp.finfo(x.dtype).eps)

    # Distances below rounding are 0: a copy of a seed must not be drawn again.
    def drawn(chances: Any, draw: Any) -> Any:
        sums = xp.cumsum(chances, 0, dtype=xp.float64)
        return xp.clip(xp.searchsorted(sums, draw * sums[-1:]), 0, len(x) - 1)

    def apart(rows: Any) -> Any:
        """Squared distance of every example from some, a column for each of these."""
        both = lengths[:, None] + lengths[rows]
        found = both - 2 * (x @ x[rows].T)
        return xp.where(found > rounding * both, found, xp.zeros_like(found))

    first = drawn(xp.ones_like(lengths), draws[0, :1])
    chances, at = apart(first)[:, 0], xp.ones_like(first)
    rows = xp.zeros_like(draws[:, 0], dtype=first.dtype) + first

    def step() -> None:
        tried = drawn(chances, draws[at][0])
        left = xp.minimum(chances[:, None], apart(tried))
        # An index of one number stays on the device; a number would be read from it.
        best = left.sum(axis=0, dtype=xp.float64).argmin()[None]
        rows[at] = tried[best]
        chances[...] = left[:, best][:, 0]
        at[...] = at + 1

    looped(step, xp)(len(draws) - 1)
    return x[rows]


def nearest(x: Any, centres: Any, xp: Any = np) -> Any:
    """Return the nearest centre to each row.

    >>> nearest(np.array([[0.0], [2.0]]), np.array([[3.0], [-1.0]]))
    array([1, 0])
    """
    half = (centres * centres).sum(axis=1) / 2
    return xp.concatenate([(x[rows] @ centres.T - half).argmax(axis=1) for rows in parts(x, len(centres))])


def parts(x: Any, width: int) -> list[slice]:
    """Return slices of rows, so that a table of them stays in the cache (on a GPU: in memory)."""
    most = 2**19 if str(getattr(x, "device", "cpu")) == "cpu" else 2**29
    rows = max(most // width, 128)
    return [slice(start, start + rows) for start in range(0, len(x), rows)]


def _centres(x: Any, labels: Any, old: Any, xp: Any) -> Any:
    """Return the means of clusters; an empty one keeps its old mean."""
    sums, counts = xp.zeros_like(old), xp.zeros_like(old[:, 0])
    names = xp.arange(len(old))
    for rows in parts(x, len(old)):
        marks = xp.asarray(labels[rows][:, None] == names, dtype=x.dtype)
        sums = sums + marks.T @ x[rows]
        counts = counts + marks.sum(axis=0)
    return xp.where(counts[:, None] > 0, sums / xp.clip(counts, 1, None)[:, None], old)


def looped(step: Callable[[], None], xp: Any) -> Callable[[int], None]:
    """Return a function that takes a step so many times.

    The step changes arrays in place and reads nothing from the device. An array module may have a
    ``looped`` of its own, which records the step and plays it back: on a GPU launching the kernels of
    a small step takes longer than running them.

    >>> import numpy as np
    >>> total = np.zeros(1)
    >>> def step():
    ...     total[...] = total + 2
    >>> looped(step, np)(3)
    >>> total
    array([6.])
    """

    def go(times: int) -> None:
        for _ in range(times):
            step()

    found: Callable[[int], None] = xp.looped(step) if hasattr(xp, "looped") else go
    return found


@dataclass(frozen=True, eq=False)
class Projection:
    """Principal axes of the training examples.

    Attributes
    ----------
    mean, axes : array, shapes (dimensions,) and (dimensions, kept)
        Of the training examples; each axis points to where its scores have the longer tail.
    scale : scalar array
        The largest centred value, by which features are divided; infinite where all are the same.
    kept : float
        Share of the variance that the axes hold.
    """

    mean: Any
    axes: Any
    scale: Any
    kept: float

    def apply(self, features: Any, xp: Any = np) -> Any:
        """Return the scores of examples on the axes, a row for each."""
        found = [part @ self.axes for part in _centred(features, self.mean, self.scale)]
        return found[0] if len(found) == 1 else xp.concatenate(found)


def project(features: Any, energy: float = 0.8, xp: Any = np) -> tuple[Any, Projection]:
    """Reduce features to the fewest principal components that hold a share of the variance.

    Features are centred, not standardised: the energy is that of the covariance. In more than
    512 dimensions the axes come from subspace iteration and are within a thousandth of exact.

    Parameters
    ----------
    features : array, shape (examples, dimensions)
        Of the training examples; a memory map will do.
    energy : float
        Share of the variance to keep, above 0; 1 keeps every direction that varies.
    xp : module
        numpy or torch.

    Returns
    -------
    tuple
        Scores of the examples and the :class:`Projection` that makes them, also of others. Where
        all examples are the same, one score of 0 for each.

    Examples
    --------
    >>> x = np.random.default_rng(0).standard_normal((100, 3)) * [10.0, 1.0, 0.1]
    >>> scores, projection = project(x, 0.8)
    >>> scores.shape, round(projection.kept, 2)
    ((100, 1), 0.99)
    """
    mean = xp.asarray(features.mean(axis=0, dtype=xp.float64), dtype=features.dtype)
    scale = _scale(features, mean, xp)
    if features.shape[0] < features.shape[1]:
        # Fewer examples than dimensions: the products of examples are the smaller matrix.
        centred = (features - mean) / scale
        values, vectors, total = leading(centred @ centred.T, energy, xp)
        axes = centred.T @ (vectors / xp.sqrt(values))
    else:
        matrix = sum(part.T @ part for part in _centred(features, mean, scale))
        values, axes, total = leading(matrix, energy, xp)
    kept = float(values.sum()) / total if total else 1.0
    projection = Projection(mean, axes, scale, kept)
    scores = projection.apply(features, xp)
    # Eigenvectors have no sign of their own: point each to the longer tail, so that the order of examples, a rotation
    # or another machine does not change the seeds of k-means.
    long = (scores * scores * scores).sum(axis=0)
    sign = xp.where(long < 0, -xp.ones_like(long), xp.ones_like(long))
    return scores * sign, Projection(mean, axes * sign, scale, kept)


def leading(matrix: Any, share: float, xp: Any = np) -> tuple[Any, Any, float]:
    """Return the largest eigenvalues that make up a share of the trace, their vectors, and the trace.

    Examples
    --------
    >>> values, vectors, total = leading(np.diag([1.0, 8.0, 1.0]), 0.75)
    >>> values.round(3), abs(vectors).round(3).ravel(), total
    (array([8.]), array([0., 1., 0.]), 10.0)
    """
    size = len(matrix)
    total = float(xp.trace(matrix))
    # Of many dimensions a few axes usually hold the share: subspace iteration finds them several times faster.
    if size > SMALL and share < 1 and total > 0:
        found = _iterated(matrix, share * total, xp)
        if found is not None:
            return *found, total
    values, vectors = xp.linalg.eigh(matrix)
    values, vectors = xp.flip(values, (0,)), xp.flip(vectors, (1,))
    rounding = size * float(xp.finfo(matrix.dtype).eps)
    varied = max(int((values > rounding * values[0]).sum()), 1) if total > 0 else 1
    count = min(_enough(values, share * total, xp) or size, varied)
    return xp.clip(values[:count], 1e-30, None), vectors[:, :count], total


def _iterated(matrix: Any, wanted: float, xp: Any) -> tuple[Any, Any] | None:
    """Return leading eigenpairs by subspace iteration; None where most are needed, or gaps are small.

    The block is twice as wide as the result, and starts from the same random signs every time.
    """
    size, random = len(matrix), np.random.default_rng(0)
    image = xp.zeros((size, 0), dtype=matrix.dtype)
    for width in (WIDTH * 2**i for i in range(20)):
        if width > size // 3:
            return None
        fresh = random.integers(0, 2, (size, width - image.shape[1]), dtype=np.int8) - 0.5
        image = xp.concatenate([image, xp.asarray(fresh, dtype=matrix.dtype)], axis=1)
        for _ in range(LOOKS):
            block = _orthonormal(matrix @ image, xp, passes=1)  # nearly: good enough on the way
            block = _orthonormal(matrix @ (matrix @ block), xp, passes=2)
            image = matrix @ block
            values, turn = xp.linalg.eigh(block.T @ image)
            values, turn = xp.flip(values, (0,)), xp.flip(turn, (1,))
            count = _enough(values, wanted, xp)
            if count is None or count > width // 2:
                break
            vectors = block @ turn[:, :count]
            # Done if they are eigenvectors, and orthonormal.
            off = image @ turn[:, :count] - vectors * values[:count]
            worst = (xp.sqrt((off * off).sum(axis=0)) / values[:count]).max()
            gram = vectors.T @ vectors - xp.eye(count, dtype=values.dtype)
            if float(xp.maximum(worst, xp.abs(gram).max())) < PRECISION:
                return values[:count], vectors
        else:
            return None
    return None


def _enough(values: Any, wanted: float, xp: Any) -> int | None:
    """Return how many of the values, the largest first, add up to what is wanted; None if they do not."""
    sums = xp.cumsum(xp.asarray(values, dtype=xp.float64), 0)
    count = int((sums < wanted).sum())
    return count + 1 if count < len(values) else None


def _orthonormal(block: Any, xp: Any, passes: int) -> Any:
    """Return an orthonormal basis of a block, by Cholesky factors in double precision."""
    wide = xp.asarray(block, dtype=xp.float64)
    for _ in range(passes):
        gram = wide.T @ wide
        # A ridge of rounding, without which the factor of a block of lower rank fails.
        gram = gram + (1e-14 * xp.trace(gram)) * xp.eye(len(gram), dtype=gram.dtype)
        wide = wide @ xp.linalg.inv(xp.linalg.cholesky(gram)).T
    return xp.asarray(wide, dtype=block.dtype)


def _centred(features: Any, mean: Any, scale: Any) -> Iterator[Any]:
    """Yield some rows at a time, centred and scaled, so that a memory map is never copied whole."""
    for start in range(0, len(features), ROWS):
        part = features[start : start + ROWS] - mean
        part /= scale
        yield part


def _scale(features: Any, mean: Any, xp: Any) -> Any:
    """Return the largest distance from the mean; infinite where it is rounding in every feature.

    Division by it keeps squares of very large or very small features in the range of float32.
    """
    high, low = xp.amax(features, axis=0), xp.amin(features, axis=0)
    found = xp.maximum(high - mean, mean - low)
    eps = max(4 * float(xp.finfo(features.dtype).eps), len(features) * 2.0**-52)
    rounding = eps * xp.maximum(xp.abs(high), xp.abs(low))
    most = xp.where(found > rounding, found, xp.zeros_like(found)).max()
    return xp.where(most > 0, most, xp.full_like(most, np.inf))
