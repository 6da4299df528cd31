"""Agreement of scores with accuracies against scipy, brute force and simulation."""

from __future__ import annotations

import math
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.ranking.agreement import CORRELATIONS, drawn_selections, left_out, ranking_agreement, recall_at, rel_at


def scores_and_accuracies(rng: np.random.Generator, tasks: int, size: int, noise: float = 0.5):
    quality = rng.normal(size=(tasks, size))
    return quality + noise * rng.normal(size=(tasks, size)), 1 / (1 + np.exp(-quality))


ORACLES = {
    "kendall": lambda x, y: stats.kendalltau(x, y).statistic,
    "pearson": lambda x, y: stats.pearsonr(x, y).statistic,
    "weighted_kendall": lambda x, y: stats.weightedtau(x, y).statistic,
}


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("name", CORRELATIONS)
def test_correlations_are_scipys_averaged_over_tasks(name: str, ties: bool) -> None:
    scores, accuracy = scores_and_accuracies(np.random.default_rng(0), 5, 17)
    if ties:
        scores, accuracy = scores.round(0), accuracy.round(1)
    found = ranking_agreement(scores, accuracy)
    each = [ORACLES[name](s, a) for s, a in zip(scores, accuracy, strict=True)]
    np.testing.assert_allclose(found.by_task[name], each, rtol=1e-12)
    assert getattr(found, name) == pytest.approx(np.mean(each), rel=1e-12)
    assert found.intervals[name].estimate == getattr(found, name)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("name", CORRELATIONS)
def test_left_out_is_the_correlation_of_the_others(name: str, ties: bool) -> None:
    (scores,), (accuracy,) = scores_and_accuracies(np.random.default_rng(1), 1, 11)
    if ties:
        scores, accuracy = scores.round(0), accuracy.round(1)
    scores[4], accuracy[7] = np.nan, np.nan
    whole = [i for i in range(11) if i not in (4, 7)]
    for place, value in enumerate(left_out(scores, accuracy, name)):
        rest = [i for i in whole if i != place]
        assert value == pytest.approx(ORACLES[name](scores[rest], accuracy[rest]), rel=1e-9)


def test_left_out_keeps_its_digits_beside_an_outlier() -> None:
    (scores,), (accuracy,) = scores_and_accuracies(np.random.default_rng(2), 1, 9)
    scores[5] = 1e9
    rest = np.arange(9) != 5
    expected = ORACLES["pearson"](scores[rest], accuracy[rest])
    assert left_out(scores, accuracy, "pearson")[5] == pytest.approx(expected, rel=1e-9)


def over_all_orders(scores: np.ndarray, accuracy: np.ndarray, k: int) -> tuple[float, float]:
    """Recall@k and Rel@k averaged over every order of the checkpoints that ties allow."""
    recalls, rels = [], []
    for order in permutations(range(len(scores))):
        ranked = [i for i in order if not math.isnan(scores[i])]
        if any(scores[a] < scores[b] for a, b in pairwise(ranked)):
            continue
        best = max(accuracy[i] for i in ranked[:k])
        recalls.append(best == accuracy.max())
        rels.append(best / accuracy.max())
    return float(np.mean(recalls)), float(np.mean(rels))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from([1.0, 2.0, 3.0]), min_size=2, max_size=6), st.data(), st.integers(1, 7))
def test_ties_are_averaged_over_all_their_orders(given_scores, data, k) -> None:
    scores = np.array(given_scores)
    values = st.sampled_from([0.2, 0.5, 0.6, 0.9])
    accuracy = np.array([data.draw(values) for _ in given_scores])
    recall, rel = over_all_orders(scores, accuracy, k)
    assert recall_at(scores, accuracy, k) == pytest.approx(recall, abs=1e-12)
    assert rel_at(scores, accuracy, k) == pytest.approx(rel, abs=1e-12)


@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_drawn_orders_average_to_the_exact_values(k: int) -> None:
    scores = np.array([3.0, 2.0, 2.0, 2.0, 1.0, np.nan])
    accuracy = np.array([0.5, 0.6, 0.8, 0.7, 0.4, 0.9])
    rng = np.random.default_rng(0)
    drawn = drawn_selections(np.tile(scores, (40_000, 1)), np.tile(accuracy, (40_000, 1)), (k,), rng)
    assert drawn[f"rel_at_{k}"].mean() == pytest.approx(rel_at(scores, accuracy, k), abs=0.003)
    assert drawn[f"recall_at_{k}"].mean() == pytest.approx(recall_at(scores, accuracy, k), abs=0.01)


def test_scores_that_are_all_equal_rank_at_random() -> None:
    accuracy = np.array([0.5, 0.6, 0.7, 0.9])
    with pytest.warns(CurvewiseWarning, match="all scores are equal"):
        found = ranking_agreement(np.ones(4), accuracy, k=(1, 2))
    assert (found.kendall, found.pearson, found.weighted_kendall) == (0, 0, 0)
    assert found.recall == {1: pytest.approx(0.25), 2: pytest.approx(0.5)}
    assert found.rel[1] == pytest.approx(accuracy.mean() / 0.9)
    pairs = [max(a, b) for i, a in enumerate(accuracy) for b in accuracy[i + 1 :]]
    assert found.rel[2] == pytest.approx(np.mean(pairs) / 0.9)


