"""The constants of the papers' protocols, and what a user may change about them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from curvewise.errors import InputError
from curvewise.nn.training import Training
from curvewise.report.study import study_report
from curvewise.store.read import list_runs
from curvewise.study import RECIPES, Dataset, Evaluation, Keep, Learner, Study, load_study, study_recipe, transfer_risks
from curvewise.study.spec.document import learner_from_table
from curvewise.study.status import planned_runs


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
        assert training.augmentation == ("translate:4",)
        assert training.weights == (None if "scratch" in name else "w.pt")
        assert (training.patience, training.patience_n) == (None, None)  # 5 at 400 examples of each class
    assert study.learners["ensemble"].members == 6
    assert study.design.test == 0.2
    small = study_recipe("learning", data(500, 5), protocol="small")
    for job in small.jobs:
        training = job.learner.training
        assert training.patience_for(400, 10) == 15  # at the largest size, and 4 times as long at 1/16 of it
        assert training.patience_for(25, 10) == 60


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


def test_learning_leaves_the_test_set_of_the_data_alone():
    """As CIFAR-100 in proportion: 500 images of each class become 25 to 400, and 100 are tested on."""
    rng, y = np.random.default_rng(0), np.repeat(np.arange(2), 500)
    both = Dataset(rng.random((1000, 3)), y, rng.random((40, 3)), np.arange(40) % 2)
    study = study_recipe("learning", both)
    assert study.partition.sizes == (50, 100, 200, 400, 800)
    tested = study.test_examples()
    assert np.bincount(tested.y).tolist() == [100, 100]
    rows = np.setdiff1d(np.arange(1000), study.train_rows)
    np.testing.assert_array_equal(tested.x, both.x[rows])
    own = study_recipe("learning", both, hold_out=False)
    assert own.partition.sizes[-1] == 1000
    np.testing.assert_array_equal(own.test_examples().x, both.test_x)
    with pytest.raises(InputError, match="hold_out='yes': give true or false"):
        study_recipe("learning", both, hold_out="yes")


def test_places_counts_examples_of_each_class():
    many = Dataset(np.zeros((4400, 1)), np.arange(4400) % 2)
    study = study_recipe("learning", many, protocol="places")
    assert study.partition.sizes == (50, 100, 200, 400, 800, 3200)
    assert study.partition.folds == (16, 8, 4, 3, 3, 1)


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


VARIED = "init+order+augmentation"


def test_variance_sources_isolates_each_seed():
    study = study_recipe("variance-sources", data(images=True), seeds=4)
    assert study.design.variations == (
        ("init", "order", "augmentation"),
        ("init",),
        ("order",),
        ("augmentation",),
        ("init", "order", "augmentation", "poke"),
        ("poke",),
    )
    assert study.design.poke == {"epoch": 0, "factor": 1.001}
    assert study.design.grid == {"epochs": [1, 4, 16, 32, 64, 128]}
    runs = [j for j in study.jobs if j.settings["epochs"] == 16]
    assert len(runs) == 6 * 4
    for source in ("init", "order", "augmentation"):
        alone = [j.seeds for j in runs if j.varies == source]
        assert len({s[source] for s in alone}) == 4
        for other in {"init", "order", "augmentation"} - {source}:
            assert len({s[other] for s in alone}) == 1
    poked = [j for j in runs if j.varies == "poke"]
    assert len({tuple(j.seeds.values()) for j in poked}) == 1
    assert len({j.poke.seed for j in poked}) == 4
    assert {j.poke.factor for j in poked} == {1.001}
    assert all(j.poke is None for j in runs if "poke" not in j.varies)
    # Every run in which all varies has a twin with the same seeds.
    plain, nudged = ([j.seeds for j in runs if j.varies == v] for v in (VARIED, f"{VARIED}+poke"))
    assert plain == nudged
    later = study_recipe("variance-sources", data(images=True), seeds=4, epoch=[0, 1, 4], epochs=[1, 4])
    moments = {(j.settings["epochs"], j.poke.epoch) for j in later.jobs if j.poke is not None}
    assert moments == {(1, 0), (1, 1), (4, 0), (4, 1), (4, 4)}


def test_variance_recipes_follow_jordan():
    """Figures 6, 7 and 8, and appendix A.2."""
    binary = study_recipe("variance-binary", "cifar10").design.grid["classes"]
    assert len(binary) == 511
    assert {len(groups) for groups in binary} == {10}
    assert {max(groups) for groups in binary} == {1}
    rates = study_recipe("variance-rates", "cifar10").design.grid["rate"]
    assert (len(rates), rates[0], rates[-1]) == (13, 2**-10, 4.0)
    ablated = study_recipe("variance-augmentation", "cifar10").design
    assert ablated.sizes == (0.2, 1.0)
    assert ablated.grid == {"augmentation": [["flip", "translate:2", "cutout:12"], []]}
    t = study_recipe("variance-imagenet", "imagenet").learners["resnet18"].training
    assert (t.batch, t.optimiser, t.rate, t.momentum, t.weight_decay) == (1024, "sgd", 0.5, 0.9, 5e-5)
    assert (t.epochs, t.schedule, t.warmup * t.epochs) == (100, "linear", 2)
    assert t.augmentation == ("flip", "resized-crop:0.08")
    assert t.options == {"stem": "imagenet"}


def test_the_speed_record_follows_jordan():
    study = study_recipe("variance-fast", "cifar10")
    training = study.learners["speednet"].training
    assert (training.architecture, training.first_layer, training.precision) == ("speednet", "whitening", "bfloat16")
    assert (training.batch, training.epochs, training.schedule, training.label_smoothing) == (2000, 8, "linear", 0.2)
    assert training.augmentation == ("alternating-flip", "crop:2")
    assert (training.optimiser, training.rate, training.momentum, training.nesterov) == ("muon", 0.24, 0.6, True)
    assert (training.newton_schulz, training.rescale_filters) == (3, True)
    # Published for a summed loss of 2,000: 0.053 and 0.67 with decays of (2e-6 · 2,000) over the rate.
    for name, rate in (("first_layer.bias", 0.053), ("network.*bias", 0.053), ("network.head.weight", 0.67)):
        group = training.group_training(name)
        assert (group.optimiser, group.momentum, group.nesterov) == ("sgd", 0.85, True)
        assert group.rate / 2000 == pytest.approx(rate)
        assert group.weight_decay * 2000 == pytest.approx(2e-6 * 2000 / rate)
    assert {name: own.get("epochs") for name, own in training.groups.items()} == {
        "first_layer.bias": 3,
        "network.*bias": None,
        "network.head.weight": None,
    }
    assert study.evaluate["averaged"].views == ("mirror", "shift:1")
    assert study.design.seeds == 100


def test_the_speed_record_on_images_that_it_does_not_fit(tmp_path):
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)

    def images(*shape):
        return Dataset(rng.integers(0, 256, (60, *shape), dtype=np.uint8), np.arange(60) % 3)

    def planned(data, **changes):
        return study_recipe("variance-fast", data, seeds=2, folder=tmp_path, **changes).plan(measure=False)

    for shape in ((1, 9, 9), (3, 28, 40), (4, 16, 16)):  # other sizes and colours are trained alike
        assert planned(images(*shape)).total_runs == 2
    with pytest.raises(InputError, match=r"speednet.*needs images of 8×8 pixels or more; it is given 7×7"):
        planned(images(3, 8, 8))
    table = Dataset(rng.normal(size=(60, 12)).astype(np.float32), np.arange(60) % 3)
    with pytest.raises(InputError, match=r"evaluate\.averaged: views=.*for images"):
        planned(table)
    with pytest.raises(InputError, match=r"learners\.other: groups='network\.head\.weight': matches none"):
        planned(images(3, 16, 16), learners={"other": {"architecture": "resnet9"}})
    plain = {"architecture": "mlp", "optimiser": "muon", "groups": {}}
    with pytest.raises(InputError, match=r"learners\.other: optimiser='muon': .*'network\.1\.bias'.*Give them a rule"):
        planned(images(3, 16, 16), learners={"other": plain})
    study = study_recipe("variance-fast", images(3, 16, 16), seeds=2, folder=tmp_path)
    with pytest.raises(InputError, match=r"learners\.speednet\.precision='bfloat16': is for GPUs.*float32"):
        study.run(workers=0, progress=False, device="cpu")
    assert not list(study.runs_folder.glob("*/record.json"))


def test_a_study_file_with_every_part_of_the_speed_record(tmp_path):
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    x = rng.integers(0, 80, (90, 3, 12, 12), dtype=np.uint8)
    x[np.arange(90), y] += 120
    np.savez(tmp_path / "tiny.npz", x=x, y=y)
    (tmp_path / "study.toml").write_text(
        """
