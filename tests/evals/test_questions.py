"""One score for each question: pass@k and pass^k against enumeration, their noise against simulation."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curvewise.errors import InputError
from curvewise.evals import Evals, question_scores
from curvewise.evals.questions import QuestionMetric, parse_metric, question_design


def one(samples, **fields):
    return Evals(np.asarray([samples], dtype=float), ("a",), np.arange(len(samples)), **fields)


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.data())
def test_pass_k_is_the_share_of_subsets(answers, data):
    k = data.draw(st.integers(1, len(answers)))
    subsets = list(combinations(answers, k))
    e = one([answers, answers])
    assert question_scores(e, f"pass@{k}").values[0, 0] == pytest.approx(np.mean([any(s) for s in subsets]))
    assert question_scores(e, f"pass^{k}").values[0, 0] == pytest.approx(np.mean([all(s) for s in subsets]))


def test_pass_at_k_is_the_published_estimator():
    """1 − C(n − c, k)/C(n, k) of Chen et al. (2021), with ragged samples."""
    scores = np.full((3, 10), np.nan)
    for i, (n, c) in enumerate(((10, 3), (6, 0), (7, 6))):
        scores[i, :n] = np.arange(n) < c
    found = question_scores(one(scores), "pass@5").values[0]
    assert found == pytest.approx([1 - comb(7, 5) / comb(10, 5), 0.0, 1.0])


def test_means_of_ragged_samples():
    e = one([[1, 0, np.nan], [1, 1, 1], [0, np.nan, np.nan]])
    q = question_scores(e)
    assert q.values[0].tolist() == [0.5, 1.0, 0.0]
    assert q.noise[0, :2].tolist() == [0.25, 0.0]  # s²/n
    assert np.isnan(q.noise[0, 2])
    assert q.samples[0].tolist() == [2, 3, 1]
    assert q.sampling_variance[0] == pytest.approx(0.25)  # mean of s² = .5 and 0


@pytest.mark.parametrize("metric", ["pass@2", "pass^3", "mean", "pass^1"])
def test_the_noise_is_unbiased_with_enough_samples(metric):
    rng = np.random.default_rng(0)
    p, n = 0.7, 6
    scores = (rng.random((40_000, n)) < p).astype(float)
    q = question_scores(one(scores), metric)
    assert float(q.noise.mean()) == pytest.approx(float(q.values.var()), rel=0.03)


def test_the_noise_with_fewer_than_2k_samples_is_neither_zero_nor_far_off():
    rng = np.random.default_rng(1)
    scores = (rng.random((40_000, 5)) < 0.8).astype(float)
    q = question_scores(one(scores), "pass^4")
    assert (q.noise > 0).all()
    assert float(q.noise.mean()) == pytest.approx(float(q.values.var()), rel=0.3)


def test_seeds_are_scored_apart_and_averaged():
    e = one([[1, 1, 0, 0], [1, 0, 1, 1]], seeds=np.array([["s", "s", "t", "t"]]))
    q = question_scores(e)
    assert q.seeds[0].tolist() == [[1.0, 0.5], [0.0, 1.0]]
    assert q.values[0].tolist() == [0.5, 0.75]
    assert q.noise[0].tolist() == [0.0, (0.25 + 0.0) / 4]
    # pass^2 of each seed: two right, none right; then the mean of seeds.
    assert question_scores(e, "pass^2").values[0].tolist() == [0.5, 0.5]
    with pytest.raises(InputError, match=r"needs 3 samples.*has 2 by seed 's'.*largest k .* is 2"):
        question_scores(e, "pass^3")


def test_a_seed_that_lacks_a_question():
    e = one([[1, 1], [1, np.nan]], seeds=np.array([["s", "t"]]))
    with pytest.raises(InputError, match="no sample by seed 't' of '1'"):
        question_scores(e)


def test_metrics_that_make_no_sense():
    assert parse_metric("pass@10") == QuestionMetric("pass@", 10)
    for metric in ("pass", "pass@0", "pass@k", "accuracy", "pass%3"):
        with pytest.raises(InputError, match="is not known: use 'mean'"):
            question_scores(one([[1, 0]]), metric)
    with pytest.raises(InputError, match="not all 0 or 1"):
        question_scores(one([[0.5, 0.2]]), "pass@1")
    with pytest.raises(InputError, match=r"needs 5 samples of each question; 'a' has 2"):
        question_scores(one([[1, 0]]), "pass@5")


def test_averages_over_tasks():
    e = one([[1], [0], [1]], tasks=np.array(["x", "x", "y"]))
    assert question_design(e).weights.tolist() == pytest.approx([1 / 3] * 3)
    assert question_design(e, "tasks").weights.tolist() == [0.25, 0.25, 0.5]
    assert question_design(e, {"x": 3, "y": 1}).weights.tolist() == [0.375, 0.375, 0.25]
    for average, text in (
        ("macro", "is not known"),
        ({"x": 1}, "'y' is in only one"),
        ({"x": 1, "y": 0}, "above 0"),
        ({"x": 1, "y": np.nan}, "above 0"),
    ):
        with pytest.raises(InputError, match=text):
            question_design(e, average)
    with pytest.raises(InputError, match="needs the task"):
        question_design(one([[1], [0]]), "tasks")
