"""The direction with the smallest mean angle to many unit vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from curvewise.transfer._blind_targets import ALL, Elements, blocks_of
from curvewise.types import FloatArray

Sums: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""Of K directions: total angle (K,), pull of the vectors (K, D), what it is divided by (K,), and
the weight of vectors that coincide with the direction (K,)."""

SAMPLE = 2**15
"""Vectors that decide where to start."""

AT = 1e-7
"""Vectors closer than this, in radians, coincide with the direction."""

STOP = 3e-7
"""Steps shorter than this, in radians, end a descent: the mean angle is flat there."""

LONGEST = 1.6
"""Steps may be longer than Weiszfeld's, which makes for fewer of them."""

FEW = 512
"""Vectors of each set that decide where to start."""


def directions(targets: Elements, per: str) -> FloatArray:
    """The direction of smallest mean angle for each constant, shape (K, D)."""
    if per == "pixel" and targets.size > 1:
        each = len(targets.array) * targets.dimension
        found = []
        for which in blocks_of(targets.size, each):
            vectors, weight = targets.gather(which)
            unit = to_unit(vectors)
            found.append(nearest_direction(unit, weight))
        return np.concatenate(found)
    sample, weight = _sampled(targets)
    return _descend(lambda u: _streamed(targets, u), nearest_direction(sample, weight))


def to_unit(vectors: FloatArray) -> FloatArray:
    """Vectors of length 1; zero vectors stay zero."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0, length, 1.0))


def angle(vectors: FloatArray, direction: FloatArray) -> FloatArray:
    """Angle in radians between unit vectors, exact for small angles too."""
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
    cover = _cover(vectors.shape[2])
    best = np.argmin([_total(few, light, c) for c in cover], axis=0)
    mean = to_unit(np.einsum("nk,nkd->kd", weights, vectors))
    mean[~mean.any(axis=1), 0] = 1.0
    ends = [_descend(lambda u: _sums(few, light, u), start) for start in (mean, cover[best])]
    better = _total(few, light, ends[0]) <= _total(few, light, ends[1])
    start = np.where(better[:, None], ends[0], ends[1])
    return _descend(lambda u: _sums(vectors, weights, u), start)


def _total(vectors: FloatArray, weights: FloatArray, direction: FloatArray) -> FloatArray:
    cosine = np.clip(_along(vectors, direction), -1.0, 1.0)
    return np.asarray((weights * np.arccos(cosine)).sum(axis=0))


def _along(vectors: FloatArray, direction: FloatArray) -> FloatArray:
    of_each = np.broadcast_to(direction, vectors.shape[1:])
    return np.asarray(np.einsum("nkd,kd->nk", vectors, of_each))


def _cover(dimension: int) -> FloatArray:
    """Directions all over the sphere: the axes both ways, and 96 at random, always the same."""
    axes = np.eye(dimension)
    some = to_unit(np.random.default_rng(0).standard_normal((96, dimension)))
    return np.concatenate([axes, -axes, some])


def _sums(vectors: FloatArray, weights: FloatArray, direction: FloatArray) -> Sums:
    cosine = np.clip(_along(vectors, direction), -1.0, 1.0)
    theta = np.arccos(cosine)
    at = theta < AT
    far = np.where(at, 0.0, weights)
    each = far / np.maximum(np.sqrt(1.0 - cosine**2), AT)
    towards = np.einsum("nk,nkd->kd", each, vectors)
    pull = towards - (each * cosine).sum(axis=0)[:, None] * direction
    divisor = (far / np.maximum(theta, AT)).sum(axis=0)
    return (weights * theta).sum(axis=0), pull, divisor, (weights * at).sum(axis=0)


def _streamed(targets: Elements, direction: FloatArray) -> Sums:
    """The sums for one direction over all elements, block by block."""
    parts = [
        _sums(
            to_unit(v.reshape(-1, 1, v.shape[-1])),
            w.reshape(-1, 1),
            direction,
        )
        for _, v, w in targets.pieces(ALL)
    ]
    f, pull, divisor, at = (np.sum(s, axis=0) for s in zip(*parts, strict=True))
    return f, pull, divisor, at


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
        there = _move(here, step)
        then = sums(there)
        better = then[0] <= total
        scale = np.where(better, np.minimum(LONGEST, 2.0 * scale), 0.5 * scale)
        here = np.where(better[:, None], there, here)
        now = tuple(  # type: ignore[assignment]
            np.where(better.reshape([-1] + [1] * (a.ndim - 1)), a, b)
            for a, b in zip(then, now, strict=True)
        )
    return here


def _move(here: FloatArray, step: FloatArray) -> FloatArray:
    """Along a great circle by a tangent vector."""
    length = np.linalg.norm(step, axis=1, keepdims=True)
    along = np.where(length > 0, step / np.maximum(length, 1e-300), 0.0)
    return to_unit(np.cos(length) * here + np.sin(length) * along)


def _sampled(targets: Elements) -> tuple[FloatArray, FloatArray]:
    """Some of all vectors, drawn alike from every block, shape (n, 1, D), with weights."""
    share = min(1.0, SAMPLE / max(1, int(targets.counts.sum())))
    rng = np.random.default_rng(0)
    vectors, weights = [], []
    for _, v, w in targets.pieces(ALL):
        v, w = v.reshape(-1, v.shape[-1]), w.ravel()
        keep = (w > 0) & (rng.random(len(w)) < share)
        vectors.append(v[keep])
        weights.append(w[keep])
    chosen = np.concatenate(vectors)
    return to_unit(chosen)[:, None, :], np.concatenate(weights)[:, None]
