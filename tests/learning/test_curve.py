"""Samples to reach an error, budgets, plans: against the curve's own formula and simulation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import curvewise as cw
from curvewise.errors import CurvewiseWarning
from curvewise.learning.fit import build_curve
from curvewise.learning.power import group_runs

N = np.array([25, 50, 100, 200, 400.0])
RUNS = np.array([16, 8, 4, 2, 1])


def draw(rng, alpha=8.0, eta=150.0, gamma=-0.5, slope=40.0, runs=RUNS):
    n = np.repeat(N, runs)
    return n, alpha + eta * n**gamma + rng.standard_normal(len(n)) * np.sqrt(0.02 + slope / n)


def test_samples_to_reach_inverts_the_curve(simulated):
    curve = cw.fit_learning_curve(*simulated, unit="percent")
    answer = curve.samples_to_reach(14.0)
    assert curve.error_at(answer.estimate) == pytest.approx(14.0, abs=1e-6)
    assert curve.interval_at(answer.low).error.low == pytest.approx(14.0, abs=1e-3)
    assert curve.interval_at(answer.high).error.high == pytest.approx(14.0, abs=1e-3)
    assert "14%" in answer.summary()


@pytest.fixture(scope="module")
def drawn():
    """Curves fitted to draws of 8 + 150 n^-½, on which coverage is counted."""
    rng = np.random.default_rng(5)
    return [build_curve(group_runs(*draw(rng)), cw.types.Unit("percent")) for _ in range(120)]


@pytest.mark.slow
def test_samples_to_reach_covers_the_truth(drawn):
    """8 + 150 n^-½ is 12 at n = 1406; the interval should hold that 95% of the time."""
    truth = (150 / 4) ** 2
    hits = []
    for curve in drawn:
        answer = curve.samples_to_reach(12.0)
        hits.append(answer.low <= truth <= answer.high)
    assert np.mean(hits) > 0.9


@pytest.mark.slow
def test_probability_of_never_is_calibrated(drawn):
    """With the target at the true asymptote it is uniform; far below it is 1, far above 0."""
    chance = []
    for curve in drawn:
        chance.append(curve.samples_to_reach(8.0).probability_never)
    assert abs(np.mean(chance) - 0.5) < 0.08
    assert 0.02 < np.mean(np.array(chance) < 0.1) < 0.2
    assert curve.samples_to_reach(0.0).probability_never == 1.0
    assert curve.samples_to_reach(15.0).probability_never < 0.01


def test_an_error_that_is_never_reached():
    n, error = draw(np.random.default_rng(0), alpha=30, slope=1)
    answer = cw.fit_learning_curve(n, error, unit="percent").samples_to_reach(10.0)
    assert answer.estimate == np.inf
    assert answer.probability_never > 0.99
    assert "never" in answer.summary()


def test_reach_beyond_the_data_is_flagged(simulated):
    curve = cw.fit_learning_curve(*simulated, unit="percent")
    answer = curve.samples_to_reach(curve.error_at(400 * 6))
    assert answer.estimate == pytest.approx(2400)
    assert any("n = 2,400 lies beyond four times the largest size measured (1,600)" in w for w in answer.warnings)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["auto", "constrained"])
def test_ensembles_answer_too(simulated, form):
    curve = cw.fit_learning_curve(*simulated, unit="percent", form=form)
    answer = curve.samples_to_reach(13.0)
    assert curve.error_at(answer.estimate) == pytest.approx(13.0, abs=1e-6)
    assert answer.low <= answer.estimate <= answer.high
    assert 0 <= answer.probability_never <= 1
    assert answer.kind == "prediction"


def test_target_in_the_wrong_unit_is_refused(simulated):
    n, error = simulated
    curve = cw.fit_learning_curve(n, error / 100)
    with pytest.raises(cw.InputError, match="unit='percent'"):
        curve.samples_to_reach(14.0)


def test_scores_are_reached_from_below(simulated):
    n, error = simulated
    curve = cw.fit_learning_curve(n, 100 - error, unit="score", higher_is_better=True)
    answer = curve.samples_to_reach(86.0)
    assert curve.error_at(answer.estimate) == pytest.approx(86.0, abs=1e-6)
    assert answer.low < answer.estimate < answer.high


def test_budget_adds_up(simulated):
    pytest.importorskip("pandas")
    curve = cw.fit_learning_curve(*simulated, unit="percent")
    table = curve.budget([400, 800, 1600], cost_per_sample=0.5)
    assert table["added"].tolist() == [0, 400, 1200]
    assert table["cost"].tolist() == [0, 200, 600]
    assert table["gain"][0] == pytest.approx(0)
    assert table["gain"][2] == pytest.approx(curve.error_at(400) - curve.error_at(1600))
    assert (table["gain_low"] <= table["gain"] + 1e-9).all()
    assert (table["gain"] <= table["gain_high"] + 1e-9).all()
    assert table["gain_high"][0] == pytest.approx(0, abs=1e-9)
    assert table["gain_per_cost"][1] == pytest.approx(table["gain"][1] / 200)
    with pytest.raises(cw.InputError, match="cost_per_sample"):
        curve.budget([800], cost_per_sample=-1)


@pytest.mark.slow
def test_plan_halves_the_width_when_it_is_carried_out():
    """Simulate the present and the planned design: the median width must fall as promised."""
    rng = np.random.default_rng(2)
    curve = build_curve(group_runs(*draw(rng)), cw.types.Unit("percent"))
    plan = cw.plan_sizes(curve, at=400)
    assert plan.reached
    assert plan.width_then <= 0.5 * plan.width_now
    more = RUNS + plan.add.astype(int)
    widths = {
        name: np.median(
            [
                build_curve(group_runs(*draw(rng, runs=runs)), cw.types.Unit("percent")).interval_at(400).error.width
                for _ in range(60)
            ]
        )
        for name, runs in {"now": RUNS, "then": more}.items()
    }
    assert widths["then"] / widths["now"] == pytest.approx(0.5, abs=0.12)


def test_planned_width_is_that_of_the_data():
    """At √k times the width of k times the runs, and near the profile's own width."""
    rng = np.random.default_rng(4)
    few, many = (build_curve(group_runs(*draw(rng, runs=k * RUNS)), cw.types.Unit("percent")) for k in (2, 8))
    now = [cw.plan_sizes(c, at=400).width_now for c in (few, many)]
    assert now[0] / now[1] == pytest.approx(2, rel=0.3)
    assert now[0] == pytest.approx(few.interval_at(400).error.width, rel=0.3)


