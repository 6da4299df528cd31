"""Distribution of the number of successes in independent trials with unequal probabilities."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from curvewise.errors import InputError
from curvewise.types import FloatArray

GROUP = 100  # trials whose distribution is built one trial at a time, all groups side by side
_TINY = np.finfo(np.float64).tiny


def poisson_binomial_pmf(p: ArrayLike) -> FloatArray:
    """Probabilities of 0, 1, ..., n successes in n independent trials.

    Only non-negative numbers are multiplied and added, so that the tails are as accurate as the
    centre, relative to their size. Below 2.2e-308 probabilities lose digits or become 0.

    Parameters
    ----------
    p : array-like, shape (n,)
        Probability of success in each trial, between 0 and 1.

    Returns
    -------
    ndarray, shape (n + 1,)
        Probability of each number of successes.

    Examples
    --------
    >>> poisson_binomial_pmf([0.5, 0.5, 1.0])
    array([0.  , 0.25, 0.5 , 0.25])
    """
    chances = _checked(p)
    sure = int(np.count_nonzero(chances == 1.0))
    open_trials = chances[(chances > 0.0) & (chances < 1.0)]
    pmf = np.zeros(len(chances) + 1)
    with np.errstate(under="ignore"):
        pmf[sure : sure + len(open_trials) + 1] = _merged(_group_pmfs(open_trials))
    return pmf


def _checked(p: ArrayLike) -> FloatArray:
    try:
        chances = np.asarray(p, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("p must hold numbers: pass one probability per trial.") from error
    if chances.ndim != 1 or chances.size == 0:
        raise InputError(f"p has shape {chances.shape}: pass one probability per trial.")
    wrong = ~((chances >= 0.0) & (chances <= 1.0))  # NaN too
    if wrong.any():
        at = int(wrong.argmax())
        raise InputError(
            f"p[{at}]={chances[at]:g} is not a probability: pass numbers between 0 and 1 (divide "
            "percentages by 100)."
        )
    return chances


def _group_pmfs(p: FloatArray) -> list[FloatArray]:
    """Distributions of groups of trials, one trial more in every group at each step."""
    groups = max(1, -(-len(p) // GROUP))
    members = -(-len(p) // groups)
    chances = np.zeros((groups, members))  # trials that never succeed fill up the last group
    chances.ravel()[: len(p)] = p
    pmf = np.zeros((groups, members + 1))
    pmf[:, 0] = 1.0
    for k in range(members):
        success = chances[:, k, None]
        gained = pmf[:, : k + 1] * success
        pmf[:, : k + 1] *= 1.0 - success
        pmf[:, 1 : k + 2] += gained
    sizes = np.clip(len(p) - members * np.arange(groups), 0, members)
    return [row[: size + 1] for row, size in zip(pmf, sizes, strict=True)]


def _merged(pmfs: list[FloatArray]) -> FloatArray:
    """Distribution of the sum of independent counts, merged pairwise."""
    while len(pmfs) > 1:
        left_over = pmfs[len(pmfs) // 2 * 2 :]
        pmfs = [_convolved(a, b) for a, b in zip(pmfs[::2], pmfs[1::2], strict=False)] + left_over
    return pmfs[0]


def _convolved(a: FloatArray, b: FloatArray) -> FloatArray:
    """Direct convolution of what can be told from zero: subnormal numbers are slow and inexact."""
    total = np.zeros(len(a) + len(b) - 1)
    (a0, a1), (b0, b1) = _span(a), _span(b)
    total[a0 + b0 : a1 + b1 - 1] = np.convolve(a[a0:a1], b[b0:b1])
    total[total < _TINY] = 0.0
    return total


def _span(pmf: FloatArray) -> tuple[int, int]:
    """Range of the entries above zero; there is always one, because they sum to 1."""
    above = np.flatnonzero(pmf >= _TINY)
    return int(above[0]), int(above[-1]) + 1
