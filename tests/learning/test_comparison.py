"""Comparing and ranking learners: known truths, coverage, symmetry."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import curvewise as cw
from curvewise.errors import CurvewiseWarning
from curvewise.learning.fit import build_curve
from curvewise.learning.power import group_runs

N = np.repeat([25, 50, 100, 200, 400.0], [16, 8, 4, 2, 1])


def learner(rng, alpha, eta, name="a", gamma=-0.5, slope=20.0, **options):
    error = alpha + eta * N**gamma + rng.standard_normal(len(N)) * np.sqrt(0.02 + slope / N)
    return build_curve(group_runs(N, error), cw.types.Unit("percent"), learner=name, **options)


@pytest.mark.slow
def test_difference_covers_and_undecided_means_undecided():
    rng = np.random.default_rng(0)
    hits, verdicts = [], []
    for _ in range(70):
        a, b = learner(rng, 8, 150, "a"), learner(rng, 8, 150, "b")
        c = cw.compare_learners([a, b], at=400)
        hits.append(0.0 in c.differences[0])
        verdicts += c.verdicts
    assert 0.9 < np.mean(hits) <= 1.0
    assert np.mean([v == "undecided" for v in verdicts]) == np.mean(hits)


@pytest.mark.slow
def test_data_equivalence_recovers_a_multiplier():
    """b sees data worth 1/1.8 of a's: e_b(1.8 n) = e_a(n), as the paper found for augmentation."""
    rng = np.random.default_rng(1)
    factors, hits = [], []
    for _ in range(40):
        a = learner(rng, 8, 150, "with")
        b = learner(rng, 8, 150 * 1.8**0.5, "without")
        k = cw.compare_learning_curves(a, b, at=400).data_equivalence
        factors.append(k.estimate)
        hits.append(1.8 in k)
    assert np.median(factors) == pytest.approx(1.8, rel=0.1)
    assert np.mean(hits) > 0.9


@pytest.mark.slow
def test_crossing_is_found_and_covered():
    """8 + 150 n^-½ and 14 + 90 n^-½ cross at n = 100, inside the sizes measured."""
    rng = np.random.default_rng(2)
    found = []
    for _ in range(40):
        a, b = learner(rng, 8, 150, "steep"), learner(rng, 14, 90, "flat")
        crossing = cw.compare_learning_curves(a, b, at=100).crossing
        if np.isfinite(crossing.estimate):
            assert 0 < crossing.low <= crossing.estimate <= crossing.high < np.inf
            found.append((crossing.estimate, 100 in crossing))
    assert len(found) > 30
    assert np.median([f[0] for f in found]) == pytest.approx(100, rel=0.15)
    assert np.mean([f[1] for f in found]) > 0.85


def test_comparison_is_antisymmetric(simulated):
    rng = np.random.default_rng(3)
    a, b = learner(rng, 8, 150, "a"), learner(rng, 12, 70, "b")
    one, two = (cw.compare_learning_curves(*pair, at=50) for pair in ((a, b), (b, a)))
    assert one.verdict == "b better"
    assert two.verdict == "a better"
    d, e = one.error_difference, two.error_difference
    assert (d.estimate, d.low, d.high) == pytest.approx((-e.estimate, -e.high, -e.low))
    assert one.data_equivalence.estimate < 1 < two.data_equivalence.estimate
    assert one.pvalue == pytest.approx(two.pvalue, abs=1e-3)
    # The name of the better one leads, whichever side it is on; and the same for scores, where more is better.
    assert one.summary().startswith("b is significantly better than a at n = 50: the error of a minus that of b is 7.")
    assert two.summary().startswith("b is significantly better than a at n = 50: the error of b minus that of a is -7.")


def test_no_crossing_is_said_so():
    rng = np.random.default_rng(4)
    a, b = learner(rng, 5, 100, slope=0.5), learner(rng, 40, 100, "b", slope=0.5)
    c = cw.compare_learning_curves(a, b)
    assert np.isnan(c.crossing.estimate)
    assert c.data_equivalence.estimate == np.inf
    assert "The fitted curve of b does not get to the error of a with 1,000 times the data" in c.summary()
    assert c.readable()["estimate"][2].text == "none up to 4,000"
    assert "cross" not in c.summary()


