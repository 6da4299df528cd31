"""Curves that misbehave: flagged in words, never a crash, never silent nonsense."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import curvewise as cw
from curvewise import learning
from curvewise.errors import CurvewiseWarning, InputError

pytestmark = pytest.mark.filterwarnings("ignore:n = .* is (more than four times|below) the")

N5 = np.array([25, 50, 100, 200, 400.0])
FORMS = ["power", "sqrt", "power2", "sqrt2", "auto", "constrained", "last"]
# Every ensemble is made and asked in the same way.
ONE_ENSEMBLE = [
    pytest.param(form, marks=pytest.mark.slow) if form in ("constrained", "last") else form for form in FORMS
]

CASES = {
    "two sizes": ([100, 100, 800, 800], [20.0, 21.0, 12.0, 12.5], "2 sizes cannot determine"),
    "one run per size": (N5, 8 + 150 * N5**-0.5, "One run per size"),
    "zero variance": (np.repeat(N5, 2), np.repeat(8 + 150 * N5**-0.5, 2), "agree exactly"),
    "rising": (np.repeat(N5, 2), np.repeat([10, 12, 14, 17, 20.0], 2) + [0, 0.1] * 5, "rises with"),
    "peak": (np.repeat(N5, 3), np.repeat([40, 20, 35, 15, 10.0], 3) + np.tile([0, 0.2, 0.4], 5), "a peak or a dip"),
    "plateau": (np.repeat(N5, 3), np.full(15, 30.0) + np.tile([-1, 0.1, 1.2], 5), "No fall is shown: the means"),
    "close sizes": ([100, 100, 150, 150, 200, 200], [20, 20.5, 18, 18.3, 16, 16.5], "factor of 2.0"),
    "constant": (N5, np.full(5, 30.0), "No fall is shown: the means"),
    "all zero": (N5, np.zeros(5), "No fall is shown: the means"),
    "all wrong": (N5, np.full(5, 100.0), "No fall is shown: the means"),
    "huge sizes": (np.array([1e9, 1e10, 1e11, 1e12]), [20, 15, 12, 10.5], "One run per size"),
    "tiny sizes": (np.array([1, 2, 3, 4, 5.0]), [80, 60, 50, 44, 40.0], "One run per size"),
}


def fit_quietly(*arguments, **options):
    """Fit, and check that Python warnings and those on the result are the same."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        curve = cw.fit_learning_curve(*arguments, **options)
    assert tuple(str(w.message) for w in caught) == curve.warnings
    assert all(w.category is CurvewiseWarning for w in caught)
    return curve


def flagged(curve, text):
    return any(text in w for w in curve.warnings)


@pytest.mark.parametrize("form", ONE_ENSEMBLE)
@pytest.mark.parametrize("case", CASES)
def test_flagged_and_finite(case, form):
    n, error, message = CASES[case]
    curve = fit_quietly(n, error, unit="percent", form=form)
    if form == "power":
        assert any(message in w for w in curve.warnings), curve.warnings
    assert np.isfinite(curve.error_at())
    assert curve.error_at() == pytest.approx(curve.mean[-1], abs=8)
    at = curve.interval_at(2 * curve.largest_n)
    assert not np.isnan([at.error.low, at.error.high]).any()
    assert at.error.low <= at.error.high
    assert isinstance(curve.summary(), str)
    assert curve.to_dict()["warnings"] == list(curve.all_warnings)
    answer = curve.samples_to_reach(5.0)
    assert not np.isnan(answer.estimate)


def test_a_well_behaved_curve_is_not_flagged(simulated):
    assert cw.fit_learning_curve(*simulated, unit="percent").warnings == ()


def test_gamma_far_from_half_is_flagged():
    n = np.repeat(N5, 4)
    error = 10 + 3000 * n**-1.2 + np.tile([-0.1, 0, 0.05, 0.1], 5)
    assert flagged(fit_quietly(n, error, unit="percent"), "far from the usual −½")


def test_poor_fit_is_flagged():
    """A curve that drops in one step is no power law."""
    n = np.repeat(N5, 4)
    error = np.repeat([80, 79, 78, 30, 29.0], 4) + np.tile([-0.2, 0, 0.1, 0.2], 5)
    assert flagged(fit_quietly(n, error, unit="percent"), "lack of fit")


