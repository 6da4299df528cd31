"""Scores of models: known intervals, never zero width, coverage for questions of several kinds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import curvewise as cw
from curvewise.errors import CurvewiseWarning, InputError
from curvewise.evals import Evals

quiet = pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")


def evals(scores, **fields):
    scores = np.asarray(scores, dtype=float)
    return Evals(scores, tuple(f"m{i}" for i in range(len(scores))), np.arange(scores.shape[1]), **fields)


@quiet
def test_five_of_five_right():
    s = cw.score_evals(evals([[1] * 5]))
    assert s.interval("m0").low == pytest.approx(0.5655, abs=1e-4)
    assert s.interval("m0").high == 1
    assert s.standard_errors[0] == 0
    assert any("every answer of m0 is right" in w for w in s.warnings)
    assert any("5 questions only" in w for w in s.warnings)


@quiet
def test_eight_of_ten_have_the_standard_error_that_inspect_prints():
    s = cw.score_evals(evals([[1] * 8 + [0] * 2]))
    assert s.standard_errors[0] == pytest.approx(0.13333, abs=1e-5)
    theirs = stats.binomtest(8, 10).proportion_ci(method="wilson")
    assert (s.low[0], s.high[0]) == pytest.approx((theirs.low, theirs.high))


def test_columns_in_their_order():
    s = cw.score_evals(evals(np.eye(12)[:2]))
    assert list(s.columns()) == ["model", "score", "standard_error", "low", "high", "questions", "samples"]
    assert s.columns()["samples"].tolist() == [1, 1]
    ragged = np.ones((1, 12, 3))
    ragged[0, 0, 1:] = np.nan
    ragged[0, 1] = 0
    assert cw.score_evals(evals(ragged)).columns()["samples"] == pytest.approx([34 / 12])


def test_graded_scores_without_bounds_are_students():
    rng = np.random.default_rng(0)
    x = np.clip(np.round(rng.normal(8, 1.5, 25)), 1, 10)
    s = cw.score_evals(evals([x], range=(-np.inf, np.inf)))
    theirs = stats.t.interval(0.95, 24, x.mean(), stats.sem(x))
    assert (s.low[0], s.high[0]) == pytest.approx(theirs)


def test_graded_scores_with_bounds_stay_in_their_range_and_are_students_where_these_are_far():
    high = np.array([9.0] * 2 + [10.0] * 10)
    s = cw.score_evals(evals([high], range=(1, 10)))
    assert s.low[0] < high.mean() < s.high[0] <= 10
    x = np.random.default_rng(0).beta(2, 2, 400)
    s = cw.score_evals(evals([1 + 9 * x], range=(1, 10)))
    theirs = stats.t.interval(0.95, 399, 1 + 9 * x.mean(), 9 * stats.sem(x))
    assert (s.low[0], s.high[0]) == pytest.approx(theirs, abs=0.02)


@pytest.mark.slow
@quiet
@pytest.mark.parametrize("n", [10, 15])
def test_coverage_of_ratings_that_are_crowded_at_the_top(n):
    # Most answers have the best mark, some are far below: t covers 79% (n = 10) and 75% (n = 15) of these.
    rng = np.random.default_rng(2)
    marks, chance = np.array([10.0, 9.0, 8.0, 2.0]), np.array([0.6, 0.25, 0.1, 0.05])
    e = evals(rng.choice(marks, (1000, n), p=chance), range=(1, 10))
    s = cw.score_evals(e)
    assert ((s.low <= marks @ chance) & (marks @ chance <= s.high)).mean() > 0.93


@pytest.mark.parametrize(("k", "variance"), [(1, 1 / 4), (2, 1 / 6), (4, 1 / 8)])
def test_uniform_questions_have_the_published_variances(k, variance):
    """p ~ U(0, 1): a score of K samples has variance 1/12 + 1/(6K) (Miller 2024)."""
    rng = np.random.default_rng(k)
    n = 100_000
    s = cw.score_evals(evals([rng.random((n, k)) < rng.random((n, 1))]))
    assert s.standard_errors[0] ** 2 * n == pytest.approx(variance, rel=0.015)
    if k > 1:
        assert s.question_variance[0] == pytest.approx(1 / 12, rel=0.04)  # K = ∞
        assert s.sampling_variance[0] == pytest.approx(1 / 6, rel=0.015)
    else:
        assert np.isnan(s.question_variance[0])


def test_groups_are_clusters_and_statsmodels_agrees():
    linear = pytest.importorskip("statsmodels.regression.linear_model")
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(30), 6)
    x = (rng.random(180) < 0.3 + 0.4 * rng.random(30)[groups]).astype(float)
    s = cw.score_evals(evals([x], groups=groups))
    fit = linear.OLS(x, np.ones(180)).fit(cov_type="cluster", cov_kwds={"groups": groups})
    assert s.standard_errors[0] == pytest.approx(float(fit.bse[0]))
    assert s.groups == 30


@quiet
def test_macro_averages_have_the_standard_error_of_strata():
    rng = np.random.default_rng(2)
    tasks = np.repeat(["x", "y"], [40, 160])
    x = (rng.random(200) < np.where(tasks == "x", 0.9, 0.4)).astype(float)
    s = cw.score_evals(evals([x], tasks=tasks), average="tasks")
    one, two = x[:40], x[40:]
    assert s.scores[0] == pytest.approx((one.mean() + two.mean()) / 2)
    assert s.standard_errors[0] == pytest.approx(np.sqrt(stats.sem(one) ** 2 + stats.sem(two) ** 2) / 2)
    weighted = cw.score_evals(evals([x], tasks=tasks), average={"x": 1, "y": 4})
    assert weighted.scores[0] == pytest.approx(x.mean())
    assert weighted.standard_errors[0] < cw.score_evals(evals([x])).standard_errors[0]  # strata are not sampled
    assert "averaged over tasks" in s.sentences()


@quiet
def test_training_seeds_add_their_own_variance():
    rng = np.random.default_rng(3)
    n, seeds = 300, 4
    rate = rng.random((n, 1)) + np.array([-0.15, 0.1, -0.05, 0.1])
    scores = (rng.random((n, seeds)) < rate).astype(float)
    e = evals([scores], seeds=np.array([list("0123")]))
    s = cw.score_evals(e)
    means = scores.mean(axis=0)
    ms_seed = n * means.var(ddof=1)
    ms_question = seeds * scores.mean(axis=1).var(ddof=1)
    rest = scores - means - scores.mean(axis=1, keepdims=True) + scores.mean()
    ms_rest = (rest**2).sum() / ((n - 1) * (seeds - 1))
    assert s.standard_errors[0] ** 2 == pytest.approx((ms_seed + ms_question - ms_rest) / (n * seeds))
    assert s.high[0] - s.low[0] > 2 * np.diff([*cw.score_evals(evals([scores])).interval("m0")])[1]
    assert "4 training seeds" in s.sentences()


@quiet
@given(st.integers(0, 2**31))
def test_an_interval_of_0_and_1_never_has_zero_width_and_holds_its_score(seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(1, 12)), int(rng.integers(1, 4))
    scores = (rng.random((3, n, k)) < rng.choice([0.0, 0.5, 1.0])).astype(float)
    if k > 1:
        scores[rng.random(scores.shape) < 0.2] = np.nan
        scores[..., 0] = np.nan_to_num(scores[..., 0])
    groups = rng.integers(0, 3, n) if rng.random() < 0.5 else None
    tasks = rng.integers(0, 3, n) if rng.random() < 0.5 else None
    for average in ("questions", *(["tasks"] if tasks is not None else [])):
        s = cw.score_evals(evals(scores, groups=groups, tasks=tasks), average=average)
        assert (s.high > s.low).all()
        assert (s.low >= 0).all()
        assert (s.high <= 1).all()
        assert ((s.low <= s.scores + 1e-12) & (s.scores <= s.high + 1e-12)).all()


@quiet
def test_edges():
    one = cw.score_evals(evals([[1]]))
    assert (one.low[0], one.high[0]) == pytest.approx(
        tuple(stats.binomtest(1, 1).proportion_ci(method="wilson")), abs=1e-9
    )
    assert np.isnan(one.standard_errors[0])
    graded = cw.score_evals(evals([[0.3]]))
    assert (graded.low[0], graded.high[0]) == (0, 1)
    loss = cw.score_evals(evals([[0.3]], range=(-np.inf, np.inf), higher_is_better=False))
    assert np.isnan(loss.low[0])
    same = cw.score_evals(evals([[0.5] * 20]))
    assert same.low[0] < 0.5 < same.high[0]  # half marks twenty times


def test_one_group_is_said_and_counts_once():
    with pytest.warns(CurvewiseWarning, match="all questions are in one group"):
        s = cw.score_evals(evals([[1, 0, 1] * 10], groups=["g"] * 30))
    assert s.high[0] - s.low[0] > 0.6


def test_warnings_in_plain_words():
    rng = np.random.default_rng(4)
    x = (rng.random((2, 40)) < 0.5).astype(float)
    with pytest.warns(CurvewiseWarning, match="'m0' and 'm2' have the same score on every question"):
        cw.score_evals(evals([x[0], x[1], x[0]]))
    with pytest.warns(CurvewiseWarning, match="m1 lie between 0 and 1, and others reach"):
        cw.score_evals(evals([100 * rng.random(40), rng.random(40)], range=(0, 100)))
    with pytest.warns(CurvewiseWarning, match=r"weigh as much as 4\.0 of equal size"):
        cw.score_evals(evals(x, groups=np.repeat(np.arange(4), 10)))
    with pytest.warns(CurvewiseWarning, match="from the reader"):
        cw.score_evals(evals(x, warnings=("from the reader",)))
    with pytest.warns(CurvewiseWarning, match="1 task with a single question"):
        cw.score_evals(evals(x, tasks=["x"] * 39 + ["y"]), average="tasks")


def test_bad_arguments():
    e = evals(np.eye(12))
    with pytest.raises(InputError, match="level"):
        cw.score_evals(e, level=95)
    with pytest.raises(InputError, match="no model 'x'"):
        cw.score_evals(e).interval("x")


def test_the_sentence_is_about_the_score_and_the_design():
    rng = np.random.default_rng(5)
    s = cw.score_evals(evals(rng.random((1, 50, 4)) < 0.5), "pass^2")
    assert s.sentences().startswith("pass^2 is 2")
    assert "from 50 questions with 4 samples each" in s.sentences()
    assert repr(s).startswith("ModelScores(pass^2 of 'm0'")
    two = cw.score_evals(evals(rng.random((2, 50)) < [[0.9], [0.4]]))
    assert "not an overlap of intervals" in two.sentences()
    assert "**" in two.table().splitlines()[2]


@pytest.mark.slow
@quiet
@pytest.mark.parametrize("metric", [None, "pass@5", "pass^4"])
@pytest.mark.parametrize("kind", ["uniform", "bimodal"])
def test_coverage_of_means_and_pass_k(metric, kind):
    """A short version of ``benchmarks/evals_coverage.py repeated``, with the error that 1,000 sets leave."""
    rng = np.random.default_rng(6)

    def draw(shape):
        return rng.random(shape) if kind == "uniform" else np.where(rng.random(shape) < 0.3, 0.05, 0.95)

    p = draw((1000, 60))
    s = cw.score_evals(evals(rng.random((*p.shape, 10)) < p[..., None]), metric)
    big = draw(1_000_000)
    k = 1 if metric is None else int(metric[5:])
    truth = (big**k if metric is None or "^" in metric else 1 - (1 - big) ** k).mean()
    assert 0.93 <= ((s.low <= truth) & (truth <= s.high)).mean() <= 0.975


@pytest.mark.slow
@quiet
@pytest.mark.parametrize("std", [0.0, 0.03, 0.1])
def test_coverage_with_twelve_clusters_of_unequal_size(std):
    rng = np.random.default_rng(7)
    groups = np.repeat(np.arange(12), [22, 231, 34, 2, 1, 8, 22, 10, 19, 32, 44, 75])
    shift = rng.normal(0, std, (1000, 12))[:, groups]
    s = cw.score_evals(evals(rng.random((1000, 500)) < 0.6 + shift, groups=groups))
    assert 0.935 <= ((s.low <= 0.6) & (s.high >= 0.6)).mean() <= 0.98


@pytest.mark.slow
@quiet
@pytest.mark.parametrize("metric", [None, "pass@2"])
@pytest.mark.parametrize("hard", [False, True])
def test_coverage_of_ragged_samples(metric, hard):
    """Of 2 to 5 samples, as many by chance or more of hard questions; a short version of the table `ragged`."""
    rng = np.random.default_rng(11)
    p = rng.random((1000, 60))
    scores = (rng.random((1000, 60, 5)) < p[..., None]).astype(float)
    count = np.where(hard, 5 - np.floor(4 * p), rng.integers(2, 6, p.shape))
    scores[np.arange(5) >= count[..., None]] = np.nan
    s = cw.score_evals(evals(scores), metric)
    truth = 0.5 if metric is None else 2 / 3  # the mean of 1 − (1 − p)² is 1 − 1/3
    assert 0.935 <= ((s.low <= truth) & (truth <= s.high)).mean() <= 0.975


@pytest.mark.parametrize("n", [10, 30, 100, pytest.param(1000, marks=pytest.mark.slow)])
@quiet
def test_exact_coverage_of_single_answers_averaged_over_rates(n):
    right = np.arange(n + 1)
    s = cw.score_evals(evals(np.arange(n) < right[:, None]))
    rates = (np.arange(1000) + 0.5) / 1000
    held = [stats.binom.pmf(right, n, p)[(s.low <= p) & (p <= s.high)].sum() for p in rates]
    assert 0.94 <= np.mean(held) <= 0.97


def test_errors_are_not_counted_as_right_answers():
    e = Evals(np.zeros((1, 20, 3)), ("a",), np.arange(20), higher_is_better=False)
    with pytest.warns(CurvewiseWarning, match="every answer of a is right"):
        cw.score_evals(e)
    with pytest.raises(InputError, match="a low score is better"):
        cw.score_evals(e, "pass@2")


def test_one_number_of_samples_is_enough_for_passes():
    marks = np.random.default_rng(0).integers(0, 2, (1, 30, 4))
    assert cw.evals.measure_passes(Evals(marks, ("a",), np.arange(30)), k=2).k == (2,)


@pytest.mark.parametrize("higher", [True, False])
def test_models_beyond_the_third_are_lower_only_if_they_are(higher):
    same = np.stack([np.roll(np.tile([1.0, 1.0, 0.0, 1.0], 5), m) for m in range(4)])  # not on the same questions
    names = tuple("abcd")
    tied = cw.score_evals(Evals(same, names, np.arange(20), higher_is_better=higher))
    assert f"for c and {'no higher' if higher else 'no lower'} for 1 more" in tied.summary()
    same[3, :2] = 0.0 if higher else 1.0  # it was right on one of these two
    last = cw.score_evals(Evals(same, names, np.arange(20), higher_is_better=higher))
    assert f"for c and {'lower' if higher else 'higher'} for 1 more" in last.summary()
