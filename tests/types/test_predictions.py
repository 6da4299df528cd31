"""Predictions: what an array is taken for, what is asked for, and how it is read."""

from __future__ import annotations

import numpy as np
import pytest

from curvewise.errors import InputError
from curvewise.learning import partition_training_set
from curvewise.ranking import logme
from curvewise.transfer import blind_guess
from curvewise.types import Predictions, as_predictions

LABELS = np.array([0, 1, 2, 1, 0, 2, 1])
PREDS = np.array([[0, 1, 2, 1, 0, 0, 1], [0, 1, 1, 1, 0, 2, 2], [1, 1, 2, 1, 0, 2, 1]])
ERRORS = (PREDS != LABELS).astype(np.uint8)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, np.float32, np.float64, ">i4"])
def test_labels_of_every_type(dtype):
    p = as_predictions(PREDS.astype(dtype), LABELS.astype(dtype))
    assert p.kind == "labels"
    np.testing.assert_array_equal(p.errors(), ERRORS)


def test_classes_beyond_a_byte_do_not_wrap_around():
    labels = LABELS + 256
    assert as_predictions(PREDS.astype(np.uint8), labels).errors().all()
    assert as_predictions(PREDS + 256, labels).errors().tolist() == ERRORS.tolist()
    assert as_predictions((PREDS + 253).astype(np.uint8), LABELS + 253).errors().tolist() == (ERRORS.tolist())


@pytest.mark.parametrize("kind", ["errors", "correct"])
@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, float])
def test_flags_of_every_type(kind, dtype):
    values = ERRORS if kind == "errors" else 1 - ERRORS
    p = as_predictions(values.astype(dtype), kind=kind)
    np.testing.assert_array_equal(p.errors(), ERRORS)
    packed = Predictions(np.packbits(values, axis=1), kind, packed=7)
    np.testing.assert_array_equal(packed.errors(), ERRORS)
    assert packed.shape == (3, 7)


def test_names_and_negative_numbers_become_codes():
    names = np.array(["zebra", "ant", "cat"])
    p = as_predictions(names[PREDS], names[LABELS])
    np.testing.assert_array_equal(p.errors(), ERRORS)
    assert p.classes == ("ant", "cat", "zebra")
    assert p.true_classes.tolist() == names[LABELS].tolist()
    signed = as_predictions(2 * PREDS - 4, 2 * LABELS - 4)
    np.testing.assert_array_equal(signed.errors(), ERRORS)
    assert signed.classes == (-4, -2, 0)


@pytest.mark.parametrize("mark", [-1, -100])
def test_examples_without_a_label_are_refused(mark):
    unlabelled = np.where(np.arange(7) < 2, mark, LABELS)
    for make in (
        lambda: as_predictions(PREDS, unlabelled),
        lambda: as_predictions(PREDS, unlabelled.astype(float)),
        lambda: as_predictions(ERRORS, unlabelled, kind="errors"),
        lambda: as_predictions(Predictions(ERRORS, "errors"), unlabelled),
        lambda: Predictions(PREDS, "labels", labels=unlabelled),
        lambda: logme(np.eye(7), unlabelled),
        lambda: blind_guess(unlabelled, "error"),
        lambda: partition_training_set(unlabelled, [2]),
    ):
        with pytest.raises(InputError, match=f"{mark}, which usually marks an example without"):
            make()
    signs = as_predictions(np.where(PREDS > 1, 1, -1), np.where(LABELS > 1, 1, -1))
    assert signs.classes == (-1, 1)


def test_probabilities_are_told_from_repeats_by_their_sums():
    scores = np.eye(3)[PREDS] * 0.6 + 0.4 / 3
    assert as_predictions(scores, LABELS).kind == "probabilities"
    logits = 5 * scores
    with pytest.raises(InputError, match="three axes"):
        as_predictions(logits, LABELS)
    p = as_predictions(logits, LABELS, kind="probabilities")
    np.testing.assert_array_equal(p.errors(), ERRORS)
    repeats = np.stack([PREDS, PREDS[::-1]], axis=2)
    q = as_predictions(repeats, LABELS, axes=("runs", "examples", "repeats"))
    assert (q.repeats, q.binary) == (2, False)
    np.testing.assert_allclose(q.errors(), (ERRORS + ERRORS[::-1]) / 2)


def test_a_memory_map_stays_one_and_is_let_go(tmp_path):
    np.save(tmp_path / "p.npy", PREDS)
    mapped = np.load(tmp_path / "p.npy", mmap_mode="r")
    p = as_predictions(mapped, LABELS)
    assert isinstance(p.values, np.memmap)
    assert [start for start, _ in p.blocks(size=8)] == [0, 1, 2]
    np.testing.assert_array_equal(p.errors(), ERRORS)
    np.testing.assert_array_equal(p.errors(), ERRORS)  # and once more