name = "tiny"
data = "tiny.npz"

[learners.fast]
architecture = "speednet"
width = 8
first_layer = "whitening"
optimiser = "muon"
rate = 0.1
momentum = 0.6
newton_schulz = 3
rescale_filters = true
batch = 24
epochs = 6
label_smoothing = 0.2
augmentation = ["alternating-flip", "crop:1"]

[learners.fast.groups]
"*bias" = { optimiser = "sgd", rate = 1.0, momentum = 0.85, nesterov = true, epochs = 4 }
"network.head.weight" = { optimiser = "sgd", rate = 5.0, momentum = 0.85, nesterov = true }

[design]
seeds = 2
test = 30

[evaluate.averaged]
views = ["mirror", "shift:1"]

[keep]
probabilities = true
checkpoints = "end"
"""
    )
    study = load_study(tmp_path / "study.toml")
    status = study.run(workers=0, progress=False, device="cpu")
    assert status.failures == ()
    assert (study.frame()["error"] < 0.2).all()
    plain, averaged = study.predictions(), study.predictions(evaluation="averaged")
    assert plain.values[:].shape == averaged.values[:].shape == (2, 30)
    # Its network is restored with the filters that its images gave, and counts only what is trained.
    network = study.network()
    torch = pytest.importorskip("torch")
    assert torch.equal(network.initial.first_layer.weight, network.network.first_layer.weight)
    trained = sum(p.numel() for p in network.network.parameters() if p.requires_grad)
    assert study.parameters() == {"fast": trained}
    # Saved and loaded, it is the same study; other views are another set, and the runs are made again.
    study.save(tmp_path / "again.toml")
    assert load_study(tmp_path / "again.toml") == study
    ids = {job.id for job in study.jobs}
    other = replace(study, evaluate={"averaged": Evaluation(views=["mirror"])})
    assert {job.id for job in other.jobs} == ids
    assert {run.state for run in planned_runs(other)} == {"outdated"}


def test_the_convex_model_is_linear_and_regularised():
    training = study_recipe("variance-linear", "cifar10").learners["linear"].training
    assert training.architecture == "linear"
    assert training.weight_decay > 0
    assert training.augmentation == ()


def test_text_fine_tuning_follows_jordan():
    t = study_recipe("variance-text", "mrpc", model="bert").learners["encoder"].training
    assert (t.architecture, t.epochs, t.batch, t.optimiser) == ("hf:bert", 3, 16, "adam")
    assert (t.rate, t.schedule) == (2e-5, "linear")
    with pytest.raises(InputError, match=r"^recipe 'variance-text': needs model="):
        study_recipe("variance-text", "mrpc")


def test_response_follows_schiff():
    study = study_recipe("response", data(images=True), reach=90)
    (learner,) = study.learners.values()
    t = learner.training
    # Plateaus of the training loss, as in the paper: those of a validation share would be of its own loss.
    assert (t.optimiser, t.schedule, t.validation) == ("adam", "plateau", 0)
    assert {(job.n, job.fold) for job in study.jobs} == {(304, 0)}  # 95% of 320; the other 80 are the test set
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
    assert other.design.grid["augmentation"] == [[], ["rotation:90"], ["rotation:180"]]
    # Table 2: the only range that is not the same to both sides.
    assert other.evaluate == {"rotation": Evaluation(perturbation="rotation", magnitude=(-180, 179))}
    for name, reach in {"shift-x": 0.5, "shift-y": 0.5, "colour": 0.25}.items():
        moved = study_recipe("response", data(images=True), perturbation=name)
        assert moved.evaluate[name].magnitude == (-reach, reach)
        assert moved.design.grid["augmentation"] == [[], [f"{name}:{reach / 2:g}"], [f"{name}:{reach:g}"]]
    for wrong in (-5, 0, "far", True):
        with pytest.raises(InputError, match=f"reach={wrong!r}: give a number above 0"):
            study_recipe("response", data(images=True), reach=wrong)
    with pytest.raises(InputError, match="rotation' is for images"):
        study_recipe("response", data()).plan(measure=False)


def test_transfer_follows_atanov():
    """At the scale of CIFAR-100; the settings are compared with the paper's one by one in docs/papers/transfer.toml."""
    cifar = Dataset(
        np.zeros((50_000, 1, 8, 8), np.uint8),
        np.arange(50_000) % 100,
        np.zeros((100, 1, 8, 8), np.uint8),
        np.arange(100),
    )
    study = study_recipe("transfer", cifar, weights="w.pt", folder="here")
    scratch, pretrained, frozen = (study.learners[k].training for k in ("scratch", "pretrained", "frozen"))
    for training in (scratch, pretrained, frozen):
        assert (training.optimiser, training.weight_decay, training.batch) == ("adamw", 1e-4, 64)
        assert (training.schedule, training.steps, training.patience_steps) == ("early-stop", 40_000, 10_000)
    assert (scratch.rate, pretrained.rate, frozen.rate) == (1e-3, 1e-4, 1e-3)
    assert (scratch.weights, pretrained.weights, frozen.weights) == (None, "w.pt", "w.pt")
    assert (scratch.trained, pretrained.trained, frozen.trained) == ("all", "all", "head")
    # One image of each class more than is trained on, and all of CIFAR-100 at the end, which is the maximal control.
    sizes = (400, 600, 800, 1100, 1500, 3125, 6250, 12_500, 25_000, 50_000)
    assert study.partition.sizes == sizes
    alone = study_recipe("transfer", cifar)
    runs = Counter(job.n for job in alone.jobs if job.name == "scratch")
    assert runs == dict.fromkeys(sizes[:-1], 2) | {50_000: 1}
    few = study.dataset.y[study.rows_of(400, 0)]
    assert set(np.bincount(few)) == {4}
    assert scratch.steps_for(400) == scratch.steps_for(50_000) == 40_000


