"""GBC against distances of Gaussians by their determinants, and by integration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.ranking.moments import gbc
from curvewise.ranking.scoring import MEASURES


def made(n: int, d: int, classes: int, seed: int):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % classes)
    wide = rng.uniform(0.5, 2, (classes, d))
    means = rng.standard_normal((classes, d))
    return rng.standard_normal((n, d)) * wide[labels] + means[labels], labels


def by_definition(features, labels, spherical: bool) -> float:
    """All ordered pairs, with full matrices, determinants and inverses."""
    total = 0.0
    classes, d = np.unique(labels), features.shape[1]
    mean = {c: features[labels == c].mean(axis=0) for c in classes}
    spread = {c: np.diag(features[labels == c].var(axis=0)) for c in classes}
    if spherical:
        spread = {c: np.eye(d) * np.trace(s) / d for c, s in spread.items()}
    for a in classes:
        for b in classes:
            if a != b:
                middle, moved = (spread[a] + spread[b]) / 2, mean[a] - mean[b]
                product = np.linalg.det(spread[a]) * np.linalg.det(spread[b])
                distance = moved @ np.linalg.inv(middle) @ moved / 8
                distance += np.log(np.linalg.det(middle) / np.sqrt(product)) / 2
                total -= np.exp(-distance)
    return total


@pytest.mark.parametrize("covariance", ["spherical", "diagonal"])
def test_is_its_definition(covariance):
    features, labels = made(90, 5, 4, seed=0)
    expected = by_definition(features, labels, covariance == "spherical")
    assert gbc(features, labels, covariance=covariance) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("covariance", ["spherical", "diagonal"])
@pytest.mark.parametrize(("n", "d"), [(90, 12), (30, 80)])
def test_principal_components_are_scikit_learns(n, d, covariance):
    decomposition = pytest.importorskip("sklearn.decomposition")
    features, labels = made(n, d, 3, seed=1)
    reduced = decomposition.PCA(4, svd_solver="full").fit_transform(features)
    expected = by_definition(reduced, labels, covariance == "spherical")
    found = gbc(features, labels, covariance=covariance, dims=4)
    assert found == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(("n", "d"), [(90, 12), (30, 80)])
def test_axes_of_rounding_are_not_counted(n, d):
    """Features that span three dimensions have three principal components, however many asked."""
    plain, labels = made(n, 3, 3, seed=4)
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((d, 3)))[0]
    found = gbc(plain @ basis.T, labels, dims=8)
    assert found == pytest.approx(by_definition(plain, labels, spherical=True), rel=1e-8)


def test_is_the_integral_of_the_root_of_the_densities():
    """In one dimension the coefficient of two Gaussians is ∫ √(p q)."""
    features, labels = made(60, 1, 2, seed=2)
    p, q = (norm(features[labels == c].mean(), features[labels == c].std()) for c in range(2))
    overlap = quad(lambda x: np.sqrt(p.pdf(x) * q.pdf(x)), -30, 30, limit=200)[0]
    assert gbc(features, labels) == pytest.approx(-2 * overlap, rel=1e-7)


def test_many_features_are_reduced_by_default():
    features, labels = made(300, 100, 3, seed=3)
    assert gbc(features, labels) == pytest.approx(gbc(features, labels, dims=64), rel=1e-12)
    assert gbc(features, labels) != pytest.approx(gbc(features, labels, dims=None), rel=1e-6)


def test_several_labels_are_a_row_each():
    features, _ = made(60, 5, 2, seed=4)
    marks = np.random.default_rng(1).integers(0, 2, (60, 3))
    rows, codes = np.nonzero(marks)
    assert gbc(features, marks) == pytest.approx(gbc(features[rows], codes), rel=1e-12)


def test_from_all_the_same_to_all_apart():
    rng = np.random.default_rng(0)
    labels = np.arange(3000) % 3
    noise = rng.standard_normal((3000, 4))
    assert gbc(noise, labels) == pytest.approx(-6, abs=0.02)
    assert gbc(noise + 100 * np.eye(3, 4)[labels], labels) == pytest.approx(0, abs=1e-12)


def test_class_of_one_example_takes_the_variance_of_the_others():
    features, labels = made(61, 3, 2, seed=5)
    labels[0] = 9
    with pytest.warns(CurvewiseWarning, match="1 class has a single example"):
        found = gbc(features, labels)
    # By hand: two copies of it, moved so that mean and variance come out as promised.
    within = sum(((features[labels == c] - features[labels == c].mean(axis=0)) ** 2).sum(axis=0) for c in range(2))
    step = np.sqrt((within / 60).mean())
    copies = np.vstack([features[0] + step, features[0] - step])
    twice = np.vstack([features[1:], copies])
    expected = by_definition(twice, np.r_[labels[1:], 9, 9], True)
    assert found == pytest.approx(expected, rel=1e-10)


def test_all_classes_of_one_example():
    with (
        pytest.warns(CurvewiseWarning, match="4 classes have a single example"),
        pytest.warns(CurvewiseWarning, match="hardly any variance"),
    ):
        assert gbc(np.eye(4), np.arange(4)) == 0.0


def test_warns_of_a_collapsed_class():
    features, labels = made(60, 3, 3, seed=6)
    features[labels == 1] = 4.0
    with pytest.warns(CurvewiseWarning, match="1 of 3 classes have hardly any variance"):
        score = gbc(features, labels)
    assert -6 <= score <= 0


@pytest.mark.parametrize("covariance", ["spherical", "diagonal"])
def test_a_narrow_class_is_taken_as_it_is(covariance):
    """A millionth of the others' variance is still resolved, and passes without a warning."""
    features, labels = made(60, 1, 3, seed=6)
    features[labels == 1] *= 1e-3 / features[labels == 1].std() * features.std()
    features[labels == 1] -= features[labels == 1].mean() - features[labels == 0].mean()
    expected = by_definition(features, labels, covariance == "spherical")
    assert gbc(features, labels, covariance=covariance) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("dims", [None, 64])
def test_dead_features_do_not_matter_to_the_diagonal(dims):
    """Nor are they warned of as classes without variance."""
    features, labels = made(60, 3, 3, seed=6)
    dead = np.hstack([features, np.full((60, 5), 7.0)])
    found = gbc(dead, labels, covariance="diagonal", dims=dims)
    assert found == pytest.approx(gbc(features, labels, covariance="diagonal"), rel=1e-12)


def test_fewer_examples_than_components_are_no_reason_to_warn():
    features, labels = made(30, 80, 3, seed=6)
    assert -6 < gbc(features, labels, covariance="diagonal") < 0


@pytest.mark.parametrize("value", [1.0, 0.1])  # 0.1 is not its own mean, but for rounding
@pytest.mark.parametrize("dims", [2, None])
def test_features_that_are_all_the_same(value, dims):
    with pytest.warns(CurvewiseWarning, match="same for all examples"):
        assert gbc(np.full((12, 3), value), np.arange(12) % 3, dims=dims) == -6.0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"covariance": "full"}, "covariance='full'"),
        ({"dims": 0}, "dims=0"),
        ({"dims": 2.5}, "dims=2.5: must be a whole number"),
    ],
    ids=["covariance", "dims", "part"],
)
def test_refuses_unknown_options(options, said):
    with pytest.raises(InputError, match=said):
        gbc(*made(30, 3, 3, seed=7), **options)


def test_says_what_it_is():
    measure = MEASURES["gbc"]
    assert (measure.name, measure.function) == ("gbc", gbc)
    assert measure.flops(10_000, 2048, 10) < measure.flops(10_000, 2048, 1000)
