"""LogME against the n × n Gaussian, scikit-learn's evidence and the usual updates."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.ranking.moments import logme
from curvewise.ranking.scoring import MEASURES


def made(n: int, d: int, classes: int, seed: int, apart: float = 1.0):
    """Correlated features around class means, and labels."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    spread = rng.standard_normal((d, d)) / np.sqrt(d)
    means = apart * rng.standard_normal((classes, d))
    return rng.standard_normal((n, d)) @ spread + means[labels], labels


def by_gaussian(features, target) -> float:
    """Log density of the target, N(0, I/β + FFᵀ/α), maximised numerically over α and β."""
    products, eye = features @ features.T, np.eye(len(target))

    def negative(logs):
        covariance = np.exp(-logs[1]) * eye + np.exp(-logs[0]) * products
        return -multivariate_normal.logpdf(target, cov=covariance, allow_singular=True)

    best = min(
        (
            minimize(negative, start, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-9})
            for start in ((0.0, 0.0), (3.0, 1.0), (-2.0, 3.0))
        ),
        key=lambda found: found.fun,
    )
    return -best.fun / len(target)


def by_updates(features, target, steps: int = 100_000) -> float:
    """MacKay's alternating updates of α and β until they stand still."""
    n, d = features.shape
    vectors, values, _ = np.linalg.svd(features, full_matrices=False)
    s, z = values**2, vectors.T @ target
    alpha = beta = 1.0
    for _ in range(steps):
        kept = beta * s / (alpha + beta * s)
        weight = beta * values * z / (alpha + beta * s)
        residual = float(((z - values * weight) ** 2).sum() + target @ target - z @ z)
        before = alpha, beta
        alpha, beta = kept.sum() / (weight @ weight), (n - kept.sum()) / residual
        if abs(alpha / before[0] - 1) + abs(beta / before[1] - 1) < 1e-12:
            break
    weight = beta * values * z / (alpha + beta * s)
    residual = float(((z - values * weight) ** 2).sum() + target @ target - z @ z)
    logdet = np.log(alpha + beta * s).sum() + (d - len(s)) * np.log(alpha)
    evidence = n * np.log(beta / (2 * np.pi)) + d * np.log(alpha) - logdet
    return float(evidence - beta * residual - alpha * weight @ weight) / (2 * n)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "d", "classes"), [(40, 5, 2), (60, 12, 3)])
def test_is_the_gaussian_maximised(n, d, classes):
    features, labels = made(n, d, classes, seed=n)
    expected = [by_gaussian(features, (labels == c).astype(float)) for c in range(classes)]
    assert logme(features, labels) == pytest.approx(np.mean(expected), abs=1e-7)


def test_is_the_gaussian_maximised_with_fewer_examples_than_features():
    features, labels = made(20, 30, 2, seed=1)
    expected = [by_gaussian(features, (labels == c).astype(float)) for c in range(2)]
    with pytest.warns(CurvewiseWarning, match="may be inflated"):
        found = logme(features, labels)
    # The noise tends to 0 here, towards which the numerical search crawls.
    assert found == pytest.approx(np.mean(expected), abs=1e-5)
    assert found >= np.mean(expected) - 1e-9


@pytest.mark.parametrize("apart", [0.5, 1.0, 2.0])
def test_is_where_the_usual_updates_end(apart):
    features, labels = made(300, 20, 4, seed=5, apart=apart)
    expected = [by_updates(features, (labels == c).astype(float)) for c in range(4)]
    assert logme(features, labels) == pytest.approx(np.mean(expected), rel=1e-8)


def test_is_scikit_learns_evidence():
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(3)
    features = rng.standard_normal((150, 8))
    target = features @ rng.standard_normal(8) + rng.standard_normal(150)
    model = linear_model.BayesianRidge(
        alpha_1=0, alpha_2=0, lambda_1=0, lambda_2=0, tol=1e-12, max_iter=10_000,
        compute_score=True, fit_intercept=False,
    ).fit(features, target)  # fmt: skip
    assert logme(features, target) == pytest.approx(model.scores_[-1] / 150, rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "offset"), [(40, 0.0), (90, 0.0), (40, 1e7), (90, 1e6)])
