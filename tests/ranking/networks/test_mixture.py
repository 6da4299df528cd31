"""NLEEP by torch beside NLEEP by numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.ranking.mixture import COVARIANCES, candidates, seeds
from curvewise.ranking.networks.probes import TorchOn, nleep_on_device
from curvewise.ranking.prediction import nleep


def drawn(n=300, d=20, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(4, size=n)
    centres = np.random.default_rng(1).standard_normal((4, d))
    return (rng.standard_normal((n, d)) + centres[labels]) * np.arange(1, d + 1) ** -0.7, labels


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_as_by_numpy(covariance):
    x, labels = drawn()
    test, asked = drawn(100, seed=2)
    options = {"test_labels": asked, "covariance": covariance, "steps": 20, "rng": 5}
    expected = nleep(x, labels, test_features=test, **options)
    found = nleep_on_device(x, labels, test_features=torch.tensor(test), device="cpu", **options)
    assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("n", [900, 560])
def test_as_by_numpy_in_many_dimensions_and_single_precision(n):
    x, labels = drawn(n, 640)
    x = x.astype(np.float32)
    found = nleep_on_device(torch.tensor(x), labels, steps=10)
    assert found == pytest.approx(nleep(x, labels, steps=10), abs=1e-3)


def test_half_precision_and_several_labels():
    x, labels = drawn()
    marks = np.eye(4)[labels]
    marks[:50, 0] = 1
    found = nleep_on_device(torch.tensor(x).half(), marks)
    assert found == pytest.approx(nleep(x.astype(np.float16), marks), abs=1e-3)


def test_features_are_left_as_they_are():
    x, labels = drawn()
    tensor = torch.tensor(x, requires_grad=True)
    before = tensor.detach().clone()
    nleep_on_device(tensor, labels)
    assert torch.equal(tensor, before)
    assert tensor.grad is None


def test_what_cannot_be_used_is_refused():
    x, labels = drawn()
    with pytest.raises(InputError, match="matrix of floats"):
        nleep_on_device(torch.zeros(300), labels)
    with pytest.raises(InputError, match="NaN"):
        nleep_on_device(torch.tensor(x) / 0, labels)
    with pytest.raises(InputError, match="not known"):
        nleep_on_device(x, labels, device="toaster")
    with pytest.raises(InputError, match="without test_features"):
        nleep_on_device(x, labels, test_labels=labels)
    with pytest.warns(CurvewiseWarning, match="the same features") as said:
        nleep_on_device(torch.ones(300, 3), labels)
    assert said[0].filename == __file__, "where the user acts"


def test_seeds_read_nothing_from_the_device():
    """On a GPU their steps are recorded; tensors without values show what would be read."""
    from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

    with FakeTensorMode():
        x, draws = torch.empty(50, 3), torch.empty(6, candidates(6), dtype=torch.float64)
        assert seeds(x, draws, TorchOn(torch.device("cpu"))).shape == (6, 3)
        with pytest.raises(DataDependentOutputException):
            float(x.sum())
