"""The constants of the papers' protocols, and what a user may change about them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from curvewise.errors import InputError
from curvewise.store.read import list_runs
from curvewise.study import RECIPES, Dataset, Evaluation, load_study, study_recipe


def data(n: int = 400, classes: int = 4, images: bool = False) -> Dataset:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (n, 1, 8, 8), dtype=np.uint8) if images else rng.random((n, 3))
    return Dataset(x, np.arange(n) % classes)


def test_learning_follows_hoiem():
    study = study_recipe("learning", data(), weights="w.pt", folder="here")
    assert set(study.learners) == {"scratch", "scratch-linear", "pretrained", "pretrained-linear", "ensemble"}
    for name, learner in study.learners.items():
        training = learner.training
        assert (training.optimiser, training.batch, training.weight_decay) == ("ranger", 64, 1e-4)
        assert training.schedule == "searched"
        assert len(training.rates) > 1
        assert training.trained == ("head" if "linear" in name else "all")
        assert training.weights == (None if "scratch" in name else "w.pt")
    assert study.learners["ensemble"].members == 6
    assert study.design.test == 0.2


def test_learning_has_disjoint_partitions_of_the_paper_s_sizes():
    # 500 examples of 5 classes: 80 per class to train on, as 400 of CIFAR-100 in proportion.
    study = study_recipe("learning", data(500, 5))
    parts = study.partition
    assert parts.sizes == (25, 50, 100, 200, 400)
    assert parts.folds == (16, 8, 4, 2, 1)
    for n in parts.sizes:
        every = np.concatenate([s.indices for s in parts.at(n)])
        assert len(np.unique(every)) == len(every)
    assert not parts.warnings


def test_variance_follows_jordan():
    study = study_recipe("variance", "cifar10")
    t = study.learners["resnet9"].training
    assert t.architecture == "resnet9"
    assert (t.batch, t.optimiser, t.rate, t.momentum, t.weight_decay) == (500, "sgd", 0.5, 0.9, 5e-4)
    assert t.schedule == "linear"
    assert t.warmup == 0
    assert t.augmentation == ("flip", "translate:2", "cutout:12")
    assert study.design.grid == {"epochs": [0, 4, 16, 64]}
    assert study.design.vary == ("init", "order", "augmentation")


def test_variance_sources_isolates_each_seed():
    study = study_recipe("variance-sources", data(images=True), seeds=4)
    assert study.design.variations == (
        ("init", "order", "augmentation"),
        ("init",),
        ("order",),
        ("augmentation",),
        ("poke",),
    )
    assert study.design.poke == {"epoch": 0, "factor": 1.001}
    runs = [j for j in study.jobs if j.settings["epochs"] == 16]
    assert len(runs) == 5 * 4
    for source in ("init", "order", "augmentation"):
        alone = [j.seeds for j in runs if j.varies == source]
        assert len({s[source] for s in alone}) == 4
        for other in {"init", "order", "augmentation"} - {source}:
            assert len({s[other] for s in alone}) == 1
    poked = [j for j in runs if j.varies == "poke"]
    assert len({tuple(j.seeds.values()) for j in poked}) == 1
    assert len({j.poke.seed for j in poked}) == 4
    assert {j.poke.factor for j in poked} == {1.001}
    assert all(j.poke is None for j in runs if j.varies != "poke")


def test_the_convex_model_is_linear_and_regularised():
    training = study_recipe("variance-linear", "cifar10").learners["linear"].training
    assert training.architecture == "linear"
    assert training.weight_decay > 0
    assert training.augmentation == ()


def test_text_fine_tuning_follows_jordan():
    t = study_recipe("variance-text", "mrpc", model="bert").learners["encoder"].training
    assert (t.architecture, t.epochs, t.batch, t.optimiser) == ("hf:bert", 3, 16, "adam")
    assert (t.rate, t.schedule) == (2e-5, "linear")
    with pytest.raises(InputError, match="needs model="):
        study_recipe("variance-text", "mrpc")


def test_response_follows_schiff():
    study = study_recipe("response", data(images=True), reach=90)
    (learner,) = study.learners.values()
    t = learner.training
    assert (t.optimiser, t.schedule, t.validation) == ("adam", "plateau", 0.05)
    assert study.design.grid == {
        "architecture": ["vgg11", "vgg13", "vgg16", "vgg19"],
        "batch_norm": [False, True],
        "batch": [1024, 2048, 4096],
        "rate": [1e-4, 1e-5],
        "augmentation": [[], ["rotation:45"], ["rotation:90"]],
    }
    assert len(study.jobs) == 4 * 2 * 3 * 2 * 3
    assert study.evaluate == {"rotation": Evaluation(perturbation="rotation", magnitude=(-90, 90))}
    other = study_recipe("response", data(images=True), family="resnet", widths=[16, 32])
    assert other.design.grid["architecture"] == ["resnet18", "resnet34", "resnet50"]
    assert other.design.grid["width"] == [16, 32]
    assert other.design.grid["augmentation"][2] == ["rotation:180"]


def test_transfer_follows_atanov():
    study = study_recipe("transfer", data(), weights="w.pt")
    scratch, pretrained, frozen = (study.learners[k].training for k in ("scratch", "pretrained", "frozen"))
    for training in (scratch, pretrained, frozen):
        assert (training.optimiser, training.weight_decay, training.batch) == ("adamw", 1e-4, 64)
        assert (training.schedule, training.validation) == ("early-stop", 0.2)
    assert (scratch.rate, pretrained.rate) == (1e-3, 1e-4)
    assert (scratch.weights, pretrained.weights, frozen.weights) == (None, "w.pt", "w.pt")
    assert frozen.trained == "head"
    assert study.design.sizes[-1] == 1.0  # the maximal control
    assert study.design.seeds == 2


def test_the_blind_control_is_the_best_constant_for_the_log_loss(tmp_path):
    # The entropy of the training frequencies, measured on the test labels, is the oracle.
    rng = np.random.default_rng(1)
    y = rng.choice(3, 500, p=[0.6, 0.3, 0.1])
    given = Dataset(rng.random((500, 2)), y, rng.random((300, 2)), rng.choice(3, 300))
    study = study_recipe(
        "transfer",
        given,
        learners={"blind": RECIPES["transfer"]()["learners"]["blind"]},
        sizes=[1.0],
        seeds=1,
        folder=tmp_path,
    )
    study.run(workers=0, progress=False)
    prior = np.bincount(y) / len(y)
    expected = -np.log(prior[given.test_y]).mean()
    assert study.measurements("loss").error == pytest.approx(expected, rel=1e-5)


def test_ranking_follows_li():
    study = study_recipe("ranking", "pets", checkpoints={"a": "a.pt", "b": "b.pt"})
    assert study.design.grid["rate"] == [0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.5]
    assert study.design.grid["steps"] == [2500, 5000, 10000, 15000, 20000, 40000]
    assert len(list(study.design.combinations())) == 48
    for name in ("a", "b"):
        t = study.learners[name].training
        assert (t.batch, t.optimiser, t.momentum, t.weight_decay) == (512, "sgd", 0.9, 0)
        assert t.augmentation == ()
        assert t.weights == f"{name}.pt"
    assert study.learners["scratch"].training.weight_decay == 0.01
    pretraining = study_recipe("ranking-checkpoints", "imagenet")
    assert pretraining.keep.checkpoints == "drops"
    t = pretraining.learners["resnet50"].training
    assert [round(d * t.steps) for d in t.drops] == [90_000, 180_000, 270_000]
    assert (t.steps, t.augmentation) == (300_000, ("resized-crop:0.08", "flip"))
    assert "resnet101" in study_recipe("ranking-checkpoints", "imagenet", architecture="resnet101").learners
    places = study_recipe("ranking-checkpoints", "places", stages=(60_000, 120_000, 180_000, 200_000))
    t = places.learners["resnet50"].training
    assert (t.steps, [round(d * t.steps) for d in t.drops]) == (200_000, [60_000, 120_000, 180_000])


@pytest.mark.parametrize("name", RECIPES)
def test_each_recipe_cites_its_paper(name):
    assert re.search(r"(Hoiem|Jordan|Schiff|Atanov|Li)\b.* 20\d\d", RECIPES[name].__doc__)


def test_changes_are_the_words_of_a_study_file():
    study = study_recipe(
        "variance",
        "cifar10",
        seeds=7,
        learners={"resnet9": {"rate": 0.1}, "mine": {"architecture": "cnn", "width": 8}},
        keep={"probabilities": True},
        name="ours",
        seed=5,
    )
    assert set(study.learners) == {"resnet9", "mine"}
    assert study.learners["resnet9"].training.rate == 0.1
    mine = study.learners["mine"].training
    assert (mine.architecture, mine.options, mine.batch) == ("cnn", {"width": 8}, 500)
    assert (study.design.seeds, study.seed, study.name) == (7, 5, "ours")
    assert study.design.grid == {"epochs": [0, 4, 16, 64]}
    assert study.keep.probabilities


def test_own_sizes_and_variations_replace_what_belongs_to_the_recipe_s():
    assert study_recipe("learning", "digits", sizes=[10, 20]).design.folds is None
    assert study_recipe("variance-sources", "digits", vary=["init"]).design.poke is None


def test_unknown_words_are_refused_with_a_suggestion():
    with pytest.raises(InputError, match="Did you mean 'learning'"):
        study_recipe("learnin", "digits")
    with pytest.raises(InputError, match="Did you mean 'architecture'"):
        study_recipe("learning", "digits", architectur="mlp")


def test_a_file_that_names_a_recipe_is_the_recipe_with_changes(tmp_path: Path):
    path = tmp_path / "study.toml"
    path.write_text(
        "name = 'mine'\nrecipe = 'variance'\ndata = 'cifar10'\n[learners.resnet9]\nrate = 0.25\n"
        "[learners.svm]\nestimator = 'sklearn.svm:SVC'\n[design]\nseeds = 9\n"
    )
    study = load_study(path)
    assert study == study_recipe(
        "variance",
        "cifar10",
        learners={"resnet9": {"rate": 0.25}, "svm": {"estimator": "sklearn.svm:SVC"}},
        seeds=9,
        name="mine",
        folder=tmp_path,
    )
    assert study.learners["svm"].training is None


TINY = {"sizes": [60], "folds": 1, "seeds": 1}
SHORTER = {
    "learning": {
        "architecture": "mlp",
        "augmentation": [],
        "learners": {
            "scratch": {"rate": [0.001, 0.01], "epochs": 3},
            "scratch-linear": {"rate": 0.01, "epochs": 3},
            "ensemble": {"rate": 0.01, "epochs": 2, "members": 2},
        },
    },
    "variance": {"grid": {"epochs": [0, 1]}, "learners": {"resnet9": {"width": 4}}},
    "variance-sources": {"grid": {"epochs": [1]}, "learners": {"cnn": {"architecture": "cnn", "width": 4}}},
    "variance-linear": {"learners": {"linear": {"epochs": 2}}},
    "response": {
        "grid": {"batch_norm": [False, True], "augmentation": [[], ["rotation:90"]]},
        "learners": {"vgg": {"width": 4, "epochs": 2, "batch": 32}},
    },
    "transfer": {"architecture": "cnn", "learners": {"scratch": {"epochs": 2, "width": 4}, "blind": {}}},
    "ranking": {"architecture": "mlp", "grid": {"rate": [0.01], "steps": [3]}},
    "ranking-checkpoints": {"learners": {"net": {"architecture": "mlp", "steps": 10, "augmentation": []}}},
}


@pytest.mark.parametrize("name", SHORTER)
def test_each_recipe_can_be_trained(tmp_path, name):
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    images = Dataset(rng.integers(0, 256, (100, 1, 16, 16), dtype=np.uint8), np.arange(100) % 4)
    study = study_recipe(name, images, **TINY, **SHORTER[name], folder=tmp_path)
    status = study.run(workers=0, progress=False, device="cpu")
    assert status.failures == ()
    assert status.done == len(study.jobs)
    if name == "ranking-checkpoints":
        (run,) = list_runs(study.runs_folder)
        assert set(run.files) == {"drop-1", "drop-2", "drop-3", "end"}
