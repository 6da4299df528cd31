"""What a study says before it does anything."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

from curvewise.errors import CurvewiseWarning, InputError, MissingDependencyError
from curvewise.nn.task import Keep, Trained
from curvewise.nn.training import Training
from curvewise.store.write import write_run
from curvewise.study import Dataset, Design, Evaluation, Learner, Study, study_recipe

DATA = Dataset(np.arange(400.0).reshape(200, 2), np.arange(200) % 4)
IMAGES = Dataset(np.zeros((200, 1, 6, 8), dtype=np.uint8), np.arange(200) % 4)
NET = Learner(Training("mlp", options={"width": 4}, epochs=2, batch=10))


def make(folder, learners=None, data=DATA, **design) -> Study:
    given = {"sizes": [20, 40], "folds": [2, 1], "seeds": 3, **design}
    return Study(data, learners or {"net": NET}, Design(**given), folder=folder)


def store(study, jobs, seconds=1.0, device="cpu", path="eager", **changes):
    """Put runs into the store as the executor would."""
    classes = np.zeros(len(study.test_examples().y), dtype=np.uint8)
    for job in jobs:
        parts = {
            "predictions": None if changes.get("status") == "failed" else classes,
            "metrics": {"error": 0.5, "seconds": seconds},
            "environment": {"device": device, "path": path, "evaluations": study.label_digests()},
            "labels": {"test": study.test_examples().y},
            **changes,
        }
        write_run(study.runs_folder, job.coordinates, **parts)


def test_runs_are_counted_by_learner_and_size(tmp_path):
    study = make(tmp_path, {"net": NET, "svm": Learner(estimator="sklearn.svm:SVC")})
    small = [j for j in study.jobs if j.name == "net" and j.n == 20]
    store(study, small[:2])
    store(study, small[2:3], error="no")
    found = study.plan(measure=False)
    assert found.columns()["learner"] == ("net", "net", "svm", "svm")
    assert found.n == (20, 40, 20, 40)
    assert found.runs == (6, 3, 6, 3)
    assert found.done == (2, 0, 0, 0)
    assert found.failed == (1, 0, 0, 0)
    assert found.to_do == (4, 3, 6, 3)
    assert (found.total_runs, found.total_to_do) == (18, 16)
    assert len(found.frame()) == 4


def test_planning_changes_nothing(tmp_path):
    make(tmp_path).plan()
    assert list(tmp_path.iterdir()) == []


def test_time_follows_from_stored_runs_in_proportion_to_their_cost(tmp_path):
    study = make(tmp_path)
    jobs = [j for j in study.jobs if j.n == 20]
    store(study, jobs[:2], seconds=3.0)
    found = study.plan(measure=False, device="cpu")
    small, large = (next(j for j in study.jobs if j.n == n) for n in (20, 40))
    assert found.seconds[0] == pytest.approx(4 * 3.0)
    assert found.seconds[1] == pytest.approx(3 * 3.0 * large.cost / small.cost)
    assert found.source == ("stored runs", "stored runs")
    assert found.hours == pytest.approx(sum(found.seconds) / 3600)
    assert found.hours_of == "core"
    assert "stored runs" in found.summary()


def test_runs_of_the_same_size_count_before_others(tmp_path):
    study = make(tmp_path)
    for n, seconds in ((20, 1.0), (40, 50.0)):
        store(study, [j for j in study.jobs if j.n == n][:1], seconds=seconds)
    found = study.plan(measure=False, device="cpu")
    assert found.seconds == pytest.approx((5 * 1.0, 2 * 50.0))


def test_runs_of_another_device_tell_nothing(tmp_path):
    study = make(tmp_path)
    store(study, study.jobs[:2], device="cuda:0")
    found = study.plan(measure=False, device="cpu")
    assert all(map(math.isnan, found.seconds))
    assert found.source == ("unknown", "unknown")
    assert "The time of 7 runs (net) is unknown" in found.summary()
    assert any("on different devices (cuda; cpu)" in w for w in found.warnings)
    on_gpu = study.plan(measure=False, device="cuda:1")
    assert on_gpu.seconds == pytest.approx((4.0, 3.0 * study.jobs[-1].cost / study.jobs[0].cost))
    assert on_gpu.hours_of == "GPU"


@pytest.mark.parametrize(
    ("gpus", "saved", "text"),
    [(1, 7 / 2, "A second GPU would save about 3.5 hours."), (2, 7 / 6, "One more GPU would save about 70 minutes.")],
)
def test_a_plan_says_what_one_more_gpu_would_save(tmp_path, monkeypatch, gpus, saved, text):
    """With GPUs that are only names here."""
    monkeypatch.setattr("curvewise.nn.devices.list_gpus", lambda: [f"cuda:{i}" for i in range(gpus)])
    study = make(tmp_path, sizes=[20], folds=2, seeds=4)
    store(study, study.jobs[:1], seconds=3600.0, device="cuda:0")
    found = study.plan(measure=False)
    assert found.workers == gpus
    assert found.saved_seconds == pytest.approx(saved * 3600)
    assert found.to_dict()["saved_seconds"] == pytest.approx(saved * 3600)
    assert text in found.sentences()
    assert study.plan(measure=False, device="cpu").saved_seconds == 0
    assert "GPU" not in study.plan(measure=False, device="cpu").sentences()


def test_a_measurement_stands_in_for_stored_runs(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from curvewise.nn import engine

    asked = []

    def measure_seconds(training, examples, n, *, device, folder):
        asked.append((training.options["width"], training.batch_for(n), device))
        return 0.05 * training.steps_for(n) * training.batch_for(n)

    monkeypatch.setattr(engine, "measure_seconds", measure_seconds)
    searched = replace(NET, training=replace(NET.training, rate=(0.1, 0.2, 0.3)))
    wide = Learner(Training("mlp", options={"width": 9}, epochs=2, batch=30))
    learners = {"net": searched, "pair": replace(NET, members=2), "wide": wide}
    found = make(tmp_path, learners, grid={"epochs": [0, 2]}).plan(device="cpu")
    rows = dict(zip(zip(found.learner, found.n, strict=True), found.seconds, strict=True))
    # A run of no epochs looks at nothing, which counts as one example.
    assert rows["net", 20] == pytest.approx(6 * 0.05 * (41 + 1))
    assert rows["net", 40] == pytest.approx(3 * 0.05 * (81 + 1))
    assert rows["net (search for the rate)", 40] == pytest.approx(3 * 0.05 * (81 + 1))
    assert rows["pair", 20] == pytest.approx(2 * 6 * 0.05 * (41 + 1))
    assert set(found.source) == {"a short measurement"}
    # Once for each kind of network and batch, however long it is trained.
    assert asked == [(4, 10, "cpu"), (9, 20, "cpu"), (9, 30, "cpu")]


def test_a_real_measurement_is_a_number(tmp_path):
    pytest.importorskip("torch")
    found = make(tmp_path, sizes=[20], folds=1, seeds=1).plan(device="cpu")
    assert math.isfinite(found.total_seconds)
    assert found.total_seconds > 0
    assert 0 < found.bytes_needed < 1e6


def test_what_cannot_be_measured_is_said(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from curvewise.nn import engine

    def measure_seconds(*_, **__):
        raise RuntimeError("no such thing\nand more")

    monkeypatch.setattr(engine, "measure_seconds", measure_seconds)
    found = make(tmp_path).plan(device="cpu")
    assert math.isnan(found.total_seconds)
    assert "net could not be measured: no such thing" in found.warnings


def test_estimators_are_timed_by_fits_at_their_smallest_sizes(tmp_path, monkeypatch):
    from curvewise.study.run import estimators

    fitted = []

    def fit_estimator(study, job):
        fitted.append(job.n)
        return Trained(seconds=1.0 + job.n / 10)

    monkeypatch.setattr(estimators, "fit_estimator", fit_estimator)
    tree = Learner(estimator="sklearn.tree:DecisionTreeClassifier")
    study = make(tmp_path, {"tree": tree}, sizes=[10, 20, 40], folds=1, seeds=2)
    found = study.plan(device="cpu")
    # After three seconds of fits the time of the third size follows from the two that are known.
    assert fitted == [10, 20]
    assert found.seconds == pytest.approx((2 * 2.0, 2 * 3.0, 2 * 5.0))
    assert set(found.source) == {"a short measurement"}
    assert study.plan(measure=False, device="cpu").source == ("unknown",) * 3


def test_an_estimator_that_fails_to_fit_is_said_and_tried_once(tmp_path):
    (tmp_path / "odd_fit.py").write_text(
        "class Odd:\n    def fit(self, x, y):\n        raise ValueError('never')\n    def predict(self, x): ...\n"
    )
    found = make(tmp_path, {"odd": Learner(estimator="odd_fit:Odd")}).plan(device="cpu")
    assert "odd could not be measured: ValueError: never" in found.warnings
    assert math.isnan(found.total_seconds)


def test_code_that_is_not_imported_leaves_a_time_unknown_and_says_what_to_pass(tmp_path):
    (tmp_path / "own_net.py").write_text("raise SystemExit\n")
    study = replace(make(tmp_path, {"own": Learner(Training("own_net:build"))}), trust=False)
    found = study.plan(device="cpu")
    assert "The time of 9 runs (own) is unknown without trust=True, which imports their code." in found.sentences()
    assert found.impossible == ()


def test_a_learner_that_refuses_its_options_stops_a_study_before_it_trains(tmp_path):
    wrong = Learner(estimator="sklearn.tree:DecisionTreeClassifier", options={"depth": 3})
    study = make(tmp_path, {"net": NET, "tree": wrong})
    found = study.plan(measure=False, device="cpu")
    assert found.impossible == ("tree",)
    assert "tree cannot be trained as described." in found.sentences()
    assert "(tree)" not in found.sentences()  # no time to wait for
    with pytest.raises(InputError, match=r"tree cannot be trained as described, so that nothing was .*: .*depth"):
        study.run(workers=0, progress=False)
    assert study.status().missing == study.status().planned


def test_measuring_ends_in_time(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from curvewise.nn import engine

    monkeypatch.setattr(engine, "measure_seconds", lambda *_, **__: 1.0)
    monkeypatch.setattr("curvewise.study.status.MOST_SECONDS", -1.0)
    found = make(tmp_path).plan(device="cpu")
    assert set(found.source) == {"unknown"}
    assert any("Measuring stopped" in w and "runs of net is unknown" in w for w in found.warnings)


def test_unknown_times_beside_known_ones_are_never_zero(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from curvewise.nn import engine

    asked, clock = [], [0.0]

    def measure_seconds(training, examples, n, **_):
        asked.append((training.options["width"], training.rate))
        clock[0] += 40.0
        return 3600.0

    monkeypatch.setattr(engine, "measure_seconds", measure_seconds)
    monkeypatch.setattr("curvewise.study.status.time.monotonic", lambda: clock[0])
    grid = {"width": [4, 5, 6], "rate": [0.1, 0.2]}
    found = make(tmp_path, sizes=[20], folds=1, seeds=1, grid=grid).plan(device="cpu")
    # Rates take the same time; the third width comes after the minute.
    assert asked == [(4, 0.1), (5, 0.1)]
    assert found.unknown == (2,)
    assert math.isnan(found.total_seconds)
    assert found.known_seconds == pytest.approx(4 * 3600 * 41 / 20, rel=0.1)
    text = found.sentences()
    assert "at least" in text
    assert "about 0 s" not in text
    assert "The time of 2 runs (net) is unknown" in text
    assert "(estimated from a short measurement)" in text


@pytest.mark.parametrize(("length", "taken"), [(0.01, 1 + 4 * 16), (1.0, 2 + 4 * 3), (60.0, 1)])
def test_a_measurement_of_slow_steps_is_short(monkeypatch, length, taken):
    pytest.importorskip("torch")
    from curvewise.nn import engine

    clock = [0.0]

    class Slow:
        capacity, stream = 100, None
        at_work, start_line = staticmethod(nullcontext), staticmethod(lambda: None)

        def advance(self, steps):
            clock[0] += steps * length

    monkeypatch.setattr(engine.time, "perf_counter", lambda: clock[0])
    assert engine.seconds_per_step([Slow()], most=15.0) == pytest.approx(length)
    assert clock[0] == pytest.approx(taken * length)


def test_warnings_of_the_subsets_are_in_the_plan(tmp_path):
    found = make(tmp_path, sizes=[2, 100], folds=[1, 2]).plan(measure=False)
    assert any("n=2 is less than the 4 classes" in w for w in found.warnings)
    assert any("subsets share examples" in w for w in found.warnings)
    single = make(tmp_path, sizes=[1], folds=1).plan(measure=False)
    assert "n=1: some subsets hold a single class." in single.warnings


def test_variations_that_mean_nothing_to_a_learner_are_told(tmp_path):
    learners = {
        "net": NET,
        "flipped": Learner(replace(NET.training, augmentation=("flip",))),
        "svm": Learner(estimator="sklearn.svm:SVC"),
        "mine": Learner(command="train {out}"),
    }
    vary = [["init", "order"], ["order"], ["augmentation"], ["poke"]]
    found = make(tmp_path, learners, IMAGES, vary=vary, poke={}).plan(measure=False).warnings
    told = [re.match(r"(\w+): runs that vary in (\w+) will be identical, because", w) for w in found]
    assert [m.groups() for m in told if m] == [
        ("net", "augmentation"),
        ("svm", "order"),
        ("svm", "augmentation"),
        ("svm", "poke"),
        ("mine", "poke"),
    ]
    once = make(tmp_path, learners, IMAGES, vary=vary, poke={}, seeds=1).plan(measure=False).warnings
    assert not any("will be identical" in w for w in once)


def test_an_added_evaluation_set_is_told_before_runs_are_made_again(tmp_path):
    study = make(tmp_path)
    store(study, study.jobs[:3])
    assert sum(study.plan(measure=False).done) == 3
    more = replace(study, evaluate={"shifted": Evaluation(data=DATA)})
    found = more.plan(measure=False)
    assert sum(found.done) == 0
    assert found.total_to_do == len(study.jobs)
    assert any("3 stored runs will be made again, because an eval" in w for w in found.warnings)
    kept = replace(study, keep=Keep(probabilities=True)).plan(measure=False)
    assert sum(kept.done) == 0


def test_damage_is_told_and_made_again(tmp_path):
    study = make(tmp_path)
    store(study, study.jobs[:2])
    (study.runs_folder / study.jobs[0].id / "record.json").write_text("{")
    found = study.plan(measure=False)
    assert sum(found.done) == 1
    assert any("1 damaged run will be made again" in w for w in found.warnings)


def test_a_finished_study_has_nothing_to_do(tmp_path):
    study = make(tmp_path)
    store(study, study.jobs)
    found = study.plan()
    assert found.total_to_do == 0
    assert found.total_seconds == 0
    assert not any("remain" in text for text in found.warnings)  # which the counts say


def test_failures_that_are_not_tried_again_are_told(tmp_path):
    study = make(tmp_path)
    store(study, study.jobs[:1], error="no", environment={"attempts": 3})
    found = study.plan(measure=False)
    assert found.total_to_do == len(study.jobs) - 1
    assert any("failed 3 times or more" in w for w in found.warnings)


def test_runs_of_one_training_made_in_different_ways_are_told(tmp_path):
    study = make(tmp_path)
    first, second = ([j for j in study.jobs if j.n == n] for n in (20, 40))
    store(study, first[:2], path="eager")
    store(study, second, path="stack of 4")
    assert not any("different ways" in w for w in study.plan(measure=False).warnings)
    store(study, first[2:4], path="stack of 4")
    found = study.plan(measure=False).warnings
    assert any("in different ways (eager; stack of 4)" in w for w in found)


def test_runs_of_one_training_made_on_different_kinds_of_cpu_are_told(tmp_path):
    study = make(tmp_path)
    first, second = (j for j in study.jobs[:2])
    for job, cpu in ((first, "GenuineIntel, AVX512"), (second, "AuthenticAMD, AVX512")):
        about = {"device": "cpu", "path": "eager", "cpu": cpu}
        about["evaluations"] = study.label_digests()
        store(study, [job], environment=about)
    (found,) = (w for w in study.plan(measure=False).warnings if "of one learner" in w)
    assert "kinds of CPU (GenuineIntel, AVX512; AuthenticAMD, AVX512)" in found


def test_space_is_compared_with_what_is_free(tmp_path, monkeypatch):
    usage = type(shutil.disk_usage(tmp_path))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(2000, 1000, 1000))
    study = replace(make(tmp_path, seeds=100), keep=Keep(probabilities=True))
    found = study.plan(measure=False)
    assert found.bytes_needed > 300 * 40 * 4 * 4
    assert any("kB are free" in w for w in found.warnings)


def test_checkpoints_are_counted_by_their_weights(tmp_path):
    pytest.importorskip("torch")
    wide = Learner(Training("mlp", options={"width": 500}, batch=10))
    study = make(tmp_path, {"net": wide}, sizes=[20], folds=1, seeds=1)
    plain = study.plan(device="cpu").bytes_needed
    kept = replace(study, keep=Keep(checkpoints="end")).plan(device="cpu").bytes_needed
    weights = 4 * (2 * 500 + 500 + 500 * 500 + 500 + 500 * 4 + 4)
    assert kept - plain == pytest.approx(weights, rel=0.02)
    unknown = replace(study, keep=Keep(checkpoints="end")).plan(measure=False, device="cpu")
    assert math.isnan(unknown.bytes_needed)


def test_a_plan_is_a_result(tmp_path):
    found = make(tmp_path).plan(measure=False)
    document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert document["total_runs"] == 9
    assert document["total_seconds"] is None
    assert found.summary().startswith("9 runs: 0 finished, 9 remaining.")


def test_a_study_is_planned_where_torch_is_missing(tmp_path):
    script = f"""
