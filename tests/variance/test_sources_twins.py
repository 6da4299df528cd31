"""Twins: brute force over pairs of runs, coverage by simulation, bad input."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.types import Predictions
from curvewise.variance.sources import Crossed, CrossedMean, measure_twins


def trained(rng, runs=8, n=60, poke=0.4, classes=4, unsure=None):
    """Answers of runs and of their twins; a twin says anew what it says with chance ``poke``."""
    unsure = rng.beta(0.5, 2.0, n) if unsure is None else unsure
    n = len(unsure)
    truth = rng.integers(0, classes, n)

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
    assert "(poked at 4) disagree" in found.summary()


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
    assert crossed.noise()[0, 0] == pytest.approx((rest**2).sum() / (6 * 10) / 11)


def test_groups_are_units_in_both_parts():
    """The noise of groups is that of their totals; groups of one example change nothing."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(6, 20)) + rng.normal(size=(6, 1))
    groups = rng.permutation(np.repeat(np.arange(5), 4))
    crossed, totals = Crossed(6, 20, 1, groups), Crossed(6, 5, 1)
    crossed.add(0, [x])
    totals.add(0, [np.stack([x[:, groups == g].mean(axis=1) for g in range(5)], axis=1)])
    assert crossed.noise()[0, 0] == pytest.approx(totals.noise()[0, 0])
    one, two = (CrossedMean(c, (1.0,), (1.0,)) for c in (crossed, totals))
    assert (one.variance, one.degrees) == pytest.approx((two.variance, two.degrees))
    runs, twins, truth = trained(rng)
    plain = measure_twins(runs, twins, truth)
    alone = measure_twins(runs, twins, truth, groups=rng.permutation(60))
    assert tuple(alone.disagreement[0]) == pytest.approx(tuple(plain.disagreement[0]))
    assert (plain.groups, alone.groups) == (None, 60)


def test_groups_come_with_any_of_the_predictions():
    runs, twins, truth = trained(np.random.default_rng(6))
    groups = np.repeat(np.arange(12), 5)
    given = measure_twins(runs, twins, truth, groups=groups)
    assert given.groups == 12
    assert "in 12 groups" in given.summary()
    carried = Predictions(twins, "labels", labels=truth, groups=groups)
    assert measure_twins(runs, carried, truth).to_dict() == given.to_dict()
    base = Predictions(runs, "labels", labels=truth, groups=groups)
    assert measure_twins(base, twins, truth).to_dict() == given.to_dict()
    with pytest.raises(InputError, match="different groups"):
        measure_twins(base, Predictions(twins, "labels", labels=truth, groups=groups[::-1]), truth)


@pytest.mark.slow
def test_coverage_with_groups():
    """20 groups of 20 examples that are equally hard: they count as 20, not as 400."""
    rng = np.random.default_rng(0)
    right = 1 - rng.beta(0.5, 2.0, 400_000) * 3 / 4
    truth = float((1 - right**2 - (1 - right) ** 2 / 3).mean())
    groups = np.repeat(np.arange(20), 20)
    hits, alone = np.zeros(3), 0
    for _ in range(150):
        unsure = np.repeat(rng.beta(0.5, 2.0, 20), 20)
        runs, twins, labels = trained(rng, runs=10, unsure=unsure)
        found = measure_twins(runs, twins, labels, groups=groups)
        rate, seeds, part = found.disagreement[0], found.seeds, found.fraction[0]
        hits += [0.4 * truth in rate, truth in seeds, 0.4 in part]
        alone += truth in measure_twins(runs, twins, labels).seeds
    assert (hits >= 136).all(), hits
    assert alone < 100


def test_classes_may_be_true_and_false():
    runs, twins, truth = trained(np.random.default_rng(7), classes=2)
    found = measure_twins(runs == 1, twins == 1, truth == 1)
    assert found.to_dict() == measure_twins(runs, twins, truth).to_dict()


