"""Comparing trainings: against scipy, statsmodels, brute force and simulated truth."""

from __future__ import annotations

import csv
import re
import warnings
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import curvewise as cw
from curvewise.errors import CurvewiseWarning, InputError, quietly
from curvewise.types import Interval, Predictions, as_predictions
from curvewise.variance import check_stopping, compare_runs, compare_trainings, decompose_variance, plan_stopping
from curvewise.variance.difference import measure_difference, score_difference

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
quiet = pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")


def two(rng, runs=(10, 12), n=600, shift=0.3, spread=0.2, wobble=0.5, shared=False):
    """Errors of two trainings on the same examples, with run effects and unlike weak points."""
    logit = -2.5 + 2 * rng.standard_normal(n)
    effects = [spread * rng.standard_normal((r, 1)) for r in runs]
    if shared:
        effects[1] = effects[0]
    a = rng.random((runs[0], n)) < 1 / (1 + np.exp(-(logit + effects[0])))
    change = shift + wobble * rng.standard_normal(n)
    b = rng.random((runs[1], n)) < 1 / (1 + np.exp(-(logit + change + effects[1])))
    return a, b


def test_on_the_test_set_it_is_welch_and_a_permutation_test():
    a, b = two(np.random.default_rng(0))
    c = compare_runs(a, b, kind="errors")
    welch = stats.ttest_ind(a.mean(axis=1), b.mean(axis=1), equal_var=False)
    interval = welch.confidence_interval(0.95)
    assert tuple(c.test_set_difference)[1:] == pytest.approx(tuple(interval), rel=1e-9)
    assert c._parts.test_set.pvalue == pytest.approx(welch.pvalue, rel=1e-6)

    def t(x, y, axis):
        v = x.var(axis=axis, ddof=1) / x.shape[axis] + y.var(axis=axis, ddof=1) / y.shape[axis]
        return np.abs(x.mean(axis=axis) - y.mean(axis=axis)) / np.sqrt(v)

    oracle = stats.permutation_test(
        (a.mean(axis=1), b.mean(axis=1)),
        t,
        vectorized=True,
        n_resamples=9999,
        alternative="greater",
        rng=np.random.default_rng(1),
    )
    assert c.test_set_pvalue == pytest.approx(oracle.pvalue, abs=0.02)


def test_paired_on_the_test_set_is_the_paired_t():
    a, b = two(np.random.default_rng(1), runs=(9, 9), shared=True)
    c = compare_runs(a, b, paired=True, kind="errors")
    oracle = stats.ttest_rel(a.mean(axis=1), b.mean(axis=1))
    assert tuple(c.test_set_difference)[1:] == pytest.approx(tuple(oracle.confidence_interval(0.95)))
    flips = stats.permutation_test(
        (a.mean(axis=1) - b.mean(axis=1),),
        lambda x, axis: np.abs(x.mean(axis=axis)) / x.std(axis=axis, ddof=1),
        permutation_type="samples",
        vectorized=True,
        alternative="greater",
    )
    assert c.test_set_pvalue == pytest.approx(flips.pvalue, abs=1e-9)


def test_exact_permutations_match_scipy():
    a, b = two(np.random.default_rng(2), runs=(6, 6))
    c = compare_runs(a, b, kind="errors")

    def t(x, y, axis):
        v = x.var(axis=axis, ddof=1) / x.shape[axis] + y.var(axis=axis, ddof=1) / y.shape[axis]
        return np.abs(x.mean(axis=axis) - y.mean(axis=axis)) / np.sqrt(v)

    oracle = stats.permutation_test(
        (a.mean(axis=1), b.mean(axis=1)), t, vectorized=True, n_resamples=np.inf, alternative="greater"
    )
    assert c.test_set_pvalue == pytest.approx(oracle.pvalue, abs=1e-9)


def test_both_sampled_covers_the_true_difference_where_welch_does_not():
    """A small version of benchmarks/coverage.py: trainings that differ in their weak points."""
    rng = np.random.default_rng(3)
    hits = {"both": 0, "runs only": 0}
    reps = 400
    for _ in range(reps):
        a, b = two(rng, runs=(30, 30), n=300, shift=0.0, spread=0.05, wobble=2.0)
        # the truth, by a sample too large to matter
        d = measure_difference(Predictions(a, "errors"), Predictions(b, "errors"), False)
        hits["both"] += d.distribution.interval(0.95).low <= TRUTH <= d.distribution.interval(0.95).high
        hits["runs only"] += d.test_set.interval(0.95).low <= TRUTH <= d.test_set.interval(0.95).high
    assert 0.92 <= hits["both"] / reps <= 0.985
    assert hits["runs only"] / reps < 0.7


def _truth():
    z, w = np.polynomial.hermite_e.hermegauss(61)
    w = w / w.sum()

    def mean(scale):
        return float((w / (1 + np.exp(-(-2.5 + scale * z)))).sum())

    return mean(np.sqrt(4 + 0.05**2)) - mean(np.sqrt(4 + 4 + 0.05**2))


TRUTH = _truth()


def test_pairing_helps_where_seeds_are_shared():
    a, b = two(np.random.default_rng(4), runs=(15, 15), spread=0.6, shared=True)
    assert (
        compare_runs(a, b, paired=True, kind="errors").difference.width
        < compare_runs(a, b, kind="errors").difference.width
    )


def test_names_pair_only_when_asked_and_reorder():
    a, b = two(np.random.default_rng(5), runs=(6, 6), shared=True)
    ids = np.array([f"seed{i}" for i in range(6)])
    order = np.array([3, 1, 0, 5, 4, 2])
    one = Predictions(a, "errors", run_ids=ids)
    shuffled = Predictions(b[order], "errors", run_ids=ids[order])
    # Seeds 0 to 5 of two trainings have nothing in common but their names: the answer must not depend on these.
    assert tuple(compare_runs(one, shuffled).difference) == tuple(compare_runs(a, b[order], kind="errors").difference)
    assert compare_trainings({"a": one, "b": shuffled}).pvalues[0] == compare_runs(a, b[order], kind="errors").pvalue
    c = compare_runs(one, shuffled, paired=True)
    assert c.paired
    assert "Runs are paired by names, as asked." in c.sentences()
    assert tuple(c.difference) == pytest.approx(tuple(compare_runs(a, b, paired=True, kind="errors").difference))
    strangers = Predictions(b, "errors", run_ids=np.array([f"x{i}" for i in range(6)]))
    assert not compare_runs(one, strangers).paired
    with pytest.raises(InputError, match="same runs"):
        compare_runs(one, strangers, paired=True)


@quiet
def test_seeds_of_a_store_pair_when_asked(tmp_path):
    a, b = two(np.random.default_rng(5), runs=(4, 4), n=90, shared=True)
    order = [2, 0, 3, 1]
    for learner, runs, places in (("one", a, range(4)), ("two", b, order)):
        for i in places:
            about = {"learner": learner, "n": 100, "fold": i, "init_seed": 7}
            cw.write_run(tmp_path, about, predictions=runs[i].astype(int), labels=np.zeros(90, dtype=int))
    one, two_ = (cw.load_predictions(tmp_path, learner=name) for name in ("one", "two"))
    assert not compare_runs(one, two_).paired
    c = compare_runs(one, two_, paired=True)
    assert "Runs are paired by seeds, as asked." in c.sentences()
    assert tuple(c.difference) == pytest.approx(tuple(compare_runs(a, b, paired=True, kind="errors").difference))
    with pytest.raises(InputError, match=r"run 'fold=\d, init_seed=7' of one has no partner in two"):
        compare_runs(one, two_.subset(runs=slice(2)), paired=True)


