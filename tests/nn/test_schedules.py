"""Rates against closed forms and against the schedulers of torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.optim import lr_scheduler

from curvewise.nn.schedules import drop_steps, rate_factors
from curvewise.nn.training import Training


def of_torch(make: Callable[[Any], Any], steps: int) -> list[float]:
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    scheduler = make(optimiser)
    rates = []
    for _ in range(steps):
        rates.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        scheduler.step()
    return rates


@pytest.mark.parametrize("steps", [1, 2, 7, 100])
def test_they_are_those_of_torch(steps: int) -> None:
    def linear(optimiser: Any) -> Any:
        return lr_scheduler.LinearLR(optimiser, 1.0, 0.0, total_iters=steps)

    def cosine(optimiser: Any) -> Any:
        return lr_scheduler.CosineAnnealingLR(optimiser, T_max=steps)

    for name, make in (("linear", linear), ("cosine", cosine)):
        ours = rate_factors(Training(schedule=name), steps)
        assert ours.dtype == np.float32
        assert np.allclose(ours, of_torch(make, steps), atol=1e-6)
    assert rate_factors(Training(schedule="constant"), steps).tolist() == [1.0] * steps


@pytest.mark.parametrize("steps", [10, 20, 60, 101])
def test_drops_are_milestones(steps: int) -> None:
    shares = (0.75, 0.5)
    at = [int(np.ceil(share * steps)) for share in sorted(shares)]
    training = Training(schedule="drops", drops=shares)

    def milestones(optimiser: Any) -> Any:
        return lr_scheduler.MultiStepLR(optimiser, at, gamma=0.1)

    assert np.allclose(rate_factors(training, steps), of_torch(milestones, steps), rtol=1e-6)
    assert drop_steps(training, steps) == at
    factors = rate_factors(training, steps)
    assert all(factors[k] < 0.2 * factors[k - 1] for k in drop_steps(training, steps))


def test_shares_that_floats_cannot_hold_drop_where_they_say() -> None:
    for tenth in range(1, 10):
        training = Training(schedule="drops", drops=(tenth / 10,))
        assert [drop_steps(training, 10 * k)[0] for k in (1, 3, 7)] == [tenth * k for k in (1, 3, 7)]


def test_drops_that_come_too_late_or_together() -> None:
    training = Training(schedule="drops", drops=(0.5, 0.6, 0.95))
    assert drop_steps(training, 4) == [2, 3, 4]
    assert drop_steps(training, 2) == [1, 2, 2]
    assert rate_factors(training, 1).tolist() == [1.0]
    assert drop_steps(Training(), 10) == []


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
def test_the_warm_up_rises_to_the_rate_and_the_schedule_goes_on_from_there(schedule: str) -> None:
    training = Training(schedule=schedule, warmup=0.25)
    factors = rate_factors(training, 40)
    assert np.allclose(factors[:10], np.arange(1, 11) / 10)
    assert np.allclose(factors[10:], rate_factors(Training(schedule=schedule), 30))


def test_the_linear_warm_up_is_that_of_transformers_one_step_on() -> None:
    optimization = pytest.importorskip("transformers.optimization")

    def make(optimiser: Any) -> Any:
        return optimization.get_linear_schedule_with_warmup(optimiser, 10, 40)

    theirs = of_torch(make, 40)
    ours = rate_factors(Training(schedule="linear", warmup=0.25), 40)
    assert np.allclose(ours[:10], theirs[1:11])
    assert np.allclose(ours[10:], theirs[10:])


def test_no_steps_no_rates() -> None:
    for schedule in ("constant", "linear", "cosine", "drops"):
        training = Training(schedule=schedule, drops=(0.5,), warmup=0.1)
        assert len(rate_factors(training, 0)) == 0
