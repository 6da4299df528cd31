"""Plans of questions and samples: the published formula, pilots, the frontier, and power that is simulated."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import curvewise as cw
from curvewise.errors import CurvewiseWarning, InputError
from curvewise.evals import Evals
from curvewise.evals.pairs import pair_tests


def formula(difference, question, sampling, samples, power=0.8, level=0.05):
    z = stats.norm.ppf(1 - level / 2) + stats.norm.ppf(power)
    return math.ceil(z**2 * (question + sampling[0] / samples[0] + sampling[1] / samples[1]) / difference**2)


@pytest.mark.parametrize("samples", [(1, 1), (10, 10), (1, 5)])
def test_the_formula(samples):
    plan = cw.plan_evals(0.03, question_variance=1 / 9, sampling_variance=(1 / 6, 0.1), samples=samples)
    assert plan.questions == formula(0.03, 1 / 9, (1 / 6, 0.1), samples)
    assert plan.power_at(plan.questions) == pytest.approx(0.8, abs=0.001)
    assert plan.detectable_at(plan.questions) == pytest.approx(0.03, rel=0.001)


def test_millers_example():
    """Three points, ω² = 1/9 and no sampling noise: 969 questions (Miller 2024)."""
    assert cw.plan_evals(0.03, question_variance=1 / 9).questions == 969
    assert cw.plan_evals(-0.03, question_variance=1 / 9).questions == 969


def test_the_difference_that_questions_detect():
    plan = cw.plan_evals(question_variance=0.1, sampling_variance=0.2, samples=4, questions=500)
    assert plan.questions is None
    assert plan.detectable == pytest.approx(2.8016 * math.sqrt((0.1 + 0.1) / 500), rel=1e-4)
    assert "500 questions with 4 samples of each find a difference of" in plan.sentences()


def make_pilot(rng, n=400, samples=4, groups=None):
    p = rng.random((n, 1))
    q = np.clip(p + 0.2 * rng.normal(size=(n, 1)), 0, 1)
    scores = np.stack([rng.random((n, samples)) < p, rng.random((n, samples)) < q])
    return Evals(scores.astype(float), ("a", "b"), np.arange(n), groups=groups)


def test_a_pilot_gives_the_variances_and_how_well_they_are_known():
    e = make_pilot(np.random.default_rng(0))
    c = cw.compare_evals(e, "a", "b")
    plan = cw.plan_evals(0.02, pilot=e)
    assert plan.questions == formula(0.02, c.question_variance, c.sampling_variance, (4, 4))
    assert plan.questions_interval.low < plan.questions < plan.questions_interval.high
    ratio = plan.questions_interval.high / plan.questions
    # The variance of a variance: that of normal values, and more with heavy tails.
    gaps = e.scores[0].mean(axis=1) - e.scores[1].mean(axis=1)
    degrees = 2 / (max(0.0, stats.kurtosis(gaps, bias=False)) / 400 + 2 / 399)
    assert ratio == pytest.approx(degrees / stats.chi2.ppf(0.025, degrees))
    assert cw.plan_evals(0.02, pilot=c).questions == plan.questions
    more = cw.plan_evals(0.02, pilot=e, samples=20)
    assert more.questions == formula(0.02, c.question_variance, c.sampling_variance, (20, 20))
    have = cw.plan_evals(pilot=e)
    assert have.available == 400
    assert have.detectable == pytest.approx(plan.detectable_at(400))


def test_groups_of_the_pilot_count():
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(60), 5)
    p = np.clip(0.5 + 0.3 * rng.normal(size=60)[groups], 0, 1)[:, None]
    q = np.clip(0.5 + 0.3 * rng.normal(size=60)[groups], 0, 1)[:, None]
    scores = np.stack([rng.random((300, 2)) < p, rng.random((300, 2)) < q]).astype(float)
    grouped = cw.plan_evals(0.05, pilot=Evals(scores, ("a", "b"), np.arange(300), groups=groups))
    alone = cw.plan_evals(0.05, pilot=Evals(scores, ("a", "b"), np.arange(300)))
    assert grouped.design_effect > 1.5
    assert grouped.questions == pytest.approx(alone.questions * grouped.design_effect, abs=1)


def test_a_pilot_of_single_answers_is_known_as_a_whole():
    e = make_pilot(np.random.default_rng(2), samples=1)
    plan = cw.plan_evals(0.05, pilot=e)
    gaps = (e.scores[0] - e.scores[1])[:, 0]
    # The formula with a continuity correction: a difference that is 1/n smaller.
    n = plan.questions
    assert formula(0.05 - 1 / n, gaps.var(ddof=1), (0, 0), (1, 1)) == pytest.approx(n, rel=0.01)
    assert plan.detectable_at(n) == pytest.approx(0.05, rel=0.001)
    with pytest.warns(CurvewiseWarning, match="more samples do not help"):
        assert cw.plan_evals(0.05, pilot=e, samples=10).questions == plan.questions


def test_pass_k_is_planned_for_the_samples_of_the_pilot():
    c = cw.compare_evals(make_pilot(np.random.default_rng(3)), "a", "b", "pass^2")
    plan = cw.plan_evals(0.05, pilot=c)
    assert plan.questions == formula(0.05, c.question_variance, c.sampling_variance, (1, 1))
    assert plan.frontier["samples"].tolist() == [4]
    with pytest.raises(InputError, match=r"pilot of pass\^2, whose variance is known for 4 samples only"):
        cw.plan_evals(0.05, pilot=c, samples=8)


def test_the_frontier_and_the_cheapest():
    plan = cw.plan_evals(0.03, question_variance=0.05, sampling_variance=0.2, question_cost=10, sample_cost=1)
    f = plan.frontier
    for k, n, cost in zip(f["samples"], f["questions"], f["cost"], strict=True):
        assert n == formula(0.03, 0.05, (0.2, 0.2), (k, k))
        assert cost == n * (10 + 2 * k)
    n, k = plan.cheapest
    assert n * (10 + 2 * k) == f["cost"].min()
    # The minimum of (c + 2K)(ω² + 2σ²/K) lies at K = √(c σ² / ω²).
    assert k == pytest.approx(math.sqrt(10 * 0.2 / 0.05), abs=1.7)
    assert cw.plan_evals(0.03, question_variance=0.05, sampling_variance=0.2).cheapest[1] == 1  # samples cost all


def test_a_budget_lists_what_it_affords():
    plan = cw.plan_evals(budget=1200, question_variance=0.05, sampling_variance=0.2, question_cost=10, questions=100)
    f = plan.frontier
    assert (f["cost"] <= 1200).all()
    assert f["questions"].tolist() == [1200 // (10 + 2 * k) for k in f["samples"]]
    n, k = plan.cheapest
    assert plan.detectable_at(n, k) == pytest.approx(f["detectable"].min())
    with pytest.raises(InputError, match="affords fewer than two"):
        cw.plan_evals(budget=1, question_variance=0.05, questions=100)


def test_looks_keep_the_power_with_a_few_more_questions():
    plan = cw.plan_evals(0.05, question_variance=0.1, sampling_variance=0.1, samples=2, looks=4)
    looks = plan.looks
    assert len(looks.looks) == 4
    assert plan.questions < looks.looks[-1] < 1.35 * plan.questions
    assert looks.chance_found[1] == pytest.approx(0.8, abs=0.02)
    assert looks.expected_questions[1] < plan.questions  # fewer on average, where there is a difference
    assert "stop when p <" in plan.sentences()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"difference": 0, "question_variance": 0.1}, "difference"),
        ({"difference": 0.1}, "pass pilot"),
        ({"difference": 0.1, "question_variance": -1}, "question_variance"),
        ({"difference": 0.1, "question_variance": 0.0}, "nothing varies"),
        ({"difference": 0.1, "question_variance": 0.1, "sampling_variance": (1, 2, 3)}, "sampling_variance"),
        ({"difference": 0.1, "question_variance": 0.1, "samples": 0}, "samples"),
        ({"difference": 0.1, "question_variance": 0.1, "samples": 1.5}, "samples"),
        ({"difference": 0.1, "question_variance": 0.1, "power": 1.0}, "power"),
        ({"difference": 0.1, "question_variance": 0.1, "level": 5}, "level"),
        (
            {"difference": 0.1, "question_variance": 0.1, "level": 0.05},
            r"is a coverage.* Pass level=0\.95 to test at 0\.05",
        ),
        ({"difference": 0.1, "question_variance": 0.1, "a": "new"}, "a=… and b=… are models of a pilot: pass pilot"),
        ({"difference": 0.1, "question_variance": 0.1, "looks": 1}, "looks"),
        ({"question_variance": 0.1}, "pass difference"),
        ({"question_variance": 0.1, "questions": 1}, "questions"),
        ({"question_variance": 0.1, "questions": 50, "looks": 3}, "needs difference"),
        ({"difference": 0.1, "pilot": 3}, "pilot"),
    ],
)
def test_bad_arguments(arguments, text):
    with pytest.raises(InputError, match=text):
        cw.plan_evals(**arguments)


def test_bad_pilots():
    rng = np.random.default_rng(4)
    e = make_pilot(rng)
    with pytest.raises(InputError, match="known from pilot"):
        cw.plan_evals(0.1, pilot=e, question_variance=0.1)
    three = Evals(np.concatenate([e.scores, e.scores[:1]]), ("a", "b", "c"), e.questions)
    with pytest.raises(InputError, match=r"3 models: say which two are compared\. Pass a=… and b=…"):
        cw.plan_evals(0.1, pilot=three)
    with pytest.raises(InputError, match=r"3 models: say which two"):
        cw.plan_evals(0.1, pilot=three, a="a")
    with pytest.raises(InputError, match="below 1, the largest possible"):
        cw.plan_evals(1.5, pilot=e)
    with pytest.raises(InputError, match="shows no difference on any question"), pytest.warns(CurvewiseWarning):
        cw.plan_evals(0.1, pilot=Evals(np.tile(np.eye(20)[0], (2, 1)), ("a", "b"), np.arange(20)))


@pytest.mark.slow
def test_the_power_is_what_was_planned():
    """Simulated answers with known variances: unrelated uniform questions shifted by the difference."""
    rng = np.random.default_rng(5)
    gap, samples = 0.08, 3
    # p in [0, 1 − gap] for b, p + gap plus noise of its own for a.
    big = rng.random(400_000) * (1 - 2 * gap) + gap
    own = rng.uniform(-gap, gap, big.size) + gap / 2
    a, b = np.clip(big + own, 0, 1), big - gap / 2
    truth = float((a - b).mean())
    question, sampling = float(np.var(a - b)), (float((a * (1 - a)).mean()), float((b * (1 - b)).mean()))
    plan = cw.plan_evals(truth, question_variance=question, sampling_variance=sampling, samples=samples)
    n, found = plan.questions, []
    for _ in range(6):
        chosen = rng.integers(0, big.size, (200, n))
        p = np.stack([a[chosen], b[chosen]], axis=1)
        scores = (rng.random((*p.shape, samples)) < p[..., None]).astype(float).reshape(400, n, samples)
        e = Evals(scores, tuple(map(str, range(400))), np.arange(n))
        found.append(pair_tests(e, pairs=(np.arange(200) * 2, np.arange(200) * 2 + 1)).pvalues() < 0.05)
    assert np.mean(found) == pytest.approx(0.8, abs=0.04)


def test_a_pilot_with_training_seeds_says_what_the_plan_is_about():
    rng = np.random.default_rng(0)
    seeds = np.array([["1", "2", "3", "4"]] * 2)
    e = Evals(rng.random((2, 40, 4)) < [[[0.7]], [[0.6]]], ("a", "b"), np.arange(40), seeds=seeds)
    with pytest.warns(CurvewiseWarning, match="variance between seeds"):
        plan = cw.plan_evals(0.05, pilot=e)
    assert "one sample" not in plan.sentences()


def test_analyses_take_what_load_evals_takes(tmp_path) -> None:
    pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    e = Evals(rng.random((2, 60)) < [[0.8], [0.5]], ("a", "b"), np.arange(60))
    path = tmp_path / "evals.csv"
    e.frame().to_csv(path, index=False)
    for source in (path, str(path), [path], e.frame()):
        assert cw.plan_evals(source, difference=0.05).questions == cw.plan_evals(0.05, pilot=e).questions
        assert cw.compare_evals(source, "a", "b").pvalue == cw.compare_evals(e, "a", "b").pvalue
        assert cw.rank_models(source).models == cw.rank_models(e).models
        assert cw.score_evals(source).scores.tolist() == cw.score_evals(e).scores.tolist()
    few = e.select(questions=np.arange(20))
    corrected = cw.evals.correct_judge(path, few.frame())
    assert corrected.scores.tolist() == cw.evals.correct_judge(e, few).scores.tolist()
    looks = cw.evals.plan_looks([60, 90], draws=1000)
    assert cw.evals.check_looks(path, "a", "b", looks).pvalues == cw.evals.check_looks(e, "a", "b", looks).pvalues
    for wrong in (5, None, cw.score_evals(e)):
        for call in (cw.score_evals, cw.rank_models, lambda x: cw.compare_evals(x, "a", "b")):
            with pytest.raises(InputError, match="holds no scores of questions"):
                call(wrong)
    with pytest.raises(InputError, match="difference=… is given twice"):
        cw.plan_evals(0.05, difference=0.03, pilot=e)
    with pytest.raises(InputError, match="pilot=… is given twice"):
        cw.plan_evals(e, pilot=e)


def test_a_pilot_averaged_over_tasks_of_unequal_size_is_planned_on_as_such():
    rng = np.random.default_rng(4)
    tasks = np.repeat(["large", "small"], [500, 20])
    gaps, found = [], []
    for _ in range(60):
        ease = rng.random((520, 1)) + 0.3 * np.array([1, -1])[:, None, None] * rng.normal(size=(520, 1))
        e = Evals((rng.random((2, 520, 2)) < ease).astype(float), ("a", "b"), np.arange(520), tasks=tasks)
        c = cw.compare_evals(e, "a", "b", average="tasks")
        gaps.append(c.difference.estimate)
        plan = cw.plan_evals(pilot=c)
        found.append(plan.detectable)
    # 2.8 standard errors are found with 80% power: those that the differences show, not those of 520 alike questions.
    assert np.mean(found) == pytest.approx(2.8016 * np.std(gaps), rel=0.3)
    assert plan.design_effect > 3
    # The variance of the few questions is known as badly as from few questions.
    inner = cw.plan_evals(0.1, pilot=c).questions_interval
    assert inner.high > 2 * inner.low


def counted_power(n, difference, apart, level=0.95):
    """Power of McNemar's exact test, by counting out all samples."""
    power = 0.0
    for m in range(n + 1):
        a = np.arange(m + 1)
        found = np.minimum(1, 2 * stats.binom.cdf(np.minimum(a, m - a), m, 0.5)) < 1 - level
        chance = stats.binom.pmf(a, m, (1 + difference / apart) / 2)
        power += stats.binom.pmf(m, n, apart) * chance[found].sum()
    return power


