"""Which runs: what may be said, and which seeds follow."""

from __future__ import annotations

import re

import pytest

from curvewise.errors import InputError
from curvewise.study import Design, Evaluation, Learner, Study


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seeds": 0}, "seeds=0"),
        ({"seeds": True}, "seeds=True"),
        ({"seeds": 2.0}, "seeds=2.0"),
        ({"vary": ["init", "luck"]}, "vary has 'luck'"),
        ({"vary": [["init"], ["init"]]}, "holds an entry twice"),
        ({"vary": [["init", "order"], ["order", "init"]]}, "holds an entry twice"),
        ({"vary": ["init", "init"]}, "holds an entry twice"),
        ({"vary": 3}, "vary=3: give a list"),
        ({"vary": [], "seeds": 2}, "would make the same run several times"),
        ({"vary": [["init"], []]}, "would make the same run several times"),
        ({"vary": ["poke"]}, "poke= is not given"),
        ({"poke": {"when": 1}}, "it takes epoch and factor"),
        ({"poke": {"epoch": -1}}, "poke has epoch=-1"),
        ({"poke": 1.001}, "poke=1.001: give a table"),
        ({"poke": {}, "vary": [["init"], ["order"]]}, "no list of vary names 'poke'"),
        ({"sizes": []}, "sizes=()"),
        ({"sizes": ["a"]}, "sizes=('a',)"),
        ({"folds": 0}, "folds=0"),
        ({"folds": [1, 1.5]}, "folds=(1, 1.5)"),
        ({"test": 0}, "test=0"),
        ({"test": "half"}, "test='half'"),
        ({"nested": 1}, "nested=1"),
        ({"grid": {"batch": 3}}, "grid['batch']=3"),
        ({"grid": {"batch": []}}, "grid['batch']=[]"),
        ({"grid": {"batch": [1, 2, 1]}}, "holds a value twice"),
        ({"grid": 3}, "grid=3"),
        ({"folds": []}, "folds=()"),
        ({"vary": [1, "init"]}, "vary=(1, 'init')"),
        ({"vary": [None]}, "vary=(None,)"),
        ({"grid": {"n": [1, 2]}}, "grid has 'n', which every run has already"),
        ({"grid": {"svm": {"fold": [1]}}}, "grid has 'svm.fold'"),
        ({"grid": {"svm": {"C": 3}}}, "grid['svm.C']=3"),
    ],
)
def test_a_design_that_cannot_be_is_refused(options, message):
    with pytest.raises(InputError, match=re.escape(message)):
        Design(**options)


def test_lists_and_tuples_say_the_same():
    assert Design(sizes=[1, 2], vary=["init"]) == Design(sizes=(1, 2), vary=("init",))
    assert Design(vary="init") == Design(vary=["init"])
    assert Design(vary=[["init"]]).variations == Design(vary=["init"]).variations


def test_what_varies_varies_and_the_rest_does_not():
    design = Design(seeds=5, vary=["init", "augmentation"])
    drawn = [design.seeds_of(0, n=10, fold=0, replicate=r) for r in range(5)]
    assert {len({d[k] for d in drawn}) for k in ("init", "augmentation")} == {5}
    assert len({d["order"] for d in drawn}) == 1
    assert "poke" not in drawn[0]


def test_seeds_of_other_subsets_and_studies_differ():
    design = Design()
    drawn = {
        tuple(design.seeds_of(entropy, n, fold, 0).values()) for entropy in (0, 1) for n in (10, 20) for fold in (0, 1)
    }
    assert len(drawn) == 8
    assert len({seed for seeds in drawn for seed in seeds}) == 8 * 3


def test_one_variation_pokes_every_run_and_several_only_the_named():
    alone = Design(vary=["init"], poke={"epoch": 1})
    assert alone.is_poked(("init",))
    several = Design(vary=[["init"], ["init", "poke"]], poke={"epoch": 1})
    assert [several.is_poked(v) for v in several.variations] == [False, True]


def test_the_grid_is_every_combination():
    design = Design(grid={"batch": [1, 2], "augmentation": [[], ["flip"]]})
    assert list(design.combinations()) == [
        {"batch": 1, "augmentation": []},
        {"batch": 1, "augmentation": ["flip"]},
        {"batch": 2, "augmentation": []},
        {"batch": 2, "augmentation": ["flip"]},
    ]
    assert list(Design().combinations()) == [{}]


@pytest.mark.parametrize("names", [("x", "X"), ("Test",)])
def test_evaluation_sets_are_told_apart_without_case(names):
    sets = {name: Evaluation(perturbation="rotation", magnitude=10) for name in names}
    with pytest.raises(InputError, match="evaluate has"):
        Study("digits", {"bayes": Learner(estimator="sklearn.naive_bayes:GaussianNB")}, evaluate=sets)
