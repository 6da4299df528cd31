"""``curvewise study``: from a new file to a report."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from curvewise.study import RECIPES, load_study

SMALL = """
name = "tiny"
data = "digits"

[learners.bayes]
estimator = "sklearn.naive_bayes:GaussianNB"

[learners.tree]
estimator = "sklearn.tree:DecisionTreeClassifier"
max_features = 8

[design]
sizes = [50, 100, 200]
folds = 1
seeds = 5
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(SMALL)
    return path


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made") / "study.toml"
    path.write_text(SMALL)
    assert load_study(path).run(workers=0, progress=False).done == 30
    return path.parent / "tiny-runs"


@pytest.fixture
def finished(file: Path, runs: Path) -> Path:
    """The file of a study whose runs are there."""
    shutil.copytree(runs, file.parent / "tiny-runs")
    return file


def test_new_writes_a_study_and_never_overwrites(call, tmp_path):
    path = tmp_path / "study.toml"
    outcome = call("study", "new", path)
    assert (outcome.code, outcome.out) == (0, "")
    assert "curvewise study plan" in outcome.err
    assert set(load_study(path).learners) == {"network", "forest"}
    path.write_text("mine")
    outcome = call("study", "new", path)
    assert outcome.code == 2
    assert "already exists" in outcome.err
    assert path.read_text() == "mine"


@pytest.mark.parametrize("recipe", RECIPES)
def test_new_writes_every_recipe(call, tmp_path, recipe):
    path = tmp_path / "study.toml"
    assert call("study", "new", "--recipe", recipe, path).code == 0
    assert load_study(path).name == recipe
    assert path.read_text().startswith(f"# Recipe {recipe}.")


def test_a_recipe_that_is_not_known(call, tmp_path):
    outcome = call("study", "new", "--recipe", "varience", tmp_path / "study.toml")
    assert outcome.code == 1
    assert "Did you mean 'variance'?" in outcome.err
    assert not (tmp_path / "study.toml").exists()


def test_help_names_every_recipe(call):
    text = " ".join(call("study", "new", "--help").out.split())
    for recipe in RECIPES:
        assert re.search(rf"\b{recipe}\b", text), recipe


def test_plan_prints_the_runs_and_trains_nothing(call, file):
    outcome = call("study", "plan", file, "--no-measure")
    assert outcome.code == 0
    assert "30 remaining" in outcome.out
    assert re.search(r"bayes\s+50\s+5\s+unknown", outcome.out)
    assert not (file.parent / "tiny-runs").exists()
    document = call("study", "plan", file, "--no-measure", "--json").document
    assert (document["type"], document["total_runs"], document["total_to_do"]) == ("Plan", 30, 30)


@pytest.mark.parametrize("command", [("plan",), ("run", "--dry-run")])
def test_weights_of_another_architecture_are_refused_before_anything_is_trained(call, tmp_path, command):
    pytest.importorskip("torch")
    np.savez(tmp_path / "w.npz", **{"1.weight": np.zeros((8, 64)), "3.weight": np.zeros((10, 8))})
    path = tmp_path / "study.toml"
    path.write_text("data = 'digits'\n[learners.net]\narchitecture = 'resnet18'\nweights = 'w.npz'\nwidth = 4\n")
    outcome = call("study", *command, path)
    assert (outcome.code, outcome.out) == (1, "")
    said = " ".join(outcome.err.split())
    assert re.search(r"learners\.net.*w\.npz.*missing in the file, such as conv1\.weight", said)
    assert "Use the architecture and options they were trained with" in said
    assert not list(tmp_path.glob("*-runs"))


def test_dry_run_does_nothing(call, file):
    outcome = call("study", "run", file, "--dry-run")
    assert outcome.code == 0
    assert "Dry run: nothing was trained." in outcome.out
    assert not (file.parent / "tiny-runs").exists()


