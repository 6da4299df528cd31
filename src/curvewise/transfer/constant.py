"""The losses that a blind guess is known for: the best constant, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, arg, either, suggest
from curvewise.types.results import FloatArray

# Sums of weights this close, relative to the total, are taken for equal.
TIE = 1e-10
# One number in so many is looked at first, to find two numbers with the median between them.
EVERY = 61
# Vectors that decide where to start the search for a direction: of all, and of each set.
SAMPLE, FEW = 2**15, 512
# Vectors closer than this, in radians, coincide with the direction.
AT = 1e-7
# Steps shorter than this, in radians, end a descent: the mean angle is flat there.
STOP = 3e-7
# Steps may be longer than Weiszfeld's, which makes for fewer of them.
LONGEST = 1.6
# Numbers that are looked at together: 8 MiB of float64.
BLOCK = 2**20

ALL = slice(None)

IntArray: TypeAlias = NDArray[np.intp]
Which: TypeAlias = slice | IntArray
# Which examples; the elements looked at, shape (B, e) or (B, e, D); their weights, (B, e).
Piece: TypeAlias = tuple[slice, NDArray[Any], FloatArray]
# Makes an iterator over values and their weights, both shape (m,); called once for each pass.
Passes: TypeAlias = Callable[[], Iterator[tuple[FloatArray, FloatArray]]]
# Of K directions: total angle (K,), pull of the vectors (K, D), what it is divided by (K,), and the weight of vectors
# that coincide with the direction (K,).
Sums: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True)
class NamedLoss:
    """Loss that a best constant is known for.

    Attributes
    ----------
    kind : {"classes", "numbers", "binary", "vectors"}
        Kind of the targets.
    unit : str
        Of the risk, for an axis.
    bounded : bool
        Whether the loss of an element lies between 0 and 1.
    """

    kind: str
    unit: str
    bounded: bool = False


LOSSES: dict[str, NamedLoss] = {
    "error": NamedLoss("classes", "error", bounded=True),
    "cross-entropy": NamedLoss("classes", "cross-entropy in nats"),
    "l1": NamedLoss("numbers", "L1 loss"),
    "l2": NamedLoss("numbers", "mean squared error"),
    "binary": NamedLoss("binary", "binary cross-entropy in nats"),
    "binary-error": NamedLoss("binary", "error of a label", bounded=True),
    "angular": NamedLoss("vectors", "angle in degrees"),
    "cosine": NamedLoss("vectors", "1 − cosine"),
}

_ALIASES = {
    "mae": "l1",
    "mse": "l2",
    "0/1": "error",
    "0-1": "error",
    "accuracy": "error",
    "nll": "cross-entropy",
    "ce": "cross-entropy",
    "bce": "binary",
}


def find_loss(name: Any) -> NamedLoss:
    """Return the loss of a name, or raise an error that suggests one."""
    if isinstance(name, str) and name in LOSSES:
        return LOSSES[name]
    plain = str(name).lower().replace("_", "-").replace(" ", "-")
    meant = f" Did you mean {_ALIASES[plain]!r}?" if plain in _ALIASES else suggest(plain, LOSSES)
    function = either(", or a pair of a function (prediction, targets) -> loss of each example and its constant", "")
    raise InputError(
        f"is not known: use one of {', '.join(map(repr, LOSSES))}{function}.{meant}", argument="loss", value=name
    )


def best_constant(
    loss: str, targets: TargetElements, per: str, classes: NDArray[Any] | None, smoothing: float
) -> FloatArray | IntArray:
    """Find the constants of smallest risk; a row for each, NaN where no target determines it.

    Codes of classes, or shape (K, C) frequencies, (K,) numbers, (K, D) directions.
    """
    if loss == "l1":
        return medians(targets, per)
    if loss == "angular":
        return directions(targets, per)
    cells, n_constants = targets.cells(per)
    if classes is not None:
        # Weight of each class for each constant, shape (K, C), counted in one bincount for each block.
        flat = np.zeros(n_constants * len(classes))
        for _, labels, weights in targets.pieces():
            where = cells * len(classes) + encode(labels, classes)
            flat += np.bincount(where.ravel(), weights=weights.ravel(), minlength=len(flat))
        count = flat.reshape(n_constants, len(classes))
        # The first of classes that are equally frequent but for rounding, whatever the order of the examples.
        most = count >= count.max(axis=1, keepdims=True) * (1 - TIE)
        return np.argmax(most, axis=1) if loss == "error" else _smooth(count, targets, smoothing)
    total = _by_cell(targets.totals(to_unit if loss == "cosine" else None), cells, n_constants)
    if loss == "cosine":
        direction = to_unit(total)
        direction[~direction.any(axis=1), 0] = 1.0
        return direction
    weight = _by_cell(targets.totals(np.ones_like), cells, n_constants)
    with np.errstate(invalid="ignore"):
        mean = total / weight
    if loss == "binary" and smoothing > 0:
        both = _smooth(np.stack([weight - total, total], axis=1), targets, smoothing)
        return both[:, 1]
    return np.asarray(mean >= 0.5 - TIE).astype(np.float64) if loss == "binary-error" else mean


def _by_cell(columns: FloatArray, cells: IntArray, n_constants: int) -> FloatArray:
    if columns.ndim == 2:
        return np.stack([_by_cell(c, cells, n_constants) for c in columns.T], axis=1)
    return np.bincount(cells, weights=columns, minlength=n_constants).astype(np.float64)


def _smooth(weights: FloatArray, targets: TargetElements, smoothing: float) -> FloatArray:
    """Return frequencies, with ``smoothing`` more elements of each class."""
    each = targets.counts.sum() / targets.example_weights.sum()
    total = weights.sum(axis=1, keepdims=True) * each
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((weights * each + smoothing) / (total + smoothing * weights.shape[1]))


def encode(labels: NDArray[Any], classes: NDArray[Any]) -> IntArray:
    """Return the place of each label among sorted classes; 0 for one that is not among them."""
    place = np.searchsorted(classes, labels)
    place[place == len(classes)] = 0
    return place


_MEASURED: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "l1": lambda v, c: np.abs(v - c),
    "l2": lambda v, c: (v - c) ** 2,
    "binary": lambda v, c: np.where(v == 1, -np.log(c), -np.log1p(-c)),
    "binary-error": lambda v, c: (v != c).astype(np.float64),
    "angular": lambda v, c: np.degrees(angle(to_unit(v), c)),
    "cosine": lambda v, c: 0.5 * ((to_unit(v) - c) ** 2).sum(axis=-1),
}


def example_losses(
    loss: str, targets: TargetElements, per: str, constant: NDArray[Any], classes: NDArray[Any] | None
) -> FloatArray:
    """Return the mean loss of each example over its elements; NaN for one that has none."""
    cells, _ = targets.cells(per)
    of_element = constant[cells]  # shape (elements, ...)
    found = np.full(len(targets.array), np.nan)
    for rows, values, weight in targets.pieces():
        # Infinite are the logarithm of a class that was never seen, and squares of huge numbers.
        with np.errstate(divide="ignore", over="ignore"):
            if classes is None:
                each = _MEASURED[loss](values, of_element)
            elif loss == "error":
                each = encode(values, classes) != of_element
            else:
                each = -np.log(of_element)[np.arange(len(of_element)), encode(values, classes)]
        each = np.where(weight > 0, each, 0.0)
        count = targets.counts[rows]
        found[rows] = np.where(count > 0, each.sum(axis=1) / np.maximum(count, 1), np.nan)
    return found


def rounding(loss: str, constant: NDArray[Any]) -> float:
    """Return how large a loss of 0 may come out by rounding of the constant."""
    kind = LOSSES[loss].kind
    if kind == "vectors":
        return 1e-4 if loss == "angular" else 1e-12
    if kind != "numbers":
        return 0.0
    least = 1e-12 * float(np.nanmax(np.abs(constant)))
    return least if loss == "l1" else least**2


def medians(targets: TargetElements, per: str) -> FloatArray:
    """Return the median for each constant: the middle of those that minimise the mean absolute loss."""
    cells, n_constants = targets.cells(per)
    if n_constants == targets.size:
        columns = []
        for block in blocks_of(n_constants, len(targets.array)):
            values, weight = targets.gather(block)
            alike = (weight == weight.flat[0]).all() and weight.flat[0] > 0
            # numpy's median selects where ours sorts, and is several times as fast.
            columns.append(np.median(values, axis=0) if alike else weighted_median(values, weight))
        return np.concatenate(columns)

    def flat(which: Which) -> Iterator[tuple[FloatArray, FloatArray]]:
        return ((values.ravel(), weight.ravel()) for _, values, weight in targets.pieces(which))

    found = []
    for k in range(n_constants):
        places = np.flatnonzero(cells == k)
        steps = np.diff(places)
        which: Which = places
        if len(steps) and (steps == steps[0]).all():  # places evenly apart are much quicker to read as a slice
            which = slice(int(places[0]), int(places[-1]) + 1, int(steps[0]))
        found.append(streamed_median(partial(flat, which)))
    return np.array(found)


def weighted_median(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the median along the first axis, the middle where a stretch of values would do; NaN of nothing.

    >>> weighted_median(np.array([[1.0], [2.0], [9.0]]), np.array([[1.0], [1.0], [1.0]]))
    array([2.])
    >>> weighted_median(np.array([[1.0], [2.0], [9.0]]), np.array([[1.0], [1.0], [2.0]]))
    array([5.5])
    """
    order = np.argsort(values, axis=0, kind="stable")
    ranked = np.take_along_axis(values, order, axis=0)
    below = np.cumsum(np.take_along_axis(weights, order, axis=0), axis=0)
    total = below[-1]
    lower = np.argmax(below >= total * (0.5 - TIE), axis=0)
    upper = np.argmax(below > total * (0.5 + TIE), axis=0)
    column = np.arange(values.shape[1])
    return np.where(total > 0, 0.5 * (ranked[lower, column] + ranked[upper, column]), np.nan)