def test_an_undecided_pair_says_nothing_of_data_that_is_never_enough():
    rng = np.random.default_rng(4)
    c = cw.compare_learning_curves(learner(rng, 5, 100, slope=0.5), learner(rng, 40, 100, "b", slope=0.5))
    factor = replace(c.data_equivalence, low=680.0)
    found = replace(c, data_equivalence=factor)
    assert "; it takes more than 680 times with 95% confidence." in found.sentences()
    assert str(found.readable()["estimate"][3].text + found.readable()["estimate"][3].after) == "more than 680×"
    assert "1,000 times" not in replace(c, verdict="undecided").sentences()


@pytest.mark.parametrize(
    ("factor", "written", "cell"),
    [
        ((2.2, 0.54, np.inf), "b would need 2.2× [0.54, ∞] the data", "2.2×"),
        ((0.0, 0.0, 0.0021), "b would need less than 0.0021× the data", "less"),
        ((0.0, 0.0, np.inf), "", "too few runs to say"),
        ((2.5, 0.0, np.inf), "", "too few runs to say"),
    ],
)
def test_a_factor_is_written_as_far_as_it_is_known(factor, written, cell):
    rng = np.random.default_rng(4)
    c = cw.compare_learning_curves(learner(rng, 5, 100), learner(rng, 5, 100, "b"))
    c = replace(c, data_equivalence=cw.types.Interval(*factor))
    assert written in c.sentences()
    assert ("would need" in c.sentences()) == bool(written)
    assert c.readable()["estimate"][-1].text == cell


def test_scores_compare_the_right_way_round():
    rng = np.random.default_rng(5)
    n = N
    noise = rng.standard_normal((2, len(n)))
    good = cw.fit_learning_curve(
        n, 90 - 50 * n**-0.5 + 0.1 * noise[0], unit="score", higher_is_better=True, learner="good"
    )
    bad = cw.fit_learning_curve(
        n, 70 - 50 * n**-0.5 + 0.1 * noise[1], unit="score", higher_is_better=True, learner="bad"
    )
    c = cw.compare_learning_curves(good, bad)
    assert c.verdict == "a better"
    assert c.error_difference.low > 15
    assert cw.rank_learners([bad, good]).learners[0] == "good"


@pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")
def test_what_few_runs_do_not_show_is_said():
    n = [200, 200, 800, 800]
    a = cw.fit_learning_curve(n, [0.116, 0.097, 0.077, 0.082], learner="a")
    b = cw.fit_learning_curve(n, [0.166, 0.124, 0.099, 0.095], learner="b")
    c = cw.compare_learning_curves(a, b)
    assert "There are too few runs to say more: the interval is wider than the error itself." in c.sentences()
    assert [cell.text for cell in c.readable()["estimate"][1::2]] == ["too few runs to say"] * 2


@pytest.mark.parametrize("form", ["auto", "power"])
def test_a_comparison_says_what_its_form_supposes(form):
    rng = np.random.default_rng(0)
    a, b = (learner(rng, level, 100, name, form=form) for level, name in ((5, "a"), (5.2, "b")))
    here, beyond = (replace(cw.compare_learning_curves(a, b, at=at), verdict="undecided") for at in (400, 1600))
    said = "These intervals suppose no law of the curves. Those of form power suppose a power law"
    assert (said in here.sentences()) == (form == "auto")
    assert said not in beyond.sentences() + replace(here, verdict="a better").sentences()
    assert f"intervals, form {form})" in here.table_note()


def test_units_must_agree(simulated):
    n, error = simulated
    a = cw.fit_learning_curve(n, error, unit="percent")
    b = cw.fit_learning_curve(n, error / 100)
    with pytest.raises(cw.InputError, match="same unit"):
        cw.compare_learning_curves(a, b)
    with pytest.raises(cw.InputError, match="same unit"):
        cw.rank_learners([a, b])
    with pytest.raises(cw.InputError, match="empty"):
        cw.rank_learners([])