def test_sizes_of_eurosat_and_of_dense_tasks_are_the_paper_s():
    y = np.repeat(np.arange(10), [3000, 3000, 3000, 2500, 2500, 2000, 2500, 3000, 2500, 3000])  # EuroSAT's classes
    study = study_recipe("transfer-eurosat", Dataset(np.zeros((27_000, 1, 2, 2), np.uint8), y))
    assert study.partition.sizes == (28, 47, 85, 303, 1215, 4860, 19_440)
    assert np.bincount(study.test_examples().y).tolist() == (np.bincount(y) // 10).tolist()
    assert [len(study.partition.at(n)) for n in study.partition.sizes] == [1] * 7
    images = np.zeros((170_000, 1, 1, 1), np.uint8)
    study = study_recipe("transfer-dense", Dataset(images, images / 1.0, targets="numbers"))
    assert Counter(job.n for job in study.jobs) == {100: 4, 1_000: 4, 10_000: 3, 100_000: 1}
    assert len(study.test_examples().y) == 60_000


def test_transfer_takes_several_weights():
    names = {"swav": "swav.pt", "moco": "moco.pt"}
    study = study_recipe("transfer", data(), weights=names)
    assert set(study.learners) == {"scratch", "swav", "moco", "swav-frozen", "moco-frozen", "blind"}
    for name, file in names.items():
        assert study.learners[name].training.weights == study.learners[f"{name}-frozen"].training.weights == file
    for recipe in ("transfer-eurosat", "transfer-imagenet", "transfer-dense"):
        more = {"frozen": False} if recipe == "transfer-eurosat" else {}
        found = study_recipe(recipe, data(), weights=names, **more).learners
        assert set(found) - {"blind"} == {"scratch", "swav", "moco"}
        assert found["moco"].training.weights == "moco.pt"


def test_dense_transfer_warms_up_what_is_pretrained():
    study = study_recipe("transfer-dense", data(), weights="w.pt")
    scratch, pretrained = (study.learners[k].training for k in ("scratch", "pretrained"))
    assert pretrained.warmup * pretrained.steps == 1000
    assert (scratch.warmup, scratch.weights_into, pretrained.weights_into) == (0, None, "encoder")
    assert study.keep.predictions


@pytest.mark.parametrize(
    ("recipe", "given", "match"),
    [
        ("transfer-dense", data(images=True), "gives images, and the targets are classes"),
        ("transfer", Dataset(np.zeros((40, 1, 8, 8), np.uint8), np.ones((40, 1, 8, 8)), targets="numbers"), "numbers"),
        ("transfer-eurosat", data(images=True), "1215"),
        ("transfer-imagenet", data(images=True), "31250"),
    ],
)
def test_transfer_on_data_that_it_does_not_fit_is_refused_at_plan(recipe, given, match, tmp_path):
    small = {"sizes": [20], "folds": 1, "test": 10} if recipe == "transfer-dense" else {}
    with pytest.raises(InputError, match=match):
        study_recipe(recipe, given, **small, folder=tmp_path).plan(measure=False)


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
    scratch = study.learners["scratch"].training
    assert (scratch.optimiser, scratch.weight_decay) == ("sgdw", 0.01)
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


def test_own_sizes_leave_the_recipe_s_folds_and_seeds_as_they_are():
    given = study_recipe("learning", "digits", sizes=[10, 20, 40, 80, 160]).design
    assert given.folds == (16, 8, 4, 2, 1)
    assert study_recipe("transfer", "digits", sizes=[0.5, 1.0], seeds=2).design.folds == 1
    with pytest.raises(InputError, match=r"folds of the recipe is \[16, 8, 4, 2, 1\].*sizes has 2.*Say folds="):
        study_recipe("learning", "digits", sizes=[10, 20])
    assert study_recipe("learning", "digits", sizes=[10, 20], folds=3).design.folds == 3
    assert study_recipe("learning", "digits", sizes=[10, 20], folds=None).design.folds is None


def test_own_variations_drop_the_recipe_s_poke():
    assert study_recipe("variance-sources", "digits", vary=["init"]).design.poke is None


@pytest.mark.parametrize("name", [name for name in RECIPES if name != "variance-text"])
def test_no_recipe_has_a_setting_that_changes_nothing(name):
    for learner in study_recipe(name, data()).learners.values():
        assert learner.training is None or not learner.training.idle()


def test_what_a_change_makes_idle_in_a_recipe_is_no_mistake(tmp_path):
    images = Dataset(np.zeros((40, 1, 8, 8), dtype=np.uint8), np.arange(40) % 2)
    plain = {"schedule": "linear", "architecture": "mlp"}
    study = study_recipe("response", images, learners={"mine": plain}, grid={"batch": [8]}, folder=tmp_path)
    assert study.learners["mine"].training.patience == 10  # as before, so that ids hold
    assert study.plan(measure=False).total_runs == 1
    mine = {"mine": plain | {"patience": 3}}
    given = study_recipe("response", images, learners=mine, grid={"batch": [8]}, folder=tmp_path)
    with pytest.raises(InputError, match=r"patience=3\.0: changes nothing"):
        given.plan(measure=False)
    # A length or a patience in another unit takes the place of the recipe's.
    short = study_recipe("transfer", data(), learners={"scratch": {"epochs": 2, "patience": 4}})
    training = short.learners["scratch"].training
    assert (training.steps, training.epochs, training.patience, training.patience_steps) == (None, 2, 4, None)


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
BRIEF = {"steps": 4, "look_every": 2, "patience_steps": 2}
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
    "variance-binary": {"classes": 4, "learners": {"cnn": {"architecture": "cnn", "width": 4, "epochs": 1}}},
    "variance-rates": {"learners": {"linear": {"architecture": "linear", "epochs": 1}}},
    "variance-augmentation": {"sizes": [30, 60], "learners": {"cnn": {"architecture": "cnn", "width": 4, "epochs": 1}}},
    "variance-imagenet": {"learners": {"resnet18": {"width": 4, "epochs": 1, "batch": 32}}},
    "variance-fast": {"precision": "float32", "learners": {"speednet": {"width": 4, "epochs": 1, "batch": 32}}},
    "response": {
        "grid": {"batch_norm": [False, True], "augmentation": [[], ["rotation:90"]]},
        "learners": {"vgg": {"width": 4, "epochs": 2, "batch": 32}},
    },
    "transfer": {"architecture": "cnn", "learners": {"scratch": {**BRIEF, "width": 4}, "blind": {}}},
    "transfer-imagenet": {"architecture": "cnn", "learners": {"scratch": {"epochs": 2, "width": 4, "batch": 16}}},
    "ranking": {"architecture": "mlp", "grid": {"rate": [0.01], "steps": [3]}},
    "ranking-checkpoints": {"learners": {"net": {"architecture": "mlp", "steps": 10, "augmentation": []}}},
}


