"""Poked runs and their twins: pairs that are known by construction, joined by their seeds."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import curvewise as cw
from curvewise.cli import main
from curvewise.errors import CurvewiseWarning, InputError, quietly
from curvewise.nn.training import Training
from curvewise.report.study import study_report
from curvewise.store.read import read_run
from curvewise.store.tables import _is_undone, twin_records
from curvewise.study import Dataset, Design, Evaluation, Learner, Study, binary_groupings, load_study
from curvewise.study.status import planned_runs
from curvewise.variance.sources import measure_twins

ALL = ["init", "order", "augmentation"]
SIX = [ALL, ["init"], ["order"], ["augmentation"], ["poke"], [*ALL, "poke"]]


def make(folder: Path, *, factor: float = 1.0, epoch: object = 0, **design: object) -> Study:
    """Sharp classes and short trainings, so that runs with other seeds disagree much.

    A factor of 1 nudges nothing: a run and its twin are the same, and any other pair is not.
    """
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(4, 6))
    y = np.arange(600) % 4
    data = Dataset((centres[y] + rng.normal(size=(600, 6))).astype(np.float32), y)
    net = Learner(Training("mlp", options={"width": 8}, rate=0.1, epochs=2, batch=16))
    given = {
        "sizes": [100],
        "test": 0.5,
        "folds": 1,
        "seeds": 6,
        "vary": SIX,
        "poke": {"epoch": epoch, "factor": factor},
    }
    return Study(data, {"net": net}, Design(**{**given, **design}), folder=folder)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Study:
    study = make(tmp_path_factory.mktemp("twins"), epoch=[0, 1, 2])
    assert study.run(workers=0, progress=False).failed == 0
    return study


def test_pairs_are_the_known_ones(made: Study):
    with pytest.warns(CurvewiseWarning, match=r"1 poked run\(s\) have no twin"):  # the seventh of the last experiment
        found = made.twins()
    assert found.when == (0.0, 1.0, 2.0)
    assert found.runs == 6
    assert [d.estimate for d in found.disagreement] == [0.0, 0.0, 0.0]
    # By hand, over all pairs of the six runs in which everything varies.
    runs = np.asarray(made.predictions(vary="+".join(ALL)).values[:])
    apart = [(a != b).mean() for i, a in enumerate(runs) for b in runs[:i]]
    assert found.seeds.estimate == pytest.approx(np.mean(apart))
    assert found.seeds.estimate > 0.05


def test_a_real_nudge_is_that_of_the_same_seeds(tmp_path: Path):
    study = make(tmp_path, factor=30.0, vary=[ALL, [*ALL, "poke"]])
    study.run(workers=0, progress=False)
    found = study.twins()
    one, two = (np.asarray(study.predictions(vary=v).values[:]) for v in ("+".join(ALL), "+".join([*ALL, "poke"])))
    assert found.disagreement[0].estimate == pytest.approx((one != two).mean())
    assert 0 < found.disagreement[0].estimate < found.seeds.estimate


def test_runs_of_a_study_that_cannot_be_matched_are_refused(made: Study):
    plain, poked = made.predictions(vary="+".join(ALL)), made.predictions(vary="+".join([*ALL, "poke"]), poke=0)
    with pytest.raises(InputError, match=r"cannot be matched.*study\.twins\(\)"):
        measure_twins(plain, poked)
    # Without their names they are one place apart, as the first twin is in the experiment that only pokes.
    bare = [replace(p, run_ids=None) for p in (plain, poked)]
    apart = (np.asarray(plain.values[:]) != np.asarray(poked.values[:])).mean()
    assert apart > 0.05
    with pytest.raises(InputError, match=r"agree far more with another run.*study\.twins\(\)"):
        measure_twins(*bare)


def test_the_epoch_of_the_nudge_is_a_coordinate(made: Study):
    assert set(made.frame()["poke"].dropna()) == {0.0, 1.0, 2.0}
    with pytest.raises(InputError, match=r"more than one training: poke is 0, 1, 2\. Choose one, such as poke=0"):
        made.predictions(vary="poke")
    assert made.predictions(vary="poke", poke=1).runs == 6
    with pytest.raises(InputError, match="leave it out"):
        made.twins(vary="poke")
    # Ids of runs with one epoch are those of a study that names only it.
    alone = {job.id for job in make(made.folder, epoch=1).jobs}
    assert alone < {job.id for job in made.jobs}


def test_trainings_are_not_poked_after_their_end(tmp_path: Path):
    study = make(tmp_path, epoch=[0, 4], grid={"epochs": [2, 8]})
    poked = {(job.settings["epochs"], job.poke.epoch) for job in study.jobs if job.poke is not None}
    assert poked == {(2, 0), (8, 0), (8, 4)}
    with pytest.raises(InputError, match="poke has epoch 4, and every training of the study ends before it"):
        make(tmp_path, epoch=[0, 4]).plan(measure=False)
    for wrong in ([], [0, 0], [-1], ["late"]):
        with pytest.raises(InputError, match="or a list of epochs"):
            make(tmp_path, epoch=wrong)


def test_a_file_may_list_epochs(tmp_path: Path):
    study = replace(make(tmp_path, epoch=[0, 1]), data="digits")
    study.save(tmp_path / "study.toml")
    assert "epoch = [0, 1]" in (tmp_path / "study.toml").read_text()
    assert load_study(tmp_path / "study.toml").design == study.design


def test_a_poke_as_it_usually_is_is_a_source(tmp_path: Path):
    study = make(tmp_path, vary=[["init", "order"], ["poke"]], poke={}, seeds=3)
    study.run(workers=0, progress=False)
    with quietly():
        assert study.sources().sources == ("poke",)


def test_a_nudge_that_early_stopping_undid_makes_no_pair(tmp_path: Path):
    study = make(tmp_path, factor=30.0, epoch=3, vary=[ALL, [*ALL, "poke"]], seeds=12)
    training = Training(
        *("mlp", {"width": 8}), rate=0.5, epochs=30, batch=16, schedule="early-stop", validation=0.3, patience=3
    )
    study = replace(study, learners={"net": Learner(training)})
    assert study.run(workers=0, progress=False).failed == 0
    poked = [job for job in study.jobs if job.poke is not None]
    undone = [any("was undone" in n for n in read_run(study.runs_folder / job.id).notes) for job in poked]
    assert 3 <= sum(undone) <= 9
    with pytest.warns(CurvewiseWarning, match=rf"{sum(undone)} poked run\(s\) are left out"):
        found = study.twins()
    assert found.runs == 12 - sum(undone)
    one, two = (np.asarray(study.predictions(vary=v).values[:]) for v in ("+".join(ALL), "+".join([*ALL, "poke"])))
    assert found.disagreement[0].estimate == pytest.approx((one != two)[~np.array(undone)].mean())
    assert not (one != two)[undone].any()
    # Runs that were stored before there was a note are known by their best epoch.
    records = {study.runs_folder / r.job.id: {**r.record, "notes": []} for r in planned_runs(study)}
    assert len(twin_records(records).reference) == found.runs
    late = {p: r for p, r in records.items() if "poke" not in r["coordinates"] or _is_undone(r)}
    with pytest.raises(InputError, match="Nudge at an earlier epoch"):
        twin_records(late)


def test_no_twins_is_an_error(tmp_path: Path):
    study = make(tmp_path, vary=[["init"], ["order", "poke"]], seeds=3)
    study.run(workers=0, progress=False)
    with pytest.warns(CurvewiseWarning, match="2 poked"), pytest.raises(InputError, match="at least three"):
        study.twins()  # only the first run has one
    study = make(tmp_path, vary=[["init"]], poke=None, seeds=3)
    with pytest.raises(InputError, match=r"None of the 3 run\(s\) had a weight nudged.*variance-sources"):
        study.twins()


def test_predictions_by_what_trainings_differ_in(tmp_path: Path):
    study = make(tmp_path, vary=["init"], poke=None, seeds=6, grid={"epochs": [8, 16]})
    study.run(workers=0, progress=False)
    found = study.predictions_by("epochs")
    assert list(found) == [8, 16]
    assert found[8].run_ids.tolist() == study.predictions(epochs=8).run_ids.tolist()
    with quietly():  # six runs are few
        sweep = cw.variance.measure_sweep(found, name="epochs")
    assert sweep.values == (8, 16)
    assert sweep[8].error.estimate == pytest.approx(study.measurements(epochs=8).error.mean())
    assert list(study.predictions_by("learner", epochs=8)) == ["net"]
    with pytest.raises(InputError, match="is not a coordinate"):
        study.predictions_by("width")


def test_sources_are_held_against_the_widest(made: Study):
    found = made.sources()
    assert found.sources == ("init", "order", "augmentation", "poke")
    assert found.baseline_runs == 6
    assert found.baseline_test_set_std.estimate == pytest.approx(
        float(np.std(made.predictions(vary="+".join(ALL)).errors().mean(axis=1), ddof=1))
    )
    with pytest.raises(InputError, match="vary each source alone"):
        make(made.folder, vary=["init"], poke=None).sources()


def test_a_report_has_sources_and_twins(made: Study):
    found = study_report(made).found
    (sources,), (twins,) = found["sources"].values(), found["twins"].values()
    assert sources.sources == ("init", "order", "augmentation", "poke")
    assert twins.runs == 6
    assert "1 poked run(s) have no twin" in twins.warnings[-1]


def test_a_report_has_sweeps_and_test_sets(tmp_path: Path):
    study = make(tmp_path, vary=["init", "order"], poke=None, grid={"rate": [0.1, 0.2]})
    other = Dataset(study.data.x[::2] + 1, study.data.y[::2])
    study = replace(study, evaluate={"moved": Evaluation(data=other)})
    study.run(workers=0, progress=False)
    report = study_report(study)
    ((name, sweep),) = report.found["sweeps"].items()
    assert name == "rate: net, n=100"
    assert sweep.values == (0.1, 0.2)
    assert set(report.found["test_sets"]) == {"net, rate=0.1, n=100", "net, rate=0.2, n=100"}
    sets = study.predictions_by("evaluation", rate=0.1)
    assert list(sets) == ["test", "moved"]
    with quietly():
        compared = cw.variance.compare_test_sets(sets)
    shown = report.found["test_sets"]["net, rate=0.1, n=100"]
    assert shown.pairs[0].correlation == compared.pairs[0].correlation
    # The same from the store, on the command line.
    for command in (["sweep", "--by", "rate"], ["test-sets", "--where", "rate=0.1"]):
        assert main(["variance", command[0], str(study.runs_folder), *command[1:]]) == 0


def test_the_store_is_joined_on_the_command_line(made: Study, capsys: pytest.CaptureFixture[str]):
    assert main(["variance", "twins", str(made.runs_folder), "--json"]) == 0
    out = capsys.readouterr()
    found = json.loads(out.out)
    assert found["when"] == [0, 1, 2]
    assert found["runs"] == 6
    assert "joined by their seeds" in out.err
    with pytest.warns(CurvewiseWarning):
        assert found["seeds"]["estimate"] == pytest.approx(made.twins().seeds.estimate)


def test_binary_tasks_are_trained_one_by_one(tmp_path: Path):
    """Figure 6 with a training for each task; its error is that of the study's own measurements."""
    study = make(tmp_path, vary=["init", "order"], poke=None, grid={"classes": binary_groupings(4)})
    study.run(workers=0, progress=False)
    tasks = study.predictions_by("classes")
    assert next(iter(tasks)) == "0, 0, 0, 1"
    found = cw.variance.measure_bipartitions(tasks)
    assert (found.tasks, found.runs, found.trained) == (7, 6, True)
    own = [study.measurements(classes=groups).error.mean() for groups in study.design.grid["classes"]]
    np.testing.assert_allclose(found.errors, own)


