"""Studies read as transfer: risks with their controls, and examples won."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.nn.task import Keep
from curvewise.nn.training import Training
from curvewise.store.read import read_run
from curvewise.store.write import write_run
from curvewise.study.data.dataset import Dataset
from curvewise.study.lenses import blind_control, predicted_images, study_win_rates, transfer_risks
from curvewise.study.spec.design import Design, Learner
from curvewise.study.study import Study, load_study
from curvewise.transfer.load import load_risks
from curvewise.transfer.measure import measure_transfer
from curvewise.transfer.risks import Control, TransferRisks

pytest.importorskip("sklearn")

SCRATCH = Learner(estimator="sklearn.naive_bayes:GaussianNB")
OTHER = Learner(estimator="sklearn.neighbors:KNeighborsClassifier", options={"n_neighbors": 3})
BLIND = Learner(estimator="sklearn.dummy:DummyClassifier", options={"strategy": "prior"})


def made(folder: Path, **changes: Any) -> Study:
    """A study of digits, run."""
    about: dict[str, Any] = {
        "data": "digits",
        "learners": {"scratch": SCRATCH, "neighbours": OTHER, "blind": BLIND},
        "design": Design(sizes=[60, 120, 240], folds=2),
        "keep": Keep(probabilities=True),
        "folder": folder,
        "name": "digits",
    }
    study = Study(**{**about, **changes})
    study.run(workers=0, progress=False)
    return study


def by_run(risks: TransferRisks) -> dict[tuple[str, float, str], float]:
    assert risks.folds is not None
    keys = zip(risks.methods.tolist(), risks.n.tolist(), risks.folds.tolist(), strict=True)
    return dict(zip(keys, risks.risk.tolist(), strict=True))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return made(tmp_path_factory.mktemp("transfer"))


def test_every_run_is_a_row_and_the_blind_learner_a_control(study):
    found = transfer_risks(study)
    frame = study.frame()
    methods = frame[frame.learner != "blind"]
    assert found.methods.tolist() == methods.learner.tolist()
    assert found.n.tolist() == methods.n.tolist()
    assert found.risk.tolist() == methods.error.tolist()
    assert found.folds is not None
    assert found.folds.tolist() == [str(fold) for fold in methods.fold]
    assert found.seeds is not None
    assert len(set(found.seeds)) == 6  # one for each size and fold, shared by the learners
    largest = frame[(frame.learner == "blind") & (frame.n == 240)].error
    assert found.blind["digits"].risk == pytest.approx(largest.mean())
    assert (found.task_names, found.scratch) == (("digits",), "scratch")
    assert (found.maximal, found.unit) == ({}, "test error")
    with pytest.warns(CurvewiseWarning, match="maximal supervision was not measured"):
        result = measure_transfer(found)
    assert result.methods == ("neighbours",)


def test_its_table_and_its_store_read_the_same(study):
    wanted = transfer_risks(study, metric="loss")
    ours = dict(zip(zip(wanted.methods, wanted.n, wanted.folds, strict=True), wanted.risk, strict=True))
    for source in (study.frame(), study.runs_folder):
        found = load_risks(source, columns={"risk": "loss"})
        theirs = dict(zip(zip(found.methods, found.n, found.folds, strict=True), found.risk, strict=True))
        assert theirs == ours
        assert found.blind["task"].risk == pytest.approx(wanted.blind["digits"].risk)


def test_a_blind_guess_is_computed_from_the_targets(study):
    alone = replace(study, learners={"scratch": SCRATCH, "neighbours": OTHER})
    y = study.dataset.y
    held = np.setdiff1d(np.arange(len(y)), study.train_rows)
    shares = np.bincount(y[study.train_rows], minlength=10) / len(study.train_rows)
    wanted = {"loss": -np.log(shares[y[held]]).mean(), "error": np.mean(y[held] != shares.argmax())}
    for metric, risk in wanted.items():
        found = transfer_risks(alone, metric=metric)
        assert found.blind["digits"].risk == pytest.approx(risk)
        assert found.blind["digits"].std > 0
        assert any("blind guess computed" in note for note in found.notes)


def test_controls_are_given_or_named(study):
    found = transfer_risks(study, blind=2.5, maximal={"digits": Control(0.1, 0.01)})
    assert found.blind["digits"].risk == 2.5
    assert found.maximal["digits"] == Control(0.1, 0.01)
    assert "blind" not in found.method_names
    named = transfer_risks(study, metric="loss", scratch="neighbours", maximal="scratch")
    assert (named.scratch, named.method_names) == ("neighbours", ("neighbours",))
    best = study.frame().query("learner == 'scratch' and n == 240").loss
    assert named.maximal["digits"].risk == pytest.approx(best.mean())
    with pytest.raises(InputError, match="scratch='scrach' is no method"):
        transfer_risks(study, scratch="scrach")
    with pytest.raises(InputError, match="metric='loos'"):
        transfer_risks(study, metric="loos")
    with pytest.raises(InputError, match="studies is empty"):
        transfer_risks({})


def test_learners_without_weights_are_scratch_and_several_are_asked_about(tmp_path):
    learners = {"plain": SCRATCH, "neighbours": OTHER}
    study = made(tmp_path, learners=learners, design=Design(sizes=[60, 120]))
    with pytest.raises(InputError, match=r"Without weights there are: 'plain', 'neighbours'"):
        transfer_risks(study)
    assert transfer_risks(study, scratch="plain").scratch == "plain"
    one = replace(study, learners={"plain": SCRATCH})
    assert transfer_risks(one).scratch == "plain"


def test_a_network_with_weights_is_no_scratch(tmp_path):
    pytest.importorskip("torch")
    files = pytest.importorskip("safetensors.torch")
    from curvewise.nn.networks import make_network

    data = Dataset(np.random.default_rng(0).normal(size=(90, 6)), np.arange(90) % 3)
    net = Training("mlp", options={"width": 8}, steps=2, batch=8)
    files.save_file(make_network(net, (6,), 3).state_dict(), tmp_path / "w.safetensors")
    learners = {"mine": Learner(training=net), "theirs": Learner(training=replace(net, weights="w.safetensors"))}
    study = made(tmp_path, data=data, learners=learners, design=Design(sizes=[20, 40]))
    assert transfer_risks(study).scratch == "mine"


def test_tasks_come_from_several_studies_and_failed_runs_stay(study, tmp_path):
    broken = Learner(estimator="sklearn.neighbors:KNeighborsClassifier", options={"n_neighbors": 99})
    other = made(tmp_path, learners={"scratch": SCRATCH, "neighbours": broken})
    with pytest.warns(CurvewiseWarning, match="2 of 12 runs failed"):
        found = transfer_risks({"one": study, "two": other}, metric="error")
    assert found.task_names == ("one", "two")
    lost = np.isnan(found.risk)
    assert lost.sum() == 2
    assert set(found.methods[lost]) == {"neighbours"}
    assert set(found.n[lost]) == {60.0}
    assert any("two: 2 of 12 runs failed" in note for note in found.notes)
    assert found.blind["one"].source == "measured at n = 240"
    assert "best constant for error" in found.blind["two"].source


@pytest.mark.parametrize("given", ["study.toml", ["study.toml"], {"one": None}])
def test_only_studies_are_studies(given):
    with pytest.raises(InputError, match=r"give a study, as load_study\('….toml'\) reads it"):
        transfer_risks(given)
    with pytest.raises(InputError, match="studies is empty"):
        transfer_risks({})


def test_numbers_have_medians_as_their_guess(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 4))
    y = np.exp(x @ rng.normal(size=(4, 2)))
    learners = {
        "scratch": Learner(estimator="sklearn.linear_model:Ridge", judged="l1"),
        "tree": Learner(estimator="sklearn.tree:DecisionTreeRegressor", judged="l1"),
    }
    study = made(
        tmp_path,
        data=Dataset(x, y, targets="numbers"),
        learners=learners,
        keep=Keep(),
        design=Design(sizes=[40, 80], folds=2),
    )
    held = np.setdiff1d(np.arange(200), study.train_rows)
    medians = np.median(study.dataset.y[study.train_rows], axis=0)
    wanted = np.abs(study.dataset.y[held] - medians).mean()
    assert blind_control(study).risk == pytest.approx(wanted, rel=1e-5)
    found = study_win_rates(study, "tree", n=80)
    ours, theirs = (study.predictions(k, n=80).errors() for k in ("tree", "scratch"))
    wins = np.mean([(a < b) + 0.5 * (a == b) for a in ours for b in theirs])
    assert found.at(80).rate.estimate == pytest.approx(wins)
    with pytest.raises(InputError, match=r"Pass blind=…"):
        blind_control(study, "error")


def test_images_have_a_guess_for_each_pixel(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 255, (40, 1, 8, 8), dtype=np.uint8)
    y = np.linspace(0, 1, 64).reshape(1, 1, 8, 8) + rng.normal(0, 0.1, (40, 1, 8, 8))
    data = Dataset(x[:30], y[:30], x[30:], y[30:], targets="numbers")
    learner = Learner(Training("unet", loss="l1"))
    found = blind_control(Study(data, {"scratch": learner}, folder=tmp_path))
    guess = np.median(y[:30], axis=0)
    assert found.risk == pytest.approx(np.abs(y[30:] - guess).mean(), rel=1e-5)
    assert found.risk < 0.5 * np.abs(y[30:] - np.median(y[:30])).mean()


def test_examples_won_by_cross_entropy_or_by_errors(study, tmp_path):
    found = study_win_rates(study, "neighbours")
    assert found.n.tolist() == [60, 120, 240]

    def losses(name: str) -> np.ndarray:
        p = study.predictions(name, n=120, probabilities=True)
        rows = np.arange(p.examples)
        with np.errstate(divide="ignore"):
            return -np.log(np.asarray(p.values[slice(None)])[:, rows, p.labels].astype(float))

    ours, theirs = losses("neighbours"), losses("scratch")
    wins = np.mean([(a < b) + 0.5 * (a == b) for a in ours for b in theirs])
    assert found.at(120).rate.estimate == pytest.approx(wins)
    paired = study_win_rates(study, "neighbours", n=120, paired=True).at(120)
    each = [((a < b) + 0.5 * (a == b)).mean() for a, b in zip(ours, theirs, strict=True)]
    assert paired.rate.estimate == pytest.approx(np.mean(each))
    plain = replace(study, keep=Keep())
    hits = [plain.predictions(k, n=60).errors().astype(float) for k in ("neighbours", "scratch")]
    share = np.mean([(a < b) + 0.5 * (a == b) for a in hits[0] for b in hits[1]])
    assert study_win_rates(plain, "neighbours", n=60).at(60).rate.estimate == pytest.approx(share)


def test_pairs_need_the_same_runs(tmp_path):
    study = made(tmp_path)
    lost = next(j for j in study.jobs if (j.name, j.n, j.fold) == ("neighbours", 120, 1))
    shutil.rmtree(study.runs_folder / lost.id)
    with (
        pytest.warns(CurvewiseWarning, match="There is one run of the method"),
        pytest.warns(CurvewiseWarning, match="1 of 2 planned runs are missing"),
    ):
        assert study_win_rates(study, "neighbours", n=120).at(120).runs == 1
    with (
        pytest.warns(CurvewiseWarning, match="are missing"),
        pytest.raises(InputError, match=r"paired=True: at n = 120 the runs of both are not"),
    ):
        study_win_rates(study, "neighbours", n=120, paired=True)
    none = replace(study, store=tmp_path / "elsewhere")
    with pytest.raises(InputError, match="have no training size in common"):
        study_win_rates(none, "neighbours")


def test_pairs_are_of_runs_that_kept_probabilities(tmp_path):
    study = made(tmp_path, design=Design(sizes=[120], folds=3))
    # A run of each learner that was made before probabilities were kept, on different subsets.
    for job in study.jobs:
        if (job.name, job.fold) in (("neighbours", 0), ("scratch", 1)):
            run = read_run(study.runs_folder / job.id)
            about = {"evaluations": study.label_digests()}
            parts: dict[str, Any] = {"labels": run.labels(), "environment": about, "overwrite": True}
            write_run(study.runs_folder, run.coordinates, run.predictions, run.metrics, **parts)
    with pytest.warns(CurvewiseWarning, match="left out: outdated"), pytest.raises(InputError, match="paired=True"):
        study_win_rates(study, "neighbours", paired=True)


# Predicted images


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Two learners of images and maximal supervision, at two sizes; all keep what they predict."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (40, 1, 8, 8), dtype=np.uint8)
    folder = tmp_path_factory.mktemp("dense")
    np.savez(folder / "d.npz", x=x, y=1 - x / 255)
    rows = "[data]\npath = 'd.npz'\ntargets = 'numbers'\n"
    for name in ("pretrained", "gold", "scratch"):
        rows += f"[learners.{name}]\narchitecture = 'unet'\nwidth = 2\nloss = 'l1'\nbatch = 8\nepochs = 1\n"
    rows += "[design]\nsizes = [12, 24]\nfolds = 1\nseeds = 2\n[keep]\npredictions = true\n"
    (folder / "dense.toml").write_text(rows)
    study = load_study(folder / "dense.toml")
    study.run(workers=0, progress=False, device="cpu")
    return study


def test_predicted_images_are_those_that_were_kept(dense):
    found = predicted_images(dense, examples=[5, 2])
    assert found.methods == ("blind guess", "scratch", "pretrained", "gold")
    assert (found.sizes, found.positions, found.loss) == ((12, 24), (5, 2), "l1")
    test = dense.evaluation_sets["test"]
    assert np.array_equal(found.targets, test.y[[5, 2]])
    assert np.array_equal(found.inputs, test.x[[5, 2]])
    for method in ("scratch", "pretrained"):
        for n in (12, 24):
            losses = dense.predictions(method, n=n).errors()
            assert found.loss_of(method, 5, n) == pytest.approx(losses[0, 5], rel=1e-5)
            assert found.images_of(method, n).shape == (2, 1, 8, 8)
    # Maximal supervision is that of the largest size in every row.
    largest = dense.predictions("gold", n=24).errors()[0, 2]
    assert found.loss_of("gold", 2, 12) == found.loss_of("gold", 2, 24) == pytest.approx(largest, rel=1e-5)
    # The best constant for absolute differences is the median at each pixel.
    median = np.median(dense.examples.y[dense.train_rows], axis=0)
    assert np.allclose(found.images_of("blind guess")[0], median)
    assert predicted_images(dense, methods=["scratch"], n=24).methods == ("blind guess", "scratch")
    assert predicted_images(dense, examples=2).positions == (0, 4)
    # Of eight images five are spread over all of them, and numpy's numbers are numbers.
    for five in (5, np.int64(5), np.array([0, 1, 3, 4, 6])):
        assert predicted_images(dense, examples=five).positions == (0, 1, 3, 4, 6)


def test_images_that_were_not_kept_are_asked_for(study, dense):
    with pytest.raises(InputError, match="no images"):
        predicted_images(study)
    with pytest.raises(InputError, match="predictions = true"):
        predicted_images(dense, n=13)
    with pytest.raises(InputError, match="Did you mean 'scratch'"):
        predicted_images(dense, methods=["pretrained", "scrach"])
    for examples in (0, [8]):
        with pytest.raises(InputError, match="0 to 7"):
            predicted_images(dense, examples=examples)


def test_images_on_the_command_line(dense, call, tmp_path):
    file = dense.folder / "dense.toml"
    done = call("transfer", "images", file, "--n", "24", "--examples", "2", "--json", "--plot", tmp_path / "grid.png")
    assert done.code == 0
    wanted = predicted_images(dense, n=24, examples=2)
    assert done.document["summary"] == wanted.summary()
    assert [row["loss"] for row in done.document["rows"]] == pytest.approx([row.loss for row in wanted.rows])
    assert (tmp_path / "grid.png").stat().st_size > 1000
    assert "L1 losses" in call("transfer", "images", file).out
