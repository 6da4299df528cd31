"""The H-score against its definition, with scikit-learn's covariance."""

from __future__ import annotations

import numpy as np
import pytest

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.ranking.moments import h_score
from curvewise.ranking.rank import rank_features
from curvewise.ranking.scoring import MEASURES


def made(n: int, d: int, classes: int, seed: int):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % classes)
    features = rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) + 5
    return features + rng.standard_normal((classes, d))[labels], labels


def by_definition(features, labels, shrinkage: float) -> float:
    """tr(Σ_a⁻¹ (1 − a) cov(E[f|y])) with the mean of its class in the place of each example."""
    means = np.array([features[labels == label].mean(axis=0) for label in labels])
    covariance = np.cov(features.T, bias=True)
    sphere = np.trace(covariance) / len(covariance) * np.eye(len(covariance))
    shrunk = (1 - shrinkage) * covariance + shrinkage * sphere
    between = np.cov(means.T, bias=True)
    return float((1 - shrinkage) * np.trace(np.linalg.pinv(shrunk) @ between))


@pytest.mark.parametrize(("n", "d"), [(80, 6), (30, 30), (25, 60)])
def test_shrinks_as_scikit_learn(n, d):
    covariance = pytest.importorskip("sklearn.covariance")
    features, labels = made(n, d, 4, seed=n)
    shrinkage = covariance.ledoit_wolf(features)[1]
    assert 0 < shrinkage < 1
    assert h_score(features, labels) == pytest.approx(by_definition(features, labels, shrinkage), rel=1e-9)


@pytest.mark.parametrize("shrinkage", [0.0, 0.2, 0.9])
@pytest.mark.parametrize(("n", "d"), [(80, 6), (40, 39)])
def test_is_its_definition(n, d, shrinkage):
    features, labels = made(n, d, 3, seed=1)
    expected = by_definition(features, labels, shrinkage)
    assert h_score(features, labels, shrinkage) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("shrinkage", [0.05, 0.5])
def test_is_its_definition_with_fewer_examples_than_features(shrinkage):
    features, labels = made(25, 60, 3, seed=2)
    expected = by_definition(features, labels, shrinkage)
    assert h_score(features, labels, shrinkage) == pytest.approx(expected, rel=1e-9)


def test_one_feature_is_the_share_of_variance_between_classes():
    """With d = 1 the plain score is η² of a one-way analysis of variance."""
    from scipy.stats import f_oneway

    features, labels = made(60, 1, 3, seed=3)
    groups = [features[labels == c, 0] for c in range(3)]
    ratio = f_oneway(*groups).statistic * 2 / 57  # between over within sums of squares
    assert h_score(features, labels, 0) == pytest.approx(ratio / (1 + ratio), rel=1e-10)
    assert h_score(features, labels) == pytest.approx(ratio / (1 + ratio)), "nothing to shrink to"


def test_is_the_sum_of_squared_canonical_correlations():
    features, labels = made(80, 6, 4, seed=4)
    left = np.linalg.qr(features - features.mean(axis=0))[0]
    marks = np.eye(4)[labels][:, :3]
    right = np.linalg.qr(marks - marks.mean(axis=0))[0]
    correlations = np.linalg.svd(left.T @ right, compute_uv=False)
    assert h_score(features, labels, 0) == pytest.approx((correlations**2).sum(), rel=1e-10)


@pytest.mark.parametrize("d", [20, 50])
def test_plain_score_says_nothing_with_few_examples(d):
    rng = np.random.default_rng(0)
    labels = np.arange(20) % 4
    with pytest.warns(CurvewiseWarning, match="number of classes less one"):
        score = h_score(rng.standard_normal((20, d)), labels, 0)
    assert score == pytest.approx(3)
    assert h_score(rng.standard_normal((20, d)), labels) < 1.5  # shrunk, noise is seen as such


def test_dead_features_change_nothing_in_the_plain_score():
    features, labels = made(60, 5, 3, seed=5)
    padded = np.hstack([features, np.full((60, 4), 3.0), features[:, :1]])
    assert h_score(padded, labels, 0) == pytest.approx(h_score(features, labels, 0), rel=1e-8)


def test_several_labels_are_a_row_each():
    features, _ = made(40, 5, 2, seed=6)
    marks = np.random.default_rng(1).integers(0, 2, (40, 3))
    rows, codes = np.nonzero(marks)
    assert h_score(features, marks) == pytest.approx(h_score(features[rows], codes), rel=1e-12)


def test_single_precision_is_enough():
    features, labels = made(200, 10, 3, seed=7)
    single = h_score(features.astype(np.float32), labels)
    assert single == pytest.approx(h_score(features, labels), abs=1e-5)


@pytest.mark.parametrize("value", [1.0, 0.1])  # 0.1 is not its own mean, but for rounding
def test_features_that_are_all_the_same(value):
    with pytest.warns(CurvewiseWarning, match="same for all examples"):
        assert h_score(np.full((10, 3), value), np.arange(10) % 2) == 0.0


def test_features_whose_covariance_is_a_sphere_already():
    corners = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    assert h_score(corners, [0, 0, 1, 1]) == 0.0  # Ledoit and Wolf shrink all the way
    assert h_score(corners, [0, 0, 1, 1], 0) == pytest.approx(1)


def test_warns_of_a_class_of_one_example():
    features, labels = made(30, 4, 3, seed=8)
    labels[0] = 7
    with pytest.warns(CurvewiseWarning, match="1 class has a single example"):
        h_score(features, labels)


@pytest.mark.parametrize("shrinkage", [-0.1, 1.0, float("nan")])
def test_refuses_a_shrinkage_outside_its_range(shrinkage):
    with pytest.raises(InputError, match="shrinkage="):
        h_score(*made(30, 4, 3, seed=8), shrinkage)


def test_refuses_numbers_as_labels():
    with pytest.raises(InputError, match="numbers"):
        h_score(np.eye(4), [0.5, 1.5, 2.5, 3.5])


def test_says_what_it_is():
    measure = MEASURES["h-score"]
    assert (measure.name, measure.function) == ("h-score", h_score)
    assert measure.flops(10_000, 2048, 10) < measure.flops(10_000, 4096, 10)


@pytest.mark.parametrize("value", ["0.1", True])
def test_a_shrinkage_that_is_no_number_is_named(value):
    with pytest.raises(InputError, match=f"shrinkage={value!r}: give a number from 0"):
        h_score(np.eye(6), [0, 1, 2] * 2, value)


@pytest.mark.slow
def test_parts_that_score_zero_still_vary():
    """Where the shrinkage is 1 for half of the samples, intervals hold the mean of fresh ones."""

    def drawn(rng):
        labels = np.arange(100) % 3
        means = np.array([[0.5, 0, 0], [0, 0.5, 0], [0, 0, 0.5]])
        return means[labels] + rng.standard_normal((100, 3)), labels

    rng = np.random.default_rng(6)
    fresh = np.array([h_score(*drawn(rng)) for _ in range(400)])
    assert 0.3 < (fresh == 0).mean() < 0.7
    held = []
    for seed in range(4):
        samples = {str(i): drawn(rng)[0] for i in range(20)}
        found = rank_features(samples, drawn(rng)[1], "h-score", resamples=20, rng=seed)
        held += [low <= fresh.mean() <= high for low, high in zip(found.score_low, found.score_high, strict=True)]
        assert (found.score_low >= 0).all()
        assert (found.scores["h-score"] >= 0).all()
    assert np.mean(held) >= 0.93
