"""Studies whose targets are numbers: data, losses, stores and files."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_absolute_error, mean_squared_error

import curvewise as cw
from curvewise.errors import CurvewiseWarning, InputError
from curvewise.nn.task import Keep
from curvewise.nn.training import Training
from curvewise.report.export import export_report
from curvewise.report.study import study_report
from curvewise.study.data.dataset import Dataset
from curvewise.study.data.load import load_dataset
from curvewise.study.spec.design import Design, Learner, settle_learner
from curvewise.study.spec.evaluation import Evaluation
from curvewise.study.study import Study, load_study

MLP = Training("mlp", options={"width": 8}, rate=0.05, epochs=5, batch=16)


def arrays(count: int = 90, numbers: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(count, 4)).astype(np.float32)
    return x, 3 * x @ rng.normal(size=(4, numbers)) + 1 + 0.1 * rng.normal(size=(count, numbers))


def rows(**options: Any) -> Dataset:
    return Dataset(*arrays(), targets="numbers", **options)


def pictures(count: int = 40) -> Dataset:
    """Images, and the same with dark and bright exchanged."""
    x = np.random.default_rng(0).integers(0, 256, size=(count, 1, 8, 8)).astype(np.uint8)
    return Dataset(x, 1 - x / 255, targets="numbers")


def made(tmp_path: Path, data: Any, learners: dict[str, Learner], **options: Any) -> Study:
    options.setdefault("design", Design(sizes=[30, 60], folds=1, seeds=2))
    study = Study(data, learners, folder=tmp_path, **options)
    study.run(workers=0, progress=False)
    return study


# Data


def test_one_number_is_a_row_of_one() -> None:
    x, y = arrays(numbers=1)
    one, other = (Dataset(x, t, targets="numbers") for t in (y[:, 0], y))
    assert one.y.shape == (90, 1)
    assert one.y.dtype == np.float32
    assert one.digest == other.digest


def test_floats_are_numbers_only_where_that_is_said() -> None:
    x, y = arrays(numbers=1)
    with pytest.raises(InputError, match="targets='numbers'"):
        Dataset(x, y[:, 0])
    with pytest.raises(InputError, match="targets='numbers'"):
        Dataset(x, np.zeros((90, 2), dtype=int))
    assert Dataset(x, np.arange(90) % 3).classes == ("0", "1", "2")
    assert Dataset(x, np.arange(90), targets="numbers").classes == ()


@pytest.mark.parametrize(
    ("y", "more", "match"),
    [
        (np.zeros((90, 3, 3)), {}, "axis for the channel"),
        (np.full(90, np.nan), {}, "90 masked, NaN"),
        (np.ma.masked_equal(np.arange(90.0), 3), {}, "1 masked"),
        (np.full(90, 1e300), {}, "too large"),
        (1.7e9 + np.arange(90) / 9, {}, "subtract their mean"),
        (np.array([[0.0, 1e-300], [1.0, 3e-300]] * 45), {}, "channel 1"),
        (2**60 + np.arange(90), {}, "does not tell apart"),
        (np.zeros(89), {}, "89 examples"),
        (np.array(["a"] * 90), {}, "needs numbers"),
        (np.zeros(90), {"classes": ("a",)}, "classes is given"),
        (np.zeros(90), {"targets": "regression"}, "targets='regression'"),
        (np.zeros(90), {"test_x": np.zeros((3, 4)), "test_y": np.zeros((3, 2))}, "one shape"),
        (np.zeros(90, dtype=int), {"targets": "classes", "standardise": True}, "for numbers"),
    ],
    ids=[
        "axes",
        "nan",
        "masked",
        "large",
        "offset",
        "tiny",
        "whole",
        "length",
        "texts",
        "classes",
        "kind",
        "test shape",
        "classes scaled",
    ],
)
def test_wrong_numbers_are_refused(y: Any, more: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        Dataset(arrays()[0], y, **{"targets": "numbers", **more})


@pytest.mark.parametrize(
    ("axes", "moved"),
    [("NCHW", (0, 1, 2, 3)), ("NHWC", (0, 2, 3, 1)), (None, (0, 1, 2, 3))],
    ids=["first", "last", "told by the shape"],
)
def test_images_to_predict_come_out_of_a_file(tmp_path: Path, axes: Any, moved: Any) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, size=(6, 3, 8, 9)).astype(np.uint8)
    y = rng.normal(size=(6, 2, 8, 9))
    np.savez(tmp_path / "d.npz", x=x.transpose(moved), y=y.transpose(moved))
    spec = {"path": "d.npz", "targets": "numbers", **({"axes": axes} if axes else {})}
    found = load_dataset(spec, folder=tmp_path)
    assert np.array_equal(found.x, x)
    assert np.array_equal(found.y, y.astype(np.float32))


def test_other_numbers_come_out_of_files(tmp_path: Path) -> None:
    x, y = arrays()
    np.savez(tmp_path / "d.npz", x=x, y=y, test_x=x[:5], test_y=y[:5])
    told = {"path": "d.npz", "targets": "numbers"}
    found = load_dataset({**told, "examples": 20, "standardise": True}, folder=tmp_path)
    assert found.y.shape == (20, 2)
    assert found.test_y is not None
    assert found.test_y.shape == (5, 2)
    assert found.standardise
    place = [int(np.flatnonzero((x == row).all(axis=1))[0]) for row in found.x]
    assert np.array_equal(found.y, y[place].astype(np.float32))
    grey = np.random.default_rng(0).integers(0, 256, size=(6, 8, 9)).astype(np.uint8)
    np.savez(tmp_path / "grey.npz", x=grey, y=grey / 255)
    dense = load_dataset({"path": "grey.npz", "targets": "numbers"}, folder=tmp_path)
    assert dense.x.shape == dense.y.shape == (6, 1, 8, 9)
    table = "a,b,y\n" + "".join(f"{i},{i % 3},{i / 7}\n" for i in range(9))
    (tmp_path / "t.csv").write_text(table)
    of_table = load_dataset({"path": "t.csv", "targets": "numbers"}, folder=tmp_path)
    assert np.allclose(of_table.y[:, 0], np.arange(9) / 7)
    with pytest.raises(InputError, match=r"data\.targets='numbers'"):
        load_dataset("t.csv", folder=tmp_path)
    with pytest.raises(InputError, match=r"data\.targets='numbers'"):
        load_dataset("d.npz", folder=tmp_path)
    with pytest.raises(InputError, match="standardise"):
        load_dataset({"name": "iris", "standardise": True})


# Ids


def test_ids_of_studies_with_classes_are_what_they_were() -> None:
    learners = {
        "a": Learner(Training("mlp", options={"width": 8})),
        "b": Learner(
            Training("cnn", rate=(0.1, 0.01), schedule="early-stop", validation=0.2, label_smoothing=0.1), members=2
        ),
        "c": Learner(estimator="sklearn.naive_bayes:GaussianNB"),
        "d": Learner(command="python x.py {out}"),
    }
    design = Design(sizes=[100, 200], folds=1, grid={"batch": [16, 32]})
    found = [job.id for job in Study("digits", learners, design).jobs]
    assert found == [
        "f2f9c3baf3dd61e842a8",
        "fad4862a62c85ce3e5b1",
        "7f59a9d32c2b7a7cba06",
        "f3192338c4bd6a88afaa",
        "fc63377ee09545731941",
        "77e68373c9eae9491f2c",
        "de03e4a52cf30c598026",
        "ea326766d2fe3d92dddd",
        "cc2114e34098c7ee2417",
        "f9319539699b1dec9aad",
        "e2652717d05f97e14f17",
        "18e331623557d723ecb6",
        "a84365d4aa0a3d81fb4b",
        "50aac5f3890de413ce02",
    ]
    linear = {"a": Learner(Training("linear", loss="cross-entropy"))}
    same = Study("iris", linear, Design(sizes=[20], folds=2))
    assert [job.id for job in same.jobs] == ["50ba463057407577bb93", "85b51b0a231474a1f22c"]


def test_the_usual_loss_and_its_name_are_one_training() -> None:
    studies = [Study(rows(), {"a": Learner(replace(MLP, loss=k))}) for k in (None, "l2", "l1")]
    usual, named, other = ({job.id for job in study.jobs} for study in studies)
    assert usual == named
    assert not usual & other


# Runs


def test_losses_are_measured_and_read(tmp_path: Path) -> None:
    learners = {
        "net": Learner(replace(MLP, loss="l1")),
        "ridge": Learner(estimator="sklearn.linear_model:Ridge", judged="l1"),
    }
    study = made(tmp_path, rows(), learners, keep=Keep(predictions=True, checkpoints="end"))
    found = study.measurements()
    assert found.unit.name == "loss"
    assert sorted(set(found.learner)) == ["net", "ridge"]
    frame = study.frame()
    assert set(frame.status) == {"done"}
    assert "error" not in frame
    assert np.allclose(frame.gap, frame.loss - frame.train_loss)
    y = study.evaluation_sets["test"].y
    for run in frame.itertuples():
        stored = cw.store.read_run(study.runs_folder / run.run)
        assert stored.predictions is not None
        assert run.loss == pytest.approx(mean_absolute_error(y, stored.predictions), rel=1e-5)
        each = np.abs(stored.predictions - y).mean(axis=1)
        assert np.allclose(stored.array("losses"), each, atol=1e-6)
    predictions = study.predictions("net", n=60)
    assert predictions.kind == "losses"
    assert predictions.shape == (2, 18)
    of_net = frame[(frame.learner == "net") & (frame.n == 60)].loss
    assert np.allclose(predictions.errors().mean(axis=1), of_net)
    network = study.network("net", n=60)
    assert network.examples.outputs == (2,)
    with pytest.raises(InputError, match="probabilities"):
        study.predictions("net", n=60, probabilities=True)


def test_a_store_is_read_without_its_study(tmp_path: Path) -> None:
    learners = {
        "net": Learner(replace(MLP, rate=(0.05, 0.01))),
        "wild": Learner(replace(MLP, rate=1e9)),
        "ridge": Learner(estimator="sklearn.linear_model:Ridge"),
    }
    evaluate = {"noisy": Evaluation(perturbation="feature-noise", magnitude=0.5)}
    study = made(tmp_path, rows(), learners, keep=Keep(predictions=True), evaluate=evaluate)
    found = cw.load_measurements(study.runs_folder)
    assert found.unit.name == "loss"
    assert "a loss" in found.notes[0]
    assert found.notes[2].startswith("4 of 12 runs failed (wild): diverged")
    assert np.isnan(found.error).sum() == 4
    assert sorted(found.error[~np.isnan(found.error)]) == sorted(study.frame().loss.dropna())
    assert set(found.labels["judged"]) == {"l2"}
    assert cw.load_measurements(study.runs_folder, unit="loss").unit == found.unit
    with pytest.raises(InputError, match="predict numbers"):
        cw.load_measurements(study.runs_folder, unit="percent")
    for key, evaluation in ((None, "test"), ("losses.noisy", "noisy")):
        read = cw.load_predictions(study.runs_folder, learner="net", where={"n": 60}, key=key)
        own = study.predictions("net", n=60, evaluation=evaluation)
        assert read.kind == "losses"
        order = [own.run_ids.tolist().index(run) for run in read.run_ids.tolist()]
        assert np.array_equal(read.errors(), own.errors()[order])


def test_a_store_of_two_losses_says_so(tmp_path: Path) -> None:
    design = Design(sizes=[30], folds=1, grid={"loss": ["l1", "l2"]})
    study = made(tmp_path, rows(), {"net": Learner(MLP)}, design=design)
    found = cw.load_measurements(study.runs_folder)
    assert sorted(found.labels["judged"]) == ["l1", "l2"]
    assert any("l1, l2, whose values cannot be compared" in note for note in found.notes)


def test_runs_with_an_error_stay_errors(tmp_path: Path) -> None:
    """Whatever a run's own coordinates say about a loss."""
    about = {"learner": "net", "n": 30, "training": {"loss": "l1"}}
    cw.write_run(tmp_path, about, [0, 1], {"error": 0.5, "loss": 3.0}, labels={"test": [0, 0]})
    assert cw.load_measurements(tmp_path).error.tolist() == [0.5]
    assert cw.load_predictions(tmp_path).kind == "labels"