import sys
class Without:
    def find_spec(self, name, *_):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Without())
import curvewise as cw
study = cw.Study(
    "digits", {{"net": cw.Learner(cw.Training("mlp"))}}, cw.Design(sizes=[20, 40], folds=1),
    evaluate={{"turned": cw.study.Evaluation(perturbation="rotation", magnitude=10)}},
    folder={str(tmp_path)!r},
)
plan = study.plan()
print(plan.total_to_do, plan.device, plan.total_seconds, study.status().missing)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "cpu", "nan", "2"]


def test_a_wrong_device_is_refused(tmp_path):
    with pytest.raises(InputError, match="device='tpu'"):
        make(tmp_path).plan(device="tpu")


def test_without_a_gpu_the_cores_are_taken(tmp_path, monkeypatch):
    def missing():
        raise MissingDependencyError("no torch")

    monkeypatch.setattr("curvewise.nn.devices.list_gpus", missing)
    assert make(tmp_path).plan(measure=False).device == "cpu"


@pytest.mark.parametrize(
    ("learner", "told"),
    [
        (Learner(estimator="sklearn.svm:SVX"), "SVX"),
        (Learner(estimator="no_such_module:Thing"), "cannot import 'no_such_module'"),
        (Learner(estimator="sklearn.svm:SVC", options={"depth": 3}), "depth"),
        (Learner(estimator="broken:Thing"), "born broken"),
        (Learner(command="train {out} {size}"), "asks for {size}"),
        (Learner(command="train '{out}"), "cannot be split"),
        (Learner(Training("resnet81")), "Did you mean 'resnet18' or"),
    ],
)
def test_learners_that_cannot_be_trained_are_told(tmp_path, learner, told):
    (tmp_path / "broken.py").write_text(
        "class Thing:\n"
        "    def __init__(self):\n        raise ValueError('born broken')\n"
        "    def fit(self, x, y): ...\n"
        "    def predict(self, x): ...\n"
    )
    found = make(tmp_path, {"bad": learner, "net": NET}).plan(measure=False)
    bad = [w for w in found.warnings if w.startswith("bad: ")]
    assert len(bad) == 1
    assert told in bad[0]
    assert not any(w.startswith("net: ") for w in found.warnings)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"augmentation": ("flop",)}, "augmentation='flop': not known. Did you mean 'flip'?"),
        ({"augmentation": ("cutout:7",)}, "from 0 to 6 after the colon for images of 6×8"),
        ({"augmentation": ("resized-crop:0",)}, "above 0 to 1"),
        ({"augmentation": ("resized-crop",)}, "resized-crop:0.08"),
        ({"optimiser": "adam", "momentum": 0.5}, "momentum=0.5: changes nothing here: it is for optimiser='sgd'"),
        ({"drops": (0.5,)}, "drops=(0.5,): changes nothing here: it is for schedule='drops'"),
        ({"patience": 3}, "patience=3.0: changes nothing here"),
        ({"patience": 3, "patience_n": 20}, "patience"),
        ({"validation": 0.2, "schedule": "searched"}, "validation=0.2: changes nothing"),
        ({"look_every": 5, "schedule": "searched"}, "look_every=5: changes nothing"),
        ({"patience_steps": 5, "schedule": "cosine"}, "patience_steps=5: changes nothing"),
        ({"steps": 4}, "epochs=2.0: changes nothing here: it is for a training without steps"),
    ],
)
def test_settings_that_cannot_be_or_change_nothing_are_refused_at_plan(tmp_path, settings, told):
    learner = Learner(replace(NET.training, **settings))
    study = make(tmp_path, {"net": learner, "other": NET}, IMAGES)
    for go in (lambda: study.plan(measure=False), lambda: study.run(workers=0, progress=False)):
        with pytest.raises(InputError, match=r"learners\.net: ") as error:
            go()
        assert told in str(error.value)
    assert study.status().missing == len(study.jobs)  # what is stored can be read