@pytest.mark.slow
@pytest.mark.parametrize(("only_a", "only_b"), [(375, 75), (225, 75), (150, 50), (80, 20), (185, 115), (40, 10)])
def test_plans_of_single_answers_have_the_power_of_the_exact_test(only_a, only_b):
    """The formula finds 68 to 78% here, instead of 80%."""
    scores = np.zeros((2, 1000))
    scores[0, :only_a], scores[1, only_a : only_a + only_b] = 1, 1
    e, gap, apart = Evals(scores, ("a", "b"), np.arange(1000)), (only_a - only_b) / 1000, (only_a + only_b) / 1000
    plan = cw.plan_evals(gap, pilot=e)
    assert counted_power(plan.questions, gap, apart) == pytest.approx(0.8, abs=0.01)
    have = cw.plan_evals(pilot=e, questions=plan.questions)
    assert have.detectable == pytest.approx(gap, rel=0.01)
    for n in (2, 20, 200):
        assert plan.power_at(n) == pytest.approx(counted_power(n, gap, apart), abs=0.002)
    assert plan.power_at(5) == 0  # no five answers are significant at 0.05
    looks = cw.plan_evals(gap, pilot=e, looks=3).looks
    normal = stats.norm.ppf([0.975, 0.8]).sum() ** 2 * (apart - gap**2) / gap**2
    assert looks.looks[-1] > plan.questions > normal


