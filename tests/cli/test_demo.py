from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import curvewise as cw

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_dry_run_trains_and_writes_nothing(call, tmp_path):
    out = tmp_path / "demo"
    done = call("demo", "--out", out, "--dry-run", "--fast")
    assert done.code == 0
    assert "Nothing was done" in done.out
    assert not out.exists()
    document = call("demo", "--out", out, "--dry-run", "--json").document
    assert document["runs"] == 94


def test_demo_goes_all_the_way_and_resumes(call, tmp_path):
    out = tmp_path / "demo"
    done = call("demo", "--out", out, "--fast", "--seed", "1")
    assert done.code == 0
    assert "The same in Python" in done.out
    for name in ("errors.csv", "curves.png", "comparison.png"):
        assert str(out / name) in done.out.replace("\n", "")
        assert (out / name).stat().st_size > 0
    measured = cw.load_measurements(out / "errors.csv")
    assert measured.learners == ("bagged trees", "naive Bayes")
    assert len(measured) == 44
    runs = {p: p.stat().st_mtime_ns for p in (out / "runs").rglob("record.json")}
    assert len(runs) == 44
    again = call("demo", "--out", out, "--fast", "--seed", "1", "--json")
    assert {p: p.stat().st_mtime_ns for p in (out / "runs").rglob("record.json")} == runs
    assert again.document["comparison"]["a"] == "bagged trees"
    assert again.document["files"][0] == str(out / "errors.csv")


def test_lines_of_python_that_the_demo_shows_run(call, start, tmp_path):
    out = tmp_path / "it's a demo"
    shown = call("demo", "--out", out, "--fast").out.split("The same in Python\n")[1]
    shown = shown.split("The same on the command line")[0]
    assert "python examples/digits_learning_curves.py" in shown
    lines = [line.strip() for line in shown.splitlines() if line.startswith("  ")]
    assert lines[0] == "import curvewise as cw"
    assert len(lines) == 4
    done = start("-c", "\n".join(lines), python=True)
    assert done.code == 0, done.err
    assert "bagged trees" in done.out


def test_warnings_follow_the_section_they_belong_to(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "curvewise.cli", "demo", "--out", str(tmp_path / "demo"), "--fast"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUTF8": "1"},
        check=True,
    )
    place = done.stdout.index
    warning = place("this lies beyond n = ")
    assert place("How many samples") < warning < place("Which will be better")
    assert "warning:" not in done.stdout[place("The same in Python") :]


def test_commands_that_the_demo_shows_work(call, errors):
    assert call("learning", "compare", errors).code == 0
    assert call("learning", "fit", errors, "--reach", "0.05").code == 0
    assert call("learning", "rank", errors, "--at", "5748").code == 0


def test_demo_without_scikit_learn_names_the_extra(call, tmp_path, monkeypatch):
    for name in [m for m in sys.modules if m.split(".")[0] == "sklearn"] or ["sklearn"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    done = call("demo", "--out", tmp_path / "demo")
    assert done.code == 1
    assert "curvewise[demo]" in done.err


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda p: p.name)
def test_examples_run(start, tmp_path, errors, script):
    done = start("-W", "error", script, python=True, cwd=tmp_path)
    assert done.code == 0, done.err
    assert done.err == ""
    if script.name == "digits_learning_curves.py":  # errors.csv is what this one measures
        assert (tmp_path / "errors.csv").read_text() == errors.read_text()
        assert (tmp_path / "curves.png").stat().st_size > 1000
