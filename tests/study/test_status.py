"""How far a study is, whatever lies in its store."""

from __future__ import annotations

import json
import math
import os
import socket
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from curvewise.errors import InputError
from curvewise.nn.training import Training
from curvewise.store.claims import Claims
from curvewise.store.tables import reason_of
from curvewise.store.write import write_run
from curvewise.study import Dataset, Design, Learner, Study

DATA = Dataset(np.arange(80.0).reshape(40, 2), np.arange(40) % 2)
TRACE = "Traceback (most recent call last):\n  File 'x.py', line 3\nValueError: {} is too much"


def make(folder) -> Study:
    learners = {"net": Learner(Training("mlp")), "svm": Learner(estimator="sklearn.svm:SVC")}
    return Study(DATA, learners, Design(sizes=[10, 20], folds=1, seeds=3), folder=folder)


def done(study, job, seconds=2.0):
    y = study.test_examples().y
    write_run(
        study.runs_folder,
        job.coordinates,
        y.astype(np.uint8),
        {"error": 0.0, "seconds": seconds},
        labels=y,
        environment={"evaluations": study.label_digests(), "device": "cpu"},
    )


def failed(study, job, error, attempts=1):
    write_run(
        study.runs_folder, job.coordinates, error=error, metrics={"seconds": 1.0}, environment={"attempts": attempts}
    )


def test_a_study_that_was_never_run(tmp_path):
    status = make(tmp_path).status()
    assert (status.planned, status.missing, status.to_do, status.done) == (12, 12, 12, 0)
    assert not status.is_finished
    assert (status.seconds_spent, status.failures, status.workers) == (0, (), {})
    assert not (tmp_path / "study-runs").exists()


def test_every_state_is_counted_once(tmp_path):
    study = make(tmp_path)
    net, svm = study.jobs[:6], study.jobs[6:]
    for job in (*net[:3], *svm[:2]):
        done(study, job)
    for i, job in enumerate(svm[2:4]):
        failed(study, job, TRACE.format(17 + i))
    failed(study, net[3], "Out of luck", attempts=3)
    (study.runs_folder / net[0].id / "record.json").write_bytes(b"\x00 nothing")
    with Claims(study.runs_folder) as claims:
        assert claims.take(net[5].id)
        status = study.status()
    found = dict(zip(*status.columns().values(), strict=True))
    assert found == {"done": 4, "failed": 3, "outdated": 0, "damaged": 1, "running": 1, "missing": 3}
    assert sum(found.values()) == status.planned == 12
    assert status.to_do == 12 - 4 - 1  # what failed three times is left alone
    assert status.workers == {f"{socket.gethostname()}, process {os.getpid()}": 1}
    assert status.seconds_spent == 4 * 2.0 + 3 * 1.0
    assert len(status.problems) == 1
    assert net[0].id in status.problems[0]
    assert any("damaged" in w for w in status.warnings)
    json.dumps(status.to_dict(), allow_nan=False)


def test_the_numbers_of_the_sentence_add_up(tmp_path):
    """Each run is counted once, and what will be made again is said behind its number."""
    study = make(tmp_path)
    for job in study.jobs[:4]:
        done(study, job)
    for job in study.jobs[4:]:
        failed(study, job, "no")
    said = "12 runs: 4 finished, 8 failed, 0 remaining. `run` will try the failed runs again. "
    assert study.status().summary().startswith(said)
    assert "the remaining ones" not in study.status().summary()
    for job in study.jobs[4:6]:
        failed(study, job, "no", attempts=3)
    (study.runs_folder / study.jobs[0].id / "record.json").write_bytes(b"{")
    said = "12 runs: 3 finished, 8 failed, 1 remaining (1 damaged). `run` will try 6 failed runs again. "
    assert study.status().summary().startswith(said)
    for job in study.jobs[6:]:
        failed(study, job, "no", attempts=3)
    assert "`run` will try none of the failed runs again" in study.status().summary()


def test_failures_are_gathered_by_their_reason(tmp_path):
    study = make(tmp_path)
    net, svm = study.jobs[:6], study.jobs[6:]
    for i, job in enumerate((*net[:2], svm[0])):
        failed(study, job, TRACE.format(1.5 * i))
    failed(study, svm[1], "Something else")
    first, second = study.status().failures
    assert (first.count, first.learners) == (3, ("net", "svm"))
    assert first.message == "ValueError: 0.0 is too much"
    assert first.example == net[0].id
    assert (second.count, second.message) == (1, "Something else")
    assert "3 failed (net, svm): ValueError" in study.status().summary()


def test_time_left_follows_from_stored_runs(tmp_path):
    study = make(tmp_path)
    assert math.isnan(study.status().seconds_left)
    for name in ("net", "svm"):
        for n in (10, 20):
            done(study, next(j for j in study.jobs if j.name == name and j.n == n), seconds=3.0)
    assert study.status().seconds_left == pytest.approx(8 * 3.0)


