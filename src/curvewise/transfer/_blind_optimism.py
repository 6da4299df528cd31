"""How low a risk may be on the very examples that the constant was found on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from curvewise.transfer._blind_losses import LOSSES, best_constant
from curvewise.transfer._blind_risk import effective_examples, mean_loss
from curvewise.transfer._blind_targets import Elements
from curvewise.types import FloatArray


def flattered(
    loss: str,
    train: Elements,
    per: str,
    constant: NDArray[Any],
    known: NDArray[Any] | None,
    losses: FloatArray,
    level: float,
) -> tuple[int, Callable[[float, int], float]]:
    """How low the risk may be on the examples of the constant.

    Returns from how many classes, equally frequent for all that is known, one guess was chosen, and
    by how much the mean may be low.
    """
    if not LOSSES[loss].bounded:
        return 1, _second_order(loss, constant)
    name = "binary" if known is None else "cross-entropy"
    shares = best_constant(name, train, per, known, 0.0).astype(np.float64)
    shares = np.stack([1.0 - shares, shares], axis=1) if known is None else shares
    if len(shares) == 1:
        used = train.example_weights > 0
        weights = train.example_weights[used]
        found = mean_loss(losses[used], weights, None, level, bounded=True)
        n = effective_examples(found.interval.estimate, found.std, found.units)
        rivals = int(rivals_of_best(shares, n, level)[0]) if found.units > 1 else 1
        return (rivals if known is not None else 1), lambda *_: 0.0
    cells, _ = train.cells(per)
    return 1, lambda _, units: float(np.nanmean(_gain_of_choice(shares, units, level)[cells]))


def _second_order(loss: str, constant: NDArray[Any]) -> Callable[[float, int], float]:
    """By how much the risk on the examples of the constant may be below that of the best one.

    To second order, for constants that are estimated from as many independent targets as there are
    units: exact for means, and for frequencies 1/(2n) for each that is free (Miller and Madow); for
    medians and directions about that of means. It is more than needed where constants are shared by
    the elements of an example.
    """
    if loss == "cross-entropy":
        free = float(((constant > 0).sum(axis=1) - 1).mean())
        return lambda _, units: free / (2.0 * units)
    if loss == "binary":
        free = float(((constant > 0) & (constant < 1)).mean())
        return lambda _, units: free / (2.0 * units)
    return lambda risk, units: risk / units


def rivals_of_best(shares: FloatArray, n: float, level: float) -> NDArray[np.intp]:
    """How many classes may be the most frequent one, that one among them, for each row.

    >>> rivals_of_best(np.array([[0.5, 0.48, 0.02]]), 100, 0.95)
    array([2])
    """
    quantile = float(-stdtrit(max(1.0, n - 1), 0.5 * (1.0 - level)))
    best = shares.max(axis=1, keepdims=True)
    spread = np.sqrt(np.maximum(best + shares - (best - shares) ** 2, 0.0) / n)
    return np.asarray((best - shares <= quantile * spread).sum(axis=1))


def _gain_of_choice(shares: FloatArray, n: float, level: float) -> FloatArray:
    """How much the most frequent class of each row is overrated on average, by choosing it.

    That of the largest of as many independent shares as cannot be told from it (Blom 1958).
    """
    rivals = rivals_of_best(shares, n, level)
    return np.asarray(ndtri((rivals - 0.375) / (rivals + 0.25)) * np.sqrt(shares.max(axis=1) / n))
