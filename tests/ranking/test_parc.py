"""PARC against loops over pairs with scipy's correlations."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, pearsonr, spearmanr

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.ranking.distances import parc
from curvewise.ranking.scoring import MEASURES


def made(n: int, d: int, classes: int, seed: int):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % classes)
    return rng.standard_normal((n, d)) + rng.standard_normal((classes, d))[labels], labels


def by_pairs(features, marks) -> float:
    pairs = list(combinations(range(len(features)), 2))
    ours = [1 - pearsonr(features[i], features[j]).statistic for i, j in pairs]
    theirs = [round(1 - pearsonr(marks[i], marks[j]).statistic, 12) for i, j in pairs]
    return float(spearmanr(ours, theirs).statistic)


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 4])
def test_is_its_definition(classes):
    features, labels = made(40, 6, classes, seed=classes)
    expected = by_pairs(features, np.eye(classes)[labels])
    assert parc(features, labels, standardise=False) == pytest.approx(expected, rel=1e-10)


def test_features_are_standardised_first_as_in_the_authors_program():
    """scikit-learn's scaler before the plain formula; a constant feature stays out of it, as there."""
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    features, labels = made(60, 6, 3, seed=5)
    uneven = np.c_[features * [1, 10, 100, 1, 1, 0.01] + [5, 0, 0, -3, 0, 0], np.full(60, 7.3)]
    scaled = preprocessing.StandardScaler().fit_transform(uneven)
    expected = by_pairs(scaled, np.eye(3)[labels])
    assert parc(uneven, labels) == pytest.approx(expected, rel=1e-10)
    assert parc(uneven, labels) != pytest.approx(parc(uneven, labels, standardise=False), abs=0.05)


@pytest.mark.slow
def test_is_its_definition_for_several_labels():
    features, _ = made(40, 6, 3, seed=0)
    marks = np.random.default_rng(1).integers(0, 2, (40, 5))
    marks[:, 0], marks[:, 1] = 1, 0  # so that none has all or none
    assert parc(features, marks, standardise=False) == pytest.approx(by_pairs(features, marks), rel=1e-10)


def test_is_a_scaled_mann_whitney_statistic():
    """With two distances of labels, Spearman's ρ is a function of U of like and unlike pairs."""
    features, labels = made(60, 5, 3, seed=1)
    first, second = np.triu_indices(60, 1)
    distance = 1 - np.corrcoef(features)[first, second]
    like = labels[first] == labels[second]
    a, b = like.sum(), (~like).sum()
    auc = mannwhitneyu(distance[~like], distance[like]).statistic / (a * b)
    n = a + b
    expected = (2 * auc - 1) * np.sqrt(3 * a * b / (n**2 - 1))
    assert parc(features, labels, standardise=False) == pytest.approx(expected, rel=1e-10)


def test_more_examples_than_asked_for_are_drawn_by_the_seed():
    features, labels = made(400, 6, 3, seed=2)
    whole = parc(features, labels)
    drawn = [parc(features, labels, examples=150, rng=seed) for seed in range(20)]
    assert parc(features, labels, examples=150, rng=3) == drawn[3]
    assert len(set(drawn)) == 20
    assert np.mean(drawn) == pytest.approx(whole, abs=3 * np.std(drawn) / np.sqrt(20) + 1e-3)
    assert parc(features, labels, examples=400, rng=5) == whole


def test_features_constant_within_examples():
    features, labels = made(40, 4, 2, seed=3)
    features[:5] = 2.0
    with pytest.warns(CurvewiseWarning, match="5 of 40 examples have the same number"):
        some = parc(features, labels, standardise=False)
    assert -1 < some < 1
    with pytest.warns(CurvewiseWarning, match="40 of 40"):
        assert parc(np.ones((40, 4)), labels, standardise=False) == 0.0


@pytest.mark.parametrize("row", [[1.0, 2.0, 4.0], [0.1, 0.7, 0.3]])
def test_examples_with_the_same_features(row):
    with pytest.warns(CurvewiseWarning, match="equally alike"):
        assert parc(np.tile(row, (40, 1)), np.arange(40) % 2) == 0.0


def test_warns_of_few_pairs():
    features, labels = made(12, 5, 6, seed=4)
    with pytest.warns(CurvewiseWarning, match="rests on 6 pairs"):
        parc(features, labels)
    features, _ = made(19, 5, 2, seed=4)
    marks = np.eye(3, dtype=int)[[0] * 13 + [2] * 5 + [1]][:, :2]  # five have no label
    with pytest.warns(CurvewiseWarning, match="rests on 78 pairs"):
        parc(features, marks)


def test_one_example_a_class_cannot_be_used():
    with pytest.raises(InputError, match="no two examples alike"):
        parc(np.random.default_rng(0).standard_normal((8, 5)), np.arange(8))


def test_one_feature_cannot_be_used():
    with pytest.raises(InputError, match="one dimension"):
        parc(np.arange(8.0)[:, None], np.arange(8) % 2)


def test_refuses_to_draw_fewer_than_two():
    with pytest.raises(InputError, match="examples=1"):
        parc(*made(40, 4, 2, seed=3), examples=1)
    with pytest.raises(InputError, match=r"examples=20\.5: must be a whole number, 2 or more"):
        parc(*made(40, 4, 2, seed=3), examples=20.5)


def test_says_what_it_is():
    measure = MEASURES["parc"]
    assert (measure.name, measure.function, measure.seeded) == ("parc", parc, True)
    assert measure.flops(10_000, 2048, 10) == measure.flops(3000, 2048, 10)
