"""What must hold for any table of risks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curvewise.transfer.measure import measure_transfer
from curvewise.transfer.result import TransferResult

pytestmark = pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")

SIZES = np.array([50.0, 200.0, 1000.0])
few = settings(max_examples=25, deadline=None)
steps = st.lists(st.floats(0.02, 0.3), min_size=3, max_size=3)
risks = st.lists(st.floats(0.05, 1.2), min_size=6, max_size=6)
weights = st.sampled_from(["scratch", "uniform", "log"])


def table(scratch: list[float], method: list[float], spread: float = 0.01) -> dict[str, np.ndarray]:
    """Two runs of each: scratch falls by steps, the method has risks of its own."""
    falling = 0.1 + np.cumsum(scratch)[::-1]
    runs = np.concatenate([np.repeat(falling, 2) + spread * np.array([1, -1, 0.5, -0.5, 1, -1])])
    return {
        "method": np.array(["scratch"] * 6 + ["one"] * 6),
        "n": np.tile(np.repeat(SIZES, 2), 2),
        "seed": np.tile([0, 1], 6),
        "loss": np.concatenate([runs, method]),
    }


def all_numbers(found: TransferResult) -> np.ndarray:
    row = found.improvement("task", "one")
    curves = [getattr(c, k) for c in found.curves for k in ("calibrated", "low", "high", "std")]
    return np.concatenate(
        [[row.cci.estimate, row.cci.low, row.cci.high, row.pvalue], row.gain, row.gain_low, row.gain_high, *curves]
    )


@few
@given(steps, risks, st.floats(0.1, 50), st.floats(-5, 5), weights)
def test_a_change_of_unit_changes_nothing_that_is_calibrated(
    scratch: list[float], method: list[float], scale: float, shift: float, weight: str
) -> None:
    given = table(scratch, method)
    moved = {**given, "loss": scale * given["loss"] + shift}
    one = measure_transfer(given, blind=1.5, maximal=0.05, weight=weight)
    two = measure_transfer(moved, blind=scale * 1.5 + shift, maximal=scale * 0.05 + shift, weight=weight)
    np.testing.assert_allclose(all_numbers(two), all_numbers(one), rtol=1e-4, atol=1e-6)


@few
@given(steps, risks, st.randoms(use_true_random=False), weights)
def test_the_order_of_rows_does_not_matter(
    scratch: list[float], method: list[float], random: object, weight: str
) -> None:
    given = table(scratch, method)
    order = list(range(12))
    random.shuffle(order)  # type: ignore[attr-defined]
    # The two methods keep their order of appearance, which is that of the curves.
    order = sorted(order, key=lambda i: given["method"][i] != "scratch")
    turned = {k: v[order] for k, v in given.items()}
    one, two = (measure_transfer(t, blind=1.5, weight=weight) for t in (given, turned))
    np.testing.assert_allclose(all_numbers(two), all_numbers(one), rtol=1e-6, atol=1e-9)


@few
@given(steps, weights)
def test_a_method_that_is_scratch_gains_nothing(scratch: list[float], weight: str) -> None:
    given = table(scratch, [0.0] * 6)
    given["loss"][6:] = given["loss"][:6]
    row = measure_transfer(given, blind=1.5, maximal=0.05, weight=weight).improvement("task", "one")
    assert row.cci.estimate == 0
    assert row.pvalue == 1
    assert (row.gain == 0).all()
    assert 0.0 in row.cci


@few
@given(steps, weights, st.floats(-1, 0.09))
def test_a_method_at_maximal_supervision_gains_all(scratch: list[float], weight: str, maximal: float) -> None:
    given = table(scratch, [maximal] * 6)
    found = measure_transfer(given, blind=1.5, maximal=maximal, weight=weight)
    assert found.improvement("task", "one").cci.estimate == pytest.approx(1)


@few
@given(steps, risks, st.floats(0.001, 1), weights)
def test_a_lower_curve_has_the_higher_cci(scratch: list[float], method: list[float], more: float, weight: str) -> None:
    low, high = (
        measure_transfer(table(scratch, [m + x for m in method]), blind=3, maximal=0.0, weight=weight)
        .improvement("task", "one")
        .cci.estimate
        for x in (0.0, more)
    )
    assert low > high


@few
@given(steps, risks)
def test_one_run_each_is_the_same_pooled_or_averaged(scratch: list[float], method: list[float]) -> None:
    given = {k: v[::2] for k, v in table(scratch, method).items()}
    one, two = (
        measure_transfer(given, blind=1.5, maximal=0.05, seeds=s).improvement("task", "one").cci
        for s in ("mean", "pooled")
    )
    assert one.estimate == two.estimate


@few
@given(steps, risks)
def test_a_larger_maximal_control_only_helps_the_better(scratch: list[float], method: list[float]) -> None:
    """The lower maximal supervision, the nearer to 0 an improvement of either sign."""
    near, far = (
        measure_transfer(table(scratch, method), blind=1.5, maximal=m).improvement("task", "one").cci.estimate
        for m in (0.04, -0.5)
    )
    assert abs(far) <= abs(near) + 1e-12