def test_a_report_speaks_of_losses(tmp_path: Path) -> None:
    design = Design(sizes=[15, 30, 60], folds=1)
    learners = {"ridge": Learner(estimator="sklearn.linear_model:Ridge"), "net": Learner(MLP)}
    same = made(tmp_path / "same", rows(), learners, design=design)
    other = {**learners, "net": Learner(replace(MLP, loss="l1"))}
    mixed = made(tmp_path / "mixed", rows(), other, design=design)
    texts = []
    for study in (same, mixed):
        report = study_report(study)
        place = export_report(report, study.folder / "report", index="report.md")
        texts.append(place.read_text())
        assert report.found["errors"]["loss"] == [
            pytest.approx(study.measurements(learner=k, n=n).error[0]) for k in learners for n in design.sizes or ()
        ]
        assert "## Which losses were measured?" in texts[-1]
        assert "Loss on the test set: mean" in texts[-1]
        assert "How does the loss fall" in texts[-1]
        assert "Error on the test set" not in texts[-1]
    assert "comparison." in texts[0]
    assert "judged by different losses (l1, l2)" in texts[1]
    assert "The curves are not compared" in texts[1]
    assert "comparison." not in texts[1]


def test_an_estimator_is_that_of_scikit_learn(tmp_path: Path) -> None:
    learners = {
        "ridge": Learner(estimator="sklearn.linear_model:Ridge", options={"alpha": 2.0}),
        "mean": Learner(estimator="sklearn.dummy:DummyRegressor"),
        "trees": Learner(estimator="sklearn.ensemble:RandomForestRegressor"),
        "classes": Learner(estimator="sklearn.naive_bayes:GaussianNB"),
    }
    x, y = arrays(numbers=1)
    study = made(tmp_path, Dataset(x, y, targets="numbers"), learners)
    test, job = study.evaluation_sets["test"], study.jobs[-1]
    chosen = study.rows_of(job.n, job.fold)
    frame = study.frame().set_index(["learner", "n"])
    ridge = Ridge(alpha=2.0).fit(x[chosen], y[chosen].astype(np.float32))
    expected = mean_squared_error(test.y, ridge.predict(test.x))
    assert frame.loc[("ridge", 60), "loss"].iloc[0] == pytest.approx(expected, rel=1e-4)
    expected = float(((y[chosen].mean() - test.y) ** 2).mean())
    assert frame.loc[("mean", 60), "loss"].iloc[0] == pytest.approx(expected, rel=1e-5)
    assert frame.loc[("trees", 60), "loss"].iloc[0] < expected
    assert set(frame.loc["classes", "status"]) == {"failed"}


