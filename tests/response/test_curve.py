"""The result of a measurement: scores, intervals, words, tables."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from curvewise.errors import InputError
from curvewise.response.curve import ResponseCurve
from curvewise.response.scores import gi_score, pal_score

GRID = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5])
RIGHT = np.array([995, 980, 950, 900, 850, 700])


@pytest.fixture
def curve() -> ResponseCurve:
    return ResponseCurve.from_counts(GRID, RIGHT, 1000, clean_correct=995, clean_total=1000, model="net")


def test_scores_are_those_of_the_plain_functions(curve: ResponseCurve) -> None:
    assert curve.gi == pytest.approx(gi_score(GRID, RIGHT / 1000))
    assert curve.pal == pytest.approx(pal_score(GRID, RIGHT / 1000))
    assert curve.mean_accuracy == pytest.approx(np.mean(RIGHT / 1000))
    assert curve.clean_accuracy == 0.995
    assert curve.gi_relative == pytest.approx(gi_score(GRID, RIGHT / 1000, relative_to=0.995))


def test_signs_are_those_of_the_curve() -> None:
    both = {"magnitude": [-1, 0, 2], "correct": [50, 100, 80], "total": 100}
    assert ResponseCurve.from_counts(**both).gi == pytest.approx(gi_score([-1, 0, 2], [0.5, 1, 0.8]))
    kept = ResponseCurve.from_counts(**both, signs="keep")
    assert kept.gi == pytest.approx(gi_score([-1, 0, 2], [0.5, 1, 0.8], signs="keep"))
    assert kept.gi != pytest.approx(ResponseCurve.from_counts(**both).gi)


def test_intervals_of_accuracy_are_wilsons(curve: ResponseCurve) -> None:
    oracle = pytest.importorskip("statsmodels.stats.proportion")
    low, high = curve.accuracy_interval(0.9)
    for i, count in enumerate(RIGHT):
        expected = oracle.proportion_confint(count, 1000, alpha=0.1, method="wilson")
        assert (low[i], high[i]) == pytest.approx(expected)


def test_intervals_of_scores_hold_them_and_shrink_with_examples(curve: ResponseCurve) -> None:
    many = ResponseCurve.from_counts(GRID, RIGHT * 100, 100_000)
    for score, interval in curve.scores().items():
        assert interval.estimate == pytest.approx(getattr(curve, score))
    for small, large in (
        (curve.gi_interval(), many.gi_interval()),
        (curve.pal_interval(), many.pal_interval()),
        (curve.mean_interval(), many.mean_interval()),
    ):
        assert small.estimate in small
        assert large.width == pytest.approx(small.width / 10, rel=0.1)


def test_order_does_not_matter() -> None:
    mixed = [3, 0, 5, 1, 4, 2]
    curve = ResponseCurve.from_counts(GRID[mixed], RIGHT[mixed], 1000)
    assert curve.magnitude.tolist() == GRID.tolist()
    assert curve.correct.tolist() == RIGHT.tolist()


def test_a_network_that_is_never_right() -> None:
    never = ResponseCurve.from_counts([0, 1], [0, 0], 10, clean_total=10)
    assert never.gi == 1
    assert math.isnan(never.pal)
    assert math.isnan(never.pal_interval().low)
    assert math.isnan(never.gi_relative)
    assert "Gi-score 1" in never.summary()


def test_clean_accuracy_is_that_of_magnitude_0_or_unknown() -> None:
    assert ResponseCurve.from_counts([0, 1], [9, 5], 10).clean_accuracy == 0.9
    assert math.isnan(ResponseCurve.from_counts([1, 2], [9, 5], 10).clean_accuracy)


def test_words_table_and_json(curve: ResponseCurve) -> None:
    pytest.importorskip("pandas")
    assert "net" in curve.summary()
    assert "99.5% clean and 70.0%" in curve.summary()
    assert list(curve.frame().columns) == ["magnitude", "correct", "total", "accuracy", "low", "high"]
    assert "| 0.50" in curve.table()
    kept = json.loads(json.dumps(curve.to_dict()))
    assert kept["scores"]["gi"]["estimate"] == pytest.approx(curve.gi)
    assert "hits" not in kept


@pytest.mark.parametrize(
    ("correct", "total", "said"),
    [
        ([5, 11], 10, "between 0 and total"),
        ([0.5, 1], 10, "whole numbers"),
        ([1, 2], 0, "at least 1"),
        ([1, np.nan], 10, "finite"),
        ([1, 2, 3], 10, "same length"),
    ],
    ids=["too many", "shares", "none", "nan", "lengths"],
)
def test_counts_that_are_none(correct: list[float], total: int, said: str) -> None:
    with pytest.raises(InputError, match=said):
        ResponseCurve.from_counts([0, 1], correct, total)


def test_accuracies_of_pairs_hold_the_truth() -> None:
    """A pair fails with either; 95% nominal, 800 samples leave a standard error of 0.8%."""
    rng, examples, held = np.random.default_rng(1), 200, []
    for _ in range(800):
        good = rng.random(examples) < 0.9
        order = rng.permutation(examples)
        partners = np.tile(np.roll(order, 1)[np.argsort(order)], (2, 1))
        hits = np.stack([good & good[partners[0]]] * 2)
        total = np.full(2, examples)
        curve = ResponseCurve(np.array([0.1, 0.2]), hits.sum(axis=1), total, hits=hits, partners=partners)
        low, high = curve.accuracy_interval()
        held.append(low[0] <= 0.81 <= high[0])
    assert 0.925 < np.mean(held) < 0.985
