"""Nearest neighbours against scikit-learn and against all pairs one by one."""

from __future__ import annotations

import numpy as np
import pytest

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.ranking.distances import knn
from curvewise.ranking.scoring import MEASURES


def made(n: int, d: int, classes: int, seed: int):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % classes)
    return rng.standard_normal((n, d)) + rng.standard_normal((classes, d))[labels], labels


def by_pairs(train, labels, test, truth, neighbours: int, cosine: bool = False) -> float:
    """Every distance by itself, shares of votes as the docstring promises; None leaves one out."""
    hits = []
    asking = train if test is None else test
    for place, x in enumerate(asking):
        if cosine:
            lengths = np.linalg.norm(train, axis=1) * np.linalg.norm(x)
            distance = 1 - train @ x / lengths
        else:
            distance = np.sqrt(((train - x) ** 2).sum(axis=1))
        if test is None:
            distance[place] = np.inf
        last = np.sort(distance)[neighbours - 1]
        sure, tied = distance < last - 1e-9, abs(distance - last) <= 1e-9
        weight = sure + tied * (neighbours - sure.sum()) / tied.sum()
        votes = {c: weight[labels == c].sum() for c in np.unique(labels)}
        winners = [c for c, v in votes.items() if v > max(votes.values()) - 1e-9]
        hits.append(((labels if test is None else truth)[place] in winners) / len(winners))
    return float(np.mean(hits))


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("neighbours", [1, 4, 5])
def test_is_its_definition(metric, neighbours):
    features, labels = made(150, 4, 3, seed=neighbours)
    cosine = metric == "cosine"
    left_out = knn(features, labels, neighbours=neighbours, metric=metric)
    assert left_out == pytest.approx(by_pairs(features, labels, None, None, neighbours, cosine), abs=1e-12)
    train, test = np.arange(150) < 100, np.arange(150) >= 100
    found = knn(
        features[train], labels[train], test_features=features[test], test_labels=labels[test],
        neighbours=neighbours, metric=metric,
    )  # fmt: skip
    expected = by_pairs(features[train], labels[train], features[test], labels[test], neighbours, cosine)
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_is_scikit_learns_without_ties(metric):
    """One neighbour of continuous features, or three of two classes: no tie can arise."""
    near = pytest.importorskip("sklearn.neighbors")
    selection = pytest.importorskip("sklearn.model_selection")
    for classes, neighbours in ((4, 1), (2, 3)):
        features, labels = made(80, 5, classes, seed=classes)
        model = near.KNeighborsClassifier(neighbours, metric=metric)
        expected = selection.cross_val_score(model, features, labels, cv=selection.LeaveOneOut()).mean()
        found = knn(features, labels, neighbours=neighbours, metric=metric)
        assert found == pytest.approx(expected, abs=1e-12)
        model.fit(features[:50], labels[:50])
        expected = model.score(features[50:], labels[50:])
        found = knn(
            features[:50], labels[:50], test_features=features[50:], test_labels=labels[50:],
            neighbours=neighbours, metric=metric,
        )  # fmt: skip
        assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ties_on_a_lattice(dtype):
    """Whole numbers are full of equal distances; far from 0 rounding would tell them apart."""
    rng = np.random.default_rng(0)
    features, labels = rng.integers(0, 4, (200, 3)).astype(dtype) + 1000, rng.integers(0, 4, 200)
    expected = by_pairs(features.astype(float), labels, None, None, 5)
    assert knn(features, labels) == pytest.approx(expected, abs=1e-12)


def test_equal_votes_are_shared():
    features, labels = np.array([[0.0], [2.0]]), [0, 1]
    found = knn(features, labels, test_features=[[1.0]], test_labels=[0], neighbours=1)
    assert found == 0.5
    found = knn(features, labels, test_features=[[0.1]], test_labels=[0], neighbours=2)
    assert found == 0.5