@pytest.mark.parametrize("name", SHORTER)
def test_each_recipe_can_be_trained(tmp_path, name):
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    images = Dataset(rng.integers(0, 256, (100, 1, 16, 16), dtype=np.uint8), np.arange(100) % 4)
    study = study_recipe(name, images, **{**TINY, **SHORTER[name]}, folder=tmp_path)
    status = study.run(workers=0, progress=False, device="cpu")
    assert status.failures == ()
    assert status.done == len(study.jobs)
    if name == "ranking-checkpoints":
        (run,) = list_runs(study.runs_folder)
        assert set(run.files) == {"drop-1", "drop-2", "drop-3", "end"}


def test_few_shots_and_shares_are_trained_in_one_study(tmp_path):
    """The sizes and seeds of recipe ``transfer``, fewer and shorter, on images in folders."""
    pytest.importorskip("torch")
    image_folder(tmp_path / "EuroSAT", 20)
    learners = {"scratch": {**BRIEF, "architecture": "cnn", "width": 2}, "blind": {}}
    design = {"sizes": ["10 + 1/class", "3/class + 1/class", 0.5], "seeds": [2, 3, 1]}
    study = study_recipe("transfer-eurosat", {"path": "EuroSAT"}, learners=learners, **design, folder=tmp_path, seed=1)
    status = study.run(workers=0, progress=False, device="cpu")
    assert status.failures == ()
    frame = study.frame()
    assert len(study.test_examples().y) == 8  # a tenth of 80
    assert frame[frame.learner == "scratch"].n.tolist() == [14, 14, 16, 16, 16, 36]


