"""Controls that are not of the unit of the risks, in Python."""

from __future__ import annotations

from typing import Any

import pytest

from curvewise.errors import InputError
from curvewise.transfer.blind import blind_guess
from curvewise.transfer.measure import measure_transfer

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
    found = measure_transfer(rows, blind=1.5, maximal=0.69)  # one size of scratch is above it
    assert found.improvement("task", "net").gain.max() < 0


def test_the_error_names_the_task():
    with pytest.raises(InputError, match=r"of task 'b' .*by task where units differ"):
        measure_transfer(table("loss", task="b"), blind=9, maximal=5)


@pytest.mark.parametrize("controls", [{"blind": 90}, {"blind": 0.9, "maximal": 5}])
def test_percentages_beside_fractions(controls):
    with pytest.raises(InputError, match=r"looks like a percentage beside fractions .*pass 0\.0?"):
        measure_transfer(table("error"), **controls)


def test_a_fraction_beside_percentages():
    guess = blind_guess([0, 1, 2, 3, 4, 0], "error")
    with pytest.raises(InputError, match=r"looks like a fraction beside percentages .*66\.6667"):
        measure_transfer(table("error", 100), blind=guess.control(), maximal=0.1)


def test_losses_have_no_bounds():
    found = measure_transfer(table("loss"), blind=2.3, maximal=0.1)
    assert found.improvement("task", "net").cci.low > 0
