"""The extended power law e(n) = α + η n^γ + δ n^2γ of Hoiem et al. 2021: what it is fitted to, and its fit.

Runs are grouped by training size (:class:`GroupedRuns`), brought from the user's unit to percentage points
(:class:`PointScale`), in which the paper's constants hold, and fitted in closed form for each γ of a grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError, arg, list_names
from curvewise.types.results import FloatArray, Unit, as_floats

GAMMA_GRID: FloatArray = np.arange(-99, 0) / 100.0
"""The paper's search grid, −0.99, …, −0.01 (Eq. 4)."""

PRIOR = 5.0
"""λ of the L1 prior λ·|γ + ½|, for errors in percent (Eq. 4)."""

SIGMA0_SQUARED = 0.02
"""Variance in percent² that initialisation and optimisation alone leave (§3.1 of the paper)."""

FORMS: dict[str, tuple[bool, int]] = {"power": (True, 2), "sqrt": (False, 2), "power2": (True, 3), "sqrt2": (False, 3)}
"""Name of a form → (γ is free, number of linear terms); γ = −½ where it is not free."""

WEIGHTS = ("size", "run", "none")
"""Weight of one run: 1/(F_i σ_i²), 1/σ_i², or 1 (the three schemes of the paper's Fig. 2)."""

# Curves fitted at a time: 128 × 99 γ × 8 bytes is small enough that the allocator reuses warm pages.
_BLOCK = 128