def test_recipes_of_folders_are_trained_on_folders(tmp_path):
    pytest.importorskip("torch")
    image_folder(tmp_path / "imagenet" / "train", 12)
    image_folder(tmp_path / "imagenet" / "val", 3)
    for recipe, path, learner in (
        ("transfer-eurosat", "imagenet/train", BRIEF),
        ("transfer-imagenet", "imagenet", {"epochs": 2, "batch": 16}),
    ):
        small = {"learners": {"scratch": {**learner, "architecture": "cnn", "width": 2}}, "sizes": [20], "seeds": 1}
        study = study_recipe(recipe, {"path": path}, **small, folder=tmp_path, name=recipe)
        assert study.run(workers=0, progress=False, device="cpu").failures == ()
        assert len(study.test_examples().y) == (5 if recipe == "transfer-eurosat" else 12)


def image_folder(path: Path, each: int) -> None:
    """Four classes of colour images of 16 × 16 pixels."""
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    for name in "abcd":
        (path / name).mkdir(parents=True)
        for i in range(each):
            image.fromarray(rng.integers(0, 256, (16, 16, 3), dtype=np.uint8)).save(path / name / f"{i}.png")


def test_dense_transfer_starts_from_a_classifier(tmp_path):
    """Recipe ``transfer-dense`` from weights of a network that classified, up to its controls."""
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (50, 3, 16, 16), dtype=np.uint8)
    y = np.abs(np.diff(x.mean(axis=1, keepdims=True) / 255, axis=2, prepend=0))  # edges
    before = Study(
        Dataset(x, np.arange(50) % 2),
        {"net": Learner(Training("resnet18", options={"width": 4}, epochs=0))},
        keep=Keep(checkpoints="end"),
        folder=tmp_path,
        name="before",
    )
    before.run(workers=0, progress=False, device="cpu")
    file = str(before.runs_folder / before.jobs[0].id / "end.safetensors")
    short = {**BRIEF, "width": 4, "encoder": "resnet18", "batch": 8}
    learners = {"scratch": short, "pretrained": short}
    study = study_recipe(
        "transfer-dense",
        Dataset(x, y, targets="numbers"),
        weights=file,
        learners=learners,
        sizes=[12, 24],
        folds=[2, 1],
        test=10,
        folder=tmp_path,
    )
    assert study.run(workers=0, progress=False, device="cpu").failures == ()
    # The weights are of a network for small images, and the control from scratch is the same network.
    assert {job.name: job.learner.training.options["stem"] for job in study.jobs} == dict.fromkeys(learners, "small")
    risks = transfer_risks(study)
    median = np.median(study.examples.y[study.train_rows], axis=0)
    expected = np.abs(study.test_examples().y - median).mean()
    assert risks.blind["transfer-dense"].risk == pytest.approx(expected, rel=1e-5)
    assert Counter(risks.methods.tolist()) == {"scratch": 3, "pretrained": 3}
    report = study_report(study)
    (shown,) = [section for section in report.sections if section.title == "What do the methods predict?"]
    assert shown.figures[0].name == "images"


