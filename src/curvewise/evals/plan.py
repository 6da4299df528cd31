"""Plans of evaluations: how many questions and samples show a difference, and at which questions to look."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import chdtri, nctdtr, ndtr, ndtri, stdtrit

from curvewise.errors import InputError, arg, arg_name, brief, warn_all
from curvewise.evals.compare import EvalComparison, compare_evals
from curvewise.evals.evals import Evals
from curvewise.evals.load import as_evals, check_keywords
from curvewise.evals.pairs import pair_tests
from curvewise.evals.questions import question_scores
from curvewise.evals.score import in_points, points
from curvewise.stats.intervals import mcnemar_power
from curvewise.stats.tests import sequential_design
from curvewise.text import (
    Cell,
    format_count,
    format_interval,
    format_level,
    format_number,
    format_pvalue,
    format_size,
    name_decision,
)
from curvewise.types.results import Interval, Result, as_number, check_level, check_whole

TRIED = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100)
"""Samples of a question that a frontier lists."""
MANY = 200
"""Questions from which on t tests are planned by the normal distribution, whose power is hardly higher."""
FEW = 30
"""With fewer questions the means of scores are hardly normal."""
SHIFTS = np.linspace(1, 6, 26)
"""Differences in standard errors of the last look among which the one with the power asked for is found."""
KNOWN_FIELDS = ("samples", "question_variance", "sampling_variance", "design_effect", "metric", "unit")
"""Fields of a plan that say what it rests on."""
DRAWS = 100_000
"""Simulated experiments behind a plan of looks."""


def plan_evals(
    given: Any = None,
    /,
    *,
    difference: float | None = None,
    pilot: Any = None,
    a: str | None = None,
    b: str | None = None,
    samples: int | tuple[int, int] | None = None,
    questions: int | None = None,
    power: float = 0.8,
    level: float = 0.95,
    looks: int | None = None,
    rng: int | np.random.Generator = 0,
    **numbers: Unpack[PlanNumbers],
) -> EvalPlan:
    """Plan how many questions, and how many samples of each, show a difference of two models.

    The mean difference over n questions, with K_A and K_B samples of each, has the variance
    (ω² + σ_A²/K_A + σ_B²/K_B)/n: ω² is the variance between questions of the true difference, σ² that of one sample
    around the mean of its question. A difference δ is found with the power asked for by
    n = (z_{α/2} + z_β)² (ω² + σ_A²/K_A + σ_B²/K_B)/δ² questions (Miller 2024), or a few more where these are fewer than
    200 and t matters. More samples do not make ω² smaller. Single 0/1 answers like those of a pilot are tested by
    McNemar's exact test, whose power is counted out: it takes 2 to 25% more questions.

    Parameters
    ----------
    given : float, Evals or EvalComparison, optional
        The difference, if it is a number, else the pilot: ``plan_evals(0.03, pilot=e)`` and
        ``plan_evals(e, difference=0.03)`` are the same.
    difference : float, optional
        The true difference of scores that should be found: 0.03 for three points. Without it the plan says which
        difference ``questions`` (or those of the pilot) detect.
    pilot : Evals, EvalComparison, path or other source of :func:`load_evals`, optional
        Evaluations that exist already, or a comparison of two models.
    a, b : str, optional
        The two models of the pilot, where it holds more than two.
    samples : int or tuple of int, optional
        Samples of each question by a and by b; those of the pilot by default, else 1.
    questions : int, optional
        Number of questions that there are: asks which difference they detect.
    power : float
        Chance of finding the difference.
    level : float
        Coverage of the interval of the difference: the two-sided test is made at ``1 - level``.
    looks : int, optional
        Plan so many looks, at equal numbers of questions, that may each stop the evaluation.
    rng : int or Generator
        Determines the simulation behind ``looks``.
    question_variance, sampling_variance : float
        Without a pilot: ω², and σ² of both models, or of each.
    design_effect : float, optional
        Factor by which groups of questions raise the variance, or an average over tasks of unequal size: that of the
        pilot by default, else 1.
    question_cost, sample_cost : float
        Cost of a question (to write it and to grade it; 0 by default), and of one sample by one model (1 by default),
        for the frontier.
    budget : float, optional
        Cost that may not be exceeded: the frontier then lists what it affords.

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
    if "models" in numbers:
        raise InputError(f"{arg('models')} is gone: name the two models with {arg('a')} and {arg('b')}.")
    known_numbers = _check_numbers(numbers)
    check_coverage(level)
    if not 0 < as_number(power) < 1:
        raise InputError("must be a number between 0 and 1, such as 0.8.", argument="power", value=power)
    if difference is not None and not 0 < abs(as_number(difference)) < math.inf:
        raise InputError("must be a number other than 0, such as 0.03.", argument="difference", value=difference)
    costs = {name: known_numbers.pop(name) for name in ("question_cost", "sample_cost", "budget")}
    counts = _two(samples, "samples")
    if counts is not None and not all(k >= 1 and k.is_integer() for k in counts):
        raise InputError("must be one or two whole numbers from 1 on.", argument="samples", value=samples)
    each = None if counts is None else (int(counts[0]), int(counts[1]))
    notes: list[str] = []
    if pilot is not None:
        known, notes = _from_pilot(_pilot_comparison(pilot, a, b), each, **known_numbers)
    elif (a, b) != (None, None):
        raise InputError(f"{arg('a')} and {arg('b')} are models of a pilot: pass {arg('pilot')}.")
    else:
        known = _from_numbers(each, **known_numbers)
    known = replace(known, power=power, level=level)
    questions = None if questions is None else check_whole(questions, "questions", 2)
    if difference is None and questions is None:
        questions = known.pilot_questions
        if questions is None and costs["budget"] is None:
            raise InputError(
                f"pass {arg('difference')} (how many questions show it?) or {arg('questions')} (which difference do"
                " they show?)."
            )
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
        needed = known.needed(effect)
        limits = known.interval(needed)
        if needed < FEW and not known.is_exact():
            notes.append(f"{needed} questions are few: the plan takes the mean of {FEW} or more to be normal.")
    warn_all(notes)
    plan = EvalPlan(
        difference=effect,
        questions=needed,
        questions_interval=limits,
        available=questions,
        detectable=None if questions is None else known.detectable(questions),
        **{name: getattr(known, name) for name in KNOWN_FIELDS},
        power=power,
        level=level,
        frontier=known.frontier(effect, **costs),
        budget=costs["budget"],
        looks=None,
        warnings=tuple(notes),
        _known=known,
    )
    if looks is None:
        return plan
    if effect is None:
        raise InputError(f"{arg('looks', looks)} needs {arg('difference')}: the difference that should be found.")
    return replace(plan, looks=_sequence(plan, looks, rng))


