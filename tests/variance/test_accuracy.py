"""The distribution of accuracy against scipy, brute force, simulation and real runs."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from scipy import stats

from curvewise.errors import InputError, quietly
from curvewise.variance import accuracy
from curvewise.variance.accuracy import expected_range, measure_accuracy_distribution, sample_distances, shrunk_rates
from curvewise.variance.anova import run_std


@pytest.fixture(scope="module")
def fashion(data_dir):
    """Predictions of 512 networks for Fashion-MNIST, and the labels."""
    with np.load(data_dir / "variance" / "fashion_mnist_mlp_512runs.npz") as file:
        return file["preds"], file["labels"]


def independent(rng, runs=100, n=400, shape=(0.4, 1.6)):
    return rng.random((runs, n)) < rng.beta(*shape, n)


def test_interval_of_the_mean_is_scipys():
    errors = independent(np.random.default_rng(3), 12, 150)
    a = measure_accuracy_distribution(errors, kind="errors", level=0.9)
    hits = 1 - errors.mean(axis=1)
    assert (a.accuracy.low, a.accuracy.high) == pytest.approx(stats.t.interval(0.9, 11, hits.mean(), stats.sem(hits)))


def test_pmfs_and_distance_are_scipys():
    errors = independent(np.random.default_rng(0), 60, 150)
    a = measure_accuracy_distribution(errors, kind="errors")
    rates = shrunk_rates(errors.mean(axis=0), 60)
    theirs = stats.poisson_binom(rates).pmf(a.errors)
    assert a.independent_pmf == pytest.approx(theirs, abs=1e-12)
    coins = stats.binom(150, errors.mean())
    assert a.binomial_pmf == pytest.approx(coins.pmf(a.errors), abs=1e-12)
    assert a.counts.sum() == 60
    assert (a.counts == np.bincount(errors.sum(axis=1), minlength=a.errors[-1] + 1)[a.errors]).all()
    wrong = np.sort(errors.sum(axis=1))
    gaps = np.searchsorted(wrong, a.errors, side="right") / 60 - coins.cdf(a.errors)
    assert a.binomial_distance == pytest.approx(np.abs(gaps).max(), abs=1e-9)
    assert a.binomial_std == pytest.approx(coins.std() / 150)


@pytest.mark.slow
def test_variance_is_corrected_for_rates_from_few_runs(monkeypatch):
    """Σ p(1 − p) with estimated rates is (R − 1)/R of the truth; neither std nor pmf may be."""
    monkeypatch.setattr(accuracy, "SIMULATIONS", 9)  # of no concern here
    rng = np.random.default_rng(1)
    p = rng.beta(0.4, 1.6, 300)
    found = []
    for _ in range(300):
        a = measure_accuracy_distribution(rng.random((4, 300)) < p, kind="errors")
        mean = a.independent_pmf @ a.errors
        by_pmf = a.independent_pmf @ (a.errors - mean) ** 2
        assert by_pmf == pytest.approx((a.independent_std * 300) ** 2, rel=1e-6)
        assert mean == pytest.approx(300 * (1 - a.accuracy.estimate), rel=1e-6)
        found.append(by_pmf)
    standard_error = np.std(found) / np.sqrt(len(found))
    assert np.mean(found) == pytest.approx((p * (1 - p)).sum(), abs=4 * standard_error)
    assert np.mean(found) * 3 / 4 < (p * (1 - p)).sum() - 10 * standard_error


def test_range_of_draws_is_that_of_all_outcomes():
    pmf, runs, n = np.array([0.2, 0.5, 0.1, 0.2]), 4, 10
    chance = np.zeros(4)
    for draw in itertools.product(range(4), repeat=runs):
        chance[max(draw) - min(draw)] += pmf[list(draw)].prod()
    got = expected_range(pmf, runs, n, 0.8)
    assert got.estimate == pytest.approx(chance @ np.arange(4) / n)
    quantiles = np.searchsorted(np.cumsum(chance), [0.1, 0.9]) / n
    assert (got.low, got.high) == pytest.approx(tuple(quantiles))
    assert got.kind == "prediction"


@pytest.mark.slow
def test_false_alarms_and_power_of_the_distance():
    rng = np.random.default_rng(2)
    p = [measure_accuracy_distribution(independent(rng), kind="errors").distance_pvalue for _ in range(120)]
    assert 0.005 <= np.mean(np.array(p) < 0.05) <= 0.1
    logit = rng.standard_normal(400) * 2 - 1 + rng.standard_normal((100, 1))
    shared = rng.random((100, 400)) < 1 / (1 + np.exp(-logit))
    a = measure_accuracy_distribution(shared, kind="errors")
    assert a.distance_pvalue < 0.01
    assert a.variance_ratio.low > 1
    assert a.run_range > a.independent_range.high


def test_simulated_distances_follow_the_mean_of_the_sample():
    """With the mean fitted, distances are well below those of a fixed distribution."""
    pmf = stats.binom(400, 0.3).pmf(np.arange(401))
    ours = sample_distances(pmf, 200, np.random.default_rng(0)) * np.sqrt(200)
    assert 0.5 < ours.mean() < stats.kstwobign.mean() - 0.1


def test_std_interval_is_chi_squared_and_wider_for_heavy_tails():
    rng = np.random.default_rng(3)
    x = rng.standard_normal(40)
    limits = np.sqrt(39 * x.var(ddof=1) / stats.chi2(39).ppf([0.975, 0.025]))
    assert tuple(run_std(x, 0.95, "loss"))[1:] == pytest.approx(tuple(limits))
    covered = 0
    for _ in range(400):
        failed = rng.random(200) < 0.1
        values = rng.standard_normal(200) + 5 * failed
        covered += np.sqrt(1 + 0.1 * 0.9 * 25) in run_std(values, 0.95, "loss")
    assert covered / 400 > 0.9  # χ² with 199 degrees of freedom has 0.85


def test_permutations_change_nothing():
    rng = np.random.default_rng(4)
    errors = independent(rng)
    a = measure_accuracy_distribution(errors, kind="errors", rng=7).to_dict()
    shuffled = errors[rng.permutation(100)][:, rng.permutation(400)]
    b = measure_accuracy_distribution(shuffled, kind="errors", rng=7)
    b = b.to_dict()
    assert a.pop("independent_pmf") == pytest.approx(b.pop("independent_pmf"))
    assert a["independent_std"] == pytest.approx(b["independent_std"])
    assert a["counts"] == b["counts"]
    assert a["distance_pvalue"] == b["distance_pvalue"]
    json.dumps(a)


def test_runs_that_do_not_differ_and_bad_input():
    same = np.repeat(np.arange(50) % 5 == 0, 12).reshape(50, 12).T
    a = measure_accuracy_distribution(same, kind="errors")
    assert a.run_range == 0
    assert a.independent_std == 0
    assert any("agree on every example" in w for w in a.warnings)
    assert 0 < a.measured_std.high < 1 / 50
    assert np.isnan(a.binomial_ratio.estimate)
    assert "nan" not in a.summary()
    with pytest.raises(InputError, match="losses"):
        measure_accuracy_distribution(np.random.default_rng(0).random((5, 30)))
    with pytest.raises(InputError, match="one run"):
        measure_accuracy_distribution(np.ones((1, 30)), kind="errors")
    with pytest.raises(InputError, match="level"):
        measure_accuracy_distribution(same, level=95)


def test_golden(fashion):
    a = measure_accuracy_distribution(*fashion)
    assert a.measured_std.estimate == pytest.approx(0.00203, abs=5e-6)
    assert a.independent_std == pytest.approx(0.00157, abs=5e-6)
    assert a.binomial_std == pytest.approx(0.003474, abs=5e-6)
    assert a.run_range == pytest.approx(0.0119)
    assert a.binomial_ratio.estimate == pytest.approx(2.93, abs=0.01)
    assert a.distance_pvalue < 0.005
    assert "1.67" in a.summary()


def test_hits_without_labels_are_asked_for():
    hits = np.random.default_rng(4).random((12, 300)) < 0.9
    with pytest.raises(InputError, match="nothing says whether 1 means wrong or right"):
        measure_accuracy_distribution(hits)
    a = measure_accuracy_distribution(hits, kind="correct")
    assert a.accuracy.estimate == pytest.approx(hits.mean())


def test_limits_of_a_mean_accuracy_are_accuracies():
    errors = np.random.default_rng(0).random((2, 300)) < np.array([[0.85], [0.95]])
    with quietly():
        a = measure_accuracy_distribution(errors, kind="errors")
    assert a.accuracy.low == 0


def test_a_tie_is_not_certain():
    """The sentence said "nan times what is measured", and both intervals had no width."""
    wrong = np.arange(60) % 6 == 0
    tie = np.array([np.roll(wrong, k) for k in range(3)])
    with quietly():
        a = measure_accuracy_distribution(tie, kind="errors")
    assert a.measured_std.estimate == 0
    assert a.measured_std.high > 0.5 / 60
    assert a.accuracy.low < a.accuracy.estimate < a.accuracy.high
    assert "nan" not in a.summary()