def test_five_questions_cannot_find_anything_and_the_plan_says_so():
    scores = np.zeros((2, 5))
    scores[0, :4], scores[1, 4] = 1, 1
    with pytest.warns(CurvewiseWarning, match="5 questions only"):
        plan = cw.plan_evals(pilot=Evals(scores, ("a", "b"), np.arange(5)))
    assert plan.detectable == math.inf
    assert "do not find even the largest possible difference" in plan.sentences()
    assert [cell.text for cell in plan.readable()["detectable"]] == ["none"]


def test_a_table_of_a_plan_has_the_digits_of_its_sentence():
    scores = np.zeros((2, 200))
    scores[0, :29], scores[1, 29:46] = 1, 1
    plan = cw.plan_evals(pilot=Evals(scores, ("a", "b"), np.arange(200)))
    (cell,) = plan.readable()["detectable"]
    assert cell.text == "9.9 points"
    assert f"find a difference of {cell.text} with" in plan.sentences()


@pytest.mark.filterwarnings("ignore:.*questions are few")
@pytest.mark.parametrize(("samples", "questions"), [(1, 190), (4, 20), (4, 60)])
def test_t_tests_of_few_questions_are_planned_by_t(samples, questions):
    effect = math.sqrt(7.8489 * (0.05 + 0.1 / samples) / questions)
    plan = cw.plan_evals(effect, question_variance=0.05, sampling_variance=0.05, samples=samples, design_effect=1.0001)
    n, shift = plan.questions, effect / math.sqrt(0.05 + 0.1 / samples)
    t = stats.t.ppf(0.975, n - 1)
    exact = stats.nct.sf(t, n - 1, shift * math.sqrt(n)) + stats.nct.cdf(-t, n - 1, shift * math.sqrt(n))
    assert plan.power_at(n) == pytest.approx(exact, abs=0.001)
    assert exact >= 0.8 > plan.power_at(n - 1)
    assert questions < n <= questions + 4