def test_an_encoder_of_one_channel_takes_grey_images(tmp_path):
    """The first layer of a colorization encoder has one channel: colour images are refused at the plan."""
    torch = pytest.importorskip("torch")
    from curvewise.nn.networks import make_network

    grey = data(80, 4, images=True)
    network = make_network(Training("resnet18", options={"width": 4}), (1, 8, 8), 7)
    torch.save(network.state_dict(), tmp_path / "colour.pt")
    options = {"architecture": "resnet18", "weights": "colour.pt", "options": {"width": 4}, "folder": tmp_path}
    small = {"sizes": [0.5], "seeds": 1}
    study = study_recipe("transfer", grey, **options, **small)
    assert study.plan(measure=False).total_to_do == 4
    colour = Dataset(np.repeat(grey.x, 3, axis=1), grey.y)
    with pytest.raises(InputError, match="conv1"):
        study_recipe("transfer", colour, **options, **small).plan(measure=False)


WITH_WEIGHTS = {
    "learning": {"weights": "w.npz"},
    "transfer": {"weights": "w.npz"},
    "ranking": {"checkpoints": {"a": "w.npz"}},
}
"""Recipes that start from files of weights, and how the file is given."""

ONE_SIZE = {"sizes": [30], "folds": 1, "seeds": 1}

