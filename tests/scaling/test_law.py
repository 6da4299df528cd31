"""Fits of scaling laws: known laws, other optimisers, optima by brute force, intervals."""

from __future__ import annotations

import json
import pickle
import warnings

import numpy as np
import pytest
from scipy import optimize, stats

import curvewise as cw
from curvewise.errors import CurvewiseWarning, InputError
from curvewise.scaling import ScalingRuns, fit_scaling_law, plan_scaling_runs
from curvewise.scaling.optimum import measure_sensitivity
from curvewise.types.results import Interval

quiet = pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")
TRUTH = {"E": 1.8, "A": 480.0, "B": 2000.0, "alpha": 0.35, "beta": 0.37}


@quiet
@pytest.mark.parametrize("loss", ["huber", "squares", "linear"])
@pytest.mark.parametrize("form", ["additive", "coupled"])
def test_a_law_without_noise_is_found_exactly(made, form, loss):
    law = fit_scaling_law(made(), form=form, loss=loss)
    for name, value in TRUTH.items():
        assert getattr(law, name) == pytest.approx(value, rel=2e-3), name
    assert law.exponent == pytest.approx(0.37 / 0.72, rel=1e-3)
    assert law.objective < 1e-12


@quiet
def test_a_tied_law_is_found_exactly(made):
    law = fit_scaling_law(made(beta=0.35), form="tied", loss="squares")
    assert law.alpha == law.beta
    assert law.alpha == pytest.approx(0.35, rel=1e-5)
    assert law.exponent == 0.5


@quiet
@pytest.mark.parametrize("g", [0.5, 2.0])
def test_a_coupled_law_is_found_exactly(made, g):
    law = fit_scaling_law(made(g=g), form="coupled", loss="squares")
    assert law.further["g"] == pytest.approx(g, rel=1e-3)
    assert law.alpha == pytest.approx(0.35, rel=1e-3)
    assert pytest.approx(1.8, rel=1e-3) == law.E


@quiet
def test_a_law_of_repeated_data_is_found():
    rng = np.random.default_rng(0)
    n, u = 10 ** rng.uniform(7.3, 9.7, 150), 10 ** rng.uniform(8, 10, 150)
    d = u * np.exp(rng.uniform(0, np.log(60), 150))
    # The equations of Muennighoff et al. (2023), written out.
    best = (u**0.37 * 0.35 * 480 / (0.37 * 2000)) ** (1 / 0.35)
    base = np.minimum(best, n)
    of_n = base * (1 + 5 * (1 - np.exp(-(n / base - 1) / 5)))
    of_d = u * (1 + 15 * (1 - np.exp(-(d / u - 1) / 15)))
    runs = {"params": n, "tokens": d, "unique_tokens": u, "loss": 1.8 + 480 / of_n**0.35 + 2000 / of_d**0.37}
    law = fit_scaling_law(runs, form="repeated", loss="squares")
    assert law.further["R_D"] == pytest.approx(15, rel=1e-3)
    assert law.further["R_N"] == pytest.approx(5, rel=1e-3)
    assert law.alpha == pytest.approx(0.35, rel=1e-3)
    # Ten billion distinct tokens at hand and compute for far more: repeating pays, but less than fresh tokens.
    fresh, scarce = law.compute_optimal(1e22), law.compute_optimal(1e22, unique_tokens=1e9)
    assert scarce.loss.estimate > fresh.loss.estimate
    n_grid = np.geomspace(1e8, 1e12, 20001)
    assert scarce.loss.estimate == pytest.approx(law.loss_at(n_grid, 1e22 / 6 / n_grid, 1e9).min(), rel=1e-7)
    assert scarce.params.low <= scarce.params.estimate <= scarce.params.high


def _objective(theta, runs, delta, logs=True):
    """The sum of Huber terms, written apart from the library: E, log A, log B, α, β."""
    e, a, b, alpha, beta = theta
    x, y = np.log(runs["params"]), np.log(runs["tokens"])
    predicted = e + np.exp(a - alpha * x) + np.exp(b - beta * y)
    gap = np.abs(np.log(predicted) - np.log(runs["loss"])) if logs else np.abs(predicted - runs["loss"])
    return float(np.where(gap <= delta, 0.5 * gap**2, delta * (gap - 0.5 * delta)).sum())


