"""Leaderboards: every pair of models, intervals of ranks, groups of models that do not differ significantly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, either, list_names, warn_all
from curvewise.evals.evals import Evals
from curvewise.evals.load import as_evals
from curvewise.evals.pairs import pair_tests
from curvewise.evals.questions import question_scores
from curvewise.evals.score import score_models
from curvewise.stats.tests import holm
from curvewise.text import format_count, format_interval
from curvewise.types.results import FloatArray, Result, check_level, data_frame, plain

if TYPE_CHECKING:
    import pandas as pd


SCORED_FIELDS = ("metric", "average", "level", "unit", "higher_is_better", "warnings")
"""Fields of a ranking that are those of its scores."""


def rank_models(
    e: Evals | Any, metric: str | None = None, *, average: str | Mapping[str, float] = "questions", level: float = 0.95
) -> ModelRanking:
    """Rank models on the same questions, and tell which differences are real.

    All pairs are compared as in :func:`compare_evals`, and the p-values adjusted by Holm's method. A model's rank lies
    between one more than the number of models that are significantly better, and the number of models less those that
    are significantly worse: all intervals of ranks hold together.

    Parameters
    ----------
    e : Evals, path, DataFrame or other source of :func:`load_evals`
        Scores of two or more models.
    metric, average
        As in :func:`score_evals`.
    level : float
        Coverage of the intervals of scores (each) and of ranks (together).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> chance = np.array([0.9, 0.88, 0.6])[:, None]
    >>> e = Evals(rng.random((3, 400)) < chance, ("a", "b", "c"), np.arange(400))
    >>> r = rank_models(e)
    >>> list(zip(r.models, r.rank_low.tolist(), r.rank_high.tolist(), r.group))
    [('b', 1, 2, '1'), ('a', 1, 2, '1'), ('c', 3, 3, '2')]
    """
    check_level(level)
    e = as_evals(e)
    if len(e.models) < 2:
        use = either("score_evals", "`curvewise evals score`")
        raise InputError(f"there is one model, {e.models[0]!r}: a ranking needs two or more. Use {use} for one.")
    scores = question_scores(e, metric)
    scored = score_models(e, scores, average, level)
    order = np.argsort(-scored.scores if e.higher_is_better else scored.scores, kind="stable")
    first, second = np.triu_indices(len(order), 1)
    tests = pair_tests(e, metric, average, (order[first], order[second]), scores=scores)
    pvalues = tests.pvalues()
    adjusted = holm(pvalues)
    apart = np.zeros((len(order), len(order)), dtype=bool)
    # The better one of a pair comes first, so that a significant difference is one against the second.
    apart[first, second] = adjusted < 1 - level
    low, high = tests.intervals(level)
    names = tuple(e.models[m] for m in order)
    bars = _tie_bars(apart)
    warn_all(scored.warnings)
    values = scored.scores[order]
    # Scores that differ by rounding only share a rank.
    ahead = np.abs(np.diff(values, prepend=np.nan)) > 1e-12 * max(1.0, float(np.abs(values).max()))
    worst, best = e.range if e.higher_is_better else e.range[::-1]
    solved = {end: tuple(e.questions[(scores.values == end).all(axis=0)].tolist()) for end in e.range}
    return ModelRanking(
        models=names,
        scores=values,
        low=scored.low[order],
        high=scored.high[order],
        rank=np.maximum.accumulate(np.where(ahead, np.arange(1, len(order) + 1), 1)),
        rank_low=1 + apart.sum(axis=0),
        rank_high=len(order) - apart.sum(axis=1),
        group=_bar_names(bars, len(order)),
        groups=tuple(names[start : end + 1] for start, end in bars),
        questions=len(e.questions),
        significant=int(apart.sum()),
        question_ids=tuple(e.questions.tolist()),
        question_means=scores.values.mean(axis=0),
        discrimination=_discrimination(scores.values),
        solved_by_all=solved[best],
        solved_by_none=solved[worst],
        **{name: getattr(scored, name) for name in SCORED_FIELDS},
        _pairs={
            "a": np.array(names)[first],
            "b": np.array(names)[second],
            "difference": tests.difference,
            "low": low,
            "high": high,
            "pvalue": pvalues,
            "pvalue_holm": adjusted,
        },
    )


def _tie_bars(apart: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return runs of consecutive models of which no two differ, each as long as can be: first and last place."""
    # The last of the better models that each differs from: a run with it must begin behind.
    behind = [int(np.flatnonzero(column)[-1]) + 1 if column.any() else 0 for column in apart.T]
    starts = np.maximum.accumulate(behind)
    bars: list[tuple[int, int]] = []
    for end, start in enumerate(starts.tolist()):
        if bars and bars[-1][0] == start:
            bars[-1] = (start, end)
        else:
            bars.append((start, end))
    return bars


def _bar_names(bars: Sequence[tuple[int, int]], count: int) -> tuple[str, ...]:
    """Number the bars; a model in several has the first and the last of them."""
    names = []
    for place in range(count):
        own = [k for k, (start, end) in enumerate(bars, 1) if start <= place <= end]
        names.append(str(own[0]) if len(own) == 1 else f"{own[0]}–{own[-1]}")
    return tuple(names)


