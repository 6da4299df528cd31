"""Clustered and stratified means against matrices, statsmodels and the plain formulas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curvewise.stats import cluster_degrees, cluster_variance, sample_design

SIZES = np.array([22, 231, 34, 2, 1, 8, 22, 10, 19, 32, 44, 75])


def by_matrices(y, groups, strata, weights, spreads=None):
    """CR2 and Bell and McCaffrey's degrees of a weighted sum of stratum means, by their definition."""
    n, names = len(y), np.unique(strata)
    x = (strata[:, None] == names).astype(float)
    bread = np.linalg.inv(x.T @ x)
    rest = np.eye(n) - x @ bread @ x.T
    rows = []
    for g in np.unique(groups):
        there = groups == g
        values, vectors = np.linalg.eigh(rest[np.ix_(there, there)])
        root = vectors @ np.diag(values**-0.5) @ vectors.T
        rows.append(weights @ bread @ x[there].T @ root @ rest[there])
    parts = np.array(rows)
    noise = np.ones(n) if spreads is None else spreads
    spread = parts @ np.diag(noise) @ parts.T
    return float(((parts @ y) ** 2).sum()), float(np.trace(spread) ** 2 / (spread**2).sum())


@pytest.fixture
def sample():
    rng = np.random.default_rng(7)
    groups = rng.permutation(np.repeat(np.arange(12), SIZES))
    return rng.normal(size=500) + rng.normal(size=12)[groups], groups


def test_one_stratum_is_cr2_with_bell_and_mccaffreys_degrees(sample):
    y, groups = sample
    design = sample_design(len(y), groups)
    variance, degrees = by_matrices(y, groups, np.zeros(len(y)), np.ones(1))
    assert float(design.mean(y)) == pytest.approx(y.mean())
    assert float(design.variance(y)) == pytest.approx(variance, rel=1e-10)
    assert float(design.degrees(y)) == pytest.approx(degrees, rel=1e-10)
    assert design.effective == pytest.approx(500**2 / (SIZES**2).sum())
    # The functions that start from totals are the same.
    totals = np.bincount(groups, weights=y - y.mean())
    assert float(cluster_variance(totals, np.bincount(groups))) == pytest.approx(variance, rel=1e-10)
    assert cluster_degrees(np.bincount(groups)) == pytest.approx(degrees, rel=1e-10)


@pytest.mark.parametrize("crossed", [False, True])
def test_strata_with_clusters_inside_or_across_them(sample, crossed):
    y, groups = sample
    strata = np.random.default_rng(1).integers(0, 3, len(y)) if crossed else groups % 3
    weights = {0: 0.5, 1: 0.3, 2: 0.2}
    design = sample_design(len(y), groups, strata, weights)
    spreads = np.array([y[strata == t].var(ddof=1) for t in range(3)])[strata]
    variance, degrees = by_matrices(y, groups, strata, np.array([0.5, 0.3, 0.2]), spreads)
    assert float(design.mean(y)) == pytest.approx(sum(w * y[strata == t].mean() for t, w in weights.items()))
    assert float(design.variance(y)) == pytest.approx(variance, rel=1e-10)
    assert float(design.degrees(y)) == pytest.approx(degrees, rel=1e-9)


def test_without_clusters_it_is_the_usual_standard_error_and_welch():
    rng = np.random.default_rng(2)
    y = rng.normal(size=60) * np.repeat([1.0, 3.0], 30)
    plain = sample_design(60)
    assert float(plain.variance(y)) == pytest.approx(y.var(ddof=1) / 60)
    assert float(plain.degrees(y)) == 59
    strata = np.repeat(["a", "b"], 30)
    two = sample_design(60, strata=strata)
    parts = np.array([y[:30].var(ddof=1), y[30:].var(ddof=1)]) / 30 / 4
    assert float(two.variance(y)) == pytest.approx(parts.sum())
    assert float(two.degrees(y)) == pytest.approx(parts.sum() ** 2 / (parts**2 / 29).sum())


def test_equal_clusters_are_statsmodels_cluster_covariance(sample):
    linear = pytest.importorskip("statsmodels.regression.linear_model")
    y, groups = sample
    fit = linear.OLS(y, np.ones(len(y))).fit(cov_type="cluster", cov_kwds={"groups": groups, "use_correction": False})
    totals = np.bincount(groups, weights=y - y.mean())
    assert float(fit.bse[0]) ** 2 == pytest.approx(float((totals**2).sum()) / len(y) ** 2)  # CR0
    # With clusters of equal size CR2 is CR1, which statsmodels corrects by G/(G − 1) · (n − 1)/(n − 1).
    even = np.repeat(np.arange(50), 10)
    fit = linear.OLS(y, np.ones(len(y))).fit(cov_type="cluster", cov_kwds={"groups": even})
    assert float(fit.bse[0]) ** 2 == pytest.approx(float(sample_design(500, even).variance(y)))
    assert float(sample_design(500, even).degrees(y)) == 49


@given(st.integers(0, 10_000), st.booleans(), st.booleans())
def test_pairs_are_their_differences(seed, grouped, stratified):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 40))
    x = rng.normal(size=(4, n))
    x[3] = x[0]
    groups = rng.integers(0, max(3, n // 3), n) if grouped else None
    strata = rng.integers(0, 2, n) if stratified else None
    design = sample_design(n, groups, strata)
    variance, degrees = design.pairwise(x)
    for a, b in ((0, 1), (1, 2), (0, 3)):
        assert variance[a, b] == pytest.approx(float(design.variance(x[a] - x[b])), rel=1e-8, abs=1e-15)
        if variance[a, b] > 0:
            assert degrees[a, b] == pytest.approx(float(design.degrees(x[a] - x[b])), rel=1e-6)
    assert variance[0, 3] == 0


def test_one_cluster_has_no_variance_and_lonely_strata_take_that_of_the_others():
    y = np.array([1.0, 2.0, 4.0, 5.0])
    one = sample_design(4, ["g"] * 4)
    assert np.isnan(float(one.variance(y)))
    assert np.isnan(float(one.degrees(y)))
    alone = sample_design(4, strata=["a", "b", "c", "d"])
    assert alone.lonely.all()
    assert float(alone.variance(y)) == pytest.approx(y.var(ddof=1) / 4)  # as of four sampled questions


def test_layers_are_the_strata():
    strata = np.array(["b", "a", "b", "b"])
    layers = sample_design(4, strata=strata, weights={"a": 1, "b": 3}).layers()
    assert [(own.tolist(), weight) for own, weight, _ in layers] == [([1], 0.25), ([0, 2, 3], 0.75)]


@pytest.mark.slow
def test_coverage_where_one_cluster_holds_half_of_the_questions():
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(12), SIZES)
    design = sample_design(500, groups)
    stats = pytest.importorskip("scipy.stats")
    for std in (0.0, 0.03, 0.1):
        y = (rng.random((3000, 500)) < 0.6 + rng.normal(0, std, (3000, 12))[:, groups]).astype(float)
        gap, half = np.abs(design.mean(y) - 0.6), stats.t.ppf(0.975, design.degrees(y[0])) * np.sqrt(design.variance(y))
        assert 0.935 < (gap <= half).mean() < 0.98
        totals = np.stack([(y - y.mean(axis=1, keepdims=True))[:, groups == g].sum(axis=1) for g in range(12)])
        usual = stats.t.ppf(0.975, 11) * np.sqrt((totals**2).sum(axis=0) * 12 / 11) / 500
        assert (gap <= usual).mean() < 0.92