@quiet
@pytest.mark.parametrize("seed", range(4))
def test_least_squares_of_scipy_agrees(made, seed):
    runs = made(noise=0.01, seed=seed)
    law = fit_scaling_law(runs, loss="squares")
    x, y = np.log(runs["params"]), np.log(runs["tokens"])

    def gaps(t):
        return np.log(t[0] + np.exp(t[1] - t[3] * x) + np.exp(t[2] - t[4] * y)) - np.log(runs["loss"])

    start = [1.8, np.log(480), np.log(2000), 0.35, 0.37]
    found = optimize.least_squares(gaps, start, x_scale=[0.1, 1, 1, 0.1, 0.1], xtol=1e-15, ftol=1e-15, gtol=1e-15)
    assert law.objective == pytest.approx(found.cost, rel=1e-8)
    np.testing.assert_allclose([law.E, law.alpha, law.beta], found.x[[0, 3, 4]], rtol=1e-4)
    # Far from its bounds the profile interval of so many runs is close to the linear one.
    inverse = np.linalg.inv(found.jac.T @ found.jac) * 2 * found.cost / (len(x) - 5)
    half = stats.t.ppf(0.975, len(x) - 5) * np.sqrt(inverse[3, 3])
    interval = law.interval("alpha")
    assert interval.width / (2 * half) == pytest.approx(1.0, abs=0.35)


@quiet
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_no_other_start_of_scipy_is_lower(made, seed):
    """Huber's objective has dents: forty starts of L-BFGS and Nelder-Mead."""
    runs = made(noise=0.02, seed=seed, sizes=4)
    law = fit_scaling_law(runs)
    assert law.objective == pytest.approx(
        _objective([law.E, np.log(law.A), np.log(law.B), law.alpha, law.beta], runs, 1e-3), rel=1e-9
    )
    rng = np.random.default_rng(seed)
    limits = [(0, runs["loss"].min()), (-10, 70), (-10, 80), (0.01, 3), (0.01, 3)]
    for _ in range(40):
        alpha, beta = rng.uniform(0.1, 1.0, 2)
        a, b = alpha * np.log(3e8) + rng.uniform(-3, 0.5), beta * np.log(2e10) + rng.uniform(-3, 0.5)
        start = [rng.uniform(0.2, 2.2), a, b, alpha, beta]
        found = optimize.minimize(_objective, start, (runs, 1e-3), method="L-BFGS-B", bounds=limits)
        assert law.objective <= found.fun * (1 + 1e-9)


@quiet
@pytest.mark.parametrize("form", ["additive", "tied", "coupled"])
def test_the_optimum_is_the_lowest_loss_of_a_fine_grid(made, form):
    law = fit_scaling_law(made(noise=0.003, g=0.8), form=form)
    best = law.compute_optimal(1e22)
    n = best.params.estimate * np.exp(np.linspace(-3, 3, 60001))
    loss = law.loss_at(n, 1e22 / 6 / n)
    assert best.loss.estimate == pytest.approx(loss.min(), rel=1e-9)
    assert best.params.estimate == pytest.approx(n[loss.argmin()], rel=2e-3)
    assert best.tokens.estimate == pytest.approx(1e22 / 6 / best.params.estimate, rel=1e-9)
    assert best.tokens_per_param.estimate == pytest.approx(best.tokens.estimate / best.params.estimate, rel=1e-9)
    near = n[loss <= loss.min() * 1.001]
    np.testing.assert_allclose(best.params_range, (near[0], near[-1]), rtol=1e-3)


@quiet
def test_several_budgets_are_those_one_by_one(made):
    law = fit_scaling_law(made(noise=0.005))
    budgets = np.geomspace(1e19, 1e24, 30)
    table = law.compute_optimal(budgets).columns()
    for k in (0, 7, 29):
        one = law.compute_optimal(float(budgets[k]))
        for name in ("params", "tokens", "loss", "tokens_per_param"):
            interval = getattr(one, name)
            assert table[name][k] == pytest.approx(interval.estimate, rel=1e-9)
            # Limits between nodes are interpolated.
            assert table[f"{name}_low"][k] == pytest.approx(interval.low, rel=0.01)
            assert table[f"{name}_high"][k] == pytest.approx(interval.high, rel=0.01)


