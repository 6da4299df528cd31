"""Sequential comparisons: at which numbers of questions to look, and when to stop asking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, arg, warn_all
from curvewise.evals.evals import Evals
from curvewise.evals.pairs import pair_tests
from curvewise.evals.questions import question_scores
from curvewise.evals.score import in_points
from curvewise.stats.tests import sequential_design
from curvewise.text import format_interval, format_pvalue
from curvewise.types.results import Interval, Result, check_level

DRAWS = 100_000
"""Simulated experiments behind a plan."""


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
        return {
            "effect": list(self.effects),
            "expected_questions": list(self.expected_questions),
            "chance_found": list(self.chance_found),
            "fixed_chance": list(self.fixed_chance),
        }

    def sentences(self) -> str:
        """The plan in a few sentences."""
        shown = [f"{n:,}" for n in self.looks]
        listed = ", ".join(shown if len(shown) <= 10 else [*shown[:4], "…", shown[-1]])
        return (
            f"Compare after {listed} questions in random order, and stop when p < {self.nominal_level:.4f}. Where there"
            f" is no difference, one is found with a chance of {1 - self.level:.0%} over all looks; stopping at p <"
            f" {1 - self.level:.2g} instead would make that {self.naive_error:.0%}."
        )


def check_looks(
    e: Evals, a: str, b: str, plan: LookPlan, metric: str | None = None, *, margin: float | None = None
) -> LookCheck:
    """Decide by a plan whether the questions so far suffice.

    Parameters
    ----------
    e : Evals
        Questions so far, in the (random) order in which they were asked: a number at which the plan looks.
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
    if a == b:
        raise InputError(f"a and b are both {a!r}: name two models.", argument="b", value=b)
    if margin is not None and not margin > 0:
        raise InputError("must be above 0, such as 0.01.", argument="margin", value=margin)
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
    pair, rows = e.select([a, b]), []
    for look in done:
        asked = pair.select(questions=np.arange(look))
        # Graded where any model ever is, as in compare_evals.
        scores = replace(question_scores(asked, metric), binary=e.binary)
        tests = pair_tests(asked, metric, pairs=(np.array([0]), np.array([1])), scores=scores)
        low, high = tests.intervals(1 - plan.nominal_level)
        gap = Interval(float(tests.difference[0]), float(low[0]), float(high[0]), 1 - plan.nominal_level)
        rows.append((gap, float(tests.pvalues()[0])))
    decisions = [
        _decide_look(gap, p, look == plan.looks[-1], plan, margin, e.higher_is_better)
        for look, (gap, p) in zip(done, rows, strict=True)
    ]
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
        difference=rows[-1][0],
        pvalue=rows[-1][1],
        next_look=plan.looks[len(done)] if decision == "go on" else None,
        looked=done,
        differences=tuple(gap for gap, _ in rows),
        pvalues=tuple(p for _, p in rows),
        decisions=tuple(decisions),
        margin=margin,
        plan=plan,
        unit="fraction" if e.binary else "",
        warnings=tuple(notes),
    )


def _decide_look(
    gap: Interval, pvalue: float, last: bool, plan: LookPlan, margin: float | None, higher_is_better: bool
) -> str:
    if pvalue <= plan.nominal_level:
        return "stop: a" if (gap.estimate > 0) == higher_is_better else "stop: b"
    if margin is not None and -margin < gap.low and gap.high < margin:
        return "stop: equivalent"
    return "stop: undecided" if last else "go on"


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
        return {
            "questions": list(self.looked),
            "difference": [d.estimate for d in self.differences],
            "low": [d.low for d in self.differences],
            "high": [d.high for d in self.differences],
            "pvalue": list(self.pvalues),
            "decision": list(self.decisions),
        }

    def sentences(self) -> str:
        """The decision in a few sentences."""
        gap = in_points(format_interval(self.difference, self.unit))
        then = "" if self.next_look is None else f" Look again at {self.next_look:,} questions."
        return (
            f"After {self.questions:,} questions the score of {self.a} minus that of {self.b} is {gap}"
            f" ({format_pvalue(self.pvalue)}; the interval holds at all planned looks together with"
            f" {self.plan.level:.0%}). Decision: {self.decision}.{then}"
        )
