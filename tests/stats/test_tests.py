"""Tests that several lenses share, against statsmodels and scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from curvewise.errors import InputError
from curvewise.stats import benjamini_hochberg, holm, permutation_pvalue, probability_below, sign_flip_pvalue


@pytest.mark.parametrize(("ours", "theirs"), [(holm, "holm"), (benjamini_hochberg, "fdr_bh")])
def test_adjustments(ours, theirs):
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    rng = np.random.default_rng(0)
    for size in (1, 2, 17):
        p = rng.random(size) ** 3
        assert ours(p) == pytest.approx(multitest.multipletests(p, method=theirs)[1])
    few = np.sort(rng.random(5)) * 1e-4
    rest = np.concatenate([few, np.ones(95)])
    assert ours(few, tests=100) == pytest.approx(ours(rest)[:5])


def test_permutations_are_exact_under_the_null():
    rng = np.random.default_rng(1)
    p = [permutation_pvalue(rng.normal(size=5), rng.normal(size=4)) for _ in range(400)]
    assert np.mean(np.array(p) <= 0.05) == pytest.approx(0.05, abs=0.025)
    drawn = [permutation_pvalue(rng.normal(size=12), rng.normal(size=12), draws=199, rng=i) for i in range(300)]
    assert np.mean(np.array(drawn) <= 0.05) == pytest.approx(0.05, abs=0.03)


def test_constant_values_are_no_evidence():
    same = np.ones(4)
    assert permutation_pvalue(same, same) == 1
    assert sign_flip_pvalue(np.zeros(5)) == 1
    assert permutation_pvalue(same, 2 * same) == pytest.approx(2 / 70)
    assert sign_flip_pvalue(same) == pytest.approx(2 / 16)


def test_drawn_sign_flips_agree_with_all():
    gaps = np.random.default_rng(2).normal(0.6, 1, 14)
    exact = sign_flip_pvalue(gaps)
    assert sign_flip_pvalue(np.append(gaps, 0.0), draws=20_000) == pytest.approx(exact, abs=0.02)


def test_probability_below_is_the_area_under_the_roc_curve():
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 9, 20).astype(float), rng.integers(2, 12, 15).astype(float)
    u = stats.mannwhitneyu(b, a).statistic / (20 * 15)
    assert probability_below(a, b).estimate == pytest.approx(u)
    apart = probability_below(np.arange(5.0), np.arange(10.0, 16.0))
    assert (apart.estimate, apart.high) == (1.0, 1.0)
    assert apart.low == pytest.approx(0.025 ** (1 / 5))
    assert probability_below(np.arange(10.0, 16.0), np.arange(5.0)).low == 0


def covered(draw, truth, count=1000, **options):
    rng = np.random.default_rng(4)
    return np.mean([truth in probability_below(*draw(rng), **options) for _ in range(count)])


@pytest.mark.slow
@pytest.mark.parametrize(("few", "many"), [(2, 30), (3, 30), (5, 30), (2, 100), (10, 10)])
@pytest.mark.parametrize("gap", [0.0, 0.8])
def test_probability_below_is_covered(few, many, gap):
    """Normal values of known difference; z intervals covered 80% with two of them."""

    def draw(rng):
        return rng.standard_normal(few), gap + rng.standard_normal(many)

    truth = stats.norm.cdf(gap / np.sqrt(2))
    assert covered(draw, truth) >= 0.925
    assert covered(lambda rng: draw(rng)[::-1], 1 - truth) >= 0.925


@pytest.mark.parametrize("sizes", [(2, 30), (10, 10)])
def test_probability_below_is_covered_with_ties(sizes):
    def draw(rng):
        a, b = (rng.choice(3, n, p=p) for n, p in zip(sizes, (rising, rising[::-1]), strict=True))
        return a.astype(float), b.astype(float)

    rising = np.array([0.5, 0.4, 0.1])
    truth = 0.5 * 0.9 + 0.4 * 0.5 + (0.5 * 0.1 + 0.4 * 0.4 + 0.1 * 0.5) / 2
    assert covered(draw, truth) >= 0.93


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.8, -0.8])
@pytest.mark.parametrize("gap", [0.0, 0.8])
def test_probability_below_of_pairs(rho, gap):
    def draw(rng):
        z = rng.standard_normal((2, 30))
        return z[0], gap + rho * z[0] + np.sqrt(1 - rho**2) * z[1]

    truth = stats.norm.cdf(gap / np.sqrt(2))
    assert 0.93 <= covered(draw, truth, paired=True) <= 0.99
    apart = covered(draw, truth)
    assert apart > 0.99 if rho > 0 else apart < 0.92
    a, b = draw(np.random.default_rng(0))
    assert probability_below(a, b, paired=True).estimate == probability_below(a, b).estimate
    with pytest.raises(InputError, match="paired=True: a has 29"):
        probability_below(a[1:], b, paired=True)


def test_probability_below_without_variance_is_not_known():
    same = np.ones(5)
    assert tuple(probability_below(same, same))[1:] == (0, 1)
    assert tuple(probability_below(same, same, paired=True))[1:] == (0, 1)
    assert tuple(probability_below(np.ones(2), np.array([0.0, 2.0])))[1:] != (0.5, 0.5)
    spread = np.arange(6.0)
    alike = probability_below(spread, spread, paired=True)
    assert 0 < alike.low < 0.5 < alike.high < 1
    assert tuple(probability_below(np.ones(1), np.array([0.0, 2.0])))[1:] == (0, 1)


def test_a_missing_value_leaves_no_p_value() -> None:
    """No shuffled statistic is as large as NaN, so that p was 0."""
    hole, whole = np.array([1.0, np.nan, 3.0]), np.array([1.0, 2.0, 3.0])
    assert math.isnan(permutation_pvalue(hole, whole))
    assert math.isnan(sign_flip_pvalue(hole))
    np.testing.assert_allclose(benjamini_hochberg([math.nan, 0.01, 0.02]), [math.nan, 0.03, 0.03])
