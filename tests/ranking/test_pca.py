"""Principal components against scikit-learn and full eigendecompositions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curvewise.ranking import mixture
from curvewise.ranking.mixture import leading, project


def drawn(n, d, power=1.0, seed=0):
    """Features with a power-law spectrum, away from the origin."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    sizes = np.arange(1, d + 1) ** (-power / 2)
    return (rng.standard_normal((n, d)) * sizes) @ turn + rng.standard_normal(d)


@pytest.mark.parametrize(("n", "d"), [(300, 40), (60, 200), (900, 600)])
@pytest.mark.parametrize("energy", [0.5, 0.8, 0.95])
def test_as_scikit_learn(n, d, energy):
    theirs = pytest.importorskip("sklearn.decomposition").PCA(energy, svd_solver="full")
    x = drawn(n, d, 1.5)
    expected = theirs.fit_transform(x)
    scores, projection = project(x, energy)
    assert scores.shape == expected.shape
    assert projection.kept == pytest.approx(theirs.explained_variance_ratio_.sum(), rel=1e-6)
    sign = np.sign((scores * expected).sum(axis=0))
    np.testing.assert_allclose(scores * projection.scale * sign, expected, atol=1e-3)
    other = drawn(20, d, 1.5, seed=1)
    turned = projection.apply(other) * projection.scale * sign
    np.testing.assert_allclose(turned, theirs.transform(other), atol=1e-3)
    assert ((scores**3).sum(axis=0) >= 0).all(), "the longer tail"


@pytest.mark.slow
def test_few_eigenvectors_of_many_are_those_of_all():
    x = drawn(1500, 1000, 1.3)
    matrix = np.cov(x.T)
    values, vectors = np.linalg.eigh(matrix)
    count = int((np.cumsum(values[::-1]) < 0.8 * values.sum()).sum()) + 1
    assert count < 64, "found in the first block"
    found, axes, total = leading(matrix, 0.8)
    assert total == pytest.approx(values.sum())
    np.testing.assert_allclose(found, values[::-1][:count], rtol=1e-5)
    overlap = np.abs((axes * vectors[:, ::-1][:, :count]).sum(axis=0))
    assert overlap.min() > 1 - 1e-3


def test_a_block_that_is_too_narrow_is_widened(monkeypatch):
    monkeypatch.setattr(mixture, "WIDTH", 8)
    matrix = np.cov(drawn(1500, 700, 1.3).T)
    values = np.linalg.eigvalsh(matrix)[::-1]
    found, axes, _ = leading(matrix, 0.8)
    assert len(found) > 8
    np.testing.assert_allclose(found, values[: len(found)], rtol=1e-5)
    np.testing.assert_allclose(axes.T @ axes, np.eye(len(found)), atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["flat", "plateau", "low rank"])
def test_hard_spectra_come_out_exact(kind):
    values = {
        "flat": np.ones(600),
        "plateau": np.concatenate([np.full(20, 20.0), np.full(580, 1.0)]),
        "low rank": np.concatenate([np.linspace(2, 1, 9), np.zeros(591)]),
    }[kind]
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((600, 600)))[0]
    matrix = ((turn * values) @ turn.T).astype(np.float32)
    count = int((np.cumsum(values) < 0.8 * values.sum() - 1e-3).sum()) + 1
    found, axes, total = leading(matrix, 0.8)
    assert abs(len(found) - count) <= 1
    assert found.sum() >= 0.8 * total * (1 - 1e-5)
    np.testing.assert_allclose(found, values[: len(found)], rtol=1e-3)
    np.testing.assert_allclose(matrix @ axes, axes * found, atol=0.02)


def test_all_energy_keeps_every_direction_that_varies():
    x = drawn(200, 30)
    scores, projection = project(np.hstack([x, x[:, :5], np.ones((200, 2))]), 1.0)
    assert scores.shape == (200, 30)
    assert projection.kept == pytest.approx(1)
    assert project(x[:10], 1.0)[0].shape == (10, 9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(50, 8), (8, 50)])
def test_examples_that_are_all_the_same_have_one_score(dtype, shape):
    x = np.broadcast_to(np.random.default_rng(0).standard_normal(shape[1]), shape).astype(dtype)
    scores, projection = project(x)
    np.testing.assert_array_equal(scores, np.zeros((shape[0], 1)))
    np.testing.assert_array_equal(projection.apply(x + dtype(5)), np.zeros((shape[0], 1)))


@pytest.mark.parametrize("shape", [(300, 8), (30, 80)])
def test_a_large_constant_does_not_hide_the_other_features(shape):
    x = drawn(*shape).astype(np.float32)
    beside = np.c_[x, np.full(len(x), 1e8, np.float32)]
    np.testing.assert_allclose(project(beside)[0], project(x)[0], atol=1e-4)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_scale_does_not_overflow_single_precision(scale):
    x = drawn(100, 20).astype(np.float32)
    scores, _ = project(x)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(project(x * np.float32(scale))[0], scores, atol=1e-4)


@given(st.integers(0, 2**31))
@settings(max_examples=20, deadline=None)
def test_turning_moving_scaling_and_shuffling_features_leave_scores(seed):
    rng = np.random.default_rng(seed)
    x = drawn(80, 12, 2.0, seed)
    turn = np.linalg.qr(rng.standard_normal((12, 12)))[0]
    order = rng.permutation(80)
    scores, projection = project(x)
    turned, other = project(7 * (x[order] @ turn) - 3)
    np.testing.assert_allclose(turned * other.scale / 7, scores[order] * projection.scale, atol=1e-6)


def test_a_memory_map_is_read_in_parts(tmp_path, monkeypatch):
    x = drawn(100, 6)
    np.save(tmp_path / "x.npy", x)
    expected = project(x)[0]
    monkeypatch.setattr(mixture, "ROWS", 7)
    found = project(np.load(tmp_path / "x.npy", mmap_mode="r"))[0]
    np.testing.assert_allclose(found, expected, atol=1e-12)
