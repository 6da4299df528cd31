"""The ensemble: what it must recover, what must not change it, and that it stays frozen."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import curvewise as cw
from curvewise.learning.extrapolation import DAMPING, MEMBERS, fit_ensemble, fit_member
from curvewise.learning.fit import build_curve
from curvewise.learning.power import GroupedRuns

N = np.array([16, 23, 32, 45, 64, 91, 128, 181, 256, 362.0])


def noisy(sd=0.5, seed=0):
    return 10 + 120 * N**-0.6 + sd * np.random.default_rng(seed).standard_normal(len(N))


@pytest.mark.parametrize("alpha", [0.0, 5.0, 30.0])
@pytest.mark.parametrize("gamma", [-0.3, -0.5, -1.0])
def test_power_laws_are_recovered(alpha, gamma):
    truth = alpha + 80 * np.array([724, 1448.0]) ** gamma
    ensemble = fit_ensemble(N, alpha + 80 * N**gamma)
    np.testing.assert_allclose(ensemble.predict([724, 1448]), truth, rtol=0.02, atol=0.02)


@cache
def forecast():
    return fit_ensemble(N, noisy()).predict([1000.0])


@settings(max_examples=25)
@given(scale=st.floats(1e-3, 1e3), stretch=st.floats(0.1, 1e4))
def test_units_of_error_and_size_do_not_matter(scale, stretch):
    base = forecast()
    other = fit_ensemble(N * stretch, noisy() * scale).predict([1000.0 * stretch])
    np.testing.assert_allclose(other, base * scale, rtol=1e-6)


def test_weights_sum_to_one_and_follow_the_rolling_error():
    ensemble = fit_ensemble(N, noisy(0.01))
    assert ensemble.weights.sum() == pytest.approx(1)
    weight = dict(zip(ensemble.members, ensemble.weights, strict=True))
    error = ensemble.rolling_error
    assert weight["last"] == min(weight.values())
    assert error["last"] == max(error.values())


def test_damping_is_what_it_says():
    ensemble = fit_ensemble(N, noisy(1.0))
    free = replace(ensemble, noise=0.0)
    n = np.array([500.0, 1000.0, 5000.0])
    change = np.log(free.predict(n) / ensemble.last)
    share = 1 / (1 + DAMPING * ensemble.noise**2 * np.log(n / N[-1]) / change**2)
    np.testing.assert_allclose(np.log(ensemble.predict(n) / ensemble.last), change * share)
    assert ensemble.noise > 0
    np.testing.assert_allclose(ensemble.predict(N), free.predict(N))


def test_pure_noise_is_not_extrapolated():
    """27 times beyond flat data a forecast is usually within their scatter, a power law's not."""
    misses: dict[str, list[float]] = {"auto": [], "power_3": []}
    for seed in range(20):
        flat = 30 + 0.5 * np.random.default_rng(seed).standard_normal(len(N))
        misses["auto"].append(abs(fit_ensemble(N, flat).predict([1e4])[0] - 30))
        misses["power_3"].append(abs(fit_member("power_3", N, flat).predict([1e4])[0] - 30))
    assert np.median(misses["auto"]) < 0.6
    assert np.mean(misses["auto"]) < 0.8 * np.mean(misses["power_3"])


def test_the_method_is_frozen():
    """These forecasts were scored by benchmarks/extrapolation.py; changing them is a new method."""
    curve = build_curve(
        GroupedRuns(N, np.full(10, 5.0), noisy(), np.full(10, 0.25)), cw.types.Unit("percent"), form="auto"
    )
    expected = FROZEN["centre"]
    assert curve.errors_at([724, 1448, 5792]).tolist() == pytest.approx(expected, rel=1e-4)
    band = curve.band([724, 1448, 5792], runs=np.inf)
    assert band["low"].tolist() == pytest.approx(FROZEN["low"], rel=1e-4)
    assert band["high"].tolist() == pytest.approx(FROZEN["high"], rel=1e-4)


