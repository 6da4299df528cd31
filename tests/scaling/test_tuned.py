"""The expected best of k trials, its interval, and where two learners cross."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import curvewise as cw
from curvewise.errors import CurvewiseWarning, InputError, quietly
from curvewise.scaling import expected_best, load_trials

SCORES = [0.71, 0.64, 0.80, 0.58, 0.77, 0.69, 0.74, 0.61]


@pytest.mark.parametrize("higher", [True, False])
def test_the_estimate_is_the_mean_best_of_all_subsets(higher):
    found = expected_best(SCORES, budget=[1, 2, 3, 7, 8], higher_is_better=higher)
    pick = max if higher else min
    for k, value in zip(found.budget, found.expected, strict=True):
        assert value == pytest.approx(np.mean([pick(part) for part in combinations(SCORES, k)]), abs=1e-12)
    assert list(found.columns()) == ["budget", "expected", "low", "high"]


def test_lower_is_better_is_the_mirror_image():
    up = expected_best(SCORES, budget=[1, 4], higher_is_better=True)
    down = expected_best([-x for x in SCORES], budget=[1, 4], higher_is_better=False)
    np.testing.assert_allclose(down.expected, -up.expected)
    np.testing.assert_allclose(down.low, -up.high)
    np.testing.assert_allclose(down.high, -up.low)


def test_more_trials_than_there_are_have_limits_and_no_estimate():
    with pytest.warns(CurvewiseWarning, match="above 8, the number of trials"):
        found = expected_best(SCORES, budget=[4, 20])
    assert np.isnan(found.expected[1])
    assert found.low[1] > found.low[0]
    assert found.high[1] > max(SCORES)
    assert json.loads(json.dumps(found.to_dict()))["expected"][1] is None


def test_a_best_possible_score_bounds_the_interval():
    free = expected_best(SCORES, budget=[8])
    bound = expected_best(SCORES, budget=[8], best_possible=0.82)
    assert free.high[0] > 0.82 >= bound.high[0] > 0.80
    with pytest.raises(InputError, match=r"exceeded by a score of 0\.8"):
        expected_best(SCORES, best_possible=0.75)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["beta", "normal", "failed"])
def test_intervals_hold_the_expected_best(kind):
    draw = {
        "beta": lambda r, n: r.beta(1, 3, n),
        "normal": lambda r, n: r.standard_normal(n),
        "failed": lambda r, n: np.where(r.random(n) < 0.3, 0.1, r.beta(8, 3, n)),
    }[kind]
    r, n, budgets = np.random.default_rng(3), 40, [1, 10, 20, 40]
    x = np.sort(draw(r, 400_000))
    u = np.arange(len(x) + 1) / len(x)
    truth = np.array([np.diff(u**k) @ x for k in budgets])
    held = np.zeros(len(budgets))
    for _ in range(100):
        with quietly():  # one search in 200 improves along its order by chance
            found = expected_best(draw(r, n), budgets)
        held += (found.low <= truth) & (truth <= found.high)
    # Of 100 sets of a 95% interval fewer than 86 have a chance of 1 in 2,000.
    assert (held >= 86).all()


def test_hedwig_crosses_at_21_trials(data_dir: Path):
    path = data_dir / "scaling" / "evp" / "hedwig.tsv"
    a = load_trials(path, where={"model_name": "mlp"}, name="MLP")
    b = load_trials(path, where={"model_name": "reg_lstm"}, name="LSTM")
    assert (len(a), len(b), a.higher_is_better) == (145, 152, True)
    found = cw.compare_tuned(a, b, budget=[1, 10, 100])
    assert found.crossing.estimate == 21
    assert 10 <= found.crossing.low <= 14
    assert 38 <= found.crossing.high <= 60
    assert found.overtakes == "LSTM"
    assert list(found.columns()["verdict"]) == ["a better", "a better", "b better"]
    assert "LSTM overtakes MLP from k = 21" in found.summary()


def test_a_learner_that_never_trails_is_not_overtaken():
    r = np.random.default_rng(0)
    good, bad = 0.9 + 0.01 * r.standard_normal(40), 0.5 + 0.01 * r.standard_normal(40)
    found = cw.compare_tuned(bad, good)
    assert np.isinf(found.crossing.estimate)
    assert found.overtakes == "a"
    assert set(found.verdicts) == {"b better"}
    assert "does not overtake" in found.summary()
    mirrored = cw.compare_tuned(-good, -bad, higher_is_better=False)
    assert set(mirrored.verdicts) == {"a better"}
    assert (mirrored.low > 0).all()


def test_a_comparison_beyond_the_smaller_search_is_refused():
    with pytest.raises(InputError, match="more than the 5 trials of the smaller search"):
        cw.compare_tuned(SCORES, SCORES[:5], budget=6)


def test_an_adaptive_search_is_noticed_by_its_rise():
    r = np.random.default_rng(0)
    rising = np.linspace(0, 1, 60) + 0.3 * r.standard_normal(60)
    with pytest.warns(CurvewiseWarning, match="improve along the search"):
        expected_best(rising)
    # A loss that falls is the same; one that rises and scores that were sorted are not.
    with pytest.warns(CurvewiseWarning, match="improve along the search"):
        expected_best(-rising, higher_is_better=False)
    assert not expected_best(-rising).warnings
    assert not expected_best(np.sort(rising)).warnings
    assert not expected_best(r.permutation(rising)).warnings


def test_failed_trials_are_left_out_and_said():
    with pytest.warns(CurvewiseWarning, match="1 trial of 9 ended without a score"):
        found = expected_best([*SCORES, float("nan")], budget=1)
    assert found.expected[0] == pytest.approx(np.mean(SCORES))


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        ([0.5], {}, "at least 2"),
        ([[0.5, 0.6]], {}, "one score for each trial"),
        ([0.5, float("inf")], {}, "infinite"),
        (SCORES, {"budget": 0}, "whole number of trials"),
        (SCORES, {"budget": [1.5]}, "whole number of trials"),
        (SCORES, {"level": 1.0}, "between 0 and 1"),
        (SCORES, {"best_possible": "high"}, "best_possible must hold numbers"),
        (SCORES, {"best_possible": float("nan")}, "must be a number"),
        (SCORES, {"metric": "f1"}, "is for tables"),
        (load_trials({"f1": SCORES, "accuracy": SCORES}, metric="f1"), {"metric": "accuracy"}, "been read already"),
        (load_trials(SCORES), {"where": {"model": "mlp"}}, "been read already"),
        ({"value": SCORES}, {}, "does not say whether higher is better"),
        ({"loss": SCORES, "accuracy": SCORES}, {}, "could all be"),
        ({"accuracy": SCORES}, {"higher_is_better": False}, "contradicts"),
        ({"accuracy": SCORES}, {"metric": "f2"}, "no such column"),
    ],
)
def test_bad_input_is_refused_with_a_reason(scores, options, message):
    with pytest.raises(InputError, match=message):
        expected_best(scores, **options)
