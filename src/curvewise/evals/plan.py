"""Plans of evaluations: how many questions and samples show a difference, and at which questions to look."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, ndtr, ndtri

from curvewise.errors import InputError, warn_all
from curvewise.evals.compare import EvalComparison, compare_evals
from curvewise.evals.load import as_evals
from curvewise.evals.looks import LookPlan, plan_looks, significance
from curvewise.evals.score import points
from curvewise.stats.sequential import sequential_design
from curvewise.tables import Cell
from curvewise.text import arg, format_count, format_number, format_size
from curvewise.types.results import Interval, Result

TRIED = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100)
"""Samples of a question that a frontier lists."""
MANY = 30
"""Questions from which on the test by t is nearly the one by the normal distribution that a plan supposes."""
SHIFTS = np.linspace(1, 6, 26)
"""Differences in standard errors of the last look among which the one with the power asked for is found."""


def plan_evals(
    given: Any = None,
    /,
    *,
    difference: float | None = None,
    pilot: Any = None,
    models: tuple[str, str] | None = None,
    question_variance: float | None = None,
    sampling_variance: float | tuple[float, float] | None = None,
    samples: int | tuple[int, int] | None = None,
    questions: int | None = None,
    design_effect: float | None = None,
    power: float = 0.8,
    level: float = 0.05,
    question_cost: float = 0.0,
    sample_cost: float = 1.0,
    budget: float | None = None,
    looks: int | None = None,
    rng: int | np.random.Generator = 0,
) -> EvalPlan:
    """Plan how many questions, and how many samples of each, show a difference of two models.

    The mean difference over n questions, with K_A and K_B samples of each, has the variance
    (ω² + σ_A²/K_A + σ_B²/K_B)/n: ω² is the variance between questions of the true difference, σ² that of one sample
    around the mean of its question. A difference δ is found with the power asked for by
    n = (z_{α/2} + z_β)² (ω² + σ_A²/K_A + σ_B²/K_B)/δ² questions (Miller 2024). More samples do not make ω² smaller.
    Single 0/1 answers in a pilot are tested exactly, which takes more: δ is then 1/n smaller, a continuity correction.

    Parameters
    ----------
    given : float, Evals or EvalComparison, optional
        The difference, if it is a number, else the pilot: ``plan_evals(0.03, pilot=e)`` and
        ``plan_evals(e, difference=0.03)`` are the same.
    difference : float, optional
        The true difference of scores that should be found: 0.03 for three points. Without it the plan says which
        difference ``questions`` (or those of the pilot) detect.
    pilot : Evals, EvalComparison, path or other source of :func:`load_evals`, optional
        Evaluations that exist already, of two models (or name two of them in ``models``), or their comparison.
    models : tuple of str, optional
        The two models of the pilot.
    question_variance, sampling_variance : float
        Without a pilot: ω², and σ² of both models, or of each.
    samples : int or tuple of int, optional
        Samples of each question by a and by b; those of the pilot by default, else 1.
    questions : int, optional
        Number of questions that there are: asks which difference they detect.
    design_effect : float, optional
        Factor by which groups of questions raise the variance, or an average over tasks of unequal size: that of the
        pilot by default, else 1.
    power : float
        Chance of finding the difference.
    level : float
        Significance level of the two-sided test; 0.95 is taken to mean 0.05.
    question_cost, sample_cost : float
        Cost of a question (to write it and to grade it), and of one sample by one model, for the frontier.
    budget : float, optional
        Cost that may not be exceeded: the frontier then lists what it affords.
    looks : int, optional
        Plan so many looks, at equal numbers of questions, that may each stop the evaluation.
    rng : int or Generator
        Determines the simulation behind ``looks``.

    Examples
    --------
    >>> plan = plan_evals(0.03, question_variance=1 / 9, sampling_variance=0.0)
    >>> plan.questions, round(plan.power_at(969), 3)
    (969, 0.8)
    """
    if given is not None:
        name, known_twice = ("difference", difference) if isinstance(given, Real) else ("pilot", pilot)
        if known_twice is not None:
            raise InputError(f"{arg(name)} is given twice, once without its name.")
        difference, pilot = (float(given), pilot) if isinstance(given, Real) else (difference, given)
    alpha = significance(level)
    if not 0 < power < 1:
        raise InputError("must lie between 0 and 1, such as 0.8.", argument="power", value=power)
    for name, value in (("difference", difference), ("budget", budget), ("sample_cost", sample_cost)):
        if value is not None and not 0 < abs(value) < math.inf:
            raise InputError("must be a number other than 0, such as 0.03.", argument=name, value=value)
    if not 0 <= question_cost < math.inf:
        raise InputError("must be 0 or more.", argument="question_cost", value=question_cost)
    known, notes = _planned_variances(pilot, models, question_variance, sampling_variance, samples, design_effect)
    if questions is not None and (questions != int(questions) or questions < 2):
        raise InputError("must be a whole number, 2 or more.", argument="questions", value=questions)
    if difference is None and questions is None:
        questions = known.pilot_questions
        if questions is None and budget is None:
            raise InputError(
                f"pass {arg('difference')} (how many questions show it?) or {arg('questions')} (which difference do"
                " they show?)."
            )
    factor = float(ndtri(1 - alpha / 2) + ndtri(power)) ** 2
    effect = None if difference is None else abs(difference)
    if effect is not None and effect >= known.width:
        raise InputError(
            f"must be below {known.width:g}, the largest possible.",
            argument="difference",
            value=difference,
            remedy="Three points are 0.03; of scores on another scale, divide by its width (variances by its square).",
        )
    needed, limits = None, None
    if effect is not None:
        needed = known.needed(effect, factor)
        limits = known.interval(needed, 1 - alpha)
        if needed < MANY:
            notes.append(f"{needed} questions are few: the formula is for {MANY} or more, and t tests need some more.")
    warn_all(notes)
    plan = EvalPlan(
        difference=effect,
        questions=needed,
        questions_interval=limits,
        available=questions,
        detectable=None if questions is None else known.detectable(questions, factor),
        samples=known.samples,
        question_variance=known.question_variance,
        sampling_variance=known.sampling_variance,
        design_effect=known.design_effect,
        power=power,
        level=alpha,
        frontier=known.frontier(effect, factor, budget, question_cost, sample_cost),
        budget=budget,
        looks=None,
        metric=known.metric,
        unit=known.unit,
        warnings=tuple(notes),
        _known=known,
    )
    if looks is None:
        return plan
    if effect is None:
        raise InputError(f"{arg('looks', looks)} needs {arg('difference')}: the difference that should be found.")
    return replace(plan, looks=_sequence(plan, looks, rng))


@dataclass(frozen=True)
class _Known:
    """Variances that a plan rests on."""

    question_variance: float
    sampling_variance: tuple[float, float]
    samples: tuple[int, int]
    design_effect: float = 1.0
    degrees: float | None = None
    pilot_questions: int | None = None
    width: float = math.inf
    fixed: bool = False  # only as many samples as in the pilot can be planned
    exact: bool = False  # single answers, tested by McNemar's exact test
    metric: str = "mean"
    unit: str = "fraction"

    def variance(self, samples: int | tuple[int, int] | None = None) -> float:
        """Variance of a question's difference, times the design effect."""
        one, two = self.samples if samples is None else (samples, samples) if isinstance(samples, int) else samples
        if self.fixed:  # pass@k: that of the estimates from the samples there are
            one = two = 1
        parts = self.sampling_variance[0] / one + self.sampling_variance[1] / two
        return self.design_effect * (self.question_variance + parts)

    def needed(self, effect: float, factor: float, samples: int | None = None) -> int:
        """Questions that find a difference."""
        return max(2, math.ceil(self.corrected(factor * self.variance(samples) / effect**2, effect) - 1e-9))

    def corrected(self, questions: float, effect: float) -> float:
        """As many questions by the exact test as so many by the normal: the inverse of :meth:`detectable`."""
        return questions * (1 + math.sqrt(1 + 4 / (questions * effect))) ** 2 / 4 if self.exact else questions

    def detectable(self, questions: int, factor: float, samples: int | tuple[int, int] | None = None) -> float:
        """Difference that so many questions find."""
        return math.sqrt(factor * self.variance(samples) / questions) + self.step(questions)

    def step(self, questions: int) -> float:
        """Continuity correction: an exact test finds a difference as one by the normal does that is 1/n smaller."""
        return 1 / questions if self.exact else 0.0

    def interval(self, needed: int, level: float) -> Interval | None:
        """Questions needed with the pilot's variance at the limits of its χ² interval."""
        if self.degrees is None:
            return None
        tail = (1 - level) / 2
        low, high = (needed * self.degrees / float(chdtri(self.degrees, p)) for p in (tail, 1 - tail))
        return Interval(float(needed), low, high, level)

    def frontier(
        self, effect: float | None, factor: float, budget: float | None, per_question: float, per_sample: float
    ) -> dict[str, NDArray[Any]]:
        """Questions for each number of samples: as many as the difference needs, or as the budget affords."""
        if effect is None and budget is None:
            return {}
        tried = [self.samples[0]] if self.fixed else sorted({*TRIED, *self.samples})
        rows = []
        for k in tried:
            each = per_question + 2 * k * per_sample
            n = math.floor(budget / each + 1e-9) if budget is not None else self.needed(effect or 1.0, factor, k)
            if n >= 2:
                rows.append((k, n, 2 * k * n, n * each, self.detectable(n, factor, k)))
        if not rows:
            raise InputError("affords fewer than two questions.", argument="budget", value=budget)
        names = ("samples", "questions", "answers", "cost", "detectable")
        return {name: np.array([row[i] for row in rows]) for i, name in enumerate(names)}