FROZEN = {"centre": [11.1156, 9.7181, 7.847], "low": [9.4348, 6.9695, 3.3561], "high": [13.1569, 12.9326, 13.2491]}


@pytest.mark.slow
@pytest.mark.parametrize("name", MEMBERS)
@pytest.mark.parametrize("mean", [[50.0], [50.0, 40.0], [30.0] * 10, [0.0] * 10, list(range(1, 11)), [5.0, 0.0] * 5])
def test_members_never_fail(name, mean):
    n = N[: len(mean)]
    one = fit_member(name, n, np.array(mean, dtype=float))
    every = fit_ensemble(n, np.array(mean, dtype=float))
    for fitted in (one, every):
        assert np.isfinite(fitted.predict([1.0, 100.0, 1e6])).all()
        assert (fitted.predict([1e6]) >= 0).all()


@pytest.mark.slow
def test_four_noisy_sizes_are_left_to_laws_of_the_whole_curve():
    """Truths of other forms than the laws: auto must not lose to the plain constrained law."""
    rng = np.random.default_rng(0)
    n = np.array([50.0, 100, 200, 400])
    misses: dict[str, list[float]] = {"auto": [], "constrained": []}
    for _ in range(250):
        low, drop = rng.uniform(2, 25), rng.uniform(10, 50)
        rate, knee = rng.uniform(0.3, 1.2), rng.uniform(4, 7)
        curves = (
            lambda m, low=low, drop=drop, rate=rate: low + drop * np.exp(-rate * np.log(m / 50)),
            lambda m, low=low, drop=drop, knee=knee: low + drop / (1 + np.exp(np.log(m) - knee)),
        )
        truth = curves[int(rng.integers(2))]
        noise = 0.05 * truth(n) * rng.standard_normal((3, len(n)))
        runs = GroupedRuns(n, np.full(4, 3.0), truth(n) + noise.mean(axis=0), noise.var(axis=0, ddof=1))
        for form, miss in misses.items():
            fitted = build_curve(runs, cw.types.Unit("percent"), form=form)
            miss.extend(np.abs(fitted.errors_at([800, 1600]) - truth(np.array([800.0, 1600]))))
    assert np.median(misses["auto"]) < np.median(misses["constrained"])