@quiet
def test_the_profile_interval_by_brute_force(made):
    """The limits of α are where the best fit with α held there has an objective too high by the F threshold."""
    runs = made(noise=0.01, seed=3, sizes=4)
    law = fit_scaling_law(runs, loss="squares")
    interval = law.interval("alpha")
    count = len(runs["loss"])

    def best(alpha):
        x, y = np.log(runs["params"] / 3e8), np.log(runs["tokens"] / 2e10)

        def gaps(t):
            return np.log(np.abs(t[0]) + np.exp(t[1] - alpha * x) + np.exp(t[2] - t[3] * y)) - np.log(runs["loss"])

        starts = ([1.8, -0.6, -0.7, 0.37], [1.5, -0.5, -0.5, 0.2], [2.0, -0.9, -0.9, 0.6])
        return min(optimize.least_squares(gaps, s, xtol=1e-14, ftol=1e-14).cost for s in starts)

    rises = [best(limit) - law.objective for limit in (interval.low, interval.high)]
    # Threshold t² s²/2; the scale s² is at least that of the residuals, and larger if noise is clearly uneven.
    assert rises[0] == pytest.approx(rises[1], rel=0.01)
    usual = stats.t.ppf(0.975, count - 5) ** 2 * law.objective / (count - 5)
    assert 0.9 * usual < rises[0] < 2.5 * usual


@quiet
@pytest.mark.parametrize("loss", ["huber", "squares", "linear"])
def test_intervals_hold_the_estimate_and_shrink_with_the_noise(made, loss):
    wide, narrow = (fit_scaling_law(made(noise=s, seed=1), loss=loss) for s in (0.01, 0.001))
    for name in ("alpha", "beta", "E", "A", "B", "exponent"):
        for law in (wide, narrow):
            assert getattr(law, name) in law.interval(name)
        assert narrow.interval(name).width < 0.3 * wide.interval(name).width
    assert (
        wide.interval("alpha", level=0.5).width
        < wide.interval("alpha").width
        < wide.interval("alpha", level=0.99).width
    )


@quiet
def test_the_linear_loss_has_intervals_of_its_own_scale(made):
    """With little noise, squares of log loss and of loss are about the same fit, and so are the intervals."""
    runs = made(noise=0.002, seed=5)
    squares, linear = (fit_scaling_law(runs, loss=loss).interval("exponent") for loss in ("squares", "linear"))
    assert linear.width == pytest.approx(squares.width, rel=0.4)


def _checkpoints(seed, runs=18, steps=20):
    """Runs with one error for all of their checkpoints."""
    rng = np.random.default_rng(seed)
    n, multiple = (v.ravel() for v in np.meshgrid(np.geomspace(5e7, 3e9, 6), [10.0, 40, 160], indexing="ij"))
    params = np.repeat(n, steps)
    tokens = np.concatenate([k * np.linspace(0.05, 1, steps) for k in n * multiple])
    error = np.repeat(0.004 * rng.standard_normal(runs), steps)
    loss = (1.8 + 480 / params**0.35 + 2000 / tokens**0.37) * np.exp(error)
    return {"params": params, "tokens": tokens, "loss": loss, "run": np.repeat(np.arange(runs), steps).astype(str)}


@quiet
@pytest.mark.parametrize("loss", ["huber", "squares"])
def test_whole_runs_are_resampled(loss):
    """Twenty checkpoints of a run are not twenty runs: intervals must be those of 18 runs."""
    table = _checkpoints(0)
    law = fit_scaling_law(table, loss=loss)
    assert law.count == 18
    alone = fit_scaling_law(
        {k: v for k, v in table.items() if k != "run"} | {"run": np.arange(360).astype(str)}, loss=loss
    )
    assert alone.alpha == law.alpha
    assert law.interval("exponent").width > 2 * alone.interval("exponent").width
    errors, small = law.standard_errors(resamples=200), alone.standard_errors(resamples=200)
    assert errors["exponent"] > 2 * small["exponent"]