def test_seeds_on_few_training_subsets_are_not_taken_for_independent_runs(tmp_path):
    a, b = two(np.random.default_rng(6), runs=(6, 6), n=90)
    for learner, runs in (("one", a), ("two", b)):
        for i, made in enumerate(runs):
            about = {"learner": learner, "n": 100, "fold": i % 2, "init_seed": i}
            cw.write_run(tmp_path, about, predictions=made.astype(int), labels=np.zeros(90, dtype=int))
    one, other = (cw.load_predictions(tmp_path, learner=name) for name in ("one", "two"))
    said = r"fewer training subsets than runs \(the 6 runs of one on 2 and the 6 runs of two on 2\)"
    with pytest.warns(CurvewiseWarning, match=said):
        compare_runs(one, other)
    assert any(re.search(said, text) for text in compare_trainings({"one": one, "two": other}).warnings)
    # Those of one subset differ by their seeds alone, and those with a subset each by chance alone.
    first = [cw.load_predictions(tmp_path, learner=name, where={"fold": 0}) for name in ("one", "two")]
    apart = [
        p.subset(runs=[int(np.flatnonzero([f"fold={k}" in s for s in p.seeds])[0]) for k in (0, 1)])
        for p in (one, other)
    ]
    for pair in (first, apart):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CurvewiseWarning)
            found = compare_runs(*pair)
        assert not any("training subsets" in text for text in found.warnings)


@quiet
def test_equal_counts_of_errors_are_no_copies():
    rng = np.random.default_rng(0)
    wrong = np.zeros((3, 200), dtype=int)
    wrong[np.arange(3), [0, 1, 2]] = 1  # each run errs once, on an example of its own
    others = (rng.random((4, 200)) < 0.1).astype(int)
    for given in (wrong, wrong[:2]):
        with pytest.warns(CurvewiseWarning) as seen:
            compare_runs(others[:1], given, kind="errors")
        assert not any("do not differ at all" in str(w.message) for w in seen)
        assert not any(
            "do not differ at all" in w for w in compare_trainings({"a": others, "b": given}, kind="errors").warnings
        )
    with pytest.warns(CurvewiseWarning, match="the runs of b do not differ at all"):
        compare_runs(others[:1], wrong[[0, 0]], kind="errors")
    assert (
        "the runs of b do not differ at all"
        in compare_trainings({"a": others, "b": wrong[[0, 0]]}, kind="errors").warnings[0]
    )


@quiet
def test_files_by_name(tmp_path):
    a, b = two(np.random.default_rng(5), runs=(4, 5), n=90)
    np.save(tmp_path / "wide.npy", a.astype(int))
    np.save(tmp_path / "narrow.npy", b.astype(int))
    np.save(tmp_path / "y.npy", np.zeros(90, dtype=int))
    by_hand = compare_runs(a, b, kind="errors")
    files = [str(tmp_path / name) for name in ("wide.npy", "narrow.npy", "y.npy")]
    c = compare_runs(*files)
    assert (c.a, c.b, c.pvalue) == ("wide", "narrow", by_hand.pvalue)
    assert compare_runs(tmp_path / "wide.npy", b.astype(int), files[2]).pvalue == by_hand.pvalue
    assert compare_runs(a.astype(int), b.astype(int), tmp_path / "y.npy").pvalue == by_hand.pvalue
    assert compare_runs(*files[:2], kind="errors").pvalue == by_hand.pvalue
    assert compare_trainings({"a": files[0], "b": files[1]}, files[2]).pvalues[0] == by_hand.pvalue
    assert decompose_variance(files[0], files[2]).error == decompose_variance(a, kind="errors").error
    with pytest.raises(InputError, match="there is no such file"):
        compare_runs(files[0], str(tmp_path / "none.npy"), files[2])


def test_chances_of_beating_say_what_each_assumes():
    rng = np.random.default_rng(1)
    a, b = (rng.random((5, 600)) < rate for rate in (0.02, 0.1))
    c = compare_runs(a, b, kind="errors")
    # Complete separation: without assumptions five runs each show little more than one half.
    assert c.probability_better.low == pytest.approx(0.025**0.2)
    assert c.probability_better.low < c.distribution_probability_better.low
    text = c.sentences()
    assert "on this test set, whatever the distribution of runs, and" in text
    assert "on new data if runs are normally distributed" in text
    rows = c.readable()["quantity"]
    assert "chance that a beats b, this test set (by ranks)" in rows
    assert "chance that a beats b, new data (normal runs)" in rows


@pytest.mark.slow
@quiet
@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("runs", [2, 3, 5])
def test_new_data_are_never_surer_than_this_test_set(runs, paired):
    """The part of the examples is known well: without a bound it lends its degrees of freedom to that of the runs."""
    seen = 0
    for seed in range(40):
        a, b = two(np.random.default_rng(seed), runs=(runs, runs), n=300, wobble=0.3)
        c = compare_runs(a, b, kind="errors", paired=paired, permutations=19)
        here, new = c._parts.test_set, c._parts.distribution
        if np.isnan(here.variance):  # both runs of each have the same error
            continue
        for level in (0.5, 0.95, 0.99):
            ends = here.interval(level), new.interval(level)
            assert ends[1].width >= ends[0].width * (1 - 1e-9)
        assert new.pvalue >= here.pvalue * (1 - 1e-9)
        # The bound decides in some of them, and a test at 5% agrees with its interval.
        seen += bool(np.isclose(new.pvalue, here.pvalue, rtol=1e-9))
        assert (new.pvalue < 0.05) == (0 not in new.interval(0.95))
    assert seen


@quiet
def test_a_larger_pvalue_on_this_test_set_says_that_it_is_by_permutation():
    said = {}
    for seed in range(30):
        c = compare_runs(*two(np.random.default_rng(seed), runs=(5, 5), wobble=0.1), kind="errors")
        if "smallest possible" not in c.summary() and c.test_set_pvalue >= 0.001:
            said.setdefault("by permutation of the runs)" in c.summary(), set()).add(c.test_set_pvalue > c.pvalue)
    assert said == {True: {True}, False: {False}}


@quiet
def test_a_chance_that_may_be_anything_is_not_given_as_a_number():
    rng = np.random.default_rng(3)
    c = compare_runs(*two(rng, runs=(2, 2), shift=0.0), kind="errors")
    void = {"distribution_probability_better": Interval(1.0, 0.0, 1.0)}
    here = Interval(1.0, 0.16, 1.0)
    one, both = replace(c, probability_better=here, **void), replace(c, probability_better=Interval(0.5, 0, 1), **void)
    assert "on this test set, whatever the distribution of runs; there are too few runs to say on new data." in str(one)
    assert [cell.text for cell in one.readable()["estimate"][2:]] == ["1.00", "too few runs to say"]
    said = "There are too few runs to say how often a random run of a beats one of b on this test set or on new data."
    assert said in str(both)
    assert "probability" not in both.sentences()


def test_chance_to_beat_is_the_mann_whitney_statistic():
    a, b = two(np.random.default_rng(6), runs=(8, 11), shift=0.1)
    c = compare_runs(a, b, kind="errors")
    u = stats.mannwhitneyu(a.mean(axis=1), b.mean(axis=1)).statistic / (8 * 11)
    assert c.probability_better.estimate == pytest.approx(1 - u)
    assert c.probability_better.low <= 1 - u <= c.probability_better.high


