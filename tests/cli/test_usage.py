"""Calls that cannot work: one sentence that names the option, nothing on stdout, the right exit status."""

from __future__ import annotations

import io
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

ROWS = [
    (learner, n, fold, level * n**-0.3 + 0.001 * fold)
    for learner, level in (("A", 0.5), ("B", 0.6))
    for n in (50, 100, 200, 400)
    for fold in range(3)
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a file of each kind, which is the current one."""
    lines = ["learner,n,fold,error", *(",".join(map(str, row)) for row in ROWS)]
    (tmp_path / "errors.csv").write_text("\n".join(lines))
    runs = [f"{params},{tokens},{1.7 + params**-0.3:.4f}" for params in (1e7, 1e8, 3e8) for tokens in (1e9, 1e10)]
    (tmp_path / "runs.csv").write_text("\n".join(["params,tokens,loss", *runs]))
    trials = [f"{model},{0.01 * i},{0.5 + 0.01 * i}" for model in "ab" for i in range(8)]
    (tmp_path / "trials.csv").write_text("\n".join(["model,rate,f1", *trials]))
    scores = [f"{model},{i},{i % 2}" for model in "ab" for i in range(20)]
    (tmp_path / "scores.csv").write_text("\n".join(["model,question,score", *scores]))
    labels = np.arange(60) % 3
    predictions = [(labels + (np.arange(60) % (5 + i) == 0)) % 3 for i in range(4)]
    np.savez(tmp_path / "p.npz", preds=np.array(predictions), labels=labels)
    np.savez(tmp_path / "q.npz", preds=np.array(predictions), labels=labels)
    (tmp_path / "empty.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("learning fit errors.csv errors.csv", "errors.csv is given twice"),
        ("learning fit errors.csv --at inf", "--at"),
        ("learning fit errors.csv --level 99", "Must be between 0 and 1: 0.99 for 99%"),
        ("learning fit errors.csv --cost-per-sample -1", "--cost-per-sample"),
        ("learning fit errors.csv --json --table latex", "give one of them"),
        ("learning stability errors.csv --learner A --seed -1", "--seed"),
        ("learning check errors.csv --seed -1", "--seed"),
        ("learning compare errors.csv --b C", "--b 'C' is not among the learners"),
        ("scaling compare runs.csv runs.csv", "runs.csv is given twice"),
        ("scaling downstream runs.csv --task loss,loss --at 1B,1B", "--task takes the name of one task"),
        ("scaling tuned trials.csv a=trials.csv", "has 2 values of 'model'"),
        ("scaling tuned trials.csv --by model --best-possible nan", "--best-possible"),
        ("variance test-sets a=p.npz b=q.npz --pair a,z", "--pair a,z: name two test sets, such as --pair a,b"),
        ("evals score scores.csv --range 5,1", "--range takes the lowest and the highest possible score"),
        ("evals score scores.csv --model =a", "--model '=a' must read NAME=MODEL"),
        (
            "transfer measure errors.csv --method-column learner --scratch B --highlight Z --plot x.png",
            "--highlight 'Z'",
        ),
        ("transfer wins errors.csv errors.csv --key learner", "holds text: losses are numbers"),
        ("transfer images absent.toml", "absent.toml: there is no such file"),
        ("ranking rank empty.toml", "empty.toml lists no checkpoint"),
        ("study new absent/study.toml", "there is no folder absent"),
        ("store export . errors.csv", "already exists"),
    ],
)
def test_wrong_calls_are_refused_before_anything_is_printed(call, folder, command, message):
    done = call(*command.split())
    assert (done.code, done.out) == (2, "")
    assert message in " ".join(done.err.replace("│", " ").split())


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("variance examine p.npz --what pairs --pair 1,9999", "--pair has 9999"),
        ("evals plan --question-variance 0 --sampling-variance 0 --questions 9", "--question-variance and --sampling-"),
        ("store verify errors.csv", "errors.csv is not a folder"),
    ],
)
def test_messages_name_options_and_not_arguments_of_python(call, folder, command, message):
    done = call(*command.split())
    assert done.code == 1
    assert message in " ".join(done.err.split())


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(
    "command", ["learning fit -", "response judge - --gap error --hyperparameter fold --measure n"]
)
def test_stdin_is_read_by_its_content(call, folder, monkeypatch, command, as_json):
    text = (folder / "errors.csv").read_text()
    if as_json:
        text = json.dumps([dict(zip(("learner", "n", "fold", "error"), row, strict=True)) for row in ROWS])
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
    done = call(*command.split(), "--json")
    assert done.code == 0, done.err
    assert done.document


def test_of_two_learners_the_one_that_is_not_named_is_the_other(call, folder):
    named = call("learning", "compare", "errors.csv", "--a", "B", "--json")
    assert (named.document["a"], named.document["b"]) == ("B", "A")
    assert call("learning", "compare", "errors.csv", "--b", "B", "--json").document["a"] == "A"
