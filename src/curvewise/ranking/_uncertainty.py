"""How far metrics of a ranking would move with other checkpoints and other tasks."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit

from curvewise.ranking._selection import drawn_selections
from curvewise.types import FloatArray, Interval

FEWEST = 4  # with fewer checkpoints nothing can be said of a correlation
DRAWS = 500


class Spread(NamedTuple):
    """Standard error of a mean over tasks, and its degrees of freedom."""

    error: float
    degrees: float

    def half(self, level: float) -> float:
        """Half the width of an interval."""
        return float(stdtrit(self.degrees, 0.5 + level / 2)) * self.error


def two_way(values: FloatArray, without: FloatArray) -> Spread:
    """Spread of a mean over tasks when tasks and checkpoints are both drawn at random.

    The variance over tasks and the jackknife's over checkpoints, each left out of every task at
    once, are added; what both count is counted twice, which is on the safe side.

    Parameters
    ----------
    values : ndarray, shape (tasks,)
    without : ndarray, shape (tasks, checkpoints)
    """
    tasks, size = without.shape
    mean = without.mean(axis=0)
    over_checkpoints = (size - 1) / size * float(np.sum((mean - mean.mean()) ** 2))
    over_tasks = float(np.var(values, ddof=1)) / tasks if tasks > 1 else 0.0
    total = over_tasks + over_checkpoints
    if not total:
        return Spread(0.0, 1.0)
    parts = over_checkpoints**2 / (size - 1)
    parts += over_tasks**2 / (tasks - 1) if tasks > 1 else 0.0
    return Spread(math.sqrt(total), total**2 / parts)


def correlation_interval(
    name: str, values: FloatArray, without: FloatArray, n: int, level: float
) -> Interval:
    """Interval of a mean correlation over tasks with n checkpoints each."""
    if not len(values):
        return Interval(math.nan, math.nan, math.nan, level)
    mean, spread = float(values.mean()), two_way(values, without)
    if n < FEWEST:
        return Interval(mean, -1.0, 1.0, level)
    if 1 - abs(mean) < 1e-9:
        # Disjoint pairs are independent: so many would not all agree if τ were further away.
        edge = 2 * (1 - level) ** (1 / (n // 2)) - 1
        low, high = (edge, 1.0) if mean > 0 else (-1.0, -edge)
        return Interval(mean, low, high, level)
    if name == "pearson":
        # Fisher's, where a jackknife of few checkpoints may come out too small by chance.
        least = float(ndtri(0.5 + level / 2)) / math.sqrt(n - 3) if len(values) == 1 else 0.0
        half = max(spread.half(level) / (1 - mean**2), least)
        middle = math.atanh(mean)
        return Interval(mean, math.tanh(middle - half), math.tanh(middle + half), level)
    half = spread.half(level)
    return Interval(mean, max(-1.0, mean - half), min(1.0, mean + half), level)


def selection_intervals(
    estimates: dict[str, float],
    scores: FloatArray,
    accuracy: FloatArray,
    k: tuple[int, ...],
    kendall: Interval,
    rng: np.random.Generator,
) -> dict[str, Interval]:
    """Intervals of Recall@k and Rel@k: see :func:`ranking_agreement`."""
    level = kendall.level
    if len(scores) == 1:
        low, high = (_imagined(scores[0], accuracy[0], k, tau, rng) for tau in kendall)
    else:
        low, high = _resampled(scores, accuracy, k, level, rng)
    found = {}
    for name, value in estimates.items():
        ends = (math.nan, math.nan)
        if not math.isnan(value):
            ends = (min(value, low[name]), max(value, high[name]))
        if len(scores) > 1 and name.startswith("recall") and value in (0.0, 1.0):
            ends = _never_or_always(ends, value, len(scores), level)
        found[name] = Interval(value, *ends, level=level)
    return found


def _never_or_always(
    ends: tuple[float, float], value: float, tasks: int, level: float
) -> tuple[float, float]:
    """Draws from tasks that are all alike hide that others may differ: so many allow this."""
    far = (1 - level) ** (1 / tasks)
    return (min(ends[0], far), ends[1]) if value else (ends[0], max(ends[1], 1 - far))


def _imagined(
    scores: FloatArray,
    accuracy: FloatArray,
    k: tuple[int, ...],
    tau: float,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Means for one task if its accuracies were ranked by normal scores with this Kendall's τ."""
    values = np.sort(accuracy[~np.isnan(accuracy) & ~np.isnan(scores)])
    if not len(values) or math.isnan(tau):
        names = [f"{name}@{count}" for count in k for name in ("recall", "rel")]
        return dict.fromkeys(names, math.nan)
    r = math.sin(math.pi * tau / 2)
    quality, chance = rng.standard_normal((2, DRAWS, len(values)))
    drawn = values[np.argsort(np.argsort(quality, axis=1), axis=1)]
    found = drawn_selections(r * quality + math.sqrt(1 - r * r) * chance, drawn, k, rng)
    return {name: float(np.mean(v)) for name, v in found.items()}


def _resampled(
    scores: FloatArray,
    accuracy: FloatArray,
    k: tuple[int, ...],
    level: float,
    rng: np.random.Generator,
) -> tuple[dict[str, float], dict[str, float]]:
    """Quantiles when tasks and checkpoints are both drawn again with replacement."""
    tasks, size = scores.shape
    chosen = rng.integers(0, tasks, (DRAWS, tasks))
    who = rng.integers(0, size, (DRAWS, size))
    kept: dict[str, list[FloatArray]] = {}
    for place in range(tasks):
        rows = chosen[:, place, None]
        for name, values in drawn_selections(
            scores[rows, who], accuracy[rows, who], k, rng
        ).items():
            kept.setdefault(name, []).append(values)
    ends = ((1 - level) / 2, (1 + level) / 2)
    found = {}
    for name, parts in kept.items():
        known = np.array(parts)
        count = np.sum(~np.isnan(known), axis=0)
        means = np.nansum(known, axis=0)[count > 0] / count[count > 0]
        found[name] = np.quantile(means, ends) if len(means) else np.full(2, np.nan)
    low = {name: float(v[0]) for name, v in found.items()}
    return low, {name: float(v[1]) for name, v in found.items()}