def _planned_variances(
    pilot: Any,
    models: tuple[str, str] | None,
    question_variance: float | None,
    sampling_variance: float | tuple[float, float] | None,
    samples: int | tuple[int, int] | None,
    design_effect: float | None,
) -> tuple[_Known, list[str]]:
    """Read what is known from a pilot or from numbers; with warnings."""
    given = _two(samples, "samples")
    if given is not None and not all(k == int(k) and k >= 1 for k in given):
        raise InputError("must be one or two whole numbers from 1 on.", argument="samples", value=samples)
    counts = None if given is None else (int(given[0]), int(given[1]))
    if design_effect is not None and not 0 < design_effect < math.inf:
        raise InputError("must be above 0.", argument="design_effect", value=design_effect)
    if pilot is None:
        if question_variance is None:
            raise InputError(
                f"pass {arg('pilot')}, or {arg('question_variance')} and {arg('sampling_variance')}: how much the"
                " difference varies between questions, and a sample around the mean of its question."
            )
        both = _two(sampling_variance, "sampling_variance") or (0.0, 0.0)
        for name, number in (("question_variance", question_variance), *(("sampling_variance", v) for v in both)):
            if not 0 <= number < math.inf:
                raise InputError("must be 0 or more.", argument=name, value=number)
        if question_variance + sum(both) == 0:
            raise InputError("question_variance and sampling_variance are both 0: nothing varies.")
        # Scores between 0 and 1 have variances below 1; others are on a scale of their own.
        scaled = max(question_variance, *both) > 1
        width, unit = (math.inf, "") if scaled else (1.0, "fraction")
        known = _Known(float(question_variance), both, counts or (1, 1), design_effect or 1.0, width=width, unit=unit)
        return known, []
    for name, value in (("question_variance", question_variance), ("sampling_variance", sampling_variance)):
        if value is not None:
            raise InputError(f"{arg(name)} is known from {arg('pilot')}: leave one of them out.")
    return _from_pilot(pilot, models, counts, design_effect)


