"""k-means against scikit-learn, and its seeds against their chances."""

from __future__ import annotations

import numpy as np
import pytest

from curvewise.ranking import mixture
from curvewise.ranking.mixture import candidates, cluster, fit_mixture, nearest, seeds


def test_rounds_as_scikit_learn():
    sk = pytest.importorskip("sklearn.cluster")
    rng = np.random.default_rng(0)
    x = rng.standard_normal((500, 6)) + 2 * rng.standard_normal((8, 6))[rng.integers(8, size=500)]
    draws = rng.random((12, candidates(12)))
    start = seeds(x[np.argsort(x[:, 0])], draws)
    theirs = sk.KMeans(12, init=start, n_init=1, max_iter=mixture.ROUNDS, tol=0).fit(x)
    np.testing.assert_array_equal(cluster(x, draws), theirs.predict(x))


@pytest.mark.slow
def test_seeds_are_drawn_by_squared_distance():
    x = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])
    draws = np.random.default_rng(0).random((6_000, 2, 1))  # one candidate
    found = np.array([nearest(seeds(x, pair), x) for pair in draws])
    np.testing.assert_allclose(np.bincount(found[:, 0]) / 6_000, 0.25, atol=0.02)
    after = np.bincount(found[found[:, 0] == 0, 1], minlength=4)
    np.testing.assert_allclose(after / after.sum(), np.array([0, 1, 4, 9]) / 14, atol=0.04)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_more_clusters_than_distinct_points_stay_empty(dtype):
    points = np.random.default_rng(0).standard_normal((3, 5)).astype(dtype)
    labels = cluster(np.repeat(points, 10, axis=0), np.linspace(0.05, 0.95, 24).reshape(8, 3))
    assert [len(set(labels[i : i + 10])) for i in (0, 10, 20)] == [1, 1, 1]
    assert len(set(labels)) == 3


def test_order_of_examples_does_not_matter():
    rng = np.random.default_rng(1)
    x, draws, order = rng.standard_normal((300, 4)), rng.random((10, 4)), rng.permutation(300)
    np.testing.assert_array_equal(cluster(x[order], draws), cluster(x, draws)[order])


def test_parts_give_the_same(monkeypatch):
    rng = np.random.default_rng(2)
    x, draws = rng.standard_normal((300, 4)), rng.random((10, 4))
    expected = cluster(x, draws)
    monkeypatch.setattr(mixture, "parts", lambda x, _: [slice(i, i + 37) for i in range(0, 300, 37)])
    np.testing.assert_array_equal(cluster(x, draws), expected)


def test_of_the_candidates_the_best_is_taken():
    """Step by step with brute force."""
    rng = np.random.default_rng(3)
    x, draws = rng.standard_normal((60, 3)), rng.random((6, 4))
    found = seeds(x, draws)
    chances = ((x - found[0]) ** 2).sum(axis=1)
    for k in range(1, 6):
        tried = np.searchsorted(np.cumsum(chances), draws[k] * chances.sum())
        left = [np.minimum(chances, ((x - x[row]) ** 2).sum(axis=1)) for row in tried]
        best = int(np.argmin([each.sum() for each in left]))
        np.testing.assert_array_equal(found[k], x[tried[best]])
        chances = left[best]


def test_many_blobs_are_found_as_by_scikit_learn():
    """Mean log-likelihood over 8 sets of 30 blobs; one candidate a seed is 2 nats worse."""
    sk = pytest.importorskip("sklearn.mixture")
    ours, theirs, plain = [], [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        centres = rng.uniform(-40, 40, (30, 10))
        x = centres[rng.integers(30, size=1200)] + rng.standard_normal((1200, 10))
        for kept, count in ((ours, candidates(30)), (plain, 1)):
            start = cluster(x, rng.random((30, count)))
            kept.append(fit_mixture(x, start, 30).log_likelihood(x))
        model = sk.GaussianMixture(30, covariance_type="diag", random_state=seed)
        theirs.append(model.fit(x).score(x))
    assert np.mean(ours) > np.mean(theirs) - 0.3
    assert np.mean(ours) > np.mean(plain) + 0.5
