"""Stopping: published constants, error rates by simulation, decisions by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_ind, ttest_rel

from curvewise.errors import InputError
from curvewise.types import Predictions
from curvewise.variance.plan import check_stopping, plan_stopping


@pytest.fixture(scope="module")
def plan():
    return plan_stopping([5, 10, 20], draws=50_000)


@pytest.mark.parametrize(("looks", "nominal"), [(1, 0.05), (2, 0.0294), (3, 0.0221), (5, 0.0158)])
def test_many_runs_give_pococks_constants(looks, nominal):
    found = plan_stopping([400 * k for k in range(1, looks + 1)], draws=60_000)
    assert found.nominal_level == pytest.approx(nominal, rel=0.06)


def test_naive_peeking_has_the_known_error():
    """Five looks at 5%: 14.2% (Armitage, McPherson and Rowe 1969)."""
    found = plan_stopping([200, 400, 600, 800, 1000], draws=60_000)
    assert found.naive_error == pytest.approx(0.142, abs=0.006)


@pytest.mark.parametrize("paired", [False, True])
def test_simulated_tests_are_the_tests_that_are_made(paired):
    """Error rates of check_stopping's t tests on drawn runs, not on their sums."""
    rng = np.random.default_rng(0)
    looks = [3, 6, 12]
    found = plan_stopping(looks, paired=paired, draws=50_000)
    a, b = rng.normal(size=(2, 20_000, 12))
    test = ttest_rel if paired else lambda x, y, axis: ttest_ind(x, y, axis=axis, equal_var=False)
    p = np.min([test(a[:, :k], b[:, :k], axis=1).pvalue for k in looks], axis=0)
    assert (p <= found.nominal_level).mean() == pytest.approx(0.05, abs=0.006)
    assert (p <= 0.05).mean() == pytest.approx(found.naive_error, abs=0.008)


@pytest.mark.slow
def test_error_rate_with_test_errors_of_a_finite_test_set(plan):
    """Runs whose errors are means of 0/1: stops with a difference in 5% at most."""
    rng = np.random.default_rng(1)
    runs = rng.binomial(200, 0.1, (2, 900, 20)) / 200
    stopped = 0
    for a, b in zip(*runs, strict=True):
        for k in plan.looks:
            decision = check_stopping(a[:k], b[:k], plan, higher_is_better=False).decision
            if decision != "go on":
                break
        stopped += decision in ("stop: a better", "stop: b better")
    assert stopped / 900 == pytest.approx(0.05, abs=0.018)


def test_decisions_agree_with_scipy(plan):
    rng = np.random.default_rng(2)
    for gap in (0.0, 0.5, 1.0, 2.0):
        a, b = rng.normal(0.2, 0.01, 10), rng.normal(0.2 + gap * 0.01, 0.01, 10)
        found = check_stopping(a, b, plan, higher_is_better=False)
        expected = [ttest_ind(a[:k], b[:k], equal_var=False).pvalue for k in (5, 10)]
        assert found.pvalues == pytest.approx(expected)
        stopped = [p <= plan.nominal_level for p in expected]
        assert (found.decision == "go on") == (not any(stopped))
        for interval, p in zip(found.differences, expected, strict=True):
            assert (0 in interval) == (p > plan.nominal_level)


@pytest.mark.slow
def test_repeated_intervals_hold_at_all_looks_together(plan):
    rng = np.random.default_rng(3)
    missed = 0
    for _ in range(800):
        a, b = rng.normal(0.5, 0.1, 20), rng.normal(0.45, 0.1, 20)
        found = check_stopping(a, b, plan, higher_is_better=False)
        missed += any(0.05 not in d for d in found.differences)
    assert missed / 800 == pytest.approx(0.05, abs=0.024)


def test_each_decision(plan):
    rng = np.random.default_rng(4)
    low, high = rng.normal(0.1, 0.001, 20), rng.normal(0.2, 0.001, 20)
    same = rng.normal(0.1, 0.001, 20)
    assert check_stopping(low[:5], high[:5], plan, higher_is_better=False).decision == "stop: a better"
    assert check_stopping(high[:5], low[:5], plan, higher_is_better=False).decision == "stop: b better"
    assert check_stopping(1 - low[:5], 1 - high[:5], plan, higher_is_better=True).decision == ("stop: a better")
    equal = check_stopping(low[:5], same[:5], plan, margin=0.01, higher_is_better=False)
    assert equal.decision == "stop: equivalent within margin"
    assert equal.next_look is None
    unsure = check_stopping(low[:5], same[:5], plan, higher_is_better=False)
    assert (unsure.decision, unsure.next_look) == ("go on", 10)
    assert "Look again at 10 runs" in unsure.summary()
    assert check_stopping(low, same, plan, higher_is_better=False).decision == "stop: undecided"
    late = check_stopping(low, high, plan, higher_is_better=False)
    assert late.decision == "stop: a better"
    assert "already stopped at 5 runs" in late.warnings[0]
    assert late.looked == (5, 10, 20)
    assert len(late.columns()["pvalue"]) == 3


