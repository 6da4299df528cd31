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
    """Interval of a mean correlation over tasks, the largest of which has n checkpoints."""
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
    half, middle = spread.half(level), math.atanh(mean)
    least = _least(name, n, level) if len(values) == 1 else 0.0
    if name == "pearson":
        half = max(half / (1 - mean**2), least)
        return Interval(mean, math.tanh(middle - half), math.tanh(middle + half), level)
    low, high = (
        min(mean - half, math.tanh(middle - least)),
        max(mean + half, math.tanh(middle + least)),
    )
    return Interval(mean, max(-1.0, low), min(1.0, high), level)


def _least(name: str, n: int, level: float) -> float:
    """What half a width is for normal pairs, as an inverse hyperbolic tangent.

    A jackknife of few checkpoints, of which some are equal, may come out far too small by chance.
    Variances are Fisher's for Pearson's correlation, and that of Fieller, Hartley and Pearson 1957
    for Kendall's τ.
    """
    variance = 1 / (n - 3) if name == "pearson" else 0.437 / max(n - 4, 1)
    return float(ndtri(0.5 + level / 2)) * math.sqrt(variance)


def selection_intervals(
    estimates: dict[str, float],
    scores: FloatArray,
    accuracy: FloatArray,
    k: tuple[int, ...],
    kendall: Interval,
    rng: np.random.Generator,
) -> dict[str, Interval]:
    """Intervals of Recall@k and Rel@k: see :func:`ranking_agreement`."""
    level, several = kendall.level, len(scores) > 1
    if not len(scores):
        return {name: Interval(math.nan, math.nan, math.nan, level) for name in estimates}
    imagined = _imagined(scores, accuracy, k, tuple(kendall), rng)
    drawn = resampled(scores, accuracy, k, rng) if several else {}
    found = {}
    for name, value in estimates.items():
        recalled = several and name.startswith("recall")
        ends = [value] if recalled else [value, *imagined[name]]
        if several:
            ends += _quantiles(drawn[name], level)
        low, high = math.nan, math.nan
        if not math.isnan(value):
            low, high = float(np.nanmin(ends)), float(np.nanmax(ends))
        if recalled and value in (0.0, 1.0):
            low, high = _never_or_always((low, high), value, len(scores), level)
        found[name] = Interval(value, low, high, level=level)
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
    taus: tuple[float, ...],
    rng: np.random.Generator,
) -> dict[str, list[float]]:
    """Means over tasks if accuracies were ranked by normal scores with each of these τ."""
    names = [f"{name}@{count}" for count in k for name in ("recall", "rel")]
    kept: dict[str, list[list[float]]] = {name: [] for name in names}
    draws = max(DRAWS // len(scores), 100)
    for s, a in zip(scores, accuracy, strict=True):
        values = np.sort(a[~np.isnan(a) & ~np.isnan(s)])
        if not len(values) or any(map(math.isnan, taus)):
            continue
        quality, chance = rng.standard_normal((2, draws, len(values)))
        drawn = values[np.argsort(np.argsort(quality, axis=1), axis=1)]
        rows = []
        for tau in taus:
            r = math.sin(math.pi * tau / 2)
            rows.append(
                drawn_selections(r * quality + math.sqrt(1 - r * r) * chance, drawn, k, rng)
            )
        for name in names:
            kept[name].append([float(np.mean(row[name])) for row in rows])
    return {
        name: [known_mean(np.array([row[i] for row in rows])) for i in range(len(taus))]
        for name, rows in kept.items()
    }


def resampled(
    scores: FloatArray, accuracy: FloatArray, k: tuple[int, ...], rng: np.random.Generator
) -> dict[str, FloatArray]:
    """Means of Recall@k and Rel@k when tasks and checkpoints are both drawn with replacement."""
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
    found = {}
    for name, parts in kept.items():
        known = np.array(parts)
        count = np.sum(~np.isnan(known), axis=0)
        total = np.nansum(known, axis=0)
        found[name] = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return found


def _quantiles(values: FloatArray, level: float) -> list[float]:
    known = values[~np.isnan(values)]
    if not len(known):
        return [math.nan, math.nan]
    ends: list[float] = np.quantile(known, [(1 - level) / 2, (1 + level) / 2]).tolist()
    return ends


def known_mean(values: FloatArray) -> float:
    """Mean of what is known; NaN if nothing is."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan
