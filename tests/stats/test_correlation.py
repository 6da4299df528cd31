"""Correlations, against scipy and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from curvewise.stats.correlation import (
    average_ranks,
    kendall,
    pearson,
    spearman,
    weighted_kendall,
)


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