def test_augmentation_of_features_is_refused_at_plan(tmp_path):
    with pytest.raises(InputError, match=r"learners.net: augmentation=\['flip'\]: for images"):
        make(tmp_path, {"net": Learner(replace(NET.training, augmentation="flip"))}).plan(measure=False)


def test_a_setting_that_some_runs_use_is_no_mistake(tmp_path):
    some = {"net": Learner(replace(NET.training, drops=(0.5,), momentum=0.5))}
    grid = {"schedule": ["linear", "drops"], "optimiser": ["adam", "sgd"]}
    assert make(tmp_path, some, grid=grid).plan(measure=False).total_runs == 9 * 4
    with pytest.raises(InputError, match=r"momentum=0\.5: changes nothing"):
        make(tmp_path, some, grid={"schedule": ["linear", "drops"], "optimiser": ["adam"]}).plan(measure=False)
    adam = Learner(replace(NET.training, optimiser="adam"))
    with pytest.raises(InputError, match=r"momentum=0\.5: changes nothing"):  # 0.9 is the default
        make(tmp_path, {"net": adam}, grid={"momentum": [0.5, 0.9]}).plan(measure=False)


def test_the_size_of_the_patience_is_the_largest_of_the_design(tmp_path):
    training = replace(NET.training, schedule="searched", patience=15, patience_n="largest")
    study = make(tmp_path, {"net": Learner(training)})
    study.plan(measure=False)
    assert {job.coordinates["training"]["patience_n"] for job in study.jobs} == {40}
    assert {job.learner.training.patience_for(job.n, 10) for job in study.jobs} == {15.0, 15 * 2**0.5}
    smaller = make(tmp_path, {"net": Learner(training)}, sizes=[20], folds=1)
    assert not {job.id for job in smaller.jobs} & {job.id for job in study.jobs}
    named = make(tmp_path, {"net": Learner(replace(training, patience_n=40))})
    assert [job.id for job in named.jobs] == [job.id for job in study.jobs]


