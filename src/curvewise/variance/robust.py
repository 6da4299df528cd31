"""An interval for runs that are not normal and examples that are sampled too.

The F interval supposes normal run effects that shift all examples alike. Here the degrees of
freedom of the test-set variance are those that its own sampling variance asks for: by the
kurtosis of the runs, and by how unevenly the common variation is spread over the examples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import fdtri, ndtri

from curvewise.types import FloatArray, Predictions
from curvewise.variance.anova import Split, split_variance
from curvewise.variance.bootstrap import unit_blocks, unit_sizes
from curvewise.variance.tails import FEWEST, Tails
from curvewise.variance.totals import Totals, measure_totals

MEASURED = 10
"""Runs from which on the influence of examples is measured."""

UNEVEN = 1.0
"""The examples' part of the variance of an estimate, over that of normal runs, from which on the
F interval is not taken."""

ROWS = 16
"""Runs held as floats at once."""

THINNED = 1000
"""Runs read a second time, at even distances, to see how the examples vary with the runs."""


@dataclass(frozen=True, eq=False)
class Influence:
    """What single examples (or groups) do to the estimate.

    Attributes
    ----------
    units : ndarray
        Change of the estimated variance with the weight of each example.
    share : float
        Variance of the estimate from the sampling of examples, over the squared test-set
        variance. What noise alone would put into it is taken off.
    """

    units: FloatArray
    share: float


NO_INFLUENCE = Influence(np.zeros(0), 0.0)


def measure_influence(predictions: Predictions) -> Influence:
    """How the estimate hangs on single examples; not measured with fewer than ten runs."""
    if predictions.runs < MEASURED:
        return NO_INFLUENCE
    step = max(1, predictions.runs // THINNED)
    thinned = predictions.subset(runs=slice(None, None, step)) if step > 1 else predictions
    totals = measure_totals(thinned)
    split = split_variance(totals)
    if split.test_set == 0:
        return NO_INFLUENCE
    runs, n, c = thinned.runs, totals.examples, totals.concentration
    sizes = unit_sizes(thinned)
    together, own = _covariances(thinned, totals, len(sizes))
    common = n * together - own - split.distribution * (n * sizes - sizes**2)
    units = 2 * common / (n**2 * (1 - c))
    noise = 4 * split.noise * split.test_set / runs
    share = max(0.0, float((units**2).sum()) - noise) / split.test_set**2
    return Influence(units, share)


def _covariances(
    predictions: Predictions, totals: Totals, units: int
) -> tuple[FloatArray, FloatArray]:
    """Covariance of each example (or group's total) with the run's mean, and its own variance."""
    deviation = totals.run - totals.run.mean()
    plain = predictions.binary and predictions.groups is None
    together, mean, squares = (np.zeros(units) for _ in range(3))
    centre: FloatArray | None = None
    for start, block in unit_blocks(predictions):
        for row in range(0, len(block), ROWS):
            values = block[row : row + ROWS].astype(np.float64)
            if not plain:
                centre = values[0].copy() if centre is None else centre
                values -= centre
                mean += values.sum(axis=0)
                squares += np.einsum("ij,ij->j", values, values)
            first = start + row
            together += deviation[first : first + len(values)] @ values
    runs = predictions.runs
    if plain:
        mean, squares = totals.example * runs, totals.example * runs
    return together / (runs - 1), (squares - mean**2 / runs) / (runs - 1)


def robust_interval(
    split: Split, tails: Tails, examples: float, level: float
) -> tuple[float, float]:
    """Limits of the distribution-wise variance; ``examples`` is :attr:`Influence.share`."""
    kurtosis = max(0.0, tails.excess_kurtosis) if split.runs >= FEWEST else 0.0
    degrees = 2 / (kurtosis / split.runs + 2 / (split.runs - 1) + examples)
    tail = (1 - level) / 2
    below = 1 / float(fdtri(degrees, split.degrees[1], 1 - tail))
    above = 1 / float(fdtri(degrees, split.degrees[1], tail))
    if kurtosis > 0:  # the spread of a standard deviation reaches further down than F says
        reach = max(0.0, 1 - float(ndtri(1 - tail)) / math.sqrt(2 * degrees)) ** 2
        below = min(below, reach)
    limits = [max(0.0, split.test_set * factor - split.noise) for factor in (below, above)]
    return limits[0], limits[1]
