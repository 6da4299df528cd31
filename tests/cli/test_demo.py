from __future__ import annotations

import csv
import os
import re
import runpy
import shlex
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import curvewise as cw
from curvewise.cli.demo import demo_text

EXAMPLES = Path(__file__).parents[2] / "examples"


@dataclass
class Demo:
    """A fast demo that was killed once and then went on."""

    out: Path
    before: dict[Path, int]
    text: str

    def section(self, title: str, end: str | None = None) -> str:
        rest = self.text.split(f"{title}\n")[1]
        return rest if end is None else rest.split(end)[0]

    def lines(self, title: str, end: str) -> list[str]:
        return [k.strip() for k in self.section(title, end).splitlines() if k.startswith("  ")]


def _records(out: Path) -> dict[Path, int]:
    return {p: p.stat().st_mtime_ns for p in (out / "digits-runs").glob("*/record.json")}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "encoding": "utf-8"}
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUTF8": "1", "COLUMNS": "80"}
    for _ in range(5):  # it may be through with its runs before we come to look
        out = tmp_path_factory.mktemp("demo") / "it's a demo"
        command = [sys.executable, "-m", "curvewise.cli", "demo", "--fast", "--out", str(out)]
        with subprocess.Popen(command, env=environment, **both) as first:
            while first.poll() is None and len(_records(out)) < 10:
                time.sleep(0.02)
            first.kill()
            first.communicate(timeout=1800)  # until its workers, which write there too, are gone
        before = _records(out)
        if len(before) < len(cw.load_study(out / "study.toml").jobs):
            break
    done = subprocess.run(command, env=environment, **both, timeout=1800, check=False)
    assert done.returncode == 0, done.stdout
    return Demo(out, before, done.stdout)


def test_dry_run_trains_and_writes_nothing(call, tmp_path):
    out = tmp_path / "demo"
    done = call("demo", "--out", out, "--dry-run", "--fast")
    assert done.code == 0
    assert "Nothing was done" in done.out
    assert not out.exists()
    document = call("demo", "--out", out, "--dry-run", "--json").document
    study = cw.load_study(_file(tmp_path, demo_text()))
    assert document["runs"] == study.plan(measure=False).total_to_do


def _file(folder: Path, text: str) -> Path:
    path = folder / "study.toml"
    path.write_text(text)
    return path


def test_killed_demo_goes_on_where_it_was(demo):
    after = _records(demo.out)
    status = cw.load_study(demo.out / "study.toml").status()
    assert 10 <= len(demo.before) < len(after)
    assert status.done == status.planned == len(after)
    assert {p: after[p] for p in demo.before} == demo.before
    assert f"{len(demo.before)} there" in demo.text


def test_files_named_are_there_and_the_summary_shows_the_pictures(demo):
    files = [Path(line.strip()) for line in demo.section("Written").splitlines()]
    assert {"study.toml", "summary.md", "errors.csv", "cnn.npz", "mlp.npz"} <= {f.name for f in files}
    assert all(f.stat().st_size > 0 for f in files)
    summary = (demo.out / "summary.md").read_text(encoding="utf-8")
    pictures = re.findall(r"!\[.*\]\((.*)\)", summary)
    assert sorted(pictures) == sorted(f.name for f in files if f.suffix == ".png")
    assert "## In short" in summary