def test_learners_that_can_be_trained_are_not_told(tmp_path):
    learners = {
        "svm": Learner(estimator="sklearn.svm:SVC"),
        "mine": Learner(command="train {n:05d} {seed} {rows} {data} {id} {out} {depth}"),
        "own": Learner(Training("networks:make")),
    }
    found = make(tmp_path, learners, grid={"mine": {"depth": [1, 2]}}).plan(measure=False)
    assert found.warnings == ()


def test_settings_that_a_command_has_already_are_told(tmp_path):
    mine = {"mine": Learner(command="train {out}")}
    found = make(tmp_path, mine, grid={"mine": {"rows": [1, 2]}}).plan(measure=False)
    assert next(w for w in found.warnings if "another name" in w).startswith("mine: grid has")


def test_an_unknown_network_is_told_once_where_it_is_measured_too(tmp_path):
    pytest.importorskip("torch")
    found = make(tmp_path, {"bad": Learner(Training("mpl", epochs=1))}).plan(device="cpu")
    assert ["Did you mean 'mlp'?" in w for w in found.warnings] == [True]


def test_a_time_shorter_than_the_start_of_the_workers_is_a_few_seconds(tmp_path):
    study = make(tmp_path)
    store(study, study.jobs[:2])
    known = study.plan(measure=False, device="cpu").summary()
    assert "They take a few seconds on" in known


