"""The ensemble: what it must recover, what must not change it, and that it stays frozen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import curvewise as cw
from curvewise.learning.extrapolate import DAMPING, MEMBERS, fit_ensemble, fit_member
from curvewise.learning.fit import build_curve
from curvewise.learning.replicates import Replicates

N = np.array([16, 23, 32, 45, 64, 91, 128, 181, 256, 362.0])


def noisy(sd=0.5, seed=0):
    return 10 + 120 * N**-0.6 + sd * np.random.default_rng(seed).standard_normal(len(N))


@pytest.mark.parametrize("alpha", [0.0, 5.0, 30.0])
@pytest.mark.parametrize("gamma", [-0.3, -0.5, -1.0])
def test_power_laws_are_recovered(alpha, gamma):
    truth = alpha + 80 * np.array([724, 1448.0]) ** gamma
    ensemble = fit_ensemble(N, alpha + 80 * N**gamma)
    np.testing.assert_allclose(ensemble.predict([724, 1448]), truth, rtol=0.02, atol=0.02)


@given(scale=st.floats(1e-3, 1e3), stretch=st.floats(0.1, 1e4))
def test_units_of_error_and_size_do_not_matter(scale, stretch):
    base = fit_ensemble(N, noisy()).predict([1000.0])
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
        Replicates(N, np.full(10, 5.0), noisy(), np.full(10, 0.25)), cw.Unit("percent"), form="auto"
    )
    expected = FROZEN["centre"]
    assert curve.errors_at([724, 1448, 5792]).tolist() == pytest.approx(expected, rel=1e-4)
    band = curve.band([724, 1448, 5792], runs=np.inf)
    assert band["low"].tolist() == pytest.approx(FROZEN["low"], rel=1e-4)
    assert band["high"].tolist() == pytest.approx(FROZEN["high"], rel=1e-4)


FROZEN = {
    "centre": [11.1216, 9.7233, 7.8472],
    "low": [9.1455, 6.2866, 1.5972],
    "high": [12.993, 12.6189, 12.5036],
}


@pytest.mark.parametrize("name", MEMBERS)
@pytest.mark.parametrize(
    "mean", [[50.0], [50.0, 40.0], [30.0] * 10, [0.0] * 10, list(range(1, 11)), [5.0, 0.0] * 5]
)
def test_members_never_fail(name, mean):
    n = N[: len(mean)]
    one = fit_member(name, n, np.array(mean, dtype=float))
    every = fit_ensemble(n, np.array(mean, dtype=float))
    for fitted in (one, every):
        assert np.isfinite(fitted.predict([1.0, 100.0, 1e6])).all()
        assert (fitted.predict([1e6]) >= 0).all()


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
            yield Replicates(n, runs, mean, 1e4 * rows.err_valid_var.to_numpy(float))


def test_real_curves_are_predicted_better_and_covered(data_dir):
    """A sample of the full benchmarks: better than both baselines at four times the data."""
    datasets = [3, 11, 23, 31, 37, 41, 49, 181, 183, 185, 1461, 1489, 40701, 41027]
    misses, hits = {f: [] for f in ("auto", "constrained", "last")}, []
    for curve in lcdb_sample(data_dir, datasets):
        seen = curve.only(curve.n <= curve.n[-1] / 4)
        if len(seen.n) < 3:
            continue
        for form in misses:
            fitted = build_curve(seen, cw.Unit("percent"), form=form)
            misses[form].append(abs(fitted.error_at(curve.n[-1]) - curve.mean[-1]))
            if form == "auto":
                band = fitted.band(curve.n[-1:], runs=np.inf)
                hits.append(band["low"][0] <= curve.mean[-1] <= band["high"][0])
    assert len(hits) > 100
    median = {form: np.median(values) for form, values in misses.items()}
    assert median["auto"] < median["constrained"] < median["last"]
    assert 0.9 < np.mean(hits) < 0.99
