"""``curvewise evals score|compare|rank|plan``: the answers of Python, options and exit statuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import curvewise as cw


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Write answers of three models to 60 questions, four samples of each: c is much better than a and b."""
    rng = np.random.default_rng(1)
    easy = rng.random(60)
    rows = ["model,question,sample,score"]
    for model, power in (("a", 1.0), ("b", 1.05), ("c", 0.2)):
        for q in range(60):
            rows += [f"{model},q{q},{k},{int(rng.random() < easy[q] ** power)}" for k in range(4)]
    path = tmp_path / "answers.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def test_commands_answer_as_the_functions_do(call, log) -> None:
    e = cw.load_evals(log)
    scored = call("evals", "score", log, "--json").document
    assert scored["scores"] == cw.score_evals(e).scores.tolist()
    assert scored["low"] == cw.score_evals(e).low.tolist()
    compared = call("evals", "compare", log, "--a", "a", "--b", "c", "--json").document
    wanted = cw.compare_evals(e, "a", "c")
    assert (compared["verdict"], compared["pvalue"]) == (wanted.verdict, wanted.pvalue)
    assert compared["difference"]["low"] == wanted.difference.low
    ranked = call("evals", "rank", log, "--json").document
    assert ranked["models"] == list(cw.rank_models(e).models)
    assert ranked["pairs"]["pvalue_holm"] == cw.rank_models(e).pairs()["pvalue_holm"].tolist()
    planned = call("evals", "plan", log, "--a", "a", "--b", "b", "--difference", "0.05", "--json").document
    assert planned["questions"] == cw.plan_evals(0.05, pilot=e, a="a", b="b").questions


def test_pass_at_k_is_an_option_of_its_own(call, log) -> None:
    e = cw.load_evals(log)
    for option, metric in (("--pass-at", "pass@2"), ("--pass-hat", "pass^2")):
        scored = call("evals", "score", log, option, "2", "--json").document
        assert scored["metric"] == metric
        assert scored["scores"] == cw.score_evals(e, metric).scores.tolist()
        compared = call("evals", "compare", log, "--a", "a", "--b", "c", option, "2", "--json").document
        assert compared["difference"]["estimate"] == cw.compare_evals(e, "a", "c", metric).difference.estimate
        ranked = call("evals", "rank", log, option, "2", "--json").document
        assert ranked["scores"] == cw.rank_models(e, metric).scores.tolist()
    several = call("evals", "score", log, "--pass-hat", "1,2,4", "--json").document
    assert several["k"] == [1, 2, 4]
    assert several["scores"][2][1] == cw.score_evals(e, "pass^2").scores[2]
    assert call("evals", "score", log, "--pass-hat", "1", "--pass-at", "2").code == 2
    assert call("evals", "score", log, "--pass-hat", "0").code == 2
    assert call("evals", "rank", log, "--pass-hat", "1,2").code == 2
    many = call("evals", "score", log, "--pass-hat", "9")
    assert many.code == 1
    assert "The largest k that these logs allow is 4" in many.err
    named = call("evals", "score", log, "--metric", "pass@2")
    assert named.code == 1
    assert "--pass-at 2" in named.err


def test_a_comparison_is_a_gate(call, log) -> None:
    worse = ("evals", "compare", log, "--a", "a", "--b", "c", "--fail-if")
    assert call(*worse, "worse").code == 3
    assert call(*worse, "better").code == 0
    assert call(*worse, "undecided").code == 0
    assert call(*worse, "maybe-worse").code == 3
    # Worse, but by less than the margin.
    assert call("evals", "compare", log, "--a", "a", "--b", "c", "--margin", "0.5", "--fail-if", "worse").code == 0
    assert call("evals", "compare", log, "--a", "a", "--b", "c", "--margin", "0.5", "--fail-if", "equivalent").code == 3
    nobody = call("evals", "compare", log, "--model", "a", "--model", "b", "--fail-if", "worse")
    assert nobody.code == 2
    assert "name it with --a" in nobody.err
    assert call("evals", "compare", log, "--model", "a", "--model", "b", "--fail-if", "undecided").code == 3


