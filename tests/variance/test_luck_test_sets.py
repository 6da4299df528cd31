"""Several test sets: scipy's correlations, known true correlations, and real runs."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from scipy import stats

from curvewise.errors import CurvewiseWarning, InputError, quietly
from curvewise.types import Predictions
from curvewise.variance.decompose import decompose_variance
from curvewise.variance.luck import compare_test_sets, true_correlation

quiet = pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")


@pytest.fixture(scope="module")
def fashion(data_dir):
    """Predictions of 512 networks for Fashion-MNIST, and the labels."""
    with np.load(data_dir / "variance" / "fashion_mnist_mlp_512runs.npz") as file:
        return file["preds"], file["labels"]


def two(rng, runs=40, n=1000, rho=0.5, spread=0.03):
    """Errors on two test sets, true errors of the runs correlated."""
    z = rng.standard_normal((2, runs))
    skills = z[0], rho * z[0] + np.sqrt(1 - rho**2) * z[1]
    return [rng.random((runs, n)) < 0.3 + spread * s[:, None] for s in skills]


def test_correlations_are_scipys():
    rng = np.random.default_rng(0)
    a, b = two(rng)
    c = compare_test_sets({"a": a, "b": b, "c": two(rng)[0]})
    assert [(p.first, p.second) for p in c.pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    theirs = stats.pearsonr(a.mean(axis=1), b.mean(axis=1))
    pair = c.pairs[0]
    assert pair.correlation.estimate == pytest.approx(theirs.statistic)
    assert pair.pvalue == pytest.approx(theirs.pvalue)
    assert pair.r_squared == pytest.approx(theirs.statistic**2)
    assert pair.stable  # the true errors of these runs have a standard deviation of 3 points
    p = np.array([p.pvalue for p in c.pairs])
    assert min(q.adjusted for q in c.pairs) == pytest.approx(3 * p.min())
    alone = decompose_variance(b)
    assert c.decompositions["b"].distribution_interval == alone.distribution_interval
    covariance = np.cov(a.mean(axis=1), b.mean(axis=1))[0, 1]
    stds = decompose_variance(a).distribution_std * alone.distribution_std
    assert pair.true_correlation.estimate == pytest.approx(covariance / stds)
    assert c.columns()["distribution_std"][1] == alone.distribution_std
    json.dumps(c.to_dict())


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.0, 0.8])
def test_true_correlation_is_found_and_covered(rho):
    rng = np.random.default_rng(1)
    found = []
    for _ in range(90):
        a, b = two(rng, 60, 800, rho, 0.04)
        with quietly():  # F, although it is too narrow for some: only the bootstrap of these takes long
            found.append(compare_test_sets({"a": a, "b": b}, interval="F").pairs[0])
    values = np.array([p.true_correlation.estimate for p in found])
    assert values.mean() == pytest.approx(rho, abs=4 * values.std() / np.sqrt(90) + 0.01)
    assert np.mean([rho in p.true_correlation for p in found]) >= 0.89
    if rho:  # what the test errors show is less than the truth
        assert np.mean([p.correlation.estimate for p in found]) < rho - 0.05
    else:
        assert np.mean([p.pvalue < 0.05 for p in found]) <= 0.1


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.03, 0.1, 0.5])
@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9, 1.0])
def test_true_correlation_is_covered_with_ten_runs(rho, noise):
    """Normal true errors of variance 1; with more noise estimates cut off at 1 are common."""
    rng = np.random.default_rng(6)
    hits, above = 0, 0
    for _ in range(600):
        z = rng.standard_normal((4, 10))
        x = z[0] + np.sqrt(noise) * z[2]
        y = rho * z[0] + np.sqrt(1 - rho**2) * z[1] + np.sqrt(noise) * z[3]
        found = true_correlation(x, y, (noise, noise), True, 0.95)
        hits += found.low <= rho <= found.high + 1e-12
        above += found.estimate == 1
        assert -1 <= found.low < found.high <= 1
    assert hits >= 555  # 92.5%
    assert above > 100 or rho < 0.9 or noise < 0.1


@pytest.mark.parametrize("sign", [1, -1])
def test_a_correlation_above_one_keeps_an_interval(sign):
    """Noise that is taken for larger than it is: what test errors show holds anyway."""
    z = np.random.default_rng(7).standard_normal((2, 40))
    x, y = z[0], sign * z[0] + 0.2 * z[1]
    found = true_correlation(x, y, (0.5 * x.var(ddof=1), 0.5 * y.var(ddof=1)), True, 0.95)
    assert found.estimate == sign
    assert sorted(map(abs, found))[1] == 1
    shown = stats.pearsonr(x, y).confidence_interval(0.95)
    assert min(map(abs, found)) == pytest.approx(min(map(abs, shown)), abs=0.01)


def test_no_true_variance_leaves_the_correlation_unknown():
    a, b = two(np.random.default_rng(2), spread=0.0)
    with pytest.warns(CurvewiseWarning, match="does not differ significantly from 0"):
        c = compare_test_sets({"a": a, "b": b})
    assert not c.pairs[0].stable
    assert tuple(c.pairs[0].true_correlation)[1:] == (-1, 1)
    assert "unknown for 1 of 1" in c.warnings[-1]
    assert "that of true errors is not known." in c.summary()
    assert "[-1.00, 1.00]" not in c.summary()


@pytest.mark.slow
@quiet
def test_runs_are_matched_by_their_names():
    rng = np.random.default_rng(3)
    a, b = two(rng)
    ids, order = np.arange(40) + 100, rng.permutation(40)
    first = Predictions(a, "errors", run_ids=ids)
    c = compare_test_sets({"a": first, "b": Predictions(b[order], "errors", run_ids=ids[order])})
    plain = compare_test_sets({"a": a, "b": b})
    assert c.pairs[0].correlation.estimate == pytest.approx(plain.pairs[0].correlation.estimate)
    assert c.run_errors["b"] == pytest.approx(b.mean(axis=1))
    order = rng.permutation(1000)
    moved = compare_test_sets({"a": a[:, order], "b": b[:, order[::-1]]})
    assert tuple(moved.pairs[0].true_correlation) == pytest.approx(tuple(plain.pairs[0].true_correlation))
    with pytest.raises(InputError, match="run_ids of b lack the run 100 of a"):
        compare_test_sets({"a": first, "b": Predictions(b, "errors", run_ids=ids + 1)})


def test_shared_examples_are_noticed():
    a, b = two(np.random.default_rng(4))
    ids = np.arange(1000)
    sets = {"a": Predictions(a, "errors", example_ids=ids), "b": Predictions(b, "errors", example_ids=ids + 990)}
    with pytest.warns(CurvewiseWarning, match="share 10 example ids"):
        compare_test_sets(sets)


def test_bad_input():
    a, b = two(np.random.default_rng(5))
    with pytest.raises(InputError, match="two test sets"):
        compare_test_sets({"a": a})
    with pytest.raises(InputError, match="two test sets"):
        compare_test_sets([a, b])
    with pytest.raises(InputError, match="39"):
        compare_test_sets({"a": a, "b": b[:39]})
    with pytest.raises(InputError, match="at least 4"):
        compare_test_sets({"a": a[:3], "b": b[:3]})
    with pytest.raises(InputError, match=r"test_sets\['b'\]"):
        compare_test_sets({"a": a, "b": b * 3})


def test_golden(fashion):
    votes, labels = fashion
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        c = compare_test_sets({"even": (votes[:, ::2], labels[::2]), "odd": (votes[:, 1::2], labels[1::2])})
    assert c.pairs[0].correlation.estimate == pytest.approx(0.217, abs=5e-4)
    assert 1.0 in c.pairs[0].true_correlation
    assert "even and odd" in c.summary()
