"""What is printed on a terminal."""

from __future__ import annotations

import pytest

from curvewise.cli.console import (
    Page,
    UsageError,
    in_options,
    read_options,
    read_where,
    split_name,
    use_options,
    warn_each,
)
from curvewise.errors import CurvewiseWarning, Message, arg, either


def test_numbers_of_a_wide_table_are_never_cut(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    columns = {"learner": ["a long name", "b"]}
    columns |= {f"column {i}": [f"{123456.789 + i:,.4f}", "2.0000"] for i in range(9)}
    Page().table("wide", columns)
    shown = capsys.readouterr().out
    assert "…" not in shown
    assert all(f"{123456.789 + i:,.4f}" in shown for i in range(9))
    assert "long" in shown


@pytest.mark.parametrize(
    ("argument", "typed"),
    [
        (arg("unit", "percent"), "--unit percent"),
        (arg("labels"), "--labels"),
        (arg("value"), "--value-column"),
        (arg("source", "a b.csv"), "'a b.csv'"),
        (arg("columns", {"learner": None}), "--column learner="),
        (arg("columns", {"n": "set size"}), "--n-column 'set size'"),
        (arg("columns", {"learner": ["a", "b"]}), "--column learner=a --column learner=b"),
        (arg("sizes", [100, 200]), "--sizes 100,200"),
        (arg("drop_failed", True), "--drop-failed"),
        (arg("union", False), "--no-union"),
        (arg("higher_is_better", False), "--lower-is-better"),
        (arg("data.kind", "tokens"), "data.kind='tokens'"),
        (arg("factors.path", "a.npz"), "--factors a.npz"),
        (arg("factors.size", [1, 2]), "--factor 'size=[1, 2]'"),
        (arg("factors.kind"), "--factor kind=…"),
        (either("cw.blind_guess(…)", "`curvewise transfer blind`"), "`curvewise transfer blind`"),
    ],
)
def test_options_in_messages_can_be_typed(argument, typed):
    use_options(
        {
            "value": "value_column",
            "source": "",
            "columns.n": "n_column",
            "factors.path": "factors",
            "factors.*": "factor",
        }
    )
    assert in_options(Message(f"pass {argument}.")) == f"pass {typed}."


def test_what_a_user_named_is_not_worded_anew(tmp_path, call):
    """Names of files and learners that look like arguments stay as they are."""
    path = tmp_path / "compare_runs unit='percent'.csv"
    path.write_text("learner,size of it,other\nvit unit='percent',10,0.5\n", encoding="utf-8")
    done = call("learning", "fit", path)
    assert done.code == 1
    assert path.name in done.err
    assert "--unit percent" not in done.err
    missing = call("learning", "fit", tmp_path / "compare_runs.npz")
    assert "compare_runs.npz" in missing.err


def test_pairs_are_split_at_the_first_equals_sign_without_blanks_around_the_name():
    assert read_options([" width =64", "name=a=b"]) == {"width": 64, "name": "a=b"}
    assert read_where([" split =test", "split=a=b"]) == {"split": ["test", "a=b"]}
    with pytest.raises(UsageError, match="'=3' must read KEY=VALUE"):
        read_options(["=3"])


@pytest.mark.parametrize(
    ("messages", "printed"),
    [
        (["A: few runs.", "B: few runs."], ["A: few runs. (The same holds for B.)"]),
        (
            ["A: γ = -0.99 is low.", "B: γ = -0.01 is low."],
            ["A: γ = -0.99 is low. (The same with other numbers for B: see --verbose.)"],
        ),
        (["3 runs were lost.", "5 runs were lost."], ["3 runs were lost.", "5 runs were lost."]),
    ],
)
def test_only_equal_warnings_are_called_the_same(messages, printed):
    with pytest.warns(CurvewiseWarning) as caught:
        warn_each(messages)
    assert [str(w.message) for w in caught] == printed


def test_names_of_models_have_slashes_and_folders_have_equals_signs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "org" / "lr=0.1").mkdir(parents=True)
    for file in ("a.csv", "org/lr=0.1/b.csv"):
        (tmp_path / file).touch()
    assert split_name("org/new=a.csv") == ("org/new", "a.csv")
    assert split_name("org/new=a*.csv") == ("org/new", "a*.csv")
    assert split_name("org/old=org/lr=0.1/b.csv") == ("org/old", "org/lr=0.1/b.csv")
    for path in ("org/lr=0.1/b.csv", "org/lr=0.1/*.csv", "org/lr=0.1/missing.csv"):
        assert split_name(path) == ("", path)
