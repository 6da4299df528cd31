"""How well a measure's scores agree with what fine-tuning gave."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtrit

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.stats.correlation import kendall, pearson, weighted_kendall
from curvewise.text import format_number
from curvewise.types.results import Interval, Result, check_level, interval_columns
from curvewise.types.units import FloatArray, as_floats


@dataclass(frozen=True, eq=False)
class RankingAgreement(Result):
    """How well scores rank checkpoints, on average over tasks.

    Attributes
    ----------
    kendall, pearson, weighted_kendall : float
        Kendall's τ-b, Pearson's correlation, and Kendall's τ with most weight on the top.
    recall, rel : dict of int to float
        By k: how often the best checkpoint is among the k of highest score, and the best accuracy
        among them over the best of all.
    intervals : dict of str to Interval
        Of each: "kendall", "pearson", "weighted_kendall", "recall@1", "rel@1", …
    by_task : dict of str to ndarray
        The same numbers for each task.
    n : tuple of int
        Checkpoints with score and accuracy, by task.
    level : float
        Coverage of the intervals.
    over : {"checkpoints", "checkpoints and tasks"}
        What the intervals take to be drawn at random.
    """

    kendall: float
    pearson: float
    weighted_kendall: float
    recall: Mapping[int, float]
    rel: Mapping[int, float]
    intervals: Mapping[str, Interval]
    by_task: Mapping[str, FloatArray]
    n: tuple[int, ...]
    level: float
    over: str
    warnings: tuple[str, ...] = ()

    def columns(self) -> dict[str, list[Any]]:
        """A row for each number: its estimate, low and high."""
        return interval_columns(self.intervals)

    def summary(self) -> str:
        """One sentence."""
        tasks = "" if len(self.n) == 1 else f" on average over {len(self.n)} tasks"
        said = ", ".join(f"{_TITLES.get(k, k.capitalize())} {v}" for k, v in self.intervals.items())
        sizes = "–".join(dict.fromkeys((str(min(self.n)), str(max(self.n)))))
        return (
            f"Scores against accuracies of {sizes} checkpoints{tasks}: {said} "
            f"({format_number(100 * self.level)}% intervals over {self.over})."
        )


_TITLES = {"kendall": "Kendall", "pearson": "Pearson", "weighted_kendall": "weighted Kendall"}


def ranking_agreement(
    scores: ArrayLike,
    accuracy: ArrayLike,
    k: int | Sequence[int] = (1, 3),
    *,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> RankingAgreement:
    """Hold the scores of a measure against what fine-tuning gave.

    Parameters
    ----------
    scores : array_like, shape (checkpoints,) or (tasks, checkpoints)
        Higher predicts better. NaN where a checkpoint has none. One row serves all tasks.
    accuracy : array_like
        After fine-tuning, in the same shape; NaN where it failed. References, such as training
        from scratch, do not belong here.
    k : int or sequence of int
        How many checkpoints can be tried.
    level : float
        Coverage of the intervals.
    rng : int or Generator
        Decides the draws behind the intervals of Recall@k and Rel@k.

    Returns
    -------
    RankingAgreement
        Each number as the mean over tasks, with its interval.

    Warns
    -----
    CurvewiseWarning
        If scores or accuracies are missing, all scores of a task are equal, or a task tells
        nothing, and is in no average, because all its accuracies are equal.

    Notes
    -----
    Equal scores are in no order: Recall@k and Rel@k are means over all orders of them, and scores
    that are all equal have correlations of 0, the mean over orders. Weighted Kendall is that of
    Vigna 2015 as scipy has it. A checkpoint without a score is never chosen but counts when it is
    the best; one without an accuracy is left out.

    Intervals are for as many other checkpoints like these, and with several tasks also for other
    tasks. Correlations have Student's t with the jackknife's variance over checkpoints, added to
    the variance over tasks; Pearson's on the scale of its inverse hyperbolic tangent; with one
    task they are no narrower than normal scores would have them. An interval over tasks alone
    would be far too narrow, as all tasks share the checkpoints. Recall@k and Rel@k of several
    tasks have the quantiles of a bootstrap over tasks and checkpoints. Rel@k, and Recall@k of one
    task, reach at least as far as what normal scores with a Kendall's τ at the ends of its
    interval would give for accuracies like these; a Recall@k of 0 or 1 in all of T tasks as far
    as a chance that shows this in T. In simulation (``benchmarks/ranking_judging.py``) 95%
    intervals hold 91 to 100% of correlations, and 89 to 100% of Recall@k and Rel@k if scores are
    normal; of Rel@k of one task as few as 80% with many equal or very uneven accuracies. None
    knows of a failure that it has not seen: if one score in thirty is far too high, those of one
    task hold as few as 29%, and of Rel@1 of several 71 to 87%.

    Examples
    --------
    >>> accuracy = [0.91, 0.85, 0.80, 0.78, 0.70, 0.66]
    >>> found = ranking_agreement([-0.3, -0.9, -0.5, -1.0, -1.3, -1.2], accuracy)
    >>> round(found.kendall, 3), found.recall[1], found.intervals["kendall"].level
    (0.733, 1.0, 0.95)
    """
    counts, (s, a) = as_counts(k), _matrices(scores, accuracy)
    found = agree(s, a, counts, check_level(level), np.random.default_rng(rng))
    for text in found.warnings:
        warnings.warn(text, CurvewiseWarning, stacklevel=2)
    return found


def agree(
    scores: FloatArray, accuracy: FloatArray, k: tuple[int, ...], level: float, rng: np.random.Generator
) -> RankingAgreement:
    """As :func:`ranking_agreement` for matrices that were checked; nothing is warned of."""
    rows = [_one_task(s, a, k) for s, a in zip(scores, accuracy, strict=True)]
    by_task = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    said = [f"task {t + 1}" for t in range(len(scores))]
    whole = ~np.isnan(scores) & ~np.isnan(accuracy)
    told = np.array([a.size > 1 and a.min() < a.max() for a in map(_known, scores, accuracy)])
    without = {
        name: np.array([left_out(scores[t], accuracy[t], name) for t in np.flatnonzero(told)]) for name in CORRELATIONS
    }
    most = int(whole[told].sum(axis=1).max(initial=0))
    intervals = {
        name: correlation_interval(name, by_task[name][told], without[name], most, level) for name in CORRELATIONS
    }
    picked = {name: known_mean(v) for name, v in by_task.items() if name not in CORRELATIONS}
    some = ~np.isnan(by_task[f"recall@{k[0]}"])
    chosen = selection_intervals(picked, scores[some], accuracy[some], k, intervals["kendall"], rng)
    return RankingAgreement(
        kendall=intervals["kendall"].estimate,
        pearson=intervals["pearson"].estimate,
        weighted_kendall=intervals["weighted_kendall"].estimate,
        recall={count: picked[f"recall@{count}"] for count in k},
        rel={count: picked[f"rel@{count}"] for count in k},
        intervals={**chosen, **intervals},
        by_task=by_task,
        n=tuple(whole.sum(axis=1).tolist()),
        level=level,
        over="checkpoints" if len(scores) == 1 else "checkpoints and tasks",
        warnings=(*accuracy_alarms(accuracy, said, np.isnan(accuracy)), *score_alarms(scores, accuracy, said)),
    )


class TaskMetric(NamedTuple):
    """A number for each task, and for each task without each checkpoint (for correlations)."""

    values: FloatArray
    without: FloatArray


def metric_of_tasks(scores: FloatArray, accuracy: FloatArray, name: str) -> TaskMetric:
    """One metric of each task, NaN where it tells nothing."""
    both = list(zip(scores, accuracy, strict=True))
    values = np.array([_metric(s, a, name) for s, a in both])
    if name not in CORRELATIONS:
        return TaskMetric(values, np.zeros((len(scores), 0)))
    return TaskMetric(values, np.array([left_out(s, a, name) for s, a in both]))


def _known(scores: FloatArray, accuracy: FloatArray) -> FloatArray:
    """Accuracies of the checkpoints that have a score."""
    return accuracy[~np.isnan(scores) & ~np.isnan(accuracy)]


def _one_task(scores: FloatArray, accuracy: FloatArray, k: tuple[int, ...]) -> dict[str, float]:
    names = [f"{name}@{count}" for count in k for name in ("recall", "rel")]
    return {name: _metric(scores, accuracy, name) for name in (*names, *CORRELATIONS)}


def _metric(scores: FloatArray, accuracy: FloatArray, name: str) -> float:
    if name in CORRELATIONS:
        return correlation(scores, accuracy, name)
    there = ~np.isnan(accuracy)
    s, a = scores[there], accuracy[there]
    if len(a) < 2 or a.min() == a.max() or np.isnan(s).all():
        return math.nan  # whichever is chosen, nothing is learnt of the scores
    kind, _, count = name.partition("@")
    return (recall_at if kind == "recall" else rel_at)(s, a, int(count))


def accuracy_alarms(accuracy: FloatArray, tasks: Sequence[str], failed: NDArray[np.bool_]) -> list[str]:
    """What is missing of what fine-tuning gave."""
    found: dict[str, list[str]] = {}
    for values, task, without in zip(accuracy, tasks, failed, strict=True):
        known = values[~np.isnan(values)]
        if lost := int(without.sum()):
            text = f"{lost} of {len(values)} checkpoints have no accuracy and are left out."
            found.setdefault(text, []).append(task)
        if len(known) < 2:
            text = f"{len(known)} checkpoint(s) with an accuracy tell nothing."
            found.setdefault(text, []).append(task)
        elif known.min() == known.max():
            text = "all accuracies are equal, which tells nothing and is left out."
            found.setdefault(text, []).append(task)
    return _said(found, tasks)


def score_alarms(scores: FloatArray, accuracy: FloatArray, tasks: Sequence[str]) -> list[str]:
    """What is missing of scores, where there are accuracies."""
    found: dict[str, list[str]] = {}
    for s, a, task in zip(scores, accuracy, tasks, strict=True):
        there = ~np.isnan(a)
        given = s[there & ~np.isnan(s)]
        if there.any() and not len(given):
            found.setdefault("no checkpoint has a score: it is in no average.", []).append(task)
        elif lost := int(there.sum()) - len(given):
            text = f"{lost} of {len(a)} checkpoints have no score: never chosen, and left out of "
            found.setdefault(text + "correlations.", []).append(task)
        if len(given) > 1 and given.min() == given.max():
            text = "all scores are equal, which is to rank at random."
            found.setdefault(text, []).append(task)
    return _said(found, tasks)


def _said(found: Mapping[str, Sequence[str]], tasks: Sequence[str]) -> list[str]:
    """Each text once, with the tasks it is about where it is not about all."""
    places = {text: "" if len(some) == len(tasks) else ", ".join(some) + ": " for text, some in found.items()}
    return [places[text] + text for text in found]


def as_counts(k: int | Sequence[int]) -> tuple[int, ...]:
    """How many checkpoints can be tried, as a tuple; raise unless they are whole numbers."""
    given = (k,) if isinstance(k, int | np.integer) else tuple(k)
    for count in given:
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise InputError(f"k={k!r}: give whole numbers from 1 on, such as (1, 3).")
    if not given:
        raise InputError("k is empty: give at least one number, such as (1, 3).")
    return tuple(dict.fromkeys(int(count) for count in given))


def _matrices(scores: ArrayLike, accuracy: ArrayLike) -> tuple[FloatArray, FloatArray]:
    given = {"scores": as_floats(scores, "scores"), "accuracy": as_floats(accuracy, "accuracy")}
    for name, values in given.items():
        if values.ndim not in (1, 2) or not values.size:
            raise InputError(
                f"{name} has shape {values.shape}: give one number for each checkpoint, or a "
                "matrix of tasks by checkpoints."
            )
        if np.isinf(values).any():
            raise InputError(f"{name} holds an infinite value: use NaN where there is none.")
    s, a = np.atleast_2d(given["scores"]), np.atleast_2d(given["accuracy"])
    if given["scores"].ndim == 1:
        s = np.broadcast_to(s, (len(a), s.shape[1]))
    if s.shape != a.shape:
        raise InputError(
            f"scores has shape {given['scores'].shape} and accuracy {given['accuracy'].shape}: "
            "give one of each for every task and checkpoint."
        )
    return s, a


# How far metrics of a ranking would move with other checkpoints and other tasks.

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


def correlation_interval(name: str, values: FloatArray, without: FloatArray, n: int, level: float) -> Interval:
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
    low, high = (min(mean - half, math.tanh(middle - least)), max(mean + half, math.tanh(middle + least)))
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
    imagined = _imagined(scores, accuracy, k, (kendall.low, kendall.high), rng)
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


def _never_or_always(ends: tuple[float, float], value: float, tasks: int, level: float) -> tuple[float, float]:
    """Draws from tasks that are all alike hide that others may differ: so many allow this."""
    far = (1 - level) ** (1 / tasks)
    return (min(ends[0], far), ends[1]) if value else (ends[0], max(ends[1], 1 - far))


def _imagined(
    scores: FloatArray, accuracy: FloatArray, k: tuple[int, ...], taus: tuple[float, ...], rng: np.random.Generator
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
            rows.append(drawn_selections(r * quality + math.sqrt(1 - r * r) * chance, drawn, k, rng))
        for name in names:
            kept[name].append([float(np.mean(row[name])) for row in rows])
    return {
        name: [known_mean(np.array([row[i] for row in rows])) for i in range(len(taus))] for name, rows in kept.items()
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
        for name, values in drawn_selections(scores[rows, who], accuracy[rows, who], k, rng).items():
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


# Correlations of one task, and what they are without each of the checkpoints in turn.

PART = 2**20  # pairs that are held at a time
CORRELATIONS = ("pearson", "kendall", "weighted_kendall")
_WHOLE = {"pearson": pearson, "kendall": kendall, "weighted_kendall": weighted_kendall}


def correlation(scores: FloatArray, accuracy: FloatArray, name: str) -> float:
    """A correlation of one task, over the checkpoints that have both.

    0 where all scores are equal, which is what a random order of them gives on average; NaN where
    all accuracies are equal or there are fewer than two.
    """
    whole = ~np.isnan(scores) & ~np.isnan(accuracy)
    x, y = scores[whole], accuracy[whole]
    if len(y) < 2 or y.max() == y.min():
        return math.nan
    return 0.0 if x.max() == x.min() else float(_WHOLE[name](x[None], y)[0])


def left_out(scores: FloatArray, accuracy: FloatArray, name: str) -> FloatArray:
    """A correlation without each checkpoint in turn.

    It is that of all where a checkpoint has no score or accuracy, and 0 where all that are left
    are equal.

    >>> left_out(np.array([1.0, 2.0, 4.0, 3.0]), np.array([0.1, 0.2, 0.3, 0.4]), "kendall").round(3)
    array([0.333, 0.333, 1.   , 1.   ])
    """
    whole = ~np.isnan(scores) & ~np.isnan(accuracy)
    found = np.full(len(scores), correlation(scores, accuracy, name))
    if whole.sum() > 2:
        found[whole] = _WITHOUT[name](scores[whole], accuracy[whole])
    return found


def _pearson(x: FloatArray, y: FloatArray) -> FloatArray:
    """Sums of squares and products less those of each checkpoint, around the mean of the others."""
    size = len(x)
    a, b = x - x.mean(), y - y.mean()
    more = size / (size - 1)  # what a checkpoint takes away, as it moves the mean too
    both, first, second = (np.sum(u * v) - more * u * v for u, v in ((a, b), (a, a), (b, b)))
    equal = _one_value(x) | _one_value(y)
    outlier = (first < 1e-4 * np.sum(a * a)) | (second < 1e-4 * np.sum(b * b))
    for place in np.flatnonzero(outlier & ~equal):  # where it is all there is, little is left
        rest = np.arange(size) != place
        u, v = (value[rest] - value[rest].mean() for value in (x, y))
        both[place], first[place], second[place] = np.sum(u * v), np.sum(u * u), np.sum(v * v)
    found: FloatArray = both / np.sqrt(np.where(equal, 1.0, first * second))
    return np.where(equal, 0.0, found)


def _one_value(values: FloatArray) -> NDArray[np.bool_]:
    """Whether all values are equal without each in turn."""
    different, place, count = np.unique(values, return_inverse=True, return_counts=True)
    if len(different) > 2:
        return np.zeros(len(values), dtype=np.bool_)
    alone: NDArray[np.bool_] = (count == 1)[place.reshape(-1)]
    return alone if len(different) == 2 else np.ones_like(alone)


def _kendall(x: FloatArray, y: FloatArray) -> FloatArray:
    """Sums over pairs less those of each checkpoint."""
    own = np.concatenate([[m.sum(axis=1) for m in _signs(x, y, rows)] for rows in _rows(x)], axis=1)
    return _ratio(*(sums.sum() / 2 - sums for sums in own))


def _weighted(x: FloatArray, y: FloatArray) -> FloatArray:
    """As above, a pair weighing as much as the places of its two, by scores and by accuracies.

    Without a checkpoint those below it are a place further up.
    """
    own = np.concatenate([[m.sum(axis=1) for m in _signs(x, y, rows)] for rows in _rows(x)], axis=1)
    found = np.zeros(len(x))
    for keys in ((y, x), (x, y)):
        place = np.empty(len(x))
        place[np.lexsort(keys)[::-1]] = np.arange(len(x))
        for rows in _rows(x):
            weight = 1 / (1 + place[None] - (place[None] > place[rows, None]))
            weight[np.arange(len(weight)), np.arange(len(x))[rows]] = 0.0
            sums = [
                np.sum(weight * (total[None] - m), axis=1) for total, m in zip(own, _signs(x, y, rows), strict=True)
            ]
            found[rows] += _ratio(*sums) / 2
    return found


_WITHOUT = {"pearson": _pearson, "kendall": _kendall, "weighted_kendall": _weighted}


def _signs(x: FloatArray, y: FloatArray, rows: slice) -> tuple[NDArray[np.float64], ...]:
    """For pairs of some with all whether x and y agree, and whether each tells them apart."""
    up, over = np.sign(x[rows, None] - x[None]), np.sign(y[rows, None] - y[None])
    return up * over, up * up, over * over


def _rows(x: FloatArray) -> list[slice]:
    """Rows to take at a time, so that a table of pairs stays small."""
    step = max(1, PART // len(x))
    return [slice(start, start + step) for start in range(0, len(x), step)]


def _ratio(both: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    told = first * second > 1e-12
    found: FloatArray = both / np.sqrt(np.where(told, first * second, 1.0))
    return np.where(told, found, 0.0)


# What trying the k checkpoints of highest score gives, averaged over the orders of ties.

Places: TypeAlias = NDArray[np.intp]


def recall_at(scores: FloatArray, accuracy: FloatArray, k: int) -> float:
    """Chance that a checkpoint of the highest accuracy is among the k of highest score.

    Equal scores are put in a random order. A checkpoint without a score (NaN) is never chosen.

    >>> recall_at(np.array([2.0, 1.0, 1.0]), np.array([0.7, 0.9, 0.8]), 2)
    0.5
    """
    sure, tied, slots = _chosen(scores, k)
    best = accuracy == accuracy.max()
    if best[sure].any():
        return 1.0
    lucky = int(best[tied].sum())
    return 1.0 - math.comb(len(tied) - lucky, slots) / math.comb(len(tied), slots)


def rel_at(scores: FloatArray, accuracy: FloatArray, k: int) -> float:
    """Best accuracy among the k of highest score over the best of all, in the same way.

    NaN where the best accuracy is not above 0, so that there is no ratio.

    >>> round(rel_at(np.array([2.0, 1.0, 1.0]), np.array([0.8, 0.9, 0.7]), 2), 4)
    0.9444
    """
    top = float(accuracy.max())
    sure, tied, slots = _chosen(scores, k)
    if top <= 0 or not len(sure) + slots:
        return math.nan
    least = float(accuracy[sure].max()) if len(sure) else -math.inf
    if not slots:
        return least / top
    values = np.maximum(np.sort(accuracy[tied])[::-1], least)
    # Of the sets of so many, those in which a value is the first of the sorted ones.
    ways = [math.comb(len(tied) - 1 - place, slots - 1) for place in range(len(tied))]
    total = math.comb(len(tied), slots)
    return math.fsum(v * (w / total) for v, w in zip(values.tolist(), ways, strict=True)) / top


def _chosen(scores: FloatArray, k: int) -> tuple[Places, Places, int]:
    """Who is surely among the k highest, who shares the places left, and how many these are."""
    known = np.flatnonzero(~np.isnan(scores))
    if len(known) <= k:
        return known, known[:0], 0
    edge = np.sort(scores[known])[::-1][k - 1]
    sure = known[scores[known] > edge]
    return sure, known[scores[known] == edge], k - len(sure)


def drawn_selections(
    scores: FloatArray, accuracy: FloatArray, k: tuple[int, ...], rng: np.random.Generator
) -> dict[str, FloatArray]:
    """Recall@k and Rel@k of many draws at once, ties in one random order each.

    Parameters
    ----------
    scores, accuracy : ndarray, shape (draws, checkpoints)
        NaN where unknown.
    """
    jitter = rng.random(scores.shape)
    order = np.lexsort((jitter, np.where(np.isnan(scores), -np.inf, scores)), axis=-1)[:, ::-1]
    known = np.where(np.isnan(scores), np.nan, accuracy)
    ranked = np.take_along_axis(known, order, axis=-1)
    top = np.fmax.reduce(accuracy, axis=-1)
    found = {}
    for count in k:
        best = np.fmax.reduce(ranked[:, :count], axis=-1)
        found[f"recall@{count}"] = np.where(np.isnan(top), np.nan, best == top)
        found[f"rel@{count}"] = best / np.where(top > 0, top, np.nan)
    return found
