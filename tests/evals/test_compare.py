"""Comparisons of two models: against other libraries, consistent verdicts, seeds, equivalence, error rates."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import curvewise as cw
from curvewise.errors import CurvewiseWarning, InputError, quietly
from curvewise.evals import Evals, compare_evals, score_evals
from curvewise.evals.pairs import pair_tests

quiet = pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")


def evals(a, b, **fields):
    scores = np.stack([np.asarray(a, dtype=float), np.asarray(b, dtype=float)])
    return Evals(scores, ("new", "old"), np.arange(scores.shape[1]), **fields)


def answers(only_a, only_b, both, neither):
    a = [1] * only_a + [0] * only_b + [1] * both + [0] * neither
    b = [0] * only_a + [1] * only_b + [1] * both + [0] * neither
    return evals(a, b)


def test_single_answers_are_mcnemars_exact_test():
    c = cw.compare_evals(answers(15, 4, 50, 31), "new", "old")
    assert c.pvalue == pytest.approx(stats.binomtest(4, 19).pvalue)
    assert c.method == "exact McNemar"
    assert c.difference.estimate == pytest.approx(0.11)
    assert c.wins == (15, 4)
    gaps = np.array([1] * 15 + [-1] * 4 + [0] * 81)
    assert c.standard_error == pytest.approx(stats.sem(gaps))
    assert c.verdict == "a"
    assert np.isnan(c.question_variance)


def test_the_exact_test_is_that_of_statsmodels():
    c = cw.compare_evals(answers(15, 4, 50, 31), "new", "old")
    mcnemar = pytest.importorskip("statsmodels.stats.contingency_tables").mcnemar
    assert c.pvalue == pytest.approx(mcnemar([[50, 15], [4, 31]], exact=True).pvalue)


@quiet
@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 8), st.integers(1, 8))
def test_interval_pvalue_and_verdict_never_contradict_each_other(only_a, only_b, both, neither):
    e = answers(only_a, only_b, both, neither)
    c = cw.compare_evals(e, "new", "old")
    assert (0 in c.difference) == (c.pvalue >= 0.05) == (c.verdict == "undecided")
    assert c.difference.width > 0
    assert c.better == (c.verdict == "a")
    assert c.worse == (c.verdict == "b")
    turned = cw.compare_evals(e, "old", "new")
    assert turned.difference.low == pytest.approx(-c.difference.high)
    assert turned.pvalue == pytest.approx(c.pvalue)
    assert {c.verdict, turned.verdict} in ({"a", "b"}, {"undecided"})


@quiet
@given(st.integers(0, 2**31))
def test_the_same_holds_for_samples_groups_tasks_and_pass_k(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    scores = (rng.random((2, n, 3)) < rng.choice([0.1, 0.5, 1.0])).astype(float)
    groups = rng.integers(0, 6, n) if rng.random() < 0.4 else None
    tasks = rng.integers(0, 3, n) if rng.random() < 0.4 else None
    e = evals(*scores, groups=groups, tasks=tasks)
    c = cw.compare_evals(
        e, "new", "old", rng.choice(["mean", "pass@2", "pass^2"]), average="questions" if tasks is None else "tasks"
    )
    assert (0 in c.difference) == (c.pvalue >= 0.05) == (c.verdict == "undecided")
    assert c.difference.width > 0
    assert -1 <= c.difference.low <= c.difference.estimate + 1e-12
    assert c.difference.estimate - 1e-12 <= c.difference.high <= 1


def test_several_samples_are_the_paired_t_test_of_question_means():
    rng = np.random.default_rng(0)
    p = rng.random((200, 1))
    a, b = (rng.random((200, 5)) < p**0.8), (rng.random((200, 5)) < p)
    c = cw.compare_evals(evals(a, b), "new", "old")
    theirs = stats.ttest_rel(a.mean(axis=1), b.mean(axis=1))
    ends = theirs.confidence_interval()
    assert c.pvalue == pytest.approx(theirs.pvalue)
    assert (c.difference.low, c.difference.high) == pytest.approx((ends.low, ends.high))
    within = [x.var(axis=1, ddof=1).mean() for x in (a, b)]
    assert c.sampling_variance == pytest.approx(within)
    gaps = a.mean(axis=1) - b.mean(axis=1)
    assert c.question_variance == pytest.approx(max(0.0, gaps.var(ddof=1) - sum(within) / 5))
    assert c.sampling_share == pytest.approx(min(1.0, sum(within) / 5 / gaps.var(ddof=1)))


def test_the_split_into_question_and_sampling_noise_finds_the_truth():
    rng = np.random.default_rng(1)
    n = 40_000
    a, b = rng.random((n, 1)), rng.random((n, 1))  # unrelated: ω² = 1/6, σ² = 1/6
    two = np.c_[rng.random((n, 2)) < a, np.full((n, 1), np.nan)]
    c = cw.compare_evals(evals(two, rng.random((n, 3)) < b), "new", "old")
    assert c.question_variance == pytest.approx(1 / 6, rel=0.05)
    assert c.sampling_variance == pytest.approx((1 / 6, 1 / 6), rel=0.03)
    assert c.samples == (2, 3)


def test_graded_and_clustered_differences_are_statsmodels():
    linear = pytest.importorskip("statsmodels.regression.linear_model")
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(25), 8)
    a, b = rng.random(200), np.clip(rng.random(200) + 0.05 * rng.normal(size=25)[groups], 0, 1)
    c = cw.compare_evals(evals(a, b, groups=groups), "new", "old")
    fit = linear.OLS(a - b, np.ones(200)).fit(cov_type="cluster", cov_kwds={"groups": groups}, use_t=True)
    assert c.standard_error == pytest.approx(float(fit.bse[0]))
    assert c.pvalue == pytest.approx(float(fit.pvalues[0]))  # t with 24 degrees of freedom
    assert (c.difference.low, c.difference.high) == pytest.approx(tuple(fit.conf_int()[0]))
    assert "CR2" in c.method


def test_losses_are_better_when_lower():
    rng = np.random.default_rng(3)
    a = rng.normal(2, 0.3, 80)
    fields = {"range": (-np.inf, np.inf), "higher_is_better": False}
    c = cw.compare_evals(evals(a, a + 0.1 + 0.05 * rng.normal(size=80), **fields), "new", "old")
    assert c.difference.high < 0
    assert c.verdict == "a"
    assert (c.better, c.worse, c.maybe_worse) == (True, False, False)
    assert "new is significantly better than old" in c.sentences()
    worse = cw.compare_evals(evals(a + 0.1 + 0.05 * rng.normal(size=80), a, **fields), "new", "old")
    assert (worse.verdict, worse.worse, worse.maybe_worse) == ("b", True, True)


def test_equivalence_needs_a_margin_and_enough_questions():
    rng = np.random.default_rng(4)
    p = rng.random((2000, 1))
    e = evals(rng.random((2000, 4)) < p, rng.random((2000, 4)) < p)
    c = cw.compare_evals(e, "new", "old", margin=0.03)
    assert c.verdict == "equivalent"
    assert not c.maybe_worse
    gaps = e.scores[0].mean(axis=1) - e.scores[1].mean(axis=1)
    sem = stats.sem(gaps)
    tost = max(stats.t.sf((gaps.mean() + 0.03) / sem, 1999), stats.t.cdf((gaps.mean() - 0.03) / sem, 1999))
    assert c.equivalence_pvalue == pytest.approx(tost)
    few = cw.compare_evals(e.select(questions=np.arange(60)), "new", "old", margin=0.03)
    assert few.verdict == "undecided"
    assert few.maybe_worse
    assert "by less than 3 points is not shown" in few.sentences()
    single = cw.compare_evals(answers(3, 3, 300, 694), "new", "old", margin=0.02)
    assert single.verdict == "equivalent"


@pytest.mark.parametrize("margin", ["0.1", [0.1, 0.2], np.nan, True])
def test_a_margin_is_a_number(margin):
    with pytest.raises(InputError, match="must be a number above 0 and below 1") as caught:
        cw.compare_evals(answers(3, 3, 10, 10), "new", "old", margin=margin)
    assert caught.value.argument == "margin"


def test_a_margin_moves_worse_and_better():
    c = cw.compare_evals(answers(10, 60, 500, 430), "new", "old", margin=0.01)
    assert c.verdict == "b"
    assert c.worse
    barely = cw.compare_evals(answers(10, 60, 500, 430), "new", "old", margin=0.045)
    assert barely.verdict == "b"
    assert not barely.worse  # not by more than the margin
    assert barely.maybe_worse
    for margin in (0, -1, 1, 2, np.nan):
        with pytest.raises(InputError, match="margin"):
            cw.compare_evals(answers(1, 2, 3, 14), "new", "old", margin=margin)


def test_identical_answers_have_an_interval_and_a_warning():
    rng = np.random.default_rng(5)
    for scores in ((rng.random((50, 1)) < 0.5), (rng.random((50, 4)) < 0.5), rng.random((50, 1))):
        with pytest.warns(CurvewiseWarning, match="the same score on every question"):
            c = cw.compare_evals(evals(scores, scores), "new", "old")
        assert c.pvalue == 1
        assert c.verdict == "undecided"
        assert c.difference.low < 0 < c.difference.high


@quiet
def test_one_question_and_one_group():
    c = cw.compare_evals(evals([[1, 1, 1]], [[0, 0, 0]]), "new", "old")
    assert (c.difference.low, c.difference.high, c.pvalue, c.verdict) == (-1, 1, 1, "undecided")
    c = cw.compare_evals(evals([1, 1, 1, 0], [0, 0, 0, 0], groups=["g"] * 4), "new", "old")
    assert (c.difference.low, c.difference.high, c.verdict) == (-1, 1, "undecided")
    loss = cw.compare_evals(evals([1.0], [2.0], range=(-np.inf, np.inf)), "new", "old")
    assert np.isnan(loss.difference.low)
    assert loss.verdict == "undecided"


def test_bad_names():
    e = answers(3, 4, 5, 6)
    with pytest.raises(InputError, match="both 'new'"):
        cw.compare_evals(e, "new", "new")
    with pytest.raises(InputError, match="no model 'x'; there are 'new', 'old'"):
        cw.compare_evals(e, "x", "old")


@quiet
def test_training_seeds_change_the_population_and_the_verdict():
    rng = np.random.default_rng(6)
    p = rng.random((400, 1))
    # Three trainings that differ by more than the two recipes do.
    shift = np.array([0.12, 0.0, -0.1])
    a, b = rng.random((400, 3)) < p + shift + 0.03, rng.random((400, 3)) < p + shift[::-1] - 0.03
    fixed = cw.compare_evals(evals(a, b), "new", "old")
    assert fixed.verdict == "a"
    assert "these two models as they are" in fixed.population
    seeds = np.array([list("123"), list("123")])
    c = cw.compare_evals(evals(a, b, seeds=seeds), "new", "old")
    assert c.verdict == "undecided"
    assert c.seeds == (3, 3)
    assert "new training seeds of both" in c.sentences()
    assert c.standard_error > fixed.standard_error
    one = cw.compare_evals(evals(a, b, seeds=np.array([list("123"), list("000")])), "new", "old")
    assert "new training seeds of new; old is one model" in one.population
    # Seeds are paired by their names: b lists them from the last to the first.
    named = np.array([list("123"), list("321")])
    paired = cw.compare_evals(evals(a, b, seeds=named), "new", "old", paired_seeds=True)
    ordered = cw.compare_evals(evals(a, b[:, ::-1], seeds=seeds), "new", "old", paired_seeds=True)
    assert tuple(paired.difference) == pytest.approx(tuple(ordered.difference))
    assert paired.standard_error < c.standard_error
    for wrong in (np.array([list("123"), list("000")]), np.array([list("123"), list("456")])):
        with pytest.raises(InputError, match="the same training seeds of both"):
            cw.compare_evals(evals(a, b, seeds=wrong), "new", "old", paired_seeds=True)
    with pytest.raises(InputError, match="needs models with training seeds"):
        cw.compare_evals(evals(a, b), "new", "old", paired_seeds=True)
    grouped = cw.compare_evals(evals(a, b, seeds=seeds, groups=["g"] * 400), "new", "old")
    assert (grouped.difference.low, grouped.difference.high, grouped.verdict) == (-1, 1, "undecided")


def test_a_result_is_json_one_line_and_a_table():
    c = cw.compare_evals(answers(15, 4, 50, 31), "new", "old")
    assert json.loads(json.dumps(c.to_dict()))["verdict"] == "a"
    assert repr(c) == "EvalComparison('new' minus 'old': 0.11 [0.03, 0.20], p = 0.019, verdict='a')"
    assert "| new" in c.table()
    assert c.table().splitlines()[2].endswith("| new    |")
    assert c.columns()["pvalue"] == [c.pvalue]
    assert c.sentences().startswith("new is significantly better than old. new scores 65.0% and old 54.0%")


@quiet
def test_half_marks_of_another_model_make_scores_graded():
    rng = np.random.default_rng(9)
    scores = (rng.random((3, 40)) < 0.6).astype(float)
    scores[2, 0] = 0.5
    e = Evals(scores, tuple("abc"), np.arange(40))
    c, r = cw.compare_evals(e, "a", "b"), cw.rank_models(e).pair_columns()
    assert c.method == "paired t"
    i = next(i for i in range(3) if {r["a"][i], r["b"][i]} == {"a", "b"})
    assert r["pvalue"][i] == pytest.approx(c.pvalue)


def test_many_pairs_at_once_are_the_single_comparisons():
    rng = np.random.default_rng(7)
    p = rng.random((60, 1))
    scores = np.full((5, 60, 3), np.nan)
    scores[:2, :, :1] = rng.random((2, 60, 1)) < p
    scores[2:] = rng.random((3, 60, 3)) < p
    e = Evals(scores, tuple("abcde"), np.arange(60))
    tests = pair_tests(e)
    low, high = tests.intervals(0.95)
    for i, (a, b) in enumerate(zip(tests.a, tests.b, strict=True)):
        c = cw.compare_evals(e, "abcde"[a], "abcde"[b])
        assert (c.difference.low, c.difference.high, c.pvalue) == pytest.approx((low[i], high[i], tests.pvalues()[i]))
    assert tests.exact.tolist() == [True] + [False] * 9


@pytest.mark.slow
@pytest.mark.parametrize(("samples", "grouped"), [(1, False), (4, False), (2, True)])
def test_type_one_errors(samples, grouped):
    """A short version of ``benchmarks/evals_coverage.py compare``."""
    rng = np.random.default_rng(8)
    n, sets, found = 60, 200, []
    groups = np.arange(n) // 5 if grouped else None
    for _ in range(10):  # all pairs of a chunk are compared
        p = rng.random((sets, 1, n // 5, 1)).repeat(5, axis=2) if grouped else rng.random((sets, 1, n, 1))
        scores = (rng.random((sets, 2, n, samples)) < p).astype(float).reshape(2 * sets, n, samples)
        e = Evals(scores, tuple(map(str, range(2 * sets))), np.arange(n), groups=groups)
        found.append(pair_tests(e, pairs=(np.arange(sets) * 2, np.arange(sets) * 2 + 1)).pvalues() < 0.05)
    assert np.mean(found) < 0.06


@pytest.mark.slow
@pytest.mark.parametrize("std", [0.0, 0.1])
def test_coverage_of_differences_with_twelve_clusters_of_unequal_size(std):
    """A short version of ``benchmarks/evals_coverage.py clusters``, where CR1 with t(G − 1) holds 82 to 91%."""
    rng = np.random.default_rng(9)
    groups = np.repeat(np.arange(12), [22, 231, 34, 2, 1, 8, 22, 10, 19, 32, 44, 75])
    sets, truth, held = 200, 0.05, []
    for _ in range(5):
        shift = rng.normal(0, std, (sets, 12))[:, groups]
        pair = np.stack([rng.random(shift.shape) < 0.6 + shift, rng.random(shift.shape) < 0.55], axis=1)
        e = Evals(pair.reshape(2 * sets, -1), tuple(map(str, range(2 * sets))), np.arange(500), groups=groups)
        low, high = pair_tests(e, pairs=(np.arange(sets) * 2, np.arange(sets) * 2 + 1)).intervals(0.95)
        held.append((low <= truth) & (truth <= high))
    assert 0.93 <= np.mean(held) <= 0.985


def test_with_losses_the_model_that_is_ahead_is_the_one_with_fewer_errors():
    scores = answers(15, 4, 50, 31).scores[:, :, 0]
    c = cw.compare_evals(evals(1 - scores[0], 1 - scores[1], higher_is_better=False), "new", "old")
    assert c.verdict == "a"
    assert "new is ahead on 15 and old on 4" in c.sentences()


def test_questions_with_a_single_sample_do_not_pass_for_a_difference_between_questions():
    rng = np.random.default_rng(0)
    ease, gap = rng.random(4000), 0.1 * rng.normal(size=4000)
    chance = np.stack([np.clip(ease + gap, 0, 1), ease])
    scores = (rng.random((2, 4000, 4)) < chance[:, :, None]).astype(float)
    scores[:, ::2, 1:] = np.nan
    found = cw.compare_evals(evals(*scores), "new", "old")
    assert found.question_variance == pytest.approx(np.var(chance[0] - chance[1]), abs=0.015)
    assert found.sampling_share > 0.9


def test_differences_that_do_not_vary_leave_the_p_value_of_unbounded_scores_unknown():
    scores = np.array([[1.0, 2, 5], [2, 3, 6]])
    with pytest.warns(CurvewiseWarning, match="3 questions only"):
        c = cw.compare_evals(Evals(scores, ("a", "b"), list("xyz"), range=(-np.inf, np.inf)), "a", "b")
    assert (c.verdict, "p unknown" in c.summary(), "nan" in c.summary()) == ("undecided", True, False)


def test_two_files_without_names_are_told_the_right_call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, last in (("a", 0), ("b", 1)):
        (tmp_path / f"{name}.csv").write_text(f"question,score\n1,1\n2,0\n3,{last}\n")
    with pytest.raises(InputError) as told:
        cw.compare_evals("a.csv", "b.csv")
    call = 'compare_evals({"a": "a.csv", "b": "b.csv"}, "a", "b")'
    assert call in str(told.value)
    with quietly():
        assert cw.compare_evals({"a": "a.csv", "b": "b.csv"}, "a", "b").wins == (0, 1)


@pytest.mark.parametrize("ends", [(0.0, 100.0), (-1.0, 1.0), (1.0, 2.0)])
@pytest.mark.parametrize("seed", range(6))
def test_right_and_wrong_have_the_same_verdict_on_any_scale(seed, ends):
    rng = np.random.default_rng(seed)
    low, width = ends[0], ends[1] - ends[0]
    marks = rng.random((2, 60, 1 + seed % 3)) < [[[0.95]], [[0.85]]]
    more = {} if seed < 2 else {"groups": np.arange(60) % 20} if seed < 4 else {"tasks": rng.integers(0, 2, 60)}
    e = Evals(marks, ("a", "b"), np.arange(60), **more)
    scaled = Evals(low + width * marks, ("a", "b"), np.arange(60), range=ends, **more)
    average = "tasks" if seed > 3 else "questions"
    one = compare_evals(e, "a", "b", margin=0.1, average=average)
    two = compare_evals(scaled, "a", "b", margin=0.1 * width, average=average)
    assert (one.method, one.verdict, one.wins) == (two.method, two.verdict, two.wins)
    np.testing.assert_allclose(np.array([*two.difference]) / width, [*one.difference], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose((two.pvalue, two.equivalence_pvalue), (one.pvalue, one.equivalence_pvalue), rtol=1e-9)
    scores, others = score_evals(e, average=average), score_evals(scaled, average=average)
    for name in ("scores", "low", "high"):
        np.testing.assert_allclose((getattr(others, name) - low) / width, getattr(scores, name), atol=1e-12)


def test_the_same_samples_in_another_order_are_the_same_score():
    rng = np.random.default_rng(0)
    samples = rng.random((30, 5)).round(2)
    e = Evals(np.stack([samples, rng.permuted(samples, axis=1)]), ("a", "b"), np.arange(30))
    with pytest.warns(CurvewiseWarning, match="is one log there twice"):
        c = compare_evals(e, "a", "b")
    assert (c.wins, c.verdict) == ((0, 0), "undecided")
    assert np.isnan(c.sampling_share)