@quiet
def test_resamples_are_those_of_runs_drawn_with_replacement():
    """With equal copies of every checkpoint, refits of whole runs are those of single rows with these weights."""
    table = _checkpoints(1)
    copies = {k: np.repeat(v, 2) for k, v in table.items()}
    one, two = (fit_scaling_law(t, loss="squares").standard_errors(resamples=100) for t in (table, copies))
    for name in ("alpha", "beta", "exponent"):
        assert two[name] == pytest.approx(one[name], rel=1e-4)


@quiet
@pytest.mark.slow
def test_coverage_of_intervals_in_short():
    """The long version is benchmarks/scaling_coverage.py. 60 sets: 95% is between 88 and 100%."""
    c, off = np.repeat(np.geomspace(1e18, 1e21, 5), 7), np.tile(np.geomspace(0.2, 5, 7), 5)
    n = np.sqrt(c / 120) * off
    truth = 1.8 + 480 / n**0.35 + 2000 / (c / 6 / n) ** 0.37
    held = []
    for seed in range(60):
        noise = np.random.default_rng(seed).standard_t(3, len(n)) * 0.004 / np.sqrt(3)
        law = fit_scaling_law({"params": n, "flops": c, "loss": truth * np.exp(noise)}, loss="squares")
        held.append([TRUTH["alpha"] in law.interval("alpha"), 0.37 / 0.72 in law.interval("exponent")])
    assert np.mean(held, axis=0).min() >= 0.88


@quiet
def test_predictions_are_wider_for_new_runs_and_grow_beyond_the_data(made):
    law = fit_scaling_law(made(noise=0.005))
    n, d = [1e9, 1e10, 1e11], [2e10, 2e11, 2e12]
    confidence, new = (law.prediction(n, d, interval=kind) for kind in ("confidence", "prediction"))
    np.testing.assert_allclose(
        confidence["loss"], law.E + law.A / np.array(n) ** law.alpha + law.B / np.array(d) ** law.beta
    )
    width = np.log(new["high"] / new["low"])
    assert (width > np.log(confidence["high"] / confidence["low"])).all()
    assert (np.diff(width) > 0).all()
    assert width[0] > 2 * 0.005 * 1.96 * 0.7  # at least the noise of a run
    for wrong in ({"params": [0], "tokens": [1e9]}, {"params": [1e9, 1e9], "tokens": [1e9] * 3}):
        with pytest.raises(InputError):
            law.prediction(**wrong)
    with pytest.raises(InputError, match="confidence"):
        law.prediction(1e9, 1e10, interval="both")


@quiet
@pytest.mark.slow
def test_auto_weighs_forms_by_backtests_inside_the_runs(made):
    coupled = fit_scaling_law(made(noise=0.001, g=0.4, sizes=5), form="auto")
    share = sum(w for name, w in coupled.weights.items() if name.startswith("coupled"))
    assert sum(coupled.weights.values()) == pytest.approx(1.0)
    assert share > 0.6
    best = coupled.compute_optimal(1e22)
    assert best.params.low < best.params.estimate < best.params.high
    assert "weighted laws" in coupled.sentences()


@quiet
def test_few_runs_have_wide_intervals_where_forms_are_weighed(made):
    """Seven runs and two values of D leave the tied form alone: its interval by refits is about the profile's."""
    runs = made(noise=0.004, seed=2)
    rows = np.flatnonzero(np.isin(runs["tokens"], np.unique(runs["tokens"])[[1, 4]]))[[0, 2, 5, 6, 8, 10, 11]]
    few = {k: v[rows] for k, v in runs.items()}
    auto, tied = (
        fit_scaling_law(few, form=form, loss="squares").compute_optimal(1e21).params for form in ("auto", "tied")
    )
    assert np.log(auto.high / auto.low) == pytest.approx(np.log(tied.high / tied.low), rel=0.5)


