"""Intervals of differences, chances of being lowest, paired tests: against simulation and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from curvewise.stats import difference_interval, excluded_level, paired_t_test, probability_lowest


def test_difference_of_normals_is_exact():
    low, high = difference_interval(5.0, (5 - 1.96 * 3, 5 + 1.96 * 3), 2.0, (2 - 1.96 * 4, 2 + 1.96 * 4))
    assert (low, high) == pytest.approx((3 - 1.96 * 5, 3 + 1.96 * 5))


def test_excluded_level_is_the_normal_p_value():
    def interval(level):
        half = ndtri(0.5 + level / 2)
        return 1.5 - half, 1.5 + half

    assert 1 - excluded_level(interval, 0.0) == pytest.approx(2 * stats.norm.sf(1.5), abs=2e-3)
    assert excluded_level(interval, 1.5) < 1e-3


def test_probability_lowest_matches_simulation():
    rng = np.random.default_rng(0)
    p = np.linspace(0.001, 0.999, 101)
    means, sds = np.array([0.0, 0.5, 1.0]), np.array([1.0, 0.3, 2.0])
    quantiles = means[:, None] + sds[:, None] * ndtri(p)
    draws = means + sds * rng.standard_normal((200_000, 3))
    share = np.bincount(draws.argmin(axis=1), minlength=3) / len(draws)
    np.testing.assert_allclose(probability_lowest(quantiles, p), share, atol=0.01)


def test_paired_t_test_is_scipys():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=20), rng.normal(0.3, size=20)
    assert paired_t_test(a, b) == pytest.approx(stats.ttest_rel(a, b).pvalue)
    assert np.isnan(paired_t_test(a[:1], b[:1]))
    assert paired_t_test(a, a) == 1.0
    assert paired_t_test(a, a + 1) < 1e-300