def test_the_power_of_few_questions_is_known_for_any_difference():
    plan = cw.plan_evals(questions=199, question_variance=0.01)
    for n in (2, 3, 6, 21, 199):
        powers = np.array([plan.power_at(n, gap) for gap in np.linspace(0.001, 3, 200)])
        assert np.isfinite(powers).all()
        assert (np.diff(powers) > -1e-9).all()
        assert plan.power_at(n, plan.detectable_at(n)) == pytest.approx(0.8, abs=1e-6)


def test_one_sample_of_right_or_wrong_answers_is_tested_exactly():
    """A pilot of several samples, planned for one, and numbers without a pilot."""
    e = make_pilot(np.random.default_rng(0))
    c = cw.compare_evals(e, "a", "b")
    plan = cw.plan_evals(0.1, pilot=e, samples=1)
    apart = c.question_variance + sum(c.sampling_variance) + 0.1**2
    assert counted_power(plan.questions, 0.1, apart) == pytest.approx(0.8, abs=0.005)
    known = cw.plan_evals(0.1, question_variance=0.05, sampling_variance=0.15)
    assert known.questions == formula(0.1, 0.05, (0.15, 0.15), (1, 1))
    assert "right or wrong are tested exactly, which takes 297 questions." in known.sentences()
    assert counted_power(297, 0.1, 0.36) == pytest.approx(0.8, abs=0.005)
    graded = cw.plan_evals(1, question_variance=2.0, sampling_variance=3.0)
    assert "tested exactly" not in graded.sentences()