def test_a_study_from_run_to_report(call, file):
    outcome = call("study", "run", file, "--workers", 0, "--shard", "1/2", "--json")
    assert outcome.code == 0
    assert 0 < outcome.document["done"] < 30
    outcome = call("study", "run", file, "--workers", 0)
    assert outcome.code == 0
    assert "30 runs: 30 finished, 0 remaining" in outcome.out
    status = call("study", "status", file, "--json").document
    assert (status["type"], status["done"], status["to_do"]) == ("Status", 30, 0)
    assert "30 runs: 30 finished, 0 remaining" in call("study", "status", file).out

    outcome = call("study", "report", file)
    assert outcome.code == 0, outcome.err
    folder = file.parent / "tiny-report"
    text = (folder / "report.md").read_text()
    figures = {p.name for p in folder.glob("*.png")}
    assert {"curves.png", "comparison.png"} < figures
    assert figures == set(re.findall(r"\]\((.*?)\)", text))
    assert "Which learner is best" in (folder / "report.html").read_text()
    assert "| tree" in text
    assert "tree, n=200" in text
    assert "Which learner is best" in outcome.out
    assert "How does the error fall with data?" not in outcome.out  # the page has it
    more = call("study", "report", file, "--verbose", "--format", "markdown").out
    assert "How does the error fall with data?" in more
    other = ("--out", file.parent / "other", "--format", "html")
    document = call("study", "report", file, *other, "--json").document
    assert len(document["errors"]["n"]) == 6
    assert document["variance"]["tree, n=200"]["runs"] == 5
    assert (file.parent / "other" / "report.html").is_file()


def test_a_plan_that_cannot_be_made_has_the_exit_status_one(call, file):
    file.write_text(SMALL.replace("max_features = 8", "features = 8"))
    planned = call("study", "plan", file)
    assert planned.code == 1
    assert "tree cannot be trained as described" in planned.out
    assert "unexpected keyword argument 'features'" in planned.err
    made = call("study", "run", file, "--workers", 0)
    assert made.code == 1
    assert "nothing was started" in made.err
    assert not (file.parent / "tiny-runs").exists() or call("study", "status", file, "--json").document["done"] == 0


def test_failed_runs_make_the_exit_status_one(call, file):
    file.write_text(SMALL.replace("max_features = 8", "max_features = -1"))
    outcome = call("study", "run", file, "--workers", 0)
    assert outcome.code == 1
    assert "Why runs failed" in outcome.out
    assert "tree" in outcome.out
    assert "30 runs: 15 finished, 15 failed" in outcome.out
    again = call("study", "run", file, "--workers", 0, "--no-retry-failed", "--json")
    assert again.code == 1
    assert again.document["failures"][0]["count"] == 15
    report = call("study", "report", file, "--verbose")
    assert report.code == 0
    assert "15 of 30 runs failed (tree)" in report.err


SLOW = """
import pathlib, time
from sklearn.naive_bayes import GaussianNB


class Slow(GaussianNB):
    def fit(self, X, y):
        place = pathlib.Path(__file__).with_suffix(".began")
        if place.exists():
            time.sleep(600)  # so that it never gets through all of them
        place.touch()
        return super().fit(X, y)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
@pytest.mark.parametrize(("sent", "code", "workers"), [(signal.SIGINT, 130, 0), (signal.SIGTERM, 143, 1)])
def test_an_interrupted_study_has_the_exit_status_of_the_signal(file, sent, code, workers):
    (file.parent / "slow.py").write_text(SLOW)
    file.write_text(SMALL.replace("sklearn.naive_bayes:GaussianNB", "slow:Slow"))
    store = file.parent / "tiny-runs"
    command = [sys.executable, "-m", "curvewise.cli", "study", "run", str(file)]
    with subprocess.Popen(
        [*command, "--workers", str(workers)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as started:
        while not list(store.glob("*/record.json")) and started.poll() is None:
            time.sleep(0.02)
        os.killpg(started.pid, sent)  # as a terminal or a scheduler does
        out, said = started.communicate(timeout=600)
    assert (started.returncode, out) == (code, "")
    assert "Run the study again to continue" in said
    assert "Traceback" not in said
    assert not list((store / ".claims").iterdir())
    assert not list((store / ".partial").iterdir())


def test_any_command_can_be_interrupted(call, file, monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("curvewise.study.study.load_study", interrupted)
    done = call("study", "status", file)
    assert (done.code, done.out, done.err) == (130, "", "curvewise: Interrupted.\n")


def test_a_disk_that_is_full_while_a_report_is_written(call, finished, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("curvewise.report.export.export_report", full)
    monkeypatch.setattr("curvewise.report.export_report", full)
    done = call("study", "report", finished, "--format", "markdown")
    assert done.code == 1
    said = " ".join(done.err.split())
    assert f"The report cannot be written to {finished.parent}/tiny-report: No space left" in said


def test_fresh_makes_the_runs_anew(call, finished):
    store = finished.parent / "tiny-runs"
    before = {p.name: p.stat().st_ino for p in store.glob("?" * 20)}
    call("study", "run", finished, "--workers", 0)
    assert {p.name: p.stat().st_ino for p in store.glob("?" * 20)} == before
    call("study", "run", finished, "--workers", 0, "--fresh")
    after = {p.name: p.stat().st_ino for p in store.glob("?" * 20)}
    assert after.keys() == before.keys()
    assert all(after[k] != before[k] for k in after)


def test_a_report_of_sources(call, file):
    design = 'vary = [["init", "order"], ["init"]]\n'
    file.write_text(SMALL.replace("sizes = [50, 100, 200]", "sizes = [50]\n" + design))
    call("study", "run", file, "--workers", 0)
    outcome = call("study", "report", file, "--verbose", "--format", "markdown")
    assert outcome.code == 0, outcome.err
    assert "What makes runs differ? tree, n=50" in outcome.out
    assert (file.parent / "tiny-report" / "sources-tree-n-50.png").is_file()


THIRD = """[learners.nearest]
estimator = "sklearn.neighbors:KNeighborsClassifier"

