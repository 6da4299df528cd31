"""Agreement of scores with accuracies after fine-tuning, with intervals; of NLEEP also over its two settings."""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtrit

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.progress import progress_bar
from curvewise.ranking.measure import (
    CheckpointFeatures,
    Targets,
    as_matrix,
    as_targets,
    check_order,
    from_one_hot,
    label_array,
    named_axes,
    warn,
)
from curvewise.ranking.mixture import project
from curvewise.ranking.prediction import NleepSettings, nleep_reduced
from curvewise.ranking.scoring import split_rows
from curvewise.stats.correlation import kendall, pearson, weighted_kendall
from curvewise.stats.intervals import satterthwaite
from curvewise.text import format_count, format_number
from curvewise.types.results import FloatArray, Interval, Result, as_floats, check_level, check_whole, interval_columns

CORRELATIONS = ("pearson", "kendall", "weighted_kendall")
_WHOLE = {"pearson": pearson, "kendall": kendall, "weighted_kendall": weighted_kendall}
_TITLES = {"kendall": "Kendall", "pearson": "Pearson", "weighted_kendall": "weighted Kendall"}
# Checkpoints below which nothing can be said of a correlation.
FEWEST = 4
# Draws of the bootstrap over tasks and checkpoints.
DRAWS = 500
# Pairs of checkpoints that are held at a time.
PART = 2**20
Places: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class RankingAgreement(Result):
    """Agreement of scores with accuracies, on average over tasks.

    Attributes
    ----------
    kendall, pearson, weighted_kendall : float
        Kendall's τ-b, Pearson's correlation, and Kendall's τ with most weight on the top.
    recall, rel : dict of int to float
        By k: how often the best checkpoint is among the k of highest score, and the best accuracy
        among them over the best of all.
    intervals : dict of str to Interval
        Of each: "kendall", "pearson", "weighted_kendall", "recall_at_1", "rel_at_1", …
    by_task : dict of str to ndarray
        The same numbers for each task.
    n : tuple of int
        Checkpoints with score and accuracy, by task.
    level : float
        Coverage of the intervals.
    over : {"checkpoints", "checkpoints and tasks"}
        Units that the intervals treat as drawn at random.
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
        """Return a row for each number: its estimate, low and high."""
        return interval_columns(self.intervals)

    def sentences(self) -> str:
        """Return one sentence with all numbers."""
        tasks = "" if len(self.n) == 1 else f" on average over {len(self.n)} tasks"
        numbers = ", ".join(f"{metric_title(k)} {v}" for k, v in self.intervals.items())
        sizes = "–".join(dict.fromkeys((str(min(self.n)), str(max(self.n)))))
        return (
            f"Scores against accuracies of {sizes} checkpoints{tasks}: {numbers} "
            f"({format_number(100 * self.level)}% intervals over {self.over})."
        )


def metric_title(name: str) -> str:
    """Return the name of a metric as papers write it.

    >>> metric_title("recall_at_1"), metric_title("kendall")
    ('Recall@1', 'Kendall')
    """
    return _TITLES.get(name, name.replace("_at_", "@").capitalize())


def ranking_agreement(
    scores: ArrayLike,
    accuracy: ArrayLike,
    k: int | Sequence[int] = (1, 3),
    *,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> RankingAgreement:
    """Compare the scores of a measure with the accuracies after fine-tuning.

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
        If scores or accuracies are missing, all scores of a task are equal, or a task is left out
        of the averages because all its accuracies are equal.

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
    normal; of Rel@k of one task as few as 80% with many equal or very uneven accuracies. They do
    not allow for rare failures: if one score in thirty is far too high, those of one task hold as
    few as 29%, and of Rel@1 of several 71 to 87%.

    Examples
    --------
    >>> accuracy = [0.91, 0.85, 0.80, 0.78, 0.70, 0.66]
    >>> found = ranking_agreement([-0.3, -0.9, -0.5, -1.0, -1.3, -1.2], accuracy)
    >>> round(found.kendall, 3), found.recall[1], found.intervals["kendall"].level
    (0.733, 1.0, 0.95)
    """
    counts, (s, a) = as_counts(k), _matrices(scores, accuracy)
    found = agree(s, a, counts, check_level(level), np.random.default_rng(rng))
    warn(*found.warnings)
    return found


def agree(
    scores: FloatArray, accuracy: FloatArray, k: tuple[int, ...], level: float, rng: np.random.Generator
) -> RankingAgreement:
    """Compute :func:`ranking_agreement` of matrices that were checked, without raising warnings."""
    names = [f"{name}_at_{count}" for count in k for name in ("recall", "rel")]
    rows = [
        {name: _metric(s, a, name) for name in (*names, *CORRELATIONS)} for s, a in zip(scores, accuracy, strict=True)
    ]
    by_task = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    names_of_tasks = [f"task {t + 1}" for t in range(len(scores))]
    alarms = (
        *accuracy_alarms(accuracy, names_of_tasks, np.isnan(accuracy)),
        *score_alarms(scores, accuracy, names_of_tasks),
    )
    tuned = ~np.isnan(accuracy).all(axis=0)  # those that failed on every task are no checkpoints to draw from
    scores, accuracy = scores[:, tuned], accuracy[:, tuned]
    whole = ~np.isnan(scores) & ~np.isnan(accuracy)
    known = [a[both] for a, both in zip(accuracy, whole, strict=True)]
    varied = np.array([a.size > 1 and a.min() < a.max() for a in known])
    # A task whose accuracies are all equal says nothing of a measure, and is in no average.
    without = {
        name: np.array([left_out(scores[t], accuracy[t], name) for t in np.flatnonzero(varied)])
        for name in CORRELATIONS
    }
    most = int(whole[varied].sum(axis=1).max(initial=0))
    intervals = {
        name: correlation_interval(name, by_task[name][varied], without[name], most, level) for name in CORRELATIONS
    }
    picked = {name: known_mean(v) for name, v in by_task.items() if name not in CORRELATIONS}
    some = ~np.isnan(by_task[f"recall_at_{k[0]}"])
    chosen = selection_intervals(picked, scores[some], accuracy[some], k, intervals["kendall"], rng)
    return RankingAgreement(
        kendall=intervals["kendall"].estimate,
        pearson=intervals["pearson"].estimate,
        weighted_kendall=intervals["weighted_kendall"].estimate,
        recall={count: picked[f"recall_at_{count}"] for count in k},
        rel={count: picked[f"rel_at_{count}"] for count in k},
        intervals={**chosen, **intervals},
        by_task=by_task,
        n=tuple(whole.sum(axis=1).tolist()),
        level=level,
        over="checkpoints" if len(scores) == 1 else "checkpoints and tasks",
        warnings=alarms,
    )


def metric_of_tasks(scores: FloatArray, accuracy: FloatArray, name: str) -> tuple[FloatArray, FloatArray]:
    """Return a metric of each task, and of each task without each checkpoint (of correlations only)."""
    both = list(zip(scores, accuracy, strict=True))
    without = [left_out(s, a, name) if name in CORRELATIONS else np.zeros(0) for s, a in both]
    return np.array([_metric(s, a, name) for s, a in both]), np.array(without)


def _metric(scores: FloatArray, accuracy: FloatArray, name: str) -> float:
    """Return a metric of one task; NaN where it is undefined."""
    if name in CORRELATIONS:
        return correlation(scores, accuracy, name)
    there = ~np.isnan(accuracy)
    s, a = scores[there], accuracy[there]
    if len(a) < 2 or a.min() == a.max() or np.isnan(s).all():
        return math.nan  # every choice would score the same
    kind, _, count = name.partition("_at_")
    return (recall_at if kind == "recall" else rel_at)(s, a, int(count))


def accuracy_alarms(accuracy: FloatArray, tasks: Sequence[str], failed: NDArray[np.bool_]) -> list[str]:
    """Return warnings about accuracies."""
    found = defaultdict[str, list[str]](list)
    for values, task, without in zip(accuracy, tasks, failed, strict=True):
        known = values[~np.isnan(values)]
        if lost := int(without.sum()):
            found[f"{_lacking(lost, len(values))} no accuracy: left out."].append(task)
        if len(known) < 2:
            found[f"{format_count(len(known), 'checkpoint')} with an accuracy: too few to rank."].append(task)
        elif known.min() == known.max():
            found["all accuracies are equal: left out."].append(task)
    return _by_task(found, tasks)


def _lacking(lost: int, count: int) -> str:
    return f"{lost:,} of {count:,} checkpoints {'has' if lost == 1 else 'have'}"


def score_alarms(scores: FloatArray, accuracy: FloatArray, tasks: Sequence[str]) -> list[str]:
    """Return warnings about scores of checkpoints that have accuracies."""
    found = defaultdict[str, list[str]](list)
    for s, a, task in zip(scores, accuracy, tasks, strict=True):
        there = ~np.isnan(a)
        given = s[there & ~np.isnan(s)]
        if there.any() and not len(given):
            found["no checkpoint has a score: it is in no average."].append(task)
        elif lost := int(there.sum()) - len(given):
            text = f"{_lacking(lost, len(a))} no score: never chosen, and left out of correlations."
            found[text].append(task)
        if len(given) > 1 and given.min() == given.max():
            found["all scores are equal: the ranking is random."].append(task)
    return _by_task(found, tasks)


def _by_task(found: Mapping[str, Sequence[str]], tasks: Sequence[str]) -> list[str]:
    """Return each text once, after the tasks it is about where it is not about all."""
    return [("" if len(some) == len(tasks) else ", ".join(some) + ": ") + text for text, some in found.items()]


def as_counts(k: int | Sequence[int]) -> tuple[int, ...]:
    """Return the numbers of checkpoints to try as a tuple; raise unless they are whole numbers."""
    given = tuple(k) if np.iterable(k) and not isinstance(k, str) else (k,)
    if not given:
        raise InputError("is empty: give at least one number, such as (1, 3).", argument="k")
    return tuple(dict.fromkeys(check_whole(count, "k", 1) for count in given))


def _matrices(scores: ArrayLike, accuracy: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return scores and accuracies as matrices of tasks by checkpoints."""
    # Checkpoints are the columns of a frame and the index of a series, tasks the index of a frame.
    for (own, here), (other, there) in zip(named_axes(scores), named_axes(accuracy), strict=False):
        align = f"scores[accuracy.{other}]" if own == "columns" else f"scores.reindex(accuracy.{other})"
        check_order(here, there, f"the {other} of accuracy", f"align them, such as with {align}", "scores")
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
            f"has shape {given['scores'].shape} and accuracy {given['accuracy'].shape}: "
            "give one of each for every task and checkpoint.",
            argument="scores",
        )
    return s, a


