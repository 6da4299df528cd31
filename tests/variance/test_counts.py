"""Counting kernels against numpy by brute force, for odd shapes and uneven blocks."""

from __future__ import annotations

import importlib.util
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curvewise.errors import InputError
from curvewise.variance import counts, pairs
from curvewise.variance.counts import FEW_CLASSES, class_counts, column_pack, packed_totals
from curvewise.variance.pairs import iter_pair_counts

shapes = st.tuples(st.integers(1, 300), st.integers(1, 200), st.integers(0, 2**32 - 1))
quick = settings(max_examples=40, deadline=None)
has_numba = importlib.util.find_spec("numba") is not None
kernels = ["plain", pytest.param("numba", marks=pytest.mark.skipif(not has_numba, reason="numba"))]


def random_errors(runs, n, seed):
    rng = np.random.default_rng(seed)
    return rng.random((runs, n)) < rng.random(n)


def cut(table, seed):
    """Blocks of uneven lengths, some of them empty, through one buffer that is used again."""
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.integers(0, len(table) + 1, rng.integers(0, 6)))
    for start, stop in pairwise([0, *ends.tolist(), len(table)]):
        block = table[start:stop].copy()
        yield block
        block[:] = 0


@given(shapes)
@quick
def test_packed_totals_are_sums_of_the_table(shape):
    errors = random_errors(*shape)
    runs, examples = packed_totals(cut(np.packbits(errors, axis=1), shape[2]), errors.shape[1])
    assert runs.dtype == examples.dtype == np.int64
    np.testing.assert_array_equal(runs, errors.sum(axis=1))
    np.testing.assert_array_equal(examples, errors.sum(axis=0))


def test_totals_of_many_rows_of_ones():
    n, runs = 1001, 70_001
    packed = np.full((1000, 126), 255, dtype=np.uint8)  # padding bits are set too
    blocks = (packed[: min(1000, runs - start)] for start in range(0, runs, 1000))
    by_run, by_example = packed_totals(blocks, n)
    assert by_run.shape == (runs,)
    assert np.all(by_run == n)
    assert np.all(by_example == runs)


def test_no_runs_are_no_errors():
    runs, examples = packed_totals([], 9)
    assert runs.size == 0
    np.testing.assert_array_equal(examples, np.zeros(9))


@given(shapes)
@quick
def test_column_pack_transposes(shape):
    errors = random_errors(*shape)
    runs, n = errors.shape
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counts, "PACK_RUNS", 64)
        columns = column_pack(cut(np.packbits(errors, axis=1), shape[2]), n, runs)
    assert columns.shape == (n, -(-runs // 64))
    bits = np.unpackbits(columns.view(np.uint8), axis=1)
    np.testing.assert_array_equal(bits[:, :runs], errors.T)
    assert not bits[:, runs:].any()


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
    monkeypatch.setattr(counts, "MANY_BINS", 128)
    monkeypatch.setattr(counts, "MANY_RUNS", 64)
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


def pair_counts(columns, tile, kernel):
    with pytest.MonkeyPatch.context() as patch:
        if kernel == "plain":
            patch.setattr(pairs, "fastest_kernel", lambda: pairs.plain_kernel)
        n = len(columns)
        table = np.full((n, n), -1)
        for i0, j0, tile_counts in iter_pair_counts(columns, tile):
            assert tile_counts.dtype == np.int32
            table[i0 : i0 + tile_counts.shape[0], j0 : j0 + tile_counts.shape[1]] = tile_counts
    return table


@pytest.mark.parametrize("kernel", kernels)
@given(shape=shapes, tile=st.sampled_from([1, 3, 4, 30, 64, None]))
@settings(max_examples=20, deadline=None)
def test_pair_counts_are_a_gram_matrix(kernel, shape, tile):
    runs, n, seed = shape
    tile = 30 if tile == 1 and n > 40 else tile
    errors = random_errors(runs, n, seed)
    columns = column_pack([np.packbits(errors, axis=1)], n, runs)
    table = pair_counts(columns, tile, kernel)
    gram = errors.T.astype(int) @ errors
    upper = np.triu_indices(n)
    np.testing.assert_array_equal(table[upper], gram[upper])


@pytest.mark.parametrize("kernel", kernels)
def test_pair_counts_of_more_runs_than_one_step_takes(kernel):
    rng = np.random.default_rng(3)
    columns = rng.integers(0, 2**64, (9, 2 * pairs.WORDS + 5), dtype=np.uint64)
    bits = np.unpackbits(columns.view(np.uint8), axis=1).astype(int)
    upper = np.triu_indices(9)
    np.testing.assert_array_equal(pair_counts(columns, 6, kernel)[upper], (bits @ bits.T)[upper])


def test_without_numba_the_plain_kernel_is_taken(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(pairs.importlib, "import_module", missing)
    assert pairs.fastest_kernel.__wrapped__() is pairs.plain_kernel