def test_negative_asymptote_is_flagged():
    n = np.repeat(N5, 4)
    error = np.maximum(-20 + 120 * n**-0.2, 0) + np.tile([0, 0.1, 0.2, 0.3], 5)
    assert flagged(fit_quietly(n, error, unit="percent"), "The fitted law falls below 0: beyond n = 400 answers follow")


@pytest.mark.parametrize("form", FORMS)
def test_one_size_is_no_curve_and_says_what_is_known(form):
    known = r"20% \[17\.5\d*, 22\.4\d*\] over 3 run"
    with pytest.raises(cw.InputError, match=known):
        cw.fit_learning_curve([100, 100, 100], [20.0, 21.0, 19.0], unit="percent", form=form)
    with pytest.raises(cw.InputError, match=r"one training size only \(100\).*0\.2 over 1 run"):
        cw.fit_learning_curve([100], [0.2], form=form)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        both = cw.fit_learning_curves({"one": ([100], [0.2]), "two": ([100, 200, 400], [0.3, 0.2, 0.15])}, form=form)
    assert list(both.curves) == ["two"]
    assert "one training size only" in both.failures["one"]


def test_impossible_errors_are_not_answers():
    """A law that falls below 0 is not followed beyond the data."""
    pytest.importorskip("pandas")
    n = np.repeat(N5, 4)
    error = np.maximum(-20 + 120 * n**-0.2, 0) + np.tile([0, 0.1, 0.2, 0.3], 5)
    curve = fit_quietly(n, error, unit="percent")
    assert curve.alpha < 0  # as published
    assert curve.beyond == "constrained"
    table = curve.predict([400, 1e6])
    assert table["error"][0] == pytest.approx(curve.alpha + curve.eta * 400**curve.gamma)
    assert 0 <= table["error"][1] < table["error"][0]
    assert table["low"][1] == 0
    assert 0 <= curve.asymptote.estimate <= table["error"][1]
    far = cw.rank_learners([curve], at=1e6)
    assert far.error[0] == pytest.approx(table["error"][1])


@pytest.mark.parametrize("seed", range(30))
def test_no_estimate_lies_outside_its_interval(seed):
    """Whatever the prior on γ does to the fit."""
    pytest.importorskip("pandas")
    rng = np.random.default_rng(seed)
    sizes = np.unique(rng.integers(10, 4000, rng.integers(2, 7)))
    n = np.repeat(sizes, rng.integers(1, 4, len(sizes)))
    curves = []
    for name in "ab":
        error = 40 * rng.random() + 300 * n ** -rng.uniform(0.05, 1.5)
        error = np.clip(error + rng.normal(size=len(n)) * rng.choice([0.01, 1, 5]), 0, 100)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CurvewiseWarning)
            curve = cw.fit_learning_curve(n, error, unit="percent", learner=name)
        curves.append(curve)
        for at in (None, 4.0 * n[-1], np.inf):
            i = curve.interval_at(at)
            for quantity in (i.error, i.data_reliance, i.large_sample):
                assert not quantity.outside
        table = curve.predict([5, 50, 500, 5e5], interval="confidence")
        assert (table["low"] <= table["error"]).all()
        assert (table["error"] <= table["high"]).all()
        assert table["error"].between(0, 100).all()
        reach = curve.samples_to_reach(10.0)
        assert np.isnan(reach.estimate) or reach.low <= reach.estimate <= reach.high
        budget = curve.budget([2.0 * n[-1]])
        assert budget["gain_low"][0] <= budget["gain"][0] <= budget["gain_high"][0]
    c = cw.compare_learning_curves(*curves)
    for quantity in (c.error_difference, c.data_reliance_difference, c.crossing, c.data_equivalence):
        assert not quantity.outside


def test_sizes_near_chance_are_flagged():
    n = np.repeat(N5, 2)
    error = np.repeat([0.89, 0.88, 0.7, 0.5, 0.4], 2) + [0, 0.002] * 5
    for form in ("power", "auto"):
        assert flagged(fit_quietly(n, error, chance=0.9, form=form), "within a tenth of chance")


def test_chance_caps_the_ensemble():
    n = np.repeat(N5, 2)
    error = np.repeat([0.8, 0.7, 0.6, 0.5, 0.4], 2) + [0, 0.01] * 5
    curve = cw.fit_learning_curve(n, error, chance=0.9, form="auto")
    assert curve.error_at(1) <= 0.9 + 1e-9