def test_the_models_of_a_pilot_have_the_names_of_a_comparison():
    e = make_pilot(np.random.default_rng(4))
    three = Evals(np.concatenate([e.scores, e.scores[:1, ::-1]]), ("a", "b", "c"), e.questions)
    plan = cw.plan_evals(three, a="b", b="c", difference=0.1)
    assert plan.questions == cw.plan_evals(0.1, pilot=cw.compare_evals(three, "b", "c")).questions
    assert plan.questions != cw.plan_evals(0.1, pilot=e).questions
    assert cw.plan_evals(0.1, pilot=e, b="a").samples == (4, 4)  # of two, the other one is a
    with pytest.raises(InputError, match="is a comparison of 'a' and 'b', of no other models"):
        cw.plan_evals(0.1, pilot=cw.compare_evals(e, "a", "b"), a="c")


def test_the_level_of_a_plan_is_a_coverage_as_everywhere():
    plan = cw.plan_evals(0.05, question_variance=0.1, level=0.99, looks=2)
    assert (plan.level, plan.significance, plan.looks.level) == (0.99, 0.01, 0.99)
    assert plan.questions == formula(0.05, 0.1, (0, 0), (1, 1), level=0.01)
    assert "at the 0.01 level" in plan.sentences()
    with pytest.raises(InputError, match=r"Pass level=0\.9 to test at 0\.1"):
        cw.evals.plan_looks([100, 200], level=0.1)