class MeanError(NamedTuple):
    """Standard error of a mean over tasks, and its degrees of freedom."""

    error: float
    degrees: float

    def half(self, level: float) -> float:
        """Return half the width of the interval."""
        return float(stdtrit(self.degrees, 0.5 + level / 2)) * self.error


def two_way(values: FloatArray, without: FloatArray) -> MeanError:
    """Return the error of a mean over tasks when tasks and checkpoints are both drawn at random.

    The variance over tasks and the jackknife's over checkpoints, each left out of every task at
    once, are added. The part that both contain is counted twice, which is conservative.

    Parameters
    ----------
    values : ndarray, shape (tasks,)
    without : ndarray, shape (tasks, checkpoints)
    """
    tasks, size = without.shape
    mean = without.mean(axis=0)
    # Variance of the jackknife (Efron and Stein 1981).
    over_checkpoints = (size - 1) / size * float(np.sum((mean - mean.mean()) ** 2))
    over_tasks = float(np.var(values, ddof=1)) / tasks if tasks > 1 else 0.0
    total = over_tasks + over_checkpoints
    if not total:
        return MeanError(0.0, 1.0)
    parts, degrees = np.array([over_checkpoints, over_tasks]), np.array([size - 1, max(tasks - 1, 1)])
    return MeanError(math.sqrt(total), satterthwaite(total, parts, degrees))