def test_tables_hold_what_the_runs_predicted(demo):
    with (demo.out / "errors.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 2 * (4 + 4 + 2 + 2 + 1)
    for name in ("CNN", "MLP"):
        stored = np.load(demo.out / f"{name.lower()}.npz")
        assert stored["preds"].shape == (6, 797)
        error = np.mean(stored["preds"] != stored["labels"])
        (row,) = [r for r in rows if r["learner"] == name and r["n"] == "400"]
        assert float(row["error"]) == pytest.approx(error, abs=1e-6)
        assert 0.01 < error < 0.2


def test_json_document_has_every_answer(demo, call, monkeypatch):
    before = _records(demo.out)
    # The pictures are there already, and are looked at above.
    monkeypatch.setattr("curvewise.study.commands.write_files", lambda report, folder, index: [])
    done = call("demo", "--fast", "--out", demo.out, "--json")
    assert done.code == 0, done.err
    assert _records(demo.out) == before
    document = done.document
    assert document["comparison"]["a"] == "CNN"
    assert [a["learner"] for a in document["samples_to_reach"]] == ["CNN", "MLP"]
    assert document["ranking"]["at"] == 1600
    assert document["seeds"]["CNN"]["runs"] == 6
    wrong = {k: np.load(demo.out / f"{k}.npz") for k in ("cnn", "mlp")}
    cnn, mlp = (np.mean(w["preds"] != w["labels"]) for w in wrong.values())
    assert set(document["responses"]) == {"CNN", "MLP"}
    assert document["response"]["paired"] is True
    assert document["better"]["difference"]["estimate"] == pytest.approx(cnn - mlp)
    assert len(document["in_short"]) == 8
    assert len(document["checkpoints"]["checkpoints"]) == 10
    assert document["files"][0] == str(demo.out / "study.toml")


def test_lines_of_python_that_the_demo_shows_run(demo, capsys):
    lines = demo.lines("The same in Python", "The same on the command line")
    assert lines[0] == "import curvewise as cw"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as many as a reader sees beside the answers
        exec("\n".join(lines), {})  # in this process, where torch is loaded already
    said = demo.text.replace("\n", " ")
    answers = capsys.readouterr().out.splitlines()
    assert answers
    for line in answers:  # the same answers as above
        assert line.split(" Beware:")[0] in said


def test_commands_that_the_demo_shows_work(demo, call):
    lines = demo.lines("The same on the command line", "Written")
    assert len(lines) == 10
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "curvewise"
        assert call(*words).code in ((0, 3) if "--fail-if" in words else (0,)), line


def test_warnings_follow_the_section_they_belong_to(demo):
    place = demo.text.index
    assert "warning: " not in demo.text[place("In short") :]
    for found in re.finditer(r"warning: .*this lies beyond n = ", demo.text):
        assert place("How many digits") < found.start() < place("Which will be better")


def test_study_file_that_was_changed_is_left_alone(call, tmp_path):
    mine = demo_text() + "# mine\n"
    done = call("demo", "--out", _file(tmp_path, mine).parent)
    assert done.code == 2
    assert "--out" in done.err
    assert (tmp_path / "study.toml").read_text() == mine


@pytest.mark.parametrize(("module", "name"), [("torch", "torch"), ("sklearn", "scikit-learn"), ("jinja2", "jinja2")])
def test_demo_names_what_to_install(call, tmp_path, monkeypatch, module, name):
    monkeypatch.setitem(sys.modules, module, None)
    done = call("demo", "--out", tmp_path / "demo")
    assert done.code == 1
    assert name in done.err
    assert "curvewise[demo]" in done.err
    assert not (tmp_path / "demo").exists()


def test_negative_seed_is_refused(call, tmp_path):
    assert call("demo", "--seed", "-1", "--out", tmp_path / "demo").code == 2


def test_example_is_the_study_of_the_demo(demo, capsys, monkeypatch):
    example = EXAMPLES / "digits_study"
    assert (example / "study.toml").read_text(encoding="utf-8") == demo_text()
    monkeypatch.setattr(sys, "argv", ["run.py", str(demo.out / "study.toml")])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runpy.run_path(str(example / "run.py"), run_name="__main__")
    assert "CNN" in capsys.readouterr().out


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda p: p.name)
def test_examples_run(start, tmp_path, errors, script):
    done = start("-W", "error", script, python=True, cwd=tmp_path)
    assert done.code == 0, done.err
    assert done.err == ""
    if script.name == "digits_learning_curves.py":  # errors.csv is what this one measures
        assert (tmp_path / "errors.csv").read_text() == errors.read_text()
        assert (tmp_path / "curves.png").stat().st_size > 1000
