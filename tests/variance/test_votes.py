"""Disagreement by brute force over pairs, coverage, and real runs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from curvewise.errors import InputError
from curvewise.types import Predictions
from curvewise.variance.votes import measure_disagreement

AXES = ("runs", "examples")


@pytest.fixture(scope="module")
def fashion(data_dir):
    """Predictions of 512 networks for Fashion-MNIST, and the labels."""
    with np.load(data_dir / "variance" / "fashion_mnist_mlp_512runs.npz") as file:
        return file["preds"], file["labels"]


@given(arrays(np.uint8, (5, 12), elements=st.integers(0, 6)))
def test_disagreement_is_that_of_all_pairs(votes):
    labels = np.arange(12) % 4  # classes 4, 5 and 6 are never true
    d = measure_disagreement(votes, labels, kind="labels")
    pairs = [votes[a] != votes[b] for a, b in itertools.combinations(range(5), 2)]
    assert d.disagreement.estimate == pytest.approx(np.mean(pairs))
    assert d.example_disagreement == pytest.approx(np.mean(pairs, axis=0))
    assert d.error.estimate == pytest.approx(np.mean(votes != labels))
    gap = np.mean(votes != labels, axis=0) - np.mean(pairs, axis=0)
    assert d.gap.estimate == pytest.approx(gap.mean())
    if gap.std() > 1e-9:
        theirs = stats.ttest_1samp(gap, 0)
        assert d.pvalue == pytest.approx(theirs.pvalue, abs=1e-9)
        assert tuple(d.gap)[1:] == pytest.approx(tuple(theirs.confidence_interval(0.95)))


def test_tables_show_disagreement_in_percent_as_the_sentence_does():
    """Agreement is a number without unit; disagreement is a rate beside an error."""
    rng = np.random.default_rng(0)
    found = measure_disagreement(rng.integers(0, 3, (8, 50)), rng.integers(0, 3, 50))
    cells = found.readable()["estimate"]
    assert [cell.text[-1] for cell in cells] == ["%"] * 3
    assert f"disagree on {cells[0].text}{cells[0].after} of" in found.summary()


def test_groups_widen_the_interval():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(50), 6)
    votes, labels = rng.integers(0, 3, (8, 50))[:, groups], rng.integers(0, 3, 50)[groups]
    one = measure_disagreement(votes[:, ::6], labels[::6])
    many = measure_disagreement(votes, labels, groups=groups)
    assert many.groups == 50
    assert tuple(many.gap) == pytest.approx(tuple(one.gap))
    assert many.pvalue == pytest.approx(one.pvalue)
    with pytest.raises(InputError, match="one group"):
        measure_disagreement(votes, labels, groups=np.zeros(300))


def test_permutations_names_and_probabilities():
    rng = np.random.default_rng(1)
    votes, labels = rng.integers(0, 4, (9, 70)), rng.integers(0, 4, 70)
    order = rng.permutation(70)
    a = measure_disagreement(votes, labels)
    b = measure_disagreement(votes[rng.permutation(9)][:, order], labels[order])
    assert tuple(a.gap) == pytest.approx(tuple(b.gap))
    names = np.array(["w", "x", "y", "z"])
    assert measure_disagreement(names[votes], names[labels]).pvalue == pytest.approx(a.pvalue)
    scores = np.eye(4)[votes] * 0.7 + 0.075
    c = measure_disagreement(scores, labels)
    assert c.disagreement == a.disagreement
    assert measure_disagreement(2 * votes - 6, 2 * labels - 6).gap == a.gap


def test_only_slices_of_a_source_are_read():
    class Source:
        dtype = np.dtype(np.uint8)
        shape = (3000, 2000)

        def __getitem__(self, rows):
            assert isinstance(rows, slice)
            assert rows.stop - rows.start < 2000
            count = len(range(*rows.indices(3000)))
            return np.random.default_rng(rows.start).integers(0, 3, (count, 2000), dtype=np.uint8)

    labels = np.zeros(2000, dtype=np.int64)
    d = measure_disagreement(Predictions(Source(), "labels", labels=labels))
    assert d.disagreement.estimate == pytest.approx(2 / 3, abs=0.001)
    assert d.classes == 3


@pytest.mark.slow
def test_intervals_hold_for_new_examples():
    rng = np.random.default_rng(2)
    held = 0
    for _ in range(400):
        p = rng.beta(1, 2, 150)  # E 2p(1 − p) = 2(1/3 − 1/6) = 1/3
        d = measure_disagreement((rng.random((200, 150)) < p).astype(int), np.zeros(150, int), axes=AXES, kind="labels")
        held += 1 / 3 in d.disagreement
    assert 0.915 <= held / 400 <= 0.98


def test_bad_input():
    with pytest.raises(InputError, match="predicted labels"):
        measure_disagreement(np.eye(4, 9))
    with pytest.raises(InputError, match="1 run"):
        measure_disagreement(np.zeros((1, 9), int), np.zeros(9, int))
    with pytest.raises(InputError, match="number the"):
        measure_disagreement(np.full((3, 9), 10**9), np.zeros(9, int))
    with pytest.raises(InputError, match="transposed"):
        measure_disagreement(np.zeros((9, 3), int), np.zeros(9, int))


def test_golden(fashion):
    d = measure_disagreement(*fashion)
    assert d.disagreement.estimate == pytest.approx(0.060, abs=5e-4)
    assert d.error.estimate == pytest.approx(0.140, abs=5e-4)
    assert d.gap.low > 0.07
    assert "more often than a calibrated" in d.summary()
