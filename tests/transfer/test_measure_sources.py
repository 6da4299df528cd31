"""Controls that are not of the unit of the risks, in Python."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.transfer.blind import blind_guess
from curvewise.transfer.load import load_risks
from curvewise.transfer.measure import measure_transfer
from curvewise.types import Interval

SIZES = (100, 1000, 10000)


def table(name: str, scale: float = 1.0, task: str | None = None) -> dict[str, list[Any]]:
    """Scratch and a better method, two runs of each size."""
    risks = {"scratch": (0.7, 0.5, 0.4), "net": (0.5, 0.4, 0.35)}
    rows = [
        (method, n, scale * (risk + off))
        for method, means in risks.items()
        for n, risk in zip(SIZES, means, strict=True)
        for off in (-0.004, 0.004)
    ]
    found = dict(zip(("method", "n", name), map(list, zip(*rows, strict=True)), strict=True))
    return found if task is None else {**found, "task": [task] * len(rows)}


def test_an_interval_without_an_end_is_said_to_be_taken_as_exact() -> None:
    """It was said to be measured once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        found = measure_transfer(table("loss"), blind=0.9, maximal=Interval(0.1, 0.05, np.inf))
    assert any("the error of maximal supervision is not known, and intervals take" in w for w in found.warnings)


@pytest.mark.parametrize("name", ["risk", "loss", "error"])
@pytest.mark.parametrize("maximal", [0.75, 0.9])
def test_maximal_supervision_that_every_run_beats(name, maximal):
    with pytest.raises(InputError, match=r"maximal=.* is beaten by every run \(.*sign of CCI"):
        measure_transfer(table(name), blind=0.95, maximal=maximal)


def test_maximal_supervision_that_all_of_scratch_beats_turns_the_sign_too():
    rows = table("loss")
    rows["loss"][6:] = [r + 0.5 for r in rows["loss"][6:]]  # the method is worse than scratch
    with pytest.raises(InputError, match=r"beaten by every run of scratch"):
        measure_transfer(rows, blind=1.5, maximal=0.72)
    with pytest.raises(InputError, match=r"scratch on the whole, at n = 1,000 \(0\.5\), n = 10,000"):
        measure_transfer(rows, blind=1.5, maximal=0.69)  # one size of scratch is above it


