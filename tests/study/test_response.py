from __future__ import annotations

import shutil
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.nn.task import Keep
from curvewise.nn.training import Training
from curvewise.study.data.dataset import Dataset
from curvewise.study.response import judge_study_sensitivity, measure_corpus
from curvewise.study.spec.design import Design, Learner
from curvewise.study.spec.evaluation import Evaluation
from curvewise.study.study import Study

torch = pytest.importorskip("torch")

from curvewise.response.networks.measures import MEASURES, measure_model  # noqa: E402
from curvewise.response.networks.subject import Measure  # noqa: E402

SOME = ["l2-norm", "distance", "margin-50", "gi-intra", "disagreement"]
TURNED = Evaluation(perturbation="rotation", magnitude=(-40, 40))


def digits() -> Dataset:
    images, y = load_digits(return_X_y=True)
    return Dataset((images[:240].reshape(-1, 1, 8, 8) * 15).astype(np.uint8), y[:240])


def made_study(folder: Path, learners: dict[str, Learner] | None = None, **options: Any) -> Study:
    training = Training("mlp", options={"width": 8}, epochs=30, batch=10, rate=0.02)
    options.setdefault("design", Design(sizes=[60], folds=1, seeds=2, grid={"width": [16, 24]}))
    return Study(
        digits(),
        learners or {"mlp": Learner(training=training)},
        evaluate={"turned": TURNED},
        keep=Keep(checkpoints="end"),
        folder=folder,
        store=Path("store"),
        **options,
    )


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    made = made_study(tmp_path_factory.mktemp("corpus"))
    assert made.run(workers=0, progress=False).done == 4
    return made


@pytest.fixture
def copied(study: Study, tmp_path: Path) -> Study:
    """The same with a store that may be spoilt."""
    shutil.copytree(study.runs_folder, tmp_path / "store")
    return replace(study, folder=tmp_path)


def same(one: Any, other: Any) -> bool:
    """Bit by bit, NaN alike."""
    return one.measures.keys() == other.measures.keys() and all(
        np.array_equal(v, other.measures[k], equal_nan=True) for k, v in one.measures.items()
    )


def test_gaps_and_hyperparameters_are_those_of_the_frame(study: Study) -> None:
    frame = study.frame()
    for evaluation, column in (("test", "error"), ("turned", "error.turned")):
        corpus = measure_corpus(study, "l2-norm", evaluation=evaluation)
        assert len(corpus) == len(frame) == 4
        for i, name in enumerate(corpus.models):
            (row,) = [r for _, r in frame.iterrows() if name.endswith(r["run"][:8])]
            assert name.startswith(f"mlp, width={row['width']}, ")
            assert corpus.hyperparameters["width"][i] == row["width"]
            assert corpus.gap[i] == pytest.approx(row[column] - row["train_error"], abs=1e-12)
            assert corpus.train_accuracy is not None
            assert corpus.train_accuracy[i] == pytest.approx(1 - row["train_error"], abs=1e-12)
        assert list(corpus.hyperparameters) == ["width"]
        assert corpus.notes == ()


def test_values_are_those_of_each_network_by_hand(study: Study) -> None:
    told: dict[str, Any] = {}
    corpus = measure_corpus(study, SOME, examples=50, rng=3, tell=lambda run, found: told.update({run: found.values}))
    assert list(corpus.measures) == SOME
    assert corpus.orientation == {name: MEASURES[name].orientation for name in SOME}
    jobs = {job.id: job for job in study.jobs}
    for i, name in enumerate(corpus.models):
        (job,) = [job for job in jobs.values() if name.endswith(job.id[:8])]
        (twin,) = [j for j in jobs.values() if j.settings == job.settings and j.id != job.id]
        own = study.network(run=job.id)
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        found = measure_model(
            own.network,
            own.examples,
            SOME,
            examples=50,
            initial=own.initial,
            twin=study.network(run=twin.id).network,
            rng=3,
        )
        torch.set_num_threads(threads)
        assert {k: v[i] for k, v in corpus.measures.items()} == found.values == told[job.id]
    assert all(len(set(corpus.measures[name].tolist())) == 4 for name in SOME[:3])


