"""Where an uncertain quantity comes down to zero."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curvewise.stats import crossing_interval, first_crossing

GRID = np.geomspace(1.0, 1000.0, 61)


def falling(middle: float, slope: float, width: float, bend: float = 0.0):
    """A quantity that falls with log x through zero, with an interval that may bend."""

    def evaluate(x):
        away = np.log(x / middle)
        centre = -slope * away - bend * away**3
        half = width * (1 + 0.3 * np.sin(away) ** 2)
        return centre, centre - half, centre + half

    return evaluate


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(st.floats(1.5, 800.0), st.floats(0.1, 5.0), st.sampled_from([0.0, 1e-9, 0.05, 0.5, 3.0]), st.floats(0.0, 0.3))
def test_ends_against_a_scan(middle: float, slope: float, width: float, bend: float) -> None:
    evaluate = falling(middle, slope, width, bend)
    low, high = crossing_interval(evaluate, GRID)
    fine = np.geomspace(1.0, 1000.0, 200_001)
    _, a, b = evaluate(fine)
    inside = fine[(a <= 0) & (b >= 0)]
    if width < 1e-6:
        assert (low, high) == pytest.approx((middle, middle), rel=1e-6)
        return
    assert low == (0.0 if inside[0] == fine[0] else pytest.approx(inside[0], rel=1e-4))
    assert high == (np.inf if inside[-1] == fine[-1] else pytest.approx(inside[-1], rel=1e-4))


def test_ends_are_exact_and_take_few_evaluations() -> None:
    asked = []

    def evaluate(x):
        asked.append(len(x))
        centre = -np.log(x / 20.0)
        return centre, centre - 0.7, centre + 0.4

    found = crossing_interval(evaluate, GRID)
    assert found == pytest.approx((20 * np.exp(-0.7), 20 * np.exp(0.4)), rel=1e-9)
    assert len(asked) < 15


def test_a_jump_and_an_endless_interval() -> None:
    def jump(x):
        centre = np.where(x < 30, 1.0, -1.0)
        return centre, np.where(x < 10, 0.5, -np.inf), np.where(x < 100, np.inf, -0.5)

    assert crossing_interval(jump, GRID) == pytest.approx((10, 100), rel=1e-8)


def test_nothing_known_is_outside() -> None:
    def evaluate(x):
        centre = -np.log(x / 20.0)
        low = np.where(x < 5, np.nan, centre - 9)
        return centre, low, np.where(x > 50, np.nan, centre + 9)

    assert crossing_interval(evaluate, GRID) == pytest.approx((5, 50), rel=1e-8)


@pytest.mark.parametrize(
    ("offset", "half", "expected"),
    [(5.0, 1.0, (np.inf, np.inf)), (-5.0, 1.0, (0.0, 0.0)), (5.0, 9.0, (0.0, np.inf)), (-5.0, 9.0, (0.0, np.inf))],
    ids=["above", "below", "above-wide", "below-wide"],
)
def test_no_crossing(offset: float, half: float, expected: tuple[float, float]) -> None:
    def level(x):
        centre = np.full(x.shape, offset)
        return centre, centre - half, centre + half

    assert crossing_interval(level, GRID) == expected


def test_a_quantity_that_comes_back_ends_the_stretch() -> None:
    def valley(x):
        centre = np.abs(np.log(x / 30.0)) - 1.0
        return centre, centre - 0.2, centre + 0.2

    low, high = crossing_interval(valley, GRID)
    assert (low, high) == pytest.approx((30 * np.exp(-1.2), 30 * np.exp(-0.8)), rel=1e-6)


def test_first_crossing_by_lines() -> None:
    assert first_crossing(GRID, np.ones(61)) == np.inf
    assert first_crossing(GRID, -np.ones(61)) == 0.0
    x = np.arange(5.0)
    assert first_crossing(x, 2.5 - x) == pytest.approx(2.5)