IMAGES = Dataset((np.arange(60 * 64) % 251).astype(np.uint8).reshape(60, 1, 8, 8), np.arange(60) % 3)


def save_weights(folder: Path, architecture: str, **options: object) -> None:
    """Write zeros for every weight of a network for one-channel images and five classes."""
    torch = pytest.importorskip("torch")
    from curvewise.nn.architectures import ARCHITECTURES

    with torch.device("meta"):
        shapes = {
            k: tuple(v.shape) for k, v in ARCHITECTURES[architecture]((1, 8, 8), 5, **options).state_dict().items()
        }
    np.savez(folder / "w.npz", **{k: np.zeros(v, np.float32) for k, v in shapes.items()})


def networks(study: Study) -> dict[str, Training]:
    return {j.name: j.learner.training for j in study.jobs if j.learner.training is not None}


@pytest.mark.parametrize("name", WITH_WEIGHTS)
def test_weights_choose_the_stem_of_all_that_are_compared(tmp_path, name):
    # The files of torchvision begin with 7×7 where our usual networks for small images have 3×3.
    given = {"architecture": "resnet18", "options": {"width": 2}, **ONE_SIZE, "folder": tmp_path}
    save_weights(tmp_path, "resnet18", width=2, stem="imagenet")
    large = study_recipe(name, IMAGES, **given, **WITH_WEIGHTS[name])
    assert {t.options["stem"] for t in networks(large).values()} == {"imagenet"}
    assert any(t.weights is None for t in networks(large).values())
    assert large.plan(measure=False).total_to_do == len(large.jobs)
    # What is usual stays unsaid, so that the ids of older runs hold.
    save_weights(tmp_path, "resnet18", width=2)
    small = study_recipe(name, IMAGES, **given, **WITH_WEIGHTS[name])
    assert [t.options for t in networks(small).values()] == [{"width": 2}] * len(networks(small))
    assert not any("like" in job.coordinates["training"] for job in small.jobs)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("learning", {"learners": {"scratch": {}, "pretrained": {"weights": "w.npz"}}}),
        ("learning", {"weights": "w.npz", "learners": {"none": {}, "pretrained": {}}}),
        ("ranking", {"learners": {"none": {}, "a": {"weights": "w.npz"}}}),
    ],
)
def test_controls_that_are_named_have_the_stem_of_the_weights(tmp_path, name, given):
    save_weights(tmp_path, "resnet18", width=2, stem="imagenet")
    usual = {"architecture": "resnet18", "options": {"width": 2}, **ONE_SIZE, "folder": tmp_path}
    found = networks(study_recipe(name, IMAGES, **usual, **given))
    assert {k: t.options["stem"] for k, t in found.items()} == dict.fromkeys(given["learners"], "imagenet")
    given["learners"] |= {"small": {"stem": "small"}}  # which says its own
    assert networks(study_recipe(name, IMAGES, **usual, **given))["small"].options["stem"] == "small"


DEEPER = r"do not fit architecture='resnet18'.*96 not in the network, such as layer1\.2.*Use the architecture"
OTHER = r"do not fit architecture='resnet18'.*missing in the file, such as conv1\.weight"
STEM = r"stem='small' \(a first layer of 3×3\), not stem='imagenet'.*Leave stem out"