def test_many_default_folds_are_explained_at_once(tmp_path, capsys):
    """Sizes × seeds × learners are what a reader expects; the plan says why there are more."""
    learners = {
        "a": Learner(estimator="sklearn.svm:SVC"),
        "b": Learner(estimator="sklearn.tree:DecisionTreeClassifier"),
    }
    study = make(tmp_path, learners, sizes=[20, 40], folds=None, seeds=3)
    found = study.plan(measure=False)
    assert study.partition.folds == (8, 4)
    assert found.total_runs == (8 + 4) * 3 * 2
    (why,) = found.notes
    assert "folds is not set" in why
    assert "(8, 4)" in why
    assert "folds = 1 would plan 12 runs" in why
    assert why in found.summary()
    assert replace(study, design=replace(study.design, folds=1)).plan(measure=False).notes == ()
    assert replace(study, design=replace(study.design, folds=1)).plan(measure=False).total_runs == 12
    study.run(workers=0)
    assert why in capsys.readouterr().err


def test_a_share_to_test_on_that_is_ignored_is_reported(tmp_path):
    own = Dataset(DATA.x, DATA.y, DATA.x[:8], DATA.y[:8])
    for test, hold_out, data, reported in [
        (0.3, False, own, True),
        (0.2, False, own, True),  # the default, but said
        (None, False, own, False),
        (0.3, True, own, False),
        (0.3, False, DATA, False),
    ]:
        study = replace(make(tmp_path, test=test, hold_out=hold_out), data=data)
        told = [w for w in study.plan(measure=False).warnings if "is ignored" in w]
        assert len(told) == reported
        assert all(f"design.test = {test:g} is ignored" in w and "8 examples" in w for w in told)


