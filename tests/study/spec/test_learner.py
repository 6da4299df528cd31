"""Learners of three kinds, and settings that a grid changes."""

from __future__ import annotations

import re

import pytest

from curvewise.errors import InputError
from curvewise.nn.training import Training
from curvewise.study import Learner
from curvewise.study.spec.document import learner_from_table, table_of_learner


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "it has none"),
        ({"training": Training("mlp"), "command": "x {out}"}, "training and command"),
        ({"training": Training("mlp"), "members": 0}, "members=0"),
        ({"training": Training("mlp"), "members": 1.5}, "members=1.5"),
        ({"estimator": "sklearn.svm:SVC", "members": 2}, "members=2: only networks"),
        ({"estimator": "sklearn.svm.SVC"}, "'module:Class'"),
        ({"estimator": "os:system('x')"}, "'module:Class'"),
        ({"estimator": 3}, "estimator=3"),
        ({"command": "python x.py"}, "does not say {out}"),
        ({"command": "x {out"}, "command='x {out'"),
        ({"command": ["x"]}, "command=['x']"),
        ({"command": "x {out}", "timeout": 0}, "timeout=0"),
        ({"training": Training("mlp"), "timeout": 3}, "timeout=3"),
    ],
)
def test_a_learner_that_cannot_be_is_refused(options, message):
    with pytest.raises(InputError, match=re.escape(message)):
        Learner(**options)


def test_a_grid_reaches_settings_options_and_members():
    learner = Learner(Training("mlp", options={"width": 8}))
    changed = learner.with_settings({"batch": 5, "depth": 3, "members": 2, "augmentation": ["flip"]})
    assert changed == Learner(
        Training("mlp", options={"width": 8, "depth": 3}, batch=5, augmentation=("flip",)), members=2
    )
    assert learner.training.batch == 64


def test_a_grid_reaches_parameters_of_estimators():
    learner = Learner(estimator="sklearn.svm:SVC", options={"C": 1})
    assert learner.with_settings({"C": 2, "gamma": 1}).options == {"C": 2, "gamma": 1}


def test_what_is_trained_is_all_in_the_coordinates():
    one = Learner(Training("mlp"))
    assert one.as_dict() != Learner(Training("mlp"), members=2).as_dict()
    assert one.as_dict() != Learner(Training("mlp", precision="bfloat16")).as_dict()
    assert one.as_dict() != Learner(Training("mlp", options={"width": 1})).as_dict()


@pytest.mark.parametrize(
    "learner",
    [
        Learner(Training("mlp", options={"epoch": 1, "lr": 2, "members": 3, "width": 4})),
        Learner(estimator="a:B", options={"estimator": 1, "options": {"x": 1}, "command": 2}),
        Learner(command="x {out}", options={"command": 1, "timeout": 2, "timeouts": 3}, timeout=4),
    ],
)
def test_options_with_the_names_of_settings_come_back(learner):
    assert learner_from_table(table_of_learner(learner)) == learner


@pytest.mark.parametrize("setting", ["batch", "look_every", "patience_n", "patience_steps", "like", "weights_into"])
def test_no_setting_of_a_training_reaches_an_estimator(setting):
    assert not Learner(estimator="sklearn.svm:SVC").takes(setting)
    assert Learner(estimator="sklearn.linear_model:SGDClassifier").takes("loss")  # its own