def test_a_checkpoint_without_a_score_is_said_never_chosen_and_may_be_the_best() -> None:
    accuracy = np.array([0.9, 0.8, 0.7, 0.6, 0.5])
    with pytest.warns(CurvewiseWarning, match="1 of 5 checkpoints has no score"):
        found = ranking_agreement([np.nan, 4.0, 3.0, 2.0, 1.0], accuracy, k=1)
    assert (found.recall[1], found.kendall, found.n) == (0.0, 1.0, (4,))
    assert found.rel[1] == pytest.approx(0.8 / 0.9)


def test_a_failed_fine_tuning_is_said_and_left_out() -> None:
    with pytest.warns(CurvewiseWarning, match="1 of 5 checkpoints has no accuracy"):
        found = ranking_agreement([5.0, 4.0, 3.0, 2.0, 1.0], [np.nan, 0.8, 0.7, 0.6, 0.5], k=1)
    assert (found.recall[1], found.kendall, found.n) == (1.0, 1.0, (4,))


def test_a_task_that_tells_nothing_is_said_and_not_averaged() -> None:
    scores, accuracy = scores_and_accuracies(np.random.default_rng(3), 3, 9)
    accuracy[1] = 0.5
    with pytest.warns(CurvewiseWarning, match="task 2: all accuracies are equal"):
        found = ranking_agreement(scores, accuracy)
    each = [stats.kendalltau(scores[t], accuracy[t]).statistic for t in (0, 2)]
    assert found.kendall == pytest.approx(np.mean(each))
    rest = ranking_agreement(scores[[0, 2]], accuracy[[0, 2]])
    assert (found.recall, found.rel) == (rest.recall, rest.rel)
    assert found.columns() == rest.columns()
    for values in found.by_task.values():
        assert math.isnan(values[1])


def test_one_checkpoint_tells_nothing() -> None:
    with pytest.warns(CurvewiseWarning, match="too few to rank"):
        found = ranking_agreement([1.0], [0.5])
    for interval in found.intervals.values():
        assert all(math.isnan(v) for v in (interval.estimate, *interval))


def test_one_row_of_scores_serves_all_tasks() -> None:
    scores, accuracy = scores_and_accuracies(np.random.default_rng(4), 3, 9)
    one = ranking_agreement(scores[0], accuracy)
    many = ranking_agreement(np.tile(scores[0], (3, 1)), accuracy)
    assert one.columns() == many.columns()


def test_order_of_checkpoints_and_scale_of_scores_do_not_matter() -> None:
    scores, accuracy = scores_and_accuracies(np.random.default_rng(5), 4, 12)
    turned = np.random.default_rng(0).permutation(12)
    a = ranking_agreement(scores, accuracy)
    b = ranking_agreement(100 + 3 * scores[:, turned], accuracy[:, turned])
    for name in ("kendall", "pearson", "weighted_kendall"):
        assert getattr(a, name) == pytest.approx(getattr(b, name), abs=1e-12)
        np.testing.assert_allclose(list(a.intervals[name]), list(b.intervals[name]), atol=1e-9)
    assert a.rel == b.rel


def test_the_seed_determines_the_intervals() -> None:
    scores, accuracy = scores_and_accuracies(np.random.default_rng(6), 3, 9)
    first, again = (ranking_agreement(scores, accuracy, rng=7) for _ in range(2))
    assert first.columns() == again.columns()
    assert first.columns() != ranking_agreement(scores, accuracy, rng=8).columns()


def test_what_is_left_may_be_equal_or_too_little() -> None:
    accuracy = np.array([0.1, 0.2, 0.3, 0.4])
    for name in CORRELATIONS:
        whole = left_out(np.array([1.0, 1.0, 1.0, 2.0]), accuracy, name)
        assert whole[3] == 0
        assert (whole[:3] > 0).all()
        two = left_out(np.array([2.0, 1.0, np.nan, np.nan]), accuracy, name)
        np.testing.assert_allclose(two, -1)


def test_a_task_without_any_score_is_said_and_not_averaged() -> None:
    scores, accuracy = scores_and_accuracies(np.random.default_rng(12), 3, 9)
    scores[1] = np.nan
    with pytest.warns(CurvewiseWarning, match="task 2: no checkpoint has a score"):
        found = ranking_agreement(scores, accuracy)
    rest = ranking_agreement(scores[[0, 2]], accuracy[[0, 2]])
    assert (found.kendall, found.rel, found.recall) == (rest.kendall, rest.rel, rest.recall)