def test_standardised_numbers_are_those_standardised_by_hand(tmp_path: Path) -> None:
    x, y = arrays()
    own = made(tmp_path / "own", rows(standardise=True), {"net": Learner(MLP)})
    part = y[own.train_rows].astype(np.float32).astype(np.float64)
    by_hand = (y.astype(np.float32) - part.mean(axis=0)) / part.std(axis=0)
    other = made(tmp_path / "hand", Dataset(x, by_hand, targets="numbers"), {"net": Learner(MLP)})
    assert np.allclose(own.measurements().error, other.measurements().error, rtol=1e-4)
    images = replace(pictures(), standardise=True)
    study = Study(images, {"net": Learner(Training("unet"))})
    trained = study.examples.y[study.train_rows]
    assert trained.mean() == pytest.approx(0, abs=1e-5)
    assert trained.std() == pytest.approx(1, abs=1e-5)


def test_a_study_goes_on_where_it_was(tmp_path: Path) -> None:
    study = made(tmp_path, rows(), {"net": Learner(MLP)})
    assert study.plan(measure=False).total_to_do == 0
    before = study.predictions(n=60).errors()
    lost = study.jobs[-1].id
    shutil.rmtree(study.runs_folder / lost)
    assert study.plan(measure=False).total_to_do == 1
    study.run(workers=0, progress=False)
    assert np.array_equal(study.predictions(n=60).errors(), before)
    more = replace(study, keep=Keep(predictions=True))
    assert more.plan(measure=False).total_to_do == 4
    more.run(workers=0, progress=False)
    assert more.plan(measure=False).total_to_do == 0
    assert cw.store.read_run(study.runs_folder / lost).predictions is not None
    assert study.plan(measure=False).total_to_do == 0