def test_chance_to_beat_covers():
    from curvewise.stats import probability_below

    rng = np.random.default_rng(7)
    truth = float(stats.norm.cdf(0.8 / np.sqrt(2)))
    hits = [truth in probability_below(rng.standard_normal(15), 0.8 + rng.standard_normal(12)) for _ in range(1000)]
    assert 0.92 <= np.mean(hits) <= 0.985


def test_equivalence_is_two_one_sided_tests():
    rng = np.random.default_rng(8)
    a, b = 0.2 + 0.01 * rng.standard_normal(12), 0.2 + 0.01 * rng.standard_normal(9)
    with pytest.warns(CurvewiseWarning, match="only this test set"):
        c = compare_runs(a, b, margin=0.02, higher_is_better=False)
    above = stats.ttest_ind(a + 0.02, b, equal_var=False, alternative="greater").pvalue
    below = stats.ttest_ind(a - 0.02, b, equal_var=False, alternative="less").pvalue
    assert c.equivalence_pvalue == pytest.approx(max(above, below), rel=1e-6)
    with pytest.warns(CurvewiseWarning):
        turned = compare_runs(b, a, margin=0.02, higher_is_better=False)
    assert turned.equivalence_pvalue == pytest.approx(c.equivalence_pvalue)
    assert c.verdict == "equivalent"
    assert (c.worse, c.better, c.maybe_worse) == (False, False, False)


def test_verdict_tells_test_set_from_distribution():
    """Many runs on few examples: clear on these examples, open on new ones."""
    rng = np.random.default_rng(9)
    a, b = two(rng, runs=(200, 200), n=60, shift=0.0, spread=0.0, wobble=1.0)
    c = compare_runs(a, b, axes=("runs", "examples"), kind="errors")
    assert c.verdict == "undecided"
    assert c.test_set_verdict != "undecided"
    better = c.test_set_verdict[0]
    assert f"The advantage of {better} is significant on this test set only." in c.summary()
    turned = compare_runs(b, a, axes=("runs", "examples"), kind="errors")
    other = {"a": "b", "b": "a"}[better]
    assert f"The advantage of {other} is significant on this test set only." in turned.summary()
    assert c.difference.width > 3 * c.test_set_difference.width


def test_gate_needs_more_than_the_margin():
    a, b = two(np.random.default_rng(10), runs=(20, 20), shift=-0.8)
    c = compare_runs(a, b, kind="errors")
    assert c.verdict == "b better"
    assert (c.worse, c.better, c.maybe_worse) == (True, False, True)
    with quietly():
        lenient = compare_runs(a, b, margin=0.5, kind="errors")
    assert lenient.verdict == "equivalent"
    assert not lenient.worse
    turned = compare_runs(b, a, kind="errors")
    assert turned.better
    assert turned.difference.low == pytest.approx(-c.difference.high)


def test_one_run_each_says_how_weak_it_is():
    a, b = two(np.random.default_rng(11), runs=(1, 1), n=2000)
    with pytest.warns(CurvewiseWarning, match="weak evidence"):
        c = compare_runs(a, b, axes=("runs", "examples"), kind="errors")
    gap = a[0].astype(int) - b[0].astype(int)
    half = stats.t.ppf(0.975, 1999) * gap.std(ddof=1) / np.sqrt(2000)
    assert c.difference.high - c.difference.estimate == pytest.approx(half, rel=1e-9)
    # On this test set each run varies by err/2n, as calibrated ones do, or by what the examples allow.
    parts = np.minimum([a.mean() / 4000, b.mean() / 4000], gap.var(ddof=1) / 2000)
    degrees = 1999 * parts.sum() ** 2 / (parts**2).sum()
    half = stats.t.ppf(0.975, degrees) * np.sqrt(parts.sum())
    assert c.test_set_difference.high - c.test_set_difference.estimate == pytest.approx(half, rel=1e-9)
    assert c.method == "one run"
    assert c.verdict == "undecided"
    assert not c.worse
    assert c.maybe_worse
    assert "one run does not show" in c.summary().lower()
    with pytest.warns(CurvewiseWarning):
        wider = compare_runs(a, b, distribution_std=0.001, kind="errors")
    assert wider.difference.width > c.difference.width
    assert wider.verdict == "a better"


def test_scores_alone_say_what_is_lost():
    a, b = [0.91, 0.92, 0.9, 0.91, 0.915], [0.85, 0.86, 0.84, 0.85, 0.855]
    with pytest.warns(CurvewiseWarning, match="needs the predictions"):
        c = compare_runs(a, b, higher_is_better=True)
    assert c.verdict == "a better"
    assert c.scope == "test set"
    assert np.isnan(c.difference.low)
    assert c.difference.estimate == pytest.approx(-0.06)
    a, b = [10 * x for x in a], [10 * x for x in b]
    with pytest.warns(CurvewiseWarning):
        score = compare_runs(a, b, unit="score", higher_is_better=True)
    assert score.verdict == "a better"
    assert np.isnan(score.pvalue)


def test_same_seed_same_answer_whatever_the_global_generator():
    a, b = two(np.random.default_rng(12), runs=(20, 20), shift=0.05)
    np.random.seed(1)  # noqa: NPY002
    one = compare_runs(a, b, rng=5, kind="errors")
    np.random.seed(2)  # noqa: NPY002
    assert compare_runs(a, b, rng=5, kind="errors").test_set_pvalue == one.test_set_pvalue


def test_groups_widen_the_interval_on_the_distribution():
    rng = np.random.default_rng(13)
    a, b = two(rng, runs=(10, 10), n=100, wobble=1.5)
    many = np.repeat(np.arange(100), 6)
    wide_a, wide_b = a[:, many], b[:, many]
    naive = compare_runs(wide_a, wide_b, kind="errors")
    grouped = compare_runs(wide_a, wide_b, groups=many, kind="errors")
    single = compare_runs(a, b, kind="errors")
    assert naive.difference.width < single.difference.width
    assert grouped.difference.width == pytest.approx(single.difference.width, rel=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda a, b: compare_runs(a, b[:, :-1], kind="errors"), "same\\s+test set"),
        (lambda a, b: compare_runs(a, b, paired=True, kind="errors"), "paired=True"),
        (lambda a, b: compare_runs(a, b, margin=0, kind="errors"), "margin=0"),
        (lambda a, b: compare_runs(a, b, level=1, kind="errors"), "level=1"),
        (lambda a, b: compare_runs(a, b, unit="percent"), "one score per run"),
        (lambda a, b: compare_runs(a, [0.1, 0.2], higher_is_better=False), "a is not one score per run"),
        (lambda a, b: compare_runs([0.1], [0.1, 0.2], higher_is_better=False), "two or more"),
        (lambda a, b: compare_runs([10, 12], [11, 12], higher_is_better=False), "unit='percent'"),
        (lambda a, b: compare_runs([0.1, np.nan], [0.1, 0.2], higher_is_better=False), "NaN"),
        (lambda a, b: compare_runs(Predictions(a, "errors"), Predictions(b + 0.5, "losses")), "same"),
        (lambda a, b: compare_runs(a.T, b, kind="errors"), "axes="),
        (lambda a, b: compare_runs(a, b, distribution_std=-1, kind="errors"), "distribution_std"),
        (lambda a, b: compare_trainings({"a": a}), "fewer than two"),
        (lambda a, b: compare_trainings({"a": a, "b": b}, baseline="c"), "baseline='c'"),
        (
            lambda a, b: compare_trainings({"a": a, "b": [0.1, 0.2]}, higher_is_better=False),
            "is not one score per run, and another is",
        ),
        (lambda a, b: compare_trainings({"a": a, "b": b}, multiplicity="no"), "multiplicity"),
    ],
)
def test_bad_input_is_named(call, message):
    a, b = two(np.random.default_rng(14), runs=(5, 6), n=50)
    with pytest.raises(InputError, match=message):
        call(a, b)


