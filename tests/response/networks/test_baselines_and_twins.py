"""Loss and accuracy against plain loops, and two networks against each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from curvewise.errors import InputError
from curvewise.response.networks.measures import MEASURES

disagreement = MEASURES["disagreement"].function
disagreement_soft = MEASURES["disagreement-soft"].function
training_accuracy = MEASURES["accuracy"].function
training_loss = MEASURES["loss"].function


def probabilities(model: nn.Module, x: torch.Tensor) -> np.ndarray:
    with torch.no_grad():
        logits = model(x).double().numpy()
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def test_loss_and_accuracy(subject_of: Any, fitted: Any) -> None:
    model, x, y = fitted
    subject = subject_of(model, x, y, batch=50)
    p = probabilities(model, x)
    assert float(training_accuracy(subject)) == pytest.approx((p.argmax(1) == y.numpy()).mean())
    wanted = -np.log(p[np.arange(120), y.numpy()]).mean()
    assert float(training_loss(subject)) == pytest.approx(wanted, rel=1e-4)


def test_disagreement(subject_of: Any, fitted: Any) -> None:
    model, x, y = fitted
    torch.manual_seed(9)
    twin = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3))
    subject = subject_of(model, x, y, twin=twin, batch=50)
    p, q = probabilities(model, x), probabilities(twin, x)
    apart = (p.argmax(1) != q.argmax(1)).mean()
    assert 0 < apart < 1
    assert float(disagreement(subject)) == pytest.approx(apart)
    assert float(disagreement_soft(subject)) == pytest.approx(0.5 * np.abs(p - q).sum(axis=1).mean(), rel=1e-5)
    same = subject_of(model, x, y, twin=model)
    assert float(disagreement(same)) == float(disagreement_soft(same)) == 0


def test_a_twin_with_other_classes_is_refused(subject_of: Any, fitted: Any) -> None:
    model, x, y = fitted
    with pytest.raises(InputError, match="twin has another number of outputs"):
        disagreement(subject_of(model, x, y, twin=nn.Linear(4, 5)))