@quiet
def test_a_backtest_uses_nothing_of_what_is_held_out(made):
    runs = made(noise=0.004, seed=2)
    law = fit_scaling_law(runs, form="additive")
    found = law.backtest(hold_out=8)
    compute = 6 * runs["params"] * runs["tokens"]
    held = compute > compute.max() / 8
    assert found.fitted == (~held).sum()
    np.testing.assert_allclose(found.loss, runs["loss"][held])
    alone = fit_scaling_law({k: v[~held] for k, v in runs.items()})
    expected = alone.loss_at(runs["params"][held], runs["tokens"][held])
    np.testing.assert_allclose(found.predicted, expected)
    np.testing.assert_allclose(found.published, expected)
    gaps = np.abs(np.log(expected) - np.log(runs["loss"][held]))
    assert found.error == pytest.approx(stats.gmean(gaps))
    assert found.coverage == np.mean((found.low <= found.loss) & (found.loss <= found.high))
    band = alone.prediction(runs["params"][held], runs["tokens"][held], interval="prediction")
    np.testing.assert_allclose(found.low, band["low"])
    for wrong in (1, 0.5, "16", 1e9):
        with pytest.raises(InputError, match="hold_out"):
            law.backtest(hold_out=wrong)


@quiet
def test_earlier_checkpoints_of_a_held_out_run_are_not_fitted():
    table = _checkpoints(0)
    found = fit_scaling_law(table).backtest(hold_out=16)
    compute = 6 * table["params"] * table["tokens"]
    largest = {name for name, c in zip(table["run"], compute, strict=True) if c > compute.max() / 16}
    assert found.fitted == 18 - len(largest)


@quiet
def test_sensitivity_refits_each_window(made):
    runs = made(noise=0.002)
    law = fit_scaling_law(runs)
    found = law.sensitivity(1e23, drop=[0, 3, 9])
    assert found.window == ("all rows", "without the 3 highest losses", "without the 9 highest losses")
    for k, dropped in enumerate((0, 3, 9)):
        part = {name: v[np.argsort(-runs["loss"])[dropped:]] for name, v in runs.items()}
        expected = fit_scaling_law(part).compute_optimal(1e23)
        assert found.tokens_per_param[k] == pytest.approx(expected.tokens_per_param.estimate, rel=1e-6)
        assert found.loss[k] == pytest.approx(expected.loss.estimate, rel=1e-6)
    inside = [r in found.interval for r in found.tokens_per_param]
    assert list(found.columns()["inside"]) == inside
    assert bool(found.warnings) == (not all(inside))
    with pytest.raises(InputError, match="drop"):
        law.sensitivity(drop=[len(runs["loss"])])


@quiet
def test_answers_of_a_law_hold_its_warnings(doubtful):
    law = fit_scaling_law(doubtful)
    (diverged,) = (text for text in law.warnings if "Diverged? 4 runs" in text)
    assert diverged.count("loss ") == 3
    assert " and 1 more)" in diverged
    assert "law.sensitivity()" in diverged
    best = law.compute_optimal(1e23)
    for found in (best, law.compute_optimal([1e22, 1e23]), law.backtest(8), plan_scaling_runs(law, 1e23, most=2)):
        assert diverged in found.warnings
        assert diverged in found.to_dict()["warnings"]
    (depends,) = (text for text in best.all_warnings if "depends on which runs" in text)
    assert f"at 1e+23 FLOP {best.tokens_per_param.estimate:.3g} tokens per parameter" in depends
    assert depends in best.summary()
    assert depends in law.sensitivity(1e23).warnings
    assert "FLOP, a hundred times the largest run, " in " ".join(law.all_warnings)
    assert pickle.loads(pickle.dumps(best)).all_warnings == best.all_warnings
    # Told when the law was fitted, and not again with each answer.
    with warnings.catch_warnings():
        warnings.simplefilter("error", CurvewiseWarning)
        law.compute_optimal(1e22)


@quiet
def test_a_far_budget_is_warned_of(made):
    law = fit_scaling_law(made(noise=0.003))
    with pytest.warns(CurvewiseWarning, match="times the largest run"):
        law.compute_optimal(1e27)
    flat = fit_scaling_law(made(noise=0.001, beta=0.15, B=60.0))
    with pytest.warns(CurvewiseWarning, match="tokens per parameter, far from the"):
        flat.compute_optimal(1e30)
    for wrong in (0, -1, np.nan, [], "much"):
        with pytest.raises(InputError, match="budget"):
            law.compute_optimal(wrong)