def test_accuracy_chance_is_an_accuracy():
    n = np.repeat(N5, 2)
    accuracy = 1 - (np.repeat([0.8, 0.7, 0.6, 0.5, 0.4], 2) + [0, 0.01] * 5)
    curve = cw.fit_learning_curve(n, accuracy, chance=0.1, form="auto", higher_is_better=True)
    assert curve.error_at(1) <= 0.9 + 1e-9


def test_lack_of_fit_pvalue_is_uniform_under_the_model():
    from curvewise.learning.diagnosis import lack_of_fit
    from curvewise.learning.power import group_runs

    rng = np.random.default_rng(0)
    n = np.repeat(N5, 4)
    p = []
    for _ in range(300):
        error = 10 + 100 * n**-0.5 + rng.standard_normal(len(n))
        data = group_runs(n, error)
        design = np.stack([np.ones(5), N5**-0.5], axis=1)
        theta, *_ = np.linalg.lstsq(design, data.mean, rcond=None)
        p.append(lack_of_fit(data, design @ theta, np.ones(5), 2))
    assert abs(np.mean(np.array(p) < 0.1) - 0.1) < 0.06
    assert abs(np.mean(p) - 0.5) < 0.06


def test_lack_of_fit_needs_replicates():
    from curvewise.learning.diagnosis import lack_of_fit
    from curvewise.learning.power import group_runs

    data = group_runs(N5, 10 + 100 * N5**-0.5)
    assert np.isnan(lack_of_fit(data, data.mean, np.ones(5), 3))


def test_looks_like_fractions():
    curve = fit_quietly(N5, np.array([0.5, 0.4, 0.3, 0.25, 0.2]), unit="percent")
    assert flagged(curve, "unit='fraction'")
    auto = fit_quietly(N5, np.array([0.5, 0.4, 0.3, 0.25, 0.2]), unit="percent", form="auto")
    assert flagged(auto, "unit='fraction'")
    accuracy = fit_quietly(N5, 1 - np.array([0.5, 0.4, 0.3, 0.25, 0.2]), unit="percent", higher_is_better=True)
    assert flagged(accuracy, "unit='fraction'")


def test_spread_that_does_not_fall_is_flagged():
    from curvewise.learning.diagnosis import spread_trend
    from curvewise.learning.power import group_runs

    rng = np.random.default_rng(0)
    for runs, power in (([16, 8, 8, 8, 8], 0.8), ([2] * 5, 0.0), ([16, 8, 4, 2, 1], 0.0)):
        n = np.repeat(N5, runs)
        p = {"modelled": [], "constant": []}
        for _ in range(400):
            z = rng.standard_normal(len(n))
            for name, spread in {"modelled": np.sqrt(0.02 + 20 / n), "constant": 1.0}.items():
                data = group_runs(n, 20 + 100 * n**-0.5 + z * spread)
                p[name].append(spread_trend(data, data.run_variance(0.02)))
        assert np.mean(np.array(p["modelled"]) < 0.005) < 0.02
        assert np.mean(np.array(p["constant"]) < 0.005) >= power
    n = np.repeat(N5, [16, 8, 8, 8, 8])
    noisy = 20 + 100 * n**-0.5 + np.random.default_rng(1).standard_normal(len(n))
    paper = cw.learning.Constants(noise="paper")
    assert flagged(fit_quietly(n, noisy, unit="percent", constants=paper), "does not fall with n")
    assert fit_quietly(n, noisy, unit="percent").warnings == ()  # estimated noise allows for it


def test_copies_of_the_same_runs_are_flagged():
    """Through rounding, the variance of equal numbers need not be exactly 0."""
    error = 8 + 150 * N5**-0.5 + np.array([0.1, -0.2, 0.15, 0.07, -0.03])
    curve = fit_quietly(np.tile(N5, 3), np.tile(error, 3) / 100)
    assert flagged(curve, "agree exactly")


def test_scores_near_chance_are_flagged():
    n = np.repeat(N5, 2)
    score = np.repeat([0.70, 0.72, 0.8, 0.85, 0.9], 2) + [0, 0.001] * 5
    curve = fit_quietly(n, score, unit="score", higher_is_better=True, chance=0.7)
    assert flagged(curve, "within a tenth of chance")