def streamed_median(parts: Passes) -> float:
    """Return the weighted median of one column that need not fit into memory, by two passes over it.

    A random part of the numbers tells between which two the median lies; a second pass sorts those between them and
    weighs the rest. Should it not lie there, which is hardly possible, all are sorted.
    """
    rng = np.random.default_rng(0)
    some = []
    for values, weights in parts():
        places = rng.integers(0, len(values), -(-len(values) // EVERY))
        some.append((values[places], weights[places]))
    values, weights = (np.concatenate(c) for c in zip(*some, strict=True))
    order, total = np.argsort(values), float(weights.sum())
    tried = [(-np.inf, np.inf)]
    # Dvoretzky, Kiefer and Wolfowitz: shares of m numbers are off by more than 3.3/√m once in a billion.
    around = 3.3 * float(np.sqrt((weights**2).sum())) / total if total > 0 else 0.5
    if around < 0.5:
        places = np.searchsorted(np.cumsum(weights[order]) / total, [0.5 - around, 0.5 + around])
        first, last = values[order][np.minimum(places, len(values) - 1)].tolist()
        tried.insert(0, (first, last))
    for low, high in tried:
        kept, ends, beyond = [], np.zeros(2), np.zeros(2)
        for values, weights in parts():
            inside = (values > low) & (values < high)
            kept.append((values[inside], weights[inside]))
            # Each number counts once if both bounds are the same.
            ends += weights @ (values <= low), weights @ ((values >= high) & (values > low))
            beyond += weights @ (values < low), weights @ (values > high)
        kept.append((np.array([low, high])[ends > 0], ends[ends > 0]))
        values, weights = (np.concatenate(c) for c in zip(*kept, strict=True))
        if (beyond < weights.sum() * (0.5 - TIE)).all():
            break
    return float(weighted_median(values[:, None], weights[:, None])[0])


def directions(targets: TargetElements, per: str) -> FloatArray:
    """Return the direction of smallest mean angle for each constant, shape (K, D)."""
    if per == "pixel" and targets.size > 1:
        parts = map(targets.gather, blocks_of(targets.size, len(targets.array) * targets.dimension))
        return np.concatenate([nearest_direction(to_unit(vectors), weight) for vectors, weight in parts])
    # Some of all vectors, alike from every block, find where all of them begin the descent.
    share = min(1.0, SAMPLE / max(1, int(targets.counts.sum())))
    rng = np.random.default_rng(0)
    chosen = []
    for _, v, w in targets.pieces():
        v, w = v.reshape(-1, v.shape[-1]), w.ravel()
        keep = (w > 0) & (rng.random(len(w)) < share)
        chosen.append((v[keep], w[keep]))
    sample, weight = (np.concatenate(c) for c in zip(*chosen, strict=True))

    def streamed(direction: FloatArray) -> Sums:
        shaped = ((to_unit(v.reshape(-1, 1, v.shape[-1])), w.reshape(-1, 1)) for _, v, w in targets.pieces())
        f, pull, divisor, at = (
            np.sum(s, axis=0) for s in zip(*(_sums(v, w, direction) for v, w in shaped), strict=True)
        )
        return f, pull, divisor, at

    return _descend(streamed, nearest_direction(to_unit(sample)[:, None, :], weight[:, None]))


def to_unit(vectors: FloatArray) -> FloatArray:
    """Scale vectors to length 1; zero vectors stay zero."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0, length, 1.0))


def angle(vectors: FloatArray, direction: FloatArray) -> FloatArray:
    """Return the angle in radians between unit vectors."""
    # The arc cosine loses half of the digits of small angles; this form (Kahan) does not.
    apart = np.linalg.norm(vectors - direction, axis=-1)
    return np.asarray(2.0 * np.arctan2(apart, np.linalg.norm(vectors + direction, axis=-1)))


def nearest_direction(vectors: FloatArray, weights: FloatArray) -> FloatArray:
    """Minimise the weighted sum of angles, for K sets of unit vectors at once.

    The mean angle may have several local minima. Some of the vectors decide which to take: descents
    from the mean direction and from the best of a set of directions that cover the sphere. From
    the better end all vectors lead down.

    Parameters
    ----------
    vectors : ndarray, shape (n, K, D)
    weights : ndarray, shape (n, K)

    Returns
    -------
    ndarray, shape (K, D)
    """
    some = slice(None, None, max(1, len(vectors) // FEW))
    few, light = vectors[some], weights[some]
    # Directions all over the sphere: the axes both ways, and 96 at random, always the same.
    axes = np.eye(vectors.shape[2])
    random = to_unit(np.random.default_rng(0).standard_normal((96, vectors.shape[2])))
    cover = np.concatenate([axes, -axes, random])
    best = np.argmin([_total(few, light, c) for c in cover], axis=0)
    mean = to_unit(np.einsum("nk,nkd->kd", weights, vectors))
    mean[~mean.any(axis=1), 0] = 1.0  # vectors that cancel have no mean direction: any will do
    ends = [_descend(lambda u: _sums(few, light, u), start) for start in (mean, cover[best])]
    better = _total(few, light, ends[0]) <= _total(few, light, ends[1])
    start = np.where(better[:, None], ends[0], ends[1])
    return _descend(lambda u: _sums(vectors, weights, u), start)


def _total(vectors: FloatArray, weights: FloatArray, direction: FloatArray) -> FloatArray:
    return np.asarray((weights * np.arccos(_cosine(vectors, direction))).sum(axis=0))


def _cosine(vectors: FloatArray, direction: FloatArray) -> FloatArray:
    of_each = np.broadcast_to(direction, vectors.shape[1:])
    return np.asarray(np.clip(np.einsum("nkd,kd->nk", vectors, of_each), -1.0, 1.0))


def _sums(vectors: FloatArray, weights: FloatArray, direction: FloatArray) -> Sums:
    cosine = _cosine(vectors, direction)
    theta = np.arccos(cosine)
    at = theta < AT
    far = np.where(at, 0.0, weights)
    each = far / np.maximum(np.sqrt(1.0 - cosine**2), AT)
    towards = np.einsum("nk,nkd->kd", each, vectors)
    pull = towards - (each * cosine).sum(axis=0)[:, None] * direction
    divisor = (far / np.maximum(theta, AT)).sum(axis=0)
    return (weights * theta).sum(axis=0), pull, divisor, (weights * at).sum(axis=0)


def _descend(sums: Callable[[FloatArray], Sums], start: FloatArray) -> FloatArray:
    """Weiszfeld's iteration on the sphere, with steps halved wherever the sum would rise.

    At a vector of the set it goes on unless the vector outweighs the pull of the others, as Vardi
    and Zhang 2000 do in the plane.
    """
    here = start.copy()
    now = sums(here)
    scale = np.ones(len(here))
    for _ in range(200):
        total, pull, divisor, at = now
        strength = np.linalg.norm(pull, axis=1)
        free = np.clip(1.0 - at / np.maximum(strength, 1e-300), 0.0, 1.0)
        step = (scale * free / np.maximum(divisor, 1e-300))[:, None] * pull
        if (np.linalg.norm(step, axis=1) < STOP).all():
            break
        # Along a great circle, by a tangent vector.
        length = np.linalg.norm(step, axis=1, keepdims=True)
        along = np.where(length > 0, step / np.maximum(length, 1e-300), 0.0)
        there = to_unit(np.cos(length) * here + np.sin(length) * along)
        then = sums(there)
        better = then[0] <= total
        scale = np.where(better, np.minimum(LONGEST, 2.0 * scale), 0.5 * scale)
        here = np.where(better[:, None], there, here)
        now = tuple(  # type: ignore[assignment]
            np.where(better.reshape([-1] + [1] * (a.ndim - 1)), a, b) for a, b in zip(then, now, strict=True)
        )
    return here


@dataclass(frozen=True, eq=False)
class TargetElements:
    """Targets cut into elements: numbers, labels, or vectors along an axis.

    Attributes
    ----------
    array : ndarray, shape (examples, ...)
        Not copied; a memory-mapped file stays one.
    argument : str
        Its name in messages.
    axis : int, optional
        Axis of channels, or of the components of vectors.
    vectors : bool
        Whether an element is the vector along ``axis``.
    ignore : object
        Mark of an element without target: a value, NaN, or a mask.
    counts : ndarray, shape (examples,)
        TargetElements of each example that count.
    by_pixel : bool
        Whether each element has the same weight, whatever its example.
    """

    array: NDArray[Any]
    argument: str
    axis: int | None = None
    vectors: bool = False
    ignore: Any = None
    by_pixel: bool = False
    numbers: bool = True
    counts: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the elements of an example."""
        inner = list(self.array.shape[1:])
        if self.vectors and self.axis is not None:
            inner.pop(self.axis - 1)
        return tuple(inner)

    @property
    def size(self) -> int:
        """TargetElements in an example."""
        return math.prod(self.shape)

    @property
    def dimension(self) -> int:
        """Components of a vector."""
        return self.array.shape[self.axis] if self.vectors and self.axis is not None else 1

    @property
    def example_weights(self) -> FloatArray:
        """Weight of each example in the risk: the same, or the number of its elements."""
        used = self.counts > 0
        return np.where(self.by_pixel, self.counts, used).astype(np.float64)

    def cells(self, per: str) -> tuple[IntArray, int]:
        """Return the constant that each element is compared with, and the number of constants."""
        if per == "pixel":
            return np.arange(self.size), self.size
        if per == "all" or self.vectors or self.axis is None:
            return np.zeros(self.size, dtype=np.intp), 1
        inner = self.axis - 1
        channel = np.arange(self.shape[inner]).reshape([-1] + [1] * (len(self.shape) - inner - 1))
        return np.broadcast_to(channel, self.shape).ravel(), self.shape[inner]

    def raw(self, which: Which = ALL) -> Iterator[tuple[slice, NDArray[Any], NDArray[np.bool_]]]:
        """Yield blocks of examples: their elements, and which of them count."""
        size = len(range(*which.indices(self.size))) if isinstance(which, slice) else len(which)
        for rows in blocks_of(len(self.array), size * self.dimension):
            block = self.array[rows]
            if self.vectors and self.axis is not None:
                block = np.moveaxis(block, self.axis, -1)
            inner = (self.dimension,) if self.vectors else ()
            values = block.reshape(len(block), self.size, *inner)[:, which]
            if self.numbers:
                values = values.astype(np.float64)
            yield rows, values, self._valid(values, rows, which)

    def _valid(self, values: NDArray[Any], rows: slice, which: Which) -> NDArray[np.bool_]:
        if isinstance(self.ignore, np.ndarray):
            mask = self.ignore[rows]
            if not self.vectors and mask.ndim < self.array.ndim and self.axis is not None:
                mask = np.broadcast_to(np.expand_dims(mask, self.axis), self.array[rows].shape)
            return ~mask.reshape(len(mask), self.size)[:, which]
        if self.ignore is None:
            return np.ones(values.shape[:2], dtype=np.bool_)
        if isinstance(self.ignore, float) and math.isnan(self.ignore):
            left = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, bool)
            return np.asarray(~left.any(axis=2) if self.vectors else ~left)
        left = values == self.ignore
        return np.asarray(~left.all(axis=2) if self.vectors else ~left)

    def pieces(self, which: Which = ALL) -> Iterator[Piece]:
        """Yield blocks with the weight of each element in the risk; elements without target are 0, with weight 0.

        Weights add up to the number of examples, or of elements if each counts the same.
        """
        share = self.example_weights / np.maximum(self.counts, 1)
        for rows, values, valid in self.raw(which):
            weight = valid * share[rows, None]
            if self.numbers and not valid.all():
                values[~valid] = 0.0
            yield rows, values, weight

    def gather(self, which: Which) -> tuple[FloatArray, FloatArray]:
        """Return some elements of all examples at once, with their weights."""
        parts = list(self.pieces(which))
        return np.concatenate([p[1] for p in parts]), np.concatenate([p[2] for p in parts])

    def totals(self, of: Callable[[NDArray[Any]], FloatArray] | None = None) -> FloatArray:
        """Return the weighted sum over examples of each element, or of a function of it."""
        total: FloatArray | float = 0.0
        for _, values, weight in self.pieces():
            what = values if of is None else of(values)
            total = total + np.einsum("be,be...->e...", weight, what)
        return np.asarray(total, dtype=np.float64)


def blocks_of(size: int, each: int) -> Iterator[slice]:
    """Yield slices that cover a number of elements, each small enough to hold ``each`` of its numbers."""
    step = max(1, BLOCK // max(1, each))
    for start in range(0, size, step):
        yield slice(start, min(start + step, size))


def as_targets(given: Any, argument: str, *, numbers: bool) -> NDArray[Any]:
    """Return an array with an example in each row; text only where labels are asked for."""
    if np.ma.isMaskedArray(given) and np.ma.getmaskarray(given).any():
        raise InputError(
            f"{argument} is a masked array: pass its data, and its mask as {arg('ignore')}.", argument=argument
        )
    try:
        array = np.asanyarray(given)
    except ValueError as error:
        raise InputError(
            f"{argument} must be an array with a row for each example: {error}.", argument=argument
        ) from None
    if array.dtype.kind == "O":
        try:
            array = np.asarray(array, dtype=np.str_ if all(isinstance(v, str) for v in array.flat) else np.float64)
        except (TypeError, ValueError):
            kinds = ", ".join(sorted({type(v).__name__ for v in array.flat}))
            raise InputError(
                f"{argument} mixes {kinds}: give numbers, or text throughout.", argument=argument
            ) from None
    if array.ndim == 0:
        raise InputError(f"{argument}={given!r} is a single value: give the target of each example.")
    if array.size == 0:
        raise InputError(f"{argument} is empty, of shape {array.shape}: give at least one target.", argument=argument)
    if array.dtype.kind not in ("biuf" if numbers else "biufUS"):
        names = f"For class names use {arg('loss', 'error')} or {arg('loss', 'cross-entropy')}."
        needs = f"numbers. {names}" if numbers else "numbers or text as class labels, such as targets.astype(str)."
        raise InputError(
            f"{argument} holds {array.dtype} values such as {array.flat[0]!r}: this loss needs {needs}",
            argument=argument,
        )
    return np.asanyarray(array)
