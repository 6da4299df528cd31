"""EM against scikit-learn's from the same start, and against loops written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curvewise.ranking import mixture
from curvewise.ranking.mixture import COVARIANCES, FLOOR, fit_mixture

NAMES = {"diagonal": "diag", "tied": "tied", "full": "full"}


def drawn(seed=0, n=400, d=5, groups=6, apart=2.0):
    """Overlapping groups, each with its own covariance, and a start that is partly wrong."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(groups, size=n)
    labels[:groups] = np.arange(groups)
    mixed = rng.standard_normal((groups, d, d)) / 2 + np.eye(d)
    x = apart * rng.standard_normal((groups, d))[labels]
    x = x + np.einsum("nij,nj->ni", mixed[labels], rng.standard_normal((n, d)))
    start = np.where(rng.random(n) < 0.2, rng.integers(groups, size=n), labels)
    return x, start


def by_scikit_learn(x, start, covariance, steps):
    """The same steps from the same start."""
    sk = pytest.importorskip("sklearn.mixture")
    groups, floor = start.max() + 1, FLOOR * x.var(axis=0).mean()
    means = np.array([x[start == k].mean(axis=0) for k in range(groups)])
    covs = [np.cov(x[start == k].T, bias=True) + floor * np.eye(x.shape[1]) for k in range(groups)]
    counts = np.bincount(start)
    precisions = {
        "diagonal": np.array([1 / np.diag(c) for c in covs]),
        "tied": np.linalg.inv(np.average(covs, axis=0, weights=counts)),
        "full": np.linalg.inv(covs),
    }[covariance]
    model = sk.GaussianMixture(
        groups,
        covariance_type=NAMES[covariance],
        reg_covar=floor,
        tol=0,
        max_iter=steps,
        init_params="random_from_data",
        random_state=0,
        weights_init=counts / counts.sum(),
        means_init=means,
        precisions_init=precisions,
    )
    with pytest.warns(UserWarning, match="did not converge"):
        return model.fit(x)


@pytest.mark.parametrize("covariance", NAMES)
@pytest.mark.parametrize("steps", [1, 20])
def test_as_scikit_learn(covariance, steps):
    x, start = drawn()
    theirs = by_scikit_learn(x, start, covariance, steps)
    ours = fit_mixture(x, start, 6, covariance, steps=steps, tolerance=0)
    assert len(ours.trace) == steps
    assert ours.log_likelihood(x) == pytest.approx(theirs.score(x), rel=1e-9)
    np.testing.assert_allclose(ours.posteriors(x), theirs.predict_proba(x), atol=1e-8)
    np.testing.assert_allclose(ours.means, theirs.means_, atol=1e-8)
    np.testing.assert_allclose(ours.spread, theirs.covariances_, atol=1e-8)
    np.testing.assert_allclose(ours.counts / len(x), theirs.weights_, atol=1e-8)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_single_precision_is_close_to_double(covariance):
    x, start = drawn(1)
    double = fit_mixture(x, start, 6, covariance, steps=20, tolerance=0)
    single = fit_mixture(x.astype(np.float32), start, 6, covariance, steps=20, tolerance=0)
    shares = single.posteriors(x.astype(np.float32))
    assert shares.dtype == np.float32
    np.testing.assert_allclose(shares, double.posteriors(x), atol=1e-3)
    likelihood = single.log_likelihood(x.astype(np.float32))
    assert likelihood == pytest.approx(double.log_likelihood(x), rel=1e-5)


def test_shrunk_covariances_are_written_out():
    x, start = drawn(2)
    found = fit_mixture(x, start, 6, "shrunk", steps=1)
    own = [np.cov(x[start == k].T, bias=True) for k in range(6)]
    counts = np.bincount(start)
    floor = FLOOR * x.var(axis=0).mean() * np.eye(5)
    shared = sum(c * n for c, n in zip(own, counts, strict=True)) / len(x)
    start_covs = [(n * c + 5 * shared) / (n + 5) + floor for c, n in zip(own, counts, strict=True)]
    logs = np.empty((len(x), 6))
    for k in range(6):
        apart = x - x[start == k].mean(axis=0)
        distance = np.einsum("ni,ij,nj->n", apart, np.linalg.inv(start_covs[k]), apart)
        size = np.linalg.slogdet(2 * math.pi * start_covs[k])[1]
        logs[:, k] = np.log(counts[k] / len(x)) - 0.5 * (distance + size)
    shares = np.exp(logs)
    assert float(found.trace[0]) == pytest.approx(np.log(shares.sum(axis=1)).mean())
    shares /= shares.sum(axis=1, keepdims=True)
    totals = shares.sum(axis=0)
    means = (shares.T @ x) / totals[:, None]
    covs = np.array([np.cov(x.T, bias=True, aweights=shares[:, k]) for k in range(6)])
    shared = np.einsum("k,kij->ij", totals, covs) / len(x)
    mixed = (totals[:, None, None] * covs + 5 * shared) / (totals[:, None, None] + 5) + floor
    np.testing.assert_allclose(found.means, means, atol=1e-9)
    np.testing.assert_allclose(found.spread, mixed, atol=1e-8)


