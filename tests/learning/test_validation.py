"""Leave-one-size-out, stability and the variance check, against direct computation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import curvewise as cw
from curvewise.learning.fit import build_curve
from curvewise.learning.power import group_runs

N5 = np.array([25, 50, 100, 200, 400.0])


@pytest.fixture
def three_curves():
    rng = np.random.default_rng(0)
    n = np.repeat(N5, [16, 8, 4, 2, 1])
    errors = [10 + 5 * i + 120 * n**-0.5 + rng.normal(size=len(n)) for i in range(3)]
    names = np.repeat(["a", "b", "c"], len(n))
    return np.tile(n, 3), np.concatenate(errors), names


def test_rmse_is_what_refitting_by_hand_gives(three_curves):
    n, error, names = three_curves
    result = cw.leave_one_size_out(n, error, learner=names, unit="percent")
    squares = []
    for name in "abc":
        mine = names == name
        rest = mine & (n != 400)
        curve = cw.fit_learning_curve(n[rest], error[rest], unit="percent")
        squares.append((curve.error_at(400) - error[mine & (n == 400)].mean()) ** 2)
    assert result.rmse[0, -1] == pytest.approx(np.sqrt(np.mean(squares)))
    assert list(result.columns())[:4] == ["form", "weights", "r_squared", "rmse_25"]
    assert len(result.forms) == 8
    assert result.forms[-1] == "last"


def test_last_value_is_the_nearest_size(three_curves):
    n, error, _ = three_curves
    n, error = n[:31], error[:31]
    result = cw.leave_one_size_out(n, error, unit="percent", forms=["last"])
    means = [error[n == s].mean() for s in N5]
    assert result.rmse[0, -1] == pytest.approx(abs(means[3] - means[4]))
    assert result.rmse[0, 0] == pytest.approx(abs(means[1] - means[0]))


def test_pvalues_are_paired_t_tests(three_curves):
    stats = pytest.importorskip("scipy.stats")
    n, error, names = three_curves
    result = cw.leave_one_size_out(n, error, learner=names, unit="percent", forms=["power", "sqrt"], weights=["size"])
    misses = []
    for form in ("power", "sqrt"):
        row = []
        for name in "abc":
            for size in N5:
                mine = names == name
                rest = mine & (n != size)
                curve = cw.fit_learning_curve(n[rest], error[rest], unit="percent", form=form)
                row.append(abs(curve.error_at(size) - error[mine & (n == size)].mean()))
        misses.append(row)
    assert result.pvalue[1] == pytest.approx(stats.ttest_rel(*misses).pvalue)
    assert np.isnan(result.pvalue[0])


def test_fraction_and_percent_agree(three_curves):
    n, error, names = three_curves
    percent = cw.leave_one_size_out(n, error, learner=names, unit="percent")
    fraction = cw.leave_one_size_out(n, error / 100, learner=names)
    np.testing.assert_allclose(percent.rmse, fraction.rmse * 100)
    np.testing.assert_allclose(percent.r_squared, fraction.r_squared)


def test_means_leave_out_like_their_runs(three_curves):
    n, error, _ = three_curves
    n, error = n[:31], error[:31]
    data = group_runs(n, error)
    runs = cw.leave_one_size_out(n, error, unit="percent")
    means = cw.leave_one_size_out(data.n, data.mean, unit="percent", runs=data.runs, variance=data.variance)
    np.testing.assert_allclose(means.rmse, runs.rmse)


def test_leave_out_needs_three_sizes_and_shared_ones():
    with pytest.raises(cw.InputError, match="three sizes"):
        cw.leave_one_size_out([1, 2], [0.2, 0.1])
    with pytest.raises(cw.InputError, match="share no size"):
        cw.leave_one_size_out([1, 2, 4, 10, 20, 40], [0.5, 0.4, 0.3] * 2, learner=list("aaabbb"))
    with pytest.raises(cw.InputError, match="one name per run"):
        cw.leave_one_size_out([1, 2, 4], [0.5, 0.4, 0.3], learner=["a"])


def test_stability_finds_the_asymptote_unstable(golden):
    """The paper's finding: e_N and β_N are stable, α is not, and γ = −½ is stabler still."""
    result = cw.learning.measure_stability(*golden["no_pretr_ft"], unit="percent", draws=400)
    row = dict(zip(result.forms, range(4), strict=True))
    p = row["power"]
    assert result.alpha_std[p] > 3 * result.error_std[p]
    assert result.data_reliance_std[row["sqrt"]] < result.data_reliance_std[p]
    assert result.held_out.tolist() == [25]
    assert result.held_out_rmse[p, 0] < result.held_out_rmse[row["sqrt"], 0]


