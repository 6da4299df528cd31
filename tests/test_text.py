"""Messages in the terms of Python and of the command line, and errors with fields."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import curvewise as cw
from curvewise.errors import Message, UntrustedCodeError, arg, either, neutral, prefix
from curvewise.evals.evals import Evals
from curvewise.text import format_chance, format_count, format_interval, format_number, format_size, format_value


def test_a_message_is_its_text_in_python():
    message = Message(f"Pass {arg('unit', 'percent')}, {arg('labels')} or {either('np.nan', 'nan')}.")
    assert message == "Pass unit='percent', labels=… or np.nan."
    assert f"{message}" == str(message)
    assert message.isprintable(), "no mark is left"


def test_only_marked_arguments_are_worded_anew():
    """A file or a learner may be called like an argument."""
    message = Message(f"compare_runs.npz holds no learner 'vit unit='percent'': pass {arg('unit', 'percent')}.")
    assert message.worded(lambda name, value: f"--{name} {value}") == (
        "compare_runs.npz holds no learner 'vit unit='percent'': pass --unit percent."
    )


@pytest.mark.parametrize("value", ["a b", 0.5, True, None, ["a", 1], {"n": "size"}, ("x",), "it's", 'a"b'])
def test_values_reach_the_command_line_as_they_are(value: object):
    seen: list[Any] = []
    Message(arg("x", value)).worded(lambda name, found: seen.append(found) or "")  # type: ignore[func-returns-value]
    assert seen == [value]


def test_a_value_cannot_forge_a_mark():
    hostile = Message(arg("x", "\ue000rm\ue002-rf\ue003"))
    assert hostile.worded(lambda name, value: f"--{name}") == "--x"


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_message_and_an_error_survive_a_copy(again: Callable[[Any], Any]):
    message = Message(f"pass {arg('k', 2)}")
    assert again(message).worded(lambda name, value: f"--{name} {value}") == "pass --k 2"
    error = again(cw.InputError("is too small.", argument="k", value=1, remedy="Pass 2."))
    assert str(error) == "k=1: is too small. Pass 2."
    assert isinstance(error.message, Message)
    assert (error.argument, error.value, error.remedy) == ("k", 1, "Pass 2.")


def test_a_prefix_keeps_the_options():
    headed = prefix("resnet: ", Message(f"use {arg('form', 'auto')}"))
    assert headed == "resnet: use form='auto'"
    assert isinstance(headed, Message)
    assert headed.worded(lambda name, value: f"--{name} {value}") == "resnet: use --form auto"


def test_errors_have_fields():
    error = cw.InputError("must be above 0.", argument="margin", value=-1.0, remedy=f"Pass {arg('margin', 0.005)}.")
    assert (error.argument, error.value) == ("margin", -1.0)
    assert str(error) == "margin=-1.0: must be above 0. Pass margin=0.005."
    assert error.remedy == "Pass margin=0.005."
    assert str(cw.InputError("holds -50.", argument="n")) == "n holds -50."
    assert str(cw.InputError("There is no run.")) == "There is no run."
    assert isinstance(UntrustedCodeError("no"), cw.InputError)
    column = cw.InputError("accuracy holds 7.", argument="accuracy")  # a name of its own, and no option
    assert column.message.worded(lambda name, value: f"--{name}") == str(column) == "accuracy holds 7."


def test_values_outside_their_unit_are_fields_of_the_error():
    with pytest.raises(cw.InputError, match=r"^error holds 40, which is no fraction") as caught:
        cw.fit_learning_curve([25, 50, 100, 200], [40.0, 30.0, 25.0, 20.0])
    assert (caught.value.argument, caught.value.value) == ("error", 40.0)
    assert caught.value.remedy == "Pass unit='percent' if these are percentages, or unit='loss' for a loss."


def test_error_knows_the_argument_its_message_begins_with() -> None:
    error = cw.InputError(f"{arg('unit', 'metres')} is not known: pass {arg('unit', 'loss')}.")
    assert (error.argument, error.value) == ("unit", "metres")
    assert cw.InputError(f"Pass {arg('unit', 'loss')}.").argument is None
    assert cw.InputError(f"{arg('labels')} has 3 entries.").value is None
    with pytest.raises(cw.InputError) as caught:
        cw.load_measurements({"n": [1, 2], "error": [0.1, 0.2]}, unit="metres")
    assert (caught.value.argument, caught.value.value) == ("unit", "metres")


@pytest.mark.parametrize(
    ("interval", "unit", "written"),
    [
        ((0.03186, 0.02705, 0.03953), "fraction", "3.2% [2.7, 4.0]"),
        ((3.186, 2.705, 3.953), "percent", "3.2% [2.7, 4.0]"),
        ((0.32, 0.25, 0.41), "fraction", "32% [25, 41]"),
        ((-0.004, -0.0079, -0.0001), "fraction", "-0.40% [-0.79, -0.01]"),
        ((2.3456, 2.1, 2.6), "loss", "2.35 [2.10, 2.60]"),
        ((0.97, 0.9, float("inf")), "", "0.97 [0.90, ∞]"),
        ((123_456, 101_000, 155_000), "", "123,000 [101,000, 155,000]"),
        ((0.5, float("nan"), float("nan")), "fraction", "50.0%"),
        ((0.0, 0.0, 0.0), "fraction", "0% [0, 0]"),
        ((0.25, 0.25, 0.25), "", "0.250 [0.250, 0.250]"),
        ((0.6493300380205680, 0.6493300380205679, 0.6493300380205681), "", "0.649 [0.649, 0.649]"),
        ((-1e-9, -0.5, 0.5), "", "0.0 [-0.5, 0.5]"),
        ((48_213, 41_000, 5e9), "", "48,000 [41,000, 5,000,000,000]"),
        ((1.2, 0.3, 1500), "", "1.2 [0.30, 1,500]"),
        ((0.00457, 0.0, 0.0953), "fraction", "0.46% [0.00, 9.5]"),
        ((-1.2, -1500, -0.3), "", "-1.2 [-1,500, -0.30]"),
        ((0.5, 1e-5, 1.2), "", "0.5 [0.0, 1.2]"),
        ((0.0, -1.1e-150, 1.1e-150), "fraction", "0% [0, 0]"),
        ((0.05, 0.0499999999, 0.0500000001), "", "0.05000000000 [0.04999999990, 0.05000000010]"),
        ((1.234e-8, 1.1e-8, 1.4e-8), "", "1.23e-08 [1.1e-08, 1.4e-08]"),
    ],
)
def test_an_interval_is_written_in_the_digits_it_supports(
    interval: tuple[float, float, float], unit: str, written: str
):
    assert format_interval(interval, unit) == written


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (3e-9, "3e-07%"),
        (1e-6, "0.000100%"),
        (0.99996, "100.0%"),
        (1.0, "100%"),
        (0.0, "0%"),
        (1e-160, "0%"),
        (1e308, "∞%"),
    ],
)
def test_a_small_percentage_does_not_read_as_zero(value: float, written: str):
    assert format_value(value, "fraction") == written


def test_digits_fit_estimates_and_limits_of_asymmetric_intervals():
    rng = np.random.default_rng(1)
    for estimate, below, above in 10.0 ** rng.uniform([-3, 0, 0], [5, 1, 3], (2000, 3)):
        low, high = estimate / below, estimate * above
        text = format_interval((estimate, low, high))
        shown = [float(x.strip("[],").replace(",", "")) for x in text.split()] if above > 5 else [estimate, low, high]
        np.testing.assert_allclose(shown, [estimate, low, high], rtol=0.12, err_msg=text)


def test_a_limit_keeps_its_side_of_zero():
    """A difference that excludes 0 must not read as if it included it."""
    rng = np.random.default_rng(0)
    for middle, half in zip(rng.normal(size=2000), rng.exponential(size=2000), strict=True):
        low, high = middle - half, middle + half
        text = format_interval((middle, low, high))
        shown = [float(x) for x in text.partition("[")[2].rstrip("]").split(", ")]
        near = min(abs(low), abs(high)) < 0.005 * half  # closer than two more digits can show
        assert near or (np.sign(shown) == np.sign([low, high])).all(), text
        assert abs(shown[0] - low) <= 0.1 * half, text


def test_counts_have_separators_from_a_thousand_on_however_they_are_written():
    assert {format_number(4000), format_number(4000.0), f"{4000:,}", format_count(4000, "run").split()[0]} == {"4,000"}
    assert format_size(8823.4) == "8,820"
    assert format_size(5.5555) == "5.56"
    assert format_interval((3590, 2660, 4400)) == "3,600 [2,700, 4,400]"
    assert format_number(-1234.5) == "-1,234", "an ASCII minus in plain text"


def test_only_certainty_is_zero_or_a_hundred_percent():
    assert [format_chance(p) for p in (0.0, 9.4e-16, 0.004, 0.5, 0.9967, 1.0)] == [
        "0%",
        "<1%",
        "<1%",
        "50%",
        ">99%",
        "100%",
    ]


def test_levels_near_certainty_are_written_as_they_were_chosen():
    scores = np.tile([[1.0, 1, 0, 1], [0, 1, 0, 1]], 10)
    score = cw.score_evals(Evals(scores, ("a", "b"), np.arange(40)), level=0.975)
    assert "The 97.5% intervals" in score.summary()
    assert score.table_note() == "Estimates with 97.5% intervals"
    assert "a chance of 0.5% over all looks" in cw.evals.plan_looks([50, 100], level=0.995).summary()


def test_pictures_and_pages_name_arguments_neither_as_python_nor_as_options():
    message = Message(f"Use {arg('form', 'auto')}, or {either('cw.fit(…)', '`curvewise fit`')}.")
    assert neutral(prefix("net: ", message)).startswith("net: Use form auto, or ")
    assert neutral("form='auto' is in a name") == "form='auto' is in a name"