@given(st.integers(0, 2**31), st.sampled_from(["diagonal", "tied", "full"]))
@settings(max_examples=20, deadline=None)
def test_likelihood_rises(seed, covariance):
    x, start = drawn(seed, n=150, d=3, groups=4)
    trace = fit_mixture(x, start, 4, covariance, steps=25, tolerance=0).trace
    assert np.diff(np.array(trace, float)).min() > -1e-4


@given(st.integers(0, 2**31), st.sampled_from(["shrunk", "tied", "full"]))
@settings(max_examples=20, deadline=None)
def test_turning_and_scaling_shift_the_likelihood_by_a_constant(seed, covariance):
    x, start = drawn(seed, n=150, d=3, groups=4)
    turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((3, 3)))[0]
    plain = fit_mixture(x, start, 4, covariance, steps=10, tolerance=0)
    turned = fit_mixture(50 * x @ turn + 1, start, 4, covariance, steps=10, tolerance=0)
    moved = turned.log_likelihood(50 * x @ turn + 1) + 3 * math.log(50)
    assert moved == pytest.approx(plain.log_likelihood(x), abs=1e-6)
    np.testing.assert_allclose(turned.posteriors(50 * x @ turn + 1), plain.posteriors(x), atol=1e-5)


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_duplicates_constants_and_empty_components(covariance, dtype):
    points = np.random.default_rng(0).standard_normal((3, 4)).astype(dtype)
    points[:, 2] = 5.0
    labels = np.repeat([0, 1, 3], 8)  # component 2 has none
    x = np.repeat(points, 8, axis=0)
    found = fit_mixture(x, labels, 5, covariance)
    shares = found.posteriors(x)
    np.testing.assert_allclose(shares, np.eye(5)[labels], atol=1e-6)
    np.testing.assert_allclose(found.counts, [8, 8, 0, 8, 0], atol=1e-6)
    assert np.isfinite(found.log_likelihood(x))


def test_an_empty_component_stays_empty_beside_examples_that_none_explains():
    rng = np.random.default_rng(0)
    far = np.repeat([[0.5, 0.5]], 3, axis=0)
    x = np.concatenate([0.01 * rng.standard_normal((200, 2)) + [[0.0], [1.0]] * 100, far])
    found = fit_mixture(x, np.r_[[0, 1] * 100, 1, 1, 1], 3, steps=60, tolerance=0)
    np.testing.assert_allclose(found.counts, [100, 103, 0], atol=1e-6)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_one_example_a_component_and_single_precision(covariance):
    """Where single precision raises elsewhere: fewer examples a component than dimensions."""
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((60, 40)) * np.linspace(10, 0.1, 40)).astype(np.float32)
    found = fit_mixture(x, np.arange(60) % 30, 30, covariance)
    shares = found.posteriors(x)
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-5)
    far = found.posteriors(x[:5] * 1e6)
    assert np.isfinite(far).all()


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_parts_give_the_same(covariance, monkeypatch):
    x, start = drawn(3)
    expected = fit_mixture(x, start, 6, covariance, steps=6)
    shares = expected.posteriors(x)
    cut = [slice(i, i + 33) for i in range(0, 400, 33)]
    monkeypatch.setattr(mixture, "parts", lambda x, _: cut)
    found = fit_mixture(x, start, 6, covariance, steps=6)
    np.testing.assert_allclose(found.means, expected.means, atol=1e-9)
    np.testing.assert_allclose(found.posteriors(x), shares, atol=1e-9)
    assert found.log_likelihood(x) == pytest.approx(expected.log_likelihood(x))


def test_it_stops_where_a_step_adds_little():
    x, start = drawn(4)
    found = fit_mixture(x, start, 6, tolerance=1e-2, steps=500)
    assert 1 < len(found.trace) < 500
    assert len(found.trace) % mixture.LOOK == 0
    assert found.trace[-1] - found.trace[-2] < 1e-2
    closely = fit_mixture(x, start, 6, tolerance=1e-4, steps=500).trace
    added = np.diff(np.array(closely, float))[mixture.LOOK - 2 :: mixture.LOOK]
    assert len(added) > 2
    assert (added[:-1] >= 1e-4).all(), "it would have stopped before"
    assert added[-1] < 1e-4
    assert len(fit_mixture(x, start, 6, tolerance=1e-2, steps=3).trace) == 3