def test_an_early_stop_counts_though_later_runs_blur_it(plan):
    rng = np.random.default_rng(3)
    early, late = rng.normal(0, 0.001, (2, 5)), rng.normal(0, 0.3, (2, 15))
    a, b = np.concatenate([[0.10 + early[0], 0.12 + early[1]], 0.3 + late], axis=1)
    found = check_stopping(a, b, plan, unit="loss")
    assert found.decisions[-1] == "stop: undecided"
    assert found.decision == found.decisions[0] == "stop: a better"


def test_predictions_are_compared_by_their_test_errors(plan):
    rng = np.random.default_rng(5)
    a, b = (Predictions(rng.random((10, 300)) < p, "errors") for p in (0.3, 0.4))
    by_run = check_stopping(a.errors().mean(axis=1), b.errors().mean(axis=1), plan, higher_is_better=False)
    found = check_stopping(a, b, plan)
    assert found.decision == by_run.decision == "stop: a better"
    assert found.pvalues == pytest.approx(by_run.pvalues)


def test_options_of_arrays_are_passed_on(plan):
    rng = np.random.default_rng(5)
    a, b = (rng.random((10, 8)) < p for p in (0.3, 0.4))
    plain = check_stopping(Predictions(a, "errors"), Predictions(b, "errors"), plan)
    groups = np.arange(8) // 2
    found = check_stopping(a, b, plan, axes=("runs", "examples"), groups=groups, kind="errors")
    assert found.pvalues == pytest.approx(plain.pvalues)
    mixed = check_stopping(Predictions(a, "errors"), b.T, plan, axes=("examples", "runs"), kind="errors")
    assert mixed.pvalues == plain.pvalues
    losses = check_stopping(a * 1.0, b * 1.0, plan, kind="losses", axes=("runs", "examples"))
    assert (losses.unit, plain.unit) == ("loss", "fraction")
    assert losses.pvalues == pytest.approx(plain.pvalues)
    with pytest.raises(InputError, match="one score per run, for which"):
        check_stopping(a.mean(axis=1), b.mean(axis=1), plan, axes=("runs", "examples"), higher_is_better=False)


@pytest.mark.slow
def test_unequal_spreads_from_two_runs_on():
    """Welch's test errs in more than 6% there; as checked, in less than 5.5%."""
    rng = np.random.default_rng(8)
    looks = [2, 4, 8]
    found = plan_stopping(looks, draws=50_000)
    a, b = rng.normal(0.5, 0.01, (8000, 8)), rng.normal(0.5, 0.03, (8000, 8))
    p = [ttest_ind(a[:, :k], b[:, :k], axis=1, equal_var=False).pvalue for k in looks]
    assert (np.min(p, axis=0) <= found.nominal_level).mean() > 0.06
    wrong = sum(
        any(d.startswith(("stop: a", "stop: b")) for d in check_stopping(x, y, found, higher_is_better=False).decisions)
        for x, y in zip(a[:700], b[:700], strict=True)
    )
    assert wrong / 700 < 0.055


def test_pairs_use_their_differences():
    plan = plan_stopping([5, 10], paired=True, draws=20_000)
    rng = np.random.default_rng(6)
    seeds = rng.normal(0.3, 0.05, 10)
    a, b = seeds + rng.normal(0, 0.001, 10), seeds + 0.01 + rng.normal(0, 0.001, 10)
    found = check_stopping(a, b, plan, higher_is_better=False)
    assert found.decision == "stop: a better"
    assert found.pvalue == pytest.approx(ttest_rel(a, b).pvalue)


def test_runs_are_saved(plan):
    """A large difference ends early; without one nearly all runs are made."""
    by_effect = dict(zip(plan.effects, plan.expected_runs, strict=True))
    assert by_effect[3.0] < 6 < 18 < by_effect[0.0] <= 20
    assert plan.chance_found[0] == pytest.approx(0.05, abs=0.01)
    assert all(c <= f + 0.02 for c, f in zip(plan.chance_found, plan.fixed_chance, strict=True))
    assert "stopping at p < 0.05 instead" in plan.summary()
    assert len(plan.columns()["chance_found"]) == len(plan.effects)


