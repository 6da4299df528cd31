"""Leaderboards: ranks and groups by their definition, questions that decide nothing, error rates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import curvewise as cw
from curvewise.errors import InputError
from curvewise.evals import Evals
from curvewise.evals.rank import _tie_bars
from curvewise.stats import holm

quiet = pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")
NAMES = tuple("abcdefgh")


@pytest.fixture(scope="module")
def board():
    rng = np.random.default_rng(0)
    hard, skill = rng.normal(0, 1.5, 300), np.array([0.0, 0.1, 0.2, 1.0, 1.1, 2.0])
    scores = rng.random((6, 300)) < 1 / (1 + np.exp(hard - skill[:, None]))
    scores[:, :4] = True
    scores[:, 4:7] = False
    return Evals(scores.astype(float), NAMES[:6], np.array([f"q{i}" for i in range(300)]))


def test_tables_have_the_promised_columns(board):
    r = cw.rank_models(board)
    assert list(r.columns()) == ["model", "score", "low", "high", "rank", "rank_low", "rank_high", "group"]
    assert list(r.pair_columns()) == ["a", "b", "difference", "low", "high", "pvalue", "pvalue_holm"]
    assert len(r.pair_columns()["a"]) == 15
    assert (np.diff(r.scores) <= 0).all()
    assert (r.pair_columns()["difference"] >= 0).all()  # the better one first


def test_frames(board):
    pytest.importorskip("pandas")
    r = cw.rank_models(board)
    assert list(r.pairs().columns) == list(r.pair_columns())
    assert r.frame()["model"].tolist() == list(r.models)


def test_pairs_are_comparisons_and_ranks_follow_from_them(board):
    r = cw.rank_models(board)
    table = r.pair_columns()
    for i in (0, 7, 14):
        c = cw.compare_evals(board, table["a"][i], table["b"][i])
        assert tuple(c.difference) == pytest.approx((table["difference"][i], table["low"][i], table["high"][i]))
        assert table["pvalue"][i] == pytest.approx(c.pvalue)
    assert table["pvalue_holm"] == pytest.approx(holm(table["pvalue"]))
    real = table["pvalue_holm"] < 0.05
    for m, name in enumerate(r.models):
        assert r.rank_low[m] == 1 + sum(real & (table["b"] == name))
        assert r.rank_high[m] == 6 - sum(real & (table["a"] == name))
    assert r.significant == real.sum()
    assert r.contenders == tuple(n for n, low in zip(r.models, r.rank_low, strict=True) if low == 1)
    scored = cw.score_evals(board)
    assert r.low.tolist() == [scored.interval(m).low for m in r.models]


def test_groups_hold_models_that_do_not_differ(board):
    r = cw.rank_models(board)
    table = r.pair_columns()
    apart = {(a, b) for a, b, p in zip(table["a"], table["b"], table["pvalue_holm"], strict=True) if p < 0.05}
    for group in r.groups:
        assert not any((a, b) in apart for a in group for b in group)
    assert {m for group in r.groups for m in group} == set(r.models)
    for m, label in zip(r.models, r.group, strict=True):
        first, _, last = label.partition("–")
        own = [k for k, group in enumerate(r.groups, 1) if m in group]
        assert own == list(range(int(first), int(last or first) + 1))


@pytest.mark.parametrize(
    ("pairs", "bars"),
    [
        ([], [(0, 3)]),
        ([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], [(0, 0), (1, 1), (2, 2), (3, 3)]),
        ([(0, 3)], [(0, 2), (1, 3)]),
        ([(0, 2), (0, 3), (1, 3)], [(0, 1), (1, 2), (2, 3)]),
        ([(1, 2)], [(0, 1), (2, 3)]),  # 0 does not differ from 3, but 1 and 2 lie between
    ],
)
def test_tie_bars(pairs, bars):
    apart = np.zeros((4, 4), dtype=bool)
    for pair in pairs:
        apart[pair] = True
    assert _tie_bars(apart) == bars


def test_questions_that_all_or_none_solve_and_their_discrimination(board):
    r = cw.rank_models(board)
    right = board.scores[:, :, 0]
    assert set(r.solved_by_all) == set(board.questions[right.all(axis=0)]) >= {"q0", "q1", "q2", "q3"}
    assert set(r.solved_by_none) == set(board.questions[~right.any(axis=0)]) >= {"q4", "q5", "q6"}
    i = int(np.flatnonzero(np.ptp(right, axis=0))[0])
    rest = np.delete(right, i, axis=1).mean(axis=1)
    assert r.discrimination[i] == pytest.approx(stats.pearsonr(right[:, i], rest).statistic)
    assert np.isnan(r.discrimination[0])
    assert r.question_columns()["question"][0] == "q0"
    assert "solved by all models and" in r.sentences()


def test_equal_scores_share_a_rank_and_losses_are_ranked_from_below():
    rng = np.random.default_rng(1)
    base = rng.normal(2, 0.5, 60)
    scores = np.stack([base + 1, base + 0.001 * rng.normal(size=60), base[::-1] + 1])
    r = cw.rank_models(Evals(scores, NAMES[:3], np.arange(60), range=(-np.inf, np.inf), higher_is_better=False))
    assert r.models[0] == "b"
    assert r.rank.tolist() == [1, 2, 2]
    assert r.rank_low.tolist() == [1, 2, 2]
    assert r.rank_high.tolist() == [1, 3, 3]


def test_a_table_to_paste(board):
    lines = cw.rank_models(board).table().splitlines()
    assert lines[0].split("|")[1:5] == [" model ", *(x for x in lines[0].split("|")[2:5])]
    assert "**" in lines[2]
    assert "[1, " in lines[2]
    assert repr(cw.rank_models(board)).startswith("ModelRanking(6 models on 300 questions, best='f'")


def test_samples_pass_k_tasks_and_seeds_rank_as_well():
    rng = np.random.default_rng(2)
    scores = (rng.random((3, 40, 4)) < np.array([0.8, 0.5, 0.5])[:, None, None]).astype(float)
    e = Evals(scores, NAMES[:3], np.arange(40), tasks=np.repeat(["x", "y"], 20))
    assert cw.rank_models(e, "pass^2").metric == "pass^2"
    assert cw.rank_models(e, average="tasks").average == "tasks"
    seeded = Evals(scores, NAMES[:3], np.arange(40), seeds=np.tile(list("0123"), (3, 1)))
    r = cw.rank_models(seeded)
    c = cw.compare_evals(seeded, r.models[0], r.models[1])
    assert r.pair_columns()["pvalue"][0] == pytest.approx(c.pvalue)


def test_one_model_is_no_ranking():
    with pytest.raises(InputError, match=r"one model, 'a'.*score_evals"):
        cw.rank_models(Evals(np.eye(12)[:1], ("a",), np.arange(12)))


@pytest.mark.slow
@quiet
def test_intervals_of_ranks_hold_together():
    """A short version of ``benchmarks/evals_coverage.py ranks``: equal models share all of their ranks."""
    rng = np.random.default_rng(3)
    skill = np.repeat([0.0, 0.6], 4)
    better, worse = (skill[:, None] > skill).sum(axis=0), (skill[:, None] < skill).sum(axis=0)
    held = 0
    for _ in range(150):
        hard = rng.normal(0, 1.5, (1, 200)) + rng.normal(0, 0.7, (8, 200))
        e = Evals((rng.random((8, 200)) < 1 / (1 + np.exp(hard - skill[:, None]))).astype(float), NAMES, np.arange(200))
        r = cw.rank_models(e)
        place = np.array([NAMES.index(m) for m in r.models])
        held += bool(((r.rank_low <= 1 + better[place]) & (r.rank_high >= 8 - worse[place])).all())
    assert held >= 0.93 * 150


def test_questions_without_an_error_are_solved_by_all():
    scores = np.zeros((3, 30))
    scores[:, :5], scores[1:, 5:20], scores[2, 5:25] = 1, 1, 1
    errors = cw.rank_models(Evals(scores, NAMES[:3], np.arange(30), higher_is_better=False))
    right = cw.rank_models(Evals(1 - scores, NAMES[:3], np.arange(30)))
    assert len(errors.solved_by_none) == 5
    assert (errors.solved_by_all, errors.solved_by_none) == (right.solved_by_all, right.solved_by_none)
    assert (errors.models, errors.rank_low.tolist()) == (right.models, right.rank_low.tolist())


def test_the_discrimination_of_a_question_is_no_percentage(board):
    from curvewise.text import readable_columns

    table = readable_columns(cw.rank_models(board).question_columns(), "fraction")
    assert not any(cell.text.endswith("%") for cell in table["discrimination"])
    assert all(cell.text.endswith("%") for cell in table["score"])


def test_a_leaderboard_is_told_in_plain_words() -> None:
    rng = np.random.default_rng(0)
    e = Evals(rng.random((3, 400)) < np.array([[0.9], [0.88], [0.6]]), ("a", "b", "c"), np.arange(400))
    text = cw.rank_models(e).sentences()
    assert text.startswith("b has the best mean score of 3 models on 400 questions: ")
    assert "a is not significantly worse than any model, and may be the best, too." in text
