"""Calibrated risk and the cumulative improvement."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad, trapezoid

from curvewise.errors import InputError
from curvewise.transfer.risks import calibrated_risk, cci

numbers = st.floats(-100, 100)


def test_the_controls_are_one_and_zero() -> None:
    assert calibrated_risk(0.9, blind=0.9, maximal=0.1) == 1.0
    assert calibrated_risk(0.1, blind=0.9, maximal=0.1) == 0.0


def test_beyond_the_controls_it_goes_on() -> None:
    found = calibrated_risk([1.3, -0.3, np.nan], blind=0.9, maximal=0.1)
    np.testing.assert_allclose(found, [1.5, -0.5, np.nan])


def test_controls_may_differ_by_entry() -> None:
    found = calibrated_risk([0.5, 50.0], blind=[0.9, 90.0], maximal=[0.1, 10.0])
    np.testing.assert_allclose(found, [0.5, 0.5])


@given(numbers, numbers, st.floats(0.1, 100), st.floats(0.01, 100), numbers)
def test_a_change_of_unit_changes_nothing(risk: float, maximal: float, span: float, scale: float, shift: float) -> None:
    one = calibrated_risk(risk, blind=maximal + span, maximal=maximal)
    two = calibrated_risk(scale * risk + shift, blind=scale * (maximal + span) + shift, maximal=scale * maximal + shift)
    assert two == pytest.approx(one, rel=1e-6, abs=1e-6 * (1 + abs(shift) / (scale * span)))


@pytest.mark.parametrize("blind", [0.1, 0.05])
def test_a_guess_that_is_not_worse_than_maximal_is_an_error(blind: float) -> None:
    with pytest.raises(InputError, match="must be above maximal"):
        calibrated_risk(0.5, blind=blind, maximal=0.1)


@pytest.mark.parametrize("control", ["blind", "maximal"])
def test_a_control_must_be_known(control: str) -> None:
    with pytest.raises(InputError, match="finite"):
        calibrated_risk(0.5, **{"blind": 0.9, "maximal": 0.1, control: np.nan})


N = np.array([100.0, 300.0, 1000.0, 10000.0])
SCRATCH = np.array([0.9, 0.6, 0.4, 0.1])
METHOD = np.array([0.5, 0.45, 0.2, 0.12])


def levels(size: int) -> st.SearchStrategy[np.ndarray]:
    return st.lists(st.floats(0.01, 2), min_size=size, max_size=size).map(np.array)


# Falling curves of scratch whose steps are not too small to be told.
falling = st.lists(st.floats(0.01, 1), min_size=4, max_size=4).map(lambda steps: np.cumsum(steps)[::-1].copy())


@pytest.mark.parametrize(("weight", "x"), [("scratch", SCRATCH), ("uniform", N), ("log", np.log(N))])
def test_areas_are_those_of_scipy(weight: str, x: np.ndarray) -> None:
    expected = trapezoid(SCRATCH - METHOD, x) / trapezoid(SCRATCH, x)
    assert cci(N, METHOD, SCRATCH, weight=weight) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("weight", "w"), [("uniform", lambda n: 1.0), ("log", lambda n: 1 / n)])
def test_on_a_fine_grid_the_weight_is_the_one_of_an_integral(weight: str, w) -> None:
    scratch, method = (lambda n: n**-0.3), (lambda n: 0.5 * n**-0.1)
    n = np.geomspace(10, 1e5, 4001)
    between = quad(lambda x: w(x) * (scratch(x) - method(x)), 10, 1e5, limit=500)[0]
    below = quad(lambda x: w(x) * scratch(x), 10, 1e5, limit=500)[0]
    found = cci(n, method(n), scratch(n), weight=weight)
    assert found == pytest.approx(between / below, rel=1e-4)


def test_the_weight_of_scratch_is_its_slope() -> None:
    scratch, method = (lambda n: n**-0.3), (lambda n: 0.5 * n**-0.1)
    n = np.geomspace(10, 1e5, 4001)
    slope = lambda x: -0.3 * x**-1.3  # noqa: E731
    between = quad(lambda x: slope(x) * (scratch(x) - method(x)), 10, 1e5, limit=500)[0]
    below = quad(lambda x: slope(x) * scratch(x), 10, 1e5, limit=500)[0]
    assert cci(n, method(n), scratch(n)) == pytest.approx(between / below, rel=1e-4)


@given(levels(4), falling)
def test_a_weight_of_one_is_the_uniform_one(method: np.ndarray, scratch: np.ndarray) -> None:
    one = cci(N, method, scratch, weight="uniform")
    assert cci(N, method, scratch, weight=np.ones_like) == pytest.approx(one, rel=1e-9)


@given(falling, st.sampled_from(["scratch", "uniform", "log"]))
def test_scratch_scores_0_and_maximal_supervision_1(scratch: np.ndarray, weight: str) -> None:
    assert cci(N, scratch, scratch, weight=weight) == 0
    assert cci(N, np.zeros(4), scratch, weight=weight) == pytest.approx(1)


@given(levels(4), levels(4), falling, st.sampled_from(["scratch", "uniform", "log"]))
def test_a_lower_curve_has_the_higher_score(
    low: np.ndarray, more: np.ndarray, scratch: np.ndarray, weight: str
) -> None:
    below, above = (cci(N, m, scratch, weight=weight) for m in (low, low + more))
    assert below > above


@given(levels(4), falling, st.floats(0.1, 10))
def test_the_scale_of_the_blind_guess_falls_out(method: np.ndarray, scratch: np.ndarray, scale: float) -> None:
    one = cci(N, method, scratch)
    assert cci(N, scale * method, scale * scratch) == pytest.approx(one, rel=1e-9, abs=1e-9)


@given(levels(4), falling)
def test_a_size_twice_over_adds_no_area(method: np.ndarray, scratch: np.ndarray) -> None:
    twice = [0, 1, 1, 2, 3]
    one = cci(N, method, scratch)
    assert cci(N[twice], method[twice], scratch[twice]) == pytest.approx(one, rel=1e-9, abs=1e-12)


def test_where_scratch_encloses_nothing_there_is_no_score() -> None:
    assert np.isnan(cci([100], [0.5], [0.9]))
    assert np.isnan(cci([100, 1000], [0.5, 0.4], [0.9, 0.9]))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"n": [100, 50]}, "small to large"),
        ({"n": [0, 50]}, "positive"),
        ({"n": [100]}, "shapes"),
        ({"method": [0.5, np.nan]}, "NaN"),
        ({"weight": "linear"}, "weight='linear'"),
        ({"weight": lambda n: -n}, "positive number"),
        ({"weight": lambda n: 1.0}, "positive number"),
    ],
    ids=["order", "zero", "shape", "nan", "name", "negative", "scalar"],
)
def test_what_cannot_be_integrated_is_an_error(change: dict, said: str) -> None:
    given = {"n": [100, 1000], "method": [0.5, 0.4], "scratch": [0.9, 0.5], **change}
    with pytest.raises(InputError, match=said):
        cci(**given)


def test_controls_must_fit_the_risks() -> None:
    with pytest.raises(InputError, match="have shapes"):
        calibrated_risk([0.5, 0.4, 0.3], blind=[0.9, 0.9], maximal=[0.1, 0.1])
