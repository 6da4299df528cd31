"""Ensembles by brute force over ties and subsets, and real runs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from curvewise.errors import InputError, quietly
from curvewise.variance import decompose_variance, measure_disagreement, measure_ensemble
from curvewise.variance.votes import vote_errors


@pytest.fixture(scope="module")
def fashion(data_dir):
    """Predictions of 512 networks for Fashion-MNIST, and the labels."""
    with np.load(data_dir / "variance" / "fashion_mnist_mlp_512runs.npz") as file:
        return file["preds"], file["labels"]


def brute(votes, labels):
    """Mean over examples of the chance that a plurality vote, ties at random, is wrong."""
    total = 0.0
    for column, label in zip(votes.T, labels, strict=True):
        classes, counts = np.unique(column, return_counts=True)
        best = classes[counts == counts.max()]
        total += np.mean(best != label)
    return total / len(labels)


def test_votes_are_those_of_brute_force():
    rng = np.random.default_rng(0)
    votes, labels = rng.integers(0, 4, (6, 50)), rng.integers(0, 4, 50)
    e = measure_ensemble(votes, labels)
    assert e.sizes.tolist() == [1, 2, 4, 6]
    assert e.draws.tolist() == [1, 10, 10, 1]
    assert e.error.estimate == pytest.approx(brute(votes, labels))
    assert e.mean_error.estimate == pytest.approx((votes != labels).mean())
    assert e.gain.estimate == pytest.approx(e.mean_error.estimate - e.error.estimate)
    assert e.accuracy.estimate == pytest.approx(1 - e.error.estimate)


def test_ties_count_as_a_random_choice():
    counts = np.array([[2, 2, 1], [2, 2, 1], [5, 0, 0], [1, 1, 1]])
    assert vote_errors(counts, np.array([0, 2, 0, 1])) == pytest.approx([0.5, 1, 0, 2 / 3])


@pytest.mark.slow
def test_subsets_average_to_all_subsets():
    rng = np.random.default_rng(1)
    votes, labels = rng.integers(0, 3, (6, 40)), rng.integers(0, 3, 40)
    e = measure_ensemble(votes, labels, sizes=[2, 3], draws=1500)
    for size, error in zip(e.sizes, e.errors, strict=True):
        subsets = itertools.combinations(range(6), int(size))
        truth = np.mean([brute(votes[list(s)], labels) for s in subsets])
        assert error.estimate == pytest.approx(truth, abs=0.005)
    # two runs that break ties at random are as good as one
    assert e.errors[1].estimate == pytest.approx(e.mean_error.estimate, abs=0.005)


def test_the_choice_of_subsets_is_in_the_interval():
    """Two good runs and two bad ones, alike on all examples: only the subsets drawn make a difference."""
    votes, labels = np.repeat([[0], [0], [1], [1]], 50, axis=1), np.repeat([0, 2], [49, 1])
    e = measure_ensemble(votes, labels, sizes=[2], draws=10)
    by_size = dict(zip(e.sizes.tolist(), e.errors, strict=True))
    assert by_size[2].width > 2 * by_size[1].width


def test_scores_are_averaged():
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 4, 60)
    scores = rng.random((9, 60, 4)) + 0.3 * np.eye(4)[labels]
    scores /= scores.sum(axis=2, keepdims=True)
    e = measure_ensemble(scores, labels)
    assert e.method == "average"
    assert e.error.estimate == pytest.approx((scores.mean(0).argmax(1) != labels).mean())
    vote = measure_ensemble(scores, labels, method="vote")
    assert vote.error.estimate == pytest.approx(brute(scores.argmax(2), labels))
    assert vote.mean_error.estimate == pytest.approx(e.mean_error.estimate)
    nearly = measure_ensemble(scores, labels, sizes=[8], draws=200).errors[1].estimate
    each = [(np.delete(scores, r, 0).mean(0).argmax(1) != labels).mean() for r in range(9)]
    assert nearly == pytest.approx(np.mean(each), abs=0.01)


def test_intervals_and_what_must_not_change():
    rng = np.random.default_rng(3)
    votes, labels = rng.integers(0, 3, (7, 80)), rng.integers(0, 3, 80)
    order = rng.permutation(80)
    a = measure_ensemble(votes, labels, rng=4)
    b = measure_ensemble(votes[:, order], labels[order], rng=4)
    assert [tuple(e) for e in a.errors] == [pytest.approx(tuple(e)) for e in b.errors]
    c = measure_ensemble(votes[::-1], labels)
    assert tuple(c.gain) == pytest.approx(tuple(a.gain))
    copies = np.repeat(np.arange(80), 3)
    grouped = measure_ensemble(votes[:, copies], labels[copies], groups=copies, rng=4)
    assert tuple(grouped.error) == pytest.approx(tuple(a.error))
    assert grouped.groups == 80
    assert all(e.low <= e.estimate <= e.high for e in a.errors)


def test_gain_covers_that_of_new_examples():
    rng = np.random.default_rng(4)
    truth = None
    held = 0
    for n in [200_000] + [150] * 200:
        p = rng.choice([0.1, 0.45, 0.7], n)
        votes = (rng.random((9, n)) < p).astype(np.uint8)
        options = {"axes": ("runs", "examples"), "kind": "labels", "sizes": [9]}
        e = measure_ensemble(votes, np.zeros(n, int), **options)
        if truth is None:
            truth = e.gain.estimate
        else:
            held += truth in e.gain
    assert 0.9 <= held / 200 <= 0.985


def test_bad_input():
    rng = np.random.default_rng(5)
    votes, labels = rng.integers(0, 3, (7, 30)), rng.integers(0, 3, 30)
    with pytest.raises(InputError, match="probabilities"):
        measure_ensemble(votes, labels, method="average")
    with pytest.raises(InputError, match="method"):
        measure_ensemble(votes, labels, method="bagging")
    with pytest.raises(InputError, match="sizes"):
        measure_ensemble(votes, labels, sizes=[8])
    with pytest.raises(InputError, match="draws"):
        measure_ensemble(votes, labels, draws=0)
    with pytest.raises(InputError, match="predicted labels"):
        measure_ensemble(np.eye(5, 30))


def test_golden(fashion):
    e = measure_ensemble(*fashion)
    assert e.error.estimate == pytest.approx(0.1344, abs=5e-5)
    assert e.gain.low > 0.003
    assert e.sizes.tolist() == [2**i for i in range(10)]
    assert "gains" in e.summary()


@pytest.mark.parametrize("few", [0, 1])
def test_rates_that_hardly_show_have_intervals(few):
    labels = np.arange(300) % 3
    votes = np.tile(labels, (12, 1))
    votes[0, :few] += 1
    e, d = measure_ensemble(votes, labels, sizes=[4]), measure_disagreement(votes, labels)
    with quietly():
        v = decompose_variance(votes, labels)
    assert "0.0 robust" not in " ".join(v.warnings)
    for rate in (*e.errors, d.error, d.disagreement):
        assert rate.low == 0
        assert rate.high == pytest.approx(v.error.high, abs=2e-3)
    assert d.gap.low < 0 < d.gap.high
    assert all(gain.high > 0 for gain in e.gains[1:])
    assert (e.gains[0].low, e.gains[0].high) == (0, 0)
