"""The fit against brute force and scipy, and what must not change it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import curve_fit

import curvewise as cw
from curvewise.learning.power import (
    FORMS,
    GAMMA_GRID,
    fit_means,
    fit_power,
    group_runs,
    size_variance,
    size_weights,
    slope_variance,
)


def objective(gamma, n, error, weight, terms):
    design = np.stack([n ** (k * gamma) for k in range(terms)], axis=1)
    root = np.sqrt(weight)
    theta, *_ = np.linalg.lstsq(root[:, None] * design, root * error, rcond=None)
    return float(np.sum(weight * (error - design @ theta) ** 2)), theta


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weights", ["size", "run", "none"])
def test_fit_is_the_grid_minimum_by_brute_force(simulated, form, weights):
    n, error = simulated
    curve = cw.fit_learning_curve(n, error, unit="percent", form=form, weights=weights)
    free, terms = FORMS[form]
    sizes, count = np.unique(n, return_counts=True)
    runs = count[np.searchsorted(sizes, n)]
    variance = 0.02 + curve.sigma_hat_squared / n
    w = {"size": 1 / (runs * variance), "run": 1 / variance, "none": np.ones_like(n)}[weights]
    gammas = GAMMA_GRID if free else [-0.5]
    best = min(gammas, key=lambda g: objective(g, n, error, w, terms)[0] + 5 * abs(g + 0.5))
    theta = objective(best, n, error, w, terms)[1]
    assert curve.gamma == pytest.approx(best)
    got = [curve.alpha, curve.eta, curve.delta][:terms]
    assert got == pytest.approx(theta.tolist(), rel=1e-6)


def test_without_prior_it_agrees_with_curve_fit(simulated):
    n, error = simulated
    n, error = n, error + 10
    curve = cw.fit_learning_curve(n, error, unit="percent", weights="none", constants=cw.learning.Constants(prior=0.0))
    (a, h, g), _ = curve_fit(lambda x, a, h, g: a + h * x**g, n, error, p0=(5, 100, -0.5))
    assert curve.gamma == pytest.approx(g, abs=0.0051)
    assert curve.error_at(400) == pytest.approx(a + h * 400**g, abs=0.05)


@given(alpha=st.floats(0, 50), eta=st.floats(10, 300), gamma=st.sampled_from([-0.8, -0.5, -0.3]))
def test_exact_curves_are_recovered_without_prior(alpha, eta, gamma):
    n = np.array([25, 50, 100, 200, 400.0])
    mean = alpha + eta * n**gamma
    fits = fit_power(n, mean[None], np.ones((1, 5)), constants=cw.learning.Constants(prior=0.0))
    assert fits.gamma[0] == pytest.approx(gamma)
    assert fits.alpha[0] == pytest.approx(alpha, abs=1e-6)
    assert fits.eta[0] == pytest.approx(eta, rel=1e-6)


@given(seed=st.integers(0, 1000))
def test_order_of_runs_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    n = np.repeat([25, 50, 100, 200.0], 3)
    error = 10 + 100 * n**-0.5 + rng.normal(size=12)
    mixed = rng.permutation(12)
    a, b = group_runs(n, error), group_runs(n[mixed], error[mixed])
    np.testing.assert_allclose(a.mean, b.mean)
    np.testing.assert_allclose(a.variance, b.variance)


def test_batch_equals_one_by_one():
    rng = np.random.default_rng(0)
    n = np.array([25, 50, 100, 200, 400.0])
    mean = 10 + 100 * n**-0.5 + rng.normal(size=(300, 5))
    weight = rng.uniform(0.5, 2, size=(300, 5))
    for form in ("power", "power2"):
        many = fit_power(n, mean, weight, form=form)
        for i in (0, 127, 128, 299):
            one = fit_power(n, mean[i : i + 1], weight[i : i + 1], form=form)
            assert one.gamma[0] == many.gamma[i]
            assert one.alpha[0] == pytest.approx(many.alpha[i], rel=1e-9)


def test_variance_model_estimate_by_hand():
    """σ̂² is the least-squares slope of s² − σ0² on 1/n, weighted by degrees of freedom."""
    n = np.repeat([10.0, 20.0], [3, 2])
    data = group_runs(n, [1.0, 2.0, 3.0, 5.0, 7.0])
    s2 = np.array([1.0, 2.0])
    free = np.array([2.0, 1.0])
    x = 1 / np.array([10.0, 20.0])
    slope = np.sum(free * x * (s2 - 0.02)) / np.sum(free * x * x)
    assert data.slope_variance(0.02) == pytest.approx(slope)
    assert size_variance(np.array([10.0]), slope, 0.02)[0] == pytest.approx(0.02 + slope / 10)


@given(seed=st.integers(0, 500))
def test_one_curve_and_many_estimate_the_same_variance(seed):
    rng = np.random.default_rng(seed)
    n = np.repeat([25, 50, 100, 200.0], rng.integers(1, 5, size=4))
    data = group_runs(n, 10 + rng.normal(size=len(n)))
    many = slope_variance(data.n, data.runs, data.variance[None], 0.02)
    assert data.slope_variance(0.02) == pytest.approx(float(many[0]), rel=1e-12)


def test_size_weighting_ignores_the_number_of_runs():
    runs = np.array([16.0, 1.0])
    variance = np.array([2.0, 0.5])
    assert size_weights("size", runs, variance).tolist() == [0.5, 2.0]
    assert size_weights("run", runs, variance).tolist() == [8.0, 2.0]
    assert size_weights("none", runs, variance).tolist() == [16.0, 1.0]


def test_means_with_runs_and_variance_fit_like_the_runs(simulated):
    n, error = simulated
    data = group_runs(n, error)
    raw = cw.fit_learning_curve(n, error, unit="percent")
    means = cw.fit_learning_curve(data.n, data.mean, unit="percent", runs=data.runs, variance=data.variance)
    assert means.alpha == pytest.approx(raw.alpha)
    assert means.interval_at(1600).error.low == pytest.approx(raw.interval_at(1600).error.low)


def test_means_of_unknown_variance_still_fit(simulated):
    data = group_runs(*simulated)
    with pytest.warns(cw.CurvewiseWarning, match="Means without their variance"):
        curve = cw.fit_learning_curve(data.n, data.mean, unit="percent", runs=data.runs)
    assert np.isfinite([curve.alpha, curve.interval_at(800).error.high]).all()


def test_bootstrap_is_seeded_and_centred(simulated):
    curve = cw.fit_learning_curve(*simulated, unit="percent")
    a, b = curve.bootstrap(2000, rng=1), curve.bootstrap(2000, rng=1)
    assert np.array_equal(a.alpha, b.alpha)
    at = a.alpha + a.eta * 400**a.gamma
    assert at.mean() == pytest.approx(curve.error_at(400), abs=0.1)
    # The spread of e_N over refits is that of the conditional band or wider, γ being refitted.
    band = curve.band(np.array([400.0]), "conditional")
    assert at.std() > 0.95 * (band["high"][0] - band["error"][0]) / 1.96


@pytest.mark.parametrize(
    ("n", "error", "options", "message"),
    [
        ([], [], {}, "empty"),
        ([1, 2], [0.1], {}, "one size and one error"),
        ([[1, 2]], [[0.1, 0.2]], {}, "one-dimensional"),
        ([0, 2], [0.1, 0.2], {}, "positive and finite"),
        ([1, np.inf], [0.1, 0.2], {}, "positive and finite"),
        ([1, 2], [0.1, np.nan], {}, "NaN or infinite"),
        ([1, 2], [12.0, 10.0], {}, "unit='percent'"),
        ([1, 2], [-0.1, 0.1], {}, "unit='loss'"),
        ([1, 2], [120.0, 10.0], {"unit": "percent"}, "is no percent"),
        ([1, 2], [0.1, 0.2], {"unit": "ratio"}, "unit='ratio' is not known"),
        ([1, 2], [0.1, 0.2], {"form": "cubic"}, "form='cubic': is not known"),
        ([1, 2], [0.1, 0.2], {"weights": "heavy"}, "weights='heavy': is not known"),
        ([1, 2], [0.1, 0.2], {"unit": "score"}, "higher_is_better=True"),
        ([1, 2], [0.1, 0.2], {"unit": "loss", "higher_is_better": True}, "contradicts"),
        ([1, 2], [0.1, 0.2], {"variance": [0.1, 0.1]}, "needs runs"),
        ([1, 2], [0.1, 0.2], {"runs": [0, 1]}, "at least 1"),
        ([1, 2], [0.1, 0.2], {"runs": [1, 1, 1]}, "one entry per row"),
        ([1, 2], [0.1, 0.2], {"largest": 1}, "largest=1: must be a whole number from 2"),
        ([1, 2], [0.1, 0.2], {"largest": 2.5}, "largest=2.5: must be a whole number from 2"),
        ([1, 2], [0.1, 0.2], {"chance": 90}, "chance=90: must be a fraction from 0 to 1"),
    ],
)
def test_bad_input_names_argument_and_remedy(n, error, options, message):
    with pytest.raises(cw.InputError, match=message.replace("(", r"\(")):
        cw.fit_learning_curve(n, error, **options)


@pytest.mark.parametrize("bad", [{"prior": -1}, {"sigma0_squared": np.nan}, {"gamma": 0.5}])
def test_constants_are_checked(bad):
    with pytest.raises(cw.InputError, match=next(iter(bad))):
        cw.learning.Constants(**bad)


def test_gamma_can_be_held(simulated):
    n, error = simulated
    held = cw.learning.Constants(gamma=-0.55)
    curve = cw.fit_learning_curve(n, error, unit="percent", constants=held)
    assert curve.gamma == -0.55
    assert curve.gamma_interval().low == curve.gamma_interval().high == -0.55


@pytest.mark.parametrize("form", ["power", "sqrt", "power2", "sqrt2"])
def test_many_fits_are_read_off_as_one_curve_is(simulated, form):
    """Refits and stability read e_N and β_N off all fits at once."""
    data = group_runs(*simulated)
    fits = fit_means(data.n, data.runs, np.stack([data.mean] * 2), np.stack([data.variance] * 2), form=form)
    curve = cw.fit_learning_curve(*simulated, unit="percent", form=form)
    assert fits.errors_at([200.0, 400.0])[1] == pytest.approx(curve.errors_at([200.0, 400.0]))
    assert fits.reliance_at(400.0)[0] == pytest.approx(curve.data_reliance_at(400))
