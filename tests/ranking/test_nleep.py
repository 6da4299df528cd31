"""NLEEP against scikit-learn's parts put together, and what must not change it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.ranking.mixture import COVARIANCES, FLOOR, candidates, cluster, fit_mixture, project
from curvewise.ranking.prediction import NleepSettings, leep, nleep, nleep_reduced, reduce_features
from curvewise.ranking.scoring import MEASURES


def drawn(seed=0, n=300, d=20, classes=3, apart=1.5):
    """Classes of two groups each, in features with a falling spectrum."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(classes), rng.integers(classes, size=n - classes)])
    group = labels * 2 + rng.integers(2, size=n)
    centres = apart * np.random.default_rng(99).standard_normal((2 * classes, d))
    return (rng.standard_normal((n, d)) + centres[group]) * np.arange(1, d + 1) ** -0.5, labels


def by_scikit_learn(x, labels, test, asked, covariance, steps, components=5, seed=0):
    """PCA, a mixture with our start and as many steps, and LEEP with its posteriors."""
    decomposition = pytest.importorskip("sklearn.decomposition")
    mixture = pytest.importorskip("sklearn.mixture")
    count = components * len(np.unique(labels))
    start = cluster(project(x)[0], np.random.default_rng(seed).random((count, candidates(count))))
    assert len(np.unique(start)) == count
    pca = decomposition.PCA(0.8, svd_solver="full").fit(x)
    reduced = pca.transform(x)
    sk_name = {"diagonal": "diag"}.get(covariance, covariance)
    shares = np.bincount(start) / len(x)
    means = np.array([reduced[start == k].mean(axis=0) for k in range(count)])
    floor = FLOOR * reduced.var(axis=0).mean()
    covs = np.array([np.cov(reduced[start == k].T, bias=True) for k in range(count)])
    covs = covs + floor * np.eye(reduced.shape[1])
    precisions = {
        "diagonal": 1 / np.diagonal(covs, axis1=1, axis2=2),
        "tied": np.linalg.inv(np.average(covs, axis=0, weights=shares)),
        "full": np.linalg.inv(covs),
    }[covariance]
    model = mixture.GaussianMixture(
        count,
        covariance_type=sk_name,
        reg_covar=floor,
        tol=0,
        max_iter=steps,
        init_params="random_from_data",
        random_state=0,
        weights_init=shares,
        means_init=means,
        precisions_init=precisions,
    )
    with pytest.warns(UserWarning, match="did not converge"):
        model.fit(reduced)
    own, tested = model.predict_proba(reduced), model.predict_proba(pca.transform(test))
    return leep(own, labels), leep(own, labels, test_probabilities=tested, test_labels=asked)


@pytest.mark.parametrize("covariance", ["diagonal", "tied", "full"])
def test_as_scikit_learns_parts(covariance):
    x, labels = drawn(n=600)
    test, asked = drawn(1)
    expected = by_scikit_learn(x, labels, test, asked, covariance, 15)
    settings = NleepSettings(covariance=covariance, steps=15, tolerance=0)
    reduced, shown = reduce_features(x, test, 0.8)
    assert nleep_reduced(reduced, labels, settings=settings) == pytest.approx(expected[0], abs=1e-6)
    assert nleep_reduced(reduced, labels, shown, asked, settings) == pytest.approx(expected[1], abs=1e-6)


@given(st.integers(0, 2**31), st.sampled_from(COVARIANCES))
@settings(max_examples=20, deadline=None)
def test_order_names_turns_moves_and_scale_do_not_matter(seed, covariance):
    rng = np.random.default_rng(seed)
    x, labels = drawn(seed, n=200, d=8)
    test, asked = drawn(seed + 1, n=100, d=8)
    at, to = rng.permutation(200), rng.permutation(100)
    turn = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    names = np.array(["seal", "ape", "newt"])
    options = {"covariance": covariance, "components": 2, "steps": 20, "rng": seed}
    plain = nleep(x, labels, test_features=test, test_labels=asked, **options)
    found = nleep(
        30 * x[at] @ turn - 4,
        names[labels[at]],
        test_features=30 * test[to] @ turn - 4,
        test_labels=names[asked[to]],
        **options,
    )
    assert found == pytest.approx(plain, abs=1e-6)