def correlation_interval(name: str, values: FloatArray, without: FloatArray, n: int, level: float) -> Interval:
    """Return the interval of a mean correlation over tasks, the largest of which has n checkpoints."""
    if not len(values):
        return Interval(math.nan, math.nan, math.nan, level)
    mean, spread = float(values.mean()), two_way(values, without)
    if n < FEWEST:
        return Interval(mean, -1.0, 1.0, level)
    if 1 - abs(mean) < 1e-9:
        # All pairs agree, and the jackknife is 0. Disjoint pairs are independent: n/2 of them would not all agree, at
        # this level, if τ were further away.
        edge = 2 * (1 - level) ** (1 / (n // 2)) - 1
        low, high = (edge, 1.0) if mean > 0 else (-1.0, -edge)
        return Interval(mean, low, high, level)
    half, middle = spread.half(level), math.atanh(mean)
    least = 0.0
    if len(values) == 1:
        # Half the width for normal pairs, on the scale of artanh: a jackknife of few checkpoints, some of them equal,
        # may come out far too small by chance. Variances are Fisher's for Pearson's correlation, and that of Fieller,
        # Hartley and Pearson 1957 for Kendall's τ.
        variance = 1 / (n - 3) if name == "pearson" else 0.437 / max(n - 4, 1)
        least = float(ndtri(0.5 + level / 2)) * math.sqrt(variance)
    if name == "pearson":
        half = max(half / (1 - mean**2), least)
        return Interval(mean, math.tanh(middle - half), math.tanh(middle + half), level)
    low, high = (min(mean - half, math.tanh(middle - least)), max(mean + half, math.tanh(middle + least)))
    return Interval(mean, max(-1.0, low), min(1.0, high), level)


def selection_intervals(
    estimates: dict[str, float],
    scores: FloatArray,
    accuracy: FloatArray,
    k: tuple[int, ...],
    kendall: Interval,
    rng: np.random.Generator,
) -> dict[str, Interval]:
    """Return intervals of Recall@k and Rel@k; see the notes of :func:`ranking_agreement`."""
    level, several = kendall.level, len(scores) > 1
    if not len(scores):
        return {name: Interval(math.nan, math.nan, math.nan, level) for name in estimates}
    normal = _with_normal_scores(scores, accuracy, k, (kendall.low, kendall.high), rng)
    drawn = resampled(scores, accuracy, k, rng) if several else {}
    found = {}
    for name, value in estimates.items():
        # Recall@k of several tasks is a share of tasks, for which a bootstrap will do; Rel@k and one task need more.
        recalled = several and name.startswith("recall")
        ends = [value] if recalled else [value, *normal[name]]
        if several:
            known = drawn[name][~np.isnan(drawn[name])]
            ends += np.quantile(known, [(1 - level) / 2, (1 + level) / 2]).tolist() if len(known) else []
        low, high = math.nan, math.nan
        if not math.isnan(value):
            low, high = float(np.nanmin(ends)), float(np.nanmax(ends))
        if recalled and value in (0.0, 1.0):
            # Draws from tasks that are all alike hide that others may differ: a chance this far off shows the same
            # in every one of them with probability 1 − level.
            far = (1 - level) ** (1 / len(scores))
            low, high = (min(low, far), high) if value else (low, max(high, 1 - far))
        found[name] = Interval(value, low, high, level=level)
    return found


def _with_normal_scores(
    scores: FloatArray, accuracy: FloatArray, k: tuple[int, ...], taus: tuple[float, ...], rng: np.random.Generator
) -> dict[str, list[float]]:
    """Return means over tasks of Recall@k and Rel@k if scores and accuracies were normal with each of these τ."""
    names = [f"{name}_at_{count}" for count in k for name in ("recall", "rel")]
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
            r = math.sin(math.pi * tau / 2)  # Pearson's r of normal pairs with this τ (Greiner)
            rows.append(drawn_selections(r * quality + math.sqrt(1 - r * r) * chance, drawn, k, rng))
        for name in names:
            kept[name].append([float(np.mean(row[name])) for row in rows])
    return {
        name: [known_mean(np.array([row[i] for row in rows])) for i in range(len(taus))] for name, rows in kept.items()
    }


def resampled(
    scores: FloatArray, accuracy: FloatArray, k: tuple[int, ...], rng: np.random.Generator
) -> dict[str, FloatArray]:
    """Resample the means of Recall@k and Rel@k, with tasks and checkpoints both drawn with replacement."""
    tasks, size = scores.shape
    chosen = rng.integers(0, tasks, (DRAWS, tasks))
    who = rng.integers(0, size, (DRAWS, size))
    kept: dict[str, list[FloatArray]] = {}
    for place in range(tasks):
        rows = chosen[:, place, None]
        for name, values in drawn_selections(scores[rows, who], accuracy[rows, who], k, rng).items():
            kept.setdefault(name, []).append(values)
    return {name: np.ma.masked_invalid(parts).mean(axis=0).filled(np.nan) for name, parts in kept.items()}


def known_mean(values: FloatArray) -> float:
    """Return the mean of the known values; NaN if there are none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan


def correlation(scores: FloatArray, accuracy: FloatArray, name: str) -> float:
    """Return a correlation of one task, over the checkpoints that have both.

    0 where all scores are equal, which is what a random order of them gives on average; NaN where
    all accuracies are equal or there are fewer than two.
    """
    whole = ~np.isnan(scores) & ~np.isnan(accuracy)
    x, y = scores[whole], accuracy[whole]
    if len(y) < 2 or y.max() == y.min():
        return math.nan
    return 0.0 if x.max() == x.min() else float(_WHOLE[name](x[None], y)[0])


def left_out(scores: FloatArray, accuracy: FloatArray, name: str) -> FloatArray:
    """Return a correlation without each checkpoint in turn.

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
    """Compute Pearson's correlation without each; 0 where all that are left are equal."""
    found = np.array([pearson(np.delete(x, i)[None], np.delete(y, i))[0] for i in range(len(x))])
    return np.where(np.isnan(found), 0.0, found)


def _kendall(x: FloatArray, y: FloatArray) -> FloatArray:
    """Compute Kendall's τ-b without each, from sums over pairs less those of each checkpoint."""
    own = np.concatenate([[m.sum(axis=1) for m in _signs(x, y, rows)] for rows in _rows(x)], axis=1)
    return _ratio(*(sums.sum() / 2 - sums for sums in own))


def _weighted(x: FloatArray, y: FloatArray) -> FloatArray:
    """Compute the weighted τ without each: a pair weighs by the places of its two, by scores and by accuracies."""
    own = np.concatenate([[m.sum(axis=1) for m in _signs(x, y, rows)] for rows in _rows(x)], axis=1)
    found = np.zeros(len(x))
    for keys in ((y, x), (x, y)):
        place = np.empty(len(x))
        place[np.lexsort(keys)[::-1]] = np.arange(len(x))
        for rows in _rows(x):
            # Without a checkpoint those below it are a place further up.
            weight = 1 / (1 + place[None] - (place[None] > place[rows, None]))
            weight[np.arange(len(weight)), np.arange(len(x))[rows]] = 0.0
            sums = [
                np.sum(weight * (total[None] - m), axis=1) for total, m in zip(own, _signs(x, y, rows), strict=True)
            ]
            found[rows] += _ratio(*sums) / 2
    return found


_WITHOUT = {"pearson": _pearson, "kendall": _kendall, "weighted_kendall": _weighted}


def _signs(x: FloatArray, y: FloatArray, rows: slice) -> tuple[NDArray[np.float64], ...]:
    """Return for pairs of some rows with all: 1 or −1 if x and y agree or not, and 1 where x and y differ."""
    up, over = np.sign(x[rows, None] - x[None]), np.sign(y[rows, None] - y[None])
    return up * over, up * up, over * over


def _rows(x: FloatArray) -> list[slice]:
    """Return slices of rows, so that a table of pairs stays small."""
    step = max(1, PART // len(x))
    return [slice(start, start + step) for start in range(0, len(x), step)]


def _ratio(both: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    """Return both / √(first · second), and 0 where all values of one are equal."""
    varied = first * second > 1e-12
    found: FloatArray = both / np.sqrt(np.where(varied, first * second, 1.0))
    return np.where(varied, found, 0.0)


def recall_at(scores: FloatArray, accuracy: FloatArray, k: int) -> float:
    """Return the probability that a checkpoint of the highest accuracy is among the k of highest score.

    Equal scores are put in a random order. A checkpoint without a score (NaN) is never chosen.

    >>> recall_at(np.array([2.0, 1.0, 1.0]), np.array([0.7, 0.9, 0.8]), 2)
    0.5
    """
    certain, tied, slots = _chosen(scores, k)
    best = accuracy == accuracy.max()
    if best[certain].any():
        return 1.0
    lucky = int(best[tied].sum())
    return 1.0 - math.comb(len(tied) - lucky, slots) / math.comb(len(tied), slots)


def rel_at(scores: FloatArray, accuracy: FloatArray, k: int) -> float:
    """Return the best accuracy among the k of highest score over the best of all, in the same way.

    NaN where the best accuracy is not above 0, so that there is no ratio.

    >>> round(rel_at(np.array([2.0, 1.0, 1.0]), np.array([0.8, 0.9, 0.7]), 2), 4)
    0.9444
    """
    top = float(accuracy.max())
    certain, tied, slots = _chosen(scores, k)
    if top <= 0 or not len(certain) + slots:
        return math.nan
    least = float(accuracy[certain].max()) if len(certain) else -math.inf
    if not slots:
        return least / top
    values = np.maximum(np.sort(accuracy[tied])[::-1], least)
    # Number of sets of so many tied checkpoints in which each value is the highest.
    ways = [math.comb(len(tied) - 1 - place, slots - 1) for place in range(len(tied))]
    total = math.comb(len(tied), slots)
    return math.fsum(v * (w / total) for v, w in zip(values.tolist(), ways, strict=True)) / top


def _chosen(scores: FloatArray, k: int) -> tuple[Places, Places, int]:
    """Return those always among the k highest, those tied for the places left, and the number of these places."""
    known = np.flatnonzero(~np.isnan(scores))
    if len(known) <= k:
        return known, known[:0], 0
    edge = np.sort(scores[known])[::-1][k - 1]
    certain = known[scores[known] > edge]
    return certain, known[scores[known] == edge], k - len(certain)


def drawn_selections(
    scores: FloatArray, accuracy: FloatArray, k: tuple[int, ...], rng: np.random.Generator
) -> dict[str, FloatArray]:
    """Compute Recall@k and Rel@k of many draws at once, with ties in one random order each.

    Parameters
    ----------
    scores, accuracy : ndarray, shape (draws, checkpoints)
        NaN where unknown.
    """
    # One random order of ties in each draw, instead of the mean over all orders. A checkpoint without an accuracy is
    # left out, and takes no place from others.
    known = np.where(np.isnan(scores), np.nan, accuracy)
    jitter = rng.random(scores.shape)
    order = np.lexsort((jitter, np.where(np.isnan(known), -np.inf, scores)), axis=-1)[:, ::-1]
    ranked = np.take_along_axis(known, order, axis=-1)
    top = np.fmax.reduce(accuracy, axis=-1)
    found = {}
    for count in k:
        best = np.fmax.reduce(ranked[:, :count], axis=-1)
        found[f"recall_at_{count}"] = np.where(np.isnan(top), np.nan, best == top)
        found[f"rel_at_{count}"] = best / np.where(top > 0, top, np.nan)
    return found


# Features by checkpoint, labels of the examples, accuracy by checkpoint.
GridTask = tuple[Mapping[str, Any], ArrayLike, Mapping[str, float]]


@dataclass(frozen=True, eq=False)
class NleepGrid(Result):
    """Kendall's τ-b of NLEEP with accuracies, for each PCA energy and number of components.

    Attributes
    ----------
    energies : tuple of float
        Shares of the variance that principal components keep.
    components : tuple of int
        Gaussians for each class.
    tasks : tuple of str
    kendall : ndarray, shape (tasks, energies, components)
    scores : dict of str to ndarray, shape (checkpoints, energies, components)
        NLEEP by task.
    level : float
        Coverage of intervals.
    """

    energies: tuple[float, ...]
    components: tuple[int, ...]
    tasks: tuple[str, ...]
    kendall: FloatArray
    scores: Mapping[str, FloatArray]
    level: float = 0.95
    warnings: tuple[str, ...] = ()

    @property
    def mean(self) -> FloatArray:
        """Energies × components: the mean over tasks."""
        found: FloatArray = self.kendall.mean(axis=0)
        return found

    def interval_at(self, energy: float, components: int) -> Interval:
        """Return the mean over tasks at one setting, with Student's interval; unknown for one task."""
        if energy not in self.energies or components not in self.components:
            raise InputError(
                f"energy={energy!r}, components={components!r}: the grid has energies "
                f"{self.energies} and components {self.components}."
            )
        values = self.kendall[:, self.energies.index(energy), self.components.index(components)]
        count, centre = len(values), float(values.mean())
        if count < 2:
            return Interval(centre, float("nan"), float("nan"), self.level)
        half = MeanError(float(values.std(ddof=1)) / count**0.5, count - 1.0).half(self.level)
        return Interval(centre, max(-1.0, centre - half), min(1.0, centre + half), self.level)

    def columns(self) -> dict[str, list[Any]]:
        """Return a row for each energy, a column for each number of components per class."""
        return {
            "energy": list(self.energies),
            **{f"components_{c}": self.mean[:, i].tolist() for i, c in enumerate(self.components)},
        }

    def sentences(self) -> str:
        """Return the range of agreement over the grid in a sentence."""
        best = np.unravel_index(np.nanargmax(self.mean), self.mean.shape)
        worst = np.unravel_index(np.nanargmin(self.mean), self.mean.shape)
        tasks = format_count(len(self.tasks), "task")
        return f"Kendall of NLEEP with accuracies over {tasks}: from {self._at(worst)} to {self._at(best)}."

    def _at(self, place: Sequence[np.intp]) -> str:
        energy, count = self.energies[place[0]], self.components[place[1]]
        return f"{format_number(float(self.mean[tuple(place)]))} ({energy:.0%} energy, {count}× classes)"


def measure_nleep_grid(
    tasks: Mapping[str, GridTask],
    energies: Sequence[float] = (0.5, 0.6, 0.7, 0.8, 0.9),
    components: Sequence[int] = (1, 2, 3, 4, 5, 6, 7, 8),
    *,
    covariance: str = "diagonal",
    test: float | ArrayLike | None = 0.2,
    level: float = 0.95,
    rng: int = 0,
    progress: bool | None = None,
) -> NleepGrid:
    """Measure how NLEEP agrees with fine-tuning at each PCA energy and number of Gaussians.

    Figure 2 of Li et al. 2021: Kendall's τ over the checkpoints of a group, averaged over tasks.

    Parameters
    ----------
    tasks : dict of str to tuple
        By task: features by checkpoint (arrays or CheckpointFeatures), labels of the examples, and
        fine-tuned accuracy by checkpoint.
    energies : sequence of float
        Shares of the variance to keep.
    components : sequence of int
        Gaussians for each class.
    covariance : str
        Of a Gaussian, see :func:`nleep`.
    test : float, array_like of bool or None
        Which examples are scored: a share of each class, a mask, or those that were fitted.
    level : float
        Coverage of intervals over tasks.
    rng : int
        Decides the split and the seeds of k-means; the same at every setting.
    progress : bool, optional
        Show a bar; by default where stderr is a terminal.

    Returns
    -------
    NleepGrid

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> labels = np.repeat([0, 1], 60)
    >>> pool = {f"net {i}": random.normal(size=(120, 5)) + i * labels[:, None] for i in range(4)}
    >>> accuracy = {"net 0": 0.5, "net 1": 0.7, "net 2": 0.8, "net 3": 0.9}
    >>> grid = measure_nleep_grid({"toy": (pool, labels, accuracy)}, (0.5, 0.9), (1, 2))
    >>> grid.mean
    array([[1., 1.],
           [1., 1.]])
    """
    check_level(level)
    shares, counts = tuple(map(float, energies)), tuple(check_whole(c, "components", 1) for c in components)
    if not shares or not all(0 < share <= 1 for share in shares):
        raise InputError("give shares above 0 and up to 1.", argument="energies", value=list(energies))
    if not counts:
        raise InputError("give whole numbers of at least 1.", argument="components", value=[])
    if not tasks:
        raise InputError("is empty: give at least one.", argument="tasks")
    found: dict[str, FloatArray] = {}
    agreement, notes = [], []
    total = sum(len(task[0]) for task in tasks.values()) * len(shares) * len(counts)
    with progress_bar("NLEEP", total, progress) as advance, warnings.catch_warnings(record=True) as w:
        warnings.simplefilter("always", CurvewiseWarning)
        for name, (checkpoints, labels, accuracy) in tasks.items():
            if len(checkpoints) < 2:
                raise InputError(f"task {name!r} has {len(checkpoints)} checkpoint(s): it takes two.")
            for key in checkpoints:
                if key not in accuracy or not np.isfinite(accuracy[key]):
                    raise InputError(f"task {name!r} has no accuracy of {key!r}: give one, or leave it out.")
            known = np.array([accuracy[key] for key in checkpoints], dtype=np.float64)
            if known.min() == known.max():
                raise InputError(f"task {name!r} has one accuracy for all checkpoints: leave it out.", argument="tasks")
            (labels,) = from_one_hot(labels)
            targets = as_targets(labels, len(label_array(labels)), allowed=("classes", "multilabel"))
            rows = split_rows(targets, test, np.random.default_rng(rng))
            scores = []
            for given in checkpoints.values():
                scores.append(_scores(given, np.asarray(labels), targets, rows, shares, counts, covariance, rng))
                advance(len(shares) * len(counts), name)
            found[name] = np.array(scores)
            rows_of_scores = found[name].reshape(len(scores), -1).T  # a row for each setting
            # A setting at which all scores are equal says nothing: 0, the mean over random orders.
            agreement.append(np.nan_to_num(kendall(rows_of_scores, known)).reshape(found[name].shape[1:]))
    notes = list(dict.fromkeys(str(one.message) for one in w))
    warn(*notes)
    return NleepGrid(shares, counts, tuple(tasks), np.array(agreement), found, level, tuple(notes))


def _scores(
    given: Any,
    labels: NDArray[Any],
    targets: Targets,
    rows: tuple[NDArray[np.int64], NDArray[np.int64] | None],
    shares: Sequence[float],
    counts: Sequence[int],
    covariance: str,
    rng: int,
) -> FloatArray:
    """Return energies × components: NLEEP of a checkpoint, with one decomposition for all of them."""
    features = given.features if isinstance(given, CheckpointFeatures) else given
    x = as_matrix(features, "features")
    if len(x) != len(targets):
        raise InputError(f"have {len(x)} rows and labels {len(targets)}: give the same.", argument="features")
    train, test = rows
    reduced, projection = project(x[train], max(shares))
    test_scores = None if test is None else projection.apply(x[test])
    energy = np.cumsum(np.square(reduced, dtype=np.float64).sum(axis=0))
    energy *= projection.kept / energy[-1] if energy[-1] else 0.0
    tested = None if test is None else labels[test]
    found = np.empty((len(shares), len(counts)))
    for e, share in enumerate(shares):
        kept = min(int(np.searchsorted(energy, share * (1 - 1e-9))) + 1, reduced.shape[1])
        part = reduced[:, :kept], None if test_scores is None else test_scores[:, :kept]
        for c, count in enumerate(counts):
            settings = NleepSettings(components=count, covariance=covariance)
            found[e, c] = nleep_reduced(part[0], labels[train], part[1], tested, settings, rng)
    return found