# many trainings


def test_many_trainings_adjust_like_statsmodels():
    multipletests = pytest.importorskip("statsmodels.stats.multitest").multipletests
    rng = np.random.default_rng(15)
    losses = {f"t{i}": rng.normal(i * 0.3, 1, 12) for i in range(6)}
    for method, oracle in (("holm", "holm"), ("bh", "fdr_bh")):
        c = compare_trainings(losses, unit="loss", multiplicity=method)
        assert c.adjusted == pytest.approx(multipletests(c.pvalues, method=oracle)[1])
        assert len(c.pairs) == 15


@pytest.mark.slow
def test_many_equal_trainings_are_seldom_told_apart():
    rng = np.random.default_rng(16)
    found = 0
    for _ in range(200):
        c = compare_trainings({str(i): rng.normal(0, 1, 6) for i in range(8)}, unit="loss")
        found += any(v != "undecided" for v in c.verdicts)
    assert found / 200 <= 0.09


def test_against_a_baseline_and_from_predictions():
    a, b = two(np.random.default_rng(17), runs=(12, 12), shift=-0.9)
    c = compare_trainings({"old": a, "new": b, "copy": a.copy()}, baseline="old", kind="errors")
    assert c.pairs == (("new", "old"), ("copy", "old"))
    assert c.verdicts[0] == "a better"
    assert c.verdicts[1] == "undecided"
    assert c.scope == "distribution"
    assert c.contenders == ("new", "copy")
    pair = compare_runs(b, a, kind="errors")
    assert c.pvalues[0] == pytest.approx(pair.pvalue)
    assert c.differences[0].width > pair.difference.width


def test_a_baseline_says_nothing_of_the_others_among_themselves():
    # c is far worse than b and was called "not significantly worse than any other", with which it was not compared.
    errors = {"a": [0.2, 0.21, 0.19, 0.2], "b": [0.1, 0.11, 0.1, 0.09], "c": [0.19, 0.2, 0.2, 0.19]}
    text = compare_trainings(errors, higher_is_better=False, baseline="a").summary()
    assert "Not significantly worse than a: b, c." in text
    assert "any other: b." in compare_trainings(errors, higher_is_better=False).summary()
    worst = {"a": errors["b"], "b": errors["a"]}
    assert "worse than a: none." in compare_trainings(worst, higher_is_better=False, baseline="a").summary()


@quiet
@pytest.mark.parametrize(
    ("unit", "words"), [("score", "score of b minus score of a"), ("loss", "loss of a minus loss of b")]
)
def test_documents_say_what_the_sign_of_a_difference_means(unit, words):
    # Of scores the number in a document is below 0 where a is better, beside a summary with that above 0.
    high, low = [30.0, 31.0, 29.5, 30.2, 30.3], [28.0, 27.5, 28.1, 28.4, 28.9]
    a, b = (high, low) if unit == "score" else (low, high)
    plan = plan_stopping([5, 8], draws=1000)
    results = [
        compare_runs(a, b, unit=unit),
        compare_trainings({"a": a, "b": b}, unit=unit),
        check_stopping(a, b, plan, unit=unit),
    ]
    for result in results:
        document = result.to_dict()
        assert document["direction"] == f"{words}: below 0, a is better"
        assert (result.differences[0] if "differences" in document else result.difference).estimate < 0
    assert results[0].verdict == "a better"
    assert (" minus that of b is 2.0" in results[0].summary()) == (unit == "score")


@pytest.mark.slow
def test_score_only_language_models(data_dir):
    groups = defaultdict(list)
    with open(data_dir / "variance" / "modded_nanogpt_final_val_losses.csv") as file:
        for row in csv.DictReader(file):
            groups[f"{row['record_dir']} {row['steps']}"].append(float(row["final_val_loss"]))
    assert sum(map(len, groups.values())) == 1460
    enough = {name: losses for name, losses in groups.items() if len(losses) >= 10}
    assert len(enough) == 71
    c = compare_trainings(enough, unit="loss")
    assert len(c.pairs) == 71 * 70 // 2
    assert c.scope == "test set"
    assert "scores alone" in c.warnings[0]
    k = int(np.argmin(c.pvalues))
    a, b = c.pairs[k]
    oracle = stats.ttest_ind(enough[a], enough[b], equal_var=False)
    assert c.pvalues[k] == pytest.approx(oracle.pvalue, rel=1e-5)


# what an adversary found


@pytest.mark.slow
def test_groups_of_either_side_count():
    rng = np.random.default_rng(20)
    groups = np.arange(400) // 20
    wrong = 0
    for _ in range(120):
        a, b = (rng.normal(size=(6, 400)) < rng.normal(size=20)[groups] - 1 for _ in range(2))
        one, two = Predictions(a, "errors"), Predictions(b, "errors", groups=groups)
        wrong += compare_runs(one, two, permutations=19).verdict != "undecided"
    assert wrong / 120 < 0.12


@quiet
def test_few_runs_against_many_are_not_too_sure():
    rng = np.random.default_rng(21)
    found = {(2, 20): 0, (3, 20): 0, (2, 2): 0}
    for a, b in found:
        for _ in range(1000):
            c = score_difference(rng.normal(size=a), rng.normal(size=b), False)
            found[a, b] += 0 in c.test_set.interval(0.95)
    assert min(found.values()) >= 930


def test_interval_and_pvalue_agree_for_few_runs():
    rng = np.random.default_rng(22)
    for _ in range(50):
        d = score_difference(rng.normal(size=3), rng.normal(1.5, 1, size=4), False).test_set
        for level in (0.8, 0.95, 0.99):
            assert (d.pvalue < 1 - level) == (0 not in d.interval(level))


@pytest.mark.slow
@quiet
def test_one_run_against_many_counts_what_the_many_show():
    rng = np.random.default_rng(23)
    hits = 0
    for _ in range(300):
        p = rng.beta(2.0, 8.0, 500)
        a = rng.random((1, 500)) < p
        b = rng.random((5, 500)) < np.clip(p + 0.05 * rng.standard_normal((5, 1)), 0, 1)
        gap = p.mean() - np.clip(p[:, None] + 0.05 * NODES, 0, 1).mean(axis=0) @ WEIGHTS
        hits += gap in compare_runs(a, b, axes=("runs", "examples"), kind="errors").difference
    assert hits / 300 > 0.88


NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(31)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@quiet
def test_no_difference_seen_is_not_equivalence():
    nothing = np.zeros((5, 200), dtype=bool)
    assert compare_runs(nothing, nothing, margin=0.005, kind="errors").verdict == "undecided"
    assert compare_runs(nothing, nothing, margin=0.05, kind="errors").verdict == "equivalent"


