"""Scores of rankings beside accuracies."""

from __future__ import annotations

import numpy as np
import pytest

from curvewise.errors import InputError
from curvewise.ranking.judgement import add_rankings
from curvewise.ranking.load import CheckpointScores
from curvewise.ranking.measure import RankingMeasure
from curvewise.ranking.rank import CheckpointRanking, rank_features


def separation(features: np.ndarray, labels: np.ndarray) -> float:
    return float(abs(features[labels == 1].mean() - features[labels == 0].mean()))


MEASURE = RankingMeasure("separation", separation, "", "", "", flops=lambda n, d, c: 2e9 * n)


def ranked(names: str, seed: int = 0) -> CheckpointRanking:
    rng, labels = np.random.default_rng(seed), np.repeat([0, 1], 30)
    pool = {name: labels[:, None] * (i + 1.0) + rng.normal(size=(60, 3)) for i, name in enumerate(names)}
    return rank_features(pool, labels, MEASURE, reliability=0.8)


def table() -> CheckpointScores:
    return CheckpointScores(
        [*"abc", "scratch"] * 2, np.linspace(0.5, 0.9, 8), tasks=["pets"] * 4 + ["cars"] * 4, reference=("scratch",)
    )


def test_scores_go_to_their_checkpoint_and_task() -> None:
    rankings = {"cars": ranked("cab"), "pets": ranked("abc", 1)}
    found = add_rankings(table(), rankings)
    for task, name, score in zip(found.tasks, found.checkpoints, found.scores["separation"], strict=True):
        own = rankings[str(task)]
        if name == "scratch":
            assert np.isnan(score)
        else:
            assert score == own.scores["separation"][own.checkpoints.index(name)]
    np.testing.assert_array_equal(found.gflops["separation"][found.ranked], 120.0)


def test_what_was_not_ranked_is_unknown() -> None:
    found = add_rankings(table(), {"cars": ranked("ab")})
    assert np.isfinite(found.scores["separation"]).tolist() == [False] * 4 + [True] * 2 + [False] * 2


def test_names_must_agree() -> None:
    with pytest.raises(InputError, match="the table has 2 tasks"):
        add_rankings(table(), ranked("ab"))
    with pytest.raises(InputError, match="task 'dogs', which is none of"):
        add_rankings(table(), {"dogs": ranked("ab")})
    with pytest.raises(InputError, match="checkpoint 'z', which the table does not"):
        add_rankings(table(), {"cars": ranked("az")})
    with pytest.raises(InputError, match="rankings is empty"):
        add_rankings(table(), {})
