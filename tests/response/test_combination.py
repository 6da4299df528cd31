"""Measures made into one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from curvewise.errors import InputError
from curvewise.response.combination import combine_measures
from curvewise.response.load import ModelCorpus

rng = np.random.default_rng(0)
CAUSE = rng.normal(size=30)
MEASURES = {
    "gi": 0.2 + 0.02 * (CAUSE + rng.normal(size=30) / 2),
    "pal": 50 - 5 * (CAUSE + rng.normal(size=30) / 2),
    "norm": np.exp(CAUSE / 3 + rng.normal(size=30) / 9),
}
ORIENTATION = {"pal": -1, "gi": 1}
ORIENTED = np.stack([MEASURES["gi"], -MEASURES["pal"], MEASURES["norm"]])


@pytest.mark.parametrize("how", ["pca", "npca"])
def test_components_equal_scikit_learns_up_to_sign(how: str) -> None:
    table = ORIENTED.T
    if how == "npca":
        table = (table - table.mean(axis=0)) / table.std(axis=0)
    fit = pytest.importorskip("sklearn.decomposition").PCA(1).fit(table)
    theirs = fit.transform(table)[:, 0] * np.sign(fit.components_[0].mean())
    ours = combine_measures(MEASURES, how, orientation=ORIENTATION)
    np.testing.assert_allclose(ours, theirs, atol=1e-9)
    assert stats.spearmanr(ours, CAUSE).statistic > 0.7


@pytest.mark.parametrize("how", ["pca", "npca"])
def test_the_order_of_measures_does_not_turn_a_component(how: str) -> None:
    turned = dict(reversed(MEASURES.items()))
    one = combine_measures(MEASURES, how, orientation=ORIENTATION)
    two = combine_measures(turned, how, orientation=ORIENTATION)
    np.testing.assert_allclose(one, two, atol=1e-9)


def test_simple_ways_are_what_they_say() -> None:
    gi, pal, norm = MEASURES.values()
    told = {"orientation": ORIENTATION}
    average = (gi - pal + norm) / 3
    np.testing.assert_allclose(combine_measures(MEASURES, "average", **told), average)
    product = gi / pal * norm
    np.testing.assert_allclose(combine_measures(MEASURES, "product", **told), product)
    both = combine_measures(MEASURES, "product+average", **told)
    np.testing.assert_allclose(both, product + average)
    ranks = np.mean([stats.rankdata(row) for row in ORIENTED], axis=0)
    np.testing.assert_allclose(combine_measures(MEASURES, "rank", **told), ranks)


@pytest.mark.parametrize("how", ["pca", "npca", "average", "product", "product+average", "rank"])
def test_combinations_rise_with_every_oriented_measure(how: str) -> None:
    """Two that fall with the gap do not make one that falls with it."""
    falling = {"a": np.linspace(9, 1, 12), "b": np.linspace(5, 2, 12)}
    ours = combine_measures(falling, how, orientation={"a": -1, "b": -1})
    assert (np.diff(ours) > 0).all()


@pytest.mark.parametrize("how", ["pca", "npca", "rank"])
def test_tasks_are_combined_each_for_itself(how: str) -> None:
    tasks = np.repeat(["x", "y"], [10, 20])
    whole = combine_measures(MEASURES, how, orientation=ORIENTATION, tasks=tasks)
    for task in ("x", "y"):
        part = {k: v[tasks == task] for k, v in MEASURES.items()}
        alone = combine_measures(part, how, orientation=ORIENTATION)
        np.testing.assert_allclose(whole[tasks == task], alone)


def test_a_corpus_brings_its_orientation_and_tasks() -> None:
    tasks = np.repeat(["x", "y"], [10, 20])
    corpus = ModelCorpus(tuple(map(str, range(30))), {}, np.zeros(30), MEASURES, ORIENTATION, tasks)
    ours = combine_measures(corpus, "npca", names=["gi", "pal"])
    two = {k: MEASURES[k] for k in ("gi", "pal")}
    wanted = combine_measures(two, "npca", orientation=ORIENTATION, tasks=tasks)
    np.testing.assert_array_equal(ours, wanted)


def test_failed_and_constant_measures() -> None:
    broken = MEASURES | {"gi": MEASURES["gi"].copy()}
    broken["gi"][3] = np.nan
    ours = combine_measures(broken, "npca", orientation=ORIENTATION)
    assert np.flatnonzero(np.isnan(ours)).tolist() == [3]
    rest = {k: np.delete(v, 3) for k, v in MEASURES.items()}
    alone = combine_measures(rest, "npca", orientation=ORIENTATION)
    np.testing.assert_allclose(np.delete(ours, 3), alone)
    flat = {"a": np.arange(5.0), "b": np.full(5, 0.1)}
    ours = combine_measures(flat, "npca")
    assert np.isfinite(ours).all()
    assert (np.diff(ours) > 0).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"how": "sum"}, "how='sum': use one of 'pca'"),
        ({"names": ["x"]}, "names holds 'x'"),
        ({"names": "gi"}, "names='gi' is one text"),
        ({"names": []}, "measures is empty"),
        ({"orientation": {"gi": 2}}, r"orientation\['gi'\]=2"),
        ({"orientation": {"x": 1}}, r"orientation\['x'\]=1"),
        ({"tasks": ["x"]}, r"tasks has shape \(1,\)"),
    ],
)
def test_bad_input_is_named(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        combine_measures(MEASURES, **options)


def test_a_product_without_a_direction_is_refused() -> None:
    with pytest.raises(InputError, match=r"not negative.*how='rank'"):
        combine_measures({"a": [-1.0, 2.0], "b": [1.0, 2.0]}, "product")
    with pytest.raises(InputError, match="above 0 where they fall"):
        combine_measures({"a": [0.0, 2.0]}, "product", orientation={"a": -1})
    with pytest.raises(InputError, match="differ in shape"):
        combine_measures({"a": [1.0, 2.0], "b": [1.0]}, "rank")
