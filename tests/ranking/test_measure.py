"""Labels are read as classes, several classes or numbers; what is none of them is refused."""

from __future__ import annotations

import numpy as np
import pytest

from curvewise.errors import InputError
from curvewise.ranking.measure import as_matrix, as_targets
from curvewise.ranking.scoring import MEASURES

ALL = ("classes", "multilabel", "numbers")


@pytest.mark.parametrize(
    ("labels", "kind", "classes"),
    [
        ([3, 1, 3, 7], "classes", (1, 3, 7)),
        (["b", "a", "b", "c"], "classes", ("a", "b", "c")),
        ([True, False, True, True], "classes", (False, True)),
        ([[0, 1], [1, 1], [0, 0], [1, 0]], "multilabel", (0, 1)),
        ([0.5, 1.5, 2.0, 3.0], "numbers", ()),
        ([[1.0], [2.0], [1.0], [2.0]], "numbers", ()),
        ([[0.5, 1], [2, 3], [4, 5], [6, 7]], "numbers", ()),
        ([[3], [1], [3], [7]], "classes", (1, 3, 7)),
        (np.array([3, 1, 3, 7], dtype=object), "classes", (1, 3, 7)),
        (np.array([0.5, 1.5, 2.0, 3.0], dtype=object), "numbers", ()),
        (np.array([[0, 1], [1, 1], [0, 0], [1, 0]], dtype=object), "multilabel", (0, 1)),
    ],
)
def test_what_labels_are(labels, kind, classes):
    found = as_targets(labels, 4, allowed=ALL)
    assert (found.kind, found.classes, len(found)) == (kind, classes, 4)


def test_one_row_per_example_and_label():
    found = as_targets([[0, 1, 1], [0, 0, 0], [1, 0, 0]], 3, allowed=ALL)
    assert list(zip(found.rows.tolist(), found.codes.tolist(), strict=True)) == [(0, 1), (0, 2), (2, 0)]
    assert np.array_equal(found.one_hot(), [[0, 1, 1], [0, 0, 0], [1, 0, 0]])


def test_test_labels_take_the_codes_of_training():
    train = as_targets([5, 9, 7], 3)
    test = as_targets([9, 9], 2, classes=train.classes)
    assert test.codes.tolist() == [2, 2]
    assert test.classes == train.classes


def test_objects_of_several_kinds_are_read_by_their_text():
    assert as_targets(np.array(["a", 1], dtype=object), 2).classes == ("1", "a")


def test_pandas_own_missing_value_is_missing():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(InputError, match="labels has missing values"):
        as_targets(pandas.array(["a", None, "b"], dtype="string"), 3)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1], "labels has shape"),
        (3, "labels has shape"),
        ([1, 1, 1], "one class only"),
        ([[0, 1], [0, 1], [0, 0]], "one class only"),
        ([np.nan, 1.0, 2.0], "missing"),
        ([None, "a", "b"], "missing"),
        ([0.5, 1.5, 2.5], "numbers"),
        ([[0], [1, 2], [1]], "lists of several lengths.*a matrix of 0 and 1"),
        ([[0, 1], [1, 0], [1, 1]], "several classes"),
        (np.zeros((3, 2, 2)), "vector or a matrix"),
        ([["a", "b"], ["c", "d"], ["a", "c"]], "matrix of 0 and 1"),
    ],
)
def test_what_is_refused(labels, message):
    allowed = ALL if "one class only" in message else ("classes",)
    with pytest.raises(InputError, match=message):
        as_targets(labels, 3, allowed=allowed)


def test_a_class_that_training_lacks_is_named():
    with pytest.raises(InputError, match=r"test_labels holds class 4.*no training example"):
        as_targets([4, 1], 2, classes=(1, 2), argument="test_labels")
    with pytest.raises(InputError, match="3 columns and the training labels 2"):
        as_targets([[0, 1, 1]], 1, classes=(0, 1), allowed=ALL)


def test_whole_numbers_in_floating_point_are_asked_about():
    with pytest.raises(InputError, match=r"astype\(int\) for classes, or labels\[:, None\]"):
        as_targets([1.0, 2.0, 1.0], 3, allowed=ALL)
    assert as_targets([1.0, 2.0, 1.0], 3).classes == (1.0, 2.0)  # nothing else would do


def test_masked_arrays_are_refused():
    """The numbers below a mask would count as if nothing had been left out."""
    mask = np.arange(4) == 1
    with pytest.raises(InputError, match=r"labels is a masked array"):
        as_targets(np.ma.masked_array([0, 1, 0, 1], mask), 4)
    with pytest.raises(InputError, match=r"features is a masked array"):
        as_matrix(np.ma.masked_array(np.ones((4, 1)), mask[:, None]), "features")


def test_nullable_numbers_are_features():
    frame = pytest.importorskip("pandas").DataFrame({"a": [0.5, 1.5], "b": [1, 2]}).astype("Float64")
    assert as_matrix(frame, "features").tolist() == [[0.5, 1.0], [1.5, 2.0]]
    frame.iloc[0, 0] = None
    with pytest.raises(InputError, match="features holds object"):
        as_matrix(frame, "features")


@pytest.mark.parametrize("name", MEASURES)
def test_one_1_in_each_row_is_a_class(name):
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.repeat(np.arange(3), 40))
    x, measure = np.abs(rng.normal(size=(120, 4)) + np.eye(3, 4)[labels]), MEASURES[name]
    x = x / x.sum(axis=1, keepdims=True)
    assert measure.function(x, np.eye(3)[labels]) == measure.function(x, labels)
    if measure.splits:
        test = x[80:], labels[80:]
        found = [
            measure.function(x[:80], codes[:80], **{f"test_{measure.takes}": test[0], "test_labels": codes[80:]})
            for codes in (labels, np.eye(3, dtype=bool)[labels])
        ]
        assert found[0] == found[1]
