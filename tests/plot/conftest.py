"""Curves to draw, and figures closed after each test."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("agg")

from curvewise.errors import CurvewiseWarning
from curvewise.learning import fit_learning_curve

SIZES = np.repeat([25.0, 50.0, 100.0, 200.0, 400.0], [6, 5, 4, 2, 1])


@pytest.fixture(autouse=True)
def _closed_figures() -> Iterator[None]:
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


@pytest.fixture
def fit() -> Callable[..., Any]:
    """Fit α + η n^γ with a little noise, quietly."""

    def make(
        learner: str = "plain",
        alpha: float = 10.0,
        eta: float = 200.0,
        gamma: float = -0.5,
        seed: int = 0,
        noise: float = 0.3,
        n: Any = SIZES,
        **options: Any,
    ) -> Any:
        sizes = np.asarray(n, dtype=float)
        scatter = np.random.default_rng(seed).normal(0.0, noise, len(sizes))
        error = alpha + eta * sizes**gamma + scatter
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CurvewiseWarning)
            return fit_learning_curve(sizes, error, **{"unit": "percent", "learner": learner, **options})

    return make
