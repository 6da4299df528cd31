"""The runs that follow from a study, and their names."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from curvewise.errors import InputError
from curvewise.nn.training import Training
from curvewise.store.record import run_id
from curvewise.study import Dataset, Design, Evaluation, Learner, Study
from curvewise.study.data.dataset import level_counts, level_statistics

DATA = Dataset(np.arange(80.0).reshape(40, 2), np.arange(40) % 2)
NET = Learner(Training("mlp", options={"width": 8}, rate=(0.1, 0.2)))
SVM = Learner(estimator="sklearn.svm:SVC", options={"C": 2})
PIXELS = (np.arange(40 * 64) % 251).astype(np.uint8).reshape(40, 1, 8, 8)
IMAGES = Dataset(PIXELS, np.arange(40) % 2)


def study(**design: object) -> Study:
    given = {"sizes": [10, 20], "folds": [2, 1], "seeds": 2, **design}
    return Study(DATA, {"net": NET, "svm": SVM}, Design(**given))


def ids(of: Study) -> list[str]:
    return [job.id for job in of.jobs]


def test_ids_stay_what_they_were():
    """A changed id makes stored runs useless: only with a new recipe version."""
    found = ids(study(poke={"epoch": 1}))
    assert len(found) == 13
    digest = hashlib.sha256("".join(found).encode()).hexdigest()
    assert digest[:16] == "d094025ce2ca58eb"


def test_ids_of_runs_that_start_from_weights_stay_what_they_were(tmp_path):
    """Those from before weights chose the stem, where that is the usual one; a control like them keeps its own."""
    torch = pytest.importorskip("torch")
    from curvewise.nn.architectures import ARCHITECTURES

    with torch.device("meta"):
        arrays = ARCHITECTURES["resnet18"]((1, 8, 8), 2, width=2).state_dict()
    np.savez(tmp_path / "w.npz", **{k: np.zeros(v.shape, np.float32) for k, v in arrays.items()})
    usual = Training("resnet18", options={"width": 2})
    trainings = {"a": replace(usual, weights="w.npz"), "b": usual, "c": replace(usual, like="w.npz")}
    found = {k: ids(Study(IMAGES, {"net": Learner(t)}, folder=tmp_path)) for k, t in trainings.items()}
    assert found == {"a": ["b5dd254d50d5576f2f99"], "b": ["a64772c208d9dd4c236a"], "c": ["a64772c208d9dd4c236a"]}


@pytest.mark.parametrize("earlier", ["f2a123e5a70d56440bd1b6ce00b20d92", "eac9678760851f632b76ba2c2778c953"])
def test_runs_stored_under_statistics_that_a_processor_rounded_remain_valid(tmp_path, earlier):
    """Version 0.2 gave these data the two hashes on processors with AVX2 and with SSE, and ours with AVX-512."""

    def of(data):
        return Study(data, {"svm": SVM}, Design(sizes=[20], folds=1), folder=tmp_path)

    before = of(IMAGES)
    vars(before)["data_digest"] = earlier
    before.run(workers=0, progress=False)
    assert of(IMAGES).status().done == 1
    changed = PIXELS.copy()
    changed[0, 0, 0, 0] = 250
    assert of(Dataset(changed, IMAGES.y)).status().done == 0


def test_statistics_of_images_are_exact():
    """The mean and the variance of whole numbers, in arithmetic without rounding, and rounded once."""
    x = np.random.default_rng(0).integers(0, 256, (50, 12, 7, 7)).astype(np.uint8)
    mean, std = level_statistics(level_counts(x, np.arange(10, 50)))
    for c in range(12):
        values = [Fraction(int(v), 255) for v in x[10:, c].ravel()]
        centre = sum(values) / len(values)
        assert mean[c] == float(centre)
        assert std[c] == math.sqrt(float(sum((v - centre) ** 2 for v in values) / len(values)))


def test_an_id_is_the_hash_of_the_coordinates():
    jobs = study(grid={"batch": [8, 16]}).jobs
    assert len({j.id for j in jobs}) == len(jobs)
    for job in jobs:
        assert job.id == run_id(job.coordinates)


def test_a_larger_study_keeps_the_runs_of_the_smaller():
    small = set(ids(study(sizes=[10], folds=2)))
    more = study(sizes=[10, 20], folds=[2, 1], seeds=4, grid={})
    larger = {j.id for j in more.jobs if not j.is_search}
    searches = {j.id for j in study(sizes=[10], folds=2).jobs if j.is_search}
    svm = {j.id for j in study(sizes=[10], folds=2).jobs if j.name == "svm"}
    assert svm <= larger
    assert small - svm - searches  # the networks hang on a search on another subset
    assert not (small - svm - searches) & larger


def test_settled_rates_do_not_hang_on_a_search():
    net = replace(NET, training=replace(NET.training, rate=0.1))
    few = Study(DATA, {"net": net}, Design(sizes=[10], folds=2))
    many = Study(DATA, {"net": net, "svm": SVM}, Design(sizes=[10, 20], folds=[2, 1], seeds=3))
    assert set(ids(few)) <= set(ids(many))
    assert all(job.needs is None for job in many.jobs)


def test_searches_come_first_and_runs_name_theirs():
    jobs = study(grid={"batch": [8, 16]}).jobs
    searches = [j for j in jobs if j.is_search]
    assert jobs[:2] == searches
    assert {j.needs for j in jobs if j.name == "net" and not j.is_search} == {s.id for s in searches}
    for job in jobs:
        if job.needs is not None:
            (search,) = [s for s in searches if s.id == job.needs]
            assert search.settings == job.settings
            assert job.coordinates["search"] == search.id


def test_further_variations_add_runs_and_share_none():
    flat = Study(DATA, {"svm": SVM}, Design(seeds=3))
    every = ["init", "order", "augmentation"]
    several = replace(flat, design=Design(seeds=3, vary=[every, ["init"], ["order"]]))
    assert ids(several)[:3] == ids(flat)
    assert len(set(ids(several))) == 9
    assert [j.varies for j in several.jobs] == (["init+order+augmentation"] * 3 + ["init"] * 3 + ["order"] * 3)


def test_a_poked_run_is_the_twin_of_one_that_is_not():
    every = ["init", "order"]
    design = Design(seeds=3, vary=[every, [*every, "poke"]], poke={"epoch": 2, "factor": 1.01})
    jobs = Study(DATA, {"svm": SVM}, design).jobs
    plain, poked = jobs[:3], jobs[3:]
    assert [j.seeds for j in plain] == [j.seeds for j in poked]
    assert all(j.poke is None for j in plain)
    assert {(j.poke.epoch, j.poke.factor) for j in poked} == {(2, 1.01)}
    assert len({j.id for j in jobs}) == 6


def save_weights(path: Path, value: float) -> None:
    """Write weights of a linear network that fit DATA."""
    pytest.importorskip("torch")
    np.savez(path, **{"1.weight": np.full((2, 2), value, np.float32), "1.bias": np.zeros(2, np.float32)})


def test_other_weights_are_another_run(tmp_path):
    def first(value: float) -> str:
        save_weights(tmp_path / "w.npz", value)
        learner = Learner(Training("linear", weights="w.npz"))
        return ids(Study(DATA, {"net": learner}, folder=tmp_path))[0]

    assert first(1.0) == first(1.0)
    assert first(1.0) != first(2.0)


def test_a_grid_reaches_those_whom_it_means_something():
    learners = {
        "net": NET,
        "svm": SVM,
        "mine": Learner(command="train --batch {batch} --out {out}"),
        "other": Learner(command="train --out {out}"),
    }
    grid = {"batch": [8, 16], "svm": {"C": [1, 2, 3]}, "net": {"depth": [1, 2]}}
    made = Study(DATA, learners, Design(grid=grid))
    found = {name: [dict(j.settings) for j in made.jobs if j.name == name and not j.is_search] for name in learners}
    assert found == {
        "net": [{"batch": b, "depth": d} for b in (8, 16) for d in (1, 2)],
        "svm": [{"C": c} for c in (1, 2, 3)],
        "mine": [{"batch": b} for b in (8, 16)],
        "other": [{}],
    }
    assert made.design.settings == ("batch", "C", "depth")
    with pytest.raises(InputError, match="'forest', which is not a learner"):
        Study(DATA, learners, Design(grid={"forest": {"C": [1]}}))


def test_a_grid_over_weights_reads_each_file(tmp_path):
    files = [tmp_path / "a.npz", tmp_path / "b.npz"]
    for value, file in enumerate(files):
        save_weights(file, value)
    design = Design(grid={"weights": ["a.npz", "b.npz"]})
    jobs = Study(DATA, {"net": Learner(Training("linear"))}, design, folder=tmp_path).jobs
    found = [j.coordinates["weights"] for j in jobs]
    assert found == [hashlib.sha256(file.read_bytes()).hexdigest()[:32] for file in files]


def test_missing_weights_are_named(tmp_path):
    learner = Learner(Training("mlp", weights="none.pt"))
    with pytest.raises(InputError, match=r"learners\.net: weights='.*none\.pt': there is no such file"):
        _ = Study(DATA, {"net": learner}, folder=tmp_path).jobs


def test_the_cost_of_a_run_counts_examples_looked_at():
    learner = Learner(Training("mlp", epochs=3, batch=10), members=2)
    (job,) = Study(DATA, {"net": learner}, Design(sizes=[20], folds=1)).jobs
    assert job.cost == 2 * (3 * 20 + 1)


def test_numbers_that_are_equal_make_one_training():
    assert Training(epochs=20, rate=[1]) == Training(epochs=20.0, rate=1.0)
    assert str(Training(weight_decay=-0.0).as_dict()) == str(Training().as_dict())
    alike = [{"epochs": 20, "rate": (0.2, 0.1)}, {"epochs": 20.0, "rate": [0.1, 0.2]}]
    texts = {json.dumps(Training(**settings).as_dict()) for settings in alike}
    assert len(texts) == 1


def test_numbers_and_arrays_of_numpy_are_plain_ones():
    plain = Design(sizes=[10, 20], folds=2, seeds=2, grid={"batch": [5, 10], "rate": [0.1]})
    numpy = Design(
        sizes=np.array([10, 20]),
        folds=np.int64(2),
        seeds=np.int32(2),
        grid={"batch": np.array([5, 10]), "rate": [np.float64(0.1)]},
    )
    assert plain == numpy
    options = {"epochs": np.int64(2), "batch": np.int16(7), "drops": np.array([0.5]), "schedule": "drops"}
    assert Training(**options) == Training(epochs=2, batch=7, drops=(0.5,), schedule="drops")
    one, other = (Study(DATA, {"net": NET}, d, seed=s) for d, s in ((plain, 1), (numpy, np.int64(1))))
    assert ids(one) == ids(other)
    assert Evaluation(perturbation="rotation", magnitude=np.array([-5, 5])).magnitude == (-5, 5)


@pytest.mark.parametrize("kind", [list, pd.DataFrame, pl.DataFrame, torch.tensor])
def test_data_may_be_lists_frames_and_tensors(kind):
    x, y = np.arange(12.0).reshape(6, 2), np.arange(6) % 2
    labels = {pd.DataFrame: pd.Series, pl.DataFrame: pl.Series}.get(kind, kind)
    given = Dataset(kind(x), labels(y), test_x=kind(x), test_y=labels(y))
    assert np.array_equal(given.x, x)
    assert np.array_equal(given.test_y, y)
    with pytest.raises(InputError, match=r"x has shape \(\)"):
        Dataset(None, None)


def test_more_classes_are_another_training():
    more = replace(DATA, classes=tuple("abcdefghijkl"))
    one, other = (Study(d, {"net": NET}, Design(sizes=[10], folds=1)) for d in (DATA, more))
    assert not set(ids(one)) & set(ids(other))


def test_a_folder_of_a_model_counts_by_its_content(tmp_path):
    (tmp_path / "bert").mkdir()
    found = set()
    for content in ("a", "b", "a"):
        (tmp_path / "bert" / "model.safetensors").write_text(content)
        learner = Learner(Training("hf:bert"))
        study = Study(DATA, {"text": learner}, Design(sizes=[10], folds=1), folder=tmp_path)
        found.add(ids(study)[0])
    assert len(found) == 2
