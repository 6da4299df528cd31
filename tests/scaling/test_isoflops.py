"""IsoFLOP fits against polyfit, a known law, and bad designs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.scaling import fit_isoflops, fit_power_law


def _runs(noise=0.0, seed=0, budgets=5, sizes=7, wide=3.0):
    c = np.repeat(np.geomspace(1e18, 1e21, budgets), sizes)
    n = np.sqrt(c / 120) * np.tile(np.geomspace(1 / wide, wide, sizes), budgets)
    loss = 1.8 + 480 / n**0.35 + 2000 / (c / 6 / n) ** 0.37
    return {"params": n, "flops": c, "loss": loss * np.exp(noise * np.random.default_rng(seed).standard_normal(len(n)))}


def test_parabolas_are_those_of_polyfit():
    runs = _runs(noise=0.002)
    fit = fit_isoflops(runs)
    for k, c in enumerate(np.unique(runs["flops"])):
        rows = runs["flops"] == c
        bend, slope, level = np.polyfit(np.log(runs["params"][rows]), runs["loss"][rows], 2)
        assert np.log(fit.optimum[k]) == pytest.approx(-slope / (2 * bend), rel=1e-6)
        assert fit.optimum_loss[k] == pytest.approx(level - slope**2 / (4 * bend), rel=1e-6)
    line = stats.linregress(np.log(fit.budget), np.log(fit.optimum))
    half = stats.t.ppf(0.975, 3) * line.stderr
    assert fit.params_exponent.estimate == pytest.approx(line.slope)
    assert fit.params_exponent.low == pytest.approx(line.slope - half)
    assert fit.params_coefficient.estimate == pytest.approx(np.exp(line.intercept))
    assert fit.tokens_exponent.estimate == pytest.approx(1 - line.slope)
    # D* = C/6N* at any budget
    with pytest.warns(CurvewiseWarning, match="100.0 times the largest run") as told:
        best = fit.compute_optimal([1e22, 1e23])
    assert [str(w.message) for w in told] == list(best.warnings)
    np.testing.assert_allclose(best.columns()["tokens"], np.array([1e22, 1e23]) / 6 / best.columns()["params"])
    tokens = fit.tokens_coefficient.estimate * 1e22**fit.tokens_exponent.estimate
    assert best.tokens[0].estimate == pytest.approx(tokens)


def test_a_known_law_is_found_closely():
    fit = fit_isoflops(_runs())
    assert fit.params_exponent.estimate == pytest.approx(0.37 / 0.72, abs=0.01)
    assert not fit.warnings


@pytest.mark.slow
def test_the_error_of_a_minimum_is_its_spread_in_simulations():
    fits = [fit_isoflops(_runs(noise=0.002, seed=s)) for s in range(200)]
    spread = np.std([np.log(f.optimum) for f in fits], axis=0)
    stated = np.sqrt(np.mean([f.optimum_std**2 for f in fits], axis=0))
    np.testing.assert_allclose(stated, spread, rtol=0.2)


def test_a_weighted_power_law_is_that_of_weighted_least_squares():
    rng = np.random.default_rng(0)
    x, std = np.geomspace(1e18, 1e21, 7), rng.uniform(0.02, 0.3, 7)
    y = 0.1 * x**0.5 * np.exp(std * rng.standard_normal(7))
    law = fit_power_law(x, y, std=std)
    (slope, start), covariance = np.polyfit(np.log(x), np.log(y), 1, w=1 / std, cov=True)
    assert law.exponent.estimate == pytest.approx(slope)
    assert np.log(law.coefficient.estimate) == pytest.approx(start)
    half = stats.t.ppf(0.975, 5) * np.sqrt(covariance[0, 0])
    assert law.exponent.width == pytest.approx(2 * half, rel=1e-6)
    with pytest.raises(InputError, match="needs two"):
        fit_power_law([1e18], [1e8])


def test_a_budget_without_an_interior_minimum_is_dropped_and_named():
    runs = _runs()
    small = (runs["flops"] > 1e18) | (runs["params"] < 5e7)
    runs["loss"] = np.where(
        runs["flops"] == 1e18, 5.0 + 1e-8 * runs["params"] + (runs["params"] / 1e9) ** 2, runs["loss"]
    )
    with pytest.warns(CurvewiseWarning, match=r"1e\+18 FLOP: left out"):
        fit = fit_isoflops({k: v[small] for k, v in runs.items()})
    assert len(fit.budget) == 4
    assert [round(np.log10(c)) for c, _ in fit.dropped] == [18]


def test_loss_that_rises_towards_the_middle_has_no_minimum():
    runs = _runs()
    first = runs["flops"] == 1e18
    runs["loss"] = np.where(first, 4 - 0.1 * np.log(runs["params"] / 9e7) ** 2, runs["loss"])
    with pytest.warns(CurvewiseWarning, match="no minimum in model size"):
        fit = fit_isoflops(runs)
    assert len(fit.dropped) == 1


def test_too_few_budgets():
    with pytest.raises(InputError, match="a power law needs two"):
        fit_isoflops(_runs(budgets=1))
    with pytest.warns(CurvewiseWarning, match="no intervals"):
        fit = fit_isoflops(_runs(budgets=2))
    assert np.isnan(fit.params_exponent.low)
    # An interval that is not known cannot be left as the window moves.
    assert not fit.sensitivity(1e23).outside


def test_nominal_budgets_group_runs_that_scatter():
    runs = _runs(noise=0.001)
    rng = np.random.default_rng(1)
    off = runs | {"flops": runs["flops"] * np.exp(rng.uniform(-0.2, 0.2, len(runs["flops"])))}
    fit = fit_isoflops(off, budgets=np.geomspace(1e18, 1e21, 5))
    assert fit.rows.tolist() == [7] * 5
    for wrong in ([0.0], [np.nan], []):
        with pytest.raises(InputError, match="budgets"):
            fit_isoflops(off, budgets=wrong)


def test_flagged_rows_are_a_window_of_their_own():
    runs = _runs(noise=0.001)
    flagged = np.arange(35) % 7 == 6
    fit = fit_isoflops(runs | {"flagged": flagged})
    found = fit.sensitivity(5e22, drop=[])
    part = fit_isoflops({k: v[~flagged] for k, v in runs.items()})
    assert found.window == ("all rows", "without the 5 flagged rows")
    assert found.params[1] == pytest.approx(part.compute_optimal(5e22).params.estimate)


@pytest.mark.parametrize(
    ("x", "y", "std", "message"),
    [
        ([1, 2, 3], [1, 2], None, "one length"),
        ([1, -2, 3], [1, 2, 3], None, "x must hold"),
        ([1, 2, 3], [1, 0, 3], None, "y must hold"),
        ([1, 2, 3], [1, 2, 3], [0.1, 0, 0.1], "std must hold"),
        (1, 2, None, "one length"),
    ],
)
def test_points_of_a_power_law_are_checked(x, y, std, message):
    with pytest.raises(InputError, match=message):
        fit_power_law(x, y, std=std)


def test_no_budget_is_no_question():
    with pytest.raises(InputError, match="budget"):
        fit_isoflops(_runs()).compute_optimal([])


def test_runs_that_are_no_budget_are_left_out():
    # A chain of runs, each within a tenth of the next: gaps do not tell their budgets apart.
    runs = _runs()
    c = np.geomspace(2e21, 2e22, 30)
    n = np.sqrt(c / 120) * 10 ** np.random.default_rng(0).uniform(-0.5, 0.5, 30)
    chain = {"params": n, "flops": c, "loss": 1.8 + 480 / n**0.35 + 2000 / (c / 6 / n) ** 0.37}
    both = {k: np.concatenate([runs[k], chain[k]]) for k in runs}
    with pytest.warns(CurvewiseWarning, match="its runs differ in compute by 10 times"):
        fit = fit_isoflops(both)
    assert fit.params_exponent.estimate == fit_isoflops(runs).params_exponent.estimate
    assert len(fit.budget) == 5


def test_checkpoints_of_unnamed_runs_are_said():
    # The same nine trainings pass by three budgets. There are intervals, unlike those of a law of such rows.
    n, c = (v.ravel() for v in np.meshgrid(np.geomspace(3e7, 3e9, 9), [1e18, 1e19, 1e20]))
    loss = 1.8 + 480 / n**0.35 + 2000 / (c / 6 / n) ** 0.37
    with pytest.warns(CurvewiseWarning, match="rest on one training, which makes intervals too narrow"):
        fit = fit_isoflops({"params": n, "flops": c, "loss": loss, "step": c / n})
    assert fit.params_exponent.width > 0
    assert "no intervals" not in fit.summary()
