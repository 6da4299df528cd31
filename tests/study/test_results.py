"""What the lenses read of a study: nothing mixed up, nothing dropped in silence."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import curvewise as cw
from curvewise.errors import CurvewiseWarning, InputError, StoreError
from curvewise.nn.task import Keep
from curvewise.nn.training import Training
from curvewise.store.write import write_run
from curvewise.study import Dataset, Design, Evaluation, Learner, Study

RNG = np.random.default_rng(0)
DATA = Dataset(RNG.random((100, 2)), np.arange(100) % 3, RNG.random((50, 2)), np.arange(50) % 3, ("a", "b", "c"))
NET = Learner(Training("mlp", options={"width": 4}))


def make(folder, learners=None, **design) -> Study:
    given = {"sizes": [12, 24, 48], "folds": [2, 1, 1], "seeds": 3, **design}
    learners = learners or {"net": NET, "wide": Learner(Training("mlp", options={"width": 8}))}
    shifted = Dataset(DATA.test_x[:20], DATA.test_y[:20], classes=DATA.classes)
    return Study(DATA, learners, Design(**given), {"shifted": Evaluation(shifted)}, folder=folder)


def said(job, evaluation: str, examples: int) -> np.ndarray:
    """What a made-up run predicts, by its id."""
    drawn = np.random.default_rng([int(job.id[:8], 16), evaluation == "test"])
    return drawn.integers(0, 3, examples).astype(np.uint8)


def store(study, jobs=None, **changes):
    sets = study.evaluation_sets
    for job in [j for j in study.jobs if not j.is_search] if jobs is None else jobs:
        predictions = {k: said(job, k, len(s.y)) for k, s in sets.items()}
        errors = {k: float(np.mean(p != sets[k].y)) for k, p in predictions.items()}
        parts = {
            "predictions": predictions,
            "metrics": {
                "error": errors["test"],
                "error.shifted": errors["shifted"],
                "loss": 1.0 + job.n,
                "train_error": 0.01,
                "gap": errors["test"] - 0.01,
                "seconds": 0.5,
                "epochs": 19.8,
            },
            "labels": {k: s.y for k, s in sets.items()},
            "arrays": {"probabilities": np.eye(3, dtype=np.float32)[predictions["test"]]},
            "environment": {"evaluations": study.label_digests(), "device": "cpu"},
            **changes,
        }
        write_run(study.runs_folder, job.coordinates, overwrite=True, **parts)


def fail(study, jobs, error="ValueError: no"):
    for job in jobs:
        write_run(study.runs_folder, job.coordinates, error=error, overwrite=True)


def test_measurements_are_one_row_per_run(tmp_path):
    study = make(tmp_path)
    store(study)
    m = study.measurements()
    assert len(m) == len(study.jobs) == 2 * (2 + 1 + 1) * 3
    assert m.learners == ("net", "wide")
    assert m.unit.name == "fraction"
    for row, job in enumerate(study.jobs):
        assert m.labels["run"][row] == job.id
        assert (m.learner[row], m.n[row], m.labels["fold"][row]) == (job.name, job.n, job.fold)
        assert m.labels["init_seed"][row] == job.seeds["init"]
        assert m.error[row] == np.mean(said(job, "test", 50) != DATA.test_y)
    assert set(m.labels["status"]) == {"done"}
    assert m.notes == ()


def test_other_metrics_and_other_sets(tmp_path):
    study = make(tmp_path)
    store(study)
    shifted = study.measurements(evaluation="shifted")
    expected = [np.mean(said(j, "shifted", 20) != DATA.test_y[:20]) for j in study.jobs]
    np.testing.assert_allclose(shifted.error, expected)
    # The name that its column has in frame() and in the store is another way to ask for the same.
    named = study.measurements("error.shifted")
    assert (named.error.tolist(), named.unit) == (shifted.error.tolist(), shifted.unit)
    assert cw.load_measurements(study.runs_folder, metric="error.shifted").unit == shifted.unit
    loss = study.measurements("loss", learner="wide", n=24)
    assert loss.unit.name == "loss"
    assert loss.error.tolist() == [25.0] * 3


def test_the_learning_lens_takes_them_as_they_are(tmp_path):
    study = make(tmp_path)
    store(study)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        curves = cw.fit_learning_curves(study.measurements())
    assert [c.learner for c in curves] == ["net", "wide"]


def test_when_every_run_failed_the_first_reason_is_told(tmp_path):
    study = make(tmp_path)
    fail(study, study.jobs, "Traceback (most recent call last):\n  …\nMemoryError: 8 GB")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CurvewiseWarning)
        assert np.isnan(study.measurements().error).all()
    assert "12 of 24 runs failed (net): MemoryError: 8 GB" in [str(w.message) for w in caught]
    told = r"All 3 runs failed\. The first: MemoryError: 8 GB\. study\.status\(\) lists the reasons"
    with pytest.raises(InputError, match=told):
        study.predictions("net", n=24)
    with pytest.raises(InputError, match="All 3 runs failed"):
        study.predictions("wide", n=24)
    stored = r"All 24 runs failed\. The first: MemoryError: 8 GB\. The whole error of each run is in its record\.json"
    with pytest.raises(InputError, match=stored):
        cw.load_measurements(study.runs_folder)
    with pytest.raises(InputError, match="All 3 runs failed"):
        cw.load_predictions(study.runs_folder, learner="wide", where={"n": 24})
    with pytest.raises(InputError, match="All 24 runs failed"):
        cw.transfer.load_risks(study.runs_folder)
    other = make(tmp_path / "other")
    fail(other, other.jobs[:2])
    with pytest.raises(InputError, match=r"\(2 failed, 4 missing\).* The first that failed: ValueError: no\. study\."):
        other.predictions("net", n=12)


def test_failed_runs_are_nan_and_told(tmp_path):
    study = make(tmp_path)
    store(study)
    fail(study, study.jobs[:2])
    with pytest.warns(CurvewiseWarning, match="2 of 24 runs failed"):
        m = study.measurements()
    assert len(m) == 24
    assert np.isnan(m.error[:2]).all()
    assert np.isfinite(m.error[2:]).all()
    assert m.labels["status"][:3].tolist() == ["failed", "failed", "done"]
    assert m.notes == ("2 of 24 runs failed (net): ValueError: no",)


def test_missing_damaged_and_outdated_runs_are_counted(tmp_path):
    study = make(tmp_path)
    first, second, third, *rest = study.jobs
    store(study, rest)
    store(study, [first])
    (study.runs_folder / first.id / "record.json").write_text("{")
    old = {"test": "of other examples", "shifted": "too"}
    store(study, [second], environment={"evaluations": old})
    with pytest.warns(CurvewiseWarning) as caught:
        m = study.measurements()
    assert len(m) == 21
    assert not {first.id, second.id, third.id} & set(m.labels["run"])
    told = " ".join(str(w.message) for w in caught)
    assert "1 of 24 planned runs are not finished yet" in told
    assert "1 of 24 planned runs are damaged" in told
    assert "1 of 24 planned runs have no error for the current evaluation set" in told
    assert len(m.notes) == 3


def test_overlapping_subsets_are_in_the_notes(tmp_path):
    study = make(tmp_path, sizes=[60], folds=2)
    store(study)
    assert any("share examples" in note for note in study.measurements().notes)


def test_settings_of_a_grid_make_curves_of_their_own(tmp_path):
    study = make(tmp_path, {"net": NET}, grid={"batch": [8, 16], "augmentation": [[], ["flip"]]})
    store(study)
    m = study.measurements()
    assert m.learners == (
        "net, augmentation=none, batch=8",
        "net, augmentation=flip, batch=8",
        "net, augmentation=none, batch=16",
        "net, augmentation=flip, batch=16",
    )
    assert set(m.labels["batch"]) == {8, 16}
    assert len(study.measurements(batch=8, augmentation=["flip"])) == len(m) / 4


def test_predictions_are_those_of_the_runs_asked_for(tmp_path):
    study = make(tmp_path)
    store(study)
    p = study.predictions("wide", n=24)
    jobs = [j for j in study.jobs if j.name == "wide" and j.n == 24]
    assert p.run_ids.tolist() == [j.id for j in jobs]
    np.testing.assert_array_equal(np.asarray(p.values), [said(j, "test", 50) for j in jobs])
    np.testing.assert_array_equal(p.labels, DATA.test_y)
    assert p.classes == ("a", "b", "c")
    m = study.measurements(learner="wide", n=24)
    np.testing.assert_allclose(p.errors().mean(axis=1), m.error)
    shifted = study.predictions("wide", n=24, evaluation="shifted")
    np.testing.assert_array_equal(np.asarray(shifted.values), [said(j, "shifted", 20) for j in jobs])
    assert shifted.labels.tolist() == DATA.test_y[:20].tolist()


def test_the_variance_lens_takes_them_as_they_are(tmp_path):
    study = make(tmp_path, {"net": NET}, sizes=[24], folds=1, seeds=8)
    store(study)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        found = cw.decompose_variance(study.predictions())
    assert found.runs == 8


def test_probabilities_where_they_were_kept(tmp_path):
    study = make(tmp_path)
    store(study)
    p = study.predictions("net", n=24, probabilities=True)
    assert (p.kind, p.shape) == ("probabilities", (3, 50))
    np.testing.assert_array_equal(p.errors(), study.predictions("net", n=24).errors())
    store(study, arrays={})
    with pytest.raises(InputError, match=r"\[keep\] probabilities = true"):
        study.predictions("net", n=24, probabilities=True)


def test_nothing_is_read_before_it_is_asked_for(tmp_path):
    study = make(tmp_path)
    store(study)
    p = study.predictions("net", n=24)
    file = study.runs_folder / p.run_ids[2] / "predictions.npy"
    file.write_bytes(file.read_bytes()[:-1] + b"\x07")
    np.testing.assert_array_equal(p.values[:2], np.asarray(p.values[:2]))
    with pytest.raises(StoreError, match="damaged"):
        np.asarray(p.values)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({}, "learner is 'net', 'wide'; n is 12, 24, 48. Choose one, such as learner='net', n=48"),
        ({"learner": "net"}, "n is 12, 24, 48. Choose one, such as n=48"),
        ({"learner": "nett"}, "learner='nett': no run of the study has it; there is 'net', 'wide'"),
        ({"learner": "net", "n": 13}, "n=13: no run of the study has it; there is 12, 24, 48"),
        ({"learner": "net", "evaluation": "turned"}, "it has test, shifted"),
        ({"learner": "net", "batch": 3}, "batch= is not a coordinate of this study"),
    ],
)
def test_runs_of_several_trainings_are_not_mixed(tmp_path, choice, message):
    study = make(tmp_path)
    store(study)
    with pytest.raises(InputError, match=re.escape(message)):
        study.predictions(**choice)


def test_variations_are_not_mixed(tmp_path):
    study = make(tmp_path, {"net": NET}, sizes=[24], folds=1, vary=[["init", "order"], ["init"]])
    store(study)
    with pytest.raises(InputError, match=re.escape("vary is 'init+order', 'init'")):
        study.predictions()
    both = [study.predictions(vary=v) for v in ("init", ["init", "order"])]
    assert [len(p.run_ids) for p in both] == [3, 3]
    assert not set(both[0].run_ids) & set(both[1].run_ids)
    assert study.measurements().learners == ("net, vary=init+order", "net, vary=init")


def test_runs_that_are_left_out_are_told(tmp_path):
    study = make(tmp_path)
    store(study)
    small = [j for j in study.jobs if j.name == "net" and j.n == 12]
    fail(study, small[:1])
    with pytest.warns(CurvewiseWarning, match="1 of 6 planned runs are left out: failed"):
        p = study.predictions("net", n=12)
    assert len(p.run_ids) == 5
    assert any("2 different training subsets" in note for note in p.notes)
    assert len(study.predictions("net", n=12, fold=1).run_ids) == 3


def test_runs_on_other_examples_are_refused(tmp_path):
    study = make(tmp_path)
    store(study)
    (job, *_) = [j for j in study.jobs if j.name == "net" and j.n == 24]
    odd = {"test": np.zeros(49, dtype=np.uint8), "shifted": np.zeros(20, dtype=np.uint8)}
    fewer = {"test": DATA.test_y[:49], "shifted": DATA.test_y[:20]}
    store(study, [job], predictions=odd, labels=fewer, arrays={}, environment={})
    with pytest.raises(InputError, match=r"different shapes|different examples"):
        study.predictions("net", n=24)
    other = {"test": np.roll(DATA.test_y, 1), "shifted": DATA.test_y[:20]}
    store(study, [job], labels=other, environment={})
    with pytest.raises(InputError, match=r"different examples.*'test'"):
        study.predictions("net", n=24)


def test_a_study_that_was_not_run_says_so(tmp_path):
    study = make(tmp_path)
    with pytest.raises(InputError, match=re.escape("(24 missing): study.run() first")):
        study.measurements()
    with pytest.raises(InputError, match=r"None of the 3 runs has predictions"):
        study.predictions("net", n=24)


def test_the_frame_is_a_corpus_with_gaps(tmp_path):
    study = make(tmp_path, grid={"batch": [8, 16], "epochs": [5, 20]})
    store(study)
    fail(study, study.jobs[:1])
    frame = study.frame()
    assert len(frame) == len(study.jobs)
    assert frame["run"].is_unique
    done = frame[frame.status == "done"]
    np.testing.assert_allclose(done.gap, done.error - done.train_error)
    assert set(frame.epochs) == {5, 20}  # as asked for
    assert set(done.trained_epochs) == {19.8}  # as it was
    assert set(frame.width) == {4, 8}
    assert "momentum" not in frame  # in which no two differ
    bad = frame[frame.status == "failed"].iloc[0]
    assert (bad.reason, np.isnan(bad.error)) == ("ValueError: no", True)


def test_the_frame_has_what_is_missing_too(tmp_path):
    study = make(tmp_path)
    store(study, study.jobs[:5])
    frame = study.frame()
    assert frame.status.value_counts().to_dict() == {"missing": 19, "done": 5}
    assert frame.error.notna().sum() == 5


def test_a_searched_rate_is_what_was_found(tmp_path):
    learner = Learner(Training("mlp", rate=(0.1, 0.2)))
    study = make(tmp_path, {"net": learner, "fixed": NET}, sizes=[24], folds=1)
    for name, rate in (("net", 0.2), ("fixed", 0.1)):
        jobs = [j for j in study.jobs if j.name == name and not j.is_search]
        store(study, jobs, metrics={"error": 0.1, "error.shifted": 0.1, "rate": rate})
    frame = study.frame()
    assert len(frame) == 6
    assert frame.groupby("learner").rate.unique().map(list).to_dict() == {"net": [0.2], "fixed": [0.1]}


def test_a_real_study_end_to_end(tmp_path):
    pytest.importorskip("torch")
    learners = {
        "net": Learner(Training("mlp", options={"width": 16}, rate=(0.02, 0.2), epochs=5)),
        "bayes": Learner(estimator="sklearn.naive_bayes:GaussianNB"),
    }
    design = Design(sizes=[50, 100, 200], folds=1, seeds=2)
    study = Study("digits", learners, design, folder=tmp_path, keep=Keep(probabilities=True))
    status = study.run(workers=0, progress=False, device="cpu")
    assert (status.done, status.failed, status.to_do) == (13, 0, 0)
    m = study.measurements()
    assert len(m) == 12
    assert m.error[m.n == 200].mean() < m.error[m.n == 50].mean()
    p = study.predictions("net", n=200, probabilities=True)
    np.testing.assert_allclose(np.asarray(p.values).sum(axis=2), 1, atol=1e-5)
    frame = study.frame()
    rates = frame[frame.learner == "net"].rate.unique()
    assert len(rates) == 1
    assert rates[0] in (0.02, 0.2)
    again = replace(study, keep=Keep(probabilities=True))
    assert again.run(workers=0, progress=False, device="cpu").done == 13
    np.testing.assert_array_equal(again.measurements().error, m.error)


def test_data_is_read_once_for_a_run_and_its_results(tmp_path, monkeypatch):
    from curvewise.study.spec import study as module

    reads = []

    def counted(*args, **options):
        reads.append(args)
        return read(*args, **options)

    read = module.load_dataset
    monkeypatch.setattr(module, "load_dataset", counted)
    learner = Learner(estimator="sklearn.naive_bayes:GaussianNB")
    design, noisy = Design(sizes=[100], folds=1, seeds=2), Evaluation(perturbation="noise", magnitude=0.1)
    study = Study(
        {"name": "digits", "examples": 300}, {"bayes": learner}, design, {"noisy": noisy}, folder=tmp_path, trust=False
    )
    study.run(workers=0, progress=False)
    assert study.predictions(evaluation="noisy").runs == 2
    assert len(study.evaluation_sets["noisy"].y) == 60
    assert len(reads) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learners": [Learner(estimator="sklearn.svm:SVC")]}, "learners is a list: give a dict of them by name"),
        ({"learners": {"a": "sklearn.svm:SVC"}}, r"learners\.a is a str: give a curvewise\.study\.Learner"),
        ({"design": {"sizes": [10]}}, r"design is a dict: give a curvewise\.study\.Design"),
        ({"keep": {"probabilities": True}}, r"keep is a dict: give a curvewise\.study\.Keep"),
        ({"evaluate": {"b": "digits"}}, r"evaluate\.b is a str: give a curvewise\.study\.Evaluation"),
    ],
)
def test_parts_of_a_study_are_of_their_class(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Study(**{"data": "digits", "learners": {"a": Learner(estimator="sklearn.svm:SVC")}, **options})