def test_unequal_runs_never_contradict_their_interval():
    a = [0.30, 0.301, 0.299, 0.3005, 0.2995, 0.3002, 0.2998, 0.3001, 0.3, 0.3]
    with pytest.warns(CurvewiseWarning):
        c = compare_runs(a, [0.302, 0.31, 0.306], higher_is_better=False)
    assert 0 in c.test_set_difference
    assert c.test_set_pvalue > 0.05


def test_one_row_is_not_many_scores():
    with pytest.raises(InputError, match="a\\[None, :\\]"):
        compare_runs(np.zeros(50, int), np.ones(50, int), np.zeros(50, int))


def test_named_classes_may_be_coded_differently():
    names = np.array(["ant", "bee", "cat"])
    labels = names[[0, 1, 1, 0, 2, 2] * 5]
    a = np.tile(labels, (5, 1))
    b = a.copy()
    a[:, 0], b[:, 3] = "dog", "emu"
    a[0, 1] = b[1, 5] = "cow"
    c = compare_runs(a, b, labels)
    assert c.difference.estimate == pytest.approx(0, abs=1e-12)


@quiet
def test_few_scores_do_not_contradict_their_pvalue():
    c = compare_runs([0.1, 0.11, 0.1], [0.12, 0.13, 0.125], higher_is_better=False)
    assert (c.verdict != "undecided") == (c.test_set_pvalue < 0.05)


@quiet
def test_copies_of_a_run_are_noticed():
    c = compare_runs([0.1, 0.1], [0.2, 0.2], higher_is_better=False)
    assert any("do not differ at all" in w for w in c.warnings)
    c = compare_trainings({"x": [0.1, 0.1], "y": [0.2, 0.3]}, higher_is_better=False)
    assert any("runs of x do not differ" in w for w in c.warnings)


def test_hits_taken_for_errors_are_noticed():
    rng = np.random.default_rng(24)
    hits = rng.random((6, 100)) < 0.9
    with pytest.warns(CurvewiseWarning, match="more than two thirds of the answers are wrong"):
        compare_runs(hits, rng.random((6, 100)) < 0.9, kind="errors")


def test_a_margin_in_percent_is_refused():
    a, b = two(np.random.default_rng(25), runs=(5, 6), n=50)
    with pytest.raises(InputError, match="half a percentage point"):
        compare_runs(a, b, margin=1, kind="errors")
    with pytest.warns(CurvewiseWarning):
        compare_runs([10.0, 11, 12, 11, 10], [9.0, 10, 9, 9, 8], unit="percent", margin=5, higher_is_better=False)


def test_equivalent_and_yet_better_is_said():
    rng = np.random.default_rng(26)
    a, b = rng.random((30, 3000)) < 0.10, rng.random((30, 3000)) < 0.11
    c = compare_runs(a, b, margin=0.05, kind="errors")
    assert c.verdict == "equivalent"
    assert "Within that margin, a is significantly better than b" in c.summary()


def test_every_verdict_is_said():
    rng = np.random.default_rng(27)
    base = rng.random(3000) ** 3
    a, b, c = (rng.random((30, 3000)) < np.clip(base + x, 0, 1) for x in (0, 0, 0.05))
    assert compare_runs(a, b, kind="errors").summary().startswith("a and b are not significantly different on new")
    assert compare_runs(a, b, margin=0.03, kind="errors").summary().startswith("a and b are equivalent on new data")
    assert compare_runs(a, c, kind="errors").summary().startswith("a is significantly better than b on new data")
    assert compare_runs(c, a, kind="errors").summary().startswith("b is significantly better than a on new data")
    here = Predictions(
        np.load(EXAMPLES / "units128.npz")["preds"],
        "labels",
        labels=np.load(EXAMPLES / "units128.npz")["labels"].astype(np.int64),
    )
    there = np.load(EXAMPLES / "units64.npz")["preds"]
    same = compare_runs(here, Predictions(there, "labels", labels=here.labels), margin=0.005)
    assert "are equivalent" in same.summary()
    assert "The advantage of a is significant on this test set only." in same.summary()


def test_trainings_must_have_names():
    with pytest.raises(InputError, match="dict"):
        compare_trainings([np.zeros((5, 50)), np.zeros((5, 50))])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")
def test_scores_never_contradict_themselves():
    rng = np.random.default_rng(28)
    for i in range(400):
        paired = bool(i % 2)
        sizes = (r := int(rng.integers(2, 9)), r if paired else int(rng.integers(2, 9)))
        shift = rng.choice([0, 0.005, 0.01, 0.02])
        a, b = (rng.normal(0.1 + s, 0.005, k) for s, k in zip((0, shift), sizes, strict=True))
        margin = rng.choice([None, 0.01, 0.03])
        c = compare_runs(a, b, paired=paired, margin=margin, permutations=499, higher_is_better=False)
        if c.verdict == "undecided":
            assert not c.worse
            assert not c.better
        if c.verdict == "equivalent":
            assert not c.maybe_worse
        assert (c.test_set_verdict != "undecided") == (c.test_set_pvalue < 0.05)


def test_repeats_without_errors_are_not_equivalent():
    z = np.zeros((5, 40, 3), dtype=int)
    axes = ("runs", "examples", "repeats")
    with pytest.warns(CurvewiseWarning):
        assert compare_runs(z, z, axes=axes, kind="errors", margin=0.01).verdict == "undecided"


@quiet
def test_scores_without_spread_are_undecided():
    c = compare_runs([0.9, 0.9], [0.89, 0.89], margin=0.001, higher_is_better=True)
    assert c.verdict == "undecided"
    assert np.isnan(c.test_set_difference.low)


def test_margins_of_every_unit():
    with pytest.warns(CurvewiseWarning):
        compare_runs([9, 8, 9, 8, 9.5], [8, 7, 8, 9, 8], unit="score", higher_is_better=True, margin=2)
    losses = np.random.default_rng(29).gamma(2, size=(2, 6, 50))
    compare_runs(losses[0], losses[1], kind="losses", margin=1.5)


def test_groups_of_one_training_hold_for_all():
    rng = np.random.default_rng(30)
    groups = np.arange(200) // 10
    shared = rng.normal(size=20)[groups]
    a, b, c = (rng.normal(size=(6, 200)) < shared - 1 for _ in range(3))
    some = compare_trainings({"a": Predictions(a, "errors", groups=groups), "b": b, "c": c}, kind="errors")
    every = compare_trainings({"a": a, "b": b, "c": c}, groups=groups, kind="errors")
    for one, two in zip(some.differences, every.differences, strict=True):
        assert tuple(one) == pytest.approx(tuple(two))


# which is better, and for whom


def test_hits_and_errors_give_one_verdict_and_neither_is_guessed():
    rng = np.random.default_rng(31)
    y = rng.integers(0, 4, 800)
    a, b = (np.where(rng.random((6, 800)) < p, y, (y + 1) % 4) for p in (0.66, 0.56))
    by_label = compare_runs(a, b, y)
    assert by_label.verdict == "a better"
    for flags in ((a == y, b == y), ((a == y).astype(int), (b == y).astype(int))):
        with pytest.raises(InputError, match="kind='errors' or kind='correct'"):
            compare_runs(*flags)
        with pytest.raises(InputError, match="labels has 4 classes"):
            compare_runs(*flags, y)
        by_hit = compare_runs(*flags, kind="correct")
        assert by_hit.verdict == "a better"
        assert tuple(by_hit.difference) == pytest.approx(tuple(by_label.difference))
        with pytest.raises(InputError, match="kind='errors' or kind='correct'"):
            compare_trainings({"a": flags[0], "b": flags[1]})
    rates = (a == y).mean(axis=1), (b == y).mean(axis=1)
    with pytest.raises(InputError, match="higher_is_better=False for errors"):
        compare_runs(*rates)
    with pytest.raises(InputError, match="higher_is_better=False for errors"):
        compare_trainings({"a": rates[0], "b": rates[1]})


