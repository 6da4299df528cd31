from __future__ import annotations

import csv
import html
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import time
import warnings
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import curvewise as cw
from curvewise.cli.app import main
from curvewise.cli.console import Page
from curvewise.cli.demo import MilestoneLines, Tour, demo_text, show_demo, side_by_side, write_report
from curvewise.errors import CurvewiseWarning
from curvewise.types import Interval

EXAMPLES = Path(__file__).parents[2] / "examples"


@dataclass
class Demo:
    """A fast demo that was killed once and then continued."""

    out: Path
    before: dict[Path, int]
    document: dict[str, Any]
    short: str
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
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    for _ in range(5):  # its runs may be finished before we look
        out = tmp_path_factory.mktemp("demo") / "it's a demo"
        command = [sys.executable, "-m", "curvewise.cli", "demo", "--fast", "--out", str(out)]
        with subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, **both) as first:
            while first.poll() is None and len(_records(out)) < 5:
                time.sleep(0.02)
            first.kill()
            first.communicate(timeout=1800)
        before = _records(out)
        if len(before) < len(cw.load_study(out / "study.toml").jobs):
            break
    # Continued in this process, where torch is loaded for other tests too. What it found is then shown in every way.
    tours = []

    def write(tour: Tour, *rest: Any) -> Path:
        tours.append(tour)
        return write_report(tour, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        patch.setattr("curvewise.cli.demo.write_report", write)
        with redirect_stdout(StringIO()) as stream:
            assert main(["demo", "--fast", "--out", str(out), "--json"]) == 0
        document = json.loads(stream.getvalue())
        said = {}
        tours[0].page = Page()
        for verbose in (False, True):
            with redirect_stdout(StringIO()) as stream, warnings.catch_warnings():
                warnings.simplefilter("ignore", CurvewiseWarning)  # those of the results follow their sections
                show_demo(tours[0], verbose=verbose, files=document["files"])
            said[verbose] = stream.getvalue()
    return Demo(out, before, document, said[False], said[True])


def test_dry_run_trains_and_writes_nothing(call, tmp_path):
    out = tmp_path / "demo"
    done = call("demo", "--out", out, "--dry-run", "--fast")
    assert done.code == 0
    assert "nothing was trained" in done.out
    assert not out.exists()
    document = call("demo", "--out", out, "--dry-run", "--json").document
    study = cw.load_study(_file(tmp_path, demo_text()))
    assert document["runs"] == study.plan(measure=False).total_to_do


def _file(folder: Path, text: str) -> Path:
    path = folder / "study.toml"
    path.write_text(text)
    return path


def test_killed_demo_continues_where_it_was(demo):
    after = _records(demo.out)
    status = cw.load_study(demo.out / "study.toml").status()
    assert 5 <= len(demo.before) < len(after)
    assert status.done == status.planned == len(after)
    assert {p: after[p] for p in demo.before} == demo.before


def test_answers_fit_a_terminal_of_eighty_columns(demo):
    lines = demo.short.splitlines()
    assert len(lines) <= 36  # four more tell the progress where there is no terminal
    assert max(len(line) for line in lines if "report.html" not in line) < 80
    assert sum(line.startswith("• ") for line in lines) == 8
    assert sum("┤" in line for line in lines) >= 2
    axis = next(line for line in lines if line.split()[:1] == ["25"])
    assert axis.split() == ["25", "50", "100", "200", "400", "1,600"]
    assert str(demo.out / "report.html") in demo.short


def test_progress_without_a_terminal_is_a_few_lines(capsys):
    tell = MilestoneLines()
    for i in range(200):
        tell(0.005, f"{i + 1} trained")
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in lines] == ["1%", "33%", "66%"]
    assert lines[1].endswith("s: 66 trained")


def test_numbers_that_look_alike_are_told_apart(demo):
    page = " ".join(html.unescape((demo.out / "report.html").read_text()).split())
    assert "Each of the 12 training sets counts as one run, the mean of its 5 seeds" in page
    assert "120 networks in all" in page
    assert "The mean error here is that of the 5 runs on 400 digits. The fitted curves" in page
    winners = demo.document["checkpoints"]
    best = {name: winners["checkpoints"][int(np.argmax(values))] for name, values in winners["scores"].items()}
    assert ("(knn another)" in " ".join(demo.short.split())) == (len(set(best.values())) > 1)


def test_files_named_are_there(demo):
    files = [Path(line.strip()) for line in demo.section("Written").splitlines()]
    names = {"study.toml", "report.html", "errors.csv", "cnn.npz", "mlp.npz", "pretraining.toml", "new_writers.toml"}
    assert names <= {f.name for f in files}
    assert all(f.stat().st_size > 0 for f in files)


