"""The type of evaluations: what goes in, what is refused, and the way to predictions and back."""

from __future__ import annotations

import math

import numpy as np
import pytest

from curvewise.errors import InputError, quietly
from curvewise.evals import Evals, compare_evals, correct_judge, load_evals, plan_evals
from curvewise.types import Predictions

QUESTIONS = np.array(["q1", "q2", "q3"])


def make(scores, models=("a", "b"), **fields):
    return Evals(np.asarray(scores, dtype=float), models, QUESTIONS[: np.shape(scores)[1]], **fields)


def test_single_scores_get_an_axis_of_samples():
    e = make([[1, 0, 1], [0, 0, 1]])
    assert e.shape == (2, 3, 1)
    assert e.binary
    assert e.samples.tolist() == [[1, 1, 1], [1, 1, 1]]
    assert repr(e) == "Evals(2 models × 3 questions × 1 sample)"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"models": ("a", "a")}, "models has 'a' twice"),
        ({"scores": [[1, 0, np.nan], [0, 0, 1]]}, "1 of 6 pairs of model and question have no score, the first 'a'"),
        ({"scores": [[1, 0, np.inf], [0, 0, 1]]}, "infinite"),
        ({"scores": [[100, 0, 1], [0, 0, 1]]}, r"0 to 100, outside of the range 0 to 1: pass the range"),
        ({"range": (1, 1)}, "must be the lowest and the highest"),
        ({"groups": np.array(["g", "h"])}, "groups has shape"),
        ({"seeds": np.array([["0", "1"]])}, "seeds has shape"),
        ({"scores": np.zeros((2, 3, 0))}, "none of them empty"),
    ],
)
def test_what_is_refused(change, text):
    given = {"scores": [[1, 0, 1], [0, 0, 1]], "models": ("a", "b")} | change
    scores = given.pop("scores")
    with pytest.raises(InputError, match=text):
        Evals(np.asarray(scores, dtype=float), given.pop("models"), QUESTIONS, **given)


def test_a_question_that_is_there_twice():
    with pytest.raises(InputError, match="questions has 'q1' twice"):
        Evals(np.zeros((1, 2)), ("a",), np.array(["q1", "q1"]))


def test_models_are_selected_by_name_and_questions_by_mask():
    e = make([[1, 0, 1], [0, 0, 1]], groups=np.array(["x", "x", "y"]), seeds=np.array([["0"], ["1"]]))
    one = e.select(["b"], [True, False, True])
    assert one.models == ("b",)
    assert one.questions.tolist() == ["q1", "q3"]
    assert one.groups.tolist() == ["x", "y"]
    assert one.seeds.tolist() == [["1"]]
    with pytest.raises(InputError, match="no model 'c'; there are 'a', 'b'"):
        e.select(["c"])
    with pytest.raises(InputError, match="nothing is selected"):
        e.select(questions=np.zeros(3, dtype=bool))


def test_predictions_and_back():
    scores = np.array([[[1, 0], [1, 1], [0, 0]], [[0, 1], [1, 0], [1, 1]]], dtype=float)
    e = make(scores, seeds=np.array([["s", "t"], ["s", "t"]]), groups=np.array(["x", "x", "y"]))
    by_model = {name: e.predictions(name) for name in e.models}
    assert isinstance(by_model["a"], Predictions)
    assert by_model["a"].shape[:2] == (2, 3)
    again = Evals.from_predictions(by_model)
    assert again.models == e.models
    np.testing.assert_array_equal(again.scores, e.scores)
    assert again.seeds.tolist() == e.seeds.tolist()


def test_samples_of_one_model_are_repeats():
    e = make(np.array([[[1, 0], [1, 1], [0, 0]]], dtype=float), models=("a",))
    assert e.predictions("a").repeats == 2
    ragged = make(np.array([[[1, 0], [1, np.nan], [0, 0]]], dtype=float), models=("a",))
    with pytest.raises(InputError, match="different numbers of samples"):
        ragged.predictions("a")


