"""Scores against scipy's trapezoids on the paper's definitions, and against values by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import cumulative_trapezoid, trapezoid

from curvewise.errors import InputError
from curvewise.response.scores import (
    accuracy_at,
    cumulative_accuracy,
    folded,
    gi_score,
    gi_weights,
    mean_accuracy,
    pal_score,
    pal_weights,
)

unit = st.floats(0, 1, allow_subnormal=False)


@st.composite
def curves(draw, signed: bool = False) -> tuple[np.ndarray, np.ndarray]:
    places = draw(
        st.lists(st.integers(-40 if signed else 0, 40), min_size=2, max_size=12, unique=True).filter(
            lambda found: len(set(map(abs, found))) > 1
        )  # or there is nothing to fold
    )
    right = draw(st.lists(unit, min_size=len(places), max_size=len(places)))
    return np.array(sorted(places)) / 10.0, np.array(right)


def paper_gi(magnitude: np.ndarray, accuracy: np.ndarray) -> float:
    """The paper's algorithm 2 with magnitudes brought to 0 to 1."""
    u = (magnitude - magnitude[0]) / (magnitude[-1] - magnitude[0])
    actual = trapezoid(cumulative_trapezoid(accuracy, u, initial=0), u)
    ideal = trapezoid(cumulative_trapezoid(np.ones_like(u), u, initial=0), u)
    return (ideal - actual) / ideal


@given(curves())
def test_gi_is_the_papers_area(curve: tuple[np.ndarray, np.ndarray]) -> None:
    assert gi_score(*curve) == pytest.approx(paper_gi(*curve), abs=1e-12)


@given(curves(signed=True))
def test_kept_signs_sweep_from_the_lowest(curve: tuple[np.ndarray, np.ndarray]) -> None:
    assert gi_score(*curve, signs="keep") == pytest.approx(paper_gi(*curve), abs=1e-12)


@given(curves(signed=True))
def test_folding_does_not_know_left_from_right(curve: tuple[np.ndarray, np.ndarray]) -> None:
    magnitude, accuracy = curve
    mirrored = gi_score(-magnitude, accuracy)
    assert gi_score(magnitude, accuracy) == pytest.approx(mirrored, abs=1e-12)


@given(curves(signed=True))
def test_an_ideal_network_scores_0_and_84(curve: tuple[np.ndarray, np.ndarray]) -> None:
    magnitude, _ = curve
    right = np.ones_like(magnitude)
    assert gi_score(magnitude, right) == pytest.approx(0, abs=1e-12)
    assert gi_score(magnitude, 0 * right) == pytest.approx(1, abs=1e-12)
    assert pal_score(magnitude, right) == pytest.approx(84)
    assert pal_score(magnitude, right, top=1, bottom=1) == pytest.approx(1)


@given(curves())
def test_pal_is_a_ratio_of_areas_under_the_cumulative_accuracy(curve: tuple[np.ndarray, np.ndarray]) -> None:
    u, density = cumulative_accuracy(*curve)
    fine = np.unique(np.concatenate([np.linspace(0, 1, 2001), u, [0.4, 0.1]]))
    heights = np.interp(fine, u, density)
    below = trapezoid(heights[fine <= 0.1], fine[fine <= 0.1])
    above = trapezoid(heights[fine >= 0.4], fine[fine >= 0.4])
    if below > 1e-6:
        assert pal_score(*curve) == pytest.approx(above / below, rel=1e-9)


def test_folding_by_hand() -> None:
    # At distance 2 only the right side was measured; at 1 the left is halfway between 0 and 2.
    places = np.array([-1.0, 0.0, 1.0, 2.0])
    u, fold = folded(places)
    assert u.tolist() == [0, 0.5, 1]
    assert (fold @ np.array([0.4, 1.0, 0.8, 0.6])).tolist() == pytest.approx([1.0, 0.6, 0.6])
    # Sides measured at different distances are interpolated.
    u, fold = folded(np.array([-2.0, 0.0, 1.0, 2.0]))
    assert (fold @ np.array([0.0, 1.0, 0.9, 0.8])).tolist() == pytest.approx([1.0, 0.7, 0.4])


def test_negative_magnitudes_alone_are_distances() -> None:
    assert gi_score([-2, -1, 0], [0.0, 0.5, 1.0]) == pytest.approx(gi_score([0, 1, 2], [1.0, 0.5, 0.0]))


