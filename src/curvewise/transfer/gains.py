"""Where the gain of a method over scratch is, and from which size it can no longer be told."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.tables import number
from curvewise.types import FloatArray, as_floats


@dataclass(frozen=True, eq=False)
class GainEnd:
    """From which training size a gain can no longer be told from none.

    Attributes
    ----------
    n_last_sure : float
        Largest size at which the interval of the gain lies above 0; NaN if it does at none.
    n_from : float
        First size from which on no interval lies above 0: the smallest size if none ever does,
        infinite if the one of the largest size still does, NaN if no interval is known.
    worse_from : float
        First size after ``n_last_sure`` at which the interval lies below 0; infinite if none does.
    sure_at, worse_at : tuple of float
        All sizes at which the interval lies above 0, and below it.
    unknown_at : tuple of float
        Sizes whose interval is not known; there is nothing sure about them.
    text : str
        The same as a sentence.
    """

    n_last_sure: float
    n_from: float
    worse_from: float
    sure_at: tuple[float, ...]
    worse_at: tuple[float, ...]
    unknown_at: tuple[float, ...]
    text: str


def gain_end(n: ArrayLike, gain: ArrayLike, low: ArrayLike, high: ArrayLike) -> GainEnd:
    """Find from which training size a gain can no longer be told from none.

    Each size is judged by its own interval. At twenty sizes without any gain one interval of 95%
    is expected to leave 0 out all the same, one time in two on the side of a gain.

    Parameters
    ----------
    n : array_like, shape (sizes,)
        Training sizes, each once, from small to large.
    gain : array_like, shape (sizes,)
        How much better the method is there, such as the calibrated risk of scratch minus its own.
    low, high : array_like, shape (sizes,)
        The interval of the gain; NaN where it is not known.

    Returns
    -------
    GainEnd

    Examples
    --------
    >>> end = gain_end([100, 1000, 10000], [0.3, 0.1, 0.0], [0.2, 0.02, -0.1], [0.4, 0.2, 0.1])
    >>> end.n_last_sure, end.n_from
    (1000.0, 10000.0)
    >>> end.text
    'The gain is sure up to n = 1000; from n = 10,000 on it cannot be told from none.'
    """
    sizes, a, b = _check(n, gain, low, high)
    sure, worse, unknown = a > 0, b < 0, np.isnan(a) | np.isnan(b)
    last = int(np.flatnonzero(sure)[-1]) if sure.any() else -1
    later = np.flatnonzero(worse[last + 1 :]) + last + 1
    if unknown.all():
        n_from = float("nan")
    else:
        n_from = float(sizes[last + 1]) if last + 1 < len(sizes) else float("inf")
    return GainEnd(
        n_last_sure=float(sizes[last]) if last >= 0 else float("nan"),
        n_from=n_from,
        worse_from=float(sizes[later[0]]) if len(later) else float("inf"),
        sure_at=_chosen(sizes, sure),
        worse_at=_chosen(sizes, worse),
        unknown_at=_chosen(sizes, unknown),
        text=_said(sizes, sure, worse, unknown),
    )


def _check(
    n: ArrayLike, gain: ArrayLike, low: ArrayLike, high: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    given = {"n": n, "gain": gain, "low": low, "high": high}
    sizes, g, a, b = (np.atleast_1d(as_floats(v, k)) for k, v in given.items())
    check_sizes(sizes, "n")
    for name, array in (("gain", g), ("low", a), ("high", b)):
        if array.shape != sizes.shape:
            raise InputError(
                f"{name} has shape {array.shape} for {len(sizes)} sizes: give one for each."
            )
    if (a > b).any():
        where = number(float(sizes[a > b][0]))
        raise InputError(f"low is above high at n = {where}: swap them.")
    slack = 1e-9 * (1 + np.abs(g))
    off = (g < a - slack) | (g > b + slack)
    if off.any():
        where = number(float(sizes[off][0]))
        raise InputError(f"gain lies outside low and high at n = {where}: are they its interval?")
    return sizes, a, b


def check_sizes(sizes: FloatArray, argument: str) -> None:
    """Raise unless these are training sizes, each once, from small to large."""
    if sizes.ndim != 1 or not len(sizes):
        raise InputError(f"{argument} has shape {sizes.shape}: give a list of training sizes.")
    if not (np.isfinite(sizes) & (sizes > 0)).all():
        bad = sizes[~(np.isfinite(sizes) & (sizes > 0))][0]
        raise InputError(f"{argument} holds {bad:g}: training sizes must be positive numbers.")
    if (np.diff(sizes) <= 0).any():
        raise InputError(f"{argument} must hold each size once, from small to large.")


def _chosen(sizes: FloatArray, mask: NDArray[np.bool_]) -> tuple[float, ...]:
    return tuple(float(v) for v in sizes[mask])


def _said(
    sizes: FloatArray,
    sure: NDArray[np.bool_],
    worse: NDArray[np.bool_],
    unknown: NDArray[np.bool_],
) -> str:
    if unknown.all():
        return "No interval of the gain is known: nothing can be said of where it ends."
    if not sure.any():
        text = (
            "At no size is a gain sure"
            if worse.any()
            else ("At no size can a gain be told from none")
        )
    elif sure[-1]:
        text = f"The gain is sure at the largest size, n = {number(sizes[-1])}"
    else:
        last = int(np.flatnonzero(sure)[-1])
        ends = "no gain is sure" if worse[last:].any() else "it cannot be told from none"
        text = f"The gain is sure up to n = {number(sizes[last])}; from n = "
        text += f"{number(sizes[last + 1])} on {ends}"
    doubtful = ~sure & ~worse & ~unknown
    if sure.any():
        doubtful[int(np.flatnonzero(sure)[-1]) :] = False
        text += _listed("; it is not sure at", sizes[doubtful])
    text += _listed("; the method is surely worse at", sizes[worse])
    text += _listed("; no interval is known at", sizes[unknown])
    return text + "."


def _listed(lead: str, sizes: FloatArray) -> str:
    if not len(sizes):
        return ""
    return f"{lead} n = " + ", ".join(number(float(v)) for v in sizes)
