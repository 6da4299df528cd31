"""Made runs whose law is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

TRUTH = {"E": 1.8, "A": 480.0, "B": 2000.0, "alpha": 0.35, "beta": 0.37}


@pytest.fixture
def made() -> Callable[..., dict[str, Any]]:
    """Runs on a grid of sizes with the additive law, as a dict of arrays."""

    def make(noise: float = 0.0, seed: int = 0, sizes: int = 6, g: float = 1.0, **law: float) -> dict[str, Any]:
        known = TRUTH | law
        n, d = (v.ravel() for v in np.meshgrid(np.geomspace(2e7, 3e9, sizes), np.geomspace(1e9, 2e11, sizes)))
        terms = (known["A"] / n ** known["alpha"]) ** (1 / g) + (known["B"] / d ** known["beta"]) ** (1 / g)
        scatter = np.random.default_rng(seed).standard_normal(len(n))
        return {"params": n, "tokens": d, "loss": (known["E"] + terms**g) * np.exp(noise * scatter)}

    return make


@pytest.fixture
def doubtful(made: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    """Runs four of which diverged, with a law of small models that is not that of large ones."""
    runs = made(noise=0.002, sizes=10)
    n, loss = runs["params"], runs["loss"]
    loss = loss * np.exp(0.05 * np.maximum(0.0, np.log(3e8 / n)))
    loss[np.argsort(-n * runs["tokens"])[:4]] *= 1.5
    return runs | {"loss": loss}
