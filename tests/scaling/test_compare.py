"""The compute that one family of models needs over what another needs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.optimize import minimize

import curvewise as cw
from curvewise.errors import CurvewiseWarning, InputError
from curvewise.scaling import ScalingRuns, fit_scaling_law

E, A, B, ALPHA, BETA = 1.8172, 482.01, 2085.43, 0.3478, 0.3658
C = np.repeat(np.geomspace(1e18, 1e21, 4), 6)
N = np.sqrt(C / 120) * np.tile(np.geomspace(0.2, 5, 6), 4)
D = C / 6 / N


def family(seed: int, ratio: float = 1.0, noise: float = 0.003, floor: float = E, alpha: float = ALPHA) -> ScalingRuns:
    loss = floor + A / 3e8**ALPHA * (3e8 * ratio / N) ** alpha + B / D**BETA
    noisy = loss * np.exp(noise * np.random.default_rng(seed).standard_normal(len(N)))
    return ScalingRuns(N, D, noisy, name=f"family {seed}", unit="loss")


@pytest.mark.parametrize("loss", ["squares", "huber"])
def test_the_ratio_is_recovered_without_noise(loss):
    found = cw.compare_scaling_laws(family(0, noise=1e-9), family(1, 0.7, noise=1e-9), loss=loss)
    assert found.efficiency.estimate == pytest.approx(0.7, rel=1e-4)
    assert found.verdict == "b better"
    assert found.shared["alpha"].estimate == pytest.approx(ALPHA, rel=1e-4)


def test_the_joint_fit_is_the_least_squares_of_all_seven_parameters():
    a, b = family(0), family(1, 0.7)
    found = cw.compare_scaling_laws(a, b, loss="squares")

    def squares(p: np.ndarray) -> float:
        e, la, lb, al, be, da, db = p
        total = 0.0
        for runs, s in ((a, 0.0), (b, 1.0)):
            loss = (
                e
                + np.exp(la + s * da - al * np.log(runs.params / 1e9))
                + np.exp(lb + s * db - be * np.log(runs.tokens / 1e10))
            )
            total += float(((np.log(loss) - np.log(runs.loss)) ** 2).sum())
        return 1e4 * total

    start = [E, np.log(A / 1e9**ALPHA), np.log(B / 1e10**BETA), ALPHA, BETA, ALPHA * np.log(0.7), 0.0]
    best = minimize(squares, start, method="Nelder-Mead", options={"maxiter": 40_000, "xatol": 1e-10, "fatol": 1e-12})
    ratio = np.exp(best.x[5] / best.x[3] + best.x[6] / best.x[4])
    assert found.efficiency.estimate == pytest.approx(ratio, rel=1e-3)
    assert found.shared["E"].estimate == pytest.approx(best.x[0], rel=1e-3)


def test_swapping_the_two_inverts_the_ratio():
    a, b = family(0), family(1, 0.7)
    one, two = cw.compare_scaling_laws(a, b), cw.compare_scaling_laws(b, a)
    assert one.efficiency.estimate == pytest.approx(1 / two.efficiency.estimate, rel=1e-3)
    assert one.efficiency.low == pytest.approx(1 / two.efficiency.high, rel=2e-2)
    assert (one.verdict, two.verdict) == ("b better", "a better")
    assert one.pvalue == pytest.approx(two.pvalue, abs=0.02)


def test_the_same_family_twice_is_not_significant():
    found = cw.compare_scaling_laws(family(0), family(1))
    assert found.verdict == "not significant"
    assert 1 in found.efficiency
    assert found.pvalue > 0.05
    assert not found.warnings
    assert "not significant" in found.summary()
    assert json.loads(json.dumps(found.to_dict()))["efficiency"]["level"] == 0.95
    assert list(found.columns()["quantity"]) == ["efficiency", "E", "alpha", "beta"]


def test_other_exponents_are_noticed():
    with pytest.warns(CurvewiseWarning, match="differ in more than their efficiency"):
        found = cw.compare_scaling_laws(family(0), family(1, alpha=ALPHA + 0.08))
    assert found.pvalue < 0.001


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")
def test_shared_exponents_are_not_doubted_where_one_family_scatters_more():
    # Twelve runs with three times the noise: p-values are about uniform, with a mean near one half.
    few = np.r_[0:24:2]
    pvalues = [
        cw.compare_scaling_laws(family(seed, noise=0.004), family(100 + seed, noise=0.012).select(few)).pvalue
        for seed in range(6)
    ]
    assert np.mean(pvalues) > 0.33


def test_another_floor_needs_a_place():
    a, b = family(0, noise=1e-9), family(1, floor=1.7, noise=1e-9)
    found = cw.compare_scaling_laws(a, b, share="exponents", at=1e20, loss="squares")
    law_a, law_b = (fit_scaling_law(v, loss="squares") for v in (a, b))
    goal = law_a.compute_optimal(1e20).loss.estimate
    budgets = np.geomspace(1e17, 1e20, 400)
    reached = np.array([i.estimate for i in law_b.compute_optimal(budgets.tolist()).loss])
    needed = float(np.exp(np.interp(-goal, -reached, np.log(budgets))))
    assert found.efficiency.estimate == pytest.approx(needed / 1e20, rel=1e-2)
    assert found.at == 1e20
    with pytest.raises(InputError, match="is the same everywhere"):
        cw.compare_scaling_laws(a, b, at=1e20)


def test_laws_are_compared_by_their_runs():
    a, b = family(0), family(1, 0.7)
    by_law = cw.compare_scaling_laws(fit_scaling_law(a, loss="squares"), fit_scaling_law(b, loss="squares"))
    assert by_law.loss == "squares"
    assert by_law.efficiency == cw.compare_scaling_laws(a, b, loss="squares").efficiency
    tied = cw.compare_scaling_laws(a, b, form="tied")
    assert set(tied.shared) == {"E", "alpha"}


def test_losses_that_do_not_overlap_are_said():
    near = family(1)
    far = ScalingRuns(near.params, near.tokens, 10 * near.loss, unit="loss")
    with pytest.warns(CurvewiseWarning) as seen:
        found = cw.compare_scaling_laws(family(0), far, loss="squares")
    assert any("do not overlap" in str(w.message) for w in seen)
    assert found.verdict == "not significant"
    assert found.separate["E"][1] == pytest.approx(10 * fit_scaling_law(near, loss="squares").E, rel=1e-3)


def test_checkpoints_without_runs_have_no_interval():
    n, d = np.repeat([1e8, 3e8, 1e9], 8), np.tile(np.arange(1, 9) * 1e10, 3)
    runs = ScalingRuns(n, d, E + A / n**ALPHA + B / d**BETA + 1e-3 * np.sin(n * d), unit="loss")
    assert runs.checkpoints == "unclear"
    with pytest.warns(CurvewiseWarning, match="checkpoints"):
        found = cw.compare_scaling_laws(runs, family(0))
    assert np.isnan(found.efficiency.low)
    assert found.verdict == "not significant"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"form": "coupled"}, "additive"),
        ({"loss": "linear"}, "huber"),
        ({"share": "none"}, "exponents"),
        ({"share": "exponents", "at": -1.0}, "above 0"),
        ({"share": "exponents", "at": [1e20, 1e21]}, "above 0"),
        ({"level": 2}, "between 0 and 1"),
        ({"names": ("x",)}, "two different names"),
        ({"names": "ab"}, "two different names"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        cw.compare_scaling_laws(family(0), family(1), **options)