def test_accuracies_compare_with_errors(simulated):
    n, error = simulated
    a = cw.fit_learning_curve(n, error, unit="percent")
    b = cw.fit_learning_curve(n, 100 - error, unit="percent", higher_is_better=True)
    assert cw.compare_learning_curves(a, b).error_difference.estimate == pytest.approx(0)
    assert a.samples_to_reach(12.0).estimate == pytest.approx(b.samples_to_reach(12.0).estimate)


@pytest.mark.slow
def test_ranking_chances_are_calibrated():
    """The learner ranked first with chance p should be the best one in a share p of cases."""
    rng = np.random.default_rng(6)
    said, was = [], []
    for _ in range(80):
        alphas = rng.normal(10, 0.5, size=3)
        curves = [learner(rng, a, 120, str(i)) for i, a in enumerate(alphas)]
        r = cw.rank_learners(curves, at=400)
        assert r.probability_best.sum() == pytest.approx(1)
        said.append(r.probability_best[0])
        was.append(int(r.learners[0]) == int(np.argmin(alphas)))
    assert np.mean(said) == pytest.approx(np.mean(was), abs=0.1)


@pytest.mark.slow
def test_chances_are_calibrated_where_the_prior_pulls_the_predictions():
    """At four times the data and with any γ: what has chance p is the best in a share p."""
    rng = np.random.default_rng(11)
    said, was = [], []
    for _ in range(70):
        curves, truth = [], []
        for name in "abc":
            gamma, alpha, beta = -rng.uniform(0.25, 0.95), *rng.normal(8, 1.5, size=2)
            eta = beta * 400**-gamma
            curves.append(learner(rng, alpha, eta, name, gamma=gamma))
            truth.append(alpha + eta * 1600**gamma)
        r = cw.rank_learners(curves, at=1600)
        said += r.probability_best.tolist()
        was += [name == "abc"[int(np.argmin(truth))] for name in r.learners]
    chance, best = np.array(said), np.array(was)
    for low, high in ((0.0, 0.2), (0.2, 0.8), (0.8, 1.1)):
        some = (chance >= low) & (chance < high)
        assert some.sum() > 25
        assert best[some].mean() == pytest.approx(chance[some].mean(), abs=0.1)


def test_the_best_prediction_leads_and_a_higher_chance_is_explained():
    ranking = cw.learning.LearnerRanking(
        at=16000.0,
        learners=("augmented", "plain", "small"),
        error=np.array([0.1092, 0.1101, 0.124]),
        low=np.array([0.1092, 0.1006, 0.0947]),
        high=np.array([0.1391, 0.122, 0.142]),
        probability_best=np.array([0.36, 0.41, 0.23]),
        level=0.95,
        kind="confidence",
        unit=cw.types.Unit("fraction"),
    )
    text = ranking.summary()
    lead = "At n = 16,000, augmented is predicted to be the best of 3: 10.9% [10.9, 13.9], with a chance of"
    assert text.startswith(f"{lead} 36% to be the best.")
    assert "plain has a higher chance, 41%, because its interval reaches further down: 11.0% [10.1, 12.2]." in text
    assert "Train both further before choosing." in text
    assert "The order is that of the predictions; chances go by the whole intervals" in text
    agreed = replace(ranking, probability_best=np.array([0.9, 0.06, 0.04])).summary()
    assert agreed == f"{lead} 90% to be the best."
    third = replace(ranking, probability_best=np.array([0.5, 0.2, 0.3])).summary()
    assert "small has 30%: train both further" in third
    assert "chances go by the whole intervals" in third


def test_far_extrapolation_is_flagged():
    rng = np.random.default_rng(7)
    c = cw.compare_learning_curves(learner(rng, 8, 150), learner(rng, 9, 150, "b"), at=1e5)
    assert any("is 250 times the largest size measured" in w for w in c.warnings)


