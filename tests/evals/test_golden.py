"""Published evaluations: figures that their authors printed, from their own logs."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from scipy import stats

import curvewise as cw
from curvewise.evals import Evals, question_scores

quiet = pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")


@pytest.fixture(scope="module")
def folder(data_dir):
    found = data_dir / "evals"
    if not found.is_dir():
        pytest.skip(f"no evaluation logs at {found}")
    return found


@pytest.fixture(scope="module")
def airline(folder):
    rows = json.loads((folder / "tau-bench" / "gpt-4o-airline.json").read_text())
    scores = np.full((1, 50, 4), np.nan)
    for row in rows:
        scores[0, row["task_id"], row["trial"]] = row["reward"]
    return Evals(scores, ("gpt-4o",), np.arange(50))


@pytest.fixture(scope="module")
def cruxeval(folder):
    """Ten samples of 800 questions at temperature 0.8, and the figures in the files."""
    names, scores, printed = [], [], []
    for path in sorted((folder / "cruxeval").glob("*_temp0.8_output.json")):
        record = json.loads(path.read_text())
        marks = record["raw_scored_generations"]
        if min(map(len, marks.values())) < 10:
            continue
        names.append(path.name.removesuffix("_temp0.8_output.json"))
        scores.append([[float(x) for x in marks[f"sample_{i}"]] for i in range(800)])
        printed.append((record["pass_at_1"], record["pass_at_5"]))
    return Evals(np.array(scores), tuple(names), np.arange(800)), np.array(printed)


@pytest.fixture(scope="module")
def alpaca(folder):
    by_model: dict[str, dict[str, float]] = {}
    with (folder / "alpaca_eval" / "preferences.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            by_model.setdefault(row["model"], {})[row["question"]] = 100 * (float(row["preference"]) - 1)
    questions = sorted(set.intersection(*(set(scores) for scores in by_model.values())))
    scores = np.array([[own[q] for q in questions] for own in by_model.values()])
    return Evals(scores, tuple(by_model), np.array(questions), range=(0, 100))


@pytest.mark.parametrize(
    ("k", "score", "error"), [(1, 0.420, 0.0522), (2, 0.273, 0.0555), (3, 0.220, 0.0565), (4, 0.200, 0.0571)]
)
def test_tau_bench_pass_hat_k(airline, k, score, error):
    s = cw.score_evals(airline, f"pass^{k}")
    assert s.scores[0] == pytest.approx(score, abs=0.0005)
    assert s.standard_errors[0] == pytest.approx(error, abs=0.00006)
    assert s.low[0] < score < s.high[0]


def test_cruxeval_pass_at_k_is_that_of_the_files(cruxeval):
    e, printed = cruxeval
    assert len(e.models) >= 20
    for column, metric in enumerate(("pass@1", "pass@5")):
        s = cw.score_evals(e, metric)
        assert 100 * s.scores == pytest.approx(printed[:, column], abs=1e-6)


def test_alpaca_eval_is_its_leaderboard(alpaca, folder):
    s = cw.score_evals(alpaca)
    for name, score, error in (("claude-2.1", 15.733507, 1.120316), ("gemma-7b-it", 6.937294, 0.786967)):
        m = alpaca.models.index(name)
        assert (s.scores[m], s.standard_errors[m]) == pytest.approx((score, error), abs=2e-6)
    with (folder / "alpaca_eval" / "leaderboard.csv").open(newline="") as file:
        board = {row[""]: (float(row["win_rate"]), float(row["standard_error"])) for row in csv.DictReader(file)}
    for m, name in enumerate(alpaca.models):
        if name in board:
            assert (s.scores[m], s.standard_errors[m]) == pytest.approx(board[name], rel=1e-4), name


def test_alpaca_eval_pairs_are_paired_t_tests(alpaca):
    one, two = alpaca.models[:2]
    c = cw.compare_evals(alpaca, one, two)
    theirs = stats.ttest_rel(alpaca.scores[0, :, 0], alpaca.scores[1, :, 0])
    assert c.pvalue == pytest.approx(theirs.pvalue)
    assert tuple(c.difference)[1:] == pytest.approx(tuple(theirs.confidence_interval()))


@quiet
def test_a_leaderboard_of_cruxeval(cruxeval):
    e, _ = cruxeval
    r = cw.rank_models(e, "pass@1")
    assert r.scores[0] == r.scores.max()
    # A pair in the table is the paired t test of 800 question means.
    table = r.pair_columns()
    i = int(np.argmax(table["pvalue"] < 1))
    a, b = (question_scores(e).values[e.models.index(table[side][i])] for side in "ab")
    assert table["pvalue"][i] == pytest.approx(stats.ttest_rel(a, b).pvalue, rel=1e-6)
    assert 1 < len(r.groups) < len(e.models)
    # More questions make the difference smaller than the leader's lead: what the plan says of its own pilot.
    plan = cw.plan_evals(pilot=e, a=r.models[0], b=r.models[1])
    error = cw.compare_evals(e, r.models[0], r.models[1]).standard_error
    assert plan.detectable == pytest.approx(2.8016 * error, rel=0.01)


def test_inspect_has_this_standard_error_and_no_interval(folder):
    (path,) = (folder / "inspect").glob("2025-02-11T15-18-04*.eval")
    found = cw.score_evals(cw.load_evals(path))
    assert found.scores[0] == pytest.approx(0.8)
    assert found.standard_errors[0] == pytest.approx(0.13333333333333333)
    wilson = stats.binomtest(8, 10).proportion_ci(method="wilson")
    assert (found.low[0], found.high[0]) == pytest.approx((wilson.low, wilson.high))