def test_evidence_about_the_tail_grows_with_sizes_and_precision():
    def share_of_whole(sizes, sd):
        stderr = np.full(sizes, sd)
        ensemble = fit_ensemble(N[-sizes:], noisy(0.01)[-sizes:], stderr)
        weight = dict(zip(ensemble.members, ensemble.weights, strict=True))
        return sum(w for m, w in weight.items() if MEMBERS[m].fits_whole_curve)

    assert share_of_whole(3, 0.01) == pytest.approx(1)
    shares = [share_of_whole(sizes, 1.0) for sizes in (4, 6, 10)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.95
    assert shares[-1] < 0.7
    assert share_of_whole(5, 0.05) < share_of_whole(5, 2.0)


@pytest.mark.parametrize("form", ["auto", "constrained"])
@pytest.mark.filterwarnings("ignore::curvewise.CurvewiseWarning")
def test_two_sizes_are_not_fitted(form):
    two = cw.fit_learning_curve([100, 200, 200], [0.3, 0.19, 0.21], form=form)
    assert two.errors_at([50, 100, 200, 400, 1e6]).tolist() == pytest.approx([0.3, 0.3] + 3 * [0.2])
    assert 0.2 < two.error_at(150) < 0.3
    assert "no law is fitted" in two.summary()
    assert any("Two sizes" in w for w in two.warnings)
    band = two.band([two.largest_n, 4 * two.largest_n], runs=np.inf)
    assert band["low"][1] < 0.75 * two.error_at()
    assert np.diff(band["high"] - band["low"]) > 0


@pytest.mark.slow
@given(
    # Losses below 1e-100 are refused, and no user has any.
    values=st.lists(st.just(0.0) | st.floats(1e-9, 1), min_size=2, max_size=6),
    form=st.sampled_from(["auto", "constrained", "last"]),
    unit=st.sampled_from(["fraction", "percent", "loss", "score"]),
    chance=st.sampled_from([None, 0.5, 0.9]),
)
@example(values=[0.8, 0.5, 0.3], form="constrained", unit="percent", chance=None)
def test_estimates_are_possible_and_inside_their_intervals(values, form, unit, chance):
    top = 100.0 if unit == "percent" else 1.0
    n = 10.0 * 2.0 ** np.arange(len(values))
    runs = GroupedRuns(n, np.ones(len(n)), top * np.array(values), np.full(len(n), np.nan))
    curve = build_curve(runs, cw.types.Unit(unit, unit == "score"), form=form, chance=chance and top * chance)
    for level in (0.5, 0.95):
        band = curve.band([1, 10, n[-1], 1.5 * n[-1], 4 * n[-1], 1e9], level=level, runs=np.inf)
        assert (band["low"] <= band["error"]).all()
        assert (band["error"] <= band["high"]).all()
        if unit in ("fraction", "percent"):
            assert (band["low"] >= 0).all()
            assert (band["high"] <= top).all()


@pytest.mark.filterwarnings("ignore::curvewise.CurvewiseWarning")
def test_a_curve_still_at_chance_may_fall():
    n = np.repeat([25, 50, 100, 200, 395, 790], 3)
    error = 0.44 + 0.005 * np.random.default_rng(0).standard_normal(len(n))
    blind = cw.fit_learning_curve(n, error, form="auto")
    assert blind.band([3160], runs=np.inf)["low"][0] < 0.385
    assert any("pass chance=" in w for w in blind.warnings)
    told = cw.fit_learning_curve(n, error, form="auto", chance=0.45)
    band = told.band([790, 1580, 3160])
    assert band["low"][0] > 0.3
    assert (band["low"][1:] == 0).all()
    assert band["error"].tolist() == pytest.approx([0.44] * 3, abs=0.01)
    assert not any("pass chance=" in w for w in told.warnings)
    below = cw.fit_learning_curve(n, error, form="auto", chance=0.6)
    assert (below.band([1580])["low"] > 0).all()


def test_advice_near_chance_suits_the_form():
    n = np.array([25, 50, 100, 200, 400])
    error = np.array([0.89, 0.88, 0.7, 0.5, 0.4])
    for form, advice in (("power", "form='auto'"), ("auto", "largest=3"), ("last", "largest=3")):
        with pytest.warns(cw.CurvewiseWarning):
            curve = cw.fit_learning_curve(n, error, chance=0.9, form=form)
        (near,) = [w for w in curve.warnings if "a tenth of chance" in w]
        assert advice in near
        if form != "power":
            assert not any("form='auto'" in w for w in curve.warnings)


def test_values_without_a_floor():
    scores = -(10 + 120 * N**-0.6) + 40
    fitted = fit_ensemble(N, -scores, floor=None)
    assert np.isfinite(fitted.predict([1000.0])).all()


def lcdb_sample(data_dir, datasets):
    pd = pytest.importorskip("pandas")
    frame = pd.read_csv(data_dir / "learning_curves" / "lcdb10_error_mean_var.csv.gz")
    frame = frame[frame.openmlid.isin(datasets)].sort_values(["openmlid", "learner", "size_train"])
    for _, rows in frame.groupby(["openmlid", "learner"]):
        columns = (rows[c].to_numpy(float) for c in ("size_train", "n_rep"))
        n, runs = columns
        if len(n) >= 10 and n[-1] >= 500:
            mean = 100 * rows.err_valid_mean.to_numpy(float)
            yield GroupedRuns(n, runs, mean, 1e4 * rows.err_valid_var.to_numpy(float))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")
@pytest.mark.parametrize("form", ["auto", "power"])
def test_a_prediction_is_never_surer_than_the_runs_are(form):
    """At a measured size it is for the same mean as a confidence interval, without the law that this supposes."""
    rng = np.random.default_rng(0)
    n, narrower = np.repeat([50, 100, 200, 400.0], 3), 0
    for _ in range(20):
        error = np.minimum(20 + 200 * n**-0.5 * np.exp(rng.normal(0, 0.1, len(n))), 95)
        law = cw.fit_learning_curve(n, error, unit="percent")
        curve = law if form == "power" else cw.fit_learning_curve(n, error, unit="percent", form=form)
        for size in (50, 400):
            sure = law.interval_at(size).error
            found = curve.interval_at(size, interval="prediction").error
            narrower += found.width < 0.98 * sure.width
        beyond = curve.interval_at(1600, interval="prediction").error
        assert beyond.width >= 0.98 * law.interval_at(400).error.width
    assert narrower == 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")
def test_few_noisy_runs_are_covered_at_the_largest_size():
    rng = np.random.default_rng(1)
    n, truth, held = np.repeat([100, 200, 400, 800, 1600.0], 2), {}, 0
    data = {}
    for k in range(150):
        alpha, eta, gamma = ((3, 2000.0, -0.7), (10, 600.0, -0.5), (22, 200.0, -0.4))[k % 3]
        mean = np.minimum(alpha + eta * n**gamma, 90)
        data[str(k)] = n, 100 * rng.binomial(2000, mean / 100) / 2000
        truth[str(k)] = mean[-1]
    curves = cw.fit_learning_curves(data, unit="percent", form="auto")
    for name, mean in truth.items():
        held += mean in curves[name].interval_at().error
    assert held >= 139  # 93% of 150; it was 89% when the noise of the runs had no say


def test_real_curves_are_predicted_better_and_covered(data_dir):
    """A sample of the full benchmarks: better than both baselines at four times the data."""
    datasets = [3, 11, 23, 31, 37, 41, 49, 181, 183, 185, 1461, 1489, 40701, 41027]
    misses, hits = {f: [] for f in ("auto", "constrained", "last")}, []
    for curve in lcdb_sample(data_dir, datasets):
        seen = curve.only(curve.n <= curve.n[-1] / 4)
        if len(seen.n) < 3:
            continue
        for form in misses:
            fitted = build_curve(seen, cw.types.Unit("percent"), form=form)
            misses[form].append(abs(fitted.error_at(curve.n[-1]) - curve.mean[-1]))
            if form == "auto":
                band = fitted.band(curve.n[-1:], runs=np.inf)
                hits.append(band["low"][0] <= curve.mean[-1] <= band["high"][0])
    assert len(hits) > 100
    median = {form: np.median(values) for form, values in misses.items()}
    assert median["auto"] < median["constrained"] < median["last"]
    assert 0.87 < np.mean(hits) < 0.99  # few datasets, not among those of the calibration


@pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")
@pytest.mark.parametrize("form", ["auto", "power"])
def test_prediction_intervals_grow_below_the_smallest_size_too(form):
    n = np.repeat([100, 200, 400, 800.0], 3)
    error = 10 + 300 * n**-0.5 + np.random.default_rng(4).normal(0, 1, len(n))
    curve = cw.fit_learning_curve(n, error, unit="percent", form=form)
    band = curve.band([100.0, 50.0, 25.0, 6.0], "prediction", runs=np.inf)
    widths = band["high"] - band["low"]
    assert (np.diff(widths) > 0).all()
    assert widths[1] > 1.3 * widths[0]


def test_real_curves_are_covered_below_the_smallest_size(data_dir):
    """At a half and a quarter of the smallest size, or so, 63% and 39% were covered when intervals did not grow."""
    hits = {2: [], 4: []}
    for i, curve in enumerate(lcdb_sample(data_dir, [3, 11, 23, 31, 37, 41, 49, 181, 183, 185, 1461, 1489])):
        for left_out in hits if i % 3 == 0 else ():
            seen = curve.only(slice(left_out, left_out + 6))
            band = build_curve(seen, cw.types.Unit("percent"), form="auto").band(curve.n[:1], runs=np.inf)
            hits[left_out].append(band["low"][0] <= curve.mean[0] <= band["high"][0])
    assert len(hits[4]) > 40
    assert all(np.mean(found) > 0.8 for found in hits.values())
