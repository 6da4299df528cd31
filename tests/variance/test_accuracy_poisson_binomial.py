"""Poisson-binomial probabilities against exact fractions, the binomial and scipy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from curvewise.variance.accuracy import GROUP, poisson_binomial_pmf


def exact(p):
    pmf = [Fraction(1)]
    for chance in map(Fraction, p):
        stay = [(1 - chance) * q for q in pmf] + [Fraction(0)]
        pmf = [a + b for a, b in zip(stay, [Fraction(0)] + [chance * q for q in pmf], strict=True)]
    return pmf


@given(st.lists(st.floats(0, 1) | st.sampled_from([0.0, 1.0, 1e-9, 1 - 1e-12]), min_size=1))
@settings(max_examples=60, deadline=None)
def test_every_probability_is_accurate_relative_to_its_size(p):
    for got, wanted in zip(poisson_binomial_pmf(p), exact(p), strict=True):
        if wanted == 0:
            assert got == 0
        elif wanted > Fraction(1, 10**300):
            assert got == pytest.approx(float(wanted), rel=1e-13)


@pytest.mark.slow
def test_tails_of_merged_groups_are_accurate():
    p = np.random.default_rng(0).integers(1, 64, 2 * GROUP + 37) / 64  # short fractions
    wanted = np.array([float(q) for q in exact(p)])
    assert wanted.min() < 1e-100
    np.testing.assert_allclose(poisson_binomial_pmf(p), wanted, rtol=1e-12)


@pytest.mark.parametrize(("n", "p"), [(1, 0.3), (GROUP, 0.5), (3000, 0.02), (3000, 0.7)])
def test_equal_probabilities_make_a_binomial(n, p):
    wanted = stats.binom.pmf(np.arange(n + 1), n, p)
    got = poisson_binomial_pmf(np.full(n, p))
    seen = wanted > 1e-290
    np.testing.assert_allclose(got[seen], wanted[seen], rtol=1e-10)
    assert got.sum() == pytest.approx(1, abs=1e-13)


def test_it_agrees_with_scipy():
    p = np.random.default_rng(1).beta(0.3, 2, 700)
    wanted = stats.poisson_binom.pmf(np.arange(701), p)
    np.testing.assert_allclose(poisson_binomial_pmf(p), wanted, rtol=1e-11, atol=1e-300)


def test_moments_of_many_trials():
    p = np.random.default_rng(2).random(10_000)
    pmf, k = poisson_binomial_pmf(p), np.arange(10_001)
    mean = pmf @ k
    assert pmf.min() >= 0
    assert pmf.sum() == pytest.approx(1, abs=1e-12)
    assert mean == pytest.approx(p.sum(), rel=1e-12)
    assert pmf @ (k - mean) ** 2 == pytest.approx(np.sum(p * (1 - p)), rel=1e-9)


def test_certain_trials_only_shift():
    np.testing.assert_array_equal(poisson_binomial_pmf([0, 1, 1, 0]), [0, 0, 1, 0, 0])
    with np.errstate(all="raise"):
        inner = poisson_binomial_pmf(np.full(150, 1e-5))
        padded = poisson_binomial_pmf(np.r_[1.0, np.full(150, 1e-5), 0.0])
    np.testing.assert_array_equal(padded, np.r_[0, inner, 0])


def test_order_hardly_matters():
    p = np.random.default_rng(3).random(333)
    np.testing.assert_allclose(poisson_binomial_pmf(p), poisson_binomial_pmf(p[::-1]), rtol=1e-12)
