"""``curvewise study``: from a new file to a report."""

from __future__ import annotations

import re
from pathlib import Path

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


def test_new_writes_a_study_and_never_overwrites(call, tmp_path):
    path = tmp_path / "study.toml"
    outcome = call("study", "new", path)
    assert (outcome.code, outcome.out) == (0, "")
    assert "curvewise study plan" in outcome.err
    assert set(load_study(path).learners) == {"network", "forest"}
    path.write_text("mine")
    outcome = call("study", "new", path)
    assert outcome.code == 2
    assert "there already" in outcome.err
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
    assert "30 to do" in outcome.out
    assert re.search(r"bayes\s+50\s+5\s+0\s+0\s+5\s+unknown", outcome.out)
    assert not (file.parent / "tiny-runs").exists()
    document = call("study", "plan", file, "--no-measure", "--json").document
    assert (document["type"], document["total_runs"], document["total_to_do"]) == ("Plan", 30, 30)


def test_dry_run_does_nothing(call, file):
    outcome = call("study", "run", file, "--dry-run")
    assert outcome.code == 0
    assert "Nothing was done." in outcome.out
    assert not (file.parent / "tiny-runs").exists()


def test_a_study_from_run_to_report(call, file):
    outcome = call("study", "run", file, "--workers", 0, "--shard", "1/2", "--json")
    assert outcome.code == 0
    assert 0 < outcome.document["done"] < 30
    outcome = call("study", "run", file, "--workers", 0)
    assert outcome.code == 0
    assert "30 of 30 runs done" in outcome.out
    status = call("study", "status", file, "--json").document
    assert (status["type"], status["done"], status["to_do"]) == ("Status", 30, 0)
    assert "30 of 30 runs done" in call("study", "status", file).out

    outcome = call("study", "report", file)
    assert outcome.code == 0, outcome.err
    folder = file.parent / "tiny-report"
    text = (folder / "report.md").read_text()
    figures = {p.name for p in folder.glob("*.png")}
    assert {"curves.png", "comparison.png"} < figures
    assert figures == set(re.findall(r"\]\((.*?)\)", text))
    assert "| tree" in text
    assert "tree, n=200" in text
    assert "How does the error fall with data?" in outcome.out
    document = call("study", "report", file, "--out", file.parent / "other", "--json").document
    assert len(document["errors"]["n"]) == 6
    assert document["variance"]["tree, n=200"]["runs"] == 5
    assert (file.parent / "other" / "report.md").is_file()


def test_failed_runs_make_the_exit_status_one(call, file):
    file.write_text(SMALL.replace("max_features = 8", "max_features = -1"))
    outcome = call("study", "run", file, "--workers", 0)
    assert outcome.code == 1
    assert "Why runs failed" in outcome.out
    assert "tree" in outcome.out
    assert "15 of 30 runs done, 15 failed" in outcome.out
    again = call("study", "run", file, "--workers", 0, "--no-retry-failed", "--json")
    assert again.code == 1
    assert again.document["failures"][0]["count"] == 15
    report = call("study", "report", file)
    assert report.code == 0
    assert "15 failed run(s) are left out of the curves" in report.out


def test_fresh_makes_the_runs_anew(call, file):
    call("study", "run", file, "--workers", 0)
    store = file.parent / "tiny-runs"
    before = {p.name: p.stat().st_ino for p in store.glob("?" * 20)}
    call("study", "run", file, "--workers", 0)
    assert {p.name: p.stat().st_ino for p in store.glob("?" * 20)} == before
    call("study", "run", file, "--workers", 0, "--fresh")
    after = {p.name: p.stat().st_ino for p in store.glob("?" * 20)}
    assert after.keys() == before.keys()
    assert all(after[k] != before[k] for k in after)


def test_a_report_of_sources(call, file):
    design = 'vary = [["init", "order"], ["init"]]\n'
    file.write_text(SMALL.replace("sizes = [50, 100, 200]", "sizes = [50]\n" + design))
    call("study", "run", file, "--workers", 0)
    outcome = call("study", "report", file)
    assert outcome.code == 0, outcome.err
    assert "What makes runs differ? tree, n=50" in outcome.out
    assert (file.parent / "tiny-report" / "sources-tree-n-50.png").is_file()


def test_a_report_needs_runs(call, file):
    outcome = call("study", "report", file)
    assert outcome.code == 1
    assert "No run of tiny is done" in outcome.err


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


def test_gpus_reach_the_cluster(call, file, monkeypatch):
    from curvewise.study.execute import ray

    asked = {}

    def run_ray(study, address=None, **options):
        asked.update(options, address=address)
        raise KeyboardInterrupt

    monkeypatch.setattr(ray, "run_ray", run_ray)
    call("study", "run", file, "--on", "head:6379", "--gpus", 0.5)
    assert (asked["address"], asked["gpus"]) == ("head:6379", 0.5)
