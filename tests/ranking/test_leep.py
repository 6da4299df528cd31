"""LEEP and NCE against the formulas written out, and entropies."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.ranking.prediction import leep, nce
from curvewise.ranking.scoring import MEASURES


def written_out(source, labels, test, asked):
    """Equations 4 and 5, one example after another."""
    classes, total = sorted(set(labels)), len(labels)
    joint = {y: [0.0] * source.shape[1] for y in classes}
    for row, y in zip(source, labels, strict=True):
        for z, value in enumerate(row):
            joint[y][z] += value / total
    logs = []
    for row, y in zip(test, asked, strict=True):
        p = 0.0
        for z, value in enumerate(row):
            p += joint[y][z] / sum(joint[c][z] for c in classes) * value
        logs.append(np.log(p))
    return float(np.mean(logs))


def drawn(seed, n=40, z=6, classes=3):
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(classes), rng.integers(classes, size=n - classes)])
    return rng.dirichlet(np.full(z, 0.5), size=n), labels


@given(st.integers(0, 2**31), st.integers(2, 9), st.integers(2, 5))
@settings(max_examples=30, deadline=None)
def test_leep_is_the_papers_formula(seed, z, classes):
    source, labels = drawn(seed, 40, z, classes)
    test, asked = drawn(seed + 1, 25, z, classes)
    assert leep(source, labels) == pytest.approx(written_out(source, labels, source, labels))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = leep(source, labels, test_probabilities=test, test_labels=asked)
    assert found == pytest.approx(written_out(source, labels, test, asked))


def test_an_example_with_several_labels_counts_for_each():
    source, _ = drawn(0)
    marks = np.random.default_rng(1).random((40, 4)) < 0.4
    marks[0] = True
    rows, codes = np.nonzero(marks)
    assert (marks.sum(axis=1) == 0).any(), "some have none"
    assert leep(source, marks.astype(int)) == pytest.approx(leep(source[rows], codes))
    assert nce(source, marks) == pytest.approx(nce(source[rows], codes))
    found = leep(source, marks, test_probabilities=source[:9], test_labels=marks[:9].astype(float))
    kept = rows < 9
    assert found == pytest.approx(
        leep(source[rows], codes, test_probabilities=source[rows[kept]], test_labels=codes[kept])
    )


def test_nce_is_minus_the_conditional_entropy():
    rng = np.random.default_rng(3)
    own, labels = rng.integers(5, size=300), rng.integers(4, size=300)
    both, alone = np.histogram2d(own, labels, bins=(5, 4))[0], np.bincount(own)

    def entropy(counts):
        share = counts[counts > 0] / counts.sum()
        return -(share * np.log(share)).sum()

    expected = entropy(alone) - entropy(both)
    names = np.array(["ant", "bee", "cow", "dog", "eel"], dtype=object)[own]
    assert nce(own, labels) == pytest.approx(expected)
    assert nce(names, labels) == pytest.approx(expected)
    assert nce(np.eye(5)[own], labels) == pytest.approx(expected)
    assert leep(np.eye(5)[own], labels) == pytest.approx(expected)


def test_a_pair_never_seen_scores_what_one_more_example_would_give():
    own, labels = np.array([0, 0, 1, 1, 1]), np.array(["a", "a", "b", "b", "b"])
    # The five are counted, and one more, spread over pairs as if labels and classes were unrelated.
    joint = np.array([[2.0, 0.0], [0.0, 3.0]])
    more = joint + np.outer(joint.sum(axis=1), joint.sum(axis=0)) / 25
    expected = np.log(more[1, 0] / more[:, 0].sum())
    with pytest.warns(CurvewiseWarning, match="100% of test labels were never seen"):
        found = nce(own, labels, test_probabilities=[0], test_labels=["b"])
    assert found == pytest.approx(expected)
    with pytest.warns(CurvewiseWarning, match="never seen"):
        soft = leep(np.eye(2)[own], labels, test_probabilities=[[1.0, 0.0]], test_labels=["b"])
    assert soft == pytest.approx(expected)


def test_a_few_unseen_pairs_pass_without_a_warning():
    own = np.repeat([0, 1], 50)
    asked = own.copy()
    asked[0] = 1
    found = nce(own, own, test_probabilities=own, test_labels=asked)
    assert found == pytest.approx(np.log(0.5 / 101) / 100)
    asked[:10] = 1
    with pytest.warns(CurvewiseWarning, match="10% of test labels were never seen"):
        nce(own, own, test_probabilities=own, test_labels=asked)


def test_a_source_class_that_training_never_saw_predicts_by_frequency():
    own, labels = [0, 0, 1, 1], ["a", "a", "a", "b"]
    found = nce(own, labels, test_probabilities=[7, 7], test_labels=["a", "b"])
    assert found == pytest.approx(np.log([0.75, 0.25]).mean())
    source = np.eye(3)[own]
    found = leep(source, labels, test_probabilities=[[0, 0, 1.0]], test_labels=["b"])
    assert found == pytest.approx(np.log(0.25))


@pytest.mark.parametrize("measure", [leep, nce])
def test_order_and_names_do_not_matter(measure):
    source, labels = drawn(5, 200)
    test, asked = drawn(6, 200)
    rng = np.random.default_rng(0)
    at, to, z = rng.permutation(200), rng.permutation(200), rng.permutation(6)
    names = np.array(["x", "a", "m"])
    expected = measure(source, labels, test_probabilities=test, test_labels=asked)
    found = measure(
        source[at][:, z], names[labels[at]], test_probabilities=test[to][:, z], test_labels=names[asked[to]]
    )
    assert found == pytest.approx(expected)


def test_half_precision_will_do():
    source, labels = drawn(7)
    assert leep(source.astype(np.float16), labels) == pytest.approx(leep(source, labels), abs=1e-3)
    assert leep(source.astype(np.float32), labels) == pytest.approx(leep(source, labels), abs=1e-6)
    sums = np.linspace(0.991, 1.009, len(source))[:, None]
    assert leep(sums * source, labels) == pytest.approx(leep(source, labels), abs=1e-12)
    assert leep(1.009 * np.eye(3)[labels], labels) == pytest.approx(0, abs=1e-12), "no more than 0"


SOURCE, LABELS = drawn(8)
BAD = {
    "logits": ((np.log(SOURCE), LABELS), {}, "take their softmax"),
    "scaled": ((2 * SOURCE, LABELS), {}, "adds up to 2"),
    "scaled a little": ((1.02 * SOURCE, LABELS), {}, r"adds up to 1\.02"),
    "lengths": ((SOURCE, LABELS[1:]), {}, "for 40 examples"),
    "one class": ((SOURCE, np.zeros(40, int)), {}, "one class only"),
    "numbers": ((SOURCE, np.linspace(0, 1, 40)), {}, "regression"),
    "half": ((SOURCE, LABELS), {"test_labels": LABELS}, "without test_probabilities"),
    "other half": ((SOURCE, LABELS), {"test_probabilities": SOURCE}, "without test_labels"),
    "unknown": (
        (SOURCE, LABELS),
        {"test_probabilities": SOURCE[:1], "test_labels": [9]},
        "class 9, which no training example has",
    ),
    "untrained": (
        (SOURCE, np.eye(4)[LABELS]),
        {"test_probabilities": SOURCE[:1], "test_labels": [[0, 0, 0, 1]]},
        "class 3, which no training example has",
    ),
    "unlabelled": (
        (SOURCE, np.eye(4)[LABELS]),
        {"test_probabilities": SOURCE[:1], "test_labels": [[0, 0, 0, 0]]},
        "no label",
    ),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("measure", [leep, nce])
def test_what_cannot_be_used_is_refused(measure, case):
    given, options, message = BAD[case]
    with pytest.raises(InputError, match=message):
        measure(*given, **options)


def test_widths_and_missing_source_classes_are_refused():
    for measure in (leep, nce):
        with pytest.raises(InputError, match="test_probabilities has 2 columns"):
            measure(SOURCE, LABELS, test_probabilities=[[0.5, 0.5]], test_labels=[0])
    with pytest.raises(InputError, match="missing values"):
        nce(np.full(40, np.nan), LABELS)


def test_they_say_what_they_take():
    found = [MEASURES["leep"], MEASURES["nce"]]
    assert all(m.takes == "probabilities" and m.splits and not m.seeded for m in found)
    assert found[0].flops(10, 1000, 5) == 30_000


@pytest.mark.parametrize("measure", [leep, nce])
def test_masked_probabilities_are_refused(measure):
    source = np.ma.masked_array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.4, 0.6]], mask=False)
    source[0, 0] = np.ma.masked
    with pytest.raises(InputError, match="source_probabilities is a masked array"):
        measure(source, [0, 1, 0, 1])
    with pytest.raises(InputError, match="test_probabilities is a masked array"):
        measure(source.data, [0, 1, 0, 1], test_probabilities=source, test_labels=[0, 1, 0, 1])


def test_missing_source_classes_are_refused():
    with pytest.raises(InputError, match="source_probabilities has missing values"):
        nce(["a", None, "b", "a"], [0, 1, 0, 1])
