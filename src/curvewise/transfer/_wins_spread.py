"""How far a share of wins may be off: examples and runs both counted as sampled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit, stdtrit

from curvewise.stats import cluster_degrees, cluster_variance, excluded_level
from curvewise.transfer._wins_counts import Side, Units
from curvewise.types import FloatArray, Interval

FEW = 5
"""With fewer runs (or examples, or groups) their variance may come out far too small by chance."""


@dataclass(frozen=True, eq=False)
class Spread:
    """Variance of a share of wins, and what it is made of.

    Attributes
    ----------
    rate : float
        The share.
    variance : float
        Its variance in all.
    parts, degrees : ndarray
        Variances of means over examples, runs of the method, runs of scratch, as far as there are
        two; they overlap. Their degrees of freedom.
    examples, runs : float
        What examples, and runs beyond them, contribute; ``runs`` is NaN where no side has two.
    units : int
        Examples, or groups of them.
    """

    rate: float
    variance: float
    parts: FloatArray
    degrees: FloatArray
    examples: float
    runs: float
    units: int

    def interval(self, level: float) -> Interval:
        """The rates that are not ruled out.

        Student's interval on the scale of log odds, or of the angle whose squared sine is the rate
        where a variance rests on few values: quantiles are then so large that on the former nearly
        every rate would be left, however close the runs are. A share of examples (or groups) so
        small that the sample may well hold none of them could be all wins or all losses: the ends
        leave room for it, so that neither all wins nor all ties make an interval without width.
        """
        tail = (1 - level) / 2
        p, unseen = self.rate, -math.expm1(math.log(tail) / self.units)
        low, high = p * (1 - unseen), p + (1 - p) * unseen
        if 0 < p < 1:
            half = self._quantile(1 - tail) * math.sqrt(self.variance)
            ends = _by_angle(p, half) if self._few else _by_log_odds(p, half)
            low, high = min(low, ends[0]), max(high, ends[1])
        return Interval(p, low, high, level)

    @property
    def _few(self) -> bool:
        """Whether one of the variances rests on few values."""
        return bool(self.degrees.min() + 1 < FEW)

    def pvalue(self) -> float:
        """Against ½, two-sided: below 1 − level just where the interval leaves ½ out."""

        def ends(level: float) -> tuple[float, float]:
            found = self.interval(level)
            return found.low, found.high

        return 1.0 - excluded_level(ends, 0.5)

    def _quantile(self, chance: float) -> float:
        """Student's, with Satterthwaite's degrees of freedom.

        Where one of the variances rests on few values the half-widths that each would have alone
        are added in squares, since Satterthwaite's degrees are then too many.
        """
        total = float(self.parts.sum())
        if total == 0:
            return float(stdtrit(self.degrees.min(), chance))
        if self._few:
            return math.sqrt(float(self.parts @ stdtrit(self.degrees, chance) ** 2) / total)
        degrees = self.variance**2 / float((self.parts**2 / self.degrees).sum())
        return float(stdtrit(min(degrees, 1e9), chance))


def _by_log_odds(rate: float, half: float) -> tuple[float, float]:
    away = half / (rate * (1 - rate))
    return float(expit(logit(rate) - away)), float(expit(logit(rate) + away))


def _by_angle(rate: float, half: float) -> tuple[float, float]:
    angle, away = math.asin(math.sqrt(rate)), half / math.sqrt(4 * rate * (1 - rate))
    ends = max(0.0, angle - away), min(0.5 * math.pi, angle + away)
    return math.sin(ends[0]) ** 2, math.sin(ends[1]) ** 2


def spread_of(sides: Sequence[Side], units: Units) -> Spread:
    """What is known from one side (pairs of runs), or from both.

    Means over examples and over the runs of a side vary by what belongs to each alone, and by how
    these runs answer these examples. The latter is in both and is taken out once.
    """
    p = float(sides[0].by_run.mean())
    count = len(units.sizes)
    examples = float(cluster_variance(sides[0].by_unit - p * units.sizes, units.sizes))
    parts, degrees = [examples], [cluster_degrees(units.sizes)]
    total, runs = examples, 0.0
    known = [side for side in sides if len(side.by_run) > 1]
    for side in known:
        # A side with one run is taken to vary as much as the other does.
        times = 1 if len(known) == len(sides) else 1 + len(side.by_run)
        own, noise = _run_variance(side, units)
        total += times * (own - noise)
        runs += times * max(0.0, own - noise)
        parts.append(times * own)
        degrees.append(len(side.by_run) - 1)
    return Spread(
        rate=p,
        variance=max(total, *parts) if known else total,
        parts=np.array(parts),
        degrees=np.array(degrees, dtype=np.float64),
        examples=examples,
        runs=runs if known else math.nan,
        units=count,
    )


def _run_variance(side: Side, units: Units) -> tuple[float, float]:
    """Variance of the mean over runs, and how much of it is answers to these very examples."""
    runs, n = len(side.by_run), float(units.sizes.sum())
    between = float(np.var(side.by_run, ddof=1))
    apart = (side.squares - runs * float(side.by_unit @ side.by_unit)) / (runs - 1) / n**2
    weight = float((units.sizes**2).sum()) / n**2
    noise = max(0.0, (apart - weight * between) / (1 - weight))
    return between / runs, noise / runs
