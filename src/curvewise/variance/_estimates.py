"""Intervals and tests that several analyses of runs × examples share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr

from curvewise.errors import InputError
from curvewise.types import FloatArray, Interval, Predictions
from curvewise.variance.anova import example_variance, normal_std, satterthwaite, t_interval
from curvewise.variance.tails import judge_tails


@dataclass(frozen=True)
class Test:
    """An estimate that should be 0, with its interval and p-value.

    Attributes
    ----------
    estimate : Interval
        The estimate.
    statistic : float
        The estimate over its standard error.
    pvalue : float
        Two-sided.
    """

    __test__ = False  # pytest: this is no test

    estimate: Interval
    statistic: float
    pvalue: float


def example_interval(
    values: FloatArray, groups: NDArray[np.int64] | None, level: float
) -> Interval:
    """A mean over sampled examples (or groups) by t."""
    parts = {"examples": example_variance(values, groups)}
    return mean_test(float(values.mean()), parts, 0.0, level).estimate


def mean_test(
    estimate: float, parts: Mapping[str, tuple[float, float]], twice: float, level: float
) -> Test:
    """Whether a mean is 0, from the parts of its variance with their degrees of freedom.

    ``twice`` is what every part holds, and must be counted once.
    """
    variances = np.array([part[0] for part in parts.values()])
    degrees = np.array([part[1] for part in parts.values()], dtype=np.float64)
    total = max(float(variances.max()), float(variances.sum()) - twice * (len(parts) - 1))
    interval = t_interval(estimate, total, variances, degrees, level)
    if total == 0:
        return Test(interval, 0.0 if estimate == 0 else math.inf, 1.0 if estimate == 0 else 0.0)
    statistic = estimate / math.sqrt(total)
    df = min(satterthwaite(total, variances, degrees), 1e9)
    return Test(interval, statistic, 2 * float(stdtr(df, -abs(statistic))))


def run_std(run_errors: FloatArray, level: float, unit: str = "fraction") -> Interval:
    """Standard deviation between runs by χ², with fewer degrees of freedom for heavy tails.

    A variance of R values with excess kurtosis κ is known as well as one of 2R/(κ + 2R/(R − 1))
    degrees of freedom (R − 1 for normal values); κ counts where tails are judged heavy.
    """
    runs = len(run_errors)
    if np.ptp(run_errors) == 0:
        return Interval(0.0, 0.0, 0.0, level)
    tails = judge_tails(run_errors)
    excess = tails.excess_kurtosis if tails.heavy else 0.0
    degrees = 2 * runs / (excess + 2 * runs / (runs - 1))
    return normal_std(float(np.var(run_errors, ddof=1)), degrees, level, unit)


def correlate(x: FloatArray, y: FloatArray, level: float) -> tuple[Interval, float]:
    """Pearson's correlation with Fisher's interval, and the p-value of none at all."""
    runs = len(x)
    a, b = x - x.mean(), y - y.mean()
    norm = math.sqrt(float(a @ a) * float(b @ b))
    if norm == 0 or np.ptp(x) == 0 or np.ptp(y) == 0:  # rounding may leave some of a constant
        return Interval(math.nan, -1.0, 1.0, level), math.nan
    r = min(1.0, max(-1.0, float(a @ b) / norm))
    if abs(r) >= 1 - 1e-15:
        return Interval(r, r, r, level), 0.0
    half = float(ndtri((1 + level) / 2)) / math.sqrt(runs - 3)
    low, high = math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)
    statistic = r * math.sqrt((runs - 2) / (1 - r * r))
    return Interval(r, low, high, level), 2 * float(stdtr(runs - 2, -abs(statistic)))


def same_runs(first: Predictions, second: Predictions, names: tuple[str, str]) -> NDArray[Any]:
    """Which run of ``second`` each run of ``first`` is: by name where both name them."""
    if first.runs != second.runs:
        raise InputError(
            f"{names[0]} has {first.runs:,} runs and {names[1]} {second.runs:,}: the same runs must"
            " be scored on both. Leave out the runs that one of them lacks."
        )
    if first.run_ids is None or second.run_ids is None:
        return np.arange(first.runs)
    place = {name: i for i, name in enumerate(second.run_ids.tolist())}
    order = [place.get(name, -1) for name in first.run_ids.tolist()]
    if min(order) < 0:
        missing = first.run_ids[order.index(-1)]
        raise InputError(
            f"run_ids of {names[1]} lack the run {missing!r} of {names[0]}: the same runs must be"
            " scored on both."
        )
    return np.array(order)


def interval_of(
    ends: Sequence[float] | FloatArray, level: float, kind: str = "confidence"
) -> Interval:
    """Estimate, low and high as an interval."""
    estimate, low, high = map(float, ends)
    return Interval(estimate, low, high, level, kind)


def chance(interval: Interval) -> Interval:
    """An interval that ends at 0 and 1."""
    low, high = np.clip([interval.low, interval.high], 0.0, 1.0).tolist()
    return Interval(interval.estimate, low, high, interval.level, interval.kind)
