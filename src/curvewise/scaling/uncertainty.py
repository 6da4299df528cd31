"""Intervals of anything that a fitted law says: by the profile of one form, by resampling where forms are weighed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from curvewise.scaling.forecast import Forecast
from curvewise.scaling.forms import Form, Place
from curvewise.scaling.profile import Family, ProfileIntervals, Quantity, refit
from curvewise.scaling.solve import BLOCK
from curvewise.types.units import FloatArray

RESAMPLES = 400
"""Refits of each member behind intervals where forms are weighed."""
NODES = 9
"""Budgets at which limits are searched for; between them they are interpolated."""


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Intervals of a forecast.

    Attributes
    ----------
    forecast : Forecast
        One law, or several with weights.
    groups : ndarray of int, shape (n,)
        Run of each row.
    known : bool
        False where rows may be checkpoints of unknown runs: all limits are then NaN.
    seed : int
        Of the resamples.
    """

    forecast: Forecast
    groups: NDArray[np.intp]
    known: bool = True
    seed: int = 0

    @cached_property
    def profile(self) -> ProfileIntervals:
        """Intervals of the leading member."""
        lead = self.forecast.leading
        return ProfileIntervals(lead.data, lead.theta, lead.value, self.groups)

    def parameters(self, quantities: Sequence[Quantity], level: float) -> FloatArray:
        """Return limits of quantities of the leading member's parameters, shape (2, Q)."""
        if not self.known:
            return np.full((2, len(quantities)), np.nan)
        return self.profile.limits(quantities, level)

    def log_losses(self, at: Place, level: float) -> FloatArray:
        """Return limits of the expected log loss at places, shape (2, n)."""
        count = len(at.params)
        if not self.known:
            return np.full((2, count), np.nan)
        if len(self.forecast.members) > 1:
            draws = self._picked(lambda form, theta: np.log(form.loss(theta, at)), level)
            return np.asarray(np.quantile(draws, [0.5 - level / 2, 0.5 + level / 2], axis=0))
        form = self.forecast.leading.data.form
        found = np.empty((2, count))
        # As many problems at a time as fit the cache.
        block = max(1, BLOCK // (4 * len(self.groups)))
        for first in range(0, count, block):
            part = Place(*(None if v is None else v[first : first + block] for v in at))  # type: ignore[arg-type]

            def value(theta: FloatArray, which: NDArray[np.intp], part: Place = part) -> FloatArray:
                own = Place(*(None if v is None else v[which] for v in part))  # type: ignore[arg-type]
                return np.asarray(np.log(form.own_loss(theta, own)))

            found[:, first : first + block] = self.profile.limits(Family(len(part.params), value), level)
        return found

    def optima(
        self,
        best: Callable[[Form, FloatArray, FloatArray], tuple[FloatArray, FloatArray]],
        budgets: FloatArray,
        level: float,
        sampled: bool = False,
    ) -> tuple[FloatArray, FloatArray]:
        """Return limits of log N* and of the log loss there for log budgets, shape (2, M) each.

        ``best`` gives both, shape (K,), for laws of a form, shape (K, P), and a log budget for each, shape (K,). If it
        is itself a search, which has no smooth derivatives, limits are ``sampled``: quantiles of refits.
        """
        if not self.known:
            return np.full((2, len(budgets)), np.nan), np.full((2, len(budgets)), np.nan)
        ends = [0.5 - level / 2, 0.5 + level / 2]
        if sampled or len(self.forecast.members) > 1:

            def both(form: Form, theta: FloatArray) -> FloatArray:
                many = len(budgets)
                pair = best(form, np.repeat(theta, many, axis=0), np.tile(budgets, len(theta)))
                return np.concatenate([v.reshape(len(theta), many) for v in pair], axis=1)

            low_high = np.quantile(self._picked(both, level), ends, axis=0)
            return low_high[:, : len(budgets)], low_high[:, len(budgets) :]
        form, theta = self.forecast.leading.data.form, self.forecast.leading.theta
        nodes = budgets if len(budgets) <= NODES else np.linspace(budgets.min(), budgets.max(), NODES)

        def value(theta: FloatArray, which: NDArray[np.intp]) -> FloatArray:
            size, loss = best(form, theta, nodes[which % len(nodes)])
            return np.where(which < len(nodes), size, loss)

        limits = self.profile.limits(Family(2 * len(nodes), value), level).reshape(2, 2, len(nodes))
        if len(nodes) == len(budgets):
            return limits[:, 0], limits[:, 1]
        # Distances from the estimate are smooth in log C, and the estimate itself is exact.
        found = []
        for k in (0, 1):
            centre, here = (best(form, np.tile(theta, (len(c), 1)), c)[k] for c in (nodes, budgets))
            found.append(np.stack([here + _smooth(nodes, side - centre, budgets) for side in limits[:, k]]))
        return found[0], found[1]

    def _picked(self, of: Callable[[Form, FloatArray], FloatArray], level: float) -> FloatArray:
        """Return a quantity of refits, those of each member by its weight: forms differ, too.

        Refits to few runs vary too little, by the degrees of freedom that the parameters take up and by Student's
        quantile over the normal: their distances from the fit are stretched by as much.
        """
        rng = np.random.default_rng(self.seed)
        runs = int(self.groups.max()) + 1
        kept = []
        for member, refits in zip(self.forecast.members, self.refits, strict=True):
            take = int(np.round(member.weight * RESAMPLES))
            if take:
                form = member.data.form
                free = max(runs - form.size, 1)
                stretch = np.sqrt(runs / free) * stdtrit(free, 0.5 + level / 2) / ndtri(0.5 + level / 2)
                centre = of(form, member.theta[None])
                kept.append(centre + stretch * (of(form, refits[rng.permutation(RESAMPLES)[:take]]) - centre))
        return np.concatenate(kept)

    @cached_property
    def refits(self) -> tuple[FloatArray, ...]:
        """Parameters of each member on resamples, shape (resamples, P) each.

        Runs get exponential weights with mean 1: with few runs, drawing them with replacement would leave some
        resamples without a size.
        """
        rng = np.random.default_rng(self.seed)
        runs = int(self.groups.max()) + 1
        weights = rng.exponential(size=(RESAMPLES, runs))[:, self.groups]
        return tuple(refit(m.data, m.theta, weights) for m in self.forecast.members)


def resample_runs(groups: NDArray[np.intp], count: int, rng: np.random.Generator) -> FloatArray:
    """Draw runs with replacement: the number of times that each row is drawn, shape (count, n)."""
    runs = int(groups.max()) + 1
    drawn = rng.multinomial(runs, np.full(runs, 1.0 / runs), size=count)
    return drawn.astype(np.float64)[:, groups]


def _smooth(nodes: FloatArray, values: FloatArray, at: FloatArray) -> FloatArray:
    """Interpolate between nodes by cubics with the slopes of parabolas; infinite from where a node is."""
    finite = np.isfinite(values)
    if not finite.all():
        near = np.interp(at, nodes, np.where(finite, values, 0.0))
        unbounded = np.interp(at, nodes, np.where(finite, 0.0, 1.0)) > 0
        return np.where(unbounded, np.sign(values[~finite][0]) * np.inf, near)
    slope = np.gradient(values, nodes, edge_order=2)
    k = np.clip(np.searchsorted(nodes, at) - 1, 0, len(nodes) - 2)
    wide = nodes[k + 1] - nodes[k]
    t = (at - nodes[k]) / wide
    # Hermite's cubic on [0, 1]
    ends = (1 + 2 * t) * (1 - t) ** 2 * values[k] + t**2 * (3 - 2 * t) * values[k + 1]
    return np.asarray(ends + wide * t * (1 - t) * ((1 - t) * slope[k] - t * slope[k + 1]))
