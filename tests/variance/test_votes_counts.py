"""Counts of classes against numpy by brute force, for odd shapes and uneven blocks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curvewise.errors import InputError
from curvewise.variance import votes
from curvewise.variance.votes import FEW_CLASSES, class_counts

shapes = st.tuples(st.integers(1, 300), st.integers(1, 200), st.integers(0, 2**32 - 1))


def cut(table, seed):
    """Blocks of uneven lengths, some of them empty, through one buffer that is used again."""
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.integers(0, len(table) + 1, rng.integers(0, 6)))
    for start, stop in pairwise([0, *ends.tolist(), len(table)]):
        block = table[start:stop].copy()
        yield block
        block[:] = 0


@given(
    shapes,
    st.sampled_from([1, 2, 3, 5, 8, 9, 10, 12, 16, 17, 33, FEW_CLASSES, FEW_CLASSES + 1, 300]),
    st.sampled_from([np.uint8, np.int16, np.int64, np.uint64]),
)
@settings(max_examples=80, deadline=None)
def test_class_counts_are_bincounts(shape, classes, dtype):
    runs, n, seed = shape
    classes = min(classes, 255) if dtype == np.uint8 else classes
    labels = np.random.default_rng(seed).integers(0, classes, (runs, n)).astype(dtype)
    counts = class_counts(cut(labels, seed), n, classes)
    assert counts.dtype == np.int64
    expected = np.array([np.bincount(column, minlength=classes) for column in labels.T.astype(int)])
    np.testing.assert_array_equal(counts, expected)


@pytest.mark.parametrize("classes", [11, 60])
def test_class_counts_of_several_tiles(monkeypatch, classes):
    monkeypatch.setattr(votes, "MANY_BINS", 128)
    monkeypatch.setattr(votes, "MANY_RUNS", 64)
    labels = np.random.default_rng(1).integers(0, classes, (500, 101)).astype(np.uint8)
    found = class_counts(cut(labels, 1), 101, classes)
    expected = (labels[:, :, None] == np.arange(classes)).sum(axis=0)
    np.testing.assert_array_equal(found, expected)


def test_true_and_false_are_two_classes():
    labels = np.array([[True, False], [True, True]])
    np.testing.assert_array_equal(class_counts([labels], 2, 2), [[0, 2], [1, 1]])


@pytest.mark.parametrize("classes", [10, 50])
@pytest.mark.parametrize("wrong", [-1, None])
def test_labels_out_of_range_are_named(classes, wrong):
    labels = np.zeros((20, 7), dtype=np.int16)
    labels[13, 5] = wrong = classes if wrong is None else wrong
    with pytest.raises(InputError, match=f"predictions holds class {wrong}, but {classes} classes"):
        class_counts([labels], 7, classes)