def test_features_that_are_all_the_same():
    """All others are neighbours, most of them of another class."""
    with pytest.warns(CurvewiseWarning, match="the same for all examples"):
        assert knn(np.ones((30, 2)), np.arange(30) % 2) == 0.0
    labels = np.repeat([0, 1], [20, 10])
    with pytest.warns(CurvewiseWarning, match="the same for all examples"):
        assert knn(np.ones((30, 2)), labels) == pytest.approx(20 / 30)


def test_one_far_example_does_not_make_all_others_ties():
    features, labels = made(150, 4, 3, seed=9)
    features[0] = 1e5
    single = knn(features.astype(np.float32), labels)
    assert single == pytest.approx(by_pairs(features, labels, None, None, 5), abs=1e-12)


def test_a_large_offset_does_not_make_ties():
    rng = np.random.default_rng(0)
    labels = np.arange(200) % 3
    features = rng.standard_normal((200, 4)) + 0.7 * labels[:, None]
    assert knn(features + 1e8, labels) == knn(np.round(features * 2**20) / 2**20, labels)


def test_blocks_make_no_difference(monkeypatch):
    features, labels = made(101, 4, 3, seed=2)
    whole = knn(features, labels)
    monkeypatch.setattr("curvewise.ranking.distances.BLOCK", 1000)
    assert knn(features, labels) == whole


def test_zero_vectors_have_no_direction_and_are_not_refused():
    features, labels = made(60, 4, 3, seed=3)
    features[0] = 0.0
    assert 0 < knn(features, labels, metric="cosine") < 1


def test_warns_of_classes_of_one_example():
    features, labels = made(40, 4, 2, seed=4)
    labels[:2] = 7, 8
    with pytest.warns(CurvewiseWarning, match="2 classes have a single example"):
        knn(features, labels)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"metric": "manhattan"}, "metric='manhattan'"),
        ({"neighbours": 0}, "neighbours=0"),
        ({"neighbours": 40}, "from 1 to 39"),
        ({"test_features": np.zeros((2, 4))}, "without test_labels"),
        ({"test_features": np.zeros((2, 3)), "test_labels": [0, 1]}, "3 columns"),
        ({"neighbours": 2.5}, "neighbours=2.5: must be a whole number"),
        ({"test_features": np.zeros((2, 4)), "test_labels": [0, 5]}, "class 5"),
        ({"test_features": np.zeros((2, 4)), "test_labels": [0]}, "for 2 examples"),
    ],
    ids=["metric", "none", "too many", "half", "dimensions", "part", "unknown", "length"],
)
def test_refuses_what_cannot_be_used(options, said):
    with pytest.raises(InputError, match=said):
        knn(*made(40, 4, 2, seed=4), **options)


def test_says_what_it_is():
    measure = MEASURES["knn"]
    assert (measure.name, measure.function, measure.splits) == ("knn", knn, True)
    assert measure.flops(10_000, 2048, 10) == pytest.approx(4e11, rel=0.1)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("scale", [1e-25, 1e30])
def test_squares_beyond_single_precision(scale, metric):
    """Squares of 1e30 overflow in float32, and the share of hits was that of a guess."""
    features, labels = made(120, 5, 3, seed=4)
    found = knn((features * scale).astype(np.float32), labels, metric=metric)
    assert found == knn(features, labels, metric=metric) > 0.5


def test_labels_of_test_examples_have_a_column_for_each_class():
    with pytest.raises(InputError, match="several classes per example"):
        knn(np.arange(12.0)[:, None], np.eye(3)[[0, 1, 2] * 4], test_features=[[0.0], [1.0]], test_labels=np.eye(2))


def test_several_labels_of_test_examples_are_refused():
    several = [[1, 0], [1, 1]]
    with pytest.raises(InputError, match="several classes per example"):
        knn(np.arange(12.0)[:, None], np.eye(2)[[0, 1] * 6], test_features=[[0.0], [1.0]], test_labels=several)


def test_true_is_no_number_of_neighbours():
    with pytest.raises(InputError, match="must be a whole number, 1 or more"):
        knn(np.arange(12.0)[:, None], [0, 1] * 6, neighbours=True)
