"""k-means against scikit-learn, and its seeds against their chances."""

from __future__ import annotations

import numpy as np
import pytest

from curvewise.ranking import _clusters
from curvewise.ranking._clusters import cluster, nearest, seeds


def test_rounds_as_scikit_learn():
    sk = pytest.importorskip("sklearn.cluster")
    rng = np.random.default_rng(0)
    x = rng.standard_normal((500, 6)) + 2 * rng.standard_normal((8, 6))[rng.integers(8, size=500)]
    draws = rng.random(12)
    start = seeds(x[np.argsort(x[:, 0])], draws)
    theirs = sk.KMeans(12, init=start, n_init=1, max_iter=_clusters.ROUNDS, tol=0).fit(x)
    np.testing.assert_array_equal(cluster(x, draws), theirs.predict(x))


def test_seeds_are_drawn_by_squared_distance():
    x = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])
    draws = np.random.default_rng(0).random((20_000, 2))
    found = np.array([nearest(seeds(x, pair), x) for pair in draws])
    np.testing.assert_allclose(np.bincount(found[:, 0]) / 20_000, 0.25, atol=0.01)
    after = np.bincount(found[found[:, 0] == 0, 1], minlength=4)
    np.testing.assert_allclose(after / after.sum(), np.array([0, 1, 4, 9]) / 14, atol=0.02)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_more_clusters_than_distinct_points_stay_empty(dtype):
    points = np.random.default_rng(0).standard_normal((3, 5)).astype(dtype)
    labels = cluster(np.repeat(points, 10, axis=0), np.linspace(0.05, 0.95, 8))
    assert [len(set(labels[i : i + 10])) for i in (0, 10, 20)] == [1, 1, 1]
    assert len(set(labels)) == 3


def test_order_of_examples_does_not_matter():
    rng = np.random.default_rng(1)
    x, draws, order = rng.standard_normal((300, 4)), rng.random(10), rng.permutation(300)
    np.testing.assert_array_equal(cluster(x[order], draws), cluster(x, draws)[order])


def test_parts_give_the_same(monkeypatch):
    rng = np.random.default_rng(2)
    x, draws = rng.standard_normal((300, 4)), rng.random(10)
    expected = cluster(x, draws)
    monkeypatch.setattr(
        _clusters, "parts", lambda x, _: [slice(i, i + 37) for i in range(0, 300, 37)]
    )
    np.testing.assert_array_equal(cluster(x, draws), expected)
