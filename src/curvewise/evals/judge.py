"""Scores by a judge, corrected by a small set of human labels: prediction-powered inference."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from curvewise.errors import InputError, brief, list_names, warn_all
from curvewise.evals.evals import Evals, place_of
from curvewise.evals.load import as_evals
from curvewise.evals.questions import question_scores
from curvewise.evals.score import in_points
from curvewise.stats.clusters import sample_design
from curvewise.stats.intervals import widened_variance
from curvewise.text import format_count, format_interval, format_value
from curvewise.types.results import FloatArray, Interval, Result, check_level

FEW_LABELS = 20
"""With fewer labels the correction itself is hardly known."""


def correct_judge(
    judge: Evals | Any, human: Evals | Any, *, weight: float | None = None, level: float = 0.95
) -> JudgeCorrection:
    """Correct the scores of a judge, such as a language model, by human labels of some of the questions.

    The judge has scored all questions, humans a random part of them. The score is λ times the judge's mean over the
    questions without labels, plus the mean over those with labels of the human score less λ times the judge's
    (Angelopoulos et al. 2023, PPI++). With a given weight it is unbiased however wrong the judge is; an estimated one
    adds a bias that falls like one over the number of labels. The better the judge agrees with the labels, the more
    precise it is than the labels alone.

    Parameters
    ----------
    judge : Evals, path, DataFrame or other source of :func:`load_evals`
        Scores by the judge, of all questions. Its groups are clusters.
    human : Evals, path, DataFrame or other source
        Human scores of the same models on some of the questions, on the same scale. Which questions were labelled must
        not depend on the answers: draw them at random.
    weight : float, optional
        λ, from 0 (labels only) to 1; by default the one with the smallest variance, estimated.
    level : float
        Coverage of the intervals.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> right = rng.random(500) < 0.7
    >>> seen = np.where(rng.random(500) < 0.1, ~right, right)
    >>> judge = Evals(seen[None, :], ("a",), np.arange(500))
    >>> human = Evals(right[None, :100], ("a",), np.arange(100))
    >>> c = correct_judge(judge, human)
    >>> print(c.interval("a"), round(float(c.weight[0]), 2))
    0.67 [0.61, 0.74] 0.7
    """
    check_level(level)
    judge, human = as_evals(judge, "judge"), as_evals(human, "human")
    if weight is not None and not 0 <= weight <= 1:
        raise InputError("must lie between 0 and 1.", argument="weight", value=weight)
    places = _labelled(judge, human)
    predicted = question_scores(judge).values
    labels = question_scores(human.select(judge.models)).values
    rows = [_correct(judge, human, f, y, places, weight, level) for f, y in zip(predicted, labels, strict=True)]
    corrected, errors, low, high, weights = (np.array(column) for column in zip(*rows, strict=True))
    alone = sample_design(len(places), None if judge.groups is None else judge.groups[places])
    notes = list(judge.warnings)
    if len(places) < FEW_LABELS:
        notes.append(f"{format_count(len(places), 'label')} of each model: too few to know the correction well.")
    warn_all(notes)
    return JudgeCorrection(
        models=judge.models,
        scores=corrected,
        standard_errors=errors,
        low=low,
        high=high,
        judge_scores=predicted.mean(axis=1),
        judge_bias=alone.mean(predicted[:, places] - labels),
        human_scores=alone.mean(labels),
        human_standard_errors=np.sqrt(alone.variance(labels)),
        weight=weights,
        questions=len(judge.questions),
        labels=len(places),
        level=level,
        higher_is_better=judge.higher_is_better,
        unit="fraction" if human.binary else "",
        warnings=tuple(notes),
    )


def _labelled(judge: Evals, human: Evals) -> NDArray[np.int64]:
    """Return the places among the judge's questions of those with human labels."""
    missing = [m for m in judge.models if m not in human.models]
    if missing:
        raise InputError(
            f"has no labels of {list_names(missing, 3)}: leave these models out of the judge's scores, or label them.",
            argument="human",
        )
    if judge.range != human.range or judge.higher_is_better != human.higher_is_better:
        raise InputError(
            f"is on another scale than judge: {brief(human.range)} and {brief(judge.range)}.",
            argument="human",
            remedy="Bring both to one range and direction.",
        )
    place = {question: i for i, question in enumerate(judge.questions.tolist())}
    unknown = [q for q in human.questions.tolist() if q not in place]
    if unknown:
        raise InputError(
            f"labels {format_count(len(unknown), 'question')} that the judge did not score, the first {unknown[0]!r}.",
            argument="human",
        )
    if len(human.questions) < 2:
        raise InputError("has one labelled question: at least two are needed.", argument="human")
    return np.array([place[q] for q in human.questions.tolist()])