@pytest.mark.slow
def test_factor_and_crossing_are_covered_when_the_prior_pulls_the_fit():
    """γ = −1.2 lies outside the search, so the estimates are off; the intervals must not be."""
    rng = np.random.default_rng(8)
    n = N
    true_factor = ((13 - 8) / 6) ** (1 / -0.4)
    hits, flagged = [], []
    for _ in range(40):
        noise = rng.standard_normal((2, len(n))) * np.sqrt(0.02 + 2 / n)
        a, b = (
            build_curve(group_runs(n, e), cw.types.Unit("percent"), learner=k)
            for k, e in {"a": 11 + 2 * (n / 400) ** -1.2 + noise[0], "b": 8 + 6 * (n / 400) ** -0.4 + noise[1]}.items()
        )
        c = cw.compare_learning_curves(a, b, at=400)
        hits.append(true_factor in c.data_equivalence)
        flagged.append(a.beyond != "law")
        assert c.data_equivalence.low < c.data_equivalence.high
        assert not c.data_equivalence.outside
    assert np.mean(hits) > 0.85
    assert any(flagged)


@pytest.mark.parametrize("at", [0, -1, np.nan, np.inf])
def test_at_is_checked(simulated, at):
    curve = cw.fit_learning_curve(*simulated, unit="percent")
    for ask in (
        lambda: cw.compare_learning_curves(curve, curve, at=at),
        lambda: cw.rank_learners([curve], at=at),
        lambda: cw.plan_sizes(curve, at=at),
        lambda: cw.learning.measure_stability(*simulated, unit="percent", at=at),
    ):
        with pytest.raises(cw.InputError, match="at="):
            ask()


def test_ranking_is_by_predicted_error():
    rng = np.random.default_rng(9)
    curves = [learner(rng, 10 + i, 120, str(i), slope=40 * i + 1) for i in range(4)]
    ranking = cw.rank_learners(curves, at=400)
    assert (np.diff(ranking.error) >= 0).all()


@pytest.mark.slow
def test_all_pairs_are_compared_and_corrected_for_their_number():
    rng = np.random.default_rng(11)
    curves = [learner(rng, 8, 100, "mid"), learner(rng, 5, 100, "low"), learner(rng, 14, 100, "high")]
    found = cw.compare_learners(curves)
    assert found.learners == ("low", "mid", "high")
    assert dict(zip(found.pairs, found.verdicts, strict=True)) == {
        ("mid", "low"): "b better",
        ("mid", "high"): "a better",
        ("low", "high"): "a better",
    }
    single = [cw.compare_learning_curves(*(c for n in pair for c in curves if c.learner == n)) for pair in found.pairs]
    assert found.pvalues.tolist() == pytest.approx([c.pvalue for c in single])
    assert found.adjusted.tolist() == pytest.approx(np.minimum(3 * found.pvalues, 1).tolist())
    assert all(d.width > c.error_difference.width for d, c in zip(found.differences, single, strict=True))
    assert "low is significantly better than all others" in found.summary()
    better = dict(zip(zip(*(found.readable()[k] for k in "ab"), strict=True), found.readable()["better"], strict=True))
    assert better == {("mid", "low"): "low", ("mid", "high"): "mid", ("low", "high"): "low"}


def test_one_learner_is_compared_with_the_others_and_scores_are_better_high():
    n = np.repeat([50, 100, 200, 400], 3)
    rng = np.random.default_rng(2)
    tops = {"good": 0.9, "same": 0.9, "bad": 0.7}
    fits = [
        cw.fit_learning_curve(
            n, t - n**-0.5 + rng.normal(0, 0.004, len(n)), unit="score", higher_is_better=True, learner=k
        )
        for k, t in tops.items()
    ]
    for base, said in (
        ("good", "good is significantly better than bad; not significantly different from same."),
        ("bad", "bad is significantly worse than good, same."),
    ):
        found = cw.compare_learners(fits, baseline=base)
        assert len(found.pairs) == 2
        assert found.summary().split(" Warning")[0].endswith(said)
    with pytest.raises(cw.InputError, match="is not among 'good', 'same', 'bad'"):
        cw.compare_learners(fits, baseline="best")


