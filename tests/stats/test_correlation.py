"""Correlations, against scipy and by hand."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import stats

from curvewise.ranking.agreement import left_out
from curvewise.stats.correlation import PAIRS_UP_TO, average_ranks, kendall, pearson, spearman, weighted_kendall


@pytest.mark.parametrize("decimals", [6, 0])
def test_correlations_equal_scipys_with_and_without_ties(decimals: int) -> None:
    rng = np.random.default_rng(0)
    target = rng.normal(size=40).round(decimals)
    rows = (rng.normal(size=(5, 40)) + target).round(decimals)
    for ours, theirs in (
        (kendall, stats.kendalltau),
        (pearson, stats.pearsonr),
        (spearman, stats.spearmanr),
        (weighted_kendall, stats.weightedtau),
    ):
        wanted = [theirs(row, target).statistic for row in rows]
        np.testing.assert_allclose(ours(rows, target), wanted, atol=1e-12)


def test_ranks_equal_scipys() -> None:
    values = np.random.default_rng(1).integers(0, 9, 50).astype(float)
    np.testing.assert_array_equal(average_ranks(values), stats.rankdata(values))


@pytest.mark.parametrize("of", [kendall, pearson, spearman, weighted_kendall])
def test_one_value_only_has_no_correlation(of) -> None:  # type: ignore[no-untyped-def]
    assert np.isnan(of(np.full((1, 5), 0.1), np.arange(5.0))).all()
    assert np.isnan(of(np.arange(5.0)[None], np.full(5, 0.1))).all()


def test_weighted_kendall_is_the_mean_over_both_orders() -> None:
    rng = np.random.default_rng(2)
    row, target = rng.normal(size=(2, 9))

    def one(order: np.ndarray) -> float:
        place = np.empty(9)
        place[np.argsort(-order)] = np.arange(9)
        total = agree = 0.0
        for i in range(9):
            for j in range(i):
                weight = 1 / (place[i] + 1) + 1 / (place[j] + 1)
                total += weight
                agree += weight * np.sign((row[i] - row[j]) * (target[i] - target[j]))
        return agree / total

    wanted = (one(row) + one(target)) / 2
    assert weighted_kendall(row[None], target)[0] == pytest.approx(wanted)


@pytest.mark.parametrize("power", [-1000, -700, -520, 520, 700, 1000])
def test_scale_changes_no_digit_of_pearson(power: int) -> None:
    rng = np.random.default_rng(0)
    rows, target = rng.integers(-50, 50, (3, 9)) / 1.0, rng.integers(-50, 50, 9) / 1.0
    plain = pearson(rows, target)
    assert pearson(np.ldexp(rows, power), target).tolist() == plain.tolist()
    assert pearson(rows, np.ldexp(target, power)).tolist() == plain.tolist()
    assert pearson(np.ldexp(rows, power), np.ldexp(target, -power)).tolist() == plain.tolist()


@pytest.mark.parametrize("of", [kendall, weighted_kendall])
@pytest.mark.parametrize("size", [PAIRS_UP_TO - 1, PAIRS_UP_TO, PAIRS_UP_TO + 1, 400])
def test_many_values_are_correlated_as_few(of, size: int) -> None:
    """By every pair, with ties; the short way and the long way agree."""
    rng = np.random.default_rng(size)
    rows = rng.integers(0, 12, (3, size)).astype(float)
    target = np.round(rows[0] + 4 * rng.standard_normal(size))
    rows[2] = 1.0
    found = of(rows, target)
    assert np.isnan(found[2])
    for row, value in zip(rows[:2], found, strict=False):
        up, over = (np.sign(v[:, None] - v[None]) for v in (row, target))
        weights = [np.ones((size, size))]
        if of is weighted_kendall:
            weights = []
            for keys in ((target, row), (row, target)):
                place = np.empty(size)
                place[np.lexsort(keys)[::-1]] = np.arange(size)
                weights.append(1 / (1 + place[:, None]) + 1 / (1 + place[None]))
        each = [(w * up * over).sum() / np.sqrt((w * up * up).sum() * (w * over * over).sum()) for w in weights]
        assert value == pytest.approx(np.mean(each), rel=1e-12)


@pytest.mark.slow
def test_many_values_make_no_table_of_pairs() -> None:
    rng = np.random.default_rng(0)
    rows, target = rng.standard_normal((1, 4000)), rng.standard_normal(4000)
    kendall(rows, target)  # imports
    tracemalloc.start()
    try:
        kendall(rows, target)
        left_out(rows[0], target, "kendall")
        left_out(rows[0], target, "weighted_kendall")
        left_out(rows[0], target, "pearson")
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 4000**2 * 8 * 0.75


@pytest.mark.parametrize("size", [20, 300])
def test_a_missing_value_gives_nan(size: int) -> None:
    rows = np.random.default_rng(1).standard_normal((2, size))
    rows[0, 3] = np.nan
    found = kendall(rows, np.arange(size) * 1.0)
    assert np.isnan(found[0])
    assert np.isfinite(found[1])


@pytest.mark.parametrize("measure", [kendall, pearson, spearman, weighted_kendall])
def test_a_missing_value_leaves_no_correlation(measure) -> None:
    """Ranks took NaN for the highest value, scipy's weighted tau for the lowest."""
    whole, hole = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, np.nan, 3.0, 4.0])
    assert np.isnan(measure(hole[None], whole)).all()
    assert np.isnan(measure(whole[None], hole)).all()
    assert np.isnan(pearson(np.array([[1.0, 2.0, 3.0, np.inf]]), whole)).all()


@pytest.mark.parametrize("size", [9, 150])
def test_infinite_values_are_ranked(size):
    rng = np.random.default_rng(0)
    row, target = rng.normal(size=(2, size))
    row[:3], row[3:5], target[4:6] = -np.inf, np.inf, np.inf
    assert kendall(row[None], target) == pytest.approx(stats.kendalltau(row, target).statistic)