def test_no_disagreement_is_not_certainty():
    """None among n examples: 1 − (α/2)^(1/n) may disagree and not be seen, as binomials say."""
    runs, _, truth = trained(np.random.default_rng(8))
    found = measure_twins(runs, runs, truth)
    rate = found.disagreement[0]
    assert tuple(rate)[1:] == pytest.approx((0.0, 1 - 0.025 ** (1 / 60)))
    assert found.fraction[0].high == pytest.approx(rate.high / found.seeds.estimate)
    grouped = measure_twins(runs, runs, truth, groups=np.arange(60) // 6)
    assert grouped.disagreement[0].high == pytest.approx(1 - 0.025 ** (1 / 10))
    opposite = measure_twins(runs, (runs + 1) % 4, truth)
    assert tuple(opposite.disagreement[0])[1:] == pytest.approx((0.025 ** (1 / 60), 1.0))
    same = measure_twins(np.tile(truth, (5, 1)), np.tile(truth, (5, 1)), truth)
    assert tuple(same.seeds)[1:] == pytest.approx((0.0, 1 - 0.025 ** (1 / 60)))
    assert tuple(same.fraction[0])[1:] == (0.0, np.inf)


@pytest.mark.slow
def test_coverage_where_disagreement_is_rare():
    """Twins of one example in a hundred may differ; many samples of 150 hold one or none."""
    rng = np.random.default_rng(2)
    right = 1 - 0.9 * 3 / 4
    truth = 0.01 * (1 - right**2 - (1 - right) ** 2 / 3)
    hits = 0
    for _ in range(200):
        unsure = np.where(rng.random(150) < 0.01, 0.9, 0.0)
        found = measure_twins(*trained(rng, runs=6, unsure=unsure))
        hits += 0.4 * truth in found.disagreement[0]
        assert 0 <= found.disagreement[0].low < found.disagreement[0].high <= 1
        assert 0 <= found.seeds.low < found.seeds.high <= 1
    assert hits >= 186


def test_few_runs_are_said_to_be_few():
    runs, twins, truth = trained(np.random.default_rng(9), runs=4)
    with pytest.warns(CurvewiseWarning, match="4 runs with their twins are few"):
        found = measure_twins(runs, twins, truth)
    assert "Train at least 5" in found.warnings[0]


def test_a_run_is_in_all_its_pairs():
    """The error of the disagreement of seeds, from the choice of runs, is that of the jackknife of pairs."""
    rng = np.random.default_rng(15)
    truth = rng.integers(0, 10, 4000)
    slips = rng.random((12, 4000)) < np.linspace(0.05, 0.4, 12)[:, None]
    runs = np.where(slips, rng.integers(0, 10, (12, 4000)), truth)
    found = measure_twins(runs, runs, truth)
    apart = np.array([[(a != b).mean() for b in runs] for a in runs])
    left_out = [np.delete(np.delete(apart, r, 0), r, 1).sum() / (11 * 10) for r in range(12)]
    half = stats.t.ppf(0.975, 11) * np.sqrt(np.var(left_out) * 11)
    assert found.seeds.width / 2 == pytest.approx(half, rel=0.25)


def test_order_does_not_matter():
    rng = np.random.default_rng(4)
    runs, twins, truth = trained(rng)
    r, e = rng.permutation(8), rng.permutation(60)
    one = measure_twins(runs, twins, truth)
    two = measure_twins(runs[r][:, e], twins[r][:, e], truth[e])
    for a, b in ((one.seeds, two.seeds), (one.fraction[0], two.fraction[0])):
        assert (b.estimate, b.low, b.high) == pytest.approx((a.estimate, a.low, a.high))


def test_twins_with_names_are_matched_by_them():
    rng = np.random.default_rng(10)
    runs, twins, truth = trained(rng, poke=0.1, n=200)
    order = rng.permutation(8)
    named = [
        Predictions(x, "labels", labels=truth, run_ids=i)
        for x, i in ((runs, np.arange(8)), (twins[order], np.arange(8)[order]))
    ]
    assert measure_twins(*named).to_dict() == measure_twins(runs, twins, truth).to_dict()
    others = trained(rng, n=200)[0]
    ids = Predictions(others, "labels", labels=truth, run_ids=np.arange(8) + 100)
    assert measure_twins(*named, reseeded=ids).seeds.estimate == pytest.approx((runs != others).mean())


def test_twins_in_other_places_are_refused():
    """One run further on, as in a study in which the first twin belongs to another experiment."""
    runs, twins, truth = trained(np.random.default_rng(11), poke=0.01, n=2000)
    assert measure_twins(runs, twins, truth).disagreement[0].estimate < 0.01
    with pytest.raises(InputError, match=r"8 of 8 twins agree far more with another run.*study\.twins"):
        measure_twins(runs, np.roll(twins, 1, axis=0), truth)
    # Twins that differ from their run as much as any other run are in no wrong place.
    apart = trained(np.random.default_rng(12), poke=1.0, n=2000)
    assert measure_twins(*apart).fraction[0].estimate == pytest.approx(1, abs=0.05)


def test_a_few_twins_in_other_places_are_refused():
    rng = np.random.default_rng(13)
    truth = rng.integers(0, 10, 400)
    runs = np.where(rng.random((40, 400)) < 0.2, rng.integers(0, 10, (40, 400)), truth)
    for moved in (2, 4, 20):
        order = np.arange(40)
        order[5 : 5 + moved] = np.roll(order[5 : 5 + moved], 1)
        with pytest.raises(InputError, match=f"{moved} of 40 twins agree far more"):
            measure_twins(runs, runs[order], truth)
    # A run that diverged is unlike its twin, which is as near to the others as they are to each other.
    astray = runs.copy()
    astray[[3, 8]] = 0
    assert measure_twins(astray, runs, truth).runs == 40
    assert measure_twins(runs, astray, truth).runs == 40


@pytest.mark.slow
def test_places_of_many_runs_are_checked():
    rng = np.random.default_rng(14)
    truth = rng.integers(0, 10, 200)
    runs = np.where(rng.random((4100, 200)) < 0.2, rng.integers(0, 10, (4100, 200)), truth)
    with pytest.raises(InputError, match="agree far more"):
        measure_twins(runs, np.roll(runs, 1, axis=0), truth)


@pytest.mark.slow
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
    named = [Predictions(x > 1, "errors", run_ids=i) for x, i in ((runs, np.arange(8)), (twins, np.arange(8) + 1))]
    with pytest.raises(InputError, match=r"'0' there is no single twin by run_ids\. Of a study, use study\.twins\(\)"):
        measure_twins(*named)
    ids = [Predictions(x > 1, "errors", example_ids=i) for x, i in ((runs, np.arange(60)), (twins, np.arange(60) + 1))]
    with pytest.raises(InputError, match="example_ids"):
        measure_twins(*ids)
    with pytest.raises(InputError, match="at least three"):
        measure_twins(runs[:2], twins[:2], truth)
    with pytest.raises(InputError, match="when is for one set"):
        measure_twins(runs, {0: twins}, truth, when=3)
    with pytest.raises(InputError, match="twins is empty"):
        measure_twins(runs, {}, truth)
    with pytest.raises(InputError, match="losses"):
        measure_twins(np.random.default_rng(0).random((4, 9)), twins)
    with pytest.raises(InputError, match="kind"):
        measure_twins(Predictions(runs, "labels", labels=truth), Predictions(twins > 1, "errors"))


def test_numbers_of_numpy_are_numbers():
    truth = np.arange(60) % 4
    runs, poked = np.random.default_rng(0).integers(0, 4, (2, 9, 60))
    twins = measure_twins(runs, {np.int64(8): poked, np.int64(4): poked}, truth)
    assert twins.when == (4, 8)
    assert "poked at 4" in twins.summary()


def test_variation_with_run_and_example_counts_once():
    rng = np.random.default_rng(2)
    cells = rng.random((7, 40)) + rng.normal(0, 0.2, (7, 1)) + rng.normal(0, 0.5, 40)
    crossed = Crossed(7, 40, 1)
    for start in (0, 4):
        crossed.add(start, [cells[start : start + 4]])
    by_run, by_example = cells.mean(axis=1).var(ddof=1), cells.mean(axis=0).var(ddof=1)
    noise = (cells.var(axis=0, ddof=1).sum() / 40**2 - by_run / 40) / (1 - 1 / 40)
    expected = by_run / 7 + by_example / 40 - noise / 7
    assert expected > max(by_run / 7, by_example / 40)
    assert CrossedMean(crossed, (1.0,), (1.0,)).variance == pytest.approx(expected)
