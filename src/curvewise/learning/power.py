"""The extended power law e(n) = α + η n^γ + δ n^2γ of Hoiem et al. 2021: what it is fitted to, its fit, its likelihood.

Runs are grouped by training size (:class:`GroupedRuns`), brought from the user's unit to percentage points
(:class:`PointScale`), in which the paper's constants hold, and fitted in closed form for each γ of a grid.

Confidence intervals are by profile likelihood over γ, without the prior (:class:`Profile`). Given γ the law is linear
in its other parameters, so the likelihood profiled over everything but a linear quantity φ is a parabola in φ for each
γ. The interval is the union over a fine grid of γ of the stretches where that parabola stays under the F threshold. It
lets γ be unknown, which the paper's band does not. How the noise depends on n is unknown, too: a :class:`NoiseAverage`
weighs the profile under the paper's variance model against the one under a power of n (see :class:`Noise`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr, stdtrit

from curvewise.errors import InputError, list_names
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


FINE_GRID: FloatArray = np.arange(-800, -3) / 400.0
"""γ = −2, …, −0.01 in steps of .0025: wider than the search, so that the truth may lie outside."""


@dataclass(frozen=True)
class Basis:
    """The law written as θ₀ + θ₁ b + θ₂ b², with b(n) = ((n/n₀)^γ − 1)/γ.

    It spans the same curves as α + η n^γ + δ n^2γ and stays well conditioned for every γ.

    Attributes
    ----------
    origin : float
        log n₀.
    terms : int
        2 without δ, 3 with it.
    """

    origin: float
    terms: int = 2

    def error(self, n: FloatArray | float, gammas: FloatArray) -> FloatArray:
        """Coefficients of e(n), shape (T, G, terms); n = ∞ gives the asymptote."""
        b = self._powers(n, gammas) / gammas
        return np.stack([b**k for k in range(self.terms)], axis=-1)

    def reliance(self, n: FloatArray | float, gammas: FloatArray) -> FloatArray:
        """Coefficients of β_N = −2 ∂e/∂log n, shape (T, G, terms)."""
        x = self._powers(n, gammas)
        b = x / gammas
        return np.stack([-2.0 * k * (x + 1.0) * b ** max(k - 1, 0) for k in range(self.terms)], axis=-1)

    def _powers(self, n: FloatArray | float, gammas: FloatArray) -> FloatArray:
        logs = np.log(np.atleast_1d(np.asarray(n, dtype=np.float64))) - self.origin
        return np.asarray(np.expm1(np.multiply.outer(logs, gammas)), dtype=np.float64)


Coefficients: TypeAlias = Callable[[Basis, FloatArray], FloatArray]
"""A linear quantity: from a basis and G values of γ to its coefficients, shape (T, G, terms)."""


@dataclass(frozen=True, eq=False)
class Noise:
    """Dependence of the variance on n, estimated from the replicates of B curves.

    Attributes
    ----------
    paper : ndarray, shape (B,)
        Posterior weight of the paper's model against a power of n.
    slope, slope_variance : ndarray, shape (B,)
        Posterior mean and variance of the exponent b.
    centre : ndarray, shape (B,)
        log n at which the level of the variance is known best.
    spent : ndarray, shape (B,)
        Degrees of freedom spent on b: 0 where the prior decides, 1 where the replicates do.
    """

    paper: FloatArray
    slope: FloatArray
    slope_variance: FloatArray
    centre: FloatArray
    spent: FloatArray

    def relative_variance(self, n: FloatArray) -> FloatArray:
        """Return n^b over its value at the centre, shape (B, S)."""
        logs = np.log(np.atleast_1d(n))
        return np.exp(self.slope[:, None] * (logs - self.centre[:, None]))


@dataclass(frozen=True, eq=False)
class Profile:
    """The likelihood of B curves along γ.

    Attributes
    ----------
    basis : Basis
    gammas : ndarray, shape (G,)
    theta : ndarray, shape (B, G, terms)
        Least-squares coefficients at each γ.
    covariance : ndarray, shape (B, G, terms, terms)
        Their covariance in units of the noise scale s².
    residual : ndarray, shape (B, G)
        Weighted residual sum of squares, within sizes included.
    freedom : ndarray, shape (B,)
        Runs minus parameters; below 1 every interval is infinite.
    n, weight : ndarray, shape (S,) and (B, S)
        Sizes and their weights F_i/σ_i².
    noise : Noise, optional
        Where the variance is an estimated power of n: how sure its exponent is.
    """

    basis: Basis
    gammas: FloatArray
    theta: FloatArray
    covariance: FloatArray
    residual: FloatArray
    freedom: FloatArray
    n: FloatArray
    weight: FloatArray
    noise: Noise | None = None

    def interval(self, coefficients: Coefficients, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Interval of φ = c(γ)·θ.

        Parameters
        ----------
        coefficients : callable
            From (basis, gammas) to c, shape (T, G, terms); T quantities of one curve, or T = 1
            for many curves.
        level : float
            Coverage.

        Returns
        -------
        low, high : ndarray, shape (max(B, T),)
        """
        threshold = self._threshold(self._freedom_of(coefficients), level)[:, None]
        # Values of γ that no curve can have at this level need not be looked at.
        near = np.flatnonzero((self.residual <= threshold).any(axis=0))
        room = threshold - self.residual[:, near]
        estimate, variance = self._along(coefficients, near)
        half = np.sqrt(variance * np.maximum(room, 0.0))
        inside = room >= 0
        low = np.where(inside, estimate - half, np.inf).min(axis=1)
        high = np.where(inside, estimate + half, -np.inf).max(axis=1)
        open_ended = self.freedom < 1
        return np.where(open_ended, -np.inf, low), np.where(open_ended, np.inf, high)

    def estimate(self, coefficients: Coefficients) -> FloatArray:
        """φ at the most likely γ, which lies inside every interval; shape as :meth:`interval`."""
        best = self.residual.argmin(axis=1)
        if len(best) == 1:
            return self._along(coefficients, best)[0][:, 0]
        along, _ = self._along(coefficients, np.arange(len(self.gammas)))
        return np.asarray(along[np.arange(len(along)), best], dtype=np.float64)

    def probability_above(self, coefficients: Coefficients, value: float) -> FloatArray:
        """Confidence that φ > value: the signed root of the profile, read on Student's t.

        NaN where the data leave no degree of freedom.
        """
        along, variance = self._along(coefficients, np.arange(len(self.gammas)))
        apart = np.divide((along - value) ** 2, variance, out=np.full_like(along, np.inf), where=variance > 0)
        cost = (self.residual + apart).min(axis=1)
        least = self.residual.min(axis=1)
        scale = np.maximum(least / np.maximum(self.freedom, 1.0), 1e-300)
        root = np.sqrt(np.maximum(cost - least, 0.0) / scale)
        signed = np.sign(self.estimate(coefficients) - value) * root
        return np.where(self.freedom < 1, np.nan, stdtr(self._freedom_of(coefficients), signed))

    def gamma_interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Interval of γ itself, up to the ends of the grid."""
        inside = self.residual <= self._threshold(self.freedom, level)[:, None]
        inside |= self.freedom[:, None] < 1
        low = np.where(inside, self.gammas, np.inf).min(axis=1)
        high = np.where(inside, self.gammas, -np.inf).max(axis=1)
        return low, high

    def gamma_range(self, level: float) -> tuple[int, int]:
        """First and last index on the grid that the first curve's γ may have at this level."""
        inside = np.flatnonzero(self.residual[0] <= self._threshold(self.freedom, level)[0])
        return int(inside[0]), int(inside[-1])

    def _along(self, coefficients: Coefficients, keep: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
        """φ and its variance at the γ kept."""
        c = coefficients(self.basis, self.gammas[keep])
        theta, covariance = self.theta[:, keep], self.covariance[:, keep]
        terms = range(self.basis.terms)
        # Written out: a stack of 2 × 2 products is many times slower.
        estimate = sum((c[..., i] * theta[..., i] for i in terms), np.zeros(()))
        variance = sum((c[..., i] * c[..., j] * covariance[..., i, j] for i in terms for j in terms), np.zeros(()))
        return estimate, np.maximum(variance, 0.0)

    def _threshold(self, freedom: FloatArray, level: float) -> FloatArray:
        """Highest residual that Student's t on ``freedom`` degrees of freedom allows."""
        quantile = np.asarray(stdtrit(np.maximum(freedom, 1.0), 0.5 + level / 2.0)) ** 2
        freedom = np.maximum(self.freedom, 1.0)
        return np.asarray(self.residual.min(axis=1) * (1.0 + quantile / freedom))

    def _freedom_of(self, coefficients: Coefficients) -> FloatArray:
        """Satterthwaite's degrees of freedom of φ, shape (max(B, T),).

        The variance of φ is that of a run near log n = x̄, the mean of the log sizes weighed by what
        each contributes to it. Its logarithm is known to within 2/ν for the level and
        Var(b) (x̄ − centre)² for the exponent.
        """
        freedom = np.maximum(self.freedom, 1.0)
        if self.noise is None:
            return freedom
        best = self.residual.argmin(axis=1)
        rows = np.arange(len(best))
        x = self.basis.error(self.n, self.gammas[best]).transpose(1, 0, 2)  # (B, S, terms)
        c = coefficients(self.basis, self.gammas[best])  # (T, B, terms)
        c = c[:, 0] if len(best) == 1 else c[0]
        # φ = Σ u_i mean_i/σ_i², and mean_i has the variance σ_i²: each adds u_i²/σ_i².
        u = (c[:, None] @ (self.covariance[rows, best] @ x.transpose(0, 2, 1)))[:, 0]
        share = self.weight * u**2
        share = share / np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
        apart = share @ np.log(self.n) - self.noise.centre
        return np.asarray(2.0 / (2.0 / freedom + self.noise.slope_variance * apart**2))


@dataclass(frozen=True, eq=False)
class NoiseAverage:
    """Profiles of B curves under two kinds of noise; quantiles are averaged with their weights.

    Attributes
    ----------
    paper, power : Profile
        Under the paper's σ0² + σ̂²/n, and under the estimated power of n.
    share : ndarray, shape (B,)
        Weight of the first.
    """

    paper: Profile
    power: Profile
    share: FloatArray

    def interval(self, coefficients: Coefficients, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Interval of φ, as :meth:`Profile.interval`."""
        low, high = map(self._mean, *(p.interval(coefficients, level) for p in (self.paper, self.power)))
        return low, high

    def estimate(self, coefficients: Coefficients) -> FloatArray:
        """φ at the most likely γ, which lies inside every interval."""
        return self._mean(*(p.estimate(coefficients) for p in (self.paper, self.power)))

    def probability_above(self, coefficients: Coefficients, value: float) -> FloatArray:
        """Confidence that φ > value; NaN where the data leave no degree of freedom."""
        return self._mean(*(p.probability_above(coefficients, value) for p in (self.paper, self.power)))

    def gamma_interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Interval of γ itself, up to the ends of the grid."""
        low, high = map(self._mean, *(p.gamma_interval(level) for p in (self.paper, self.power)))
        return low, high

    def _mean(self, paper: FloatArray, power: FloatArray) -> FloatArray:
        mean = np.array(paper)  # infinite ends and NaN are the same under both kinds of noise
        known = np.isfinite(paper) & np.isfinite(power)
        share = np.broadcast_to(self.share, mean.shape)[known]
        mean[known] = share * paper[known] + (1.0 - share) * power[known]
        return mean


def profile(
    n: FloatArray,
    mean: FloatArray,
    weight: FloatArray,
    within: FloatArray,
    freedom: FloatArray,
    *,
    gammas: FloatArray = FINE_GRID,
    terms: int = 2,
    noise: Noise | None = None,
) -> Profile:
    """Profile B curves measured at the same sizes.

    Parameters
    ----------
    n : ndarray, shape (S,)
        Sizes.
    mean, weight : ndarray, shape (B, S)
        Mean error and its weight F_i/σ_i².
    within : ndarray, shape (B,)
        Weighted sum of squares within sizes, Σ (F_i − 1) s_i²/σ_i².
    freedom : ndarray, shape (B,)
        Runs minus the number of free parameters.
    gammas : ndarray, shape (G,)
        Grid of γ; one value when γ is held fixed.
    terms : {2, 3}
        Linear parameters.
    noise : Noise, optional
        Where the weights come from an estimated power of n.
    """
    basis = Basis(float(np.log(n).mean()), terms)
    x = basis.error(n, gammas).transpose(1, 0, 2)  # (G, S, terms)
    moment = np.einsum("gsi,gsj,bs->bgij", x, x, weight)
    usable = len(n) >= terms
    covariance = np.zeros_like(moment)
    if usable:
        # Columns are scaled first, because n^γ spans many orders of magnitude over wide sizes.
        size = np.sqrt(np.maximum(np.einsum("...ii->...i", moment), 1e-300))
        outer = size[..., :, None] * size[..., None, :]
        covariance = np.linalg.inv(moment / outer + 1e-15 * np.eye(terms)) / outer
    level = (weight * mean).sum(axis=1, keepdims=True) / weight.sum(axis=1, keepdims=True)
    moved = weight * (mean - level)
    cross = np.einsum("gsi,bs->bgi", x, moved)
    theta = (covariance @ cross[..., None])[..., 0]
    explained = (theta * cross).sum(axis=-1)
    between = (moved * (mean - level)).sum(axis=1, keepdims=True) - explained
    theta[..., 0] += level
    # Sizes that agree exactly leave rounding noise; a floor keeps ratios of residuals meaningful.
    floor = 1e-20 * (weight * mean**2).sum(axis=1, keepdims=True) + 1e-300
    residual = np.maximum(within[:, None] + np.maximum(between, 0.0), floor)
    freedom = np.where(usable, freedom, 0.0)
    return Profile(basis, gammas, theta, covariance, residual, freedom, n, weight, noise)


def average_noise(
    n: FloatArray,
    runs: FloatArray,
    mean: FloatArray,
    freedom: FloatArray,
    variance: FloatArray,
    modelled: FloatArray,
    *,
    gammas: FloatArray = FINE_GRID,
    terms: int = 2,
    only_paper: bool = False,
) -> Profile | NoiseAverage:
    """Profile B curves measured at the same sizes, their noise unknown.

    Parameters
    ----------
    n, runs : ndarray, shape (S,)
        Sizes and the number of runs at each.
    mean : ndarray, shape (B, S)
        Mean error at each size.
    freedom, variance : ndarray, shape (B, S)
        Degrees of freedom F_i − 1 and variance of the runs at each size; 0 where unknown.
    modelled : ndarray, shape (B, S)
        The paper's σ_i².
    gammas, terms
        As in :func:`profile`.
    only_paper : bool
        Suppose the paper's variance model.
    """
    parameters = terms + (1 if len(gammas) > 1 else 0)
    # A mean whose variance is unknown counts as one observation.
    left = freedom.sum(axis=1) + len(n) - parameters

    def under(relative: FloatArray, left: FloatArray, noise: Noise | None) -> Profile:
        within = (freedom * variance / relative).sum(axis=1)
        weight = runs / relative
        return profile(n, mean, weight, within, left, gammas=gammas, terms=terms, noise=noise)

    paper = under(modelled, left, None)
    if only_paper:
        return paper
    between = len(n) - parameters
    noise = estimate_noise(n, freedom, variance, modelled, between=between)
    spent = np.where(left >= 1, np.maximum(left - noise.spent, 1.0), left)
    power = under(noise.relative_variance(n), spent, noise)
    return NoiseAverage(paper, power, noise.paper)


def profile_replicates(
    data: GroupedRuns, constants: Constants, *, gammas: FloatArray = FINE_GRID, terms: int = 2
) -> Profile | NoiseAverage:
    """Profile one curve from grouped runs (B = 1), on a grid that is refined where it matters."""
    measured = (data.mean, data.freedom, data.known_variance, data.run_variance(constants.sigma0_squared))
    one_curve = [v[None] for v in measured]
    along = partial(average_noise, data.n, data.runs, *one_curve, terms=terms, only_paper=constants.noise == "paper")
    found = along(gammas=gammas)
    for _ in range(6):
        parts = (found,) if isinstance(found, Profile) else (found.paper, found.power)
        likely = [p.gamma_range(0.5) for p in parts]
        if len(gammas) == 1 or all(high - low >= 30 for low, high in likely):
            return found
        # Precise data leave only a few values of γ likely: look between them. The outer values
        # stay, for quantities that are asked about far from the estimate.
        grid = parts[0].gammas
        ends = [p.gamma_range(1.0 - 1e-6) for p in parts]
        low, high = min(e[0] for e in ends), max(e[1] for e in ends)
        near = grid[max(low - 1, 0)], grid[min(high + 1, len(grid) - 1)]
        found = along(gammas=np.union1d(gammas, np.linspace(*near, 401)))
    return found


def error_of(n: FloatArray | float) -> Coefficients:
    """e(n) as a linear quantity; the asymptote with n = ∞."""
    return lambda basis, gammas: basis.error(n, gammas)


def reliance_of(n: float) -> Coefficients:
    """β_N as a linear quantity."""
    return lambda basis, gammas: basis.reliance(n, gammas)


def large_sample_of(n: float) -> Coefficients:
    """e_N − β_N as a linear quantity."""
    return lambda basis, gammas: basis.error(n, gammas) - basis.reliance(n, gammas)


def gain_of(n: float, to: FloatArray) -> Coefficients:
    """e(n) − e(to) as a linear quantity."""
    return lambda basis, gammas: basis.error(n, gammas) - basis.error(to, gammas)


# The variance of one run at each training size, and how well the replicates determine it.
#
# The paper supposes σ0² + σ̂²/n. Real runs seldom follow it: over the last factor of eight of the
# learning curves of LCDB 1.0 the variance falls as n^b with a median b of −0.15 and 95% of the curves
# between −1.7 and 1.0. Intervals here therefore average over two kinds of noise, each weighed by how
# well it explains the spread of the runs at each size:
#
# - the paper's model, which has 15% of the prior weight;
# - a power n^b whose exponent is estimated from the replicates, with b ~ N(−0.2, 0.7²) beforehand.
#
# How uncertain b is enters the intervals through Satterthwaite's degrees of freedom: a quantity that
# rests on sizes without replicates has fewer of them. Beyond the largest size measured the variance
# is held: that predicts single runs of LCDB 1.0, and a power of n extrapolated does not.

SLOPE_MEAN, SLOPE_STD = -0.2, 0.7
"""Prior of the exponent b, from the curves of LCDB 1.0 (last factor of eight in n)."""

PAPER_SHARE = 0.15
"""Prior weight of the paper's model.

More of it narrows intervals where the paper's model holds and loses coverage where it does not:
`benchmarks/learning_coverage.py` measures both.
"""

SLOPES: FloatArray = np.linspace(SLOPE_MEAN - 3.5 * SLOPE_STD, SLOPE_MEAN + 3.5 * SLOPE_STD, 99)


def estimate_noise(
    n: FloatArray, freedom: FloatArray, variance: FloatArray, modelled: FloatArray, *, between: float
) -> Noise:
    """Weigh the paper's noise against powers of n, for B curves measured at the same sizes.

    Parameters
    ----------
    n : ndarray, shape (S,)
        Sizes.
    freedom, variance : ndarray, shape (B, S)
        Degrees of freedom F_i − 1 and variance of the runs at each size; 0 where unknown.
    modelled : ndarray, shape (B, S)
        The paper's σ_i².
    between : float
        Degrees of freedom left between the sizes by the fitted curve.
    """
    prior = np.exp(-0.5 * ((SLOPES - SLOPE_MEAN) / SLOPE_STD) ** 2)
    prior *= (1.0 - PAPER_SHARE) / prior.sum()
    likelihood = _log_likelihood(n, freedom, variance, modelled)
    likelihood += np.log(np.concatenate([[PAPER_SHARE], prior]))
    posterior = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
    posterior /= posterior.sum(axis=1, keepdims=True)
    powers = posterior[:, 1:] / np.maximum(posterior[:, 1:].sum(axis=1, keepdims=True), 1e-300)
    slope = powers @ SLOPES
    slope_variance = np.maximum(powers @ SLOPES**2 - slope**2, 0.0)
    level = freedom + max(between, 1e-9) / len(n)
    return Noise(
        paper=posterior[:, 0],
        slope=slope,
        slope_variance=slope_variance,
        centre=(level @ np.log(n)) / level.sum(axis=1),
        spent=np.clip(1.0 - slope_variance / SLOPE_STD**2, 0.0, 1.0),
    )


def _log_likelihood(n: FloatArray, freedom: FloatArray, variance: FloatArray, modelled: FloatArray) -> FloatArray:
    """Log-likelihood of each kind of noise, its level profiled out, shape (B, 1 + len(SLOPES))."""
    logs = np.log(n) - np.log(n).mean()
    shapes = np.exp(-np.multiply.outer(logs, SLOPES))
    square = freedom * variance
    total = freedom.sum(axis=1)
    # Runs that agree exactly say nothing about the shape: a floor keeps the logarithm finite.
    floor = 1e-300 + 1e-18 * square.sum(axis=1)
    powers = np.log(square @ shapes + floor[:, None]) * (-0.5 * total[:, None])
    powers -= 0.5 * np.multiply.outer(freedom @ logs, SLOPES)
    scale = np.log(modelled).mean(axis=1, keepdims=True)
    paper = np.log((square / modelled * np.exp(scale)).sum(axis=1) + floor) * (-0.5 * total)
    paper -= 0.5 * (freedom * (np.log(modelled) - scale)).sum(axis=1)
    return np.concatenate([paper[:, None], powers], axis=1)