@pytest.mark.parametrize(
    ("name", "architecture", "asked", "message"),
    [
        *((name, "resnet34", {}, DEEPER) for name in WITH_WEIGHTS),
        ("learning", "vgg11", {}, OTHER),
        ("transfer", "resnet18", {"stem": "imagenet"}, STEM),
    ],
    ids=["learning", "transfer", "ranking", "other", "stem"],
)
def test_weights_of_another_network_are_refused_when_planned(tmp_path, name, architecture, asked, message):
    save_weights(tmp_path, architecture, width=2)
    given = {"architecture": "resnet18", "options": {"width": 2, **asked}, **ONE_SIZE, "folder": tmp_path}
    study = study_recipe(name, IMAGES, **given, **WITH_WEIGHTS[name])
    with pytest.raises(InputError, match=r"learners\.(pretrained|a): weights='.*w\.npz': they.*" + message):
        study.plan(measure=False)


def test_a_recipe_runs_from_weights_with_the_stem_of_imagenet(tmp_path):
    save_weights(tmp_path, "resnet18", width=2, stem="imagenet")
    short = {"rate": 0.001, "epochs": 1}
    study = study_recipe(
        "learning",
        IMAGES,
        architecture="resnet18",
        options={"width": 2},
        weights="w.npz",
        augmentation=[],
        learners={"scratch": short, "pretrained": short, "pretrained-linear": short},
        sizes=[20],
        folds=1,
        keep={"checkpoints": "end"},
        folder=tmp_path,
    )
    assert study.run(workers=0, progress=False, device="cpu").failures == ()
    network = study.network(learner="pretrained").network
    assert network.conv1.weight.shape == (2, 1, 7, 7)


RECIPES_OF_NETWORKS = (
    *("learning", "variance", "variance-sources", "response", "transfer", "ranking", "ranking-checkpoints"),
)


@pytest.mark.parametrize("name", RECIPES_OF_NETWORKS)
def test_options_of_the_architecture_pass_through(name):
    study = study_recipe(name, IMAGES, options={"width": 4})
    trainings = [learner.training for learner in study.learners.values() if learner.training is not None]
    assert trainings
    assert all(t.options["width"] == 4 for t in trainings)
    mine = study_recipe(name, IMAGES, options={"width": 4, "depth": 1}, learners={"mine": {"depth": 3}})
    assert mine.learners["mine"].training.options == {"width": 4, "depth": 3}
    with pytest.raises(InputError, match=r"options has .rate., a setting of the training.*Give it for a learner"):
        study_recipe(name, IMAGES, options={"rate": 0.1})


def test_options_that_the_architecture_does_not_take_are_refused_at_plan():
    pytest.importorskip("torch")
    plain = {"learners": {"resnet18": {"augmentation": []}}}  # these images are too small for that of the recipe
    study = study_recipe("variance", IMAGES, architecture="resnet18", options={"stam": "small"}, **plain)
    with pytest.raises(InputError, match=r"resnet18 has no option 'stam'.*Its options are width, stem"):
        study.plan(measure=False)


def test_recipes_without_a_choice_of_network_take_no_options():
    with pytest.raises(InputError, match="'options' is not known here"):
        study_recipe("variance-linear", "digits", options={"width": 4})


def test_a_recipe_whose_settings_are_idle_for_a_learner_can_be_saved_and_planned(tmp_path):
    mine = {"architecture": "mlp", "schedule": "linear", "augmentation": [], "width": 8}
    study = study_recipe(
        "transfer", "digits", learners={"mine": mine}, sizes=[50], folds=1, seeds=1, folder=str(tmp_path)
    )
    study.plan(measure=False)
    again = load_study(study.save(tmp_path / "study.toml"))
    assert [job.id for job in again.jobs] == [job.id for job in study.jobs]
    again.plan(measure=False)
    twice = load_study(again.save(tmp_path / "again.toml"))
    twice.plan(measure=False)
    own = {"architecture": "mlp", "schedule": "linear", "validation": 0.2}
    with pytest.raises(InputError, match=r"validation=0.2: changes nothing here"):
        Study("digits", {"mine": learner_from_table(own)}).plan(measure=False)
    with pytest.raises(InputError, match=r"inherited='validation': give a list of settings"):
        learner_from_table({**own, "inherited": "validation"})