def test_a_study_and_its_store_choose_the_same_copy_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """The experiment that only pokes makes more twins of the first run; folders are in another order than the plan."""
    for vary in (SIX, [ALL, [*ALL, "poke"], ["poke"]]):
        study = make(tmp_path, factor=300.0, vary=vary)
        study.run(workers=0, progress=False)
        with quietly():
            found = study.twins().disagreement[0].estimate
        capsys.readouterr()
        assert main(["variance", "twins", str(study.runs_folder), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["disagreement"][0]["estimate"] == pytest.approx(found, rel=1e-12)


def test_nudges_of_several_factors_are_not_mixed(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    found = {}
    for factor in (1.0, 1e4):
        study = make(tmp_path, factor=factor, epoch=[0, 1], vary=[ALL, [*ALL, "poke"]])
        study.run(workers=0, progress=False)
        with quietly():
            found[factor] = [d.estimate for d in study.twins().disagreement]
    store = str(study.runs_folder)
    assert main(["variance", "twins", store]) != 0
    said = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert "several factors" in said
    assert "--where poke_factor=1" in said
    for factor, both in found.items():
        assert main(["variance", "twins", store, "--json", "--where", f"poke_factor={factor}"]) == 0
        got = json.loads(capsys.readouterr().out)["disagreement"]
        assert [d["estimate"] for d in got] == pytest.approx(both)
        chosen = ["--where", f"poke_factor={factor}", "--where", "poke_epoch=1"]
        assert main(["variance", "twins", store, "--json", *chosen]) == 0
        got = json.loads(capsys.readouterr().out)["disagreement"]
        assert [d["estimate"] for d in got] == pytest.approx(both[1:])
    assert main(["variance", "twins", store, "--where", "poke_factor=7"]) != 0
    assert "1e4" in (said := capsys.readouterr().err) or "10000" in said


def test_sources_take_the_first_nudge_that_a_training_reaches(tmp_path: Path):
    study = make(tmp_path, epoch=[4, 0], grid={"epochs": [2, 8]}, seeds=3)
    study.run(workers=0, progress=False)
    with quietly():
        assert "poke" in study.sources(epochs=2).sources
        assert "poke" in study.sources(epochs=8).sources


def test_a_store_says_that_test_sets_share_examples_and_asks_for_the_coordinate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    noisy = {"noisy": Evaluation(perturbation="rotation", magnitude=10)}
    study = replace(make(tmp_path, vary=ALL, poke=None, grid={"epochs": [0, 2]}), data="digits", evaluate=noisy)
    study.run(workers=0, progress=False)
    store = str(study.runs_folder)
    assert main(["variance", "test-sets", store, "--where", "epochs=2"]) == 0
    assert "test and noisy share " in " ".join(capsys.readouterr().err.split())
    assert main(["variance", "sweep", store]) != 0
    assert "--by" in capsys.readouterr().err
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["variance", "sweep", store, "--by", "epochs"]) == 0
    found = capsys.readouterr()
    assert "…" not in found.out
    assert "hits" not in found.err


def test_tasks_for_another_number_of_classes_name_the_option(tmp_path: Path):
    study = make(tmp_path, vary=ALL, poke=None, grid={"classes": binary_groupings(10, 3)})
    with pytest.raises(InputError, match=r"variance-binary, say classes=4"):
        study.plan(measure=False)