def test_numbers_are_losses_or_scores_only_if_that_is_said():
    rng = np.random.default_rng(32)
    a, b = rng.beta(8, 2, (5, 300)), rng.beta(7, 3, (5, 300))  # pass rates of each question
    with pytest.raises(InputError, match="kind='losses' or kind='scores'"):
        compare_runs(a, b)
    with pytest.raises(InputError, match="kind='scores' for rates"):
        compare_runs(a, b, kind="correct")
    scores, losses = compare_runs(a, b, kind="scores"), compare_runs(a, b, kind="losses")
    assert (scores.verdict, losses.verdict) == ("a better", "b better")
    assert scores.unit == "score"
    assert scores.difference.estimate == pytest.approx(b.mean() - a.mean())
    assert "The score of a minus that of b is 0.1" in scores.summary()


def test_an_assumed_kind_can_be_corrected():
    rng = np.random.default_rng(33)
    hits = [rng.random((5, 200)) < p for p in (0.7, 0.6)]
    assumed = [as_predictions(h) for h in hits]
    with pytest.raises(InputError, match="kind='errors' or kind='correct'"):
        compare_runs(*assumed)
    told = compare_runs(*assumed, kind="correct")
    assert tuple(told.difference) == tuple(compare_runs(*hits, kind="correct").difference)
    with pytest.raises(InputError, match="already knows its kind"):
        compare_runs(*assumed, kind="losses")


def test_unequal_groups_are_covered():
    """Sizes and spread at which G − 1 degrees of freedom hold in 82% (benchmarks/coverage.py)."""
    rng = np.random.default_rng(34)
    sizes = np.array([22, 231, 34, 2, 1, 8, 22, 10, 19, 32, 44, 75])
    groups = np.repeat(np.arange(12), sizes)
    hits = 0
    for _ in range(400):
        effect = rng.normal(0, 0.1, 12)[groups]
        losses = rng.normal(size=(2, 1, len(groups)))
        losses[1] += 3 * effect
        a, b = (Predictions(x, "losses", groups=groups) for x in losses)
        hits += 0 in measure_difference(a, b, False, 0.0).distribution.interval(0.95)
    assert hits / 400 >= 0.925


def test_few_groups_of_equal_weight_are_said():
    rng = np.random.default_rng(35)
    groups = np.repeat(np.arange(12), [231, 44, 75, 32, 34, 22, 22, 19, 10, 8, 2, 1])
    a, b = (rng.random((5, len(groups))) < 0.3 for _ in range(2))
    with pytest.warns(CurvewiseWarning, match="weigh as much as 3.9 of equal size"):
        compare_runs(a, b, kind="errors", groups=groups)
    many = compare_trainings({"a": a, "b": b}, kind="errors", groups=groups)
    assert any("weigh as much as 3.9" in w for w in many.warnings)


def test_examples_are_matched_by_their_ids():
    rng = np.random.default_rng(36)
    a, b = two(rng, runs=(6, 6), n=300)
    ids, order = np.array([f"q{i}" for i in range(300)]), rng.permutation(300)
    groups = np.arange(300) // 10
    one = Predictions(a, "errors", example_ids=ids)
    same = compare_runs(one, Predictions(b, "errors", example_ids=ids), groups=groups)
    turned = Predictions(b[:, order], "errors", example_ids=ids[order])
    found = compare_runs(one, turned, groups=groups)
    assert tuple(found.difference) == pytest.approx(tuple(same.difference))
    many = compare_trainings({"a": one, "b": turned}, groups=groups)
    assert many.pvalues[0] == pytest.approx(same.pvalue)
    other = Predictions(b, "errors", example_ids=np.char.add(ids, "x"))
    with pytest.raises(InputError, match="300 examples of a are not in b, such as 'q0'"):
        compare_runs(one, other)
    twice = Predictions(b, "errors", example_ids=np.where(ids == "q1", "q0", ids))
    with pytest.raises(InputError, match="names an example twice"):
        compare_runs(one, twice)


@quiet
def test_repeats_of_one_run_show_its_variance_on_the_test_set():
    """Against what new repeats of the same two networks give."""
    rng = np.random.default_rng(37)
    p, q = rng.beta(1, 1, 400), rng.beta(1.6, 1, 400)
    truth = p.mean() - q.mean()
    axes, hits, width = ("runs", "examples", "repeats"), 0, []
    for _ in range(200):
        a, b = (rng.random((1, 400, 8)) < r[:, None] for r in (p, q))
        c = compare_runs(a, b, kind="errors", axes=axes)
        hits += truth in c.test_set_difference
        width.append(c.test_set_difference.width)
    assert 0.9 <= hits / 200 <= 0.99
    exact = 2 * 1.96 * np.sqrt(((p * (1 - p) + q * (1 - q)) / 8).sum()) / 400
    assert np.mean(width) == pytest.approx(exact, rel=0.02)
    assert "that between its repeats" in c.warnings[0]


@quiet
def test_single_runs_among_several_trainings():
    a, b = two(np.random.default_rng(38), runs=(1, 6), n=2000, shift=-1.5)
    given = {"a": a, "b": b, "c": b[:1]}
    axes = ("runs", "examples")
    c = compare_trainings(given, kind="errors", axes=axes)
    assert c.verdicts == ("undecided",) * 3
    pair = compare_runs(a, b, kind="errors", axes=axes)
    assert c.pvalues[0] == pytest.approx(pair.pvalue)
    assert any("a, c: a training has one run only" in w for w in c.warnings)
    known = compare_trainings(given, kind="errors", axes=axes, distribution_std=0.0)
    assert known.verdicts[0] == "b better"


@quiet
def test_a_spread_of_zero_is_knowledge_too():
    a, b = two(np.random.default_rng(39), runs=(1, 1), n=2000, shift=1.5)
    none, tiny = (compare_runs(a, b, kind="errors", distribution_std=s) for s in (0.0, 1e-9))
    assert none.verdict == tiny.verdict == "a better"
    assert none.difference.width == pytest.approx(tiny.difference.width)
    assert not any("unless distribution_std" in w for w in none.warnings)
    assert compare_runs(a, b, kind="errors").verdict == "undecided"


@quiet
def test_no_limit_lies_beyond_what_is_possible():
    c = compare_runs([0.1, 0.9], [0.2, 0.7], higher_is_better=False)
    assert tuple(c.test_set_difference)[1:] == (-1, 1)
    percent = compare_runs([10, 90], [20, 70], unit="percent", higher_is_better=False)
    assert tuple(percent.test_set_difference)[1:] == (-100, 100)
    errors = np.array([[0] * 90 + [1] * 10, [1] * 50 + [0] * 50], dtype=bool)
    both = compare_trainings({"a": errors, "b": ~errors, "c": errors[::-1]}, kind="errors")
    for d in both.differences:
        assert -1 <= d.low <= d.estimate <= d.high <= 1


def two_class(seed=2, share=0.4):
    """Labels of two classes, and predictions that are right in 95% and in 75%."""
    q = np.random.default_rng(seed)
    y = (q.random(1000) < share).astype(int)
    return y, *(np.where(q.random((10, 1000)) < p, y, 1 - y) for p in (0.95, 0.75))