def test_tables_hold_what_the_runs_predicted(demo):
    with (demo.out / "errors.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 2 * (4 + 4 + 2 + 1 + 1)
    for name in ("CNN", "MLP"):
        stored = np.load(demo.out / f"{name.lower()}.npz")
        assert stored["preds"].shape == (5, 797)
        error = np.mean(stored["preds"] != stored["labels"])
        (row,) = [r for r in rows if r["learner"] == name and r["n"] == "400"]
        assert float(row["error"]) == pytest.approx(error, abs=1e-6)
        assert 0.01 < error < 0.2


def test_json_document_has_every_answer_and_the_text_its_numbers(demo):
    document = demo.document
    assert document["comparison"]["a"] == "CNN"
    assert [a["learner"] for a in document["samples_to_reach"]] == ["CNN", "MLP"]
    assert document["ranking"]["at"] == 1600
    assert document["seeds"]["CNN"]["runs"] == 5
    wrong = {k: np.load(demo.out / f"{k}.npz") for k in ("cnn", "mlp")}
    cnn, mlp = (np.mean(w["preds"] != w["labels"]) for w in wrong.values())
    assert set(document["responses"]) == {"CNN", "MLP"}
    assert document["response"]["paired"] is True
    assert document["better"]["difference"]["estimate"] == pytest.approx(cnn - mlp)
    assert len(document["checkpoints"]["checkpoints"]) == 4
    assert document["files"][0] == str(demo.out / "report.html")
    assert len(document["in_short"]) == 8
    answers = " ".join(demo.short.replace("\n ", "").split())
    for text in document["in_short"]:
        assert f"• {' '.join(text.split())}" in answers
    # The error of a fitted curve is one number, whatever the question.
    values = {row["learner"]: row["values"]["error"]["estimate"] for row in document["table"]}
    assert document["comparison"]["error_difference"]["estimate"] == pytest.approx(values["CNN"] - values["MLP"])


def test_both_comparisons_at_the_largest_size_stand_side_by_side():
    runs, curves = Interval(-0.019, -0.027, -0.011), Interval(-0.017, -0.036, 0.005)
    said = side_by_side(SimpleNamespace(error_difference=curves), SimpleNamespace(difference=runs))
    assert said.startswith(
        "the CNN leads. For these training digits and new test digits: 1.9 points [1.1, 2.7], signif"
    )
    assert said.endswith("For other training digits and these test digits: 1.7 points [-0.5, 3.6], not significant.")
    said = side_by_side(SimpleNamespace(error_difference=Interval(0.01, -0.01, 0.03)), SimpleNamespace(difference=runs))
    assert said.startswith("which network leads depends on the question.")
    assert "the MLP leads by 1.0 points" in said
    unclear = Interval(-0.002, -0.02, 0.01)
    said = side_by_side(SimpleNamespace(error_difference=unclear), SimpleNamespace(difference=unclear))
    assert said.startswith("neither network is significantly better.")


def test_start_from_the_pretrained_network_pays(demo):
    """The demo ends on a gain: its networks have seen no digit of the new writers."""
    new, old = (np.load(demo.out / f"{name}.npz") for name in ("new_writers", "pretraining"))
    seen = {x.tobytes() for x in old["x"]}
    assert not any(x.tobytes() in seen for x in (*new["x"], *new["test_x"]))
    study = cw.load_study(demo.out / "new_writers.toml")
    mean = study.frame().groupby(["learner", "n"]).error.mean()
    assert mean["pretrained", 10] < 0.7 * mean["scratch", 10]
    assert "• Pretraining: it pays. With 10 digits" in demo.short


def test_lines_of_python_that_the_demo_shows_run(demo, capsys):
    lines = demo.lines("The same in Python", "The same on the command line")
    assert lines[0] == "import curvewise as cw"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as many as a reader sees beside the answers
        exec("\n".join(lines), {})  # in this process, where torch is loaded already
    said = " ".join(demo.text.split())
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
    if script.name == "digits_seeds.py":  # with fewer epochs: what it finds is not looked at here
        text = script.read_text(encoding="utf-8").replace("max_iter=30", "max_iter=6")
        assert "max_iter=6" in text
        script = tmp_path / script.name
        script.write_text(text, encoding="utf-8")
    done = start("-W", "error", script, python=True, cwd=tmp_path)
    assert done.code == 0, done.err
    assert done.err == ""
    if script.name == "digits_learning_curves.py":  # errors.csv is what this one measures
        assert (tmp_path / "errors.csv").read_text() == errors.read_text()
        assert (tmp_path / "curves.png").stat().st_size > 1000


def test_the_report_names_the_folder_to_run_the_demo_in(demo, call, monkeypatch):
    page = html.unescape(re.sub("</?span>", "", (demo.out / "report.html").read_text()))
    assert f"Run this command in the folder that contains {demo.out.name}." in page
    assert (command := f"curvewise demo --seed 0 --fast --out {shlex.quote(demo.out.name)}") in page
    before = _records(demo.out)
    monkeypatch.chdir(demo.out.parent)
    assert call(*shlex.split(command)[1:]).code == 0
    assert _records(demo.out) == before
    assert not (demo.out / demo.out.name).exists()