def test_features_that_vary_little_beside_the_largest(n, offset):
    """Where their squares lose the variation: against a singular value decomposition."""
    features, labels = made(n, 60, 3, seed=8)
    large = 0.0 if offset else 1e8
    features = np.c_[features, large * np.random.default_rng(1).standard_normal(n)] + offset
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        found = logme(features, labels)
    expected = np.mean([by_updates(features, (labels == c) * 1.0) for c in range(3)])
    assert found == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("large", "small"), [(1, 1), (3, 2), (10, 2)])
@pytest.mark.parametrize("scale", [1e-2, 1e-3])
def test_the_highest_of_two_maxima_is_found(large, small, scale):
    """Features of two scales: it pays to explain the labels by the large ones, or by all."""
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((40, 40)))[0]
    features = basis[:, :8] * np.repeat([1.0, scale], 4)
    target = large * basis[:, 0] + small * basis[:, 4:8].sum(axis=1)
    target += 0.1 * rng.standard_normal(40)
    evidence = []
    for ratio in np.exp(np.linspace(-10, 25, 1500)):
        inner = np.eye(40) + ratio * features @ features.T
        square = target @ np.linalg.solve(inner, target) / 40
        size = np.linalg.slogdet(inner)[1] / 40
        evidence.append(-0.5 * (np.log(2 * np.pi * square) + 1 + size))
    assert ((np.diff(evidence[:-1]) > 0) & (np.diff(evidence[1:]) < 0)).sum() == 2
    assert logme(features, target) == pytest.approx(max(evidence), abs=1e-4)


def test_several_outputs_and_labels_are_averaged():
    features, labels = made(80, 6, 3, seed=2)
    rng = np.random.default_rng(0)
    targets = features[:, :2] + rng.standard_normal((80, 2))
    each = [logme(features, targets[:, j]) for j in range(2)]
    assert logme(features, targets) == pytest.approx(np.mean(each), rel=1e-12)
    one_hot = np.eye(3)[labels].astype(int)
    assert logme(features, one_hot) == pytest.approx(logme(features, labels), rel=1e-12)


def test_scaling_a_regression_target_moves_every_checkpoint_by_the_same():
    features, _ = made(80, 6, 3, seed=2)
    target = features[:, 0] + np.random.default_rng(0).standard_normal(80)
    moved = logme(features, 10 * target) - logme(features, target)
    assert moved == pytest.approx(-np.log(10), abs=1e-9)


def test_single_precision_is_enough():
    features, labels = made(400, 30, 5, seed=9)
    single = logme(features.astype(np.float32), labels)
    assert single == pytest.approx(logme(features, labels), abs=1e-5)


def test_parts_make_no_difference(monkeypatch):
    features, labels = made(101, 7, 3, seed=4)
    whole = logme(features, labels)
    monkeypatch.setattr("curvewise.ranking.moments.PART", 50)
    assert logme(features, labels) == pytest.approx(whole, rel=1e-12)


def test_better_features_score_more():
    scores = [logme(*made(300, 10, 4, seed=7, apart=apart)) for apart in (0.0, 0.5, 1.0, 2.0)]
    assert scores == sorted(scores)


def test_features_that_say_nothing_leave_noise_alone():
    """The best α is infinite, where the usual updates divide by 0."""
    rng = np.random.default_rng(0)
    target = rng.standard_normal(50)
    features = rng.standard_normal((50, 4))
    features -= np.outer(target, target @ features) / (target @ target)
    noise = -0.5 * (np.log(2 * np.pi * (target @ target) / 50) + 1)
    assert logme(features, target) == pytest.approx(noise, abs=1e-6)