def test_what_was_written_to_a_map_is_not_lost(tmp_path):
    np.save(tmp_path / "p.npy", np.zeros((4000, 2000), dtype=np.uint8))
    private = np.load(tmp_path / "p.npy", mmap_mode="c")
    private[:] = 1
    p = Predictions(private, "errors")
    assert all(block.all() for _, block in p.error_blocks())
    assert private.all()


def test_a_large_map_is_not_held(tmp_path):
    resource = pytest.importorskip("resource")
    size = 2**26
    np.save(tmp_path / "p.npy", np.zeros((size // 2**14, 2**14), dtype=np.uint8))
    mapped = np.load(tmp_path / "p.npy", mmap_mode="r")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    total = sum(int(block.sum()) for _, block in Predictions(mapped, "errors").error_blocks())
    assert total == 0
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < size / 1024 / 2  # kilobytes; half the file


def test_a_source_that_can_only_be_sliced_is_enough():
    class Slices:
        shape, dtype = PREDS.shape, PREDS.dtype

        def __getitem__(self, rows):
            assert isinstance(rows, slice)
            return PREDS[rows]

    p = as_predictions(Slices(), LABELS)
    np.testing.assert_array_equal(p.errors(), ERRORS)


def test_subset_keeps_what_belongs_together():
    p = Predictions(
        PREDS,
        "labels",
        labels=LABELS,
        groups=np.array([0, 0, 1, 1, 2, 2, 3]),
        run_ids=np.array(["a", "b", "c"]),
        example_ids=np.arange(7) * 10,
    )
    part = p.subset(runs=[2, 0], examples=np.array([True, False, True, True, False, False, True]))
    assert part.run_ids.tolist() == ["c", "a"]
    assert part.example_ids.tolist() == [0, 20, 30, 60]
    assert part.groups.tolist() == [0, 1, 1, 3]
    np.testing.assert_array_equal(part.errors(), ERRORS[[2, 0]][:, [0, 2, 3, 6]])
    bits = Predictions(np.packbits(ERRORS, axis=1), "errors", packed=7)
    np.testing.assert_array_equal(bits.subset(examples=[5, 1]).errors(), ERRORS[:, [5, 1]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Predictions(PREDS, "labels"), "needs labels="),
        (lambda: Predictions(PREDS, "label"), "kind='label'"),
        (lambda: Predictions(PREDS, "errors", run_ids=np.array([1, 1, 2])), "repeats a run"),
        (lambda: Predictions(PREDS, "errors", run_ids=np.array([1, 2])), "run_ids has shape"),
        (lambda: Predictions(PREDS[0], "errors"), "runs × examples"),
        (lambda: Predictions(np.packbits(ERRORS, axis=1), "errors", packed=9), "2 bytes a run"),
        (lambda: Predictions(PREDS, "losses", packed=7), "packed="),
        (lambda: as_predictions(PREDS, LABELS, axes=("runs", "classes")), "axes="),
        (lambda: as_predictions(PREDS, LABELS.astype(str)), "both be names"),
        (lambda: as_predictions(PREDS, LABELS + 0.5), "whole numbers|classes"),
        (lambda: as_predictions(np.ma.masked_equal(PREDS, 2), LABELS), "masked"),
        (lambda: as_predictions(PREDS, np.ma.masked_equal(LABELS, 2)), "masked"),
        (lambda: Predictions(PREDS, "labels", labels=LABELS - 2), "marks an example"),
        (lambda: as_predictions(PREDS, LABELS, groups=[np.nan, 1, 1, 2, 2, 3, 3]), "NaN"),
        (lambda: as_predictions(np.full((3, 7), 0.4), LABELS, kind="probabilities"), "np.stack"),
        (lambda: as_predictions("runs.npz"), "load_predictions"),
        (lambda: as_predictions([[1, 0, 1], [0, 1]]), "unequal lengths"),
        (lambda: as_predictions(PREDS.astype(complex), LABELS), "dtype"),
        (lambda: as_predictions(np.ones((2, 5, 3)) / 3, np.full(5, 4)), "3 classes along its last axis"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_objects_are_compared_as_what_they_are():
    mixed = as_predictions(PREDS.astype(float).astype(object), LABELS.astype(object))
    np.testing.assert_array_equal(mixed.errors(), ERRORS)
    flags = as_predictions((ERRORS == 1).astype(object), np.zeros(7, dtype=object))
    np.testing.assert_array_equal(flags.errors(), ERRORS)


def test_labels_of_pandas():
    pd = pytest.importorskip("pandas")
    np.testing.assert_array_equal(as_predictions(PREDS, pd.Series(LABELS)).errors(), ERRORS)


def test_nan_names_the_run():
    broken = PREDS.astype(float)
    broken[1, 2] = np.nan
    with pytest.raises(InputError, match=r"run\(s\) 1: a run that diverged"):
        as_predictions(broken, LABELS).errors()


def test_text_that_looks_like_numbers_stays_text():
    labels = np.array(["1", "01", "1", "01"], dtype=object)
    preds = np.array([["01", "1", "1", "01"], ["1", "01", "01", "1"]], dtype=object)
    assert as_predictions(preds, labels).errors().mean() == 0.5


@pytest.mark.parametrize(
    "labels",
    [
        [0, 1, np.nan, 1, 0, 2, 1],
        np.array([0, 1, None, 1, 0, 2, 1], dtype=object),
        np.array(["a", "b", np.nan, "b", "a", "c", "b"], dtype=object),
    ],
)
def test_missing_labels_are_refused(labels):
    with pytest.raises(InputError, match="labels holds"):
        as_predictions(PREDS, labels)
    with pytest.raises(InputError, match="groups holds"):
        as_predictions(PREDS, LABELS, groups=labels)


def test_a_table_is_sent_to_the_reader():
    pd = pytest.importorskip("pandas")
    with pytest.raises(InputError, match="load_predictions"):
        as_predictions(pd.DataFrame(PREDS), LABELS)


def test_amending_what_is_known():
    p = Predictions(ERRORS, "errors")
    assert as_predictions(p, LABELS).labels.tolist() == LABELS.tolist()
    known = as_predictions(PREDS, LABELS)
    assert as_predictions(known, LABELS) is known
    with pytest.raises(InputError, match="differs"):
        as_predictions(known, LABELS[::-1])
    with pytest.raises(InputError, match="already knows"):
        as_predictions(known, kind="errors")
    assert as_predictions(p, groups=["x", "y", "x", "y", "z", "z", "z"]).groups.max() == 2


def test_one_column_is_called_one_column():
    with pytest.raises(InputError, match=r"has 5 rows and 1 column\. Rows are runs"):
        as_predictions(np.zeros((5, 1), dtype=int), kind="errors")


def test_missing_values_of_pandas_are_named() -> None:
    pandas = pytest.importorskip("pandas")
    members = pandas.array(["a", None, "b", "a", "b", "a", "b"], dtype="string")
    with pytest.raises(InputError, match="groups holds 1 missing"):
        as_predictions(PREDS, LABELS, groups=members)
    holes = PREDS.astype(object)
    holes[0, 0] = pandas.NA
    with pytest.raises(InputError, match="predictions holds 1 missing"):
        as_predictions(holes, LABELS)


def test_a_negative_label_is_named() -> None:
    with pytest.raises(InputError, match="not -5"):
        as_predictions(ERRORS, LABELS - 5, kind="errors")


def test_axes_that_turn_predictions_away_from_their_labels_are_to_be_left_out():
    votes, labels = np.zeros((4, 9), int), np.arange(9) % 2
    with pytest.raises(InputError, match=r"transposed. Rows are runs: leave axes=\('examples', 'runs'\) out"):
        as_predictions(votes, labels, axes=("examples", "runs"))
    with pytest.raises(InputError, match=r"pass predictions.T, or axes="):
        as_predictions(votes.T, labels)


def test_predictions_are_made_of_lists():
    given = Predictions([[0, 1, 1], [0, 1, 0]], "labels", labels=[0, 1, 0], groups=[0, 0, 1], run_ids=["a", "b"])
    assert given.errors().tolist() == [[0, 0, 1], [0, 0, 0]]
    assert given.subset(runs=[1]).run_ids.tolist() == ["b"]
    with pytest.raises(InputError, match="rows have unequal lengths"):
        Predictions([[0, 1], [1]], "errors")
    with pytest.raises(InputError, match="groups holds NaN"):
        Predictions([[0, 1], [1, 1]], "errors", groups=[1.0, np.nan])


@pytest.mark.parametrize("kind", ["errors", "correct", "losses", "scores", "probabilities"])
def test_text_is_neither_an_error_nor_a_loss(kind: str) -> None:
    text = np.tile(np.array(["a", "b", "a"]), (2, 1) if kind != "probabilities" else (2, 3, 1))
    labels = np.array([0, 1, 2]) if kind == "probabilities" else None
    with pytest.raises(InputError, match=r"holds the text 'a', and must hold numbers.*kind='labels'") as caught:
        as_predictions(text, labels, kind=kind)
    assert (caught.value.argument, caught.value.value) == ("predictions", "a")