def test_processes_agree_bit_by_bit(study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("multiprocessing", "pickle", "numpy"):  # never imported from the current folder
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('shadowed')")
    monkeypatch.chdir(tmp_path)
    one = measure_corpus(study, SOME, examples=50, workers=0)
    two = measure_corpus(study, SOME, examples=50, workers=2)
    assert one.models == two.models
    assert same(one, two)
    assert np.array_equal(one.gap, two.gap)


def test_all_measures_by_default(study: Study) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        corpus = measure_corpus(study, examples=30, seeds="first")
    assert set(corpus.measures) == set(MEASURES)
    assert np.isfinite(corpus.measures["distance"]).all()
    assert np.isfinite(corpus.measures["disagreement"]).all()


def test_one_of_each_training(study: Study) -> None:
    every = measure_corpus(study, SOME, examples=50)
    first = measure_corpus(study, SOME, examples=50, seeds="first")
    assert len(first) == 2
    assert sorted(first.hyperparameters["width"]) == [16, 24]
    where = [every.models.index(name) for name in first.models]
    assert same(first, every.select(where))  # with the same twins
    with pytest.raises(InputError, match="seeds='last'"):
        measure_corpus(study, seeds="last")


def test_twins_vary_in_the_same_and_see_the_same(tmp_path: Path) -> None:
    from curvewise.study.response import _choose, done_runs

    design = Design(sizes=[30], folds=2, seeds=3, vary=[["init"], ["order"]])
    study = made_study(tmp_path, design=design)
    study.run(workers=0, progress=False)
    done, _ = done_runs(study, "test")
    chosen, twins = _choose(done, "each")
    jobs = {job.id: job for job in study.jobs}
    assert len(chosen) == len(twins) == len(jobs) == 12
    for one, other in twins.items():
        a, b = jobs[one], jobs[other]
        assert (a.fold, a.varies) == (b.fold, b.varies)
        assert a.seeds != b.seeds
    assert len(_choose(done, "first")[0]) == 4


def test_without_a_second_seed(tmp_path: Path) -> None:
    design = Design(sizes=[60], folds=1, grid={"width": [16, 24]})
    study = made_study(tmp_path, design=design)
    study.run(workers=0, progress=False)
    with pytest.raises(InputError, match="'disagreement' needs two seeds"):
        measure_corpus(study, ["l2-norm", "disagreement"])
    assert "disagreement" not in measure_corpus(study, ["l2-norm"]).measures


def test_some_without_a_twin(copied: Study) -> None:
    lost = copied.jobs[0]
    shutil.rmtree(copied.runs_folder / lost.id)
    with pytest.warns(CurvewiseWarning) as said:
        corpus = measure_corpus(copied, ["l2-norm", "disagreement"], examples=50)
    assert len(corpus) == 3
    assert np.isfinite(corpus.measures["l2-norm"]).all()
    assert np.isnan(corpus.measures["disagreement"]).sum() == 1
    assert corpus.notes == (
        f"1 of 4 planned runs are missing and left out: {lost.id[:8]}.",
        "disagreement: needs twin. (1 of 3 models)",
    )
    assert [str(w.message) for w in said] == list(corpus.notes)
    assert {Path(w.filename).name for w in said} == {"test_response.py"}


def test_failed_runs_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "import torch\n"
        "def make(shape, classes, width=4):\n"
        "    if width == 5:\n"
        "        raise RuntimeError('not this one')\n"
        "    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, classes))\n"
    )
    learner = Learner(training=Training("own:make", epochs=1))
    design = Design(sizes=[60], folds=1, grid={"width": [4, 5]})
    study = made_study(tmp_path, {"own": learner}, design=design)
    study.run(workers=0, progress=False)
    with pytest.warns(CurvewiseWarning, match="1 of 2 planned runs are failed and left out"):
        corpus = measure_corpus(study, ["l2-norm"])
    assert corpus.hyperparameters["width"].tolist() == [4]