def test_a_training_that_diverges_is_a_failed_run(tmp_path: Path) -> None:
    learners = {"net": Learner(MLP), "wild": Learner(replace(MLP, rate=1e9))}
    study = made(tmp_path, rows(), learners)
    status = study.status()
    assert (status.done, status.failed) == (4, 4)
    frame = study.frame()
    assert frame[frame.learner == "wild"].reason.str.contains("diverged").all()
    with pytest.warns(CurvewiseWarning, match="4 of 8 runs failed"):
        assert np.isnan(study.measurements().error).sum() == 4


def test_images_are_predicted(tmp_path: Path) -> None:
    options: dict[str, Any] = {"rate": 0.02, "batch": 8, "loss": "l1"}
    unet = Training("unet", options={"width": 2}, epochs=2, **options)
    data = pictures()
    study = made(tmp_path, data, {"unet": Learner(unet)}, design=Design(sizes=[24], folds=1, seeds=2))
    assert set(study.frame().status) == {"done"}
    assert study.predictions().shape == (2, 8)
    record = cw.store.read_run(study.runs_folder / study.jobs[0].id)
    assert set(record.arrays) == {"losses"}
    assert cw.verify_store(study.runs_folder).sound


def test_an_encoder_starts_where_a_study_of_classes_ended(tmp_path: Path) -> None:
    data = pictures()
    net = Training("resnet18", options={"width": 2}, batch=8, epochs=1)
    design = Design(sizes=[24], folds=1)
    classes = Dataset(data.x, np.arange(40) % 4)
    before = made(tmp_path / "a", classes, {"net": Learner(net)}, keep=Keep(checkpoints="end"), design=design)
    file = before.runs_folder / before.jobs[0].id / "end.safetensors"
    unet = Training("unet", options={"width": 2}, batch=8, epochs=0)
    learners = {
        "scratch": Learner(unet),
        "pretrained": Learner(replace(unet, weights=str(file), weights_into="encoder")),
    }
    keep = Keep(checkpoints="end")
    study = made(tmp_path / "b", data, learners, keep=keep, design=design)
    weights = before.network().network.state_dict()
    found = study.network("pretrained")
    for name, value in weights.items():
        if not name.startswith("fc."):
            assert np.array_equal(value, found.network.state_dict()[f"encoder.{name}"]), name
    assert found.initial is not None
    (note,) = cw.store.read_run(study.runs_folder / found.run).notes
    assert "left out of it: fc.bias, fc.weight" in note
    assert cw.store.read_run(study.runs_folder / study.network("scratch").run).notes == ()


