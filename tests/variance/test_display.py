"""Scores are shown with their own sign, direction and name, though the analyses hold them as negative errors."""

from __future__ import annotations

import numpy as np
import pytest

from curvewise.errors import CurvewiseWarning
from curvewise.types.results import Interval
from curvewise.variance import (
    check_stopping,
    compare_runs,
    compare_test_sets,
    compare_trainings,
    compare_variances,
    decompose_variance,
    measure_seed_luck,
    measure_sweep,
    plan_stopping,
)
from curvewise.variance.anova import DisplayUnit

RNG = np.random.default_rng(7)
SHARED = RNG.normal(0, 0.2, 200)
LOW, HIGH = (mean + SHARED + RNG.normal(0, 0.05, (6, 1)) + RNG.normal(0, 0.1, (6, 200)) for mean in (30.0, 31.0))
GAP = float(LOW.mean() - HIGH.mean())


def first_number(cell):
    return float(cell.text)


def test_a_unit_gives_word_direction_and_sign():
    score, loss = DisplayUnit("score"), DisplayUnit("loss")
    assert (score.word, score.best, loss.word, loss.best) == ("score", "highest", "loss", "lowest")
    assert score.interval(Interval(-2.0, -3.0, -1.5)) == Interval(2.0, 1.5, 3.0)
    assert loss.interval(Interval(2.0, 1.5, 3.0)) == Interval(2.0, 1.5, 3.0)
    assert (DisplayUnit("percent").word, DisplayUnit("fraction").word) == ("error", "error")


def test_a_comparison_shows_the_score_of_a_minus_that_of_b():
    found = compare_runs(LOW, HIGH, kind="scores", names=("low", "high"))
    table = found.readable()
    assert first_number(table["estimate"][0]) == pytest.approx(GAP, abs=0.01)
    assert first_number(table["estimate"][1]) == pytest.approx(GAP, abs=0.01)
    assert first_number(table["estimate"][2]) == 0.0  # a probability has no sign to change
    assert "The score of low minus that of high is -1.0" in found.sentences()
    assert "difference=-1.0" in repr(found)
    assert "| -1.0" in found.table(digits=2)
    # Attributes and the machine's table: below 0 a is better, whatever the unit.
    assert found.difference.estimate == pytest.approx(-GAP)
    assert found.columns()["estimate"][0] == pytest.approx(-GAP)


def test_losses_keep_their_sign():
    found = compare_runs(LOW, HIGH, kind="losses", names=("low", "high"))
    assert "The loss of low minus that of high is -1.0" in found.sentences()
    assert first_number(found.readable()["estimate"][0]) == pytest.approx(GAP, abs=0.01)


def test_several_trainings_show_differences_and_means_with_their_sign():
    found = compare_trainings({"low": LOW - 60, "high": HIGH - 60}, kind="scores")
    assert first_number(found.readable()["difference"][0]) == pytest.approx(GAP, abs=0.01)
    assert found.readable()["better"] == ["high"]
    assert f"high has the best mean, {HIGH.mean() - 60:.1f}." in found.sentences()
    losses = compare_trainings({"low": LOW - 60, "high": HIGH - 60}, kind="losses")
    assert f"low has the best mean, {LOW.mean() - 60:.1f}." in losses.sentences()


def test_a_decomposition_names_what_was_measured():
    scores, losses = (decompose_variance(HIGH, kind=kind) for kind in ("scores", "losses"))
    assert scores.readable()["quantity"][0] == "mean score"
    assert first_number(scores.readable()["estimate"][0]) == pytest.approx(HIGH.mean(), abs=0.01)
    assert scores.error.estimate == pytest.approx(-HIGH.mean())
    assert losses.readable()["quantity"][0] == "mean loss"
    errors = decompose_variance(HIGH > 31.0, kind="errors")
    assert errors.readable()["quantity"][0] == "error"


def test_a_sweep_looks_for_the_highest_score():
    found = measure_sweep({0.1: LOW, 0.2: HIGH}, kind="scores")
    assert found.best == 0.2
    assert f"0.2 has the highest mean score ({HIGH.mean():.2f}" in found.sentences()
    assert [first_number(c) for c in found.readable()["score"]] == pytest.approx([LOW.mean(), HIGH.mean()], abs=0.01)
    assert "lowest mean loss" in measure_sweep({0.1: LOW, 0.2: HIGH}, kind="losses").sentences()


def test_test_sets_show_scores():
    found = compare_test_sets({"one": LOW, "two": HIGH}, kind="scores")
    assert [first_number(c) for c in found.readable()["score"]] == pytest.approx([LOW.mean(), HIGH.mean()], abs=0.06)
    assert "Run scores are" in found.sentences()


def test_test_sets_have_one_unit_in_table_and_sentence():
    found = compare_test_sets({"one": LOW > 30.0, "two": HIGH > 31.0}, kind="errors")
    assert all(c.text.endswith("%") for c in found.readable()["error"])


def test_a_look_of_a_plan_shows_the_difference_of_scores():
    found = check_stopping(LOW, HIGH, plan_stopping([6, 12], draws=5000), kind="scores", names=("low", "high"))
    assert "the score of low minus that of high on this test set is -1.0" in found.sentences()
    assert first_number(found.readable()["difference"][0]) == pytest.approx(GAP, abs=0.01)
    assert found.decision == "stop: b better"


def test_the_luck_of_seeds_is_of_scores():
    assert measure_seed_luck(LOW, kind="scores").sentences().startswith("The scores of 6 runs")


def test_variances_are_tabled_by_the_names_of_the_trainings():
    found = compare_variances(LOW, HIGH, kind="scores", names=("low", "high")).readable()["quantity"]
    assert found[:3] == [
        "std of low on this test set",
        "std of high on this test set",
        "ratio low / high on this test set",
    ]


def test_from_scores_alone_no_row_without_an_estimate():
    with pytest.warns(CurvewiseWarning, match="from scores alone"):
        found = compare_runs([0.1, 0.12, 0.11, 0.1, 0.12], [0.2, 0.21, 0.22, 0.2, 0.21], higher_is_better=False)
    assert found.readable()["quantity"] == [
        "difference on new data",
        "difference on this test set",
        "chance that a beats b, this test set (by ranks)",
    ]