def test_the_seed_determines_it_and_matters():
    x, labels = drawn()
    assert nleep(x, labels, rng=3) == nleep(x, labels, rng=3)
    assert nleep(x, labels, rng=3) == nleep(x, labels, rng=np.random.default_rng(3))
    assert len({nleep(x, labels, rng=seed) for seed in range(4)}) > 1


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_single_precision_is_close_to_double(covariance):
    x, labels = drawn()
    single = nleep(x.astype(np.float32), labels, covariance=covariance, steps=20)
    assert single == pytest.approx(nleep(x, labels, covariance=covariance, steps=20), abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("covariance", COVARIANCES)
def test_clearer_features_score_higher(covariance):
    scores = []
    for apart in (0.0, 0.4, 0.8, 1.6):
        x, labels = drawn(2, 1500, apart=apart)
        test, asked = drawn(3, 1500, apart=apart)
        scores.append(nleep(x, labels, test_features=test, test_labels=asked, covariance=covariance))
    assert scores == sorted(scores)
    # Features that tell nothing score the entropy of labels, a little less for what is overfitted.
    assert -np.log(3) - 0.1 < scores[0] < -np.log(3) + 0.01


def test_an_example_with_several_labels_is_fitted_once():
    x, labels = drawn()
    marks = np.eye(4, dtype=int)[labels]
    marks[:100, 3] = 1
    reduced, _ = project(x)
    rows, codes = np.nonzero(marks)
    plain = nleep_reduced(reduced, labels, settings=NleepSettings(components=5))
    assert plain == nleep(x, labels)
    assert nleep(x, np.eye(3)[labels]) == pytest.approx(plain), "one label each, as a matrix"
    assert nleep(x, np.eye(4)[labels]) == pytest.approx(plain), "a class without examples"
    # Twenty components of the 300 examples, by hand, then LEEP with a row for each label.
    start = cluster(reduced, np.random.default_rng(0).random((20, candidates(20))))
    own = fit_mixture(reduced, start, 20).posteriors(reduced)
    assert nleep(x, marks) == pytest.approx(leep(own[rows], codes))


def test_the_variants_in_circulation():
    x, labels = drawn()
    plain = nleep(x, labels)
    assert nleep(x, labels, variant="in-sample") == plain
    mean = nleep(x, labels, variant="no-log")
    assert np.exp(plain) < mean < 1, "by Jensen's inequality"
    capped = nleep(x, labels, variant="capped")
    assert capped == nleep(x, labels, components=10), "a tenth of 300 examples is 30 components"
    assert NleepSettings(variant="capped").count(100, 50) == 20
    assert NleepSettings(variant="capped").count(100, 15) == 15
    for variant in ("in-sample", "no-log", "capped"):
        with pytest.raises(InputError, match="scores the examples it is fitted on"):
            nleep(x, labels, test_features=x, test_labels=labels, variant=variant)


def test_test_examples_that_are_the_training_examples_score_the_same():
    x, labels = drawn(n=900)
    found = nleep(x, labels, test_features=x, test_labels=labels)
    assert found == pytest.approx(nleep(x, labels), abs=1e-4)


def test_full_covariance_with_few_examples_is_said_to_be_stuck():
    rng = np.random.default_rng(0)
    x, labels = rng.standard_normal((180, 60)), np.arange(180) % 6
    with pytest.warns(CurvewiseWarning, match=r"stuck where k-means left it: 6 examples per comp"):
        nleep(x, labels, covariance="full")
    for covariance in ("diagonal", "shrunk", "tied"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            nleep(x, labels, covariance=covariance)


def test_full_covariance_that_finds_clear_clusters_is_not_said_to_be_stuck():
    labels = np.arange(200) % 4
    x = np.random.default_rng(0).standard_normal((200, 4)) + 40 * np.eye(4)[labels]
    assert nleep(x, labels, covariance="full", components=1) == pytest.approx(0, abs=1e-6)
    x, labels = drawn(apart=0.5)
    assert len(x) < 36 * project(x)[0].shape[1], "few, but EM goes on from k-means"
    assert np.isfinite(nleep(x, labels, covariance="full", components=12))


def test_few_examples_a_component_are_said():
    x, labels = drawn(n=60)
    with pytest.warns(CurvewiseWarning, match="60 examples for 15 components are fewer than 5"):
        nleep(x, labels)
    with pytest.warns(CurvewiseWarning, match="10 examples for 15 components"):
        assert np.isfinite(nleep(x[:10], labels[:10]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features_that_are_all_the_same_score_the_entropy_of_labels(dtype):
    labels = np.arange(100) % 3
    share = np.bincount(labels) / 100
    with pytest.warns(CurvewiseWarning, match="the same features"):
        found = nleep(np.full((100, 4), 0.1, dtype), labels)
    assert found == pytest.approx((share * np.log(share)).sum(), abs=1e-6)


def test_duplicates_tell_apart_what_they_are():
    labels = np.arange(100) % 4
    assert nleep(np.eye(4, dtype=np.float32)[labels], labels) == pytest.approx(0, abs=1e-6)


X, LABELS = drawn()
BAD = {
    "missing": ((np.where(X > 3, np.nan, X), LABELS), {}, "NaN"),
    "flat": ((X[:, 0], LABELS), {}, "a matrix with a row for each"),
    "lengths": ((X, LABELS[1:]), {}, "for 300 examples"),
    "one class": ((X, np.zeros(300, int)), {}, "one class only"),
    "half": ((X, LABELS), {"test_features": X}, "without test_labels"),
    "width": ((X, LABELS), {"test_features": X[:, 1:], "test_labels": LABELS}, "19 columns"),
    "unknown": ((X, LABELS), {"test_features": X[:1], "test_labels": [8]}, "class 8"),
    "energy": ((X, LABELS), {"energy": 80}, "energy=80"),
    "components": ((X, LABELS), {"components": 0}, "components=0"),
    "part": ((X, LABELS), {"components": 2.5}, "components=2.5"),
    "none": ((X, LABELS), {"steps": None}, "steps=None: must be a whole number"),
    "other form": (
        (X, np.eye(3)[LABELS]),
        {"test_features": X, "test_labels": LABELS},
        "nleep with such training labels takes several",
    ),
    "covariance": ((X, LABELS), {"covariance": "diag"}, "use one of diagonal, shrunk"),
    "variant": ((X, LABELS), {"variant": "sfda"}, "use one of paper"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_used_is_refused(case):
    given, options, message = BAD[case]
    with pytest.raises(InputError, match=message):
        nleep(*given, **options)


def test_it_says_what_it_takes():
    measure = MEASURES["nleep"]
    assert measure.name == "nleep"
    assert measure.splits
    assert measure.seeded
    assert measure.flops(10_000, 2048, 10) < measure.flops(10_000, 2048, 100)


@pytest.mark.parametrize("value", ["0.5", None, True])
def test_what_is_no_number_is_named(value):
    with pytest.raises(InputError, match=f"energy={value!r}: give a"):
        nleep(np.eye(40), [0, 1] * 20, energy=value)
