"""Beyond the largest size one function of n answers every question: it never rises and is always possible."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest

import curvewise as cw
from curvewise.errors import CurvewiseWarning
from curvewise.learning.extrapolation import MEMBERS, continue_curve, fit_ensemble
from curvewise.learning.fit import build_curve
from curvewise.learning.power import group_runs
from curvewise.types import Unit

# Three classifiers on scikit-learn's digits: errors in percent of 3 runs at each size, on 600 test images. The law of
# svm and of forest has a negative asymptote, that of logreg has not.
DIGITS = {
    "logreg": [[24.0, 22.83, 29.5], [14.5, 10.67, 14.17], [8.0, 6.67, 9.17], [5.67, 4.83, 6.33], [3.17, 3.67, 4.0]],
    "svm": [[25.67, 22.67, 31.17], [14.67, 7.17, 14.0], [7.33, 4.67, 7.17], [5.0, 2.67, 4.17], [2.17, 1.67, 1.83]],
    "forest": [[31.17, 21.33, 31.0], [15.83, 11.33, 15.0], [9.33, 8.33, 9.0], [5.83, 7.33, 6.5], [4.0, 3.5, 4.0]],
}
SIZES = [50, 100, 200, 400, 800]
BEYOND = np.geomspace(800, 8e5, 60)


@cache
def digits(form: str = "power") -> cw.learning.LearningCurves:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        runs = {name: (np.repeat(SIZES, 3), np.ravel(errors)) for name, errors in DIGITS.items()}
        return cw.fit_learning_curves(runs, unit="percent", form=form)


def quietly(function, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        return function(*arguments, **options)


class TestOneFunction:
    """Tables, comparisons, rankings, budgets, inverses, pictures and reports agree."""

    def test_the_fit_itself_is_as_published(self) -> None:
        for curve in digits():
            law = curve.alpha + curve.eta * curve.n**curve.gamma
            assert curve.errors_at(curve.n) == pytest.approx(law)
            assert curve.interval_at().error.estimate == pytest.approx(law[-1])
            assert curve.beta_N == pytest.approx(-2 * curve.eta * curve.gamma * 800**curve.gamma)
        assert [curve.alpha < 0 for curve in digits()] == [False, True, True]
        assert [curve.beyond for curve in digits()] == ["law", "constrained", "constrained"]

    @pytest.mark.parametrize("form", ["power", "sqrt", "power2", "sqrt2", "auto", "constrained"])
    def test_it_never_rises_and_is_possible(self, form: str) -> None:
        for curve in digits(form):
            answers = curve.errors_at(BEYOND)
            assert (np.diff(answers) <= 0).all()
            assert (answers >= 0).all()
            band = curve.band(BEYOND)
            assert np.array_equal(band["error"], answers)
            assert (band["low"] <= answers).all()
            assert (answers <= band["high"]).all()

    def test_the_law_is_followed_where_it_can_be(self) -> None:
        logreg, svm, _ = digits()
        assert logreg.errors_at(BEYOND) == pytest.approx(logreg.alpha + logreg.eta * BEYOND**logreg.gamma)
        assert logreg.asymptote.estimate == pytest.approx(logreg.alpha)
        assert svm.asymptote.estimate == pytest.approx(svm.errors_at([np.inf])[0])
        assert 0 <= svm.asymptote.estimate < svm.error_at(1e9)

    @pytest.mark.slow
    def test_tables_rankings_and_differences(self) -> None:
        pytest.importorskip("pandas")
        curves = digits()
        table = quietly(curves.predict, [1600, 8000])
        assert list(table.columns) == ["learner", "n", "error", "low", "high"]
        at = dict(zip(zip(table["learner"], table["n"], strict=True), table["error"], strict=True))
        for curve in curves:
            alone = quietly(curve.predict, [1600, 8000])
            assert alone["error"].tolist() == [at[curve.learner, 1600], at[curve.learner, 8000]]
            assert curve.interval_at(8000).error.estimate == pytest.approx(at[curve.learner, 8000])
            assert curve.budget([8000])["error"][0] == pytest.approx(at[curve.learner, 8000])
        ranking = cw.rank_learners(curves, 8000)
        assert dict(zip(ranking.learners, ranking.error, strict=True)) == pytest.approx(
            {name: at[name, 8000] for name in curves.curves}
        )
        pairs = cw.compare_learners(curves, at=8000)
        for (a, b), difference in zip(pairs.pairs, pairs.differences, strict=True):
            assert difference.estimate == pytest.approx(at[a, 8000] - at[b, 8000])
            assert not difference.outside

    @pytest.mark.slow
    @pytest.mark.parametrize("form", ["power", "auto"])
    def test_the_inverse(self, form: str) -> None:
        for curve in list(digits(form))[:2]:
            for n in (300.0, 3000.0):
                found = curve.samples_to_reach(curve.error_at(n))
                assert found.curve_reaches == pytest.approx(n, rel=1e-6)
                assert found.low <= found.curve_reaches <= found.high

    def test_data_reliance_is_the_slope_of_the_answers(self) -> None:
        for curve in digits():
            for n in (2000.0, 50_000.0):
                ahead, behind = curve.errors_at([n * 1.0001, n / 1.0001])
                slope = (ahead - behind) / (2 * np.log(1.0001))
                assert curve.data_reliance_at(n) == pytest.approx(-2 * slope, rel=1e-4)

    def test_the_picture(self) -> None:
        pytest.importorskip("matplotlib")
        ax = digits().plot(to=8000)
        lines = [line for line in ax.lines if line.get_gid() == "curvewise-beyond"]
        for curve, line in zip(digits(), lines, strict=True):
            n, drawn = line.get_data()
            assert drawn == pytest.approx(curve.errors_at(n))

    def test_the_chart_of_a_report(self) -> None:
        pytest.importorskip("jinja2")
        from curvewise.report.charts import learning_chart

        chart = learning_chart(list(digits()))
        for curve, series in zip(digits(), chart["series"], strict=True):
            assert series["line"]["value"] == pytest.approx(curve.errors_at(chart["n"]), rel=1e-5)

    def test_one_warning_says_so_where_it_matters(self) -> None:
        logreg, svm, _ = digits()
        told = (
            "The fitted law falls below 0: beyond n = 800 answers follow a power law with α, η ≥ 0 instead. To"
            " extrapolate, use form='auto'."
        )
        assert logreg.all_warnings == ()
        assert svm.all_warnings == (told,)
        assert "With four times the data (n = 3,200) the predicted error is 0.66% [0.00, 2.7]." in svm.summary()
        assert svm.warnings_at(800) == ()
        assert cw.compare_learning_curves(svm, logreg, at=400).warnings == ()


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("gamma", [-0.3, -0.8, -1.0])
def test_no_answer_rises_or_is_impossible(alpha: float, gamma: float) -> None:
    """A small version of benchmarks/answers.py: 1 to 3 runs per size, noise that grows towards small n."""
    rng = np.random.default_rng(0)
    n = np.repeat(SIZES, rng.integers(1, 4, 5)).astype(float)
    true = alpha + 25 * (n / 50) ** gamma
    for _ in range(12):
        error = 100 * rng.binomial(600, true / 100) / 600 + 8 * np.sqrt(50 / n) * rng.standard_normal(len(n))
        runs = group_runs(n, np.clip(error, 0, 100))
        for form in ("power", "auto"):
            curve = build_curve(runs, Unit("percent"), form=form)
            answers = curve.errors_at(BEYOND)
            assert np.isfinite(answers).all()
            assert (answers >= 0).all()
            assert (np.diff(answers) <= 0).all()


def test_beyond_the_data_errors_are_smaller_than_those_of_the_law() -> None:
    """Errors that halve with each doubling: the prior on γ makes the law negative, answers stay near the truth."""
    rng = np.random.default_rng(1)
    n = np.repeat([125.0, 250, 500, 1000], 3)
    misses = []
    for _ in range(10):
        error = 15 * 125 / n * np.exp(rng.normal(0, 0.05, len(n)))
        curve = build_curve(group_runs(n, error), Unit("percent"))
        assert curve.beyond == "constrained"
        law = curve.alpha + curve.eta * 4000**curve.gamma
        misses.append([abs(max(law, 0) - 15 / 32), abs(curve.error_at(4000) - 15 / 32)])
    law, answer = np.median(misses, axis=0)
    assert answer < 0.35
    assert answer < law


class TestContinuation:
    """The power law with α, η ≥ 0 through a value at the last size."""

    n = np.array([50.0, 100, 200, 400])
    mean = np.array([30.0, 16.0, 8.4, 4.1])

    def test_it_has_the_shape_of_the_constrained_power_law(self) -> None:
        found = continue_curve(5.0, self.n, self.mean, None, 0.0)
        member = MEMBERS["constrained"]
        table = member(self.n, self.mean, None, 0.0)
        at = np.array([400.0, 800, 4000, 4e6])
        shape = member.predict(table, np.log(at / 400))
        assert found.predict(at) == pytest.approx(5.0 * shape / shape[0])
        assert found.predict(np.array([np.inf]))[0] == pytest.approx(5.0 * (table[:, 0] @ table[:, 1]) / shape[0])

    def test_without_a_value_it_is_that_law(self) -> None:
        found = continue_curve(None, self.n, self.mean, None, 0.0)
        law = MEMBERS["constrained"]
        at = np.array([400.0, 1000])
        assert found.predict(at) == pytest.approx(law.predict(law(self.n, self.mean, None, 0.0), np.log(at / 400)))

    @pytest.mark.parametrize("floor", [None, 0.0])
    def test_rising_data_are_held(self, floor: float | None) -> None:
        found = continue_curve(9.0, self.n, self.mean[::-1], None, floor)
        assert found.predict(np.array([800.0, 1e9])) == pytest.approx([9.0, 9.0])

    def test_errors_of_zero(self) -> None:
        found = continue_curve(0.0, self.n, np.zeros(4), None, 0.0)
        assert found.predict(np.array([800.0, np.inf])).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("unit", ["loss", "score"])
def test_losses_and_scores(unit: str) -> None:
    """Scores have no floor: they go on from the fit without a ratio, and in their own direction."""
    n = np.repeat(SIZES, 3).astype(float)
    wiggle = np.tile([-0.01, 0.0, 0.01], 5)
    falling = 3 * n**-0.9 + 0.002 * wiggle
    values = falling if unit == "loss" else 2 - 40 * falling
    curve = quietly(cw.fit_learning_curve, n, values, unit=unit, higher_is_better=unit == "score")
    answers = curve.errors_at(BEYOND)
    assert np.isfinite(answers).all()
    assert (np.diff(answers) * (1 if unit == "loss" else -1) <= 1e-12).all()
    assert unit == "score" or (answers >= 0).all()


def test_a_law_that_rises_is_not_followed() -> None:
    rng = np.random.default_rng(3)
    n = np.repeat(SIZES, 2).astype(float)
    error = 20 + 3 * np.log(n / 50) + rng.normal(0, 0.3, len(n))
    curve = build_curve(group_runs(n, error), Unit("percent"))
    assert curve.eta < 0
    assert "The fitted law rises with more data: beyond n = 800" in curve.all_warnings[-1]
    assert curve.errors_at([3200, np.inf]) == pytest.approx(curve.error_at(800))


def test_a_law_out_of_its_own_interval_is_not_followed() -> None:
    """A curve that has levelled off at 10%: held at γ = −0.2, its law falls on, and the data say that it does not."""
    n = np.repeat([25.0, 50, 100, 200, 400], 5)
    error = 10 + 20 * (n / 25) ** -1.6 + np.tile([-0.2, -0.1, 0, 0.1, 0.2], 5)
    curve = build_curve(group_runs(n, error), Unit("percent"))
    assert curve._departure == "outside"
    assert "pulls the fitted law out of its own 95% interval: beyond n = 400" in curve.all_warnings[-1]
    law = curve.alpha + curve.eta * 1e6**curve.gamma
    assert abs(curve.error_at(1e6) - 10) < abs(law - 10)


# Error in percent of four runs of a small network at each of four sizes: steeper than the prior expects.
STEEP = {
    100: [18.82, 26.47, 21.58, 24.47],
    200: [12.92, 11.54, 10.54, 13.43],
    400: [9.16, 9.41, 7.15, 8.66],
    800: [7.65, 7.03, 7.03, 6.52],
}


def test_a_prior_that_disagrees_with_the_data_is_said() -> None:
    n, error = np.repeat(list(STEEP), 4), np.ravel(list(STEEP.values()))
    curve = build_curve(group_runs(n, error), Unit("percent"))
    gamma = curve.gamma_interval()
    assert gamma.estimate == gamma.high == pytest.approx(-0.5), "extended to the estimate"
    text = (
        "The prior on γ and the data disagree: the estimate of γ, β_N and the error at n = 100, 200, 400 is outside"
        " the 95% interval that the data alone give, which is extended to it. Use form='auto'."
    )
    assert text in curve.all_warnings
    assert curve.warnings_at(800) == (text,), "it matters at the sizes measured, too"
    assert text in curve.summary()
    for other in ({"form": "auto"}, {"form": "sqrt"}, {"constants": cw.learning.Constants(prior=0.0)}):
        calm = build_curve(group_runs(n, error), Unit("percent"), **other)
        assert not any("disagree" in w for w in calm.all_warnings)


def test_estimates_at_an_end_of_their_interval_are_those_that_are_named() -> None:
    rng = np.random.default_rng(5)
    n = np.repeat([100.0, 200, 400, 800, 1600], 4)
    found = set()
    for truth in (-0.5, -1.1):
        for _ in range(20):
            error = 5 + 20 * (n / 100) ** truth + rng.normal(0, np.sqrt(0.02 + 60 / n))
            curve = build_curve(group_runs(n, error), Unit("percent"))
            (text,) = [w for w in curve.warnings_at(1600) if "disagree" in w] or [""]
            gamma, reliance = curve.gamma_interval(), curve.interval_at().data_reliance
            at_end = [v.estimate in (v.low, v.high) for v in (gamma, reliance)]
            assert at_end == ["of γ" in text, "β_N" in text]
            band = curve.band(curve.n)
            on = (band["error"] == band["low"]) | (band["error"] == band["high"])
            listed = text.partition("error at n = ")[2].partition(" is outside")[0]
            assert [f"{size:,.0f}" for size in curve.n[on]] == [part for part in listed.split(", ") if part]
            found.add((truth, bool(text)))
    assert found == {(-0.5, False), (-1.1, False), (-1.1, True)}


def test_a_fit_that_is_impossible_at_the_largest_size_itself() -> None:
    """Errors down to 0 whose law is negative at N: answers are possible there, too, and do not jump."""
    n = np.array([50.0, 100, 200, 400, 800])
    curve = build_curve(group_runs(n, [30.0, 20.0, 9.0, 0.4, 0.0]), Unit("percent"))
    law = curve.alpha + curve.eta * 800**curve.gamma
    assert law < 0
    answers = curve.errors_at(np.geomspace(50, 1e6, 200))
    assert (answers >= 0).all()
    assert (np.diff(answers) <= 0).all()
    assert curve.interval_at().error.low == 0


@pytest.mark.slow
def test_the_ensemble_never_rises_where_damping_would_let_it() -> None:
    """Four of LCDB's shapes: noisy tails, where the damped change goes back to the last value far out."""
    rng = np.random.default_rng(5)
    undamped = 0
    for _ in range(20):
        n = 16 * 2.0 ** np.arange(7)
        mean = (12 + 30 * (n / 16) ** -0.7) * np.exp(rng.normal(0, 0.06, 7))
        ensemble = fit_ensemble(n, mean, 0.03 * mean)
        sizes = np.geomspace(n[-1], 1e9 * n[-1], 500)
        undamped += bool((np.diff(ensemble._damped(sizes)) > 1e-9).any())
        assert (np.diff(ensemble.predict(sizes)) <= 0).all()
    assert undamped > 3  # or the test would show nothing