def test_members_are_averaged_before_they_are_judged(tmp_path: Path) -> None:
    keep = Keep(predictions=True, checkpoints="end")
    design = Design(sizes=[30], folds=1)
    study = made(tmp_path, rows(), {"net": Learner(MLP, members=3)}, keep=keep, design=design)
    stored = cw.store.read_run(study.runs_folder / study.jobs[0].id)
    test = study.evaluation_sets["test"]
    assert stored.predictions is not None
    expected = mean_squared_error(test.y, stored.predictions)
    assert stored.metrics["loss"] == pytest.approx(expected, rel=1e-5)
    bare = made(tmp_path / "bare", rows(), {"net": Learner(MLP, members=3)}, design=design)
    again = cw.store.read_run(bare.runs_folder / bare.jobs[0].id)
    assert again.predictions is None
    assert np.array_equal(again.array("losses"), stored.array("losses"))


def test_the_rate_with_the_least_loss_is_taken(tmp_path: Path) -> None:
    rates = (1e-6, 0.02, 1e9)
    design = Design(sizes=[30], folds=1)
    study = made(tmp_path, rows(), {"net": Learner(replace(MLP, rate=rates))}, design=design)
    search = cw.store.read_run(study.runs_folder / study.jobs[0].id)
    assert search.metrics["rate"] == 0.02
    assert search.metrics["loss.0.02"] < search.metrics["loss.1e-06"]
    assert not any(name.startswith("error") for name in search.metrics)
    assert study.status().failed == 0


