"""The command as such: help, usage errors, streams, startup."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import curvewise
from curvewise.cli.app import GROUPS

COMMANDS = [
    (),
    ("learning",),
    ("learning", "fit"),
    ("learning", "compare"),
    ("learning", "plan"),
    ("learning", "rank"),
    ("learning", "validate"),
    ("learning", "stability"),
    ("learning", "check"),
    ("demo",),
    ("--install-completion",),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_explains_every_option(call, command):
    done = call(*command, "--help")
    assert done.code == 0
    assert done.err == ""
    assert "Usage: curvewise" in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_first_screen_leads_from_questions_to_commands_that_exist(call):
    done = call()
    assert done.code == 0
    assert max(map(len, done.out.splitlines())) <= 80
    commands = [line.split("curvewise ")[1].split() for line in done.out.splitlines() if "  curvewise " in line]
    assert {words[0] for words in commands} == {*GROUPS, "demo", "--help"} - {"store"}
    for words in commands:
        assert call(*words[:2], "--help").code == 0, words


def test_version(call):
    assert call("--version").out.strip() == f"curvewise {curvewise.__version__}"


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        (("lerning",), "learning"),
        (("learning", "compar"), "compare"),
        (("learning", "fit", "x.csv", "--predct", "3"), "--predict"),
        (("learning", "fit", "x.csv", "--unit", "percnt"), "percent"),
        (("demo", "--dryrun"), "--dry-run"),
        (("learning", "fit", "x.csv", "--model", "cnn"), "--learner"),
        (("learning", "fit", "x.csv", "--out", "x.png"), "--plot"),
        (("variance", "compare", "a", "b", "--alpha", "0.1"), "--level"),
    ],
)
def test_typing_errors_are_usage_errors_with_a_suggestion(call, arguments, suggestion):
    done = call(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert "Did you mean" in " ".join(done.err.split())
    assert suggestion in done.err


def test_no_option_is_suggested_where_none_is_near(call):
    done = call("learning", "fit", "x.csv", "--colour", "red")
    assert done.code == 2
    assert "Unknown option: --colour." in done.err
    assert "Did you mean" not in done.err


@pytest.mark.parametrize("arguments", [("--level", "2"), ("--predict", "many"), ("--at", "-5"), ("--per-class", "0")])
def test_impossible_values_are_usage_errors(call, errors, arguments):
    assert call("learning", "fit", errors, *arguments).code == 2


def test_exit_codes_of_the_process(start, errors, tmp_path):
    assert start("learning", "fit", errors).code == 0
    failed = start("learning", "fit", tmp_path / "absent.csv")
    assert failed.code == 1
    assert failed.err.startswith("curvewise: ")
    assert "absent.csv" in failed.err
    assert "Traceback" not in failed.err
    assert start("learning", "fit").code == 2
    assert start("learning", "compare", errors, "--fail-if", "undecided").code == 3


def test_json_is_all_there_is_on_stdout(start, errors):
    done = start("learning", "compare", errors, "--json")
    assert done.document["type"] == "CurveComparison"
    assert "note: " in done.err


def test_broken_pipe_is_no_traceback(errors):
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.run(
        [sys.executable, "-m", "curvewise.cli", "learning", "fit", str(errors), "--json"],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert process.returncode == 1
    assert "Traceback" not in process.stderr
    assert "BrokenPipe" not in process.stderr


def test_terminal_without_greek(errors):
    process = subprocess.run(
        [sys.executable, "-m", "curvewise.cli", "learning", "fit", str(errors)],
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        check=False,
    )
    assert process.returncode == 0
    assert b"naive Bayes" in process.stdout


def test_help_imports_nothing_heavy(start):
    heavy = ("numpy", "pandas", "scipy", "matplotlib", "sklearn", "torch")
    code = (
        "import sys; from curvewise.cli import main; main(['learning', 'fit', '--help']);"
        f"print([m for m in {heavy} if m in sys.modules], file=sys.stderr)"
    )
    done = start("-c", code, python=True)
    assert done.code == 0
    assert done.err.strip() == "[]"


def test_fit_needs_neither_pandas_nor_matplotlib(start, errors):
    code = (
        "import sys; sys.modules['pandas'] = sys.modules['matplotlib'] = None;"
        f"from curvewise.cli import main; sys.exit(main(['learning', 'fit', {str(errors)!r}]))"
    )
    assert start("-c", code, python=True).code == 0