def test_a_damaged_network_does_not_lose_the_others(study: Study, copied: Study) -> None:
    whole = measure_corpus(study, SOME, examples=50)
    ids = [name[-8:] for name in whole.models]
    (broken,) = [j.id for j in copied.jobs if j.id.startswith(ids[1])]
    path = copied.runs_folder / broken / "end.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.warns(CurvewiseWarning) as said:
        corpus = measure_corpus(copied, SOME, examples=50)
    assert [str(w.message) for w in said] == list(corpus.notes)
    assert corpus.notes[0].startswith(f"Run {broken} cannot be measured: ")
    assert corpus.models == whole.models
    assert np.array_equal(corpus.gap, whole.gap)
    for name in SOME:
        found = corpus.measures[name]
        assert np.isnan(found[1])
        if name != "disagreement":
            rest = [0, 2, 3]
            assert np.array_equal(found[rest], whole.measures[name][rest])
    # Whose twin it was has no disagreement, and that is said.
    assert np.isnan(corpus.measures["disagreement"]).sum() == 2
    assert any(f"Its twin {broken[:8]} cannot be used" in note for note in corpus.notes)


def test_a_lost_checkpoint_is_said(copied: Study) -> None:
    lost = copied.jobs[2].id
    (copied.runs_folder / lost / "end.safetensors").unlink()
    with pytest.warns(CurvewiseWarning) as said:
        corpus = measure_corpus(copied, ["l2-norm"])
    assert np.isnan(corpus.measures["l2-norm"]).sum() == 1
    assert "Its file end.safetensors is missing" in str(said[0].message)
    assert f"Run {lost} cannot be measured" in corpus.notes[1]


