"""Comparison of two models on the same questions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, brief, warn_all
from curvewise.evals.evals import Evals
from curvewise.evals.load import as_evals
from curvewise.evals.pairs import PairTests, pair_tests
from curvewise.evals.questions import ROUNDING, question_design, question_scores, question_warnings
from curvewise.evals.score import error_cells, in_points, points
from curvewise.stats.clusters import Clusters, sample_design
from curvewise.stats.intervals import variance_degrees
from curvewise.text import Cell, format_count, format_interval, format_pvalue, format_value, supported_decimals
from curvewise.types.results import FloatArray, Interval, Result, as_number, check_level

POPULATIONS = {
    (False, False): "new questions of the same kind, for these two models as they are",
    (True, True): "new questions of the same kind and new training seeds of both",
    (True, False): "new questions of the same kind and new training seeds of {a}; {b} is one model",
    (False, True): "new questions of the same kind and new training seeds of {b}; {a} is one model",
}


def compare_evals(
    e: Evals | Any,
    a: str,
    b: str | None = None,
    metric: str | None = None,
    *,
    margin: float | None = None,
    average: str | Mapping[str, float] = "questions",
    paired_seeds: bool = False,
    level: float = 0.95,
) -> EvalComparison:
    """Compare two models, question by question.

    One answer to each question that is right or wrong, the ends of its range, is tested by McNemar's exact test,
    with Tango's score interval, which never contradicts it. Several samples, graded scores, groups and tasks are
    tested by t of the differences of questions; groups are clusters (CR2, Bell and McCaffrey). Where questions
    hardly differ the variance is not taken at its face value, so that an interval never has zero width.

    Parameters
    ----------
    e : Evals, path, DataFrame or other source of :func:`load_evals`
        Scores of models on questions.
    a, b : str
        The two models; both are needed.
    metric : str, optional
        "mean" (the default), "pass@k" or "pass^k".
    margin : float, optional
        The largest difference of scores that does not matter: asks for equivalence.
    average : {"questions", "tasks"} or dict
        As in :func:`score_evals`.
    paired_seeds : bool
        True if training seed s of a and of b share their randomness, such as the order of the data.
    level : float
        Coverage of the interval; a verdict is reached at ``1 - level``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> hard = rng.random((300, 1))
    >>> answers = np.stack([rng.random((300, 4)) < hard**0.7, rng.random((300, 4)) < hard])
    >>> e = Evals(answers, ("new", "old"), np.arange(300))
    >>> c = compare_evals(e, "new", "old")
    >>> c.verdict, str(c.difference)
    ('a', '0.082 [0.051, 0.113]')
    """
    check_level(level)
    if b is None:
        raise InputError(
            "is missing: name the two models. Two files, each of one model, are compared by "
            'compare_evals({"a": "a.csv", "b": "b.csv"}, "a", "b").',
            argument="b",
        )
    e = as_evals(e)
    if a == b:
        raise InputError(f"a and b are both {brief(a)}: name two models.", argument="b", value=b)
    pair = e.select([a, b])
    a, b = pair.models
    width = e.range[1] - e.range[0]
    if margin is not None and not 0 < as_number(margin) < width:
        raise InputError(
            f"must be a number above 0 and below {width:g}, the largest possible difference.",
            argument="margin",
            value=margin,
        )
    # Graded where any model is: two that never had half marks could have had some.
    scores = replace(question_scores(pair, metric), binary=e.two_valued)
    places = np.array([0]), np.array([1])
    tests = pair_tests(pair, metric, average, places, paired_seeds, scores)
    low, high = tests.intervals(level)
    difference = Interval(float(tests.difference[0]), float(low[0]), float(high[0]), level)
    pvalue, same = float(tests.pvalues()[0]), math.nan
    if margin is not None:
        # Two one-sided tests (TOST): both that it is below −margin and above margin are rejected.
        same = max(tests.tail(-margin), tests.tail(margin, above=False))
    verdict = "undecided"
    if same < 1 - level:
        verdict = "equivalent"
    elif pvalue < 1 - level:
        verdict = "a" if (difference.estimate > 0) == e.higher_is_better else "b"
    design = question_design(pair, average)
    notes = question_warnings(pair, scores, design)
    warn_all(notes)
    seeds = tuple(1 if each is None else len(each) for each in scores.seeds)
    gaps = scores.values[0] - scores.values[1]
    # The mean of the same samples in another order may differ in its last digit.
    gaps[np.abs(gaps) <= ROUNDING * np.abs(scores.values).max()] = 0.0
    # The variance of a difference is that between questions and the noise of samples, which may be unknown (NaN).
    total = float(gaps.var(ddof=1)) if len(gaps) > 1 else math.nan
    noise = float(scores.sampling_noise.sum())
    return EvalComparison(
        a=a,
        b=b,
        difference=difference,
        standard_error=float(tests.standard_error[0]),
        pvalue=pvalue,
        verdict=verdict,
        scores=tuple(map(float, design.mean(scores.values))),
        question_variance=float(np.maximum(0.0, total - noise)),
        sampling_variance=tuple(map(float, scores.sampling_variance)),
        sampling_share=float(np.minimum(1.0, noise / total)) if total > 0 else math.nan,
        wins=(int((gaps > 0).sum()), int((gaps < 0).sum())),
        questions=len(pair.questions),
        samples=tuple(map(float, pair.samples.mean(axis=1))),
        groups=None if pair.groups is None else design.count,
        seeds=seeds,
        population=POPULATIONS[seeds[0] > 1, seeds[1] > 1].format(a=a, b=b),
        method=_method(tests, pair, design.stratified),
        margin=margin,
        equivalence_pvalue=same,
        metric=str(scores.metric),
        average=average if isinstance(average, str) else "weighted tasks",
        level=level,
        unit="fraction" if e.binary else "",
        higher_is_better=e.higher_is_better,
        warnings=tuple(notes),
        _gap_variance=total,
        _design_effect=_design_effect(gaps, design),
        _degrees=variance_degrees(design.parts(gaps), float(tests.degrees[0])),
        _questions=scores.values,
    )


def _design_effect(gaps: NDArray[np.float64], design: Clusters) -> float:
    """Return the factor by which groups, and averages over tasks, change the variance of the mean difference.

    1 where it is not known.
    """
    if len(gaps) < 2 or gaps.var() == 0 or design.count == 1 or not (design.stratified or design.count < len(gaps)):
        return 1.0
    return float(design.variance(gaps) / sample_design(len(gaps)).variance(gaps))


def _method(tests: PairTests, e: Evals, stratified: bool) -> str:
    if tests.exact[0]:
        return "exact McNemar"
    words = ["t"]
    if 0 in tests.seeded:
        words.append("seeds and questions both sampled")
    if e.groups is not None:
        words.append("CR2 over groups of questions")
    if stratified:
        words.append("tasks as strata")
    return ", ".join(words) if len(words) > 1 else "paired t"


@dataclass(frozen=True, eq=False)
class EvalComparison(Result):
    """Comparison of model a with model b on the same questions.

    Attributes
    ----------
    a, b : str
        Their names.
    difference : Interval
        Score of a minus score of b, in units of the score.
    standard_error, pvalue : float
        Of the difference; the p-value is two-sided, and below ``1 - level`` exactly where the interval excludes 0.
    verdict : {"a", "b", "equivalent", "undecided"}
        The better model.
    scores : tuple of float
        Scores of a and of b.
    question_variance : float
        Variance between questions of the true difference (ω²). NaN where each question has one sample.
    sampling_variance : tuple of float
        Variance of one sample of a, and of b, around the mean of its question (σ²); for pass@k and pass^k that of a
        question's estimate. NaN with one sample.
    sampling_share : float
        Part of the variance of the difference that is due to sampling, and that more samples would reduce; NaN where
        unknown.
    wins : tuple of int
        Questions on which a scores higher, and on which b does.
    questions : int
        Number of questions.
    samples : tuple of float
        Samples of a question by a, and by b, on average.
    groups : int or None
        Number of groups of questions.
    seeds : tuple of int
        Training seeds of a and of b.
    population : str
        What the verdict is about.
    method : str
        The test.
    margin : float or None
        Differences up to this size do not matter.
    equivalence_pvalue : float
        Against the hypothesis that the difference is ``margin`` or more (two one-sided tests).
    metric, average : str
        Score of a question, and how questions are averaged.
    """

    a: str
    b: str
    difference: Interval
    standard_error: float
    pvalue: float
    verdict: str
    scores: tuple[float, ...]
    question_variance: float
    sampling_variance: tuple[float, ...]
    sampling_share: float
    wins: tuple[int, int]
    questions: int
    samples: tuple[float, ...]
    groups: int | None
    seeds: tuple[int, ...]
    population: str
    method: str
    margin: float | None
    equivalence_pvalue: float
    metric: str
    average: str
    level: float
    unit: str
    higher_is_better: bool
    warnings: tuple[str, ...]
    _gap_variance: float
    _design_effect: float
    _degrees: float
    _questions: FloatArray

    @property
    def worse(self) -> bool:
        """True if a is shown to be worse than b by more than the margin."""
        return self._gain[1] < -(self.margin or 0.0)

    @property
    def better(self) -> bool:
        """True if a is shown to be better than b by more than the margin."""
        return self._gain[0] > (self.margin or 0.0)

    @property
    def maybe_worse(self) -> bool:
        """True if it is not excluded that a is worse than b by more than the margin."""
        return not (self._gain[0] >= -(self.margin or 0.0) or self.verdict == "equivalent")

    @property
    def _gain(self) -> tuple[float, float]:
        """Limits of how much better a is."""
        low, high = self.difference.low, self.difference.high
        return (low, high) if self.higher_is_better else (-high, -low)

    @property
    def _ahead(self) -> tuple[int, int]:
        """Questions on which a is better, and on which b is."""
        return self.wins if self.higher_is_better else (self.wins[1], self.wins[0])

    def _headline(self) -> str:
        return f"{self.a!r} minus {self.b!r}: {self.difference}, {format_pvalue(self.pvalue)}, verdict={self.verdict!r}"

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row: the models, the difference with its interval, the p-value and the verdict."""
        return {
            "a": [self.a],
            "b": [self.b],
            "difference": [self.difference.estimate],
            "low": [self.difference.low],
            "high": [self.difference.high],
            "standard_error": [self.standard_error],
            "pvalue": [self.pvalue],
            "question_variance": [self.question_variance],
            "sampling_variance_a": [self.sampling_variance[0]],
            "sampling_variance_b": [self.sampling_variance[1]],
            "questions": [self.questions],
            "verdict": [self.verdict],
        }

    def readable(self) -> Mapping[str, Sequence[Any]]:
        """Return one row with the difference, the p-value and the name of the better model."""
        table = dict(super().readable())
        kept = ("a", "b", "difference", "std error", "p", "questions")
        better = {"a": self.a, "b": self.b}.get(self.verdict, self.verdict)
        if self.unit == "fraction":
            center, _, ends = self.written_difference().partition(" ")
            table["difference"] = [Cell(center, after=f" {ends}")]
        table["std error"] = error_cells(np.array([self.standard_error]), self.unit)
        return {name: table[name] for name in kept} | {"better": [better]}

    def sentences(self) -> str:
        """The verdict in a few sentences."""
        text = [self._verdict(), self._evidence()]
        if self.margin is not None and self.verdict == "undecided":
            p = format_pvalue(self.equivalence_pvalue)
            text.append(f"That they differ by less than {points(self.margin, self.unit)} is not shown ({p}).")
        elif self.margin is not None and self.verdict != "equivalent":
            shown = "" if self.better or self.worse else "not shown to be "
            text.append(f"The difference is {shown}larger than the margin of {points(self.margin, self.unit)}.")
        text += self._noise()
        text.append(f"The verdict is about {self.population}.")
        return " ".join(text)

    def _verdict(self) -> str:
        what = "" if self.metric == "mean" else f" in {self.metric}"
        if self.verdict == "equivalent":
            margin, p = points(self.margin or 0.0, self.unit), format_pvalue(self.equivalence_pvalue)
            return f"{self.a} and {self.b} are equivalent{what}: they differ by less than {margin} ({p})."
        if self.verdict == "undecided":
            return f"{self.a} and {self.b} are not significantly different{what}."
        better, worse = (self.a, self.b) if self.verdict == "a" else (self.b, self.a)
        return f"{better} is significantly better than {worse}{what}."

    def _evidence(self) -> str:
        one, two = (self._written(score, 1) for score in self.scores)
        gap = in_points(self.written_difference())
        design = format_count(self.questions, "question")
        design += f" in {format_count(self.groups, 'group')}" if self.groups is not None else ""
        if self.average != "questions":
            design += ", averaged over tasks"
        return (
            f"{self.a} scores {one} and {self.b} {two}, a difference of {gap} on {design}"
            f" ({format_pvalue(self.pvalue)}, {self.method}); {self.a} is ahead on {self._ahead[0]:,} and {self.b}"
            f" on {self._ahead[1]:,}."
        )

    def written_difference(self) -> str:
        """Write the difference with its interval; percentages without rounding to tens."""
        if self.unit != "fraction":
            return format_interval(self.difference, self.unit)
        center, low, high = map(self._written, self.difference)
        return f"{center} [{low[:-1]}, {high[:-1]}]"

    def _written(self, score: float, least: int = 0) -> str:
        """Write a score in the digits that the difference supports, and at least so many decimals of a percentage.

        The two scores have one more than the difference may have, so that 61% and 59% do not seem to differ by 1 point.
        """
        if self.unit != "fraction":
            return format_value(score, self.unit)
        decimals = max(least, *supported_decimals(*(100 * x for x in self.difference)))
        return f"{round(100 * score, decimals) + 0.0:.{decimals}f}%"

    def _noise(self) -> list[str]:
        """Say how much of the uncertainty more samples, or only more questions, would reduce."""
        if math.isnan(self.sampling_share):
            return []
        if self.sampling_share > 0.99:
            return [
                "Nearly all of the variance of the difference is the noise of samples: more samples would reduce it."
            ]
        return [
            f"{self.sampling_share:.0%} of the variance of the difference is the noise of samples, which more samples"
            " would reduce; the rest is how questions differ, which only more questions reduce."
        ]
