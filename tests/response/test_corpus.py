"""Corpora of trained models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from curvewise.errors import InputError
from curvewise.response.judgement import judge_measures
from curvewise.response.load import ModelCorpus, load_corpus


def make(**changes: object) -> ModelCorpus:
    parts: dict = {
        "models": ("a", "b", "c", "d"),
        "hyperparameters": {"depth": [2, 2, 4, 4], "norm": [None, "batch", None, "layer"]},
        "gap": [0.1, 0.2, np.nan, 0.4],
        "measures": {"gi": [1.0, 2.0, 3.0, np.nan]},
        "orientation": {"gi": 1},
        "tasks": ["x", "y", "x", "y"],
        "train_accuracy": [1.0, 0.9, 0.8, 0.7],
        "notes": ("from somewhere",),
    }
    return ModelCorpus(**(parts | changes))


def test_by_task_keeps_every_column_and_the_order() -> None:
    corpus = make()
    parts = corpus.by_task()
    assert list(parts) == ["x", "y"]
    assert parts["y"].models == ("b", "d")
    assert parts["y"].hyperparameters["norm"].tolist() == ["batch", "layer"]
    np.testing.assert_array_equal(parts["y"].gap, [0.2, 0.4])
    np.testing.assert_array_equal(parts["y"].train_accuracy, [0.9, 0.7])
    assert parts["y"].notes == corpus.notes
    assert list(make(tasks=None).by_task()) == ["all models"]


def test_values_of_different_kinds_stay_what_they_are() -> None:
    assert make().hyperparameters["norm"].tolist() == [None, "batch", None, "layer"]
    column = make(hyperparameters={"w": [1, 2.5, True, "x"]}).hyperparameters["w"]
    assert [type(v) for v in column.tolist()] == [int, float, bool, str]


def test_measures_are_added_and_replaced_with_their_orientation() -> None:
    more = make().with_measures({"gi": [1, 2, 3, 4], "pal": [4, 3, 2, 1]}, {"pal": -1})
    assert more.orientation == {"pal": -1}  # the new "gi" was declared nothing
    np.testing.assert_array_equal(more.measures["gi"], [1, 2, 3, 4])
    assert make().with_measures({"x": [1, 2, 3, 4]}, -1).orientation == {"gi": 1, "x": -1}


def test_frame_has_a_row_for_each_model() -> None:
    pytest.importorskip("pandas")
    frame = make().frame()
    assert list(frame) == ["task", "model", "depth", "norm", "train_accuracy", "gap", "gi"]
    assert frame.loc[1, "norm"] == "batch"
    assert len(frame) == 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gap": [0.1, 0.2]}, r"gap has shape \(2,\) for 4 models"),
        ({"gap": [10.0, 20.0, 5.0, 1.0]}, "gap holds 10.*unit='percent'"),
        ({"gap": [0.1, np.inf, 0.1, 0.1]}, "gap holds inf"),
        ({"train_accuracy": [99.0, 98.0, 97.0, 99.0]}, "train_accuracy holds 99.*percent"),
        ({"train_accuracy": [-0.1, 0.9, 0.9, 0.9]}, "train_accuracy holds -0.1"),
        ({"measures": {"gi": [1.0]}}, r"measure 'gi' has shape \(1,\)"),
        ({"measures": {"gi": ["a", "b", "c", "d"]}}, "measure 'gi' must hold numbers"),
        ({"hyperparameters": {"depth": [1, 2]}}, r"hyperparameters\['depth'\] has shape \(2,\)"),
        ({"models": ("a", "a", "a", "d")}, "models holds 'a' 2 times in one task"),
        ({"models": (), "gap": []}, "models is empty"),
        ({"hyperparameters": {"gi": [1, 2, 3, 4]}}, "'gi' is a hyperparameter and a measure"),
        ({"hyperparameters": {"gap": [1, 2, 3, 4]}}, "'gap' is the name of another column"),
        ({"orientation": {"pal": 1}}, "orientation names 'pal', which is no measure"),
        ({"orientation": {"gi": 0}}, "orientation is 0 for 'gi': use 1"),
        ({"tasks": ["x"]}, r"tasks has shape \(1,\)"),
        ({"tasks": ["x", None, "y", "y"]}, "tasks holds a missing name"),
        ({"tasks": ["x", np.nan, "y", "y"]}, "tasks holds a missing name"),
    ],
)
def test_bad_columns_are_named_with_a_remedy(changes: dict, message: str) -> None:
    if changes.get("models") == ():
        changes = changes | {"hyperparameters": {}, "measures": {}, "orientation": {}}
        changes |= {"tasks": None, "train_accuracy": None}
    with pytest.raises(InputError, match=message):
        make(**changes)


def test_selecting_nothing_or_with_a_mask_of_other_length_is_an_error() -> None:
    with pytest.raises(InputError, match="selects none of the models"):
        make().select(np.zeros(4, dtype=bool))
    with pytest.raises(InputError, match=r"mask has shape \(2,\)"):
        make().select([True, False])
    assert make().select([2, 0]).models == ("c", "a")


@pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")  # of the models left out, which n tells
def test_invariance_on_real_images_as_the_docs_say() -> None:
    """24 VGGs and 12 ResNets of CIFAR-10 for each perturbation; what the page on the method concludes of them."""
    orientation = {"gi-score": 1, "mean accuracy": -1, "augmented accuracy": -1}
    for family, settings in (("vgg", ["architecture", "batch_norm", "batch"]), ("resnet", ["batch", "rate"])):
        path = Path(__file__).parents[2] / "examples" / "corpus" / f"cifar10-{family}.csv"
        columns = {"task": "perturbation"}
        corpus = load_corpus(path, columns=columns, hyperparameters=settings, orientation=orientation)
        assert {len(part) for part in corpus.by_task().values()} == {24 if family == "vgg" else 12}
        judged = judge_measures(corpus, least_train_accuracy=0.8, permutations=99)
        assert judged.tasks == ("rotation", "shift-x", "shift-y")
        for task in judged.tasks:
            assert judged.row("gi-score", task).n >= (19 if family == "vgg" else 11)
            # All three tell the gap; none of them is shown to tell more than Gi, or less.
            assert all(judged.row(name, task).pvalue <= 0.05 for name in orientation)
        for other in ("mean accuracy", "augmented accuracy"):
            difference = judged.compare("gi-score", other).difference
            assert difference.low < 0 < difference.high


ACCURACIES = {
    "depth": [2, 2, 2, 4, 4, 4],
    "train_accuracy": [0.99, 0.98, 0.97, 0.99, 0.98, 0.96],
    "val_accuracy": [0.7, 0.6, 0.5, 0.4, 0.3, 0.2],
    "test_accuracy": [0.9, 0.85, 0.8, 0.88, 0.8, 0.7],
    "norm": [1.0, 1.5, 2.0, 1.2, 2.1, 3.0],
}
GAPS = np.array(ACCURACIES["train_accuracy"]) - ACCURACIES["test_accuracy"]


def test_the_gap_goes_by_the_test_set_where_there_is_one() -> None:
    np.testing.assert_allclose(load_corpus(ACCURACIES).gap, GAPS)
    without = {k: v for k, v in ACCURACIES.items() if k != "test_accuracy"}
    assert load_corpus(without).gap[0] == pytest.approx(0.29)
    # Whether as accuracy or as error: a column "accuracy" may be that of the training examples.
    errors = {
        **without,
        "accuracy": ACCURACIES["train_accuracy"],
        "test_error": 1 - np.array(ACCURACIES["test_accuracy"]),
    }
    for lacking in ("accuracy", "val_accuracy", None):
        found = load_corpus({k: v for k, v in errors.items() if k != lacking})
        np.testing.assert_allclose(found.gap, GAPS)
        assert "gap as 'test_error' − train error" in found.notes
        assert any(note.startswith("left out: ") for note in found.notes)
    # Nor is it lost without a word where there is a gap.
    found = load_corpus({"gap": GAPS, "depth": ACCURACIES["depth"], "accuracy": [0.9] * 6, "norm": range(6)})
    assert "left out: 'accuracy'" in found.notes


def test_gaps_that_are_equal_up_to_rounding_are_ties() -> None:
    """0.95 − 0.85 is not 1 − 0.9 in binary, nor is 10.1% a hundredth of it: the same corpus in every form."""
    train, test = np.array([95, 100, 60, 40, 97, 99]), np.array([85, 90, 50, 30, 80, 70])
    forms = (
        {"gap": [0.1, 0.1, 0.1, 0.1, 0.17, 0.29]},
        {"train_acc": train / 100, "test_acc": test / 100},
        {"train_acc (%)": train, "test_acc (%)": test},
        {"train_error": (100 - train) / 100, "test_error": (100 - test) / 100},
    )
    found = [load_corpus({"depth": ACCURACIES["depth"], "norm": ACCURACIES["norm"], **form}) for form in forms]
    for corpus in found:
        assert len(set(corpus.gap.tolist())) == 3
        assert corpus.gap.tolist() == found[0].gap.tolist()


def test_a_gap_of_the_other_sign_is_refused_where_accuracies_show_it() -> None:
    with pytest.raises(InputError, match="test less training accuracy"):
        load_corpus({**ACCURACIES, "gap": (-GAPS).round(2)})
    np.testing.assert_allclose(load_corpus({**ACCURACIES, "gap": GAPS.round(2)}).gap, GAPS.round(2))


def test_mostly_negative_gaps_are_warned_of() -> None:
    table = {"depth": ACCURACIES["depth"], "gap": (-GAPS).tolist(), "norm": ACCURACIES["norm"]}
    with pytest.warns(match="6 of 6 gaps are negative"):
        judge_measures(load_corpus(table, orientation={"norm": 1}), permutations=0)


def test_accuracies_in_two_units_are_refused() -> None:
    table = {**ACCURACIES, "train_accuracy": [100 * v for v in ACCURACIES["train_accuracy"]]}
    with pytest.raises(InputError, match="no value of 'test_accuracy' is above 1"):
        load_corpus(table, unit="percent")


def test_a_loss_on_test_data_is_no_measure_and_missing_settings_are_noted() -> None:
    table = {**ACCURACIES, "depth": [2, 2, 2, 4, 4, None], "test_loss": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}
    found = load_corpus(table, hyperparameters=["depth"])
    assert list(found.measures) == ["norm"]
    assert "1 of 6 models have no 'depth', which counts as a value of its own" in found.notes


def test_a_status_is_no_hyperparameter() -> None:
    found = load_corpus({**ACCURACIES, "status": ["ok", "ok", "ok", "ok", "failed", "failed"]})
    assert "status" not in found.hyperparameters


def test_models_that_did_not_finish_are_left_out_though_they_have_a_gap() -> None:
    """Nine networks that were stopped after one epoch have no gap and a poor Gi: they would hide a good measure."""
    rng = np.random.default_rng(0)
    depth, width = np.tile([2, 4, 6], 12), np.repeat([16, 32], 18)
    gap = 0.05 * depth / 6 + 0.05 * rng.random(36)
    stopped = np.arange(36) % 4 == 0
    table = {
        "depth": depth,
        "width": width,
        "gap": np.where(stopped, 0.001, gap),
        "gi": np.where(stopped, 0.7, gap + 0.01 * rng.normal(size=36)),
    }
    finished = load_corpus({k: v[~stopped].tolist() for k, v in table.items()}, orientation={"gi": 1})
    wanted = judge_measures(finished, permutations=199)
    assert wanted.row("gi").cmi.low > 0
    for words in (("finished", "crashed"), ("FINISHED", "TrialState.PRUNED"), ("done", "running")):
        told = {k: v.tolist() for k, v in table.items()} | {"State": [words[int(s)] for s in stopped]}
        found = load_corpus(told, orientation={"gi": 1})
        assert any("9 of 36 rows left out by column 'State'" in note for note in found.notes)
        np.testing.assert_array_equal(found.gap, finished.gap)
        assert judge_measures(found, permutations=199).row("gi").cmi == wanted.row("gi").cmi
    every = load_corpus(told, columns={"status": None}, orientation={"gi": 1})
    assert len(every) == 36
    assert list(every.hyperparameters) == ["depth", "width"]
