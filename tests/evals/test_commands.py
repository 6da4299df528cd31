"""``curvewise evals show``: what logs hold, and what has to be chosen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import curvewise as cw

LOGS = Path(__file__).parent / "logs"


def test_show_prints_what_is_there(call, harness_log, tmp_path) -> None:
    harness_log("org/one")
    harness_log("org/two")
    done = call("evals", "show", tmp_path)
    assert done.code == 0
    assert "2 models, 1 task" in done.out
    assert "2 models × 3 questions × 1 sample, of the metric exact_match." in done.out
    assert "strict-match" in done.out
    assert "2 × lm-eval samples" in done.err
    assert max(map(len, done.out.splitlines())) <= 80


def test_show_says_what_has_to_be_chosen(call, harness_log) -> None:
    rows = [{"exact_match": 1.0, "f1": 0.5}]
    path = harness_log("one", rows, filters=("strict", "loose"))
    done = call("evals", "show", path)
    assert done.code == 0
    assert "exact_match, f1" in done.out
    assert "strict, loose" in done.out
    assert "A choice is needed: the task 'gsm8k' has 2 metrics" in done.out
    assert "--metric exact_match" in done.out
    chosen = call("evals", "show", path, "--metric", "f1", "--filter", "loose")
    assert "1 model × 1 question × 1 sample, of the metric f1." in chosen.out


def test_show_json_agrees_with_python(call, inspect_log, tmp_path) -> None:
    inspect_log("a.eval", {"1": ["C", "I"], "2": ["C", "C"]}, model="a")
    inspect_log("b.eval", {"1": ["C"]}, model="b")
    inspect_log("c.eval", model="c", status="error")
    found = cw.evals.survey_evals(tmp_path)
    document = call("evals", "show", tmp_path, "--json").document
    assert document["model"] == list(found.model) == ["a", "b"]
    assert (document["questions"], document["samples"], document["missing"]) == ([2, 1], [2, 1], [0, 1])
    assert document["metrics"] == [["match"], ["match"]]
    assert document["evals"] is None
    assert "--missing wrong" in document["problem"]
    assert any("c.eval ended with an error" in w and "--unfinished" in w for w in document["warnings"])
    filled = call("evals", "show", tmp_path, "--json", "--missing", "wrong").document
    assert filled["evals"] == {"models": 2, "questions": 2, "samples": 2}
    assert not any(isinstance(value, float) for value in document.values())


def test_options_are_those_of_python(call, tmp_path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("who,no,points\nx-1,1,3\nx-2,1,5\ny,1,10\n")
    options = ["--column", "model=who", "--column", "question=no", "--column", "score=points", "--range", "1,10"]
    done = call("evals", "show", path, *options, "--model", "x=x-*", "--model", "y")
    assert "2 models × 1 question × 1 to 2 samples, of the metric points." in done.out
    assert call("evals", "show", path, "--range", "1").code == 2
    assert call("evals", "show", path, "--column", "model").code == 2
    assert call("evals", "show", "-").code == 2
    both = call("evals", "show", path, *options[:-2])
    assert "--range 1,10" in both.out
    assert "--range=-inf,inf" in both.out
    assert call("evals", "show", path, *options[:-2], "--range=-inf,inf").code == 0


def test_models_that_are_alike_share_a_row(call, tmp_path) -> None:
    for i in range(9):
        (tmp_path / f"m{i}.json").write_text(json.dumps({"q1": [1, 0], "q2": [1, 1]}))
    done = call("evals", "show", tmp_path)
    assert "9 models: m0, m1, …" in done.out
    assert "m8" in call("evals", "show", tmp_path, "--verbose").out
    table = call("evals", "show", tmp_path, "--table", "markdown")
    assert len([line for line in table.out.splitlines() if line.startswith("|")]) == 11


def test_nothing_to_show_is_a_failure(call, tmp_path) -> None:
    (tmp_path / "notes.csv").write_text("day,text\n1,hello\n")
    done = call("evals", "show", tmp_path)
    assert done.code == 1
    assert "known as the question" in done.err
    assert call("evals", "show", tmp_path / "absent").code == 1


def test_show_real_logs(call, data_dir) -> None:
    folder = data_dir / "evals"
    if not folder.is_dir():
        pytest.skip("no evaluation logs among the data")
    done = call("evals", "show", folder / "inspect")
    assert "unscored" in done.err
    assert "cancelled" in done.err
    assert "the models were not given the same tasks" in done.out
    whole = call("evals", "show", folder)
    assert whole.code == 0
    assert "64 models" in whole.out


def test_files_and_folders_may_be_named(call, harness_log, tmp_path) -> None:
    harness_log("org/one")
    harness_log("org/two", [{"exact_match": v} for v in (0.0, 0.0, 1.0)], results=False)
    words = [f"new={tmp_path / 'org__one'}", f"old={tmp_path}/org__two/samples_*.jsonl"]
    for command in (["show"], ["score"], ["compare"], ["rank"], ["plan"]):
        done = call("evals", *command, *words, "--json")
        assert done.code == 0, done.err
    assert call("evals", "show", *words, "--json").document["model"] == ["new", "old"]
    mixed = call("evals", "show", words[0], tmp_path / "org__two", "--json")
    assert mixed.document["model"] == ["new", "org/two"]
    wide = tmp_path / "wide.csv"
    wide.write_text("question,x,y\n1,0,1\n2,1,1\n")
    assert "--wide models" in call("evals", "rank", wide).err
    assert call("evals", "rank", wide, "--wide", "models", "--json").document["models"] == ["y", "x"]