@pytest.mark.parametrize(("unit", "higher"), [("score", True), ("loss", False)])
def test_a_ranking_is_headed_by_its_unit(unit, higher):
    noise = np.random.default_rng(6).standard_normal((2, len(N))) * 0.1
    signs = {"unit": unit, "higher_is_better": higher}
    curves = [
        cw.fit_learning_curve(N, level + (-50 if higher else 50) * N**-0.5 + noise[i], learner=name, **signs)
        for i, (name, level) in enumerate({"one": 70.0, "two": 90.0}.items())
    ]
    ranking = cw.rank_learners(curves)
    assert list(ranking.readable()) == ["learner", unit, "chance of being best"]
    assert ranking.readable()[unit][0].bold
    assert "error" in ranking.columns()  # the machine's name is the same in every unit


def test_a_p_value_at_its_floor_is_an_upper_bound():
    noise = np.random.default_rng(7).standard_normal((3, len(N))) * 0.01
    curves = [
        cw.fit_learning_curve(N, level + 50 * N**-0.5 + noise[i], unit="percent", learner=name)
        for i, (name, level) in enumerate({"one": 10.0, "two": 30.0, "three": 50.0}.items())
    ]
    assert "(p < 0.001)" in cw.compare_learning_curves(*curves[:2]).sentences()
    assert {cell.text for cell in cw.compare_learners(curves).readable()["adjusted p"]} == {"< 0.001"}


def three(rng, n, runs, spread, names="abc"):
    """Learners of the same true curve, 2 + 160 n^-½."""
    sizes = np.repeat(n, runs)
    return [
        build_curve(
            group_runs(sizes, 2 + 160 * sizes**-0.5 + spread(sizes) * rng.standard_normal(len(sizes))),
            cw.types.Unit("percent"),
            learner=name,
        )
        for name in names
    ]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("form", ["power", "auto"])
def test_a_better_learner_and_an_interval_that_contains_0_never_stand_in_one_row(seed, form):
    rng = np.random.default_rng(seed)
    n = np.repeat([50.0, 100, 200, 400], 3)
    runs = {k: (n, rng.uniform(2, 3) + 160 * n**-0.5 + rng.normal(0, 0.4, len(n))) for k in "abcd"}
    found = cw.compare_learners(runs, form=form, unit="percent", baseline=None if seed else "b")
    for difference, p, verdict in zip(found.differences, found.adjusted, found.verdicts, strict=True):
        assert (verdict == "undecided") == (0.0 in difference)
        assert (verdict == "undecided") == (p > 0.05)
        assert verdict == "undecided" or (verdict == "a better") == (difference.high < 0)
    assert found.adjusted == pytest.approx(np.minimum(len(found.pairs) * found.pvalues, 1))
    assert "Bonferroni" in found.summary()
    assert "simultaneous 95%" in found.table()


@pytest.mark.slow
def test_intervals_of_all_pairs_hold_together():
    """Three equal learners, noise that falls with n: all three intervals contain 0 in 95% or more."""
    rng = np.random.default_rng(4)
    held = [
        all(
            0.0 in d
            for d in cw.compare_learners(three(rng, [50.0, 100, 200, 400], 3, lambda n: 8 * n**-0.5)).differences
        )
        for _ in range(100)
    ]
    assert np.mean(held) > 0.92


