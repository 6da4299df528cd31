"""TransRate against eigenvalues and the definition with determinants."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.ranking.moments import transrate
from curvewise.ranking.scoring import MEASURES


def made(n: int, d: int, classes: int, seed: int, apart: float = 1.0):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.r_[np.arange(n - n // 3) % classes, np.zeros(n // 3, dtype=int)])
    return rng.standard_normal((n, d)) + 3 + apart * np.eye(classes, d)[labels], labels


def by_singular_values(features, labels, eps: float) -> float:
    """½ Σ log(1 + σ²/(n ε)) over all singular values, less the same within classes."""

    def rate(rows):
        values = np.linalg.svd(rows, compute_uv=False)
        return 0.5 * np.log1p(values**2 / (len(rows) * eps)).sum()

    centred = features - features.mean(axis=0)
    within = sum((labels == c).mean() * rate(centred[labels == c]) for c in np.unique(labels))
    return rate(centred) - within


@pytest.mark.parametrize("eps", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize(("n", "d"), [(90, 4), (90, 25)])
def test_is_its_definition(n, d, eps):
    features, labels = made(n, d, 4, seed=n + d)
    expected = by_singular_values(features, labels, eps)
    assert transrate(features, labels, eps=eps) == pytest.approx(expected, rel=1e-9)


def test_is_its_definition_with_fewer_examples_than_features():
    features, labels = made(30, 70, 4, seed=0)
    with pytest.warns(CurvewiseWarning, match="30 examples with 70 features"):
        found = transrate(features, labels)
    assert found == pytest.approx(by_singular_values(features, labels, 1e-4), rel=1e-9)


@pytest.mark.parametrize("scale", [1e6, 1e9])
@pytest.mark.parametrize(("n", "d"), [(30, 70), (90, 12)])
def test_large_features_that_depend_on_each_other(n, d, scale):
    """Where the 1 of I + ZᵀZ/(n ε) is lost beside the rest, and a Cholesky factor fails."""
    features, labels = made(n, d, 4, seed=3)
    features = scale * np.c_[features, features[:, ::-1] - features]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        found = transrate(features, labels)
    basis = np.linalg.svd(features - features.mean(axis=0), full_matrices=False)[2]
    rank = min(n - 1, d)
    expected = by_singular_values(features @ basis[:rank].T, labels, 1e-4)
    assert found == pytest.approx(expected, rel=1e-6)


def test_is_a_mutual_information_for_small_distortion():
    """For Gaussians centred alike it tends to H(Z) − H(Z|Y), known from their variances."""
    rng = np.random.default_rng(0)
    labels = np.arange(60_000) % 3
    spread = np.array([1.0, 2.0, 4.0])
    features = rng.standard_normal((60_000, 2)) * spread[labels][:, None]
    expected = 2 * 0.5 * (np.log(np.mean(spread**2)) - np.mean(np.log(spread**2)))
    assert transrate(features, labels, eps=1e-6) == pytest.approx(expected, abs=0.01)


def test_unit_scale_takes_the_scale_away():
    features, labels = made(90, 5, 3, seed=1)
    expected = by_singular_values(features / np.sqrt(features.var(axis=0).mean()), labels, 1e-4)
    for scale in (1.0, 1e-3, 1e3):
        found = transrate(scale * features, labels, unit_scale=True)
        assert found == pytest.approx(expected, rel=1e-8)


def test_rows_of_norm_1_before_and_after_centring_as_in_the_authors_program():
    """Classes of several sizes, which count by their share; a row of zeros stays one."""
    features, labels = made(90, 5, 3, seed=6)
    features[4] = 0
    norms = np.linalg.norm(features, axis=1, keepdims=True)
    z = features / np.where(norms > 0, norms, 1)
    z -= z.mean(axis=0)
    z /= np.linalg.norm(z, axis=1, keepdims=True)

    def rate(rows):
        values = np.linalg.eigvalsh(rows.T @ rows / len(rows))
        return 0.5 * np.log1p(values / 1e-4).sum()

    within = sum((labels == c).mean() * rate(z[labels == c]) for c in np.unique(labels))
    found = transrate(features, labels, rows="unit")
    assert found == pytest.approx(rate(z) - within, rel=1e-9)
    assert found != pytest.approx(transrate(features, labels), rel=0.1)
    with pytest.raises(InputError, match=r"rows='norm': use 'plain' or 'unit'"):
        transrate(features, labels, rows="norm")


def test_rates_grow_with_the_distance_of_classes():
    scores = [transrate(*made(300, 6, 4, seed=2, apart=apart)) for apart in (0, 2, 4, 8)]
    assert scores == sorted(scores)


def test_two_classes_are_hardly_seen():
    """The failure that the warning is about."""
    rng = np.random.default_rng(0)
    labels = np.arange(4000) % 2
    features = rng.standard_normal((4000, 3)) + 50 * labels[:, None]
    with pytest.warns(CurvewiseWarning, match="two classes"):
        assert abs(transrate(features, labels)) < 0.01


def test_several_labels_are_a_row_each():
    features, _ = made(60, 5, 3, seed=3)
    marks = np.random.default_rng(1).integers(0, 2, (60, 3))
    rows, codes = np.nonzero(marks)
    assert transrate(features, marks) == pytest.approx(transrate(features[rows], codes), rel=1e-12)


def test_features_that_are_all_the_same():
    labels = np.arange(12) % 3
    assert transrate(np.ones((12, 3)), labels) == 0.0
    assert transrate(np.ones((12, 3)), labels, unit_scale=True) == 0.0


@pytest.mark.parametrize("eps", [0.0, -1.0, float("inf"), float("nan")])
def test_refuses_a_distortion_that_is_none(eps):
    with pytest.raises(InputError, match="eps="):
        transrate(*made(30, 3, 3, seed=4), eps=eps)


def test_says_what_it_is():
    measure = MEASURES["transrate"]
    assert (measure.name, measure.function) == ("transrate", transrate)
    assert measure.flops(10_000, 2048, 10) > measure.flops(10_000, 2048, 100)


@pytest.mark.parametrize("value", ["0.1", None, True])
def test_a_precision_that_is_no_number_is_named(value):
    with pytest.raises(InputError, match=f"eps={value!r}: give a number above 0"):
        transrate(np.eye(6), [0, 1, 2] * 2, eps=value)