def _two(value: float | tuple[float, float] | None, name: str) -> tuple[float, float] | None:
    """Return a number for each of the two models, from one or two."""
    if value is None:
        return None
    both = np.ravel(np.asarray(value, dtype=np.float64)).tolist()
    if len(both) not in (1, 2):
        raise InputError("must be one number, or one for each of the two models.", argument=name, value=value)
    return both[0], both[-1]


def _from_pilot(
    pilot: Any, models: tuple[str, str] | None, samples: tuple[int, int] | None, design_effect: float | None
) -> tuple[_Known, list[str]]:
    if not isinstance(pilot, EvalComparison):
        pilot = as_evals(pilot, "pilot")
        if models is None and len(pilot.models) != 2:
            raise InputError(
                f"has {format_count(len(pilot.models), 'model')}: say which two are compared.",
                argument="pilot",
                remedy=f"Pass {arg('models')}.",
            )
        one, two = models or pilot.models
        pilot = compare_evals(pilot, one, two)
    notes: list[str] = []
    n, fixed = pilot.questions, pilot.metric != "mean"
    if n < 3:
        raise InputError(f"has {format_count(n, 'question')}: too few to plan on.", argument="pilot")
    own = tuple(max(1, round(k)) for k in pilot.samples)
    if fixed and samples not in (None, own):
        raise InputError(
            f"is a pilot of {pilot.metric}, whose variance is known for {own[0]} samples only.",
            argument="samples",
            value=samples,
        )
    question, sampling = pilot.question_variance, pilot.sampling_variance
    if math.isnan(question):
        # The variance of single answers is known as a whole only: nothing says what further samples would gain.
        question, sampling, fixed = pilot._gap_variance, (0.0, 0.0), True
        if samples not in (None, (1, 1)):
            notes.append(
                "the pilot has one sample of a question, so that the noise of samples is not known: the plan takes it"
                " that more samples do not help."
            )
    if question == 0:
        notes.append(
            "the pilot shows no variance between questions beside the noise of samples, though there may be some: with"
            " more samples than the pilot's, the plan may be too optimistic."
        )
    if max(pilot.seeds) > 1:
        notes.append(
            "the pilot has several training seeds, and the plan is about these trainings as they are: more questions do"
            " not reduce the variance between seeds."
        )
    if question + sum(sampling) == 0:
        raise InputError("shows no difference on any question: nothing can be planned on it.", argument="pilot")
    effect = design_effect if design_effect is not None else pilot._design_effect
    width = 1.0 if pilot.unit == "fraction" else math.inf
    return (
        _Known(
            question,
            (sampling[0], sampling[1]),
            samples or (own[0], own[1]),
            effect,
            max(1.0, pilot._degrees),  # NaN, of one group, is 1
            n,
            width,
            fixed,
            pilot.method == "exact McNemar",
            pilot.metric,
            pilot.unit,
        ),
        notes,
    )