def test_a_finished_study(tmp_path):
    study = make(tmp_path)
    for job in study.jobs:
        done(study, job)
    status = study.status()
    assert status.is_finished
    assert status.summary().startswith("12 runs: 12 finished, 0 remaining.")


def test_runs_that_ignore_their_seed_are_noticed(tmp_path):
    names = {"bayes": "sklearn.naive_bayes:GaussianNB", "tree": "sklearn.tree:ExtraTreeClassifier"}
    rng = np.random.default_rng(0)
    data = Dataset(rng.normal(size=(120, 6)), np.arange(120) % 2)
    design = Design(sizes=[20, 40], folds=2, seeds=3)
    study = Study(data, {k: Learner(estimator=v) for k, v in names.items()}, design, folder=tmp_path)
    for found in (study.run(workers=0, progress=False), study.status()):
        (told,) = (w for w in found.warnings if "identical" in w)
        assert told.startswith(
            "bayes: 3 runs with different seeds made identical predictions on every training subset."
        )
        assert "may ignore its seed" in told
    once = replace(study, design=replace(design, seeds=1))
    assert not any("identical" in w for w in once.status().warnings)


def test_perfect_runs_do_not_show_that_seeds_are_ignored(tmp_path):
    y = np.arange(120) % 2
    data = Dataset(np.random.default_rng(0).normal(0, 0.1, (120, 4)) + 9 * y[:, None], y)
    forest = Learner(estimator="sklearn.ensemble:RandomForestClassifier", options={"n_estimators": 5})
    study = Study(data, {"forest": forest}, Design(sizes=[20, 40], folds=2, seeds=2), folder=tmp_path)
    assert not any("identical" in w for w in study.run(workers=0, progress=False).warnings)
    assert set(study.frame()["error"]) == {0.0}


def test_diverged_runs_are_counted(tmp_path):
    study = make(tmp_path)
    failed(study, study.jobs[0], "The training diverged: losses for 'test' are not finite.")
    failed(study, study.jobs[1], "Out of luck")
    status = study.status()
    assert (status.failed, status.diverged) == (2, 1)
    assert status.summary().startswith("12 runs: 0 finished, 2 failed (1 diverged), 10 remaining.")
    assert status.learners["net"] == {"runs": 6, "finished": 0, "failed": 2, "remaining": 4, "seconds": 2.0}


def test_what_was_made_again_is_said(tmp_path):
    bayes = Learner(estimator="sklearn.naive_bayes:GaussianNB")
    study = Study(DATA, {"bayes": bayes}, Design(sizes=[10], folds=2), folder=tmp_path)
    assert study.run(workers=0, progress=False).warnings == ()
    (study.runs_folder / study.jobs[0].id / "record.json").write_text("{")
    status = study.run(workers=0, progress=False)
    assert status.done == 2
    assert status.warnings == ("1 run repeated after a failure, damage or a change of the study.",)
    assert study.run(workers=0, progress=False).warnings == ()


def test_where_to_run_is_checked(tmp_path):
    with pytest.raises(InputError, match="on='slurm': use 'local', 'ray'"):
        make(tmp_path).run("slurm")


@settings(max_examples=40, deadline=None)
@given(
    junk=st.binary(max_size=60)
    | st.sampled_from([b"{}", b"[]", b"null", b'{"schema": 1}', b'{"schema": 99}', b"[" * 5000]),
    cut=st.integers(0, 400),
    whole=st.booleans(),
)
def test_no_record_whatever_is_in_it_stops_the_status(tmp_path_factory, junk, cut, whole):
    study = make(tmp_path_factory.mktemp("store"))
    done(study, study.jobs[0])
    done(study, study.jobs[1])
    record = study.runs_folder / study.jobs[0].id / "record.json"
    text = record.read_bytes()
    assume(whole or not text[cut : cut + 1].isspace())  # which JSON does not mind
    record.write_bytes(junk if whole else text[:cut] + text[cut + 1 :])
    status = study.status()
    assert status.done == 1
    assert status.damaged == 1
    assert study.plan(measure=False).total_to_do == 11


def test_a_record_that_is_a_folder_or_gone(tmp_path):
    study = make(tmp_path)
    for job in study.jobs[:2]:
        done(study, job)
        (study.runs_folder / job.id / "record.json").unlink()
    (study.runs_folder / study.jobs[0].id / "record.json").mkdir()
    assert study.status().damaged == 2


def test_a_missing_array_makes_a_run_due(tmp_path):
    study = make(tmp_path)
    done(study, study.jobs[0])
    (study.runs_folder / study.jobs[0].id / "predictions.npy").unlink()
    status = study.status()
    assert (status.done, status.outdated, status.to_do) == (0, 1, 12)


@pytest.mark.parametrize(
    ("text", "reason"), [(TRACE.format(3), "ValueError: 3 is too much"), ("", "no reason given"), ("a\n\n", "a")]
)
def test_the_reason_is_the_last_line(text, reason):
    assert reason_of(text) == reason
    assert len(reason_of("x" * 5000)) < 310
