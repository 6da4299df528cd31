"""The extended power law e(n) = α + η n^γ + δ n^2γ, fitted in closed form for each γ of a grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from curvewise.errors import InputError
from curvewise.learning.replicates import SIGMA0_SQUARED, Replicates
from curvewise.types import FloatArray

GAMMA_GRID: FloatArray = np.arange(-99, 0) / 100.0
"""The paper's search grid, −0.99, …, −0.01 (Eq. 4)."""

PRIOR = 5.0
"""λ of the L1 prior λ·|γ + ½|, for errors in percent (Eq. 4)."""

FORMS: dict[str, tuple[bool, int]] = {
    "power": (True, 2),
    "sqrt": (False, 2),
    "power2": (True, 3),
    "sqrt2": (False, 3),
}
"""Name of a form → (γ is free, number of linear terms); γ = −½ where it is not free."""

WEIGHTS = ("size", "run", "none")
"""Weight of one run: 1/(F_i σ_i²), 1/σ_i², or 1."""


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
        :mod:`curvewise.learning.noise`), or σ0² + σ̂²/n as in the paper, which is too narrow where
        the spread of the runs falls more slowly than 1/n. The fit itself is weighted as in the
        paper either way.
    """

    prior: float = PRIOR
    sigma0_squared: float = SIGMA0_SQUARED
    gamma: float | None = None
    noise: str = "estimated"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.prior) and self.prior >= 0):
            raise InputError(f"prior={self.prior!r} must be 0 or positive.")
        if not (np.isfinite(self.sigma0_squared) and self.sigma0_squared >= 0):
            raise InputError(f"sigma0_squared={self.sigma0_squared!r} must be 0 or positive.")
        if self.gamma is not None and not -10 <= self.gamma < 0:
            raise InputError(
                f"gamma={self.gamma:g} must be negative: error falls with n (−0.5 is usual)."
            )
        if self.noise not in ("estimated", "paper"):
            raise InputError(f"noise={self.noise!r} is not known: use 'estimated' or 'paper'.")


_BLOCK = 128  # rows × 99 γ × 8 bytes: small enough that the allocator reuses warm pages


@dataclass(frozen=True, eq=False)
class PowerFits:
    """Best α, η, δ and γ for each of B curves; ``objective`` is G(γ) without the prior term."""

    alpha: FloatArray
    eta: FloatArray
    delta: FloatArray
    gamma: FloatArray
    objective: FloatArray


def gamma_grid(form: str, gamma: float | None = None) -> FloatArray:
    """The values of γ that a form searches: the grid, or a single fixed value."""
    if form not in FORMS:
        raise InputError(f"form={form!r} is not known: use one of {', '.join(map(repr, FORMS))}.")
    if gamma is not None:
        return np.array([float(gamma)])
    return GAMMA_GRID if FORMS[form][0] else np.array([-0.5])


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
    if scheme == "none":
        return np.broadcast_to(runs, np.broadcast_shapes(runs.shape, variance.shape))
    raise InputError(
        f"weights={scheme!r} is not known: use one of {', '.join(map(repr, WEIGHTS))}."
    )


def fit_power(
    n: FloatArray,
    mean: FloatArray,
    weight: FloatArray,
    *,
    gammas: FloatArray = GAMMA_GRID,
    prior: float = PRIOR,
    terms: int = 2,
) -> PowerFits:
    """Minimise G(γ) + λ|γ + ½| over a grid of γ for B curves measured at the same sizes.

    Parameters
    ----------
    n : ndarray, shape (S,)
        Training sizes.
    mean : ndarray, shape (B, S)
        Mean error at each size.
    weight : ndarray, shape (B, S) or (1, S)
        Total weight of each size.
    gammas : ndarray, shape (G,)
        Values of γ to try.
    prior : float
        λ; 0 leaves the prior out.
    terms : {2, 3}
        2 for α + η n^γ, 3 to add δ n^2γ.
    """
    logs = np.log(n)
    origin = float(logs.sum()) / len(logs)
    # exp(γ(log n − origin)) − 1 spans the same curves as n^γ and stays well conditioned at γ → 0.
    basis = np.expm1(np.multiply.outer(gammas, logs - origin))
    penalty = prior * np.abs(gammas + 0.5)
    fit = _fit_two if terms == 2 else _fit_three
    blocks = [
        fit(
            basis,
            mean[i : i + _BLOCK],
            weight if len(weight) == 1 else weight[i : i + _BLOCK],
            penalty,
        )
        for i in range(0, len(mean), _BLOCK)
    ]
    joined = (
        blocks[0] if len(blocks) == 1 else tuple(map(np.concatenate, zip(*blocks, strict=True)))
    )
    level, slope, curve, index, objective = joined
    gamma = gammas[index.astype(np.intp)]
    shift = np.exp(-gamma * origin)
    # level + slope·b + curve·b² with b = x − 1, rewritten in powers of n.
    return PowerFits(
        alpha=level - slope + curve,
        eta=(slope - 2.0 * curve) * shift,
        delta=curve * shift**2,
        gamma=gamma,
        objective=objective,
    )


def _fit_two(
    basis: FloatArray, mean: FloatArray, weight: FloatArray, penalty: FloatArray
) -> tuple[FloatArray, ...]:
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


def _fit_three(
    basis: FloatArray, mean: FloatArray, weight: FloatArray, penalty: FloatArray
) -> tuple[FloatArray, ...]:
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


def fit_replicates(
    data: Replicates,
    form: str = "power",
    weights: str = "size",
    constants: Constants = Constants(),  # noqa: B008 (frozen)
) -> PowerFits:
    """Fit one curve to grouped runs in points (B = 1), the variance model included."""
    spread = data.run_variance(constants.sigma0_squared)
    return fit_power(
        data.n,
        data.mean[None],
        size_weights(weights, data.runs, spread)[None],
        gammas=gamma_grid(form, constants.gamma),
        prior=constants.prior,
        terms=FORMS[form][1],
    )