class TestReach:
    """Targets that are never reached, or misread."""

    def test_the_estimate_is_infinite_where_never_is_more_likely(self) -> None:
        seen = set()
        for curve in (*digits(), digits("auto")["svm"]):
            for target in (2.0, 0.5, 0.02):
                found = curve.samples_to_reach(target)
                assert not (found.probability_never > 0.5 and np.isfinite(found.estimate))
                assert found.low <= found.estimate <= found.high
                seen.add((np.isfinite(found.curve_reaches), np.isfinite(found.estimate)))
        assert (True, False) in seen

    def test_the_sentence_gives_both(self) -> None:
        curve = digits()["logreg"]
        found = next(
            r
            for t in np.linspace(0.1, 2.5, 49)
            if (r := curve.samples_to_reach(t)).probability_never > 0.5 and np.isfinite(r.curve_reaches)
        )
        text = found.sentences()
        assert "is probably never reached (95% confidence interval" in text
        assert "the fitted curve gets there at n =" in text

    def test_fractions_given_for_percentages(self) -> None:
        found = digits()["svm"].samples_to_reach(0.02)
        assert "0.02 is read as 0.02%, far below every error measured: for 2% ask for 2." in found.warnings
        assert not any("is read as" in w for w in digits()["svm"].samples_to_reach(1.0).warnings)

    def test_zero(self) -> None:
        found = digits()["svm"].samples_to_reach(0.0)
        assert (found.estimate, found.probability_never) == (np.inf, 1.0)
        assert any("never reaches an error of 0" in w for w in found.warnings)

    def test_many_learners(self) -> None:
        pytest.importorskip("pandas")
        table = digits().samples_to_reach(3.0)
        assert table["learner"].tolist() == list(DIGITS)
        assert table["n"][1] == pytest.approx(digits()["svm"].samples_to_reach(3.0).estimate)


