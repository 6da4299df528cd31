"""Ratios of variances and shares of sources: scipy, known truth by simulation, bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import f as f_distribution

from curvewise.errors import CurvewiseWarning, InputError, quietly
from curvewise.types import Predictions
from curvewise.variance.anova import VarianceSplit, variance_degrees
from curvewise.variance.decompose import decompose_variance
from curvewise.variance.sources import measure_sources
from curvewise.variance.variances import compare_variances, variance_ratio


def split(test_set, noise=1e-6, runs=20, units=1000.0):
    return VarianceSplit(test_set, noise, noise, test_set - noise, 0.0, 0.0, math.nan, runs, units)


def errors_of(runs, n, std, seed=0, rate=0.15):
    """Errors of runs whose true error has this standard deviation."""
    rng = np.random.default_rng(seed)
    hard = np.clip(rng.normal(rate, 0.05, n), 0.0, 1.0)
    return rng.random((runs, n)) < np.clip(hard + rng.normal(0, std, (runs, 1)), 0, 1)


def test_normal_ratio_is_the_f_interval():
    a, b = split(4e-6, runs=12), split(1e-6, runs=30)
    ratio = variance_ratio(a, b)
    low, high = (4 / q for q in f_distribution.ppf([0.975, 0.025], 11, 29))
    assert ratio.test_set.estimate == pytest.approx(2.0)
    assert (ratio.test_set.low**2, ratio.test_set.high**2) == pytest.approx((low, high))
    expected = 2 * min(f_distribution.sf(4, 11, 29), f_distribution.cdf(4, 11, 29))
    assert ratio.test_set_pvalue == pytest.approx(expected)


def test_degrees_of_freedom_follow_the_variance_of_a_variance():
    """Var(s²) = σ⁴ (κ − (n − 3)/(n − 1))/n = 2σ⁴/df, checked with Laplace values (κ = 6)."""
    rng = np.random.default_rng(0)
    values = rng.laplace(size=(200_000, 15)).var(axis=1, ddof=1)
    df = 2 * values.mean() ** 2 / values.var()
    assert df == pytest.approx(variance_degrees(15, 3.0), rel=0.05)


def test_without_variance():
    none = split(0.0, noise=0.0)
    some = split(1e-6, noise=0.0)
    assert variance_ratio(some, none).test_set.estimate == math.inf
    assert variance_ratio(none, some).test_set_pvalue == 1.0  # as the interval, [0, ∞], leaves everything open
    both = variance_ratio(none, none)
    assert math.isnan(both.test_set.estimate)
    assert both.test_set_pvalue == 1.0
    assert tuple(both.distribution)[1:] == (0.0, math.inf)


def simulated(rng, runs, std, noise, draw):
    """Run errors and their split, as two-way data of 2,000 examples would give them."""
    values = std * draw(rng, runs) + noise * rng.standard_normal(runs)
    rest = (runs - 1) * 1999
    residual = noise**2 * rng.chisquare(rest) / rest
    total = float(values.var(ddof=1))
    return values, VarianceSplit(total, 0.0, residual, total - residual, 0.0, 0.0, math.nan, runs, 2000.0)


DRAWS = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "laplace": lambda rng, n: rng.laplace(size=n) / math.sqrt(2),
    "exponential": lambda rng, n: rng.exponential(size=n) - 1,
}


@pytest.mark.slow
@pytest.mark.parametrize("runs", [10, 30])
@pytest.mark.parametrize("tails", DRAWS)
def test_coverage_of_both_ratios(runs, tails):
    rng = np.random.default_rng(runs)
    test_set = distribution = 0
    truth = math.sqrt((4 + 1) / (1 + 1)), 2.0
    for _ in range(300):
        one, a = simulated(rng, runs, 2.0, 1.0, DRAWS[tails])
        two, b = simulated(rng, runs, 1.0, 1.0, DRAWS[tails])
        ratio = variance_ratio(a, b, (one, two), draws=1000, rng=rng)
        test_set += truth[0] in ratio.test_set
        distribution += truth[1] in ratio.distribution
    assert test_set >= 270  # 285 expected
    assert distribution >= 267


def test_compare_variances_sees_what_is_there():
    quiet, loud = errors_of(80, 800, 0.0, 1), errors_of(80, 800, 0.03, 2)
    found = compare_variances(loud, quiet, names=("loud", "quiet"))
    assert found.verdict == found.test_set_verdict == "loud varies more"
    assert found.distribution_ratio.low > 1
    assert "loud varies more" in found.summary()
    swapped = compare_variances(quiet, loud, names=("quiet", "loud"))
    assert swapped.verdict == "loud varies more"
    ratio = found.test_set_ratio
    assert tuple(swapped.test_set_ratio)[1:] == pytest.approx((1 / ratio.high, 1 / ratio.low), rel=1e-6)


def test_deviations_are_those_of_the_decompositions():
    rng = np.random.default_rng(21)
    quiet = rng.random((12, 400)) < 0.1
    loud = rng.random((12, 400)) < rng.normal(0.1, 0.03, (12, 1))
    parts = [decompose_variance(e, kind="errors", interval="F") for e in (loud, quiet)]
    assert parts[1].distribution_variance < 0
    c = compare_variances(loud, quiet, kind="errors")
    for found, v in zip(c.distribution_std, parts, strict=True):
        assert tuple(found) == pytest.approx(tuple(v.distribution_interval))
    assert [i.estimate for i in c.test_set_std] == pytest.approx([v.test_set_std for v in parts])


def test_compare_variances_takes_decompositions_and_any_order():
    a, b = errors_of(40, 500, 0.02, 1), errors_of(30, 500, 0.01, 2)
    plain = compare_variances(a, b)
    again = compare_variances(decompose_variance(a), decompose_variance(b))
    assert plain.to_dict() == again.to_dict()
    rng = np.random.default_rng(0)
    mixed = compare_variances(rng.permutation(a), rng.permutation(b, axis=1))
    assert mixed.test_set_ratio.low == pytest.approx(plain.test_set_ratio.low)
    assert mixed.distribution_ratio.high == pytest.approx(plain.distribution_ratio.high)


def test_compare_variances_on_two_test_sets_warns():
    a = Predictions(errors_of(40, 500, 0.02, 1), "errors")
    b = Predictions(errors_of(40, 900, 0.02, 3), "errors")
    with pytest.warns(CurvewiseWarning, match="not of one test set"):
        compare_variances(a, b)
    with pytest.raises(InputError, match="one kind"):
        compare_variances(a, np.random.default_rng(0).random((9, 500)))


def test_one_source_suffices_or_not():
    runs = {"all": errors_of(400, 800, 0.02, 1)}
    runs |= {"init": errors_of(400, 800, 0.02, 2), "order": errors_of(400, 800, 0.0, 3)}
    shares = measure_sources(runs, margin=0.15)
    assert shares.sources == ("init", "order")
    assert shares.verdicts == ("suffices", "less")
    assert shares.one_suffices is False
    assert 1.0 in shares.test_set_share[0]
    assert shares.test_set_share[1].high < 1
    assert "alone it suffices" in shares.summary()
    only = measure_sources({k: runs[k] for k in ("all", "init")}, margin=0.15)
    assert only.one_suffices is True
    few = measure_sources({k: runs[k][:20] for k in ("all", "init")})
    assert few.verdicts == ("unclear",)
    assert few.one_suffices is None
    assert "do not show whether one source suffices" in few.summary()
    assert len(few.columns()["varied"]) == 2


def test_a_source_suffices_within_the_margin_only():
    rng = np.random.default_rng(0)
    hard = rng.random(500) ** 3
    given = {k: rng.random((300, 500)) < hard for k in ("all", "init")}
    lenient, strict = (measure_sources(given, margin=m, kind="errors") for m in (0.2, 0.01))
    assert 0.8 < lenient.test_set_share[0].low < 0.99
    assert (lenient.verdicts, strict.verdicts) == (("suffices",), ("unclear",))


def test_sources_are_ratios_of_variances():
    runs = {"all": errors_of(40, 500, 0.02, 1), "init": errors_of(50, 500, 0.01, 2)}
    shares = measure_sources(runs, rng=3)
    both = compare_variances(runs["init"], runs["all"], rng=3)
    assert shares.test_set_share[0] == both.test_set_ratio
    assert shares.distribution_share[0] == both.distribution_ratio
    assert shares.pvalues[0] == pytest.approx(both.test_set_pvalue)


def test_options_of_arrays_are_passed_on():
    groups = np.repeat(np.arange(50), 10)
    runs = {"all": errors_of(40, 500, 0.02, 1), "init": errors_of(50, 500, 0.01, 2)}
    given = measure_sources(runs, groups=groups)
    plain = measure_sources(runs)
    assert given.distribution_share != plain.distribution_share
    assert given.test_set_share[0].estimate == plain.test_set_share[0].estimate
    carried = {k: Predictions(x, "errors", groups=groups) for k, x in runs.items()}
    assert measure_sources(carried).to_dict() == given.to_dict()
    mixed = {"all": Predictions(runs["all"], "errors"), "init": runs["init"]}
    assert measure_sources(mixed, kind="errors", groups=groups).to_dict() == given.to_dict()
    turned = {k: x.T.astype(float) for k, x in runs.items()}
    losses = measure_sources(turned, kind="losses", axes=("examples", "runs"))
    assert losses.unit == "loss"
    assert losses.runs == (50,)
    assert losses.test_set_share[0].estimate == pytest.approx(plain.test_set_share[0].estimate)


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ({"all": 1}, {}, "must map names"),
        ({"a": 1, "b": 2}, {}, "baseline='all'"),
        ({"all": 1, "b": 2}, {"margin": 2.0}, "margin=2.0"),
    ],
)
def test_bad_sources(given, options, message):
    with pytest.raises(InputError, match=message):
        measure_sources(given, **options)


def test_sources_must_share_the_test_set():
    with pytest.raises(InputError, match="one test set"):
        measure_sources({"all": errors_of(9, 50, 0.0), "init": errors_of(9, 60, 0.0)})


def test_few_runs_warn():
    with pytest.warns(CurvewiseWarning, match="3 runs"):
        compare_variances(errors_of(3, 500, 0.0), errors_of(30, 500, 0.0))


def test_runs_that_do_not_differ_get_no_verdict():
    runs = np.random.default_rng(0).random((30, 300)) < 0.2
    with quietly():
        found = measure_sources({"all": runs, "init": np.repeat(runs[:1], 5, axis=0)})
    assert found.test_set_share[0].high == np.inf
    assert (found.verdicts, found.pvalues) == (("unclear",), (1.0,))
    assert found.one_suffices is None


def test_names_of_sources_may_be_numbers():
    both = {0: np.random.default_rng(0).random((9, 60)) < 0.3, 1: np.random.default_rng(1).random((9, 60)) < 0.3}
    assert measure_sources(both, kind="errors", baseline=0).sources == ("1",)


def test_groups_of_one_source_count_for_all():
    groups = np.repeat(np.arange(100), 4)
    rng = np.random.default_rng(1)
    one, two = ((rng.random((30, 100)) < 0.2)[:, groups] for _ in range(2))
    both = [Predictions(runs, "errors", groups=groups) for runs in (one, two)]
    plain = Predictions(two, "errors")
    with quietly():
        found = measure_sources({"all": both[0], "init": both[1]})
        for given in ({"all": both[0], "init": plain}, {"init": plain, "all": both[0]}):
            assert measure_sources(given).to_dict() == found.to_dict()
        assert found.distribution_std[0].low == 0.0  # without groups four equal examples look like a real difference
        assert compare_variances(both[0], plain).to_dict() == compare_variances(*both).to_dict()


def test_sources_on_other_examples_are_refused():
    one, two = errors_of(8, 200, 0.0), errors_of(8, 200, 0.0, seed=1)
    ids = np.arange(200)
    first = Predictions(one, "errors", example_ids=ids)
    order = np.random.default_rng(0).permutation(200)
    shuffled = Predictions(two[:, order], "errors", example_ids=order)
    found = measure_sources({"all": first, "init": shuffled})
    assert found.test_set_std == measure_sources({"all": one, "init": two}, kind="errors").test_set_std
    other = Predictions(two, "errors", example_ids=ids + 1)
    truth = Predictions(one.astype(int), "labels", labels=np.zeros(200, dtype=int))
    flipped = Predictions(two.astype(int), "labels", labels=np.ones(200, dtype=int))
    for given in ({"all": first, "init": other}, {"all": truth, "init": flipped}):
        with pytest.raises(InputError, match="not of one test set: init has other example_ids or labels"):
            measure_sources(given)
    with pytest.warns(CurvewiseWarning, match="the examples of a and b are not the same: .* only those on new data"):
        compare_variances(first, other)


@pytest.mark.parametrize("unit", ["tie", "copies", "losses"])
def test_runs_that_tie_are_no_sample_of_a_variance(unit):
    """Two runs with the same number of errors were shown to vary less on new data, at p < 0.001."""
    rng = np.random.default_rng(1)
    wild = errors_of(20, 200, 0.1)
    one = wild[0].astype(float)
    tied, kind = np.array([one, one if unit == "copies" else one[::-1]]), "errors"
    if unit == "losses":
        tied, wild, kind = np.array([one, one]), wild + rng.normal(0, 0.1, wild.shape), "losses"
    with quietly():
        c = compare_variances(tied, wild, kind=kind)
        s = measure_sources({"all": wild, "init": tied}, kind=kind)
        decomposed = decompose_variance(tied, kind=kind)
    assert (c.distribution_pvalue, c.verdict) == (1.0, "no difference shown")
    assert tuple(c.distribution_ratio) == (0.0, 0.0, math.inf)
    assert s.distribution_share[0].high == math.inf
    assert c.test_set_std[0] == decomposed.test_set_interval
    if unit == "tie":  # the same on this test set, which leaves much open on new data
        assert c.distribution_std[0] == decomposed.distribution_interval
        assert c.distribution_std[0].high > c.test_set_std[0].high / 2 > 0.02


def test_the_kurtosis_is_pooled_at_the_ratio_nearest_to_1():
    rng = np.random.default_rng(3)
    x, y = 10 * rng.laplace(size=20), rng.laplace(size=20)
    ratio = variance_ratio(*(split(v.var(ddof=1), noise=0.0) for v in (x, y)), (x, y))
    assert ratio.test_set.low > 1
    trimmed = [np.sort(v)[2:-2].mean() for v in (x, y)]  # ⌊n/(2√(n − 4))⌋ values less at each end (Bonett)
    scales = ratio.test_set.low, 1.0
    fourth = sum((((v - t) / s) ** 4).sum() for v, t, s in zip((x, y), trimmed, scales, strict=True))
    square = sum((((v - v.mean()) / s) ** 2).sum() for v, s in zip((x, y), scales, strict=True))
    assert ratio.excess_kurtosis == pytest.approx(40 * fourth / square**2 - 3)
