"""Few examples of each class, seeds for each size, and classes that a grid groups."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from curvewise import load_dataset, load_study
from curvewise.errors import InputError
from curvewise.nn import engine
from curvewise.nn.training import Training
from curvewise.store.claims import Claims
from curvewise.store.read import read_run
from curvewise.study import Dataset, Design, Learner, Study, binary_groupings
from curvewise.study.run.drive import Board
from curvewise.study.run.maker import Maker, held_rows

DIGITS = load_dataset({"name": "digits", "examples": 600})
NET = Learner(Training("mlp", options={"width": 8}, epochs=2, batch=16))
STOPPED = Learner(Training("mlp", options={"width": 8}, epochs=3, batch=16, schedule="early-stop", validation=0.2))
BAYES = Learner(estimator="sklearn.naive_bayes:GaussianNB")


# --- Few examples of each class, beside shares, with seeds for each size ---------------------------


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("few")
    sizes = ["3/class", "3/class + 1/class", "18 + 1/class", 0.25]
    design = Design(sizes=sizes, folds=1, seeds=[2, 2, 2, 1])
    study = Study(DIGITS, {"net": STOPPED, "bayes": BAYES}, design, folder=folder)
    assert study.run(workers=0, progress=False).done == 14
    return study


def test_each_size_has_its_examples_and_its_runs(few):
    frame = few.frame()
    assert frame.groupby(["learner", "n"]).size().unstack().loc["net"].to_dict() == {28: 2, 30: 2, 40: 2, 120: 1}
    for n, each in ((30, 3), (40, 4)):
        assert np.bincount(DIGITS.y[few.rows_of(n, 0)]).tolist() == [each] * 10
    assert np.bincount(DIGITS.y[few.rows_of(28, 0)]).min() >= 2


def test_one_of_each_class_is_validated_on_where_the_size_says_so(few):
    frame = few.frame().query("learner == 'net'").set_index("n")
    given = {n: job.coordinates["training"]["validation"] for job in few.jobs if job.name == "net" for n in [job.n]}
    assert given == {30: 0.2, 40: "1/class", 28: "1/class", 120: 0.2}
    # Ten held out, so that the error is so many tenths; of a fifth of 120 it is so many 24ths.
    assert np.allclose(frame.loc[[28, 40], "validation_error"] * 10 % 1, 0)
    assert np.isclose(frame.loc[120, "validation_error"] * 24 % 1, [0, 1], atol=1e-9).any()


def test_adding_seeds_to_a_size_leaves_the_other_runs_as_they_were():
    one, other = (
        Study(DIGITS, {"net": NET}, Design(sizes=["3/class", 100], folds=1, seeds=seeds)) for seeds in (2, [2, 4])
    )
    assert {job.id for job in one.jobs} < {job.id for job in other.jobs}
    assert len(other.jobs) == 6


@pytest.mark.parametrize(
    ("design", "message"),
    [
        ({"seeds": [2, 1], "sizes": [10, 20, 30]}, r"seeds=\[2, 1\]: has 2 value\(s\) and sizes has 3"),
        ({"seeds": [2, 1]}, "sizes has 1"),
        ({"seeds": [2, 0], "sizes": [10, 20]}, "give the number of runs"),
        ({"sizes": ["3 each"]}, "'3/class'"),
        ({"sizes": [20, 10], "seeds": [600_000, 1]}, "at most 500,000"),
    ],
)
def test_designs_that_cannot_be_are_refused(design, message):
    with pytest.raises(InputError, match=message):
        Design(**design)


def test_a_class_with_too_few_examples_is_named_at_plan():
    y = np.repeat([0, 1, 2], [40, 4, 30])
    data = Dataset(np.zeros((74, 2)), y, np.zeros((3, 2)), np.arange(3), classes=("cat", "dog", "owl"))
    with pytest.raises(InputError, match=r"sizes holds '5/class'.*1 class\(es\): 'dog' \(4\). Ask for fewer"):
        Study(data, {"net": NET}, Design(sizes=["5/class", 1.0])).plan(measure=False)
    with pytest.raises(InputError, match=r"'4/class \+ 1/class'.*'dog' \(4\)"):
        Study(data, {"net": STOPPED}, Design(sizes=["4/class + 1/class"])).plan(measure=False)
    numbers = Dataset(np.zeros((9, 2)), np.arange(9.0), targets="numbers")
    with pytest.raises(InputError, match="targets are numbers"):
        Study(numbers, {"net": NET}, Design(sizes=["2/class"])).plan(measure=False)


def test_a_schedule_that_holds_nothing_out_is_refused_at_plan():
    study = Study(DIGITS, {"net": NET}, Design(sizes=["3/class + 1/class"], folds=1))
    with pytest.raises(InputError, match="at n=40 validates on 1 of each class, which schedule='linear' of 'net'"):
        study.plan(measure=False)


def test_validation_is_a_share_or_so_many_of_each_class():
    assert Training("mlp", schedule="early-stop", validation="2/class").validation == "2/class"
    for wrong in ("1", "0/class", "one/class", "0.5/class"):
        with pytest.raises(InputError, match="'1/class'"):
            Training("mlp", schedule="early-stop", validation=wrong)


def test_grouped_classes_are_held_out_by_the_classes_of_the_data(tmp_path: Path):
    design = Design(sizes=["3/class + 1/class"], folds=1, grid={"classes": GROUPS})
    study = Study(DIGITS, {"net": STOPPED}, design, folder=tmp_path)
    assert study.run(workers=0, progress=False).done == 2
    for job in study.jobs:
        assert np.bincount(DIGITS.y[held_rows(study.grouped(job), job)]).tolist() == [1] * 10
        metrics = read_run(study.runs_folder / job.id).metrics
        assert metrics["steps"] / metrics["epochs"] == 30 / 16  # thirty are trained on, in batches of sixteen


def test_a_gpu_trains_no_run_with_what_another_size_holds_out(tmp_path: Path):
    sizes = ["3/class + 1/class", "5/class + 2/class", 0.25]
    study = Study(DIGITS, {"net": STOPPED}, Design(sizes=sizes, folds=1), folder=tmp_path)
    board, chunks = Board(study.jobs, 1, on_gpu=True), []
    while chunk := board.next_chunk():
        chunks.append([job.learner.training.validation for job in chunk])
    assert sorted(map(str, chunks)) == ["['1/class']", "['2/class']", "[0.2]"]
    # Nor where a worker is given them together.
    study.runs_folder.mkdir(parents=True)
    with Claims(study.runs_folder) as claims:
        Maker(study, claims=claims, tell=lambda event: None).make(study.jobs)
    held = {job.n: read_run(study.runs_folder / job.id).metrics["validation_error"] for job in study.jobs}
    assert all(np.isclose(held[n] * many % 1, [0, 1], atol=1e-9).any() for n, many in ((40, 10), (70, 20), (120, 24)))


def test_a_size_that_leaves_too_few_to_train_on_is_refused_at_plan():
    with pytest.raises(InputError, match=r"sizes holds '5 \+ 1/class'.*5 example\(s\) to train on for 10 classes"):
        Study(DIGITS, {"net": STOPPED}, Design(sizes=["5 + 1/class"], folds=1)).plan(measure=False)


def test_so_many_as_the_size_says_are_held_out_of_every_class():
    # Also of a rare class that has no other example.
    y = np.repeat([0, 1], [59, 2])
    data = Dataset(np.random.default_rng(0).normal(size=(61, 2)), y, np.zeros((2, 2)), np.arange(2))
    study = Study(data, {"net": STOPPED}, Design(sizes=["9 + 1/class", "18 + 1/class"], folds=3))
    for job in study.jobs:
        rows, held = study.rows_of(job.n, job.fold), held_rows(study, job)
        assert len(rows) - len(held) == job.n - 2
        assert sorted(data.y[held]) == [0, 1]


def test_a_batch_is_no_larger_than_what_a_size_leaves_to_train_on(tmp_path: Path):
    net = replace(STOPPED, training=replace(STOPPED.training, batch=64, epochs=2))
    study = Study(DIGITS, {"net": net}, Design(sizes=["2/class + 1/class"], folds=1), folder=tmp_path)
    study.run(workers=0, progress=False)
    metrics = read_run(study.runs_folder / study.jobs[0].id).metrics
    assert (metrics["steps"], metrics["epochs"]) == (2, 2)  # of 20 examples, all of which are a batch


def test_the_rate_is_searched_with_what_its_size_holds_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    net = replace(STOPPED, training=replace(STOPPED.training, rate=(0.01, 0.1), epochs=1))
    design = Design(sizes=["3/class + 1/class"], folds=1)
    search, run = Study(DIGITS, {"net": net}, design, folder=tmp_path).jobs
    assert search.is_search
    assert search.coordinates["training"]["validation"] == run.coordinates["training"]["validation"] == "1/class"
    study, seen = Study(DIGITS, {"net": net}, design, folder=tmp_path), []
    own = engine.train

    def noted(training, assignments, *rest, **how):
        seen.extend(assignments)
        return own(training, assignments, *rest, **how)

    monkeypatch.setattr(engine, "train", noted)
    assert study.run(workers=0, progress=False).done == 2
    assert len(seen) == 3  # two rates, and the run
    held = held_rows(study, run)
    assert np.bincount(DIGITS.y[held]).tolist() == [1] * 10
    assert all(np.array_equal(a.held, held) and len(a.rows) == 40 for a in seen)
    found = read_run(study.runs_folder / search.id).metrics
    tenths = 10 * np.array([v for k, v in found.items() if k.startswith("error.")])
    assert np.allclose(tenths, tenths.round())  # on the ten


# --- Classes that a grid groups --------------------------------------------------------------------


def test_there_are_511_splits_of_ten_classes_and_none_twice():
    splits = binary_groupings(10)
    as_sets = {frozenset(frozenset(np.flatnonzero(np.array(s) == k)) for k in (0, 1)) for s in splits}
    assert len(splits) == len(as_sets) == 511
    assert all(len(groups) == 2 and all(groups) for groups in as_sets)
    drawn = binary_groupings(10, sample=40, rng=3)
    assert drawn == binary_groupings(10, sample=40, rng=3) != binary_groupings(10, sample=40, rng=4)
    assert len(drawn) == 40
    assert all(split in splits for split in drawn)
    assert len({tuple(s) for s in binary_groupings(3, sample=3)}) == 3
    for wrong in ({"classes": 1}, {"classes": 30}, {"classes": 3, "sample": 4}):
        with pytest.raises(InputError):
            binary_groupings(**wrong)


GROUPS = [[0, 1, 0, 1, 0, 1, 0, 1, 0, 1], [0, 0, 0, 0, 0, 1, 1, 1, 2, 2]]


@pytest.fixture(scope="module")
def grouped(tmp_path_factory: pytest.TempPathFactory) -> Study:
    file = tmp_path_factory.mktemp("grouped") / "study.toml"
    file.write_text(
        "data = { name = 'digits', examples = 600 }\n[learners.net]\narchitecture = 'mlp'\nwidth = 8\nepochs = 2\n"
        "batch = 16\nrate = [0.1, 0.01]\n[learners.bayes]\nestimator = 'sklearn.naive_bayes:GaussianNB'\n"
        f"[design]\nsizes = [200]\nfolds = 1\nseeds = 2\ngrid = {{ classes = {GROUPS} }}\n"
        "[keep]\nprobabilities = true\ncheckpoints = 'end'\n"
        "[evaluate.same]\ndata = { name = 'digits', examples = 50 }\n"
    )
    study = load_study(file)
    assert study.run(workers=0, progress=False).done == 10  # two searches for a rate among them
    return study


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("learner", ["net", "bayes"])
@pytest.mark.parametrize("evaluation", ["test", "same"])
def test_runs_are_trained_and_judged_on_the_groups(grouped, groups, learner, evaluation):
    found = grouped.predictions(learner, classes=groups, evaluation=evaluation)
    plain = grouped.evaluation_sets[evaluation].y
    assert np.array_equal(found.labels, np.array(groups)[plain])
    assert len(found.classes) == max(groups) + 1
    probabilities = grouped.predictions(learner, classes=groups, evaluation=evaluation, probabilities=True)
    assert probabilities.values[:].shape == (2, len(plain), max(groups) + 1)
    frame = grouped.frame()
    chosen = frame[(frame.learner == learner) & (frame.classes == ", ".join(map(str, groups)))]
    name = "error" if evaluation == "test" else "error.same"
    assert np.allclose(chosen[name], (found.values[:] != found.labels).mean(axis=1))
    for run in chosen.run:
        assert np.array_equal(read_run(grouped.runs_folder / run).labels(evaluation), found.labels)


def test_a_group_is_what_scikit_learn_learns_of_it(grouped):
    from sklearn.naive_bayes import GaussianNB

    data, rows, test = grouped.dataset, grouped.rows_of(200, 0), grouped.test_examples()
    for groups in GROUPS:
        new = np.array(groups)
        model = GaussianNB().fit(data.x[rows].reshape(200, -1), new[data.y[rows]])
        right = model.predict(test.x.reshape(len(test.x), -1))
        assert np.mean(grouped.predictions("bayes", classes=groups).values[:][0] == right) > 0.99


def test_one_grouping_must_be_chosen_and_its_names_are_joined(grouped):
    with pytest.raises(InputError, match="more than one training: classes is"):
        grouped.predictions("net")
    assert grouped.predictions("net", classes=GROUPS[1]).classes == ("0+1+2+3+4", "5+6+7", "8+9")
    assert grouped.network("net", classes=GROUPS[1]).examples.y.max() == 2
    ids = {job.coordinates["classes"] is not None and job.id for job in grouped.jobs}
    assert len(ids) == 10


def test_the_data_can_be_grouped_once_for_all():
    data = load_dataset({"name": "digits", "examples": 600, "classes": GROUPS[0]})
    assert data.classes == ("0+2+4+6+8", "1+3+5+7+9")
    assert np.array_equal(data.y, DIGITS.y % 2)
    assert data.digest != DIGITS.digest


@pytest.mark.parametrize("groups", [[0, 1], [0] * 10, [0, 2] * 5, "0101010101", [0.0, 1.0] * 5, [-1, 0, 1] * 3 + [0]])
def test_groupings_that_cannot_be_are_refused_at_plan(groups):
    study = Study(DIGITS, {"net": NET}, Design(grid={"classes": [groups]}))
    with pytest.raises(InputError, match="give the new class of each of the 10 classes"):
        study.plan(measure=False)


def test_numbers_and_commands_have_no_classes_to_group(tmp_path: Path):
    numbers = Dataset(np.zeros((9, 2)), np.arange(9.0), targets="numbers")
    with pytest.raises(InputError, match="targets are numbers"):
        Study(numbers, {"net": NET}, Design(grid={"classes": [[0, 1]]})).plan(measure=False)
    command = Study(DIGITS, {"mine": Learner(command="train {out}")}, Design(grid={"classes": GROUPS}))
    with pytest.raises(InputError, match=r"grid.classes: 'mine' is a command.*data.classes"):
        command.plan(measure=False)