def test_booleans_beside_labels_of_two_classes_are_not_taken_for_classes():
    y, a, b = two_class()
    assert compare_runs(a, b, y).verdict == "a better"
    asked = "holds booleans, and labels does not: pass kind='correct'"
    with pytest.raises(InputError, match=asked):
        compare_runs(a == y, b == y, y)
    with pytest.raises(InputError, match=asked):
        compare_trainings({"a": a == y, "b": b == y}, y)
    with pytest.raises(InputError, match=asked):
        decompose_variance(a == y, y)
    assert compare_runs(a == y, b == y, y, kind="correct").verdict == "a better"
    assert compare_runs(a == 1, b == 1, y == 1).verdict == "a better"
    assert compare_runs(a == 1, b == 1, y, kind="labels").verdict == "a better"


def test_numbers_that_may_be_hits_are_warned_of_beside_two_classes():
    y, a, b = two_class()
    hits = (a == y).astype(int), (b == y).astype(int)
    said = "more than half of the predictions are wrong: if 1 means a correct answer"
    with pytest.warns(CurvewiseWarning, match=said):
        compare_runs(*hits, y)
    with pytest.warns(CurvewiseWarning, match=said):
        decompose_variance(hits[0], y)
    c = compare_trainings(dict(zip("ab", hits, strict=True)), y)
    assert any(said in w for w in c.warnings)
    assert not compare_trainings({"a": a, "b": b}, y).warnings


@pytest.mark.parametrize("dtype", [bool, int, float])
def test_answers_of_one_run_are_not_scores_of_many(dtype):
    rng = np.random.default_rng(3)
    a, b = (rng.random(1000) < p for p in (0.9, 0.7))
    a, b = a.astype(dtype), b.astype(dtype)
    for options in ({}, {"higher_is_better": True}):
        with pytest.raises(InputError, match=r"a holds 1,000 values that are 0 or 1.*a\[None, :\]"):
            compare_runs(a, b, **options)
        with pytest.raises(InputError, match=r"trainings\['x'\] holds 1,000 values"):
            compare_trainings({"x": a, "y": b}, **options)


def test_one_number_for_a_training_is_named():
    with pytest.raises(InputError, match=r"\['A'\] is one number: each training needs a list"):
        compare_trainings({"A": 0.9, "B": 0.7}, higher_is_better=True)


def test_names_are_stripped_and_must_differ():
    a, b = [0.1, 0.12, 0.11], [0.2, 0.21, 0.22]
    for names in (("a", "a"), ("a", "a ")):
        with pytest.raises(InputError, match="names has 'a'"):
            compare_runs(a, b, names=names, higher_is_better=False)
    with pytest.raises(InputError, match="trainings has 'a' and 'a '"):
        compare_trainings({"a": a, "a ": b}, higher_is_better=False)
    with pytest.warns(CurvewiseWarning):
        assert compare_runs(a, b, names=(" x", "y "), higher_is_better=False).a == "x"
    c = compare_trainings({"x ": a, "y": b}, baseline="x ", higher_is_better=False)
    assert c.names == ("x", "y")
    assert "1 of 1 difference is significant on this test set" in c.summary()


@quiet
def test_examples_that_all_differ_alike_are_not_certain():
    """Six of six: the exact limit of Clopper and Pearson for the share is 54%."""
    zeros = np.zeros((2, 6), int)
    c = compare_runs(zeros, 1 - zeros, kind="errors")
    exact = stats.binomtest(6, 6).proportion_ci(0.95).low
    assert c.difference.low == -1
    assert c.difference.high == pytest.approx(-exact, abs=0.05)
    assert 1e-4 < c.pvalue < 0.05


@quiet
@pytest.mark.parametrize(("runs", "paired"), [(3, False), (3, True), (1, None)])
def test_runs_without_spread_leave_this_test_set_open(runs, paired):
    a = np.zeros((runs, 20), int)
    b = np.zeros((3, 20), int)
    b[:, :5] = 1
    c = compare_runs(a, b, kind="errors", paired=paired)
    assert np.isnan([c.test_set_difference.low, c.test_set_pvalue]).all()
    chance = c.distribution_probability_better
    assert (chance.low, chance.high) == (0, 1)
    assert c.test_set_verdict == "undecided"
    assert any("the error does not vary between runs" in w for w in c.warnings)
    assert "nan" not in c.summary()
    assert c.difference.low < -0.25 < c.difference.high


def test_keywords_are_checked_and_errors_name_their_argument():
    rng = np.random.default_rng(0)
    a, b = (rng.random((6, 40)) < 0.3 for _ in range(2))
    parts = [cw.decompose_variance(x, kind="errors") for x in (a, b)]
    calls = [
        lambda: cw.compare_runs(a, b, kinds="errors"),
        lambda: cw.variance.compare_trainings({"a": a, "b": b}, kinds="errors"),
        lambda: cw.compare_variances(*parts, kinds="errors"),
        lambda: cw.variance.measure_sweep(dict(enumerate(parts)), kinds="errors"),
        lambda: cw.variance.measure_sources({"all": parts[0], "init": parts[1]}, kinds="errors"),
        lambda: cw.plan_runs(difference=0.1, test_set_stds=0.1),
    ]
    for call in calls:
        with pytest.raises(TypeError, match=r"unexpected keyword argument '(kinds|test_set_stds)'"):
            call()
    with pytest.raises(InputError, match="predictions holds one run") as caught:
        cw.decompose_variance(a[:1], kind="errors")
    assert caught.value.argument == "predictions"
    with pytest.raises(InputError, match="kind='hits'") as caught:
        cw.load_predictions(a, kind="hits")
    assert (caught.value.argument, caught.value.value) == ("kind", "hits")


def test_the_smallest_possible_pvalue_is_named() -> None:
    rng = np.random.default_rng(0)
    hard = rng.random(1000) ** 4
    a, b = (rng.random((5, 1000)) < hard * share for share in (1.0, 0.5))
    c = compare_runs(a, b, kind="errors")
    assert c.test_set_pvalue == pytest.approx(2 / 252)
    assert c.pvalue < 0.001
    assert "on new data (p < 0.001)" in c.sentences()
    assert "(p = 0.0079, the smallest possible with 5 + 5 runs)" in c.sentences()
    assert "smallest possible" not in compare_runs(a, a[::-1], kind="errors").sentences()


@pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")
@pytest.mark.parametrize("paired", [False, True])
def test_scores_that_differ_by_rounding_only_do_not_vary(paired):
    # The mean of three times 0.1 is not 0.1, and 0.3 - 0.1 is not 0.4 - 0.2: the interval had no width.
    a, b = ([0.1, 0.2, 0.3], [0.3, 0.4, 0.5]) if paired else ([0.1] * 3, [0.2] * 3)
    c = compare_runs(a, b, unit="loss", paired=paired)
    assert c.verdict == "undecided"
    assert np.isnan(c.test_set_difference.low)
    assert "the error does not vary between runs" in " ".join(c.warnings)


def test_trainings_are_named_by_anything_that_tells_them_apart():
    a, b = np.random.default_rng(3).random((2, 6, 40)) < 0.3
    assert compare_runs(a, b, kind="errors", names=(1, 2)).a == "1"
    with pytest.raises(InputError, match="must be two names"):
        compare_runs(a, b, kind="errors", names=("new",))
    with pytest.raises(InputError, match="names has 'x' twice"):
        cw.compare_variances(a, b, kind="errors", names=("x", "x"))


