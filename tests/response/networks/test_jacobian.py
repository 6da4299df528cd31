"""Jacobian norms against autograd's full Jacobians."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from curvewise.response.networks.measures import MEASURES

jacobian = MEASURES["jacobian"].function
jacobian_softmax = MEASURES["jacobian-softmax"].function


def brute(model: nn.Module, x: Tensor, *, softmax: bool) -> float:
    """Mean of the Frobenius norms, one example at a time."""
    finish = nn.Softmax(1) if softmax else nn.Identity()
    norms = [torch.autograd.functional.jacobian(lambda one: finish(model(one)), one[None]).norm() for one in x]
    return float(torch.stack(norms).mean())


def test_few_outputs_are_exact(subject_of: Any, normed: Any, images: Any) -> None:
    subject = subject_of(normed, *images, batch=16)
    assert float(jacobian(subject)) == pytest.approx(brute(normed, images[0], softmax=False), rel=1e-5)
    assert float(jacobian_softmax(subject)) == pytest.approx(brute(normed, images[0], softmax=True), rel=1e-5)


def test_many_outputs_are_projected_without_much_bias(subject_of: Any) -> None:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 60))
    x, y = torch.randn(50, 40), torch.arange(50)
    wanted = brute(model, x, softmax=False)
    found = np.array([float(jacobian(subject_of(model, x, y, seed=s))) for s in range(20)])
    assert found.mean() == pytest.approx(wanted, rel=0.02)
    assert 0 < found.std() < 0.1 * wanted


def test_a_network_that_starts_in_place(subject_of: Any) -> None:
    model = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 2))
    x = torch.randn(6, 3)
    found = float(jacobian(subject_of(model, x)))
    wanted = (model[1].weight[:, None] * (x > 0)).detach().square().sum(dim=(0, 2)).sqrt().mean()
    assert found == pytest.approx(float(wanted), rel=1e-5)
