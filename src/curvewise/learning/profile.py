"""The likelihood of the power law along its exponent γ, and the noise of single runs: confidence intervals.

Confidence intervals are by profile likelihood over γ, without the prior (:class:`Profile`). Given γ the law is linear
in its other parameters, so the likelihood profiled over everything but a linear quantity φ is a parabola in φ for each
γ. The interval is the union over a fine grid of γ of the stretches where that parabola stays under the F threshold. It
lets γ be unknown, which the paper's band does not. How the noise depends on n is unknown, too: a :class:`NoiseAverage`
weighs the profile under the paper's variance model against the one under a power of n (see :class:`Noise`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr, stdtrit

from curvewise.learning.power import Constants, GroupedRuns, size_variance
from curvewise.types.results import FloatArray

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
        best = self._best
        if len(best) == 1:
            return self._along(coefficients, best)[0][:, 0]
        along, _ = self._along(coefficients, np.arange(len(self.gammas)))
        return np.asarray(along[np.arange(len(along)), best], dtype=np.float64)

    @cached_property
    def _best(self) -> NDArray[np.intp]:
        """Index of the most likely γ of each curve; of several that are equally likely the one nearest to −½.

        With no more sizes than terms every γ fits alike, and the lowest residual would be a matter of rounding.
        """
        alike = self.residual <= self.residual.min(axis=1, keepdims=True) * (1.0 + 1e-9)
        return np.asarray(np.where(alike, np.abs(self.gammas + 0.5), np.inf).argmin(axis=1))

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
        best = self._best
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


@dataclass(frozen=True, eq=False)
class RunNoise:
    """The variance of one run of a curve at any size.

    Attributes
    ----------
    data : GroupedRuns
        Runs by size, in points.
    sigma0_squared : float
        Of the paper's model, in points².
    noise : Noise or None
        What the replicates say (B = 1); None to suppose the paper's model.
    level, freedom : float
        Variance where it is known best, and its degrees of freedom.
    """

    data: GroupedRuns
    sigma0_squared: float
    noise: Noise | None
    level: float
    freedom: float

    def variance(self, n: FloatArray) -> FloatArray:
        """Variance of one run at sizes n, in points²."""
        held = np.minimum(n, self.data.n[-1])
        if self.noise is None:
            return self._paper(n)
        share = float(self.noise.paper[0])
        power = self.level * self.noise.relative_variance(held)[0]
        return np.asarray(share * self._paper(held) + (1.0 - share) * power)

    def half_width(self, n: FloatArray, level: float) -> FloatArray:
        """Half the width of an interval for one new run about its mean, in points."""
        z = float(ndtri(0.5 + level / 2.0))
        if self.noise is None:
            return z * np.sqrt(self._paper(n))
        held = np.minimum(n, self.data.n[-1])
        apart = np.log(held) - self.noise.centre[0]
        freedom = 2.0 / (2.0 / self.freedom + self.noise.slope_variance[0] * apart**2)
        # Below four degrees of freedom Satterthwaite's approximation is too wide by far.
        t = np.asarray(stdtrit(np.maximum(freedom, 4.0), 0.5 + level / 2.0))
        power = t * np.sqrt(self.level * self.noise.relative_variance(held)[0])
        share = float(self.noise.paper[0])
        return np.asarray(share * z * np.sqrt(self._paper(held)) + (1.0 - share) * power)

    def _paper(self, n: FloatArray) -> FloatArray:
        return size_variance(n, self.data.slope_variance(self.sigma0_squared), self.sigma0_squared)