@dataclass(frozen=True, eq=False)
class EvalPlan(Result):
    """Plan of questions and samples.

    Attributes
    ----------
    difference : float or None
        The true difference that should be found.
    questions : int or None
        Questions that it takes with ``samples`` of each; None where no difference was asked about.
    questions_interval : Interval or None
        The same with the pilot's variance at the limits of its interval; None without a pilot.
    available : int or None
        Questions that there are, as given, or as in the pilot where no difference was asked about.
    detectable : float or None
        The difference that these find.
    samples : tuple of int
        Samples of each question by a and by b.
    question_variance : float
        ω², the variance between questions of the true difference.
    sampling_variance : tuple of float
        σ² of a and of b.
    design_effect : float
        Factor by which groups of questions, or an average over tasks of unequal size, raise the variance.
    power, level : float
        Chance of finding the difference, and significance level of the test.
    frontier : dict of str to ndarray
        For each number of ``samples`` (the same by both models): ``questions``, ``answers`` of both models in all,
        their ``cost``, and the difference they detect. With a budget the questions are those it affords.
    budget : float or None
        The most that the evaluation may cost.
    looks : LookPlan or None
        Sequential plan, where one was asked for.
    metric : str
        Score of a question.
    """

    difference: float | None
    questions: int | None
    questions_interval: Interval | None
    available: int | None
    detectable: float | None
    samples: tuple[int, int]
    question_variance: float
    sampling_variance: tuple[float, float]
    design_effect: float
    power: float
    level: float
    frontier: Mapping[str, NDArray[Any]]
    budget: float | None
    looks: LookPlan | None
    metric: str
    unit: str
    warnings: tuple[str, ...]
    _known: _Known

    @property
    def cheapest(self) -> tuple[int, int]:
        """Questions and samples of each that cost least, or that detect the smallest difference within the budget."""
        if not self.frontier:
            raise InputError(f"the plan has no frontier: pass {arg('difference')} or {arg('budget')}.")
        place = int(np.argmin(self.frontier["cost" if self.budget is None else "detectable"]))
        return int(self.frontier["questions"][place]), int(self.frontier["samples"][place])

    def power_at(
        self, questions: int, difference: float | None = None, samples: int | tuple[int, int] | None = None
    ) -> float:
        """Chance that so many questions find the difference."""
        effect = self.difference if difference is None else abs(difference)
        if effect is None:
            raise InputError(f"pass {arg('difference')}: the plan has none.")
        gap = max(0.0, effect - self._known.step(questions))
        shift, z = gap / math.sqrt(self._known.variance(samples) / questions), float(ndtri(1 - self.level / 2))
        return float(ndtr(shift - z) + ndtr(-shift - z))

    def detectable_at(self, questions: int, samples: int | tuple[int, int] | None = None) -> float:
        """Difference that so many questions find with the power of the plan."""
        factor = float(ndtri(1 - self.level / 2) + ndtri(self.power)) ** 2
        return self._known.detectable(questions, factor, samples)

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per number of samples: questions, answers in all, cost and detectable difference."""
        if self.frontier:
            return dict(self.frontier)
        return {"samples": [self.samples[0]], "questions": [self.available], "detectable": [self.detectable]}

    def readable(self) -> Mapping[str, Sequence[Any]]:
        """Return one row per number of samples, the cost as a plain number."""
        table = dict(super().readable())
        if "cost" in table:
            table["cost"] = [Cell(format_number(float(cost))) for cost in self.frontier["cost"]]
            if np.array_equal(self.frontier["cost"], self.frontier["answers"]):
                del table["cost"]  # an answer costs 1, and nothing else does
            if self.budget is None:
                del table["detectable"]  # the difference that was asked for, in every row
        return table

    def sentences(self) -> str:
        """The plan in a few sentences."""
        text = []
        one, two = self.samples
        each = format_count(one, "sample") if one == two else f"{one} and {two} samples"
        test = f"with {self.power:.0%} power at the {self.level:.2g} level"
        if self.questions is not None and self.difference is not None:
            inner = self.questions_interval
            limits = "" if inner is None else f" [{format_size(round(inner.low))}, {format_size(round(inner.high))}]"
            text.append(
                f"{self.questions:,}{limits} questions with {each} of each are needed to find a difference of"
                f" {points(self.difference, self.unit)} {test}."
            )
        if self.available is not None and self.detectable is not None:
            found = f"find a difference of {points(float(f'{self.detectable:.2g}'), self.unit)}"
            if self.detectable >= self._known.width:
                found = "are too few: they do not find even the largest possible difference"
            text.append(f"{self.available:,} questions with {each} of each {found} {test}.")
        if self.frontier and len(self.frontier["samples"]) > 1:
            n, k = self.cheapest
            what = "cost least"
            if self.budget is not None:
                least = float(f"{self.detectable_at(n, k):.2g}")
                what = f"find the smallest difference within the budget, {points(least, self.unit)} {test}"
            if self.budget is None and (n, k, k) == (self.questions, *self.samples):
                text.append("No other number of samples costs less.")
            else:
                text.append(f"{n:,} questions with {format_count(k, 'sample')} of each {what}.")
        noise = self._known.variance() / self.design_effect - self.question_variance
        share = self.question_variance / (self.question_variance + noise)
        if noise > 0 and self.metric == "mean":
            text.append(f"{share:.0%} of the variance is how questions differ, which more samples do not reduce.")
        if self._known.fixed and self.samples == (1, 1) and self.metric == "mean":
            text.append("The pilot has one sample of each question: the gain of further samples is not known.")
        if self.looks is not None:
            text.append(self.looks.sentences())
        return " ".join(text)


def _sequence(plan: EvalPlan, looks: int, rng: int | np.random.Generator) -> LookPlan:
    """Plan looks at equal steps whose last number of questions keeps the power."""
    if looks != int(looks) or not 2 <= looks <= 50:
        raise InputError("must be a whole number from 2 to 50.", argument="looks", value=looks)
    effect = (plan.difference or 1.0) / math.sqrt(plan._known.variance())
    # With many values a difference of θ standard deviations is found as often as θ√n says, n being the last look.
    steps = np.arange(1, looks + 1)
    trial = sequential_design(
        (200 * steps).tolist(), (SHIFTS / math.sqrt(200 * looks)).tolist(), level=1 - plan.level, rng=rng
    )
    last = plan._known.corrected(
        (float(np.interp(plan.power, trial.found, SHIFTS)) / effect) ** 2, plan.difference or 1.0
    )
    places = np.maximum(np.ceil(last * steps / looks), steps + 1).astype(int)
    return plan_looks(places.tolist(), level=plan.level, effects=(0.0, effect, 2 * effect), rng=rng)
