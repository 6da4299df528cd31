"""Twins: brute force over pairs of runs, coverage by simulation, bad input."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from curvewise.errors import InputError
from curvewise.types import Predictions
from curvewise.variance._crossed import Crossed
from curvewise.variance.twins import measure_twins


def trained(rng, runs=8, n=60, poke=0.4, classes=4):
    """Answers of runs and of their twins; a twin says anew what it says with chance ``poke``."""
    truth = rng.integers(0, classes, n)
    unsure = rng.beta(0.5, 2.0, n)

    def answers():
        other = rng.integers(0, classes, (runs, n))
        return np.where(rng.random((runs, n)) < unsure, other, truth)

    runs_said = answers()
    return runs_said, np.where(rng.random((runs, n)) < poke, answers(), runs_said), truth


def test_means_by_hand():
    rng = np.random.default_rng(0)
    runs, twins, truth = trained(rng)
    found = measure_twins(runs, twins, truth)
    assert found.disagreement[0].estimate == pytest.approx((runs != twins).mean())
    pairs = [(a != b).mean() for a, b in itertools.combinations(runs, 2)]
    assert found.seeds.estimate == pytest.approx(np.mean(pairs))
    assert found.fraction[0].estimate == pytest.approx((runs != twins).mean() / np.mean(pairs))
    np.testing.assert_allclose(found.by_run[0], (runs != twins).mean(axis=1))
    assert found.measured == "predictions"


def test_errors_compare_correctness():
    runs, twins, truth = trained(np.random.default_rng(1))
    a, b = runs != truth, twins != truth
    found = measure_twins(Predictions(a, "errors"), Predictions(b, "errors"))
    assert found.measured == "correctness"
    assert found.disagreement[0].estimate == pytest.approx((a != b).mean())
    pairs = [(x != y).mean() for x, y in itertools.combinations(a, 2)]
    assert found.seeds.estimate == pytest.approx(np.mean(pairs))
    packed = [Predictions(np.packbits(x, axis=1), "errors", packed=x.shape[1]) for x in (a, b)]
    assert measure_twins(*packed).to_dict() == found.to_dict()


def test_reseeded_runs_are_compared_one_by_one():
    rng = np.random.default_rng(2)
    runs, twins, truth = trained(rng)
    others = trained(rng)[0]
    found = measure_twins(runs, {4: twins, 0: runs}, truth, reseeded=others)
    assert found.when == (0, 4)
    assert found.seeds_from == "reseeded"
    assert found.seeds.estimate == pytest.approx((runs != others).mean())
    assert found.disagreement[0].estimate == 0.0
    assert found.fraction[0].estimate == 0.0
    assert len(found.columns()["when"]) == 3
    assert "(4) disagree" in found.summary()


def test_names_of_classes_may_be_numbered_differently():
    runs, twins, truth = trained(np.random.default_rng(3))
    names = np.array(["d", "a", "c", "b"])
    plain = measure_twins(runs, twins, truth)
    rare = twins.copy()
    rare[rare == 3] = 1  # "b" does not occur in the twins, so that names get other numbers
    labels = np.where(truth == 3, 1, truth)
    kept = np.where(runs == 3, 1, runs)
    expected = measure_twins(kept, rare, labels)
    named = measure_twins(names[kept], names[rare], names[labels])
    assert named.disagreement == expected.disagreement
    mixed = measure_twins(names[runs], names[twins], names[truth])
    assert mixed.fraction == plain.fraction
    only = names[labels]
    one = measure_twins(names[runs], names[rare], only)
    assert one.disagreement[0].estimate == pytest.approx((runs != rare).mean())


def test_crossed_residual_is_that_of_two_way_anova():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(7, 11)) + rng.normal(size=(7, 1)) + rng.normal(size=11)
    crossed = Crossed(7, 11, 1)
    crossed.add(0, [x[:3]])
    crossed.add(3, [x[3:]])
    rest = x - x.mean(axis=1, keepdims=True) - x.mean(axis=0) + x.mean()
    assert crossed.residual()[0, 0] == pytest.approx((rest**2).sum() / (6 * 10))


def test_order_does_not_matter():
    rng = np.random.default_rng(4)
    runs, twins, truth = trained(rng)
    r, e = rng.permutation(8), rng.permutation(60)
    one = measure_twins(runs, twins, truth)
    two = measure_twins(runs[r][:, e], twins[r][:, e], truth[e])
    for a, b in ((one.seeds, two.seeds), (one.fraction[0], two.fraction[0])):
        assert (b.estimate, b.low, b.high) == pytest.approx((a.estimate, a.low, a.high))


def test_coverage_with_runs_and_examples_sampled():
    """New runs and new examples each time; truth from the rates that the data are made with."""
    rng = np.random.default_rng(0)
    unsure = rng.beta(0.5, 2.0, 400_000)
    right = 1 - unsure * 3 / 4
    apart = 1 - right**2 - (1 - right) ** 2 / 3
    truth = {"seeds": apart.mean(), "twins": 0.4 * apart.mean(), "fraction": 0.4}
    hits = dict.fromkeys(truth, 0)
    for _ in range(200):
        found = measure_twins(*trained(rng, runs=10, n=150))
        hits["seeds"] += truth["seeds"] in found.seeds
        hits["twins"] += truth["twins"] in found.disagreement[0]
        hits["fraction"] += truth["fraction"] in found.fraction[0]
    assert all(h >= 180 for h in hits.values()), hits


def test_bad_input():
    runs, twins, truth = trained(np.random.default_rng(5))
    with pytest.raises(InputError, match="twins has 7 runs"):
        measure_twins(runs, twins[:7], truth)
    with pytest.raises(InputError, match="examples"):
        measure_twins(Predictions(runs > 1, "errors"), Predictions(twins[:, :50] > 1, "errors"))
    named = [
        Predictions(x > 1, "errors", run_ids=i)
        for x, i in ((runs, np.arange(8)), (twins, np.arange(8)[::-1]))
    ]
    with pytest.raises(InputError, match="run_ids"):
        measure_twins(*named)
    ids = [
        Predictions(x > 1, "errors", example_ids=i)
        for x, i in ((runs, np.arange(60)), (twins, np.arange(60)[::-1]))
    ]
    with pytest.raises(InputError, match="example_ids"):
        measure_twins(*ids)
    with pytest.raises(InputError, match="at least three"):
        measure_twins(runs[:2], twins[:2], truth)
    with pytest.raises(InputError, match="when="):
        measure_twins(runs, {0: twins}, truth, when=3)
    with pytest.raises(InputError, match="twins is empty"):
        measure_twins(runs, {}, truth)
    with pytest.raises(InputError, match="losses"):
        measure_twins(np.random.default_rng(0).random((4, 9)), twins)
    with pytest.raises(InputError, match="kind"):
        measure_twins(Predictions(runs, "labels", labels=truth), Predictions(twins > 1, "errors"))
