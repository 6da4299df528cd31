"""Counts of common errors against numpy by brute force, for odd shapes."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curvewise.types import Predictions
from curvewise.variance import pairs
from curvewise.variance.anova import measure_totals
from curvewise.variance.pairs import column_pack, iter_pair_counts

shapes = st.tuples(st.integers(1, 300), st.integers(1, 200), st.integers(0, 2**32 - 1))
quick = settings(max_examples=40, deadline=None)
has_numba = importlib.util.find_spec("numba") is not None
kernels = ["plain", pytest.param("numba", marks=pytest.mark.skipif(not has_numba, reason="numba"))]


def random_errors(runs, n, seed):
    rng = np.random.default_rng(seed)
    return rng.random((runs, n)) < rng.random(n)


def as_bits(errors, kind="errors"):
    """Predictions of the same errors as bits."""
    values = errors if kind == "errors" else ~errors
    return Predictions(np.packbits(values, axis=1), kind, packed=errors.shape[1])


@given(shapes, st.sampled_from(["errors", "correct"]))
@quick
def test_totals_of_bits_are_sums_of_the_table(shape, kind):
    errors = random_errors(shape[0] + 1, shape[1] + 1, shape[2])
    totals = measure_totals(as_bits(errors, kind))
    np.testing.assert_array_equal(totals.run, errors.mean(axis=1))
    np.testing.assert_allclose(totals.example, errors.mean(axis=0), rtol=1e-15)


def test_runs_repeated_as_bits_are_noticed():
    # Bits had a way of their own to the totals, on which runs that are given twice were not seen.
    errors = random_errors(12, 400, 3)
    assert measure_totals(as_bits(np.concatenate([errors, errors[:2]]))).twins == 2


@given(shapes)
@quick
def test_column_pack_transposes(shape):
    errors = random_errors(*shape)
    runs, n = errors.shape
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "PACK_RUNS", 64)
        columns = column_pack(as_bits(errors))
    assert columns.shape == (n, -(-runs // 64))
    bits = np.unpackbits(columns.view(np.uint8), axis=1)
    np.testing.assert_array_equal(bits[:, :runs], errors.T)
    assert not bits[:, runs:].any()


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
    n = shape[1]
    tile = 30 if tile == 1 and n > 40 else tile
    errors = random_errors(*shape)
    columns = column_pack(as_bits(errors))
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