def test_gamma_at_the_end_of_the_search_is_said():
    n = np.repeat(N5, 8)
    noise = np.random.default_rng(0).standard_normal(len(n)) * 0.05
    curve = fit_quietly(n, 10 + 3000 * n**-1.6 + noise, unit="percent")
    assert flagged(curve, "end of the range searched")


def test_masked_and_textual_input_is_refused():
    masked = np.ma.masked_array([0.3, 0.2, 0.9], mask=[0, 0, 1])
    with pytest.raises(cw.InputError, match="masked"):
        cw.fit_learning_curve([1, 2, 3], masked)
    with pytest.raises(cw.InputError, match="must hold numbers"):
        cw.fit_learning_curve(["a", "b"], [0.3, 0.2])
    with pytest.raises(cw.InputError, match="rescale"):
        cw.fit_learning_curve([1, 2, 3], [3e-300, 2e-300, 1e-300], unit="loss")


def test_a_power_law_still_at_chance_may_fall():
    pytest.importorskip("pandas")
    n = np.repeat([100, 200, 400, 800, 1600], 3)
    error = 0.9 + 0.004 * np.random.default_rng(4).standard_normal(15)
    curve = fit_quietly(n, error, chance=0.9)
    assert curve.predict([1600.0])["low"][0] > 0.8
    assert curve.predict([160_000.0])["low"][0] == 0
    reach = curve.samples_to_reach(0.5)
    assert np.isnan(reach.probability_never)
    assert np.isfinite(reach.low)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        many = cw.fit_learning_curves({"a": (n, error)}, chance=0.9)["a"]
        auto = cw.fit_learning_curves({"a": (n, error)}, chance=0.9, form="auto")["a"]
    assert many.predict([160_000.0]).equals(curve.predict([160_000.0]))
    assert many.warnings == curve.warnings
    assert auto.predict([160_000.0])["low"][0] == 0