def _correct(
    judge: Evals,
    human: Evals,
    f: FloatArray,
    y: FloatArray,
    places: NDArray[np.int64],
    weight: float | None,
    level: float,
) -> tuple[float, float, float, float, float]:
    """Return the corrected score of one model, its standard error, low, high, and λ."""
    n, rest = len(places), np.ones(len(f), dtype=bool)
    rest[places] = False
    others = int(rest.sum())
    if others == 0:
        lam = 0.0  # all are labelled: the judge adds nothing
    elif weight is not None:
        lam = weight
    else:
        spread = float(np.var(f, ddof=1))
        both = float(np.mean((y - y.mean()) * (f[places] - f[places].mean())))
        lam = min(1.0, max(0.0, both / ((1 + n / others) * spread))) if spread > 0 else 0.0
    values = lam * f
    values[places] = gaps = y - lam * f[places]
    # Two strata whose means are added: the engine for groups then counts those that hold questions of both.
    chosen = slice(None) if others else places
    times = 2.0 if others else 1.0
    groups = None if judge.groups is None else judge.groups[chosen]
    design = sample_design(len(f[chosen]), groups, rest if others else None)
    score, variance = (times**k * float(fn(values[chosen])) for k, fn in ((1, design.mean), (2, design.variance)))
    trusted, degrees = variance, float(design.degrees(values[chosen]))
    if weight is None and 0 < lam < 1:
        # λ was fitted to these labels: residuals as if each had been left out of the fit (HC3), one degree less.
        away = (f[places] - f[places].mean()) ** 2
        wider = values.copy()
        wider[places] = gaps.mean() + (gaps - gaps.mean()) / (1 - np.minimum(away / away.sum(), 0.9))
        trusted, degrees = times**2 * float(design.variance(wider[chosen])), max(1.0, degrees - 1)
    least, most = judge.range
    if human.two_valued:
        gaps = (gaps - (1 - lam) * least) / (most - least)  # on a scale from 0 to 1
        shown = float(np.var(gaps, ddof=1)) / n
        apart = float(np.abs(gaps - np.round(gaps.mean())).sum())
        trusted += (most - least) ** 2 * (float(widened_variance(shown, apart, n)) - shown)
    half = float(stdtrit(degrees, (1 + level) / 2)) * math.sqrt(trusted)
    return score, math.sqrt(variance), max(least, score - half), min(most, score + half), lam


@dataclass(frozen=True, eq=False)
class JudgeCorrection(Result):
    """Scores of models by a judge, corrected by human labels.

    Attributes
    ----------
    models : tuple of str
        Their names.
    scores, standard_errors, low, high : ndarray
        Corrected scores, for new questions of the same kind.
    judge_scores : ndarray
        Mean score by the judge over all questions, not corrected.
    judge_bias : ndarray
        Score by the judge minus score by humans, on the labelled questions.
    human_scores, human_standard_errors : ndarray
        From the labelled questions alone.
    weight : ndarray
        λ: how far the judge was relied on.
    questions, labels : int
        Questions that the judge scored, and those that humans did.
    higher_is_better : bool
        False for losses.
    """

    models: tuple[str, ...]
    scores: FloatArray
    standard_errors: FloatArray
    low: FloatArray
    high: FloatArray
    judge_scores: FloatArray
    judge_bias: FloatArray
    human_scores: FloatArray
    human_standard_errors: FloatArray
    weight: FloatArray
    questions: int
    labels: int
    level: float
    higher_is_better: bool
    unit: str
    warnings: tuple[str, ...]

    def interval(self, model: str) -> Interval:
        """Return the corrected score of one model with its interval."""
        m = place_of(model, self.models)
        return Interval(float(self.scores[m]), float(self.low[m]), float(self.high[m]), self.level)

    def _headline(self) -> str:
        first = f"{self.models[0]!r}: {self.interval(self.models[0])}"
        more = f" and {len(self.models) - 1} more" if len(self.models) > 1 else ""
        return f"{first}{more}, {self.labels:,} labels, {self.questions:,} questions"

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per model: corrected score with its interval, and those by the judge and by humans alone."""
        return {
            "model": list(self.models),
            "score": self.scores,
            "low": self.low,
            "high": self.high,
            "standard_error": self.standard_errors,
            "judge": self.judge_scores,
            "judge_bias": self.judge_bias,
            "human": self.human_scores,
            "human_standard_error": self.human_standard_errors,
            "weight": self.weight,
        }

    def sentences(self) -> str:
        """The corrected scores in a few sentences."""
        shown = []
        for m, name in list(enumerate(self.models))[:3]:
            score = format_interval(self.interval(name), self.unit)
            shown.append(f"{name} scores {score} (judge alone: {format_value(float(self.judge_scores[m]), self.unit)})")
        more = f" and {len(self.models) - 3} more" if len(self.models) > 3 else ""
        text = [f"Corrected by {format_count(self.labels, 'human label')}, {', '.join(shown)}{more}."]
        bias = float(self.judge_bias.mean())
        if bias:
            word = "overrates" if (bias > 0) == self.higher_is_better else "underrates"
            amount = in_points(format_value(abs(bias), self.unit))
            text.append(f"On the labelled questions the judge {word} the answers by {amount}.")
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = float(np.nanmedian((self.human_standard_errors / self.standard_errors) ** 2))
        if math.isfinite(gain) and gain > 1.05:
            text.append(f"The judge is worth {gain:.1f} times as many labels.")
        return " ".join(text)