class PlanNumbers(TypedDict, total=False):
    """Keywords of :func:`plan_evals`: what a pilot would show, and what an evaluation costs."""

    question_variance: float | None
    sampling_variance: float | tuple[float, float] | None
    design_effect: float | None
    question_cost: float
    sample_cost: float
    budget: float | None


def _check_numbers(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of :class:`PlanNumbers`, with the usual costs where none are given."""
    check_keywords("plan_evals", given, PlanNumbers.__annotations__)
    found = dict.fromkeys(PlanNumbers.__annotations__) | {"question_cost": 0.0, "sample_cost": 1.0} | dict(given)
    for name, value in found.items():
        above = name in ("design_effect", "sample_cost", "budget")
        for number in () if value is None else np.ravel(value).tolist():
            seen = as_number(number)
            if not (seen > 0 or (seen == 0 and not above)) or seen == math.inf:
                text = "must be a number above 0." if above else "must be a number, 0 or more."
                raise InputError(text, argument=name, value=number)
    return found


@dataclass(frozen=True)
class _Known:
    """Variances that a plan rests on, and the power of the test that they give."""

    question_variance: float
    sampling_variance: tuple[float, float]
    samples: tuple[int, int]
    design_effect: float = 1.0
    degrees: float | None = None
    pilot_questions: int | None = None
    width: float = math.inf
    fixed: bool = False  # only as many samples as in the pilot can be planned
    exact: bool = False  # single answers are tested by McNemar's exact test
    metric: str = "mean"
    unit: str = "fraction"
    power: float = 0.8
    level: float = 0.95

    def variance(self, samples: int | tuple[int, int] | None = None) -> float:
        """Variance of a question's difference, times the design effect."""
        one, two = self.samples if samples is None else (samples, samples) if isinstance(samples, int) else samples
        if self.fixed:  # pass@k: that of the estimates from the samples there are
            one = two = 1
        parts = self.sampling_variance[0] / one + self.sampling_variance[1] / two
        return self.design_effect * (self.question_variance + parts)

    def spread(self, effect: float, samples: int | tuple[int, int] | None = None) -> float:
        """Standard deviation of a question's difference, where the true mean difference is ``effect``."""
        variance = self.variance(samples)
        if self.is_exact(samples):
            # Single answers that differ by δ on average differ on at least a share δ of the questions.
            variance = max(0.0, min(1.0, max(variance + effect**2, effect)) - effect**2)
        return math.sqrt(variance)

    def is_exact(self, samples: int | tuple[int, int] | None = None) -> bool:
        """Return whether so many samples of a question are tested by McNemar's exact test."""
        return self.exact and (self.fixed or (self.samples if samples is None else samples) in (1, (1, 1)))

    def chance(self, questions: int, effect: float, samples: int | tuple[int, int] | None = None) -> float:
        """Power of the test of so many questions."""
        spread = self.spread(effect, samples)
        if self.is_exact(samples):
            # The variance of a difference of 0/1 answers is the share of questions on which they differ, less δ².
            return mcnemar_power(questions, effect, min(1.0, spread**2 + effect**2), self.level)
        shift = effect / (spread / math.sqrt(questions))
        if questions >= MANY:
            z = float(ndtri((1 + self.level) / 2))
            return float(ndtr(shift - z) + ndtr(-shift - z))
        degrees = max(1.0, questions / max(1.0, self.design_effect) - 1)
        t = float(stdtrit(degrees, (1 + self.level) / 2))
        below, beyond = np.nan_to_num(nctdtr(degrees, shift, [t, -t]))  # NaN where a probability is next to 0
        return float(1 - below + beyond)

    def factor(self) -> float:
        """Squared difference that is found, in standard errors: (z_{α/2} + z_β)²."""
        return float(ndtri((1 + self.level) / 2) + ndtri(self.power)) ** 2

    def needed(self, effect: float, samples: int | None = None) -> int:
        """Questions that find a difference."""
        high = max(2, math.ceil(self.factor() * self.variance(samples) / effect**2 - 1e-9))
        if high >= MANY and not self.is_exact(samples):
            return high
        low = 1
        while self.chance(high, effect, samples) < self.power:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.chance(middle, effect, samples) >= self.power else (middle, high)
        return high

    def detectable(self, questions: int, samples: int | tuple[int, int] | None = None) -> float:
        """Difference that so many questions find: infinite where they find none."""
        exact, normal = self.is_exact(samples), math.sqrt(self.factor() * self.variance(samples) / questions)
        if questions >= MANY and not exact:
            return normal
        most = 1.0 if exact else 30 * normal  # of two questions, whose t has one degree of freedom
        if self.chance(questions, most, samples) < self.power:
            return math.inf
        return float(brentq(lambda gap: self.chance(questions, gap, samples) - self.power, 1e-9 * most, most))

    def interval(self, needed: int) -> Interval | None:
        """Questions needed with the pilot's variance at the limits of its χ² interval."""
        if self.degrees is None:
            return None
        tail = (1 - self.level) / 2
        low, high = (needed * self.degrees / float(chdtri(self.degrees, p)) for p in (tail, 1 - tail))
        return Interval(float(needed), low, high, self.level)

    def frontier(
        self, effect: float | None, question_cost: float, sample_cost: float, budget: float | None
    ) -> dict[str, NDArray[Any]]:
        """Questions for each number of samples: as many as the difference needs, or as the budget affords."""
        if effect is None and budget is None:
            return {}
        tried = [self.samples[0]] if self.fixed else sorted({*TRIED, *self.samples})
        rows = []
        for k in tried:
            each = question_cost + 2 * k * sample_cost
            n = self.needed(effect or 1.0, k) if budget is None else math.floor(budget / each + 1e-9)
            if n >= 2:
                rows.append((k, n, 2 * k * n, n * each, self.detectable(n, k)))
        if not rows:
            raise InputError("affords fewer than two questions.", argument="budget", value=budget)
        names = ("samples", "questions", "answers", "cost", "detectable")
        return {name: np.array([row[i] for row in rows]) for i, name in enumerate(names)}


def _pilot_comparison(pilot: Any, a: str | None, b: str | None) -> EvalComparison:
    """Compare the two models of a pilot: those named, or the only two."""
    if isinstance(pilot, EvalComparison):
        if not {a, b} - {None} <= {pilot.a, pilot.b}:
            raise InputError(f"is a comparison of {pilot.a!r} and {pilot.b!r}, of no other models.", argument="pilot")
        return pilot
    e = as_evals(pilot, "pilot")
    if len(e.models) == 2:  # the one that is not named is the other
        a = a or next(name for name in e.models if name != b)
        b = b or next(name for name in e.models if name != a)
    if a is None or b is None:
        raise InputError(
            f"has {format_count(len(e.models), 'model')}: say which two are compared.",
            argument="pilot",
            remedy=f"Pass {arg('a')} and {arg('b')}.",
        )
    return compare_evals(e, a, b)


def _from_numbers(
    samples: tuple[int, int] | None, question_variance: Any, sampling_variance: Any, design_effect: float | None
) -> _Known:
    """Read what is known from numbers."""
    if question_variance is None:
        raise InputError(
            f"pass {arg('pilot')}, or {arg('question_variance')} and {arg('sampling_variance')}: how much the"
            " difference varies between questions, and a sample around the mean of its question."
        )
    question, both = float(question_variance), _two(sampling_variance, "sampling_variance") or (0.0, 0.0)
    if question + sum(both) == 0:
        both_names = f"{arg_name('question_variance')} and {arg_name('sampling_variance')}"
        raise InputError(f"{both_names} are both 0: nothing varies.")
    # Scores between 0 and 1 have variances below 1; others are on a scale of their own.
    width, unit = (math.inf, "") if max(question, *both) > 1 else (1.0, "fraction")
    return _Known(question, both, samples or (1, 1), design_effect or 1.0, width=width, unit=unit)


def _two(value: float | tuple[float, float] | None, name: str) -> tuple[float, float] | None:
    """Return a number for each of the two models, from one or two."""
    if value is None:
        return None
    both = [as_number(v) for v in np.ravel(value).tolist()]
    if len(both) not in (1, 2) or any(map(math.isnan, both)):
        raise InputError("must be one number, or one for each of the two models.", argument=name, value=value)
    return both[0], both[-1]


def _from_pilot(
    pilot: EvalComparison, samples: tuple[int, int] | None, design_effect: float | None, **numbers: Any
) -> tuple[_Known, list[str]]:
    """Read what is known from a pilot, with notes on what it does not show."""
    if twice := [name for name, value in numbers.items() if value is not None]:
        raise InputError(f"{arg(twice[0])} is known from {arg('pilot')}: leave one of them out.")
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
    binary, simple = pilot.unit == "fraction", (max(pilot.seeds), effect, pilot.metric) == (1, 1.0, "mean")
    known = _Known(
        question,
        (sampling[0], sampling[1]),
        samples or (own[0], own[1]),
        effect,
        max(1.0, pilot._degrees),  # NaN, of one group, is 1
        n,
        width=1.0 if binary else math.inf,
        fixed=fixed,
        exact=binary and simple and pilot.groups is None,
        metric=pilot.metric,
        unit=pilot.unit,
    )
    return known, notes


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
        Chance of finding the difference, and coverage of its interval: the test is made at :attr:`significance`.
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
    def significance(self) -> float:
        """Level of the two-sided test, 1 − ``level``: the chance of finding a difference where there is none."""
        return round(1 - self.level, 12)

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
        return self._known.chance(questions, effect, samples)

    def detectable_at(self, questions: int, samples: int | tuple[int, int] | None = None) -> float:
        """Difference that so many questions find with the power of the plan; infinite where they find none."""
        return self._known.detectable(questions, samples)

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per number of samples: questions, answers in all, cost and detectable difference."""
        if self.frontier:
            return dict(self.frontier)
        return {"samples": [self.samples[0]], "questions": [self.available], "detectable": [self.detectable]}

    def readable(self) -> Mapping[str, Sequence[Any]]:
        """Return one row per number of samples, the cost as a plain number and differences in points."""
        table = dict(super().readable())
        if "detectable" in table:
            table["detectable"] = [Cell(self._shown(float(gap))) for gap in self.columns()["detectable"]]
        if "cost" in table:
            table["cost"] = [Cell(format_number(float(cost))) for cost in self.frontier["cost"]]
            if np.array_equal(self.frontier["cost"], self.frontier["answers"]):
                del table["cost"]  # an answer costs 1, and nothing else does
            if self.budget is None:
                del table["detectable"]  # the difference that was asked for, in every row
        return table

    def _shown(self, gap: float) -> str:
        """Write a difference that is found, in two digits."""
        return "none" if gap >= self._known.width else points(float(f"{gap:.2g}"), self.unit)

    def sentences(self) -> str:
        """The plan in a few sentences."""
        text = []
        one, two = self.samples
        each = format_count(one, "sample") if one == two else f"{one} and {two} samples"
        test = f"with {self.power:.0%} power at the {self.significance:.2g} level"
        if self.questions is not None and self.difference is not None:
            inner = self.questions_interval
            limits = "" if inner is None else f" [{format_size(round(inner.low))}, {format_size(round(inner.high))}]"
            text.append(
                f"{self.questions:,}{limits} questions with {each} of each are needed to find a difference of"
                f" {points(self.difference, self.unit)} {test}."
            )
        if self.available is not None and self.detectable is not None:
            few = self.detectable >= self._known.width
            found = "are too few: they do not find even the largest possible difference"
            found = found if few else f"find a difference of {self._shown(self.detectable)}"
            text.append(f"{self.available:,} questions with {each} of each {found} {test}.")
        if self.frontier and len(self.frontier["samples"]) > 1:
            n, k = self.cheapest
            what = "cost least"
            if self.budget is not None:
                what = f"find the smallest difference within the budget, {self._shown(self.detectable_at(n, k))} {test}"
            if self.budget is None and (n, k, k) == (self.questions, *self.samples):
                text.append("No other number of samples costs less.")
            else:
                text.append(f"{n:,} questions with {format_count(k, 'sample')} of each {what}.")
        noise = self._known.variance() / self.design_effect - self.question_variance
        share = self.question_variance / (self.question_variance + noise)
        if noise > 0 and self.metric == "mean":
            text.append(f"{share:.0%} of the variance is how questions differ, which more samples do not reduce.")
        known = self._known
        simple = (known.unit, known.samples, known.design_effect) == ("fraction", (1, 1), 1.0)
        if self.difference and simple and known.degrees is None:
            exact = replace(known, exact=True).needed(self.difference)
            text.append(f"Single answers that are right or wrong are tested exactly, which takes {exact:,} questions.")
        if self._known.fixed and self.samples == (1, 1) and self.metric == "mean":
            text.append("The pilot has one sample of each question: the gain of further samples is not known.")
        if self.looks is not None:
            text.append(self.looks.sentences())
        return " ".join(text)


def _sequence(plan: EvalPlan, looks: int, rng: int | np.random.Generator) -> LookPlan:
    """Plan looks at equal steps whose last number of questions keeps the power."""
    if looks not in range(2, 51):
        raise InputError("must be a whole number from 2 to 50.", argument="looks", value=looks)
    true = [times * (plan.difference or 0.0) for times in (1, 2)]
    effect, double = (gap / max(plan._known.spread(gap), 1e-6) for gap in true)
    # With many values a difference of θ standard deviations is found as often as θ√n says, n being the last look.
    steps = np.arange(1, looks + 1)
    trial = sequential_design(
        (200 * steps).tolist(), (SHIFTS / math.sqrt(200 * looks)).tolist(), level=plan.level, rng=rng
    )
    # The exact test needs more questions than a normal one, here as without looks.
    more = (plan.questions or 0) * effect**2 / plan._known.factor()
    last = max(1.0, more) * (float(np.interp(plan.power, trial.found, SHIFTS)) / effect) ** 2
    places = np.maximum(np.ceil(last * steps / looks), steps + 1).astype(int)
    return plan_looks(places.tolist(), level=plan.level, effects=(0.0, effect, double), rng=rng)


def plan_looks(
    looks: Sequence[int],
    *,
    level: float = 0.95,
    effects: Sequence[float] = (0.0, 0.1, 0.2, 0.3, 0.5),
    draws: int = DRAWS,
    rng: int | np.random.Generator = 0,
) -> LookPlan:
    """Plan at which numbers of questions to compare two models, and when to stop.

    Comparing after every few questions and stopping at the first p < 0.05 finds differences that are not there. This
    plan stops at a smaller p-value, the same at each look, chosen by simulation so that the error rate over all looks
    is ``1 - level``. Questions must be asked in random order, and each look uses all that were asked so far.

    Parameters
    ----------
    looks : sequence of int
        Numbers of questions at which to look, rising: ``[100, 200, 400]``.
    level : float
        One minus the error rate over all looks.
    effects : sequence of float
        True differences, in standard deviations of a question's difference, for which to say what to expect.
    draws : int
        Simulated experiments.
    rng : int or Generator
        Determines them.

    Examples
    --------
    >>> plan = plan_looks([100, 200, 400], draws=20_000)
    >>> round(plan.nominal_level, 3), round(plan.naive_error, 2)
    (0.022, 0.11)
    """
    check_coverage(level)
    if not np.isfinite(np.asarray(effects, dtype=np.float64)).all():
        raise InputError("must hold finite numbers.", argument="effects", value=effects)
    design = sequential_design(looks, effects, level=level, draws=draws, rng=rng)
    return LookPlan(
        looks=design.looks,
        level=level,
        nominal_level=design.nominal_level,
        naive_error=design.naive_error,
        effects=tuple(map(float, effects)),
        expected_questions=design.expected,
        chance_found=design.found,
        fixed_chance=design.fixed,
        draws=draws,
        warnings=(),
    )


def check_coverage(level: float) -> None:
    """Refuse the level of a test, such as 0.05, where a coverage is asked for."""
    check_level(level)
    if level < 0.5:
        raise InputError(
            "is a coverage, one minus the level of the test.",
            argument="level",
            value=level,
            remedy=f"Pass {arg('level', round(1 - level, 12))} to test at {level:g}.",
        )


@dataclass(frozen=True, eq=False)
class LookPlan(Result):
    """At which numbers of questions to look, and how small a p-value must be to stop.

    Attributes
    ----------
    looks : tuple of int
        Numbers of questions at which the two models are compared.
    level : float
        One minus the chance that any look finds a difference where there is none.
    nominal_level : float
        The p-value below which a look stops, the same at each.
    naive_error : float
        That chance if every look stopped at ``1 - level`` instead.
    effects : tuple of float
        True differences, in standard deviations of a question's difference.
    expected_questions, chance_found : tuple of float
        For each: questions until the plan stops, on average, and the chance that it stops with a difference.
    fixed_chance : tuple of float
        The chance that a single look at the last number of questions finds it.
    draws : int
        Simulated experiments behind these numbers.
    """

    looks: tuple[int, ...]
    level: float
    nominal_level: float
    naive_error: float
    effects: tuple[float, ...]
    expected_questions: tuple[float, ...]
    chance_found: tuple[float, ...]
    fixed_chance: tuple[float, ...]
    draws: int
    warnings: tuple[str, ...]

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per true difference: what to expect."""
        found = {name: list(getattr(self, name)) for name in ("expected_questions", "chance_found", "fixed_chance")}
        return {"effect": list(self.effects), **found}

    def sentences(self) -> str:
        """The plan in a few sentences."""
        shown = [f"{n:,}" for n in self.looks]
        listed = ", ".join(shown if len(shown) <= 10 else [*shown[:4], "…", shown[-1]])
        return (
            f"Compare after {listed} questions in random order, and stop when p < {self.nominal_level:.4f}. Where there"
            f" is no difference, one is found with a chance of {format_level(1 - self.level)} over all looks;"
            f" stopping at p < {1 - self.level:.2g} instead would make that {self.naive_error:.0%}."
        )


def check_looks(
    e: Evals | Any, a: str, b: str, plan: LookPlan, metric: str | None = None, *, margin: float | None = None
) -> LookCheck:
    """Decide by a plan whether the questions so far suffice.

    Parameters
    ----------
    e : Evals, path, DataFrame or other source of :func:`load_evals`
        Questions so far, in the (random) order in which they were asked: a number at which the plan looks.
        :func:`load_evals` sorts questions by their ids: number them as they are asked, or put them in that order with
        ``e.select(questions=places)``.
    a, b : str
        The two models.
    plan : LookPlan
        Made before the first look.
    metric : str, optional
        "mean" (the default), "pass@k" or "pass^k".
    margin : float, optional
        The largest difference that does not matter: allows to stop for equivalence.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> e = Evals(rng.random((2, 100)) < [[0.9], [0.6]], ("a", "b"), np.arange(100))
    >>> check = check_looks(e, "a", "b", plan_looks([100, 200, 400], draws=20_000))
    >>> check.decision, check.next_look
    ('stop: a', None)
    """
    e = as_evals(e)
    if a == b:
        raise InputError(f"a and b are both {brief(a)}: name two models.", argument="b", value=b)
    if margin is not None and not as_number(margin) > 0:
        raise InputError("must be a number above 0, such as 0.01.", argument="margin", value=margin)
    if e.groups is not None and len(np.unique(e.groups)) < len(e.questions):
        raise InputError(
            "a plan of looks is for independent questions, and these are in groups.",
            remedy="Compare once, with compare_evals, or ask one question of each group.",
        )
    n = len(e.questions)
    if n not in plan.looks:
        later = [look for look in plan.looks if look > n]
        then = f"ask until {later[0]:,}" if later else f"pass the first {plan.looks[-1]:,}"
        raise InputError(
            f"there are {n:,} questions, and the plan looks at {', '.join(map(str, plan.looks))} only: {then}. A look"
            " that was not planned raises the error rate."
        )
    done = tuple(look for look in plan.looks if look <= n)
    pair, level = e.select([a, b]), 1 - plan.nominal_level
    a, b = pair.models
    found: list[tuple[Interval, float, str]] = []
    for look in done:
        asked = pair.select(questions=np.arange(look))
        # Graded where any model ever is, as in compare_evals.
        scores = replace(question_scores(asked, metric), binary=e.two_valued)
        tests = pair_tests(asked, metric, pairs=(np.array([0]), np.array([1])), scores=scores)
        low, high = tests.intervals(level)
        gap = Interval(float(tests.difference[0]), float(low[0]), float(high[0]), level)
        pvalue = float(tests.pvalues()[0])
        last = "stop: undecided" if look == plan.looks[-1] else "go on"
        if pvalue <= plan.nominal_level:
            last = "stop: a" if (gap.estimate > 0) == e.higher_is_better else "stop: b"
        elif margin is not None and -margin < gap.low and gap.high < margin:
            last = "stop: equivalent"
        found.append((gap, pvalue, last))
    differences, pvalues, decisions = zip(*found, strict=True)
    stops = [i for i, decision in enumerate(decisions) if decision != "go on"]
    notes = []
    if stops and stops[0] < len(done) - 1:
        notes.append(
            f"the plan already stopped at {done[stops[0]]:,} questions: that decision counts, and later questions do"
            " not change it."
        )
    decision = decisions[stops[0]] if stops else "go on"
    warn_all(notes)
    return LookCheck(
        decision=decision,
        a=a,
        b=b,
        questions=n,
        difference=differences[-1],
        pvalue=pvalues[-1],
        next_look=plan.looks[len(done)] if decision == "go on" else None,
        looked=done,
        differences=differences,
        pvalues=pvalues,
        decisions=decisions,
        margin=margin,
        plan=plan,
        unit="fraction" if e.binary else "",
        warnings=tuple(notes),
    )


@dataclass(frozen=True, eq=False)
class LookCheck(Result):
    """Decision of a plan about the questions so far.

    Attributes
    ----------
    decision : str
        "stop: a", "stop: b", "stop: equivalent", "stop: undecided" (the last look is over) or "go on". It is that of
        the first look that stopped.
    a, b : str
        The two models.
    questions : int
        Questions that were looked at.
    difference : Interval
        Score of a minus score of b at the last look, with an interval that holds at all looks together.
    pvalue : float
        At the last look, not adjusted: it is compared with the plan's ``nominal_level``.
    next_look : int or None
        Questions at which to look again.
    looked, differences, pvalues, decisions : tuple
        The same at every look so far.
    margin : float or None
        Differences up to this size do not matter.
    """

    decision: str
    a: str
    b: str
    questions: int
    difference: Interval
    pvalue: float
    next_look: int | None
    looked: tuple[int, ...]
    differences: tuple[Interval, ...]
    pvalues: tuple[float, ...]
    decisions: tuple[str, ...]
    margin: float | None
    plan: LookPlan
    unit: str
    warnings: tuple[str, ...]

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per look so far."""
        ends = {side: [getattr(d, side) for d in self.differences] for side in ("estimate", "low", "high")}
        table = {"questions": list(self.looked), "difference": ends.pop("estimate"), **ends}
        return table | {"pvalue": list(self.pvalues), "decision": list(self.decisions)}

    def sentences(self) -> str:
        """The decision in a few sentences."""
        gap = in_points(format_interval(self.difference, self.unit))
        then = "" if self.next_look is None else f" Look again at {self.next_look:,} questions."
        return (
            f"After {self.questions:,} questions the score of {self.a} minus that of {self.b} is {gap}"
            f" ({format_pvalue(self.pvalue)}; the interval holds at all planned looks together with"
            f" {format_level(self.plan.level)}). Decision: {name_decision(self.decision, self.a, self.b)}.{then}"
        )
