"""Runs that narrow an interval of a scaling law."""

from __future__ import annotations

import json

import numpy as np
import pytest

import curvewise as cw
from curvewise.errors import CurvewiseWarning, InputError, quietly
from curvewise.scaling import ScalingRuns, fit_scaling_law

C = np.repeat(np.geomspace(1e18, 1e20, 4), 4)
N = np.sqrt(C / 120) * np.tile(np.geomspace(0.25, 4, 4), 4)
D = C / 6 / N
BUDGET = 5e21


def trained(n, d, seed, noise=0.002):
    z = np.random.default_rng(seed).standard_normal(len(n))
    return (1.8172 + 482.01 / n**0.3478 + 2085.43 / d**0.3658) * np.exp(noise * z)


def make_law(seed=0, **options):
    return fit_scaling_law(ScalingRuns(N, D, trained(N, D, seed), unit="loss"), loss="squares", **options)


def log_width(interval):
    return np.log(interval.high / interval.low)


def scatter(law):
    residual = np.log(law.runs.loss / law.loss_at(law.runs.params, law.runs.tokens))
    return np.sqrt((residual**2).sum() / (len(residual) - 5))


@pytest.mark.slow
@pytest.mark.parametrize("quantity", ["params", "loss"])
def test_the_promised_width_comes_out(quantity):
    ratios = []
    for seed in range(5):
        law = make_law(seed)
        plan = cw.plan_scaling_runs(law, BUDGET, quantity=quantity, largest=1e21)
        n, d = np.array(plan.params), np.array(plan.tokens)
        loss = np.concatenate([law.runs.loss, trained(n, d, 100 + seed)])
        after = fit_scaling_law(
            ScalingRuns(np.concatenate([N, n]), np.concatenate([D, d]), loss, unit="loss"), loss="squares"
        )
        width = log_width(getattr(after.compute_optimal(BUDGET), quantity))
        # Both widths follow the estimated scatter, which 16 runs know to a fifth only: compare for one scatter.
        ratios.append(width / scatter(after) / (log_width(plan.current) / scatter(law)) / plan.expected_factor)
        assert plan.expected_factor <= 0.525
    assert 0.85 < np.median(ratios) < 1.15


def test_a_plan_says_what_it_costs():
    law = make_law()
    plan = cw.plan_scaling_runs(law, BUDGET, largest=1e21)
    rows = {name: np.asarray(column) for name, column in plan.columns().items()}
    assert list(rows) == ["params", "tokens", "flops", "tokens_per_param"]
    assert plan.cost == pytest.approx(rows["flops"].sum())
    assert rows["flops"].max() <= 1e21 * 1.001
    assert (np.diff(np.log(rows["flops"])) > -1e-9).all()
    assert rows["params"].min() >= N.min() / 2
    ratio, seen = rows["tokens_per_param"], law.runs.tokens / law.runs.params
    assert seen.min() / 2 < ratio.min()
    assert ratio.max() < 2 * seen.max()
    assert plan.current == law.compute_optimal(BUDGET).params
    # Repeating the whole design three times would halve the interval, too.
    assert plan.cost < 3 * plan.spent
    assert "expected to narrow it to" in plan.summary()
    json.dumps(plan.to_dict())
    assert "tokens per param" in plan.table()


def test_a_tighter_goal_costs_more():
    law = make_law()
    with quietly():
        mild, hard = (cw.plan_scaling_runs(law, BUDGET, factor=f, largest=1e21, most=40) for f in (0.8, 0.5))
    assert mild.cost < hard.cost
    assert mild.expected_factor > hard.expected_factor


def test_parameters_can_be_asked_for():
    law = make_law()
    plan = cw.plan_scaling_runs(law, BUDGET, quantity="alpha", factor=0.7, largest=1e21)
    assert plan.current == law.interval("alpha")
    assert plan.expected_factor < 0.75


def test_a_goal_out_of_reach_is_said():
    with pytest.warns(CurvewiseWarning, match="No plan of up to 1 run"):
        plan = cw.plan_scaling_runs(make_law(), BUDGET, most=1)
    assert len(plan.params) == 1
    assert plan.expected_factor > 0.5


def test_only_the_last_checkpoints_count():
    share = np.array([0.3, 0.6, 1.0])
    n, d = np.repeat(N, 3), np.concatenate([v * share for v in D])
    run = np.repeat(np.arange(len(N)), 3).astype(str)
    law = fit_scaling_law(ScalingRuns(n, d, trained(n, d, 0), run=run, unit="loss"), loss="squares")
    with quietly():
        plan = cw.plan_scaling_runs(law, BUDGET, largest=1e21)
    assert plan.spent == pytest.approx((6 * N * D).sum())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quantity": "tokens"}, "params"),
        ({"factor": 1.5}, "between 0 and 1"),
        ({"most": 0}, "at least 1"),
        ({"most": float("nan")}, "whole number"),
        ({"largest": -1.0}, "above 0"),
        ({"largest": 1e10}, "less than any run"),
        ({"budget": 0.0}, "above 0"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        cw.plan_scaling_runs(make_law(), **({"budget": BUDGET} | options))


def test_a_law_is_needed():
    with pytest.raises(InputError, match="pass what fit_scaling_law gives"):
        cw.plan_scaling_runs({"params": N}, BUDGET)


@pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")
def test_the_form_that_is_planned_for_is_the_one_that_leads(made):
    # One tied law has the largest weight, but the two additive ones together have more: they are what is reported.
    law = cw.fit_scaling_law(made(noise=0.01, seed=26, sizes=5), form="auto", loss="squares")
    of_form = {form: sum(w for k, w in law.weights.items() if k.startswith(form)) for form in ("additive", "tied")}
    assert max(law.weights, key=law.weights.__getitem__).startswith("tied")
    assert of_form["additive"] > of_form["tied"]
    # With one exponent for both there would be nothing to narrow, whatever a run may take.
    with pytest.raises(InputError, match="less than any run takes"):
        cw.plan_scaling_runs(law, 1e22, quantity="exponent", largest=1.0)