def test_an_estimator_without_a_seed_is_reported_before_it_is_trained(tmp_path):
    names = {"bayes": "sklearn.naive_bayes:GaussianNB", "tree": "sklearn.tree:DecisionTreeClassifier"}
    learners = {k: Learner(estimator=v) for k, v in names.items()}
    told = [w for w in make(tmp_path, learners, seeds=2).plan(measure=False).warnings if "random_state" in w]
    assert len(told) == 1
    assert told[0].startswith("bayes: ")
    once = make(tmp_path, learners, seeds=1).plan(measure=False).warnings
    assert not any("random_state" in w for w in once)


# --- Data that a recipe does not fit ---------------------------------------------------------------


def _data(kind: str) -> Dataset:
    rng, y = np.random.default_rng(0), np.arange(400) % 4
    colour, grey = (rng.integers(0, 256, (400, c, 8, 8), dtype=np.uint8) for c in (3, 1))
    return {
        "dense": lambda: Dataset(colour, rng.random((400, 1, 8, 8)), targets="numbers"),
        "text": lambda: Dataset(rng.integers(1, 50, (400, 12)), y, padding=0),
        "features": lambda: Dataset(rng.random((400, 12)), y),
        "grey": lambda: Dataset(grey, y),
    }[kind]()


@pytest.mark.parametrize(
    ("recipe", "options", "kind", "told"),
    [
        ("learning", {}, "dense", r"architecture='resnet18': gives a row of numbers.*Use 'unet'"),
        ("ranking", {}, "dense", r"architecture='resnet50': gives a row of numbers.*Use 'unet'"),
        ("transfer", {}, "dense", "keep has probabilities"),
        ("variance-text", {"model": "bert"}, "dense", r"architecture='hf:bert': gives a row of numbers.*Use 'unet'"),
        ("variance", {}, "text", r"learners.resnet9.architecture='resnet9': takes images.*tokens.*Use 'hf:FOLDER'"),
        ("variance-linear", {}, "text", r"learners.linear.architecture='linear': takes images or features"),
        ("transfer", {}, "text", r"learners.scratch.architecture='resnet50': takes images, and the data has tokens"),
        ("learning", {}, "features", r"architecture='resnet18': takes images.*features. Use 'linear' or 'mlp'"),
        ("variance-text", {"model": "bert"}, "features", r"takes images or texts, and the data has rows of features"),
        ("response", {}, "text", "perturbation='rotation' is for images"),
    ],
)
def test_a_recipe_on_data_that_it_does_not_fit_is_refused_at_plan(tmp_path, recipe, options, kind, told):
    study = study_recipe(recipe, _data(kind), folder=str(tmp_path), **options)
    for go in (lambda: study.plan(measure=False), lambda: study.run(workers=0, progress=False)):
        with pytest.raises(InputError, match=told):
            go()