@pytest.mark.slow
def test_a_crossing_is_shown_only_where_both_sides_are_significant():
    rng = np.random.default_rng(0)
    open_ended, inside = 0, 0
    for _ in range(8):
        # They cross at n = 1,600, beyond the sizes measured.
        c = cw.compare_learning_curves(learner(rng, 8, 120, "steep"), learner(rng, 9.5, 60, "flat"))
        known = c.crossing.low > 0 and c.crossing.high < np.inf
        assert known or np.isnan(c.crossing.estimate)
        # The fitted curves cross in the picture: the sentence says why this is not evidence.
        unshown = "but the data do not show it: each learner would have to be significantly better on its side"
        assert ("The curves cross near" in c.summary()) == bool(np.isfinite(c.crossing.estimate))
        assert (unshown in c.summary()) == (np.isnan(c.crossing.estimate) and c._meets < 4000)
        assert "not shown" in str(c.readable()["estimate"][2]) or known or not c._meets < 4000
        open_ended += not known
        c = cw.compare_learning_curves(learner(rng, 8, 150, "steep"), learner(rng, 14, 90, "flat"))
        inside += bool(np.isfinite(c.crossing.estimate))
    assert open_ended > 4
    assert inside > 4


def test_no_crossing_is_shown_where_a_law_is_not_followed():
    """The error of one learner falls as 1/n, and the prior makes its law negative; they cross beyond the data."""
    rng = np.random.default_rng(1)
    n = np.repeat([50.0, 100, 200, 400], 20)
    steep = 40 * (50 / n) * np.exp(rng.normal(0, 0.01, len(n)))
    flat = 3 + 2 * (n / 50) ** -0.5 + rng.normal(0, 0.02, len(n))
    a, b = (
        build_curve(group_runs(n, e), cw.types.Unit("percent"), learner=k)
        for k, e in (("steep", steep), ("flat", flat))
    )
    assert a.beyond == "constrained"
    assert a.is_supported_at(400)
    assert not a.is_supported_at(500)
    c = cw.compare_learning_curves(a, b)
    gap = [a.error_at(x) - b.error_at(x) for x in (400, 3200)]
    assert gap[0] > 0 > gap[1]
    assert np.isnan(c.crossing.estimate)
    assert "so far out they do not follow the fitted laws" in c.summary()


def test_the_factor_is_that_of_the_learner_that_needs_more_data():
    rng = np.random.default_rng(5)
    good, bad = learner(rng, 8, 120, "good"), learner(rng, 8, 160, "bad")
    one, two = cw.compare_learning_curves(good, bad), cw.compare_learning_curves(bad, good)
    for c in (one, two):
        worse, better, factor = c.worse_first
        assert (worse, better) == ("bad", "good")
        assert factor.estimate > 1
        assert "bad would need" in c.summary()
        assert c.readable()["quantity"][-1] == "data that bad needs to match good"
    assert tuple(one.worse_first[2]) == pytest.approx(tuple(two.worse_first[2]))
    assert one.data_equivalence == one.worse_first[2]
    assert two.data_equivalence_of_a == two.worse_first[2]
    # To match the worse one at N, the better one needs less than N.
    assert two.data_equivalence.estimate < 1


def test_the_worse_of_two_scores_is_the_lower():
    n = np.repeat([50, 100, 200, 400], 3)
    wiggle = np.tile([-0.003, 0.0, 0.003], 4)
    fits = [
        cw.fit_learning_curve(n, t - n**-0.5 + wiggle, unit="score", higher_is_better=True, learner=k)
        for k, t in {"low": 0.8, "high": 0.9}.items()
    ]
    assert cw.compare_learning_curves(*fits).worse_first[:2] == ("low", "high")


def test_comparing_beyond_the_sizes_measured_warns():
    rng = np.random.default_rng(6)
    a, b = learner(rng, 8, 120, "a"), learner(rng, 9, 120, "b")
    told = (
        "n = 1,000 is 2.5 times the largest size measured: the comparison rests on the form of the curves. form='auto'"
        " predicts better there, with intervals calibrated on real curves."
    )
    assert told in cw.compare_learning_curves(a, b, at=1000).warnings
    assert told in cw.compare_learners([a, b], at=1000).warnings
    assert told.replace("comparison", "ranking") in cw.rank_learners([a, b], 1000).warnings
    assert not any("largest size" in w for w in cw.compare_learning_curves(a, b, at=400).warnings)