def test_results_are_plain_values_and_sentences(made):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        law = cw.fit_scaling_law(ScalingRuns(**made(noise=0.004)))
        found = [law, law.compute_optimal(1e22), law.backtest(8), law.sensitivity(1e22)]
        for result in found:
            assert result.summary()
            assert result.table()
            json.dumps(result.to_dict(), allow_nan=False)
    assert set(law.columns()["quantity"]) == {"E", "A", "B", "alpha", "beta", "exponent"}
    with pytest.raises(InputError, match="gamma"):
        law.interval("gamma")
    with pytest.raises(InputError, match="level"):
        law.interval("alpha", level=95)


@pytest.mark.slow
def test_noise_that_falls_with_compute_widens_intervals():
    draw = np.random.default_rng(0)
    compute = 10 ** draw.uniform(18, 22, 240)
    n = np.sqrt(compute / 120) * 10 ** draw.uniform(-0.8, 0.8, 240)
    spread = 7.0 ** ((22 - np.log10(compute)) / 4)
    spread *= 0.004 / np.sqrt((spread**2).mean())

    def fit(seed):
        loss = 1.8 + 480 / n**0.35 + 2000 / (compute / 6 / n) ** 0.37
        noisy = loss * np.exp(spread * np.random.default_rng(seed).standard_normal(240))
        return cw.fit_scaling_law({"params": n, "flops": compute, "loss": noisy}, loss="squares")

    laws = [fit(seed) for seed in range(100)]
    error = np.std([law.beta for law in laws])
    width = np.mean([law.interval("beta").width for law in laws[:8]])
    # With the noise of all rows alike in the intervals it is 0.86 of this.
    assert 0.91 < width / (2 * 1.97 * error) < 1.1


@quiet
def test_a_base_is_kept_and_leaves_only_the_decay_uncertain():
    rng = np.random.default_rng(3)
    n, u = 10 ** rng.uniform(8, 9.7, 60), 10 ** rng.uniform(8, 10, 60)
    d = u * np.exp(rng.uniform(0, np.log(60), 60))
    least = np.minimum((u**0.37 * 0.35 * 480 / (0.37 * 2000)) ** (1 / 0.35), n)

    def expected(r_d, r_n):
        of_n = least * (1 + r_n * (1 - np.exp(-(n / least - 1) / r_n)))
        return np.log(1.8 + 480 / of_n**0.35 + 2000 / (u * (1 + r_d * (1 - np.exp(-(d / u - 1) / r_d)))) ** 0.37)

    loss = expected(15, 5) + 0.003 * rng.standard_normal(60)
    runs = {"params": n, "tokens": d, "unique_tokens": u, "loss": np.exp(loss)}
    law = fit_scaling_law(runs, form="repeated", loss="squares", base=TRUTH)
    for name, value in TRUTH.items():
        assert tuple(law.interval(name)) == pytest.approx((value,) * 3)
    # Only R_D and R_N are free: the profile of R_D has R_N at its best.
    low, high = (law.interval("R_D").low, law.interval("R_D").high)

    def rise(r_d):
        found = optimize.minimize_scalar(lambda r: ((expected(r_d, np.exp(r)) - loss) ** 2).sum(), bounds=(-2, 6))
        return found.fun

    best = optimize.minimize_scalar(lambda r: rise(np.exp(r)), bounds=(1, 5), method="bounded").fun
    for end in (low, high):
        noise = rise(end) / best - 1
        assert 58 * noise == pytest.approx(stats.t.ppf(0.975, 58) ** 2, rel=0.35)
    assert low < 15 < high
    # Runs that hardly repeat set no limit to R_D: repeated tokens are then worth new ones at best.
    once = {"params": n, "tokens": 1.2 * u, "unique_tokens": u, "loss": 1.8 + 480 / n**0.35 + 2000 / (1.2 * u) ** 0.37}
    once["loss"] = once["loss"] * np.exp(0.003 * rng.standard_normal(60))
    open_ended = fit_scaling_law(once, form="repeated", loss="squares", base=TRUTH)
    assert open_ended.interval("R_D").high == np.inf
    new = 1.8 + 480 / 1e9**0.35 + 2000 / 2e10**0.37
    assert open_ended.prediction(1e9, 2e10, 5e9)["low"][0] >= new * (1 - 1e-4)
    # Backtests and windows keep the base, too.
    inside = n * d <= (n * d).max() / 8
    part = fit_scaling_law({k: v[inside] for k, v in runs.items()}, form="repeated", loss="squares", base=TRUTH)
    np.testing.assert_allclose(law.backtest(8).predicted, part.loss_at(n[~inside], d[~inside], u[~inside]), rtol=1e-9)
    np.testing.assert_allclose(law.sensitivity(1e22).exponent, 0.37 / 0.72)
    with pytest.raises(InputError, match="A, B, alpha and beta lie above 0"):
        fit_scaling_law(runs, form="repeated", base=TRUTH | {"A": -1.0})