def test_learners_that_could_not_be_fitted_are_named_in_the_ranking():
    n = np.repeat(N5, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        curves = cw.fit_learning_curves({"net": (n, 0.1 + n**-0.5 + 0.001 * np.arange(10)), "svm": ([100.0], [0.2])})
    assert any(w.startswith("svm could not be fitted") for w in cw.rank_learners(curves).warnings)
    with pytest.raises(cw.InputError, match=r"'svm': could not be fitted. n holds one training size"):
        curves["svm"]


def test_an_interval_wholly_below_zero_says_nothing():
    pytest.importorskip("pandas")
    n = np.repeat(N5, 4)
    error = 200 * n**-0.5 - 9.9 + np.tile([0, 0.01, 0.02, 0.03], 5)
    curve = fit_quietly(n, error, unit="percent", form="sqrt")
    assert curve.alpha < -9
    table = curve.predict([1e9], interval="confidence")
    assert (table["low"][0], table["high"][0]) == (0, 100)
    budget = curve.budget([1e9])
    assert budget["gain_high"][0] <= curve.interval_at().error.high


SIZES = [25, 25, 50, 50, 100, 100, 200, 200]
ERRORS = [50.0, 52.0, 40.0, 41.0, 33.0, 32.0, 27.0, 28.0]


@pytest.mark.parametrize(
    ("ask", "argument"),
    [
        (lambda curve: curve.predict([]), "n"),
        (lambda curve: curve.predict(800, "prediction", runs="many"), "runs"),
        (lambda curve: curve.budget([]), "n"),
        (lambda curve: curve.budget(800, cost_per_sample="free"), "cost_per_sample"),
        (lambda curve: curve.samples_to_reach([15, 20]), "error"),
        (lambda curve: curve.samples_to_reach(float("nan")), "error"),
        (lambda curve: learning.check_variance_model(curve, draws=0), "draws"),
        (lambda curve: learning.measure_stability(SIZES, ERRORS, unit="percent", forms=[]), "forms"),
        (lambda curve: learning.measure_stability(SIZES, ERRORS, unit="percent", draws=2.5), "draws"),
        (lambda curve: learning.leave_one_size_out(SIZES, ERRORS, unit="percent", weights=[]), "weights"),
        (lambda curve: curve.bootstrap(3, rng=-1), "rng"),
        (lambda curve: learning.check_variance_model(curve, rng="a"), "rng"),
        (lambda curve: cw.fit_learning_curve(SIZES, ERRORS, unit="percent", constants=3), "constants"),
        (lambda curve: cw.fit_learning_curve(SIZES, ERRORS, unit="percent", largest=3, constants=3), "constants"),
        (lambda curve: learning.measure_stability(SIZES, ERRORS, unit="percent", constants=3), "constants"),
        (lambda curve: cw.rank_learners([curve, curve]), "curves"),
    ],
)
def test_questions_that_have_no_answer_name_the_argument(ask, argument):
    with pytest.raises(InputError) as caught:
        ask(cw.fit_learning_curve(SIZES, ERRORS, unit="percent"))
    assert caught.value.argument == argument


def test_one_form_may_be_named_without_a_list():
    one, listed = (
        learning.leave_one_size_out(SIZES, ERRORS, unit="percent", forms=forms) for forms in ("power", ["power"])
    )
    assert one.forms == listed.forms == ("power",)
    assert learning.measure_stability(SIZES, ERRORS, unit="percent", forms="sqrt").forms == ("sqrt",)


def test_curves_in_a_dict_have_the_names_of_its_keys():
    low, high = (cw.fit_learning_curve(SIZES, [e + more for e in ERRORS], unit="percent") for more in (0, 9))
    found = learning.compare_learners({"new": low, "old": high})
    assert found.learners == ("new", "old")
    assert found.pairs == (("new", "old"),)
    assert found.verdicts == ("a better",)
    assert learning.rank_learners({"new": low, "old": high}).learners == ("new", "old")
    with pytest.raises(InputError, match="holds a tuple"):
        learning.compare_learners({"new": low, "old": (SIZES, ERRORS)})


def test_a_missing_learner_of_pandas_is_refused():
    pd = pytest.importorskip("pandas")
    names = pd.array(["a", "a", "a", pd.NA, pd.NA, pd.NA], dtype="string")
    frame = pd.DataFrame({"learner": names, "n": [25, 50, 100] * 2, "error": [0.3, 0.2, 0.1] * 2})
    with pytest.raises(InputError, match="name every learner"):
        cw.fit_learning_curves(frame)


def test_runs_without_a_learner_are_not_pooled_when_a_size_is_left_out():
    n, error = [100, 200, 400] * 2, [0.3, 0.2, 0.15, 0.4, 0.3, 0.25]
    with pytest.raises(InputError, match="name every learner"):
        cw.leave_one_size_out(n, error, learner=["a"] * 3 + [None] * 3)


def test_numbers_of_runs_and_refits_are_whole():
    curve = cw.fit_learning_curve([100, 100, 200, 200, 400, 400], [0.3, 0.31, 0.2, 0.21, 0.15, 0.16])
    with pytest.raises(InputError, match="max_runs=nan"):
        cw.learning.plan_sizes(curve, max_runs=float("nan"))
    with pytest.raises(InputError, match="refits="):
        curve.bootstrap(2.5)


@pytest.mark.parametrize("names", [("learner", "n", "error"), ("model", "size", "accuracy")])
def test_tables_of_pyarrow_are_fitted(names):
    pa = pytest.importorskip("pyarrow")
    error = np.array([0.3, 0.31, 0.2, 0.21, 0.15, 0.16])
    columns = ["a"] * 6, [100, 100, 200, 200, 400, 400], error if "error" in names else 1 - error
    table = dict(zip(names, columns, strict=True))
    found = cw.fit_learning_curves(pa.table(table))["a"]
    assert found.error_at(400) == cw.fit_learning_curves(table)["a"].error_at(400)


@pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")
def test_a_variance_that_is_not_used_is_said():
    rows = {"n": [100, 200, 400, 800], "error": [0.3, 0.24, 0.19, 0.15], "std": [0.01] * 4}
    with pytest.warns(CurvewiseWarning, match="variance of the means is not used"):
        cw.fit_learning_curves(cw.load_measurements(rows))
    known = cw.fit_learning_curves(cw.load_measurements({**rows, "runs": [5] * 4}))
    assert known.general_warnings == ()


def test_a_blind_guess_is_one_number():
    with pytest.raises(cw.InputError, match="must be a fraction from 0 to 1"):
        cw.fit_learning_curve([10, 20, 40], [0.5, 0.4, 0.3], chance=[0.5, 0.9])
