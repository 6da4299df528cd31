"""Intervals by the profile of the objective: how far a quantity can move before the fit becomes too bad.

For least squares with normal errors this is the profile likelihood with its exact small-sample quantile. For Huber's
function, and for runs whose rows are not independent, the same curve is compared with a threshold that is scaled by
the sandwich variance of the estimate: the curve gives the interval its shape, the sandwich its width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit

from curvewise.scaling.solve import BLOCK, Bowl, Data, minimise
from curvewise.types.units import FloatArray

Quantity: TypeAlias = Callable[[FloatArray], FloatArray]
"""From parameters of K laws, shape (K, P), to a number for each, shape (K,)."""

STIFFNESS = 1e3
"""Weight of the penalty that holds a quantity at its aim, over the curvature of the profile."""
CLOSE = 1e-3
"""Relative distance from the threshold, on the scale of standard errors, at which a limit is found."""


@dataclass(frozen=True, eq=False)
class ProfileIntervals:
    """Intervals of any quantities of one fitted law.

    Attributes
    ----------
    data : Data
        Runs, form and loss.
    theta : ndarray, shape (P,)
        The fit.
    value : float
        Its objective.
    groups : ndarray of int, shape (n,)
        Run of each row, from 0 on; rows of one run are left out and counted together.
    """

    data: Data
    theta: FloatArray
    value: float
    groups: NDArray[np.intp]

    def limits(self, quantities: Sequence[Quantity], level: float = 0.95) -> FloatArray:
        """Return low and high of each quantity, shape (2, Q); infinite where the data do not bound it."""
        slopes = np.stack([gradient(q, self.theta[None])[0] for q in quantities])
        scale, degrees = self.scales(slopes)
        threshold = 0.5 * stdtrit(degrees, 0.5 + level / 2) ** 2 * scale
        spread = self._spread(slopes)
        return _search(self, quantities, slopes, threshold, spread)

    def standard_errors(self, slopes: FloatArray) -> FloatArray:
        """Return standard errors of quantities with these gradients, shape (Q, P), by the sandwich."""
        return np.sqrt(self._spread(slopes) * self.scales(slopes)[0] / self.noise)

    def scales(self, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the scale of the drop of the objective for each quantity, and its degrees of freedom.

        Without groups all rows have the same: the variance of a row's pull on the fit over the mean curvature of its
        term, which for squares is the variance of the residuals, with n − P degrees of freedom. With groups it is the
        variance of the groups' pulls in the direction of each quantity, and the degrees are Satterthwaite's.
        """
        n, size = len(self.groups), len(self.theta)
        pull = np.clip(self.errors, -self.data.delta, self.data.delta)
        if self.independent:
            return np.full(len(slopes), self.noise), np.full(len(slopes), float(n - size))
        influence = slopes @ self.inverse @ self.jacobian
        count = int(self.groups.max()) + 1
        totals, parts = np.zeros((count, len(slopes))), np.zeros((count, len(slopes)))
        np.add.at(totals, self.groups, (influence * pull).T)
        np.add.at(parts, self.groups, (influence**2).T)
        weight = parts.sum(axis=0)
        degrees = (1 - 1 / count) * weight**2 / (parts**2).sum(axis=0)
        return (totals**2).sum(axis=0) / weight / self.steepness, degrees

    @property
    def independent(self) -> bool:
        """True where each row is a run of its own."""
        return int(self.groups.max()) + 1 == len(self.groups)

    @cached_property
    def noise(self) -> float:
        """Mean square of the rows' pulls over the mean curvature of their terms."""
        pull = np.clip(self.errors, -self.data.delta, self.data.delta)
        return float((pull**2).mean() / self.steepness)

    @cached_property
    def steepness(self) -> float:
        """Mean second derivative of Huber's function over the distribution of errors; 1 for squares.

        Few rows lie within δ, so that the share of those that do is smoothed over a normal kernel.
        """
        delta, error = self.data.delta, self.errors
        if np.isinf(delta):
            return 1.0
        quarter = np.subtract(*np.quantile(error, [0.75, 0.25])) / 1.349
        spread = min(x for x in (quarter, error.std(), np.inf) if x > 0)
        if not np.isfinite(spread):
            return 1.0
        width = 1.06 * spread * len(error) ** -0.2  # Silverman's rule
        return float((ndtr((delta - error) / width) - ndtr((-delta - error) / width)).mean())

    @cached_property
    def errors(self) -> FloatArray:
        """Log errors of rows as independent runs would have them, shape (n,).

        Each run is predicted by a fit without it; such errors are too large by the error of that fit, which
        (I − H)^½ takes off, for H the rows' part of the hat matrix. For squares these are the residuals of CR2.
        """
        count = int(self.groups.max()) + 1
        lower, upper = self.data.bounds
        out = np.empty(len(self.groups))
        block = max(1, BLOCK // len(self.groups))
        for first in range(0, count, block):
            left_out = np.arange(first, min(first + block, count))
            weights = (left_out[:, None] != self.groups).astype(np.float64)
            start = np.tile(self.theta, (len(left_out), 1))
            theta, _ = minimise(lambda t, k, w=weights: self.data.bowl(t, w[k]), start, self.data.form, (lower, upper), steps=40, tol=1e-7)
            row, column = np.nonzero(weights == 0)
            out[column] = -self.data.residuals(theta)[row, column]
        if self.independent:
            hat = np.einsum("pn,pq,qn->n", self.jacobian, self.inverse, self.jacobian)
            return out * np.sqrt(np.clip(1 - hat, 0.02, 1.0))
        for group in range(count):
            rows = np.flatnonzero(self.groups == group)
            part = self.jacobian[:, rows]
            values, vectors = np.linalg.eigh(part.T @ self.inverse @ part)
            out[rows] = vectors @ (np.sqrt(np.clip(1 - values, 0.02, 1.0)) * (vectors.T @ out[rows]))
        return out

    @cached_property
    def jacobian(self) -> FloatArray:
        """Derivatives of log loss in the parameters, shape (P, n)."""
        values = self.data.form.values(self.theta[None], self.data.at)
        return values.slope[0] / values.loss[0]

    @cached_property
    def inverse(self) -> FloatArray:
        """Inverse of JJᵀ, shape (P, P)."""
        size = np.sqrt((self.jacobian**2).sum(axis=1)) + 1e-100
        unit = self.jacobian / size[:, None]
        return np.linalg.pinv(unit @ unit.T, rcond=1e-13, hermitian=True) / np.outer(size, size)

    def _spread(self, slopes: FloatArray) -> FloatArray:
        """Variance of quantities to first order, were rows independent."""
        return np.einsum("qp,pr,qr->q", slopes, self.inverse, slopes) * self.noise / self.steepness


def gradient(quantity: Quantity, theta: FloatArray) -> FloatArray:
    """Return derivatives of a quantity, shape (K, P), by central differences."""
    count, size = theta.shape
    step = 1e-6 * (1.0 + np.abs(theta))
    moved = step[:, :, None] * np.eye(size)  # (K, P, P)
    points = np.concatenate([theta[:, None] + moved, theta[:, None] - moved], axis=1)
    value = quantity(points.reshape(-1, size)).reshape(count, 2, size)
    return np.asarray((value[:, 0] - value[:, 1]) / (2 * step))


def _search(
    fit: ProfileIntervals, quantities: Sequence[Quantity], slopes: FloatArray, threshold: FloatArray, spread: FloatArray
) -> FloatArray:
    """Walk each quantity down and up until the best objective with it held there has risen by the threshold."""
    data, count = fit.data, len(quantities)
    lower, upper = data.bounds
    which, sign = np.tile(np.arange(count), 2), np.repeat([-1.0, 1.0], count)

    def value_of(theta: FloatArray, which: NDArray[np.intp]) -> FloatArray:
        found = np.empty(len(theta))
        for k, quantity in enumerate(quantities):
            found[which == k] = quantity(theta[which == k])
        return found

    def slope_of(theta: FloatArray, which: NDArray[np.intp]) -> FloatArray:
        found = np.empty(theta.shape)
        for k, quantity in enumerate(quantities):
            found[which == k] = gradient(quantity, theta[which == k])
        return found

    goal = np.sqrt(np.tile(threshold, 2))
    # To first order the objective rises by noise · (distance / standard error)² / 2.
    spread = np.maximum(np.tile(spread, 2), 1e-30)
    step = goal * np.sqrt(2 * spread / fit.noise)
    stiff = STIFFNESS * fit.noise / spread
    start = value_of(np.tile(fit.theta, (2 * count, 1)), which)
    path = slopes @ fit.inverse
    path = np.tile(path / np.maximum(np.einsum("qp,qp->q", path, slopes), 1e-300)[:, None], (2, 1))

    # The furthest point below the threshold, with its parameters, and the nearest above it.
    near, near_rise, near_theta = start.copy(), np.zeros(2 * count), np.tile(fit.theta, (2 * count, 1))
    far, far_rise = np.full(2 * count, np.nan), np.full(2 * count, np.nan)
    limit, stalled = sign * np.inf, np.zeros(2 * count, dtype=np.int64)
    aim = start + sign * step
    active = np.arange(2 * count)
    for turn in range(40):
        goals = (aim[active], stiff[active], which[active])

        def held(theta: FloatArray, k: NDArray[np.intp], goals: tuple[FloatArray, ...] = goals) -> Bowl:
            aims, weight, kind = (g[k] for g in goals)
            plain, slope = data.bowl(theta), slope_of(theta, kind)
            gap = value_of(theta, kind) - aims
            outer = weight[:, None, None] * slope[:, :, None] * slope[:, None, :]
            return Bowl(
                plain.value + 0.5 * weight * gap**2,
                plain.gradient + (weight * gap)[:, None] * slope,
                plain.curvature + outer,
                plain.metric + outer,
            )

        guess = near_theta[active] + path[active] * (aim[active] - near[active])[:, None]
        theta, _ = minimise(held, np.where(np.isfinite(guess), guess, near_theta[active]), data.form, (lower, upper), steps=40, tol=1e-7)
        value = value_of(theta, which[active])
        rise = np.sqrt(np.maximum(data.bowl(theta).value - fit.value, 0.0))
        found = np.abs(rise - goal[active]) <= CLOSE * goal[active]
        limit[active[found]] = value[found]
        below = rise < goal[active]
        moved = sign[active] * (value - near[active]) > 1e-3 * np.abs(aim[active] - near[active])
        forward = below & moved
        near_before = near[active]
        place = active[forward]
        with np.errstate(divide="ignore", invalid="ignore"):
            path[place] = (theta - near_theta[active])[forward] / (value - near[active])[forward, None]
        near[place], near_rise[place], near_theta[place] = value[forward], rise[forward], theta[forward]
        far[active[~below]], far_rise[active[~below]] = value[~below], rise[~below]
        between = ~np.isnan(far[active])
        # Where the profile is flatter than at the fit, the penalty must be stiffer to lead the quantity on.
        lags = np.abs(value - aim[active]) > 0.05 * np.abs(aim[active] - near_before)
        stiff[active] *= np.where(lags, 10.0, 1.0)
        stalled[active] = np.where(below & ~moved, stalled[active] + 1, 0)
        # No further along: parameters are at their bounds, and the data do not rule out what lies there.
        given_up = (stalled[active] > 2) | (np.abs(near[active] - start[active]) > 1e3 * step[active])
        limit[active[given_up & between]] = near[active[given_up & between]]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (goal - near_rise)[active] / (far_rise - near_rise)[active]
            inside = near[active] + (far - near)[active] * (np.clip(share, 0.1, 0.9) if turn % 3 else 0.5)
            ratio = np.clip(goal[active] / near_rise[active] - 1, 0.2, 2.0)
        beyond = np.maximum(np.abs(near - start)[active] * ratio, step[active] * 0.25) * 2.0 ** stalled[active]
        aim[active] = np.where(between, inside, near[active] + sign[active] * np.where(np.isfinite(beyond), beyond, step[active]))
        active = active[~(found | given_up)]
        if not len(active):
            break
    unfinished = active[~np.isnan(far[active])]
    limit[unfinished] = near[unfinished]
    return limit.reshape(2, count)