def test_colour_augmentation_of_grey_images_is_planned_with_a_warning():
    learner = Learner(Training("mlp", augmentation=("colour:0.2",)))
    for kind, count in (("grey", 1), ("features", 0)):
        kept = {"grey": learner, "features": Learner(Training("mlp"))}[kind]
        found = Study(_data(kind), {"a": kept}).plan(measure=False).warnings
        assert sum("changes brightness and contrast only: the images have 1 channel" in w for w in found) == count


@pytest.mark.parametrize(
    ("training", "told"),
    [
        (Training("googlenet", options={"stem": "imagenet"}), "learners.a: architecture='googlenet': with stem='imag"),
        (Training("torchvision:vgg11", options={"weights": "DEFAULT"}), "learners.a: options=.*torchvision would down"),
    ],
)
def test_networks_that_cannot_be_made_for_these_images_are_refused_at_plan(training, told):
    with pytest.raises(InputError, match=told):
        Study(_data("grey"), {"a": Learner(training)}).plan(measure=False)


def test_recipes_on_data_that_they_fit_are_planned(tmp_path):
    for recipe, options, kind in (
        ("variance-text", {"model": "bert"}, "text"),
        ("variance-linear", {}, "features"),
        ("response", {"perturbation": "shift-x"}, "grey"),
        ("response", {"perturbation": "colour"}, "grey"),
        ("learning", {}, "grey"),
    ):
        assert study_recipe(recipe, _data(kind), folder=str(tmp_path), **options).plan(measure=False).total_runs


def test_an_option_that_an_architecture_lacks_is_refused(tmp_path):
    pytest.importorskip("torch")
    bad = Learner(Training("mlp", options={"widht": 4}))
    with pytest.raises(InputError, match=r"learners\.bad: mlp has no option 'widht'.*'width'.*Its options are .*width"):
        make(tmp_path, {"net": NET, "bad": bad}).plan(measure=False)


