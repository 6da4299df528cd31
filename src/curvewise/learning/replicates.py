"""Runs grouped by training size, and the model of how their variance falls with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.types import FloatArray, as_floats

SIGMA0_SQUARED = 0.02
"""Variance in percent² that initialisation and optimisation alone leave (§3.1 of the paper)."""


@dataclass(frozen=True, eq=False)
class Replicates:
    """What a fit needs to know of the runs at each size.

    Attributes
    ----------
    n : ndarray, shape (S,)
        Training sizes, strictly increasing.
    runs : ndarray, shape (S,)
        How many runs there are at each size, F_i.
    mean : ndarray, shape (S,)
        Their mean error in points.
    variance : ndarray, shape (S,)
        Their variance at ddof 1; NaN where there is one run.
    """

    n: FloatArray
    runs: FloatArray
    mean: FloatArray
    variance: FloatArray
    _slopes: dict[float, float] = field(default_factory=dict, repr=False)

    @cached_property
    def freedom(self) -> FloatArray:
        """Degrees of freedom of each variance, F_i − 1; 0 where it is unknown."""
        return np.where(np.isfinite(self.variance), self.runs - 1.0, 0.0)

    @cached_property
    def known_variance(self) -> FloatArray:
        """The variances, 0 where they are unknown."""
        return np.where(self.freedom > 0, self.variance, 0.0)

    @property
    def total(self) -> int:
        """Number of runs over all sizes."""
        return int(self.runs.sum())

    @property
    def replicated(self) -> bool:
        """Whether any size has a variance to go by."""
        return bool(self.freedom.any())

    def only(self, keep: slice | NDArray[Any]) -> Replicates:
        """Keep some of the sizes, by mask or index."""
        return Replicates(self.n[keep], self.runs[keep], self.mean[keep], self.variance[keep])

    def slope_variance(self, sigma0_squared: float = SIGMA0_SQUARED) -> float:
        """σ̂², see :func:`slope_variance`; computed once."""
        if sigma0_squared not in self._slopes:
            # The one-curve case of the function, spelt as dot products: every fit comes by here.
            weight = self.freedom / self.n
            above = float(weight @ (self.known_variance - sigma0_squared))
            below = max(float(weight @ (1.0 / self.n)), 1e-300)
            self._slopes[sigma0_squared] = max(above / below, 0.0)
        return self._slopes[sigma0_squared]

    def run_variance(self, sigma0_squared: float = SIGMA0_SQUARED) -> FloatArray:
        """σ_i² = σ0² + σ̂²/n_i, the modelled variance of one run at each size."""
        return size_variance(self.n, self.slope_variance(sigma0_squared), sigma0_squared)

    def standard_error(self, sigma0_squared: float = SIGMA0_SQUARED) -> FloatArray:
        """Standard error of each mean, from the measured variance moderated by the modelled one.

        The model counts as four degrees of freedom: with two runs it decides, with a hundred the
        measurement does.
        """
        modelled = self.run_variance(sigma0_squared)
        pooled = self.freedom * self.known_variance + 4.0 * modelled
        moderated = pooled / (self.freedom + 4.0)
        return np.asarray(np.sqrt(moderated / self.runs))


def group_runs(n: ArrayLike, error: ArrayLike) -> Replicates:
    """Group one error per run by training size.

    Parameters
    ----------
    n, error : array_like, shape (runs,)
        Training size and error of each run, in any order; equal sizes are replicates.
    """
    sizes, values = as_floats(n, "n"), as_floats(error, "error")
    check_sizes(sizes, values)
    order = sizes.argsort(kind="stable")
    sizes, values = sizes[order], values[order]
    starts = np.flatnonzero(np.concatenate([[True], sizes[1:] != sizes[:-1]]))
    runs = np.concatenate([starts[1:], [len(sizes)]]) - starts
    mean = np.add.reduceat(values, starts) / runs
    square = np.add.reduceat((values - mean.repeat(runs)) ** 2, starts)
    variance = np.where(runs > 1, square / np.maximum(runs - 1, 1), np.nan)
    return Replicates(sizes[starts], runs.astype(np.float64), mean, variance)


def from_means(
    n: ArrayLike, mean: ArrayLike, runs: ArrayLike | None, variance: ArrayLike | None
) -> Replicates:
    """Take means over runs as they are; rows of equal size are pooled.

    Parameters
    ----------
    n, mean : array_like, shape (rows,)
        Size and mean error of each row.
    runs, variance : array_like, shape (rows,), optional
        Over how many runs each mean goes (default 1), and their variance at ddof 1.
    """
    sizes, values = as_floats(n, "n"), as_floats(mean, "error")
    check_sizes(sizes, values)
    counts = _row_values("runs", runs, sizes, default=1.0)
    spread = _row_values("variance", variance, sizes, default=np.nan)
    if (counts < 1).any() or not np.isfinite(counts).all():
        raise InputError("runs must be at least 1 for every size: it counts the trained models.")
    if (spread < 0).any() or np.isinf(spread).any():
        raise InputError("variance must be finite and not negative (NaN where it is unknown).")
    unique, index = np.unique(sizes, return_inverse=True)
    total = np.bincount(index, counts).astype(np.float64)
    pooled = np.bincount(index, counts * values) / total
    inner = np.where(counts > 1, (counts - 1) * spread, 0.0)
    square = np.bincount(index, inner + counts * (values - pooled[index]) ** 2)
    variance_out = np.where(total > 1, square / np.maximum(total - 1, 1), np.nan)
    return Replicates(unique, total, pooled, variance_out)


def check_sizes(n: FloatArray, error: FloatArray) -> None:
    """Raise if sizes and errors cannot be runs of one learning curve."""
    if n.ndim != 1 or error.ndim != 1:
        raise InputError(
            f"n and error must be one-dimensional, one entry per run; their shapes are {n.shape} "
            f"and {error.shape}. For a table with a column per run use cw.load_measurements."
        )
    if len(n) != len(error):
        raise InputError(
            f"n has {len(n)} entries and error has {len(error)}: give one size and one error per "
            "run (repeat the size for replicates)."
        )
    if len(n) == 0:
        raise InputError("n and error are empty: a curve needs runs at two sizes at the least.")
    if not np.isfinite(n).all() or (n <= 0).any():
        bad = n[~(np.isfinite(n) & (n > 0))][0]
        raise InputError(f"n holds {bad:g}: training sizes must be positive and finite.")


def slope_variance(
    n: FloatArray,
    runs: FloatArray,
    variance: FloatArray,
    sigma0_squared: float | FloatArray = SIGMA0_SQUARED,
) -> FloatArray:
    """Estimate σ̂² of the variance model σ_i² = σ0² + σ̂²/n_i.

    σ̂² = [Σ (F_i − 1)(s_i² − σ0²)/n_i] / [Σ (F_i − 1)/n_i²] over sizes with F_i ≥ 2, clipped at 0;
    0 where no size is replicated. Hoiem et al. 2021, §3.1.

    Parameters
    ----------
    n, runs : ndarray, shape (S,) or (curves, S)
        Sizes and number of runs.
    variance : ndarray, shape (..., S)
        s_i² at ddof 1; ignored where runs < 2 or where it is NaN.
    sigma0_squared : float
        σ0², in the square of the unit of the errors.
    """
    known = (runs > 1.0) & np.isfinite(variance)
    free = np.where(known, (runs - 1.0) / n, 0.0)
    above = (free * np.where(known, variance - sigma0_squared, 0.0)).sum(axis=-1)
    below = np.maximum((free / n).sum(axis=-1), 1e-300)
    return np.asarray(np.maximum(above / below, 0.0))


def size_variance(
    n: FloatArray, sigma_hat_squared: float | FloatArray, sigma0_squared: float | FloatArray
) -> FloatArray:
    """σ_i² = σ0² + σ̂²/n_i: the variance of one run at each size.

    Kept a hair above 0, so that runs that agree exactly still have a weight.
    """
    modelled = np.asarray(sigma0_squared + sigma_hat_squared / n, dtype=np.float64)
    return np.maximum(modelled, 1e-12)


def _row_values(
    name: str, values: ArrayLike | None, like: FloatArray, default: float
) -> FloatArray:
    if values is None:
        return np.full(like.shape, default)
    array = np.broadcast_to(as_floats(values, name), np.shape(values) or like.shape)
    if array.shape != like.shape:
        raise InputError(
            f"{name} has shape {array.shape} and n has {like.shape}: one entry per row."
        )
    return array
