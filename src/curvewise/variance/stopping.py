"""When to stop adding seeds: looks at the data that were planned, and paid for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import fdtrc

from curvewise.errors import InputError
from curvewise.types import FloatArray, Predictions, Unit, as_predictions, asked_of, check_level
from curvewise.types.coercion import distinct_names
from curvewise.variance._looks import Looks, simulate_looks
from curvewise.variance.difference import (
    align_examples,
    check_same_examples,
    check_scores,
    is_scores,
    score_difference,
    score_unit,
    top_of,
)
from curvewise.variance.estimate import Estimate
from curvewise.variance.stopped import StoppingCheck, StoppingPlan
from curvewise.variance.totals import measure_totals

DRAWS = 100_000
UNEQUAL = 2.0
"""Ratio of the standard deviations of two trainings from which on their inequality is said."""
EFFECTS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)
"""Differences, in standard deviations between runs, for which a plan says what to expect."""


def plan_stopping(
    looks: Sequence[int],
    *,
    level: float = 0.95,
    paired: bool = False,
    draws: int = DRAWS,
    rng: int | np.random.Generator = 0,
) -> StoppingPlan:
    """Plan at which numbers of runs to compare two trainings, and when to stop.

    Comparing after every few seeds and stopping at the first p < 0.05 finds differences that are
    not there. This plan looks at ``looks`` only, and stops at a smaller p-value, the same at each
    look (as Pocock's design does), chosen so that the error rate over all looks is
    ``1 - level``. It is found by simulating t tests of normal run errors of equal spread, so
    it holds for few runs as well. Where one training has three times the spread of the other, 5%
    become 6% with looks from 5 runs on; with heavy tails the error rate is lower. Where runs are
    skewed and the spreads unequal, 5% become 10% to 18%, and :func:`check_stopping` warns.

    Looks at 2 to 4 runs are worth little. With looks from 2 runs on and spreads that unequal,
    Welch's test would err in 6.9% instead of 5%. :func:`check_stopping` therefore takes fewer
    degrees of freedom there, and errs in 3% to 5.5%: what a look saves it loses in power.

    Parameters
    ----------
    looks : sequence of int
        Runs of each training at which to look, rising, from 2 on: ``[5, 10, 20, 40]``.
    level : float
        One minus the error rate over all looks.
    paired : bool
        Whether run r of one training shares its seeds with run r of the other.
    draws : int
        Simulated experiments.
    rng : int or Generator
        Determines them.

    Examples
    --------
    >>> plan = plan_stopping([5, 10, 20], draws=20_000)
    >>> round(plan.nominal_level, 3), round(plan.naive_error, 2)
    (0.022, 0.11)
    """
    check_level(level)
    planned = _check_looks(looks)
    if draws < 1000:
        raise InputError(f"draws={draws} are too few to simulate an error rate: pass 1000 or more.")
    generator = np.random.default_rng(rng)
    null = simulate_looks(planned, paired, draws, generator)
    smallest = null.pvalues(0.0, 1 - level).min(axis=0)
    nominal = float(np.quantile(smallest, 1 - level, method="lower"))
    some = simulate_looks(planned, paired, max(1000, draws // 10), generator)
    expected = [_expected(some, effect, nominal, 1 - level) for effect in EFFECTS]
    return StoppingPlan(
        looks=planned,
        level=level,
        nominal_level=nominal,
        naive_error=float((smallest <= 1 - level).mean()),
        paired=paired,
        effects=EFFECTS,
        expected_runs=tuple(e[0] for e in expected),
        chance_found=tuple(e[1] for e in expected),
        fixed_chance=tuple(e[2] for e in expected),
        draws=draws,
        warnings=(),
    )


def check_stopping(
    a: Predictions | ArrayLike,
    b: Predictions | ArrayLike,
    plan: StoppingPlan,
    labels: ArrayLike | None = None,
    *,
    kind: str | None = None,
    axes: Sequence[str] | None = None,
    groups: ArrayLike | None = None,
    margin: float | None = None,
    names: tuple[str, str] = ("a", "b"),
    unit: str | None = None,
    higher_is_better: bool | None = None,
) -> StoppingCheck:
    """Decide by a plan whether the runs so far suffice.

    With fewer than five runs each training counts with its own degrees of freedom, because Welch's
    test at looks from 2 runs on errs in 6.9% instead of 5% where the spreads are unequal.

    Parameters
    ----------
    a, b : Predictions or array_like
        Runs so far, in the order in which they were made: predictions, runs × examples, or one
        score per run. As many of a as of b, and a number at which the plan looks.
    plan : StoppingPlan
        Made before the first look.
    labels : array_like, shape (examples,), optional
        True classes; needed for predicted labels.
    kind, axes, groups
        As in :func:`decompose_variance`. A plan is for this test set, on which groups change
        nothing.
    margin : float, optional
        The largest difference that does not matter: allows to stop for equivalence.
    names : tuple of str
        What to call the trainings: two different names.
    unit : {"fraction", "percent", "loss", "score"}, optional
        Of scores per run: "fraction" by default.
    higher_is_better : bool, optional
        Whether scores per run are accuracies; needed for fractions and percentages.

    Examples
    --------
    >>> plan = plan_stopping([5, 10, 20], draws=20_000)
    >>> a, b = [0.10, 0.11, 0.12, 0.11, 0.10], [0.08, 0.07, 0.08, 0.09, 0.08]
    >>> c = check_stopping(a, b, plan, higher_is_better=False)
    >>> c.decision, c.next_look
    ('stop: b better', None)
    """
    if margin is not None and not margin > 0:
        raise InputError(f"margin={margin} must be above 0, such as 0.005.")
    first, second = distinct_names(names, "names")
    names = first, second
    options = {"kind": kind, "axes": axes, "groups": groups}
    if is_scores(a) or is_scores(b):
        one, two, measure = _scores(a, b, options, score_unit(unit, higher_is_better))
    else:
        if unit is not None or higher_is_better is not None:
            raise InputError("unit= and higher_is_better= are for one score per run.")
        one, two, measure = _run_errors(a, b, labels, options)
    done = _check_runs(one, two, plan)
    estimates = [score_difference(one[:r], two[:r], plan.paired).test_set for r in done]
    decisions = [_decide(e, r, plan, margin) for e, r in zip(estimates, done, strict=True)]
    stops = [i for i, d in enumerate(decisions) if d != "go on"]
    notes = _unequal_spreads(one, two, names)
    if stops and stops[0] < len(done) - 1:
        notes.append(
            f"the plan already stopped at {done[stops[0]]:,} runs: that decision counts, and later"
            " runs do not change it."
        )
    decision = decisions[stops[0]] if stops else "go on"
    most = top_of(measure)
    differences = tuple(e.interval(1 - plan.nominal_level, most) for e in estimates)
    return StoppingCheck(
        decision=decision,
        runs=done[-1],
        difference=differences[-1],
        pvalue=estimates[-1].pvalue,
        next_look=plan.looks[len(done)] if decision == "go on" else None,
        looked=done,
        differences=differences,
        pvalues=tuple(e.pvalue for e in estimates),
        decisions=tuple(decisions),
        margin=margin,
        names=names,
        plan=plan,
        unit=measure,
        warnings=tuple(notes),
    )


def _unequal_spreads(a: FloatArray, b: FloatArray, names: tuple[str, str]) -> list[str]:
    """Warn where one training spreads far more: the plan does not hold if runs are skewed, too."""
    spreads = {name: float(np.var(x, ddof=1)) for name, x in zip(names, (a, b), strict=True)}
    calm, wild = sorted(spreads, key=spreads.__getitem__)
    if spreads[wild] == 0:
        return []
    ratio = spreads[wild] / spreads[calm] if spreads[calm] > 0 else math.inf
    if ratio < UNEQUAL**2 or 2 * float(fdtrc(len(a) - 1, len(a) - 1, ratio)) >= 0.05:
        return []
    times = f"{math.sqrt(ratio):.1f} times as much as" if math.isfinite(ratio) else "and not"
    return [
        f"the runs of {wild} vary {times} those of {calm}. Where runs are skewed as well, one in"
        " six to ten comparisons stops for a difference that is not there, instead of one in"
        " twenty: confirm it with new runs."
    ]


def _expected(
    looks: Looks, effect: float, nominal: float, alpha: float
) -> tuple[float, float, float]:
    """Runs until the plan stops, its chance to find the effect, and that of one last look."""
    pvalues = looks.pvalues(effect, alpha)
    found = pvalues <= nominal
    stopped = np.where(found.any(axis=0), found.argmax(axis=0), len(pvalues) - 1)
    runs = float(np.array(looks.runs)[stopped].mean())
    return runs, float(found.any(axis=0).mean()), float((pvalues[-1] <= alpha).mean())


def _decide(estimate: Estimate, runs: int, plan: StoppingPlan, margin: float | None) -> str:
    interval = estimate.interval(1 - plan.nominal_level)
    if estimate.pvalue <= plan.nominal_level:
        return "stop: a better" if estimate.value < 0 else "stop: b better"
    if margin is not None and -margin < interval.low and interval.high < margin:
        return "stop: equivalent within margin"
    return "stop: undecided" if runs == plan.looks[-1] else "go on"


def _scores(
    a: Any, b: Any, options: Mapping[str, Any], measure: Unit
) -> tuple[FloatArray, FloatArray, str]:
    given = [f"{name}=" for name, value in options.items() if value is not None]
    if given:
        raise InputError(f"{given[0]} is for predictions, and there is one score per run.")
    return check_scores(a, measure, "a"), check_scores(b, measure, "b"), measure.name


def _run_errors(
    a: Any, b: Any, labels: ArrayLike | None, options: Mapping[str, Any]
) -> tuple[FloatArray, FloatArray, str]:
    one, two = (
        as_predictions(p, labels, argument=name, directed=True, **asked_of(p, options))
        for p, name in ((a, "a"), (b, "b"))
    )
    two = align_examples(one, two)
    check_same_examples(one, two)
    totals = measure_totals(one), measure_totals(two)
    return totals[0].run, totals[1].run, one.unit


def _check_looks(looks: Sequence[int]) -> tuple[int, ...]:
    planned = tuple(int(n) for n in np.ravel(looks))
    whole = all(float(n) == int(n) for n in np.ravel(looks))
    rising = all(x < y for x, y in pairwise(planned))
    if not planned or not whole or planned[0] < 2 or not rising:
        raise InputError(
            f"looks={looks!r} must be rising whole numbers from 2 on, such as [5, 10, 20]."
        )
    return planned


def _check_runs(a: FloatArray, b: FloatArray, plan: StoppingPlan) -> tuple[int, ...]:
    if len(a) != len(b):
        raise InputError(f"a has {len(a)} runs and b has {len(b)}: the plan compares as many.")
    if len(a) not in plan.looks:
        later = [n for n in plan.looks if n > len(a)]
        then = f"train until {later[0]}" if later else f"pass the first {plan.looks[-1]}"
        raise InputError(
            f"a and b have {len(a)} runs, and the plan looks at {', '.join(map(str, plan.looks))}"
            f" only: {then}. A look that was not planned is not paid for."
        )
    return tuple(n for n in plan.looks if n <= len(a))
