"""Sweeps: equal to one decomposition per value, with Holm over them."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.stats import holm
from curvewise.types import Predictions
from curvewise.variance.decompose import decompose_variance
from curvewise.variance.variances import compare_variances, measure_sweep


def errors_of(std, rate, seed, runs=60, n=900):
    rng = np.random.default_rng(seed)
    hard = np.clip(rng.normal(rate, 0.05, n), 0.0, 1.0)
    return rng.random((runs, n)) < np.clip(hard + rng.normal(0, std, (runs, 1)), 0, 1)


@pytest.fixture(scope="module")
def runs():
    settings = {0.25: (0.0, 0.25), 0.5: (0.0, 0.2), 1.0: (0.02, 0.22), 2.0: (0.04, 0.3)}
    return {lr: errors_of(*s, seed) for seed, (lr, s) in enumerate(settings.items())}


def test_finds_the_best_and_the_largest_without_excess(runs):
    found = measure_sweep(runs, kind="errors")
    assert found.values == (0.25, 0.5, 1.0, 2.0)
    assert found.best == found.largest_without_excess == 0.5
    assert found.has_excess == (False, False, True, True)
    assert found.tied == ()
    text = found.summary()
    assert "Not shown is not absent" in text
    assert "also the value of lowest error" in text


def test_is_one_decomposition_per_value(runs):
    found = measure_sweep(runs, kind="errors")
    parts = {lr: decompose_variance(x) for lr, x in runs.items()}
    for i, part in enumerate(parts.values()):
        assert found.distribution_std[i] == part.distribution_interval
        assert found.error[i] == part.error
        assert found.excess_std[i] == part.test_set_std - part.independent_std
        ratio = part.test_set_std**2 / part.distribution_variance
        expected = ratio if part.distribution_variance > 0 else math.inf
        assert found.variance_ratio[i].estimate == pytest.approx(expected)
        assert found.variance_ratio[i].low <= expected <= found.variance_ratio[i].high
    assert found.adjusted_pvalues == tuple(holm(found.pvalues).tolist())
    assert measure_sweep(parts, kind="errors").to_dict() == found.to_dict()
    assert found[1.0].runs == 60
    with pytest.raises(KeyError):
        found[3.0]


def test_values_that_are_as_good(runs):
    found = measure_sweep({0.4: runs[0.5][:30], 0.5: runs[0.5][30:], 2.0: runs[2.0]}, kind="errors")
    assert set(found.tied) | {found.best} == {0.4, 0.5}
    assert "Not shown to differ from it" in found.summary()


def test_groups_of_any_value_count_for_all():
    """20 groups of 30 equal examples whose difference varies by group: few would be told apart."""
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(20), 30)
    hard = np.repeat(rng.uniform(0.1, 0.4, 20), 30)
    other = hard + np.repeat(rng.normal(0.03, 0.1, 20), 30)
    a, b = (rng.random((40, 600)) < np.clip(p, 0, 1) for p in (hard, other))
    assert measure_sweep({1: a, 2: b}, kind="errors").tied == ()
    given = measure_sweep({1: a, 2: b}, groups=groups, kind="errors")
    assert set(given.tied) | {given.best} == {1, 2}
    grouped = {k: Predictions(x, "errors", groups=groups) for k, x in ((1, a), (2, b))}
    for one, two in ((grouped[1], b), (a, grouped[2]), (grouped[1], grouped[2])):
        assert measure_sweep({1: one, 2: two}, kind="errors").to_dict() == given.to_dict()
    known = decompose_variance(grouped[1])
    assert measure_sweep({1: known, 2: b}, kind="errors").to_dict() == given.to_dict()
    elsewhere = Predictions(b, "errors", groups=groups[::-1] // 2)
    assert measure_sweep({1: grouped[1], 2: elsewhere}, kind="errors").tied == ()
    few = measure_sweep({1: grouped[1], 2: b[:, :300]}, kind="errors")
    assert few[2]._totals.groups is None


def test_axes_are_passed_on():
    many = errors_of(0.0, 0.2, 0, runs=60, n=50)
    found = measure_sweep({1: many.T}, axes=("examples", "runs"), kind="errors")
    assert found.runs == (60,)
    assert found.error[0] == decompose_variance(many, axes=("runs", "examples")).error


def test_order_does_not_matter(runs):
    backwards = dict(reversed(runs.items()))
    assert measure_sweep(backwards, kind="errors").to_dict() == measure_sweep(runs, kind="errors").to_dict()


@pytest.mark.slow
def test_no_false_excess_over_many_values():
    """Ten values with independent errors: in about 5% of sweeps is one flagged."""
    rng = np.random.default_rng(0)
    flagged = 0
    for _ in range(60):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CurvewiseWarning)  # tails that look heavy by chance
            sweep = measure_sweep({k: rng.random((20, 300)) < 0.2 for k in range(10)}, kind="errors")
        flagged += any(sweep.has_excess)
    assert flagged <= 8


def test_everything_in_excess():
    found = measure_sweep({1.0: errors_of(0.05, 0.3, 0), 2.0: errors_of(0.05, 0.3, 1)}, kind="errors")
    assert found.largest_without_excess is None
    assert "at 1, 2" in found.summary()


def test_warnings_say_where():
    heavy = errors_of(0.0, 0.2, 0)
    heavy[:4] = True
    with pytest.warns(CurvewiseWarning, match=r"^at 1, "):
        found = measure_sweep({1: heavy[:20], 2: errors_of(0.0, 0.2, 0)}, kind="errors")
    assert found.warnings[0].startswith("at 1, ")


def test_bad_input(runs):
    with pytest.raises(InputError, match="must map values"):
        measure_sweep([1, 2], kind="errors")
    with pytest.raises(InputError, match="'low', which is not a number"):
        measure_sweep({"low": runs[0.5]}, kind="errors")
    losses = Predictions(np.random.default_rng(0).random((9, 900)), "losses")
    with pytest.raises(InputError, match="mixes losses"):
        measure_sweep({1: runs[0.5], 2: losses}, kind="errors")
    assert measure_sweep({1: Predictions(runs[0.5], "errors")}, kind="errors").values == (1,)


def test_trainings_without_variance_of_true_error_are_not_told_apart_by_it():
    # The runs of b err on equally many examples, so that its variance of true error is estimated far below 0: a verdict
    # "b varies more" had p < 0.001 beside a ratio of [0, inf].
    rng = np.random.default_rng(1)
    a = rng.random((12, 400)) < 0.3
    b = np.array([np.isin(np.arange(400), rng.choice(400, 120, replace=False)) for _ in range(12)])
    c = compare_variances(a, b, kind="errors")
    assert c.distribution_std[1].estimate == 0
    assert (c.verdict, c.distribution_pvalue) == ("no difference shown", 1.0)
    assert 1.0 in c.distribution_ratio


def test_groups_and_differences_follow_the_names_of_examples(runs):
    # Groups that one value brings along were given to the others by place, whatever the order of their examples.
    groups = np.arange(900) // 9
    order = np.random.default_rng(0).permutation(900)
    first = Predictions(runs[0.5].astype(np.uint8), "errors", groups=groups, example_ids=np.arange(900))
    second = Predictions(runs[1.0].astype(np.uint8), "errors", example_ids=np.arange(900))
    shuffled = Predictions(runs[1.0][:, order].astype(np.uint8), "errors", example_ids=order)
    usual = measure_sweep({0.5: first, 1.0: second})
    found = measure_sweep({0.5: first, 1.0: shuffled})
    assert list(found.error[1]) == pytest.approx(list(usual.error[1]), rel=1e-12)
    assert found.independent_std == pytest.approx(usual.independent_std, rel=1e-12)


def test_values_on_other_examples_are_not_compared(runs):
    def named(value, start):
        return Predictions(runs[value].astype(np.uint8), "errors", example_ids=np.arange(start, start + 900))

    close = {0.5: runs[0.5], 0.6: errors_of(0.0, 0.2, 9)}
    runs = runs | close
    assert measure_sweep({0.5: named(0.5, 0), 0.6: named(0.6, 0)}).tied != ()
    assert measure_sweep({0.5: named(0.5, 0), 0.6: named(0.6, 900)}).tied == ()


def test_values_with_other_labels_are_not_compared():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 20, 100))
    assert measure_sweep({1: a, 2: b}, np.zeros(100, dtype=int)).tied != ()
    given = {k: Predictions(x, "labels", labels=np.full(100, k)) for k, x in ((0, a), (1, b))}
    assert measure_sweep(given).tied == ()


def test_decompositions_have_the_level_of_the_sweep(runs):
    parts = {value: decompose_variance(errors, kind="errors", level=0.8) for value, errors in runs.items()}
    assert measure_sweep(parts, level=0.8).to_dict() == measure_sweep(runs, kind="errors", level=0.8).to_dict()
    with pytest.raises(InputError, match=r"holds a decomposition with intervals of 0.8. .* or pass level=0.8"):
        measure_sweep(parts)


def test_values_of_a_hyperparameter_have_no_zeros_at_the_end(runs):
    found = measure_sweep({1.6: runs[1.0], 1200.0: runs[2.0]}, kind="errors")
    assert "2 values of the hyperparameter, 1.6 has" in found.summary()
    assert "1.600" not in found.summary()
