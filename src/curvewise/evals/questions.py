"""A score for each model and question out of its samples: the mean, pass@k or pass^k, and how far it varies."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from curvewise.errors import InputError
from curvewise.evals.evals import Evals
from curvewise.text import arg
from curvewise.types.units import FloatArray

_METRIC = re.compile(r"pass([@^])(\d+)")


class Metric(NamedTuple):
    """The way in which samples of a question make one score: their mean, pass@k or pass^k."""

    kind: str
    k: int = 1

    def __str__(self) -> str:
        return "mean" if self.kind == "mean" else f"{self.kind}{self.k}"


def parse_metric(metric: str | None) -> Metric:
    """Read "mean" (the default), "pass@5" or "pass^4".

    >>> parse_metric("pass^4"), str(parse_metric(None))
    (Metric(kind='pass^', k=4), 'mean')
    """
    if metric in (None, "mean"):
        return Metric("mean")
    found = _METRIC.fullmatch(str(metric).replace(" ", ""))
    if not found or int(found[2]) < 1:
        raise InputError(
            f"{arg('metric', metric)} is not known: use 'mean', 'pass@k' (one of k samples is right) or 'pass^k' (all "
            "k are right), with a number for k, such as 'pass@5'."
        )
    return Metric(f"pass{found[1]}", int(found[2]))


@dataclass(frozen=True, eq=False, repr=False)
class QuestionScores:
    """One score for each model and question.

    Attributes
    ----------
    values : ndarray, shape (models, questions)
        Unbiased estimates from the samples.
    noise : ndarray, shape (models, questions)
        Variance of the estimate over new samples of the same question; NaN with a single sample.
    samples : ndarray of int, shape (models, questions)
        Number of samples.
    metric : Metric
        How samples were put together.
    """

    values: FloatArray
    noise: FloatArray
    samples: NDArray[np.int64]
    metric: Metric


def question_scores(e: Evals, metric: str | None = None) -> QuestionScores:
    """Score each question by its samples.

    Parameters
    ----------
    e : Evals
        Scores of all samples.
    metric : str, optional
        "mean" (the default), "pass@k": the chance that at least one of k samples is right, or
        "pass^k": that all k are. The last two need 0/1 scores and at least k samples of each question.

    Examples
    --------
    >>> e = Evals(np.array([[[1, 0, 0, 0], [1, 1, 0, 1]]]), ("a",), np.array(["q1", "q2"]))
    >>> question_scores(e, "pass@2").values
    array([[0.5, 1. ]])
    >>> question_scores(e, "pass^2").values
    array([[0. , 0.5]])
    """
    how, n = parse_metric(metric), e.samples
    if how.kind == "mean":
        mean = np.nanmean(e.scores, axis=2)
        with np.errstate(invalid="ignore", divide="ignore"):
            squares = np.nansum((e.scores - mean[:, :, None]) ** 2, axis=2)
            noise = np.where(n > 1, squares / (n - 1) / n, np.nan)
        return QuestionScores(mean, noise, n, how)
    if not e.binary:
        raise InputError(f"{arg('metric', metric)} counts right answers, and the scores are not all 0 or 1.")
    if n.min() < how.k:
        m, q = np.argwhere(n < how.k)[0]
        raise InputError(
            f"{arg('metric', metric)} needs {how.k} samples of each question; {e.models[m]!r} has {n[m, q]} of "
            f"{e.questions[q]!r}. The largest k that these logs allow is {n.min()}."
        )
    right = np.nansum(e.scores, axis=2).astype(np.int64)
    # pass@k is one minus the chance that k samples are all wrong; pass^k the chance that they are all right.
    counted = n - right if how.kind == "pass@" else right
    every = _all_of(counted, n, how.k)
    return QuestionScores(1 - every if how.kind == "pass@" else every, _noise(counted, n, how.k), n, how)


def _all_of(c: NDArray[np.int64], n: NDArray[np.int64], k: int) -> FloatArray:
    """Return C(c, k) / C(n, k), the unbiased estimate of p^k from c of n (Chen et al. 2021)."""
    chance: FloatArray = np.ones(np.broadcast(c, n).shape)
    for i in range(k):
        chance *= np.maximum(c - i, 0) / (n - i)
    return chance


def _noise(c: NDArray[np.int64], n: NDArray[np.int64], k: int) -> FloatArray:
    """Variance over new samples of the estimate of p^k.

    Unbiased with 2k samples: the square of the estimate less an unbiased estimate of p^2k. With fewer than 2k that
    cannot be had, and the variance is the exact one at p = (c + ½)/(n + 1), which is not 0 at c = 0 or n.
    """
    noise = np.full(np.broadcast(c, n).shape, np.nan)
    enough = n >= 2 * k
    if enough.any():
        unbiased = _all_of(c, n, k) ** 2 - _all_of(c, np.maximum(n, 2 * k), 2 * k)
        noise[enough] = unbiased[enough]
    # A table over the few pairs (c, n) that occur, rather than a sum for each question.
    few = np.argwhere(~enough & (n > 1))
    pairs = {(int(c[tuple(i)]), int(n[tuple(i)])) for i in few}
    exact = {pair: _exact_noise(*pair, k) for pair in pairs}
    for i in map(tuple, few):
        noise[i] = exact[int(c[i]), int(n[i])]
    return noise


def _exact_noise(c: int, n: int, k: int) -> float:
    counts = np.arange(n + 1)
    weights = binom.pmf(counts, n, (c + 0.5) / (n + 1))
    values = _all_of(counts, np.full(n + 1, n), k)
    return float(weights @ values**2 - (weights @ values) ** 2)