def test_a_test_set_that_cannot_be_held_out_is_named_as_in_the_file(tmp_path):
    with pytest.raises(InputError, match=r"design\.test = 60000: cannot be held out of 200 examples") as told:
        make(tmp_path, test=60000).plan(measure=False)
    assert told.value.argument is None
    assert "X_test" not in str(told.value)


def test_missing_weights_are_told_of_the_learner_that_has_them(tmp_path):
    pytest.importorskip("torch")
    like, weights = (Learner(Training("resnet18", **{key: "nope.pt"})) for key in ("like", "weights"))
    with pytest.raises(InputError, match=r"learners\.pretrained: .*nope\.pt"):
        make(tmp_path, {"scratch": like, "pretrained": weights}, IMAGES).plan(measure=False)
    with pytest.raises(InputError, match=r"learners\.scratch\.like: .*nope\.pt"):
        make(tmp_path, {"scratch": like}, IMAGES).plan(measure=False)


def test_weights_may_be_called_pth_tar(tmp_path):
    torch = pytest.importorskip("torch")
    from curvewise.nn.files.tensors import read_weights

    torch.save({"epoch": 3, "state_dict": {"module.a": torch.ones(2)}}, tmp_path / "w.pth.tar")
    assert list(read_weights(tmp_path / "w.pth.tar")) == ["a"]


@pytest.mark.parametrize("options", [{}, {"classifier": "full"}])
def test_hidden_layers_of_a_vgg_are_not_left_out_in_silence(tmp_path, options):
    torch = pytest.importorskip("torch")
    from curvewise.nn.architectures import ARCHITECTURES

    images = Dataset(np.zeros((60, 3, 32, 32), dtype=np.uint8), np.arange(60) % 4)
    with torch.device("meta"):
        there = ARCHITECTURES["vgg11"]((3, 32, 32), 4, classifier="full").state_dict()
    # One number stands for all of a tensor, so that the file is small.
    torch.save({k: torch.zeros(1, dtype=v.dtype).expand(v.shape) for k, v in there.items()}, tmp_path / "v.pt")
    net = Learner(Training("vgg11", options=options, weights="v.pt"))
    found = make(tmp_path, {"net": net}, images, sizes=[20], folds=1, seeds=1).plan(measure=False)
    told = [w for w in found.warnings if "classifier = 'full'" in w]
    assert len(told) == (not options)
    assert all(w.startswith("net: classifier.0, classifier.3 of v.pt are not used") for w in told)


@pytest.mark.parametrize(
    ("head", "options", "remedy"),
    [
        ("def build():", {}, "`def build(shape, classes, **options)`"),
        ("def build(shape, classes):", {"width": 3}, "Its options are none"),
    ],
)
def test_a_factory_with_another_signature_is_refused_before_any_run(tmp_path, head, options, remedy):
    pytest.importorskip("torch")
    name = f"signature{len(options)}"
    (tmp_path / f"{name}.py").write_text(f"{head}\n    raise RuntimeError\n")
    study = make(tmp_path, {"own": Learner(Training(f"{name}:build", options=options))})
    for act in (study.plan, lambda: study.run(workers=0, progress=False)):
        with pytest.raises(InputError, match=re.escape(remedy)):
            act()
    assert study.status().missing == study.status().planned


def test_a_few_seconds_are_not_promised_beside_runs_of_unknown_time(tmp_path):
    study = make(tmp_path, {"net": NET, "program": Learner(command="python train.py {out}")})
    store(study, [job for job in study.jobs if job.name == "net"][:3])
    text = study.plan(measure=False).sentences()
    assert "They take" not in text
    assert "The time of 9 runs (program) is unknown" in text


def test_an_evaluation_set_that_is_trained_on_is_told(tmp_path):
    x, y = np.random.default_rng(0).random((60, 2)), np.arange(60) % 3
    own, other = Dataset(x, y), Dataset(x + 1, y)
    learner = {"bayes": Learner(estimator="sklearn.naive_bayes:GaussianNB")}
    sets = {"same": Evaluation(own), "other": Evaluation(other)}
    study = Study(own, learner, Design(sizes=[12], folds=1), sets, folder=tmp_path)
    (told,) = [w for w in study.plan(measure=False).warnings if "is the data of the study" in w]
    assert told.startswith("evaluate.same ")
    study.run(workers=0, progress=False)
    with pytest.warns(CurvewiseWarning, match="evaluate.same is the data of the study"):
        assert told in study.measurements(evaluation="same").notes
    assert told not in study.measurements(evaluation="other").notes
    # With a test set of its own, that is what is evaluated.
    tested = replace(study, data=replace(own, test_x=x[:9] + 2, test_y=y[:9]))
    assert tested.leaks("other") == []
