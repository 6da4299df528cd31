"""Fits of single learning-curve laws by grids over shapes, for many weightings at once.

Every law here is ``e(n) = a + b g(n; shape)`` with ``g`` decreasing and normalised to
``g(n_last) = 1``.  Given the shape, ``a`` and ``b`` follow in closed form; the shape itself runs
over a fixed grid and is averaged out with posterior-like weights instead of being optimised, which
is quick, never fails to converge, and keeps short noisy curves from picking an extreme shape.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

TYPICAL_RATE = 0.5
"""Centre of the weak log-normal prior on every exponent."""
RATE_SPREAD = 1.0
"""Standard deviation of that prior, in natural-log units."""
SMALLEST_RESIDUAL = 1e-12
"""Squared residuals below this share of the signal count as a perfect fit."""
SMALLEST_SHARE = 1e-4
"""Shapes with less than this share of the leading one are dropped from parameter tables."""
LAW_PARAMETERS = 3
"""Parameters of a power law: sizes beyond these tell something of the shape."""
LARGEST_LOG_BASIS = 300.0
"""Cap that keeps the exponentials of far extrapolations towards n = 0 finite."""


@dataclass(frozen=True)
class Family:
    """One law: its shape function, its shape grid and how sharply the grid is weighed.

    Attributes
    ----------
    log_basis : callable
        Maps shapes (G, P) and log sizes relative to the last one (T,) to ``log g`` (G, T).
    grid : ndarray, shape (G, P)
        Shape parameters.  Those in `span_columns` are shares of the observed log span.
    rate_columns : tuple of int
        Columns that are exponents, and so fall under the weak prior.
    sharpness : float
        Exponent of the grid weights (see `average_shapes`).
    per_point : bool
        Whether that exponent grows with the number of points.
    span_columns : tuple of int
        Columns to be multiplied by the log span of the training sizes.
    """

    log_basis: Callable[[Array, Array], Array]
    grid: Array
    rate_columns: tuple[int, ...]
    sharpness: float
    per_point: bool = False
    span_columns: tuple[int, ...] = ()

    def shapes(self, span: float) -> Array:
        """Return the grid (G, P) for training sizes spanning `span` natural-log units."""
        shapes = self.grid.copy()
        shapes[:, list(self.span_columns)] *= span
        return shapes

    def log_prior(self) -> Array:
        """Return the weak log prior (G,) of the grid."""
        rates = np.log(self.grid[:, list(self.rate_columns)] / TYPICAL_RATE)
        return np.asarray(-0.5 * np.sum((rates / RATE_SPREAD) ** 2, axis=1))


@dataclass(frozen=True)
class ShapeFit:
    """A law fitted under K weightings; all shapes with their shares.

    Attributes
    ----------
    shapes : ndarray, shape (G, P)
    basis : ndarray, shape (G, S)
        ``g`` of each shape at the training sizes.
    share, a, b : ndarrays, shape (K, G)
        Shares (rows sum to one), asymptotes and amplitudes.
    """

    shapes: Array
    basis: Array
    share: Array
    a: Array
    b: Array

    def curves(self) -> Array:
        """Return the shape-averaged curves (K, S) at the training sizes."""
        level = np.sum(self.share * self.a, axis=1, keepdims=True)
        return np.asarray(level + (self.share * self.b) @ self.basis)

    def table(self, k: int) -> Array:
        """Return rows ``[share, a, b, *shape]`` (J, 3 + P) of weighting `k`."""
        # Shapes with a negligible share only cost time at prediction.
        keep = np.flatnonzero(self.share[k] > SMALLEST_SHARE * self.share[k].max())
        share = self.share[k, keep] / self.share[k, keep].sum()
        return np.column_stack([share, self.a[k, keep], self.b[k, keep], self.shapes[keep]])


def fit_shapes(
    family: Family,
    log_n: Array,
    values: Array,
    weights: Array,
    floor: float | None,
    noise: Array | None = None,
) -> ShapeFit:
    """Fit one law under K weightings of the same S points.

    Parameters
    ----------
    family : Family
    log_n : ndarray, shape (S,)
        Log sizes minus the last log size, so the last entry is 0.
    values : ndarray, shape (S,)
    weights : ndarray, shape (K, S)
        Each row sums to one; zeros leave points out.
    floor : float or None
        Lower bound of the asymptote; None lifts it, and the sign constraint of `b` with it.
    noise : ndarray, shape (S,), optional
        Standard errors of the values. Shapes whose squared residuals differ by less than these
        explain are averaged, whichever happens to pass nearest to the points.

    Returns
    -------
    ShapeFit
    """
    shapes = family.shapes(-float(log_n[0]))
    basis = evaluate_basis(family, shapes, log_n)
    # In units of the largest value the squares below can neither overflow nor vanish.
    unit = float(np.abs(values).max()) or 1.0
    bound = None if floor is None else floor / unit
    a, b, residual = solve_linear(basis, values / unit, weights, bound)
    if noise is not None:
        # By how much mean squared residuals of two shapes differ by chance.
        spare = np.maximum(np.count_nonzero(weights, axis=1) - LAW_PARAMETERS, 1)
        residual = residual + (weights @ (noise / unit) ** 2 / spare)[:, None]
    return ShapeFit(shapes, basis, average_shapes(family, residual, weights), a * unit, b * unit)


def evaluate_basis(family: Family, shapes: Array, log_n: Array) -> Array:
    """Return ``g`` (G, T) at relative log sizes (T,), with ``g = 1`` at the last training size."""
    log_basis = family.log_basis(shapes, np.append(log_n, 0.0))
    return np.exp(np.minimum(log_basis[:, :-1] - log_basis[:, -1:], LARGEST_LOG_BASIS))


def predict_table(family: Family, table: Array, log_n: Array) -> Array:
    """Return the shape-averaged curve (T,) of a table of `ShapeFit.table` at relative log sizes."""
    basis = evaluate_basis(family, table[:, 3:], log_n)
    share, a, b = table[:, 0], table[:, 1], table[:, 2]
    return np.asarray(share @ a + (share * b) @ basis)


def solve_linear(
    basis: Array, values: Array, weights: Array, floor: float | None
) -> tuple[Array, Array, Array]:
    """Weighted least squares for ``a + b g`` under ``a >= floor`` and ``b >= 0``.

    Parameters
    ----------
    basis : ndarray, shape (G, S)
    values : ndarray, shape (S,)
    weights : ndarray, shape (K, S)
        Rows sum to one.
    floor : float or None
        None: both coefficients are free.

    Returns
    -------
    a, b, residual : ndarrays, shape (K, G)
        Coefficients and weighted squared residuals.
    """
    mean = (weights @ values)[:, None]
    g1 = weights @ basis.T
    g2 = weights @ (basis * basis).T
    gy = weights @ (basis * values).T
    yy = (weights @ (values * values))[:, None]
    spread = np.maximum(g2 - g1 * g1, 1e-14 * g2)
    b = (gy - g1 * mean) / spread
    a = mean - b * g1
    if floor is not None:
        low = a < floor
        a = np.where(low, floor, a)
        b = np.where(low, (gy - floor * g1) / g2, b)
        rising = b < 0.0
        b = np.where(rising, 0.0, b)
        a = np.where(rising, np.maximum(mean, floor), a)
    residual = yy - 2 * a * mean - 2 * b * gy + a * a + 2 * a * b * g1 + b * b * g2
    tiny = SMALLEST_RESIDUAL * yy + np.finfo(float).tiny
    return a, b, np.maximum(residual, tiny)


def average_shapes(family: Family, residual: Array, weights: Array) -> Array:
    """Return the share (K, G) of each shape, from residuals (K, G) and weights (K, S).

    ``share ~ prior * residual^-power``.  For the power law the exponent is proportional to
    ``m - 2``, where ``m = 1 / sum w^2`` is the effective number of points, as in the posterior of a
    Gaussian model of unknown variance.  The richer laws keep a constant exponent: what limits
    them is that no shape is right, not noise, so more points must not make them more certain.
    """
    effective = 1.0 / np.sum(weights * weights, axis=1)
    points = np.maximum(effective - 2.0, 1.0) if family.per_point else np.ones(len(weights))
    power = family.sharpness * points
    log_share = family.log_prior() - power[:, None] * np.log(residual)
    share = np.exp(log_share - log_share.max(axis=1, keepdims=True))
    return np.asarray(share / share.sum(axis=1, keepdims=True))


def _log_power(shapes: Array, log_n: Array) -> Array:
    """``g = n^-c``; shapes (G, 1) hold ``c``."""
    return -shapes[:, :1] * log_n


def _log_mmf4(shapes: Array, log_n: Array) -> Array:
    """Morgan-Mercer-Flodin ``g = 1 / (1 + n^d / b)``; shapes (G, 2) hold ``d, -log b``.

    ``(a b + c n^d) / (b + n^d) = c + (a - c) / (1 + n^d / b)``, so it is linear in two of four.
    """
    return -np.logaddexp(0.0, shapes[:, 1:2] + shapes[:, :1] * log_n)


def _log_m4(shapes: Array, log_n: Array) -> Array:
    """M4 of Alabdulmohsin et al. (2022); shapes (G, 3) hold ``c, log b, alpha``.

    With ``t = (e - e_inf) / (e_0 - e_inf)`` the law reads ``t / (1 - t)^alpha = b n^-c``; its
    inverse is tabulated once per ``alpha`` on a logistic scale of ``t`` and interpolated.
    """
    log_u = shapes[:, 1:2] - shapes[:, :1] * log_n
    log_t = np.empty_like(log_u)
    for alpha in np.unique(shapes[:, 2]):
        rows = shapes[:, 2] == alpha
        log_t[rows] = np.interp(log_u[rows], _LOG_T - alpha * _LOG_ONE_MINUS_T, _LOG_T)
    return log_t


_LOGIT = np.linspace(-60.0, 30.0, 3001)
_LOG_T = -np.logaddexp(0.0, -_LOGIT)
_LOG_ONE_MINUS_T = -np.logaddexp(0.0, _LOGIT)


def _log_break(shapes: Array, log_n: Array) -> Array:
    """One-break law ``g = n^-c0 (1 + (n / d)^(1/f))^(-(c1 - c0) f)``.

    Shapes (G, 4) hold ``c0, c1, log d, f``: the slope before and after the break, where it is
    and how wide.
    """
    before, after, place, width = (shapes[:, i : i + 1] for i in range(4))
    return -before * log_n - (after - before) * width * np.logaddexp(0.0, (log_n - place) / width)


def _cross(*axes: object) -> Array:
    """Return the Cartesian product of the axes as rows (G, P)."""
    return np.array(list(product(*axes)), dtype=np.float64)  # type: ignore[call-overload]


FAMILIES: dict[str, Family] = {
    "power": Family(
        _log_power, np.geomspace(0.02, 3.0, 200)[:, None], (0,), sharpness=4.0, per_point=True
    ),
    "mmf4": Family(
        _log_mmf4,
        _cross(np.geomspace(0.05, 3.0, 20), np.linspace(-3.0, 4.0, 15)),
        (0,),
        sharpness=2.5,
    ),
    "m4": Family(
        _log_m4,
        _cross(np.geomspace(0.05, 3.0, 18), np.linspace(-4.0, 3.0, 14), (0.5, 2.0, 4.0)),
        (0,),
        sharpness=2.5,
    ),
    "break": Family(
        _log_break,
        _cross(
            (0.02, 0.05, 0.1, 0.2, 0.4, 0.8),
            (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6),
            np.linspace(-0.85, -0.15, 5),
            (0.15, 0.6),
        ),
        (0, 1),
        sharpness=2.5,
        span_columns=(2,),
    ),
}
"""The laws that members are built from."""