def test_networks_that_cannot_be_rebuilt(copied: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    from curvewise.study import response as module

    load, lost = module.load_model, copied.jobs[3].id

    def fail(study: Study, run: str) -> Any:
        if run == lost:
            raise ZeroDivisionError("by hand")
        return load(study, run)

    monkeypatch.setattr(module, "load_model", fail)
    with pytest.warns(CurvewiseWarning, match="ZeroDivisionError: by hand"):
        corpus = measure_corpus(copied, ["l2-norm"])
    assert np.isnan(corpus.measures["l2-norm"]).sum() == 1
    monkeypatch.setattr(module, "load_model", lambda study, run: 1 / 0)
    with pytest.raises(InputError, match=r"No network can be measured.*ZeroDivisionError"):
        measure_corpus(copied, ["l2-norm"])


def test_outdated_runs(study: Study) -> None:
    """Taken if their error is of the evaluation set as it is now, and left out if not."""
    other = replace(study, evaluate={"turned": replace(TURNED, magnitude=(-50, 50))})
    with pytest.raises(InputError, match="4 planned runs are without 'turned' as it is now"):
        measure_corpus(other, ["l2-norm"], evaluation="turned")
    with pytest.warns(CurvewiseWarning, match="4 of 4 planned runs are outdated and used as"):
        corpus = measure_corpus(other, ["l2-norm"])
    assert same(corpus, measure_corpus(study, ["l2-norm"]))
    more = replace(study, evaluate={**study.evaluate, "noisy": replace(TURNED, magnitude=5)})
    with pytest.raises(InputError, match=r"4 planned runs are without error\.noisy"):
        measure_corpus(more, ["l2-norm"], evaluation="noisy")


def test_what_is_no_network_is_left_out(tmp_path: Path) -> None:
    learners = {
        "bayes": Learner(estimator="sklearn.naive_bayes:GaussianNB"),
        "pair": Learner(training=Training("linear", epochs=1), members=2),
        "line": Learner(training=Training("linear", epochs=2)),
        "head": Learner(training=Training("mlp", epochs=2, trained="head")),
    }
    design = Design(sizes=[30, 60], folds=1)
    study = made_study(tmp_path, learners, design=design)
    study.run(workers=0, progress=False)
    with pytest.warns(CurvewiseWarning) as said:
        corpus = measure_corpus(study, ["l2-norm", "distance"])
    assert "4 of 8 planned runs are no single network and left out" in str(said[0].message)
    assert sorted(corpus.hyperparameters["learner"]) == ["head", "head", "line", "line"]
    assert sorted(corpus.hyperparameters["n"]) == [30, 30, 60, 60]
    # What a head started from is not known.
    head = corpus.hyperparameters["learner"] == "head"
    assert np.array_equal(np.isnan(corpus.measures["distance"]), head)
    assert np.isfinite(corpus.measures["l2-norm"]).all()
    bare = made_study(tmp_path, {"bayes": learners["bayes"]}, design=design)
    with pytest.raises(InputError, match=r"None of the 2 runs can be measured.*single network"):
        measure_corpus(bare)


def test_a_study_that_was_not_run_or_kept_no_weights(study: Study, tmp_path: Path) -> None:
    idle = replace(study, folder=tmp_path)
    with pytest.raises(InputError, match="4 of 4 planned runs are missing"):
        measure_corpus(idle)
    bare = replace(idle, keep=Keep())
    bare.run(workers=0, progress=False)
    with pytest.raises(InputError, match=r'checkpoints = "end".*are without weights'):
        measure_corpus(bare)


def own_norm(subject: Any) -> float:
    return float(sum(p.abs().sum() for p in subject.model.parameters()))


def test_a_measure_of_ones_own(study: Study) -> None:
    corpus = measure_corpus(study, [Measure("mine", own_norm, 1)])
    for i, name in enumerate(corpus.models):
        (job,) = [j for j in study.jobs if name.endswith(j.id[:8])]
        weights = study.network(run=job.id).network.parameters()
        total = sum(float(p.detach().abs().sum()) for p in weights)
        assert corpus.measures["mine"][i] == pytest.approx(total, rel=1e-6)


def test_notes_that_differ_in_numbers_are_said_once(study: Study) -> None:
    def fail(subject: Any) -> float:
        raise InputError(f"norm-2 is {own_norm(subject)}.")

    measures = ["l2-norm", Measure("mine", fail, 1)]
    with pytest.warns(CurvewiseWarning, match=r"mine: norm-2 is \d.*\(or alike, 4 of 4 models\)"):
        corpus = measure_corpus(study, measures)
    assert len(corpus.notes) == 1
    assert np.isnan(corpus.measures["mine"]).all()


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "measure": ({"measures": ["l2-nrom"]}, "'l2-nrom' is not known.*l2-norm"),
    "none": ({"measures": []}, "measures is empty"),
    "evaluation": ({"evaluation": "moon"}, "evaluation='moon'.*test, turned"),
    "workers": ({"workers": -1}, "workers=-1"),
    "device": ({"device": "abacus"}, "device='abacus'"),
    "examples": ({"examples": 0}, "examples=0"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(study: Study, case: str) -> None:
    given, said = BAD[case]
    with pytest.raises(InputError, match=said):
        measure_corpus(study, **{"measures": ["l2-norm"], **given})


def test_sensitivity_of_a_study_is_that_of_its_networks(study: Study, tmp_path: Path) -> None:
    from curvewise.response import judge_sensitivity

    asked: dict[str, Any] = {"batches": [1, 3], "batch": 20, "repeats": 2, "magnitudes": 3}
    found = judge_study_sensitivity(study, **asked)
    corpus = measure_corpus(study, "l2-norm", seeds="first")
    ids = [r["run"] for _, r in study.frame().iterrows()]
    runs = {name: next(i for i in ids if name.endswith(i[:8])) for name in corpus.models}
    networks = {name: study.network(run=run) for name, run in runs.items()}
    examples = next(iter(networks.values())).examples
    by_hand = judge_sensitivity({k: v.network for k, v in networks.items()}, examples, corpus, **asked)
    assert (found.models, found.batches.tolist()) == (2, [1, 3])
    for score, values in by_hand.values.items():
        assert np.array_equal(found.values[score], values, equal_nan=True)
    several = replace(study, design=replace(study.design, sizes=[60, 80]))
    with pytest.warns(CurvewiseWarning, match="missing"):  # but the finished ones are of one size
        judge_study_sensitivity(several, **asked)
