"""Intervals of rates and of paired differences, against other libraries, enumeration and their own tests."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats
from scipy.special import gammaln

from curvewise.stats import bounded_interval, mcnemar_pvalue, paired_interval, wilson_interval
from curvewise.stats.intervals import paired_statistic, widened_variance


def test_five_of_five():
    low, high = wilson_interval(1.0, 5)
    assert (round(float(low), 3), float(high)) == (0.566, 1.0)
    assert [float(x) for x in wilson_interval(0.0, 5)] == pytest.approx([0.0, 1 - float(low)])


@given(st.integers(1, 200), st.data(), st.sampled_from([0.8, 0.95, 0.99]))
def test_wilson_is_scipys(n, data, level):
    k = data.draw(st.integers(0, n))
    theirs = stats.binomtest(k, n).proportion_ci(level, method="wilson")
    low, high = wilson_interval(k / n, n, level)
    assert (float(low), float(high)) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


@given(st.integers(2, 300), st.data())
def test_single_answers_have_wilsons_interval_as_a_bound(n, data):
    """With the variance of single answers and the normal quantile the bounded interval is Wilson's."""
    k = data.draw(st.integers(0, n))
    p = k / n
    variance = p * (1 - p) / (n - 1)
    for quantile in (stats.norm.ppf(0.975), stats.t.ppf(0.975, n - 1)):  # the larger one is capped
        found = bounded_interval(p, variance, quantile, n, n)
        assert [float(x) for x in found] == pytest.approx([float(x) for x in wilson_interval(p, n)], abs=1e-9)


def test_less_variance_is_narrower_and_unknown_variance_is_the_bound():
    narrow, wide = (bounded_interval(0.9, v, 2.0, 100, 100) for v in (0.0002, 0.0008))
    assert wide[0] < narrow[0] < 0.9 < narrow[1] < wide[1]
    unknown = bounded_interval(0.9, np.nan, np.nan, 100, 1)
    assert [float(x) for x in unknown] == pytest.approx([float(x) for x in wilson_interval(0.9, 1)])
    # All right in ten clusters: no more is known than from ten answers.
    assert [float(x) for x in bounded_interval(1.0, 0.0, 2.3, 100, 10)] == pytest.approx(
        [float(x) for x in wilson_interval(1.0, 10)]
    )


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_binomial_test(b, c):
    theirs = stats.binomtest(b, b + c).pvalue if b + c else 1.0
    assert float(mcnemar_pvalue(b, c)) == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize("n", [1, 5, 12, 40])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.999999])
def test_the_interval_never_contradicts_the_exact_test(n, level):
    b, c = _tables(n)
    low, high = paired_interval(b, c, n, level)
    excluded = (low > 0) | (high < 0)
    assert (excluded == (mcnemar_pvalue(b, c) < 1 - level)).all()
    gap = (b - c) / n
    assert ((low <= gap + 1e-12) & (gap <= high + 1e-12)).all()
    assert (high > low).all()
    assert (low >= -1).all()
    assert (high <= 1).all()


def _tables(n):
    b, c = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    return b[b + c <= n], c[b + c <= n]


def test_the_ends_solve_tangos_equation_by_another_solver():
    """The restricted likelihood is maximised numerically, and the score set equal to the quantile."""
    b, c, n = 9.0, 2.0, 44
    z = stats.norm.ppf(0.975)

    def statistic(d):
        # The rate of questions that only b solves, of which the likelihood is largest at the difference d.
        def surprise(q):
            return -(b * np.log(q + d) + c * np.log(q) + (n - b - c) * np.log(1 - 2 * q - d))

        edge = 1e-9
        q = optimize.minimize_scalar(surprise, bounds=(max(0, -d) + edge, (1 - d) / 2 - edge), method="bounded").x
        return (b - c - n * d) / np.sqrt(n * (2 * q + d - d * d))

    gap = (b - c) / n
    ends = [
        optimize.brentq(lambda d: statistic(d) - z, -0.5, gap),
        optimize.brentq(lambda d: statistic(d) + z, gap, 0.8),
    ]
    low, high = paired_interval(b, c, n)
    assert (min(0.0, ends[0]), ends[1]) == pytest.approx((float(low), float(high)), abs=1e-4)
    # McNemar's statistic without a continuity correction, at no difference.
    assert float(paired_statistic(np.array(b), np.array(c), n, 0.0)) == pytest.approx(7 / np.sqrt(11))


def test_coverage_of_the_paired_interval_by_enumeration():
    n = 40
    b, c = _tables(n)
    low, high = paired_interval(b, c, n)
    ways = gammaln(n + 1) - gammaln(b + 1) - gammaln(c + 1) - gammaln(n - b - c + 1)
    found = []
    for apart in (0.1, 0.2, 0.4):
        for share in (0.5, 0.6, 0.75, 0.9):
            p, q = apart * share, apart * (1 - share)
            chance = np.exp(ways + b * np.log(p) + c * np.log(q) + (n - b - c) * np.log(1 - apart))
            found.append(chance[(low <= p - q) & (p - q <= high)].sum())
    assert min(found) > 0.93  # a discrete score cannot keep it at each rate
    assert np.mean(found) > 0.95


def test_a_variance_from_few_differences_is_not_trusted():
    few = 2 / 102**2
    assert float(widened_variance(0.0, 0.0, 100)) == pytest.approx(few)
    assert few > float(widened_variance(0.0001, 3.0, 100)) > 0.0001
    assert float(widened_variance(0.01, 3.0, 100)) == 0.01  # larger already