@dataclass(frozen=True)
class Constants:
    """The constants of the paper's fit, in percentage points.

    Attributes
    ----------
    prior : float
        λ of the prior λ|γ + ½|; 0 for none.
    sigma0_squared : float
        σ0², the variance that stays however much data there is.
    gamma : float, optional
        Hold γ at this value instead of searching for it.
    noise : {"estimated", "paper"}
        Variance of one run behind the intervals: estimated from the replicates (see
        :class:`Noise`), or σ0² + σ̂²/n as in the paper, which is too narrow where
        the spread of the runs falls more slowly than 1/n. The fit itself is weighted as in the
        paper either way.
    """

    prior: float = PRIOR
    sigma0_squared: float = SIGMA0_SQUARED
    gamma: float | None = None
    noise: str = "estimated"

    def __post_init__(self) -> None:
        for name in ("prior", "sigma0_squared"):
            if not (np.isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                raise InputError("must be 0 or positive.", argument=name, value=getattr(self, name))
        if self.gamma is not None and not -10 <= self.gamma < 0:
            problem = "must be negative, because error falls with n (−0.5 is usual)."
            raise InputError(problem, argument="gamma", value=self.gamma)
        check_choice("noise", self.noise, ("estimated", "paper"))


def check_constants(constants: Constants) -> None:
    """Raise unless these are constants of a fit."""
    if not isinstance(constants, Constants):
        remedy = "Pass cw.learning.Constants(gamma=-0.5) or the like."
        raise InputError("are no constants of a fit.", argument="constants", value=constants, remedy=remedy)


def check_choice(argument: str, value: str, known: Sequence[str]) -> None:
    """Raise unless the value is one of a few words."""
    if value not in known:
        raise InputError("is not known.", argument=argument, value=value, remedy=f"Use one of {list_names(known)}.")


@dataclass(frozen=True, eq=False)
class PowerFits:
    """Best α, η, δ and γ for each of B curves; ``objective`` is G(γ) without the prior term."""

    alpha: FloatArray
    eta: FloatArray
    delta: FloatArray
    gamma: FloatArray
    objective: FloatArray

    def errors_at(self, n: ArrayLike) -> FloatArray:
        """Return e(n) of every curve, shape (B, T) for T sizes."""
        x = np.atleast_1d(np.asarray(n, dtype=np.float64)) ** self.gamma[:, None]
        return np.asarray(self.alpha[:, None] + self.eta[:, None] * x + self.delta[:, None] * x * x)

    def reliance_at(self, n: float) -> FloatArray:
        """Return β_N = −2 ∂e/∂log n of every curve, shape (B,)."""
        x = n**self.gamma
        return np.asarray(-2.0 * self.gamma * (self.eta * x + 2.0 * self.delta * x * x))


def fit_means(
    n: FloatArray,
    runs: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
    form: str = "power",
    weights: str = "size",
    constants: Constants = Constants(),
) -> PowerFits:
    """Fit B curves measured at the same sizes, each with its own σ̂² of the variance model.

    Parameters
    ----------
    n : ndarray, shape (S,)
        Training sizes.
    runs : ndarray, shape (S,) or (B, S)
        Number of runs at each size, F_i.
    mean, variance : ndarray, shape (B, S)
        Mean and variance of the runs in points and points²; the variance is ignored where runs < 2 or where it is NaN.
    form, weights, constants
        As in :func:`fit_learning_curve`.
    """
    s0 = constants.sigma0_squared
    modelled = size_variance(n, slope_variance(n, runs, variance, s0)[:, None], s0)
    return fit_power(n, mean, size_weights(weights, runs, modelled), form, constants)


def fit_power(
    n: FloatArray, mean: FloatArray, weight: FloatArray, form: str = "power", constants: Constants = Constants()
) -> PowerFits:
    """Minimise G(γ) + λ|γ + ½| (Eq. 4) over the grid of γ, for B curves measured at the same sizes.

    Parameters
    ----------
    n : ndarray, shape (S,)
        Training sizes.
    mean : ndarray, shape (B, S)
        Mean error at each size, in points.
    weight : ndarray, shape (B, S) or (1, S)
        Total weight of each size.
    form, constants
        As in :func:`fit_learning_curve`.
    """
    check_choice("form", form, tuple(FORMS))
    free, terms = FORMS[form]
    gammas = GAMMA_GRID if free else np.array([-0.5])
    if constants.gamma is not None:
        gammas = np.array([float(constants.gamma)])
    logs = np.log(n)
    origin = float(logs.sum()) / len(logs)
    # exp(γ(log n − origin)) − 1 spans the same curves as n^γ and stays well conditioned at γ → 0.
    basis = np.expm1(np.multiply.outer(gammas, logs - origin))
    penalty = constants.prior * np.abs(gammas + 0.5)
    fit = _fit_two if terms == 2 else _fit_three
    blocks = [
        fit(basis, mean[i : i + _BLOCK], weight if len(weight) == 1 else weight[i : i + _BLOCK], penalty)
        for i in range(0, len(mean), _BLOCK)
    ]
    level, slope, curve, index, objective = (
        blocks[0] if len(blocks) == 1 else tuple(map(np.concatenate, zip(*blocks, strict=True)))
    )
    gamma = gammas[index.astype(np.intp)]
    shift = np.exp(-gamma * origin)
    # level + slope·b + curve·b² with b = x − 1, rewritten in powers of n.
    return PowerFits(level - slope + curve, (slope - 2.0 * curve) * shift, curve * shift**2, gamma, objective)


def _fit_two(basis: FloatArray, mean: FloatArray, weight: FloatArray, penalty: FloatArray) -> tuple[FloatArray, ...]:
    total = weight.sum(axis=1, keepdims=True)
    centre = (weight * mean).sum(axis=1, keepdims=True) / total
    moved = weight * (mean - centre)
    sum_x = weight @ basis.T
    sum_xx = weight @ (basis * basis).T
    sum_xx -= sum_x * (sum_x / total)
    sum_xx += 1e-300  # one size: no slope, and no division by zero
    sum_xy = moved @ basis.T
    gain = sum_xy * sum_xy
    gain /= sum_xx
    index = (gain - penalty).argmax(axis=1)
    rows = np.arange(len(mean))
    rows_w = rows if len(weight) > 1 else np.zeros_like(rows)
    slope = sum_xy[rows, index] / sum_xx[rows_w, index]
    level = centre[:, 0] - slope * sum_x[rows_w, index] / total[rows_w, 0]
    objective = np.maximum((moved * (mean - centre)).sum(axis=1) - gain[rows, index], 0.0)
    return level, slope, np.zeros_like(slope), index.astype(np.float64), objective


def _fit_three(basis: FloatArray, mean: FloatArray, weight: FloatArray, penalty: FloatArray) -> tuple[FloatArray, ...]:
    w = weight[:, None, :]
    total = w.sum(axis=-1)
    centre = (w * mean[:, None, :]).sum(axis=-1) / total
    y = mean[:, None, :] - centre[..., None]
    x1, x2 = basis[None], basis[None] ** 2
    m1, m2 = (w * x1).sum(-1) / total, (w * x2).sum(-1) / total
    u = x1 - m1[..., None]
    uu = np.maximum((w * u * u).sum(-1), 1e-300)
    cross = (w * u * (x2 - m2[..., None])).sum(-1) / uu
    v = x2 - m2[..., None] - cross[..., None] * u
    vv = (w * v * v).sum(-1)
    uy, vy = (w * u * y).sum(-1), (w * v * y).sum(-1)
    # With as many sizes as parameters or fewer the third direction is rounding noise: leave it out.
    known = vv > 1e-12 * np.maximum((w * x2 * x2).sum(-1), 1e-300)
    curve = np.where(known, vy / np.where(known, vv, 1.0), 0.0)
    slope = uy / uu - curve * cross
    gain = uy**2 / uu + curve * vy
    index = np.argmax(gain - penalty, axis=1)
    rows = np.arange(len(mean))
    rows_w = rows if len(weight) > 1 else np.zeros_like(rows)
    s, c = slope[rows, index], curve[rows, index]
    level = centre[rows, 0] - s * m1[rows_w, index] - c * m2[rows_w, index]
    objective = np.maximum((w * y * y).sum(-1)[rows, 0] - gain[rows, index], 0.0)
    return level, s, c, index.astype(np.float64), objective


def size_weights(scheme: str, runs: FloatArray, variance: FloatArray) -> FloatArray:
    """Total weight of each size, F_i · w_ij, under one of the three schemes of Fig. 2.

    Parameters
    ----------
    scheme : {"size", "run", "none"}
        w_ij = 1/(F_i σ_i²), 1/σ_i² or 1.
    runs, variance : ndarray, shape (..., S)
        F_i and the modelled σ_i².
    """
    if scheme == "size":
        return 1.0 / variance
    if scheme == "run":
        return runs / variance
    check_choice("weights", scheme, WEIGHTS)
    return np.broadcast_to(runs, np.broadcast_shapes(runs.shape, variance.shape))


def slope_variance(
    n: FloatArray, runs: FloatArray, variance: FloatArray, sigma0_squared: float | FloatArray = SIGMA0_SQUARED
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


@dataclass(frozen=True, eq=False)
class GroupedRuns:
    """Runs grouped by training size.

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
        """True if any size has a known variance."""
        return bool(self.freedom.any())

    def only(self, keep: slice | NDArray[Any]) -> GroupedRuns:
        """Keep some of the sizes, by mask or index."""
        return GroupedRuns(self.n[keep], self.runs[keep], self.mean[keep], self.variance[keep])

    def keep_largest(self, largest: int | None) -> GroupedRuns:
        """Keep only so many of the largest sizes, or all."""
        return self if largest is None else self.only(slice(-largest, None))

    def in_points(self, scale: PointScale) -> GroupedRuns:
        """Return the same runs in points, from the user's unit."""
        if scale == PointScale(1.0):
            return self  # with what it has cached
        return GroupedRuns(self.n, self.runs, scale.points(self.mean), self.variance * scale.factor**2)

    def slope_variance(self, sigma0_squared: float = SIGMA0_SQUARED) -> float:
        """σ̂², see :func:`slope_variance`."""
        return float(slope_variance(self.n, self.runs, self.variance, sigma0_squared))

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


def group_runs(
    n: ArrayLike, error: ArrayLike, runs: ArrayLike | None = None, variance: ArrayLike | None = None
) -> GroupedRuns:
    """Group errors by training size.

    Parameters
    ----------
    n, error : array_like, shape (rows,)
        Training size and error of each run, in any order; equal sizes are replicates.
    runs, variance : array_like, shape (rows,), optional
        Where a row is a mean: over how many runs (default 1), and their variance at ddof 1. Rows of equal size are
        pooled.
    """
    if runs is None and variance is not None:
        raise InputError(f"needs {arg('runs')}, over how many runs each mean was taken.", argument="variance")
    sizes, values = as_floats(n, "n"), as_floats(error, "error")
    _check_rows(sizes, values)
    counts = _row_values("runs", runs, sizes, default=1.0)
    spread = _row_values("variance", variance, sizes, default=np.nan)
    if (counts < 1).any() or not np.isfinite(counts).all():
        raise InputError("must be at least 1 for every size: it counts the trained models.", argument="runs")
    if (spread < 0).any() or np.isinf(spread).any():
        raise InputError("must be finite and not negative (NaN where it is unknown).", argument="variance")
    order = sizes.argsort(kind="stable")
    sizes, values, counts, spread = (v[order] for v in (sizes, values, counts, spread))
    starts = np.flatnonzero(np.concatenate([[True], sizes[1:] != sizes[:-1]]))
    rows = np.diff(np.append(starts, len(sizes)))
    total = np.add.reduceat(counts, starts)
    mean = np.add.reduceat(counts * values, starts) / total
    # Within rows plus between rows; a row of one run has no variance of its own.
    within = np.where(counts > 1, (counts - 1) * spread, 0.0)
    square = np.add.reduceat(within + counts * (values - mean.repeat(rows)) ** 2, starts)
    return GroupedRuns(sizes[starts], total, mean, np.where(total > 1, square / np.maximum(total - 1, 1), np.nan))


def _check_rows(n: FloatArray, error: FloatArray) -> None:
    """Raise if sizes and errors cannot be runs of one learning curve."""
    if n.ndim != 1 or error.ndim != 1:
        problem = (
            f"n and error must be one-dimensional, one entry per run; their shapes are {n.shape} and {error.shape}."
        )
        raise InputError(f"{problem} For a table with a column per run use cw.load_measurements.")
    if len(n) != len(error):
        remedy = "give one size and one error per run (repeat the size for replicates)."
        raise InputError(f"n has {len(n)} entries and error has {len(error)}: {remedy}")
    if len(n) == 0:
        raise InputError("is empty: a curve needs runs at two sizes or more.", argument="n")
    if not np.isfinite(n).all() or (n <= 0).any():
        bad = n[~(np.isfinite(n) & (n > 0))][0]
        raise InputError(f"holds {bad:g}: training sizes must be positive and finite.", argument="n")


def _row_values(name: str, values: ArrayLike | None, like: FloatArray, default: float) -> FloatArray:
    if values is None:
        return np.full(like.shape, default)
    array = np.broadcast_to(as_floats(values, name), np.shape(values) or like.shape)
    if array.shape != like.shape:
        raise InputError(f"has shape {array.shape} and n has {like.shape}: give one entry per row.", argument=name)
    return array


@dataclass(frozen=True)
class PointScale:
    """points = sign · factor · value.

    Fractions are multiplied by 100 and percentages kept. Losses and scores have no natural unit:
    they are scaled so that the largest absolute mean over the sizes is 100 points, which makes
    the fit indifferent to the unit of the loss. Scores also change sign, so that points fall.
    """

    factor: float
    sign: float = 1.0

    def points(self, value: FloatArray | float) -> FloatArray:
        """Values in the unit to points."""
        return np.asarray(value, dtype=np.float64) * (self.sign * self.factor)

    def values(self, points: FloatArray | float) -> FloatArray:
        """Points to values in the unit."""
        return np.asarray(points, dtype=np.float64) * (self.sign / self.factor)

    def value(self, points: float) -> float:
        """One value in the unit."""
        return float(points * self.sign / self.factor)

    def amount(self, points: float) -> float:
        """A difference or a width, whose sign does not depend on the unit."""
        return float(points / self.factor)

    def ends(self, low: float, high: float) -> tuple[float, float]:
        """Both ends of an interval, in order."""
        a, b = self.value(low), self.value(high)
        return (a, b) if self.sign > 0 else (b, a)


def scale_for(unit: Unit, means: FloatArray) -> PointScale:
    """The scale of a unit; for losses and scores it depends on the largest absolute mean."""
    if unit.name == "fraction":
        return PointScale(100.0)
    if unit.name == "percent":
        return PointScale(1.0)
    largest = float(np.abs(means).max())
    if largest > 0 and not 1e-100 < largest < 1e100:
        raise InputError(f"holds means near {largest:g}: rescale the {unit.name} first.", argument="error")
    factor = 100.0 / largest if largest > 0 else 1.0
    return PointScale(factor, -1.0 if unit.higher_is_better else 1.0)


def bounds(unit: Unit, points: FloatArray) -> tuple[float, float]:
    """Lowest and highest possible value in points: 0 and 100 for errors, 0 for positive losses."""
    if unit.bounded:
        return 0.0, 100.0
    if unit.name == "loss" and float(points.min()) >= 0:
        return 0.0, np.inf
    return -np.inf, np.inf


def simulate(
    rng: np.random.Generator, centre: FloatArray, spread: FloatArray, runs: FloatArray, draws: int
) -> tuple[FloatArray, FloatArray]:
    """Draw size means and variances of normal runs, without drawing the runs.

    Returns
    -------
    mean, variance : ndarray, shape (draws, S)
        Variance is 0 where a size has one run.
    """
    mean = rng.standard_normal((draws, len(centre)))
    mean *= np.sqrt(spread / runs)  # of a mean of F runs, σ²/F
    mean += centre
    variance = np.zeros((draws, len(centre)))
    # The variance of F normal runs is σ² χ²/(F − 1), and a χ² on f degrees of freedom is twice a gamma of f/2.
    for i in np.flatnonzero(runs >= 2):
        free = runs[i] - 1.0
        variance[:, i] = rng.standard_gamma(free / 2.0, draws) * (2.0 * spread[i] / free)
    return mean, variance
