"""The variance of one run at each training size, and how well the replicates determine it.

The paper supposes σ0² + σ̂²/n. Real runs seldom follow it: over the last factor of eight of the
learning curves of LCDB 1.0 the variance falls as n^b with a median b of −0.15 and 95% of the curves
between −1.7 and 1.0. Intervals here therefore average over two kinds of noise, each weighed by how
well it explains the spread of the runs at each size:

- the paper's model, which has 15% of the prior weight;
- a power n^b whose exponent is estimated from the replicates, with b ~ N(−0.2, 0.7²) beforehand.

How uncertain b is enters the intervals through Satterthwaite's degrees of freedom: a quantity that
rests on sizes without replicates has fewer of them. Beyond the largest size measured the variance
is held: that predicts single runs of LCDB 1.0, and a power of n extrapolated does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, stdtrit

from curvewise.learning.replicates import Replicates, size_variance
from curvewise.types import FloatArray

SLOPE_MEAN, SLOPE_STD = -0.2, 0.7
"""Prior of the exponent b, from the curves of LCDB 1.0 (last factor of eight in n)."""

PAPER_SHARE = 0.15
"""Prior weight of the paper's model.

More of it narrows intervals where the paper's model holds and loses coverage where it does not:
`benchmarks/learning_coverage.py` measures both.
"""

SLOPES: FloatArray = np.linspace(SLOPE_MEAN - 3.5 * SLOPE_STD, SLOPE_MEAN + 3.5 * SLOPE_STD, 99)


@dataclass(frozen=True, eq=False)
class Noise:
    """What the replicates of B curves say about how variance depends on n.

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
class RunNoise:
    """The variance of one run of a curve at any size.

    Attributes
    ----------
    data : Replicates
        Runs by size, in points.
    sigma0_squared : float
        Of the paper's model, in points².
    noise : Noise or None
        What the replicates say (B = 1); None to suppose the paper's model.
    level, freedom : float
        Variance where it is known best, and its degrees of freedom.
    """

    data: Replicates
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


def estimate_noise(
    n: FloatArray,
    freedom: FloatArray,
    variance: FloatArray,
    modelled: FloatArray,
    *,
    between: float,
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


def _log_likelihood(
    n: FloatArray, freedom: FloatArray, variance: FloatArray, modelled: FloatArray
) -> FloatArray:
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


def expected_freedom(n: FloatArray, runs: FloatArray, share: FloatArray, freedom: float) -> float:
    """Satterthwaite's degrees of freedom that a design gives on average.

    Parameters
    ----------
    n, runs : ndarray, shape (S,)
        Sizes and the number of runs at each.
    share : ndarray, shape (S,)
        What each size contributes to the variance of the quantity.
    freedom : float
        Runs minus parameters.
    """
    replicates = np.maximum(runs - 1.0, 0.0)
    level = replicates + 1e-9
    logs = np.log(n) - (level @ np.log(n)) / level.sum()
    # Half a squared distance per degree of freedom is what a log variance says about b.
    slope_variance = 1.0 / (1.0 / SLOPE_STD**2 + 0.5 * float(replicates @ logs**2))
    apart = float(share @ logs) / max(float(share.sum()), 1e-300)
    return 2.0 / (2.0 / freedom + slope_variance * apart**2)