def test_order_percent_and_clean_accuracy() -> None:
    score = gi_score([0.5, 0.0, 0.25], [60, 100, 90], unit="percent")
    assert score == pytest.approx(gi_score([0.0, 0.25, 0.5], [1.0, 0.9, 0.6]))
    kept = gi_score([0, 1, 2], [0.8, 0.8, 0.8], relative_to=0.8)
    assert kept == pytest.approx(0, abs=1e-12)
    with pytest.raises(InputError, match="relative_to=0"):
        gi_score([0, 1], [1, 1], relative_to=0)


def test_algorithm4_is_two_single_trapezoids() -> None:
    magnitude = np.linspace(0, 0.5, 10)
    accuracy = np.linspace(1, 0.5, 10)
    expected = (accuracy[6] + accuracy[5]) / (accuracy[1] + accuracy[0])
    assert pal_score(magnitude, accuracy, variant="algorithm4") == pytest.approx(expected)
    with pytest.raises(InputError, match="measure at 10 or more"):
        pal_score(magnitude[:9], accuracy[:9], variant="algorithm4")


@given(curves(signed=True))
def test_weights_are_what_the_scores_are_linear_in(curve: tuple[np.ndarray, np.ndarray]) -> None:
    magnitude, accuracy = curve
    weights = gi_weights(magnitude)
    assert weights.sum() == pytest.approx(1)
    assert (weights >= -1e-12).all()
    above, below = pal_weights(magnitude)
    if below @ accuracy > 1e-9:
        assert pal_score(magnitude, accuracy) == pytest.approx((above @ accuracy) / (below @ accuracy))


def test_simple_scores() -> None:
    assert mean_accuracy([1.0, 0.5]) == 0.75
    assert accuracy_at([0, 1], [1.0, 0.5], 0.5) == 0.75
    with pytest.raises(InputError, match="outside the magnitudes"):
        accuracy_at([0, 1], [1.0, 0.5], 2)


@pytest.mark.parametrize(
    ("magnitude", "accuracy", "said"),
    [
        ([0.5], [1.0], "needs two or more"),
        ([0.1, 0.1], [1.0, 1.0], "0.1 twice"),
        ([0, np.nan], [1.0, 1.0], "NaN"),
        ([0, 1], [1.0], "same length"),
        ([0, 1], [1.0, 1.5], "accuracy"),
    ],
    ids=["one", "twice", "nan", "lengths", "no accuracy"],
)
def test_what_is_no_curve(magnitude: list[float], accuracy: list[float], said: str) -> None:
    with pytest.raises(InputError, match=said):
        gi_score(magnitude, accuracy)


def test_unknown_words() -> None:
    with pytest.raises(InputError, match="signs='both'"):
        gi_score([0, 1], [1, 1], signs="both")
    with pytest.raises(InputError, match="variant='table'"):
        pal_score([0, 1], [1, 1], variant="table")
    with pytest.raises(InputError, match="bottom=0"):
        pal_score([0, 1], [1, 1], bottom=0)
    assert np.isnan(pal_score([0, 1], [0.0, 0.0]))


def test_folding_needs_two_distances() -> None:
    with pytest.raises(InputError, match=r"one distance from 0.*signs='keep'"):
        gi_score([-10, 10], [0.9, 0.9])
    assert gi_score([-10, 10], [0.9, 0.9], signs="keep") == pytest.approx(0.1)
    assert gi_score([-10, 0, 10], [0.9, 0.9, 0.9]) == pytest.approx(0.1)


def test_numbers_that_are_no_accuracies_are_refused_with_a_unit_that_is_accepted() -> None:
    with pytest.raises(InputError, match="holds 99, which is no fraction from 0 to 1") as caught:
        gi_score([0, 0.5], [99, 60])
    assert "Pass unit='percent'" in str(caught.value)
    assert "loss" not in str(caught.value)
    with pytest.raises(InputError, match="holds -1, which is no percent"):
        gi_score([0, 0.5], [-1, 60], unit="percent")


@pytest.mark.parametrize("clean", [[0.9, 0.9], float("nan"), 2])
def test_the_clean_accuracy_is_one_number(clean):
    with pytest.raises(InputError, match="relative_to"):
        gi_score([0, 1], [0.9, 0.8], relative_to=clean)