def outcome(maximal: float, weight: str) -> tuple[float, str]:
    """CCI of the method (NaN if it was refused), and what was said of maximal supervision."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = measure_transfer(table("loss"), blind=0.95, maximal=maximal, weight=weight)
        except InputError as error:
            return np.nan, str(error)
    return found.improvement("task", "net").cci.estimate, "".join(str(w.message) for w in caught)


@pytest.mark.slow
@pytest.mark.parametrize("weight", ["scratch", "uniform", "log"])
def test_a_better_method_never_scores_below_0_and_a_beaten_control_is_said(weight):
    """The method has the lower risk at every size, whatever maximal supervision is."""
    tried = {m: outcome(m, weight) for m in np.arange(0.005, 0.9, 0.01).tolist()}
    refused = [m for m, (cci, _) in tried.items() if np.isnan(cci)]
    assert all("sign of CCI" in tried[m][1] for m in refused)
    assert 0.4 < min(refused) < 0.7  # between the lowest and the highest mean of scratch
    for maximal, (cci, said) in tried.items():
        if maximal in refused:
            continue
        assert cci > 0
        assert ("scratch beats maximal supervision" in said) == (maximal > 0.4)
        assert ("n = 10,000 (0.4)" in said) == ("Pass maximal=… with" in said) == (maximal > 0.4)
        assert ("n = 1,000 (0.5)" in said) == (maximal > 0.5)
    assert max(set(tried) - set(refused)) > 0.4


def test_sizes_of_one_method_at_which_the_sign_turns_round():
    rows = table("loss")
    keep = [i for i, (m, n) in enumerate(zip(rows["method"], rows["n"], strict=True)) if m == "scratch" or n > 100]
    few = {k: [v[i] for i in keep] for k, v in rows.items()}
    with pytest.warns(CurvewiseWarning) as caught:
        found = measure_transfer(few, blind=0.95, maximal=0.53)
    row = found.improvement("task", "net")
    assert all(np.isnan(v) for v in (row.cci.estimate, row.cci.low, row.pvalue))  # it was −.48, "significantly worse"
    assert any("net: scratch beats maximal" in str(w.message) for w in caught)
    assert "so that there is no CCI" in row.warnings[0]
    assert (row.gain > 0).all()
    assert "worse" not in found.summary()


def test_the_error_names_the_task():
    with pytest.raises(InputError, match=r"of task 'b' .*by task where units differ"):
        measure_transfer(table("loss", task="b"), blind=9, maximal=5)


@pytest.mark.parametrize("controls", [{"blind": 90}, {"blind": 0.9, "maximal": 5}])
def test_percentages_beside_fractions(controls):
    with pytest.raises(InputError, match=r"is no fraction, .*pass (blind|maximal)=0\.0?"):
        measure_transfer(table("error"), **controls)
    with pytest.raises(InputError, match=r"looks like a percentage beside fractions .*Pass 0\.0?"):
        measure_transfer(load_risks(table("error")), **controls)


def test_a_fraction_beside_percentages():
    guess = blind_guess([0, 1, 2, 3, 4, 0], "error")
    with pytest.raises(InputError, match=r"looks like a fraction beside percentages .*66\.6667"):
        measure_transfer(table("error", 100), blind=guess.control(), maximal=10)
    with pytest.raises(InputError, match=r"maximal=0.1 among percentages .* may mean 0.1% or 10%"):
        measure_transfer(table("error", 100), maximal=0.1)


@pytest.mark.parametrize("name", ["risk", "loss"])
@pytest.mark.parametrize(
    ("blind", "message"),
    [
        (90, r"blind=90 is more .* largest risk, 0\.704: is it in percent\? .* 0\.9\."),
        (7.05, r"is it in percent\? Then pass 0\.0705\."),
        (300, r"blind=300 .* is it in their unit\?"),
    ],
)
def test_a_blind_guess_far_above_all_risks(name, blind, message):
    with pytest.warns(CurvewiseWarning, match=message):
        measure_transfer(table(name), blind=blind, maximal=0.1)


def test_a_blind_guess_may_be_far_above_risks_that_are_no_fractions():
    assert not measure_transfer(table("loss"), blind=7.0, maximal=0.1).warnings
    assert not measure_transfer(table("loss", 2), blind=90, maximal=0.1).warnings


def test_losses_have_no_bounds():
    found = measure_transfer(table("loss"), blind=2.3, maximal=0.1)
    assert found.improvement("task", "net").cci.low > 0


def test_a_frame_is_read_as_a_file_is(tmp_path):
    """Controls, failed runs and further columns mean the same in both."""
    pd = pytest.importorskip("pandas")
    rows = table("loss")
    rows |= {"seed": [0, 1] * 6, "status": ["finished"] * 11 + ["failed"]}
    controls = {"method": ["blind", "gold"], "n": [-1, 50000], "loss": [0.95, 0.1], "seed": [-1, 0]}
    controls["status"] = ["finished"] * 2
    frame = pd.DataFrame({k: [*rows[k], *controls[k]] for k in rows})
    frame.to_csv(tmp_path / "t.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        one, two, three = (measure_transfer(s) for s in (frame, tmp_path / "t.csv", frame.to_dict("records")))
    assert one.maximal["task"].risk == 0.1
    assert not one.maximal["task"].assumed
    assert one.methods == ("net",)
    assert one.curve("task", "net").failed.tolist() == [0, 0, 1]
    assert one.to_dict()["improvements"] == two.to_dict()["improvements"] == three.to_dict()["improvements"]


def test_rows_of_two_splits_in_a_frame_are_no_runs_of_one_another():
    rows = table("loss")
    both = {k: v * 2 for k, v in rows.items()} | {"split": ["train"] * 12 + ["test"] * 12}
    with pytest.raises(InputError, match=r"'split' .* has 2 values: .*where=.*'test'.*load_risks, which has these"):
        measure_transfer(both)


def test_a_cci_whose_sign_negative_weights_decide_is_not_significant():
    """Scratch gets worse on its second step, where alone the method is better: the paper's weight calls that a loss."""
    risks = {"scratch": (0.50, 0.30, 0.45), "net": (0.50, 0.30, 0.40)}
    rows = [
        (method, n, seed, mean + 1e-4 * (-5, 2, 3)[(seed + i) % 3])
        for method, means in risks.items()
        for i, (n, mean) in enumerate(zip(SIZES, means, strict=True))
        for seed in range(3)
    ]
    data = dict(zip(("method", "n", "seed", "loss"), map(list, zip(*rows, strict=True)), strict=True))
    with pytest.warns(CurvewiseWarning) as caught:
        found = measure_transfer(data, blind=0.9, maximal=0.05)
    assert any("over log n it is the other way round" in str(w.message) for w in caught)
    row = found.improvement("task", "net")
    assert row.cci.high < 0
    assert row.gain_ends.significant_at == (10000,)
    assert row.reversed
    assert not row.significant
    assert "significantly worse" not in found.summary()
    other = measure_transfer(data, blind=0.9, maximal=0.05, weight="log").improvement("task", "net")
    assert other.significant
    assert other.cci.low > 0
    assert not other.reversed