@quiet
@pytest.mark.slow
@pytest.mark.parametrize("loss", ["huber", "squares"])
@pytest.mark.parametrize("times", [1, 2])
def test_a_decay_that_the_runs_do_not_show_leaves_the_other_intervals_as_wide(made, times, loss):
    # All runs read their data equally often: how the worth of repeated tokens decays cannot be told from B.
    runs = made(noise=0.003)
    plain = fit_scaling_law(runs, loss=loss).columns()
    law = fit_scaling_law(runs | {"unique_tokens": runs["tokens"] / times}, form="repeated", loss=loss)
    found = law.columns()
    names = list(found["quantity"])
    for k, name in enumerate(names):
        if name in ("E", "alpha", "beta"):
            assert found["high"][k] - found["low"][k] > 0.5 * (plain["high"][k] - plain["low"][k]), name
    decay = names.index("R_D")
    assert found["low"][decay] == pytest.approx(0, abs=2)
    assert found["high"][decay] == np.inf
    assert names[-2:] == ["R_D", "R_N"]


@quiet
@pytest.mark.parametrize("seed", [4, 7, 11])
def test_a_law_of_repeated_data_fits_no_worse_than_the_additive_one_in_it(made, seed):
    runs = made(noise=0.003, seed=seed, sizes=5)
    law = fit_scaling_law(runs | {"unique_tokens": runs["tokens"] / 5}, form="repeated")
    # Without decay it is the additive law, but for the bounds of the decay constants.
    assert law.objective < 1.05 * fit_scaling_law(runs).objective


@quiet
@pytest.mark.parametrize(("name", "noise", "seed", "high"), [("beta", 0.02, 2, 0.363), ("alpha", 0.03, 5, 0.447)])
def test_intervals_of_exponents_where_the_irreducible_loss_is_at_its_bound(name, noise, seed, high):
    n, d = (v.ravel() for v in np.meshgrid(np.geomspace(5e7, 1e9, 4), np.geomspace(2e9, 5e10, 4)))
    loss = (1.8 + 480 / n**0.35 + 2000 / d**0.37) * np.exp(noise * np.random.default_rng(seed).standard_normal(16))
    law = fit_scaling_law({"params": n, "tokens": d, "loss": loss}, loss="squares")
    assert law.E == 0
    # By bisection along the exponent, with the best of 30 fits of the other parameters at each value.
    assert law.interval(name).high == pytest.approx(high, rel=0.02)


@quiet
def test_a_parameter_that_the_form_fixes_has_no_interval_in_words(made):
    law = fit_scaling_law(made(noise=0.003), form="tied")
    assert "grows as C^0.5 (fixed)" in law.summary()
    with pytest.raises(InputError, match="fixed by the tied form"):
        cw.plan_scaling_runs(law, 1e23, quantity="exponent")


@quiet
def test_numbers_that_make_no_sense_are_refused_by_name(made):
    law = fit_scaling_law(made(noise=0.003))
    repeats = made(noise=0.003)
    repeated = fit_scaling_law(repeats | {"unique_tokens": np.minimum(repeats["tokens"], 8e9)}, form="repeated")
    assert repeated.loss_at(1e9, 3e10, 1e9)[0] > repeated.loss_at(1e9, 3e10)[0]
    for ask, name in (
        (lambda: law.predict(1e9, 3e10, unique_tokens=1e9), "unique_tokens"),
        (lambda: law.loss_at(1e9, 3e10, 1e9), "unique_tokens"),
        (lambda: repeated.compute_optimal(1e21, unique_tokens=-1), "unique_tokens"),
        (lambda: repeated.compute_optimal(1e21, unique_tokens=[1e9, 2e9]), "unique_tokens"),
        (lambda: law.sensitivity([1e22, 1e23]), "budget"),
        (lambda: law.sensitivity(level=95), "level"),
        (lambda: law.sensitivity(drop=2.5), "drop"),
        (lambda: law.sensitivity(drop=[np.nan]), "drop"),
        (lambda: law.standard_errors(resamples=1), "resamples"),
        (lambda: ScalingRuns(repeats["params"], repeats["tokens"], None), "loss"),
        (lambda: law.predict([], []), "params"),
    ):
        with pytest.raises(InputError, match=name):
            ask()
    assert law.sensitivity(drop=3).window == ("all rows", "without the 3 highest losses")