def test_losses_keep_their_direction():
    e = make([[1.5, 2.5, 3.0]], models=("a",), range=(-np.inf, np.inf), higher_is_better=False)
    again = Evals.from_predictions({"a": e.predictions("a")})
    assert not again.higher_is_better
    np.testing.assert_allclose(again.scores, e.scores)
    errors = make([[1, 0, 0]], models=("a",), higher_is_better=False)
    assert errors.predictions("a").errors().ravel().tolist() == [1, 0, 0]


def test_a_row_for_each_sample():
    e = make([[[1, np.nan], [0, 1], [1, 1]]], models=("a",), tasks=np.array(["x", "y", "y"]))
    table = e.columns()
    assert table["question"].tolist() == ["q1", "q2", "q2", "q3", "q3"]
    assert table["task"].tolist() == ["x", "y", "y", "y", "y"]
    assert table["score"].tolist() == [1, 0, 1, 1, 1]


def test_letters_are_no_scores():
    with pytest.raises(InputError, match="scores must hold numbers"):
        Evals([["C", "I"]], ("a",), ["x", "y"])


@pytest.mark.parametrize("missing", [None, np.nan])
@pytest.mark.parametrize("name", ["questions", "groups", "tasks"])
def test_missing_names_are_refused(name, missing):
    fields = {"questions": ["w", "x", "y", "z"], name: ["a", missing, "b", "None"]}
    with pytest.raises(InputError, match=f"{name} has 1 missing value, the first at place 1"):
        Evals(np.ones((1, 4)), ("a",), **fields)


@pytest.mark.parametrize("given", [(0,), None, (1, 0), (0, math.nan)])
def test_a_range_is_two_rising_numbers(given):
    with pytest.raises(InputError, match=r"range=.*must be the lowest and the highest possible score"):
        Evals(np.ones((1, 2)), ("a",), ["x", "y"], range=given)


@pytest.mark.parametrize("questions", [[100], [True, False, True], ["x"]])
def test_places_of_questions_that_are_not_there(questions):
    e = Evals(np.ones((1, 2)), ("a",), ["x", "y"])
    with pytest.raises(InputError, match="questions must be a mask with an entry for each of 2 questions"):
        e.select(questions=questions)
    with pytest.raises(InputError, match="nothing is selected"):
        e.select(questions=[])


def test_messages_show_plain_values():
    e = Evals(np.eye(2), ("a", "b"), ["x", "y"])
    scale = Evals(np.eye(2), ("a", "b"), ["x", "y"], range=(np.float64(0), np.float64(2)))
    with quietly():
        texts = [repr(compare_evals(e, np.str_("a"), np.str_("b")))]
    for call in (
        lambda: e.index(np.str_("c")),
        lambda: compare_evals(e, np.str_("a"), np.str_("a")),
        lambda: correct_judge(e, scale),
        lambda: Evals(np.eye(2), ("a", "b"), ["x", "y"], range=(np.float64(3), np.float64(2))),
        lambda: plan_evals(0.03, question_variance=0.1, samples=(np.int64(0), np.int64(1))),
        lambda: load_evals({"question": [1], "score": [1]}, columns={np.str_("group"): np.str_("passage"), "x": "y"}),
    ):
        with pytest.raises(InputError) as caught:
            call()
        texts.append(str(caught.value))
    assert not [text for text in texts if "np." in text]


def test_groups_of_predictions_do_not_depend_on_the_first_model():
    plain = Predictions(np.array([[1, 0, 1, 1]]), "correct", example_ids=np.array(["w", "x", "y", "z"]))
    turned = {"example_ids": np.array(["z", "y", "x", "w"])}
    grouped = Predictions(np.array([[1, 1, 0, 1]]), "correct", groups=np.array([7, 7, 3, 3]), **turned)
    other = Predictions(np.array([[1, 1, 0, 1]]), "correct", groups=np.array([7, 3, 7, 3]), **turned)
    for given in ({"a": plain, "b": grouped}, {"b": grouped, "a": plain}, {"b": grouped, "c": grouped, "a": plain}):
        e = Evals.from_predictions(given)
        assert e.groups is not None
        together = dict(zip(e.questions.tolist(), e.groups.tolist(), strict=True))
        assert together["w"] == together["x"] != together["y"] == together["z"]
    with pytest.raises(InputError, match="of 'c' have other groups of examples"):
        Evals.from_predictions({"a": plain, "b": grouped, "c": other})