[design]"""


def test_a_report_tells_what_to_beware_of_once_and_whose_it_is(call, file):
    design = "sizes = [50, 700, 1400]\nfolds = [1, 1, 2]"
    file.write_text(SMALL.replace("sizes = [50, 100, 200]\nfolds = 1", design))
    assert call("study", "run", file, "--workers", 0).code == 0
    for third in (False, True):
        if third:
            file.write_text(file.read_text().replace("[design]", THIRD))
            assert call("study", "run", file, "--workers", 0).code == 0
        outcome = call("study", "report", file, "--json", "--format", "markdown")
        document = outcome.document
        told = document["warnings"]
        assert any("share examples" in w for w in told)
        assert "share examples" in outcome.err
        text = (file.parent / "tiny-report" / "report.md").read_text()
        assert all(text.count(f"Warning: {w}") == 1 for w in told)
        fits = [w for c in document["curves"]["curves"].values() for w in c["warnings"]]
        assert fits
        assert all(w not in told for w in fits)  # never without the name
        # A report is read by people who use either face: its advice names the option of both.
        assert all(any(f": {w.split('. ')[0].rstrip('.')}. " in f"{t} " for t in told) for w in fits)


def test_three_learners_are_ranked(call, finished):
    file = finished
    file.write_text(SMALL.replace("[design]", THIRD))
    call("study", "run", file, "--workers", 0)
    document = call("study", "report", file, "--json", "--format", "markdown").document
    text = (file.parent / "tiny-report" / "report.md").read_text()
    assert "is predicted to be the best of 3" in text
    assert "Error at n = 200 with 95% confidence intervals" in text
    assert (file.parent / "tiny-report" / "ranking.png").is_file()
    at = {k: document["errors"][k] for k in ("learner", "n", "error")}
    rows = zip(*at.values(), strict=True)
    least = min((e, k) for k, n, e in rows if n == 200)[1]
    assert document["ranking"]["learners"][0] == least


@pytest.mark.parametrize("form", ["auto", "power2", "constrained", "last"])
def test_a_report_with_curves_of_another_form(call, finished, form):
    outcome = call("study", "report", finished, "--form", form, "--format", "markdown")
    assert outcome.code == 0, outcome.err
    text = (finished.parent / "tiny-report" / "report.md").read_text()
    assert "comparison.png" in text or f"There is no comparison of curves of form {form}" in text
    assert "The fits use the mean over the seeds of each training subset" in text


def test_a_report_of_every_evaluation_set(call, file):
    more = '[evaluate.noisy]\nperturbation = "noise"\nmagnitude = 0.5\n'
    file.write_text(f"{SMALL}\n{more}")
    outcome = call("study", "run", file, "--workers", 0)
    assert outcome.code == 0, outcome.err
    document = call("study", "report", file, "--json", "--format", "markdown").document
    assert "Error on noisy" in (file.parent / "tiny-report" / "report.md").read_text()
    frame = load_study(file).frame()
    mean = frame[(frame.learner == "bayes") & (frame.n == 50)]["error.noisy"].mean()
    assert document["evaluations"]["noisy"]["error"][0] == pytest.approx(mean)


def test_a_report_tells_the_rates_that_were_chosen(call, file):
    pytest.importorskip("torch")
    file.write_text(
        'name = "tiny"\ndata = "digits"\n[learners.net]\narchitecture = "linear"\n'
        "rate = [1e-9, 0.1]\nepochs = 3\n[design]\nsizes = [50]\nfolds = 1\n"
    )
    assert call("study", "run", file, "--workers", 0, "--device", "cpu").code == 0
    assert "net: 0.1, chosen from 1e-09, 0.1 at n = 50." in call("study", "report", file, "--verbose").out
    assert call("study", "report", file, "--json").document["rates"] == {"net": 0.1}


def test_a_report_is_no_place_for_tags(call, file):
    text = SMALL.replace("[learners.tree]", '[learners."<script>a & b"]')
    file.write_text(text.replace('"tiny"', '"<b>tiny 🐳"'))
    assert call("study", "run", file, "--workers", 0).code == 0
    outcome = call("study", "report", file)
    assert outcome.code == 0, outcome.err
    assert "<script>a & b" in outcome.out
    study = load_study(file)
    folder = study.folder / study.runs_folder.name.replace("-runs", "-report")
    written = (folder / "report.md").read_text()
    assert "<" not in written
    assert "# &lt;b&gt;tiny 🐳" in written
    assert "| &lt;script&gt;a &amp; b" in written


def test_a_folder_that_cannot_be_written(call, file):
    outcome = call("study", "report", file, "--out", file)
    assert outcome.code == 2
    assert "with --out" in outcome.err


@pytest.mark.parametrize("there", [True, False])
def test_a_folder_is_no_study(call, tmp_path, there):
    if there:
        (tmp_path / "study.toml").write_text(SMALL)
    outcome = call("study", "plan", tmp_path)
    assert outcome.code == 1
    assert f"{tmp_path} is a folder" in outcome.err
    assert (str(tmp_path / "study.toml") in outcome.err) == there


def test_a_report_without_runs_says_what_is_missing(call, file):
    outcome = call("study", "report", file)
    assert outcome.code == 0
    assert "30 runs: 0 finished, 30 remaining" in outcome.out
    assert "No run has finished yet" in outcome.out
    folder = file.parent / "tiny-report"
    assert "30 runs: 0 finished" in (folder / "report.md").read_text()
    assert "30 runs: 0 finished" in (folder / "report.html").read_text()


@pytest.mark.parametrize(
    ("format", "endings"),
    [
        ("html", {".html"}),
        ("markdown", {".md", ".png", ".csv"}),
        ("latex", {".md", ".tex", ".pdf", ".csv"}),
        ("all", {".html", ".md", ".png", ".tex", ".pdf", ".csv"}),
    ],
)
def test_a_report_in_the_format_asked_for(call, file, format, endings):
    tree = SMALL[SMALL.index("[learners.tree]") : SMALL.index("[design]")]
    file.write_text(SMALL.replace(tree, "").replace("seeds = 5", "seeds = 1"))  # few pictures
    assert call("study", "run", file, "--workers", 0).code == 0
    document = call("study", "report", file, "--format", format, "--json").document
    written = {path.name for path in (file.parent / "tiny-report").iterdir()}
    assert {Path(name).suffix for name in written} == endings
    assert {Path(path).name for path in document["files"]} == written


def test_a_report_without_jinja_is_text(call, file, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    outcome = call("study", "report", file)
    assert outcome.code == 0
    assert "curvewise[report]" in outcome.err
    assert (file.parent / "tiny-report" / "report.md").is_file()
    outcome = call("study", "report", file, "--format", "html")
    assert outcome.code == 1
    assert "curvewise[report]" in outcome.err


@pytest.mark.parametrize("options", [["--port", 8000], ["--open"], ["--watch", "--json"]])
def test_options_of_a_report_that_do_not_belong_together(call, file, options):
    outcome = call("study", "report", file, *options)
    assert outcome.code == 2
    assert "--watch" in outcome.err


def test_the_address_of_a_page_can_be_copied(call, file, monkeypatch):
    monkeypatch.setattr("curvewise.report.live.LivePage.serve", lambda page: None)
    outcome = call("study", "report", file, "--watch")
    assert outcome.code == 0
    assert re.search(r"http://127\.0\.0\.1:\d+/[\w-]+/\s", outcome.err)


def test_a_port_that_is_taken(call, file):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        outcome = call("study", "report", file, "--watch", "--port", port)
    assert outcome.code == 2
    assert f"--port {port} cannot be used" in outcome.err


@pytest.mark.parametrize("command", ["plan", "run", "status", "report"])
def test_a_file_that_is_not_there_or_not_a_study(call, tmp_path, command):
    outcome = call("study", command, tmp_path / "none.toml")
    assert outcome.code == 2
    assert "curvewise study new" in outcome.err
    path = tmp_path / "bad.toml"
    path.write_text("data = 'digits'\n[learners.a]\narchitectur = 'mlp'\n")
    outcome = call("study", command, path)
    assert outcome.code == 1
    assert "bad.toml, [learners.a]" in outcome.err
    assert "Did you mean 'architecture'?" in outcome.err


def test_options_that_make_no_sense(call, file):
    assert call("study", "run", file, "--shard", "0/4").code == 1
    assert call("study", "run", file, "--workers", -1).code == 2
    outcome = call("study", "run", file, "--on", "ray", "--device", "cpu")
    assert outcome.code == 2
    assert "--device is for --on local" in outcome.err
    outcome = call("study", "run", file, "--gpus", 0.5)
    assert outcome.code == 2
    assert "--gpus is for --on ray" in outcome.err
    outcome = call("study", "run", file, "--memory", "8GiB")
    assert (outcome.code, "--memory is for --on ray" in outcome.err) == (2, True)
    outcome = call("study", "run", file, "--on", "ray", "--resources", "fast")
    assert (outcome.code, "write NAME=AMOUNT" in outcome.err) == (2, True)
    outcome = call("study", "run", file, "--on", "ray", "--runtime-env", "none.json")
    assert (outcome.code, "none.json cannot be read" in outcome.err) == (2, True)
    outcome = call("study", "run", file, "--on", "ray", "--cpus", 0)  # and no GPU: 0 is a number that was given
    assert (outcome.code, "a worker needs some of either" in outcome.err) == (1, True)
    outcome = call("study", "run", file, "--on", "ray://head:10001")
    assert outcome.code == 1
    assert "ray job submit --address http://head:8265" in outcome.err


def test_a_script_for_slurm_is_written_once(call, file):
    options = ("--on", "slurm", "--shards", 4, "--gpus", 1, "--time", "01:00:00", "--sbatch", "partition=gpu")
    outcome = call("study", "submit", file, *options)
    script = file.with_suffix(".sbatch")
    assert (outcome.code, f"Next: sbatch {script}" in outcome.err) == (0, True)
    text = script.read_text()
    assert "#SBATCH --array=1-4\n" in text
    assert "#SBATCH --partition=gpu\n" in text
    outcome = call("study", "submit", file, *options)
    assert (outcome.code, "already exists" in outcome.err) == (2, True)
    assert call("study", "submit", file, "--shards", 4, "--time", "4h", "--out", file.with_name("b")).code == 1
    assert not file.with_name("b").exists()
    assert call("study", "submit", file).code == 2


@pytest.mark.parametrize("way", ["toml", "json"])
def test_what_tasks_ask_for_reaches_the_cluster(call, file, monkeypatch, tmp_path, way):
    from curvewise.study.run import ray

    environment = tmp_path / f"environment.{way}"
    environment.write_text('pip = ["einops"]' if way == "toml" else '{"pip": ["einops"]}')

    asked = {}

    def run_ray(study, address=None, **options):
        asked.update(options, address=address)
        raise KeyboardInterrupt

    monkeypatch.setattr(ray, "run_ray", run_ray)
    given = ("--gpus", 0.5, "--cpus", 2, "--memory", "8GiB", "--logs", "--runtime-env", environment)
    many = ("--resources", "accelerator_type:A100=0.01", "--resources", "fast=1")
    call("study", "run", file, "--on", "head:6379", *given, *many)
    found = {name: asked[name] for name in ("address", "gpus", "cpus", "memory", "logs", "runtime_env", "resources")}
    assert found == {
        "address": "head:6379",
        "gpus": 0.5,
        "cpus": 2,
        "memory": "8GiB",
        "logs": True,
        "runtime_env": {"pip": ["einops"]},
        "resources": {"accelerator_type:A100": 0.01, "fast": 1},
    }
