"""Sequential comparisons over questions: decisions, refusals, and the error rate over all looks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.evals import Evals, check_looks, plan_looks
from curvewise.evals.pairs import pair_tests


@pytest.fixture(scope="module")
def plan():
    return plan_looks([50, 100, 200], draws=20_000)


def evals(rng, n, a, b, samples=1, **fields):
    scores = (rng.random((2, n, samples)) < np.array([a, b])[:, None, None]).astype(float)
    return Evals(scores, ("a", "b"), np.arange(n), **fields)


def test_a_large_difference_stops_at_once(plan):
    check = check_looks(evals(np.random.default_rng(0), 50, 0.95, 0.4), "a", "b", plan)
    assert (check.decision, check.next_look) == ("stop: a", None)
    turned = check_looks(evals(np.random.default_rng(0), 50, 0.95, 0.4), "b", "a", plan)
    assert turned.decision == "stop: b"
    assert "Decision: stop: a is better." in check.summary()
    assert "Decision: stop: a is better." in turned.summary()
    assert turned.difference.high < 0


def test_no_difference_goes_on_and_ends_undecided(plan):
    rng = np.random.default_rng(1)
    e = evals(rng, 200, 0.5, 0.5)
    first = check_looks(e.select(questions=np.arange(50)), "a", "b", plan)
    assert (first.decision, first.next_look) == ("go on", 100)
    assert "Look again at 100 questions" in first.sentences()
    last = check_looks(e, "a", "b", plan)
    assert last.decision == "stop: undecided"
    assert last.looked == (50, 100, 200)
    assert last.difference.level == pytest.approx(1 - plan.nominal_level)


def test_equivalence_may_stop(plan):
    rng = np.random.default_rng(2)
    check = check_looks(evals(rng, 50, 0.5, 0.5, samples=40), "a", "b", plan, margin=0.08)
    assert check.decision == "stop: equivalent"


def test_an_earlier_stop_counts(plan):
    rng = np.random.default_rng(3)
    with pytest.warns(CurvewiseWarning, match="already stopped at 50 questions"):
        check = check_looks(evals(rng, 200, 0.9, 0.4), "a", "b", plan)
    assert check.decision == "stop: a"


def test_looks_that_were_not_planned_and_groups(plan):
    rng = np.random.default_rng(4)
    with pytest.raises(InputError, match=r"80 questions, and the plan looks at 50, 100, 200 only: ask until 100"):
        check_looks(evals(rng, 80, 0.5, 0.5), "a", "b", plan)
    with pytest.raises(InputError, match="in groups"):
        check_looks(evals(rng, 50, 0.5, 0.5, groups=np.arange(50) // 5), "a", "b", plan)
    with pytest.raises(InputError, match="both 'a'"):
        check_looks(evals(rng, 50, 0.5, 0.5), "a", "a", plan)


def test_the_plan_says_what_naive_looking_costs(plan):
    assert 0.018 < plan.nominal_level < 0.026
    assert 0.09 < plan.naive_error < 0.13
    assert plan.columns()["effect"][0] == 0
    assert "in random order" in plan.sentences()


@pytest.mark.slow
@pytest.mark.parametrize("samples", [1, 3])
def test_the_error_rate_over_all_looks(samples):
    """A short version of ``benchmarks/evals_coverage.py looks``: the tests behind ``check_looks``, many at a time."""
    looks, rng, sets, stopped = (30, 60, 120), np.random.default_rng(5), 200, []
    plan = plan_looks(looks, draws=50_000)
    pairs = np.arange(sets) * 2, np.arange(sets) * 2 + 1
    for _ in range(5):
        scores = (rng.random((sets, 2, 120, samples)) < rng.random((sets, 1, 120, 1))).astype(float)
        e = Evals(scores.reshape(2 * sets, 120, samples), tuple(map(str, range(2 * sets))), np.arange(120))
        found = [pair_tests(e.select(questions=np.arange(n)), pairs=pairs).pvalues() for n in looks]
        stopped.append(np.min(found, axis=0) <= plan.nominal_level)
    assert np.mean(stopped) < 0.065


def test_scores_that_are_graded_later_are_graded_at_the_first_look(plan):
    scores = (np.random.default_rng(3).random((2, 100)) < 0.5).astype(float)
    scores[0, 60] = 0.5
    check = check_looks(Evals(scores, ("a", "b"), np.arange(100)), "a", "b", plan)
    first = scores[:, :50]
    assert check.pvalues[0] == pytest.approx(stats.ttest_rel(first[0], first[1]).pvalue)


def test_one_percent_is_one_point(plan):
    scores = (np.arange(100) < np.array([[51], [50]])).astype(float)
    check = check_looks(Evals(scores, ("a", "b"), np.arange(100)), "a", "b", plan)
    assert "is 1 point [" in check.sentences()


def test_effects_that_are_not_known_are_refused():
    with pytest.raises(InputError, match=r"effects=\[0.1, nan\]: must hold finite numbers"):
        plan_looks([50, 100], effects=[0.1, float("nan")])
