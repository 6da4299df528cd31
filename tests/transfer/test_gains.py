"""The size at which a gain ends, and the samples it is worth."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import PchipInterpolator
from scipy.special import stdtrit

from curvewise.errors import InputError
from curvewise.learning import fit_learning_curve
from curvewise.transfer.gains import data_equivalence, gain_end


def test_a_gain_that_ends() -> None:
    end = gain_end([10, 100, 1000], [0.3, 0.2, 0.0], [0.2, 0.1, -0.1], [0.4, 0.3, 0.1])
    assert (end.n_last_significant, end.n_from, end.worse_from) == (100, 1000, math.inf)
    assert (end.significant_at, end.worse_at, end.unknown_at) == ((10, 100), (), ())


def test_a_gain_that_lasts() -> None:
    end = gain_end([10, 100], [0.3, 0.2], [0.2, 0.1], [0.4, 0.3])
    assert (end.n_last_significant, end.n_from) == (100, math.inf)
    assert end.text == "The gain is significant at the largest size, n = 100."


def test_a_gain_that_turns_into_a_loss() -> None:
    end = gain_end([10, 100, 1000, 10000], [0.3, 0.0, -0.2, -0.3], [0.2, -0.1, -0.3, -0.4], [0.4, 0.1, -0.1, -0.2])
    assert (end.n_last_significant, end.n_from, end.worse_from) == (10, 100, 1000)
    assert end.text == (
        "The gain is significant up to n = 10; from n = 100 on it is not; the method is significantly worse"
        " at n = 1,000, 10,000."
    )


def test_a_loss_before_a_gain_is_said_and_does_not_end_it() -> None:
    end = gain_end([10, 100], [-0.3, 0.2], [-0.4, 0.1], [-0.2, 0.3])
    assert (end.n_from, end.worse_from, end.worse_at) == (math.inf, math.inf, (10,))
    assert "significantly worse at n = 10." in end.text


def test_no_gain_anywhere() -> None:
    end = gain_end([10, 100], [0.0, 0.0], [-0.1, -0.1], [0.1, 0.1])
    assert math.isnan(end.n_last_significant)
    assert end.n_from == 10
    assert end.text == "No size shows a significant gain."


def test_a_doubtful_size_before_the_last_sure_one_is_named() -> None:
    end = gain_end([10, 100, 1000], [0.3, 0.0, 0.3], [0.2, -0.1, 0.2], [0.4, 0.1, 0.4])
    assert end.n_from == math.inf
    assert "it is not significant at n = 100" in end.text


def test_unknown_intervals_are_not_sure() -> None:
    nan = math.nan
    end = gain_end([10, 100], [0.3, 0.2], [0.2, nan], [0.4, nan])
    assert (end.n_from, end.unknown_at) == (100, (100,))
    assert "no interval is known at n = 100" in end.text
    nothing = gain_end([10, 100], [0.3, 0.2], [nan, nan], [nan, nan])
    assert math.isnan(nothing.n_from)
    assert nothing.text.startswith("No interval of the gain is known")


@given(st.lists(st.sampled_from("+0-?"), min_size=1, max_size=7))
def test_against_the_definition(signs: list[str]) -> None:
    centre = np.array([{"+": 2.0, "0": 0.0, "-": -2.0, "?": math.nan}[s] for s in signs])
    n = 10.0 ** np.arange(1, len(signs) + 1)
    end = gain_end(n, np.nan_to_num(centre), centre - 1, centre + 1)
    clear = [i for i in range(len(signs)) if "+" not in signs[i:]]
    if set(signs) == {"?"}:
        assert math.isnan(end.n_from)
    else:
        assert end.n_from == (n[clear[0]] if clear else math.inf)
    late = [i for i in clear if signs[i] == "-"]
    assert end.worse_from == (n[late[0]] if late else math.inf)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"n": [100, 10]}, "n must hold each size once"),
        ({"n": [0, 10]}, "n holds 0"),
        ({"n": []}, "n has shape"),
        ({"gain": [0.1]}, "gain has shape"),
        ({"low": [0.3, 0.3]}, "low is above high at n = 10"),
        ({"gain": [0.1, 0.5]}, "gain lies outside low and high at n = 100"),
        ({"high": ["a", "b"]}, "high must hold numbers"),
    ],
    ids=["order", "zero", "empty", "shape", "ends", "outside", "words"],
)
def test_bad_input(changed: dict[str, object], said: str) -> None:
    given = {"n": [10, 100], "gain": [0.1, 0.1], "low": [0.0, 0.0], "high": [0.2, 0.2]}
    with pytest.raises(InputError, match=said):
        gain_end(**{**given, **changed})  # type: ignore[arg-type]


SIZES = np.array([100.0, 1000.0, 10000.0])
SCRATCH = np.array([0.8, 0.4, 0.2])


class Line:
    """A curve that falls by 0.1 for each factor of 10, with a band of ± 0.02."""

    def __init__(self, at_first: float = 0.4, half: float = 0.02) -> None:
        self.at_first, self.half = at_first, half

    def predict(self, n: Any, interval: str, level: float) -> dict[str, np.ndarray]:
        assert interval == "confidence"
        error = self.at_first - 0.1 * np.log10(np.asarray(n) / 100)
        return {"n": n, "error": error, "low": error - self.half, "high": error + self.half}


def test_at_a_size_of_scratch_it_is_that_size() -> None:
    found = data_equivalence([100, 200, 300], [0.8, 0.4, 0.2], SIZES, SCRATCH)
    assert [e.equivalent.estimate for e in found] == pytest.approx([100, 1000, 10000])
    assert [e.factor.estimate for e in found] == pytest.approx([1, 5, 100 / 3])
    assert all(math.isnan(e.equivalent.low) and e.beyond is None for e in found)


@pytest.mark.parametrize("scale", [1.0, 100.0, 7.0])
def test_as_good_as_scratch_at_an_end_is_not_beyond_it(scale: float) -> None:
    # Errors that are counts of examples are often equal: neither unit nor size may decide the side by rounding.
    n = np.array([50.0, 100.0, 300.0, 1000.0])
    scratch = np.array([0.79, 0.53, 0.3, 0.17])
    rounding = 1 + np.array([1, 0, 0, -1]) * 2.0**-52
    for k in range(2, 5):
        found = data_equivalence(
            scale * n[:k],
            100 * scratch[:k] * rounding[:k],
            scale * n[:k],
            scratch[:k] / 0.01,
            variance=[0.0] * k,
            scratch_variance=[0.0] * k,
        )
        assert [e.factor.estimate for e in found] == pytest.approx([1] * k)
        assert {e.beyond for e in found} == {None}


def test_two_sizes_are_joined_by_a_line_in_log_n() -> None:
    (found,) = data_equivalence([10], [0.5], [100, 10000], [0.7, 0.3])
    assert found.equivalent.estimate == pytest.approx(1000)


def test_inversion_of_the_interpolation() -> None:
    (found,) = data_equivalence([10], [0.55], SIZES, SCRATCH)
    back = PchipInterpolator(np.log(SIZES), SCRATCH)(math.log(found.equivalent.estimate))
    assert back == pytest.approx(0.55, abs=1e-4)


@pytest.mark.slow
def test_interval_of_two_sizes_by_brute_force() -> None:
    """Between two sizes the difference is a weighted sum of three means."""
    n, s, v, m, u, free = np.array([100.0, 10000.0]), [0.7, 0.3], [4e-4, 1e-4], 0.5, 2e-4, 4.0
    (found,) = data_equivalence([10], [m], n, s, variance=[u], scratch_variance=v, degrees=free, scratch_degrees=free)
    share = np.linspace(0, 1, 200001)
    parts = np.array([(1 - share) ** 2 * v[0], share**2 * v[1], np.full_like(share, u)])
    total = parts.sum(axis=0)
    half = stdtrit(total**2 / (parts**2 / free).sum(axis=0), 0.975) * np.sqrt(total)
    gap = (1 - share) * s[0] + share * s[1] - m
    kept = 100 * 100 ** share[np.abs(gap) <= half]
    assert list(found.equivalent)[1:] == pytest.approx([kept[0], kept[-1]], rel=1e-3)
    assert list(found.factor)[1:] == pytest.approx([kept[0] / 10, kept[-1] / 10], rel=1e-3)


def test_interpolation_is_sure_at_measured_sizes_only() -> None:
    at, between = data_equivalence([10, 20], [0.4, 0.3], SIZES, SCRATCH, variance=[0.0] * 2, scratch_variance=[0.0] * 3)
    assert list(at.equivalent)[1:] == pytest.approx([1000, 1000], rel=1e-6)
    assert between.equivalent.low < 0.99 * between.equivalent.estimate
    truth = 100 * (0.8 / 0.3) ** (1 / math.log10(2))  # scratch as a power law
    assert truth in between.equivalent


def test_intervals_allow_for_a_risk_with_a_floor() -> None:
    """Scratch flattens out, and hardly any noise: the curve between sizes is most of what is not known."""
    sizes = 100 * 10.0 ** np.arange(4)
    risk = 0.1 + 0.8 * (sizes / 100) ** -0.6
    truth = np.geomspace(120, 40_000, 30)
    errors = {"variance": [1e-9] * 30, "scratch_variance": [1e-9] * 4}
    found = data_equivalence(np.arange(1, 31), 0.1 + 0.8 * (truth / 100) ** -0.6, sizes, risk, **errors)
    assert np.mean([n in one.equivalent for n, one in zip(truth, found, strict=True)]) > 0.9
    assert max(one.equivalent.high / n for n, one in zip(truth, found, strict=True)) < 3


def test_calibration_changes_nothing() -> None:
    v = np.array([1e-4, 2e-4, 1e-4])
    given = {"variance": v[:2], "scratch_variance": v}
    raw = data_equivalence([100, 500], [0.5, 0.3], SIZES, SCRATCH, **given)
    scaled = data_equivalence(
        [100, 500],
        (np.array([0.5, 0.3]) - 0.1) / 0.8,
        SIZES,
        (SCRATCH - 0.1) / 0.8,
        variance=v[:2] / 0.64,
        scratch_variance=v / 0.64,
    )
    for a, b in zip(raw, scaled, strict=True):
        assert [*a.equivalent] == pytest.approx([*b.equivalent], rel=1e-6)


def test_beyond_the_largest_size_there_is_a_low_end_only() -> None:
    sure, maybe = data_equivalence(
        [10, 20], [0.1, 0.19], SIZES, SCRATCH, variance=[1e-4] * 2, scratch_variance=[1e-4] * 3
    )
    assert (sure.beyond, sure.equivalent.estimate, sure.equivalent.high) == ("above", math.inf, math.inf)
    assert sure.equivalent.low == 10000
    assert maybe.beyond == "above"
    assert 5000 < maybe.equivalent.low < 10000
    assert sure.text == (
        "10 samples of the method are worth more than the largest size looked at from scratch: at least 10,000."
    )


def test_below_the_smallest_size_there_is_a_high_end_only() -> None:
    sure, maybe = data_equivalence(
        [10, 20], [1.0, 0.81], SIZES, SCRATCH, variance=[1e-4] * 2, scratch_variance=[1e-4] * 3
    )
    assert (sure.beyond, *sure.equivalent) == ("below", 0, 0, 100)
    assert maybe.beyond == "below"
    assert 100 < maybe.equivalent.high < 300
    assert sure.text == ("10 samples of the method are worth less than the smallest size of scratch: at most 100.")


def test_where_scratch_rises_the_first_crossing_counts() -> None:
    (found,) = data_equivalence([10], [0.5], [100, 1000, 10000, 100000], [0.8, 0.3, 0.6, 0.1])
    assert 100 < found.equivalent.estimate < 1000


def test_shared_noise_narrows() -> None:
    v = 1e-3
    matrix = np.full((3, 3), 0.9 * v) + np.diag([0.1 * v] * 3)
    apart, together = (
        data_equivalence([100], [0.4], SIZES, SCRATCH, variance=[v], scratch_variance=matrix, covariance=c)[0]
        for c in (None, np.full((1, 3), 0.9 * v))
    )
    assert together.equivalent.width < 0.5 * apart.equivalent.width


def test_shared_noise_does_not_use_up_the_degrees_of_freedom() -> None:
    v = 1e-3
    few, many = (
        data_equivalence(
            [100],
            [0.4],
            SIZES,
            SCRATCH,
            variance=[v],
            scratch_variance=np.full((3, 3), 0.99 * v) + np.diag([0.01 * v] * 3),
            covariance=np.full((1, 3), 0.99 * v),
            degrees=free,
            scratch_degrees=free,
        )[0].equivalent
        for free in (4, np.inf)
    )
    widths = [math.log(i.high / i.low) for i in (few, many)]
    assert widths[0] / widths[1] == pytest.approx(stdtrit(4, 0.975) / 1.96, rel=0.05)


def test_unknown_errors_leave_the_estimate() -> None:
    some = data_equivalence(
        [10, 20, 30], [0.5, math.nan, 0.5], SIZES, SCRATCH, variance=[math.nan, 1e-4, 1e-4], scratch_variance=[1e-4] * 3
    )
    assert math.isnan(some[0].equivalent.low)
    assert some[0].equivalent.estimate == some[2].equivalent.estimate
    assert math.isnan(some[1].equivalent.estimate)
    assert some[1].text == "What 20 samples of the method are worth is not known."
    assert some[2].equivalent.low > 0


def test_one_size_of_scratch_tells_the_side() -> None:
    better, worse = data_equivalence([10, 20], [0.3, 0.5], [100], [0.4], variance=[1e-4] * 2, scratch_variance=[1e-4])
    assert (better.beyond, better.equivalent.low) == ("above", 100)
    assert (worse.beyond, worse.equivalent.high) == ("below", 100)


def test_a_curve_leads_beyond_the_largest_size() -> None:
    given = {"variance": [1e-8], "scratch_variance": [1e-8] * 2}
    (found,) = data_equivalence([100], [0.15], [100, 1000], [0.4, 0.3], curve=Line(), **given)
    assert found.equivalent.estimate == pytest.approx(100 * 10**2.5, rel=0.01)
    assert list(found.equivalent)[1:] == pytest.approx([100 * 10**2.3, 100 * 10**2.7], rel=0.01)
    assert found.extrapolated
    assert found.beyond is None
    assert "by a fitted curve" in found.text
    (inside,) = data_equivalence([100], [0.35], [100, 1000], [0.4, 0.3], curve=Line(), **given)
    assert not inside.extrapolated
    assert inside.equivalent.estimate == pytest.approx(100 * 10**0.5)
    (never,) = data_equivalence([100], [-5.0], [100, 1000], [0.4, 0.3], curve=Line(), **given)
    assert (never.beyond, never.equivalent.low) == ("above", pytest.approx(1e6))


def test_a_curve_outside_its_own_band_is_moved_into_it() -> None:
    class Pulled(Line):
        def predict(self, n: Any, interval: str, level: float) -> dict[str, np.ndarray]:
            band = super().predict(n, interval, level)
            return {**band, "error": band["high"] + 0.05}

    given = {"variance": [1e-8], "scratch_variance": [1e-8] * 2}
    (found,) = data_equivalence([100], [0.15], [100, 1000], [0.4, 0.3], curve=Pulled(), **given)
    assert found.equivalent.estimate == pytest.approx(found.equivalent.high, rel=0.01)


@pytest.mark.parametrize("form", ["power", "auto"])
def test_a_fitted_learning_curve_will_do(simulated: tuple[np.ndarray, np.ndarray], form: str) -> None:
    n, error = simulated
    curve = fit_learning_curve(n, error, unit="percent", form=form)
    sizes = np.unique(n)
    means = np.array([error[n == size].mean() for size in sizes])
    target = 8 + 150 * 800**-0.5
    (found,) = data_equivalence(
        [100],
        [target],
        sizes,
        means,
        variance=[0.01],
        scratch_variance=(0.02 + 40 / sizes) / [16, 8, 4, 2, 1],
        curve=curve,
    )
    assert found.equivalent.estimate == pytest.approx(800, rel=0.3)
    assert 800 in found.equivalent
    assert found.extrapolated


@pytest.mark.slow
def test_coverage() -> None:
    """Power laws, three runs at each of four sizes; the rest is in benchmarks/transfer_wins.py."""
    rng = np.random.default_rng(5)
    n = 100 * 4.0 ** np.arange(4)
    scratch, method = 0.1 + 0.9 * (n / 100) ** -0.4, 0.1 + 0.6 * (n / 100) ** -0.4
    truth = n[:3] * 1.5**2.5
    held = []
    for _ in range(60):
        s, m = (mean + 0.02 * rng.standard_normal((3, 4)) for mean in (scratch, method))
        found = data_equivalence(
            n[:3],
            m.mean(axis=0)[:3],
            n,
            s.mean(axis=0),
            variance=m.var(axis=0, ddof=1)[:3] / 3,
            scratch_variance=s.var(axis=0, ddof=1) / 3,
            degrees=2,
            scratch_degrees=2,
        )
        held += [size in one.equivalent for size, one in zip(truth, found, strict=True)]
    assert 0.9 <= np.mean(held) <= 0.995


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"n": [10, 5]}, "n must hold each size once"),
        ({"method": [0.5]}, "method has shape"),
        ({"method": [0.5, math.inf]}, "give a finite risk"),
        ({"scratch_n": [100, 100, 1000]}, "scratch_n must hold each size once"),
        ({"scratch": [0.5, math.nan, 0.2]}, "leave out sizes at which scratch was not measured"),
        ({"variance": [1e-4]}, "variance has shape"),
        ({"variance": [1e-4, -1e-4]}, "variance must hold variances"),
        ({"scratch_variance": [[1e-4]]}, "scratch_variance has shape"),
        ({"covariance": [0.0]}, "covariance has shape"),
        ({"degrees": 0}, "degrees=0: must be positive"),
        ({"scratch_degrees": [1, 2]}, "scratch_degrees=.* must be positive"),
        ({"level": 95}, "level=95"),
        ({"curve": 3}, "curve is a int that is not usable"),
        ({"curve": Line(at_first=40.0)}, "in the same unit and calibrated"),
    ],
    ids=[
        *("order", "shape", "infinite", "twice", "missing", "short", "negative", "matrix"),
        *("covariance", "degrees", "degrees-shape", "level", "curve", "unit"),
    ],
)
def test_equivalence_refuses_bad_input(changed: dict[str, object], said: str) -> None:
    given: dict[str, Any] = {"n": [10, 20], "method": [0.5, 0.4], "scratch_n": SIZES, "scratch": SCRATCH}
    with pytest.raises(InputError, match=said):
        data_equivalence(**{**given, **changed})
