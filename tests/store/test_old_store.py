"""A store written by curvewise 0.1.0, before the packages were rearranged, remains readable and is resumed."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import curvewise as cw
from curvewise.store.read import list_runs, read_run
from curvewise.store.tables import export_store
from curvewise.store.verify import verify_store
from curvewise.store.write import write_run

WRITTEN = Path(__file__).parent / "data" / "written_by_0.1.0"
STUDIES = ("estimators", "networks", "failed", "numbers")
RUNS = {"estimators": 12, "networks": 9, "failed": 2, "numbers": 6, "own": 5}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy, so that nothing is ever written beside the fixture."""
    return Path(shutil.copytree(WRITTEN, tmp_path_factory.mktemp("old") / "stores"))


def folders(store: Path) -> set[str]:
    return {path.parent.name for path in store.glob("*/record.json")}


@pytest.mark.parametrize("name", RUNS)
def test_every_run_is_sound_and_is_read(stores: Path, name: str) -> None:
    check = verify_store(stores / name, progress=False)
    assert check.sound, check.summary()
    runs = {run.id: read_run(run.path) for run in list_runs(stores / name)}
    assert runs.keys() == folders(stores / name)
    assert len(runs) == RUNS[name]
    for run in runs.values():
        assert (run.error is not None) == (run.status == "failed")
        for array in run.arrays:
            assert len(run.array(array)) in (30, 60, 120)
        for checkpoint in run.files:
            assert all(np.isfinite(weights).all() for weights in run.checkpoint(checkpoint).values())


@pytest.mark.parametrize("name", STUDIES)
def test_the_same_study_has_the_same_ids_and_makes_nothing_anew(stores: Path, name: str) -> None:
    if name in ("networks", "numbers"):
        pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    study = cw.load_study(stores / f"{name}.toml", trust=True)
    stamps = {path: path.stat().st_mtime_ns for path in (stores / name).glob("*/record.json")}
    frame = study.frame()
    planned = set(frame["run"])
    # A search for the learning rate is a run of its own that the frame does not list.
    assert planned <= folders(stores / name)
    assert len(folders(stores / name) - planned) == (name == "networks")
    status = study.run(workers=0, device="cpu", progress=False, retry_failed=False)
    assert (status.done, status.failed) == (RUNS[name] - (name == "failed"), int(name == "failed"))
    assert {path: path.stat().st_mtime_ns for path in (stores / name).glob("*/record.json")} == stamps


def test_results_are_those_that_were_stored(stores: Path) -> None:
    pytest.importorskip("sklearn")
    study = cw.load_study(stores / "estimators.toml", trust=True)
    measured = study.measurements()
    assert len(measured) == 12
    trees = measured.error[(measured.learner == "tree") & (measured.n == 200)]
    assert trees.tolist() == [0.4]  # as curvewise 0.1.0 reported it
    found = study.predictions("bayes", n=50)
    assert found.shape == (3, 120)
    stored = {run.id: run.metrics["error"] for run in list_runs(stores / "estimators")}
    assert found.errors().mean(axis=1).tolist() == pytest.approx([stored[run] for run in found.run_ids])


def test_a_failed_run_says_why(stores: Path) -> None:
    (run,) = (run for run in list_runs(stores / "failed") if run.status == "failed")
    assert run.id == "039cf9c3361990c8ed7b"
    assert "'max_depth' parameter of DecisionTreeClassifier must be an int" in run.error
    assert "1 failed" in cw.load_study(stores / "failed.toml", trust=True).status().summary()


def test_a_run_of_ones_own_keeps_its_id(stores: Path, tmp_path: Path) -> None:
    old = next(run for run in list_runs(stores / "own") if run.coordinates["seed"] == 2)
    write_run(tmp_path, dict(old.coordinates), read_run(old.path).predictions, dict(old.metrics))
    assert folders(tmp_path) == {old.id}


def test_an_old_store_is_exported(stores: Path, tmp_path: Path) -> None:
    table = export_store(stores / "networks", tmp_path / "runs.csv").read_text().splitlines()
    assert len(table) == 1 + RUNS["networks"]