def test_data_reliance_is_the_same_whatever_the_form_of_the_errors() -> None:
    for name in DIGITS:
        power, auto = (digits(form)[name].interval_at().data_reliance for form in ("power", "auto"))
        assert tuple(auto) == pytest.approx(tuple(power))
        assert auto.kind == "confidence"


def test_a_table_of_predictions_says_what_its_intervals_are() -> None:
    pytest.importorskip("pandas")
    power, auto = digits()["logreg"], digits("auto")["logreg"]
    assert power.predict([1600]).attrs == {"interval": "confidence", "level": 0.95}
    assert auto.predict([1600], runs=5).attrs == {"interval": "prediction", "level": 0.95, "runs": 5}
    assert power.predict([1600, 3200])["n"].dtype.kind == "i"
    assert power.predict([1600.5])["n"].tolist() == [1600.5]


def test_a_table_far_beyond_the_data_says_so() -> None:
    runs = {name: (np.repeat(SIZES, 3), np.ravel(errors)) for name, errors in DIGITS.items()}
    for at, far in ((3200, ()), (3201, ("n = 3,201 is more than four times the largest size measured",))):
        with pytest.warns(CurvewiseWarning):
            found = cw.fit_learning_curves(runs, unit="percent", at=at)
        assert tuple(w.partition(":")[0] for w in found.warnings if "four times" in w) == far
        assert not found.general_warnings  # which a comparison at another size would repeat


def test_predictions_for_infinite_data() -> None:
    pytest.importorskip("pandas")
    table = quietly(digits()["logreg"].predict, [800, np.inf])
    assert table["n"].tolist() == [800, np.inf]
    assert table["error"][1] == digits()["logreg"].asymptote.estimate