def test_stability_is_seeded_and_matches_a_loop(simulated):
    n, error = simulated
    error = error + 10
    a = cw.learning.measure_stability(n, error, unit="percent", draws=50, rng=3)
    b = cw.learning.measure_stability(n, error, unit="percent", draws=50, rng=3)
    assert np.array_equal(a.error_std, b.error_std)
    with pytest.raises(cw.InputError, match="sizes"):
        cw.learning.measure_stability(n, error, unit="percent", sizes=[1, 2])
    with pytest.raises(cw.InputError, match="forms"):
        cw.learning.measure_stability(n, error, unit="percent", forms=["auto"])


@pytest.mark.parametrize(("unit", "factor"), [("fraction", 0.01), ("loss", 3.0)])
def test_sampled_curves_are_in_the_unit_given(simulated, unit, factor):
    n, error = simulated
    error = error + 10
    percent = cw.learning.measure_stability(n, error, unit="percent", draws=5, forms=["power"])
    other = cw.learning.measure_stability(n, error * factor, unit=unit, draws=5, forms=["power"])
    sampled = other.sampled_at([100, 400])
    assert sampled.shape == (1, 5, 2)
    np.testing.assert_allclose(sampled / factor, percent.sampled_at([100, 400]), rtol=0.02)
    np.testing.assert_allclose(sampled[0, :, 1].std(), other.error_std[0])


def test_means_without_a_variance_are_drawn_by_the_model():
    n, mean = [50, 100, 200, 400], [30.0, 25.0, 22.0, 20.0]
    given = {"unit": "percent", "draws": 20, "forms": ["sqrt"]}
    unknown = cw.learning.measure_stability(n, mean, runs=[4, 4, 2, 1], **given)
    single = cw.learning.measure_stability(n, mean, **given)
    assert unknown.error_std[0] == single.error_std[0] > 0


def test_one_replicated_size_is_no_test_of_the_variance_model():
    with pytest.warns(cw.CurvewiseWarning):
        curve = cw.fit_learning_curve([10, 10, 20, 40], [0.5, 0.48, 0.4, 0.3])
    assert cw.learning.check_variance_model([curve]).sentences().startswith("Only one size has several runs")


@pytest.mark.slow
def test_variance_check_accepts_the_model_and_rejects_another():
    rng = np.random.default_rng(0)
    n = np.repeat(N5, 8)

    def check(spread, curves=8):
        noisy = [20 + 100 * n**-0.5 + rng.standard_normal(len(n)) * spread for _ in range(curves)]
        unit = cw.types.Unit("percent")
        return cw.learning.check_variance_model([build_curve(group_runs(n, e), unit) for e in noisy])

    p = [check(np.sqrt(0.02 + 20 / n), curves=1).pvalue for _ in range(200)]
    assert np.mean(np.array(p) < 0.05) < 0.1
    assert 0.4 < np.mean(p) < 0.6
    good, bad = check(np.sqrt(0.02 + 20 / n), 40), check(1.0, 40)
    np.testing.assert_allclose(good.measured / good.modelled, 1, atol=0.35)
    assert bad.pvalue < 0.01
    assert "is rejected for" in bad.summary()
    assert "is not rejected for" in good.summary()
    with pytest.raises(cw.InputError, match="at least one fitted curve"):
        cw.learning.check_variance_model([])


@pytest.mark.parametrize("options", [{"sizes": "many"}, {"sizes": [1, 2]}])
def test_sizes_of_a_small_design_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(cw.InputError, match="sizes"):
        cw.learning.measure_stability([1, 1, 4, 4], [0.5, 0.4, 0.3, 0.2], **options)


def test_a_variance_of_unknown_runs_is_refused() -> None:
    for function in (cw.fit_learning_curve, cw.learning.leave_one_size_out, cw.learning.measure_stability):
        with pytest.raises(cw.InputError, match=r"needs runs=…") as found:
            function([1, 4, 16], [0.5, 0.3, 0.2], variance=[0.01, 0.02, 0.03])
        assert found.value.argument == "variance"


def test_the_mean_that_is_predicted_has_the_word_of_its_unit() -> None:
    n, score = [10, 20, 40, 80], [0.5, 0.6, 0.68, 0.73]
    found = cw.learning.leave_one_size_out(n, score, unit="score", higher_is_better=True, forms=["sqrt", "last"])
    assert "predicts the mean score at a size left out best" in found.sentences()
