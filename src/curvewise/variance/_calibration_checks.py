"""Whether the votes of the runs are calibrated: moments that must vanish, without finite-R bias.

With q the share of all runs that would say class c, class-wise calibration makes
E[g(q)(1{y = c} − q)] = 0 for every g. Two choices matter here, summed over classes:

- g = 1 − q: error equals disagreement;
- g = q(1 − q): the mean of q_y(1 − q_y) equals that of Σ q²(1 − q).

Powers of q are replaced by products over different runs, so that R runs give them without bias.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from curvewise.stats import holm
from curvewise.types import FloatArray, Interval, Predictions
from curvewise.variance._estimates import Test
from curvewise.variance._run_jackknife import Statistic, mean_statistics
from curvewise.variance._votes import Votes

GAP = "error − disagreement"
IDENTITY = "variance − formula"
SPREAD = "spread"


@dataclass(frozen=True)
class CalibrationCheck:
    """One consequence of class-wise calibration, tested.

    Attributes
    ----------
    name : str
        What should be 0, or whose contribution to it.
    difference : Interval
        Its estimate.
    statistic : float
        Over its standard error, for which examples and runs both are sampled.
    pvalue, adjusted : float
        Two-sided, by itself and with Holm's correction for its family.
    """

    name: str
    difference: Interval
    statistic: float
    pvalue: float
    adjusted: float


@dataclass(frozen=True, eq=False)
class VoteMoments:
    """What the votes say of calibration.

    Attributes
    ----------
    checks, class_checks : tuple of CalibrationCheck
        The two moments, and the first by class.
    ratios : dict
        By check: standard deviation that calibration would predict over the one there is.
    spread : Interval
        Mean of Σ q²(1 − q).
    """

    checks: tuple[CalibrationCheck, ...]
    class_checks: tuple[CalibrationCheck, ...]
    ratios: Mapping[str, Interval]
    spread: Interval


def measure_moments(predictions: Predictions, votes: Votes, level: float) -> VoteMoments:
    """Estimate and test the moments, with the runs and the examples sampled."""
    mean = _means_of(votes)
    statistics: dict[str, Statistic] = {GAP: _gap(1.0), SPREAD: _spread}
    if mean["error"] > 0 and mean["disagreement"] > 0:
        statistics["gap ratio"] = _gap(mean["disagreement"] / mean["error"])
    if votes.classes > 2:  # with two classes the second moment is 0 whatever the votes
        statistics[IDENTITY] = _identity(1.0)
        if mean["variance"] > 0 and mean["spread"] > 0:
            statistics["identity ratio"] = _identity(mean["spread"] / mean["variance"])
    means = mean_statistics(predictions, votes, statistics, level)
    half = {key: m.together.estimate.width / 2 for key, m in means.items()}
    gap = half.get("gap ratio", math.nan)
    ratios = {GAP: _root_ratio(mean["error"], mean["disagreement"], "below", gap, level)}
    if votes.classes > 2:
        gap = half.get("identity ratio", math.nan)
        ratios[IDENTITY] = _root_ratio(mean["spread"], mean["variance"], "above", gap, level)
    tests = {name: means[name].together for name in ratios}
    return VoteMoments(
        checks=_checks(list(tests), list(tests.values())),
        class_checks=_checks(list(map(str, votes.names)), means[GAP].classes),
        ratios=ratios,
        spread=means[SPREAD].together.estimate,
    )


def _means_of(votes: Votes) -> dict[str, float]:
    c, r, right = votes.counts, votes.runs, votes.right
    true = np.arange(votes.classes) == votes.truth[:, None]
    return {
        "error": float(votes.error.mean()),
        "disagreement": float(votes.disagreement.mean()),
        "variance": float((right * (r - right)).mean()) / (r * (r - 1)),
        "spread": float(_spread(c, r, true).sum(axis=1).mean()),
    }


def _spread(count: NDArray[Any], runs: int, true: NDArray[np.bool_]) -> FloatArray:
    """q²(1 − q): two runs say the class and a third does not."""
    c = count.astype(np.float64)
    values: FloatArray = c * (c - 1) * (runs - c) / (runs * (runs - 1) * (runs - 2))
    return values


def _gap(ratio: float) -> Statistic:
    """Part of the error and of the disagreement: ratio × 1{y = c}(1 − q) − q(1 − q)."""

    def table(count: NDArray[Any], runs: int, true: NDArray[np.bool_]) -> FloatArray:
        c = count.astype(np.float64)
        values: FloatArray = np.where(true, ratio * (1 - c / runs), 0.0)
        return values - c * (runs - c) / (runs * (runs - 1))

    return table


def _identity(ratio: float) -> Statistic:
    """Part of the variance and of the formula: ratio × 1{y = c} q(1 − q) − q²(1 − q)."""

    def table(count: NDArray[Any], runs: int, true: NDArray[np.bool_]) -> FloatArray:
        c = count.astype(np.float64)
        own = np.where(true, ratio * c * (runs - c) / (runs * (runs - 1)), 0.0)
        values: FloatArray = own - _spread(count, runs, true)
        return values

    return table


def _root_ratio(above: float, below: float, scale: str, half: float, level: float) -> Interval:
    """√(above / below), from the half-width of the moment that vanishes at this ratio.

    That moment is as large as ``scale`` says, so that half over it is the ratio's relative error.
    """
    if math.isnan(half):
        return Interval(math.nan, 0.0, math.inf, level)
    root = math.sqrt(above / below)
    factor = math.exp(half / (below if scale == "below" else above) / 2)
    return Interval(root, root / factor, root * factor, level)


def _checks(names: Sequence[str], tests: Sequence[Test]) -> tuple[CalibrationCheck, ...]:
    adjusted = holm([test.pvalue for test in tests])
    return tuple(
        CalibrationCheck(name, test.estimate, test.statistic, test.pvalue, float(p))
        for name, test, p in zip(names, tests, adjusted, strict=True)
    )


def reliability(votes: Votes, bins: int, level: float) -> dict[str, FloatArray]:
    """How often a class is true among cells that a like share of runs gave it.

    A cell is an example and a class. Its share is taken over all runs but one, and its confidence
    is what the run left out said, averaged over the choice of that run: so confidence and frequency
    have the same mean if the votes are calibrated, however few the runs.
    """
    runs = votes.runs
    every = np.bincount(votes.counts.ravel(), minlength=runs + 1).astype(np.float64)
    right = np.bincount(votes.right, minlength=runs + 1).astype(np.float64)
    said = np.arange(runs + 1) / runs
    place = np.minimum(np.arange(runs) * bins // max(1, runs - 1), bins - 1)
    yes, no = slice(1, None), slice(0, -1)  # the run left out said the class, or did not
    total: FloatArray = np.bincount(
        place, (every * said)[yes] + (every * (1 - said))[no], bins
    ).astype(np.float64)
    sure = np.bincount(place, (every * said)[yes], bins)
    true = np.bincount(place, (right * said)[yes] + (right * (1 - said))[no], bins)
    with np.errstate(invalid="ignore"):
        confidence, frequency = sure / total, true / total
    low, high = _wilson(frequency, total, level)
    edges = np.arange(bins + 1) / bins
    return {
        "from": edges[:-1],
        "to": edges[1:],
        "cells": total,
        "confidence": confidence,
        "frequency": frequency,
        "low": low,
        "high": high,
    }


def _wilson(share: FloatArray, count: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    z = float(ndtri((1 + level) / 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = (share + z**2 / (2 * count)) / (1 + z**2 / count)
        root = np.sqrt(share * (1 - share) / count + z**2 / (4 * count**2))
        half = z * root / (1 + z**2 / count)
    return np.maximum(0.0, centre - half), np.minimum(1.0, centre + half)