def test_seeds_determine_the_plan():
    one, two = (plan_stopping([3, 9], draws=5000, rng=7).to_dict() for _ in range(2))
    assert one == two


@pytest.mark.parametrize("looks", [[], [1, 2], [5, 5], [10, 5], [2.5, 4]])
def test_bad_looks(looks):
    with pytest.raises(InputError, match="rising whole numbers"):
        plan_stopping(looks)


def test_bad_input(plan):
    rng = np.random.default_rng(0)
    a = rng.random(20)
    with pytest.raises(InputError, match="train until 10"):
        check_stopping(a[:7], a[:7], plan, higher_is_better=False)
    with pytest.raises(InputError, match="pass the first 20"):
        check_stopping(rng.random(25), rng.random(25), plan, higher_is_better=False)
    with pytest.raises(InputError, match="as many"):
        check_stopping(a[:5], a[:10], plan, higher_is_better=False)
    with pytest.raises(InputError, match="margin=-1"):
        check_stopping(a[:5], a[:5], plan, margin=-1, higher_is_better=False)
    with pytest.raises(InputError, match="unit="):
        check_stopping(
            Predictions(rng.random((5, 9)) < 0.5, "errors"),
            Predictions(rng.random((5, 9)) < 0.5, "errors"),
            plan,
            unit="percent",
        )
    with pytest.raises(InputError, match="draws=10"):
        plan_stopping([5], draws=10)


def test_unequal_spreads_are_said(plan):
    """Where runs are skewed as well, the plan does not hold: see docs/known-failures.md."""
    rng = np.random.default_rng(20)
    calm, wild = 0.1 + 0.001 * rng.standard_normal(10), 0.1 + 0.004 * rng.exponential(size=10)
    told = check_stopping(calm, wild, plan, names=("old", "new"), higher_is_better=False)
    assert "the runs of new vary" in told.warnings[0]
    assert "times as much as those of old" in told.warnings[0]
    alike = check_stopping(calm, calm[::-1] + 0.001, plan, higher_is_better=False)
    assert alike.warnings == ()
    still = check_stopping(np.full(10, 0.1), wild, plan, higher_is_better=False)
    assert "the runs of b vary and not those of a" in still.warnings[0]


def test_names_must_differ():
    plan = plan_stopping([5, 10], draws=2000)
    with pytest.raises(InputError, match="names has 'a' twice"):
        check_stopping([0.1] * 5, [0.2] * 5, plan, names=("a", "a"), higher_is_better=False)


@pytest.mark.parametrize("looks", [[2], [5]])
def test_a_single_look_stops_at_the_usual_level(looks):
    # Of Welch's tests of few runs fewer than 5% reject at 0.05: the quantile of the simulated p-values was 1, and every
    # comparison stopped for a difference.
    plan = plan_stopping(looks, draws=5000)
    assert plan.nominal_level == pytest.approx(0.05)
    a, b = [0.1, 0.5, 0.2, 0.4, 0.3], [0.2, 0.3, 0.3, 0.2, 0.4]
    check = check_stopping(a[: looks[0]], b[: looks[0]], plan, higher_is_better=False)
    assert check.decision == "stop: undecided"


def test_pairs_are_matched_by_the_names_of_runs():
    rng = np.random.default_rng(0)
    hard, seeds = rng.random(500) ** 2, rng.normal(0, 0.05, (6, 1))
    a, b = ((rng.random((6, 500)) < np.clip(hard + seeds, 0, 1)).astype(np.uint8) for _ in range(2))
    names, rows = np.arange(6), np.array([3, 0, 5, 1, 4, 2])
    plan = plan_stopping([6, 12], paired=True, draws=1000)
    one, two = (Predictions(x, "errors", run_ids=names) for x in (a, b))
    moved = Predictions(b[rows], "errors", run_ids=names[rows])
    assert check_stopping(one, moved, plan).pvalue == pytest.approx(check_stopping(one, two, plan).pvalue)
    other = Predictions(b[rows], "errors", run_ids=names + 6)  # nothing in common: by place
    assert check_stopping(one, other, plan).pvalue == check_stopping(a, b[rows], plan, kind="errors").pvalue
