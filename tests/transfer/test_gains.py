"""From which size a gain can no longer be told from none."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curvewise.errors import InputError
from curvewise.transfer.gains import gain_end


def test_a_gain_that_ends() -> None:
    end = gain_end([10, 100, 1000], [0.3, 0.2, 0.0], [0.2, 0.1, -0.1], [0.4, 0.3, 0.1])
    assert (end.n_last_significant, end.n_from, end.worse_from) == (100, 1000, math.inf)
    assert (end.significant_at, end.worse_at, end.unknown_at) == ((10, 100), (), ())


def test_a_gain_that_lasts() -> None:
    end = gain_end([10, 100], [0.3, 0.2], [0.2, 0.1], [0.4, 0.3])
    assert (end.n_last_significant, end.n_from) == (100, math.inf)
    assert end.text == "The gain is sure at the largest size, n = 100."


def test_a_gain_that_turns_into_a_loss() -> None:
    end = gain_end([10, 100, 1000, 10000], [0.3, 0.0, -0.2, -0.3], [0.2, -0.1, -0.3, -0.4], [0.4, 0.1, -0.1, -0.2])
    assert (end.n_last_significant, end.n_from, end.worse_from) == (10, 100, 1000)
    assert end.text == (
        "The gain is sure up to n = 10; from n = 100 on no gain is sure; the method is surely worse"
        " at n = 1000, 10,000."
    )


def test_a_loss_before_a_gain_is_said_and_does_not_end_it() -> None:
    end = gain_end([10, 100], [-0.3, 0.2], [-0.4, 0.1], [-0.2, 0.3])
    assert (end.n_from, end.worse_from, end.worse_at) == (math.inf, math.inf, (10,))
    assert "surely worse at n = 10" in end.text


def test_no_gain_anywhere() -> None:
    end = gain_end([10, 100], [0.0, 0.0], [-0.1, -0.1], [0.1, 0.1])
    assert math.isnan(end.n_last_significant)
    assert end.n_from == 10
    assert end.text == "At no size can a gain be told from none."


def test_a_doubtful_size_before_the_last_sure_one_is_named() -> None:
    end = gain_end([10, 100, 1000], [0.3, 0.0, 0.3], [0.2, -0.1, 0.2], [0.4, 0.1, 0.4])
    assert end.n_from == math.inf
    assert "it is not sure at n = 100" in end.text


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
