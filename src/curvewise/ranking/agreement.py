"""How well a measure's scores agree with what fine-tuning gave."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.ranking._left_out import CORRELATIONS, correlation, left_out
from curvewise.ranking._selection import recall_at, rel_at
from curvewise.ranking._uncertainty import correlation_interval, known_mean, selection_intervals
from curvewise.tables import number
from curvewise.types import FloatArray, Interval, Result, as_floats, check_level, interval_columns


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
            f"({number(100 * self.level)}% intervals over {self.over})."
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
    scores: FloatArray,
    accuracy: FloatArray,
    k: tuple[int, ...],
    level: float,
    rng: np.random.Generator,
) -> RankingAgreement:
    """As :func:`ranking_agreement` for matrices that were checked; nothing is warned of."""
    rows = [_one_task(s, a, k) for s, a in zip(scores, accuracy, strict=True)]
    by_task = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    said = [f"task {t + 1}" for t in range(len(scores))]
    whole = ~np.isnan(scores) & ~np.isnan(accuracy)
    told = np.array([a.size > 1 and a.min() < a.max() for a in map(_known, scores, accuracy)])
    without = {
        name: np.array([left_out(scores[t], accuracy[t], name) for t in np.flatnonzero(told)])
        for name in CORRELATIONS
    }
    most = int(whole[told].sum(axis=1).max(initial=0))
    intervals = {
        name: correlation_interval(name, by_task[name][told], without[name], most, level)
        for name in CORRELATIONS
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
        warnings=(
            *accuracy_alarms(accuracy, said, np.isnan(accuracy)),
            *score_alarms(scores, accuracy, said),
        ),
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


def accuracy_alarms(
    accuracy: FloatArray, tasks: Sequence[str], failed: NDArray[np.bool_]
) -> list[str]:
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
    places = {
        text: "" if len(some) == len(tasks) else ", ".join(some) + ": "
        for text, some in found.items()
    }
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
