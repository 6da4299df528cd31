"""The first lines that ``curvewise transfer measure`` prints, against the result they are about."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from curvewise.errors import CurvewiseWarning
from curvewise.stats import holm
from curvewise.transfer.commands import answers, details
from curvewise.transfer.measure import measure_transfer
from curvewise.transfer.result import TransferResult


def measured(starts: dict[str, float], runs: int = 3, **options: Any) -> TransferResult:
    """Methods whose mean risk at n = 100 is given and falls alike."""
    rows: list[tuple[str, int, float]] = [
        (method, n, start * (n / 100) ** -0.3 + off)
        for method, start in starts.items()
        for n in (100, 1000, 10000)
        for off in np.linspace(-0.004, 0.004, runs) * (runs > 1)
    ]
    table = dict(zip(("method", "n", "risk"), map(list, zip(*rows, strict=True)), strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        return measure_transfer(table, blind=1.0, **{"maximal": 0.0, **options})


def test_the_best_how_sure_and_what_it_is_worth():
    result = measured({"scratch": 0.8, "best": 0.5, "alike": 0.501, "worse": 0.85})
    (line,) = answers(result, every=True)
    (brief,) = answers(result)
    assert line.startswith(brief)
    assert len(brief) < len(line)
    first, second = sorted(result.improvements, key=lambda r: -r.cci.estimate)[:2]
    cci = first.cci
    assert f"{first.method} has CCI {cci}" in line
    assert f"next is {second.method}, {second.cci.estimate:.3f}, not significantly lower" in line
    worth = first.data_equivalence[0].factor
    said = f"{worth.estimate:.1f} times as much data [{worth.low:.1f}, {worth.high:.1f}]"
    assert f"To match its n = 100, scratch needs {said}." in line
    sure = holm([r.pvalue for r in result.improvements]) < 0.05
    assert sure.all()
    assert "2 of 3 methods are significantly better than scratch, 1 significantly worse at 5%, after Holm's" in line
    assert "correction for 3 tests." in line
    (apart,) = answers(measured({"scratch": 0.8, "best": 0.5, "next": 0.6}))
    assert "best has CCI" in apart
    assert "next is next, " in apart
    assert ", significantly lower" in apart


def test_what_is_not_known_is_said():
    one = answers(measured({"scratch": 0.8, "best": 0.5}, runs=1))[0]
    assert "(no interval)" in one
    assert "significant" not in one
    flat = answers(measured({"scratch": 0.8, "same": 0.8}))[0]
    assert "not significantly different from 0" in flat
    assumed = answers(measured({"scratch": 0.8, "best": 0.5}, maximal=None))[0]
    assert "Maximal supervision is assumed: best observed risk" in assumed
    assert answers(measured({"scratch": 0.8}))[0] == (
        "No CCI; there is no method beside scratch, which transfer tasks looks at."
    )
    single = measured({"scratch": 0.8, "best": 0.5}, sizes=[100])
    assert answers(single)[0] == "No CCI; it needs two sizes."


@pytest.mark.parametrize(("width", "more"), [(80, False), (200, True)])
def test_the_table_shows_what_there_is_room_for(monkeypatch, width, more):
    monkeypatch.setenv("COLUMNS", str(width))
    result = measured({"scratch": 0.8, "a method with a long name": 0.5, "worse": 0.85})
    found = details(result, result.improvements)
    assert list(found)[:5] == ["method", "CCI", "gain", "significant at", "data ×"]
    assert ("p" in found and "n" in found and "runs" in found) == more
    assert found["method"] == ["a method with a long name", "worse"]
    assert found["significant at"] == ["all n", "–"]


def test_a_gain_that_is_sure_at_some_sizes():
    rng = np.random.default_rng(1)
    means = {"scratch": (0.8, 0.5, 0.3), "early": (0.6, 0.4, 0.3), "late": (0.8, 0.4, 0.2)}
    runs = [
        (method, n, risk + rng.normal(0, 0.004))
        for method, risks in means.items()
        for n, risk in zip((100, 1000, 10000), risks, strict=True)
        for _ in range(4)
    ]
    table = dict(zip(("method", "n", "risk"), map(list, zip(*runs, strict=True)), strict=True))
    result = measure_transfer(table, blind=1.0, maximal=0.0)
    found = details(result, result.improvements)
    said = dict(zip(found["method"], found["significant at"], strict=True))
    assert said == {"early": "100, 1,000", "late": "1,000, 10,000"}


def test_methods_that_are_all_worse_than_scratch_are_named():
    result = measured({"scratch": 0.5, "bad": 0.7, "worst": 0.8})
    (line,) = answers(result)
    said = "No method beats scratch; bad and worst are significantly worse after Holm's correction for 2 tests."
    assert line.startswith(said)
    assert said in result.sentences()
    assert "−" not in line, "one minus sign"
    assert "next is worst, -0." in line
    (alone,) = answers(measured({"scratch": 0.5, "bad": 0.7}))
    assert alone.startswith("No method beats scratch; bad is significantly worse. bad has CCI -0.")
    (mixed,) = answers(measured({"scratch": 0.5, "bad": 0.7, "good": 0.3}))
    assert "No method" not in mixed


def test_the_next_method_is_judged_with_a_correction_for_all():
    (line,) = answers(measured({"scratch": 0.8, "best": 0.4, "next": 0.5, "third": 0.6, "last": 0.7}))
    assert "next is next, " in line
    assert ", significantly lower (Holm's correction for 3 comparisons)." in line


def test_a_factor_below_a_tenth_is_not_shown_as_0():
    """A method that starts from nothing useful: 1,000 samples are worth 20 of scratch."""
    rows = [("scratch", n, r) for n, r in ((10, 0.9), (100, 0.6), (1000, 0.3))] + [("a", 1000, 0.85), ("a", 10000, 0.5)]
    table = dict(zip(("method", "n", "risk"), map(list, zip(*rows, strict=True)), strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        result = measure_transfer(table, blind=1.0, maximal=0.0)
    factor = result.improvements[0].data_equivalence[0].factor.estimate
    assert 0.01 < factor < 0.05
    assert details(result, result.improvements)["data ×"] == [f"{factor:.2g}"]


def test_a_cci_whose_sign_negative_weights_decide_is_no_verdict():
    means = {"scratch": (0.50, 0.30, 0.45), "net": (0.50, 0.30, 0.40)}
    rows = [
        (method, n, seed, mean + 1e-4 * (-5, 2, 3)[(seed + i) % 3])
        for method, risks in means.items()
        for i, (n, mean) in enumerate(zip((100, 1000, 10000), risks, strict=True))
        for seed in range(3)
    ]
    table = dict(zip(("method", "n", "seed", "loss"), map(list, zip(*rows, strict=True)), strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        result = measure_transfer(table, blind=0.9, maximal=0.05)
    (line,) = answers(result)
    assert f"net has CCI {result.improvements[0].cci}, of the other sign over log n." in line
    assert "It is not certain that net pays off" in line
    assert "the largest size of both, its loss is 0.4 and that of scratch 0.45, a gain" in line
    assert "worse" not in line
