"""Calibration: identities by brute force, false alarms under known truth, and real runs."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from scipy.special import ndtr

from curvewise.errors import InputError
from curvewise.types import Predictions
from curvewise.variance.calibration import GAP, IDENTITY, mean_statistics, measure_calibration, reliability
from curvewise.variance.decompose import decompose_variance
from curvewise.variance.votes import count_votes


@pytest.fixture(scope="module")
def fashion(data_dir):
    """Predictions of 512 networks for Fashion-MNIST, and the labels."""
    with np.load(data_dir / "variance" / "fashion_mnist_mlp_512runs.npz") as file:
        return file["preds"], file["labels"]


def calibrated(rng, runs, n, k=4, shape=0.3, shared=0.0, sharper=1.0):
    """Votes with chances q for labels with chances q; runs share a part of their noise.

    With ``sharper`` above 1 the votes are surer than the labels: overconfident.
    """
    q = rng.dirichlet(np.full(k, shape), n)
    says = q**sharper / (q**sharper).sum(axis=1, keepdims=True)
    cut, true = says.cumsum(axis=1)[:, :-1], q.cumsum(axis=1)[:, :-1]
    z = np.sqrt(shared) * rng.standard_normal((runs, 1))
    z = z + np.sqrt(1 - shared) * rng.standard_normal((runs, n))
    labels = (rng.random((n, 1)) > true).sum(axis=1)
    return (ndtr(z)[:, :, None] > cut).sum(axis=2), labels


def measured(votes, labels, **options):
    return measure_calibration(votes, labels, kind="labels", axes=("runs", "examples"), **options)


def test_moments_are_those_of_all_triples_of_runs():
    votes, labels = calibrated(np.random.default_rng(0), 6, 40, k=3)
    c = measured(votes, labels)
    n, runs = 40, range(6)
    apart = np.mean([votes[a] != votes[b] for a, b in itertools.permutations(runs, 2)])
    wrong = np.mean(votes != labels)
    two_of_three = [
        np.mean((votes[a] == votes[b]) & (votes[a] != votes[d])) for a, b, d in itertools.permutations(runs, 3)
    ]
    spread, variance = np.mean(two_of_three), np.var(votes != labels, axis=0, ddof=1).mean()
    assert c.checks[0].difference.estimate == pytest.approx(wrong - apart)
    assert c.checks[1].difference.estimate == pytest.approx(variance - spread)
    assert c.predicted["calibrated"].estimate == pytest.approx(np.sqrt(spread / n))
    assert c.predicted["lower_bound"].estimate == pytest.approx(np.sqrt(wrong / (3 * n)))
    assert c.predicted["binomial"].estimate == pytest.approx(np.sqrt(wrong * (1 - wrong) / n))
    assert c.ratios[GAP].estimate == pytest.approx(np.sqrt(wrong / apart))
    assert c.ratios[IDENTITY].estimate == pytest.approx(np.sqrt(spread / variance))
    by_class = [check.difference.estimate for check in c.class_checks]
    assert sum(by_class) == pytest.approx(wrong - apart)
    true = max(0.0, decompose_variance(votes, labels, axes=("runs", "examples")).distribution_variance)
    total = np.sqrt(spread / n + (1 - 1 / n) * true)
    assert c.total["calibrated"].estimate == pytest.approx(total)


def test_leaving_out_runs_is_leaving_out_runs():
    votes, labels = calibrated(np.random.default_rng(1), 7, 30, k=3, shared=0.3)

    def table(count, runs, true):
        return np.where(true, 1.0, 0.5) * count * (runs - count) / (runs * (runs - 1))

    def values(said):
        kept = count_votes(Predictions(said, "labels", labels=labels))
        return table(kept.counts, kept.runs, np.arange(3) == kept.truth[:, None])

    p = Predictions(votes, "labels", labels=labels)
    means = mean_statistics(p, count_votes(p), {"x": table}, 0.95)["x"]
    without = np.array([values(np.delete(votes, r, axis=0)) for r in range(7)])
    both = without.sum(axis=3 - 1)  # runs × examples
    by_run = np.var(both.mean(axis=1)) * 6
    per_example = np.var(both, axis=0) * 6
    example = values(votes).sum(axis=1)
    by_example = example.var(ddof=1) / 30
    total = max(by_run, by_example, by_run + by_example - per_example.sum() / 30**2)
    estimate = means[0].estimate.estimate
    assert estimate == pytest.approx(example.mean())
    assert means[0].statistic == pytest.approx(estimate / np.sqrt(total))
    one = without[:, :, 1]
    by_run, cells = np.var(one.mean(axis=1)) * 6, np.var(one, axis=0).sum() * 6 / 30**2
    column = values(votes)[:, 1]
    total = max(by_run, column.var(ddof=1) / 30, by_run + column.var(ddof=1) / 30 - cells)
    assert means[2].statistic == pytest.approx(column.mean() / np.sqrt(total))


@pytest.mark.slow
@pytest.mark.parametrize(("runs", "n", "k", "shared"), [(20, 600, 4, 0.0), (8, 500, 3, 0.0), (12, 300, 2, 0.2)])
def test_false_alarms(runs, n, k, shared):
    """With calibrated votes each test rejects 5%, also where whole runs are better or worse."""
    rng = np.random.default_rng(runs)
    found = [measured(*calibrated(rng, runs, n, k, shared=shared)) for _ in range(200)]
    for check in range(len(found[0].checks)):
        alarms = np.mean([c.checks[check].pvalue < 0.05 for c in found])
        assert 0.015 <= alarms <= 0.085
    assert np.mean([min(x.adjusted for x in c.class_checks) < 0.05 for c in found]) <= 0.085
    assert np.mean([c.verdict in ("fails", "close") for c in found]) <= 0.085
    for ratio in found[0].ratios:
        assert np.mean([1 in c.ratios[ratio] for c in found]) >= 0.9
    assert np.mean([1 in c.ratios[GAP] for c in found]) >= 0.915
    gaps = np.array([c.checks[0].difference.estimate for c in found])
    assert abs(gaps.mean()) < 4 * gaps.std() / np.sqrt(200)


@pytest.mark.slow
def test_groups_sampled_together():
    """Ten copies of each example know no more than one."""
    rng = np.random.default_rng(4)
    alarms = {"naive": 0, "grouped": 0}
    for _ in range(100):
        votes, labels = calibrated(rng, 15, 100, 3)
        groups = np.repeat(np.arange(100), 10)
        copies = votes[:, groups], labels[groups]
        alarms["naive"] += measured(*copies).checks[0].pvalue < 0.05
        grouped = measured(*copies, groups=groups)
        alarms["grouped"] += grouped.checks[0].pvalue < 0.05
    assert alarms["naive"] >= 16
    assert alarms["grouped"] <= 11
    assert grouped.groups == 100


def test_votes_that_disagree_more_than_they_err_are_not_within_the_tolerance():
    rng = np.random.default_rng(31)
    labels = rng.integers(0, 5, 800)
    votes = np.where(rng.random((30, 800)) < 0.3, rng.integers(0, 5, (30, 800)), labels)
    c = measured(votes, labels)
    assert c.ratios[GAP].high < 1
    assert c.verdict == "fails"


def test_verdicts():
    rng = np.random.default_rng(5)
    assert measured(*calibrated(rng, 60, 8000)).verdict == "holds"
    few = measured(*calibrated(rng, 5, 60))
    assert few.verdict == "undecided"
    assert not few.usable
    assert few.warnings
    wrong = measured(*calibrated(rng, 40, 3000, sharper=4.0))
    assert wrong.verdict == "fails"
    assert wrong.checks[0].difference.low > 0
    close = measured(*calibrated(rng, 40, 20000, sharper=1.15))
    assert close.verdict == "close"
    assert close.usable
    assert measured(*calibrated(rng, 40, 3000, sharper=4.0), tolerance=9.0).verdict == "close"


def test_two_classes_need_the_error_only():
    votes, labels = calibrated(np.random.default_rng(6), 40, 4000, k=2)
    c = measured(votes, labels)
    assert len(c.checks) == 1
    assert set(c.predicted) == {"binomial", "two_classes"}
    assert c.predicted["two_classes"].estimate == pytest.approx(np.sqrt(c.error.estimate / 8000))
    assert c.predicted["two_classes"].estimate == pytest.approx(c.independent_std, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 5])
def test_formulas_predict_the_variance_of_calibrated_votes(k):
    """Expected variance on a test set, averaged over many small ones."""
    rng = np.random.default_rng(7)
    name = "two_classes" if k == 2 else "calibrated"
    found = [measured(*calibrated(rng, 30, 200, k, shared=0.1)) for _ in range(140)]
    actual = np.array([c.measured.estimate**2 for c in found])
    added = np.array([(1 - 1 / 200) * c.distribution_variance for c in found])
    gap = np.array([c.predicted[name].estimate ** 2 for c in found]) + added - actual
    assert abs(gap.mean()) < 4 * gap.std() / np.sqrt(140)
    assert gap.std() / np.sqrt(140) < 0.05 * actual.mean()


def test_reliability_has_no_bias_from_few_runs():
    rng = np.random.default_rng(8)
    rows = []
    for _ in range(40):
        votes, labels = calibrated(rng, 5, 2000, 3)
        p = Predictions(votes, "labels", labels=labels)
        rows.append(reliability(count_votes(p), 4, 0.95))
    confidence = np.array([r["confidence"] for r in rows])
    frequency = np.array([r["frequency"] for r in rows])
    gap = frequency - confidence
    assert (np.abs(gap.mean(axis=0)) < 4 * gap.std(axis=0) / np.sqrt(40)).all()
    assert rows[0]["cells"].sum() == pytest.approx(6000)
    assert ((rows[0]["low"] <= frequency[0]) & (frequency[0] <= rows[0]["high"])).all()


def test_permutations_change_nothing_and_results_are_plain():
    rng = np.random.default_rng(9)
    votes, labels = calibrated(rng, 12, 90)
    order = rng.permutation(90)
    a = measured(votes, labels)
    b = measured(votes[rng.permutation(12)][:, order], labels[order])
    assert a.verdict == b.verdict
    for x, y in zip(a.checks + a.class_checks, b.checks + b.class_checks, strict=True):
        assert x.pvalue == pytest.approx(y.pvalue)
        assert tuple(x.difference) == pytest.approx(tuple(y.difference))
    json.dumps(a.to_dict())
    assert len(a.columns()["formula"]) == 5
    assert len(a.check_columns()["check"]) == 2 + 4


def test_names_missing_classes_and_perfect_runs():
    rng = np.random.default_rng(10)
    votes, labels = calibrated(rng, 10, 50)
    names = np.array(["ant", "bee", "cat", "dog"])
    named = measured(names[votes], names[labels])
    assert [c.name for c in named.class_checks] == names.tolist()
    gaps = measured(votes * 7, labels * 7)
    assert gaps.classes == 4
    assert gaps.checks[0].pvalue == pytest.approx(named.checks[0].pvalue)
    perfect = measured(np.tile(labels, (5, 1)), labels)
    assert perfect.verdict == "undecided"
    assert any("nothing to test" in w for w in perfect.warnings)
    assert perfect.summary()


def test_bad_input():
    votes, labels = calibrated(np.random.default_rng(11), 3, 30)
    with pytest.raises(InputError, match="4 are needed"):
        measured(votes, labels)
    with pytest.raises(InputError, match="predictions are errors"):
        measure_calibration(np.eye(5, 30))
    with pytest.raises(InputError, match="tolerance"):
        measured(votes, labels, tolerance=0)
    with pytest.raises(InputError, match="one class"):
        measured(np.zeros((5, 30), dtype=int), np.zeros(30, dtype=int))
    with pytest.raises(InputError, match="repeats"):
        measure_calibration(
            np.zeros((5, 30, 2), dtype=int), labels, kind="labels", axes=("runs", "examples", "repeats")
        )


def test_golden(fashion):
    c = measure_calibration(*fashion)
    assert c.error.estimate == pytest.approx(0.140, abs=5e-4)
    assert c.disagreement.estimate == pytest.approx(0.060, abs=5e-4)
    assert c.verdict == "fails"
    assert not c.usable
    assert "must not be used" in c.summary()
    odd = measure_calibration(fashion[0] % 2, fashion[1] % 2)
    assert not odd.usable
    assert odd.predicted["two_classes"].low > odd.independent_std