def test_comparing_below_the_sizes_measured_warns():
    rng = np.random.default_rng(6)
    a, b = learner(rng, 8, 120, "a"), learner(rng, 9, 120, "b")
    below = "n = 10 is below the smallest size measured (25): the comparison rests on the form of the curves."
    assert any(w.startswith(below) for w in cw.compare_learning_curves(a, b, at=10).warnings)
    assert any("below the smallest size" in w for w in cw.rank_learners([a, b], 10).warnings)
    assert not any("smallest size measured" in w for w in cw.compare_learning_curves(a, b, at=25).warnings)
    pytest.importorskip("pandas")  # the prediction is a table
    with pytest.warns(CurvewiseWarning, match="n = 10 is below the smallest size measured"):
        a.predict([10, 100])


def test_measurements_and_tables_are_fitted_first(errors):
    pytest.importorskip("pandas")
    m = cw.load_measurements(errors)
    curves = cw.fit_learning_curves(m)
    frame = m.frame().rename(columns={"value": "error"}) if "value" in m.frame() else m.frame()
    for given in (m, frame):
        ranking = cw.rank_learners(given, 800)
        assert ranking.learners == cw.rank_learners(curves, at=800).learners
        assert ranking.error == pytest.approx(cw.rank_learners(curves, at=800).error)
        assert cw.compare_learners(given, at=800).pvalues == pytest.approx(cw.compare_learners(curves, at=800).pvalues)
    assert cw.rank_learners(m, 800, form="auto").kind == "prediction"
    with pytest.raises(cw.InputError, match="form='auto' is for measurements that are yet to be fitted"):
        cw.rank_learners(curves, 800, form="auto")
    with pytest.raises(cw.InputError, match="holds a str"):
        cw.rank_learners(["a"], 800)


@pytest.mark.slow
def test_the_prediction_is_the_median_of_the_chances():
    """Three learners at four times the data: stated chances are as good as they are stated."""
    rng = np.random.default_rng(7)
    said, right = [], []
    n = np.repeat([50.0, 100, 200, 400, 800], 3)
    for _ in range(60):
        true = [(25 * np.exp(0.1 * rng.standard_normal()), -0.6 * np.exp(0.15 * rng.standard_normal())) for _ in "abc"]
        runs = {
            k: (n, 1 + c * (n / 50) ** g + rng.normal(0, 3, len(n)) * np.sqrt(50 / n))
            for k, (c, g) in zip("abc", true, strict=True)
        }
        found = cw.rank_learners(runs, 3200, unit="percent")
        best = "abc"[int(np.argmin([c * 64**g for c, g in true]))]
        said.append(found.probability_best[0])
        right.append(found.learners[0] == best)
    assert np.mean(right) > np.mean(said) - 0.12


PUBLISHED = {
    "pretr_ft": (
        *(42.91, 40.49, 42.38, 47.9, 46.75, 47.4, 44.3, 45.67, 46.62, 42.71),
        *(32.35, 32.77, 32.17, 31.63, 32.6, 32.73, 32.57, 31.93),
        *(26.37, 26.43, 26.47, 26.37, 21.72, 22.48, 18.88),
    ),
    "no_pretr_ft": (
        *(74.04, 74.48, 74.07, 74.4, 75.95, 74.97, 74.02, 75.8, 74.6, 74.27),
        *(57.59, 58.45, 58.13, 58.44, 59.46, 58.14, 58.71, 58.22),
        *(45.01, 43.64, 45.06, 44.63, 35.36, 35.2, 27.92),
    ),
}
"""Errors in percent of Hoiem et al. 2021, with and without pretraining."""


def published(name, form="power", **options):
    n = np.repeat([25.0, 50, 100, 200, 400], [10, 8, 4, 2, 1])
    data = group_runs(n, np.array(PUBLISHED[name]))
    return build_curve(data, cw.types.Unit("percent"), learner=name, form=form, **options)


