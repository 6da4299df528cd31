"""Controls given as numbers, in the unit of the table or in another."""

from __future__ import annotations

from typing import Any

import pytest

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.transfer.load import load_risks
from curvewise.transfer.measure import measure_transfer
from curvewise.transfer.risks import Control


def table(column: str, values: list[float]) -> dict[str, list[Any]]:
    return {"method": ["scratch", "scratch", "net", "net"], "n": [100, 1000, 100, 1000], column: values}


ERRORS = [0.7, 0.5, 0.6, 0.3]
ACCURACIES = [30.0, 50.0, 40.0, 70.0]


@pytest.mark.parametrize(
    ("column", "values", "controls", "message"),
    [
        ("error", ERRORS, {"blind": 90}, r"blind=90 is no fraction.*pass blind=0\.9, or unit="),
        ("error", ERRORS, {"maximal": {"task": 5}}, r"maximal=5 is no fraction.*maximal=0\.05"),
        ("error", ERRORS, {"blind": -1}, "blind=-1 is no fraction"),
        ("accuracy", [0.3, 0.5, 0.4, 0.7], {"blind": 10}, r"no fraction.*pass blind=0\.1\.$"),
        ("accuracy", ACCURACIES, {"blind": 0.1}, r"0\.1% or 10%: pass blind=10, or unit='percent'"),
        ("accuracy", ACCURACIES, {"maximal": 0.9}, r"0\.9% or 90%: pass maximal=90"),
        ("accuracy", ACCURACIES, {"blind": 120}, "blind=120 is no percentage"),
        ("error", [70, 50, 60, 30], {"blind": 0.9}, r"0\.9% or 90%"),
        ("accuracy", ACCURACIES, {"blind": 90, "maximal": 5}, "blind=90: is not below maximal=5"),
        ("accuracy", ACCURACIES, {"blind": 10, "maximal": 15}, "maximal=15: is beaten by every run"),
    ],
)
def test_a_number_of_another_unit_is_an_error_in_the_numbers_that_were_typed(column, values, controls, message):
    with pytest.raises(InputError, match=message):
        load_risks(table(column, values), **controls)


@pytest.mark.parametrize(
    ("column", "values", "options", "risk"),
    [
        ("accuracy", ACCURACIES, {"blind": 0.1, "unit": "percent"}, 99.9),  # one class of 1000
        ("accuracy", ACCURACIES, {"blind": 10}, 90.0),
        ("accuracy", ACCURACIES, {"blind": 0}, 100.0),
        ("error", ERRORS, {"blind": 1.2, "unit": "loss"}, 1.2),
        ("test_loss", ERRORS, {"blind": 2.3}, 2.3),
        ("rmse", ERRORS, {"blind": 40}, 40.0),
        ("error", [8.0, 3.0, 5.0, 2.0], {"blind": 90, "maximal": 0.5}, 90.0),
    ],
)
def test_what_can_be_meant_is_taken(column, values, options, risk):
    assert load_risks(table(column, values), **options).blind["task"].risk == pytest.approx(risk)


@pytest.mark.parametrize("name", ["top1", "top-1", "acc1", "Top-1 (%)", "exact_match", "test_top5", "Test Exact Match"])
def test_names_of_accuracies(name):
    for options in ({}, {"columns": {"risk": name}}):
        found = load_risks(table(name, ACCURACIES), blind=10, **options)
        assert found.risk.tolist() == [70.0, 50.0, 60.0, 30.0]


@pytest.mark.parametrize("name", ["top1_error", "top-5 err", "test error", "val_l1"])
def test_names_of_errors(name):
    assert load_risks(table(name, ERRORS), columns={"risk": name}).risk.tolist() == ERRORS


def test_a_control_given_for_some_tasks_leaves_the_others_theirs():
    rows = {
        "task": ["a"] * 3 + ["b"] * 3,
        "method": ["few-shot", "few-shot", "full fine-tuning"] * 2,
        "n": [10, 100, 1000] * 2,
        "error": [0.6, 0.4, 0.2, 0.5, 0.4, 0.1],
    }
    found = load_risks(rows, maximal={"a": 0.15}, blind=0.9)
    assert {t: c.risk for t, c in found.maximal.items()} == {"a": 0.15, "b": 0.1}
    assert found.method_names == ("few-shot",)


def test_a_column_that_says_nothing_of_its_direction_is_asked_about():
    """Accuracies in a column "value" were read as lower-is-better, which turned every verdict round."""
    rows = table("value", [0.3, 0.5, 0.4, 0.7])
    for name in ("value", "error_score"):
        with pytest.raises(InputError, match=rf"'risk': '{name}'.* does not say whether lower is better: .*Fals.*True"):
            load_risks(table(name, [0.3, 0.5, 0.4, 0.7]))
    assert load_risks(rows, higher_is_better=True).risk.tolist() == pytest.approx(ERRORS)
    assert load_risks(rows, unit="loss").risk.tolist() == [0.3, 0.5, 0.4, 0.7]


@pytest.mark.parametrize(("column", "metric"), [("value", "accuracy"), ("value", "test_acc"), ("score", "error")])
def test_one_metric_in_a_column_says_what_values_are(column, metric):
    up = metric != "error"
    rows = table(column, [0.3, 0.5, 0.4, 0.7] if up else ERRORS)
    found = load_risks(rows | {"metric": [metric] * 4})
    assert found.risk.tolist() == pytest.approx(ERRORS)
    assert found.unit == {"accuracy": "error", "test_acc": "test error", "error": "error"}[metric]
    both = {k: v * 2 for k, v in rows.items()} | {"metric": [metric] * 4 + ["seconds"] * 4}
    assert load_risks(both, where={"metric": metric}).unit == found.unit
    with pytest.raises(InputError, match=r"'metric' .* has 2 values"):
        load_risks(both)


def test_a_number_beside_risks_that_were_accuracies_is_asked_about():
    """A chance level of 0.4 was taken as an error of 0.4, and the calibrated risks were wrong."""
    rows = table("accuracy", [0.71, 0.82, 0.75, 0.9])
    with pytest.raises(InputError, match=r"blind=0\.4: may be a value like .*load_risks as .*as a risk: Control\(0"):
        measure_transfer(load_risks(rows), blind=0.4)
    for source, blind in ((load_risks(rows), Control(0.6)), (rows, 0.4)):
        with pytest.warns(CurvewiseWarning):
            found = measure_transfer(source, blind=blind)
        assert found.blind["task"].risk == 0.6
