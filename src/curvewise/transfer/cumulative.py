"""One number for a pair of curves: the calibrated cumulative improvement."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from curvewise.errors import InputError
from curvewise.types import FloatArray, as_floats

Weight: TypeAlias = str | Callable[[FloatArray], FloatArray]

WEIGHTS = ("scratch", "uniform", "log")


def cci(
    n: ArrayLike, method: ArrayLike, scratch: ArrayLike, *, weight: Weight = "scratch"
) -> float:
    """Calibrated cumulative improvement of a method over training from scratch.

    Atanov et al. 2022: the area between the two calibrated risk curves over that below the one of
    scratch, by trapezoids. 1 is maximal supervision at every size, 0 no better than scratch,
    negative worse.

    Parameters
    ----------
    n : array_like, shape (sizes,)
        Training sizes, from small to large. A size may be there twice.
    method, scratch : array_like, shape (sizes,)
        Calibrated risks at them.
    weight : {"scratch", "uniform", "log"} or callable
        What the area is integrated over: the calibrated risk of scratch, so that each step counts
        by what scratch learns in it (the paper's); the size (weight 1); or its logarithm (weight
        1/n). A callable gives a positive weight for each size.

    Returns
    -------
    float
        NaN where scratch encloses no area: with one size, or if its risk does not change.

    Examples
    --------
    >>> cci([100, 1000], method=[0.4, 0.2], scratch=[0.8, 0.4])
    0.5
    """
    sizes, m, s = (as_floats(v, k) for v, k in ((n, "n"), (method, "method"), (scratch, "scratch")))
    _check(sizes, m, s)
    across = along(sizes, s, weight)
    steps = across * 0.5
    below = float((steps * (s[1:] + s[:-1])).sum())
    between = float((steps * ((s - m)[1:] + (s - m)[:-1])).sum())
    return between / below if below != 0 else float("nan")


def along(n: FloatArray, scratch: FloatArray, weight: Weight) -> FloatArray:
    """Width of each step from one size to the next, on the scale of a weight."""
    if callable(weight):
        w = as_floats(weight(n), "weight(n)")
        if w.shape != n.shape or not (np.isfinite(w) & (w > 0)).all():
            raise InputError("weight must give a positive number for each size.")
        return 0.5 * (w[1:] + w[:-1]) * np.diff(n)
    if weight not in WEIGHTS:
        raise InputError(
            f"weight={weight!r} is not known: use one of {', '.join(map(repr, WEIGHTS))}, or a "
            "function of the sizes."
        )
    scale = {"scratch": scratch, "uniform": n, "log": np.log(n)}[weight]
    return np.diff(scale)


def _check(n: FloatArray, method: FloatArray, scratch: FloatArray) -> None:
    if n.ndim != 1 or method.shape != n.shape or scratch.shape != n.shape:
        raise InputError(
            f"n, method and scratch have shapes {n.shape}, {method.shape} and {scratch.shape}: "
            "give one calibrated risk of each for every size."
        )
    if not (np.isfinite(n) & (n > 0)).all() or (np.diff(n) < 0).any():
        raise InputError("n must hold positive sizes, from small to large.")
    if not (np.isfinite(method).all() and np.isfinite(scratch).all()):
        raise InputError("method or scratch holds NaN: leave out sizes at which either is missing.")