def test_counts_every_weight_where_features_depend_on_each_other():
    """A sum over the rank of the features only would add (d − rank)/2n · log α, many times this."""
    rng = np.random.default_rng(0)
    labels = np.arange(40) % 2
    features = 1e-3 * rng.standard_normal((40, 60))
    with pytest.warns(CurvewiseWarning, match="40 examples with 60 features"):
        wide = logme(features, labels)
    turned = features @ np.linalg.svd(features)[2].T[:, :40]  # the same products of examples
    assert wide == pytest.approx(logme(turned, labels), rel=1e-9)
    assert wide < 0


def test_labels_that_features_give_exactly():
    labels = np.arange(30) % 3
    with pytest.warns(CurvewiseWarning, match="3 of 3 columns of labels are an exact linear"):
        perfect = logme(np.eye(3)[labels], labels)
    # 10⁻¹¹ is left of a class of 10, and three weights have L = 10 λ: 30 log(10/L + 10⁻¹¹) +
    # 3 log(1 + L) is least where L = 9 · 10¹².
    lowest = np.log(1e-11 * 10 / 9) + 0.1 * np.log(9e12)
    assert perfect == pytest.approx(-0.5 * (np.log(2 * np.pi / 30) + 1 + lowest), abs=1e-6)


def test_labels_that_features_give_almost_exactly():
    features, _ = made(80, 6, 2, seed=9)
    rng = np.random.default_rng(0)
    target = features @ rng.standard_normal(6)
    target += 2e-6 * np.linalg.norm(target) * rng.standard_normal(80)
    assert logme(features, target) == pytest.approx(by_updates(features, target), abs=1e-4)


def test_features_without_any_variation():
    labels = np.arange(30) % 2
    noise = -0.5 * (np.log(2 * np.pi * 0.5) + 1)  # labels' mean square is 1/2
    assert logme(np.zeros((30, 4)), labels) == pytest.approx(noise)
    with pytest.warns(CurvewiseWarning, match="the same for all examples"):
        constant = logme(np.ones((30, 4)), labels)  # as good as an intercept
    expected = by_gaussian(np.ones((30, 4)), labels.astype(float))
    assert constant == pytest.approx(expected, abs=1e-7)


def test_redundant_features_change_nothing():
    features, labels = made(60, 5, 3, seed=6)
    padded = np.hstack([features, np.zeros((60, 3))])
    assert logme(padded, labels) == pytest.approx(logme(features, labels), rel=1e-10)


def test_constant_labels_are_left_out_and_said():
    features, labels = made(60, 5, 2, seed=6)
    marks = np.column_stack([labels, 1 - labels, np.zeros(60, dtype=int)])
    with pytest.warns(CurvewiseWarning, match="1 of 3 columns of labels are constant"):
        assert logme(features, marks) == pytest.approx(logme(features, labels))


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (np.zeros(10, dtype=int), "one class only"),
        (np.full(10, 0.5), "one value only"),
        (np.ones((10, 2), dtype=int), "every example the same classes"),
        (np.arange(9) % 2, "for 10 examples"),
        (np.r_[np.linspace(0.5, 1, 9), np.inf], "infinite"),
        (np.r_[np.linspace(0.5, 1, 9), np.nan], "missing"),
    ],
    ids=["one class", "one value", "all marked", "length", "infinite", "missing"],
)
def test_labels_that_cannot_be_used(labels, said):
    with pytest.raises(InputError, match=said):
        logme(np.random.default_rng(0).standard_normal((10, 3)), labels)


def test_features_that_cannot_be_used():
    with pytest.raises(InputError, match="NaN or infinite"):
        logme(np.full((10, 3), np.nan), np.arange(10) % 2)


def test_says_what_it_is():
    measure = MEASURES["logme"]
    assert measure.name == "logme"
    assert measure.function is logme
    assert measure.flops(10_000, 2048, 100) > measure.flops(1000, 2048, 100)
    assert "numbers" in measure.targets