@quiet
@pytest.mark.parametrize("form", ["additive", "auto"])
def test_one_new_run_is_never_more_certain_than_the_expected_loss(form):
    # Few runs, all of them cheap: where the law leads at other sizes is less certain than their small errors suggest.
    rng = np.random.default_rng(5)
    n, d = (v.ravel() for v in np.meshgrid([1e8, 2e8, 4e8], [2e9, 4e9, 8e9]))
    loss = (1.8 + 480 / n**0.35 + 2000 / d**0.37) * np.exp(0.002 * rng.standard_normal(9))
    law = fit_scaling_law({"params": n, "tokens": d, "loss": loss}, form=form)
    sizes = ([1e8, 4e8, 1e9, 2e7], [2e9, 8e9, 2e9, 8e9])
    expected, new = (law.prediction(*sizes, interval=kind) for kind in ("confidence", "prediction"))
    assert (new["low"] <= expected["low"]).all()
    assert (new["high"] >= expected["high"]).all()


@quiet
def test_too_few_runs_to_weigh_forms(made):
    four = {k: v[[0, 5, 30, 35]] for k, v in made().items()}
    with pytest.raises(InputError, match="too few to weigh forms"):
        fit_scaling_law(four, form="auto", few=True)


@quiet
@pytest.mark.slow
def test_checkpoints_say_no_more_about_a_new_run_than_their_runs():
    n, d = (v.ravel() for v in np.meshgrid([1e8, 4e8, 1.6e9], [4e9, 1.6e10, 6.4e10]))
    widths = []
    for seed in range(6):
        error = 0.005 * np.random.default_rng(seed).standard_normal(9)  # of all checkpoints of a run

        def half_width(tokens, number, error=error):
            size, row = np.tile(n, number), np.concatenate([share * d for share in tokens])
            loss = (1.8 + 480 / size**0.35 + 2000 / row**0.37) * np.exp(np.tile(error, number))
            run = np.tile(np.arange(9), number).astype(str)
            law = fit_scaling_law(ScalingRuns(size, row, loss, run=run), loss="squares")
            band = law.prediction(4e8, 1.6e10, interval="prediction")
            return float(np.log(band["high"] / band["low"])[0])

        widths.append(half_width(np.linspace(0.3, 1, 15), 15) / half_width([1.0], 1))
    # With each checkpoint counted as a run of its own it is 0.47, or 0.73 with the width of the confidence interval.
    assert 0.82 < np.median(widths) < 1.3


def test_losses_without_noise_have_weighted_forms(made):
    law = fit_scaling_law(made(sizes=4), form="auto")
    assert sum(law.weights.values()) == pytest.approx(1)


@quiet
def test_limits_of_many_equal_budgets(made):
    law = fit_scaling_law(made(noise=0.004, sizes=5))
    alone = list(law.compute_optimal(1e22).params)
    assert [list(found) for found in law.compute_optimal([1e22] * 12).params] == [pytest.approx(alone, rel=1e-6)] * 12


def test_answers_that_agree_in_all_digits_shown_do_not_depend_on_the_window(made):
    """Intervals of exact losses have no width: rounding is enough to leave them."""
    runs = ScalingRuns(**made())
    size = {36: 1e9, 35: 1e9 * (1 + 1e-9), 30: 1e9 * 1.01}
    ratio = 1e21 / 6 / 1e18
    found = measure_sensitivity(
        runs, lambda part: (float(np.log(size[len(part)])), 0.5, 2.0), 1e21, Interval(ratio, ratio, ratio), drop=[1, 6]
    )
    assert found.outside == ("without the 6 highest losses",)