def test_plan_says_when_it_cannot(simulated):
    curve = cw.fit_learning_curve(*simulated, unit="percent")
    plan = cw.plan_sizes(curve, at=1e6, sizes=[25], max_runs=5, factor=0.1)
    assert not plan.reached
    assert "not reached" in plan.summary()
    with pytest.raises(cw.InputError, match="factor"):
        cw.plan_sizes(curve, factor=2)
    with pytest.raises(cw.InputError, match="form='power'"):
        cw.plan_sizes(cw.fit_learning_curve(*simulated, unit="percent", form="auto"))


def test_a_target_that_lies_below_the_whole_band_is_never_reached():
    """γ outside the search pulls the fitted curve below the target; the interval knows better."""
    n = np.repeat(N, RUNS)
    noise = np.random.default_rng(1).standard_normal(len(n)) * 0.1 * np.sqrt(25 / n)
    curve = build_curve(group_runs(n, 30 + 20 * (n / 25) ** -1.2 + noise), cw.types.Unit("percent"))
    answer = curve.samples_to_reach(29.5)
    assert answer.low > 1e5
    assert answer.probability_never > 0.99


def test_a_target_already_reached():
    rng = np.random.default_rng(0)
    n = np.repeat(N, 8)
    flat = build_curve(group_runs(n, 20 + 0.1 * rng.standard_normal(len(n))), cw.types.Unit("percent"))
    assert flat.samples_to_reach(25.0).probability_never < 0.01


def test_rising_curves_name_no_size():
    n = np.repeat(N, 4)
    rising = build_curve(
        group_runs(n, 10 + 3 * np.log(n / 25) + np.tile([-0.1, 0, 0.1, 0.2], 5)), cw.types.Unit("percent")
    )
    answer = rising.samples_to_reach(15.0)
    assert np.isnan(answer.estimate)
    assert "rises" in answer.summary()
    assert rising.samples_to_reach(5.0).estimate == np.inf


def test_plans_need_something_to_narrow(simulated):
    few = build_curve(group_runs([100, 200], [20.0, 15.0]), cw.types.Unit("percent"))
    with pytest.raises(cw.InputError, match="first train"):
        cw.plan_sizes(few)
    curve = cw.fit_learning_curve(*simulated, unit="percent")
    for bad in ({"sizes": []}, {"sizes": [100, np.inf]}, {"max_runs": 0}):
        with pytest.raises(cw.InputError, match=next(iter(bad))):
            cw.plan_sizes(curve, **bad)


def test_gains_are_covered(drawn):
    """From 400 to 1600 samples, 8 + 150 n^-½ falls by 3.75 points."""
    pytest.importorskip("pandas")
    hits = []
    for curve in drawn:
        row = curve.budget([1600]).iloc[0]
        hits.append(row["gain_low"] <= 3.75 <= row["gain_high"])
    assert np.mean(hits) > 0.9


def test_sizes_read_alike_in_the_table_and_in_the_sentence():
    n = np.repeat([100, 200, 400, 800], 3)
    curve = cw.fit_learning_curve(n, 0.05 + 2 * n**-0.5 + np.tile([-0.004, 0, 0.004], 4))
    found = replace(curve.samples_to_reach(0.06), estimate=202_100.0, low=7_204.0, high=np.inf)
    (cell,) = found.readable()["n"]
    assert (cell.text, cell.after) == ("202,000", " [7,200, ∞]")
    assert "n = 202,000 (95% confidence interval 7,200 to ∞)" in found.sentences()


class TestFarOut:
    """A curve far beyond its sizes, and a target that they reach already."""

    curve = cw.fit_learning_curve([100, 200, 400, 800] * 2, [0.22, 0.16, 0.12, 0.09, 0.23, 0.162, 0.121, 0.091])

    def test_predicting_beyond_four_times_the_largest_size_warns(self) -> None:
        pytest.importorskip("pandas")
        self.curve.predict([3200])
        with pytest.warns(CurvewiseWarning, match=r"n = 10,000 is more than four times the largest size"):
            self.curve.predict([10_000])

    def test_a_target_below_which_a_size_was_measured_is_reached(self) -> None:
        reached = self.curve.samples_to_reach(0.14)
        assert reached.reached_at == 400
        assert "already reached at n = 400" in reached.sentences()
        assert "never reached" not in reached.sentences()
        assert self.curve.samples_to_reach(0.05).reached_at is None
