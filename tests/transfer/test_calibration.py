from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curvewise.errors import InputError
from curvewise.transfer.calibration import calibrated_risk

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