SCRIPT = """
import sys
import numpy as np
data, rows, out, how = np.load(sys.argv[1]), np.load(sys.argv[2]), sys.argv[3], sys.argv[4]
mean = data["y"][rows].mean(axis=0)
found = np.repeat(mean[None], len(data["test_y"]), axis=0)
if how == "flat":
    found = found[:, 0]
if how == "nan":
    found = found * np.nan
if how != "none":
    np.save(out + "/predictions.npy", found)
"""


def test_commands_write_numbers(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(SCRIPT)
    learners = {
        how: Learner(command=f"python own.py {{data}} {{rows}} {{out}} {how}", judged="l1")
        for how in ("right", "flat", "nan", "none")
    }
    design = Design(sizes=[30], folds=1)
    study = made(tmp_path, rows(), learners, design=design)
    frame = study.frame().set_index("learner")
    test = study.evaluation_sets["test"]
    mean = study.examples.y[study.rows_of(30, 0)].mean(axis=0)
    assert frame.loss["right"] == pytest.approx(np.abs(test.y - mean).mean(), rel=1e-5)
    assert "shape (18,): expected (18, 2)" in frame.reason["flat"]
    assert "NaN" in frame.reason["nan"]
    assert "left no predictions.npy" in frame.reason["none"]


def test_further_sets_are_judged_too(tmp_path: Path) -> None:
    x, y = arrays()
    evaluate = {
        "noisy": Evaluation(perturbation="feature-noise", magnitude=0.5),
        "shifted": Evaluation(Dataset(x[:20], y[:20] + 100, targets="numbers")),
    }
    study = made(tmp_path, rows(), {"net": Learner(MLP)}, evaluate=evaluate)
    frame = study.frame()
    assert (frame["loss.shifted"] > 1000).all()
    assert study.predictions(n=60, evaluation="shifted").shape == (2, 20)
    assert study.measurements(evaluation="noisy").unit.name == "loss"
    for data, match in (
        (Dataset(x, np.arange(90) % 2), "targets='classes'"),
        (Dataset(x, y[:, :1], targets="numbers"), "targets of shape"),
    ):
        with pytest.raises(InputError, match=match):
            _ = replace(study, evaluate={"other": Evaluation(data)}).evaluation_sets
    turned = {"turned": Evaluation(perturbation="rotation", magnitude=30)}
    with pytest.raises(InputError, match="moves the pixels"):
        _ = Study(pictures(), {"net": Learner(MLP)}, evaluate=turned).evaluation_sets
    dark = {"dark": Evaluation(perturbation="brightness", magnitude=0.2)}
    assert len(Study(pictures(), {"net": Learner(MLP)}, evaluate=dark).evaluation_sets) == 2


def test_losses_of_two_kinds_are_not_mixed_in_silence(tmp_path: Path) -> None:
    design = Design(sizes=[30], folds=1, grid={"loss": ["l1", "l2"]})
    study = made(tmp_path, rows(), {"net": Learner(MLP)}, design=design)
    with pytest.warns(CurvewiseWarning, match="l1, l2"):
        study.measurements()
    assert len(study.measurements(loss="l1").n) == 1
    frame = study.frame()
    assert sorted(frame.judged) == ["l1", "l2"]
    assert frame.loss.dtype == np.float64


# What does not go together


def test_learners_for_other_targets_are_refused() -> None:
    for learner, outputs, match in (
        (Learner(MLP), (1, 8, 8), "learners.a: architecture='mlp'"),
        (Learner(estimator="sklearn.linear_model:Ridge"), (1, 8, 8), "rows of numbers"),
        (Learner(command="x {out}", judged="l1"), 3, "for numbers"),
    ):
        with pytest.raises(InputError, match=match):
            settle_learner(learner, outputs, "a")
    with pytest.raises(InputError, match="give loss="):
        Learner(MLP, judged="l1")
    with pytest.raises(InputError, match="not known"):
        Learner(command="x {out}", judged="huber")
    with pytest.raises(InputError, match="cross-entropy"):
        _ = Study(rows(), {"a": Learner(replace(MLP, loss="cross-entropy"))}).jobs


def test_settings_for_classes_are_refused(tmp_path: Path) -> None:
    learners = {"net": Learner(MLP)}
    with pytest.raises(InputError, match="per_class"):
        _ = Study(rows(), learners, Design(sizes=[30], per_class=True)).partition
    kept = Study(rows(), learners, keep=Keep(probabilities=True), folder=tmp_path)
    with pytest.raises(InputError, match="predictions = true"):
        kept.run(workers=0, progress=False)


def test_a_study_file_reads_back(tmp_path: Path) -> None:
    x, y = arrays()
    np.savez(tmp_path / "d.npz", x=x, y=y)
    text = """
        [data]
        path = "d.npz"
        targets = "numbers"
        standardise = true

        [learners.net]
        architecture = "mlp"
        width = 8
        loss = "l1"

        [learners.ridge]
        estimator = "sklearn.linear_model:Ridge"
        alpha = 0.5
        judged = "l1"

        [learners.boosted]
        estimator = "sklearn.ensemble:GradientBoostingRegressor"
        loss = "huber"

        [design]
        sizes = [30]

        [keep]
        predictions = true
        """
    (tmp_path / "study.toml").write_text(text)
    study = load_study(tmp_path / "study.toml")
    again = load_study(study.save(tmp_path / "again.toml"))
    assert again == replace(study, name=again.name)
    assert [job.id for job in again.jobs] == [job.id for job in study.jobs]
    assert study.keep == Keep(predictions=True)
    assert study.dataset.standardise
    assert study.learners["ridge"].options == {"alpha": 0.5}
    assert study.learners["boosted"].options == {"loss": "huber"}
    assert study.outputs == (2,)
    with pytest.raises(InputError, match="targets = 'numbers'"):
        replace(study, data=rows()).save(tmp_path / "memory.toml")


def test_space_and_time_are_planned(tmp_path: Path) -> None:
    study = Study(pictures(), {"net": Learner(Training("unet", options={"width": 2}))})
    study = replace(study, folder=tmp_path, design=Design(sizes=[24]))
    plain = study.plan(device="cpu")
    assert plain.total_seconds > 0
    more = replace(study, keep=Keep(predictions=True, checkpoints="end")).plan(device="cpu")
    assert more.bytes_needed > plain.bytes_needed