@pytest.mark.parametrize("permutations", [0, -3, 99.5])
def test_too_few_permutations_are_refused(permutations):
    a, b = np.random.default_rng(3).random((2, 20, 60)) < 0.3
    with pytest.raises(InputError, match="must be a whole number, 19 or more"):
        compare_runs(a, b, kind="errors", permutations=permutations)


def errors_of(runs, examples, seed=0):
    return np.random.default_rng(seed).random((runs, examples)) < 0.3


WHOLE = {
    "splits": lambda value: cw.variance.measure_seed_luck(errors_of(9, 60), kind="errors", splits=value),
    "tasks": lambda value: cw.variance.measure_bipartitions(errors_of(9, 60) * 1, np.arange(60) % 2, tasks=value),
    "limit": lambda value: cw.variance.measure_dependent_pairs(errors_of(9, 60), limit=value),
    "draws": lambda value: cw.compare_variances(errors_of(9, 60), errors_of(9, 60), kind="errors", draws=value),
    "resamples": lambda value: cw.decompose_variance(errors_of(9, 60), kind="errors", resamples=value),
    "permutations": lambda value: compare_runs(errors_of(9, 60), errors_of(9, 60), kind="errors", permutations=value),
    "runs_max": lambda value: cw.plan_runs(errors_of(9, 60), difference=0.1, runs_max=value),
    "examples": lambda value: cw.plan_runs(difference=0.01, test_set_std=0.01, disagreement=0.1, examples=value),
}


@pytest.mark.parametrize("value", [np.nan, 2.5, True, "5"])
@pytest.mark.parametrize("name", WHOLE)
def test_counts_that_are_no_whole_numbers_are_refused_by_name(name, value):
    with pytest.raises(InputError, match=f"^{name}=.* must be a whole number"):
        WHOLE[name](value)


def test_a_plan_needs_two_examples():
    with pytest.raises(InputError, match="examples=1: must be a whole number, 2 or more"):
        WHOLE["examples"](1)


def test_names_may_come_as_an_array():
    names = np.array(["new", "old"])
    assert compare_runs(errors_of(9, 60), errors_of(9, 60, 1), kind="errors", names=names).b == "old"


def test_messages_hold_no_types_of_numpy():
    truth = np.arange(60) % 4
    votes = np.where(errors_of(9, 60), (truth + 1) % 4, truth)
    calls = [
        lambda: cw.variance.measure_twins(votes, {np.int64(4): votes[:5]}, truth),
        lambda: cw.variance.measure_sweep({np.str_("fast"): errors_of(9, 60)}),
        lambda: cw.variance.measure_sources({np.str_("all"): votes, np.str_("init"): votes}, truth, baseline="every"),
        lambda: cw.variance.measure_dependent_pairs(votes, truth, pairs=[(np.int64(99), np.int64(2))]),
        lambda: cw.variance.measure_dependent_pairs(votes, truth, pairs=np.array([[3, 3]])),
        lambda: cw.variance.measure_bipartitions({np.int64(1): cw.variance.load_predictions(votes, truth)}),
        lambda: cw.variance.measure_ensemble(votes, truth, sizes=[np.int64(3), 99]),
        lambda: cw.decompose_variance(np.float32(votes) + np.float32(0.5), truth, kind="labels"),
        lambda: compare_runs(votes, votes, truth, names=np.array(["one", "two", "three"])),
        lambda: cw.variance.plan_stopping(np.array([10, 5])),
    ]
    for call in calls:
        with pytest.raises(InputError) as caught:
            call()
        assert not any(word in str(caught.value) for word in ("np.", "array(", "float32")), caught.value


@quiet
def test_pairs_whose_seeds_are_not_one_to_one_are_refused():
    # Runs of one seed (of two settings, say) in another order: one run was compared twice and another left out.
    rng = np.random.default_rng(0)
    a, b = ((rng.random((4, 300)) < 0.3).astype(np.uint8) for _ in range(2))
    one, two = (Predictions(x, "errors", seeds=np.array(["0", "0", "1", "2"])) for x in (a, b))
    moved = Predictions(b, "errors", seeds=np.array(["1", "0", "0", "2"]))
    with pytest.raises(InputError, match="their seeds are not one to one"):
        compare_runs(one, moved, paired=True)
    assert compare_runs(one, two, paired=True)._parts.b.tolist() == b.mean(axis=1).tolist()


@quiet
def test_two_runs_that_err_alike_vary_no_more_than_they_disagree():
    """With err/2n alone, two nearly equal networks of high error were compared as loosely as any two."""
    one = np.arange(400) % 2 == 0
    two = one.copy()
    two[:10:2] = False
    c = compare_runs(one[None], two[None], kind="errors")
    apart = one.astype(float) - two
    by_example = apart.var(ddof=1) / 400
    assert by_example < one.mean() / 800 / 5
    half = stats.t.ppf(0.975, 2 * 399) * np.sqrt(2 * by_example)
    assert tuple(c.test_set_difference)[1:] == pytest.approx((apart.mean() - half, apart.mean() + half))


@quiet
@pytest.mark.parametrize("level", [0.95, 0.99])
def test_an_interval_holds_0_where_permutation_does_not_reject_it(level):
    contradicted = 0
    for seed in range(120):
        rng = np.random.default_rng(seed)
        a, b = 0.2 + 0.01 * rng.standard_normal((2, 5)) + [[0.0], [0.016]]
        c = compare_runs(a, b, unit="fraction", higher_is_better=False, level=level)
        leaves_0_out = not c.test_set_difference.low <= 0 <= c.test_set_difference.high
        assert leaves_0_out == (c.test_set_pvalue < 1 - level) == (c.verdict != "undecided")
        # Welch's interval alone leaves 0 out in some of these.
        contradicted += stats.ttest_ind(a, b, equal_var=False).pvalue < 1 - level <= c.test_set_pvalue
    assert contradicted >= 3


@quiet
def test_new_data_are_undecided_where_permutation_leaves_this_test_set_so():
    contradicted = 0
    for seed in range(120):
        rng = np.random.default_rng(seed)
        skill = 0.01 * rng.standard_normal((2, 5, 1)) + [[[0.0]], [[0.025]]]
        a, b = rng.random((2, 5, 1000)) < 0.2 + skill
        c = compare_runs(a, b, kind="errors", level=0.99)
        if c.test_set_verdict == "undecided":
            assert c.verdict == "undecided"
            assert c.difference.low <= 0 <= c.difference.high
            assert c.pvalue >= 0.01
            contradicted += compare_runs(a, b, kind="errors").pvalue < 0.01
    assert contradicted >= 1


def test_a_margin_as_large_as_the_errors_is_warned_of():
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 5, 400)) < 0.1
    with pytest.warns(CurvewiseWarning, match=r"margin of 50% is as large as the error .* margin=0.005"):
        compare_runs(a, b, kind="errors", margin=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CurvewiseWarning)
        compare_runs(a, b, kind="errors", margin=0.05)


@quiet
def test_runs_that_tie_have_a_finite_interval_at_a_low_level():
    c = compare_runs([0.0, 0.0, 1.0], [0.0, 1.0, 1.0], unit="loss", level=0.4)
    assert c.test_set_pvalue == 1
    assert c.verdict == "undecided"
    assert c.test_set_difference.low == pytest.approx(-0.7, abs=0.4)
    assert 0 < c.test_set_difference.high < 1
