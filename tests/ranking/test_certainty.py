"""How sure it is that the best is among the first: closed forms, calibration, references."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t as student

from curvewise.errors import InputError
from curvewise.ranking.rank import RELIABILITY, UNKNOWN, Reliability, as_reliability, best_certainty, find_reliability
from curvewise.ranking.scoring import ScoreReplicates, highest_shares, likely_scores

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "ranking_certainty.py"


@pytest.fixture(scope="module")
def benchmark():
    """The command that the constants come from."""
    made = importlib.util.spec_from_file_location("ranking_certainty", BENCHMARK)
    module = importlib.util.module_from_spec(made)
    sys.modules[made.name] = module
    made.loader.exec_module(module)
    yield module
    del sys.modules[made.name]


@pytest.fixture(scope="module")
def tuned(benchmark, data_dir):
    table = data_dir / "ranking" / "source_model_architectures_table.csv"
    return benchmark.read(table, "Test Accuracy", "True")


@pytest.fixture(scope="module")
def pool(benchmark):
    return benchmark.read_pool(benchmark.ROOT / "examples" / "checkpoints")


@pytest.mark.parametrize("r", [0.0, 0.3, 0.8, -0.5])
def test_two_checkpoints_are_in_order_as_often_as_pairs_of_a_population(r):
    """Of pairs of a bivariate normal distribution 1/2 + asin(r)/π are in order (Sheppard 1899), whatever their scores.

    It was Φ(2r / √(2(1 − r²))), 0.92 for r = 0.7 in the place of 0.75: any two scores are one standard
    deviation of their own from their mean.
    """
    found = best_certainty([3.0, 7.0], reliability=r)
    assert found[1] == pytest.approx(0.5 + np.arcsin(r) / np.pi, abs=0.03)
    assert found.sum() == pytest.approx(1)


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, 5])
def test_stated_certainty_holds_in_small_pools_of_a_population(count):
    rng, r = np.random.default_rng(0), 0.8
    scores = rng.standard_normal((400, count))
    accuracy = r * scores + np.sqrt(1 - r * r) * rng.standard_normal(scores.shape)
    stated = [best_certainty(s, reliability=r)[s.argmax()] for s in scores]
    hits = scores.argmax(axis=1) == accuracy.argmax(axis=1)
    assert np.mean(stated) == pytest.approx(hits.mean(), abs=0.06)


def test_chances_follow_the_reliability():
    scores = np.array([0.1, 0.5, 0.2, 0.9])
    np.testing.assert_allclose(best_certainty(scores, reliability=0.0), 0.25, atol=0.03)
    np.testing.assert_array_equal(best_certainty(scores, reliability=1.0), [0, 0, 0, 1])
    np.testing.assert_array_equal(best_certainty(scores, reliability=-1.0), [1, 0, 0, 0])
    rising = [best_certainty(scores, reliability=r)[3] for r in (0.2, 0.5, 0.8)]
    assert rising == sorted(rising)
    np.testing.assert_allclose(best_certainty([2.0, 2.0], reliability=1.0), 0.5, atol=0.03)
    np.testing.assert_array_equal(best_certainty([2.0], reliability=0.1), [1.0])


def test_scale_and_place_of_scores_do_not_matter():
    scores = np.array([0.1, 0.5, 0.2, 0.9])
    one = best_certainty(scores, reliability=0.6, rng=1)
    np.testing.assert_array_equal(one, best_certainty(1000 * scores - 7, reliability=0.6, rng=1))


def test_a_reliability_that_varies_is_less_certain():
    scores = np.linspace(0, 1, 10)
    sure = best_certainty(scores, reliability=Reliability(2.0, 0.0, 9, ""))
    unsure = best_certainty(scores, reliability=Reliability(2.0, 1.0, 9, ""))
    assert unsure[-3:].sum() < sure[-3:].sum() - 0.02


def test_drawn_correlations_are_the_predictive_distribution():
    found = Reliability(0.8, 0.3, 9, "").draw(40_000, np.random.default_rng(0))
    z = (np.arctanh(found) - 0.8) / (0.3 * np.sqrt(1 + 1 / 9))
    for p in (0.05, 0.5, 0.9):
        assert np.mean(z < student(8).ppf(p)) == pytest.approx(p, abs=0.01)


@pytest.mark.parametrize("wrong", [2, "high", True, -1.5])
def test_a_wrong_reliability_is_named(wrong):
    with pytest.raises(InputError, match="reliability="):
        as_reliability(wrong)


def test_wrong_scores_are_named():
    for wrong in ([], [[1.0, 2.0]], [1.0, np.nan]):
        with pytest.raises(InputError, match="scores"):
            best_certainty(wrong, reliability=0.5)


def test_what_is_said_of_references():
    assert find_reliability("nleep", None) == (RELIABILITY["nleep"], "")
    found, said = find_reliability("of my own", None)
    assert found is UNKNOWN
    assert "cautious correlation" in said
    assert "hardly better than those of a random choice" in find_reliability("leep", None)[1]
    assert find_reliability("of my own", 0.5)[1] == ""
    below = [r.fisher for r in RELIABILITY.values()]
    assert np.mean(np.array(below) < UNKNOWN.fisher) <= 0.3


def test_constants_are_those_of_the_benchmark(benchmark, tuned, pool, data_dir):
    printed = benchmark.constants(tuned, pool, data_dir / "ranking" / "neucrab_tables")
    default = printed.pop("")
    assert printed == RELIABILITY
    assert (default.fisher, default.spread) == (UNKNOWN.fisher, UNKNOWN.spread)


def test_stated_certainty_holds_for_a_target_left_out(benchmark, tuned, pool):
    """Within twice the spread that nine targets leave, for the measures that tell something."""
    for name in ("nleep", "logme", "gbc"):
        for row in benchmark.calibration("architectures", name, tuned[name], pool[name]):
            assert abs(row["stated"] - row["observed"]) < 2 * row["expected spread"], row


def test_stated_certainty_holds_for_segmentation(benchmark, data_dir):
    """17 targets of another kind: not overstated, and told better than these by a little only."""
    table = data_dir / "ranking" / "source_datasets_table.csv"
    other = benchmark.read(table, "Test Mean IoU", None)
    for name in ("nleep", "logme"):
        known = RELIABILITY[name]
        for row in benchmark.calibration("segmentation", name, other[name], given=known):
            over = (row["stated"] - row["observed"]) / row["expected spread"]
            assert -3 < over < 1, row


def test_population_scores_of_two_have_a_closed_form():
    """With differences far beyond the error of sampling nothing is drawn back: Φ(d / error)."""
    rng = np.random.default_rng(0)
    replicates = ScoreReplicates(rng.normal(size=(2000, 2)) + 5 * rng.normal(size=(2000, 1)))
    likely = likely_scores(np.array([0.0, 6.0]), replicates, rng)
    assert np.mean(likely[:, 1] - likely[:, 0]) == pytest.approx(6, abs=0.8)
    assert highest_shares(likely, rng)[1] > 0.995
    tied = highest_shares(likely_scores(np.array([1.0, 1.0]), replicates, rng), rng)
    np.testing.assert_allclose(tied, 0.5, atol=0.04)


def test_population_scores_are_known_where_examples_add_no_error():
    rng = np.random.default_rng(0)
    same = ScoreReplicates(np.repeat(rng.normal(size=(50, 1)), 3, axis=1))
    scores = np.array([1.0, 2.0, 4.0])
    likely = likely_scores(scores, same, rng)
    np.testing.assert_allclose(likely, np.tile(scores - scores.mean(), (len(likely), 1)), atol=1e-6)


@pytest.mark.parametrize("tau", [0.6, 1.0, 2.0])
def test_the_highest_of_the_population_is_found_as_often_as_stated(tau):
    """Pools drawn from a known population, as in benchmarks/ranking_coverage.py."""
    rng = np.random.default_rng(0)
    stated, seen = [], []
    for _ in range(150):
        truth = tau * rng.normal(size=8)
        noise = rng.normal(size=(51, 8)) + 3 * rng.normal(size=(51, 1))
        scores = truth + noise[0]
        likely = likely_scores(scores, ScoreReplicates(noise[1:]), rng, 1000)
        order = np.argsort(-scores)[:3]
        stated.append(highest_shares(likely, rng)[order].sum())
        seen.append(truth.argmax() in order)
    spread = np.sqrt(np.mean(stated) * (1 - np.mean(stated)) / len(stated))
    assert -3 * spread < np.mean(seen) - np.mean(stated) < 0.08 + 3 * spread


@pytest.mark.parametrize("scores", [[0.7, 0.7, 0.7], [1.0, 1.0, 0.5], [0.3, 0.3, 0.1, 0.1]])
def test_equal_scores_without_an_error_are_as_likely_the_highest(scores):
    """Rounding of a rotation decided: one of three equal checkpoints was truly highest with certainty."""
    rng, found = np.random.default_rng(0), np.array(scores)
    replicates = ScoreReplicates(np.tile(found, (50, 1)))
    likely = likely_scores(found, replicates, rng)
    top = found == found.max()
    assert highest_shares(likely, rng) == pytest.approx(top / top.sum(), abs=0.05)
    chances = best_certainty(found, reliability=0.8, likely=likely)
    assert np.ptp(chances[top]) < 0.05
    assert not replicates.errors().any()
