from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from curvewise.errors import InputError, StoreError
from curvewise.nn.task import Keep
from curvewise.nn.training import Training
from curvewise.store.read import read_run
from curvewise.study.data.dataset import Dataset
from curvewise.study.spec.design import Design, Learner
from curvewise.study.spec.evaluation import Evaluation
from curvewise.study.study import Study, load_model

torch = pytest.importorskip("torch")

SMALL = {"width": 8, "depth": 2, "batch_norm": True}


def digits() -> Dataset:
    images, y = load_digits(return_X_y=True)
    x = (images[:300].reshape(-1, 1, 8, 8) * 15).astype(np.uint8)
    return Dataset(x, y[:300])


def made_study(folder: Path, learners: dict[str, Learner], **options: Any) -> Study:
    options.setdefault("design", Design(sizes=[40, 80], folds=2, seeds=2))
    options.setdefault("keep", Keep(checkpoints="end"))
    turned = Evaluation(perturbation="rotation", magnitude=30)
    return Study(digits(), learners, evaluate={"turned": turned}, folder=folder, store=Path("s"), **options)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    learners = {
        "bayes": Learner(estimator="sklearn.naive_bayes:GaussianNB"),
        "pair": Learner(training=Training("linear", epochs=1), members=2),
        "mlp": Learner(training=Training("mlp", options={"width": 8}, epochs=8, batch=10)),
        "nin": Learner(training=Training("nin", options=SMALL, epochs=4, batch=10)),
        "head": Learner(training=Training("mlp", epochs=4, batch=10, trained="head")),
    }
    made = made_study(tmp_path_factory.mktemp("networks"), learners)
    assert made.run(workers=0, progress=False).done == len(made.jobs)
    return made


def predicted(study: Study, model: torch.nn.Module, evaluation: str) -> Any:
    shown = study.evaluation_sets[evaluation]
    x = torch.from_numpy(shown.x).float() / 255
    with torch.no_grad():
        return model((x - shown.mean[0]) / shown.std[0]).argmax(1).numpy()


@pytest.mark.parametrize("learner", ["mlp", "nin", "head"])
def test_a_network_predicts_what_its_run_predicted(study: Study, learner: str) -> None:
    jobs = [job for job in study.jobs if job.name == learner]
    assert len(jobs) == 8
    for job in jobs:
        found, run = study.network(run=job.id), read_run(study.runs_folder / job.id)
        assert found.run == job.id
        assert not found.network.training
        for evaluation in ("test", "turned"):
            name = "predictions" if evaluation == "test" else "predictions.turned"
            there = run.array(name)
            assert np.array_equal(predicted(study, found.network, evaluation), there)
            assert len(np.unique(there)) > 1


def test_examples_are_those_it_was_trained_on(study: Study) -> None:
    for job in study.jobs[::7]:
        if job.learner.training is None or job.learner.members > 1:
            continue
        examples = load_model(study, job.id).examples
        rows = study.rows_of(job.n, job.fold)
        assert np.array_equal(examples.x, study.dataset.x[rows])
        assert len(examples.y) == job.n
        model = load_model(study, job.id).network
        x = torch.from_numpy(examples.x).float() / 255
        with torch.no_grad():
            told = model((x - examples.mean[0]) / examples.std[0]).argmax(1).numpy()
        error = read_run(study.runs_folder / job.id).metrics["train_error"]
        assert np.mean(told != examples.y) == pytest.approx(error, abs=1e-9)


def test_initial_weights_are_those_of_a_training_of_no_epoch(study: Study, tmp_path: Path) -> None:
    learners = {
        name: replace(study.learners[name], training=replace(training, epochs=0))
        for name in ("mlp", "nin")
        if (training := study.learners[name].training) is not None
    }
    idle = made_study(tmp_path, learners)
    idle.run(workers=0, progress=False)
    assert len(idle.jobs) == 16
    seen = set()
    for job in study.jobs:
        if job.name not in learners:
            continue
        like = (job.name, job.n, job.fold, job.seeds)
        (other,) = [j for j in idle.jobs if (j.name, j.n, j.fold, j.seeds) == like]
        start = study.network(run=job.id).initial
        assert start is not None
        weights = read_run(idle.runs_folder / other.id).checkpoint("end")
        state = start.state_dict()
        assert state.keys() == weights.keys()
        assert all(np.array_equal(state[k].numpy(), weights[k]) for k in weights)
        seen.add(float(sum(v.double().sum() for v in state.values())))
    assert len(seen) == 16
    assert study.network("head").initial is None


def test_the_first_network_with_some_coordinates(study: Study) -> None:
    at = study.network("mlp", n=80, fold=1)
    (first, _) = [j for j in study.jobs if (j.name, j.n, j.fold) == ("mlp", 80, 1)]
    assert at.run == first.id
    # Ensembles and estimators have none, so that the first one is the mlp's.
    assert study.network().run == next(j.id for j in study.jobs if j.name == "mlp")


def test_what_has_no_network(study: Study, tmp_path: Path) -> None:
    for name in ("bayes", "pair"):
        job = next(j for j in study.jobs if j.name == name)
        with pytest.raises(InputError, match=f"is of '{name}', which is not a single network"):
            study.network(run=job.id)
        with pytest.raises(InputError, match="None of the 8 runs has the weights"):
            study.network(name)
    with pytest.raises(InputError, match="is not a run of this study"):
        study.network(run="nothing")
    with pytest.raises(InputError, match="width= is not a coordinate"):
        study.network("mlp", width=3)
    with pytest.raises(InputError, match="n=7: no run"):
        study.network("mlp", n=7)
    learner = {"mlp": study.learners["mlp"]}
    bare = made_study(tmp_path, learner, keep=Keep(), design=Design(sizes=[40], folds=1))
    with pytest.raises(InputError, match="checkpoints"):
        bare.network()  # not run yet
    bare.run(workers=0, progress=False)
    with pytest.raises(InputError, match="checkpoints"):
        bare.network()
    with pytest.raises(InputError, match="no checkpoint 'end'"):
        bare.network(run=bare.jobs[0].id)


def test_a_search_has_no_network(tmp_path: Path) -> None:
    training = Training("linear", epochs=1, rate=(0.01, 0.1))
    design = Design(sizes=[60], folds=1)
    study = made_study(tmp_path, {"it": Learner(training=training)}, design=design)
    study.run(workers=0, progress=False)
    search, job = study.jobs
    assert search.is_search
    with pytest.raises(InputError, match="search for a learning rate"):
        study.network(run=search.id)
    run = read_run(study.runs_folder / job.id)
    assert study.network().run == job.id
    assert np.array_equal(predicted(study, study.network().network, "test"), run.predictions)


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    learner = {"it": Learner(training=Training("linear", epochs=1))}
    study = made_study(tmp_path, learner, design=Design(sizes=[40], folds=1))
    study.run(workers=0, progress=False)
    path = study.runs_folder / study.jobs[0].id / "end.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(StoreError, match=r"end\.safetensors"):
        study.network()
    path.unlink()
    with pytest.raises(StoreError, match=r"end\.safetensors"):
        study.network()