def test_a_pilot_in_which_questions_do_not_vary_is_not_taken_for_certain():
    scores = np.tile([0.0, 1.0], (2, 40, 1))
    scores[0, ::10] = 1
    e = Evals(scores, ("a", "b"), np.arange(40))
    assert cw.compare_evals(e, "a", "b").question_variance == 0
    with pytest.warns(CurvewiseWarning, match="no variance between questions"):
        cw.plan_evals(0.05, pilot=e, question_cost=10)


def test_differences_that_cannot_be_are_not_planned_for():
    with pytest.raises(InputError, match=r"below 1, the largest possible. Three points are 0\.03"):
        cw.plan_evals(3, question_variance=0.1)
    judged = cw.plan_evals(2, question_variance=40.0)  # on a scale from 1 to 10, say
    assert "a difference of 2 with 80% power" in judged.sentences()
    with pytest.warns(CurvewiseWarning, match="3 questions only"):
        small = cw.compare_evals(Evals(np.array([[1, 1, 0], [0, 1, 0]]), ("a", "b"), range(3)), "a", "b")
    assert "3 questions with 1 sample of each are too few" in cw.plan_evals(pilot=small).sentences()
    assert "38 [10, 1,500] questions" in cw.plan_evals(0.3, pilot=small).sentences()


@pytest.mark.slow
@pytest.mark.parametrize("apart", [0.1, 0.2])
def test_the_interval_of_the_questions_needed_covers_where_answers_rarely_differ(apart):
    # The variance of differences of single answers is nearly the share on which they differ, whose tails are heavy.
    rng = np.random.default_rng(4)
    covered = []
    for _ in range(200):
        right = rng.random(150) < 0.5
        both = np.stack([right, right ^ (rng.random(150) < apart)])
        plan = cw.plan_evals(0.5, pilot=Evals(both, ("a", "b"), np.arange(150)))
        # As many questions as with the true variance, in units of those that the pilot asks for.
        covered.append(plan.questions * apart / plan.question_variance in plan.questions_interval)
    assert np.mean(covered) > 0.92


def test_names_that_plans_do_not_know():
    with pytest.raises(InputError, match="models=… is gone: name the two models with a=… and b=…"):
        cw.plan_evals(0.03, pilot=make_pilot(np.random.default_rng(0)), models=("a", "b"))
    with pytest.raises(TypeError, match=r"plan_evals\(\) got an unexpected keyword argument 'costs'"):
        cw.plan_evals(0.03, question_variance=0.1, costs=3)


def test_looks_of_a_pilot_that_hardly_differs_find_no_more_than_the_exact_test():
    same = np.ones((2, 300))
    same[1, 0] = same[0, 1] = 0
    plan = cw.plan_evals(Evals(same, ("a", "b"), np.arange(300)), difference=0.02, looks=4)
    looks = plan.looks
    # Truth: a alone is right on 2% (4%) of the questions, and b on none.
    rng = np.random.default_rng(0)
    for found, expected, share in zip(looks.chance_found[1:], looks.expected_questions[1:], (0.02, 0.04), strict=True):
        only_a = (rng.random((2000, looks.looks[-1])) < share).cumsum(axis=1)[:, np.array(looks.looks) - 1]
        stops = 0.5**only_a * 2 <= looks.nominal_level
        asked = np.where(stops.any(axis=1), np.array(looks.looks)[stops.argmax(axis=1)], looks.looks[-1])
        assert abs(found - stops.any(axis=1).mean()) < 0.06
        assert abs(expected / asked.mean() - 1) < 0.25


def test_a_pilot_whose_models_differ_on_every_question_is_planned_on():
    e = Evals(np.array([[1.0] * 15 + [0.0] * 5, [0.0] * 15 + [1.0] * 5]), ("a", "b"), np.arange(20))
    for difference in (0.05, 0.52, 0.66, 0.95):  # rounding must not make a share of more than 1
        assert 0 < cw.plan_evals(e, difference=difference).power_at(50) <= 1


@pytest.mark.parametrize(
    ("argument", "value"), [("difference", "0.03"), ("difference", [0.03]), ("power", "0.8"), ("samples", "x")]
)
def test_a_plan_takes_numbers_not_text(argument, value):
    with pytest.raises(InputError) as caught:
        cw.plan_evals(**{"difference": 0.03, "question_variance": 0.1, "sampling_variance": 0.0, argument: value})
    assert (caught.value.argument, caught.value.value) == (argument, value)