def _discrimination(values: FloatArray) -> FloatArray:
    """Correlation over models of a question's score with the mean of all other questions; NaN where it is constant."""
    models, questions = values.shape
    if models < 3 or questions < 2:
        return np.full(questions, np.nan)
    rest = (values.sum(axis=1, keepdims=True) - values) / (questions - 1)
    one, two = values - values.mean(axis=0), rest - rest.mean(axis=0)
    constant = np.ptp(values, axis=0) == 0
    with np.errstate(invalid="ignore", divide="ignore"):
        found = (one * two).sum(axis=0) / np.sqrt((one**2).sum(axis=0) * (two**2).sum(axis=0))
    return np.where(constant, np.nan, found)


@dataclass(frozen=True, eq=False)
class ModelRanking(Result):
    """Models in the order of their scores, with what is known of their ranks.

    Attributes
    ----------
    models : tuple of str
        The best score first.
    scores, low, high : ndarray
        Scores with their intervals, each of its own.
    rank, rank_low, rank_high : ndarray of int
        Rank by score, and its interval; the intervals of all models hold together.
    group : tuple of str
        Models that share a number are not significantly different: "1", "2", or "1–2" for one that belongs to both.
    groups : tuple of tuple of str
        The models of each group: consecutive ones of which no two differ significantly, after Holm's adjustment.
    questions : int
        Number of questions.
    significant : int
        Pairs whose difference is significant after the adjustment.
    question_ids : tuple of str
        Ids of the questions.
    question_means, discrimination : ndarray, shape (questions,)
        Mean score over models, and the correlation over models with the mean of all other questions: near 0 or below,
        a question does not tell good models from bad ones.
    solved_by_all, solved_by_none : tuple of str
        Questions on which every model has the best, or the worst, score possible.
    metric, average : str
        Score of a question, and how questions are averaged.
    """

    models: tuple[str, ...]
    scores: FloatArray
    low: FloatArray
    high: FloatArray
    rank: NDArray[np.int64]
    rank_low: NDArray[np.int64]
    rank_high: NDArray[np.int64]
    group: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...]
    questions: int
    significant: int
    question_ids: tuple[str, ...]
    question_means: FloatArray
    discrimination: FloatArray
    solved_by_all: tuple[str, ...]
    solved_by_none: tuple[str, ...]
    metric: str
    average: str
    level: float
    unit: str
    higher_is_better: bool
    warnings: tuple[str, ...]
    _pairs: Mapping[str, NDArray[Any]]

    @property
    def contenders(self) -> tuple[str, ...]:
        """Models that may be the best: none is significantly better."""
        return tuple(m for m, low in zip(self.models, self.rank_low, strict=True) if low == 1)

    def _headline(self) -> str:
        tied = f", {len(self.contenders)} contenders" if len(self.contenders) > 1 else ""
        return f"{len(self.models)} models on {self.questions:,} questions, best={self.models[0]!r}{tied}"

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per model: score, rank with its interval, and group."""
        ranks = {name: getattr(self, name) for name in ("low", "high", "rank", "rank_low", "rank_high")}
        return {"model": list(self.models), "score": self.scores, **ranks, "group": list(self.group)}

    def pair_columns(self) -> dict[str, NDArray[Any]]:
        """One row per pair, the model with the better score first.

        ``low`` and ``high`` are the interval of this pair alone, as :func:`compare_evals` gives it; which pairs differ
        is decided by ``pvalue_holm``.
        """
        return dict(self._pairs)

    def pairs(self) -> pd.DataFrame:
        """Return the table of pairs: a, b, difference, low, high, pvalue, pvalue_holm."""
        return data_frame(self._pairs)

    def question_columns(self) -> dict[str, Any]:
        """One row per question: its id, mean score over models, and discrimination."""
        table = {"question": list(self.question_ids), "score": self.question_means}
        return table | {"discrimination": self.discrimination}

    def to_dict(self) -> dict[str, Any]:
        """Return all of the result as plain Python values, with the table of pairs."""
        return super().to_dict() | {"pairs": plain(self._pairs)}

    def best_rows(self) -> tuple[str, Sequence[int]] | None:
        """Write the scores of all contenders bold."""
        return "score", np.flatnonzero(self.rank_low == 1).tolist()

    def sentences(self) -> str:
        """The leaderboard in a few sentences."""
        count, best = len(self.models), self.models[0]
        total = count * (count - 1) // 2
        score = format_interval((self.scores[0], self.low[0], self.high[0]), self.unit)
        name = "mean score" if self.metric == "mean" else self.metric
        design = format_count(self.questions, "question")
        text = [f"{best} has the best {name} of {count:,} models on {design}: {score}."]
        if total == 1:
            text.append(f"The difference is {'' if self.significant else 'not '}significant at {1 - self.level:.2g}.")
        else:
            text.append(
                f"{self.significant:,} of {total:,} differences are significant at {1 - self.level:.2g} after Holm's"
                " adjustment."
            )
        others = self.contenders[1:]
        if others and total > 1:
            shown, verb = list_names(others, 5, quoted=False), "is" if len(others) == 1 else "are"
            text.append(f"{shown} {verb} not significantly worse than any model, and may be the best, too.")
        idle = len(self.solved_by_all), len(self.solved_by_none)
        if sum(idle):
            text.append(
                f"{format_count(idle[0], 'question')} solved by all models and {idle[1]:,} by none do not help to rank"
                " them."
            )
        return " ".join(text)