def test_models_are_named_or_asked_for(call, log) -> None:
    which = call("evals", "compare", log)
    assert which.code == 2
    assert "name two with --a and --b" in which.err
    assert "curvewise evals rank" in which.err
    wrong = call("evals", "compare", log, "--a", "a", "--b", "d")
    assert wrong.code == 2
    assert "There are 'a', 'b', 'c'" in wrong.err
    assert call("evals", "compare", log, "--a", "a", "--b", "a").code == 2
    assert "a minus c" in call("evals", "compare", log, "--a", "a", "--b", "[c]").out
    assert call("evals", "compare", log, "--a", "a", "--b", "*").code == 2
    only = call("evals", "compare", log, "--model", "a", "--model", "b", "--a", "b")
    assert "b minus a" in only.out
    one = call("evals", "compare", log, "--model", "a")
    assert one.code == 2
    assert "a comparison needs two" in one.err
    renamed = call("evals", "score", f"new={log}")
    assert renamed.code == 1
    assert "'new' is given as the name of logs of 3 models" in renamed.err
    assert "--model new=a" in renamed.err


def test_tables_fit_a_terminal_and_paste(call, log) -> None:
    done = call("evals", "rank", log, "--pairs", "--questions")
    assert done.code == 0
    assert max(map(len, done.out.partition("Pairs")[0].splitlines())) <= 80
    assert "a − b" in done.out
    assert "adjusted p" in done.out
    assert "discrimination" in done.out
    table = call("evals", "rank", log, "--table", "markdown").out
    assert [line.split("|")[1].strip() for line in table.splitlines()[2:5]] == ["c", "a", "b"]
    assert "3 models, 60 questions × 4 samples" in call("evals", "score", log).out
    assert "| questions |" in call("evals", "score", log, "--table", "markdown").out
    # The scores and their difference are written in the same decimals.
    said = call("evals", "compare", log, "--a", "a", "--b", "b").out
    assert "points [" in said


def test_plans_from_numbers_and_budgets(call) -> None:
    known = ("--question-variance", "0.05", "--sampling-variance", "0.15")
    done = call("evals", "plan", "--difference", "0.03", *known, "--samples", "5,1", "--json").document
    wanted = cw.plan_evals(0.03, question_variance=0.05, sampling_variance=0.15, samples=(5, 1))
    assert done["questions"] == wanted.questions
    text = call("evals", "plan", "--difference", "0.03", *known, "--looks", "3").out
    assert "true difference" in text
    assert "3%" in text
    budget = call("evals", "plan", "--budget", "5000", "--question-cost", "3", "--sample-cost", "0.1", *known)
    assert "within the budget" in budget.out
    assert "detectable" in budget.out
    assert "Which" not in call("evals", "plan", "--questions", "500", *known).err
    nothing = call("evals", "plan", "--difference", "0.03")
    assert nothing.code == 2
    assert "--question-variance" in nothing.err
    asked = call("evals", "plan", *known)
    assert asked.code == 1
    assert "--difference" in asked.err
    assert call("evals", "plan", "--difference", "0.03", "--samples", "1,2,3", *known).code == 2
    assert call("evals", "plan", "--difference", "0.03", "--pass-at", "2", *known).code == 2


def test_a_pilot_with_one_sample_plans_no_further_samples(call, tmp_path) -> None:
    rng = np.random.default_rng(0)
    marks = {m: {f"q{i}": [int(rng.random() < p)] for i in range(50)} for m, p in (("a", 0.5), ("b", 0.7))}
    for model, each in marks.items():
        (tmp_path / f"{model}.json").write_text(json.dumps(each))
    done = call("evals", "plan", tmp_path, "--difference", "0.1")
    assert "the gain of further samples is not known" in done.out
    assert len([line for line in done.out.splitlines() if line.strip()[:1].isdigit()]) == 2  # a row, and the sentence


@pytest.mark.parametrize(
    "words",
    [
        ("score",),
        ("score", "--pass-hat", "1,2,3,4"),
        ("compare", "--a", "a", "--b", "c", "--what", "difference"),
        ("rank", "--what", "questions"),
        ("plan", "--a", "a", "--b", "b", "--difference", "0.05"),
        ("plan", "--a", "a", "--b", "b", "--difference", "0.05", "--what", "power"),
    ],
)
def test_every_answer_has_a_picture(call, log, tmp_path, words) -> None:
    picture = tmp_path / "picture.png"
    done = call("evals", words[0], log, *words[1:], "--plot", picture)
    assert done.code == 0
    assert picture.read_bytes()[:4] == b"\x89PNG"


def test_real_trials_of_an_agent(call, data_dir) -> None:
    folder = data_dir / "evals" / "tau-bench"
    if not folder.is_dir():
        pytest.skip("no tau-bench trials among the data")
    found = call("evals", "score", folder, "--pass-hat", "1,2,3,4", "--json").document
    assert [round(v, 3) for v in found["scores"][0]] == [0.42, 0.273, 0.22, 0.2]
    assert [round(v, 4) for v in found["standard_errors"][0]] == [0.0522, 0.0555, 0.0565, 0.0571]
