"""Properties of training subsets; needs numpy, pytest and hypothesis only."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.learning.partition import Partition, geometric_sizes, partition_training_set


def quiet(*args, **options) -> Partition:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        return partition_training_set(*args, **options)


def class_counts(labels, subset):
    return np.bincount(np.asarray(labels)[subset.indices], minlength=max(labels) + 1)


def are_disjoint(subsets) -> bool:
    used = np.concatenate([s.indices for s in subsets])
    return len(np.unique(used)) == len(used)


@st.composite
def labelled_sizes(draw):
    members = draw(st.lists(st.integers(1, 30), min_size=1, max_size=8))
    labels = np.repeat(np.arange(len(members)), members)
    labels = np.random.default_rng(draw(st.integers(0, 99))).permutation(labels)
    sizes = draw(st.sets(st.integers(1, len(labels)), min_size=1, max_size=4))
    folds = [draw(st.integers(1, 6)) for _ in sizes]
    return labels.tolist(), sorted(sizes), folds


anything = given(case=labelled_sizes(), nested=st.booleans(), stratify=st.booleans(), seed=st.integers(0, 2**40))


@pytest.mark.slow
@anything
@settings(deadline=None)
def test_each_subset_has_exactly_its_size_and_no_example_twice(case, nested, stratify, seed):
    labels, sizes, folds = case
    parts = quiet(labels, sizes, folds, nested=nested, stratify=stratify, rng=seed)
    assert parts.sizes == tuple(sizes)
    assert parts.folds == tuple(folds)
    assert [(s.n, s.fold) for s in parts] == [(n, fold) for n, k in zip(sizes, folds, strict=True) for fold in range(k)]
    for s in parts:
        assert len(np.unique(s.indices)) == s.n == len(s.indices)
        assert s.indices.min() >= 0
        assert s.indices.max() < len(labels)


@given(case=labelled_sizes(), stratify=st.booleans(), seed=st.integers(0, 99))
@settings(deadline=None)
def test_subsets_of_a_size_are_disjoint_where_they_fit(case, stratify, seed):
    labels, sizes, folds = case
    parts = quiet(labels, sizes, folds, stratify=stratify, rng=seed)
    for n, k in zip(sizes, folds, strict=True):
        assert are_disjoint(parts.at(n)) == (n * k <= len(labels))


@given(case=labelled_sizes(), seed=st.integers(0, 99))
@settings(deadline=None)
def test_examples_are_shared_as_little_as_possible(case, seed):
    labels, sizes, folds = case
    parts = quiet(labels, sizes, folds, stratify=False, rng=seed)
    for n in sizes:
        uses = np.bincount(np.concatenate([s.indices for s in parts.at(n)]), minlength=len(labels))
        assert uses.max() - uses.min() <= 1


@given(case=labelled_sizes(), seed=st.integers(0, 99))
@settings(deadline=None)
def test_class_counts_are_proportional_and_cover_the_classes(case, seed):
    labels, sizes, folds = case
    members = np.bincount(labels)
    parts = quiet(labels, sizes, folds, rng=seed)
    for n, k in zip(sizes, folds, strict=True):
        quota = n * members / members.sum()
        for s in parts.at(n):
            counts = class_counts(labels, s)
            if n * members.min() >= members.sum():  # no class has to be lifted to one example
                assert np.all(np.abs(counts - quota) < 1)
            assert np.all(counts <= np.ceil(np.maximum(quota, 1)))
            if n >= len(members):
                needed = members >= (k if n * k <= len(labels) else 1)
                assert np.all(counts[needed] >= 1)
            elif k == 1:
                assert counts.max() == 1


@given(case=labelled_sizes(), stratify=st.booleans(), seed=st.integers(0, 99))
@settings(deadline=None)
def test_nested_subsets_are_prefixes_of_their_fold_and_inside_it_modulo(case, stratify, seed):
    labels, sizes, folds = case
    parts = quiet(labels, sizes, folds, nested=True, stratify=stratify, rng=seed)
    for small, large in pairwise(sizes):
        outer = parts.at(large)
        for s in parts.at(small):
            assert np.isin(s.indices, outer[s.fold % len(outer)].indices).all()
            if s.fold < len(outer):
                np.testing.assert_array_equal(outer[s.fold].indices[:small], s.indices)


@given(case=labelled_sizes(), seed=st.integers(0, 99))
@settings(deadline=None)
def test_nested_class_counts_stay_close_to_proportional(case, seed):
    labels, sizes, _ = case
    members = np.bincount(labels)
    parts = quiet(labels, sizes, 1, nested=True, rng=seed)
    for s in parts:
        counts = class_counts(labels, s)
        if s.n >= len(members):
            assert counts.min() >= 1
        if sizes[0] * members.min() >= members.sum():
            assert np.all(np.abs(counts - s.n * members / members.sum()) < 2)


@pytest.mark.slow
@anything
@settings(deadline=None)
def test_the_seed_alone_determines_the_result(case, nested, stratify, seed):
    labels, sizes, folds = case
    options = {"nested": nested, "stratify": stratify}
    np.random.seed(1)  # noqa: NPY002
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    first = quiet(labels, sizes, folds, rng=seed, **options)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    np.random.seed(2)  # noqa: NPY002
    again = quiet(labels, sizes, folds, rng=seed, **options)
    generators = [quiet(labels, sizes, folds, rng=np.random.default_rng(seed), **options) for _ in range(2)]
    for a, b in [(first, again), generators]:
        for s, t in zip(a, b, strict=True):
            np.testing.assert_array_equal(s.indices, t.indices)


def test_another_seed_gives_other_subsets():
    a, b = (partition_training_set([0, 1] * 50, [40], 1, rng=seed).subsets[0] for seed in (0, 1))
    assert sorted(a.indices) != sorted(b.indices)


def test_a_further_size_leaves_the_others_as_they_were():
    one = partition_training_set([0, 1] * 50, [10, 50], [4, 2], rng=3)
    two = partition_training_set([0, 1] * 50, [5, 10, 20], [3, 4, 1], rng=3)
    for s, t in zip(one.at(10), two.at(10), strict=True):
        np.testing.assert_array_equal(s.indices, t.indices)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("folds", [(16, 8, 4, 2, 1), None])
def test_the_papers_per_class_design(folds, nested):
    labels = np.tile(np.arange(10), 400)
    parts = partition_training_set(labels, [25, 50, 100, 200, 400], folds, per_class=True, nested=nested, rng=1)
    assert parts.folds == (16, 8, 4, 2, 1)
    assert parts.sizes == (250, 500, 1000, 2000, 4000)
    for s in parts:
        assert np.all(class_counts(labels, s) == s.n // 10)
    for n in parts.sizes:
        assert are_disjoint(parts.at(n))
    assert parts.warnings == ()


def test_more_folds_than_fit_share_examples_and_say_so():
    labels = [0, 1] * 50
    with pytest.warns(CurvewiseWarning, match=r"n=50: the 3 subsets share examples, 50 of 100"):
        parts = partition_training_set(labels, [0.25, 0.5], [4, 3])
    assert len(parts.warnings) == 1
    assert are_disjoint(parts.at(50)[:2])
    with pytest.warns(CurvewiseWarning):
        six = partition_training_set(labels, [0.03125, 0.0625, 0.125, 0.25, 0.5, 1.0], [16, 8, 4, 3, 3, 1])
    assert six.folds == (16, 8, 4, 3, 3, 1)


def test_fractions_of_the_training_set():
    parts = partition_training_set([0, 1] * 50, (0.2, 0.4, 0.8), (4, 2, 1))
    assert parts.sizes == (20, 40, 80)
    assert partition_training_set(100, [0.29], stratify=False).sizes == (29,)  # 28.999… in floats
    assert partition_training_set(100, np.array([0.5, 1.0]), stratify=False).sizes == (50, 100)


def test_tiny_subsets_have_as_many_classes_as_examples_chosen_at_random():
    labels = np.repeat(np.arange(10), [91, 1, 1, 1, 1, 1, 1, 1, 1, 1])
    seen = set()
    for seed in range(20):
        with pytest.warns(CurvewiseWarning, match="less than the 10 classes"):
            (subset,) = partition_training_set(labels, [3], 1, rng=seed)
        counts = class_counts(labels.tolist(), subset)
        assert counts.max() == 1
        seen.add(tuple(np.flatnonzero(counts)))
    assert len(seen) > 5


def test_a_rare_class_is_missing_rather_than_shared_and_it_is_said():
    labels = [0] * 98 + [1] * 2
    with pytest.warns(CurvewiseWarning, match="8 of 10 subsets lack a class"):
        parts = partition_training_set(labels, [10], 10)
    assert are_disjoint(parts)


def test_disjoint_subsets_keep_awkward_proportions():
    # 1.5 of each class: one subset must take two of the first class and the other of the second
    labels = [0, 0, 0, 1, 1, 1]
    parts = partition_training_set(labels, [3], 2)
    assert sorted(class_counts(labels, s).tolist() for s in parts) == [[1, 2], [2, 1]]


def test_string_labels_and_frame():
    pytest.importorskip("pandas")
    parts = partition_training_set(["cat", "dog"] * 10, [4], 2)
    frame = parts.frame()
    assert list(frame.columns) == ["n", "fold", "index"]
    assert len(frame) == 8
    assert frame["fold"].tolist() == [0] * 4 + [1] * 4
    assert frame["index"].tolist() == np.concatenate([s.indices for s in parts]).tolist()
    assert len(parts) == 2


@pytest.mark.parametrize(
    ("labels", "sizes", "options", "message"),
    [
        ([0, 1] * 5, [11], {}, "sizes holds 11, which is 11 examples while there are 10"),
        ([0, 1] * 5, [0], {}, "sizes holds 0"),
        ([0, 1] * 5, [-2], {}, "sizes holds -2"),
        ([0, 1] * 5, [0.01], {}, "sizes holds 0.01, which is 0 example"),
        ([0, 1] * 5, [], {}, "at least one"),
        ([0, 1] * 5, [float("nan")], {}, "whole numbers or fractions"),
        ([0, 1] * 5, ["4"], {}, "whole numbers or fractions"),
        ([0, 1] * 5, [True], {}, "whole numbers or fractions"),
        ([0, 1] * 5, [0.5, 1], {}, "mixes fractions"),
        ([0, 1] * 5, [2.5], {}, "mixes fractions"),
        ([0, 1] * 5, [0.5, 0.55], {}, "names a size twice"),
        ([0, 1] * 5, [2, 4], {"folds": [1]}, "folds has 1 value.* sizes has 2"),
        ([0, 1] * 5, [2], {"folds": [0]}, "at least 1"),
        ([0, 1] * 5, [2], {"folds": [1.5]}, "at least 1"),
        ([0, 0, 0, "a"], [2], {"per_class": True}, "smallest class .'a'. has 1"),
        ([0, 1] * 5, [2], {"per_class": True, "stratify": False}, "per_class=True: needs"),
        ([0.0, float("nan")], [1], {}, "1 missing label.* position 1"),
        (np.array(["a", None], dtype=object), [1], {}, "missing label"),
        (np.array(["a", 1], dtype=object), [1], {}, "cannot be compared"),
        ([0.5, 1.2], [1], {}, "stratify=False"),
        ([[0, 1]], [1], {}, r"shape \(1, 2\)"),
        ([], [1], {}, r"shape \(0,\)"),
        (10, [2], {}, "pass the labels, or stratify=False"),
        (0, [2], {"stratify": False}, "at least 1 example"),
        ([0, 1] * 5, [2], {"rng": -1}, "rng=-1"),
        ([0, 1] * 5, [2], {"rng": None}, "rng=None"),
    ],
)
def test_mistakes_are_named(labels, sizes, options, message):
    with pytest.raises(InputError, match=message):
        partition_training_set(labels, sizes, **options)


@given(total=st.integers(1, 10**6), count=st.integers(1, 9), ratio=st.floats(1.1, 10))
def test_geometric_sizes_rise_to_the_total_and_fit(total, count, ratio):
    sizes = geometric_sizes(total, count, ratio)
    assert sizes[-1] == total
    assert list(sizes) == sorted(set(sizes))
    assert len(sizes) <= count
    assert sizes[0] >= 1


def test_geometric_sizes_default_folds_are_powers_of_two():
    sizes = geometric_sizes(1600)
    assert sizes == (100, 200, 400, 800, 1600)
    assert partition_training_set(1600, sizes, stratify=False).folds == (16, 8, 4, 2, 1)


@pytest.mark.parametrize("options", [{"count": 0}, {"ratio": 1.0}, {"minimum": 0}, {"minimum": 200}])
def test_geometric_sizes_refuses_what_gives_no_series(options):
    with pytest.raises(InputError, match=next(iter(options))):
        geometric_sizes(100, **options)


def test_sizes_per_class_stand_beside_shares():
    labels = np.repeat([0, 1, 2], [40, 100, 260])
    parts = partition_training_set(labels, ["3/class", "5/class + 1/class", "17 + 2/class", 0.25, 1.0], [4, 3, 3, 2, 1])
    assert parts.sizes == (9, 18, 23, 100, 400)
    for n, each, held in ((9, 3, 0), (18, 6, 1)):
        assert all(np.bincount(labels[s.indices]).tolist() == [each] * 3 for s in parts.at(n))
        assert {s.held for s in parts.at(n)} == {held}
        assert len(np.unique(np.concatenate([s.indices for s in parts.at(n)]))) == n * len(parts.at(n))
    # 17 in proportion, and two of each beside them.
    for subset in parts.at(23):
        assert np.all(np.abs(np.bincount(labels[subset.indices]) - 2 - 17 * np.array([0.1, 0.25, 0.65])) <= 1)
    # What stands beside it changes no size, and per_class=True is the same thing for all sizes.
    alone = partition_training_set(labels, [3], 4, per_class=True)
    shares = partition_training_set(labels, [0.25, 1.0], [2, 1])
    assert all(np.array_equal(a.indices, b.indices) for a, b in zip(parts.at(9), alone, strict=True))
    assert all(np.array_equal(a.indices, b.indices) for a, b in zip(parts.at(100), shares.at(100), strict=True))


def test_as_many_folds_of_few_examples_as_the_smallest_class_gives():
    labels = np.repeat([0, 1], [20, 100])
    assert partition_training_set(labels, ["3/class", "5/class + 1/class"]).folds == (6, 3)
    assert partition_training_set(labels, [2]).folds == (16,)


def test_few_examples_of_each_class_can_be_nested():
    labels = np.repeat([0, 1], 50)
    parts = partition_training_set(labels, ["2/class", "5/class", 0.5], 2, nested=True)
    for small, large in ((4, 10), (10, 50)):
        for fold in range(2):
            assert set(parts.at(small)[fold].indices) <= set(parts.at(large)[fold].indices)


@pytest.mark.parametrize(
    ("sizes", "options", "message"),
    [
        (["14/class"], {}, r"holds '14/class', and the smallest class \(0\) has 13"),
        (["12/class + 2/class"], {}, "smallest class"),
        (["112 + 1/class"], {}, "there are only 113 examples"),
        (["3/class", 6], {}, "names a size twice"),
        (["3/class", 0.5, 20], {}, "mixes fractions"),
        (["0/class"], {}, "whole numbers or fractions"),
        (["3/class + 2"], {}, "whole numbers or fractions"),
        (["3/class"], {"per_class": True}, "leave per_class=False"),
        (["3/class"], {"stratify": False}, "leave stratify=True"),
    ],
)
def test_few_examples_that_cannot_be_drawn_are_refused(sizes, options, message):
    with pytest.raises(InputError, match=message):
        partition_training_set(np.repeat([0, 1], [13, 100]), sizes, **options)


@pytest.mark.parametrize(
    ("members", "sizes", "named"),
    [
        ([90, 10], ["3/class + 2/class", 20], "'3/class [+] 2/class', which cannot lie inside the size 20"),
        ([50] * 9 + [20], ["5/class", 0.2, 1.0], "'5/class', which cannot lie inside the size 94"),
        ([90, 10], ["4 + 3/class", 20], "'4 [+] 3/class', which cannot lie inside the size 20"),
    ],
)
def test_classes_that_a_larger_subset_has_too_few_of_cannot_be_nested(members, sizes, named):
    labels = np.repeat(np.arange(len(members)), members)
    with pytest.raises(InputError, match=named):
        quiet(labels, sizes, 1, nested=True)
    for subset in quiet(labels, sizes, 1):
        assert len(set(subset.indices.tolist())) == subset.n


@pytest.mark.parametrize("size", [10, "5/class", 0.25, np.array(10)])
def test_a_single_size_needs_no_list(size):
    labels = [0, 1] * 20
    assert partition_training_set(labels, size, folds=1).sizes == partition_training_set(labels, [10], folds=1).sizes