def test_a_crossing_beyond_what_the_data_support_is_called_an_extrapolation():
    c = cw.compare_learning_curves(published("pretr_ft"), published("no_pretr_ft"))
    assert c.crossing.estimate > 4000
    (told,) = [w for w in c.warnings if "crossing" in w]
    assert told.startswith("The crossing near n = 4,200 is an extrapolation: it lies beyond four times the largest")
    assert told in c.to_dict()["warnings"]
    rng = np.random.default_rng(0)
    near = cw.compare_learning_curves(learner(rng, 8, 150, "steep"), learner(rng, 14, 90, "flat"))
    assert 50 < near.crossing.estimate < 200
    assert not any("crossing" in w for w in near.warnings)


@pytest.mark.parametrize(("form", "kind"), [("power", "confidence"), ("auto", "prediction")])
def test_intervals_have_the_kind_that_the_text_names(form, kind):
    c = cw.compare_learning_curves(published("pretr_ft", form), published("no_pretr_ft", form))
    found = (c.error_difference, c.crossing, c.data_equivalence, c.data_equivalence_of_a)
    assert [i.kind for i in found] == [kind] * 4
    assert f"95% {kind} intervals" in c.table_note()
    # That of β_N is by the likelihood of the power law under both forms.
    assert c.data_reliance_difference.kind == "confidence"
    named = "β_N difference (confidence)" in c.readable()["quantity"]
    assert named == (kind == "prediction")


def test_estimates_that_the_prior_draws_to_the_edge_of_their_intervals_are_named():
    curve = published("pretr_ft")
    gamma, reliance = curve.gamma_interval(), curve.interval_at().data_reliance
    assert max((i.high - i.estimate) / i.width for i in (gamma, reliance)) < 0.05
    told = "The prior on γ draws the estimates of γ and β_N to the edge of their 95% intervals"
    assert any(w.startswith(told) for w in curve.warnings_at(400))
    calm = (
        published("no_pretr_ft"),
        published("pretr_ft", "auto"),
        published("pretr_ft", constants=cw.learning.Constants(prior=0.0)),
    )
    assert not any("draws" in w for c in calm for w in c.all_warnings)


def test_a_law_that_rises_below_the_data_reaches_errors_beyond_them_only():
    """With δ < 0 the law is 0 at n = 0.4: the errors that it has before its peak are those of no training size."""
    n = np.array([25.0, 50, 100, 200, 400])
    measured = {"tuned": 13 + 194 * n**-0.57, "linear": np.array([45.6, 41.1, 37.3, 34.7, 32.2])}
    runs = {name: (n, error) for name, error in measured.items()}
    with pytest.warns(CurvewiseWarning):
        curves = cw.fit_learning_curves(runs, unit="percent", form="sqrt2")
    assert curves["linear"].error_at(0.4) == 0
    found = cw.compare_learning_curves(curves["linear"], curves["tuned"])
    assert found.verdict == "b better"
    assert found.data_equivalence_of_a.estimate == np.inf
    assert found.data_equivalence_of_a.low > 1
    assert 0 < found.data_equivalence.high < 1
    reach = curves["linear"].samples_to_reach(26)
    assert reach.estimate == reach.curve_reaches == np.inf
    assert reach.low > 400


def test_curves_of_one_name_are_told_apart():
    rng = np.random.default_rng(0)
    a, b = learner(rng, 5, 100, "net"), learner(rng, 9, 150, "net")
    found = cw.compare_learning_curves(a, b)
    assert (found.a, found.b, found.verdict) == ("net (a)", "net (b)", "a better")
    assert found.sentences().startswith("net (a) is significantly better than net (b) at")
    assert found.worse_first[:2] == ("net (b)", "net (a)")


def test_intervals_of_two_forms_are_called_the_same_in_either_order():
    rng = np.random.default_rng(0)
    a, b = learner(rng, 5, 100, "a"), learner(rng, 9, 150, "b", form="last")
    there, back = cw.compare_learning_curves(a, b), cw.compare_learning_curves(b, a)
    assert there.error_difference.kind == back.error_difference.kind == "confidence and prediction"
    assert cw.rank_learners([b, a]).kind == there.data_equivalence.kind == "confidence and prediction"