def test_summary_and_table() -> None:
    scores, accuracy = scores_and_accuracies(np.random.default_rng(10), 2, 9)
    found = ranking_agreement(scores, accuracy, level=0.9)
    assert "9 checkpoints on average over 2 tasks" in found.summary()
    assert "90% intervals over checkpoints and tasks" in found.summary()
    names = found.columns()["quantity"]
    assert names == ["recall_at_1", "rel_at_1", "recall_at_3", "rel_at_3", *CORRELATIONS]
    assert found.to_dict()["recall"].keys() == {"1", "3"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (([1, 2], [1, 2, 3]), "scores has shape"),
        (([[[1]]], [1]), "scores has shape"),
        (([1, np.inf], [0.1, 0.2]), "infinite"),
        (([1, 2], [0.1, 0.2], 0), "k=0"),
        (([1, 2], [0.1, 0.2], (1, 1.5)), "whole number"),
        (([1, 2], [0.1, 0.2], ()), "k is empty"),
        (([1, 2], [0.1, 0.2], None), "k=None: must be a whole number"),
        (([], []), "scores has shape"),
        ((["a"], [0.1]), "must hold numbers"),
    ],
)
def test_bad_input(arguments: tuple, said: str) -> None:
    with pytest.raises(InputError, match=said):
        ranking_agreement(*arguments)
    with pytest.raises(InputError, match="level=2"):
        ranking_agreement([1, 2], [0.1, 0.2], level=2)


def test_rel_needs_accuracies_above_nothing() -> None:
    found = ranking_agreement([1.0, 2.0, 3.0, 4.0], [-4.0, -3.0, -2.0, -1.0])
    assert math.isnan(found.rel[1])
    assert found.kendall == 1.0
    assert math.isnan(ranking_agreement([1.0, 2.0, 3.0], [-2.0, -1.0, 0.0]).rel[1])
    with_zero = np.array([[-2.0, -1.0, 0.0], [-2.0, -1.0, -0.5], [0.0, 0.5, 1.0]])
    drawn = drawn_selections(np.ones((3, 3)), with_zero, (1,), np.random.default_rng(0))["rel_at_1"]
    assert np.isnan(drawn).tolist() == [True, True, False]


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_intervals_do_not_depend_on_the_size_of_scores(scale: float) -> None:
    """Squares of 1e200 overflow: the interval of Pearson's correlation was [-1, 1]."""
    scores, accuracy = np.array([3.0, 2.0, 2.5, 1.0, 0.0, -1.0]), np.linspace(0.9, 0.4, 6)
    expected = ranking_agreement(scores, accuracy).intervals["pearson"]
    found = ranking_agreement(scores * scale, accuracy).intervals["pearson"]
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_names_in_another_order_are_refused() -> None:
    pandas = pytest.importorskip("pandas")
    accuracy = pandas.Series([0.9, 0.8, 0.7, 0.6], index=list("abcd"))
    scores = pandas.Series([1.0, 2.0, 3.0, 4.0], index=list("dcba"))
    with pytest.raises(InputError, match=r"the index of accuracy in another order.*scores\.reindex\(accuracy\.index\)"):
        ranking_agreement(scores, accuracy)
    assert ranking_agreement(scores.reindex(accuracy.index), accuracy).kendall == 1.0
    frame = pandas.DataFrame([[0.9, 0.8, 0.7, 0.6], [0.6, 0.7, 0.9, 0.8]], ["one", "two"], accuracy.index)
    with pytest.raises(InputError, match=r"the columns of accuracy.*scores\.reindex\(accuracy\.columns\)"):
        ranking_agreement(scores, frame)
    with pytest.raises(InputError, match=r"the columns of accuracy.*scores\[accuracy\.columns\]"):
        ranking_agreement(frame[list("dcba")], frame)
    with pytest.raises(InputError, match=r"the index of accuracy.*scores\.reindex\(accuracy\.index\)"):
        ranking_agreement(frame[::-1], frame)
    assert ranking_agreement(frame[list("dcba")][accuracy.index], frame).kendall == pytest.approx(1.0)


def test_a_checkpoint_that_failed_on_every_task_changes_nothing() -> None:
    """It took the places of others in every draw: Recall@3 of [0.61, 1.00] became [0, 1]."""
    scores, accuracy = scores_and_accuracies(np.random.default_rng(0), 6, 9, noise=0.05)
    expected = ranking_agreement(scores, accuracy)
    with pytest.warns(CurvewiseWarning, match="1 of 10 checkpoints has no accuracy"):
        found = ranking_agreement(np.c_[scores, np.full(6, 9.0)], np.c_[accuracy, np.full(6, np.nan)])
    assert found.intervals == expected.intervals


def test_a_checkpoint_that_failed_on_a_task_takes_no_place_there() -> None:
    scores, accuracy = np.array([[3.0, 2.0, 1.0, 0.0]]), np.array([[np.nan, 0.9, 0.8, 0.7]])
    drawn = drawn_selections(scores, accuracy, (1,), np.random.default_rng(0))
    assert (drawn["recall_at_1"], drawn["rel_at_1"]) == (1.0, 1.0)
