"""Small networks with their examples, as measures see them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from curvewise.nn.data import draw_sample
from curvewise.response.networks.subject import Subject, copied

MakeSubject = Callable[..., Subject]


@pytest.fixture
def subject_of() -> MakeSubject:
    """Make a subject of a network, inputs and classes."""

    def make(model: nn.Module, x: Tensor, y: Tensor | None = None, **options: Any) -> Subject:
        y = torch.arange(len(x)) % 2 if y is None else y
        return Subject(copied(model, None), draw_sample(x, y), **options)

    return make


@pytest.fixture
def fitted(trained: tuple[nn.Sequential, Tensor, Tensor]) -> tuple[nn.Sequential, Tensor, Tensor]:
    """A copy of the trained network, which a test may change, and its examples."""
    return copy.deepcopy(trained)


@pytest.fixture(scope="session")
def trained() -> tuple[nn.Sequential, Tensor, Tensor]:
    """A small ReLU network that knows 120 examples of three classes nearly by heart, trained once."""
    torch.manual_seed(0)
    centres = torch.tensor([[2.0, 0.0, 0.0, 1.0], [0.0, 2.0, 0.0, -1.0], [0.0, 0.0, 2.0, 0.0]])
    y = torch.arange(120) % 3
    x = centres[y] + 0.7 * torch.randn(120, 4)
    model = nn.Sequential(nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 3))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(150):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimiser.step()
    return model.eval(), x, y


@pytest.fixture
def images() -> tuple[Tensor, Tensor]:
    """40 images of three channels and their classes, of four."""
    random = torch.Generator().manual_seed(3)
    return torch.randn(40, 3, 8, 8, generator=random), torch.arange(40) % 4


@pytest.fixture
def normed() -> nn.Sequential:
    """A convolutional network with batch norm of its own statistics."""
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1, stride=2),
        nn.BatchNorm2d(6),
        nn.ReLU(inplace=True),
        nn.Conv2d(6, 4, 3, groups=2, bias=False),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16, 4),
    )
    for module in model:
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 2.0)
            nn.init.normal_(module.bias)
            module.running_mean.normal_()
            module.running_var.uniform_(0.3, 3.0)
    return model.eval()


@pytest.fixture
def rescaled() -> Callable[[nn.Sequential, float], nn.Sequential]:
    """The same function of a network of linear layers and ReLU with other weights."""

    def make(model: nn.Sequential, factor: float) -> nn.Sequential:
        other = copy.deepcopy(model)
        with torch.no_grad():
            other[0].weight.mul_(factor)
            other[0].bias.mul_(factor)
            other[2].weight.div_(factor)
        return other

    return make
