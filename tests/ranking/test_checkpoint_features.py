"""Features of a checkpoint are a finite matrix with a row for each example."""

from __future__ import annotations

import numpy as np
import pytest

from curvewise.errors import InputError
from curvewise.ranking.measure import CheckpointFeatures, as_matrix


@pytest.mark.parametrize(
    ("given", "kept"), [("float16", "float32"), ("float32", "float32"), ("float64", "float64"), ("int64", "float64")]
)
def test_precision(given, kept):
    found = as_matrix(np.ones((3, 2), dtype=given), "features")
    assert found.dtype == kept


def test_what_is_floating_is_not_copied():
    values = np.zeros((4, 3), dtype=np.float32)
    assert as_matrix(values, "features") is values


def test_some_of_the_examples():
    x = np.arange(12.0).reshape(6, 2)
    whole = CheckpointFeatures("a", x, probabilities=np.full((6, 3), 1 / 3), parameters=7)
    part = whole.take(np.array([4, 0]))
    assert np.array_equal(part.features, [[8, 9], [0, 1]])
    assert part.probabilities is not None
    assert part.probabilities.shape == (2, 3)
    assert (part.parameters, len(part)) == (7, 2)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros(3), r"features has shape \(3,\)"),
        (np.zeros((2, 3, 4)), "Pool"),
        (np.zeros((0, 3)), "empty"),
        (np.array([["a"]]), "numbers"),
        (np.array([[1.0, np.nan], [1.0, 2.0]]), "1 of 2 rows"),
        (np.array([[np.inf, -np.inf], [1.0, 2.0]]), "1 of 2 rows"),
    ],
)
def test_what_is_refused(values, message):
    with pytest.raises(InputError, match=message):
        as_matrix(values, "features")


def test_large_values_are_finite():
    big = np.full((3, 2), 1e70)
    assert np.array_equal(as_matrix(big, "features"), big)
    with pytest.raises(InputError, match="of the order of 1"):
        as_matrix(np.full((3, 2), 1e308), "features")  # whose sum overflows


def test_one_row_of_probabilities_for_each():
    with pytest.raises(InputError, match="probabilities of 'a' has 2 rows and features 3"):
        CheckpointFeatures("a", np.zeros((3, 2)), probabilities=np.zeros((2, 2)))
